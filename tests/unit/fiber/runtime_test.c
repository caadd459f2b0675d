/* The runtime as a guest of its process: several of them, driven by a host, after fork(), on the host's memory. */
/* labels: threads */
#include "unit/fiber/bodies.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Several runtimes ------------------------------------------------------------------------ */

typedef struct resident {
    hf_runtime *runtime;
    atomic_int at_home;
} resident;

static hf_status look_around(void *arg)
{
    resident *r = arg;
    for (int i = 0; i < 10; i++) {
        if (HF_CHECK(hf_runtime_current() == r->runtime)) {
            (void)atomic_fetch_add(&r->at_home, 1);
        }
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

static void several_runtimes_live_in_one_process(void **state)
{
    (void)state;
    enum { COUNT = 3 };
    resident all[COUNT] = {{0}};
    hf_scope *scopes[COUNT] = {NULL};
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(hf_runtime_new(&all[i].runtime, .threads = i + 1), HF_OK);
        assert_int_equal(hf_scope_open(&scopes[i], .runtime = all[i].runtime), HF_OK);
        for (int n = 0; n < 20; n++) {
            assert_int_equal(hf_fork(scopes[i], look_around, &all[i]), HF_OK);
        }
    }
    assert_null(hf_runtime_current());
    for (int i = COUNT; i-- > 0;) { /* scopes of one owner close in reverse order */
        HF_CHECK(hf_join(scopes[i]) == HF_OK);
        HF_CHECK(hf_scope_close(scopes[i]) == HF_OK);
    }
    for (int i = 0; i < COUNT; i++) {
        HF_CHECK(all[i].at_home == 200);
        HF_CHECK(hf_runtime_free(all[i].runtime) == HF_OK);
    }
}

static hf_status inner_main(void *arg)
{
    (void)atomic_fetch_add((atomic_int *)arg, 1);
    return hf_yield();
}

static hf_status run_in_pool(void *arg)
{
    return hf_run(inner_main, arg, .threads = 1);
}

static hf_status nested_runtimes(void *arg)
{
    (void)arg;
    atomic_int ran = 0;
    HF_TRY(hf_block(run_in_pool, &ran)); /* blocks its thread, so it belongs on a pool */
    HF_CHECK(ran == 1);
    return HF_OK;
}

static void a_runtime_runs_inside_another_ones_pool(void **state)
{
    (void)state;
    on_threads(nested_runtimes);
}

/* A thread may go on to wait after a runtime that it once used is gone. */
typedef struct visitor {
    hf_runtime *runtime;
    hf_chan *chan;
    pthread_barrier_t gone;
} visitor;

static void *visit(void *arg)
{
    visitor *v = arg;
    char byte = 0;
    HF_CHECK(hf_chan_recv(v->chan, &byte) == HF_OK && byte == 'x');
    (void)pthread_barrier_wait(&v->gone); /* the main thread frees the runtime */
    (void)pthread_barrier_wait(&v->gone);
    HF_CHECK(hf_sleep(hf_microseconds(1)) == HF_OK);
    HF_CHECK(hf_yield() == HF_OK && hf_canceled() == HF_OK);
    HF_CHECK(hf_time_left().ns == HF_SPAN_UNLIMITED.ns);
    hf_shield *shield = NULL;
    HF_CHECK(hf_shield_open(hf_seconds(1), &shield) == HF_ERR_MISUSE);
    HF_CHECK(hf_raise(HF_ERR_FAILED, "%d", 1) == HF_ERR_FAILED && error_says("1"));
    return NULL;
}

static void a_thread_outlives_a_runtime_it_has_used(void **state)
{
    (void)state;
    visitor v = {0};
    pthread_t thread;
    assert_int_equal(hf_runtime_new(&v.runtime, .threads = 1), HF_OK);
    assert_int_equal(hf_chan_new(1, &v.chan, .runtime = v.runtime), HF_OK);
    assert_int_equal(pthread_barrier_init(&v.gone, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, visit, &v), 0);
    HF_CHECK(hf_chan_send(v.chan, "x") == HF_OK);
    (void)pthread_barrier_wait(&v.gone);
    HF_CHECK(hf_chan_free(v.chan) == HF_OK);
    HF_CHECK(hf_runtime_free(v.runtime) == HF_OK);
    (void)pthread_barrier_wait(&v.gone);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_barrier_destroy(&v.gone);
}

/* ---- Hosted ---------------------------------------------------------------------------------- */

typedef struct guest {
    atomic_int steps;
    pthread_t host;
    hf_chan *chan;
} guest;

static hf_status blocking_work(void *arg)
{
    guest *g = arg;
    HF_CHECK(!pthread_equal(pthread_self(), g->host));
    (void)atomic_fetch_add(&g->steps, 1);
    return HF_OK;
}

static hf_status guest_fiber(void *arg)
{
    guest *g = arg;
    HF_CHECK(pthread_equal(pthread_self(), g->host)); /* the host's thread is the fiber thread */
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    (void)atomic_fetch_add(&g->steps, 1);
    HF_TRY(hf_yield());
    HF_TRY(hf_block(blocking_work, g));
    HF_CHECK(pthread_equal(pthread_self(), g->host));
    return HF_OK;
}

static void a_host_drives_a_runtime_with_its_own_poll_loop(void **state)
{
    (void)state;
    guest g = {.host = pthread_self()};
    hf_runtime *runtime = NULL;
    assert_int_equal(hf_runtime_new(&runtime, .threads = HF_OFF), HF_OK);
    assert_true(hf_runtime_fd(runtime) >= 0);
    HF_CHECK(hf_runtime_turn(runtime, HF_SPAN_OFF) == HF_ERR_TIMEOUT); /* nothing to do */
    hf_scope *scope = NULL;
    assert_int_equal(hf_scope_open(&scope, .runtime = runtime), HF_OK);
    for (int i = 0; i < 10; i++) {
        HF_CHECK(hf_fork(scope, guest_fiber, &g) == HF_OK);
    }
    while (!hf_scope_is_idle(scope)) {
        struct pollfd poll_fd = {.fd = hf_runtime_fd(runtime), .events = POLLIN};
        HF_CHECK(poll(&poll_fd, 1, -1) == 1);
        hf_status status = hf_runtime_turn(runtime, HF_SPAN_OFF);
        HF_CHECK(status == HF_OK || status == HF_ERR_TIMEOUT);
    }
    HF_CHECK(hf_join(scope) == HF_OK && g.steps == 20);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_runtime_free(runtime) == HF_OK);
}

