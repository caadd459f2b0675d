/* The engine in a random world: one process that dies, one disk that keeps commits, clients that repeat requests
 * without an answer, workers that are late, forgetful and wrong. Everything comes from the seed.
 *
 * The driver of the core is world.c: it owns the clocks, the order in which store requests are executed and reported,
 * and the moment at which the process dies. Clients and workers are small machines (actors) that wake up, ask, and
 * wait. They keep logs, and at the end judge.c compares these with the histories of all runs. Only three checks look
 * into the engine itself: rebuild == state, no task waits while a poller is free, and no answer before its commit. */
#ifndef HF_TESTS_SIM_ENGINE_SIM_H
#define HF_TESTS_SIM_ENGINE_SIM_H

#include "base/rng.h"
#include "engine/core_private.h"
#include "engine/matching.h"
#include "engine/token.h"
#include "sim/engine/faults.h"
#include "store/mem.h"

#include <stdio.h>

#define SIM_MS INT64_C(1000000)
#define SIM_SECOND INT64_C(1000000000)
#define SIM_KEEP_MAX (60 * SIM_SECOND) /* for which a run is kept that has a span of its own */

enum {
    SIM_CLIENTS_MAX = 5,
    SIM_WORKERS_MAX = 6,
    SIM_WORKFLOWS_MAX = 12,
    SIM_STEPS_MAX = 5,    /* of a program */
    SIM_ITEMS_MAX = 4,    /* activities or timers of one step */
    SIM_PENDING_MAX = 10, /* more than a program ever has of one kind: the losers of races and one step's */
    SIM_SLOTS = 6,        /* of a worker: workflow tasks, sticky ones, activities; three for tasks that come along */
    SIM_RUN_ID_LEN = 40,  /* with the NUL */
    SIM_ASKERS_MAX = 50,  /* callers that query and update */
    SIM_OPERATORS_MAX = 2,
    SIM_QUERIES_MAX = 64, /* with one workflow task */
    SIM_UPDATES_MAX = 16, /* the same, and accepted ones of a run */
    SIM_NAME_LEN = 24,
    SIM_BROOD_MAX = 90, /* children of one step */
    SIM_CRON_LEN = 64
};

typedef struct sim_world sim_world;
typedef struct sim_call sim_call;
typedef struct sim_actor sim_actor;

/* ---- Totals of a campaign ------------------------------------------------------------------------------------------ */

typedef struct sim_totals {
    uint64_t seeds;
    uint64_t runs;                              /* workflow runs started */
    uint64_t inputs;                            /* calls given to the engine */
    uint64_t commits;                           /* executed */
    uint64_t virtual_s;                         /* seconds of virtual time */
    uint64_t events;                            /* of all histories at the end */
    uint64_t checks;                            /* runs compared with their rebuilt twins */
    uint64_t inputs_min, runs_min, crashes_min; /* of one seed */
    uint64_t faults[HF_SIM_FAULT_COUNT];
    uint64_t probes[HF_PROBE_COUNT];
    uint64_t probe_seeds[HF_PROBE_COUNT]; /* seeds that met it */
    uint64_t methods[HF_METHOD_COUNT];    /* calls */
    uint64_t crowds;                      /* seeds with as many callers that query and update as there may be */
    uint64_t outcomes;                    /* of updates that their callers were told, in these seeds */
    hf_arrows walked;
} sim_totals;

void sim_totals_add(sim_totals *to, const sim_totals *from);
/* Prints the totals; false: a fault, probe or transition that should have happened never did, or a probe in too few seeds. */
bool sim_totals_print(const sim_totals *totals, FILE *out);
/* Each probe was met by its share of the seeds: half of the one percent that is aimed at. Of few seeds this says nothing: true. */
bool sim_totals_have_shares(const sim_totals *totals);

/* ---- Chance --------------------------------------------------------------------------------------------------------- */

/* Settings that a seed chooses before anything runs. Probabilities are per mille. */
typedef struct sim_knobs {
    int clients, workers, workflows, queues;
    int inputs_min; /* calls to be made before the safety phase ends */
    int crashes;    /* crashes to happen before it ends */
    bool is_tiny;   /* memory so small that runs are evicted all the time */
    bool has_clock_steps;
    hf_core_options core;
    int64_t commit_ns_max, read_ns_max; /* how long the store takes */
    int64_t seal_ns_max;                /* how long a batch collects */
    int64_t think_ns_max;               /* pauses of clients */
    int64_t work_ns_max;                /* how long workers work */
    int64_t down_ns_max;                /* how long a restart takes */
    int commit_fails, read_fails;
    int poll_cancel, unwanted, lost, worker_crash, worker_pause, twice, late, forged, task_fails, bad_command;
    int sticky_reset, shutdown, large, task_heartbeat, activity_fails;
    int askers;
    int client_twice, stale_signal;
    int poison;      /* a task of some workflows ends the process */
    int over_limit;  /* a worker sends more commands than may be pending */
    int nomem;       /* an allocation fails */
    bool has_damage; /* records go bad */
    int chains;      /* starts with a retry policy, a schedule, a delay; programs continue as new */
    bool has_children;
    bool zones_go;                   /* in some lives the driver does not find one of the time zones */
    int deletes;                     /* runs are deleted */
    int64_t retention;               /* ... also by retention: ns, the shortest; 0 = not */
    int eager, inlined, eager_start; /* activities, workflow tasks, first workflow tasks may come along */
    int by_id;                       /* workers answer activities by their ids */
    int operators;
    int portions; /* the driver takes several inputs before tasks meet polls */
    double rate;  /* activities a second that workers ask for; 0 = they do not say */
    bool has_resets;
    bool has_batches;
} sim_knobs;

