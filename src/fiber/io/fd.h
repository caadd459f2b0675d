/* Descriptors that fibers wait for. One watch per descriptor, on the poller of the scheduler that waited last. */
#ifndef HF_FIBER_FD_H
#define HF_FIBER_FD_H

#include "fiber/core.h"

/* Who waits for a descriptor. */
typedef struct hf_fd_user {
    const hf_wait_kind *kind;  /* its verb is in dumps; its abort is hf_fd_abort */
    const char *object;        /* in dumps: an address; lives as long as the wait */
    const atomic_bool *closed; /* set before hf_fd_drop: nobody begins to wait from then on; NULL = nobody drops it */
    bool level;                /* what is ready counts even if it was told before: the library does not see the reads */
} hf_fd_user;

hf_status hf_fds_init(hf_runtime *rt, hf_op *op);
void hf_fds_deinit(hf_runtime *rt);
/* Looks at the scheduler's poller, sleeping until `deadline` when that is in the future, and wakes who waited. While it
 * sleeps the scheduler is quiet (safepoint.h). */
void hf_fd_poll(hf_sched *sched, hf_instant deadline);
/* Waits until fd is readable or writable. Fails: HF_ERR_CANCELED, HF_ERR_TIMEOUT, HF_ERR_CLOSED, HF_ERR_MISUSE. */
hf_status hf_fd_wait_on(hf_fiber *self, hf_runtime *rt, int fd, int events, hf_instant deadline,
                        const hf_fd_user *user);
bool hf_fd_abort(hf_wait *wait);
/* Stops watching and wakes who still waits with HF_ERR_CLOSED. Before the descriptor is closed. */
void hf_fd_drop(hf_runtime *rt, int fd);

#endif
