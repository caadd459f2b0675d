/* Streams: records are appended by workflows and activities, numbered over the runs of a chain, read by a cursor, and waited for. */
#include "fixture.h"

#include "engine/stream.h"
#include "inspect/check.h"
#include "inspect/look.h"
#include "inspect/stream.h"
#include "ledger/rows.h"

#include <stdio.h>

#define SCRIPT(name, script)       \
    static void name(void **state) \
    {                              \
        (void)state;               \
        hf_rig_do(&rig, script);   \
    }

/* Runs leave memory with every commit, and every event and record has a row of its own. */
static void in_rows(void)
{
    again(&(hf_core_options){.mem_max = 1, .tail_len_max = 1, .row_len_max = 1});
}

SCRIPT(a_task_publishes_with_its_answer,
       "start wf; poll; stream wf says=/0; complete publish=a+b timer t 1h; stream wf says=0:a+1:b/2;"
       "stream wf from=1 says=1:b/2; stream wf from=2 says=/2; stream wf from=7 says=/7; stream wf from=-1 => invalid;"
       "stream nobody => not_found; stream wf ns=other => not_found")

SCRIPT(an_activity_publishes_while_it_runs,
       "start wf; poll; complete activity a1 beat=1m; apoll; heartbeat publish=x rid=r1; heartbeat publish=x rid=r1;"
       "heartbeat publish=y rid=r2; heartbeat publish=x rid=r1; heartbeat publish=z; heartbeat publish=z;"
       "stream wf says=0:x+1:y+2:z+3:z/4; acomplete; heartbeat publish=late => not_found; stream wf from=4 says=/4")

/* A record is no report of progress: the details stay. */
static void the_details_of_a_heartbeat_stay(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 beat=1m retries=3 initial=1s; apoll; heartbeat details=half;"
                    "time 50s; heartbeat publish=x; time 50s; heartbeat publish=y; time 61s; time 1s; apoll as=b");
    const hf_pb_poll_activity_task_queue_response *task = hf_rig_activity(&rig, "b");
    assert_int_equal(task->attempt, 2);
    assert_non_null(task->heartbeat_details);
    hf_rig_do(&rig, "stream wf says=0:x+1:y/2");
}

SCRIPT(a_task_that_is_not_completed_publishes_nothing,
       "start wf; poll; signal wf s; complete publish=lost done => invalid; stream wf says=/0; poll;"
       "complete publish=a activity a1; stream wf says=0:a/1; apoll; acomplete; poll; time 11s;"
       "complete publish=late => not_found; stream wf from=1 says=/1; poll; complete publish=b done; stream wf from=1 "
       "says=1:b/2;"
       "stream wf from=2 says=/2.")

SCRIPT(
    numbers_go_on_over_a_chain,
    "start wf; poll; complete publish=a+b continue; poll; complete continue; poll; complete publish=c continue; poll;"
    "complete publish=d done; stream wf says=0:a+1:b/2; stream wf from=2 says=2:c/3; stream wf from=3 says=3:d/4;"
    "stream wf from=4 says=/4.")

SCRIPT(numbers_go_on_over_retries_and_schedules,
       "start wf initial=1s retries=3; poll; complete publish=a failed; time 1s; poll; complete publish=b done;"
       "stream wf says=0:a/1; stream wf from=1 says=1:b/2; stream wf from=2 says=/2.;"
       "start cr cron=*_*_*_*_*; time 1m; poll; complete publish=a done; time 1m; poll; complete publish=b timer t 1h;"
       "stream cr says=0:a/1; stream cr from=1 says=1:b/2")