/* ---- Calls ------------------------------------------------------------------------------------------------------------ */

struct sim_call {
    hf_call call;
    hf_arena arena; /* request and response */
    sim_world *world;
    sim_actor *actor; /* actor that asked; NULL = nobody waits */
    void (*then)(sim_world *world, sim_call *call);
    sim_call *next;  /* of the answered ones */
    uint64_t commit; /* commit that the answer depends on, once it is decided */
    bool is_decided;
    uint64_t opened;              /* life of the process in which it was asked */
    uint64_t log;                 /* index in the log of the actor's kind */
    uint64_t epoch;               /* of the slot that asked */
    uint64_t epoch_shut;          /* of a poll: shutdowns of its worker before it */
    int64_t newest;               /* number of the newest run of its workflow that was known when it was asked */
    size_t records, record_count; /* of world->records, that it publishes */
    bool is_of_old_task;          /* it answers a workflow task, and a worker had got a later one of the run by then */
    bool is_done;
};

/* Something that wakes up. */
struct sim_actor {
    void (*wake)(sim_world *world, sim_actor *actor);
    uint64_t turn; /* a wake-up that was planned in an earlier turn is void */
};

typedef struct sim_event {
    int64_t time; /* mono ns */
    uint64_t order;
    int kind;
    sim_actor *actor;
    uint64_t turn;
} sim_event;

/* ---- Logs --------------------------------------------------------------------------------------------------------------- */

typedef enum sim_outcome { SIM_UNKNOWN, SIM_ACKED, SIM_REFUSED } sim_outcome;
typedef enum sim_op_kind {
    SIM_OP_START,
    SIM_OP_SIGNAL,
    SIM_OP_CANCEL,
    SIM_OP_TERMINATE,
    SIM_OP_DELETE,
    SIM_OP_SIGNAL_START,
    SIM_OP_OPTIONS
} sim_op_kind;

/* An operation of a client. */
typedef struct sim_op {
    sim_op_kind kind;
    int client, workflow;
    uint64_t number; /* of the client's operations */
    bool maybe;      /* an earlier try of it ended without an answer */
    sim_outcome outcome;
    hf_status status;
    int64_t asked; /* wall ns: first sent */
    int64_t time;  /* wall ns of the answer */
    char request_id[SIM_NAME_LEN];
    char run_id[SIM_RUN_ID_LEN]; /* run that it named, or that a start made */
    int reuse, conflict;         /* policies of a start */
    bool is_large;
    char first_run_id[SIM_RUN_ID_LEN]; /* of the chain that a cancel or terminate is for */
    bool is_chain;                     /* a start as sim_chain_fill makes it */
    bool may_be_bad, is_bad;           /* its schedule may be refused, must be */
    bool is_eager;                     /* a start whose first workflow task may come along, for the next */
    int worker;
    bool is_all;   /* a deletion of all runs of the id */
    bool is_first; /* no run of the id was deleted before */
    size_t runs;   /* of the world, when it was asked first */
    bool attaches; /* a start that leaves its request id with the run that is open */
    bool was_used; /* a start that was answered with the run of another */
} sim_op;

/* An event that tells of changed options. */
typedef struct sim_option {
    size_t run;                    /* index of the run's log */
    int32_t priority;              /* 0 = none */
    char request_id[SIM_NAME_LEN]; /* that was attached */
} sim_option;

/* An answer of a worker. */
typedef struct sim_answer {
    hf_method method;
    int worker;
    bool maybe;
    sim_outcome outcome;
    int32_t attempt;
    int64_t scheduled_id;
    size_t run;      /* index of the run's log */
    bool is_dropped; /* its task left no trace */
    bool is_by_id;   /* it is for whatever attempt there is */
    int32_t round;   /* of the activity's attempts */
} sim_answer;

/* What an operator does to activities, and what workers and operators know of these: operator.h. */
typedef struct sim_control {
    hf_method method;
    size_t run;      /* index of the run's log */
    bool is_current; /* it names no run: it is for the newest one of the same id */
    int64_t number;  /* of the activity; 0 = those of `type` */
    int type;        /* 0 = all */
    bool unpauses, resets, restores, keeps_paused, forgets;
    int64_t each;         /* ns: the start-to-close timeout that the activity gets; 0 = the same */
    int32_t attempts_max; /* the same; 0 = the same */
    int calls;            /* on their way */
    bool is_over;         /* it was answered */
    uint32_t targets; /* activities that it is for, a bit for each, as far as they were known when it was last sent */
    uint64_t sent, ended; /* marks: last sent, last answered */
} sim_control;

typedef struct sim_activity {
    size_t run;
    int64_t number;
    int32_t attempt, round; /* handed out last; rounds of attempts begin with a reset */
    uint64_t seen;          /* mark: when that was */
    uint64_t paused;        /* mark: since when it is known to be paused; 0 = it may go on */
    uint64_t idle_life;     /* life of the process in which the answer to that attempt was taken; 0 = it was not */
    int32_t set_back; /* it was reset, and the next attempt to be handed out is at most this one; 0 = it is done */
    uint64_t set_back_life;  /* life of the process in which that was acknowledged */
    uint64_t reset;          /* mark: when the last reset was sent that was acknowledged */
    uint64_t reset_answered; /* mark: when that was */
    int64_t each;            /* ns: its start-to-close timeout, as an operator was told; 0 = nobody was */
    uint64_t told;           /* mark: when that was */
} sim_activity;

/* A time in which an activity was known to be paused; wall ns. */
typedef struct sim_pause {
    size_t run;
    int64_t number;
    int64_t from, to; /* to: INT64_MAX = it goes on */
} sim_pause;

