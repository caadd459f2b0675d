/* Bugs that were found by reading and by stress, each in the smallest program that showed it. A test that does not end is
 * one of them come back: most were wake-ups that nobody gave. */
/* labels: threads */
#include "unit/fiber/bodies.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static hf_runtime *make_runtime(int threads)
{
    hf_runtime *rt = NULL;
    HF_CHECK(hf_runtime_new(&rt, .threads = threads, .log = bodies_log) == HF_OK);
    return rt;
}

static hf_status do_nothing(void *arg)
{
    (void)arg;
    return HF_OK;
}

static void count_drop(void *arg)
{
    (void)atomic_fetch_add((atomic_int *)arg, 1);
}

static void spin_until(atomic_int *count, int target)
{
    while (atomic_load(count) < target) {
        (void)sched_yield();
    }
}

/* ---- Hooks and the standing world -------------------------------------------------------------------------------------- */

static atomic_bool is_over;

static hf_status join_in_vain(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_QUORUM(2)));
        HF_TRY(hf_fork(scope, fail_at_once, NULL));
        HF_CHECK(hf_join(scope) == HF_ERR_FAILED); /* its result hook raises */
    }
    (void)arg;
    return HF_OK;
}

static void *dump_on(void *arg)
{
    while (!atomic_load(&is_over)) {
        char *text = NULL;
        HF_CHECK(hf_dump(arg, &text, .no_stacks = true) == HF_OK);
        hf_text_free(text);
    }
    return NULL;
}

/* The hook entered the library and waited for the world to go on, and the dump waited for the hook. */
static void a_hook_does_not_wait_for_a_dump_that_waits_for_it(void **state)
{
    (void)state;
    hf_runtime *rt = make_runtime(2);
    atomic_store(&is_over, false);
    pthread_t dumper;
    assert_int_equal(pthread_create(&dumper, NULL, dump_on, rt), 0);
    hf_scope *scope = NULL;
    assert_int_equal(hf_scope_open(&scope, .runtime = rt), HF_OK);
    HF_CHECK(hf_fork(scope, join_in_vain, NULL) == HF_OK);
    HF_CHECK(hf_fork(scope, join_in_vain, NULL) == HF_OK);
    HF_CHECK(hf_join(scope) == HF_OK);
    atomic_store(&is_over, true);
    (void)pthread_join(dumper, NULL);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_runtime_free(rt) == HF_OK);
}

/* ---- Jobs and calls on pools ------------------------------------------------------------------------------------------- */

static hf_status cancel_what_ends(void *arg)
{
    (void)arg;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .limit = 4));
    for (int i = 0; i < 3000; i++) {
        atomic_int count = 0;
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int job = 0; job < 4; job++) {
            HF_TRY(hf_fork(scope, count_one, &count, .on = pool, .drop = count_drop));
        }
        if (i % 3 != 0) {
            HF_IGNORE(hf_yield());
        }
        HF_IGNORE(hf_scope_cancel(scope));
        HF_IGNORE(hf_join(scope));
        HF_CHECK(atomic_load(&count) == 4);
    }
    return HF_OK;
}

/* The pool's thread freed the job's place in the queue while the cancel was looking at it. */
static void a_cancel_meets_a_pool_job_that_ends(void **state)
{
    (void)state;
    on_threads(cancel_what_ends);
}

static hf_status free_what_is_in_use(void *arg)
{
    (void)arg;
    hf_dispatcher *view = NULL;
    HF_TRY(hf_pool_view(NULL, &view));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    atomic_int ran = 0;
    HF_TRY(hf_fork(scope, count_one, &ran, .on = view));
    spin_until(&ran, 1);
    for (int i = 0; i < 1000; i++) { /* nobody at home has heard of the end yet: this fiber is in the way */
        HF_CHECK(hf_dispatcher_free(view) == HF_ERR_MISUSE);
    }
    HF_IGNORE(hf_scope_cancel(scope)); /* looks at the job's dispatcher */
    HF_IGNORE(hf_join(scope));
    return hf_dispatcher_free(view);
}

