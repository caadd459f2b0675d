/* Activities as somebody outside of their workflow sees and changes them: answered by id, paused, reset, with other options; heartbeats
 * that have nothing new. */
#include "unit/engine/fixture.h"

#define TASK                                                          \
    "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1\n" \
    "3 WorkflowTaskStarted scheduled=2\n4 WorkflowTaskCompleted scheduled=2 started=3\n"
#define ONE TASK "5 ActivityTaskScheduled a1\n"
#define DONE(attempt)                                                                                        \
    "6 ActivityTaskStarted scheduled=5 attempt=" attempt "\n7 ActivityTaskCompleted scheduled=5 started=6\n" \
    "8 WorkflowTaskScheduled attempt=1\n"

static const hf_pb_pending_activity_info *pending(const char *id, size_t index)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_describe_workflow_execution_request *request = HF_RIG_REQUEST(slot, describe_workflow_execution);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = hf_str_of(id);
    hf_rig_send(&rig, slot, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, request);
    assert_int_equal(slot->call.status, HF_OK);
    const hf_pb_describe_workflow_execution_response *response = slot->call.response;
    assert_true(index < response->pending_activities.count);
    return &response->pending_activities.items[index];
}

/* ---- By id --------------------------------------------------------------------------------------------------------- */

static void an_activity_is_answered_by_its_id(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1, activity a2, activity a3; apoll; apoll as=b; apoll as=c;"
                    "heartbeat by=wf/a1 details=half; acomplete by=wf/a1; afail by=wf/a2 final;"
                    "acancel by=wf/a3 => invalid; acomplete by=wf/none => not_found; acomplete by=none/a1 => not_found;"
                    "acomplete by=wf/ => invalid; acomplete by=wf/a1 => not_found; acomplete of=a => not_found");
    hf_rig_history(&rig, "wf",
                   TASK "5 ActivityTaskScheduled a1\n6 ActivityTaskScheduled a2\n7 ActivityTaskScheduled a3\n"
                        "8 ActivityTaskStarted scheduled=5 attempt=1\n9 ActivityTaskCompleted scheduled=5 started=8\n"
                        "10 WorkflowTaskScheduled attempt=1\n11 ActivityTaskStarted scheduled=6 attempt=1\n"
                        "12 ActivityTaskFailed scheduled=6 started=11 failure=Oops NonRetryableFailure\n");
}

static void an_activity_that_waits_is_completed_by_its_id(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete activity a1; heartbeat by=wf/a1 => not_found; afail by=wf/a1 => not_found;"
              "acancel by=wf/a1 => not_found; acomplete by=wf/a1; apoll => parked; crash");
    hf_rig_history(&rig, "wf", ONE DONE("1"));
    hf_rig_do(&rig,
              "start w2; poll as=x; poll as=y; complete of=y activity a1; apoll; afail; acomplete by=w2/a1; time 10s;"
              "apoll => parked"); /* its next attempt does not come */
    hf_rig_do(&rig, "start w3 queue=z; poll queue=z as=z; complete of=z activity a1; apause w3 a1; acomplete by=w3/a1");
}

static void an_id_of_a_closed_run_is_not_found(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; terminate wf; acomplete by=wf/a1 => not_found;"
                    "apause wf a1 => not_found");
}

static void an_activity_whose_end_is_buffered_is_not_answered_again(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; signal wf s; poll; acomplete by=wf/a1;"
                    "acomplete by=wf/a1 => not_found; apause wf a1 => not_found; complete");
}

/* ---- Pause ----------------------------------------------------------------------------------------------------------- */

static void a_paused_activity_waits(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 start=5s close=20s; apause wf a1 request=r; apoll => parked");
    const hf_pb_pending_activity_info *info = pending("wf", 0);
    assert_int_equal(info->state, HF_PENDING_ACTIVITY_STATE_PAUSED);
    assert_true(info->paused && info->pause_info != NULL);
    assert_true(hf_str_equal(info->pause_info->manual->reason, HF_STR("a break")));
    hf_rig_do(&rig, "apause wf a1 request=r; apause wf a1 request=other => not_ready; time 10s; crash; is a => closed;"
                    "apoll => parked; aunpause wf a1; is a; aunpause wf a1; acomplete");
    hf_rig_history(&rig, "wf", ONE DONE("1"));
}

