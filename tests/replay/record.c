/* Records histories of this version, with their commands, into a folder that is there already:
 *     replay_record tests/replay/rules-3 signals join-any ...      these; all without names
 *     replay_record --commands FILE.json                           prints the commands of a history that is there
 * It plays a program of programs.h on the real worker and engine, on virtual time, and writes NAME.json and NAME.commands.
 *
 * A history is recorded once, by the version whose behaviour it shows, and kept. When a later version gets rules of its own,
 * it records into a folder of its own. README.md says which file guards what. */
#include "replay/programs.h"
#include "replay/reel.h"
#include "support/support.h"

#include "base/base.h"
#include "base/env.h"
#include "base/rng.h"
#include "history/history.h"
#include "service/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What clients do, and which workers are there. */
typedef enum cue_kind {
    NONE,    /* the end of the cues */
    SIGNAL,  /* `text` is its name, `json` its payload */
    BURST,   /* several of these at once, as many as the run takes */
    CANCEL,  /* `text` is the reason */
    LEAVE,   /* the worker with the workflows stops */
    COME,    /* a new one begins */
    STRANGE, /* a worker that does not know the workflow gets its task, and leaves */
    STEAL,   /* somebody takes its task and does not answer */
    RESET,   /* to the workflow task that the event with the number `json` completed */
} cue_kind;

typedef struct cue {
    int64_t after_ms; /* since the last one */
    cue_kind kind;
    const char *text;
    const char *json;
} cue;

enum { CUES_MAX = 40, STORMS = 30 };

typedef struct recording {
    const char *name;
    const char *program; /* NULL = as the name */
    const char *in;
    bool no_cache; /* every step is a replay */
    uint64_t seed; /* of the simulation; 0 = 1 */
    cue cues[CUES_MAX];
} recording;

#define IN "\"in\""

