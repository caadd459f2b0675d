/* hf_core: the engine without its threads. Decide, commit, publish (docs/adr/0006).
 *
 * Everything the engine knows, and the pure step over it: an input and the time go in; changes, replies and tasks come out.
 * No clock, no randomness, no I/O, no threads. A driver feeds it: loop.c with real threads, the simulator by seed.
 *
 *     hf_core_call, hf_core_tick ...   decide: changes go to the open batch, answers are kept back with it
 *     hf_core_seal                     the open batch becomes a commit request for the store; the next batch opens
 *     hf_core_done                     that commit is durable: its answers are let go. Also: a row that was asked for is here
 *
 * While one batch commits the next one is decided, on top of the state as if the first had succeeded. If it does not,
 * the whole core is thrown away and a new one is opened from the store (engine-E2).
 *
 * engine-E1  Nothing that depends on a change is let out before the change is durable; the one exception is call->run_ahead.
 * engine-E2  After a failed commit or a failed allocation in a step the core is broken: hf_core_status says so, every call fails.
 * engine-E3  A step changes the runs of one workflow id: a start may end the run before it. What it does to others are messages
 *     (machines/external.c). Inputs for a run that is not in memory wait, in order, until it is loaded.
 * engine-E4  A run stays in memory while it is loading, while it has changes that are not in its rows, and while a commit with
 *     changes of it is on its way.
 * engine-E5  What is needed to find work after a crash is in the store: due rows, task rows, journal; never the whole of the runs.
 * engine-E6  The outcome depends on the inputs and their order alone: no walk over a hash table, no address, no clock. */
#ifndef HF_ENGINE_CORE_H
#define HF_ENGINE_CORE_H

#include "base/rng.h"
#include "base/siphash.h"
#include "engine/filter.h"
#include "engine/machines/machines.h"
#include "engine/probe.h"
#include "engine/slot.h"
#include "ledger/kept.h"
#include "ledger/names.h"
#include "service/service.h"
#include "store/store.h"

typedef struct hf_clock {
    int64_t wall; /* ns since 1970: deadlines of runs, times of events */
    int64_t mono; /* ns: how long a poll waits */
} hf_clock;

enum { HF_CALL_BUCKETS = 256 }; /* calls that are not done, by number: a cancel looks for one */
#define HF_CORE_MEM_DEFAULT ((size_t)64 << 20)

/* What one run or one call may have; 0 = as base/limits.h says. Smaller ones let tests meet them. */
typedef struct hf_core_limits {
    size_t payload_len;    /* bytes of users' data in one place */
    int64_t history_count; /* events of a run, which is terminated then */
    int64_t history_len;   /* bytes of them; the same */
    size_t pending;        /* activities, timers and messages of a run, of each kind */
    size_t buffered_count; /* events that wait for a started workflow task */
    size_t buffered_len;   /* bytes of those */
    int64_t signals;       /* of a run */
} hf_core_limits;

typedef struct hf_core_options {
    hf_allocator memory;       /* of everything; used by the thread that drives the core */
    hf_allocator store_memory; /* for answers of the store, which its thread fills; 0 = `memory` */
    size_t mem_max;            /* bytes of state in memory; 0 = HF_CORE_MEM_DEFAULT */
    size_t journal_len_max;    /* bytes of journal that a crash may have to read; 0 = by mem_max, at most 32 MiB */
    size_t batch_len_max;      /* bytes of old runs' rows in one commit; 0 = 4 MiB */
    size_t open_len_max;       /* bytes of changes from which on the open batch is full; 0 = an eighth of mem_max */
    int64_t poll_span;         /* ns: a poll without a timeout of its own is answered empty; 0 = 60 s */
    int64_t history_span;      /* ns: the same for a history long poll; 0 = 20 s */
    int64_t due_window;        /* ns: deadlines on disk are read so far ahead; 0 = 60 s */
    size_t page_max;           /* rows of one read of the backlog or the deadlines; 0 = 256 */
    size_t history_page_len;   /* bytes of history in one answer; 0 = HF_HISTORY_PAGE_LEN */
    size_t tail_len_max;       /* bytes of events that a run's own row may hold; 0 = 3 KiB, what fits a page with it */
    size_t row_len_max;        /* bytes of events after which a history row is full; 0 = 128 KiB */
    size_t names_max;          /* names kept in memory before they go to their table; 0 = by mem_max, at most 64 Ki */
    unsigned name_bits_off;    /* of the hash of a name, for tests: many names then have the same one */
    size_t ended_max;     /* runs that have ended and stay in memory; 0 = 512, what the processor's caches can hold */
    size_t tick_max;      /* runs that one tick fires deadlines of; 0 = 512, some milliseconds of work */
    int64_t queue_span;   /* ns: how long a task queue is kept that nobody uses; 0 = 5 minutes */
    size_t queues_max;    /* task queues kept though nobody uses them; 0 = 10,000 */
    uint64_t trim_count;  /* commits that leave the journal at once, unless it is long; 0 = 64 */
    uint64_t incarnation; /* of a process that opens its store again; 0 = a new process */
    bool was_left_open;   /* the process that had the store before did not close it: engine-U2 in suspect.c */
    hf_core_limits limits;
    hf_log_sink log; /* is told of runs that come near to a limit, once that is durable; NULL = nobody is */
    void *log_state;
    unsigned char seed[HF_SIPHASH_KEY_LEN]; /* for run ids; never the same twice */
} hf_core_options;

