/* Shared work: the fetch of a flight, the source of a flow. It runs once, as a child of a scope, and ends exactly
 * once: when its function has returned, when it was canceled before it started, or when it could not start. The
 * object that shares the work may abandon it, which cancels the work but not its siblings. */
#ifndef HF_FIBER_WORK_H
#define HF_FIBER_WORK_H

#include "fiber/sched/wait.h"

typedef struct hf_work hf_work;

typedef struct hf_work_kind {
    /* Does the work: user code, so it runs outside the library. */
    hf_status (*run)(hf_work *work);
    /* The work has ended. Called once, inside the library, without locks. Takes `failure` (NULL with HF_OK). Returns
     * whether a waiter learns of the failure; if none does, the scope gets it. */
    bool (*end)(hf_work *work, hf_status status, hf_failure_box *failure);
    /* Called after `end`, without locks: the work no longer needs its memory. */
    void (*unref)(hf_work *work);
} hf_work_kind;

struct hf_work {
    const hf_work_kind *kind;
    hf_spin *lock;          /* of the object that shares it; guards the rest */
    const char *name;       /* borrowed: name of the fiber, and reason of a cancel */
    hf_scope *scope;        /* where it runs */
    hf_scope *inside;       /* scope around `run`, which abandon cancels */
    const hf_fiber *runner; /* the fiber that runs it, which must not wait for itself */
    const hf_fiber *forker; /* the fiber in hf_work_start: tells a failed fork from a dropped branch */
    bool abandoned;
};

/* Forks the work into work->scope. Outside the library. If anything goes wrong, the work ends with a failure. The
 * caller must keep the memory until this returns. */
hf_status hf_work_start(hf_work *work);
/* The branch will never run again: if it runs shared work, that work has ended. Inside the library. */
void hf_work_strand(const hf_branch *branch);
/* Under work->lock: cancels the work, with the cause "abandoned". */
void hf_work_abandon(hf_work *work);

#endif
