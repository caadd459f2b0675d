/* Abuse: overflowed stacks, limits of the system reached, a million of everything. A status or a clear stop, never a
 * mystery. */
/* labels: plainonly */
#include "unit/fiber/bodies.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Stack overflow -------------------------------------------------------------------------- */

static __attribute__((noinline)) int recurse(int depth, volatile char *above)
{
    volatile char frame[256];
    frame[0] = above[0];
    return depth < 0 ? 0 : recurse(depth + 1, frame) + frame[0];
}

static hf_status overflow(void *arg)
{
    volatile char first[1] = {1};
    *(volatile int *)arg = recurse(1, first);
    return HF_OK;
}

static hf_status overflow_main(void *arg)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, overflow, arg, .name = "bottomless"));
    return hf_join(scope);
}

enum { CANNOT = 77 };

/* What a process says on stderr and how it ends, when a fiber overflows its stack there. */
static int overflow_in_child(int guard_kind, int threads, char *text, size_t capacity)
{
    int fds[2];
    HF_CHECK(pipe(fds) == 0);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(fds[1], STDERR_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        static const int NUMBERS[] = {SIGSEGV, SIGBUS, SIGABRT};
        for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
            (void)signal(NUMBERS[i], SIG_DFL); /* the test's own handlers */
        }
        int result = 0;
        hf_status status = hf_run(overflow_main, &result, .guard_kind = guard_kind, .threads = threads);
        _exit(status == HF_ERR_LIMIT ? CANNOT : 1); /* the kernel has no such guards; or it went through */
    }
    (void)close(fds[1]);
    size_t used = 0;
    ssize_t len = 0;
    while (used + 1 < capacity && (len = read(fds[0], text + used, capacity - 1 - used)) > 0) {
        used += (size_t)len;
    }
    text[used] = '\0';
    (void)close(fds[0]);
    int status = 0;
    HF_CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static void an_overflow(int guard_kind)
{
    for (int threads = 1; threads <= 2; threads++) {
        char text[4000];
        int status = overflow_in_child(guard_kind, threads, text, sizeof text);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
            print_message("guards of kind %d are not to be had here\n", guard_kind);
            skip();
        }
        HF_CHECK_SAY(WIFSIGNALED(status), "it did not end by a signal but with %d", status);
        HF_CHECK_SAY(strstr(text, "stack overflow in fiber 'bottomless'") != NULL, "it said: %s", text);
    }
}

static void an_overflowed_stack_is_named_with_guard_markers(void **state)
{
    (void)state;
    an_overflow(1);
}

static void an_overflowed_stack_is_named_with_protected_pages(void **state)
{
    (void)state;
    an_overflow(2);
}

/* ---- Guards ---------------------------------------------------------------------------------- */

typedef struct parked {
    int count;
    atomic_int parked;
    atomic_int canceled;
    hf_tally tally;
    bool said; /* the failure names the limit */
    hf_status status;
} parked;

static hf_status park(void *arg)
{
    parked *p = arg;
    p->parked++;
    hf_status status = hf_sleep(hf_hours(1));
    p->canceled += status == HF_ERR_CANCELED;
    return status;
}

static hf_status park_many(void *arg)
{
    parked *p = arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    for (int i = 0; i < p->count; i++) {
        HF_TRY(hf_fork(scope, park, p, .stack_size = 16 * 1024));
    }
    for (;;) { /* until everybody has parked or failed */
        hf_tally tally = hf_scope_tally(scope);
        if (atomic_load(&p->parked) + (int)tally.failed == p->count) {
            break;
        }
        HF_TRY(hf_yield());
    }
    HF_TRY(hf_scope_cancel(scope));
    p->status = hf_join(scope);
    p->said = error_says("max_map_count");
    p->tally = hf_scope_tally(scope);
    return HF_OK;
}

static int mappings_max(void)
{
    int count = 65530;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    if (file != NULL) {
        HF_CHECK(fscanf(file, "%d", &count) == 1);
        (void)fclose(file);
    }
    return count;
}