static const recording RECORDINGS[] = {
    {"sleeps", NULL, IN, false, 0, {{0}}},
    {"sleeps-evicted", "sleeps", IN, true, 0, {{0}}},
    {"timers-limit", NULL, IN, false, 0, {{0}}},
    {"signals",
     NULL,
     IN,
     false,
     0,
     {{1000, SIGNAL, "go", "1"},
      {1000, SIGNAL, "go", "2"},
      {10000, SIGNAL, "go", "3"},
      {100, SIGNAL, "other", "4"},
      {0, SIGNAL, "go", "5"},
      {30000, SIGNAL, "last", "6"}}},
    {"signals-first",
     "signals",
     IN,
     false,
     0, /* all of them are there when the run begins */
     {{0, LEAVE, NULL, NULL},
      {0, SIGNAL, "last", "1"},
      {0, SIGNAL, "go", "2"},
      {0, SIGNAL, "go", "3"},
      {0, SIGNAL, "other", NULL},
      {0, SIGNAL, "go", "4"},
      {0, SIGNAL, "go", "5"},
      {0, SIGNAL, "go", "6"},
      {0, SIGNAL, "go", "7"},
      {1000, COME, NULL, NULL}}},
    {"signal-waiters",
     NULL,
     IN,
     false,
     0,
     {{1000, SIGNAL, "a", "1"}, {5000, SIGNAL, "a", "2"}, {0, SIGNAL, "b", "3"}, {100, SIGNAL, "a", "4"}}},
    {"activity-options", NULL, IN, false, 0, {{0}}},
    {"activity-ends", NULL, IN, false, 0, {{0}}},
    {"activity-ends-evicted", "activity-ends", IN, true, 0, {{0}}},
    {"activity-refusals", NULL, IN, false, 0, {{0}}},
    {"activities-limit", NULL, IN, false, 0, {{0}}},
    {"channels", NULL, IN, false, 0, {{0}}},
    {"locks", NULL, IN, false, 0, {{0}}},
    {"flows", NULL, IN, false, 0, {{0}}},
    {"facts", NULL, IN, false, 0, {{1000000, SIGNAL, "end", NULL}}},
    {"facts-reset", "facts", IN, false, 0, {{1000000, RESET, NULL, "9"}, {1000000, SIGNAL, "end", NULL}}},
    {"facts-reset-twice",
     "facts",
     IN,
     true,
     0,
     {{1000000, RESET, NULL, "9"}, {1000000, RESET, NULL, "4"}, {1000000, SIGNAL, "end", NULL}}},
    {"locals", NULL, IN, false, 0, {{0}}},
    {"locals-evicted", "locals", IN, true, 0, {{0}}},
    {"patches", NULL, IN, false, 0, {{0}}},
    {"anysignal",
     NULL,
     IN,
     false,
     0,
     {{2000, SIGNAL, "stop", "1"}, {10, SIGNAL, "go", "2"}, {60000, SIGNAL, "stop", "3"}}},
    {"sagas", NULL, IN, false, 0, {{0}}},
    {"sagas-cancel", "sagas", IN, true, 0, {{20000, CANCEL, "please", NULL}}},
    {"fails", NULL, IN, false, 0, {{0}}},
    {"fails-by-activity", NULL, IN, false, 0, {{0}}},
    {"too-big", NULL, IN, false, 0, {{0}}},
    {"returns-input", NULL, IN, false, 0, {{0}}},
    {"many-steps", NULL, IN, false, 0, {{0}}},
    {"strange-worker",
     "sleeps",
     IN,
     false,
     0,
     {{0, LEAVE, NULL, NULL}, {1000, STRANGE, NULL, NULL}, {60000, COME, NULL, NULL}}},
    {"stolen-task",
     "signals",
     IN,
     false,
     0, /* times out, and so does the next: their events came while they were out */
     {{0, LEAVE, NULL, NULL},
      {1000, STEAL, NULL, NULL},
      {1000, SIGNAL, "go", "1"},
      {11000, COME, NULL, NULL},
      {1000, LEAVE, NULL, NULL},
      {1000, SIGNAL, "go", "2"},
      {1000, STEAL, NULL, NULL},
      {1000, SIGNAL, "go", "3"},
      {1000, SIGNAL, "other", "4"},
      {15000, COME, NULL, NULL},
      {60000, SIGNAL, "go", "5"},
      {0, SIGNAL, "go", "6"},
      {60000, SIGNAL, "last", NULL}}},
    {"join-all", NULL, IN, false, 0, {{0}}},
    {"join-any", NULL, IN, false, 0, {{0}}},
    {"join-quorum", NULL, IN, false, 0, {{0}}},
    {"join-tolerate", NULL, IN, false, 0, {{0}}},
    {"join-collect", NULL, IN, false, 0, {{0}}},
    {"join-discard", NULL, IN, false, 0, {{0}}},
    {"join-partial", NULL, IN, false, 0, {{0}}},
    {"join-own", NULL, IN, false, 0, {{0}}},
    {"forks", NULL, IN, false, 0, {{0}}},
    {"turns", NULL, IN, false, 0, {{0}}},
    {"deadlines", NULL, IN, false, 0, {{0}}},
    {"shields", NULL, IN, false, 0, {{0}}},
    {"left-open", NULL, IN, false, 0, {{0}}},
    {"left-early", NULL, IN, false, 0, {{0}}},
    {"scope-cancel", NULL, IN, false, 0, {{0}}},
    {"same-step", NULL, IN, false, 0, {{0}}},
    {"ids-in-use", NULL, IN, false, 0, {{0}}},
    {"run-cancel", NULL, IN, false, 0, {{2000, CANCEL, "the customer left", NULL}}},
    {"run-cancel-evicted", "run-cancel", IN, true, 0, {{2000, CANCEL, NULL, NULL}, {10, CANCEL, "again", NULL}}},
    {"run-cancel-at-once",
     "run-cancel",
     IN,
     false,
     0, /* before its first step */
     {{0, LEAVE, NULL, NULL}, {0, CANCEL, "no need", NULL}, {1000, COME, NULL, NULL}}},
    {"run-cancel-late",
     "run-cancel",
     IN,
     false,
     0, /* together with an activity's result, and a heartbeat's */
     {{1000, LEAVE, NULL, NULL}, {10000, CANCEL, "too late", NULL}, {25000, COME, NULL, NULL}}},
    {"run-cancel-ignored", NULL, IN, false, 0, {{2000, CANCEL, "please", NULL}}},
    {"run-cancel-shielded", NULL, IN, false, 0, {{2000, CANCEL, "please", NULL}}},
    {"one-step", NULL, IN, false, 0, {{2000, SIGNAL, "stop", NULL}, {2000, SIGNAL, "go", "1"}}},
    {"one-step-late",
     "one-step",
     IN,
     false,
     0, /* the cancel and all ends in one step */
     {{500, LEAVE, NULL, NULL}, {5000, SIGNAL, "stop", NULL}, {0, SIGNAL, "go", "1"}, {35000, COME, NULL, NULL}}},
    {"one-step-cancel",
     "one-step",
     IN,
     false,
     0, /* and the run's own */
     {{500, LEAVE, NULL, NULL},
      {1000, CANCEL, "all", NULL},
      {0, SIGNAL, "stop", NULL},
      {45000, SIGNAL, "go", "1"},
      {0, COME, NULL, NULL}}},
    {"either",
     NULL,
     IN,
     false,
     0,
     {{1500, SIGNAL, "never", "1"}, {2000, SIGNAL, "stop", NULL}, {0, LEAVE, NULL, NULL}, {9000, COME, NULL, NULL}}},
    {"fork-joins", NULL, IN, false, 0, {{0}}},
    {"fork-cancels", NULL, IN, false, 0, {{0}}},
    {"fork-run-cancel", "fork-joins", IN, false, 0, {{500, CANCEL, "enough", NULL}}},
    {"fork-late",
     "fork-joins",
     IN,
     false,
     0,
     {{500, LEAVE, NULL, NULL}, {20000, COME, NULL, NULL}}},        /* ends in one step */
    {"meets-news", NULL, IN, false, 3, {{1000, BURST, "go", "1"}}}, /* its last task fails, for news has come */
    {"next-signals",
     NULL,
     IN,
     false,
     0,
     {{500, SIGNAL, "note", "1"},
      {5000, SIGNAL, "note", "2"},
      {1000, SIGNAL, "go", "3"},
      {10000, SIGNAL, "note", "4"},
      {100, SIGNAL, "note", "5"}}},
    {"next-signals-evicted",
     "next-signals",
     IN,
     true,
     0,
     {{500, SIGNAL, "note", "1"}, {20000, SIGNAL, "note", "2"}, {0, SIGNAL, "note", "3"}}},
    {"handlers-idle",
     NULL,
     IN,
     false,
     0,
     {{1000, SIGNAL, "note", "20"},
      {1000, SIGNAL, "note", "-5"},
      {60000, SIGNAL, "note", "-10"},
      {1000, SIGNAL, "note", "30"},
      {1000, SIGNAL, "note", "40"}}},
    {"child-start-cancel", NULL, IN, false, 0, {{0}}},
    {"quorum-missed", NULL, IN, false, 0, {{0}}},
    {"carries", NULL, IN, false, 0, {{0}}},
    {"carries-evicted", "carries", IN, true, 0, {{0}}},
    {"carries-given", NULL, IN, false, 0, {{0}}},
    {"fails-details", NULL, IN, true, 0, {{0}}},
};

