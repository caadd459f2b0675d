/* hf_runtime: threads that run fibers. A process may have several runtimes. */
#ifndef HOLDFAST_RUNTIME_H
#define HOLDFAST_RUNTIME_H

#include <holdfast/error.h>
#include <holdfast/time.h>

typedef struct hf_runtime hf_runtime;
typedef struct hf_env hf_env;
typedef struct hf_dispatcher hf_dispatcher;

/* The body of a fiber. Runs once; returns when it is done or canceled; `arg` is the caller's. */
typedef hf_status (*hf_body)(void *arg);

/* Where memory comes from. Called from any thread; never while a library lock is held. */
typedef struct hf_allocator {
    void *(*allocate)(void *state, size_t len, size_t align); /* NULL = out of memory */
    void (*release)(void *state, void *ptr, size_t len);
    void *state;
} hf_allocator;

typedef enum hf_log_level { HF_LOG_DEBUG, HF_LOG_INFO, HF_LOG_WARN, HF_LOG_ERROR } hf_log_level;

/* One event: a constant name, and `fields` as "key=value" pairs with a space between them. A value that is empty or
 * has a space, quote, backslash or equals sign in it stands in double quotes, and there a quote and a backslash
 * follow a backslash. Control characters and bytes that are not UTF-8 are written as "\n", "\t", "\x9b", "\u202e":
 * the fields are one line of text. */
typedef void (*hf_log_sink)(void *state, hf_log_level level, const char *event, const char *fields);

/* Called when the library must not continue: an invariant is broken, a stack has overflowed, or there are too many
 * zombies. It may return only after too many zombies; the runtime then stays stopped. The default prints `message`
 * and aborts. `exit_code` is for programs that exit instead. */
typedef void (*hf_fatal_hook)(void *state, const char *message, int exit_code);

/* Figures of the watchdog (T13-T20 in docs/promises.md). 0 = default, HF_SPAN_OFF / HF_OFF switch a part off. It
 * watches fibers that do not yield and activities that do not end after a cancel (activity.h). It does not watch
 * other work on pools: a call of hf_block cannot be interrupted, and a branch of hf_fork may take any time for its
 * cleanup; both keep their thread until they return. If .signal is set, blocking system calls of a canceled activity
 * fail with EINTR. */
typedef struct hf_watchdog_options {
    hf_span stuck_after;     /* time without a yield after which a fiber is reported; 2 s */
    hf_span zombie_after;    /* grace before a stuck fiber or canceled activity counts as a zombie; 10 s */
    hf_span interrupt_first; /* first retry of the interrupt, then doubled; 1 s */
    hf_span interrupt_max;   /* longest pause between interrupts; 60 s */
    hf_span give_up_after;   /* time after which it is no longer interrupted, but still counted; 1 h */
    int zombies_max;         /* number of zombies at which the runtime shuts down; 10, HF_OFF = never */
    hf_span shutdown_grace;  /* shutdown: time to finish before cancel; 10 s */
    hf_span shutdown_force;  /* shutdown: time after cancel before stuck fibers are given up; 5 s */
    hf_span fatal_after;     /* longest time from zombies_max to the fatal hook; 60 s */
    int signal;              /* a signal the library may use to interrupt its own threads, such as SIGURG;
                                 0 = none granted: stuck fibers and activities are only reported and counted */
} hf_watchdog_options;

typedef struct hf_runtime_options {
    size_t size;      /* set by the macro */
    const char *name; /* in dumps and thread names; "holdfast" */
    int threads;      /* fiber threads; 0 = one per core, HF_OFF = none: driven by hf_runtime_turn */
    hf_env *env;      /* NULL = the operating system; see holdfast/sim.h */
    /* {0} = malloc. Used for the objects of this runtime: fibers, scopes, branches, channels, locks, flows, caches,
     * connections, processes, depots. Not used for stacks and threads (mmap), for texts that the caller frees, hf_value
     * and hf_payload, for what may outlive a depot (watchers, hf_pages, hf_items, hf_depot_write), nor for services,
     * executions, workers and engines: those use malloc. SQLite has its own memory (mem= of hf_open). */
    hf_allocator allocator;
    hf_log_sink log; /* NULL = warnings and errors to stderr */
    void *log_state;
    hf_fatal_hook fatal; /* NULL = print and abort */
    void *fatal_state;
    int pool_max;         /* threads of the default pool for blocking calls; 64 */
    size_t stack_size;    /* default stack class: 16 K, 64 K (default) or 256 K, in bytes; see Stacks in scope.h */
    int guards;           /* 0 = guard every stack, HF_OFF = none */
    bool report_overflow; /* install a SIGSEGV handler, if the host has none, that names a stack overflow as such;
                                 hf_run sets it; with hf_runtime_new set it yourself */
    int guard_kind;       /* 0 = best available; for tests: 1 = markers, 2 = mprotect */
    int64_t fibers_max;   /* started fibers at once; 0 = HF_UNLIMITED */
    hf_watchdog_options watchdog;
    /* Binds each fiber thread to one of the cores that the process may use: the first thread to the first core, and so
     * on; more threads than cores share them. It helps where fibers of different threads exchange many messages while
     * another process keeps a core busy: otherwise the kernel may put two fiber threads on one core, where a message
     * takes several microseconds instead of less than one. The price: a fiber thread waits while another process uses its
     * core, even if other cores are idle. So set it for one runtime of one process only, or give each process its own
     * cores. Pool threads, the library's other threads and processes of hf_process_start are not bound. A thread or
     * process that your own code starts on a fiber inherits the fiber's core. If the system refuses, the threads are not
     * bound, and the log has `thread_not_pinned`. It has no effect on a runtime without threads. */
    bool pin_threads;
} hf_runtime_options;

