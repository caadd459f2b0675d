/* Children: runs that a run has started.
 *
 *     new --> initiated --> started --> ended --> (gone)
 *                 |             |
 *                 |             +-----> left ---> (gone)      the parent has closed, and its close policy is on its way
 *                 +-----------> failed -> (gone)
 *
 * A child is initiated by an event. While it is to be started the run remembers that event, so that the start can be made again after a
 * crash. A child that has started is plain state: its parent need not be in memory. */
#include "run/machines.h"

#include <string.h>

_Static_assert(HF_CHILD_STATE_COUNT == HF_CHILD_LEFT + 1, "the table has a row for every state");
static const hf_rule RULES[HF_CHILD_STATE_COUNT] = {
    [HF_CHILD_NEW] = {"new", HF_BIT(HF_CHILD_INITIATED)},
    [HF_CHILD_INITIATED] = {"initiated", HF_BIT(HF_CHILD_STARTED) | HF_BIT(HF_CHILD_FAILED)},
    [HF_CHILD_STARTED] = {"started", HF_BIT(HF_CHILD_ENDED) | HF_BIT(HF_CHILD_LEFT)},
    [HF_CHILD_ENDED] = {"ended", 0},
    [HF_CHILD_FAILED] = {"failed", 0},
    [HF_CHILD_LEFT] = {"left", 0},
};
const hf_machine hf_child_machine = {"child", RULES, HF_CHILD_STATE_COUNT};

bool hf_child_is_moving(const hf_child *child)
{
    return child->state == HF_CHILD_INITIATED || child->state == HF_CHILD_LEFT;
}

void hf_child_set(hf_run *run, hf_child *child, hf_child_state state)
{
    hf_assert(run->moving <= run->children.count);
    run->moving -= hf_child_is_moving(child) ? 1 : 0;
    child->state = state;
    run->moving += hf_child_is_moving(child) ? 1 : 0;
}

static bool move(hf_apply *a, hf_run *run, hf_child *child, hf_child_state state)
{
    if (!hf_arrow_take(&a->memory->arrows, HF_MACHINE_CHILD, (int)child->state, (int)state)) {
        return false;
    }
    hf_child_set(run, child, state);
    return true;
}

static hf_status cannot(hf_apply *a, const hf_run *run, int64_t initiated_id, const char *what)
{
    return hf_fail(a->op, HF_ERR_INVALID,
                   "run %lld: child %lld cannot be %s: it is in another state, or does not exist",
                   (long long)run->number, (long long)initiated_id, what);
}

hf_child *hf_run_child(const hf_run *run, int64_t initiated_id)
{
    size_t low = 0;
    size_t high = run->children.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->children.items[middle].initiated_id < initiated_id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_there = low < run->children.count && run->children.items[low].initiated_id == initiated_id;
    return is_there ? &run->children.items[low] : NULL;
}

static void release(hf_run_memory *memory, hf_child *child)
{
    hf_owned_free(memory, &child->event);
    hf_owned_free(memory, &child->workflow_id);
    hf_owned_free(memory, &child->workflow_type);
    hf_owned_free(memory, &child->run_id);
}

static void drop(hf_run_memory *memory, hf_run *run, hf_child *child)
{
    size_t index = (size_t)(child - run->children.items);
    hf_assert(index < run->children.count);
    hf_child_set(run, child, HF_CHILD_NEW);
    release(memory, child);
    run->children.count--;
    memmove(child, child + 1, (run->children.count - index) * sizeof *child);
}

void hf_children_free(hf_run_memory *memory, hf_run *run)
{
    for (size_t i = 0; i < run->children.count; i++) {
        release(memory, &run->children.items[i]);
    }
    HF_VEC_FREE(memory, &run->children);
}

/* The parent closes. Children whose start is on its way are not started. Children that are to live on are forgotten. The others get
 * a message with the close policy. If a reset puts another run in the parent's place, all children live on. */
void hf_children_leave(hf_run_memory *memory, hf_run *run, bool is_reset)
{
    size_t kept = 0;
    for (size_t i = 0; i < run->children.count; i++) {
        hf_child *child = &run->children.items[i];
        bool is_left =
            child->state == HF_CHILD_STARTED && !is_reset && child->policy != (int32_t)HF_PARENT_CLOSE_POLICY_ABANDON;
        if (is_left && hf_arrow_take(&memory->arrows, HF_MACHINE_CHILD, HF_CHILD_STARTED, HF_CHILD_LEFT)) {
            hf_child_set(run, child, HF_CHILD_LEFT);
            run->children.items[kept++] = *child;
        } else {
            hf_child_set(run, child, HF_CHILD_NEW);
            release(memory, child);
        }
    }
    run->children.count = kept;
    hf_assert(run->moving == kept); /* those that are left are told, and no others */
}

