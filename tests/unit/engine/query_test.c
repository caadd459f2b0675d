/* Queries: what a caller asks a workflow's code, and nothing changes. */
#include "fixture.h"

#include "engine/load.h"

#include <stdio.h>

#define SECOND_TASK                                                                 \
    FIRST_TASK "5 WorkflowExecutionSignaled s\n6 WorkflowTaskScheduled attempt=1\n" \
               "7 WorkflowTaskStarted scheduled=6\n"

/* ---- A task of its own --------------------------------------------------------------------------------------------- */

GOLDEN(a_query_without_a_pending_task_has_its_own,
       "start wf; poll; complete; query wf q input=3; poll says=q/0/0; qanswer result=fine; is q says=fine", FIRST_TASK)

GOLDEN(
    a_query_goes_to_the_worker_that_has_the_run_without_history,
    "start wf; poll; complete sticky=s; poll queue=s as=x => parked; query wf q; is x says=-q/0/0; qanswer of=x; is q",
    FIRST_TASK)

GOLDEN(a_query_falls_back_to_the_normal_queue_when_the_sticky_one_has_no_poller,
       "start wf; poll; complete sticky=s; query wf q; poll says=q/0/0; qanswer; is q", FIRST_TASK)

GOLDEN(
    a_query_falls_back_when_nobody_takes_it_from_the_sticky_queue,
    "start wf; poll; complete sticky=s sticky_for=5s; poll queue=s as=x => parked; drop x; query wf q; poll => parked;"
    "time 5s; is w says=q/0/0; qanswer; is q",
    FIRST_TASK)

GOLDEN(a_query_falls_back_when_its_worker_does_not_answer,
       "start wf; poll; complete sticky=s sticky_for=5s; poll queue=s as=x => parked; query wf q; is x; time 5s;"
       "poll says=q/0/0; qanswer of=x result=late => not_found; qanswer result=fine; is q says=fine",
       FIRST_TASK)

GOLDEN(
    a_query_leaves_the_queue_of_a_worker_that_shuts_down,
    "start wf; poll; complete sticky=s; poll queue=s as=x => parked; drop x; query wf q; shutdown s; poll says=q/0/0;"
    "qanswer; is q",
    FIRST_TASK)

GOLDEN(a_closed_run_is_queried, "start wf; poll; complete done; query wf q; poll says=q/0/0; qanswer; is q",
       FIRST_TASK "5 WorkflowExecutionCompleted\n")

GOLDEN(an_unwanted_query_goes_to_the_next_poller,
       "start wf; poll; complete; query wf q; poll as=x; unwanted x; poll says=q/0/0; qanswer of=x => not_found;"
       "qanswer; is q",
       FIRST_TASK)

GOLDEN(many_queries_of_one_run_have_a_task_each,
       "start wf; poll; complete; query wf a as=a1; query wf b as=b1; poll as=x says=a/0/0; poll as=y says=b/0/0;"
       "qanswer of=y result=two; qanswer of=x result=one; is a1 says=one; is b1 says=two",
       FIRST_TASK)

/* ---- With a workflow task -------------------------------------------------------------------------------------------- */

GOLDEN(a_query_goes_with_the_task_that_waits,
       "start wf; poll; complete; signal wf s; query wf q; poll says=/1/0; complete answer=fine; is q says=fine",
       SECOND_TASK "8 WorkflowTaskCompleted scheduled=6 started=7\n")

GOLDEN(a_query_before_the_first_task_waits_for_it,
       "start wf; query wf q; poll says=/1/0; complete answer=fine; is q says=fine", FIRST_TASK)

GOLDEN(a_query_during_a_task_comes_after_it,
       "start wf; poll; complete; signal wf s; poll; query wf q; complete; poll says=q/0/0; qanswer; is q",
       SECOND_TASK "8 WorkflowTaskCompleted scheduled=6 started=7\n")

GOLDEN(a_query_sees_a_signal_that_came_during_a_task,
       "start wf; poll; complete; signal wf s; poll; signal wf s2; query wf q; complete; poll says=/1/0;"
       "complete answer=fine; is q",
       SECOND_TASK "8 WorkflowTaskCompleted scheduled=6 started=7\n9 WorkflowExecutionSignaled s2\n"
                   "10 WorkflowTaskScheduled attempt=1\n11 WorkflowTaskStarted scheduled=10\n"
                   "12 WorkflowTaskCompleted scheduled=10 started=11\n")

