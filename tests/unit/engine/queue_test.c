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

/* ---- Priorities ---------------------------------------------------------------------------------------------------- */

/* Tasks that wait with this key; -1 = the answer does not tell of it. */
static int64_t waiting(const hf_pb_describe_task_queue_response *is, int32_t key)
{
    for (size_t i = 0; i < is->stats_by_priority_key.count; i++) {
        if (is->stats_by_priority_key.items[i].key == key) {
            return is->stats_by_priority_key.items[i].value->approximate_backlog_count;
        }
    }
    return -1;
}

static void assert_waiting(const char *step, const int64_t expected[HF_PRIORITY_LEVELS])
{
    const hf_pb_describe_task_queue_response *is = describe(step);
    int64_t all = 0;
    for (int i = 0; i < HF_PRIORITY_LEVELS; i++) {
        assert_int_equal(waiting(is, i + 1), expected[i]);
        all += expected[i] > 0 ? expected[i] : 0;
    }
    assert_int_equal(is->stats->approximate_backlog_count, all);
}

static void a_backlog_is_told_by_priority(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        again(&(hf_core_options){.mem_max = small != 0 ? 1 : 0});
        assert_waiting("queue q stats", (int64_t[]){-1, -1, 0, -1, -1});
        hf_rig_do(&rig, "start w1; start w2 priority=1; start w3 priority=99; start w4 priority=1");
        assert_waiting("queue q stats", (int64_t[]){2, -1, 1, -1, 1});
        hf_rig_do(&rig, "options w1 priority=2; signal w1 s"); /* its task keeps the place and the key that it has */
        hf_rig_do(&rig, "crash");
        int64_t after = small != 0 ? 1 : 0; /* rows tell what was true when they were written */
        const hf_pb_describe_task_queue_response *is = describe("queue q stats");
        assert_int_equal(is->stats->approximate_backlog_count, 4);
        assert_int_equal(waiting(is, 1), 2);
        assert_true(waiting(is, 3) == after || waiting(is, 2) == 1);
        /* An activity has the key of its run, unless it has its own. */
        hf_rig_do(&rig, "poll as=a; poll as=b; poll as=c; poll as=d; complete of=b activity x, activity y priority=4;"
                        "complete of=a done; complete of=c done; complete of=d done");
        assert_waiting("queue q activities stats", (int64_t[]){1, -1, 0, 1, -1});
        hf_rig_do(&rig, "crash");
        is = describe("queue q activities stats");
        assert_int_equal(waiting(is, 1), 1);
        assert_int_equal(waiting(is, 4), 1);
        hf_rig_do(&rig, "apoll as=x; apoll as=y; time 1s");
        is = describe("queue q activities stats");
        assert_int_equal(waiting(is, 1), 0); /* it is told of for a while, because one was given out */
        assert_int_equal(waiting(is, 4), 0);
        assert_float_equal(is->stats_by_priority_key.items[0].value->tasks_dispatch_rate,
                           is->stats->tasks_dispatch_rate / 2, 0.0001);
        hf_rig_do(&rig, "time 60s");
        assert_waiting("queue q activities stats", (int64_t[]){-1, -1, 0, -1, -1});
    }
}

/* As a Temporal server does: what an activity or a child does not set is that of the run. */
static void activities_and_children_have_the_priority_of_their_run(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf priority=2; poll; complete activity x, activity y priority=4, child kid queue=p, child "
                    "other queue=p priority=5; apoll as=x; apoll as=y");
    assert_int_equal(hf_rig_activity(&rig, "x")->priority->priority_key, 2);
    assert_int_equal(hf_rig_activity(&rig, "y")->priority->priority_key, 4);
    assert_waiting("queue p stats", (int64_t[]){-1, 1, 0, -1, 1});
    hf_rig_do(&rig, "start plain queue=z; poll queue=z as=z; complete of=z activity x queue=z; apoll queue=z as=z");
    assert_null(hf_rig_activity(&rig, "z")->priority);
}

/* ---- The enhanced mode ---------------------------------------------------------------------------------------------- */

static const hf_pb_task_queue_version_info *version(const hf_pb_describe_task_queue_response *is, const char *build_id)
{
    for (size_t i = 0; i < is->versions_info.count; i++) {
        if (hf_str_equal(is->versions_info.items[i].key, hf_str_of(build_id))) {
            return is->versions_info.items[i].value;
        }
    }
    return NULL;
}

static const hf_pb_task_queue_type_info *type_info(const hf_pb_task_queue_version_info *info, int32_t type)
{
    for (size_t i = 0; i < info->types_info.count; i++) {
        if (info->types_info.items[i].key == type) {
            return info->types_info.items[i].value;
        }
    }
    return NULL;
}

static void the_enhanced_mode_tells_of_both_queues(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        again(&(hf_core_options){.mem_max = small != 0 ? 1 : 0});
        hf_rig_do(&rig, "start w1; poll; complete activity a, activity b; start w2; start w3; poll identity=me as=x;"
                        "poll identity=me as=y; poll identity=me as=z => parked; start w4 queue=z");
        hf_rig_do(&rig, small != 0 ? "complete of=x activity c; complete of=y" : "");
        const hf_pb_describe_task_queue_response *is = describe("queue q enhanced stats pollers");
        assert_int_equal(is->versions_info.count, 1);
        assert_null(is->stats);
        assert_null(is->effective_rate_limit);
        const hf_pb_task_queue_version_info *all = version(is, "");
        assert_non_null(all);
        assert_int_equal(all->types_info.count, 2);
        assert_int_equal(all->task_reachability, 0);
        const hf_pb_task_queue_type_info *w = type_info(all, HF_TASK_QUEUE_TYPE_WORKFLOW);
        const hf_pb_task_queue_type_info *a = type_info(all, HF_TASK_QUEUE_TYPE_ACTIVITY);
        assert_int_equal(w->pollers.count, 2); /* that of the first poll has no identity */
        assert_int_equal(w->stats->approximate_backlog_count, 0);
        assert_int_equal(a->pollers.count, 0);
        assert_int_equal(a->stats->approximate_backlog_count, 2 + small);
        /* Nothing is told that was not asked for, and there are no tasks for a build id. */
        is = describe("queue q enhanced builds=2 reach unversioned");
        assert_int_equal(is->versions_info.count, 3);
        assert_null(type_info(version(is, ""), HF_TASK_QUEUE_TYPE_ACTIVITY)->stats);
        assert_int_equal(type_info(version(is, ""), HF_TASK_QUEUE_TYPE_WORKFLOW)->pollers.count, 0);
        assert_int_equal(version(is, "")->task_reachability, HF_BUILD_ID_TASK_REACHABILITY_REACHABLE);
        assert_int_equal(version(is, "b1")->task_reachability, HF_BUILD_ID_TASK_REACHABILITY_UNREACHABLE);
        is = describe("queue q enhanced builds=1 stats");
        assert_null(version(is, ""));
        assert_int_equal(type_info(version(is, "b0"), HF_TASK_QUEUE_TYPE_ACTIVITY)->stats->approximate_backlog_count,
                         0);
        assert_int_equal(describe("queue q enhanced builds=0 stats")->versions_info.count, 0);
    }
    hf_rig_do(&rig, "queue q enhanced builds=6 reach => invalid; queue q enhanced sticky => invalid; queue q enhanced "
                    "builds=101 => invalid");
    assert_int_equal(describe("queue q enhanced builds=100")->versions_info.count, 100);
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
    TEST(a_backlog_is_told_by_priority),
    TEST(activities_and_children_have_the_priority_of_their_run),
    TEST(the_enhanced_mode_tells_of_both_queues),
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