static hf_status echo_one(void *arg)
{
    guest *g = arg;
    int value = 0;
    HF_TRY(hf_chan_recv(g->chan, &value));
    value *= 2;
    return hf_chan_send(g->chan, &value);
}

static void a_blocking_call_of_the_host_drives_its_runtime(void **state)
{
    (void)state;
    guest g = {.host = pthread_self()};
    hf_runtime *runtime = NULL;
    assert_int_equal(hf_runtime_new(&runtime, .threads = HF_OFF), HF_OK);
    assert_int_equal(hf_chan_new(sizeof(int), &g.chan, .runtime = runtime), HF_OK);
    hf_scope *scope = NULL;
    assert_int_equal(hf_scope_open(&scope, .runtime = runtime), HF_OK);
    for (int i = 0; i < 10; i++) {
        HF_CHECK(hf_fork(scope, guest_fiber, &g) == HF_OK);
    }
    HF_CHECK(hf_join(scope) == HF_OK && g.steps == 20);
    HF_CHECK(hf_fork(scope, echo_one, &g) == HF_OK);
    int value = 21;
    HF_CHECK(hf_chan_send(g.chan, &value) == HF_OK && hf_chan_recv(g.chan, &value) == HF_OK && value == 42);
    HF_CHECK(hf_fork(scope, sleep_long, NULL) == HF_OK);
    HF_CHECK(hf_scope_cancel(scope) == HF_OK && hf_sleep(hf_hours(1)) == HF_ERR_CANCELED);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_chan_free(g.chan) == HF_OK);
    HF_CHECK(hf_runtime_free(runtime) == HF_OK);
}

static hf_status turn_from_inside(void *arg)
{
    HF_CHECK(hf_runtime_turn((hf_runtime *)arg, HF_SPAN_OFF) == HF_ERR_MISUSE && error_says("HF_OFF"));
    HF_CHECK(hf_runtime_free((hf_runtime *)arg) == HF_ERR_MISUSE && error_says("own fibers"));
    return HF_OK;
}

