/* hf_wf: one run of a workflow in memory. worker-K1 in worker_private.h says which threads may touch it. */
#ifndef HF_WORKER_WF_H
#define HF_WORKER_WF_H

#include "worker/worker_private.h"

/* The name of this library in histories, and the rules by which it ran a workflow (lang_used_flags of a
 * WorkflowTaskCompleted).
 *
 * A rule that changes the commands of workflow code gets a number here, for ever. It holds for a step if the
 * WorkflowTaskCompleted of that step, or of an earlier one, names it. It also holds for the current step, which has
 * no such event yet: its answer names the rule. So each step is replayed by the rules by which it first ran, also if
 * only a part of the history is there. A number that this version does not know fails the task: the history was written
 * by a newer one. */
#define HF_WF_SDK_NAME "holdfast-c"
enum {
    HF_WF_RULE_SPANS = 1,    /* a wait with a negative span ends at once; invalid spans and queues are refused */
    HF_WF_RULE_ATTEMPTS = 2, /* invalid numbers of attempts and coefficients are refused */
    HF_WF_RULE_JOINS = 3,    /* a canceled call waits until its activity has ended; before, it returned at once */
    HF_WF_RULE_TIMERS = 4,   /* any number of timers may be pending; before, the 2,001st was refused */
    HF_WF_RULE_SEED = 5,     /* a reset to the first workflow task gives other random numbers, too */
    HF_WF_RULE_LAST = HF_WF_RULE_SEED
};
#define HF_WF_RULES_ALL ((UINT32_C(2) << HF_WF_RULE_LAST) - 2) /* a bit for each */

enum { HF_WF_PENDING_BUCKETS = 32 }; /* hash buckets for activities and timers: few workflows have many */

typedef struct hf_command_record hf_command_record;

/* A command that the workflow made, until the history shows its event. In the recorder's arena. */
struct hf_command_record {
    hf_node node;
    int32_t type;                    /* hf_pb_command_type */
    hf_str id;                       /* of the activity or timer */
    hf_str name;                     /* type of the activity */
    hf_span span;                    /* of the timer */
    int64_t scheduled_event_id;      /* of the activity to cancel */
    hf_str canceled_id;              /* the id of that activity */
    struct hf_wf_activity *activity; /* the activity that waits for its event, or NULL */
    struct hf_wf_timer *timer;
    bool is_withdrawn; /* given up before it was sent: it is never sent */
    hf_pb_command *pb; /* the command to send; NULL after it was sent */
};

typedef struct hf_recorder {
    hf_list records; /* of the last activation, in order */
    hf_arena arena;
    hf_arenas *from; /* source of the arena for a step; between steps the recorder has a small arena of its own */
} hf_recorder;

/* An activity that a fiber waits for. On that fiber's stack. */
typedef struct hf_wf_activity {
    hf_node node; /* in scheduling or a bucket of activities, which it leaves by its end or when it is given up */
    hf_wf *wf;
    hf_wait wait;
    const char *id; /* the caller's; NULL = its number */
    uint64_t seq;
    int64_t scheduled_event_id;     /* 0 = the history has not shown it yet */
    hf_command_record *record;      /* until then */
    bool has_ended;                 /* in the activation at hand: there is nothing left to cancel */
    bool is_joined;                 /* a cancel does not end the wait, once the history has shown it */
    bool is_given_up;               /* its fiber was canceled, and will act on it when it runs */
    const hf_pb_history_event *end; /* the event that ended it; valid in the turn that follows */
} hf_wf_activity;

/* A canceled activity, until the history shows its end: no fiber waits for it, but its id is in use. */
typedef struct hf_wf_leftover {
    hf_node node;
    int64_t scheduled_event_id;
    size_t id_len;
    char id[];
} hf_wf_leftover;

/* A timer of the crew's. */
typedef struct hf_wf_timer {
    hf_node node; /* in a bucket of timers */
    uint64_t seq;
    hf_crew_timer *crew_timer;
    hf_command_record *record; /* until the history has shown it */
    bool has_fired;            /* in the activation at hand: there is nothing left to cancel */
} hf_wf_timer;