/* A workflow id: which run is the current one. */
struct hf_name {
    hf_map_node by_text;
    hf_node want_link; /* of HF_SLOT(run)->wanted_as, while a run that may be the current one is loaded */
    hf_owned text;     /* namespace, 0x1f, workflow id */
    hf_run *run;       /* the current one, when it is in memory */
    bool loading;      /* it is being looked for */
    bool fresh;        /* nobody has looked for it yet */
    int64_t bad_run;   /* the run that is found cannot be read; 0 = fine */
    bool in_table;     /* loading: no run in memory's part of the index, now the table is asked */
    int64_t below;     /* loading: runs from this number on have another name */
    hf_list waiting;   /* calls */
};

/* A task queue: namespace, kind and name. */
struct hf_queue {
    hf_map_node by_text;
    hf_node all_link;     /* of core->queues_all, by used_at */
    hf_node marked_link;  /* of core->queues_marked, when something has come in this step */
    hf_owned text;        /* kind ('w' or 'a'), namespace, 0x1f, name: also its key in the task table */
    hf_list tasks;        /* hf_task, by order */
    hf_list cold;         /* hf_cold: tasks read from the table, whose runs may not be in memory; by order */
    hf_list polls;        /* hf_call that wait here, first come first served */
    size_t task_count;    /* of `tasks` */
    size_t suspect_count; /* tasks of this queue in core->suspects */
    size_t poll_count;
    bool disk;          /* the table may have tasks beyond `disk_after` */
    bool reading;       /* a page of it is being read */
    bool missed;        /* a task went to the table meanwhile: the page may be without it */
    int64_t disk_after; /* tasks up to this order were read */
    bool shut;          /* its worker is gone: until somebody polls again, tasks go to the normal queue instead */
    size_t loads;       /* runs that are being loaded for it */
    int64_t polled_at;  /* mono ns: when somebody last polled, for sticky queues */
    int64_t used_at;    /* mono ns: when it was made, polled, or last found busy */
};

/* A task in the table whose run is not in memory. */
typedef struct hf_cold {
    hf_node link;
    hf_queue *queue;
    int64_t run;
    int64_t scheduled_id;
    int64_t order;
} hf_cold;

/* The suspect that a worker of this process has, as long as that worker gets nothing else (suspect.c). */
typedef struct hf_alone {
    int64_t run;          /* 0 = there is none */
    int64_t scheduled_id; /* of the activity; 0 = the workflow task */
    int64_t stamp;        /* its started_time */
    int32_t attempt;
    int64_t since; /* ns: when it was handed out */
    int64_t until; /* mono ns */
} hf_alone;

/* A deadline of a run that is not in memory. */
typedef struct hf_cold_due {
    hf_heap_node due;
    hf_map_node by_run;
    int64_t run;
} hf_cold_due;

/* Calls that wait for a run's next events or its end. They do not hold the run in memory. */
typedef struct hf_history_watch {
    hf_map_node by_number;
    int64_t run;
    hf_list calls;
} hf_history_watch;

/* A commit on its way. */
typedef struct hf_commit_batch {
    hf_store_request request;
    hf_writes writes;
    hf_buf journal;  /* the journal row, made where it stays */
    hf_list replies; /* calls that are answered once it is durable */
    hf_list notices; /* hf_notice: lines of the log, likewise */
} hf_commit_batch;

