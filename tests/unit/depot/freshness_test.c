/* The table of rules.c on a whole depot: what is at hand times the freshness that is asked for, as tables. Virtual time. */
#include "support/support.h"

#include "depot/depot_private.h"

#include <stdio.h>
#include <string.h>

/* ---- An origin --------------------------------------------------------------------------------------------------- */

typedef struct origin {
    const char *value; /* NULL = there is none */
    const char *etag;
    hf_span takes;
    hf_reply_class fails; /* with is_down */
    bool is_down;
    int fetches;
    hf_span push_takes;
} origin;

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    o->fetches++;
    if (o->takes.ns > 0) {
        HF_TRY(hf_sleep(o->takes));
    }
    if (o->is_down) {
        return hf_reply_fail(reply, o->fails);
    }
    if (o->value == NULL) {
        return HF_ERR_NOT_FOUND;
    }
    if (o->etag != NULL && request->etag != NULL && strcmp(o->etag, request->etag) == 0) {
        return hf_reply_not_modified(reply);
    }
    if (o->etag != NULL) {
        HF_TRY(hf_reply_etag(reply, o->etag));
    }
    return hf_reply_value(reply, o->value, strlen(o->value));
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)request;
    (void)reply;
    return hf_sleep(((origin *)state)->push_takes);
}

static hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("acme", "user", id);
}

static void get_quietly(hf_depot *depot, const char *id, hf_fresh fresh)
{
    hf_value *value = NULL;
    HF_IGNORE(hf_depot_get(depot, key_of(id), &value, .fresh = fresh));
    hf_value_unref(value);
}

/* ---- What is at hand --------------------------------------------------------------------------------------------- */

typedef enum at_hand {
    AT_NONE,
    AT_FRESH,    /* a minute old */
    AT_STALE,    /* 6 minutes old, ttl 5 */
    AT_OLD,      /* 21 minutes old, stale_max 20 */
    AT_UNUSABLE, /* soft-invalidated, a minute old */
    AT_ABSENT,   /* the origin has said so a moment ago */
    AT_DELETED,  /* by a write that the origin has accepted */
    AT_DELETING, /* by a write that is not settled */
    AT_PENDING,  /* a put that is not settled, over a value */
    AT_COUNT
} at_hand;

static const char *const AT_NAMES[] = {"none",   "fresh",   "stale",    "old",    "unusable",
                                       "absent", "deleted", "deleting", "pending"};

typedef enum block { BLOCK_NO, BLOCK_BACKOFF, BLOCK_BREAKER, BLOCK_OFFLINE, BLOCK_COUNT } block;
static const char *const BLOCK_NAMES[] = {"", "back-off", "breaker", "offline"};

static hf_status open_depot(origin *o, hf_depot **ret_depot)
{
    HF_TRY(hf_depot_open("users", ret_depot, .fetch = fetch, .push = push, .state = o, .retries = HF_OFF,
                         .stale_max = hf_minutes(20), .coalesce = HF_SPAN_OFF));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}

static hf_status set_up(hf_depot *depot, origin *o, at_hand state)
{
    static const int64_t AGES[AT_COUNT] = {[AT_FRESH] = 60, [AT_STALE] = 360, [AT_OLD] = 1260, [AT_UNUSABLE] = 60};
    o->value = state == AT_ABSENT ? NULL : "old";
    hf_depot_write *write = NULL;
    if (state != AT_NONE) {
        get_quietly(depot, "A", HF_FRESH_CACHED);
        HF_TRY(hf_sleep(hf_seconds(AGES[state])));
    }
    switch (state) {
    case AT_UNUSABLE:
        HF_TRY(hf_depot_invalidate(depot, key_of("A")));
        break;
    case AT_DELETED:
        HF_TRY(hf_depot_delete(depot, key_of("A"), .ret_write = &write));
        HF_TRY(hf_depot_write_wait(write));
        hf_depot_write_free(write);
        break;
    case AT_DELETING:
        o->push_takes = hf_seconds(9);
        HF_TRY(hf_depot_delete(depot, key_of("A")));
        break;
    case AT_PENDING:
        o->push_takes = hf_seconds(9);
        HF_TRY(hf_depot_put(depot, key_of("A"), "mine", 4));
        break;
    default:
        break;
    }
    return HF_OK;
}

