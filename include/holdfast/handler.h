/* Inside a workflow: handlers of signals, queries and updates, and conditions.
 *
 * A handler of signals or updates is a fiber beside the workflow's main function. It may wait, run activities and fork,
 * and it fails for itself: a failed signal handler is logged, a failed update handler fails its update, and neither ends
 * the workflow. Handlers and the main function take turns on one thread, so they need no locks.
 *
 * When the main function has returned, handlers run until they wait. Their commands and the answers of updates that are
 * ready go out together with the end of the workflow. Handlers that still wait are then canceled, and the log names them
 * (workflow_ends_over_handlers). hf_handlers_wait waits for them before the end.
 *
 * `arg` of a handler must outlive the main function's frame: take it from hf_workflow_alloc (run.h), or use something
 * static. An address on the stack of the calling fiber is refused with HF_ERR_MISUSE; so is one among the first
 * `.arg_len` bytes at `arg`, where the C++ header has what a lambda captured. */
#ifndef HOLDFAST_HANDLER_H
#define HOLDFAST_HANDLER_H

#include <holdfast/payload.h>
#include <holdfast/wait.h>

/* `in` is borrowed for the call. */
typedef hf_status (*hf_signal_handler)(void *arg, hf_payload in);
/* The same with an answer, as in hf_function (workflow.h). */
typedef hf_status (*hf_reply_handler)(void *arg, hf_payload in, hf_payload *ret_out);
/* HF_OK accepts an update; any other status rejects it, and the caller gets the failure. */
typedef hf_status (*hf_validator)(void *arg, hf_payload in);

typedef struct hf_on_signal_options {
    size_t size;      /* set by the macro */
    void *arg;        /* for the handler */
    bool may_be_left; /* no warning if the workflow ends before the handler has returned */
    size_t arg_len;   /* bytes at `arg` that are looked at for addresses on the stack, too; 0 = none */
} hf_on_signal_options;

typedef struct hf_on_query_options {
    size_t size;    /* set by the macro */
    void *arg;      /* for the handler */
    size_t arg_len; /* as of hf_on_signal */
} hf_on_query_options;

typedef struct hf_on_update_options {
    size_t size; /* set by the macro */
    void *arg;   /* for the handler and the validator */
    hf_validator
        validator;    /* called before the update is accepted, and not again in a replay; NULL = all are accepted */
    bool may_be_left; /* no warning if the workflow ends before the handler has returned */
    size_t arg_len;   /* as of hf_on_signal */
} hf_on_update_options;

HF_BEGIN_DECLS

/* From now on signals of this name call the handler; `name` NULL: signals of all names that have no handler and that no
 * fiber waits for. Signals that came earlier and were not taken are given to it first, in their order. A second call
 * with the same name replaces the handler. The name is copied.
 * Fails: HF_ERR_INVALID: the name is empty or too long; HF_ERR_MISUSE: a fiber waits for this name with hf_signal_wait,
 * `arg` is on this fiber's stack, or the caller is not a workflow; HF_ERR_NOMEM, HF_ERR_EVICTED. */
HF_API HF_MUST_USE hf_status hf_on_signal_with(const char *name, hf_signal_handler handler,
                                               const hf_on_signal_options *options);
/* Answers queries of this name; NULL: of all names without a handler. A query shows what is there and leaves no trace: the
 * handler may read the workflow's data, and every verb that waits or changes something is HF_ERR_MISUSE in it. Queries
 * are answered while the workflow runs and after its end, whenever a worker can replay it. Fails as hf_on_signal. */
HF_API HF_MUST_USE hf_status hf_on_query_with(const char *name, hf_reply_handler handler,
                                              const hf_on_query_options *options);
/* Answers updates of this name; NULL: of all names without a handler. An update of a name without a handler is rejected.
 * The validator must change nothing, like a query. The caller of the update gets the result or the failure of the
 * handler. Fails as hf_on_signal. */
HF_API HF_MUST_USE hf_status hf_on_update_with(const char *name, hf_reply_handler handler,
                                               const hf_on_update_options *options);
/* The name of the signal, query or update that the calling handler answers; NULL elsewhere. */
HF_API const char *hf_handler_name(void);
/* The id of the update that the calling handler answers: a repeated request has the same id. NULL elsewhere. */
HF_API const char *hf_update_id(void);
/* HF_TRY(hf_handlers_wait(.timeout = hf_minutes(1)));  Waits until no other handler of signals or updates is under way.
 * Handlers that wait here themselves do not wait for each other: they go on together when all that are left wait.
 * Fails: HF_ERR_TIMEOUT, HF_ERR_CANCELED, HF_ERR_EVICTED, HF_ERR_INVALID: .timeout is above 0 but below a millisecond;
 * HF_ERR_MISUSE outside a workflow. */