/* The dispatcher could be freed while the message of its job's end was under way, and a cancel then looked at it. */
static void a_dispatcher_stays_until_the_end_of_its_jobs_is_known(void **state)
{
    (void)state;
    HF_CHECK(hf_run(free_what_is_in_use, NULL, .threads = 1, .log = bodies_log) == HF_OK);
}

static const hf_local TENANT = {"tenant"};
static const hf_local OTHER = {"other"};

static hf_status look_for_local(void *arg)
{
    (void)arg;
    HF_CHECK(hf_local_get(&OTHER) == NULL);
    return HF_OK;
}

static hf_status lend_locals(void *arg)
{
    HF_TRY(hf_local_set(&TENANT, arg));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, look_for_local, NULL, .on = arg));
    return hf_join(scope);
}

static hf_status call_after_job(void *arg)
{
    (void)arg;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .limit = 1));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, lend_locals, pool));
    HF_TRY(hf_join(scope));
    return hf_block(look_for_local, NULL, .on = pool); /* on the same thread */
}

/* The thread kept the local values of its last job, which were freed with the fiber that had bound them. */
static void a_call_does_not_see_the_locals_of_an_earlier_job(void **state)
{
    (void)state;
    HF_CHECK(hf_run(call_after_job, NULL, .threads = 1, .log = bodies_log) == HF_OK);
}

static hf_status leave_scope_open(void *arg)
{
    hf_scope *scope = NULL;
    return hf_scope_open(&scope, .runtime = arg, .name = "left");
}

static hf_status call_that_leaves_a_scope(void *arg)
{
    (void)arg;
    HF_CHECK(hf_block(leave_scope_open, hf_runtime_current()) == HF_ERR_MISUSE);
    return HF_OK;
}

/* The scope stayed with the pool's thread, and the runtime could not be freed. */
static void a_scope_that_a_call_leaves_open_is_closed(void **state)
{
    (void)state;
    HF_CHECK(hf_run(call_that_leaves_a_scope, NULL, .threads = 1, .log = bodies_log) == HF_OK);
}

static hf_status wait_for_close(void *arg)
{
    int value = 0;
    HF_CHECK(hf_chan_recv(arg, &value) == HF_ERR_CLOSED);
    return HF_OK;
}

static hf_status call_in_vain(void *arg)
{
    hf_status status = hf_block(do_nothing, NULL, .on = arg, .abandonable = true, .timeout = hf_milliseconds(5));
    HF_CHECK(status == HF_ERR_CANCELED || status == HF_ERR_TIMEOUT);
    return status;
}

static hf_status cancel_and_time_out(void *arg)
{
    (void)arg;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .limit = 1));
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &chan));
    HF_AUTO(hf_scope_close) hf_scope *busy = NULL;
    HF_TRY(hf_scope_open(&busy));
    HF_TRY(hf_fork(busy, wait_for_close, chan, .on = pool));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_milliseconds(5))); /* cancels when the calls time out */
    for (int i = 0; i < 8; i++) {
        HF_TRY(hf_fork(scope, call_in_vain, pool));
    }
    HF_CHECK(hf_join(scope) == HF_ERR_TIMEOUT);
    HF_TRY(hf_chan_close(chan));
    return hf_join(busy);
}

/* The cancel withdrew the call and the timeout left it, and each woke the caller: it was resumed where it was not. */
static void a_call_that_is_canceled_and_late_at_once_is_woken_once(void **state)
{
    (void)state;
    simulated("a call that is canceled and late", 200, cancel_and_time_out);
}

/* The next job of the queue would have started among the other runtime's fibers. */
static void a_serial_dispatcher_refuses_jobs_of_another_runtime(void **state)
{
    (void)state;
    hf_runtime *one = make_runtime(1);
    hf_runtime *two = make_runtime(1);
    hf_dispatcher *serial = NULL;
    hf_scope *scope = NULL;
    atomic_int dropped = 0;
    HF_CHECK(hf_serial_new(&serial, .runtime = one) == HF_OK);
    HF_CHECK(hf_scope_open(&scope, .runtime = two) == HF_OK);
    HF_CHECK(hf_fork(scope, do_nothing, &dropped, .on = serial, .drop = count_drop) == HF_ERR_MISUSE);
    HF_CHECK(error_says("its own runtime") && atomic_load(&dropped) == 1);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_dispatcher_free(serial) == HF_OK);
    HF_CHECK(hf_runtime_free(one) == HF_OK && hf_runtime_free(two) == HF_OK);
}

