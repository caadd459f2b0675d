/* Cancellation: level-triggered, with a cause that travels, and cleanup behind a bounded shield. */
/* labels: threads */
#include "unit/fiber/bodies.h"

/* ---- Y10, Y15: reaching everybody ------------------------------------------------------------ */

static hf_status parent_of_sleepers(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "sleepers"));
    for (int i = 0; i < 10; i++) {
        HF_TRY(hf_fork(scope, sleep_and_tell, arg));
    }
    hf_status status = hf_join(scope);
    HF_CHECK(status == HF_ERR_CANCELED);
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED); /* it was not the scope's own: it stays pending */
    HF_CHECK(hf_sleep(hf_seconds(1)) == HF_ERR_CANCELED);
    HF_TRY(hf_scope_close(scope));
    scope = NULL;
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED); /* and is visible behind the scope too */
    return status;
}

static hf_status interrupted_owner(void *arg)
{
    (void)arg;
    atomic_int canceled = 0;
    hf_branch *job = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, parent_of_sleepers, &canceled, .ret_branch = &job));
    while (hf_scope_tally(scope).running == 0) {
        HF_TRY(hf_yield());
    }
    HF_TRY(hf_yield());
    HF_TRY(hf_branch_cancel(job));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(canceled == 10 && hf_branch_status(job) == HF_ERR_CANCELED);
    return HF_OK;
}

static void Y10_interrupting_the_owner_cancels_all_children_and_stays_visible(void **state)
{
    (void)state;
    simulated_and_on_threads("interrupted owner", 300, interrupted_owner);
}

typedef struct observer {
    hf_status status;
    hf_cause cause;
    int64_t slept_ms;
} observer;

static hf_status ten_seconds(void *arg)
{
    observer *o = arg;
    hf_instant start = hf_now(NULL);
    o->status = hf_sleep(hf_seconds(10));
    o->cause = hf_cancel_cause(NULL);
    o->slept_ms = ms_since(start);
    return o->status;
}

static hf_status fail_soon(void *arg)
{
    (void)arg;
    HF_TRY(hf_sleep(hf_milliseconds(50)));
    return hf_raise(HF_ERR_FAILED, "the sibling failed");
}

static hf_status failing_sibling(void *arg)
{
    (void)arg;
    observer o = {0};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, ten_seconds, &o));
    HF_TRY(hf_fork(scope, fail_soon, NULL));
    HF_CHECK(hf_join(scope) == HF_ERR_FAILED && error_says("the sibling failed"));
    HF_CHECK(o.status == HF_ERR_CANCELED && o.cause == HF_CAUSE_SIBLING && o.slept_ms < 1000);
    return HF_OK;
}

static void Y15_a_failing_sibling_interrupts_a_10_s_sleeper_which_observes_it(void **state)
{
    (void)state;
    simulated("failing sibling", 200, failing_sibling);
}

/* The owner waits elsewhere when a child fails: its own failure, which it returns instead of joining, has that of the child as cause. */
static hf_status wait_elsewhere(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "legs"));
    HF_TRY(hf_fork(scope, fail_soon, NULL, .name = "left"));
    return hf_sleep(hf_seconds(10));
}

static bool sibling_is_cause(void)
{
    return hf_error()->status == HF_ERR_CANCELED && hf_error()->cause != NULL &&
           strcmp(hf_error_text(), "hf_sleep: canceled (sibling: left); because the sibling failed") == 0;
}

static hf_status owner_elsewhere(void *arg)
{
    hf_dispatcher *pool = NULL;
    HF_CHECK(wait_elsewhere(arg) == HF_ERR_CANCELED);
    HF_CHECK_SAY(sibling_is_cause(), "%s", hf_error_text());
    HF_TRY(hf_pool_new(&pool));
    for (int i = 0; i < 2; i++) { /* a child's own, and one on a thread of a pool */
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, wait_elsewhere, NULL, .on = i == 0 ? NULL : pool));
        HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
        HF_CHECK_SAY(sibling_is_cause(), "%d: %s", i, hf_error_text());
    }
    return hf_dispatcher_free(pool);
}

static void the_failure_of_a_sibling_is_the_cause_of_the_cancel(void **state)
{
    (void)state;
    simulated("owner elsewhere", 50, owner_elsewhere);
    assert_int_equal(hf_run(owner_elsewhere, NULL), HF_OK);
}