/* A task that has ended the process. */
typedef struct sim_suspect {
    bool is_activity;
    size_t run;           /* index of the run's log */
    int64_t scheduled_id; /* of the activity; 0 = the workflow task */
    int32_t attempt;      /* the last one that did */
    int crashes;          /* since it was answered */
} sim_suspect;

/* Tasks that were handed out. */
typedef struct sim_delivery {
    bool is_activity;
    size_t run;
    int64_t scheduled_id;
    int32_t attempt;
    uint64_t opened; /* life of the last delivery */
    int count, allowed;
    bool is_void; /* the attempts of its activity began anew */
    bool is_left; /* its process has left it, and the engine has said that it took note */
} sim_delivery;

/* All events of a run that were ever seen. */
typedef struct sim_run_log {
    char run_id[SIM_RUN_ID_LEN];
    char workflow_id[SIM_NAME_LEN];
    uint64_t *events; /* a hash of each event, by id - 1; 0 = not seen */
    size_t count, capacity;
    bool is_final;
    bool was_damaged;  /* it may have stood still for a while */
    bool is_named;     /* an event that was seen says that it follows another run */
    bool may_be_gone;  /* somebody wanted to delete it, or the run that its id led to; or there is a retention */
    bool is_unwanted;  /* the same, without the retention */
    bool is_deleted;   /* that was acknowledged: nobody may see it again */
    int64_t completed; /* updates, while the judge reads */
    char token
        [HF_TOKEN_LEN]; /* of the last workflow task that a worker got; not if it may have got it ahead of the commit */
    uint64_t tasks;     /* number of these */
    int64_t task_started_id; /* of the newest workflow task that a worker got ... */
    int32_t task_attempt;    /* ... its attempt ... */
    int64_t task_time;       /* ... and when: mono ns */
} sim_run_log;

/* A run whose row was deleted. */
typedef struct sim_retired {
    char run_id[SIM_RUN_ID_LEN];
} sim_retired;

/* What a worker published. */
typedef struct sim_record {
    char text[SIM_NAME_LEN + 8]; /* its payload */
    size_t run;                  /* index of the run's log */
    int64_t sequence;            /* as it was seen; -1 = it was not */
    bool is_acked;
    bool is_found; /* by the judge */
} sim_record;

/* What a description said. */
typedef struct sim_description {
    size_t run;
    int64_t event_count;
    uint64_t memo, attributes; /* sim_fields_hash */
} sim_description;

/* What a caller asked a workflow to do. */
typedef struct sim_update {
    char id[SIM_NAME_LEN];
    int workflow;
    char run_id[SIM_RUN_ID_LEN]; /* that it named, or that has accepted it */
    int64_t asked, asked_last;   /* wall ns: sent for the first and for the last time */
    int32_t stage;               /* that the caller waits for */
    bool with_start;
    bool is_accepted;            /* as the caller was told */
    bool is_outlived;            /* its run ended first, as the caller was told */
    int64_t told_number;         /* its outcome, as the caller was told; 0 = none */
    int64_t before;              /* the greatest number of that run that anybody was told before it was sent */
    char in_run[SIM_RUN_ID_LEN]; /* the history that has it */
    int64_t number;              /* its outcome there */
} sim_update;

#define SIM_VEC(type)           \
    struct {                    \
        type *items;            \
        size_t count, capacity; \
    }
/* A new element at the end, cleared. Running out of memory ends the program. */
#define SIM_PUSH(vec)                                                                             \
    ((vec)->items = sim_grow((vec)->items, &(vec)->capacity, (vec)->count, sizeof *(vec)->items), \
     &(vec)->items[(vec)->count++])
void *sim_grow(void *items, size_t *capacity, size_t count, size_t len);

/* ---- Programs ------------------------------------------------------------------------------------------------------------ */

typedef enum sim_step_kind {
    SIM_STEP_ACTIVITIES, /* some, and wait for all */
    SIM_STEP_TIMERS,     /* the same */
    SIM_STEP_RACE,       /* an activity against a timer; the other is canceled */
    SIM_STEP_UNTIMER,    /* a short timer cancels a long one */
    SIM_STEP_CANCEL,     /* an activity is canceled after a while, and waited for */
    SIM_STEP_SIGNALS,    /* waits until `count` signals have come in all */
    SIM_STEP_MARKER,
    SIM_STEP_MESSAGE, /* signals or cancels another workflow, and waits to hear of it */
    SIM_STEP_UPSERT,  /* changes memo and search attributes */
    SIM_STEP_CHILDREN,
    SIM_STEP_KIND_COUNT
} sim_step_kind;

typedef struct sim_item {
    int64_t scheduled_id; /* of an activity; of a timer: its started event; 0 = not yet */
    bool ended, cancel_asked;
} sim_item;

enum { SIM_CHILD_INITIATED, SIM_CHILD_STARTED, SIM_CHILD_OVER };

/* The children of one step. Their initiated events follow each other. */
typedef struct sim_brood {
    int64_t first; /* initiated event */
    int count;
    int started, ended; /* or refused */
    unsigned char states[SIM_BROOD_MAX];
} sim_brood;

/* The knowledge of a workflow: everything that its history says. */
typedef struct sim_summary {
    int64_t last_id;
    int64_t last_completed_started; /* started event of the last completed workflow task */
    int64_t last_started;
    int signals;
    bool cancel, marker[SIM_STEPS_MAX], upserted[SIM_STEPS_MAX];
    int continued;           /* times that it has continued as new */
    int32_t run_attempt;     /* of the run in its chain */
    char cron[SIM_CRON_LEN]; /* its schedule */
    sim_item activities[SIM_STEPS_MAX][SIM_ITEMS_MAX];
    sim_item messages[SIM_STEPS_MAX];
    sim_item timers[SIM_STEPS_MAX][SIM_ITEMS_MAX];
    sim_brood broods[SIM_STEPS_MAX];
    int completed; /* updates */
    int accepted_count;
    char accepted[SIM_UPDATES_MAX][SIM_NAME_LEN]; /* updates, and not completed */
} sim_summary;

