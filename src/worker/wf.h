/* hf_wf: one run of a workflow in memory. worker-K1 in worker_private.h says which threads may touch it. */
#ifndef HF_WORKER_WF_H
#define HF_WORKER_WF_H

#include "worker/worker_private.h"

#include "fiber/crew/job.h"

#include <holdfast/child.h>
#include <holdfast/handler.h>
#include <holdfast/local.h>
#include <holdfast/run.h>

/* The name of this library in histories, and the rules by which it ran a workflow (core_used_flags of a
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
    HF_WF_RULE_FAILURES = 6, /* failures are told, and passed on, as they came; before, they were cut */
    HF_WF_RULE_PATCHES = 7,  /* hf_patched looks through the whole history; before, in the step that asked */
    HF_WF_RULE_CHILDREN = 8, /* a child that timed out, was terminated or canceled is told as that kind of failure */
    HF_WF_RULE_NEXT = 9,     /* behind hf_continue_as_new, handlers get no signals: the next run does */
    HF_WF_RULE_WAITS = 10, /* handlers in hf_handlers_wait, a canceled hf_child_start, a missed quorum: see ADR 0012 */
    HF_WF_RULE_CARRIES = 11, /* hf_continue_as_new takes memo, search attributes and retry policy along */
    HF_WF_RULE_LAST = HF_WF_RULE_CARRIES
};
#define HF_WF_RULES_ALL ((UINT32_C(2) << HF_WF_RULE_LAST) - 2) /* a bit for each */
/* Rules stand in core_used_flags, from here on: numbers that Temporal's SDKs pass over. In lang_used_flags, where the first versions had them,
 * the SDKs refuse what they do not know. */
#define HF_WF_FLAG_BASE 1000

enum { HF_WF_PENDING_BUCKETS = 64 };
/* Activities, timers or children, by a number (pending.c). */
typedef struct hf_wf_pending {
    hf_list few;
    hf_list *buckets; /* HF_WF_PENDING_BUCKETS; NULL = there were never many */
} hf_wf_pending;

typedef struct hf_command_record hf_command_record;

/* A command that the workflow made, until the history shows its event. In the recorder's arena. */
struct hf_command_record {
    hf_node node;
    int32_t type;               /* hf_pb_command_type */
    int line;                   /* where the code asked for it */
    const char *file;           /* a literal of the workflow's code; NULL = unknown */
    hf_str id;                  /* of the activity or timer; not compared if it is to be canceled: its event has none */
    hf_str name;                /* type of the activity */
    hf_span span;               /* of the timer */
    int64_t scheduled_event_id; /* of the activity to cancel */
    struct hf_wf_activity *activity; /* the activity that waits for its event, or NULL */
    struct hf_wf_timer *timer;
    struct hf_wf_ask *ask;  /* the child, signal or cancel that waits for its event, or NULL */
    bool is_withdrawn;      /* given up before it was sent: it is never sent */
    bool is_free;           /* of a patch: its event may be anywhere in the history */
    hf_pb_command *pb;      /* the command to send; NULL after it was sent */
    hf_pb_message *message; /* of an update; NULL = none. That of a rejection has no command */
};

/* A record that the step at hand published. */
typedef struct hf_published {
    hf_node node; /* in hf_recorder.published */
    hf_pb_stream_record record;
} hf_published;

typedef struct hf_recorder {
    hf_list records;        /* of the last activation, in order */
    hf_list published;      /* the same; in `arena` until the answer has gone */
    size_t published_count; /* of those */
    hf_arena arena;         /* of a step, from the worker's; between steps a small one of its own */
    bool patches_are_free;  /* the records are of a step that was played by HF_WF_RULE_PATCHES */
} hf_recorder;

/* An activity that a fiber waits for, on that fiber's stack; or one that was forked into a scope, in an
 * hf_wf_activity_job. */
typedef struct hf_wf_activity {
    hf_node node; /* in scheduling or a bucket of activities, which it leaves by its end or when it is given up */
    hf_wf *wf;
    hf_wait *wait;  /* of the fiber; NULL = it was forked */
    const char *id; /* the caller's; NULL = its number */
    uint64_t seq;
    int64_t scheduled_event_id;     /* 0 = the history has not shown it yet */
    hf_command_record *record;      /* until then */
    bool has_ended;                 /* in the activation at hand: there is nothing left to cancel */
    bool is_joined;                 /* a cancel does not end the wait, once the history has shown it */
    bool is_given_up;               /* its fiber was canceled, and will act on it when it runs */
    bool is_asked;                  /* forked: it was asked to end */
    uint8_t on_cancel;              /* forked: hf_on_cancel */
    int line;                       /* where the code asked for it */
    const char *file;               /* */
    const hf_pb_history_event *end; /* the event that ended it; valid in the turn that follows */
} hf_wf_activity;

/* An activity that is a child of a scope, without a fiber (forks.c). */
typedef struct hf_wf_activity_job {
    hf_wf_activity activity;
    hf_crew_job job;
    const char *name;    /* hf_wf_intern */
    hf_payload *ret_out; /* the caller's, or NULL */
    hf_payload *ret_details;
    char id[]; /* NUL-terminated, if it has one of its own */
} hf_wf_activity_job;

