/* Every allocation of the reading side fails once: nothing leaks or hangs, and afterwards all works. Virtual time. */
#include "support/hooked.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "env/sim/sim.h"
#include "store/mem.h"

#include <stdio.h>
#include <string.h>

static struct {
    hf_env *env;
    uint64_t nth;    /* allocation that fails */
    bool was_passed; /* the scene has made that many */
    bool has_worked; /* nothing failed */
} run;

static hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("acme", "user", id);
}

static hf_status fetch_many(void *state, const hf_fetch_request *requests, hf_reply *const *replies, size_t count)
{
    (void)state;
    for (size_t i = 0; i < count; i++) {
        HF_IGNORE(hf_reply_value(replies[i], requests[i].key.id, requests[i].key.id_len));
    }
    return hf_sleep(hf_milliseconds(1));
}

static hf_status subscribe(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    for (;;) {
        HF_TRY(hf_sleep(hf_milliseconds(1)));
        HF_TRY(hf_reply_value(reply, request->key.id, request->key.id_len));
        HF_TRY(hf_reply_emit(reply));
        HF_TRY(hf_sleep(hf_seconds(1)));
    }
}

static hf_status decode(void *state, const hf_value *bytes, hf_value **ret_object)
{
    (void)state;
    return hf_value_copy(hf_value_data(bytes), hf_value_len(bytes), ret_object);
}

static void begin_failing(void)
{
    hf_sim_fail_allocation(run.env, run.nth, false);
}

static void end_failing(uint64_t before)
{
    run.was_passed = hf_sim_allocations(run.env) - before < run.nth;
    hf_sim_fail_allocation(run.env, 0, false);
}

/* Many keys: all of them, or NOMEM. */
static bool get_all(hf_depot *depot)
{
    hf_depot_key keys[] = {key_of("a"), key_of("b"), key_of("c")};
    hf_depot_result results[3];
    if (hf_depot_get_many(depot, keys, 3, results, .fresh = HF_FRESH_NOW, .force = true) != HF_OK) {
        return false;
    }
    bool is_all = true;
    for (int i = 0; i < 3; i++) {
        is_all = is_all && results[i].status == HF_OK;
        HF_CHECK((results[i].status == HF_OK) == (results[i].value != NULL));
        HF_CHECK(results[i].status == HF_OK || results[i].message[0] != '\0');
        hf_value_unref(results[i].value);
    }
    return is_all;
}

static hf_status scene_many(void *arg)
{
    hf_source_hooks hooks = hooked(arg);
    uint64_t before = hf_sim_allocations(run.env);
    hf_depot *depot = NULL;
    begin_failing();
    hf_status status =
        hf_depot_open("users", &depot, .fetch_many = fetch_many, .source = &hooks, .decode = decode, .retries = HF_OFF,
                      .batch_window = run.nth % 2 == 0 ? hf_milliseconds(1) : hf_nanoseconds(0));
    run.has_worked = status == HF_OK && get_all(depot);
    if (depot != NULL) {
        run.has_worked = hf_depot_changed(depot, key_of("a")) == HF_OK && run.has_worked;
        HF_IGNORE(hf_depot_trim(depot, 0));
        run.has_worked = get_all(depot) && run.has_worked;
    }
    end_failing(before);
    if (depot == NULL) {
        HF_TRY(hf_depot_open("users", &depot, .fetch_many = fetch_many, .source = &hooks, .decode = decode));
    }
    HF_TRY(hf_sleep(hf_minutes(1))); /* the breaker, and back-offs */
    HF_CHECK(get_all(depot));
    return hf_depot_close(depot);
}

static hf_status scene_subscribe(void *arg)
{
    (void)arg;
    uint64_t before = hf_sim_allocations(run.env);
    hf_depot *depot = NULL;
    hf_watcher *watcher = NULL;
    hf_value *value = NULL;
    hf_depot_event event;
    begin_failing();
    hf_status status = hf_depot_open("users", &depot, .subscribe = subscribe, .decode = decode);
    if (status == HF_OK) {
        run.has_worked = hf_depot_watch(depot, key_of("a"), &watcher, .mode = HF_FLOW_BUFFER, .capacity = 8) == HF_OK;
        run.has_worked = hf_depot_get(depot, key_of("b"), &value) == HF_OK && run.has_worked;
        hf_value_unref(value);
        HF_IGNORE(hf_sleep(hf_seconds(3)));
        HF_IGNORE(hf_depot_invalidate(depot, key_of("a"), .hard = true));
        HF_IGNORE(hf_sleep(hf_seconds(3)));
    }
    end_failing(before);
    if (depot == NULL) {
        HF_TRY(hf_depot_open("users", &depot, .subscribe = subscribe, .decode = decode));
    }
    if (watcher == NULL) {
        HF_TRY(hf_depot_watch(depot, key_of("a"), &watcher));
    }
    HF_TRY(hf_sleep(hf_minutes(2)));
    while (hf_watcher_next(watcher, &event, .timeout = hf_milliseconds(1)) == HF_OK) {
        hf_value_unref(event.value);
    }
    hf_status next = hf_watcher_next(watcher, &event, .timeout = hf_minutes(1)); /* it goes on */
    HF_CHECK_SAY(next == HF_OK && event.kind == HF_DEPOT_DATA, "the subscription has stopped: %s",
                 hf_status_name(next));
    if (next == HF_OK) {
        hf_value_unref(event.value);
    }
    HF_CHECK(hf_watcher_close(watcher) == HF_OK);
    return hf_depot_close(depot);
}

