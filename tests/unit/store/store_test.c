/* The contract of hf_store, on every backend: store-S1 to store-S6 as far as they show without a crash (crash_test.c has those). */
#include "backends.h"

#include <stdio.h>

/* Runs `body` on a fresh store of each kind, with the tables of this set. */
static void on_each_of(const hf_table_set *tables, void (*body)(place *p, hf_arena *arena))
{
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        place p = place_new_of(KINDS[i], tables);
        hf_arena arena;
        hf_arena_init(&arena, HEAP);
        body(&p, &arena);
        hf_arena_deinit(&arena);
        place_free(&p);
    }
}

/* With the tables of the engine. */
static void on_each(void (*body)(place *p, hf_arena *arena))
{
    on_each_of(&hf_engine_tables, body);
}

static void on_each_set(void (*body)(place *p, hf_arena *arena))
{
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++) {
        on_each_of(SETS[i], body);
    }
}

/* ---- Puts, gets, deletes ------------------------------------------------------------------------------------------- */

/* A key that fits the table, for each table. */
static hf_key sample_key(hf_table table, int64_t n)
{
    static char texts[4][16];
    static unsigned turn;
    const hf_table_info *info = hf_table_info_of(table);
    hf_key key = {0};
    if (info->has_text) {
        char *text = texts[turn++ % 4];
        key.text = hf_str_of_len(text, (size_t)snprintf(text, 16, "k%03d", (int)n));
    }
    key.a = info->has_a ? n + 1 : 0;
    key.b = info->has_b ? n * 2 : 0;
    return key;
}

static hf_str sample_value(hf_table table, const char *text)
{
    return hf_table_info_of(table)->has_value ? hf_str_of(text) : hf_str_of("");
}

static void each_table_works(place *p, hf_arena *arena)
{
    /* The journal takes rows of this commit and earlier ones only, so there are enough of those. */
    COMMIT(p, put(HF_TABLE_META, key_text("a"), HF_STR("b")));
    COMMIT(p, del(HF_TABLE_META, key_text("a")));
    for (size_t t = 0; t < p->tables->count; t++) {
        hf_table table = p->tables->tables[t];
        assert_false(get(p, arena, table, sample_key(table, 0)).found);
        COMMIT(p, put(table, sample_key(table, 0), sample_value(table, "one")),
               put(table, sample_key(table, 1), sample_value(table, "")));
        hf_store_request found = get(p, arena, table, sample_key(table, 0));
        assert_true(found.found);
        assert_true(hf_str_equal(found.value, sample_value(table, "one")));
        found = get(p, arena, table, sample_key(table, 1));
        assert_true(found.found);
        assert_int_equal(found.value.len, 0);
        COMMIT(p, put(table, sample_key(table, 0), sample_value(table, "two, longer")));
        found = get(p, arena, table, sample_key(table, 0));
        assert_true(hf_str_equal(found.value, sample_value(table, "two, longer")));
        COMMIT(p, del(table, sample_key(table, 0)), del(table, sample_key(table, 7)));
        assert_false(get(p, arena, table, sample_key(table, 0)).found);
        assert_true(get(p, arena, table, sample_key(table, 1)).found);
    }
}

static void store_puts_gets_and_deletes_in_each_table(void **state)
{
    (void)state;
    on_each_set(each_table_works);
}

static void later_wins(place *p, hf_arena *arena)
{
    hf_table table = number_table(p);
    COMMIT(p, put(table, key_a(1), HF_STR("first")), put(table, key_a(1), HF_STR("second")),
           put(table, key_a(2), HF_STR("gone")), del_range(table, key_a(2), key_a(3)), del(table, key_a(3)),
           put(table, key_a(3), HF_STR("back")));
    assert_true(hf_str_equal(get(p, arena, table, key_a(1)).value, HF_STR("second")));
    assert_false(get(p, arena, table, key_a(2)).found);
    assert_true(hf_str_equal(get(p, arena, table, key_a(3)).value, HF_STR("back")));
}

static void store_S1_writes_of_a_commit_apply_in_their_order(void **state)
{
    (void)state;
    on_each_set(later_wins);
}

static void keeps_big_values(place *p, hf_arena *arena)
{
    enum { LEN = 2 << 20 };
    char *bytes = malloc(LEN);
    hf_rng rng = {3};
    for (size_t i = 0; i < LEN; i++) {
        bytes[i] = (char)hf_rng_next(&rng);
    }
    hf_str big = hf_str_of_len(bytes, LEN);
    COMMIT(p, put(HF_TABLE_HISTORY, key_ab(1, 1), big), put(HF_TABLE_JOURNAL, key_a(1), big),
           put(HF_TABLE_TASK, key_text_a("q", 1), big), put(HF_TABLE_INBOX, key_ab(1, 1), big));
    place_reopen(p);
    assert_true(hf_str_equal(get(p, arena, HF_TABLE_HISTORY, key_ab(1, 1)).value, big));
    assert_true(hf_str_equal(get(p, arena, HF_TABLE_JOURNAL, key_a(1)).value, big));
    assert_true(hf_str_equal(get(p, arena, HF_TABLE_TASK, key_text_a("q", 1)).value, big));
    assert_true(hf_str_equal(get(p, arena, HF_TABLE_INBOX, key_ab(1, 1)).value, big));
    free(bytes);
}