/* ---- Level-triggered ------------------------------------------------------------------------- */

static hf_status answer(void *arg)
{
    (void)arg;
    return HF_OK;
}

static hf_status every_wait(void *arg)
{
    hf_chan *chan = arg; /* with room, and with a value in it: a canceled fiber gets neither */
    char byte = 'x';
    size_t idx = 0;
    hf_case cases[] = {{.kind = HF_CASE_RECV, .chan = chan, .value = &byte}};
    hf_mutex *mutex = NULL;
    hf_sem *sem = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_sem_new(1, &sem));
    while (hf_canceled() == HF_OK) {
        if (hf_yield() != HF_OK) {
            break;
        }
    }
    for (int round = 0; round < 3; round++) {
        HF_CHECK(hf_sleep(hf_seconds(1)) == HF_ERR_CANCELED);
        HF_CHECK(hf_sleep(hf_seconds(0)) == HF_ERR_CANCELED);
        HF_CHECK(hf_yield() == HF_ERR_CANCELED);
        HF_CHECK(hf_chan_send(chan, &byte) == HF_ERR_CANCELED);
        HF_CHECK(hf_chan_recv(chan, &byte) == HF_ERR_CANCELED);
        HF_CHECK(hf_select(cases, 1, &idx) == HF_ERR_CANCELED);
        HF_CHECK(hf_mutex_lock(mutex) == HF_ERR_CANCELED);
        HF_CHECK(hf_sem_acquire(sem, 1) == HF_ERR_CANCELED);
        HF_CHECK(hf_block(answer, NULL) == HF_ERR_CANCELED);
        HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
        HF_CHECK(error_says("canceled (explicit: enough)"));
        HF_AUTO(hf_scope_close) hf_scope *inner = NULL; /* a new scope inside is born canceled */
        HF_CHECK(hf_scope_open(&inner) == HF_OK);
        HF_CHECK(hf_sleep(hf_seconds(1)) == HF_ERR_CANCELED);
    }
    HF_CHECK(hf_chan_try_recv(chan, &byte) == HF_OK); /* what never waits still works */
    HF_CHECK(hf_mutex_free(mutex) == HF_OK && hf_sem_free(sem) == HF_OK);
    return HF_ERR_CANCELED;
}

static hf_status level_triggered(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(1, &chan, .capacity = 2));
    HF_TRY(hf_chan_send(chan, "a"));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, every_wait, chan));
    HF_TRY(hf_yield());
    HF_TRY(hf_scope_cancel(scope, .reason = "enough"));
    HF_TRY(hf_scope_cancel(scope, .reason = "too late: the first cause stays"));
    HF_CHECK(hf_sleep(hf_seconds(1)) == HF_ERR_CANCELED); /* the owner is inside, too */
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_TRY(hf_sleep(hf_milliseconds(1))); /* the join ended the scope's own hold over the owner */
    HF_CHECK(hf_cancel_cause(NULL) == HF_CAUSE_NONE);
    return HF_OK;
}

static void S18_every_wait_fails_until_the_scope_is_left(void **state)
{
    (void)state;
    simulated_and_on_threads("level-triggered", 200, level_triggered);
}

/* What a program's own helper makes of a status: HF_TRY passes the cancel on, a handler of "failed" does not see it. */
static hf_status generic_handler(void)
{
    hf_status status = hf_sleep(hf_hours(1));
    if (status == HF_ERR_FAILED || status == HF_ERR_IO || status == HF_ERR_TIMEOUT) {
        return HF_OK; /* retried, say */
    }
    HF_TRY(status);
    return HF_OK;
}

static hf_status with_handler(void *arg)
{
    (void)arg;
    hf_status status = generic_handler();
    HF_CHECK(status == HF_ERR_CANCELED);
    return status;
}

static hf_status distinct_code(void *arg)
{
    (void)arg;
    hf_branch *job = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, with_handler, NULL, .ret_branch = &job));
    HF_TRY(hf_yield());
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(hf_scope_tally(scope).canceled == 1 && hf_scope_tally(scope).failed == 0);
    HF_CHECK(hf_branch_failure(job) == NULL); /* a cancel is not a failure */
    return HF_OK;
}

