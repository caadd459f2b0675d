/* Workflows that have a twin in pairs_workflows.mjs, for the SDK of Temporal. What a worker of the one writes, the other must accept
 * as a history of its own:
 *     e2e_pairs record FOLDER        plays them on the C worker and writes FOLDER/c-NAME.json
 *     e2e_pairs replay FOLDER        plays FOLDER/ts-NAME.json, written by the SDK's worker, on the C worker's replayer */
#include "replay/programs.h"
#include "replay/reel.h"
#include "support/support.h"

#include "base/base.h"
#include "base/env.h"
#include "history/history.h"
#include "service/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The workflows --------------------------------------------------------------------------------------------------- */

static hf_status greet(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status flaky(hf_payload in, hf_payload *ret_out)
{
    if (hf_activity_info()->attempt < 3) {
        return hf_activity_fail("not yet", .type = "Flaky");
    }
    return hf_payload_copy(in, ret_out);
}

static hf_status refuse(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_activity_fail("no", .type = "Declined", .is_final = true);
}

static hf_status pair_activity(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_activity_run("greet", in, ret_out, .start_to_close = hf_seconds(10)));
    return hf_activity_run("flaky", in, ret_out, .start_to_close = hf_seconds(10), .retry_initial = hf_milliseconds(1));
}

static hf_status pair_timer(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_sleep(hf_milliseconds(20)));
    HF_TRY(hf_sleep(hf_milliseconds(30)));
    return hf_payload_copy(in, ret_out);
}

static hf_status pair_signal(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_signal_wait("go", ret_out));
    HF_TRY(hf_activity_run("greet", *ret_out, NULL, .start_to_close = hf_seconds(10)));
    return hf_signal_wait("go", ret_out);
}

static hf_status pair_child(hf_payload in, hf_payload *ret_out)
{
    return hf_child_run("pairTimer", in, ret_out, .id = "pair-child-of-it");
}

static hf_status pair_local(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_activity_run_local("greet", in, ret_out, .start_to_close = hf_seconds(10)));
    HF_TRY(hf_activity_run_local("flaky", in, ret_out, .start_to_close = hf_seconds(10),
                                 .retry_initial = hf_milliseconds(1)));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    return hf_activity_run_local("greet", in, ret_out, .start_to_close = hf_seconds(10));
}

static hf_status pair_patch(hf_payload in, hf_payload *ret_out)
{
    if (hf_patched("first")) {
        HF_TRY(hf_activity_run("greet", in, ret_out, .start_to_close = hf_seconds(10)));
    }
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    if (hf_patched("second") && hf_patched("first")) {
        HF_TRY(hf_sleep(hf_milliseconds(2)));
    }
    return hf_payload_copy(in, ret_out);
}

typedef struct tally {
    int sum;
} tally;

static hf_status add(void *arg, hf_payload in, hf_payload *ret_out)
{
    tally *t = arg;
    HF_TRY(hf_activity_run("greet", in, NULL, .start_to_close = hf_seconds(10)));
    t->sum += (int)strtol(in.data, NULL, 10);
    return hf_payload_printf(ret_out, "%d", t->sum);
}

static hf_status check(void *arg, hf_payload in)
{
    (void)arg;
    return strtol(in.data, NULL, 10) < 0 ? hf_activity_fail("negative") : HF_OK;
}

static hf_status pair_update(hf_payload in, hf_payload *ret_out)
{
    tally *t = HF_WORKFLOW_NEW(tally);
    (void)in;
    HF_TRY(hf_on_update("add", add, .arg = t, .validator = check));
    HF_TRY(hf_wait_until(t->sum >= 3));
    return hf_payload_printf(ret_out, "%d", t->sum);
}

static hf_status pair_continue(hf_payload in, hf_payload *ret_out)
{
    long n = strtol(in.data, NULL, 10);
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    if (n > 0) {
        char text[24];
        (void)snprintf(text, sizeof text, "%ld", n - 1);
        return hf_continue_as_new(hf_payload_of_json(text));
    }
    return hf_payload_copy(in, ret_out);
}

/* Three activities at once, then a failure that is caught. */
static hf_status pair_forks(hf_payload in, hf_payload *ret_out)
{
    hf_payload outs[3];
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < 3; i++) {
            HF_TRY(hf_fork_activity(scope, "greet", in, &outs[i], .start_to_close = hf_seconds(10)));
        }
        HF_TRY(hf_join(scope));
    }
    hf_status status = hf_activity_run("refuse", in, NULL, .start_to_close = hf_seconds(10));
    if (status != HF_ERR_FAILED) {
        return status;
    }
    return hf_payload_copy(in, ret_out);
}

/* The run is canceled while it sleeps, and ends so. */
static hf_status pair_cancel(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_sleep(hf_hours(1)));
    return hf_payload_copy(in, ret_out);
}

static const program PAIRS[] = {
    {"pairActivity", pair_activity}, {"pairTimer", pair_timer},       {"pairSignal", pair_signal},
    {"pairChild", pair_child},       {"pairLocal", pair_local},       {"pairPatch", pair_patch},
    {"pairUpdate", pair_update},     {"pairContinue", pair_continue}, {"pairForks", pair_forks},
    {"pairCancel", pair_cancel},
};

