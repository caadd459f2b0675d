/* A program is asked what a run of it waits for: its own code, and its own clock, know. */
/* labels: threads */
#include "unit/open/place.h"

#include "base/arena.h"
#include "base/base.h"

#include <sched.h>

typedef struct heard {
    hf_buf insight;
    hf_arena arena;
    hf_pb_admin_insight msg;
} heard;

static void keep(void *state, hf_str kind, hf_str chunk)
{
    heard *h = state;
    if (hf_str_equal(kind, HF_STR("insight"))) {
        hf_buf_put(&h->insight, chunk.data, chunk.len);
    }
}

/* False: the run is not at rest. */
static bool ask(const place *p, heard *h)
{
    hf_op op;
    hf_op_init(&op);
    const char *words[] = {"default", "o"};
    h->insight.len = 0;
    hf_arena_reset(&h->arena);
    HF_CHECK(hf_admin_ask(&op, hf_env_posix(), p->path, "show", words, 2, keep, h) == HF_OK);
    HF_CHECK(hf_pb_decode(&op, &hf_pb_admin_insight_type, hf_str_of_len(h->insight.data, h->insight.len), &h->arena,
                          &h->msg) == HF_OK);
    return h->msg.in_memory;
}

static hf_status on_signal(void *arg, hf_payload in)
{
    (void)arg;
    (void)in;
    return HF_OK;
}

static hf_status on_reply(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    return hf_payload_copy(in, ret_out);
}

static hf_status until(void *arg)
{
    return hf_wait_until(*(bool *)arg);
}

static hf_status picky(hf_payload in, hf_payload *ret_out)
{
    bool *is_done = hf_workflow_alloc(sizeof *is_done);
    (void)in;
    HF_TRY(hf_on_signal("go", on_signal));
    HF_TRY(hf_on_update("u", on_reply));
    HF_TRY(hf_on_query("q", on_reply));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    HF_TRY(hf_fork(scope, until, is_done));
    return hf_signal_wait("delivered", ret_out);
}

typedef struct stage {
    const place *place;
    hf_service *service;
    hf_worker *worker;
} stage;

/* On a thread: it blocks. */
static hf_status look(void *arg)
{
    const stage *s = arg;
    heard h = {.msg = {0}};
    hf_buf_init(&h.insight, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_arena_init(&h.arena, hf_env_memory(hf_env_posix()));
    int64_t before = hf_env_posix()->ops->wall_now(hf_env_posix()).ns;
    while (!ask(s->place, &h) || h.msg.unread.count == 0) { /* until the workflow has seen the signal */
        (void)sched_yield();
    }
    HF_CHECK(h.msg.waits.count == 1 && hf_str_equal(h.msg.waits.items[0], HF_STR("delivered")));
    HF_CHECK(h.msg.unread.count == 1 && hf_str_equal(h.msg.unread.items[0], HF_STR("Delivered")));
    HF_CHECK(h.msg.looks);
    HF_CHECK(h.msg.signals.count == 1 && hf_str_equal(h.msg.signals.items[0], HF_STR("go")));
    HF_CHECK(h.msg.updates.count == 1 && hf_str_equal(h.msg.updates.items[0], HF_STR("u")));
    HF_CHECK(h.msg.now_ns >= before);
    hf_buf_deinit(&h.insight);
    hf_arena_deinit(&h.arena);
    return HF_OK;
}

static hf_status client(void *arg)
{
    stage *s = arg;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_TRY(hf_start(s->service, "picky", hf_payload_none(), &execution, .id = "o", .task_queue = "q"));
    HF_TRY(hf_signal(execution, "Delivered", hf_payload_none()));
    HF_TRY(hf_block(look, s));
    return hf_worker_stop(s->worker);
}

static hf_status app(void *arg)
{
    stage *s = arg;
    HF_TRY(hf_open(s->place->address, &s->service));
    HF_TRY(hf_worker_new(s->service, "q", &s->worker));
    HF_TRY(hf_worker_add_workflow(s->worker, "picky", picky));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, client, s));
        HF_TRY(hf_worker_run(s->worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(s->worker));
    heard h = {.msg = {0}};
    hf_buf_init(&h.insight, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_arena_init(&h.arena, hf_env_memory(hf_env_posix()));
    HF_CHECK(!ask(s->place, &h)); /* the worker is gone, and nobody else knows */
    hf_buf_deinit(&h.insight);
    hf_arena_deinit(&h.arena);
    return hf_close(s->service);
}

static void a_tool_learns_which_signal_a_run_waits_for(void **state)
{
    stage s = {.place = *state};
    assert_int_equal(hf_run(app, &s, .threads = 2), HF_OK);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test_setup_teardown(a_tool_learns_which_signal_a_run_waits_for, place_open, place_close),
};

int main(int argc, char **argv)
{
    return hf_test_main("insight", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
