/* Where other stores of this kind go wrong, and this one does not: C1 to C11 and X8, each on a whole depot. */
#include "rig.h"

/* ---- Ages, etags, back-off --------------------------------------------------------------------------------------- */

TRACE(C1_ages_are_the_depots_own_record_and_survive_a_restart)
{
    lent store;
    origin o = {.value = "v"};
    hf_depot_info info = {0};
    HF_TRY(rig_store(&store));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_sleep(hf_minutes(1)));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED, .ret_info = &info);
        HF_CHECK(info.age.ns == hf_minutes(1).ns && !info.is_stale && o.fetches == 1);
    }
    HF_TRY(hf_sleep(hf_minutes(1)));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o));
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, rig_key("A"), &watcher)); /* fresh: a stream does not fetch either */
        hf_depot_event event;
        rig_next(watcher, HF_DEPOT_DATA, "v", &event);
        HF_CHECK(event.age.ns == hf_minutes(2).ns && !event.is_stale);
        GET(depot, "A", "v", .fresh = HF_FRESH_WITHIN, .within = hf_minutes(2), .ret_info = &info);
        HF_CHECK(info.age.ns == hf_minutes(2).ns && o.fetches == 1);
        HF_TRY(hf_sleep(hf_milliseconds(180001))); /* past its 5 minutes */
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED, .ret_info = &info);
        HF_CHECK(info.is_stale);
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.fetches == 2);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

TRACE(C1_the_origins_max_age_comes_before_the_ttl)
{
    static const struct {
        int64_t max_age, ttl; /* seconds; -1 = HF_SPAN_OFF */
        int64_t fresh_until;
    } CASES[] = {{0, 300, 300}, {10, 300, 10}, {1000, 300, 1000}, {-1, 300, 0}, {0, 60, 60}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        origin o = {.value = "v"};
        hf_depot_info info = {0};
        o.max_age = CASES[i].max_age < 0 ? HF_SPAN_OFF : hf_seconds(CASES[i].max_age);
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .ttl = hf_seconds(CASES[i].ttl)));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_sleep(hf_seconds(CASES[i].fresh_until)));
        GET(depot, "A", "v", .fresh = HF_FRESH_LOCAL, .ret_info = &info);
        HF_CHECK_SAY(info.is_stale == (CASES[i].fresh_until == 0), "case %zu at its end", i);
        HF_TRY(hf_sleep(hf_nanoseconds(1)));
        GET(depot, "A", "v", .fresh = HF_FRESH_LOCAL, .ret_info = &info);
        HF_CHECK_SAY(info.is_stale, "case %zu behind its end", i);
    }
    return HF_OK;
}

TRACE(C2_not_modified_renews_the_age_and_the_etag_survives_a_restart)
{
    lent store;
    origin o = {.value = "v", .etag = "x"};
    hf_depot_info info = {0};
    HF_TRY(rig_store(&store));
    for (int life = 0; life < 2; life++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_sleep(hf_minutes(10)));
        int fetches = o.fetches;
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED); /* old: refreshed */
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.fetches == fetches + 1 && o.not_modified > life && o.conditional == o.not_modified);
        for (int i = 0; i < 10; i++) { /* and fresh from then on, not asked for at every read */
            GET(depot, "A", "v", .fresh = HF_FRESH_CACHED, .ret_info = &info);
            HF_CHECK(!info.is_stale && strcmp(info.etag, "x") == 0);
        }
        HF_TRY(hf_sleep(hf_minutes(1)));
        HF_CHECK(o.fetches == fetches + 1);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