/* Adds events; false: they do not follow. */
bool sim_summary_add(sim_world *world, sim_summary *summary, hf_str history);
/* The commands that follow from the summary, in the arena. */
void sim_program_commands(sim_world *world, hf_str workflow_id, const sim_summary *summary, hf_arena *arena,
                          hf_pb_command_list *ret_commands);

/* ---- Workers and clients --------------------------------------------------------------------------------------------------- */

typedef struct sim_worker sim_worker;
typedef struct sim_cached {
    char run_id[SIM_RUN_ID_LEN];
    sim_summary summary;
} sim_cached;

typedef struct sim_slot {
    sim_actor actor;
    sim_worker *worker;
    int kind; /* 0 workflow tasks, 1 sticky ones, 2 activities */
    int state;
    sim_call *poll;  /* on its way */
    bool is_put_off; /* its cancel waits for the next portion */
    char token[HF_TOKEN_LEN];
    uint64_t
        task; /* of a workflow task: tasks of its run that workers had got by then, this one included; UINT64_MAX: a
                      later one came before it */
    char run_id[SIM_RUN_ID_LEN], workflow_id[SIM_NAME_LEN];
    sim_summary summary;
    bool heartbeats, is_canceled, is_maybe;
    bool is_left;         /* its activity belongs to no process: the slot stands for somebody who answers later */
    bool is_reserve;      /* it never polls: it is for tasks that come along */
    uint64_t taken;       /* mark: when it got its task */
    uint64_t beat;        /* mark: when its last heartbeat was sent */
    int32_t round;        /* of its activity's attempts */
    bool is_poison;       /* its task is about to end the process */
    int64_t started_time; /* wall ns: when its task was started, which may be before the slot got it */
    int64_t due;          /* mono ns: when its attempt times out */
    int32_t attempt;
    int64_t scheduled_id, started_id;
    int64_t previous_id; /* previous_started_event_id of the task */
    char page[HF_TOKEN_LEN];
    size_t page_len; /* where its history goes on; 0 = from the start */
    uint64_t answer; /* index of its log */
    bool has_answer;
    size_t record; /* of world->records: that its activity published last */
    bool has_record;
    int query_count, update_count; /* that came with its task */
    char queries[SIM_QUERIES_MAX][48];
    char updates[SIM_UPDATES_MAX][SIM_NAME_LEN];
    int64_t update_event; /* behind which the updates come */
    uint64_t epoch;       /* answers to calls of an earlier one are void */
} sim_slot;

struct sim_worker {
    int index, queue;
    bool in_process, run_ahead, sticky;
    int64_t away_until; /* mono ns */
    char identity[SIM_NAME_LEN], sticky_queue[SIM_NAME_LEN];
    sim_slot slots[SIM_SLOTS];
    SIM_VEC(sim_cached) cache;
    uint64_t shutdowns; /* so far: each worker that follows has another key */
};

/* An activity that a worker got from a queue. */
typedef struct sim_given {
    int queue;
    uint64_t opened; /* life of the process */
    int64_t time;    /* wall ns: when it was handed out */
    uint64_t task;   /* a hash of which attempt it is */
} sim_given;

typedef struct sim_client {
    sim_actor actor;
    int index;
    uint64_t number; /* of its next operation */
    uint64_t op;     /* index of the one it is at */
    bool busy;       /* it is at an operation */
    bool watching;   /* a long poll of a history is on its way */
    char page[64];   /* where that goes on */
    size_t page_len;
} sim_client;

/* Queries and updates, one after the other. */
typedef struct sim_asker {
    sim_actor actor;
    int index;
    uint64_t number;
    bool is_waiting;
    bool has_update; /* that nobody has answered for good */
    size_t update;
} sim_asker;

typedef struct sim_operator {
    sim_actor actor;
    int index;
    bool is_waiting;
    bool has_control; /* that nobody has answered */
    bool has_answer;  /* the same */
    size_t control;
    uint64_t answer; /* index of the log */
} sim_operator;

/* ---- Resets ------------------------------------------------------------------------------------------------------------------ */

enum { SIM_RESET_CLIENTS = 3, SIM_RESET_FAMILIES = 2, SIM_RESET_CHILDREN_MAX = 24 };

typedef enum sim_reset_kind {
    SIM_RESET_START,
    SIM_RESET_SIGNAL,
    SIM_RESET_UPDATE,
    SIM_RESET_RESET,
    SIM_RESET_DELETE,
    SIM_RESET_DESCRIBE,
    SIM_RESET_TERMINATE
} sim_reset_kind;

/* Something that a client wants, until it is answered. */
typedef struct sim_reset_op {
    sim_reset_kind kind;
    int family;
    char workflow_id[SIM_NAME_LEN];
    char request_id[SIM_NAME_LEN];
    char run_id[SIM_RUN_ID_LEN]; /* run that it names; empty = the current one */
    char made[SIM_RUN_ID_LEN];   /* run that it was answered with */
    bool is_answered, is_acked;
    bool has_answer; /* an earlier call with this request id was acknowledged: `made` */
    int point;       /* event; -1 the first workflow task, -2 the last */
    int exclude;     /* ResetReapplyExcludeType; 0 = none */
} sim_reset_op;