GOLDEN(a_task_that_is_handed_out_again_has_no_later_queries,
       "start wf; poll; complete; signal wf s; query wf q; poll; signal wf s2; query wf late as=z; unwanted w;"
       "poll says=/1/0; complete answer=fine; is q says=fine; is z => parked; poll says=/1/0; complete answer=two;"
       "is z says=two",
       SECOND_TASK "8 WorkflowTaskCompleted scheduled=6 started=7\n9 WorkflowExecutionSignaled s2\n"
                   "10 WorkflowTaskScheduled attempt=1\n11 WorkflowTaskStarted scheduled=10\n"
                   "12 WorkflowTaskCompleted scheduled=10 started=11\n")

GOLDEN(a_query_that_its_task_does_not_answer_gets_its_own,
       "start wf; poll; complete; signal wf s; query wf q; poll; complete; poll says=q/0/0; qanswer; is q",
       SECOND_TASK "8 WorkflowTaskCompleted scheduled=6 started=7\n")

GOLDEN(a_query_of_a_failed_task_goes_with_the_next,
       "start wf; poll; complete; signal wf s; query wf q; poll; fail; poll says=/1/0; complete answer=fine; is q",
       SECOND_TASK "8 WorkflowTaskFailed scheduled=6 started=7 WorkflowWorkerUnhandledFailure\n"
                   "9 WorkflowTaskScheduled attempt=2\n10 WorkflowTaskStarted scheduled=9\n"
                   "11 WorkflowTaskCompleted scheduled=9 started=10\n")

/* 24: not deterministic. Whoever has other code fails it in the same way. */
GOLDEN(a_query_of_a_task_whose_code_does_not_fit_fails_at_once,
       "start wf; poll; complete; signal wf s; query wf q; poll says=/1/0; query wf late as=z; fail cause=24 input=1;"
       "is q => invalid; is z => parked; poll says=/1/0; complete answer=fine; is z says=fine",
       SECOND_TASK "8 WorkflowTaskFailed scheduled=6 started=7 NonDeterministicError\n"
                   "9 WorkflowTaskScheduled attempt=2\n10 WorkflowTaskStarted scheduled=9\n"
                   "11 WorkflowTaskCompleted scheduled=9 started=10\n")

GOLDEN(the_task_that_answers_may_close_the_run,
       "start wf; poll; complete; signal wf s; query wf q; poll; complete answer=fine done; is q says=fine",
       SECOND_TASK "8 WorkflowTaskCompleted scheduled=6 started=7\n9 WorkflowExecutionCompleted\n")

GOLDEN(a_query_outlives_its_run,
       "start wf; poll; complete; signal wf s; query wf q; terminate wf; poll says=q/0/0; qanswer; is q",
       FIRST_TASK
       "5 WorkflowExecutionSignaled s\n6 WorkflowTaskScheduled attempt=1\n7 WorkflowExecutionTerminated 'enough'\n")

/* ---- Refused, failed, gone --------------------------------------------------------------------------------------------- */

static void message_is(const char *slot, hf_status status, const char *message)
{
    const hf_call *call = &hf_rig_slot(&rig, slot)->call;
    assert_int_equal(call->status, status);
    assert_string_equal(call->message, message);
}

static void a_query_that_fails_tells_why(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete; query wf q; poll; qanswer error=oops; is q => invalid");
    message_is("q", HF_ERR_INVALID, "oops");
    const hf_call *call = &hf_rig_slot(&rig, "q")->call;
    assert_ptr_equal(call->detail_type, &hf_pb_query_failed_failure_type);
    const hf_pb_query_failed_failure *detail = call->detail;
    assert_true(hf_str_equal(detail->failure->message, HF_STR("oops")));
    hf_rig_do(&rig, "signal wf s; query wf q; poll; complete answerfail=no; is q => invalid");
    message_is("q", HF_ERR_INVALID, "no");
}

static void a_query_that_the_changed_code_refuses_tells_why(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete; signal wf s; query wf q; poll; fail cause=24 input=1; is q => invalid");
    message_is("q", HF_ERR_INVALID, "no luck");
    const hf_pb_query_failed_failure *detail = hf_rig_slot(&rig, "q")->call.detail;
    assert_ptr_equal(hf_rig_slot(&rig, "q")->call.detail_type, &hf_pb_query_failed_failure_type);
    assert_true(hf_str_equal(detail->failure->message, HF_STR("no luck")));
    hf_rig_do(&rig, "query wf q; poll; fail cause=24; is q => invalid"); /* without a failure */
    message_is("q", HF_ERR_INVALID, "the code of the workflow does not fit its history");
    assert_null(HF_SLOT(hf_run_find(rig.core, 1))->unwritten);
}

static void a_run_without_a_task_is_not_ready(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; query wf q as=z; terminate wf; is z => not_ready; query wf q => not_ready");
    message_is("q", HF_ERR_NOT_READY, "Workflow execution closed before WorkflowTaskStarted event");
    assert_ptr_equal(hf_rig_slot(&rig, "q")->call.detail_type, &hf_pb_workflow_not_ready_failure_type);
}

