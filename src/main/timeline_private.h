/* Shared by timeline.c (events) and waits.c (what the run waits for). */
#ifndef HF_MAIN_TIMELINE_PRIVATE_H
#define HF_MAIN_TIMELINE_PRIVATE_H

#include "main/tool.h"

#include "service/witness.h"

enum {
    HF_TIMELINE_TEXT_MAX = 100,    /* bytes shown of payloads, names and the like */
    HF_TIMELINE_MESSAGE_MAX = 400, /* bytes shown of failures: the end of such a message says what to do */
    HF_TIMELINE_TIMERS_MAX = 64,
    HF_TIMELINE_ACTIVITIES_MAX = 256
};

typedef struct hf_timeline_timer {
    int64_t started_id;
    char id[64];
    int64_t fires_at; /* ns */
} hf_timeline_timer;

/* An activity or update that has not ended: later events have only the number of its first event, and readers want its
 * name. */
typedef struct hf_timeline_name {
    int64_t scheduled_id; /* number of the event that scheduled the activity, or accepted the update */
    char name[64];
    char update_id[64]; /* of an update; empty = an activity */
} hf_timeline_name;

typedef struct hf_timeline {
    hf_buf *out;
    bool is_full;                                     /* texts are not shortened */
    hf_arena arena;                                   /* memory of one event */
    bool has_head;                                    /* its head was written */
    int64_t first;                                    /* ns: time of the first event */
    int64_t last;                                     /* ns: time of the last event */
    hf_timeline_timer timers[HF_TIMELINE_TIMERS_MAX]; /* timers that have not fired */
    size_t timer_count;
    size_t timers_untold; /* timers for which `timers` had no room; only counted */
    hf_timeline_name activities
        [HF_TIMELINE_ACTIVITIES_MAX]; /* and updates that have not ended; further ones are shown without a name */
    size_t activity_count;
    char type[HF_TIMELINE_TEXT_MAX];  /* of the workflow */
    char queue[HF_TIMELINE_TEXT_MAX]; /* its task queue */
    hf_insight_names signals;         /* names of the signals that came */
    bool goes_back;                   /* an event is older than the one before it */
    int32_t task;                     /* type of the last event of a workflow task; 0 = there was none */
    int64_t task_id;                  /* its number */
    int64_t failed_id;                /* number of the last one that failed, since one has succeeded; 0 = none */
    int64_t asked_id;                 /* number of the event that asked the run to end; 0 = none */
} hf_timeline;

/* Text from users, shortened to `len_max` or HF_TIMELINE_TEXT_MAX bytes unless --full was given. */
void hf_timeline_put_cut(hf_timeline *w, hf_str text, size_t len_max);
void hf_timeline_put_text(hf_timeline *w, hf_str text);
void hf_timeline_put_failure(hf_timeline *w, const hf_pb_failure *failure);

/* timeline.c: piece by piece, for a run that goes on. `events` is a part of a history. */
void hf_timeline_init(hf_timeline *w, const hf_run_view *view, hf_buf *out);
void hf_timeline_deinit(hf_timeline *w);
hf_status hf_timeline_add(hf_op *op, hf_timeline *w, const hf_run_view *view, hf_str events, int64_t now_ns);

/* waits.c */
void hf_timeline_put_waits(hf_timeline *w, const hf_run_view *view, int64_t now_ns);
void hf_timeline_put_remarks(hf_timeline *w, int64_t now_ns);

#endif