static void protected_guards_end_at_half_of_max_map_count_with_a_status(void **state)
{
    (void)state;
    int limit = mappings_max() / 4; /* two mappings each */
    if (limit > 100000) {
        print_message("vm.max_map_count is too large to be reached here\n");
        skip();
    }
    parked p = {.count = limit + 2000};
    HF_CHECK(hf_run(park_many, &p, .threads = 1, .guard_kind = 2, .log = bodies_log) == HF_OK);
    HF_CHECK(p.status == HF_ERR_LIMIT && p.said);
    HF_CHECK_SAY(p.tally.failed >= 2000 && p.tally.failed < 2100, "%d failed", (int)p.tally.failed);
    HF_CHECK(p.tally.canceled + p.tally.failed == (uint64_t)p.count && p.canceled == (int)p.tally.canceled);
    parked q = {.count = limit + 2000}; /* and without guards there is no such limit */
    HF_CHECK(hf_run(park_many, &q, .threads = 1, .guards = HF_OFF, .log = bodies_log) == HF_OK);
    HF_CHECK(q.status == HF_ERR_CANCELED && q.tally.failed == 0 && q.canceled == q.count);
}

static void more_fibers_than_allowed_is_a_status(void **state)
{
    (void)state;
    parked p = {.count = 500};
    HF_CHECK(hf_run(park_many, &p, .threads = 1, .fibers_max = 100, .log = bodies_log) == HF_OK);
    HF_CHECK(p.status == HF_ERR_LIMIT && p.tally.failed >= 400 && p.tally.failed <= 402);
}

/* ---- A million ------------------------------------------------------------------------------- */

typedef struct million {
    atomic_int ran;
    atomic_int dropped;
} million;

static hf_status one_of_many(void *arg)
{
    million *m = arg;
    (void)atomic_fetch_add_explicit(&m->ran, 1, memory_order_relaxed);
    return HF_OK;
}

static void dropped_of_many(void *arg)
{
    million *m = arg;
    (void)atomic_fetch_add_explicit(&m->dropped, 1, memory_order_relaxed);
}

static hf_status many_forks(void *arg)
{
    million *m = arg;
    int count = (int)hf_test_seeds(1000000);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "million"));
    for (int i = 0; i < count; i++) {
        HF_TRY(hf_fork(scope, one_of_many, m));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(m->ran == count && hf_scope_tally(scope).ok == (uint64_t)count);
    for (int i = 0; i < count; i++) { /* and canceled with most of them unstarted */
        HF_TRY(hf_fork(scope, one_of_many, m, .drop = dropped_of_many));
    }
    HF_TRY(hf_scope_cancel(scope));
    hf_status status = hf_join(scope);
    HF_CHECK(status == (m->dropped > 0 ? HF_ERR_CANCELED : HF_OK)); /* another thread may have run them all */
    HF_CHECK(m->ran + m->dropped == 2 * count);
    hf_stats stats;
    HF_TRY(hf_runtime_stats(NULL, &stats));
    HF_CHECK(stats.branches == 1);
    return HF_OK;
}

static void a_million_forks_into_one_scope(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        million m = {0};
        HF_CHECK(hf_run(many_forks, &m, .threads = threads) == HF_OK);
    }
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

static hf_status use_up_descriptors(void *arg)
{
    (void)arg;
    enum { MAX = 200 };
    hf_listener *listeners[MAX] = {NULL};
    int count = 0;
    hf_status status = HF_OK;
    while (count < MAX && (status = hf_listener_open("tcp:127.0.0.1:0", &listeners[count])) == HF_OK) {
        count++;
    }
    HF_CHECK_SAY(count > 0 && count < MAX && status == HF_ERR_LIMIT, "%d listeners, then %s", count,
                 hf_status_name(status));
    HF_CHECK(hf_error_text()[0] != '\0');
    hf_runtime *runtime = NULL;
    hf_status other = hf_runtime_new(&runtime, .threads = 1);
    HF_CHECK_SAY(other == HF_ERR_LIMIT, "a runtime without descriptors: %s", hf_status_name(other));
    hf_conn *conn = NULL;
    HF_CHECK(hf_conn_open(hf_listener_address(listeners[0]), &conn) == HF_ERR_LIMIT);
    for (int i = 1; i < count; i++) {
        HF_TRY(hf_listener_close(listeners[i]));
    }
    HF_TRY(hf_conn_open(hf_listener_address(listeners[0]), &conn)); /* and it goes on */
    HF_AUTO(hf_conn_close) hf_conn *client = conn;
    HF_AUTO(hf_conn_close) hf_conn *server = NULL;
    HF_TRY(hf_listener_accept(listeners[0], &server));
    HF_TRY(hf_conn_write(client, "x", 1));
    char byte = 0;
    size_t len = 0;
    HF_TRY(hf_conn_read(server, &byte, 1, &len));
    HF_CHECK(len == 1 && byte == 'x');
    return hf_listener_close(listeners[0]);
}

