/* hf_core: the engine without its threads. Decide, commit, publish (docs/adr/0006).
 *
 * Everything the engine knows, and the pure step over it: an input and the time go in; changes, replies and tasks come out.
 * No clock, no randomness, no I/O, no threads. A driver feeds it: loop.c with real threads, the simulator by seed.
 *
 *     hf_core_call, hf_core_tick ...   decide: changes go to the open batch, answers wait with it
 *     hf_core_seal                     the open batch becomes a commit request for the store; the next batch opens
 *     hf_core_done                     that commit is durable: its answers are sent. Also: a read of the store is done
 *
 * While one batch commits the next one is decided, as if the first had succeeded already. If the first fails,
 * the whole core is thrown away and a new one is opened from the store (engine-E2).
 *
 * engine-E1  Nothing that depends on a change is let out before the change is durable; the one exception is call->run_ahead.
 * engine-E2  After a failed commit or a failed allocation in a step the core is broken: hf_core_status says so, every call fails.
 * engine-E3  A step changes the runs of one workflow id: a start may end the run before it. Effects on other runs are messages
 *     (machines/external.c). Inputs for a run that is not in memory wait, in order, until it is loaded.
 * engine-E4  A run stays in memory while it is loading, while it has changes that are not in its rows, and while a commit with
 *     its changes is under way.
 * engine-E5  After a crash, work is found from due rows, task rows and the journal; the runs need not all be read.
 * engine-E6  The outcome depends on the inputs and their order alone: no walk over a hash table, no address, no clock. */
#ifndef HF_ENGINE_CORE_H
#define HF_ENGINE_CORE_H

#include "base/siphash.h"
#include "run/run.h"
#include "service/service.h"
#include "store/store.h"

typedef struct hf_core hf_core;

typedef struct hf_clock {
    int64_t wall; /* ns since 1970: deadlines of runs, times of events */
    int64_t mono; /* ns: how long a poll waits */
} hf_clock;

/* Portions: what a step or a batch takes of work that may be long, so that others never wait for all of it. Each is some milliseconds, for the
 * store, too. A message makes a few events in one run: when a parent ends over 2,000 children, four batches close them, and none is
 * longer than open_len_max and what one message adds. Those of resets are in engine/reset.h. */
enum { HF_TICK_RUNS_MAX = 512, HF_BATCH_MESSAGES_MAX = 512, HF_CANCELS_MAX = 512 };
enum { HF_CALL_BUCKETS = 256 }; /* calls that are not done, by number: a cancel looks for one */
#define HF_CORE_MEM_DEFAULT ((size_t)64 << 20)

/* Limits of one run or one call; 0 = as in history/limits.h. Tests set smaller ones to reach them. */
typedef struct hf_core_limits {
    size_t payload_len;    /* bytes of users' data in one place */
    int64_t history_count; /* events of a run; at the limit the run is terminated */
    int64_t history_len;   /* bytes of its events; the same */
    int64_t suggest_count; /* events from which on a workflow is told to continue as new */
    size_t pending;        /* activities, timers and messages of a run, of each kind */
    size_t buffered_count; /* events that wait for a started workflow task */
    size_t buffered_len;   /* bytes of those */
    int64_t signals;       /* of a run */
    int64_t keep_alive;    /* ns: how long a worker may keep a workflow task alive by asking for the next one */
    int64_t stream_count;  /* records in the stream of a chain */
    int64_t stream_len;    /* their bytes */
    size_t updates;        /* the same */
    size_t updates_in_flight;
} hf_core_limits;

