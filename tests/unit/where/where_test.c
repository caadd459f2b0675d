/* The filter language: what fits, what is refused and where, orders, and the evaluator's twin. */
#include "unit/where/naive.h"
#include "unit/where/queries.h"

#include "support/engine_rig.h"

#include <time.h>

#define HOUR_NS INT64_C(3600000000000)
#define FEB_29 INT64_C(1709208000000000000) /* 2024-02-29T12:00:00Z */

static hf_arena arena;

static int setup(void **state)
{
    (void)state;
    hf_arena_init(&arena, hf_rig_heap);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hf_arena_deinit(&arena);
    return 0;
}

static void fill(attr_row rows[4])
{
    static const char *const IDS[] = {"order-1", "order-2", "job:3", "it's"};
    static const char *const RUNS[] = {"r1", "r2", "r3", "r4"};
    static const char *const TYPES[] = {"Pay", "Pay", "Ship", ""};
    static const int STATUSES[] = {2, 1, 3, 7};
    static const int64_t STARTS[] = {FEB_29, FEB_29 + 12 * HOUR_NS, INT64_C(1672531200000000000), FEB_29 + 500000000};
    memset(rows, 0, 4 * sizeof *rows);
    for (int i = 0; i < 4; i++) {
        rows[i].system[HF_ATTR_WORKFLOW_ID] = of_text(IDS[i]);
        rows[i].system[HF_ATTR_RUN_ID] = of_text(RUNS[i]);
        rows[i].system[HF_ATTR_WORKFLOW_TYPE] = of_text(TYPES[i]);
        rows[i].system[HF_ATTR_EXECUTION_STATUS] = of_number(STATUSES[i]);
        rows[i].system[HF_ATTR_START_TIME] = of_number(STARTS[i]);
    }
    attr_row *a = &rows[0];
    attr_row *b = &rows[1];
    attr_row *c = &rows[2];
    a->system[HF_ATTR_TASK_QUEUE] = b->system[HF_ATTR_TASK_QUEUE] = of_text("q");
    c->system[HF_ATTR_TASK_QUEUE] = of_text("q2");
    a->system[HF_ATTR_CLOSE_TIME] = of_number(FEB_29 + HOUR_NS * 3 / 2);
    c->system[HF_ATTR_CLOSE_TIME] = of_number(STARTS[2] + 1000000000);
    a->system[HF_ATTR_EXECUTION_DURATION] = of_number(HOUR_NS * 3 / 2);
    c->system[HF_ATTR_EXECUTION_DURATION] = of_number(1000000000);
    a->system[HF_ATTR_HISTORY_LENGTH] = of_number(11);
    b->system[HF_ATTR_HISTORY_LENGTH] = of_number(3);
    c->system[HF_ATTR_HISTORY_LENGTH] = of_number(5);
    b->system[HF_ATTR_PARENT_WORKFLOW_ID] = of_text("p");
    a->custom[0] = of_text("red");
    b->custom[0] = of_text("blue");
    a->custom[1] = of_number(7);
    b->custom[1] = of_number(-1);
    a->custom[2] = (hf_attr_value){.is_set = true, .real = 1.5};
    c->custom[2] = (hf_attr_value){.is_set = true, .real = -0.5};
    a->custom[3] = of_number(1);
    b->custom[3] = of_number(0);
    a->custom[4] = of_number(FEB_29 + 500000000);
    a->custom[5] = of_text("Pay it now");
    b->custom[5] = of_text("never");
    a->items[0] = HF_STR("x");
    a->items[1] = b->items[0] = HF_STR("y");
    a->custom[6] = (hf_attr_value){.is_set = true, .items = a->items, .item_count = 2};
    b->custom[6] = (hf_attr_value){.is_set = true, .items = b->items, .item_count = 1};
    c->custom[6] = (hf_attr_value){.is_set = true};
    c->custom[7] = of_text("odd");
}

