#include "fiber/keyed/readers.h"

#include "fiber/enter.h"

#include <string.h>

_Thread_local uint64_t hf_reader_number __attribute__((tls_model("initial-exec"), visibility("hidden")));

#if !defined(__x86_64__)
HF_NOINLINE uint64_t hf_reader_number_get(void)
{
    uint64_t number = hf_reader_number;
    __asm__ volatile("" : "+r"(number));
    return number;
}
#endif

/* ---- Numbers of threads ------------------------------------------------------------------------------------------ */

/* A bit for each number that a thread has. One set for the process: a thread may read structures of any runtime. */
static _Atomic(uint64_t) taken[HF_READERS_MAX / 64];

static HF_NOINLINE void number_set(uint64_t number)
{
    hf_reader_number = number;
}

/* The lowest free number, so that few blocks of seats are needed. 0: all are taken. */
static uint64_t number_take(void)
{
    for (uint64_t i = 0; i < HF_COUNT_OF(taken); i++) {
        uint64_t bits = atomic_load_explicit(&taken[i], memory_order_relaxed);
        while (bits != UINT64_MAX) {
            uint64_t free_bit = ~bits & (bits + 1);
            if (atomic_compare_exchange_weak_explicit(&taken[i], &bits, bits | free_bit, memory_order_acquire,
                                                      memory_order_relaxed)) {
                return i * 64 + (uint64_t)__builtin_ctzll(free_bit) + 1;
            }
        }
    }
    return 0;
}

void hf_reader_end(void)
{
    uint64_t number = hf_reader_number_get();
    if (number != 0) {
        number_set(0);
        uint64_t bit = UINT64_C(1) << ((number - 1) % 64);
        uint64_t before = atomic_fetch_and_explicit(&taken[(number - 1) / 64], ~bit, memory_order_release);
        hf_assert((before & bit) != 0); /* fiber-Y1 */
    }
}

/* ---- Seats ------------------------------------------------------------------------------------------------------- */

void hf_readers_init(hf_readers *readers)
{
    atomic_store_explicit(&readers->epoch, 1, memory_order_relaxed);
}

void hf_readers_deinit(hf_readers *readers, hf_runtime *rt)
{
    for (size_t i = 0; i < HF_COUNT_OF(readers->blocks); i++) {
        hf_seat *block = atomic_load_explicit(&readers->blocks[i], memory_order_acquire);
        if (block != NULL) {
            rt->allocator.release(rt->allocator.state, block, HF_READERS_PER_BLOCK * sizeof *block);
        }
    }
}

hf_seat *hf_readers_seat_slow(hf_readers *readers, hf_runtime *rt)
{
    uint64_t number = hf_reader_number_get();
    if (number == 0) {
        number = number_take();
        if (number == 0) {
            return NULL;
        }
        number_set(number);
        hf_thread_at_end();
    }
    _Atomic(hf_seat *) *place = &readers->blocks[(number - 1) / HF_READERS_PER_BLOCK];
    hf_seat *block = atomic_load_explicit(place, memory_order_acquire);
    if (block == NULL) {
        size_t len = HF_READERS_PER_BLOCK * sizeof *block;
        hf_seat *fresh = rt->allocator.allocate(rt->allocator.state, len, HF_SEAT_ALIGN);
        if (fresh == NULL) {
            return NULL;
        }
        memset(fresh, 0, len);
        if (atomic_compare_exchange_strong(place, &block, fresh)) {
            block = fresh;
        } else {
            rt->allocator.release(rt->allocator.state, fresh, len);
        }
    }
    return &block[(number - 1) % HF_READERS_PER_BLOCK];
}

uint64_t hf_readers_target(hf_readers *readers, hf_runtime *rt)
{
    uint64_t target = atomic_fetch_add(&readers->epoch, 1) + 1;
    rt->env->ops->barrier_all(rt->env);
    return target;
}

bool hf_readers_have_left(hf_readers *readers, uint64_t target)
{
    for (size_t i = 0; i < HF_COUNT_OF(readers->blocks); i++) {
        hf_seat *block = atomic_load_explicit(&readers->blocks[i], memory_order_acquire);
        for (size_t j = 0; block != NULL && j < HF_READERS_PER_BLOCK; j++) {
            uint64_t at = atomic_load_explicit(&block[j].at, memory_order_acquire);
            if (at != 0 && at < target) {
                return false;
            }
        }
    }
    return true;
}

void hf_readers_counts(hf_readers *readers, uint64_t *ret_hits, uint64_t *ret_misses)
{
    *ret_hits = 0;
    *ret_misses = 0;
    for (size_t i = 0; i < HF_COUNT_OF(readers->blocks); i++) {
        hf_seat *block = atomic_load_explicit(&readers->blocks[i], memory_order_acquire);
        for (size_t j = 0; block != NULL && j < HF_READERS_PER_BLOCK; j++) {
            *ret_hits += atomic_load_explicit(&block[j].hits, memory_order_relaxed);
            *ret_misses += atomic_load_explicit(&block[j].misses, memory_order_relaxed);
        }
    }
}
