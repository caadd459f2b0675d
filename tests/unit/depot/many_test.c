/* hf_depot_get_many and .fetch_many, on virtual time. */
#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "store/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- An origin that answers many keys at once -------------------------------------------------------------------- */

enum { CALLS_MAX = 64 };

typedef struct origin {
    hf_span takes;
    int singles;             /* calls of .fetch */
    int calls;               /* calls of .fetch_many */
    size_t sizes[CALLS_MAX]; /* keys of each */
    int attempts[CALLS_MAX];
    int canceled;
    bool is_down;      /* every call fails, without a word about its keys */
    int fails_first;   /* so many calls fail for the keys that begin with 'f' */
    bool forgets;      /* answers nothing for keys that begin with 'm' */
    int asked_by_etag; /* requests with one */
} origin;

static hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("acme", "user", id);
}

static hf_status answer(origin *o, const hf_fetch_request *request, hf_reply *reply)
{
    const char *id = request->key.id;
    size_t len = request->key.id_len;
    o->asked_by_etag += request->etag != NULL;
    switch (id[0]) {
    case 'n':
        return hf_reply_fail(reply, HF_REPLY_NOT_FOUND);
    case 'd':
        return hf_reply_fail(reply, HF_REPLY_DENIED, .message = "not for you");
    case 'f':
        if (o->calls <= o->fails_first) {
            return hf_reply_fail(reply, HF_REPLY_NETWORK, .message = "the line is dead");
        }
        break;
    case 'm':
        if (o->forgets) {
            return HF_OK;
        }
        break;
    default:
        break;
    }
    HF_TRY(hf_reply_etag(reply, "x"));
    return hf_reply_value(reply, id, len);
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    origin *o = state;
    o->singles++;
    if (o->takes.ns > 0) {
        HF_TRY(hf_sleep(o->takes));
    }
    return answer(o, request, reply);
}

static hf_status fetch_many(void *state, const hf_fetch_request *requests, hf_reply *const *replies, size_t count)
{
    origin *o = state;
    if (HF_CHECK(o->calls < CALLS_MAX)) {
        o->sizes[o->calls] = count;
        o->attempts[o->calls] = requests[0].attempt;
    }
    o->calls++;
    hf_status status = o->takes.ns > 0 ? hf_sleep(o->takes) : HF_OK;
    if (status != HF_OK) {
        o->canceled++;
        return status;
    }
    if (o->is_down) {
        return hf_raise(HF_ERR_RESET, "the whole line is dead");
    }
    for (size_t i = 0; i < count; i++) {
        HF_IGNORE(answer(o, &requests[i], replies[i])); /* a failure is the key's own */
    }
    return HF_OK;
}

static hf_status open_depot(origin *o, hf_depot **ret_depot, hf_span window)
{
    HF_TRY(hf_depot_open("users", ret_depot, .fetch = fetch, .fetch_many = fetch_many, .state = o,
                         .batch_window = window));
    (*ret_depot)->jitter_is_full = true;
    return HF_OK;
}

static bool is_text(const hf_value *value, const char *text)
{
    return value != NULL && hf_value_len(value) == strlen(text) &&
           memcmp(hf_value_data(value), text, strlen(text)) == 0;
}

