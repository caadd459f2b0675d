/* What one sees of a depot: hf_depot_events, the counters in hf_metrics, flights and breakers in hf_dump. */
#include "support/json_check.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "depot/door.h"
#include "depot/look.h"

#include <stdio.h>
#include <string.h>

typedef struct origin {
    hf_span takes, push_takes;
    bool is_down;
    hf_status push_status; /* HF_OK = accepted */
} origin;

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    if (o->takes.ns > 0) {
        HF_TRY(hf_sleep(o->takes));
    }
    if (o->is_down) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK, .message = "the line is dead");
    }
    if (request->etag != NULL) {
        return hf_reply_not_modified(reply);
    }
    HF_TRY(hf_reply_etag(reply, "e"));
    return hf_reply_value(reply, "v", 1);
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    origin *o = state;
    (void)request;
    if (o->push_takes.ns > 0) {
        HF_TRY(hf_sleep(o->push_takes));
    }
    if (o->push_status == HF_ERR_IO) {
        return hf_reply_fail(reply, HF_REPLY_NETWORK);
    }
    return o->push_status == HF_OK ? HF_OK : hf_raise(o->push_status, "refused");
}

static hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("acme", "user", id);
}

static hf_status open_depot(origin *o, hf_depot **ret_depot)
{
    HF_TRY(hf_depot_open("users", ret_depot, .fetch = fetch, .push = push, .state = o, .retries = HF_OFF));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}

static hf_status get(hf_depot *depot, const char *id, hf_fresh fresh)
{
    hf_value *value = NULL;
    hf_status status = hf_depot_get(depot, key_of(id), &value, .fresh = fresh);
    hf_value_unref(value);
    return status;
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

typedef struct expected {
    hf_depot_news_kind kind;
    const char *id; /* NULL = about no key */
    hf_status status;
} expected;

static void expect(hf_collector *events, const expected *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hf_depot_news news;
        hf_status status = hf_collector_next(events, &news, .timeout = hf_seconds(600));
        if (!HF_CHECK_SAY(status == HF_OK, "no %s: %s", hf_depot_news_name(rows[i].kind), hf_status_name(status))) {
            return;
        }
        HF_CHECK_SAY(news.kind == rows[i].kind, "event %zu is '%s', not '%s'", i, hf_depot_news_name(news.kind),
                     hf_depot_news_name(rows[i].kind));
        HF_CHECK_SAY(news.status == rows[i].status, "event %zu has %s", i, hf_status_name(news.status));
        size_t len = rows[i].id != NULL ? strlen(rows[i].id) : 0;
        HF_CHECK_SAY(news.id_len == len && memcmp(news.id, rows[i].id != NULL ? rows[i].id : "", len) == 0,
                     "event %zu is about another key", i);
        HF_CHECK(len == 0 || (strcmp(news.ns, "acme") == 0 && strcmp(news.type, "user") == 0));
        HF_CHECK(news.at.ns > 0);
    }
}

#define EXPECT(events, ...)                        \
    do {                                           \
        const expected rows_[] = {__VA_ARGS__};    \
        expect(events, rows_, HF_COUNT_OF(rows_)); \
    } while (0)

