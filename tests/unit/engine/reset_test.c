/* Resets: the new run begins with the base's events, brings along what came behind the point, takes the place of the current run, once
 * for each request; whatever happens meanwhile, and after a crash at any moment, it is there whole or not at all. */
#include "engine/load.h"
#include "fixture.h"
#include "history/history.h"
#include "inspect/check.h"
#include "ledger/making.h"

#include <stdio.h>

static size_t rows_of(hf_table table)
{
    hf_store_count count = {0};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &count};
    hf_store_execute(rig.store, &stats);
    return (size_t)stats.stats.rows[table];
}

static void on_found(void *state, const char *sentence)
{
    (void)state;
    fail_msg("%s", sentence);
}

static void count_found(void *state, const char *sentence)
{
    print_message("found: %s\n", sentence);
    ++*(int *)state;
}

static void check_store(hf_check_options options)
{
    hf_check_report report;
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_check_store(&op, hf_rig_heap, rig.store, &options, &report), HF_OK);
}

static void assert_sound(void)
{
    check_store((hf_check_options){.deep = true, .found = on_found});
}

static size_t unmade_count(void)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    hf_op op;
    hf_op_init(&op);
    hf_row *rows = NULL;
    size_t count = 0;
    assert_int_equal(hf_making_scan(&op, rig.store, &arena, &rows, &count), HF_OK);
    hf_arena_deinit(&arena);
    return count;
}

typedef struct id {
    char text[40];
} id;

static id current(const char *workflow_id)
{
    char step[60];
    (void)snprintf(step, sizeof step, "describe %s", workflow_id);
    const hf_rig_call *slot = hf_rig_step(&rig, step);
    assert_int_equal(slot->call.status, HF_OK);
    const hf_pb_describe_workflow_execution_response *response = slot->call.response;
    id it;
    (void)snprintf(it.text, sizeof it.text, "%.*s", HF_STR_ARGS(response->workflow_execution_info->execution->run_id));
    return it;
}

/* "reset wf 4 ..." or the like; the new run. */
static id reset(const char *step)
{
    const hf_rig_call *slot = hf_rig_step(&rig, step);
    assert_true(slot->done);
    if (slot->call.status != HF_OK) {
        fail_msg("%s: %s", step, slot->call.message);
    }
    const hf_pb_reset_workflow_execution_response *response = slot->call.response;
    id it;
    (void)snprintf(it.text, sizeof it.text, "%.*s", HF_STR_ARGS(response->run_id));
    return it;
}

static void refused(const char *step, hf_status status, const char *sentence)
{
    const hf_rig_call *slot = hf_rig_step(&rig, step);
    assert_true(slot->done);
    assert_int_equal(slot->call.status, status);
    if (strstr(slot->call.message, sentence) == NULL) {
        fail_msg("'%s' does not say '%s'", slot->call.message, sentence);
    }
}

static void with_run(char *ret_step, size_t len, const char *begin, const id *run, const char *more)
{
    (void)snprintf(ret_step, len, "%s run_id=%s%s", begin, run->text, more);
}

/* Portions of one event, and of all; rows of one event; runs in memory and not. */
static const hf_core_options OPTIONS[] = {
    {.mem_max = 0},
    {.reset_portion_count = 1},
    {.reset_portion_len = 1, .mem_max = 1, .tail_len_max = 1, .row_len_max = 1, .trim_count = 1},
    {.reset_portion_count = 3, .mem_max = 1, .tail_len_max = 1},
    {.mem_max = 1, .tail_len_max = 1, .row_len_max = 1, .names_max = 1, .trim_count = 1},
    {.reset_portion_count = 2, .tail_len_max = 1, .row_len_max = 300, .trim_count = 1},
};

/* ---- What comes of it ------------------------------------------------------------------------------------------------ */

