/* The patterns of structured concurrency (Y1-Y11 of docs/promises.md) on fibers of a workflow: children are activities and
 * durable sleeps. Each workflow runs in memory, and replayed at every wait; it must say the same both times. */
#include "support/support.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Activities --------------------------------------------------------------------------------------------------- */

static int canceled_count; /* activities that heard of their cancel and ended */

/* Takes as many milliseconds as its input says; negative: fails after as many. */
static hf_status work(hf_payload in, hf_payload *ret_out)
{
    long ms = strtol(in.data, NULL, 10);
    hf_status status = hf_sleep(hf_milliseconds(ms < 0 ? -ms : ms));
    canceled_count += status == HF_ERR_CANCELED;
    HF_TRY(status);
    return ms < 0 ? hf_raise_typed(HF_ERR_FAILED, "Broken", "item %ld broke", -ms)
                  : hf_payload_printf(ret_out, "%ld", ms);
}

typedef struct item {
    long ms;
    long result;
} item;

static hf_status run_work(void *arg)
{
    item *i = arg;
    char text[24];
    hf_payload out = {0};
    (void)snprintf(text, sizeof text, "%ld", i->ms);
    HF_TRY(hf_activity_run("work", hf_payload_of_json(text), &out, .start_to_close = hf_hours(1), .attempts_max = 1));
    i->result = strtol(out.data, NULL, 10);
    return HF_OK;
}

static hf_status fork_items(hf_scope *scope, item *items, int count, hf_branch **branches)
{
    for (int i = 0; i < count; i++) {
        HF_TRY(hf_fork(scope, run_work, &items[i], .ret_branch = branches != NULL ? &branches[i] : NULL));
    }
    return HF_OK;
}

/* What a join said, without passing on an eviction as if it was a result. */
#define JOIN(scope, ret_status)                                    \
    do {                                                           \
        *(ret_status) = hf_join(scope);                            \
        HF_TRY(is_evicted(*(ret_status)) ? *(ret_status) : HF_OK); \
    } while (0)
static bool is_evicted(hf_status status)
{
    return status == HF_ERR_EVICTED;
}

static long ms_since(hf_time start)
{
    return (long)((hf_wall_now(NULL).ns - start.ns) / 1000000);
}

/* ---- The play ------------------------------------------------------------------------------------------------------ */

typedef struct scene {
    hf_function workflow;
    hf_status (*client)(hf_execution *execution); /* NULL = it only waits */
    const char *result;
    int canceled; /* activities that are canceled meanwhile */
} scene;

static bool evicts;

static hf_status play(void *arg)
{
    const scene *s = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .cached_max = evicts ? HF_OFF : 0));
    HF_TRY(hf_worker_add_workflow(worker, "workflow", s->workflow));
    HF_TRY(hf_worker_add_activity(worker, "work", work, .on_fiber = true));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(service, "workflow", hf_payload_none(), &execution, .task_queue = "q"));
    HF_TRY(s->client != NULL ? s->client(execution) : HF_OK);
    hf_status status = hf_result(execution, &out, .timeout = hf_hours(1));
    const char *text = status == HF_OK ? out.data : hf_error_text();
    HF_CHECK_SAY(text != NULL && strcmp(text, s->result) == 0, "it said %s, not %s", text != NULL ? text : "nothing",
                 s->result);
    HF_CHECK_SAY(canceled_count == s->canceled, "%d activities were canceled, not %d", canceled_count, s->canceled);
    HF_TRY(hf_worker_stop(worker));
    return hf_worker_wait(worker);
}

static void play_scene(scene s)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        evicts = seed % 2 == 0;
        canceled_count = 0;
        hf_status status = hf_sim_run(seed, 1 + (int)(seed / 3), play, &s, NULL);
        HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
    }
}

/* ---- Y1, Y2 -------------------------------------------------------------------------------------------------------- */