static void release(hf_depot_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hf_value_unref(results[i].value);
        results[i].value = NULL;
    }
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static hf_status each_by_itself(void *arg)
{
    (void)arg;
    origin o = {.takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot, hf_nanoseconds(0)));
    hf_depot_key keys[] = {key_of("a"),
                           key_of("none"),
                           key_of("b"),
                           key_of("denied"),
                           key_of("a"),
                           key_of("c"),
                           hf_depot_key_of("", "", "")};
    enum { COUNT = HF_COUNT_OF(keys) };
    hf_depot_result results[COUNT];
    hf_depot_info infos[COUNT];
    int64_t before = hf_now(NULL).ns;
    HF_TRY(hf_depot_get_many(depot, keys, COUNT, results, .ret_infos = infos));
    HF_CHECK(hf_now(NULL).ns - before == hf_seconds(1).ns);
    HF_CHECK(o.calls == 1 && o.sizes[0] == 5 && o.singles == 0); /* "a" once */
    HF_CHECK(results[0].status == HF_OK && is_text(results[0].value, "a") && infos[0].place == HF_DEPOT_FETCHER);
    HF_CHECK(results[1].status == HF_ERR_NOT_FOUND && results[1].value == NULL);
    HF_CHECK(is_text(results[2].value, "b") && strcmp(infos[2].etag, "x") == 0);
    HF_CHECK_SAY(results[3].status == HF_ERR_DENIED && strcmp(results[3].message, "not for you") == 0, "%s",
                 results[3].message);
    HF_CHECK(is_text(results[4].value, "a") && is_text(results[5].value, "c"));
    HF_CHECK(results[6].status == HF_ERR_INVALID && strstr(results[6].message, "namespace") != NULL);
    release(results, COUNT);
    /* some are at hand now, one is remembered as absent, one has a back-off */
    HF_TRY(hf_depot_get_many(depot, keys, COUNT, results, .ret_infos = infos));
    HF_CHECK(o.calls == 1 && infos[0].place == HF_DEPOT_MEMORY && is_text(results[5].value, "c"));
    HF_CHECK(results[1].status == HF_ERR_NOT_FOUND && results[3].status == HF_ERR_UNAVAILABLE &&
             infos[3].retry_after.ns > 0);
    release(results, COUNT);
    /* what is old is served, and refreshed by one call, with its etag */
    HF_TRY(hf_sleep(hf_minutes(6)));
    HF_TRY(hf_depot_get_many(depot, keys, 3, results, .ret_infos = infos));
    HF_CHECK(is_text(results[0].value, "a") && infos[0].is_stale && infos[2].is_stale);
    release(results, 3);
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_CHECK(o.asked_by_etag == 2);
    /* a single key is fetched by itself */
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_TRY(hf_depot_get(depot, key_of("single"), &value));
    HF_CHECK(o.singles == 1);
    return HF_OK;
}

static hf_status bounded(void *arg)
{
    (void)arg;
    enum { COUNT = 600 };
    static hf_depot_result results[COUNT];
    static hf_depot_key keys[COUNT];
    static char ids[COUNT][16];
    origin o = {.takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot, hf_nanoseconds(0)));
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "k%d", i);
        keys[i] = key_of(ids[i]);
    }
    int64_t before = hf_now(NULL).ns;
    HF_TRY(hf_depot_get_many(depot, keys, COUNT, results));
    HF_CHECK(hf_now(NULL).ns - before == hf_seconds(1).ns); /* side by side */
    HF_CHECK(o.calls == 3 && o.sizes[0] + o.sizes[1] + o.sizes[2] == COUNT);
    for (int i = 0; i < 3; i++) { /* in any order: they run side by side */
        HF_CHECK(o.sizes[i] == 256 || o.sizes[i] == COUNT - 512);
    }
    for (int i = 0; i < COUNT; i++) {
        HF_CHECK(is_text(results[i].value, ids[i]));
    }
    release(results, COUNT);
    HF_CHECK(hf_depot_get_many(depot, keys, HF_DEPOT_MANY_MAX + 1, results) == HF_ERR_LIMIT);
    HF_CHECK(hf_depot_get_many(depot, NULL, 1, results) == HF_ERR_MISUSE);
    HF_CHECK(hf_depot_get_many(depot, keys, 0, results) == HF_OK);
    HF_CHECK(hf_depot_get_many(depot, keys, 1, results, .fresh = (hf_fresh)77) == HF_ERR_INVALID);
    /* without .fetch_many: one by one, at most .fetch_max at once */
    origin single = {.takes = hf_seconds(1)};
    HF_AUTO(hf_depot_close) hf_depot *other = NULL;
    HF_TRY(hf_depot_open("users", &other, .fetch = fetch, .state = &single, .fetch_max = 100));
    before = hf_now(NULL).ns;
    HF_TRY(hf_depot_get_many(other, keys, COUNT, results));
    HF_CHECK(hf_now(NULL).ns - before == hf_seconds(6).ns && single.singles == COUNT);
    release(results, COUNT);
    return HF_OK;
}

