/* Single-flight: one run of the work for many waiters. */
#include "unit/fiber/everywhere.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct store {
    hf_flight *flight;
    hf_chan *gate; /* the fetch waits for a value of it; NULL = it does not wait */
    atomic_int fetches;
    atomic_int canceled;
    atomic_int got;
    atomic_int failed;
    hf_status fail_with;
} store;

static hf_status fetch(void *arg, hf_value **ret_value)
{
    store *s = arg;
    int number = atomic_fetch_add(&s->fetches, 1) + 1;
    hf_status status = HF_OK;
    if (s->gate != NULL) {
        int token = 0;
        status = hf_chan_recv(s->gate, &token);
    } else {
        status = hf_yield();
    }
    if (status != HF_OK) {
        atomic_fetch_add(&s->canceled, 1);
        return status;
    }
    if (s->fail_with != HF_OK) {
        return hf_raise(s->fail_with, "fetch %d found nothing", number);
    }
    return hf_value_copy(&number, sizeof number, ret_value);
}

static hf_status get(void *arg)
{
    store *s = arg;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    hf_status status = hf_flight_run(s->flight, "key", 3, fetch, s, &value);
    if (status == HF_OK) {
        int number = 0;
        memcpy(&number, hf_value_data(value), sizeof number);
        HF_CHECK(number == 1);
        atomic_fetch_add(&s->got, 1);
        return HF_OK;
    }
    if (status == s->fail_with) {
        HF_CHECK(strcmp(hf_error()->message, "fetch 1 found nothing") == 0);
        atomic_fetch_add(&s->failed, 1);
        return HF_OK;
    }
    return status;
}

static hf_status get_many(hf_status fail_with)
{
    enum { CALLERS = 100 };
    store s = {.fail_with = fail_with};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work, .name = "store"));
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &gate));
    s.gate = gate;
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work, .name = "fetch"));
    s.flight = flight;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers));
    for (int i = 0; i < CALLERS; i++) {
        HF_TRY(hf_fork(callers, get, &s));
    }
    while (atomic_load(&s.fetches) == 0) {
        HF_TRY(hf_yield());
    }
    HF_CHECK(hf_flight_count(flight) == 1); /* the gate is shut: it is under way */
    for (int i = 0; i < 20; i++) {
        HF_TRY(hf_yield());
    }
    int token = 0;
    HF_TRY(hf_chan_send(gate, &token));
    (void)hf_chan_close(gate); /* who comes after the end starts anew, and finds this */
    hf_status status = hf_join(callers);
    HF_CHECK(hf_flight_count(flight) == 0);
    HF_CHECK(s.fetches >= 1);
    if (s.fetches == 1) {
        HF_CHECK(status == HF_OK);
        HF_CHECK(fail_with == HF_OK ? s.got == CALLERS : s.failed == CALLERS);
    }
    return HF_OK;
}

static hf_status get_ok(void *arg)
{
    (void)arg;
    return get_many(HF_OK);
}

static hf_status get_failure(void *arg)
{
    (void)arg;
    return get_many(HF_ERR_NOT_FOUND);
}

static void S10_single_flight_gives_all_waiters_the_same_result(void **state)
{
    (void)state;
    everywhere("same result", 60, get_ok);
    everywhere("same failure", 60, get_failure);
}

static hf_status hundred_and_one_fetch(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &gate));
    s.gate = gate;
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    s.flight = flight;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers));
    for (int i = 0; i < 100; i++) {
        HF_TRY(hf_fork(callers, get, &s));
    }
    let_settle();
    HF_CHECK(s.fetches == 1);
    int token = 0;
    HF_TRY(hf_chan_send(gate, &token));
    HF_TRY(hf_join(callers));
    HF_CHECK(s.got == 100 && s.fetches == 1);
    HF_TRY(hf_chan_close(gate));
    HF_CHECK(hf_flight_run(flight, "key", 3, fetch, &s, NULL) == HF_ERR_CLOSED); /* a later call starts anew */
    HF_CHECK(s.fetches == 2);
    return HF_OK;
}

static void S17_a_hundred_gets_are_one_fetch_and_a_later_one_starts_anew(void **state)
{
    (void)state;
    in_order("one fetch", hundred_and_one_fetch);
}

