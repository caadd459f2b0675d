/* The rules of the depot as tables: every cell of reading, the failure classes, pauses, the breaker, keys and queries,
 * and a clock that is set. */
#include "support/support.h"

#include "depot/fetching.h"

#include <stdio.h>
#include <string.h>

static const int64_t SECOND = 1000000000;

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

#define S HF_MOVE_SERVE
#define R HF_MOVE_SERVE_REFRESH
#define F HF_MOVE_FETCH
#define N HF_MOVE_NOT_FOUND
#define U HF_MOVE_UNAVAILABLE

/* A value of age 10 s. WITHIN 20 s and WITHIN 5 s; OR_STALE up to 20 s and up to 5 s. */
enum { CACHED, WITHIN_20, WITHIN_5, NOW, OR_STALE_20, OR_STALE_5, LOCAL, ASKS };
static const hf_ask_rule ASK[ASKS] = {
    [CACHED] = {.fresh = HF_FRESH_CACHED},
    [WITHIN_20] = {.fresh = HF_FRESH_WITHIN, .within = 20000000000},
    [WITHIN_5] = {.fresh = HF_FRESH_WITHIN, .within = 5000000000},
    [NOW] = {.fresh = HF_FRESH_NOW},
    [OR_STALE_20] = {.fresh = HF_FRESH_OR_STALE, .stale_max = 20000000000},
    [OR_STALE_5] = {.fresh = HF_FRESH_OR_STALE, .stale_max = 5000000000},
    [LOCAL] = {.fresh = HF_FRESH_LOCAL},
};

static const struct {
    const char *name;
    hf_at_hand local;
    bool is_pending;
    hf_move open[ASKS];    /* the origin may be asked */
    hf_move blocked[ASKS]; /* it may not */
} READS[] = {
    {"none", HF_LOCAL_NONE, false, {F, F, F, F, F, F, N}, {U, U, U, U, U, U, N}},
    {"unusable", HF_LOCAL_UNUSABLE, false, {F, F, F, F, F, F, N}, {U, U, U, U, S, U, N}},
    {"fresh", HF_LOCAL_FRESH, false, {S, S, F, F, F, F, S}, {S, S, U, U, S, U, S}},
    {"stale", HF_LOCAL_STALE, false, {R, S, F, F, F, F, S}, {S, S, U, U, S, U, S}},
    {"absent", HF_LOCAL_ABSENT, false, {N, N, N, F, F, F, N}, {N, N, N, U, U, U, N}},
    {"deleted", HF_LOCAL_DELETED, false, {N, N, N, N, N, N, N}, {N, N, N, N, N, N, N}},
    {"deleted, pending", HF_LOCAL_DELETED, true, {N, N, N, N, N, N, N}, {N, N, N, N, N, N, N}},
    {"pending", HF_LOCAL_FRESH, true, {S, S, S, F, S, S, S}, {S, S, S, U, S, S, S}},
};

static void every_cell_of_reading(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(READS); i++) {
        for (int ask = 0; ask < ASKS; ask++) {
            hf_look_at at = {.local = READS[i].local, .age = 10 * SECOND, .is_pending = READS[i].is_pending};
            HF_CHECK_SAY(hf_rule_get(&ASK[ask], &at) == READS[i].open[ask], "%s, ask %d: %d", READS[i].name, ask,
                         (int)hf_rule_get(&ASK[ask], &at));
            at.is_blocked = true;
            HF_CHECK_SAY(hf_rule_get(&ASK[ask], &at) == READS[i].blocked[ask], "%s, ask %d, blocked: %d", READS[i].name,
                         ask, (int)hf_rule_get(&ASK[ask], &at));
        }
    }
    hf_look_at edge = {.local = HF_LOCAL_STALE, .age = 20 * SECOND};
    HF_CHECK(hf_rule_get(&ASK[WITHIN_20], &edge) == S);
    edge.age++;
    HF_CHECK(hf_rule_get(&ASK[WITHIN_20], &edge) == F);
}

static void a_failed_fetch_serves_what_is_at_hand(void **state)
{
    (void)state;
    static const bool HAS_VALUE[HF_LOCAL_COUNT] = {
        [HF_LOCAL_FRESH] = true, [HF_LOCAL_STALE] = true, [HF_LOCAL_UNUSABLE] = true};
    for (int local = 0; local < HF_LOCAL_COUNT; local++) {
        for (int ask = 0; ask < ASKS; ask++) {
            for (int why = HF_REPLY_UNKNOWN; why <= HF_REPLY_INVALID; why++) {
                hf_look_at at = {.local = (hf_at_hand)local, .age = 10 * SECOND};
                bool serves = ask == OR_STALE_20 && HAS_VALUE[local] && why <= HF_REPLY_TLS;
                HF_CHECK_SAY(hf_rule_serves_stale(&ASK[ask], &at, (hf_reply_class)why) == serves,
                             "local %d, ask %d, class %d", local, ask, why);
            }
        }
    }
}

