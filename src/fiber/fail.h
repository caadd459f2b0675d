/* How failures are kept: a counted box per failure, shared by the fiber, the branch and the scope that tell of it. */
#ifndef HF_FIBER_FAIL_H
#define HF_FIBER_FAIL_H

#include "base/base.h"
#include "base/limits.h"
#include "base/op.h"

#include <holdfast/runtime.h>

typedef struct hf_failure_box hf_failure_box;
struct hf_failure_box {
    hf_failure failure; /* first: what users see points here */
    atomic_uint refs;   /* 0 = static, not counted */
    hf_status
        as; /* what was returned with it: failure.status, but for failures of runs, which hf_result gives as its own */
    hf_runtime *rt; /* whose memory it is */
    hf_failure_box *cause;
    _Atomic(char *) text; /* the chain in one sentence, once somebody asked for it */
    char type[HF_TYPE_LEN_MAX];
    char message[HF_MESSAGE_LEN_MAX];
    char where[HF_TYPE_LEN_MAX];
};

struct hf_fiber;

/* Never NULL: when memory is out, a static box that says so. `type` NULL = the status's name. */
hf_failure_box *hf_box_new(hf_runtime *rt, hf_status status, const char *type, const char *where, const char *message,
                           hf_failure_box *cause);
hf_failure_box *hf_box_ref(hf_failure_box *box); /* accepts NULL */
void hf_box_unref(hf_failure_box *box);          /* accepts NULL */
static inline hf_failure_box *hf_box_of(const hf_failure *failure)
{
    return (hf_failure_box *)(uintptr_t)failure;
}

/* Makes `box` the last failure of self (takes it); a thread copies it flat. */
void hf_self_fail(struct hf_fiber *self, hf_failure_box *box);
/* The last failure of self is returned as this status, which need not be its own. */
hf_status hf_self_return(struct hf_fiber *self, hf_status status);
/* hf_error() if that is what was returned as `status`; NULL when it tells of something else. */
const hf_failure *hf_error_as(hf_status status);
/* A thread has ended a branch: the causes of its last failure are in the memory of the branch's runtime, which it may leave. */
void hf_self_drop_cause(struct hf_fiber *self);
/* Remembers a failure that needs no sentence of its own: a canceled or timed-out wait. Costs nothing. */
void hf_self_note(struct hf_fiber *self, hf_status status, const char *where);
/* After a hook of a scope that failed: the fiber it ran on gets its own last failure back. */
void hf_hook_restore(struct hf_fiber *self);
/* Makes the sentence of what was only noted, while its scope is still there. */
void hf_self_tell(struct hf_fiber *self);
/* Publishes what an operation recorded and returns its status. */
hf_status hf_op_end(struct hf_fiber *self, const hf_op *op);
/* A failure with a sentence, in one go, for public verbs. */
#define hf_refuse(self, status, ...) hf_refuse_at((self), (status), __func__, __VA_ARGS__)
hf_status hf_refuse_at(struct hf_fiber *self, hf_status status, const char *where, const char *format, ...)
    HF_PRINTF(4, 5);
/* Takes the last failure of self if it tells of `status`; makes one otherwise. Never NULL. */
hf_failure_box *hf_self_take_failure(struct hf_fiber *self, hf_runtime *rt, hf_status status, const char *where);

#endif
