/* The breaker (C8) and writes (C9): offline, order, conflicts, preconditions, dead writes, deletes; tables of what may
 * happen to a write, each row on a whole depot. */
#include "rig.h"

#include "depot/file.h"

/* ---- The breaker ------------------------------------------------------------------------------------------------- */

static unsigned by_letter(void *state, hf_depot_key key)
{
    (void)state;
    return *(const char *)key.id == 'x' ? 1 : 0;
}

TRACE(C8_each_origin_has_one_breaker_and_an_open_one_stops_attempts_at_once)
{
    origin o = {.is_down = true};
    hf_depot_info info = {0};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(
        rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .retries = HF_OFF, .origin_of = by_letter));
    static const char *const IDS[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) { /* the third failure in a row, of any keys */
        HF_CHECK(rig_counts(depot).breakers_open == 0);
        HF_CHECK(rig_get(depot, IDS[i], .fresh = HF_FRESH_CACHED) == HF_ERR_IO);
    }
    HF_CHECK(rig_counts(depot).breakers_open == 1);
    HF_CHECK(rig_get(depot, "d", .ret_info = &info) == HF_ERR_UNAVAILABLE && info.retry_after.ns == hf_seconds(30).ns);
    HF_CHECK(rig_get(depot, "d", .force = true) == HF_ERR_UNAVAILABLE); /* never through the breaker */
    HF_CHECK(hf_depot_put(depot, rig_key("d"), "1", 1, .mode = HF_DEPOT_ORIGIN_FIRST) == HF_ERR_UNAVAILABLE);
    HF_TRY(rig_put(depot, "d", "1")); /* waits */
    HF_TRY(hf_sleep(hf_seconds(29)));
    HF_CHECK(o.fetches == 3 && o.pushes == 0);
    HF_CHECK(rig_get(depot, "x", .fresh = HF_FRESH_CACHED) == HF_ERR_IO); /* of another origin */
    o.is_down = false;
    o.value = "v";
    HF_TRY(hf_sleep(hf_seconds(3)));
    HF_CHECK(o.pushes == 1 && rig_counts(depot).pending == 0); /* the write was the probe */
    GET(depot, "e", "v", .fresh = HF_FRESH_CACHED);
    HF_CHECK(rig_counts(depot).breakers_open == 0);
    return HF_OK;
}

TRACE(C8_the_breaker_is_asked_before_every_attempt)
{
    origin o = {.is_down = true};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .retries = 5));
    rig_asker askers[3];
    static const char *const IDS[] = {"a", "b", "c"};
    o.retry_after = hf_seconds(1);
    o.bad_id = "a"; /* this one fails over and over; it began before the breaker opened */
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    askers[0] = (rig_asker){.depot = depot, .id = IDS[0]};
    HF_TRY(hf_fork(scope, rig_ask, &askers[0]));
    HF_TRY(hf_sleep(hf_milliseconds(1500)));
    HF_CHECK(o.fetches == 2);
    depot->breakers[0] = (hf_breaker){.state = HF_BREAKER_OPEN, .open_until = rig_now() + hf_seconds(30).ns};
    HF_TRY(hf_join(scope));
    HF_CHECK(askers[0].status == HF_ERR_UNAVAILABLE && o.fetches == 2);
    HF_CHECK(depot->breakers[0].state == HF_BREAKER_OPEN);
    return HF_OK;
}

TRACE(C8_a_probe_that_is_canceled_gives_its_permit_back)
{
    origin o = {.is_down = true};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .retries = HF_OFF));
    static const char *const IDS[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        HF_CHECK(rig_get(depot, IDS[i], .fresh = HF_FRESH_CACHED) == HF_ERR_IO);
    }
    HF_TRY(hf_sleep(hf_seconds(31)));
    o.is_down = false;
    o.value = "v";
    o.takes = hf_seconds(5);
    for (int i = 0; i < 5; i++) {
        HF_CHECK(rig_get(depot, "p", .timeout = hf_seconds(1)) == HF_ERR_TIMEOUT); /* the probe loses its only waiter */
        HF_TRY(hf_sleep(hf_milliseconds(1)));
        HF_CHECK(o.canceled == i + 1 && depot->breakers[0].state == HF_BREAKER_HALF_OPEN &&
                 depot->breakers[0].probes_left == 1);
    }
    GET(depot, "p", "v", .fresh = HF_FRESH_CACHED);
    HF_CHECK(depot->breakers[0].state == HF_BREAKER_CLOSED);
    return HF_OK;
}

