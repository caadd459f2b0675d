/* Children: started, told of once by the last run of their chain, and the close policies of their parents. */
#include "fixture.h"

#include <stdio.h>

#define CHILD "5 StartChildWorkflowExecutionInitiated kid\n6 ChildWorkflowExecutionStarted initiated=5\n"
#define SECOND_TASK                                                          \
    "7 WorkflowTaskScheduled attempt=1\n8 WorkflowTaskStarted scheduled=7\n" \
    "9 WorkflowTaskCompleted scheduled=7 started=8\n"

GOLDEN(
    a_child_completes,
    "start wf; poll; complete child kid queue=p input=3; poll; complete; poll queue=p as=k; complete of=k done; poll",
    FIRST_TASK CHILD SECOND_TASK
    "10 ChildWorkflowExecutionCompleted initiated=5 started=6\n11 WorkflowTaskScheduled attempt=1\n"
    "12 WorkflowTaskStarted scheduled=11\n")

GOLDEN(a_child_fails,
       "start wf; poll; complete child kid queue=p; poll; complete; poll queue=p as=k; complete of=k failed",
       FIRST_TASK CHILD SECOND_TASK
       "10 ChildWorkflowExecutionFailed initiated=5 started=6\n11 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_child_is_canceled,
       "start wf; poll; complete child kid queue=p; poll; complete xcancel kid child; poll queue=p as=k; complete of=k "
       "canceled",
       FIRST_TASK CHILD SECOND_TASK
       "10 RequestCancelExternalWorkflowExecutionInitiated\n11 ExternalWorkflowExecutionCancelRequested\n"
       "12 WorkflowTaskScheduled attempt=1\n13 ChildWorkflowExecutionCanceled initiated=5 started=6\n")

GOLDEN(a_child_times_out, "start wf; poll; complete child kid queue=p run=5s; poll; complete; time 5s",
       FIRST_TASK CHILD SECOND_TASK
       "10 ChildWorkflowExecutionTimedOut initiated=5 started=6\n11 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_child_is_terminated, "start wf; poll; complete child kid queue=p; poll; complete; terminate kid",
       FIRST_TASK CHILD SECOND_TASK
       "10 ChildWorkflowExecutionTerminated initiated=5 started=6\n11 WorkflowTaskScheduled attempt=1\n")

GOLDEN(an_id_in_use_refuses_the_child, "start kid queue=p; start wf; poll; complete child kid queue=p",
       FIRST_TASK
       "5 StartChildWorkflowExecutionInitiated kid\n"
       "6 StartChildWorkflowExecutionFailed initiated=5 WorkflowAlreadyExists\n7 WorkflowTaskScheduled attempt=1\n")

GOLDEN(the_last_run_of_a_chain_tells,
       "start wf; poll; complete child kid queue=p; poll; complete; poll queue=p as=k; complete of=k continue;"
       "poll queue=p as=k; complete of=k continue; crash; poll queue=p as=k; complete of=k done",
       FIRST_TASK CHILD SECOND_TASK
       "10 ChildWorkflowExecutionCompleted initiated=5 started=6\n11 WorkflowTaskScheduled attempt=1\n")

GOLDEN(retries_of_a_child_are_silent,
       "start wf; poll; complete child kid queue=p initial=1s retries=2; poll; complete; poll queue=p as=k; complete "
       "of=k failed;"
       "time 1s; poll queue=p as=k; complete of=k failed",
       FIRST_TASK CHILD SECOND_TASK
       "10 ChildWorkflowExecutionFailed initiated=5 started=6\n11 WorkflowTaskScheduled attempt=1\n")

GOLDEN(what_happens_to_a_child_during_a_task_is_buffered,
       "start wf; poll; complete child kid queue=p; poll; poll queue=p as=k; complete of=k done; signal wf s; complete",
       FIRST_TASK CHILD SECOND_TASK
       "10 WorkflowExecutionSignaled s\n"
       "11 ChildWorkflowExecutionCompleted initiated=5 started=6\n12 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_child_is_not_started_by_a_run_that_ends,
       "start wf; poll; complete child kid queue=p policy=2, done; signal kid s => not_found",
       FIRST_TASK "5 StartChildWorkflowExecutionInitiated kid\n6 WorkflowExecutionCompleted\n")

