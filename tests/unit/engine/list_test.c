/* Lists and counts of runs: they see all that was decided, in memory and in rows, page after page; nobody else's page, and no run that is
 * being deleted. */
#include "engine/lister.h"
#include "engine/namespaces.h"
#include "fixture.h"
#include "inspect/find.h"
#include "support/engine_list.h"

#include <stdio.h>
#include <stdlib.h>

/* The ids that a query finds, joined by '+'; "..." behind them: there is another page. */
static const char *ids(const char *query)
{
    static char text[4000];
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_list_workflow_executions_request *request = HF_RIG_REQUEST(slot, list_workflow_executions);
    hf_buf out;
    request->namespace = HF_STR(HF_RIG_NS);
    request->query = hf_str_of(query);
    hf_rig_send(&rig, slot, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, request);
    assert_true(slot->done);
    if (slot->call.status != HF_OK) {
        return slot->call.message;
    }
    hf_buf_init(&out, hf_rig_heap, sizeof text - 1);
    assert_true(hf_rig_list_text(slot, &out));
    (void)snprintf(text, sizeof text, "%s", hf_buf_text(&out));
    hf_buf_deinit(&out);
    return text;
}

/* Runs in memory and not, journals that are cut and not. */
static const hf_core_options OPTIONS[] = {
    {.mem_max = 0},
    {.mem_max = 1, .trim_count = 1, .tail_len_max = 1, .part_len_min = 1},
    {.mem_max = 1, .trim_count = 100000},
};

static void reopen_with(const hf_core_options *options)
{
    hf_rig_close(&rig);
    hf_rig_open(&rig, *options);
}

static void engine_S1_lists_see_runs_in_memory_and_in_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        reopen_with(&OPTIONS[i]);
        assert_string_equal(ids(""), "");
        hf_rig_do(&rig, "start a; poll; complete done; start b; start c attrs=K:v; count says=3");
        assert_string_equal(ids(""), "c+b+a");
        assert_string_equal(ids("ExecutionStatus = 'Running'"), "c+b");
        assert_string_equal(ids("ExecutionStatus != 'Running'"), "a");
        assert_string_equal(ids("ORDER BY WorkflowId"), "a+b+c");
        assert_string_equal(ids("ORDER BY CloseTime, WorkflowId DESC"), "a+c+b");
        assert_string_equal(ids("WorkflowId IN ('a', 'c')"), "c+a");
        hf_rig_do(&rig, "terminate b; count query=GROUP_BY_ExecutionStatus says=3+Running:1+Completed:1+Terminated:1");
        hf_rig_crash(&rig);
        assert_string_equal(ids("CloseTime IS NOT NULL"), "b+a");
        hf_rig_do(&rig, "list query=StartTime_>_0 says=c+b+a; list ns=other says=; count ns=other says=0");
    }
}

static void every_run_is_on_one_page(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        reopen_with(&OPTIONS[i]);
        hf_rig_do(&rig, "start a; start b; poll; complete done; start c; start d; start e");
        hf_rig_do(&rig, "list page=2 says=e+d...; list page=2 more says=c+b...; list page=2 more says=a");
        hf_rig_do(&rig, "list page=5 says=e+d+c+b+a");
        hf_rig_do(
            &rig,
            "list page=3 query=ORDER_BY_WorkflowId says=a+b+c...; list page=3 query=ORDER_BY_WorkflowId more says=d+e");
        /* Runs that come meanwhile are newer than the page. */
        hf_rig_do(&rig, "list page=2 says=e+d...; start f; list page=2 more says=c+b...");
        hf_rig_do(&rig, "scan page=3 says=f+e+d...; scan page=3 more says=c+b+a");
        hf_rig_do(&rig, "listopen says=f+e+d+c+b; listclosed says=a; listopen id=c says=c; listclosed status=3 says=; "
                        "listclosed type=T says=");
    }
}

