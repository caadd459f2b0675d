/* Children, and signals and cancels to other workflows, on the real worker and engine, on virtual time: with runs kept in
 * memory, and evicted at every wait. */
#include "support/support.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scene {
    const char *name;
    hf_function parent;
    bool is_canceled; /* the parent is, after three seconds; one that is reset: reset */
    hf_status expected;
    const char *result; /* of the parent; its failure's sentence if it fails */
} scene;

static const scene *now_playing;
static bool evicts;

/* ---- Children ---------------------------------------------------------------------------------------------------- */

/* "4": sleeps for four seconds and says so; "-4": fails then; "!4": does not end when it is canceled; "c4": continues as new
 * until nothing is left. */
static hf_status child(hf_payload in, hf_payload *ret_out)
{
    const char *text = in.len > 0 ? in.data : "\"4\"";
    char how = text[1];
    int seconds = abs((int)strtol(text + 1 + (how == '!' || how == 'c'), NULL, 10));
    if (how == 'c' && seconds > 1) {
        char next[20];
        HF_TRY(hf_sleep(hf_seconds(1)));
        (void)snprintf(next, sizeof next, "\"c%d\"", seconds - 1);
        return hf_continue_as_new(hf_payload_of_json(next));
    }
    if (how == '!') {
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(hf_hours(1), &shield));
        HF_TRY(hf_sleep(hf_seconds(seconds)));
    } else {
        HF_TRY(hf_sleep(hf_seconds(seconds)));
    }
    if (how == '-') {
        return hf_raise_typed(HF_ERR_FAILED, "Broken", "the child broke");
    }
    return hf_payload_printf(ret_out, "\"%s %d\"", hf_workflow_info()->parent_id, seconds);
}

static hf_status report(hf_payload *ret_out, hf_status status, const hf_payload *got, int64_t from)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    int64_t after = (hf_wall_now(NULL).ns - from + hf_milliseconds(500).ns) / hf_seconds(1).ns;
    HF_TRY(hf_shield_open(hf_minutes(1), &shield));
    HF_TRY(hf_sleep(hf_seconds(30))); /* one more step */
    return hf_payload_printf(ret_out, "{\"status\": \"%s\", \"after\": %d, \"got\": %s}", hf_status_name(status),
                             (int)after, got->len > 0 ? (const char *)got->data : "0");
}

static hf_status run_child(hf_payload *ret_out, const char *in, hf_on_cancel on_cancel)
{
    hf_payload got = {0};
    int64_t from = hf_wall_now(NULL).ns;
    hf_status status = hf_child_run("child", hf_payload_of_json(in), &got, .on_cancel = on_cancel);
    return status == HF_ERR_EVICTED ? status : report(ret_out, status, &got, from);
}

static hf_status completes(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return run_child(ret_out, "\"5\"", HF_CANCEL_WAIT);
}

static hf_status stubborn(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return run_child(ret_out, "\"!9\"", HF_CANCEL_WAIT);
}

static hf_status tries(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return run_child(ret_out, "\"!9\"", HF_CANCEL_TRY);
}

static hf_status chain(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return run_child(ret_out, "\"c4\"", HF_CANCEL_WAIT);
}

static hf_status fails(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_child_run("child", hf_payload_of_json("\"-2\""), ret_out));
    return HF_OK;
}

static hf_status many_of_them(void *arg)
{
    int *sum = arg;
    hf_payload got = {0};
    HF_TRY(hf_child_run("child", hf_payload_of_json("\"2\""), &got));
    *sum += 1;
    return HF_OK;
}

static hf_status many(hf_payload in, hf_payload *ret_out)
{
    int sum = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 20; i++) {
        HF_TRY(hf_fork(scope, many_of_them, &sum));
    }
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "\"%d children\"", sum);
}

static hf_status exists(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_child_start("child", hf_payload_of_json("\"9\""), .id = "one"));
    hf_status twice = hf_child_run("child", hf_payload_of_json("\"9\""), NULL, .id = "one");
    hf_status bad = hf_child_run("", hf_payload_none(), NULL);
    return hf_payload_printf(ret_out, "\"%s %s\"", hf_status_name(twice), hf_status_name(bad));
}

/* It is reset to its last workflow task: its first child keeps its id, and its second one has another. */
static hf_status reset_parent(hf_payload in, hf_payload *ret_out)
{
    hf_payload first = {0};
    hf_payload second = {0};
    (void)in;
    HF_TRY(hf_child_run("child", hf_payload_of_json("\"1\""), &first));
    HF_TRY(hf_sleep(hf_seconds(30)));
    HF_TRY(hf_child_run("child", hf_payload_of_json("\"2\""), &second));
    return hf_payload_printf(ret_out, "[%s, %s]", (const char *)first.data, (const char *)second.data);
}

/* ---- Any workflow ------------------------------------------------------------------------------------------------ */