static hf_status parse(const char *text, hf_where *ret_where, hf_op *op, size_t *ret_column)
{
    hf_op_init(op);
    hf_arena_reset(&arena);
    return hf_where_parse(op, hf_str_of(text), HF_WHERE_MAY_ORDER | HF_WHERE_MAY_GROUP, custom_find, NULL, &arena,
                          ret_where, ret_column);
}

static void where_F1_filters_fit_rows(void **state)
{
    attr_row rows[4];
    (void)state;
    fill(rows);
    assert_true(HF_COUNT_OF(QUERIES) >= 150);
    for (size_t i = 0; i < HF_COUNT_OF(QUERIES); i++) {
        hf_op op;
        hf_where where;
        size_t column = 0;
        char fits[5] = "";
        print_message("%s\n", QUERIES[i].text);
        if (parse(QUERIES[i].text, &where, &op, &column) != HF_OK) {
            fail_msg("%s", op.message);
        }
        for (int n = 0; n < 4; n++) {
            if (hf_where_fits(&where, row_get, &rows[n])) {
                fits[strlen(fits)] = (char)('a' + n);
            }
        }
        assert_string_equal(fits, QUERIES[i].rows);
    }
}

static const struct {
    const char *text;
    size_t column;
    const char *says; /* a part of the sentence */
} BAD[] = {
    {"Foo = 1", 1, "Foo is not a search attribute"},
    {"RunId = 'r1' AND workflowid = 'x'", 18, "workflowid is not a search attribute"},
    {"`No such` = 'x'", 1, "No such is not a search attribute"},
    {"RunId", 6, "an operator must follow"},
    {"RunId 'r1'", 7, "an operator must follow"},
    {"RunId LIKE 'r%'", 7, "an operator must follow"},
    {"RunId NOT = 'x'", 11, "an operator must follow"},
    {"RunId =", 8, "a value for RunId is missing"},
    {"RunId = = 'x'", 9, "a text between quotes"},
    {"RunId = r1", 9, "RunId is a Keyword"},
    {"RunId = 12", 9, "not with 12"},
    {"RunId = 'r1", 9, "has no end"},
    {"RunId = \"r1'", 9, "has no end"},
    {"RunId = 'r1\\'", 9, "has no end"},
    {"`RunId = 'r1'", 1, "the name that begins here has no end"},
    {"RunId = 'r1' 'r2'", 14, "the filter has ended before"},
    {"RunId = 'r1' RunId = 'r2'", 14, "the filter has ended before RunId"},
    {"RunId = 'r1';", 13, "nothing begins with ;"},
    {"RunId = 'r1' \x01", 14, "the byte 0x01"},
    {"RunId = 'r1' AND", 17, "the filter ends where"},
    {"AND RunId = 'r1'", 1, "AND is not a search attribute"},
    {"RunId = 'r1' OR OR RunId = 'r2'", 17, "OR is not a search attribute"},
    {"(RunId = 'r1'", 14, "opened at column 1"},
    {"RunId = 'r1')", 13, "the filter has ended before )"},
    {"()", 2, "the name of an attribute must be here"},
    {"NOT", 4, "the filter ends where"},
    {"RunId IN", 9, "a ( is missing"},
    {"RunId IN 'r1'", 10, "a ( is missing"},
    {"RunId IN ()", 11, "a text between quotes"},
    {"RunId IN ('r1'", 15, "a ) or , is missing"},
    {"RunId IN ('r1',)", 16, "a text between quotes"},
    {"RunId IN ('r1' 'r2')", 16, "a ) or , is missing"},
    {"RunId IN ('r1', 2)", 17, "not with 2"},
    {"RunId BETWEEN 'a'", 18, "AND must follow the first value"},
    {"RunId BETWEEN 'a', 'b'", 18, "AND must follow the first value"},
    {"RunId BETWEEN 'a' AND", 22, "a value for RunId is missing"},
    {"RunId IS", 9, "NULL must follow IS"},
    {"RunId IS NOT", 13, "NULL must follow IS NOT"},
    {"RunId IS 'x'", 10, "NULL must follow IS"},
    {"RunId STARTS_WITH", 18, "a value for RunId is missing"},
    {"HistoryLength = 'x'", 17, "a whole number"},
    {"HistoryLength = 1.5", 17, "a whole number"},
    {"HistoryLength = 12abc", 17, "not with 12abc"},
    {"HistoryLength = 9223372036854775808", 17, "a whole number of 64 bits"},
    {"HistoryLength = -", 17, "a whole number"},
    {"HistoryLength STARTS_WITH 1", 15, "STARTS_WITH is for Keywords"},
    {"StartTime = '2024-02-30T00:00:00Z'", 13, "a time like"},
    {"StartTime = '2023-02-29T00:00:00Z'", 13, "a time like"},
    {"StartTime = '2024-02-29'", 13, "a time like"},
    {"StartTime = '2024-02-29T24:00:00Z'", 13, "a time like"},
    {"StartTime = '2024-02-29T12:00:00'", 13, "a time like"},
    {"StartTime = '2024-02-29T12:00:00.Z'", 13, "a time like"},
    {"StartTime = '2024-02-29T12:00:00+25:00'", 13, "a time like"},
    {"StartTime = '2024-02-29T12:00:00Zx'", 13, "a time like"},
    {"StartTime = true", 13, "a time like"},
    {"ExecutionDuration = '5'", 21, "a duration like"},
    {"ExecutionDuration = ''", 21, "a duration like"},
    {"ExecutionDuration = '1h 30m'", 21, "a duration like"},
    {"ExecutionDuration = '99999999999999h'", 21, "a duration like"},
    {"ExecutionDuration = '01:60:00'", 21, "a duration like"},
    {"ExecutionStatus = 'running'", 19, "Running, Completed"},
    {"ExecutionStatus = 0", 19, "Running, Completed"},
    {"ExecutionStatus = 99", 19, "Running, Completed"},
    {"ExecutionStatus < 'Running'", 17, "it has = != IN and IS NULL"},
    {"ExecutionStatus BETWEEN 1 AND 2", 17, "it has = != IN and IS NULL"},
    {"CustomBool = 'true'", 14, "true or false"},
    {"CustomBool = 1", 14, "true or false"},
    {"CustomBool > false", 12, "it has = != and IS NULL"},
    {"CustomBool IN (true)", 12, "it has = != and IS NULL"},
    {"CustomDouble = nan", 16, "a number"},
    {"CustomDouble = 0x10", 16, "a number"},
    {"CustomDouble = 1e999", 16, "a number"},
    {"CustomDouble = 1.2.3", 16, "a number"},
    {"CustomDouble = .", 16, "a number"},
    {"CustomText IN ('a')", 12, "it has = != and IS NULL"},
    {"CustomText STARTS_WITH 'a'", 12, "it has = != and IS NULL"},
    {"CustomList < 'a'", 12, "it has = != IN and IS NULL"},
    {"CustomList STARTS_WITH 'a'", 12, "it has = != IN and IS NULL"},
    {"ORDER", 6, "BY must follow ORDER"},
    {"ORDER BY", 9, "the filter ends where"},
    {"ORDER BY Foo", 10, "Foo is not a search attribute"},
    {"ORDER BY CustomText", 10, "cannot be ordered by CustomText"},
    {"ORDER BY CustomList DESC", 10, "cannot be ordered by CustomList"},
    {"ORDER BY RunId,", 16, "the filter ends where"},
    {"ORDER BY RunId UP", 16, "the filter has ended before UP"},
    {"ORDER BY RunId RunId = 'r1'", 16, "the filter has ended before RunId"},
    {"ORDER BY RunId,RunId,RunId,RunId,RunId,RunId,RunId,RunId,RunId", 58, "at most 8"},
    {"GROUP ExecutionStatus", 7, "BY must follow GROUP"},
    {"GROUP BY WorkflowType", 10, "ExecutionStatus only"},
    {"ORDER BY RunId GROUP BY ExecutionStatus", 16, "the filter has ended before GROUP"},
    {"LIMIT 5", 1, "LIMIT is not a search attribute"},
};

