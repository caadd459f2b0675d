/* Blocks of runs that have ended, and retention: lists and counts stay as they were, a block goes with the first of its runs that changes, and runs
 * go when their time is over, not sooner. */
#include "engine/blocks.h"
#include "engine/lister.h"
#include "engine/namespaces.h"
#include "fixture.h"
#include "inspect/check.h"
#include "support/engine_list.h"

#include <stdio.h>

#define SECOND INT64_C(1000000000)

static void pass(int64_t span)
{
    rig.now.wall += span;
    rig.now.mono += span;
    hf_rig_settle(&rig);
}

/* Time for all that housekeeping has to do now. */
static void keep_house(void)
{
    for (int i = 0; i < 400; i++) {
        pass(HF_HOUSE_PACE);
    }
}

static uint64_t rows_of(hf_table table)
{
    hf_store_count count = {0};
    hf_store_request stats = {.verb = HF_STORE_STATS, .count = &count};
    hf_op_init(&stats.op);
    do {
        hf_store_execute(rig.store, &stats);
    } while (stats.more);
    return stats.stats.rows[table];
}

static void on_found(void *state, const char *sentence)
{
    (void)state;
    fail_msg("%s", sentence);
}

static void check(void)
{
    hf_op op;
    hf_op_init(&op);
    hf_check_report report;
    hf_check_options options = {.deep = true, .found = on_found};
    assert_int_equal(hf_check_store(&op, hf_rig_heap, rig.store, &options, &report), HF_OK);
}

static const hf_core_options SMALL = {.block_size = 4};

/* n runs, w1 to wn; every fifth stays open. */
static void some_runs(int count)
{
    for (int i = 1; i <= count; i++) {
        char step[100];
        (void)snprintf(step, sizeof step, i % 5 == 0 ? "start w%d attrs=K:v%d" : "start w%d attrs=K:v%d; terminate w%d",
                       i, i % 3, i);
        hf_rig_do(&rig, step);
    }
}

static const char *const QUERIES[] = {"",
                                      "ExecutionStatus = 'Running'",
                                      "ExecutionStatus != 'Running'",
                                      "ExecutionStatus = 'Terminated' ORDER BY WorkflowId",
                                      "WorkflowId = 'w3'",
                                      "WorkflowId IN ('w3', 'w17', 'w5', 'none')",
                                      "WorkflowId STARTS_WITH 'w1' ORDER BY CloseTime DESC, WorkflowId",
                                      "K = 'v1'",
                                      "K = 'v7'",
                                      "NOT K = 'v1'",
                                      "CloseTime IS NULL",
                                      "StartTime > 0 AND HistoryLength < 3",
                                      "HistoryLength > 1000"};

/* The answers to all of them, also page by page and counted. */
static void answers(hf_buf *out)
{
    for (size_t i = 0; i < HF_COUNT_OF(QUERIES); i++) {
        for (int size = 0; size < 4; size += 3) {
            char token[200];
            size_t token_len = 0;
            do {
                hf_rig_call *slot = hf_rig_slot(&rig, NULL);
                hf_pb_list_workflow_executions_request *request = HF_RIG_REQUEST(slot, list_workflow_executions);
                request->namespace = HF_STR(HF_RIG_NS);
                request->query = hf_str_of(QUERIES[i]);
                request->page_size = size;
                request->next_page_token = hf_str_of_len(token, token_len);
                hf_rig_send(&rig, slot, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, request);
                assert_true(slot->done);
                assert_int_equal(slot->call.status, HF_OK);
                const hf_pb_list_workflow_executions_response *page = slot->call.response;
                for (size_t n = 0; n < page->executions.count; n++) {
                    const hf_pb_workflow_execution_info *info = &page->executions.items[n];
                    hf_buf_putf(out, "%.*s:%d:%zu ", HF_STR_ARGS(info->execution->workflow_id), (int)info->status,
                                info->search_attributes != NULL ? info->search_attributes->indexed_fields.count : 0);
                    assert_true(info->first_run_id.len > 0);
                }
                token_len = page->next_page_token.len;
                assert_true(token_len <= sizeof token);
                memcpy(token, page->next_page_token.data != NULL ? page->next_page_token.data : "", token_len);
            } while (token_len > 0);
            hf_buf_puts(out, "| ");
        }
        if (strstr(QUERIES[i], "ORDER") == NULL) {
            hf_rig_call *slot = hf_rig_slot(&rig, NULL);
            hf_pb_count_workflow_executions_request *request = HF_RIG_REQUEST(slot, count_workflow_executions);
            char query[200];
            (void)snprintf(query, sizeof query, "%s GROUP BY ExecutionStatus", QUERIES[i]);
            request->namespace = HF_STR(HF_RIG_NS);
            request->query = hf_str_of(query);
            hf_rig_send(&rig, slot, HF_METHOD_COUNT_WORKFLOW_EXECUTIONS, request);
            assert_int_equal(slot->call.status, HF_OK);
            const hf_pb_count_workflow_executions_response *counted = slot->call.response;
            hf_buf_putf(out, "%lld in %zu\n", (long long)counted->count, counted->groups.count);
        }
    }
}

