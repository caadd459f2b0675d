/* Activities: timeouts, retries, heartbeats, cancels, lost workers. */
#include "fixture.h"

#include <stdio.h>

/* ---- Four timeouts -------------------------------------------------------------------------------------------------- */

GOLDEN(schedule_to_start_ends_an_activity_nobody_takes,
       "start wf; poll; complete activity a1 start=5s each=1m; time 5s",
       FIRST_ACTIVITY "6 ActivityTaskTimedOut scheduled=5 timeout=ScheduleToStart Timeout\n"
                      "7 WorkflowTaskScheduled attempt=1\n")

GOLDEN(
    start_to_close_ends_an_attempt_and_the_next_one_follows,
    "start wf; poll; complete activity a1 each=5s; apoll; time 5s; acomplete => not_found; time 1s; apoll; acomplete",
    FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=2 timeout=StartToClose\n"
                   "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_last_attempt_that_times_out_is_the_outcome,
       "start wf; poll; complete activity a1 each=5s retries=1; apoll; time 5s",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "7 ActivityTaskTimedOut scheduled=5 started=6 timeout=StartToClose MaximumAttemptsReached\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(schedule_to_close_bounds_everything,
       "start wf; poll; complete activity a1 close=5s; apoll; time 4s; heartbeat; time 1s",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "7 ActivityTaskTimedOut scheduled=5 started=6 timeout=ScheduleToClose Timeout\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(schedule_to_close_ends_an_activity_between_attempts,
       "start wf; poll; complete activity a1 close=5s initial=3s; apoll; time 1s; afail; time 4s",
       FIRST_ACTIVITY "6 ActivityTaskTimedOut scheduled=5 timeout=ScheduleToClose because failure=Oops Timeout\n"
                      "7 WorkflowTaskScheduled attempt=1\n")

GOLDEN(schedule_to_start_of_a_later_attempt_tells_what_went_wrong_before,
       "start wf; poll; complete activity a1 start=5s each=1m; apoll; afail; time 1s; crash; time 5s",
       FIRST_ACTIVITY "6 ActivityTaskTimedOut scheduled=5 timeout=ScheduleToStart because failure=Oops Timeout\n"
                      "7 WorkflowTaskScheduled attempt=1\n")

/* The last attempt timed out, but what ended the activity is that there is no time for another. */
GOLDEN(an_attempt_that_times_out_without_time_for_another_is_schedule_to_close,
       "start wf; poll; complete activity a1 close=10s each=6s initial=5s; apoll; time 6s",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "7 ActivityTaskTimedOut scheduled=5 started=6 timeout=ScheduleToClose Timeout\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(the_last_attempts_timeout_tells_of_the_one_before,
       "start wf; poll; complete activity a1 each=5s retries=2; apoll; afail; time 1s; apoll; time 5s",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=2 failure=Oops\n"
                      "7 ActivityTaskTimedOut scheduled=5 started=6 timeout=StartToClose because failure=Oops "
                      "MaximumAttemptsReached\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_timeout_of_an_activity_that_is_to_be_canceled_says_so,
       "start wf; poll; complete activity a1 close=5s; apoll; signal wf s; poll; complete unactivity 5; time 5s",
       FIRST_ACTIVITY "6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                      "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                      "10 ActivityTaskCancelRequested scheduled=5\n11 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "12 ActivityTaskTimedOut scheduled=5 started=11 timeout=StartToClose CancelRequested\n"
                      "13 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_retry_that_would_come_too_late_is_not_made,
       "start wf; poll; complete activity a1 close=5s initial=5s; apoll; time 1s; afail",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "7 ActivityTaskFailed scheduled=5 started=6 failure=Oops Timeout\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(silence_ends_an_attempt_that_promised_heartbeats,
       "start wf; poll; complete activity a1 each=1m beat=5s; apoll; time 4s; heartbeat; time 4s; heartbeat; time 5s;"
       "heartbeat => not_found; time 1s; apoll; acomplete",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=2 timeout=Heartbeat\n"
                      "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n")

