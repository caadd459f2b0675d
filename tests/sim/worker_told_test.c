/* How an activity learns that it must end, and why: on the real worker and engine, on virtual time. It blocks in a
 * call that returns when its thread is signalled (.on_fiber: it waits in a verb of the library), so it must be
 * interrupted. */
#include "support/support.h"

#include "base/base.h"
#include "env/sim/sim.h"
#include "service/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t SECOND = INT64_C(1000000000);

typedef struct scene {
    hf_activity_options options;                    /* of the activity */
    int beat_at;                                    /* seconds after which it heartbeats; 0 = never, 1 = every second */
    hf_status (*then)(hf_execution *, hf_worker *); /* by the client; NULL = nothing */
    int told_at;                                    /* seconds after which it is told, rounded down */
    hf_cause cause;
    const char *reason;
    hf_cancel_why why;
    int calls; /* of the activity; 0 = 1 */
} scene;

static const scene *now_playing;
static hf_env *env;
static bool on_fiber;
static int told_count;
static int call_count;
static hf_service *asked;

/* Waits for a while, or until something tells it to end. */
static hf_status sit(int64_t seconds)
{
    int64_t until = hf_now(NULL).ns + seconds * SECOND;
    hf_word never = 0;
    while (hf_canceled() == HF_OK && hf_now(NULL).ns < until) {
        if (on_fiber) {
            HF_IGNORE(hf_sleep(hf_nanoseconds(until - hf_now(NULL).ns)));
        } else {
            (void)env->ops->word_wait(env, &never, 0, (hf_instant){until});
        }
    }
    return hf_canceled();
}

static hf_status act(hf_payload in, hf_payload *ret_out)
{
    const scene *s = now_playing;
    int64_t from = hf_now(NULL).ns;
    (void)in;
    (void)ret_out;
    if (++call_count > 1) {
        return HF_OK;
    }
    HF_CHECK(hf_activity_cancel_why() == HF_WHY_NOT);
    hf_status status = sit(s->beat_at != 0 ? s->beat_at : 100000);
    while (status == HF_OK) {
        HF_IGNORE(hf_activity_heartbeat(hf_payload_none()));
        status = sit(s->beat_at == 1 ? 1 : 100000);
    }
    const char *reason = NULL;
    hf_cause cause = hf_cancel_cause(&reason);
    int64_t after = hf_now(NULL).ns - from;
    HF_CHECK_SAY(cause == s->cause && strcmp(reason, s->reason) == 0, "%s: %s, not %s", hf_cause_name(cause), reason,
                 s->reason);
    HF_CHECK_SAY(after >= s->told_at * SECOND && after < (s->told_at + 1) * SECOND,
                 "it was told '%s' after %" PRId64 " ms", reason, after / 1000000);
    HF_CHECK_SAY(hf_activity_cancel_why() == s->why, "%s: why %d", reason, (int)hf_activity_cancel_why());
    told_count++;
    return status;
}

static hf_status ask(hf_payload in, hf_payload *ret_out)
{
    hf_activity_options options = now_playing->options;
    options.size = sizeof options;
    options.attempts_max = now_playing->calls > 1 ? now_playing->calls : 1;
    hf_status status = hf_activity_run_with("act", in, ret_out, &options);
    if (status == HF_ERR_CANCELED) { /* the run stays: the activity is not gone, but no longer wanted */
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(hf_minutes(1), &shield));
        HF_TRY(hf_sleep(hf_seconds(30)));
    }
    return status;
}

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status play(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open("memory:", &service));
    asked = service;
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "ask", ask));
    HF_TRY(hf_worker_add_activity(worker, "act", act, .on_fiber = on_fiber));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_start(service, "ask", hf_payload_none(), &execution, .task_queue = "q"));
    if (now_playing->then != NULL) {
        HF_TRY(hf_sleep(hf_milliseconds(5500)));
        HF_TRY(now_playing->then(execution, worker));
    }
    HF_TRY(hf_sleep(hf_seconds(60)));
    HF_CHECK_SAY(told_count == 1, "it was told %d times", told_count);
    HF_CHECK_SAY(call_count == (now_playing->calls > 0 ? now_playing->calls : 1), "it ran %d times", call_count);
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static void play_scene(const scene *s)
{
    for (int i = 0; i < 6; i++) {
        now_playing = s;
        on_fiber = i % 2 != 0;
        told_count = call_count = 0;
        env = hf_sim_begin((uint64_t)i + 1);
        hf_runtime_options options = hf_sim_runtime_options(env, 1 + i / 2);
        options.watchdog.signal = 23;
        HF_CHECK(hf_run_with(play, NULL, &options) == HF_OK);
        hf_sim_end(env, NULL);
    }
}

