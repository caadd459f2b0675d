/* hf_dump and hf_metrics: what they show of a running tree, while it runs. */
/* labels: threads */
#include "support/json_check.h"
#include "support/support.h"

#include "base/base.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Reading a text dump ----------------------------------------------------------------------------------------- */

/* The first line with `what` in it at or after `from`; NULL when there is none. */
static const char *line_of(const char *from, const char *what)
{
    const char *at = from != NULL ? strstr(from, what) : NULL;
    while (at != NULL && at > from && at[-1] != '\n') {
        at--;
    }
    return at;
}

static int indent_of(const char *line)
{
    return line != NULL ? (int)strspn(line, " ") : -1;
}

static bool line_has(const char *line, const char *what)
{
    const char *at = line != NULL ? strstr(line, what) : NULL;
    return at != NULL && at < line + strcspn(line, "\n");
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    size_t len = strlen(what);
    for (const char *at = text; *at != '\0'; at++) { /* not strstr: a sanitizer's measures the rest each time */
        count += *at == *what && strncmp(at, what, len) == 0;
    }
    return count;
}

/* ---- A small tree ------------------------------------------------------------------------------------------------ */

typedef struct tree {
    hf_chan *inbox; /* where the leaves wait */
    int parked;     /* leaves that are about to */
    char *text;
    char *json;
    char *bare;
} tree;

static __attribute__((noinline)) hf_status wait_for_orders(void *arg)
{
    tree *t = arg;
    int value = 0;
    t->parked++;
    hf_status status = hf_chan_recv(t->inbox, &value);
    __asm__ volatile("" ::: "memory"); /* no tail call: the frame is to be seen */
    return status == HF_ERR_CLOSED ? HF_OK : status;
}

static hf_status with_inner_scope(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *outer = NULL;
    HF_TRY(hf_scope_open(&outer, .name = "outer"));
    HF_AUTO(hf_scope_close) hf_scope *inner = NULL;
    HF_TRY(hf_scope_open(&inner, .name = "inner\n\"quoted\"", .join = HF_JOIN_COLLECT, .timeout = hf_seconds(1000)));
    HF_TRY(hf_fork(inner, wait_for_orders, arg, .name = "leaf"));
    return hf_join(inner);
}

static hf_status grow_and_dump(void *arg)
{
    tree *t = arg;
    HF_AUTO(hf_chan_free) hf_chan *inbox = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &inbox, .name = "inbox"));
    t->inbox = inbox;
    HF_AUTO(hf_scope_close) hf_scope *orders = NULL;
    HF_TRY(hf_scope_open(&orders, .name = "orders"));
    HF_TRY(hf_fork(orders, wait_for_orders, t, .name = "reader"));
    HF_TRY(hf_fork(orders, with_inner_scope, t, .name = "parent"));
    HF_TRY(hf_fork(orders, wait_for_orders, t, .name = "later", .delay = hf_seconds(1000)));
    while (t->parked < 2) {
        HF_TRY(hf_yield());
    }
    for (int i = 0; i < 100; i++) { /* and now they are parked: there is one thread, and it is ours */
        HF_TRY(hf_yield());
    }
    HF_TRY(hf_dump(NULL, &t->text));
    HF_TRY(hf_dump(NULL, &t->json, .json = true));
    HF_TRY(hf_dump(NULL, &t->bare, .no_stacks = true));
    HF_TRY(hf_chan_close(inbox));
    return HF_OK; /* leaving cancels the delayed one */
}

