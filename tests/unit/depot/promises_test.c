/* What a depot promises, S1 to S11 and what belongs to them, each on a whole depot. docs/promises.md has the sentences.
 * The others: streams_test.c (S12 to S22), corrections_test.c (C1 to C11), stress_test.c (S23), threads_test.c (S5). */
#include "rig.h"

#include "depot/fetching.h"

/* ---- Scopes ------------------------------------------------------------------------------------------------------ */

static origin scene_origin;

/* A fiber with a depot of its own, until it is canceled. */
static hf_status own_a_depot(void *arg)
{
    (void)arg;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(
        rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &scene_origin, .fetch_timeout = hf_hours(100)));
    HF_TRY(hf_depot_prefetch(depot, rig_key("A")));
    HF_TRY(hf_depot_prefetch(depot, rig_key("B")));
    HF_TRY(rig_put(depot, "C", "1"));
    return hf_sleep(hf_hours(50));
}

TRACE(S1_all_work_of_a_depot_belongs_to_the_scope_of_its_owner)
{
    scene_origin = (origin){.value = "v", .takes = hf_hours(10), .push_takes = hf_hours(10)};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    HF_TRY(hf_fork(scope, own_a_depot, NULL));
    HF_TRY(hf_sleep(hf_hours(1)));
    HF_CHECK(scene_origin.running == 2 && scene_origin.pushing == 1);
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    HF_CHECK(scene_origin.running == 0 && scene_origin.canceled == 2);
    HF_CHECK(scene_origin.pushing == 0 && scene_origin.pushes_canceled == 1);
    return HF_OK;
}

TRACE(S2_a_get_that_fails_leaves_the_gets_of_other_keys_running)
{
    origin o = {.is_named = true, .takes = hf_seconds(1), .is_down = true, .bad_id = "bad", .why = HF_REPLY_DENIED};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    rig_asker askers[] = {{.depot = depot, .id = "bad"}, {.depot = depot, .id = "good", .text = "good"}};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, rig_ask, &askers[0]));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    HF_TRY(hf_fork(scope, rig_ask, &askers[1]));
    HF_TRY(hf_join(scope));
    HF_CHECK(askers[0].status == HF_ERR_DENIED && askers[1].status == HF_OK);
    HF_CHECK(askers[1].took == hf_seconds(1).ns && o.canceled == 0);
    return HF_OK;
}

TRACE(S3_closing_a_depot_cancels_its_work_and_ends_those_who_wait)
{
    origin o = {.value = "v", .takes = hf_hours(1), .cleanup = hf_seconds(2)};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL; /* before the depot: it is closed under its fiber */
    HF_TRY(hf_scope_open(&scope));
    hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .fetch_timeout = hf_hours(2)));
    rig_asker asker = {.depot = depot, .id = "A"};
    HF_TRY(hf_fork(scope, rig_ask, &asker));
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, rig_key("B"), &watcher));
    rig_next(watcher, HF_DEPOT_LOADING, NULL, NULL);
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_CHECK(o.running == 2);
    int64_t before = rig_now();
    HF_TRY(hf_depot_close(depot));
    HF_CHECK(rig_now() - before == hf_seconds(2).ns); /* the fetches have cleaned up */
    HF_CHECK(o.running == 0 && o.canceled == 2 && o.cleaned == 2);
    HF_TRY(hf_join(scope));
    HF_CHECK(asker.status == HF_ERR_CLOSED);
    hf_depot_event event;
    HF_CHECK(hf_watcher_next(watcher, &event) == HF_ERR_CLOSED);
    return HF_OK;
}

/* ---- Where work runs --------------------------------------------------------------------------------------------- */

static hf_status note_place(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    hf_stats stats;
    (void)request;
    HF_TRY(hf_runtime_stats(NULL, &stats));
    *(uint64_t *)state = stats.pool_threads;
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_reply_value(reply, "v", 1);
}

