#include "fiber/io/handle.h"

enum { STREAK_MAX = 64 }; /* operations without a wait before others get a turn */

void hf_handle_init(hf_handle *handle, hf_runtime *rt, int fd)
{
    hf_assert(fd >= 0 && handle->refs == 0);
    handle->rt = rt;
    handle->fd = fd;
    handle->refs = 1;
}

hf_status hf_handle_use(hf_fiber *self, hf_handle *handle, int direction, const char *verb)
{
    HF_TRY(hf_may_wait(self, verb));
    hf_spin_lock(&handle->lock);
    bool is_closed = atomic_load_explicit(&handle->closed, memory_order_relaxed);
    bool is_busy = (handle->busy & direction) != 0;
    if (!is_closed && !is_busy) {
        handle->busy |= direction;
        handle->refs++;
    }
    hf_spin_unlock(&handle->lock);
    if (is_closed) {
        hf_self_note(self, HF_ERR_CLOSED, verb);
        return HF_ERR_CLOSED;
    }
    return is_busy
               ? hf_refuse_at(self, HF_ERR_MISUSE, verb, "another caller is in %s on it already: one at a time", verb)
               : HF_OK;
}

bool hf_handle_hold(hf_handle *handle)
{
    hf_spin_lock(&handle->lock);
    bool is_open = !atomic_load_explicit(&handle->closed, memory_order_relaxed);
    handle->refs += is_open ? 1 : 0;
    hf_spin_unlock(&handle->lock);
    return is_open;
}

bool hf_handle_done(hf_handle *handle, int direction)
{
    hf_spin_lock(&handle->lock);
    hf_assert(handle->refs > 0 && (handle->busy & direction) == direction);
    handle->busy &= ~direction;
    bool is_last = --handle->refs == 0;
    hf_spin_unlock(&handle->lock);
    return is_last;
}

bool hf_handle_close(hf_handle *handle)
{
    hf_spin_lock(&handle->lock);
    hf_assert(!atomic_load_explicit(&handle->closed, memory_order_relaxed)); /* closed twice */
    atomic_store(&handle->closed, true);
    hf_spin_unlock(&handle->lock);
    hf_fd_drop(handle->rt, handle->fd);
    return hf_handle_done(handle, 0);
}

void hf_handle_end(hf_handle *handle)
{
    hf_assert(handle->refs == 0 && handle->busy == 0);
    hf_assert(
        atomic_load_explicit(&handle->closed, memory_order_relaxed)); /* the opener's reference went with the close */
    hf_fd_drop(handle->rt, handle->fd); /* a verb that began just after the close may have left an empty slot */
    handle->rt->env->ops->close(handle->rt->env, handle->fd);
}

hf_status hf_handle_wait(hf_fiber *self, hf_handle *handle, int direction, hf_instant deadline,
                         const hf_wait_kind *kind, const char *object)
{
    hf_assert(direction == HF_READABLE || direction == HF_WRITABLE);
    hf_fd_user user = {kind, object, &handle->closed, false};
    handle->streak[direction == HF_READABLE ? 0 : 1] = 0;
    return hf_fd_wait_on(self, handle->rt, handle->fd, direction, deadline, &user);
}

void hf_handle_pace(hf_fiber *self, hf_handle *handle, int direction)
{
    unsigned *streak = &handle->streak[direction == HF_READABLE ? 0 : 1];
    if (++*streak >= STREAK_MAX) {
        *streak = 0;
        if (self->kind == HF_FIBER_PLAIN) { /* others have threads of their own */
            hf_yield_in(self);
        }
    }
}