static void store_keeps_values_of_two_mebibytes(void **state)
{
    (void)state;
    on_each(keeps_big_values);
}

/* ---- Ranges -------------------------------------------------------------------------------------------------------- */

static void expect_numbers(const hf_store_request *scan, const int64_t *wanted, size_t count, bool more)
{
    assert_int_equal(scan->row_count, count);
    assert_int_equal(scan->more, more);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(scan->rows[i].key.a, wanted[i]);
    }
}

static void scans_numbers(place *p, hf_arena *arena)
{
    hf_table table = number_table(p);
    hf_write writes[10];
    for (int i = 0; i < 10; i++) {
        writes[i] = put(table, key_a((i * 7 % 10) * 10), HF_STR("0123456789")); /* 0 70 40 ... */
    }
    commit_writes(p, writes, 10);
    hf_store_request scan = scan_of(p, arena, table);
    run(p, &scan);
    expect_numbers(&scan, (int64_t[]){0, 10, 20, 30, 40, 50, 60, 70, 80, 90}, 10, false);
    scan.backwards = true;
    run(p, &scan);
    expect_numbers(&scan, (int64_t[]){90, 80, 70, 60, 50, 40, 30, 20, 10, 0}, 10, false);
    scan.key = key_a(20);
    scan.key_end = key_a(50); /* exclusive, and the first is inclusive */
    run(p, &scan);
    expect_numbers(&scan, (int64_t[]){40, 30, 20}, 3, false);
    scan.backwards = false;
    run(p, &scan);
    expect_numbers(&scan, (int64_t[]){20, 30, 40}, 3, false);
    scan.key = key_a(15);
    scan.key_end = key_a(55); /* between rows */
    scan.row_max = 4;
    run(p, &scan);
    expect_numbers(&scan, (int64_t[]){20, 30, 40, 50}, 4, false);
    scan.row_max = 3;
    run(p, &scan);
    expect_numbers(&scan, (int64_t[]){20, 30, 40}, 3, true);
    scan.row_max = 0;
    scan.len_max = 20;
    run(p, &scan);
    expect_numbers(&scan, (int64_t[]){20, 30}, 2, true);
    scan.len_max = 21;
    run(p, &scan);
    expect_numbers(&scan, (int64_t[]){20, 30, 40}, 3, true);
    scan.len_max = 1; /* one row at least */
    run(p, &scan);
    expect_numbers(&scan, (int64_t[]){20}, 1, true);
    scan.key = key_a(91);
    scan.key_end = hf_key_last();
    run(p, &scan);
    expect_numbers(&scan, NULL, 0, false);
    scan.key = key_a(50);
    scan.key_end = key_a(20); /* the wrong way round */
    run(p, &scan);
    expect_numbers(&scan, NULL, 0, false);
    COMMIT(p, del_range(table, key_a(15), key_a(50)), del_range(table, key_a(80), hf_key_last()),
           del_range(table, key_a(60), key_a(60)));
    scan = scan_of(p, arena, table);
    run(p, &scan);
    expect_numbers(&scan, (int64_t[]){0, 10, 50, 60, 70}, 5, false);
}

static void store_scans_and_deletes_ranges_with_limits_in_both_directions(void **state)
{
    (void)state;
    on_each_set(scans_numbers);
}

