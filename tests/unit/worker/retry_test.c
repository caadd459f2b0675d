/* What a worker does when the service refuses: it tries again what may pass by itself, and gives up on everything else with a
 * sentence. Each loop is played with every status there is, in simulations. And how a worker stops when its answers are not
 * taken. */
#include "base/status.h"
#include "unit/worker/play.h"

typedef struct scene {
    hf_status status; /* what the service says */
    int calls;        /* of the method in question, that came */
    tap_options tap;
    hf_worker_options worker;
    hf_function activity;
    int activities; /* that the workflow asks for at once */
    play stage;     /* the service */
    hf_worker *runs;
    bool has_ended;
    hf_status result; /* of hf_worker_run */
    char text[HF_MESSAGE_LEN_MAX];
    hf_instant ended;
} scene;

static scene *the;

static hf_status run_worker(void *arg)
{
    scene *s = arg;
    s->result = hf_worker_run(s->runs);
    s->ended = hf_now(NULL);
    (void)snprintf(s->text, sizeof s->text, "%s", s->result != HF_OK ? hf_error_text() : "");
    s->has_ended = true;
    return HF_OK;
}

static hf_status ask(void *arg)
{
    (void)arg;
    return hf_activity_run("act", hf_payload_none(), NULL, .start_to_close = hf_hours(9));
}

static hf_status ask_for_some(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < the->activities; i++) {
        HF_TRY(hf_fork(scope, ask, NULL));
    }
    return hf_join(scope);
}

static hf_status end_at_once(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status begin(scene *s)
{
    hf_worker_options options = s->worker;
    options.size = sizeof options;
    the = s;
    s->stage.options.tap = s->tap;
    HF_TRY(play_open(&s->stage));
    HF_TRY(hf_worker_new_with(s->stage.service, "orders", &s->runs, &options));
    HF_TRY(hf_worker_add_workflow(s->runs, "main", ask_for_some));
    return hf_worker_add_activity(s->runs, "act", s->activity != NULL ? s->activity : end_at_once, .on_fiber = true);
}

static hf_status end(scene *s)
{
    s->calls = tap_calls(s->stage.tap, s->tap.refuse_method);
    return play_close(&s->stage);
}

static hf_status start_one(scene *s)
{
    return hf_start(s->stage.service, "main", hf_payload_none(), NULL, .id = "w", .task_queue = "orders");
}

static void play_scene(scene *s, hf_body body)
{
    HF_CHECK(hf_sim_run(1, 2, body, s, NULL) == HF_OK);
}

static const hf_status STATUSES[] = {
#define STATUS_ROW(name, number, passing, text) name,
    HF_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};
enum { STATUS_COUNT = sizeof STATUSES / sizeof *STATUSES };

/* ---- Polls ---------------------------------------------------------------------------------------------------------- */

static hf_status poll_in_vain(void *arg)
{
    scene *s = arg;
    HF_TRY(begin(s));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, s));
        HF_TRY(hf_sleep(hf_seconds(1)));
        tap_close(s->stage.tap, s->status);
        HF_TRY(hf_sleep(hf_minutes(1)));
        bool may_pass = hf_status_may_pass(s->status);
        HF_CHECK_SAY(s->has_ended == !may_pass, "a worker whose polls fail with %s %s", hf_status_name(s->status),
                     s->has_ended ? "ended" : "polls on");
        HF_TRY(hf_worker_stop(s->runs));
        HF_TRY(hf_join(scope));
        HF_CHECK_SAY(s->result == (may_pass ? HF_OK : s->status), "%s: it ended with %s", hf_status_name(s->status),
                     hf_status_name(s->result));
        HF_CHECK_SAY(may_pass || strstr(s->text, ": the service is closed") != NULL, "%s", s->text);
    }
    HF_TRY(hf_worker_free(s->runs));
    return end(s);
}

static void a_worker_polls_on_for_what_may_pass_alone(void **state)
{
    (void)state;
    for (size_t i = 1; i < STATUS_COUNT; i++) {
        scene s = {.status = STATUSES[i]};
        play_scene(&s, poll_in_vain);
    }
}

/* ---- Answers ---------------------------------------------------------------------------------------------------------- */

static hf_status work_for_a_while(void *arg)
{
    scene *s = arg;
    HF_TRY(begin(s));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, s));
        HF_TRY(start_one(s));
        HF_TRY(hf_sleep(hf_minutes(5)));
        HF_TRY(hf_worker_stop(s->runs));
        HF_TRY(hf_join(scope));
        HF_CHECK_SAY(s->result == HF_OK, "%s: %s", hf_status_name(s->status), s->text);
    }
    HF_TRY(hf_worker_free(s->runs));
    return end(s);
}

static void an_answer_is_given_again_for_what_may_pass_alone(void **state)
{
    (void)state;
    for (size_t i = 1; i < STATUS_COUNT; i++) {
        scene s = {.status = STATUSES[i], .activities = 1};
        s.tap = (tap_options){.refuse_count = 3,
                              .refuse_method = HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED,
                              .refuse_status = STATUSES[i]};
        play_scene(&s, work_for_a_while);
        int expected = hf_status_may_pass(STATUSES[i]) ? 4 : 1;
        HF_CHECK_SAY(s.calls == expected, "an answer refused with %s was given %d times", hf_status_name(STATUSES[i]),
                     s.calls);
    }
}