static hf_status fan_out(hf_payload in, hf_payload *ret_out)
{
    enum { COUNT = 50 };
    item items[COUNT];
    long in_order = 0;
    hf_time start = hf_wall_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < COUNT; i++) {
        items[i] = (item){.ms = 100 + (i * 37) % COUNT};
    }
    HF_TRY(fork_items(scope, items, COUNT, NULL));
    HF_TRY(hf_join(scope));
    for (int i = 0; i < COUNT; i++) {
        in_order += items[i].result == items[i].ms;
    }
    return hf_payload_printf(ret_out, "\"%ld in order, %s\"", in_order, ms_since(start) < 200 ? "at once" : "slowly");
}

static hf_status fan_out_fails(hf_payload in, hf_payload *ret_out)
{
    item items[] = {{.ms = 60000}, {.ms = -500}, {.ms = 60000}};
    hf_time start = hf_wall_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_status status = HF_OK;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(fork_items(scope, items, 3, NULL));
    JOIN(scope, &status);
    return hf_payload_printf(ret_out, "\"%s, %s\"", hf_status_name(status),
                             ms_since(start) < 1000 ? "at once" : "slowly");
}

static void Y1_a_workflow_fans_out_to_50_activities_and_has_their_results_in_order(void **state)
{
    (void)state;
    play_scene((scene){.workflow = fan_out, .result = "\"50 in order, at once\""});
    play_scene((scene){.workflow = fan_out_fails, .result = "\"HF_ERR_FAILED, at once\"", .canceled = 2});
}

typedef struct marking {
    int tokens;
    int merges;
} marking;

static hf_status branch(void *arg)
{
    marking *m = arg;
    item one = {.ms = 100 * (m->tokens + 1)};
    HF_TRY(run_work(&one));
    m->tokens++;
    return HF_OK;
}

static hf_status gateway(hf_payload in, hf_payload *ret_out)
{
    marking m = {0, 0};
    (void)in;
    for (int round = 1; round <= 3; round++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < 3; i++) {
            HF_TRY(hf_fork(scope, branch, &m));
        }
        HF_TRY(hf_join(scope));
        m.merges += m.tokens == 3 * round;
    }
    return hf_payload_printf(ret_out, "\"%d tokens, %d merges\"", m.tokens, m.merges);
}

static void Y2_all_branches_of_a_workflow_reach_the_merge_before_it_continues_once(void **state)
{
    (void)state;
    play_scene((scene){.workflow = gateway, .result = "\"9 tokens, 3 merges\""});
}

/* ---- Y3, Y4 -------------------------------------------------------------------------------------------------------- */

static hf_status instances(int failing, hf_status *ret_status, hf_tally *ret_tally)
{
    enum { COUNT = 100 };
    item items[COUNT];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_TOLERATE(3)));
    for (int i = 0; i < COUNT; i++) {
        items[i] = (item){.ms = i % 10 == 0 && i / 10 < failing ? -100 : 5000};
    }
    HF_TRY(fork_items(scope, items, COUNT, NULL));
    JOIN(scope, ret_status);
    *ret_tally = hf_scope_tally(scope);
    return HF_OK;
}

static hf_status multi_instance(hf_payload in, hf_payload *ret_out)
{
    hf_status few = HF_OK;
    hf_status many = HF_OK;
    hf_tally few_tally;
    hf_tally many_tally;
    (void)in;
    HF_TRY(instances(3, &few, &few_tally));
    HF_TRY(instances(4, &many, &many_tally));
    return hf_payload_printf(ret_out, "\"%s %d ok, %s %d canceled\"", hf_status_name(few), (int)few_tally.ok,
                             hf_status_name(many), (int)many_tally.canceled);
}

static void Y3_a_workflow_with_100_instances_tolerates_3_failures_and_not_4(void **state)
{
    (void)state;
    play_scene(
        (scene){.workflow = multi_instance, .result = "\"HF_OK 97 ok, HF_ERR_FAILED 96 canceled\"", .canceled = 96});
}