static hf_status see_events(void *arg)
{
    (void)arg;
    origin o = {0};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    HF_CHECK(get(depot, "early", HF_FRESH_CACHED) == HF_OK); /* before anybody listens */
    hf_collector *events = NULL;
    HF_TRY(hf_depot_events(depot, &events));
    HF_CHECK(get(depot, "A", HF_FRESH_CACHED) == HF_OK && get(depot, "A", HF_FRESH_CACHED) == HF_OK);
    EXPECT(events, {HF_NEWS_FETCHED, "A", HF_OK}, {HF_NEWS_LANDED, "A", HF_OK});
    HF_CHECK(get(depot, "A", HF_FRESH_OR_STALE) == HF_OK);
    EXPECT(events, {HF_NEWS_NOT_MODIFIED, "A", HF_OK}, {HF_NEWS_LANDED, "A", HF_OK});
    /* Three keys fail: the breaker opens, and closes when the origin answers again. */
    o.is_down = true;
    HF_CHECK(get(depot, "B", HF_FRESH_CACHED) == HF_ERR_IO && get(depot, "C", HF_FRESH_CACHED) == HF_ERR_IO &&
             get(depot, "D", HF_FRESH_CACHED) == HF_ERR_IO);
    EXPECT(events, {HF_NEWS_FETCH_FAILED, "B", HF_ERR_IO}, {HF_NEWS_FETCH_FAILED, "C", HF_ERR_IO},
           {HF_NEWS_BREAKER_OPEN, NULL, HF_OK}, {HF_NEWS_FETCH_FAILED, "D", HF_ERR_IO});
    o.is_down = false;
    HF_TRY(hf_sleep(hf_seconds(31)));
    HF_CHECK(get(depot, "B", HF_FRESH_CACHED) == HF_OK);
    EXPECT(events, {HF_NEWS_BREAKER_CLOSED, NULL, HF_OK}, {HF_NEWS_FETCHED, "B", HF_OK}, {HF_NEWS_LANDED, "B", HF_OK});
    /* Writes. */
    HF_TRY(hf_depot_put(depot, key_of("W"), "1", 1));
    EXPECT(events, {HF_NEWS_SENT, "W", HF_OK}, {HF_NEWS_SETTLED, "W", HF_OK});
    o.push_status = HF_ERR_IO;
    HF_TRY(hf_depot_put(depot, key_of("W"), "2", 1));
    EXPECT(events, {HF_NEWS_SENT, "W", HF_OK}, {HF_NEWS_SEND_FAILED, "W", HF_ERR_IO});
    o.push_status = HF_ERR_CONFLICT;
    EXPECT(events, {HF_NEWS_SENT, "W", HF_OK}, {HF_NEWS_CONFLICT, "W", HF_ERR_CONFLICT});
    o.push_status = HF_ERR_DENIED;
    HF_TRY(hf_depot_put(depot, key_of("W"), "3", 1));
    EXPECT(events, {HF_NEWS_SENT, "W", HF_OK}, {HF_NEWS_DEAD, "W", HF_ERR_DENIED});
    /* Invalidations: a key, a namespace, everything. */
    HF_TRY(hf_depot_invalidate(depot, key_of("A")));
    HF_TRY(hf_depot_invalidate_all(depot));
    EXPECT(events, {HF_NEWS_INVALIDATED, "A", HF_OK}, {HF_NEWS_INVALIDATED, NULL, HF_OK});
    HF_TRY(hf_depot_invalidate_namespace(depot, "acme"));
    hf_depot_news news;
    HF_TRY(hf_collector_next(events, &news));
    HF_CHECK(news.kind == HF_NEWS_INVALIDATED && strcmp(news.ns, "acme") == 0 && news.type[0] == '\0');
    /* A slow one loses the oldest, and never holds up the depot. */
    for (int i = 0; i < HF_DEPOT_NEWS_MAX + 7; i++) {
        HF_TRY(hf_depot_invalidate(depot, key_of(i < 7 ? "old" : "new")));
    }
    HF_CHECK(hf_collector_dropped(events) == 7);
    HF_TRY(hf_collector_next(events, &news));
    HF_CHECK(news.id_len == 3 && memcmp(news.id, "new", 3) == 0);
    HF_TRY(hf_depot_close(depot));
    depot = NULL;
    hf_status status = HF_OK;
    int left = 0;
    while ((status = hf_collector_next(events, &news)) == HF_OK) {
        left++;
    }
    HF_CHECK(status == HF_ERR_CLOSED && left == HF_DEPOT_NEWS_MAX - 1);
    HF_TRY(hf_collector_close(events));
    for (int kind = 0; kind < HF_NEWS_KINDS; kind++) {
        HF_CHECK(strcmp(hf_depot_news_name((hf_depot_news_kind)kind), "?") != 0);
    }
    HF_CHECK(strcmp(hf_depot_news_name((hf_depot_news_kind)HF_NEWS_KINDS), "?") == 0);
    return HF_OK;
}

