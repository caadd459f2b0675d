/* Verbs about the run itself: its facts, memory and scope, versions of its code, the next run of its chain, how it fails. */
#include "worker/wf.h"

#include "base/canary.h"
#include "base/json.h"
#include "base/span.h"
#include "client/errand.h"
#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/verbs.h"
#include "history/limits.h"
#include "history/payload.h"

#include <stdio.h>

/* ---- Facts and memory -------------------------------------------------------------------------------------------- */

const char *hf_wf_keep_text(hf_wf *wf, hf_str text)
{
    if (text.len == 0) {
        return "";
    }
    const char *copy = hf_arena_copy(&wf->kept, text).data;
    return copy != NULL ? copy : "";
}

/* The text for as long as the run is in memory. Most are the same as one that is there for as long. */
static const char *keep_like(hf_wf *wf, hf_str text, hf_str like)
{
    return hf_str_equal(text, like) ? like.data : hf_wf_keep_text(wf, text);
}

const char *hf_wf_keep_run_id(hf_wf *wf, hf_str run_id)
{
    return run_id.len > 0 ? keep_like(wf, run_id, wf->run_id) : wf->run_id.data;
}

static bool has_origin(const hf_wf *wf, const hf_pb_workflow_execution_started_event_attributes *a)
{
    const hf_pb_workflow_execution *root = a->root_workflow_execution;
    return a->parent_workflow_execution != NULL || (root != NULL && !hf_str_equal(root->workflow_id, wf->id)) ||
           a->cron_schedule.len > 0 || a->continued_execution_run_id.len > 0 || a->continued_failure != NULL ||
           a->last_completion_result != NULL || a->retry_policy != NULL ||
           hf_pb_duration_span(a->workflow_execution_timeout).ns != 0 ||
           hf_pb_duration_span(a->workflow_run_timeout).ns != 0;
}

/* False: no memory. */
static bool learn_origin(hf_wf *wf, const hf_pb_workflow_execution_started_event_attributes *a)
{
    const hf_pb_workflow_execution *parent = a->parent_workflow_execution;
    const hf_pb_workflow_execution *root = a->root_workflow_execution;
    hf_wf_origin *origin = HF_ARENA_NEW(&wf->kept, hf_wf_origin);
    if (origin == NULL) {
        return false;
    }
    wf->origin = origin;
    origin->parent_id = hf_wf_keep_text(wf, parent != NULL ? parent->workflow_id : HF_STR(""));
    origin->parent_run_id = hf_wf_keep_text(wf, parent != NULL ? parent->run_id : HF_STR(""));
    origin->root_id = root != NULL     ? keep_like(wf, root->workflow_id, wf->id)
                      : parent == NULL ? wf->id.data
                                       : origin->parent_id;
    origin->cron = hf_wf_keep_text(wf, a->cron_schedule);
    origin->continued_run_id = hf_wf_keep_text(wf, a->continued_execution_run_id);
    origin->last_failure =
        hf_wf_keep_text(wf, a->continued_failure != NULL ? a->continued_failure->message : HF_STR(""));
    origin->execution_timeout = hf_pb_duration_span(a->workflow_execution_timeout);
    origin->run_timeout = hf_pb_duration_span(a->workflow_run_timeout);
    return hf_payload_decode(a->last_completion_result, &wf->payloads, &origin->last_result) == HF_OK;
}

bool hf_wf_learn(hf_wf *wf, const hf_pb_history_event *event)
{
    const hf_pb_workflow_execution_started_event_attributes *a = event->workflow_execution_started_event_attributes;
    hf_assert(event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED && wf->entry != NULL);
    wf->task_queue =
        a->task_queue != NULL ? keep_like(wf, a->task_queue->name, wf->worker->queue) : wf->worker->queue.data;
    wf->first_run_id = hf_wf_keep_run_id(wf, a->first_execution_run_id);
    wf->attempt = a->attempt > 0 ? a->attempt : 1;
    wf->started = hf_pb_timestamp_time(event->event_time);
    if (has_origin(wf, a) && !learn_origin(wf, a)) {
        return false;
    }
    return wf->kept.status == HF_OK && hf_wf_header_keep(wf, a->header, &wf->header) && hf_wf_fields_learn(wf, a);
}

