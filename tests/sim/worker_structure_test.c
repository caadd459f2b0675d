/* How a worker is built (T1, T7, T11, T12 of docs/promises.md), its figures (T19, T20), and that an eviction is no end (X15). On
 * the real worker and engine, on virtual time. */
#include "support/support.h"

#include "base/base.h"
#include "worker/worker_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hf_service *service;

static hf_status play_on(hf_body body, uint64_t seed, int threads)
{
    hf_status status = hf_sim_run(seed, threads, body, NULL, NULL);
    HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
    return status;
}

static void play(hf_body body)
{
    for (int threads = 1; threads <= 2; threads++) {
        HF_IGNORE(play_on(body, (uint64_t)threads, threads));
    }
}

/* ---- T1 ------------------------------------------------------------------------------------------------------------ */

static hf_status labour(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_sleep(hf_seconds(10)));
    return hf_payload_printf(ret_out, "\"done\"");
}

static hf_status employ(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("labour", in, ret_out, .start_to_close = hf_minutes(1));
}

static hf_status hire(const char *queue, hf_worker **ret_worker)
{
    HF_TRY(hf_worker_new(service, queue, ret_worker, .activity_pollers_max = 2, .pollers_max = 2));
    HF_TRY(hf_worker_add_workflow(*ret_worker, "employ", employ));
    HF_TRY(hf_worker_add_activity(*ret_worker, "labour", labour, .on_fiber = true));
    return hf_worker_start(*ret_worker);
}

static int count_of(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        count++;
    }
    return count;
}

static hf_status two_queues(void *arg)
{
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *one = NULL;
    HF_AUTO(hf_worker_free) hf_worker *two = NULL;
    HF_AUTO(hf_execution_free) hf_execution *first = NULL;
    HF_AUTO(hf_execution_free) hf_execution *second = NULL;
    char *text = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &opened));
    service = opened;
    HF_TRY(hire("one", &one));
    HF_TRY(hire("two", &two));
    HF_TRY(hf_start(service, "employ", hf_payload_none(), &first, .task_queue = "one"));
    HF_TRY(hf_start(service, "employ", hf_payload_none(), &second, .task_queue = "two"));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_dump(NULL, &text, .no_stacks = true));
    static const char *const NAMES[] = {"scope 'worker'", "scope 'workflows'", "scope 'activities'", "scope 'pollers'",
                                        "scope 'labour'"};
    for (size_t i = 0; i < HF_COUNT_OF(NAMES); i++) {
        HF_CHECK_SAY(count_of(text, NAMES[i]) == 2, "%d times %s in\n%s", count_of(text, NAMES[i]), NAMES[i], text);
    }
    hf_text_free(text);
    HF_TRY(hf_worker_stop(one)); /* the other one goes on */
    HF_TRY(hf_worker_wait(one));
    HF_TRY(hf_result(second, NULL, .timeout = hf_minutes(1)));
    return hf_result(first, NULL, .timeout = hf_seconds(1)) == HF_ERR_TIMEOUT ? HF_OK : HF_ERR_FAILED;
}

static void T1_each_queue_has_a_worker_with_pollers_runs_and_activities_of_its_own(void **state)
{
    (void)state;
    play(two_queues);
}

/* ---- T7, X15: an eviction ------------------------------------------------------------------------------------------- */

static struct {
    int main_evicted, handler_evicted, handler_went_on, cleaned;
} seen;

static hf_status on_slow(void *arg, hf_payload in)
{
    (void)in;
    hf_status status = hf_sleep(hf_minutes(10));
    seen.handler_evicted += status == HF_ERR_EVICTED;
    HF_TRY(status);
    seen.handler_went_on++;
    ++*(int *)arg;
    return HF_OK;
}

static void clean(int *unused)
{
    (void)unused;
    seen.cleaned++;
}

static hf_status waits(hf_payload in, hf_payload *ret_out)
{
    int *count = HF_WORKFLOW_NEW(int);
    __attribute__((cleanup(clean))) int cleanup = 0;
    (void)in;
    HF_TRY(hf_on_signal("slow", on_slow, .arg = count));
    hf_status status = hf_signal_wait("go", NULL);
    seen.main_evicted += status == HF_ERR_EVICTED;
    HF_TRY(status);
    HF_TRY(hf_handlers_wait());
    return hf_payload_printf(ret_out, "%d", *count + cleanup);
}

static int64_t history_of(hf_execution *run)
{
    HF_AUTO(hf_description_free) hf_description *it = NULL;
    return HF_CHECK(hf_describe(run, &it) == HF_OK) ? it->history_count : 0;
}

