/* Release of idle runs, on the real worker and engine, on virtual time: who waits for .idle_timeout leaves memory, and
 * whatever happens to it brings it back. The names are those of docs/promises.md. */
#include "support/support.h"

#include "base/arena.h"
#include "base/env.h"
#include "env/sim/sim_private.h"
#include "fiber/core.h"
#include "service/call.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hf_service *service;
static hf_worker *worker;
static int begun; /* times that a workflow's code began */

/* ---- Workflows ----------------------------------------------------------------------------------------------------- */

static hf_status wait_for_go(hf_payload in, hf_payload *ret_out)
{
    hf_payload out = {0};
    (void)in;
    begun++;
    HF_TRY(hf_signal_wait("go", &out));
    return hf_payload_copy(out, ret_out);
}

static hf_status sleep_long(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    begun++;
    HF_TRY(hf_sleep(hf_minutes(5)));
    return hf_payload_printf(ret_out, "\"slept\"");
}

/* A wait with a bound of its own, in a scope with a later one. */
static hf_status wait_bounded(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    begun++;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_minutes(10)));
    hf_status first = hf_signal_wait("go", NULL, .timeout = hf_minutes(5));
    hf_status second = hf_signal_wait("go", NULL);
    return hf_payload_printf(ret_out, "\"%s %s\"", hf_status_name(first), hf_status_name(second));
}

static hf_status work_long(hf_payload in, hf_payload *ret_out)
{
    begun++;
    return hf_activity_run("labour", in, ret_out, .start_to_close = hf_minutes(10));
}

static hf_status labour(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_sleep(hf_minutes(5)));
    return hf_payload_printf(ret_out, "\"done\"");
}

typedef struct counter {
    int count;
} counter;

static hf_status on_add(void *arg, hf_payload in)
{
    ((counter *)arg)->count += in.len > 0 ? (int)strtol(in.data, NULL, 10) : 1;
    return HF_OK;
}

static hf_status tell_count(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "%d", ((const counter *)arg)->count);
}

static hf_status count_up(hf_payload in, hf_payload *ret_out)
{
    counter *c = HF_WORKFLOW_NEW(counter);
    (void)in;
    begun++;
    HF_TRY(hf_on_signal("add", on_add, .arg = c));
    HF_TRY(hf_on_query("count", tell_count, .arg = c));
    HF_TRY(hf_wait_until(c->count >= 100));
    return hf_payload_printf(ret_out, "%d", c->count);
}

/* Tries again whatever it is told, an eviction too. */
static hf_status clings(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    begun++;
    while (hf_signal_wait("go", NULL) != HF_OK) {
    }
    return HF_OK;
}

static hf_status clean_up(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    begun++;
    hf_status status = hf_signal_wait("go", NULL);
    if (status == HF_ERR_CANCELED) {
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(hf_hours(1), &shield));
        HF_TRY(hf_activity_run("labour", hf_payload_none(), ret_out, .start_to_close = hf_minutes(10)));
    }
    return status;
}

/* ---- The play ------------------------------------------------------------------------------------------------------ */

static hf_status add_all(hf_worker *to)
{
    HF_TRY(hf_worker_add_workflow(to, "wait", wait_for_go));
    HF_TRY(hf_worker_add_workflow(to, "sleep", sleep_long));
    HF_TRY(hf_worker_add_workflow(to, "bounded", wait_bounded));
    HF_TRY(hf_worker_add_workflow(to, "work", work_long));
    HF_TRY(hf_worker_add_workflow(to, "count", count_up));
    HF_TRY(hf_worker_add_workflow(to, "clings", clings));
    HF_TRY(hf_worker_add_workflow(to, "clean_up", clean_up));
    return hf_worker_add_activity(to, "labour", labour, .on_fiber = true);
}

typedef struct scene {
    hf_status (*body)(void);
    hf_worker_options options;
} scene;

static hf_status play(void *arg)
{
    scene *s = arg;
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *made = NULL;
    HF_TRY(hf_open("memory:", &opened));
    HF_TRY(hf_worker_new_with(opened, "q", &made, &s->options));
    HF_TRY(add_all(made));
    service = opened;
    worker = made;
    begun = 0;
    HF_TRY(hf_worker_start(made));
    HF_TRY(s->body());
    HF_TRY(hf_worker_stop(made));
    return hf_worker_wait(made);
}

