/* A call and its waiter. The call is on the waiter's stack and the service writes to it until `done`. So a cancel does
 * not end the wait: it asks the service to finish soon, and `done` ends the wait.
 *
 *     waiter:  submit ---- park -------------------------------------> goes on
 *     cancel:                abort_ask: told once, claims nothing          ^
 *     service:                        ... done: claims, wakes -------------+    (a service thread, or inside submit)
 *
 * Meanwhile another thread may close the service, which waits only for its last call. So a thread that reports a
 * cancel becomes a guest of the service while the call is not done yet (service-V4). It names the call by its
 * number, because the call may be done before the service gets the cancel. */
#include "service/call.h"

#include "service/codec.h"

#include "fiber/sched/wait.h"
#include "service/guard.h"

enum { ID_SHOWN_MAX = 120 }; /* bytes of an id in a message: the reason must fit, too */

typedef struct asking {
    hf_spin lock; /* first: hf_wait.object points here */
    bool is_done; /* under the lock, as the next */
    bool is_told; /* the service was told that the caller is canceled, or is being told */
    hf_env *env;
    hf_service *service;
    hf_call *call;
    hf_wait wait;
} asking;

static void on_done(hf_call *call)
{
    asking *ask = call->state;
    hf_spin_lock(&ask->lock);
    hf_assert(!ask->is_done); /* service-V1 */
    ask->is_done = true;
    hf_spin_unlock(&ask->lock);
    hf_wake(&ask->wait, HF_OK); /* from here on the call may be gone */
}

/* The waiter does not go on before this has returned, so `ask` stays. A thread's lock may be held here. */
static bool abort_ask(hf_wait *wait)
{
    asking *ask = wait->object;
    hf_guests *guests = &hf_guard_behind(ask->service)->guests;
    hf_spin_lock(&ask->lock);
    bool tell = !ask->is_done && !ask->is_told;
    if (tell) {
        ask->is_told = true;
        hf_guest_enter(guests);
    }
    hf_spin_unlock(&ask->lock);
    if (tell) {
        ask->service->ops->cancel(ask->service, ask->call->number);
        hf_guest_leave(ask->env, guests); /* from here on the service may be gone */
    }
    return false;
}

static const hf_wait_kind ASK = {"hf_service_ask", abort_ask};

static const char *verb_of(const hf_call *call)
{
    return call->verb != NULL ? call->verb : hf_method_info_of(call->method)->name;
}

hf_status hf_call_report(hf_op *op, const hf_call *call, hf_status status, const char *link, const char *text)
{
    const char *verb = verb_of(call);
    hf_str id = call->workflow_id;
    hf_assert(status != HF_OK && text != NULL);
    if (id.len == 0) {
        return hf_fail_at(op, status, "hf_service_ask", "%s%s%s", verb, link, text);
    }
    int shown = id.len > ID_SHOWN_MAX ? ID_SHOWN_MAX : (int)id.len;
    bool is_cut = (size_t)shown < id.len;
    while (is_cut && shown > 0 && ((unsigned char)id.data[shown] & 0xc0) == 0x80) {
        shown--; /* not within a character */
    }
    return hf_fail_at(op, status, verb, "%s of workflow '%.*s%s'%s%s", verb, shown, id.data, is_cut ? "..." : "", link,
                      text);
}

/* A task whose payloads cannot be decoded is a matter of that task, not of the poll. */
static bool is_poll(hf_method method)
{
    return method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE || method == HF_METHOD_POLL_ACTIVITY_TASK_QUEUE ||
           method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED;
}

hf_status hf_service_ask(hf_op *op, hf_service *service, hf_call *call)
{
    const char *name = verb_of(call);
    const hf_method_info *info = hf_method_info_of(call->method);
    hf_op inner;
    hf_op_init(&inner);
    if (hf_codec_encode(&inner, service->codec, info->request_type, call->request, call->arena, &call->request) !=
        HF_OK) {
        return hf_call_report(op, call, inner.status, " was not asked: ", inner.message);
    }
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        (void)hf_forked();
        return hf_fail(op, HF_ERR_MISUSE, "a process that fork() made cannot ask the service");
    }
    hf_status status = hf_not_in_workflow(name);
    if (status == HF_OK) {
        status = hf_may_wait(self, name);
    }
    if (status != HF_OK) {
        hf_leave(self);
        return hf_call_report(op, call, status, " was not asked: ", hf_error_text());
    }
    asking ask = {.service = service, .call = call, .env = self->rt != NULL ? self->rt->env : hf_env_posix()};
    hf_wait_init(&ask.wait, self, &ASK, &ask, name);
    call->state = &ask;
    call->done = on_done;
    hf_service_submit(service, call);
    (void)hf_park(self, &ask.wait, HF_INSTANT_NEVER);
    hf_leave(self);
    hf_assert(ask.is_done); /* service-V1: `done` has woken us */
    if (call->status == HF_OK) {
        hf_status decoded = hf_codec_decode(&inner, service->codec, info->response_type, call->response, call->arena,
                                            is_poll(call->method));
        return decoded == HF_OK ? HF_OK : hf_call_report(op, call, decoded, ": ", inner.message);
    }
    return hf_call_report(op, call, call->status, ": ",
                          call->message[0] != '\0' ? call->message : hf_status_text(call->status));
}
