/* What is known of activities that operators have changed, and what follows from it.
 *
 * sim-P1  an activity whose pause was acknowledged starts no attempt, and none of its timeouts passes, until somebody wants it to go on
 * sim-P2  an activity whose reset was acknowledged begins again with attempt 1, or with 2 if an attempt was running
 * sim-P3  heartbeats and descriptions tell of pauses and resets, and only of those; options are as an operator was told
 *
 * Answers are given in the order of their decisions. So an attempt that a worker gets after a pause was acknowledged was started after it,
 * and one whose failure was acknowledged before a reset, in the same life of the process, was not running then. An operation takes effect
 * between the moment at which it was last sent and its answer; marks number all such moments. If another operation that undoes it overlaps,
 * nothing is known. */
#include "sim/engine/operator.h"
#include "sim/engine/workers.h"

#include <string.h>

hf_str sim_activity_type(int64_t number)
{
    return number % 2 == 0 ? HF_STR("work") : HF_STR("act");
}

static int type_of(int64_t number)
{
    return number % 2 == 0 ? 2 : 1;
}

static sim_activity *find(const sim_world *world, size_t run, int64_t number)
{
    for (size_t i = 0; i < world->activities.count; i++) {
        sim_activity *each = &world->activities.items[i];
        if (each->run == run && each->number == number) {
            return each;
        }
    }
    return NULL;
}

static sim_activity *activity_of(sim_world *world, size_t run, int64_t number)
{
    sim_activity *activity = find(world, run, number);
    if (activity == NULL) {
        activity = SIM_PUSH(&world->activities);
        activity->run = run;
        activity->number = number;
    }
    return activity;
}

int32_t sim_activity_round(const sim_world *world, size_t run, int64_t number)
{
    const sim_activity *activity = find(world, run, number);
    return activity != NULL ? activity->round : 0;
}

/* ---- Operations -------------------------------------------------------------------------------------------------------- */

bool sim_control_is_for(const sim_world *world, const sim_control *control, size_t run, int64_t number)
{
    bool is_run = control->run == run ||
                  (control->is_current &&
                   strcmp(world->runs.items[run].workflow_id, world->runs.items[control->run].workflow_id) == 0);
    return is_run &&
           (control->number != 0 ? control->number == number : control->type == 0 || control->type == type_of(number));
}

static bool is_open(const sim_control *control)
{
    return control->calls > 0 || !control->is_over;
}

/* Whether another operation may have undone this one since. */
static bool is_disturbed(const sim_world *world, const sim_control *control, int64_t number)
{
    for (size_t i = 0; i < world->controls.count; i++) {
        const sim_control *other = &world->controls.items[i];
        bool undoes = control->method == HF_METHOD_UPDATE_ACTIVITY_OPTIONS
                          ? other->method == HF_METHOD_UPDATE_ACTIVITY_OPTIONS || other->restores
                          : other->unpauses;
        if (other != control && undoes && sim_control_is_for(world, other, control->run, number) &&
            (is_open(other) || other->ended > control->sent)) {
            return true;
        }
    }
    return false;
}

static void go_on(sim_world *world, sim_activity *activity)
{
    activity->paused = 0;
    for (size_t i = 0; i < world->pauses.count; i++) {
        sim_pause *pause = &world->pauses.items[i];
        if (pause->run == activity->run && pause->number == activity->number && pause->to == INT64_MAX) {
            pause->to = sim_now(world).wall;
        }
    }
}

void sim_control_unpaused(sim_world *world, const char *workflow_id)
{
    for (size_t i = 0; i < world->activities.count; i++) {
        sim_activity *activity = &world->activities.items[i];
        if (strcmp(world->runs.items[activity->run].workflow_id, workflow_id) == 0) {
            go_on(world, activity);
        }
    }
}

