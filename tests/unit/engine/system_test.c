/* What the service says of itself and of its namespaces, and of calls that it knows but does not do. */
#include "base/uuid.h"
#include "unit/engine/fixture.h"

#include <stdio.h>

static void the_system_names_its_version_and_what_works(void **state)
{
    (void)state;
    hf_rig_do(&rig, "system");
    const hf_pb_get_system_info_response *response = hf_rig_slot(&rig, NULL)->call.response;
    assert_true(hf_str_equal(response->server_version, hf_str_of(HF_VERSION_TEXT)));
    hf_pb_get_system_info_response_capabilities expected = {
        .signal_and_query_header = true,
        .internal_error_differentiation = true,
        .activity_failure_include_heartbeat = true,
        .encoded_failure_attributes = true,
        .upsert_memo = true,
        .eager_workflow_start = true,
        .sdk_metadata = true,
    };
    assert_true(hf_pb_equal(&hf_pb_get_system_info_response_capabilities_type, response->capabilities, &expected));
}

/* The id of a namespace is in histories and in the programs of others. */
static const struct {
    const char *name;
    const char *id;
} NAMESPACES[] = {
    {"default", "c87ffb03-8fc6-40a1-b367-2c4bc4634c1a"},
    {"ns", "89045f76-76fa-41aa-8db3-8e27b78e8bf0"},
};

static void any_good_name_is_a_namespace_whose_id_never_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(NAMESPACES); i++) {
        char step[40];
        (void)snprintf(step, sizeof step, "namespace %s", NAMESPACES[i].name);
        hf_rig_do(&rig, step);
        const hf_pb_describe_namespace_response *response = hf_rig_slot(&rig, NULL)->call.response;
        const hf_pb_namespace_info *info = response->namespace_info;
        print_message("%s: %.*s\n", NAMESPACES[i].name, HF_STR_ARGS(info->id));
        assert_true(hf_str_equal(info->name, hf_str_of(NAMESPACES[i].name)));
        assert_true(hf_str_equal(info->id, hf_str_of(NAMESPACES[i].id)));
        assert_int_equal(info->state, HF_NAMESPACE_STATE_REGISTERED);
        hf_pb_namespace_info_capabilities able = {.eager_workflow_start = true,
                                                  .sync_update = true,
                                                  .async_update = true,
                                                  .worker_poll_complete_on_shutdown = true};
        assert_true(hf_pb_equal(&hf_pb_namespace_info_capabilities_type, info->capabilities, &able));
        assert_int_equal(info->limits->blob_size_limit_error, 2 << 20);
        assert_true(response->config->workflow_execution_retention_ttl.has);
    }
}

static void a_namespace_is_not_found_by_its_id(void **state)
{
    (void)state;
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_describe_namespace_request *request = HF_RIG_REQUEST(slot, describe_namespace);
    request->id = hf_str_of(NAMESPACES[0].id);
    hf_rig_send(&rig, slot, HF_METHOD_DESCRIBE_NAMESPACE, request);
    assert_int_equal(slot->call.status, HF_ERR_NOT_FOUND);
}

/* ---- Calls for later --------------------------------------------------------------------------------------------- */

static const hf_pb_field *field_of(const hf_pb_type *type, const char *name)
{
    for (size_t i = 0; i < type->field_count; i++) {
        if (strcmp(type->names[i].name, name) == 0) {
            return &type->fields[i];
        }
    }
    return NULL;
}

static void put_str(const hf_pb_type *type, char *request, const char *name, hf_str value)
{
    const hf_pb_field *field = field_of(type, name);
    if (field != NULL) {
        memcpy(request + field->offset, &value, sizeof value);
    }
}

static void put_message(const hf_pb_type *type, char *request, const char *name, const void *value)
{
    const hf_pb_field *field = field_of(type, name);
    if (field != NULL) {
        memcpy(request + field->offset, &value, sizeof value);
    }
}