static void portions_do_not_change_what_comes_of_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig,
                  "start wf; poll; complete activity a, timer t 1h; signal wf s1; poll; complete marker m input=500;"
                  "signal wf s2 input=700; signal wf s3; poll; signal wf s4");
        id base = current("wf");
        hf_buf before;
        hf_buf_init(&before, hf_rig_heap, SIZE_MAX / 4);
        hf_str bytes = hf_rig_history_bytes(&rig, "wf");
        hf_buf_put(&before, bytes.data, bytes.len);
        id made = reset("reset wf 10");
        assert_string_not_equal(made.text, base.text);
        assert_string_equal(current("wf").text, made.text);
        hf_rig_history(&rig, "wf",
                       "1 WorkflowExecutionStarted\n"
                       "2 WorkflowTaskScheduled attempt=1\n"
                       "3 WorkflowTaskStarted scheduled=2\n"
                       "4 WorkflowTaskCompleted scheduled=2 started=3\n"
                       "5 ActivityTaskScheduled a\n"
                       "6 TimerStarted t after=3600s\n"
                       "7 WorkflowExecutionSignaled s1\n"
                       "8 WorkflowTaskScheduled attempt=1\n"
                       "9 WorkflowTaskStarted scheduled=8\n"
                       "10 WorkflowTaskFailed scheduled=8 started=9 ResetWorkflow\n"
                       "11 WorkflowExecutionSignaled s2\n"
                       "12 WorkflowExecutionSignaled s3\n"
                       "13 WorkflowExecutionSignaled s4\n"
                       "14 WorkflowTaskScheduled attempt=1\n");
        bytes = hf_rig_history_bytes(&rig, "wf");
        hf_str one = {0};
        hf_str rest = bytes;
        for (int j = 0; j < 9; j++) {
            assert_true(hf_history_next(&rest, &one));
        }
        assert_true(before.len > bytes.len - rest.len);
        assert_memory_equal(before.data, bytes.data, bytes.len - rest.len);
        hf_buf_deinit(&before);
        assert_sound();
        hf_rig_do(&rig, "crash; apoll; acomplete; poll; complete done");
        assert_sound();
        assert_int_equal(unmade_count(), 0);
    }
    assert_true(hf_rig_probe(&rig, HF_PROBE_RESET_PORTION) > 0);
}

static void points_are_an_event_a_task_or_an_activity(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig,
                  "start wf; poll; complete activity a; apoll; acomplete; poll; complete activity b; apoll; acomplete;"
                  "poll; complete activity a, marker m; apoll; acomplete; poll; complete done");
        id base = current("wf");
        static const struct {
            const char *point;
            const char *last; /* event of the new run */
        } CASES[] = {
            {"first", "4 WorkflowTaskFailed"},       {"last", "23 WorkflowTaskFailed"},
            {"activity=a", "16 WorkflowTaskFailed"}, {"activity=b", "10 WorkflowTaskFailed"},
            {"10", "10 WorkflowTaskFailed"},         {"9", "10 WorkflowTaskFailed"},
        };
        for (size_t j = 0; j < HF_COUNT_OF(CASES); j++) {
            char step[100];
            char begin[40];
            (void)snprintf(begin, sizeof begin, "reset wf %s", CASES[j].point);
            with_run(step, sizeof step, begin, &base, "");
            (void)reset(step);
            hf_buf text;
            hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
            hf_rig_text(&rig, "wf", &text);
            if (strstr(hf_buf_text(&text), CASES[j].last) == NULL) {
                fail_msg("%s: %s", CASES[j].point, hf_buf_text(&text));
            }
            hf_buf_deinit(&text);
        }
        assert_sound();
    }
}

