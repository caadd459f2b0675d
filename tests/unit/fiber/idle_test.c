/* An idle runtime causes no wake-ups, on real threads that have lingered for each other before.
 *
 * The test stands between the runtime and the operating system, and sees when a thread of the runtime begins to wait, until
 * when, and when it returns. The runtime is at rest when all its threads wait without a deadline and nothing has been sent to
 * any of them. From there on only an event from outside could wake one, so the number of returns cannot grow. However long
 * the machine takes to get there, the test waits: its outcome does not depend on time. */
/* labels: threads */
#include "support/support.h"

#include "fiber/watch/watch_private.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 2, MESSAGES = 20000 };

/* ---- Between the runtime and the system -------------------------------------------------------------------------- */

static pthread_t test_thread;
static atomic_int at_rest;              /* threads of the runtime that wait without a deadline */
static atomic_ulong returns;            /* from waits of any kind, and from looks */
static _Atomic(uint32_t) word_expected; /* value with which the monitor began its last wait */

static int seen_poller_wait(hf_env *env, hf_poller *poller, hf_event *ret_events, int count, hf_instant deadline)
{
    bool is_endless = deadline.ns == HF_INSTANT_NEVER.ns;
    atomic_fetch_add(&at_rest, is_endless);
    int result = hf_env_posix()->ops->poller_wait(env, poller, ret_events, count, deadline);
    atomic_fetch_add(&returns, 1);
    atomic_fetch_sub(&at_rest, is_endless);
    return result;
}

/* Of the threads here only the monitor sleeps on a word, and the test itself. */
static bool seen_word_wait(hf_env *env, hf_word *word, uint32_t expected, hf_instant deadline)
{
    const hf_env_ops *ops = hf_env_posix()->ops;
    if (pthread_equal(pthread_self(), test_thread)) {
        return ops->word_wait(env, word, expected, deadline);
    }
    bool is_endless = deadline.ns == HF_INSTANT_NEVER.ns;
    atomic_store(&word_expected, expected);
    atomic_fetch_add(&at_rest, is_endless);
    bool result = ops->word_wait(env, word, expected, deadline);
    atomic_fetch_add(&returns, 1);
    atomic_fetch_sub(&at_rest, is_endless);
    return result;
}

static bool is_rung(hf_runtime *rt, int index)
{
    struct pollfd bell = {.fd = rt->env->ops->poller_fd(rt->env, rt->scheds[index]->poller), .events = POLLIN};
    return poll(&bell, 1, 0) != 0;
}

/* Whether all threads wait without a deadline, and none of them is about to return. Who sends something to another thread
 * is not waiting itself. */
static bool is_at_rest(hf_runtime *rt)
{
    unsigned long before = atomic_load(&returns);
    bool is_quiet = atomic_load(&at_rest) == THREADS + 1;
    for (int i = 0; i < THREADS; i++) {
        is_quiet = is_quiet && !is_rung(rt, i);
    }
    is_quiet = is_quiet && atomic_load(&rt->watch->word) == atomic_load(&word_expected);
    return is_quiet && atomic_load(&at_rest) == THREADS + 1 && atomic_load(&returns) == before;
}

/* ---- Work over two threads --------------------------------------------------------------------------------------- */

typedef struct pair {
    hf_chan *there;
    hf_chan *back;
    pid_t home;
    atomic_bool is_claimed; /* a pong on another thread was found */
    atomic_bool is_there;   /* it runs */
} pair;

static hf_status pong(void *arg)
{
    pair *p = arg;
    if (gettid() == p->home || atomic_exchange(&p->is_claimed, true)) {
        return HF_OK;
    }
    atomic_store(&p->is_there, true);
    for (int i = 0; i < MESSAGES; i++) {
        int value = 0;
        HF_TRY(hf_chan_recv(p->there, &value));
        HF_TRY(hf_chan_send(p->back, &value));
    }
    return HF_OK;
}

static hf_status ping(void *arg)
{
    pair *p = arg;
    p->home = gettid();
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 64; i++) {
        HF_TRY(hf_fork(scope, pong, p));
    }
    while (!atomic_load(&p->is_there)) { /* does not yield, so the other thread steals */
        hf_relax();
    }
    for (int i = 0; i < MESSAGES; i++) {
        int value = i;
        HF_TRY(hf_chan_send(p->there, &value));
        HF_TRY(hf_chan_recv(p->back, &value));
        HF_CHECK(value == i);
    }
    return hf_join(scope);
}

static void work(hf_runtime *rt)
{
    pair p = {0};
    hf_scope *scope = NULL;
    assert_int_equal(hf_chan_new(sizeof(int), &p.there, .runtime = rt), HF_OK);
    assert_int_equal(hf_chan_new(sizeof(int), &p.back, .runtime = rt), HF_OK);
    assert_int_equal(hf_scope_open(&scope, .runtime = rt), HF_OK);
    HF_CHECK(hf_fork(scope, ping, &p) == HF_OK);
    HF_CHECK(hf_join(scope) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_chan_free(p.there) == HF_OK && hf_chan_free(p.back) == HF_OK);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void rests_after_work(bool is_pinned)
{
    hf_env_ops ops = *hf_env_posix()->ops;
    hf_env env = {.ops = &ops};
    ops.poller_wait = seen_poller_wait;
    ops.word_wait = seen_word_wait;
    test_thread = pthread_self();
    hf_runtime *rt = NULL;
    hf_status status = hf_runtime_new(&rt, .threads = THREADS, .env = &env, .pin_threads = is_pinned);
    assert_int_equal(status, HF_OK);
    work(rt);
    while (!is_at_rest(rt)) {
        (void)usleep(1000);
    }
    unsigned long before = atomic_load(&returns);
    unsigned ticks[THREADS];
    for (int i = 0; i < THREADS; i++) {
        ticks[i] = rt->scheds[i]->tick;
    }
    (void)usleep(200 * 1000); /* idle; a runtime that is not at rest has time to show it */
    assert_int_equal(atomic_load(&returns), before);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(rt->scheds[i]->tick, ticks[i]);
    }
    assert_true(is_at_rest(rt));
    work(rt); /* and is woken by work */
    assert_true(atomic_load(&returns) > before);
    assert_int_equal(hf_runtime_free(rt), HF_OK);
}

/* fiber-S5, fiber-M3 */
static void W1_an_idle_runtime_causes_no_wake_ups(void **state)
{
    (void)state;
    rests_after_work(false);
}

static void W1_nor_does_one_with_pinned_threads(void **state)
{
    (void)state;
    rests_after_work(true);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(W1_an_idle_runtime_causes_no_wake_ups),
    cmocka_unit_test(W1_nor_does_one_with_pinned_threads),
};

int main(int argc, char **argv)
{
    return hf_test_main("idle", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