/* A canceled activity, until the history shows its end: no fiber waits for it, but its id is in use. */
typedef struct hf_wf_leftover {
    hf_node node;
    int64_t scheduled_event_id;
    size_t id_len;
    char id[];
} hf_wf_leftover;

/* A child, or a signal or cancel to another workflow, that a fiber waits for, on that fiber's stack; or a child that was
 * forked into a scope, in an hf_wf_child_job. */
typedef struct hf_wf_ask {
    hf_node node; /* in asking or a bucket of asks, which it leaves by its end or when it is given up */
    hf_wf *wf;
    hf_wait *wait;             /* of the fiber; NULL = it was forked */
    const char *id;            /* workflow id of the other one */
    int64_t event_id;          /* of its ...Initiated event; 0 = the history has not shown it yet */
    hf_command_record *record; /* until then */
    bool is_child;
    bool ends_at_start;             /* hf_child_start */
    bool is_joined;                 /* a cancel does not end the wait, once the history has shown it */
    bool is_given_up;               /* its fiber was canceled, and will act on it when it runs */
    bool has_ended;                 /* in the activation at hand: there is nothing left to cancel */
    bool is_asked;                  /* forked: it was asked to end */
    int line;                       /* where the code asked for it */
    const char *file;               /* */
    const hf_pb_history_event *end; /* the event that ended it; valid in the turn that follows */
} hf_wf_ask;

/* A local activity or a side effect that a fiber waits for (local.h). On that fiber's stack. */
typedef struct hf_wf_local {
    hf_node node; /* in wf->locals, which it leaves by its end or when it is given up */
    hf_wf *wf;
    hf_wait wait;
    uint64_t seq;
    uint64_t first_seq; /* of its first attempt: its id */
    const char *name;   /* the caller's, which waits: so are the next five */
    hf_payload in;
    const hf_activity_options *options; /* NULL = a side effect */
    hf_effect effect;                   /* NULL = an activity */
    void *effect_arg;
    hf_span timer_after;
    int attempt;
    hf_time scheduled;              /* when the first attempt was asked for; 0 = now */
    struct hf_local_job *job;       /* what executes it; NULL = it was not started, as in a replay */
    const struct hf_local_end *end; /* valid in the turn that follows */
    bool is_begun;                  /* the step that asked for it has settled: a cancel does not undo it any more */
    bool is_joined;                 /* a cancel does not end the wait, once it has begun */
    bool is_given_up;               /* its fiber was canceled, and will act on it when it runs */
    bool is_cancel_asked;           /* it is told when it begins, if it has not begun */
    int line;                       /* where the code asked for it */
    const char *file;               /* a literal of the workflow's code; NULL = unknown */
    hf_scope *scope;                /* of its fiber, for its marker (graph.c) */
} hf_wf_local;
/* A child workflow that is a child of a scope, without a fiber (forks.c). */
typedef struct hf_wf_child_job {
    hf_wf_ask ask;
    hf_crew_job job;
    const char *type; /* hf_wf_intern */
    hf_payload *ret_out;
    hf_on_cancel on_cancel;
} hf_wf_child_job;

/* A name that many forked activities share. */
typedef struct hf_wf_name {
    struct hf_wf_name *next; /* in wf->names */
    size_t len;
    char text[]; /* NUL-terminated */
} hf_wf_name;

/* A timer of the crew's. */
typedef struct hf_wf_timer {
    hf_node node; /* in a bucket of timers */
    uint64_t seq;
    hf_crew_timer *crew_timer;
    hf_command_record *record; /* until the history has shown it */
    bool has_fired;            /* in the activation at hand: there is nothing left to cancel */
    int line;                  /* where the code asked for it */
    const char *file;          /* */
} hf_wf_timer;

/* A signal that has arrived and was not taken yet. */
typedef struct hf_wf_signal {
    hf_node node;
    hf_payload payload; /* kept by the run */
    hf_str header;      /* owned: hf_wf_header_keep */
    size_t name_len;
    char name[];
} hf_wf_signal;

/* ---- Handlers (handlers.c) ------------------------------------------------------------------------------------------ */

typedef enum hf_wf_handler_kind { HF_WF_ON_SIGNAL, HF_WF_ON_QUERY, HF_WF_ON_UPDATE } hf_wf_handler_kind;
#define HF_WF_HANDLER_KIND_COUNT 3

/* A function of the workflow that handles what comes under a name. */
typedef struct hf_wf_handler {
    hf_node node; /* in wf->handlers */
    hf_wf_handler_kind kind;
    hf_signal_handler signal;
    hf_reply_handler reply; /* of queries and updates */
    hf_validator validator; /* of updates; may be NULL */
    void *arg;
    bool may_be_left; /* see hf_on_update_options */
    bool is_any;      /* for names without a handler of their own */
    size_t name_len;
    char name[]; /* NUL-terminated */
} hf_wf_handler;