static hf_status evict_both(void *arg)
{
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    (void)arg;
    memset(&seen, 0, sizeof seen);
    HF_TRY(hf_open("memory:", &opened));
    HF_TRY(hf_worker_new(opened, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "waits", waits));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(opened, "waits", hf_payload_none(), &run, .task_queue = "q"));
    HF_TRY(hf_signal(run, "slow", hf_payload_none()));
    HF_TRY(hf_sleep(hf_seconds(30)));
    int64_t before = history_of(run);
    HF_CHECK(seen.main_evicted == 0 && seen.handler_evicted == 0);
    HF_TRY(hf_sleep(hf_seconds(60)));
    HF_CHECK(seen.main_evicted == 1 && seen.handler_evicted == 1 && seen.cleaned == 1);
    HF_CHECK(seen.handler_went_on == 0 && history_of(run) == before); /* handlers are not run to their end: X15 */
    hf_worker_stats stats;
    HF_TRY(hf_worker_stat(worker, &stats));
    HF_CHECK(stats.resident == 0 && stats.bytes == 0);
    HF_TRY(hf_signal(run, "go", hf_payload_none()));
    HF_TRY(hf_result(run, &out, .timeout = hf_minutes(20)));
    HF_CHECK(strcmp(out.data, "1") == 0 && seen.handler_went_on == 1);
    return HF_OK;
}

static void T7_X15_an_eviction_ends_main_and_handlers_together_and_runs_none_to_its_end(void **state)
{
    (void)state;
    play(evict_both);
}

/* ---- T11 ------------------------------------------------------------------------------------------------------------- */

static const hf_local TENANT = {"tenant"};
static int64_t turns_of_one;

static hf_status remembers(hf_payload in, hf_payload *ret_out)
{
    int here = 7;
    const void *fiber = hf_local_get(&TENANT);
    int *volatile address = &here;
    (void)in;
    HF_CHECK(fiber == NULL);
    HF_TRY(hf_local_set(&TENANT, &here));
    for (int i = 0; i < 10; i++) {
        HF_TRY(hf_sleep(hf_seconds(5)));
        HF_CHECK(hf_local_get(&TENANT) == address && *address == 7);
        turns_of_one++;
    }
    return hf_payload_printf(ret_out, "%d", here);
}

static hf_status keep_one(void *arg)
{
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    hf_worker_stats stats;
    (void)arg;
    turns_of_one = 0;
    HF_TRY(hf_open("memory:", &opened));
    HF_TRY(hf_worker_new(opened, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "remembers", remembers));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(opened, "remembers", hf_payload_none(), &run, .task_queue = "q"));
    HF_TRY(hf_result(run, NULL));
    HF_TRY(hf_worker_stat(worker, &stats));
    HF_CHECK(turns_of_one == 10 && stats.replays == 0 && stats.released == 0);
    return HF_OK;
}

static void T11_a_run_keeps_its_fiber_and_local_values_from_step_to_step(void **state)
{
    (void)state;
    play(keep_one);
}

/* ---- T12 ------------------------------------------------------------------------------------------------------------- */

static int told;

static hf_status child_of_activity(void *arg)
{
    int *count = arg;
    *count += hf_activity_info() != NULL && strcmp(hf_activity_info()->name, "fresh") == 0;
    return hf_sleep(hf_seconds(1));
}

/* Blocks its thread, leaves an error and forks: the next one on this thread sees nothing of it. */
static hf_status fresh(hf_payload in, hf_payload *ret_out)
{
    int children = 0;
    (void)in;
    told += hf_error() == NULL && hf_canceled() == HF_OK && hf_local_get(&TENANT) == NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, child_of_activity, &children)); /* on a fiber thread */
    HF_TRY(hf_fork(scope, child_of_activity, &children));
    HF_TRY(hf_join(scope));
    HF_IGNORE(hf_raise(HF_ERR_FAILED, "left behind"));
    return hf_payload_printf(ret_out, "%d", children);
}

static hf_status asks_often(hf_payload in, hf_payload *ret_out)
{
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_activity_run("fresh", in, ret_out, .start_to_close = hf_minutes(1), .attempts_max = 1));
    }
    return HF_OK;
}

