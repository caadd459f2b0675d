/* Crash and reopen at every step: the history in the end is the same. */
#include "fixture.h"

#include <stdio.h>

/* Request ids make steps repeatable; answers name their task by token. */
static const char *const ONE_ACTIVITY[] = {
    "start wf request=r1", "poll", "complete activity a1", "apoll", "acomplete", "poll", "complete done",
};
static const char *const FAN_OUT[] = {
    "start wf request=r1",
    "poll",
    "complete activity a1, activity a2, activity a3, timer t 5s",
    "apoll as=x",
    "apoll as=y",
    "signal wf s request=r2",
    "acomplete of=x",
    "poll",
    "heartbeat of=y details=half",
    "acomplete of=y",
    "apoll as=z",
    "complete marker m",
    "afail of=z",
    "time 1s",
    "poll",
    "apoll as=z",
    "complete untimer t",
    "acomplete of=z",
    "time 4s",
    "poll",
    "complete done",
};
static const char *const TROUBLE[] = {
    "start wf request=r1",
    "poll",
    "fail",
    "poll",
    "signal wf s1 request=r2",
    "time 10s",
    "poll",
    "complete sticky=s timer t 5s",
    "cancel wf",
    "poll queue=s as=s => parked",
    "drop s",
    "time 10s",
    "poll",
    "complete canceled",
};

/* What crashes are compared by. */
static void text_of(bool bare, hf_buf *out)
{
    hf_buf_init(out, hf_rig_heap, SIZE_MAX / 4);
    hf_rig_history_text(hf_rig_history_bytes(&rig, "wf"), bare, out);
}

static void assert_same_history(const hf_buf *expected, bool bare, size_t step)
{
    hf_buf text;
    text_of(bare, &text);
    if (strcmp(hf_buf_text(&text), hf_buf_text(expected)) != 0) {
        print_error("with a crash at step %zu:\n%swithout:\n%s", step, hf_buf_text(&text), hf_buf_text(expected));
        fail();
    }
    hf_buf_deinit(&text);
}

static void expected_of(const char *const *steps, size_t count, bool bare, hf_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        hf_rig_do(&rig, steps[i]);
    }
    text_of(bare, out);
}

/* A crash between any two steps. */
static void crash_between(const char *const *steps, size_t count, const hf_core_options *options)
{
    hf_buf expected;
    again(options);
    expected_of(steps, count, false, &expected);
    for (size_t at = 1; at <= count; at++) {
        again(options);
        for (size_t i = 0; i < count; i++) {
            hf_rig_do(&rig, steps[i]);
            /* A sticky queue is alive while it is polled, which no crash survives: there the script says how it goes. */
            if (i + 1 == at) {
                hf_rig_do(&rig, "crash");
            }
        }
        assert_same_history(&expected, false, at);
    }
    again(options);
    for (size_t i = 0; i < count; i++) {
        hf_rig_do(&rig, steps[i]);
        hf_rig_do(&rig, "crash");
    }
    assert_same_history(&expected, false, 0);
    hf_buf_deinit(&expected);
}

static void lose_every_commit_once(const char *const *steps, size_t count)
{
    hf_buf expected;
    const hf_core_options options = {0};
    again(&options);
    expected_of(steps, count, false, &expected);
    again(&options);
    for (size_t i = 0; i < count; i++) {
        rig.lose = rig.may_break = true;
        if (strncmp(steps[i], "time", 4) != 0) {
            (void)hf_rig_try(&rig, steps[i]);
            rig.lose = rig.may_break = false;
            hf_rig_do(&rig, "crash");
        }
        rig.lose = rig.may_break = false;
        hf_rig_do(&rig, steps[i]);
    }
    assert_same_history(&expected, false, count);
    hf_buf_deinit(&expected);
}

static void a_crash_between_any_two_steps_changes_nothing(void **state)
{
    (void)state;
    const hf_core_options options = {0};
    crash_between(ONE_ACTIVITY, HF_COUNT_OF(ONE_ACTIVITY), &options);
    crash_between(FAN_OUT, HF_COUNT_OF(FAN_OUT), &options);
}