static hf_status set_block(hf_depot *depot, origin *o, block blocked)
{
    static const char *const OTHERS[] = {"X", "Y", "Z"};
    o->is_down = true;
    o->fails = HF_REPLY_NETWORK;
    switch (blocked) {
    case BLOCK_BACKOFF:
        get_quietly(depot, "A", HF_FRESH_NOW);
        break;
    case BLOCK_BREAKER:
        for (size_t i = 0; i < HF_COUNT_OF(OTHERS); i++) {
            get_quietly(depot, OTHERS[i], HF_FRESH_NOW);
        }
        break;
    case BLOCK_OFFLINE:
        HF_TRY(hf_depot_online(depot, false));
        break;
    default:
        break;
    }
    o->is_down = false;
    return HF_OK;
}

/* ---- Gets -------------------------------------------------------------------------------------------------------- */

/* The columns: WITHIN twice, once with a span that the value is older than, once with one that it is not. */
enum { COLUMNS = 6 };
static const struct {
    const char *name;
    hf_fresh fresh;
    int64_t within;
} ASKED[COLUMNS] = {
    {"CACHED", HF_FRESH_CACHED, 0}, {"WITHIN 10 s", HF_FRESH_WITHIN, 10}, {"WITHIN 1 h", HF_FRESH_WITHIN, 3600},
    {"NOW", HF_FRESH_NOW, 0},       {"OR_STALE", HF_FRESH_OR_STALE, 0},   {"LOCAL", HF_FRESH_LOCAL, 0},
};

/* I: what is at hand; R: the same, and a refresh; F: fetched; M: fetched, and the write folded in; N: HF_ERR_NOT_FOUND;
 * U: HF_ERR_UNAVAILABLE; E: the failure of the fetch; S: fetched, that failed, and what is at hand. */
typedef struct row {
    at_hand state;
    const char *cells; /* a letter per column */
} row;

static const row FREE[] = {
    {AT_NONE, "FFFFFN"},    {AT_FRESH, "IFIFFI"},    {AT_STALE, "RFIFFI"},
    {AT_OLD, "RFIFFI"},     {AT_UNUSABLE, "FFFFFN"}, {AT_ABSENT, "NNNFFN"},
    {AT_DELETED, "NNNNNN"}, {AT_DELETING, "NNNNNN"}, {AT_PENDING, "IIIMII"},
};
static const row BLOCKED[] = {
    {AT_NONE, "UUUUUN"},    {AT_FRESH, "IUIUII"},    {AT_STALE, "IUIUII"},
    {AT_OLD, "IUIUUI"},     {AT_UNUSABLE, "UUUUIN"}, {AT_ABSENT, "NNNUUN"},
    {AT_DELETED, "NNNNNN"}, {AT_DELETING, "NNNNNN"}, {AT_PENDING, "IIIUII"},
};
/* The origin is down: network, a class that OR_STALE may serve for. */
static const row DOWN[] = {
    {AT_NONE, "EEEEEN"},    {AT_FRESH, "IEIESI"},    {AT_STALE, "REIESI"},
    {AT_OLD, "REIEEI"},     {AT_UNUSABLE, "EEEESN"}, {AT_ABSENT, "NNNEEN"},
    {AT_DELETED, "NNNNNN"}, {AT_DELETING, "NNNNNN"}, {AT_PENDING, "IIIEII"},
};
/* The origin refuses: denied, a class that it may not serve for. */
static const row REFUSED[] = {
    {AT_NONE, "EEEEEN"},    {AT_FRESH, "IEIEEI"},    {AT_STALE, "REIEEI"},
    {AT_OLD, "REIEEI"},     {AT_UNUSABLE, "EEEEEN"}, {AT_ABSENT, "NNNEEN"},
    {AT_DELETED, "NNNNNN"}, {AT_DELETING, "NNNNNN"}, {AT_PENDING, "IIIEII"},
};