static void other_points_are_refused_with_what_is_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig, "start wf delay=1h");
        refused("reset wf first", HF_ERR_INVALID, "has not had a workflow task");
        refused("reset wf last", HF_ERR_INVALID, "has not had a workflow task");
        refused("reset wf 2", HF_ERR_INVALID, "greater than 1 and at most 1");
        hf_rig_do(&rig, "terminate wf; start wf; poll; complete marker m, activity a; signal wf s");
        refused("reset wf 5", HF_ERR_INVALID, "allows 3 to 4");
        refused("reset wf 2", HF_ERR_INVALID, "no workflow task is scheduled before it");
        refused("reset wf 1", HF_ERR_INVALID, "greater than 1 and at most 8");
        refused("reset wf 9", HF_ERR_INVALID, "greater than 1 and at most 8");
        refused("reset wf -3", HF_ERR_INVALID, "greater than 1 and at most 8");
        refused("reset wf activity=b", HF_ERR_INVALID, "activity 'b'");
        refused("reset nobody 4", HF_ERR_NOT_FOUND, "nobody");
        hf_rig_do(&rig, "apoll; acomplete"); /* its two events, while a task waits */
        refused("reset wf 10", HF_ERR_INVALID, "allows 9 to 9");
        assert_int_equal(unmade_count(), 0);
        assert_sound();
        hf_rig_do(&rig, "poll; complete done");
    }
}

static void a_request_is_carried_out_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig, "start wf; poll; complete marker m");
        id base = current("wf");
        char step[120];
        id made = reset("reset wf 4 request=r1");
        assert_string_equal(reset("reset wf 4 request=r1").text, made.text);
        hf_rig_do(&rig, "crash");
        assert_string_equal(reset("reset wf 4 request=r1").text, made.text);
        with_run(step, sizeof step, "reset wf 4", &base, " request=r1");
        assert_string_equal(reset(step).text, made.text);
        id other = reset("reset wf 3 request=r2");
        assert_string_equal(reset("reset wf 4 request=r1").text, made.text);
        hf_rig_do(&rig, "poll; complete continue; crash; poll; complete marker x");
        assert_string_equal(reset("reset wf 4 request=r1").text, made.text);
        assert_string_equal(reset("reset wf 3 request=r2").text, other.text);
        assert_string_not_equal(reset("reset wf 3 request=r3").text, other.text);
        assert_sound();
    }
}

static void a_signal_that_was_accepted_is_not_accepted_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig, "start wf; signal wf s1 request=q1; poll; complete; signal wf s2 request=q2; reset wf 5;"
                        "signal wf s1 request=q1; signal wf s2 request=q2; crash; signal wf s2 request=q2");
        hf_rig_history(&rig, "wf",
                       "1 WorkflowExecutionStarted\n"
                       "2 WorkflowTaskScheduled attempt=1\n"
                       "3 WorkflowExecutionSignaled s1\n"
                       "4 WorkflowTaskStarted scheduled=2\n"
                       "5 WorkflowTaskFailed scheduled=2 started=4 ResetWorkflow\n"
                       "6 WorkflowExecutionSignaled s2\n"
                       "7 WorkflowTaskScheduled attempt=1\n");
        hf_rig_do(&rig, "reset wf 5 exclude=1 signal=x; signal wf s2 request=q2");
        hf_rig_history(&rig, "wf",
                       "1 WorkflowExecutionStarted\n"
                       "2 WorkflowTaskScheduled attempt=1\n"
                       "3 WorkflowExecutionSignaled s1\n"
                       "4 WorkflowTaskStarted scheduled=2\n"
                       "5 WorkflowTaskFailed scheduled=2 started=4 ResetWorkflow\n"
                       "6 WorkflowExecutionSignaled x\n"
                       "7 WorkflowTaskScheduled attempt=1\n");
    }
}

static void runs_that_continued_it_are_looked_through(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig, "start wf; poll; complete marker m");
        id base = current("wf");
        hf_rig_do(&rig, "signal wf a; poll; complete continue; signal wf b; poll; complete continue; signal wf c; poll;"
                        "signal wf d");
        char step[120];
        with_run(step, sizeof step, "reset wf 4", &base, "");
        (void)reset(step);
        hf_rig_history(&rig, "wf",
                       "1 WorkflowExecutionStarted\n"
                       "2 WorkflowTaskScheduled attempt=1\n"
                       "3 WorkflowTaskStarted scheduled=2\n"
                       "4 WorkflowTaskFailed scheduled=2 started=3 ResetWorkflow\n"
                       "5 WorkflowExecutionSignaled a\n"
                       "6 WorkflowExecutionSignaled b\n"
                       "7 WorkflowExecutionSignaled c\n"
                       "8 WorkflowExecutionSignaled d\n"
                       "9 WorkflowTaskScheduled attempt=1\n");
        assert_sound();
        hf_rig_do(&rig, "crash; poll; complete done");
    }
}