static hf_status last_waiter_out(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work, .name = "store"));
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &gate));
    s.gate = gate;
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    s.flight = flight;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers, .join = HF_JOIN_COLLECT));
    hf_branch *jobs[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(callers, get, &s, .ret_branch = &jobs[i]));
    }
    let_settle();
    HF_TRY(hf_branch_cancel(jobs[0])); /* who started it may leave, too */
    HF_TRY(hf_branch_cancel(jobs[1]));
    let_settle();
    HF_CHECK(hf_branch_status(jobs[0]) == HF_ERR_CANCELED && hf_branch_status(jobs[1]) == HF_ERR_CANCELED);
    HF_CHECK(s.canceled == 0 && hf_flight_count(flight) == 1); /* two left: the fetch goes on */
    HF_CHECK(hf_flight_free(flight) == HF_ERR_MISUSE);
    HF_TRY(hf_branch_cancel(jobs[2]));
    let_settle();
    HF_CHECK(hf_branch_status(jobs[2]) == HF_ERR_CANCELED);
    HF_CHECK(s.canceled == 1 && s.fetches == 1 && hf_flight_count(flight) == 0);
    HF_IGNORE(hf_join(callers));
    HF_CHECK(hf_scope_is_idle(work));
    HF_CHECK(hf_canceled() == HF_OK); /* nobody else was harmed */
    return HF_OK;
}

static void N8_S13_last_waiter_out_cancels_the_flight(void **state)
{
    (void)state;
    in_order("last waiter out", last_waiter_out);
}

static hf_status leave_before_it_starts(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    s.flight = flight;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers, .join = HF_JOIN_COLLECT));
    hf_branch *job = NULL;
    HF_TRY(hf_fork(callers, get, &s, .ret_branch = &job));
    while (hf_flight_count(flight) == 0) { /* fibers that can go on run before new ones: the fetch waits its turn */
        HF_TRY(hf_yield());
    }
    HF_CHECK(s.fetches == 0);
    HF_TRY(hf_branch_cancel(job));
    HF_CHECK(hf_join(callers) == HF_ERR_CANCELED);
    HF_TRY(hf_join(work));
    HF_CHECK(s.fetches == 0 && hf_flight_count(flight) == 0);
    return HF_OK;
}

static void N8_work_that_nobody_waits_for_is_not_even_started(void **state)
{
    (void)state;
    in_order("leave before it starts", leave_before_it_starts);
}

/* A fetch that is slow to end when it is canceled. */
static hf_status stubborn_fetch(void *arg, hf_value **ret_value)
{
    store *s = arg;
    int number = atomic_fetch_add(&s->fetches, 1) + 1;
    hf_status status = hf_sleep(hf_milliseconds(10));
    if (status != HF_OK) {
        const char *reason = NULL;
        HF_CHECK(hf_cancel_cause(&reason) == HF_CAUSE_ABANDONED && strcmp(reason, "fetch") == 0);
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(hf_shield_open(hf_seconds(5), &shield));
        HF_CHECK(hf_sleep(hf_milliseconds(500)) == HF_OK);
        atomic_fetch_add(&s->canceled, 1);
        return status;
    }
    return hf_value_copy(&number, sizeof number, ret_value);
}

static hf_status new_flight_while_the_old_winds_down(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work, .name = "fetch"));
    HF_CHECK(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, NULL, .timeout = hf_milliseconds(5)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_flight_count(flight) == 0 && s.canceled == 0);
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, &value));
    int number = 0;
    memcpy(&number, hf_value_data(value), sizeof number);
    HF_CHECK(number == 2 && s.canceled == 0); /* the first is still on its way out */
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(s.canceled == 1 && hf_flight_count(flight) == 0);
    return HF_OK;
}

static void N8_a_new_caller_during_cancellation_starts_a_new_flight(void **state)
{
    (void)state;
    in_order("wind down", new_flight_while_the_old_winds_down);
}

static hf_status free_while_it_winds_down(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work, .name = "fetch"));
    HF_CHECK(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, NULL, .timeout = hf_milliseconds(5)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_flight_free(flight) == HF_OK);
    HF_TRY(hf_join(work));
    HF_CHECK(s.canceled == 1);
    HF_TRY(hf_flight_new(&flight, .scope = work, .detach = true));
    HF_CHECK(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, NULL, .timeout = hf_milliseconds(5)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_flight_count(flight) == 1); /* it goes on, and can be joined */
    HF_CHECK(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, NULL) == HF_OK);
    HF_CHECK(s.canceled == 1 && s.fetches == 2);
    HF_CHECK(hf_flight_run(flight, "k", 1, stubborn_fetch, &s, NULL, .timeout = hf_milliseconds(5)) == HF_ERR_TIMEOUT);
    HF_TRY(hf_flight_free(flight)); /* under the detached work */
    HF_TRY(hf_join(work));
    HF_CHECK(s.canceled == 1 && s.fetches == 3);
    return HF_OK;
}

