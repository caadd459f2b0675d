/* Creates, keys that get another name from the origin, their aliases, tombstones, and writes that an invalidation
 * drops, on virtual time. */
#include "depot/file.h"
#include "depot/outbox.h"
#include "unit/depot/script.h"

#include <time.h>

#define FAILED_ONCE                                         \
    {                                                       \
        .status = HF_ERR_FAILED, .failed = HF_REPLY_NETWORK \
    }
#define FAILED_FOR_GOOD                                    \
    {                                                      \
        .status = HF_ERR_FAILED, .failed = HF_REPLY_DENIED \
    }

static hf_depot_write *writes[6];

static void free_writes(void)
{
    for (size_t i = 0; i < HF_COUNT_OF(writes); i++) {
        hf_depot_write_free(writes[i]);
        writes[i] = NULL;
    }
}

static hf_depot_key key_of_id(const hf_depot_id *id)
{
    return hf_depot_key_of_bytes("acme", "user", id->bytes, id->len);
}

static hf_depot_key no_id(void)
{
    return hf_depot_key_of("acme", "user", NULL);
}

static bool is_id(const hf_depot_id *id, const char *text)
{
    return id->len == strlen(text) && memcmp(id->bytes, text, id->len) == 0;
}

static bool is_provisional(const char *text)
{
    bool is = strlen(text) == 27 && text[0] == '~';
    for (size_t i = 1; is && i < 27; i++) {
        is = text[i] >= 'a' && text[i] <= 'z';
    }
    return is;
}

static size_t count_rows(hf_table table)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_store_request scan = {.verb = HF_STORE_SCAN, .table = table, .key_end = hf_key_last(), .arena = &arena};
    hf_store_execute(store.inner, &scan);
    HF_CHECK(scan.status == HF_OK);
    size_t count = scan.row_count;
    hf_arena_deinit(&arena);
    return count;
}

/* ---- Creates ----------------------------------------------------------------------------------------------------- */

static hf_status creates(void *arg)
{
    (void)arg;
    origin o = {.answers = {{.key = "42", .etag = "x"}, {.key = "43", .value = "told"}, {.etag = "y"}, {.key = "44"}},
                .answer_count = 4};
    hf_depot_id id;
    hf_depot_id other;
    hf_depot_info info;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, NULL, &depot));
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_create(depot, no_id(), "new", 3, &id, .ret_write = &writes[0]));
    char text[40];
    copy_text(text, sizeof text, id.bytes, id.len);
    HF_CHECK(is_provisional(text) && is_at_hand(depot, key_of_id(&id), "new"));
    HF_TRY(hf_depot_write_key(writes[0], &other));
    HF_CHECK(is_id(&other, text) && rows_of(depot).verb[0] == HF_WRITE_CREATE);
    HF_TRY(hf_depot_online(depot, true));
    HF_TRY(hf_depot_write_wait(writes[0]));
    HF_TRY(hf_depot_write_key(writes[0], &other));
    HF_CHECK(is_id(&other, "42") && o.count == 1 && pushed(&o, 0, HF_WRITE_CREATE, text, "new"));
    HF_CHECK(is_at_hand(depot, key_of("42"), "new") && is_at_hand(depot, key_of_id(&id), "new"));
    hf_value *value = NULL;
    HF_TRY(hf_depot_get(depot, key_of_id(&id), &value, .ret_info = &info));
    hf_value_unref(value);
    HF_CHECK(strcmp(info.etag, "x") == 0 && !info.is_pending && o.fetches == 0);
    /* the origin says what it is now */
    HF_TRY(hf_depot_create(depot, no_id(), "mine", 4, &id, .ret_write = &writes[1]));
    HF_TRY(hf_depot_write_wait(writes[1]));
    HF_CHECK(is_at_hand(depot, key_of_id(&id), "told") && is_at_hand(depot, key_of("43"), "told"));
    /* it keeps the provisional id, or the caller's */
    HF_TRY(hf_depot_create(depot, no_id(), "kept", 4, &id, .ret_write = &writes[2]));
    HF_TRY(hf_depot_write_wait(writes[2]));
    HF_TRY(hf_depot_write_key(writes[2], &other));
    HF_CHECK(other.len == id.len && memcmp(other.bytes, id.bytes, id.len) == 0 &&
             is_at_hand(depot, key_of_id(&id), "kept"));
    /* origin first: the id is the final one */
    HF_TRY(hf_depot_create(depot, no_id(), "first", 5, &id, .mode = HF_DEPOT_ORIGIN_FIRST));
    HF_CHECK(is_id(&id, "44") && is_at_hand(depot, key_of("44"), "first"));
    HF_TRY(hf_depot_create(depot, key_of("45"), "own", 3, &id, .ret_write = &writes[3]));
    HF_TRY(hf_depot_write_wait(writes[3]));
    HF_CHECK(is_id(&id, "45") && pushed(&o, 4, HF_WRITE_CREATE, "45", "own"));
    free_writes();
    HF_CHECK(!has_store || count_rows(HF_TABLE_ALIAS) == 3);
    HF_CHECK(!has_store || count_rows(HF_TABLE_PENDING) == 0);
    return HF_OK;
}