hf_child *hf_child_add(hf_run_memory *memory, hf_run *run, int64_t initiated_id)
{
    if (!HF_VEC_RESERVE(memory, &run->children)) {
        return NULL;
    }
    hf_child *child = &run->children.items[run->children.count++];
    *child = (hf_child){.initiated_id = initiated_id};
    hf_child_set(run, child, HF_CHILD_INITIATED);
    return child;
}

hf_status hf_child_initiated(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    const hf_pb_start_child_workflow_execution_initiated_event_attributes *attrs =
        event->start_child_workflow_execution_initiated_event_attributes;
    hf_assert(hf_arrow_take(&a->memory->arrows, HF_MACHINE_CHILD, HF_CHILD_NEW, HF_CHILD_INITIATED));
    hf_child *child = hf_child_add(a->memory, run, event->event_id);
    if (child == NULL) {
        return HF_ERR_NOMEM;
    }
    child->policy = attrs->parent_close_policy;
    hf_owned_set(a->memory, &child->event, bytes);
    hf_owned_set(a->memory, &child->workflow_id, attrs->workflow_id);
    hf_owned_set(a->memory, &child->workflow_type,
                 attrs->workflow_type != NULL ? attrs->workflow_type->name : HF_STR(""));
    hf_assert(a->effects->message == 0); /* one event, one message */
    a->effects->message = event->event_id;
    return a->memory->status;
}

static hf_status start(hf_apply *a, hf_run *run, const hf_pb_history_event *event)
{
    const hf_pb_child_workflow_execution_started_event_attributes *attrs =
        event->child_workflow_execution_started_event_attributes;
    hf_child *child = hf_run_child(run, attrs->initiated_event_id);
    if (child == NULL || !move(a, run, child, HF_CHILD_STARTED)) {
        return cannot(a, run, attrs->initiated_event_id, "started");
    }
    hf_owned_set(a->memory, &child->run_id,
                 attrs->workflow_execution != NULL ? attrs->workflow_execution->run_id : HF_STR(""));
    return a->memory->status;
}

hf_status hf_child_started(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    int64_t initiated_id = event->child_workflow_execution_started_event_attributes->initiated_event_id;
    hf_child *child = hf_run_child(run, initiated_id);
    bool was_buffered = child != NULL && child->started_id == 0 && child->state != HF_CHILD_INITIATED;
    if (!was_buffered) {
        HF_TRY(start(a, run, event));
        child = hf_run_child(run, initiated_id);
    }
    child->started_id = event->event_id;
    hf_owned_free(a->memory, &child->event); /* it need not be started again */
    return HF_OK;
}

/* The event under which the run knows the child that this event ends; 0 = it ends none. */
static int64_t ended_by(const hf_pb_history_event *event, hf_child_state *ret_state)
{
    *ret_state = HF_CHILD_ENDED;
    switch (event->event_type) {
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
        return event->child_workflow_execution_completed_event_attributes->initiated_event_id;
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
        return event->child_workflow_execution_failed_event_attributes->initiated_event_id;
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
        return event->child_workflow_execution_canceled_event_attributes->initiated_event_id;
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
        return event->child_workflow_execution_timed_out_event_attributes->initiated_event_id;
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
        return event->child_workflow_execution_terminated_event_attributes->initiated_event_id;
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
        *ret_state = HF_CHILD_FAILED;
        return event->start_child_workflow_execution_failed_event_attributes->initiated_event_id;
    default:
        return 0;
    }
}

hf_status hf_child_mark(hf_apply *a, hf_run *run, const hf_pb_history_event *event)
{
    if (event->attributes_case == 0) {
        return HF_OK;
    }
    if (event->event_type == HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED) {
        return start(a, run, event);
    }
    hf_child_state state = HF_CHILD_NEW;
    int64_t initiated_id = ended_by(event, &state);
    if (initiated_id == 0) {
        return HF_OK; /* another kind of event */
    }
    hf_child *child = hf_run_child(run, initiated_id);
    return child != NULL && move(a, run, child, state) ? HF_OK : cannot(a, run, initiated_id, "ended");
}

hf_status hf_child_ended(hf_apply *a, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    hf_child_state state = HF_CHILD_NEW;
    int64_t initiated_id = ended_by(event, &state);
    hf_child *child = hf_run_child(run, initiated_id);
    if (child == NULL || child->state != state) { /* unless that was done when it was buffered */
        HF_TRY(hf_child_mark(a, run, event));
        child = hf_run_child(run, initiated_id);
    }
    if (child == NULL) {
        return cannot(a, run, initiated_id, "ended");
    }
    drop(a->memory, run, child);
    return HF_OK;
}

hf_status hf_child_apply_gone(hf_apply *a, hf_run *run, int64_t initiated_id)
{
    hf_child *child = hf_run_child(run, initiated_id);
    if (child == NULL) {
        return cannot(a, run, initiated_id, "forgotten");
    }
    drop(a->memory, run, child);
    return HF_OK;
}
