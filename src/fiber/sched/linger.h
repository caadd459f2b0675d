/* Lingering: how long a scheduler that has nothing to do watches its inbox before it sleeps. This is the policy, without effects;
 * ADR 0016 has the reasons and the numbers.
 *
 * Two fibers on two schedulers that answer each other within a microsecond are slow only because both threads sleep between the
 * answers: the kernel takes tens of microseconds to wake one. Watching the inbox pays where the answer is near; where it is not,
 * it wastes the processor. So a scheduler lingers only after a neighbour (a fiber on another scheduler of the same runtime) has
 * woken it soon after it ran out of work. If the neighbour was asleep, its answer came late for that reason alone. That delay is
 * subtracted; otherwise two sleeping schedulers would never find out that they are near. A scheduler that lingered in vain must
 * see more near answers before it tries again, twice as many each time.
 *
 * Where another process shares a processor with one of the two, that one stops for some milliseconds now and then, and the other
 * one falls asleep. When the first continues, it wakes the other one, and lingers for longer, once: if it slept as well, its
 * processor might be gone for as long again. */
#ifndef HF_FIBER_LINGER_H
#define HF_FIBER_LINGER_H

#include "base/base.h"

enum {
    HF_LINGER_NEAR_NS =
        10 * 1000, /* about the processor time of a sleep and a wake-up: watching for longer costs more */
    HF_LINGER_MOST_NS = 100 * 1000, /* the longest that it lingers, while the neighbour is being woken */
    HF_LINGER_WAKE_NS = 60 * 1000,  /* how long it lingers for a neighbour that it has just woken */
    HF_LINGER_QUICK_MIN = 16,       /* quick answers in a row before that, so that it costs little for each of them */
    HF_LINGER_TOLL_MAX = 255        /* then at most one of 256 near answers costs a linger in vain */
};

/* All zero: has seen nothing and does not linger. */
typedef struct hf_linger {
    int32_t limit_ns;  /* how long to linger before the next sleep; 0 = not at all */
    int32_t looked_ns; /* how long it has lingered in vain since it ran out of work */
    uint16_t toll;     /* near answers that it must see after the next linger in vain */
    uint16_t due;      /* near answers that it must still see before it lingers again */
    uint16_t quick; /* answers in a row that came while it lingered for HF_LINGER_NEAR_NS at most; stops at QUICK_MIN */
} hf_linger;

/* The scheduler has run out of work. */
static inline void hf_linger_begin(hf_linger *linger)
{
    linger->looked_ns = 0;
}

/* There was a message before it slept. */
static inline void hf_linger_found(hf_linger *linger)
{
    linger->toll /= 2;
    if (linger->limit_ns > 0 && linger->limit_ns <= HF_LINGER_NEAR_NS && linger->quick < HF_LINGER_QUICK_MIN) {
        linger->quick++;
    }
    if (linger->limit_ns > HF_LINGER_NEAR_NS) {
        linger->limit_ns = HF_LINGER_NEAR_NS; /* the neighbour is awake by now */
    }
}

/* It lingered up to the limit, or could not linger at all. */
static inline void hf_linger_missed(hf_linger *linger)
{
    linger->looked_ns = linger->limit_ns;
    linger->limit_ns = 0;
    linger->quick = 0;
    linger->due = linger->toll;
    linger->toll = linger->toll < HF_LINGER_TOLL_MAX / 2 ? (uint16_t)(linger->toll * 2 + 1) : HF_LINGER_TOLL_MAX;
}

/* It has called a neighbour that was asleep. */
static inline void hf_linger_woke(hf_linger *linger)
{
    if (linger->limit_ns > 0 && linger->quick == HF_LINGER_QUICK_MIN) {
        linger->limit_ns = HF_LINGER_WAKE_NS;
        linger->quick = 0;
    }
}

/* A neighbour called it `slept_ns` after it had fallen asleep. That neighbour itself began to work `late_ns` after a call. */
static inline void hf_linger_called(hf_linger *linger, int64_t slept_ns, int64_t late_ns)
{
    linger->limit_ns = 0;
    if (slept_ns + linger->looked_ns - late_ns > HF_LINGER_NEAR_NS) {
        return;
    }
    if (linger->due > 0) {
        linger->due--;
        return;
    }
    int64_t late_most_ns = (HF_LINGER_MOST_NS - HF_LINGER_NEAR_NS) / 2;
    linger->limit_ns = HF_LINGER_NEAR_NS + 2 * (int32_t)(late_ns < late_most_ns ? late_ns : late_most_ns);
}

#endif
