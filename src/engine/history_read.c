/* Reading histories: answers that carry events. They come from the run's log and, before that, from its rows. An answer that
 * needs rows waits for them; like every answer it also waits for the open batch, so that nobody sees an event that a crash
 * could take back. Long polls wait in a watch, which does not hold the run in memory. */
#include "engine/core.h"

#include "base/canary.h"
#include "base/limits.h"

#include <stdio.h>

/* Where a page ended, in next_page_token. */
typedef struct hf_page {
    int64_t run;
    int64_t next; /* first event of the next page */
    int64_t last; /* last event of the answer, 0 = whatever there is by then */
} hf_page;

static hf_str page_encode(hf_arena *arena, hf_page page)
{
    return hf_arena_copy(arena, hf_str_of_len(&page, sizeof page));
}

static bool page_decode(hf_str token, hf_page *ret_page)
{
    if (token.len != sizeof *ret_page) {
        return false;
    }
    memcpy(ret_page, token.data, sizeof *ret_page);
    return ret_page->next > 0 && ret_page->last >= 0;
}

/* ---- Collecting events ----------------------------------------------------------------------------------------------- */

/* Elements of a History with the ids from..to, of one whose first element is event `first`. */
static void copy_events(hf_str history, int64_t first, int64_t from, int64_t to, hf_buf *out)
{
    hf_pb_raw field;
    for (int64_t id = first; history.len > 0 && hf_pb_next(&history, &field); id++) {
        if (id >= from && id <= to) {
            hf_buf_put(out, field.whole.data, field.whole.len);
        }
    }
}

static void finish(hf_core *core, hf_call *call, hf_buf *out, hf_str *ret_history)
{
    if (out->status != HF_OK) {
        hf_core_break(core, out->status, "out of memory");
    } else {
        *ret_history = hf_arena_copy(call->arena, hf_str_of_len(out->data, out->len));
        hf_call_reply(core, call);
    }
    hf_buf_deinit(out);
}

