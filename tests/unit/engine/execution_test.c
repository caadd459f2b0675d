/* Executions: ids and their policies, timeouts, the end from outside. */
#include "fixture.h"

#include <stdio.h>

static hf_str run_id_of_start(void)
{
    const hf_pb_start_workflow_execution_response *response = hf_rig_slot(&rig, NULL)->call.response;
    return response->run_id;
}

/* ---- Id policies ---------------------------------------------------------------------------------------------------- */

static void an_id_in_use_is_refused_and_its_run_is_named(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    char run_id[64];
    (void)snprintf(run_id, sizeof run_id, "%.*s", HF_STR_ARGS(run_id_of_start()));
    hf_rig_do(&rig, "start wf => exists");
    hf_str existing = hf_rig_slot(&rig, NULL)->call.existing_run_id;
    assert_true(hf_str_equal(existing, hf_str_of(run_id)));
    hf_rig_do(&rig, "start wf conflict=1 => exists");
    hf_rig_history(&rig, "wf", START);
}

static void an_id_in_use_may_be_joined(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf conflict=2");
    char run_id[64];
    (void)snprintf(run_id, sizeof run_id, "%.*s", HF_STR_ARGS(run_id_of_start()));
    assert_true(((hf_pb_start_workflow_execution_response *)hf_rig_slot(&rig, NULL)->call.response)->started);
    hf_rig_do(&rig, "start wf conflict=2");
    assert_true(hf_str_equal(run_id_of_start(), hf_str_of(run_id)));
    assert_false(((hf_pb_start_workflow_execution_response *)hf_rig_slot(&rig, NULL)->call.response)->started);
}

static void an_id_in_use_may_be_taken_over(void **state)
{
    (void)state;
    static const char *const HOW[] = {"conflict=3", "reuse=4"};
    for (size_t i = 0; i < HF_COUNT_OF(HOW); i++) {
        char text[200];
        hf_rig_do(&rig, "start wf conflict=3; poll; signal wf s");
        (void)snprintf(text, sizeof text, "start wf %s; complete => not_found; poll", HOW[i]);
        hf_rig_do(&rig, text);
        hf_rig_history(&rig, "wf", START "3 WorkflowTaskStarted scheduled=2\n");
    }
}

/* "Never a second run of this id" and "in place of the one that runs" are not both to be had. */
static void policies_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf reuse=3 conflict=3 => invalid; start wf");
    hf_rig_do(&rig, "start wf reuse=3 conflict=3 => invalid; start wf reuse=4 conflict=1 => invalid;"
                    "start wf reuse=4 conflict=2 => invalid; start wf reuse=4 conflict=3 => invalid");
    hf_rig_history(&rig, "wf", START);
    hf_rig_do(&rig, "start wf reuse=3 conflict=2; start wf reuse=2 conflict=3");
}

static void the_run_that_was_taken_over_is_still_there(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; signal wf s");
    char text[200];
    (void)snprintf(text, sizeof text, "signal wf again run_id=%.*s",
                   HF_STR_ARGS(hf_rig_task(&rig, "w")->workflow_execution->run_id));
    char late[240];
    (void)snprintf(late, sizeof late, "%s => not_found", text);
    hf_rig_do(&rig, text);
    hf_rig_do(&rig, "start wf conflict=3");
    hf_rig_do(&rig, late); /* found, but closed */
    assert_non_null(strstr(hf_rig_slot(&rig, NULL)->call.message, "completed"));
    hf_rig_do(&rig, "crash");
    hf_rig_do(&rig, late);
    assert_non_null(strstr(hf_rig_slot(&rig, NULL)->call.message, "completed"));
    hf_rig_do(&rig, "signal wf s run_id=no-such => invalid; signal nobody s => not_found; cancel nobody => not_found");
}

static void a_closed_run_lets_its_id_be_used_as_the_policy_says(void **state)
{
    (void)state;
    static const struct {
        const char *how; /* it ended */
        int reuse;
        bool allowed;
    } CASES[] = {
        {"poll; complete done", 0, true},
        {"poll; complete done", 1, true},
        {"poll; complete done", 2, false},
        {"poll; complete done", 3, false},
        {"poll; complete failed", 2, true},
        {"poll; complete failed", 3, false},
        {"cancel wf; poll; complete canceled", 2, true},
        {"terminate wf", 2, true},
        {"terminate wf", 3, false},
        {"time 1m", 2, true},
    };
    for (int crash = 0; crash < 2; crash++) {
        for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
            char text[200];
            print_message("%s, policy %d\n", CASES[i].how, CASES[i].reuse);
            (void)snprintf(text, sizeof text, "start wf run=1m conflict=3; %s%s; start wf reuse=%d => %s", CASES[i].how,
                           crash ? "; crash" : "", CASES[i].reuse, CASES[i].allowed ? "ok" : "exists");
            hf_rig_do(&rig, text);
        }
    }
}