/* A put within the span of coalescing becomes part of the create. */
static hf_status create_and_put(void *arg)
{
    (void)arg;
    origin o = {.answers = {{.key = "42"}}, .answer_count = 1};
    hf_depot_id id;
    hf_depot_options options = {.coalesce = hf_milliseconds(150)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, &options, &depot));
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_create(depot, no_id(), "a", 1, &id));
    HF_TRY(hf_depot_put(depot, key_of_id(&id), "b", 1));
    HF_TRY(hf_depot_online(depot, true));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.count == 1 && o.log[0].verb == HF_WRITE_CREATE && strcmp(o.log[0].data, "b") == 0);
    HF_CHECK(is_at_hand(depot, key_of("42"), "b"));
    return HF_OK;
}

/* ---- Another name ------------------------------------------------------------------------------------------------ */

/* Writes that wait get the new key, those that come by the old one as well; handles know it. */
static hf_status later_writes(void *arg)
{
    (void)arg;
    origin o = {.answers = {{.key = "42", .takes = hf_seconds(1)}, FAILED_ONCE}, .answer_count = 2};
    hf_depot_id id;
    hf_depot_id other;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, NULL, &depot));
    HF_TRY(hf_depot_create(depot, no_id(), "a", 1, &id, .ret_write = &writes[0]));
    hf_depot_key old = key_of_id(&id);
    HF_TRY(hf_depot_patch(depot, old, "b", 1, .ret_write = &writes[1]));
    HF_TRY(hf_depot_patch(depot, old, "c", 1, .ret_write = &writes[2]));
    HF_CHECK(is_at_hand(depot, old, "abc"));
    HF_TRY(hf_depot_write_wait(writes[0]));
    HF_CHECK(is_at_hand(depot, old, "abc") && is_at_hand(depot, key_of("42"), "abc"));
    HF_TRY(hf_depot_write_key(writes[2], &other));
    HF_CHECK(is_id(&other, "42"));
    HF_TRY(hf_depot_patch(depot, old, "d", 1, .ret_write = &writes[3]));
    HF_TRY(hf_depot_write_wait(writes[3]));
    HF_CHECK(is_at_hand(depot, old, "abcd") && is_at_hand(depot, key_of("42"), "abcd"));
    HF_CHECK(o.count == 5 && pushed(&o, 1, HF_WRITE_PATCH, "42", "b") && pushed(&o, 2, HF_WRITE_PATCH, "42", "b") &&
             pushed(&o, 3, HF_WRITE_PATCH, "42", "c") && pushed(&o, 4, HF_WRITE_PATCH, "42", "d"));
    HF_TRY(hf_depot_delete(depot, old, .ret_write = &writes[4]));
    HF_TRY(hf_depot_write_wait(writes[4]));
    HF_CHECK(is_at_hand(depot, key_of("42"), "-") && is_at_hand(depot, old, "-"));
    free_writes();
    return HF_OK;
}

static bool next_is(hf_watcher *watcher, hf_depot_event_kind kind, const char *text, uint64_t *version)
{
    hf_depot_event event = {.kind = HF_DEPOT_LOADING};
    if (hf_watcher_next(watcher, &event, .timeout = hf_seconds(5)) != HF_OK) {
        print_message("no event, instead of %d %s\n", (int)kind, text);
        return false;
    }
    bool is_right = event.kind == kind;
    if (is_right && kind == HF_DEPOT_REKEYED) {
        is_right = event.key.id_len == strlen(text) && memcmp(event.key.id, text, strlen(text)) == 0 &&
                   strcmp(event.key.ns, "acme") == 0 && strcmp(event.key.type, "user") == 0;
    } else if (is_right && kind == HF_DEPOT_DATA) {
        is_right = hf_value_len(event.value) == strlen(text) &&
                   memcmp(hf_value_data(event.value), text, strlen(text)) == 0 && event.version >= *version;
        *version = event.version;
    }
    if (!is_right) {
        print_message("event %d %.*s, not %d %s\n", (int)event.kind, (int)hf_value_len(event.value),
                      event.value != NULL ? (const char *)hf_value_data(event.value) : "", (int)kind, text);
    }
    hf_value_unref(event.value);
    return is_right;
}

/* Watchers by either key go on. REKEYED is neither conflated nor dropped. */
static hf_status watchers(void *arg)
{
    (void)arg;
    static const struct {
        hf_flow_mode mode;
        size_t capacity;
    } MODES[] = {{HF_FLOW_CONFLATE, 0}, {HF_FLOW_DROP_OLDEST, 1}, {HF_FLOW_DROP_OLDEST, 8}};
    for (size_t i = 0; i < HF_COUNT_OF(MODES); i++) {
        char key[24];
        (void)snprintf(key, sizeof key, "42-%zu", i);
        origin o = {.answers = {{.key = key, .takes = hf_seconds(1)}}, .answer_count = 1};
        hf_depot_id id;
        uint64_t version = 0;
        uint64_t other_version = 0;
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_with(&o, NULL, &depot));
        HF_AUTO(hf_watcher_close) hf_watcher *other = NULL;
        HF_AUTO(hf_watcher_close) hf_watcher *slow = NULL;
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, key_of(key), &other, .fresh = HF_FRESH_LOCAL));
        HF_TRY(hf_depot_create(depot, no_id(), "a", 1, &id));
        HF_TRY(hf_depot_watch(depot, key_of_id(&id), &watcher, .mode = MODES[i].mode, .capacity = MODES[i].capacity));
        HF_TRY(hf_depot_watch(depot, key_of_id(&id), &slow, .mode = MODES[i].mode, .capacity = MODES[i].capacity));
        HF_CHECK(next_is(watcher, HF_DEPOT_DATA, "a", &version));
        HF_TRY(hf_sleep(hf_seconds(2)));
        HF_CHECK(next_is(watcher, HF_DEPOT_REKEYED, key, &version) && next_is(watcher, HF_DEPOT_DATA, "a", &version));
        HF_CHECK(next_is(other, HF_DEPOT_DATA, "a", &other_version));
        HF_TRY(hf_depot_put(depot, key_of(key), "b", 1));
        HF_CHECK(next_is(watcher, HF_DEPOT_DATA, "b", &version) && next_is(other, HF_DEPOT_DATA, "b", &other_version));
        HF_TRY(hf_depot_put(depot, key_of_id(&id), "c", 1));
        HF_TRY(hf_sleep(hf_seconds(2)));
        bool is_rekeyed = false; /* one that did not look until now has it all the same */
        hf_depot_event event;
        while (hf_watcher_next(slow, &event, .timeout = hf_milliseconds(1)) == HF_OK) {
            is_rekeyed = is_rekeyed || event.kind == HF_DEPOT_REKEYED;
            hf_value_unref(event.value);
        }
        HF_CHECK_SAY(is_rekeyed, "mode %zu", i);
    }
    return HF_OK;
}