/* Rows of the breaker's table, as what a program sees: letters are fetches in a row. */
TRACE(C8_the_breaker_follows_its_table_on_a_whole_depot)
{
    static const struct {
        const char *what; /* f fails, n not found, d denied, o fine, 3 half a minute passes */
        bool is_open;
    } ROWS[] = {
        {"ff", false},      {"fff", true},      {"ffof", false},    {"ffnff", false},  {"ffdff", false},
        {"fff3", false},    {"fff3o", false},   {"fff3f", true},    {"fff3f3", false}, {"fff3f3o", false},
        {"fff3off", false}, {"fff3nff", false}, {"fff3offf", true}, {"nnnnnn", false},
    };
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        origin o = {0};
        char id[16];
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .retries = HF_OFF));
        for (const char *at = ROWS[i].what; *at != '\0'; at++) {
            if (*at == '3') {
                HF_TRY(hf_sleep(hf_seconds(31)));
                continue;
            }
            (void)snprintf(id, sizeof id, "k%d", (int)(at - ROWS[i].what));
            o.is_down = *at == 'f' || *at == 'd';
            o.why = *at == 'd' ? HF_REPLY_DENIED : HF_REPLY_NETWORK;
            o.value = *at == 'o' ? "v" : NULL;
            HF_CHECK_SAY(rig_get(depot, id, .fresh = HF_FRESH_CACHED) == (*at == 'f'   ? HF_ERR_IO
                                                                          : *at == 'd' ? HF_ERR_DENIED
                                                                          : *at == 'n' ? HF_ERR_NOT_FOUND
                                                                                       : HF_OK),
                         "%s at %d", ROWS[i].what, (int)(at - ROWS[i].what));
        }
        HF_CHECK_SAY((rig_counts(depot).breakers_open == 1) == ROWS[i].is_open, "%s: open?", ROWS[i].what);
    }
    return HF_OK;
}

/* ---- Writes ------------------------------------------------------------------------------------------------------ */

TRACE(C9_writes_wait_while_the_depot_is_offline_survive_a_restart_and_arrive_in_order)
{
    lent store;
    origin o = {.value = "base"};
    char first_id[HF_WRITE_ID_LEN] = "";
    HF_TRY(rig_store(&store));
    for (int life = 0; life < 2; life++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        if (life == 0) {
            HF_TRY(hf_depot_online(depot, false));
            HF_TRY(rig_put(depot, "A", "1"));
            HF_TRY(hf_sleep(hf_seconds(1)));
            HF_TRY(rig_put(depot, "A", "2"));
            HF_TRY(rig_put(depot, "B", "3"));
            HF_TRY(hf_sleep(hf_seconds(1)));
            HF_TRY(hf_depot_delete(depot, rig_key("A")));
            HF_CHECK(rig_counts(depot).pending == 4 && o.pushes == 0);
        } else {
            HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
            GET(depot, "B", "3", .fresh = HF_FRESH_LOCAL);
            HF_TRY(hf_sleep(hf_seconds(1)));
            HF_CHECK(o.pushes == 4 && rig_counts(depot).pending == 0 && rig_counts(depot).sent == 4);
        }
    }
    char order[16] = "";
    for (int i = 0; i < 4; i++) {
        if (strcmp(o.pushed[i].id, "A") == 0) {
            strcat(order, o.pushed[i].verb == HF_WRITE_REMOVE ? "x" : o.pushed[i].data);
        }
        HF_CHECK(strcmp(first_id, o.pushed[i].write_id) != 0 && strlen(o.pushed[i].write_id) == 32);
        memcpy(first_id, o.pushed[i].write_id, sizeof first_id);
    }
    HF_CHECK_SAY(strcmp(order, "12x") == 0, "order %s", order);
    hf_store_close(store.inner);
    return HF_OK;
}

