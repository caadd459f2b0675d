/* The commands of one activation, and whether the history agrees with them.
 *
 *     activation n: the fibers run, records are added ----> sent (when it is the newest) or expected (in a replay)
 *     activation n + 1 begins with the events of these commands, in order: each is compared with its record
 *
 * The first difference ends the replay: everything after it would be a guess. A record that is not needed any more
 * before it was sent, such as the timer of a scope that was left in time, is withdrawn: neither the command nor its
 * cancelation is sent. */
#include "worker/wf.h"

#include "base/canary.h"
#include "fiber/crew/crew_private.h"

#include <inttypes.h>
#include <stdio.h>

/* The source of the arena for a step. */
static hf_arenas *source_of(hf_recorder *recorder)
{
    hf_worker *worker = HF_CONTAINER(recorder, hf_wf, recorder)->worker;
    hf_assert(worker != NULL);
    return &worker->arenas;
}

void hf_recorder_init(hf_recorder *recorder)
{
    hf_list_init(&recorder->records);
    hf_list_init(&recorder->published);
    recorder->published_count = 0;
    hf_arena_init(&recorder->arena, source_of(recorder)->memory);
}

void hf_recorder_deinit(hf_recorder *recorder)
{
    hf_list_init(&recorder->records);
    hf_list_init(&recorder->published);
    recorder->published_count = 0;
    hf_arenas_give(source_of(recorder), &recorder->arena);
}

void hf_recorder_reset(hf_recorder *recorder)
{
    hf_list_init(&recorder->records);
    if (!HF_CANARY(HF_BUG_PUBLISHED_AGAIN)) {
        hf_list_init(&recorder->published);
        recorder->published_count = 0;
    }
    hf_arenas_give(source_of(recorder), &recorder->arena);
    recorder->arena = hf_arenas_take(source_of(recorder));
}

hf_command_record *hf_recorder_add(hf_recorder *recorder, int32_t type, uint32_t attributes_case, size_t attributes_len,
                                   void **ret_attributes)
{
    hf_arena *arena = &recorder->arena;
    hf_assert(attributes_len > 0);
    hf_command_record *record = HF_ARENA_NEW(arena, hf_command_record);
    hf_pb_command *command = HF_ARENA_NEW(arena, hf_pb_command);
    void *attributes = hf_arena_zero(arena, attributes_len, 16);
    if (arena->status != HF_OK) {
        return NULL;
    }
    hf_wf *wf = HF_CONTAINER(recorder, hf_wf, recorder);
    hf_wf_tag(wf, arena, command, wf->forking != NULL ? wf->forking : hf_crew_self_scope());
    if (arena->status != HF_OK) {
        return NULL;
    }
    command->command_type = type;
    command->attributes_case = attributes_case;
    command->start_timer_command_attributes = attributes; /* a union of pointers */
    record->type = type;
    record->file = hf_crew_self_place(&record->line);
    record->pb = command;
    hf_list_push_back(&recorder->records, &record->node);
    *ret_attributes = attributes;
    return record;
}

static bool is_to_go(const hf_command_record *record)
{
    return !record->is_withdrawn || (HF_CANARY(HF_BUG_WITHDRAWN_SENT) && record->pb != NULL);
}

hf_pb_command_list hf_recorder_commands(const hf_recorder *recorder, hf_arena *arena)
{
    size_t count = 0;
    HF_LIST_EACH(node, &recorder->records)
    {
        count += is_to_go(HF_CONTAINER(node, hf_command_record, node));
    }
    hf_pb_command_list list = {HF_ARENA_ARRAY(arena, hf_pb_command, count), 0};
    HF_LIST_EACH(node, &recorder->records)
    {
        const hf_command_record *record = HF_CONTAINER(node, hf_command_record, node);
        if (list.items != NULL && is_to_go(record)) {
            hf_assert(record->pb != NULL); /* it goes with hf_recorder_compact, after the answer */
            list.items[list.count++] = *record->pb;
        }
    }
    hf_assert(list.items == NULL || list.count == count);
    return list;
}