/* A request with what tells which run or queue it is about, as far as it has room for that. */
static hf_status ask(hf_method method, const char *ns, const char *id, hf_str token)
{
    const hf_pb_type *type = hf_method_info_of(method)->request_type;
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    char *request = hf_rig_request(slot, type->size);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_update_ref update_ref = {.workflow_execution = &execution, .update_id = HF_STR("u")};
    hf_pb_task_queue queue = {.name = HF_STR(HF_RIG_QUEUE)};
    hf_pb_start_workflow_execution_request start = {.workflow_id = hf_str_of(id)};
    hf_pb_execute_multi_operation_request_operation operation = {
        .operation_case = HF_PB_EXECUTE_MULTI_OPERATION_REQUEST_OPERATION_START_WORKFLOW, .start_workflow = &start};
    put_str(type, request, "namespace", hf_str_of(ns));
    put_str(type, request, "workflow_id", hf_str_of(id));
    put_str(type, request, "task_token", token);
    put_message(type, request, "execution", &execution);
    put_message(type, request, "workflow_execution", &execution);
    put_message(type, request, "update_ref", &update_ref);
    put_message(type, request, "task_queue", &queue);
    if (method == HF_METHOD_EXECUTE_MULTI_OPERATION) {
        ((hf_pb_execute_multi_operation_request *)(void *)request)->operations =
            (hf_pb_execute_multi_operation_request_operation_list){&operation, 1};
    }
    hf_rig_send(&rig, slot, method, request);
    assert_true(slot->done);
    return slot->call.status;
}

static bool is_about_a_run(hf_method method)
{
    return method != HF_METHOD_DESCRIBE_TASK_QUEUE && method != HF_METHOD_EXECUTE_MULTI_OPERATION;
}

static void calls_for_later_are_checked_and_then_refused(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll");
    hf_str token = hf_rig_task(&rig, "w")->task_token;
    for (int i = 0; i < HF_METHOD_COUNT; i++) {
        hf_method method = (hf_method)i;
        if (!hf_rig_is_for_later(method)) {
            continue;
        }
        print_message("%s\n", hf_method_info_of(method)->name);
        assert_int_equal(ask(method, HF_RIG_NS, "wf", token), HF_ERR_UNSUPPORTED);
        assert_non_null(strstr(hf_rig_slot(&rig, NULL)->call.message, hf_method_info_of(method)->name));
        assert_int_equal(ask(method, "", "wf", token), HF_ERR_INVALID);
        assert_int_equal(ask(method, "elsewhere", "wf", token),
                         is_about_a_run(method) ? HF_ERR_NOT_FOUND : HF_ERR_UNSUPPORTED);
        if (is_about_a_run(method) && method != HF_METHOD_RESPOND_QUERY_TASK_COMPLETED) {
            assert_int_equal(ask(method, HF_RIG_NS, "nobody", token), HF_ERR_NOT_FOUND);
            assert_int_equal(ask(method, HF_RIG_NS, "", token), HF_ERR_INVALID);
        }
    }
    hf_rig_do(&rig, "complete done");
}

static void the_run_of_a_call_by_id_is_the_one_that_it_names(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    const hf_pb_start_workflow_execution_response *started = slot->call.response;
    char run_id[HF_UUID_LEN];
    (void)snprintf(run_id, sizeof run_id, "%.*s", HF_STR_ARGS(started->run_id));
    hf_rig_do(&rig, "start other queue=o");
    static const struct {
        const char *id;
        bool with_run;
        hf_status expected;
    } ROWS[] = {{"wf", true, HF_ERR_INVALID}, {"wf", false, HF_ERR_INVALID}, {"other", true, HF_ERR_NOT_FOUND}};
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_pb_record_activity_task_heartbeat_by_id_request *request =
            HF_RIG_REQUEST(slot, record_activity_task_heartbeat_by_id);
        request->namespace = HF_STR(HF_RIG_NS);
        request->workflow_id = hf_str_of(ROWS[i].id);
        request->run_id = ROWS[i].with_run ? hf_str_of(run_id) : HF_STR("");
        hf_rig_send(&rig, slot, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID, request);
        assert_int_equal(slot->call.status, ROWS[i].expected);
    }
}

static const struct CMUnitTest TESTS[] = {
    TEST(the_system_names_its_version_and_what_works),
    TEST(any_good_name_is_a_namespace_whose_id_never_changes),
    TEST(a_namespace_is_not_found_by_its_id),
    TEST(calls_for_later_are_checked_and_then_refused),
    TEST(the_run_of_a_call_by_id_is_the_one_that_it_names),
};

int main(int argc, char **argv)
{
    return hf_test_main("system", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