static void what_is_wrong_is_named_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(BAD); i++) {
        hf_op op;
        hf_where where;
        size_t column = 0;
        char place[40];
        print_message("%s\n", BAD[i].text);
        assert_int_equal(parse(BAD[i].text, &where, &op, &column), HF_ERR_INVALID);
        assert_null(where.root);
        if (strstr(op.message, BAD[i].says) == NULL || column != BAD[i].column) {
            fail_msg("column %zu: %s", column, op.message);
        }
        (void)snprintf(place, sizeof place, "at column %zu: ", column);
        assert_non_null(strstr(op.message, place));
    }
}

static void groups_and_orders_are_for_their_callers(void **state)
{
    hf_op op;
    hf_where where;
    size_t column = 0;
    (void)state;
    assert_int_equal(parse("RunId = 'r1' GROUP BY ExecutionStatus", &where, &op, &column), HF_OK);
    assert_true(where.is_grouped && where.root != NULL);
    hf_op_init(&op);
    assert_int_equal(hf_where_parse(&op, HF_STR("GROUP BY ExecutionStatus"), HF_WHERE_MAY_ORDER, NULL, NULL, &arena,
                                    &where, &column),
                     HF_ERR_INVALID);
    assert_non_null(strstr(op.message, "GROUP BY is for counts"));
    assert_int_equal(
        hf_where_parse(&op, HF_STR("ORDER BY RunId"), HF_WHERE_MAY_GROUP, NULL, NULL, &arena, &where, &column),
        HF_ERR_INVALID);
    assert_non_null(strstr(op.message, "ORDER BY is for lists"));
    assert_int_equal(hf_where_parse(&op, HF_STR("CustomInt = 1"), 0, NULL, NULL, &arena, &where, NULL), HF_ERR_INVALID);
}

