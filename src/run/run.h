/* hf_run: the state of one run, in memory. This layer knows what a run is and how it changes, and nothing of queues, clocks, stores
 * or threads.
 *
 * A run changes in one way only: a change is written to its log and applied. A change is a history event, or one of the few
 * things that no history holds (an activity's attempt, a heartbeat, a buffered event: the "rest", proto/holdfast/engine.proto).
 *
 *     decide (the engine)  ->  a change  ->  log (bytes)  and  apply (apply.c)  ->  state, and effects for others (effects.h)
 *
 * So one piece of code turns changes into state, and four use it: a live step, recovery (state row + journal), rebuild (history
 * alone), and the check that these agree. Only a task's place in line (hf_task.order) is also set from outside, when the task enters
 * its queue.
 *
 * run-R1  event_count is the id of the last event; ids are dense from 1.
 * run-R2  log holds all changes since the run's rows were written, in order, behind the events that its own row holds; its events
 *     are spilled + 1 .. event_count.
 * run-R3  state == apply(row, log); and, except for the rest, state == apply(nothing, history).
 * run-R4  A closed run has no pending task, activity, timer or buffered event, and its last event is the closing one.
 * run-R5  Events of a started workflow task are buffered: while task.state is STARTED only its own events are emitted.
 * run-R6  A paused activity waits in no queue.
 * run-R7 is in stream.h. */
#ifndef HF_RUN_RUN_H
#define HF_RUN_RUN_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "run/effects.h"
#include "run/memory.h"

#include "proto/pb.h"

typedef struct hf_run hf_run;
typedef struct hf_queue hf_queue;
typedef struct hf_run_stream hf_run_stream;

/* A workflow task or an activity task. */
struct hf_task {
    hf_run *run;          /* the run that it belongs to */
    int64_t scheduled_id; /* of the activity; 0 = the workflow task */
    bool is_query;        /* it is neither, but a query of the engine's, which no run knows of ... */
    bool is_speculative;  /* ... or a workflow task of the same kind */
    int64_t order;        /* place among all tasks of the store: first come, first served, also over restarts */
    uint32_t crashes;     /* processes that ended while a worker in them had it */

    /* While it waits to be taken. These are matching's: nothing in this layer changes them. */
    hf_queue *queue;    /* where it waits, NULL = it does not */
    hf_node link;       /* of the queue's list, or of the suspects' */
    uint8_t priority;   /* of hf_task_priority, as it was when it began to wait here */
    bool is_last;       /* it is one of the suspects */
    int64_t last_since; /* mono ns: since when it is one of them */
};

typedef enum hf_wft_state { HF_WFT_NONE, HF_WFT_SCHEDULED, HF_WFT_STARTED } hf_wft_state;
#define HF_WFT_STATE_COUNT 3

typedef struct hf_wft {
    hf_wft_state state;
    bool is_transient;      /* a later attempt: its events are written when it completes */
    bool sticky;            /* goes to the sticky queue */
    bool again;             /* started, but its holder is gone: the same task goes to the next poller */
    bool has_many_updates;  /* if speculative and started: the run was near its limit of updates then */
    int32_t attempt;        /* of the pending task, or of the next one */
    int64_t scheduled_id;   /* if transient: the id it will get */
    int64_t started_id;     /* the same */
    int64_t scheduled_time; /* ns */
    int64_t started_time;   /* ns; also the stamp of its token */
    int64_t timeout;        /* ns, start to close */
    int64_t
        last_started_id;  /* started event of the last completed task: history before it is known to a sticky worker */
    int64_t completed_id; /* the last WorkflowTaskCompleted event */
    uint64_t incarnation; /* of the in-process holder, 0 = elsewhere */
    int64_t pause_until;  /* ns: it does not enter its queue before this, 0 = no pause (suspect.c) */
    int64_t first_time;   /* ns: when the first of the tasks was scheduled that a worker has kept alive */
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
    HF_ACTIVITY_CANCELED,
    HF_ACTIVITY_PAUSED /* waits for somebody to unpause it; no attempt runs */
} hf_activity_state;
#define HF_ACTIVITY_STATE_COUNT 9

