/* A source of the user's own, on virtual time: a table in memory that outlives its depots, is slow, and fails at times. */
#include "support/support.h"

#include "depot/depot_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table --------------------------------------------------------------------------------------------------- */

enum { ROWS_MAX = 400 };

typedef struct row {
    hf_source_kind kind;
    size_t key_len, len;
    unsigned char key[64];
    unsigned char data[400];
} row;

typedef struct table {
    row rows[ROWS_MAX]; /* by kind and key */
    int count;
    hf_span slow;
    hf_status fails_read, fails_write, fails_scan; /* the next calls */
    int reads, many, many_keys, writes, synced, scans, closed;
    atomic_int inside;
} table;

static int compare(hf_source_kind kind, const void *key, size_t len, const row *other)
{
    if (kind != other->kind) {
        return kind < other->kind ? -1 : 1;
    }
    size_t least = len < other->key_len ? len : other->key_len;
    int order = least > 0 ? memcmp(key, other->key, least) : 0;
    return order != 0 ? order : len < other->key_len ? -1 : len > other->key_len;
}

/* The first row that is not before the key. */
static int find(const table *t, hf_source_kind kind, const void *key, size_t len)
{
    int at = 0;
    while (at < t->count && compare(kind, key, len, &t->rows[at]) > 0) {
        at++;
    }
    return at;
}

/* Every call begins and ends here: one at a time (depot-H1), on a thread of the pool. */
static void enter(table *t)
{
    HF_CHECK_SAY(atomic_fetch_add(&t->inside, 1) == 0, "two calls of the source at once");
    if (t->slow.ns > 0) {
        HF_CHECK(hf_sleep(t->slow) == HF_OK); /* may block, and is not canceled */
    }
}

static hf_status leave(table *t, hf_status status)
{
    atomic_fetch_sub(&t->inside, 1);
    return status == HF_OK ? HF_OK : hf_raise(status, "the table is on fire");
}

static hf_status look_up(const table *t, hf_source_row *one)
{
    int at = find(t, one->kind, one->key, one->key_len);
    bool is_there = at < t->count && compare(one->kind, one->key, one->key_len, &t->rows[at]) == 0;
    return is_there ? hf_value_copy(t->rows[at].data, t->rows[at].len, &one->data) : HF_OK;
}

static hf_status read_row(void *state, hf_source_row *one)
{
    table *t = state;
    enter(t);
    t->reads++;
    return leave(t, t->fails_read != HF_OK ? t->fails_read : look_up(t, one));
}

static hf_status read_rows(void *state, hf_source_row *rows, size_t count)
{
    table *t = state;
    enter(t);
    t->many++;
    t->many_keys += (int)count;
    hf_status status = t->fails_read;
    for (size_t i = 0; i < count && status == HF_OK; i++) {
        status = look_up(t, &rows[i]);
    }
    return leave(t, status);
}

static void put(table *t, const hf_source_write *write)
{
    int at = find(t, write->kind, write->key, write->key_len);
    bool is_there = at < t->count && compare(write->kind, write->key, write->key_len, &t->rows[at]) == 0;
    if (write->data == NULL) {
        if (is_there) {
            t->count--;
            memmove(&t->rows[at], &t->rows[at + 1], (size_t)(t->count - at) * sizeof(row));
        }
        return;
    }
    if (!HF_CHECK(t->count < ROWS_MAX && write->key_len <= sizeof t->rows[0].key &&
                  write->len <= sizeof t->rows[0].data)) {
        return;
    }
    if (!is_there) {
        memmove(&t->rows[at + 1], &t->rows[at], (size_t)(t->count - at) * sizeof(row));
        t->count++;
    }
    t->rows[at] = (row){.kind = write->kind, .key_len = write->key_len, .len = write->len};
    memcpy(t->rows[at].key, write->key, write->key_len);
    memcpy(t->rows[at].data, write->data, write->len);
}

static hf_status write_rows(void *state, const hf_source_write *writes, size_t count, bool is_synced)
{
    table *t = state;
    enter(t);
    t->writes++;
    t->synced += is_synced;
    for (size_t i = 0; i < count && t->fails_write == HF_OK; i++) { /* all or none */
        put(t, &writes[i]);
    }
    return leave(t, t->fails_write);
}

