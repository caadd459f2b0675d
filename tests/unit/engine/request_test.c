/* A request that is wrong in itself is refused before its run is looked for, so that its caller hears what is wrong with it. */
#include "fixture.h"

#include <stdio.h>

static const hf_pb_workflow_execution NOBODY = {.workflow_id = HF_STR_INIT("nobody")};

static hf_pb_workflow_execution *nobody(void)
{
    return (hf_pb_workflow_execution *)(uintptr_t)&NOBODY;
}

static void assert_status(hf_method method, const void *request, hf_status status)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    (void)hf_rig_request(slot, 1); /* a fresh call */
    hf_rig_send(&rig, slot, method, request);
    assert_true(slot->done);
    assert_int_equal(slot->call.status, status);
}

static void a_query_needs_a_type(void **state)
{
    (void)state;
    hf_pb_workflow_query query = {0};
    hf_pb_query_workflow_request request = {.namespace = HF_STR(HF_RIG_NS), .execution = nobody()};
    assert_status(HF_METHOD_QUERY_WORKFLOW, &request, HF_ERR_INVALID);
    request.query = &query;
    assert_status(HF_METHOD_QUERY_WORKFLOW, &request, HF_ERR_INVALID);
    query.query_type = HF_STR("q");
    assert_status(HF_METHOD_QUERY_WORKFLOW, &request, HF_ERR_NOT_FOUND);
}

static void an_update_needs_a_name_and_meta(void **state)
{
    (void)state;
    hf_pb_update_workflow_execution_request request = {.namespace = HF_STR(HF_RIG_NS), .workflow_execution = nobody()};
    hf_pb_meta meta = {0};
    hf_pb_input input = {.name = HF_STR("u")};
    hf_pb_request update = {.input = &input};
    assert_status(HF_METHOD_UPDATE_WORKFLOW_EXECUTION, &request, HF_ERR_INVALID);
    request.request = &update;
    assert_status(HF_METHOD_UPDATE_WORKFLOW_EXECUTION, &request, HF_ERR_INVALID);
    update = (hf_pb_request){.meta = &meta};
    assert_status(HF_METHOD_UPDATE_WORKFLOW_EXECUTION, &request, HF_ERR_INVALID);
    update.input = &input;
    assert_status(HF_METHOD_UPDATE_WORKFLOW_EXECUTION, &request, HF_ERR_NOT_FOUND);
}

/* The four calls about activities, of a run that is there and of one that is not. */
static void an_activity_has_to_be_named(void **state)
{
    (void)state;
    static const char *const IDS[] = {"wf", "nobody"};
    hf_rig_do(&rig, "start wf; poll; complete activity a1");
    for (size_t i = 0; i < HF_COUNT_OF(IDS); i++) {
        hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(IDS[i])};
        hf_str ns = HF_STR(HF_RIG_NS);
        hf_pb_pause_activity_request pause = {.namespace = ns, .execution = &execution};
        hf_pb_unpause_activity_request unpause = {.namespace = ns, .execution = &execution};
        hf_pb_reset_activity_request reset = {.namespace = ns, .execution = &execution};
        hf_pb_update_activity_options_request options = {.namespace = ns, .execution = &execution};
        assert_status(HF_METHOD_PAUSE_ACTIVITY, &pause, HF_ERR_INVALID);
        assert_status(HF_METHOD_UNPAUSE_ACTIVITY, &unpause, HF_ERR_INVALID);
        assert_status(HF_METHOD_RESET_ACTIVITY, &reset, HF_ERR_INVALID);
        assert_status(HF_METHOD_UPDATE_ACTIVITY_OPTIONS, &options, HF_ERR_INVALID);
        pause.activity_case = HF_PB_PAUSE_ACTIVITY_REQUEST_ID;
        pause.id = HF_STR("a2");
        assert_status(HF_METHOD_PAUSE_ACTIVITY, &pause, HF_ERR_NOT_FOUND);
    }
    hf_rig_do(&rig, "apause wf a1");
}

static void names_of_queues_do_not_begin_with_the_prefix_of_the_system(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf queue=/_sys/x => invalid; poll queue=/_sys/x => invalid; apoll queue=/_sys/x/1 => invalid;"
              "start wf queue=/_sys; start wf2 queue=x/_sys/; terminate wf; terminate wf2");
    static const char *const COMMANDS[] = {"activity a queue=/_sys/x", "child c queue=/_sys/x",
                                           "continue queue=/_sys/x"};
    for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
        char step[80];
        print_message("%s\n", COMMANDS[i]);
        hf_rig_do(&rig, "start run; poll");
        (void)snprintf(step, sizeof step, "complete %s", COMMANDS[i]);
        assert_int_equal(hf_rig_try(&rig, step), HF_ERR_INVALID);
        hf_rig_do(&rig, "terminate run");
    }
}

