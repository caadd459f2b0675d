/* Blocks against the evaluator: random runs are put into blocks and read again. A filter that goes by summaries and blocks must find the runs
 * that it finds when it looks at each of them (ledger-E1, ledger-E2, where-F4), and the counts of the summaries must be theirs. */
#include "support/support.h"

#include "ledger/blocks.h"
#include "unit/where/queries.h"
#include "unit/where/rows.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS_MAX = 6, RUNS_MAX = 64 };

static void *allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

static const hf_allocator HEAP = {allocate, release, NULL};
static hf_rng rng;
static hf_arena arena; /* of a seed */

/* Texts and numbers that the queries ask for, and some that they do not. */
static const char *const WORDS[] = {"order-1", "order-2", "job:3", "it's", "Pay", "Ship", "q", "q2", "p",
                                    "red",     "blue",    "x",     "y",    "z",   "odd",  "",  "s",  "none"};
static const int64_t TIMES[] = {1,
                                1709208000000000000,
                                1709208000500000000,
                                1709211600000000000,
                                1672531200000000000,
                                1672531201000000000,
                                1709213400000000000};

typedef struct block_rows {
    int64_t first, end;
    size_t run_count;
    hf_visible runs[RUNS_MAX];
    hf_str block, summary; /* values of their rows */
} block_rows;

static block_rows blocks[BLOCKS_MAX];
static size_t block_count;

/* A block knows few values, so that most of them are left out by most filters. */
static hf_str word(uint64_t taste)
{
    return hf_str_of(WORDS[(taste + hf_rng_below(&rng, 3)) % HF_COUNT_OF(WORDS)]);
}

static hf_str encode(const hf_pb_type *type, const void *msg)
{
    hf_buf out;
    hf_buf_init(&out, HEAP, SIZE_MAX / 4);
    hf_pb_encode(type, msg, &out);
    hf_str copy = hf_arena_copy(&arena, hf_str_of_len(out.data, out.len));
    hf_buf_deinit(&out);
    return copy;
}

static hf_str random_json(hf_attr_type type, uint64_t taste)
{
    char text[200];
    hf_str one = word(taste);
    hf_str two = word(taste + 5);
    switch (type) {
    case HF_ATTR_INT:
        (void)snprintf(text, sizeof text, "%d", (int)((taste + hf_rng_below(&rng, 3)) % 12) - 2);
        break;
    case HF_ATTR_DOUBLE:
        (void)snprintf(text, sizeof text, "%d.5", (int)((taste + hf_rng_below(&rng, 3)) % 5) - 2);
        break;
    case HF_ATTR_BOOL:
        (void)snprintf(text, sizeof text, "%s", (taste + hf_rng_below(&rng, 5)) % 5 > 1 ? "true" : "false");
        break;
    case HF_ATTR_DATETIME:
        (void)snprintf(text, sizeof text, "\"2024-02-29T12:00:00%sZ\"", hf_rng_permille(&rng, 500) ? ".5" : "");
        break;
    case HF_ATTR_KEYWORD_LIST:
        if (hf_rng_permille(&rng, 700)) {
            (void)snprintf(text, sizeof text, "[\"%.*s\",\"%.*s\"]", HF_STR_ARGS(one), HF_STR_ARGS(two));
            break;
        }
        (void)snprintf(text, sizeof text, "[]");
        break;
    case HF_ATTR_NONE:
    case HF_ATTR_TEXT:
    case HF_ATTR_KEYWORD:
    case HF_ATTR_STATUS:
    case HF_ATTR_DURATION:
        (void)snprintf(text, sizeof text, "\"%.*s\"", HF_STR_ARGS(one));
        break;
    }
    return hf_arena_copy(&arena, hf_str_of(text));
}

static hf_str random_attributes(uint64_t taste)
{
    hf_pb_search_attributes_indexed_fields_entry items[HF_COUNT_OF(CUSTOM)];
    hf_pb_payload payloads[HF_COUNT_OF(CUSTOM)];
    hf_pb_search_attributes attributes = {.indexed_fields = {items, 0}};
    for (size_t i = 0; i < HF_COUNT_OF(CUSTOM); i++) {
        if (hf_rng_permille(&rng, 400)) {
            size_t n = attributes.indexed_fields.count++;
            /* Now and then the value is of another type than the attribute is today. */
            hf_attr_type type = hf_rng_permille(&rng, 50) ? (hf_attr_type)(1 + hf_rng_below(&rng, 7)) : CUSTOM[i].type;
            payloads[n] = (hf_pb_payload){.data = random_json(type, taste)};
            items[n] =
                (hf_pb_search_attributes_indexed_fields_entry){.key = hf_str_of(CUSTOM[i].name), .value = &payloads[n]};
        }
    }
    return attributes.indexed_fields.count > 0 ? encode(&hf_pb_search_attributes_type, &attributes) : HF_STR("");
}

