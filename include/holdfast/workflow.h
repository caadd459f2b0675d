/* Inside a workflow: waits that survive the process.
 *
 * A workflow is an ordinary C function. It runs on fibers of its own. After a crash, or when it was released from
 * memory, the library runs it again from its start, and each call returns its recorded result. So what it does must
 * depend only on its input and on the results of the calls below, hf_sleep, scopes, channels and locks:
 *
 *   - time, random numbers and data from outside come from the library: hf_wall_now, hf_random, hf_activity_run;
 *   - no global variables that change, no I/O, no threads: activities do that. docs/verbs.md lists which functions of
 *     the library are refused in a workflow;
 *   - a timeout, sleep, scope bound or fork delay above 0 but below a millisecond fails with HF_ERR_INVALID, because it
 *     is probably a number without a unit (.timeout = 30 is 30 ns). A negative timeout sets no timer: the call checks
 *     once and returns;
 *   - HF_ERR_EVICTED means that the library removes the run from memory; it is replayed later. Return at once, as
 *     HF_TRY does. The run loses nothing: nothing is undone or written. Every later call that waits or forks fails
 *     with HF_ERR_EVICTED, too; close, unlock and free still work. A loop that repeats a call until it succeeds would
 *     never end, so calls that wait, fork or check are counted (docs/verbs.md lists them; close, unlock and free do
 *     not count). After 1,000 such calls the next one does not return: no code of that fiber runs any more, not even
 *     cleanup. The log says where it was (workflow_did_not_return), and the run continues from its history. Memory
 *     that the library gave the run is freed; memory that its code allocated is lost, each time.
 *
 * Limits. A result has at most 2 MiB, else the run fails with HF_ERR_TOO_BIG. At most 2,000 activities are pending at
 * once; the next one is refused with HF_ERR_LIMIT. A run has at most 51,200 events and 50 MiB of history: a run that
 * reaches either limit is terminated without telling its code, so it cannot clean up. An activity takes six events, a
 * sleep five, a signal four, if nothing else happens meanwhile; their inputs and results count as bytes. A run gets at
 * most 10,000 signals; hf_signal refuses the next. When a run has used a fifth of its events, bytes or signals, the log
 * has a warning, workflow_nears_limit. A workflow that has more to do continues as new in time: hf_continue_as_new
 * starts the next run with the work that is left, and hf_workflow_info()->should_continue says when to do so.
 *
 * Stack. A workflow runs on a fiber's stack of about 60,000 bytes by default, which does not grow (see Stacks in scope.h):
 * keep large arrays and deep recursion out of it, or give hf_worker_add_workflow a larger .stack_size. .stack_size of
 * hf_run, or of the runtime of the worker, is the default for all workflows.
 *
 * Time. Timers and timeouts of workflows follow the wall clock, so that they survive the process. A clock that is set
 * back by an hour delays them by an hour; one that is set forward makes them due within ten seconds.
 *
 * If you change a workflow's code, runs that are under way are replayed with the new code. If the new code makes
 * other calls than the history has (another activity or timer, another order or span), the run stops at the first
 * difference. The log has workflow_task_failed with "not deterministic", both sides and the line of the call, and the
 * run is tried again, with growing pauses, until the code agrees with the history. Nothing is lost.
 *
 * To change the code of runs that are under way, put the new calls behind hf_patched (run.h): runs that have passed the
 * place keep to the old branch, others take the new one. Or give the new code a name of its own ("order-2"), start new
 * runs with that, and keep the old one registered until its runs have ended; `holdfast list FILE` finds them. If a run
 * has stopped already, start the program with the code that the run began with, end the run (hf_terminate), or go back
 * in it (hf_reset). The code of an activity may change at any time, and so may the input and options of activities that
 * are not scheduled yet. */
#ifndef HOLDFAST_WORKFLOW_H
#define HOLDFAST_WORKFLOW_H

#include <holdfast/payload.h>
#include <holdfast/scope.h>
#include <holdfast/wait.h>

/* A workflow or an activity. `in` is borrowed for the call; its data is NULL if it is empty, and one NUL follows it
 * otherwise. `*ret_out` is empty at first; leave it so if there is no result. The library frees what you store there
 * (payload.h). HF_OK ends a workflow with its result, HF_ERR_EVICTED does not end it, and any other status ends it as
 * failed. An activity that returns any status but HF_OK is tried again, as its options say. */
typedef hf_status (*hf_function)(hf_payload in, hf_payload *ret_out);

/* What a call does that is canceled while its activity runs: by its scope, a deadline, a join that has its winner, or a
 * cancel of the workflow. */