/* The activities that an operation for several is for, as far as their run is in memory. */
static uint32_t targets_of(const sim_world *world, const sim_control *control)
{
    uint32_t targets = 0;
    HF_LIST_EACH(node, &world->core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (HF_SLOT(run)->loading || HF_SLOT(run)->bad ||
            !hf_str_equal(hf_owned_str(&run->run_id), hf_str_of(world->runs.items[control->run].run_id))) {
            continue;
        }
        for (size_t i = 0; i < run->activities.count; i++) {
            int64_t number = sim_item_number(run->activities.items[i]->activity_id);
            if (hf_activity_is_pending(run->activities.items[i]) &&
                sim_control_is_for(world, control, control->run, number)) {
                targets |= UINT32_C(1) << number;
            }
        }
    }
    return targets;
}

void sim_control_sent(sim_world *world, sim_control *control)
{
    control->sent = ++world->marks;
    control->targets = 0;
    if (control->number != 0) {
        control->targets = UINT32_C(1) << control->number;
    } else if (world->core != NULL) {
        control->targets = targets_of(world, control);
    }
    if (control->is_current) {
        control->targets = 0; /* nobody knows which run it reaches */
    }
    for (size_t i = 0; i < world->activities.count; i++) {
        sim_activity *activity = &world->activities.items[i];
        if (!sim_control_is_for(world, control, activity->run, activity->number)) {
            continue;
        }
        if (control->unpauses) {
            go_on(world, activity);
        }
        if (control->restores || control->method == HF_METHOD_UPDATE_ACTIVITY_OPTIONS) {
            activity->each = 0;
        }
    }
}

static void paused(sim_world *world, const sim_control *control, int64_t number)
{
    sim_activity *activity = activity_of(world, control->run, number);
    if (activity->paused != 0 || world->is_healed || is_disturbed(world, control, number)) {
        return;
    }
    activity->paused = world->marks;
    if (control->number != 0) {
        *SIM_PUSH(&world->pauses) = (sim_pause){control->run, number, sim_now(world).wall, INT64_MAX};
    }
}

static void was_reset(sim_world *world, const sim_control *control, int64_t number)
{
    sim_activity *activity = activity_of(world, control->run, number);
    activity->reset = control->sent;
    activity->reset_answered = world->marks;
    /* The next attempt may have begun in another life, and its worker was never told. */
    activity->set_back = activity->idle_life == world->opened ? 1 : 2;
    activity->set_back_life = world->opened;
}

static void got_options(sim_world *world, const sim_control *control, const sim_call *call)
{
    const hf_pb_update_activity_options_response *response = call->call.response;
    if (control->each == 0 || control->is_current || response->activity_options == NULL) {
        return;
    }
    int64_t each = hf_pb_duration_span(response->activity_options->start_to_close_timeout).ns;
    int64_t whole = hf_pb_duration_span(response->activity_options->schedule_to_close_timeout).ns;
    if (each != control->each && (each != whole || each > control->each)) {
        sim_fail(world, "sim-P3: an activity of run %s got a timeout of %lld ns, not of %lld",
                 world->runs.items[control->run].run_id, (long long)each, (long long)control->each);
    }
    if (control->number != 0 && !is_disturbed(world, control, control->number)) {
        sim_activity *activity = activity_of(world, control->run, control->number);
        activity->each = each;
        activity->told = world->marks;
    }
}

void sim_control_answered(sim_world *world, sim_control *control, const sim_call *call)
{
    control->ended = ++world->marks;
    if (call->call.status != HF_OK) {
        return;
    }
    for (int64_t number = 1; number < 32; number++) {
        if ((control->targets >> number & 1) == 0) {
            continue;
        }
        if (control->method == HF_METHOD_PAUSE_ACTIVITY) {
            paused(world, control, number);
        } else if (control->method == HF_METHOD_RESET_ACTIVITY && control->number != 0) {
            was_reset(world, control, number);
        }
    }
    if (control->method == HF_METHOD_UPDATE_ACTIVITY_OPTIONS) {
        got_options(world, control, call);
    }
}

/* ---- What follows ------------------------------------------------------------------------------------------------------ */

/* Whether a reset may have happened after that mark. */
static bool may_be_reset_since(const sim_world *world, size_t run, int64_t number, uint64_t mark)
{
    for (size_t i = 0; i < world->controls.count; i++) {
        const sim_control *control = &world->controls.items[i];
        if (control->resets && sim_control_is_for(world, control, run, number) &&
            (is_open(control) || control->ended > mark)) {
            return true;
        }
    }
    return false;
}