static void a_namespace_that_is_there_says_so_to_programs(void **state)
{
    (void)state;
    hf_rig_do(&rig, "register other; register other => exists");
    assert_ptr_equal(hf_rig_slot(&rig, NULL)->call.detail_type, &hf_pb_namespace_already_exists_failure_type);
    hf_rig_do(&rig, "namespace other");
    const hf_pb_describe_namespace_response *shown = hf_rig_slot(&rig, NULL)->call.response;
    assert_true(shown->replication_config != NULL && shown->replication_config->clusters.count == 1);
    hf_rig_do(&rig, "removeattr WorkflowId => invalid; removeattr Nobody => not_found");
}

/* A timeout that nobody set is zero; memo and search attributes are always there, and may be empty. */
static void a_description_has_a_memo_and_all_timeouts(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; start timed exec=1h memo=m:1; describe wf");
    const hf_pb_describe_workflow_execution_response *response = hf_rig_slot(&rig, NULL)->call.response;
    assert_true(response->execution_config->workflow_execution_timeout.has);
    assert_true(hf_pb_duration_span(response->execution_config->workflow_execution_timeout).ns == 0);
    assert_true(response->execution_config->workflow_run_timeout.has);
    assert_non_null(response->workflow_execution_info->memo);
    assert_int_equal(response->workflow_execution_info->memo->fields.count, 0);
    assert_non_null(response->workflow_execution_info->search_attributes);
    hf_rig_do(&rig, "describe timed");
    response = hf_rig_slot(&rig, NULL)->call.response;
    assert_true(hf_pb_duration_span(response->execution_config->workflow_execution_timeout).ns == hf_rig_span("1h"));
    assert_int_equal(response->workflow_execution_info->memo->fields.count, 1);
}

/* The type that the first attribute has in its metadata; "" = none. */
static const char *type_in(const hf_pb_search_attributes *attributes)
{
    assert_non_null(attributes);
    assert_int_equal(attributes->indexed_fields.count, 1);
    const hf_pb_payload *value = attributes->indexed_fields.items[0].value;
    for (size_t i = 0; i < value->metadata.count; i++) {
        if (hf_str_equal(value->metadata.items[i].key, HF_STR("type"))) {
            static char text[40];
            (void)snprintf(text, sizeof text, "%.*s", HF_STR_ARGS(value->metadata.items[i].value));
            return text;
        }
    }
    return "";
}

static const hf_pb_search_attributes *described(const char *id)
{
    char words[100];
    (void)snprintf(words, sizeof words, "describe %s", id);
    hf_rig_do(&rig, words);
    const hf_pb_describe_workflow_execution_response *response = hf_rig_slot(&rig, NULL)->call.response;
    return response->workflow_execution_info->search_attributes;
}

/* SDKs read an attribute by the type in its metadata; old clients, and the command line tool, do not send it. */
static void attributes_say_their_type(void **state)
{
    (void)state;
    hf_rig_do(&rig, "addattr Count type=Int; start wf attrs=Count:7; start free attrs=Nowhere:x");
    assert_string_equal(type_in(described("wf")), "Int");
    assert_string_equal(type_in(described("free")), ""); /* nobody knows it: programs in C need not add attributes */
    hf_rig_do(&rig, "list query=WorkflowId='wf'");
    const hf_pb_list_workflow_executions_response *list = hf_rig_slot(&rig, NULL)->call.response;
    assert_int_equal(list->executions.count, 1);
    assert_string_equal(type_in(list->executions.items[0].search_attributes), "Int");
    assert_non_null(list->executions.items[0].memo);
    hf_rig_do(&rig, "terminate wf; terminate free; start up; poll; complete upsert Count:8");
    assert_string_equal(type_in(described("up")), "Int");
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_query_needs_a_type),
    TEST(an_update_needs_a_name_and_meta),
    TEST(an_activity_has_to_be_named),
    TEST(names_of_queues_do_not_begin_with_the_prefix_of_the_system),
    TEST(a_namespace_that_is_there_says_so_to_programs),
    TEST(a_description_has_a_memo_and_all_timeouts),
    TEST(attributes_say_their_type),
};

int main(int argc, char **argv)
{
    return hf_test_main("request", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