static void an_id_without_a_current_run_gets_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig, "start wf; poll; complete done");
        id base = current("wf");
        hf_rig_do(&rig, "start wf; delete wf; describe wf => not_found");
        char step[120];
        with_run(step, sizeof step, "reset wf 4", &base, "");
        id made = reset(step);
        assert_string_equal(current("wf").text, made.text);
        hf_rig_do(&rig, "crash");
        assert_string_equal(current("wf").text, made.text);
        hf_rig_do(&rig, "poll; complete done");
        assert_sound();
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_RESET_NO_CURRENT), 1);
    }
}

/* ---- Parts of the run ------------------------------------------------------------------------------------------------ */

static void time_begins_anew_except_for_timers(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig, "start wf run=2h; poll; complete timer t 90m, activity a close=1h; signal wf s; poll;"
                        "complete marker m; time 50m; reset wf 10; poll; complete; crash; time 39m; poll => parked;"
                        "drop w; time 1m; poll; complete; time 19m; poll => parked; drop w; time 1m; poll; complete;"
                        "time 59m; signal wf s; poll; complete; time 1m; signal wf s => not_found");
        hf_rig_do(&rig, "reset wf last; poll; complete done");
    }
}

static void children_at_the_point_stay_with_the_new_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig, "start wf; poll; complete child one queue=p, child two queue=p; poll; complete marker m;"
                        "signal wf s; poll as=c1 queue=p; complete of=c1 done; poll; complete marker n");
        /* 9: two children have started. "one" ends behind the point, "two" when the new run is there. */
        hf_rig_do(&rig, "reset wf 10; poll; complete; crash; poll as=c2 queue=p; complete of=c2 done; poll; complete");
        hf_buf text;
        hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
        hf_rig_text(&rig, "wf", &text);
        const char *first = strstr(hf_buf_text(&text), "ChildWorkflowExecutionCompleted");
        assert_non_null(first);
        assert_non_null(strstr(first + 1, "ChildWorkflowExecutionCompleted"));
        hf_buf_deinit(&text);
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_RESET_TOLD), 1);
        assert_sound();
        hf_rig_do(&rig, "terminate wf");
    }
}

static void a_child_that_is_reset_is_told_of_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig, "start wf; poll; complete child kid queue=p; poll; complete; poll queue=p as=k;"
                        "complete of=k marker m; reset kid 4; poll => parked; crash; poll queue=p as=k;"
                        "complete of=k done; poll");
        hf_rig_history(&rig, "wf",
                       "1 WorkflowExecutionStarted\n"
                       "2 WorkflowTaskScheduled attempt=1\n"
                       "3 WorkflowTaskStarted scheduled=2\n"
                       "4 WorkflowTaskCompleted scheduled=2 started=3\n"
                       "5 StartChildWorkflowExecutionInitiated kid\n"
                       "6 ChildWorkflowExecutionStarted initiated=5\n"
                       "7 WorkflowTaskScheduled attempt=1\n"
                       "8 WorkflowTaskStarted scheduled=7\n"
                       "9 WorkflowTaskCompleted scheduled=7 started=8\n"
                       "10 ChildWorkflowExecutionCompleted initiated=5 started=6\n"
                       "11 WorkflowTaskScheduled attempt=1\n"
                       "12 WorkflowTaskStarted scheduled=11\n");
        hf_rig_do(&rig,
                  "complete done; reset kid 4; poll queue=p as=k; complete of=k done"); /* nobody listens any more */
        assert_sound();
    }
}

