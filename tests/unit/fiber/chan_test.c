/* Channels: every value once, in order, to somebody; a wait that ends otherwise has moved nothing. */
/* labels: threads */
#include "unit/fiber/bodies.h"

#include <pthread.h>
#include <stdint.h>

/* ---- Everything arrives once ----------------------------------------------------------------- */

enum { SENDERS = 4, RECEIVERS = 3, EACH = 25, ALL = SENDERS * EACH };

typedef struct traffic {
    hf_chan *chan;
    atomic_int senders_left;
    atomic_int next_sender;
    atomic_int seen[ALL];
} traffic;

static hf_status send_some(void *arg)
{
    traffic *t = arg;
    int me = atomic_fetch_add(&t->next_sender, 1);
    hf_status status = HF_OK;
    for (int i = 0; i < EACH && status == HF_OK; i++) {
        int value = me * EACH + i;
        status = hf_chan_send(t->chan, &value);
    }
    if (atomic_fetch_sub(&t->senders_left, 1) == 1) {
        HF_CHECK(hf_chan_close(t->chan) == HF_OK);
    }
    return status;
}

static hf_status receive_all(void *arg)
{
    traffic *t = arg;
    int last[SENDERS];
    memset(last, -1, sizeof last);
    for (;;) {
        int value = -1;
        hf_status status = hf_chan_recv(t->chan, &value);
        if (status == HF_ERR_CLOSED) {
            return HF_OK;
        }
        HF_TRY(status);
        if (HF_CHECK(value >= 0 && value < ALL)) {
            (void)atomic_fetch_add(&t->seen[value], 1);
            HF_CHECK(value % EACH > last[value / EACH]); /* each sender's values keep their order */
            last[value / EACH] = value % EACH;
        }
    }
}

static hf_status traffic_with(size_t capacity)
{
    traffic t = {.senders_left = SENDERS};
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &chan, .name = "traffic", .capacity = capacity));
    t.chan = chan;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < SENDERS; i++) {
        HF_TRY(hf_fork(scope, send_some, &t));
    }
    for (int i = 0; i < RECEIVERS; i++) {
        HF_TRY(hf_fork(scope, receive_all, &t));
    }
    HF_TRY(hf_join(scope));
    for (int i = 0; i < ALL; i++) {
        HF_CHECK(t.seen[i] == 1);
    }
    return HF_OK;
}

static hf_status rendezvous(void *arg)
{
    (void)arg;
    return traffic_with(0);
}

static hf_status buffered(void *arg)
{
    (void)arg;
    HF_TRY(traffic_with(1));
    return traffic_with(7);
}

static void a_rendezvous_hands_every_value_over_once(void **state)
{
    (void)state;
    simulated_and_on_threads("rendezvous", 200, rendezvous);
}

static void a_buffered_channel_hands_every_value_over_once(void **state)
{
    (void)state;
    simulated_and_on_threads("buffered", 200, buffered);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

typedef struct pressure {
    hf_chan *chan;
    atomic_int sent;
} pressure;

static hf_status send_ten(void *arg)
{
    pressure *p = arg;
    for (int i = 0; i < 10; i++) {
        HF_TRY(hf_chan_send(p->chan, &i));
        p->sent++;
    }
    return HF_OK;
}

static hf_status back_pressure(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &chan, .capacity = 3));
    pressure p = {.chan = chan};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, send_ten, &p));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(p.sent == 3 && hf_chan_count(chan) == 3);
    for (int i = 0; i < 10; i++) {
        int value = -1;
        HF_TRY(hf_chan_recv(chan, &value));
        HF_CHECK(value == i);
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(p.sent == (i + 4 < 10 ? i + 4 : 10));
    }
    return hf_join(scope);
}

static void a_full_channel_makes_its_sender_wait(void **state)
{
    (void)state;
    simulated("back-pressure", 100, back_pressure);
}