/* Keys that failed are tried again without the others, which have landed. */
static hf_status tried_again(void *arg)
{
    (void)arg;
    origin o = {.fails_first = 1};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot, hf_nanoseconds(0)));
    hf_depot_key keys[] = {key_of("a"), key_of("f1"), key_of("none"), key_of("f2")};
    hf_depot_result results[4];
    int64_t before = hf_now(NULL).ns;
    HF_TRY(hf_depot_get_many(depot, keys, 4, results));
    HF_CHECK(hf_now(NULL).ns - before == hf_milliseconds(200).ns); /* the pause of a first failure */
    HF_CHECK(o.calls == 2 && o.sizes[0] == 4 && o.sizes[1] == 2 && o.attempts[1] == 2);
    HF_CHECK(is_text(results[0].value, "a") && is_text(results[1].value, "f1") && is_text(results[3].value, "f2") &&
             results[2].status == HF_ERR_NOT_FOUND);
    release(results, 4);
    /* the last attempt fails: each key has its own back-off, the breaker has heard of an origin that answers */
    o.fails_first = 100;
    HF_TRY(hf_depot_get_many(depot, keys, 4, results, .fresh = HF_FRESH_NOW));
    HF_CHECK(o.calls == 5 && o.sizes[4] == 2);
    HF_CHECK_SAY(results[1].status == HF_ERR_IO && strcmp(results[1].message, "the line is dead") == 0, "%s",
                 results[1].message);
    HF_CHECK(is_text(results[0].value, "a"));
    release(results, 4);
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_depot_get_many(depot, keys, 4, results, .fresh = HF_FRESH_NOW, .force = true));
        HF_CHECK(results[1].status == HF_ERR_IO && is_text(results[0].value, "a"));
        release(results, 4);
    }
    HF_TRY(hf_depot_get_many(depot, keys, 4, results, .fresh = HF_FRESH_NOW));
    HF_CHECK(results[1].status == HF_ERR_UNAVAILABLE && is_text(results[0].value, "a"));
    release(results, 4);
    /* a call that fails whole counts once, however many keys it had */
    o.is_down = true;
    for (int i = 0; i < 3; i++) {
        HF_CHECK(depot->breakers[0].state == HF_BREAKER_CLOSED && depot->breakers[0].failures == i);
        HF_TRY(hf_depot_get_many(depot, keys, 4, results, .fresh = HF_FRESH_NOW, .force = true));
        HF_CHECK_SAY(results[0].status == HF_ERR_RESET && strcmp(results[0].message, "the whole line is dead") == 0,
                     "%s", results[0].message);
        release(results, 4);
    }
    int calls = o.calls;
    HF_TRY(hf_depot_get_many(depot, keys, 4, results, .fresh = HF_FRESH_NOW, .force = true));
    HF_CHECK(results[0].status == HF_ERR_UNAVAILABLE && o.calls == calls); /* the breaker is open */
    release(results, 4);
    /* a key without a word is an answer of the class invalid */
    o = (origin){.forgets = true};
    HF_TRY(hf_sleep(hf_seconds(31)));
    hf_depot_key missed[] = {key_of("a"), key_of("m")};
    HF_TRY(hf_depot_get_many(depot, missed, 2, results, .fresh = HF_FRESH_NOW, .force = true));
    HF_CHECK(is_text(results[0].value, "a") && results[1].status == HF_ERR_INVALID && o.calls == 1);
    HF_CHECK(depot->breakers[0].state == HF_BREAKER_CLOSED);
    release(results, 2);
    return HF_OK;
}

typedef struct asker {
    hf_depot *depot;
    hf_depot_key keys[3];
    size_t count;
    hf_span timeout;
    hf_status status;
    hf_status of_last;
} asker;

static hf_status ask(void *arg)
{
    asker *one = arg;
    hf_depot_result results[3];
    one->status = hf_depot_get_many(one->depot, one->keys, one->count, results, .timeout = one->timeout);
    if (one->status == HF_OK) {
        one->of_last = results[one->count - 1].status;
        release(results, one->count);
    }
    return HF_OK;
}