static void updates_come_along(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig, "start wf; poll; complete; update wf up uinput=300; poll; complete accept up, respond up;"
                        "update wf vp; poll; complete accept vp; reset wf 4; crash; poll;"
                        "updpoll wf up as=x; update wf vp as=y; complete accept up at=5, respond up, accept vp at=6;"
                        "is x => answer; is y => parked");
        hf_rig_history(&rig, "wf",
                       "1 WorkflowExecutionStarted\n"
                       "2 WorkflowTaskScheduled attempt=1\n"
                       "3 WorkflowTaskStarted scheduled=2\n"
                       "4 WorkflowTaskFailed scheduled=2 started=3 ResetWorkflow\n"
                       "5 WorkflowExecutionUpdateAdmitted\n"
                       "6 WorkflowExecutionUpdateAdmitted\n"
                       "7 WorkflowTaskScheduled attempt=1\n"
                       "8 WorkflowTaskStarted scheduled=7\n"
                       "9 WorkflowTaskCompleted scheduled=7 started=8\n"
                       "10 WorkflowExecutionUpdateAccepted up of=5\n"
                       "11 WorkflowExecutionUpdateCompleted up accepted=10\n"
                       "12 WorkflowExecutionUpdateAccepted vp of=6\n");
        hf_rig_do(&rig, "signal wf s; poll; complete respond vp; is y => answer; updpoll wf vp => answer;"
                        "updpoll wf up => answer");
        /* Admitted by an event, and again by a reset of that run; or left behind. */
        hf_rig_do(&rig, "reset wf 8; crash; poll; complete accept up at=5, reject vp at=6; reset wf 4 exclude=2; poll;"
                        "complete; updpoll wf up => not_found; terminate wf");
        assert_sound();
    }
}

/* ---- Meanwhile ------------------------------------------------------------------------------------------------------- */

#define BASE_HISTORY                                     \
    "1 WorkflowExecutionStarted\n"                       \
    "2 WorkflowTaskScheduled attempt=1\n"                \
    "3 WorkflowTaskStarted scheduled=2\n"                \
    "4 WorkflowTaskCompleted scheduled=2 started=3\n"    \
    "5 MarkerRecorded a\n"                               \
    "6 MarkerRecorded b\n"                               \
    "7 MarkerRecorded c\n"                               \
    "8 ActivityTaskScheduled x\n"                        \
    "9 WorkflowExecutionSignaled s1\n"                   \
    "10 WorkflowTaskScheduled attempt=1\n"               \
    "11 WorkflowTaskStarted scheduled=10\n"              \
    "12 WorkflowTaskCompleted scheduled=10 started=11\n" \
    "13 MarkerRecorded d\n"                              \
    "14 TimerStarted t after=36000s\n"                   \
    "15 WorkflowExecutionSignaled s2\n"                  \
    "16 WorkflowTaskScheduled attempt=1\n"               \
    "17 WorkflowTaskStarted scheduled=16\n"              \
    "18 WorkflowTaskCompleted scheduled=16 started=17\n" \
    "19 MarkerRecorded e\n"

static const hf_core_options SMALL = {.reset_portion_count = 2, .tail_len_max = 1, .row_len_max = 1, .mem_max = 1};

/* A base with some events, and another run that must not notice anything. */
static void prepare(void)
{
    hf_rig_do(&rig, "start other; poll; complete timer t 10h");
    hf_rig_do(&rig, "start wf; poll; complete marker a, marker b, marker c, activity x; signal wf s1; poll;"
                    "complete marker d, timer t 10h; signal wf s2; poll; complete marker e");
}

/* One more thing that the store is asked to do. False: there is nothing. */
static bool advance(void)
{
    return hf_rig_read(&rig) || (hf_core_tick(rig.core, rig.now), false) || hf_rig_commit(&rig, false);
}

static void hold(bool holds)
{
    rig.hold = holds;
    if (!holds) {
        assert_true(hf_rig_settle(&rig));
    }
}