/* They are put together when they are asked for. A fiber that does not wait keeps its thread, so that they stay valid as long
 * as the header says. */
__attribute__((noinline)) const hf_workflow_facts *hf_workflow_info(void)
{
    static _Thread_local hf_workflow_facts facts;
    static const hf_wf_origin NONE = {
        .parent_id = "", .parent_run_id = "", .cron = "", .continued_run_id = "", .last_failure = ""};
    const hf_wf *wf = hf_wf_self();
    if (wf == NULL) {
        return NULL;
    }
    const hf_wf_origin *from = wf->origin != NULL ? wf->origin : &NONE;
    facts = (hf_workflow_facts){
        .id = wf->id.data,
        .run_id = wf->run_id.data,
        .type = wf->entry->name.data,
        .task_queue = wf->task_queue,
        .namespace_ = wf->worker->namespace_.data,
        .first_run_id = wf->first_run_id,
        .parent_id = from->parent_id,
        .cron = from->cron,
        .attempt = wf->attempt,
        .started = wf->started,
        .history_count = wf->history_count,
        .history_len = wf->history_len,
        .should_continue = wf->should_continue,
        .arg = wf->entry->arg,
        .parent_run_id = from->parent_run_id,
        .root_id = from->root_id != NULL ? from->root_id : wf->id.data,
        .continued_run_id = from->continued_run_id,
        .execution_timeout = from->execution_timeout,
        .run_timeout = from->run_timeout,
        .last_result = from->last_result,
        .last_failure = from->last_failure,
    };
    return &facts;
}

void *hf_workflow_alloc(size_t len)
{
    hf_wf *wf = hf_wf_self();
    if (wf == NULL) {
        HF_IGNORE(hf_raise(HF_ERR_MISUSE, "hf_workflow_alloc can only be called in a workflow"));
        return NULL;
    }
    void *room = len <= HF_HISTORY_LEN_MAX ? hf_arena_zero(&wf->kept, len > 0 ? len : 1, 16) : NULL;
    if (room == NULL) {
        wf->is_nomem = true;
        HF_IGNORE(hf_raise(HF_ERR_NOMEM, "no memory for %zu bytes of a workflow", len));
    }
    return room;
}

hf_scope *hf_workflow_scope(void)
{
    const hf_wf *wf = hf_wf_self();
    return wf != NULL ? wf->scope : NULL;
}

/* ---- Versions ---------------------------------------------------------------------------------------------------- */

/* The marker that other SDKs write, too: name, key of its details, and the data's text. */
#define PATCH_MARKER "core_patch"
#define PATCH_DETAILS "patch-data"
#define PATCH_TAIL ",\"deprecated\":"

static hf_str patch_data(const hf_pb_marker_recorded_event_attributes *marker)
{
    if (hf_str_equal(marker->marker_name, HF_STR(PATCH_MARKER))) {
        for (size_t i = 0; i < marker->details.count; i++) {
            const hf_pb_payloads *payloads = marker->details.items[i].value;
            if (hf_str_equal(marker->details.items[i].key, HF_STR(PATCH_DETAILS)) && payloads != NULL &&
                payloads->payloads.count > 0) {
                return payloads->payloads.items[0].data;
            }
        }
    }
    return (hf_str){NULL, 0};
}

/* Where the tail of the data begins; its length if there is none. */
static size_t tail_at(hf_str data)
{
    hf_str tail = HF_STR(PATCH_TAIL);
    for (size_t at = data.len; at >= tail.len; at--) {
        if (memcmp(data.data + at - tail.len, tail.data, tail.len) == 0) {
            return at - tail.len;
        }
    }
    return data.len;
}