static void add_attribute(void)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_add_search_attributes_request *request = HF_RIG_REQUEST(slot, add_search_attributes);
    hf_pb_add_search_attributes_request_search_attributes_entry entry = {.key = HF_STR("K"),
                                                                         .value = HF_INDEXED_VALUE_TYPE_KEYWORD};
    request->namespace = HF_STR(HF_RIG_NS);
    request->search_attributes.items = &entry;
    request->search_attributes.count = 1;
    hf_rig_send(&rig, slot, HF_METHOD_ADD_SEARCH_ATTRIBUTES, request);
    assert_int_equal(slot->call.status, HF_OK);
}

static void lists_are_the_same_with_and_without_blocks(void **state)
{
    static const hf_core_options OPTIONS[] = {
        {.block_size = 4},
        {.block_size = 4, .mem_max = 1, .trim_count = 1, .tail_len_max = 1, .part_len_min = 1},
        {.block_size = 8, .list_step_max = 1},
        {.block_size = 16, .list_step_max = 3, .mem_max = 1},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        hf_buf before;
        hf_buf after;
        hf_buf_init(&before, hf_rig_heap, SIZE_MAX / 4);
        hf_buf_init(&after, hf_rig_heap, SIZE_MAX / 4);
        again(&OPTIONS[i]);
        add_attribute();
        some_runs(40);
        answers(&before);
        assert_int_equal(rows_of(HF_TABLE_SUMMARY), 0);
        keep_house();
        assert_true(rows_of(HF_TABLE_SUMMARY) > 0);
        assert_int_equal(rows_of(HF_TABLE_SUMMARY), rows_of(HF_TABLE_BLOCK));
        answers(&after);
        assert_string_equal(hf_buf_text(&after), hf_buf_text(&before));
        assert_true(hf_rig_probe(&rig, HF_PROBE_BLOCK_READ) > 0 && hf_rig_probe(&rig, HF_PROBE_BLOCK_SKIPPED) > 0);
        assert_true(OPTIONS[i].mem_max == 0 ||
                    (hf_rig_probe(&rig, HF_PROBE_BLOCK_COUNTED) > 0 && hf_rig_probe(&rig, HF_PROBE_BLOCK_OTHER) > 0));
        check();
        hf_rig_crash(&rig);
        keep_house();
        after.len = 0;
        answers(&after);
        assert_string_equal(hf_buf_text(&after), hf_buf_text(&before));
        /* The runs that were open end, and their blocks are made again. */
        uint64_t written = hf_rig_probe(&rig, HF_PROBE_BLOCK_WRITTEN);
        hf_rig_do(&rig, "terminate w5; terminate w10; terminate w15; list query=CloseTime_IS_NULL "
                        "says=w40+w35+w30+w25+w20; count query=ExecutionStatus='Terminated' says=35");
        keep_house();
        hf_rig_do(&rig, "list query=CloseTime_IS_NULL says=w40+w35+w30+w25+w20");
        hf_rig_do(&rig, "count query=ExecutionStatus='Terminated' says=35");
        assert_true(OPTIONS[i].block_size > 8 || hf_rig_probe(&rig, HF_PROBE_BLOCK_WRITTEN) > written);
        check();
        hf_buf_deinit(&before);
        hf_buf_deinit(&after);
    }
}

