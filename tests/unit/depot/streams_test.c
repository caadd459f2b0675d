/* What a depot promises, S12 to S22: refreshes, watchers, cancels, back-pressure, each on a whole depot. */
#include "rig.h"

/* ---- Behind the caller's back ------------------------------------------------------------------------------------ */

TRACE(S12_an_old_value_is_served_at_once_and_fetched_behind_the_callers_back_unless_it_must_be_fresh)
{
    static const struct {
        hf_fresh fresh;
        int64_t within; /* seconds */
        bool waits;     /* for the fetch */
        bool fetches;
    } CASES[] = {
        {HF_FRESH_CACHED, 0, false, true}, {HF_FRESH_WITHIN, 3600, false, false}, {HF_FRESH_WITHIN, 10, true, true},
        {HF_FRESH_NOW, 0, true, true},     {HF_FRESH_OR_STALE, 0, true, true},    {HF_FRESH_LOCAL, 0, false, false},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        origin o = {.is_numbered = true};
        hf_depot_info info = {0};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
        GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_sleep(hf_minutes(6)));
        o.takes = hf_seconds(2);
        int64_t before = rig_now();
        GET(depot, "A", CASES[i].waits ? "2" : "1", .fresh = CASES[i].fresh, .within = hf_seconds(CASES[i].within),
            .ret_info = &info);
        HF_CHECK_SAY(rig_now() - before == (CASES[i].waits ? hf_seconds(2).ns : 0), "case %zu: when", i);
        HF_CHECK_SAY(info.is_stale == !CASES[i].waits, "case %zu: is_stale", i);
        HF_TRY(hf_sleep(hf_seconds(3)));
        HF_CHECK_SAY(o.fetches == 1 + CASES[i].fetches, "case %zu: %d fetches", i, o.fetches);
        GET(depot, "A", CASES[i].fetches ? "2" : "1", .fresh = HF_FRESH_LOCAL);
    }
    return HF_OK;
}

TRACE(S13_a_watcher_that_closes_cancels_the_fetch_that_it_began)
{
    origin o = {.value = "v", .takes = hf_hours(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .fetch_timeout = hf_hours(2)));
    hf_watcher *one = NULL;
    hf_watcher *two = NULL;
    HF_TRY(hf_depot_watch(depot, rig_key("A"), &one));
    HF_TRY(hf_depot_watch(depot, rig_key("A"), &two));
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_CHECK(o.fetches == 1 && o.running == 1);
    HF_TRY(hf_watcher_close(one));
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_CHECK(o.running == 1); /* the other one still wants it */
    HF_TRY(hf_watcher_close(two));
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_CHECK(o.running == 0 && o.canceled == 1 && rig_counts(depot).flights == 0);
    return HF_OK;
}

static hf_status watch_and_get(void *arg)
{
    hf_depot *depot = arg;
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, rig_key("A"), &watcher));
    hf_value *value = NULL;
    return hf_depot_get(depot, rig_key("B"), &value);
}

TRACE(S14_no_fetch_outlives_those_who_wanted_it)
{
    origin o = {.value = "v", .takes = hf_hours(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .fetch_timeout = hf_hours(2)));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    HF_TRY(hf_fork(scope, watch_and_get, depot));
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_CHECK(o.running == 2);
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(o.running == 0 && o.canceled == 2 && rig_counts(depot).flights == 0);
    /* a deadline of the caller is one as well */
    HF_CHECK(rig_get(depot, "C", .timeout = hf_seconds(1)) == HF_ERR_TIMEOUT);
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(o.running == 0 && o.canceled == 3);
    return HF_OK;
}

TRACE(S15_three_watchers_of_a_key_get_every_update_from_one_fetch)
{
    enum { UPDATES = 10 };
    origin o = {.value = "first", .takes = hf_seconds(1)};
    char text[16];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .coalesce = HF_SPAN_OFF));
    hf_watcher *watchers[3];
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_depot_watch(depot, rig_key("A"), &watchers[i], .mode = HF_FLOW_DROP_OLDEST, .capacity = 64));
    }
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(o.fetches == 1);
    HF_TRY(hf_depot_online(depot, false));
    for (int n = 0; n < UPDATES; n++) {
        (void)snprintf(text, sizeof text, "%d", n);
        HF_TRY(rig_put(depot, "A", text));
    }
    for (int i = 0; i < 3; i++) {
        hf_depot_event event;
        rig_next(watchers[i], HF_DEPOT_LOADING, NULL, NULL);
        rig_next(watchers[i], HF_DEPOT_DATA, "first", &event);
        uint64_t version = event.version;
        for (int n = 0; n < UPDATES; n++) {
            (void)snprintf(text, sizeof text, "%d", n);
            rig_next(watchers[i], HF_DEPOT_DATA, text, &event);
            HF_CHECK(event.version == ++version && event.is_pending);
        }
        rig_no_event(watchers[i]);
        HF_CHECK(hf_watcher_dropped(watchers[i]) == 0);
        HF_TRY(hf_watcher_close(watchers[i]));
    }
    HF_CHECK(o.fetches == 1);
    return HF_OK;
}

