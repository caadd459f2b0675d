/* A call that somebody waits for. The call is on the waiter's stack and the service writes to it until `done`, so a
 * cancel does not end the wait: it asks the service to hurry, and `done` ends it.
 *
 *     waiter:  submit ---- park -------------------------------------> goes on
 *     cancel:                abort_ask: told once, claims nothing          ^
 *     service:                        ... done: claims, wakes -------------+    (a service thread, or inside submit)
 *
 * A service that is being closed ends when its last call is done. So `done` does not return while somebody is in there telling it
 * of the cancel of that call: who tells is about to leave, and waits for nobody. */
#include "service/call.h"

#include "base/latch.h"
#include "fiber/sched/wait.h"

typedef struct asking {
    hf_spin lock; /* first: hf_wait.object points here */
    bool is_done;
    bool is_told;    /* the service knows that the caller has lost interest, or is being told ... */
    hf_latch told;   /* ... and has heard it, once this is open */
    uint64_t teller; /* by this thread */
    hf_env *env;
    hf_service *service;
    hf_call *call;
    hf_wait wait;
} asking;

static void on_done(hf_call *call)
{
    asking *ask = call->state;
    hf_env *env = ask->env;
    hf_spin_lock(&ask->lock);
    ask->is_done = true;
    bool is_told = ask->is_told;
    hf_spin_unlock(&ask->lock);
    if (HF_UNLIKELY(is_told) && ask->teller != env->ops->thread_id(env)) { /* else this is what telling came to */
        hf_latch_wait(env, &ask->told);
    }
    hf_wake(&ask->wait, HF_OK); /* from here on the call may be gone */
}

/* The waiter does not go on before this has returned, so `ask` stays; the service may be gone once the latch is open. A thread's
 * lock may be held here. */
static bool abort_ask(hf_wait *wait)
{
    asking *ask = wait->object;
    hf_env *env = ask->env;
    hf_spin_lock(&ask->lock);
    bool tell = !ask->is_done && !ask->is_told;
    if (tell) {
        ask->is_told = true;
        ask->teller = env->ops->thread_id(env);
    }
    hf_spin_unlock(&ask->lock);
    if (tell) {
        ask->service->ops->cancel(ask->service, ask->call);
        hf_latch_open_locked(env, &ask->told);
    }
    return false;
}

static const hf_wait_kind ASK = {"hf_service_ask", abort_ask};

hf_status hf_service_ask(hf_op *op, hf_service *service, hf_call *call)
{
    const char *name = call->verb != NULL ? call->verb : hf_method_info_of(call->method)->name;
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
        return hf_fail(op, status, "%s was not asked: %s", name, hf_error_text());
    }
    asking ask = {.service = service, .call = call, .env = self->rt != NULL ? self->rt->env : hf_env_posix()};
    hf_wait_init(&ask.wait, self, &ASK, &ask, name);
    call->state = &ask;
    call->done = on_done;
    hf_service_submit(service, call);
    (void)hf_park(self, &ask.wait, HF_INSTANT_NEVER);
    hf_leave(self);
    if (call->status == HF_OK) {
        return HF_OK;
    }
    return hf_fail(op, call->status, "%s: %s", name,
                   call->message[0] != '\0' ? call->message : hf_status_text(call->status));
}
