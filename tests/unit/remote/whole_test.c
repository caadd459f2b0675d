/* What a server leaves out of its answers. */
#include "support/support.h"

#include "remote/remote_private.h"

static void remote_R6_an_answer_that_lacks_something_is_refused(void **state)
{
    (void)state;
    hf_pb_start_workflow_execution_response started = {0};
    assert_string_equal(hf_answer_lacks(HF_METHOD_START_WORKFLOW_EXECUTION, &started), "run id");
    started.run_id = HF_STR("r");
    assert_null(hf_answer_lacks(HF_METHOD_START_WORKFLOW_EXECUTION, &started));

    hf_pb_signal_with_start_workflow_execution_response both = {0};
    assert_non_null(hf_answer_lacks(HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION, &both));
    hf_pb_reset_workflow_execution_response reset = {0};
    assert_non_null(hf_answer_lacks(HF_METHOD_RESET_WORKFLOW_EXECUTION, &reset));

    hf_pb_update_workflow_execution_response updated = {0};
    hf_pb_execute_multi_operation_response_response parts[2] = {{.start_workflow = &started}, {0}};
    hf_pb_execute_multi_operation_response multi = {.responses = {parts, 1}};
    assert_non_null(hf_answer_lacks(HF_METHOD_EXECUTE_MULTI_OPERATION, &multi));
    multi.responses.count = 2;
    assert_non_null(hf_answer_lacks(HF_METHOD_EXECUTE_MULTI_OPERATION, &multi));
    parts[1].update_workflow = &updated;
    assert_null(hf_answer_lacks(HF_METHOD_EXECUTE_MULTI_OPERATION, &multi));

    hf_pb_describe_workflow_execution_response described = {0};
    hf_pb_workflow_execution_info info = {0};
    assert_non_null(hf_answer_lacks(HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &described));
    described.workflow_execution_info = &info;
    assert_null(hf_answer_lacks(HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &described));

    hf_pb_query_rejected rejected = {0};
    hf_pb_query_workflow_response answer = {.query_rejected = &rejected};
    assert_non_null(hf_answer_lacks(HF_METHOD_QUERY_WORKFLOW, &answer));
    answer.query_rejected = NULL;
    assert_null(hf_answer_lacks(HF_METHOD_QUERY_WORKFLOW, &answer));

    hf_pb_namespace_info space = {0};
    hf_pb_describe_namespace_response one = {.namespace_info = &space};
    hf_pb_list_namespaces_response page = {.namespaces = {&one, 1}};
    assert_non_null(hf_answer_lacks(HF_METHOD_DESCRIBE_NAMESPACE, &one));
    assert_non_null(hf_answer_lacks(HF_METHOD_LIST_NAMESPACES, &page));
    page.namespaces.count = 0;
    assert_null(hf_answer_lacks(HF_METHOD_LIST_NAMESPACES, &page));
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(remote_R6_an_answer_that_lacks_something_is_refused),
};

int main(int argc, char **argv)
{
    return hf_test_main("whole", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
