/* Activities that are answered later, by token and by id: on the real worker and engine, on virtual time. What survives the
 * end of the process is in tests/unit/client/pending_test.c. */
#include "support/support.h"

#include "base/base.h"
#include "env/sim/sim.h"

#include <stdio.h>
#include <string.h>

typedef struct scene {
    hf_activity_options options;
    hf_status (*answer)(hf_service *service, hf_execution *execution);
    hf_status expect;        /* of hf_activity_run */
    const char *out;         /* its result; NULL = not compared */
    const char *type;        /* type of the cause of its failure; NULL = not compared */
    int calls;               /* of the activity; 0 = 1 */
    bool is_answered_before; /* its function answers, and then returns HF_PENDING */
} scene;

static const scene *now_playing;
static hf_service *asked;
static hf_payload tokens[4]; /* of each call */
static int call_count;
static int other_count; /* calls of the other activity */

static hf_status ask(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_CHECK(call_count < 4);
    HF_TRY(hf_activity_token(&tokens[call_count++]));
    HF_TRY(hf_activity_heartbeat(hf_payload_of_json("\"asked\"")));
    if (now_playing->is_answered_before) {
        HF_TRY(hf_answer(asked, hf_answer_to(tokens[0]), hf_payload_of_json("\"before\"")));
    }
    return HF_PENDING;
}

/* Needs the only slot of the worker while the first one is pending. */
static hf_status other(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    other_count++;
    return HF_OK;
}

static hf_status run_other(void *arg)
{
    (void)arg;
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_activity_run("other", hf_payload_none(), NULL, .start_to_close = hf_seconds(1), .attempts_max = 1);
}

static hf_status flow(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_activity_options options = now_playing->options;
    options.size = sizeof options;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_other, NULL));
    hf_status status = hf_activity_run_with("ask", in, ret_out, &options);
    HF_CHECK_SAY(status == now_playing->expect, "%s: %s", hf_status_name(status), hf_error_text());
    if (now_playing->type != NULL && status != HF_OK) {
        const hf_failure *cause = hf_error()->cause;
        HF_CHECK_SAY(cause != NULL && strcmp(cause->type, now_playing->type) == 0, "%s", hf_error_text());
    }
    return status == HF_ERR_CANCELED ? status : HF_OK;
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
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_open("memory:", &service));
    asked = service;
    HF_TRY(hf_worker_new(service, "q", &worker, .activities_max = 1));
    HF_TRY(hf_worker_add_workflow(worker, "flow", flow));
    HF_TRY(hf_worker_add_activity(worker, "ask", ask));
    HF_TRY(hf_worker_add_activity(worker, "other", other));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_start(service, "flow", hf_payload_none(), &execution, .id = "wf", .task_queue = "q"));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_CHECK_SAY(other_count == 1 || now_playing->is_answered_before, "the slot was not free");
    if (now_playing->answer != NULL) {
        hf_status status = now_playing->answer(service, execution);
        HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    }
    hf_status status = hf_result(execution, &out);
    HF_CHECK_SAY(status == (now_playing->expect == HF_ERR_CANCELED ? HF_ERR_FAILED : HF_OK), "%s", hf_error_text());
    HF_CHECK_SAY(now_playing->out == NULL || (out.data != NULL && strcmp(out.data, now_playing->out) == 0), "%s",
                 out.data != NULL ? (const char *)out.data : "nothing");
    HF_CHECK_SAY(call_count == (now_playing->calls > 0 ? now_playing->calls : 1), "%d calls", call_count);
    /* Nobody can answer it a second time. */
    HF_CHECK(hf_answer(service, hf_answer_to(tokens[0]), hf_payload_none()) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_answer_heartbeat(service, hf_answer_to(tokens[0]), hf_payload_none(), NULL) == HF_ERR_NOT_FOUND);
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static void play_scene(const scene *s)
{
    for (int i = 0; i < 3; i++) {
        now_playing = s;
        call_count = other_count = 0;
        hf_env *env = hf_sim_begin((uint64_t)i + 1);
        hf_runtime_options options = hf_sim_runtime_options(env, 1 + i);
        HF_CHECK(hf_run_with(play, NULL, &options) == HF_OK);
        for (int j = 0; j < call_count; j++) {
            hf_payload_free(&tokens[j]);
        }
        hf_sim_end(env, NULL);
    }
}

#define LONG                                    \
    {                                           \
        .start_to_close = {.ns = 100000000000 } \
    }

/* ---- Success ------------------------------------------------------------------------------------------------------ */

static hf_status answer_by_token(hf_service *service, hf_execution *execution)
{
    (void)execution;
    HF_TRY(hf_answer_heartbeat(service, hf_answer_to(tokens[0]), hf_payload_of_json("1"), NULL));
    return hf_answer(service, hf_answer_to(tokens[0]), hf_payload_of_json("\"yes\""));
}

