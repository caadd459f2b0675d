/* Memory of the process that fails: allocations of hf_env_posix, by this thread, in a call that is made again for each. */
#ifndef HF_TESTS_BROKEN_MEMORY_H
#define HF_TESTS_BROKEN_MEMORY_H

#include "support/support.h"

#include "base/env.h"

static hf_env_ops broken_memory_ops;
static const hf_env_ops *broken_memory_real;
static _Thread_local bool broken_memory_counts;
static _Thread_local uint64_t broken_memory_count, broken_memory_nth;

static inline void *broken_memory_allocate(hf_env *env, size_t len, size_t align)
{
    if (broken_memory_counts && ++broken_memory_count == broken_memory_nth) {
        return NULL;
    }
    return broken_memory_real->allocate(env, len, align);
}

/* From here on, until the next call, nothing fails: for the checks. */
static inline void broken_memory_pause(void)
{
    broken_memory_counts = false;
}

static inline bool broken_memory_has_failed(void)
{
    return broken_memory_count >= broken_memory_nth;
}

/* Calls `once` with the first allocation failing, with the second, and so on, until there is none that fails. Returns how many
 * failed. No other thread may use the library. */
static inline uint64_t broken_memory_each(void (*once)(void))
{
    hf_env *env = hf_env_posix();
    broken_memory_real = env->ops;
    broken_memory_ops = *env->ops;
    broken_memory_ops.allocate = broken_memory_allocate;
    env->ops = &broken_memory_ops;
    bool is_over = false;
    for (broken_memory_nth = 1; !is_over; broken_memory_nth++) {
        broken_memory_count = 0;
        broken_memory_counts = true;
        once();
        broken_memory_counts = false;
        is_over = broken_memory_count < broken_memory_nth;
    }
    env->ops = broken_memory_real;
    return broken_memory_nth - 2;
}

#endif
