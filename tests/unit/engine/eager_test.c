/* Tasks that go out with another answer, and workflow tasks that a worker keeps alive. */
#include "unit/engine/fixture.h"

/* In the memory of the slot. */
static hf_pb_history_event_list events_of(const hf_pb_poll_workflow_task_queue_response *task)
{
    hf_pb_history history;
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_pb_decode(&op, &hf_pb_history_type, task->history, &hf_rig_slot(&rig, "w")->request, &history),
                     HF_OK);
    return history.events;
}

static void an_activity_begins_with_the_worker_of_its_workflow(void **state)
{
    (void)state;
    hf_rig_do(&rig, "apoll as=p => parked; start wf; poll; complete activity a1 eager, activity a2 eager queue=far");
    assert_int_equal(hf_rig_activity(&rig, "a")->attempt, 1);
    hf_rig_do(&rig, "is p => parked; crash; acomplete"); /* it was durable */
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 ActivityTaskScheduled a1\n6 ActivityTaskScheduled a2\n"
                              "7 ActivityTaskStarted scheduled=5 attempt=1\n"
                              "8 ActivityTaskCompleted scheduled=5 started=7\n9 WorkflowTaskScheduled attempt=1\n");
    hf_rig_do(&rig, "apoll queue=far as=q; acomplete of=q");
}

static void an_eager_activity_of_this_process_is_lost_with_it(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll in_process; complete in_process activity a1 eager; crash; acomplete => not_found; "
                    "time 1s; apoll");
    assert_int_equal(hf_rig_activity(&rig, "a")->attempt, 2);
}

static void nothing_goes_out_with_a_completion_that_is_refused_or_closes(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete return activity a1 eager, untimer t => invalid; poll;"
                    "complete return activity a1 eager, done; apoll => parked; poll => parked");
}

static void the_next_task_comes_with_the_answer(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "poll as=p => parked; start wf; is p; poll as=q => parked; signal wf s; complete of=p return marker m");
    const hf_pb_poll_workflow_task_queue_response *task = hf_rig_task(&rig, "w");
    assert_int_equal(task->started_event_id, 8);
    assert_int_equal(task->previous_started_event_id, 3);
    assert_int_equal(events_of(task).items[0].event_id, 4);
    hf_rig_do(&rig, "is q => parked; crash; complete return; complete => not_found");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 MarkerRecorded m\n6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                              "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n");
}

static void the_first_task_comes_with_the_start(void **state)
{
    (void)state;
    hf_rig_do(&rig, "poll as=p => parked; start wf eager request=r; is p => parked");
    const hf_pb_start_workflow_execution_response *started = hf_rig_slot(&rig, NULL)->call.response;
    assert_non_null(started->eager_workflow_task);
    hf_rig_do(&rig, "start wf eager request=r"); /* only once */
    started = hf_rig_slot(&rig, NULL)->call.response;
    assert_null(started->eager_workflow_task);
    hf_rig_do(&rig, "crash; complete done");
}

static void a_task_is_kept_alive_for_so_long(void **state)
{
    (void)state;
    again(&(hf_core_options){.limits = {.keep_alive = INT64_C(20000000000)}});
    hf_rig_do(&rig,
              "start wf; poll; time 8s; complete force return; time 8s; complete force return; crash; time 8s;"
              "complete force return => not_found; poll; complete force return; time 9s; complete force marker m; poll;"
              "time 9s; complete force return; time 9s; complete force return; complete done");
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_WFT_HEARTBEAT_OVER), 1);
    hf_buf text;
    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
    hf_rig_text(&rig, "wf", &text);
    assert_non_null(strstr(hf_buf_text(&text), "WorkflowTaskTimedOut scheduled=8 started=9 StartToClose\n"
                                               "11 WorkflowTaskScheduled attempt=2"));
    hf_buf_deinit(&text);
}

static const hf_pb_describe_workflow_execution_response *describe(void)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_describe_workflow_execution_request *request = HF_RIG_REQUEST(slot, describe_workflow_execution);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = HF_STR("wf");
    hf_rig_send(&rig, slot, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, request);
    assert_int_equal(slot->call.status, HF_OK);
    return slot->call.response;
}

static void a_description_counts_transitions_and_tells_of_the_last(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll");
    int64_t start = hf_pb_timestamp_time(describe()->workflow_execution_info->start_time).ns;
    assert_int_equal(describe()->workflow_execution_info->state_transition_count, 4);
    hf_rig_do(&rig, "time 5s; heartbeat details=half; time 5s; crash");
    assert_int_equal(describe()->workflow_execution_info->state_transition_count, 5);
    int64_t idle = hf_pb_timestamp_time(describe()->workflow_extended_info->holdfast_idle_since).ns;
    assert_int_equal(idle - start, INT64_C(5000000000));
}

static void a_sticky_task_names_its_queue(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete sticky=s; signal wf x; poll");
    const hf_pb_poll_workflow_task_queue_response *task = hf_rig_task(&rig, "w");
    hf_pb_history_event_list events = events_of(task);
    assert_int_equal(events.count, 7);
    const hf_pb_task_queue *queue = events.items[5].workflow_task_scheduled_event_attributes->task_queue;
    assert_true(hf_str_equal(queue->name, HF_STR("s")) && hf_str_equal(queue->normal_name, HF_STR(HF_RIG_QUEUE)));
    assert_int_equal(queue->kind, HF_TASK_QUEUE_KIND_STICKY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

static const struct CMUnitTest TESTS[] = {
    TEST(an_activity_begins_with_the_worker_of_its_workflow),
    TEST(an_eager_activity_of_this_process_is_lost_with_it),
    TEST(nothing_goes_out_with_a_completion_that_is_refused_or_closes),
    TEST(the_next_task_comes_with_the_answer),
    TEST(the_first_task_comes_with_the_start),
    TEST(a_task_is_kept_alive_for_so_long),
    TEST(a_description_counts_transitions_and_tells_of_the_last),
    TEST(a_sticky_task_names_its_queue),
};

int main(int argc, char **argv)
{
    return hf_test_main("eager", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
