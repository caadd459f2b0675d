/* The worked traces of the depot: virtual time, jitter at its upper end, ttl of 5 minutes. */
#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "store/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- An origin --------------------------------------------------------------------------------------------------- */

typedef struct origin {
    hf_span takes; /* a fetch */
    hf_span push_takes;
    const char *value; /* NULL = there is none */
    const char *etag;
    bool is_down;
    int fetches, not_modified;
    int asked_with_etag;
    int pushes;
    const char *refuses; /* the push with this value meets a conflict ... */
    const char *theirs;  /* ... with this one */
    char pushed[64];
} origin;

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    o->fetches++;
    const char *value = o->value; /* as it was when the question arrived */
    if (o->takes.ns > 0) {
        HF_TRY(hf_sleep(o->takes));
    }
    if (o->is_down) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK, .message = "the line is dead");
    }
    if (value == NULL) {
        return HF_ERR_NOT_FOUND;
    }
    o->asked_with_etag += request->etag != NULL;
    if (request->etag != NULL && o->etag != NULL && strcmp(request->etag, o->etag) == 0) {
        o->not_modified++;
        return hf_reply_not_modified(reply);
    }
    if (o->etag != NULL) {
        HF_TRY(hf_reply_etag(reply, o->etag));
    }
    return hf_reply_value(reply, value, strlen(value));
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    origin *o = state;
    char data[64] = {0};
    memcpy(data, request->data != NULL ? request->data : "", request->len < 63 ? request->len : 63);
    o->pushes++;
    if (o->push_takes.ns > 0) {
        HF_TRY(hf_sleep(o->push_takes));
    }
    if (o->is_down) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK);
    }
    if (o->refuses != NULL && strcmp(data, o->refuses) == 0) {
        HF_TRY(hf_reply_value(reply, o->theirs, strlen(o->theirs)));
        HF_TRY(hf_reply_etag(reply, "theirs"));
        o->refuses = NULL;
        return HF_ERR_CONFLICT;
    }
    memcpy(o->pushed, data, sizeof data);
    return HF_OK;
}

static hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("acme", "user", id);
}

static bool is_text(const hf_value *value, const char *text)
{
    return value != NULL && hf_value_len(value) == strlen(text) &&
           memcmp(hf_value_data(value), text, strlen(text)) == 0;
}

static hf_status open_depot(origin *o, hf_depot **ret_depot)
{
    HF_TRY(hf_depot_open("users", ret_depot, .fetch = fetch, .push = push, .state = o, .stale_max = hf_minutes(10)));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}

#define GET(depot, id, value, ...)                                                                     \
    do {                                                                                               \
        hf_value *got_ = NULL;                                                                         \
        hf_status got_status_ = hf_depot_get(depot, key_of(id), &got_, __VA_ARGS__);                   \
        HF_CHECK_SAY(got_status_ == HF_OK && is_text(got_, value), "%s", hf_status_name(got_status_)); \
        hf_value_unref(got_);                                                                          \
    } while (0)

static hf_status get_status(hf_depot *depot, const char *id, hf_fresh fresh, hf_depot_info *info)
{
    hf_value *got = NULL;
    hf_status status = hf_depot_get(depot, key_of(id), &got, .fresh = fresh, .ret_info = info);
    hf_value_unref(got);
    return status;
}

/* ---- 1: a hundred askers, one fetch ------------------------------------------------------------------------------ */

static hf_status ask_one(void *arg)
{
    hf_depot *depot = arg;
    hf_depot_info info;
    int64_t before = hf_now(NULL).ns;
    GET(depot, "A", "v1", .ret_info = &info);
    HF_CHECK(hf_now(NULL).ns - before == hf_seconds(1).ns && info.place == HF_DEPOT_FETCHER);
    return HF_OK;
}

