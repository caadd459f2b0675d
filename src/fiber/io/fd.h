/* Descriptors that fibers wait for. Each is watched once, by the poller of the scheduler whose fiber waited last. */
#ifndef HF_FIBER_FD_H
#define HF_FIBER_FD_H

#include "fiber/core.h"

/* How a descriptor is waited for. */
typedef struct hf_fd_user {
    const hf_wait_kind *kind;  /* its verb is shown in dumps; its abort is hf_fd_abort */
    const char *object;        /* shown in dumps: an address; lives as long as the wait */
    const atomic_bool *closed; /* set before hf_fd_drop: from then on no wait begins; NULL = it is never dropped */
    bool level;                /* report readiness again and again, because the library does not see the reads */
} hf_fd_user;

hf_status hf_fds_init(hf_runtime *rt, hf_op *op);
void hf_fds_deinit(hf_runtime *rt);
/* Takes events from the scheduler's poller and wakes the waiters. Sleeps until `deadline` if that is in the future;
 * while it sleeps, the scheduler is quiet (safepoint.h). */
void hf_fd_poll(hf_sched *sched, hf_instant deadline);
/* Waits until fd is readable or writable. Fails: HF_ERR_CANCELED, HF_ERR_TIMEOUT, HF_ERR_CLOSED, HF_ERR_MISUSE. */
hf_status hf_fd_wait_on(hf_fiber *self, hf_runtime *rt, int fd, int events, hf_instant deadline,
                        const hf_fd_user *user);
bool hf_fd_abort(hf_wait *wait);
/* Ends a wait for the descriptor with HF_OK, in any direction; if no fiber waits, the next wait returns at once. From any thread,
 * inside the library or on a thread that is not a fiber's. The descriptor may have been closed by then, and its number reused:
 * then another fiber wakes for nothing. */
void hf_fd_poke(hf_runtime *rt, int fd);
/* Stops watching, and wakes fibers that still wait with HF_ERR_CLOSED. To be called before the descriptor is closed. */
void hf_fd_drop(hf_runtime *rt, int fd);

#endif
