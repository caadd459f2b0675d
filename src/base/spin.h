/* A lock for a few instructions. Never held over a switch, a wait, an allocation or a call out of the library. */
#ifndef HF_BASE_SPIN_H
#define HF_BASE_SPIN_H

#include "base/base.h"

typedef struct hf_spin {
    atomic_uint held;
} hf_spin;

/* `was`: the value of the lock when it was tried. */
void hf_spin_lock_slow(hf_spin *spin, unsigned was);

static inline void hf_spin_lock(hf_spin *spin)
{
    unsigned was = atomic_exchange_explicit(&spin->held, 1, memory_order_acquire);
    if (HF_UNLIKELY(was != 0)) {
        hf_spin_lock_slow(spin, was);
    }
}

static inline void hf_spin_unlock(hf_spin *spin)
{
    atomic_store_explicit(&spin->held, 0, memory_order_release);
}

#endif