static void ids_of_other_namespaces_are_other_ids(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; start wf ns=other; signal wf s ns=other; poll ns=other as=x; complete of=x => not_found;"
                    "complete of=x ns=other marker m");
    hf_rig_history(&rig, "wf", START);
}

static void an_id_that_nobody_has_is_asked_for_once_and_forgotten(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = 1}); /* no room to know which ids there are: the store is asked */
    rig.hold = true;
    hf_rig_do(&rig, "signal nobody s => again");
    rig.hold = false;
    assert_int_equal(rig.core->names.count, 1);
    assert_true(hf_rig_settle(&rig));
    assert_true(hf_rig_slot(&rig, NULL)->done);
    assert_int_equal(hf_rig_slot(&rig, NULL)->call.status, HF_ERR_NOT_FOUND);
    assert_int_equal(rig.core->names.count, 0);
    hf_rig_do(&rig, "signal nobody s => not_found; start nobody; signal nobody s");
}

/* ---- Request ids ---------------------------------------------------------------------------------------------------- */

static void a_repeated_start_is_known_also_after_the_end_and_a_crash(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf request=r1");
    char run_id[64];
    (void)snprintf(run_id, sizeof run_id, "%.*s", HF_STR_ARGS(run_id_of_start()));
    static const char *const STEPS[] = {"crash", "poll; complete done", "crash"};
    for (size_t i = 0; i < HF_COUNT_OF(STEPS); i++) {
        hf_rig_do(&rig, STEPS[i]);
        hf_rig_do(&rig, "start wf request=r1");
        assert_true(hf_str_equal(run_id_of_start(), hf_str_of(run_id)));
    }
    hf_rig_do(&rig, "start wf request=r2");
    assert_false(hf_str_equal(run_id_of_start(), hf_str_of(run_id)));
}

GOLDEN(a_repeated_signal_is_known_after_a_crash,
       "start wf; poll; signal wf s request=r1; crash; signal wf s request=r1; complete; crash; signal wf s request=r1",
       FIRST_TASK "5 WorkflowExecutionSignaled s\n6 WorkflowTaskScheduled attempt=1\n")

/* Its sender did not hear the first answer; what the run did with it is no reason to say that it never came. */
static void a_repeated_signal_is_known_also_after_the_end(void **state)
{
    (void)state;
    static const char *const ENDS[] = {"poll; complete done", "terminate wf", "time 1m", "poll; terminate wf"};
    for (size_t i = 0; i < HF_COUNT_OF(ENDS); i++) {
        char text[200];
        print_message("%s\n", ENDS[i]);
        (void)snprintf(text, sizeof text, "start wf run=1m; signal wf s request=r1; %s; signal wf s request=r1;",
                       ENDS[i]);
        hf_rig_do(&rig, text);
        hf_rig_do(&rig, "signal wf s request=r2 => not_found; signal wf s => not_found");
        hf_rig_do(&rig, "crash; signal wf s request=r1; signal wf s request=r2 => not_found");
    }
    hf_rig_do(&rig, "start wf; signal wf s request=r1"); /* another run, another signal */
    hf_rig_history(&rig, "wf", START "3 WorkflowExecutionSignaled s\n");
}

/* ---- Timeouts ------------------------------------------------------------------------------------------------------- */

GOLDEN(the_nearer_of_run_and_execution_timeout_counts, "start wf run=1h exec=30s; time 29999ms; crash; time 1ms",
       START "3 WorkflowExecutionTimedOut Timeout\n")

/* No retry could follow: the time of all runs together is over, and not only of this one. */
GOLDEN(the_end_of_the_execution_timeout_says_so, "start wf exec=30s; time 1h",
       START "3 WorkflowExecutionTimedOut Timeout\n")

GOLDEN(the_end_of_the_run_timeout_says_nothing_of_the_execution, "start wf run=29s exec=30s; time 29s",
       START "3 WorkflowExecutionTimedOut\n")

static void a_run_has_no_more_time_than_its_execution_and_its_task_no_more_than_the_run(void **state)
{
    (void)state;
    static const struct {
        const char *start;
        int run, task; /* seconds */
    } CASES[] = {
        {"start wf", 0, 10},
        {"start wf exec=30s", 30, 10},
        {"start wf exec=30s run=1h", 30, 10},
        {"start wf exec=30s run=20s", 20, 10},
        {"start wf exec=8s", 8, 8},
        {"start wf run=3s task=4s", 3, 3},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        print_message("%s\n", CASES[i].start);
        hf_arena arena;
        hf_arena_init(&arena, hf_rig_heap);
        hf_op op;
        hf_op_init(&op);
        hf_pb_history history;
        hf_rig_do(&rig, CASES[i].start);
        hf_str bytes = hf_rig_history_bytes(&rig, "wf");
        assert_int_equal(hf_pb_decode(&op, &hf_pb_history_type, bytes, &arena, &history), HF_OK);
        const hf_pb_workflow_execution_started_event_attributes *started =
            history.events.items[0].workflow_execution_started_event_attributes;
        assert_int_equal(hf_pb_duration_span(started->workflow_run_timeout).ns, hf_seconds(CASES[i].run).ns);
        assert_int_equal(hf_pb_duration_span(started->workflow_task_timeout).ns, hf_seconds(CASES[i].task).ns);
        hf_rig_do(&rig, "terminate wf");
        hf_arena_deinit(&arena);
    }
}