hf_str hf_wf_patch_key(const hf_pb_marker_recorded_event_attributes *marker)
{
    hf_str data = patch_data(marker);
    return hf_str_of_len(data.data, data.len > 0 ? tail_at(data) : 0);
}

bool hf_wf_is_deprecated_patch(const hf_pb_history_event *event)
{
    if (event->attributes_case != HF_PB_HISTORY_EVENT_MARKER_RECORDED_EVENT_ATTRIBUTES) {
        return false;
    }
    hf_str data = patch_data(event->marker_recorded_event_attributes);
    size_t at = data.len > 0 ? tail_at(data) + strlen(PATCH_TAIL) : 0;
    return at > 0 && data.len >= at + 4 && memcmp(data.data + at, "true", 4) == 0;
}

static hf_wf_patch *find_patch(hf_wf *wf, hf_str id)
{
    for (hf_wf_patch *patch = wf->patches; patch != NULL; patch = patch->next) {
        if (hf_str_equal(id, hf_str_of_len(patch->id, patch->len))) {
            return patch;
        }
    }
    return NULL;
}

/* {"id":"express" -- without the tail. In the recorder's arena; empty: no memory. */
static hf_str key_of(hf_wf *wf, const char *id)
{
    hf_buf text;
    hf_buf_init(&text, wf->worker->memory, 8 * HF_ID_LEN_MAX);
    hf_buf_put(&text, "{\"id\":", 6);
    hf_json_quote(&text, id, strlen(id));
    hf_str key = {NULL, 0};
    if (text.status == HF_OK) {
        key = hf_arena_copy(&wf->recorder.arena, hf_str_of_len(text.data, text.len));
    }
    hf_buf_deinit(&text);
    return key;
}

static bool has_marker(const hf_wf *wf, hf_str key)
{
    for (size_t i = HF_CANARY(HF_BUG_PATCH_FORGOTTEN) ? wf->own_count : 0; i < wf->own_count; i++) {
        if (wf->own[i]->attributes_case == HF_PB_HISTORY_EVENT_MARKER_RECORDED_EVENT_ATTRIBUTES &&
            hf_str_equal(hf_wf_patch_key(wf->own[i]->marker_recorded_event_attributes), key)) {
            return true;
        }
    }
    return false;
}

static bool is_marked(const hf_wf *wf, hf_str key)
{
    for (const hf_wf_mark *mark = wf->marks; mark != NULL; mark = mark->next) {
        if (hf_str_equal(key, hf_str_of_len(mark->key, mark->len))) {
            return true;
        }
    }
    return false;
}

hf_status hf_wf_note_patch(hf_op *op, hf_wf *wf, const hf_pb_history_event *event)
{
    hf_assert(event->event_type == HF_EVENT_TYPE_MARKER_RECORDED);
    hf_str key = event->attributes_case == HF_PB_HISTORY_EVENT_MARKER_RECORDED_EVENT_ATTRIBUTES
                     ? hf_wf_patch_key(event->marker_recorded_event_attributes)
                     : (hf_str){NULL, 0};
    if (key.len == 0 || is_marked(wf, key)) {
        return HF_OK;
    }
    hf_wf_mark *mark = hf_arena_zero(&wf->kept, sizeof *mark + key.len, _Alignof(hf_wf_mark));
    if (mark == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the patches of a history");
    }
    mark->len = key.len;
    memcpy(mark->key, key.data, key.len);
    mark->next = wf->marks;
    wf->marks = mark;
    return HF_OK;
}

