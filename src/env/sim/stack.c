/* Stacks of simulated threads. A test runs a hundred thousand short simulations in a row, and a mapping with its guard
 * and its page faults costs more than the rest of such a run. So each thread of the host keeps a few used stacks, which
 * are not cleared. They are unmapped when that thread ends. */
#include "env/sim/sim_private.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CACHED_MAX = 64 }; /* 16 MiB of address space; a simulated runtime rarely has more threads */

typedef struct cache {
    uint32_t count;
    hf_sim_stack stacks[CACHED_MAX];
} cache;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static size_t guard_len(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void unmap(const hf_sim_stack *stack)
{
    size_t guard = guard_len();
    (void)munmap(stack->lo - guard, stack->len + guard);
}

static void cache_free(void *ptr)
{
    cache *stacks = (cache *)ptr;
    for (uint32_t i = 0; i < stacks->count; i++) {
        unmap(&stacks->stacks[i]);
    }
    free(stacks);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, cache_free) == 0;
}

/* The calling thread's cache; NULL = there is none, and no stack is kept. */
static cache *cache_get(bool may_make)
{
    (void)pthread_once(&once, make_key);
    if (!has_key) {
        return NULL;
    }
    cache *stacks = (cache *)pthread_getspecific(key);
    if (stacks == NULL && may_make) {
        stacks = (cache *)calloc(1, sizeof *stacks);
        if (stacks != NULL && pthread_setspecific(key, stacks) != 0) {
            free(stacks);
            stacks = NULL;
        }
    }
    return stacks;
}

bool hf_sim_stack_get(size_t len, hf_sim_stack *ret_stack)
{
    size_t guard = guard_len();
    len = len < HF_SIM_STACK_LEN ? HF_SIM_STACK_LEN : (len + guard - 1) / guard * guard;
    cache *stacks = cache_get(false);
    for (uint32_t i = stacks != NULL ? stacks->count : 0; i > 0; i--) {
        hf_sim_stack *cached = &stacks->stacks[i - 1];
        if (cached->len == len) {
            hf_assert(stacks->count > 0 && stacks->count <= CACHED_MAX && cached->lo != NULL);
            *ret_stack = *cached;
            *cached = stacks->stacks[--stacks->count];
            return true;
        }
    }
    void *pages = mmap(NULL, len + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        return false;
    }
    if (mprotect(pages, guard, PROT_NONE) != 0) {
        (void)munmap(pages, len + guard);
        return false;
    }
    ret_stack->lo = (char *)pages + guard;
    ret_stack->len = len;
    return true;
}

void hf_sim_stack_put(hf_sim_stack *stack)
{
    if (stack->lo == NULL) {
        return;
    }
#if HF_ASAN
    /* Frames that never returned left their red zones behind. */
    __asan_unpoison_memory_region(stack->lo, stack->len);
#endif
    hf_assert(stack->len >= HF_SIM_STACK_LEN);
    cache *stacks = cache_get(true);
    if (stacks != NULL && stacks->count < CACHED_MAX) {
        stacks->stacks[stacks->count++] = *stack;
    } else {
        unmap(stack);
    }
    stack->lo = NULL;
}
