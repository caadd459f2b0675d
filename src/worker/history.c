/* The events of a task, step by step. A poll brings the first page; for a run that is in memory it has only the new events.
 * The other pages are asked for one by one, when they are needed, and the whole history from its start if the first page
 * does not follow the last event of the run.
 *
 *     pages of bytes ---> the step at hand: up to its WorkflowTaskStarted     decoded, in task->steps[0]
 *                    \--> what follows it: WorkflowTaskCompleted, the         decoded, in task->steps[1]; with the next
 *                         events of its commands, and one event more          step it becomes steps[0]
 *
 * Nothing else is decoded, of common events only what a run uses, and pages that were played are freed. So a replay holds a bounded part of a history that may
 * have 50 MiB, and whose events take several times that when they are decoded.
 *
 * worker-H2  Beside the step at hand and the events of its commands, a replay holds at most HF_WF_HELD_MAX bytes of history:
 *            one event, and the page that it is in. */
#include "worker/wf.h"

#include "service/codec.h"

#include <inttypes.h>

enum { HISTORY_EVENT = 1, EVENT_ID = 1, EVENT_TYPE = 3, EVENT_TIME = 2 }; /* fields of History and HistoryEvent */
enum {
    ACTIVITY_SCHEDULED = 15,
    ACTIVITY_ID = 1,
    ACTIVITY_TYPE = 2,
    TYPE_NAME = 1
};                                                            /* ActivityTaskScheduled, and of that */
enum { TASK_STARTED = 11, SUGGEST_NEW = 4, HISTORY_LEN = 5 }; /* WorkflowTaskStarted, and of that */
enum { SECONDS = 1, NANOS = 2 };                              /* of Timestamp */

static const int64_t IS_READ = INT64_MAX - 1; /* freed with the task, if not before */

/* A page that was asked for. In its own arena. */
typedef struct page {
    hf_node node; /* in task->pages, oldest first */
    hf_arena arena;
    int64_t last; /* its last event; IS_READ = it is being read */
} page;

void hf_wf_pages_free(hf_worker *worker, hf_list *pages, int64_t before)
{
    HF_LIST_EACH(node, pages)
    {
        page *p = HF_CONTAINER(node, page, node);
        if (p->last >= before) {
            return;
        }
        hf_list_remove(node);
        hf_arena arena = p->arena;
        hf_arenas_give(&worker->arenas, &arena);
    }
}

/* Whether a rule is named that is not known. */
static bool has_strange_rule(const hf_pb_workflow_task_completed_metadata *sdk, uint32_t *ret_rule)
{
    for (size_t k = 0; k < sdk->lang_used_flags.count; k++) {
        *ret_rule = sdk->lang_used_flags.items[k];
        if (*ret_rule == 0 || *ret_rule > HF_WF_RULE_LAST) {
            return true;
        }
    }
    for (size_t k = 0; k < sdk->core_used_flags.count; k++) {
        *ret_rule = sdk->core_used_flags.items[k] - HF_WF_FLAG_BASE;
        if (sdk->core_used_flags.items[k] > HF_WF_FLAG_BASE + HF_WF_RULE_LAST) {
            return true;
        }
    }
    return false;
}

/* Refuses a step that ran by rules that this version does not know: it would play it by others, and what its code is told
 * could differ without a command that differs. */
static hf_status check_rules(hf_op *op, const hf_pb_history_event *event)
{
    const hf_pb_workflow_task_completed_metadata *sdk =
        event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_TASK_COMPLETED_EVENT_ATTRIBUTES
            ? event->workflow_task_completed_event_attributes->sdk_metadata
            : NULL;
    uint32_t rule = 0;
    if (sdk == NULL || !hf_str_equal(sdk->sdk_name, HF_STR(HF_WF_SDK_NAME)) || !has_strange_rule(sdk, &rule)) {
        return HF_OK;
    }
    return hf_fail(op, HF_ERR_UNSUPPORTED,
                   "written by a newer Holdfast: event %" PRId64 ", of %.*s %.*s, names rule %" PRIu32
                   ", and this version (" HF_VERSION_TEXT
                   ") knows 1 to %d; run the workflow with a worker of that version or a later one",
                   event->event_id, HF_STR_ARGS(sdk->sdk_name), HF_STR_ARGS(sdk->sdk_version), rule, HF_WF_RULE_LAST);
}

/* The id and the type of an event, which most writers put first. */
typedef struct glance {
    int64_t id;
    int32_t type;
} glance;