static void orders_keys(place *p, hf_arena *arena)
{
    const hf_key keys[] = {
        {.text = HF_STR_INIT(""), .a = -5},         {.text = HF_STR_INIT(""), .a = 3},
        {.text = HF_STR_INIT("a"), .a = INT64_MIN}, {.text = HF_STR_INIT("a"), .a = -1},
        {.text = HF_STR_INIT("a"), .a = 0},         {.text = HF_STR_INIT("a"), .a = INT64_MAX - 1},
        {.text = HF_STR_INIT("a\0"), .a = 1}, /* a byte 0 is a byte */
        {.text = HF_STR_INIT("ab"), .a = -7},       {.text = HF_STR_INIT("b"), .a = 0},
        {.text = HF_STR_INIT("\xff"), .a = 0}, /* bytes are compared without a sign */
        {.text = HF_STR_INIT("\xff\xff"), .a = 0},
    };
    enum { COUNT = sizeof keys / sizeof *keys };
    hf_write writes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        writes[i] = put(HF_TABLE_TASK, keys[(i * 5) % COUNT], HF_STR("v"));
    }
    commit_writes(p, writes, COUNT);
    hf_store_request scan = scan_of(p, arena, HF_TABLE_TASK);
    run(p, &scan);
    assert_int_equal(scan.row_count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(hf_key_compare(&scan.rows[i].key, &keys[i]), 0);
    }
    /* All runs of one name, the last first: how the current run is found. */
    scan.key = (hf_key){.text = HF_STR("a"), .a = INT64_MIN};
    scan.key_end = (hf_key){.text = HF_STR("a"), .a = INT64_MAX};
    scan.backwards = true;
    scan.row_max = 1;
    run(p, &scan);
    assert_int_equal(scan.row_count, 1);
    assert_int_equal(hf_key_compare(&scan.rows[0].key, &keys[5]), 0);
    assert_true(scan.more);
}

static void store_orders_keys_by_text_then_numbers(void **state)
{
    (void)state;
    on_each(orders_keys);
}

/* Keys of an entry: any bytes, up to a namespace of 200 and a key of 1,000 with separators. */
static void keeps_any_text(place *p, hf_arena *arena)
{
    enum { LEN = 1210, COUNT = 9 };
    static char high[LEN];
    static char low[LEN];
    memset(high, 0xff, LEN);
    memset(low, 0, LEN);
    const hf_str texts[COUNT] = {
        {low, 0},  {low, 1},        {low, LEN - 1}, {low, LEN}, HF_STR_INIT("users\0007"), HF_STR_INIT("users\0a\377"),
        {high, 1}, {high, LEN - 1}, {high, LEN},
    };
    const hf_table tables[] = {HF_TABLE_ENTRY, HF_TABLE_SPACE, HF_TABLE_ALIAS};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        hf_write writes[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            writes[i] = put(tables[t], (hf_key){.text = texts[i * 4 % COUNT]}, texts[i * 4 % COUNT]);
        }
        commit_writes(p, writes, COUNT);
        place_reopen(p);
        hf_store_request scan = scan_of(p, arena, tables[t]);
        for (int backwards = 0; backwards < 2; backwards++) {
            scan.backwards = backwards != 0;
            run(p, &scan);
            assert_int_equal(scan.row_count, COUNT);
            for (size_t i = 0; i < COUNT; i++) {
                hf_str text = texts[backwards != 0 ? COUNT - 1 - i : i];
                assert_true(hf_str_equal(scan.rows[i].key.text, text) && hf_str_equal(scan.rows[i].value, text));
            }
        }
        scan = (hf_store_request){.verb = HF_STORE_SCAN,
                                  .table = tables[t],
                                  .key = {.text = HF_STR("users\0")},
                                  .key_end = {.text = HF_STR("users\1")},
                                  .arena = arena};
        run(p, &scan);
        assert_int_equal(scan.row_count, 2);
        COMMIT(p, put(tables[t], (hf_key){.text = texts[8]}, HF_STR("new")),
               del_range(tables[t], (hf_key){.text = texts[2]}, (hf_key){.text = texts[7]}));
        assert_true(hf_str_equal(get(p, arena, tables[t], (hf_key){.text = texts[8]}).value, HF_STR("new")));
        scan = scan_of(p, arena, tables[t]);
        run(p, &scan);
        assert_int_equal(scan.row_count, 4);
    }
}

static void store_of_a_depot_keeps_keys_of_any_bytes(void **state)
{
    (void)state;
    on_each_of(&hf_depot_tables, keeps_any_text);
}

