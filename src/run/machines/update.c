/* Updates that the workflow's code has accepted, or that a reset has brought along.
 *
 *     new ----------------> accepted --> completed
 *      |                       ^
 *      +----> admitted --------+
 *
 * They stay with the run, also after its end: a caller who repeats an update, or asks for its outcome, finds the events by its
 * id. Earlier stages are not part of a run: an update that is not accepted yet is in memory only, and one that was rejected
 * leaves nothing. Only an update that a reset applies again has an event from the beginning: it was acknowledged once. If it is
 * rejected it stays admitted, until somebody asks for it again and it is accepted. */
#include "run/machines.h"

_Static_assert(HF_UPDATE_STATE_COUNT == HF_UPDATE_COMPLETED + 1, "the table has a row for every state");
static const hf_rule RULES[HF_UPDATE_STATE_COUNT] = {
    [HF_UPDATE_NEW] = {"new", HF_BIT(HF_UPDATE_ADMITTED) | HF_BIT(HF_UPDATE_ACCEPTED)},
    [HF_UPDATE_ADMITTED] = {"admitted", HF_BIT(HF_UPDATE_ACCEPTED)},
    [HF_UPDATE_ACCEPTED] = {"accepted", HF_BIT(HF_UPDATE_COMPLETED)},
    [HF_UPDATE_COMPLETED] = {"completed", 0},
};
const hf_machine hf_update_machine = {"update", RULES, HF_UPDATE_STATE_COUNT};

hf_update_state hf_update_state_of(const hf_update *update)
{
    return update->completed_id != 0  ? HF_UPDATE_COMPLETED
           : update->accepted_id != 0 ? HF_UPDATE_ACCEPTED
                                      : HF_UPDATE_ADMITTED;
}

hf_update *hf_update_add(hf_run_memory *memory, hf_run *run, hf_str id)
{
    hf_assert(id.len > 0);
    if (!HF_VEC_RESERVE(memory, &run->updates)) {
        return NULL;
    }
    hf_update *update = &run->updates.items[run->updates.count++];
    *update = (hf_update){0};
    hf_owned_set(memory, &update->id, id);
    return update;
}

static hf_status refuse(hf_apply *a, const hf_pb_history_event *event)
{
    return hf_fail(a->op, HF_ERR_INVALID, "event %lld: an update has no id, or was accepted before",
                   (long long)event->event_id);
}

hf_status hf_update_admitted(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_request *request = event->workflow_execution_update_admitted_event_attributes->request;
    hf_str id = request != NULL && request->meta != NULL ? request->meta->update_id : HF_STR("");
    if (id.len == 0 || hf_run_update(run, id) != NULL) {
        return refuse(a, event);
    }
    hf_assert(hf_arrow_take(&a->memory->arrows, HF_MACHINE_UPDATE, HF_UPDATE_NEW, HF_UPDATE_ADMITTED));
    hf_update *update = hf_update_add(a->memory, run, id);
    if (update != NULL) {
        update->admitted_id = event->event_id;
    }
    return a->memory->status;
}

hf_status hf_update_accepted(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    hf_str id = event->workflow_execution_update_accepted_event_attributes->protocol_instance_id;
    hf_update *update = id.len > 0 ? hf_run_update(run, id) : NULL;
    hf_update_state before = update != NULL ? hf_update_state_of(update) : HF_UPDATE_NEW;
    if (id.len == 0 || !hf_arrow_take(&a->memory->arrows, HF_MACHINE_UPDATE, (int)before, HF_UPDATE_ACCEPTED)) {
        return refuse(a, event);
    }
    update = update != NULL ? update : hf_update_add(a->memory, run, id);
    if (update != NULL) {
        update->accepted_id = event->event_id;
    }
    return a->memory->status;
}

hf_status hf_update_completed(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_execution_update_completed_event_attributes *attrs =
        event->workflow_execution_update_completed_event_attributes;
    hf_update *update = attrs->meta != NULL ? hf_run_update(run, attrs->meta->update_id) : NULL;
    if (update == NULL || update->accepted_id != attrs->accepted_event_id ||
        !hf_arrow_take(&a->memory->arrows, HF_MACHINE_UPDATE, (int)hf_update_state_of(update), HF_UPDATE_COMPLETED)) {
        return hf_fail(a->op, HF_ERR_INVALID, "event %lld: an update was completed that is not running",
                       (long long)event->event_id);
    }
    update->completed_id = event->event_id;
    return HF_OK;
}
