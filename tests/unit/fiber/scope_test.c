/* Scopes: what is forked into them, who waits for whom, what is left when they are gone. */
/* labels: threads */
#include "unit/fiber/bodies.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- Y1, Y15: fan out ------------------------------------------------------------------------ */

enum { ITEMS = 50 };

typedef struct item {
    int in;
    int out;
} item;

static hf_status square(void *arg)
{
    item *it = arg;
    HF_TRY(hf_sleep(hf_microseconds((it->in * 37) % 50))); /* they end in another order than they began */
    it->out = it->in * it->in;
    return HF_OK;
}

static hf_status fan_out(void *arg)
{
    (void)arg;
    item items[ITEMS];
    hf_branch *jobs[ITEMS];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "fan-out"));
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (item){i, -1};
        HF_TRY(hf_fork(scope, square, &items[i], .ret_branch = &jobs[i]));
    }
    HF_TRY(hf_join(scope));
    for (int i = 0; i < ITEMS; i++) {
        HF_CHECK(items[i].out == i * i);
        HF_CHECK(hf_branch_index(jobs[i]) == (uint64_t)i && hf_branch_status(jobs[i]) == HF_OK);
    }
    return HF_OK;
}

static void Y1_fan_out_of_50_gives_results_in_fork_order(void **state)
{
    (void)state;
    simulated_and_on_threads("fan out", 200, fan_out);
}

static hf_status first_failure_cancels(void *arg)
{
    (void)arg;
    atomic_int canceled = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < ITEMS - 1; i++) {
        HF_TRY(hf_fork(scope, sleep_and_tell, &canceled));
    }
    char reason[] = "card declined";
    HF_TRY(hf_fork(scope, fail_at_once, reason));
    HF_CHECK(hf_join(scope) == HF_ERR_FAILED);
    HF_CHECK(error_says("card declined"));
    HF_CHECK(canceled == ITEMS - 1);
    hf_tally tally = hf_scope_tally(scope);
    HF_CHECK(tally.failed == 1 && tally.canceled == ITEMS - 1 && tally.running == 0);
    return HF_OK;
}

static void Y1_the_first_failure_cancels_the_rest_of_a_fan_out(void **state)
{
    (void)state;
    simulated_and_on_threads("first failure", 200, first_failure_cancels);
}

static hf_status hundred_forks(void *arg)
{
    (void)arg;
    atomic_int ran = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 100; i++) {
        HF_TRY(hf_fork(scope, count_one, &ran));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(ran == 100);
    return HF_OK;
}

static void Y15_a_hundred_forks_all_run(void **state)
{
    (void)state;
    simulated_and_on_threads("a hundred forks", 200, hundred_forks);
}

/* ---- Y11: leaving ---------------------------------------------------------------------------- */

static hf_status leave_early(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 20; i++) {
        HF_TRY(hf_fork(scope, sleep_and_tell, arg));
    }
    return hf_raise(HF_ERR_FAILED, "left in the middle"); /* no join: the scope is left by a return */
}

static hf_status leaving_cleans_up(void *arg)
{
    (void)arg;
    atomic_int canceled = 0;
    HF_CHECK(leave_early(&canceled) == HF_ERR_FAILED);
    HF_CHECK(canceled == 20);
    HF_CHECK(hf_canceled() == HF_OK);
    hf_stats stats;
    HF_TRY(hf_runtime_stats(NULL, &stats));
    HF_CHECK(stats.branches == 1); /* this one */
    return HF_OK;
}

static void Y11_leaving_a_scope_by_any_path_cancels_and_joins_its_children(void **state)
{
    (void)state;
    simulated_and_on_threads("leaving", 200, leaving_cleans_up);
}

static hf_status forget_to_close(void *arg)
{
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    return hf_fork(scope, sleep_and_tell, arg);
}