TRACE(C3_back_off_is_kept_over_a_restart)
{
    lent store;
    origin o = {.is_down = true};
    hf_depot_info info = {0};
    HF_TRY(rig_store(&store));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o, .retries = HF_OFF));
        HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_CACHED) == HF_ERR_IO);
        HF_CHECK(rig_get(depot, "A", .ret_info = &info) == HF_ERR_UNAVAILABLE);
        HF_CHECK(info.retry_after.ns == hf_seconds(2).ns && o.fetches == 1);
    }
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        o.is_down = false;
        o.value = "v";
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o, .retries = HF_OFF));
        HF_TRY(hf_sleep(hf_milliseconds(1500)));
        HF_CHECK(rig_get(depot, "A", .ret_info = &info) == HF_ERR_UNAVAILABLE);
        HF_CHECK(info.retry_after.ns == hf_milliseconds(500).ns && o.fetches == 1);
        HF_TRY(hf_sleep(hf_milliseconds(500)));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

TRACE(C3_back_off_doubles_up_to_30_s_and_force_reads_through_it)
{
    origin o = {.is_down = true, .why = HF_REPLY_TLS};
    hf_depot_info info = {0};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    static const int64_t SECONDS[] = {2, 4, 8, 16, 30, 30};
    for (size_t i = 0; i < HF_COUNT_OF(SECONDS); i++) {
        depot->breakers[0] = (hf_breaker){0}; /* the breaker is another matter */
        HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_NOW, .force = true) == HF_ERR_IO);
        HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_NOW, .ret_info = &info) == HF_ERR_UNAVAILABLE);
        HF_CHECK_SAY(info.retry_after.ns == hf_seconds(SECONDS[i]).ns, "failure %zu: %lld ms", i + 1,
                     (long long)(info.retry_after.ns / 1000000));
    }
    o.is_down = false;
    o.value = "v";
    depot->breakers[0] = (hf_breaker){0};
    GET(depot, "A", "v", .fresh = HF_FRESH_NOW, .force = true);
    o.is_down = true;
    HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_NOW) == HF_ERR_IO); /* a success has cleared it */
    HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_NOW, .ret_info = &info) == HF_ERR_UNAVAILABLE);
    HF_CHECK(info.retry_after.ns == hf_seconds(2).ns);
    return HF_OK;
}

TRACE(C4_a_get_waits_for_a_value_as_fresh_as_asked_for)
{
    origin o = {.is_numbered = true, .takes = hf_seconds(1)};
    hf_depot_info info = {0};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .retries = HF_OFF, .stale_max = hf_minutes(30)));
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
    HF_TRY(hf_sleep(hf_seconds(30)));
    GET(depot, "A", "2", .fresh = HF_FRESH_WITHIN, .within = hf_seconds(10), .ret_info = &info);
    HF_CHECK(info.age.ns <= hf_seconds(10).ns); /* not the first one that comes by */
    HF_TRY(hf_sleep(hf_minutes(20)));
    GET(depot, "A", "3", .fresh = HF_FRESH_OR_STALE, .ret_info = &info);
    HF_CHECK(!info.is_stale);
    o.is_down = true;
    HF_TRY(hf_sleep(hf_minutes(20)));
    GET(depot, "A", "3", .fresh = HF_FRESH_OR_STALE, .ret_info = &info); /* only because the fetch failed */
    HF_CHECK(info.is_stale && o.fetches == 4);
    HF_TRY(hf_sleep(hf_minutes(20))); /* too old even for that */
    HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_OR_STALE) == HF_ERR_IO);
    return HF_OK;
}

/* ---- Refreshes --------------------------------------------------------------------------------------------------- */

static hf_status get_one_and_leave(void *arg)
{
    GET((hf_depot *)arg, "A", "1", .fresh = HF_FRESH_CACHED);
    return HF_OK;
}

