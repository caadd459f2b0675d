/* .decode, .encode and .compute, on virtual time. */
#include "support/lent.h"
#include "support/support.h"

#include "depot/depot_private.h"
#include "store/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number as a program wants it. On the wire it is decimal text. */
typedef struct number {
    int value;
} number;

typedef struct world {
    const char *text; /* of the origin */
    const char *etag;
    int fetches, decoded, encoded, freed, pushes;
    char pushed[16];
    bool decodes_badly;
    atomic_int at_once, most;
    hf_span decoding; /* takes this long; on a pool */
} world;

static world w; /* of the run; cleared by each trace */

static void free_number(void *data)
{
    w.freed++;
    free(data);
}

static hf_status make_number(int value, hf_value **ret_value)
{
    number *made = malloc(sizeof *made);
    if (made == NULL) {
        return HF_ERR_NOMEM;
    }
    made->value = value;
    return hf_value_new(made, sizeof *made, free_number, ret_value);
}

static hf_status decode(void *state, const hf_value *bytes, hf_value **ret_object)
{
    (void)state;
    char text[16] = {0};
    size_t len = hf_value_len(bytes);
    w.decoded++;
    int now = atomic_fetch_add(&w.at_once, 1) + 1;
    w.most = now > w.most ? now : w.most;
    if (w.decoding.ns > 0) {
        HF_IGNORE(hf_sleep(w.decoding));
    }
    atomic_fetch_sub(&w.at_once, 1);
    memcpy(text, hf_value_data(bytes), len < 15 ? len : 15);
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (w.decodes_badly || *end != '\0') {
        return hf_raise(HF_ERR_UNSUPPORTED, "'%s' is not a number", text);
    }
    return make_number((int)value, ret_object);
}

static hf_status encode(void *state, const hf_value *object, hf_value **ret_bytes)
{
    (void)state;
    const number *one = hf_value_data(object);
    char text[16];
    w.encoded++;
    if (one->value < 0) {
        return hf_raise(HF_ERR_INVALID, "a number is negative");
    }
    int len = snprintf(text, sizeof text, "%d", one->value);
    return hf_value_copy(text, (size_t)len, ret_bytes);
}

static hf_status fetch(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    (void)state;
    w.fetches++;
    if (w.etag != NULL && request->etag != NULL && strcmp(w.etag, request->etag) == 0) {
        return hf_reply_not_modified(reply);
    }
    if (w.etag != NULL) {
        HF_TRY(hf_reply_etag(reply, w.etag));
    }
    return hf_reply_value(reply, w.text, strlen(w.text));
}

static hf_status push(void *state, const hf_push_request *request, hf_reply *reply)
{
    (void)state;
    (void)reply;
    w.pushes++;
    (void)snprintf(w.pushed, sizeof w.pushed, "%.*s", (int)request->len,
                   request->data != NULL ? (const char *)request->data : "");
    return HF_OK;
}

static hf_depot_key key_of(const char *id)
{
    return hf_depot_key_of("acme", "count", id);
}

static int get(hf_depot *depot, const char *id, hf_fresh fresh)
{
    hf_value *value = NULL;
    hf_status status = hf_depot_get(depot, key_of(id), &value, .fresh = fresh);
    HF_CHECK_SAY(status == HF_OK, "%s", hf_status_name(status));
    int number_of = status == HF_OK ? ((const number *)hf_value_data(value))->value : -1;
    hf_value_unref(value);
    return number_of;
}

static hf_status get_status(hf_depot *depot, const char *id, hf_fresh fresh)
{
    hf_value *value = NULL;
    hf_status status = hf_depot_get(depot, key_of(id), &value, .fresh = fresh);
    hf_value_unref(value);
    return status;
}