/* ---- Without memory for a while ---------------------------------------------------------------------------------- */

static struct {
    int begun;
    int looks; /* of the driver, while there is no memory */
    bool has_none;
} line;

/* The driver asks for the origin each time that it looks whether a subscription may begin. */
static unsigned origin_of(void *state, hf_depot_key key)
{
    enum { TOO_OFTEN = 1000 };
    (void)state;
    (void)key;
    if (line.has_none && ++line.looks == TOO_OFTEN) {
        hf_sim_fail_allocation(run.env, 0, false); /* else the test would not end */
    }
    return 0;
}

static hf_status follow_line(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    line.begun++;
    return subscribe(state, request, reply);
}

/* The subscription ends while nothing can be allocated. */
static hf_status scene_none(void *arg)
{
    (void)arg;
    hf_depot *depot = NULL;
    hf_watcher *watcher = NULL;
    hf_depot_event event;
    memset(&line, 0, sizeof line);
    HF_TRY(hf_depot_open("users", &depot, .subscribe = follow_line, .origin_of = origin_of));
    HF_TRY(hf_depot_watch(depot, key_of("a"), &watcher));
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    HF_CHECK(line.begun == 1);
    line.has_none = true;
    hf_sim_fail_allocation(run.env, run.nth, true); /* at another point each time */
    HF_IGNORE(hf_depot_invalidate(depot, key_of("a")));
    HF_IGNORE(hf_sleep(hf_seconds(20)));
    HF_CHECK_SAY(line.looks < 100, "the driver looked %d times in 20 seconds", line.looks);
    hf_sim_fail_allocation(run.env, 0, false);
    line.has_none = false;
    HF_TRY(hf_sleep(hf_minutes(2)));
    while (hf_watcher_next(watcher, &event, .timeout = hf_milliseconds(1)) == HF_OK) {
        hf_value_unref(event.value);
    }
    hf_status next = hf_watcher_next(watcher, &event, .timeout = hf_minutes(1));
    HF_CHECK_SAY(next == HF_OK && event.kind == HF_DEPOT_DATA, "the subscription has stopped: %s",
                 hf_status_name(next));
    hf_value_unref(next == HF_OK ? event.value : NULL);
    HF_CHECK(hf_watcher_close(watcher) == HF_OK);
    return hf_depot_close(depot);
}

static void a_subscription_waits_for_memory_without_haste(void **state)
{
    (void)state;
    for (run.nth = 1; run.nth <= 30 && hf_checks_failed() == 0; run.nth++) {
        run.env = hf_sim_begin(run.nth);
        hf_runtime_options options = hf_sim_runtime_options(run.env, 1);
        HF_CHECK_SAY(hf_run_with(scene_none, NULL, &options) == HF_OK, "from allocation %d on", (int)run.nth);
        hf_sim_end(run.env, NULL);
    }
}

static void sweep(const char *what, hf_body scene)
{
    hf_op op;
    run.was_passed = false;
    for (run.nth = 1; !run.was_passed && hf_checks_failed() == 0; run.nth++) {
        hf_store *store = NULL;
        hf_op_init(&op);
        assert_int_equal(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store), HF_OK);
        run.env = hf_sim_begin(run.nth);
        hf_runtime_options options = hf_sim_runtime_options(run.env, 1);
        HF_CHECK_SAY(hf_run_with(scene, store, &options) == HF_OK, "%s, allocation %d", what, (int)run.nth);
        hf_sim_end(run.env, NULL);
        hf_store_close(store);
    }
    HF_CHECK(run.has_worked); /* the last time nothing failed */
    print_message("%s: %d allocations failed, one after the other\n", what, (int)run.nth - 2);
    assert_true(run.nth > 40);
}

static void every_allocation_of_many_keys_may_fail(void **state)
{
    (void)state;
    sweep("many keys, user's source, converters", scene_many);
}

static void every_allocation_of_subscriptions_may_fail(void **state)
{
    (void)state;
    sweep("subscriptions", scene_subscribe);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_allocation_of_many_keys_may_fail),
        cmocka_unit_test(every_allocation_of_subscriptions_may_fail),
        cmocka_unit_test(a_subscription_waits_for_memory_without_haste),
    };
    return hf_test_main("depot nomem read", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