static void engine_S3_a_page_token_is_for_one_query(void **state)
{
    static const char *const WRONG[] = {"list page=2 more ns=other => invalid",
                                        "list page=2 more query=WorkflowId='a' => invalid",
                                        "scan page=2 more => invalid"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(WRONG); i++) {
        hf_rig_do(&rig, "start a conflict=2; start b conflict=2; start c conflict=2; list page=2 says=c+b...");
        hf_rig_do(&rig, WRONG[i]);
        assert_non_null(strstr(hf_rig_slot(&rig, NULL)->call.message, "belongs to another query or another namespace"));
    }
    assert_int_equal(hf_rig_probe(&rig, HF_PROBE_LIST_TOKEN_OF_OTHER), HF_COUNT_OF(WRONG));
    /* Each byte counts. */
    hf_rig_do(&rig, "list page=2");
    const hf_pb_list_workflow_executions_response *response = hf_rig_slot(&rig, NULL)->call.response;
    char token[100];
    size_t len = response->next_page_token.len;
    assert_true(len > 0 && len < sizeof token);
    memcpy(token, response->next_page_token.data, len);
    for (size_t i = 0; i <= len; i++) {
        hf_rig_call *slot = hf_rig_slot(&rig, NULL);
        hf_pb_list_workflow_executions_request *request = HF_RIG_REQUEST(slot, list_workflow_executions);
        request->namespace = HF_STR(HF_RIG_NS);
        request->page_size = 2;
        if (i < len) {
            token[i] ^= 1;
        }
        request->next_page_token = hf_str_of_len(token, len);
        hf_rig_send(&rig, slot, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, request);
        assert_int_equal(slot->call.status, i < len ? HF_ERR_INVALID : HF_OK);
        if (i < len) {
            token[i] ^= 1;
        }
    }
}

/* engine-S2: more rows and runs than one step takes. */
static void engine_S2_long_lists_come_in_steps(void **state)
{
    (void)state;
    for (int cold = 0; cold < 2; cold++) {
        reopen_with(&(hf_core_options){.mem_max = cold != 0 ? 1 : 0});
        rig.no_check = true;
        char step[40];
        int count = 2 * HF_LIST_ROWS_MAX + 10;
        for (int i = 0; i < count; i++) {
            (void)snprintf(step, sizeof step, "start w%d", i);
            hf_rig_do(&rig, step);
        }
        (void)snprintf(step, sizeof step, "count says=%d", count);
        hf_rig_do(&rig, step);
        hf_rig_do(&rig, "count query=WorkflowId='w5' says=1; list page=1 query=ORDER_BY_WorkflowId says=w0...");
        assert_true(cold == 0 || hf_rig_probe(&rig, HF_PROBE_LIST_STEPPED) > 0);
        /* Backwards: each run takes the place of another, and the page is tidied again and again. */
        hf_rig_do(&rig, "list page=3 query=ORDER_BY_WorkflowId says=w0+w1+w10...");
        hf_rig_do(&rig, "list page=3 query=ORDER_BY_WorkflowId more says=w100+w1000+w1001...");
    }
}

/* A run that leaves memory or ends while a list is under way is on it once. */
static void runs_that_move_are_listed_once(void **state)
{
    (void)state;
    hf_rig_do(&rig, "start a; start b; start c; poll as=x; poll as=y; poll as=z");
    rig.hold = true; /* the list has looked at memory, and waits for rows */
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_list_workflow_executions_request *request = HF_RIG_REQUEST(slot, list_workflow_executions);
    request->namespace = HF_STR(HF_RIG_NS);
    hf_rig_submit(&rig, slot, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, request);
    assert_false(slot->done);
    rig.hold = false;
    (void)hf_rig_settle(&rig);
    hf_buf out;
    hf_buf_init(&out, hf_rig_heap, 1000);
    assert_true(hf_rig_list_text(slot, &out));
    assert_string_equal(hf_buf_text(&out), "c+b+a");
    hf_buf_deinit(&out);
}