HF_API HF_MUST_USE hf_status hf_handlers_wait_with(const hf_wait_options *options);
/* Takes the oldest stored signal of this name, without waiting. `ret_out` may be NULL. Fails: HF_ERR_AGAIN: none has
 * come; else as hf_signal_wait (workflow.h). */
HF_API HF_MUST_USE hf_status hf_signal_try(const char *name, hf_payload *ret_out);

/* ---- Conditions -------------------------------------------------------------------------------------------------- */

/* The state of hf_wait_until, which declares one. */
typedef struct hf_until {
    uint64_t own[24]; /* the library's */
} hf_until;

/* The parts of hf_wait_until. Each call of hf_until_begin is followed by one of hf_until_end on the same fiber. */
HF_API HF_MUST_USE hf_status hf_until_begin(hf_until *until, const hf_wait_options *options);
HF_API HF_MUST_USE hf_status hf_until_next(hf_until *until);
HF_API HF_MUST_USE hf_status hf_until_end(hf_until *until, hf_status status);

HF_END_DECLS

/* HF_TRY(hf_wait_until(vote->yes >= 2 || vote->no > 0, .timeout = hf_days(7)));
 *
 * Waits until the expression is true. It is evaluated now, and again whenever something has come to the workflow: its
 * start, signals and updates, ends of activities and timers. Fibers that wait like this look in the order in which they
 * began to wait, again and again until no expression is true that was not before. The expression may read the workflow's
 * data; a verb in it that waits or changes something is refused. The whole wait has one timer. Only in workflows.
 * Fails: HF_ERR_TIMEOUT, HF_ERR_CANCELED, HF_ERR_EVICTED, HF_ERR_INVALID, HF_ERR_MISUSE. */
#define HF_WAIT_UNTIL_(condition, ...)                                          \
    __extension__({                                                             \
        hf_until hf_until_;                                                     \
        hf_status hf_until_status_ = hf_until_begin(&hf_until_, (__VA_ARGS__)); \
        while (hf_until_status_ == HF_OK && !(condition)) {                     \
            hf_until_status_ = hf_until_next(&hf_until_);                       \
        }                                                                       \
        hf_until_end(&hf_until_, hf_until_status_);                             \
    })
#ifndef __cplusplus
#define hf_wait_until(...) \
    HF_WAIT_UNTIL_WITH_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_WAIT_UNTIL_WITH_(condition, ...) HF_WAIT_UNTIL_((condition), &(hf_wait_options){__VA_ARGS__})
#else
/* hf_wait_until(condition) or hf_wait_until(condition, options) */
#define hf_wait_until(...) HF_WAIT_UNTIL_WITH_(__VA_ARGS__, hf_wait_options(), 0)
#define HF_WAIT_UNTIL_WITH_(condition, options, ...)       \
    __extension__({                                        \
        hf_wait_options hf_until_options_ = (options);     \
        hf_until_options_.size = sizeof hf_until_options_; \
        hf_until_options_.file = __FILE__;                 \
        hf_until_options_.line = __LINE__;                 \
        HF_WAIT_UNTIL_((condition), &hf_until_options_);   \
    })
#endif

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_on_signal(...) HF_ON_SIGNAL_(__VA_ARGS__, .size = sizeof(hf_on_signal_options))
#define HF_ON_SIGNAL_(name, handler, ...) \
    hf_on_signal_with((name), (handler), &(hf_on_signal_options){__VA_ARGS__})
#define hf_on_query(...) HF_ON_QUERY_(__VA_ARGS__, .size = sizeof(hf_on_query_options))
#define HF_ON_QUERY_(name, handler, ...) \
    hf_on_query_with((name), (handler), &(hf_on_query_options){__VA_ARGS__})
#define hf_on_update(...) HF_ON_UPDATE_(__VA_ARGS__, .size = sizeof(hf_on_update_options))
#define HF_ON_UPDATE_(name, handler, ...) \
    hf_on_update_with((name), (handler), &(hf_on_update_options){__VA_ARGS__})
#define hf_handlers_wait(...) \
    hf_handlers_wait_with(&(hf_wait_options){.size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__, __VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_on_signal(const char *name, hf_signal_handler handler,
    hf_on_signal_options options = hf_on_signal_options())
{
    options.size = sizeof options;
    return hf_on_signal_with(name, handler, &options);
}
static inline HF_MUST_USE hf_status
hf_on_query(const char *name, hf_reply_handler handler,
    hf_on_query_options options = hf_on_query_options())
{
    options.size = sizeof options;
    return hf_on_query_with(name, handler, &options);
}
static inline HF_MUST_USE hf_status
hf_on_update(const char *name, hf_reply_handler handler,
    hf_on_update_options options = hf_on_update_options())
{
    options.size = sizeof options;
    return hf_on_update_with(name, handler, &options);
}
static inline HF_MUST_USE hf_status
hf_handlers_wait(
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_handlers_wait_with(&options);
}
#endif
/* clang-format on */

#endif