typedef struct sim_reset_client {
    sim_actor actor;
    bool is_waiting, is_busy;
    size_t op;
    int sweep; /* at the end: workflows that it has terminated */
} sim_reset_client;

typedef struct sim_resets {
    bool is_on;
    sim_reset_client clients[SIM_RESET_CLIENTS];
    sim_actor worker;
    bool is_polling;
    uint64_t numbers;
    SIM_VEC(sim_reset_op) ops;
    int children;                       /* that were started */
    bool has_deletes;                   /* its runs may be gone ... */
    bool asks_deletes;                  /* ... because its clients delete some */
    int64_t newest[SIM_RESET_FAMILIES]; /* number of the newest run that a client knows */
} sim_resets;

/* ---- Batches ----------------------------------------------------------------------------------------------------------------- */

enum { SIM_BATCHES_MAX = 6, SIM_CROWD_MAX = 9 };

typedef enum sim_batch_kind {
    SIM_BATCH_SIGNAL,
    SIM_BATCH_OPTIONS,
    SIM_BATCH_CANCEL,
    SIM_BATCH_TERMINATE,
    SIM_BATCH_DELETE,
    SIM_BATCH_RESET,
    SIM_BATCH_ATTRIBUTE, /* signals, by a query that may become wrong */
    SIM_BATCH_UNPAUSE,   /* from here on: about activities (work.c) */
    SIM_BATCH_ACTIVITY_RESET,
    SIM_BATCH_ACTIVITY_OPTIONS
} sim_batch_kind;

/* The activity of a run of the crowd. Marks number what the client has sent and heard; 0 = never. */
typedef struct sim_crowd_work {
    char token[HF_TOKEN_LEN]; /* of the workflow task that schedules it, then of its first attempt */
    size_t token_len;
    uint64_t known;       /* the client has learned that it is there ... */
    uint64_t failed;      /* ... and that its first attempt has failed */
    uint64_t pause_sent;  /* the last pause */
    uint64_t pause_heard; /* ... and its answer: it was paused then */
    uint64_t looked;      /* it was described, or is gone */
    int pauses;           /* that were acknowledged: before each it was not paused */
} sim_crowd_work;

typedef struct sim_crowd_run {
    char name[SIM_NAME_LEN];
    int space; /* index of its namespace */
    bool is_asked, is_acked, is_ended;
    bool is_eager; /* its start asks for its first workflow task */
    sim_crowd_work work;
} sim_crowd_run;

typedef struct sim_batch {
    int64_t asked; /* wall ns: its start was sent for the first time */
    int tries;     /* times that it was sent */
    bool is_again; /* a start may have come after the batch was forgotten, and started another one of its id */
    char id[SIM_NAME_LEN];
    sim_batch_kind kind;
    bool is_list, is_asked, is_acked, is_stopping, is_stopped;
    int rate;
    unsigned before;    /* bit i: run i was acknowledged before it was asked for */
    size_t listed;      /* runs that there were then */
    int64_t stopped_at; /* wall ns: its stop was acknowledged */
    int32_t state;      /* as it was last described */
    int64_t acted;      /* the same: on so many runs */
    int64_t refused;    /* the same: runs that have refused it */
    uint64_t sent;      /* mark: it was sent for the first time ... */
    uint64_t over;      /* ... and is known to have ended; 0 = not yet */
    bool is_complete;   /* the same: it has reached all of its runs */
    bool keeps_paused;  /* a reset of activities that unpauses none */
    bool is_by_type;    /* about the activities of a type; else about all */
} sim_batch;

typedef struct sim_batches {
    bool is_on;
    sim_actor actor;
    bool is_waiting;
    int what;            /* that it does or will do next */
    size_t index;        /* about this run or batch */
    bool adds_for_batch; /* the attribute is for the batch that comes next */
    sim_crowd_run runs[SIM_CROWD_MAX];
    size_t run_count;
    sim_batch items[SIM_BATCHES_MAX];
    size_t count;
    bool has_ends;    /* some batch ends runs */
    bool has_resets;  /* some batch resets them */
    bool has_options; /* some batch changes options ... */
    bool is_doomed;   /* a namespace is to be deleted */
    bool is_gone;     /* it was registered again after that */
    bool has_work;    /* runs of the crowd have activities, and most batches are about these */
    uint64_t marks;   /* things that the client has sent and heard, in their order */
    size_t pause;     /* number of the last pause */
    size_t teased;    /* the run that it was for, which gets ... */
    int teases;       /* ... so many more in a row */
} sim_batches;

/* ---- The world --------------------------------------------------------------------------------------------------------------- */

typedef struct sim_request {
    hf_store_request *request;
    int64_t execute_at, done_at; /* mono ns */
    bool is_executed;
} sim_request;

/* A row that the engine reads damaged. */
typedef struct sim_damage {
    hf_table table;
    char text[64]; /* of its key */
    int64_t a, b;  /* the same */
    int64_t run;   /* number of the run it belongs to */
    char workflow_id[SIM_NAME_LEN];
    size_t log;    /* index of its log */
    size_t at;     /* byte of the value */
    char flip;     /* bits of it; 0 = the value ends there */
    bool is_there; /* neither restored nor overwritten; the others are kept until the engine opens again */
} sim_damage;

typedef struct sim_name {
    char text[SIM_NAME_LEN];
} sim_name;

typedef struct sim_options {
    FILE *trace;     /* NULL = none */
    bool sqlite;     /* the store is SQLite on a simulated disk */
    bool is_failing; /* with sqlite: syncs of that disk fail, and processes die between them (troubles.c) */
    bool is_normal;  /* with is_failing: durability normal, and no power cut in the world itself */
    /* Called before a commit is executed; may be NULL. */
    void (*on_commit)(sim_world *world, const hf_store_request *request);
    /* Called when the disk was made and is still empty, and before it is freed (`goes`); may be NULL. */
    void (*on_disk)(sim_world *world, bool goes);
    /* Called when the store was opened again and has the commits up to `last`, while the world still tells what was known before; may be NULL. */
    void (*on_reopen)(sim_world *world, uint64_t last);
    void *state; /* for these functions */
} sim_options;