static void X5_a_cancel_is_a_code_of_its_own_that_generic_handlers_pass_on(void **state)
{
    (void)state;
    simulated_and_on_threads("distinct code", 100, distinct_code);
}

/* Who claims to be canceled without being it has failed. */
static hf_status pretend(void *arg)
{
    (void)arg;
    return HF_ERR_CANCELED;
}

static hf_status pretenders(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, pretend, NULL));
    HF_TRY(hf_fork(scope, sleep_long, NULL));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(hf_scope_tally(scope).failed == 1 && hf_scope_tally(scope).canceled == 1);
    return HF_OK;
}

static void who_returns_canceled_without_being_it_has_failed(void **state)
{
    (void)state;
    simulated("pretenders", 50, pretenders);
}

/* ---- X4: shared work ------------------------------------------------------------------------- */

typedef struct shared {
    hf_flight *flight;
    atomic_int begun;
    atomic_int canceled;
} shared;

static hf_status fetch_for_all(void *arg, hf_value **ret_value)
{
    shared *s = arg;
    (void)ret_value;
    s->begun++;
    hf_status status = hf_sleep(hf_hours(1));
    s->canceled += status == HF_ERR_CANCELED;
    return status;
}

static hf_status wait_for_fetch(void *arg)
{
    shared *s = arg;
    return hf_flight_run(s->flight, "key", 3, fetch_for_all, s, NULL);
}

static hf_status leaving_collectors(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *store = NULL;
    HF_TRY(hf_scope_open(&store, .name = "store", .join = HF_JOIN_COLLECT));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = store));
    shared s = {.flight = flight};
    hf_branch *jobs[2];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    for (int i = 0; i < 2; i++) {
        HF_TRY(hf_fork(scope, wait_for_fetch, &s, .ret_branch = &jobs[i]));
    }
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_branch_cancel(jobs[0]));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(s.begun == 1 && s.canceled == 0); /* the other one still waits for it */
    HF_TRY(hf_branch_cancel(jobs[1]));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(s.begun == 1 && s.canceled == 1);
    HF_IGNORE(hf_join(scope));
    return HF_OK;
}

static void X4_the_last_waiter_out_cancels_the_shared_work(void **state)
{
    (void)state;
    simulated("leaving collectors", 100, leaving_collectors);
}

/* ---- The cause travels ----------------------------------------------------------------------- */

typedef struct told {
    hf_cause cause;
    char reason[40];
} told;

static hf_status grandchild(void *arg)
{
    told *t = arg;
    hf_status status = hf_sleep(hf_hours(1));
    const char *reason = NULL;
    t->cause = hf_cancel_cause(&reason);
    (void)snprintf(t->reason, sizeof t->reason, "%s", reason);
    return status;
}

static hf_status child_with_child(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "middle", .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, grandchild, arg));
    return hf_join(scope);
}

static hf_status three_causes(void *arg)
{
    (void)arg;
    told t = {0};
    HF_AUTO(hf_scope_close) hf_scope *explicit = NULL;
    HF_TRY(hf_scope_open(&explicit, .name = "top"));
    HF_TRY(hf_fork(explicit, child_with_child, &t));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_TRY(hf_scope_cancel(explicit, .reason = "operator pressed stop"));
    HF_CHECK(hf_join(explicit) == HF_ERR_CANCELED);
    HF_CHECK(t.cause == HF_CAUSE_EXPLICIT && strcmp(t.reason, "operator pressed stop") == 0);

    HF_AUTO(hf_scope_close) hf_scope *sibling = NULL;
    HF_TRY(hf_scope_open(&sibling, .name = "top"));
    HF_TRY(hf_fork(sibling, child_with_child, &t));
    HF_TRY(hf_fork(sibling, fail_soon, NULL, .name = "the-bad-one"));
    HF_CHECK(hf_join(sibling) == HF_ERR_FAILED);
    HF_CHECK(t.cause == HF_CAUSE_SIBLING && strcmp(t.reason, "the-bad-one") == 0);

    HF_AUTO(hf_scope_close) hf_scope *deadline = NULL;
    HF_TRY(hf_scope_open(&deadline, .name = "ten-seconds", .timeout = hf_seconds(10)));
    HF_TRY(hf_fork(deadline, child_with_child, &t));
    HF_CHECK(hf_join(deadline) == HF_ERR_TIMEOUT);
    HF_CHECK(t.cause == HF_CAUSE_DEADLINE && strcmp(t.reason, "ten-seconds") == 0);

    HF_AUTO(hf_scope_close) hf_scope *winner = NULL;
    HF_TRY(hf_scope_open(&winner, .join = HF_JOIN_ANY));
    HF_TRY(hf_fork(winner, child_with_child, &t));
    HF_TRY(hf_fork(winner, answer, NULL, .name = "fastest", .delay = hf_milliseconds(1)));
    HF_TRY(hf_join(winner));
    HF_CHECK(t.cause == HF_CAUSE_WINNER && strcmp(t.reason, "fastest") == 0);

    hf_scope *closed = NULL;
    HF_TRY(hf_scope_open(&closed, .name = "left"));
    HF_TRY(hf_fork(closed, child_with_child, &t));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_TRY(hf_scope_close(closed));
    HF_CHECK(t.cause == HF_CAUSE_CLOSED && strcmp(t.reason, "left") == 0);
    return HF_OK;
}