void hf_history_reply(hf_core *core, hf_call *call, hf_run *run, int64_t from, int64_t to, hf_str tail,
                      hf_str *ret_history)
{
    hf_buf out;
    hf_buf_init(&out, core->memory, SIZE_MAX / 4);
    hf_log_events(run, from, to, &out);
    hf_buf_put(&out, tail.data, tail.len);
    if (from > run->spilled || from > to) {
        finish(core, call, &out, ret_history);
        return;
    }
    HF_PROBE(core, HF_PROBE_HISTORY_FROM_ROWS);
    hf_read *read = hf_read_new(core, HF_READ_HISTORY, HF_TABLE_HISTORY);
    if (read != NULL && out.status == HF_OK) {
        read->call = call;
        read->from = from;
        read->to = to < run->spilled ? to : run->spilled;
        read->number = run->number;
        read->ret_history = ret_history;
        hf_owned_set(core, &read->tail, hf_str_of_len(out.data, out.len));
        read->request.key = (hf_key){.a = run->number, .b = 0};
        read->request.key_end = (hf_key){.a = run->number, .b = read->to + 1};
        call->place = HF_PLACE_ELSEWHERE;
        call->holds = 2; /* the rows and the commit */
        hf_call_reply(core, call);
        hf_read_submit(core, read);
    } else {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    hf_buf_deinit(&out);
}

/* One row: its record and its chain are checked. */
static hf_status put_row(hf_core *core, const hf_read *read, const hf_row *row, int64_t *next, hf_buf *out)
{
    hf_str body = {0};
    hf_pb_history_record record;
    HF_TRY(hf_record_open(&core->op, HF_TABLE_HISTORY, &row->key, row->value, &body));
    HF_TRY(hf_pb_decode(&core->op, &hf_pb_history_record_type, body, &core->scratch, &record));
    if (record.first_id != *next) {
        return hf_fail(&core->op, HF_ERR_INVALID, "run %lld: events %lld to %lld are missing", (long long)read->number,
                       (long long)*next, (long long)record.first_id - 1);
    }
    *next = record.last_id + 1;
    copy_events(record.events, record.first_id, read->from, read->to, out);
    return HF_OK;
}

void hf_history_rows_read(hf_core *core, hf_read *read)
{
    hf_call *call = read->call;
    hf_buf out;
    hf_buf_init(&out, core->memory, SIZE_MAX / 4);
    int64_t next = 1;
    hf_status status = HF_OK;
    for (size_t i = 0; i < read->request.row_count && status == HF_OK; i++) {
        status = put_row(core, read, &read->request.rows[i], &next, &out);
    }
    if (status == HF_OK && next != read->to + 1 && next <= read->to) {
        status = hf_fail(&core->op, HF_ERR_INVALID, "run %lld: events from %lld on are missing",
                         (long long)read->number, (long long)next);
    }
    hf_buf_put(&out, read->tail.data, read->tail.len);
    if (out.status != HF_OK) {
        hf_core_break(core, out.status, "out of memory");
    } else if (status != HF_OK) {
        HF_PROBE(core, HF_PROBE_BAD_RECORD);
        call->status = HF_ERR_STORE;
        (void)snprintf(call->message, sizeof call->message, "%s", core->op.message);
    } else {
        *read->ret_history = hf_arena_copy(call->arena, hf_str_of_len(out.data, out.len));
        if (call->arena->status != HF_OK) {
            hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        }
    }
    hf_buf_deinit(&out);
    if (core->status == HF_OK && --call->holds == 0) {
        hf_call_now(call);
    }
}

/* ---- GetWorkflowExecutionHistory ------------------------------------------------------------------------------------- */

static hf_watch *watch_find(hf_core *core, int64_t run)
{
    uint64_t hash = hf_hash_mix(4, (uint64_t)run);
    for (hf_map_node *node = hf_map_first(&core->watches, hash); node != NULL; node = hf_map_next(node)) {
        hf_watch *watch = HF_CONTAINER(node, hf_watch, by_number);
        if (watch->run == run) {
            return watch;
        }
    }
    return NULL;
}

static void park(hf_core *core, hf_call *call, int64_t number)
{
    hf_watch *watch = watch_find(core, number);
    if (watch == NULL) {
        watch = hf_core_alloc(core, sizeof *watch);
        if (watch == NULL) {
            return;
        }
        watch->run = number;
        hf_list_init(&watch->calls);
        if (hf_map_insert(&core->watches, &watch->by_number, hf_hash_mix(4, (uint64_t)number)) != HF_OK) {
            hf_core_free_mem(core, watch, sizeof *watch);
            hf_core_break(core, HF_ERR_NOMEM, "out of memory");
            return;
        }
    }
    hf_list_push_back(&watch->calls, &call->link);
    call->place = HF_PLACE_WATCH;
    call->parked = watch;
    int64_t span = call->timeout.ns > 0 ? call->timeout.ns : core->options.history_span;
    int64_t until = span > INT64_MAX - core->now.mono ? INT64_MAX : core->now.mono + span;
    if (hf_heap_set(&core->polls, &call->deadline, until) != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

void hf_watch_remove(hf_core *core, hf_call *call)
{
    hf_watch *watch = call->parked;
    hf_list_remove(&call->link);
    hf_heap_remove(&core->polls, &call->deadline);
    call->place = HF_PLACE_NONE;
    call->parked = NULL;
    if (hf_list_is_empty(&watch->calls)) {
        hf_map_remove(&core->watches, &watch->by_number);
        hf_core_free_mem(core, watch, sizeof *watch);
    }
}

static bool wants_close(const hf_call *call)
{
    const hf_pb_get_workflow_execution_history_request *request = call->request;
    return request->history_event_filter_type == HF_HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT;
}

static void answer_history(hf_core *core, hf_call *call, hf_run *run, int64_t from, int64_t to, bool open_end)
{
    hf_pb_get_workflow_execution_history_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    if (to < run->event_count || open_end) {
        response->next_page_token =
            page_encode(call->arena, (hf_page){run->number, to + 1 + HF_CANARY(HF_BUG_PAGE_GAP), 0});
    }
    hf_history_reply(core, call, run, from, to, HF_STR(""), &response->history);
}

void hf_history_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_get_workflow_execution_history_request *request = call->request;
    hf_page page = {run->number, 1, 0};
    if (request->next_page_token.len > 0 &&
        (!page_decode(request->next_page_token, &page) || page.run != run->number)) {
        hf_call_fail(core, call, HF_ERR_INVALID, "NextPageToken is not one of this history");
        return;
    }
    bool open = hf_run_is_open(run);
    if (wants_close(call)) {
        if (open && request->wait_new_event) {
            park(core, call, run->number);
        } else if (open) { /* the last event there is, as Temporal does it */
            answer_history(core, call, run, run->event_count, run->event_count, false);
        } else {
            answer_history(core, call, run, run->close_event_id, run->close_event_id, false);
        }
        return;
    }
    if (page.next > run->event_count && open && request->wait_new_event) {
        park(core, call, run->number);
        return;
    }
    int64_t count = request->maximum_page_size > 0 ? request->maximum_page_size : HF_HISTORY_PAGE_COUNT;
    int64_t to = run->event_count;
    if (to - page.next >= count) {
        to = page.next + count - 1;
    }
    answer_history(core, call, run, page.next, to, open && request->wait_new_event);
}

/* What a long poll waits for is there. */
static bool has_news(const hf_call *call, const hf_run *run)
{
    const hf_pb_get_workflow_execution_history_request *request = call->request;
    hf_page page = {0, 1, 0};
    if (wants_close(call)) {
        return !hf_run_is_open(run);
    }
    if (request->next_page_token.len > 0) {
        (void)page_decode(request->next_page_token, &page); /* looked at when it was parked */
    }
    return page.next <= run->event_count || !hf_run_is_open(run);
}

void hf_watch_wake(hf_core *core, hf_run *run)
{
    hf_watch *watch = watch_find(core, run->number);
    if (watch == NULL) {
        return;
    }
    hf_node *node = hf_list_first(&watch->calls);
    size_t count = 0;
    HF_LIST_EACH(each, &watch->calls)
    {
        count++;
    }
    for (; count > 0 && core->status == HF_OK; count--) {
        hf_node *next = node->next;
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        if (has_news(call, run)) {
            bool last = count == 1 && hf_list_first(&watch->calls) == hf_list_last(&watch->calls);
            HF_PROBE(core, HF_PROBE_WATCH_WOKEN);
            hf_watch_remove(core, call);
            hf_history_call(core, call, run);
            if (last) {
                return;
            }
        }
        node = next;
    }
}

/* ---- DescribeWorkflowExecution --------------------------------------------------------------------------------------- */

static void describe_activity(hf_core *core, hf_arena *arena, const hf_activity *activity,
                              hf_pb_pending_activity_info *info)
{
    info->activity_id = hf_arena_copy(arena, activity->activity_id);
    info->activity_type = HF_ARENA_NEW(arena, hf_pb_activity_type);
    if (info->activity_type != NULL) {
        info->activity_type->name = hf_arena_copy(arena, activity->activity_type);
    }
    bool started = activity->state == HF_ACTIVITY_STARTED;
    info->state = activity->cancel_requested_id != 0 ? HF_PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
                  : started                          ? HF_PENDING_ACTIVITY_STATE_STARTED
                                                     : HF_PENDING_ACTIVITY_STATE_SCHEDULED;
    info->attempt = activity->attempt;
    info->scheduled_time = hf_pb_timestamp_of((hf_time){activity->scheduled_time});
    if (started) {
        info->last_started_time = hf_pb_timestamp_of((hf_time){activity->started_time});
    }
    if (activity->heartbeat_time > 0) {
        info->last_heartbeat_time = hf_pb_timestamp_of((hf_time){activity->heartbeat_time});
    }
    info->last_worker_identity = hf_arena_copy(arena, hf_owned_str(&activity->identity));
    if (activity->last_failure.len > 0) {
        info->last_failure = HF_ARENA_NEW(arena, hf_pb_failure);
        hf_str bytes = hf_arena_copy(arena, hf_owned_str(&activity->last_failure));
        if (info->last_failure != NULL) {
            (void)hf_pb_decode(&core->op, &hf_pb_failure_type, bytes, arena, info->last_failure);
        }
    }
    if (activity->heartbeat_details.len > 0) {
        info->heartbeat_details = HF_ARENA_NEW(arena, hf_pb_payloads);
        hf_str bytes = hf_arena_copy(arena, hf_owned_str(&activity->heartbeat_details));
        if (info->heartbeat_details != NULL) {
            (void)hf_pb_decode(&core->op, &hf_pb_payloads_type, bytes, arena, info->heartbeat_details);
        }
    }
}

static void describe_config(hf_arena *arena, const hf_run *run, hf_pb_workflow_execution_config *config)
{
    config->task_queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    if (config->task_queue != NULL) {
        config->task_queue->name = hf_arena_copy(arena, hf_owned_str(&run->task_queue));
        config->task_queue->kind = HF_TASK_QUEUE_KIND_NORMAL;
    }
    config->workflow_execution_timeout = hf_pb_duration_of((hf_span){run->execution_timeout});
    config->workflow_run_timeout = hf_pb_duration_of((hf_span){run->run_timeout});
    config->default_workflow_task_timeout = hf_pb_duration_of((hf_span){run->task_timeout});
}

static void describe_info(hf_arena *arena, const hf_run *run, hf_pb_workflow_execution_info *info)
{
    info->execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    info->type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    if (arena->status != HF_OK) {
        return;
    }
    info->execution->workflow_id = hf_arena_copy(arena, hf_owned_str(&run->workflow_id));
    info->execution->run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id));
    info->type->name = hf_arena_copy(arena, hf_owned_str(&run->workflow_type));
    info->start_time = info->execution_time = hf_pb_timestamp_of((hf_time){run->start_time});
    info->status = run->status;
    info->history_length = run->event_count;
    info->history_size_bytes = run->history_len;
    info->task_queue = hf_arena_copy(arena, hf_owned_str(&run->task_queue));
    info->first_run_id = hf_arena_copy(arena, hf_owned_str(&run->first_run_id));
    if (!hf_run_is_open(run)) {
        info->close_time = hf_pb_timestamp_of((hf_time){run->close_time});
        info->execution_duration = hf_pb_duration_of((hf_span){run->close_time - run->start_time});
    }
}

