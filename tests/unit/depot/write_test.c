/* Section 7 of the depot's rules, row by row, on virtual time: what a write does in each state. Pauses are as long as
 * they may be. */
#include "unit/depot/script.h"

static hf_status combine(void *state, const void *first, size_t first_len, const void *second, size_t second_len,
                         hf_value **ret_patch)
{
    origin *o = state;
    char text[80];
    if (o->combine_fails) {
        return HF_ERR_UNSUPPORTED;
    }
    o->combined++;
    memcpy(text, first, first_len);
    memcpy(text + first_len, second, second_len);
    return hf_value_copy(text, first_len + second_len, ret_patch);
}

/* ---- Waiting: coalescing ----------------------------------------------------------------------------------------- */

typedef struct pair {
    const char *name;
    hf_write_verb first, second;
    int64_t between_ms;
    bool has_combine, combine_fails;
    const char *if_match; /* of the second */
    int pushes;
    const char *data[2]; /* as pushed */
    hf_write_verb verbs[2];
} pair;

static const pair PAIRS[] = {
    {"puts within 150 ms are one", HF_WRITE_REPLACE, HF_WRITE_REPLACE, 150, false, false, NULL, 1, {"b"}, {0}},
    {"puts after 150 ms are two", HF_WRITE_REPLACE, HF_WRITE_REPLACE, 151, false, false, NULL, 2, {"a", "b"}, {0}},
    {"a put with a condition is its own",
     HF_WRITE_REPLACE,
     HF_WRITE_REPLACE,
     10,
     false,
     false,
     "x",
     2,
     {"a", "b"},
     {0}},
    {"patches are combined", HF_WRITE_PATCH, HF_WRITE_PATCH, 10, true, false, NULL, 1, {"ab"}, {HF_WRITE_PATCH}},
    {"patches without .combine are two",
     HF_WRITE_PATCH,
     HF_WRITE_PATCH,
     10,
     false,
     false,
     NULL,
     2,
     {"a", "b"},
     {HF_WRITE_PATCH, HF_WRITE_PATCH}},
    {"patches that cannot be combined are two",
     HF_WRITE_PATCH,
     HF_WRITE_PATCH,
     10,
     true,
     true,
     NULL,
     2,
     {"a", "b"},
     {HF_WRITE_PATCH, HF_WRITE_PATCH}},
    {"late patches are two",
     HF_WRITE_PATCH,
     HF_WRITE_PATCH,
     151,
     true,
     false,
     NULL,
     2,
     {"a", "b"},
     {HF_WRITE_PATCH, HF_WRITE_PATCH}},
    {"put and patch are two",
     HF_WRITE_REPLACE,
     HF_WRITE_PATCH,
     10,
     true,
     false,
     NULL,
     2,
     {"a", "b"},
     {HF_WRITE_REPLACE, HF_WRITE_PATCH}},
    {"put and delete are two",
     HF_WRITE_REPLACE,
     HF_WRITE_REMOVE,
     10,
     true,
     false,
     NULL,
     2,
     {"a", ""},
     {HF_WRITE_REPLACE, HF_WRITE_REMOVE}},
};

static hf_status write_as(hf_depot *depot, hf_write_verb verb, const char *data, const char *if_match,
                          hf_depot_write **ret_write)
{
    hf_depot_key key = key_of("A");
    switch (verb) {
    case HF_WRITE_REPLACE:
        return hf_depot_put(depot, key, data, strlen(data), .if_match = if_match, .ret_write = ret_write);
    case HF_WRITE_PATCH:
        return hf_depot_patch(depot, key, data, strlen(data), .if_match = if_match, .ret_write = ret_write);
    case HF_WRITE_REMOVE:
        return hf_depot_delete(depot, key, .if_match = if_match, .ret_write = ret_write);
    case HF_WRITE_CREATE:
        return hf_depot_create(depot, key, data, strlen(data), NULL, .ret_write = ret_write);
    }
    return HF_ERR_INVALID;
}