GOLDEN(a_child_cannot_be_started_and_canceled_at_once,
       "start wf; poll; complete child kid, xcancel kid child => invalid",
       START "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskFailed scheduled=2 started=3 "
             "BadRequestCancelExternalWorkflowExecutionAttributes\n")

static void policies_are_applied(void **state)
{
    (void)state;
    static const struct {
        const char *start;
        const char *end;
        const char *child;
    } CASES[] = {
        {"child wf queue=p policy=1", "complete of=p done", "3 WorkflowExecutionTerminated 'by parent close policy'\n"},
        {"child wf queue=p", "terminate par", "3 WorkflowExecutionTerminated 'by parent close policy'\n"},
        {"child wf queue=p policy=3", "complete of=p failed", "3 WorkflowExecutionCancelRequested\n"},
        {"child wf queue=p policy=2", "complete of=p done", ""},
        {"child wf queue=p policy=1", "time 1h", "3 WorkflowExecutionTerminated 'by parent close policy'\n"},
        {"child wf queue=p policy=1", "complete of=p continue",
         "3 WorkflowExecutionTerminated 'by parent close policy'\n"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char script[300];
        char history[200];
        again(&(hf_core_options){0});
        (void)snprintf(script, sizeof script,
                       "start par run=1h queue=pq; poll queue=pq as=p; complete of=p %s; poll queue=pq as=p; %s",
                       CASES[i].start, CASES[i].end);
        print_message("%s\n", script);
        hf_rig_do(&rig, script);
        (void)snprintf(history, sizeof history, START "%s", CASES[i].child);
        hf_rig_history(&rig, "wf", history);
        hf_rig_crash(&rig);
        hf_rig_do(&rig, "time 1s");
        hf_rig_history(&rig, "wf", history);
    }
}

static void a_parent_whose_child_runs_is_released(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1});
    hf_rig_do(&rig, "start wf; poll; complete child kid queue=p; poll; complete; crash; time 1s");
    assert_int_equal(rig.core->runs.count, 0);
    hf_rig_do(&rig, "poll queue=p as=k; complete of=k done; poll; complete done");
}

static void a_parent_that_left_tells_after_a_crash(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1, .tail_len_max = 1, .row_len_max = 1});
    hf_rig_do(
        &rig,
        "start par queue=pq; poll queue=pq as=p; complete of=p child wf queue=p, child b queue=p, child c queue=p");
    hf_rig_do(&rig, "poll queue=p as=k; complete of=k timer t 1h; poll queue=pq as=p; terminate par; crash; time 1s");
    hf_rig_history(&rig, "b",
                   "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1\n"
                   "3 WorkflowExecutionTerminated 'by parent close policy'\n");
}

/* Its last event is in a history row by then, and an opening cannot ask the driver to read it. */
static void the_end_of_a_child_is_told_after_a_crash(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1, .tail_len_max = 1, .row_len_max = 1});
    hf_rig_do(&rig, "start wf; poll; complete child kid queue=p; poll; complete; poll queue=p as=k");
    rig.hold = true;
    hf_rig_do(&rig, "complete of=k done => again");
    assert_true(hf_rig_read(&rig)); /* the child; its parent is not loaded yet */
    assert_true(hf_rig_commit(&rig, false));
    rig.hold = false;
    hf_rig_crash(&rig);
    hf_rig_do(&rig, "time 1s");
    hf_rig_history(&rig, "wf",
                   FIRST_TASK CHILD SECOND_TASK
                   "10 ChildWorkflowExecutionCompleted initiated=5 started=6\n11 WorkflowTaskScheduled attempt=1\n");
}