struct hf_activity {
    hf_activity_state state;
    bool again;                  /* started, but its holder is gone (a vanished poll) */
    int32_t attempt;             /* from 1 */
    int64_t scheduled_id;        /* its ActivityTaskScheduled event */
    int64_t first_time;          /* ns: when it was first scheduled */
    int64_t scheduled_time;      /* ns: of this attempt; in BACKOFF: of the next one */
    int64_t started_time;        /* ns; also the stamp of its token */
    int64_t heartbeat_time;      /* ns of the last heartbeat of this attempt */
    int64_t heard_time;          /* ns of the last heartbeat that was not written: it had nothing new; 0 = none */
    int64_t cancel_requested_id; /* event, 0 = not requested */
    uint64_t incarnation;        /* of the in-process holder, 0 = elsewhere */
    bool is_renewed;             /* first_time is not that of its event: a reset has scheduled it anew */
    bool is_reset;               /* the attempt that runs is told that the activity was reset */
    bool forgets_heartbeat;      /* the details of heartbeats go with the attempt that runs */
    int32_t attempt_given;       /* the attempt that runs, as its worker knows it; 0 = `attempt` */
    int64_t attempt_end;         /* ns: when the last attempt ended; 0 = none has */
    hf_owned pause;              /* ActivityPaused; empty = not paused. Also while the last attempt still runs */
    hf_owned options;            /* ActivityOptions that were changed since; empty = as scheduled */
    hf_owned queue_name;         /* bytes of task_queue, if the options have one */
    hf_owned scheduled;          /* the ActivityTaskScheduled event as bytes */
    hf_owned names;              /* the bytes of the three that follow */
    hf_str activity_id;
    hf_str activity_type;
    hf_str task_queue;
    int64_t schedule_to_start, schedule_to_close, start_to_close, heartbeat; /* ns, 0 = none */
    int32_t priority_key;                                                    /* 0 = that of its run */
    hf_owned heartbeat_details;                                              /* Payloads */
    hf_owned last_failure;                                                   /* Failure */
    hf_owned identity;                                                       /* of the last worker */
    hf_task task;
    hf_activity *next_ended; /* of the effects that took it */
};

typedef enum hf_timer_state { HF_TIMER_NEW, HF_TIMER_STARTED, HF_TIMER_FIRED, HF_TIMER_CANCELED } hf_timer_state;
#define HF_TIMER_STATE_COUNT 4

