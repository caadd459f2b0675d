/* I13, as the histories tell it:
 *
 * - A child that was initiated was started, once, by a run whose first event names its parent and that event; or the parent was told that
 *   it could not be; or the parent closed before, and there is none. No run names a parent that did not want it.
 * - The runs of a child's chain have the same parent. Its end is told once, by the last of them: with its outcome and its run id, behind
 *   the started event, while the parent is open; and it is told if the parent stays open.
 * - A parent's close policy reaches the chain, wherever it has got to by then; and nobody else.
 *
 * And at rest, with nothing on its way: no run is held in memory, and no row asks for one. */
#include "sim/engine/children.h"

#include "history/history.h"
#include "history/payload.h"
#include "ledger/rows.h"

#include <string.h>

enum {
    MESSAGE_MAX_S = 2,
    ALIKE_MAX_S = 60
}; /* how long a message takes when the world is healthy; where names are alike */
#define BY_PARENT HF_STR("by parent close policy")

static const char *id_of(const sim_world *world, const sim_link *link)
{
    return world->runs.items[link->run].run_id;
}

static const char *name_of(const sim_world *world, const sim_link *link)
{
    return world->runs.items[link->run].workflow_id;
}

/* ---- A history ---------------------------------------------------------------------------------------------------------- */

/* What an event says of the end of a child. */
typedef struct child_end {
    int64_t initiated_id, started_id;
    const hf_pb_workflow_execution *execution;
    int32_t close_type; /* of the child's last event */
    const hf_pb_payloads *result;
    const hf_pb_failure *failure;
    int32_t retry_state;
} child_end;

