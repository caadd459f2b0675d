/* A descriptor that one verb may close while others use it.
 *
 * A verb holds the handle while it uses it. Closing marks the handle, wakes its waiters (HF_ERR_CLOSED) and lets go
 * of it. The last holder that lets go closes the descriptor and frees the object around the handle. So neither the
 * memory nor the number of the descriptor can be reused while a verb uses them.
 *
 *     HF_TRY(hf_handle_use(self, &conn->handle, HF_READABLE, verb));
 *     ... try, hf_handle_wait, try again ...
 *     if (hf_handle_done(&conn->handle, HF_READABLE)) { release(conn); } */
#ifndef HF_FIBER_HANDLE_H
#define HF_FIBER_HANDLE_H

#include "fiber/io/fd.h"
#include "fiber/sched/wait.h"

typedef struct hf_handle {
    hf_spin lock;
    hf_runtime *rt;
    int fd;
    unsigned refs;      /* one per verb inside, and one for the opener; under the lock */
    int busy;           /* directions in use: HF_READABLE | HF_WRITABLE; under the lock */
    unsigned streak[2]; /* operations in a row that did not wait; changed by the user of the direction */
    atomic_bool closed; /* set before the watch is dropped */
} hf_handle;

void hf_handle_init(hf_handle *handle, hf_runtime *rt, int fd);
/* Begins to use a direction. Fails: HF_ERR_CANCELED, HF_ERR_CLOSED, HF_ERR_MISUSE (another verb uses it). */
hf_status hf_handle_use(hf_fiber *self, hf_handle *handle, int direction, const char *verb);
/* Holds the handle without a direction, even if the caller is canceled. False: it is closed. */
bool hf_handle_hold(hf_handle *handle);
/* Lets go; direction 0 after hf_handle_hold. True: the caller was the last holder and must release everything. */
bool hf_handle_done(hf_handle *handle, int direction);
/* Closes the handle, by its opener. True: the caller was the last holder. */
bool hf_handle_close(hf_handle *handle);
/* By the last holder: closes the descriptor itself. */
void hf_handle_end(hf_handle *handle);

/* Waits until the descriptor is ready in a direction. */
hf_status hf_handle_wait(hf_fiber *self, hf_handle *handle, int direction, hf_instant deadline,
                         const hf_wait_kind *kind, const char *object);
/* After an operation that did not have to wait: now and then lets other fibers run, because a busy peer would keep
 * the thread. */
void hf_handle_pace(hf_fiber *self, hf_handle *handle, int direction);

#endif