static void everything_is_the_same_from_rows(void **state)
{
    in_rows();
    numbers_go_on_over_a_chain(state);
    in_rows();
    numbers_go_on_over_retries_and_schedules(state);
    in_rows();
    an_activity_publishes_while_it_runs(state);
    in_rows();
    hf_rig_do(
        &rig,
        "start wf; poll; complete publish=a+b+c timer t 1s; crash; time 1s; poll; complete publish=d+e timer u 1s;"
        "crash; stream wf says=0:a+1:b+2:c+3:d+4:e/5; stream wf from=1 max=2 says=1:b+2:c/3; crash;"
        "stream wf from=4 says=4:e/5");
    assert_true(hf_rig_probe(&rig, HF_PROBE_STREAM_FROM_ROWS) > 0);
}

static void a_page_has_a_bound(void **state)
{
    for (int round = 0; round < 2; round++) {
        hf_rig_do(
            &rig,
            "start wf; poll; complete publish=a+b+c+d size=100 timer t 1h; stream wf max=1 says=0:a/1;"
            "stream wf from=1 max=2 says=1:b+2:c/3; stream wf bytes=1 says=0:a/1; stream wf bytes=300 says=0:a+1:b/2;"
            "stream wf from=3 max=5 bytes=1 says=3:d/4");
        in_rows();
    }
    (void)state;
}

SCRIPT(
    a_reader_is_woken_by_the_commit,
    "start wf; poll; stream wf wait => parked; stream wf wait from=1 as=s1 => parked; signal wf x; is s => parked;"
    "complete publish=a timer t 1h; is s says=0:a/1; is s1 => parked; poll; complete publish=b done; is s1 says=1:b/2;"
    "stream wf wait from=2 says=/2.")

static void nobody_is_told_before_the_commit(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; stream wf wait => parked");
    rig.hold = true;
    hf_rig_call *slot = hf_rig_slot(&rig, "s");
    (void)hf_rig_step(&rig, "complete publish=a timer t 1h");
    assert_false(slot->done); /* engine-T2 */
    hf_rig_call *late = hf_rig_step(&rig, "stream wf as=l");
    assert_false(late->done);
    rig.hold = false;
    hf_rig_settle(&rig);
    hf_rig_do(&rig, "is s says=0:a/1; is l says=0:a/1");
}

/* engine-E1: its answer names a run, which a crash could undo. */
static void a_wait_at_a_run_that_is_not_durable_ends_with_the_commit(void **state)
{
    (void)state;
    rig.hold = true;
    (void)hf_rig_step(&rig, "start wf");
    hf_rig_call *slot = hf_rig_step(&rig, "stream wf wait timeout=1s");
    hf_store_request *commit = hf_core_seal(rig.core, rig.now);
    assert_non_null(commit);
    rig.now.mono += hf_seconds(1).ns;
    hf_core_tick(rig.core, rig.now);
    assert_false(slot->done);
    hf_store_execute(rig.store, commit);
    hf_core_done(rig.core, commit, rig.now);
    rig.hold = false;
    hf_rig_settle(&rig);
    hf_rig_do(&rig, "is s says=/0");
}

SCRIPT(a_reader_that_waits_goes_on_with_the_next_run,
       "start wf; poll; complete publish=a timer t 1h; signal wf s; poll; stream wf wait from=1 => parked; complete "
       "continue; is s => parked;"
       "poll; complete publish=b timer t 1h; is s says=1:b/2; stream wf wait from=2 => parked; terminate wf; is s "
       "says=/2.")

static void a_reader_of_a_run_follows_its_chain_alone(void **state)
{
    (void)state;
    char step[200];
    for (int round = 0; round < 2; round++) {
        hf_rig_call *slot = hf_rig_step(&rig, "start wf");
        const hf_pb_start_workflow_execution_response *started = slot->call.response;
        char first[40];
        (void)snprintf(first, sizeof first, "%.*s", HF_STR_ARGS(started->run_id));
        hf_rig_do(&rig, "poll; complete publish=a continue; poll; complete continue; poll; complete publish=b done;"
                        "start wf; poll; complete publish=other timer t 1h");
        (void)snprintf(step, sizeof step, "stream wf says=0:other/1; stream wf run_id=%s says=0:a/1", first);
        hf_rig_do(&rig, step);
        (void)snprintf(step, sizeof step, "stream wf run_id=%s from=1 says=1:b/2", first);
        hf_rig_do(&rig, step);
        (void)snprintf(step, sizeof step, "stream wf run_id=%s from=2 wait says=/2.", first);
        hf_rig_do(&rig, step);
        assert_true(hf_rig_probe(&rig, HF_PROBE_STREAM_FOLLOWED) > 0);
        in_rows();
    }
}