static void custom_attributes_have_types(void **state)
{
    (void)state;
    hf_rig_do(&rig, "addattr Count type=Int; addattr Color; addattr Tags type=KeywordList; addattr Text type=Text; "
                    "addattr Flag type=Bool;"
                    "addattr At type=Datetime; addattr Size type=Double");
    hf_rig_do(&rig, "start a attrs=Count:7+Color:red+Size:1.5; start b attrs=Count:2+Color:blue; start c");
    assert_string_equal(ids("Count > 2"), "a");
    assert_string_equal(ids("Count < 7"), "b");
    assert_string_equal(ids("Count != 7"), "c+b");
    assert_string_equal(ids("Color STARTS_WITH 'bl' OR Count = 7"), "b+a");
    assert_string_equal(ids("Size BETWEEN 1 AND 2"), "a");
    assert_string_equal(ids("ORDER BY Count DESC, WorkflowId"), "a+b+c");
    assert_string_equal(
        ids("Count = 'x'"),
        "the filter is wrong at column 9: Count is a Int and is compared with a whole number of 64 bits, not with 'x'");
    assert_non_null(strstr(ids("Nothing = 1"), "at column 1: Nothing is not a search attribute"));
    hf_rig_do(
        &rig,
        "removeattr Color; removeattr Color => not_found; addattr Count type=Int; addattr Count type=Text => exists;"
        "addattr WorkflowId => exists; addattr Odd type=Wrong => invalid; addattr Color type=Int");
    assert_string_equal(ids("Color > 0"), "");
    hf_rig_do(&rig, "crash; count query=Count_>_0 says=2; start d attrs=Count:word => invalid; start d "
                    "attrs=StartTime:1 => invalid");
    assert_non_null(strstr(hf_rig_slot(&rig, NULL)->call.message, "'StartTime'"));
    /* SDKs may write a value as a list of one. */
    hf_rig_do(&rig, "start d attrs=Count:[11]+Text:[\"some_words\"]; start e attrs=Count:[1,2] => invalid;"
                    "start e attrs=Count:[\"word\"] => invalid");
    assert_string_equal(ids("Count > 7"), "d");
}

static void namespaces_are_registered(void **state)
{
    (void)state;
    reopen_with(&(hf_core_options){.is_strict = true});
    hf_rig_do(&rig, "start a => not_found; namespace default");
    hf_rig_call *slot = hf_rig_step(&rig, "list");
    assert_int_equal(slot->call.status, HF_ERR_NOT_FOUND);
    assert_ptr_equal(slot->call.detail_type, &hf_pb_namespace_not_found_failure_type);
    assert_true(hf_str_equal(((const hf_pb_namespace_not_found_failure *)slot->call.detail)->namespace, HF_STR("ns")));
    hf_rig_do(&rig, "register ns describe=mine retention=24h; register ns => exists; start a; start b attrs=K:v => "
                    "invalid; count says=1;"
                    "addattr K; start b attrs=K:v");
    assert_string_equal(ids("K = 'v'"), "b");
    for (int i = 0; i < 2; i++) {
        hf_rig_do(&rig, "namespace ns");
        const hf_pb_describe_namespace_response *response = hf_rig_slot(&rig, NULL)->call.response;
        assert_true(hf_str_equal(response->namespace_info->description, HF_STR("mine")));
        assert_int_equal(response->namespace_info->state, HF_NAMESPACE_STATE_REGISTERED);
        assert_true(hf_pb_duration_span(response->config->workflow_execution_retention_ttl).ns == hf_rig_span("24h"));
        hf_rig_do(&rig, "crash; count says=2; start b conflict=2 attrs=X:v => invalid");
    }
    hf_rig_do(&rig, "nsupdate ns describe=yours data=d retention=2h; deprecate ns; crash; namespace ns");
    const hf_pb_describe_namespace_response *response = hf_rig_slot(&rig, NULL)->call.response;
    assert_true(hf_str_equal(response->namespace_info->description, HF_STR("yours")));
    assert_int_equal(response->namespace_info->state, HF_NAMESPACE_STATE_DEPRECATED);
    assert_int_equal(response->namespace_info->data.count, 1);
    hf_rig_do(&rig, "namespaces page=1");
    const hf_pb_list_namespaces_response *list = hf_rig_slot(&rig, NULL)->call.response;
    assert_int_equal(list->namespaces.count, 1);
    assert_true(hf_str_equal(list->namespaces.items[0].namespace_info->name, HF_STR("default")));
    assert_true(list->next_page_token.len > 0);
    hf_rig_do(&rig, "namespaces page=1 token=1");
    list = hf_rig_slot(&rig, NULL)->call.response;
    assert_true(list->namespaces.count == 1 && list->next_page_token.len == 0);
    hf_rig_do(&rig, "namespaces token=x => invalid; nsupdate none => not_found; deprecate none => not_found; list "
                    "ns=none => not_found");
}

