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
        .count_group_by_execution_status = true,
    };
    assert_true(hf_pb_equal(&hf_pb_get_system_info_response_capabilities_type, response->capabilities, &expected));
}

static void a_store_is_a_cluster_of_its_own(void **state)
{
    (void)state;
    char id[HF_UUID_LEN] = "";
    for (int i = 0; i < 2; i++) { /* and stays it */
        hf_rig_call *slot = hf_rig_slot(&rig, NULL);
        hf_rig_send(&rig, slot, HF_METHOD_GET_CLUSTER_INFO, HF_RIG_REQUEST(slot, get_cluster_info));
        const hf_pb_get_cluster_info_response *response = slot->call.response;
        assert_int_equal(slot->call.status, HF_OK);
        assert_true(hf_str_equal(response->server_version, hf_str_of(HF_VERSION_TEXT)));
        assert_int_equal(response->history_shard_count, 1);
        assert_int_equal(response->cluster_id.len, HF_UUID_LEN - 1);
        assert_true(i == 0 || hf_str_equal(response->cluster_id, hf_str_of(id)));
        (void)snprintf(id, sizeof id, "%.*s", HF_STR_ARGS(response->cluster_id));
        hf_rig_crash(&rig);
    }
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
    TEST(the_system_names_its_version_and_what_works),         TEST(a_store_is_a_cluster_of_its_own),
    TEST(any_good_name_is_a_namespace_whose_id_never_changes), TEST(a_namespace_is_not_found_by_its_id),
    TEST(the_run_of_a_call_by_id_is_the_one_that_it_names),
};

int main(int argc, char **argv)
{
    return hf_test_main("system", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