static void check_small_tree(const tree *t)
{
    if (!HF_CHECK(t->text != NULL && t->json != NULL && t->bare != NULL)) {
        return;
    }
    const char *main_scope = line_of(t->text, "scope 'main'");
    const char *main_fiber = line_of(main_scope, "fiber 'main' #0: dumping");
    const char *orders = line_of(main_fiber, "scope 'orders'");
    const char *reader = line_of(orders, "fiber 'reader' #0: waiting in hf_chan_recv on 'inbox'");
    const char *parent = line_of(orders, "fiber 'parent' #1: waiting in hf_join on 'inner?\"quoted\"'");
    const char *later = line_of(orders, "fiber 'later' #2: delayed");
    const char *outer = line_of(parent, "scope 'outer'");
    const char *inner = line_of(outer, "scope 'inner?\"quoted\"'");
    const char *leaf = line_of(inner, "fiber 'leaf' #0: waiting in hf_chan_recv on 'inbox'");
    bool is_whole = HF_CHECK(main_scope != NULL && main_fiber != NULL && orders != NULL) &&
                    HF_CHECK(reader != NULL && parent != NULL && later != NULL) &&
                    HF_CHECK(outer != NULL && inner != NULL && leaf != NULL);
    if (!is_whole) {
        print_message("%s\n", t->text);
        return;
    }
    HF_CHECK(strncmp(t->text, "runtime '", 9) == 0);
    HF_CHECK(line_has(line_of(t->text, "thread 0"), "dumping, fiber 'main' #0"));
    HF_CHECK(indent_of(main_scope) == 0 && indent_of(main_fiber) == 2 && indent_of(orders) == 4);
    HF_CHECK(indent_of(reader) == 6 && indent_of(parent) == 6 && indent_of(later) == 6);
    HF_CHECK(indent_of(outer) == 8 && indent_of(inner) == 10 && indent_of(leaf) == 12);
    HF_CHECK(line_has(main_scope, ", of a thread"));
    HF_CHECK(line_has(orders, "join all, forked 3, running 3, ok 0, failed 0, canceled 0"));
    HF_CHECK(line_has(inner, "join collect") && line_has(inner, "deadline in "));
    HF_CHECK(!line_has(orders, "deadline in ") && !line_has(reader, "canceled"));
    /* Stacks: of static functions, up to the body and not beyond. */
    HF_CHECK(line_has(line_of(main_fiber, "at hf_dump_with+0x"), "at hf_dump_with"));
    HF_CHECK(line_of(main_fiber, "at grow_and_dump+0x") < orders);
    HF_CHECK(count_of(t->text, "at wait_for_orders+0x") == 2);
    HF_CHECK(count_of(t->text, "at with_inner_scope+0x") == 1);
    HF_CHECK(count_of(t->text, "hf_switch_entry") == 0 && count_of(t->text, "hf_call_guarded") == 0);
    HF_CHECK(count_of(t->bare, "\n        at ") == 0 && line_of(t->bare, "fiber 'leaf'") != NULL);
    /* JSON. */
    HF_CHECK(json_is_valid(t->json));
    HF_CHECK(count_of(t->json, "\"kind\":\"fiber\"") == 5 && count_of(t->json, "\"kind\":\"scope\"") == 4);
    HF_CHECK(strstr(t->json, "\"name\":\"inner\\n\\\"quoted\\\"\"") != NULL);
    HF_CHECK(count_of(t->json, "\"waits_in\":\"hf_chan_recv\",\"waits_on\":\"inbox\"") == 2);
    HF_CHECK(strstr(t->json, "\"cut\":false") != NULL && count_of(t->json, "\"parent\":null") == 1);
}

static void free_texts(tree *t)
{
    hf_text_free(t->text);
    hf_text_free(t->json);
    hf_text_free(t->bare);
    *t = (tree){0};
}

static void Y12_dump_shows_parents_and_children(void **state)
{
    (void)state;
    tree t = {0};
    assert_int_equal(hf_run(grow_and_dump, &t, .threads = 1), HF_OK);
    check_small_tree(&t);
    free_texts(&t);
}

static void dump_one_seed(uint64_t seed)
{
    tree t = {0};
    HF_CHECK(hf_sim_run(seed, 1, grow_and_dump, &t, NULL) == HF_OK);
    check_small_tree(&t);
    free_texts(&t);
}

static void dump_works_in_a_simulated_environment(void **state)
{
    (void)state;
    hf_each_seed("dump of a small tree", 50, dump_one_seed);
}

/* ---- Ten thousand fibers, all threads busy ----------------------------------------------------------------------- */

enum { FIBERS = HF_TSAN ? 500 : 10000, THREADS = 2 };

typedef struct crowd {
    hf_chan *gate;
    atomic_int waiting;  /* fibers that are about to wait */
    atomic_int spinning; /* threads that compute */
    atomic_bool stop;
} crowd;

static hf_status wait_at_gate(void *arg)
{
    crowd *c = arg;
    int value = 0;
    atomic_fetch_add(&c->waiting, 1);
    hf_status status = hf_chan_recv(c->gate, &value);
    return status == HF_ERR_CLOSED ? HF_OK : status;
}

static hf_status spin(void *arg)
{
    crowd *c = arg;
    atomic_fetch_add(&c->spinning, 1);
    while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
        hf_relax();
    }
    return HF_OK;
}