/* The request of an update, as it came. */
typedef struct hf_wf_update_request {
    hf_str message_id;      /* of its message; empty in a replay */
    hf_pb_request *request; /* as long as the step at hand is played */
    int64_t event_id;       /* it comes behind this event */
} hf_wf_update_request;

/* A handler under way, on a fiber of its own. Freed by that fiber. */
typedef struct hf_wf_handling {
    hf_node node; /* in wf->handlings; of a query: in no list */
    hf_wf *wf;
    hf_wf_handler_kind kind;
    hf_signal_handler signal; /* as they were when it began */
    hf_reply_handler reply;
    hf_validator validator;
    void *arg;
    bool may_be_left;
    hf_branch *branch;            /* NULL = it has not begun */
    hf_payload in;                /* kept by the run; of a query: borrowed */
    hf_payload out;               /* of a query: set when it has returned, and the caller's */
    hf_status status;             /* of a query: the same */
    hf_pb_failure *failure;       /* of a query that failed, in the caller's arena */
    hf_arena *arena;              /* of a query: for its failure */
    bool has_ended;               /* of a query */
    bool is_counted;              /* it is under way for hf_handlers_wait: a signal, or an update that was accepted */
    unsigned idle_waits;          /* its fibers in hf_handlers_wait */
    hf_wf_update_request request; /* of an update; valid until its fiber waits */
    hf_str header;                /* that came with it; owned: hf_wf_header_keep */
    const char *update_id;        /* of an update, else NULL; NUL-terminated, behind the struct */
    size_t len;                   /* of the allocation */
    char name[];                  /* what came; NUL-terminated */
} hf_wf_handling;

/* A fiber in hf_wait_until. Lies in its hf_until. */
typedef struct hf_wf_until {
    hf_wf *wf;
    hf_node node;     /* in wf->untils, while it waits */
    uint64_t number;  /* by the beginning of the wait */
    hf_scope *scope;  /* for its bound; NULL = none */
    bool is_past;     /* its bound was over when it began */
    const char *file; /* where the call is, for the sentence; may be NULL */
    int line;
    hf_wait wait;
} hf_wf_until;

/* An answer of hf_patched. */
typedef struct hf_wf_patch {
    struct hf_wf_patch *next; /* in wf->patches */
    bool is_patched;
    size_t len;
    char id[];
} hf_wf_patch;

/* A patch whose marker is in the history. */
typedef struct hf_wf_mark {
    struct hf_wf_mark *next; /* in wf->marks */
    size_t len;
    char key[]; /* hf_wf_patch_key */
} hf_wf_mark;

/* A key of the memo or of the search attributes, with its value as the run has it now. */
typedef struct hf_wf_field {
    hf_node node;     /* in hf_wf_fields.list */
    size_t key_len;   /* */
    size_t value_len; /* */
    char bytes[];     /* the key, then the value: a Payload message */
} hf_wf_field;

/* The memo, or the search attributes, of a run (attributes.c). */
typedef struct hf_wf_fields {
    hf_list list; /* in the order in which they were set */
    size_t len;   /* bytes of the map as a message, or some more; 0 = it is empty */
} hf_wf_fields;
enum { HF_WF_MEMO, HF_WF_SEARCH, HF_WF_FIELDS_COUNT };

/* Facts that most runs do not have: where a run comes from, how long it may take. */
typedef struct hf_wf_origin {
    const char *parent_id; /* of these see hf_workflow_facts */
    const char *parent_run_id;
    const char *root_id;
    const char *cron;
    const char *continued_run_id;
    const char *last_failure;
    hf_span execution_timeout;
    hf_span run_timeout;
    hf_payload last_result;
    hf_str retry_policy; /* of its start, as a message; empty = none */
} hf_wf_origin;

/* What hf_continue_as_new has asked for. */
typedef struct hf_wf_next {
    hf_pb_continue_as_new_workflow_execution_command_attributes attributes;
    const char *file; /* where that was called */
    int line;
} hf_wf_next;

struct hf_wf {
    hf_worker *worker;
    size_t len; /* of the allocation: the two texts follow the struct */
    hf_str id;
    hf_str run_id;
    const hf_function_entry *entry;

    /* Under the cache's lock. */
    hf_node bucket; /* in the table; of a run that is given up: in cache.stuck */
    hf_node lru;
    size_t bytes;
    int64_t used_ns;         /* mono: when its last step ended */
    hf_list tasks;           /* the mailbox */
    unsigned posted;         /* tasks in the mailbox or at work */
    bool has_jobs;           /* local activities are executed: it stays, if it can */
    bool is_told;            /* to end */
    bool is_given_up;        /* it does not yield: its step is answered, and another run takes its place */
    bool is_driven;          /* worker-D1 */
    const hf_wtask *at_work; /* the step that is being played */
    hf_node ready;           /* in hf_wf_seat.ready, while it waits for a driver */
    int seat;                /* number of the scheduler that its fibers stay on; set by its first driver */

    _Atomic(int64_t) turn_ns; /* mono: when the turn of its fibers began; 0 = it is not their turn */

