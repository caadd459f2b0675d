/* What lists see of a run. See visible.h. */
#include "run/visible.h"

hf_visible hf_visible_of_run(const hf_run *run, hf_arena *arena)
{
    return (hf_visible){
        .number = run->number,
        .namespace_ = hf_owned_str(&run->namespace),
        .workflow_id = hf_owned_str(&run->workflow_id),
        .run_id = hf_owned_str(&run->run_id),
        .first_run_id = hf_owned_str(&run->first_run_id),
        .workflow_type = hf_owned_str(&run->workflow_type),
        .task_queue = hf_owned_str(&run->task_queue),
        .start = hf_owned_str(&run->start),
        .memo = hf_owned_str(&run->memo),
        .search_attributes = hf_owned_str(&run->search_attributes),
        .paused = hf_visible_paused(run, arena),
        .kind = run->kind,
        .status = run->status,
        .start_time = run->start_time,
        .close_time = hf_run_is_open(run) ? 0 : run->close_time,
        .event_count = run->event_count,
        .history_len = run->history_len,
        .transitions = run->transitions,
        .keep = run->keep,
        .is_hidden = run->deleting != HF_DELETING_NOT,
        .is_nameless = run->is_nameless,
    };
}

static bool is_shown(int64_t part)
{
    return part == HF_PART_MEMO || part == HF_PART_SEARCH_ATTRIBUTES || part == HF_PART_START;
}

bool hf_visible_of_sight(const hf_pb_run_sight *sight, hf_visible *ret_visible)
{
    for (size_t i = 0; i < sight->parts.count; i++) {
        if (is_shown(sight->parts.items[i].key)) {
            return false;
        }
    }
    for (size_t i = 0; i < sight->activities.count; i++) {
        if (sight->activities.items[i].pause.len > 0) {
            return false; /* the type of an activity is in its event */
        }
    }
    if (sight->version < HF_RUN_VERSION_START) {
        return false;
    }
    bool is_open = sight->status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING;
    *ret_visible = (hf_visible){
        .number = sight->run,
        .namespace_ = sight->namespace,
        .workflow_id = sight->workflow_id,
        .run_id = sight->run_id,
        .first_run_id = sight->first_run_id.len > 0 ? sight->first_run_id : sight->run_id, /* as hf_run_unabridge */
        .workflow_type = sight->workflow_type,
        .task_queue = sight->task_queue,
        .start = sight->start,
        .memo = sight->memo,
        .search_attributes = sight->search_attributes,
        .kind = (hf_run_kind)sight->kind,
        .status = sight->status,
        .start_time = sight->start_time,
        .close_time = is_open                  ? 0
                      : sight->close_time != 0 ? sight->close_time
                                               : sight->last_time,
        .event_count = sight->event_count,
        .history_len = sight->history_len,
        .transitions = sight->transitions,
        .keep = sight->keep > 0 ? sight->keep : 0,
        .is_hidden = sight->is_deleting != HF_DELETING_NOT,
        .is_nameless = sight->is_nameless,
    };
    return true;
}

size_t hf_visible_len(const hf_visible *visible)
{
    return visible->namespace_.len + visible->workflow_id.len + visible->run_id.len + visible->first_run_id.len +
           visible->workflow_type.len + visible->task_queue.len + visible->start.len + visible->memo.len +
           visible->search_attributes.len + visible->paused.len;
}

hf_visible hf_visible_copy(hf_arena *arena, const hf_visible *visible)
{
    hf_visible copy = *visible;
    hf_str *const texts[] = {&copy.namespace_,        &copy.workflow_id, &copy.run_id, &copy.first_run_id,
                             &copy.workflow_type,     &copy.task_queue,  &copy.start,  &copy.memo,
                             &copy.search_attributes, &copy.paused};
    for (size_t i = 0; i < HF_COUNT_OF(texts); i++) {
        *texts[i] = hf_arena_copy(arena, *texts[i]);
    }
    return copy;
}

/* ---- Attributes -------------------------------------------------------------------------------------------------------- */

/* Its rare facts; a run without them has a message that is empty. */
static const hf_start_facts *facts_of(hf_visible_row *row)
{
    if (!row->has_facts) {
        hf_op op;
        hf_op_init(&op);
        row->has_facts = true;
        if (hf_pb_decode(&op, &hf_pb_workflow_execution_started_event_attributes_type, row->run->start, row->arena,
                         &row->facts) != HF_OK) {
            row->facts = (hf_start_facts){0};
        }
    }
    return &row->facts;
}