/* Where a history goes on. In a next_page_token, sealed (token.c). */
typedef struct hf_page {
    int64_t run;     /* its number: a history goes on with the run it began with */
    int64_t next;    /* first event of the next page */
    int64_t last;    /* of a workflow task: no events beyond this one; 0 = whatever there is by then */
    int32_t attempt; /* of a transient workflow task, whose two events come behind the last one; 0 = none */
    int64_t stamp;   /* the same task's started_time */
} hf_page;

/* Events for an answer, and where they go. */
typedef struct hf_page_want {
    hf_page page;        /* `next` moves on as events are found */
    int64_t to;          /* the last event wanted */
    size_t count_max;    /* so many of them */
    bool open_end;       /* there will be more: the last page has a token, too */
    hf_str extra;        /* behind the last event: those of a transient task */
    hf_str *ret_history; /* in the response */
    hf_str *ret_token;   /* the same */
} hf_page_want;

/* A question to the store. */
typedef enum hf_read_kind {
    HF_READ_NAME,
    HF_READ_RUN,
    HF_READ_HISTORY,
    HF_READ_TASKS,
    HF_READ_DUE,
    HF_READ_FILTER
} hf_read_kind;

typedef struct hf_read {
    hf_store_request request;
    hf_node link; /* of core->reads */
    hf_arena arena;
    hf_read_kind kind;
    hf_name *name;     /* NAME */
    hf_run *run;       /* RUN */
    hf_queue *queue;   /* TASKS */
    hf_call *call;     /* HISTORY */
    int64_t from, to;  /* HISTORY: last event in rows; DUE: end of the window; TASKS: disk_after when it was asked */
    hf_page_want want; /* HISTORY */
    hf_owned tail;     /* HISTORY: what comes behind those in the table */
    hf_owned key;      /* TASKS: text of the key */
} hf_read;

struct hf_core {
    hf_core_options options;
    hf_allocator memory;       /* counts into `used` */
    hf_run_memory runs_memory; /* the same, for runs; what it cannot give breaks the core (engine-E2) */
    hf_effects effects;        /* of the change that is being applied */
    size_t used;               /* bytes allocated by the core */
    hf_status status;          /* engine-E2; sticky */
    char why[HF_MESSAGE_LEN_MAX];
    hf_clock now;     /* of the input that is being decided */
    hf_arena scratch; /* of one input */
    hf_op op;         /* of one input */

    hf_map runs; /* by number */
    hf_list runs_all;
    hf_list lru;   /* runs that may be dropped, longest unused first */
    hf_list ended; /* the same of those that have ended: who asks for them asks soon */
    size_t ended_count;
    hf_list dirty;   /* runs with changes that are not in rows, by commit_dirty */
    hf_list touched; /* runs with changes in the open batch */
    hf_map names;
    hf_names index;     /* of names that are not in their table yet */
    hf_filter filter;   /* which names have runs with rows */
    hf_key filter_next; /* where it reads on */
    bool filter_again;  /* it grew while it read */
    hf_map queues;
    hf_list queues_all;
    hf_list queues_marked; /* in which tasks and polls may meet at the end of the step */
    hf_map watches;
    hf_heap due;           /* hf_run.due */
    hf_heap cold_due;      /* hf_cold_due */
    hf_map cold_runs;      /* the same, by run: at most one each, and none once its run is in memory */
    size_t due_loads;      /* runs that are being loaded for their deadlines */
    size_t fired;          /* runs of the open batch that a deadline has changed */
    int64_t due_until;     /* deadlines on disk before this, and at it ... */
    int64_t due_until_run; /* ... before this run, were read */
    bool due_reading;
    int64_t due_reading_to; /* ... up to here: rows that are written meanwhile may be missing in the answer */
    bool due_on_disk;       /* the table may have some */
    bool tasks_on_disk;     /* the same of waiting tasks: new queues look */
    hf_heap polls;          /* hf_call by deadline, of those that wait for a time of their own; the others, in order: */
    hf_list task_polls;     /* for options.poll_span */
    hf_list history_polls;  /* for options.history_span */