static void play_scene(scene s)
{
    s.options.size = sizeof s.options;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        hf_status status = hf_sim_run(seed, 1 + (int)(seed % 2), play, &s, NULL);
        HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
    }
}

static hf_worker_stats stat_now(void)
{
    hf_worker_stats stats;
    memset(&stats, 0, sizeof stats);
    HF_CHECK(hf_worker_stat(worker, &stats) == HF_OK);
    return stats;
}

/* Says what is in memory and what has left it. */
static bool has(uint64_t resident, uint64_t released, uint64_t replays)
{
    hf_worker_stats now = stat_now();
    return HF_CHECK_SAY(now.resident == resident && now.released == released && now.replays == replays,
                        "%llu resident, %llu released, %llu replays; not %llu, %llu, %llu",
                        (unsigned long long)now.resident, (unsigned long long)now.released,
                        (unsigned long long)now.replays, (unsigned long long)resident, (unsigned long long)released,
                        (unsigned long long)replays);
}

static hf_status start(const char *type, const char *id, hf_execution **ret_execution)
{
    return hf_start(service, type, hf_payload_none(), ret_execution, .id = id, .task_queue = "q");
}

static hf_status start_and_release(const char *type, const char *id, hf_execution **ret_execution)
{
    HF_TRY(start(type, id, ret_execution));
    HF_TRY(hf_sleep(hf_seconds(61)));
    (void)has(0, stat_now().released, stat_now().replays);
    return HF_OK;
}

static bool ends(hf_execution *execution, hf_status wanted, const char *text)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status = hf_result(execution, &out, .timeout = hf_seconds(1));
    const char *said = status == HF_OK ? (out.data != NULL ? out.data : "") : hf_error_text();
    return HF_CHECK_SAY(status == wanted && strstr(said, text) != NULL, "%s: %s, not %s: %s", hf_status_name(status),
                        said, hf_status_name(wanted), text);
}

static bool ended_as(hf_execution *execution, const char *type)
{
    hf_status status = hf_result(execution, NULL, .timeout = hf_seconds(1));
    return HF_CHECK_SAY(status == HF_ERR_FAILED && strcmp(hf_error()->type, type) == 0, "%s: %s, not %s",
                        hf_status_name(status), hf_error_text(), type);
}

/* ---- L1, L2: who is idle, and since when ---------------------------------------------------------------------------- */

static hf_time idle_since(hf_execution *execution)
{
    hf_description *it = NULL;
    hf_time since = {0};
    if (HF_CHECK(hf_describe(execution, &it) == HF_OK)) {
        HF_CHECK(it->status == HF_WORKFLOW_RUNNING);
        since = it->idle_since;
    }
    hf_description_free(it);
    return since;
}

static hf_status look_at_idle(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    hf_time from = hf_wall_now(NULL);
    HF_TRY(start("count", "c", &run));
    HF_TRY(hf_sleep(hf_seconds(20)));
    hf_time first = idle_since(run);
    HF_CHECK(first.ns >= from.ns && first.ns < from.ns + hf_seconds(1).ns);
    HF_TRY(hf_signal(run, "add", hf_payload_of_json("1")));
    HF_TRY(hf_sleep(hf_seconds(50))); /* 70 s after the start, 50 s after it was last busy */
    hf_time second = idle_since(run);
    HF_CHECK(second.ns >= from.ns + hf_seconds(20).ns && second.ns < from.ns + hf_seconds(21).ns);
    (void)has(1, 0, 0);
    HF_TRY(hf_sleep(hf_seconds(9)));
    (void)has(1, 0, 0);
    HF_TRY(hf_sleep(hf_seconds(2)));
    (void)has(0, 1, 0);
    HF_CHECK(idle_since(run).ns == second.ns); /* a release is no change */
    return HF_OK;
}

static void L1_L2_a_run_is_released_when_it_was_idle_for_60_s(void **state)
{
    (void)state;
    play_scene((scene){.body = look_at_idle});
}

static hf_status look_at_nobody(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(start("count", "c", &run));
    HF_TRY(hf_sleep(hf_hours(1)));
    (void)has(1, 0, 0);
    return HF_OK;
}

static void L5_without_an_idle_timeout_only_the_bounds_count(void **state)
{
    (void)state;
    play_scene((scene){.body = look_at_nobody, .options = {.idle_timeout = HF_SPAN_OFF}});
}

/* ---- What brings a run back ------------------------------------------------------------------------------------------ */