    /* The driver's, and its crew's in turns. */
    hf_crew *crew;
    hf_recorder recorder;
    int64_t event_id_next; /* first event that was not applied */
    uint64_t activity_seq;
    uint64_t timer_seq;
    hf_list scheduling;       /* activities whose event was not seen yet */
    hf_wf_pending activities; /* by scheduled event id */
    hf_wf_pending timers;     /* by number */
    hf_list given_up;         /* activities whose fiber has not withdrawn them yet: ids in use */
    hf_list leftovers;        /* canceled activities that have not ended */
    hf_list asking;           /* children, signals and cancels whose event was not seen yet */
    hf_wf_pending asks;       /* the others, by their ...Initiated event */
    uint64_t child_seq;
    const char *child_base; /* ids of children that have none begin with this; its run id, or in `kept` */
    int asks_count;         /* in `asking` and `asks` */
    int activities_count;   /* in all three lists: as many as the service knows, or more */
    int timers_count;
    int locals_count; /* of fibers in a call that waits for one of `locals` */
    hf_list locals;   /* local activities and side effects, in order */
    uint64_t local_seq;
    hf_list local_jobs;    /* of those that are executed */
    hf_list local_ends;    /* under worker->local_lock: of those that have ended, in order ... */
    hf_wait *local_waiter; /* ... and the driver, while it waits for one */
    hf_list signals;       /* not taken, in order */
    hf_list signal_waits;  /* hf_wait.node of waiting fibers, in order */
    hf_list handlers;      /* of all kinds, oldest first */
    hf_list handlings;     /* handlers of signals and updates that have not ended, in order */
    hf_list idle_waits;    /* hf_wait.node of fibers in hf_handlers_wait */
    hf_list untils;        /* by number */
    uint64_t until_number; /* of the last one */
    hf_wf_fields *fields;  /* HF_WF_FIELDS_COUNT, in `kept`; NULL = it never had any */
    hf_wf_patch *patches;
    hf_wf_mark *marks;
    hf_wf_name *names; /* of forked activities and children */
    size_t jobs_bytes; /* memory of those */
    hf_scope *scope;   /* around the main function; NULL before and after */
    hf_scope *forking; /* the command that is made is of this scope: of a child without a fiber, or a local activity;
                                   NULL = of that of the calling fiber */
    hf_command_record *closing; /* the command that ends the run: it goes last; NULL = the main function runs,
                                   or it is among the records */
    const char *task_queue;     /* this and the next six: see hf_workflow_facts; texts that are not the worker's or the
                                   run's own are in `kept` */
    const char *first_run_id;
    hf_wf_origin *origin; /* in `kept`; NULL = nothing of it applies */
    hf_time started;
    int64_t history_count;
    int64_t history_len;
    int attempt;
    uint32_t scope_number;                 /* the last one that was given: graph.c */
    hf_wf_next *next;                      /* in `kept`; NULL = none */
    const hf_pb_history_event *const *own; /* events that the commands of the step at hand became */
    size_t own_count;                      /* 0 in the current step */
    const hf_pb_message_list *messages;    /* of the task at hand: requests of updates */
    bool should_continue;                  /* see hf_workflow_facts */
    bool has_passed;                       /* a condition has passed in the step at hand */
    bool has_takers;                       /* a handler was added: it may take signals that came earlier */
    bool is_current;                       /* the step at hand is in no history yet */
    bool is_ahead;                         /* of that step: its start may not be durable yet */
    bool is_asked;           /* queries or updates came with it: they are answered before local activities have ended */
    bool beats;              /* local activities are under way: its answer asks for the next task */
    bool hands_over;         /* the worker stops: another one gets that task */
    bool keeps_task;         /* the task at hand becomes kept_task */
    int64_t step_ns;         /* mono: when it began */
    hf_span task_timeout;    /* of workflow tasks; 0 = the service's default */
    hf_wtask *kept_task;     /* its fibers may still use the task of a step that did not end; freed with the run */
    hf_arena kept;           /* of hf_workflow_alloc, and of texts that are valid as long as the run is in memory */
    hf_payload_bag payloads; /* payloads that its fibers own */
    int64_t stream_count; /* records of its stream: those of earlier runs, and those that its code has published ... */
    int64_t stream_len;   /* ... and their bytes */
    hf_str header;        /* of its start; owned: hf_wf_header_keep */
    hf_str taken_header;  /* of the signal that a fiber took last; owned */
    hf_pb_header *out_header; /* of the command that the running verb makes; in the recorder's arena; NULL = none */
    hf_payload input;
    uint32_t rules;    /* that hold, a bit for each: see hf_wf_plays_by */
    bool has_names;    /* activities were given ids of their own */
    bool is_reseeded;  /* a reset has seeded its random numbers */
    bool is_sdk_known; /* the history says which library runs it, and by which rules */
    bool is_lost;      /* a fiber of it kept its thread: only hf_crew_close may touch the run */
    bool has_begun;
    bool is_cancel_requested;
    bool has_closed;           /* the closing command was made */
    bool is_nomem;             /* out of memory: the step must be failed */
    const char *cancel_reason; /* .reason of hf_cancel, in `kept`; NULL = none. Its fibers point to it */
    char *misdeed; /* HF_MESSAGE_LEN_MAX bytes: why the step must be failed, from the guard; NULL = all is well */
};