static char outcome(hf_status status, const hf_value *value, int fetches, int later, bool is_pending)
{
    if (status == HF_OK) {
        size_t len = hf_value_len(value);
        const char *data = hf_value_data(value);
        if (len == 3 && memcmp(data, "new", 3) == 0) {
            return fetches == 1 && later == 1 ? 'F' : '?';
        }
        bool is_mine = len == 4 && memcmp(data, "mine", 4) == 0;
        if (is_mine != is_pending || (!is_mine && (len != 3 || memcmp(data, "old", 3) != 0))) {
            return '?';
        }
        return fetches == 0 ? (later == 0 ? 'I' : 'R') : is_mine ? 'M' : 'S';
    }
    return fetches == 0 ? (status == HF_ERR_NOT_FOUND     ? 'N'
                           : status == HF_ERR_UNAVAILABLE ? 'U'
                                                          : '?')
                        : (status == HF_ERR_IO || status == HF_ERR_DENIED ? 'E' : '?');
}

typedef struct cell {
    at_hand state;
    block blocked;
    bool is_down;
    hf_reply_class fails;
    int column;
    bool is_many; /* by hf_depot_get_many */
    char expected;
} cell;

static hf_status run_cell(const cell *one)
{
    origin o = {.takes = hf_milliseconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    HF_TRY(set_up(depot, &o, one->state));
    HF_TRY(set_block(depot, &o, one->blocked));
    o.value = "new";
    o.is_down = one->is_down;
    o.fails = one->fails;
    int before = o.fetches;
    hf_value *value = NULL;
    hf_depot_info info = {.retry_after = hf_nanoseconds(-1)};
    hf_status status = HF_OK;
    hf_fresh fresh = ASKED[one->column].fresh;
    hf_span within = hf_seconds(ASKED[one->column].within);
    if (one->is_many) {
        hf_depot_key key = key_of("A");
        hf_depot_result result;
        HF_TRY(hf_depot_get_many(depot, &key, 1, &result, .fresh = fresh, .within = within, .ret_infos = &info));
        status = result.status;
        value = result.value;
        HF_CHECK(status == HF_OK || result.message[0] != '\0');
    } else {
        status = hf_depot_get(depot, key_of("A"), &value, .fresh = fresh, .within = within, .ret_info = &info);
    }
    int fetches = o.fetches - before;
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    char got = outcome(status, value, fetches, o.fetches - before, info.is_pending);
    HF_CHECK_SAY(got == one->expected, "%s, %s%s, %s%s: %c, not %c (%s)", AT_NAMES[one->state],
                 BLOCK_NAMES[one->blocked], one->is_down ? " down" : "", ASKED[one->column].name,
                 one->is_many ? " of many" : "", got, one->expected, hf_status_name(status));
    if (got == 'U' && one->blocked != BLOCK_OFFLINE) {
        HF_CHECK_SAY(info.retry_after.ns > 0, "retry_after %lld", (long long)info.retry_after.ns);
    }
    if (got == 'I' || got == 'R' || got == 'S') {
        bool is_old = one->state == AT_STALE || one->state == AT_OLD || one->state == AT_UNUSABLE;
        HF_CHECK_SAY(info.is_stale == is_old, "%s: is_stale %d", AT_NAMES[one->state], info.is_stale);
    }
    hf_value_unref(value);
    return HF_OK;
}

static hf_status run_table(const row *rows, cell like)
{
    for (size_t i = 0; i < AT_COUNT; i++) {
        for (int column = 0; column < COLUMNS; column++) {
            cell one = like;
            one.state = rows[i].state;
            one.column = column;
            one.expected = rows[i].cells[column];
            for (int many = 0; many < 2; many++) {
                one.is_many = many == 1;
                HF_TRY(run_cell(&one));
            }
        }
    }
    return HF_OK;
}

static hf_status gets_free(void *arg)
{
    (void)arg;
    return run_table(FREE, (cell){0});
}

static hf_status gets_blocked(void *arg)
{
    (void)arg;
    for (int blocked = BLOCK_BACKOFF; blocked < BLOCK_COUNT; blocked++) {
        HF_TRY(run_table(BLOCKED, (cell){.blocked = (block)blocked}));
    }
    return HF_OK;
}

static hf_status gets_failing(void *arg)
{
    (void)arg;
    HF_TRY(run_table(DOWN, (cell){.is_down = true, .fails = HF_REPLY_NETWORK}));
    return run_table(REFUSED, (cell){.is_down = true, .fails = HF_REPLY_DENIED});
}

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

typedef enum origin_is { IS_WELL, IS_SAME, IS_DOWN, IS_OFFLINE } origin_is;

/* Events: L, D=value (~ is_stale, ' is_pending), E status (+ served_stale), G. */
static const struct {
    at_hand state;
    int column; /* of ASKED */
    origin_is is;
    const char *events;
} STREAMS[] = {
    /* none */
    {AT_NONE, 0, IS_WELL, "L D=new"},
    {AT_NONE, 0, IS_DOWN, "L E=HF_ERR_IO"},
    {AT_NONE, 0, IS_OFFLINE, "L E=HF_ERR_UNAVAILABLE"},
    {AT_NONE, 1, IS_WELL, "L D=new"},
    {AT_NONE, 4, IS_WELL, "L D=new"},
    {AT_UNUSABLE, 0, IS_WELL, "L D=new"},
    {AT_UNUSABLE, 0, IS_DOWN, "L E=HF_ERR_IO"},
    /* fresh: no fetch */
    {AT_FRESH, 0, IS_WELL, "D=old"},
    {AT_FRESH, 0, IS_DOWN, "D=old"},
    {AT_FRESH, 2, IS_WELL, "D=old"},
    /* stale, or older than within */
    {AT_STALE, 0, IS_WELL, "D=old~ D=new"},
    {AT_STALE, 0, IS_SAME, "D=old~ D=old"},
    {AT_STALE, 0, IS_DOWN, "D=old~ E=HF_ERR_IO+"},
    {AT_STALE, 0, IS_OFFLINE, "D=old~ E=HF_ERR_UNAVAILABLE+"},
    {AT_FRESH, 1, IS_WELL, "D=old~ D=new"},
    {AT_FRESH, 1, IS_DOWN, "D=old~ E=HF_ERR_IO+"},
    {AT_STALE, 2, IS_WELL, "D=old~"},
    {AT_FRESH, 4, IS_WELL, "D=old D=new"},
    {AT_FRESH, 4, IS_DOWN, "D=old E=HF_ERR_IO+"},
    /* now */
    {AT_NONE, 3, IS_WELL, "L D=new"},
    {AT_FRESH, 3, IS_WELL, "L D=new"},
    {AT_FRESH, 3, IS_DOWN, "L E=HF_ERR_IO"},
    {AT_STALE, 3, IS_WELL, "L D=new"},
    /* local */
    {AT_NONE, 5, IS_WELL, ""},
    {AT_FRESH, 5, IS_WELL, "D=old"},
    {AT_STALE, 5, IS_WELL, "D=old~"},
    {AT_UNUSABLE, 5, IS_WELL, ""},
    {AT_ABSENT, 5, IS_WELL, ""},
    {AT_DELETED, 5, IS_WELL, ""},
    {AT_PENDING, 5, IS_WELL, "D=mine'"},
    /* what is known is that there is nothing */
    {AT_ABSENT, 0, IS_WELL, "E=HF_ERR_NOT_FOUND"},
    {AT_ABSENT, 3, IS_WELL, "L D=new"},
    {AT_DELETED, 0, IS_WELL, "G"},
    {AT_DELETING, 0, IS_WELL, "G"},
    {AT_PENDING, 0, IS_WELL, "D=mine'"},
};

static void describe(const hf_depot_event *event, char *text, size_t capacity)
{
    size_t len = strlen(text);
    const char *space = len > 0 ? " " : "";
    switch (event->kind) {
    case HF_DEPOT_LOADING:
        (void)snprintf(text + len, capacity - len, "%sL", space);
        break;
    case HF_DEPOT_DATA:
        (void)snprintf(text + len, capacity - len, "%sD=%.*s%s%s", space, (int)hf_value_len(event->value),
                       (const char *)hf_value_data(event->value), event->is_stale ? "~" : "",
                       event->is_pending ? "'" : "");
        break;
    case HF_DEPOT_ERROR:
        (void)snprintf(text + len, capacity - len, "%sE=%s%s", space, hf_status_name(event->status),
                       event->served_stale ? "+" : "");
        break;
    case HF_DEPOT_GONE:
        (void)snprintf(text + len, capacity - len, "%sG", space);
        break;
    default:
        (void)snprintf(text + len, capacity - len, "%s?", space);
        break;
    }
}

/* The events that are there within `span`. */
static void collect(hf_watcher *watcher, hf_span span, char *text, size_t capacity)
{
    hf_depot_event event;
    text[0] = '\0';
    HF_CHECK(hf_sleep(span) == HF_OK);
    while (hf_watcher_next(watcher, &event, .timeout = hf_microseconds(1)) == HF_OK) {
        describe(&event, text, capacity);
        hf_value_unref(event.value);
    }
}

static hf_status streams_at_open(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < HF_COUNT_OF(STREAMS); i++) {
        origin o = {.etag = STREAMS[i].is == IS_SAME ? "x" : NULL};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_depot(&o, &depot));
        HF_TRY(set_up(depot, &o, STREAMS[i].state));
        o.value = "new";
        o.takes = hf_milliseconds(10);
        o.is_down = STREAMS[i].is == IS_DOWN;
        o.fails = HF_REPLY_NETWORK;
        HF_TRY(hf_depot_online(depot, STREAMS[i].is != IS_OFFLINE));
        int fetches = o.fetches;
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, key_of("A"), &watcher, .fresh = ASKED[STREAMS[i].column].fresh,
                              .within = hf_seconds(ASKED[STREAMS[i].column].within), .mode = HF_FLOW_DROP_OLDEST,
                              .refresh = ASKED[STREAMS[i].column].fresh == HF_FRESH_LOCAL ? hf_milliseconds(5)
                                                                                          : hf_nanoseconds(0)));
        char text[200];
        collect(watcher, hf_milliseconds(100), text, sizeof text);
        HF_CHECK_SAY(strcmp(text, STREAMS[i].events) == 0, "%s, %s (row %zu): '%s', not '%s'",
                     AT_NAMES[STREAMS[i].state], ASKED[STREAMS[i].column].name, i, text, STREAMS[i].events);
        HF_CHECK(ASKED[STREAMS[i].column].fresh != HF_FRESH_LOCAL || o.fetches == fetches); /* never fetches */
    }
    return HF_OK;
}