typedef enum hf_on_cancel {
    HF_CANCEL_WAIT,   /* asks the activity to end, and returns when it has ended */
    HF_CANCEL_TRY,    /* asks it to end, and returns HF_ERR_CANCELED at once */
    HF_CANCEL_ABANDON /* returns HF_ERR_CANCELED at once; the activity is not told */
} hf_on_cancel;
#define HF_ON_CANCEL_COUNT 3

typedef struct hf_activity_options {
    size_t size;                    /* set by the macro */
    hf_span start_to_close;         /* time limit of one attempt, then it is tried again; this or schedule_to_close is
                                  required */
    hf_span schedule_to_close;      /* time limit of all attempts together; 0 = none */
    hf_span schedule_to_start;      /* time limit until a worker takes it; 0 = none */
    hf_span heartbeat;              /* an attempt without a heartbeat for this long has failed; 0 = none is expected */
    int attempts_max;               /* attempts in all; 0 = HF_UNLIMITED; HF_OFF = no second one, as 1 */
    hf_span retry_initial;          /* pause before the second attempt; 1 s */
    double retry_coefficient;       /* factor by which each pause is longer than the last; 2 */
    hf_span retry_max;              /* longest pause; 100 times the first */
    const char *task_queue;         /* the queue whose workers run it, at most 963 bytes; NULL = the workflow's own */
    const char *id;                 /* its name in the history; NULL = its number */
    const char *const *final_types; /* failures of these types are not tried again; ends with NULL; NULL = none */
    hf_on_cancel on_cancel;         /* what a cancel does; HF_CANCEL_WAIT */
    hf_payload *ret_details; /* receives details of a failure, or what an activity that ended canceled returned; it is
                                freed with the run; NULL = ignore */
    hf_branch **ret_branch;  /* hf_fork_activity: a handle, as that of hf_fork; NULL = none */
    const char *file;        /* set by the macro, as is the line: see hf_wait_options */
    int line;
    const hf_entry *header; /* goes along, see header.h; NULL = none */
    const char *summary;    /* one line about it in the history, for people, at most 1,000 bytes; NULL = none */
} hf_activity_options;

HF_BEGIN_DECLS

/* Runs an activity and waits for it, for months if need be. `in` is borrowed, `ret_out` may be NULL.
 * Fails: HF_ERR_FAILED: it failed and is not tried again; hf_error() has the type "ActivityFailed", and its cause is
 * the failure of the activity: hf_error()->cause->type is the type it gave (hf_activity_fail, hf_raise_typed), else the
 * name of the status that it returned. If the activity returns HF_ERR_USER + 7 and gives no type,
 * hf_error()->cause->status is that status, and the type, here and in final_types, is "HF_ERR_USER+7". HF_ERR_TIMEOUT:
 * it is out of time and is not tried again; "ActivityTimedOut". HF_ERR_CANCELED: it ended canceled, or was canceled
 * before it began. HF_ERR_EVICTED.
 *
 * A cancel waits for the activity (.on_cancel = HF_CANCEL_WAIT). The activity is asked to end: at once if a worker of
 * this process executes it, else with its next heartbeat. The call returns when the activity has ended: with
 * HF_ERR_CANCELED, with its own failure, or with HF_OK and its result if it completed all the same, so that the workflow
 * knows what it has to undo. The scope stays canceled, and the next wait in it returns HF_ERR_CANCELED. An activity in
 * another process that sends no heartbeats does not learn of the cancel: the call then returns when the activity
 * completes or its time is over. Temporal's SDKs do not wait by default. Here a scope ends only when everything in it has
 * ended, and a charge that still goes through must not escape the code that would refund it.
 *
 * A result, details or a heartbeat of more than 2 MiB fail the activity for good; the type of the cause is "TooBig".
 * With these statuses the activity was not started, and the history does not mention it: HF_ERR_INVALID: a name,
 * bound or retry option makes no sense, such as a bound that is negative or less than a millisecond, or 0.5 as the
 * coefficient; HF_ERR_TOO_BIG: `in` or `.final_types` has more than 2 MiB; HF_ERR_EXISTS: an activity with this
 * `.id` has not ended; HF_ERR_LIMIT: 2,000 activities are pending; HF_ERR_MISUSE: `in.len` is not 0 but `in.data` is
 * NULL, or the caller is not a workflow. */
HF_API HF_MUST_USE hf_status hf_activity_run_with(const char *name, hf_payload in, hf_payload *ret_out,
                                                  const hf_activity_options *options);
