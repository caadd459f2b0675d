/* Where features of a depot meet: lists and keys that get another name, records under two names of a key, converters and
 * lists, what cannot go together. On virtual time. */
#include "unit/depot/rig.h"

#include <holdfast/pages.h>

/* ---- An origin that names what is created ------------------------------------------------------------------------ */

typedef struct naming {
    hf_depot_key members[2]; /* of the list "l" */
    char old[HF_DEPOT_ID_LEN_MAX];
    size_t old_len; /* a record of this key comes with "named", once more as "named" itself */
    int fetches;
    hf_status own; /* of a get of the key that is being fetched ... */
    hf_depot *depot;
    bool by_old; /* ... by its old name */
} naming;

static hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("ns", "t", id);
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    naming *n = state;
    n->fetches++;
    if (request->key.id_len == 1 && *(const char *)request->key.id == 'l') {
        return hf_reply_list(reply, n->members, 2);
    }
    if (n->depot != NULL) {
        hf_depot_result result;
        hf_depot_key key = n->by_old ? hf_depot_key_of_bytes("ns", "t", n->old, n->old_len) : request->key;
        HF_CHECK(hf_depot_get_many(n->depot, &key, 1, &result, .fresh = HF_FRESH_NOW) == HF_OK);
        n->own = result.status;
        hf_value *value = NULL;
        HF_CHECK(hf_depot_get(n->depot, key, &value, .fresh = HF_FRESH_NOW) == n->own && value == NULL);
    }
    if (n->old_len > 0 && !n->by_old) {
        hf_depot_key old = hf_depot_key_of_bytes("ns", "t", n->old, n->old_len);
        HF_TRY(hf_reply_add(reply, old, "by the old name", 15));
        HF_TRY(hf_reply_add(reply, key_of("other"), "other", 5));
    }
    return hf_reply_value(reply, "fetched", 7);
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    return request->verb == HF_WRITE_CREATE ? hf_reply_key(reply, key_of("named")) : HF_OK;
}

static hf_depot_key key_of_id(const hf_depot_id *id)
{
    return hf_depot_key_of_bytes("ns", "t", id->bytes, id->len);
}

/* The next event but LOADING and REKEYED is DATA. */
static bool hears(hf_watcher *watcher)
{
    hf_depot_event event = {0};
    do {
        hf_value_unref(event.value);
        event.value = NULL;
        if (hf_watcher_next(watcher, &event, .timeout = hf_seconds(10)) != HF_OK) {
            return false;
        }
    } while (event.kind == HF_DEPOT_LOADING || event.kind == HF_DEPOT_REKEYED);
    hf_value_unref(event.value);
    return event.kind == HF_DEPOT_DATA;
}

static void drain(hf_watcher *watcher)
{
    hf_depot_event event = {0};
    while (hf_watcher_next(watcher, &event, .timeout = hf_milliseconds(100)) == HF_OK) {
        hf_value_unref(event.value);
    }
}

/* ---- Names and lists --------------------------------------------------------------------------------------------- */

TRACE(depot_R2_a_list_that_gets_another_name_is_watched_on)
{
    naming n = {0};
    hf_depot_id id;
    hf_depot_key members[] = {key_of("a"), key_of("b")};
    HF_AUTO(hf_value_unref) hf_value *list = NULL;
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = fetch, .push = push, .state = &n));
    HF_TRY(hf_depot_list_pack(members, 2, &list));
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_create(depot, hf_depot_key_of("ns", "t", NULL), hf_value_data(list), hf_value_len(list), &id,
                           .ret_write = &write));
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_list_watch(depot, key_of_id(&id), &watcher, .fresh = HF_FRESH_LOCAL));
    HF_CHECK(hears(watcher));
    HF_TRY(hf_depot_online(depot, true));
    HF_TRY(hf_depot_write_wait(write));
    drain(watcher);
    HF_TRY(hf_depot_put(depot, key_of("b"), "new", 3)); /* a member changes after the move */
    HF_CHECK(hears(watcher));
    return HF_OK;
}

TRACE(depot_R2_a_member_that_gets_another_name_is_heard_of)
{
    naming n = {0};
    hf_depot_id id;
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = fetch, .push = push, .state = &n));
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_create(depot, hf_depot_key_of("ns", "t", NULL), "v", 1, &id, .ret_write = &write));
    hf_depot_key members[] = {key_of_id(&id), key_of("b")};
    HF_AUTO(hf_value_unref) hf_value *list = NULL;
    HF_TRY(hf_depot_list_pack(members, 2, &list));
    HF_TRY(hf_depot_put(depot, key_of("m"), hf_value_data(list), hf_value_len(list)));
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_list_watch(depot, key_of("m"), &watcher, .fresh = HF_FRESH_LOCAL));
    HF_CHECK(hears(watcher));
    HF_TRY(hf_depot_online(depot, true));
    HF_TRY(hf_depot_write_wait(write));
    drain(watcher);
    HF_TRY(hf_depot_put(depot, key_of("named"), "w", 1)); /* by the new name */
    HF_CHECK(hears(watcher));
    return HF_OK;
}

