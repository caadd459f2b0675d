/* hf_store_ask and hf_store_each_row, on every backend. */
#include "unit/store/backends.h"

#include <stdio.h>

#define ROW_COUNT 40
#define LONG_LEN (HF_STORE_PAGE_LEN / 8) /* of a value: some rows of a page */

static char long_value[2 * HF_STORE_PAGE_LEN];

typedef struct seen {
    hf_table table;
    size_t count;
    hf_status answer; /* after `stop_at` rows; HF_OK = go on */
    size_t stop_at;   /* rows; 0 = never */
    uint64_t len;     /* bytes of all values */
    hf_key last;      /* of the row before; its text in `text` */
    char text[64];    /* of `last` */
    place *asks;      /* the visitor reads the same row by itself; NULL = it does not */
    bool is_in_order; /* so far */
} seen;

static hf_status note(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    seen *s = arg;
    s->is_in_order = s->is_in_order && (s->count == 0 || hf_key_compare(&s->last, &row->key) < 0);
    hf_assert(row->key.text.len < sizeof s->text);
    s->last = row->key;
    if (row->key.text.len > 0) {
        memcpy(s->text, row->key.text.data, row->key.text.len);
        s->last.text.data = s->text;
    }
    s->len += row->value.len;
    s->count++;
    if (s->asks != NULL) {
        hf_store_request request = {.verb = HF_STORE_GET, .table = s->table, .key = row->key, .arena = arena};
        HF_TRY(hf_store_ask(op, s->asks->store, &request));
        s->is_in_order = s->is_in_order && request.found && hf_str_equal(request.value, row->value);
    }
    return s->stop_at > 0 && s->count == s->stop_at ? hf_fail(op, s->answer, "enough") : HF_OK;
}

static hf_status walk(place *p, hf_table table, const hf_key *from, const hf_key *to, seen *s)
{
    hf_op op;
    hf_op_init(&op);
    s->table = table;
    s->is_in_order = true;
    hf_status status = hf_store_each_row(&op, p->store, HEAP, table, from, to, note, s);
    assert_true(status == HF_OK || op.message[0] != '\0');
    assert_true(s->is_in_order);
    return status;
}

static hf_key nth_key(hf_table table, int n, char text[16])
{
    const hf_table_info *info = hf_table_info_of(table);
    (void)snprintf(text, 16, "key-%03d", info->has_a ? n / 7 : n);
    return (hf_key){
        .text = info->has_text ? hf_str_of(text) : (hf_str){NULL, 0},
        .a = !info->has_a  ? 0
             : info->has_b ? 1 + n / 7
                           : 1 + n,
        .b = info->has_b ? n : 0,
    };
}

/* The journal wants numbers of commits that exist: row n is written by commit n. */
static void fill(place *p, hf_table table, size_t value_len)
{
    char text[16];
    for (int n = 0; n < ROW_COUNT; n++) {
        hf_str value = hf_str_of_len(long_value, hf_table_info_of(table)->has_value ? value_len : 0);
        COMMIT(p, put(table, nth_key(table, n, text), value));
    }
}

static void each_kind_of(const hf_table_set *tables, void (*test)(place *p))
{
    for (size_t i = 0; i < HF_COUNT_OF(KINDS); i++) {
        place p = place_new_of(KINDS[i], tables);
        test(&p);
        place_free(&p);
    }
}

static void each_kind(void (*test)(place *p))
{
    each_kind_of(&hf_engine_tables, test);
}

static void walk_tables(place *p)
{
    for (size_t i = 0; i < p->tables->count; i++) {
        hf_table table = p->tables->tables[i];
        if (table == HF_TABLE_JOURNAL) {
            continue;
        }
        seen none = {0};
        assert_int_equal(walk(p, table, NULL, NULL, &none), HF_OK);
        assert_int_equal(none.count, 0);
        fill(p, table, LONG_LEN);
        seen all = {0};
        assert_int_equal(walk(p, table, NULL, NULL, &all), HF_OK);
        assert_int_equal(all.count, ROW_COUNT);
        char texts[2][16];
        hf_key from = nth_key(table, 10, texts[0]);
        hf_key to = nth_key(table, 31, texts[1]);
        seen some = {.asks = p};
        assert_int_equal(walk(p, table, &from, &to, &some), HF_OK);
        assert_int_equal(some.count, 21);
        COMMIT(p, del_range(table, hf_key_first(), hf_key_last()));
    }
}