static bool record_patch(hf_wf *wf, hf_str key, bool is_deprecated)
{
    hf_arena *arena = &wf->recorder.arena;
    void *room = NULL;
    hf_assert(key.len > 0 && !wf->has_closed);
    hf_command_record *record =
        hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_RECORD_MARKER, HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_record_marker_command_attributes), &room);
    hf_pb_record_marker_command_attributes_details_entry *entry =
        HF_ARENA_NEW(arena, hf_pb_record_marker_command_attributes_details_entry);
    const char *tail = is_deprecated ? PATCH_TAIL "true}" : PATCH_TAIL "false}";
    size_t len = key.len + strlen(tail);
    char *data = hf_arena_take(arena, len + 1, 1);
    if (record == NULL || entry == NULL || data == NULL) {
        return false;
    }
    memcpy(data, key.data, key.len);
    memcpy(data + key.len, tail, strlen(tail) + 1);
    hf_pb_record_marker_command_attributes *a = room;
    a->marker_name = HF_STR(PATCH_MARKER);
    entry->key = HF_STR(PATCH_DETAILS);
    entry->value = hf_payload_encode(arena, hf_payload_of_json(data));
    a->details.items = entry;
    a->details.count = 1;
    record->name = HF_STR(PATCH_MARKER);
    record->id = key;
    record->is_free = hf_wf_plays_by(wf, HF_WF_RULE_PATCHES);
    if (HF_CANARY(HF_BUG_MARKER_OUT_OF_ORDER) && wf->is_current) {
        hf_list_remove(&record->node);
        hf_list_push_front(&wf->recorder.records, &record->node);
    }
    return arena->status == HF_OK;
}

/* Whether the run takes the new branch, and whether this step makes the marker. A step that was played before knows the whole
 * history: the marker may be of another step, if the call was moved. */
static bool is_new_branch(const hf_wf *wf, hf_str key, bool *ret_makes_marker)
{
    bool is_patched = wf->is_current || has_marker(wf, key);
    *ret_makes_marker = is_patched;
    if (hf_wf_plays_by(wf, HF_WF_RULE_PATCHES)) {
        *ret_makes_marker = wf->is_current ? !is_marked(wf, key) : is_patched;
        is_patched |= is_marked(wf, key) && !HF_CANARY(HF_BUG_PATCH_FORGOTTEN);
    }
    return is_patched;
}

/* Decides for the rest of the run, and records the marker if there is one. */
static hf_status decide(hf_fiber *self, hf_wf *wf, const char *verb, const char *id, bool is_deprecated,
                        bool *ret_patched)
{
    if (wf == NULL || id == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs an id, and can only be called in a workflow", verb);
    }
    HF_TRY(hf_not_evicted(self, verb));
    HF_TRY(hf_wf_not_over(self, wf, verb));
    if (id[0] == '\0' || hf_wf_is_too_long(id)) {
        return hf_refuse_at(self, HF_ERR_INVALID, verb, "%s: an id has 1 to %d bytes", verb, HF_ID_LEN_MAX);
    }
    const hf_wf_patch *known = find_patch(wf, hf_str_of(id));
    if (known != NULL) {
        *ret_patched = known->is_patched;
        return HF_OK;
    }
    size_t len = strlen(id);
    hf_str key = key_of(wf, id);
    hf_wf_patch *patch = hf_arena_zero(&wf->kept, sizeof *patch + len, _Alignof(hf_wf_patch));
    bool makes_marker = false;
    bool is_patched = key.len > 0 && patch != NULL && is_new_branch(wf, key, &makes_marker);
    if (key.len == 0 || patch == NULL || (makes_marker && !record_patch(wf, key, is_deprecated))) {
        wf->is_nomem = true;
        return hf_refuse_at(self, HF_ERR_NOMEM, verb, "no memory for patch '%.100s'", id);
    }
    patch->is_patched = is_patched;
    patch->len = len;
    memcpy(patch->id, id, len);
    patch->next = wf->patches;
    wf->patches = patch;
    *ret_patched = is_patched;
    return HF_OK;
}

static hf_status enter_patched(const char *id, bool *ret_patched)
{
    HF_VERB_ENTER(self, hf_patched, NULL);
    HF_LEAVE(self, decide(self, hf_wf_self(), "hf_patched", id, false, ret_patched));
}