/* Whether the step at hand is played by this rule. */
static inline bool hf_wf_plays_by(const hf_wf *wf, uint32_t rule)
{
    return (wf->rules & (UINT32_C(1) << rule)) != 0;
}

/* drivers.c */
/* Drivers that are to be woken or made, after the cache's lock was released. */
typedef struct hf_wf_summons {
    hf_wait *idle; /* chained by `value` */
    bool has_seats;
    bool only_wakes; /* the caller is not inside worker->runs, which may be closed when a run has ended: no fork */
    uint64_t seats[HF_THREADS_MAX / 64]; /* a bit for each seat that wants one more */
} hf_wf_summons;
/* Under the cache's lock: the run gets a driver. The caller calls hf_wf_summon when it has released the lock. */
void hf_wf_want_driver(hf_wf *wf, hf_wf_summons *summons);
void hf_wf_summon(hf_worker *worker, hf_wf_summons *summons);
hf_status hf_wf_drive_new(void *wf);   /* body of a driver for a run that has never had one */
hf_status hf_wf_keep_seat(void *seat); /* body of a driver that stays */
/* run.c: the calling driver plays the tasks of a run until it has none, and lets it go or frees it. */
void hf_wf_attend(hf_wf *wf);

/* run.c: answers that a workflow task failed. Later attempts are not answered: they would fail again at once, so the
 * task times out instead. */
void hf_wf_answer_failed(hf_worker *worker, const hf_stuck_step *step, const hf_op *why);
/* fail_run.c: whether this worker fails the run instead of the workflow task (.is_strict, .fails_on_conflict). */
bool hf_wf_fails_run(const hf_wf *wf, hf_status status);
/* Ends the run as failed, with a failure that is not tried again. */
void hf_wf_fail_run(hf_wf *wf, const hf_wtask *task, const hf_op *why);
void hf_wf_misdeed_free(hf_wf *wf); /* guard.c */
/* Makes a run with its first task in the mailbox. Takes `task`, also on failure. Fails: HF_ERR_NOMEM. */
hf_status hf_wf_new(hf_worker *worker, hf_wtask *task, hf_wf **ret_wf);
/* Frees a run that was never started, and returns its task. */
hf_wtask *hf_wf_unmake(hf_wf *wf);
/* Starts its driver, which frees it in the end; on failure it is freed at once. */
hf_status hf_wf_start(hf_wf *wf);

/* history.c: the events that the task is about, from wf->event_id_next on, step by step. */
#define HF_WF_HELD_MAX (8u << 20) /* worker-H2: bytes of history that are not played yet; a payload has 2 MiB at most */
typedef struct hf_wf_events {
    const hf_pb_history_event **items;
    size_t count;
    size_t capacity;
} hf_wf_events;
typedef struct hf_wf_reader {
    hf_wf *wf;
    hf_wtask *task;   /* has the memory */
    hf_str rest;      /* of the page at hand: not decoded yet */
    hf_str token;     /* of the next page */
    bool is_last;     /* there is none */
    bool is_query;    /* only steps that were completed are read */
    bool has_begun;   /* an event was read */
    bool has_noted;   /* the patches of all pages are noted */
    int64_t until;    /* the WorkflowTaskStarted of the current step; of a query: INT64_MAX */
    int64_t id_next;  /* the event that is expected next */
    hf_wf_events now; /* the step at hand, up to its WorkflowTaskStarted */
    hf_wf_events
        ahead; /* its WorkflowTaskCompleted, the events of its commands, one more; empty: it is the current one */
} hf_wf_reader;
/* Fails: HF_ERR_INVALID; HF_ERR_UNSUPPORTED: the page names a rule that this version does not know; HF_ERR_NOMEM. */
hf_status hf_wf_open_history(hf_op *op, hf_wf *wf, hf_wtask *task, hf_wf_reader *ret_reader);
/* Reads the next step into `now` and `ahead`, in memory of the task; the last one is forgotten. `*ret_any` false: there is
 * none. Fails: the same, and statuses of the service. */
hf_status hf_wf_read_step(hf_op *op, hf_wf_reader *reader, bool *ret_any);

/* The message about a run that does not yield. */
extern const char hf_wf_stuck_text[];

/* activation.c: applies the steps; the recorder then has the commands of the last activation. For a query
 * `started_event_id` is 0: only steps that were completed are played.
 * Fails: HF_ERR_CONFLICT: the code does not do what the history says; HF_ERR_TIMEOUT: wf->is_lost; HF_ERR_EVICTED:
 * the run is further than this task, which is late; HF_ERR_UNSUPPORTED: the history names a rule that this version does
 * not know; HF_ERR_NOMEM, HF_ERR_INVALID. */
hf_status hf_wf_apply(hf_op *op, hf_wf *wf, hf_wf_reader *reader, int64_t started_event_id);