typedef struct hf_timer {
    hf_timer_state state;
    int64_t started_id; /* its TimerStarted event */
    int64_t fire_time;  /* ns */
    hf_owned id;
    hf_map_node by_id; /* of hf_run.timer_index, if there is one */
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

typedef enum hf_child_state {
    HF_CHILD_NEW,
    HF_CHILD_INITIATED, /* its start is on its way */
    HF_CHILD_STARTED,
    HF_CHILD_ENDED, /* its last event is buffered */
    HF_CHILD_FAILED,
    HF_CHILD_LEFT /* its parent has closed, and the close policy is on its way */
} hf_child_state;
#define HF_CHILD_STATE_COUNT 6

/* A run that this one has started. */
typedef struct hf_child {
    hf_child_state state;
    int32_t policy;       /* ParentClosePolicy */
    int64_t initiated_id; /* its ...Initiated event */
    int64_t started_id;   /* its ...Started event; 0 = that is not in the history */
    hf_owned event;       /* the ...Initiated event as bytes, while there is no Started event */
    hf_owned workflow_id;
    hf_owned workflow_type;
    hf_owned run_id; /* of its first run, once it has started */
} hf_child;
typedef enum hf_update_state {
    HF_UPDATE_NEW,
    HF_UPDATE_ADMITTED,
    HF_UPDATE_ACCEPTED,
    HF_UPDATE_COMPLETED
} hf_update_state;
#define HF_UPDATE_STATE_COUNT 4

/* An update that is in the history. Its request and its outcome are in the events. */
typedef struct hf_update {
    hf_owned id;
    int64_t admitted_id;  /* its ...UpdateAdmitted event; 0 = it was accepted at once */
    int64_t accepted_id;  /* its ...UpdateAccepted event; 0 = it is not accepted */
    int64_t completed_id; /* its ...UpdateCompleted event; 0 = it is not completed */
} hf_update;

/* A piece of the state with a row of its own (parts.c). */
typedef struct hf_part {
    int64_t key;  /* hf_part_key, and what is added to it */
    uint32_t crc; /* of its bytes */
} hf_part;
typedef HF_VEC(hf_part) hf_part_list; /* by key */

/* A request id of a later start that was answered with this run. */
typedef struct hf_attached {
    hf_owned id;
    int64_t event_id; /* the event that tells of it */
} hf_attached;

typedef struct hf_task_key {
    hf_owned queue;
    int64_t order;
} hf_task_key;

/* Where an event begins in a run's log; 0 = none. */
typedef struct hf_mark {
    int64_t id;
    size_t at;
} hf_mark;

/* The kind of a run. Ids of different kinds never meet: see hf_name_text. */
typedef enum hf_run_kind {
    HF_KIND_WORKFLOW,
    HF_KIND_OPERATION /* does one thing to many runs (machines/operation.c) */
} hf_run_kind;
#define HF_RUN_KIND_COUNT 2
#define HF_KIND_MARK '\x1f' /* the id of a run that is not a workflow begins with this byte and its kind */

typedef enum hf_operation_state {
    HF_OPERATION_NEW,
    HF_OPERATION_WAITING, /* for its deadline */
    HF_OPERATION_ACTING,  /* on the runs that it has taken */
    HF_OPERATION_COMPLETED,
    HF_OPERATION_STOPPED,
    HF_OPERATION_FAILED
} hf_operation_state;
#define HF_OPERATION_STATE_COUNT 6

/* The version of the state and of its row. Rows of an earlier version are brought up to this one when they are read. */
#define HF_RUN_VERSION_START 1 /* from this version on the state has the facts of its start: hf_run_learn */
#define HF_RUN_VERSION 2       /* from this version on a row leaves out what its other fields tell: hf_run_unabridge */

/* A request that has made a run by a reset: whoever sends it again gets the same run. */
typedef struct hf_reset_made {
    hf_owned request_id;
    hf_owned run_id;
} hf_reset_made;
#define HF_RESETS_KEPT_MAX 16 /* of those, with one run: the last ones; each may be some 1,000 bytes of a state row */

/* Whether a run is being deleted, and with which others. */
typedef enum hf_deleting {
    HF_DELETING_NOT,
    HF_DELETING_ONE, /* this run */
    HF_DELETING_ALL  /* this run and all older runs of its workflow id */
} hf_deleting;
#define HF_DELETING_COUNT 3

struct hf_run {
    /* Identity. */
    int64_t number;
    hf_run_kind kind;
    hf_owned namespace;
    hf_owned workflow_id;
    hf_owned run_id;
    hf_owned start_request_id;
    hf_owned first_run_id;
    hf_owned workflow_type;
    hf_owned task_queue;

    /* Of the start, and what became of it. */
    hf_owned start;             /* WorkflowExecutionStartedEventAttributes: only rare fields, see hf_run_learn */
    hf_owned memo;              /* Memo */
    hf_owned search_attributes; /* SearchAttributes */
    hf_owned user_metadata;     /* UserMetadata */
    int64_t first_task_at;      /* ns: the first workflow task waits until then; 0 = it does not wait any more */
    int64_t expiration;         /* ns: no run of the chain goes on after this; 0 = no bound */

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
    hf_deleting deleting; /* it is closed, hidden from all calls, and deleted as soon as nothing uses it */
    bool is_nameless;     /* its workflow id does not lead to it any more; it is closed */
    hf_wft wft;
    hf_owned sticky_queue;
    int64_t sticky_timeout;
    HF_VEC(hf_activity *) activities; /* by scheduled_id */
    HF_VEC(hf_timer *) timers;        /* by started_id */
    hf_map *timer_index;              /* the same by id; NULL = they are few */
    HF_VEC(hf_external) externals;    /* by initiated_id */
    HF_VEC(hf_child) children;        /* by initiated_id */
    size_t moving;                    /* of those, about which a message is on its way */
    bool is_untold;                   /* closed, and its listener was not told yet */
    HF_VEC(hf_update) updates;        /* by their first event; of a closed run, too */
    HF_VEC(hf_attached) attached;     /* by event_id; the same */
    HF_VEC(hf_reset_made) resets;     /* that led to this run or to others of its id, oldest first */
    hf_owned reset_run_id;            /* the run that the last reset of this one made; empty = there was none */
    HF_VEC(hf_owned) buffered;        /* in order of arrival */
    size_t buffered_len;
    HF_VEC(uint64_t) request_ids; /* of signals that were accepted, as hf_request_hash */
    hf_owned operation;           /* OperationStart; empty = it is a workflow */
    hf_owned progress;            /* OperationProgress */
    hf_operation_state operation_state;
    int64_t operation_due; /* ns: when it goes on, or is deleted; 0 = it is a workflow */
    hf_run_stream *stream; /* of its chain (stream.h); NULL = nobody has published anything */
    hf_owned
        next_run_id; /* closed, and followed by this run of its chain; empty = it is the last, or a row of an earlier version */
    int64_t keep;     /* ns: it is deleted this long after its end; 0 = when its namespace says */
    hf_owned unknown; /* fields of the state row that this version does not know */

    hf_buf log; /* run-R2; of a bad run: its changes from the journal, until they are in the open batch */
    hf_mark marks
        [2]; /* the last WorkflowTaskStarted events of the log, newest first: workers ask for what follows the last but one */
    int64_t spilled;        /* events up to this id are in history rows */
    uint64_t spilled_chain; /* the chain after those */
    int64_t spilled_len;    /* bytes of those */

    /* Its rows. */
    bool is_unlearned;                /* its row is of an earlier version, and does not hold its first event */
    bool is_written;                  /* it has some */
    uint64_t commit_last;             /* the last commit that changed it */
    uint64_t transitions;             /* commits that changed it */
    int64_t transition_time;          /* ns: of the last one */
    int64_t due_written;              /* key of its due row, 0 = none */
    HF_VEC(hf_task_key) rows_written; /* its task rows */
    hf_part_list parts;               /* pieces of its state that have rows of their own */
};

/* Whether this can be the number of a run or of a task. The greatest integers are excluded, so that there is always a next number. */
static inline bool hf_run_is_number(int64_t number)
{
    return number > 0 && number < INT64_MAX / 2;
}

static inline bool hf_run_is_open(const hf_run *run)
{
    return run->status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING;
}

/* ---- run.c ------------------------------------------------------------------------------------------------------------ */

/* The caller's memory, which must be zeroed. */
void hf_run_init(hf_run_memory *memory, hf_run *run, int64_t number);
/* None of its tasks may wait in a queue. */
void hf_run_deinit(hf_run_memory *memory, hf_run *run);
/* The same with allocated memory; NULL: there was none. */
hf_run *hf_run_new(hf_run_memory *memory, int64_t number);
void hf_run_free(hf_run_memory *memory, hf_run *run);
/* A signal with this request id was accepted. */
void hf_run_remember(hf_run_memory *memory, hf_run *run, hf_str request_id);
/* The run closes: drops its tasks, activities, timers and buffered events. Pending messages stay until they are answered. Request ids
 * stay for ever: a repeated signal counts as accepted, even after the run has closed. */
void hf_run_drop_pending(hf_run_memory *memory, hf_run *run, hf_effects *effects);
void hf_activity_free(hf_run_memory *memory, hf_activity *activity);
/* timers.c: it has ended; all of them. */
void hf_timer_drop(hf_run_memory *memory, hf_run *run, hf_timer *timer);
void hf_timers_free(hf_run_memory *memory, hf_run *run);

/* It has not ended, and its end is not buffered. */
static inline bool hf_activity_is_pending(const hf_activity *activity)
{
    return activity->state <= HF_ACTIVITY_BACKOFF || activity->state == HF_ACTIVITY_PAUSED;
}

static inline bool hf_activity_is_paused(const hf_activity *activity)
{
    return activity->pause.len > 0;
}

/* The number of the attempt that runs, as its worker knows it. */
static inline int32_t hf_activity_given(const hf_activity *activity)
{
    return activity->attempt_given != 0 ? activity->attempt_given : activity->attempt;
}

hf_activity *hf_run_activity(const hf_run *run, int64_t scheduled_id);
hf_activity *hf_run_activity_by_id(const hf_run *run, hf_str activity_id);
hf_timer *hf_run_timer(const hf_run *run, int64_t started_id);
hf_timer *hf_run_timer_by_id(const hf_run *run, hf_str timer_id);
hf_external *hf_run_external(const hf_run *run, int64_t initiated_id);
hf_child *hf_run_child(const hf_run *run, int64_t initiated_id);
bool hf_child_is_moving(const hf_child *child); /* a message about it is on its way */
bool hf_run_has_messages(
    const hf_run *run); /* some are on their way: the run is held in memory, or has a row that says so */
hf_update *hf_run_update(const hf_run *run, hf_str id);
/* The event with which an update came into the history. */
static inline int64_t hf_update_first(const hf_update *update)
{
    return update->admitted_id != 0 ? update->admitted_id : update->accepted_id;
}
/* The run that the reset with this request id made; empty = it is not known. */
hf_str hf_run_reset_by(const hf_run *run, hf_str request_id);

/* machines/operation.c: whether a record of progress makes sense: run-O1, run-O2. */
bool hf_operation_is_good(const hf_pb_operation_progress *progress);

/* Asserts run-R1, run-R2, run-R4 to run-R6, run-O1 and the order of lists. Takes time for each activity and timer. */
void hf_run_check(const hf_run *run);

/* ---- sound.c ---------------------------------------------------------------------------------------------------------- */

/* Checks that a run which was read is consistent. Fails: HF_ERR_INVALID. */
hf_status hf_run_sound(hf_op *op, const hf_run *run);
/* Checks that these are the events after `spilled`: their number, bytes and chain. Fails: HF_ERR_INVALID. */
hf_status hf_tail_sound(hf_op *op, const hf_run *run, hf_str tail);

/* A name that may be a namespace: neither empty nor too long, and without the byte 0x1f, which separates it from an id. */
bool hf_namespace_is_good(hf_str name);

/* ---- parts.c: large pieces of the state ---------------------------------------------------------------------------------- */

/* A piece of the state that is large and rarely changes has a row of its own: it is not written again whenever the state is. */
#define HF_PART_LEN_MIN 1024
#define HF_PART_REQUEST_COUNT 256 /* request ids of one part */
typedef enum hf_part_key {
    HF_PART_MEMO = 1,
    HF_PART_SEARCH_ATTRIBUTES,
    HF_PART_USER_METADATA,
    HF_PART_START,
    HF_PART_OPERATION,
    HF_PART_REQUESTS = 1 << 10,  /* + number of the part */
    HF_PART_ACTIVITIES = 1 << 18 /* + scheduled_id: its event */
} hf_part_key;
#define HF_PART_KEY_MAX (1 << 19)

/* The bytes of a part, as they were read. */
typedef struct hf_part_row {
    int64_t key;
    hf_str bytes;
} hf_part_row;

typedef struct hf_part_rows {
    hf_part_row *items; /* by key */
    size_t count;
} hf_part_rows;

typedef void hf_part_visit(void *arg, int64_t key, hf_str bytes);
/* Calls `visit` for each piece of at least `len_min` bytes that is to have a row of its own, by key. */
void hf_run_each_part(const hf_run *run, size_t len_min, hf_part_visit *visit, void *arg);
bool hf_run_has_part(const hf_run *run, int64_t key); /* in run->parts */
/* Whether a part with this key never has other bytes. */
bool hf_part_is_final(int64_t key);
/* Puts the bytes of its parts into a state that was read. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_parts_fill(hf_op *op, const hf_part_rows *rows, hf_arena *arena, hf_pb_run_state *state);
uint64_t hf_request_hash(hf_str request_id);

/* ---- state.c: a run as the body of its row ------------------------------------------------------------------------------ */

typedef enum hf_encode {
    HF_ENCODE_TOLD, /* what a history tells, for the comparison of run-R3 */
    HF_ENCODE_ALL,
    HF_ENCODE_ROW /* all but what has rows of its own */
} hf_encode;

/* `tail`: events that the row is to hold itself. If there is no memory, the status of `memory` or of `out` says so. */
void hf_run_encode(hf_run_memory *memory, const hf_run *run, hf_encode mode, hf_str tail, hf_buf *out);
/* Fills a run that is empty. `rows`: its parts; NULL = they were not read, and if it has some, `*ret_wants_parts` is set and nothing
 * is filled. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_run_decode(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str body, const hf_part_rows *rows,
                        bool *ret_wants_parts);
/* Fills in what the row of a run left out: a first run id that is the run's own, and times that are those of the last event. */
void hf_run_unabridge(hf_pb_run_state *msg);

/* ---- start.c: what the state keeps of its first event ------------------------------------------------------------------- */

typedef hf_pb_workflow_execution_started_event_attributes hf_start_facts;

/* The facts of a start that have no field of their own in the run and were not written by a user: parent, root, retry policy, cron
 * schedule, attempt, ... */
void hf_run_learn(hf_run_memory *memory, hf_run *run, const hf_pb_history_event *event);
/* The same of a run whose row is of an earlier version; `events` are History bytes that begin with its first event. Fails:
 * HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_run_learn_late(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str events);
/* Whether another run wants to hear of the end of its chain: a parent. */
bool hf_run_has_listener(const hf_run *run, hf_arena *arena, hf_start_facts *ret_facts);
/* The facts of its start that are rare; all zero for an ordinary run. Texts stay in the run. False: no memory. */
bool hf_run_start_facts(const hf_run *run, hf_arena *arena, hf_start_facts *ret_facts);
/* These facts take the place of those that were rare when it began. */
void hf_run_set_start(hf_run_memory *memory, hf_run *run, const hf_start_facts *facts);

/* ---- priority.c ------------------------------------------------------------------------------------------------------- */

/* Keys of priorities: the smaller, the more urgent. Greater ones count as the last. */
enum { HF_PRIORITY_LEVELS = 5, HF_PRIORITY_DEFAULT = 3 };
/* The priority that the run was started with, or got since; NULL = none, or there was no memory in the arena. */
hf_pb_priority *hf_run_priority(const hf_run *run, hf_arena *arena);
/* What a part of a run has that may have a priority of its own: each field that it does not set is that of its run. */
hf_pb_priority *hf_priority_merge(hf_arena *arena, hf_pb_priority *of_run, hf_pb_priority *own);
/* The key of a task, 1 to HF_PRIORITY_LEVELS. */
uint8_t hf_task_priority(const hf_task *task);

/* ---- options.c -------------------------------------------------------------------------------------------------------- */

/* Its options as they are now. Points into the run and the arena. False: no memory, or they cannot be read. */
bool hf_run_options(const hf_run *run, hf_arena *arena, hf_pb_workflow_execution_options *ret_options);
/* Whether a start with this request id was answered with the run, which another start had made. */
bool hf_run_has_attached(const hf_run *run, hf_str id, hf_arena *arena);
/* Request ids that lead to the run, for a description. */
void hf_run_describe_requests(const hf_run *run, hf_arena *arena, hf_pb_workflow_execution_extended_info *info);

/* ---- apply.c ------------------------------------------------------------------------------------------------------------ */

/* The arguments of apply besides the run and the change. */
typedef struct hf_apply {
    hf_op *op;             /* says why a change was refused */
    hf_run_memory *memory; /* of the run */
    hf_effects *effects;   /* the change adds its effects here */
    bool is_history;       /* only a history is known: it does not show attempts, so every outcome may follow */
    const void *msg;       /* the change as a struct, if the caller has it: else it is decoded */
    const hf_pb_type *msg_type;
} hf_apply;

/* Fails: HF_ERR_INVALID: the event cannot follow the run's state. HF_ERR_NOMEM. The run is then half changed and must not be used. */
hf_status hf_apply_event(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes);
/* One field of a log. Fails: HF_ERR_INVALID: not a change, or one that cannot follow. HF_ERR_UNSUPPORTED: from a newer version. */
hf_status hf_apply_change(hf_apply *a, hf_run *run, const hf_pb_raw *field);
/* All fields of a part of a log; drops their effects. Resets the scratch arena on the way. */
hf_status hf_apply_log(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str log);
/* Whether an event of this type changes more than the count, the chain and the clock of a run, or is only for the workflow's code. */
bool hf_event_has_meaning(int32_t event_type);
/* Whether an event has the attributes of its type. They are a union: others must not be looked at. */
bool hf_event_fits(const hf_pb_history_event *event);
/* Whether this is an event that may be buffered until a workflow task ends, with the attributes of its type. */
bool hf_event_may_wait(const hf_pb_history_event *event);

/* ---- log.c -------------------------------------------------------------------------------------------------------------- */

/* A part of the log that begins with event `*ret_first`, which is `from` or an earlier one. */
hf_str hf_log_from(const hf_run *run, int64_t from, int64_t *ret_first);
/* Events `from` to `to` that are in the log, as History bytes. */
void hf_log_events(const hf_run *run, int64_t from, int64_t to, hf_buf *out);

/* ---- deadline.c --------------------------------------------------------------------------------------------------------- */

int64_t hf_run_next_due(const hf_run *run);                /* the earliest of all, ns; INT64_MAX = none */
int64_t hf_execution_deadline(const hf_run *run);          /* of the whole run; 0 = none */
int64_t hf_wft_timeout_at(const hf_run *run);              /* of the workflow task; INT64_MAX = none */
int64_t hf_wft_deadline(const hf_run *run);                /* that, or the end of its pause; INT64_MAX = none */
int64_t hf_activity_deadline(const hf_activity *activity); /* INT64_MAX = none */
/* The timeout that has passed (TimeoutType), 0 = none. Schedule-to-close goes first: after it there is no other attempt. */
int32_t hf_activity_timeout_passed(const hf_activity *activity, int64_t now);
int64_t hf_bound_end(int64_t time,
                     int64_t bound);  /* when a bound from `time` on has passed; INT64_MAX: never, or none (0) */
bool hf_wft_waits(const hf_wft *wft); /* for a worker to take it */
/* Whether this is the workflow task that is started. */
bool hf_wft_is(const hf_run *run, int64_t scheduled_id, int64_t started_id, int32_t attempt, int64_t stamp);

/* ---- describe.c: descriptions of a run ------------------------------------------------------------------------------------ */

/* Texts are copied to the arena; its status says whether there was memory. */
void hf_run_describe(const hf_run *run, hf_arena *arena, hf_pb_describe_workflow_execution_response *response);
/* One line of a list. */
void hf_run_brief(const hf_run *run, hf_arena *arena, hf_pb_admin_run *ret_brief);
/* The same from the body of a run's row; texts point into the body. Fails: HF_ERR_INVALID, HF_ERR_NOT_FOUND: it is being deleted,
 * HF_ERR_NOMEM. */
hf_status hf_run_brief_of_row(hf_op *op, int64_t number, hf_str body, hf_arena *arena, hf_pb_admin_run *ret_brief);
/* The same for a run whose records cannot be read: its number, and why. */
void hf_run_brief_damaged(int64_t number, const char *why, hf_arena *arena, hf_pb_admin_run *ret_brief);

/* ---- reset.c -------------------------------------------------------------------------------------------------------------- */

/* The identity in the event that terminates a run when a reset puts another one in its place. Its children and its listener are not told
 * of that end. */
#define HF_RESETTER HF_STR("history-resetter")

/* ---- rebuild.c ---------------------------------------------------------------------------------------------------------- */

/* A run from its History bytes alone. Freed by hf_run_free. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_rebuild(hf_op *op, hf_run_memory *memory, hf_str history, hf_run **ret_run);
/* run-R3: compares `run` with its whole history. Fails: HF_ERR_INVALID: they differ, or that is not a history. */
hf_status hf_rebuild_compare(hf_op *op, hf_run_memory *memory, const hf_run *run, hf_str history);

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
    HF_CHANGE_EXTERNAL_GONE = 15,
    HF_CHANGE_DELETING = 16,
    HF_CHANGE_UNNAMED = 17,
    HF_CHANGE_CHILD_GONE = 18,
    HF_CHANGE_TOLD = 19,
    HF_CHANGE_RUN_RESET = 20,
    HF_CHANGE_ACTIVITY_PAUSED = 24,
    HF_CHANGE_ACTIVITY_CONTROLLED = 25,
    HF_CHANGE_OPERATION_STARTED = 40,
    HF_CHANGE_OPERATION_MOVED = 41,
    HF_CHANGE_STREAM_APPENDED = 42,
    HF_CHANGE_STREAM_BEGAN = 43,
    HF_CHANGE_KEPT = 44
};

#endif