bool(hf_patched)(const char *id)
{
    bool is_patched = false;
    HF_IGNORE(enter_patched(id, &is_patched)); /* the failure is in hf_error(); the next wait says so, too */
    return is_patched;
}

hf_status(hf_patch_deprecate)(const char *id)
{
    bool is_patched = false;
    HF_VERB_ENTER(self, hf_patch_deprecate, NULL);
    HF_LEAVE(self, decide(self, hf_wf_self(), "hf_patch_deprecate", id, true, &is_patched));
}

/* ---- The next run ------------------------------------------------------------------------------------------------ */

static hf_status check_next(hf_fiber *self, const hf_wf *wf, hf_payload in, const hf_continue_options *options)
{
    hf_op op;
    hf_op_init(&op);
    if (wf == NULL || !hf_crew_is_first(self)) {
        return hf_refuse(self, HF_ERR_MISUSE,
                         "hf_continue_as_new can only be called by the main function of a workflow, which then returns "
                         "its status");
    }
    HF_TRY(hf_not_evicted(self, "hf_continue_as_new"));
    if (hf_payload_check(&op, "hf_continue_as_new: the input", in) != HF_OK ||
        hf_text_check(&op, "hf_continue_as_new", ".type", options->type, 1, HF_ID_LEN_MAX) != HF_OK ||
        hf_text_check(&op, "hf_continue_as_new", ".task_queue", options->task_queue, 1, HF_QUEUE_LEN_MAX) != HF_OK ||
        hf_entries_check(&op, "hf_continue_as_new", ".memo", options->memo) != HF_OK ||
        hf_entries_check(&op, "hf_continue_as_new", ".search_attributes", options->search_attributes) != HF_OK ||
        hf_span_check(&op, "hf_continue_as_new", ".run_timeout", options->run_timeout, 0) != HF_OK ||
        hf_span_check(&op, "hf_continue_as_new", ".task_timeout", options->task_timeout, 0) != HF_OK) {
        return hf_refuse_at(self, op.status, "hf_continue_as_new", "%s", op.message);
    }
    return HF_OK;
}

hf_status hf_continue_as_new_with(hf_payload in, const hf_continue_options *options)
{
    HF_OPTIONS(hf_continue_options, options, hf_continue_as_new);
    HF_TRY(hf_wf_header_make("hf_continue_as_new", options->header));
    HF_VERB_ENTER(self, hf_continue_as_new, NULL);
    hf_wf *wf = hf_wf_self();
    hf_status status = check_next(self, wf, in, options);
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    hf_arena *arena = &wf->kept;
    hf_assert(wf->task_queue != NULL); /* hf_wf_learn */
    hf_wf_next *kept = HF_ARENA_NEW(arena, hf_wf_next);
    hf_pb_continue_as_new_workflow_execution_command_attributes *next = kept != NULL ? &kept->attributes : NULL;
    hf_pb_workflow_type *type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    hf_pb_task_queue *queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    if (next != NULL && type != NULL && queue != NULL) {
        type->name = hf_arena_copy(arena, options->type != NULL ? hf_str_of(options->type) : wf->entry->name);
        queue->name = hf_arena_copy(arena, options->task_queue != NULL ? hf_str_of(options->task_queue)
                                                                       : hf_str_of(wf->task_queue));
        queue->kind = HF_TASK_QUEUE_KIND_NORMAL;
        next->workflow_type = type;
        next->task_queue = queue;
        next->input = hf_payload_encode(arena, in);
        next->workflow_run_timeout = hf_duration_of_bound(options->run_timeout);
        next->workflow_task_timeout = hf_duration_of_bound(options->task_timeout);
        next->initiator = HF_CONTINUE_AS_NEW_INITIATOR_WORKFLOW;
        next->header = hf_wf_header_copy(hf_wf_header_take(wf), arena);
        next->memo = options->memo != NULL ? HF_ARENA_NEW(arena, hf_pb_memo) : NULL;
        next->search_attributes =
            options->search_attributes != NULL ? HF_ARENA_NEW(arena, hf_pb_search_attributes) : NULL;
        if (next->memo != NULL) {
            hf_entries_memo(arena, options->memo, next->memo);
        }
        if (next->search_attributes != NULL) {
            hf_entries_search(arena, options->search_attributes, next->search_attributes);
        }
    }
    if (arena->status != HF_OK) {
        wf->is_nomem = true;
        HF_LEAVE(self, hf_refuse(self, HF_ERR_NOMEM, "no memory for the next run"));
    }
    kept->file = options->file;
    kept->line = options->line;
    wf->next = kept;
    HF_LEAVE(self, hf_refuse(self, HF_ERR_CONTINUED, "the workflow continues as a new run"));
}

