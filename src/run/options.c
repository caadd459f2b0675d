/* Options of a run that a client changes while it runs: the versioning override and the priority, which are among the facts of its start
 * (start.c), and request ids of later starts that were answered with this run.
 *
 * The event that tells of a change may have to wait for the end of a started workflow task, but the change holds at once: what is read
 * here counts the events in the buffer, too. */
#include "run/machines.h"

static void change(const hf_pb_workflow_execution_options_updated_event_attributes *attrs, hf_start_facts *facts)
{
    if (attrs->unset_versioning_override) {
        facts->versioning_override = NULL;
    } else if (attrs->versioning_override != NULL) {
        facts->versioning_override = attrs->versioning_override;
    }
    facts->priority = attrs->priority != NULL ? attrs->priority : facts->priority;
}

/* The attributes of the buffered event `index`; NULL: it is another one. */
static const hf_pb_workflow_execution_options_updated_event_attributes *buffered_at(const hf_run *run, size_t index,
                                                                                    hf_arena *arena)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_history_event *event = HF_ARENA_NEW(arena, hf_pb_history_event);
    if (event == NULL || hf_pb_decode(&op, &hf_pb_history_event_type, hf_owned_str(&run->buffered.items[index]), arena,
                                      event) != HF_OK) {
        return NULL;
    }
    return event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED
               ? event->workflow_execution_options_updated_event_attributes
               : NULL;
}

bool hf_run_options(const hf_run *run, hf_arena *arena, hf_pb_workflow_execution_options *ret_options)
{
    hf_start_facts facts;
    if (!hf_run_start_facts(run, arena, &facts)) {
        return false;
    }
    for (size_t i = 0; i < run->buffered.count; i++) {
        const hf_pb_workflow_execution_options_updated_event_attributes *attrs = buffered_at(run, i, arena);
        if (attrs != NULL) {
            change(attrs, &facts);
        }
    }
    *ret_options = (hf_pb_workflow_execution_options){
        .versioning_override = facts.versioning_override,
        .priority = facts.priority,
    };
    return arena->status == HF_OK;
}

/* ---- Attached request ids ------------------------------------------------------------------------------------------------- */

hf_attached *hf_attached_add(hf_run_memory *memory, hf_run *run, hf_str id, int64_t event_id)
{
    hf_assert(id.len > 0);
    if (!HF_VEC_RESERVE(memory, &run->attached)) {
        return NULL;
    }
    hf_attached *attached = &run->attached.items[run->attached.count++];
    *attached = (hf_attached){.event_id = event_id};
    hf_owned_set(memory, &attached->id, id);
    return attached;
}

static bool is_attached(const hf_run *run, hf_str id)
{
    for (size_t i = 0; i < run->attached.count; i++) {
        if (hf_str_equal(hf_owned_str(&run->attached.items[i].id), id)) {
            return true;
        }
    }
    return false;
}

bool hf_run_has_attached(const hf_run *run, hf_str id, hf_arena *arena)
{
    if (id.len == 0) {
        return false;
    }
    for (size_t i = 0; i < run->buffered.count; i++) {
        const hf_pb_workflow_execution_options_updated_event_attributes *attrs = buffered_at(run, i, arena);
        if (attrs != NULL && hf_str_equal(attrs->attached_request_id, id)) {
            return true;
        }
    }
    return is_attached(run, id);
}

hf_status hf_options_updated(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_execution_options_updated_event_attributes *attrs =
        event->workflow_execution_options_updated_event_attributes;
    if (attrs->unset_versioning_override || attrs->versioning_override != NULL || attrs->priority != NULL) {
        hf_start_facts facts;
        if (!hf_run_start_facts(run, a->memory->scratch, &facts)) {
            return hf_fail(a->op, HF_ERR_INVALID, "run %lld: the facts of its start cannot be read",
                           (long long)run->number);
        }
        change(attrs, &facts);
        hf_run_set_start(a->memory, run, &facts);
    }
    if (attrs->attached_request_id.len > 0 && !is_attached(run, attrs->attached_request_id)) {
        hf_attached_add(a->memory, run, attrs->attached_request_id, event->event_id);
    }
    return a->memory->status;
}

/* ---- Description ---------------------------------------------------------------------------------------------------------- */

static void describe_request(hf_pb_workflow_execution_extended_info *info, hf_arena *arena, hf_str id, int32_t type,
                             int64_t event_id)
{
    hf_pb_request_id_info *shown = HF_ARENA_NEW(arena, hf_pb_request_id_info);
    if (shown != NULL && id.len > 0) {
        *shown = (hf_pb_request_id_info){.event_type = type, .event_id = event_id, .buffered = event_id == 0};
        info->request_id_infos.items[info->request_id_infos.count++] =
            (hf_pb_workflow_execution_extended_info_request_id_infos_entry){.key = hf_arena_copy(arena, id),
                                                                            .value = shown};
    }
}

void hf_run_describe_requests(const hf_run *run, hf_arena *arena, hf_pb_workflow_execution_extended_info *info)
{
    info->request_id_infos.items = HF_ARENA_ARRAY(arena, hf_pb_workflow_execution_extended_info_request_id_infos_entry,
                                                  1 + run->attached.count + run->buffered.count);
    if (info->request_id_infos.items == NULL) {
        return;
    }
    describe_request(info, arena, hf_owned_str(&run->start_request_id), HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, 1);
    for (size_t i = 0; i < run->attached.count; i++) {
        describe_request(info, arena, hf_owned_str(&run->attached.items[i].id),
                         HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED, run->attached.items[i].event_id);
    }
    for (size_t i = 0; i < run->buffered.count; i++) {
        const hf_pb_workflow_execution_options_updated_event_attributes *attrs = buffered_at(run, i, arena);
        if (attrs != NULL) {
            describe_request(info, arena, attrs->attached_request_id, HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED,
                             0);
        }
    }
}
