/* Lists and counts, on the core's thread: calls, steps and answers. See lister.h. */
#include "engine/lister.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/input_private.h"
#include "engine/namespaces.h"
#include "engine/token.h"
#include "history/payload.h"
#include "ledger/blocks.h"
#include "ledger/run_id.h"

#include <stdio.h>

/* ---- What is asked for ------------------------------------------------------------------------------------------------- */

/* A list as all five methods ask for it. */
typedef struct list_wish {
    hf_str namespace_;
    hf_str query;
    hf_str token;
    int32_t page_size;
    bool is_count;
    bool is_current;
} list_wish;

/* The older lists have filters of their own. They become a query: one test for each that is set. */
static void put_test(hf_buf *out, const char *name, hf_str text)
{
    hf_buf_puts(out, out->len > 0 ? " AND " : "");
    hf_buf_putf(out, "%s = '", name);
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\'' || text.data[i] == '\\') {
            hf_buf_putc(out, '\\');
        }
        hf_buf_putc(out, text.data[i]);
    }
    hf_buf_putc(out, '\'');
}

static void put_time(hf_buf *out, const char *sign, hf_pb_timestamp at)
{
    if (at.has) {
        hf_buf_puts(out, out->len > 0 ? " AND " : "");
        hf_buf_putf(out, "StartTime %s %lld", sign, (long long)hf_pb_timestamp_time(at).ns);
    }
}

static void put_filters(hf_buf *out, const hf_pb_start_time_filter *time,
                        const hf_pb_workflow_execution_filter *execution, const hf_pb_workflow_type_filter *type,
                        const hf_pb_status_filter *status)
{
    if (time != NULL) {
        put_time(out, ">=", time->earliest_time);
        put_time(out, "<=", time->latest_time);
    }
    if (execution != NULL && execution->workflow_id.len > 0) {
        put_test(out, "WorkflowId", execution->workflow_id);
    }
    if (execution != NULL && execution->run_id.len > 0) {
        put_test(out, "RunId", execution->run_id);
    }
    if (type != NULL) {
        put_test(out, "WorkflowType", type->name);
    }
    if (status != NULL) {
        put_test(out, "ExecutionStatus", hf_str_of(hf_run_status_name(status->status)));
    }
}

/* The query lies in `text`, if the call has none of its own. */
static list_wish wish_of(const hf_call *call, hf_buf *text)
{
    if (call->method == HF_METHOD_LIST_WORKFLOW_EXECUTIONS) {
        REQUEST(list_workflow_executions);
        return (list_wish){request->namespace, request->query, request->next_page_token,
                           request->page_size, false,          request->holdfast_current};
    }
    if (call->method == HF_METHOD_SCAN_WORKFLOW_EXECUTIONS) {
        REQUEST(scan_workflow_executions);
        return (list_wish){request->namespace, request->query, request->next_page_token,
                           request->page_size, false,          false};
    }
    if (call->method == HF_METHOD_COUNT_WORKFLOW_EXECUTIONS) {
        REQUEST(count_workflow_executions);
        return (list_wish){request->namespace, request->query, HF_STR(""), 0, true, false};
    }
    if (call->method == HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS) {
        REQUEST(list_open_workflow_executions);
        hf_buf_puts(text, "ExecutionStatus = 'Running'");
        uint32_t which = request->filters_case;
        put_filters(
            text, request->start_time_filter,
            which == HF_PB_LIST_OPEN_WORKFLOW_EXECUTIONS_REQUEST_EXECUTION_FILTER ? request->execution_filter : NULL,
            which == HF_PB_LIST_OPEN_WORKFLOW_EXECUTIONS_REQUEST_TYPE_FILTER ? request->type_filter : NULL, NULL);
        return (list_wish){request->namespace,
                           hf_str_of_len(text->data, text->len),
                           request->next_page_token,
                           request->maximum_page_size,
                           false,
                           false};
    }
    REQUEST(list_closed_workflow_executions);
    hf_assert(call->method == HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS);
    hf_buf_puts(text, "ExecutionStatus != 'Running'");
    uint32_t which = request->filters_case;
    put_filters(text, request->start_time_filter,
                which == HF_PB_LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST_EXECUTION_FILTER ? request->execution_filter
                                                                                        : NULL,
                which == HF_PB_LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST_TYPE_FILTER ? request->type_filter : NULL,
                which == HF_PB_LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST_STATUS_FILTER ? request->status_filter : NULL);
    return (list_wish){request->namespace,
                       hf_str_of_len(text->data, text->len),
                       request->next_page_token,
                       request->maximum_page_size,
                       false,
                       false};
}