static void a_flight_is_freed_while_its_work_goes_on(void **state)
{
    (void)state;
    in_order("free", free_while_it_winds_down);
}

/* Waiters come and go at random while the fetch ends at random: everybody gets a result of his own flight or leaves. */
static hf_status come_and_go(void *arg)
{
    store *s = arg;
    for (int i = 0; i < 4; i++) {
        HF_AUTO(hf_value_unref) hf_value *value = NULL;
        unsigned char chance = 0;
        HF_TRY(hf_random(NULL, &chance, 1));
        hf_status status = hf_flight_run(s->flight, "key", 3, fetch, s, &value, .timeout = hf_microseconds(1 + chance));
        HF_CHECK(status == HF_OK || status == HF_ERR_TIMEOUT || status == HF_ERR_NOT_FOUND ||
                 status == HF_ERR_CANCELED);
        HF_CHECK((status == HF_OK) == (value != NULL));
        if (status == HF_ERR_CANCELED) { /* of his own: an abandoned flight has nobody to tell it to */
            HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
            return status;
        }
    }
    return HF_OK;
}

static hf_status flights_in_a_storm(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    unsigned char chance = 0;
    HF_TRY(hf_random(NULL, &chance, 1));
    s.fail_with = chance % 2 == 0 ? HF_OK : HF_ERR_NOT_FOUND;
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work, .detach = chance % 3 == 0));
    s.flight = flight;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers, .join = HF_JOIN_COLLECT));
    hf_branch *jobs[8] = {NULL};
    for (int i = 0; i < 8; i++) {
        HF_TRY(hf_fork(callers, come_and_go, &s, .ret_branch = &jobs[i]));
    }
    HF_TRY(hf_yield());
    for (int i = 0; i < 4; i++) {
        HF_TRY(hf_branch_cancel(jobs[i]));
    }
    if (chance % 5 == 0) {
        HF_TRY(hf_scope_cancel(callers));
    }
    HF_IGNORE(hf_join(callers));
    HF_CHECK(s.fail_with != HF_OK || hf_join(work) == HF_OK);
    return HF_OK;
}

static void S10_waiters_come_and_go_and_nothing_is_lost_or_left(void **state)
{
    (void)state;
    everywhere("storm", 1000, flights_in_a_storm);
}

static hf_status cancel_the_store(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &gate));
    s.gate = gate;
    HF_AUTO(hf_scope_close) hf_scope *callers = NULL;
    HF_TRY(hf_scope_open(&callers, .join = HF_JOIN_COLLECT));
    hf_branch *jobs[3] = {NULL};
    {
        HF_AUTO(hf_scope_close) hf_scope *work = NULL;
        HF_TRY(hf_scope_open(&work));
        HF_TRY(hf_flight_new(&s.flight, .scope = work));
        for (int i = 0; i < 3; i++) {
            HF_TRY(hf_fork(callers, get, &s, .ret_branch = &jobs[i]));
        }
        let_settle();
        HF_TRY(hf_scope_cancel(work));
        HF_CHECK(hf_join(work) == HF_ERR_CANCELED);
    }
    HF_CHECK(hf_join(callers) == HF_ERR_CANCELED);
    for (int i = 0; i < 3; i++) { /* the cancellation is a result as any other */
        HF_CHECK(hf_branch_status(jobs[i]) == HF_ERR_CANCELED);
    }
    HF_CHECK(s.canceled == 1);
    return hf_flight_free(s.flight);
}

static void S10_all_waiters_get_the_cancellation_of_the_work(void **state)
{
    (void)state;
    in_order("cancel the work", cancel_the_store);
}

static hf_status fail_with_message(void *arg, hf_value **ret_value)
{
    (void)ret_value;
    return hf_raise_typed(HF_ERR_FAILED, *(const char *const *)arg, "no such row");
}

static hf_status nested_flight(void *arg, hf_value **ret_value)
{
    return hf_flight_run(arg, "k", 1, nested_flight, arg, ret_value);
}

