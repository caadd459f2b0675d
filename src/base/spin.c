#include "base/spin.h"

#include <sched.h>

/* The holder may have lost its processor: after a while give it ours. */
void hf_spin_lock_slow(hf_spin *spin, unsigned was)
{
    hf_assert(was == 1); /* else the object around the lock was freed, or overwritten */
    for (unsigned round = 0;; round++) {
        while (atomic_load_explicit(&spin->held, memory_order_relaxed) != 0) {
            if (round < 64) {
                hf_relax();
                round++;
            } else {
                (void)sched_yield();
            }
        }
        if (atomic_exchange_explicit(&spin->held, 1, memory_order_acquire) == 0) {
            return;
        }
    }
}