TRACE(C5_a_refresh_that_a_get_began_belongs_to_the_depot)
{
    origin o = {.is_numbered = true};
    char id[16];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
    HF_TRY(hf_sleep(hf_minutes(6)));
    o.takes = hf_seconds(5);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, get_one_and_leave, depot));
    HF_TRY(hf_join(scope)); /* the only one who asked has gone */
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.running == 1 && rig_counts(depot).refreshes == 1);
    HF_TRY(hf_sleep(hf_seconds(5)));
    GET(depot, "A", "2", .fresh = HF_FRESH_CACHED);
    /* at most 64 at once: the others are served their old value, and refreshed by a later get */
    o.takes = hf_nanoseconds(0);
    for (int i = 0; i < 80; i++) {
        (void)snprintf(id, sizeof id, "k%d", i);
        HF_TRY(rig_get(depot, id, .fresh = HF_FRESH_CACHED));
    }
    HF_TRY(hf_sleep(hf_minutes(6)));
    o.takes = hf_seconds(5);
    o.running_max = 0;
    for (int i = 0; i < 80; i++) {
        (void)snprintf(id, sizeof id, "k%d", i);
        HF_TRY(rig_get(depot, id, .fresh = HF_FRESH_CACHED));
    }
    HF_TRY(hf_sleep(hf_seconds(6)));
    HF_CHECK(o.running_max == 64 && rig_counts(depot).refreshes == 65);
    return HF_OK;
}

TRACE(C5_a_refresh_that_a_watcher_began_ends_with_it)
{
    origin o = {.value = "v"};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
    HF_TRY(hf_sleep(hf_minutes(6)));
    o.takes = hf_seconds(5);
    hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, rig_key("A"), &watcher));
    hf_depot_event event;
    rig_next(watcher, HF_DEPOT_DATA, "v", &event);
    HF_CHECK(event.is_stale);
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.running == 1);
    HF_TRY(hf_watcher_close(watcher));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(o.running == 0 && o.canceled == 1);
    return HF_OK;
}

/* ---- Namespaces and invalidation --------------------------------------------------------------------------------- */

static hf_status local_of(hf_depot *depot, const char *ns)
{
    hf_value *value = NULL;
    hf_status status = hf_depot_get(depot, hf_depot_key_of(ns, "user", "A"), &value, .fresh = HF_FRESH_LOCAL);
    hf_value_unref(value);
    return status;
}

TRACE(C6_X8_a_namespace_is_invalidated_in_memory_and_in_the_file_and_no_other_is)
{
    static const char *const SPACES[] = {"one", "two", "three"};
    for (int hard = 0; hard < 2; hard++) {
        lent store;
        origin o = {.value = "v"};
        HF_TRY(rig_store(&store));
        for (int life = 0; life < 3; life++) {
            HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
            HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o));
            if (life == 0) {
                for (int i = 0; i < 3; i++) {
                    hf_value *value = NULL;
                    HF_TRY(hf_depot_get(depot, hf_depot_key_of(SPACES[i], "user", "A"), &value));
                    hf_value_unref(value);
                }
                HF_TRY(hf_depot_invalidate_namespace(depot, "two", .hard = hard != 0));
            }
            HF_CHECK(local_of(depot, "one") == HF_OK && local_of(depot, "three") == HF_OK);
            HF_CHECK(local_of(depot, "two") == HF_ERR_NOT_FOUND);
            HF_TRY(hf_depot_trim(depot, 0)); /* from the file, too */
            HF_CHECK(local_of(depot, "one") == HF_OK && local_of(depot, "two") == HF_ERR_NOT_FOUND);
        }
        hf_store_close(store.inner);
    }
    return HF_OK;
}

TRACE(C7_queries_that_look_alike_are_different_keys_and_the_order_of_terms_is_not)
{
    static const hf_depot_term QUERIES[][2] = {
        {{"a", "1|b=2"}, {NULL, NULL}}, {{"a", "1"}, {"b", "2"}}, {{"b", "2"}, {"a", "1"}}, {{"a1", ""}, {"b", "2"}}};
    origin o = {.is_numbered = true};
    static const char *const VALUES[] = {"1", "2", "2", "3"};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    for (size_t i = 0; i < HF_COUNT_OF(QUERIES); i++) {
        hf_depot_query_id id;
        hf_value *value = NULL;
        HF_TRY(hf_depot_query(QUERIES[i], QUERIES[i][1].name != NULL ? 2 : 1, &id));
        HF_TRY(hf_depot_get(depot, hf_depot_key_of_bytes("acme", "list", id.bytes, id.len), &value));
        HF_CHECK_SAY(rig_is_text(value, VALUES[i]), "query %zu", i);
        hf_value_unref(value);
    }
    HF_CHECK(o.fetches == 3);
    return HF_OK;
}