/* The new key is known already: it has a value, a write that waits, a fetch under way. */
static hf_status known_key(void *arg)
{
    (void)arg;
    origin o = {.answers = {{.key = "42", .takes = hf_seconds(2)}}, .answer_count = 1, .value = "listed"};
    hf_depot_id id;
    hf_value *value = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, NULL, &depot));
    HF_TRY(hf_depot_get(depot, key_of("42"), &value));
    hf_value_unref(value);
    value = NULL;
    HF_TRY(hf_depot_create(depot, no_id(), "a", 1, &id));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.count == 1);
    HF_TRY(hf_depot_online(depot, false)); /* what follows waits */
    HF_TRY(hf_depot_patch(depot, key_of("42"), "1", 1));
    HF_TRY(hf_depot_patch(depot, key_of_id(&id), "2", 1));
    HF_TRY(hf_depot_patch(depot, key_of("42"), "3", 1));
    HF_CHECK(is_at_hand(depot, key_of("42"), "listed13") && is_at_hand(depot, key_of_id(&id), "a2"));
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(is_at_hand(depot, key_of("42"), "a123") && is_at_hand(depot, key_of_id(&id), "a123"));
    HF_TRY(hf_depot_online(depot, true));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.count == 4 && pushed(&o, 1, HF_WRITE_PATCH, "42", "1") && pushed(&o, 2, HF_WRITE_PATCH, "42", "2") &&
             pushed(&o, 3, HF_WRITE_PATCH, "42", "3"));
    HF_CHECK(is_at_hand(depot, key_of_id(&id), "a123") && counts_of(depot).pending == 0);
    return HF_OK;
}

typedef struct asking {
    hf_depot *depot;
    hf_depot_id id;
    hf_status status;
    char text[16];
    int64_t took;
} asking;

static hf_status ask_now(void *arg)
{
    asking *one = arg;
    hf_value *value = NULL;
    int64_t before = hf_now(NULL).ns;
    one->status = hf_depot_get(one->depot, key_of_id(&one->id), &value, .fresh = HF_FRESH_NOW);
    one->took = hf_now(NULL).ns - before;
    copy_text(one->text, sizeof one->text, value != NULL ? hf_value_data(value) : "", hf_value_len(value));
    hf_value_unref(value);
    return HF_OK;
}

/* Who waits for a fetch of the old key asks again by the new one. */
static hf_status redirected(void *arg)
{
    (void)arg;
    origin o = {.answers = {{.key = "42", .takes = hf_seconds(2)}},
                .answer_count = 1,
                .value = "there",
                .fetch_takes = hf_seconds(5)};
    asking one = {.status = HF_OK};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, NULL, &depot));
    one.depot = depot;
    HF_TRY(hf_depot_create(depot, no_id(), "a", 1, &one.id));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, ask_now, &one));
    HF_TRY(hf_join(scope));
    HF_CHECK(one.status == HF_OK && strcmp(one.text, "there") == 0 && strcmp(o.fetched, "42") == 0 && o.fetches == 2);
    HF_CHECK_SAY(one.took == hf_seconds(7).ns, "%lld ms", (long long)(one.took / 1000000));
    HF_CHECK(counts_of(depot).flights == 0);
    return HF_OK;
}

/* What the origin answered is from before an invalidation of either key. */
static hf_status invalidated(void *arg)
{
    (void)arg;
    for (int what = 0; what < 6; what++) {
        char key[24];
        (void)snprintf(key, sizeof key, "42-%d", what);
        origin o = {.answers = {{.key = key, .takes = hf_seconds(2)}}, .answer_count = 1};
        hf_depot_id id;
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_with(&o, NULL, &depot));
        HF_TRY(hf_depot_create(depot, no_id(), "a", 1, &id));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.count == 1);
        bool is_hard = what % 2 != 0;
        if (what < 2) {
            HF_TRY(hf_depot_invalidate(depot, key_of(key), .hard = is_hard));
        } else if (what < 4) {
            HF_TRY(hf_depot_invalidate(depot, key_of_id(&id), .hard = is_hard));
        } else {
            HF_TRY(hf_depot_invalidate_namespace(depot, "acme", .hard = is_hard));
        }
        HF_CHECK(is_at_hand(depot, key_of_id(&id), "a")); /* ours, until it is settled */
        HF_TRY(hf_sleep(hf_seconds(2)));
        HF_CHECK_SAY(is_at_hand(depot, key_of_id(&id), "-") && is_at_hand(depot, key_of(key), "-"), "DP3 %d", what);
        o.value = "new";
        hf_value *value = NULL;
        HF_TRY(hf_depot_get(depot, key_of_id(&id), &value));
        hf_value_unref(value);
        HF_CHECK(is_at_hand(depot, key_of(key), "new") && strcmp(o.fetched, key) == 0);
    }
    return HF_OK;
}