/* ---- Failing ------------------------------------------------------------------------------------------------------- */

/* The failure as a message: it goes on as that message, wherever it is returned (client/failure.c). NULL: no memory. */
static hf_pb_failure *failure_of(hf_arena *arena, const char *type, const char *message,
                                 const hf_workflow_fail_options *options)
{
    hf_failure_body *body = hf_body_new(hf_str_of(type), hf_str_of(message), HF_STR(""), HF_STR("")); /* cuts them */
    if (body == NULL) {
        return NULL;
    }
    hf_pb_failure *failure = hf_failure_application(arena, hf_arena_copy(arena, hf_str_of(body->type)),
                                                    hf_arena_copy(arena, hf_str_of(body->message)), options->is_final);
    hf_body_unref(body);
    if (failure != NULL) {
        const hf_failure *last = hf_error();
        failure->application_failure_info->details = hf_payload_encode(arena, options->details);
        if (options->retry_after.ns > 0) {
            failure->application_failure_info->next_retry_delay = hf_pb_duration_of(options->retry_after);
        }
        failure->cause = last != NULL ? hf_failure_encode(arena, last, last->status) : NULL;
    }
    return arena->status == HF_OK ? failure : NULL;
}

static hf_status check_fail(const hf_wf *wf, const char *message, const hf_workflow_fail_options *options)
{
    hf_op op;
    hf_op_init(&op);
    HF_VERB_ENTER(self, hf_workflow_fail, NULL);
    if (wf == NULL || message == NULL) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, "hf_workflow_fail",
                                    "hf_workflow_fail needs a message, and can only be called in a workflow"));
    }
    bool is_good = hf_payload_check(&op, "hf_workflow_fail: .details", options->details) == HF_OK &&
                   hf_span_check(&op, "hf_workflow_fail", ".retry_after", options->retry_after, 0) == HF_OK;
    HF_LEAVE(self, is_good ? HF_OK : hf_refuse_at(self, op.status, "hf_workflow_fail", "%s", op.message));
}

hf_status hf_workflow_fail_with(const char *message, const hf_workflow_fail_options *options)
{
    HF_OPTIONS(hf_workflow_fail_options, options, hf_workflow_fail);
    hf_wf *wf = hf_wf_self();
    HF_TRY(check_fail(wf, message, options));
    const char *type = options->type != NULL ? options->type : hf_status_name(HF_ERR_FAILED);
    hf_arena arena; /* not the recorder's: a query leaves nothing there */
    hf_arena_init(&arena, wf->worker->memory);
    const hf_pb_failure *failure = failure_of(&arena, type, message, options);
    hf_status status = failure != NULL ? hf_failure_raise(HF_ERR_FAILED, type, failure) : HF_ERR_NOMEM;
    if (failure == NULL || !hf_failure_is_whole(failure)) { /* the next attempt of the step has more */
        wf->is_nomem = true;
        status = hf_raise(HF_ERR_NOMEM, "no memory for a failure");
    }
    hf_arena_deinit(&arena);
    return status;
}