static hf_status forgotten_scopes(void *arg)
{
    (void)arg;
    atomic_int canceled = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, forget_to_close, &canceled, .name = "forgetful"));
    HF_CHECK(hf_join(scope) == HF_ERR_MISUSE);
    HF_CHECK(error_says("scope still open"));
    HF_CHECK(canceled == 1);
    hf_scope *outer = NULL;
    hf_scope *inner = NULL;
    HF_TRY(hf_scope_open(&outer));
    HF_TRY(hf_scope_open(&inner));
    HF_TRY(hf_fork(inner, sleep_and_tell, &canceled));
    HF_TRY(hf_scope_close(outer)); /* takes the inner one along */
    HF_CHECK(canceled == 2);
    return HF_OK;
}

static void Y11_a_scope_that_is_left_open_is_closed_and_told(void **state)
{
    (void)state;
    simulated("forgotten scopes", 100, forgotten_scopes);
}

/* ---- S1, S2, S3, S16: a store's scope -------------------------------------------------------- */

static void *open_without_runtime(void *arg)
{
    (void)arg;
    hf_scope *scope = NULL;
    HF_CHECK(hf_scope_open(&scope) == HF_ERR_MISUSE);
    HF_CHECK(error_says("pass .runtime") && scope == NULL);
    HF_CHECK(hf_fork(NULL, sleep_long, NULL) == HF_ERR_MISUSE);
    HF_CHECK(error_says("needs an open scope"));
    return NULL;
}

static void S1_there_is_no_work_outside_of_a_scope(void **state)
{
    (void)state;
    pthread_t thread; /* one that never talked to a runtime */
    assert_int_equal(pthread_create(&thread, NULL, open_without_runtime, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static hf_status get_two(void *arg)
{
    hf_chan *answers = arg;
    int value = 2;
    HF_TRY(hf_sleep(hf_milliseconds(5)));
    return hf_chan_send(answers, &value);
}

static hf_status supervisor(void *arg)
{
    (void)arg;
    atomic_int later = 0;
    HF_AUTO(hf_chan_free) hf_chan *answers = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &answers, .capacity = 1));
    HF_AUTO(hf_scope_close) hf_scope *store = NULL;
    HF_TRY(hf_scope_open(&store, .name = "store", .join = HF_JOIN_COLLECT));
    hf_branch *one = NULL;
    char reason[] = "key 1 is broken";
    HF_TRY(hf_fork(store, fail_at_once, reason, .ret_branch = &one));
    HF_TRY(hf_fork(store, get_two, answers));
    int value = 0;
    HF_TRY(hf_chan_recv(answers, &value));
    HF_CHECK(value == 2);
    HF_CHECK(hf_join(store) == HF_ERR_FAILED && hf_branch_status(one) == HF_ERR_FAILED);
    HF_CHECK(hf_scope_tally(store).ok == 1 && hf_scope_tally(store).failed == 1);
    HF_TRY(hf_fork(store, count_one, &later)); /* and it still takes work */
    HF_IGNORE(hf_join(store));
    HF_CHECK(later == 1 && hf_scope_tally(store).canceled == 0);
    return HF_OK;
}

static void S2_in_a_supervisor_scope_a_failing_get_leaves_the_others_running(void **state)
{
    (void)state;
    simulated("supervisor", 200, supervisor);
}

static hf_status closing_the_store(void *arg)
{
    (void)arg;
    atomic_int canceled = 0;
    hf_scope *store = NULL;
    HF_TRY(hf_scope_open(&store, .name = "store", .join = HF_JOIN_COLLECT));
    for (int i = 0; i < 10; i++) {
        HF_TRY(hf_fork(store, sleep_and_tell, &canceled));
    }
    HF_TRY(hf_yield());
    HF_TRY(hf_scope_close(store));
    HF_CHECK(canceled == 10);
    return HF_OK;
}

static void S3_closing_the_store_cancels_its_scope(void **state)
{
    (void)state;
    simulated_and_on_threads("closing the store", 100, closing_the_store);
}

typedef struct fetch {
    int key;
    int value;
} fetch;

static hf_status get_key(void *arg)
{
    fetch *f = arg;
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    f->value = f->key * 10;
    return HF_OK;
}

static hf_status get_all(void *arg)
{
    (void)arg;
    fetch keys[8];
    hf_instant start = hf_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "get-all"));
    for (int i = 0; i < 8; i++) {
        keys[i] = (fetch){i, -1};
        HF_TRY(hf_fork(scope, get_key, &keys[i]));
    }
    HF_TRY(hf_join(scope));
    for (int i = 0; i < 8; i++) {
        HF_CHECK(keys[i].value == i * 10);
    }
    HF_CHECK(ms_since(start) < 200); /* together, not one after another */
    return HF_OK;
}

