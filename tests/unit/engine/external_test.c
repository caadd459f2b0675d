/* Messages from one run to another: the inbox. */
#include "fixture.h"

#include <stdio.h>

#define SIGNALED_OTHER                             \
    FIRST_TASK                                     \
    "5 SignalExternalWorkflowExecutionInitiated\n" \
    "6 ExternalWorkflowExecutionSignaled\n"        \
    "7 WorkflowTaskScheduled attempt=1\n"

static void a_signal_to_another_run_arrives_and_is_reported_back(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start other queue=o; start wf; poll; complete xsignal other hello");
    hf_rig_history(&rig, "wf", SIGNALED_OTHER);
    hf_rig_history(&rig, "other", START "3 WorkflowExecutionSignaled hello\n");
}

static void a_signal_to_nobody_fails(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete xsignal nobody hello");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n"
                              "6 SignalExternalWorkflowExecutionFailed ExternalWorkflowExecutionNotFound\n"
                              "7 WorkflowTaskScheduled attempt=1\n");
}

static void a_signal_to_a_closed_run_fails(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start other queue=o; terminate other; start wf; poll; complete xsignal other hello");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n"
                              "6 SignalExternalWorkflowExecutionFailed ExternalWorkflowExecutionNotFound\n"
                              "7 WorkflowTaskScheduled attempt=1\n");
}

static void a_cancel_request_to_another_run_arrives(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start other queue=o; start wf; poll; complete xcancel other");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 RequestCancelExternalWorkflowExecutionInitiated\n"
                              "6 ExternalWorkflowExecutionCancelRequested\n7 WorkflowTaskScheduled attempt=1\n");
    hf_rig_history(&rig, "other", START "3 WorkflowExecutionCancelRequested\n");
}

/* Who gets a message can tell which run sent it. */
static void a_message_names_its_sender(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start other queue=o; start wf; poll; complete xsignal other hello, xcancel other; signal other s");
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_op op;
    hf_op_init(&op);
    hf_pb_history history;
    hf_str bytes = hf_arena_copy(&arena, hf_rig_history_bytes(&rig, "other"));
    assert_int_equal(hf_pb_decode(&op, &hf_pb_history_type, bytes, &arena, &history), HF_OK);
    assert_int_equal(history.events.count, 5);
    const hf_pb_workflow_execution *of_signal =
        history.events.items[2].workflow_execution_signaled_event_attributes->external_workflow_execution;
    const hf_pb_workflow_execution_cancel_requested_event_attributes *cancel =
        history.events.items[3].workflow_execution_cancel_requested_event_attributes;
    hf_str run_id = hf_rig_task(&rig, "w")->workflow_execution->run_id;
    assert_true(of_signal != NULL && hf_str_equal(of_signal->workflow_id, HF_STR("wf")));
    assert_true(hf_str_equal(of_signal->run_id, run_id));
    assert_true(cancel->external_workflow_execution != NULL);
    assert_true(hf_str_equal(cancel->external_workflow_execution->run_id, run_id));
    assert_int_equal(cancel->external_initiated_event_id, 6);
    assert_null(history.events.items[4].workflow_execution_signaled_event_attributes->external_workflow_execution);
    hf_arena_deinit(&arena);
}

/* Nobody has children so far: the workflow of that id is another's. */
static void a_message_for_a_child_does_not_go_to_others(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start other queue=o; start wf; poll; complete xsignal other hello child, xcancel other child");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n"
                              "6 RequestCancelExternalWorkflowExecutionInitiated\n"
                              "7 SignalExternalWorkflowExecutionFailed ExternalWorkflowExecutionNotFound\n"
                              "8 WorkflowTaskScheduled attempt=1\n"
                              "9 RequestCancelExternalWorkflowExecutionFailed ExternalWorkflowExecutionNotFound\n");
    hf_rig_history(&rig, "other", START);
}

static void a_cancel_request_to_nobody_fails(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete xcancel nobody");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 RequestCancelExternalWorkflowExecutionInitiated\n"
                              "6 RequestCancelExternalWorkflowExecutionFailed ExternalWorkflowExecutionNotFound\n"
                              "7 WorkflowTaskScheduled attempt=1\n");
}

