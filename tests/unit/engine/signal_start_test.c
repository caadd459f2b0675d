/* Signals with start. What a Temporal server does is in tests/golden/temporal. */
#include "base/uuid.h"
#include "unit/engine/fixture.h"

#include <stdio.h>

static const char *run_id_of(const char *step)
{
    static char run_id[HF_UUID_LEN];
    hf_rig_do(&rig, step);
    const hf_pb_signal_with_start_workflow_execution_response *response = hf_rig_slot(&rig, NULL)->call.response;
    (void)snprintf(run_id, sizeof run_id, "%.*s", HF_STR_ARGS(response->run_id));
    return run_id;
}

GOLDEN(a_signal_with_start_is_the_second_event_of_its_run, "sigstart wf s request=r1; crash; poll; complete done",
       "1 WorkflowExecutionStarted\n2 WorkflowExecutionSignaled s\n3 WorkflowTaskScheduled attempt=1\n"
       "4 WorkflowTaskStarted scheduled=3\n5 WorkflowTaskCompleted scheduled=3 started=4\n"
       "6 WorkflowExecutionCompleted\n")

GOLDEN(a_signal_with_start_is_buffered_like_any_other,
       "start wf; poll; sigstart wf s request=r1; sigstart wf s request=r1; complete; crash; poll; complete done",
       FIRST_TASK "5 WorkflowExecutionSignaled s\n6 WorkflowTaskScheduled attempt=1\n"
                  "7 WorkflowTaskStarted scheduled=6\n8 WorkflowTaskCompleted scheduled=6 started=7\n"
                  "9 WorkflowExecutionCompleted\n")

static void it_is_one_commit(void **state)
{
    (void)state;
    uint64_t before = rig.commits;
    hf_rig_do(&rig, "sigstart wf s request=r1");
    assert_int_equal(rig.commits, before + 1);
    hf_rig_do(&rig, "sigstart wf s request=r2 conflict=3");
    assert_int_equal(rig.commits, before + 2);
}

static void a_repeated_one_starts_no_second_run(void **state)
{
    (void)state;
    char first[HF_UUID_LEN];
    (void)snprintf(first, sizeof first, "%s", run_id_of("sigstart wf s request=r1"));
    hf_rig_do(&rig, "poll; complete done; crash");
    assert_string_equal(run_id_of("sigstart wf s request=r1"), first);
    assert_true(hf_rig_probe(&rig, HF_PROBE_SIGNAL_START_DEDUPED) > 0);
    assert_string_not_equal(run_id_of("sigstart wf s request=r2"), first);
}

static void a_start_finds_the_run_of_a_signal_with_start_by_its_request_id(void **state)
{
    (void)state;
    char first[HF_UUID_LEN];
    (void)snprintf(first, sizeof first, "%s", run_id_of("sigstart wf s request=r1"));
    hf_rig_do(&rig, "start wf request=r1");
    const hf_pb_start_workflow_execution_response *response = hf_rig_slot(&rig, NULL)->call.response;
    assert_true(response->started);
    assert_true(hf_str_equal(response->run_id, hf_str_of(first)));
}

static void a_deleted_run_is_not_signaled(void **state)
{
    (void)state;
    char first[HF_UUID_LEN];
    (void)snprintf(first, sizeof first, "%s", run_id_of("sigstart wf s request=r1"));
    hf_rig_do(&rig, "delete wf");
    assert_string_not_equal(run_id_of("sigstart wf s request=r1"), first);
}

static void bad_ones_are_refused(void **state)
{
    (void)state;
    hf_rig_do(&rig, "sigstart wf s conflict=1 => invalid; sigstart wf s reuse=3 conflict=3 => invalid;"
                    "sigstart wf s delay=1s cron=@daily => invalid; sigstart wf s cron=nonsense => invalid;"
                    "signal wf s => not_found; start wf; sigstart wf s reuse=4 conflict=2 => invalid");
    again(&(hf_core_options){.limits = {.signals = 1, .payload_len = 1000}});
    hf_rig_do(&rig, "sigstart wf s sinput=2000 => too_big; sigstart wf s input=2000 => too_big;"
                    "sigstart wf s; sigstart wf s => limit; sigstart wf s conflict=3; poll; complete done");
}

/* The rules of a time zone may have to be fetched first. */
static hf_str utc_rules(const char *name)
{
    (void)name;
    static const char NO_RULES[] = "TZif"; /* not a zone */
    return hf_str_of_len(NO_RULES, 4);
}

static void it_waits_for_a_time_zone(void **state)
{
    (void)state;
    rig.zone = utc_rules;
    hf_rig_do(&rig, "sigstart wf s cron=TZ=Nowhere_0_1_*_*_* => invalid; signal wf s => not_found");
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_signal_with_start_is_the_second_event_of_its_run),
    TEST(a_signal_with_start_is_buffered_like_any_other),
    TEST(it_is_one_commit),
    TEST(a_repeated_one_starts_no_second_run),
    TEST(a_start_finds_the_run_of_a_signal_with_start_by_its_request_id),
    TEST(a_deleted_run_is_not_signaled),
    TEST(bad_ones_are_refused),
    TEST(it_waits_for_a_time_zone),
};

int main(int argc, char **argv)
{
    return hf_test_main("signal_start", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