static hf_status coalescing(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < HF_COUNT_OF(PAIRS); i++) {
        const pair *row = &PAIRS[i];
        origin o = {.combine_fails = row->combine_fails};
        hf_depot_write *writes[2] = {NULL, NULL};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        hf_depot_options options = {.combine = row->has_combine ? combine : NULL};
        bool had_store = has_store;
        has_store = false;
        HF_TRY(open_with(&o, &options, &depot));
        has_store = had_store;
        HF_TRY(hf_depot_online(depot, false));
        ROW(row->name, write_as(depot, row->first, "a", NULL, &writes[0]) == HF_OK);
        HF_TRY(hf_sleep(hf_milliseconds(row->between_ms)));
        ROW(row->name, write_as(depot, row->second, "b", row->if_match, &writes[1]) == HF_OK);
        ROW(row->name, counts_of(depot).pending == (uint64_t)row->pushes);
        ROW(row->name, is_at_hand(depot, key_of("A"),
                                  row->second == HF_WRITE_REMOVE  ? "-"
                                  : row->second == HF_WRITE_PATCH ? "ab"
                                                                  : "b"));
        HF_TRY(hf_depot_online(depot, true));
        ROW(row->name, hf_depot_write_wait(writes[0]) == HF_OK);
        ROW(row->name, hf_depot_write_wait(writes[1]) == HF_OK);
        ROW(row->name, o.count == row->pushes);
        for (int k = 0; k < row->pushes; k++) {
            ROW(row->name, pushed(&o, k, row->verbs[k], "A", row->data[k]));
        }
        hf_depot_write_free(writes[0]);
        hf_depot_write_free(writes[1]);
    }
    /* a row that was sent takes no newer value; a patch that does not fit is its caller's failure */
    origin o = {.answers = {{.takes = hf_seconds(1)}}, .answer_count = 1};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    hf_depot_options options = {.combine = combine};
    HF_TRY(open_with(&o, &options, &depot));
    HF_TRY(hf_depot_put(depot, key_of("A"), "a", 1));
    HF_TRY(hf_sleep(hf_milliseconds(20)));
    HF_CHECK(o.count == 1);
    HF_TRY(hf_depot_put(depot, key_of("A"), "b", 1));
    HF_TRY(hf_depot_patch(depot, key_of("A"), "c", 1));
    HF_CHECK(hf_depot_patch(depot, key_of("A"), "!", 1) == HF_ERR_INVALID);
    HF_CHECK(is_at_hand(depot, key_of("A"), "bc") && counts_of(depot).pending == 3);
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_CHECK(o.count == 3 && pushed(&o, 0, HF_WRITE_REPLACE, "A", "a") && pushed(&o, 1, HF_WRITE_REPLACE, "A", "b") &&
             pushed(&o, 2, HF_WRITE_PATCH, "A", "c"));
    return HF_OK;
}

/* ---- Sending: what the origin answers ---------------------------------------------------------------------------- */

typedef struct turn {
    const char *name;
    answer answers[5];
    int answer_count;
    hf_conflict policy;
    hf_status settled; /* of the write */
    int pushes;
    const char *last;    /* the data of the last push ... */
    const char *matches; /* ... and its condition */
    const char *visible; /* at the end */
    uint64_t dead;
} turn;

#define CONFLICT(text)                                              \
    {                                                               \
        .status = HF_ERR_CONFLICT, .value = text, .etag = "e-" text \
    }
#define FAILED(why)                            \
    {                                          \
        .status = HF_ERR_FAILED, .failed = why \
    }