static void the_cause_travels_to_the_grandchildren_and_names_the_origin(void **state)
{
    (void)state;
    simulated("causes", 200, three_causes);
}

/* ---- Shields --------------------------------------------------------------------------------- */

typedef struct cleanup {
    hf_status inside;     /* a wait shorter than the bound */
    hf_status over_bound; /* one that is longer */
    hf_status child;      /* of a scope inside the shield */
    hf_status after;
    int64_t ms;
} cleanup;

static hf_status short_sleep(void *arg)
{
    (void)arg;
    return hf_sleep(hf_milliseconds(100));
}

static hf_status clean_up_shielded(void *arg)
{
    cleanup *c = arg;
    hf_status status = hf_sleep(hf_hours(1));
    hf_instant start = hf_now(NULL);
    hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_seconds(2), &shield));
    c->inside = hf_sleep(hf_seconds(1));
    HF_CHECK(hf_canceled() == HF_OK && hf_time_left().ns <= hf_seconds(1).ns);
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, short_sleep, NULL));
    c->child = hf_join(scope);
    HF_TRY(hf_scope_close(scope));
    c->over_bound = hf_sleep(hf_hours(1));
    HF_CHECK(hf_cancel_cause(NULL) == HF_CAUSE_DEADLINE);
    c->ms = ms_since(start);
    HF_TRY(hf_shield_close(shield));
    c->after = hf_canceled();
    HF_CHECK(hf_cancel_cause(NULL) == HF_CAUSE_EXPLICIT);
    return status;
}

static hf_status shields(void *arg)
{
    (void)arg;
    cleanup c = {0};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, clean_up_shielded, &c));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(c.inside == HF_OK && c.child == HF_OK);
    HF_CHECK(c.over_bound == HF_ERR_CANCELED && c.ms >= 2000 && c.ms < 2100);
    HF_CHECK(c.after == HF_ERR_CANCELED);
    return HF_OK;
}

/* fiber-C2 */
static void a_shield_keeps_cancels_out_for_its_bound_and_no_longer(void **state)
{
    (void)state;
    simulated("shields", 200, shields);
}

typedef struct early {
    hf_status inside;
    hf_status after;
} early;

static hf_status shielded_before_cancel(void *arg)
{
    early *e = arg;
    hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_seconds(5), &shield));
    e->inside = hf_sleep(hf_seconds(1)); /* the cancel comes meanwhile */
    HF_TRY(hf_shield_close(shield));
    e->after = hf_sleep(hf_seconds(1));
    return e->after;
}

static hf_status shields_before(void *arg)
{
    (void)arg;
    early e = {0};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, shielded_before_cancel, &e));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(e.inside == HF_OK && e.after == HF_ERR_CANCELED);
    hf_shield *shield = NULL;
    HF_CHECK(hf_shield_open(HF_SPAN_UNLIMITED, &shield) == HF_ERR_MISUSE); /* only bounded ones */
    HF_CHECK(hf_shield_open(hf_seconds(0), &shield) == HF_ERR_MISUSE && error_says("bound"));
    return HF_OK;
}

