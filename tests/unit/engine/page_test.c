/* Histories that are longer than a page: workflow tasks whose rest is fetched, tokens, and what is read from the store. */
#include "engine/token.h"
#include "fixture.h"

#include <stdio.h>

static bool replays; /* pages are for somebody who executes the workflow */
static char token_kept[HF_TOKEN_LEN + 1];
static size_t token_len;

static void keep_token(hf_str token)
{
    assert_true(token.len <= sizeof token_kept);
    memcpy(token_kept, token.data != NULL ? token.data : "", token.len);
    token_len = token.len;
}

/* A page of `id`'s history, from the token that was kept on. */
static const hf_pb_get_workflow_execution_history_response *page_of(const char *id, int32_t size)
{
    hf_rig_call *slot = hf_rig_slot(&rig, "h");
    hf_pb_get_workflow_execution_history_request *request = HF_RIG_REQUEST(slot, get_workflow_execution_history);
    request->namespace = HF_STR(HF_RIG_NS);
    request->execution = HF_ARENA_NEW(&slot->request, hf_pb_workflow_execution);
    request->execution->workflow_id = hf_str_of(id);
    request->maximum_page_size = size;
    request->next_page_token = hf_arena_copy(&slot->request, hf_str_of_len(token_kept, token_len));
    slot->call.replays = replays;
    hf_rig_send(&rig, slot, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, request);
    return slot->done ? slot->call.response : NULL;
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

/* From the token that was kept to the end: pages, none longer than it may be. */
static size_t collect(const char *id, size_t len_max, hf_buf *out)
{
    size_t pages = 0;
    while (token_len > 0) {
        const hf_pb_get_workflow_execution_history_response *response = page_of(id, 0);
        assert_non_null(response);
        assert_true(response->history.len <= len_max || count_of(response->history) == 1 ||
                    (response->next_page_token.len == 0 && count_of(response->history) == 3)); /* a transient task's */
        hf_buf_put(out, response->history.data, response->history.len);
        keep_token(response->next_page_token);
        pages++;
    }
    return pages;
}

/* The history of the task in slot w as its worker puts it together, as text. */
static char *text_of_task(size_t len_max, size_t *ret_pages)
{
    static char text[8000];
    hf_buf history;
    hf_buf out;
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    const hf_pb_poll_workflow_task_queue_response *task = hf_rig_task(&rig, "w");
    hf_buf_put(&history, task->history.data, task->history.len);
    keep_token(task->next_page_token);
    *ret_pages = 1 + collect("wf", len_max, &history);
    hf_rig_history_text(hf_str_of_len(history.data, history.len), false, &out);
    (void)snprintf(text, sizeof text, "%s", hf_buf_text(&out));
    hf_buf_deinit(&history);
    hf_buf_deinit(&out);
    return text;
}

#define LONG_TASK                                         \
    FIRST_TASK "5 MarkerRecorded a\n6 MarkerRecorded b\n" \
               "7 MarkerRecorded c\n8 MarkerRecorded d\n" \
               "9 WorkflowExecutionSignaled s\n"          \
               "10 WorkflowTaskScheduled attempt=1\n"     \
               "11 WorkflowTaskStarted scheduled=10\n"

/* In memory, in rows of any length, and half of each. */
static const hf_core_options PLACES[] = {
    {.history_page_len = 300},
    {.history_page_len = 300, .mem_max = 1, .tail_len_max = 1},
    {.history_page_len = 300, .mem_max = 1, .tail_len_max = 400},
    {.history_page_len = 1, .mem_max = 1, .tail_len_max = 1},
    {.history_page_len = 1},
};

static void a_long_workflow_task_comes_in_pages(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(PLACES); i++) {
        hf_rig_close(&rig);
        hf_rig_open(&rig, PLACES[i]);
        hf_rig_do(&rig, "start wf; poll; complete marker a, marker b, marker c, marker d; signal wf s; poll");
        size_t pages = 0;
        assert_string_equal(text_of_task(PLACES[i].history_page_len, &pages), LONG_TASK);
        assert_true(pages > 1);
        assert_true(PLACES[i].history_page_len > 1 || pages == 11);
        assert_true(hf_rig_probe(&rig, HF_PROBE_HISTORY_PAGED) > 0);
    }
}

