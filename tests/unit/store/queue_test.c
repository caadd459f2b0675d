/* labels: threads */
/* The thread in front of a store: order, wakes, closing; on simulated threads over many seeds, and on real ones. */
#include "support/support.h"

#include "base/env.h"
#include "env/sim/sim.h"
#include "store/store.h"

#include <string.h>

enum { SUBMITTERS = 4, REQUESTS = 40 };

typedef struct probe {
    hf_store base;
    int executed;         /* requests so far */
    int inside;           /* executions under way */
    int closed;           /* times */
    int next[SUBMITTERS]; /* number of the request that must come next */
} probe;

typedef struct asked {
    hf_store_request request;
    int submitter;
    int number;
    int again; /* times to submit it once more */
    bool seen; /* executed before */
} asked;

typedef struct crowd {
    hf_env *env;
    hf_store_queue *queue;
    probe probe;
    atomic_int done;
    hf_word all_done;
    asked asked[SUBMITTERS][REQUESTS];
} crowd;

static hf_status probe_execute(hf_store *store, hf_store_request *request)
{
    probe *p = (probe *)store;
    asked *a = request->state;
    HF_CHECK(p->inside++ == 0);
    if (!a->seen) { /* one that is submitted again comes after all others */
        HF_CHECK_SAY(p->next[a->submitter] == a->number, "submitter %d: %d instead of %d", a->submitter, a->number,
                     p->next[a->submitter]);
        p->next[a->submitter]++;
        a->seen = true;
    }
    p->executed++;
    p->inside--;
    return HF_OK;
}

static uint64_t probe_last_commit(hf_store *store)
{
    (void)store;
    return 0;
}

static void probe_close(hf_store *store)
{
    ((probe *)store)->closed++;
}

static const hf_store_ops PROBE_OPS = {
    .name = "probe", .execute = probe_execute, .last_commit = probe_last_commit, .close = probe_close};

static crowd *the_crowd;

static void done(hf_store_request *request)
{
    asked *a = request->state;
    HF_CHECK(request->status == HF_OK);
    if (a->again > 0) {
        a->again--;
        hf_store_queue_submit(the_crowd->queue, request);
        return;
    }
    if (atomic_fetch_add(&the_crowd->done, 1) + 1 == SUBMITTERS * REQUESTS) {
        atomic_store(&the_crowd->all_done, 1);
        the_crowd->env->ops->word_wake(the_crowd->env, &the_crowd->all_done, 1);
    }
}

typedef struct submitter {
    crowd *crowd;
    int number;
} submitter;

static void submit_all(void *arg)
{
    const submitter *self = arg;
    hf_env *env = self->crowd->env;
    for (int i = 0; i < REQUESTS; i++) {
        asked *a = &self->crowd->asked[self->number][i];
        *a = (asked){.submitter = self->number, .number = i, .again = i % 13 == 12 ? 1 : 0};
        a->request = (hf_store_request){.verb = HF_STORE_STATS, .done = done, .state = a};
        hf_store_queue_submit(self->crowd->queue, &a->request);
        if (env->ops->point != NULL) {
            env->ops->point(env, HF_POINT_HANDOFF, (uint64_t)i);
        }
    }
}

static void crowd_runs(hf_env *env, bool waits)
{
    static crowd c;
    memset(&c, 0, sizeof c);
    the_crowd = &c;
    c.env = env;
    c.probe.base.ops = &PROBE_OPS;
    hf_op op;
    hf_op_init(&op);
    if (!HF_CHECK(hf_store_queue_open(&op, env, &c.probe.base, &c.queue) == HF_OK)) {
        return;
    }
    hf_thread *threads[SUBMITTERS] = {0};
    submitter who[SUBMITTERS];
    for (int i = 0; i < SUBMITTERS; i++) {
        who[i] = (submitter){&c, i};
        HF_CHECK(env->ops->thread_start(env, &op, "submitter", 1 << 18, submit_all, &who[i], &threads[i]) == HF_OK);
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        env->ops->thread_join(env, threads[i]);
    }
    while (waits && atomic_load(&c.all_done) == 0) {
        (void)env->ops->word_wait(env, &c.all_done, 0, HF_INSTANT_NEVER);
    }
    hf_store_queue_close(c.queue);
    HF_CHECK(atomic_load(&c.done) == SUBMITTERS * REQUESTS);
    HF_CHECK(c.probe.executed == SUBMITTERS * REQUESTS + SUBMITTERS * (REQUESTS / 13));
    HF_CHECK(c.probe.closed == 1);
}

static void one_seed(uint64_t seed)
{
    hf_env *env = hf_sim_begin(seed);
    crowd_runs(env, seed % 2 == 0);
    hf_sim_end(env, NULL);
}