/* ---- Playing -------------------------------------------------------------------------------------------------------- */

typedef struct stage {
    const recording *r;
    hf_service *service;
    hf_execution *execution;
    hf_scope *scope;
    hf_worker *workflows; /* NULL = none runs */
    hf_buf text;          /* the history */
    char run_id[40];      /* the run that is recorded: the first of its chain, unless it is reset */
} stage;

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

/* Runs a worker until it is stopped, and frees it. */
static hf_status live(void *arg)
{
    hf_worker *worker = arg;
    HF_CHECK(run_worker(worker) == HF_OK);
    return hf_worker_free(worker);
}

static hf_status begin_worker(stage *s, const char *queue, hf_status (*add)(hf_worker *), hf_worker **ret_worker)
{
    int cached_max = s->r->no_cache ? HF_OFF : 0;
    int activities_max = add == programs_add_workflows ? HF_OFF : 0; /* it executes local ones */
    HF_TRY(hf_worker_new(s->service, queue, ret_worker, .cached_max = cached_max, .pollers_max = 2,
                         .activity_pollers_max = 2, .shutdown_grace = hf_milliseconds(10),
                         .activities_max = activities_max));
    HF_TRY(add(*ret_worker));
    return hf_fork(s->scope, live, *ret_worker);
}

static hf_status return_at_once(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_OK;
}