static void the_clock_is_set(void **state)
{
    (void)state;
    static const int64_t HOUR = 3600;
    static const struct {
        const char *text;
        int64_t now, validated_at, ttl; /* seconds */
        int64_t age;
        bool is_fresh;
    } CASES[] = {
        {"just now", 10000, 10000, 300, 0, true},
        {"at its ttl", 10300, 10000, 300, 300, true},
        {"a second later", 10301, 10000, 300, 301, false},
        {"a ttl of nothing", 10000, 10000, 0, 0, false},
        {"4 minutes ahead", 10000, 10240, 300, 0, true},
        {"5 minutes ahead", 10000, 10300, 300, 0, true},
        {"over 5 minutes ahead", 10000, 10301, 300, 0, false},
        {"set back an hour", 10000, 10000 + 3600, 300, 0, false},
        {"set forward a year", 10000 + 365 * 24 * 3600, 10000, 300, 365 * 24 * 3600, false},
    };
    HF_CHECK(HOUR * SECOND < HF_TOMBSTONE_NS);
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        int64_t now = CASES[i].now * SECOND;
        int64_t at = CASES[i].validated_at * SECOND;
        HF_CHECK_SAY(hf_rule_age(now, at) == CASES[i].age * SECOND, "%s: age", CASES[i].text);
        HF_CHECK_SAY(hf_rule_is_fresh(now, at, CASES[i].ttl * SECOND) == CASES[i].is_fresh, "%s: fresh", CASES[i].text);
    }
    HF_CHECK(hf_rule_is_fresh(INT64_MAX, 0, INT64_MAX) && hf_rule_age(0, INT64_MAX) == 0);
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

static void failures_have_classes(void **state)
{
    (void)state;
    static const struct {
        hf_reply_class why;
        bool is_retried, counts, serves_stale;
    } CLASSES[] = {
        {HF_REPLY_UNKNOWN, true, true, true},   {HF_REPLY_TIMEOUT, true, true, true},
        {HF_REPLY_NETWORK, true, true, true},   {HF_REPLY_ORIGIN, true, true, true},
        {HF_REPLY_TLS, false, true, true},      {HF_REPLY_NOT_FOUND, false, false, false},
        {HF_REPLY_DENIED, false, false, false}, {HF_REPLY_INVALID, false, false, false},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CLASSES); i++) {
        const hf_class_info *info = hf_class_info_of(CLASSES[i].why);
        HF_CHECK_SAY(info->is_retried == CLASSES[i].is_retried && info->counts == CLASSES[i].counts &&
                         info->serves_stale == CLASSES[i].serves_stale,
                     "class %s", info->name);
    }
    static const struct {
        hf_status status;
        hf_reply_class why;
    } STATUSES[] = {
        {HF_ERR_TIMEOUT, HF_REPLY_TIMEOUT},    {HF_ERR_IO, HF_REPLY_NETWORK},
        {HF_ERR_RESET, HF_REPLY_NETWORK},      {HF_ERR_REFUSED, HF_REPLY_NETWORK},
        {HF_ERR_UNAVAILABLE, HF_REPLY_ORIGIN}, {HF_ERR_NOT_FOUND, HF_REPLY_NOT_FOUND},
        {HF_ERR_DENIED, HF_REPLY_DENIED},      {HF_ERR_INVALID, HF_REPLY_INVALID},
        {HF_ERR_FAILED, HF_REPLY_UNKNOWN},     {HF_ERR_NOMEM, HF_REPLY_UNKNOWN},
    };
    for (size_t i = 0; i < HF_COUNT_OF(STATUSES); i++) {
        HF_CHECK_SAY(hf_class_of_status(STATUSES[i].status) == STATUSES[i].why, "%s",
                     hf_status_name(STATUSES[i].status));
    }
    static const struct {
        int status;
        hf_reply_class why;
    } HTTP[] = {
        {404, HF_REPLY_NOT_FOUND}, {410, HF_REPLY_NOT_FOUND}, {401, HF_REPLY_DENIED},  {403, HF_REPLY_DENIED},
        {408, HF_REPLY_TIMEOUT},   {429, HF_REPLY_ORIGIN},    {400, HF_REPLY_INVALID}, {418, HF_REPLY_INVALID},
        {500, HF_REPLY_ORIGIN},    {503, HF_REPLY_ORIGIN},    {599, HF_REPLY_ORIGIN},  {302, HF_REPLY_UNKNOWN},
    };
    for (size_t i = 0; i < HF_COUNT_OF(HTTP); i++) {
        HF_CHECK_SAY(hf_class_of_http(HTTP[i].status) == HTTP[i].why, "HTTP %d", HTTP[i].status);
    }
    HF_CHECK(hf_depot_end_of(HF_OK, HF_REPLY_UNKNOWN) == HF_BREAKER_ANSWERED);
    HF_CHECK(hf_depot_end_of(HF_ERR_CANCELED, HF_REPLY_UNKNOWN) == HF_BREAKER_CANCELED);
    HF_CHECK(hf_depot_end_of(HF_ERR_NOT_FOUND, HF_REPLY_NOT_FOUND) == HF_BREAKER_ANSWERED);
    HF_CHECK(hf_depot_end_of(HF_ERR_IO, HF_REPLY_TLS) == HF_BREAKER_FAILED);
}