#define MOST " timeout=120s\n"
GOLDEN(
    timeouts_as_long_as_the_wire_can_say_never_come,
    "start wf run=never exec=never task=never; poll; complete sticky=s sticky_for=never activity a1 close=never "
    "initial=never,"
    "timer t never; apoll; afail; signal wf s; poll; time 3650d",
    "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1" MOST "3 WorkflowTaskStarted scheduled=2\n"
    "4 WorkflowTaskCompleted scheduled=2 started=3\n5 ActivityTaskScheduled a1\n6 TimerStarted t after=9.22337e+09s\n"
    "7 ActivityTaskStarted scheduled=5 attempt=1\n8 ActivityTaskFailed scheduled=5 started=7 failure=Oops Timeout\n"
    "9 WorkflowTaskScheduled attempt=1" MOST "10 WorkflowExecutionSignaled s\n11 WorkflowTaskStarted scheduled=9\n"
    "12 WorkflowTaskTimedOut scheduled=9 started=11 StartToClose\n13 WorkflowTaskScheduled attempt=1" MOST)

/* ---- Retries -------------------------------------------------------------------------------------------------------- */

static void the_pause_doubles_and_stays_below_its_bound(void **state)
{
    (void)state;
    static const char *const PAUSES[] = {"2s", "4s", "8s"};
    hf_rig_do(&rig, "start wf; poll; complete activity a1 initial=2s; apoll");
    for (size_t i = 0; i < HF_COUNT_OF(PAUSES); i++) {
        char step[128];
        int64_t almost = hf_rig_span(PAUSES[i]) / 1000000 - 1;
        (void)snprintf(step, sizeof step, "afail; apoll => parked; time %lldms; is a => parked; time 1ms; is a",
                       (long long)almost);
        hf_rig_do(&rig, step);
        assert_int_equal(hf_rig_activity(&rig, "a")->attempt, (int)i + 2);
    }
    for (int i = 0; i < 4; i++) { /* 16 s to 128 s */
        hf_rig_do(&rig, "afail; time 128s; apoll");
    }
    hf_rig_do(&rig, "afail; time 199s; apoll => parked; time 1s; is a"); /* a hundred times the first at most */
}