typedef struct hf_core_options {
    hf_allocator memory;       /* of everything; used by the thread that drives the core */
    hf_allocator store_memory; /* for answers of the store, which its thread fills; 0 = `memory` */
    size_t mem_max;            /* bytes of state in memory; 0 = HF_CORE_MEM_DEFAULT */
    size_t journal_len_max;    /* bytes of journal that a crash may have to read; 0 = by mem_max, at most 32 MiB */
    size_t batch_len_max;      /* bytes of old runs' rows in one commit; 0 = 4 MiB */
    size_t open_len_max;       /* bytes of changes from which on the open batch is full; 0 = an eighth of mem_max */
    int64_t poll_span;         /* ns after which a poll without a timeout of its own is answered empty; 0 = 60 s */
    int64_t history_span;      /* ns: the same for a history long poll; 0 = 20 s */
    int64_t due_window;        /* ns: how far ahead deadlines on disk are read; 0 = 60 s */
    size_t page_max;           /* rows of one read of the backlog or the deadlines; 0 = 256 */
    size_t history_page_len;   /* bytes of history in one answer; 0 = HF_HISTORY_PAGE_LEN */
    size_t tail_len_max;       /* bytes of events that a run's own row may hold; 0 = 3 KiB, what fits a page with it */
    size_t part_len_min;       /* bytes from which on a piece of a run's state gets a row of its own; 0 = 1 KiB */
    size_t row_len_max;        /* bytes of events after which a history row is full; 0 = 128 KiB */
    size_t stream_stops_max;   /* earlier runs that a state names for its stream; 0 = HF_STREAM_STOPS_MAX */
    size_t names_max;          /* names kept in memory before they go to their table; 0 = by mem_max, at most 64 Ki */
    unsigned name_bits_off;    /* bits left out of the hash of a name: lets tests meet names with equal hashes */
    size_t ended_max;    /* runs that have ended and stay in memory; 0 = 512, what the processor's caches can hold */
    size_t tick_max;     /* runs that one tick fires deadlines of; 0 = HF_TICK_RUNS_MAX */
    size_t messages_max; /* between runs, of one batch; 0 = HF_BATCH_MESSAGES_MAX */
    size_t cancels_max;  /* calls that are canceled in one portion; 0 = HF_CANCELS_MAX */
    int64_t queue_span;  /* ns: how long an unused task queue is kept in memory; 0 = 5 minutes */
    size_t queues_max;   /* task queues in memory above which unused ones are freed sooner; 0 = 10,000 */
    size_t reset_portion_len;   /* bytes of histories that one step takes for resets; 0 = HF_RESET_PORTION_LEN */
    size_t reset_portion_count; /* events, the same; 0 = HF_RESET_PORTION_COUNT */
    uint64_t trim_count;        /* fewest commits to cut from the journal at once, unless they are long; 0 = 64 */
    uint64_t incarnation;       /* to keep, when a process opens its store again; 0 = a new process */
    size_t
        list_step_max; /* runs and rows that one step of a list or of housekeeping takes; 0 = HF_LIST_RUNS_MAX, HF_LIST_ROWS_MAX and the like */
    int64_t block_size;       /* runs of a block (ledger/blocks.h), always the same for one store; 0 = HF_BLOCK_RUNS */
    bool has_retention;       /* the namespace "default" keeps runs for this long from now on: */
    int64_t retention;        /* ns; 0 = for ever */
    size_t operation_portion; /* runs that an operation takes at once; 0 = HF_OPERATION_PORTION */
    int64_t operation_kept;   /* ns that one stays after its end; 0 = HF_OPERATION_KEPT */
    bool is_strict; /* namespaces and search attributes must be registered; else every name is one when it is used */
    bool was_left_open; /* the process that had the store before did not close it: engine-U2 in suspect.c */
    hf_core_limits limits;
    hf_log_sink log; /* gets warnings about runs near a limit, once durable; NULL = no warnings */
    void *log_state;
    unsigned char seed[HF_SIPHASH_KEY_LEN]; /* for run ids; a new one for every opening */
} hf_core_options;

/* Reads the store synchronously: journal, counters, held tasks. Fails: HF_ERR_INVALID (a record does not check),
 * HF_ERR_NOMEM, what the store says. The first commit of the core (hf_core_seal) writes the new incarnation. */