TRACE(depot_D7_a_record_under_the_old_name_of_the_fetched_key_is_left_out)
{
    naming n = {0};
    hf_depot_id id;
    hf_depot_counts counts;
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_AUTO(hf_value_unref) hf_value *other = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = fetch, .push = push, .state = &n));
    HF_TRY(hf_depot_create(depot, hf_depot_key_of("ns", "t", NULL), "v", 1, &id, .ret_write = &write));
    HF_TRY(hf_depot_write_wait(write));
    memcpy(n.old, id.bytes, id.len);
    n.old_len = id.len;
    HF_TRY(hf_depot_get(depot, key_of("named"), &value, .fresh = HF_FRESH_NOW));
    HF_CHECK(hf_value_len(value) == 7);
    HF_TRY(hf_depot_get(depot, key_of("other"), &other, .fresh = HF_FRESH_LOCAL));
    HF_CHECK(hf_value_len(other) == 5);
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK(counts.records_left_out == 1 && counts.records == 1);
    return HF_OK;
}

/* ---- Records and "not modified" ----------------------------------------------------------------------------------- */

typedef struct slow {
    int fetches;
    char etags[4][8]; /* that were asked with */
} slow;

/* "k" is x, and so it says after 2 seconds; the list "l" brings it as y at once. */
static hf_status fetch_slowly(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    slow *s = state;
    hf_depot_key key = key_of("k");
    if (*(const char *)request->key.id == 'l') {
        HF_TRY(hf_reply_add(reply, key, "y", 1, .etag = "y"));
        return hf_reply_list(reply, &key, 1);
    }
    const char *etag = request->etag != NULL ? request->etag : "";
    (void)snprintf(s->etags[s->fetches % 4], sizeof s->etags[0], "%s", etag);
    s->fetches++;
    HF_TRY(hf_sleep(hf_seconds(2)));
    if (strcmp(etag, "x") == 0) {
        return hf_reply_not_modified(reply);
    }
    HF_TRY(hf_reply_etag(reply, "x"));
    return hf_reply_value(reply, "x", 1);
}

TRACE(DP2_not_modified_is_about_the_value_that_was_asked_with)
{
    slow s = {0};
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_AUTO(hf_value_unref) hf_value *list = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = fetch_slowly, .state = &s));
    HF_TRY(hf_depot_get(depot, key_of("k"), &value));
    hf_value_unref(value);
    value = NULL;
    HF_TRY(hf_sleep(hf_minutes(6)));
    HF_TRY(hf_depot_prefetch(depot, key_of("k"))); /* with x */
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_depot_get(depot, key_of("l"), &list));
    HF_TRY(hf_depot_get(depot, key_of("k"), &value, .fresh = HF_FRESH_OR_STALE)); /* joins it */
    HF_CHECK_SAY(rig_is_text(value, "x") && s.fetches == 3 && strcmp(s.etags[1], "x") == 0 && s.etags[2][0] == '\0',
                 "%.*s, %d fetches", (int)hf_value_len(value), (const char *)hf_value_data(value), s.fetches);
    return HF_OK;
}

typedef struct patient {
    hf_depot *depot;
    hf_status status;
    bool got_x;
} patient;

static hf_status get_patiently(void *arg)
{
    patient *one = arg;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    one->status = hf_depot_get(one->depot, key_of("k"), &value, .fresh = HF_FRESH_OR_STALE);
    one->got_x = rig_is_text(value, "x");
    return HF_OK;
}

/* Only the third invalidation would end the fetch with HF_ERR_CONFLICT. */
TRACE(DP7_a_record_that_comes_first_does_not_count_as_an_invalidation)
{
    slow s = {0};
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_AUTO(hf_value_unref) hf_value *list = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = fetch_slowly, .state = &s));
    HF_TRY(hf_depot_get(depot, key_of("k"), &value));
    patient one = {.depot = depot};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, get_patiently, &one));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_depot_invalidate(depot, key_of("k"))); /* the first answer comes at 2 s */
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_TRY(hf_depot_get(depot, key_of("l"), &list)); /* the second says "not modified", but now there is y */
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_TRY(hf_depot_invalidate(depot, key_of("k"))); /* the third */
    HF_TRY(hf_join(scope));
    HF_CHECK_SAY(one.status == HF_OK && one.got_x && s.fetches == 5, "%s, %d fetches", hf_status_name(one.status),
                 s.fetches);
    return HF_OK;
}

/* ---- Converters -------------------------------------------------------------------------------------------------- */

static hf_status decode(void *state, const hf_value *bytes, hf_value **ret_object)
{
    (void)state;
    HF_CHECK(hf_value_len(bytes) == 7); /* never a list */
    return hf_value_copy("object", 6, ret_object);
}