static glance glance_at(hf_str event)
{
    glance seen = {0, 0};
    hf_pb_raw field;
    const uint8_t *at = (const uint8_t *)event.data;
    if (event.len > 8 && at[0] == (EVENT_ID << 3 | HF_PB_WIRE_VARINT)) { /* as the engine writes them */
        const uint8_t *end = at + event.len;
        unsigned shift = 0;
        for (at++; shift < 28 && (*at & 0x80) != 0; at++, shift += 7) {
            seen.id |= (int64_t)(*at & 0x7f) << shift;
        }
        seen.id |= (int64_t)(*at++ & 0x7f) << shift;
        bool has_time = at[0] == (EVENT_TIME << 3 | HF_PB_WIRE_BYTES) && at[1] < 24 && at[1] + 4 <= end - at;
        at += has_time ? 2 + at[1] : 0;
        if (shift < 28 && at[0] == (EVENT_TYPE << 3 | HF_PB_WIRE_VARINT) && at[1] < 0x80) {
            seen.type = at[1];
            return seen;
        }
        seen.id = 0;
    }
    while ((seen.id == 0 || seen.type == 0) && hf_pb_next(&event, &field)) {
        if (field.number == EVENT_ID) {
            seen.id = (int64_t)field.value;
        } else if (field.number == EVENT_TYPE) {
            seen.type = (int32_t)field.value;
        }
    }
    return seen;
}

/* Whether an event of a page is looked at before it is played. */
static bool is_of_interest(hf_str event)
{
    glance seen = glance_at(event);
    return seen.type == HF_EVENT_TYPE_MARKER_RECORDED || seen.type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED;
}

static hf_status check_event(hf_op *op, hf_wf *wf, hf_str bytes)
{
    hf_worker *worker = wf->worker;
    hf_pb_history_event event = {0};
    hf_arena scratch = hf_arenas_take(&worker->arenas);
    hf_status status = hf_pb_decode(op, &hf_pb_history_event_type, bytes, &scratch, &event);
    status = status == HF_OK ? check_rules(op, &event) : status;
    if (status == HF_OK && event.event_type == HF_EVENT_TYPE_MARKER_RECORDED) {
        status = hf_codec_decode(op, worker->service->codec, &hf_pb_history_event_type, &event, &scratch, false);
        status = status == HF_OK ? hf_wf_note_patch(op, wf, &event) : status;
    }
    hf_arenas_give(&worker->arenas, &scratch);
    return status;
}

/* Looks at the rules of all steps of a page, and at the markers of patches, before one of them is played. */
static hf_status check_page(hf_op *op, hf_wf *wf, hf_str bytes)
{
    hf_pb_raw field;
    while (hf_pb_next(&bytes, &field)) {
        if (field.number == HISTORY_EVENT && field.wire == HF_PB_WIRE_BYTES && is_of_interest(field.bytes)) {
            HF_TRY(check_event(op, wf, field.bytes));
        }
    }
    return bytes.data != NULL ? HF_OK : hf_fail(op, HF_ERR_INVALID, "a page of history is damaged");
}

/* ---- Pages ------------------------------------------------------------------------------------------------------- */

static void end_page(hf_wf_reader *r)
{
    if (!hf_list_is_empty(&r->task->pages)) {
        page *last = HF_CONTAINER(hf_list_last(&r->task->pages), page, node);
        last->last = r->id_next - 1;
    }
}

/* hf_patched looks through the whole history: of pages that are played later, the markers are noted now, and nothing else is
 * kept of them. Most histories have one page. */
static hf_status note_rest(hf_op *op, hf_wf_reader *r)
{
    hf_worker *worker = r->wf->worker;
    if (HF_LIKELY(r->has_noted || r->is_last)) {
        return HF_OK;
    }
    hf_arena tokens = hf_arenas_take(&worker->arenas);
    hf_str token = hf_arena_copy(&tokens, r->token);
    hf_status status = tokens.status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a page of history");
    r->has_noted = true;
    while (status == HF_OK && token.len > 0) {
        hf_arena arena = hf_arenas_take(&worker->arenas);
        hf_pb_workflow_execution execution = {.workflow_id = r->wf->id, .run_id = r->wf->run_id};
        hf_pb_get_workflow_execution_history_request request = {
            .namespace = worker->namespace_, .execution = &execution, .next_page_token = token};
        hf_call call;
        hf_worker_call_init(worker, &call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena);
        call.replays = true;
        status = hf_service_ask(op, worker->service, &call);
        if (status == HF_OK) {
            const hf_pb_get_workflow_execution_history_response *response = call.response;
            status = response->history.len > 0 ? check_page(op, r->wf, response->history) : HF_OK;
            token = hf_arena_copy(&tokens, response->next_page_token);
        }
        hf_arenas_give(&worker->arenas, &arena);
    }
    hf_arenas_give(&worker->arenas, &tokens);
    return status;
}

