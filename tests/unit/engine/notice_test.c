/* The log is told of runs that come near to a limit: once for each run and limit, and when it is durable. */
#include "fixture.h"

#include "history/reason.h"

#include <stdio.h>

static char told[4000];

static void keep(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    size_t len = strlen(told);
    (void)snprintf(told + len, sizeof told - len, "%s %s %s\n", level == HF_LOG_WARN ? "warning" : "error", event,
                   fields);
}

/* Run ids are random: they are left out. */
static void assert_told(const char *expected)
{
    char text[sizeof told];
    size_t len = 0;
    for (const char *at = told; *at != '\0';) {
        if (strncmp(at, "run=", 4) == 0) {
            at += strcspn(at, " ") + 1;
            continue;
        }
        text[len++] = *at++;
    }
    text[len] = '\0';
    assert_string_equal(text, expected);
    told[0] = '\0';
}

static void limits_are(hf_core_limits limits)
{
    told[0] = '\0';
    again(&(hf_core_options){.limits = limits, .log = keep});
}

#define RETURN_BEFORE                                                                                     \
    "message=\"a run that reaches the limit is terminated: let the workflow continue as new before that " \
    "(hf_continue_as_new)\"\n"

static void a_fifth_of_the_events_is_told_once(void **state)
{
    (void)state;
    limits_are((hf_core_limits){.history_count = 20});
    hf_rig_do(&rig, "start wf; signal wf a; signal wf b"); /* four events */
    assert_told("");
    hf_rig_do(&rig, "signal wf c");
    assert_told("warning workflow_nears_limit workflow=wf type=type events=5 limit=20 " RETURN_BEFORE);
    hf_rig_do(&rig, "signal wf d; crash; signal wf e; poll; complete timer t 1h; crash");
    assert_told("");
    hf_rig_do(&rig, "start other; signal other a; signal other b; signal other c"); /* each run for itself */
    assert_told("warning workflow_nears_limit workflow=other type=type events=5 limit=20 " RETURN_BEFORE);
}

/* What comes with one step may jump over the place. */
static void it_is_told_where_a_step_passes_it(void **state)
{
    (void)state;
    limits_are((hf_core_limits){.history_count = 20});
    hf_rig_do(&rig, "start wf; poll; complete marker a, marker b, marker c, marker d");
    assert_told("warning workflow_nears_limit workflow=wf type=type events=8 limit=20 " RETURN_BEFORE);
}

static void a_fifth_of_the_bytes_is_told_once(void **state)
{
    (void)state;
    limits_are((hf_core_limits){.history_len = 10000});
    hf_rig_do(&rig, "start wf; signal wf a input=1000");
    assert_told("");
    hf_rig_do(&rig, "signal wf b input=1000");
    char expected[400];
    hf_str history = hf_rig_history_bytes(&rig, "wf");
    (void)snprintf(expected, sizeof expected,
                   "warning workflow_nears_limit workflow=wf type=type history_bytes=%zu limit=10000 " RETURN_BEFORE,
                   history.len);
    assert_told(expected);
    hf_rig_do(&rig, "signal wf c input=1000; crash; signal wf d input=1000");
    assert_told("");
}

static void a_fifth_of_the_signals_is_told_once(void **state)
{
    (void)state;
    limits_are((hf_core_limits){.signals = 10});
    hf_rig_do(&rig, "start wf; signal wf a; signal wf b; poll; signal wf c"); /* the last one waits for the task */
    assert_told("");
    hf_rig_do(&rig, "complete");
    assert_told("warning workflow_nears_limit workflow=wf type=type signals=3 limit=10 message=\"a run that has had as "
                "many signals as the limit gets no more: let the workflow continue as new before that "
                "(hf_continue_as_new)\"\n");
    hf_rig_do(&rig, "signal wf d; crash; signal wf e");
    assert_told("");
}

static void nothing_is_told_that_was_not_committed(void **state)
{
    (void)state;
    limits_are((hf_core_limits){.signals = 5});
    hf_rig_do(&rig, "start wf; signal wf a");
    rig.may_break = rig.lose = true;
    assert_int_not_equal(hf_rig_try(&rig, "signal wf b"), HF_OK);
    assert_told("");
    rig.may_break = rig.lose = false;
    hf_rig_do(&rig, "crash; signal wf b");
    assert_true(strstr(told, "signals=2 limit=5") != NULL);
}

/* What people are told of the end of "wf". */
static void assert_why(const char *end)
{
    hf_arena arena;
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_rig_heap);
    hf_pb_history history;
    assert_int_equal(hf_pb_decode(&op, &hf_pb_history_type, hf_rig_history_bytes(&rig, "wf"), &arena, &history), HF_OK);
    const hf_pb_history_event *last = &history.events.items[history.events.count - 1];
    assert_int_equal(last->event_type, HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED);
    hf_str why = hf_terminated_why(last->workflow_execution_terminated_event_attributes);
    assert_true(why.len >= strlen(end));
    assert_memory_equal(why.data + why.len - strlen(end), end, strlen(end));
    hf_arena_deinit(&arena);
}

static void a_run_that_is_ended_by_a_limit_says_which(void **state)
{
    (void)state;
    limits_are((hf_core_limits){.history_count = 5});
    hf_rig_do(&rig, "start wf; signal wf a; signal wf b");
    told[0] = '\0';
    hf_rig_do(&rig, "signal wf c; signal wf d; signal wf e => limit; signal wf f => not_found");
    assert_told(
        "error workflow_over_limit workflow=wf type=type events=6 limit=5 message=\"the run was terminated\"\n");
    hf_rig_history(&rig, "wf",
                   "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1\n3 WorkflowExecutionSignaled a\n"
                   "4 WorkflowExecutionSignaled b\n5 WorkflowExecutionSignaled c\n6 WorkflowExecutionSignaled d\n"
                   "7 WorkflowExecutionTerminated 'Workflow history count exceeds limit.'\n");
    assert_why("the history of this run has 6 events, and one run may have 5: let the workflow continue as new before "
               "that (hf_continue_as_new)");
    limits_are((hf_core_limits){.history_len = 3000});
    hf_rig_do(&rig, "start wf; signal wf a input=3000; signal wf b => not_found");
    assert_true(strstr(told, "error workflow_over_limit workflow=wf type=type run=") != NULL);
    assert_true(strstr(told, " limit=3000 message=\"the run was terminated\"\n") != NULL);
    assert_why(" bytes, and one run may have 3000: let the workflow continue as new before that (hf_continue_as_new), "
               "or pass less data to its activities and signals");
}

static void names_of_any_length_leave_room_for_the_rest(void **state)
{
    (void)state;
    limits_are((hf_core_limits){.history_count = 5});
    char script[2000];
    (void)snprintf(script, sizeof script, "start %0300d; signal %0300d a", 7, 7);
    hf_rig_do(&rig, script);
    assert_true(strstr(told, "07 type=type run=") == NULL); /* the end of the id is cut off */
    assert_true(strstr(told, " events=2 limit=5 message=\"a run that") != NULL);
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_fifth_of_the_events_is_told_once),          TEST(it_is_told_where_a_step_passes_it),
    TEST(a_fifth_of_the_bytes_is_told_once),           TEST(a_fifth_of_the_signals_is_told_once),
    TEST(nothing_is_told_that_was_not_committed),      TEST(a_run_that_is_ended_by_a_limit_says_which),
    TEST(names_of_any_length_leave_room_for_the_rest),
};

int main(int argc, char **argv)
{
    return hf_test_main("notice", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