static hf_status get_strictly(void *arg)
{
    const rig_asker *asker = arg;
    hf_value *value = NULL;
    hf_status status = hf_depot_get(asker->depot, rig_key(asker->id), &value);
    hf_value_unref(value);
    return status;
}

TRACE(S16_several_keys_are_got_in_parallel_and_the_first_failure_ends_the_others)
{
    origin o = {.is_named = true, .takes = hf_seconds(2)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .fetch_timeout = hf_hours(2)));
    rig_asker askers[5];
    static const char *const IDS[] = {"a", "b", "c", "d", "bad"};
    for (int i = 0; i < 5; i++) {
        askers[i] = (rig_asker){.depot = depot, .id = IDS[i]};
    }
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        int64_t before = rig_now();
        for (int i = 0; i < 4; i++) {
            HF_TRY(hf_fork(scope, get_strictly, &askers[i]));
        }
        HF_TRY(hf_join(scope));
        HF_CHECK(rig_now() - before == hf_seconds(2).ns && o.fetches == 4); /* side by side */
    }
    HF_TRY(hf_depot_invalidate_all(depot, .hard = true));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    o.takes = hf_hours(1);
    for (int i = 0; i < 4; i++) {
        HF_TRY(hf_fork(scope, get_strictly, &askers[i]));
    }
    HF_TRY(hf_sleep(hf_seconds(1)));
    o.takes = hf_seconds(2);
    o.bad_id = "bad";
    o.is_down = true;
    o.why = HF_REPLY_DENIED;
    HF_TRY(hf_fork(scope, get_strictly, &askers[4]));
    int64_t before = rig_now();
    HF_CHECK(hf_join(scope) == HF_ERR_DENIED);
    HF_CHECK(rig_now() - before == hf_seconds(2).ns);
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(o.running == 0 && o.canceled == 4);
    return HF_OK;
}

/* ---- Cancels ----------------------------------------------------------------------------------------------------- */

typedef struct canceled {
    hf_depot *depot;
    hf_status status[4];
    hf_status after;
    bool has_cleaned;
} canceled;

static hf_status be_canceled(void *arg)
{
    canceled *c = arg;
    hf_value *value = NULL;
    hf_depot_write *write = NULL;
    hf_watcher *watcher = NULL;
    hf_depot_event event;
    HF_TRY(hf_depot_watch(c->depot, rig_key("W"), &watcher, .fresh = HF_FRESH_LOCAL));
    HF_TRY(hf_depot_put(c->depot, rig_key("P"), "1", 1, .ret_write = &write));
    c->status[0] = hf_depot_get(c->depot, rig_key("A"), &value);
    c->status[1] = hf_depot_get(c->depot, rig_key("A"), &value); /* every wait fails until the scope is left */
    c->status[2] = hf_watcher_next(watcher, &event);
    c->status[3] = hf_depot_write_wait(write);
    c->after = hf_canceled();
    hf_depot_write_free(write);
    c->has_cleaned = hf_watcher_close(watcher) == HF_OK; /* releasing works all the same */
    return HF_OK;
}

TRACE(S18_S19_a_cancel_is_not_lost_in_a_depot_and_cleanup_runs)
{
    origin o = {.value = "v", .takes = hf_hours(1), .push_takes = hf_hours(1), .cleanup = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .fetch_timeout = hf_hours(2)));
    canceled c = {.depot = depot};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    HF_TRY(hf_fork(scope, be_canceled, &c));
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    for (int i = 0; i < 4; i++) {
        HF_CHECK_SAY(c.status[i] == HF_ERR_CANCELED, "call %d: %s", i, hf_status_name(c.status[i]));
    }
    HF_CHECK(c.after == HF_ERR_CANCELED && c.has_cleaned);
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(o.canceled == 1 && o.cleaned == 1);        /* the fetch cleaned up, too */
    HF_CHECK(o.pushing == 1 && o.pushes_canceled == 0); /* the write is nobody's: it goes on */
    HF_CHECK(rig_counts(depot).watchers == 0 && depot->breakers[0].failures == 0);
    o.takes = hf_nanoseconds(0);
    GET(depot, "A", "v", .fresh = HF_FRESH_CACHED); /* nothing is put off by a cancel */
    return HF_OK;
}

/* ---- Loops and counters ------------------------------------------------------------------------------------------ */

