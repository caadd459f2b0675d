/* Dispatchers: pools for code that blocks, views with a limit, serial ones, and hf_block. */
/* labels: threads */
#include "unit/fiber/bodies.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- hf_block -------------------------------------------------------------------------------- */

typedef struct place {
    pthread_t caller;
    bool is_elsewhere;
    hf_runtime *current;
} place;

static hf_status note_place(void *arg)
{
    place *p = arg;
    p->is_elsewhere = !pthread_equal(pthread_self(), p->caller);
    p->current = hf_runtime_current();
    return HF_OK;
}

static hf_status fail_in_pool(void *arg)
{
    (void)arg;
    return hf_raise((hf_status)(HF_ERR_USER + 3), "the disk is on fire");
}

static hf_status two_pools(void *arg)
{
    (void)arg;
    hf_stats stats;
    HF_TRY(hf_runtime_stats(NULL, &stats));
    HF_CHECK(stats.pool_threads == 0); /* none when idle */
    place p = {.caller = pthread_self()};
    HF_TRY(hf_block(note_place, &p));
    HF_CHECK(p.is_elsewhere && p.current == NULL);
    HF_CHECK(pthread_equal(pthread_self(), p.caller)); /* only the closure moved, never the fiber */
    HF_CHECK(hf_block(fail_in_pool, NULL) == (hf_status)(HF_ERR_USER + 3));
    HF_CHECK(error_says("the disk is on fire"));
    place q = {.caller = pthread_self()};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *io = NULL;
    HF_TRY(hf_pool_new(&io, .name = "io"));
    HF_TRY(hf_fork(scope, note_place, &q, .on = io)); /* a whole job may run there, too */
    HF_TRY(hf_join(scope));
    HF_CHECK(q.is_elsewhere && q.current == hf_runtime_current());
    HF_TRY(hf_runtime_stats(NULL, &stats));
    HF_CHECK(stats.pool_calls == 3 && stats.pool_depth == 0);
    return HF_OK;
}

static void X7_code_that_blocks_has_threads_of_its_own(void **state)
{
    (void)state;
    on_threads(two_pools);
}

static hf_status pool_returns_to_nothing(void *arg)
{
    (void)arg;
    place p = {.caller = pthread_self()};
    HF_TRY(hf_block(note_place, &p));
    hf_stats stats;
    HF_TRY(hf_runtime_stats(NULL, &stats));
    HF_CHECK(stats.pool_threads >= 1);
    HF_TRY(hf_sleep(hf_seconds(30)));
    HF_TRY(hf_runtime_stats(NULL, &stats));
    HF_CHECK(stats.pool_threads == 0);
    return HF_OK;
}

static void an_idle_pool_has_no_threads(void **state)
{
    (void)state;
    simulated("idle pool", 100, pool_returns_to_nothing);
}

typedef struct crowd {
    hf_dispatcher *on;
    atomic_int inside;
    atomic_int most;
    atomic_int calls;
    hf_chan *gate;
} crowd;

static hf_status be_inside(void *arg)
{
    crowd *c = arg;
    int inside = atomic_fetch_add(&c->inside, 1) + 1;
    int most = atomic_load(&c->most);
    while (inside > most && !atomic_compare_exchange_weak(&c->most, &most, inside)) {
    }
    HF_CHECK(hf_sleep(hf_microseconds(20)) == HF_OK); /* a pool thread is a plain thread: this blocks it */
    (void)atomic_fetch_sub(&c->inside, 1);
    (void)atomic_fetch_add(&c->calls, 1);
    return HF_OK;
}

static hf_status call_often(void *arg)
{
    crowd *c = arg;
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_block(be_inside, c, .on = c->on));
    }
    return HF_OK;
}

static hf_status views(void *arg)
{
    (void)arg;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .name = "wide", .limit = 8));
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *two = NULL;
    HF_TRY(hf_pool_view(pool, &two, .name = "narrow", .limit = 2));
    crowd narrow = {.on = two};
    crowd wide = {.on = pool};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 12; i++) {
        HF_TRY(hf_fork(scope, call_often, i % 2 == 0 ? &narrow : &wide));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(narrow.calls == 30 && wide.calls == 30);
    HF_CHECK(narrow.most <= 2 && wide.most <= 8);
    hf_dispatcher *bad = NULL;
    HF_CHECK(hf_pool_new(&bad, .limit = HF_UNLIMITED) == HF_ERR_INVALID);
    return HF_OK;
}