/* ---- Size -------------------------------------------------------------------------------------------------------------- */

/* `count` times `part`, then `end`. */
static char *repeated(const char *part, size_t count, const char *end)
{
    size_t len = strlen(part);
    char *text = malloc(count * len + strlen(end) + 1);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * len, part, len);
    }
    memcpy(text + count * len, end, strlen(end) + 1);
    return text;
}

static void large_filters_are_refused(void **state)
{
    static const struct {
        const char *part;
        size_t count;
        const char *end;
        const char *says;
    } ROWS[] = {
        {"(", 100000, "RunId = 'x'", "65536 at most"},
        {"(", 60000, "RunId = 'x'", "at most 64 deep"},
        {"NOT ", 100000, "RunId = 'x'", "65536 at most"},
        {"NOT ", 16000, "RunId = 'x'", "at most 64 deep"},
        {"(NOT ", 33, "RunId = 'x'", "at most 64 deep"},
        {" ", 1 << 20, "", "65536 at most"},
        {"RunId = 'x' OR ", 70000, "RunId = 'x'", "65536 at most"},
        {"RunId='' OR ", 5400, "RunId = 'x'", "at most 2048 values"},
        {"RunId IN ('x') OR ", 3000, "RunId = 'x'", "at most 2048 values"},
        {"'", 60000, "", "4095 at most"},
        {"RunId = 'xxxxxxxxxxxxxxxx", 1, "", "has no end"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op op;
        hf_where where;
        char *text = repeated(ROWS[i].part, ROWS[i].count, ROWS[i].end);
        print_message("%zu times '%s'\n", ROWS[i].count, ROWS[i].part);
        assert_int_equal(parse(text, &where, &op, NULL), HF_ERR_INVALID);
        if (strstr(op.message, ROWS[i].says) == NULL) {
            fail_msg("%s", op.message);
        }
        /* where-F2. Memory is the measure of work here: time is not the same twice. */
        assert_true(arena.used <= 64 * (size_t)HF_WHERE_LEN_MAX);
        free(text);
    }
    hf_op op;
    hf_where where;
    char *text = repeated("(", 64, "RunId = 'x'))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))");
    assert_int_equal(parse(text, &where, &op, NULL), HF_OK);
    free(text);
    text = repeated("NOT RunId IN ('x', 'y') AND ", 1000, "RunId = 'z'");
    assert_int_equal(parse(text, &where, &op, NULL), HF_OK);
    free(text);
}

/* ---- What a filter says of all rows that fit ---------------------------------------------------------------------------- */

static void some_filters_pin_an_id_or_a_status(void **state)
{
    static const struct {
        const char *text;
        const char *id;       /* NULL = not pinned */
        const char *statuses; /* numbers that may fit */
    } ROWS[] = {
        {"", NULL, "1234567"},
        {"WorkflowId = 'w'", "w", "1234567"},
        {"WorkflowId = 'w' AND ExecutionStatus = 'Running'", "w", "1"},
        {"ExecutionStatus = 'Running'", NULL, "1"},
        {"ExecutionStatus != 'Running'", NULL, "234567"},
        {"ExecutionStatus IN ('Failed', 'TimedOut') AND (WorkflowId = 'w')", "w", "37"},
        {"NOT ExecutionStatus IN ('Failed', 'TimedOut')", NULL, "12456"},
        {"WorkflowId = 'w' OR WorkflowId = 'v'", NULL, "1234567"},
        {"NOT WorkflowId = 'w'", NULL, "1234567"},
        {"ExecutionStatus = 'Running' OR WorkflowId = 'w'", NULL, "1234567"},
        {"WorkflowId != 'w' AND ExecutionStatus IS NULL", NULL, ""},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op op;
        hf_where where;
        hf_str id = HF_STR("");
        char statuses[10] = "";
        print_message("%s\n", ROWS[i].text);
        assert_int_equal(parse(ROWS[i].text, &where, &op, NULL), HF_OK);
        assert_int_equal(hf_where_pins(&where, HF_ATTR_WORKFLOW_ID, &id), ROWS[i].id != NULL);
        assert_true(hf_str_equal(id, hf_str_of(ROWS[i].id)));
        for (int status = 1; status <= 7; status++) {
            if (hf_where_may_have_status(&where, status)) {
                statuses[strlen(statuses)] = (char)('0' + status);
            }
        }
        assert_string_equal(statuses, ROWS[i].statuses);
    }
}

/* ---- Order -------------------------------------------------------------------------------------------------------------- */

static void sort_keys_order_like_the_filter_says(void **state)
{
    static const struct {
        const char *text;
        const char *order;
    } ROWS[] = {
        {"ORDER BY StartTime", "cadb"},
        {"ORDER BY StartTime DESC", "bdac"},
        {"ORDER BY CloseTime, RunId", "cabd"},
        {"ORDER BY CloseTime DESC, RunId DESC", "acdb"},
        {"ORDER BY WorkflowType, RunId DESC", "dbac"},
        {"ORDER BY WorkflowType DESC, RunId", "cabd"},
        {"ORDER BY CustomDouble, RunId", "cabd"},
        {"ORDER BY CustomDouble DESC, RunId", "acbd"},
        {"ORDER BY CustomBool, RunId", "bacd"},
        {"ORDER BY ExecutionStatus", "bacd"},
        {"ORDER BY CustomInt DESC, WorkflowId", "abdc"},
        {"ORDER BY ExecutionDuration DESC, RunId", "acbd"},
    };
    attr_row rows[4];
    (void)state;
    fill(rows);
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        hf_op op;
        hf_where where;
        hf_buf keys[4];
        print_message("%s\n", ROWS[i].text);
        assert_int_equal(parse(ROWS[i].text, &where, &op, NULL), HF_OK);
        for (int n = 0; n < 4; n++) {
            hf_buf_init(&keys[n], hf_rig_heap, 10000);
            hf_where_sort_key(&where, row_get, &rows[n], &keys[n]);
        }
        for (int n = 0; n + 1 < 4; n++) {
            const hf_buf *a = &keys[ROWS[i].order[n] - 'a'];
            const hf_buf *b = &keys[ROWS[i].order[n + 1] - 'a'];
            if (hf_str_compare(hf_str_of_len(a->data, a->len), hf_str_of_len(b->data, b->len)) >= 0) {
                fail_msg("%c is not before %c", ROWS[i].order[n], ROWS[i].order[n + 1]);
            }
        }
        for (int n = 0; n < 4; n++) {
            hf_buf_deinit(&keys[n]);
        }
    }
}

