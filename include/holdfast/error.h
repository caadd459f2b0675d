/* The structured failure of this fiber or thread, and how to report one's own. */
#ifndef HOLDFAST_ERROR_H
#define HOLDFAST_ERROR_H

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

typedef struct hf_failure hf_failure;

/* One failure. Owned by the library: valid until the next failure of the same fiber or thread, or, for one that
 * was read from a scope or branch, until that scope is closed. */
struct hf_failure {
    hf_status status;        /* never HF_OK */
    const char *type;        /* short and stable, for programs: "HF_ERR_IO", "HF_ERR_USER+7", or the user's own word */
    const char *message;     /* a sentence: what happened, to what, what to do */
    const char *where;       /* the function or fiber that reported it */
    const hf_failure *cause; /* the failure that led to it, or NULL */
};

HF_BEGIN_DECLS

/* The last failure of this fiber or plain thread; NULL when there was none. */
HF_API const hf_failure *hf_error(void);
/* Its sentence with the chain of causes, "" when there was none: "the order failed; because the disk is gone". Does
 * not change the result of hf_error(). */
HF_API const char *hf_error_text(void);

/* Records a failure of the caller's own and returns `status`: return hf_raise(HF_ERR_FAILED, "card declined"); */
HF_API HF_MUST_USE hf_status hf_raise(hf_status status, const char *format, ...) HF_PRINTF(2, 3);
/* Like hf_raise, with a type that programs can compare. The last failure of this fiber, branch or activity, even one
 * you have handled, becomes its cause; on a plain thread and in hf_block there is none. */
HF_API HF_MUST_USE hf_status hf_raise_typed(hf_status status, const char *type, const char *format, ...)
    HF_PRINTF(3, 4);

/* Prints the failure to stderr and ends the process with code 1. For main() only; see HF_OR_DIE. */
HF_API void hf_die(hf_status status, const char *what) __attribute__((noreturn));

HF_API const char *hf_cause_name(hf_cause cause);

HF_END_DECLS

#endif