static void S16_several_keys_are_got_in_parallel_in_a_strict_scope(void **state)
{
    (void)state;
    simulated("get all", 100, get_all);
}

/* ---- T2, T3, T8, T10, N5: the scopes of a run ------------------------------------------------ */

typedef struct run {
    hf_scope *fail_fast; /* of the execution: main and what it launches */
    hf_scope *handlers;
    atomic_int main_canceled;
    atomic_int main_cleaned;
    atomic_int handled;
    atomic_int after_main;
    hf_status result;
    char text[200];
    char chain[400];
} run;

static hf_status launched_failure(void *arg)
{
    (void)arg;
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    return hf_raise(HF_ERR_FAILED, "payment service said no");
}

static hf_status main_fiber(void *arg)
{
    run *r = arg;
    HF_TRY(hf_fork(r->fail_fast, launched_failure, r, .name = "launched"));
    hf_status status = hf_sleep(hf_hours(1));
    if (status == HF_ERR_CANCELED) {
        const char *reason = NULL;
        HF_CHECK(hf_cancel_cause(&reason) == HF_CAUSE_SIBLING && strcmp(reason, "launched") == 0);
        r->main_canceled++;
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(hf_seconds(5), &shield));
        if (hf_sleep(hf_seconds(1)) == HF_OK) { /* cleanup that waits */
            r->main_cleaned++;
        }
    }
    return status;
}

static hf_status execution(void *arg)
{
    run *r = arg;
    HF_AUTO(hf_scope_close) hf_scope *fail_fast = NULL;
    HF_TRY(hf_scope_open(&fail_fast, .name = "execution"));
    r->fail_fast = fail_fast;
    HF_TRY(hf_fork(fail_fast, main_fiber, r, .name = "main"));
    r->result = hf_join(fail_fast);
    (void)snprintf(r->text, sizeof r->text, "%s", hf_error_text());
    size_t used = 0;
    for (const hf_failure *at = hf_error(); at != NULL; at = at->cause) {
        used += (size_t)snprintf(r->chain + used, sizeof r->chain - used, "[%s %s]", at->type, at->message);
    }
    return HF_OK;
}

static hf_status one_handler(void *arg)
{
    run *r = arg;
    HF_TRY(hf_sleep(hf_seconds(10))); /* longer than the execution lives */
    r->handled++;
    return HF_OK;
}

static hf_status bad_handler(void *arg)
{
    (void)arg;
    return hf_raise(HF_ERR_FAILED, "a handler failed");
}

static hf_status handlers(void *arg)
{
    run *r = arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "handlers", .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, one_handler, r));
    HF_TRY(hf_fork(scope, bad_handler, r));
    HF_TRY(hf_fork(scope, one_handler, r));
    HF_CHECK(hf_join(scope) == HF_ERR_FAILED);
    return HF_OK;
}