    hf_commit_batch batches[2];
    int open_idx;         /* which of them collects */
    bool committing;      /* the other one is on its way */
    size_t open_len;      /* bytes of changes in the open batch */
    uint64_t commit_next; /* number of the open batch */
    uint64_t commit_durable;
    uint64_t commit_first; /* of this opening */
    size_t ahead; /* workflow tasks that went out before the open batch and are not answered: a driver may hold it
                              back for a moment, so that their answers come with it */
    uint64_t journal_hash; /* of the last commit, for the chain */
    int64_t run_next;      /* number of the next run */
    int64_t order_next;    /* of the next task */
    uint64_t calls;        /* order of arrival */
    uint64_t run_ids;      /* made so far */
    uint64_t incarnation;  /* of this opening */
    unsigned char mac_key[HF_SIPHASH_KEY_LEN];
    bool meta_dirty;

    /* The journal that a crash would have to read: lengths of its commits. */
    uint64_t journal_first; /* oldest commit that is kept */
    HF_VEC(uint32_t) journal_lens;
    size_t journal_start; /* index in journal_lens of journal_first */
    size_t journal_len;   /* sum */

    hf_list reads;
    hf_list ahead_replies;                                  /* answers that do not wait for the open batch */
    hf_list suspects;                                       /* hf_task that waits to be handed out last: engine-U3 */
    hf_alone alone;                                         /* the one that was */
    int64_t suspects_look;                                  /* mono ns: when to look at them next */
    hf_list inbox;                                          /* messages that were not looked at yet */
    hf_list calls_all;                                      /* not done, in order of arrival */
    hf_buf row;                                             /* scratch for a row */
    hf_buf events;                                          /* scratch for events */
    void (*submit)(void *state, hf_store_request *request); /* for reads */
    void *submit_state;

    uint64_t step;        /* number of the input that is being decided */
    uint64_t transitions; /* runs changed by an input, since open */
    uint64_t run_commits; /* runs changed by a commit: one that changed twice with it counts once */
    uint64_t event_total; /* history events, since open */
    uint64_t probes[HF_PROBE_COUNT];

    /* Calls that are not done, by hf_call.number; without the messages that runs send each other. */
    hf_list calls_by_number[HF_CALL_BUCKETS];
};

/* Reads the store synchronously: journal, counters, held tasks. Fails: HF_ERR_INVALID (a record does not check),
 * HF_ERR_NOMEM, what the store says. The first commit of the core (hf_core_seal) writes the new incarnation. */
hf_status hf_core_open(hf_op *op, const hf_core_options *options, hf_store *store, hf_clock now, hf_core **ret_core);
/* Calls that were not answered must have been failed by hf_core_stop; reads on their way must have come back. */
void hf_core_free(hf_core *core);
/* Every call that waits is answered with `status`; the core takes no more. */
void hf_core_stop(hf_core *core, hf_status status, const char *why);

void hf_core_call(hf_core *core, hf_call *call, hf_clock now);
/* The call of this number that is not done; NULL = there is none. */
hf_call *hf_core_find_call(const hf_core *core, uint64_t number);
void hf_core_cancel(hf_core *core, hf_call *call, hf_clock now);
void hf_core_unwanted(hf_core *core, hf_str task_token, hf_clock now);
/* Deadlines that have come, no more than tick_max at a time; polls that waited long enough. */
void hf_core_tick(hf_core *core, hf_clock now);
/* The open batch has so many changes that it is to be sealed before more calls come: what they bring is in memory three times
 * until it is durable, and a store takes no commit of any length. The driver lets calls wait then. */
bool hf_core_is_full(const hf_core *core);
/* Deadlines have come that no tick has fired yet. */
bool hf_core_is_late(const hf_core *core, hf_clock now);
/* When hf_core_tick has something to do, as wall and monotonic time; INT64_MAX = never. Deadlines that are left over
 * are something to do at once; while the store is free, as soon as the open batch is sealed. */
hf_clock hf_core_next(const hf_core *core);

/* Lets workflow tasks go that do not wait for their commit. hf_core_seal does it too. */
void hf_core_release(hf_core *core);
/* The open batch as a commit, NULL when there is nothing to commit or one is on its way. Answers that need no commit are
 * let go. The request goes to the store, then back to hf_core_done. */
hf_store_request *hf_core_seal(hf_core *core, hf_clock now);
/* A request of hf_core_seal or of `submit` is done. */
void hf_core_done(hf_core *core, hf_store_request *request, hf_clock now);