/* where-F3: a NUL in a text, and a text that is the beginning of another. */
static void texts_of_any_bytes_keep_their_order(void **state)
{
    static const hf_str TEXTS[] = {HF_STR_INIT(""),       HF_STR_INIT("\0"), HF_STR_INIT("\0\0"), HF_STR_INIT("\0b"),
                                   HF_STR_INIT("\0\xff"), HF_STR_INIT("\1"), HF_STR_INIT("a"),    HF_STR_INIT("a\0"),
                                   HF_STR_INIT("a\0b"),   HF_STR_INIT("aa"), HF_STR_INIT("b"),    HF_STR_INIT("\xff")};
    (void)state;
    for (int down = 0; down < 2; down++) {
        hf_op op;
        hf_where where;
        hf_buf before;
        hf_buf key;
        assert_int_equal(parse(down != 0 ? "ORDER BY WorkflowId DESC" : "ORDER BY WorkflowId", &where, &op, NULL),
                         HF_OK);
        hf_buf_init(&before, hf_rig_heap, 10000);
        hf_buf_init(&key, hf_rig_heap, 10000);
        for (size_t i = 0; i < HF_COUNT_OF(TEXTS); i++) {
            attr_row row = {0};
            row.system[HF_ATTR_WORKFLOW_ID] = (hf_attr_value){.is_set = true, .text = TEXTS[i]};
            key.len = 0;
            hf_where_sort_key(&where, row_get, &row, &key);
            int order = hf_str_compare(hf_str_of_len(before.data, before.len), hf_str_of_len(key.data, key.len));
            assert_true(i == 0 || (down != 0 ? order > 0 : order < 0));
            before.len = 0;
            hf_buf_put(&before, key.data, key.len);
        }
        hf_buf_deinit(&before);
        hf_buf_deinit(&key);
    }
}