static void a_view_of_a_pool_has_a_limit_of_its_own(void **state)
{
    (void)state;
    simulated_and_on_threads("views", 100, views);
}

/* ---- Serial ---------------------------------------------------------------------------------- */

typedef struct line {
    atomic_int inside;
    int order[30];
    int count; /* guarded by the serial dispatcher alone */
} line;

typedef struct ticket {
    line *line;
    int number;
} ticket;

static hf_status one_after_another(void *arg)
{
    ticket *t = arg;
    HF_CHECK(atomic_fetch_add(&t->line->inside, 1) == 0);
    for (int i = 0; i < t->number % 4; i++) {
        HF_TRY(hf_yield()); /* it waits, and still nobody else comes in */
    }
    t->line->order[t->line->count++] = t->number;
    HF_CHECK(atomic_fetch_sub(&t->line->inside, 1) == 1);
    return HF_OK;
}

static hf_status serial(void *arg)
{
    (void)arg;
    line l = {0};
    ticket tickets[30];
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *one = NULL;
    HF_TRY(hf_serial_new(&one, .name = "journal"));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .on = one)); /* for all its children */
    for (int i = 0; i < 30; i++) {
        tickets[i] = (ticket){&l, i};
        HF_TRY(hf_fork(scope, one_after_another, &tickets[i]));
    }
    HF_TRY(hf_join(scope));
    for (int i = 0; i < 30; i++) {
        HF_CHECK(l.order[i] == i);
    }
    return HF_OK;
}

static void a_serial_dispatcher_runs_one_job_after_another_in_order(void **state)
{
    (void)state;
    simulated_and_on_threads("serial", 300, serial);
}

/* ---- Cancel, limits -------------------------------------------------------------------------- */

static hf_status wait_for_gate(void *arg)
{
    crowd *c = arg;
    char byte;
    (void)atomic_fetch_add(&c->inside, 1);
    hf_status status = hf_chan_recv(c->gate, &byte);
    HF_CHECK(status == HF_ERR_CLOSED);
    (void)atomic_fetch_add(&c->calls, 1);
    return HF_OK;
}

static hf_status call_gate(void *arg)
{
    crowd *c = arg;
    return hf_block(wait_for_gate, c, .on = c->on);
}

static hf_status saturated(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(1, &gate));
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .name = "small", .limit = 3, .queue_max = 5));
    crowd c = {.on = pool, .gate = gate};
    HF_AUTO(hf_scope_close) hf_scope *running = NULL;
    HF_TRY(hf_scope_open(&running));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(running, call_gate, &c));
    }
    while (atomic_load(&c.inside) < 3) {
        HF_TRY(a_moment());
    }
    HF_CHECK(hf_dispatcher_free(pool) == HF_ERR_MISUSE && error_says("'small'"));
    hf_scope *queued = NULL;
    HF_TRY(hf_scope_open(&queued, .join = HF_JOIN_COLLECT));
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_fork(queued, call_gate, &c));
    }
    hf_stats stats;
    do {
        HF_TRY(a_moment());
        HF_TRY(hf_runtime_stats(NULL, &stats));
    } while (stats.pool_depth < 5);
    HF_CHECK(hf_block(wait_for_gate, &c, .on = pool) == HF_ERR_LIMIT && error_says("'small'"));
    HF_TRY(hf_scope_cancel(queued));
    HF_CHECK(hf_join(queued) == HF_ERR_CANCELED); /* what nobody has begun is withdrawn */
    HF_CHECK(hf_scope_tally(queued).canceled == 5 && c.inside == 3);
    HF_TRY(hf_scope_close(queued));
    HF_TRY(hf_scope_cancel(running)); /* what runs is waited for */
    HF_CHECK(c.calls == 0);
    HF_TRY(hf_chan_close(gate));
    HF_IGNORE(hf_join(running));
    HF_CHECK(c.calls == 3);
    return HF_OK;
}

static void a_saturated_pool_queues_up_to_its_bound_and_cancel_withdraws(void **state)
{
    (void)state;
    simulated_and_on_threads("saturated", 100, saturated);
}