static hf_status sibling_supervisors(void *arg)
{
    (void)arg;
    run r = {0};
    HF_AUTO(hf_scope_close) hf_scope *parent = NULL;
    HF_TRY(hf_scope_open(&parent, .name = "run", .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(parent, execution, &r, .name = "execution"));
    HF_TRY(hf_fork(parent, handlers, &r, .name = "handlers"));
    HF_TRY(hf_join(parent));
    HF_CHECK(r.handled == 2); /* neither the execution nor the bad handler harmed them */
    HF_CHECK(r.result == HF_ERR_FAILED);
    HF_CHECK(r.main_canceled == 1 && r.main_cleaned == 1);
    HF_CHECK(strcmp(r.text, "payment service said no") == 0);
    HF_CHECK(strstr(r.chain, "cancel") == NULL && strstr(r.chain, "CANCEL") == NULL);
    return HF_OK;
}

static void T2_execution_and_handlers_are_sibling_supervisors(void **state)
{
    (void)state;
    simulated("sibling supervisors", 200, sibling_supervisors);
}

static hf_status execution_alone(void *arg)
{
    (void)arg;
    run r = {0};
    HF_TRY(execution(&r));
    HF_CHECK(r.result == HF_ERR_FAILED && r.main_canceled == 1);
    HF_CHECK(strcmp(r.text, "payment service said no") == 0);
    HF_CHECK(strstr(r.chain, "ancel") == NULL);
    HF_CHECK(r.main_cleaned == 1);
    return HF_OK;
}

static void T3_an_error_in_a_launched_fiber_fails_the_run_with_that_error(void **state)
{
    (void)state;
    simulated("launched failure", 200, execution_alone);
}

static void N5_a_launched_fiber_fails_while_main_sleeps(void **state)
{
    (void)state;
    simulated("fails while main sleeps", 100, execution_alone);
}

static hf_status outlives_main(void *arg)
{
    run *r = arg;
    HF_TRY(hf_sleep(hf_seconds(2)));
    r->after_main++;
    return HF_OK;
}

static hf_status main_that_returns(void *arg)
{
    run *r = arg;
    HF_TRY(hf_fork(r->fail_fast, outlives_main, r)); /* a sibling */
    HF_AUTO(hf_scope_close) hf_scope *strict = NULL; /* a nested scope waits for its own */
    HF_TRY(hf_scope_open(&strict));
    atomic_int ran = 0;
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_fork(strict, count_one, &ran));
    }
    HF_TRY(hf_join(strict));
    HF_CHECK(ran == 5);
    HF_CHECK(r->after_main == 0);
    return HF_OK;
}

static hf_status launch_and_return(void *arg)
{
    (void)arg;
    run r = {0};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    r.fail_fast = scope;
    hf_branch *main_job = NULL;
    HF_TRY(hf_fork(scope, main_that_returns, &r, .ret_branch = &main_job));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(hf_branch_is_done(main_job) && r.after_main == 0);
    HF_TRY(hf_join(scope));
    HF_CHECK(r.after_main == 1);
    return HF_OK;
}

static void T8_launched_fibers_outlive_main_and_strict_scopes_wait(void **state)
{
    (void)state;
    simulated("launched fibers outlive main", 200, launch_and_return);
}

static hf_status activity(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "activity"));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, sleep_and_tell, arg));
    }
    hf_status status = hf_join(scope);
    HF_CHECK(status == HF_ERR_CANCELED);
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED); /* it came from further out: it stays */
    return status;
}

static hf_status activities(void *arg)
{
    (void)arg;
    atomic_int canceled = 0;
    HF_AUTO(hf_scope_close) hf_scope *root = NULL;
    HF_TRY(hf_scope_open(&root, .name = "activities", .join = HF_JOIN_COLLECT));
    for (int i = 0; i < 7; i++) {
        HF_TRY(hf_fork(root, activity, &canceled, .name = "activity"));
    }
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_TRY(hf_scope_cancel(root, .reason = "worker stops"));
    HF_CHECK(hf_join(root) == HF_ERR_CANCELED);
    HF_CHECK(canceled == 21);
    return HF_OK;
}

static void T10_canceling_the_root_of_activities_reaches_all_their_children(void **state)
{
    (void)state;
    simulated("activities", 200, activities);
}

/* ---- N6: a scope with children in every state ------------------------------------------------ */

enum { KINDS = 11, CHILDREN = 1001 }; /* 91 of each kind */

typedef struct zoo {
    hf_mutex *mutex;    /* held by the owner */
    hf_chan *never;     /* nobody sends */
    hf_chan *gate;      /* closed by the first child that is canceled in its wait for `never` */
    atomic_int arrived; /* children that are about to wait */
    atomic_int ended;
    atomic_int dropped;
} zoo;

static hf_status end(zoo *z, hf_status status)
{
    (void)atomic_fetch_add(&z->ended, 1);
    return status;
}

static hf_status in_io(void *arg)
{
    zoo *z = arg;
    HF_AUTO(hf_listener_close) hf_listener *listener = NULL;
    hf_status status = hf_listener_open("tcp:127.0.0.1:0", &listener);
    (void)atomic_fetch_add(&z->arrived, 1);
    if (HF_CHECK(status == HF_OK)) {
        hf_conn *conn = NULL;
        status = hf_listener_accept(listener, &conn);
    }
    return end(z, status);
}