static void used_up_descriptors_are_a_status_and_it_goes_on(void **state)
{
    (void)state;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int highest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(highest >= 0);
    (void)close(highest);
    struct rlimit small = {(rlim_t)highest + 60, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    hf_status status = hf_run(use_up_descriptors, NULL, .threads = 2, .log = bodies_log);
    HF_CHECK_SAY(status == HF_OK, "%s: %s", hf_status_name(status), hf_error_text());
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- A saturated pool ------------------------------------------------------------------------ */

typedef struct busy {
    hf_chan *gate;
    atomic_int inside;
    atomic_int over;
} busy;

static hf_status block_there(void *arg)
{
    busy *b = arg;
    char byte;
    (void)atomic_fetch_add(&b->inside, 1);
    HF_CHECK(hf_chan_recv(b->gate, &byte) == HF_ERR_CLOSED);
    (void)atomic_fetch_add(&b->over, 1);
    return HF_OK;
}

static hf_status call_there(void *arg)
{
    return hf_block(block_there, arg);
}

static hf_status saturate(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(1, &gate));
    busy b = {.gate = gate};
    HF_AUTO(hf_scope_close) hf_scope *running = NULL;
    HF_TRY(hf_scope_open(&running));
    for (int i = 0; i < 64; i++) {
        HF_TRY(hf_fork(running, call_there, &b));
    }
    while (atomic_load(&b.inside) < 64) { /* every call that blocks gets its thread */
        HF_TRY(a_moment());
    }
    hf_scope *waiting = NULL;
    HF_TRY(hf_scope_open(&waiting, .join = HF_JOIN_COLLECT));
    for (int i = 0; i < 200; i++) {
        HF_TRY(hf_fork(waiting, call_there, &b));
    }
    hf_stats stats;
    do {
        HF_TRY(a_moment());
        HF_TRY(hf_runtime_stats(NULL, &stats));
    } while (stats.pool_depth < 200);
    HF_CHECK(stats.pool_threads == 64 && b.inside == 64);
    HF_TRY(hf_scope_cancel(waiting));
    HF_CHECK(hf_join(waiting) == HF_ERR_CANCELED && hf_scope_tally(waiting).canceled == 200);
    HF_TRY(hf_scope_close(waiting));
    HF_TRY(hf_runtime_stats(NULL, &stats));
    HF_CHECK(stats.pool_depth == 0 && b.inside == 64 && b.over == 0);
    HF_TRY(hf_chan_close(gate));
    HF_TRY(hf_join(running));
    HF_CHECK(b.over == 64);
    return HF_OK;
}

static void a_pool_with_64_blocked_threads_queues_and_withdraws(void **state)
{
    (void)state;
    simulated("saturated pool", 20, saturate);
    HF_CHECK(hf_run(saturate, NULL, .threads = 2) == HF_OK);
}

static hf_status fork_there(void *arg)
{
    busy *b = arg;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .limit = 1, .queue_max = 3));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT, .on = pool));
    for (int i = 0; i < 10; i++) {
        HF_TRY(hf_fork(scope, block_there, b));
    }
    while (hf_scope_tally(scope).failed < 6) {
        HF_TRY(a_moment());
    }
    HF_TRY(hf_chan_close(b->gate));
    HF_CHECK(hf_join(scope) == HF_ERR_LIMIT && error_says("queue is full"));
    HF_CHECK(hf_scope_tally(scope).failed >= 6 && hf_scope_tally(scope).ok >= 3);
    return HF_OK;
}

static hf_status full_queue(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(1, &gate));
    busy b = {.gate = gate};
    return fork_there(&b);
}

static void a_full_queue_refuses_jobs_with_a_status(void **state)
{
    (void)state;
    simulated("full queue", 50, full_queue);
    on_threads(full_queue);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(an_overflowed_stack_is_named_with_guard_markers),
        cmocka_unit_test(an_overflowed_stack_is_named_with_protected_pages),
        cmocka_unit_test(protected_guards_end_at_half_of_max_map_count_with_a_status),
        cmocka_unit_test(more_fibers_than_allowed_is_a_status),
        cmocka_unit_test(a_million_forks_into_one_scope),
        cmocka_unit_test(used_up_descriptors_are_a_status_and_it_goes_on),
        cmocka_unit_test(a_pool_with_64_blocked_threads_queues_and_withdraws),
        cmocka_unit_test(a_full_queue_refuses_jobs_with_a_status),
    };
    return hf_test_main("abuse", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
