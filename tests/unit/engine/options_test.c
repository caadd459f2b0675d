/* Options of a run that a client changes, and request ids that starts leave with a run. What a Temporal server does is in
 * tests/golden/temporal. */
#include "history/limits.h"
#include "unit/engine/fixture.h"

#include <stdio.h>

static const hf_pb_describe_workflow_execution_response *describe(const char *step)
{
    hf_rig_do(&rig, step);
    return hf_rig_slot(&rig, NULL)->call.response;
}

GOLDEN(a_change_is_an_event_and_no_task, "start wf; poll; complete; options wf priority=3; crash; poll => parked",
       FIRST_TASK "5 WorkflowExecutionOptionsUpdated\n")

GOLDEN(what_is_as_it_was_is_no_event,
       "start wf; options wf priority=3; options wf priority=3; options wf unset; options wf mask=priority.fairnessKey",
       START "3 WorkflowExecutionOptionsUpdated\n")

GOLDEN(an_event_waits_for_the_started_task,
       "start wf; poll; options wf priority=3; options wf priority=3; options wf fairness=k; crash; complete",
       FIRST_TASK "5 WorkflowExecutionOptionsUpdated\n6 WorkflowExecutionOptionsUpdated\n"
                  "7 WorkflowTaskScheduled attempt=1\n")

static void options_are_described_at_once_and_after_a_crash(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; options wf priority=3 pinned=b1; options wf fairness=k");
    for (int i = 0; i < 3; i++) {
        const hf_pb_workflow_execution_info *info = describe("describe wf")->workflow_execution_info;
        assert_int_equal(info->priority->priority_key, 3);
        assert_true(hf_str_equal(info->priority->fairness_key, HF_STR("k")));
        const hf_pb_versioning_override *override = info->versioning_info->versioning_override;
        assert_int_equal(override->override_case, HF_PB_VERSIONING_OVERRIDE_PINNED);
        assert_true(hf_str_equal(override->pinned->version->build_id, HF_STR("b1")));
        hf_rig_do(&rig, i == 0 ? "crash" : i == 1 ? "complete; crash" : "");
    }
    hf_rig_do(&rig, "options wf unset");
    assert_null(describe("describe wf")->workflow_execution_info->versioning_info);
}

static void bad_changes_are_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "options wf mask=nonsense => invalid",
        "options wf mask=time_skipping_config => invalid",
        "options wf mask=versioning_override.auto_upgrade => invalid",
        "options wf mask=versioning_override.behavior => invalid",
        "options wf priority=-1 => invalid",
        "options wf weight=-1 => invalid",
        "options wf fairness=01234567890123456789012345678901234567890123456789012345678901234 => invalid",
        "options wf pinned= => not_ready",
        "start wf request=r1 priority=-1 => invalid",
    };
    hf_rig_do(&rig, "start wf");
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        hf_rig_do(&rig, BAD[i]);
    }
    hf_rig_history(&rig, "wf", START);
}

static void a_long_history_ends_the_run_even_if_no_task_is_due(void **state)
{
    (void)state;
    again(&(hf_core_options){.limits = {.history_count = 10}});
    hf_rig_do(&rig, "start wf; poll; complete");
    for (int i = 1; i <= 7; i++) {
        char step[40];
        (void)snprintf(step, sizeof step, "options wf priority=%d", i);
        hf_rig_do(&rig, step);
    }
    hf_rig_do(&rig, "options wf priority=9 => not_found");
    assert_int_equal(describe("describe wf")->workflow_execution_info->status, HF_WORKFLOW_EXECUTION_STATUS_TERMINATED);
}

/* ---- Attached request ids ---------------------------------------------------------------------------------------- */

static bool starts(const char *step)
{
    hf_rig_do(&rig, step);
    return ((const hf_pb_start_workflow_execution_response *)hf_rig_slot(&rig, NULL)->call.response)->started;
}

static void an_attached_id_finds_its_run(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        again(&(hf_core_options){.mem_max = small != 0 ? 1 : 0});
        assert_true(starts("start wf request=r0"));
        assert_false(starts("start wf request=r1 conflict=2 attach"));
        const hf_pb_start_workflow_execution_response *answer = hf_rig_slot(&rig, NULL)->call.response;
        assert_int_equal(answer->link->workflow_event->reference_case, HF_PB_LINK_WORKFLOW_EVENT_REQUEST_ID_REF);
        assert_true(hf_str_equal(answer->link->workflow_event->request_id_ref->request_id, HF_STR("r1")));
        hf_rig_do(&rig, "poll");
        assert_false(starts("start wf request=r2 conflict=2 attach"));
        assert_false(starts("start wf request=r2 conflict=3"));
        hf_rig_do(&rig, "crash");
        assert_false(starts("start wf request=r2"));
        hf_rig_do(&rig, "complete; signal wf s; poll; complete done; crash");
        assert_false(starts("start wf request=r1"));
        assert_false(starts("start wf request=r2"));
        assert_true(starts("start wf request=r0"));
        assert_int_equal(
            ((const hf_pb_start_workflow_execution_response *)hf_rig_slot(&rig, NULL)->call.response)->status,
            HF_WORKFLOW_EXECUTION_STATUS_COMPLETED);
        assert_true(starts("start wf request=r3"));
        hf_rig_do(&rig, "start wf request=r1 => exists"); /* another run has the id now */
    }
}

static void request_ids_are_described(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf request=r0; start wf request=r1 conflict=2 attach; poll; start wf request=r2 conflict=2 "
                    "attach");
    const hf_pb_workflow_execution_extended_info *info = describe("describe wf")->workflow_extended_info;
    assert_int_equal(info->request_id_infos.count, 3);
    static const hf_pb_request_id_info EXPECTED[] = {
        {.event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, .event_id = 1},
        {.event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED, .event_id = 3},
        {.event_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED, .buffered = true},
    };
    for (size_t i = 0; i < HF_COUNT_OF(EXPECTED); i++) {
        const hf_pb_request_id_info *is = info->request_id_infos.items[i].value;
        assert_int_equal(info->request_id_infos.items[i].key.data[1] - '0', i);
        assert_int_equal(is->event_type, EXPECTED[i].event_type);
        assert_int_equal(is->event_id, EXPECTED[i].event_id);
        assert_int_equal(is->buffered, EXPECTED[i].buffered);
    }
}

static void a_run_gets_only_so_many(void **state)
{
    (void)state;
    rig.no_check = true;
    hf_rig_do(&rig, "start wf");
    for (int i = 0; i <= HF_ATTACHED_MAX; i++) {
        char step[80];
        (void)snprintf(step, sizeof step, "start wf request=a%d conflict=2 attach => %s", i,
                       i < HF_ATTACHED_MAX ? "ok" : "limit");
        hf_rig_do(&rig, step);
    }
    hf_rig_do(&rig, "start wf request=a7; start wf request=b conflict=2; terminate wf");
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_change_is_an_event_and_no_task),
    TEST(what_is_as_it_was_is_no_event),
    TEST(an_event_waits_for_the_started_task),
    TEST(options_are_described_at_once_and_after_a_crash),
    TEST(bad_changes_are_refused),
    TEST(a_long_history_ends_the_run_even_if_no_task_is_due),
    TEST(an_attached_id_finds_its_run),
    TEST(request_ids_are_described),
    TEST(a_run_gets_only_so_many),
};

int main(int argc, char **argv)
{
    return hf_test_main("options", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
