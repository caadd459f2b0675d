/* Inside a workflow: other workflows. Children that it starts, and signals and cancels to any workflow of its namespace. */
#ifndef HOLDFAST_CHILD_H
#define HOLDFAST_CHILD_H

#include <holdfast/payload.h>
#include <holdfast/service.h>
#include <holdfast/workflow.h>

/* What happens to a child that runs when its parent ends. */
typedef enum hf_parent_close {
    HF_PARENT_CLOSE_TERMINATE, /* it is terminated */
    HF_PARENT_CLOSE_CANCEL,    /* it is asked to end */
    HF_PARENT_CLOSE_ABANDON    /* it lives on by itself */
} hf_parent_close;
#define HF_PARENT_CLOSE_COUNT 3

typedef struct hf_child_options {
    size_t size;               /* set by the macro */
    const char *id;            /* its workflow id; NULL = the parent's run id and a number */
    const char *task_queue;    /* NULL = the parent's */
    hf_span execution_timeout; /* of all of its runs together; 0 = none */
    hf_span run_timeout;       /* of one run; 0 = none */
    hf_span task_timeout;      /* of one workflow task; 0 = the service's default, 10 s */
    hf_id_reuse id_reuse;      /* may the id be that of a workflow that has ended? */
    hf_parent_close parent_close;
    hf_on_cancel on_cancel;   /* what a cancel of the call does; HF_CANCEL_WAIT */
    int attempts_max;         /* runs in all, if they fail; 0 = HF_OFF = one; HF_UNLIMITED */
    hf_span retry_initial;    /* pause before the second run; 1 s */
    double retry_coefficient; /* factor by which each pause is longer than the last; 2 */
    hf_span retry_max;        /* longest pause; 100 times the first */
    const char *cron;         /* its schedule (service.h); NULL = none */
    hf_branch **ret_branch;   /* hf_fork_child: a handle, as that of hf_fork; NULL = none */
    const char *file;         /* set by the macro, as is the line: see hf_wait_options */
    int line;
    const hf_entry *header; /* goes along, see header.h; NULL = none */
    const char *summary;  /* one line about it in the parent's history, for people, at most 1,000 bytes; NULL = none */
    const hf_entry *memo; /* notes that hf_describe shows, as those of hf_start; NULL = none */
    const hf_entry *search_attributes; /* values by which workflows are found; NULL = none */
    const char *const *final_types;    /* failures of these types are not tried again; ends with NULL; NULL = none */
} hf_child_options;

typedef struct hf_external_options {
    size_t size;            /* set by the macro */
    const hf_entry *header; /* goes along, see header.h; NULL = none */
    const char *file;       /* set by the macro, as is the line: see hf_wait_options */
    int line;
    const char *run_id; /* only this run gets it; NULL = the one that is open */
} hf_external_options;

HF_BEGIN_DECLS

/* Starts a workflow and waits for its end. If it continues as new, is retried or has a schedule, the end is that of the last
 * run. `in` is borrowed, `ret_out` may be NULL.
 * Fails: HF_ERR_FAILED: it failed; hf_error() has the type "ChildWorkflowFailed", and its cause is the child's failure;
 * HF_ERR_TIMEOUT, HF_ERR_CANCELED: it ended so, or was canceled before it began; HF_ERR_CLOSED: it was terminated;
 * HF_ERR_EXISTS: its id is in use; HF_ERR_NOT_FOUND: its namespace does not exist; HF_ERR_EVICTED. A cancel works as for
 * hf_activity_run: the child is asked to end, and the call returns when it has ended. With these statuses nothing was
 * started: HF_ERR_INVALID: a name, bound or option makes no sense; HF_ERR_TOO_BIG; HF_ERR_LIMIT: 2,000 children are
 * pending; HF_ERR_MISUSE: `in` has no bytes, or the caller is not a workflow. */
HF_API HF_MUST_USE hf_status hf_child_run_with(const char *type, hf_payload in, hf_payload *ret_out,
                                               const hf_child_options *options);