/* Afterwards: every visible change, and every failed fetch, to every watcher. */
static hf_status streams_afterwards(void *arg)
{
    (void)arg;
    origin o = {.value = "1", .takes = hf_milliseconds(10)};
    char text[200];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    HF_AUTO(hf_watcher_close) hf_watcher *cached = NULL;
    HF_AUTO(hf_watcher_close) hf_watcher *local = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &local, .fresh = HF_FRESH_LOCAL, .mode = HF_FLOW_DROP_OLDEST));
    HF_TRY(hf_depot_watch(depot, key_of("A"), &cached, .mode = HF_FLOW_DROP_OLDEST));
#define EXPECT(watcher, expected)                                                    \
    do {                                                                             \
        collect(watcher, hf_milliseconds(100), text, sizeof text);                   \
        HF_CHECK_SAY(strcmp(text, expected) == 0, "'%s', not '%s'", text, expected); \
    } while (0)
    EXPECT(cached, "L D=1");
    EXPECT(local, "D=1"); /* what others fetch */
    o.value = "2";
    get_quietly(depot, "A", HF_FRESH_NOW);
    EXPECT(cached, "D=2");
    EXPECT(local, "D=2");
    o.is_down = true;
    o.fails = HF_REPLY_NETWORK;
    get_quietly(depot, "A", HF_FRESH_NOW);
    EXPECT(cached, "E=HF_ERR_IO+");
    EXPECT(local, "E=HF_ERR_IO+");
    o.is_down = false;
    HF_TRY(hf_sleep(hf_seconds(10)));
    HF_TRY(hf_depot_put(depot, key_of("A"), "3", 1)); /* pending, then settled */
    EXPECT(cached, "D=3' D=3");
    EXPECT(local, "D=3' D=3");
    o.value = "4";
    HF_TRY(hf_depot_invalidate(depot, key_of("A"))); /* soft: fetched again */
    EXPECT(cached, "D=4");
    EXPECT(local, "D=4");
    o.value = "5";
    HF_TRY(hf_depot_invalidate(depot, key_of("A"), .hard = true));
    EXPECT(cached, "G D=5");
    EXPECT(local, "G D=5");
    o.value = "6";
    HF_TRY(hf_depot_invalidate_namespace(depot, "acme", .hard = true));
    EXPECT(cached, "G D=6");
    EXPECT(local, "G D=6");
    HF_TRY(hf_depot_delete(depot, key_of("A")));
    EXPECT(cached, "G");
    HF_TRY(hf_sleep(hf_minutes(6))); /* expiry alone sends nothing */
    EXPECT(cached, "");
    EXPECT(local, "G");
    return HF_OK;
}