/* A signal that has arrived and was not taken yet. */
typedef struct hf_wf_signal {
    hf_node node;
    hf_payload payload; /* kept by the run */
    size_t name_len;
    char name[];
} hf_wf_signal;

struct hf_wf {
    hf_worker *worker;
    size_t len; /* of the allocation: the two texts follow the struct */
    hf_str id;
    hf_str run_id;
    const hf_function_entry *entry;

    /* Under the cache's lock. */
    hf_node bucket;
    hf_node lru;
    size_t bytes;
    unsigned posted;         /* tasks in the mailbox or at work */
    hf_list tasks;           /* the mailbox */
    bool is_told;            /* to end */
    bool is_given_up;        /* it does not yield: the keeper answers its step, and its tasks are dropped */
    const hf_wtask *at_work; /* the step that is being played */
    hf_wait *waiter;         /* the driver, while it waits for a task or for is_told */

    _Atomic(int64_t) turn_ns; /* mono: when the turn of its fibers began; 0 = it is not their turn */

    /* The driver's, and its crew's in turns. */
    hf_crew *crew;
    hf_recorder recorder;
    int64_t event_id_next; /* first event that was not applied */
    uint64_t activity_seq;
    uint64_t timer_seq;
    hf_list scheduling;                        /* activities whose event was not seen yet */
    hf_list activities[HF_WF_PENDING_BUCKETS]; /* by scheduled event id */
    hf_list timers[HF_WF_PENDING_BUCKETS];     /* by number */
    hf_list given_up;                          /* activities whose fiber has not withdrawn them yet: ids in use */
    hf_list leftovers;                         /* canceled activities that have not ended */
    int activities_count;                      /* in all three lists: as many as the service knows, or more */
    int timers_count;
    hf_list signals;         /* not taken, in order */
    hf_list signal_waits;    /* hf_wait.node of waiting fibers, in order */
    hf_payload_bag payloads; /* payloads that its fibers own */
    hf_payload input;
    bool has_names;    /* activities were given ids of their own */
    bool is_reseeded;  /* a reset has seeded its random numbers */
    bool is_sdk_known; /* the history says which library runs it, and by which rules */
    uint32_t rules;    /* that hold, a bit for each: see hf_wf_plays_by */
    bool is_lost;      /* a fiber of it kept its thread: only hf_crew_close may touch the run */
    bool has_begun;
    bool is_cancel_requested;
    char *cancel_reason; /* .reason of hf_cancel; NULL = none. Its fibers point to it */
    size_t cancel_reason_len;
    bool has_closed; /* the closing command was made */
    bool is_nomem;   /* out of memory: the step must be failed */
};

/* Whether the step at hand is played by this rule. */
static inline bool hf_wf_plays_by(const hf_wf *wf, uint32_t rule)
{
    return (wf->rules & (UINT32_C(1) << rule)) != 0;
}

/* run.c: answers that a workflow task failed. Later attempts are not answered: they would fail again at once, so the
 * task times out instead. */
void hf_wf_answer_failed(hf_worker *worker, const hf_stuck_step *step, const hf_op *why);
/* Makes a run with its first task in the mailbox. Takes `task`, also on failure. Fails: HF_ERR_NOMEM. */
hf_status hf_wf_new(hf_worker *worker, hf_wtask *task, hf_wf **ret_wf);
/* Starts its driver, which frees it in the end; on failure it is freed at once. */
hf_status hf_wf_start(hf_wf *wf);
/* Under the cache's lock: the driver, if it waits, is to be woken by the caller afterwards. */
hf_wait *hf_wf_claim_driver(hf_wf *wf);

/* history.c: all events that the task is about, from wf->event_id_next on. In the task's arena.
 * Fails: HF_ERR_INVALID, HF_ERR_NOMEM, statuses of the service. */
typedef struct hf_events {
    const hf_pb_history_event **items;
    size_t count;
} hf_events;
hf_status hf_wf_load(hf_op *op, hf_wf *wf, hf_wtask *task, hf_events *ret_events);

/* The message about a run that does not yield. */
extern const char hf_wf_stuck_text[];

