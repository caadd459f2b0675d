/* .subscribe, on virtual time. */
#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "store/mem.h"

#include <stdio.h>
#include <string.h>

/* An origin that sends the value of a key at once, and then each time that it changes. */
typedef struct origin {
    hf_span first;  /* before the first reply */
    hf_span rhythm; /* between two replies; 0 = no more */
    int begun, ended, running;
    int emitted;
    int value;      /* of the next reply */
    bool is_down;   /* fails instead of a reply */
    int ends_after; /* replies, then it returns `end`; 0 = never */
    hf_status end;
    bool says_nothing;
    bool is_replaced; /* the last one may still be leaving when the next begins */
    char etag[16];    /* of the last request */
    hf_depot *asks;   /* the subscriber asks this depot for its own key */
    hf_status own;    /* what it was told */
} origin;

static hf_status follow(origin *o, hf_reply *reply)
{
    for (int i = 1;; i++) {
        HF_TRY(hf_sleep(i == 1 ? o->first : o->rhythm.ns > 0 ? o->rhythm : hf_hours(10000)));
        if (o->is_down) {
            return hf_reply_fail(reply, HF_REPLY_NETWORK, .message = "the line is dead");
        }
        char text[16];
        (void)snprintf(text, sizeof text, "%d", o->value++);
        HF_TRY(hf_reply_value(reply, text, strlen(text)));
        HF_TRY(hf_reply_etag(reply, text));
        HF_TRY(hf_reply_emit(reply));
        o->emitted++;
        if (i == o->ends_after) {
            return o->end;
        }
    }
}

static hf_status subscribe(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    o->begun++;
    o->running++;
    HF_CHECK_SAY(o->running == 1 || o->is_replaced, "DP1 two subscriptions of a key at once");
    (void)snprintf(o->etag, sizeof o->etag, "%s", request->etag != NULL ? request->etag : "");
    if (o->asks != NULL) {
        hf_value *value = NULL;
        o->own = hf_depot_get(o->asks, request->key, &value, .fresh = HF_FRESH_NOW);
        HF_CHECK(value == NULL && strstr(hf_error_text(), "about the key that it is called for") != NULL);
    }
    hf_status status = o->says_nothing ? HF_OK : follow(o, reply);
    o->running--;
    o->ended++;
    return status;
}

static hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("acme", "user", id);
}

static hf_status open_depot(origin *o, hf_depot **ret_depot)
{
    HF_TRY(hf_depot_open("users", ret_depot, .subscribe = subscribe, .state = o));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}

static bool is_text(const hf_value *value, const char *text)
{
    return value != NULL && hf_value_len(value) == strlen(text) &&
           memcmp(hf_value_data(value), text, strlen(text)) == 0;
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

/* The next event; `text` NULL = it has no value. */
#define NEXT(watcher, expected, text)                                                                              \
    do {                                                                                                           \
        hf_depot_event event_;                                                                                     \
        hf_status next_ = hf_watcher_next(watcher, &event_, .timeout = hf_minutes(5));                             \
        if (HF_CHECK_SAY(next_ == HF_OK, "%s", hf_status_name(next_))) {                                           \
            HF_CHECK_SAY(event_.kind == (expected), "event %d", (int)event_.kind);                                 \
            HF_CHECK((text) == NULL ? event_.value == NULL : is_text(event_.value, (text) != NULL ? (text) : "")); \
            hf_value_unref(event_.value);                                                                          \
        }                                                                                                          \
    } while (0)

/* A get takes the next reply, and nobody is left: the subscription is canceled. */
static hf_status one_get(void *arg)
{
    (void)arg;
    origin o = {.first = hf_seconds(1), .rhythm = hf_seconds(1), .value = 1};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    int64_t before = hf_now(NULL).ns;
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
    HF_CHECK(hf_now(NULL).ns - before == hf_seconds(1).ns);
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_CHECK(o.begun == 1 && o.ended == 1 && o.running == 0);
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED); /* from memory */
    GET(depot, "A", "2", .fresh = HF_FRESH_NOW);
    HF_CHECK(o.begun == 2 && o.etag[0] == '\0'); /* NOW asks without a condition */
    HF_TRY(hf_sleep(hf_minutes(6)));
    GET(depot, "A", "2", .fresh = HF_FRESH_CACHED); /* stale: refreshed behind the caller's back */
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(o.begun == 3 && o.running == 0 && strcmp(o.etag, "2") == 0);
    GET(depot, "A", "3", .fresh = HF_FRESH_LOCAL);
    return HF_OK;
}