/* ---- Hosted runtimes ---------------------------------------------------------------------------------------------------- */

typedef struct guest {
    hf_runtime *rt;
    hf_chan *chan;
    atomic_int *started;
} guest;

static hf_status receive_one(void *arg)
{
    guest *own = arg;
    (void)atomic_fetch_add(own->started, 1);
    int value = 0;
    return hf_chan_recv(own->chan, &value);
}

static void *join_a_receiver(void *arg)
{
    guest *own = arg;
    hf_scope *scope = NULL;
    HF_CHECK(hf_scope_open(&scope, .runtime = own->rt) == HF_OK);
    HF_CHECK(hf_fork(scope, receive_one, own) == HF_OK);
    HF_CHECK(hf_join(scope) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    return NULL;
}

/* The first drove for both; when its own wait was over, nobody did. */
static void who_waits_drives_a_hosted_runtime_when_another_one_leaves(void **state)
{
    (void)state;
    hf_runtime *rt = make_runtime(HF_OFF);
    atomic_int started = 0;
    guest guests[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        guests[i] = (guest){.rt = rt, .started = &started};
        HF_CHECK(hf_chan_new(sizeof(int), &guests[i].chan, .capacity = 1, .runtime = rt) == HF_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, join_a_receiver, &guests[i]), 0);
        spin_until(&started, i + 1); /* the first drives when the second comes */
    }
    for (int i = 0; i < 2; i++) {
        HF_CHECK(hf_chan_send(guests[i].chan, &i) == HF_OK);
        (void)pthread_join(threads[i], NULL);
        HF_CHECK(hf_chan_free(guests[i].chan) == HF_OK);
    }
    HF_CHECK(hf_runtime_free(rt) == HF_OK);
}

static pthread_t host;

static hf_status see_host(void *arg)
{
    (void)arg;
    HF_CHECK(pthread_equal(pthread_self(), host));
    return HF_OK;
}

/* Jobs on pool threads that waited took the runtime from the host: its turn was refused, and fibers ran elsewhere. */
static void waiting_pool_jobs_do_not_drive_a_hosted_runtime(void **state)
{
    (void)state;
    host = pthread_self();
    hf_runtime *rt = make_runtime(HF_OFF);
    atomic_int started = 0;
    guest own = {.rt = rt, .started = &started};
    hf_scope *scope = NULL;
    hf_dispatcher *pool = NULL;
    HF_CHECK(hf_chan_new(sizeof(int), &own.chan, .runtime = rt) == HF_OK);
    HF_CHECK(hf_pool_new(&pool, .runtime = rt) == HF_OK);
    HF_CHECK(hf_scope_open(&scope, .runtime = rt, .join = HF_JOIN_DISCARD) == HF_OK);
    HF_CHECK(hf_fork(scope, receive_one, &own, .on = pool) == HF_OK);
    while (atomic_load(&started) == 0) {
        HF_CHECK(hf_runtime_turn(rt, HF_SPAN_OFF) != HF_ERR_MISUSE);
    }
    for (int i = 0; i < 2000 && hf_checks_failed() == 0; i++) {
        HF_CHECK(hf_fork(scope, see_host, NULL) == HF_OK);
        (void)sched_yield();
        HF_CHECK(hf_runtime_turn(rt, HF_SPAN_OFF) != HF_ERR_MISUSE);
    }
    HF_CHECK(hf_chan_close(own.chan) == HF_OK);
    HF_CHECK(hf_join(scope) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_dispatcher_free(pool) == HF_OK);
    HF_CHECK(hf_chan_free(own.chan) == HF_OK);
    HF_CHECK(hf_runtime_free(rt) == HF_OK);
}