hf_pb_message_list hf_recorder_messages(const hf_recorder *recorder, hf_arena *arena)
{
    size_t count = 0;
    HF_LIST_EACH(node, &recorder->records)
    {
        count += HF_CONTAINER(node, hf_command_record, node)->message != NULL;
    }
    hf_pb_message_list list = {count > 0 ? HF_ARENA_ARRAY(arena, hf_pb_message, count) : NULL, 0};
    HF_LIST_EACH(node, &recorder->records)
    {
        const hf_command_record *record = HF_CONTAINER(node, hf_command_record, node);
        if (list.items != NULL && record->message != NULL) {
            list.items[list.count++] = *record->message;
        }
    }
    hf_assert(list.items == NULL || list.count == count);
    return list;
}

/* The memory that the records need between steps, with the header of a chunk. */
static size_t kept_len(const hf_recorder *recorder)
{
    size_t len = 2 * sizeof(void *);
    HF_LIST_EACH(node, &recorder->records)
    {
        const hf_command_record *record = HF_CONTAINER(node, hf_command_record, node);
        if (!record->is_withdrawn) { /* records follow texts: each may be aligned */
            len += sizeof *record + record->id.len + record->name.len + 2 + _Alignof(hf_command_record) - 1;
        }
    }
    return len;
}

/* What waits for the event of this command knows the command. */
static void point_at(hf_command_record *record)
{
    hf_assert(!record->is_withdrawn); /* nobody waits for a command that is not sent */
    if (record->activity != NULL) {
        record->activity->record = record;
    }
    if (record->timer != NULL) {
        record->timer->record = record;
    }
    if (record->ask != NULL) {
        record->ask->record = record;
    }
}

static hf_command_record *keep(hf_arena *arena, const hf_command_record *from)
{
    hf_command_record *kept = HF_ARENA_NEW(arena, hf_command_record);
    if (kept != NULL) {
        *kept = *from;
        kept->pb = NULL;
        kept->message = NULL;
        kept->id = hf_arena_copy(arena, from->id);
        kept->name = hf_arena_copy(arena, from->name);
        point_at(kept);
    }
    return kept;
}

hf_status hf_recorder_compact(hf_recorder *recorder)
{
    hf_list kept;
    hf_arena small;
    hf_list_init(&kept);
    hf_arena_init(&small, source_of(recorder)->memory);
    small.chunk_len_next = kept_len(recorder); /* a run may wait for months with this: no byte more than it needs */
    HF_LIST_EACH(node, &recorder->records)
    {
        hf_command_record *record = HF_CONTAINER(node, hf_command_record, node);
        hf_command_record *copy = record->is_withdrawn ? NULL : keep(&small, record);
        if (copy != NULL) {
            hf_list_push_back(&kept, &copy->node);
        }
    }
    if (small.status != HF_OK) { /* the run is evicted with the records that it has */
        hf_status status = small.status;
        HF_LIST_EACH(node, &recorder->records)
        {
            hf_command_record *record = HF_CONTAINER(node, hf_command_record, node);
            if (!record->is_withdrawn) {
                point_at(record);
            }
        }
        hf_arena_deinit(&small);
        return status;
    }
    hf_list_init(&recorder->records);
    hf_list_init(&recorder->published);
    recorder->published_count = 0;
    while (!hf_list_is_empty(&kept)) {
        hf_list_push_back(&recorder->records, hf_list_pop_front(&kept));
    }
    hf_arenas_give(source_of(recorder), &recorder->arena);
    recorder->arena = small;
    return HF_OK;
}

/* ---- Comparing --------------------------------------------------------------------------------------------------- */

/* The command that an event came from, as far as the event tells. */
typedef struct claim {
    int32_t type; /* hf_pb_command_type; 0 = a command that this worker never makes */
    hf_str id;
    hf_str name;
    hf_span span;
    int64_t scheduled_event_id;
} claim;