/* Counters since the runtime was made. */
typedef struct hf_stats {
    uint64_t forks;        /* branches made */
    uint64_t joins;        /* hf_join calls that returned */
    uint64_t switches;     /* times a fiber was resumed */
    uint64_t steals;       /* branches taken from another thread */
    uint64_t wakes_remote; /* wake-ups posted from another thread */
    uint64_t pool_calls;   /* calls handed to pools */
    uint64_t pool_depth;   /* waiting in pools now */
    uint64_t pool_threads; /* pool threads now */
    uint64_t fibers;       /* fibers that hold a stack now */
    uint64_t branches;     /* branches not finished now */
    uint64_t scopes;       /* scopes open now */
    uint64_t stack_bytes;  /* address space carved into stacks */
    uint64_t stuck;        /* fibers reported stuck so far */
    uint64_t zombies;      /* zombies now: fibers and activities */
    uint64_t threads;      /* fiber threads now, replacements included, lost ones not */
    uint64_t stranded;     /* fibers of evicted workflows that did not return, or waited for one that did not, so far */
} hf_stats;

HF_BEGIN_DECLS

/* Makes a runtime. Fails: HF_ERR_NOMEM, HF_ERR_LIMIT (threads, descriptors), HF_ERR_INVALID. */
HF_API HF_MUST_USE hf_status hf_runtime_new_with(hf_runtime **ret_runtime, const hf_runtime_options *options);
/* Ends the threads and frees everything. Fails: HF_ERR_MISUSE while a plain thread has a scope open in it (close that
 * first; closing waits for all children, even a stuck one), while something that hf_worker_run left behind still runs,
 * and when one of its own fibers or pool threads calls. Accepts NULL. */
HF_API hf_status hf_runtime_free(hf_runtime *runtime);
/* Cancels everything that runs in the runtime, with cause "shutdown", and refuses new root scopes. Does not wait. */
HF_API HF_MUST_USE hf_status hf_runtime_stop(hf_runtime *runtime);

/* Makes a runtime, runs `body` as its first fiber, waits for it and frees the runtime. Returns what body returned.
 * If something is still running, the runtime is not freed, and an HF_OK of the body is replaced: by HF_ERR_TIMEOUT
 * if hf_worker_run has left an activity or workflow behind (only the end of the process ends it), by HF_ERR_MISUSE
 * if another thread has a scope open in the runtime. */
HF_API HF_MUST_USE hf_status hf_run_with(hf_body body, void *arg, const hf_runtime_options *options);

/* The runtime of the running fiber, or NULL on a plain thread. */
HF_API hf_runtime *hf_runtime_current(void);

/* For a runtime without threads: becomes readable when there is something to do; poll it in the host's loop. */
HF_API int hf_runtime_fd(hf_runtime *runtime);
/* Runs ready fibers, for a bounded number of switches (the descriptor stays readable when there is more). If none is
 * ready, it waits for one up to `timeout` (0 or a negative span: it does not wait; HF_SPAN_UNLIMITED: without end).
 * Returns HF_OK when something ran, HF_ERR_TIMEOUT when nothing did. One thread at a time. Once a thread has called
 * this, fibers run on that thread only. Until the first such call, a plain thread that waits for this runtime runs its
 * fibers meanwhile. */
HF_API HF_MUST_USE hf_status hf_runtime_turn(hf_runtime *runtime, hf_span timeout);

/* The counters now. runtime may be NULL on a fiber. */
HF_API HF_MUST_USE hf_status hf_runtime_stats(hf_runtime *runtime, hf_stats *ret_stats);

/* The runtime's clocks: virtual ones in a simulated environment. On a plain thread pass the runtime, on a fiber
 * NULL. */