static void print_took(const char *what, const struct timespec *from, size_t len)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    double ms = (double)(now.tv_sec - from->tv_sec) * 1e3 + (double)(now.tv_nsec - from->tv_nsec) / 1e6;
    print_message("%s: %.1f ms, %zu bytes\n", what, ms, len);
}

static void dump_of_ten_thousand_fibers_while_all_threads_are_busy(void **state)
{
    (void)state;
    crowd c = {0};
    hf_runtime *rt = NULL;
    hf_watchdog_options quiet = {.stuck_after = HF_SPAN_OFF};
    assert_int_equal(hf_runtime_new(&rt, .threads = THREADS, .name = "crowd", .watchdog = quiet), HF_OK);
    assert_int_equal(hf_chan_new(sizeof(int), &c.gate, .runtime = rt, .name = "gate"), HF_OK);
    hf_scope *crowd_scope = NULL;
    hf_scope *spinners[THREADS] = {NULL};
    assert_int_equal(hf_scope_open(&crowd_scope, .runtime = rt, .name = "crowd"), HF_OK);
    for (int i = 0; i < FIBERS; i++) {
        assert_int_equal(hf_fork(crowd_scope, wait_at_gate, &c, .name = "guest"), HF_OK);
    }
    while (atomic_load(&c.waiting) < FIBERS) {
        HF_IGNORE(hf_sleep(hf_microseconds(100)));
    }
    for (int i = 0; i < THREADS; i++) { /* a scope each: their homes are the threads in turn */
        assert_int_equal(hf_scope_open(&spinners[i], .runtime = rt, .name = "spinners"), HF_OK);
        assert_int_equal(hf_fork(spinners[i], spin, &c, .name = "spinner"), HF_OK);
    }
    while (atomic_load(&c.spinning) < THREADS) {
        HF_IGNORE(hf_sleep(hf_microseconds(100)));
    }
    for (int round = 0; round < 2; round++) {
        struct timespec from;
        (void)clock_gettime(CLOCK_MONOTONIC, &from);
        char *text = NULL;
        HF_CHECK(hf_dump(rt, &text, .json = round == 1) == HF_OK);
        print_took(round == 1 ? "dump as JSON" : "dump as text", &from, text != NULL ? strlen(text) : 0);
        if (text != NULL && round == 0) {
            HF_CHECK(count_of(text, "fiber 'guest'") == FIBERS);
            HF_CHECK(count_of(text, ": waiting in hf_chan_recv on 'gate'") == FIBERS);
            HF_CHECK(count_of(text, "at wait_at_gate+0x") == FIBERS);
            HF_CHECK(count_of(text, ": running in user code") == THREADS);
            HF_CHECK(line_has(line_of(text, "thread 0"), "user code, fiber 'spinner'"));
            HF_CHECK(line_has(line_of(text, "thread 1"), "user code, fiber 'spinner'"));
        } else if (text != NULL) {
            HF_CHECK(json_is_valid(text));
            HF_CHECK(count_of(text, "\"waits_on\":\"gate\"") == FIBERS);
        }
        hf_text_free(text);
    }
    char *metrics = NULL;
    HF_CHECK(hf_metrics(rt, &metrics) == HF_OK && line_of(metrics, "steals ") != NULL);
    hf_text_free(metrics);
    atomic_store(&c.stop, true);
    for (int i = THREADS - 1; i >= 0; i--) {
        HF_CHECK(hf_join(spinners[i]) == HF_OK);
        HF_CHECK(hf_scope_close(spinners[i]) == HF_OK);
    }
    HF_CHECK(hf_chan_close(c.gate) == HF_OK);
    HF_CHECK(hf_join(crowd_scope) == HF_OK);
    HF_CHECK(hf_scope_close(crowd_scope) == HF_OK);
    HF_CHECK(hf_chan_free(c.gate) == HF_OK);
    HF_CHECK(hf_runtime_free(rt) == HF_OK);
}

/* ---- Deep trees, pools, dumps while everything moves ------------------------------------------------------------- */

typedef struct well {
    int depth;
    char *text;
    char *json;
} well;

static hf_status dig(void *arg)
{
    well *w = arg;
    if (w->depth == 0) {
        HF_TRY(hf_dump(NULL, &w->text));
        return hf_dump(NULL, &w->json, .json = true);
    }
    w->depth--;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, dig, w, .stack_size = HF_ASAN || HF_TSAN ? 0 : 16 * 1024));
    return hf_join(scope);
}

