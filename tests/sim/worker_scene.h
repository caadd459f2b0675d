/* A workflow, its activities and a client on the real worker and engine, in memory, on virtual time. Every scene is played with
 * runs kept in memory and with runs that are evicted at every wait, by one scheduler and by two; all must end the same. */
#ifndef HF_TESTS_WORKER_SCENE_H
#define HF_TESTS_WORKER_SCENE_H

#include "support/support.h"

#include "base/base.h"
#include "client/data.h"
#include "service/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scene {
    hf_function workflow;
    hf_status (*client)(hf_service *service, hf_execution *execution); /* after the start; NULL = nothing */
    hf_status expected;
    const char *result;                       /* its result, or the sentence of its failure, or a part */
    hf_status (*before)(hf_service *service); /* before the start; NULL = nothing */
    hf_status (*add)(hf_worker *worker);      /* further workflows and activities; NULL = none */
    void (*look)(hf_service *service);        /* at the end, while the worker still runs; NULL = nothing */
    const hf_worker_options *options;         /* of the worker; NULL = the defaults */
} scene;

static char scene_lines[65536]; /* of the log of the play at hand */
static size_t scene_lines_len;

static void scene_keep_line(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    int len = snprintf(scene_lines + scene_lines_len, sizeof scene_lines - scene_lines_len, "%s %s\n", event, fields);
    scene_lines_len += len > 0 && (size_t)len < sizeof scene_lines - scene_lines_len ? (size_t)len : 0;
}

/* How many lines of the log begin with this. */
static inline int scene_lines_with(const char *begin)
{
    int count = 0;
    for (const char *line = scene_lines; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        count += strncmp(line, begin, strlen(begin)) == 0;
    }
    return count;
}

static const scene *scene_now;
static bool scene_evicts; /* the runs of this play */

static hf_status scene_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status scene_play(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    const scene *s = scene_now;
    hf_worker_options options = s->options != NULL ? *s->options : (hf_worker_options){0};
    (void)arg;
    options.size = sizeof options;
    options.cached_max = scene_evicts ? HF_OFF : options.cached_max;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new_with(service, "q", &worker, &options));
    HF_TRY(hf_worker_add_workflow(worker, "workflow", s->workflow));
    if (s->add != NULL) {
        HF_TRY(s->add(worker));
    }
    if (s->before != NULL) {
        HF_TRY(s->before(service));
    }
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, scene_worker, worker));
    HF_TRY(hf_start(service, "workflow", hf_payload_none(), &execution, .task_queue = "q", .id = "w"));
    if (s->client != NULL) {
        HF_TRY(s->client(service, execution));
    }
    hf_status status = hf_result(execution, &out, .timeout = hf_days(30));
    const char *text = status == HF_OK ? out.data : hf_error_text();
    HF_CHECK_SAY(status == s->expected && text != NULL && strstr(text, s->result) != NULL, "%s: %s, not %s: %s",
                 hf_status_name(status), text != NULL ? text : "", hf_status_name(s->expected), s->result);
    if (s->look != NULL) {
        s->look(service);
    }
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static inline void play_scene(scene s)
{
    for (uint64_t i = 0; i < 6; i++) {
        scene_now = &s;
        scene_evicts = i % 2 != 0;
        hf_env *env = hf_sim_begin(i + 1);
        hf_runtime_options options = hf_sim_runtime_options(env, 1 + (int)i / 3);
        memset(scene_lines, 0, sizeof scene_lines);
        scene_lines_len = 0;
        options.log = scene_keep_line;
        hf_status status = hf_run_with(scene_play, NULL, &options);
        HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
        hf_sim_end(env, NULL);
    }
}

/* ---- The history ---------------------------------------------------------------------------------------------------- */

static void *scene_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void scene_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

typedef struct scene_history {
    hf_arena arena;
    hf_str bytes; /* of the history of workflow "w" */
    hf_pb_history decoded;
} scene_history;

static inline void scene_read(hf_service *service, scene_history *ret_history)
{
    hf_op op;
    hf_op_init(&op);
    *ret_history = (scene_history){.bytes = {NULL, 0}};
    hf_arena_init(&ret_history->arena, (hf_allocator){scene_allocate, scene_release, NULL});
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("w")};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &execution};
    hf_call call;
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &ret_history->arena, NULL);
    if (HF_CHECK(hf_service_ask(&op, service, &call) == HF_OK)) {
        ret_history->bytes = ((const hf_pb_get_workflow_execution_history_response *)call.response)->history;
        HF_CHECK(hf_pb_decode(&op, &hf_pb_history_type, ret_history->bytes, &ret_history->arena,
                              &ret_history->decoded) == HF_OK);
    }
}

/* How many events of this type the history has. */
static inline int scene_count(hf_service *service, int32_t type)
{
    scene_history h;
    int count = 0;
    scene_read(service, &h);
    for (size_t i = 0; i < h.decoded.events.count; i++) {
        count += h.decoded.events.items[i].event_type == type;
    }
    hf_arena_deinit(&h.arena);
    return count;
}

/* Whether the history has this text somewhere. */
static inline bool scene_has_bytes(hf_service *service, const char *text)
{
    scene_history h;
    scene_read(service, &h);
    bool is_there = memmem(h.bytes.data, h.bytes.len, text, strlen(text)) != NULL;
    hf_arena_deinit(&h.arena);
    return is_there;
}

#endif