static void a_crash_changes_nothing_when_every_run_is_written_at_once(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1, .trim_count = 1, .page_max = 1};
    crash_between(ONE_ACTIVITY, HF_COUNT_OF(ONE_ACTIVITY), &options);
    crash_between(FAN_OUT, HF_COUNT_OF(FAN_OUT), &options);
}

static void a_commit_that_is_lost_was_never_answered_and_can_be_repeated(void **state)
{
    (void)state;
    lose_every_commit_once(ONE_ACTIVITY, HF_COUNT_OF(ONE_ACTIVITY));
    lose_every_commit_once(FAN_OUT, HF_COUNT_OF(FAN_OUT));
    lose_every_commit_once(TROUBLE, HF_COUNT_OF(TROUBLE));
}

/* The answer is lost, not the commit: the worker dies with the process and the client asks again. */
static void an_answer_that_is_lost_can_be_asked_for_again(void **state)
{
    (void)state;
    static const char *const STEPS[] = {
        "start wf request=r1", "poll in_process", "complete activity a1",   "apoll in_process",
        "acomplete",           "poll in_process", "signal wf s request=r2", "complete",
        "poll in_process",     "complete done",
    };
    hf_buf expected;
    expected_of(STEPS, HF_COUNT_OF(STEPS), true, &expected);
    const hf_core_options options = {0};
    for (size_t at = 0; at < HF_COUNT_OF(STEPS); at++) {
        again(&options);
        for (size_t i = 0; i < HF_COUNT_OF(STEPS); i++) {
            hf_rig_do(&rig, STEPS[i]);
            if (i == at) {
                hf_rig_do(&rig, "crash");
                hf_status status = hf_rig_try(&rig, STEPS[i]);
                assert_true(status == HF_OK || status == HF_ERR_NOT_FOUND);
            }
        }
        assert_same_history(&expected, true, at);
    }
    hf_buf_deinit(&expected);
}

static size_t rows_of(hf_table table)
{
    hf_store_count count = {0};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &count};
    hf_store_execute(rig.store, &stats);
    return (size_t)stats.stats.rows[table];
}

static void the_journal_is_trimmed_behind_what_is_in_rows(void **state)
{
    (void)state;
    const hf_core_options options = {.trim_count = 4, .journal_len_max = 16 << 10};
    again(&options);
    hf_rig_do(&rig, "start old; poll; complete timer t 1h");
    for (int i = 0; i < 200; i++) {
        char text[100];
        (void)snprintf(text, sizeof text, "start wf%d; poll; complete done", i);
        hf_rig_do(&rig, text);
        assert_true(rig.core->journal_len <= 16 << 10);
    }
    assert_true(rows_of(HF_TABLE_JOURNAL) < 200);
    assert_int_equal(rows_of(HF_TABLE_JOURNAL), rig.core->commit_next - rig.core->journal_first);
    assert_true(hf_rig_probe(&rig, HF_PROBE_SPILLED_OPEN) > 0); /* the old one held it up */
    hf_rig_do(&rig, "crash; time 1h; poll; complete done");
}

/* Every commit closes a run whose rows alone are more than a commit of old runs may be. */
static void the_journal_is_trimmed_however_many_runs_close(void **state)
{
    (void)state;
    const hf_core_options options = {.batch_len_max = 4096, .journal_len_max = 40000};
    again(&options);
    hf_rig_do(&rig, "start old; poll; complete timer t 1000h");
    rig.no_check = true;
    for (int i = 0; i < 60; i++) {
        hf_rig_do(&rig, "start wf input=5000 conflict=3");
        assert_true(rig.core->journal_len < rig.core->options.journal_len_max);
    }
    hf_rig_do(&rig, "crash; signal old s; poll queue=q");
}

