/* Scopes, branches and joins: concurrency that cannot leak.
 *
 * A scope owns the fibers that are forked into it. Leaving it, by any path, cancels and joins them:
 *
 *     HF_AUTO(hf_scope_close) hf_scope *batch = NULL;
 *     HF_TRY(hf_scope_open(&batch, .name = "invoices", .timeout = hf_seconds(10)));
 *     for (size_t i = 0; i < count; i++) {
 *         HF_TRY(hf_fork(batch, send_invoice, &invoices[i]));
 *     }
 *     HF_TRY(hf_join(batch));
 *
 * From open to close the owner is inside the scope: its waits return HF_ERR_CANCELED once the scope is canceled or its
 * deadline has passed. Only hf_join returns the children's outcome. After hf_join a cancel or deadline of this
 * scope no longer fails the owner's waits; the cancel of an outer scope still does.
 *
 * Cancellation is level-triggered: every wait fails until hf_join returns or the scope is left. Cleanup that must wait
 * opens a shield.
 *
 * A fiber stays on its thread, with one exception: when the watchdog takes the thread from a fiber that does not yield,
 * the other fibers of that thread continue on another one. So do not keep the address of errno or of a thread-local
 * variable, or the result of pthread_self(), over a call that may wait.
 *
 * In C++ a body catches its own exceptions: one that leaves it ends the process, with a sentence. A catch block may
 * wait, and so may a destructor that runs because of an exception: `throw;`, std::current_exception and
 * std::uncaught_exceptions see the exceptions of their own fiber, also after it has moved to another thread. A runtime
 * looks for the process's C++ runtime (libstdc++, libc++abi) when it is made. If the first code in C++ is loaded by
 * dlopen after that, this holds for runtimes that are made later; on earlier ones a fiber must not wait while it
 * handles an exception. The same is true if the library cannot see the C++ runtime, such as a second one that is linked
 * into a plugin.
 *
 * Options are macro arguments: put a compound literal with commas into parentheses, hf_fork(scope, body, (&(T){1,
 * 2})). */
#ifndef HOLDFAST_SCOPE_H
#define HOLDFAST_SCOPE_H

#include <holdfast/runtime.h>

typedef struct hf_scope hf_scope;
typedef struct hf_branch hf_branch;

/* ---- Joins: when is a scope done, and what does hf_join return? -------------------------------------------------- */

/* What a join sees of its scope. */
typedef struct hf_tally {
    int64_t n;         /* the parameter of the policy: quorum, tolerated failures */
    void *state;       /* the user's own */
    uint64_t forked;   /* children so far */
    uint64_t running;  /* not finished yet */
    uint64_t ok;       /* returned HF_OK */
    uint64_t failed;   /* returned an error; HF_ERR_CANCELED of a canceled child counts as canceled instead */
    uint64_t canceled; /* ended canceled */
    bool joining;      /* the owner is in hf_join: no more forks from it */
} hf_tally;

typedef struct hf_outcome {
    uint64_t index;   /* of the child, in fork order from 0 */
    const char *name; /* of the child, or NULL */
    void *arg;        /* what it was forked with; NULL for an activity or a workflow without a fiber */
    hf_status status;
    const hf_failure *failure; /* NULL when status is HF_OK */
} hf_outcome;

typedef enum hf_verdict { HF_GO_ON, HF_STOP } hf_verdict;

/* The hooks of a join. The library's own joins use only these. Hooks run one at a time and must not wait. A NULL hook
 * does the default: on_fork accepts, on_done goes on, on_deadline returns HF_ERR_TIMEOUT, result returns the first
 * failure, or HF_ERR_CANCELED if no child failed but one was canceled. */
typedef struct hf_join_hooks {
    const char *name;
    /* A child is about to be added. Any status but HF_OK refuses it, and hf_fork returns that status. */
    hf_status (*on_fork)(const hf_tally *tally);
    /* A child ended, or the owner starts to join (outcome is NULL). HF_STOP cancels the rest. */
    hf_verdict (*on_done)(const hf_tally *tally, const hf_outcome *outcome);
    /* The scope's deadline has passed and all children have ended. HF_OK accepts the results that there are. */
    hf_status (*on_deadline)(const hf_tally *tally);
    /* All children have ended. Returns the status for hf_join. `first_failure` is HF_OK when no child failed. */
    hf_status (*result)(const hf_tally *tally, hf_status first_failure);
    bool discard;       /* keep no failures: they go to the log */
    bool failures_only; /* on_done is not called for children that succeeded: it would only say HF_GO_ON */
} hf_join_hooks;