/* What a slow watcher finds. */
static const struct {
    hf_flow_mode mode;
    size_t capacity;
    const char *events;
    uint64_t dropped;
} MODES[] = {
    {HF_FLOW_DEFAULT, 0, "D=6 E=HF_ERR_IO+", 5},
    {HF_FLOW_DEFAULT, 5, "D=6 E=HF_ERR_IO+", 5},
    {HF_FLOW_BUFFER, 0, "E=HF_ERR_IO+", 6}, /* one event */
    {HF_FLOW_CONFLATE, 5, "D=6 E=HF_ERR_IO+", 5},
    {HF_FLOW_BUFFER, 20, "D=1 D=2 D=3 D=4 D=5 D=6 E=HF_ERR_IO+", 0},
    {HF_FLOW_BUFFER, 3, "D=1 D=2 E=HF_ERR_IO+", 4}, /* the newest is there */
    {HF_FLOW_BUFFER, 1, "E=HF_ERR_IO+", 6},
    {HF_FLOW_DROP_OLDEST, 3, "D=5 D=6 E=HF_ERR_IO+", 4},
    {HF_FLOW_DROP_OLDEST, 0, "D=1 D=2 D=3 D=4 D=5 D=6 E=HF_ERR_IO+", 0},
};

static hf_status streams_slow(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < HF_COUNT_OF(MODES); i++) {
        origin o = {.value = "1"};
        char text[200];
        char value[2] = "1";
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_depot(&o, &depot));
        get_quietly(depot, "A", HF_FRESH_CACHED);
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, key_of("A"), &watcher, .mode = MODES[i].mode, .capacity = MODES[i].capacity));
        o.value = value;
        for (value[0] = '2'; value[0] <= '6'; value[0]++) {
            get_quietly(depot, "A", HF_FRESH_NOW);
        }
        o.is_down = true;
        o.fails = HF_REPLY_NETWORK;
        get_quietly(depot, "A", HF_FRESH_NOW);
        collect(watcher, hf_milliseconds(1), text, sizeof text);
        HF_CHECK_SAY(strcmp(text, MODES[i].events) == 0, "mode %d, %zu: '%s', not '%s'", (int)MODES[i].mode,
                     MODES[i].capacity, text, MODES[i].events);
        HF_CHECK_SAY(hf_watcher_dropped(watcher) == MODES[i].dropped, "mode %d, %zu: %llu dropped", (int)MODES[i].mode,
                     MODES[i].capacity, (unsigned long long)hf_watcher_dropped(watcher));
    }
    return HF_OK;
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

SIMULATED(DP2_gets_by_what_is_at_hand, gets_free, 3)
SIMULATED(DP2_gets_while_the_origin_is_not_asked, gets_blocked, 3)
SIMULATED(DP2_gets_while_the_origin_fails, gets_failing, 3)
SIMULATED(S14_streams_when_they_are_opened, streams_at_open, 5)
SIMULATED(DP4_streams_afterwards, streams_afterwards, 20)
SIMULATED(DP4_streams_of_a_slow_watcher, streams_slow, 10)

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(DP2_gets_by_what_is_at_hand),     cmocka_unit_test(DP2_gets_while_the_origin_is_not_asked),
        cmocka_unit_test(DP2_gets_while_the_origin_fails), cmocka_unit_test(S14_streams_when_they_are_opened),
        cmocka_unit_test(DP4_streams_afterwards),          cmocka_unit_test(DP4_streams_of_a_slow_watcher),
    };
    return hf_test_main("depot freshness", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
