/* Histories from their end. */
#include "engine/token.h"
#include "unit/engine/fixture.h"

static char token_kept[HF_TOKEN_LEN];
static size_t token_len;

static void keep_token(hf_str token)
{
    assert_true(token.len <= sizeof token_kept);
    memcpy(token_kept, token.data != NULL ? token.data : "", token.len);
    token_len = token.len;
}

/* The next page; NULL = the call failed, or waits. */
static const hf_pb_get_workflow_execution_history_reverse_response *page_of(const char *id, int32_t size)
{
    hf_rig_call *slot = hf_rig_slot(&rig, "h");
    hf_pb_get_workflow_execution_history_reverse_request *request =
        HF_RIG_REQUEST(slot, get_workflow_execution_history_reverse);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = hf_str_of(id);
    request->maximum_page_size = size;
    request->next_page_token = hf_arena_copy(&slot->request, hf_str_of_len(token_kept, token_len));
    hf_rig_send(&rig, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE, request);
    return slot->done && slot->call.status == HF_OK ? slot->call.response : NULL;
}

static size_t count_of(hf_str bytes)
{
    hf_pb_raw field;
    size_t count = 0;
    while (bytes.len > 0 && hf_pb_next(&bytes, &field)) {
        count++;
    }
    return count;
}

/* Puts the elements of `reversed` into their natural order. */
static void turn(hf_str reversed, hf_buf *out)
{
    hf_pb_raw field;
    hf_arena arena;
    hf_arena_init(&arena, hf_rig_heap);
    char *bytes = hf_arena_zero(&arena, reversed.len, 1);
    assert_non_null(bytes);
    size_t at = reversed.len;
    for (hf_str rest = reversed; rest.len > 0 && hf_pb_next(&rest, &field);) {
        at -= field.whole.len;
        memcpy(bytes + at, field.whole.data, field.whole.len);
    }
    hf_buf_put(out, bytes, reversed.len);
    hf_arena_deinit(&arena);
}

/* All pages, turned around, are the history; none is longer than it may be. Returns how many there were. */
static size_t compare(int32_t size, size_t len_max)
{
    hf_buf back;
    hf_buf turned;
    hf_buf_init(&back, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&turned, hf_rig_heap, SIZE_MAX / 4);
    size_t pages = 0;
    token_len = 0;
    rig.core->options.history_page_len = len_max;
    do {
        const hf_pb_get_workflow_execution_history_reverse_response *page = page_of("wf", size);
        assert_non_null(page);
        size_t count = count_of(page->history);
        assert_true(count > 0 && (size == 0 || count <= (size_t)size));
        assert_true(page->history.len <= len_max || count == 1);
        hf_buf_put(&back, page->history.data, page->history.len);
        keep_token(page->next_page_token);
        pages++;
    } while (token_len > 0);
    turn(hf_str_of_len(back.data, back.len), &turned);
    rig.core->options.history_page_len = 1 << 20; /* what it is compared with comes in one page */
    hf_str history = hf_rig_history_bytes(&rig, "wf");
    assert_int_equal(turned.len, history.len);
    assert_memory_equal(turned.data, history.data, history.len);
    assert_true(size != 1 || pages == count_of(history));
    hf_buf_deinit(&back);
    hf_buf_deinit(&turned);
    return pages;
}

/* In memory, in rows of any length, and half of each. */
static const hf_core_options PLACES[] = {
    {.tail_len_max = 0},
    {.mem_max = 1, .tail_len_max = 1},
    {.mem_max = 1, .tail_len_max = 400},
    {.mem_max = 1, .tail_len_max = 1, .row_len_max = 1},
    {.mem_max = 1, .tail_len_max = 300, .row_len_max = 300},
};

#define LONG                                                                                                  \
    "start wf; poll; complete marker a, marker b, marker c, marker d; signal wf s; poll; complete marker e; " \
    "signal wf t; poll; complete marker f"