bool sim_may_be_reset(const sim_world *world, size_t run, int64_t number)
{
    return may_be_reset_since(world, run, number, 0);
}

static bool was_sent(const sim_world *world, hf_method method, size_t run, int64_t number)
{
    for (size_t i = 0; i < world->controls.count; i++) {
        const sim_control *control = &world->controls.items[i];
        if (control->method == method && sim_control_is_for(world, control, run, number)) {
            return true;
        }
    }
    return false;
}

int32_t sim_attempts_max(const sim_world *world, size_t run, int64_t number, int32_t most)
{
    int32_t more = 0; /* an attempt that fails while it is paused is not the last */
    for (size_t i = 0; i < world->controls.count && most > 0; i++) {
        const sim_control *control = &world->controls.items[i];
        if (!sim_control_is_for(world, control, run, number)) {
            continue;
        }
        if (control->method == HF_METHOD_UPDATE_ACTIVITY_OPTIONS || control->restores) {
            return 0;
        }
        more += control->method == HF_METHOD_PAUSE_ACTIVITY;
    }
    return more == 0 ? most : 0; /* it may be unpaused, and fail, and be paused again, with one request */
}

static void begin_round(sim_world *world, sim_activity *activity)
{
    activity->round++;
    for (size_t i = 0; i < world->deliveries.count; i++) {
        sim_delivery *each = &world->deliveries.items[i];
        if (each->is_activity && each->run == activity->run && each->scheduled_id == activity->number) {
            each->is_void = true;
        }
    }
    sim_suspect_reset(world, activity->run, activity->number);
}

/* The attempt that an activity can have reached since its reset. A process that ends takes an attempt with it. */
static int32_t attempts_since_reset(const sim_world *world, const sim_activity *activity)
{
    return activity->set_back + (int32_t)(world->opened - activity->set_back_life);
}

void sim_activity_answered(sim_world *world, const sim_answer *answer)
{
    sim_activity *activity = activity_of(world, answer->run, answer->scheduled_id);
    if (answer->is_by_id || (activity->attempt == answer->attempt && activity->round == answer->round)) {
        activity->idle_life = world->opened;
    }
}

void sim_activity_started(sim_world *world, size_t run, int64_t number, int32_t attempt)
{
    sim_activity *activity = activity_of(world, run, number);
    const char *run_id = world->runs.items[run].run_id;
    if (activity->paused != 0) {
        sim_fail(world, "sim-P1: activity %lld of run %s is paused, and attempt %d began", (long long)number, run_id,
                 (int)attempt);
    }
    if (activity->set_back != 0 && attempt > attempts_since_reset(world, activity)) {
        sim_fail(world, "sim-P2: activity %lld of run %s was reset, and attempt %d began", (long long)number, run_id,
                 (int)attempt);
    }
    if (attempt <= activity->attempt && may_be_reset_since(world, run, number, activity->seen)) {
        begin_round(world, activity);
    }
    activity->set_back = 0;
    activity->idle_life = 0;
    activity->attempt = attempt;
    activity->seen = ++world->marks;
}

static void check_paused(sim_world *world, const sim_activity *activity, bool is_paused, uint64_t asked,
                         const char *who)
{
    const char *run_id = world->runs.items[activity->run].run_id;
    if (!is_paused && activity->paused != 0 && activity->paused < asked) {
        sim_fail(world, "sim-P3: a %s says that activity %lld of run %s is not paused", who,
                 (long long)activity->number, run_id);
    } else if (is_paused && !was_sent(world, HF_METHOD_PAUSE_ACTIVITY, activity->run, activity->number)) {
        sim_fail(world, "sim-P3: a %s says that activity %lld of run %s is paused", who, (long long)activity->number,
                 run_id);
    }
}

