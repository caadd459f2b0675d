/* hf_run: the state of one run, in memory.
 *
 * A run changes in one way only: a change is written to its log and applied. A change is a history event, or one of the few
 * things that no history holds (an activity's attempt, a heartbeat, a buffered event: the "rest", proto/holdfast/engine.proto).
 *
 *     decide (machines/, commands.c)  ->  hf_event_emit / hf_record  ->  log (bytes)  and  apply (apply.c)  ->  state
 *
 * So there is one piece of code that turns changes into state, and four that use it: a live step, recovery (state row +
 * journal), rebuild (history alone), and the check that these agree.
 *
 * R1  event_count is the id of the last event; ids are dense from 1.
 * R2  log holds all changes since the run's rows were written, in order, behind the events that its own row holds; its events
 *     are spilled + 1 .. event_count.
 * R3  state == apply(row, log); and, but for the rest, state == apply(nothing, history).
 * R4  A closed run has no pending task, activity, timer or buffered event, and its last event is the closing one.
 * R5  Events of a started workflow task are buffered: while task.state is STARTED only its own events are emitted. */
#ifndef HF_ENGINE_RUN_H
#define HF_ENGINE_RUN_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

#include "proto/pb.h"

typedef struct hf_core hf_core;
typedef struct hf_run hf_run;
typedef struct hf_name hf_name;
typedef struct hf_queue hf_queue;

/* Bytes that the run owns. */
typedef struct hf_owned {
    char *data; /* NULL when empty */
    size_t len;
} hf_owned;

static inline hf_str hf_owned_str(const hf_owned *owned)
{
    return (hf_str){owned->data, owned->len};
}

/* A workflow or activity task in its queue. */
typedef struct hf_task {
    hf_node link;         /* of the queue's list, while it waits */
    hf_queue *queue;      /* where it waits, NULL = it does not */
    hf_run *run;          /* whose it is */
    int64_t scheduled_id; /* of the activity; 0 = the workflow task */
    int64_t order;        /* place among all tasks of the store: first come, first served, also over restarts */
    uint32_t crashes;     /* processes that ended with it in hand: U1 in suspect.c */
    bool is_last;         /* it waits in core->suspects instead of the queue's list */
    int64_t last_since;   /* mono ns: since when it waits there */
} hf_task;

typedef enum hf_wft_state { HF_WFT_NONE, HF_WFT_SCHEDULED, HF_WFT_STARTED } hf_wft_state;
#define HF_WFT_STATE_COUNT 3

typedef struct hf_wft {
    hf_wft_state state;
    bool is_transient;      /* a later attempt: its events are written when it completes */
    bool sticky;            /* goes to the sticky queue */
    bool again;             /* started, but its holder is gone: the same task goes to the next poller */
    int32_t attempt;        /* of the pending task, or of the next one */
    int64_t scheduled_id;   /* when transient: what it will be */
    int64_t started_id;     /* the same */
    int64_t scheduled_time; /* ns */
    int64_t started_time;   /* ns; also the stamp of its token */
    int64_t timeout;        /* ns, start to close */
    int64_t
        last_started_id;  /* started event of the last completed task: history before it is known to a sticky worker */
    int64_t completed_id; /* the last WorkflowTaskCompleted event */
    uint64_t incarnation; /* of the in-process holder, 0 = elsewhere */
    int64_t pause_until;  /* ns: it does not enter its queue before this, 0 = no pause (suspect.c) */
    hf_owned identity;    /* of the holder */
    hf_owned request_id;
    hf_task task;
} hf_wft;

typedef enum hf_activity_state {
    HF_ACTIVITY_NEW,
    HF_ACTIVITY_SCHEDULED, /* waits in its queue */
    HF_ACTIVITY_STARTED,   /* a worker has it */
    HF_ACTIVITY_BACKOFF,   /* waits for its next attempt */
    HF_ACTIVITY_COMPLETED,
    HF_ACTIVITY_FAILED,
    HF_ACTIVITY_TIMED_OUT,
    HF_ACTIVITY_CANCELED
} hf_activity_state;
#define HF_ACTIVITY_STATE_COUNT 8