static const hf_pb_payload *attribute_of(hf_visible_row *row, hf_str name)
{
    if (row->run->paused.len > 0 && hf_visible_is_paused_name(name)) {
        return hf_visible_paused_payload(row->arena, row->run->paused);
    }
    if (!row->has_attributes) {
        hf_op op;
        hf_op_init(&op);
        row->has_attributes = true;
        if (hf_pb_decode(&op, &hf_pb_search_attributes_type, row->run->search_attributes, row->arena,
                         &row->attributes) != HF_OK) {
            row->attributes = (hf_pb_search_attributes){0};
        }
    }
    for (size_t i = 0; i < row->attributes.indexed_fields.count; i++) {
        if (hf_str_equal(row->attributes.indexed_fields.items[i].key, name)) {
            return row->attributes.indexed_fields.items[i].value;
        }
    }
    return NULL;
}

static void set_text(hf_attr_value *value, hf_str text)
{
    value->is_set = true;
    value->text = text;
}

/* An id that a run may have or not. */
static void set_id(hf_attr_value *value, const hf_pb_workflow_execution *execution, bool is_run)
{
    if (execution != NULL) {
        set_text(value, is_run ? execution->run_id : execution->workflow_id);
    }
}

static void set_number(hf_attr_value *value, int64_t number)
{
    value->is_set = true;
    value->number = number;
}

/* When its first workflow task was or is due. */
static int64_t execution_time(hf_visible_row *row)
{
    int64_t time = row->run->start_time;
    int64_t wait = row->run->start.len > 0 ? hf_pb_duration_span(facts_of(row)->first_workflow_task_backoff).ns : 0;
    int64_t due = 0;
    return wait > 0 && !__builtin_add_overflow(time, wait, &due) ? due : time;
}

int64_t hf_visible_number(hf_visible_row *row, hf_attr_id id)
{
    const hf_visible *run = row->run;
    switch (id) {
    case HF_ATTR_START_TIME:
        return run->start_time;
    case HF_ATTR_EXECUTION_TIME:
        return execution_time(row);
    case HF_ATTR_CLOSE_TIME:
        return run->close_time;
    case HF_ATTR_EXECUTION_DURATION:
        return run->close_time - run->start_time;
    case HF_ATTR_HISTORY_LENGTH:
        return run->event_count;
    case HF_ATTR_HISTORY_SIZE_BYTES:
        return run->history_len;
    case HF_ATTR_STATE_TRANSITION_COUNT:
        return (int64_t)run->transitions;
    case HF_ATTR_EXECUTION_STATUS:
        return run->status;
    case HF_ATTR_WORKFLOW_ID:
    case HF_ATTR_RUN_ID:
    case HF_ATTR_WORKFLOW_TYPE:
    case HF_ATTR_TASK_QUEUE:
    case HF_ATTR_PARENT_WORKFLOW_ID:
    case HF_ATTR_PARENT_RUN_ID:
    case HF_ATTR_ROOT_WORKFLOW_ID:
    case HF_ATTR_ROOT_RUN_ID:
    case HF_ATTR_SYSTEM_COUNT:
        break;
    }
    hf_assert(false); /* the others are texts */
    return 0;
}

static void get_root(hf_visible_row *row, bool is_run, hf_attr_value *value)
{
    const hf_start_facts *facts = facts_of(row);
    if (facts->root_workflow_execution != NULL) {
        set_id(value, facts->root_workflow_execution, is_run);
    } else { /* a run without a parent is its own root */
        set_text(value, is_run ? row->run->run_id : row->run->workflow_id);
    }
}

static void get_system(hf_visible_row *row, hf_attr_id id, hf_attr_value *value)
{
    const hf_visible *run = row->run;
    switch (id) {
    case HF_ATTR_WORKFLOW_ID:
        set_text(value, run->workflow_id);
        return;
    case HF_ATTR_RUN_ID:
        set_text(value, run->run_id);
        return;
    case HF_ATTR_WORKFLOW_TYPE:
        set_text(value, run->workflow_type);
        return;
    case HF_ATTR_TASK_QUEUE:
        set_text(value, run->task_queue);
        return;
    case HF_ATTR_EXECUTION_STATUS:
    case HF_ATTR_START_TIME:
    case HF_ATTR_EXECUTION_TIME:
        set_number(value, hf_visible_number(row, id));
        return;
    case HF_ATTR_PARENT_WORKFLOW_ID:
    case HF_ATTR_PARENT_RUN_ID:
        set_id(value, facts_of(row)->parent_workflow_execution, id == HF_ATTR_PARENT_RUN_ID);
        return;
    case HF_ATTR_ROOT_WORKFLOW_ID:
    case HF_ATTR_ROOT_RUN_ID:
        get_root(row, id == HF_ATTR_ROOT_RUN_ID, value);
        return;
    case HF_ATTR_CLOSE_TIME:
    case HF_ATTR_EXECUTION_DURATION:
    case HF_ATTR_HISTORY_LENGTH:
    case HF_ATTR_HISTORY_SIZE_BYTES:
    case HF_ATTR_STATE_TRANSITION_COUNT:
        /* As on Temporal, an open run has neither the length of its history nor a duration yet: a list would have to be written with every
         * change to tell them. */
        if (run->close_time != 0) {
            set_number(value, hf_visible_number(row, id));
        }
        return;
    case HF_ATTR_SYSTEM_COUNT:
        break;
    }
    hf_assert(false); /* every attribute of the system is above */
}