static hf_status on_lock(void *arg)
{
    zoo *z = arg;
    (void)atomic_fetch_add(&z->arrived, 1);
    return end(z, hf_mutex_lock(z->mutex));
}

static hf_status on_chan(void *arg)
{
    zoo *z = arg;
    char byte;
    (void)atomic_fetch_add(&z->arrived, 1);
    hf_status status = hf_chan_recv(z->never, &byte);
    HF_CHECK(hf_chan_close(z->gate) == HF_OK);
    return end(z, status);
}

static hf_status on_select(void *arg)
{
    zoo *z = arg;
    char byte;
    size_t idx;
    hf_case cases[] = {{.kind = HF_CASE_RECV, .chan = z->never, .value = &byte},
                       {.kind = HF_CASE_SEND, .chan = z->never, .value = &byte}};
    (void)atomic_fetch_add(&z->arrived, 1);
    return end(z, hf_select(cases, 1, &idx)); /* the second would meet the receivers */
}

static hf_status asleep(void *arg)
{
    zoo *z = arg;
    (void)atomic_fetch_add(&z->arrived, 1);
    return end(z, hf_sleep(hf_hours(1)));
}

static hf_status wait_at_gate(void *arg)
{
    zoo *z = arg;
    char byte;
    HF_CHECK(hf_chan_recv(z->gate, &byte) == HF_ERR_CLOSED);
    return HF_OK;
}

/* Some of the calls run, the others wait in the queue: the pool has fewer threads than there are calls. */
static hf_status in_pool_call(void *arg)
{
    zoo *z = arg;
    (void)atomic_fetch_add(&z->arrived, 1);
    hf_status status = hf_block(wait_at_gate, z);
    HF_CHECK(status == HF_OK || status == HF_ERR_CANCELED);
    return end(z, status);
}

static hf_status spin(void *arg)
{
    zoo *z = arg;
    (void)atomic_fetch_add(&z->arrived, 1);
    hf_status status = HF_OK;
    while (status == HF_OK) {
        status = hf_yield();
    }
    return end(z, status);
}

static hf_status finish_ok(void *arg)
{
    zoo *z = arg;
    (void)atomic_fetch_add(&z->arrived, 1);
    return end(z, HF_OK);
}

static hf_status late(void *arg)
{
    return end(arg, hf_canceled()); /* born late, or never started: it runs canceled, without its delay */
}

static void drop_one(void *arg)
{
    zoo *z = arg;
    (void)atomic_fetch_add(&z->dropped, 1);
}

static hf_status never_started(void *arg)
{
    (void)arg;
    (void)hf_check_say(__FILE__, __LINE__, "a canceled job with a drop has run");
    return HF_OK;
}

static hf_status fill_zoo(zoo *z, hf_scope *scope)
{
    static const hf_body WAITING[] = {in_io, on_lock, on_chan, on_select, asleep, in_pool_call, spin, finish_ok};
    enum { COUNT = sizeof WAITING / sizeof *WAITING };
    int each = CHILDREN / KINDS;
    hf_branch *job = NULL;
    for (int i = 0; i < each; i++) {
        for (int k = 0; k < COUNT; k++) {
            HF_TRY(hf_fork(scope, WAITING[k], z, .ret_branch = i % 2 == 0 ? &job : NULL));
        }
        HF_TRY(hf_fork(scope, late, z, .delay = hf_hours(1)));
    }
    while (atomic_load(&z->arrived) < each * COUNT) {
        HF_TRY(hf_yield());
    }
    for (int i = 0; i < each; i++) { /* as close comes, most of these have not started */
        HF_TRY(hf_fork(scope, late, z));
        HF_TRY(hf_fork(scope, never_started, z, .drop = drop_one, .delay = hf_hours(1)));
    }
    return HF_OK;
}