static const turn TURNS[] = {
    {"accepted", {{.etag = "x"}}, 1, 0, HF_OK, 1, "mine", "", "mine", 0},
    {"accepted, and told what it is now", {{.value = "theirs"}}, 1, 0, HF_OK, 1, "mine", "", "theirs", 0},
    {"conflict, the server wins", {CONFLICT("9")}, 1, HF_CONFLICT_SERVER_WINS, HF_ERR_CONFLICT, 1, "mine", "", "9", 0},
    {"conflict, the client wins", {CONFLICT("9")}, 1, HF_CONFLICT_CLIENT_WINS, HF_OK, 2, "mine", "e-9", "mine", 0},
    {"the client wins three times at most",
     {CONFLICT("5"), CONFLICT("6"), CONFLICT("7"), CONFLICT("8")},
     4,
     HF_CONFLICT_CLIENT_WINS,
     HF_ERR_CONFLICT,
     4,
     "mine",
     "e-7",
     "8",
     0},
    {"conflict, merged", {CONFLICT("9")}, 1, HF_CONFLICT_MERGE, HF_OK, 2, "9+mine", "e-9", "9+mine", 0},
    {"retried classes",
     {FAILED(HF_REPLY_TIMEOUT), FAILED(HF_REPLY_NETWORK), FAILED(HF_REPLY_ORIGIN), FAILED(HF_REPLY_UNKNOWN)},
     4,
     0,
     HF_OK,
     5,
     "mine",
     "",
     "mine",
     0},
    {"denied: dead", {FAILED(HF_REPLY_DENIED)}, 1, 0, HF_ERR_DENIED, 1, "mine", "", "base", 1},
    {"invalid: dead", {FAILED(HF_REPLY_INVALID)}, 1, 0, HF_ERR_INVALID, 1, "mine", "", "base", 1},
    {"tls: dead", {FAILED(HF_REPLY_TLS)}, 1, 0, HF_OK, 1, "mine", "", "base", 1},
    {"not found: dead", {FAILED(HF_REPLY_NOT_FOUND)}, 1, 0, HF_ERR_NOT_FOUND, 1, "mine", "", "base", 1},
};

static hf_status turns(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < HF_COUNT_OF(TURNS); i++) {
        const turn *row = &TURNS[i];
        origin o = {.value = "base", .answer_count = row->answer_count};
        memcpy(o.answers, row->answers, sizeof row->answers);
        hf_depot_write *write = NULL;
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        bool had_store = has_store;
        has_store = false;
        HF_TRY(open_with(&o, NULL, &depot));
        has_store = had_store;
        hf_value *value = NULL;
        HF_TRY(hf_depot_get(depot, key_of("A"), &value));
        hf_value_unref(value);
        HF_TRY(hf_depot_put(depot, key_of("A"), "mine", 4, .on_conflict = row->policy, .ret_write = &write));
        hf_status status = hf_depot_write_wait(write);
        hf_status expected =
            row->settled != HF_OK || row->dead == 0 ? row->settled : hf_class_info_of(row->answers[0].failed)->status;
        ROW(row->name, status == expected);
        ROW(row->name, o.count == row->pushes && strcmp(o.log[o.count - 1].data, row->last) == 0);
        ROW(row->name, strcmp(o.log[o.count - 1].if_match, row->matches) == 0);
        ROW(row->name, is_at_hand(depot, key_of("A"), row->visible));
        ROW(row->name, counts_of(depot).dead == row->dead && counts_of(depot).pending == row->dead);
        for (int k = 1; k < o.count; k++) { /* DP6: one id */
            ROW(row->name, strcmp(o.log[k].id, o.log[0].id) == 0);
        }
        hf_depot_write_free(write);
    }
    return HF_OK;
}

/* 1 s x 2^n, at most 5 minutes; for ever, or .attempts_max, also over a restart. */
static hf_status pauses(void *arg)
{
    (void)arg;
    static const int64_t SECONDS[] = {1, 2, 30, 8, 16, 32, 64, 128, 256, 300, 300};
    origin o = {.answer_count = 12};
    for (int i = 0; i < 12; i++) {
        o.answers[i] = (answer)FAILED(HF_REPLY_NETWORK);
    }
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    bool had_store = has_store;
    has_store = false;
    HF_TRY(open_with(&o, NULL, &depot));
    has_store = had_store;
    HF_TRY(hf_depot_put(depot, key_of("A"), "a", 1));
    HF_TRY(hf_sleep(hf_hours(1)));
    HF_CHECK(o.count == 13 && counts_of(depot).pending == 0);
    for (int i = 0; i < 11; i++) {
        int64_t pause = o.log[i + 1].at - o.log[i].at;
        /* three failures open the breaker for 30 s; a probe that fails, again */
        HF_CHECK_SAY(pause >= hf_seconds(SECONDS[i]).ns || pause == hf_seconds(30).ns, "pause %d: %lld ms", i,
                     (long long)(pause / 1000000));
        HF_CHECK_SAY(o.log[i + 1].attempt == i + 2, "attempt %d", o.log[i + 1].attempt);
    }
    return HF_OK;
}

