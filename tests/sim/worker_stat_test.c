/* hf_worker_stat, and runs that a worker fails on request (.is_strict, .fails_on_conflict), on virtual time. */
#include "support/support.h"

#include "base/base.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

typedef struct scene {
    hf_status (*body)(hf_service *service, hf_worker *worker);
    hf_worker_options options;
    hf_status end; /* of hf_worker_wait */
} scene;

static bool has_new_code;

static hf_status changes(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(has_new_code ? hf_activity_run("nap", hf_payload_none(), NULL, .start_to_close = hf_minutes(1))
                        : hf_sleep(hf_seconds(10)));
    HF_TRY(hf_sleep(hf_seconds(10)));
    return hf_payload_printf(ret_out, "\"right\"");
}

static hf_status nap(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_seconds(5));
}

static hf_status take_a_nap(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("nap", in, ret_out, .start_to_close = hf_minutes(1));
}

/* Does not hear that its time is over. */
static hf_status hang(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_shield_open(hf_hours(10), &shield));
    return hf_sleep(hf_seconds(100));
}

static hf_status hang_around(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("hang", in, ret_out, .start_to_close = hf_seconds(5), .attempts_max = 1);
}

/* Tries again whatever the answer is, also when it leaves memory. */
static hf_status is_deaf(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    while (hf_signal_wait("go", NULL) != HF_OK) {
    }
    return hf_payload_printf(ret_out, "\"heard\"");
}

/* Sends heartbeats, after 0, 0.5, 1.5, 2.5 ... seconds: how many it has sent. */
static hf_status beat(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    for (int i = 1;; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d", i);
        HF_TRY(hf_activity_heartbeat(hf_payload_of_json(text)));
        HF_TRY(hf_sleep(i == 1 ? hf_milliseconds(500) : hf_seconds(1)));
    }
}

static hf_status beat_on(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("beat", in, ret_out, .start_to_close = hf_minutes(2), .attempts_max = 1);
}

static hf_status play(void *arg)
{
    const scene *s = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new_with(service, "q", &worker, &s->options));
    HF_TRY(hf_worker_add_workflow(worker, "changes", changes));
    HF_TRY(hf_worker_add_workflow(worker, "nap", take_a_nap));
    HF_TRY(hf_worker_add_workflow(worker, "hang", hang_around));
    HF_TRY(hf_worker_add_workflow(worker, "deaf", is_deaf));
    HF_TRY(hf_worker_add_workflow(worker, "beat", beat_on));
    HF_TRY(hf_worker_add_activity(worker, "beat", beat, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "nap", nap, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "hang", hang));
    has_new_code = false;
    HF_TRY(s->body(service, worker));
    HF_TRY(hf_worker_stop(worker));
    HF_CHECK(hf_worker_wait(worker) == s->end);
    hf_worker_stats last;
    HF_TRY(hf_worker_stat(worker, &last));
    HF_CHECK(last.health == (s->end == HF_OK ? HF_WORKER_STOPPED : HF_WORKER_FAILED));
    HF_CHECK(last.resident == 0 && last.bytes == 0 && last.activities == 0);
    return HF_OK;
}

static void play_scene(scene s)
{
    s.options.size = sizeof s.options;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        hf_status status = hf_sim_run(seed, (int)seed, play, &s, NULL);
        HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
    }
}

static hf_status start(hf_service *service, const char *type, hf_execution **ret_execution)
{
    return hf_start(service, type, hf_payload_none(), ret_execution, .id = type, .task_queue = "q");
}

static hf_worker_stats stat_of(hf_worker *worker)
{
    hf_worker_stats now;
    memset(&now, 0xff, sizeof now);
    HF_CHECK(hf_worker_stat(worker, &now) == HF_OK);
    return now;
}

static bool is_at(hf_worker *worker, hf_worker_health health)
{
    hf_worker_health now = stat_of(worker).health;
    return HF_CHECK_SAY(now == health, "it is %s, not %s", hf_worker_health_name(now), hf_worker_health_name(health));
}

/* ---- Counts ---------------------------------------------------------------------------------------------------------- */

static hf_status live(hf_service *service, hf_worker *worker)
{
    HF_AUTO(hf_execution_free) hf_execution *naps = NULL;
    HF_CHECK(hf_worker_stat(NULL, NULL) == HF_ERR_MISUSE && hf_worker_stat(worker, NULL) == HF_ERR_MISUSE);
    is_at(worker, HF_WORKER_NEW);
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    is_at(worker, HF_WORKER_READY);
    HF_TRY(start(service, "nap", &naps));
    HF_TRY(hf_sleep(hf_seconds(1)));
    hf_worker_stats now = stat_of(worker);
    HF_CHECK(now.resident == 1 && now.bytes > 1000 && now.activities == 1 && now.released == 0 && now.replays == 0);
    HF_CHECK(now.conflicts == 0 && now.stuck == 0 && now.activity_zombies == 0 && now.workflow_zombies == 0);
    HF_TRY(hf_worker_stop(worker));
    HF_TRY(hf_sleep(hf_seconds(1))); /* the activity has its grace */
    is_at(worker, HF_WORKER_STOPPING);
    return HF_OK;
}