static hf_status one_thread(void *arg)
{
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    (void)arg;
    told = 0;
    HF_TRY(hf_open("memory:", &opened));
    HF_TRY(hf_worker_new(opened, "q", &worker, .activities_max = 1));
    HF_TRY(hf_worker_add_workflow(worker, "asks", asks_often));
    HF_TRY(hf_worker_add_activity(worker, "fresh", fresh));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(opened, "asks", hf_payload_none(), &run, .task_queue = "q"));
    HF_TRY(hf_result(run, &out));
    HF_CHECK(told == 5 && strcmp(out.data, "2") == 0);
    return HF_OK;
}

static void T12_an_activity_finds_its_thread_as_new_and_its_children_run_on_fibers(void **state)
{
    (void)state;
    play(one_thread);
}

/* ---- T19, T20 -------------------------------------------------------------------------------------------------------- */

static int beats_max; /* most activities at once */
static int beats_now;

static hf_status one_of_many(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    beats_max = ++beats_now > beats_max ? beats_now : beats_max;
    hf_status status = hf_sleep(hf_seconds(10));
    beats_now--;
    return status;
}

static hf_status one_each(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("one", in, ret_out, .start_to_close = hf_hours(1));
}

static hf_status three_hundred(void *arg)
{
    enum { MANY = 300 };
    static hf_execution *runs[MANY];
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    beats_max = beats_now = 0;
    HF_TRY(hf_open("memory:", &opened));
    HF_TRY(hf_worker_new(opened, "q", &worker));
    HF_CHECK(worker->options.workflows_max == 200 && worker->options.activities_max == 200);
    HF_CHECK(worker->options.cached_max == 1000 && worker->options.sticky_timeout.ns == hf_seconds(10).ns);
    HF_TRY(hf_worker_add_workflow(worker, "each", one_each));
    HF_TRY(hf_worker_add_activity(worker, "one", one_of_many, .on_fiber = true));
    HF_TRY(hf_worker_start(worker));
    for (int i = 0; i < MANY; i++) {
        HF_TRY(hf_start(opened, "each", hf_payload_none(), &runs[i], .task_queue = "q"));
    }
    for (int i = 0; i < MANY; i++) {
        HF_TRY(hf_result(runs[i], NULL));
        hf_execution_free(runs[i]);
    }
    HF_CHECK_SAY(beats_max == 200, "%d at once", beats_max);
    return HF_OK;
}

static void T19_a_worker_runs_200_activities_at_once_unless_told_otherwise(void **state)
{
    (void)state;
    HF_IGNORE(play_on(three_hundred, 1, 1));
}

/* Neither its time nor a cancel ends it. */
static hf_status stubborn(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_shield_open(hf_hours(10), &shield));
    return hf_sleep(hf_seconds(100));
}

static hf_status stop_in_time(void *arg)
{
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &opened));
    HF_TRY(hf_worker_new(opened, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "each", one_each));
    HF_TRY(hf_worker_add_activity(worker, "one", stubborn));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(opened, "each", hf_payload_none(), NULL, .task_queue = "q"));
    HF_TRY(hf_sleep(hf_seconds(1)));
    int64_t from = hf_now(NULL).ns;
    HF_TRY(hf_worker_stop(worker));
    HF_TRY(hf_sleep(hf_seconds(1)));
    hf_worker_stats stats;
    HF_TRY(hf_worker_stat(worker, &stats));
    HF_CHECK(stats.health == HF_WORKER_STOPPING && stats.resident == 0); /* the run left at once */
    HF_CHECK(hf_worker_wait(worker) == HF_ERR_TIMEOUT);
    int64_t ms = (hf_now(NULL).ns - from) / 1000000;
    HF_CHECK_SAY(ms >= 15000 && ms < 15100, "it took %lld ms", (long long)ms);
    HF_TRY(hf_worker_free(worker));
    worker = NULL;
    return hf_sleep(hf_seconds(100)); /* what was left behind ends */
}

static void T20_X14_a_worker_stops_within_10_s_of_grace_and_5_s_of_force(void **state)
{
    (void)state;
    play(stop_in_time);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(T1_each_queue_has_a_worker_with_pollers_runs_and_activities_of_its_own),
    cmocka_unit_test(T7_X15_an_eviction_ends_main_and_handlers_together_and_runs_none_to_its_end),
    cmocka_unit_test(T11_a_run_keeps_its_fiber_and_local_values_from_step_to_step),
    cmocka_unit_test(T12_an_activity_finds_its_thread_as_new_and_its_children_run_on_fibers),
    cmocka_unit_test(T19_a_worker_runs_200_activities_at_once_unless_told_otherwise),
    cmocka_unit_test(T20_X14_a_worker_stops_within_10_s_of_grace_and_5_s_of_force),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_structure", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
