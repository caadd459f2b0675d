#include "service/guard.h"

#include "fiber/sched/wait.h"

#define FORKED_TEXT "this process is a fork() of the one that opened the service: only the parent can use and close it"

static hf_guard *guard_of(hf_service *service)
{
    return (hf_guard *)(void *)service;
}

static bool is_forked(const hf_guard *guard)
{
    return guard->marker != NULL && atomic_load_explicit(guard->marker, memory_order_relaxed) == 0;
}

static void refuse(hf_call *call, hf_status status, const char *why)
{
    hf_call_set_failure(call, status, why);
    call->done(call);
}

static void guard_submit(hf_service *service, hf_call *call)
{
    const hf_guard *guard = guard_of(service);
    if (HF_UNLIKELY(atomic_load_explicit(&guard->is_shut, memory_order_relaxed))) {
        refuse(call, HF_ERR_CLOSED, guard->why_shut);
    } else if (HF_UNLIKELY(is_forked(guard))) {
        refuse(call, HF_ERR_MISUSE, FORKED_TEXT);
    } else {
        hf_service_submit(guard->behind, call);
    }
}

/* Also when it is shut: the caller is a guest of the service behind it (service-V4). */
static void guard_cancel(hf_service *service, uint64_t number)
{
    const hf_guard *guard = guard_of(service);
    if (!is_forked(guard)) {
        guard->behind->ops->cancel(guard->behind, number);
    }
}

/* Calls pass the guard inside the library (service-G2). A cancel may come from outside, so it enters the library
 * first. */
static void guard_unwanted(hf_service *service, hf_str task_token)
{
    const hf_guard *guard = guard_of(service);
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return; /* a process that fork() made */
    }
    if (!atomic_load_explicit(&guard->is_shut, memory_order_relaxed) && !is_forked(guard)) {
        guard->behind->ops->unwanted(guard->behind, task_token);
    }
    hf_leave(self);
}

/* A child process must not wait for threads that it does not have, nor close the log and the lock of its parent. */
static hf_status guard_close(hf_op *op, hf_service *service)
{
    hf_guard *guard = guard_of(service);
    if (is_forked(guard)) {
        return hf_fail(op, HF_ERR_MISUSE, FORKED_TEXT);
    }
    if (guard->close == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "a worker does not close its service");
    }
    return guard->close(op, guard);
}

static hf_status guard_check(hf_op *op, const hf_service *service)
{
    const hf_guard *guard = (const hf_guard *)(const void *)service;
    return is_forked(guard) ? hf_fail(op, HF_ERR_MISUSE, FORKED_TEXT) : HF_OK;
}

static const hf_service_ops GUARD_OPS = {guard_submit, guard_cancel, guard_unwanted, guard_close, guard_check};

void hf_guard_init(hf_guard *guard, hf_status (*close)(hf_op *op, hf_guard *guard))
{
    *guard = (hf_guard){.service = {.ops = &GUARD_OPS}, .close = close};
}

void hf_guard_init_over(hf_guard *guard, hf_service *service, const char *why_shut)
{
    hf_guard_init(guard, NULL);
    guard->why_shut = why_shut;
    guard->service.codec = service->codec;
    guard->service.on_header = service->on_header;
    guard->service.on_header_arg = service->on_header_arg;
    guard->service.namespace_ = service->namespace_;
    guard->service.is_remote = service->is_remote;
    guard->service.is_foreign = service->is_foreign;
    guard->service.takes_nothing_back = service->takes_nothing_back;
    if (service->ops == &GUARD_OPS) {
        guard->marker = guard_of(service)->marker;
    }
    guard->behind = hf_guard_behind(service);
    hf_assert(guard->behind->ops != &GUARD_OPS); /* service-G1 */
}

hf_service *hf_guard_behind(hf_service *service)
{
    if (service->ops != &GUARD_OPS) {
        return service;
    }
    hf_service *behind = guard_of(service)->behind;
    hf_assert(behind != NULL); /* its owner has opened it */
    return behind;
}