static void pauses_grow_and_end(void **state)
{
    (void)state;
    static const int64_t MILLI = 1000000;
    static const struct {
        int n;
        int64_t retry, backoff, send; /* ms, with the jitter at its upper end */
    } CASES[] = {
        {1, 200, 2000, 1000},      {2, 400, 4000, 2000},       {3, 800, 8000, 4000},
        {4, 1600, 16000, 8000},    {5, 3200, 30000, 16000},    {8, 25600, 30000, 128000},
        {9, 30000, 30000, 256000}, {10, 30000, 30000, 300000}, {1000, 30000, 30000, 300000},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        int n = CASES[i].n;
        HF_CHECK_SAY(hf_rule_retry_pause(n, 0, 1.0) == CASES[i].retry * MILLI, "retry %d", n);
        HF_CHECK_SAY(hf_rule_backoff((uint32_t)n, 1.0) == CASES[i].backoff * MILLI, "back-off %d", n);
        HF_CHECK_SAY(hf_rule_send_pause((uint32_t)n, 0, 1.0) == CASES[i].send * MILLI, "send %d", n);
        HF_CHECK(hf_rule_retry_pause(n, 0, 0.0) == 0 && hf_rule_backoff((uint32_t)n, 0.0) == 0 &&
                 hf_rule_send_pause((uint32_t)n, 0, 0.0) == 0);
        HF_CHECK(hf_rule_retry_pause(n, 0, 0.5) == CASES[i].retry * MILLI / 2);
    }
    HF_CHECK(hf_rule_retry_pause(1, 5 * SECOND, 1.0) == 5 * SECOND);       /* the origin's word is longer */
    HF_CHECK(hf_rule_retry_pause(9, 5 * SECOND, 1.0) == 30 * SECOND);      /* it is shorter */
    HF_CHECK(hf_rule_retry_pause(1, 7200 * SECOND, 1.0) == 3600 * SECOND); /* an hour at most */
    HF_CHECK(hf_rule_send_pause(1, 7200 * SECOND, 0.0) == 3600 * SECOND);
    hf_rng rng = {.state = 7};
    for (int i = 0; i < 1000; i++) {
        double chance = hf_rule_chance(&rng);
        HF_CHECK(chance >= 0.0 && chance <= 1.0);
    }
}

/* ---- The breaker ------------------------------------------------------------------------------------------------- */

static bool ask(hf_breaker *breaker, int64_t now, bool *is_probe)
{
    return hf_breaker_ask(breaker, now * SECOND, is_probe);
}