static inline hf_status hf_core_status(const hf_core *core)
{
    return core->status;
}

/* A hash over the whole state, for "same inputs, same state" (D11). */
uint64_t hf_core_hash(hf_core *core);
/* run-R1 to run-R5 for every run in memory, and run-R3 against its history (rows are read from `store` synchronously). */
hf_status hf_core_check(hf_op *op, hf_core *core, hf_store *store);
hf_status hf_core_check_run(hf_op *op, hf_core *core, hf_store *store, hf_run *run);

/* Where a call is parked. */
enum { HF_PLACE_NONE, HF_PLACE_QUEUE, HF_PLACE_WATCH, HF_PLACE_ELSEWHERE };

/* ---- For the files of this layer ---------------------------------------------------------------------------------- */

hf_core *hf_core_new(const hf_core_options *options); /* empty; NULL: no memory */
/* Whether nothing is broken. Few look at the scratch arena's status when they take from it: what it could not give breaks the
 * core here, before anything that was made with it leaves. */
bool hf_core_is_whole(hf_core *core);
/* The next input, or the next part of one. */
void hf_core_reset_scratch(hf_core *core);
void hf_core_put_meta(hf_core *core, hf_commit_batch *batch);
void *hf_core_alloc(hf_core *core, size_t len); /* cleared; NULL: engine-E2 */
void hf_core_free_mem(hf_core *core, void *ptr, size_t len);
void hf_core_break(hf_core *core, hf_status status, const char *format, ...) HF_PRINTF(3, 4);
#define HF_PROBE(core, probe) ((core)->probes[probe]++)

/* The run is about to change: it becomes part of the open batch. */
void hf_core_touch(hf_core *core, hf_run *run);
/* A worker does not want the task of this token: another one gets it. */
void hf_run_take_back(hf_core *core, hf_run *run, const hf_token *token);
/* May be dropped from memory again, if nothing else holds it. */
void hf_core_unuse(hf_core *core, hf_run *run);
void hf_core_use(hf_core *core, hf_run *run);
void hf_core_evict(hf_core *core); /* down to the budget */

/* Whether a task may be given to this poll before the commit that starts it. Not after an unclean end, and not before the first
 * commit of this opening, which is what the next one sees of an unclean end (engine-U2). */
static inline bool hf_core_runs_ahead(const hf_core *core, const hf_call *call)
{
    return call->run_ahead && call->in_process && !core->options.was_left_open &&
           core->commit_durable >= core->commit_first;
}

/* Answers. `reply` waits for the open batch; a failed call too, since what it says was decided on uncommitted state. */
void *hf_call_response(hf_core *core, hf_call *call); /* cleared, of the method's type; NULL: engine-E2 */
void hf_call_reply(hf_core *core, hf_call *call);
void hf_call_fail(hf_core *core, hf_call *call, hf_status status, const char *format, ...) HF_PRINTF(4, 5);
void hf_call_now(hf_call *call);    /* lets it go at once */
void hf_call_let_go(hf_call *call); /* one of the things that its answer waits for has come */

/* matching.c */
hf_queue *hf_queue_get(hf_core *core, char kind, hf_str namespace_, hf_str name);
hf_queue *hf_queue_by_text(hf_core *core, hf_str text);
hf_queue *hf_queue_find(hf_core *core, char kind, hf_str namespace_, hf_str name); /* NULL: nobody has used it lately */
void hf_queue_free(hf_core *core, hf_queue *queue);
void hf_queue_shut(hf_core *core, hf_queue *queue); /* its worker is gone: its tasks go to their normal queues */
void hf_queues_tidy(hf_core *core);                 /* frees some that nobody uses; only between steps */
void hf_match_add(hf_core *core, hf_task *task, hf_queue *queue);
void hf_match_ready(hf_core *core, hf_run *run, hf_task *task); /* it begins to wait for a worker */
void hf_match_all(hf_core *core);                               /* tasks meet polls: at the end of a step */
void hf_queue_mark(hf_core *core, hf_queue *queue);             /* hf_match_all looks at it */
void hf_match_remove(hf_core *core, hf_task *task);
void hf_match_poll(hf_core *core, hf_call *call);
void hf_match_unpark(hf_core *core, hf_call *call);
/* Gives a waiting task to a poll, which is not parked. */
void hf_match_start(hf_core *core, hf_task *task, hf_call *call);