static hf_status timeouts(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &chan, .name = "quiet"));
    int value = 1;
    hf_instant start = hf_now(NULL);
    HF_CHECK(hf_chan_send(chan, &value, .timeout = hf_seconds(3)) == HF_ERR_TIMEOUT);
    HF_CHECK(ms_since(start) >= 3000 && ms_since(start) < 3100 && error_says("hf_chan_send"));
    HF_CHECK(hf_chan_recv(chan, &value, .timeout = hf_seconds(3)) == HF_ERR_TIMEOUT);
    HF_CHECK(value == 1);
    HF_CHECK(hf_chan_try_send(chan, &value) == HF_ERR_AGAIN);
    HF_CHECK(hf_chan_try_recv(chan, &value) == HF_ERR_AGAIN);
    return HF_OK;
}

static void sends_and_receives_time_out_and_try(void **state)
{
    (void)state;
    simulated("timeouts", 50, timeouts);
}

/* A canceled or late sender has sent nothing; a canceled receiver has taken nothing. */
typedef struct race {
    hf_chan *chan;
    atomic_int sent;
    atomic_int received;
} race;

static hf_status race_send(void *arg)
{
    race *r = arg;
    hf_status status = hf_chan_send(r->chan, "x");
    if (status == HF_OK) {
        r->sent++;
    }
    return status;
}

static hf_status race_recv(void *arg)
{
    race *r = arg;
    char byte;
    hf_status status = hf_chan_recv(r->chan, &byte);
    if (status == HF_OK) {
        r->received++;
    }
    return status;
}

static hf_status cancel_races(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(1, &chan, .capacity = 1));
    race r = {.chan = chan};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    hf_branch *jobs[10];
    for (int i = 0; i < 10; i++) {
        HF_TRY(hf_fork(scope, i % 2 == 0 ? race_send : race_recv, &r, .ret_branch = &jobs[i]));
    }
    for (int i = 0; i < 10; i += 3) {
        HF_TRY(hf_branch_cancel(jobs[i]));
    }
    HF_TRY(hf_yield());
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    HF_CHECK((size_t)(r.sent - r.received) == hf_chan_count(chan));
    return HF_OK;
}

static void S18_a_canceled_send_or_receive_has_moved_nothing(void **state)
{
    (void)state;
    simulated_and_on_threads("cancel races", 500, cancel_races);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static hf_status expect_closed_recv(void *arg)
{
    char byte;
    HF_CHECK(hf_chan_recv((hf_chan *)arg, &byte) == HF_ERR_CLOSED);
    return HF_OK;
}

static hf_status expect_closed_send(void *arg)
{
    HF_CHECK(hf_chan_send((hf_chan *)arg, "y") == HF_ERR_CLOSED);
    return HF_OK;
}

static hf_status closing(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *empty = NULL;
    HF_AUTO(hf_chan_free) hf_chan *full = NULL;
    HF_TRY(hf_chan_new(1, &empty));
    HF_TRY(hf_chan_new(1, &full, .capacity = 1, .name = "full"));
    HF_TRY(hf_chan_send(full, "a"));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, expect_closed_recv, empty));
        HF_TRY(hf_fork(scope, expect_closed_send, full));
    }
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_TRY(hf_chan_close(empty));
    HF_TRY(hf_chan_close(full));
    HF_TRY(hf_join(scope));
    char byte = 0;
    HF_TRY(hf_chan_recv(full, &byte)); /* what was buffered still comes */
    HF_CHECK(byte == 'a' && hf_chan_recv(full, &byte) == HF_ERR_CLOSED);
    HF_CHECK(hf_chan_send(full, "b") == HF_ERR_CLOSED && hf_chan_try_send(full, "b") == HF_ERR_CLOSED);
    HF_TRY(hf_chan_close(full)); /* again: nothing */
    return HF_OK;
}

static void closing_wakes_everybody_and_keeps_what_is_buffered(void **state)
{
    (void)state;
    simulated("closing", 200, closing);
}

static hf_status wait_on(void *arg)
{
    char byte;
    return hf_chan_recv((hf_chan *)arg, &byte);
}

