/* What a request asks for and this engine does not have is refused, and changes nothing. */
#include "fixture.h"

static const hf_pb_workflow_type TYPE = {.name = HF_STR_INIT("type")};
static const hf_pb_task_queue QUEUE = {.name = HF_STR_INIT(HF_RIG_QUEUE)};

static hf_pb_start_workflow_execution_request *start_of(hf_rig_call *slot)
{
    hf_pb_start_workflow_execution_request *request = HF_RIG_REQUEST(slot, start_workflow_execution);
    request->namespace = HF_STR(HF_RIG_NS);
    request->workflow_id = HF_STR("wf");
    request->workflow_type = (hf_pb_workflow_type *)&TYPE;
    request->task_queue = (hf_pb_task_queue *)&QUEUE;
    return request;
}

static void assert_refused(hf_method method, const void *request, hf_status status, const char *why)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_rig_send(&rig, slot, method, request);
    assert_true(slot->done);
    assert_int_equal(slot->call.status, status);
    assert_non_null(strstr(slot->call.message, why));
}

static void time_is_not_skipped(void **state)
{
    (void)state;
    static hf_pb_time_skipping_config config = {0};
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_start_workflow_execution_request *start = start_of(slot);
    start->time_skipping_config = &config; /* even one that says no: nobody must take it for a promise */
    assert_refused(HF_METHOD_START_WORKFLOW_EXECUTION, start, HF_ERR_UNSUPPORTED,
                   "Time-Skipping feature is not enabled");
    hf_pb_signal_with_start_workflow_execution_request *both =
        HF_RIG_REQUEST(slot, signal_with_start_workflow_execution);
    both->namespace = HF_STR(HF_RIG_NS);
    both->workflow_id = HF_STR("wf");
    both->workflow_type = (hf_pb_workflow_type *)&TYPE;
    both->task_queue = (hf_pb_task_queue *)&QUEUE;
    both->signal_name = HF_STR("s");
    both->time_skipping_config = &config;
    assert_refused(HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION, both, HF_ERR_UNSUPPORTED, "Time-Skipping");
    hf_rig_do(&rig, "signal wf s => not_found; start wf; signal wf s");
}

static void nobody_is_called_when_a_run_ends(void **state)
{
    (void)state;
    static hf_pb_callback_nexus nexus = {.url = HF_STR_INIT("https://example.org/hook")};
    static hf_pb_callback_internal internal = {0};
    hf_pb_callback callbacks[] = {
        {.variant_case = HF_PB_CALLBACK_NEXUS, .nexus = &nexus},
        {.variant_case = HF_PB_CALLBACK_INTERNAL, .internal = &internal},
        {0},
    };
    for (size_t i = 0; i < HF_COUNT_OF(callbacks); i++) {
        hf_pb_start_workflow_execution_request *start = start_of(hf_rig_slot(&rig, NULL));
        start->completion_callbacks.items = &callbacks[i];
        start->completion_callbacks.count = 1;
        assert_refused(HF_METHOD_START_WORKFLOW_EXECUTION, start, HF_ERR_INVALID,
                       i == 0 ? "does not match any configured callback address: https://example.org/hook"
                              : "unsupported callback variant");
    }
    hf_rig_do(&rig, "signal wf s => not_found");
}

/* Its tasks would be those of all versions. A worker that only says its build id is like any other. */
static void a_worker_of_a_version_gets_no_tasks(void **state)
{
    (void)state;
    hf_pb_worker_version_capabilities capabilities = {.build_id = HF_STR("b"), .use_versioning = true};
    hf_pb_worker_deployment_options deployment = {.deployment_name = HF_STR("d"),
                                                  .build_id = HF_STR("b"),
                                                  .worker_versioning_mode = HF_WORKER_VERSIONING_MODE_VERSIONED};
    hf_rig_do(&rig, "start wf; poll; complete activity a; signal wf s");
    for (int i = 0; i < 2; i++) {
        hf_rig_call *slot = hf_rig_slot(&rig, NULL);
        hf_pb_poll_workflow_task_queue_request *w = HF_RIG_REQUEST(slot, poll_workflow_task_queue);
        w->namespace = HF_STR(HF_RIG_NS);
        w->task_queue = (hf_pb_task_queue *)&QUEUE;
        w->worker_version_capabilities = i == 0 ? &capabilities : NULL;
        w->deployment_options = i == 1 ? &deployment : NULL;
        assert_refused(HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, w, HF_ERR_NOT_READY, "no worker versioning");
        hf_pb_poll_activity_task_queue_request *a = HF_RIG_REQUEST(slot, poll_activity_task_queue);
        a->namespace = HF_STR(HF_RIG_NS);
        a->task_queue = (hf_pb_task_queue *)&QUEUE;
        a->worker_version_capabilities = i == 0 ? &capabilities : NULL;
        a->deployment_options = i == 1 ? &deployment : NULL;
        assert_refused(HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, a, HF_ERR_NOT_READY, "no worker versioning");
    }
    capabilities.use_versioning = false;
    deployment.worker_versioning_mode = HF_WORKER_VERSIONING_MODE_UNVERSIONED;
    hf_rig_call *slot = hf_rig_slot(&rig, "w");
    hf_pb_poll_workflow_task_queue_request *w = HF_RIG_REQUEST(slot, poll_workflow_task_queue);
    w->namespace = HF_STR(HF_RIG_NS);
    w->task_queue = (hf_pb_task_queue *)&QUEUE;
    w->worker_version_capabilities = &capabilities;
    w->deployment_options = &deployment;
    hf_rig_send(&rig, slot, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, w);
    hf_rig_do(&rig, "complete done");
}

static const struct CMUnitTest TESTS[] = {
    TEST(time_is_not_skipped),
    TEST(nobody_is_called_when_a_run_ends),
    TEST(a_worker_of_a_version_gets_no_tasks),
};

int main(int argc, char **argv)
{
    return hf_test_main("absent", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