static void engine_K3_a_block_goes_with_a_run_that_is_deleted(void **state)
{
    (void)state;
    again(&SMALL);
    some_runs(24);
    keep_house();
    uint64_t blocks = rows_of(HF_TABLE_BLOCK);
    assert_true(blocks >= 4);
    hf_rig_do(&rig, "delete w6; count says=23; list query=WorkflowId='w6' says=");
    assert_true(hf_rig_probe(&rig, HF_PROBE_BLOCK_DELETED) > 0);
    keep_house();
    assert_int_equal(rows_of(HF_TABLE_BLOCK), blocks); /* made again, without it */
    hf_rig_do(&rig, "count says=23; list query=WorkflowId='w6' says=; list query=WorkflowId='w7' says=w7");
    check();
    /* After an opening the core does not know yet which blocks there are. */
    hf_rig_crash(&rig);
    hf_rig_do(&rig, "delete w7; count says=22");
    check();
    keep_house();
    hf_rig_do(&rig, "count says=22");
    check();
    /* A range whose runs are all gone is not looked at again. */
    hf_rig_do(&rig, "delete w4; delete w5; delete w8; delete w9; delete w10; delete w11; count says=16");
    keep_house();
    hf_rig_crash(&rig);
    keep_house();
    hf_rig_do(&rig, "count says=16");
    check();
    assert_int_equal(hf_core_next(rig.core).mono > rig.now.mono + HF_HOUSE_PACE, true);
}

static void a_block_that_cannot_be_read_is_not_needed(void **state)
{
    static const hf_table TABLES[] = {HF_TABLE_BLOCK, HF_TABLE_SUMMARY};
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(TABLES); i++) {
        again(&SMALL);
        some_runs(24);
        keep_house();
        hf_write bad = {.table = TABLES[i], .kind = HF_WRITE_PUT, .key = {.a = 8}, .value = HF_STR("not a record")};
        both_behind(bad, bad);
        hf_rig_crash(&rig);
        hf_rig_do(&rig, "count says=24; list query=WorkflowId='w9' says=w9; list query=WorkflowId='w3' says=w3");
        hf_rig_do(&rig,
                  "list page=20 says=w24+w23+w22+w21+w20+w19+w18+w17+w16+w15+w14+w13+w12+w11+w10+w9+w8+w7+w6+w5...");
    }
}

/* ---- Retention ------------------------------------------------------------------------------------------------------------ */

static void keep_for(int64_t span)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_update_namespace_request *request = HF_RIG_REQUEST(slot, update_namespace);
    hf_pb_namespace_config config = {.workflow_execution_retention_ttl = hf_pb_duration_of(hf_nanoseconds(span))};
    request->namespace = HF_STR(HF_RIG_NS);
    request->config = &config;
    hf_rig_send(&rig, slot, HF_METHOD_UPDATE_NAMESPACE, request);
    assert_true(slot->done);
    assert_int_equal(slot->call.status, HF_OK);
}

static void engine_K4_runs_go_when_their_time_is_over(void **state)
{
    static const hf_core_options OPTIONS[] = {
        {.block_size = 4}, {.block_size = 4, .mem_max = 1, .list_step_max = 1}, {.block_size = 0}};
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        some_runs(20);
        keep_house();
        keep_for(3600 * SECOND);
        keep_house();
        hf_rig_do(&rig, "count says=20");
        pass(1800 * SECOND);
        hf_rig_do(&rig, "start late; terminate late");
        keep_house();
        hf_rig_do(&rig, "count says=21");
        hf_rig_crash(&rig);
        pass(1800 * SECOND + HF_HOUSE_SLACK);
        keep_house();
        hf_rig_do(&rig, "list says=late+w20+w15+w10+w5");
        assert_true(hf_rig_probe(&rig, HF_PROBE_RETIRED) == 16);
        check();
        pass(1800 * SECOND);
        keep_house();
        hf_rig_do(&rig, "list says=w20+w15+w10+w5; terminate w10");
        keep_for(0);
        pass(7200 * SECOND);
        keep_house();
        hf_rig_do(&rig, "list says=w20+w15+w10+w5");
        keep_for(7000 * SECOND);
        keep_house();
        hf_rig_do(&rig, "list says=w20+w15+w5");
        check();
        assert_true(hf_core_next(rig.core).wall > rig.now.wall + 1000 * SECOND);
    }
}

