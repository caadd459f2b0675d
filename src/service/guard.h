/* hf_guard: a service in front of another one that answers a single question, "may this caller still pass?", and passes
 * the call on.
 *
 *     client -> the guard that hf_open gave it --+
 *                                                +--> engine
 *     worker -> a guard of its own --------------+
 *
 * A guard refuses calls in a process that fork() made: the threads that would answer are the parent's. A worker's guard
 * also refuses calls once it was shut, because hf_worker_run has left that worker behind and the service may be closed.
 *
 * A guard that is put in front of another guard makes the other guard's check as well and passes calls to the service
 * behind it. So every call goes through one guard.
 *
 * service-G1  `behind` is not a guard.
 * service-G2  A guard that was shut stays shut, and touches neither `behind` nor `marker` for a new call. The code that
 *     shuts it may close the service once every thread was seen outside the library: calls pass a guard inside the
 *     library. */
#ifndef HF_SERVICE_GUARD_H
#define HF_SERVICE_GUARD_H

#include "base/env.h"
#include "service/service.h"

typedef struct hf_guard hf_guard;

struct hf_guard {
    hf_service service;    /* first: callers see this */
    hf_service *behind;    /* answers the calls that pass (service-G1) */
    const hf_word *marker; /* reads 0 in a process that fork() made (hf_env); NULL = not checked */
    atomic_bool is_shut;   /* service-G2 */
    const char *why_shut;  /* the message for calls that come afterwards; a constant */
    /* Closes the object that the guard belongs to, and frees the guard; NULL = its callers may not close it. */
    hf_status (*close)(hf_op *op, hf_guard *guard);
};

/* A guard whose owner sets `behind` and `marker` later, when it has opened the service behind it. */
void hf_guard_init(hf_guard *guard, hf_status (*close)(hf_op *op, hf_guard *guard));
/* A guard in front of `service`, which may be a guard itself. */
void hf_guard_init_over(hf_guard *guard, hf_service *service, const char *why_shut);

/* The service behind a guard; any other service is itself. */
hf_service *hf_guard_behind(hf_service *service);

/* service-G2. */
static inline void hf_guard_shut(hf_guard *guard)
{
    atomic_store(&guard->is_shut, true);
}

static inline bool hf_guard_is_shut(const hf_guard *guard)
{
    return atomic_load(&guard->is_shut);
}

#endif