static hf_status decide(const long ms[3], hf_status *ret_status, long *ret_ms, char text[200])
{
    item deciders[3] = {{.ms = ms[0]}, {.ms = ms[1]}, {.ms = ms[2]}};
    hf_time start = hf_wall_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_QUORUM(2), .timeout = hf_seconds(30)));
    HF_TRY(fork_items(scope, deciders, 3, NULL));
    JOIN(scope, ret_status);
    hf_tally tally = hf_scope_tally(scope);
    (void)snprintf(text, 200, "%d of %d approved. %s", (int)tally.ok, (int)tally.forked,
                   *ret_status != HF_OK ? hf_error_text() : "");
    *ret_ms = ms_since(start);
    return HF_OK;
}

static hf_status quorum(hf_payload in, hf_payload *ret_out)
{
    static const long APPROVED[] = {1000, 600000, 2000};
    static const long REFUSED[] = {-1000, 600000, -2000};
    static const long LATE[] = {1000, 600000, 600000};
    hf_status status[3];
    long ms[3];
    char text[3][200];
    (void)in;
    HF_TRY(decide(APPROVED, &status[0], &ms[0], text[0]));
    HF_TRY(decide(REFUSED, &status[1], &ms[1], text[1]));
    HF_TRY(decide(LATE, &status[2], &ms[2], text[2]));
    bool is_in_time = ms[0] >= 2000 && ms[0] < 2100 && ms[1] >= 2000 && ms[1] < 2100 && ms[2] >= 30000 && ms[2] < 30100;
    bool is_told =
        strstr(text[1], "quorum not reached: 0 of 3 succeeded, 2 needed; because activity 'work' failed") != NULL &&
        strstr(text[2], "did not finish within its 30000 ms: 1 of 3") != NULL;
    return hf_payload_printf(ret_out, "\"%s %s %s, %s, %s\"", hf_status_name(status[0]), hf_status_name(status[1]),
                             hf_status_name(status[2]), is_in_time ? "in time" : "late", is_told ? "told" : text[1]);
}

static void Y4_a_quorum_of_a_workflow_is_decided_as_soon_as_it_can_be(void **state)
{
    (void)state;
    play_scene(
        (scene){.workflow = quorum, .result = "\"HF_OK HF_ERR_FAILED HF_ERR_TIMEOUT, in time, told\"", .canceled = 4});
}

/* ---- Y5 ------------------------------------------------------------------------------------------------------------ */

static hf_status deadline(hf_payload in, hf_payload *ret_out)
{
    item items[] = {{.ms = 1000}, {.ms = 60000}, {.ms = 2000}};
    item others[] = {{.ms = 1000}, {.ms = 60000}, {.ms = 2000}};
    hf_status all = HF_OK;
    hf_status some = HF_OK;
    char text[200];
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(10)));
        HF_TRY(fork_items(scope, items, 3, NULL));
        JOIN(scope, &all);
        (void)snprintf(text, sizeof text, "%s", hf_error_text());
    }
    HF_AUTO(hf_scope_close) hf_scope *outer = NULL;
    HF_AUTO(hf_scope_close) hf_scope *inner = NULL;
    HF_TRY(hf_scope_open(&outer, .timeout = hf_seconds(10)));
    HF_TRY(hf_scope_open(&inner, .join = HF_JOIN_PARTIAL, .timeout = hf_seconds(5)));
    HF_TRY(fork_items(inner, others, 3, NULL));
    JOIN(inner, &some);
    hf_tally tally = hf_scope_tally(inner);
    return hf_payload_printf(ret_out, "\"%s %s, %s, %d ok\"", hf_status_name(all), hf_status_name(some),
                             strstr(text, "10000 ms") != NULL ? "told" : text, (int)tally.ok);
}

static void Y5_one_deadline_of_a_workflow_covers_all_and_partial_results_are_kept(void **state)
{
    (void)state;
    play_scene((scene){.workflow = deadline, .result = "\"HF_ERR_TIMEOUT HF_OK, told, 2 ok\"", .canceled = 2});
}

/* ---- Y6, Y7, Y8, Y9 ------------------------------------------------------------------------------------------------- */

