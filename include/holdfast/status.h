/* hf_status: what a call that can fail returns. One list feeds the enum, the texts and the documentation. */
#ifndef HOLDFAST_STATUS_H
#define HOLDFAST_STATUS_H

#include <holdfast/base.h>

/* Each status is marked: "passes" if the same call may succeed later without a change (a full disk, no memory, a
 * starting server), else "stays". Where the library retries, it retries only after "passes". HF_ERR_LIMIT mostly
 * passes, when something is released or ends; but some limits count over a whole life, such as the 10,000 signals of a
 * run. Functions that have such a limit say so, and hf_error_text() names the limit.
 *
 *        name, number, whether it may pass by itself, what it means as a phrase */
#define HF_STATUS_MAP(X)                                                                     \
    X(HF_OK, 0, stays, "success")                                                            \
    X(HF_ERR_CANCELED, 1, stays, "the surrounding scope was canceled")                       \
    X(HF_ERR_TIMEOUT, 2, passes, "a deadline passed")                                        \
    X(HF_ERR_CLOSED, 3, stays, "the other side is closed")                                   \
    X(HF_ERR_AGAIN, 4, passes, "it would have to wait")                                      \
    X(HF_ERR_NOMEM, 5, passes, "out of memory")                                              \
    X(HF_ERR_LIMIT, 6, passes, "a configured or system limit is reached")                    \
    X(HF_ERR_MISUSE, 7, stays, "the call is not allowed here or with these arguments")       \
    X(HF_ERR_INVALID, 8, stays, "an input is malformed")                                     \
    X(HF_ERR_NOT_FOUND, 9, stays, "there is no such thing")                                  \
    X(HF_ERR_EXISTS, 10, stays, "it exists already")                                         \
    X(HF_ERR_IO, 11, passes, "the operating system reported an I/O error")                   \
    X(HF_ERR_RESET, 12, passes, "the connection was reset by the other side")                \
    X(HF_ERR_REFUSED, 13, passes, "the connection was refused")                              \
    X(HF_ERR_FULL, 14, passes, "no space is left on the device")                             \
    X(HF_ERR_UNSUPPORTED, 15, stays, "this environment cannot do that")                      \
    X(HF_ERR_CONFLICT, 16, stays, "somebody else changed it first")                          \
    X(HF_ERR_TOO_BIG, 17, stays, "a size is over its limit")                                 \
    X(HF_ERR_DENIED, 18, stays, "permission denied")                                         \
    X(HF_ERR_EVICTED, 19, stays, "the run was released from memory; return at once")         \
    X(HF_ERR_STORE, 20, stays, "the store failed and stays closed until it is opened again") \
    X(HF_ERR_FAILED, 21, stays, "the work itself failed")                                    \
    X(HF_ERR_UNAVAILABLE, 22, passes, "the service cannot answer at the moment")             \
    X(HF_ERR_NOT_READY, 23, stays, "its state does not allow that yet")                      \
    X(HF_ERR_CONTINUED, 24, stays, "the workflow continues as a new run")                    \
    X(HF_PENDING, 25, stays, "the answer comes later")

typedef enum hf_status {
#define HF_STATUS_ENUM(name, number, passing, text) name = number,
    HF_STATUS_MAP(HF_STATUS_ENUM)
#undef HF_STATUS_ENUM
    /* A program's own statuses start here: (hf_status)(HF_ERR_USER + 7). A caller that waits for the activity or
     * workflow that returned one finds it in the hf_failure, with the type "HF_ERR_USER+7". */
    HF_ERR_USER = 1000
} hf_status;

HF_BEGIN_DECLS

/* "HF_ERR_TIMEOUT"; "HF_ERR_USER" for all of the program's own. Never NULL. */
HF_API const char *hf_status_name(hf_status status);
/* "a deadline passed". Never NULL. */
HF_API const char *hf_status_text(hf_status status);

HF_END_DECLS

#endif
