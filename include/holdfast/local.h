/* Inside a workflow: local activities and side effects, which the worker that runs the workflow executes itself.
 *
 * A local activity is for short work that must be cheap: a lookup, a call to a service beside this one. It takes no task
 * queue and no events of its own; its end is one marker in the history. It runs while its workflow's step waits for it,
 * and the step tells the service that it is alive when 80 % of the time of its workflow task have passed. Signals,
 * cancels, queries and updates that come meanwhile are seen then, or when the step ends; so are deadlines, and timers and
 * activities that the same step asked for begin then. So use hf_activity_run for everything that takes more than some
 * seconds, or that somebody may want to cancel.
 *
 * It runs at least once. If the process dies, or the worker stops before the step has ended, it is executed again by the
 * worker that takes the run over, attempts and pauses included. It begins only after the start of its step is durable. */
#ifndef HOLDFAST_LOCAL_H
#define HOLDFAST_LOCAL_H

#include <holdfast/workflow.h>

typedef struct hf_local_options {
    size_t size;               /* set by the macro */
    hf_span start_to_close;    /* time limit of one attempt, then it is tried again; this or schedule_to_close is
                                       required */
    hf_span schedule_to_close; /* time limit of all attempts together; 0 = none */
    hf_span schedule_to_start; /* time limit until the worker has a slot for it; 0 = none */
    int attempts_max;          /* attempts in all; 0 = HF_UNLIMITED; HF_OFF = no second one, as 1 */
    hf_span retry_initial;     /* pause before the second attempt; 1 s */
    double retry_coefficient;  /* factor by which each pause is longer than the last; 2 */
    hf_span retry_max;         /* longest pause; 100 times the first */
    hf_span timer_after; /* a pause longer than this is a timer of the workflow, which survives the worker; 1 min */
    const char *const *final_types; /* failures of these types are not tried again; ends with NULL; NULL = none */
    hf_on_cancel on_cancel;         /* what a cancel does; HF_CANCEL_WAIT */
    hf_payload *ret_details;        /* receives details of a failure; freed with the run; NULL = ignore */
    const char *summary;            /* one line about it in the history, for people, at most 1,000 bytes; NULL = none */
    const char *file;               /* set by the macro, as is the line: see hf_wait_options */
    int line;
} hf_local_options;

/* A function that gives a value from outside. It runs on a thread and may block. */
typedef hf_status (*hf_effect)(void *arg, hf_payload *ret_out);

HF_BEGIN_DECLS

/* Runs an activity of this worker by its name, and waits for it. `in` is borrowed, `ret_out` may be NULL. Inside the
 * activity hf_activity_info, hf_activity_fail and hf_canceled work as ever; hf_activity_heartbeat sends nothing.
 * Fails: as hf_activity_run (workflow.h), also when it is canceled: the activity is told at once. An attempt that does not
 * return when its time is over is left alone after another 10 s. HF_ERR_LIMIT: 1,000 are under way. */
HF_API HF_MUST_USE hf_status hf_activity_run_local_with(const char *name, hf_payload in, hf_payload *ret_out,
                                                        const hf_local_options *options);
/* A value from outside, taken once and from then on read from the history: hf_side_effect(read_rate, &pair, &rate). The
 * function runs once in a step, without a second attempt; after a crash it may run again. `arg` may lie on the caller's
 * stack: the call does not return before the function has returned, also if it is canceled.
 * Fails: HF_ERR_FAILED: the function failed, and hf_error()->cause says how; HF_ERR_CANCELED: it was canceled before it
 * began, or ended so; HF_ERR_LIMIT, HF_ERR_NOMEM, HF_ERR_EVICTED; HF_ERR_MISUSE: there is no function, or the caller is not
 * a workflow. */
HF_API HF_MUST_USE hf_status hf_side_effect(hf_effect effect, void *arg, hf_payload *ret_out);

HF_END_DECLS

#define hf_side_effect(...) (hf_here(__FILE__, __LINE__), hf_side_effect(__VA_ARGS__))

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_activity_run_local(...) HF_ACTIVITY_RUN_LOCAL_(__VA_ARGS__, .size = sizeof(hf_local_options), .file = __FILE__, .line = __LINE__)
#define HF_ACTIVITY_RUN_LOCAL_(name, in, ret_out, ...) \
    hf_activity_run_local_with((name), (in), (ret_out), &(hf_local_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_activity_run_local(const char *name, hf_payload in, hf_payload *ret_out,
    hf_local_options options = hf_local_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_activity_run_local_with(name, in, ret_out, &options);
}
#endif
/* clang-format on */

#endif