static hf_status cancel(hf_execution *execution, hf_worker *worker)
{
    (void)worker;
    return hf_cancel(execution);
}

static hf_status terminate(hf_execution *execution, hf_worker *worker)
{
    (void)worker;
    return hf_terminate(execution);
}

/* No verb of the client does this; tools of other makers may. */
static hf_status ask_about_activity(hf_method method, const void *request)
{
    hf_arena arena;
    hf_op op;
    hf_call call;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_call_init(&call, method, request, &arena, NULL);
    hf_status status = hf_service_ask(&op, asked, &call);
    HF_CHECK_SAY(status == HF_OK, "%s", op.message);
    hf_arena_deinit(&arena);
    return status;
}

static hf_status pause_it(hf_execution *execution, hf_worker *worker)
{
    (void)worker;
    hf_pb_workflow_execution which = {.workflow_id = hf_str_of(hf_execution_id(execution))};
    hf_pb_pause_activity_request request = {.namespace = HF_STR("default"),
                                            .execution = &which,
                                            .activity_case = HF_PB_PAUSE_ACTIVITY_REQUEST_ID,
                                            .id = HF_STR("1")};
    return ask_about_activity(HF_METHOD_PAUSE_ACTIVITY, &request);
}

static hf_status reset_it(hf_execution *execution, hf_worker *worker)
{
    (void)worker;
    hf_pb_workflow_execution which = {.workflow_id = hf_str_of(hf_execution_id(execution))};
    hf_pb_reset_activity_request request = {.namespace = HF_STR("default"),
                                            .execution = &which,
                                            .activity_case = HF_PB_RESET_ACTIVITY_REQUEST_ID,
                                            .id = HF_STR("1")};
    return ask_about_activity(HF_METHOD_RESET_ACTIVITY, &request);
}

static hf_status stop(hf_execution *execution, hf_worker *worker)
{
    (void)execution;
    return hf_worker_stop(worker);
}

/* The worker knows these timeouts itself; no heartbeat is needed to learn of them. */
static void T13_an_attempt_whose_time_is_over_is_told_which(void **state)
{
    (void)state;
    static const char ONE[] = "the start_to_close timeout of the activity is over";
    static const char ALL[] = "the schedule_to_close timeout of the activity is over";
    static const scene SCENES[] = {
        {.options = {.start_to_close = {.ns = 3000000000}},
         .told_at = 3,
         .cause = HF_CAUSE_DEADLINE,
         .why = HF_WHY_TIMED_OUT,
         .reason = ONE},
        {.options = {.start_to_close = {.ns = 3000000000}, .schedule_to_close = {.ns = 9000000000}},
         .told_at = 3,
         .cause = HF_CAUSE_DEADLINE,
         .why = HF_WHY_TIMED_OUT,
         .reason = ONE},
        {.options = {.schedule_to_close = {.ns = 4000000000}},
         .told_at = 4,
         .cause = HF_CAUSE_DEADLINE,
         .why = HF_WHY_TIMED_OUT,
         .reason = ALL},
        {.options = {.start_to_close = {.ns = 9000000000}, .schedule_to_close = {.ns = 4000000000}},
         .told_at = 4,
         .cause = HF_CAUSE_DEADLINE,
         .why = HF_WHY_TIMED_OUT,
         .reason = ALL},
    };
    for (size_t i = 0; i < HF_COUNT_OF(SCENES); i++) {
        play_scene(&SCENES[i]);
    }
}