/* ---- Counters ---------------------------------------------------------------------------------------------------- */

/* The number behind this text. */
static unsigned long long number_behind(const char *text, const char *what)
{
    const char *at = strstr(text, what);
    unsigned long long number = 0;
    HF_CHECK_SAY(at != NULL && sscanf(at + strlen(what), " %llu", &number) == 1, "no %s in:\n%s", what, text);
    return number;
}

static hf_status see_counters(void *arg)
{
    (void)arg;
    origin o = {0};
    hf_depot_counts counts;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_AUTO(hf_depot_close) hf_depot *other = NULL;
    HF_TRY(open_depot(&o, &depot));
    HF_TRY(hf_depot_open("o\"t\\h\ner", &other));
    HF_CHECK(get(depot, "A", HF_FRESH_CACHED) == HF_OK); /* a miss */
    for (int i = 0; i < 5; i++) {
        HF_CHECK(get(depot, "A", HF_FRESH_CACHED) == HF_OK);
    }
    HF_TRY(hf_sleep(hf_minutes(6)));
    HF_CHECK(get(depot, "A", HF_FRESH_CACHED) == HF_OK); /* stale, and refreshed */
    HF_TRY(hf_sleep(hf_seconds(1)));
    o.is_down = true;
    HF_CHECK(get(depot, "B", HF_FRESH_CACHED) == HF_ERR_IO);
    o.push_status = HF_ERR_DENIED;
    HF_TRY(hf_depot_put(depot, key_of("W"), "1", 1));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK_SAY(counts.hits_memory == 6 && counts.hits_source == 0 && counts.misses == 2, "%llu hits, %llu misses",
                 (unsigned long long)counts.hits_memory, (unsigned long long)counts.misses);
    HF_CHECK(counts.stale_served == 1 && counts.refreshes == 1 && counts.fetches == 3 && counts.not_modified == 1);
    HF_CHECK(counts.fetch_failures == 1 && counts.failures[HF_REPLY_NETWORK] == 1);
    HF_CHECK(counts.writes == 1 && counts.dead == 1 && counts.dead_now == 1 && counts.pending == 1);
    HF_CHECK(counts.entries >= 1 && counts.bytes > 0 && counts.evictions == 0 && counts.sending == 0);
    HF_TRY(hf_depot_trim(depot, 0));
    HF_TRY(hf_depot_drop(depot, 1));
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK(counts.dead_now == 0 && counts.pending == 0);
    /* The three forms of hf_metrics have the same numbers. */
    HF_AUTO(hf_text_free) char *text = NULL;
    HF_AUTO(hf_text_free) char *json = NULL;
    HF_AUTO(hf_text_free) char *prometheus = NULL;
    HF_TRY(hf_metrics(NULL, &text));
    HF_TRY(hf_metrics(NULL, &json, .json = true));
    HF_TRY(hf_metrics(NULL, &prometheus, .prometheus = true));
    HF_CHECK(number_behind(text, "depot.hits{name=\"users\",place=\"memory\"}") == 6);
    HF_CHECK(number_behind(text, "depot.failures{name=\"users\",class=\"network\"}") == 1);
    HF_CHECK(number_behind(prometheus, "holdfast_depot_hits_total{name=\"users\",place=\"memory\"}") == 6);
    HF_CHECK(number_behind(prometheus, "holdfast_depot_misses_total{name=\"users\"}") == 2);
    HF_CHECK(number_behind(prometheus, "holdfast_depot_failures_total{name=\"users\",class=\"network\"}") == 1);
    HF_CHECK(number_behind(prometheus, "holdfast_depot_pending{name=\"users\"}") == 0);
    HF_CHECK(number_behind(prometheus, "holdfast_depot_misses_total{name=\"o\\\"t\\\\h\\ner\"}") == 0);
    HF_CHECK(json_is_valid(json) && strstr(json, "\"hits\":{\"memory\":6,\"source\":0}") != NULL);
    /* One HELP and one TYPE for each name, its numbers behind them; no key in a label. */
    for (const char *at = strstr(prometheus, "# TYPE "); at != NULL; at = strstr(at + 1, "# TYPE ")) {
        char name[128];
        char line[160];
        HF_CHECK(sscanf(at, "# TYPE %127s", name) == 1);
        (void)snprintf(line, sizeof line, "# TYPE %s ", name);
        HF_CHECK_SAY(strstr(at + 1, line) == NULL, "%s stands twice", name);
    }
    HF_CHECK(strstr(prometheus, "acme") == NULL && strstr(text, "acme") == NULL);
    return HF_OK;
}

