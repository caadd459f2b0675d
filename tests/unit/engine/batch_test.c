/* Operations on many runs: each does what its call would do, once per run, in portions, over crashes, and not after its stop. The deletion of
 * namespaces is one of them. */
#include "engine/namespaces.h"
#include "engine/operations.h"
#include "fixture.h"
#include "inspect/ended.h"

#include <stdio.h>

/* Runs in memory and not, journals that are cut and not, messages that come in the batch of their taking and later. */
static const hf_core_options OPTIONS[] = {
    {.mem_max = 0},
    {.mem_max = 1, .trim_count = 1, .tail_len_max = 1, .part_len_min = 1},
    {.mem_max = 1, .trim_count = 100000, .messages_max = 1},
};

#define EACH_OPTIONS(i)                               \
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) \
        if (hf_rig_close(&rig), hf_rig_open(&rig, OPTIONS[i]), true)

static const char *message(void)
{
    return hf_rig_slot(&rig, NULL)->call.message;
}

/* The status that describes a run, as lists filter it. */
static void assert_count(const char *query, int count)
{
    char step[200];
    (void)snprintf(step, sizeof step, "count query=%s says=%d", query, count);
    hf_rig_do(&rig, step);
}

/* ---- Each operation ----------------------------------------------------------------------------------------------------- */

static void terminates_all_that_fit(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        hf_rig_do(&rig, "start a; start b; start c queue=z; start d ns=other; poll; complete done");
        hf_rig_do(&rig, "batch j query=TaskQueue='q'; batchshow j says=completed:1/0/1");
        assert_count("ExecutionStatus='Running'", 1);
        assert_count("ExecutionStatus='Terminated'", 1);
        hf_rig_do(&rig,
                  "count ns=other query=ExecutionStatus='Running' says=1; batches says=j*; batches ns=other says=");
        hf_rig_crash(&rig);
        hf_rig_do(&rig, "batchshow j says=completed:1/0/1; batches says=j*");
    }
}

static void signals_each_run_once(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        hf_rig_do(&rig, "start wf; start b; batch j op=signal name=go query=TaskQueue='q'");
        hf_rig_do(&rig, "batchshow j says=completed:2/0/2");
        hf_rig_history(&rig, "wf", START "3 WorkflowExecutionSignaled go\n");
        hf_rig_history(&rig, "b", START "3 WorkflowExecutionSignaled go\n");
    }
}

static void cancels_each_run_once(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        hf_rig_do(&rig, "start wf; start b; batch j op=cancel ids=wf+b+missing; batchshow j says=completed:3/0/3");
        hf_rig_history(&rig, "wf", START "3 WorkflowExecutionCancelRequested\n");
        hf_rig_do(&rig, "batch k op=cancel ids=wf; batchshow k says=completed:1/0/1");
        hf_rig_history(&rig, "wf", START "3 WorkflowExecutionCancelRequested\n");
    }
}

static void deletes_open_and_closed_runs(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        hf_rig_do(&rig, "start a; start b; terminate b; start c; batch j op=delete query=WorkflowId_IN_('a','b')");
        hf_rig_do(&rig, "batchshow j says=completed:2/0/2; list says=c; describe a => not_found");
        hf_rig_crash(&rig);
        hf_rig_do(&rig, "list says=c");
    }
}

static void resets_each_run_once(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        hf_rig_do(&rig, "start a; poll; complete; start b; poll; complete; start c");
        hf_rig_do(&rig, "batch j op=reset query=TaskQueue='q'; batchshow j says=completed:3/0/3");
        /* The new runs fit the query, too, but began later. */
        assert_count("ExecutionStatus='Running'", 3);
        assert_count("ExecutionStatus='Terminated'", 3);
        hf_rig_do(&rig, "batch k op=reset first ids=a; batchshow k says=completed:1/0/1");
        assert_count("ExecutionStatus='Terminated'", 4);
    }
}

