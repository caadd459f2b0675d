/* hf_describe: the service's description of a run, as a struct of the caller's. */
#include "base/env.h"
#include "client/show.h"
#include "fiber/verbs.h"

#include <string.h>

/* The caller gets a pointer to the first member. */
typedef struct box {
    hf_description shown;
    hf_arena arena; /* memory of everything, this struct included */
} box;

const char *hf_workflow_status_name(hf_workflow_status status)
{
    switch (status) {
#define STATUS_CASE(name, number, text) \
    case name:                          \
        return text;
        HF_WORKFLOW_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
    }
    return "Unknown";
}

static const char *text_of(hf_arena *arena, hf_str text)
{
    hf_str copy = hf_arena_copy(arena, text); /* with a NUL */
    return copy.data != NULL ? copy.data : "";
}

static hf_time time_of(hf_pb_timestamp time)
{
    return time.has ? hf_pb_timestamp_time(time) : (hf_time){0};
}

static hf_payload view_of(hf_arena *arena, const hf_pb_payload *payload)
{
    if (payload == NULL) {
        return hf_payload_none();
    }
    hf_pb_payload copy = *payload;
    hf_pb_payloads one = {.payloads = {&copy, 1}};
    return hf_payload_view(arena, &one);
}

/* The sentence of a failure with its causes: "the charge failed; because the card is blocked". */
static const char *failure_text(hf_arena *arena, const hf_pb_failure *failure)
{
    static const char LINK[] = "; because ";
    size_t len = 1;
    for (const hf_pb_failure *at = failure; at != NULL; at = at->cause) {
        len += at->message.len + (at != failure ? sizeof LINK - 1 : 0);
    }
    char *text = hf_arena_take(arena, len, 1);
    size_t used = 0;
    for (const hf_pb_failure *at = failure; at != NULL && text != NULL; at = at->cause) {
        size_t link_len = at != failure ? sizeof LINK - 1 : 0;
        memcpy(text + used, LINK, link_len);
        if (at->message.len > 0) {
            memcpy(text + used + link_len, at->message.data, at->message.len);
        }
        used += link_len + at->message.len;
    }
    if (text == NULL) {
        return "";
    }
    hf_assert(used == len - 1);
    text[used] = '\0';
    return text;
}

static void add_activity(hf_arena *arena, const hf_pb_pending_activity_info *from, hf_pending_activity *to)
{
    *to = (hf_pending_activity){
        .id = text_of(arena, from->activity_id),
        .type = from->activity_type != NULL ? text_of(arena, from->activity_type->name) : "",
        .state = (hf_pending_state)from->state,
        .attempt = from->attempt,
        .attempts_max = from->maximum_attempts,
        .scheduled = time_of(from->scheduled_time),
        .started = time_of(from->last_started_time),
        .next_attempt = time_of(from->next_attempt_schedule_time),
        .expires = time_of(from->expiration_time),
        .heartbeat_time = time_of(from->last_heartbeat_time),
        .heartbeat = hf_payload_view(arena, from->heartbeat_details),
        .last_failure = failure_text(arena, from->last_failure),
        .last_failure_type = from->last_failure != NULL ? text_of(arena, hf_failure_type_word(from->last_failure)) : "",
        .worker = text_of(arena, from->last_worker_identity),
    };
}

static void add_activities(hf_arena *arena, const hf_pb_describe_workflow_execution_response *from, hf_description *to)
{
    size_t count = from->pending_activities.count;
    hf_pending_activity *items = count > 0 ? HF_ARENA_ARRAY(arena, hf_pending_activity, count) : NULL;
    for (size_t i = 0; items != NULL && i < count; i++) {
        add_activity(arena, &from->pending_activities.items[i], &items[i]);
    }
    to->activities = items;
    to->activity_count = items != NULL ? count : 0;
}

static void add_children(hf_arena *arena, const hf_pb_describe_workflow_execution_response *from, hf_description *to)
{
    size_t count = from->pending_children.count;
    hf_pending_child *items = count > 0 ? HF_ARENA_ARRAY(arena, hf_pending_child, count) : NULL;
    for (size_t i = 0; items != NULL && i < count; i++) {
        const hf_pb_pending_child_execution_info *child = &from->pending_children.items[i];
        items[i] = (hf_pending_child){
            .id = text_of(arena, child->workflow_id),
            .run_id = text_of(arena, child->run_id),
            .type = text_of(arena, child->workflow_type_name),
        };
    }
    to->children = items;
    to->child_count = items != NULL ? count : 0;
}

/* The last entry, with a NULL key, is there, too. */
static hf_entry *entries_new(hf_arena *arena, size_t count)
{
    hf_entry *entries = HF_ARENA_ARRAY(arena, hf_entry, count + 1);
    hf_assert(entries != NULL || arena->status != HF_OK);
    return entries;
}