static void a_run_cannot_send_itself_a_message(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete xsignal wf s, xcancel wf; poll; complete done");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n"
                              "6 RequestCancelExternalWorkflowExecutionInitiated\n"
                              "7 SignalExternalWorkflowExecutionFailed ExternalWorkflowExecutionNotFound\n"
                              "8 WorkflowTaskScheduled attempt=1\n"
                              "9 RequestCancelExternalWorkflowExecutionFailed ExternalWorkflowExecutionNotFound\n"
                              "10 WorkflowTaskStarted scheduled=8\n11 WorkflowTaskCompleted scheduled=8 started=10\n"
                              "12 WorkflowExecutionCompleted\n");
}

static void a_run_that_closes_sends_nothing_more(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start other queue=o; start wf; poll; complete xsignal other bye, xcancel other, done");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n"
                              "6 RequestCancelExternalWorkflowExecutionInitiated\n7 WorkflowExecutionCompleted\n");
    hf_rig_do(&rig, "crash; time 1s");
    hf_rig_history(&rig, "other", START);
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_MESSAGE_STOPPED), 2);
}

/* What the core has asked for so far comes back; what that makes it ask stays unanswered. */
static void answer_reads(void)
{
    hf_store_request *reads[HF_RIG_READS];
    size_t count = rig.read_count;
    memcpy(reads, rig.reads, count * sizeof *reads);
    rig.read_count = 0;
    for (size_t i = 0; i < count; i++) {
        hf_store_execute(rig.store, reads[i]);
        hf_core_done(rig.core, reads[i], rig.now);
    }
}

static void commit(void)
{
    hf_store_request *request = hf_core_seal(rig.core, rig.now);
    assert_non_null(request);
    hf_store_execute(rig.store, request);
    assert_int_equal(request->status, HF_OK);
    hf_core_done(rig.core, request, rig.now);
}

/* The target is on disk when the message is sent; the sender's commit is made; the process dies before the target is read. */
static void crash_with_a_message_under_way(const char *commands)
{
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = 1});
    hf_rig_do(&rig, "start other queue=o; start wf; poll; time 1s");
    rig.hold = true;
    hf_rig_do(&rig, commands);
    answer_reads(); /* the sender itself */
    commit();
    assert_true(rig.read_count > 0); /* the target */
    rig.hold = false;
    hf_rig_do(&rig, "crash; time 1s; crash; time 1s");
    assert_true(rig.probes[HF_PROBE_MESSAGE_AGAIN] > 0);
    hf_rig_history(&rig, "other", START "3 WorkflowExecutionSignaled bye\n");
}

static void a_crash_delays_a_message_and_does_not_lose_or_double_it(void **state)
{
    (void)state;
    crash_with_a_message_under_way("complete xsignal other bye => again");
    hf_rig_history(&rig, "wf", SIGNALED_OTHER);
}

/* The run `to` has a workflow task, and as many events wait for that as may; `wf` has one, too. */
static void fill_the_buffer_of_to(void)
{
    again(&(hf_core_options){.limits = {.buffered_count = 2}});
    hf_rig_do(&rig, "start to queue=t; poll queue=t as=t; signal to a; signal to b;"
                    "start wf; poll");
}

#define TO_STARTED START "3 WorkflowTaskStarted scheduled=2\n"

static void a_signal_to_a_run_whose_buffer_is_full_ends_its_task(void **state)
{
    (void)state;
    fill_the_buffer_of_to();
    hf_rig_do(&rig, "complete xsignal to s, xsignal to r; complete of=t => not_found");
    hf_rig_history(&rig, "to",
                   TO_STARTED "4 WorkflowTaskFailed scheduled=2 started=3 ForceCloseCommand\n"
                              "5 WorkflowExecutionSignaled a\n6 WorkflowExecutionSignaled b\n"
                              "7 WorkflowExecutionSignaled s\n8 WorkflowExecutionSignaled r\n");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n"
                              "6 SignalExternalWorkflowExecutionInitiated\n"
                              "7 ExternalWorkflowExecutionSignaled\n"
                              "8 WorkflowTaskScheduled attempt=1\n"
                              "9 ExternalWorkflowExecutionSignaled\n");
    assert_true(hf_rig_probe(&rig, HF_PROBE_BUFFER_OVER) == 1);
}