/* The same as a child of a scope, without a fiber: hf_join counts it like any other, and a join, a deadline or a cancel
 * treats it alike; .on_cancel says what a cancel does. It takes no stack: a run may have 2,000 pending, at less than 512
 * bytes each. The command is made by this call, so calls are recorded in their order. The name, `in` and the options are
 * copied. `ret_out` may be NULL; it and .ret_details must live until the scope is closed. `ret_out` is written if the
 * activity succeeds, .ret_details if there are details, both before the join learns of the end.
 *     HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_QUORUM(2)));
 *     for (int i = 0; i < 3; i++) {
 *         HF_TRY(hf_fork_activity(scope, "quote", shops[i], &quotes[i], .start_to_close = hf_minutes(1)));
 *     }
 *     HF_TRY(hf_join(scope));
 * Failures of the activity are the child's: hf_join, hf_scope_failure and hf_branch_failure return them as
 * hf_activity_run does. If the scope is canceled already, the child ends canceled, and the activity is not started.
 * Fails: as hf_fork, and with the statuses of hf_activity_run that mean that it was not started. */
HF_API HF_MUST_USE hf_status hf_fork_activity_with(hf_scope *scope, const char *name, hf_payload in,
                                                   hf_payload *ret_out, const hf_activity_options *options);
/* Takes the oldest stored signal of this name, or waits for one. `ret_out` may be NULL.
 * Fails: HF_ERR_TIMEOUT, HF_ERR_CANCELED, HF_ERR_EVICTED, HF_ERR_INVALID: the name is empty or too long,
 * HF_ERR_MISUSE outside a workflow. */
HF_API HF_MUST_USE hf_status hf_signal_wait_with(const char *name, hf_payload *ret_out, const hf_wait_options *options);

/* Takes the oldest stored signal that has one of these names, or waits for the first that comes; `*ret_idx` is the index of
 * its name. `names` has 1 to 64 names and is borrowed; `ret_out` may be NULL. To wait for signals beside channels, make
 * them cases of hf_select (chan.h).
 * Fails: HF_ERR_INVALID: too many names, or none; else as hf_signal_wait. */
HF_API HF_MUST_USE hf_status hf_signal_wait_any_with(const char *const *names, size_t count, size_t *ret_idx,
                                                     hf_payload *ret_out, const hf_wait_options *options);

/* Of the running workflow; NULL outside. */
HF_API const char *hf_workflow_id(void);
HF_API const char *hf_workflow_run_id(void);

HF_END_DECLS

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_activity_run(...) HF_ACTIVITY_RUN_(__VA_ARGS__, .size = sizeof(hf_activity_options), .file = __FILE__, .line = __LINE__)
#define HF_ACTIVITY_RUN_(name, in, ret_out, ...) \
    hf_activity_run_with((name), (in), (ret_out), &(hf_activity_options){__VA_ARGS__})
#define hf_fork_activity(...) HF_FORK_ACTIVITY_(__VA_ARGS__, .size = sizeof(hf_activity_options), .file = __FILE__, .line = __LINE__)
#define HF_FORK_ACTIVITY_(scope, name, in, ret_out, ...) \
    hf_fork_activity_with((scope), (name), (in), (ret_out), &(hf_activity_options){__VA_ARGS__})
#define hf_signal_wait(...) HF_SIGNAL_WAIT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_SIGNAL_WAIT_(name, ret_out, ...) \
    hf_signal_wait_with((name), (ret_out), &(hf_wait_options){__VA_ARGS__})
#define hf_signal_wait_any(...) HF_SIGNAL_WAIT_ANY_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_SIGNAL_WAIT_ANY_(names, count, ret_idx, ret_out, ...) \
    hf_signal_wait_any_with((names), (count), (ret_idx), (ret_out), &(hf_wait_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_activity_run(const char *name, hf_payload in, hf_payload *ret_out,
    hf_activity_options options = hf_activity_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_activity_run_with(name, in, ret_out, &options);
}
static inline HF_MUST_USE hf_status
hf_fork_activity(hf_scope *scope, const char *name, hf_payload in, hf_payload *ret_out,
    hf_activity_options options = hf_activity_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_fork_activity_with(scope, name, in, ret_out, &options);
}
static inline HF_MUST_USE hf_status
hf_signal_wait(const char *name, hf_payload *ret_out,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_signal_wait_with(name, ret_out, &options);
}
static inline HF_MUST_USE hf_status
hf_signal_wait_any(const char *const *names, size_t count, size_t *ret_idx, hf_payload *ret_out,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_signal_wait_any_with(names, count, ret_idx, ret_out, &options);
}
#endif
/* clang-format on */

#endif
