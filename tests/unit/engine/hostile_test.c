/* Answers that no honest worker gives: they fail the task and nothing else. */
#include "fixture.h"

static void a_sticky_name_that_is_too_long_is_not_sticky(void **state)
{
    (void)state;
    char name[1101];
    memset(name, 's', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    hf_rig_do(&rig, "start wf; poll");
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_respond_workflow_task_completed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_completed);
    hf_pb_task_queue queue = {.name = hf_str_of(name)};
    hf_pb_sticky_execution_attributes sticky = {.worker_task_queue = &queue};
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_token = hf_rig_task(&rig, "w")->task_token;
    request->sticky_attributes = &sticky;
    hf_rig_send(&rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, request);
    assert_true(slot->done);
    assert_int_equal(slot->call.status, HF_OK);
    hf_rig_do(&rig, "signal wf s; poll; complete done");
}

/* The attributes of a command are a union: each kind with each other's attributes, at random. */
static void attributes_of_another_command_fail_the_task(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    for (int32_t type = 1; type <= 17; type++) {
        hf_rig_do(&rig, "time 1h; poll"); /* a task that fails again has to time out first */
        hf_pb_respond_workflow_task_completed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_completed);
        hf_pb_start_timer_command_attributes timer = {.timer_id = HF_STR("t")};
        hf_pb_request_cancel_activity_task_command_attributes cancel = {.scheduled_event_id = 1};
        bool is_timer = type == HF_COMMAND_TYPE_START_TIMER;
        hf_pb_command command = {.command_type = type};
        if (is_timer) {
            command.attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
            command.request_cancel_activity_task_command_attributes = &cancel;
        } else {
            command.attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES;
            command.start_timer_command_attributes = &timer;
        }
        request->namespace = HF_STR(HF_RIG_NS);
        request->task_token = hf_rig_task(&rig, "w")->task_token;
        request->commands.items = &command;
        request->commands.count = 1;
        hf_rig_send(&rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, request);
        assert_true(slot->done);
        assert_int_equal(slot->call.status, HF_ERR_INVALID);
    }
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_sticky_name_that_is_too_long_is_not_sticky),
    TEST(attributes_of_another_command_fail_the_task),
};

int main(int argc, char **argv)
{
    return hf_test_main("engine_hostile", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