static void dump_of_a_deep_tree_from_a_small_stack(void **state)
{
    (void)state;
    enum { DEPTH = HF_TSAN ? 200 : 5000 };
    well w = {.depth = DEPTH};
    assert_int_equal(hf_run(dig, &w, .threads = 1), HF_OK);
    assert_non_null(w.text);
    assert_non_null(w.json);
    assert_int_equal(count_of(w.text, ": waiting in hf_join on 'scope'"), DEPTH);
    assert_non_null(strstr(w.text, "[depth 201] fiber #0"));
    assert_true(json_is_valid(w.json));
    hf_text_free(w.text);
    hf_text_free(w.json);
}

typedef struct pooled {
    hf_chan *gate;
    atomic_int arrived;
    char *text;
    hf_dispatcher *pool;
} pooled;

static hf_status wait_on_pool(void *arg)
{
    pooled *p = arg;
    int value = 0;
    atomic_fetch_add(&p->arrived, 1);
    hf_status status = hf_chan_recv(p->gate, &value);
    return status == HF_ERR_CLOSED ? HF_OK : status;
}

static hf_status open_scope_on_pool(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "in the pool"));
    HF_TRY(hf_fork(scope, wait_on_pool, arg, .name = "back on fibers"));
    return hf_join(scope);
}

static hf_status use_pool(void *arg)
{
    pooled *p = arg;
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &gate, .name = "gate"));
    p->gate = gate;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "work"));
    HF_TRY(hf_fork(scope, open_scope_on_pool, p, .name = "miller", .on = p->pool));
    HF_TRY(hf_fork(scope, wait_on_pool, p, .name = "waiter", .on = p->pool));
    for (;;) { /* until the picture shows them all where they go */
        HF_TRY(hf_dump(NULL, &p->text));
        if (atomic_load(&p->arrived) == 2 && count_of(p->text, " in hf_chan_recv on 'gate'") == 2 &&
            count_of(p->text, " in hf_join on 'in the pool'") == 2) {
            break;
        }
        hf_text_free(p->text);
        HF_TRY(hf_sleep(hf_microseconds(200)));
    }
    HF_TRY(hf_chan_close(gate));
    return hf_join(scope);
}

static hf_status use_and_free_pool(void *arg)
{
    pooled *p = arg;
    HF_TRY(hf_pool_new(&p->pool, .name = "mill", .limit = 4));
    hf_status status = use_pool(p);
    while (hf_dispatcher_free(p->pool) != HF_OK) { /* a thread may still be on its way out of its last job */
        HF_TRY(hf_sleep(hf_microseconds(100)));
    }
    return status;
}

static void check_pool_dump(const pooled *p)
{
    const char *miller = line_of(p->text, "fiber 'miller' #0: on a pool in hf_join on 'in the pool'");
    const char *inner = line_of(miller, "scope 'in the pool'");
    const char *back = line_of(inner, "fiber 'back on fibers' #0: waiting in hf_chan_recv on 'gate'");
    HF_CHECK(miller != NULL && inner != NULL && back != NULL);
    HF_CHECK(indent_of(inner) == indent_of(miller) + 2 && indent_of(back) == indent_of(inner) + 2);
    HF_CHECK(line_of(p->text, "fiber 'waiter' #1: on a pool in hf_chan_recv on 'gate'") != NULL);
}

static void dump_shows_scopes_of_pool_threads_under_their_jobs(void **state)
{
    (void)state;
    pooled p = {0};
    assert_int_equal(hf_run(use_and_free_pool, &p, .threads = 2), HF_OK);
    check_pool_dump(&p);
    hf_text_free(p.text);
}

static void pool_one_seed(uint64_t seed)
{
    pooled p = {0};
    if (HF_CHECK(hf_sim_run(seed, 2, use_and_free_pool, &p, NULL) == HF_OK)) {
        check_pool_dump(&p);
    }
    hf_text_free(p.text);
}

static void dump_of_pool_threads_in_a_simulated_environment(void **state)
{
    (void)state;
    hf_each_seed("dump of pool threads", 100, pool_one_seed);
}

typedef struct churn {
    atomic_bool stop;
    atomic_int dumps;
    int dumps_max;
} churn;

static hf_status nothing(void *arg)
{
    (void)arg;
    return hf_yield();
}