static void the_pages_of_a_transient_task_end_with_its_two_events(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(PLACES); i++) {
        hf_rig_close(&rig);
        hf_rig_open(&rig, PLACES[i]);
        hf_rig_do(&rig,
                  "start wf; poll; complete marker a, marker b, marker c, marker d; signal wf s; poll; fail; poll");
        size_t pages = 0;
        assert_string_equal(text_of_task(PLACES[i].history_page_len, &pages),
                            LONG_TASK "12 WorkflowTaskFailed scheduled=10 started=11 WorkflowWorkerUnhandledFailure\n"
                                      "13 WorkflowTaskScheduled attempt=2\n14 WorkflowTaskStarted scheduled=13\n");
        hf_rig_do(&rig, "complete done");
    }
}

/* The whole history as text, in pages of `size` events. */
static char *text_of_pages(int32_t size)
{
    static char text[8000];
    hf_buf history;
    hf_buf out;
    hf_buf_init(&history, hf_rig_heap, SIZE_MAX / 4);
    hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
    token_len = 0;
    do {
        const hf_pb_get_workflow_execution_history_response *response = page_of("wf", size);
        assert_non_null(response);
        hf_buf_put(&history, response->history.data, response->history.len);
        keep_token(response->next_page_token);
    } while (token_len > 0);
    hf_rig_history_text(hf_str_of_len(history.data, history.len), false, &out);
    (void)snprintf(text, sizeof text, "%s", hf_buf_text(&out));
    hf_buf_deinit(&history);
    hf_buf_deinit(&out);
    return text;
}

static char *text_for_replay(int32_t size)
{
    replays = true;
    char *text = text_of_pages(size);
    replays = false;
    return text;
}

#define FAILED_TASK LONG_TASK "12 WorkflowTaskFailed scheduled=10 started=11 WorkflowWorkerUnhandledFailure\n"

static void who_executes_a_workflow_sees_the_task_that_is_not_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(PLACES); i++) {
        hf_rig_close(&rig);
        hf_rig_open(&rig, PLACES[i]);
        hf_rig_do(&rig, "start wf; poll; complete marker a, marker b, marker c, marker d; signal wf s; poll; fail");
        assert_string_equal(text_for_replay(3), FAILED_TASK "13 WorkflowTaskScheduled attempt=2\n");
        hf_rig_do(&rig, "poll");
        assert_string_equal(text_for_replay(0),
                            FAILED_TASK "13 WorkflowTaskScheduled attempt=2\n14 WorkflowTaskStarted scheduled=13\n");
        assert_string_equal(text_of_pages(0), FAILED_TASK); /* others see what is written */
        hf_rig_do(&rig, "complete done");
        assert_null(strstr(text_for_replay(0), "16 WorkflowTaskScheduled"));
    }
    hf_rig_close(&rig);
    hf_rig_open(&rig, PLACES[0]);
    hf_rig_do(&rig, "start wf; poll; complete; update wf up");
    assert_string_equal(text_for_replay(0), FIRST_TASK "5 WorkflowTaskScheduled attempt=1\n");
    hf_rig_do(&rig, "poll");
    assert_string_equal(text_for_replay(0),
                        FIRST_TASK "5 WorkflowTaskScheduled attempt=1\n6 WorkflowTaskStarted scheduled=5\n");
    hf_rig_do(&rig, "complete reject up");
    assert_string_equal(text_for_replay(0), FIRST_TASK);
}

static void the_pages_of_a_task_end_where_the_task_began(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, PLACES[1]);
    hf_rig_do(&rig, "start wf; poll; complete marker a, marker b, marker c, marker d; signal wf s; poll;"
                    "time 10s; signal wf late; poll as=x; complete of=x marker e, done");
    size_t pages = 0;
    assert_string_equal(text_of_task(300, &pages), LONG_TASK);
    hf_rig_do(&rig, "complete done => not_found");
}

static void the_pages_of_a_failed_attempt_are_without_its_two_events(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, PLACES[0]);
    hf_rig_do(&rig, "start wf; poll; complete marker a, marker b, marker c, marker d; signal wf s; poll; fail; poll;"
                    "time 10s; poll as=x");
    size_t pages = 0;
    assert_string_equal(text_of_task(300, &pages),
                        LONG_TASK "12 WorkflowTaskFailed scheduled=10 started=11 WorkflowWorkerUnhandledFailure\n");
}