static hf_str random_start(uint64_t taste)
{
    hf_pb_workflow_execution parent = {.workflow_id = word(taste), .run_id = HF_STR("pr")};
    hf_start_facts facts = {.parent_workflow_execution = &parent};
    if (hf_rng_permille(&rng, 300)) {
        facts.first_workflow_task_backoff = hf_pb_duration_of(hf_nanoseconds((int64_t)hf_rng_below(&rng, 5000000000)));
    }
    return hf_rng_permille(&rng, 200) ? encode(&hf_pb_workflow_execution_started_event_attributes_type, &facts)
                                      : HF_STR("");
}

static hf_visible random_run(int64_t number, uint64_t taste)
{
    char run_id[32];
    (void)snprintf(run_id, sizeof run_id, "r%lld", (long long)number);
    int64_t start = TIMES[(taste + hf_rng_below(&rng, 2)) % HF_COUNT_OF(TIMES)];
    return (hf_visible){
        .number = number,
        .namespace_ = hf_rng_permille(&rng, 900) ? HF_STR("n") : HF_STR("other"),
        .workflow_id = word(taste),
        .run_id = hf_arena_copy(&arena, hf_str_of(run_id)),
        .workflow_type = word(taste + 2),
        .task_queue = word(taste + 4),
        .start = random_start(taste),
        .search_attributes = random_attributes(taste),
        .status = (int32_t)(2 + (taste + hf_rng_below(&rng, 2)) % 6),
        .start_time = start,
        .close_time = start + (int64_t)hf_rng_below(&rng, 4) * 1800000000000 + 1,
        .event_count = 1 + (int64_t)hf_rng_below(&rng, 12),
        .history_len = 100 + (int64_t)hf_rng_below(&rng, 1000),
        .transitions = 1 + hf_rng_below(&rng, 3),
        .is_hidden = false,
    };
}

static hf_str sealed(hf_table table, int64_t first, const hf_buf *body)
{
    char *bytes = hf_arena_take(&arena, HF_RECORD_HEADER_LEN + body->len, 8);
    hf_key key = {.a = first};
    if (body->len > 0) {
        memcpy(bytes + HF_RECORD_HEADER_LEN, body->data, body->len);
    }
    hf_record_seal(table, &key, bytes, body->len);
    return hf_str_of_len(bytes, HF_RECORD_HEADER_LEN + body->len);
}

static void make_block(block_rows *it, int64_t first)
{
    uint64_t taste = hf_rng_below(&rng, 100);
    hf_block_maker maker;
    hf_buf block;
    hf_buf summary;
    hf_buf_init(&block, HEAP, SIZE_MAX / 4);
    hf_buf_init(&summary, HEAP, SIZE_MAX / 4);
    *it = (block_rows){.first = first, .end = first + 1 + (int64_t)hf_rng_below(&rng, RUNS_MAX)};
    hf_block_begin(&maker, HEAP, it->first, it->end);
    for (int64_t number = it->first; number < it->end; number++) {
        hf_visible run = random_run(number, taste);
        bool is_open = hf_rng_permille(&rng, 100);
        run.close_time = is_open ? 0 : run.close_time;
        run.is_hidden = hf_rng_permille(&rng, 50);
        if (hf_block_add(&maker, &run)) {
            HF_CHECK(!is_open && !run.is_hidden);
            it->runs[it->run_count++] = run;
        } else if (hf_rng_permille(&rng, 800)) {
            hf_block_add_other(&maker, number);
        }
    }
    HF_CHECK(hf_block_finish(&maker, 1, &block, &summary) == HF_OK);
    it->block = sealed(HF_TABLE_BLOCK, first, &block);
    it->summary = sealed(HF_TABLE_SUMMARY, first, &summary);
    hf_block_deinit(&maker);
    hf_buf_deinit(&block);
    hf_buf_deinit(&summary);
}

static bool fits(const hf_where *where, const hf_visible *run, hf_arena *scratch)
{
    hf_visible_row row = {.run = run, .arena = scratch};
    return hf_str_equal(run->namespace_, HF_STR("n")) && hf_where_fits(where, hf_visible_get, &row);
}