/* ---- Dumps ------------------------------------------------------------------------------------------------------- */

static hf_status wait_for_it(void *arg)
{
    return get(arg, "slow", HF_FRESH_CACHED);
}

static hf_status see_dump(void *arg)
{
    (void)arg;
    origin o = {0};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    o.is_down = true;
    for (int i = 0; i < 3; i++) {
        char id[2] = {(char)('A' + i), '\0'};
        HF_CHECK(get(depot, id, HF_FRESH_CACHED) == HF_ERR_IO);
    }
    HF_AUTO(hf_text_free) char *open = NULL;
    HF_TRY(hf_dump(NULL, &open, .no_stacks = true));
    HF_CHECK_SAY(strstr(open, "  breaker of origin 0: open for another 30.000 s\n") != NULL, "%s", open);
    HF_TRY(hf_sleep(hf_seconds(31)));
    o.is_down = false;
    HF_CHECK(get(depot, "A", HF_FRESH_NOW) == HF_OK);
    o.takes = hf_seconds(5);
    o.push_takes = hf_seconds(5);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "askers"));
    HF_TRY(hf_fork(scope, wait_for_it, depot, .name = "first"));
    HF_TRY(hf_fork(scope, wait_for_it, depot, .name = "second"));
    HF_TRY(hf_depot_put(depot, key_of("W"), "1", 1));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_AUTO(hf_text_free) char *text = NULL;
    HF_AUTO(hf_text_free) char *json = NULL;
    HF_TRY(hf_dump(NULL, &text, .no_stacks = true));
    HF_TRY(hf_dump(NULL, &json, .no_stacks = true, .json = true));
    HF_CHECK_SAY(strstr(text, "depot 'users': 1 fetches, 1 sends, 1 writes wait, 0 dead, 0 watchers\n") != NULL, "%s",
                 text);
    HF_CHECK_SAY(strstr(text, "  fetch of acme/user/slow: flying, 2 holders, for 'first', 'second'\n") != NULL ||
                     strstr(text, "  fetch of acme/user/slow: flying, 2 holders, for 'second', 'first'\n") != NULL,
                 "%s", text);
    HF_CHECK_SAY(strstr(text, "  write 1 of acme/user/W: attempt 1 on its way\n") != NULL, "%s", text);
    HF_CHECK(json_is_valid(json) && strstr(json, "\"key\":\"acme/user/slow\"") != NULL);
    HF_TRY(hf_join(scope));
    return HF_OK;
}

/* While a function of the user's is being called, its depot is looked at from inside. */
static char *seen_inside;

static hf_status apply_and_look(void *state, const hf_value *value, const void *patch, size_t len, hf_value **ret_value)
{
    (void)state;
    (void)value;
    hf_text_free(seen_inside);
    seen_inside = NULL;
    HF_TRY(hf_metrics(NULL, &seen_inside));
    return hf_value_copy(patch, len, ret_value);
}

static hf_status see_inside(void *arg)
{
    (void)arg;
    origin o = {0};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .push = push, .apply = apply_and_look, .state = &o));
    HF_TRY(hf_depot_patch(depot, key_of("A"), "p", 1));
    HF_CHECK(seen_inside != NULL && strstr(seen_inside, "depot.writes{name=\"users\"}") != NULL);
    hf_text_free(seen_inside);
    seen_inside = NULL;
    return HF_OK;
}