/* ---- suspect.c: tasks that may take the process down, U1-U3 there ------------------------------------------------------ */

uint32_t
hf_suspect_count(hf_core *core,
                 const hf_task *task); /* of a task whose process has ended: one more, if it did not close the store */
int64_t hf_suspect_pause(uint32_t crashes); /* ns; 0 = none */
bool hf_suspect_is_paused(const hf_core *core, const hf_task *task, int64_t until);
bool hf_task_is_suspect(const hf_task *task);
void hf_suspect_add(hf_core *core, hf_task *task, hf_queue *queue); /* it waits, behind all others */
void hf_suspect_remove(hf_task *task);                              /* of those that wait */
/* Gives one that has waited too long to the first poll of the queue, which has one, though other tasks wait there. */
void hf_suspect_poll(hf_core *core, hf_queue *queue);
void hf_suspects_tick(hf_core *core);          /* whose turn it is */
int64_t hf_suspects_next(const hf_core *core); /* mono ns; INT64_MAX = not by time */

/* ---- poll.c ---------------------------------------------------------------------------------------------------------- */

/* How long a parked poll waits: the call's own time, or `span` as all others in `alike`. */
void hf_poll_park(hf_core *core, hf_call *call, hf_list *alike, int64_t span);
void hf_poll_unpark(hf_core *core, hf_call *call);
hf_call *hf_polls_first(const hf_core *core); /* who ends next, NULL = nobody waits */
void hf_polls_expire(hf_core *core);          /* answers those who have waited long enough */
void hf_match_tasks_read(hf_core *core, hf_read *read);
void hf_match_run_loaded(hf_core *core, hf_run *run);
void hf_match_evicted(hf_core *core, hf_run *run);
bool hf_queue_has_pollers(const hf_queue *queue);
int64_t hf_order_next(hf_core *core);

/* load.c: runs and names that are not in memory */
hf_run *hf_run_find(hf_core *core, int64_t number);
void hf_slot_free(hf_core *core, hf_slot *slot);
hf_run *hf_run_load(hf_core *core, int64_t number); /* in memory, or loading */
hf_run *hf_run_add(hf_core *core, int64_t number);  /* empty */
hf_run *hf_run_create(hf_core *core);               /* with the next number */
void hf_run_remove(hf_core *core, hf_run *run);     /* from memory */
hf_name *hf_name_add(hf_core *core, hf_str namespace_,
                     hf_str workflow_id); /* without asking the store: `fresh` if new */
hf_name *hf_name_get(hf_core *core, hf_str namespace_, hf_str workflow_id); /* known, or loading */
void hf_name_drop(hf_core *core, hf_name *name);                            /* when it says nothing any more */
void hf_name_bind(hf_name *name, hf_run *run); /* its current one; to each its other, whatever they had before */
void hf_load_done(hf_core *core, hf_read *read);
hf_read *hf_read_new(hf_core *core, hf_read_kind kind, hf_table table);
void hf_read_submit(hf_core *core, hf_read *read);
void hf_read_free(hf_core *core, hf_read *read);

/* input.c */
void hf_input(hf_core *core, hf_call *call);                     /* a call whose run may have to be found */
void hf_input_run(hf_core *core, hf_call *call, hf_run *run);    /* its run is here */
void hf_input_name(hf_core *core, hf_call *call, hf_name *name); /* its workflow id is known */

hf_str hf_call_run_id(const hf_call *call); /* the run it names, empty = the current one */

/* due.c */
hf_status hf_due_add_cold(hf_core *core, int64_t time, int64_t run);
void hf_due_forget_cold(hf_core *core, int64_t run); /* it is in memory: its own deadline counts */
bool hf_due_is_full(const hf_core *core);            /* the open batch is to be sealed before more are fired */
void hf_due_at(hf_core *core, hf_run *run, int64_t time);
void hf_due_fire(hf_core *core, hf_run *run);
void hf_due_tick(hf_core *core);
void hf_due_rows_read(hf_core *core, hf_read *read);
int64_t hf_due_read_at(const hf_core *core); /* when more deadlines are to be read; INT64_MAX = not by time */