HF_API hf_instant hf_now(hf_runtime *runtime);
HF_API hf_time hf_wall_now(hf_runtime *runtime);
/* Random bytes from the environment: seeded in a simulation. */
HF_API HF_MUST_USE hf_status hf_random(hf_runtime *runtime, void *ret_bytes, size_t len);
#define HF_UUID_LEN 37 /* bytes of the text, with its NUL */
/* A random UUID of version 4, in lower case: HF_UUID_LEN bytes. In a workflow a replay gives the same. Fails: HF_ERR_MISUSE:
 * there is no place for it; as hf_random. */
HF_API HF_MUST_USE hf_status hf_uuid(char *ret_text);
/* A line in the log of the runtime, with fields as a log function gets them: hf_note(HF_LOG_INFO, "charged", "cents=%d",
 * cents). `event` is a constant word; `format` may be NULL. In a workflow the fields begin with workflow and run, in an
 * activity also with its name, and nothing is written in a replay, or after an eviction; a step that is tried again writes its
 * lines again. On a plain thread without a runtime warnings and errors go to stderr, and the others nowhere. */
HF_API void hf_note(hf_log_level level, const char *event, const char *format, ...) HF_PRINTF(3, 4);

typedef struct hf_dump_options {
    size_t size;    /* set by the macro */
    bool json;      /* JSON instead of text */
    bool no_stacks; /* leave the call stacks out */
} hf_dump_options;

/* The whole tree: threads, scopes, fibers, what each waits for, their ages and stacks, and how much of its stack
 * each has used so far (in pages of 4 KiB; a fiber before it on the same stack may have used as much);
 * activities that are zombies, by type, workflow, attempt and the time since their cancel; and depots, with their
 * fetches, who waits for each, sends and circuit breakers. Works while all threads are busy. `*ret_text` is freed with
 * hf_text_free. runtime may be NULL on a fiber. */
HF_API HF_MUST_USE hf_status hf_dump_with(hf_runtime *runtime, char **ret_text, const hf_dump_options *options);
HF_API void hf_text_free(char *text); /* accepts NULL */

typedef struct hf_metrics_options {
    size_t size;     /* set by the macro */
    bool json;       /* JSON instead of text, a key and its value per line */
    bool prometheus; /* Prometheus' text instead */
} hf_metrics_options;

/* Counters, histograms and scope durations by name, activities that are zombies, and the counters of depots by the
 * depot's name. `*ret_text` is freed with hf_text_free. runtime may be NULL on a fiber. Fails: HF_ERR_INVALID: two forms
 * at once; HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_metrics_with(hf_runtime *runtime, char **ret_text, const hf_metrics_options *options);

HF_END_DECLS

HF_AUTO_DEFINE(hf_runtime_free, hf_runtime)
HF_AUTO_DEFINE(hf_text_free, char)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_runtime_new(...) HF_RUNTIME_NEW_(__VA_ARGS__, .size = sizeof(hf_runtime_options))
#define HF_RUNTIME_NEW_(ret_runtime, ...) \
    hf_runtime_new_with((ret_runtime), &(hf_runtime_options){__VA_ARGS__})
#define hf_run(...) HF_RUN_(__VA_ARGS__, .size = sizeof(hf_runtime_options))
#define HF_RUN_(body, arg, ...) \
    hf_run_with((body), (arg), &(hf_runtime_options){__VA_ARGS__})
#define hf_dump(...) HF_DUMP_(__VA_ARGS__, .size = sizeof(hf_dump_options))
#define HF_DUMP_(runtime, ret_text, ...) \
    hf_dump_with((runtime), (ret_text), &(hf_dump_options){__VA_ARGS__})
#define hf_metrics(...) HF_METRICS_(__VA_ARGS__, .size = sizeof(hf_metrics_options))
#define HF_METRICS_(runtime, ret_text, ...) \
    hf_metrics_with((runtime), (ret_text), &(hf_metrics_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_runtime_new(hf_runtime **ret_runtime,
    hf_runtime_options options = hf_runtime_options())
{
    options.size = sizeof options;
    return hf_runtime_new_with(ret_runtime, &options);
}
static inline HF_MUST_USE hf_status
hf_run(hf_body body, void *arg,
    hf_runtime_options options = hf_runtime_options())
{
    options.size = sizeof options;
    return hf_run_with(body, arg, &options);
}
static inline HF_MUST_USE hf_status
hf_dump(hf_runtime *runtime, char **ret_text,
    hf_dump_options options = hf_dump_options())
{
    options.size = sizeof options;
    return hf_dump_with(runtime, ret_text, &options);
}
static inline HF_MUST_USE hf_status
hf_metrics(hf_runtime *runtime, char **ret_text,
    hf_metrics_options options = hf_metrics_options())
{
    options.size = sizeof options;
    return hf_metrics_with(runtime, ret_text, &options);
}
#endif
/* clang-format on */

#endif