static hf_status add_another(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "another", return_at_once);
}

static hf_status ask(const stage *s, hf_method method, const void *request)
{
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_call_init(&call, method, request, &arena, NULL);
    hf_status status = hf_service_ask(&op, s->service, &call);
    HF_CHECK_SAY(status == HF_OK, "%s", op.message);
    hf_arena_deinit(&arena);
    return status;
}

static hf_status reset(const stage *s, const char *event)
{
    hf_pb_workflow_execution which = {.workflow_id = HF_STR("w")};
    return ask(s, HF_METHOD_RESET_WORKFLOW_EXECUTION,
               &(hf_pb_reset_workflow_execution_request){.namespace = HF_STR("default"),
                                                         .workflow_execution = &which,
                                                         .reason = HF_STR("once more"),
                                                         .request_id = hf_str_of(event),
                                                         .workflow_task_finish_event_id = strtoll(event, NULL, 10)});
}

static hf_status steal(const stage *s)
{
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    return ask(s, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE,
               &(hf_pb_poll_workflow_task_queue_request){
                   .namespace = HF_STR("default"), .task_queue = &queue, .identity = HF_STR("a thief")});
}

static hf_status send_one(void *arg)
{
    HF_IGNORE(hf_signal(arg, "go", hf_payload_of_json("1"))); /* the run may have ended */
    return HF_OK;
}

static hf_status send_many(const stage *s)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 6; i++) {
        HF_TRY(hf_fork(scope, send_one, s->execution));
    }
    return hf_join(scope);
}

static hf_status give_cue(stage *s, const cue *c)
{
    hf_worker *stranger = NULL;
    hf_worker *workflows = s->workflows;
    switch (c->kind) {
    case SIGNAL:
        return hf_signal(s->execution, c->text, c->json != NULL ? hf_payload_of_json(c->json) : hf_payload_none());
    case BURST:
        return send_many(s);
    case CANCEL:
        return hf_cancel(s->execution, .reason = c->text);
    case LEAVE:
        s->workflows = NULL;
        return workflows != NULL ? hf_worker_stop(workflows) : HF_OK;
    case COME:
        return workflows == NULL ? begin_worker(s, "q", programs_add_workflows, &s->workflows) : HF_OK;
    case STRANGE:
        HF_TRY(begin_worker(s, "q", add_another, &stranger));
        HF_TRY(hf_sleep(hf_seconds(1)));
        return hf_worker_stop(stranger);
    case STEAL:
        return steal(s);
    case RESET:
        s->run_id[0] = '\0'; /* the newest one */
        return reset(s, c->json);
    default:
        return HF_OK;
    }
}

