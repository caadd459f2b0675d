/* Who passes a guard, and what the others are told. */
#include "service/guard.h"
#include "support/support.h"

static int submitted;
static int given_back;

static void count_submit(hf_service *service, hf_call *call)
{
    (void)service;
    submitted++;
    call->status = HF_OK;
    call->done(call);
}

static void count_unwanted(hf_service *service, hf_str task_token)
{
    (void)service;
    (void)task_token;
    given_back++;
}

static const hf_service_ops COUNTING = {.submit = count_submit, .unwanted = count_unwanted};

static void on_done(hf_call *call)
{
    (void)call;
}

static hf_status submit_to(hf_service *service, const char **ret_why)
{
    static hf_call call;
    hf_call_init(&call, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, NULL, NULL, on_done);
    hf_service_submit(service, &call);
    *ret_why = call.message;
    return call.status;
}

static hf_status closed(hf_op *op, hf_guard *guard)
{
    (void)guard;
    return hf_fail(op, HF_ERR_EXISTS, "closed");
}

static void a_call_passes_one_guard_also_where_two_stand(void **state)
{
    (void)state;
    const char *why = NULL;
    hf_service service = {.ops = &COUNTING};
    hf_word marker = 1;
    hf_guard outer;
    hf_guard inner;
    hf_guard_init(&outer, closed);
    outer.behind = &service;
    outer.marker = &marker;
    hf_guard_init_over(&inner, &outer.service, "it was left");
    assert_ptr_equal(inner.behind, &service);
    assert_ptr_equal(inner.marker, &marker);
    submitted = 0;
    assert_int_equal(submit_to(&inner.service, &why), HF_OK);
    assert_int_equal(submit_to(&outer.service, &why), HF_OK);
    assert_int_equal(submitted, 2);
}

/* service-G2 */
static void a_guard_that_was_shut_refuses_and_the_other_does_not(void **state)
{
    (void)state;
    const char *why = NULL;
    hf_service service = {.ops = &COUNTING};
    hf_guard outer;
    hf_guard inner;
    hf_guard_init(&outer, closed);
    outer.behind = &service;
    hf_guard_init_over(&inner, &outer.service, "it was left");
    submitted = given_back = 0;
    inner.service.ops->unwanted(&inner.service, HF_STR("token"));
    assert_int_equal(given_back, 1);
    hf_guard_shut(&inner);
    assert_int_equal(submit_to(&inner.service, &why), HF_ERR_CLOSED);
    assert_string_equal(why, "it was left");
    inner.service.ops->unwanted(&inner.service, HF_STR("token"));
    assert_int_equal(given_back, 1);
    assert_int_equal(submit_to(&outer.service, &why), HF_OK);
    assert_int_equal(submitted, 1);
}

static void in_a_process_that_fork_made_nobody_passes(void **state)
{
    (void)state;
    const char *why = NULL;
    hf_service service = {.ops = &COUNTING};
    hf_word marker = 0;
    hf_op op;
    hf_guard guard;
    hf_guard_init(&guard, closed);
    guard.behind = &service;
    guard.marker = &marker;
    submitted = given_back = 0;
    assert_int_equal(submit_to(&guard.service, &why), HF_ERR_MISUSE);
    guard.service.ops->unwanted(&guard.service, HF_STR("token"));
    hf_op_init(&op);
    assert_int_equal(hf_service_check(&op, &guard.service), HF_ERR_MISUSE);
    hf_op_init(&op);
    assert_int_equal(guard.service.ops->close(&op, &guard.service), HF_ERR_MISUSE);
    assert_int_equal(submitted + given_back, 0);
}

static void only_the_owner_s_guard_is_closed(void **state)
{
    (void)state;
    hf_service service = {.ops = &COUNTING};
    hf_op op;
    hf_guard outer;
    hf_guard inner;
    hf_guard_init(&outer, closed);
    outer.behind = &service;
    hf_guard_init_over(&inner, &outer.service, "it was left");
    hf_op_init(&op);
    assert_int_equal(inner.service.ops->close(&op, &inner.service), HF_ERR_MISUSE);
    hf_op_init(&op);
    assert_int_equal(outer.service.ops->close(&op, &outer.service), HF_ERR_EXISTS);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_call_passes_one_guard_also_where_two_stand),
        cmocka_unit_test(a_guard_that_was_shut_refuses_and_the_other_does_not),
        cmocka_unit_test(in_a_process_that_fork_made_nobody_passes),
        cmocka_unit_test(only_the_owner_s_guard_is_closed),
    };
    return hf_test_main("guard", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
