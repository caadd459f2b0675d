/* What hurt the users of another store of this kind, as its issues tell: a regression test for each. */
#include "rig.h"

TRACE(Store86_many_keys_one_after_the_other_do_not_hang)
{
    enum { KEYS = 3000 };
    origin o = {.is_named = true};
    char id[16];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .fetch_max = 2, .bytes_max = 32768));
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(id, sizeof id, "k%d", i);
        GET(depot, id, id, .fresh = HF_FRESH_CACHED, .timeout = hf_seconds(1));
    }
    HF_CHECK(o.fetches == KEYS && o.running_max <= 2);
    return HF_OK;
}

TRACE(Store225_a_fetch_that_is_late_writes_nothing_after_everything_was_cleared)
{
    lent store;
    origin o = {.value = "secret", .takes = hf_seconds(5)};
    HF_TRY(rig_store(&store));
    for (int life = 0; life < 2; life++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o));
        if (life == 0) {
            HF_TRY(hf_depot_prefetch(depot, rig_key("A")));
            HF_TRY(hf_sleep(hf_seconds(1)));
            HF_CHECK(o.running == 1);
            HF_TRY(hf_depot_invalidate_all(depot, .hard = true)); /* the user logs out */
            HF_TRY(hf_depot_online(depot, false));
            HF_TRY(hf_sleep(hf_minutes(1)));
        }
        HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
        HF_TRY(hf_depot_trim(depot, 0));
        HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

TRACE(Store254_Store280_Store549_a_shared_fetch_that_fails_is_told_to_everybody_who_waits)
{
    origin o = {.is_down = true, .takes = hf_seconds(1)};
    rig_asker askers[8];
    hf_watcher *watchers[2];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .retries = HF_OFF));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 2; i++) {
        HF_TRY(hf_depot_watch(depot, rig_key("A"), &watchers[i]));
        rig_next(watchers[i], HF_DEPOT_LOADING, NULL, NULL);
    }
    for (int i = 0; i < 8; i++) {
        askers[i] = (rig_asker){.depot = depot, .id = "A", .options = {.fresh = (hf_fresh)(i % 4)}};
        HF_TRY(hf_fork(scope, rig_ask, &askers[i]));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(o.fetches == 1);
    for (int i = 0; i < 8; i++) {
        HF_CHECK_SAY(askers[i].status == HF_ERR_IO && askers[i].took <= hf_seconds(1).ns, "asker %d: %s", i,
                     hf_status_name(askers[i].status));
    }
    for (int i = 0; i < 2; i++) { /* those who did not begin it, too, and once each */
        hf_depot_event event;
        rig_next(watchers[i], HF_DEPOT_ERROR, NULL, &event);
        HF_CHECK(event.status == HF_ERR_IO && !event.served_stale);
        rig_no_event(watchers[i]);
    }
    o.is_down = false;
    o.value = "v";
    GET(depot, "A", "v", .fresh = HF_FRESH_NOW, .force = true); /* and the watchers go on */
    for (int i = 0; i < 2; i++) {
        rig_next(watchers[i], HF_DEPOT_DATA, "v", NULL);
        HF_TRY(hf_watcher_close(watchers[i]));
    }
    return HF_OK;
}

TRACE(Store402_Store429_a_fresh_get_after_one_that_was_canceled_fetches)
{
    origin o = {.is_numbered = true, .takes = hf_seconds(5)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    for (int i = 0; i < 3; i++) {
        rig_asker asker = {.depot = depot, .id = "A", .options = {.fresh = HF_FRESH_NOW}};
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
        HF_TRY(hf_fork(scope, rig_ask, &asker));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_TRY(hf_scope_cancel(scope));
        HF_IGNORE(hf_join(scope));
        HF_CHECK(asker.status == HF_ERR_CANCELED);
    }
    GET(depot, "A", "4", .fresh = HF_FRESH_NOW);
    HF_CHECK(o.canceled == 3 && o.fetches == 4);
    return HF_OK;
}

TRACE(Store457_a_local_get_never_asks_the_origin)
{
    origin o = {.value = "v"};
    hf_depot_info info = {0};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND && o.fetches == 0);
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, rig_key("A"), &watcher, .fresh = HF_FRESH_LOCAL));
    rig_no_event(watcher);
    HF_CHECK(o.fetches == 0);
    GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
    rig_next(watcher, HF_DEPOT_DATA, "v", NULL); /* it sees what others fetch */
    HF_TRY(hf_sleep(hf_days(1)));
    GET(depot, "A", "v", .fresh = HF_FRESH_LOCAL, .ret_info = &info);
    HF_CHECK(info.is_stale && info.age.ns >= hf_days(1).ns && o.fetches == 1);
    return HF_OK;
}