/* ---- What goes over the socket ----------------------------------------------------------------------------------- */

static void frames_come_out_as_they_went_in_and_others_are_refused(void **state)
{
    (void)state;
    hf_buf out;
    hf_buf_init(&out, hf_env_memory(hf_env_posix()), 1 << 20);
    hf_door_put(&out, HF_DOOR_FIGURE, UINT64_MAX, HF_STR("misses"), (hf_str){0});
    hf_door_put(&out, HF_DOOR_ROW, 7, HF_STR("a\0b"), HF_STR("body"));
    hf_str left = hf_str_of_len(out.data, out.len);
    hf_door_frame frame;
    assert_int_equal(hf_door_take(&left, &frame), HF_OK);
    assert_true(frame.kind == HF_DOOR_FIGURE && frame.number == UINT64_MAX && frame.text.len == 6 &&
                frame.body.len == 0);
    for (size_t cut = 0; cut < left.len; cut++) { /* every piece of the second one */
        hf_str piece = hf_str_of_len(left.data, cut);
        assert_int_equal(hf_door_take(&piece, &frame), HF_ERR_AGAIN);
    }
    assert_int_equal(hf_door_take(&left, &frame), HF_OK);
    assert_true(frame.kind == HF_DOOR_ROW && frame.text.len == 3 && hf_str_equal(frame.body, HF_STR("body")));
    assert_int_equal(left.len, 0);
    char bad[HF_DOOR_HEAD_LEN + 4];
    memset(bad, 0xff, sizeof bad);
    left = hf_str_of_len(bad, sizeof bad); /* a length of 4 GiB */
    assert_int_equal(hf_door_take(&left, &frame), HF_ERR_INVALID);
    memset(bad, 0, sizeof bad);
    left = hf_str_of_len(bad, sizeof bad); /* one that does not hold its own head */
    assert_int_equal(hf_door_take(&left, &frame), HF_ERR_INVALID);
    hf_buf_deinit(&out);
    hf_seen_write seen;
    hf_str key = hf_str_of_len("ns\0type\0id", 10);
    hf_str line = HF_STR("dead put 3 12 99 5 0123456789abcdef0123456789abcdef it was refused");
    assert_int_equal(hf_look_write_line(4, key, line, &seen), HF_OK);
    assert_true(seen.sequence == 4 && seen.attempts == 3 && seen.len == 12 && seen.made_at == 99);
    assert_string_equal(seen.message, "it was refused");
    assert_int_equal(hf_look_write_line(4, key, HF_STR("dead put"), &seen), HF_ERR_INVALID);
    assert_int_equal(hf_look_write_line(4, HF_STR("no key"), line, &seen), HF_ERR_INVALID);
}

#define SIMULATED(name, body)                                                       \
    static void one_##body(uint64_t seed)                                           \
    {                                                                               \
        HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 3), body, NULL, NULL) == HF_OK); \
    }                                                                               \
    static void name(void **state)                                                  \
    {                                                                               \
        (void)state;                                                                \
        hf_each_seed(#body, 100, one_##body);                                       \
    }

SIMULATED(events_tell_what_happens_in_order_and_drop_the_oldest, see_events)
SIMULATED(counters_are_the_same_in_stat_and_all_forms_of_metrics, see_counters)
SIMULATED(dumps_show_flights_who_waits_sends_and_breakers, see_dump)
SIMULATED(metrics_can_be_asked_from_inside_a_callback, see_inside)

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(events_tell_what_happens_in_order_and_drop_the_oldest),
    cmocka_unit_test(counters_are_the_same_in_stat_and_all_forms_of_metrics),
    cmocka_unit_test(dumps_show_flights_who_waits_sends_and_breakers),
    cmocka_unit_test(metrics_can_be_asked_from_inside_a_callback),
    cmocka_unit_test(frames_come_out_as_they_went_in_and_others_are_refused),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot_view", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