/* It runs once while the key is watched, and every reply is seen. */
static hf_status watched(void *arg)
{
    (void)arg;
    origin o = {.first = hf_milliseconds(10), .rhythm = hf_seconds(10), .value = 1};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    hf_watcher *first = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &first));
    NEXT(first, HF_DEPOT_LOADING, NULL);
    NEXT(first, HF_DEPOT_DATA, "1");
    hf_watcher *second = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &second)); /* fresh: no other subscription */
    NEXT(second, HF_DEPOT_DATA, "1");
    NEXT(first, HF_DEPOT_DATA, "2");
    NEXT(second, HF_DEPOT_DATA, "2");
    int64_t before = hf_now(NULL).ns;
    GET(depot, "A", "3", .fresh = HF_FRESH_NOW); /* takes the next one */
    HF_CHECK(hf_now(NULL).ns - before == hf_seconds(10).ns && o.begun == 1);
    HF_CHECK(get_status(depot, "A", HF_FRESH_LOCAL) == HF_OK);
    HF_TRY(hf_watcher_close(first));
    HF_TRY(hf_sleep(hf_seconds(60)));
    HF_CHECK(o.begun == 1 && o.running == 1 && o.emitted >= 8);
    hf_depot_counts counts;
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK(counts.flights == 0); /* a live subscription is none */
    HF_TRY(hf_watcher_close(second));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(o.running == 0 && o.begun == 1); /* S13 */
    /* a local watcher wants none, one of a fresh value does */
    hf_watcher *local = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &local, .fresh = HF_FRESH_LOCAL));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.begun == 1);
    HF_TRY(hf_depot_watch(depot, key_of("A"), &first));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.begun == 2 && o.running == 1);
    HF_TRY(hf_watcher_close(first));
    HF_TRY(hf_watcher_close(local));
    return HF_OK;
}

/* A failure ends it; it begins again after the back-off. */
static hf_status failing(void *arg)
{
    (void)arg;
    origin o = {.first = hf_milliseconds(10), .rhythm = hf_seconds(10), .value = 1};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &watcher));
    NEXT(watcher, HF_DEPOT_LOADING, NULL);
    NEXT(watcher, HF_DEPOT_DATA, "1");
    o.is_down = true;
    NEXT(watcher, HF_DEPOT_ERROR, NULL);
    HF_CHECK(o.begun == 1 && o.running == 0);
    int64_t before = hf_now(NULL).ns;
    NEXT(watcher, HF_DEPOT_ERROR, NULL); /* 2 s of back-off, no retries */
    HF_CHECK(hf_now(NULL).ns - before == hf_milliseconds(2010).ns && o.begun == 2);
    o.is_down = false;
    before = hf_now(NULL).ns;
    NEXT(watcher, HF_DEPOT_DATA, "2");
    HF_CHECK(hf_now(NULL).ns - before == hf_milliseconds(4010).ns && o.begun == 3 && strcmp(o.etag, "1") == 0);
    /* three failures in a row: the breaker is open for 30 s */
    o.is_down = true;
    for (int i = 0; i < 3; i++) {
        NEXT(watcher, HF_DEPOT_ERROR, NULL);
    }
    HF_CHECK(depot->breakers[0].state == HF_BREAKER_OPEN);
    HF_CHECK(get_status(depot, "B", HF_FRESH_CACHED) == HF_ERR_UNAVAILABLE && o.begun == 5);
    o.is_down = false;
    before = hf_now(NULL).ns;
    NEXT(watcher, HF_DEPOT_DATA, "3");
    HF_CHECK(hf_now(NULL).ns - before == hf_milliseconds(30010).ns && depot->breakers[0].state == HF_BREAKER_CLOSED);
    /* offline: it goes on, but does not begin */
    HF_TRY(hf_depot_online(depot, false));
    o.is_down = true;
    NEXT(watcher, HF_DEPOT_ERROR, NULL);
    o.is_down = false;
    int begun = o.begun;
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_CHECK(o.begun == begun);
    HF_TRY(hf_depot_online(depot, true));
    NEXT(watcher, HF_DEPOT_DATA, "4");
    return HF_OK;
}

/* One that returns HF_OK begins again after a second; one that never says anything has failed. */
static hf_status ending(void *arg)
{
    (void)arg;
    origin o = {.first = hf_milliseconds(10), .value = 1, .ends_after = 1, .end = HF_OK};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &watcher));
    NEXT(watcher, HF_DEPOT_LOADING, NULL);
    NEXT(watcher, HF_DEPOT_DATA, "1");
    int64_t before = hf_now(NULL).ns;
    NEXT(watcher, HF_DEPOT_DATA, "2");
    HF_CHECK(hf_now(NULL).ns - before == hf_milliseconds(1010).ns && o.begun == 2);
    HF_TRY(hf_watcher_close(watcher));
    o.says_nothing = true;
    HF_CHECK(get_status(depot, "B", HF_FRESH_CACHED) == HF_ERR_INVALID);
    HF_CHECK(depot->breakers[0].state == HF_BREAKER_CLOSED && depot->breakers[0].failures == 0); /* an answer */
    /* the first reply has a time limit, the later ones have none */
    o = (origin){.first = hf_hours(1), .value = 1};
    before = hf_now(NULL).ns;
    HF_CHECK(get_status(depot, "C", HF_FRESH_CACHED) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_now(NULL).ns - before == hf_seconds(10).ns);
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(o.running == 0);
    return HF_OK;
}