/* A start with so many attributes, K0 and following, of so many bytes each. */
static hf_status start_with(size_t count, size_t len)
{
    static char text[3000];
    static char names[HF_ATTRIBUTES_MAX][24];
    static hf_pb_payload payload;
    static hf_pb_search_attributes_indexed_fields_entry entries[HF_ATTRIBUTES_MAX];
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_start_workflow_execution_request *request = HF_RIG_REQUEST(slot, start_workflow_execution);
    hf_pb_workflow_type type = {.name = HF_STR("T")};
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    hf_pb_search_attributes attributes = {.indexed_fields = {entries, count}};
    memset(text, 'x', sizeof text);
    text[0] = text[len - 1] = '"';
    payload = (hf_pb_payload){.data = hf_str_of_len(text, len)};
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[i], "K%zu", i);
        entries[i] = (hf_pb_search_attributes_indexed_fields_entry){.key = hf_str_of(names[i]), .value = &payload};
    }
    request->namespace = HF_STR(HF_RIG_NS);
    request->workflow_id = HF_STR("w");
    request->workflow_type = &type;
    request->task_queue = &queue;
    request->workflow_id_conflict_policy = HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING;
    request->search_attributes = &attributes;
    hf_rig_send(&rig, slot, HF_METHOD_START_WORKFLOW_EXECUTION, request);
    assert_true(slot->done);
    return slot->call.status;
}

static void start_big(const char *workflow_id, size_t memo_len)
{
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_start_workflow_execution_request *request = HF_RIG_REQUEST(slot, start_workflow_execution);
    hf_pb_workflow_type type = {.name = HF_STR("T")};
    hf_pb_task_queue queue = {.name = HF_STR("q")};
    char *bytes = calloc(1, memo_len);
    hf_pb_payload payload = {.data = hf_str_of_len(bytes, memo_len)};
    hf_pb_memo_fields_entry entry = {.key = HF_STR("k"), .value = &payload};
    hf_pb_memo memo = {.fields = {&entry, 1}};
    assert_non_null(bytes);
    request->namespace = HF_STR(HF_RIG_NS);
    request->workflow_id = hf_str_of(workflow_id);
    request->workflow_type = &type;
    request->task_queue = &queue;
    request->memo = &memo;
    hf_rig_send(&rig, slot, HF_METHOD_START_WORKFLOW_EXECUTION, request);
    assert_int_equal(slot->call.status, HF_OK);
    free(bytes);
}

/* The ids of all pages. No page has more bytes than it may have, and there are several. */
static const char *all_pages(const char *query)
{
    static char text[200];
    char token[4000];
    size_t len = 0;
    int pages = 0;
    text[0] = '\0';
    do {
        hf_rig_call *slot = hf_rig_slot(&rig, NULL);
        hf_pb_list_workflow_executions_request *request = HF_RIG_REQUEST(slot, list_workflow_executions);
        size_t bytes = 0;
        request->namespace = HF_STR(HF_RIG_NS);
        request->query = hf_str_of(query);
        request->next_page_token = hf_str_of_len(token, len);
        hf_rig_send(&rig, slot, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, request);
        assert_int_equal(slot->call.status, HF_OK);
        const hf_pb_list_workflow_executions_response *page = slot->call.response;
        for (size_t i = 0; i < page->executions.count; i++) {
            const hf_pb_workflow_execution_info *run = &page->executions.items[i];
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s ",
                           HF_STR_ARGS(run->execution->workflow_id));
            bytes += run->memo->fields.count > 0 ? run->memo->fields.items[0].value->data.len : 0;
        }
        assert_true(page->executions.count > 0 && bytes <= HF_LIST_PAGE_LEN);
        len = page->next_page_token.len;
        assert_true(len <= sizeof token);
        if (len > 0) {
            memcpy(token, page->next_page_token.data, len);
        }
        pages++;
    } while (len > 0);
    assert_true(pages >= 3);
    return text;
}

