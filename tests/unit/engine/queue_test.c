/* Task queues as workers and clients see them: rate limits, descriptions, polls that end with their worker. */
#include "unit/engine/fixture.h"

#include <stdio.h>

static const hf_pb_describe_task_queue_response *describe(const char *step)
{
    hf_rig_do(&rig, step);
    return hf_rig_slot(&rig, NULL)->call.response;
}

/* ---- Rates --------------------------------------------------------------------------------------------------------- */

static void a_queue_gives_what_its_rate_allows(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a, activity b, activity c, activity d, activity e;"
                    "apoll rate=2 as=a; apoll rate=2 as=b; apoll rate=2 as=c => parked; apoll rate=2 as=d => parked");
    assert_int_equal(hf_core_next(rig.core).mono - rig.now.mono, 500000000);
    hf_rig_do(&rig, "time 499ms; is c => parked; time 1ms; is c; is d => parked; time 500ms; is d");
    hf_rig_do(&rig, "time 10s; apoll rate=2 as=e; acomplete of=a; acomplete of=b; acomplete of=c; acomplete of=d;"
                    "acomplete of=e; signal wf s; poll; complete done");
    assert_true(hf_rig_probe(&rig, HF_PROBE_RATE_LIMITED) > 0);
}

static void less_than_one_a_second_is_one_now_and_then(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a, activity b; apoll rate=0.1; apoll rate=0.1 as=b => parked;"
                    "time 9999ms; is b => parked; time 1ms; is b");
}

static void no_rate_at_all_pauses_the_queue(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a, activity b; apoll rate=0 as=a timeout=2h => parked; time 1h; "
                    "is a => parked; apoll as=b; is a; drop b");
}

static void the_last_poll_says_how_many(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a, activity b, activity c, activity d; apoll rate=1 as=a;"
                    "apoll rate=1 as=b timeout=1h => parked; apoll rate=0.001 as=c timeout=1h => parked; time 10s;"
                    "is b => parked; apoll rate=100 as=d; is b; is c");
}

static void a_rate_holds_for_runs_on_disk(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1, .page_max = 1});
    hf_rig_do(&rig, "start w1; poll as=x; complete of=x activity a; start w2; poll as=x; complete of=x activity a;"
                    "start w3; poll as=x; complete of=x activity a; apoll rate=1 as=a; apoll rate=1 as=b => parked;"
                    "time 1s; is b; apoll rate=1 as=c => parked; crash; apoll rate=1 as=c");
}

static void eager_activities_do_not_count(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "apoll rate=0 as=p => parked; start wf; poll; complete activity a eager; is p => parked; acomplete");
}

static void a_rate_that_is_none_is_refused(void **state)
{
    (void)state;
    hf_rig_do(&rig, "apoll rate=-1 => invalid; apoll rate=nan => invalid; apoll rate=inf => parked");
}

/* ---- Descriptions -------------------------------------------------------------------------------------------------- */

static void pollers_are_named_for_five_minutes(void **state)
{
    (void)state;
    hf_rig_do(&rig, "apoll identity=i1 rate=7 as=a => parked; time 61s; apoll identity=i2 as=b => parked; apoll "
                    "identity=i2 as=c => parked; poll identity=i3 as=d => parked");
    const hf_pb_describe_task_queue_response *is = describe("queue q activities");
    assert_int_equal(is->pollers.count, 2);
    assert_true(hf_str_equal(is->pollers.items[0].identity, HF_STR("i2")));
    assert_true(hf_str_equal(is->pollers.items[1].identity, HF_STR("i1")));
    assert_int_equal((int)is->pollers.items[1].rate_per_second, 7);
    assert_int_equal(hf_pb_timestamp_time(is->pollers.items[1].last_access_time).ns,
                     rig.now.wall - INT64_C(61000000000));
    assert_null(is->stats);
    assert_int_equal(describe("queue q")->pollers.count, 1);
    assert_int_equal(describe("queue other")->pollers.count, 0);
    hf_rig_do(&rig, "time 240s");
    assert_int_equal(describe("queue q activities")->pollers.count, 1);
    hf_rig_do(&rig, "time 61s");
    assert_int_equal(describe("queue q activities")->pollers.count, 0);
}

static void a_queue_remembers_only_so_many_pollers(void **state)
{
    (void)state;
    rig.no_check = true;
    for (int i = 0; i < 1100; i++) {
        char step[80];
        (void)snprintf(step, sizeof step, "poll identity=i%d timeout=1ms => parked", i);
        hf_rig_do(&rig, step);
        hf_rig_do(&rig, "time 1ms");
    }
    const hf_pb_describe_task_queue_response *is = describe("queue q");
    assert_int_equal(is->pollers.count, 1000);
    assert_true(hf_str_equal(is->pollers.items[0].identity, HF_STR("i1099")));
}

