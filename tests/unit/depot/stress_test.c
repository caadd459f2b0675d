/* S23: the five classes of tests that a store of this kind needs, with a thousand fibers and more: load, cancels, races,
 * locks in any order, leaks. hf_sim_run checks after each that nothing is left allocated, open or running; a run that
 * is stuck fails. */
#include "rig.h"

#include "base/rng.h"

enum { FIBERS = 1200, KEYS = 40 };

typedef struct crowd {
    hf_depot *depot;
    int number;
    int gets, failures;
} crowd;

static const char *key_name(int number, char text[16])
{
    (void)snprintf(text, 16, "k%d", number);
    return text;
}

/* Runs `body` as `count` fibers. */
static hf_status gather(hf_depot *depot, hf_body body, crowd *all, int count)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < count; i++) {
        all[i] = (crowd){.depot = depot, .number = i};
        HF_TRY(hf_fork(scope, body, &all[i]));
    }
    return hf_join(scope);
}

/* ---- Load -------------------------------------------------------------------------------------------------------- */

static hf_status read_all_keys(void *arg)
{
    crowd *self = arg;
    char id[16];
    for (int i = 0; i < KEYS; i++) {
        (void)key_name((self->number + i) % KEYS, id);
        GET(self->depot, id, id, .fresh = HF_FRESH_CACHED);
    }
    return HF_OK;
}

TRACE(S23_stress_a_thousand_fibers_read_every_key_and_each_is_fetched_once)
{
    static crowd all[FIBERS];
    origin o = {.is_named = true, .takes = hf_milliseconds(10)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    HF_TRY(gather(depot, read_all_keys, all, FIBERS));
    hf_depot_counts counts = rig_counts(depot);
    HF_CHECK_SAY(o.fetches == KEYS && counts.hits_memory + counts.misses == (uint64_t)FIBERS * KEYS, "%d fetches",
                 o.fetches);
    return HF_OK;
}

static hf_status read_one_key(void *arg)
{
    crowd *self = arg;
    GET(self->depot, "one", "one", .fresh = HF_FRESH_CACHED);
    return HF_OK;
}

TRACE(S23_stress_DP1_ten_thousand_fibers_on_one_key_are_one_fetch)
{
    static crowd all[10000];
    origin o = {.is_named = true, .takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    HF_TRY(gather(depot, read_one_key, all, (int)(10000 / hf_test_scale())));
    HF_CHECK(o.fetches == 1 && rig_counts(depot).misses == 10000 / hf_test_scale());
    return HF_OK;
}

/* ---- Cancels ----------------------------------------------------------------------------------------------------- */

static hf_status ask_and_be_canceled(void *arg)
{
    crowd *self = arg;
    char id[16];
    hf_value *value = NULL;
    hf_status status = hf_depot_get(self->depot, rig_key(key_name(self->number % KEYS, id)), &value,
                                    .fresh = self->number % 2 == 0 ? HF_FRESH_NOW : HF_FRESH_CACHED);
    HF_CHECK_SAY(status == HF_OK || status == HF_ERR_CANCELED, "%s", hf_status_name(status));
    self->gets += status == HF_OK;
    self->failures += status == HF_ERR_CANCELED;
    hf_value_unref(value);
    return HF_OK;
}

TRACE(S23_cancellation_a_thousand_gets_are_canceled_at_any_moment_and_nothing_is_left)
{
    static crowd all[FIBERS];
    static hf_scope *scopes[FIBERS];
    origin o = {.is_named = true, .takes = hf_milliseconds(100)};
    int got = 0;
    int canceled = 0;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .fetch_max = 8));
    for (int i = 0; i < FIBERS; i++) {
        all[i] = (crowd){.depot = depot, .number = i};
        HF_TRY(hf_scope_open(&scopes[i], .join = HF_JOIN_DISCARD));
        HF_TRY(hf_fork(scopes[i], ask_and_be_canceled, &all[i]));
        if (i % 50 == 0) {
            HF_TRY(hf_sleep(hf_milliseconds(7)));
        }
    }
    for (int i = FIBERS - 1; i >= 0; i--) { /* scopes are closed in reverse order: closing cancels */
        HF_CHECK(hf_scope_close(scopes[i]) == HF_OK);
        got += all[i].gets;
        canceled += all[i].failures;
    }
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK_SAY(got > 50 && canceled > 50, "%d got it, %d were canceled", got, canceled);
    HF_CHECK(o.running == 0 && rig_counts(depot).flights == 0 && depot->slots.count == 0);
    HF_CHECK(depot->breakers[0].failures == 0); /* no cancel counts */
    GET(depot, "k0", "k0", .fresh = HF_FRESH_NOW);
    return HF_OK;
}

/* ---- Races ------------------------------------------------------------------------------------------------------- */

/* Everything at once on few keys. What is right is the model's matter (tests/unit/model); here nothing may hang, and
 * the last write must have arrived. */