static hf_status scan_rows(void *state, hf_source_kind kind, const void *from, size_t from_len, hf_source_visit *visit,
                           void *arg)
{
    table *t = state;
    enter(t);
    t->scans++;
    for (int at = find(t, kind, from, from_len); t->fails_scan == HF_OK && at < t->count && t->rows[at].kind == kind;
         at++) {
        if (!visit(arg, t->rows[at].key, t->rows[at].key_len, t->rows[at].data, t->rows[at].len)) {
            break;
        }
    }
    return leave(t, t->fails_scan);
}

static void close_table(void *state)
{
    table *t = state;
    enter(t);
    t->closed++;
    HF_IGNORE(leave(t, HF_OK));
}

static hf_source_hooks hooks_of(table *t)
{
    return (hf_source_hooks){t, read_row, read_rows, write_rows, scan_rows, close_table};
}

static int count_kind(const table *t, hf_source_kind kind)
{
    int count = 0;
    for (int i = 0; i < t->count; i++) {
        count += t->rows[i].kind == kind;
    }
    return count;
}

/* ---- The origin -------------------------------------------------------------------------------------------------- */

typedef struct origin {
    const char *value;
    int fetches, pushes;
    hf_span push_takes;
    char pushed[16];
} origin;

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    (void)request;
    o->fetches++;
    return o->value != NULL ? hf_reply_value(reply, o->value, strlen(o->value)) : HF_ERR_NOT_FOUND;
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    origin *o = state;
    (void)reply;
    o->pushes++;
    HF_TRY(hf_sleep(o->push_takes));
    (void)snprintf(o->pushed, sizeof o->pushed, "%.*s", (int)request->len,
                   request->data != NULL ? (const char *)request->data : "");
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

static hf_status open_on(origin *o, table *t, hf_depot **ret_depot)
{
    hf_source_hooks hooks = hooks_of(t);
    HF_TRY(hf_depot_open("users", ret_depot, .fetch = fetch, .push = push, .state = o, .source = &hooks));
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

static hf_status get_status(hf_depot *depot, const char *id, hf_fresh fresh)
{
    hf_value *got = NULL;
    hf_status status = hf_depot_get(depot, key_of(id), &got, .fresh = fresh);
    hf_value_unref(got);
    return status;
}

static table *table_new(void)
{
    return calloc(1, sizeof(table));
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static hf_status restarts(void *arg)
{
    (void)arg;
    table *t = table_new();
    t->slow = hf_milliseconds(5);
    origin o = {.value = "1"};
    hf_depot_info info;
    uint64_t version = 0;
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, t, &depot));
        GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
        GET(depot, "B", "1", .fresh = HF_FRESH_CACHED);
        GET(depot, "C", "1", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_depot_online(depot, false));
        int synced = t->synced;
        HF_TRY(hf_depot_put(depot, key_of("A"), "2", 1));
        HF_CHECK(t->synced == synced + 1 && count_kind(t, HF_SOURCE_PENDING) == 1); /* durable when it returns (DP6) */
        GET(depot, "A", "2", .fresh = HF_FRESH_LOCAL, .ret_info = &info);
        version = info.version;
        HF_TRY(hf_depot_invalidate(depot, key_of("B")));
    }
    HF_CHECK(o.pushes == 0 && o.fetches == 3 && t->closed == 1);
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        o.push_takes = hf_seconds(1);
        HF_TRY(open_on(&o, t, &depot));
        GET(depot, "A", "2", .fresh = HF_FRESH_CACHED, .ret_info = &info);
        HF_CHECK(info.is_pending && info.version == version);
        GET(depot, "C", "1", .fresh = HF_FRESH_CACHED, .ret_info = &info);
        HF_CHECK(info.place == HF_DEPOT_SOURCE && o.fetches == 3);
        HF_CHECK(get_status(depot, "B", HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND); /* DP3 */
        HF_TRY(hf_sleep(hf_seconds(2)));
        HF_CHECK(o.pushes == 1 && strcmp(o.pushed, "2") == 0 && count_kind(t, HF_SOURCE_PENDING) == 0);
        HF_TRY(hf_depot_invalidate_namespace(depot, "acme", .hard = true));
        HF_CHECK(count_kind(t, HF_SOURCE_SPACE) == 1);
        HF_TRY(hf_depot_invalidate_all(depot));
        HF_CHECK(count_kind(t, HF_SOURCE_META) == 2); /* generation, and numbers of writes */
    }
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, t, &depot));
        HF_CHECK(get_status(depot, "A", HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
        GET(depot, "C", "1", .fresh = HF_FRESH_CACHED);
        HF_CHECK(o.fetches == 4);
        /* housekeeping scans, and takes what nobody can ever get */
        HF_CHECK(count_kind(t, HF_SOURCE_ENTRY) == 3);
        HF_TRY(hf_sleep(hf_minutes(30)));
        HF_CHECK_SAY(count_kind(t, HF_SOURCE_ENTRY) == 1, "%d rows", count_kind(t, HF_SOURCE_ENTRY));
    }
    HF_CHECK(t->closed == 3);
    free(t);
    return HF_OK;
}