TRACE(Store541_a_write_is_seen_by_watchers_without_a_file)
{
    origin o = {.value = "v", .push_takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
    static const hf_fresh FRESH[] = {HF_FRESH_CACHED, HF_FRESH_LOCAL};
    hf_watcher *watchers[2];
    GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
    for (int i = 0; i < 2; i++) {
        HF_TRY(hf_depot_watch(depot, rig_key("A"), &watchers[i], .fresh = FRESH[i], .mode = HF_FLOW_DROP_OLDEST));
        rig_next(watchers[i], HF_DEPOT_DATA, "v", NULL);
    }
    HF_TRY(rig_put(depot, "A", "mine"));
    for (int i = 0; i < 2; i++) {
        hf_depot_event event;
        rig_next(watchers[i], HF_DEPOT_DATA, "mine", &event);
        HF_CHECK(event.is_pending);
        rig_next(watchers[i], HF_DEPOT_DATA, "mine", &event); /* settled */
        HF_CHECK(!event.is_pending);
    }
    HF_TRY(hf_depot_delete(depot, rig_key("A")));
    for (int i = 0; i < 2; i++) {
        rig_next(watchers[i], HF_DEPOT_GONE, NULL, NULL);
        HF_TRY(hf_watcher_close(watchers[i]));
    }
    return HF_OK;
}

static hf_status ask_fresh(void *arg)
{
    for (int i = 0; i < 5; i++) {
        hf_status status = rig_get(arg, "A", .fresh = HF_FRESH_NOW);
        HF_CHECK_SAY(status == HF_OK, "%s", hf_status_name(status));
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

TRACE(Store636_fresh_gets_under_load_end_no_watcher)
{
    enum { WATCHERS = 10, ASKERS = 40 };
    origin o = {.is_numbered = true, .takes = hf_milliseconds(2)};
    hf_watcher *watchers[WATCHERS];
    char last[16];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    for (int i = 0; i < WATCHERS; i++) {
        HF_TRY(hf_depot_watch(depot, rig_key("A"), &watchers[i]));
    }
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < ASKERS; i++) {
            HF_TRY(hf_fork(scope, ask_fresh, depot));
        }
        HF_TRY(hf_join(scope));
    }
    (void)snprintf(last, sizeof last, "%d", o.fetches);
    HF_CHECK(o.running_max == 1 && rig_counts(depot).watchers == WATCHERS);
    for (int i = 0; i < WATCHERS; i++) {
        rig_next(watchers[i], HF_DEPOT_DATA, last, NULL); /* the last one */
        rig_no_event(watchers[i]);
    }
    GET(depot, "A", last, .fresh = HF_FRESH_LOCAL);
    for (int i = 0; i < WATCHERS; i++) {
        HF_TRY(hf_watcher_close(watchers[i]));
    }
    return HF_OK;
}

TRACE(Store731_what_is_cleared_is_fetched_again_for_open_watchers)
{
    static const struct {
        char what; /* k key, n namespace, a all */
        bool hard;
    } CASES[] = {{'k', false}, {'k', true}, {'n', false}, {'n', true}, {'a', false}, {'a', true}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        origin o = {.is_numbered = true};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, rig_key("A"), &watcher, .mode = HF_FLOW_DROP_OLDEST));
        rig_next(watcher, HF_DEPOT_LOADING, NULL, NULL);
        rig_next(watcher, HF_DEPOT_DATA, "1", NULL);
        HF_TRY(CASES[i].what == 'k'   ? hf_depot_invalidate(depot, rig_key("A"), .hard = CASES[i].hard)
               : CASES[i].what == 'n' ? hf_depot_invalidate_namespace(depot, "acme", .hard = CASES[i].hard)
                                      : hf_depot_invalidate_all(depot, .hard = CASES[i].hard));
        if (CASES[i].hard) {
            rig_next(watcher, HF_DEPOT_GONE, NULL, NULL);
        }
        rig_next(watcher, HF_DEPOT_DATA, "2", NULL);
        rig_no_event(watcher);
        HF_CHECK_SAY(o.fetches == 2, "case %zu", i);
    }
    return HF_OK;
}