static void a_crash_leaves_all_of_it_or_nothing(void **state)
{
    (void)state;
    int nothing = 0;
    int all = 0;
    size_t most = 0;
    for (int steps = 0; all < 3; steps++) {
        again(&SMALL);
        prepare();
        id base = current("wf");
        size_t history = rows_of(HF_TABLE_HISTORY);
        rig.hold = true;
        (void)hf_rig_step(&rig, "reset wf last as=r request=r1");
        for (int i = 0; i < steps; i++) {
            (void)advance();
        }
        size_t unmade = unmade_count();
        most = rows_of(HF_TABLE_HISTORY) - history > most ? rows_of(HF_TABLE_HISTORY) - history : most;
        assert_true(unmade <= 1);
        assert_sound(); /* also in the middle */
        bool is_told = hf_rig_slot(&rig, "r")->done;
        rig.hold = false;
        hf_rig_do(&rig, "crash");
        assert_sound();
        assert_int_equal(unmade_count(), 0);
        bool is_there = strcmp(current("wf").text, base.text) != 0;
        assert_true(is_there || !is_told);
        if (!is_there) {
            nothing++;
            hf_rig_history(&rig, "wf", BASE_HISTORY);
            assert_true(rows_of(HF_TABLE_HISTORY) <= history + 1);
        }
        all += is_there;
        hf_rig_do(&rig, "reset wf last request=r1; crash");
        assert_sound();
        hf_rig_do(&rig, "apoll; acomplete; poll; complete done; terminate other; crash");
        assert_sound();
    }
    print_message("%d crashes before, %d behind, up to %zu rows of a run that did not exist\n", nothing, all, most);
    assert_true(nothing > 5 && most > 5);
}

static void what_happens_meanwhile_counts(void **state)
{
    (void)state;
    static const char *const MEANWHILE[] = {
        "signal wf late",                                    /* the base has new events ... */
        "signal wf late; terminate wf",                      /* ... and closes */
        "signal wf early; poll as=p; signal wf late",        /* ... or they wait for a task */
        "start wf conflict=3",                               /* another run of the id begins */
        "signal wf late; poll as=p; complete of=p continue", /* the same, and it continues the base */
        "signal wf late; reset wf 4 as=o request=r2",        /* another reset */
        "terminate wf; delete other",                        /* nothing that matters */
    };
    uint64_t restarts = 0;
    for (size_t i = 0; i < HF_COUNT_OF(MEANWHILE); i++) {
        for (int steps = 0, done = 0; done < 2; steps++) {
            restarts += hf_rig_probe(&rig, HF_PROBE_RESET_RESTARTED);
            again(&SMALL);
            prepare();
            rig.hold = true;
            hf_rig_call *slot = hf_rig_step(&rig, "reset wf 4 as=r request=r1");
            for (int j = 0; j < steps; j++) {
                (void)advance();
            }
            done += slot->done;
            if (slot->done) {
                hold(false);
                continue;
            }
            char script[200];
            bool is_late = false; /* the reset was decided before the last step */
            (void)snprintf(script, sizeof script, "%s", MEANWHILE[i]);
            for (char *rest = NULL, *step = strtok_r(script, ";", &rest); step != NULL;
                 step = strtok_r(NULL, ";", &rest)) {
                is_late = hf_rig_probe(&rig, HF_PROBE_RESET) > 0;
                const hf_rig_call *other = hf_rig_step(&rig, step);
                while (!other->done && advance()) {
                }
            }
            hold(false);
            slot = hf_rig_slot(&rig, "r");
            assert_true(slot->done);
            assert_int_equal(slot->call.status, HF_OK);
            assert_sound();
            const hf_pb_reset_workflow_execution_response *response = slot->call.response;
            bool is_other = strstr(MEANWHILE[i], "r2") != NULL;
            if (!is_other && !is_late) {
                char made[40];
                (void)snprintf(made, sizeof made, "%.*s", HF_STR_ARGS(response->run_id));
                assert_string_equal(current("wf").text, made);
                hf_rig_do(&rig, "crash");
                assert_string_equal(current("wf").text, made);
            }
            if (strstr(MEANWHILE[i], "late") != NULL && !is_late) {
                hf_buf text;
                hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
                hf_rig_text(&rig, "wf", &text);
                const char *late = strstr(hf_buf_text(&text), "late");
                if (late == NULL || strstr(late + 1, "late") != NULL) {
                    fail_msg("%s: %s", MEANWHILE[i], hf_buf_text(&text));
                }
                hf_buf_deinit(&text);
            }
            assert_int_equal(unmade_count(), 0);
        }
    }
    assert_true(restarts > 0);
}

