/* Readers without a lock: when memory that was taken out of a structure may be freed (ADR 0034).
 *
 * A thread that reads announces it in a seat of its own, a cache line that no other thread writes:
 *
 *   reader    seat->at = epoch;  (compiler barrier)  look at the structure  ;  seat->at = 0
 *   writer    takes something out of the structure;  target = ++epoch;  barrier_all;  looks at all seats
 *
 * barrier_all makes every other thread pass a full barrier (ADR 0004), so the reader needs none. Something that was
 * taken out may be freed when each seat was seen, after that barrier, with 0 or with `target` or more in it: a reader that had
 * not announced itself before the barrier looks at the structure after it, and finds it without what was taken out.
 *
 * Seats are numbered by threads of the operating system: a thread takes a number of the process when it first reads, and
 * gives it back when it ends. A fiber that is inside the library stays on its thread, so the number is that of the
 * thread that runs it. A reading section does not switch, wait or call out of the library.
 *
 * fiber-Y1  seat->at is written by the thread that has the seat's number, and by nobody else.
 * fiber-Y2  What a reader can reach is not freed before the reader has left. */
#ifndef HF_FIBER_READERS_H
#define HF_FIBER_READERS_H

#include "fiber/core.h"

enum {
    HF_READERS_MAX = 512, /* threads with a seat; others read under the structure's lock */
    HF_READERS_PER_BLOCK = 16,
    HF_SEAT_ALIGN = 128
};

typedef struct hf_seat {
    /* The epoch in which the thread began to read; 0 = it does not read. Seats are two lines apart, because processors
     * fetch lines in pairs. */
    _Alignas(HF_SEAT_ALIGN) _Atomic(uint64_t) at;
    _Atomic(uint64_t) hits; /* for the structure's owner: counted here, so that no word is shared */
    _Atomic(uint64_t) misses;
} hf_seat;

typedef struct hf_readers {
    _Alignas(64) _Atomic(uint64_t) epoch; /* from 1 on; read by every reader, written by every reclaim */
    _Atomic(hf_seat *) blocks[HF_READERS_MAX / HF_READERS_PER_BLOCK]; /* made on first use, freed with the structure */
} hf_readers;

/* Number of the calling thread, from 1 on; 0 = it has none yet. Read by an instruction that the compiler cannot move, as
 * hf_self_get. */
extern _Thread_local uint64_t hf_reader_number __attribute__((tls_model("initial-exec"), visibility("hidden")));
#if defined(__x86_64__)
static inline uint64_t hf_reader_number_get(void)
{
    uint64_t number;
    __asm__ volatile("movq hf_reader_number@GOTTPOFF(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(number) : : "memory");
    return number;
}
#else
uint64_t hf_reader_number_get(void);
#endif
/* By enter.c, when a thread ends. */
void hf_reader_end(void);

void hf_readers_init(hf_readers *readers);
/* Frees the seats. Nobody reads any more. */
void hf_readers_deinit(hf_readers *readers, hf_runtime *rt);
/* The seat of the calling thread, made on its first call. NULL: there are too many threads, or no memory. */
hf_seat *hf_readers_seat_slow(hf_readers *readers, hf_runtime *rt);

static inline hf_seat *hf_readers_seat(hf_readers *readers, hf_runtime *rt)
{
    uint64_t number = hf_reader_number_get();
    if (HF_LIKELY(number - 1 < HF_READERS_MAX)) {
        hf_seat *block =
            atomic_load_explicit(&readers->blocks[(number - 1) / HF_READERS_PER_BLOCK], memory_order_acquire);
        if (HF_LIKELY(block != NULL)) {
            return &block[(number - 1) % HF_READERS_PER_BLOCK];
        }
    }
    return hf_readers_seat_slow(readers, rt);
}

/* Begins to read; returns what hf_reading_end needs. Sections of one thread may nest. */
static inline uint64_t hf_reading_begin(hf_readers *readers, hf_seat *seat)
{
    uint64_t was = atomic_load_explicit(&seat->at, memory_order_relaxed);
    if (HF_LIKELY(was == 0)) {
        atomic_store_explicit(&seat->at, atomic_load_explicit(&readers->epoch, memory_order_acquire),
                              memory_order_release);
    }
    atomic_signal_fence(memory_order_seq_cst); /* the processor's part is barrier_all */
    return was;
}

static inline void hf_reading_end(hf_seat *seat, uint64_t was)
{
    atomic_store_explicit(&seat->at, was, memory_order_release);
}

static inline void hf_seat_count(_Atomic(uint64_t) *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* A new target, after a barrier: what was taken out before may be freed when hf_readers_have_left says so. */
uint64_t hf_readers_target(hf_readers *readers, hf_runtime *rt);
bool hf_readers_have_left(hf_readers *readers, uint64_t target);
/* Adds up what all seats have counted. */
void hf_readers_counts(hf_readers *readers, uint64_t *ret_hits, uint64_t *ret_misses);

#endif