/* ---- The twin ------------------------------------------------------------------------------------------------------------ */

#define RANDOM_ROWS 10000

static void a_naive_evaluator_agrees(void **state)
{
    (void)state;
    attr_row *rows = calloc(RANDOM_ROWS, sizeof *rows);
    assert_non_null(rows);
    hf_rng rng = {.state = 20240229};
    for (size_t i = 0; i < RANDOM_ROWS; i++) {
        row_random(&rng, &rows[i]);
    }
    size_t both = 0; /* filters that some rows fit, and some do not */
    for (size_t i = 0; i < HF_COUNT_OF(QUERIES); i++) {
        hf_op op;
        hf_where where;
        size_t fit = 0;
        assert_int_equal(parse(QUERIES[i].text, &where, &op, NULL), HF_OK);
        for (size_t n = 0; n < RANDOM_ROWS; n++) {
            bool fits = hf_where_fits(&where, row_get, &rows[n]);
            if (fits != naive_fits(QUERIES[i].text, &rows[n])) {
                fail_msg("row %zu, filter %s", n, QUERIES[i].text);
            }
            fit += fits;
        }
        both += fit > 0 && fit < RANDOM_ROWS;
    }
    free(rows);
    print_message("%zu of %zu filters fit some rows and not others\n", both, HF_COUNT_OF(QUERIES));
    assert_true(both > 100);
}