/* Asks for the page with the reader's token; empty = the first one. */
static hf_status fetch(hf_op *op, hf_wf_reader *r)
{
    hf_worker *worker = r->wf->worker;
    hf_arena arena = hf_arenas_take(&worker->arenas);
    page *made = HF_ARENA_NEW(&arena, page);
    hf_pb_workflow_execution execution = {.workflow_id = r->wf->id, .run_id = r->wf->run_id};
    hf_pb_get_workflow_execution_history_request request = {
        .namespace = worker->namespace_, .execution = &execution, .next_page_token = r->token};
    hf_call call;
    hf_status status = made != NULL ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a page of history");
    if (status == HF_OK) {
        hf_worker_call_init(worker, &call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, &arena);
        call.replays = true;
        status = hf_service_ask(op, worker->service, &call);
    }
    if (status != HF_OK) {
        hf_arenas_give(&worker->arenas, &arena);
        return status;
    }
    const hf_pb_get_workflow_execution_history_response *response = call.response;
    end_page(r);
    r->rest = response->history;
    r->token = response->next_page_token;
    r->is_last = r->token.len == 0;
    *made = (page){.arena = arena, .last = IS_READ};
    hf_list_push_back(&r->task->pages, &made->node);
    HF_TRY(r->rest.len > 0 ? check_page(op, r->wf, r->rest) : HF_OK);
    return note_rest(op, r);
}

