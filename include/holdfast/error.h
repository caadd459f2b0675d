/* The structured failure of this fiber or thread, and how to report one's own. */
#ifndef HOLDFAST_ERROR_H
#define HOLDFAST_ERROR_H

#include <holdfast/payload.h>
#include <holdfast/status.h>

/* Why a scope or fiber was canceled. The cause travels down the tree unchanged. */
#define HF_CAUSE_MAP(X)                                                     \
    X(HF_CAUSE_NONE, "none", "not canceled")                                \
    X(HF_CAUSE_EXPLICIT, "explicit", "somebody called hf_scope_cancel")     \
    X(HF_CAUSE_SIBLING, "sibling", "another child of the scope failed")     \
    X(HF_CAUSE_WINNER, "winner", "enough children succeeded")               \
    X(HF_CAUSE_DEADLINE, "deadline", "the deadline of the scope passed")    \
    X(HF_CAUSE_CLOSED, "closed", "the owner left the scope")                \
    X(HF_CAUSE_SHUTDOWN, "shutdown", "the runtime is stopping")             \
    X(HF_CAUSE_STUCK, "stuck", "the watchdog found the fiber not yielding") \
    X(HF_CAUSE_ABANDONED, "abandoned", "nobody waits for the result any more")

typedef enum hf_cause {
#define HF_CAUSE_ENUM(name, word, text) name,
    HF_CAUSE_MAP(HF_CAUSE_ENUM)
#undef HF_CAUSE_ENUM
} hf_cause;

/* What failed. A failure that a program makes is of the first kind; the others come from histories. */
#define HF_FAILURE_KIND_MAP(X)                                                                       \
    X(HF_FAILURE_APPLICATION, "application", "code failed: a workflow, an activity, this library")   \
    X(HF_FAILURE_ACTIVITY, "activity", "an activity has ended with a failure; its cause says which") \
    X(HF_FAILURE_CHILD, "child", "a child workflow has ended with a failure; its cause says which")  \
    X(HF_FAILURE_TIMEOUT, "timeout", "a timeout has passed")                                         \
    X(HF_FAILURE_CANCELED, "canceled", "it was canceled")                                            \
    X(HF_FAILURE_TERMINATED, "terminated", "a workflow was terminated")                              \
    X(HF_FAILURE_SERVER, "server", "the service itself failed")                                      \
    X(HF_FAILURE_RESET, "reset", "a workflow was reset")                                             \
    X(HF_FAILURE_NEXUS, "nexus", "an operation of another service failed")                           \
    X(HF_FAILURE_OTHER, "other", "a kind that this version does not know")

typedef enum hf_failure_kind {
#define HF_FAILURE_KIND_ENUM(name, word, text) name,
    HF_FAILURE_KIND_MAP(HF_FAILURE_KIND_ENUM)
#undef HF_FAILURE_KIND_ENUM
} hf_failure_kind;

typedef struct hf_failure hf_failure;

/* One failure. Owned by the library: valid until the next failure of the same fiber or thread, or, for one that
 * was read from a scope or branch, until that scope is closed.
 *
 * A type has at most 1,000 bytes, a message 4 KiB, a chain 20 causes; what is longer is cut. A failure that came from
 * an activity, a child or a client, and that a workflow returns or makes the cause of its own, goes on as it came:
 * with its kind, details and stack trace. */
struct hf_failure {
    hf_status status;        /* never HF_OK */
    const char *type;        /* short and stable, for programs: "HF_ERR_IO", "HF_ERR_USER+7", or the user's own word */
    const char *message;     /* a sentence: what happened, to what, what to do */
    const char *where;       /* the function or fiber that reported it */
    const hf_failure *cause; /* the failure that led to it, or NULL */
    hf_failure_kind kind;
    const char *stack;  /* the stack trace that came with it, as text; "" = none */
    hf_payload details; /* what came with it, such as .details of hf_activity_fail; empty when nothing; borrowed */
    const void *own;    /* the library's */
};

HF_BEGIN_DECLS

/* The last failure of this fiber or plain thread; NULL when there was none. */
HF_API const hf_failure *hf_error(void);
/* Its sentence with the chain of causes, "" when there was none: "the order failed; because the disk is gone". Does
 * not change the result of hf_error(). */
HF_API const char *hf_error_text(void);
/* The first failure of the chain of hf_error() with this type, NULL when there is none:
 * if (hf_error_find("CardDeclined") != NULL) ... */
HF_API const hf_failure *hf_error_find(const char *type);
/* Forgets the last failure of this fiber or thread: hf_error() returns NULL then. For a failure that was handled and must
 * not become the cause of a later one (hf_raise_typed). */
HF_API void hf_error_clear(void);

/* Records a failure of the caller's own and returns `status`: return hf_raise(HF_ERR_FAILED, "card declined"); */
HF_API HF_MUST_USE hf_status hf_raise(hf_status status, const char *format, ...) HF_PRINTF(2, 3);
/* Like hf_raise, with a type that programs can compare. The last failure of this fiber, branch or activity, even one
 * you have handled, becomes its cause, unless hf_error_clear() was called; on a plain thread and in hf_block there is none. */
HF_API HF_MUST_USE hf_status hf_raise_typed(hf_status status, const char *type, const char *format, ...)
    HF_PRINTF(3, 4);

/* Prints the failure to stderr and ends the process with code 1. For main() only; see HF_OR_DIE. */
HF_API void hf_die(hf_status status, const char *what) __attribute__((noreturn));

HF_API const char *hf_cause_name(hf_cause cause);
HF_API const char *hf_failure_kind_name(hf_failure_kind kind);

HF_END_DECLS

#endif
