/* The tables of reading and watching, cell by cell, and the classes of failures, row by row, each on a whole depot on
 * virtual time. rules_test.c has the same tables as pure functions. */
#include "rig.h"

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* What is at hand: a value of age 10 s, ttl 300 s or (stale) 5 s. */
typedef enum at_hand { NONE, UNUSABLE, FRESH, STALE, ABSENT, DELETED, PENDING, STATES } at_hand;
static const char *const STATE_NAMES[STATES] = {"none", "unusable", "fresh", "stale", "absent", "deleted", "pending"};
/* WITHIN 20 s and 5 s; OR_STALE of a depot that allows 20 s. */
enum { CACHED, WITHIN_20, WITHIN_5, NOW, OR_STALE, LOCAL, ASKS };
static const hf_depot_get_options ASK[ASKS] = {
    [CACHED] = {.fresh = HF_FRESH_CACHED},
    [WITHIN_20] = {.fresh = HF_FRESH_WITHIN, .within = {.ns = 20000000000}},
    [WITHIN_5] = {.fresh = HF_FRESH_WITHIN, .within = {.ns = 5000000000}},
    [NOW] = {.fresh = HF_FRESH_NOW},
    [OR_STALE] = {.fresh = HF_FRESH_OR_STALE},
    [LOCAL] = {.fresh = HF_FRESH_LOCAL},
};

/* What a get does: o serves the old value, r the same and refreshes, f waits for the new one, n HF_ERR_NOT_FOUND,
 * u HF_ERR_UNAVAILABLE, e the failure of the fetch, p serves the pending write. */
static const struct {
    const char *open;    /* by ASK: the origin answers */
    const char *failing; /* the fetch fails */
    const char *blocked; /* the depot is offline */
} CELLS[STATES] = {
    [NONE] = {"fffffn", "eeeeen", "uuuuun"},    [UNUSABLE] = {"fffffn", "eeeeon", "uuuuon"},
    [FRESH] = {"oofffo", "ooeeoo", "oouuoo"},   [STALE] = {"rofffo", "roeeoo", "oouuoo"},
    [ABSENT] = {"nnnffn", "nnneen", "nnnuun"},  [DELETED] = {"nnnnnn", "nnnnnn", "nnnnnn"},
    [PENDING] = {"pppfpp", "pppepp", "pppupp"},
};

static hf_status make_state(hf_depot *depot, origin *o, at_hand state)
{
    o->value = state == ABSENT ? NULL : "old";
    switch (state) {
    case NONE:
    case STATES:
        break;
    case ABSENT:
        HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_CACHED) == HF_ERR_NOT_FOUND);
        break;
    case UNUSABLE:
    case FRESH:
    case STALE:
    case DELETED:
    case PENDING:
        GET(depot, "A", "old", .fresh = HF_FRESH_CACHED);
        break;
    }
    HF_TRY(hf_sleep(hf_seconds(10)));
    if (state == UNUSABLE) {
        HF_TRY(hf_depot_invalidate(depot, rig_key("A")));
    } else if (state == DELETED) {
        HF_TRY(hf_depot_delete(depot, rig_key("A"), .mode = HF_DEPOT_ORIGIN_FIRST));
    } else if (state == PENDING) {
        o->push_takes = hf_seconds(9); /* it is on its way all the time */
        HF_TRY(rig_put(depot, "A", "mine"));
        HF_TRY(hf_sleep(hf_milliseconds(1)));
    }
    o->value = "new";
    return HF_OK;
}

static hf_status one_cell(at_hand state, int ask, int weather, char expected)
{
    origin o = {0};
    hf_depot_info info = {0};
    hf_depot_get_options options = ASK[ask];
    hf_value *got = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .retries = HF_OFF,
                    .stale_max = hf_seconds(20), .ttl = state == STALE ? hf_seconds(5) : hf_seconds(300)));
    HF_TRY(make_state(depot, &o, state));
    int fetches = o.fetches;
    o.is_down = weather == 1;
    o.takes = hf_seconds(2);
    if (weather == 2) {
        HF_TRY(hf_depot_online(depot, false));
    }
    options.size = sizeof options;
    options.ret_info = &info;
    int64_t before = rig_now();
    hf_status status = hf_depot_get_with(depot, rig_key("A"), &got, &options);
    int64_t took = rig_now() - before;
    bool waits = o.fetches > fetches && took > 0;
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    bool refreshes = o.fetches > fetches && !waits;
    char seen = status == HF_ERR_NOT_FOUND     ? 'n'
                : status == HF_ERR_UNAVAILABLE ? 'u'
                : status == HF_ERR_IO          ? 'e'
                : status != HF_OK              ? '?'
                : rig_is_text(got, "mine")     ? (waits ? 'f' : 'p')
                : rig_is_text(got, "new")      ? 'f'
                : refreshes                    ? 'r'
                                               : 'o';
    HF_CHECK_SAY(seen == expected, "%s, ask %d, weather %d: %c instead of %c", STATE_NAMES[state], ask, weather, seen,
                 expected);
    bool should_wait = expected == 'f' || expected == 'e' || (weather == 1 && expected == 'o' && ask == OR_STALE);
    HF_CHECK_SAY(waits == should_wait && took == (should_wait ? hf_seconds(2).ns : 0), "%s, ask %d, weather %d: when",
                 STATE_NAMES[state], ask, weather);
    HF_CHECK_SAY(status != HF_OK || state != STALE || info.is_stale == (expected != 'f'), "%s, ask %d: is_stale",
                 STATE_NAMES[state], ask);
    HF_CHECK_SAY(status != HF_OK || info.is_pending == (state == PENDING), "%s, ask %d: is_pending", STATE_NAMES[state],
                 ask);
    hf_value_unref(got);
    return HF_OK;
}