static void the_pages_turned_around_are_the_history(void **state)
{
    (void)state;
    static const size_t LENS[] = {1 << 20, 300, 1}; /* all of it, a few events, one */
    for (size_t i = 0; i < HF_COUNT_OF(PLACES); i++) {
        again(&PLACES[i]);
        hf_rig_do(&rig, LONG);
        for (int ends = 0; ends < 2; ends++) {
            for (size_t len = 0; len < HF_COUNT_OF(LENS); len++) {
                for (int32_t size = 0; size <= 3; size++) {
                    size_t pages = compare(size, LENS[len]);
                    assert_true(len == 0 && size == 0 ? pages == 1 : pages > 1);
                }
            }
            hf_rig_do(&rig, ends == 0 ? "signal wf u; poll; complete done" : "");
        }
        assert_true(hf_rig_probe(&rig, HF_PROBE_HISTORY_REVERSED) > 0);
    }
}

static void it_goes_on_where_it_began_whatever_follows(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; poll; complete timer t 1h");
    token_len = 0;
    keep_token(page_of("wf", 2)->next_page_token);
    hf_rig_do(&rig, "signal wf s; start wf conflict=3; crash");
    hf_buf out;
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    const hf_pb_get_workflow_execution_history_reverse_response *page = page_of("wf", 0);
    assert_non_null(page);
    hf_rig_history_text(page->history, true, &out);
    assert_string_equal(hf_buf_text(&out),
                        "3 WorkflowTaskStarted\n2 WorkflowTaskScheduled\n1 WorkflowExecutionStarted\n");
    assert_int_equal(page->next_page_token.len, 0);
    hf_buf_deinit(&out);
}

static void assert_refused(const char *id, const char *why)
{
    assert_null(page_of(id, 1));
    const hf_call *call = &hf_rig_slot(&rig, "h")->call;
    assert_int_equal(call->status, HF_ERR_INVALID);
    assert_non_null(strstr(call->message, why));
}

static const hf_call *forwards(hf_str token)
{
    hf_rig_call *slot = hf_rig_slot(&rig, "f");
    hf_pb_get_workflow_execution_history_request *request = HF_RIG_REQUEST(slot, get_workflow_execution_history);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = HF_STR("wf");
    request->maximum_page_size = 1;
    request->next_page_token = hf_arena_copy(&slot->request, token);
    hf_rig_send(&rig, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, request);
    return &slot->call;
}

static void its_tokens_are_of_no_other_use(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start wf; start other; poll");
    token_len = 0;
    keep_token(page_of("wf", 1)->next_page_token);
    assert_int_equal(token_len, HF_TOKEN_LEN);
    for (size_t i = 0; i < HF_TOKEN_LEN; i++) {
        token_kept[i] ^= 4;
        assert_refused("wf", "not issued by this store");
        token_kept[i] ^= 4;
    }
    assert_refused("other", "another history");
    hf_token token;
    assert_false(hf_token_decode(rig.core, hf_str_of_len(token_kept, token_len), &token));
    /* Nor for the same history in the other direction, and the other way round. */
    assert_int_equal(forwards(hf_str_of_len(token_kept, token_len))->status, HF_ERR_INVALID);
    keep_token(
        ((const hf_pb_get_workflow_execution_history_response *)forwards(HF_STR(""))->response)->next_page_token);
    assert_refused("wf", "not issued by this store");
}

static void rows_that_are_gone_are_told(void **state)
{
    (void)state;
    again(&PLACES[3]);
    hf_rig_do(&rig, LONG);
    lose_row(HF_TABLE_HISTORY);
    hf_rig_crash(&rig);
    rig.no_check = true;
    token_len = 0;
    assert_null(page_of("wf", 0));
    assert_int_equal(hf_rig_slot(&rig, "h")->call.status, HF_ERR_STORE);
    assert_non_null(page_of("wf", 3)); /* those before it are there */
}

static const struct CMUnitTest TESTS[] = {
    TEST(the_pages_turned_around_are_the_history),
    TEST(it_goes_on_where_it_began_whatever_follows),
    TEST(its_tokens_are_of_no_other_use),
    TEST(rows_that_are_gone_are_told),
};

int main(int argc, char **argv)
{
    return hf_test_main("reverse", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