static void scans_history(place *p, hf_arena *arena)
{
    COMMIT(p, put(HF_TABLE_HISTORY, key_ab(7, 1), HF_STR("a")), put(HF_TABLE_HISTORY, key_ab(7, 51200), HF_STR("b")),
           put(HF_TABLE_HISTORY, key_ab(8, 0), HF_STR("c")), put(HF_TABLE_HISTORY, key_ab(6, 1048575), HF_STR("d")));
    const struct {
        hf_key key, end;
        const char *values;
    } cases[] = {
        {key_ab(7, 0), key_ab(8, 0), "ab"},
        {key_ab(7, INT64_MIN), key_ab(7, INT64_MAX), "ab"},
        {key_ab(7, 2), key_ab(8, 1), "bc"},
        {key_ab(6, 5), key_ab(7, INT64_MIN), "d"},
        {key_ab(6, INT64_MAX), key_ab(7, 2), "a"},
        {key_ab(-3, 5), key_ab(INT64_MAX, 0), "dabc"},
        {key_ab(9, 0), key_ab(INT64_MAX, INT64_MAX), ""},
        {key_ab(INT64_MIN, 0), key_ab(-1, 0), ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_store_request scan = {.verb = HF_STORE_SCAN,
                                 .table = HF_TABLE_HISTORY,
                                 .key = cases[i].key,
                                 .key_end = cases[i].end,
                                 .arena = arena};
        run(p, &scan);
        assert_int_equal(scan.row_count, strlen(cases[i].values));
        for (size_t r = 0; r < scan.row_count; r++) {
            assert_int_equal(scan.rows[r].value.data[0], cases[i].values[r]);
        }
    }
    assert_false(get(p, arena, HF_TABLE_HISTORY, key_ab(INT64_MAX - 1, 1)).found);
    assert_false(get(p, arena, HF_TABLE_HISTORY, key_ab(7, -1)).found);
    COMMIT(p, del(HF_TABLE_HISTORY, key_ab(-1, -1)), del_range(HF_TABLE_HISTORY, key_ab(7, 0), key_ab(8, 0)));
    hf_store_request scan = scan_of(p, arena, HF_TABLE_HISTORY);
    run(p, &scan);
    assert_int_equal(scan.row_count, 2);
}

static void store_scans_history_by_run_and_event(void **state)
{
    (void)state;
    on_each(scans_history);
}

/* ---- Refusals ------------------------------------------------------------------------------------------------------ */

static void refuses_numbers(place *p, hf_arena *arena)
{
    hf_write write = put(number_table(p), key_a(1), HF_STR("x"));
    assert_int_equal(commit_as(p, 0, &write, 1), HF_ERR_CONFLICT);
    assert_int_equal(commit_as(p, 2, &write, 1), HF_ERR_CONFLICT);
    assert_false(get(p, arena, number_table(p), key_a(1)).found);
    assert_int_equal(commit_as(p, 1, &write, 1), HF_OK);
    assert_int_equal(commit_as(p, 1, &write, 1), HF_ERR_CONFLICT);
    assert_int_equal(p->store->ops->last_commit(p->store), 1);
    p->commit = 1;
    /* Empty, with a journal, with the journal emptied: the number stays. */
    commit_writes(p, NULL, 0);
    place_reopen(p);
    assert_int_equal(p->store->ops->last_commit(p->store), 2);
    if (!hf_table_set_has(p->tables, HF_TABLE_JOURNAL)) {
        return;
    }
    COMMIT(p, put(HF_TABLE_JOURNAL, key_a(3), HF_STR("j")));
    COMMIT(p, put(HF_TABLE_JOURNAL, key_a(4), HF_STR("j")));
    place_reopen(p);
    assert_int_equal(p->store->ops->last_commit(p->store), 4);
    COMMIT(p, put(HF_TABLE_JOURNAL, key_a(5), HF_STR("j")),
           del_range(HF_TABLE_JOURNAL, key_a(INT64_MIN), hf_key_last()));
    place_reopen(p);
    assert_int_equal(p->store->ops->last_commit(p->store), 5);
    COMMIT(p, put(HF_TABLE_JOURNAL, key_a(6), HF_STR("j")), del_range(HF_TABLE_JOURNAL, key_a(0), key_a(6)));
    place_reopen(p);
    assert_int_equal(p->store->ops->last_commit(p->store), 6);
}

static void store_S4_commit_with_another_number_is_refused_and_numbers_stay(void **state)
{
    (void)state;
    on_each_set(refuses_numbers);
}

/* A table of the other set is not there: for a write, a read, a walk. */
static void refuses_strange_tables(place *p, hf_arena *arena)
{
    COMMIT(p, put(number_table(p), key_a(1), HF_STR("stays")));
    uint64_t before = hash_of(p);
    size_t refused = 0;
    for (int t = 0; t < HF_TABLE_COUNT; t++) {
        hf_table table = (hf_table)t;
        if (hf_table_set_has(p->tables, table)) {
            continue;
        }
        refused++;
        hf_write writes[] = {put(number_table(p), key_a(1), HF_STR("changed")),
                             put(table, sample_key(table, 0), sample_value(table, "v"))};
        assert_int_equal(commit_as(p, 2, writes, 2), HF_ERR_MISUSE);
        writes[1] = del_range(table, hf_key_first(), hf_key_last());
        assert_int_equal(commit_as(p, 2, writes, 2), HF_ERR_MISUSE);
        hf_store_request request = {.verb = HF_STORE_GET, .table = table, .arena = arena};
        hf_store_execute(p->store, &request);
        assert_int_equal(request.status, HF_ERR_MISUSE);
        assert_non_null(strstr(request.op.message, p->tables->is_called));
        request = scan_of(p, arena, table);
        hf_store_execute(p->store, &request);
        assert_int_equal(request.status, HF_ERR_MISUSE);
        hf_store_count count = {.table = table};
        request = (hf_store_request){.verb = HF_STORE_STATS, .count = &count};
        hf_store_execute(p->store, &request);
        assert_int_equal(request.status, HF_ERR_MISUSE);
    }
    assert_int_equal(refused, HF_TABLE_COUNT - p->tables->count);
    assert_int_equal(hash_of(p), before);
}

static void store_S5_commit_to_a_table_of_another_set_changes_nothing(void **state)
{
    (void)state;
    on_each_set(refuses_strange_tables);
}

static void sets_of_tables_are_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++) {
        const hf_table_set *set = SETS[i];
        uint32_t bits = 0;
        for (size_t t = 0; t < set->count; t++) {
            bits |= UINT32_C(1) << set->tables[t];
            assert_true(t == 0 || set->tables[t] > set->tables[t - 1]);
            assert_int_equal(hf_table_after(set, set->tables[t]),
                             t + 1 < set->count ? set->tables[t + 1] : HF_TABLE_COUNT);
        }
        assert_int_equal(bits, set->bits);
        assert_true(hf_table_set_has(set, HF_TABLE_META));
        assert_false(hf_table_set_has(set, HF_TABLE_COUNT) || hf_table_set_has(set, (hf_table)-1));
        assert_ptr_equal(hf_table_set_of_id(set->application_id), set);
    }
    assert_null(hf_table_set_of_id(0));
    assert_int_equal(HF_TABLE_SUMMARY, 10); /* records carry the numbers */
    assert_int_equal(HF_TABLE_ALIAS, 14);
}