/* ---- A lister ------------------------------------------------------------------------------------------------------------ */

static void lister_free(hf_core *core, hf_lister *lister)
{
    hf_list_work *work = &lister->work;
    hf_list_remove(&lister->link);
    hf_arena_deinit(&work->arena);
    hf_arena_deinit(&work->scratch);
    hf_arena_deinit(&work->room[0]);
    hf_arena_deinit(&work->room[1]);
    hf_buf_deinit(&work->key);
    hf_core_free_mem(core, work->numbers, work->number_room * sizeof *work->numbers);
    hf_core_free_mem(core, lister, sizeof *lister);
    hf_assert(core->lister_count > 0);
    core->lister_count--;
}

void hf_lists_deinit(hf_core *core)
{
    hf_node *node = NULL;
    while ((node = hf_list_first(&core->listers)) != NULL) {
        lister_free(core, HF_CONTAINER(node, hf_lister, link));
    }
    hf_assert(core->lister_count == 0);
}

static hf_lister *lister_new(hf_core *core, hf_call *call)
{
    hf_lister *lister = hf_core_alloc(core, sizeof *lister);
    if (lister == NULL) {
        return NULL;
    }
    hf_list_work *work = &lister->work;
    work->memory = core->options.store_memory;
    hf_arena_init(&work->arena, work->memory);
    hf_arena_init(&work->scratch, work->memory);
    hf_arena_init(&work->room[0], work->memory);
    hf_arena_init(&work->room[1], work->memory);
    hf_buf_init(&work->key, work->memory, HF_WHERE_LEN_MAX);
    lister->call = call;
    lister->next = hf_list_first(&core->dirty);
    lister->commit = core->commit_next;
    work->below = core->run_next;
    hf_list_push_back(&core->listers, &lister->link);
    core->lister_count++;
    return lister;
}

void hf_list_drop(hf_core *core, hf_call *call)
{
    HF_LIST_EACH(node, &core->listers)
    {
        hf_lister *lister = HF_CONTAINER(node, hf_lister, link);
        if (lister->call == call) {
            lister->call = NULL; /* its step is out: it goes when that is done */
            call->place = HF_PLACE_NONE;
            return;
        }
    }
    hf_assert(false); /* a call that waits for its list has a lister */
}

void hf_lists_pass(hf_core *core, hf_node *dirty_link)
{
    HF_LIST_EACH(node, &core->listers)
    {
        hf_lister *lister = HF_CONTAINER(node, hf_lister, link);
        if (lister->next == dirty_link) {
            lister->next = dirty_link->next;
        }
    }
}

/* ---- Steps --------------------------------------------------------------------------------------------------------------- */

static bool remember(hf_core *core, hf_list_work *work, int64_t number)
{
    if (work->number_count == work->number_room) {
        size_t room = work->number_room > 0 ? 2 * work->number_room : 64;
        int64_t *numbers = hf_core_alloc(core, room * sizeof *numbers);
        if (numbers == NULL) {
            return false;
        }
        if (work->number_count > 0) {
            memcpy(numbers, work->numbers, work->number_count * sizeof *numbers);
        }
        hf_core_free_mem(core, work->numbers, work->number_room * sizeof *numbers);
        work->numbers = numbers;
        work->number_room = room;
    }
    work->numbers[work->number_count++] = number;
    return true;
}

/* engine-S2 */
static size_t step_max(const hf_core *core, size_t most)
{
    size_t given = core->options.list_step_max;
    return given > 0 && given < most ? given : most;
}

/* Whether a run in memory is left to look at. core->dirty is in the order of commits: a run that got its rows meanwhile and changed
 * again is at its end, and must not be looked at twice. */
static bool is_in_memory(const hf_core *core, const hf_lister *lister)
{
    return lister->next != NULL && lister->next != &core->dirty.head &&
           HF_CONTAINER_CONST(lister->next, hf_slot, dirty_link)->commit_dirty <= lister->commit;
}