struct sim_world {
    uint64_t seed;
    sim_options options;
    sim_knobs knobs;
    hf_rng rng;
    hf_allocator memory;
    hf_allocator core_memory; /* memory of the engine; may fail */
    int64_t nomem_left;       /* its allocations until one fails; 0 = none does */
    bool is_out_of_memory;    /* one has failed in this life */
    size_t memory_used;
    int64_t mono, wall_offset, wall_offset_max;
    int64_t portion_end; /* mono: until then tasks do not meet polls */
    hf_store *store;
    hf_store view;          /* of the store, as the engine gets it: with damaged records */
    void *disk;             /* of SQLite */
    hf_core *core;          /* NULL while the process is down */
    uint64_t opened;        /* lives so far */
    uint64_t executed;      /* last commit that the store executed */
    uint64_t asked;         /* last commit that the store got and did not refuse: it may be there */
    uint64_t durable;       /* last commit that must survive a power cut */
    bool is_store_gone;     /* the store failed and answers nothing more, or its process is dead */
    uint64_t kill_at;       /* change of the disk at which the process dies; 0 = none */
    uint64_t troubles;      /* of the disk, met so far */
    uint64_t failed_before; /* troubles and failed calls of the disk, when the store was last opened */
    hf_rng trouble_rng;     /* separate, so that the world is the same without troubles until the first happens */
    int lists_left;         /* sim_judge_lists waits for so many answers */
    int64_t listed;         /* runs of its list; -1 = it has no answer */
    bool is_told_wrong;     /* a store request of this life failed by intent */
    bool was_left_open;     /* the life before ended without closing the store */
    bool
        is_poorer; /* commits that durability normal does not guarantee are lost: the world has ended without a fault */
    bool is_healed;
    bool is_sealing; /* a seal is planned */
    bool is_over;
    SIM_VEC(sim_event) events; /* a heap */
    uint64_t events_order;
    SIM_VEC(sim_request) requests; /* first in, first out, from requests_first */
    size_t requests_first;
    sim_call *answered, *answered_last;
    sim_client clients[SIM_CLIENTS_MAX];
    sim_worker workers[SIM_WORKERS_MAX];
    sim_asker askers[SIM_ASKERS_MAX];
    sim_operator operators[SIM_OPERATORS_MAX];
    uint64_t asked_inputs; /* calls of these, and their answers */
    sim_actor janitor, fate, decay;
    int janitor_at, janitor_open;
    int64_t janitor_pause; /* ns: longer with each round */
    bool janitor_waits;
    bool janitor_ends; /* the workflow takes no more signals: it is terminated */
    uint64_t janitor_number;
    int janitor_round;
    unsigned endless;              /* workflows with starts whose chains do not end by themselves, a bit for each */
    bool is_zoning;                /* the rules of a time zone are on their way */
    SIM_VEC(sim_name) child_names; /* workflow ids of children */
    SIM_VEC(sim_op) ops;
    SIM_VEC(sim_update) updates;
    SIM_VEC(sim_option) options_seen; /* by the judge */
    SIM_VEC(sim_given) given;
    SIM_VEC(sim_answer) answers;
    SIM_VEC(sim_delivery) deliveries;
    SIM_VEC(sim_control) controls;
    SIM_VEC(sim_activity) activities;
    SIM_VEC(sim_pause) pauses;
    uint64_t marks; /* things that happened to activities, in their order */
    SIM_VEC(sim_suspect) suspects;
    SIM_VEC(sim_run_log) runs;
    bool is_retaining; /* runs go by themselves: any run may be gone that has ended */
    bool is_settled;   /* ... and all that do have gone */
    SIM_VEC(sim_retired) retired;
    uint64_t namespaces_known; /* bit n: "space<n>" was registered */
    SIM_VEC(sim_record) records;
    char cursor[64]; /* of the feed of changes */
    size_t cursor_len;
    SIM_VEC(sim_description) descriptions;
    SIM_VEC(sim_damage) damages;
    sim_resets resets;
    sim_batches batches;
    uint64_t deletes[SIM_WORKFLOWS_MAX];   /* deletions that were asked for, by workflow */
    int64_t gone_below[SIM_WORKFLOWS_MAX]; /* runs of a workflow with smaller numbers may be deleted */
    int64_t run_next;                      /* number of the next run, when there was a core */
    uint64_t damage_met;                   /* times a damaged record was read */
    SIM_VEC(int64_t) unhealthy;            /* wall ns: pairs of from and to; timers may be late there */
    uint64_t hash;                         /* of everything that happened */
    uint64_t steps;
    uint64_t still; /* steps since time last moved */
    uint64_t crashes;
    sim_totals totals;
    bool failed;
    char why[800];
};

/* Runs one seed. False: `ret_why` says what went wrong. */
bool sim_run(uint64_t seed, sim_options options, sim_totals *totals, uint64_t *ret_hash, char *ret_why, size_t why_len);