TRACE(every_cell_of_reading_on_a_whole_depot)
{
    for (int state = 0; state < STATES; state++) {
        for (int ask = 0; ask < ASKS; ask++) {
            HF_TRY(one_cell((at_hand)state, ask, 0, CELLS[state].open[ask]));
            HF_TRY(one_cell((at_hand)state, ask, 1, CELLS[state].failing[ask]));
            HF_TRY(one_cell((at_hand)state, ask, 2, CELLS[state].blocked[ask]));
        }
    }
    return HF_OK;
}

/* ---- Watching ---------------------------------------------------------------------------------------------------- */

/* The first events of a watcher: L loading, o the old value, O the same, old, n the new one, N the old one with a new
 * age, e a failure, E a failure beside a value that stays, u HF_ERR_UNAVAILABLE, G gone. */
static char letter_of(const hf_depot_event *event)
{
    switch (event->kind) {
    case HF_DEPOT_LOADING:
        return 'L';
    case HF_DEPOT_GONE:
        return 'G';
    case HF_DEPOT_ERROR:
        return event->status == HF_ERR_UNAVAILABLE ? 'u' : event->served_stale ? 'E' : 'e';
    case HF_DEPOT_DATA:
        break;
    default: /* events of later features */
        return '?';
    }
    return rig_is_text(event->value, "new")    ? 'n'
           : rig_is_text(event->value, "mine") ? 'p'
           : event->is_stale                   ? 'O'
           : event->age.ns < hf_seconds(10).ns ? 'N'
                                               : 'o';
}

static const struct {
    const char *text;
    at_hand state;
    hf_fresh fresh;
    int64_t within; /* seconds */
    int weather;    /* 0 answers, 1 fails, 2 offline, 3 not modified */
    const char *events;
} OPENINGS[] = {
    {"none", NONE, HF_FRESH_CACHED, 0, 0, "Ln"},
    {"none, failing", NONE, HF_FRESH_CACHED, 0, 1, "Le"},
    {"none, offline", NONE, HF_FRESH_CACHED, 0, 2, "Lu"},
    {"unusable", UNUSABLE, HF_FRESH_CACHED, 0, 0, "Ln"},
    {"unusable, failing", UNUSABLE, HF_FRESH_CACHED, 0, 1, "Le"},
    {"unusable, local", UNUSABLE, HF_FRESH_LOCAL, 0, 0, ""},
    {"fresh", FRESH, HF_FRESH_CACHED, 0, 0, "o"},
    {"fresh, within 20 s", FRESH, HF_FRESH_WITHIN, 20, 0, "o"},
    {"older than within", FRESH, HF_FRESH_WITHIN, 5, 0, "on"},
    {"older than within, not modified", FRESH, HF_FRESH_WITHIN, 5, 3, "oN"},
    {"stale", STALE, HF_FRESH_CACHED, 0, 0, "On"},
    {"stale, not modified", STALE, HF_FRESH_CACHED, 0, 3, "ON"},
    {"stale, failing", STALE, HF_FRESH_CACHED, 0, 1, "OE"},
    {"stale, offline", STALE, HF_FRESH_CACHED, 0, 2, "Ou"},
    {"now", FRESH, HF_FRESH_NOW, 0, 0, "Ln"},
    {"now, failing", FRESH, HF_FRESH_NOW, 0, 1, "Le"},
    {"local, none", NONE, HF_FRESH_LOCAL, 0, 0, ""},
    {"local, fresh", FRESH, HF_FRESH_LOCAL, 0, 0, "o"},
    {"local, stale", STALE, HF_FRESH_LOCAL, 0, 0, "O"},
    {"or stale", STALE, HF_FRESH_OR_STALE, 0, 0, "On"},
    {"or stale, failing", STALE, HF_FRESH_OR_STALE, 0, 1, "OE"},
    {"absent", ABSENT, HF_FRESH_CACHED, 0, 0, ""},
    {"deleted", DELETED, HF_FRESH_CACHED, 0, 0, ""},
    {"pending", PENDING, HF_FRESH_CACHED, 0, 0, "p"},
};