static void the_breaker_follows_its_table(void **state)
{
    (void)state;
    hf_breaker breaker = {0};
    bool is_probe = true;
    int64_t wait = 0;
    /* closed: two failures and an answer, then three in a row */
    static const hf_breaker_end ENDS[] = {HF_BREAKER_FAILED, HF_BREAKER_FAILED,   HF_BREAKER_ANSWERED,
                                          HF_BREAKER_FAILED, HF_BREAKER_CANCELED, HF_BREAKER_FAILED,
                                          HF_BREAKER_FAILED};
    for (size_t i = 0; i < HF_COUNT_OF(ENDS); i++) {
        HF_CHECK(ask(&breaker, 100, &is_probe) && !is_probe && breaker.state == HF_BREAKER_CLOSED);
        hf_breaker_tell(&breaker, 100 * SECOND, ENDS[i], false);
    }
    HF_CHECK(breaker.state == HF_BREAKER_OPEN && !ask(&breaker, 100, &is_probe) && !ask(&breaker, 129, &is_probe));
    HF_CHECK(hf_breaker_is_shut(&breaker, 110 * SECOND, &wait) && wait == 20 * SECOND);
    /* a fetch that began before it opened changes nothing */
    hf_breaker_tell(&breaker, 101 * SECOND, HF_BREAKER_ANSWERED, false);
    hf_breaker_tell(&breaker, 101 * SECOND, HF_BREAKER_FAILED, false);
    HF_CHECK(breaker.state == HF_BREAKER_OPEN && breaker.open_until == 130 * SECOND);
    /* half open: one permit; a canceled probe gives it back */
    for (int i = 0; i < 5; i++) {
        HF_CHECK(!hf_breaker_is_shut(&breaker, 130 * SECOND, &wait) && wait == 0);
        HF_CHECK(ask(&breaker, 130, &is_probe) && is_probe && breaker.state == HF_BREAKER_HALF_OPEN);
        HF_CHECK(!ask(&breaker, 130, &is_probe) && !is_probe && hf_breaker_is_shut(&breaker, 130 * SECOND, &wait));
        hf_breaker_tell(&breaker, 131 * SECOND, HF_BREAKER_FAILED, false); /* no probe: nothing */
        HF_CHECK(breaker.state == HF_BREAKER_HALF_OPEN && breaker.probes_left == 0);
        hf_breaker_tell(&breaker, 131 * SECOND, HF_BREAKER_CANCELED, true);
        HF_CHECK(breaker.state == HF_BREAKER_HALF_OPEN && breaker.probes_left == 1);
    }
    /* a probe that fails opens it again, one that is answered closes it */
    HF_CHECK(ask(&breaker, 140, &is_probe) && is_probe);
    hf_breaker_tell(&breaker, 141 * SECOND, HF_BREAKER_FAILED, true);
    HF_CHECK(breaker.state == HF_BREAKER_OPEN && breaker.open_until == 171 * SECOND && !ask(&breaker, 170, &is_probe));
    hf_breaker_tell(&breaker, 141 * SECOND, HF_BREAKER_CANCELED, true); /* late */
    HF_CHECK(breaker.state == HF_BREAKER_OPEN);
    HF_CHECK(ask(&breaker, 171, &is_probe) && is_probe);
    hf_breaker_tell(&breaker, 172 * SECOND, HF_BREAKER_ANSWERED, true);
    HF_CHECK(breaker.state == HF_BREAKER_CLOSED && breaker.failures == 0 && ask(&breaker, 172, &is_probe) && !is_probe);
}

/* ---- Keys and queries -------------------------------------------------------------------------------------------- */

static void keys_are_packed(void **state)
{
    (void)state;
    char name_100[101], name_101[102];
    static char id[1001];
    memset(name_100, 'n', 100);
    memset(name_101, 'n', 101);
    memset(id, 'i', sizeof id);
    name_100[100] = name_101[101] = '\0';
    const struct {
        const char *text;
        hf_depot_key key;
        hf_status status;
    } CASES[] = {
        {"plain", hf_depot_key_of("a", "t", "x"), HF_OK},
        {"the longest", hf_depot_key_of_bytes(name_100, name_100, id, 1000), HF_OK},
        {"an id with NULs", hf_depot_key_of_bytes("a", "t", "\0\0", 2), HF_OK},
        {"no namespace", hf_depot_key_of(NULL, "t", "x"), HF_ERR_INVALID},
        {"an empty namespace", hf_depot_key_of("", "t", "x"), HF_ERR_INVALID},
        {"a namespace of 101 bytes", hf_depot_key_of(name_101, "t", "x"), HF_ERR_INVALID},
        {"no type", hf_depot_key_of("a", NULL, "x"), HF_ERR_INVALID},
        {"an empty type", hf_depot_key_of("a", "", "x"), HF_ERR_INVALID},
        {"a type of 101 bytes", hf_depot_key_of("a", name_101, "x"), HF_ERR_INVALID},
        {"no id", hf_depot_key_of("a", "t", NULL), HF_ERR_INVALID},
        {"an empty id", hf_depot_key_of("a", "t", ""), HF_ERR_INVALID},
        {"an id of 1,001 bytes", hf_depot_key_of_bytes("a", "t", id, 1001), HF_ERR_INVALID},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        static hf_depot_key_bytes bytes;
        hf_depot_key back;
        hf_op op;
        hf_op_init(&op);
        hf_depot_key key = CASES[i].key;
        HF_CHECK_SAY(hf_depot_key_pack(&op, key, &bytes) == CASES[i].status, "%s", CASES[i].text);
        if (CASES[i].status != HF_OK) {
            HF_CHECK_SAY(op.message[0] != '\0', "%s: no sentence", CASES[i].text);
            continue;
        }
        HF_CHECK_SAY(hf_depot_key_unpack(hf_str_of_len(bytes.bytes, bytes.len), &back) &&
                         strcmp(back.ns, key.ns) == 0 && strcmp(back.type, key.type) == 0 &&
                         back.id_len == key.id_len && memcmp(back.id, key.id, key.id_len) == 0,
                     "%s: not the same", CASES[i].text);
    }
    static const struct {
        const char *bytes;
        size_t len;
    } BAD[] = {{"", 0}, {"a", 1}, {"a\0t\0", 4}, {"\0t\0xx", 5}, {"a\0\0xx", 5}, {"abcdef", 6}, {"a\0bcde", 6}};
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        hf_depot_key back;
        HF_CHECK_SAY(!hf_depot_key_unpack(hf_str_of_len(BAD[i].bytes, BAD[i].len), &back), "bad key %zu", i);
    }
}