/* ---- Over a restart ---------------------------------------------------------------------------------------------- */

static hf_status restarts(void *arg)
{
    (void)arg;
    origin o = {.answers = {{.key = "42", .takes = hf_seconds(9)}, {.key = "42", .takes = hf_seconds(1)}},
                .answer_count = 2};
    hf_depot_id id;
    if (!has_store) {
        return HF_OK;
    }
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_with(&o, NULL, &depot));
        HF_TRY(hf_depot_create(depot, no_id(), "a", 1, &id));
        HF_TRY(hf_depot_patch(depot, key_of_id(&id), "b", 1));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.count == 1); /* it may have arrived */
    }
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_with(&o, NULL, &depot));
        HF_CHECK(is_at_hand(depot, key_of_id(&id), "ab"));
        HF_TRY(hf_sleep(hf_milliseconds(1500)));
        HF_CHECK(strcmp(o.log[0].id, o.log[1].id) == 0 && o.log[1].verb == HF_WRITE_CREATE);
        HF_CHECK(o.count == 3 && pushed(&o, 2, HF_WRITE_PATCH, "42", "b"));
        HF_TRY(hf_depot_online(depot, false));
        HF_TRY(hf_depot_patch(depot, key_of_id(&id), "c", 1));
    }
    HF_CHECK(count_rows(HF_TABLE_ALIAS) == 1 && count_rows(HF_TABLE_PENDING) == 1 && count_rows(HF_TABLE_ENTRY) == 1);
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_with(&o, NULL, &depot));
        HF_CHECK(is_at_hand(depot, key_of_id(&id), "abc") && is_at_hand(depot, key_of("42"), "abc"));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.count == 4 && pushed(&o, 3, HF_WRITE_PATCH, "42", "c"));
        uint64_t version = 0;
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, key_of_id(&id), &watcher));
        HF_CHECK(next_is(watcher, HF_DEPOT_DATA, "abc", &version));
        HF_TRY(hf_depot_put(depot, key_of("42"), "d", 1));
        HF_CHECK(next_is(watcher, HF_DEPOT_DATA, "d", &version));
        HF_TRY(hf_sleep(hf_days(6)));
        HF_CHECK(is_at_hand(depot, key_of_id(&id), "d"));
        HF_TRY(hf_sleep(hf_hours(25)));
        HF_CHECK(is_at_hand(depot, key_of_id(&id), "-") && is_at_hand(depot, key_of("42"), "d"));
    }
    HF_CHECK(count_rows(HF_TABLE_ALIAS) == 0);
    return HF_OK;
}

/* One synced commit: after a power cut all of it is there, or the create is sent again. */
static int moves_seen;

static hf_status spy_execute(hf_store *base, hf_store_request *request)
{
    size_t aliases = 0;
    size_t entries = 0;
    size_t deletes = 0;
    size_t rows = 0;
    for (size_t i = 0; request->verb == HF_STORE_COMMIT && i < request->write_count; i++) {
        const hf_write *one = &request->writes[i];
        aliases += one->table == HF_TABLE_ALIAS && one->kind == HF_WRITE_PUT;
        entries += one->table == HF_TABLE_ENTRY && one->kind == HF_WRITE_PUT;
        deletes += one->kind == HF_WRITE_DELETE;
        rows += one->table == HF_TABLE_PENDING && one->kind == HF_WRITE_PUT;
    }
    if (aliases > 0) {
        moves_seen++;
        HF_CHECK(!request->unsynced && entries == 1 && deletes == 2 && rows == 2);
    }
    return lent_execute(base, request);
}

static hf_status one_commit(void *arg)
{
    (void)arg;
    static hf_store_ops spy;
    origin o = {.answers = {{.key = "42", .takes = hf_seconds(1)}}, .answer_count = 1};
    hf_depot_id id;
    if (!has_store) {
        return HF_OK;
    }
    spy = LENT;
    spy.execute = spy_execute;
    store.base.ops = &spy;
    moves_seen = 0;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, NULL, &depot));
    HF_TRY(hf_depot_create(depot, no_id(), "a", 1, &id));
    HF_TRY(hf_depot_put(depot, key_of_id(&id), "b", 1));
    HF_TRY(hf_depot_delete(depot, key_of_id(&id)));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_CHECK(moves_seen == 1 && o.count == 3 && is_at_hand(depot, key_of("42"), "-"));
    return HF_OK;
}

/* ---- Tombstones -------------------------------------------------------------------------------------------------- */