TRACE(C9_a_refused_write_is_rolled_back_kept_with_its_reason_and_retried_or_dropped_by_hand)
{
    for (int drops = 0; drops < 2; drops++) {
        origin o = {.value = "base"};
        hf_depot_write *write = NULL;
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        GET(depot, "A", "base", .fresh = HF_FRESH_CACHED);
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, rig_key("A"), &watcher, .mode = HF_FLOW_DROP_OLDEST));
        rig_next(watcher, HF_DEPOT_DATA, "base", NULL);
        o.is_down = true;
        o.why = HF_REPLY_DENIED;
        HF_TRY(hf_depot_put(depot, rig_key("A"), "mine", 4, .ret_write = &write));
        HF_CHECK(hf_depot_write_wait(write) == HF_ERR_DENIED && strstr(hf_error_text(), "the line is dead") != NULL);
        hf_depot_write_free(write);
        rig_next(watcher, HF_DEPOT_DATA, "mine", NULL);
        rig_next(watcher, HF_DEPOT_DATA, "base", NULL); /* rolled back */
        GET(depot, "A", "base", .fresh = HF_FRESH_LOCAL);
        HF_CHECK(rig_counts(depot).dead == 1 && rig_counts(depot).pending == 1);
        HF_TRY(hf_sleep(hf_hours(1)));
        HF_CHECK(o.pushes == 1); /* not by itself */
        o.is_down = false;
        HF_TRY(rig_put(depot, "A", "later")); /* later writes of the key go on */
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.pushes == 2);
        HF_TRY(drops ? hf_depot_drop(depot, 1) : hf_depot_retry(depot, 1));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.pushes == (drops ? 2 : 3) && rig_counts(depot).pending == 0);
        GET(depot, "A", drops ? "later" : "mine", .fresh = HF_FRESH_LOCAL);
        HF_CHECK(hf_depot_drop(depot, 1) == HF_ERR_NOT_FOUND);
    }
    return HF_OK;
}

/* Fetches are thrown away for changes of the key, and this is none: neither the base nor what is visible changes. */
TRACE(DP7_sending_a_write_again_by_hand_does_not_make_a_fetch_fly_again)
{
    for (int is_dead = 0; is_dead < 2; is_dead++) {
        origin o = {.value = "base", .takes = hf_milliseconds(500), .is_down = true};
        o.why = is_dead ? HF_REPLY_DENIED : HF_REPLY_NETWORK;
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        HF_TRY(rig_put(depot, "A", "mine"));
        HF_TRY(hf_sleep(hf_milliseconds(300)));
        HF_CHECK(o.pushes == 1 && rig_counts(depot).dead == (uint64_t)is_dead);
        o.is_down = false;
        o.push_takes = hf_minutes(1); /* its answer would be a change */
        rig_asker askers[2] = {{.depot = depot, .id = "A", .options = {.fresh = HF_FRESH_NOW}}};
        askers[1] = askers[0];
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, rig_ask, &askers[0]));
        HF_TRY(hf_sleep(hf_milliseconds(100)));
        HF_TRY(is_dead ? hf_depot_drop(depot, 1) : hf_depot_retry(depot, 1));
        HF_TRY(hf_sleep(hf_milliseconds(100)));
        HF_TRY(hf_fork(scope, rig_ask, &askers[1]));
        HF_TRY(hf_join(scope));
        HF_CHECK(askers[0].status == HF_OK && askers[1].status == HF_OK && o.pushes == 2 - is_dead);
        HF_CHECK_SAY(o.fetches == 1, "%d fetches, dead %d", o.fetches, is_dead);
    }
    return HF_OK;
}

static hf_status join_values(void *state, const hf_value *value, const void *patch, size_t len, hf_value **ret_value)
{
    char text[64];
    (void)state;
    if (len == 3 && memcmp(patch, "bad", 3) == 0) {
        return HF_ERR_INVALID;
    }
    int made = snprintf(text, sizeof text, "%.*s+%.*s", value != NULL ? (int)hf_value_len(value) : 0,
                        value != NULL ? (const char *)hf_value_data(value) : "", (int)len, (const char *)patch);
    return hf_value_copy(text, (size_t)made, ret_value);
}

static hf_status merge_values(void *state, const hf_value *base, const hf_value *mine, const hf_value *theirs,
                              hf_value **ret_value)
{
    char text[64];
    (void)state;
    int made =
        snprintf(text, sizeof text, "%.*s/%.*s/%.*s", base != NULL ? (int)hf_value_len(base) : 0,
                 base != NULL ? (const char *)hf_value_data(base) : "", (int)hf_value_len(mine),
                 (const char *)hf_value_data(mine), (int)hf_value_len(theirs), (const char *)hf_value_data(theirs));
    return hf_value_copy(text, (size_t)made, ret_value);
}