/* The command that an event comes from, by the type of the event; 0 = it comes from none. */
static const uint8_t COMMANDS[] = {
    [HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED] = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
    [HF_EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED] = HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK,
    [HF_EVENT_TYPE_TIMER_STARTED] = HF_COMMAND_TYPE_START_TIMER,
    [HF_EVENT_TYPE_TIMER_CANCELED] = HF_COMMAND_TYPE_CANCEL_TIMER,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED] = HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED] = HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED] = HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION,
    [HF_EVENT_TYPE_MARKER_RECORDED] = HF_COMMAND_TYPE_RECORD_MARKER,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED] = HF_COMMAND_TYPE_PROTOCOL_MESSAGE,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED] = HF_COMMAND_TYPE_PROTOCOL_MESSAGE,
    [HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW] = HF_COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION,
    [HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED] = HF_COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION,
    [HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED] = HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION,
    [HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED] =
        HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION,
    [HF_EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES] = HF_COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
    [HF_EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED] = HF_COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES,
};

static int32_t command_of(int32_t event_type)
{
    return event_type >= 0 && (size_t)event_type < HF_COUNT_OF(COMMANDS) ? COMMANDS[event_type] : 0;
}

bool hf_event_is_of_command(int32_t event_type)
{
    return command_of(event_type) != 0;
}

static claim claim_of(const hf_pb_history_event *event)
{
    claim c = {.type = command_of(event->event_type)};
    if (event->attributes_case == HF_PB_HISTORY_EVENT_ACTIVITY_TASK_SCHEDULED_EVENT_ATTRIBUTES) {
        const hf_pb_activity_task_scheduled_event_attributes *a = event->activity_task_scheduled_event_attributes;
        c.id = a->activity_id;
        c.name = a->activity_type != NULL ? a->activity_type->name : (hf_str){NULL, 0};
    } else if (event->attributes_case == HF_PB_HISTORY_EVENT_TIMER_STARTED_EVENT_ATTRIBUTES) {
        c.id = event->timer_started_event_attributes->timer_id;
        c.span = hf_pb_duration_span(event->timer_started_event_attributes->start_to_fire_timeout);
    } else if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_ACCEPTED_EVENT_ATTRIBUTES) {
        c.name = HF_STR("accepted");
        c.id = event->workflow_execution_update_accepted_event_attributes->protocol_instance_id;
    } else if (event->attributes_case == HF_PB_HISTORY_EVENT_WORKFLOW_EXECUTION_UPDATE_COMPLETED_EVENT_ATTRIBUTES) {
        const hf_pb_meta *meta = event->workflow_execution_update_completed_event_attributes->meta;
        c.name = HF_STR("completed");
        c.id = meta != NULL ? meta->update_id : (hf_str){NULL, 0};
    } else if (event->attributes_case ==
               HF_PB_HISTORY_EVENT_START_CHILD_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES) {
        const hf_pb_start_child_workflow_execution_initiated_event_attributes *a =
            event->start_child_workflow_execution_initiated_event_attributes;
        c.id = a->workflow_id;
        c.name = a->workflow_type != NULL ? a->workflow_type->name : (hf_str){NULL, 0};
    } else if (event->attributes_case ==
               HF_PB_HISTORY_EVENT_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES) {
        const hf_pb_signal_external_workflow_execution_initiated_event_attributes *a =
            event->signal_external_workflow_execution_initiated_event_attributes;
        c.id = a->workflow_execution != NULL ? a->workflow_execution->workflow_id : (hf_str){NULL, 0};
        c.name = a->signal_name;
    } else if (event->attributes_case ==
               HF_PB_HISTORY_EVENT_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES) {
        const hf_pb_request_cancel_external_workflow_execution_initiated_event_attributes *a =
            event->request_cancel_external_workflow_execution_initiated_event_attributes;
        c.id = a->workflow_execution != NULL ? a->workflow_execution->workflow_id : (hf_str){NULL, 0};
    } else if (event->attributes_case == HF_PB_HISTORY_EVENT_MARKER_RECORDED_EVENT_ATTRIBUTES) {
        c.name = event->marker_recorded_event_attributes->marker_name;
        c.id = hf_wf_patch_key(event->marker_recorded_event_attributes);
        c.id = c.id.len > 0 ? c.id : hf_wf_local_key(event->marker_recorded_event_attributes);
    } else if (event->attributes_case == HF_PB_HISTORY_EVENT_TIMER_CANCELED_EVENT_ATTRIBUTES) {
        c.id = event->timer_canceled_event_attributes->timer_id;
    } else if (event->attributes_case == HF_PB_HISTORY_EVENT_ACTIVITY_TASK_CANCEL_REQUESTED_EVENT_ATTRIBUTES) {
        c.scheduled_event_id = event->activity_task_cancel_requested_event_attributes->scheduled_event_id;
    }
    return c;
}

