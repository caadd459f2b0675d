/* The monitor thread: notices stuck fibers (watchdog), jobs that nobody steals, memory that can be given back. */
#ifndef HF_FIBER_WATCH_H
#define HF_FIBER_WATCH_H

#include "fiber/core.h"

hf_status hf_watch_open(hf_runtime *rt, hf_op *op); /* nothing for hosted and simulated runtimes */
void hf_watch_close(hf_runtime *rt);
/* A scheduler goes to sleep or wakes up: the monitor itself sleeps while all do. */
void hf_watch_idle(hf_sched *sched);
void hf_watch_busy(hf_sched *sched);
/* Called by a fiber whose thread was taken away, on that thread: carries the fiber to its scheduler's new thread and
 * returns there; the old thread ends. */
void hf_watch_carry(hf_fiber *self);
uint64_t hf_watch_zombies(const hf_runtime *rt);
uint64_t hf_watch_stuck(const hf_runtime *rt);

#endif