static void a_worker_tells_what_it_has_and_how_it_is(void **state)
{
    (void)state;
    assert_string_equal(hf_worker_health_name(HF_WORKER_DEGRADED), "degraded");
    assert_string_equal(hf_worker_health_name((hf_worker_health)99), "?");
    play_scene((scene){.body = live});
}

/* Of workflows that went on calling after they had left memory. */
static hf_status do_not_hear(hf_service *service, hf_worker *worker)
{
    HF_AUTO(hf_execution_free) hf_execution *naps = NULL;
    HF_AUTO(hf_execution_free) hf_execution *deaf = NULL;
    HF_TRY(hf_worker_start(worker));
    HF_TRY(start(service, "nap", &naps));
    HF_TRY(start(service, "deaf", &deaf));
    HF_TRY(hf_sleep(hf_seconds(10)));
    HF_CHECK(stat_of(worker).resident == 1 && stat_of(worker).dropped == 0);
    HF_TRY(hf_sleep(hf_seconds(60))); /* it is idle, and released */
    HF_CHECK(stat_of(worker).resident == 0 && stat_of(worker).dropped == 1);
    is_at(worker, HF_WORKER_READY);
    HF_TRY(hf_signal(deaf, "go", hf_payload_none()));
    HF_TRY(hf_result(deaf, NULL));
    HF_CHECK(stat_of(worker).dropped == 1);
    return HF_OK;
}

static void fibers_that_do_not_return_are_counted(void **state)
{
    (void)state;
    play_scene((scene){.body = do_not_hear});
}

/* ---- Heartbeats ------------------------------------------------------------------------------------------------------ */

static hf_span throttle;

static const char *beats_after(hf_execution *run, hf_span span, char text[16])
{
    HF_AUTO(hf_description_free) hf_description *it = NULL;
    HF_CHECK(hf_sleep(span) == HF_OK);
    bool is_told = hf_describe(run, &it) == HF_OK && it->activity_count == 1;
    (void)snprintf(text, 16, "%s",
                   HF_CHECK(is_told) && it->activities[0].heartbeat.data != NULL
                       ? (const char *)it->activities[0].heartbeat.data
                       : "none");
    return text;
}

static hf_status beat_and_look(hf_service *service, hf_worker *worker)
{
    HF_AUTO(hf_execution_free) hf_execution *beats = NULL;
    char text[16];
    HF_TRY(hf_worker_start(worker));
    HF_TRY(start(service, "beat", &beats));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    bool is_short = throttle.ns > 0;
    HF_CHECK(strcmp(beats_after(beats, hf_seconds(4), text), "1") == 0); /* the first goes out at once */
    HF_CHECK_SAY(strcmp(beats_after(beats, hf_seconds(1), text), is_short ? "6" : "1") == 0, "%s", text);
    HF_CHECK_SAY(strcmp(beats_after(beats, hf_seconds(5), text), is_short ? "11" : "1") == 0, "%s", text);
    HF_CHECK_SAY(strcmp(beats_after(beats, hf_seconds(20), text), "31") == 0, "%s", text);
    return hf_terminate(beats);
}

static void a_worker_may_send_heartbeats_more_often(void **state)
{
    (void)state;
    throttle = hf_nanoseconds(0);
    play_scene((scene){.body = beat_and_look});
    throttle = hf_seconds(5);
    play_scene((scene){.body = beat_and_look, .options = {.heartbeat_throttle = throttle}});
    hf_worker *worker = NULL;
    HF_AUTO(hf_close) hf_service *service = NULL;
    assert_int_equal(hf_open("memory:", &service), HF_OK);
    const hf_span WRONG[] = {hf_seconds(-1), hf_nanoseconds(30), hf_nanoseconds(hf_seconds(60).ns + 1),
                             HF_SPAN_UNLIMITED};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        assert_int_equal(hf_worker_new(service, "q", &worker, .heartbeat_throttle = WRONG[i]), HF_ERR_INVALID);
    }
}

static hf_status hang_and_come_back(hf_service *service, hf_worker *worker)
{
    HF_AUTO(hf_execution_free) hf_execution *hangs = NULL;
    HF_TRY(hf_worker_start(worker));
    HF_TRY(start(service, "hang", &hangs));
    HF_TRY(hf_sleep(hf_seconds(14))); /* its time was over 9 s ago */
    is_at(worker, HF_WORKER_READY);
    HF_TRY(hf_sleep(hf_seconds(2)));
    is_at(worker, HF_WORKER_DEGRADED);
    hf_worker_stats now = stat_of(worker);
    HF_CHECK(now.activities == 1 && now.activity_zombies == 1 && now.stuck == 0);
    HF_TRY(hf_sleep(hf_seconds(90)));
    is_at(worker, HF_WORKER_READY);
    HF_CHECK(stat_of(worker).activities == 0);
    return HF_OK;
}