static hf_status zoo_keeper(void *arg)
{
    zoo *z = arg;
    HF_AUTO(hf_scope_close) hf_scope *outer = NULL;
    HF_TRY(hf_scope_open(&outer, .name = "outer"));
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "zoo", .join = HF_JOIN_COLLECT));
    HF_TRY(fill_zoo(z, scope));
    HF_TRY(hf_scope_cancel(outer, .reason = "closing time"));
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
    HF_TRY(hf_scope_close(scope));
    HF_CHECK(z->ended + z->dropped == CHILDREN);
    HF_CHECK(z->dropped == CHILDREN / KINDS);
    const char *reason = NULL;
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED && hf_sleep(hf_seconds(1)) == HF_ERR_CANCELED);
    HF_CHECK(hf_cancel_cause(&reason) == HF_CAUSE_EXPLICIT && strcmp(reason, "closing time") == 0);
    return HF_OK;
}

static hf_status whole_zoo(void *arg)
{
    (void)arg;
    zoo z = {0};
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_chan_free) hf_chan *never = NULL;
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_chan_new(1, &never));
    HF_TRY(hf_chan_new(1, &gate));
    z.mutex = mutex;
    z.never = never;
    z.gate = gate;
    HF_TRY(hf_mutex_lock(mutex));
    HF_TRY(zoo_keeper(&z));
    HF_TRY(hf_mutex_unlock(mutex));
    hf_stats stats;
    do { /* a stack goes back just after its job has ended */
        HF_TRY(hf_yield());
        HF_TRY(hf_runtime_stats(NULL, &stats));
    } while (stats.fibers != 1);
    HF_CHECK(stats.branches == 1 && stats.pool_depth == 0);
    return HF_OK;
}

static void N6_a_scope_of_1001_children_in_every_state_is_closed_without_a_trace(void **state)
{
    (void)state;
    simulated("zoo", 20, whole_zoo);
    on_threads(whole_zoo);
}

/* ---- Values, delays, limits ------------------------------------------------------------------ */

static const hf_local TENANT = {"tenant"};
static const hf_local TRACE = {"trace"};

static hf_status grandchild_sees(void *arg)
{
    (void)arg;
    HF_CHECK(strcmp(hf_local_get(&TENANT), "acme") == 0);
    HF_CHECK(strcmp(hf_local_get(&TRACE), "t-2") == 0); /* the nearest binding */
    return HF_OK;
}

static hf_status child_sees(void *arg)
{
    (void)arg;
    HF_CHECK(strcmp(hf_local_get(&TENANT), "acme") == 0 && strcmp(hf_local_get(&TRACE), "t-1") == 0);
    HF_TRY(hf_local_set(&TRACE, "t-2"));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, grandchild_sees, NULL));
    return hf_join(scope);
}

static hf_status pool_child_sees(void *arg)
{
    (void)arg;
    HF_CHECK(strcmp(hf_local_get(&TENANT), "acme") == 0);
    return HF_OK;
}

static hf_status values(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *before = NULL;
    HF_TRY(hf_scope_open(&before));
    HF_CHECK(hf_local_get(&TENANT) == NULL);
    HF_TRY(hf_local_set(&TENANT, "acme"));
    HF_TRY(hf_local_set(&TRACE, "t-1"));
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 4; i++) {
        HF_TRY(hf_fork(scope, child_sees, NULL));
    }
    HF_TRY(hf_fork(scope, pool_child_sees, NULL, .on = pool));
    HF_TRY(hf_join(scope));
    HF_CHECK(strcmp(hf_local_get(&TRACE), "t-1") == 0); /* a child's binding is its own */
    return HF_OK;
}

static void fiber_local_values_are_inherited_by_children(void **state)
{
    (void)state;
    simulated_and_on_threads("values", 100, values);
}

static hf_status delayed(void *arg)
{
    (void)arg;
    atomic_int ran = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    hf_instant start = hf_now(NULL);
    for (int i = 0; i < 1000; i++) {
        HF_TRY(hf_fork(scope, count_one, &ran, .delay = hf_seconds(60)));
    }
    HF_TRY(hf_sleep(hf_seconds(30)));
    hf_stats stats;
    HF_TRY(hf_runtime_stats(NULL, &stats));
    HF_CHECK(ran == 0 && stats.fibers == 1 && stats.branches == 1001);
    HF_TRY(hf_join(scope));
    HF_CHECK(ran == 1000 && ms_since(start) >= 60000);
    return HF_OK;
}

