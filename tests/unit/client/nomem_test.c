/* Every allocation of every verb of the client fails once: the verb returns HF_ERR_NOMEM, gives nothing, loses nothing, and
 * works the next time. The client's memory is the process's own, so the test puts its own functions in their place; the
 * engine and the worker are on simulated memory, and do not notice. */
#include "unit/client/scene.h"

#include "base/env.h"

#include <holdfast/answer.h>

static uint64_t allocations; /* since the verb was called */
static uint64_t failing;     /* the one that fails; 0 = none */
static int64_t live;         /* allocations that are not released */
static const hf_env_ops *real;

static void *starving_allocate(hf_env *env, size_t len, size_t align)
{
    if (++allocations == failing) {
        return NULL;
    }
    live++;
    return real->allocate(env, len, align);
}

static void starving_release(hf_env *env, void *ptr, size_t len)
{
    live -= ptr != NULL ? 1 : 0;
    real->release(env, ptr, len);
}

/* What a verb gives; freed after each call. */
typedef struct given {
    hf_payload out;
    hf_execution *execution;
    hf_update_handle *update;
    hf_description *description;
} given;

typedef struct verb {
    const char *name;
    hf_status (*call)(scene *s, hf_execution *w, given *g);
    uint64_t at_least;   /* allocations that it makes */
    hf_status otherwise; /* status if all of them succeed */
} verb;

enum { BIG = 8000 }; /* bytes: more than an errand has on its stack */
static char big[BIG];

static hf_payload big_payload(void)
{
    memset(big, 'x', sizeof big);
    return hf_payload_of_bytes(big, sizeof big);
}

static hf_status call_query(scene *s, hf_execution *w, given *g)
{
    (void)s;
    return hf_query(w, "view", big_payload(), &g->out);
}

static hf_status call_update(scene *s, hf_execution *w, given *g)
{
    (void)s;
    return hf_update(w, "add", big_payload(), &g->out);
}

static hf_status call_update_start(scene *s, hf_execution *w, given *g)
{
    (void)s;
    return hf_update_start(w, "add", big_payload(), &g->update, .id = "kept");
}

static hf_status call_update_handle_new(scene *s, hf_execution *w, given *g)
{
    (void)s;
    return hf_update_handle_new(w, "kept", &g->update);
}

static hf_status call_update_result(scene *s, hf_execution *w, given *g)
{
    (void)s;
    (void)w;
    return hf_update_result(g->update, &g->out);
}

static hf_entry entries[] = {{"a", {big, BIG, HF_ENCODING_BYTES_TEXT, NULL}}, {NULL, {0}}};
static hf_entry words[] = {{"BuildIds", {"[\"some build\"]", 14, HF_ENCODING_JSON_TEXT, NULL}}, {NULL, {0}}};
static const char *const FINAL[] = {"Oops", NULL};

static hf_status call_start(scene *s, hf_execution *w, given *g)
{
    (void)w;
    return hf_start(s->service, "type", big_payload(), &g->execution, .task_queue = "elsewhere", .memo = entries,
                    .search_attributes = words, .summary = "some order", .attempts_max = 2, .final_types = FINAL,
                    .header = entries);
}

static hf_status call_start_and_signal(scene *s, hf_execution *w, given *g)
{
    (void)w;
    return hf_start_and_signal(s->service, "type", big_payload(), "go", big_payload(), &g->execution,
                               .task_queue = "elsewhere", .memo = entries);
}

static hf_status call_start_and_update(scene *s, hf_execution *w, given *g)
{
    (void)w;
    return hf_start_and_update(s->service, "type", big_payload(), "add", big_payload(), &g->execution, &g->update,
                               .memo = entries, .search_attributes = words, .summary = "some order");
}

static hf_status call_describe(scene *s, hf_execution *w, given *g)
{
    (void)s;
    return hf_describe(w, &g->description);
}

static hf_status call_reset(scene *s, hf_execution *w, given *g)
{
    (void)s;
    return hf_reset(w, &g->execution, .point = HF_RESET_LAST, .request_id = "r");
}

static hf_status call_signal(scene *s, hf_execution *w, given *g)
{
    (void)s;
    (void)g;
    return hf_signal(w, "go", big_payload(), .header = entries);
}

/* There is no such activity, which is seen when all memory is there. */
static const hf_answer_target NOBODY = {.workflow_id = "w", .activity_id = "none"};

static hf_status call_answer(scene *s, hf_execution *w, given *g)
{
    (void)w;
    (void)g;
    return hf_answer(s->service, NOBODY, big_payload());
}

static hf_status call_answer_failed(scene *s, hf_execution *w, given *g)
{
    (void)w;
    (void)g;
    return hf_answer_failed(s->service, NOBODY, "no", .details = big_payload());
}

static hf_status call_answer_canceled(scene *s, hf_execution *w, given *g)
{
    (void)w;
    (void)g;
    return hf_answer_canceled(s->service, NOBODY, big_payload());
}

static hf_status call_answer_heartbeat(scene *s, hf_execution *w, given *g)
{
    (void)w;
    (void)g;
    return hf_answer_heartbeat(s->service, NOBODY, big_payload(), NULL);
}