TRACE(every_row_of_watching_on_a_whole_depot)
{
    for (size_t i = 0; i < HF_COUNT_OF(OPENINGS); i++) {
        origin o = {.etag = "x"};
        char seen[16] = "";
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .retries = HF_OFF,
                        .ttl = OPENINGS[i].state == STALE ? hf_seconds(5) : hf_seconds(300)));
        HF_TRY(make_state(depot, &o, OPENINGS[i].state));
        o.is_down = OPENINGS[i].weather == 1;
        o.etag = OPENINGS[i].weather == 3 ? "x" : "y";
        o.takes = hf_seconds(1);
        if (OPENINGS[i].weather == 2) {
            HF_TRY(hf_depot_online(depot, false));
        }
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, rig_key("A"), &watcher, .fresh = OPENINGS[i].fresh,
                              .within = hf_seconds(OPENINGS[i].within), .mode = HF_FLOW_DROP_OLDEST));
        hf_depot_event event;
        while (hf_watcher_next(watcher, &event, .timeout = hf_seconds(3)) == HF_OK && strlen(seen) < 10) {
            seen[strlen(seen)] = letter_of(&event);
            if (event.kind == HF_DEPOT_DATA) {
                hf_value_unref(event.value);
            }
        }
        HF_CHECK_SAY(strcmp(seen, OPENINGS[i].events) == 0, "%s: '%s' instead of '%s'", OPENINGS[i].text, seen,
                     OPENINGS[i].events);
    }
    return HF_OK;
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    origin fails; /* how */
    hf_status status;
    int attempts;
    bool counts; /* against the breaker */
    bool serves_stale;
} FAILURES[] = {
    {"unknown", {.returns = HF_ERR_FAILED}, HF_ERR_FAILED, 3, true, true},
    {"HF_ERR_TIMEOUT", {.returns = HF_ERR_TIMEOUT}, HF_ERR_TIMEOUT, 3, true, true},
    {"timeout", {.why = HF_REPLY_TIMEOUT}, HF_ERR_TIMEOUT, 3, true, true},
    {"HF_ERR_RESET", {.returns = HF_ERR_RESET}, HF_ERR_RESET, 3, true, true},
    {"HF_ERR_REFUSED", {.returns = HF_ERR_REFUSED}, HF_ERR_REFUSED, 3, true, true},
    {"network", {.why = HF_REPLY_NETWORK}, HF_ERR_IO, 3, true, true},
    {"origin", {.why = HF_REPLY_ORIGIN}, HF_ERR_UNAVAILABLE, 3, true, true},
    {"408", {.http_status = 408}, HF_ERR_TIMEOUT, 3, true, true},
    {"429", {.http_status = 429}, HF_ERR_UNAVAILABLE, 3, true, true},
    {"500", {.http_status = 500}, HF_ERR_UNAVAILABLE, 3, true, true},
    {"503", {.http_status = 503}, HF_ERR_UNAVAILABLE, 3, true, true},
    {"tls", {.why = HF_REPLY_TLS}, HF_ERR_IO, 1, true, true},
    {"not found", {.why = HF_REPLY_NOT_FOUND}, HF_ERR_NOT_FOUND, 1, false, false},
    {"404", {.http_status = 404}, HF_ERR_NOT_FOUND, 1, false, false},
    {"410", {.http_status = 410}, HF_ERR_NOT_FOUND, 1, false, false},
    {"denied", {.why = HF_REPLY_DENIED}, HF_ERR_DENIED, 1, false, false},
    {"401", {.http_status = 401}, HF_ERR_DENIED, 1, false, false},
    {"403", {.http_status = 403}, HF_ERR_DENIED, 1, false, false},
    {"invalid", {.why = HF_REPLY_INVALID}, HF_ERR_INVALID, 1, false, false},
    {"400", {.http_status = 400}, HF_ERR_INVALID, 1, false, false},
    {"409", {.http_status = 409}, HF_ERR_INVALID, 1, false, false},
    {"422", {.http_status = 422}, HF_ERR_INVALID, 1, false, false},
};

