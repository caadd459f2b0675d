#include "base/env.h"

static void *env_allocate(void *state, size_t len, size_t align)
{
    hf_env *env = state;
    return env->ops->allocate(env, len, align);
}

static void env_release(void *state, void *ptr, size_t len)
{
    hf_env *env = state;
    env->ops->release(env, ptr, len);
}

hf_allocator hf_env_memory(hf_env *env)
{
    return (hf_allocator){env_allocate, env_release, env};
}