static bool agrees(const hf_command_record *record, const claim *c)
{
    bool is_cancel = record->type == HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK;
    return record->type == c->type && (is_cancel || hf_str_equal(record->id, c->id)) &&
           hf_str_equal(record->name, c->name) && record->span.ns == c->span.ns &&
           record->scheduled_event_id == c->scheduled_event_id;
}

/* "ScheduleActivityTask id=3 type=charge". */
static void describe(char *text, size_t capacity, const char *what, hf_str id, hf_str name, hf_span span, int64_t of)
{
    int used = snprintf(text, capacity, "%s", what);
    if (id.len > 0 && used > 0 && (size_t)used < capacity) {
        used += snprintf(text + used, capacity - (size_t)used, " id=%.*s", HF_STR_ARGS(id));
    }
    if (name.len > 0 && used > 0 && (size_t)used < capacity) {
        used += snprintf(text + used, capacity - (size_t)used, " type=%.*s", HF_STR_ARGS(name));
    }
    if (span.ns > 0 && used > 0 && (size_t)used < capacity) {
        bool is_whole = span.ns % 1000000 == 0; /* two spans that differ must not look alike */
        used += snprintf(text + used, capacity - (size_t)used, " span=%" PRId64 "%s",
                         is_whole ? span.ns / 1000000 : span.ns, is_whole ? "ms" : "ns");
    }
    if (of > 0 && used > 0 && (size_t)used < capacity) {
        (void)snprintf(text + used, capacity - (size_t)used, " of_event=%" PRId64, of);
    }
}

void hf_wf_put_place(char *text, size_t capacity, const char *file, int line)
{
    size_t used = strlen(text);
    if (file != NULL) {
        const char *slash = strrchr(file, '/');
        (void)snprintf(text + used, capacity - used, " at %s:%d", slash != NULL ? slash + 1 : file, line);
    }
}

/* What the code did instead of a command: nothing, or it waits for a local activity. */
static void describe_none(char *text, size_t capacity, const hf_wf *wf)
{
    if (hf_list_is_empty(&wf->locals)) {
        (void)snprintf(text, capacity, "nothing more");
        return;
    }
    const hf_wf_local *local = HF_CONTAINER(hf_list_first(&wf->locals), hf_wf_local, node);
    (void)snprintf(text, capacity, "local activity id=%" PRIu64 " type=%.60s", local->first_seq, local->name);
    hf_wf_put_place(text, capacity, local->file, local->line);
}

static void describe_record(char *text, size_t capacity, const hf_recorder *recorder, const hf_command_record *record)
{
    if (record == NULL) {
        describe_none(text, capacity, HF_CONTAINER_CONST(recorder, hf_wf, recorder));
        return;
    }
    const char *what = hf_pb_enum_brief(&hf_pb_command_type_enum, record->type);
    describe(text, capacity, what != NULL ? what : "?", record->id, record->name, record->span,
             record->scheduled_event_id);
    hf_wf_put_place(text, capacity, record->file, record->line);
}

enum { SIDE_LEN = 160 };