static hf_status bring_back(void)
{
    HF_AUTO(hf_execution_free) hf_execution *waits = NULL;
    HF_AUTO(hf_execution_free) hf_execution *sleeps = NULL;
    HF_AUTO(hf_execution_free) hf_execution *bounded = NULL;
    HF_AUTO(hf_execution_free) hf_execution *works = NULL;
    HF_AUTO(hf_execution_free) hf_execution *counts = NULL;
    HF_AUTO(hf_execution_free) hf_execution *canceled = NULL;
    HF_AUTO(hf_payload_free) hf_payload answer = hf_payload_none();
    HF_TRY(start("wait", "w", &waits));
    HF_TRY(start("sleep", "s", &sleeps));
    HF_TRY(start("bounded", "b", &bounded));
    HF_TRY(start("work", "a", &works));
    HF_TRY(start("count", "c", &counts));
    HF_TRY(start("clean_up", "x", &canceled));
    HF_TRY(hf_sleep(hf_seconds(62)));
    (void)has(0, 6, 0);
    HF_TRY(hf_signal(waits, "go", hf_payload_of_json("7"))); /* an event */
    HF_CHECK(ends(waits, HF_OK, "7"));
    HF_TRY(hf_query(counts, "count", hf_payload_none(), &answer));
    HF_CHECK(strcmp(answer.data, "0") == 0);
    HF_TRY(hf_cancel(canceled));
    HF_TRY(hf_sleep(hf_seconds(1)));
    (void)has(2, 6, 3); /* those that went on: the query's, and the one that cleans up */
    HF_TRY(hf_sleep(hf_seconds(300 - 63 - 1)));
    (void)has(0, 8, 3);
    HF_TRY(hf_sleep(hf_seconds(2))); /* its timer, its wait's bound, the end of its activity */
    HF_CHECK(ends(sleeps, HF_OK, "\"slept\"") && ends(works, HF_OK, "\"done\""));
    (void)has(1, 8, 6);
    HF_TRY(hf_sleep(hf_seconds(300))); /* the bound of the scope around it */
    HF_CHECK(ends(bounded, HF_OK, "\"HF_ERR_TIMEOUT HF_ERR_CANCELED\""));
    HF_CHECK(ended_as(canceled, "WorkflowCanceled"));
    return HF_OK;
}

static void N11_event_timer_deadline_cancel_and_query_bring_a_run_back(void **state)
{
    (void)state;
    play_scene((scene){.body = bring_back});
}

/* A deadline of the run itself needs no code: nobody is brought back for it. */
static hf_status let_it_time_out(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(hf_start(service, "wait", hf_payload_none(), &run, .id = "t", .task_queue = "q",
                    .run_timeout = hf_seconds(120)));
    HF_TRY(hf_sleep(hf_seconds(119)));
    (void)has(0, 1, 0);
    HF_CHECK(hf_result(run, NULL, .timeout = HF_SPAN_OFF) == HF_ERR_TIMEOUT);
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(hf_signal(run, "go", hf_payload_none()) == HF_ERR_NOT_FOUND); /* it has ended, and stays so */
    HF_CHECK(ended_as(run, "WorkflowTimedOut"));
    (void)has(0, 1, 0);
    return HF_OK;
}

static void N11_the_deadline_of_a_released_run_ends_it(void **state)
{
    (void)state;
    play_scene((scene){.body = let_it_time_out});
}

/* PROMISES: a canceled run that was released stayed "running" in another system, and a later event completed it. */
static hf_status cancel_a_released_one(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(start_and_release("wait", "w", &run));
    HF_TRY(hf_cancel(run));
    HF_CHECK(ended_as(run, "WorkflowCanceled"));
    HF_CHECK(hf_signal(run, "go", hf_payload_none()) == HF_ERR_NOT_FOUND);
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    hf_description *it = NULL;
    HF_TRY(hf_describe(run, &it));
    HF_CHECK(it->status == HF_WORKFLOW_CANCELED && it->closed.ns != 0);
    hf_description_free(it);
    (void)has(0, 1, 1); /* a run that has ended is not in memory */
    return HF_OK;
}

static void N11_a_released_run_can_be_canceled(void **state)
{
    (void)state;
    play_scene((scene){.body = cancel_a_released_one});
}

/* ---- L3, L4, L6, L10 -------------------------------------------------------------------------------------------------- */

