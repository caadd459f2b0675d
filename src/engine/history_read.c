/* Reading histories: which events a caller gets (history_page.c finds them), and which calls wait for more. Long polls wait in a watch,
 * which does not hold the run in memory. Also descriptions. */
#include "engine/history_read.h"

#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/history_page.h"
#include "engine/machines/machines.h"
#include "engine/machines/speculative.h"
#include "engine/poll.h"
#include "engine/stream.h"
#include "engine/token.h"
#include "history/limits.h"

/* ---- GetWorkflowExecutionHistory ------------------------------------------------------------------------------------- */

static hf_history_watch *watch_find(hf_core *core, int64_t run)
{
    uint64_t hash = hf_hash_mix(4, (uint64_t)run);
    for (hf_map_node *node = hf_map_first(&core->watches, hash); node != NULL; node = hf_map_next(node)) {
        hf_history_watch *watch = HF_CONTAINER(node, hf_history_watch, by_number);
        if (watch->run == run) {
            return watch;
        }
    }
    return NULL;
}

void hf_watch_park(hf_core *core, hf_call *call, int64_t number)
{
    hf_assert(call->place == HF_PLACE_NONE && call->parked == NULL);
    hf_history_watch *watch = watch_find(core, number);
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
    hf_assert(call->place == HF_PLACE_WATCH && call->parked != NULL);
    hf_history_watch *watch = call->parked;
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
    hf_assert(event_id > 0 && event_id <= run->event_count); /* run-R1 */
    hf_page_want want = {.page = {.run = run->number, .next = event_id}, .to = event_id, .count_max = 1};
    answer_history(core, call, run, want);
}

/* The remaining events of the history as it was when the workflow task started. Later events are not part of it. */
static void answer_task(hf_core *core, hf_call *call, hf_run *run, hf_page page, size_t count_max)
{
    const hf_wft *wft = hf_wft_now(run);
    if (page.last > run->event_count) { /* its task was handed out ahead of a commit that failed */
        hf_call_fail(core, call, HF_ERR_NOT_FOUND,
                     "the workflow task of this NextPageToken does not exist: its start was never committed");
        return;
    }
    hf_page_want want = {.page = page, .to = page.last, .count_max = count_max};
    if (page.attempt != 0 && wft->state == HF_WFT_STARTED && wft->is_transient && wft->attempt == page.attempt &&
        wft->started_time == page.stamp) {
        want.extra = hf_wft_transient_events(core, run, wft);
    }
    answer_history(core, call, run, want);
}

/* Whether the caller may read it: hf_call.handed_before. */
static bool is_permitted(const hf_call *call, const hf_run *run, const hf_page *page)
{
    const hf_wft *wft = hf_wft_now(run);
    return call->handed_before == 0 || page->last != 0 ||
           (hf_run_is_open(run) && wft->state == HF_WFT_STARTED && wft->started_time < call->handed_before);
}

void hf_history_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_get_workflow_execution_history_request *request = call->request;
    hf_page page = {.run = run->number, .next = 1};
    if (request->next_page_token.len > 0) {
        hf_assert(hf_page_decode(core, request->next_page_token, &page)); /* by_page has decoded it before */
    }
    if (!is_permitted(call, run, &page)) {
        hf_call_say(core, call, "Request unauthorized.");
        hf_call_fail(core, call, HF_ERR_DENIED, "no workflow task of this run was handed to the caller");
        return;
    }
    bool open = hf_run_is_open(run);
    size_t count_max = request->maximum_page_size > 0 ? (size_t)request->maximum_page_size : HF_HISTORY_PAGE_COUNT;
    if (page.last != 0) {
        answer_task(core, call, run, page, count_max);
    } else if (wants_close(call)) {
        if (open && request->wait_new_event) {
            hf_watch_park(core, call, run->number);
        } else if (open) { /* an empty answer: the caller would take any event for the last one */
            hf_call_response(core, call);
            hf_call_reply(core, call);
        } else {
            answer_one(core, call, run, run->close_event_id);
        }
    } else if (page.next > run->event_count && open && request->wait_new_event) {
        hf_watch_park(core, call, run->number);
    } else {
        hf_page_want want = {
            .page = page, .to = run->event_count, .count_max = count_max, .open_end = open && request->wait_new_event};
        if (call->replays && open) {
            want.extra = hf_wft_unwritten_events(core, run, hf_wft_now(run));
        }
        answer_history(core, call, run, want);
    }
}

/* Whether the event that a long poll waits for is there. */
static bool has_news(const hf_core *core, const hf_call *call, const hf_run *run, bool is_settled)
{
    if (call->method == HF_METHOD_READ_STREAM) {
        return is_settled && hf_read_stream_has_news(call, run);
    }
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

void hf_watch_wake(hf_core *core, hf_run *run, bool is_settled)
{
    hf_history_watch *watch = watch_find(core, run->number);
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
        if (has_news(core, call, run, is_settled)) {
            bool last = count == 1 && hf_list_first(&watch->calls) == hf_list_last(&watch->calls);
            HF_PROBE(core, HF_PROBE_WATCH_WOKEN);
            hf_watch_remove(core, call);
            if (call->method == HF_METHOD_READ_STREAM) {
                HF_PROBE(core, HF_PROBE_STREAM_WOKEN);
                hf_read_stream_call(core, call, run);
            } else {
                hf_history_call(core, call, run);
            }
            if (last) {
                return;
            }
        }
        node = next;
    }
}

/* ---- DescribeWorkflowExecution --------------------------------------------------------------------------------------- */

void hf_describe_call(hf_core *core, hf_call *call, hf_run *run)
{
    hf_pb_describe_workflow_execution_response *response = hf_call_response(core, call);
    if (response != NULL) {
        hf_run_describe(run, call->arena, response);
        hf_call_reply(core, call);
    }
}