TRACE(C11_X8_a_soft_invalidation_keeps_the_value_for_its_etag_and_a_hard_one_deletes_it)
{
    lent store;
    origin o = {.value = "v", .etag = "x"};
    HF_TRY(rig_store(&store));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_depot_invalidate(depot, rig_key("A")));
        HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
        o.is_down = true; /* it is still good enough for OR_STALE */
        GET(depot, "A", "v", .fresh = HF_FRESH_OR_STALE);
        HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_CACHED) == HF_ERR_UNAVAILABLE);
        o.is_down = false;
        HF_TRY(hf_depot_trim(depot, 0));
        HF_TRY(hf_sleep(hf_minutes(1)));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
        HF_CHECK(o.not_modified == 1); /* its etag served */
        HF_TRY(hf_depot_invalidate(depot, rig_key("A"), .hard = true));
        o.is_down = true;
        HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_OR_STALE) == HF_ERR_IO);
        o.is_down = false;
        HF_TRY(hf_sleep(hf_minutes(1)));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
        HF_CHECK(o.not_modified == 1); /* there was nothing to ask with */
    }
    hf_store_close(store.inner);
    return HF_OK;
}

/* What a burst of fetches needed is kept for the next one, within a bound, and given back later. */
TRACE(DP8_spare_memory_has_a_bound_and_goes)
{
    enum { KEYS = 1200, SPARE_MAX = 1024 * 1024 };
    static hf_depot_key keys[KEYS];
    static hf_depot_result results[KEYS];
    static char ids[KEYS][12];
    lent store;
    origin o = {.is_named = true, .takes = hf_milliseconds(5)};
    HF_TRY(rig_store(&store));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .state = &o, .fetch_max = KEYS));
        for (int i = 0; i < KEYS; i++) {
            (void)snprintf(ids[i], sizeof ids[i], "%d", i);
            keys[i] = rig_key(ids[i]);
        }
        HF_TRY(hf_depot_get_many(depot, keys, KEYS, results));
        for (int i = 0; i < KEYS; i++) {
            HF_CHECK(results[i].status == HF_OK);
            hf_value_unref(results[i].value);
        }
        HF_TRY(hf_sleep(hf_seconds(1)));
        size_t least = HF_ASAN ? 0 : SPARE_MAX / 2; /* with the address sanitizer nothing is kept */
        HF_CHECK_SAY(depot->spare_bytes >= least, "%zu bytes", depot->spare_bytes);
        HF_CHECK(depot->spare_bytes <= SPARE_MAX);
        HF_TRY(hf_sleep(hf_minutes(11)));
        HF_CHECK_SAY(depot->spare_bytes < SPARE_MAX / 64, "%zu bytes", depot->spare_bytes);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

/* Nor from 1970: the origin has said nothing of the key yet. */
TRACE(C1_a_write_of_a_key_that_the_origin_never_spoke_of_has_no_age)
{
    origin o = {.is_down = true};
    hf_depot_info info = {0};
    hf_depot_event event;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, rig_key("A"), &watcher, .fresh = HF_FRESH_LOCAL));
    HF_TRY(rig_put(depot, "A", "mine"));
    rig_next(watcher, HF_DEPOT_DATA, "mine", &event);
    HF_CHECK(event.age.ns == 0 && event.is_pending && !event.is_stale);
    HF_TRY(hf_sleep(hf_minutes(1)));
    GET(depot, "A", "mine", .fresh = HF_FRESH_CACHED, .ret_info = &info);
    HF_CHECK(info.age.ns == 0 && info.is_pending && !info.is_stale);
    GET(depot, "A", "mine", .fresh = HF_FRESH_LOCAL, .ret_info = &info);
    HF_CHECK(info.age.ns == 0 && info.is_pending && !info.is_stale);
    return HF_OK;
}