void hf_visible_get(const void *row, const hf_attr *attr, hf_attr_value *ret_value)
{
    /* The row is const to filters. It keeps what was decoded, because most filters ask for several attributes. */
    hf_visible_row *self = (hf_visible_row *)(uintptr_t)row;
    hf_assert(self->run != NULL && self->arena != NULL);
    if (attr->id < HF_ATTR_SYSTEM_COUNT) {
        get_system(self, attr->id, ret_value);
        return;
    }
    const hf_pb_payload *payload = attribute_of(self, attr->name);
    if (payload == NULL || !hf_attr_value_of_payload(self->arena, attr->type, payload, ret_value)) {
        *ret_value = (hf_attr_value){0};
    }
}

/* ---- As lists show it --------------------------------------------------------------------------------------------------- */

/* A message that the run has as bytes, decoded in the arena; NULL: there is none, or it cannot be read. */
static void *decode_new(hf_arena *arena, hf_str bytes, const hf_pb_type *type, size_t len)
{
    hf_op op;
    hf_op_init(&op);
    void *msg = bytes.len > 0 ? hf_arena_zero(arena, len, _Alignof(max_align_t)) : NULL;
    hf_str copy = msg != NULL ? hf_arena_copy(arena, bytes) : HF_STR("");
    return msg != NULL && arena->status == HF_OK && hf_pb_decode(&op, type, copy, arena, msg) == HF_OK ? msg : NULL;
}

void hf_visible_show(const hf_visible *visible, hf_arena *arena, hf_pb_workflow_execution_info *ret_info)
{
    *ret_info = (hf_pb_workflow_execution_info){0};
    hf_visible copy = hf_visible_copy(arena, visible);
    hf_visible_row row = {.run = &copy, .arena = arena};
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    hf_pb_workflow_execution *root = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    hf_pb_workflow_type *type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    if (arena->status != HF_OK) {
        return;
    }
    const hf_start_facts *facts = facts_of(&row);
    *execution = (hf_pb_workflow_execution){.workflow_id = copy.workflow_id, .run_id = copy.run_id};
    *root = facts->root_workflow_execution != NULL ? *facts->root_workflow_execution : *execution;
    type->name = copy.workflow_type;
    *ret_info = (hf_pb_workflow_execution_info){
        .execution = execution,
        .type = type,
        .root_execution = root,
        .parent_execution = facts->parent_workflow_execution,
        .parent_namespace_id = facts->parent_workflow_namespace_id,
        .start_time = hf_pb_timestamp_of((hf_time){copy.start_time}),
        .execution_time = hf_pb_timestamp_of((hf_time){execution_time(&row)}),
        .status = copy.status,
        .task_queue = copy.task_queue,
        .first_run_id = copy.first_run_id,
        .memo = copy.memo.len > 0 ? decode_new(arena, copy.memo, &hf_pb_memo_type, sizeof(hf_pb_memo))
                                  : HF_ARENA_NEW(arena, hf_pb_memo), /* SDKs read it without looking */
        .search_attributes =
            decode_new(arena, copy.search_attributes, &hf_pb_search_attributes_type, sizeof(hf_pb_search_attributes)),
    };
    hf_visible_put_paused(arena, copy.paused, &ret_info->search_attributes);
    if (copy.close_time != 0) {
        ret_info->close_time = hf_pb_timestamp_of((hf_time){copy.close_time});
        ret_info->execution_duration = hf_pb_duration_of(hf_nanoseconds(copy.close_time - copy.start_time));
        ret_info->history_length = copy.event_count;
        ret_info->history_size_bytes = copy.history_len;
        ret_info->state_transition_count = (int64_t)copy.transitions;
    }
}