static void turning_and_freeing_at_the_wrong_place_is_told(void **state)
{
    (void)state;
    hf_runtime *hosted = NULL;
    hf_runtime *threaded = NULL;
    assert_int_equal(hf_runtime_new(&hosted, .threads = HF_OFF), HF_OK);
    assert_int_equal(hf_runtime_new(&threaded, .threads = 1), HF_OK);
    HF_CHECK(hf_runtime_turn(threaded, HF_SPAN_OFF) == HF_ERR_MISUSE);
    HF_CHECK(hf_runtime_fd(threaded) == -1);
    hf_scope *scope = NULL;
    assert_int_equal(hf_scope_open(&scope, .runtime = hosted), HF_OK);
    HF_CHECK(hf_runtime_free(hosted) == HF_ERR_MISUSE && error_says("scope open"));
    HF_CHECK(hf_fork(scope, turn_from_inside, hosted) == HF_OK);
    HF_CHECK(hf_join(scope) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_runtime_free(hosted) == HF_OK);
    HF_CHECK(hf_runtime_free(threaded) == HF_OK);
    HF_CHECK(hf_runtime_free(NULL) == HF_OK);
    hf_runtime *bad = NULL;
    HF_CHECK(hf_runtime_new(&bad, .threads = -7) == HF_ERR_INVALID && error_says("threads"));
    HF_CHECK(hf_runtime_new(&bad, .stack_size = (size_t)1 << 30) == HF_ERR_INVALID && error_says("256 K"));
    HF_CHECK(hf_runtime_new(&bad, .guard_kind = 9) == HF_ERR_INVALID);
    HF_CHECK(bad == NULL);
}

/* ---- Stop ------------------------------------------------------------------------------------ */

typedef struct stopping {
    hf_runtime *runtime;
    atomic_int causes;
    hf_chan *ready;
} stopping;

static hf_status until_shutdown(void *arg)
{
    stopping *s = arg;
    HF_TRY(hf_chan_send(s->ready, "r"));
    hf_status status = hf_sleep(hf_hours(1));
    if (hf_cancel_cause(NULL) == HF_CAUSE_SHUTDOWN) {
        (void)atomic_fetch_add(&s->causes, 1);
    }
    return status;
}

static void stopping_a_runtime_cancels_everything_with_the_cause_shutdown(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        stopping s = {0};
        assert_int_equal(hf_runtime_new(&s.runtime, .threads = threads), HF_OK);
        assert_int_equal(hf_chan_new(1, &s.ready, .runtime = s.runtime), HF_OK);
        hf_scope *scope = NULL;
        assert_int_equal(hf_scope_open(&scope, .runtime = s.runtime), HF_OK);
        for (int i = 0; i < 10; i++) {
            char byte;
            HF_CHECK(hf_fork(scope, until_shutdown, &s) == HF_OK);
            HF_CHECK(hf_chan_recv(s.ready, &byte) == HF_OK);
        }
        HF_CHECK(hf_runtime_stop(s.runtime) == HF_OK);
        HF_CHECK(hf_join(scope) == HF_ERR_CANCELED && s.causes == 10);
        HF_CHECK(hf_cancel_cause(NULL) == HF_CAUSE_SHUTDOWN); /* the owner is inside the scope, too */
        HF_CHECK(hf_scope_close(scope) == HF_OK);
        HF_CHECK(hf_scope_open(&scope, .runtime = s.runtime) == HF_ERR_CLOSED && error_says("stopping"));
        HF_CHECK(hf_chan_free(s.ready) == HF_OK);
        HF_CHECK(hf_runtime_free(s.runtime) == HF_OK);
    }
}

/* ---- fork() ---------------------------------------------------------------------------------- */

static bool is_refused(hf_status status)
{
    return status == HF_ERR_MISUSE && strstr(hf_error_text(), "fork()") != NULL;
}

/* In the child: an exit code that says which call was not refused, 0 = all were. */
static int calls_of_child(hf_runtime *runtime, hf_scope *scope, hf_chan *chan)
{
    hf_stats stats;
    hf_scope *other = NULL;
    char byte;
    int number = 1;
    const hf_status answers[] = {
        hf_chan_send(chan, "x"),
        hf_chan_try_recv(chan, &byte),
        hf_fork(scope, sleep_long, NULL),
        hf_scope_cancel(scope),
        hf_scope_open(&other, .runtime = runtime),
        hf_runtime_stats(runtime, &stats),
        hf_scope_close(scope),
        hf_runtime_stop(runtime),
        hf_sleep(hf_seconds(1)),
        hf_join(scope),
        hf_random(runtime, &byte, 1),
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++, number++) {
        if (answers[i] != HF_ERR_MISUSE) {
            return number;
        }
    }
    if (!is_refused(hf_chan_close(chan))) {
        return 99;
    }
    hf_status raised = hf_raise(HF_ERR_FAILED, "of the child");
    bool is_told = strstr(hf_error_text(), "of the child") != NULL || strstr(hf_error_text(), "fork()") != NULL;
    return raised == HF_ERR_FAILED && hf_error()->status == HF_ERR_FAILED && is_told ? 0 : 100;
}