static hf_status signal_after_the_end(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(start_and_release("wait", "w", &run));
    HF_TRY(hf_signal(run, "go", hf_payload_of_json("1"))); /* it is acknowledged, and brings the run back */
    HF_CHECK(ends(run, HF_OK, "1"));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    (void)has(0, 1, 1); /* it has ended as any other run does */
    HF_CHECK(hf_signal(run, "go", hf_payload_of_json("2")) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_error_text()[0] != '\0');
    HF_TRY(hf_sleep(hf_seconds(1)));
    (void)has(0, 1, 1); /* nothing was loaded for it */
    return HF_OK;
}

static void L4_L10_an_event_wakes_a_released_run_and_a_closed_one_refuses_it(void **state)
{
    (void)state;
    play_scene((scene){.body = signal_after_the_end});
}

static hf_status signal_what_nobody_takes(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(start_and_release("wait", "w", &run));
    for (uint64_t i = 1; i <= 3; i++) {
        HF_TRY(hf_signal(run, "nobody", hf_payload_none()));
        HF_TRY(hf_sleep(hf_seconds(1)));
        (void)has(1, i, i);
        HF_TRY(hf_sleep(hf_seconds(60)));
        (void)has(0, i + 1, i);
    }
    HF_TRY(hf_signal(run, "go", hf_payload_of_json("5")));
    HF_CHECK(ends(run, HF_OK, "5"));
    return HF_OK;
}

static void L6_an_event_that_nobody_takes_loads_a_run_and_it_is_released_again(void **state)
{
    (void)state;
    play_scene((scene){.body = signal_what_nobody_takes});
}

/* The worker goes, and comes back twice: without the workflow, and with it. */
static hf_status come_back_without_it(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_worker_free) hf_worker *other = NULL;
    HF_TRY(start_and_release("wait", "w", &run));
    HF_TRY(hf_worker_stop(worker));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_worker_new(service, "q", &other));
    HF_TRY(hf_worker_add_workflow(other, "other", sleep_long));
    HF_TRY(hf_worker_start(other));
    HF_TRY(hf_signal(run, "go", hf_payload_of_json("3")));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_CHECK(begun == 1 && idle_since(run).ns != 0); /* it runs on, and no code of it has */
    HF_TRY(hf_worker_free(other));
    other = NULL;
    HF_TRY(hf_worker_new(service, "q", &other));
    HF_TRY(add_all(other));
    HF_TRY(hf_worker_start(other));
    HF_TRY(hf_sleep(hf_seconds(30))); /* the failed task is tried again */
    HF_CHECK(ends(run, HF_OK, "3") && begun == 2);
    return HF_OK;
}

static void L3_a_released_run_is_loaded_only_where_its_workflow_is_known(void **state)
{
    (void)state;
    play_scene((scene){.body = come_back_without_it});
}

/* ---- L5, L7, L8, L12 --------------------------------------------------------------------------------------------------- */

static hf_status release_many(void)
{
    enum { MANY = 20 };
    hf_execution *runs[MANY];
    char id[16];
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "r%d", i);
        HF_TRY(start(i % 5 == 2 ? "clings" : "wait", id, &runs[i]));
        HF_TRY(hf_sleep(hf_milliseconds(100)));
    }
    (void)has(10, 10, 0); /* .cached_max: those that were used last stay */
    HF_TRY(hf_signal(runs[MANY - 1], "nobody", hf_payload_none()));
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    (void)has(10, 10, 0);
    HF_TRY(hf_signal(runs[0], "nobody", hf_payload_none()));
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    (void)has(10, 11, 1);
    HF_TRY(hf_sleep(hf_seconds(62)));
    (void)has(0, 21, 1); /* those that cling to their stack, too */
    for (int i = 0; i < MANY; i++) {
        HF_TRY(hf_signal(runs[i], "go", hf_payload_of_json("1")));
    }
    HF_TRY(hf_sleep(hf_seconds(1)));
    for (int i = 0; i < MANY; i++) {
        HF_CHECK(ends(runs[i], HF_OK, i % 5 == 2 ? "" : "1"));
        hf_execution_free(runs[i]);
    }
    return HF_OK;
}

static void L5_the_sweep_releases_all_and_one_that_does_not_leave_holds_up_nobody(void **state)
{
    (void)state;
    play_scene((scene){.body = release_many, .options = {.cached_max = 10}});
}