/* A random filter as text: the tests of the table, joined at random. */
static void write_random(hf_rng *rng, int depth, hf_buf *out)
{
    uint64_t chance = hf_rng_below(rng, 4);
    if (depth == 0 || chance == 0) {
        const char *text = QUERIES[2 + hf_rng_below(rng, HF_COUNT_OF(QUERIES) - 5)].text;
        hf_buf_putf(out, "(%s)", text);
        return;
    }
    hf_buf_puts(out, chance == 1 ? "NOT (" : "(");
    write_random(rng, depth - 1, out);
    if (chance > 1) {
        hf_buf_puts(out, hf_rng_below(rng, 2) == 0 ? " AND " : " OR ");
        write_random(rng, depth - 1, out);
    }
    hf_buf_puts(out, ")");
}

static void random_filters_agree(void **state)
{
    (void)state;
    hf_buf text;
    hf_buf_init(&text, hf_rig_heap, HF_WHERE_LEN_MAX);
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        hf_rng rng = {.state = seed};
        hf_op op;
        hf_where where;
        text.len = 0;
        write_random(&rng, 5, &text);
        if (parse(text.data, &where, &op, NULL) != HF_OK) {
            fail_msg("seed %llu: %s in %s", (unsigned long long)seed, op.message, text.data);
        }
        for (int n = 0; n < 20; n++) {
            attr_row row;
            row_random(&rng, &row);
            if (hf_where_fits(&where, row_get, &row) != naive_fits(text.data, &row)) {
                fail_msg("seed %llu, row %d, filter %s", (unsigned long long)seed, n, text.data);
            }
        }
    }
    hf_buf_deinit(&text);
}

static void types_and_attributes_have_names(void **state)
{
    (void)state;
    for (int type = HF_ATTR_TEXT; type <= HF_ATTR_TYPE_LAST; type++) {
        assert_int_equal(hf_attr_type_of_name(hf_str_of(hf_attr_type_name((hf_attr_type)type))), type);
    }
    assert_int_equal(hf_attr_type_of_name(HF_STR("keywordLIST")), HF_ATTR_KEYWORD_LIST);
    assert_int_equal(hf_attr_type_of_name(HF_STR("ExecutionStatus")), HF_ATTR_NONE);
    assert_int_equal(hf_attr_type_of_name(HF_STR("")), HF_ATTR_NONE);
    size_t count = 0;
    for (const hf_attr *known = NULL; (known = hf_attr_known_at(count)) != NULL; count++) {
        hf_attr attr;
        assert_true(hf_attr_known(known->name, &attr));
        assert_int_equal(attr.type, known->type);
        assert_int_equal(attr.id, count < HF_ATTR_SYSTEM_COUNT ? (hf_attr_id)count : HF_ATTR_CUSTOM);
    }
    assert_true(count > HF_ATTR_SYSTEM_COUNT);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test_setup_teardown(where_F1_filters_fit_rows, setup, teardown),
    cmocka_unit_test_setup_teardown(what_is_wrong_is_named_with_its_place, setup, teardown),
    cmocka_unit_test_setup_teardown(groups_and_orders_are_for_their_callers, setup, teardown),
    cmocka_unit_test_setup_teardown(large_filters_are_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(some_filters_pin_an_id_or_a_status, setup, teardown),
    cmocka_unit_test_setup_teardown(sort_keys_order_like_the_filter_says, setup, teardown),
    cmocka_unit_test_setup_teardown(texts_of_any_bytes_keep_their_order, setup, teardown),
    cmocka_unit_test_setup_teardown(a_naive_evaluator_agrees, setup, teardown),
    cmocka_unit_test_setup_teardown(random_filters_agree, setup, teardown),
    cmocka_unit_test(types_and_attributes_have_names),
};

int main(int argc, char **argv)
{
    return hf_test_main("where", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
