/* The engine as a service: hf_core with threads around it. */
#ifndef HF_ENGINE_ENGINE_H
#define HF_ENGINE_ENGINE_H

#include "service/service.h"
#include "store/store.h"

typedef struct hf_engine_options {
    bool has_retention; /* the namespace "default" keeps runs for `retention` ns from now on, 0 = for ever */
    int64_t retention;
    size_t mem_max;         /* bytes of state in memory; 0 = 64 MiB */
    size_t payload_len_max; /* bytes of users' data in one place; 0 = HF_PAYLOAD_LEN_MAX */
    size_t journal_len_max; /* bytes a crash may have to read; 0 = half of mem_max, at most 32 MiB */
    bool is_strict;  /* namespaces and search attributes must be registered; else every name is one when it is used */
    bool skips_time; /* for tests: TestService moves its clock (skip.c); all runs stay in memory */
    int64_t
        clock_at; /* with skips_time: its wall clock (ns) begins here and stands still between skips; 0 = it goes on */
    hf_log_sink log; /* NULL = none */
    void *log_state;
} hf_engine_options;

typedef struct hf_engine_stats {
    uint64_t calls;       /* answered */
    uint64_t transitions; /* changes of one run by one input: a call, a deadline, a message */
    uint64_t run_commits; /* changes of one run by one commit, which may hold many inputs */
    uint64_t events;      /* of histories */
    uint64_t commits;
    uint64_t runs;     /* in memory now */
    uint64_t mem_used; /* bytes */
    uint64_t reopened; /* times the core was thrown away and opened again */
    hf_store_stats store;
    uint64_t ended;       /* only when rows are counted: runs that have ended and have a row ... */
    uint64_t ended_len;   /* ... and bytes of their states and histories */
    uint64_t expired;     /* of those runs, that retention deletes now ... */
    uint64_t expired_len; /* ... and their bytes */
} hf_engine_stats;

/* Opens the engine on a store, which it takes, also on failure. Recovers, starts its two threads, and serves until
 * ops->close. Fails: what hf_core_open says, HF_ERR_LIMIT for threads. */
hf_status hf_engine_open(hf_op *op, hf_env *env, hf_store *store, const hf_engine_options *options,
                         hf_service **ret_service);

/* The process that had this task in hand has gone: the task is handed out again at once. A workflow task goes to the next poller as it is. An
 * activity's attempt has failed, because it may have been begun. `is_unclean`: that process did not say goodbye, so it may have ended because of
 * the task, which is counted (engine-U1). */
void hf_engine_lost(hf_service *service, hf_str task_token, bool is_unclean);

/* Blocks the calling thread for a moment; not on a fiber. With `count_rows` it blocks until all rows are counted. They are counted
 * a few at a time between commits; rows that are written meanwhile may or may not be counted. */
hf_status hf_engine_stats_get(hf_op *op, hf_service *service, bool count_rows, hf_engine_stats *ret_stats);
/* The newest runs with numbers below `before` (INT64_MAX: all), newest first, in the arena. At most `count_max`; fewer may
 * come although there are more, but an empty list means that there are none. Changes that are not durable yet are included. Blocks
 * the calling thread; not on a fiber. Fails: HF_ERR_UNAVAILABLE (the engine is just being reopened), HF_ERR_NOMEM, what the store says. */
hf_status hf_engine_list(hf_op *op, hf_service *service, int64_t before, size_t count_max, hf_arena *arena,
                         hf_pb_admin_runs *ret_runs);
/* A consistent copy of the store at `path`, while the engine works. Blocks the calling thread until it is complete; not on a
 * fiber. `step` is called now and then, and may return false to give up. */
hf_status hf_engine_backup(hf_op *op, hf_service *service, const char *path, bool (*step)(void *state), void *state);

#endif