/* Events come around the moment at which the run is released, each seed in another order. */
static hf_status race(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload answer = hf_payload_none();
    HF_TRY(start("count", "c", &run));
    for (int i = 0; i < 20; i++) {
        HF_TRY(hf_sleep(hf_nanoseconds(hf_seconds(1).ns + (i - 10) * (i % 3) * 1000)));
        HF_TRY(hf_signal(run, "add", hf_payload_of_json("1")));
    }
    HF_TRY(hf_query(run, "count", hf_payload_none(), &answer));
    HF_CHECK_SAY(strcmp(answer.data, "20") == 0, "%s of 20 events arrived", (const char *)answer.data);
    HF_TRY(hf_signal(run, "add", hf_payload_of_json("80")));
    HF_CHECK(ends(run, HF_OK, "100"));
    return HF_OK;
}

static uint64_t races_released;

static hf_status race_and_note(void)
{
    HF_TRY(race());
    races_released += stat_now().released;
    return HF_OK;
}

static void one_race(uint64_t seed)
{
    scene s = {.body = race_and_note, .options = {.size = sizeof(hf_worker_options), .idle_timeout = hf_seconds(1)}};
    hf_status status = hf_sim_run(seed, 1 + (int)(seed % 3), play, &s, NULL);
    HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
}

static void L7_release_and_event_race_and_no_event_is_lost(void **state)
{
    (void)state;
    races_released = 0;
    hf_each_seed("races of release and event", 300, one_race);
    HF_CHECK(races_released > 0);
}

static hf_status signal_one(void *arg)
{
    return hf_signal(arg, "add", hf_payload_of_json("1"));
}

static hf_status query_one(void *arg)
{
    HF_AUTO(hf_payload_free) hf_payload answer = hf_payload_none();
    return hf_query(arg, "count", hf_payload_none(), &answer);
}

static hf_status send_at_once(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload answer = hf_payload_none();
    HF_TRY(start_and_release("count", "c", &run));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < 50; i++) {
            HF_TRY(hf_fork(scope, i % 5 == 0 ? query_one : signal_one, run));
        }
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_query(run, "count", hf_payload_none(), &answer));
    HF_CHECK(strcmp(answer.data, "40") == 0);
    (void)has(1, 1, 1); /* one load for all of them */
    return HF_OK;
}

static void L8_many_events_at_once_load_a_run_once(void **state)
{
    (void)state;
    play_scene((scene){.body = send_at_once});
}

/* After a restart only those are loaded for which something has happened. */
static hf_status restart(void)
{
    HF_AUTO(hf_execution_free) hf_execution *waits = NULL;
    HF_AUTO(hf_execution_free) hf_execution *sleeps = NULL;
    HF_AUTO(hf_execution_free) hf_execution *late = NULL;
    HF_AUTO(hf_worker_free) hf_worker *other = NULL;
    HF_TRY(start("sleep", "s", &sleeps));
    HF_TRY(start("count", "c", &waits));
    HF_TRY(start("wait", "w", &late));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_worker_stop(worker));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_signal(late, "go", hf_payload_of_json("9"))); /* while nobody is there */
    HF_TRY(hf_worker_new(service, "q", &other));
    HF_TRY(add_all(other));
    HF_TRY(hf_worker_start(other));
    worker = other;
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(ends(late, HF_OK, "9"));
    (void)has(0, 0, 1);
    HF_TRY(hf_sleep(hf_minutes(5)));
    HF_CHECK(ends(sleeps, HF_OK, "\"slept\""));
    (void)has(0, 0, 2);
    return HF_OK;
}

static void L12_a_restart_loads_only_runs_for_which_something_has_happened(void **state)
{
    (void)state;
    play_scene((scene){.body = restart});
}

/* ---- N12, X16 ----------------------------------------------------------------------------------------------------------- */

static char lines[16 * 1024];
static size_t lines_len;

static void keep_line(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    int len = snprintf(lines + lines_len, sizeof lines - lines_len, "%s %s\n", event, fields);
    lines_len += len > 0 && (size_t)len < sizeof lines - lines_len ? (size_t)len : 0;
}

static int accepted;
static int refused;

static hf_status send_go(void *arg)
{
    hf_status status = hf_signal(arg, "go", hf_payload_of_json("1"));
    accepted += status == HF_OK;
    refused += status == HF_ERR_NOT_FOUND;
    return status == HF_ERR_NOT_FOUND ? HF_OK : status;
}

