/* What may be sent twice: judged by the verbs in the methods' names, and not by the table. */
#include "support/support.h"

#include "service/grpc_path.h"
#include "service/repeat.h"

#include <string.h>

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool is_read(const char *name)
{
    static const char *const VERBS[] = {"Get", "List", "Count", "Scan", "Describe", "Query", "Poll", "Read"};
    for (size_t i = 0; i < HF_COUNT_OF(VERBS); i++) {
        if (begins(name, VERBS[i])) {
            return true;
        }
    }
    return false;
}

static bool has_field(const hf_pb_type *type, const char *name)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (strcmp(type->names[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void remote_R2_only_what_may_be_sent_twice_is(void **state)
{
    long double room[1024 / sizeof(long double)] = {0};
    int twice = 0;
    (void)state;
    for (int i = 0; i < HF_METHOD_COUNT; i++) {
        const hf_method_info *info = hf_method_info_of((hf_method)i);
        if (hf_method_grpc_service((hf_method)i) == NULL) {
            continue;
        }
        hf_call call;
        hf_call_init(&call, (hf_method)i, room, NULL, NULL);
        assert_true(info->request_type->size <= sizeof room);
        hf_manner manner = hf_manner_of(&call); /* an empty request: it has no request id */
        bool has_token = has_field(info->request_type, "task_token");
        bool is_beat = begins(info->name, "RecordActivityTaskHeartbeat");
        bool is_goodbye = begins(info->name, "ShutdownWorker") || begins(info->name, "ResetSticky");
        bool is_update =
            begins(info->name, "UpdateWorkflowExecution") && !begins(info->name, "UpdateWorkflowExecutionOptions");
        bool has_own_id = is_update || begins(info->name, "ExecuteMultiOperation"); /* inside the request */
        print_message("%s: %d\n", info->name, (int)manner.repeat);
        if (is_read(info->name) || has_token || is_beat || is_goodbye) {
            assert_int_equal(manner.repeat, HF_REPEAT_ALWAYS);
        } else if (has_own_id) {
            assert_int_equal(manner.repeat, HF_REPEAT_BY_ID);
        } else {
            assert_int_equal(manner.repeat, HF_REPEAT_NEVER);
        }
        twice += manner.repeat != HF_REPEAT_NEVER;
        assert_true(manner.attempt_s > 0);
        assert_int_equal(manner.patience_s == 0,
                         begins(info->name, "PollWorkflowTask") || begins(info->name, "PollActivity"));
    }
    assert_true(twice > 20);
}

static void remote_R2_a_request_id_allows_a_second_time(void **state)
{
    (void)state;
    hf_pb_signal_workflow_execution_request signal = {.request_id = HF_STR("once")};
    hf_pb_terminate_workflow_execution_request terminate = {.reason = HF_STR("once")};
    hf_call call;
    hf_call_init(&call, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &signal, NULL, NULL);
    assert_int_equal(hf_manner_of(&call).repeat, HF_REPEAT_BY_ID);
    hf_call_init(&call, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, &terminate, NULL, NULL);
    assert_int_equal(hf_manner_of(&call).repeat, HF_REPEAT_NEVER);
}

static void the_package_of_a_message_names_its_service(void **state)
{
    (void)state;
    assert_string_equal(hf_method_grpc_service(HF_METHOD_START_WORKFLOW_EXECUTION), HF_GRPC_WORKFLOW_SERVICE);
    assert_string_equal(hf_method_grpc_service(HF_METHOD_ADD_SEARCH_ATTRIBUTES), HF_GRPC_OPERATOR_SERVICE);
    assert_null(hf_method_grpc_service(HF_METHOD_TELL_LISTENER));
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(remote_R2_only_what_may_be_sent_twice_is),
    cmocka_unit_test(remote_R2_a_request_id_allows_a_second_time),
    cmocka_unit_test(the_package_of_a_message_names_its_service),
};

int main(int argc, char **argv)
{
    return hf_test_main("repeat", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
