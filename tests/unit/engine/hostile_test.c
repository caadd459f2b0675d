/* Answers that no honest worker gives, and calls that no honest client makes: they fail, and change nothing else. */
#include "fixture.h"

#include <stdio.h>

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

/* Every zone of Europe is an hour ahead of UTC; other zones do not exist. */
static hf_str rules_of_europe(const char *name)
{
    static const char TZIF[] = "TZif\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" /* version 1 */
                               "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"     /* no marks, leap seconds and transitions */
                               "\0\0\0\1\0\0\0\4"                     /* one kind of time, four letters */
                               "\0\0\x0e\x10\0\0"                     /* 3,600 s */
                               "CET";
    return strncmp(name, "Europe/", 7) == 0 ? hf_str_of_len(TZIF, sizeof TZIF) : HF_STR("");
}

/* Zones that do not exist must not take the place of those that do: neither for new starts nor for chains that go on. */
static void zones_that_do_not_exist_push_out_none_that_do(void **state)
{
    (void)state;
    rig.zone = rules_of_europe;
    hf_rig_do(&rig, "start berlin cron=TZ=Europe/Berlin_0_12_*_*_*; crash");
    for (int i = 0; i < 1500; i++) {
        char step[100];
        (void)snprintf(step, sizeof step, "start wf cron=TZ=No/Such%d_0_12_*_*_* => invalid", i);
        hf_rig_do(&rig, step);
    }
    assert_true(rig.core->zone_count <= 1000);
    hf_rig_do(&rig, "start wf cron=TZ=Europe/London_0_12_*_*_*; time 30h; poll as=a; complete of=a done;"
                    "poll as=b; complete of=b done; time 30h; poll as=a; poll as=b");
}

static void send_links(hf_pb_link_list links, hf_status expected)
{
    static const hf_method METHODS[] = {HF_METHOD_SIGNAL_WORKFLOW_EXECUTION,
                                        HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION,
                                        HF_METHOD_TERMINATE_WORKFLOW_EXECUTION};
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("wf")};
    hf_pb_signal_workflow_execution_request signal = {
        .namespace = HF_STR(HF_RIG_NS), .workflow_execution = &execution, .signal_name = HF_STR("s"), .links = links};
    hf_pb_request_cancel_workflow_execution_request cancel = {
        .namespace = HF_STR(HF_RIG_NS), .workflow_execution = &execution, .links = links};
    hf_pb_terminate_workflow_execution_request terminate = {
        .namespace = HF_STR(HF_RIG_NS), .workflow_execution = &execution, .links = links};
    const void *requests[] = {&signal, &cancel, &terminate};
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    for (size_t i = 0; i < HF_COUNT_OF(METHODS); i++) {
        (void)HF_RIG_REQUEST(slot, signal_workflow_execution);
        hf_rig_send(&rig, slot, METHODS[i], requests[i]);
        assert_true(slot->done);
        assert_int_equal(slot->call.status, expected);
    }
}

static void links_are_few_short_and_complete(void **state)
{
    (void)state;
    static char bytes[5000];
    memset(bytes, 'x', sizeof bytes);
    hf_pb_link_batch_job job = {.job_id = HF_STR("j")};
    hf_pb_link_batch_job long_job = {.job_id = hf_str_of_len(bytes, sizeof bytes)};
    hf_pb_link_workflow_event event = {.namespace = HF_STR("n"), .workflow_id = HF_STR("w")};
    hf_pb_link links[11];
    for (size_t i = 0; i < HF_COUNT_OF(links); i++) {
        links[i] = (hf_pb_link){.variant_case = HF_PB_LINK_BATCH_JOB, .batch_job = &job};
    }
    hf_rig_do(&rig, "start wf");
    send_links((hf_pb_link_list){links, 11}, HF_ERR_INVALID);
    links[3].batch_job = &long_job;
    send_links((hf_pb_link_list){links, 10}, HF_ERR_INVALID);
    links[3] = (hf_pb_link){.variant_case = HF_PB_LINK_WORKFLOW_EVENT, .workflow_event = &event};
    send_links((hf_pb_link_list){links, 10}, HF_ERR_INVALID); /* it names no run */
    links[3] = (hf_pb_link){0};
    send_links((hf_pb_link_list){links, 10}, HF_ERR_INVALID);
    hf_rig_history(&rig, "wf", START); /* nothing of it is kept */
    event.run_id = HF_STR("r");
    links[3] = (hf_pb_link){.variant_case = HF_PB_LINK_WORKFLOW_EVENT, .workflow_event = &event};
    send_links((hf_pb_link_list){links, 10}, HF_OK);
}

static void user_metadata_is_bounded(void **state)
{
    (void)state;
    enum { LEN = 3 << 20 };
    static char bytes[LEN];
    hf_pb_payload payload = {.data = hf_str_of_len(bytes, LEN)};
    hf_pb_user_metadata metadata = {.summary = &payload};
    hf_pb_workflow_type type = {.name = HF_STR("type")};
    hf_pb_task_queue queue = {.name = HF_STR(HF_RIG_QUEUE)};
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_start_workflow_execution_request *start = HF_RIG_REQUEST(slot, start_workflow_execution);
    start->namespace = HF_STR(HF_RIG_NS);
    start->workflow_id = HF_STR("wf");
    start->workflow_type = &type;
    start->task_queue = &queue;
    start->user_metadata = &metadata;
    hf_rig_send(&rig, slot, HF_METHOD_START_WORKFLOW_EXECUTION, start);
    assert_true(slot->done && slot->call.status != HF_OK);
    hf_rig_do(&rig, "signal wf s => not_found; start wf; poll");
    hf_pb_start_timer_command_attributes timer = {.timer_id = HF_STR("t")};
    hf_pb_command command = {.command_type = HF_COMMAND_TYPE_START_TIMER,
                             .attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES,
                             .start_timer_command_attributes = &timer,
                             .user_metadata = &metadata};
    hf_pb_respond_workflow_task_completed_request *request = HF_RIG_REQUEST(slot, respond_workflow_task_completed);
    request->namespace = HF_STR(HF_RIG_NS);
    request->task_token = hf_rig_task(&rig, "w")->task_token;
    request->commands.items = &command;
    request->commands.count = 1;
    hf_rig_send(&rig, slot, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, request);
    assert_true(slot->done);
    assert_int_equal(slot->call.status, HF_ERR_INVALID);
    assert_int_equal(slot->call.task_failed_cause, HF_WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE);
    hf_rig_do(&rig, "poll; complete done");
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_sticky_name_that_is_too_long_is_not_sticky),
    TEST(attributes_of_another_command_fail_the_task),
    TEST(zones_that_do_not_exist_push_out_none_that_do),
    TEST(links_are_few_short_and_complete),
    TEST(user_metadata_is_bounded),
};

int main(int argc, char **argv)
{
    return hf_test_main("engine_hostile", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