/* The summary of the event that closed the run; "" = it has none. */
static hf_status read_summary(hf_execution *run, char text[300])
{
    hf_op op;
    hf_op_init(&op);
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(hf_execution_id(run))};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &execution};
    hf_pb_history history = {0};
    hf_call call;
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, service, &call);
    if (status == HF_OK) {
        const hf_pb_get_workflow_execution_history_response *response = call.response;
        status = hf_pb_decode(&op, &hf_pb_history_type, response->history, &arena, &history);
    }
    text[0] = '\0';
    if (status == HF_OK && HF_CHECK(history.events.count > 0)) {
        const hf_pb_history_event *last = &history.events.items[history.events.count - 1];
        const hf_pb_payload *summary = last->user_metadata != NULL ? last->user_metadata->summary : NULL;
        HF_CHECK(last->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED);
        (void)snprintf(text, 300, "%.*s", summary != NULL ? (int)summary->data.len : 0,
                       summary != NULL ? summary->data.data : "");
    }
    hf_arena_deinit(&arena);
    return status;
}

static hf_status send_two(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    accepted = refused = 0;
    HF_TRY(start_and_release("wait", "only-one", &run));
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_fork(scope, send_go, run));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(ends(run, HF_OK, "1"));
    char summary[300];
    static const char *const WANTED[] = {"",
                                         "",
                                         "\"it ended over 1 signal: go\"",
                                         "\"it ended over 2 signals: go, go\"",
                                         "\"it ended over 3 signals: go, go, go\"",
                                         "\"it ended over 4 signals: go, go, go, go\""};
    HF_TRY(read_summary(run, summary));
    HF_CHECK_SAY(strcmp(summary, WANTED[accepted]) == 0, "%d were accepted, and the end says %s", accepted, summary);
    return HF_OK;
}

/* Five events at once for a run that takes one: each of the others was refused, or is named in the log and at the end of the
 * history. */
static void N12_events_for_a_released_run_that_takes_one_are_never_lost_silently(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        scene s = {.body = send_two, .options = {.size = sizeof(hf_worker_options)}};
        memset(lines, 0, sizeof lines);
        lines_len = 0;
        hf_env *env = hf_sim_begin(seed);
        hf_runtime_options options = hf_sim_runtime_options(env, 1 + (int)(seed % 2));
        options.log = keep_line;
        hf_status status = hf_run_with(play, &s, &options);
        HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
        hf_sim_end(env, NULL);
        HF_CHECK(accepted + refused == 5 && accepted >= 1);
        bool is_named = strstr(lines, "workflow_ends_over_signals workflow=only-one") != NULL;
        HF_CHECK_SAY(is_named == (accepted > 1), "%d accepted, %d refused, and the log says\n%s", accepted, refused,
                     lines);
    }
}

/* An activity that runs is not stopped when its run leaves memory, and no run leaves memory in the middle of a step. */
static hf_status release_beside_work(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(start_and_release("work", "a", &run));
    HF_CHECK(stat_now().activities == 1);
    HF_TRY(hf_sleep(hf_seconds(300 - 61 + 1)));
    HF_CHECK(ends(run, HF_OK, "\"done\"") && stat_now().activities == 0);
    (void)has(0, 1, 1);
    return HF_OK;
}