void sim_fail(sim_world *world, const char *format, ...) HF_PRINTF(2, 3);
void sim_trace(sim_world *world, const char *format, ...) HF_PRINTF(2, 3);
static inline void sim_fault(sim_world *world, hf_sim_fault fault)
{
    world->totals.faults[fault]++;
}
static inline bool sim_chance(sim_world *world, int permille)
{
    return hf_rng_permille(&world->rng, permille);
}
/* A process that ends every moment gets nothing done, and its callers only repeat their calls. From one of these bounds on it is left alone. */
enum {
    SIM_OPENED_MANY = 1000, /* lives of the process */
    SIM_STEPS_MANY = 100000 /* steps of the world: a quarter of those that it may take before it is healed */
};
static inline bool sim_is_left_alone(const sim_world *world)
{
    return world->opened >= SIM_OPENED_MANY || world->steps >= SIM_STEPS_MANY;
}
/* Whether a fault happens: never once the world is healed. */
static inline bool sim_evil(sim_world *world, int permille)
{
    return !world->is_healed && !sim_is_left_alone(world) && hf_rng_permille(&world->rng, permille);
}
/* 0 <= result <= most */
static inline int64_t sim_upto(sim_world *world, int64_t most)
{
    return most > 0 ? (int64_t)hf_rng_below(&world->rng, (uint64_t)most + 1) : 0;
}
hf_clock sim_now(const sim_world *world);

/* calls.c */
sim_call *sim_call_new(sim_world *world, hf_method method, sim_actor *actor, void (*then)(sim_world *, sim_call *));
void sim_call_submit(sim_world *world, sim_call *call);
/* Whether the answer leaves open whether the operation happened. */
bool sim_is_lost(const sim_call *call);
void sim_call_free(sim_world *world, sim_call *call);
/* Calls that the core has just decided learn which commit they wait for. */
void sim_note_commits(sim_world *world);

/* world.c */
void sim_wake_at(sim_world *world, sim_actor *actor, int64_t mono);
void sim_wake_in(sim_world *world, sim_actor *actor, int64_t span);
bool sim_world_open(sim_world *world);
void sim_world_crash(sim_world *world);
/* The process ends, with the store as it is, and opens again soon. */
void sim_world_restart(sim_world *world);
/* When the next step is; INT64_MAX = nothing is to happen. */
int64_t sim_world_next(sim_world *world);
/* One event. False: there is none, or the seed has failed. */
bool sim_world_step(sim_world *world);
/* Steps until nothing of the core is on its way to the store, and no deletion is. False: that takes too long. */
bool sim_world_rest(sim_world *world);
void sim_world_free(sim_world *world);

/* store.c: which store, and what a crash does to it */
bool sim_store_open(sim_world *world);
void sim_store_crash(sim_world *world);
void sim_store_upkeep(sim_world *world); /* after a commit: checkpoints, now and then */
void sim_store_close(sim_world *world);
/* Opens SQLite on the world's disk; the store is closed. */
hf_status sim_store_try_open(sim_world *world, hf_op *op);

/* troubles.c: a disk whose syncs fail (options.is_failing) */
/* Between two commits: maybe plans the next trouble. */
void sim_trouble_plan(sim_world *world);
/* No more troubles from now on. */
void sim_trouble_clear(sim_world *world);
/* Before a change of the disk: whether the process dies here. Then it is dead. */
bool sim_trouble_kills(sim_world *world, uint64_t change);
/* The process has ended, killed or not. The disk stays as it is, except for writebacks that the kernel fails. Opens the
 * store again. */
void sim_trouble_reopen(sim_world *world);

/* damage.c */
void sim_damage_init(sim_world *world);
void sim_damage_some(sim_world *world);
/* Whether calls for this workflow, or a run of this number, may meet a damaged record since the engine was opened. */
bool sim_is_damaged(const sim_world *world, hf_str workflow_id);
bool sim_is_still_damaged(const sim_world *world, hf_str workflow_id); /* neither restored nor overwritten */
bool sim_is_number_damaged(const sim_world *world, int64_t run);
bool sim_is_history_damaged(const sim_world *world);
/* Whether a call for this workflow was refused because of a damaged record; fails the seed if there is none, or no
 * message. */
bool sim_is_stopped(sim_world *world, const sim_call *call, hf_str workflow_id);
/* Restores all records; true: one was damaged. Runs that were stopped go on when the engine opens again. */
bool sim_restore(sim_world *world);
/* The engine was opened: forgets damages that were restored before. */
void sim_damage_opened(sim_world *world);

/* deletes.c */
/* Whether a client deletes something now. */
bool sim_delete_tempts(sim_world *world);
/* Whom a deletion is for, and its request. */
void sim_delete_choose(sim_world *world, sim_op *op);
void sim_delete_fill(sim_world *world, sim_call *call, sim_op *op);
void sim_delete_answered(sim_world *world, const sim_op *op);
/* The number of the newest run of this workflow that a client knows; 0 = none. */
int64_t sim_newest(const sim_world *world, int workflow);
/* A call for a workflow id was answered with this run, although the newest that was known is another. */
void sim_check_current(sim_world *world, int workflow, hf_str run_id, int64_t newest);
/* Reads a run that was deleted. */
void sim_read_deleted(sim_world *world);
/* At the end: deleted runs are not there, and nothing of them is. */
void sim_judge_deletes(sim_world *world);
bool sim_may_be_gone(const sim_world *world, const char *run_id);
/* The same of a run that was not known when the deletion was asked for. */
bool sim_is_gone_below(const sim_world *world, const sim_run_log *log);
bool sim_had_deletes(const sim_world *world, const char *workflow_id);