static hf_status join_by(hf_join_policy policy, hf_status *ret_status, hf_tally *ret_tally)
{
    item items[] = {{.ms = -1000}, {.ms = 2000}, {.ms = 3000}};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = policy));
    HF_TRY(fork_items(scope, items, 3, NULL));
    JOIN(scope, ret_status);
    *ret_tally = hf_scope_tally(scope);
    return HF_OK;
}

static hf_status policies(hf_payload in, hf_payload *ret_out)
{
    hf_status status[3];
    hf_tally tally[3];
    (void)in;
    HF_TRY(join_by(HF_SHUTDOWN_ON_FAILURE, &status[0], &tally[0]));
    HF_TRY(join_by(HF_SHUTDOWN_ON_SUCCESS, &status[1], &tally[1]));
    HF_TRY(join_by(HF_SHUTDOWN_ON_CANCEL, &status[2], &tally[2]));
    return hf_payload_printf(ret_out, "\"%s %d, %s %d, %s %d\"", hf_status_name(status[0]), (int)tally[0].canceled,
                             hf_status_name(status[1]), (int)tally[1].canceled, hf_status_name(status[2]),
                             (int)tally[2].canceled);
}

static void Y6_scopes_of_a_workflow_end_at_the_first_failure_the_first_success_or_by_a_cancel(void **state)
{
    (void)state;
    play_scene((scene){.workflow = policies, .result = "\"HF_ERR_FAILED 2, HF_OK 1, HF_ERR_FAILED 0\"", .canceled = 3});
}

static hf_status subtasks(hf_payload in, hf_payload *ret_out)
{
    item items[] = {{.ms = 1000}, {.ms = 60000}, {.ms = -1500}};
    hf_branch *branches[3];
    hf_status status = HF_OK;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(fork_items(scope, items, 3, branches));
    HF_TRY(hf_sleep(hf_seconds(2)));
    bool is_under_way = hf_branch_is_done(branches[0]) && !hf_branch_is_done(branches[1]) &&
                        hf_branch_status(branches[1]) == HF_ERR_AGAIN && !hf_scope_is_idle(scope);
    HF_TRY(hf_branch_cancel(branches[1]));
    JOIN(scope, &status);
    return hf_payload_printf(
        ret_out, "\"%s, %s %s %s: %s\"", is_under_way ? "under way" : "not so",
        hf_status_name(hf_branch_status(branches[0])), hf_status_name(hf_branch_status(branches[1])),
        hf_status_name(hf_branch_status(branches[2])), hf_branch_failure(branches[2])->cause->message);
}

static void Y7_a_workflow_asks_each_subtask_and_cancels_one(void **state)
{
    (void)state;
    play_scene((scene){.workflow = subtasks,
                       .result = "\"under way, HF_OK HF_ERR_CANCELED HF_ERR_FAILED: item 1500 broke\"",
                       .canceled = 1});
}

static hf_status first_failure(hf_payload in, hf_payload *ret_out)
{
    item items[] = {{.ms = -3000}, {.ms = -1000}, {.ms = 60000}};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(fork_items(scope, items, 3, NULL));
    return hf_join(scope);
}

static void Y8_a_workflow_fails_with_the_first_failure_itself(void **state)
{
    (void)state;
    play_scene(
        (scene){.workflow = first_failure, .result = "activity 'work' failed; because item 1000 broke", .canceled = 2});
}

static hf_status every_failure(hf_payload in, hf_payload *ret_out)
{
    item items[] = {{.ms = -3000}, {.ms = 1000}, {.ms = -2000}};
    hf_status status = HF_OK;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(fork_items(scope, items, 3, NULL));
    JOIN(scope, &status);
    bool is_all = hf_scope_failure(scope, 1) != NULL && hf_scope_failure(scope, 2) == NULL;
    return hf_payload_printf(ret_out, "\"%s; %s; %s\"", hf_scope_failure(scope, 0)->cause->message,
                             is_all ? hf_scope_failure(scope, 1)->cause->message : "", is_all ? "all" : "more or less");
}