static hf_status trace_fetch(void *arg)
{
    (void)arg;
    origin o = {.takes = hf_seconds(1), .value = "v1", .etag = "x"};
    hf_depot_info info;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < 100; i++) {
            HF_TRY(hf_fork(scope, ask_one, depot));
        }
        HF_TRY(hf_join(scope));
    }
    HF_CHECK(o.fetches == 1);
    HF_TRY(hf_sleep(hf_seconds(1)));
    GET(depot, "A", "v1", .ret_info = &info);
    HF_CHECK(info.place == HF_DEPOT_MEMORY && info.age.ns == hf_seconds(1).ns && !info.is_stale &&
             strcmp(info.etag, "x") == 0);
    /* 6 minutes: the old one at once, and one refresh with its etag */
    HF_TRY(hf_sleep(hf_minutes(6)));
    GET(depot, "A", "v1", .ret_info = &info);
    HF_CHECK(info.is_stale);
    HF_TRY(hf_sleep(hf_milliseconds(1001)));
    HF_CHECK(o.fetches == 2 && o.not_modified == 1);
    GET(depot, "A", "v1", .ret_info = &info);
    HF_CHECK(info.age.ns == hf_milliseconds(1).ns && !info.is_stale);
    /* 6 minutes later the origin is down */
    o.is_down = true;
    o.takes = hf_nanoseconds(0);
    HF_TRY(hf_sleep(hf_minutes(6)));
    int64_t before = hf_now(NULL).ns;
    GET(depot, "A", "v1", .fresh = HF_FRESH_OR_STALE, .ret_info = &info);
    HF_CHECK(hf_now(NULL).ns - before == hf_milliseconds(600).ns && info.is_stale && o.fetches == 5);
    HF_TRY(hf_sleep(hf_milliseconds(400)));
    HF_CHECK(get_status(depot, "A", HF_FRESH_NOW, &info) == HF_ERR_UNAVAILABLE &&
             info.retry_after.ns == hf_milliseconds(1600).ns);
    /* two more keys fail: the breaker opens */
    HF_CHECK(get_status(depot, "B", HF_FRESH_CACHED, &info) == HF_ERR_IO);
    HF_CHECK(strstr(hf_error_text(), "the line is dead") != NULL);
    HF_CHECK(get_status(depot, "C", HF_FRESH_CACHED, &info) == HF_ERR_IO);
    int fetches = o.fetches;
    before = hf_now(NULL).ns;
    HF_CHECK(get_status(depot, "D", HF_FRESH_CACHED, &info) == HF_ERR_UNAVAILABLE);
    HF_CHECK(hf_now(NULL).ns == before && o.fetches == fetches && info.retry_after.ns == hf_seconds(30).ns);
    o.is_down = false;
    HF_TRY(hf_sleep(hf_seconds(30)));
    GET(depot, "D", "v1", .fresh = HF_FRESH_CACHED);
    GET(depot, "E", "v1", .fresh = HF_FRESH_CACHED);
    return HF_OK;
}

/* ---- 2: an invalidation under way -------------------------------------------------------------------------------- */

static hf_status ask_second(void *arg)
{
    GET(arg, "A", "new", .fresh = HF_FRESH_CACHED);
    return HF_OK;
}

static hf_status trace_invalidate(void *arg)
{
    (void)arg;
    origin o = {.takes = hf_milliseconds(500), .value = "old"};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, ask_second, depot));
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    HF_CHECK(o.fetches == 1);
    HF_TRY(hf_depot_invalidate(depot, key_of("A")));
    o.value = "new";
    HF_TRY(hf_join(scope));
    HF_CHECK(o.fetches == 2);
    /* a namespace: nothing from before is served */
    o.value = "newer";
    HF_TRY(hf_depot_invalidate_namespace(depot, "acme"));
    GET(depot, "A", "newer", .fresh = HF_FRESH_CACHED);
    o.value = "newest";
    HF_TRY(hf_depot_invalidate_all(depot, .hard = true));
    HF_CHECK(get_status(depot, "A", HF_FRESH_LOCAL, NULL) == HF_ERR_NOT_FOUND);
    GET(depot, "A", "newest", .fresh = HF_FRESH_CACHED);
    HF_TRY(hf_depot_invalidate(depot, key_of("A"), .hard = true));
    HF_CHECK(get_status(depot, "A", HF_FRESH_LOCAL, NULL) == HF_ERR_NOT_FOUND);
    return HF_OK;
}

/* ---- 3: writes --------------------------------------------------------------------------------------------------- */

