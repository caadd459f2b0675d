#include "sim/engine/children.h"

#include "history/payload.h"

#include <string.h>

enum { MANY_MIN = 66, FEW_MAX = 4, LIMITED_MAX = 2, DEPTH_MAX = 2 };

/* ---- Names -------------------------------------------------------------------------------------------------------------- */

int sim_name_count(const sim_world *world)
{
    return world->knobs.workflows + (int)world->child_names.count;
}

void sim_name_of(const sim_world *world, int index, char text[SIM_NAME_LEN])
{
    if (index < world->knobs.workflows) {
        (void)snprintf(text, SIM_NAME_LEN, "wf-%d", index);
    } else {
        (void)snprintf(text, SIM_NAME_LEN, "%s", world->child_names.items[index - world->knobs.workflows].text);
    }
}

static bool has(hf_str text, char letter)
{
    return text.len > 0 && memchr(text.data, letter, text.len) != NULL;
}

bool sim_is_child_name(hf_str workflow_id)
{
    return has(workflow_id, '.');
}

static int depth_of(hf_str workflow_id)
{
    int dots = 0;
    for (size_t i = 0; i < workflow_id.len; i++) {
        dots += workflow_id.data[i] == '.' || workflow_id.data[i] == '+';
    }
    return dots / 2;
}

static void note_name(sim_world *world, const char *name)
{
    for (size_t i = 0; i < world->child_names.count; i++) {
        if (strcmp(world->child_names.items[i].text, name) == 0) {
            return;
        }
    }
    if (sim_is_child_name(hf_str_of(name))) {
        (void)snprintf(SIM_PUSH(&world->child_names)->text, SIM_NAME_LEN, "%s", name);
    }
}

int sim_child_choose(sim_world *world)
{
    if (world->child_names.count > 0 && sim_chance(world, 200)) {
        return world->knobs.workflows + (int)hf_rng_below(&world->rng, world->child_names.count);
    }
    return (int)hf_rng_below(&world->rng, (uint64_t)world->knobs.workflows);
}

/* ---- Programs ----------------------------------------------------------------------------------------------------------- */

int sim_child_steps(hf_str workflow_id, int count, hf_rng *rng)
{
    if (has(workflow_id, '+')) {
        return hf_rng_permille(rng, 250) ? 1 : 0;
    }
    return sim_is_child_name(workflow_id) && count > 2 ? 2 : count;
}

bool sim_may_have_children(const sim_world *world, hf_str workflow_id)
{
    return world->knobs.has_children && depth_of(workflow_id) < DEPTH_MAX && !has(workflow_id, '+');
}

static void begin_child(sim_summary *summary, hf_str control, int64_t event_id)
{
    sim_brood *brood = &summary->broods[(control.data[1] - '0') % SIM_STEPS_MAX];
    brood->first = brood->first != 0 ? brood->first : event_id;
    brood->count++;
}

/* Its state is `from`, and becomes `to`. */
static bool move_child(sim_summary *summary, int64_t initiated_id, int from, int to)
{
    for (int i = 0; i < SIM_STEPS_MAX; i++) {
        sim_brood *brood = &summary->broods[i];
        int64_t at = initiated_id - brood->first;
        if (brood->count > 0 && at >= 0 && at < brood->count) {
            bool fine = brood->states[at] == from;
            brood->states[at] = (unsigned char)to;
            brood->started += from == SIM_CHILD_INITIATED ? 1 : 0; /* or refused */
            brood->ended += to == SIM_CHILD_OVER ? 1 : 0;
            return fine;
        }
    }
    return false;
}

bool sim_child_add_event(sim_summary *summary, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
        begin_child(summary, event->start_child_workflow_execution_initiated_event_attributes->control,
                    event->event_id);
        return true;
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
        return move_child(summary, event->child_workflow_execution_started_event_attributes->initiated_event_id,
                          SIM_CHILD_INITIATED, SIM_CHILD_STARTED);
    case HF_EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
        return move_child(summary, event->start_child_workflow_execution_failed_event_attributes->initiated_event_id,
                          SIM_CHILD_INITIATED, SIM_CHILD_OVER);
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
        return move_child(summary, event->child_workflow_execution_completed_event_attributes->initiated_event_id,
                          SIM_CHILD_STARTED, SIM_CHILD_OVER);
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
        return move_child(summary, event->child_workflow_execution_failed_event_attributes->initiated_event_id,
                          SIM_CHILD_STARTED, SIM_CHILD_OVER);
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
        return move_child(summary, event->child_workflow_execution_canceled_event_attributes->initiated_event_id,
                          SIM_CHILD_STARTED, SIM_CHILD_OVER);
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
        return move_child(summary, event->child_workflow_execution_timed_out_event_attributes->initiated_event_id,
                          SIM_CHILD_STARTED, SIM_CHILD_OVER);
    case HF_EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
        return move_child(summary, event->child_workflow_execution_terminated_event_attributes->initiated_event_id,
                          SIM_CHILD_STARTED, SIM_CHILD_OVER);
    default:
        return true;
    }
}