typedef struct hf_join_policy {
    const hf_join_hooks *hooks; /* NULL = hf_join_all_hooks */
    int64_t n;
    void *state;
} hf_join_policy;

HF_BEGIN_DECLS
extern HF_API const hf_join_hooks hf_join_all_hooks;      /* all must succeed; the first failure cancels the rest */
extern HF_API const hf_join_hooks hf_join_any_hooks;      /* the first success wins and cancels the rest */
extern HF_API const hf_join_hooks hf_join_quorum_hooks;   /* n successes win; stops as soon as n became impossible. A
                                                             failure says how many there were; its cause is the first */
extern HF_API const hf_join_hooks hf_join_tolerate_hooks; /* up to n failures are fine, one more cancels the rest */
extern HF_API const hf_join_hooks hf_join_collect_hooks;  /* supervisor: no child is canceled, every failure is kept */
extern HF_API const hf_join_hooks hf_join_discard_hooks;  /* endless services: results are dropped, failures logged */
extern HF_API const hf_join_hooks hf_join_partial_hooks;  /* as all, but at the deadline what is done is accepted */
HF_END_DECLS

static inline hf_join_policy hf_join_policy_of(const hf_join_hooks *hooks, int64_t n, void *state)
{
    hf_join_policy policy;
    policy.hooks = hooks;
    policy.n = n;
    policy.state = state;
    return policy;
}

#define HF_JOIN_ALL hf_join_policy_of(&hf_join_all_hooks, 0, NULL)
#define HF_JOIN_ANY hf_join_policy_of(&hf_join_any_hooks, 0, NULL)
#define HF_JOIN_QUORUM(k) hf_join_policy_of(&hf_join_quorum_hooks, (k), NULL)
#define HF_JOIN_TOLERATE(failures) hf_join_policy_of(&hf_join_tolerate_hooks, (failures), NULL)
#define HF_JOIN_COLLECT hf_join_policy_of(&hf_join_collect_hooks, 0, NULL)
#define HF_JOIN_DISCARD hf_join_policy_of(&hf_join_discard_hooks, 0, NULL)
#define HF_JOIN_PARTIAL hf_join_policy_of(&hf_join_partial_hooks, 0, NULL)
/* Three names that other systems use for these (X9 in docs/promises.md). */
#define HF_SHUTDOWN_ON_FAILURE HF_JOIN_ALL
#define HF_SHUTDOWN_ON_SUCCESS HF_JOIN_ANY
#define HF_SHUTDOWN_ON_CANCEL HF_JOIN_COLLECT

/* ---- Verbs ------------------------------------------------------------------------------------------------------- */

typedef struct hf_scope_options {
    size_t size;          /* set by the macro */
    const char *name;     /* in dumps, metrics and messages; must outlive the scope (a literal); "scope" */
    hf_join_policy join;  /* {0} = HF_JOIN_ALL */
    hf_span timeout;      /* deadline from now for the whole scope. Everything inside gets this deadline or an earlier
                             one; 0 or HF_SPAN_UNLIMITED = none of its own; a negative span has passed already */
    hf_runtime *runtime;  /* on a plain thread: where the children run; on a fiber: NULL */
    int64_t branches_max; /* children running or waiting at once, more is HF_ERR_LIMIT; 0 = HF_UNLIMITED */
    hf_dispatcher *on;    /* default dispatcher of the children; NULL = the fiber threads */
    const char *file;     /* set by the macro, as is the line: see hf_wait_options */
    int line;
} hf_scope_options;

/* Stacks. A fiber has its stack for itself, and it does not grow: the 64 K of the default class are about 60,000
 * bytes to use, those of 16 K about 11,000. That is enough for ordinary C and for printf, but not for deep recursion
 * or large local arrays: put arrays on the heap, and recursion on a thread of a pool (hf_block), which has 1 MiB.
 * Behind each stack lies a guard: a fiber that touches it ends the process, under hf_run with a sentence that names
 * the fiber. When a fiber has used three quarters of its stack, the log has a warning, stack_nearly_full, once for
 * each name (not on a runtime without threads). */