hf_status hf_core_open(hf_op *op, const hf_core_options *options, hf_store *store, hf_clock now, hf_core **ret_core);
/* Before this, hf_core_stop must have failed the calls that were not answered, and all reads must be done. */
void hf_core_free(hf_core *core);
/* Answers every waiting call with `status`; the core accepts no more calls. */
void hf_core_stop(hf_core *core, hf_status status, const char *why);

void hf_core_call(hf_core *core, hf_call *call, hf_clock now);
/* The call of this number that is not done; NULL = there is none. */
hf_call *hf_core_find_call(const hf_core *core, uint64_t number);
/* The caller has gone away: a call that waits is answered, one that was decided is not changed. False: this portion has had
 * options.cancels_max of these, and nothing has happened; the driver tries again in the next portion, so that other calls come in
 * between when a program with thousands of polls ends. hf_core_tick and hf_core_release end a portion. */
bool hf_core_cancel(hf_core *core, hf_call *call, hf_clock now);
/* Who had a task that is taken back. */
typedef enum hf_task_holder {
    HF_HELD_BY_NONE, /* nobody: its answer could not be handed on */
    HF_HELD_BY_LEFT, /* a process that has said goodbye, ... */
    HF_HELD_BY_LOST  /* ... or that has not: it may have ended because of the task */
} hf_task_holder;
/* A task goes to another worker. `holder`: who had it in hand, and has gone (hf_engine_lost). */
void hf_core_take_back(hf_core *core, hf_str task_token, hf_task_holder holder, hf_clock now);
static inline void hf_core_unwanted(hf_core *core, hf_str task_token, hf_clock now)
{
    hf_core_take_back(core, task_token, HF_HELD_BY_NONE, now);
}
/* Fires deadlines that have come, of at most tick_max runs at a time, and ends polls that have waited long enough. */
void hf_core_tick(hf_core *core, hf_clock now);
/* Whether the open batch has so many bytes of changes that it must be sealed before more calls are taken: until a change is
 * durable it is in memory three times, and a store cannot take a commit of any length. Meanwhile the driver lets calls wait. */
bool hf_core_is_full(const hf_core *core);
/* Whether deadlines have come that no tick has fired yet. */
bool hf_core_is_late(const hf_core *core, hf_clock now);
/* When hf_core_tick has something to do, as wall and monotonic time; INT64_MAX = never. Deadlines that are left over
 * are something to do at once; while the store is free, as soon as the open batch is sealed. */
hf_clock hf_core_next(const hf_core *core);

/* The end of a portion of calls: tasks meet polls, and workflow tasks that do not wait for their commit are handed out. hf_core_tick
 * and hf_core_done let tasks meet polls, too, and hf_core_seal does both. */
void hf_core_release(hf_core *core, hf_clock now);
/* The open batch as a commit, NULL when there is nothing to commit or a commit is under way. Answers that need no commit
 * are sent. The caller passes the request to the store, and then to hf_core_done. */
hf_store_request *hf_core_seal(hf_core *core, hf_clock now);
/* A request of hf_core_seal or of `submit` is done. */
void hf_core_done(hf_core *core, hf_store_request *request, hf_clock now);

/* A time zone whose rules an input waits for; false: none does. The driver looks after each step, and answers with the bytes of the zone's
 * TZif file; empty: there is no such zone. */
bool hf_core_zone_wanted(const hf_core *core, hf_str *ret_name);
void hf_core_zone(hf_core *core, hf_str name, hf_str bytes, hf_clock now);

hf_status hf_core_status(const hf_core *core);
/* Workflow tasks of the open batch were handed out and are not answered yet: a driver may hold the batch back for a moment. */
bool hf_core_is_ahead(const hf_core *core);
bool hf_core_is_committing(const hf_core *core);

/* A hash over the whole state, for "same inputs, same state" (D11). */
uint64_t hf_core_hash(hf_core *core);
/* run-R1 to run-R5 for every run in memory, and run-R3 against its history (rows are read from `store` synchronously). */
hf_status hf_core_check(hf_op *op, hf_core *core, hf_store *store);
hf_status hf_core_check_run(hf_op *op, hf_core *core, hf_store *store, hf_run *run);

#endif