/* store-S3, store-Q1, store-Q2, store-Q3: a simulation switches threads at every call to the environment */
static void queue_executes_in_order_and_closes_when_all_is_done(void **state)
{
    (void)state;
    hf_each_seed("store queue", 2000, one_seed);
}

static void queue_executes_in_order_on_real_threads(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        crowd_runs(hf_env_posix(), i % 2 == 0);
    }
}

static void queue_that_was_never_used_closes(void **state)
{
    (void)state;
    hf_env *env = hf_sim_begin(1);
    hf_op op;
    hf_op_init(&op);
    probe p = {.base = {&PROBE_OPS}};
    hf_store_queue *queue = NULL;
    assert_int_equal(hf_store_queue_open(&op, env, &p.base, &queue), HF_OK);
    hf_store_queue_close(queue);
    hf_store_queue_close(NULL);
    assert_int_equal(p.closed, 1);
    hf_sim_end(env, NULL);
}

static void queue_that_cannot_open_closes_the_store(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 2; nth++) {
        hf_env *env = hf_sim_begin(1);
        hf_sim_fail_allocation(env, nth, false);
        hf_op op;
        hf_op_init(&op);
        probe p = {.base = {&PROBE_OPS}};
        hf_store_queue *queue = NULL;
        hf_status status = hf_store_queue_open(&op, env, &p.base, &queue);
        if (status == HF_OK) {
            hf_store_queue_close(queue);
        }
        assert_true(status == HF_OK || queue == NULL);
        assert_true(nth > 1 || status == HF_ERR_NOMEM);
        assert_int_equal(p.closed, 1);
        hf_sim_end(env, NULL);
    }
}

/* ---- Steps that follow each other ----------------------------------------------------------------------------------------- */

typedef struct walker {
    asked asked;
    int left;     /* steps */
    int followed; /* steps that followed at once */
    asked other;  /* comes while the first step is executed */
} walker;

static walker *the_walker;

static bool walk_on(hf_store_request *request)
{
    (void)request;
    HF_CHECK(the_walker->other.seen); /* else something waits */
    if (the_walker->left == 0) {
        return false;
    }
    the_walker->left--;
    the_walker->followed++;
    return true;
}

static void walked(hf_store_request *request)
{
    (void)request;
    if (atomic_fetch_add(&the_crowd->done, 1) == 1) {
        atomic_store(&the_crowd->all_done, 1);
        the_crowd->env->ops->word_wake(the_crowd->env, &the_crowd->all_done, 1);
    }
}

static hf_status walk_execute(hf_store *store, hf_store_request *request)
{
    walker *w = the_walker;
    (void)store;
    if (request == &w->other.request) {
        w->other.seen = true;
    } else if (!w->asked.seen) {
        w->asked.seen = true;
        hf_store_queue_submit(the_crowd->queue, &w->other.request);
    }
    return HF_OK;
}

static const hf_store_ops WALK_OPS = {
    .name = "walk", .execute = walk_execute, .last_commit = probe_last_commit, .close = probe_close};

/* A request that goes on gives way to one that waits, and is then done: its submitter sends the next step. */
static void a_request_goes_on_only_while_nothing_waits(void **state)
{
    (void)state;
    static crowd c;
    walker w = {.left = 5};
    memset(&c, 0, sizeof c);
    the_crowd = &c;
    the_walker = &w;
    c.env = hf_env_posix();
    c.probe.base.ops = &WALK_OPS;
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_store_queue_open(&op, c.env, &c.probe.base, &c.queue), HF_OK);
    w.other.request = (hf_store_request){.verb = HF_STORE_STATS, .done = walked};
    w.asked.request = (hf_store_request){.verb = HF_STORE_STATS, .done = walked, .goes_on = walk_on};
    hf_store_queue_submit(c.queue, &w.asked.request);
    while (atomic_load(&c.all_done) == 0) {
        (void)c.env->ops->word_wait(c.env, &c.all_done, 0, HF_INSTANT_NEVER);
    }
    assert_int_equal(w.followed, 0); /* the other one waited */
    atomic_store(&c.done, 1);
    atomic_store(&c.all_done, 0);
    hf_store_queue_submit(c.queue, &w.asked.request);
    while (atomic_load(&c.all_done) == 0) {
        (void)c.env->ops->word_wait(c.env, &c.all_done, 0, HF_INSTANT_NEVER);
    }
    assert_int_equal(w.followed, 5); /* nothing did */
    hf_store_queue_close(c.queue);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(queue_executes_in_order_and_closes_when_all_is_done),
    cmocka_unit_test(queue_executes_in_order_on_real_threads),
    cmocka_unit_test(a_request_goes_on_only_while_nothing_waits),
    cmocka_unit_test(queue_that_was_never_used_closes),
    cmocka_unit_test(queue_that_cannot_open_closes_the_store),
};

int main(int argc, char **argv)
{
    return hf_test_main("store queue", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