static hf_status answer_by_id(hf_service *service, hf_execution *execution)
{
    (void)execution;
    hf_answer_target which = hf_answer_to_id("wf", "1");
    hf_cancel_why why = HF_WHY_GONE;
    HF_TRY(hf_answer_heartbeat(service, which, hf_payload_of_json("1"), &why));
    HF_CHECK(why == HF_WHY_NOT);
    HF_CHECK(hf_answer(service, hf_answer_to_id("wf", "2"), hf_payload_none()) == HF_ERR_NOT_FOUND);
    HF_CHECK(hf_answer(service, hf_answer_to_id("wf2", "1"), hf_payload_none()) == HF_ERR_NOT_FOUND);
    which.namespace_ = "elsewhere";
    HF_CHECK(hf_answer(service, which, hf_payload_none()) == HF_ERR_NOT_FOUND);
    which.namespace_ = NULL;
    which.run_id = hf_execution_run_id(execution);
    return hf_answer(service, which, hf_payload_of_json("\"yes\""));
}

static void a_pending_activity_is_answered_by_token_or_by_id(void **state)
{
    (void)state;
    static const scene SCENES[] = {
        {.options = LONG, .answer = answer_by_token, .out = "\"yes\""},
        {.options = LONG, .answer = answer_by_id, .out = "\"yes\""},
        {.options = LONG, .is_answered_before = true, .out = "\"before\""},
    };
    for (size_t i = 0; i < HF_COUNT_OF(SCENES); i++) {
        play_scene(&SCENES[i]);
    }
}

/* ---- Failures ------------------------------------------------------------------------------------------------------ */

static hf_status fail_by_token(hf_service *service, hf_execution *execution)
{
    (void)execution;
    return hf_answer_failed(service, hf_answer_to(tokens[0]), "no", .type = "Refused", .is_final = true);
}

static hf_status fail_by_id(hf_service *service, hf_execution *execution)
{
    (void)execution;
    return hf_answer_failed(service, hf_answer_to_id("wf", "1"), "no", .type = "Refused", .is_final = true);
}

/* The next attempt begins after 7 s, not after the policy's second, finds the details of the last, and is pending, too. */
static hf_status fail_once(hf_service *service, hf_execution *execution)
{
    (void)execution;
    HF_TRY(hf_answer_heartbeat(service, hf_answer_to(tokens[0]), hf_payload_of_json("\"half\""), NULL));
    HF_TRY(hf_answer_failed(service, hf_answer_to(tokens[0]), "later", .retry_after = hf_seconds(7)));
    HF_TRY(hf_sleep(hf_seconds(6)));
    HF_CHECK(call_count == 1);
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(call_count == 2);
    HF_CHECK(hf_answer(service, hf_answer_to(tokens[0]), hf_payload_none()) == HF_ERR_NOT_FOUND); /* of attempt 1 */
    return hf_answer(service, hf_answer_to(tokens[1]), hf_payload_of_json("\"yes\""));
}

static void a_pending_activity_can_fail_and_is_tried_again(void **state)
{
    (void)state;
    static const scene SCENES[] = {
        {.options = LONG, .answer = fail_by_token, .expect = HF_ERR_FAILED, .type = "Refused"},
        {.options = LONG, .answer = fail_by_id, .expect = HF_ERR_FAILED, .type = "Refused"},
        {.options = LONG, .answer = fail_once, .out = "\"yes\"", .calls = 2},
    };
    for (size_t i = 0; i < HF_COUNT_OF(SCENES); i++) {
        play_scene(&SCENES[i]);
    }
}

/* ---- Cancel and timeouts ------------------------------------------------------------------------------------------- */

static hf_status cancel_with(hf_service *service, hf_execution *execution, hf_answer_target which)
{
    hf_cancel_why why = HF_WHY_NOT;
    HF_CHECK(hf_answer_canceled(service, which, hf_payload_none()) == HF_ERR_INVALID); /* nobody has asked for it */
    HF_TRY(hf_cancel(execution));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(hf_answer_heartbeat(service, which, hf_payload_none(), &why) == HF_ERR_CANCELED);
    HF_CHECK_SAY(why == HF_WHY_CANCELED && strstr(hf_error_text(), "its workflow has canceled") != NULL, "%s",
                 hf_error_text());
    return hf_answer_canceled(service, which, hf_payload_of_json("\"gone\""));
}

static hf_status cancel_by_token(hf_service *service, hf_execution *execution)
{
    return cancel_with(service, execution, hf_answer_to(tokens[0]));
}

static hf_status cancel_by_id(hf_service *service, hf_execution *execution)
{
    return cancel_with(service, execution, hf_answer_to_id("wf", "1"));
}

static void whoever_answers_hears_of_a_cancel_and_says_that_it_ended(void **state)
{
    (void)state;
    static const scene SCENES[] = {
        {.options = LONG, .answer = cancel_by_token, .expect = HF_ERR_CANCELED},
        {.options = LONG, .answer = cancel_by_id, .expect = HF_ERR_CANCELED},
    };
    for (size_t i = 0; i < HF_COUNT_OF(SCENES); i++) {
        play_scene(&SCENES[i]);
    }
}