/* ---- The file ---------------------------------------------------------------------------------------------------- */

static int entry_reads;

static hf_status counting_execute(hf_store *store, hf_store_request *request)
{
    entry_reads += request->verb == HF_STORE_GET && request->table == HF_TABLE_ENTRY;
    return lent_execute(store, request);
}

static const hf_store_ops COUNTING = {
    .name = "counting", .execute = counting_execute, .last_commit = lent_last, .close = lent_close};

/* A read of the file for each would cost more than all the rest. */
TRACE(S11_new_keys_are_not_looked_for_in_a_file_that_was_empty)
{
    enum { KEYS = 300 };
    lent store;
    char id[16];
    origin o = {.is_named = true};
    HF_TRY(rig_store(&store));
    store.base.ops = &COUNTING;
    for (int life = 0; life < 2; life++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        entry_reads = 0;
        for (int i = 0; i < KEYS; i++) {
            (void)snprintf(id, sizeof id, "%d%c", i, "ab"[life]);
            GET(depot, id, id, .fresh = HF_FRESH_CACHED);
        }
        HF_CHECK(o.fetches == KEYS * (life + 1));
        HF_CHECK_SAY(entry_reads <= (life == 0 ? 3 : KEYS), "%d reads",
                     entry_reads); /* a few look as if they were there */
        HF_CHECK(life == 0 || entry_reads == KEYS);
        HF_TRY(hf_depot_trim(depot, 0));
        for (int i = 0; i < KEYS; i++) {
            (void)snprintf(id, sizeof id, "%d%c", i, "ab"[life]);
            GET(depot, id, id, .fresh = HF_FRESH_LOCAL);
        }
        HF_TRY(hf_depot_delete(depot, rig_key("7a")));
        HF_TRY(hf_depot_trim(depot, 0));
        HF_CHECK(rig_get(depot, "7a", .fresh = HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
        HF_CHECK(o.fetches == KEYS * (life + 1));
        HF_TRY(hf_sleep(hf_seconds(1)));
    }
    hf_store_close(store.inner);
    return HF_OK;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(C1_ages_are_the_depots_own_record_and_survive_a_restart),
    cmocka_unit_test(C1_the_origins_max_age_comes_before_the_ttl),
    cmocka_unit_test(C2_not_modified_renews_the_age_and_the_etag_survives_a_restart),
    cmocka_unit_test(C3_back_off_is_kept_over_a_restart),
    cmocka_unit_test(C3_back_off_doubles_up_to_30_s_and_force_reads_through_it),
    cmocka_unit_test(C4_a_get_waits_for_a_value_as_fresh_as_asked_for),
    cmocka_unit_test(C5_a_refresh_that_a_get_began_belongs_to_the_depot),
    cmocka_unit_test(C5_a_refresh_that_a_watcher_began_ends_with_it),
    cmocka_unit_test(C6_X8_a_namespace_is_invalidated_in_memory_and_in_the_file_and_no_other_is),
    cmocka_unit_test(C7_queries_that_look_alike_are_different_keys_and_the_order_of_terms_is_not),
    cmocka_unit_test(C11_X8_a_soft_invalidation_keeps_the_value_for_its_etag_and_a_hard_one_deletes_it),
    cmocka_unit_test(DP8_spare_memory_has_a_bound_and_goes),
    cmocka_unit_test(C1_a_write_of_a_key_that_the_origin_never_spoke_of_has_no_age),
    cmocka_unit_test(S11_new_keys_are_not_looked_for_in_a_file_that_was_empty),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot corrections", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