static hf_status beat_once(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_TRY(hf_activity_heartbeat(hf_payload_of_json("1")));
    return hf_sleep(hf_minutes(3));
}

static void a_heartbeat_is_sent_again_for_what_may_pass_alone(void **state)
{
    (void)state;
    for (size_t i = 1; i < STATUS_COUNT; i++) {
        if (STATUSES[i] == HF_ERR_CANCELED) {
            continue; /* which is what the sender gets when the activity has ended */
        }
        scene s = {.status = STATUSES[i], .activities = 1, .activity = beat_once};
        s.tap = (tap_options){.refuse_count = 1000,
                              .refuse_method = HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT,
                              .refuse_status = STATUSES[i]};
        play_scene(&s, work_for_a_while);
        bool is_right = hf_status_may_pass(STATUSES[i]) ? s.calls > 3 : s.calls == 1;
        HF_CHECK_SAY(is_right, "a heartbeat refused with %s was sent %d times", hf_status_name(STATUSES[i]), s.calls);
    }
}

/* ---- Stopping while answers are not taken --------------------------------------------------------------------------------- */

static hf_status stop_on_full_disk(void *arg)
{
    scene *s = arg;
    HF_TRY(begin(s));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, s));
        HF_TRY(start_one(s));
        HF_TRY(hf_sleep(hf_seconds(1)));
        hf_instant from = hf_now(NULL);
        HF_TRY(hf_worker_stop(s->runs));
        HF_TRY(hf_join(scope));
        s->ended.ns -= from.ns;
    }
    HF_TRY(hf_worker_free(s->runs));
    tap_close(s->stage.tap, HF_ERR_CLOSED);
    HF_TRY(hf_sleep(hf_hours(2))); /* until what was left behind has ended */
    return end(s);
}

static scene full_disk(int activities, hf_status status)
{
    return (scene){.activities = activities,
                   .worker = {.shutdown_grace = hf_seconds(2), .shutdown_force = hf_seconds(1)},
                   .tap = {.refuse_count = 1000000,
                           .refuse_method = HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED,
                           .refuse_status = status}};
}

/* All have ended: they are not to blame, and nothing is left behind. */
static void a_worker_that_stops_on_a_full_disk_says_which_answers_are_missing(void **state)
{
    (void)state;
    scene many = full_disk(16, HF_ERR_FULL);
    play_scene(&many, stop_on_full_disk);
    HF_CHECK_SAY(many.ended.ns == hf_seconds(3).ns, "it took %lld ms", (long long)many.ended.ns / 1000000);
    HF_CHECK(many.result == HF_ERR_FULL);
    HF_CHECK_SAY(strcmp(many.text, "16 activities had ended, and their results could not be given to the service: "
                                   "RespondActivityTaskCompleted: refused") == 0,
                 "%s", many.text);
    scene one = full_disk(1, HF_ERR_NOMEM);
    play_scene(&one, stop_on_full_disk);
    HF_CHECK(one.result == HF_ERR_NOMEM);
    HF_CHECK_SAY(strncmp(one.text, "1 activity had ended, and its result could not be given to the service", 70) == 0,
                 "%s", one.text);
}

/* The first ignores its cancel, the others have ended. */
static int begun;

static hf_status some_ignore(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    if (begun++ > 0) {
        return HF_OK;
    }
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_hours(2), &shield));
    return hf_sleep(hf_hours(1));
}

static void only_activities_that_run_on_are_said_to_ignore_their_cancel(void **state)
{
    (void)state;
    begun = 0;
    scene s = full_disk(4, HF_ERR_FULL);
    s.activity = some_ignore;
    play_scene(&s, stop_on_full_disk);
    HF_CHECK_SAY(s.ended.ns / 1000000 == 3000, "it took %lld ms", (long long)s.ended.ns / 1000000);
    HF_CHECK(s.result == HF_ERR_TIMEOUT);
    HF_CHECK_SAY(strstr(s.text, "1 activity ignored its cancel and was left behind") != NULL &&
                     strstr(s.text, "; 3 activities had ended, and their results could not be given") != NULL,
                 "%s", s.text);
}

static void a_service_that_says_nothing_is_not_waited_for_for_long(void **state)
{
    (void)state;
    scene s = full_disk(2, HF_OK);
    play_scene(&s, stop_on_full_disk);
    HF_CHECK_SAY(s.ended.ns == hf_seconds(4).ns, "it took %lld ms", (long long)s.ended.ns / 1000000);
    HF_CHECK(s.result == HF_ERR_TIMEOUT);
    HF_CHECK_SAY(
        strcmp(s.text,
               "2 activities had ended, and their results could not be given to the service: it does not answer") == 0,
        "%s", s.text);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_worker_polls_on_for_what_may_pass_alone),
        cmocka_unit_test(an_answer_is_given_again_for_what_may_pass_alone),
        cmocka_unit_test(a_heartbeat_is_sent_again_for_what_may_pass_alone),
        cmocka_unit_test(a_worker_that_stops_on_a_full_disk_says_which_answers_are_missing),
        cmocka_unit_test(only_activities_that_run_on_are_said_to_ignore_their_cancel),
        cmocka_unit_test(a_service_that_says_nothing_is_not_waited_for_for_long),
    };
    return hf_test_main("retry", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