/* recorder.c */
/* `recorder` is that of a run whose worker is set. */
void hf_recorder_init(hf_recorder *recorder);
void hf_recorder_deinit(hf_recorder *recorder);
/* A record and its command, with attributes of this many bytes behind `ret_attributes`. It comes from where the running
 * verb was called (hf_crew_self_place). NULL = out of memory. */
hf_command_record *hf_recorder_add(hf_recorder *recorder, int32_t type, uint32_t attributes_case, size_t attributes_len,
                                   void **ret_attributes);
/* Appends " at FILE:LINE"; nothing if the file is NULL. */
void hf_wf_put_place(char *text, size_t capacity, const char *file, int line);
/* The summary of the command that was just added; NULL = none. */
void hf_wf_summarize(hf_wf *wf, hf_command_record *record, const char *summary);
/* Forgets all records, before the next activation. */
void hf_recorder_reset(hf_recorder *recorder);
/* Keeps only those parts of each record that hf_recorder_check needs. Fails: HF_ERR_NOMEM. */
hf_status hf_recorder_compact(hf_recorder *recorder);
/* The messages of updates that go with the commands, in order, in the arena. */
hf_pb_stream_record_list hf_recorder_published(const hf_recorder *recorder, hf_arena *arena); /* publish.c */
hf_pb_message_list hf_recorder_messages(const hf_recorder *recorder, hf_arena *arena);
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
/* The same without what depends on the workflow's other activities. */
hf_status hf_wf_check_work(hf_op *op, hf_wf *wf, const char *name, hf_payload in, const hf_activity_options *options);
/* Checks the total length of .final_types; `what` is "activity" or "child". Fails: HF_ERR_TOO_BIG. */
hf_status hf_wf_check_types(hf_op *op, const char *what, const char *name, const char *const *types);
/* The pause before the second attempt, with the default filled in. */
static inline hf_span hf_wf_first_pause(const hf_activity_options *options)
{
    return options->retry_initial.ns > 0 ? options->retry_initial : hf_seconds(1);
}

/* verbs.c, verbs_activity.c: the verbs of workflows, and the functions that apply events. */
/* Copies of .final_types, in the arena. */
hf_pb_str_list hf_wf_final_types(hf_arena *arena, const char *const *types);
/* Whether the calling fiber is canceled; why is noted as the failure of `verb`. */
bool hf_wf_is_canceled(const char *verb);
hf_wf *hf_wf_self(void); /* of the running fiber; NULL = the fiber does not belong to a workflow */
hf_str hf_wf_number_text(hf_arena *arena, uint64_t number);
bool hf_wf_is_too_long(const char *text); /* for an id or a name; false for NULL */
/* pending.c */
void hf_wf_pending_init(hf_wf_pending *pending);
void hf_wf_pending_deinit(hf_wf_pending *pending, const hf_wf *wf);
/* `count`: how many of its kind the run has, with this one. */
void hf_wf_pending_add(hf_wf_pending *pending, const hf_wf *wf, hf_node *node, uint64_t key, int count);
/* What has this key is in one of these lists: i = 0, 1, until NULL. */
static inline hf_list *hf_wf_pending_at(hf_wf_pending *pending, uint64_t key, int i)
{
    return i == 0                               ? &pending->few
           : i == 1 && pending->buckets != NULL ? &pending->buckets[key % HF_WF_PENDING_BUCKETS]
                                                : NULL;
}
/* All of its lists: i = 0, 1, ... until NULL. */
static inline hf_list *hf_wf_pending_all(hf_wf_pending *pending, int i)
{
    return i == 0                                                   ? &pending->few
           : i <= HF_WF_PENDING_BUCKETS && pending->buckets != NULL ? &pending->buckets[i - 1]
                                                                    : NULL;
}
extern const hf_crew_ops hf_wf_crew_ops;
hf_status hf_wf_main(void *wf); /* body of the first fiber */
void hf_wf_scheduled(hf_wf *wf, hf_wf_activity *activity, int64_t event_id);
/* The current activation will resolve this activity, or fire this timer. If its fiber gives up before that, there is
 * nothing left to cancel. */
void hf_wf_will_resolve(hf_wf *wf, int64_t scheduled_event_id);
void hf_wf_will_fire(hf_wf *wf, hf_str timer_id);
/* Tells the code how an activity failed: that it did, because of `cause`. Returns status. */
hf_status hf_wf_raise_activity(hf_wf *wf, hf_status status, const char *type, const char *name, const char *what,
                               hf_pb_activity_failure_info *info, hf_pb_failure *cause);
/* local_marker.c: the number in the marker of a local activity, as text; empty if it is another marker. */
hf_str hf_wf_local_key(const hf_pb_marker_recorded_event_attributes *marker);
/* verbs_child.c: the same for children, and signals and cancels to other workflows; other events do nothing. */
void hf_wf_asked(hf_wf *wf, hf_wf_ask *ask, int64_t event_id);
void hf_wf_will_answer(hf_wf *wf, const hf_pb_history_event *event);
void hf_wf_answered(hf_wf *wf, const hf_pb_history_event *event);
void hf_wf_resolve(hf_wf *wf, int64_t scheduled_event_id, const hf_pb_history_event *event);
void hf_wf_fired(hf_wf *wf, hf_str timer_id);
void hf_wf_leftover_free(hf_wf *wf, hf_wf_leftover *leftover);