static void N3_health_shows_a_zombie_until_it_has_ended(void **state)
{
    (void)state;
    play_scene((scene){.body = hang_and_come_back});
}

static hf_status cannot_begin(hf_service *service, hf_worker *worker)
{
    HF_AUTO(hf_os_signals_close) hf_os_signals *signals = NULL;
    static const int NUMBER = SIGTERM;
    (void)service;
    HF_TRY(hf_os_signals_open(&NUMBER, 1, &signals)); /* then it cannot be the worker's */
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    is_at(worker, HF_WORKER_FAILED);
    return HF_OK;
}

static void a_worker_that_could_not_begin_has_failed(void **state)
{
    (void)state;
    play_scene((scene){.body = cannot_begin, .options = {.stop_on = SIGTERM}, .end = HF_ERR_EXISTS});
}

/* ---- Verdicts ---------------------------------------------------------------------------------------------------------- */

static hf_status ask_for_unknown(hf_service *service, hf_worker *worker)
{
    HF_AUTO(hf_execution_free) hf_execution *unknown = NULL;
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(service, "unknown", hf_payload_none(), &unknown, .id = "u", .task_queue = "q", .attempts_max = 3));
    hf_status status = hf_result(unknown, NULL, .timeout = hf_seconds(1));
    HF_CHECK_SAY(status == HF_ERR_FAILED && hf_error_find("NotFound") != NULL &&
                     strstr(hf_error_find("NotFound")->message, "has no workflow 'unknown'; it has '") != NULL,
                 "%s: %s", hf_status_name(status), hf_error_text());
    return HF_OK;
}

static void a_strict_worker_fails_runs_of_unknown_types(void **state)
{
    (void)state;
    play_scene((scene){.body = ask_for_unknown, .options = {.is_strict = true}});
}

static hf_status ask_in_vain(hf_service *service, hf_worker *worker)
{
    HF_AUTO(hf_execution_free) hf_execution *unknown = NULL;
    HF_TRY(hf_worker_start(worker));
    HF_TRY(start(service, "unknown", &unknown));
    HF_CHECK(hf_result(unknown, NULL, .timeout = hf_minutes(5)) == HF_ERR_TIMEOUT); /* it waits for another worker */
    return HF_OK;
}

static void another_worker_leaves_them_alone(void **state)
{
    (void)state;
    play_scene((scene){.body = ask_in_vain});
}

static hf_status change_under_it(hf_service *service, hf_worker *worker)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(hf_worker_start(worker));
    HF_TRY(start(service, "changes", &run));
    HF_TRY(hf_sleep(hf_seconds(5)));
    has_new_code = true;
    hf_status status = hf_result(run, NULL, .timeout = hf_seconds(10));
    HF_CHECK_SAY(status == HF_ERR_FAILED && hf_error_find("NotDeterministic") != NULL, "%s: %s", hf_status_name(status),
                 hf_error_text());
    HF_CHECK(stat_of(worker).conflicts == 1);
    return HF_OK;
}

static void a_run_whose_code_has_changed_fails_on_request(void **state)
{
    (void)state;
    play_scene((scene){.body = change_under_it, .options = {.cached_max = HF_OFF, .fails_on_conflict = true}});
}

static hf_status change_and_repair(hf_service *service, hf_worker *worker)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_worker_start(worker));
    HF_TRY(start(service, "changes", &run));
    HF_TRY(hf_sleep(hf_seconds(5)));
    has_new_code = true;
    HF_CHECK(hf_result(run, NULL, .timeout = hf_seconds(20)) == HF_ERR_TIMEOUT);
    HF_CHECK(stat_of(worker).conflicts > 0);
    has_new_code = false;
    HF_TRY(hf_result(run, &out, .timeout = hf_minutes(5)));
    HF_CHECK(strcmp(out.data, "\"right\"") == 0);
    return HF_OK;
}

static void and_without_it_waits_for_the_right_code(void **state)
{
    (void)state;
    play_scene((scene){.body = change_and_repair, .options = {.cached_max = HF_OFF}});
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_worker_tells_what_it_has_and_how_it_is),
    cmocka_unit_test(fibers_that_do_not_return_are_counted),
    cmocka_unit_test(a_worker_may_send_heartbeats_more_often),
    cmocka_unit_test(N3_health_shows_a_zombie_until_it_has_ended),
    cmocka_unit_test(a_worker_that_could_not_begin_has_failed),
    cmocka_unit_test(a_strict_worker_fails_runs_of_unknown_types),
    cmocka_unit_test(another_worker_leaves_them_alone),
    cmocka_unit_test(a_run_whose_code_has_changed_fails_on_request),
    cmocka_unit_test(and_without_it_waits_for_the_right_code),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_stat", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
