/* The monitor thread: notices stuck fibers (watchdog), jobs that nobody steals, memory that can be given back.
 * Hosted and simulated runtimes have none: everything here then does nothing. */
#ifndef HF_FIBER_WATCH_H
#define HF_FIBER_WATCH_H

#include "fiber/core.h"

/* In this order around the schedulers' threads: open, threads start, start ... close, threads end, deinit. The signal
 * must be open before the threads are made, and they look at the monitor's state until they end. */
hf_status hf_watch_open(hf_runtime *rt, hf_op *op);
hf_status hf_watch_start(hf_runtime *rt, hf_op *op);
void hf_watch_close(hf_runtime *rt); /* no fiber is left: lost threads end by themselves and are joined */
void hf_watch_deinit(hf_runtime *rt);

/* A scheduler woke up: the monitor sleeps while all of them do. */
void hf_watch_busy(hf_sched *sched);

/* Called by a fiber whose thread was taken away, on that thread: carries the fiber to its scheduler's new thread and
 * returns there; the old thread ends. */
void hf_watch_carry(hf_fiber *self);
/* The other half, on the old thread's own stack: `away` is what runs there now. The thread must then end without
 * touching its former scheduler. */
void hf_watch_left(hf_fiber *away);

/* Whoever wants to know that a fiber is stuck, from any thread; the caller's, between listen and unlisten. The word goes up,
 * and who sleeps on it is woken, with every fiber that is reported. */
typedef struct hf_watch_listener {
    hf_node node;
    hf_word *word;
} hf_watch_listener;
void hf_watch_listen(hf_runtime *rt, hf_watch_listener *listener);
void hf_watch_unlisten(hf_runtime *rt, hf_watch_listener *listener);

uint64_t hf_watch_zombies(const hf_runtime *rt);
uint64_t hf_watch_stuck(const hf_runtime *rt);

#endif
