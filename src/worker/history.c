/* The events of a task. A poll brings the first page; for a run that is in memory it has only the new events. The
 * other pages are read one by one, and the whole history from its start if the first page does not follow the last
 * event of the run. */
#include "worker/wf.h"

#include "service/codec.h"

#include <inttypes.h>

typedef struct pages {
    hf_wf *wf;
    hf_arena *arena;
    const hf_pb_history_event **items; /* from wf->event_id_next on, without gaps */
    size_t count;
    size_t capacity;
    bool has_gap; /* the first one is too late */
} pages;

static hf_status push(hf_op *op, pages *p, const hf_pb_history_event *event)
{
    int64_t next = p->wf->event_id_next + (int64_t)p->count;
    if (event->event_id < next) {
        return HF_OK; /* seen before */
    }
    if (event->event_id > next) {
        p->has_gap = p->count == 0;
        return p->has_gap
                   ? HF_OK
                   : hf_fail(op, HF_ERR_INVALID, "event %" PRId64 " follows event %" PRId64, event->event_id, next - 1);
    }
    if (p->count == p->capacity) {
        size_t capacity = p->capacity > 0 ? p->capacity * 2 : 64;
        const hf_pb_history_event **items =
            hf_arena_take(p->arena, hf_arena_array_len(capacity, sizeof *items), _Alignof(void *));
        if (items == NULL) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for a history of %zu events", p->count);
        }
        if (p->count > 0) {
            memcpy(items, p->items, p->count * sizeof *items);
        }
        p->items = items;
        p->capacity = capacity;
    }
    p->items[p->count++] = event;
    return HF_OK;
}

static hf_status add_page(hf_op *op, pages *p, hf_str bytes)
{
    hf_pb_history *history = HF_ARENA_NEW(p->arena, hf_pb_history);
    if (history == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a page of history");
    }
    HF_TRY(hf_pb_decode(op, &hf_pb_history_type, bytes, p->arena, history));
    HF_TRY(hf_codec_decode(op, p->wf->worker->service->codec, &hf_pb_history_type, history, p->arena, false));
    for (size_t i = 0; i < history->events.count && !p->has_gap; i++) {
        HF_TRY(push(op, p, &history->events.items[i]));
    }
    return HF_OK;
}

/* Asks for the pages from `token` on; empty = from the start. */
static hf_status fetch(hf_op *op, pages *p, hf_str token, int64_t until)
{
    hf_worker *worker = p->wf->worker;
    do {
        hf_pb_workflow_execution execution = {.workflow_id = p->wf->id, .run_id = p->wf->run_id};
        hf_pb_get_workflow_execution_history_request request = {
            .namespace = worker->namespace_, .execution = &execution, .next_page_token = token};
        hf_call call;
        hf_worker_call_init(worker, &call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, p->arena);
        call.replays = true;
        HF_TRY(hf_service_ask(op, worker->service, &call));
        const hf_pb_get_workflow_execution_history_response *response = call.response;
        HF_TRY(add_page(op, p, response->history));
        token = response->next_page_token;
    } while (token.len > 0 && p->wf->event_id_next + (int64_t)p->count <= until);
    return HF_OK;
}

hf_status hf_wf_load(hf_op *op, hf_wf *wf, hf_wtask *task, hf_events *ret_events)
{
    const hf_pb_poll_workflow_task_queue_response *t = task->task;
    hf_assert(t != NULL);
    hf_assert(wf->event_id_next >= 1);
    pages p = {.wf = wf, .arena = &task->arena};
    bool is_query = t->query != NULL; /* a run in memory has seen everything then; else all of its history is played */
    int64_t until = is_query ? INT64_MAX : t->started_event_id;
    if (wf->event_id_next == 1 && (is_query || t->previous_started_event_id > 0)) {
        atomic_fetch_add(&wf->worker->replays, 1);
    }
    HF_TRY(add_page(op, &p, t->history));
    bool has_none = p.count == 0 && t->next_page_token.len == 0 && !(is_query && wf->has_begun);
    if (p.has_gap || has_none) {
        p.has_gap = false;
        HF_TRY(fetch(op, &p, (hf_str){NULL, 0}, until));
    } else if (t->next_page_token.len > 0) {
        HF_TRY(fetch(op, &p, t->next_page_token, until));
    }
    if (p.has_gap) {
        return hf_fail(op, HF_ERR_INVALID, "the history of run %.*s does not begin with event %" PRId64,
                       HF_STR_ARGS(wf->run_id), wf->event_id_next);
    }
    *ret_events = (hf_events){p.items, p.count};
    return HF_OK;
}