/* The last holder of all flights that leaves cancels the call; others go on (DP7). */
static hf_status left(void *arg)
{
    (void)arg;
    origin o = {.takes = hf_seconds(5)};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot, hf_nanoseconds(0)));
    asker first = {depot, {key_of("a"), key_of("b"), key_of("c")}, 3, hf_seconds(1), HF_OK, HF_OK};
    asker second = {depot, {key_of("b"), key_of("z")}, 2, hf_nanoseconds(0), HF_OK, HF_ERR_FAILED};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, ask, &first));
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    HF_TRY(hf_fork(scope, ask, &second));
    HF_TRY(hf_join(scope));
    /* the first one gave up after a second; "b" of its call served the second one */
    HF_CHECK(first.status == HF_OK && first.of_last == HF_ERR_TIMEOUT);
    HF_CHECK(second.status == HF_OK && second.of_last == HF_OK && o.calls == 2 && o.canceled == 0);
    HF_CHECK(o.sizes[0] == 3 && o.sizes[1] == 1);
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    HF_CHECK(hf_depot_get(depot, key_of("a"), &value, .fresh = HF_FRESH_LOCAL) ==
             HF_ERR_NOT_FOUND); /* nobody held it */
    HF_TRY(hf_depot_get(depot, key_of("b"), &value, .fresh = HF_FRESH_LOCAL));
    /* all of them leave: the call is canceled, and the keys are free */
    HF_AUTO(hf_scope_close) hf_scope *again = NULL;
    HF_TRY(hf_scope_open(&again, .join = HF_JOIN_COLLECT));
    asker third = {depot, {key_of("x"), key_of("y")}, 2, hf_nanoseconds(0), HF_OK, HF_OK};
    hf_branch *branch = NULL;
    HF_TRY(hf_fork(again, ask, &third, .ret_branch = &branch));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_branch_cancel(branch));
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(third.status == HF_ERR_CANCELED && o.canceled == 1);
    hf_depot_counts counts;
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_CHECK(counts.flights == 0);
    HF_IGNORE(hf_join(again));
    return HF_OK;
}

static hf_status ask_single(void *arg)
{
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    asker *one = arg;
    one->status = hf_depot_get(one->depot, one->keys[0], &value);
    return HF_OK;
}

/* Calls within the window share one fetch; its length is waited for once. */
static hf_status window(void *arg)
{
    (void)arg;
    origin o = {0};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot, hf_milliseconds(10)));
    enum { COUNT = 300 };
    static asker askers[COUNT];
    static char ids[COUNT][16];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    int64_t before = hf_now(NULL).ns;
    for (int i = 0; i < 20; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "k%d", i);
        askers[i] = (asker){.depot = depot, .keys = {key_of(ids[i])}, .status = HF_ERR_FAILED};
        HF_TRY(hf_fork(scope, ask_single, &askers[i]));
        HF_TRY(hf_sleep(hf_microseconds(400)));
    }
    HF_TRY(hf_join(scope));
    HF_CHECK(hf_now(NULL).ns - before == hf_milliseconds(10).ns);
    HF_CHECK(o.calls == 1 && o.sizes[0] == 20 && o.singles == 0);
    for (int i = 0; i < 20; i++) {
        HF_CHECK(askers[i].status == HF_OK);
    }
    /* a full call does not wait for the end of the window */
    HF_AUTO(hf_scope_close) hf_scope *full = NULL;
    HF_TRY(hf_scope_open(&full));
    for (int i = 20; i < COUNT; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "k%d", i);
        askers[i] = (asker){.depot = depot, .keys = {key_of(ids[i])}, .status = HF_ERR_FAILED};
        HF_TRY(hf_fork(full, ask_single, &askers[i]));
    }
    HF_TRY(hf_sleep(hf_milliseconds(1)));
    HF_CHECK(o.calls == 2 && o.sizes[1] == 256);
    HF_TRY(hf_join(full));
    HF_CHECK(o.calls == 3 && o.sizes[2] == COUNT - 20 - 256);
    /* a depot is closed while flights are gathered */
    HF_TRY(hf_depot_prefetch(depot, key_of("last")));
    return HF_OK;
}