/* More runs with records than a state names. */
static void a_long_chain_is_read_from_its_beginning(void **state)
{
    (void)state;
    in_rows();
    enum { RUNS = 3 * HF_STREAM_STOPS_MAX + 5 };
    hf_rig_do(&rig, "start wf");
    for (int i = 0; i < RUNS; i++) {
        char step[80];
        (void)snprintf(step, sizeof step, "poll; complete publish=r%d continue", i);
        hf_rig_do(&rig, step);
    }
    for (int i = 0; i < RUNS; i++) {
        char step[80];
        (void)snprintf(step, sizeof step, "stream wf from=%d says=%d:r%d/%d", i, i, i, i + 1);
        hf_rig_do(&rig, step);
    }
    assert_true(hf_rig_probe(&rig, HF_PROBE_STREAM_FAR) > 0);
}

/* Records are gone with their run: readers are told where the next ones are. */
static void records_go_with_their_run(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        hf_rig_call *slot = hf_rig_step(&rig, "start wf");
        const hf_pb_start_workflow_execution_response *started = slot->call.response;
        char step[200];
        (void)snprintf(step, sizeof step, "delete wf run_id=%.*s", HF_STR_ARGS(started->run_id));
        hf_rig_do(&rig,
                  "poll; complete publish=a+b continue; poll; complete publish=c timer t 1h; stream wf says=0:a+1:b/2");
        hf_rig_do(&rig, step);
        hf_rig_do(&rig, "stream wf says=/2!; stream wf from=1 says=/2!; stream wf from=2 says=2:c/3");
        assert_true(hf_rig_probe(&rig, HF_PROBE_STREAM_GAP) > 0);
        in_rows();
    }
}

/* The new run goes on behind the last record, so that nobody sees two records with one number. */
SCRIPT(a_reset_goes_on_behind_the_last_record,
       "start wf; poll; complete publish=a timer t 1s; time 1s; poll; complete publish=b timer u 1h; stream wf wait "
       "from=2 => parked;"
       "reset wf first; is s => parked; poll; complete publish=c timer t 1s; is s says=2:c/3; stream wf says=0:a+1:b/2;"
       "stream wf from=2 says=2:c/3")

static void a_stream_has_limits(void **state)
{
    (void)state;
    again(&(hf_core_options){.limits = {.stream_count = 3, .stream_len = 1000, .payload_len = 400}});
    hf_rig_do(
        &rig,
        "start wf; poll; complete publish=a size=401 timer t 1h => invalid; poll; complete publish=a+b activity a1;"
        "apoll; heartbeat publish=c size=500 => too_big; heartbeat publish=c; heartbeat publish=d => limit;"
        "stream wf says=0:a+1:b+2:c/3; signal wf s; poll; complete publish=d+e+f+g timer t 1h => invalid; poll;"
        "complete publish=d+e+f timer t 1h; stream wf from=5 says=5:f/6");
    assert_true(rig.core->probes[HF_PROBE_STREAM_FULL] > 0);
}

SCRIPT(a_wait_ends,
       "start wf; poll; stream wf wait timeout=5s => parked; time 4s; is s => parked; time 1s; is s says=/0;"
       "stream wf wait => parked; drop s; is s => canceled")

/* The worker is told what earlier runs have: its own count begins there. */
static void a_task_says_what_the_stream_has(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete publish=a+b continue; poll");
    assert_int_equal(hf_rig_task(&rig, "w")->holdfast_stream_count, 2);
    assert_true(hf_rig_task(&rig, "w")->holdfast_stream_len > 0);
    hf_rig_do(&rig, "complete publish=c timer t 1s; time 1s; poll");
    assert_int_equal(hf_rig_task(&rig, "w")->holdfast_stream_count, 2);
}