static hf_status fork_and_join(void *arg)
{
    churn *c = arg;
    while (!atomic_load(&c->stop)) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "brief"));
        for (int i = 0; i < 10; i++) {
            HF_TRY(hf_fork(scope, nothing, NULL, .name = "mayfly"));
        }
        HF_TRY(hf_join(scope));
    }
    return HF_OK;
}

static hf_status dump_often(void *arg)
{
    churn *c = arg;
    while (!atomic_load(&c->stop)) {
        char *text = NULL;
        HF_TRY(hf_dump(NULL, &text, .json = atomic_load(&c->dumps) % 2 == 1));
        hf_text_free(text);
        HF_TRY(hf_metrics(NULL, &text, .json = true));
        HF_CHECK(json_is_valid(text));
        hf_text_free(text);
        if (atomic_fetch_add(&c->dumps, 1) + 1 >= c->dumps_max) {
            atomic_store(&c->stop, true);
        }
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

static hf_status churn_all(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, fork_and_join, arg, .name = "churner"));
    }
    for (int i = 0; i < 2; i++) { /* two that stop the world at the same time */
        HF_TRY(hf_fork(scope, dump_often, arg, .name = "dumper"));
    }
    return hf_join(scope);
}

static void dumps_while_fibers_come_and_go(void **state)
{
    (void)state;
    churn c = {.dumps_max = 200};
    assert_int_equal(hf_run(churn_all, &c, .threads = 3), HF_OK);
    assert_true(atomic_load(&c.dumps) >= 200);
}

static void churn_one_seed(uint64_t seed)
{
    churn c = {.dumps_max = 6};
    HF_CHECK(hf_sim_run(seed, 3, churn_all, &c, NULL) == HF_OK);
}

static void dumps_while_fibers_come_and_go_simulated(void **state)
{
    (void)state;
    hf_each_seed("dumps while fibers come and go", 100, churn_one_seed);
}

/* ---- Cancellation, misuse, memory -------------------------------------------------------------------------------- */

static hf_status stay_in_shield(void *arg)
{
    tree *t = arg;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_seconds(1000), &shield));
    return wait_for_orders(t);
}

static hf_status cancel_and_dump(void *arg)
{
    tree *t = arg;
    HF_AUTO(hf_chan_free) hf_chan *inbox = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &inbox, .name = "inbox"));
    t->inbox = inbox;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "doomed"));
    HF_TRY(hf_fork(scope, stay_in_shield, t, .name = "tough"));
    while (t->parked < 1) {
        HF_TRY(hf_yield());
    }
    for (int i = 0; i < 100; i++) {
        HF_TRY(hf_yield());
    }
    HF_TRY(hf_scope_cancel(scope, .reason = "closing time"));
    HF_TRY(hf_dump(NULL, &t->text));
    return hf_chan_close(inbox);
}

static void dump_tells_why_something_was_canceled(void **state)
{
    (void)state;
    tree t = {0};
    assert_int_equal(hf_run(cancel_and_dump, &t, .threads = 1), HF_OK);
    assert_non_null(t.text);
    assert_true(line_has(line_of(t.text, "scope 'doomed'"), "canceled: explicit 'closing time'"));
    assert_true(line_has(line_of(t.text, "fiber 'tough'"), "waiting in hf_chan_recv on 'inbox'"));
    assert_true(line_has(line_of(t.text, "fiber 'tough'"), "canceled: explicit 'closing time'"));
    const char *shield = line_of(t.text, "shield 'shield'");
    assert_true(line_has(shield, "deadline in ") && !line_has(shield, "canceled"));
    free_texts(&t);
}

static hf_verdict dump_in_hook(const hf_tally *tally, const hf_outcome *outcome)
{
    char *text = NULL;
    if (outcome != NULL) {
        HF_CHECK(hf_dump(NULL, &text) == HF_ERR_MISUSE);
        HF_CHECK(hf_metrics(NULL, &text) == HF_ERR_MISUSE);
        *(int *)tally->state += 1;
    }
    return HF_GO_ON;
}

static hf_status misuse_in_fiber(void *arg)
{
    static const hf_join_hooks HOOKS = {.name = "dumping", .on_done = dump_in_hook};
    hf_runtime *other = arg;
    char *text = NULL;
    int hooked = 0;
    HF_CHECK(hf_dump(NULL, NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_metrics(NULL, NULL, .json = true) == HF_ERR_MISUSE);
    HF_CHECK(hf_dump(other, &text) == HF_ERR_MISUSE); /* two that did this to each other would wait for ever */
    HF_CHECK(hf_metrics(other, &text, .json = true) == HF_ERR_MISUSE);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = hf_join_policy_of(&HOOKS, 0, &hooked)));
    HF_TRY(hf_fork(scope, nothing, NULL));
    HF_TRY(hf_join(scope));
    HF_CHECK(hooked == 1 && text == NULL);
    return HF_OK;
}