static hf_status once(void *arg)
{
    w = (world){.text = "7", .etag = "x"};
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
        if (arg != NULL) {
            HF_TRY(hf_pool_new(&pool, .limit = 2));
        }
        HF_TRY(hf_depot_open("counts", &depot, .fetch = fetch, .push = push, .decode = decode, .encode = encode,
                             .state = &w, .compute = pool));
        for (int i = 0; i < 10; i++) {
            HF_CHECK(get(depot, "A", HF_FRESH_CACHED) == 7);
        }
        HF_CHECK(w.decoded == 1 && w.fetches == 1);
        /* confirmed: the same object */
        HF_TRY(hf_sleep(hf_minutes(6)));
        HF_CHECK(get(depot, "A", HF_FRESH_OR_STALE) == 7 && w.fetches == 2 && w.decoded == 1);
        /* a write is decoded by its first reader */
        HF_TRY(hf_depot_online(depot, false));
        HF_AUTO(hf_value_unref) hf_value *nine = NULL;
        HF_TRY(make_number(9, &nine));
        HF_TRY(hf_depot_put_value(depot, key_of("A"), nine));
        HF_CHECK(w.encoded == 1 && w.decoded == 1);
        HF_CHECK(get(depot, "A", HF_FRESH_CACHED) == 9 && get(depot, "A", HF_FRESH_LOCAL) == 9 && w.decoded == 2);
        HF_TRY(hf_depot_online(depot, true));
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_CHECK(w.pushes == 1 && strcmp(w.pushed, "9") == 0);
        HF_CHECK(get(depot, "A", HF_FRESH_LOCAL) == 9 && w.decoded == 2); /* settled: the same bytes */
        /* a failure of .encode changes nothing */
        HF_AUTO(hf_value_unref) hf_value *bad = NULL;
        HF_TRY(make_number(-1, &bad));
        HF_CHECK(hf_depot_put_value(depot, key_of("A"), bad, .if_version = 0) == HF_ERR_INVALID);
        HF_CHECK(strstr(hf_error_text(), "negative") != NULL);
        HF_CHECK(hf_depot_put_value(depot, key_of("A"), NULL) == HF_ERR_MISUSE);
        HF_CHECK(get(depot, "A", HF_FRESH_LOCAL) == 9);
        /* many keys */
        w.etag = NULL;
        hf_depot_key keys[] = {key_of("A"), key_of("B"), key_of("C")};
        hf_depot_result results[3];
        HF_TRY(hf_depot_get_many(depot, keys, 3, results));
        for (int i = 0; i < 3; i++) {
            HF_CHECK(results[i].status == HF_OK &&
                     ((const number *)hf_value_data(results[i].value))->value == (i == 0 ? 9 : 7));
            hf_value_unref(results[i].value);
        }
        HF_CHECK(w.decoded == 4);
        HF_TRY(hf_depot_close(depot));
        depot = NULL;
    }
    HF_CHECK(w.freed == w.decoded + 2); /* DP8: with the two that the test made */
    return HF_OK;
}

static hf_status once_on_pool(void *arg)
{
    (void)arg;
    return once(&(int){1});
}