/* The next runs in memory, copied: the store's thread must not look at the core's. */
static void copy_runs(hf_core *core, hf_lister *lister, hf_arena *arena)
{
    hf_list_work *work = &lister->work;
    hf_visible *runs = HF_ARENA_ARRAY(arena, hf_visible, HF_LIST_RUNS_MAX);
    size_t count = 0;
    size_t left = step_max(core, HF_LIST_RUNS_MAX);
    size_t len = 0; /* of texts */
    if (runs == NULL) {
        return;
    }
    while (is_in_memory(core, lister) && left > 0 && len < HF_LIST_LEN_MAX) {
        const hf_run *run = &HF_CONTAINER(lister->next, hf_slot, dirty_link)->run;
        lister->next = lister->next->next;
        left--;
        if (HF_SLOT(run)->loading || HF_SLOT(run)->bad || run->event_count == 0 ||
            HF_CANARY(HF_BUG_LIST_NOT_OVERLAID)) {
            continue; /* its row tells as much or more */
        }
        if (!remember(core, work, run->number)) {
            return;
        }
        hf_visible visible = hf_visible_of_run(run, arena);
        if (hf_str_equal(visible.namespace_, work->namespace_)) {
            runs[count++] = hf_visible_copy(arena, &visible);
            len += hf_visible_len(&visible);
        }
    }
    lister->has_memory_done = !is_in_memory(core, lister);
    work->runs = runs;
    work->run_count = count;
}

