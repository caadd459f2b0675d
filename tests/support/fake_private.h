/* Shared by the files of the fake service. All of it happens under its lock. */
#ifndef HF_TESTS_FAKE_PRIVATE_H
#define HF_TESTS_FAKE_PRIVATE_H

#include "support/fake_service.h"

#include "base/spin.h"

enum { EVENTS_MAX = 4096, ACTIVITIES_MAX = 256, TIMERS_MAX = 256 };

typedef struct fake_activity {
    int64_t scheduled_event_id;                               /* 0 = the place is free */
    hf_pb_schedule_activity_task_command_attributes *command; /* a copy in the run's arena */
    int attempt;
    bool is_out; /* a worker has it */
} fake_activity;

typedef struct fake_timer {
    char id[24];
    int64_t started_event_id; /* 0 = the place is free */
    int64_t due_ns;
} fake_timer;

typedef enum fake_wft { WFT_NONE, WFT_SCHEDULED, WFT_STARTED } fake_wft;

typedef struct fake_run {
    hf_node node;
    hf_arena arena;
    hf_str id;
    hf_str run_id;
    hf_str queue;
    hf_str sticky; /* empty = none */
    hf_str type;
    hf_pb_history_event *events[EVENTS_MAX];
    size_t event_count;
    hf_pb_history_event *buffered[64]; /* events that came while a task was out */
    size_t buffered_count;
    fake_activity activities[ACTIVITIES_MAX];
    fake_timer timers[TIMERS_MAX];
    fake_wft wft;
    int wft_attempt;
    int64_t wft_scheduled_id;
    int64_t wft_started_id;
    int64_t wft_started_before; /* of the last that was completed */
    bool is_closed;
} fake_run;

typedef struct fake_service {
    hf_service base; /* first */
    hf_spin lock;
    hf_list runs;         /* oldest first */
    hf_list calls;        /* that wait */
    uint64_t calls_count; /* that came: their numbers */
    hf_list done;         /* to be answered once the lock is free */
    int64_t now_ns;
} fake_service;

extern const hf_allocator fake_memory; /* malloc */

/* ---- fake_run.c -------------------------------------------------------------------------------------------------- */

/* A cleared struct of attributes for an event. */
#define FAKE_ATTRIBUTES(run, event, NAME, name)                                \
    ((event)->attributes_case = HF_PB_HISTORY_EVENT_##NAME##_EVENT_ATTRIBUTES, \
     (event)->name##_event_attributes = HF_ARENA_NEW(&(run)->arena, hf_pb_##name##_event_attributes))

/* A call is answered: it is told once the lock is free. fake_respond makes the cleared response before; fake_answer does both
 * for those whose response is empty. */
void *fake_respond(hf_call *call);
void fake_finish(fake_service *f, hf_call *call, hf_status status, const char *message);
void fake_answer(fake_service *f, hf_call *call);

/* The newest run that fits, NULL = none. */
fake_run *fake_find_run(fake_service *f, const hf_pb_workflow_execution *which);
fake_run *fake_run_of_token(fake_service *f, hf_str token, int64_t *ret_number);
hf_str fake_token_of(hf_arena *arena, const fake_run *run, int64_t number);

hf_pb_history_event *fake_make_event(fake_run *run, int32_t type);
/* Appends the event and returns its id. */
int64_t fake_append(fake_service *f, fake_run *run, hf_pb_history_event *event);
/* Appends the event at once and schedules a workflow task; or buffers it if a workflow task is out. */
void fake_happen(fake_service *f, fake_run *run, hf_pb_history_event *event);
/* Appends the events that were buffered while a task was out. */
void fake_flush(fake_service *f, fake_run *run);
void fake_schedule_wft(fake_service *f, fake_run *run);
void fake_close_run(fake_run *run);

hf_str fake_history_bytes(const fake_run *run, int64_t from, int64_t to, hf_arena *arena);

void fake_fire_timer(fake_service *f, fake_run *run, fake_timer *timer);
fake_timer *fake_next_timer(fake_run *run); /* NULL = none */
/* Adds the timer of a TimerStarted event. */
void fake_add_timer(const fake_service *f, fake_run *run, const hf_pb_history_event *started);
/* Removes the timer and returns the event that started it; 0 = there is no such timer. */
int64_t fake_drop_timer(fake_run *run, hf_str timer_id);
bool fake_waits_for_time_only(const fake_run *run);

/* ---- fake_workflow.c, fake_activity.c ---------------------------------------------------------------------------- */

/* True: the poll was answered. */
bool fake_try_workflow_poll(fake_service *f, hf_call *call);
bool fake_try_activity_poll(fake_service *f, hf_call *call);
void fake_on_completed(fake_service *f, hf_call *call);
void fake_on_task_failed(fake_service *f, hf_call *call);
void fake_on_activity_completed(fake_service *f, hf_call *call);
void fake_on_activity_failed(fake_service *f, hf_call *call);
fake_activity *fake_find_activity(fake_run *run, int64_t scheduled_event_id); /* NULL = none */

#endif