TRACE(C9_conflicts_are_settled_by_the_policy_of_the_write)
{
    static const struct {
        hf_conflict of_depot, of_write;
        hf_status status;
        const char *visible;
        int pushes;
        const char *sent_last, *if_match_last;
    } CASES[] = {
        {HF_CONFLICT_DEFAULT, HF_CONFLICT_DEFAULT, HF_ERR_CONFLICT, "theirs", 1, "mine", "x"},
        {HF_CONFLICT_DEFAULT, HF_CONFLICT_SERVER_WINS, HF_ERR_CONFLICT, "theirs", 1, "mine", "x"},
        {HF_CONFLICT_DEFAULT, HF_CONFLICT_CLIENT_WINS, HF_OK, "mine", 2, "mine", "theirs"},
        {HF_CONFLICT_DEFAULT, HF_CONFLICT_MERGE, HF_OK, "base/mine/theirs", 2, "base/mine/theirs", "theirs"},
        {HF_CONFLICT_CLIENT_WINS, HF_CONFLICT_DEFAULT, HF_OK, "mine", 2, "mine", "theirs"},
        {HF_CONFLICT_CLIENT_WINS, HF_CONFLICT_SERVER_WINS, HF_ERR_CONFLICT, "theirs", 1, "mine", "x"},
        {HF_CONFLICT_SERVER_WINS, HF_CONFLICT_CLIENT_WINS, HF_OK, "mine", 2, "mine", "theirs"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        origin o = {.value = "base", .etag = "x", .conflict_with = "mine", .theirs = "theirs"};
        hf_depot_write *write = NULL;
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .merge = merge_values,
                        .on_conflict = CASES[i].of_depot));
        GET(depot, "A", "base", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_depot_put(depot, rig_key("A"), "mine", 4, .if_match = "x", .on_conflict = CASES[i].of_write,
                            .ret_write = &write));
        HF_CHECK_SAY(hf_depot_write_wait(write) == CASES[i].status, "case %zu", i);
        hf_depot_write_free(write);
        GET(depot, "A", CASES[i].visible, .fresh = HF_FRESH_LOCAL);
        const rig_pushed *last = &o.pushed[CASES[i].pushes - 1];
        HF_CHECK_SAY(o.pushes == CASES[i].pushes && strcmp(last->data, CASES[i].sent_last) == 0 &&
                         strcmp(last->if_match, CASES[i].if_match_last) == 0,
                     "case %zu: %d pushes, %s if %s", i, o.pushes, last->data, last->if_match);
        HF_CHECK(strcmp(o.pushed[0].write_id, last->write_id) == 0 && rig_counts(depot).conflicts == 1);
    }
    return HF_OK;
}