typedef struct hf_fork_options {
    size_t size;             /* set by the macro */
    const char *name;        /* in dumps; must outlive the branch (a literal) */
    hf_branch **ret_branch;  /* a handle, valid until the scope is closed; NULL = none */
    void (*drop)(void *arg); /* called instead of the body when the body will never run: the fork failed, or the branch
                                was canceled before it started. Without it a canceled branch still runs its body, with
                                the cancel pending, so that the body can release what `arg` owns. */
    hf_span delay;           /* delay before the branch starts; it has no stack until then */
    size_t stack_size;       /* class of the stack: 16 K, 64 K, 256 K; 0 = the runtime's default */
    hf_dispatcher *on;       /* where to run: a pool (a plain thread, may block), a serial one; NULL = the scope's */
    const char *file;        /* set by the macro, as is the line: see hf_wait_options */
    int line;
} hf_fork_options;

typedef struct hf_scope_cancel_options {
    size_t size;        /* set by the macro */
    const char *reason; /* a phrase that travels with the cause; must outlive the scope (a literal) */
} hf_scope_cancel_options;

HF_BEGIN_DECLS

/* Opens a scope; the calling fiber or thread owns it and closes it. Scopes of one owner close in reverse order. */
HF_API HF_MUST_USE hf_status hf_scope_open_with(hf_scope **ret_scope, const hf_scope_options *options);
/* Cancels the children that still run (cause "closed"), waits for them and frees the scope. Accepts NULL.
 * Fails: HF_ERR_MISUSE from anyone but the owner. Inner scopes of the owner that are still open are closed first. */
HF_API hf_status hf_scope_close(hf_scope *scope);

/* Adds a child. From the owner, or from anyone inside the scope; also from another thread while the scope is open.
 * In a canceled scope the child starts canceled. Fails: HF_ERR_NOMEM, HF_ERR_LIMIT, HF_ERR_INVALID, what on_fork
 * returned. `arg` must live until the child ends. If hf_fork fails, .drop has been called with it; without .drop you
 * still own it. */
HF_API HF_MUST_USE hf_status hf_fork_with(hf_scope *scope, hf_body body, void *arg, const hf_fork_options *options);

/* Waits until all children have ended and returns the status that the join decides. On failure hf_error() is the first
 * failure itself. HF_ERR_TIMEOUT: the scope's own deadline ended a child, or passed in a scope without children. If all
 * children succeeded, hf_join succeeds, even after the deadline. Only the owner may join. */
HF_API HF_MUST_USE hf_status hf_join(hf_scope *scope);

/* Cancels all children and the owner's waits inside the scope. Any thread may call it. The first cause is kept. */
HF_API HF_MUST_USE hf_status hf_scope_cancel_with(hf_scope *scope, const hf_scope_cancel_options *options);

HF_API const char *hf_scope_name(const hf_scope *scope);
/* Numbers so far; exact once hf_join returned. */
HF_API hf_tally hf_scope_tally(const hf_scope *scope);
/* True when no child is running or waiting: hf_join would not wait. */
HF_API bool hf_scope_is_idle(const hf_scope *scope);
/* Failures in order of arrival, from 0; NULL past the last kept one (HF_SCOPE_FAILURES_MAX are kept). After hf_join. */
#define HF_SCOPE_FAILURES_MAX 32
HF_API const hf_failure *hf_scope_failure(const hf_scope *scope, size_t idx);

/* For the handle of a branch that hf_fork returned in .ret_branch; valid until the scope is closed. */
HF_API bool hf_branch_is_done(const hf_branch *branch);
HF_API hf_status hf_branch_status(const hf_branch *branch); /* HF_ERR_AGAIN while it is not done */
HF_API const hf_failure *hf_branch_failure(const hf_branch *branch);
HF_API uint64_t hf_branch_index(const hf_branch *branch);
/* Cancels this one child. */
HF_API HF_MUST_USE hf_status hf_branch_cancel(hf_branch *branch);

/* ---- Waiting and being canceled ---------------------------------------------------------------------------------- */

/* Called by the macros below, which have the names of functions without options: the next command that the calling fiber of
 * a workflow makes comes from there. */
HF_API void hf_here(const char *file, int line);

/* Sleeps. 0 or a negative span only lets other fibers run. Fails: HF_ERR_CANCELED; HF_ERR_NOMEM: no memory for the
 * deadline (true of every call with a timeout); HF_ERR_INVALID: in a workflow, the span is above 0 but below a
 * millisecond (true of every wait and bound there). */
HF_API HF_MUST_USE hf_status hf_sleep(hf_span span);
/* The same until a point in time of the wall clock; one that has passed: as hf_sleep(0). In a workflow it is a durable timer.
 * Fails as hf_sleep. */