TRACE(S4_X7_fetches_run_on_fibers_or_on_the_pool_that_the_caller_names)
{
    uint64_t threads = 99;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_TRY(hf_pool_new(&pool, .name = "io"));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = note_place, .state = &threads));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
        HF_CHECK(threads == 0);
    }
    hf_stats before;
    hf_stats after;
    HF_TRY(hf_runtime_stats(NULL, &before));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = note_place, .state = &threads, .on = pool));
        GET(depot, "A", "v", .fresh = HF_FRESH_CACHED);
        GET(depot, "B", "v", .fresh = HF_FRESH_CACHED);
        GET(depot, "B", "v", .fresh = HF_FRESH_CACHED);
    }
    HF_TRY(hf_runtime_stats(NULL, &after));
    HF_CHECK(threads > 0 && after.pool_calls - before.pool_calls == 2);
    return HF_OK;
}

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

TRACE(S6_one_key_does_not_wait_for_another)
{
    origin slow = {.is_named = true, .takes = hf_hours(1), .push_takes = hf_hours(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &slow, .fetch_timeout = hf_hours(2)));
    HF_TRY(hf_depot_prefetch(depot, rig_key("A"))); /* of A a fetch is under way, and a write */
    HF_TRY(rig_put(depot, "A", "1"));
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_CHECK(slow.running == 1 && slow.pushing == 1);
    int64_t before = rig_now();
    HF_TRY(rig_put(depot, "B", "2"));
    GET(depot, "B", "2", .fresh = HF_FRESH_CACHED);
    HF_TRY(hf_depot_invalidate(depot, rig_key("C"), .hard = true));
    slow.takes = slow.push_takes = hf_nanoseconds(0);
    GET(depot, "C", "C", .fresh = HF_FRESH_NOW);
    HF_TRY(hf_depot_put(depot, rig_key("D"), "4", 1, .mode = HF_DEPOT_ORIGIN_FIRST));
    HF_CHECK(rig_now() == before);
    return HF_OK;
}

TRACE(S7_M7_a_full_memory_drops_what_is_not_used_and_keeps_its_bound)
{
    origin o = {.is_named = true};
    char id[24];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .bytes_max = 16384));
    GET(depot, "hot", "hot", .fresh = HF_FRESH_CACHED);
    int hot = o.fetches;
    for (int i = 0; i < 300; i++) {
        GET(depot, "hot", "hot", .fresh = HF_FRESH_LOCAL);
        (void)snprintf(id, sizeof id, "cold-%d", i);
        GET(depot, id, id, .fresh = HF_FRESH_CACHED);
        hf_depot_counts counts = rig_counts(depot);
        HF_CHECK(counts.bytes <= 16384 && counts.entries > 0);
    }
    HF_CHECK(hot == 1 && o.fetches == 301);
    HF_CHECK(rig_get(depot, "cold-0", .fresh = HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
    GET(depot, "cold-0", "cold-0", .fresh = HF_FRESH_CACHED); /* asked for anew */
    HF_CHECK(o.fetches == 302);
    return HF_OK;
}

TRACE(S8_a_version_rises_when_something_is_seen_to_change_and_else_it_stays)
{
    origin o = {.value = "v", .etag = "x"};
    hf_depot_info info = {0};
    uint64_t version = 0;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
    static const struct {
        const char *put; /* NULL = fetched */
        const char *value;
        int rises;
    } STEPS[] = {{NULL, "v", 1}, {NULL, "v", 0}, {"w", "w", 1}, {"w", "w", 0}, {"x", "x", 1}};
    for (size_t i = 0; i < HF_COUNT_OF(STEPS); i++) {
        if (STEPS[i].put != NULL) {
            HF_TRY(rig_put(depot, "A", STEPS[i].put));
        }
        GET(depot, "A", STEPS[i].value, .fresh = STEPS[i].put != NULL ? HF_FRESH_LOCAL : HF_FRESH_NOW,
            .ret_info = &info);
        HF_CHECK_SAY(info.version - version == (uint64_t)STEPS[i].rises, "step %zu: %d after %d", i, (int)info.version,
                     (int)version);
        version = info.version;
    }
    return HF_OK;
}

TRACE(S9_the_values_of_memory_and_their_counts_change_together)
{
    origin o = {.is_named = true};
    char id[24];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
    for (uint64_t i = 1; i <= 50; i++) {
        (void)snprintf(id, sizeof id, "k%d", (int)i);
        GET(depot, id, id, .fresh = HF_FRESH_CACHED);
        hf_depot_counts counts = rig_counts(depot);
        HF_CHECK(counts.entries == i && counts.bytes > i * sizeof(hf_snap));
    }
    HF_TRY(hf_depot_trim(depot, 4096));
    hf_depot_counts counts = rig_counts(depot);
    HF_CHECK(counts.bytes <= 4096 && counts.entries < 50 && counts.entries > 0);
    HF_TRY(hf_depot_trim(depot, 0));
    counts = rig_counts(depot);
    HF_CHECK(counts.bytes == 0 && counts.entries == 0);
    GET(depot, "k1", "k1", .fresh = HF_FRESH_CACHED);
    HF_CHECK(rig_counts(depot).entries == 1);
    return HF_OK;
}

/* ---- Flights ----------------------------------------------------------------------------------------------------- */

enum { MANY = 100 };

static hf_status ask_together(hf_depot *depot, rig_asker *askers, int count)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < count; i++) {
        askers[i].depot = depot;
        askers[i].id = "A";
        HF_TRY(hf_fork(scope, rig_ask, &askers[i]));
    }
    return hf_join(scope);
}

