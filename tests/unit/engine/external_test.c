/* Messages from one run to another: the inbox. */
#include "fixture.h"

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
                              "6 SignalExternalWorkflowExecutionFailed\n7 WorkflowTaskScheduled attempt=1\n");
}

static void a_signal_to_a_closed_run_fails(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start other queue=o; terminate other; start wf; poll; complete xsignal other hello");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n"
                              "6 SignalExternalWorkflowExecutionFailed\n7 WorkflowTaskScheduled attempt=1\n");
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

static void a_cancel_request_to_nobody_fails(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete xcancel nobody");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 RequestCancelExternalWorkflowExecutionInitiated\n"
                              "6 RequestCancelExternalWorkflowExecutionFailed\n7 WorkflowTaskScheduled attempt=1\n");
}

static void a_run_may_signal_itself(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete xsignal wf hello");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n6 WorkflowExecutionSignaled hello\n"
                              "7 WorkflowTaskScheduled attempt=1\n8 ExternalWorkflowExecutionSignaled\n");
}

static void a_message_of_a_run_that_closes_still_arrives(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start other queue=o; start wf; poll; complete xsignal other bye, done");
    hf_rig_history(&rig, "wf", FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n6 WorkflowExecutionCompleted\n");
    hf_rig_history(&rig, "other", START "3 WorkflowExecutionSignaled bye\n");
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

static void a_crash_does_not_lose_the_message_of_a_run_that_closed(void **state)
{
    (void)state;
    crash_with_a_message_under_way("complete xsignal other bye, done => again");
    hf_rig_history(&rig, "wf", FIRST_TASK "5 SignalExternalWorkflowExecutionInitiated\n6 WorkflowExecutionCompleted\n");
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_signal_to_another_run_arrives_and_is_reported_back),
    TEST(a_signal_to_nobody_fails),
    TEST(a_signal_to_a_closed_run_fails),
    TEST(a_cancel_request_to_another_run_arrives),
    TEST(a_cancel_request_to_nobody_fails),
    TEST(a_run_may_signal_itself),
    TEST(a_message_of_a_run_that_closes_still_arrives),
    TEST(a_crash_delays_a_message_and_does_not_lose_or_double_it),
    TEST(a_crash_does_not_lose_the_message_of_a_run_that_closed),
};

int main(int argc, char **argv)
{
    return hf_test_main("engine_external", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