static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) != child) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void after_fork_a_plain_thread_of_the_child_is_refused(void **state)
{
    (void)state;
    hf_runtime *runtime = NULL;
    hf_chan *chan = NULL;
    hf_scope *scope = NULL;
    assert_int_equal(hf_runtime_new(&runtime, .threads = 2), HF_OK);
    assert_int_equal(hf_chan_new(1, &chan, .runtime = runtime, .capacity = 4), HF_OK);
    assert_int_equal(hf_scope_open(&scope, .runtime = runtime), HF_OK);
    pid_t child = fork();
    if (child == 0) {
        _exit(calls_of_child(runtime, scope, chan));
    }
    HF_CHECK(wait_for(child) == 0);
    atomic_int ran = 0; /* the parent goes on */
    HF_CHECK(hf_fork(scope, count_one, &ran) == HF_OK);
    HF_CHECK(hf_chan_send(chan, "x") == HF_OK);
    HF_CHECK(hf_join(scope) == HF_OK && ran == 1);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_chan_free(chan) == HF_OK);
    HF_CHECK(hf_runtime_free(runtime) == HF_OK);
}

static hf_status fork_in_fiber(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(1, &chan, .capacity = 4));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    atomic_int ran = 0;
    HF_TRY(hf_fork(scope, count_one, &ran));
    pid_t child = fork();
    if (child == 0) {
        _exit(calls_of_child(hf_runtime_current(), scope, chan));
    }
    HF_CHECK(wait_for(child) == 0);
    HF_TRY(hf_join(scope));
    HF_CHECK(ran == 1);
    return HF_OK;
}

static void after_fork_a_fiber_of_the_child_is_refused(void **state)
{
    (void)state;
    on_threads(fork_in_fiber);
}

static void a_forked_child_may_make_a_runtime_of_its_own(void **state)
{
    (void)state;
    hf_runtime *runtime = NULL;
    assert_int_equal(hf_runtime_new(&runtime, .threads = 1), HF_OK);
    pid_t child = fork();
    if (child == 0) {
        atomic_int ran = 0;
        hf_status status = hf_run(count_one, &ran, .threads = HF_OFF);
        _exit(status == HF_OK && ran == 1 ? 0 : 1);
    }
    HF_CHECK(wait_for(child) == 0);
    HF_CHECK(hf_runtime_free(runtime) == HF_OK);
}

/* ---- Random bytes ---------------------------------------------------------------------------- */

static int compare_bytes(const void *a, const void *b)
{
    return memcmp(a, b, 8);
}

/* Numbers of 8 bytes, in draws of many lengths: small ones are cut from what the system gave for several. */
static hf_status draw(void *arg)
{
    enum { COUNT = 6000 };
    static uint64_t numbers[COUNT];
    size_t count = 0;
    (void)arg;
    for (size_t len = 1; count + len <= COUNT; len = len % 40 + 1) {
        HF_TRY(hf_random(NULL, &numbers[count], len * 8));
        count += len;
    }
    qsort(numbers, count, sizeof *numbers, compare_bytes);
    for (size_t i = 1; i < count; i++) {
        HF_CHECK(numbers[i] != numbers[i - 1]);
    }
    HF_CHECK(numbers[0] != 0);
    return hf_random(NULL, numbers, 0);
}