typedef struct tomb {
    const char *name;
    int64_t modified_s;  /* of the fetched value, after the delete; INT64_MIN = it has no date */
    uint64_t revision;   /* of the fetched value */
    int64_t told_s;      /* the date in the answer to the delete, after it; INT64_MIN = none */
    uint64_t told;       /* the revision in that answer */
    uint64_t had;        /* the revision of the value that was deleted */
    int64_t days;        /* since the delete */
    bool is_invalidated; /* in between */
    bool counts;
} tomb;

#define NONE INT64_MIN

static const tomb TOMBS[] = {
    {"nothing is known of it", NONE, 0, NONE, 0, 0, 0, false, false},
    {"modified before the delete", -60, 0, NONE, 0, 0, 0, false, false},
    {"modified in the second of the delete", 0, 0, NONE, 0, 0, 0, false, false},
    {"modified after the delete", 2, 0, NONE, 0, 0, 0, false, true},
    {"modified after the origin's date of the delete", -30, 0, -60, 0, 0, 0, false, true},
    {"modified before the origin's date of the delete", 30, 0, 60, 0, 0, 0, false, false},
    {"an older revision than the one deleted", NONE, 6, NONE, 0, 7, 0, false, false},
    {"the revision that was deleted", NONE, 7, NONE, 0, 7, 0, false, false},
    {"a newer revision than the one deleted", NONE, 8, NONE, 0, 7, 0, false, true},
    {"the revision of the delete", NONE, 8, NONE, 8, 7, 0, false, false},
    {"a newer revision than the delete", NONE, 9, NONE, 8, 7, 0, false, true},
    {"an old revision with a new date", 60, 7, NONE, 0, 7, 0, false, false},
    {"a new revision with an old date", -60, 8, NONE, 0, 7, 0, false, true},
    {"a revision, but none of the delete; a new date", 60, 1, NONE, 0, 0, 0, false, true},
    {"after 6 days it is remembered", NONE, 0, NONE, 0, 0, 6, false, false},
    {"after 8 days it is not", NONE, 0, NONE, 0, 0, 8, false, true},
    {"an invalidation lifts it", NONE, 0, NONE, 0, 0, 0, true, true},
};

static void http_date(int64_t ns, char *ret_text, size_t size)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm parts;
    (void)gmtime_r(&seconds, &parts);
    HF_CHECK(strftime(ret_text, size, "%a, %d %b %Y %H:%M:%S GMT", &parts) == 29);
    HF_CHECK(hf_tombstone_date(ret_text) == (int64_t)seconds * 1000000000);
}

static hf_status tombstones(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < HF_COUNT_OF(TOMBS); i++) {
        const tomb *row = &TOMBS[i];
        char id[40];
        char told[40];
        char modified[40];
        (void)snprintf(id, sizeof id, "tomb-%zu", i);
        origin o = {.value = "old", .revision = row->had, .answer_count = 1};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_with(&o, NULL, &depot));
        hf_value *value = NULL;
        HF_TRY(hf_depot_get(depot, key_of(id), &value));
        hf_value_unref(value);
        value = NULL;
        int64_t now = hf_depot_wall(depot);
        if (row->told_s != NONE) {
            http_date(now + row->told_s * 1000000000, told, sizeof told);
            o.answers[0].modified = told;
        }
        o.answers[0].revision = row->told;
        HF_TRY(hf_depot_delete(depot, key_of(id), .ret_write = &writes[0]));
        HF_TRY(hf_depot_write_wait(writes[0]));
        free_writes();
        for (int fresh = HF_FRESH_CACHED; fresh <= HF_FRESH_LOCAL; fresh++) {
            ROW(row->name, hf_depot_get(depot, key_of(id), &value, .fresh = (hf_fresh)fresh) == HF_ERR_NOT_FOUND);
        }
        ROW(row->name, o.fetches == 1);
        if (row->modified_s != NONE) {
            http_date(now + row->modified_s * 1000000000, modified, sizeof modified);
            o.modified = modified;
        }
        o.revision = row->revision;
        HF_TRY(hf_sleep(hf_days(row->days)));
        if (row->is_invalidated) {
            HF_TRY(hf_depot_invalidate(depot, key_of(id)));
        }
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, key_of(id), &watcher, .refresh = hf_seconds(5)));
        HF_TRY(hf_sleep(hf_seconds(6)));
        ROW(row->name, o.fetches >= 2 && is_at_hand(depot, key_of(id), row->counts ? "old" : "-"));
        /* "not found" does not lift it */
        o.value = NULL;
        HF_TRY(hf_sleep(hf_seconds(5)));
        o.value = "old";
        o.modified = NULL;
        o.revision = 0;
        HF_TRY(hf_sleep(hf_seconds(5)));
        ROW(row->name, is_at_hand(depot, key_of(id), row->counts ? "old" : "-"));
    }
    return HF_OK;
}

/* It survives a restart, and goes when the key is written again. */
static hf_status tombstone_kept(void *arg)
{
    (void)arg;
    origin o = {.value = "old"};
    if (!has_store) {
        return HF_OK;
    }
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_with(&o, NULL, &depot));
        HF_TRY(hf_depot_delete(depot, key_of("A"), .mode = HF_DEPOT_ORIGIN_FIRST));
    }
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, NULL, &depot));
    hf_value *value = NULL;
    HF_CHECK(hf_depot_get(depot, key_of("A"), &value, .fresh = HF_FRESH_NOW) == HF_ERR_NOT_FOUND && o.fetches == 0);
    HF_TRY(hf_depot_put(depot, key_of("A"), "new", 3));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(is_at_hand(depot, key_of("A"), "new") && counts_of(depot).pending == 0);
    HF_TRY(hf_depot_get(depot, key_of("A"), &value, .fresh = HF_FRESH_NOW));
    hf_value_unref(value);
    HF_CHECK(is_at_hand(depot, key_of("A"), "old"));
    return HF_OK;
}