static hf_status send_seven(void *arg)
{
    int value = 7;
    return hf_chan_send(arg, &value);
}

/* The runtime was taken from the first case, and nobody drove it when that one had no channel. */
static void a_select_may_start_with_a_case_that_never_happens(void **state)
{
    (void)state;
    hf_runtime *rt = make_runtime(HF_OFF);
    hf_chan *chan = NULL;
    HF_CHECK(hf_chan_new(sizeof(int), &chan, .runtime = rt) == HF_OK);
    hf_scope *scope = NULL;
    HF_CHECK(hf_scope_open(&scope, .runtime = rt) == HF_OK);
    hf_runtime *other = make_runtime(1);
    hf_scope *inner = NULL; /* the thread's innermost scope is of a runtime with threads */
    HF_CHECK(hf_scope_open(&inner, .runtime = other) == HF_OK);
    HF_CHECK(hf_fork(scope, send_seven, chan) == HF_OK);
    int value = 0;
    size_t idx = 9;
    hf_case cases[2] = {{HF_CASE_RECV, NULL, &value, HF_OK}, {HF_CASE_RECV, chan, &value, HF_OK}};
    HF_CHECK(hf_select(cases, 2, &idx) == HF_OK && idx == 1 && value == 7);
    cases[1].value = NULL;
    HF_CHECK(hf_select(cases, 2, &idx) == HF_ERR_MISUSE); /* nowhere to write to */
    HF_CHECK(hf_select(cases, 1, &idx, .timeout = hf_microseconds(1)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_scope_close(inner) == HF_OK && hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_select(cases, 1, &idx, .timeout = hf_microseconds(1)) == HF_ERR_TIMEOUT); /* of no runtime at all */
    HF_CHECK(hf_chan_free(chan) == HF_OK);
    HF_CHECK(hf_runtime_free(other) == HF_OK && hf_runtime_free(rt) == HF_OK);
}

/* ---- Stopping ----------------------------------------------------------------------------------------------------------- */

static void *stop_it(void *arg)
{
    HF_CHECK(hf_runtime_stop(arg) == HF_OK);
    return NULL;
}

/* The close waited for the stop's message, and did not turn the runtime meanwhile. */
static void a_hosted_scope_is_closed_while_the_runtime_stops(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        hf_runtime *rt = make_runtime(HF_OFF);
        hf_scope *scope = NULL;
        HF_CHECK(hf_scope_open(&scope, .runtime = rt) == HF_OK);
        pthread_t stopper;
        assert_int_equal(pthread_create(&stopper, NULL, stop_it, rt), 0);
        HF_CHECK(hf_scope_close(scope) == HF_OK);
        (void)pthread_join(stopper, NULL);
        HF_CHECK(hf_runtime_free(rt) == HF_OK);
    }
}

static void *open_and_sleep(void *arg)
{
    hf_scope *scope = NULL;
    if (hf_scope_open(&scope, .runtime = arg) == HF_OK) {
        HF_CHECK(hf_sleep(hf_hours(1)) == HF_ERR_CANCELED);
        HF_CHECK(hf_scope_close(scope) == HF_OK);
    }
    return NULL;
}

/* A scope that was opened between the stop's mark and its walk was canceled by neither. */
static void a_stop_does_not_miss_a_scope_that_is_being_opened(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        hf_runtime *rt = make_runtime(1);
        pthread_t opener;
        assert_int_equal(pthread_create(&opener, NULL, open_and_sleep, rt), 0);
        HF_CHECK(hf_runtime_stop(rt) == HF_OK);
        (void)pthread_join(opener, NULL);
        HF_CHECK(hf_runtime_free(rt) == HF_OK);
    }
}