typedef struct hf_activity {
    hf_activity_state state;
    bool again;                  /* started, but its holder is gone (a vanished poll) */
    int32_t attempt;             /* from 1 */
    int64_t scheduled_id;        /* its ActivityTaskScheduled event */
    int64_t first_time;          /* ns: when it was first scheduled */
    int64_t scheduled_time;      /* ns: of this attempt; in BACKOFF when it will be */
    int64_t started_time;        /* ns; also the stamp of its token */
    int64_t heartbeat_time;      /* ns of the last heartbeat of this attempt */
    int64_t cancel_requested_id; /* event, 0 = not requested */
    uint64_t incarnation;        /* of the in-process holder, 0 = elsewhere */
    hf_owned scheduled;          /* the ActivityTaskScheduled event as bytes; what follows points into it */
    hf_str activity_id;
    hf_str activity_type;
    hf_str task_queue;
    int64_t schedule_to_start, schedule_to_close, start_to_close, heartbeat; /* ns, 0 = none */
    hf_owned heartbeat_details;                                              /* Payloads */
    hf_owned last_failure;                                                   /* Failure */
    hf_owned identity;                                                       /* of the last worker */
    hf_task task;
} hf_activity;

typedef enum hf_timer_state { HF_TIMER_NEW, HF_TIMER_STARTED, HF_TIMER_FIRED, HF_TIMER_CANCELED } hf_timer_state;
#define HF_TIMER_STATE_COUNT 4

typedef struct hf_timer {
    hf_timer_state state;
    int64_t started_id; /* its TimerStarted event */
    int64_t fire_time;  /* ns */
    hf_owned id;
} hf_timer;

typedef enum hf_external_state {
    HF_EXTERNAL_NEW,
    HF_EXTERNAL_INITIATED, /* the message is on its way */
    HF_EXTERNAL_DELIVERED,
    HF_EXTERNAL_FAILED
} hf_external_state;
#define HF_EXTERNAL_STATE_COUNT 4

/* A signal or cancel request for another run. */
typedef struct hf_external {
    hf_external_state state;
    int64_t initiated_id; /* its ...Initiated event */
    hf_owned event;       /* that event as bytes */
} hf_external;

typedef struct hf_task_key {
    hf_owned queue;
    int64_t order;
} hf_task_key;

/* A growing array; items of the struct that holds it. */
#define HF_VEC(type)     \
    struct {             \
        type *items;     \
        size_t count;    \
        size_t capacity; \
    }

/* Where an event begins in a run's log; 0 = none. */
typedef struct hf_mark {
    int64_t id;
    size_t at;
} hf_mark;

struct hf_run {
    /* The cache's. */
    hf_map_node by_number;
    hf_node all_link;                 /* of core->runs_all: every run in memory, in order of arrival */
    hf_node lru_link;                 /* of core->lru or core->ended, when nothing holds it in memory */
    bool is_ended;                    /* ... of core->ended */
    hf_node dirty_link;               /* of core->dirty, when it has changes that are not in its rows */
    hf_node batch_link;               /* of core->touched, when the open batch has changes of it */
    hf_heap_node due;                 /* earliest deadline of any kind, or earlier */
    hf_name *name;                    /* when it is the current run of its workflow id */
    hf_list waiting;                  /* calls that wait for it to be loaded */
    hf_list held;                     /* messages that wait for room in its buffer; they hold it in memory */
    HF_VEC(struct hf_token) unwanted; /* loading: tasks that are to be taken back then */
    hf_list wanted_as;                /* loading: names that it may have */
    bool loading;                     /* the rest of this struct is not there yet */
    hf_queue *wanted_by;   /* loading: the queue whose poller set it off; it looks on when the run brings nothing */
    bool due_load;         /* loading: for its deadline */
    bool detached;         /* not the core's: made by rebuild to look at */
    bool bad;              /* its records do not check: every call answers so, nothing is written (kept.c) */
    bool kept;             /* the meta table has changes of it (kept.c) */
    uint64_t commit_dirty; /* the first commit that is not in its rows */
    uint64_t step;         /* of the core, that changed it last */
    uint64_t commit_ahead; /* its workflow task went out before this commit, and is not answered */
    uint64_t commit_last;  /* the last commit that touched it: stays in memory until that is durable */
    size_t batch_start;    /* of the log: where the open batch begins */
    int64_t due_written;   /* key of its due row, 0 = none */
    HF_VEC(hf_task_key) rows_written;
    bool is_written;  /* it has rows */
    bool spill_now;   /* closed: its rows are written with the open batch */
    size_t suspects;  /* its tasks in core->suspects: they keep it in memory */
    unsigned notices; /* HF_BIT of hf_notice_kind: what the log is told when the open batch is durable (notice.c) */