static void judge(const block_rows *it, const hf_where *where, const char *text)
{
    hf_op op;
    hf_op_init(&op);
    hf_arena scratch;
    hf_arena_init(&scratch, HEAP);
    hf_pb_block_summary summary;
    hf_row row = {.key = {.a = it->first}, .value = it->summary};
    if (!HF_CHECK(hf_summary_open(&op, &row, &scratch, &summary) == HF_OK)) {
        return;
    }
    hf_visible *runs = NULL;
    size_t count = 0;
    row.value = it->block;
    HF_CHECK(hf_block_open(&op, &row, &summary, &scratch, &runs, &count) == HF_OK);
    HF_CHECK_SAY(count == it->run_count, "ledger-E1: %zu of %zu runs are in the block", count, it->run_count);
    bool may = hf_summary_may_fit(&summary, HF_STR("n"), where);
    int64_t by_status[HF_BLOCK_STATUS_COUNT] = {0};
    for (size_t i = 0; i < count && i < it->run_count; i++) {
        bool should = fits(where, &it->runs[i], &scratch);
        HF_CHECK_SAY(should == fits(where, &runs[i], &scratch), "ledger-E1: run %lld differs in its block for %s",
                     (long long)runs[i].number, text);
        HF_CHECK_SAY(may || !should, "ledger-E2: run %lld fits %s, and its block was left out",
                     (long long)runs[i].number, text);
        by_status[runs[i].status] += hf_str_equal(runs[i].namespace_, HF_STR("n")) ? 1 : 0;
    }
    const hf_pb_block_count *counted = hf_summary_count(&summary, HF_STR("n"));
    for (int status = 0; status < HF_BLOCK_STATUS_COUNT; status++) {
        HF_CHECK_SAY((counted != NULL ? counted->counts.items[status] : 0) == by_status[status],
                     "runs with the status %d are counted wrongly", status);
    }
    hf_arena_deinit(&scratch);
}

static void ask(const char *text)
{
    hf_op op;
    hf_op_init(&op);
    hf_where where;
    if (!HF_CHECK(hf_where_parse(&op, hf_str_of(text), HF_WHERE_MAY_ORDER, custom_find, NULL, &arena, &where, NULL) ==
                  HF_OK)) {
        return;
    }
    for (size_t i = 0; i < block_count; i++) {
        judge(&blocks[i], &where, text);
    }
}

static void one_seed(uint64_t seed)
{
    rng.state = hf_hash_mix(81, seed);
    hf_arena_init(&arena, HEAP);
    block_count = 1 + hf_rng_below(&rng, BLOCKS_MAX);
    int64_t first = 1;
    for (size_t i = 0; i < block_count; i++) {
        make_block(&blocks[i], first);
        first = blocks[i].end;
    }
    for (int i = 0; i < 20; i++) { /* one, or two that are joined */
        const char *one = QUERIES[2 + hf_rng_below(&rng, HF_COUNT_OF(QUERIES) - 5)].text;
        const char *two = QUERIES[2 + hf_rng_below(&rng, HF_COUNT_OF(QUERIES) - 5)].text;
        static const char *const FORMS[][3] = {
            {"", ""}, {"NOT (", ")"}, {"(", ") AND (", ")"}, {"(", ") OR NOT (", ")"}};
        const char *const *form = FORMS[hf_rng_below(&rng, HF_COUNT_OF(FORMS))];
        bool is_one = form[2] == NULL;
        char text[1000];
        (void)snprintf(text, sizeof text, "%s%s%s%s%s", form[0], one, form[1], is_one ? "" : two,
                       is_one ? "" : form[2]);
        ask(text);
    }
    hf_arena_deinit(&arena);
}

static void blocks_find_what_rows_would(void **state)
{
    (void)state;
    hf_each_seed("blocks", 2000, one_seed);
}

/* Every query of the table over ten thousand runs in blocks; and most blocks are left out, or they would be good for nothing. */
static void every_query_over_ten_thousand_runs(void **state)
{
    (void)state;
    rng.state = 82;
    size_t runs = 0;
    size_t skipped = 0;
    size_t seen = 0;
    for (int round = 0; runs < 10000; round++) {
        hf_arena_init(&arena, HEAP);
        block_count = BLOCKS_MAX;
        int64_t first = 1;
        for (size_t i = 0; i < block_count; i++) {
            make_block(&blocks[i], first);
            first = blocks[i].end;
            runs += blocks[i].run_count;
        }
        for (size_t i = 0; i < HF_COUNT_OF(QUERIES); i++) {
            ask(QUERIES[i].text);
        }
        for (size_t i = 0; i < block_count; i++) {
            hf_op op;
            hf_op_init(&op);
            hf_where where;
            hf_pb_block_summary summary;
            hf_row row = {.key = {.a = blocks[i].first}, .value = blocks[i].summary};
            assert_int_equal(hf_where_parse(&op, HF_STR("WorkflowId = 'red'"), 0, NULL, NULL, &arena, &where, NULL),
                             HF_OK);
            assert_int_equal(hf_summary_open(&op, &row, &arena, &summary), HF_OK);
            skipped += hf_summary_may_fit(&summary, HF_STR("n"), &where) ? 0 : 1;
            seen++;
        }
        hf_arena_deinit(&arena);
    }
    assert_true(skipped > seen / 2);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(blocks_find_what_rows_would),
                                              cmocka_unit_test(every_query_over_ten_thousand_runs)};
    return hf_test_main("blocks_model", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