static hf_status keep_alive(hf_service *service, hf_execution *execution)
{
    (void)execution;
    for (int i = 0; i < 10; i++) { /* 50 s, with a heartbeat timeout of 8 */
        HF_TRY(hf_answer_heartbeat(service, hf_answer_to(tokens[0]), hf_payload_none(), NULL));
        HF_TRY(hf_sleep(hf_seconds(5)));
    }
    return hf_answer(service, hf_answer_to(tokens[0]), hf_payload_of_json("\"yes\""));
}

#define BEATS                                                                                      \
    {                                                                                              \
        .start_to_close = {.ns = 100000000000}, .heartbeat = {.ns = 8000000000}, .attempts_max = 1 \
    }

static void a_pending_activity_times_out_unless_somebody_sends_heartbeats(void **state)
{
    (void)state;
    static const scene SCENES[] = {
        {.options = BEATS, .expect = HF_ERR_TIMEOUT},
        {.options = BEATS, .answer = keep_alive, .out = "\"yes\""},
        {.options = {.start_to_close = {.ns = 30000000000}, .attempts_max = 1}, .expect = HF_ERR_TIMEOUT},
    };
    for (size_t i = 0; i < HF_COUNT_OF(SCENES); i++) {
        play_scene(&SCENES[i]);
    }
}

/* ---- What is refused ----------------------------------------------------------------------------------------------- */

static hf_status refuse(hf_service *service, hf_execution *execution)
{
    (void)execution;
    char long_id[1100];
    memset(long_id, 'x', sizeof long_id);
    long_id[sizeof long_id - 1] = '\0';
    hf_answer_target both = hf_answer_to_id("wf", "1");
    both.token = tokens[0];
    const hf_answer_target wrong[] = {hf_answer_to(hf_payload_of_bytes("made up", 7)),
                                      hf_answer_to(hf_payload_none()),
                                      hf_answer_to_id("wf", NULL),
                                      hf_answer_to_id(NULL, "1"),
                                      hf_answer_to_id("", "1"),
                                      hf_answer_to_id(long_id, "1"),
                                      both};
    for (size_t i = 0; i < HF_COUNT_OF(wrong); i++) {
        HF_CHECK_SAY(hf_answer(service, wrong[i], hf_payload_none()) == HF_ERR_INVALID, "%zu: %s", i, hf_error_text());
        HF_CHECK(hf_answer_failed(service, wrong[i], "m") == HF_ERR_INVALID);
        HF_CHECK(hf_answer_canceled(service, wrong[i], hf_payload_none()) == HF_ERR_INVALID);
        HF_CHECK(hf_answer_heartbeat(service, wrong[i], hf_payload_none(), NULL) == HF_ERR_INVALID);
    }
    hf_answer_target right = hf_answer_to(tokens[0]);
    hf_payload big = hf_payload_of_bytes("", (3 << 20));
    HF_CHECK(hf_answer(service, right, big) == HF_ERR_TOO_BIG);
    HF_CHECK(hf_answer_failed(service, right, "m", .details = big) == HF_ERR_TOO_BIG);
    HF_CHECK(hf_answer_failed(service, right, "m", .retry_after = {.ns = -1}) == HF_ERR_INVALID);
    HF_CHECK(hf_answer_failed(service, right, NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_answer_canceled(service, right, big) == HF_ERR_TOO_BIG);
    HF_CHECK(hf_answer_heartbeat(service, right, big, NULL) == HF_ERR_TOO_BIG);
    HF_CHECK(hf_answer(NULL, right, big) == HF_ERR_MISUSE);
    return hf_answer(service, right, hf_payload_of_json("\"yes\""));
}

static void answers_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const scene SCENE = {.options = LONG, .answer = refuse, .out = "\"yes\""};
    play_scene(&SCENE);
}

/* ---- A workflow cannot be answered later ------------------------------------------------------------------------- */

static hf_status pending_flow(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_PENDING;
}

static hf_status play_pending_flow(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "flow", pending_flow));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_start(service, "flow", hf_payload_none(), &execution, .task_queue = "q"));
    HF_CHECK(hf_result(execution, NULL) == HF_ERR_FAILED);
    HF_CHECK_SAY(hf_error_find("HF_ERR_MISUSE") != NULL && strstr(hf_error_text(), "which is for activities") != NULL,
                 "%s", hf_error_text());
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static void a_workflow_that_returns_pending_fails_and_says_why(void **state)
{
    (void)state;
    hf_env *env = hf_sim_begin(1);
    hf_runtime_options options = hf_sim_runtime_options(env, 1);
    HF_CHECK(hf_run_with(play_pending_flow, NULL, &options) == HF_OK);
    hf_sim_end(env, NULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_pending_activity_is_answered_by_token_or_by_id),
        cmocka_unit_test(a_pending_activity_can_fail_and_is_tried_again),
        cmocka_unit_test(whoever_answers_hears_of_a_cancel_and_says_that_it_ended),
        cmocka_unit_test(a_pending_activity_times_out_unless_somebody_sends_heartbeats),
        cmocka_unit_test(answers_that_make_no_sense_are_refused),
        cmocka_unit_test(a_workflow_that_returns_pending_fails_and_says_why),
    };
    return hf_test_main("worker_pending", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