GOLDEN(a_failure_may_name_its_own_pause,
       "start wf; poll; complete activity a1 initial=1s; apoll; afail delay=1h; time 3599s; apoll => parked; time 1s;"
       "is a; acomplete",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=2 failure=Oops\n"
                      "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_pause_of_nothing_ends_the_activity, "start wf; poll; complete activity a1 initial=1s; apoll; afail delay=0s",
       FIRST_ACTIVITY
       "6 ActivityTaskStarted scheduled=5 attempt=1\n"
       "7 ActivityTaskFailed scheduled=5 started=6 failure=Oops Timeout\n8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_type_that_the_policy_names_is_not_retried,
       "start wf; poll; complete activity a1 never=Bad; apoll; afail type=Good; time 1s; apoll; afail type=Bad",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=2 failure=Good\n"
                      "7 ActivityTaskFailed scheduled=5 started=6 failure=Bad NonRetryableFailure\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(
    a_timeout_that_the_policy_names_is_not_retried,
    "start wf; poll; complete activity a1 each=5s never=TemporalTimeout:StartToClose, "
    "activity a2 each=1m beat=5s never=TemporalTimeout:StartToClose; apoll; apoll as=b; time 5s; time 1s; apoll as=c",
    FIRST_ACTIVITY "6 ActivityTaskScheduled a2\n7 ActivityTaskStarted scheduled=5 attempt=1\n"
                   "8 ActivityTaskTimedOut scheduled=5 started=7 timeout=StartToClose NonRetryableFailure\n"
                   "9 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_failure_that_says_so_is_not_retried, "start wf; poll; complete activity a1; apoll; afail final",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "7 ActivityTaskFailed scheduled=5 started=6 failure=Oops NonRetryableFailure\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(the_last_attempt_is_the_last,
       "start wf; poll; complete activity a1 retries=2; apoll; afail; time 1s; apoll; afail",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=2 failure=Oops\n"
                      "7 ActivityTaskFailed scheduled=5 started=6 failure=Oops MaximumAttemptsReached\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(an_activity_that_is_to_be_canceled_is_not_retried,
       "start wf; poll; complete activity a1; apoll; signal wf s; poll; complete unactivity 5; afail",
       FIRST_ACTIVITY "6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                      "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                      "10 ActivityTaskCancelRequested scheduled=5\n11 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "12 ActivityTaskFailed scheduled=5 started=11 failure=Oops CancelRequested\n"
                      "13 WorkflowTaskScheduled attempt=1\n")

GOLDEN(a_cancel_between_attempts_ends_it_at_once,
       "start wf; poll; complete activity a1 initial=1h; apoll; afail; signal wf s; poll; complete unactivity 5;"
       "time 1h; apoll => parked",
       FIRST_ACTIVITY "6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                      "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                      "10 ActivityTaskCancelRequested scheduled=5\n11 ActivityTaskCanceled scheduled=5\n"
                      "12 WorkflowTaskScheduled attempt=1\n")

GOLDEN(an_activity_that_is_canceled_before_it_started_ends_behind_all_commands,
       "start wf; poll; complete activity a1, activity a2; signal wf s; poll; signal wf s2;"
       "complete unactivity 6, timer t 1h, unactivity 5, marker m",
       FIRST_ACTIVITY "6 ActivityTaskScheduled a2\n7 WorkflowExecutionSignaled s\n8 WorkflowTaskScheduled attempt=1\n"
                      "9 WorkflowTaskStarted scheduled=8\n10 WorkflowTaskCompleted scheduled=8 started=9\n"
                      "11 ActivityTaskCancelRequested scheduled=6\n12 TimerStarted t after=3600s\n"
                      "13 ActivityTaskCancelRequested scheduled=5\n14 MarkerRecorded m\n"
                      "15 WorkflowExecutionSignaled s2\n16 ActivityTaskCanceled scheduled=5\n"
                      "17 ActivityTaskCanceled scheduled=6\n18 WorkflowTaskScheduled attempt=1\n")

GOLDEN(an_activity_that_is_canceled_before_it_started_ends_with_its_run,
       "start wf; poll; complete activity a1; signal wf s; poll; complete unactivity 5, done",
       FIRST_ACTIVITY "6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                      "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                      "10 ActivityTaskCancelRequested scheduled=5\n11 WorkflowExecutionCompleted\n")

GOLDEN(a_cancel_of_an_activity_whose_end_is_buffered_comes_too_late,
       "start wf; poll; complete activity a1; apoll; signal wf s; poll; acomplete; complete unactivity 5",
       FIRST_ACTIVITY "6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                      "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                      "10 ActivityTaskCancelRequested scheduled=5\n11 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "12 ActivityTaskCompleted scheduled=5 started=11\n13 WorkflowTaskScheduled attempt=1\n")

/* ---- Heartbeats ----------------------------------------------------------------------------------------------------- */

static hf_str details_of(const hf_pb_poll_activity_task_queue_response *task)
{
    return task->heartbeat_details != NULL && task->heartbeat_details->payloads.count == 1
               ? task->heartbeat_details->payloads.items[0].data
               : HF_STR("");
}

static void the_next_attempt_gets_the_last_details(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll; heartbeat details=one; heartbeat details=two; afail;"
                    "time 1s; apoll");
    assert_true(hf_str_equal(details_of(hf_rig_activity(&rig, "a")), HF_STR("two")));
    hf_rig_do(&rig, "afail details=three; time 2s; crash; apoll");
    assert_true(hf_str_equal(details_of(hf_rig_activity(&rig, "a")), HF_STR("three")));
    assert_int_equal(hf_rig_activity(&rig, "a")->attempt, 3);
}

/* The failure of the last event. */
static const hf_pb_failure *last_timeout(hf_arena *arena)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_history history;
    assert_int_equal(hf_pb_decode(&op, &hf_pb_history_type, hf_rig_history_bytes(&rig, "wf"), arena, &history), HF_OK);
    const hf_pb_failure *failure = NULL;
    for (size_t i = 0; i < history.events.count; i++) {
        if (history.events.items[i].event_type == HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT) {
            failure = history.events.items[i].activity_task_timed_out_event_attributes->failure;
        }
    }
    return failure;
}