hf_status hf_wf_open_history(hf_op *op, hf_wf *wf, hf_wtask *task, hf_wf_reader *ret_reader)
{
    const hf_pb_poll_workflow_task_queue_response *t = task->task;
    hf_assert(t != NULL && hf_list_is_empty(&task->pages));
    hf_assert(wf->event_id_next >= 1);
    *ret_reader = (hf_wf_reader){.wf = wf,
                                 .task = task,
                                 .rest = t->history,
                                 .token = t->next_page_token,
                                 .is_last = t->next_page_token.len == 0,
                                 .is_query = t->query != NULL,
                                 .until = t->query != NULL ? INT64_MAX : t->started_event_id,
                                 .id_next = wf->event_id_next};
    if (wf->event_id_next == 1 && (t->query != NULL || t->previous_started_event_id > 0)) {
        atomic_fetch_add(&wf->worker->replays, 1);
    }
    /* The one step that follows the last one of a run in memory has nothing of others. */
    bool is_next = wf->has_begun && t->query == NULL && t->previous_started_event_id == wf->event_id_next - 1 &&
                   ret_reader->is_last;
    HF_TRY(t->history.len > 0 && !is_next ? check_page(op, wf, t->history) : HF_OK);
    return note_rest(op, ret_reader);
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

/* Of an ActivityTaskScheduled the run needs what its command is compared with. */
static hf_status decode_scheduled(hf_op *op, hf_str bytes, hf_arena *arena, hf_pb_history_event *event)
{
    hf_pb_activity_task_scheduled_event_attributes *a =
        HF_ARENA_NEW(arena, hf_pb_activity_task_scheduled_event_attributes);
    hf_pb_activity_type *type = HF_ARENA_NEW(arena, hf_pb_activity_type);
    hf_str attributes = {NULL, 0};
    hf_pb_raw field;
    if (a == NULL || type == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for event %" PRId64, event->event_id);
    }
    while (attributes.data == NULL && hf_pb_next(&bytes, &field)) {
        if (field.number == ACTIVITY_SCHEDULED && field.wire == HF_PB_WIRE_BYTES) {
            attributes = field.bytes;
        }
    }
    while (a->activity_type == NULL && hf_pb_next(&attributes, &field)) {
        if (field.number == ACTIVITY_ID && field.wire == HF_PB_WIRE_BYTES) {
            a->activity_id = field.bytes;
        } else if (field.number == ACTIVITY_TYPE && field.wire == HF_PB_WIRE_BYTES) {
            hf_str parts = field.bytes;
            while (hf_pb_next(&parts, &field)) {
                type->name = field.number == TYPE_NAME ? field.bytes : type->name;
            }
            a->activity_type = type;
        }
    }
    event->attributes_case = HF_PB_HISTORY_EVENT_ACTIVITY_TASK_SCHEDULED_EVENT_ATTRIBUTES;
    event->activity_task_scheduled_event_attributes = a;
    return HF_OK;
}

/* Of a WorkflowTaskStarted it needs the time and what is known of the history. */
static hf_status decode_started(hf_op *op, hf_str bytes, hf_arena *arena, hf_pb_history_event *event)
{
    hf_pb_workflow_task_started_event_attributes *a = HF_ARENA_NEW(arena, hf_pb_workflow_task_started_event_attributes);
    hf_str attributes = {NULL, 0};
    hf_str time = {NULL, 0};
    hf_pb_raw field;
    if (a == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for event %" PRId64, event->event_id);
    }
    while (attributes.data == NULL && hf_pb_next(&bytes, &field)) {
        if (field.number == EVENT_TIME && field.wire == HF_PB_WIRE_BYTES) {
            time = field.bytes;
        } else if (field.number == TASK_STARTED && field.wire == HF_PB_WIRE_BYTES) {
            attributes = field.bytes;
        }
    }
    event->event_time.has = time.data != NULL;
    while (hf_pb_next(&time, &field)) {
        event->event_time.seconds = field.number == SECONDS ? (int64_t)field.value : event->event_time.seconds;
        event->event_time.nanos = field.number == NANOS ? (int32_t)field.value : event->event_time.nanos;
    }
    while (hf_pb_next(&attributes, &field)) {
        a->suggest_continue_as_new |= field.number == SUGGEST_NEW && field.value != 0;
        a->history_size_bytes = field.number == HISTORY_LEN ? (int64_t)field.value : a->history_size_bytes;
    }
    event->attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_STARTED_EVENT_ATTRIBUTES;
    event->workflow_task_started_event_attributes = a;
    return HF_OK;
}

/* Whether it is the answer that this run gave to the last step it played: it knows what that says. */
static bool is_own_answer(const hf_wf *wf, glance seen)
{
    return seen.type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED && wf->has_begun && seen.id == wf->event_id_next;
}

/* Decodes as much of the event as the run uses: of some it is enough that they are there. */
static hf_status decode_event(hf_op *op, const hf_wf_reader *r, hf_str bytes, glance seen, hf_arena *arena,
                              hf_pb_history_event *event)
{
    event->event_id = seen.id;
    event->event_type = seen.type;
    if (seen.type == HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED || seen.type == HF_EVENT_TYPE_ACTIVITY_TASK_STARTED ||
        is_own_answer(r->wf, seen)) {
        return HF_OK;
    }
    if (seen.type == HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED) {
        return decode_scheduled(op, bytes, arena, event);
    }
    if (seen.type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED) {
        return decode_started(op, bytes, arena, event);
    }
    HF_TRY(hf_pb_decode(op, &hf_pb_history_event_type, bytes, arena, event));
    return hf_codec_decode(op, r->wf->worker->service->codec, &hf_pb_history_event_type, event, arena, false);
}

/* Decodes the next event of the page at hand that was not seen before. `*ret_event` NULL: the page has no more.
 * `*ret_gap`: the event does not follow the last one. */
static hf_status next_of_page(hf_op *op, hf_wf_reader *r, hf_arena *arena, hf_pb_history_event **ret_event,
                              bool *ret_gap)
{
    hf_pb_raw field;
    *ret_event = NULL;
    while (hf_pb_next(&r->rest, &field)) {
        if (field.number != HISTORY_EVENT || field.wire != HF_PB_WIRE_BYTES) {
            continue;
        }
        glance seen = glance_at(field.bytes);
        if (seen.id < r->id_next) {
            continue; /* seen before */
        }
        hf_pb_history_event *event = HF_ARENA_NEW(arena, hf_pb_history_event);
        if (event == NULL) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for event %" PRId64, r->id_next);
        }
        HF_TRY(decode_event(op, r, field.bytes, seen, arena, event));
        *ret_gap = seen.id > r->id_next;
        *ret_event = event;
        return HF_OK;
    }
    return HF_OK; /* check_page has seen that it is whole */
}