HF_API HF_MUST_USE hf_status hf_sleep_until(hf_time when);
/* Lets the others run. Fails: HF_ERR_CANCELED; on a plain thread it does nothing. */
HF_API HF_MUST_USE hf_status hf_yield(void);
/* For loops that compute: yields at every `every`-th call with the same counter, which starts at 0. */
static inline hf_status hf_pace(unsigned *counter, unsigned every)
{
    if (++*counter < every) {
        return HF_OK;
    }
    *counter = 0;
    return hf_yield();
}

/* HF_OK, or HF_ERR_CANCELED when the next wait would fail with it. Never waits. */
HF_API HF_MUST_USE hf_status hf_canceled(void);
/* Returns why the caller is canceled, or HF_CAUSE_NONE. `*ret_reason` is a phrase, never NULL; `ret_reason` may be
 * NULL. */
HF_API hf_cause hf_cancel_cause(const char **ret_reason);
/* Time left until the nearest deadline of the scopes around the caller. It can be passed on as a timeout: it is
 * never 0, negative when the deadline has passed, and HF_SPAN_UNLIMITED when there is none. */
HF_API hf_span hf_time_left(void);

/* A shield is for cleanup: inside it, waits are not canceled from outside. After `bound`, waits inside the shield fail
 * with HF_ERR_CANCELED, canceled or not. HF_ERR_MISUSE if `bound` is 0, negative or HF_SPAN_UNLIMITED, and on a plain
 * thread that has no scope open, because nothing can cancel it.
 *     HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
 *     HF_TRY(hf_shield_open(hf_seconds(2), &shield)); */
typedef struct hf_shield hf_shield;
HF_API HF_MUST_USE hf_status hf_shield_open(hf_span bound, hf_shield **ret_shield);
HF_API hf_status hf_shield_close(hf_shield *shield); /* accepts NULL */

/* ---- Fiber-local values ------------------------------------------------------------------------------------------ */

/* A key is an address: static const hf_local TENANT = {"tenant"}; */
typedef struct hf_local {
    const char *name; /* in dumps */
} hf_local;
/* Binds a value for this fiber and for every fiber of scopes that it opens from now on. The value is borrowed and must
 * outlive them. Fails: HF_ERR_NOMEM, HF_ERR_MISUSE on a plain thread. */
HF_API HF_MUST_USE hf_status hf_local_set(const hf_local *key, void *value);
/* The nearest binding, or NULL. */
HF_API void *hf_local_get(const hf_local *key);

HF_END_DECLS

#define hf_sleep(...) (hf_here(__FILE__, __LINE__), hf_sleep(__VA_ARGS__))
#define hf_sleep_until(...) (hf_here(__FILE__, __LINE__), hf_sleep_until(__VA_ARGS__))
#define hf_shield_open(...) (hf_here(__FILE__, __LINE__), hf_shield_open(__VA_ARGS__))

HF_AUTO_DEFINE(hf_scope_close, hf_scope)
HF_AUTO_DEFINE(hf_shield_close, hf_shield)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_scope_open(...) HF_SCOPE_OPEN_(__VA_ARGS__, .size = sizeof(hf_scope_options), .file = __FILE__, .line = __LINE__)
#define HF_SCOPE_OPEN_(ret_scope, ...) \
    hf_scope_open_with((ret_scope), &(hf_scope_options){__VA_ARGS__})
#define hf_fork(...) HF_FORK_(__VA_ARGS__, .size = sizeof(hf_fork_options), .file = __FILE__, .line = __LINE__)
#define HF_FORK_(scope, body, arg, ...) \
    hf_fork_with((scope), (body), (arg), &(hf_fork_options){__VA_ARGS__})
#define hf_scope_cancel(...) HF_SCOPE_CANCEL_(__VA_ARGS__, .size = sizeof(hf_scope_cancel_options))
#define HF_SCOPE_CANCEL_(scope, ...) \
    hf_scope_cancel_with((scope), &(hf_scope_cancel_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_scope_open(hf_scope **ret_scope,
    hf_scope_options options = hf_scope_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_scope_open_with(ret_scope, &options);
}
static inline HF_MUST_USE hf_status
hf_fork(hf_scope *scope, hf_body body, void *arg,
    hf_fork_options options = hf_fork_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_fork_with(scope, body, arg, &options);
}
static inline HF_MUST_USE hf_status
hf_scope_cancel(hf_scope *scope,
    hf_scope_cancel_options options = hf_scope_cancel_options())
{
    options.size = sizeof options;
    return hf_scope_cancel_with(scope, &options);
}
#endif
/* clang-format on */

#endif