/* After an invalidation one from before it says nothing any more (DP3, depot-U2). */
static hf_status invalidated(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
    {
        origin o = {.first = hf_milliseconds(100), .rhythm = hf_seconds(10), .value = 1, .is_replaced = true};
        hf_depot_options options = {.size = sizeof options, .subscribe = subscribe, .state = &o};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(hf_depot_open_in("users", &depot, &options, &store.base));
        HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
        HF_TRY(hf_depot_watch(depot, key_of("A"), &watcher));
        NEXT(watcher, HF_DEPOT_LOADING, NULL);
        NEXT(watcher, HF_DEPOT_DATA, "1");
        HF_TRY(hf_depot_invalidate(depot, key_of("A"), .hard = true));
        NEXT(watcher, HF_DEPOT_GONE, NULL);
        int64_t before = hf_now(NULL).ns;
        NEXT(watcher, HF_DEPOT_DATA, "2");
        HF_CHECK(hf_now(NULL).ns - before == hf_milliseconds(100).ns && o.begun == 2);
        HF_TRY(hf_depot_invalidate_namespace(depot, "acme"));
        NEXT(watcher, HF_DEPOT_DATA, "3");
        HF_CHECK(o.begun == 3 && o.running == 1);
        NEXT(watcher, HF_DEPOT_DATA, "4"); /* and goes on */
        HF_CHECK(o.begun == 3);
    }
    hf_store_close(store.inner);
    return HF_OK;
}

typedef struct getting {
    hf_depot *depot;
    hf_status status;
} getting;

static hf_status get_now(void *arg)
{
    getting *one = arg;
    one->status = get_status(one->depot, "A", HF_FRESH_NOW);
    return HF_OK;
}

static hf_status get_within(void *arg)
{
    getting *one = arg;
    one->status = get_status(one->depot, "A", HF_FRESH_OR_STALE);
    return HF_OK;
}

/* Who waits for a subscription that is replaced gets the first reply of the next one. */
static hf_status invalidated_under_a_get(void *arg)
{
    (void)arg;
    for (int what = 0; what < 3; what++) {
        origin o = {.first = hf_seconds(1), .value = 1, .is_replaced = true};
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(open_depot(&o, &depot));
        getting one = {depot, HF_ERR_AGAIN};
        hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, get_now, &one));
        HF_TRY(hf_sleep(hf_milliseconds(500)));
        HF_TRY(what == 0   ? hf_depot_invalidate(depot, key_of("A"))
               : what == 1 ? hf_depot_invalidate(depot, key_of("A"), .hard = true)
                           : hf_depot_invalidate_namespace(depot, "acme"));
        HF_TRY(hf_sleep(hf_seconds(2)));
        HF_CHECK_SAY(one.status == HF_OK && o.begun == 2, "%s, %d begun", hf_status_name(one.status), o.begun);
        HF_CHECK(hf_scope_cancel(scope) == HF_OK);
        HF_IGNORE(hf_join(scope));
        HF_TRY(hf_scope_close(scope));
    }
    return HF_OK;
}

/* One that waits for its turn while its key is invalidated does not ask with the etag of the value that is gone: "not modified" would
 * be about nothing. */
static hf_status invalidated_in_the_queue(void *arg)
{
    (void)arg;
    origin o = {.value = 1, .is_replaced = true};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .subscribe = subscribe, .state = &o, .fetch_max = 1));
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
    HF_TRY(hf_sleep(hf_minutes(6)));
    o.first = hf_seconds(1);
    HF_AUTO(hf_watcher_close) hf_watcher *other = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("B"), &other)); /* has the turn */
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    getting one = {depot, HF_ERR_AGAIN};
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, get_within, &one));
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    HF_CHECK(o.begun == 2);
    HF_TRY(hf_depot_invalidate(depot, key_of("A"), .hard = true));
    HF_TRY(hf_join(scope));
    HF_TRY(hf_scope_close(scope));
    HF_CHECK_SAY(one.status == HF_OK && o.begun == 3 && o.etag[0] == '\0', "%s, asked with '%s'",
                 hf_status_name(one.status), o.etag);
    return HF_OK;
}

static hf_status says_no(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)request;
    (void)reply;
    ++*(int *)state;
    return HF_ERR_NOT_FOUND;
}