static hf_status fetch_history(stage *s)
{
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_pb_workflow_execution which = {.workflow_id = HF_STR("w"), .run_id = hf_str_of(s->run_id)};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &which};
    hf_op_init(&op);
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, s->service, &call);
    if (status == HF_OK) {
        const hf_pb_get_workflow_execution_history_response *response = call.response;
        HF_CHECK(response->next_page_token.len == 0);
        status = hf_history_to_json(&op, response->history, false, &s->text);
    }
    hf_arena_deinit(&arena);
    return status;
}

/* Programs that look at what they are started with beside their input. */
static bool has_extras(const recording *r)
{
    return strncmp(r->name, "carries", strlen("carries")) == 0;
}

static const hf_entry EXTRAS[] = {{"about", {"\"a trip\"", 8, HF_ENCODING_JSON_TEXT, NULL}},
                                  {"kept", {"7", 1, HF_ENCODING_JSON_TEXT, NULL}},
                                  {NULL, {NULL, 0, NULL, NULL}}};

/* All that happens to the run, until it has ended. */
static hf_status direct(stage *s)
{
    const recording *r = s->r;
    hf_worker *activities = NULL;
    hf_worker *others = NULL;
    HF_TRY(begin_worker(s, "q", programs_add_activities, &activities));
    HF_TRY(begin_worker(s, "other", programs_add_storm_activity, &others));
    if (r->cues[0].kind != LEAVE || r->cues[0].after_ms > 0) { /* else none is there when the run begins */
        HF_TRY(begin_worker(s, "q", programs_add_workflows, &s->workflows));
    }
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_AUTO(hf_execution_free) hf_execution *started = NULL;
    HF_TRY(hf_search_attribute_add(s->service, "City", HF_SEARCH_KEYWORD));
    HF_TRY(hf_search_attribute_add(s->service, "Done", HF_SEARCH_BOOL));
    HF_TRY(hf_start(s->service, r->program != NULL ? r->program : r->name, hf_payload_of_json(r->in), &started,
                    .id = "w", .task_queue = "q", .memo = has_extras(r) ? EXTRAS : NULL,
                    .attempts_max = has_extras(r) ? 3 : 0));
    (void)snprintf(s->run_id, sizeof s->run_id, "%s", hf_execution_run_id(started));
    HF_TRY(hf_execution_new(s->service, "w", &s->execution));
    for (const cue *c = r->cues; c < r->cues + CUES_MAX && c->kind != NONE; c++) {
        HF_TRY(hf_sleep(hf_milliseconds(c->after_ms)));
        hf_status status = give_cue(s, c);
        HF_CHECK_SAY(status == HF_OK, "%s, cue %d: %s", r->name, (int)(c - r->cues), hf_error_text());
    }
    hf_status status = hf_result(s->execution, NULL, .timeout = hf_hours(10));
    HF_CHECK_SAY(status == HF_OK || status == HF_ERR_FAILED, "%s did not end", r->name);
    HF_TRY(fetch_history(s));
    HF_TRY(s->workflows != NULL ? hf_worker_stop(s->workflows) : HF_OK);
    HF_TRY(hf_worker_stop(activities));
    return hf_worker_stop(others);
}

static hf_status play_stage(void *arg)
{
    stage *s = arg;
    HF_TRY(hf_open("memory:", &s->service));
    hf_status status = HF_OK;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        s->scope = scope;
        status = direct(s);
        HF_TRY(hf_join(scope));
    }
    hf_execution_free(s->execution);
    HF_TRY(hf_close(s->service));
    return status;
}

/* ---- Writing -------------------------------------------------------------------------------------------------------- */

/* One event per line. */
static void put_lines(FILE *file, const char *text, size_t len)
{
    static const char EVENT[] = "{\"eventId\"";
    for (size_t i = 0; i < len; i++) {
        if (i + 2 == len || (len - i >= sizeof EVENT && memcmp(text + i, EVENT, sizeof EVENT - 1) == 0)) {
            (void)putc('\n', file);
        }
        (void)putc(text[i], file);
    }
    (void)putc('\n', file);
}

