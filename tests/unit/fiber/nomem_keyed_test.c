/* Every allocation of the keyed objects and the flows fails once: the verb says HF_ERR_NOMEM, nothing leaks or
 * hangs. */
#include "support/support.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(int64_t) blocks_live;
static _Atomic(int64_t) countdown; /* allocations until one fails; 0 = none will */
static atomic_bool has_failed;

static void *allocate(void *state, size_t len, size_t align)
{
    (void)state;
    if (atomic_load(&countdown) > 0 && atomic_fetch_sub(&countdown, 1) == 1) {
        atomic_store(&has_failed, true);
        return NULL;
    }
    void *ptr = NULL;
    if (posix_memalign(&ptr, align < sizeof(void *) ? sizeof(void *) : align, len > 0 ? len : 1) != 0) {
        return NULL;
    }
    atomic_fetch_add(&blocks_live, 1);
    return ptr;
}

static void release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    if (ptr != NULL) {
        atomic_fetch_sub(&blocks_live, 1);
    }
    free(ptr);
}

static hf_status fetch(void *arg, hf_value **ret_value)
{
    HF_TRY(hf_yield());
    return hf_value_copy(arg, 1, ret_value);
}

static hf_status emit_three(void *arg, hf_emitter *emitter)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_emit(emitter, &i));
    }
    return HF_OK;
}

static hf_status count_item(void *ctx, const void *value)
{
    (void)value;
    ++*(int *)ctx;
    return HF_OK;
}

static hf_status use_locks(void)
{
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_AUTO(hf_once_free) hf_once *once = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keylock = NULL;
    HF_AUTO(hf_key_unlock) hf_key_guard *guard = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_sem_new(1, &sem));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_once_new(&once));
    HF_TRY(hf_keylock_new(&keylock));
    return hf_keylock_lock(keylock, "key", 3, &guard);
}

static hf_status use_cache(void)
{
    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_cache_new(&cache, .count_max = 2));
    HF_TRY(hf_value_copy("v", 1, &value));
    for (char key = 'a'; key < 'e'; key++) {
        HF_TRY(hf_cache_put(cache, &key, 1, value, NULL));
    }
    return HF_OK;
}

static hf_status use_flight(void)
{
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    static char byte = 'b';
    HF_TRY(hf_scope_open(&work));
    HF_TRY(hf_flight_new(&flight, .scope = work));
    hf_status status = hf_flight_run(flight, "key", 3, fetch, &byte, &value);
    HF_CHECK(hf_flight_count(flight) == 0);
    return status;
}

static hf_status use_flows(void)
{
    int count = 0;
    HF_AUTO(hf_scope_close) hf_scope *share = NULL;
    HF_AUTO(hf_flow_free) hf_flow *hot = NULL;
    HF_AUTO(hf_flow_free) hf_flow *cold = NULL;
    HF_AUTO(hf_flow_free) hf_flow *shared = NULL;
    HF_AUTO(hf_collector_close) hf_collector *collector = NULL;
    HF_TRY(hf_scope_open(&share));
    HF_TRY(hf_flow_new(sizeof(int), &hot));
    HF_TRY(hf_flow_new(sizeof(int), &cold, .source = emit_three));
    HF_TRY(hf_flow_new(sizeof(int), &shared, .source = emit_three, .share = share));
    HF_TRY(hf_collector_open(hot, &collector, .capacity = 2));
    HF_TRY(hf_flow_emit(hot, &count));
    HF_TRY(hf_flow_collect(cold, count_item, &count));
    HF_CHECK(count == 3);
    HF_TRY(hf_flow_collect(shared, count_item, &count));
    HF_CHECK(count == 6);
    return HF_OK;
}

static hf_status use_everything(void *arg)
{
    atomic_store(&countdown, *(const int64_t *)arg);
    hf_status status = use_locks();
    status = status == HF_OK ? use_cache() : status;
    status = status == HF_OK ? use_flight() : status;
    status = status == HF_OK ? use_flows() : status;
    atomic_store(&countdown, 0);
    HF_CHECK(status == HF_OK || (status == HF_ERR_NOMEM && atomic_load(&has_failed))); /* statistics may go without */
    return HF_OK;
}

static void every_allocation_may_fail_and_nothing_leaks(void **state)
{
    (void)state;
    int64_t nth = 1;
    for (bool is_past = false; !is_past && hf_checks_failed() == 0; nth++) {
        atomic_store(&has_failed, false);
        assert_int_equal(hf_run(use_everything, &nth, .threads = 1, .allocator = {allocate, release, NULL}), HF_OK);
        assert_int_equal(atomic_load(&blocks_live), 0);
        is_past = !atomic_load(&has_failed);
    }
    print_message("%d allocations failed, one after the other\n", (int)nth - 2);
    assert_true(nth > 15);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(every_allocation_may_fail_and_nothing_leaks)};
    return hf_test_main("nomem_keyed", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