static hf_status attempts(void *arg)
{
    (void)arg;
    origin o = {.answer_count = 6};
    for (int i = 0; i < 6; i++) {
        o.answers[i] = (answer)FAILED(HF_REPLY_NETWORK);
    }
    hf_depot_options options = {.attempts_max = 3, .coalesce = HF_SPAN_OFF};
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_with(&o, &options, &depot));
        HF_TRY(hf_depot_put(depot, key_of("A"), "a", 1));
        HF_TRY(hf_sleep(hf_milliseconds(1500)));
        HF_CHECK(o.count == 2);
        if (!has_store) {
            return HF_OK;
        }
    }
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, &options, &depot));
    HF_TRY(hf_sleep(hf_minutes(5)));
    HF_CHECK(o.count == 3 && o.log[2].attempt == 3 && strcmp(o.log[2].id, o.log[0].id) == 0);
    found rows = rows_of(depot);
    HF_CHECK(rows.count == 1 && rows.is_dead[0] && strcmp(rows.message[0], "as the script says") == 0);
    return HF_OK;
}

/* A dead write is rolled back, watchers see it, and later rows of the key go on; then by hand. */
static hf_status dead(void *arg)
{
    (void)arg;
    origin o = {.value = "base", .answers = {FAILED(HF_REPLY_DENIED), {.takes = hf_seconds(1)}}, .answer_count = 2};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, NULL, &depot));
    hf_value *value = NULL;
    HF_TRY(hf_depot_get(depot, key_of("A"), &value));
    hf_value_unref(value);
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &watcher, .fresh = HF_FRESH_LOCAL, .mode = HF_FLOW_DROP_OLDEST));
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_patch(depot, key_of("A"), "1", 1));
    HF_TRY(hf_depot_patch(depot, key_of("A"), "2", 1));
    HF_CHECK(is_at_hand(depot, key_of("A"), "base12"));
    HF_TRY(hf_depot_online(depot, true));
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    HF_CHECK(is_at_hand(depot, key_of("A"), "base2") && o.count == 2);
    found rows = rows_of(depot);
    HF_CHECK(rows.count == 2 && rows.is_dead[0] && !rows.is_dead[1]);
    static const char *const SEEN[] = {"base", "base1", "base12", "base2"};
    for (size_t i = 0; i < HF_COUNT_OF(SEEN); i++) {
        hf_depot_event event;
        HF_TRY(hf_watcher_next(watcher, &event, .timeout = hf_seconds(1)));
        HF_CHECK_SAY(event.kind == HF_DEPOT_DATA && hf_value_len(event.value) == strlen(SEEN[i]) &&
                         memcmp(hf_value_data(event.value), SEEN[i], strlen(SEEN[i])) == 0,
                     "event %zu", i);
        hf_value_unref(event.value);
    }
    HF_CHECK(hf_depot_retry(depot, rows.sequence[1]) == HF_ERR_CONFLICT); /* it is being sent */
    HF_CHECK(hf_depot_drop(depot, rows.sequence[1] + 7) == HF_ERR_NOT_FOUND);
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(is_at_hand(depot, key_of("A"), "base2") && counts_of(depot).pending == 1);
    HF_TRY(hf_depot_retry(depot, rows.sequence[0])); /* folded again, and sent with the same id */
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.count == 3 && strcmp(o.log[2].id, o.log[0].id) == 0 && is_at_hand(depot, key_of("A"), "base21"));
    /* dropped by hand: as if it had never been */
    o.answers[3] = (answer)FAILED(HF_REPLY_DENIED);
    o.answer_count = 4;
    HF_TRY(hf_depot_put(depot, key_of("A"), "no", 2));
    HF_TRY(hf_sleep(hf_seconds(1)));
    rows = rows_of(depot);
    HF_CHECK(rows.count == 1 && rows.is_dead[0]);
    HF_TRY(hf_depot_drop(depot, rows.sequence[0]));
    HF_CHECK(is_at_hand(depot, key_of("A"), "base21") && counts_of(depot).pending == 0);
    return HF_OK;
}