static void an_attempt_that_runs_when_it_is_paused_goes_on(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 initial=1s beat=2s retries=2; apoll; apause wf a1");
    assert_int_equal(pending("wf", 0)->state, HF_PENDING_ACTIVITY_STATE_PAUSE_REQUESTED);
    hf_rig_do(&rig, "heartbeat paused; time 10s; heartbeat paused; afail; time 10s; apoll => parked");
    const hf_pb_pending_activity_info *info = pending("wf", 0);
    assert_int_equal(info->state, HF_PENDING_ACTIVITY_STATE_PAUSED);
    assert_int_equal(info->attempt, 2);
    assert_non_null(info->last_failure);
    hf_rig_do(&rig, "aunpause wf a1; is a; acomplete");
    hf_rig_history(&rig, "wf", ONE DONE("2"));
    hf_rig_do(&rig, "start w2; poll as=x; poll as=y; complete of=y activity a1; apoll; apause w2 a1; acomplete");
}

static void a_pause_ends_with_the_activity(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete activity a1; apause wf type=act; signal wf s; poll; complete unactivity 5");
    hf_rig_history(&rig, "wf",
                   ONE "6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                       "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                       "10 ActivityTaskCancelRequested scheduled=5\n11 ActivityTaskCanceled scheduled=5\n"
                       "12 WorkflowTaskScheduled attempt=1\n");
}

static void a_task_that_comes_back_does_not_run_while_it_is_paused(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll; apause wf a1; unwanted a; apoll as=b => parked");
    assert_int_equal(pending("wf", 0)->state, HF_PENDING_ACTIVITY_STATE_PAUSED);
    hf_rig_do(&rig,
              "aunpause wf all; is b; acomplete of=b; start w2; poll as=x; poll as=y; complete of=y activity a1; apoll;"
              "unwanted a; apause w2 a1; apoll as=c => parked; aunpause w2 a1; is c; acomplete of=c");
}

static void a_worker_that_dies_leaves_a_paused_activity_paused(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete activity a1; apoll in_process; apause wf a1; crash; time 10s; apoll => parked");
    assert_int_equal(pending("wf", 0)->attempt, 2);
    hf_rig_do(&rig, "aunpause wf a1 attempts; is a; acomplete");
    hf_rig_history(&rig, "wf", ONE DONE("1"));
}

static void an_unpaused_activity_may_be_too_late(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 close=20s; apause wf a1; time 30s; aunpause wf a1");
    hf_rig_history(&rig, "wf",
                   ONE "6 ActivityTaskTimedOut scheduled=5 timeout=ScheduleToClose Timeout\n"
                       "7 WorkflowTaskScheduled attempt=1\n");
}

/* ---- Reset ----------------------------------------------------------------------------------------------------------- */

static void a_reset_activity_begins_anew(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 initial=1h retries=2; apoll; heartbeat details=half; afail;"
                    "areset wf a1 heartbeats; apoll");
    assert_null(hf_rig_activity(&rig, "a")->heartbeat_details);
    assert_int_equal(hf_rig_activity(&rig, "a")->attempt, 1);
    hf_rig_do(&rig, "acomplete; areset wf a1 => not_found");
    hf_rig_history(&rig, "wf", ONE DONE("1"));
}

static void an_attempt_that_runs_is_told_of_a_reset(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete activity a1 initial=1s; apoll; afail; time 1s; apoll; heartbeat details=half;"
              "areset wf all heartbeats; heartbeat details=more reset; crash; heartbeat details=x reset; afail;"
              "time 1s; apoll");
    assert_null(hf_rig_activity(&rig, "a")->heartbeat_details);
    assert_int_equal(hf_rig_activity(&rig, "a")->attempt, 2);
    hf_rig_do(&rig, "heartbeat; acomplete");
}

static void a_reset_may_leave_it_paused(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 initial=1h; apoll; afail; apause wf a1; areset wf a1 paused;"
                    "apoll => parked");
    assert_int_equal(pending("wf", 0)->attempt, 1);
    hf_rig_do(&rig, "areset wf a1; is a; acomplete");
}

/* ---- Options --------------------------------------------------------------------------------------------------------- */

static void other_options_count_at_once(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 initial=1h retries=5; apoll; afail; time 500ms;"
                    "aoptions wf a1 initial=1s each=20s; apoll => parked; time 500ms; is a; crash; time 20s");
    const hf_pb_pending_activity_info *info = pending("wf", 0);
    assert_int_equal(info->attempt, 3);
    assert_int_equal(info->activity_options->start_to_close_timeout.seconds, 20);
    hf_rig_do(&rig, "time 2s; apoll queue=q2 => parked; aoptions wf a1 queue=q2; is a; acomplete");
}

static void options_can_be_restored(void **state)
{
    (void)state;
    hf_rig_do(
        &rig,
        "start wf; poll; complete activity a1 each=60s; aoptions wf all each=1s queue=far beat=500ms;"
        "apoll => parked; aoptions wf a1 original; is a; time 2s; acomplete; aoptions wf a1 original => not_found");
    hf_rig_do(&rig,
              "start w2; poll as=x; poll as=y; complete of=y activity a1 each=60s; aoptions w2 a1 each=1s queue=far;"
              "apoll => parked; areset w2 a1 original; is a; time 2s; acomplete");
}