static void refuses_bad_writes(place *p, hf_arena *arena)
{
    char *long_text = malloc(HF_KEY_TEXT_LEN_MAX + 1);
    memset(long_text, 'x', HF_KEY_TEXT_LEN_MAX + 1);
    hf_key longest = {.text = hf_str_of_len(long_text, HF_KEY_TEXT_LEN_MAX), .a = 1};
    hf_key too_long = {.text = hf_str_of_len(long_text, HF_KEY_TEXT_LEN_MAX + 1), .a = 1};
    COMMIT(p, put(HF_TABLE_RUN, key_a(1), HF_STR("stays")), put(HF_TABLE_TASK, longest, HF_STR("v")));
    uint64_t before = hash_of(p);
    const hf_write bad[] = {
        put(HF_TABLE_TASK, too_long, HF_STR("v")),
        put(HF_TABLE_RUN, key_ab(1, 2), HF_STR("v")),
        put(HF_TABLE_RUN, key_text_a("t", 2), HF_STR("v")),
        put(HF_TABLE_META, key_text_a("t", 2), HF_STR("v")),
        put(HF_TABLE_RUN, key_a(INT64_MAX), HF_STR("v")),
        put(HF_TABLE_DUE, key_ab(1, 2), HF_STR("v")),
        put(HF_TABLE_JOURNAL, key_a(3), HF_STR("v")),
        put(HF_TABLE_JOURNAL, key_a(0), HF_STR("v")),
        put((hf_table)HF_TABLE_COUNT, key_a(0), HF_STR("v")),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hf_write writes[] = {put(HF_TABLE_RUN, key_a(1), HF_STR("changed")), bad[i]};
        assert_int_equal(commit_as(p, 2, writes, 2), HF_ERR_MISUSE);
    }
    hf_store_request odd = {.verb = HF_STORE_GET, .table = (hf_table)99, .arena = arena};
    hf_store_execute(p->store, &odd);
    assert_int_equal(odd.status, HF_ERR_MISUSE);
    odd = (hf_store_request){.verb = (hf_store_verb)99};
    hf_store_execute(p->store, &odd);
    assert_int_equal(odd.status, HF_ERR_MISUSE);
    assert_int_equal(hash_of(p), before);
    assert_true(get(p, arena, HF_TABLE_TASK, longest).found);
    free(long_text);
}

static void store_S5_commit_with_a_bad_write_changes_nothing(void **state)
{
    (void)state;
    on_each(refuses_bad_writes);
}

/* ---- Figures ------------------------------------------------------------------------------------------------------- */

static void counts(place *p, hf_arena *arena)
{
    (void)arena;
    COMMIT(p, put(HF_TABLE_RUN, key_a(1), HF_STR("x")), put(HF_TABLE_RUN, key_a(2), HF_STR("x")),
           put(HF_TABLE_DUE, key_ab(9, 2), HF_STR("")));
    COMMIT(p, del(HF_TABLE_RUN, key_a(1)));
    hf_store_count count = {0};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &count};
    run(p, &stats);
    assert_int_equal(stats.stats.commits, 2);
    assert_int_equal(stats.stats.rows[HF_TABLE_RUN], 1);
    assert_int_equal(stats.stats.rows[HF_TABLE_DUE], 1);
    assert_int_equal(stats.stats.rows[HF_TABLE_META], 0);
    hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT, .force = true};
    run(p, &checkpoint);
    run(p, &checkpoint);
    run(p, &stats);
    assert_int_equal(stats.stats.log_len, 0);
}