static void a_cancel_request_to_a_run_whose_buffer_is_full_ends_its_task(void **state)
{
    (void)state;
    fill_the_buffer_of_to();
    hf_rig_do(&rig, "complete xcancel to; crash; poll queue=t as=t; complete of=t canceled");
    hf_rig_history(&rig, "to",
                   TO_STARTED "4 WorkflowTaskFailed scheduled=2 started=3 ForceCloseCommand\n"
                              "5 WorkflowExecutionSignaled a\n6 WorkflowExecutionSignaled b\n"
                              "7 WorkflowExecutionCancelRequested\n8 WorkflowTaskScheduled attempt=2\n"
                              "9 WorkflowTaskStarted scheduled=8\n10 WorkflowTaskCompleted scheduled=8 started=9\n"
                              "11 WorkflowExecutionCanceled\n");
}

/* ---- What a failure says ------------------------------------------------------------------------------------------------- */

static void a_signal_beyond_the_most_a_run_may_get_says_so(void **state)
{
    (void)state;
    again(&(hf_core_options){.limits = {.signals = 1}});
    hf_rig_do(&rig, "start other queue=o; signal other a; start wf; poll; complete xsignal other b");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n"
                              "6 SignalExternalWorkflowExecutionFailed SignalCountLimitExceeded\n"
                              "7 WorkflowTaskScheduled attempt=1\n");
}

/* What is wrong with the target is for an operator; that it is not there would be a lie. */
static void a_message_to_a_run_that_is_damaged_does_not_say_that_there_is_none(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1});
    hf_rig_do(&rig, "start other queue=o; time 1s");
    lose_row(HF_TABLE_RUN);
    hf_rig_do(&rig, "crash; start wf; poll; complete xsignal other hello, xcancel other");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n"
                              "6 RequestCancelExternalWorkflowExecutionInitiated\n"
                              "7 SignalExternalWorkflowExecutionFailed Unspecified\n"
                              "8 WorkflowTaskScheduled attempt=1\n"
                              "9 RequestCancelExternalWorkflowExecutionFailed Unspecified\n");
}

#define BAD_COMMAND(cause) \
    START "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskFailed scheduled=2 started=3 " cause "\n"

static void a_signal_that_nobody_could_take_fails_its_workflow_task(void **state)
{
    (void)state;
    again(&(hf_core_options){.limits = {.payload_len = 1000}});
    static const char *const BAD[] = {"xsignal other s header=1001", "xsignal other s input=1001",
                                      "xsignal other s ns=a\x1f"
                                      "b"};
    hf_rig_do(&rig, "start other queue=o");
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        char script[200];
        (void)snprintf(script, sizeof script, "start wf; poll; complete %s => invalid", BAD[i]);
        hf_rig_do(&rig, script);
        hf_rig_history(&rig, "wf", BAD_COMMAND("BadSignalWorkflowExecutionAttributes"));
        hf_rig_do(&rig, "terminate wf");
    }
    hf_rig_do(&rig, "start wf; poll; complete xcancel other ns=a\x1f"
                    "b => invalid");
    hf_rig_history(&rig, "wf", BAD_COMMAND("BadRequestCancelExternalWorkflowExecutionAttributes"));
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_signal_to_another_run_arrives_and_is_reported_back),
    TEST(a_signal_to_nobody_fails),
    TEST(a_signal_to_a_closed_run_fails),
    TEST(a_cancel_request_to_another_run_arrives),
    TEST(a_message_names_its_sender),
    TEST(a_message_for_a_child_does_not_go_to_others),
    TEST(a_cancel_request_to_nobody_fails),
    TEST(a_run_cannot_send_itself_a_message),
    TEST(a_run_that_closes_sends_nothing_more),
    TEST(a_crash_delays_a_message_and_does_not_lose_or_double_it),
    TEST(a_signal_to_a_run_whose_buffer_is_full_ends_its_task),
    TEST(a_cancel_request_to_a_run_whose_buffer_is_full_ends_its_task),
    TEST(a_signal_beyond_the_most_a_run_may_get_says_so),
    TEST(a_message_to_a_run_that_is_damaged_does_not_say_that_there_is_none),
    TEST(a_signal_that_nobody_could_take_fails_its_workflow_task),
};

int main(int argc, char **argv)
{
    return hf_test_main("engine_external", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
