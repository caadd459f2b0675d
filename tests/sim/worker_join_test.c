/* A canceled call waits for its activity, on the real worker and engine and on virtual time: what the workflow is told,
 * and when. The activity takes ten seconds, unless it is told to end and obeys. */
#include "support/support.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>

typedef enum manner { OBEYS, COMPLETES, FAILS } manner;

typedef struct scene {
    const char *name;
    hf_status (*call)(hf_payload *ret_out); /* inside the workflow */
    manner manner;                          /* of the activity, when it is told to end */
    hf_on_cancel on_cancel;
    bool is_canceled;   /* the workflow is, after three seconds */
    hf_status expected; /* of the call */
    int after;          /* seconds after which it returns */
    int told;           /* seconds after which the activity is told to end; -1 = it is not */
} scene;

static const scene *now_playing;
static bool evicts;
static int told;

/* ---- The activity ------------------------------------------------------------------------------------------------ */

/* Sleeps for what is left of ten seconds, canceled or not. */
static hf_status sit_out(int64_t from)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    int64_t left = from + hf_seconds(10).ns - hf_now(NULL).ns;
    HF_TRY(hf_shield_open(hf_hours(1), &shield));
    return left > 0 ? hf_sleep(hf_nanoseconds(left)) : HF_OK;
}

static hf_status act(hf_payload in, hf_payload *ret_out)
{
    int64_t from = hf_now(NULL).ns;
    hf_status status = hf_sleep(hf_seconds(10));
    (void)in;
    if (status == HF_ERR_CANCELED) {
        told = (int)((hf_now(NULL).ns - from + hf_milliseconds(500).ns) / hf_seconds(1).ns);
    }
    if (now_playing->manner == OBEYS && status != HF_OK) {
        return status;
    }
    HF_TRY(sit_out(from));
    return now_playing->manner == FAILS ? hf_raise_typed(HF_ERR_FAILED, "Broken", "it broke")
                                        : hf_payload_printf(ret_out, "\"charged\"");
}

static hf_status quick(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_sleep(hf_seconds(3)));
    return hf_payload_printf(ret_out, "\"quick\"");
}

/* ---- What a workflow calls --------------------------------------------------------------------------------------- */

static hf_status run_act(hf_payload *ret_out)
{
    return hf_activity_run("act", hf_payload_none(), ret_out, .start_to_close = hf_minutes(1), .attempts_max = 1,
                           .on_cancel = now_playing->on_cancel);
}

static hf_status in_bound(hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(3)));
    return run_act(ret_out);
}

static hf_status loser(void *arg)
{
    hf_payload out = {0};
    hf_status *status = arg;
    *status = run_act(&out);
    return *status;
}

static hf_status winner(void *arg)
{
    (void)arg;
    return hf_activity_run("quick", hf_payload_none(), NULL, .start_to_close = hf_minutes(1));
}

/* The first success ends the join, when the other one has ended, too. Returns what became of that. */
static hf_status in_race(hf_payload *ret_out)
{
    hf_status lost = HF_ERR_USER;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_ANY));
    HF_TRY(hf_fork(scope, loser, &lost));
    HF_TRY(hf_fork(scope, winner, NULL));
    HF_TRY(hf_join(scope));
    HF_TRY(lost == HF_OK ? hf_payload_printf(ret_out, "\"charged\"") : HF_OK);
    return lost;
}

static hf_status in_shield(hf_payload *ret_out)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_minutes(5), &shield));
    return run_act(ret_out);
}

/* Its result says what it was told, after how many seconds, and with which result. */
static hf_status workflow(hf_payload in, hf_payload *ret_out)
{
    hf_payload out = {0};
    int64_t from = hf_wall_now(NULL).ns;
    hf_status status = now_playing->call(&out);
    (void)in;
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    int64_t after = (hf_wall_now(NULL).ns - from + hf_milliseconds(500).ns) / hf_seconds(1).ns;
    HF_TRY(hf_shield_open(hf_minutes(1), &shield));
    HF_TRY(hf_sleep(hf_seconds(30))); /* one more step; the activity has ended by then */
    return hf_payload_printf(ret_out, "\"%s %d %d\"", hf_status_name(status), (int)after, out.len > 0);
}