static hf_status take_larger(void *state, const hf_value *base, const hf_value *mine, const hf_value *theirs,
                             hf_value **ret_value)
{
    (void)state;
    (void)base;
    char a = ((const char *)hf_value_data(mine))[0];
    char b = ((const char *)hf_value_data(theirs))[0];
    char larger = a > b ? a : b;
    return hf_value_copy(&larger, 1, ret_value);
}

static hf_status trace_conflict(bool merges)
{
    origin o = {.value = "1"};
    hf_depot_write *writes[2] = {NULL, NULL};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .fetch = fetch, .push = push, .state = &o, .merge = take_larger,
                         .on_conflict = merges ? HF_CONFLICT_MERGE : HF_CONFLICT_SERVER_WINS));
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_put(depot, key_of("A"), "2", 1, .ret_write = &writes[0]));
    GET(depot, "A", "2", .fresh = HF_FRESH_CACHED);
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_depot_put(depot, key_of("A"), "3", 1, .ret_write = &writes[1]));
    GET(depot, "A", "3", .fresh = HF_FRESH_CACHED);
    o.refuses = "3";
    o.theirs = "9";
    HF_TRY(hf_depot_online(depot, true));
    HF_CHECK(hf_depot_write_wait(writes[0]) == HF_OK);
    HF_CHECK(hf_depot_write_wait(writes[1], .timeout = hf_seconds(60)) == (merges ? HF_OK : HF_ERR_CONFLICT));
    GET(depot, "A", "9", .fresh = HF_FRESH_LOCAL);
    HF_CHECK(o.pushes == (merges ? 3 : 2));
    HF_CHECK(strcmp(o.pushed, merges ? "9" : "2") == 0);
    hf_depot_write_free(writes[0]);
    hf_depot_write_free(writes[1]);
    return HF_OK;
}

static hf_status trace_writes(void *arg)
{
    (void)arg;
    HF_TRY(trace_conflict(false));
    HF_TRY(trace_conflict(true));
    /* a fetch that lands under a pending write changes the base only */
    origin o = {.value = "1"};
    hf_depot_write *write = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
    o.push_takes = hf_seconds(2);
    HF_TRY(hf_depot_put(depot, key_of("A"), "2", 1, .ret_write = &write));
    o.value = "7";
    GET(depot, "A", "2", .fresh = HF_FRESH_NOW);
    HF_TRY(hf_depot_write_wait(write));
    GET(depot, "A", "2", .fresh = HF_FRESH_LOCAL);
    hf_depot_write_free(write);
    /* deleted: not found in all ways */
    HF_TRY(hf_depot_delete(depot, key_of("A"), .ret_write = &write));
    for (int fresh = HF_FRESH_CACHED; fresh <= HF_FRESH_LOCAL; fresh++) {
        HF_CHECK(get_status(depot, "A", (hf_fresh)fresh, NULL) == HF_ERR_NOT_FOUND);
    }
    HF_TRY(hf_depot_write_wait(write));
    hf_depot_write_free(write);
    HF_CHECK(get_status(depot, "A", HF_FRESH_CACHED, NULL) == HF_ERR_NOT_FOUND);
    return HF_OK;
}

/* ---- 4: watching ------------------------------------------------------------------------------------------------- */