/* A page is bounded in bytes, too, and no run is lost between two pages. */
static void runs_with_large_memos_make_short_pages(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        reopen_with(&OPTIONS[i]);
        start_big("a", 900 << 10);
        start_big("b", 900 << 10);
        start_big("c", 900 << 10);
        hf_rig_do(&rig, "start d");
        start_big("e", (2 << 20) - 100);
        assert_string_equal(all_pages(""), "e d c b a ");
        assert_string_equal(all_pages("ORDER BY WorkflowId"), "a b c d e ");
    }
}

static void attributes_are_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < HF_ATTRIBUTES_MAX; i++) {
        char step[40];
        (void)snprintf(step, sizeof step, "addattr K%d", i);
        hf_rig_do(&rig, step);
    }
    hf_rig_do(&rig, "addattr More => limit; removeattr K99; addattr More; removeattr More; addattr K99");
    static const struct {
        size_t len;
        size_t count;
        hf_status expected;
    } ROWS[] = {
        {2048, 1, HF_OK}, {2049, 1, HF_ERR_INVALID}, {2048, 19, HF_OK}, {2048, 20, HF_ERR_INVALID}, {10, 100, HF_OK}};
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        print_message("%zu times %zu bytes\n", ROWS[i].count, ROWS[i].len);
        assert_int_equal(start_with(ROWS[i].count, ROWS[i].len), ROWS[i].expected);
    }
}

/* run-S1 */
static void run_S1_a_row_tells_as_much_as_the_run(void **state)
{
    (void)state;
    hf_rig_do(&rig, "addattr K; start p; poll; complete child c attrs=K:v memo=m:1; poll as=x; start q delay=1h");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(ids("ParentWorkflowId = 'p'"), "c");
        assert_string_equal(ids("RootWorkflowId = 'p'"), "c+p");
        assert_string_equal(ids("RootWorkflowId = 'q'"), "q");
        assert_string_equal(ids("K = 'v'"), "c");
        assert_string_equal(ids("ExecutionTime > '1970-01-01T00:30:00Z' AND WorkflowId = 'q'"), "q");
        assert_string_equal(ids("TaskQueue = 'q' AND WorkflowType != ''"), "q+c+p");
        rig.core->options.mem_max = 1; /* all runs become rows */
        hf_rig_do(&rig, "start z; terminate z; delete z");
    }
    assert_int_equal(rig.core->runs.count <= 3, true);
}

static void deleted_runs_are_not_listed(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        reopen_with(&OPTIONS[i]);
        hf_rig_do(&rig, "start a; poll; complete done; start b; poll; complete done; delete a; list says=b; count "
                        "says=1; crash; list says=b");
    }
}

static bool join(void *arg, const hf_pb_workflow_execution_info *run)
{
    hf_buf *out = arg;
    hf_buf_putf(out, "%s%.*s", out->len > 0 ? "+" : "", HF_STR_ARGS(run->execution->workflow_id));
    return true;
}

/* What a tool finds in the same store. */
static void assert_same_at_rest(const char *query)
{
    hf_op op;
    hf_look *look = NULL;
    hf_buf out;
    hf_op_init(&op);
    hf_buf_init(&out, hf_rig_heap, 4000);
    hf_find find = {.namespace_ = HF_STR(HF_RIG_NS), .query = hf_str_of(query), .visit = join, .arg = &out};
    assert_int_equal(hf_look_open(&op, hf_rig_heap, rig.store, &look), HF_OK);
    hf_status status = hf_find_runs(&op, look, rig.store, hf_rig_heap, &find);
    const char *said = ids(query);
    print_message("%s: %s\n", query, said);
    assert_string_equal(said, status == HF_OK ? hf_buf_text(&out) : op.message);
    if (status == HF_OK && strstr(query, "ORDER") == NULL) {
        uint64_t all = 0;
        find = (hf_find){.namespace_ = HF_STR(HF_RIG_NS), .query = hf_str_of(query)};
        assert_int_equal(hf_find_runs(&op, look, rig.store, hf_rig_heap, &find), HF_OK);
        for (int i = 0; i < HF_FIND_STATUS_COUNT; i++) {
            all += find.counts[i];
        }
        size_t listed = said[0] != '\0' ? 1 : 0;
        for (const char *at = said; *at != '\0'; at++) {
            listed += *at == '+';
        }
        assert_int_equal(all, listed);
    }
    hf_look_close(look);
    hf_buf_deinit(&out);
}

#define PAUSED "TemporalPauseInfo"