static void a_base_that_goes_is_not_reset(void **state)
{
    (void)state;
    int refusals = 0;
    for (int steps = 0; steps < 30; steps++) {
        again(&SMALL);
        prepare();
        id base = current("wf");
        rig.hold = true;
        hf_rig_call *slot = hf_rig_step(&rig, "reset wf last as=r request=r1");
        for (int j = 0; j < steps; j++) {
            (void)advance();
        }
        char step[100];
        with_run(step, sizeof step, "delete wf", &base, "");
        bool is_done = slot->done;
        (void)hf_rig_step(&rig, step);
        hold(false);
        assert_true(hf_rig_slot(&rig, "r")->done);
        assert_int_equal(hf_rig_slot(&rig, "r")->call.status, is_done ? HF_OK : HF_ERR_NOT_FOUND);
        refusals += !is_done;
        assert_int_equal(unmade_count(), 0);
        assert_sound();
        hf_rig_do(&rig, "crash");
        assert_sound();
    }
    assert_true(refusals > 5);
}

static void a_repeated_call_waits_for_the_first(void **state)
{
    (void)state;
    again(&SMALL);
    prepare();
    rig.hold = true;
    (void)hf_rig_step(&rig, "reset wf 4 as=r request=r1");
    (void)advance();
    (void)hf_rig_step(&rig, "reset wf 4 as=o request=r1");
    (void)advance();
    hold(false);
    const hf_pb_reset_workflow_execution_response *one = hf_rig_slot(&rig, "r")->call.response;
    const hf_pb_reset_workflow_execution_response *two = hf_rig_slot(&rig, "o")->call.response;
    assert_true(hf_str_equal(one->run_id, two->run_id));
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_RESET), 1);
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_RESET_JOINED), 1);
}

static void engine_R1_a_step_takes_one_portion(void **state)
{
    (void)state;
    again(&(hf_core_options){.reset_portion_len = 20000, .row_len_max = 5000, .tail_len_max = 1});
    hf_rig_do(&rig, "start wf; poll");
    for (int i = 0; i < 40; i++) {
        hf_rig_do(&rig, "complete marker m input=4000; signal wf s; poll");
    }
    rig.hold = true;
    (void)hf_rig_step(&rig, "reset wf last as=r request=r1");
    int commits = 0;
    while (!hf_rig_slot(&rig, "r")->done) {
        size_t before = rows_of(HF_TABLE_HISTORY);
        while (hf_rig_read(&rig)) {
        }
        hf_core_tick(rig.core, rig.now);
        assert_true(rig.core->resets.taken_len < 20000 + 5000);
        if (hf_rig_commit(&rig, false)) {
            commits++;
            bool is_last = hf_rig_slot(&rig, "r")->done; /* which writes the run that was terminated, too */
            assert_true(is_last || rows_of(HF_TABLE_HISTORY) - before <= 5);
        }
    }
    assert_true(commits > 6);
    hold(false);
    assert_sound();
}

/* As long as a history may be. Each event is longer than a portion, so each is one. */
static void a_history_of_50_mib_is_reset_in_portions(void **state)
{
    (void)state;
    enum { EVENTS = 48, LEN = 1 << 20 };
    again(&(hf_core_options){0});
    rig.no_check = true;
    hf_rig_do(&rig, "start wf; poll");
    for (int i = 0; i < EVENTS; i++) {
        hf_rig_do(&rig, "complete marker m input=1048576; signal wf s; poll");
    }
    hf_rig_do(&rig, "complete; crash");
    rig.hold = true;
    (void)hf_rig_step(&rig, "reset wf last as=r");
    while (!hf_rig_slot(&rig, "r")->done) {
        assert_true(advance() || rig.core->resets.count > 0);
        assert_true(rig.core->resets.taken_len < HF_RESET_PORTION_LEN + LEN + 1000); /* one event may be longer */
        assert_true(rig.core->used < (size_t)32 << 20);                              /* it is never all in memory */
    }
    hold(false);
    assert_true(hf_rig_probe(&rig, HF_PROBE_RESET_PORTION) >= EVENTS);
    assert_sound();
}

