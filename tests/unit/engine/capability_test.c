/* Each capability that the service advertises is a promise, and has a case here that fails when the promise is not kept. A flag without a
 * case fails the first test. And what is not advertised, because it is not there, is refused. */
#include "unit/engine/fixture.h"

#include <stdio.h>

static hf_pb_history_event_list events_of(const char *workflow_id)
{
    static hf_arena arena;
    static hf_pb_history history;
    hf_op op;
    hf_op_init(&op);
    hf_arena_deinit(&arena);
    hf_arena_init(&arena, hf_rig_heap);
    hf_str bytes = hf_arena_copy(&arena, hf_rig_history_bytes(&rig, workflow_id));
    assert_int_equal(hf_pb_decode(&op, &hf_pb_history_type, bytes, &arena, &history), HF_OK);
    return history.events;
}

static hf_pb_history_event *event_of(const char *workflow_id, int32_t type)
{
    hf_pb_history_event_list events = events_of(workflow_id);
    for (size_t i = 0; i < events.count; i++) {
        if (events.items[i].event_type == type) {
            return &events.items[i];
        }
    }
    fail_msg("%s has no such event", workflow_id);
    return NULL;
}

static hf_pb_payload PAYLOAD = {.data = HF_STR_INIT("\"x\"")};
static hf_pb_header_fields_entry FIELD = {.key = HF_STR_INIT("trace"), .value = &PAYLOAD};
static hf_pb_header HEADER = {.fields = {&FIELD, 1}};
static hf_pb_workflow_execution WF = {.workflow_id = HF_STR_INIT("wf")};

/* ---- Of the system ---------------------------------------------------------------------------------------------------------- */

static void signal_and_query_header(void)
{
    hf_rig_do(&rig, "start wf; poll; complete");
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_signal_workflow_execution_request *signal = HF_RIG_REQUEST(slot, signal_workflow_execution);
    signal->namespace = HF_STR(HF_RIG_NS);
    signal->workflow_execution = &WF;
    signal->signal_name = HF_STR("s");
    signal->header = &HEADER;
    hf_rig_send(&rig, slot, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, signal);
    assert_int_equal(slot->call.status, HF_OK);
    const hf_pb_history_event *event = event_of("wf", HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
    assert_non_null(event->workflow_execution_signaled_event_attributes->header);
    hf_rig_do(&rig, "poll; complete");
    hf_rig_call *asked = hf_rig_slot(&rig, "q");
    hf_pb_workflow_query question = {.query_type = HF_STR("q"), .header = &HEADER};
    hf_pb_query_workflow_request *query = HF_RIG_REQUEST(asked, query_workflow);
    query->namespace = HF_STR(HF_RIG_NS);
    query->execution = &WF;
    query->query = &question;
    hf_rig_send(&rig, asked, HF_METHOD_QUERY_WORKFLOW, query);
    hf_rig_do(&rig, "poll");
    assert_non_null(hf_rig_task(&rig, "w")->query->header);
    hf_rig_do(&rig, "qanswer result=x");
}

/* What a client did wrong never looks like a failure of the server, which SDKs would repeat. */
static void internal_error_differentiation(void)
{
    static const char *const STEPS[] = {"signal nobody s", "start wf run=-1s",      "terminate nobody",
                                        "query nobody q",  "acomplete by=nobody/a", "describe nobody"};
    for (size_t i = 0; i < HF_COUNT_OF(STEPS); i++) {
        hf_rig_call *slot = hf_rig_step(&rig, STEPS[i]);
        assert_true(slot->call.status == HF_ERR_NOT_FOUND || slot->call.status == HF_ERR_INVALID);
    }
}

/* The details that come with a failure are those of the next attempt. */
static void activity_failure_include_heartbeat(void)
{
    hf_rig_do(&rig, "start wf; poll; complete activity a each=1h retries=5; apoll; afail details=here; time 1s; apoll");
    const hf_pb_poll_activity_task_queue_response *task = hf_rig_activity(&rig, "a");
    assert_int_equal(task->attempt, 2);
    assert_non_null(task->heartbeat_details);
    assert_int_equal(task->heartbeat_details->payloads.count, 1);
}

static void encoded_failure_attributes(void)
{
    hf_pb_failure failure = {.message = HF_STR("Encoded failure"), .encoded_attributes = &PAYLOAD};
    hf_rig_do(&rig, "start wf; poll; complete activity a each=1h retries=1; apoll");
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_respond_activity_task_failed_request *request = HF_RIG_REQUEST(slot, respond_activity_task_failed);
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_token = hf_rig_activity(&rig, "a")->task_token;
    request->failure = &failure;
    hf_rig_send(&rig, slot, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, request);
    const hf_pb_history_event *event = event_of("wf", HF_EVENT_TYPE_ACTIVITY_TASK_FAILED);
    const hf_pb_failure *kept = event->activity_task_failed_event_attributes->failure;
    assert_non_null(kept->encoded_attributes);
    assert_true(hf_str_equal(kept->encoded_attributes->data, PAYLOAD.data));
}

static void upsert_memo(void)
{
    hf_rig_do(&rig, "start wf memo=a:1; poll; complete remember b:2; describe wf");
    const hf_pb_describe_workflow_execution_response *response = hf_rig_slot(&rig, NULL)->call.response;
    assert_int_equal(response->workflow_execution_info->memo->fields.count, 2);
    (void)event_of("wf", HF_EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED);
}

static void eager_workflow_start(void)
{
    hf_rig_do(&rig, "start wf eager");
    const hf_pb_start_workflow_execution_response *response = hf_rig_slot(&rig, NULL)->call.response;
    assert_non_null(response->eager_workflow_task);
    assert_true(response->eager_workflow_task->task_token.len > 0);
}

/* The flags of a worker's replay come back with the history. */
static void sdk_metadata(void)
{
    static uint32_t FLAGS[] = {1, 3};
    hf_pb_workflow_task_completed_metadata metadata = {.core_used_flags = {FLAGS, 2}, .lang_used_flags = {FLAGS, 1}};
    hf_rig_do(&rig, "start wf; poll");
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_respond_workflow_task_completed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_completed);
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_token = hf_rig_task(&rig, "w")->task_token;
    request->sdk_metadata = &metadata;
    hf_rig_send(&rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, request);
    assert_int_equal(slot->call.status, HF_OK);
    const hf_pb_history_event *event = event_of("wf", HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED);
    const hf_pb_workflow_task_completed_metadata *kept = event->workflow_task_completed_event_attributes->sdk_metadata;
    assert_non_null(kept);
    assert_true(hf_pb_equal(&hf_pb_workflow_task_completed_metadata_type, kept, &metadata));
}

