/* What a failed call says to programs: a message of errordetails.v1 beside the sentence. */
#include "unit/engine/fixture.h"

static const hf_call *call(void)
{
    return &hf_rig_slot(&rig, NULL)->call;
}

static void something_that_is_missing_says_so(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete done");
    static const char *const STEPS[] = {"signal nobody s", "signal wf s", "terminate wf", "cancel wf first=other",
                                        "complete done"};
    for (size_t i = 0; i < HF_COUNT_OF(STEPS); i++) {
        print_message("%s\n", STEPS[i]);
        assert_int_equal(hf_rig_try(&rig, STEPS[i]), HF_ERR_NOT_FOUND);
        assert_ptr_equal(call()->detail_type, &hf_pb_not_found_failure_type);
        assert_non_null(call()->detail);
    }
    assert_int_equal(hf_rig_try(&rig, "start wf run=-1s"), HF_ERR_INVALID);
    assert_null(call()->detail_type);
}

static void an_id_in_use_says_which_run_and_which_request(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf request=r1");
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    const hf_pb_start_workflow_execution_response *started = call()->response;
    hf_str run_id = hf_arena_copy(&arena, started->run_id);
    hf_rig_do(&rig, "start wf request=r2 => exists");
    assert_ptr_equal(call()->detail_type, &hf_pb_workflow_execution_already_started_failure_type);
    const hf_pb_workflow_execution_already_started_failure *detail = call()->detail;
    assert_true(hf_str_equal(detail->run_id, run_id));
    assert_true(hf_str_equal(detail->first_execution_run_id, run_id));
    assert_true(hf_str_equal(detail->start_request_id, HF_STR("r1")));
    assert_true(hf_str_equal(call()->existing_run_id, run_id));
    hf_arena_deinit(&arena);
}

static void a_limit_says_whether_it_passes(void **state)
{
    (void)state;
    again(&(hf_core_options){.limits = {.signals = 2}});
    hf_rig_do(&rig, "start wf; signal wf a; signal wf b; signal wf c => limit");
    assert_true(call()->is_final);
    assert_null(call()->detail_type);
    assert_string_equal(call()->words, "exceeded workflow execution limit for signal events");
}

/* The sentence of a failed call waits for its commit, which does not come. */
static void a_failure_that_is_taken_back_takes_its_detail_with_it(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll");
    rig.may_break = true;
    rig.lose = true;
    hf_rig_call *slot = hf_rig_slot(&rig, "x");
    hf_pb_start_workflow_execution_request *request = HF_RIG_REQUEST(slot, start_workflow_execution);
    hf_pb_workflow_type type = {.name = HF_STR("type")};
    hf_pb_task_queue queue = {.name = HF_STR(HF_RIG_QUEUE)};
    request->namespace = HF_STR(HF_RIG_NS);
    request->workflow_id = HF_STR("wf");
    request->workflow_type = &type;
    request->task_queue = &queue;
    rig.hold = true;
    hf_rig_do(&rig, "complete timer t 1h => again"); /* so that there is something to commit */
    hf_rig_submit(&rig, slot, HF_METHOD_START_WORKFLOW_EXECUTION, request);
    assert_false(slot->done);
    rig.hold = false;
    assert_false(hf_rig_settle(&rig));
    hf_core_stop(rig.core, hf_core_status(rig.core), "the commit is lost");
    assert_true(slot->done);
    assert_int_not_equal(slot->call.status, HF_ERR_EXISTS);
    assert_ptr_not_equal(slot->call.detail_type, &hf_pb_workflow_execution_already_started_failure_type);
    rig.lose = false;
    hf_rig_crash(&rig);
}

static const struct CMUnitTest TESTS[] = {
    TEST(something_that_is_missing_says_so),
    TEST(an_id_in_use_says_which_run_and_which_request),
    TEST(a_limit_says_whether_it_passes),
    TEST(a_failure_that_is_taken_back_takes_its_detail_with_it),
};

int main(int argc, char **argv)
{
    return hf_test_main("detail", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