static void add_memo(hf_arena *arena, const hf_pb_memo *memo, hf_description *to)
{
    size_t count = memo != NULL ? memo->fields.count : 0;
    hf_entry *entries = entries_new(arena, count);
    for (size_t i = 0; entries != NULL && i < count; i++) {
        const hf_pb_memo_fields_entry *field = &memo->fields.items[i];
        entries[i] = (hf_entry){text_of(arena, field->key), view_of(arena, field->value)};
    }
    to->memo = entries;
    to->memo_count = count;
}

static void add_attributes(hf_arena *arena, const hf_pb_search_attributes *attributes, hf_description *to)
{
    size_t count = attributes != NULL ? attributes->indexed_fields.count : 0;
    hf_entry *entries = entries_new(arena, count);
    for (size_t i = 0; entries != NULL && i < count; i++) {
        const hf_pb_search_attributes_indexed_fields_entry *field = &attributes->indexed_fields.items[i];
        entries[i] = (hf_entry){text_of(arena, field->key), view_of(arena, field->value)};
    }
    to->search_attributes = entries;
    to->search_attribute_count = count;
}

void hf_description_fill(hf_arena *arena, const hf_pb_workflow_execution_info *info, hf_description *to)
{
    to->id = info->execution != NULL ? text_of(arena, info->execution->workflow_id) : "";
    to->run_id = info->execution != NULL ? text_of(arena, info->execution->run_id) : "";
    to->first_run_id = text_of(arena, info->first_run_id);
    to->type = info->type != NULL ? text_of(arena, info->type->name) : "";
    to->task_queue = text_of(arena, info->task_queue);
    to->parent_id = info->parent_execution != NULL ? text_of(arena, info->parent_execution->workflow_id) : "";
    to->parent_run_id = info->parent_execution != NULL ? text_of(arena, info->parent_execution->run_id) : "";
    to->status = (hf_workflow_status)info->status;
    to->started = time_of(info->start_time);
    to->begins = time_of(info->execution_time);
    to->closed = time_of(info->close_time);
    to->history_count = info->history_length;
    to->history_len = info->history_size_bytes;
    add_memo(arena, info->memo, to);
    add_attributes(arena, info->search_attributes, to);
}

static void add_rest(hf_arena *arena, const hf_pb_describe_workflow_execution_response *from, hf_description *to)
{
    if (from->execution_config != NULL && from->execution_config->user_metadata != NULL) {
        to->summary = view_of(arena, from->execution_config->user_metadata->summary);
    }
    if (from->workflow_extended_info != NULL) {
        to->is_cancel_requested = from->workflow_extended_info->cancel_requested;
        to->idle_since = time_of(from->workflow_extended_info->holdfast_idle_since);
    }
    if (from->pending_workflow_task != NULL) {
        to->task_attempt = from->pending_workflow_task->attempt;
    }
}

static hf_status make(hf_op *op, const hf_pb_describe_workflow_execution_response *from,
                      hf_description **ret_description)
{
    hf_arena arena;
    hf_assert(from->workflow_execution_info != NULL); /* remote-R6 */
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    box *b = HF_ARENA_NEW(&arena, box);
    if (b != NULL) {
        hf_description_fill(&arena, from->workflow_execution_info, &b->shown);
        add_rest(&arena, from, &b->shown);
        add_activities(&arena, from, &b->shown);
        add_children(&arena, from, &b->shown);
    }
    if (arena.status != HF_OK) {
        hf_arena_deinit(&arena);
        return hf_fail(op, HF_ERR_NOMEM, "hf_describe: no memory for the description");
    }
    b->arena = arena;
    *ret_description = &b->shown;
    return HF_OK;
}

hf_status hf_describe(hf_execution *execution, hf_description **ret_description)
{
    HF_TRY(HF_VERB_ALLOWED(hf_describe));
    if (execution == NULL || ret_description == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_describe needs an execution and a place for the description");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_describe", execution->id);
    hf_pb_workflow_execution which = hf_execution_target(execution);
    hf_pb_describe_workflow_execution_request request = {.namespace = execution->namespace_, .execution = &which};
    if (hf_errand_ask(&e, execution->service, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request) == HF_OK) {
        (void)make(&e.op, e.call.response, ret_description);
    }
    return hf_errand_end(&e);
}

void hf_description_free(hf_description *description)
{
    if (description != NULL) {
        hf_arena arena = HF_CONTAINER(description, box, shown)->arena; /* copied: the box itself lies in the arena */
        hf_arena_deinit(&arena);
    }
}