static void delayed_forks_hold_no_stack(void **state)
{
    (void)state;
    simulated("delayed forks", 20, delayed);
}

static hf_status at_most_three(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .branches_max = 3));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, sleep_long, NULL));
    }
    zoo z = {0};
    HF_CHECK(hf_fork(scope, sleep_long, &z, .drop = drop_one) == HF_ERR_LIMIT);
    HF_CHECK(z.dropped == 1 && error_says("3 children"));
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_TRY(hf_fork(scope, late, &z));            /* there is room again, and the cancel was the scope's own */
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED); /* the verdict is about all children so far */
    HF_CHECK(z.ended == 1 && hf_scope_tally(scope).ok == 1);
    return HF_OK;
}

static void a_scope_takes_no_more_children_than_it_was_told(void **state)
{
    (void)state;
    simulated("limit of children", 50, at_most_three);
}

/* ---- Forks from elsewhere -------------------------------------------------------------------- */

typedef struct family {
    hf_scope *ancestor;
    atomic_int born;
    int depth;
} family;

typedef struct member {
    family *all;
    int depth;
} member;

static hf_status have_children(void *arg);

static hf_status fork_into_ancestor(family *all, int depth)
{
    member *m = malloc(sizeof *m);
    if (m == NULL) {
        return HF_ERR_NOMEM;
    }
    *m = (member){all, depth};
    return hf_fork(all->ancestor, have_children, m, .drop = free);
}

static hf_status have_children(void *arg)
{
    member m = *(member *)arg;
    free(arg);
    (void)atomic_fetch_add(&m.all->born, 1);
    if (m.depth == 0) {
        return HF_OK;
    }
    HF_TRY(fork_into_ancestor(m.all, m.depth - 1));
    HF_TRY(hf_yield());
    return fork_into_ancestor(m.all, m.depth - 1);
}

static hf_status ancestors(void *arg)
{
    (void)arg;
    family all = {0};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    all.ancestor = scope;
    HF_TRY(fork_into_ancestor(&all, 6));
    HF_TRY(fork_into_ancestor(&all, 6));
    HF_TRY(hf_join(scope));
    HF_CHECK(all.born == 2 * 127);
    HF_CHECK(hf_scope_tally(scope).ok == 2 * 127);
    return HF_OK;
}

static void a_child_on_any_thread_forks_into_its_ancestors_scope(void **state)
{
    (void)state;
    simulated_and_on_threads("ancestors", 200, ancestors);
}

static hf_status scope_on_pool_thread(void *arg)
{
    atomic_int *ran = arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "on a pool thread"));
    for (int i = 0; i < 10; i++) {
        HF_TRY(hf_fork(scope, count_one, ran));
    }
    HF_TRY(hf_join(scope));
    HF_TRY(hf_fork(scope, sleep_long, NULL));
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_sleep(hf_hours(1)) == HF_ERR_CANCELED);
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(hf_canceled() == HF_OK);
    return HF_OK;
}

static hf_status pool_scopes(void *arg)
{
    (void)arg;
    atomic_int ran = 0;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .limit = 3));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_fork(scope, scope_on_pool_thread, &ran, .on = pool));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(ran == 50);
    for (int i = 0; i < 5; i++) { /* a cancel from outside reaches what a pool thread has open */
        HF_TRY(hf_fork(scope, activity, &ran, .on = pool));
    }
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(ran == 50 + 15);
    return HF_OK;
}

static void pool_threads_own_scopes_too(void **state)
{
    (void)state;
    simulated_and_on_threads("scopes of pool threads", 100, pool_scopes);
}

typedef struct guest {
    hf_runtime *runtime;
    atomic_int ran;
} guest;