static void store_counts_commits_and_rows(void **state)
{
    (void)state;
    on_each(counts);
}

static void counts_depot(place *p, hf_arena *arena)
{
    (void)arena;
    enum { ROWS = 700 };
    for (int i = 0; i < ROWS; i++) {
        char text[16];
        hf_key key = {.text = hf_str_of_len(text, (size_t)snprintf(text, sizeof text, "k%d", i))};
        COMMIT(p, put(HF_TABLE_ENTRY, key, HF_STR("x")), put(HF_TABLE_PENDING, key_a(i), HF_STR("x")),
               put(HF_TABLE_ALIAS, key, HF_STR("x")));
    }
    hf_store_count count = {0};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &count};
    do {
        run(p, &stats);
    } while (stats.more);
    const uint64_t wanted[HF_TABLE_COUNT] = {
        [HF_TABLE_ENTRY] = ROWS, [HF_TABLE_PENDING] = ROWS, [HF_TABLE_ALIAS] = ROWS};
    assert_memory_equal(stats.stats.rows, wanted, sizeof wanted);
    assert_true(strcmp(p->kind, "memory") == 0 || count.table == HF_TABLE_COUNT);
}

static void store_of_a_depot_counts_its_rows(void **state)
{
    (void)state;
    on_each_of(&hf_depot_tables, counts_depot);
}

/* ---- Commits that are not synced ------------------------------------------------------------------------------------- */

static void takes_unsynced(place *p, hf_arena *arena)
{
    for (int i = 1; i <= 20; i++) {
        hf_write write = put(text_table(p), key_text("k"), hf_str_of_len("12345678901234567890", (size_t)i));
        commit_writes_with(p, &write, 1, i % 4 != 0);
        assert_int_equal(get(p, arena, text_table(p), key_text("k")).value.len, i); /* store-S3 */
        assert_int_equal(p->store->ops->last_commit(p->store), i);                  /* store-S4 */
        if (i % 7 == 0) {
            place_reopen(p); /* closing keeps them */
            assert_int_equal(get(p, arena, text_table(p), key_text("k")).value.len, i);
            assert_int_equal(p->store->ops->last_commit(p->store), i);
        }
    }
}

static void store_S3_S4_hold_for_unsynced_commits(void **state)
{
    (void)state;
    on_each_set(takes_unsynced);
}

/* A few at a time, so that commits come in between; keys of every shape, also below zero. */
static void counts_in_steps(place *p, hf_arena *arena)
{
    (void)arena;
    enum { ROWS = 1500 };
    for (int i = 0; i < ROWS; i++) {
        char text[16];
        hf_key task = {.text = hf_str_of_len(text, (size_t)snprintf(text, sizeof text, "q%d", i % 7)), .a = i + 1};
        COMMIT(p, put(HF_TABLE_RUN, key_a(i + 1), HF_STR("x")), put(HF_TABLE_HISTORY, key_ab(1, i + 1), HF_STR("x")),
               put(HF_TABLE_NAME, key_ab(i - ROWS / 2, 1), HF_STR("")), put(HF_TABLE_TASK, task, HF_STR("x")));
    }
    hf_store_count count = {0};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &count};
    uint64_t counted = 0;
    unsigned steps = 0;
    do {
        run(p, &stats);
        uint64_t sum = 0;
        for (int table = 0; table < HF_TABLE_COUNT; table++) {
            sum += stats.stats.rows[table];
        }
        assert_true(strcmp(p->kind, "memory") == 0 || sum - counted <= 512);
        counted = sum;
        steps++;
        COMMIT(p, put(HF_TABLE_META, key_text("a"), HF_STR("b"))); /* it is not in the way */
    } while (stats.more);
    assert_int_equal(stats.stats.rows[HF_TABLE_RUN], ROWS);
    assert_int_equal(stats.stats.rows[HF_TABLE_HISTORY], ROWS);
    assert_int_equal(stats.stats.rows[HF_TABLE_NAME], ROWS);
    assert_int_equal(stats.stats.rows[HF_TABLE_TASK], ROWS);
    assert_int_equal(steps, strcmp(p->kind, "memory") == 0 ? 1 : 4 * ROWS / 512 + 1);
}

static void store_counts_rows_a_few_at_a_time(void **state)
{
    (void)state;
    on_each(counts_in_steps);
}

/* ---- Twins --------------------------------------------------------------------------------------------------------- */

typedef struct twin_plan {
    const hf_table_set *tables;
    hf_rng rng;
    uint64_t commit;
    char text[64][24]; /* of keys */
    char bytes[3000];  /* of values */
} twin_plan;