static hf_status trace_watch(void *arg)
{
    (void)arg;
    origin o = {.value = "1", .takes = hf_milliseconds(10)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &watcher));
    hf_depot_event event;
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(event.kind == HF_DEPOT_LOADING);
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(event.kind == HF_DEPOT_DATA && is_text(event.value, "1"));
    hf_value_unref(event.value);
    uint64_t version = event.version;
    HF_TRY(hf_depot_online(depot, false));
    char text[16];
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        HF_TRY(hf_depot_put(depot, key_of("A"), text, strlen(text)));
    }
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(event.kind == HF_DEPOT_DATA && is_text(event.value, "999") && event.is_pending && event.version > version);
    hf_value_unref(event.value);
    HF_CHECK(hf_watcher_dropped(watcher) == 999);
    hf_depot_counts counts;
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK(counts.pending == 1 && counts.writes == 1000); /* within the same moment: one row */
    HF_TRY(hf_depot_online(depot, true));
    do {
        HF_TRY(hf_watcher_next(watcher, &event));
        HF_CHECK(event.kind == HF_DEPOT_DATA && is_text(event.value, "999"));
        hf_value_unref(event.value);
    } while (event.is_pending);
    HF_CHECK(o.pushes == 1 && strcmp(o.pushed, "999") == 0);
    HF_TRY(hf_depot_invalidate(depot, key_of("A"), .hard = true));
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(event.kind == HF_DEPOT_GONE);
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(event.kind == HF_DEPOT_DATA && is_text(event.value, "1"));
    hf_value_unref(event.value);
    HF_CHECK(hf_watcher_next(watcher, &event, .timeout = hf_seconds(1)) == HF_ERR_TIMEOUT);
    /* a key that the origin does not have */
    o.value = NULL;
    HF_AUTO(hf_watcher_close) hf_watcher *other = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("B"), &other));
    HF_TRY(hf_watcher_next(other, &event));
    HF_CHECK(event.kind == HF_DEPOT_LOADING);
    HF_TRY(hf_watcher_next(other, &event));
    HF_CHECK(event.kind == HF_DEPOT_ERROR && event.status == HF_ERR_NOT_FOUND && !event.served_stale);
    return HF_OK;
}

/* A merge that fails: the write is dead, and its waiter hears why. */
static hf_status refuse_to_merge(void *state, const hf_value *base, const hf_value *mine, const hf_value *theirs,
                                 hf_value **ret_value)
{
    (void)state;
    (void)base;
    (void)mine;
    (void)theirs;
    (void)ret_value;
    return HF_ERR_UNSUPPORTED;
}

static hf_status trace_merge(void *arg)
{
    (void)arg;
    origin o = {.value = "1", .refuses = "2", .theirs = "9"};
    hf_depot_write *write = NULL;
    hf_depot_counts counts;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .fetch = fetch, .push = push, .state = &o, .merge = refuse_to_merge,
                         .on_conflict = HF_CONFLICT_MERGE));
    HF_TRY(hf_depot_put(depot, key_of("A"), "2", 1, .ret_write = &write));
    HF_CHECK(hf_depot_write_wait(write) == HF_ERR_UNSUPPORTED);
    hf_depot_write_free(write);
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK(counts.dead == 1 && counts.pending == 1 && o.pushes == 1);
    return HF_OK;
}

/* ---- 5: over a restart ------------------------------------------------------------------------------------------- */

static hf_status open_on(origin *o, lent *store, hf_depot **ret_depot)
{
    hf_depot_options options = {.size = sizeof options, .fetch = fetch, .push = push, .state = o};
    HF_TRY(hf_depot_open_in("users", ret_depot, &options, &store->base));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}

static hf_status trace_restart(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
    origin o = {.value = "1", .etag = "x"};
    hf_depot_info info;
    uint64_t version = 0;
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, &store, &depot));
        GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
        GET(depot, "B", "1", .fresh = HF_FRESH_CACHED);
        GET(depot, "C", "1", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_depot_online(depot, false));
        HF_TRY(hf_depot_put(depot, key_of("A"), "2", 1));
        GET(depot, "A", "2", .fresh = HF_FRESH_LOCAL, .ret_info = &info);
        version = info.version;
        HF_TRY(hf_depot_invalidate(depot, key_of("B")));
        HF_TRY(hf_depot_online(depot, false));
    }
    HF_CHECK(o.pushes == 0 && o.fetches == 3);
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        o.push_takes = hf_seconds(1);
        HF_TRY(open_on(&o, &store, &depot));
        GET(depot, "A", "2", .fresh = HF_FRESH_CACHED, .ret_info = &info);
        HF_CHECK(info.is_pending && info.version == version);
        GET(depot, "C", "1", .fresh = HF_FRESH_CACHED, .ret_info = &info);
        HF_CHECK(info.place == HF_DEPOT_SOURCE);
        HF_CHECK(get_status(depot, "B", HF_FRESH_LOCAL, NULL) == HF_ERR_NOT_FOUND); /* DP3 */
        HF_TRY(hf_sleep(hf_seconds(2)));
        HF_CHECK(o.pushes == 1 && strcmp(o.pushed, "2") == 0);
        GET(depot, "A", "2", .fresh = HF_FRESH_LOCAL, .ret_info = &info);
        HF_CHECK(!info.is_pending);
        HF_TRY(hf_depot_invalidate_namespace(depot, "acme", .hard = true));
    }
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, &store, &depot));
        HF_CHECK(get_status(depot, "A", HF_FRESH_LOCAL, NULL) == HF_ERR_NOT_FOUND);
        HF_CHECK(get_status(depot, "C", HF_FRESH_LOCAL, NULL) == HF_ERR_NOT_FOUND);
        GET(depot, "C", "1", .fresh = HF_FRESH_CACHED);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