/* A run that is kept for a span of its own goes by that, whatever its namespace says, and so do the runs that follow it. */
static void engine_K4_a_run_may_have_a_span_of_its_own(void **state)
{
    static const hf_core_options OPTIONS[] = {
        {.block_size = 4}, {.block_size = 4, .mem_max = 1, .list_step_max = 1}, {.block_size = 0}};
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        again(&OPTIONS[i]);
        hf_rig_do(&rig, "start short keep=1m; start long keep=10h; start open keep=1s");
        hf_rig_do(&rig, "sigstart by s keep=1m; start next keep=1m queue=n; poll queue=n; complete continue queue=n");
        hf_rig_do(&rig, "start again keep=1m; poll queue=q; start plain");
        hf_rig_do(&rig, "terminate short; terminate long; terminate by; terminate plain");
        keep_house();
        keep_for(3600 * SECOND);
        keep_house();
        hf_rig_do(&rig, "describe short; describe long; describe next");
        hf_rig_crash(&rig);
        pass(50 * SECOND);
        hf_rig_do(&rig, "describe short");
        pass(20 * SECOND);
        keep_house();
        hf_rig_do(&rig, "describe short => not_found; describe by => not_found; describe long; describe open");
        hf_rig_do(&rig, "count query=WorkflowId='next' says=1; terminate next"); /* its first run has gone */
        check();
        hf_rig_crash(&rig);
        pass(70 * SECOND);
        keep_house();
        hf_rig_do(&rig, "describe next => not_found; describe plain; count query=WorkflowId='next' says=0");
        pass(4000 * SECOND);
        keep_house();
        hf_rig_do(&rig, "describe plain => not_found; describe long; describe open");
        pass(36000 * SECOND);
        keep_house();
        hf_rig_do(&rig, "describe long => not_found; describe open");
        assert_true(hf_rig_probe(&rig, HF_PROBE_OWN_SPAN_OVER) >= 4);
        check();
    }
}

/* A retention that becomes longer saves runs that were to go. */
static void a_longer_retention_is_in_time(void **state)
{
    (void)state;
    again(&SMALL);
    some_runs(20);
    keep_house();
    keep_for(3600 * SECOND);
    keep_house();
    rig.now.wall += 3700 * SECOND;
    rig.now.mono += 3700 * SECOND;
    rig.hold = true;
    hf_core_tick(rig.core, rig.now); /* a visit is on its way */
    rig.hold = false;
    keep_for(36000 * SECOND);
    keep_house();
    hf_rig_do(&rig, "count says=20");
    check();
}

/* The runs are only rows, so that each is read before it is marked. */
static void engine_K5_others_come_first(void **state)
{
    (void)state;
    again(&(hf_core_options){.mem_max = 1, .trim_count = 1});
    for (int i = 0; i < 300; i++) {
        char step[100];
        (void)snprintf(step, sizeof step, "start w%d; terminate w%d", i, i);
        hf_rig_do(&rig, step);
    }
    keep_for(60 * SECOND);
    hf_rig_crash(&rig);
    rig.now.wall += 100 * SECOND;
    rig.now.mono += 100 * SECOND;
    uint64_t most = 0, most_beside = 0, before = 0;
    for (int i = 0; i < 400 && before < 300; i++) {
        bool is_beside = i >= 40;
        for (int j = 0; is_beside && j < HF_RETIRING_MAX; j++) {
            hf_rig_do(&rig, "cancel none => not_found");
        }
        pass(HF_HOUSE_PACE);
        uint64_t now = hf_rig_probe(&rig, HF_PROBE_RETIRED);
        uint64_t *top = is_beside ? &most_beside : &most;
        *top = now - before > *top ? now - before : *top;
        before = now;
        if (!is_beside && now >= 100) {
            i = 40; /* the rest goes beside calls */
        }
    }
    assert_int_equal(before, 300);
    assert_int_equal(most, HF_RETIRING_MAX);
    assert_int_equal(most_beside, HF_RETIRING_MIN);
    hf_rig_do(&rig, "count says=0");
    check();
}