static hf_status many_reads(void *arg)
{
    (void)arg;
    table *t = table_new();
    origin o = {.value = "1"};
    enum { COUNT = 100 };
    static hf_depot_key keys[COUNT];
    static hf_depot_result results[COUNT];
    static char ids[COUNT][16];
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "k%d", i);
        keys[i] = key_of(ids[i]);
    }
    for (int round = 0; round < 2; round++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, t, &depot));
        t->slow = hf_milliseconds(5);
        t->many = t->many_keys = t->reads = 0;
        HF_TRY(hf_depot_get_many(depot, keys, COUNT, results));
        for (int i = 0; i < COUNT; i++) {
            HF_CHECK(is_text(results[i].value, "1"));
            hf_value_unref(results[i].value);
        }
        HF_CHECK(o.fetches == COUNT);
        HF_CHECK_SAY(t->many >= 1 && t->many_keys + t->reads == COUNT && t->reads <= 2, "%d and %d reads", t->many,
                     t->reads);
    }
    free(t);
    return HF_OK;
}

static hf_status put_in_vain(void *arg)
{
    HF_CHECK(hf_depot_put(arg, key_of("A"), "3", 1) == HF_ERR_STORE);
    return HF_OK;
}

/* What the user's functions fail with goes to those who asked, and to nobody else. */
static hf_status failing(void *arg)
{
    (void)arg;
    table *t = table_new();
    origin o = {.value = "1"};
    hf_depot *none = NULL;
    t->fails_scan = HF_ERR_IO;
    HF_CHECK(open_on(&o, t, &none) == HF_ERR_IO && strstr(hf_error_text(), "on fire") != NULL);
    HF_CHECK(t->closed == 0);
    t->fails_scan = HF_OK;
    t->fails_read = HF_ERR_IO;
    HF_CHECK(open_on(&o, t, &none) == HF_ERR_IO && t->closed == 0);
    t->fails_read = HF_OK;
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, t, &depot));
        GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
        t->fails_write = HF_ERR_FULL;
        HF_CHECK(hf_depot_put(depot, key_of("A"), "2", 1) == HF_ERR_FULL);
        HF_CHECK(strstr(hf_error_text(), "on fire") != NULL);
        GET(depot, "A", "1", .fresh = HF_FRESH_LOCAL); /* nothing has changed */
        HF_CHECK(hf_depot_invalidate(depot, key_of("A")) == HF_ERR_FULL);
        GET(depot, "A", "1", .fresh = HF_FRESH_LOCAL);
        HF_CHECK(hf_depot_invalidate_namespace(depot, "acme") == HF_ERR_FULL);
        GET(depot, "A", "1", .fresh = HF_FRESH_LOCAL);
        GET(depot, "B", "1", .fresh = HF_FRESH_CACHED); /* a value that cannot be kept is handed out all the same */
        hf_depot_counts counts;
        HF_TRY(hf_depot_stat(depot, &counts));
        HF_CHECK(counts.not_kept == 1);
        t->fails_write = HF_OK;
        HF_TRY(hf_depot_put(depot, key_of("A"), "2", 1));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.pushes == 1 && count_kind(t, HF_SOURCE_PENDING) == 0);
    }
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, t, &depot));
        t->fails_read = HF_ERR_IO; /* as if there was none: it is fetched */
        int fetches = o.fetches;
        GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
        HF_CHECK(o.fetches == fetches + 1);
        HF_CHECK(hf_depot_changed(depot, key_of("A")) == HF_ERR_IO);
        GET(depot, "A", "1", .fresh = HF_FRESH_LOCAL);
        t->fails_read = HF_OK;
        t->fails_write = HF_ERR_STORE; /* nobody knows what became of it: the source is left alone */
        t->slow = hf_milliseconds(100);
        int writes = t->writes + 1;
        {
            HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
            HF_TRY(hf_scope_open(&scope));
            HF_TRY(hf_fork(scope, put_in_vain, depot));
            HF_TRY(hf_sleep(hf_milliseconds(50)));
            HF_CHECK(hf_depot_put(depot, key_of("B"), "3", 1) == HF_ERR_STORE); /* it waited for the first one */
            HF_TRY(hf_join(scope));
        }
        t->slow = hf_nanoseconds(0);
        t->fails_write = HF_OK;
        HF_CHECK(hf_depot_put(depot, key_of("A"), "4", 1) == HF_ERR_STORE && t->writes == writes);
        GET(depot, "A", "1", .fresh = HF_FRESH_LOCAL);
    }
    /* damaged records: an entry counts as none, a write is left where it is */
    for (int i = 0; i < t->count; i++) {
        if (t->rows[i].kind == HF_SOURCE_ENTRY) {
            t->rows[i].data[t->rows[i].len - 1] ^= 1;
        }
    }
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, t, &depot));
        HF_CHECK(get_status(depot, "A", HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
        GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
        hf_depot_counts counts;
        HF_TRY(hf_depot_stat(depot, &counts));
        HF_CHECK(counts.damaged >= 1);
    }
    free(t);
    return HF_OK;
}