/* verbs_activity.c, for forks.c: the parts of an activity's life. */
/* Makes the command; the activity waits for its event from now on. NULL: no memory, and the step fails. */
hf_command_record *hf_wf_schedule(hf_wf *wf, hf_wf_activity *activity, const char *name, hf_payload in,
                                  const hf_activity_options *options);
void hf_wf_withdraw_activity(hf_wf *wf, const hf_wf_activity *activity);
void hf_wf_leave_activity(hf_wf *wf, const hf_wf_activity *activity, hf_on_cancel how);
void hf_wf_cancel_activity(hf_wf *wf, const hf_wf_activity *activity);
/* What its end means: the status of the call and its outputs. `is_canceled`: the caller knows why it ended canceled. */
hf_status hf_wf_activity_outcome(hf_wf *wf, const char *name, const hf_wf_activity *activity, bool is_canceled,
                                 hf_payload *ret_out, hf_payload *ret_details);
/* verbs_child.c, for forks.c: the same for a child. */
hf_status hf_wf_check_child(hf_op *op, const hf_wf *wf, const char *verb, const char *type, hf_payload in,
                            const hf_child_options *options);
hf_command_record *hf_wf_start_child(hf_wf *wf, hf_wf_ask *ask, const char *type, hf_payload in,
                                     const hf_child_options *options);
void hf_wf_withdraw_ask(hf_wf *wf, const hf_wf_ask *ask);
void hf_wf_cancel_child(hf_wf *wf, const hf_wf_ask *ask);
hf_status hf_wf_child_outcome(hf_wf *wf, const char *type, const hf_wf_ask *ask, bool is_canceled, hf_payload *ret_out);

/* forks.c: the end of a forked one has come. Frees it. */
void hf_wf_end_activity_job(hf_wf_activity *activity);
void hf_wf_end_child_job(hf_wf_ask *ask);
/* Fails: HF_ERR_NOMEM. */
hf_status hf_wf_signaled(hf_op *op, hf_wf *wf, const hf_pb_workflow_execution_signaled_event_attributes *signal);
/* The closing command is taken out of the records; the activation puts it behind all others. */
void hf_wf_set_closing(hf_wf *wf, hf_command_record *record);

/* handlers.c */
void hf_wf_handlers_init(hf_wf *wf);
void hf_wf_handlers_free(hf_wf *wf);
/* The handler for this name; NULL = there is none. */
const hf_wf_handler *hf_wf_handler_of(const hf_wf *wf, hf_wf_handler_kind kind, hf_str name);
/* "workflow 'x' has no handler for query 'y'; it has 'a', 'b'". */
void hf_wf_tell_no_handler(const hf_wf *wf, hf_wf_handler_kind kind, hf_str name, char text[HF_MESSAGE_LEN_MAX]);
/* Appends the name with this number, from 0, to a sentence about one that there is not; behind the eighth only "and more". */
enum { HF_NAMES_TOLD_MAX = 8, HF_NAME_TOLD_LEN_MAX = 40 };
void hf_wf_names_add(char text[HF_MESSAGE_LEN_MAX], int idx, hf_str name);
/* Starts a handler on a fiber that runs in the next turn. Takes `in` on success. Fails: HF_ERR_NOMEM. */
hf_status hf_wf_handle(hf_op *op, hf_wf *wf, hf_wf_handler_kind kind, const hf_wf_handler *handler, hf_str name,
                       hf_str update_id, hf_payload in);
/* Whether an address is on the stack of the running fiber. */
bool hf_wf_is_on_stack(const void *address);
/* The run ends: handlers that have not ended are named in the log and canceled. Their fibers get a turn after this. */
void hf_wf_cancel_handlers(hf_wf *wf);
/* Runs a query on a fiber of its own, in a turn. The answer is in the arena. Fails: HF_ERR_TIMEOUT: wf->is_lost;
 * HF_ERR_NOMEM. A query that fails is an answer, too. */
hf_status hf_wf_query(hf_op *op, hf_wf *wf, const hf_pb_workflow_query *query, hf_arena *arena,
                      hf_pb_workflow_query_result *ret_result);

/* The handler that the calling fiber runs, or a query; NULL = none. */
const hf_wf_handling *hf_wf_handling_self(void);

/* header.c: the header as bytes that the caller owns; empty for none. False: no memory. */
bool hf_wf_header_keep(hf_wf *wf, const hf_pb_header *header, hf_str *ret_kept);
void hf_wf_header_free(hf_wf *wf, hf_str *kept);
/* By a verb, before it enters the library: makes the header of its command, and hf_wf_header_take gives it to the command.
 * The fiber must not wait in between. Fails: as hf_header_make, raised. */