/* A stop canceled every scope of a thread by itself, also shields and what was inside. */
static void a_stop_does_not_enter_the_shield_of_a_thread(void **state)
{
    (void)state;
    hf_runtime *rt = make_runtime(1);
    atomic_int told = 0;
    hf_scope *scope = NULL;
    hf_scope *inner = NULL;
    hf_shield *shield = NULL;
    HF_CHECK(hf_scope_open(&scope, .runtime = rt) == HF_OK);
    HF_CHECK(hf_fork(scope, sleep_and_tell, &told) == HF_OK);
    HF_CHECK(hf_shield_open(hf_hours(1), &shield) == HF_OK);
    HF_CHECK(hf_runtime_stop(rt) == HF_OK);
    spin_until(&told, 1);
    HF_CHECK(hf_canceled() == HF_OK);
    HF_CHECK(hf_scope_open(&inner, .runtime = rt) == HF_OK); /* cleanup may fork */
    HF_CHECK(hf_fork(inner, count_one, &told) == HF_OK);
    HF_CHECK(hf_join(inner) == HF_OK && atomic_load(&told) == 2);
    HF_CHECK(hf_scope_close(inner) == HF_OK);
    HF_CHECK(hf_shield_close(shield) == HF_OK);
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
    HF_CHECK(hf_scope_open(&inner, .runtime = rt) == HF_ERR_CLOSED);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_runtime_free(rt) == HF_OK);
}

/* ---- Failures, descriptors ---------------------------------------------------------------------------------------------- */

static hf_status fail_with_a_cause(void *arg)
{
    (void)arg;
    HF_IGNORE(hf_raise(HF_ERR_IO, "the disk is gone"));
    return hf_raise_typed(HF_ERR_FAILED, "order", "the order failed");
}

static hf_status read_the_chain(void *arg)
{
    (void)arg;
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, fail_with_a_cause, NULL));
    HF_CHECK(hf_join(scope) == HF_ERR_FAILED);
    const hf_failure *failure = hf_error();
    HF_CHECK(strcmp(hf_error_text(), "the order failed; because the disk is gone") == 0);
    HF_CHECK(strcmp(hf_scope_failure(scope, 0)->message, "the order failed") == 0);
    HF_TRY(hf_scope_close(scope));
    HF_CHECK(strcmp(failure->message, "the order failed") == 0); /* still the last failure */
    HF_CHECK(hf_error()->cause != NULL && strcmp(hf_error()->cause->message, "the disk is gone") == 0);
    return HF_OK;
}

/* The text of a failure that the scope has, too, was without its causes. */
static void the_text_of_a_joined_failure_has_its_causes(void **state)
{
    (void)state;
    HF_CHECK(hf_run(read_the_chain, NULL, .threads = 1, .log = bodies_log) == HF_OK);
}

static hf_listener *listener;

static hf_status serve_one(void *arg)
{
    (void)arg;
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_TRY(hf_listener_accept(listener, &conn));
    char byte = 0;
    size_t len = 0;
    HF_TRY(hf_conn_read(conn, &byte, 1, &len));
    return hf_conn_write(conn, &byte, 1);
}

static hf_status reuse_a_number(void *arg)
{
    (void)arg;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &listener));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    int fds[2];
    HF_CHECK(pipe2(fds, O_NONBLOCK | O_CLOEXEC) == 0);
    HF_CHECK(write(fds[1], "a", 1) == 1);
    HF_TRY(hf_fd_wait(fds[0], HF_READABLE));
    HF_CHECK(close(fds[0]) == 0); /* nobody waits: it need not be forgotten */
    HF_CHECK(close(fds[1]) == 0);
    HF_TRY(hf_fork(scope, serve_one, NULL));
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_TRY(hf_conn_open(hf_listener_address(listener), &conn));
    HF_IGNORE(hf_yield());
    HF_TRY(hf_conn_write(conn, "b", 1));
    char byte = 0;
    size_t len = 0;
    HF_TRY(hf_conn_read(conn, &byte, 1, &len));
    HF_CHECK(len == 1 && byte == 'b');
    HF_TRY(hf_join(scope));
    return hf_listener_close(listener);
}

/* The kernel gave the number to a connection, and the table believed that it was watched already. */
static void a_connection_may_get_the_number_of_a_descriptor_that_was_waited_for(void **state)
{
    (void)state;
    HF_CHECK(hf_run(reuse_a_number, NULL, .threads = 1, .log = bodies_log) == HF_OK);
}