static hf_status do_anything(void *arg)
{
    crowd *self = arg;
    hf_rng rng = {.state = (uint64_t)self->number * 77 + 5};
    char id[16];
    hf_depot *depot = self->depot;
    for (int i = 0; i < 3; i++) {
        hf_depot_key key = rig_key(key_name((int)hf_rng_below(&rng, 3), id));
        switch (hf_rng_below(&rng, 8)) {
        case 0:
        case 1:
            HF_CHECK(hf_depot_put(depot, key, "new", 3) == HF_OK);
            break;
        case 2:
            HF_CHECK(hf_depot_delete(depot, key) == HF_OK);
            break;
        case 3:
            HF_CHECK(hf_depot_invalidate(depot, key, .hard = i == 0) == HF_OK);
            break;
        case 4: {
            HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
            hf_depot_event event = {0};
            HF_CHECK(hf_depot_watch(depot, key, &watcher) == HF_OK);
            hf_status status = hf_watcher_next(watcher, &event, .timeout = hf_seconds(1));
            HF_CHECK(status == HF_OK || status == HF_ERR_TIMEOUT);
            hf_value_unref(status == HF_OK && event.kind == HF_DEPOT_DATA ? event.value : NULL);
            break;
        }
        default: {
            hf_value *value = NULL;
            hf_status status = hf_depot_get(depot, key, &value, .fresh = (hf_fresh)hf_rng_below(&rng, 5));
            HF_CHECK_SAY(status == HF_OK || status == HF_ERR_NOT_FOUND || status == HF_ERR_CONFLICT, "%s",
                         hf_status_name(status));
            hf_value_unref(value);
        }
        }
    }
    return HF_OK;
}

TRACE(S23_races_a_thousand_fibers_do_everything_at_once_on_three_keys)
{
    static crowd all[FIBERS];
    lent store;
    origin o = {.is_named = true, .takes = hf_milliseconds(1), .push_takes = hf_milliseconds(2)};
    HF_TRY(rig_store(&store));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .bytes_max = 2000));
        HF_TRY(gather(depot, do_anything, all, FIBERS));
        HF_TRY(hf_sleep(hf_minutes(1)));
        hf_depot_counts counts = rig_counts(depot);
        HF_CHECK(counts.pending == 0 && counts.flights == 0 && counts.watchers == 0 && counts.dead == 0);
        HF_CHECK(o.running == 0 && o.pushing == 0 && depot->slots.count == 0);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

/* ---- Locks ------------------------------------------------------------------------------------------------------- */

/* The value of a key needs those of the keys above it: fetches get from their own depot. */
static hf_status fetch_by_others(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    hf_depot *depot = *(hf_depot **)state;
    int number = 0;
    char id[16];
    char text[24];
    (void)snprintf(text, sizeof text, "%.*s", (int)request->key.id_len, (const char *)request->key.id);
    (void)sscanf(text, "k%d", &number);
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    for (int i = 1; i <= 2 && number + i < KEYS; i++) {
        hf_value *value = NULL;
        HF_TRY(hf_depot_get(depot, rig_key(key_name(number + i, id)), &value));
        hf_value_unref(value);
    }
    return hf_reply_value(reply, text, strlen(text));
}

static hf_status read_in_some_order(void *arg)
{
    crowd *self = arg;
    char id[16];
    for (int i = 0; i < 6; i++) { /* half of them upwards, half downwards */
        int number = self->number % 2 == 0 ? i * 6 : 30 - i * 6;
        (void)key_name(number, id);
        GET(self->depot, id, id, .fresh = HF_FRESH_CACHED);
        HF_CHECK(hf_depot_invalidate(self->depot, rig_key(key_name(KEYS + self->number, id))) == HF_OK);
    }
    return HF_OK;
}

TRACE(S23_deadlock_a_thousand_fibers_use_keys_in_any_order_and_fetches_use_other_keys)
{
    static crowd all[FIBERS];
    hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = fetch_by_others, .state = &depot));
    HF_TRY(gather(depot, read_in_some_order, all, FIBERS));
    hf_depot_counts counts = rig_counts(depot);
    HF_CHECK_SAY(counts.fetches == KEYS && counts.fetch_failures == 0, "%d fetches", (int)counts.fetches);
    return hf_depot_close(depot);
}

/* ---- Leaks ------------------------------------------------------------------------------------------------------- */

TRACE(S23_leaks_a_thousand_depots_come_and_go_with_work_under_way)
{
    enum { DEPOTS = 1000 };
    origin o = {.is_named = true, .takes = hf_hours(1), .push_takes = hf_hours(1)};
    for (int i = 0; i < DEPOTS; i++) {
        hf_watcher *watcher = NULL;
        hf_depot_write *write = NULL;
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .fetch_timeout = hf_hours(2)));
        HF_TRY(hf_depot_prefetch(depot, rig_key("a")));
        HF_TRY(hf_depot_watch(depot, rig_key("b"), &watcher));
        HF_TRY(hf_depot_put(depot, rig_key("c"), "1", 1, .ret_write = &write));
        if (i % 2 == 0) {
            HF_TRY(hf_sleep(hf_milliseconds(1)));
        }
        hf_depot_write_free(write); /* the write goes on */
        HF_TRY(hf_watcher_close(watcher));
    }
    HF_CHECK(o.running == 0 && o.pushing == 0);
    return HF_OK;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(S23_stress_a_thousand_fibers_read_every_key_and_each_is_fetched_once),
    cmocka_unit_test(S23_stress_DP1_ten_thousand_fibers_on_one_key_are_one_fetch),
    cmocka_unit_test(S23_cancellation_a_thousand_gets_are_canceled_at_any_moment_and_nothing_is_left),
    cmocka_unit_test(S23_races_a_thousand_fibers_do_everything_at_once_on_three_keys),
    cmocka_unit_test(S23_deadlock_a_thousand_fibers_use_keys_in_any_order_and_fetches_use_other_keys),
    cmocka_unit_test(S23_leaks_a_thousand_depots_come_and_go_with_work_under_way),
};

int main(int argc, char **argv)
{
    rig_seeds = 4;
    return hf_test_main("depot stress", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