typedef enum brood_wait { WAIT_ENDS, WAIT_MESSAGE, WAIT_STARTS, WAIT_NOTHING } brood_wait;

typedef struct brood_plan {
    int count;
    brood_wait wait;
} brood_plan;

static brood_plan plan_of(const sim_world *world, hf_rng *rng)
{
    brood_plan plan = {.count = 1 + (int)hf_rng_below(rng, FEW_MAX)};
    /* Where many names are alike each call reads all of them. */
    bool many = hf_rng_permille(rng, 100) && world->knobs.core.name_bits_off == 0;
    if (world->knobs.core.limits.pending > 0) {
        plan.count = plan.count > LIMITED_MAX ? LIMITED_MAX : plan.count; /* all steps of a program may be pending */
    } else if (many) {
        plan.count = MANY_MIN + (int)hf_rng_below(rng, SIM_BROOD_MAX - MANY_MIN);
    }
    uint64_t chance = hf_rng_below(rng, 10);
    plan.wait = chance < 4 ? WAIT_ENDS : chance < 6 ? WAIT_MESSAGE : chance < 8 ? WAIT_STARTS : WAIT_NOTHING;
    return plan;
}

/* Mostly an id of its own. Else one that may be in use: a workflow that clients start (only a later one, so that no two start each
 * other for ever), the first child of the same step, or the parent itself. */
static void child_name(const sim_world *world, const sim_child_step *step, const brood_plan *plan, int i, hf_rng *rng,
                       char text[SIM_NAME_LEN])
{
    uint64_t chance = hf_rng_below(rng, 100);
    (void)snprintf(text, SIM_NAME_LEN, "%.*s.%d%c%d", HF_STR_ARGS(step->parent), step->at,
                   plan->count > FEW_MAX ? '+' : '.', chance < 5 ? 0 : i);
    if (sim_is_child_name(step->parent) || chance < 5 || chance >= 20) {
        return;
    }
    int own = 0;
    for (size_t k = 3; k < step->parent.len; k++) {
        own = own * 10 + (step->parent.data[k] - '0');
    }
    int other = own + (chance < 8 ? 0 : 1 + (int)hf_rng_below(rng, 3));
    if (other < world->knobs.workflows) {
        (void)snprintf(text, SIM_NAME_LEN, "wf-%d", other);
    }
}

static hf_str mark_of(hf_arena *arena, char letter, int at)
{
    const char text[] = {letter, (char)('0' + at)};
    return hf_arena_copy(arena, hf_str_of_len(text, sizeof text));
}