/* Another depot on the same table: hf_depot_changed makes its changes seen. */
static hf_status changed(void *arg)
{
    (void)arg;
    table *t = table_new();
    origin o = {.value = "1"};
    origin other = {.value = "2"};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_on(&o, t, &depot));
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
    hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &watcher));
    hf_depot_event event;
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(event.kind == HF_DEPOT_DATA && is_text(event.value, "1"));
    hf_value_unref(event.value);
    uint64_t version = event.version;
    {
        HF_AUTO(hf_depot_close) hf_depot *second = NULL;
        HF_TRY(open_on(&other, t, &second));
        GET(second, "A", "1", .fresh = HF_FRESH_CACHED);
        GET(second, "A", "2", .fresh = HF_FRESH_NOW);
        GET(second, "B", "2", .fresh = HF_FRESH_CACHED);
    }
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED); /* it does not know */
    HF_TRY(hf_depot_changed(depot, key_of("A")));
    GET(depot, "A", "2", .fresh = HF_FRESH_CACHED);
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(event.kind == HF_DEPOT_DATA && is_text(event.value, "2") && event.version > version);
    hf_value_unref(event.value);
    HF_TRY(hf_depot_changed(depot, key_of("A"))); /* nothing new: nobody hears of it */
    HF_CHECK(hf_watcher_next(watcher, &event, .timeout = hf_seconds(1)) == HF_ERR_TIMEOUT);
    HF_TRY(hf_depot_changed(depot, key_of("B")));
    GET(depot, "B", "2", .fresh = HF_FRESH_LOCAL);
    HF_TRY(hf_depot_changed(depot, key_of("none")));
    HF_CHECK(hf_depot_changed(depot, hf_depot_key_of("", "", "")) == HF_ERR_INVALID);
    /* under a write that waits: the base changes, what is visible does not (DP5) */
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_put(depot, key_of("A"), "mine", 4));
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(is_text(event.value, "mine"));
    hf_value_unref(event.value);
    HF_TRY(hf_depot_changed(depot, key_of("A")));
    GET(depot, "A", "mine", .fresh = HF_FRESH_CACHED);
    /* deleted from outside */
    hf_source_write gone = {.kind = HF_SOURCE_ENTRY, .key = "acme\0user\0B", .key_len = 11};
    HF_TRY(write_rows(t, &gone, 1, false));
    HF_TRY(hf_depot_changed(depot, key_of("B")));
    HF_CHECK(get_status(depot, "B", HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
    HF_TRY(hf_watcher_close(watcher));
    /* a depot without a source has nothing to read */
    HF_AUTO(hf_depot_close) hf_depot *plain = NULL;
    HF_TRY(hf_depot_open("users", &plain, .fetch = fetch, .state = &o));
    GET(plain, "A", "1", .fresh = HF_FRESH_CACHED);
    HF_TRY(hf_depot_changed(plain, key_of("A")));
    GET(plain, "A", "1", .fresh = HF_FRESH_LOCAL);
    HF_TRY(hf_depot_close(plain));
    plain = NULL;
    HF_TRY(hf_depot_close(depot));
    depot = NULL;
    free(t);
    return HF_OK;
}

static hf_status put_one(void *arg)
{
    hf_status status = hf_depot_put(arg, key_of("A"), "2", 1);
    HF_CHECK(status == HF_OK || status == HF_ERR_CANCELED || status == HF_ERR_CLOSED);
    return HF_OK;
}

static hf_status in_canceled_scope(void *arg)
{
    table *t = arg;
    origin o = {.value = "1"};
    hf_depot *depot = NULL;
    HF_CHECK(open_on(&o, t, &depot) == HF_OK);
    HF_CHECK(hf_depot_online(depot, false) == HF_OK);
    t->slow = hf_seconds(1);
    hf_scope *scope = NULL;
    HF_CHECK(hf_scope_open(&scope, .join = HF_JOIN_DISCARD) == HF_OK);
    HF_CHECK(hf_fork(scope, put_one, depot) == HF_OK);
    HF_IGNORE(hf_sleep(hf_hours(1)));
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(hf_depot_close(depot) == HF_OK);
    return HF_OK;
}

/* A depot whose owner is canceled still writes what it has begun, and closes its source. */
static hf_status canceled(void *arg)
{
    (void)arg;
    table *t = table_new();
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    HF_TRY(hf_fork(scope, in_canceled_scope, t));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    HF_TRY(hf_scope_cancel(scope));
    HF_IGNORE(hf_join(scope));
    HF_CHECK(t->closed == 1 && atomic_load(&t->inside) == 0);
    HF_CHECK(count_kind(t, HF_SOURCE_PENDING) == 1);
    free(t);
    return HF_OK;
}

/* Options that do not fit, and a user's table that breaks its word (depot-H2). */
static hf_status scan_backwards(void *state, hf_source_kind kind, const void *from, size_t from_len,
                                hf_source_visit *visit, void *arg)
{
    (void)state;
    (void)from;
    (void)from_len;
    if (kind == HF_SOURCE_SPACE && visit(arg, "b", 1, "x", 1)) {
        HF_CHECK(!visit(arg, "a", 1, "x", 1));
        HF_CHECK(!visit(arg, "c", 1, "x", 1));
    }
    return HF_OK;
}

static hf_status refused(void *arg)
{
    (void)arg;
    table *t = table_new();
    hf_depot *none = NULL;
    hf_source_hooks hooks = hooks_of(t);
    HF_CHECK(hf_depot_open("users", &none, .source = &hooks, .file = "sqlite:x.db") == HF_ERR_INVALID);
    hooks.scan = scan_backwards;
    HF_CHECK(hf_depot_open("users", &none, .source = &hooks) == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "out of order") != NULL);
    hooks.scan = NULL;
    HF_CHECK(hf_depot_open("users", &none, .source = &hooks) == HF_ERR_INVALID);
    hooks = hooks_of(t);
    hooks.read_many = NULL;
    hooks.close = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    origin o = {.value = "1"};
    t->reads = 0;
    HF_TRY(hf_depot_open("users", &depot, .source = &hooks, .fetch = fetch, .state = &o));
    hf_depot_key keys[] = {key_of("A"), key_of("B")};
    hf_depot_result results[2];
    HF_TRY(hf_depot_get_many(depot, keys, 2, results));
    HF_CHECK(results[0].status == HF_OK && results[1].status == HF_OK && t->reads == 4); /* two rows of META, too */
    hf_value_unref(results[0].value);
    hf_value_unref(results[1].value);
    HF_TRY(hf_depot_close(depot));
    depot = NULL;
    HF_CHECK(t->closed == 0);
    free(t);
    return HF_OK;
}