static void a_backlog_counts_tasks_in_memory_and_on_disk(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        again(&(hf_core_options){.mem_max = small != 0 ? 1 : 0});
        hf_rig_do(&rig, "start w1; start w2; start w3; time 5s");
        const hf_pb_describe_task_queue_response *is = describe("queue q stats status");
        assert_int_equal(is->stats->approximate_backlog_count, 3);
        assert_int_equal(is->task_queue_status->backlog_count_hint, 3);
        assert_int_equal(is->stats->approximate_backlog_age.seconds, small != 0 ? 0 : 5);
        hf_rig_do(&rig, "crash");
        assert_int_equal(describe("queue q stats")->stats->approximate_backlog_count, 3);
        hf_rig_do(&rig, "poll");
        assert_int_equal(describe("queue q stats")->stats->approximate_backlog_count, 2);
        assert_int_equal(describe("queue q activities stats")->stats->approximate_backlog_count, 0);
    }
}

static void rates_over_half_a_minute_are_described(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start w1; start w2; start w3; time 10s; poll; complete; time 10s");
    const hf_pb_task_queue_stats *is = describe("queue q stats")->stats;
    assert_float_equal(is->tasks_add_rate, 3.0 / 20, 0.001);
    assert_float_equal(is->tasks_dispatch_rate, 1.0 / 20, 0.001);
    assert_float_equal(describe("queue other stats")->stats->tasks_add_rate, 0, 0.001);
    hf_rig_do(&rig, "time 12s"); /* starts are forgotten, the poll is not */
    hf_rig_do(&rig, "time 3s; start w4");
    is = describe("queue q stats")->stats;
    assert_true(is->tasks_add_rate > 0 && is->tasks_add_rate < 2.0 / 30);
    assert_true(is->tasks_dispatch_rate > 0);
    hf_rig_do(&rig, "time 100s");
    assert_float_equal(describe("queue q stats")->stats->tasks_add_rate, 0, 0.001);
    assert_float_equal(describe("queue q stats")->stats->tasks_dispatch_rate, 0, 0.001);
}

static void a_poll_says_how_many_more_wait(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start w1; start w2; start w3; poll");
    assert_int_equal(hf_rig_task(&rig, "w")->backlog_count_hint, 2);
}

static void a_limit_is_described(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete activity a, activity b; apoll rate=1 as=a; apoll rate=1 as=b => parked");
    const hf_pb_describe_task_queue_response *is = describe("queue q activities stats");
    assert_int_equal((int)is->effective_rate_limit->requests_per_second, 1);
    assert_int_equal(is->effective_rate_limit->rate_limit_source, HF_RATE_LIMIT_SOURCE_WORKER);
    assert_true(is->stats->rate_limiting_active);
    assert_int_equal(describe("queue q")->effective_rate_limit->rate_limit_source, HF_RATE_LIMIT_SOURCE_SYSTEM);
    hf_rig_do(&rig, "queue q enhanced => unsupported");
}

/* ---- Shutdown ------------------------------------------------------------------------------------------------------ */

static void the_polls_of_a_worker_end_with_it(void **state)
{
    (void)state;
    hf_rig_do(&rig,
              "poll key=k as=a => parked; apoll key=k as=b => parked; poll queue=s as=c => parked; poll key=l as=d "
              "=> parked; poll key=k queue=other as=e => parked; poll ns=else key=k as=f => parked;"
              "shutdown s key=k; is a => empty; is b => empty; is c => empty; is e => empty; is d => parked;"
              "is f => parked");
    assert_true(hf_rig_probe(&rig, HF_PROBE_POLL_ENDED) == 4);
    assert_int_equal(describe("queue q")->pollers.count, 0);
}

static void only_the_queue_and_type_that_are_named(void **state)
{
    (void)state;
    hf_rig_do(&rig, "poll key=k as=a => parked; apoll key=k as=b => parked; poll key=k queue=o as=c => parked;"
                    "shutdown none key=k queue=q type=2; is a => parked; is c => parked; is b => empty");
}

static void a_poll_that_comes_late_is_answered_at_once(void **state)
{
    (void)state;
    hf_rig_do(&rig, "shutdown none key=k; start wf; poll key=k as=a => empty; poll key=l as=b; complete of=b; time 69s;"
                    "apoll key=k as=a => empty; time 2s; poll key=k as=a => parked");
}

static void a_worker_without_a_key_ends_no_polls(void **state)
{
    (void)state;
    hf_rig_do(&rig, "poll as=a => parked; shutdown s; is a => parked");
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_queue_gives_what_its_rate_allows),
    TEST(less_than_one_a_second_is_one_now_and_then),
    TEST(no_rate_at_all_pauses_the_queue),
    TEST(the_last_poll_says_how_many),
    TEST(a_rate_holds_for_runs_on_disk),
    TEST(eager_activities_do_not_count),
    TEST(a_rate_that_is_none_is_refused),
    TEST(pollers_are_named_for_five_minutes),
    TEST(a_queue_remembers_only_so_many_pollers),
    TEST(a_backlog_counts_tasks_in_memory_and_on_disk),
    TEST(rates_over_half_a_minute_are_described),
    TEST(a_poll_says_how_many_more_wait),
    TEST(a_limit_is_described),
    TEST(the_polls_of_a_worker_end_with_it),
    TEST(only_the_queue_and_type_that_are_named),
    TEST(a_poll_that_comes_late_is_answered_at_once),
    TEST(a_worker_without_a_key_ends_no_polls),
};

int main(int argc, char **argv)
{
    return hf_test_main("queue", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
