/* Signals of the operating system, as a queue that fibers read. */
#include "fiber/io/signals.h"

#include "fiber/io/handle.h"
#include "fiber/verbs.h"

#include <string.h>

enum { NUMBERS_MAX = 64 };

struct hf_os_signals {
    hf_handle handle; /* first */
    size_t count;
    int numbers[];
};

static const hf_wait_kind NEXT = {"hf_os_signals_next", hf_fd_abort};

static size_t size_of(size_t count)
{
    return sizeof(hf_os_signals) + count * sizeof(int);
}

static void release(hf_os_signals *signals)
{
    hf_runtime *rt = signals->handle.rt;
    hf_fd_drop(rt, signals->handle.fd);
    rt->env->ops->signals_close(rt->env, signals->numbers, signals->count, signals->handle.fd);
    hf_rt_free(rt, signals, size_of(signals->count));
}

static hf_status open_on(hf_runtime *rt, hf_op *op, const int *numbers, size_t count, bool is_shared,
                         hf_os_signals **ret_signals)
{
    hf_assert(count > 0 && count <= NUMBERS_MAX && (!is_shared || count == 1));
    hf_env *env = rt->env;
    hf_os_signals *signals = hf_rt_alloc(rt, size_of(count));
    if (signals == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to receive signals");
    }
    int fd = -1;
    hf_status status = is_shared ? env->ops->signals_share(env, op, numbers[0], &fd)
                                 : env->ops->signals_open(env, op, numbers, count, &fd);
    if (status != HF_OK) {
        hf_rt_free(rt, signals, size_of(count));
        return status;
    }
    hf_handle_init(&signals->handle, rt, fd);
    signals->count = count;
    memcpy(signals->numbers, numbers, count * sizeof *numbers);
    *ret_signals = signals;
    return HF_OK;
}

hf_status hf_os_signals_open_with(const int *numbers, size_t count, hf_os_signals **ret_signals,
                                  const hf_io_options *options)
{
    HF_OPTIONS(hf_io_options, options, hf_os_signals_open);
    HF_VERB_ENTER(self, hf_os_signals_open, options->runtime);
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, options->runtime);
    hf_status status = op.status;
    if (rt != NULL && (ret_signals == NULL || numbers == NULL || count == 0 || count > NUMBERS_MAX)) {
        status = hf_fail(&op, HF_ERR_MISUSE, "hf_os_signals_open needs 1 to %d signals and a place for the result",
                         NUMBERS_MAX);
    } else if (rt != NULL) {
        status = open_on(rt, &op, numbers, count, false, ret_signals);
    }
    HF_LEAVE(self, status == HF_OK ? HF_OK : hf_refuse_at(self, status, "hf_os_signals_open", "%s", op.message));
}

hf_status hf_os_signals_share(hf_os_signals **ret_signals, int number)
{
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return hf_forked();
    }
    hf_op op;
    hf_op_init(&op);
    hf_status status = open_on(self->rt, &op, &number, 1, true, ret_signals);
    HF_LEAVE(self, status == HF_OK ? HF_OK : hf_refuse_at(self, status, "hf_os_signals_share", "%s", op.message));
}

static hf_status next(hf_fiber *self, hf_os_signals *signals, int *ret_number, const hf_wait_options *options)
{
    hf_env *env = signals->handle.rt->env;
    hf_instant deadline = {0};
    for (;;) {
        hf_status status = env->ops->signals_read(env, NULL, signals->handle.fd, ret_number);
        if (status == HF_OK) {
            return HF_OK;
        }
        if (status != HF_ERR_AGAIN) {
            return hf_refuse_at(self, status, NEXT.verb, "cannot receive signals: %s", hf_status_text(status));
        }
        deadline = deadline.ns != 0 ? deadline : hf_wait_deadline(self, signals->handle.rt, options);
        HF_TRY(hf_handle_wait(self, &signals->handle, HF_READABLE, deadline, &NEXT, "signals"));
    }
}

hf_status hf_os_signals_next_with(hf_os_signals *signals, int *ret_number, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_os_signals_next);
    HF_VERB_ENTER(self, hf_os_signals_next, signals != NULL ? signals->handle.rt : NULL);
    if (signals == NULL || ret_number == NULL) {
        HF_LEAVE(self,
                 hf_refuse_at(self, HF_ERR_MISUSE, NEXT.verb, "open signals and a place for the number are needed"));
    }
    hf_status status = hf_handle_use(self, &signals->handle, HF_READABLE, NEXT.verb);
    if (status == HF_OK) {
        status = next(self, signals, ret_number, options);
        if (hf_handle_done(&signals->handle, HF_READABLE)) {
            release(signals);
        }
    }
    HF_LEAVE(self, status);
}

hf_status hf_os_signals_try_next(hf_os_signals *signals, int *ret_number)
{
    hf_env *env = signals->handle.rt->env;
    return env->ops->signals_read(env, NULL, signals->handle.fd, ret_number);
}

hf_status hf_os_signals_close(hf_os_signals *signals)
{
    if (signals == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_os_signals_close, signals->handle.rt);
    if (hf_handle_close(&signals->handle)) {
        release(signals);
    }
    HF_LEAVE(self, HF_OK);
}