static child_end end_of(const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED: {
        const hf_pb_child_workflow_execution_completed_event_attributes *it =
            event->child_workflow_execution_completed_event_attributes;
        return (child_end){it->initiated_event_id,
                           it->started_event_id,
                           it->workflow_execution,
                           HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
                           it->result,
                           NULL,
                           0};
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED: {
        const hf_pb_child_workflow_execution_failed_event_attributes *it =
            event->child_workflow_execution_failed_event_attributes;
        return (child_end){it->initiated_event_id,
                           it->started_event_id,
                           it->workflow_execution,
                           HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
                           NULL,
                           it->failure,
                           it->retry_state};
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED: {
        const hf_pb_child_workflow_execution_canceled_event_attributes *it =
            event->child_workflow_execution_canceled_event_attributes;
        return (child_end){.initiated_id = it->initiated_event_id,
                           .started_id = it->started_event_id,
                           .execution = it->workflow_execution,
                           .close_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED};
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT: {
        const hf_pb_child_workflow_execution_timed_out_event_attributes *it =
            event->child_workflow_execution_timed_out_event_attributes;
        return (child_end){.initiated_id = it->initiated_event_id,
                           .started_id = it->started_event_id,
                           .execution = it->workflow_execution,
                           .close_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
                           .retry_state = it->retry_state};
    }
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED: {
        const hf_pb_child_workflow_execution_terminated_event_attributes *it =
            event->child_workflow_execution_terminated_event_attributes;
        return (child_end){.initiated_id = it->initiated_event_id,
                           .started_id = it->started_event_id,
                           .execution = it->workflow_execution,
                           .close_type = HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED};
    }
    default:
        return (child_end){0};
    }
}

static sim_child *find_child(sim_children *children, size_t parent, int64_t initiated_id)
{
    for (size_t i = children->count; i-- > 0;) {
        sim_child *each = &children->items[i];
        if (each->parent == parent && each->initiated_id == initiated_id) {
            return each;
        }
    }
    return NULL;
}

static void begin(sim_world *world, sim_children *children, const sim_link *links, size_t parent,
                  const hf_pb_history_event *event)
{
    size_t open = 1;
    for (size_t i = children->count; i-- > 0 && children->items[i].parent == parent;) {
        open += children->items[i].end == NULL && !children->items[i].is_refused ? 1 : 0;
    }
    size_t most = world->knobs.core.limits.pending;
    if (most > 0 && open > most) {
        sim_fail(world, "sim-L1: run %s has %zu children", id_of(world, &links[parent]), open);
    }
    *SIM_PUSH(children) = (sim_child){
        .parent = parent,
        .initiated_id = event->event_id,
        .asked = event->start_child_workflow_execution_initiated_event_attributes,
    };
}

static void start(sim_world *world, sim_child *child, const sim_link *parent, const hf_pb_history_event *event)
{
    const hf_pb_child_workflow_execution_started_event_attributes *attrs =
        event->child_workflow_execution_started_event_attributes;
    if (child == NULL || child->started_id != 0 || child->is_refused || child->end != NULL) {
        sim_fail(world, "I13: run %s, event %lld: the child was started twice, or nobody wanted it",
                 id_of(world, parent), (long long)event->event_id);
    } else if (!hf_str_equal(attrs->workflow_execution->workflow_id, child->asked->workflow_id)) {
        sim_fail(world, "I13: run %s, event %lld: another child was started", id_of(world, parent),
                 (long long)event->event_id);
    } else {
        child->started_id = event->event_id;
        child->run_id = attrs->workflow_execution->run_id;
    }
}

void sim_child_event(sim_world *world, sim_children *children, const sim_link *links, size_t parent,
                     const hf_pb_history_event *event, hf_arena *arena)
{
    const sim_link *link = &links[parent];
    switch (event->event_type) {
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
        begin(world, children, links, parent, event);
        return;
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
        start(
            world,
            find_child(children, parent, event->child_workflow_execution_started_event_attributes->initiated_event_id),
            link, event);
        return;
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED: {
        sim_child *child = find_child(
            children, parent, event->start_child_workflow_execution_failed_event_attributes->initiated_event_id);
        if (child == NULL || child->started_id != 0 || child->is_refused) {
            sim_fail(world, "I13: run %s, event %lld: the child was started, or refused before", id_of(world, link),
                     (long long)event->event_id);
            return;
        }
        child->is_refused = true;
        child->refused_time = hf_pb_timestamp_time(event->event_time).ns;
        return;
    }
    default:
        break;
    }
    child_end end = end_of(event);
    if (end.initiated_id == 0) {
        return;
    }
    sim_child *child = find_child(children, parent, end.initiated_id);
    if (child == NULL || child->started_id == 0 || child->end != NULL || end.started_id != child->started_id) {
        sim_fail(world, "I13: run %s, event %lld: the end of a child is told twice, or before its start",
                 id_of(world, link), (long long)event->event_id);
        return;
    }
    hf_pb_history_event *copy = HF_ARENA_NEW(arena, hf_pb_history_event);
    *copy = *event;
    child->end = copy;
}

/* ---- Judging ------------------------------------------------------------------------------------------------------------ */

typedef struct family {
    sim_world *world;
    const sim_children *children;
    const sim_link *links;
    size_t count;
} family;

static const sim_link *find_run(const family *all, hf_str run_id)
{
    for (size_t i = 0; i < all->count; i++) {
        if (hf_str_equal(hf_str_of(id_of(all->world, &all->links[i])), run_id)) {
            return &all->links[i];
        }
    }
    return NULL;
}

static const sim_link *last_of(const family *all, const sim_link *link)
{
    while (link != NULL && link->next_run_id.len > 0) {
        link = find_run(all, link->next_run_id);
    }
    return link;
}

/* When a message that was sent then has arrived: crashes and pauses of the store delay it. */
static int64_t arrival(const sim_world *world, int64_t sent)
{
    int64_t span = (world->knobs.core.name_bits_off > 0 ? ALIKE_MAX_S : MESSAGE_MAX_S) * SIM_SECOND;
    int64_t time = sent + span;
    for (size_t i = 0; i + 1 < world->unhealthy.count; i += 2) {
        if (world->unhealthy.items[i] <= time && world->unhealthy.items[i + 1] >= sent) {
            time = world->unhealthy.items[i + 1] + span;
        }
    }
    return time;
}

static bool names_parent(const family *all, const sim_link *link, const sim_child *child)
{
    const sim_link *parent = &all->links[child->parent];
    const hf_pb_workflow_execution *named = link->first->parent_workflow_execution;
    return named != NULL && link->first->parent_initiated_event_id == child->initiated_id &&
           hf_str_equal(named->run_id, hf_str_of(id_of(all->world, parent)));
}

/* One run that begins a chain and names this child's parent, or none. */
static const sim_link *first_of(const family *all, const sim_child *child)
{
    const sim_link *found = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const sim_link *link = &all->links[i];
        if (link->first->continued_execution_run_id.len > 0 || !names_parent(all, link, child)) {
            continue;
        }
        if (found != NULL) {
            sim_fail(all->world, "I13: child %lld of run %s was started twice: %s, %s", (long long)child->initiated_id,
                     id_of(all->world, &all->links[child->parent]), id_of(all->world, found), id_of(all->world, link));
        }
        found = link;
    }
    return found;
}

static bool is_same_payload(const hf_pb_payloads *a, const hf_pb_payloads *b)
{
    const hf_pb_payload *one = hf_payloads_first(a);
    const hf_pb_payload *two = hf_payloads_first(b);
    return one == NULL || two == NULL ? one == two : hf_str_equal(one->data, two->data);
}

static void judge_end(const family *all, const sim_child *child, const sim_link *last)
{
    child_end end = end_of(child->end);
    const char *id = id_of(all->world, &all->links[child->parent]);
    int64_t time = hf_pb_timestamp_time(child->end->event_time).ns;
    if (!hf_str_equal(end.execution->run_id, hf_str_of(id_of(all->world, last)))) {
        sim_fail(all->world, "I13: run %s was told of the end of run %.*s, the last of that child is %s", id,
                 HF_STR_ARGS(end.execution->run_id), id_of(all->world, last));
    } else if (end.retry_state == HF_RETRY_STATE_INTERNAL_SERVER_ERROR && all->world->damage_met > 0) {
        sim_trace(all->world, "run %s was told that the last event of the child cannot be read", id);
    } else if (end.close_type != last->close_type || end.retry_state != last->retry_state ||
               !is_same_payload(end.result, last->result) ||
               (end.failure != NULL && !hf_str_equal(end.failure->message, last->failure->message))) {
        sim_fail(all->world, "I13: run %s was told of another end than that of run %s", id, id_of(all->world, last));
    } else if (time < last->close_time && !all->world->knobs.has_clock_steps) {
        sim_fail(all->world, "I13: run %s was told of the end of run %s before it ended", id, id_of(all->world, last));
    }
}

/* The parent has closed and was not told: what of its policy? */
static void judge_left(const family *all, const sim_child *child, const sim_link *first, const sim_link *last)
{
    const sim_world *world = all->world;
    const sim_link *parent = &all->links[child->parent];
    size_t messages = world->knobs.core.messages_max;
    bool is_slow =
        world->knobs.core.name_bits_off != 0 || /* where many names have the same hash, a child takes long to find */
        (messages > 0 && messages < 128);       /* a large family needs many commits */
    if (world->knobs.has_clock_steps || is_slow || world->runs.items[parent->run].was_damaged ||
        world->runs.items[last->run].was_damaged || world->runs.items[first->run].was_damaged) {
        return;
    }
    if (parent->close_time > arrival(world, last->close_time)) {
        sim_fail(all->world, "I13: run %s was not told of the end of its child %s, and was open for long",
                 id_of(world, parent), id_of(world, last));
    }
    if (last->close_time <= arrival(world, parent->close_time)) {
        return; /* it may have ended before the policy came */
    }
    bool is_canceled = false;
    for (const sim_link *link = first; link != NULL; link = find_run(all, link->next_run_id)) {
        is_canceled = is_canceled || link->cancel_time != 0;
    }
    switch (child->asked->parent_close_policy) {
    case HF_PARENT_CLOSE_POLICY_TERMINATE:
        sim_fail(all->world, "I13: run %s has closed, its child %s went on", id_of(world, parent), id_of(world, last));
        return;
    case HF_PARENT_CLOSE_POLICY_REQUEST_CANCEL:
        /* While its buffer is full the request waits, and whatever ends the child may come before it. */
        if (!is_canceled && world->knobs.core.limits.buffered_count == 0 &&
            world->knobs.core.limits.buffered_len == 0) {
            sim_fail(all->world, "I13: run %s has closed, its child %s was not canceled", id_of(world, parent),
                     id_of(world, last));
        }
        return;
    default:
        return;
    }
}

static void judge_child(const family *all, const sim_child *child)
{
    sim_world *world = all->world;
    const char *id = id_of(world, &all->links[child->parent]);
    const sim_link *first = first_of(all, child);
    if (child->started_id == 0) {
        if (first != NULL) {
            sim_fail(world, "I13: child %lld of run %s is there, and its parent was not told",
                     (long long)child->initiated_id, id);
        }
        return;
    }
    const sim_link *last = last_of(all, first);
    if (first == NULL || last == NULL || !hf_str_equal(child->run_id, hf_str_of(id_of(world, first))) ||
        !hf_str_equal(child->asked->workflow_id, hf_str_of(name_of(world, first)))) {
        sim_fail(world, "I13: child %lld of run %s was started as run %.*s, which is not there or another",
                 (long long)child->initiated_id, id, HF_STR_ARGS(child->run_id));
        return;
    }
    if (child->end != NULL) {
        judge_end(all, child, last);
    } else {
        judge_left(all, child, first, last);
    }
}

/* Whether a parent of this run has closed, with this policy. */
static bool has_policy(const family *all, const sim_link *link, int32_t policy, int64_t time)
{
    for (size_t i = 0; i < all->children->count; i++) {
        const sim_child *child = &all->children->items[i];
        if (names_parent(all, link, child)) {
            bool is_early = all->links[child->parent].close_time > time && !all->world->knobs.has_clock_steps;
            return child->asked->parent_close_policy == policy && !is_early && child->end == NULL;
        }
    }
    return false;
}

/* The run's own story: its parent, and what a policy did to it. */
static void judge_run(const family *all, const sim_link *link)
{
    sim_world *world = all->world;
    const hf_pb_workflow_execution *parent = link->first->parent_workflow_execution;
    const sim_link *before = find_run(all, link->first->continued_execution_run_id);
    if (before != NULL) {
        const hf_pb_workflow_execution *same = before->first->parent_workflow_execution;
        if ((same == NULL) != (parent == NULL) ||
            (parent != NULL && (!hf_str_equal(same->run_id, parent->run_id) ||
                                before->first->parent_initiated_event_id != link->first->parent_initiated_event_id))) {
            sim_fail(world, "engine-H1: run %s has another parent than the run before", id_of(world, link));
        }
    }
    bool is_wanted = parent == NULL;
    for (size_t i = 0; i < all->children->count && !is_wanted; i++) {
        is_wanted = names_parent(all, link, &all->children->items[i]);
    }
    if (!is_wanted) {
        sim_fail(world, "I13: run %s names parent %.*s, which did not want it", id_of(world, link),
                 HF_STR_ARGS(parent->run_id));
    }
    if (hf_str_equal(link->ended_why, BY_PARENT) &&
        !has_policy(all, link, HF_PARENT_CLOSE_POLICY_TERMINATE, link->close_time)) {
        sim_fail(world, "I13: run %s was terminated by a policy that nobody has", id_of(world, link));
    }
    if (link->left_by != NULL && (parent == NULL || !hf_str_equal(parent->run_id, link->left_by->run_id) ||
                                  !has_policy(all, link, HF_PARENT_CLOSE_POLICY_REQUEST_CANCEL, link->cancel_time))) {
        sim_fail(world, "I13: run %s was canceled by a policy that nobody has", id_of(world, link));
    }
}

void sim_judge_children(sim_world *world, const sim_children *children, const sim_link *links, size_t count)
{
    if (world->knobs.deletes > 0) {
        return; /* parents and children may have been deleted, and nothing tells which */
    }
    const family all = {world, children, links, count};
    for (size_t i = 0; i < children->count && !world->failed; i++) {
        judge_child(&all, &children->items[i]);
    }
    for (size_t i = 0; i < count && !world->failed; i++) {
        judge_run(&all, &links[i]);
    }
}

/* ---- At rest ------------------------------------------------------------------------------------------------------------ */

/* What keeps a run in memory, as cache.c asks for it. */
static const char *holder_of(const hf_slot *slot)
{
    return hf_node_is_linked(&slot->dirty_link) ? "changes that are not in its rows"
           : hf_run_has_messages(&slot->run)    ? "a message"
           : slot->suspects > 0                 ? "a suspect"
           : slot->fetch_id != 0                ? "an event that is being read"
           : slot->unwritten != NULL            ? "a query or an update"
           : slot->deletion != NULL             ? "its deletion"
           : slot->resets > 0                   ? "a reset"
                                                : "a heartbeat, or nothing at all";
}

void sim_judge_rest(sim_world *world)
{
    hf_core *core = world->core;
    if (core == NULL || hf_core_status(core) != HF_OK || world->is_told_wrong || world->is_store_gone) {
        return;
    }
    HF_LIST_EACH(node, &core->runs_all)
    {
        const hf_slot *slot = HF_CONTAINER(node, hf_slot, all_link);
        if (!slot->loading && !slot->bad && !hf_node_is_linked(&slot->lru_link)) {
            sim_fail(world, "run %.*s of %.*s is held in memory by %s, and nothing is on its way",
                     HF_STR_ARGS(slot->run.run_id), HF_STR_ARGS(slot->run.workflow_id), holder_of(slot));
        }
    }
    hf_arena arena;
    hf_arena_init(&arena, world->memory);
    hf_store_request scan = {.verb = HF_STORE_SCAN,
                             .table = HF_TABLE_TASK,
                             .key = {HF_QUEUE_HELD, 0, 0},
                             .key_end = {HF_QUEUE_HELD, INT64_MAX, 0},
                             .arena = &arena};
    hf_op_init(&scan.op);
    hf_store_execute(world->store, &scan);
    if (scan.row_count > 0) {
        sim_fail(world, "%zu rows ask for runs with something on its way, and there is none", scan.row_count);
    }
    hf_arena_deinit(&arena);
}