/* What a new user met. */
static hf_status late_alone_body(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "lookup", .timeout = hf_milliseconds(5)));
    HF_CHECK(hf_sleep(hf_seconds(2)) == HF_ERR_CANCELED);
    HF_CHECK(hf_join(scope) == HF_ERR_TIMEOUT);
    HF_CHECK(strstr(hf_error_text(), "'lookup'") != NULL);
    return HF_OK;
}

static hf_status lose_scope(void)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "lookup", .timeout = hf_milliseconds(5)));
    HF_TRY(hf_sleep(hf_seconds(2)));
    return HF_OK;
}

static hf_status told_after_close_body(void *arg)
{
    (void)arg;
    HF_CHECK(lose_scope() == HF_ERR_CANCELED);
    HF_CHECK(strstr(hf_error_text(), "deadline: lookup") != NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "shop"));
    HF_TRY(hf_fork(scope, sleep_long, NULL));
    HF_TRY(hf_scope_cancel(scope, .reason = "closing time"));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(strstr(hf_error_text(), "'shop'") != NULL && strstr(hf_error_text(), "closing time") != NULL);
    HF_AUTO(hf_scope_close) hf_scope *vote = NULL;
    HF_TRY(hf_scope_open(&vote, .join = HF_JOIN_QUORUM(3)));
    HF_TRY(hf_fork(vote, sleep_long, NULL));
    HF_TRY(hf_fork(vote, sleep_long, NULL));
    HF_CHECK(hf_join(vote) == HF_ERR_FAILED); /* two can never be three */
    HF_AUTO(hf_scope_close) hf_scope *past = NULL;
    HF_TRY(hf_scope_open(&past, .timeout = hf_seconds(-5)));
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
    return HF_OK;
}

static void a_cancel_is_told_with_its_scope_and_reason(void **state)
{
    (void)state;
    HF_CHECK(hf_sim_run(1, 2, late_alone_body, NULL, NULL) == HF_OK);
    HF_CHECK(hf_sim_run(1, 2, told_after_close_body, NULL, NULL) == HF_OK);
}

/* It computes for longer than it may, and only asks. */
static hf_status ask_only_body(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_milliseconds(5)));
    while (hf_canceled() == HF_OK) {
    }
    HF_CHECK(hf_cancel_cause(NULL) == HF_CAUSE_DEADLINE);
    return HF_OK;
}

static void a_deadline_is_seen_by_who_only_asks(void **state)
{
    (void)state;
    HF_CHECK(hf_run(ask_only_body, NULL, .threads = 1) == HF_OK);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_cancel_is_told_with_its_scope_and_reason),
        cmocka_unit_test(a_deadline_is_seen_by_who_only_asks),
        cmocka_unit_test(a_hook_does_not_wait_for_a_dump_that_waits_for_it),
        cmocka_unit_test(a_cancel_meets_a_pool_job_that_ends),
        cmocka_unit_test(a_dispatcher_stays_until_the_end_of_its_jobs_is_known),
        cmocka_unit_test(a_call_does_not_see_the_locals_of_an_earlier_job),
        cmocka_unit_test(a_scope_that_a_call_leaves_open_is_closed),
        cmocka_unit_test(a_call_that_is_canceled_and_late_at_once_is_woken_once),
        cmocka_unit_test(a_serial_dispatcher_refuses_jobs_of_another_runtime),
        cmocka_unit_test(who_waits_drives_a_hosted_runtime_when_another_one_leaves),
        cmocka_unit_test(waiting_pool_jobs_do_not_drive_a_hosted_runtime),
        cmocka_unit_test(a_select_may_start_with_a_case_that_never_happens),
        cmocka_unit_test(a_hosted_scope_is_closed_while_the_runtime_stops),
        cmocka_unit_test(a_stop_does_not_miss_a_scope_that_is_being_opened),
        cmocka_unit_test(a_stop_does_not_enter_the_shield_of_a_thread),
        cmocka_unit_test(the_text_of_a_joined_failure_has_its_causes),
        cmocka_unit_test(a_connection_may_get_the_number_of_a_descriptor_that_was_waited_for),
    };
    return hf_test_main("regress", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