static void dump_and_metrics_refuse_misuse(void **state)
{
    (void)state;
    char *text = NULL;
    assert_int_equal(hf_dump(NULL, &text), HF_ERR_MISUSE);
    assert_int_equal(hf_metrics(NULL, &text, .json = true), HF_ERR_MISUSE);
    hf_runtime *other = NULL;
    assert_int_equal(hf_runtime_new(&other, .threads = HF_OFF), HF_OK);
    assert_int_equal(hf_dump(other, &text), HF_OK); /* an empty one that nobody drives */
    assert_non_null(line_of(text, "thread 0: idle"));
    hf_text_free(text);
    assert_int_equal(hf_run(misuse_in_fiber, other, .threads = 1), HF_OK);
    assert_int_equal(hf_runtime_free(other), HF_OK);
    hf_text_free(NULL);
}

typedef struct scarce {
    atomic_int live;
    atomic_int left; /* allocations until one fails; negative = none does */
} scarce;

static void *scarce_allocate(void *state, size_t len, size_t align)
{
    scarce *s = state;
    if (atomic_load(&s->left) >= 0 && atomic_fetch_sub(&s->left, 1) == 0) {
        return NULL;
    }
    atomic_fetch_add(&s->live, 1);
    return align > sizeof(max_align_t) ? aligned_alloc(align, (len + align - 1) / align * align) : malloc(len);
}

static void scarce_release(void *state, void *ptr, size_t len)
{
    scarce *s = state;
    (void)len;
    atomic_fetch_sub(&s->live, 1);
    free(ptr);
}

static hf_status dump_with_little_memory(void *arg)
{
    scarce *s = arg;
    tree t = {0};
    HF_AUTO(hf_chan_free) hf_chan *inbox = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &inbox, .name = "inbox"));
    t.inbox = inbox;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "some"));
    for (int i = 0; i < 20; i++) {
        HF_TRY(hf_fork(scope, wait_for_orders, &t));
    }
    while (t.parked < 20) {
        HF_TRY(hf_yield());
    }
    for (int form = 0; form < 4; form++) {
        hf_status status = HF_ERR_NOMEM;
        int n = 0;
        for (; status != HF_OK && n < 1000; n++) {
            char *text = NULL;
            int live = atomic_load(&s->live);
            atomic_store(&s->left, n);
            status = form < 2 ? hf_dump(NULL, &text, .json = form == 1) : hf_metrics(NULL, &text, .json = form == 3);
            atomic_store(&s->left, -1);
            HF_CHECK((status == HF_OK) == (text != NULL));
            HF_CHECK(status == HF_OK || status == HF_ERR_NOMEM);
            HF_CHECK(status != HF_ERR_NOMEM || hf_error() != NULL);
            hf_text_free(text);
            HF_CHECK(atomic_load(&s->live) <= live + 1); /* the failure itself is kept */
        }
        HF_CHECK(status == HF_OK && n > 1);
    }
    return hf_chan_close(inbox);
}

static void dump_without_memory_fails_and_leaks_nothing(void **state)
{
    (void)state;
    scarce s = {.left = -1};
    hf_allocator allocator = {scarce_allocate, scarce_release, &s};
    assert_int_equal(hf_run(dump_with_little_memory, &s, .threads = 1, .allocator = allocator), HF_OK);
    assert_int_equal(atomic_load(&s.live), 0);
}

/* ---- Metrics ----------------------------------------------------------------------------------------------------- */

typedef struct measured {
    char *text;
    char *json;
} measured;

static hf_status sleep_a_while(void *arg)
{
    (void)arg;
    return hf_sleep(hf_milliseconds(3));
}

