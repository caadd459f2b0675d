/* A call that is canceled while its service ends: the service is told of it only as long as it is there. */
#include "service/call.h"
#include "support/support.h"

#include "fiber/core.h"

#include <string.h>

/* Answers from a thread of its own, as an engine does; being told of a cancel takes it a while, in which that thread ends
 * everything, the call first. */
typedef struct slow_service {
    hf_service service;
    hf_env *env;
    hf_thread *thread;
    hf_call *call;
    hf_word is_told;   /* 1 = the thread may answer */
    bool is_in_cancel; /* somebody is inside of it */
    bool is_gone;      /* its last call was answered: its memory is given back */
} slow_service;

static void slow_submit(hf_service *service, hf_call *call)
{
    ((slow_service *)(void *)service)->call = call;
    call->number = 7;
}

static void slow_cancel(hf_service *service, uint64_t number)
{
    slow_service *s = (slow_service *)(void *)service;
    hf_word never = 0;
    HF_CHECK(number == s->call->number);
    s->is_in_cancel = true;
    atomic_store(&s->is_told, 1);
    s->env->ops->word_wake(s->env, &s->is_told, 1);
    (void)s->env->ops->word_wait(s->env, &never, 0, (hf_instant){s->env->ops->now(s->env).ns + hf_seconds(1).ns});
    HF_CHECK(!s->is_gone);
    s->is_in_cancel = false;
}

static void slow_main(void *arg)
{
    slow_service *s = arg;
    while (atomic_load(&s->is_told) == 0) {
        (void)s->env->ops->word_wait(s->env, &s->is_told, 0, HF_INSTANT_NEVER);
    }
    s->call->status = HF_ERR_CLOSED;
    s->call->done(s->call);
    hf_guests_await(s->env, &s->service.guests);
    HF_CHECK(!s->is_in_cancel); /* it is freed here */
    s->is_gone = true;
}

static const hf_service_ops SLOW = {slow_submit, slow_cancel, NULL, NULL, NULL};

static hf_status ask(void *arg)
{
    slow_service *s = arg;
    hf_arena arena;
    hf_op op;
    hf_call call;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(s->env));
    hf_pb_describe_workflow_execution_request request = {0};
    hf_call_init(&call, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &arena, NULL);
    HF_CHECK(hf_service_ask(&op, &s->service, &call) == HF_ERR_CLOSED);
    hf_arena_deinit(&arena);
    return HF_OK;
}

static hf_status cancel_while_it_ends(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    slow_service s = {.service = {.ops = &SLOW}, .env = hf_runtime_current()->env};
    HF_TRY(s.env->ops->thread_start(s.env, &op, "slow", 65536, slow_main, &s, &s.thread));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        HF_TRY(hf_fork(scope, ask, &s));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_TRY(hf_scope_cancel(scope));
        HF_IGNORE(hf_join(scope));
    }
    s.env->ops->thread_join(s.env, s.thread);
    HF_CHECK(s.is_gone);
    return HF_OK;
}

/* service-V4 */
static void a_service_is_not_told_of_a_cancel_when_it_has_gone(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        assert_int_equal(hf_sim_run(seed, 1 + (int)(seed % 3), cancel_while_it_ends, NULL, NULL), HF_OK);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_service_is_not_told_of_a_cancel_when_it_has_gone),
    };
    return hf_test_main("call", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