static hf_status misuse(void *arg)
{
    (void)arg;
    hf_chan *chan = NULL;
    HF_CHECK(hf_chan_new((size_t)2 << 20, &chan) == HF_ERR_INVALID);
    HF_CHECK(hf_chan_new(1024, &chan, .capacity = SIZE_MAX / 2) == HF_ERR_INVALID);
    HF_TRY(hf_chan_new(1, &chan, .name = "busy"));
    HF_CHECK(hf_chan_send(NULL, "x") == HF_ERR_MISUSE && hf_chan_recv(chan, NULL) == HF_ERR_MISUSE);
    HF_CHECK(error_says("needed"));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, wait_on, chan));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(hf_chan_free(chan) == HF_ERR_MISUSE && error_says("'busy'"));
    HF_TRY(hf_chan_send(chan, "x"));
    HF_TRY(hf_join(scope));
    return hf_chan_free(chan);
}

static void misuse_of_a_channel_is_told_and_harms_nobody(void **state)
{
    (void)state;
    simulated("misuse", 50, misuse);
}

static hf_status empty_values(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(0, &chan, .capacity = 2));
    HF_TRY(hf_chan_send(chan, NULL));
    HF_TRY(hf_chan_send(chan, NULL));
    HF_CHECK(hf_chan_try_send(chan, NULL) == HF_ERR_AGAIN && hf_chan_count(chan) == 2);
    return hf_chan_recv(chan, NULL);
}

static void a_channel_of_nothing_counts(void **state)
{
    (void)state;
    simulated("empty values", 10, empty_values);
}

/* ---- Plain threads --------------------------------------------------------------------------- */

static void *thread_receive_all(void *arg)
{
    HF_CHECK(receive_all(arg) == HF_OK);
    return NULL;
}

static void *thread_send_some(void *arg)
{
    HF_CHECK(send_some(arg) == HF_OK);
    return NULL;
}

static void S5_plain_threads_and_fibers_share_a_channel(void **state)
{
    (void)state;
    for (size_t capacity = 0; capacity < 3; capacity++) {
        hf_runtime *runtime = NULL;
        assert_int_equal(hf_runtime_new(&runtime, .threads = 2), HF_OK);
        traffic t = {.senders_left = SENDERS};
        assert_int_equal(hf_chan_new(sizeof(int), &t.chan, .runtime = runtime, .capacity = capacity), HF_OK);
        hf_scope *scope = NULL;
        assert_int_equal(hf_scope_open(&scope, .runtime = runtime), HF_OK);
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            void *(*body)(void *) = i % 2 == 0 ? thread_receive_all : thread_send_some;
            assert_int_equal(pthread_create(&threads[i], NULL, body, &t), 0);
            assert_int_equal(hf_fork(scope, i % 2 == 0 ? receive_all : send_some, &t), HF_OK);
        }
        HF_CHECK(hf_join(scope) == HF_OK);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        for (int i = 0; i < ALL; i++) {
            HF_CHECK(t.seen[i] == 1);
        }
        HF_CHECK(hf_scope_close(scope) == HF_OK);
        HF_CHECK(hf_chan_free(t.chan) == HF_OK);
        HF_CHECK(hf_runtime_free(runtime) == HF_OK);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_rendezvous_hands_every_value_over_once),
        cmocka_unit_test(a_buffered_channel_hands_every_value_over_once),
        cmocka_unit_test(a_full_channel_makes_its_sender_wait),
        cmocka_unit_test(sends_and_receives_time_out_and_try),
        cmocka_unit_test(S18_a_canceled_send_or_receive_has_moved_nothing),
        cmocka_unit_test(closing_wakes_everybody_and_keeps_what_is_buffered),
        cmocka_unit_test(misuse_of_a_channel_is_told_and_harms_nobody),
        cmocka_unit_test(a_channel_of_nothing_counts),
        cmocka_unit_test(S5_plain_threads_and_fibers_share_a_channel),
    };
    return hf_test_main("chan", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