/* A task that no worker took waits in the queue that its options name, in memory and on disk. */
static void a_task_that_comes_back_moves_to_the_queue_of_its_options(void **state)
{
    (void)state;
    const hf_core_options options[] = {{.mem_max = 0}, {.mem_max = 1}};
    for (size_t i = 0; i < HF_COUNT_OF(options); i++) {
        again(&options[i]);
        hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll; unwanted a; aoptions wf a1 queue=q2;"
                        "apoll as=b => parked; apoll queue=q2 as=c");
        assert_true(hf_str_equal(hf_rig_activity(&rig, "a")->task_token, hf_rig_activity(&rig, "c")->task_token));
        hf_rig_do(&rig, "unwanted c; areset wf a1 original; is b; unwanted b; apoll queue=q3 as=d => parked;"
                        "aoptions wf a1 queue=q3; is d; unwanted d; aoptions wf a1 queue=q4; crash;"
                        "apoll queue=q3 as=e => parked; apoll queue=q4 as=f; acomplete of=f");
        hf_rig_history(&rig, "wf", ONE DONE("1"));
    }
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete activity a1 each=60s; aoptions wf a1 each=0s => invalid;"
              "aoptions wf a1 each=5s original => invalid; aoptions wf none each=5s => not_found;"
              "aoptions wf type=other each=5s => not_found; aoptions wf a1 initial=1000h => invalid; apoll; acomplete");
}

/* ---- Heartbeats ------------------------------------------------------------------------------------------------------ */

static void a_heartbeat_with_nothing_new_is_not_written(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 beat=10s retries=1; apoll; heartbeat details=half");
    uint64_t commits = rig.commits;
    hf_rig_do(&rig,
              "time 8s; heartbeat details=half; time 8s; heartbeat details=half; time 8s; heartbeat details=half");
    assert_int_equal(rig.commits, commits);
    assert_true(hf_rig_probe(&rig, HF_PROBE_HEARTBEAT_UNWRITTEN) == 3);
    hf_rig_do(&rig,
              "crash; time 8s; heartbeat details=half; crash; time 9s"); /* its time begins again with an opening */
    assert_int_equal(pending("wf", 0)->state, HF_PENDING_ACTIVITY_STATE_STARTED);
    hf_rig_do(&rig, "time 1s");
    hf_rig_history(&rig, "wf",
                   ONE "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                       "7 ActivityTaskTimedOut scheduled=5 started=6 timeout=Heartbeat MaximumAttemptsReached\n"
                       "8 WorkflowTaskScheduled attempt=1\n");
}

static void a_run_with_an_unwritten_heartbeat_stays_in_memory(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1, .ended_max = 1});
    hf_rig_do(&rig, "start wf; poll; complete activity a1 beat=10s; apoll; time 8s; heartbeat; start other; time 8s");
    assert_int_equal(pending("wf", 0)->attempt, 1);
    assert_int_equal(pending("wf", 0)->state, HF_PENDING_ACTIVITY_STATE_STARTED);
    hf_rig_do(&rig, "acomplete");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

static const struct CMUnitTest TESTS[] = {
    TEST(an_activity_is_answered_by_its_id),
    TEST(an_activity_that_waits_is_completed_by_its_id),
    TEST(an_id_of_a_closed_run_is_not_found),
    TEST(an_activity_whose_end_is_buffered_is_not_answered_again),
    TEST(a_paused_activity_waits),
    TEST(an_attempt_that_runs_when_it_is_paused_goes_on),
    TEST(a_pause_ends_with_the_activity),
    TEST(a_task_that_comes_back_does_not_run_while_it_is_paused),
    TEST(a_worker_that_dies_leaves_a_paused_activity_paused),
    TEST(an_unpaused_activity_may_be_too_late),
    TEST(a_reset_activity_begins_anew),
    TEST(an_attempt_that_runs_is_told_of_a_reset),
    TEST(a_reset_may_leave_it_paused),
    TEST(other_options_count_at_once),
    TEST(options_can_be_restored),
    TEST(a_task_that_comes_back_moves_to_the_queue_of_its_options),
    TEST(options_that_make_no_sense_are_refused),
    TEST(a_heartbeat_with_nothing_new_is_not_written),
    TEST(a_run_with_an_unwritten_heartbeat_stays_in_memory),
};

int main(int argc, char **argv)
{
    return hf_test_main("control", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