static void runs_that_have_ended_leave_memory_first(void **state)
{
    (void)state;
    const hf_core_options options = {.ended_max = 2};
    again(&options);
    hf_rig_do(&rig, "start idle; poll; complete timer t 24h");
    for (int i = 0; i < 5; i++) {
        char script[64];
        (void)snprintf(script, sizeof script, "start wf%d; poll; complete done", i);
        hf_rig_do(&rig, script);
    }
    assert_int_equal(rig.core->runs.count, 3);
    assert_int_equal(rig.core->ended_count, 2);
    hf_rig_history(&rig, "wf0",
                   "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1\n3 WorkflowTaskStarted scheduled=2\n"
                   "4 WorkflowTaskCompleted scheduled=2 started=3\n5 WorkflowExecutionCompleted\n");
    assert_int_equal(rig.core->runs.count, 3);
}

static void rows_of_closed_runs_leave_no_deadlines_and_tasks(void **state)
{
    (void)state;
    const hf_core_options options = {.mem_max = 1};
    again(&options);
    hf_rig_do(&rig, "start wf run=1d; poll in_process; complete activity a1, activity a2, timer t 1h; apoll in_process;"
                    "crash; time 1s");
    assert_true(rows_of(HF_TABLE_DUE) > 0 && rows_of(HF_TABLE_TASK) > 0);
    hf_rig_do(&rig, "terminate wf");
    assert_int_equal(rows_of(HF_TABLE_DUE), 0);
    assert_int_equal(rows_of(HF_TABLE_TASK), 0);
    assert_int_equal(rows_of(HF_TABLE_RUN), 1);
    assert_int_equal(rig.core->index.count + rows_of(HF_TABLE_NAME), 1);
}

static void every_opening_is_another_incarnation(void **state)
{
    (void)state;
    uint64_t first = rig.core->incarnation;
    hf_rig_do(&rig, "crash; start wf; crash; crash");
    assert_int_equal(rig.core->incarnation, first + 3);
}

static void a_core_whose_commit_failed_takes_no_more(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    rig.lose = rig.may_break = true;
    assert_int_equal(hf_rig_try(&rig, "signal wf s"), HF_ERR_AGAIN);
    assert_int_equal(hf_core_status(rig.core), HF_ERR_IO);
    hf_rig_call *other = hf_rig_slot(&rig, "x");
    hf_pb_describe_workflow_execution_request *request = HF_RIG_REQUEST(other, describe_workflow_execution);
    hf_rig_send(&rig, other, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, request);
    assert_true(other->done);
    assert_int_equal(other->call.status, HF_ERR_IO);
    hf_core_stop(rig.core, HF_ERR_STORE, "stopped");
    assert_int_equal(hf_rig_slot(&rig, NULL)->call.status, HF_ERR_STORE);
    rig.lose = rig.may_break = false;
    hf_rig_do(&rig, "crash");
    hf_rig_history(&rig, "wf", START);
}

static void a_store_that_somebody_else_wrote_to_is_left_alone(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf");
    hf_store_request theirs = {.verb = HF_STORE_COMMIT, .commit = rig.core->commit_next};
    hf_store_execute(rig.store, &theirs);
    assert_int_equal(theirs.status, HF_OK);
    rig.may_break = true;
    assert_int_equal(hf_rig_try(&rig, "signal wf s"), HF_ERR_AGAIN);
    assert_int_equal(hf_core_status(rig.core), HF_ERR_CONFLICT);
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_crash_between_any_two_steps_changes_nothing),
    TEST(a_crash_changes_nothing_when_every_run_is_written_at_once),
    TEST(a_commit_that_is_lost_was_never_answered_and_can_be_repeated),
    TEST(an_answer_that_is_lost_can_be_asked_for_again),
    TEST(the_journal_is_trimmed_behind_what_is_in_rows),
    TEST(the_journal_is_trimmed_however_many_runs_close),
    TEST(runs_that_have_ended_leave_memory_first),
    TEST(rows_of_closed_runs_leave_no_deadlines_and_tasks),
    TEST(every_opening_is_another_incarnation),
    TEST(a_core_whose_commit_failed_takes_no_more),
    TEST(a_store_that_somebody_else_wrote_to_is_left_alone),
};

int main(int argc, char **argv)
{
    return hf_test_main("recovery", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