/* A write that has no row any more when it is answered: without a synced commit a power cut would bring the value from before it
 * back, and nothing would be sent again. */
static hf_status answers_without_row(void *arg)
{
    (void)arg;
    for (int is_dropped = 0; is_dropped < 2; is_dropped++) {
        table *t = table_new();
        origin o = {.value = "1", .push_takes = hf_seconds(1)};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_on(&o, t, &depot));
        HF_TRY(hf_depot_put(depot, key_of("A"), "2", 1));
        HF_TRY(hf_sleep(hf_milliseconds(300)));
        HF_CHECK(o.pushes == 1);
        if (is_dropped) {
            HF_TRY(hf_depot_invalidate(depot, key_of("A"), .hard = true, .drop_pending = true));
            GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
        }
        HF_CHECK(count_kind(t, HF_SOURCE_PENDING) == 1 - is_dropped);
        int synced = t->synced;
        HF_TRY(hf_sleep(hf_seconds(2)));
        HF_CHECK(o.pushes == 1 && count_kind(t, HF_SOURCE_PENDING) == 0);
        HF_CHECK_SAY(t->synced == synced + is_dropped, "%d commits were synced", t->synced - synced);
        HF_TRY(hf_depot_close(depot));
        depot = NULL;
        free(t);
    }
    return HF_OK;
}