static void *plain_thread_with_scope(void *arg)
{
    guest *g = arg;
    for (int round = 0; round < 20; round++) {
        hf_scope *scope = NULL;
        if (!HF_CHECK(hf_scope_open(&scope, .runtime = g->runtime) == HF_OK)) {
            return NULL;
        }
        for (int i = 0; i < 10; i++) {
            HF_CHECK(hf_fork(scope, count_one, &g->ran) == HF_OK);
        }
        HF_CHECK(hf_fork(scope, fail_at_once, NULL) == HF_OK);
        HF_CHECK(hf_join(scope) == HF_ERR_FAILED);
        HF_CHECK(error_says("it failed"));
        hf_scope *inner = NULL;
        HF_CHECK(hf_scope_open(&inner, .runtime = g->runtime, .timeout = hf_hours(1)) == HF_OK);
        HF_CHECK(hf_fork(inner, sleep_long, NULL) == HF_OK);
        HF_CHECK(hf_scope_cancel(scope) == HF_OK); /* an outer cancel reaches the thread in its inner scope */
        HF_CHECK(hf_sleep(hf_hours(1)) == HF_ERR_CANCELED);
        HF_CHECK(hf_join(inner) == HF_ERR_CANCELED);
        HF_CHECK(hf_scope_close(scope) == HF_OK);
        HF_CHECK(hf_canceled() == HF_OK);
    }
    return NULL;
}

static void plain_threads_own_scopes_too(void **state)
{
    (void)state;
    guest g = {0};
    assert_int_equal(hf_runtime_new(&g.runtime, .threads = 2, .log = bodies_log), HF_OK);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, plain_thread_with_scope, &g), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(hf_runtime_free(g.runtime), HF_OK);
    assert_int_equal(atomic_load(&g.ran),
                     600); /* also those that were canceled before they started: they have no drop */
}

static hf_status not_the_owner(void *arg)
{
    hf_scope *scope = arg;
    HF_CHECK(hf_join(scope) == HF_ERR_MISUSE && error_says("owner"));
    HF_CHECK(hf_scope_close(scope) == HF_ERR_MISUSE && error_says("owner"));
    return HF_OK;
}

static hf_status owners(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, not_the_owner, scope));
    HF_TRY(hf_join(scope));
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_seconds(1), &shield));
    HF_CHECK(hf_fork((hf_scope *)(void *)shield, sleep_long, NULL) == HF_ERR_MISUSE);
    return HF_OK;
}

static void only_the_owner_joins_and_closes(void **state)
{
    (void)state;
    simulated_and_on_threads("owners", 50, owners);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(Y1_fan_out_of_50_gives_results_in_fork_order),
        cmocka_unit_test(Y1_the_first_failure_cancels_the_rest_of_a_fan_out),
        cmocka_unit_test(Y15_a_hundred_forks_all_run),
        cmocka_unit_test(Y11_leaving_a_scope_by_any_path_cancels_and_joins_its_children),
        cmocka_unit_test(Y11_a_scope_that_is_left_open_is_closed_and_told),
        cmocka_unit_test(S1_there_is_no_work_outside_of_a_scope),
        cmocka_unit_test(S2_in_a_supervisor_scope_a_failing_get_leaves_the_others_running),
        cmocka_unit_test(S3_closing_the_store_cancels_its_scope),
        cmocka_unit_test(S16_several_keys_are_got_in_parallel_in_a_strict_scope),
        cmocka_unit_test(T2_execution_and_handlers_are_sibling_supervisors),
        cmocka_unit_test(T3_an_error_in_a_launched_fiber_fails_the_run_with_that_error),
        cmocka_unit_test(N5_a_launched_fiber_fails_while_main_sleeps),
        cmocka_unit_test(T8_launched_fibers_outlive_main_and_strict_scopes_wait),
        cmocka_unit_test(T10_canceling_the_root_of_activities_reaches_all_their_children),
        cmocka_unit_test(N6_a_scope_of_1001_children_in_every_state_is_closed_without_a_trace),
        cmocka_unit_test(fiber_local_values_are_inherited_by_children),
        cmocka_unit_test(delayed_forks_hold_no_stack),
        cmocka_unit_test(a_scope_takes_no_more_children_than_it_was_told),
        cmocka_unit_test(a_child_on_any_thread_forks_into_its_ancestors_scope),
        cmocka_unit_test(pool_threads_own_scopes_too),
        cmocka_unit_test(plain_threads_own_scopes_too),
        cmocka_unit_test(only_the_owner_joins_and_closes),
    };
    return hf_test_main("scope", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