TRACE(depot_C1_lists_are_not_decoded_and_their_members_are)
{
    naming n = {.members = {key_of("a"), key_of("b")}};
    HF_AUTO(hf_items_free) hf_items *items = NULL;
    HF_AUTO(hf_items_free) hf_items *again = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = fetch, .decode = decode, .state = &n));
    HF_TRY(hf_depot_list(depot, key_of("l"), &items));
    HF_CHECK(hf_items_count(items) == 2 && hf_value_len(hf_items_at(items, 1)->value) == 6);
    HF_TRY(hf_depot_list(depot, key_of("l"), &again)); /* from memory */
    HF_CHECK(hf_items_count(again) == 2 && n.fetches == 3);
    return HF_OK;
}

/* ---- What does not go together ----------------------------------------------------------------------------------- */

static hf_status subscribe(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    (void)request;
    (void)reply;
    return hf_sleep(hf_hours(1));
}

TRACE(pages_and_names_of_the_origin_need_a_fetcher)
{
    hf_depot_id id;
    hf_pages *pages = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .subscribe = subscribe, .push = push));
    HF_CHECK(hf_pages_open(depot, key_of("q"), &pages) == HF_ERR_MISUSE && pages == NULL);
    HF_CHECK(hf_depot_create(depot, hf_depot_key_of("ns", "t", NULL), "v", 1, &id) == HF_ERR_UNSUPPORTED);
    HF_AUTO(hf_depot_close) hf_depot *other = NULL;
    naming n = {0};
    HF_TRY(rig_open(&other, .fetch = fetch, .push = push, .state = &n));
    HF_TRY(hf_depot_online(other, false));
    HF_TRY(hf_depot_create(other, hf_depot_key_of("ns", "t", NULL), "v", 1, &id));
    HF_CHECK(hf_pages_open(other, key_of_id(&id), &pages) == HF_ERR_INVALID && pages == NULL);
    return HF_OK;
}

TRACE(a_fetcher_that_asks_for_its_own_key_among_many_is_refused)
{
    naming n = {0};
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = fetch, .push = push, .state = &n));
    n.depot = depot;
    HF_TRY(hf_depot_get(depot, key_of("k"), &value));
    HF_CHECK(n.own == HF_ERR_MISUSE && n.fetches == 1);
    return HF_OK;
}

TRACE(depot_D7_a_fetcher_that_asks_for_its_own_key_by_the_old_name_is_refused)
{
    naming n = {.by_old = true};
    hf_depot_id id;
    HF_AUTO(hf_depot_write_free) hf_depot_write *write = NULL;
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = fetch, .push = push, .state = &n));
    HF_TRY(hf_depot_create(depot, hf_depot_key_of("ns", "t", NULL), "v", 1, &id, .ret_write = &write));
    HF_TRY(hf_depot_write_wait(write));
    memcpy(n.old, id.bytes, id.len);
    n.old_len = id.len;
    n.depot = depot;
    int64_t before = rig_now();
    HF_TRY(hf_depot_get(depot, key_of("named"), &value, .fresh = HF_FRESH_NOW));
    HF_CHECK_SAY(n.own == HF_ERR_MISUSE && n.fetches == 1 && rig_now() == before, "%s, %d fetches",
                 hf_status_name(n.own), n.fetches);
    return HF_OK;
}

TRACE(DP10_a_fetch_that_waits_for_its_turn_does_not_begin_offline)
{
    origin o = {.value = "v", .takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(rig_open(&depot, .fetch = rig_fetch, .state = &o, .fetch_max = 1));
    rig_asker first = {.depot = depot, .id = "A", .text = "v"};
    rig_asker second = {.depot = depot, .id = "B"};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, rig_ask, &first));
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    HF_TRY(hf_fork(scope, rig_ask, &second));
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_join(scope));
    HF_CHECK(first.status == HF_OK && o.fetches == 1); /* what is under way goes on */
    HF_CHECK_SAY(second.status == HF_ERR_UNAVAILABLE && second.took < hf_seconds(1).ns, "%s",
                 hf_status_name(second.status));
    return HF_OK;
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(depot_R2_a_list_that_gets_another_name_is_watched_on),
    cmocka_unit_test(depot_R2_a_member_that_gets_another_name_is_heard_of),
    cmocka_unit_test(depot_D7_a_record_under_the_old_name_of_the_fetched_key_is_left_out),
    cmocka_unit_test(DP2_not_modified_is_about_the_value_that_was_asked_with),
    cmocka_unit_test(DP7_a_record_that_comes_first_does_not_count_as_an_invalidation),
    cmocka_unit_test(depot_C1_lists_are_not_decoded_and_their_members_are),
    cmocka_unit_test(pages_and_names_of_the_origin_need_a_fetcher),
    cmocka_unit_test(a_fetcher_that_asks_for_its_own_key_among_many_is_refused),
    cmocka_unit_test(DP10_a_fetch_that_waits_for_its_turn_does_not_begin_offline),
    cmocka_unit_test(depot_D7_a_fetcher_that_asks_for_its_own_key_by_the_old_name_is_refused),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot meet", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