TRACE(S20_housekeeping_goes_some_rows_at_a_time_and_lets_others_in_between)
{
    enum { ROWS = 400 };
    lent store;
    origin o = {.is_named = true};
    char id[16];
    HF_TRY(rig_store(&store));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o, .keep = hf_minutes(1)));
        for (int i = 0; i < ROWS; i++) {
            (void)snprintf(id, sizeof id, "k%03d", i);
            GET(depot, id, id, .fresh = HF_FRESH_CACHED);
        }
        HF_TRY(hf_sleep(hf_minutes(10)));
        uint64_t steps = 0;
        uint64_t most = 0;
        uint64_t before = rig_counts(depot).forgotten;
        for (int i = 0; i < 200 && before < ROWS; i++) { /* 10 ms at a time */
            HF_TRY(hf_sleep(hf_milliseconds(10)));
            int64_t began = rig_now();
            GET(depot, "other", "other", .fresh = HF_FRESH_NOW);
            HF_CHECK(rig_now() == began);
            uint64_t now = rig_counts(depot).forgotten;
            steps += now > before;
            most = now - before > most ? now - before : most;
            before = now;
        }
        HF_CHECK_SAY(before == ROWS && most <= 100 && steps >= 4, "%d rows in %d steps, %d in one", (int)before,
                     (int)steps, (int)most);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

TRACE(S21_each_watcher_has_its_own_back_pressure)
{
    enum { PUTS = 40 };
    origin o = {.value = "v"};
    char text[16];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(rig_put(depot, "A", "first"));
    HF_AUTO(hf_watcher_close) hf_watcher *latest = NULL;
    HF_AUTO(hf_watcher_close) hf_watcher *one = NULL;
    HF_AUTO(hf_watcher_close) hf_watcher *all = NULL;
    HF_TRY(hf_depot_watch(depot, rig_key("A"), &latest, .mode = HF_FLOW_CONFLATE));
    HF_TRY(hf_depot_watch(depot, rig_key("A"), &one, .mode = HF_FLOW_DROP_OLDEST, .capacity = 1));
    HF_TRY(hf_depot_watch(depot, rig_key("A"), &all, .mode = HF_FLOW_DROP_OLDEST, .capacity = PUTS + 1));
    for (int i = 1; i <= PUTS; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        HF_TRY(rig_put(depot, "A", text));
    }
    rig_next(latest, HF_DEPOT_DATA, "40", NULL);
    rig_no_event(latest);
    rig_next(one, HF_DEPOT_DATA, "40", NULL);
    rig_no_event(one);
    HF_CHECK(hf_watcher_dropped(latest) == PUTS && hf_watcher_dropped(one) == PUTS);
    rig_next(all, HF_DEPOT_DATA, "first", NULL);
    for (int i = 1; i <= PUTS; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        rig_next(all, HF_DEPOT_DATA, text, NULL);
    }
    HF_CHECK(hf_watcher_dropped(all) == 0);
    /* conflation keeps the newest value and the newest failure beside each other */
    o.is_down = true;
    HF_TRY(hf_depot_online(depot, true));
    HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_NOW) == HF_ERR_IO);
    HF_TRY(rig_put(depot, "A", "last"));
    hf_depot_event event;
    rig_next(latest, HF_DEPOT_ERROR, NULL, &event);
    HF_CHECK(event.status == HF_ERR_IO && event.served_stale);
    rig_next(latest, HF_DEPOT_DATA, "last", NULL);
    rig_no_event(latest);
    return HF_OK;
}

enum { KEYS = 7, ASKERS = 70 };

static hf_status ask_often(void *arg)
{
    hf_depot *depot = arg;
    static const char *const IDS[KEYS] = {"a", "b", "c", "d", "e", "f", "g"};
    for (int i = 0; i < KEYS; i++) {
        GET(depot, IDS[i], IDS[i], .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

TRACE(S22_the_counters_add_up)
{
    origin o = {.is_named = true, .takes = hf_milliseconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < ASKERS; i++) {
        HF_TRY(hf_fork(scope, ask_often, depot));
    }
    HF_TRY(hf_join(scope));
    hf_depot_counts counts = rig_counts(depot);
    HF_CHECK_SAY(counts.misses + counts.hits_memory == (uint64_t)KEYS * ASKERS, "%d misses, %d hits",
                 (int)counts.misses, (int)counts.hits_memory);
    HF_CHECK(counts.misses - counts.joined == KEYS && counts.fetches == KEYS && o.fetches == KEYS);
    HF_CHECK(counts.entries == KEYS && counts.flights == 0 && counts.fetch_failures == 0 && counts.stale_served == 0);
    return HF_OK;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(S12_an_old_value_is_served_at_once_and_fetched_behind_the_callers_back_unless_it_must_be_fresh),
    cmocka_unit_test(S13_a_watcher_that_closes_cancels_the_fetch_that_it_began),
    cmocka_unit_test(S14_no_fetch_outlives_those_who_wanted_it),
    cmocka_unit_test(S15_three_watchers_of_a_key_get_every_update_from_one_fetch),
    cmocka_unit_test(S16_several_keys_are_got_in_parallel_and_the_first_failure_ends_the_others),
    cmocka_unit_test(S18_S19_a_cancel_is_not_lost_in_a_depot_and_cleanup_runs),
    cmocka_unit_test(S20_housekeeping_goes_some_rows_at_a_time_and_lets_others_in_between),
    cmocka_unit_test(S21_each_watcher_has_its_own_back_pressure),
    cmocka_unit_test(S22_the_counters_add_up),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot streams", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