static hf_status listener(hf_payload in, hf_payload *ret_out)
{
    hf_payload got = {0};
    (void)in;
    HF_TRY(hf_signal_wait("hello", &got));
    hf_status status = hf_sleep(hf_days(1));
    return status == HF_ERR_EVICTED ? status : hf_payload_copy(got, ret_out);
}

static hf_status talks(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_child_start("listener", hf_payload_none(), .id = "ear", .parent_close = HF_PARENT_CLOSE_ABANDON));
    HF_TRY(hf_external_signal("ear", "hello", hf_payload_of_json("\"psst\"")));
    HF_TRY(hf_external_cancel("ear", "enough"));
    hf_status nobody = hf_external_signal("nobody", "hello", hf_payload_none());
    hf_status nobody_canceled = hf_external_cancel("nobody", NULL);
    hf_status itself = hf_external_signal(hf_workflow_id(), "hello", hf_payload_none());
    return hf_payload_printf(ret_out, "\"%s %s %s\"", hf_status_name(nobody), hf_status_name(nobody_canceled),
                             hf_status_name(itself));
}

/* ---- The play ---------------------------------------------------------------------------------------------------- */

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status play(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    const scene *s = now_playing;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .cached_max = evicts ? HF_OFF : 0));
    HF_TRY(hf_worker_add_workflow(worker, "parent", s->parent));
    HF_TRY(hf_worker_add_workflow(worker, "child", child));
    HF_TRY(hf_worker_add_workflow(worker, "listener", listener));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_start(service, "parent", hf_payload_none(), &execution, .task_queue = "q", .id = "p"));
    if (s->is_canceled && s->parent == reset_parent) {
        hf_execution *again = NULL;
        HF_TRY(hf_sleep(hf_seconds(10)));
        HF_TRY(hf_reset(execution, &again, .point = HF_RESET_LAST));
        hf_execution_free(execution);
        execution = again;
    } else if (s->is_canceled) {
        HF_TRY(hf_sleep(hf_seconds(3)));
        HF_TRY(hf_cancel(execution));
    }
    hf_status status = hf_result(execution, &out, .timeout = hf_minutes(60));
    const char *text = status == HF_OK ? out.data : hf_error_text();
    HF_CHECK_SAY(status == s->expected && text != NULL && strstr(text, s->result) != NULL, "%s: %s: %s, not %s: %s",
                 s->name, hf_status_name(status), text != NULL ? text : "", hf_status_name(s->expected), s->result);
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static void play_scenes(const scene *scenes, size_t count)
{
    for (size_t i = 0; i < 4 * count; i++) {
        now_playing = &scenes[i / 4];
        evicts = i % 2 != 0;
        hf_status status = hf_sim_run(i % 4 + 1, 1 + (int)(i % 4) / 2, play, NULL, NULL);
        HF_CHECK_SAY(status == HF_OK, "%s ended with %s: %s", now_playing->name, hf_status_name(status),
                     hf_error_text());
    }
}

static void a_child_ends_before_its_parent_goes_on(void **state)
{
    static const scene SCENES[] = {
        {"completes", completes, false, HF_OK, "{\"status\": \"HF_OK\", \"after\": 5, \"got\": \"p 5\"}"},
        {"continues as new", chain, false, HF_OK, "{\"status\": \"HF_OK\", \"after\": 4, \"got\": \"p 1\"}"},
        {"fails", fails, false, HF_ERR_FAILED, "child workflow 'child' failed"},
        {"many", many, false, HF_OK, "\"20 children\""},
        {"reset", reset_parent, true, HF_OK, "[\"p 1\", \"p 2\"]"},
        {"exists", exists, false, HF_OK, "\"HF_ERR_EXISTS HF_ERR_INVALID\""},
    };
    (void)state;
    play_scenes(SCENES, HF_COUNT_OF(SCENES));
}

static void a_canceled_call_returns_when_its_child_has_ended(void **state)
{
    static const scene SCENES[] = {
        {"obeys", completes, true, HF_OK, "{\"status\": \"HF_ERR_CANCELED\", \"after\": 3, \"got\": 0}"},
        {"completes", stubborn, true, HF_OK, "{\"status\": \"HF_OK\", \"after\": 9, \"got\": \"p 9\"}"},
        {"try", tries, true, HF_OK, "{\"status\": \"HF_ERR_CANCELED\", \"after\": 3, \"got\": 0}"},
    };
    (void)state;
    play_scenes(SCENES, HF_COUNT_OF(SCENES));
}

static void a_workflow_signals_and_cancels_others(void **state)
{
    static const scene SCENES[] = {
        {"talks", talks, false, HF_OK, "\"HF_ERR_NOT_FOUND HF_ERR_NOT_FOUND HF_ERR_NOT_FOUND\""},
    };
    (void)state;
    play_scenes(SCENES, HF_COUNT_OF(SCENES));
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_child_ends_before_its_parent_goes_on),
    cmocka_unit_test(a_canceled_call_returns_when_its_child_has_ended),
    cmocka_unit_test(a_workflow_signals_and_cancels_others),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_children", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