static void updates_options_once(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        hf_rig_do(&rig, "start wf; batch j op=options query=TaskQueue='q'; batchshow j says=completed:1/0/1");
        hf_rig_history(&rig, "wf", START "3 WorkflowExecutionOptionsUpdated\n");
    }
}

static void controls_activities(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        hf_rig_do(&rig, "start wf; poll; complete activity a1; apause wf a1; apoll => parked; drop a");
        hf_rig_do(&rig, "batch j op=unpause query=TaskQueue='q'; batchshow j says=completed:1/0/1; apoll; afail");
        hf_rig_do(&rig, "batch k op=areset ids=wf; batch l op=aoptions ids=wf; batchshow k says=completed:1/0/1; "
                        "batchshow l says=completed:1/0/1; apoll");
        assert_int_equal(hf_rig_activity(&rig, "a")->attempt, 1);
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_ACTIVITY_UNPAUSED), 1);
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_ACTIVITY_RESET), 1);
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_ACTIVITY_OPTIONS), 1);
    }
}

/* Figures about runs that have ended are about workflows: an operation goes by a deadline of its own. */
static void an_operation_is_not_counted_with_runs(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = 1, .trim_count = 1});
    hf_rig_do(&rig, "start a; start b; terminate b; batch j query=WorkflowId='a'; batchshow j says=completed:1/0/1");
    hf_rig_restart(&rig);
    hf_op op;
    hf_op_init(&op);
    hf_ended_figures figures = {0};
    assert_int_equal(hf_ended_look(&op, rig.store, hf_rig_heap, rig.now.wall, NULL, &figures), HF_OK);
    assert_int_equal(figures.runs, 2);
}

/* Records of a stream count with the run that has them, also when later runs of its chain go on with it. */
static void figures_have_the_records_of_streams(void **state)
{
    enum { RECORD_LEN = 3000 };
    char step[100];
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = 1, .trim_count = 1});
    (void)snprintf(step, sizeof step, "start a; poll; complete publish=x size=%d continue; poll; complete done",
                   RECORD_LEN);
    hf_rig_do(&rig, step);
    hf_rig_restart(&rig);
    hf_op op;
    hf_op_init(&op);
    hf_ended_figures figures = {0};
    assert_int_equal(hf_ended_look(&op, rig.store, hf_rig_heap, rig.now.wall, NULL, &figures), HF_OK);
    assert_int_equal(figures.runs, 2);
    assert_in_range(figures.len, RECORD_LEN, 2 * RECORD_LEN);
}

static void start_many(int count)
{
    rig.no_check = count > 100;
    for (int i = 0; i < count; i++) {
        char step[40];
        (void)snprintf(step, sizeof step, "start w%d", i);
        hf_rig_do(&rig, step);
    }
}

static uint64_t told_last;

static void note_progress(uint64_t looked)
{
    assert_true(looked == told_last + HF_FIND_TOLD);
    told_last = looked;
}

/* A look at a file at rest that takes long says how far it is. */
static void figures_say_how_far_they_are(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = 1, .trim_count = 1});
    start_many(HF_FIND_TOLD + 3);
    hf_rig_restart(&rig);
    hf_op op;
    hf_op_init(&op);
    hf_ended_figures figures = {0};
    told_last = 0;
    assert_int_equal(hf_ended_look(&op, rig.store, hf_rig_heap, rig.now.wall, note_progress, &figures), HF_OK);
    assert_int_equal(told_last, HF_FIND_TOLD);
    assert_int_equal(figures.runs, 0);
}

/* ---- Portions, crashes, stops ------------------------------------------------------------------------------------------- */

/* engine-O1 */
static void engine_O1_goes_in_portions(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        start_many(3 * HF_OPERATION_PORTION + 5);
        hf_rig_do(&rig,
                  "batch j query=TaskQueue='q'; time 20ms; time 20ms; time 20ms; batchshow j says=completed:197/0/197");
        assert_count("ExecutionStatus='Running'", 0);
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_BATCH_PORTION), 4);
    }
}