/* The attribute as a list shows it with the only run that a query finds. */
static const char *shown_paused(const char *query)
{
    static char text[200];
    hf_rig_call *slot = hf_rig_slot(&rig, NULL);
    hf_pb_list_workflow_executions_request *request = HF_RIG_REQUEST(slot, list_workflow_executions);
    request->namespace = HF_STR(HF_RIG_NS);
    request->query = hf_str_of(query);
    hf_rig_send(&rig, slot, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, request);
    assert_true(slot->done && slot->call.status == HF_OK);
    const hf_pb_list_workflow_executions_response *response = slot->call.response;
    assert_int_equal(response->executions.count, 1);
    const hf_pb_search_attributes *attributes = response->executions.items[0].search_attributes;
    size_t count = 0;
    for (size_t i = 0; attributes != NULL && i < attributes->indexed_fields.count; i++) {
        if (hf_str_equal(attributes->indexed_fields.items[i].key, HF_STR(PAUSED))) {
            (void)snprintf(text, sizeof text, "%.*s", HF_STR_ARGS(attributes->indexed_fields.items[i].value->data));
            count++;
        }
    }
    assert_true(count <= 1);
    return count == 1 ? text : "";
}

/* Types of activities, each once, while one of them is paused: also if the run is only a row, and if its code has set the attribute. */
static void paused_activities_are_a_search_attribute(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        reopen_with(&OPTIONS[i]);
        hf_rig_do(&rig, "addattr K; start a attrs=K:v+" PAUSED
                        ":mine; start b; poll; complete activity a1 act=two, activity a2 act=one, "
                        "activity a3 act=one, activity a4; poll; complete activity a1 act=one");
        assert_string_equal(ids(PAUSED " = 'property:activityType=one'"), "");
        hf_rig_do(&rig, "apause a a1; apause a a2; apause a a3; apause b a1");
        for (int round = 0; round < 2; round++) {
            assert_string_equal(ids(PAUSED " = 'property:activityType=one'"), "b+a");
            assert_string_equal(ids(PAUSED " = 'property:activityType=two'"), "a");
            assert_string_equal(ids(PAUSED " = 'property:activityType=act'"), "");
            assert_string_equal(ids(PAUSED " IS NULL"), "");
            assert_string_equal(ids("K = 'v'"), "a");
            assert_string_equal(shown_paused("WorkflowId = 'a'"),
                                "[\"property:activityType=one\",\"property:activityType=two\"]");
            assert_same_at_rest(PAUSED " = 'property:activityType=two'");
            hf_rig_crash(&rig);
        }
        hf_rig_do(&rig, "aunpause a a1; aunpause a a2; aunpause b a1");
        assert_string_equal(ids(PAUSED " = 'property:activityType=one'"), "a");
        assert_string_equal(shown_paused("WorkflowId = 'b'"), "");
        hf_rig_do(&rig, "aunpause a a3");
        assert_string_equal(ids(PAUSED " = 'property:activityType=one'"), "");
        assert_string_equal(ids(PAUSED " = 'mine'"), "a");
        hf_rig_do(&rig, "apause b a1; terminate b");
        assert_string_equal(ids(PAUSED " = 'property:activityType=one'"), "");
    }
}

static void a_tool_finds_the_same_in_a_store_at_rest(void **state)
{
    static const char *const QUERIES[] = {"",
                                          "ExecutionStatus = 'Running'",
                                          "Count > 2 OR CloseTime IS NOT NULL",
                                          "ORDER BY WorkflowId DESC",
                                          "ORDER BY Count, CloseTime DESC",
                                          "WorkflowId = 'none'",
                                          "Wrong = 1",
                                          "Count = 'x'"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(OPTIONS); i++) {
        reopen_with(&OPTIONS[i]);
        hf_rig_do(&rig, "addattr Count type=Int; start a attrs=Count:7; start b; poll; complete done; start c "
                        "attrs=Count:1; start d;"
                        "terminate d; start e; terminate e; delete e; start x ns=other");
        for (size_t q = 0; q < HF_COUNT_OF(QUERIES); q++) {
            assert_same_at_rest(QUERIES[q]);
        }
    }
}

