/* Reading histories: which events a caller gets (history_page.c finds them), who waits for more, and descriptions. Long polls
 * wait in a watch, which does not hold the run in memory. */
#include "engine/core.h"

#include "history/limits.h"

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
    hf_poll_park(core, call, &core->history_polls, core->options.history_span);
}

void hf_watch_remove(hf_core *core, hf_call *call)
{
    hf_watch *watch = call->parked;
    hf_list_remove(&call->link);
    hf_poll_unpark(core, call);
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

static void answer_history(hf_core *core, hf_call *call, hf_run *run, hf_page_want want)
{
    hf_pb_get_workflow_execution_history_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    want.ret_history = &response->history;
    want.ret_token = &response->next_page_token;
    hf_history_reply(core, call, run, want);
}

static void answer_one(hf_core *core, hf_call *call, hf_run *run, int64_t event_id)
{
    hf_page_want want = {.page = {.run = run->number, .next = event_id}, .to = event_id, .count_max = 1};
    answer_history(core, call, run, want);
}

/* The rest of what a workflow task was started with: as it was then, whatever has become of the run. */
static void answer_task(hf_core *core, hf_call *call, hf_run *run, hf_page page, size_t count_max)
{
    const hf_wft *wft = &run->wft;
    if (page.last > run->event_count) { /* its task went out ahead of a commit that failed */
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the workflow task of this NextPageToken was taken back");
        return;
    }
    hf_page_want want = {.page = page, .to = page.last, .count_max = count_max};
    if (page.attempt != 0 && wft->state == HF_WFT_STARTED && wft->is_transient && wft->attempt == page.attempt &&
        wft->started_time == page.stamp) {
        want.extra = hf_wft_transient_events(core, run);
    }
    answer_history(core, call, run, want);
}

void hf_history_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_get_workflow_execution_history_request *request = call->request;
    hf_page page = {.run = run->number, .next = 1};
    if (request->next_page_token.len > 0) {
        hf_assert(hf_page_decode(core, request->next_page_token, &page)); /* that is how it got here */
    }
    bool open = hf_run_is_open(run);
    size_t count_max = request->maximum_page_size > 0 ? (size_t)request->maximum_page_size : HF_HISTORY_PAGE_COUNT;
    if (page.last != 0) {
        answer_task(core, call, run, page, count_max);
    } else if (wants_close(call)) {
        if (open && request->wait_new_event) {
            park(core, call, run->number);
        } else if (open) { /* any other event would be taken for the end */
            hf_call_response(core, call);
            hf_call_reply(core, call);
        } else {
            answer_one(core, call, run, run->close_event_id);
        }
    } else if (page.next > run->event_count && open && request->wait_new_event) {
        park(core, call, run->number);
    } else {
        hf_page_want want = {
            .page = page, .to = run->event_count, .count_max = count_max, .open_end = open && request->wait_new_event};
        answer_history(core, call, run, want);
    }
}

/* What a long poll waits for is there. */
static bool has_news(const hf_core *core, const hf_call *call, const hf_run *run)
{
    const hf_pb_get_workflow_execution_history_request *request = call->request;
    hf_page page = {.next = 1};
    if (wants_close(call)) {
        return !hf_run_is_open(run);
    }
    if (request->next_page_token.len > 0) {
        (void)hf_page_decode(core, request->next_page_token, &page); /* looked at when it was parked */
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
        if (has_news(core, call, run)) {
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

/* When a span that begins at `time` is over; none, if it never is. */
static hf_pb_timestamp end_of(int64_t time, int64_t span)
{
    int64_t end = 0;
    bool ends = span > 0 && !__builtin_add_overflow(time, span, &end);
    return ends ? hf_pb_timestamp_of((hf_time){end}) : (hf_pb_timestamp){0};
}

/* What its attempts are bounded by. */
static void describe_retries(hf_core *core, hf_arena *arena, const hf_activity *activity,
                             hf_pb_pending_activity_info *info)
{
    hf_pb_history_event event = {0};
    hf_str bytes = hf_arena_copy(arena, hf_owned_str(&activity->scheduled));
    if (hf_pb_decode(&core->op, &hf_pb_history_event_type, bytes, arena, &event) == HF_OK) {
        const hf_pb_activity_task_scheduled_event_attributes *attrs = event.activity_task_scheduled_event_attributes;
        info->maximum_attempts = attrs->retry_policy != NULL ? attrs->retry_policy->maximum_attempts : 0;
    }
    info->expiration_time = end_of(activity->first_time, activity->schedule_to_close);
    if (activity->state == HF_ACTIVITY_BACKOFF) {
        info->next_attempt_schedule_time = hf_pb_timestamp_of((hf_time){activity->scheduled_time});
    }
}

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
    info->holdfast_crashes = activity->task.crashes;
    describe_retries(core, arena, activity, info);
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
    config->workflow_execution_timeout = hf_pb_duration_of(hf_nanoseconds(run->execution_timeout));
    config->workflow_run_timeout = hf_pb_duration_of(hf_nanoseconds(run->run_timeout));
    config->default_workflow_task_timeout = hf_pb_duration_of(hf_nanoseconds(run->task_timeout));
}

static void describe_info(hf_arena *arena, const hf_run *run, hf_pb_workflow_execution_info *info)
{
    info->execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    info->type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    info->root_execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    if (arena->status != HF_OK) {
        return;
    }
    info->execution->workflow_id = hf_arena_copy(arena, hf_owned_str(&run->workflow_id));
    info->execution->run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id));
    *info->root_execution = *info->execution; /* nobody has parents so far */
    info->type->name = hf_arena_copy(arena, hf_owned_str(&run->workflow_type));
    info->start_time = info->execution_time = hf_pb_timestamp_of((hf_time){run->start_time});
    info->status = run->status;
    info->history_length = run->event_count;
    info->history_size_bytes = run->history_len;
    info->task_queue = hf_arena_copy(arena, hf_owned_str(&run->task_queue));
    info->first_run_id = hf_arena_copy(arena, hf_owned_str(&run->first_run_id));
    if (!hf_run_is_open(run)) {
        info->close_time = hf_pb_timestamp_of((hf_time){run->close_time});
        info->execution_duration = hf_pb_duration_of(hf_nanoseconds(run->close_time - run->start_time));
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
    response->pending_workflow_task->holdfast_crashes = wft->task.crashes;
    if (wft->pause_until != 0) {
        response->pending_workflow_task->holdfast_pause_until = hf_pb_timestamp_of((hf_time){wft->pause_until});
    }
    response->pending_workflow_task->scheduled_time = hf_pb_timestamp_of((hf_time){wft->scheduled_time});
    if (started) {
        response->pending_workflow_task->started_time = hf_pb_timestamp_of((hf_time){wft->started_time});
    }
}

static void describe_times(const hf_run *run, hf_pb_workflow_execution_extended_info *info)
{
    info->cancel_requested = run->cancel_requested;
    info->original_start_time = hf_pb_timestamp_of((hf_time){run->start_time});
    info->execution_expiration_time = end_of(run->start_time, run->execution_timeout);
    if (run->run_deadline != 0) {
        info->run_expiration_time = hf_pb_timestamp_of((hf_time){run->run_deadline});
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
        describe_times(run, response->workflow_extended_info);
        for (size_t i = 0; i < run->activities.count; i++) {
            if (run->activities.items[i]->state <= HF_ACTIVITY_BACKOFF) {
                describe_activity(core, arena, run->activities.items[i],
                                  &response->pending_activities.items[response->pending_activities.count++]);
            }
        }
    }
    hf_call_reply(core, call);
}