static void X16_a_release_leaves_activities_alone(void **state)
{
    (void)state;
    play_scene((scene){.body = release_beside_work});
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------- */

static uint64_t trims_now(void)
{
    return hf_sim_of(hf_runtime_current()->env)->heap_trims;
}

/* A run has more than 10 KiB. */
static hf_status start_some(int first, int count)
{
    char id[16];
    for (int i = first; i < first + count; i++) {
        (void)snprintf(id, sizeof id, "m%d", i);
        HF_TRY(start("wait", id, NULL));
    }
    return HF_OK;
}

static hf_status release_much(void)
{
    HF_TRY(start_some(0, 50)); /* too little to ask the system for it */
    HF_TRY(hf_sleep(hf_seconds(90)));
    (void)has(0, 50, 0);
    HF_CHECK(trims_now() == 0);
    HF_TRY(start_some(50, 600));
    HF_TRY(hf_sleep(hf_seconds(60)));
    HF_CHECK(trims_now() == 0);
    HF_TRY(hf_sleep(hf_seconds(3)));
    (void)has(0, 650, 0);
    HF_CHECK(trims_now() == 1);
    HF_TRY(start_some(650, 600)); /* once in .idle_timeout at most: these are released 60 s after the last ones */
    HF_TRY(hf_sleep(hf_seconds(600)));
    HF_CHECK_SAY(trims_now() == 2, "the heap was trimmed %llu times", (unsigned long long)trims_now());
    return HF_OK;
}

static void the_memory_of_many_released_runs_goes_back_to_the_system(void **state)
{
    (void)state;
    play_scene((scene){.body = release_much});
}

/* ---- Again and again ----------------------------------------------------------------------------------------------------- */

typedef struct memory {
    size_t heap;
    uint64_t stacks;
    uint64_t fibers;
} memory;

/* One thread of the operating system runs a simulation, so glibc counts in one place. A sanitizer counts nothing. */
static memory memory_now(void)
{
    hf_stats all;
    memset(&all, 0, sizeof all);
    HF_CHECK(hf_runtime_stats(NULL, &all) == HF_OK);
    return (memory){mallinfo2().uordblks, all.stack_bytes, all.fibers};
}

static hf_status release_again_and_again(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    uint64_t count = hf_test_seeds(100000);
    memory early = {0, 0, 0};
    HF_TRY(start("count", "c", &run));
    HF_TRY(hf_signal(run, "add", hf_payload_of_json("42")));
    HF_TRY(hf_sleep(hf_seconds(2)));
    for (uint64_t i = 0; i < count; i++) {
        HF_AUTO(hf_payload_free) hf_payload answer = hf_payload_none();
        HF_TRY(hf_query(run, "count", hf_payload_none(), &answer)); /* writes no event: the history stays as it is */
        HF_CHECK(strcmp(answer.data, "42") == 0);
        HF_TRY(hf_sleep(hf_seconds(2)));
        early = i == count / 10 ? memory_now() : early;
    }
    hf_worker_stats all = stat_now();
    memory late = memory_now();
    HF_CHECK(all.resident == 0 && all.bytes == 0 && all.replays == count && all.released == count + 1);
    HF_CHECK_SAY(late.heap <= early.heap + 16 * 1024 && late.stacks == early.stacks && late.fibers == early.fibers,
                 "heap %zu, then %zu; stacks %llu, then %llu; fibers %llu, then %llu", early.heap, late.heap,
                 (unsigned long long)early.stacks, (unsigned long long)late.stacks, (unsigned long long)early.fibers,
                 (unsigned long long)late.fibers);
    return HF_OK;
}

static void a_run_is_released_and_loaded_100_000_times_without_growth(void **state)
{
    (void)state;
    scene s = {.body = release_again_and_again,
               .options = {.size = sizeof(hf_worker_options), .idle_timeout = hf_seconds(1)}};
    hf_env *env = hf_sim_begin_with(1, (hf_sim_options){.steps_max = 2000000000});
    hf_runtime_options options = hf_sim_runtime_options(env, 1);
    hf_status status = hf_run_with(play, &s, &options);
    HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
    hf_sim_end(env, NULL);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(L1_L2_a_run_is_released_when_it_was_idle_for_60_s),
    cmocka_unit_test(L3_a_released_run_is_loaded_only_where_its_workflow_is_known),
    cmocka_unit_test(L4_L10_an_event_wakes_a_released_run_and_a_closed_one_refuses_it),
    cmocka_unit_test(L5_without_an_idle_timeout_only_the_bounds_count),
    cmocka_unit_test(L5_the_sweep_releases_all_and_one_that_does_not_leave_holds_up_nobody),
    cmocka_unit_test(L6_an_event_that_nobody_takes_loads_a_run_and_it_is_released_again),
    cmocka_unit_test(L7_release_and_event_race_and_no_event_is_lost),
    cmocka_unit_test(L8_many_events_at_once_load_a_run_once),
    cmocka_unit_test(L12_a_restart_loads_only_runs_for_which_something_has_happened),
    cmocka_unit_test(N11_event_timer_deadline_cancel_and_query_bring_a_run_back),
    cmocka_unit_test(N11_the_deadline_of_a_released_run_ends_it),
    cmocka_unit_test(N11_a_released_run_can_be_canceled),
    cmocka_unit_test(N12_events_for_a_released_run_that_takes_one_are_never_lost_silently),
    cmocka_unit_test(X16_a_release_leaves_activities_alone),
    cmocka_unit_test(the_memory_of_many_released_runs_goes_back_to_the_system),
    cmocka_unit_test(a_run_is_released_and_loaded_100_000_times_without_growth),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_idle", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