static void describe_task(hf_arena *arena, const hf_wft *wft, hf_pb_describe_workflow_execution_response *response)
{
    if (wft->state == HF_WFT_NONE) {
        return;
    }
    response->pending_workflow_task = HF_ARENA_NEW(arena, hf_pb_pending_workflow_task_info);
    if (response->pending_workflow_task == NULL) {
        return;
    }
    bool started = wft->state == HF_WFT_STARTED;
    response->pending_workflow_task->state =
        started ? HF_PENDING_WORKFLOW_TASK_STATE_STARTED : HF_PENDING_WORKFLOW_TASK_STATE_SCHEDULED;
    response->pending_workflow_task->attempt = wft->attempt;
    response->pending_workflow_task->scheduled_time = hf_pb_timestamp_of((hf_time){wft->scheduled_time});
    if (started) {
        response->pending_workflow_task->started_time = hf_pb_timestamp_of((hf_time){wft->started_time});
    }
}

void hf_describe_call(hf_core *core, hf_call *call, hf_run *run)
{
    hf_arena *arena = call->arena;
    hf_pb_describe_workflow_execution_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    response->execution_config = HF_ARENA_NEW(arena, hf_pb_workflow_execution_config);
    response->workflow_execution_info = HF_ARENA_NEW(arena, hf_pb_workflow_execution_info);
    response->workflow_extended_info = HF_ARENA_NEW(arena, hf_pb_workflow_execution_extended_info);
    response->pending_activities.items = HF_ARENA_ARRAY(arena, hf_pb_pending_activity_info, run->activities.count);
    if (arena->status == HF_OK) {
        describe_config(arena, run, response->execution_config);
        describe_info(arena, run, response->workflow_execution_info);
        describe_task(arena, &run->wft, response);
        response->workflow_extended_info->cancel_requested = run->cancel_requested;
        if (run->run_deadline != 0) {
            response->workflow_extended_info->run_expiration_time = hf_pb_timestamp_of((hf_time){run->run_deadline});
        }
        for (size_t i = 0; i < run->activities.count; i++) {
            if (run->activities.items[i]->state <= HF_ACTIVITY_BACKOFF) {
                describe_activity(core, arena, run->activities.items[i],
                                  &response->pending_activities.items[response->pending_activities.count++]);
            }
        }
    }
    hf_call_reply(core, call);
}