TRACE(S10_S17_a_hundred_gets_share_one_fetch_with_its_value_or_its_failure)
{
    static rig_asker askers[MANY];
    origin o = {.value = "v", .takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .retries = HF_OFF));
    memset(askers, 0, sizeof askers);
    HF_TRY(ask_together(depot, askers, MANY));
    HF_CHECK(o.fetches == 1 && rig_counts(depot).joined == MANY - 1);
    for (int i = 0; i < MANY; i++) {
        HF_CHECK(askers[i].status == HF_OK && askers[i].took == hf_seconds(1).ns);
    }
    o.is_down = true; /* a failure is shared, too, and the next get begins anew */
    memset(askers, 0, sizeof askers);
    for (int i = 0; i < MANY; i++) {
        askers[i].options.fresh = HF_FRESH_NOW;
    }
    HF_TRY(ask_together(depot, askers, MANY));
    HF_CHECK(o.fetches == 2);
    for (int i = 0; i < MANY; i++) {
        HF_CHECK(askers[i].status == HF_ERR_IO);
    }
    o.is_down = false;
    o.value = "w";
    GET(depot, "A", "w", .fresh = HF_FRESH_NOW, .force = true);
    HF_CHECK(o.fetches == 3);
    return HF_OK;
}

TRACE(S10_a_fetch_that_is_canceled_is_canceled_for_all_who_wait)
{
    static rig_asker askers[10];
    origin o = {.is_down = true, .returns = HF_ERR_CANCELED, .takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    for (int i = 0; i < 10; i++) {
        askers[i] = (rig_asker){.depot = depot, .id = "A"};
        HF_TRY(hf_fork(scope, rig_ask, &askers[i]));
    }
    HF_IGNORE(hf_join(scope));
    HF_CHECK(o.fetches == 1);
    for (int i = 0; i < 10; i++) {
        HF_CHECK(askers[i].status == HF_ERR_CANCELED);
    }
    o.is_down = false;
    o.value = "v";
    GET(depot, "A", "v", .fresh = HF_FRESH_CACHED); /* it was no failure: nothing is put off */
    return HF_OK;
}

TRACE(S11_C10_keys_to_which_nothing_happens_take_no_room)
{
    origin o = {.is_named = true};
    char id[24];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .bytes_max = 8192,
                    .coalesce = HF_SPAN_OFF));
    for (int i = 0; i < 1200; i++) {
        (void)snprintf(id, sizeof id, "k%d", i);
        switch (i % 4) {
        case 0:
            GET(depot, id, id, .fresh = HF_FRESH_CACHED);
            break;
        case 1:
            HF_TRY(rig_put(depot, id, "w"));
            break;
        case 2: {
            HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
            HF_TRY(hf_depot_watch(depot, rig_key(id), &watcher, .mode = HF_FLOW_DROP_OLDEST));
            rig_next(watcher, HF_DEPOT_LOADING, NULL, NULL);
            rig_next(watcher, HF_DEPOT_DATA, id, NULL);
            break;
        }
        default:
            HF_TRY(hf_depot_invalidate(depot, rig_key(id), .hard = true));
            break;
        }
    }
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(depot->slots.count == 0 && depot->spaces.count == 1 && depot->timers.count == 0);
    hf_depot_counts counts = rig_counts(depot);
    HF_CHECK(counts.flights == 0 && counts.watchers == 0 && counts.pending == 0 && counts.bytes <= 8192);
    return HF_OK;
}