static void a_timeout_carries_the_last_details_and_its_own_name(void **state)
{
    (void)state;
    static const struct {
        const char *activity;
        const char *message;
    } CASES[] = {
        {"close=5s", "activity ScheduleToClose timeout after 5 s: no time is left for another attempt"},
        {"each=5s retries=1", "activity StartToClose timeout after 5 s"},
        {"each=1m beat=5s retries=1", "activity Heartbeat timeout after 5 s"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[200];
        hf_arena arena;
        hf_arena_init(&arena, hf_rig_heap);
        (void)snprintf(text, sizeof text,
                       "start wf; poll; complete activity a1 %s; apoll; heartbeat details=half; time 5s",
                       CASES[i].activity);
        hf_rig_do(&rig, text);
        const hf_pb_failure *failure = last_timeout(&arena);
        assert_true(failure != NULL && hf_str_equal(failure->message, hf_str_of(CASES[i].message)));
        const hf_pb_payloads *details = failure->timeout_failure_info->last_heartbeat_details;
        assert_true(details != NULL && hf_str_equal(details->payloads.items[0].data, HF_STR("half")));
        hf_arena_deinit(&arena);
        hf_rig_do(&rig, "terminate wf");
    }
}

/* What every attempt says alike is said once; an attempt that failed in another way is the cause. */
static void a_timeout_that_was_repeated_is_told_once(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        const char *message;
        const char *cause; /* NULL = none */
    } CASES[] = {
        {"each=5s retries=3 initial=1s; apoll; time 5s; time 1s; apoll; time 5s; time 2s; apoll; time 5s",
         "activity StartToClose timeout after 5 s", NULL},
        {"each=1m beat=500ms retries=2 initial=1s; apoll; time 500ms; time 1s; apoll; time 500ms",
         "activity Heartbeat timeout after 0.5 s", NULL},
        {"each=5s beat=2s retries=2 initial=1s; apoll; time 2s; time 1s; apoll; time 1s; heartbeat; time 1s; heartbeat;"
         "time 1s; heartbeat; time 1s; heartbeat; time 1s",
         "activity StartToClose timeout after 5 s", "activity Heartbeat timeout after 2 s"},
        {"close=9s each=5s initial=1s; apoll; time 5s; time 1s; apoll; time 3s",
         "activity ScheduleToClose timeout after 9 s", "activity StartToClose timeout after 5 s"},
        {"close=10s each=5s initial=8s; apoll; time 5s",
         "activity ScheduleToClose timeout after 10 s: no time is left for another attempt", NULL},
        {"start=3s close=1h; time 3s", "activity ScheduleToStart timeout after 3 s", NULL},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        char text[400];
        hf_arena arena;
        hf_arena_init(&arena, hf_rig_heap);
        print_message("%s\n", CASES[i].script);
        (void)snprintf(text, sizeof text, "start wf; poll; complete activity a1 %s", CASES[i].script);
        hf_rig_do(&rig, text);
        const hf_pb_failure *failure = last_timeout(&arena);
        assert_non_null(failure);
        assert_memory_equal(failure->message.data, CASES[i].message, failure->message.len);
        assert_int_equal(failure->message.len, strlen(CASES[i].message));
        assert_true((failure->cause == NULL) == (CASES[i].cause == NULL));
        if (failure->cause != NULL) {
            assert_true(hf_str_equal(failure->cause->message, hf_str_of(CASES[i].cause)));
        }
        hf_arena_deinit(&arena);
        hf_rig_do(&rig, "terminate wf");
    }
}

/* ---- Times ---------------------------------------------------------------------------------------------------------- */

/* ns after the start of the run, of the ActivityTaskStarted event. */
static int64_t time_of_started(void)
{
    hf_arena arena;
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_rig_heap);
    hf_pb_history history;
    assert_int_equal(hf_pb_decode(&op, &hf_pb_history_type, hf_rig_history_bytes(&rig, "wf"), &arena, &history), HF_OK);
    int64_t first = hf_pb_timestamp_time(history.events.items[0].event_time).ns;
    int64_t span = -1;
    for (size_t i = 0; i < history.events.count; i++) {
        if (history.events.items[i].event_type == HF_EVENT_TYPE_ACTIVITY_TASK_STARTED) {
            span = hf_pb_timestamp_time(history.events.items[i].event_time).ns - first;
        }
    }
    hf_arena_deinit(&arena);
    return span;
}