static void keeps_to_its_rate(void **state)
{
    (void)state;
    start_many(10);
    hf_rig_do(&rig, "batch j query=TaskQueue='q' rate=4; batchshow j says=running:4/0/10");
    hf_rig_do(&rig, "time 999ms; batchshow j says=running:4/0/10; time 1ms; batchshow j says=running:8/0/10");
    hf_rig_do(&rig, "time 1s; batchshow j says=completed:10/0/10");
}

/* engine-O2: a crash after each commit, and in the middle of a portion. */
static void engine_O2_acts_once_whenever_it_crashes(void **state)
{
    static const char *const OPS[] = {"signal", "options", "terminate", "cancel", "delete", "reset"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        for (size_t op = 0; op < HF_COUNT_OF(OPS); op++) {
            for (int commits = 0; commits < 12; commits++) {
                hf_rig_close(&rig);
                hf_rig_open(&rig, OPTIONS[i]);
                for (int run = 0; run < 5; run++) {
                    char step[60];
                    (void)snprintf(step, sizeof step, "start w%d; poll; complete", run);
                    hf_rig_do(&rig, step);
                }
                char step[100];
                (void)snprintf(step, sizeof step, "batch j op=%s query=TaskQueue='q'", OPS[op]);
                rig.hold = true;
                (void)hf_rig_step(&rig, step);
                (void)hf_rig_commit(&rig, false);
                for (int left = commits; left > 0; left--) {
                    while (hf_rig_read(&rig)) {
                    }
                    hf_core_tick(rig.core, rig.now);
                    (void)hf_rig_commit(&rig, false);
                }
                rig.hold = false;
                hf_rig_crash(&rig);
                (void)hf_rig_settle(&rig);
                hf_rig_do(&rig, "batchshow j says=completed:5/0/5");
                assert_count("ExecutionStatus='Running'", op == 2 || op == 4 ? 0 : 5);
                assert_count("ExecutionStatus='Terminated'", op == 2 || op == 5 ? 5 : 0);
                for (int run = 0; run < 5 && op < 2; run++) {
                    char id[16];
                    (void)snprintf(id, sizeof id, "w%d", run);
                    hf_buf text;
                    hf_buf_init(&text, hf_rig_heap, SIZE_MAX / 4);
                    hf_rig_text(&rig, id, &text);
                    const char *word = op == 0 ? "Signaled" : "OptionsUpdated";
                    const char *first = strstr(hf_buf_text(&text), word);
                    assert_non_null(first);
                    assert_null(strstr(first + 1, word));
                    hf_buf_deinit(&text);
                }
            }
        }
    }
    assert_true(hf_rig_probe(&rig, HF_PROBE_BATCH_COMPLETED) > 0);
}

static void engine_O3_does_nothing_after_its_stop(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        start_many(10);
        hf_rig_do(&rig, "batch j op=signal name=go query=TaskQueue='q' rate=4; batchstop j");
        hf_rig_do(&rig, "batchshow j says=failed:4/0/10; time 10s; batchshow j says=failed:4/0/10");
        const hf_pb_describe_batch_operation_response *response = hf_rig_step(&rig, "batchshow j")->call.response;
        assert_true(hf_str_equal(response->holdfast_end_reason, HF_STR("enough")));
        hf_rig_do(&rig, "batchstop j => not_found; batchstop nobody => not_found; batchshow nobody => not_found");
        hf_rig_history(&rig, "w0", START);
        hf_rig_crash(&rig);
        hf_rig_do(&rig, "time 10s; batchshow j says=failed:4/0/10");
        hf_rig_history(&rig, "w0", START);
    }
}