/* `db check` finds a row that is missing, and one that is not where it belongs. */
static void a_check_finds_lost_records(void **state)
{
    (void)state;
    in_rows();
    hf_rig_do(&rig, "start wf; poll; complete publish=a+b+c timer t 1h; signal wf s");
    hf_check_report report;
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_check_store(&op, hf_rig_heap, rig.store, &(hf_check_options){.deep = true}, &report), HF_OK);
    assert_int_equal(report.damages, 0);
    behind((hf_write){.table = HF_TABLE_HISTORY, .kind = HF_WRITE_DELETE, .key = {.a = 1, .b = HF_STREAM_BASE + 1}});
    assert_int_equal(hf_check_store(&op, hf_rig_heap, rig.store, &(hf_check_options){.deep = true}, &report), HF_OK);
    assert_true(report.damages > 0);
    hf_rig_do(&rig, "crash; stream wf from=0 max=1 says=0:a/1; stream wf from=1 => store");
}

/* Without an engine, a tool sees the same. */
static void a_file_at_rest_shows_its_stream(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        hf_rig_call *slot = hf_rig_step(&rig, "start wf");
        const hf_pb_start_workflow_execution_response *started = slot->call.response;
        char step[200];
        (void)snprintf(step, sizeof step, "delete wf run_id=%.*s", HF_STR_ARGS(started->run_id));
        hf_rig_do(&rig, "poll; complete publish=a+b continue; poll; complete publish=c continue; poll;"
                        "complete publish=d+e timer t 1h");
        for (int deleted = 0; deleted < 2; deleted++) {
            hf_op op;
            hf_op_init(&op);
            hf_look *look = NULL;
            int64_t number = 0;
            int64_t at = 0;
            bool is_end = false;
            int found = 0;
            assert_int_equal(hf_look_open(&op, hf_rig_heap, rig.store, &look), HF_OK);
            assert_int_equal(hf_look_find(&op, look, HF_STR(HF_RIG_NS), HF_STR("wf"), &number), HF_OK);
            while (!is_end) {
                hf_buf out;
                hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
                int64_t next = 0;
                assert_int_equal(hf_look_stream(&op, look, number, at, 1, &out, &next, &is_end), HF_OK);
                assert_true(is_end || next > at);
                found += out.len > 0;
                at = next;
                hf_buf_deinit(&out);
            }
            assert_int_equal(at, 5);
            assert_int_equal(found, deleted == 0 ? 5 : 3);
            hf_look_close(look);
            hf_rig_do(&rig, deleted == 0 ? step : "describe wf");
        }
        in_rows();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_task_publishes_with_its_answer),
        TEST(an_activity_publishes_while_it_runs),
        TEST(the_details_of_a_heartbeat_stay),
        TEST(a_task_that_is_not_completed_publishes_nothing),
        TEST(numbers_go_on_over_a_chain),
        TEST(numbers_go_on_over_retries_and_schedules),
        TEST(everything_is_the_same_from_rows),
        TEST(a_page_has_a_bound),
        TEST(a_reader_is_woken_by_the_commit),
        TEST(nobody_is_told_before_the_commit),
        TEST(a_wait_at_a_run_that_is_not_durable_ends_with_the_commit),
        TEST(a_reader_that_waits_goes_on_with_the_next_run),
        TEST(a_reader_of_a_run_follows_its_chain_alone),
        TEST(a_long_chain_is_read_from_its_beginning),
        TEST(records_go_with_their_run),
        TEST(a_reset_goes_on_behind_the_last_record),
        TEST(a_stream_has_limits),
        TEST(a_wait_ends),
        TEST(a_task_says_what_the_stream_has),
        TEST(a_check_finds_lost_records),
        TEST(a_file_at_rest_shows_its_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