static void the_started_event_tells_when_the_attempt_began(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; time 2s; apoll; time 3s; acomplete");
    assert_int_equal(time_of_started(), hf_seconds(2).ns);
}

static void the_started_event_tells_it_also_when_it_was_buffered(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "start wf; poll; complete activity a1; time 2s; apoll; signal wf s; poll; time 3s; acomplete; complete");
    assert_int_equal(time_of_started(), hf_seconds(2).ns);
}

/* ---- Holders that are gone ------------------------------------------------------------------------------------------ */

GOLDEN(an_attempt_of_a_worker_that_died_with_its_process_is_retried_at_open,
       "start wf; poll in_process; complete activity a1 initial=1h; apoll in_process as=old; crash; apoll;"
       "acomplete of=old => not_found; acomplete",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=2 failure=WorkerLost\n"
                      "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(the_last_attempt_of_a_worker_that_died_fails,
       "start wf; poll; complete activity a1 retries=1; apoll in_process; crash",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "7 ActivityTaskFailed scheduled=5 started=6 failure=WorkerLost MaximumAttemptsReached\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(an_attempt_that_was_given_back_is_not_lost_with_the_process,
       "start wf; poll; complete activity a1 retries=1; apoll in_process; unwanted a; crash; apoll; acomplete",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n7 ActivityTaskCompleted scheduled=5 started=6\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(an_attempt_of_a_worker_elsewhere_goes_on_over_a_restart,
       "start wf; poll; complete activity a1; apoll; crash; apoll as=x => parked; heartbeat; acomplete",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n7 ActivityTaskCompleted scheduled=5 started=6\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

/* HF_PENDING: see docs/adr/0021. */
GOLDEN(
    an_attempt_that_its_process_has_left_goes_on_over_a_crash,
    "start wf; poll; complete activity a1 retries=1; apoll in_process; heartbeat leaves; crash; apoll as=x => parked;"
    "crash; acomplete",
    FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n7 ActivityTaskCompleted scheduled=5 started=6\n"
                   "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(an_attempt_that_its_process_has_left_can_be_answered_by_its_id,
       "start wf; poll; complete activity a1 retries=1; apoll in_process; heartbeat leaves details=half; crash;"
       "heartbeat by=wf/a1; acomplete by=wf/a1",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n7 ActivityTaskCompleted scheduled=5 started=6\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(an_attempt_that_its_process_has_left_times_out_like_any_other,
       "start wf; poll; complete activity a1 each=5s retries=1; apoll in_process; heartbeat leaves; crash; time 5s;"
       "acomplete => not_found",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "7 ActivityTaskTimedOut scheduled=5 started=6 timeout=StartToClose MaximumAttemptsReached\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(the_attempt_after_one_that_its_process_has_left_is_lost_like_any_other,
       "start wf; poll; complete activity a1 retries=2 initial=1s; apoll in_process; heartbeat leaves; afail; time 1s;"
       "apoll in_process; crash",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=2 failure=Oops\n"
                      "7 ActivityTaskFailed scheduled=5 started=6 failure=WorkerLost MaximumAttemptsReached\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

static void what_a_process_leaves_keeps_the_details_of_the_last_heartbeat(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1 initial=1s; apoll in_process; heartbeat details=half;"
                    "heartbeat leaves; crash; afail; time 1s; apoll");
    const hf_pb_payloads *details = hf_rig_activity(&rig, "a")->heartbeat_details;
    assert_non_null(details);
    assert_true(hf_str_equal(details->payloads.items[0].data, HF_STR("half")));
}

static void an_answer_that_nobody_took_goes_to_the_next_poll_with_the_same_token(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll as=x; unwanted x; unwanted x; apoll as=y");
    hf_str x = hf_rig_activity(&rig, "x")->task_token;
    hf_str y = hf_rig_activity(&rig, "y")->task_token;
    assert_true(hf_str_equal(x, y));
    hf_rig_do(&rig, "unwanted y; crash; apoll as=z"); /* it waits again also after a crash */
    assert_true(hf_str_equal(x, hf_rig_activity(&rig, "z")->task_token));
    hf_rig_do(&rig, "acomplete of=z; apoll => parked");
    hf_rig_history(&rig, "wf",
                   FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                                  "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n");
}

GOLDEN(an_answer_that_nobody_took_may_still_time_out,
       "start wf; poll; complete activity a1 each=5s retries=1; apoll; unwanted a; time 5s; apoll => parked",
       FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                      "7 ActivityTaskTimedOut scheduled=5 started=6 timeout=StartToClose MaximumAttemptsReached\n"
                      "8 WorkflowTaskScheduled attempt=1\n")

GOLDEN(activities_of_a_closed_run_are_gone,
       "start wf; poll; complete activity a1, activity a2; apoll; terminate wf; acomplete => not_found;"
       "heartbeat => not_found; apoll as=x => parked",
       FIRST_ACTIVITY "6 ActivityTaskScheduled a2\n7 WorkflowExecutionTerminated 'enough'\n")

/* ---- Cancel commands that name nothing to cancel ------------------------------------------------------------------------ */

#define BAD_CANCEL "BadRequestCancelActivityAttributes\n"

static void a_cancel_that_names_another_event_fails_the_workflow_task(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"0", "1", "4", "6",
                                        "100"}; /* nothing, the start, a completed task, a timer, nothing */
    for (size_t i = 0; i < HF_COUNT_OF(NAMES); i++) {
        char script[200];
        (void)snprintf(script, sizeof script,
                       "start wf; poll; complete activity a1, timer t 1h; signal wf s; poll;"
                       "complete unactivity %s, marker m => invalid",
                       NAMES[i]);
        hf_rig_do(&rig, script);
        hf_rig_history(&rig, "wf",
                       FIRST_ACTIVITY "6 TimerStarted t after=3600s\n7 WorkflowExecutionSignaled s\n"
                                      "8 WorkflowTaskScheduled attempt=1\n9 WorkflowTaskStarted scheduled=8\n"
                                      "10 WorkflowTaskFailed scheduled=8 started=9 " BAD_CANCEL);
        hf_rig_do(&rig, "terminate wf");
    }
}

static void a_cancel_of_an_activity_that_has_ended_fails_the_workflow_task(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll; acomplete; poll; complete unactivity 5 => invalid");
    hf_rig_history(&rig, "wf",
                   FIRST_ACTIVITY "6 ActivityTaskStarted scheduled=5 attempt=1\n"
                                  "7 ActivityTaskCompleted scheduled=5 started=6\n8 WorkflowTaskScheduled attempt=1\n"
                                  "9 WorkflowTaskStarted scheduled=8\n"
                                  "10 WorkflowTaskFailed scheduled=8 started=9 " BAD_CANCEL);
}

static void a_second_cancel_of_an_activity_fails_the_workflow_task(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll; signal wf s; poll;"
                    "complete unactivity 5, unactivity 5 => invalid");
    hf_rig_history(&rig, "wf",
                   FIRST_ACTIVITY "6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                                  "8 WorkflowTaskStarted scheduled=7\n"
                                  "9 WorkflowTaskFailed scheduled=7 started=8 " BAD_CANCEL);
    hf_rig_do(&rig, "poll; complete force unactivity 5; poll; complete unactivity 5 => invalid");
    hf_rig_history(&rig, "wf",
                   FIRST_ACTIVITY "6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                                  "8 WorkflowTaskStarted scheduled=7\n"
                                  "9 WorkflowTaskFailed scheduled=7 started=8 " BAD_CANCEL
                                  "10 WorkflowTaskScheduled attempt=2\n11 WorkflowTaskStarted scheduled=10\n"
                                  "12 WorkflowTaskCompleted scheduled=10 started=11\n"
                                  "13 ActivityTaskCancelRequested scheduled=5\n14 WorkflowTaskScheduled attempt=1\n"
                                  "15 WorkflowTaskStarted scheduled=14\n"
                                  "16 WorkflowTaskFailed scheduled=14 started=15 " BAD_CANCEL);
}

/* Its workflow could not know: the request is an event as ever, and the outcome follows it. */
static void a_cancel_of_an_activity_whose_end_is_buffered_is_an_event(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a1; apoll; signal wf s; poll; acomplete; complete unactivity 5");
    hf_rig_history(&rig, "wf",
                   FIRST_ACTIVITY "6 WorkflowExecutionSignaled s\n7 WorkflowTaskScheduled attempt=1\n"
                                  "8 WorkflowTaskStarted scheduled=7\n9 WorkflowTaskCompleted scheduled=7 started=8\n"
                                  "10 ActivityTaskCancelRequested scheduled=5\n"
                                  "11 ActivityTaskStarted scheduled=5 attempt=1\n"
                                  "12 ActivityTaskCompleted scheduled=5 started=11\n"
                                  "13 WorkflowTaskScheduled attempt=1\n");
}

static const struct CMUnitTest TESTS[] = {
    TEST(schedule_to_start_ends_an_activity_nobody_takes),
    TEST(start_to_close_ends_an_attempt_and_the_next_one_follows),
    TEST(a_last_attempt_that_times_out_is_the_outcome),
    TEST(schedule_to_close_bounds_everything),
    TEST(schedule_to_close_ends_an_activity_between_attempts),
    TEST(schedule_to_start_of_a_later_attempt_tells_what_went_wrong_before),
    TEST(an_attempt_that_times_out_without_time_for_another_is_schedule_to_close),
    TEST(the_last_attempts_timeout_tells_of_the_one_before),
    TEST(a_timeout_of_an_activity_that_is_to_be_canceled_says_so),
    TEST(a_retry_that_would_come_too_late_is_not_made),
    TEST(silence_ends_an_attempt_that_promised_heartbeats),
    TEST(timeouts_as_long_as_the_wire_can_say_never_come),
    TEST(the_pause_doubles_and_stays_below_its_bound),
    TEST(a_failure_may_name_its_own_pause),
    TEST(a_pause_of_nothing_ends_the_activity),
    TEST(a_type_that_the_policy_names_is_not_retried),
    TEST(a_timeout_that_the_policy_names_is_not_retried),
    TEST(a_failure_that_says_so_is_not_retried),
    TEST(the_last_attempt_is_the_last),
    TEST(an_activity_that_is_to_be_canceled_is_not_retried),
    TEST(a_cancel_between_attempts_ends_it_at_once),
    TEST(an_activity_that_is_canceled_before_it_started_ends_behind_all_commands),
    TEST(an_activity_that_is_canceled_before_it_started_ends_with_its_run),
    TEST(a_cancel_of_an_activity_whose_end_is_buffered_comes_too_late),
    TEST(the_next_attempt_gets_the_last_details),
    TEST(a_timeout_carries_the_last_details_and_its_own_name),
    TEST(a_timeout_that_was_repeated_is_told_once),
    TEST(the_started_event_tells_when_the_attempt_began),
    TEST(the_started_event_tells_it_also_when_it_was_buffered),
    TEST(an_attempt_of_a_worker_that_died_with_its_process_is_retried_at_open),
    TEST(the_last_attempt_of_a_worker_that_died_fails),
    TEST(an_attempt_that_was_given_back_is_not_lost_with_the_process),
    TEST(an_attempt_of_a_worker_elsewhere_goes_on_over_a_restart),
    TEST(an_attempt_that_its_process_has_left_goes_on_over_a_crash),
    TEST(an_attempt_that_its_process_has_left_can_be_answered_by_its_id),
    TEST(an_attempt_that_its_process_has_left_times_out_like_any_other),
    TEST(the_attempt_after_one_that_its_process_has_left_is_lost_like_any_other),
    TEST(what_a_process_leaves_keeps_the_details_of_the_last_heartbeat),
    TEST(an_answer_that_nobody_took_goes_to_the_next_poll_with_the_same_token),
    TEST(an_answer_that_nobody_took_may_still_time_out),
    TEST(activities_of_a_closed_run_are_gone),
    TEST(a_cancel_that_names_another_event_fails_the_workflow_task),
    TEST(a_cancel_of_an_activity_that_has_ended_fails_the_workflow_task),
    TEST(a_second_cancel_of_an_activity_fails_the_workflow_task),
    TEST(a_cancel_of_an_activity_whose_end_is_buffered_is_an_event),
};

int main(int argc, char **argv)
{
    return hf_test_main("activity", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