static FILE *open_file(const char *folder, const char *name, const char *suffix)
{
    char path[1000];
    (void)snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

static void record(const char *folder, const recording *r)
{
    stage s = {.r = r};
    hf_buf_init(&s.text, hf_env_memory(hf_env_posix()), (size_t)1 << 26);
    hf_status status = hf_sim_run(r->seed > 0 ? r->seed : 1, 1, play_stage, &s, NULL);
    HF_CHECK_SAY(status == HF_OK, "%s: %s", r->name, hf_status_name(status));
    if (hf_checks_failed() == 0) {
        reel *film = reel_new(s.text.data, s.text.len);
        char *commands = reel_play(film, REEL_WHOLE, 0);
        FILE *file = open_file(folder, r->name, ".json");
        put_lines(file, s.text.data, s.text.len);
        (void)fclose(file);
        file = open_file(folder, r->name, ".commands");
        (void)fputs(commands, file);
        (void)fclose(file);
        (void)printf("%s: %zu steps, %zu bytes\n", r->name, reel_count(film), s.text.len);
        free(commands);
        reel_free(film);
    }
    hf_buf_deinit(&s.text);
}

/* ---- Storms --------------------------------------------------------------------------------------------------------- */

/* Clients and workers by chance; the last replay is of everything. */
static void draw_cues(uint64_t seed, recording *r)
{
    static const char *const NUMBERS[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    hf_rng rng = {seed};
    size_t count = 4 + (size_t)hf_rng_below(&rng, 20);
    for (size_t i = 0; i < count; i++) {
        int64_t after_ms = (int64_t)hf_rng_below(&rng, 10) * 10;
        uint64_t chance = hf_rng_below(&rng, 16);
        cue_kind kind = chance == 0 ? CANCEL : chance < 4 ? LEAVE : chance < 8 ? COME : SIGNAL;
        r->cues[i] = (cue){after_ms, kind, kind == SIGNAL ? "go" : "by chance", NUMBERS[i % 10]};
    }
    r->cues[count++] = (cue){0, COME, NULL, NULL};
    r->cues[count++] = (cue){600000, LEAVE, NULL, NULL};
    r->cues[count++] = (cue){1000, SIGNAL, "end", NULL};
    r->cues[count++] = (cue){0, COME, NULL, NULL};
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(name, argv[i]) == 0) {
            return true;
        }
    }
    return argc == 2;
}

static int print_commands(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    size_t len = file != NULL ? fread(text, 1, 1 << 20, file) : 0;
    reel *film = reel_new(text, len);
    char *commands = reel_play(film, REEL_WHOLE, 0);
    (void)fputs(commands, stdout);
    free(commands);
    reel_free(film);
    free(text);
    return file != NULL && fclose(file) == 0 && hf_checks_failed() == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--commands") == 0) {
        return print_commands(argv[2]);
    }
    if (argc < 2) {
        (void)fprintf(stderr, "usage: replay_record FOLDER [NAME...], replay_record --commands FILE.json\n");
        return 2;
    }
    for (size_t i = 0; i < HF_COUNT_OF(RECORDINGS); i++) {
        if (is_wanted(RECORDINGS[i].name, argc, argv)) {
            record(argv[1], &RECORDINGS[i]);
        }
    }
    for (uint64_t i = 1; i <= STORMS; i++) {
        char name[32];
        char in[32];
        (void)snprintf(name, sizeof name, "storm-%02d", (int)i);
        (void)snprintf(in, sizeof in, "%d", (int)i);
        recording storm = {.name = name, .program = "storm-2", .in = in, .no_cache = i % 3 == 0, .seed = i};
        draw_cues(i, &storm);
        if (is_wanted(name, argc, argv)) {
            record(argv[1], &storm);
        }
    }
    return hf_checks_failed() == 0 ? 0 : 1;
}