/* history_read.c */
void hf_history_call(hf_core *core, hf_call *call, hf_run *run);
void hf_history_rows_read(hf_core *core, hf_read *read);
void hf_history_failed(hf_core *core, hf_call *call, const char *why); /* its rows cannot be read */
/* history_page.c: replies with as many of the wanted events as fit a page, and a token for the rest. */
void hf_history_reply(hf_core *core, hf_call *call, hf_run *run, hf_page_want want);
void hf_watch_wake(hf_core *core, hf_run *run); /* new events are there */
void hf_watch_remove(hf_core *core, hf_call *call);
void hf_describe_call(hf_core *core, hf_call *call, hf_run *run);

/* emit.c: writes a decision to the log of its run, applies it, and sees to the effects. */
void hf_event_emit(hf_core *core, hf_run *run, hf_pb_history_event *event);
/* The same, unless a workflow task is started: then the event is buffered. Either way the caller schedules a workflow task. */
void hf_event_emit_or_buffer(hf_core *core, hf_run *run, hf_pb_history_event *event);
void hf_record(hf_core *core, hf_run *run, uint32_t field, const hf_pb_type *type, const void *msg);
void hf_record_str(hf_core *core, hf_run *run, uint32_t field, hf_str bytes);
void hf_record_int(hf_core *core, hf_run *run, uint32_t field, int64_t value);
/* Buffered events become events: completions of activities behind all others. */
void hf_flush_buffered(hf_core *core, hf_run *run);

/* spill.c */
void hf_spill(hf_core *core, hf_commit_batch *batch, hf_run *run);
void hf_spill_old(hf_core *core, hf_commit_batch *batch);
void hf_journal_put(hf_core *core, hf_commit_batch *batch);

/* notice.c: what the log is told of runs and their limits */
typedef enum hf_notice_kind {
    HF_NOTICE_EVENTS,  /* a fifth of the events that a run may have */
    HF_NOTICE_BYTES,   /* the same of the bytes of its history */
    HF_NOTICE_SIGNALS, /* the same of its signals */
    HF_NOTICE_ENDED    /* its history was as long as it may get */
} hf_notice_kind;
/* An event was added to the run's history; so much of each it had before. */
void hf_notice_event(hf_core *core, hf_run *run, int64_t len_before, int64_t signals_before);
/* Which of the two limits the history has reached, how much that is, and what to do: a sentence in `text`. */
void hf_notice_sentence(const hf_core *core, const hf_run *run, char text[HF_MESSAGE_LEN_MAX]);
void hf_notice_gather(hf_core *core, hf_commit_batch *batch,
                      hf_run *run);                         /* what is to be said of it goes with this batch */
void hf_notice_tell(hf_core *core, hf_commit_batch *batch); /* the batch is durable */

/* A version 4 UUID of these bits, as text. */
hf_str hf_uuid(hf_arena *arena, uint64_t high, uint64_t low);

/* token.c */
#define HF_TOKEN_LEN 46
void hf_token_encode(const hf_core *core, const hf_token *token, char bytes[HF_TOKEN_LEN]);
bool hf_token_decode(const hf_core *core, hf_str bytes, hf_token *ret_token);
void hf_page_encode(const hf_core *core, const hf_page *page, char bytes[HF_TOKEN_LEN]);
bool hf_page_decode(const hf_core *core, hf_str bytes, hf_page *ret_page);

/* size.c: users' data */
size_t hf_payloads_len(const hf_pb_payloads *payloads);
size_t hf_message_len(hf_core *core, const hf_pb_type *type, const void *msg); /* on the wire; uses core->row */
bool hf_fits(hf_core *core, size_t len);                                       /* no longer than may be */
bool hf_failure_is_deep(const hf_pb_failure *failure);                         /* more causes than a record may hold */
/* The failure, or one of type TooBig, with the beginning of it as its cause. In core->scratch; NULL: engine-E2. */
hf_pb_failure *hf_failure_fit(hf_core *core, hf_pb_failure *failure);
/* The same, no longer than HF_FAILURE_KEPT_LEN_MAX, and such that the activity is tried again. */
const hf_pb_failure *hf_failure_keep(hf_core *core, const hf_pb_failure *failure);
/* One of type TooBig: `what` is too long and has `len` bytes. The same memory. */
hf_pb_failure *hf_failure_too_big(hf_core *core, const char *what, size_t len);

/* commands.c */
void hf_respond_workflow_task_completed(hf_core *core, hf_call *call, hf_run *run);

#endif