/* Else every list would read the rows of all runs that ended since the work began. A range takes two steps here: at the pace beside commits, longer than
 * its runs take to end. */
static void blocks_keep_up_with_a_busy_engine(void **state)
{
    enum { RANGES = 40, SIZE = 4 };
    (void)state;
    again(&(hf_core_options){.block_size = SIZE, .list_step_max = SIZE / 2});
    for (int i = 0; i < RANGES * SIZE; i++) {
        char step[120];
        (void)snprintf(step, sizeof step, "start w%d; signal w%d a; signal w%d b; terminate w%d", i, i, i, i);
        hf_rig_do(&rig, step);
        pass(HF_HOUSE_PACE);
    }
    assert_in_range(rows_of(HF_TABLE_BLOCK), RANGES - 2 - 2 * HF_HOUSE_BEHIND, RANGES);
}

/* With many at a time, and a crash behind every commit. */
static void retention_survives_crashes(void **state)
{
    (void)state;
    again(&SMALL);
    some_runs(30);
    keep_for(60 * SECOND);
    pass(100 * SECOND);
    for (int i = 0; i < 200; i++) {
        pass(HF_HOUSE_PACE);
        if (i % 7 == 0) {
            hf_rig_crash(&rig);
        }
    }
    pass(HF_HOUSE_SLACK);
    keep_house();
    hf_rig_do(&rig, "list says=w30+w25+w20+w15+w10+w5");
    check();
}

/* An allocation fails, in the core or in a step on the store's thread: the core breaks, and nothing is lost. */
static void without_memory_it_breaks_cleanly(void **state)
{
    bool is_done = false;
    (void)state;
    for (uint64_t nth = 1; !is_done; nth += 1 + nth / 8) {
        again(&(hf_core_options){.block_size = 4, .list_step_max = 3});
        some_runs(16);
        keep_for(60 * SECOND);
        rig.may_break = true;
        rig.allocations = 0;
        rig.fail_at = nth;
        for (int i = 0; i < 200 && hf_core_status(rig.core) == HF_OK; i++) {
            pass(i == 30 ? 100 * SECOND : HF_HOUSE_PACE);
        }
        if (hf_core_status(rig.core) == HF_OK) {
            (void)hf_rig_try(&rig, "list query=StartTime>0");
        }
        is_done = hf_core_status(rig.core) == HF_OK;
        assert_true(is_done || hf_core_status(rig.core) == HF_ERR_NOMEM);
        rig.fail_at = 0;
        if (!is_done) {
            hf_rig_crash(&rig);
        }
        rig.may_break = false;
        pass(100 * SECOND);
        keep_house();
        pass(HF_HOUSE_SLACK);
        keep_house();
        hf_rig_do(&rig, "list says=w15+w10+w5");
        check();
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test_setup_teardown(lists_are_the_same_with_and_without_blocks, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(engine_K3_a_block_goes_with_a_run_that_is_deleted, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(a_block_that_cannot_be_read_is_not_needed, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(engine_K4_runs_go_when_their_time_is_over, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(engine_K4_a_run_may_have_a_span_of_its_own, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(a_longer_retention_is_in_time, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(engine_K5_others_come_first, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(blocks_keep_up_with_a_busy_engine, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(retention_survives_crashes, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(without_memory_it_breaks_cleanly, open_rig, close_rig),
    };
    return hf_test_main("engine_blocks", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