    /* Identity. */
    int64_t number;
    hf_owned namespace;
    hf_owned workflow_id;
    hf_owned run_id;
    hf_owned start_request_id;
    hf_owned first_run_id;
    hf_owned workflow_type;
    hf_owned task_queue;

    /* State. */
    int32_t status; /* WorkflowExecutionStatus */
    bool cancel_requested;
    int64_t execution_timeout, run_timeout, task_timeout; /* ns */
    int64_t start_time, close_time, run_deadline;         /* ns, 0 = none */
    int64_t last_time;                                    /* ns: of the last event */
    int64_t event_count;
    int64_t history_len; /* bytes of the History message */
    uint64_t chain;
    int64_t signal_count;
    int64_t close_event_id;
    hf_wft wft;
    hf_owned sticky_queue;
    int64_t sticky_timeout;
    HF_VEC(hf_activity *) activities; /* by scheduled_id */
    HF_VEC(hf_timer *) timers;        /* by started_id */
    HF_VEC(hf_external) externals;    /* by initiated_id */
    HF_VEC(hf_owned) buffered;        /* in order of arrival */
    size_t buffered_len;
    HF_VEC(hf_owned) request_ids;
    hf_owned unknown; /* fields of the state row that this version does not know */

    hf_buf log; /* R2; of a bad run: what of the journal is to be kept, until that is in the open batch */
    hf_mark marks
        [2]; /* the last WorkflowTaskStarted events of the log, newest first: workers ask for what follows the last but one */
    int64_t spilled;        /* events up to this id are in history rows */
    uint64_t spilled_chain; /* the chain after those */
    int64_t spilled_len;    /* bytes of those */
};

/* What the number of a run may be, or of a task; the last ones are none, so that there is always a next. */
static inline bool hf_run_is_number(int64_t number)
{
    return number > 0 && number < INT64_MAX / 2;
}

static inline bool hf_run_is_open(const hf_run *run)
{
    return run->status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING;
}

/* run.c. Memory comes from the core; what cannot be had sets its sticky status and leaves things empty. */
hf_run *hf_run_new(hf_core *core, int64_t number);
void hf_run_free(hf_core *core, hf_run *run);
/* A run that closes: its tasks, activities, timers and buffers go. Messages that are on their way stay until they have
 * arrived, and request ids for ever: a signal that is repeated has come, whatever the run did since. */
void hf_run_drop_pending(hf_core *core, hf_run *run);
void hf_activity_free(hf_core *core, hf_activity *activity);
void hf_timer_free(hf_core *core, hf_timer *timer);
void hf_owned_set(hf_core *core, hf_owned *owned, hf_str bytes);
void hf_owned_free(hf_core *core, hf_owned *owned);
/* The array grows by one; false: no memory. */
bool hf_vec_grow(hf_core *core, void **items, size_t *capacity, size_t count, size_t item_len);
#define HF_VEC_RESERVE(core, vec) \
    hf_vec_grow((core), (void **)&(vec)->items, &(vec)->capacity, (vec)->count, sizeof *(vec)->items)