/* Keys that are read from the source first still share one call. */
static hf_status from_source(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
    origin o = {0};
    hf_depot_options options = {.size = sizeof options, .fetch_many = fetch_many, .state = &o};
    hf_depot_key keys[] = {key_of("a"), key_of("b"), key_of("c")};
    hf_depot_result results[3];
    hf_depot_info infos[3];
    for (int round = 0; round < 2; round++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(hf_depot_open_in("users", &depot, &options, &store.base));
        HF_TRY(hf_depot_get_many(depot, keys, round == 0 ? 2 : 3, results, .ret_infos = infos));
        HF_CHECK(is_text(results[0].value, "a") && is_text(results[1].value, "b"));
        HF_CHECK(infos[0].place == (round == 0 ? HF_DEPOT_FETCHER : HF_DEPOT_SOURCE));
        release(results, round == 0 ? 2 : 3);
        HF_CHECK_SAY(o.calls == round + 1 && o.sizes[0] == 2, "%d calls", o.calls);
        /* voided under way: they fly again, together */
        if (round == 1) {
            HF_CHECK(o.sizes[1] == 1);
            o.takes = hf_seconds(1);
            asker one = {depot, {keys[0], keys[1], keys[2]}, 3, hf_nanoseconds(0), HF_OK, HF_OK};
            HF_TRY(hf_depot_invalidate_namespace(depot, "acme"));
            HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
            HF_TRY(hf_scope_open(&scope));
            HF_TRY(hf_fork(scope, ask, &one));
            HF_TRY(hf_sleep(hf_milliseconds(500)));
            HF_TRY(hf_depot_invalidate_namespace(depot, "acme"));
            HF_TRY(hf_join(scope));
            HF_CHECK(one.status == HF_OK && one.of_last == HF_OK);
            HF_CHECK_SAY(o.calls == 4 && o.sizes[2] == 3 && o.sizes[3] == 3, "%d calls, %zu keys", o.calls, o.sizes[3]);
        }
    }
    hf_store_close(store.inner);
    return HF_OK;
}

/* Each origin has its own breaker, so a call asks one of them. */
static unsigned by_first(void *state, hf_depot_key key)
{
    (void)state;
    return (unsigned)((const char *)key.id)[0];
}

static hf_status origins(void *arg)
{
    (void)arg;
    origin o = {0};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("users", &depot, .fetch_many = fetch_many, .state = &o, .origin_of = by_first));
    hf_depot_key keys[] = {key_of("a1"), key_of("b1"), key_of("a2"), key_of("b2"), key_of("a3")};
    hf_depot_result results[5];
    HF_TRY(hf_depot_get_many(depot, keys, 5, results));
    HF_CHECK(o.calls == 2 && o.sizes[0] + o.sizes[1] == 5 && (o.sizes[0] == 3 || o.sizes[0] == 2));
    for (int i = 0; i < 5; i++) {
        HF_CHECK(results[i].status == HF_OK);
    }
    release(results, 5);
    return HF_OK;
}

static hf_status close_under(void *arg)
{
    (void)arg;
    origin o = {.takes = hf_seconds(5)};
    asker one = {.keys = {key_of("a"), key_of("b")}, .count = 2};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    hf_depot *depot = NULL;
    HF_TRY(open_depot(&o, &depot, hf_nanoseconds(0)));
    one.depot = depot;
    HF_TRY(hf_fork(scope, ask, &one));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_depot_close(depot));
    HF_TRY(hf_join(scope));
    HF_CHECK(one.status == HF_OK && one.of_last == HF_ERR_CLOSED && o.canceled == 1);
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

SIMULATED(each_key_is_answered_by_itself, each_by_itself, 100)
SIMULATED(a_call_has_at_most_256_keys, bounded, 5)
SIMULATED(keys_that_failed_are_tried_again_without_the_others, tried_again, 100)
SIMULATED(DP7_the_last_holder_of_a_call_cancels_it, left, 100)
SIMULATED(calls_within_the_window_share_a_fetch, window, 20)
SIMULATED(keys_that_are_read_first_share_a_call, from_source, 100)
SIMULATED(a_call_asks_one_origin, origins, 50)
SIMULATED(a_depot_is_closed_under_a_call, close_under, 50)

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(each_key_is_answered_by_itself),
        cmocka_unit_test(a_call_has_at_most_256_keys),
        cmocka_unit_test(keys_that_failed_are_tried_again_without_the_others),
        cmocka_unit_test(DP7_the_last_holder_of_a_call_cancels_it),
        cmocka_unit_test(calls_within_the_window_share_a_fetch),
        cmocka_unit_test(keys_that_are_read_first_share_a_call),
        cmocka_unit_test(a_call_asks_one_origin),
        cmocka_unit_test(a_depot_is_closed_under_a_call),
    };
    return hf_test_main("depot many", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