static void random_bytes_are_given_out_once(void **state)
{
    (void)state;
    simulated_and_on_threads("random bytes", 3, draw);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

typedef struct counting {
    atomic_llong live;
    atomic_llong bytes;
    atomic_llong total;
    atomic_llong bytes_most;
} counting;

static void *count_allocate(void *state, size_t len, size_t align)
{
    counting *c = state;
    size_t unit = align > 16 ? align : 16;
    void *ptr = aligned_alloc(unit, (len + unit - 1) / unit * unit);
    if (ptr != NULL) {
        (void)atomic_fetch_add(&c->live, 1);
        (void)atomic_fetch_add(&c->total, 1);
        long long now = atomic_fetch_add(&c->bytes, (long long)len) + (long long)len;
        long long most = atomic_load(&c->bytes_most);
        while (now > most && !atomic_compare_exchange_weak(&c->bytes_most, &most, now)) {
        }
    }
    return ptr;
}

static void count_release(void *state, void *ptr, size_t len)
{
    counting *c = state;
    (void)atomic_fetch_sub(&c->live, 1);
    (void)atomic_fetch_sub(&c->bytes, (long long)len);
    free(ptr);
}

static hf_status use_a_bit_of_everything(void *arg)
{
    (void)arg;
    atomic_int ran = 0;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(8, &chan, .capacity = 16));
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    HF_TRY(hf_cache_new(&cache, .count_max = 10));
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_value_copy("abc", 3, &value));
    HF_TRY(hf_cache_put(cache, "k", 1, value, NULL));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "everything", .timeout = hf_hours(1), .join = HF_JOIN_COLLECT));
    for (int i = 0; i < 500; i++) {
        HF_TRY(hf_fork(scope, i % 10 == 0 ? fail_at_once : count_one, i % 10 == 0 ? NULL : (void *)&ran));
    }
    HF_CHECK(hf_join(scope) == HF_ERR_FAILED && ran == 450);
    char *text = NULL;
    HF_TRY(hf_dump(NULL, &text));
    hf_text_free(text);
    HF_TRY(hf_block(count_one, &ran));
    return HF_OK;
}

static void the_hosts_allocator_is_used_and_gets_everything_back(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        counting c = {0};
        HF_CHECK(hf_run(use_a_bit_of_everything, NULL, .threads = threads,
                        .allocator = {count_allocate, count_release, &c}, .log = bodies_log) == HF_OK);
        HF_CHECK(c.total > 20);
        HF_CHECK(c.live == 0 && c.bytes == 0);
    }
    hf_runtime *runtime = NULL;
    HF_CHECK(hf_runtime_new(&runtime, .allocator = {count_allocate, NULL, NULL}) == HF_ERR_INVALID);
}

typedef struct endless {
    counting memory;
    long long count;
    long long bytes_early;
    long rss_early;
    atomic_llong ran;
} endless;

static long resident_pages(void)
{
    long size = 0;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        HF_CHECK(fscanf(file, "%ld %ld", &size, &pages) == 2);
        (void)fclose(file);
    }
    return pages;
}

static hf_status serve_request(void *arg)
{
    endless *e = arg;
    long long number = atomic_fetch_add_explicit(&e->ran, 1, memory_order_relaxed);
    return number % 1000 == 0 ? hf_raise(HF_ERR_FAILED, "request %lld", number) : HF_OK;
}

static hf_status serve_for_ever(void *arg)
{
    endless *e = arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "service", .join = HF_JOIN_DISCARD));
    for (long long i = 0; i < e->count; i++) {
        HF_TRY(hf_fork(scope, serve_request, e));
        if (i % 256 == 255) {
            do { /* as fast as they are served, and their ends are seen */
                HF_TRY(hf_yield());
            } while (i - atomic_load_explicit(&e->ran, memory_order_relaxed) > 512);
        }
        if (i == e->count / 100) {
            e->bytes_early = e->memory.bytes;
            e->rss_early = resident_pages();
        }
    }
    HF_TRY(hf_join(scope));
    HF_CHECK_SAY(e->memory.bytes <= e->bytes_early + (1 << 20), "allocated %lld bytes early, %lld late", e->bytes_early,
                 (long long)e->memory.bytes);
    bool is_plain = hf_test_scale() == 1; /* a sanitizer keeps notes of its own */
    HF_CHECK_SAY(!is_plain || resident_pages() <= e->rss_early + 1024, "resident %ld pages early, %ld late",
                 e->rss_early, resident_pages());
    HF_CHECK(hf_scope_tally(scope).forked == (uint64_t)e->count);
    return HF_OK;
}

static void an_endless_discarding_scope_holds_constant_memory_over_10_million_children(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        endless *e = calloc(1, sizeof *e);
        assert_non_null(e);
        e->count = (long long)hf_test_seeds(threads == 1 ? 10000000 : 1000000);
        HF_CHECK(hf_run(serve_for_ever, e, .threads = threads, .allocator = {count_allocate, count_release, &e->memory},
                        .log = bodies_log) == HF_OK);
        HF_CHECK(e->memory.live == 0);
        free(e);
    }
}