/* ---- 6: housekeeping --------------------------------------------------------------------------------------------- */

static size_t count_rows(hf_store *store)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_store_request scan = {.verb = HF_STORE_SCAN, .table = HF_TABLE_ENTRY, .key_end = hf_key_last(), .arena = &arena};
    hf_store_execute(store, &scan);
    HF_CHECK(scan.status == HF_OK);
    size_t count = scan.row_count;
    hf_arena_deinit(&arena);
    return count;
}

static hf_status trace_housekeeping(void *arg)
{
    (void)arg;
    enum { OLD = 150, NEW = 20 };
    hf_op op;
    hf_op_init(&op);
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
    origin o = {.value = "1"};
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, &store, &depot));
        char id[16];
        for (int i = 0; i < OLD; i++) {
            (void)snprintf(id, sizeof id, "old-%d", i);
            GET(depot, id, "1", .fresh = HF_FRESH_CACHED);
        }
        HF_TRY(hf_sleep(hf_days(29)));
        for (int i = 0; i < NEW; i++) {
            (void)snprintf(id, sizeof id, "new-%d", i);
            GET(depot, id, "1", .fresh = HF_FRESH_CACHED);
        }
        HF_TRY(hf_depot_online(depot, false));
        HF_TRY(hf_depot_put(depot, key_of("old-7"), "2", 1)); /* waits: it stays */
        HF_TRY(hf_sleep(hf_hours(25)));
        hf_depot_counts counts;
        HF_TRY(hf_depot_stat(depot, &counts));
        HF_CHECK(counts.forgotten == OLD - 1);
        HF_CHECK(get_status(depot, "old-8", HF_FRESH_LOCAL, NULL) == HF_ERR_NOT_FOUND);
        GET(depot, "old-7", "2", .fresh = HF_FRESH_LOCAL);
        GET(depot, "new-7", "1", .fresh = HF_FRESH_LOCAL);
        HF_TRY(hf_depot_invalidate_namespace(depot, "acme", .hard = true));
        HF_TRY(hf_sleep(hf_minutes(30)));
        GET(depot, "old-7", "2", .fresh = HF_FRESH_LOCAL);
    }
    HF_CHECK(count_rows(store.inner) == 1); /* of the write that waits */
    hf_store_close(store.inner);
    return HF_OK;
}

static hf_body trace;
static uint64_t trace_seeds = 200;

static void one_seed(uint64_t seed)
{
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 3), trace, NULL, NULL) == HF_OK);
}

static void simulated(const char *what, hf_body body)
{
    trace = body;
    hf_each_seed(what, trace_seeds, one_seed);
}

static void test_fetch(void **state)
{
    (void)state;
    simulated("fetch", trace_fetch);
}

static void test_invalidate(void **state)
{
    (void)state;
    simulated("invalidate", trace_invalidate);
}

static void test_writes(void **state)
{
    (void)state;
    simulated("writes", trace_writes);
}

static void test_watch(void **state)
{
    (void)state;
    simulated("watch", trace_watch);
}

static void test_restart(void **state)
{
    (void)state;
    simulated("restart", trace_restart);
}

static void test_merge(void **state)
{
    (void)state;
    simulated("merge", trace_merge);
}

static void test_housekeeping(void **state)
{
    (void)state;
    trace_seeds = 3;
    simulated("housekeeping", trace_housekeeping);
    trace_seeds = 200;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(test_fetch),        cmocka_unit_test(test_invalidate), cmocka_unit_test(test_writes),
    cmocka_unit_test(test_watch),        cmocka_unit_test(test_restart),    cmocka_unit_test(test_merge),
    cmocka_unit_test(test_housekeeping),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot traces", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