/* ---- Dropped by an invalidation ---------------------------------------------------------------------------------- */

static hf_status drop_by(hf_depot *depot, int what)
{
    return what == 0   ? hf_depot_invalidate(depot, key_of("A"), .hard = true, .drop_pending = true)
           : what == 1 ? hf_depot_invalidate_namespace(depot, "acme", .hard = true, .drop_pending = true)
                       : hf_depot_invalidate_all(depot, .hard = true, .drop_pending = true);
}

static hf_status drops(void *arg)
{
    (void)arg;
    for (int what = 0; what < 3; what++) {
        /* the first is dead, the second on its way, the third waits; another key, another namespace */
        origin o = {.answers = {FAILED_FOR_GOOD, {.takes = hf_seconds(2), .value = "theirs"}, FAILED_ONCE},
                    .answer_count = 3,
                    .value = "base"};
        {
            HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
            HF_TRY(open_with(&o, NULL, &depot));
            HF_TRY(hf_depot_patch(depot, key_of("A"), "1", 1, .ret_write = &writes[0]));
            HF_CHECK(hf_depot_write_wait(writes[0]) == HF_ERR_DENIED);
            HF_TRY(hf_depot_patch(depot, key_of("A"), "2", 1, .ret_write = &writes[1]));
            HF_TRY(hf_depot_patch(depot, key_of("A"), "3", 1, .ret_write = &writes[2]));
            HF_TRY(hf_sleep(hf_seconds(1)));
            HF_CHECK(o.count == 2 && is_at_hand(depot, key_of("A"), "23"));
            HF_TRY(hf_depot_online(depot, false));
            HF_TRY(hf_depot_put(depot, key_of("B"), "b", 1, .ret_write = &writes[3]));
            HF_TRY(hf_depot_put(depot, hf_depot_key_of("other", "user", "C"), "c", 1, .ret_write = &writes[4]));
            HF_TRY(drop_by(depot, what));
            HF_CHECK(is_at_hand(depot, key_of("A"), "-"));
            HF_CHECK(hf_depot_write_wait(writes[1]) == HF_ERR_CANCELED &&
                     hf_depot_write_wait(writes[2]) == HF_ERR_CANCELED);
            HF_CHECK(is_at_hand(depot, key_of("B"), what == 0 ? "b" : "-"));
            HF_CHECK(is_at_hand(depot, hf_depot_key_of("other", "user", "C"), what < 2 ? "c" : "-"));
            found rows = rows_of(depot);
            HF_CHECK_SAY(rows.count == (size_t)(what == 0 ? 3 : what == 1 ? 2 : 1), "%zu rows", rows.count);
            HF_TRY(hf_sleep(hf_seconds(3))); /* the one on its way was accepted, with a value from before */
            HF_CHECK(is_at_hand(depot, key_of("A"), "-") && o.count == 2);
            HF_CHECK(rows_of(depot).count == rows.count - 1);
            free_writes();
        }
        if (has_store) {
            HF_CHECK(count_rows(HF_TABLE_PENDING) == (size_t)(what == 0 ? 2 : what == 1 ? 1 : 0));
        }
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_with(&o, NULL, &depot));
        HF_TRY(hf_sleep(hf_seconds(10)));
        for (int i = 2; i < o.count; i++) {
            HF_CHECK(strcmp(o.log[i].key, "A") != 0);
        }
        HF_CHECK(counts_of(depot).pending == 0);
    }
    return HF_OK;
}

/* One that is on its way and fails is not sent again. */
static hf_status dropped_and_failed(void *arg)
{
    (void)arg;
    origin o = {.answers = {{.status = HF_ERR_FAILED, .failed = HF_REPLY_NETWORK, .takes = hf_seconds(1)}},
                .answer_count = 1};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, NULL, &depot));
    HF_TRY(hf_depot_put(depot, key_of("A"), "a", 1));
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    HF_TRY(drop_by(depot, 0));
    HF_TRY(hf_depot_put(depot, key_of("A"), "b", 1)); /* later: it stays */
    HF_CHECK(is_at_hand(depot, key_of("A"), "b"));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_CHECK(o.count == 2 && pushed(&o, 1, HF_WRITE_REPLACE, "A", "b") && counts_of(depot).pending == 0);
    return HF_OK;
}

/* ---- Bad answers, and records of earlier versions ---------------------------------------------------------------- */

static hf_status bad_keys(void *state, const hf_push_request *request, hf_reply *reply)
{
    int *calls = state;
    char provisional[HF_PROVISIONAL_LEN + 1] = "~abcdefghijklmnopqrstuvwxyz";
    if (request->verb != HF_WRITE_CREATE) {
        HF_CHECK(hf_reply_key(reply, key_of("x")) == HF_ERR_MISUSE);
    } else {
        HF_CHECK(hf_reply_key(reply, hf_depot_key_of("other", "user", "x")) == HF_ERR_INVALID);
        HF_CHECK(hf_reply_key(reply, hf_depot_key_of("acme", "other", "x")) == HF_ERR_INVALID);
        HF_CHECK(hf_reply_key(reply, no_id()) == HF_ERR_INVALID);
        HF_CHECK(hf_reply_key(reply, key_of(provisional)) == HF_ERR_INVALID);
        HF_CHECK(hf_reply_key(reply, request->key) == HF_OK);
    }
    HF_CHECK(hf_reply_revision(reply, 0) == HF_ERR_INVALID);
    ++*calls;
    return HF_OK;
}