/* ---- S20, counters --------------------------------------------------------------------------- */

typedef struct paced {
    atomic_int others;
    int turns;
} paced;

static hf_status other_work(void *arg)
{
    paced *p = arg;
    for (int i = 0; i < 5; i++) {
        p->others++;
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

static hf_status compute(void *arg)
{
    paced *p = arg;
    unsigned counter = 0;
    for (int i = 0; i < 10000; i++) {
        int before = p->others;
        HF_TRY(hf_pace(&counter, 100));
        p->turns += p->others != before;
    }
    return HF_OK;
}

static hf_status cpu_loops(void *arg)
{
    (void)arg;
    paced p = {0};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, compute, &p));
    HF_TRY(hf_fork(scope, other_work, &p));
    HF_TRY(hf_join(scope));
    HF_CHECK(p.others == 5 && p.turns == 5); /* the other ran between, at every hundredth item */
    HF_TRY(hf_scope_cancel(scope));
    unsigned counter = 0;
    int items = 0;
    while (hf_pace(&counter, 100) == HF_OK) {
        items++;
    }
    HF_CHECK(items == 99); /* and a cancel is seen there */
    return HF_OK;
}

static void S20_cpu_loops_yield_every_100_items(void **state)
{
    (void)state;
    print_message("cpu loops: seed 1\n");
    HF_CHECK(hf_sim_run(1, 1, cpu_loops, NULL, NULL) == HF_OK);
}

static hf_status counted(void *arg)
{
    (void)arg;
    atomic_int ran = 0;
    hf_stats before;
    hf_stats after;
    HF_TRY(hf_runtime_stats(NULL, &before));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 10; i++) {
        HF_TRY(hf_fork(scope, count_one, &ran));
    }
    HF_TRY(hf_runtime_stats(NULL, &after));
    HF_CHECK(after.forks - before.forks == 10 && after.scopes - before.scopes == 1);
    HF_TRY(hf_join(scope));
    HF_TRY(hf_runtime_stats(NULL, &after));
    HF_CHECK(after.joins - before.joins >= 1 && after.branches == 1 && after.switches > 0);
    HF_CHECK(after.fibers >= 1 && after.stack_bytes > 0 && after.threads >= 1 && after.zombies == 0);
    return HF_OK;
}

static void a_runtime_counts_what_it_does(void **state)
{
    (void)state;
    simulated_and_on_threads("counters", 50, counted);
}

static void the_same_seed_gives_the_same_trace(void **state)
{
    (void)state;
    uint64_t hashes[2][5];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5; i++) {
            HF_CHECK(hf_sim_run((uint64_t)i + 1, 3, use_a_bit_of_everything, NULL, &hashes[round][i]) == HF_OK);
        }
    }
    assert_memory_equal(hashes[0], hashes[1], sizeof hashes[0]);
    assert_true(hashes[0][0] != hashes[0][1]);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(several_runtimes_live_in_one_process),
        cmocka_unit_test(a_runtime_runs_inside_another_ones_pool),
        cmocka_unit_test(a_thread_outlives_a_runtime_it_has_used),
        cmocka_unit_test(a_host_drives_a_runtime_with_its_own_poll_loop),
        cmocka_unit_test(a_blocking_call_of_the_host_drives_its_runtime),
        cmocka_unit_test(turning_and_freeing_at_the_wrong_place_is_told),
        cmocka_unit_test(stopping_a_runtime_cancels_everything_with_the_cause_shutdown),
        cmocka_unit_test(after_fork_a_plain_thread_of_the_child_is_refused),
        cmocka_unit_test(after_fork_a_fiber_of_the_child_is_refused),
        cmocka_unit_test(a_forked_child_may_make_a_runtime_of_its_own),
        cmocka_unit_test(random_bytes_are_given_out_once),
        cmocka_unit_test(the_hosts_allocator_is_used_and_gets_everything_back),
        cmocka_unit_test(an_endless_discarding_scope_holds_constant_memory_over_10_million_children),
        cmocka_unit_test(S20_cpu_loops_yield_every_100_items),
        cmocka_unit_test(a_runtime_counts_what_it_does),
        cmocka_unit_test(the_same_seed_gives_the_same_trace),
    };
    return hf_test_main("runtime", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