/* One row for each thing that may be asked of a write, and what becomes of it. */
TRACE(C9_preconditions_modes_and_verbs)
{
    static const struct {
        const char *text;
        char verb; /* p put, a patch, d delete */
        const char *data;
        hf_depot_write_options options;
        hf_status status;
        const char *visible; /* NULL = none */
        int pushes;
    } CASES[] = {
        {"a put", 'p', "new", {0}, HF_OK, "new", 1},
        {"a patch", 'a', "new", {0}, HF_OK, "base+new", 1},
        {"a patch that does not fit", 'a', "bad", {0}, HF_ERR_INVALID, "base", 0},
        {"a delete", 'd', NULL, {0}, HF_OK, NULL, 1},
        {"only this version", 'p', "new", {.if_version = 1}, HF_OK, "new", 1},
        {"only another version", 'p', "new", {.if_version = 7}, HF_ERR_CONFLICT, "base", 0},
        {"origin first", 'p', "new", {.mode = HF_DEPOT_ORIGIN_FIRST}, HF_OK, "new", 1},
        {"a patch, origin first", 'a', "new", {.mode = HF_DEPOT_ORIGIN_FIRST}, HF_OK, "base+new", 1},
        {"a delete, origin first", 'd', NULL, {.mode = HF_DEPOT_ORIGIN_FIRST}, HF_OK, NULL, 1},
        {"a condition", 'p', "new", {.if_match = "x"}, HF_OK, "new", 1},
        {"no value there", 'p', "new", {.if_none = true}, HF_OK, "new", 1},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        origin o = {.value = "base"};
        hf_depot_write_options options = CASES[i].options;
        options.size = sizeof options;
        const char *data = CASES[i].data;
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o, .apply = join_values));
        GET(depot, "A", "base", .fresh = HF_FRESH_CACHED);
        hf_status status = CASES[i].verb == 'p' ? hf_depot_put_with(depot, rig_key("A"), data, strlen(data), &options)
                           : CASES[i].verb == 'a'
                               ? hf_depot_patch_with(depot, rig_key("A"), data, strlen(data), &options)
                               : hf_depot_delete_with(depot, rig_key("A"), &options);
        HF_CHECK_SAY(status == CASES[i].status, "%s: %s", CASES[i].text, hf_status_name(status));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK_SAY(o.pushes == CASES[i].pushes, "%s: %d pushes", CASES[i].text, o.pushes);
        if (o.pushes > 0) {
            HF_CHECK_SAY(strcmp(o.pushed[0].data, data != NULL ? data : "") == 0 &&
                             o.pushed[0].if_none == options.if_none &&
                             strcmp(o.pushed[0].if_match, options.if_match != NULL ? options.if_match : "") == 0,
                         "%s: what was sent", CASES[i].text);
        }
        if (CASES[i].visible != NULL) {
            GET(depot, "A", CASES[i].visible, .fresh = HF_FRESH_LOCAL);
        } else {
            HF_CHECK(rig_get(depot, "A", .fresh = HF_FRESH_LOCAL) == HF_ERR_NOT_FOUND);
        }
    }
    return HF_OK;
}

TRACE(C9_two_puts_within_150_ms_are_one_write_unless_the_first_was_sent)
{
    static const struct {
        int64_t apart; /* milliseconds */
        bool is_offline;
        int pushes;
    } CASES[] = {{0, true, 1}, {150, true, 1}, {151, true, 2}, {10, false, 2}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        origin o = {.push_takes = hf_seconds(1)};
        hf_depot_write *writes[2] = {NULL, NULL};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        HF_TRY(hf_depot_online(depot, !CASES[i].is_offline));
        HF_TRY(hf_depot_put(depot, rig_key("A"), "1", 1, .ret_write = &writes[0]));
        HF_TRY(hf_sleep(hf_milliseconds(CASES[i].apart)));
        HF_TRY(hf_depot_put(depot, rig_key("A"), "2", 1, .ret_write = &writes[1]));
        HF_TRY(hf_depot_online(depot, true));
        for (int w = 0; w < 2; w++) {
            HF_CHECK(hf_depot_write_wait(writes[w], .timeout = hf_minutes(1)) == HF_OK);
            hf_depot_write_free(writes[w]);
        }
        HF_CHECK_SAY(o.pushes == CASES[i].pushes && strcmp(o.pushed[o.pushes - 1].data, "2") == 0, "case %zu: %d", i,
                     o.pushes);
    }
    return HF_OK;
}

TRACE(C9_a_write_is_tried_again_with_the_same_id_in_growing_pauses)
{
    origin o = {.is_down = true};
    hf_depot_write *write = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
    HF_TRY(hf_depot_put(depot, rig_key("A"), "1", 1, .ret_write = &write));
    static const int64_t AT[] = {0, 1, 3, 33}; /* seconds: 1 s, 2 s, then the breaker's half minute */
    int64_t began = rig_now();
    for (size_t i = 0; i < HF_COUNT_OF(AT); i++) {
        HF_TRY(hf_sleep(hf_nanoseconds(began + hf_seconds(AT[i]).ns + 1000000 - rig_now())));
        HF_CHECK_SAY(o.pushes == (int)i + 1, "%d pushes after %d s", o.pushes, (int)AT[i]);
    }
    for (int i = 1; i < o.pushes; i++) {
        HF_CHECK(strcmp(o.pushed[i].write_id, o.pushed[0].write_id) == 0 && o.pushed[i].attempt == i + 1);
    }
    GET(depot, "A", "1", .fresh = HF_FRESH_LOCAL); /* seen all the time */
    o.is_down = false;
    HF_CHECK(hf_depot_write_wait(write, .timeout = hf_minutes(10)) == HF_OK);
    hf_depot_write_free(write);
    return HF_OK;
}