/* ---- Three waiters ----------------------------------------------------------------------------------------------- */

TRACE(N8_X4_the_last_waiter_out_cancels_the_fetch_and_a_new_caller_starts_another)
{
    origin o = {.is_numbered = true, .takes = hf_seconds(5), .cleanup = hf_seconds(2)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    rig_asker askers[3];
    hf_scope *scopes[3];
    for (int i = 0; i < 3; i++) {
        askers[i] = (rig_asker){.depot = depot, .id = "A"};
        HF_TRY(hf_scope_open(&scopes[i], .join = HF_JOIN_DISCARD));
        HF_TRY(hf_fork(scopes[i], rig_ask, &askers[i]));
    }
    HF_TRY(hf_sleep(hf_seconds(1)));
    for (int i = 2; i >= 0; i--) {
        HF_CHECK(o.running == 1 && o.canceled == 0); /* not before the last one */
        HF_CHECK(hf_scope_close(scopes[i]) == HF_OK);
        HF_CHECK(askers[i].status == HF_ERR_CANCELED);
        HF_TRY(hf_sleep(hf_milliseconds(10)));
    }
    HF_CHECK(o.canceled == 1 && o.cleaned == 0 && o.running == 1); /* it cleans up */
    int64_t before = rig_now();
    GET(depot, "A", "2", .fresh = HF_FRESH_CACHED); /* the key is free at once */
    HF_CHECK(rig_now() - before == hf_seconds(5).ns && o.fetches == 2 && o.running_max == 2 && o.cleaned == 1);
    return HF_OK;
}

TRACE(DP7_those_who_join_a_fetch_without_the_driver_are_counted)
{
    origin o = {.is_numbered = true, .takes = hf_seconds(5)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
    rig_asker askers[3];
    hf_scope *scopes[3];
    for (int i = 0; i < 3; i++) {
        askers[i] = (rig_asker){.depot = depot, .id = "A", .text = "1"};
        HF_TRY(hf_scope_open(&scopes[i], .join = HF_JOIN_DISCARD));
    }
    for (int i = 2; i >= 0; i--) { /* the last one begins the fetch, and leaves first */
        HF_TRY(hf_fork(scopes[i], rig_ask, &askers[i]));
        HF_TRY(hf_sleep(hf_milliseconds(10)));
    }
    HF_CHECK(depot->boarded_count == 2);
    rig_asker local = {.depot = depot, .id = "A", .options = {.fresh = HF_FRESH_LOCAL}};
    HF_TRY(rig_ask(&local)); /* it does not join: its turn of the driver counts the others */
    HF_CHECK(local.status == HF_ERR_NOT_FOUND && depot->boarded_count == 0 && depot->open_flight->holders == 3);
    rig_asker late = {.depot = depot, .id = "A"};
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    HF_TRY(hf_fork(scope, rig_ask, &late));
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    HF_CHECK(depot->boarded_count == 1);
    HF_CHECK(hf_scope_close(scope) == HF_OK && late.status == HF_ERR_CANCELED); /* nobody had counted it */
    HF_CHECK(depot->boarded_count == 0 && depot->open_flight->holders == 3);
    for (int i = 2; i > 0; i--) {
        HF_CHECK(hf_scope_close(scopes[i]) == HF_OK && askers[i].status == HF_ERR_CANCELED);
        HF_CHECK(o.running == 1 && o.canceled == 0);
    }
    HF_CHECK(hf_join(scopes[0]) == HF_OK && hf_scope_close(scopes[0]) == HF_OK && askers[0].status == HF_OK);
    hf_depot_counts counts = rig_counts(depot);
    HF_CHECK_SAY(o.fetches == 1 && counts.misses == 3 && counts.joined == 2 && depot->slots.count == 0,
                 "%d fetches, %llu misses, %llu joined", o.fetches, (unsigned long long)counts.misses,
                 (unsigned long long)counts.joined);
    return HF_OK;
}

TRACE(N9_X6_a_key_that_is_held_is_never_dropped_though_memory_has_no_room)
{
    enum { HELD = 200 };
    static hf_watcher *watchers[HELD];
    origin o = {.is_named = true};
    char id[24];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .bytes_max = 2000));
    HF_TRY(hf_depot_online(depot, false));
    for (int i = 0; i < HELD; i++) { /* each has a watcher, and a write that waits */
        (void)snprintf(id, sizeof id, "k%d", i);
        HF_TRY(rig_put(depot, id, id));
        HF_TRY(hf_depot_watch(depot, rig_key(id), &watchers[i]));
    }
    HF_CHECK(depot->slots.count == HELD && rig_counts(depot).bytes <= 2000);
    for (int i = 0; i < HELD; i++) {
        (void)snprintf(id, sizeof id, "k%d", i);
        GET(depot, id, id, .fresh = HF_FRESH_LOCAL);
        rig_next(watchers[i], HF_DEPOT_DATA, id, NULL);
    }
    HF_CHECK(depot->slots.count == HELD); /* one of each, not two */
    HF_TRY(hf_depot_online(depot, true));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.pushes == HELD);
    for (int i = 0; i < HELD; i++) {
        HF_CHECK(hf_watcher_close(watchers[i]) == HF_OK);
    }
    HF_CHECK(depot->slots.count == 0);
    return HF_OK;
}

