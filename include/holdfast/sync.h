/* Mutex, semaphore, condition, once. All FIFO, all cancelable, from fibers and plain threads. */
#ifndef HOLDFAST_SYNC_H
#define HOLDFAST_SYNC_H

#include <holdfast/runtime.h>
#include <holdfast/wait.h>

typedef struct hf_mutex hf_mutex;
typedef struct hf_sem hf_sem;
typedef struct hf_cond hf_cond;
typedef struct hf_once hf_once;

typedef struct hf_sync_options {
    size_t size;         /* set by the macro */
    const char *name;    /* in dumps; must outlive the object */
    hf_runtime *runtime; /* needed on a plain thread only */
} hf_sync_options;

HF_BEGIN_DECLS

HF_API HF_MUST_USE hf_status hf_mutex_new_with(hf_mutex **ret_mutex, const hf_sync_options *options);
HF_API hf_status hf_mutex_free(hf_mutex *mutex); /* HF_ERR_MISUSE while it is held or waited for */
/* Not recursive: a second lock by the holder is HF_ERR_MISUSE. Fails: HF_ERR_CANCELED, HF_ERR_TIMEOUT. */
HF_API HF_MUST_USE hf_status hf_mutex_lock_with(hf_mutex *mutex, const hf_wait_options *options);
HF_API HF_MUST_USE hf_status hf_mutex_try_lock(hf_mutex *mutex); /* never waits. Fails: HF_ERR_AGAIN: it is held */
HF_API hf_status hf_mutex_unlock(hf_mutex *mutex);               /* HF_ERR_MISUSE unless the caller holds it */

HF_API HF_MUST_USE hf_status hf_sem_new_with(int64_t permits, hf_sem **ret_sem, const hf_sync_options *options);
HF_API hf_status hf_sem_free(hf_sem *sem);
HF_API HF_MUST_USE hf_status hf_sem_acquire_with(hf_sem *sem, int64_t permits, const hf_wait_options *options);
/* Never waits. Fails: HF_ERR_AGAIN: not enough permits are free. */
HF_API HF_MUST_USE hf_status hf_sem_try_acquire(hf_sem *sem, int64_t permits);
HF_API hf_status hf_sem_release(hf_sem *sem, int64_t permits); /* the caller need not be the one that acquired */

HF_API HF_MUST_USE hf_status hf_cond_new_with(hf_cond **ret_cond, const hf_sync_options *options);
HF_API hf_status hf_cond_free(hf_cond *cond);
/* Releases the mutex, waits, and holds the mutex again when it returns, also on failure. Test the condition in a loop.
 * Fails: HF_ERR_CANCELED, HF_ERR_TIMEOUT, HF_ERR_MISUSE (mutex not held by the caller). */
HF_API HF_MUST_USE hf_status hf_cond_wait_with(hf_cond *cond, hf_mutex *mutex, const hf_wait_options *options);
HF_API HF_MUST_USE hf_status hf_cond_signal(hf_cond *cond);
HF_API HF_MUST_USE hf_status hf_cond_broadcast(hf_cond *cond);

HF_API HF_MUST_USE hf_status hf_once_new_with(hf_once **ret_once, const hf_sync_options *options);
HF_API hf_status hf_once_free(hf_once *once);
/* The first caller runs body, and the others wait for it. Once body has returned HF_OK it is not run again. If it
 * failed, the next caller runs it. Returns the status of body to the caller that ran it, HF_OK to the others. */
HF_API HF_MUST_USE hf_status hf_once_run(hf_once *once, hf_body body, void *arg);

HF_END_DECLS

HF_AUTO_DEFINE(hf_mutex_free, hf_mutex)
HF_AUTO_DEFINE(hf_mutex_unlock, hf_mutex)
HF_AUTO_DEFINE(hf_sem_free, hf_sem)
HF_AUTO_DEFINE(hf_cond_free, hf_cond)
HF_AUTO_DEFINE(hf_once_free, hf_once)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_mutex_new(...) HF_MUTEX_NEW_(__VA_ARGS__, .size = sizeof(hf_sync_options))
#define HF_MUTEX_NEW_(ret_mutex, ...) \
    hf_mutex_new_with((ret_mutex), &(hf_sync_options){__VA_ARGS__})
#define hf_mutex_lock(...) HF_MUTEX_LOCK_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_MUTEX_LOCK_(mutex, ...) \
    hf_mutex_lock_with((mutex), &(hf_wait_options){__VA_ARGS__})
#define hf_sem_new(...) HF_SEM_NEW_(__VA_ARGS__, .size = sizeof(hf_sync_options))
#define HF_SEM_NEW_(permits, ret_sem, ...) \
    hf_sem_new_with((permits), (ret_sem), &(hf_sync_options){__VA_ARGS__})
#define hf_sem_acquire(...) HF_SEM_ACQUIRE_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_SEM_ACQUIRE_(sem, permits, ...) \
    hf_sem_acquire_with((sem), (permits), &(hf_wait_options){__VA_ARGS__})
#define hf_cond_new(...) HF_COND_NEW_(__VA_ARGS__, .size = sizeof(hf_sync_options))
#define HF_COND_NEW_(ret_cond, ...) \
    hf_cond_new_with((ret_cond), &(hf_sync_options){__VA_ARGS__})
#define hf_cond_wait(...) HF_COND_WAIT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_COND_WAIT_(cond, mutex, ...) \
    hf_cond_wait_with((cond), (mutex), &(hf_wait_options){__VA_ARGS__})
#define hf_once_new(...) HF_ONCE_NEW_(__VA_ARGS__, .size = sizeof(hf_sync_options))
#define HF_ONCE_NEW_(ret_once, ...) \
    hf_once_new_with((ret_once), &(hf_sync_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_mutex_new(hf_mutex **ret_mutex,
    hf_sync_options options = hf_sync_options())
{
    options.size = sizeof options;
    return hf_mutex_new_with(ret_mutex, &options);
}
static inline HF_MUST_USE hf_status
hf_mutex_lock(hf_mutex *mutex,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_mutex_lock_with(mutex, &options);
}
static inline HF_MUST_USE hf_status
hf_sem_new(int64_t permits, hf_sem **ret_sem,
    hf_sync_options options = hf_sync_options())
{
    options.size = sizeof options;
    return hf_sem_new_with(permits, ret_sem, &options);
}
static inline HF_MUST_USE hf_status
hf_sem_acquire(hf_sem *sem, int64_t permits,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_sem_acquire_with(sem, permits, &options);
}
static inline HF_MUST_USE hf_status
hf_cond_new(hf_cond **ret_cond,
    hf_sync_options options = hf_sync_options())
{
    options.size = sizeof options;
    return hf_cond_new_with(ret_cond, &options);
}
static inline HF_MUST_USE hf_status
hf_cond_wait(hf_cond *cond, hf_mutex *mutex,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_cond_wait_with(cond, mutex, &options);
}
static inline HF_MUST_USE hf_status
hf_once_new(hf_once **ret_once,
    hf_sync_options options = hf_sync_options())
{
    options.size = sizeof options;
    return hf_once_new_with(ret_once, &options);
}
#endif
/* clang-format on */

#endif