static hf_status bad_answers(void *arg)
{
    (void)arg;
    int calls = 0;
    hf_depot_id id;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .push = bad_keys, .state = &calls));
    HF_TRY(hf_depot_put(depot, key_of("A"), "a", 1, .mode = HF_DEPOT_ORIGIN_FIRST));
    HF_TRY(hf_depot_create(depot, no_id(), "a", 1, &id, .mode = HF_DEPOT_ORIGIN_FIRST));
    HF_CHECK(calls == 2 && id.bytes[0] == '~' && is_at_hand(depot, key_of_id(&id), "a"));
    HF_CHECK(hf_depot_create(depot, hf_depot_key_of("", "user", NULL), "a", 1, &id) == HF_ERR_INVALID);
    return HF_OK;
}

/* The age of a short value is renewed in the file, too. */
static hf_status confirm(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    size_t len = *(const size_t *)state;
    static char value[8192];
    if (request->etag != NULL) {
        return hf_reply_not_modified(reply);
    }
    HF_TRY(hf_reply_etag(reply, "x"));
    return hf_reply_value(reply, value, len);
}

static hf_status renewed(void *arg)
{
    (void)arg;
    size_t lens[] = {10, 8000};
    if (!has_store) {
        return HF_OK;
    }
    for (size_t i = 0; i < HF_COUNT_OF(lens); i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "r-%zu", i);
        hf_depot_options options = {.size = sizeof options, .fetch = confirm, .state = &lens[i]};
        hf_value *value = NULL;
        hf_depot_info info;
        {
            HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
            HF_TRY(hf_depot_open_in("users", &depot, &options, &store.base));
            HF_TRY(hf_depot_get(depot, key_of(id), &value));
            hf_value_unref(value);
            HF_TRY(hf_sleep(hf_minutes(6)));
            HF_TRY(hf_depot_get(depot, key_of(id), &value, .fresh = HF_FRESH_OR_STALE));
            hf_value_unref(value);
            HF_CHECK(counts_of(depot).not_modified == 1);
        }
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(hf_depot_open_in("users", &depot, &options, &store.base));
        HF_TRY(hf_sleep(hf_minutes(1)));
        HF_TRY(hf_depot_get(depot, key_of(id), &value, .fresh = HF_FRESH_LOCAL, .ret_info = &info));
        hf_value_unref(value);
        HF_CHECK_SAY(info.age.ns == hf_minutes(i == 0 ? 1 : 7).ns, "age %lld s", (long long)(info.age.ns / 1000000000));
    }
    return HF_OK;
}

/* Entries as they are written, byte by byte: one that was fetched once, one with everything, and one from before 1970. */
static void records_are_written_and_read_as_ever(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[40];
        size_t len;
        size_t head_len; /* all but the value */
        hf_depot_entry entry;
        const char *etag, *last_modified, *value;
    } ROWS[] = {
        {{1, 0x0a, 0, 0, 0, 0, 0, 0, 'h', 'i'},
         10,
         8,
         {.kind = HF_ENTRY_VALUE, .validated_at = 10000, .max_age = -1, .version = 1},
         NULL,
         NULL,
         "hi"},
        {{0x7d, 0, 1, 0, 0, 0, 0, 0x10, 5, 3, 0xac, 2, 2, 15, 8, 0xac, 2, 3, 'e', 0, 3, 'l', 0, 'h', 'i'},
         25,
         23,
         {.kind = HF_ENTRY_VALUE,
          .is_unusable = true,
          .validated_at = (INT64_C(1) << 52 | 256) * 1000,
          .max_age = 4,
          .failures = 2,
          .backoff_until = -8,
          .generation = 3,
          .generation_all = 300,
          .version = 5,
          .revision = 300},
         "e",
         "l",
         "hi"},
        {{2, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         8,
         8,
         {.kind = HF_ENTRY_ABSENT, .validated_at = -2000, .max_age = -1, .version = 1},
         NULL,
         NULL,
         NULL},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        hf_depot_entry entry = ROWS[i].entry;
        hf_depot_entry back = {0};
        bool no_memory = false;
        hf_buf out;
        hf_buf_init(&out, hf_env_memory(hf_env_posix()), 100);
        hf_value **const texts[] = {&entry.etag, &entry.last_modified};
        const char *const words[] = {ROWS[i].etag, ROWS[i].last_modified};
        for (size_t at = 0; at < 2; at++) {
            if (words[at] != NULL) {
                assert_int_equal(hf_value_copy(words[at], strlen(words[at]) + 1, texts[at]), HF_OK);
            }
        }
        if (ROWS[i].value != NULL) {
            assert_int_equal(hf_value_copy(ROWS[i].value, strlen(ROWS[i].value), &entry.value), HF_OK);
        }
        hf_row_put_entry(&out, &entry);
        assert_int_equal(out.len, ROWS[i].len);
        assert_memory_equal(out.data, ROWS[i].bytes, out.len);
        assert_true(hf_row_get_entry(hf_str_of_len(out.data, out.len), &back, &no_memory));
        assert_int_equal(back.kind, entry.kind);
        assert_int_equal(back.is_unusable, entry.is_unusable);
        assert_true(back.validated_at == entry.validated_at && back.max_age == entry.max_age &&
                    back.backoff_until == entry.backoff_until);
        assert_true(back.failures == entry.failures && back.version == entry.version &&
                    back.revision == entry.revision);
        assert_true(back.generation == entry.generation && back.generation_all == entry.generation_all);
        assert_true((back.etag != NULL) == (entry.etag != NULL) && (back.value != NULL) == (entry.value != NULL));
        hf_entry_drop(&back);
        for (size_t len = 0; len < ROWS[i].head_len; len++) { /* DP9; the checksum guards the length of the value */
            assert_false(hf_row_get_entry(hf_str_of_len(out.data, len), &back, &no_memory));
        }
        out.data[0] = (char)(out.data[0] | 0x80); /* a layout that this version does not know */
        assert_false(hf_row_get_entry(hf_str_of_len(out.data, out.len), &back, &no_memory));
        hf_entry_drop(&entry);
        hf_buf_deinit(&out);
    }
    static const char TO[] = "a\0b\0c";
    hf_buf out;
    hf_buf_init(&out, hf_env_memory(hf_env_posix()), 100);
    hf_row_put_alias(&out, hf_str_of_len(TO, sizeof TO - 1), -7);
    hf_str to;
    int64_t made_at = 0;
    assert_true(hf_row_get_alias(hf_str_of_len(out.data, out.len), &to, &made_at));
    assert_true(made_at == -7 && to.len == sizeof TO - 1 && memcmp(to.data, TO, to.len) == 0);
    for (size_t len = 0; len < out.len; len++) {
        assert_false(hf_row_get_alias(hf_str_of_len(out.data, len), &to, &made_at));
    }
    hf_buf_deinit(&out);
}

