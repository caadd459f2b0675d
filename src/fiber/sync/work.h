/* Work that others wait for: the shared fetch of a flight, the source of a flow. It runs once, as a child of a
 * scope, and ends exactly once: when its function returned, when it was canceled before it started, or when it
 * could not start. Whoever shares it may abandon it, which cancels it alone and not its siblings. */
#ifndef HF_FIBER_WORK_H
#define HF_FIBER_WORK_H

#include "fiber/sched/wait.h"

typedef struct hf_work hf_work;

typedef struct hf_work_kind {
    /* The work itself; user code, so outside the library. */
    hf_status (*run)(hf_work *work);
    /* It is over; called once, inside the library, without locks. Takes `failure` (NULL with HF_OK). Returns whether
     * somebody hears of a failure; if not, the scope does. */
    bool (*end)(hf_work *work, hf_status status, hf_failure_box *failure);
    /* After end, anywhere but under a lock: the work itself needs the memory no more. */
    void (*unref)(hf_work *work);
} hf_work_kind;

struct hf_work {
    const hf_work_kind *kind;
    hf_spin *lock;          /* of the object that shares it; guards the rest */
    const char *name;       /* borrowed: of the fiber, and the reason of a cancel */
    hf_scope *scope;        /* where it runs */
    hf_scope *inside;       /* open around run; what abandon cancels */
    const hf_fiber *runner; /* who runs it: must not wait for itself */
    const hf_fiber *forker; /* in hf_work_start: tells a fork that failed from a branch that was dropped */
    bool abandoned;
};

/* Forks it into work->scope. Outside the library. Whatever goes wrong ends the work with a failure. The caller must
 * hold the memory until this returns. */
hf_status hf_work_start(hf_work *work);
/* The branch's fiber will never run again: if it runs such work, that has ended. Inside the library. */
void hf_work_strand(const hf_branch *branch);
/* Under work->lock: cancels it, with cause "abandoned". */
void hf_work_abandon(hf_work *work);

#endif