static hf_status failing_flights(void *arg)
{
    (void)arg;
    const char *type = "NoRow";
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work, .name = "fail-fast")); /* its policy does not hear of failures that somebody got */
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    for (int i = 0; i < 3; i++) {
        HF_CHECK(hf_flight_run(flight, "a", 1, fail_with_message, &type, NULL) == HF_ERR_FAILED);
        HF_CHECK(strcmp(hf_error()->type, "NoRow") == 0 && strcmp(hf_error()->message, "no such row") == 0);
    }
    HF_CHECK(hf_canceled() == HF_OK);
    HF_CHECK(hf_flight_run(flight, "k", 1, nested_flight, flight, NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_flight_run(flight, "k", 1, NULL, NULL, NULL) == HF_ERR_MISUSE);
    hf_flight *none = NULL;
    HF_CHECK(hf_flight_new(&none) == HF_ERR_MISUSE);
    return hf_join(work);
}

static void S2_a_failed_flight_is_told_to_its_waiters_and_harms_no_other(void **state)
{
    (void)state;
    everywhere("failing flights", 20, failing_flights);
}

static hf_status refused_flight(void *arg)
{
    (void)arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_chan_free) hf_chan *gate = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &gate));
    s.gate = gate;
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work, .branches_max = 1));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work, .detach = true));
    HF_CHECK(hf_flight_run(flight, "a", 1, fetch, &s, NULL, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_flight_run(flight, "b", 1, fetch, &s, NULL) == HF_ERR_LIMIT);
    HF_CHECK(hf_error() != NULL && strstr(hf_error()->message, "children") != NULL);
    HF_CHECK(hf_flight_count(flight) == 1);
    return hf_chan_close(gate);
}

static void a_flight_whose_work_cannot_start_fails_its_waiters(void **state)
{
    (void)state;
    everywhere("refused", 20, refused_flight);
}

/* ---- Endless series ---------------------------------------------------------------------------------------------- */

static _Atomic(int64_t) bytes_live;

static void *count_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    void *ptr = NULL;
    if (posix_memalign(&ptr, align < sizeof(void *) ? sizeof(void *) : align, len > 0 ? len : 1) != 0) {
        return NULL;
    }
    atomic_fetch_add(&bytes_live, (int64_t)len);
    return ptr;
}

static void count_release(void *state, void *ptr, size_t len)
{
    (void)state;
    if (ptr != NULL) {
        atomic_fetch_sub(&bytes_live, (int64_t)len);
    }
    free(ptr);
}

static hf_status flights_for_ever(void *arg)
{
    int64_t *grown = arg;
    store s = {.fail_with = HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    int64_t before = 0;
    for (int i = 0; i < 3000; i++) {
        if (i == 1000) { /* caches are warm */
            before = atomic_load(&bytes_live);
        }
        s.fail_with = i % 3 == 0 ? HF_ERR_NOT_FOUND : HF_OK;
        HF_IGNORE(hf_flight_run(flight, &i, sizeof i, fetch, &s, NULL));
    }
    HF_TRY(hf_join(work));
    *grown = atomic_load(&bytes_live) - before;
    return HF_OK;
}

static void an_endless_series_of_flights_needs_no_more_memory(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        int64_t grown = -1;
        assert_int_equal(
            hf_run(flights_for_ever, &grown, .threads = threads, .allocator = {count_allocate, count_release, NULL}),
            HF_OK);
        assert_true(grown < 64 * 1024 + 8192); /* a slab more at most, and the caller's last failure */
        assert_int_equal(atomic_load(&bytes_live), 0);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(S10_single_flight_gives_all_waiters_the_same_result),
        cmocka_unit_test(S17_a_hundred_gets_are_one_fetch_and_a_later_one_starts_anew),
        cmocka_unit_test(N8_S13_last_waiter_out_cancels_the_flight),
        cmocka_unit_test(N8_work_that_nobody_waits_for_is_not_even_started),
        cmocka_unit_test(N8_a_new_caller_during_cancellation_starts_a_new_flight),
        cmocka_unit_test(a_flight_is_freed_while_its_work_goes_on),
        cmocka_unit_test(S10_waiters_come_and_go_and_nothing_is_lost_or_left),
        cmocka_unit_test(S10_all_waiters_get_the_cancellation_of_the_work),
        cmocka_unit_test(S2_a_failed_flight_is_told_to_its_waiters_and_harms_no_other),
        cmocka_unit_test(a_flight_whose_work_cannot_start_fails_its_waiters),
        cmocka_unit_test(an_endless_series_of_flights_needs_no_more_memory),
    };
    return hf_test_main("flight", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