static bool is_same_id(const hf_depot_query_id *a, const hf_depot_query_id *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static void queries_have_ids(void **state)
{
    (void)state;
    static hf_depot_query_id a, b;
    const hf_depot_term ONE[] = {{"a", "1"}, {"b", "2"}, {"c", ""}};
    const hf_depot_term OTHER[] = {{"c", ""}, {"a", "1"}, {"b", "2"}};
    HF_CHECK(hf_depot_query(ONE, 3, &a) == HF_OK && hf_depot_query(OTHER, 3, &b) == HF_OK && is_same_id(&a, &b));
    const hf_depot_term JOINED[] = {{"a", "1|b=2"}};
    HF_CHECK(hf_depot_query(ONE, 2, &a) == HF_OK && hf_depot_query(JOINED, 1, &b) == HF_OK && !is_same_id(&a, &b));
    const hf_depot_term SHIFTED[] = {{"a1", ""}, {"b", "2"}};
    HF_CHECK(hf_depot_query(SHIFTED, 2, &b) == HF_OK && !is_same_id(&a, &b));
    const hf_depot_term SWAPPED[] = {{"a", "2"}, {"b", "1"}};
    HF_CHECK(hf_depot_query(SWAPPED, 2, &b) == HF_OK && !is_same_id(&a, &b));
    const hf_depot_term TWICE[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
    HF_CHECK(hf_depot_query(TWICE, 3, &b) == HF_ERR_INVALID);
    const hf_depot_term NO_VALUE[] = {{"a", NULL}};
    HF_CHECK(hf_depot_query(NO_VALUE, 1, &b) == HF_ERR_INVALID);
    HF_CHECK(hf_depot_query(ONE, 0, &b) == HF_ERR_MISUSE && hf_depot_query(NULL, 1, &b) == HF_ERR_MISUSE);
    static char names[65][16], big[998];
    static hf_depot_term many[65];
    for (int i = 0; i < 65; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        many[i] = (hf_depot_term){names[i], "v"};
    }
    HF_CHECK(hf_depot_query(many, 64, &a) == HF_OK && hf_depot_query(many, 65, &a) == HF_ERR_LIMIT);
    memset(big, 'x', 995);
    const hf_depot_term FULL[] = {{"a", big}};
    HF_CHECK(hf_depot_query(FULL, 1, &a) == HF_OK && a.len == HF_DEPOT_ID_LEN_MAX);
    memset(big, 'x', 996);
    HF_CHECK(hf_depot_query(FULL, 1, &a) == HF_ERR_TOO_BIG);
    hf_depot_key key = hf_depot_key_of_bytes("ns", "list", b.bytes, b.len);
    static hf_depot_key_bytes bytes;
    hf_op op;
    hf_op_init(&op);
    HF_CHECK(hf_depot_key_pack(&op, key, &bytes) == HF_OK);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(every_cell_of_reading), cmocka_unit_test(a_failed_fetch_serves_what_is_at_hand),
    cmocka_unit_test(the_clock_is_set),      cmocka_unit_test(failures_have_classes),
    cmocka_unit_test(pauses_grow_and_end),   cmocka_unit_test(the_breaker_follows_its_table),
    cmocka_unit_test(keys_are_packed),       cmocka_unit_test(queries_have_ids),
};

int main(int argc, char **argv)
{
    return hf_test_main("depot rules", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