static void a_query_of_a_failing_task_fails_fast(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete; signal wf s; poll; fail; query wf q as=z; poll; fail; is z => parked;"
                    "query wf q => not_ready");
    message_is("q", HF_ERR_NOT_READY, "Unable to query workflow due to Workflow Task in failed state.");
    hf_rig_do(&rig, "time 60s; is z => timeout");
}

static void a_query_is_rejected_by_its_condition(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; query wf q reject=2 timeout=1s; time 1s; is q => timeout; poll; complete done;"
                    "query wf q reject=2 says=rejected => answer; start w2; poll; complete failed;"
                    "query w2 q reject=3 says=rejected => answer; query wf q reject=3; poll; qanswer; is q says=fine");
}

/* Nobody may answer it any more, and the rows of the run do not stay because of it. */
static void a_query_ends_with_the_deletion_of_its_run(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete; query wf one; query wf two as=two timeout=1h; poll as=k says=one/0/0;"
                    "delete wf; is q => not_found; is two => not_found; qanswer of=k => not_found");
    message_is("two", HF_ERR_NOT_FOUND, "there is no such run: it was deleted");
    assert_int_equal(rig.core->deletions.count, 0);
    hf_rig_do(&rig,
              "start wf; query wf q; poll says=/1/0; delete wf; is q => not_found; complete answer=late => not_found");
    assert_int_equal(rig.core->deletions.count, 0);
}

static void a_query_ends_with_its_caller(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete; query wf q; poll; drop q; is q => canceled; qanswer => not_found;"
                    "query wf q timeout=3s; time 3s; is q => timeout; poll => parked; query wf q; is w; qanswer;"
                    "is q; query none q => not_found");
    assert_null(HF_SLOT(hf_run_find(rig.core, 1))->unwritten);
}

static void a_query_changes_nothing(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete");
    uint64_t commits = rig.commits;
    hf_rig_do(&rig, "query wf q; poll; qanswer; is q; query wf q; drop q; query wf q timeout=1s; time 1s");
    assert_int_equal(rig.commits, commits);
}

static void a_crash_leaves_nothing_of_a_query(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete; query wf q; poll; crash; is q => closed; qanswer => not_found; query wf q;"
              "qanswer => not_found; poll as=x; qanswer => not_found; qanswer of=x; is q");
}

static void a_run_holds_a_bounded_number_of_queries(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    char step[80];
    for (int i = 0; i < 60; i++) {
        (void)snprintf(step, sizeof step, "query wf q as=q%d", i);
        hf_rig_do(&rig, step);
    }
    hf_rig_do(&rig, "poll says=/60/0; complete answer=fine; is q0; is q59");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_query_without_a_pending_task_has_its_own),
        TEST(a_query_goes_to_the_worker_that_has_the_run_without_history),
        TEST(a_query_falls_back_to_the_normal_queue_when_the_sticky_one_has_no_poller),
        TEST(a_query_falls_back_when_nobody_takes_it_from_the_sticky_queue),
        TEST(a_query_falls_back_when_its_worker_does_not_answer),
        TEST(a_query_leaves_the_queue_of_a_worker_that_shuts_down),
        TEST(a_closed_run_is_queried),
        TEST(an_unwanted_query_goes_to_the_next_poller),
        TEST(many_queries_of_one_run_have_a_task_each),
        TEST(a_query_goes_with_the_task_that_waits),
        TEST(a_query_before_the_first_task_waits_for_it),
        TEST(a_query_during_a_task_comes_after_it),
        TEST(a_query_sees_a_signal_that_came_during_a_task),
        TEST(a_task_that_is_handed_out_again_has_no_later_queries),
        TEST(a_query_that_its_task_does_not_answer_gets_its_own),
        TEST(a_query_of_a_failed_task_goes_with_the_next),
        TEST(a_query_of_a_task_whose_code_does_not_fit_fails_at_once),
        TEST(the_task_that_answers_may_close_the_run),
        TEST(a_query_outlives_its_run),
        TEST(a_query_that_fails_tells_why),
        TEST(a_query_that_the_changed_code_refuses_tells_why),
        TEST(a_run_without_a_task_is_not_ready),
        TEST(a_query_of_a_failing_task_fails_fast),
        TEST(a_query_is_rejected_by_its_condition),
        TEST(a_query_ends_with_the_deletion_of_its_run),
        TEST(a_query_ends_with_its_caller),
        TEST(a_query_changes_nothing),
        TEST(a_crash_leaves_nothing_of_a_query),
        TEST(a_run_holds_a_bounded_number_of_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