/* As with a run timeout: an activity has no more time than its workflow. */
static void an_activity_has_no_more_time_than_the_execution(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf exec=30s; poll; complete activity a1 each=1h; apoll");
    const hf_pb_poll_activity_task_queue_response *task = hf_rig_activity(&rig, "a");
    assert_int_equal(hf_pb_duration_span(task->schedule_to_close_timeout).ns, hf_seconds(30).ns);
    assert_int_equal(hf_pb_duration_span(task->start_to_close_timeout).ns, hf_seconds(30).ns);
}

GOLDEN(a_run_timeout_ends_a_started_task_and_keeps_what_was_buffered, "start wf run=10s; poll; signal wf s; time 10s",
       START "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskFailed scheduled=2 started=3 ForceCloseCommand\n"
             "5 WorkflowExecutionSignaled s\n6 WorkflowExecutionTimedOut\n")

GOLDEN(
    nothing_follows_the_end,
    "start wf; poll as=x; complete of=x activity a1, timer t 5s; apoll; signal wf s; poll as=x; terminate wf; time 1h;"
    "complete of=x => not_found; fail of=x => not_found; acomplete => not_found; signal wf s => not_found;"
    "terminate wf => not_found; cancel wf; unstick wf; poll => parked; apoll as=b => parked",
    FIRST_ACTIVITY "6 TimerStarted t after=5s\n7 WorkflowExecutionSignaled s\n8 WorkflowTaskScheduled attempt=1\n"
                   "9 WorkflowTaskStarted scheduled=8\n"
                   "10 WorkflowTaskFailed scheduled=8 started=9 ForceCloseCommand\n"
                   "11 WorkflowExecutionTerminated 'enough'\n")

static void requests_without_what_they_need_are_refused(void **state)
{
    (void)state;
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    for (int method = 0; method < HF_METHOD_COUNT; method++) { /* empty requests of every kind */
        if (method == HF_METHOD_GET_SYSTEM_INFO || method == HF_METHOD_LIST_NAMESPACES ||
            method == HF_METHOD_GET_SEARCH_ATTRIBUTES || method == HF_METHOD_GET_CLUSTER_INFO ||
            hf_method_is_of_clock((hf_method)method)) {
            continue; /* which need nothing, or are not for a core */
        }
        char *request = hf_rig_request(slot, 4096);
        print_message("%s\n", hf_method_info_of((hf_method)method)->name);
        hf_rig_send(&rig, slot, (hf_method)method, request);
        assert_true(slot->done);
        assert_int_equal(slot->call.status, HF_ERR_INVALID);
        assert_true(slot->call.message[0] != '\0');
    }
    hf_rig_do(&rig, "start wf run=-1s => invalid; start wf task=-1s => invalid; start wf exec=-5s => invalid");
}

static const struct CMUnitTest TESTS[] = {
    TEST(an_id_in_use_is_refused_and_its_run_is_named),
    TEST(an_id_in_use_may_be_joined),
    TEST(an_id_in_use_may_be_taken_over),
    TEST(policies_that_contradict_each_other_are_refused),
    TEST(the_run_that_was_taken_over_is_still_there),
    TEST(a_closed_run_lets_its_id_be_used_as_the_policy_says),
    TEST(ids_of_other_namespaces_are_other_ids),
    TEST(an_id_that_nobody_has_is_asked_for_once_and_forgotten),
    TEST(a_repeated_start_is_known_also_after_the_end_and_a_crash),
    TEST(a_repeated_signal_is_known_after_a_crash),
    TEST(a_repeated_signal_is_known_also_after_the_end),
    TEST(the_nearer_of_run_and_execution_timeout_counts),
    TEST(the_end_of_the_execution_timeout_says_so),
    TEST(the_end_of_the_run_timeout_says_nothing_of_the_execution),
    TEST(a_run_has_no_more_time_than_its_execution_and_its_task_no_more_than_the_run),
    TEST(an_activity_has_no_more_time_than_the_execution),
    TEST(a_run_timeout_ends_a_started_task_and_keeps_what_was_buffered),
    TEST(nothing_follows_the_end),
    TEST(requests_without_what_they_need_are_refused),
};

int main(int argc, char **argv)
{
    return hf_test_main("execution", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