TRACE(Store761_no_pending_write_is_dropped_or_acknowledged_by_an_older_one)
{
    origin o = {.value = "base", .push_takes = hf_seconds(5)};
    hf_depot_write *writes[2] = {NULL, NULL};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
    HF_TRY(hf_depot_put(depot, rig_key("A"), "1", 1, .ret_write = &writes[0]));
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    HF_CHECK(o.pushing == 1);
    HF_TRY(hf_depot_put(depot, rig_key("A"), "2", 1, .ret_write = &writes[1])); /* the first one is on its way */
    HF_TRY(hf_depot_write_wait(writes[0]));
    HF_CHECK(o.pushes >= 1 && rig_counts(depot).pending == 1);
    GET(depot, "A", "2", .fresh = HF_FRESH_LOCAL);
    HF_CHECK(hf_depot_write_wait(writes[1], .timeout = hf_seconds(1)) == HF_ERR_TIMEOUT); /* not by the other's */
    HF_TRY(hf_depot_write_wait(writes[1]));
    HF_CHECK(o.pushes == 2 && strcmp(o.pushed[1].data, "2") == 0 && rig_counts(depot).pending == 0);
    HF_CHECK(strcmp(o.pushed[0].write_id, o.pushed[1].write_id) != 0);
    hf_depot_write_free(writes[0]);
    hf_depot_write_free(writes[1]);
    return HF_OK;
}

TRACE(Store678_Store697_writes_that_were_not_sent_are_sent_after_a_restart)
{
    lent store;
    origin o = {.is_down = true};
    HF_TRY(rig_store(&store));
    for (int life = 0; life < 3; life++) { /* the origin is down in two of them */
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        o.is_down = life < 2;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        if (life == 0) {
            HF_TRY(rig_put(depot, "A", "1"));
        }
        HF_TRY(hf_sleep(hf_seconds(2 << 2 * life))); /* the pauses grow, also over a restart */
        GET(depot, "A", "1", .fresh = HF_FRESH_LOCAL);
        HF_CHECK(rig_counts(depot).pending == (life < 2) && o.pushes > life);
    }
    for (int i = 1; i < o.pushes; i++) {
        HF_CHECK(strcmp(o.pushed[i].write_id, o.pushed[0].write_id) == 0 && strcmp(o.pushed[i].data, "1") == 0);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

TRACE(Store320_memory_alone_can_be_cleared)
{
    lent store;
    origin o = {.value = "v"};
    hf_depot_info info = {0};
    HF_TRY(rig_store(&store));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_depot_trim(depot, 0));
        HF_CHECK(rig_counts(depot).entries == 0);
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED, .ret_info = &info);
        HF_CHECK(info.place == HF_DEPOT_SOURCE && o.fetches == 1);
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED, .ret_info = &info);
        HF_CHECK(info.place == HF_DEPOT_MEMORY && o.fetches == 1);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(Store86_many_keys_one_after_the_other_do_not_hang),
    cmocka_unit_test(Store225_a_fetch_that_is_late_writes_nothing_after_everything_was_cleared),
    cmocka_unit_test(Store254_Store280_Store549_a_shared_fetch_that_fails_is_told_to_everybody_who_waits),
    cmocka_unit_test(Store402_Store429_a_fresh_get_after_one_that_was_canceled_fetches),
    cmocka_unit_test(Store457_a_local_get_never_asks_the_origin),
    cmocka_unit_test(Store541_a_write_is_seen_by_watchers_without_a_file),
    cmocka_unit_test(Store636_fresh_gets_under_load_end_no_watcher),
    cmocka_unit_test(Store731_what_is_cleared_is_fetched_again_for_open_watchers),
    cmocka_unit_test(Store761_no_pending_write_is_dropped_or_acknowledged_by_an_older_one),
    cmocka_unit_test(Store678_Store697_writes_that_were_not_sent_are_sent_after_a_restart),
    cmocka_unit_test(Store320_memory_alone_can_be_cleared),
};

int main(int argc, char **argv)
{
    rig_seeds = 8;
    return hf_test_main("depot store5", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