/* Converter failed: not tried again, an answer, and what is at hand stays. */
static hf_status failing(void *arg)
{
    (void)arg;
    w = (world){.text = "7"};
    HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
    HF_TRY(hf_depot_open("counts", &depot, .fetch = fetch, .push = push, .decode = decode, .state = &w));
    depot->jitter_is_full = true;
    HF_CHECK(get(depot, "A", HF_FRESH_CACHED) == 7);
    HF_AUTO(hf_watcher_close) hf_watcher *watcher = NULL;
    HF_TRY(hf_depot_watch(depot, key_of("A"), &watcher));
    hf_depot_event event;
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(event.kind == HF_DEPOT_DATA && ((const number *)hf_value_data(event.value))->value == 7);
    hf_value_unref(event.value);
    HF_CHECK(w.decoded == 1); /* the watcher's is the same */
    w.text = "seven";
    HF_CHECK(get_status(depot, "A", HF_FRESH_NOW) == HF_ERR_UNSUPPORTED);
    HF_CHECK(strstr(hf_error_text(), "'seven' is not a number") != NULL);
    HF_CHECK(w.fetches == 2 && depot->breakers[0].failures == 0);
    HF_TRY(hf_watcher_next(watcher, &event));
    HF_CHECK(event.kind == HF_DEPOT_ERROR && event.status == HF_ERR_UNSUPPORTED && event.served_stale);
    HF_CHECK(get(depot, "A", HF_FRESH_CACHED) == 7);
    HF_CHECK(get_status(depot, "A", HF_FRESH_NOW) == HF_ERR_UNAVAILABLE); /* a back-off as after every failure */
    HF_TRY(hf_sleep(hf_seconds(3)));
    HF_CHECK(get_status(depot, "A", HF_FRESH_OR_STALE) == HF_ERR_UNSUPPORTED); /* the origin works: not served stale */
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_sleep(hf_seconds(31)));
        HF_CHECK(get_status(depot, "A", HF_FRESH_NOW) == HF_ERR_UNSUPPORTED);
    }
    HF_CHECK(depot->breakers[0].state == HF_BREAKER_CLOSED);
    /* a write that cannot be decoded is sent all the same; who reads it hears why not */
    HF_TRY(hf_depot_online(depot, false));
    HF_TRY(hf_depot_put(depot, key_of("A"), "eight", 5));
    HF_CHECK(get_status(depot, "A", HF_FRESH_CACHED) == HF_ERR_UNSUPPORTED);
    while (hf_watcher_next(watcher, &event, .timeout = hf_milliseconds(1)) == HF_OK) {
        HF_CHECK(event.kind == HF_DEPOT_ERROR && event.value == NULL);
    }
    hf_depot_key key = key_of("A");
    hf_depot_result result;
    HF_TRY(hf_depot_get_many(depot, &key, 1, &result));
    HF_CHECK(result.status == HF_ERR_UNSUPPORTED && strstr(result.message, "'eight' is not a number") != NULL);
    return HF_OK;
}

static hf_status read_one(void *arg)
{
    HF_CHECK(get(arg, "A", HF_FRESH_CACHED) == 7);
    return HF_OK;
}

/* A value from the source: the first one decodes, the others wait for that. */
static hf_status from_source(void *arg)
{
    (void)arg;
    hf_op op;
    hf_op_init(&op);
    lent store = {.base = {.ops = &LENT, .tables = &hf_depot_tables}};
    HF_TRY(hf_mem_store_open(&op, hf_env_memory(hf_env_posix()), &hf_depot_tables, &store.inner));
    w = (world){.text = "7"};
    hf_depot_options options = {.size = sizeof options, .fetch = fetch, .decode = decode, .state = &w};
    for (int round = 0; round < 2; round++) {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(hf_depot_open_in("counts", &depot, &options, &store.base));
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        w.decoding = hf_milliseconds(round * 100);
        for (int i = 0; i < 20; i++) {
            HF_TRY(hf_fork(scope, read_one, depot));
        }
        HF_TRY(hf_join(scope));
        HF_CHECK_SAY(w.decoded == round + 1 && w.fetches == 1 && w.most == 1, "decoded %d times", w.decoded);
    }
    hf_store_close(store.inner);
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

SIMULATED(a_value_is_decoded_once, once, 50)
SIMULATED(a_value_is_decoded_once_on_a_pool, once_on_pool, 50)
SIMULATED(a_converter_that_fails_is_an_answer, failing, 50)
SIMULATED(the_first_reader_decodes_a_value_from_the_source, from_source, 50)

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_value_is_decoded_once),
        cmocka_unit_test(a_value_is_decoded_once_on_a_pool),
        cmocka_unit_test(a_converter_that_fails_is_an_answer),
        cmocka_unit_test(the_first_reader_decodes_a_value_from_the_source),
    };
    return hf_test_main("depot convert", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