static void a_cancel_during_a_shield_waits_behind_it(void **state)
{
    (void)state;
    simulated("a cancel during a shield", 200, shields_before);
}

/* ---- Jobs that have not started -------------------------------------------------------------- */

static void count_drop(void *arg)
{
    (void)atomic_fetch_add((atomic_int *)arg, 1);
}

static hf_status count_run(void *arg)
{
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
    (void)atomic_fetch_add((atomic_int *)arg, 1);
    return HF_OK;
}

static hf_status born_canceled(void *arg)
{
    (void)arg;
    atomic_int dropped = 0;
    atomic_int ran = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_scope_cancel(scope));
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *serial = NULL;
    HF_TRY(hf_pool_new(&pool));
    HF_TRY(hf_serial_new(&serial));
    hf_dispatcher *places[] = {NULL, pool, serial};
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, count_run, &ran, .on = places[i]));
        HF_TRY(hf_fork(scope, count_run, &ran, .on = places[i], .delay = hf_hours(1)));
        HF_TRY(hf_fork(scope, sleep_long, &dropped, .on = places[i], .drop = count_drop));
        HF_TRY(hf_fork(scope, sleep_long, &dropped, .on = places[i], .drop = count_drop, .delay = hf_hours(1)));
    }
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(ran == 6 && dropped == 6); /* either the body or the drop, always */
    return HF_OK;
}

static void what_is_forked_into_a_canceled_scope_runs_canceled_or_is_dropped(void **state)
{
    (void)state;
    simulated_and_on_threads("born canceled", 200, born_canceled);
}

/* ---- From elsewhere -------------------------------------------------------------------------- */

static hf_status cancel_it(void *arg)
{
    HF_TRY(hf_yield());
    return hf_scope_cancel((hf_scope *)arg, .reason = "a child");
}

static hf_status child_cancels(void *arg)
{
    (void)arg;
    atomic_int canceled = 0;
    for (int round = 0; round < 20; round++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < 5; i++) {
            HF_TRY(hf_fork(scope, cancel_it, scope));
            HF_TRY(hf_fork(scope, sleep_and_tell, &canceled));
        }
        HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    }
    HF_CHECK(canceled == 100);
    return HF_OK;
}

static void children_on_any_thread_cancel_their_scope(void **state)
{
    (void)state;
    simulated_and_on_threads("children cancel", 200, child_cancels);
}

static hf_status deep(void *arg)
{
    atomic_int *left = arg;
    if (atomic_fetch_sub(left, 1) <= 1) {
        return hf_sleep(hf_hours(1));
    }
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, deep, arg));
    return hf_join(scope);
}

static hf_status deep_tree(void *arg)
{
    (void)arg;
    atomic_int left = 2000;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, deep, &left));
    while (atomic_load(&left) > 0) {
        HF_TRY(hf_yield());
    }
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    return HF_OK;
}

/* fiber-C2 */
static void a_cancel_goes_down_a_deep_tree(void **state)
{
    (void)state;
    simulated_and_on_threads("deep tree", 3, deep_tree);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(Y10_interrupting_the_owner_cancels_all_children_and_stays_visible),
        cmocka_unit_test(Y15_a_failing_sibling_interrupts_a_10_s_sleeper_which_observes_it),
        cmocka_unit_test(the_failure_of_a_sibling_is_the_cause_of_the_cancel),
        cmocka_unit_test(S18_every_wait_fails_until_the_scope_is_left),
        cmocka_unit_test(X5_a_cancel_is_a_code_of_its_own_that_generic_handlers_pass_on),
        cmocka_unit_test(X4_the_last_waiter_out_cancels_the_shared_work),
        cmocka_unit_test(who_returns_canceled_without_being_it_has_failed),
        cmocka_unit_test(the_cause_travels_to_the_grandchildren_and_names_the_origin),
        cmocka_unit_test(a_shield_keeps_cancels_out_for_its_bound_and_no_longer),
        cmocka_unit_test(a_cancel_during_a_shield_waits_behind_it),
        cmocka_unit_test(what_is_forked_into_a_canceled_scope_runs_canceled_or_is_dropped),
        cmocka_unit_test(children_on_any_thread_cancel_their_scope),
        cmocka_unit_test(a_cancel_goes_down_a_deep_tree),
    };
    return hf_test_main("cancel", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