/* What fibers that are ready write is one commit, and so is what calls write that have not begun. */
typedef struct told {
    hf_depot *depot;
    hf_sem *sem;
    char id[12];
    bool puts;
} told;

static hf_status act_when_told(void *arg)
{
    told *one = arg;
    hf_value *value = NULL;
    HF_TRY(hf_sem_acquire(one->sem, 1));
    if (one->puts) {
        return hf_depot_put(one->depot, key_of(one->id), "2", 1);
    }
    HF_TRY(hf_depot_get(one->depot, key_of(one->id), &value, .fresh = HF_FRESH_NOW));
    hf_value_unref(value);
    return HF_OK;
}

static hf_status one_commit(void *arg)
{
    (void)arg;
    enum { COUNT = 10 };
    table *t = table_new();
    origin o = {.value = "1"};
    told all[COUNT];
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_sem_new(0, &sem));
    HF_TRY(open_on(&o, t, &depot));
    for (int puts = 0; puts < 2; puts++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < COUNT; i++) {
            all[i] = (told){.depot = depot, .sem = sem, .puts = puts};
            (void)snprintf(all[i].id, sizeof all[i].id, "%d", i);
            HF_IGNORE(get_status(depot, all[i].id, HF_FRESH_LOCAL));
            HF_TRY(hf_fork(scope, act_when_told, &all[i]));
        }
        HF_TRY(hf_depot_online(depot, !puts));
        HF_TRY(hf_sleep(hf_milliseconds(10)));
        int writes = t->writes;
        HF_TRY(hf_sem_release(sem, COUNT));
        HF_TRY(hf_join(scope));
        HF_CHECK_SAY(t->writes == writes + 1, "%d commits of %d %s", t->writes - writes, COUNT,
                     puts ? "puts" : "landings");
    }
    HF_TRY(hf_depot_close(depot));
    depot = NULL;
    free(t);
    return HF_OK;
}

static void one_thread_commits_once(void **state)
{
    (void)state;
    HF_CHECK(hf_sim_run(1, 1, one_commit, NULL, NULL) == HF_OK);
}

static hf_body trace;

static void one_seed(uint64_t seed)
{
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 3), trace, NULL, NULL) == HF_OK);
}

#define SIMULATED(name, body, seeds)          \
    static void name(void **state)            \
    {                                         \
        (void)state;                          \
        trace = body;                         \
        hf_each_seed(#name, seeds, one_seed); \
    }

SIMULATED(DP9_a_table_of_the_user_survives_restarts, restarts, 50)
SIMULATED(DP9_the_answer_to_a_write_that_was_dropped_is_synced, answers_without_row, 50)
SIMULATED(reads_that_wait_are_one_call, many_reads, 20)
SIMULATED(DP7_failures_go_to_those_who_asked, failing, 50)
SIMULATED(changes_from_outside_are_seen, changed, 50)
SIMULATED(a_canceled_owner_still_writes, canceled, 50)
SIMULATED(a_table_that_breaks_its_word_is_refused, refused, 20)

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(DP9_a_table_of_the_user_survives_restarts),
        cmocka_unit_test(DP9_the_answer_to_a_write_that_was_dropped_is_synced),
        cmocka_unit_test(reads_that_wait_are_one_call),
        cmocka_unit_test(DP7_failures_go_to_those_who_asked),
        cmocka_unit_test(changes_from_outside_are_seen),
        cmocka_unit_test(a_canceled_owner_still_writes),
        cmocka_unit_test(one_thread_commits_once),
        cmocka_unit_test(a_table_that_breaks_its_word_is_refused),
    };
    return hf_test_main("depot hooks", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