/* signal_starts.c: an op of kind SIM_OP_SIGNAL_START is a start and a signal */
static inline bool sim_op_starts(const sim_op *op)
{
    return op->kind == SIM_OP_START || op->kind == SIM_OP_SIGNAL_START;
}
static inline bool sim_op_signals(const sim_op *op)
{
    return op->kind == SIM_OP_SIGNAL || op->kind == SIM_OP_SIGNAL_START;
}
/* Whether a client that is about to start or signal does both. */
bool sim_signal_start_tempts(sim_world *world);
void sim_signal_start_choose(sim_world *world, sim_op *op);
/* Its request, made of that of a start. */
void sim_signal_start_fill(sim_call *call, const sim_op *op);
/* It was taken: the run that the answer names. */
hf_str sim_signal_start_answered(sim_world *world, const sim_call *call);
/* Whether a signal event is that of such an operation. */
bool sim_is_signal_start(const sim_world *world, hf_str request_id);
/* I1, I2, I9, of one whose outcome is known: the signal is in the run that the answer named (`is_there`), and in no run if it was refused. */
void sim_judge_signal_start(sim_world *world, const sim_op *op, bool is_there, bool is_anywhere);

/* queues.c */
void sim_poll_workflow_as(sim_call *call, const sim_worker *worker, hf_pb_poll_workflow_task_queue_request *request);
void sim_poll_activity_as(sim_call *call, const sim_worker *worker, hf_pb_poll_activity_task_queue_request *request);
/* Whether tasks may wait beside polls because there is no token. */
bool sim_is_rated(const hf_core *core, const hf_queue *queue);
/* A worker got an activity; NULL = it came along with the task of its workflow. */
void sim_rate_saw(sim_world *world, const sim_worker *worker, const hf_pb_poll_activity_task_queue_response *response);
void sim_shut_down(sim_world *world, sim_worker *worker);
void sim_describe_queue(sim_world *world);
void sim_judge_queues(sim_world *world);

/* options.c */
bool sim_options_tempt(sim_world *world);
void sim_options_fill(sim_call *call, const sim_op *op);
void sim_attach_choose(sim_world *world, sim_op *op);
void sim_attach_fill(sim_call *call, const sim_op *op, hf_pb_start_workflow_execution_request *request);
void sim_saw_options(sim_world *world, size_t run, const hf_pb_history_event *event);
void sim_judge_options(sim_world *world);

/* retention.c */
void sim_keep_all(sim_world *world); /* no run goes by itself any more */
/* Whether a run that is started now is kept for a span of its own. */
void sim_keep_tempts(sim_world *world, hf_pb_start_workflow_execution_request *request);
/* Whether a client changes the retention now. */
bool sim_retention_tempts(sim_world *world);
/* Before a commit is executed: runs that it deletes. */
void sim_retention_commit(sim_world *world, const hf_store_request *request);
bool sim_is_retired(const sim_world *world, const char *run_id);
/* At the end: from now on only runs that went may be gone. */
void sim_retention_settle(sim_world *world);
/* lists.c: asks for a list, a count, or something of the registry */
void sim_list(sim_world *world);
/* After the faults: a list and a count of all runs, I15. */
void sim_judge_lists(sim_world *world);
/* streams.c: what workers publish, with their answers; and readers of it, of changes and of task queues */
void sim_publish_task(sim_world *world, sim_call *call, const char *run_id, const char *workflow_id,
                      hf_pb_respond_workflow_task_completed_request *request);
void sim_publish_beat(sim_world *world, sim_call *call, sim_slot *slot,
                      hf_pb_record_activity_task_heartbeat_request *request);
void sim_published(sim_world *world, const sim_call *call, bool is_acked);
size_t sim_published_run(sim_world *world); /* one that has records; SIZE_MAX = none is known */
void sim_read_stream(sim_world *world);
void sim_judge_streams(sim_world *world);
/* reverse.c: reads a history from its end */
void sim_read_back(sim_world *world);

/* workers.c, clients.c */
void sim_workers_init(sim_world *world);
void sim_workers_crashed(sim_world *world);
void sim_clients_init(sim_world *world);
/* The start that comes with an update. */
void sim_fill_update_start(sim_world *world, sim_call *call, int workflow, const char *request_id,
                           hf_pb_start_workflow_execution_request *request);
hf_str sim_copy(sim_call *call, const char *text);
hf_pb_payloads *sim_payload(sim_call *call, const char *text, size_t large);
#define SIM_NAMESPACE "default"

/* oracle.c */
size_t sim_log_run(sim_world *world, hf_str run_id, hf_str workflow_id);
/* Records events of a run that a client or worker has seen. `keep`: they are durable. `tail`: how many at the end are
 * not written yet. */
void sim_saw_history(sim_world *world, size_t run, hf_str history, bool keep, int tail);
sim_delivery *sim_saw_task(sim_world *world, bool is_activity, size_t run, int64_t scheduled_id, int32_t attempt);
/* I20: the engine has taken note that the process has left the slot's activity to others; and whether it had of this attempt. */
void sim_left_activity(sim_world *world, const sim_slot *slot);
bool sim_was_left(sim_world *world, size_t run, int64_t number, int32_t attempt);
/* It may be handed out once more. */
void sim_allow_task(sim_world *world, size_t run, int64_t started_id, int32_t attempt);
void sim_saw_answer(sim_world *world, uint64_t answer, const sim_call *call);
/* suspects.c */
void sim_suspect_answered(sim_world *world, const sim_answer *answer);      /* or is about to be */
void sim_suspect_reset(sim_world *world, size_t run, int64_t scheduled_id); /* its attempts begin anew */
void sim_check_alone(sim_world *world);                                     /* engine-U3 */
/* judge.c: after the world has come to rest, reads all histories through the engine and judges. */
void sim_judge(sim_world *world);
/* I16 and ledger-W3, when nothing is on its way. */
void sim_check_rest(sim_world *world);
/* run-R1 to run-R5 of the runs that changed, or of all. */
void sim_check_runs(sim_world *world, bool all);

#endif