/* engine-S4, with names in the table, in memory and in neither; with runs in blocks and not; and with names that are alike. */
static void engine_S4_current_runs_are_the_newest_of_their_ids(void **state)
{
    static const hf_core_options CASES[] = {
        {.block_size = 4},
        {.block_size = 4, .mem_max = 1, .names_max = 1, .list_step_max = 1, .trim_count = 1},
        {.block_size = 4, .mem_max = 1, .name_bits_off = HF_NAME_BITS},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        reopen_with(&CASES[i]);
        hf_rig_do(&rig, "start a; start b; terminate a; start c; terminate c; start a; terminate a; start d");
        hf_rig_do(&rig, "start c; list current says=b+a+d+c; start e; terminate e; start e ns=other");
        hf_rig_do(&rig, "list current query=ExecutionStatus='Running' says=b+d+c");
        /* Later pages leave out what the first one did: a run that began meanwhile is on none, and its id still is. */
        hf_rig_do(&rig, "list current page=2 says=c+e...; start b2; start a; list current page=2 more says=a+d...");
        hf_rig_do(&rig, "list current page=2 more says=b; list current query=ORDER_BY_StartTime => invalid");
        for (int n = 0; n < 200; n++) { /* blocks */
            rig.now.wall += HF_HOUSE_PACE;
            rig.now.mono += HF_HOUSE_PACE;
            hf_rig_settle(&rig);
        }
        hf_rig_do(&rig, "list current says=b+d+c+e+b2+a; delete a; list current says=b+d+c+e+b2");
        hf_rig_crash(&rig);
        hf_rig_do(&rig,
                  "list current says=b+d+c+e+b2; count query=WorkflowId='a' says=2; list current ns=other says=e");
    }
}

/* A store whose reads within a step of a list fail, or return damaged rows. */
static struct {
    hf_store store;
    bool damages;
    hf_store *inner;
    hf_store_verb verb;
    hf_table table;
    uint64_t failed;
} faulty;

static hf_status faulty_execute(hf_store *store, hf_store_request *request)
{
    (void)store;
    if (request->look == NULL && request->verb == faulty.verb && request->table == faulty.table) {
        faulty.failed++;
        if (faulty.damages) {
            hf_status status = faulty.inner->ops->execute(faulty.inner, request);
            request->value.len -= request->value.len > 0 ? 1 : 0;
            return status;
        }
        return hf_fail(&request->op, HF_ERR_IO, "a fault");
    }
    return faulty.inner->ops->execute(faulty.inner, request);
}

static uint64_t faulty_last_commit(hf_store *store)
{
    (void)store;
    return faulty.inner->ops->last_commit(faulty.inner);
}

static void use_faulty(hf_store_verb verb, hf_table table, bool damages)
{
    static const hf_store_ops OPS = {"faulty", faulty_execute, faulty_last_commit, NULL};
    faulty.store.ops = &OPS;
    faulty.inner = rig.store;
    faulty.verb = verb;
    faulty.table = table;
    faulty.damages = damages;
    faulty.failed = 0;
    rig.store = &faulty.store;
}

/* engine-E2. A list that goes on without such a row leaves out a run, or has one that is not the current one of its id. */
static void a_list_fails_if_a_read_within_its_step_does(void **state)
{
    static const struct {
        hf_store_verb verb;
        hf_table table;
        const char *list;
    } CASES[] = {
        {HF_STORE_SCAN, HF_TABLE_RUN, "list says=b+a+a"},
        {HF_STORE_GET, HF_TABLE_RUN, "list current says=a+b"},
        {HF_STORE_SCAN, HF_TABLE_NAME, "list current says=a+b"},
        {HF_STORE_SCAN, HF_TABLE_HISTORY, "list query=K='v' says=b"}, /* its attributes have a row of their own */
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        reopen_with(&(hf_core_options){.mem_max = 1, .names_max = 1, .trim_count = 1, .part_len_min = 1});
        hf_rig_do(&rig, "addattr K; start a; terminate a; start a; start b attrs=K:v; crash; signal b s");
        hf_rig_do(&rig, CASES[i].list);
        use_faulty(CASES[i].verb, CASES[i].table, false);
        rig.may_break = true;
        hf_status status = hf_rig_try(&rig, CASES[i].list);
        rig.store = faulty.inner;
        print_message("%s without %s: %s\n", CASES[i].list, hf_table_info_of(CASES[i].table)->name,
                      hf_status_name(hf_core_status(rig.core)));
        assert_true(faulty.failed > 0);
        assert_int_equal(status, HF_ERR_AGAIN); /* it was not answered */
        assert_int_equal(hf_core_status(rig.core), HF_ERR_IO);
        hf_rig_crash(&rig);
        rig.may_break = false;
        hf_rig_do(&rig, CASES[i].list);
    }
}

