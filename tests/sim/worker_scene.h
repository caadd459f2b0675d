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
    const char *result;                  /* its result, or the sentence of its failure, or a part */
    hf_status (*add)(hf_worker *worker); /* further workflows and activities; NULL = none */
    void (*look)(hf_service *service);   /* at the end, while the worker still runs; NULL = nothing */
    const hf_worker_options *options;    /* of the worker; NULL = the defaults */
} scene;

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
        hf_status status = hf_sim_run(i + 1, 1 + (int)i / 3, scene_play, NULL, NULL);
        HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
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

/* How many events of this type the history of workflow "w" has. */
static inline int scene_count(hf_service *service, int32_t type)
{
    hf_op op;
    hf_arena arena;
    int count = 0;
    hf_op_init(&op);
    hf_arena_init(&arena, (hf_allocator){scene_allocate, scene_release, NULL});
    hf_pb_workflow_execution execution = {.workflow_id = HF_STR("w")};
    hf_pb_get_workflow_execution_history_request request = {.namespace = HF_STR("default"), .execution = &execution};
    hf_call call;
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena, NULL);
    hf_pb_history history = {0};
    if (HF_CHECK(hf_service_ask(&op, service, &call) == HF_OK) &&
        HF_CHECK(hf_pb_decode(&op, &hf_pb_history_type,
                              ((const hf_pb_get_workflow_execution_history_response *)call.response)->history, &arena,
                              &history) == HF_OK)) {
        for (size_t i = 0; i < history.events.count; i++) {
            count += history.events.items[i].event_type == type;
        }
    }
    hf_arena_deinit(&arena);
    return count;
}

#endif