hf_activity *hf_run_activity(const hf_run *run, int64_t scheduled_id);
hf_activity *hf_run_activity_by_id(const hf_run *run, hf_str activity_id);
hf_timer *hf_run_timer(const hf_run *run, int64_t started_id);
hf_timer *hf_run_timer_by_id(const hf_run *run, hf_str timer_id);

/* R1, R4, R5 and order. */
void hf_run_check(const hf_run *run);

/* sound.c: whether a run that was read can be worked with. Fails: HF_ERR_INVALID. */
hf_status hf_run_sound(hf_op *op, const hf_run *run);
/* Whether these are the events behind `spilled`: their number, bytes and chain. Fails: HF_ERR_INVALID. */
hf_status hf_tail_sound(hf_op *op, const hf_run *run, hf_str tail);

/* state.c: the row. `rest` false leaves out what no history holds, for the comparison of R3. `tail`: events that the row is to
 * hold itself. */
void hf_run_encode(hf_core *core, const hf_run *run, bool rest, hf_str tail, hf_buf *out);
/* Fills a run that is loading. Fails: HF_ERR_INVALID. */
hf_status hf_run_decode(hf_op *op, hf_core *core, hf_run *run, hf_str body);

/* apply.c */
/* Fails: HF_ERR_INVALID: it cannot follow what is there. */
hf_status hf_apply_event(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes);
/* An event that may wait for the end of a workflow task, with the attributes of its kind. */
bool hf_event_may_wait(const hf_pb_history_event *event);
/* One field of a log. Fails: HF_ERR_INVALID: not a change, or one that cannot follow. */
hf_status hf_apply_change(hf_op *op, hf_core *core, hf_run *run, const hf_pb_raw *field);

/* emit.c: writes to the log and applies. */
void hf_event_emit(hf_core *core, hf_run *run, hf_pb_history_event *event);
/* The same, unless a workflow task is started: then it is buffered. Either way a workflow task is scheduled by the caller. */
void hf_event_emit_or_buffer(hf_core *core, hf_run *run, hf_pb_history_event *event);
void hf_record(hf_core *core, hf_run *run, uint32_t field, const hf_pb_type *type, const void *msg);
void hf_record_str(hf_core *core, hf_run *run, uint32_t field, hf_str bytes);
void hf_record_int(hf_core *core, hf_run *run, uint32_t field, int64_t value);
/* Buffered events become events: completions of activities behind all others. */
void hf_flush_buffered(hf_core *core, hf_run *run);
/* The log from a place on that is not behind event `from`; its first event is `*ret_first`. */
hf_str hf_log_from(const hf_run *run, int64_t from, int64_t *ret_first);
/* Events `from` to `to` that are in the log, as History bytes. */
void hf_log_events(const hf_run *run, int64_t from, int64_t to, hf_buf *out);

/* Field numbers of a log: holdfast.engine.v1.Change. */
enum {
    HF_CHANGE_EVENT = 1,
    HF_CHANGE_CREATED = 2,
    HF_CHANGE_TASK_SCHEDULED = 3,
    HF_CHANGE_TASK_STARTED = 4,
    HF_CHANGE_TASK_RESET = 5,
    HF_CHANGE_STICKY = 6,
    HF_CHANGE_ACTIVITY_STARTED = 7,
    HF_CHANGE_ACTIVITY_RETRY = 8,
    HF_CHANGE_ACTIVITY_HEARTBEAT = 9,
    HF_CHANGE_BUFFERED = 10,
    HF_CHANGE_UNBUFFERED = 11,
    HF_CHANGE_UNBUFFERED_ALL = 12,
    HF_CHANGE_REQUEST_ID = 13,
    HF_CHANGE_TASK_MOVED = 14,
    HF_CHANGE_EXTERNAL_GONE = 15
};

#endif