static void count_group_by_execution_status(void)
{
    hf_rig_do(&rig,
              "start a; start b; terminate b; count query=GROUP_BY_ExecutionStatus says=2+Running:1+Terminated:1");
}

/* ---- Of a namespace ----------------------------------------------------------------------------------------------------------- */

static void sync_update(void)
{
    hf_rig_do(&rig, "start wf; poll; complete; update wf u wait=completed; poll; complete accept u, respond u; is u "
                    "says=completed:fine");
}

static void async_update(void)
{
    hf_rig_do(&rig,
              "start wf; poll; complete; update wf u wait=accepted; poll; complete accept u; is u says=accepted;"
              "updpoll wf u as=v wait=completed; signal wf s; poll; complete respond u; is v says=completed:fine");
}

/* Polls of a worker that shuts down are answered at once, by its key. */
static void worker_poll_complete_on_shutdown(void)
{
    hf_rig_do(&rig, "poll as=x key=k => parked; apoll as=y key=k => parked; poll as=z key=other => parked;"
                    "shutdown s key=k queue=q; is x => empty; is y => empty; is z => parked");
}

/* ---- All of them -------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *flag;
    void (*check)(void);
} SYSTEM[] =
    {
        {"signal_and_query_header", signal_and_query_header},
        {"internal_error_differentiation", internal_error_differentiation},
        {"activity_failure_include_heartbeat", activity_failure_include_heartbeat},
        {"encoded_failure_attributes", encoded_failure_attributes},
        {"upsert_memo", upsert_memo},
        {"eager_workflow_start", eager_workflow_start},
        {"sdk_metadata", sdk_metadata},
        {"count_group_by_execution_status", count_group_by_execution_status},
},
  NAMESPACE[] = {
      {"eager_workflow_start", eager_workflow_start},
      {"sync_update", sync_update},
      {"async_update", async_update},
      {"worker_poll_complete_on_shutdown", worker_poll_complete_on_shutdown},
};

/* Runs the case of every flag that is set in `flags`. */
#define CHECK_FLAGS(type, flags, cases)                                                         \
    for (size_t i = 0; i < (type)->field_count; i++) {                                          \
        if (!*(const bool *)(const void *)((const char *)(flags) + (type)->fields[i].offset)) { \
            continue;                                                                           \
        }                                                                                       \
        bool has_case = false;                                                                  \
        for (size_t k = 0; k < HF_COUNT_OF(cases); k++) {                                       \
            if (strcmp((type)->names[i].name, (cases)[k].flag) == 0) {                          \
                print_message("%s\n", (cases)[k].flag);                                         \
                again(&(hf_core_options){0});                                                   \
                (cases)[k].check();                                                             \
                has_case = true;                                                                \
            }                                                                                   \
        }                                                                                       \
        if (!has_case) {                                                                        \
            fail_msg("%s is advertised, and no case says what it is", (type)->names[i].name);   \
        }                                                                                       \
    }