/* ---- Deletes ----------------------------------------------------------------------------------------------------- */

TRACE(C9_a_value_from_before_a_delete_does_not_come_back_for_7_days)
{
    static const struct {
        const char *last_modified; /* of what a slow copy of the origin still has; NULL = it does not say */
        bool comes_back;
    } CASES[] = {{NULL, false}, {"Sun, 06 Nov 1994 08:49:37 GMT", false}, {"Sun, 06 Nov 2095 08:49:37 GMT", true}};
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        origin o = {.value = "old"};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open(&depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        GET(depot, "A", "old", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_depot_delete(depot, rig_key("A")));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(o.pushes == 1);
        o.last_modified = CASES[i].last_modified;
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, rig_key("A"), &watcher, .refresh = hf_hours(1)));
        HF_TRY(hf_sleep(hf_hours(3)));
        HF_CHECK(o.fetches > 1);
        HF_CHECK_SAY((rig_get(depot, "A", .fresh = HF_FRESH_LOCAL) == HF_OK) == CASES[i].comes_back, "case %zu", i);
        HF_TRY(hf_sleep(hf_days(8)));
        GET(depot, "A", "old", .fresh = HF_FRESH_CACHED); /* the tombstone is gone: what the origin says counts */
    }
    return HF_OK;
}

/* ---- Numbers of writes ------------------------------------------------------------------------------------------- */

typedef struct numbers {
    uint64_t all[8];
    int count;
} numbers;

static bool note_number(void *arg, const hf_depot_pending_write *write)
{
    numbers *seen = arg;
    for (int i = 0; i < seen->count; i++) {
        HF_CHECK_SAY(seen->all[i] != write->sequence, "number %d comes again", (int)write->sequence);
    }
    if (HF_CHECK(seen->count < (int)HF_COUNT_OF(seen->all))) {
        seen->all[seen->count++] = write->sequence;
    }
    return true;
}