static hf_key random_key(twin_plan *plan, hf_table table, unsigned slot)
{
    const hf_table_info *info = hf_table_info_of(table);
    hf_rng *rng = &plan->rng;
    hf_key key = {0};
    if (info->has_text) {
        int len = snprintf(plan->text[slot], sizeof plan->text[slot], "%c%d", (char)('a' + hf_rng_below(rng, 3)),
                           (int)hf_rng_below(rng, 60));
        key.text = hf_str_of_len(plan->text[slot], (size_t)len);
    }
    key.a = table == HF_TABLE_JOURNAL
                ? (int64_t)(plan->commit - hf_rng_below(rng, plan->commit < 50 ? plan->commit : 50))
            : info->has_a ? (int64_t)hf_rng_below(rng, 100)
                          : 0;
    key.b = info->has_b ? (int64_t)hf_rng_below(rng, 10) : 0;
    return key;
}

static hf_write random_write(twin_plan *plan, unsigned slot)
{
    hf_rng *rng = &plan->rng;
    hf_table table = plan->tables->tables[hf_rng_below(rng, plan->tables->count)];
    hf_write write = {.table = table, .key = random_key(plan, table, 2 * slot)};
    uint64_t kind = hf_rng_below(rng, 20);
    write.kind = kind < 15 ? HF_WRITE_PUT : kind < 19 ? HF_WRITE_DELETE : HF_WRITE_DELETE_RANGE;
    if (write.kind == HF_WRITE_DELETE_RANGE) {
        write.key_end = random_key(plan, table, 2 * slot + 1);
    }
    if (write.kind == HF_WRITE_PUT && hf_table_info_of(table)->has_value) {
        size_t len = hf_rng_below(rng, hf_rng_below(rng, 8) == 0 ? sizeof plan->bytes : 40);
        write.value = hf_str_of_len(plan->bytes + hf_rng_below(rng, sizeof plan->bytes - len + 1), len);
    }
    return write;
}

static bool rows_equal(const hf_store_request *a, const hf_store_request *b)
{
    bool equal = a->row_count == b->row_count && a->more == b->more;
    for (size_t i = 0; equal && i < a->row_count; i++) {
        equal =
            hf_key_compare(&a->rows[i].key, &b->rows[i].key) == 0 && hf_str_equal(a->rows[i].value, b->rows[i].value);
    }
    return equal;
}

static void compare_scans(twin_plan *plan, place *a, place *b, hf_arena *arena)
{
    hf_table table = plan->tables->tables[hf_rng_below(&plan->rng, plan->tables->count)];
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = table,
        .key = random_key(plan, table, 0),
        .key_end = random_key(plan, table, 1),
        .backwards = hf_rng_below(&plan->rng, 2) == 0,
        .row_max = hf_rng_below(&plan->rng, 30),
        .len_max = hf_rng_below(&plan->rng, 500),
        .arena = arena,
    };
    hf_store_request other = scan;
    run(a, &scan);
    run(b, &other);
    assert_true(rows_equal(&scan, &other));
    hf_arena_reset(arena);
}

static void compare_twins(const hf_table_set *tables)
{
    enum { OPS = 50000, WRITES_MAX = 32 };
    twin_plan plan = {.tables = tables, .rng = {20}};
    for (size_t i = 0; i < sizeof plan.bytes; i++) {
        plan.bytes[i] = (char)hf_rng_next(&plan.rng);
    }
    place a = place_new_of("memory", tables);
    place b = place_new_of("sqlite", tables);
    hf_arena arena;
    hf_arena_init(&arena, HEAP);
    hf_write writes[WRITES_MAX];
    for (size_t ops = 0, round = 0; ops < OPS / hf_test_scale(); round++) {
        size_t count = 1 + hf_rng_below(&plan.rng, WRITES_MAX - 1);
        plan.commit = a.commit + 1;
        for (unsigned i = 0; i < count; i++) {
            writes[i] = random_write(&plan, i);
        }
        commit_writes_with(&a, writes, count, round % 3 == 0);
        commit_writes_with(&b, writes, count, round % 3 == 0);
        compare_scans(&plan, &a, &b, &arena);
        if (round % 50 == 0) {
            assert_int_equal(hash_of(&a), hash_of(&b));
        }
        if (round % 400 == 7) {
            place_reopen(&b);
        }
        ops += count;
    }
    assert_int_equal(hash_of(&a), hash_of(&b));
    hf_arena_deinit(&arena);
    place_free(&a);
    place_free(&b);
}

static void stores_that_get_the_same_hold_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++) {
        compare_twins(SETS[i]);
    }
}

/* ---- Memory -------------------------------------------------------------------------------------------------------- */