/* Messages that it has sent again go with the core. */
static void an_opening_without_memory_leaves_no_messages(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1, .tail_len_max = 1, .row_len_max = 1});
    hf_rig_do(&rig, "start par queue=pq; poll queue=pq as=p; complete of=p child a queue=p, child b queue=p, child c "
                    "queue=p; poll queue=pq as=p");
    rig.hold = true;
    hf_rig_do(&rig, "complete of=p done => again");
    assert_true(hf_rig_read(&rig)); /* the parent; its children are not loaded yet */
    assert_true(hf_rig_commit(&rig, false));
    rig.hold = false;
    rig.may_break = true;
    rig.allocations = 0;
    rig.fail_at = 1;
    hf_rig_crash(&rig);
    for (uint64_t i = 2; rig.core == NULL; i++) {
        rig.allocations = 0;
        rig.fail_at = i;
        (void)hf_rig_reopen(&rig);
    }
    rig.fail_at = 0;
    rig.may_break = false;
    hf_rig_do(&rig, "time 1s; poll queue=p => parked");
}

/* Like a policy: it names no run, and comes while the run that is current fails, which waits for an event. Then the next one is current. */
static void a_terminate_that_waits_goes_to_the_next_run(void **state)
{
    (void)state;
    again(&(hf_core_options){.journal_len_max = 1, .tail_len_max = 1, .row_len_max = 1});
    hf_rig_do(&rig, "start par queue=pq; poll queue=pq as=p; complete of=p child wf queue=p initial=1s retries=3; "
                    "poll queue=p as=k");
    rig.hold = true;
    hf_rig_do(&rig, "complete of=k failed => again");
    assert_int_equal(rig.read_count, 1); /* its first event */
    hf_rig_call *slot = hf_rig_slot(&rig, "end");
    hf_pb_terminate_workflow_execution_request *request = HF_RIG_REQUEST(slot, terminate_workflow_execution);
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("wf")};
    request->namespace = HF_STR(HF_RIG_NS);
    request->workflow_execution = &execution;
    hf_rig_submit(&rig, slot, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, request);
    rig.hold = false;
    assert_true(hf_rig_settle(&rig));
    assert_true(slot->done);
    assert_int_equal(slot->call.status, HF_OK);
    hf_rig_history(&rig, "wf", "1 WorkflowExecutionStarted\n2 WorkflowExecutionTerminated ''\n");
}

/* Others' commits do not wait for a whole family: each takes some of its messages. */
static void a_large_family_ends_in_portions(void **state)
{
    (void)state;
    again(&(hf_core_options){.messages_max = 2});
    hf_rig_do(&rig, "start par queue=pq; poll queue=pq as=p; complete of=p child a queue=p, child b queue=p, child c "
                    "queue=p, child d queue=p, child e queue=p");
    uint64_t commits = rig.commits;
    hf_rig_do(&rig, "terminate par");
    assert_int_equal(rig.commits - commits, 5); /* five ends, and what the children tell their parent */
    assert_true(hf_rig_probe(&rig, HF_PROBE_INBOX_FULL) > 0);
    for (const char *id = "abcde"; *id != '\0'; id++) {
        char name[2] = {*id, '\0'};
        hf_rig_history(&rig, name, START "3 WorkflowExecutionTerminated 'by parent close policy'\n");
    }
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_child_completes),
    TEST(a_large_family_ends_in_portions),
    TEST(a_child_fails),
    TEST(a_child_is_canceled),
    TEST(a_child_times_out),
    TEST(a_child_is_terminated),
    TEST(an_id_in_use_refuses_the_child),
    TEST(the_last_run_of_a_chain_tells),
    TEST(retries_of_a_child_are_silent),
    TEST(what_happens_to_a_child_during_a_task_is_buffered),
    TEST(a_child_is_not_started_by_a_run_that_ends),
    TEST(a_child_cannot_be_started_and_canceled_at_once),
    TEST(policies_are_applied),
    TEST(a_parent_whose_child_runs_is_released),
    TEST(a_parent_that_left_tells_after_a_crash),
    TEST(the_end_of_a_child_is_told_after_a_crash),
    TEST(an_opening_without_memory_leaves_no_messages),
    TEST(a_terminate_that_waits_goes_to_the_next_run),
};

int main(int argc, char **argv)
{
    return hf_test_main("child", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