/* activation.c: applies the events; the recorder then has the commands of the last activation.
 * Fails: HF_ERR_CONFLICT: the code does not do what the history says; HF_ERR_TIMEOUT: wf->is_lost; HF_ERR_EVICTED:
 * the run is further than this task, which is late; HF_ERR_UNSUPPORTED: the history names a rule that this version does
 * not know; HF_ERR_NOMEM, HF_ERR_INVALID. */
hf_status hf_wf_apply(hf_op *op, hf_wf *wf, const hf_events *events, int64_t started_event_id);

/* recorder.c */
void hf_recorder_init(hf_recorder *recorder, hf_arenas *from);
void hf_recorder_deinit(hf_recorder *recorder);
/* A record and its command, with attributes of this many bytes behind `ret_attributes`. NULL = out of memory. */
hf_command_record *hf_recorder_add(hf_recorder *recorder, int32_t type, uint32_t attributes_case, size_t attributes_len,
                                   void **ret_attributes);
/* Forgets all records, before the next activation. */
void hf_recorder_reset(hf_recorder *recorder);
/* Keeps only those parts of each record that hf_recorder_check needs. Fails: HF_ERR_NOMEM. */
hf_status hf_recorder_compact(hf_recorder *recorder);
/* The commands that are to be sent, in order, in the arena. */
hf_pb_command_list hf_recorder_commands(const hf_recorder *recorder, hf_arena *arena);
/* Whether events of this type come from a command. */
bool hf_event_is_of_command(int32_t event_type);
/* Compares the next record with the event and takes it off the list. Fails: HF_ERR_CONFLICT, with both in the message. */
hf_status hf_recorder_check(hf_op *op, hf_recorder *recorder, const hf_pb_history_event *event,
                            hf_command_record **ret_record);
/* Nothing may be left once a completed task's events are over. Fails: HF_ERR_CONFLICT. */
hf_status hf_recorder_check_end(hf_op *op, const hf_recorder *recorder, int64_t event_id);

/* check_activity.c: refuses an activity that the service would refuse. Fails: HF_ERR_INVALID, HF_ERR_TOO_BIG,
 * HF_ERR_LIMIT, HF_ERR_EXISTS, HF_ERR_MISUSE. */
hf_status hf_wf_check_activity(hf_op *op, hf_wf *wf, const char *name, hf_payload in,
                               const hf_activity_options *options);
/* The pause before the second attempt, with the default filled in. */
static inline hf_span hf_wf_first_pause(const hf_activity_options *options)
{
    return options->retry_initial.ns > 0 ? options->retry_initial : hf_seconds(1);
}

/* verbs.c, verbs_activity.c: the verbs of workflows, and the functions that apply events. */
hf_wf *hf_wf_self(void); /* of the running fiber; NULL = the fiber does not belong to a workflow */
hf_str hf_wf_number_text(hf_arena *arena, uint64_t number);
bool hf_wf_is_too_long(const char *text); /* for an id or a name; false for NULL */
static inline hf_list *hf_wf_bucket(hf_list *buckets, uint64_t key)
{
    return &buckets[key % HF_WF_PENDING_BUCKETS];
}
extern const hf_crew_ops hf_wf_crew_ops;
hf_status hf_wf_main(void *wf); /* body of the first fiber */
void hf_wf_scheduled(hf_wf *wf, hf_wf_activity *activity, int64_t event_id);
/* The current activation will resolve this activity, or fire this timer. If its fiber gives up before that, there is
 * nothing left to cancel. */
void hf_wf_will_resolve(hf_wf *wf, int64_t scheduled_event_id);
void hf_wf_will_fire(hf_wf *wf, hf_str timer_id);
void hf_wf_resolve(hf_wf *wf, int64_t scheduled_event_id, const hf_pb_history_event *event);
void hf_wf_fired(hf_wf *wf, hf_str timer_id);
void hf_wf_leftover_free(hf_wf *wf, hf_wf_leftover *leftover);
hf_status hf_wf_signaled(hf_wf *wf, const hf_pb_workflow_execution_signaled_event_attributes *signal);

#endif
