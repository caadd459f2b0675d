/* Task queues: tasks meet polls. */
#ifndef HF_ENGINE_MATCHING_H
#define HF_ENGINE_MATCHING_H

#include "base/map.h"
#include "engine/core.h"
#include "engine/cursor.h"
#include "engine/load.h"
#include "run/run.h"

/* How many tasks came or went in the last half minute: counts of five seconds each, and one that is being filled. */
enum { HF_QUEUE_TALLY_COUNTS = 7 };
typedef struct hf_queue_tally {
    int64_t since; /* mono ns: when the queue was made */
    int64_t last;  /* which five seconds (of mono time) the newest count is of */
    uint32_t counts[HF_PRIORITY_LEVELS][HF_QUEUE_TALLY_COUNTS]; /* by priority key - 1; then by `last`, modulo */
} hf_queue_tally;

/* A task queue: namespace, kind and name. */
struct hf_queue {
    hf_map_node by_text;
    hf_node all_link;     /* of core->queues_all, by used_at */
    hf_node marked_link;  /* of core->queues_marked, when something has come in this portion */
    hf_owned text;        /* kind ('w' or 'a'), namespace, 0x1f, name: also its key in the task table */
    hf_list tasks;        /* hf_task, by order */
    hf_list cold;         /* hf_cold: tasks read from the table, whose runs may not be in memory; by order */
    hf_list polls;        /* hf_call that wait here, first come first served */
    size_t task_count;    /* of `tasks` */
    size_t suspect_count; /* tasks of this queue in core->suspects */
    size_t waiting[HF_PRIORITY_LEVELS]; /* both, by priority key - 1 */
    size_t poll_count;
    hf_cursor cursor;  /* over its tasks in the table */
    bool is_sticky;    /* it was polled as one: of a single worker */
    bool shut;         /* its worker is gone: until it is polled again, tasks go to the normal queue instead */
    size_t loads;      /* runs that are being loaded for it */
    int64_t polled_at; /* mono ns: when it was last polled, for sticky queues */
    int64_t used_at;   /* mono ns: when it was made, polled, or last found busy */
    /* Of the run that is being written (spill.c): */
    int32_t spill_counts[HF_PRIORITY_LEVELS]; /* its activities that wait here, by priority key - 1 */
    int64_t spill_order;                      /* of the oldest of them */

    /* Its rate limit (queue_rate.c), of activities alone. */
    double rate;            /* tasks a second, as the last poll said; negative = no limit */
    int64_t rate_full_at;   /* mono ns: when all tokens are back */
    hf_heap_node rate_wait; /* of core->rated, while polls wait for the next token */

    /* Its pollers, and how fast tasks come and are given to workers (queue_pollers.c). */
    hf_list pollers; /* hf_poller, by their last poll */
    size_t poller_count;
    hf_queue_tally added;
    hf_queue_tally given;
};

/* A task in the table whose run is not in memory. */
typedef struct hf_cold {
    hf_node link;
    hf_queue *queue;
    int64_t run;
    int64_t scheduled_id;
    int64_t order;
} hf_cold;

hf_queue *hf_queue_get(hf_core *core, char kind, hf_str namespace_, hf_str name);
hf_str hf_queue_text_in(hf_core *core, hf_arena *arena, char kind, hf_str namespace_, hf_str name);
hf_queue *hf_queue_by_text(hf_core *core, hf_str text);
hf_queue *hf_queue_find(hf_core *core, char kind, hf_str namespace_, hf_str name); /* NULL: not used lately */
void hf_queue_free(hf_core *core, hf_queue *queue);
void hf_queue_shut(hf_core *core, hf_queue *queue); /* its worker is gone: its tasks go to their normal queues */
void hf_queues_tidy(hf_core *core);                 /* frees some unused ones; only between steps */
void hf_match_add(hf_core *core, hf_task *task, hf_queue *queue);
void hf_match_ready(hf_core *core, hf_run *run, hf_task *task); /* it begins to wait for a worker */
void hf_match_all(hf_core *core);                               /* tasks meet polls: at the end of a portion */
void hf_queue_mark(hf_core *core, hf_queue *queue);             /* hf_match_all looks at it */
void hf_match_remove(hf_core *core, hf_task *task);
void hf_match_poll(hf_core *core, hf_call *call);
void hf_match_unpark(hf_core *core, hf_call *call);
/* Gives a waiting task to a poll that is not parked. */
void hf_match_start(hf_core *core, hf_task *task, hf_call *call);

void hf_match_tasks_read(hf_core *core, hf_read *read);
void hf_match_run_loaded(hf_core *core, hf_run *run);
/* The end of the opening. Its tasks come in any order, and each of them would be looked for a place among all others. */
void hf_match_opened(hf_core *core);
void hf_match_evicted(hf_core *core, hf_run *run);
bool hf_queue_has_pollers(const hf_queue *queue);

/* ---- queue_rate.c ------------------------------------------------------------------------------------------------------ */
/* The limit of the last poll holds; NULL = none. */
void hf_queue_set_rate(hf_core *core, hf_queue *queue, const hf_pb_double_value *rate);
/* Whether a task may be handed out now; if not hf_queue_mark follows as soon as one may. Then one was. */
bool hf_queue_may_give(hf_core *core, hf_queue *queue);
void hf_queue_gave(const hf_core *core, hf_queue *queue, const hf_task *task);
/* For the step and its driver. */
void hf_rates_tick(hf_core *core);
int64_t hf_rates_next(const hf_core *core); /* mono ns */

/* ---- queue_pollers.c --------------------------------------------------------------------------------------------------- */
/* Somebody polls; metadata as in hf_queue_set_rate. */
void hf_poller_note(hf_core *core, hf_queue *queue, hf_str identity, const hf_pb_double_value *rate);
void hf_poller_forget(hf_core *core, hf_queue *queue, hf_str identity);
void hf_pollers_free(hf_core *core, hf_queue *queue);
/* Those of the last five minutes; the one that polled last comes first. Out of memory: see the arena. */
#define HF_QUEUE_RATE_DEFAULT 100000.0 /* tasks a second: shown where there is no limit */
void hf_pollers_list(const hf_core *core, const hf_queue *queue, hf_arena *arena, hf_pb_poller_info_list *ret_pollers);
void hf_queue_tally_begin(const hf_core *core, hf_queue_tally *tally);
void hf_queue_tally_count(const hf_core *core, hf_queue_tally *tally, const hf_task *task); /* one more */
/* Tasks a second with this priority key. */
float hf_queue_tally_rate(const hf_core *core, hf_queue_tally *tally, int priority);

/* ---- queue_describe.c -------------------------------------------------------------------------------------------------- */
void hf_describe_task_queue_call(hf_core *core, hf_call *call);
void hf_backlog_rows_read(hf_core *core, hf_read *read);

/* ---- queue_list.c ------------------------------------------------------------------------------------------------------ */
#define HF_QUEUE_PAGE 100 /* task queues of one answer, unless the caller wants fewer */
void hf_list_task_queues_call(hf_core *core, hf_call *call);
void hf_queues_read(hf_core *core, hf_read *read);

/* ---- shutdown.c -------------------------------------------------------------------------------------------------------- */
/* ShutdownWorker. */
void hf_shutdown_worker_call(hf_core *core, hf_call *call);
/* Whether a worker with this key has shut down: a poll of it that comes late is answered at once. */
bool hf_worker_is_shut(hf_core *core, hf_str key);
void hf_shut_workers_free(hf_core *core);
int64_t hf_order_next(hf_core *core);

#endif