hf_status hf_wf_header_make(const char *verb, const hf_entry *entries);
/* A copy in the arena, whose status tells of a lack of memory; NULL stays NULL. */
hf_pb_header *hf_wf_header_copy(const hf_pb_header *header, hf_arena *arena);
static inline hf_pb_header *hf_wf_header_take(hf_wf *wf)
{
    hf_pb_header *header = wf->out_header;
    wf->out_header = NULL;
    return header;
}

/* updates.c: the life of an update, on its own fiber. */
void hf_wf_run_update(hf_wf_handling *handling);
/* Delivers the updates that came before event `before`, from the `*next`-th on. Fails: HF_ERR_NOMEM, HF_ERR_INVALID,
 * HF_ERR_UNSUPPORTED, HF_ERR_CONFLICT: an old step accepted one that the code does not know. */
hf_status hf_wf_deliver_updates(hf_op *op, hf_wf *wf, int64_t before, size_t *next);
/* The same for one that an UpdateAdmitted event brings, after a reset. */
hf_status hf_wf_admitted(hf_op *op, hf_wf *wf, const hf_pb_history_event *event);

/* signals.c: for hf_crew_ops, and the i-th signal that a fiber in signal_waits waits for; NULL = there are no more. */
hf_status hf_wf_signal_check(hf_fiber *self, void *state, const char *verb, const char *name);
hf_status hf_wf_signal_take(void *state, hf_signal_case *signal);
hf_list *hf_wf_signal_waits(void *state);
const char *hf_wf_awaited(const hf_wait *wait, size_t i);
/* Signals that were not taken, as bytes for the next run of the chain; empty: there is none, or no memory. */
hf_str hf_wf_encode_signals(const hf_wf *wf, hf_arena *arena);
/* The other side: they come before all others. Fails: HF_ERR_NOMEM, HF_ERR_INVALID. */
hf_status hf_wf_decode_signals(hf_op *op, hf_wf *wf, hf_str bytes);
#define HF_WF_SIGNALS_HEADER "holdfast-signals" /* field of the header in which they go along */
/* Gives stored signals to handlers that were added since. `*ret_any`: one got a fiber, and wants a turn. */
hf_status hf_wf_flush_signals(hf_op *op, hf_wf *wf, bool *ret_any);

/* until.c: the next fiber in hf_wait_until with a number above `*after`, woken to look; false = there is none. */
bool hf_wf_wake_until(hf_wf *wf, uint64_t *after);
/* Whether the fiber that was woken last waits again. */
bool hf_wf_until_waits(const hf_wf *wf, uint64_t number);

/* graph.c: says in the command's metadata which scope it is of. No memory: the arena's status. */
void hf_wf_tag(hf_wf *wf, hf_arena *arena, hf_pb_command *command, hf_scope *scope);

/* attributes.c: the memo and the search attributes as the run has them. The first takes those of its start over; false: no
 * memory. The second gives them, and the retry policy, to the continue-as-new command wf->closing, where it has none of its
 * own. Fails: HF_ERR_NOMEM. */
bool hf_wf_fields_learn(hf_wf *wf, const hf_pb_workflow_execution_started_event_attributes *started);
hf_status hf_wf_fields_carry(hf_op *op, hf_wf *wf);
void hf_wf_fields_free(hf_wf *wf);
size_t hf_wf_fields_len(const hf_wf *wf); /* of both */

/* run_verbs.c */
/* Fills the facts of the run from its first event. False: no memory. */
bool hf_wf_learn(hf_wf *wf, const hf_pb_history_event *event);
/* Text for as long as the run is in memory; "" for none. */
const char *hf_wf_keep_text(hf_wf *wf, hf_str text);
/* The same for a run id; empty = the run's own. */
const char *hf_wf_keep_run_id(hf_wf *wf, hf_str run_id);
/* Remembers the patch, if this MarkerRecorded is of one. Fails: HF_ERR_NOMEM. */
hf_status hf_wf_note_patch(hf_op *op, hf_wf *wf, const hf_pb_history_event *event);
/* Whether this MarkerRecorded is of hf_patched, and may be missing in the code. */
bool hf_wf_is_deprecated_patch(const hf_pb_history_event *event);
/* The part of the data of such a marker that names its patch; empty if it is another marker. */
hf_str hf_wf_patch_key(const hf_pb_marker_recorded_event_attributes *marker);

/* activation.c: runs the fibers. Fails: HF_ERR_TIMEOUT: the run is lost. */
hf_status hf_wf_turn(hf_op *op, hf_wf *wf);
/* ends.c: what is left when the main function has returned, with wf->closing not among the records yet. The first puts
 * signals that nobody took into the command of a continue-as-new. Fails: HF_ERR_NOMEM. The second names in the log, and in
 * the closing command, what nobody took and what has not ended. */
hf_status hf_wf_settle_signals(hf_op *op, hf_wf *wf);
void hf_wf_name_leftovers(hf_wf *wf);
/* Refuses a verb that makes a command in a run whose closing command is on its way: its handlers clean up, and what they
 * ask for is dropped, with a line in the log (T9). Fails: HF_ERR_CANCELED. */
hf_status hf_wf_not_over(hf_fiber *self, const hf_wf *wf, const char *verb);

#endif