TRACE(X5_a_cancel_is_a_status_of_its_own_and_counts_as_no_failure)
{
    origin o = {.is_down = true, .returns = HF_ERR_CANCELED};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
    for (int i = 0; i < 5; i++) { /* neither tried again, nor put off, nor against the breaker */
        HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_NOW) == HF_ERR_CANCELED);
        HF_CHECK(o.fetches == i + 1 && depot->breakers[0].failures == 0);
    }
    hf_depot_write *write = NULL;
    HF_TRY(hf_depot_put(depot, rig_key("B"), "1", 1, .ret_write = &write));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(rig_counts(depot).pending == 1 && rig_counts(depot).dead == 0);
    o.is_down = false;
    o.value = "v";
    GET(depot, "A", "v", .fresh = HF_FRESH_NOW);
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_online(depot, true));
    HF_CHECK(hf_depot_write_wait(write, .timeout = hf_minutes(1)) == HF_OK);
    hf_depot_write_free(write);
    return HF_OK;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(S1_all_work_of_a_depot_belongs_to_the_scope_of_its_owner),
    cmocka_unit_test(S2_a_get_that_fails_leaves_the_gets_of_other_keys_running),
    cmocka_unit_test(S3_closing_a_depot_cancels_its_work_and_ends_those_who_wait),
    cmocka_unit_test(S4_X7_fetches_run_on_fibers_or_on_the_pool_that_the_caller_names),
    cmocka_unit_test(S6_one_key_does_not_wait_for_another),
    cmocka_unit_test(S7_M7_a_full_memory_drops_what_is_not_used_and_keeps_its_bound),
    cmocka_unit_test(S8_a_version_rises_when_something_is_seen_to_change_and_else_it_stays),
    cmocka_unit_test(S9_the_values_of_memory_and_their_counts_change_together),
    cmocka_unit_test(S10_S17_a_hundred_gets_share_one_fetch_with_its_value_or_its_failure),
    cmocka_unit_test(S10_a_fetch_that_is_canceled_is_canceled_for_all_who_wait),
    cmocka_unit_test(S11_C10_keys_to_which_nothing_happens_take_no_room),
    cmocka_unit_test(DP7_those_who_join_a_fetch_without_the_driver_are_counted),
    cmocka_unit_test(N8_X4_the_last_waiter_out_cancels_the_fetch_and_a_new_caller_starts_another),
    cmocka_unit_test(N9_X6_a_key_that_is_held_is_never_dropped_though_memory_has_no_room),
    cmocka_unit_test(X5_a_cancel_is_a_status_of_its_own_and_counts_as_no_failure),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot promises", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
