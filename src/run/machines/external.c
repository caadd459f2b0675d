/* Signals and cancel requests to other runs.
 *
 *     new --> initiated --> delivered --> (gone)
 *                 |
 *                 +-------> failed ----> (gone)
 *
 * A message is initiated by an event, and ends with one that says what became of it. While it is on its way the run remembers the event
 * that initiated it, so that the message can be made again after a crash. The engine carries it (engine/machines/external.c). */
#include "run/machines.h"

#include <string.h>

_Static_assert(HF_EXTERNAL_STATE_COUNT == HF_EXTERNAL_FAILED + 1, "the table has a row for every state");
static const hf_rule RULES[HF_EXTERNAL_STATE_COUNT] = {
    [HF_EXTERNAL_NEW] = {"new", HF_BIT(HF_EXTERNAL_INITIATED)},
    [HF_EXTERNAL_INITIATED] = {"initiated", HF_BIT(HF_EXTERNAL_DELIVERED) | HF_BIT(HF_EXTERNAL_FAILED)},
    [HF_EXTERNAL_DELIVERED] = {"delivered", 0},
    [HF_EXTERNAL_FAILED] = {"failed", 0},
};
const hf_machine hf_external_machine = {"external", RULES, HF_EXTERNAL_STATE_COUNT};

bool hf_external_is_good(const hf_pb_history_event *event)
{
    switch (event->attributes_case) {
    case HF_PB_HISTORY_EVENT_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES:
        return event->event_type == HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED &&
               event->signal_external_workflow_execution_initiated_event_attributes->workflow_execution != NULL;
    case HF_PB_HISTORY_EVENT_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED_EVENT_ATTRIBUTES:
        return event->event_type == HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED &&
               event->request_cancel_external_workflow_execution_initiated_event_attributes->workflow_execution != NULL;
    default:
        return false;
    }
}

hf_external *hf_external_add(hf_run_memory *memory, hf_run *run, int64_t initiated_id, hf_str event)
{
    if (!HF_VEC_RESERVE(memory, &run->externals)) {
        return NULL;
    }
    hf_external *external = &run->externals.items[run->externals.count++];
    *external = (hf_external){.state = HF_EXTERNAL_INITIATED, .initiated_id = initiated_id};
    hf_owned_set(memory, &external->event, event);
    return external;
}

hf_status hf_external_initiated(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    if (!hf_external_is_good(event)) {
        return hf_fail(a->op, HF_ERR_INVALID, "event %lld is a message without a target", (long long)event->event_id);
    }
    hf_assert(hf_arrow_take(&a->memory->arrows, HF_MACHINE_EXTERNAL, HF_EXTERNAL_NEW, HF_EXTERNAL_INITIATED));
    hf_external_add(a->memory, run, event->event_id, bytes);
    hf_assert(a->effects->message == 0); /* one event, one message */
    a->effects->message = event->event_id;
    return a->memory->status;
}

static int64_t initiated_id_of(const hf_pb_history_event *event, hf_external_state *ret_state)
{
    *ret_state = HF_EXTERNAL_DELIVERED;
    switch (event->event_type) {
    case HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
        return event->external_workflow_execution_signaled_event_attributes->initiated_event_id;
    case HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        return event->external_workflow_execution_cancel_requested_event_attributes->initiated_event_id;
    case HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        *ret_state = HF_EXTERNAL_FAILED;
        return event->signal_external_workflow_execution_failed_event_attributes->initiated_event_id;
    case HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        *ret_state = HF_EXTERNAL_FAILED;
        return event->request_cancel_external_workflow_execution_failed_event_attributes->initiated_event_id;
    default:
        return 0;
    }
}

static void drop(hf_run_memory *memory, hf_run *run, hf_external *external)
{
    hf_owned_free(memory, &external->event);
    size_t index = (size_t)(external - run->externals.items);
    run->externals.count--;
    memmove(external, external + 1, (run->externals.count - index) * sizeof *external);
}

hf_status hf_external_mark_ended(hf_apply *a, hf_run *run, const hf_pb_history_event *event)
{
    hf_external_state state = HF_EXTERNAL_NEW;
    int64_t initiated_id = event->attributes_case != 0 ? initiated_id_of(event, &state) : 0;
    if (initiated_id == 0) {
        return HF_OK; /* another kind of event */
    }
    hf_external *external = hf_run_external(run, initiated_id);
    if (external == NULL || !hf_arrow_take(&a->memory->arrows, HF_MACHINE_EXTERNAL, (int)external->state, (int)state)) {
        return hf_fail(a->op, HF_ERR_INVALID, "the message of event %lld has ended or never existed",
                       (long long)initiated_id);
    }
    external->state = state;
    return HF_OK;
}

hf_status hf_external_ended(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    hf_external_state state = HF_EXTERNAL_NEW;
    int64_t initiated_id = initiated_id_of(event, &state);
    hf_external *external = hf_run_external(run, initiated_id);
    if (external == NULL || external->state != state) { /* unless that was done when it was buffered */
        HF_TRY(hf_external_mark_ended(a, run, event));
    }
    external = hf_run_external(run, initiated_id);
    if (external == NULL) {
        return hf_fail(a->op, HF_ERR_INVALID, "an event ends a message but does not name it");
    }
    drop(a->memory, run, external);
    return HF_OK;
}

hf_status hf_external_apply_gone(hf_apply *a, hf_run *run, int64_t initiated_id)
{
    hf_external *external = hf_run_external(run, initiated_id);
    if (external == NULL) {
        return hf_fail(a->op, HF_ERR_INVALID, "the message of event %lld is not pending", (long long)initiated_id);
    }
    drop(a->memory, run, external);
    return HF_OK;
}