/* ---- The play ---------------------------------------------------------------------------------------------------- */

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
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .cached_max = evicts ? HF_OFF : 0));
    HF_TRY(hf_worker_add_workflow(worker, "workflow", workflow));
    HF_TRY(hf_worker_add_activity(worker, "act", act, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "quick", quick, .on_fiber = true));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_start(service, "workflow", hf_payload_none(), &execution, .task_queue = "q"));
    if (now_playing->is_canceled) {
        HF_TRY(hf_sleep(hf_seconds(3)));
        HF_TRY(hf_cancel(execution));
    }
    HF_TRY(hf_result(execution, &out));
    char expected[64];
    bool has_result = now_playing->expected == HF_OK;
    (void)snprintf(expected, sizeof expected, "\"%s %d %d\"", hf_status_name(now_playing->expected), now_playing->after,
                   has_result);
    HF_CHECK_SAY(strcmp(out.data, expected) == 0, "%s: %s, not %s", now_playing->name, (const char *)out.data,
                 expected);
    HF_CHECK_SAY(told == now_playing->told, "%s: the activity was told after %d s, not %d", now_playing->name, told,
                 now_playing->told);
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static void play_scenes(const scene *scenes, size_t count)
{
    for (size_t i = 0; i < 4 * count; i++) {
        now_playing = &scenes[i / 4];
        evicts = i % 2 != 0;
        told = -1;
        hf_status status = hf_sim_run(i % 4 + 1, 1 + (int)(i % 4) / 2, play, NULL, NULL);
        HF_CHECK_SAY(status == HF_OK, "%s ended with %s: %s", now_playing->name, hf_status_name(status),
                     hf_error_text());
    }
}

/* Everything that cancels, and every manner of the activity. */
static void a_canceled_call_returns_when_its_activity_has_ended(void **state)
{
    static const scene SCENES[] = {
        {"cancel, obeys", run_act, OBEYS, HF_CANCEL_WAIT, true, HF_ERR_CANCELED, 3, 3},
        {"cancel, completes", run_act, COMPLETES, HF_CANCEL_WAIT, true, HF_OK, 10, 3},
        {"cancel, fails", run_act, FAILS, HF_CANCEL_WAIT, true, HF_ERR_FAILED, 10, 3},
        {"bound, obeys", in_bound, OBEYS, HF_CANCEL_WAIT, false, HF_ERR_CANCELED, 3, 3},
        {"bound, completes", in_bound, COMPLETES, HF_CANCEL_WAIT, false, HF_OK, 10, 3},
        {"race, obeys", in_race, OBEYS, HF_CANCEL_WAIT, false, HF_ERR_CANCELED, 3, 3},
        {"race, completes", in_race, COMPLETES, HF_CANCEL_WAIT, false, HF_OK, 10, 3},
        {"shield", in_shield, OBEYS, HF_CANCEL_WAIT, true, HF_OK, 10, -1},
    };
    (void)state;
    play_scenes(SCENES, HF_COUNT_OF(SCENES));
}

static void a_call_that_does_not_wait_returns_at_once(void **state)
{
    static const scene SCENES[] = {
        {"try", run_act, COMPLETES, HF_CANCEL_TRY, true, HF_ERR_CANCELED, 3, 3},
        {"try, bound", in_bound, OBEYS, HF_CANCEL_TRY, false, HF_ERR_CANCELED, 3, 3},
        {"abandon", run_act, OBEYS, HF_CANCEL_ABANDON, true, HF_ERR_CANCELED, 3, -1},
        {"abandon, race", in_race, COMPLETES, HF_CANCEL_ABANDON, false, HF_ERR_CANCELED, 3, -1},
    };
    (void)state;
    play_scenes(SCENES, HF_COUNT_OF(SCENES));
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_canceled_call_returns_when_its_activity_has_ended),
    cmocka_unit_test(a_call_that_does_not_wait_returns_at_once),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_join", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