TRACE(every_class_of_failures_on_a_whole_depot)
{
    for (size_t i = 0; i < HF_COUNT_OF(FAILURES); i++) {
        origin o = FAILURES[i].fails;
        hf_depot_info info = {0};
        o.value = "old";
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o));
        GET(depot, "S", "old", .fresh = HF_FRESH_CACHED);
        int fetches = o.fetches;
        o.is_down = true;
        hf_status status = rig_get(depot, "A", .fresh = HF_FRESH_CACHED);
        HF_CHECK_SAY(status == FAILURES[i].status, "%s: %s", FAILURES[i].text, hf_status_name(status));
        HF_CHECK_SAY(o.fetches - fetches == FAILURES[i].attempts, "%s: %d attempts", FAILURES[i].text,
                     o.fetches - fetches);
        HF_CHECK_SAY(depot->breakers[0].failures == FAILURES[i].counts, "%s: against the breaker", FAILURES[i].text);
        status = rig_get(depot, "S", .fresh = HF_FRESH_OR_STALE, .ret_info = &info);
        HF_CHECK_SAY(status == (FAILURES[i].serves_stale ? HF_OK : FAILURES[i].status), "%s, or stale: %s",
                     FAILURES[i].text, hf_status_name(status));
    }
    return HF_OK;
}

/* ---- Attempts ---------------------------------------------------------------------------------------------------- */

TRACE(attempts_have_a_time_limit_pauses_and_the_origins_wish)
{
    static const struct {
        const char *text;
        int64_t takes_s, retries, retry_after_ms;
        hf_status status;
        int attempts;
        int64_t took_ms;
    } CASES[] = {
        {"one attempt", 0, HF_OFF, 0, HF_ERR_IO, 1, 0},
        {"three, 200 and 400 ms apart", 0, 0, 0, HF_ERR_IO, 3, 600},
        {"five", 0, 4, 0, HF_ERR_IO, 5, 200 + 400 + 800 + 1600},
        {"the origin asks for more time", 0, 0, 5000, HF_ERR_IO, 3, 10000},
        {"the origin asks for less", 0, 0, 100, HF_ERR_IO, 3, 600},
        {"10 s for each", 60, 0, 0, HF_ERR_TIMEOUT, 3, 30600},
        {"an attempt within its time", 9, HF_OFF, 0, HF_ERR_IO, 1, 9000},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        origin o = {.is_down = true,
                    .takes = hf_seconds(CASES[i].takes_s),
                    .retry_after = hf_milliseconds(CASES[i].retry_after_ms)};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .retries = CASES[i].retries));
        int64_t before = rig_now();
        hf_status status = rig_get(depot, "A", .fresh = HF_FRESH_CACHED);
        HF_CHECK_SAY(status == CASES[i].status && o.fetches == CASES[i].attempts &&
                         rig_now() - before == hf_milliseconds(CASES[i].took_ms).ns,
                     "%s: %s after %d attempts and %lld ms", CASES[i].text, hf_status_name(status), o.fetches,
                     (long long)((rig_now() - before) / 1000000));
        HF_CHECK(o.attempt_last == CASES[i].attempts && depot->breakers[0].failures == 1); /* one failure in all */
    }
    return HF_OK;
}

TRACE(fetches_at_once_are_bounded_and_go_by_urgency)
{
    origin o = {.is_named = true, .takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .fetch_max = 1));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    static const struct {
        const char *id;
        hf_urgency urgency;
    } ASKED[] = {{"a", HF_URGENCY_NORMAL}, {"b", HF_URGENCY_LOW},    {"c", HF_URGENCY_NORMAL},
                 {"d", HF_URGENCY_HIGH},   {"e", HF_URGENCY_NORMAL}, {"f", HF_URGENCY_HIGH}};
    rig_asker askers[HF_COUNT_OF(ASKED)];
    for (size_t i = 0; i < HF_COUNT_OF(ASKED); i++) {
        askers[i] = (rig_asker){.depot = depot, .id = ASKED[i].id, .options = {.urgency = ASKED[i].urgency}};
        HF_TRY(hf_fork(scope, rig_ask, &askers[i]));
        HF_TRY(hf_sleep(hf_milliseconds(1)));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK_SAY(strcmp(o.order, "adfceb") == 0 && o.running_max == 1, "order %s", o.order);
    return HF_OK;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(every_cell_of_reading_on_a_whole_depot),
    cmocka_unit_test(every_row_of_watching_on_a_whole_depot),
    cmocka_unit_test(every_class_of_failures_on_a_whole_depot),
    cmocka_unit_test(attempts_have_a_time_limit_pauses_and_the_origins_wish),
    cmocka_unit_test(fetches_at_once_are_bounded_and_go_by_urgency),
};

int main(int argc, char **argv)
{
    rig_seeds = 6;
    return hf_test_main("depot cells", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