static void T13_an_activity_that_was_not_heard_in_time_is_told_so(void **state)
{
    (void)state;
    static const char BEAT[] = "the heartbeat timeout of the activity is over";
    static const hf_activity_options OPTIONS = {
        .size = sizeof OPTIONS, .start_to_close = {.ns = 50000000000}, .heartbeat = {.ns = 5000000000}};
    const scene scenes[] = {
        {.options = OPTIONS, .told_at = 5, .cause = HF_CAUSE_DEADLINE, .why = HF_WHY_TIMED_OUT, .reason = BEAT},
        {.options = OPTIONS,
         .beat_at = 3,
         .told_at = 8,
         .cause = HF_CAUSE_DEADLINE,
         .why = HF_WHY_TIMED_OUT,
         .reason = BEAT},
    };
    for (size_t i = 0; i < HF_COUNT_OF(scenes); i++) {
        play_scene(&scenes[i]);
    }
}

/* A cancel of its workflow, which this process runs, reaches it at once. That the workflow was ended from outside it hears
 * by a heartbeat: they go out at 1 s and then every 4 s, and the one at 9 s brings the news of 5.5 s. */
static void T13_an_activity_that_is_not_wanted_hears_of_it(void **state)
{
    (void)state;
    static const hf_activity_options OPTIONS = {
        .size = sizeof OPTIONS, .start_to_close = {.ns = 50000000000}, .heartbeat = {.ns = 5000000000}};
    const scene scenes[] = {
        {.options = OPTIONS,
         .beat_at = 1,
         .then = cancel,
         .told_at = 5,
         .cause = HF_CAUSE_EXPLICIT,
         .why = HF_WHY_CANCELED,
         .reason = "the workflow canceled the activity"},
        {.options = OPTIONS,
         .beat_at = 1,
         .then = terminate,
         .told_at = 9,
         .cause = HF_CAUSE_EXPLICIT,
         .why = HF_WHY_GONE,
         .reason = "the workflow of this activity has ended"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(scenes); i++) {
        play_scene(&scenes[i]);
    }
}

static void T13_a_worker_that_stops_tells_its_activities_after_the_grace(void **state)
{
    (void)state;
    static const scene SCENE = {.options = {.start_to_close = {.ns = 50000000000}},
                                .then = stop,
                                .told_at = 15,
                                .cause = HF_CAUSE_EXPLICIT,
                                .why = HF_WHY_SHUTDOWN,
                                .reason = "the worker stops"};
    play_scene(&SCENE);
}

/* Only a heartbeat tells of these two. The paused one is not tried again, and the reset one is. */
static void an_activity_that_was_paused_or_reset_hears_of_it_and_is_not_lost(void **state)
{
    (void)state;
    static const hf_activity_options OPTIONS = {
        .size = sizeof OPTIONS, .start_to_close = {.ns = 50000000000}, .heartbeat = {.ns = 5000000000}};
    const scene scenes[] = {
        {.options = OPTIONS,
         .beat_at = 1,
         .then = pause_it,
         .told_at = 9,
         .cause = HF_CAUSE_EXPLICIT,
         .why = HF_WHY_PAUSED,
         .reason = "the activity was paused"},
        {.options = OPTIONS,
         .beat_at = 1,
         .then = reset_it,
         .told_at = 9,
         .cause = HF_CAUSE_EXPLICIT,
         .why = HF_WHY_RESET,
         .calls = 2,
         .reason = "the activity was reset"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(scenes); i++) {
        play_scene(&scenes[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(T13_an_attempt_whose_time_is_over_is_told_which),
        cmocka_unit_test(T13_an_activity_that_was_not_heard_in_time_is_told_so),
        cmocka_unit_test(T13_an_activity_that_is_not_wanted_hears_of_it),
        cmocka_unit_test(T13_a_worker_that_stops_tells_its_activities_after_the_grace),
        cmocka_unit_test(an_activity_that_was_paused_or_reset_hears_of_it_and_is_not_lost),
    };
    return hf_test_main("worker_told", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