/* While its messages wait for runs that are being loaded. */
static void stops_with_messages_on_their_way(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, OPTIONS[1]);
    hf_rig_do(&rig, "start wf; start b; batch j op=signal ids=wf+b");
    hf_rig_do(&rig, "batchshow j says=completed:2/0/2");
    rig.hold = true;
    (void)hf_rig_step(&rig, "batch k op=signal name=late ids=wf+b");
    for (int i = 0; i < 4; i++) {
        hf_core_tick(rig.core, rig.now);
    }
    hf_rig_call *slot = hf_rig_slot(&rig, "stop");
    hf_pb_stop_batch_operation_request *request = HF_RIG_REQUEST(slot, stop_batch_operation);
    *request = (hf_pb_stop_batch_operation_request){
        .namespace = HF_STR(HF_RIG_NS), .job_id = HF_STR("k"), .reason = HF_STR("enough")};
    hf_rig_submit(&rig, slot, HF_METHOD_STOP_BATCH_OPERATION, request);
    rig.hold = false;
    (void)hf_rig_settle(&rig);
    assert_true(slot->done && slot->call.status == HF_OK);
    hf_rig_do(&rig, "batchshow k says=failed:0/0/2");
    assert_true(hf_rig_probe(&rig, HF_PROBE_BATCH_LATE) > 0);
    hf_rig_history(&rig, "wf", START "3 WorkflowExecutionSignaled s\n");
}

static void runs_that_refuse_are_told(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.limits = {.signals = 1}});
    hf_rig_do(&rig, "start a; start b; signal a s; batch j op=signal query=TaskQueue='q'");
    hf_rig_do(&rig, "batchshow j says=completed:1/1/2");
    const hf_pb_describe_batch_operation_response *response = hf_rig_step(&rig, "batchshow j")->call.response;
    assert_int_equal(response->holdfast_failures.count, 1);
    assert_true(response->holdfast_failures.items[0].message.len > 0);
}

static void fails_when_its_query_means_nothing_any_more(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.is_strict = true});
    hf_rig_do(&rig, "register ns; addattr K; start a attrs=K:v; start b attrs=K:v");
    hf_rig_do(&rig, "batch j op=signal query=K='v' rate=1; removeattr K; time 5s; batchshow j says=failed:1/0/2");
    const hf_pb_describe_batch_operation_response *response = hf_rig_step(&rig, "batchshow j")->call.response;
    assert_true(response->holdfast_end_reason.len > 0);
}

static void is_forgotten_after_a_week(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        hf_rig_do(&rig,
                  "start a; batch j query=TaskQueue='q'; batch k ids=a; batches says=k*+j*; batches page=1 says=k*...; "
                  "batches page=1 more says=j*");
        hf_rig_do(&rig, "batch j ids=a => exists; time 167h; batches says=k*+j*; time 2h; batches says=");
        hf_rig_do(&rig, "batchshow j => not_found; batch j ids=a; batches says=j*");
        hf_rig_crash(&rig);
        hf_rig_do(&rig, "batches says=j*");
    }
}

/* An operation is not a workflow, and its id is not one. */
static void engine_O3_kinds_do_not_meet(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        hf_rig_do(&rig, "start j; batch j op=signal ids=j rate=1; list says=j; count says=1; describe j");
        hf_rig_do(&rig, "terminate \x1f\x01j => not_found; start \x1fx => invalid; delete \x1f\x01j => not_found; "
                        "batchshow j says=completed:1/0/1");
    }
}