/* In the second life all writes of the first one are settled; in the third one all of the second were dropped. */
TRACE(DP6_the_number_of_a_write_does_not_come_again_after_a_restart)
{
    lent store;
    origin o = {.value = "base"};
    numbers seen = {0};
    HF_TRY(rig_store(&store));
    for (int life = 0; life < 4; life++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        HF_TRY(hf_depot_online(depot, false));
        HF_TRY(rig_put(depot, "A", "1"));
        HF_TRY(rig_put(depot, "B", "2"));
        HF_TRY(hf_depot_pending(depot, note_number, &seen));
        HF_CHECK(seen.count == 2 * (life + 1));
        if (life % 2 == 0) {
            HF_TRY(hf_depot_online(depot, true));
            HF_TRY(hf_sleep(hf_seconds(1)));
        } else {
            HF_TRY(hf_depot_drop(depot, seen.all[seen.count - 1]));
            HF_TRY(hf_depot_drop(depot, seen.all[seen.count - 2]));
        }
        HF_CHECK(rig_counts(depot).pending == 0);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

/* More writes than are reserved at once. */
TRACE(DP6_many_writes_have_rising_numbers_over_restarts)
{
    lent store;
    origin o = {.value = "base"};
    uint64_t last = 0;
    HF_TRY(rig_store(&store));
    for (int life = 0; life < 3; life++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        for (int i = 0; i < 70; i++) {
            numbers one = {0};
            HF_TRY(hf_depot_online(depot, false));
            HF_TRY(rig_put(depot, "A", "1"));
            HF_TRY(hf_depot_pending(depot, note_number, &one));
            HF_CHECK(one.count == 1 && one.all[0] > last);
            last = one.all[0];
            HF_TRY(hf_depot_online(depot, true));
            HF_TRY(hf_sleep(hf_milliseconds(1)));
        }
    }
    hf_store_close(store.inner);
    return HF_OK;
}

/* They are in no file, so nothing there could tell which of them were used. */
TRACE(DP6_writes_that_go_to_the_origin_first_have_numbers_that_do_not_come_again)
{
    lent store;
    origin o = {.value = "base"};
    numbers seen = {0};
    HF_TRY(rig_store(&store));
    for (int life = 0; life < 3; life++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_AUTO(hf_collector_close) hf_collector *events = NULL;
        hf_depot_news sent, settled;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        HF_TRY(hf_depot_events(depot, &events));
        HF_TRY(hf_depot_put(depot, rig_key("A"), "1", 1, .mode = HF_DEPOT_ORIGIN_FIRST));
        HF_TRY(hf_collector_next(events, &sent));
        HF_TRY(hf_collector_next(events, &settled));
        HF_CHECK(sent.kind == HF_NEWS_SENT && settled.kind == HF_NEWS_SETTLED && sent.sequence == settled.sequence);
        HF_CHECK(sent.sequence >= UINT64_C(1) << 52 && sent.sequence < UINT64_C(1) << 53);
        (void)note_number(&seen, &(hf_depot_pending_write){.sequence = sent.sequence});
        HF_CHECK(hf_depot_drop(depot, sent.sequence) == HF_ERR_NOT_FOUND);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

/* Which numbers were used is not known then: new ones begin far behind. */
TRACE(DP9_a_damaged_row_of_the_numbers_makes_them_jump)
{
    lent store;
    origin o = {.value = "base"};
    numbers seen = {0};
    HF_TRY(rig_store(&store));
    for (int life = 0; life < 3; life++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        HF_CHECK(rig_counts(depot).damaged == (life == 1));
        HF_TRY(hf_depot_online(depot, false));
        HF_TRY(rig_put(depot, "A", "1"));
        HF_TRY(hf_depot_pending(depot, note_number, &seen));
        HF_CHECK(seen.count == life + 1 && (seen.all[life] > UINT64_C(1) << 40) == (life > 0));
        HF_TRY(hf_depot_drop(depot, seen.all[life]));
        HF_TRY(hf_depot_close(depot));
        depot = NULL;
        hf_write bad = {.table = HF_TABLE_META, .key = {.text = HF_STR("sequence")}, .value = HF_STR("no such record")};
        hf_store_request request = {.verb = HF_STORE_COMMIT,
                                    .commit = store.inner->ops->last_commit(store.inner) + 1,
                                    .writes = &bad,
                                    .write_count = 1};
        if (life == 0) {
            hf_store_execute(store.inner, &request);
            HF_TRY(request.status);
        }
    }
    hf_store_close(store.inner);
    return HF_OK;
}

/* Version 1 of the record had no end of a pause. */
static void a_write_of_an_older_file_is_read(void **state)
{
    (void)state;
    hf_buf older, newer;
    hf_value *data = NULL;
    hf_depot_key_bytes key;
    hf_op op;
    hf_op_init(&op);
    assert_int_equal(hf_depot_key_pack(&op, rig_key("A"), &key), HF_OK);
    assert_int_equal(hf_value_copy("mine", 4, &data), HF_OK);
    hf_pending row = {.verb = HF_WRITE_REPLACE,
                      .data = data,
                      .on_conflict = HF_CONFLICT_SERVER_WINS,
                      .attempts = 3,
                      .status = HF_ERR_IO};
    hf_buf_init(&older, hf_env_memory(hf_env_posix()), 1000);
    hf_buf_init(&newer, hf_env_memory(hf_env_posix()), 1000);
    hf_row_put_pending(&older, hf_str_of_len(key.bytes, key.len), &row);
    row.retry_at = 1;
    hf_row_put_pending(&newer, hf_str_of_len(key.bytes, key.len), &row);
    assert_int_equal(older.len, newer.len);
    size_t at = 0;
    while (older.data[at] == newer.data[at]) {
        at++;
    }
    memmove(older.data + at, older.data + at + 1, older.len - at - 1);
    older.data[0] = 1;
    hf_pending got;
    hf_str got_key;
    bool no_memory = false;
    assert_true(hf_row_get_pending(hf_str_of_len(older.data, older.len - 1), &got_key, &got, &no_memory));
    assert_true(got.retry_at == 0 && got.attempts == 3 && got.status == HF_ERR_IO && rig_is_text(got.data, "mine"));
    hf_value_unref(got.data);
    assert_true(hf_row_get_pending(hf_str_of_len(newer.data, newer.len), &got_key, &got, &no_memory));
    assert_true(got.retry_at == 1 && got.attempts == 3);
    hf_value_unref(got.data);
    hf_value_unref(data);
    hf_buf_deinit(&older);
    hf_buf_deinit(&newer);
}

/* ---- The next attempt -------------------------------------------------------------------------------------------- */

TRACE(C9_the_pause_before_the_next_attempt_goes_on_after_a_restart)
{
    lent store;
    origin o = {.value = "base", .is_down = true, .retry_after = hf_minutes(20)};
    HF_TRY(rig_store(&store));
    for (int life = 0; life < 3; life++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        if (life == 0) {
            HF_TRY(rig_put(depot, "A", "1"));
            HF_TRY(hf_sleep(hf_minutes(5)));
            HF_CHECK(o.pushes == 1);
        } else if (life == 1) {
            HF_TRY(hf_sleep(hf_minutes(5)));
            HF_CHECK(o.pushes == 1);
        } else {
            o.is_down = false;
            HF_TRY(hf_sleep(hf_minutes(9)));
            HF_CHECK(o.pushes == 1);
            HF_TRY(hf_sleep(hf_minutes(2)));
            HF_CHECK(o.pushes == 2 && o.pushed[1].attempt == 2 && rig_counts(depot).pending == 0);
        }
    }
    hf_store_close(store.inner);
    return HF_OK;
}

static hf_env_ops moved_ops;
static const hf_env_ops *true_ops;

static hf_time year_back(hf_env *env)
{
    return (hf_time){true_ops->wall_now(env).ns - hf_hours(24 * 365).ns};
}

/* A write waits at most as long as an origin may ask for. */
TRACE(C9_a_clock_set_back_does_not_hold_up_the_writes_of_the_file)
{
    lent store;
    origin o = {.value = "base", .is_down = true};
    HF_TRY(rig_store(&store));
    for (int life = 0; life < 2; life++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        if (life == 0) {
            HF_TRY(rig_put(depot, "A", "1"));
            HF_TRY(hf_sleep(hf_milliseconds(1)));
            HF_CHECK(o.pushes == 1);
            true_ops = depot->rt->env->ops;
            moved_ops = *true_ops;
            moved_ops.wall_now = year_back;
            depot->rt->env->ops = &moved_ops;
        } else {
            o.is_down = false;
            HF_TRY(hf_sleep(hf_minutes(61)));
            HF_CHECK(o.pushes == 2 && rig_counts(depot).pending == 0);
            depot->rt->env->ops = true_ops;
        }
    }
    hf_store_close(store.inner);
    return HF_OK;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(C8_each_origin_has_one_breaker_and_an_open_one_stops_attempts_at_once),
    cmocka_unit_test(C8_the_breaker_is_asked_before_every_attempt),
    cmocka_unit_test(C8_a_probe_that_is_canceled_gives_its_permit_back),
    cmocka_unit_test(C8_the_breaker_follows_its_table_on_a_whole_depot),
    cmocka_unit_test(C9_writes_wait_while_the_depot_is_offline_survive_a_restart_and_arrive_in_order),
    cmocka_unit_test(C9_a_refused_write_is_rolled_back_kept_with_its_reason_and_retried_or_dropped_by_hand),
    cmocka_unit_test(DP7_sending_a_write_again_by_hand_does_not_make_a_fetch_fly_again),
    cmocka_unit_test(C9_conflicts_are_settled_by_the_policy_of_the_write),
    cmocka_unit_test(C9_preconditions_modes_and_verbs),
    cmocka_unit_test(C9_two_puts_within_150_ms_are_one_write_unless_the_first_was_sent),
    cmocka_unit_test(C9_a_write_is_tried_again_with_the_same_id_in_growing_pauses),
    cmocka_unit_test(C9_a_value_from_before_a_delete_does_not_come_back_for_7_days),
    cmocka_unit_test(DP6_the_number_of_a_write_does_not_come_again_after_a_restart),
    cmocka_unit_test(DP6_many_writes_have_rising_numbers_over_restarts),
    cmocka_unit_test(DP6_writes_that_go_to_the_origin_first_have_numbers_that_do_not_come_again),
    cmocka_unit_test(DP9_a_damaged_row_of_the_numbers_makes_them_jump),
    cmocka_unit_test(a_write_of_an_older_file_is_read),
    cmocka_unit_test(C9_the_pause_before_the_next_attempt_goes_on_after_a_restart),
    cmocka_unit_test(C9_a_clock_set_back_does_not_hold_up_the_writes_of_the_file),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot outbox", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