static void walk_visits_each_row_of_each_table_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(SETS); i++) {
        each_kind_of(SETS[i], walk_tables);
    }
}

static void walk_journal(place *p)
{
    fill(p, HF_TABLE_JOURNAL, LONG_LEN);
    seen all = {.asks = p};
    assert_int_equal(walk(p, HF_TABLE_JOURNAL, NULL, NULL, &all), HF_OK);
    assert_int_equal(all.count, ROW_COUNT);
    assert_int_equal(all.len, (uint64_t)ROW_COUNT * LONG_LEN);
}

static void walk_reads_the_journal(void **state)
{
    (void)state;
    each_kind(walk_journal);
}

static void walk_long_rows(place *p)
{
    hf_str value = hf_str_of_len(long_value, sizeof long_value);
    COMMIT(p, put(HF_TABLE_META, key_text("a"), value), put(HF_TABLE_META, key_text("b"), value),
           put(HF_TABLE_META, key_text("c"), HF_STR("short")));
    seen all = {0};
    assert_int_equal(walk(p, HF_TABLE_META, NULL, NULL, &all), HF_OK);
    assert_int_equal(all.count, 3);
    assert_int_equal(all.len, 2 * sizeof long_value + 5);
}

static void walk_gets_past_rows_longer_than_a_page(void **state)
{
    (void)state;
    each_kind(walk_long_rows);
}

static void walk_stops(place *p)
{
    fill(p, HF_TABLE_RUN, LONG_LEN);
    for (size_t n = 1; n <= ROW_COUNT; n += 13) {
        seen some = {.stop_at = n, .answer = HF_ERR_CANCELED};
        assert_int_equal(walk(p, HF_TABLE_RUN, NULL, NULL, &some), HF_ERR_CANCELED);
        assert_int_equal(some.count, n);
    }
}

static void walk_ends_where_the_visitor_says_so(void **state)
{
    (void)state;
    each_kind(walk_stops);
}

static void ask_badly(place *p)
{
    hf_op op;
    hf_op_init(&op);
    hf_store_request request = {.verb = HF_STORE_COMMIT, .commit = 7};
    assert_int_equal(hf_store_ask(&op, p->store, &request), HF_ERR_CONFLICT);
    assert_non_null(strstr(op.message, "commit 7"));
    hf_op_init(&op);
    seen none = {0};
    assert_int_equal(hf_store_each_row(&op, p->store, HEAP, HF_TABLE_COUNT, NULL, NULL, note, &none), HF_ERR_MISUSE);
    assert_int_equal(none.count, 0);
}

static void ask_gives_the_sentence_to_its_caller(void **state)
{
    (void)state;
    each_kind(ask_badly);
}

static void *no_memory(void *state, size_t len, size_t align)
{
    int *left = state;
    return --*left < 0 ? NULL : HEAP.allocate(NULL, len, align);
}

static void walk_without_memory(place *p)
{
    fill(p, HF_TABLE_TASK, LONG_LEN);
    hf_op op;
    hf_status status = HF_ERR_NOMEM;
    int allocations = 0;
    for (; status != HF_OK; allocations++) {
        int left = allocations;
        seen some = {.is_in_order = true};
        hf_op_init(&op);
        status = hf_store_each_row(&op, p->store, (hf_allocator){no_memory, heap_release, &left}, HF_TABLE_TASK, NULL,
                                   NULL, note, &some);
        assert_true(status == HF_OK || status == HF_ERR_NOMEM);
        assert_true(status != HF_OK || some.count == ROW_COUNT);
    }
    assert_true(allocations > 3);
}

static void walk_without_memory_says_so(void **state)
{
    (void)state;
    each_kind(walk_without_memory);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(walk_visits_each_row_of_each_table_in_order),
    cmocka_unit_test(walk_reads_the_journal),
    cmocka_unit_test(walk_gets_past_rows_longer_than_a_page),
    cmocka_unit_test(walk_ends_where_the_visitor_says_so),
    cmocka_unit_test(ask_gives_the_sentence_to_its_caller),
    cmocka_unit_test(walk_without_memory_says_so),
};

int main(int argc, char **argv)
{
    return hf_test_main("walk", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