#define WHY_NOT_SAME "; its code was changed, or reads something that changes: see holdfast/workflow.h"

/* The marker of a patch, in a step that was played by HF_WF_RULE_PATCHES: the code may ask for it in another step, or not any
 * more. The runs that have it take the new branch in any case. */
static bool is_free_patch(const hf_recorder *recorder, const hf_pb_history_event *event)
{
    return recorder->patches_are_free &&
           event->attributes_case == HF_PB_HISTORY_EVENT_MARKER_RECORDED_EVENT_ATTRIBUTES &&
           hf_wf_patch_key(event->marker_recorded_event_attributes).len > 0;
}

/* The record of this patch, if the step has one. `*ret_first`: no other record is before it. */
static hf_command_record *find_free(const hf_recorder *recorder, hf_str key, bool *ret_first)
{
    *ret_first = true;
    HF_LIST_EACH(node, &recorder->records)
    {
        hf_command_record *record = HF_CONTAINER(node, hf_command_record, node);
        if (record->is_free && hf_str_equal(record->id, key)) {
            return record;
        }
        *ret_first &= record->is_withdrawn || record->is_free;
    }
    return NULL;
}

/* The next record that must have an event. Those that need none, or whose event may be anywhere, are passed over. */
static hf_node *next_bound(hf_recorder *recorder)
{
    HF_LIST_EACH(node, &recorder->records)
    {
        const hf_command_record *record = HF_CONTAINER(node, hf_command_record, node);
        if (record->is_withdrawn) {
            hf_list_remove(node);
        } else if (!record->is_free) {
            return node;
        }
    }
    return NULL;
}

hf_status hf_recorder_check(hf_op *op, hf_recorder *recorder, const hf_pb_history_event *event,
                            hf_command_record **ret_record)
{
    if (is_free_patch(recorder, event)) {
        bool is_first = false;
        hf_command_record *patch =
            find_free(recorder, hf_wf_patch_key(event->marker_recorded_event_attributes), &is_first);
        if (patch == NULL || is_first) { /* else its place among the commands of this step differs */
            if (patch != NULL) {
                hf_list_remove(&patch->node);
            }
            *ret_record = patch;
            return HF_OK;
        }
    }
    hf_node *node = next_bound(recorder);
    hf_command_record *record = node != NULL ? HF_CONTAINER(node, hf_command_record, node) : NULL;
    claim c = claim_of(event);
    if ((record == NULL || !agrees(record, &c)) && hf_wf_is_deprecated_patch(event)) {
        *ret_record = NULL; /* the code does not ask for it any more */
        return HF_OK;
    }
    if (record != NULL && agrees(record, &c)) {
        hf_list_remove(node);
        *ret_record = record;
        return HF_OK;
    }
    char ours[SIDE_LEN];
    char theirs[SIDE_LEN];
    const char *what = hf_pb_enum_brief(&hf_pb_event_type_enum, event->event_type);
    describe_record(ours, sizeof ours, recorder, record);
    describe(theirs, sizeof theirs, what != NULL ? what : "?", c.id, c.name, c.span, c.scheduled_event_id);
    return hf_fail(op, HF_ERR_CONFLICT,
                   "not deterministic: the history has %s (event %" PRId64 "), the workflow made %s" WHY_NOT_SAME,
                   theirs, event->event_id, ours);
}

hf_status hf_recorder_check_end(hf_op *op, const hf_recorder *recorder, int64_t event_id)
{
    HF_LIST_EACH(node, &recorder->records)
    {
        const hf_command_record *record = HF_CONTAINER(node, hf_command_record, node);
        if (!record->is_withdrawn && !record->is_free) {
            char ours[SIDE_LEN];
            describe_record(ours, sizeof ours, recorder, record);
            return hf_fail(op, HF_ERR_CONFLICT,
                           "not deterministic: the history has nothing more before event %" PRId64
                           ", the workflow made %s" WHY_NOT_SAME,
                           event_id, ours);
        }
    }
    return HF_OK;
}