/* ---- Abandonable ----------------------------------------------------------------------------- */

typedef struct own {
    hf_chan *gate;
    hf_chan *gone;
    atomic_int *drops;
} own;

static hf_status slow_call(void *arg)
{
    own *o = arg;
    char byte;
    return hf_chan_recv(o->gate, &byte) == HF_ERR_CLOSED ? HF_OK : HF_ERR_FAILED;
}

static void drop_own(void *arg)
{
    own *o = arg;
    (void)atomic_fetch_add(o->drops, 1);
    HF_IGNORE(hf_chan_try_send(o->gone, "x"));
    free(o);
}

static own *own_of(hf_chan *gate, hf_chan *gone, atomic_int *drops)
{
    own *o = malloc(sizeof *o);
    if (o != NULL) {
        *o = (own){gate, gone, drops};
    }
    return o;
}

typedef struct abandon {
    hf_chan *gate;
    hf_chan *gone;
    atomic_int drops;
} abandon;

static hf_status abandoning(void *arg)
{
    abandon *a = arg;
    own *o = own_of(a->gate, a->gone, &a->drops);
    return hf_block(slow_call, o, .abandonable = true, .drop = drop_own);
}

static hf_status abandoned(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_AUTO(hf_chan_free) hf_chan *gone = NULL;
    HF_TRY(hf_chan_new(1, &gate));
    HF_TRY(hf_chan_new(1, &gone, .capacity = 4));
    abandon a = {.gate = gate, .gone = gone};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, abandoning, &a));
    HF_TRY(hf_sleep(hf_milliseconds(5)));
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED); /* the caller is back though the call still runs */
    hf_instant start = hf_now(NULL);
    own *o = own_of(gate, gone, &a.drops);
    HF_CHECK(hf_block(slow_call, o, .abandonable = true, .drop = drop_own, .timeout = hf_seconds(3)) == HF_ERR_TIMEOUT);
    HF_CHECK(ms_since(start) >= 3000 && ms_since(start) < 3100);
    HF_TRY(hf_chan_close(gate));
    char byte;
    HF_TRY(hf_chan_recv(gone, &byte)); /* who began what nobody waits for releases what it owned */
    HF_TRY(hf_chan_recv(gone, &byte));
    HF_CHECK(a.drops == 2);
    return HF_OK;
}

static void an_abandonable_call_is_left_behind_and_releases_what_it_owns(void **state)
{
    (void)state;
    simulated("abandoned", 200, abandoned);
}

/* ---- Jobs on pools --------------------------------------------------------------------------- */

static hf_status cancel_pool_jobs(void *arg)
{
    (void)arg;
    atomic_int canceled = 0;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .limit = 4));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 10; i++) {
        HF_TRY(hf_fork(scope, sleep_and_tell, &canceled, .on = pool));
    }
    HF_TRY(hf_yield());
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(canceled == 10); /* four of them slept, the others began with the cancel pending */
    return HF_OK;
}

static void a_cancel_ends_the_waits_of_a_job_on_a_pool_thread(void **state)
{
    (void)state;
    simulated_and_on_threads("pool jobs", 200, cancel_pool_jobs);
}

static void hf_block_on_a_plain_thread_simply_calls(void **state)
{
    (void)state;
    place p = {.caller = pthread_self()};
    assert_int_equal(hf_block(note_place, &p), HF_OK);
    assert_false(p.is_elsewhere);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(X7_code_that_blocks_has_threads_of_its_own),
        cmocka_unit_test(an_idle_pool_has_no_threads),
        cmocka_unit_test(a_view_of_a_pool_has_a_limit_of_its_own),
        cmocka_unit_test(a_serial_dispatcher_runs_one_job_after_another_in_order),
        cmocka_unit_test(a_saturated_pool_queues_up_to_its_bound_and_cancel_withdraws),
        cmocka_unit_test(an_abandonable_call_is_left_behind_and_releases_what_it_owns),
        cmocka_unit_test(a_cancel_ends_the_waits_of_a_job_on_a_pool_thread),
        cmocka_unit_test(hf_block_on_a_plain_thread_simply_calls),
    };
    return hf_test_main("dispatch", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