static void dates_are_read_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
    } DATES[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Thu, 29 Feb 2024 23:59:59 GMT", 1709251199},
        {"Sun, 06 Nov 1994 08:49:37 UTC", -1},
        {"Sun, 06 Now 1994 08:49:37 GMT", -1},
        {"Sun, 06 Nov 1994 24:49:37 GMT", -1},
        {"Sun, 6 Nov 1994 08:49:37 GMT", -1},
        {"Sun, 00 Nov 1994 08:49:37 GMT", -1},
        {"yesterday", -1},
        {"", -1},
        {NULL, -1},
    };
    for (size_t i = 0; i < HF_COUNT_OF(DATES); i++) {
        int64_t expected = DATES[i].seconds >= 0 ? DATES[i].seconds * 1000000000 : -1;
        assert_int_equal(hf_tombstone_date(DATES[i].text), expected);
    }
}

#define SIMULATED(name, seeds, body)   \
    static void name(void **state)     \
    {                                  \
        (void)state;                   \
        simulated(#name, seeds, body); \
    }

SIMULATED(what_was_created_gets_the_origins_id, 100, creates)
SIMULATED(a_put_becomes_part_of_a_create, 100, create_and_put)
SIMULATED(writes_that_wait_move_with_their_key, 100, later_writes)
SIMULATED(watchers_are_told_the_new_key, 100, watchers)
SIMULATED(a_key_that_is_known_takes_the_writes_of_the_other, 100, known_key)
SIMULATED(who_waits_for_the_old_key_asks_again, 100, redirected)
SIMULATED(DP3_an_invalidation_outlives_the_new_key, 100, invalidated)
SIMULATED(aliases_survive_a_restart_for_seven_days, 20, restarts)
SIMULATED(DP9_a_key_moves_in_one_synced_commit, 100, one_commit)
SIMULATED(values_from_before_a_delete_do_not_count, 20, tombstones)
SIMULATED(a_tombstone_survives_a_restart, 100, tombstone_kept)
SIMULATED(drop_pending_drops_what_waits, 100, drops)
SIMULATED(what_was_dropped_is_not_sent_again, 100, dropped_and_failed)
SIMULATED(answers_with_bad_keys_are_refused, 100, bad_answers)
SIMULATED(C2_not_modified_renews_the_age_of_short_values, 100, renewed)

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(what_was_created_gets_the_origins_id),
    cmocka_unit_test(a_put_becomes_part_of_a_create),
    cmocka_unit_test(writes_that_wait_move_with_their_key),
    cmocka_unit_test(watchers_are_told_the_new_key),
    cmocka_unit_test(a_key_that_is_known_takes_the_writes_of_the_other),
    cmocka_unit_test(who_waits_for_the_old_key_asks_again),
    cmocka_unit_test(DP3_an_invalidation_outlives_the_new_key),
    cmocka_unit_test(aliases_survive_a_restart_for_seven_days),
    cmocka_unit_test(DP9_a_key_moves_in_one_synced_commit),
    cmocka_unit_test(values_from_before_a_delete_do_not_count),
    cmocka_unit_test(a_tombstone_survives_a_restart),
    cmocka_unit_test(drop_pending_drops_what_waits),
    cmocka_unit_test(what_was_dropped_is_not_sent_again),
    cmocka_unit_test(answers_with_bad_keys_are_refused),
    cmocka_unit_test(C2_not_modified_renews_the_age_of_short_values),
    cmocka_unit_test(records_are_written_and_read_as_ever),
    cmocka_unit_test(dates_are_read_or_refused),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot keys", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
