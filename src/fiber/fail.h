/* How failures are stored: in a box with a reference count, shared by the fiber, the branch and the scope that
 * report it. A long text, or the rest of a failure of a history, does not fit into the box: it is in a body, which
 * copies of the box share. */
#ifndef HF_FIBER_FAIL_H
#define HF_FIBER_FAIL_H

#include "base/base.h"
#include "base/limits.h"
#include "base/op.h"
#include "base/str.h"

#include <holdfast/runtime.h>

/* In the memory of the process, so that no runtime needs to outlive it. Never changed. */
typedef struct hf_failure_body hf_failure_body;
struct hf_failure_body {
    atomic_uint refs;
    size_t len; /* of the allocation */
    hf_failure_kind kind;
    const char *type;    /* the texts are in `room` */
    const char *message; /* */
    const char *stack;   /* */
    hf_str wire;         /* the link as the message that it came as, without its cause; empty = it was made here */
    hf_payload details;
    void (*drop)(hf_failure_body *body); /* frees the details; NULL = they need no freeing */
    char room[];
};

/* Copies the texts, and cuts those that are too long. NULL: out of memory. */
hf_failure_body *hf_body_new(hf_str type, hf_str message, hf_str stack, hf_str wire);
hf_failure_body *hf_body_ref(hf_failure_body *body); /* accepts NULL */
void hf_body_unref(hf_failure_body *body);           /* accepts NULL */

typedef struct hf_failure_box hf_failure_box;
struct hf_failure_box {
    hf_failure failure; /* first: pointers that users get point here */
    atomic_uint refs;   /* 0 = not counted: static, or inside a thread's fiber */
    hf_status
        as; /* the status that was returned with it; differs from failure.status if hf_result returned a run's failure */
    hf_runtime *rt;        /* whose allocator it comes from; NULL = it is memory of the process */
    hf_failure_body *body; /* has the texts that are too long for the box; NULL = all are here */
    hf_failure_box *cause;
    _Atomic(char *) text; /* the whole chain as one text, made when somebody asks for it */
    char type[HF_TYPE_LEN_MAX];
    char message[HF_MESSAGE_LEN_MAX];
    char where[HF_TYPE_LEN_MAX];
};

struct hf_fiber;

/* Takes `cause`. Never NULL: without memory it is a static box that says so. `type` NULL = the name of the status. `rt`
 * NULL = in memory of the process. Of a chain that is too long the last links are left out. */
hf_failure_box *hf_box_new(hf_runtime *rt, hf_status status, const char *type, const char *where, const char *message,
                           hf_failure_box *cause);
/* The same with the texts of a body, which it takes; `body` NULL = there was no memory for it. */
hf_failure_box *hf_box_of_body(hf_runtime *rt, hf_status status, hf_failure_body *body, hf_failure_box *cause);
hf_failure_box *hf_box_ref(hf_failure_box *box); /* accepts NULL */
void hf_box_unref(hf_failure_box *box);          /* accepts NULL */
static inline hf_failure_box *hf_box_of(const hf_failure *failure)
{
    return (hf_failure_box *)(uintptr_t)failure;
}

/* Makes `box` the last failure of self, and takes it. A thread stores a copy, in memory of the process. */
void hf_self_fail(struct hf_fiber *self, hf_failure_box *box);
/* Self is about to return its last failure with this status, which may differ from the failure's own. */
hf_status hf_self_return(struct hf_fiber *self, hf_status status);
/* hf_error() if it was returned as `status`; NULL if it is about something else. */
const hf_failure *hf_error_as(hf_status status);
/* A thread has ended a branch, or ends itself: the causes and the body of its last failure are freed. */
void hf_self_drop_chain(struct hf_fiber *self);
/* Remembers a failure that needs no message of its own: a canceled or timed-out wait. Allocates nothing. */
void hf_self_note(struct hf_fiber *self, hf_status status, const char *where);
/* After a hook of a scope has failed: the fiber on which it ran gets its own last failure back. */
void hf_hook_restore(struct hf_fiber *self);
/* Makes the message of a failure that was only noted, while the scope that it names still exists. */
void hf_self_tell(struct hf_fiber *self);
/* Makes the failure that an operation recorded the last failure of self, and returns its status. */
hf_status hf_op_end(struct hf_fiber *self, const hf_op *op);
/* Makes a failure with a message, for public verbs, and returns its status. */
#define hf_refuse(self, status, ...) hf_refuse_at((self), (status), __func__, __VA_ARGS__)
hf_status hf_refuse_at(struct hf_fiber *self, hf_status status, const char *where, const char *format, ...)
    HF_PRINTF(4, 5);
/* Takes the last failure of self if it was returned as `status`; otherwise makes one. Never NULL. */
hf_failure_box *hf_self_take_failure(struct hf_fiber *self, hf_runtime *rt, hf_status status, const char *where);

#endif