/* Seed 70320194: the newest run of an id was listed from memory, and the one before it because the row of the newest was damaged. */
static void engine_S4_a_damaged_row_does_not_make_an_older_run_the_current_one(void **state)
{
    (void)state;
    reopen_with(&(hf_core_options){.mem_max = 1, .names_max = 1, .trim_count = 1});
    hf_rig_do(&rig, "start a; terminate a; start a; start b; crash; signal b s; list current says=a+b");
    use_faulty(HF_STORE_GET, HF_TABLE_RUN, true);
    hf_status status = hf_rig_try(&rig, "list current says=a+b");
    rig.store = faulty.inner;
    assert_true(faulty.failed > 0);
    assert_int_equal(status, HF_OK);
}

/* A list with a hole would look complete. */
static void a_tool_without_memory_has_no_list(void **state)
{
    (void)state;
    hf_rig_do(&rig, "addattr K; start a attrs=K:v; start b; start c attrs=K:v; crash");
    static const char *const QUERIES[] = {"K = 'v'", "K IS NULL", "ORDER BY K, WorkflowId", ""};
    for (size_t i = 0; i < HF_COUNT_OF(QUERIES); i++) {
        char expected[100] = "";
        for (uint64_t nth = 0;; nth++) { /* the first time nothing fails */
            hf_op op;
            hf_op_init(&op);
            hf_look *look = NULL;
            hf_buf out;
            hf_buf_init(&out, hf_rig_heap, 100);
            hf_find find = {
                .namespace_ = HF_STR(HF_RIG_NS), .query = hf_str_of(QUERIES[i]), .visit = join, .arg = &out};
            rig.allocations = 0;
            rig.fail_at = nth;
            hf_status status = hf_look_open(&op, rig.options.memory, rig.store, &look);
            status = status == HF_OK ? hf_find_runs(&op, look, rig.store, rig.options.memory, &find) : status;
            hf_look_close(look);
            rig.fail_at = 0;
            if (nth == 0) {
                (void)snprintf(expected, sizeof expected, "%s", hf_buf_text(&out));
            }
            bool has_failed = nth > 0 && nth <= rig.allocations;
            assert_int_equal(status, has_failed ? HF_ERR_NOMEM : HF_OK);
            assert_true(has_failed || strcmp(hf_buf_text(&out), expected) == 0);
            hf_buf_deinit(&out);
            if (nth > 0 && !has_failed) {
                print_message("%s: %s, %llu allocations\n", QUERIES[i], expected, (unsigned long long)nth - 1);
                break;
            }
        }
    }
}

static const struct CMUnitTest TESTS[] = {
    TEST(engine_S1_lists_see_runs_in_memory_and_in_rows),
    TEST(every_run_is_on_one_page),
    TEST(engine_S3_a_page_token_is_for_one_query),
    TEST(engine_S2_long_lists_come_in_steps),
    TEST(runs_that_move_are_listed_once),
    TEST(custom_attributes_have_types),
    TEST(namespaces_are_registered),
    TEST(attributes_are_bounded),
    TEST(runs_with_large_memos_make_short_pages),
    TEST(run_S1_a_row_tells_as_much_as_the_run),
    TEST(paused_activities_are_a_search_attribute),
    TEST(deleted_runs_are_not_listed),
    TEST(a_tool_finds_the_same_in_a_store_at_rest),
    TEST(engine_S4_current_runs_are_the_newest_of_their_ids),
    TEST(a_list_fails_if_a_read_within_its_step_does),
    TEST(engine_S4_a_damaged_row_does_not_make_an_older_run_the_current_one),
    TEST(a_tool_without_memory_has_no_list),
};

int main(int argc, char **argv)
{
    return hf_test_main("list", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