hf_status programs_add_workflows(hf_worker *worker)
{
    for (size_t i = 0; i < HF_COUNT_OF(PAIRS); i++) {
        HF_TRY(hf_worker_add_workflow(worker, PAIRS[i].name, PAIRS[i].function));
    }
    HF_TRY(hf_worker_add_activity(worker, "greet", greet, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "flaky", flaky, .on_fiber = true));
    return hf_worker_add_activity(worker, "refuse", refuse, .on_fiber = true);
}

/* ---- Recording ------------------------------------------------------------------------------------------------------- */

typedef struct stage {
    const char *type;
    hf_service *service;
    hf_execution *execution;
    hf_worker *worker;
    hf_buf text; /* the history */
} stage;

static hf_status live(void *arg)
{
    hf_worker *worker = arg;
    HF_CHECK(hf_worker_run(worker) == HF_OK);
    return hf_worker_free(worker);
}

/* What clients do to the run. The twin gets the same from pairs.mjs. */
static hf_status act(const stage *s)
{
    if (strcmp(s->type, "pairSignal") == 0) {
        HF_TRY(hf_signal(s->execution, "go", hf_payload_of_json("1")));
        HF_TRY(hf_sleep(hf_milliseconds(100)));
        return hf_signal(s->execution, "go", hf_payload_of_json("2"));
    }
    if (strcmp(s->type, "pairUpdate") == 0) {
        hf_payload out = hf_payload_none();
        HF_TRY(hf_update(s->execution, "add", hf_payload_of_json("1"), &out));
        HF_CHECK(hf_update(s->execution, "add", hf_payload_of_json("-1"), NULL) == HF_ERR_FAILED);
        return hf_update(s->execution, "add", hf_payload_of_json("2"), NULL);
    }
    if (strcmp(s->type, "pairCancel") == 0) {
        HF_TRY(hf_sleep(hf_milliseconds(100)));
        return hf_cancel(s->execution, .reason = "please");
    }
    return HF_OK;
}

static hf_status fetch_history(stage *s)
{
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_pb_workflow_execution which = {.workflow_id = HF_STR("w")};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &which};
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, s->service, &call);
    if (status == HF_OK) {
        const hf_pb_get_workflow_execution_history_response *response = call.response;
        status = hf_history_to_json(&op, response->history, false, &s->text);
    }
    hf_arena_deinit(&arena);
    return status;
}

static hf_status direct(stage *s, hf_scope *scope)
{
    const char *in = strcmp(s->type, "pairContinue") == 0 ? "2" : "\"x\"";
    HF_TRY(hf_worker_new(s->service, "q", &s->worker));
    HF_TRY(programs_add_workflows(s->worker));
    HF_TRY(hf_fork(scope, live, s->worker));
    HF_TRY(hf_start(s->service, s->type, hf_payload_of_json(in), NULL, .id = "w", .task_queue = "q"));
    HF_TRY(hf_execution_new(s->service, "w", &s->execution));
    HF_TRY(act(s));
    hf_status status = hf_result(s->execution, NULL, .timeout = hf_hours(10));
    HF_CHECK_SAY((status == HF_OK) != (strcmp(s->type, "pairCancel") == 0), "%s: %s", s->type, hf_error_text());
    HF_TRY(fetch_history(s));
    return hf_worker_stop(s->worker);
}

static hf_status play_stage(void *arg)
{
    stage *s = arg;
    HF_TRY(hf_open("memory:", &s->service));
    hf_status status = HF_OK;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        status = direct(s, scope);
        HF_TRY(hf_join(scope));
    }
    hf_execution_free(s->execution);
    HF_TRY(hf_close(s->service));
    return status;
}

static FILE *open_file(const char *folder, const char *prefix, const char *name, const char *mode)
{
    char path[1000];
    (void)snprintf(path, sizeof path, "%s/%s-%s.json", folder, prefix, name);
    FILE *file = fopen(path, mode);
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

static void record(const char *folder, const char *type)
{
    stage s = {.type = type};
    hf_buf_init(&s.text, hf_env_memory(hf_env_posix()), (size_t)1 << 26);
    hf_status status = hf_sim_run(1, 1, play_stage, &s, NULL);
    HF_CHECK_SAY(status == HF_OK, "%s: %s", type, hf_status_name(status));
    FILE *file = open_file(folder, "c", type, "wb");
    (void)fwrite(s.text.data, 1, s.text.len, file);
    (void)fclose(file);
    hf_buf_deinit(&s.text);
}

/* ---- Replaying ------------------------------------------------------------------------------------------------------- */

static void replay(const char *folder, const char *type)
{
    static char text[1 << 20];
    FILE *file = open_file(folder, "ts", type, "rb");
    size_t len = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    reel *film = reel_new(text, len);
    for (reel_mode mode = REEL_WHOLE; mode <= REEL_PAGES; mode++) {
        char *commands = reel_play(film, mode, 0);
        bool is_accepted = strstr(commands, "FAILED") == NULL && reel_count(film) > 0;
        HF_CHECK_SAY(is_accepted, "%s\n%s", type, commands);
        free(commands);
    }
    (void)printf("%s: %zu steps of the SDK replayed\n", type, reel_count(film));
    reel_free(film);
}

int main(int argc, char **argv)
{
    bool is_record = argc == 3 && strcmp(argv[1], "record") == 0;
    if (!is_record && (argc != 3 || strcmp(argv[1], "replay") != 0)) {
        (void)fprintf(stderr, "usage: e2e_pairs record|replay FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < HF_COUNT_OF(PAIRS); i++) {
        (is_record ? record : replay)(argv[2], PAIRS[i].name);
    }
    return hf_checks_failed() == 0 ? 0 : 1;
}