/* A crash, a close: the same row is sent again, with the same id. Conditions arrive. */
static hf_status again(void *arg)
{
    (void)arg;
    origin o = {.answers = {{.takes = hf_seconds(100)}}, .answer_count = 1};
    if (!has_store) {
        return HF_OK;
    }
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_with(&o, NULL, &depot));
        HF_TRY(hf_depot_put(depot, key_of("A"), "a", 1, .if_none = true));
        HF_TRY(hf_depot_put(depot, key_of("A"), "b", 1, .if_match = "x"));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.count == 1);
    }
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_with(&o, NULL, &depot));
    HF_CHECK(is_at_hand(depot, key_of("A"), "b"));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.count == 3 && strcmp(o.log[0].id, o.log[1].id) == 0 && o.log[1].if_none && !o.log[2].if_none &&
             strcmp(o.log[2].if_match, "x") == 0 && strcmp(o.log[2].id, o.log[1].id) != 0);
    return HF_OK;
}

/* Conditions and bounds of the call itself, in both modes. */
static hf_status refusals(void *arg)
{
    (void)arg;
    for (int mode = HF_DEPOT_LOCAL_FIRST; mode <= HF_DEPOT_ORIGIN_FIRST; mode++) {
        origin o = {.value = "base"};
        hf_depot_info info;
        hf_value *value = NULL;
        hf_depot_options options = {.pending_max = 2, .coalesce = HF_SPAN_OFF};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        bool had_store = has_store;
        has_store = false;
        HF_TRY(open_with(&o, &options, &depot));
        has_store = had_store;
        HF_TRY(hf_depot_get(depot, key_of("A"), &value, .ret_info = &info));
        hf_value_unref(value);
        hf_depot_mode how = (hf_depot_mode)mode;
        HF_CHECK(hf_depot_put(depot, key_of("A"), "x", 1, .mode = how, .if_version = info.version + 1) ==
                 HF_ERR_CONFLICT);
        HF_CHECK(strstr(hf_error_text(), "read it again") != NULL && o.count == 0);
        HF_CHECK(hf_depot_create(depot, key_of("A"), "x", 1, NULL, .mode = how) == HF_ERR_CONFLICT && o.count == 0);
        HF_CHECK(hf_depot_put(depot, key_of("A"), "x", 1, .mode = how, .if_version = info.version) == HF_OK);
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.count == 1);
        HF_TRY(hf_depot_online(depot, false));
        HF_TRY(hf_depot_put(depot, key_of("B"), "x", 1));
        HF_TRY(hf_depot_put(depot, key_of("C"), "x", 1));
        HF_CHECK(hf_depot_put(depot, key_of("D"), "x", 1, .mode = how) ==
                 (mode == HF_DEPOT_LOCAL_FIRST ? HF_ERR_LIMIT : HF_ERR_UNAVAILABLE));
        HF_CHECK(hf_depot_invalidate(depot, key_of("B"), .drop_pending = true) == HF_ERR_INVALID);
    }
    return HF_OK;
}

static void waiting_writes_become_one(void **state)
{
    (void)state;
    simulated("coalescing", 100, coalescing);
}

static void the_origins_answer_decides(void **state)
{
    (void)state;
    simulated("answers", 100, turns);
}

static void failed_writes_wait_longer_and_longer(void **state)
{
    (void)state;
    simulated("pauses", 100, pauses);
}

static void attempts_are_counted_over_a_restart(void **state)
{
    (void)state;
    simulated("attempts", 100, attempts);
}

static void dead_writes_are_rolled_back_and_left_to_people(void **state)
{
    (void)state;
    simulated("dead", 100, dead);
}

static void a_write_is_sent_again_with_its_id(void **state)
{
    (void)state;
    simulated("again", 100, again);
}

static void writes_are_refused_before_anything_changes(void **state)
{
    (void)state;
    simulated("refusals", 100, refusals);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(waiting_writes_become_one),
    cmocka_unit_test(the_origins_answer_decides),
    cmocka_unit_test(failed_writes_wait_longer_and_longer),
    cmocka_unit_test(attempts_are_counted_over_a_restart),
    cmocka_unit_test(dead_writes_are_rolled_back_and_left_to_people),
    cmocka_unit_test(a_write_is_sent_again_with_its_id),
    cmocka_unit_test(writes_are_refused_before_anything_changes),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot writes", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