static hf_status measure(void *arg)
{
    measured *m = arg;
    for (int i = 0; i < 5; i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        char name[] = "invoices"; /* gone with the scope: the table must keep its own */
        HF_TRY(hf_scope_open(&scope, .name = name));
        HF_TRY(hf_fork(scope, sleep_a_while, NULL));
        HF_TRY(hf_fork(scope, sleep_a_while, NULL));
        HF_TRY(hf_join(scope));
        HF_TRY(hf_scope_close(scope));
        scope = NULL;
        memset(name, 'x', sizeof name - 1);
        HF_AUTO(hf_scope_close) hf_scope *unnamed = NULL;
        HF_TRY(hf_scope_open(&unnamed));
    }
    HF_TRY(hf_metrics(NULL, &m->text));
    return hf_metrics(NULL, &m->json, .json = true);
}

static uint64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at != NULL ? strtoull(at + strlen(key), NULL, 10) : UINT64_MAX;
}

static void metrics_one_seed(uint64_t seed)
{
    measured m = {0};
    HF_CHECK(hf_sim_run(seed, 2, measure, &m, NULL) == HF_OK);
    if (HF_CHECK(m.text != NULL && m.json != NULL)) {
        HF_CHECK(number_after(m.text, "forks ") == 11 && number_after(m.text, "joins ") == 5);
        HF_CHECK(number_after(m.text, "scope.forks{name=\"invoices\"} ") == 10);
        HF_CHECK(number_after(m.text, "scope.duration.count{name=\"invoices\"} ") == 5);
        uint64_t sum = number_after(m.text, "scope.duration.sum_us{name=\"invoices\"} ");
        uint64_t max = number_after(m.text, "scope.duration.max_us{name=\"invoices\"} ");
        HF_CHECK_SAY(sum >= 15000 && sum < 25000 && max >= 3000 && max <= sum, "sum %llu us, max %llu us",
                     (unsigned long long)sum, (unsigned long long)max);
        HF_CHECK(number_after(m.text, "scope.duration.class{name=\"invoices\",below_us=\"4096\"} ") == 5);
        HF_CHECK(strstr(m.text, "name=\"scope\"") == NULL && strstr(m.text, "name=\"x") == NULL);
        HF_CHECK(json_is_valid(m.json));
        HF_CHECK(strstr(m.json, "{\"name\":\"invoices\",\"forks\":10,\"duration\":{\"count\":5,") != NULL);
        HF_CHECK(strstr(m.json, "\"classes\":[{\"below_us\":4096,\"count\":5}]") != NULL);
    }
    hf_text_free(m.text);
    hf_text_free(m.json);
}

static void Y13_metrics_count_forks_and_time_scopes_by_name(void **state)
{
    (void)state;
    hf_each_seed("metrics of named scopes", 50, metrics_one_seed); /* virtual time: durations are exact */
}

static hf_status use_many_names(void *arg)
{
    measured *m = arg;
    for (int i = 0; i < 3000; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "name-%d", i % 1500);
        hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = name));
        HF_TRY(hf_scope_close(scope));
    }
    return hf_metrics(NULL, &m->text);
}

static void metrics_of_too_many_names_share_one(void **state)
{
    (void)state;
    measured m = {0};
    assert_int_equal(hf_run(use_many_names, &m, .threads = 1), HF_OK);
    assert_int_equal(count_of(m.text, "scope.duration.count{name=\"name-"), 1024);
    assert_int_equal(number_after(m.text, "scope.duration.count{name=\"name-1023\"} "), 2);
    assert_int_equal(number_after(m.text, "scope.duration.count{name=\"other\"} "), 2 * (1500 - 1024));
    hf_text_free(m.text);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(Y12_dump_shows_parents_and_children),
    cmocka_unit_test(dump_works_in_a_simulated_environment),
    cmocka_unit_test(dump_of_ten_thousand_fibers_while_all_threads_are_busy),
    cmocka_unit_test(dump_of_a_deep_tree_from_a_small_stack),
    cmocka_unit_test(dump_shows_scopes_of_pool_threads_under_their_jobs),
    cmocka_unit_test(dump_of_pool_threads_in_a_simulated_environment),
    cmocka_unit_test(dumps_while_fibers_come_and_go),
    cmocka_unit_test(dumps_while_fibers_come_and_go_simulated),
    cmocka_unit_test(dump_tells_why_something_was_canceled),
    cmocka_unit_test(dump_and_metrics_refuse_misuse),
    cmocka_unit_test(dump_without_memory_fails_and_leaks_nothing),
    cmocka_unit_test(Y13_metrics_count_forks_and_time_scopes_by_name),
    cmocka_unit_test(metrics_of_too_many_names_share_one),
};

int main(int argc, char **argv)
{
    return hf_test_main("dump", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