static void bad_requests_are_named(void **state)
{
    static const struct {
        const char *step;
        const char *why;
    } ROWS[] = {
        {"batch j op=none query=WorkflowId='a' => invalid", "must provide required parameters"},
        {"batch j => invalid", "must provide required parameters"},
        {"batch j query=WorkflowId='a' reason= => invalid", "must provide required parameters"},
        {"batch j query=WorkflowId='a' ids=a => invalid", "mutually exclusive"},
        {"batch - query=WorkflowId='a' => invalid", "JobId is not set on request."},
        {"batch j query=() => invalid", "invalid visibility query"},
        {"batch j query=WorkflowId='a'_ORDER_BY_WorkflowId => invalid", "invalid visibility query"},
        {"batch j query=Nothing='a' => invalid", "invalid visibility query"},
        {"batch j op=signal name= ids=a => invalid", "must provide signal name"},
        {"batch j op=reset to=0 ids=a => invalid", "unknown batch reset type"},
        {"batch j op=reset targetless ids=a => invalid", "batch reset missing target"},
        {"batch j op=options maskless ids=a => invalid", "must provide UpdateMask"},
        {"batch j op=unpause none ids=a => invalid", "activity filter must be set"},
        {"batch j rate=-1 ids=a => invalid", "MaxOperationsPerSecond"},
        {"batchstop j reason= => invalid", "Reason is not set on request."},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        print_message("%s\n", ROWS[i].step);
        hf_rig_do(&rig, ROWS[i].step);
        assert_non_null(strstr(message(), ROWS[i].why));
    }
    hf_rig_do(&rig, "batches says=");
}

static void only_so_many_at_a_time(void **state)
{
    (void)state;
    start_many(3);
    rig.no_check = true;
    for (int i = 0; i < HF_OPERATIONS_OPEN_MAX; i++) {
        char step[60];
        (void)snprintf(step, sizeof step, "batch j%d op=signal ids=w0+w1+w2 rate=1", i);
        hf_rig_do(&rig, step);
    }
    hf_rig_do(&rig,
              "batch more ids=w0 => limit; batch other ns=other ids=w0; time 1s; time 1s; time 1s; batch more ids=w0");
}

/* ---- Namespaces ---------------------------------------------------------------------------------------------------------- */

static void a_namespace_goes_with_all_that_is_in_it(void **state)
{
    (void)state;
    EACH_OPTIONS(i)
    {
        hf_rig_close(&rig);
        hf_core_options options = OPTIONS[i];
        options.is_strict = true;
        hf_rig_open(&rig, options);
        hf_rig_do(&rig,
                  "register ns; register other; start a; start b; poll; complete done; start c; start a ns=other");
        hf_rig_do(&rig, "batch j op=signal ids=a rate=1; batch k op=cancel query=TaskQueue='q' rate=1; nsdelete ns");
        hf_rig_do(&rig, "start d => not_found; list => not_found; namespace ns => not_found; batches => not_found");
        hf_rig_crash(&rig);
        hf_rig_do(&rig,
                  "time 5s; list => not_found; list ns=other says=a; register ns; list says=; batches says=; start a");
        hf_rig_do(&rig, "time 200h; list says=a; nsdelete default => not_ready; nsdelete nobody => not_found");
        assert_int_equal(hf_rig_probe(&rig, HF_PROBE_NAMESPACE_DELETED), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(terminates_all_that_fit),
        TEST(signals_each_run_once),
        TEST(cancels_each_run_once),
        TEST(deletes_open_and_closed_runs),
        TEST(resets_each_run_once),
        TEST(updates_options_once),
        TEST(controls_activities),
        TEST(an_operation_is_not_counted_with_runs),
        TEST(figures_have_the_records_of_streams),
        TEST(figures_say_how_far_they_are),
        TEST(engine_O1_goes_in_portions),
        TEST(keeps_to_its_rate),
        TEST(engine_O2_acts_once_whenever_it_crashes),
        TEST(engine_O3_does_nothing_after_its_stop),
        TEST(stops_with_messages_on_their_way),
        TEST(runs_that_refuse_are_told),
        TEST(fails_when_its_query_means_nothing_any_more),
        TEST(is_forgotten_after_a_week),
        TEST(engine_O3_kinds_do_not_meet),
        TEST(bad_requests_are_named),
        TEST(only_so_many_at_a_time),
        TEST(a_namespace_goes_with_all_that_is_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