static void step(hf_core *core, hf_lister *lister)
{
    hf_read *read = hf_read_new(core, HF_READ_LIST, HF_TABLE_SUMMARY);
    if (read == NULL) {
        return;
    }
    read->lister = lister;
    read->request.look = hf_list_look;
    read->request.backwards = true;
    read->request.row_max = step_max(core, HF_LIST_SUMMARIES_MAX);
    lister->work.rows_max = step_max(core, HF_LIST_ROWS_MAX);
    lister->work.gets_max = step_max(core, HF_LIST_GETS_MAX);
    read->request.len_max = HF_LIST_LEN_MAX;
    if (!lister->has_memory_done) {
        copy_runs(core, lister, &read->arena);
        if (lister->work.run_count > 0) {
            HF_PROBE(core, HF_PROBE_LIST_MEMORY);
        }
    }
    if (lister->has_memory_done) {
        hf_list_aim(&lister->work, &read->request);
        read->request.goes_on = hf_list_goes_on;
        lister->work.steps = 1;
    }
    if (read->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    hf_read_submit(core, read);
}

/* ---- Answers ------------------------------------------------------------------------------------------------------------- */

static hf_str next_token(hf_core *core, const hf_lister *lister, hf_arena *arena)
{
    const hf_list_work *work = &lister->work;
    if (!work->is_cut || work->found_count == 0) {
        return HF_STR("");
    }
    const hf_list_found *last = &work->found[work->found_count - 1];
    hf_list_place place = {.bound = lister->bound, .number = last->run.number, .key = last->key};
    if (work->is_current) { /* the next page leaves out the same runs */
        place.key = hf_str_of_len(&work->bound_number, sizeof work->bound_number);
    }
    return hf_list_token_encode(core, arena, &place);
}

static void answer_list(hf_core *core, hf_lister *lister)
{
    hf_call *call = lister->call;
    hf_list_work *work = &lister->work;
    /* The responses of the four methods have the same fields in the same places. */
    _Static_assert(
        sizeof(hf_pb_list_workflow_executions_response) == sizeof(hf_pb_scan_workflow_executions_response) &&
            sizeof(hf_pb_list_workflow_executions_response) == sizeof(hf_pb_list_open_workflow_executions_response) &&
            sizeof(hf_pb_list_workflow_executions_response) == sizeof(hf_pb_list_closed_workflow_executions_response),
        "a list is a list");
    hf_pb_list_workflow_executions_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    response->executions.items = HF_ARENA_ARRAY(call->arena, hf_pb_workflow_execution_info, work->found_count);
    for (size_t i = 0; call->arena->status == HF_OK && i < work->found_count; i++) {
        const hf_list_found *found = &work->found[work->is_current ? work->found_count - 1 - i : i]; /* oldest first */
        if (!found->is_gone) {
            hf_visible_show(&found->run, call->arena, &response->executions.items[response->executions.count]);
            response->executions.count++;
        }
    }
    response->next_page_token = next_token(core, lister, call->arena);
    if (work->is_cut) {
        HF_PROBE(core, HF_PROBE_LIST_PAGED);
    }
    hf_call_reply(core, call);
}

static hf_pb_payload status_payload(hf_arena *arena, int32_t status)
{
    char text[40];
    int len = snprintf(text, sizeof text, "\"%s\"", hf_run_status_name(status));
    return hf_payload_json(arena, hf_arena_copy(arena, hf_str_of_len(text, (size_t)len)));
}

static void answer_count(hf_core *core, hf_lister *lister)
{
    hf_call *call = lister->call;
    const hf_list_work *work = &lister->work;
    hf_pb_count_workflow_executions_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    response->groups.items =
        HF_ARENA_ARRAY(call->arena, hf_pb_count_workflow_executions_response_aggregation_group, HF_LIST_STATUS_COUNT);
    for (int32_t status = 0; call->arena->status == HF_OK && status < HF_LIST_STATUS_COUNT; status++) {
        response->count += work->counts[status];
        if (!work->where.is_grouped || work->counts[status] == 0) {
            continue;
        }
        hf_pb_count_workflow_executions_response_aggregation_group *group =
            &response->groups.items[response->groups.count++];
        group->count = work->counts[status];
        group->group_values.items = HF_ARENA_NEW(call->arena, hf_pb_payload);
        if (group->group_values.items != NULL) {
            group->group_values.items[0] = status_payload(call->arena, status);
            group->group_values.count = 1;
        }
    }
    HF_PROBE(core, work->where.is_grouped ? HF_PROBE_COUNT_GROUPED : HF_PROBE_COUNTED);
    hf_call_reply(core, call);
}

static void answer(hf_core *core, hf_lister *lister)
{
    hf_assert(lister->call->place == HF_PLACE_LIST);
    lister->call->place = HF_PLACE_NONE;
    if (lister->work.is_count) {
        answer_count(core, lister);
    } else {
        answer_list(core, lister);
    }
    lister_free(core, lister);
}

void hf_list_rows_read(hf_core *core, hf_lister *lister, const hf_read *read)
{
    hf_list_work *work = &lister->work;
    const hf_store_request *request = &read->request;
    bool has_read = request->key_end.a > 0; /* rows, not only memory */
    if (work->status != HF_OK || work->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    if (lister->call == NULL) {
        lister_free(core, lister);
        return;
    }
    if (has_read && work->is_done) {
        core->probes[HF_PROBE_BLOCK_READ] += work->blocks_read;
        core->probes[HF_PROBE_BLOCK_SKIPPED] += work->blocks_skipped;
        core->probes[HF_PROBE_BLOCK_COUNTED] += work->blocks_counted;
        core->probes[HF_PROBE_BLOCK_OTHER] += work->others_read;
        answer(core, lister);
        return;
    }
    if (has_read) {
        HF_PROBE(core, HF_PROBE_LIST_STEPPED);
    }
    step(core, lister);
}

void hf_list_failed(hf_core *core, hf_lister *lister, const char *why)
{
    hf_call *call = lister->call;
    lister_free(core, lister);
    if (call != NULL) {
        call->place = HF_PLACE_NONE;
        hf_call_fail(core, call, HF_ERR_STORE, "%s", why);
    }
}

/* ---- Calls --------------------------------------------------------------------------------------------------------------- */

/* engine-S3 */
static uint64_t bound_of(const hf_core *core, const hf_call *call, const list_wish *wish)
{
    uint64_t parts[3] = {(uint64_t)call->method + (wish->is_current ? HF_METHOD_COUNT : 0),
                         hf_siphash(core->mac_key, wish->namespace_), hf_siphash(core->mac_key, wish->query)};
    if (HF_CANARY(HF_BUG_PAGE_OF_ANY_NAMESPACE)) {
        parts[1] = 0;
    }
    return hf_siphash(core->mac_key, hf_str_of_len(parts, sizeof parts));
}

/* Where the page begins. False: the call has failed. */
static bool set_place(hf_core *core, hf_call *call, hf_lister *lister, const list_wish *wish)
{
    hf_list_work *work = &lister->work;
    hf_list_place place;
    lister->bound = bound_of(core, call, wish);
    if (wish->token.len == 0) {
        return true;
    }
    if (!hf_list_token_decode(core, wish->token, &place)) {
        HF_PROBE(core, HF_PROBE_FORGED_TOKEN);
        return hf_call_refuse(core, call, "NextPageToken was not issued by this store");
    }
    if (place.bound != lister->bound) {
        HF_PROBE(core, HF_PROBE_LIST_TOKEN_OF_OTHER);
        return hf_call_refuse(core, call, "NextPageToken belongs to another query or another namespace");
    }
    work->has_after = true;
    work->after_number = place.number;
    if (work->is_current && place.key.len == sizeof work->bound_number) {
        memcpy(&work->bound_number, place.key.data, sizeof work->bound_number);
        place.key = HF_STR("");
    }
    work->after_key = hf_arena_copy(&work->arena, place.key);
    if (work->where.order_count == 0) {
        work->below = place.number < work->below ? place.number : work->below;
    }
    return true;
}

/* A filter for one run reads one row. Run ids that this store did not make say nothing about a row. */
static void narrow(hf_core *core, hf_lister *lister)
{
    hf_str run_id;
    int64_t number =
        hf_where_pins(&lister->work.where, HF_ATTR_RUN_ID, &run_id) ? hf_run_id_number(core->mac_key, run_id) : 0;
    if (hf_run_is_number(number)) {
        hf_list_work *work = &lister->work;
        work->from = number;
        work->below = number + 1 < work->below ? number + 1 : work->below;
        work->below = work->below < number ? number : work->below; /* it is behind the page */
    }
}

static bool prepare(hf_core *core, hf_call *call, hf_lister *lister, const list_wish *wish)
{
    hf_list_work *work = &lister->work;
    size_t column = 0;
    hf_namespace *space = hf_namespace_find(core, wish->namespace_);
    work->is_count = wish->is_count;
    work->namespace_ = hf_arena_copy(&work->arena, wish->namespace_);
    hf_status status = hf_where_parse(&core->op, wish->query, wish->is_count ? HF_WHERE_MAY_GROUP : HF_WHERE_MAY_ORDER,
                                      hf_namespace_find_attribute, space, &work->arena, &work->where, &column);
    if (status == HF_ERR_NOMEM) {
        hf_core_break(core, status, "out of memory");
        return false;
    }
    if (status != HF_OK) {
        hf_call_fail(core, call, HF_ERR_INVALID, "%s", core->op.message);
        return false;
    }
    work->is_current = wish->is_current;
    work->bound_number = core->run_next;
    if (work->is_current && work->where.order_count > 0) {
        return hf_call_refuse(core, call, "a list of current runs has an order of its own: ORDER BY cannot be used");
    }
    if (work->is_current) {
        HF_PROBE(core, HF_PROBE_LIST_CURRENT);
        hf_list_note_names(core, work);
    }
    int32_t size = wish->page_size;
    work->found_max = size > 0 && size < HF_LIST_PAGE_MAX ? (size_t)size : HF_LIST_PAGE_MAX;
    work->found = work->is_count ? NULL : HF_ARENA_ARRAY(&work->arena, hf_list_found, work->found_max);
    if (work->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return false;
    }
    if (!set_place(core, call, lister, wish)) {
        return false;
    }
    narrow(core, lister);
    return true;
}

void hf_list_call(hf_core *core, hf_call *call)
{
    if (core->lister_count >= HF_LISTERS_MAX) {
        hf_call_fail(core, call, HF_ERR_LIMIT, "%d lists and counts are under way; try again in a moment",
                     HF_LISTERS_MAX);
        return;
    }
    hf_buf text;
    hf_buf_init(&text, core->memory, HF_WHERE_LEN_MAX);
    list_wish wish = wish_of(call, &text);
    hf_lister *lister = NULL;
    if (text.status == HF_ERR_NOMEM) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    } else if (text.status != HF_OK) {
        (void)hf_call_refuse(core, call, "the filters are too long");
    } else {
        lister = lister_new(core, call);
    }
    if (lister != NULL && !prepare(core, call, lister, &wish)) {
        lister_free(core, lister);
        lister = NULL;
    }
    hf_buf_deinit(&text);
    if (lister != NULL) {
        call->place = HF_PLACE_LIST;
        step(core, lister);
    }
}