/* The next event, from whichever page; NULL: the history ends here. */
static hf_status next_event(hf_op *op, hf_wf_reader *r, hf_arena *arena, const hf_pb_history_event **ret_event)
{
    bool has_gap = false;
    hf_pb_history_event *event = NULL;
    HF_TRY(next_of_page(op, r, arena, &event, &has_gap));
    bool is_new = !r->has_begun; /* a first page that is empty, or too late for the run: all of it is read */
    bool has_none = is_new && event == NULL && r->is_last && !(r->is_query && r->wf->has_begun);
    if ((has_gap && is_new) || has_none) {
        r->token = (hf_str){NULL, 0};
        event = NULL;
        has_gap = false;
        HF_TRY(fetch(op, r));
        HF_TRY(next_of_page(op, r, arena, &event, &has_gap));
    }
    while (event == NULL && !r->is_last && r->id_next <= r->until) {
        HF_TRY(fetch(op, r));
        HF_TRY(next_of_page(op, r, arena, &event, &has_gap));
    }
    if (event != NULL && has_gap) {
        return r->has_begun ? hf_fail(op, HF_ERR_INVALID, "event %" PRId64 " follows event %" PRId64, event->event_id,
                                      r->id_next - 1)
                            : hf_fail(op, HF_ERR_INVALID, "the history of run %.*s does not begin with event %" PRId64,
                                      HF_STR_ARGS(r->wf->run_id), r->wf->event_id_next);
    }
    if (event != NULL) {
        r->has_begun = true;
        r->id_next++;
    }
    *ret_event = event;
    return HF_OK;
}

static hf_status push(hf_op *op, hf_wf_events *events, hf_arena *arena, const hf_pb_history_event *event)
{
    if (events->count == events->capacity) {
        size_t capacity = events->capacity > 0 ? events->capacity * 2 : 16;
        const hf_pb_history_event **items =
            hf_arena_take(arena, hf_arena_array_len(capacity, sizeof *items), _Alignof(void *));
        if (items == NULL) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for a step of %zu events", events->count);
        }
        if (events->count > 0) {
            memcpy(items, events->items, events->count * sizeof *items);
        }
        events->items = items;
        events->capacity = capacity;
    }
    events->items[events->count++] = event;
    return HF_OK;
}

/* The step that was read last is over: what followed it begins the next one. */
static void turn_over(hf_wf_reader *r)
{
    hf_wtask *task = r->task;
    hf_arena done = task->steps[0];
    hf_arenas_give(&r->wf->worker->arenas, &done);
    task->steps[0] = r->ahead.count > 0 ? task->steps[1] : hf_arenas_take(&r->wf->worker->arenas);
    if (r->ahead.count > 0) { /* else it has no memory yet */
        hf_arena_init(&task->steps[1], r->wf->worker->memory);
    }
    r->now = r->ahead;
    r->ahead = (hf_wf_events){0};
    if (r->now.count > 0) {
        hf_wf_pages_free(r->wf->worker, &task->pages, r->now.items[0]->event_id);
    }
}

/* The events behind the WorkflowTaskStarted that ends the step, as far as the step needs them. */
static hf_status read_ahead(hf_op *op, hf_wf_reader *r, bool *ret_cut)
{
    hf_arena *arena = &r->task->steps[1];
    const hf_pb_history_event *event = NULL;
    if (arena->chunks == NULL) {
        *arena = hf_arenas_take(&r->wf->worker->arenas);
    }
    HF_TRY(next_event(op, r, arena, &event));
    *ret_cut = event != NULL && event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED;
    while (event != NULL) {
        HF_TRY(push(op, *ret_cut ? &r->ahead : &r->now, *ret_cut ? arena : &r->task->steps[0], event));
        if (!*ret_cut || (r->ahead.count > 1 && !hf_event_is_of_command(event->event_type))) {
            break;
        }
        size_t before = arena->used;
        HF_TRY(next_event(op, r, arena, &event));
        hf_assert(arena->used - before <= HF_WF_HELD_MAX || event == NULL ||
                  hf_event_is_of_command(event->event_type)); /* worker-H2 */
    }
    return HF_OK;
}

hf_status hf_wf_read_step(hf_op *op, hf_wf_reader *r, bool *ret_any)
{
    bool is_cut = false;
    turn_over(r);
    for (size_t i = 0; !is_cut; i++) {
        const hf_pb_history_event *event = NULL;
        if (i == r->now.count) {
            HF_TRY(next_event(op, r, &r->task->steps[0], &event));
            if (event == NULL || event->event_id > r->until) {
                *ret_any = false;
                return HF_OK;
            }
            HF_TRY(push(op, &r->now, &r->task->steps[0], event));
        }
        event = r->now.items[i];
        if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED && event->event_id == r->until) {
            r->now.count = i + 1;
            is_cut = true; /* the current step: nothing follows it */
        } else if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED) {
            hf_assert(i + 1 == r->now.count); /* what is read ahead ends before the next one */
            HF_TRY(read_ahead(op, r, &is_cut));
        }
    }
    *ret_any = true;
    return HF_OK;
}