static void a_sticky_task_has_pages_from_where_its_worker_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(PLACES); i++) {
        hf_rig_close(&rig);
        hf_rig_open(&rig, PLACES[i]);
        hf_rig_do(&rig, "start wf; poll; complete sticky=s marker a, marker b, marker c, marker d;"
                        "poll queue=s as=s => parked; drop s; signal wf s; poll queue=s");
        size_t pages = 0;
        assert_string_equal(text_of_task(PLACES[i].history_page_len, &pages),
                            strchr(strstr(LONG_TASK, "3 "), '\n') + 1);
    }
}

static void a_history_goes_on_with_the_run_it_began_with(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        hf_rig_close(&rig);
        hf_rig_open(&rig, (hf_core_options){.mem_max = small ? 1 : 0});
        hf_rig_do(&rig, "start wf; poll; complete marker old, done");
        token_len = 0;
        const hf_pb_get_workflow_execution_history_response *response = page_of("wf", 4);
        assert_int_equal(count_of(response->history), 4);
        keep_token(response->next_page_token);
        hf_rig_do(&rig, "start wf; signal wf s; crash");
        hf_buf out;
        hf_buf_init(&out, hf_rig_heap, SIZE_MAX / 4);
        response = page_of("wf", 0);
        assert_non_null(response);
        hf_rig_history_text(response->history, false, &out);
        assert_string_equal(hf_buf_text(&out), "5 MarkerRecorded old\n6 WorkflowExecutionCompleted\n");
        assert_int_equal(response->next_page_token.len, 0);
        hf_buf_deinit(&out);
    }
}

static void assert_refused(const char *id, const char *why)
{
    (void)page_of(id, 0);
    const hf_call *call = &hf_rig_slot(&rig, "h")->call;
    assert_int_equal(call->status, HF_ERR_INVALID);
    assert_non_null(strstr(call->message, why));
}

static void only_tokens_that_were_given_out_are_taken(void **state)
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
    token_len = HF_TOKEN_LEN - 1;
    assert_refused("wf", "not issued by this store");
    token_len = HF_TOKEN_LEN;
    assert_refused("other", "another history");
    assert_non_null(page_of("wf", 1));
    /* A task's token is not one of a page, nor the other way round. */
    hf_token token;
    assert_false(hf_token_decode(rig.core, hf_str_of_len(token_kept, token_len), &token));
    keep_token(hf_rig_task(&rig, "w")->task_token);
    assert_refused("wf", "not issued by this store");
}

static void a_page_reads_no_more_of_the_store_than_it_holds(void **state)
{
    (void)state;
    hf_rig_close(&rig);
    hf_rig_open(&rig, (hf_core_options){.mem_max = 1, .tail_len_max = 1, .history_page_len = 1000});
    hf_rig_do(&rig, "start wf");
    for (int i = 0; i < 50; i++) {
        hf_rig_do(&rig, "poll; complete force marker m");
    }
    token_len = 0;
    keep_token(page_of("wf", 100)->next_page_token);
    for (size_t pages = 1; token_len > 0; pages++) {
        rig.hold = true;
        assert_null(page_of("wf", 100));
        size_t reads = 0;
        while (rig.read_count > 0) { /* the run itself, the row where the page begins, those that follow */
            const hf_store_request *request = rig.reads[0];
            bool history = request->table == HF_TABLE_HISTORY;
            assert_true(!history || (request->backwards && request->row_max == 1) ||
                        (request->len_max > 0 && request->len_max <= 1000));
            reads += history ? 1 : 0;
            assert_true(hf_rig_read(&rig));
        }
        assert_in_range(reads, 1, 2);
        rig.hold = false;
        assert_true(hf_rig_settle(&rig));
        const hf_call *call = &hf_rig_slot(&rig, "h")->call;
        assert_int_equal(call->status, HF_OK);
        keep_token(((hf_pb_get_workflow_execution_history_response *)call->response)->next_page_token);
    }
}

static const struct CMUnitTest TESTS[] = {
    TEST(a_long_workflow_task_comes_in_pages),
    TEST(the_pages_of_a_transient_task_end_with_its_two_events),
    TEST(who_executes_a_workflow_sees_the_task_that_is_not_written),
    TEST(the_pages_of_a_task_end_where_the_task_began),
    TEST(the_pages_of_a_failed_attempt_are_without_its_two_events),
    TEST(a_sticky_task_has_pages_from_where_its_worker_is),
    TEST(a_history_goes_on_with_the_run_it_began_with),
    TEST(only_tokens_that_were_given_out_are_taken),
    TEST(a_page_reads_no_more_of_the_store_than_it_holds),
};

int main(int argc, char **argv)
{
    return hf_test_main("page", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