static void start_child(sim_world *world, const sim_child_step *step, const brood_plan *plan, int i, hf_arena *arena,
                        hf_pb_command *command)
{
    hf_rng rng = {hf_hash_mix(step->rng.state, (uint64_t)i)};
    char name[SIM_NAME_LEN];
    char queue[SIM_NAME_LEN];
    hf_pb_start_child_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(arena, hf_pb_start_child_workflow_execution_command_attributes);
    child_name(world, step, plan, i, &rng, name);
    note_name(world, name);
    attrs->workflow_id = hf_arena_copy(arena, hf_str_of(name));
    attrs->workflow_type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    attrs->workflow_type->name = HF_STR("program");
    attrs->control = mark_of(arena, 'c', step->at);
    attrs->parent_close_policy = (int32_t)hf_rng_below(&rng, 4);
    if (hf_rng_permille(&rng, 500)) {
        attrs->task_queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
        (void)snprintf(queue, sizeof queue, "q%d", (int)hf_rng_below(&rng, (uint64_t)world->knobs.queues));
        attrs->task_queue->name = hf_arena_copy(arena, hf_str_of(queue));
    }
    if (hf_rng_permille(&rng, 300)) {
        attrs->workflow_id_reuse_policy = (int32_t)hf_rng_below(&rng, 5);
        if (attrs->workflow_id_reuse_policy == (int32_t)HF_WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING &&
            hf_str_equal(attrs->workflow_id, step->parent)) {
            attrs->workflow_id_reuse_policy = 0; /* who starts it does not end itself */
        }
    }
    if (hf_rng_permille(&rng, 300)) {
        attrs->retry_policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
        attrs->retry_policy->maximum_attempts = 1 + (int32_t)hf_rng_below(&rng, 3);
        attrs->retry_policy->initial_interval =
            hf_pb_duration_of(hf_nanoseconds(SIM_MS + (int64_t)hf_rng_below(&rng, SIM_SECOND)));
    }
    if (hf_rng_permille(&rng, 150)) {
        attrs->workflow_run_timeout = hf_pb_duration_of(hf_seconds(1 + (int64_t)hf_rng_below(&rng, 20)));
    }
    if (hf_rng_permille(&rng, 100)) {
        attrs->workflow_execution_timeout = hf_pb_duration_of(hf_seconds(2 + (int64_t)hf_rng_below(&rng, 30)));
    }
    command->command_type = HF_COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION;
    command->attributes_case = HF_PB_COMMAND_START_CHILD_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    command->start_child_workflow_execution_command_attributes = attrs;
}

/* To the first child of the step, or to somebody who is not a child, most likely. */
static void message_child(const sim_world *world, const sim_child_step *step, const brood_plan *plan, hf_arena *arena,
                          hf_pb_command *command)
{
    hf_rng rng = {hf_hash_mix(step->rng.state, 0)};
    char name[SIM_NAME_LEN];
    child_name(world, step, plan, 0, &rng, name);
    if (hf_rng_permille(&rng, 150)) {
        (void)snprintf(name, sizeof name, "wf-%d", (int)hf_rng_below(&rng, (uint64_t)world->knobs.workflows));
    }
    hf_str workflow_id = hf_arena_copy(arena, hf_str_of(name));
    if (hf_rng_permille(&rng, 500)) {
        hf_pb_signal_external_workflow_execution_command_attributes *attrs =
            HF_ARENA_NEW(arena, hf_pb_signal_external_workflow_execution_command_attributes);
        attrs->execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
        attrs->execution->workflow_id = workflow_id;
        attrs->signal_name = HF_STR("go");
        attrs->control = mark_of(arena, 'e', step->at);
        attrs->child_workflow_only = true;
        command->command_type = HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION;
        command->attributes_case = HF_PB_COMMAND_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->signal_external_workflow_execution_command_attributes = attrs;
        return;
    }
    hf_pb_request_cancel_external_workflow_execution_command_attributes *attrs =
        HF_ARENA_NEW(arena, hf_pb_request_cancel_external_workflow_execution_command_attributes);
    attrs->workflow_id = workflow_id;
    attrs->control = mark_of(arena, 'e', step->at);
    attrs->child_workflow_only = true;
    command->command_type = HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION;
    command->attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
    command->request_cancel_external_workflow_execution_command_attributes = attrs;
}

bool sim_child_do(sim_world *world, const sim_child_step *step, const sim_summary *known, hf_arena *arena,
                  hf_pb_command *(*add)(void *state), void *state)
{
    hf_rng rng = step->rng;
    brood_plan plan = plan_of(world, &rng);
    const sim_brood *brood = &known->broods[step->at];
    const sim_item *message = &known->messages[step->at];
    if (brood->count == 0) {
        for (int i = 0; i < plan.count; i++) {
            start_child(world, step, &plan, i, arena, add(state));
        }
        return plan.wait == WAIT_NOTHING;
    }
    switch (plan.wait) {
    case WAIT_MESSAGE:
        if (brood->states[0] != SIM_CHILD_INITIATED && message->scheduled_id == 0) {
            message_child(world, step, &plan, arena, add(state));
        }
        return message->ended && brood->ended == brood->count;
    case WAIT_ENDS:
        return brood->ended == brood->count;
    case WAIT_STARTS:
        return brood->started == brood->count;
    default:
        return true;
    }
}