/* ---- Damage ---------------------------------------------------------------------------------------------------------- */

static void a_history_that_cannot_be_read_is_not_reset(void **state)
{
    (void)state;
    for (int64_t event = 1; event < 8; event++) {
        again(&SMALL);
        prepare();
        id base = current("wf");
        hf_run *run = hf_run_find(rig.core, rig.core->run_next - 1);
        int64_t number = run != NULL ? run->number : rig.core->run_next - 1;
        hf_write damage = {.table = HF_TABLE_HISTORY,
                           .kind = HF_WRITE_PUT,
                           .key = {.a = number, .b = event},
                           .value = HF_STR("no row")};
        if (event > 4) {
            damage.kind = HF_WRITE_DELETE;
        }
        both_behind(damage, damage);
        hf_rig_do(&rig, "crash");
        refused("reset wf last", HF_ERR_STORE, "db check");
        assert_int_equal(unmade_count(), 0);
        assert_string_equal(current("wf").text, base.text);
        hf_rig_do(&rig, "signal other s; signal wf s");
    }
}

static void ledger_G1_a_tool_tells_unfinished_rows_from_damage(void **state)
{
    (void)state;
    again(&SMALL);
    prepare();
    rig.hold = true;
    (void)hf_rig_step(&rig, "reset wf last as=r request=r1");
    while (unmade_count() == 0 || rows_of(HF_TABLE_HISTORY) < 4) {
        (void)advance();
    }
    for (int i = 0; i < 6; i++) {
        (void)advance();
    }
    assert_int_equal(unmade_count(), 1);
    assert_sound();
    int64_t number = rig.core->run_next - 1;
    hf_write gap = {.table = HF_TABLE_HISTORY, .kind = HF_WRITE_DELETE, .key = {.a = number, .b = 1}};
    rig.hold = false;
    both_behind(gap, gap);
    int found = 0;
    check_store((hf_check_options){.found = count_found, .state = &found});
    assert_int_equal(found, 1);
    hf_rig_do(&rig, "crash");
    assert_int_equal(unmade_count(), 0);
    assert_sound();
    found = 0;
    hf_write stray = {.table = HF_TABLE_META,
                      .kind = HF_WRITE_PUT,
                      .key = {.text = HF_STR("making/0000000000000001")},
                      .value = HF_STR("nothing")};
    both_behind(stray, stray);
    check_store((hf_check_options){.found = count_found, .state = &found});
    assert_true(found > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

static const struct CMUnitTest TESTS[] = {
    TEST(portions_do_not_change_what_comes_of_it),
    TEST(points_are_an_event_a_task_or_an_activity),
    TEST(other_points_are_refused_with_what_is_allowed),
    TEST(a_request_is_carried_out_once),
    TEST(a_signal_that_was_accepted_is_not_accepted_again),
    TEST(runs_that_continued_it_are_looked_through),
    TEST(an_id_without_a_current_run_gets_one),
    TEST(time_begins_anew_except_for_timers),
    TEST(children_at_the_point_stay_with_the_new_run),
    TEST(a_child_that_is_reset_is_told_of_once),
    TEST(updates_come_along),
    TEST(a_crash_leaves_all_of_it_or_nothing),
    TEST(what_happens_meanwhile_counts),
    TEST(a_base_that_goes_is_not_reset),
    TEST(a_repeated_call_waits_for_the_first),
    TEST(engine_R1_a_step_takes_one_portion),
    TEST(a_history_of_50_mib_is_reset_in_portions),
    TEST(a_history_that_cannot_be_read_is_not_reset),
    TEST(ledger_G1_a_tool_tells_unfinished_rows_from_damage),
};

int main(int argc, char **argv)
{
    return hf_test_main("reset", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