typedef struct counted {
    int live; /* blocks */
    int left; /* allocations until one fails; negative = never */
} counted;

static void *counted_allocate(void *state, size_t len, size_t align)
{
    counted *c = state;
    (void)align;
    if (c->left == 0) {
        return NULL;
    }
    c->left--;
    c->live++;
    return malloc(len);
}

static void counted_release(void *state, void *ptr, size_t len)
{
    (void)len;
    ((counted *)state)->live--;
    free(ptr);
}

static void store_S5_memory_store_without_memory_changes_nothing(void **state)
{
    (void)state;
    counted c = {0, -1};
    hf_op op;
    hf_op_init(&op);
    place p = {.kind = "memory"};
    assert_int_equal(hf_mem_store_open(&op, (hf_allocator){counted_allocate, counted_release, &c}, NULL, &p.store),
                     HF_OK);
    COMMIT(&p, put(HF_TABLE_RUN, key_a(1), HF_STR("old")), put(HF_TABLE_RUN, key_a(2), HF_STR("old")));
    uint64_t before = hash_of(&p);
    const hf_write writes[] = {
        put(HF_TABLE_RUN, key_a(1), HF_STR("new")),
        del(HF_TABLE_RUN, key_a(2)),
        put(HF_TABLE_RUN, key_a(3), HF_STR("new")),
        put(HF_TABLE_META, key_text("k"), HF_STR("new")),
    };
    for (int left = 0; left < 3; left++) {
        c.left = left;
        assert_int_equal(commit_as(&p, 2, writes, 4), HF_ERR_NOMEM);
        assert_int_equal(c.live, 3);
        assert_int_equal(hash_of(&p), before);
    }
    c.left = 3;
    assert_int_equal(commit_as(&p, 2, writes, 4), HF_OK);
    hf_store_close(p.store);
    assert_int_equal(c.live, 0);
    c.left = 0;
    assert_int_equal(hf_mem_store_open(&op, (hf_allocator){counted_allocate, counted_release, &c}, NULL, &p.store),
                     HF_ERR_NOMEM);
}

static void reads_without_memory(place *p, hf_arena *unused)
{
    hf_table table = number_table(p);
    (void)unused;
    COMMIT(p, put(table, key_a(1), HF_STR("value")), put(table, key_a(2), HF_STR("value")));
    counted c = {0, 0};
    hf_arena arena;
    hf_arena_init(&arena, (hf_allocator){counted_allocate, counted_release, &c});
    hf_store_request request = {.verb = HF_STORE_GET, .table = table, .key = key_a(1), .arena = &arena};
    hf_store_execute(p->store, &request);
    assert_int_equal(request.status, HF_ERR_NOMEM);
    assert_false(request.found);
    hf_arena_reset(&arena);
    request = scan_of(p, &arena, table);
    hf_store_execute(p->store, &request);
    assert_int_equal(request.status, HF_ERR_NOMEM);
    hf_arena_deinit(&arena);
    hf_arena_init(&arena, HEAP);
    assert_true(get(p, &arena, table, key_a(1)).found); /* the store itself is well */
    hf_arena_deinit(&arena);
}

static void store_whose_reader_has_no_memory_says_so(void **state)
{
    (void)state;
    on_each_set(reads_without_memory);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(store_puts_gets_and_deletes_in_each_table),
    cmocka_unit_test(store_S1_writes_of_a_commit_apply_in_their_order),
    cmocka_unit_test(store_keeps_values_of_two_mebibytes),
    cmocka_unit_test(store_scans_and_deletes_ranges_with_limits_in_both_directions),
    cmocka_unit_test(store_orders_keys_by_text_then_numbers),
    cmocka_unit_test(store_of_a_depot_keeps_keys_of_any_bytes),
    cmocka_unit_test(store_scans_history_by_run_and_event),
    cmocka_unit_test(store_S4_commit_with_another_number_is_refused_and_numbers_stay),
    cmocka_unit_test(store_S5_commit_with_a_bad_write_changes_nothing),
    cmocka_unit_test(store_S5_commit_to_a_table_of_another_set_changes_nothing),
    cmocka_unit_test(sets_of_tables_are_what_they_say),
    cmocka_unit_test(store_counts_commits_and_rows),
    cmocka_unit_test(store_of_a_depot_counts_its_rows),
    cmocka_unit_test(store_S3_S4_hold_for_unsynced_commits),
    cmocka_unit_test(store_counts_rows_a_few_at_a_time),
    cmocka_unit_test(stores_that_get_the_same_hold_the_same),
    cmocka_unit_test(store_S5_memory_store_without_memory_changes_nothing),
    cmocka_unit_test(store_whose_reader_has_no_memory_says_so),
};

int main(int argc, char **argv)
{
    return hf_test_main("store", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