/* The same, but returns when the child has started: for one that lives on by itself (.parent_close =
 * HF_PARENT_CLOSE_ABANDON), or whose end does not matter. Fails as hf_child_run. A cancel that comes before the child has
 * started works as for hf_child_run, too: HF_OK then means that the child was not asked to end, or did not obey and completed. */
HF_API HF_MUST_USE hf_status hf_child_start_with(const char *type, hf_payload in, const hf_child_options *options);
/* Starts a workflow as a child of a scope, without a fiber: see hf_fork_activity. The branch ends when the child workflow
 * has ended, and its status is that of hf_child_run. `ret_out` may be NULL; it must live until the scope is closed.
 * Fails: as hf_fork, and with the statuses of hf_child_run that mean that nothing was started. */
HF_API HF_MUST_USE hf_status hf_fork_child_with(hf_scope *scope, const char *type, hf_payload in, hf_payload *ret_out,
                                                const hf_child_options *options);

/* Sends a signal to the open run of a workflow of this namespace, and waits until it was delivered. It is delivered once,
 * whatever crashes. Fails: HF_ERR_NOT_FOUND: no such workflow runs, or it is this one; HF_ERR_INVALID: a name is empty or
 * too long; HF_ERR_TOO_BIG, HF_ERR_LIMIT: 2,000 signals are on their way; HF_ERR_CANCELED: the wait was canceled;
 * the signal is sent all the same, unless that happened in the step that asked for it; HF_ERR_EVICTED, HF_ERR_MISUSE. */
HF_API HF_MUST_USE hf_status hf_external_signal_with(const char *id, const char *name, hf_payload in,
                                                     const hf_external_options *options);
/* Asks another workflow to end. `reason` may be NULL. Fails as hf_external_signal. */
HF_API HF_MUST_USE hf_status hf_external_cancel(const char *id, const char *reason);

HF_END_DECLS

#define hf_external_cancel(...) (hf_here(__FILE__, __LINE__), hf_external_cancel(__VA_ARGS__))

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_child_run(...) HF_CHILD_RUN_(__VA_ARGS__, .size = sizeof(hf_child_options), .file = __FILE__, .line = __LINE__)
#define HF_CHILD_RUN_(type, in, ret_out, ...) \
    hf_child_run_with((type), (in), (ret_out), &(hf_child_options){__VA_ARGS__})
#define hf_child_start(...) HF_CHILD_START_(__VA_ARGS__, .size = sizeof(hf_child_options), .file = __FILE__, .line = __LINE__)
#define HF_CHILD_START_(type, in, ...) \
    hf_child_start_with((type), (in), &(hf_child_options){__VA_ARGS__})
#define hf_fork_child(...) HF_FORK_CHILD_(__VA_ARGS__, .size = sizeof(hf_child_options), .file = __FILE__, .line = __LINE__)
#define HF_FORK_CHILD_(scope, type, in, ret_out, ...) \
    hf_fork_child_with((scope), (type), (in), (ret_out), &(hf_child_options){__VA_ARGS__})
#define hf_external_signal(...) HF_EXTERNAL_SIGNAL_(__VA_ARGS__, .size = sizeof(hf_external_options), .file = __FILE__, .line = __LINE__)
#define HF_EXTERNAL_SIGNAL_(id, name, in, ...) \
    hf_external_signal_with((id), (name), (in), &(hf_external_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_child_run(const char *type, hf_payload in, hf_payload *ret_out,
    hf_child_options options = hf_child_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_child_run_with(type, in, ret_out, &options);
}
static inline HF_MUST_USE hf_status
hf_child_start(const char *type, hf_payload in,
    hf_child_options options = hf_child_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_child_start_with(type, in, &options);
}
static inline HF_MUST_USE hf_status
hf_fork_child(hf_scope *scope, const char *type, hf_payload in, hf_payload *ret_out,
    hf_child_options options = hf_child_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_fork_child_with(scope, type, in, ret_out, &options);
}
static inline HF_MUST_USE hf_status
hf_external_signal(const char *id, const char *name, hf_payload in,
    hf_external_options options = hf_external_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_external_signal_with(id, name, in, &options);
}
#endif
/* clang-format on */

#endif