static const verb VERBS[] = {
    {"hf_query", call_query, 2, HF_OK},
    {"hf_update", call_update, 2, HF_OK},
    {"hf_update_start", call_update_start, 2, HF_OK},
    {"hf_update_handle_new", call_update_handle_new, 1, HF_OK},
    {"hf_update_result", call_update_result, 2, HF_OK},
    {"hf_start", call_start, 3, HF_OK},
    {"hf_start_and_signal", call_start_and_signal, 3, HF_OK},
    {"hf_start_and_update", call_start_and_update, 4, HF_OK},
    {"hf_describe", call_describe, 2, HF_OK},
    {"hf_reset", call_reset, 1, HF_OK},
    {"hf_signal", call_signal, 2, HF_OK},
    {"hf_answer", call_answer, 1, HF_ERR_NOT_FOUND},
    {"hf_answer_failed", call_answer_failed, 1, HF_ERR_NOT_FOUND},
    {"hf_answer_canceled", call_answer_canceled, 1, HF_ERR_NOT_FOUND},
    {"hf_answer_heartbeat", call_answer_heartbeat, 1, HF_ERR_NOT_FOUND},
};

static void give_back(given *g)
{
    hf_payload_free(&g->out);
    hf_execution_free(g->execution);
    hf_update_handle_free(g->update);
    hf_description_free(g->description);
    *g = (given){0};
}

/* Answers whatever comes, until the test is over. */
static hf_status work(void *arg)
{
    scene *s = arg;
    while (hf_canceled() == HF_OK) {
        hf_pb_task_queue queue = {.name = HF_STR("default"), .kind = HF_TASK_QUEUE_KIND_NORMAL};
        hf_pb_poll_workflow_task_queue_request request = {
            .namespace = HF_STR("default"), .task_queue = &queue, .identity = HF_STR("worker")};
        hf_status status = HF_OK;
        const scene_task *task = scene_do(s, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &request, &status);
        if (task == NULL || task->task_token.len == 0) {
            continue;
        }
        scene_reply reply = {0};
        if (task->query != NULL) {
            scene_answer(s, task, "\"fine\"");
            continue;
        }
        if (task->messages.count > 0) {
            scene_respond(s, &reply, scene_accept(s, &reply, task), "\"fine\"");
        }
        scene_answers(s, &reply, task, "\"fine\"");
        scene_complete(s, task, &reply);
    }
    return HF_OK;
}

/* Plays one verb with its n-th allocation failing. False: it makes fewer. */
static bool starve(scene *s, hf_execution *w, const verb *v, uint64_t nth)
{
    given g = {0};
    if (v->call == call_update_result) {
        HF_CHECK(hf_update_handle_new(w, "kept", &g.update) == HF_OK);
    }
    int64_t before = live;
    allocations = 0;
    failing = nth;
    hf_status status = v->call(s, w, &g);
    failing = 0;
    bool is_met = allocations >= nth;
    HF_CHECK_SAY(status == (is_met ? HF_ERR_NOMEM : v->otherwise), "%s, allocation %llu: %s: %s", v->name,
                 (unsigned long long)nth, hf_status_name(status), hf_error_text());
    if (is_met) {
        HF_CHECK_SAY(live == before, "%s, allocation %llu: %lld were not released", v->name, (unsigned long long)nth,
                     (long long)(live - before));
        HF_CHECK(g.out.data == NULL && g.execution == NULL && g.description == NULL);
        HF_CHECK(strlen(hf_error_text()) > 0);
    } else {
        HF_CHECK_SAY(nth > v->at_least, "%s made only %llu allocations", v->name, (unsigned long long)nth - 1);
    }
    give_back(&g);
    return is_met;
}

static hf_status starve_all(scene *s)
{
    static hf_env_ops ops;
    HF_AUTO(hf_execution_free) hf_execution *w = NULL;
    big_payload();
    HF_TRY(hf_start(s->service, "type", hf_payload_of_json("1"), &w, .id = "w", .memo = entries));
    HF_TRY(hf_fork(s->scope, work, s));
    HF_TRY(hf_sleep(hf_seconds(1)));
    real = hf_env_posix()->ops;
    ops = *real;
    ops.allocate = starving_allocate;
    ops.release = starving_release;
    live = 0;
    hf_env_posix()->ops = &ops;
    for (size_t i = 0; i < HF_COUNT_OF(VERBS); i++) {
        for (uint64_t nth = 1; starve(s, w, &VERBS[i], nth); nth++) {
        }
    }
    HF_CHECK_SAY(live == 0, "%lld allocations are left", (long long)live);
    hf_env_posix()->ops = real;
    return hf_scope_cancel(s->scope);
}

static void every_allocation_of_every_verb_fails_once(void **state)
{
    (void)state;
    scene s = {.body = starve_all};
    HF_CHECK(hf_sim_run(1, 1, scene_main, &s, NULL) == HF_OK); /* one thread: the functions above have no lock */
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_allocation_of_every_verb_fails_once),
    };
    return hf_test_main("nomem", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