static void every_advertised_capability_is_there(void **state)
{
    (void)state;
    hf_rig_do(&rig, "system");
    const hf_pb_get_system_info_response *system = hf_rig_slot(&rig, NULL)->call.response;
    hf_pb_get_system_info_response_capabilities flags = *system->capabilities;
    CHECK_FLAGS(&hf_pb_get_system_info_response_capabilities_type, &flags, SYSTEM)
    hf_rig_do(&rig, "namespace " HF_RIG_NS);
    const hf_pb_describe_namespace_response *described = hf_rig_slot(&rig, NULL)->call.response;
    hf_pb_namespace_info_capabilities able = *described->namespace_info->capabilities;
    CHECK_FLAGS(&hf_pb_namespace_info_capabilities_type, &able, NAMESPACE)
    (void)events_of; /* its arena is the last one's */
}

/* The limits that are advertised are those at which a call is refused: workers check them themselves. */
static void advertised_limits_are_the_limits(void **state)
{
    (void)state;
    hf_rig_do(&rig, "namespace " HF_RIG_NS);
    const hf_pb_describe_namespace_response *described = hf_rig_slot(&rig, NULL)->call.response;
    int64_t limit = described->namespace_info->limits->blob_size_limit_error;
    char step[64];
    (void)snprintf(step, sizeof step, "start fits input=%lld", (long long)(limit - 100));
    hf_rig_do(&rig, step);
    (void)snprintf(step, sizeof step, "start more input=%lld", (long long)(limit + 1));
    assert_int_not_equal(hf_rig_step(&rig, step)->call.status, HF_OK);
}

/* ---- What is not there -------------------------------------------------------------------------------------------------------- */

static void commands_for_nexus_fail_the_task(void **state)
{
    (void)state;
    static const int32_t TYPES[] = {HF_COMMAND_TYPE_SCHEDULE_NEXUS_OPERATION,
                                    HF_COMMAND_TYPE_REQUEST_CANCEL_NEXUS_OPERATION};
    for (size_t i = 0; i < HF_COUNT_OF(TYPES); i++) {
        again(&(hf_core_options){0});
        hf_pb_command command = {.command_type = TYPES[i]};
        hf_rig_do(&rig, "start wf; poll");
        hf_rig_call *slot = hf_rig_slot(&rig, NULL);
        hf_pb_respond_workflow_task_completed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_completed);
        request->namespace = HF_STR(HF_RIG_NS);
        request->task_token = hf_rig_task(&rig, "w")->task_token;
        request->commands.items = &command;
        request->commands.count = 1;
        hf_rig_send(&rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, request);
        print_message("%s\n", slot->call.message);
        assert_int_equal(slot->call.status, HF_ERR_INVALID);
        assert_non_null(strstr(slot->call.message, "Nexus"));
        const hf_pb_history_event *event = event_of("wf", HF_EVENT_TYPE_WORKFLOW_TASK_FAILED);
        assert_int_equal(event->workflow_task_failed_event_attributes->cause,
                         HF_WORKFLOW_TASK_FAILED_CAUSE_FEATURE_DISABLED);
        assert_true(event->workflow_task_failed_event_attributes->failure->message.len > 0);
    }
}

static const struct CMUnitTest TESTS[] = {
    TEST(every_advertised_capability_is_there),
    TEST(advertised_limits_are_the_limits),
    TEST(commands_for_nexus_fail_the_task),
};

int main(int argc, char **argv)
{
    return hf_test_main("capability", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