/* It may come to be: the origin is asked again, but not without a pause. */
static hf_status absent(void *arg)
{
    (void)arg;
    int begun = 0;
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .subscribe = says_no, .state = &begun));
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &watcher));
    HF_TRY(hf_sleep(hf_milliseconds(10500)));
    HF_CHECK_SAY(begun == 11, "%d begun in 10 seconds", begun);
    return HF_OK;
}

/* Fetches at once: those that wait for a first reply count, live ones do not. */
static hf_status many_keys(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    o->begun++;
    o->running++;
    hf_status status = hf_sleep(hf_seconds(1));
    if (status == HF_OK) {
        status = hf_reply_value(reply, request->key.id, request->key.id_len);
    }
    if (status == HF_OK) {
        status = hf_reply_emit(reply);
    }
    if (status == HF_OK) {
        o->emitted++;
        status = hf_sleep(hf_hours(1000));
    }
    o->running--;
    return status;
}

static hf_status bounded(void *arg)
{
    (void)arg;
    enum { KEYS = 10 };
    origin o = {0};
    hf_watcher *watchers[KEYS] = {NULL};
    char ids[KEYS][16];
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .subscribe = many_keys, .state = &o, .fetch_max = 4));
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "k%d", i);
        HF_TRY(hf_depot_watch(depot, key_of(ids[i]), &watchers[i]));
    }
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    HF_CHECK(o.begun == 4 && depot->flights == 4);
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_CHECK(o.begun == 8 && o.emitted == 4);
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(o.begun == KEYS && o.running == KEYS && o.emitted == KEYS && depot->flights == 0);
    for (int i = 0; i < KEYS; i++) {
        HF_TRY(hf_watcher_close(watchers[i]));
    }
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(o.running == 0);
    return HF_OK;
}

static hf_status misused(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    (void)request;
    HF_CHECK(hf_reply_emit(reply) == HF_ERR_MISUSE); /* of a fetch */
    return hf_reply_value(reply, "1", 1);
}

static hf_status refused(void *arg)
{
    (void)arg;
    hf_depot *none = NULL;
    HF_CHECK(hf_depot_open("users", &none, .subscribe = subscribe, .fetch = misused) == HF_ERR_INVALID);
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .fetch = misused));
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
    HF_CHECK(hf_reply_emit(NULL) == HF_ERR_MISUSE);
    return HF_OK;
}

/* It would wait for its own reply. */
static hf_status asks_itself(void *arg)
{
    (void)arg;
    origin o = {.value = 1};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot));
    o.asks = depot;
    int64_t before = hf_now(NULL).ns;
    GET(depot, "A", "1", .fresh = HF_FRESH_CACHED);
    HF_CHECK(o.own == HF_ERR_MISUSE && hf_now(NULL).ns == before);
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

SIMULATED(S12_a_get_takes_the_next_reply, one_get, 100)
SIMULATED(S13_one_subscription_while_a_key_is_watched, watched, 100)
SIMULATED(DP10_a_subscription_that_fails_begins_again, failing, 100)
SIMULATED(a_subscription_that_ends_begins_again, ending, 100)
SIMULATED(DP3_an_invalidation_replaces_a_subscription, invalidated, 100)
SIMULATED(DP7_a_get_survives_the_invalidation_of_its_subscription, invalidated_under_a_get, 50)
SIMULATED(DP2_a_subscription_does_not_ask_with_an_etag_of_nothing, invalidated_in_the_queue, 50)
SIMULATED(a_subscription_of_nothing_begins_again_after_a_second, absent, 20)
SIMULATED(DP8_subscriptions_are_fetches_until_their_first_reply, bounded, 50)
SIMULATED(misuse_is_refused, refused, 10)
SIMULATED(a_subscriber_that_asks_for_its_own_key_is_refused, asks_itself, 20)

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(S12_a_get_takes_the_next_reply),
        cmocka_unit_test(S13_one_subscription_while_a_key_is_watched),
        cmocka_unit_test(DP10_a_subscription_that_fails_begins_again),
        cmocka_unit_test(a_subscription_that_ends_begins_again),
        cmocka_unit_test(DP3_an_invalidation_replaces_a_subscription),
        cmocka_unit_test(DP7_a_get_survives_the_invalidation_of_its_subscription),
        cmocka_unit_test(DP2_a_subscription_does_not_ask_with_an_etag_of_nothing),
        cmocka_unit_test(a_subscription_of_nothing_begins_again_after_a_second),
        cmocka_unit_test(DP8_subscriptions_are_fetches_until_their_first_reply),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(a_subscriber_that_asks_for_its_own_key_is_refused),
    };
    return hf_test_main("depot subscribe", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