static void Y9_a_workflow_collects_every_failure(void **state)
{
    (void)state;
    play_scene((scene){.workflow = every_failure, .result = "\"item 2000 broke; item 3000 broke; all\""});
}

/* ---- Y10, Y11 -------------------------------------------------------------------------------------------------------- */

static hf_status owner_canceled(hf_payload in, hf_payload *ret_out)
{
    item items[] = {{.ms = 600000}, {.ms = 600000}};
    const char *reason = "";
    hf_status joined = HF_OK;
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(fork_items(scope, items, 2, NULL));
        JOIN(scope, &joined);
    }
    hf_status still = hf_canceled(); /* behind the scope, too */
    HF_TRY(is_evicted(still) ? still : HF_OK);
    (void)hf_cancel_cause(&reason);
    return hf_payload_printf(ret_out, "\"%s %s %s\"", hf_status_name(joined), hf_status_name(still), reason);
}

static hf_status cancel_it(hf_execution *execution)
{
    HF_TRY(hf_sleep(hf_seconds(5)));
    return hf_cancel(execution, .reason = "enough");
}

static void Y10_canceling_a_workflow_cancels_its_children_and_stays_visible(void **state)
{
    (void)state;
    play_scene((scene){.workflow = owner_canceled,
                       .client = cancel_it,
                       .result = "\"HF_ERR_CANCELED HF_ERR_CANCELED enough\"",
                       .canceled = 2});
}

static hf_status leave_early(int *ended)
{
    item items[] = {{.ms = 60000}, {.ms = 60000}};
    hf_time start = hf_wall_now(NULL);
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(fork_items(scope, items, 2, NULL));
        HF_TRY(hf_sleep(hf_seconds(1)));
    } /* joined here, though nobody called hf_join */
    *ended = ms_since(start) < 2000;
    return HF_OK;
}

static hf_status leaves(hf_payload in, hf_payload *ret_out)
{
    int ended = 0;
    (void)in;
    HF_TRY(leave_early(&ended));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_payload_printf(ret_out, "\"%s\"", ended != 0 ? "cleaned up" : "not so");
}

static hf_status forgets(hf_payload in, hf_payload *ret_out)
{
    static item items[] = {{.ms = 60000}};
    hf_scope *scope = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_scope_open(&scope, .name = "forgotten"));
    HF_TRY(fork_items(scope, items, 1, NULL));
    return hf_sleep(hf_seconds(1));
}

static void Y11_a_workflow_that_leaves_a_scope_has_cleaned_up(void **state)
{
    (void)state;
    play_scene((scene){.workflow = leaves, .result = "\"cleaned up\"", .canceled = 2});
    play_scene((scene){
        .workflow = forgets,
        .result =
            "the workflow returned with a scope still open; close every scope it opens (HF_AUTO(hf_scope_close) does)",
        .canceled = 1});
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(Y1_a_workflow_fans_out_to_50_activities_and_has_their_results_in_order),
    cmocka_unit_test(Y2_all_branches_of_a_workflow_reach_the_merge_before_it_continues_once),
    cmocka_unit_test(Y3_a_workflow_with_100_instances_tolerates_3_failures_and_not_4),
    cmocka_unit_test(Y4_a_quorum_of_a_workflow_is_decided_as_soon_as_it_can_be),
    cmocka_unit_test(Y5_one_deadline_of_a_workflow_covers_all_and_partial_results_are_kept),
    cmocka_unit_test(Y6_scopes_of_a_workflow_end_at_the_first_failure_the_first_success_or_by_a_cancel),
    cmocka_unit_test(Y7_a_workflow_asks_each_subtask_and_cancels_one),
    cmocka_unit_test(Y8_a_workflow_fails_with_the_first_failure_itself),
    cmocka_unit_test(Y9_a_workflow_collects_every_failure),
    cmocka_unit_test(Y10_canceling_a_workflow_cancels_its_children_and_stays_visible),
    cmocka_unit_test(Y11_a_workflow_that_leaves_a_scope_has_cleaned_up),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_patterns", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
