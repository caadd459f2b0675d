/* A descriptor that one verb may close while others use it.
 *
 * Who is inside a verb holds the handle. Closing marks it, wakes who waits (HF_ERR_CLOSED) and lets go; whoever lets go
 * last closes the descriptor and frees the object around it. So neither the memory nor the descriptor's number can be
 * somebody else's while anybody is inside.
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
    unsigned refs;      /* verbs inside, and one for who opened it; under the lock */
    int busy;           /* directions somebody is in: HF_READABLE | HF_WRITABLE; under the lock */
    unsigned streak[2]; /* operations in a row that did not wait; by who is in the direction */
    atomic_bool closed; /* before the watch is dropped */
} hf_handle;

void hf_handle_init(hf_handle *handle, hf_runtime *rt, int fd);
/* Enters a direction. Fails: HF_ERR_CANCELED, HF_ERR_CLOSED, HF_ERR_MISUSE when somebody else is in it. */
hf_status hf_handle_use(hf_fiber *self, hf_handle *handle, int direction, const char *verb);
/* Enters without waiting, also when canceled. False: it is closed. */
bool hf_handle_hold(hf_handle *handle);
/* Leaves; direction 0 after hf_handle_hold. True: the caller was the last one and releases everything. */
bool hf_handle_done(hf_handle *handle, int direction);
/* Closes on behalf of who opened it. True: the caller was the last one. */
bool hf_handle_close(hf_handle *handle);
/* The last one: closes the descriptor itself. */
void hf_handle_end(hf_handle *handle);

/* Waits until the descriptor is ready in a direction. */
hf_status hf_handle_wait(hf_fiber *self, hf_handle *handle, int direction, hf_instant deadline,
                         const hf_wait_kind *kind, const char *object);
/* After an operation that did not have to wait: now and then lets others run, or a busy peer would keep the thread. */
void hf_handle_pace(hf_fiber *self, hf_handle *handle, int direction);

#endif