void sim_activity_beat(sim_world *world, const sim_slot *slot, bool is_by_id, bool is_paused, bool is_reset)
{
    size_t run = sim_log_run(world, hf_str_of(slot->run_id), hf_str_of(slot->workflow_id));
    const sim_activity *activity = activity_of(world, run, slot->scheduled_id);
    check_paused(world, activity, is_paused, slot->beat, "heartbeat");
    bool is_held = !is_by_id && activity->seen == slot->taken; /* nobody else has got it since */
    if (!is_reset && is_held && activity->reset > slot->taken && activity->reset_answered < slot->beat) {
        sim_fail(world, "sim-P3: a heartbeat does not tell that activity %lld of run %s was reset",
                 (long long)activity->number, slot->run_id);
    } else if (is_reset && !was_sent(world, HF_METHOD_RESET_ACTIVITY, run, slot->scheduled_id)) {
        sim_fail(world, "sim-P3: a heartbeat tells that activity %lld of run %s was reset", (long long)activity->number,
                 slot->run_id);
    }
}

bool sim_is_of_pauses(hf_str attribute)
{
    return hf_str_equal(attribute, HF_STR("TemporalPauseInfo"));
}

/* The search attribute is there while an activity is paused. */
static void check_attribute(sim_world *world, size_t run, const hf_pb_describe_workflow_execution_response *response)
{
    const hf_pb_search_attributes *attributes = response->workflow_execution_info->search_attributes;
    bool is_paused = false;
    bool is_told = false;
    for (size_t i = 0; i < response->pending_activities.count; i++) {
        is_paused = is_paused || response->pending_activities.items[i].paused;
    }
    for (size_t i = 0; attributes != NULL && i < attributes->indexed_fields.count; i++) {
        is_told = is_told || sim_is_of_pauses(attributes->indexed_fields.items[i].key);
    }
    if (is_paused != is_told) {
        sim_fail(world, "sim-P3: run %s has %s activity, and its search attributes tell of %s",
                 world->runs.items[run].run_id, is_paused ? "a paused" : "no paused", is_told ? "one" : "none");
    }
}

void sim_activity_described(sim_world *world, size_t run, const hf_pb_describe_workflow_execution_response *response,
                            uint64_t asked)
{
    check_attribute(world, run, response);
    for (size_t i = 0; i < response->pending_activities.count; i++) {
        const hf_pb_pending_activity_info *info = &response->pending_activities.items[i];
        const sim_activity *activity = activity_of(world, run, sim_item_number(info->activity_id));
        check_paused(world, activity, info->paused, asked, "description");
        int64_t each = hf_pb_duration_span(info->activity_options->start_to_close_timeout).ns;
        if (activity->each != 0 && activity->told < asked && activity->each != each) {
            sim_fail(world, "sim-P3: activity %lld of run %s has a timeout of %lld ns, an operator was told %lld",
                     (long long)activity->number, world->runs.items[run].run_id, (long long)each,
                     (long long)activity->each);
        }
        if (activity->set_back != 0 && activity->reset_answered < asked &&
            info->attempt > attempts_since_reset(world, activity)) {
            sim_fail(world, "sim-P2: activity %lld of run %s was reset, and is at attempt %d",
                     (long long)activity->number, world->runs.items[run].run_id, (int)info->attempt);
        }
    }
}

bool sim_saw_activity(const sim_world *world, size_t run, int64_t number, const hf_pb_history_event *event,
                      const char **ret_why)
{
    bool starts = event->event_type == HF_EVENT_TYPE_ACTIVITY_TASK_STARTED;
    int64_t time = hf_pb_timestamp_time(event->event_time).ns;
    if (world->knobs.has_clock_steps ||
        (starts && !sim_was_polled(event->activity_task_started_event_attributes->identity))) {
        return true; /* who completes it by its id need not wait */
    }
    for (size_t i = 0; i < world->pauses.count; i++) {
        const sim_pause *pause = &world->pauses.items[i];
        if (pause->run == run && pause->number == number && time > pause->from && time < pause->to) {
            *ret_why = starts ? "sim-P1: it began while it was paused" : "sim-P1: it timed out while it was paused";
            return false;
        }
    }
    return true;
}
