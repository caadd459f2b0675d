/* Dispatchers: where work runs. The fiber threads are for code that computes and waits through the library; pools are
 * plain threads for code that blocks; a serial dispatcher runs one branch after another. */
#ifndef HOLDFAST_DISPATCH_H
#define HOLDFAST_DISPATCH_H

#include <holdfast/runtime.h>

typedef struct hf_dispatcher_options {
    size_t size;         /* set by the macro */
    const char *name;    /* in dumps and thread names */
    hf_runtime *runtime; /* needed on a plain thread only */
    int limit;           /* pool: threads at most, 64; view: calls at once, 1. HF_UNLIMITED is refused */
    hf_span idle;        /* pool: time after which an idle thread ends; 5 s */
    /* Pool, view: calls waiting at most; one more fails with HF_ERR_LIMIT, from hf_block or as the outcome of a forked
     * branch; 0 = HF_UNLIMITED. */
    int64_t queue_max;
} hf_dispatcher_options;

typedef struct hf_block_options {
    size_t size;       /* set by the macro */
    hf_dispatcher *on; /* a pool or a view; NULL = the runtime's pool */
    /* A canceled caller returns at once; the call goes on and its result is dropped. So `arg` must outlive the function
     * that calls hf_block. If hf_block returns the call's own result, the caller still owns `arg`; else the library
     * passes it to `drop`. */
    bool abandonable;
    /* With abandonable: releases `arg`, after an abandoned call has ended, or at once if the call never ran. */
    void (*drop)(void *arg);
    hf_span timeout; /* with abandonable: the caller returns HF_ERR_TIMEOUT after this; the call goes on */
} hf_block_options;

HF_BEGIN_DECLS

/* An elastic pool of plain threads: none when idle, at most `limit`. */
HF_API HF_MUST_USE hf_status hf_pool_new_with(hf_dispatcher **ret_pool, const hf_dispatcher_options *options);
/* A view of a pool (NULL = the runtime's) with its own, smaller limit. */
HF_API HF_MUST_USE hf_status hf_pool_view_with(hf_dispatcher *pool, hf_dispatcher **ret_view,
                                               const hf_dispatcher_options *options);
/* Runs the branches that are forked on it one after another, in order; each to its end. So a branch must not wait
 * for another branch of the same serial dispatcher, which starts only after it. */
HF_API HF_MUST_USE hf_status hf_serial_new_with(hf_dispatcher **ret_serial, const hf_dispatcher_options *options);
/* HF_ERR_MISUSE while it has work. A pool that is not freed ends with its runtime, which logs a warning
 * (pool_not_freed). */
HF_API hf_status hf_dispatcher_free(hf_dispatcher *dispatcher);

/* Runs call(arg) on a pool thread and waits for it; returns what it returned. The fiber stays on its own thread.
 * A call that has started cannot be interrupted: a canceled caller still waits for it, unless it is abandonable; one
 * that has not started is withdrawn (HF_ERR_CANCELED). On a plain thread it simply calls. */
HF_API HF_MUST_USE hf_status hf_block_with(hf_body call, void *arg, const hf_block_options *options);

HF_END_DECLS

HF_AUTO_DEFINE(hf_dispatcher_free, hf_dispatcher)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_pool_new(...) HF_POOL_NEW_(__VA_ARGS__, .size = sizeof(hf_dispatcher_options))
#define HF_POOL_NEW_(ret_pool, ...) \
    hf_pool_new_with((ret_pool), &(hf_dispatcher_options){__VA_ARGS__})
#define hf_pool_view(...) HF_POOL_VIEW_(__VA_ARGS__, .size = sizeof(hf_dispatcher_options))
#define HF_POOL_VIEW_(pool, ret_view, ...) \
    hf_pool_view_with((pool), (ret_view), &(hf_dispatcher_options){__VA_ARGS__})
#define hf_serial_new(...) HF_SERIAL_NEW_(__VA_ARGS__, .size = sizeof(hf_dispatcher_options))
#define HF_SERIAL_NEW_(ret_serial, ...) \
    hf_serial_new_with((ret_serial), &(hf_dispatcher_options){__VA_ARGS__})
#define hf_block(...) HF_BLOCK_(__VA_ARGS__, .size = sizeof(hf_block_options))
#define HF_BLOCK_(call, arg, ...) \
    hf_block_with((call), (arg), &(hf_block_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_pool_new(hf_dispatcher **ret_pool,
    hf_dispatcher_options options = hf_dispatcher_options())
{
    options.size = sizeof options;
    return hf_pool_new_with(ret_pool, &options);
}
static inline HF_MUST_USE hf_status
hf_pool_view(hf_dispatcher *pool, hf_dispatcher **ret_view,
    hf_dispatcher_options options = hf_dispatcher_options())
{
    options.size = sizeof options;
    return hf_pool_view_with(pool, ret_view, &options);
}
static inline HF_MUST_USE hf_status
hf_serial_new(hf_dispatcher **ret_serial,
    hf_dispatcher_options options = hf_dispatcher_options())
{
    options.size = sizeof options;
    return hf_serial_new_with(ret_serial, &options);
}
static inline HF_MUST_USE hf_status
hf_block(hf_body call, void *arg,
    hf_block_options options = hf_block_options())
{
    options.size = sizeof options;
    return hf_block_with(call, arg, &options);
}
#endif
/* clang-format on */

#endif
