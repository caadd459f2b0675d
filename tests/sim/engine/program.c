/* The workflows: programs that are functions of their history.
 *
 * A program is a list of steps that follows from the seed and the workflow id. It is not replayed: what it wants next is
 * found by walking the steps and comparing each with what the history says has happened. So it may be asked at any
 * moment, by any worker, and gives the same commands for the same history. */
#include "sim/engine/asks.h"
#include "sim/engine/chains.h"
#include "sim/engine/children.h"
#include "sim/engine/operator.h"
#include "sim/engine/sim.h"
#include "sim/engine/workers.h"

#include "history/payload.h"

#include <stdlib.h>
#include <string.h>

enum { COMMANDS_MAX = 32 + SIM_BROOD_MAX * SIM_STEPS_MAX };

typedef struct step {
    sim_step_kind kind;
    int count;
    hf_rng rng; /* for the figures of its commands */
} step;

typedef struct program {
    step steps[SIM_STEPS_MAX];
    int count;
    int end;           /* 0-6 completes, 7-8 fails, 9 cancels */
    bool hears_cancel; /* ends when it is asked to */
    sim_chain_plan chain;
} program;

static program program_of(const sim_world *world, hf_str workflow_id)
{
    program it = {0};
    hf_rng rng = {hf_hash_bytes(world->seed, workflow_id.data, workflow_id.len)};
    it.count = sim_child_steps(workflow_id, 1 + (int)hf_rng_below(&rng, SIM_STEPS_MAX), &rng);
    it.end = (int)hf_rng_below(&rng, 10);
    it.hears_cancel = hf_rng_permille(&rng, 700);
    int signals = 0;
    for (int i = 0; i < it.count; i++) {
        step *each = &it.steps[i];
        each->kind = (sim_step_kind)hf_rng_below(&rng, SIM_STEP_KIND_COUNT);
        each->count = 1 + (int)hf_rng_below(&rng, SIM_ITEMS_MAX - 1);
        each->rng.state = hf_rng_next(&rng);
        if (each->kind == SIM_STEP_SIGNALS) {
            signals += each->count;
            each->count = sim_is_child_name(workflow_id) ? 1 : signals; /* in all */
        }
        if (each->kind == SIM_STEP_CHILDREN && !sim_may_have_children(world, workflow_id)) {
            each->kind = SIM_STEP_MARKER;
        }
    }
    it.chain = sim_chain_plan_of(world, &rng);
    return it;
}

/* ---- What is known ----------------------------------------------------------------------------------------------------- */

/* "a2-1": the second of step 2. */
static sim_item *item_of(sim_summary *summary, hf_str id)
{
    if (id.len != 4 || id.data[1] < '0' || id.data[1] >= '0' + SIM_STEPS_MAX || id.data[3] < '0' ||
        id.data[3] >= '0' + SIM_ITEMS_MAX) {
        return NULL;
    }
    return id.data[0] == 'a' ? &summary->activities[id.data[1] - '0'][id.data[3] - '0']
                             : &summary->timers[id.data[1] - '0'][id.data[3] - '0'];
}

static bool end_item(sim_item (*items)[SIM_ITEMS_MAX], int64_t scheduled_id)
{
    for (int i = 0; i < SIM_STEPS_MAX; i++) {
        for (int j = 0; j < SIM_ITEMS_MAX; j++) {
            if (items[i][j].scheduled_id == scheduled_id) {
                bool fine = !items[i][j].ended;
                items[i][j].ended = true;
                return fine;
            }
        }
    }
    return false;
}

static bool begin_item(sim_summary *summary, hf_str id, int64_t event_id)
{
    sim_item *item = item_of(summary, id);
    if (item == NULL || item->scheduled_id != 0) {
        return false;
    }
    item->scheduled_id = event_id;
    return true;
}

static bool cancel_item(sim_summary *summary, int64_t scheduled_id)
{
    for (int i = 0; i < SIM_STEPS_MAX; i++) {
        for (int j = 0; j < SIM_ITEMS_MAX; j++) {
            if (summary->activities[i][j].scheduled_id == scheduled_id) {
                summary->activities[i][j].cancel_asked = true;
                return true;
            }
        }
    }
    return false;
}

/* "e2": the message of step 2. */
static bool begin_message(sim_summary *summary, hf_str control, int64_t event_id)
{
    if (control.len != 2 || control.data[1] < '0' || control.data[1] >= '0' + SIM_STEPS_MAX ||
        summary->messages[control.data[1] - '0'].scheduled_id != 0) {
        return false;
    }
    summary->messages[control.data[1] - '0'].scheduled_id = event_id;
    return true;
}

static bool end_message(sim_summary *summary, int64_t initiated_id)
{
    for (int i = 0; i < SIM_STEPS_MAX; i++) {
        if (summary->messages[i].scheduled_id == initiated_id) {
            bool fine = !summary->messages[i].ended;
            summary->messages[i].ended = true;
            return fine;
        }
    }
    return false;
}

static bool add_message_event(sim_summary *summary, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
        return begin_message(summary, event->signal_external_workflow_execution_initiated_event_attributes->control,
                             event->event_id);
    case HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
        return begin_message(summary,
                             event->request_cancel_external_workflow_execution_initiated_event_attributes->control,
                             event->event_id);
    case HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
        return end_message(summary, event->external_workflow_execution_signaled_event_attributes->initiated_event_id);
    case HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        return end_message(summary,
                           event->signal_external_workflow_execution_failed_event_attributes->initiated_event_id);
    case HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        return end_message(summary,
                           event->external_workflow_execution_cancel_requested_event_attributes->initiated_event_id);
    case HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        return end_message(
            summary, event->request_cancel_external_workflow_execution_failed_event_attributes->initiated_event_id);
    default:
        return true;
    }
}

static bool add_event(sim_summary *summary, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
        return begin_item(summary, event->activity_task_scheduled_event_attributes->activity_id, event->event_id);
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        return end_item(summary->activities, event->activity_task_completed_event_attributes->scheduled_event_id);
    case HF_EVENT_TYPE_ACTIVITY_TASK_FAILED:
        return end_item(summary->activities, event->activity_task_failed_event_attributes->scheduled_event_id);
    case HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
        return end_item(summary->activities, event->activity_task_timed_out_event_attributes->scheduled_event_id);
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED:
        return end_item(summary->activities, event->activity_task_canceled_event_attributes->scheduled_event_id);
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
        return cancel_item(summary, event->activity_task_cancel_requested_event_attributes->scheduled_event_id);
    case HF_EVENT_TYPE_TIMER_STARTED:
        return begin_item(summary, event->timer_started_event_attributes->timer_id, event->event_id);
    case HF_EVENT_TYPE_TIMER_FIRED:
        return end_item(summary->timers, event->timer_fired_event_attributes->started_event_id);
    case HF_EVENT_TYPE_TIMER_CANCELED:
        return end_item(summary->timers, event->timer_canceled_event_attributes->started_event_id);
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        summary->signals++;
        return true;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        summary->cancel = true;
        return true;
    case HF_EVENT_TYPE_MARKER_RECORDED: {
        hf_str name = event->marker_recorded_event_attributes->marker_name;
        summary->marker[(name.data[1] - '0') % SIM_STEPS_MAX] = true;
        return true;
    }
    case HF_EVENT_TYPE_WORKFLOW_TASK_STARTED:
        summary->last_started = event->event_id;
        return true;
    case HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
        summary->last_completed_started = event->workflow_task_completed_event_attributes->started_event_id;
        return true;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
        return sim_summary_update(summary, event);
    default:
        sim_chain_add_event(summary, event);
        return add_message_event(summary, event) && sim_child_add_event(summary, event);
    }
}

bool sim_summary_add(sim_world *world, sim_summary *summary, hf_str history)
{
    hf_arena arena;
    hf_op op;
    hf_op_init(&op);
    hf_arena_init(&arena, world->memory);
    bool fine = true;
    hf_pb_raw field;
    while (fine && history.len > 0 && hf_pb_next(&history, &field)) {
        hf_pb_history_event event;
        hf_arena_reset(&arena);
        fine = hf_pb_decode(&op, &hf_pb_history_event_type, field.bytes, &arena, &event) == HF_OK &&
               event.event_id == summary->last_id + 1 && add_event(summary, &event);
        if (!fine) {
            sim_fail(world, "I3: event %lld (type %d) cannot follow event %lld", (long long)event.event_id,
                     (int)event.event_type, (long long)summary->last_id);
        }
        summary->last_id++;
    }
    hf_arena_deinit(&arena);
    return fine;
}

/* ---- What it wants ------------------------------------------------------------------------------------------------------- */

typedef struct writer {
    hf_arena *arena;
    hf_pb_command_list *list;
} writer;

static hf_pb_command *add(writer *out, int32_t type)
{
    if (out->list->items == NULL) {
        out->list->items = HF_ARENA_ARRAY(out->arena, hf_pb_command, COMMANDS_MAX);
    }
    hf_assert(out->list->count < COMMANDS_MAX);
    hf_pb_command *command = &out->list->items[out->list->count++];
    command->command_type = type;
    return command;
}

static hf_str id_text(writer *out, char kind, int at, int i)
{
    const char text[] = {kind, (char)('0' + at), '-', (char)('0' + i)};
    return hf_arena_copy(out->arena, hf_str_of_len(text, sizeof text));
}

static int64_t some(hf_rng *rng, int64_t least, int64_t most)
{
    return least + (int64_t)hf_rng_below(rng, (uint64_t)(most - least));
}

static void schedule(writer *out, int at, int i, hf_rng rng)
{
    hf_pb_command *command = add(out, HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK);
    command->attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
    hf_pb_schedule_activity_task_command_attributes *attrs =
        HF_ARENA_NEW(out->arena, hf_pb_schedule_activity_task_command_attributes);
    command->schedule_activity_task_command_attributes = attrs;
    rng.state += (uint64_t)i;
    attrs->activity_id = id_text(out, 'a', at, i);
    attrs->activity_type = HF_ARENA_NEW(out->arena, hf_pb_activity_type);
    attrs->activity_type->name = sim_activity_type(sim_item_number(attrs->activity_id));
    attrs->input = hf_payloads_of(out->arena, hf_payload_json(out->arena, HF_STR("{}")));
    attrs->start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(some(&rng, SIM_SECOND, 20 * SIM_SECOND)));
    if (hf_rng_permille(&rng, 300)) {
        attrs->heartbeat_timeout = hf_pb_duration_of(hf_nanoseconds(some(&rng, SIM_SECOND, 3 * SIM_SECOND)));
    }
    if (hf_rng_permille(&rng, 150)) {
        attrs->schedule_to_start_timeout = hf_pb_duration_of(hf_nanoseconds(some(&rng, SIM_SECOND, 10 * SIM_SECOND)));
    }
    if (hf_rng_permille(&rng, 200)) {
        attrs->schedule_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(some(&rng, SIM_SECOND, 40 * SIM_SECOND)));
    }
    if (hf_rng_permille(&rng, 700)) {
        attrs->retry_policy = HF_ARENA_NEW(out->arena, hf_pb_retry_policy);
        attrs->retry_policy->maximum_attempts = (int32_t)hf_rng_below(&rng, 5);
        attrs->retry_policy->initial_interval = hf_pb_duration_of(hf_nanoseconds(some(&rng, 1, 2 * SIM_SECOND)));
        attrs->retry_policy->maximum_interval =
            hf_pb_duration_of(hf_nanoseconds(some(&rng, 4 * SIM_SECOND, 9 * SIM_SECOND)));
    }
}

static void start_timer(writer *out, int at, int i, int64_t span)
{
    hf_pb_command *command = add(out, HF_COMMAND_TYPE_START_TIMER);
    command->attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES;
    command->start_timer_command_attributes = HF_ARENA_NEW(out->arena, hf_pb_start_timer_command_attributes);
    command->start_timer_command_attributes->timer_id = id_text(out, 't', at, i);
    command->start_timer_command_attributes->start_to_fire_timeout = hf_pb_duration_of(hf_nanoseconds(span));
}

static void cancel_timer(writer *out, int at, int i)
{
    hf_pb_command *command = add(out, HF_COMMAND_TYPE_CANCEL_TIMER);
    command->attributes_case = HF_PB_COMMAND_CANCEL_TIMER_COMMAND_ATTRIBUTES;
    command->cancel_timer_command_attributes = HF_ARENA_NEW(out->arena, hf_pb_cancel_timer_command_attributes);
    command->cancel_timer_command_attributes->timer_id = id_text(out, 't', at, i);
}

static void cancel_activity(writer *out, int64_t scheduled_id)
{
    hf_pb_command *command = add(out, HF_COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK);
    command->attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
    command->request_cancel_activity_task_command_attributes =
        HF_ARENA_NEW(out->arena, hf_pb_request_cancel_activity_task_command_attributes);
    command->request_cancel_activity_task_command_attributes->scheduled_event_id = scheduled_id;
}

/* Each of these returns true if the step is done. */
static bool do_activities(writer *out, const sim_summary *known, const step *it, int at)
{
    bool all = true;
    for (int i = 0; i < it->count; i++) {
        const sim_item *item = &known->activities[at][i];
        if (item->scheduled_id == 0) {
            schedule(out, at, i, it->rng);
        }
        all = all && item->ended;
    }
    return all;
}

static bool do_timers(writer *out, const sim_summary *known, const step *it, int at)
{
    bool all = true;
    hf_rng rng = it->rng;
    for (int i = 0; i < it->count; i++) {
        const sim_item *item = &known->timers[at][i];
        int64_t span = some(&rng, 0, 8 * SIM_SECOND);
        if (item->scheduled_id == 0) {
            start_timer(out, at, i, span);
        }
        all = all && item->ended;
    }
    return all;
}

static bool do_race(writer *out, const sim_summary *known, const step *it, int at)
{
    const sim_item *activity = &known->activities[at][0];
    const sim_item *timer = &known->timers[at][0];
    hf_rng rng = it->rng;
    if (activity->scheduled_id == 0) {
        schedule(out, at, 0, it->rng);
        start_timer(out, at, 0, some(&rng, SIM_MS, 4 * SIM_SECOND));
        return false;
    }
    if (activity->ended && !timer->ended) {
        cancel_timer(out, at, 0);
        return true;
    }
    if (timer->ended && !activity->ended && !activity->cancel_asked) {
        cancel_activity(out, activity->scheduled_id);
        return true; /* the program does not wait for its end */
    }
    return activity->ended || timer->ended;
}

static bool do_untimer(writer *out, const sim_summary *known, const step *it, int at)
{
    const sim_item *brief = &known->timers[at][0];
    const sim_item *lasting = &known->timers[at][1];
    hf_rng rng = it->rng;
    if (brief->scheduled_id == 0) {
        int64_t span = some(&rng, SIM_MS, 3 * SIM_SECOND);
        start_timer(out, at, 0, span);
        start_timer(out, at, 1, span + some(&rng, 1, hf_rng_permille(&rng, 500) ? 100 * SIM_MS : 60 * SIM_SECOND));
        return false;
    }
    if (brief->ended && !lasting->ended) {
        cancel_timer(out, at, 1);
    }
    return brief->ended;
}

static bool do_cancel(writer *out, const sim_summary *known, const step *it, int at)
{
    const sim_item *activity = &known->activities[at][0];
    const sim_item *timer = &known->timers[at][0];
    hf_rng rng = it->rng;
    if (activity->scheduled_id == 0) {
        schedule(out, at, 0, it->rng);
        start_timer(out, at, 0, some(&rng, SIM_MS, 3 * SIM_SECOND));
    } else if (timer->ended && !activity->ended && !activity->cancel_asked) {
        cancel_activity(out, activity->scheduled_id);
    }
    return activity->ended;
}

static bool do_marker(writer *out, const sim_summary *known, int at)
{
    if (!known->marker[at]) {
        hf_pb_command *command = add(out, HF_COMMAND_TYPE_RECORD_MARKER);
        char name[4] = {'m', (char)('0' + at), 0, 0};
        command->attributes_case = HF_PB_COMMAND_RECORD_MARKER_COMMAND_ATTRIBUTES;
        command->record_marker_command_attributes = HF_ARENA_NEW(out->arena, hf_pb_record_marker_command_attributes);
        command->record_marker_command_attributes->marker_name = hf_arena_copy(out->arena, hf_str_of(name));
    }
    return true;
}

static bool do_message(writer *out, const sim_world *world, const sim_summary *known, const step *it, int at)
{
    hf_rng rng = it->rng;
    bool forgets = hf_rng_permille(&rng, 250); /* does not wait, and may close with the same task */
    if (known->messages[at].scheduled_id != 0) {
        return forgets || known->messages[at].ended;
    }
    char name[SIM_NAME_LEN];
    char control[4] = {'e', (char)('0' + at), 0, 0};
    (void)snprintf(name, sizeof name, "wf-%d", (int)hf_rng_below(&rng, (uint64_t)world->knobs.workflows));
    hf_str workflow_id = hf_arena_copy(out->arena, hf_str_of(name));
    hf_str mark = hf_arena_copy(out->arena, hf_str_of(control));
    if (hf_rng_permille(&rng, 750)) {
        hf_pb_command *command = add(out, HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION);
        hf_pb_signal_external_workflow_execution_command_attributes *attrs =
            HF_ARENA_NEW(out->arena, hf_pb_signal_external_workflow_execution_command_attributes);
        attrs->execution = HF_ARENA_NEW(out->arena, hf_pb_workflow_execution);
        attrs->execution->workflow_id = workflow_id;
        attrs->signal_name = HF_STR("go");
        attrs->control = mark;
        command->attributes_case = HF_PB_COMMAND_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->signal_external_workflow_execution_command_attributes = attrs;
    } else {
        hf_pb_command *command = add(out, HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION);
        hf_pb_request_cancel_external_workflow_execution_command_attributes *attrs =
            HF_ARENA_NEW(out->arena, hf_pb_request_cancel_external_workflow_execution_command_attributes);
        attrs->workflow_id = workflow_id;
        attrs->control = mark;
        command->attributes_case = HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->request_cancel_external_workflow_execution_command_attributes = attrs;
    }
    return forgets;
}

static hf_pb_command *add_any(void *out)
{
    return add(out, 0);
}

static bool do_step(writer *out, sim_world *world, hf_str workflow_id, const sim_summary *known, const step *it, int at)
{
    switch (it->kind) {
    case SIM_STEP_ACTIVITIES:
        return do_activities(out, known, it, at);
    case SIM_STEP_TIMERS:
        return do_timers(out, known, it, at);
    case SIM_STEP_RACE:
        return do_race(out, known, it, at);
    case SIM_STEP_UNTIMER:
        return do_untimer(out, known, it, at);
    case SIM_STEP_CANCEL:
        return do_cancel(out, known, it, at);
    case SIM_STEP_SIGNALS:
        return known->signals >= (sim_chain_is_later(known) ? 1 : it->count); /* else long chains wait for long */
    case SIM_STEP_MARKER:
        return do_marker(out, known, at);
    case SIM_STEP_MESSAGE:
        return do_message(out, world, known, it, at);
    case SIM_STEP_UPSERT:
        if (!known->upserted[at]) {
            sim_chain_upsert(add(out, 0), out->arena, at, it->rng);
        }
        return true;
    case SIM_STEP_CHILDREN:
        return sim_child_do(world, &(sim_child_step){workflow_id, at, it->rng}, known, out->arena, add_any, out);
    case SIM_STEP_KIND_COUNT:
        break;
    }
    return true;
}

static void finish(writer *out, hf_str workflow_id, int end)
{
    if (end <= 6) {
        hf_pb_command *command = add(out, HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION);
        command->attributes_case = HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->complete_workflow_execution_command_attributes =
            HF_ARENA_NEW(out->arena, hf_pb_complete_workflow_execution_command_attributes);
        if (sim_is_child_name(workflow_id)) {
            command->complete_workflow_execution_command_attributes->result =
                hf_payloads_of(out->arena, hf_payload_bytes(out->arena, hf_arena_copy(out->arena, workflow_id)));
        }
    } else if (end <= 8) {
        hf_pb_command *command = add(out, HF_COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION);
        command->attributes_case = HF_PB_COMMAND_FAIL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->fail_workflow_execution_command_attributes =
            HF_ARENA_NEW(out->arena, hf_pb_fail_workflow_execution_command_attributes);
        command->fail_workflow_execution_command_attributes->failure =
            hf_failure_application(out->arena, HF_STR("Planned"), HF_STR("as the program says"), false);
    } else {
        hf_pb_command *command = add(out, HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION);
        command->attributes_case = HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES;
        command->cancel_workflow_execution_command_attributes =
            HF_ARENA_NEW(out->arena, hf_pb_cancel_workflow_execution_command_attributes);
    }
}

void sim_program_commands(sim_world *world, hf_str workflow_id, const sim_summary *summary, hf_arena *arena,
                          hf_pb_command_list *ret_commands)
{
    program it = program_of(world, workflow_id);
    writer out = {arena, ret_commands};
    if (summary->cancel && it.hears_cancel) {
        finish(&out, workflow_id, 9);
        return;
    }
    for (int at = 0; at < it.count; at++) {
        if (!do_step(&out, world, workflow_id, summary, &it.steps[at], at)) {
            return;
        }
    }
    if (sim_chain_continues(&it.chain, summary)) {
        sim_chain_continue(add(&out, 0), arena, &it.chain, summary);
        return;
    }
    finish(&out, workflow_id, sim_chain_fails(&it.chain, summary) ? 7 : it.end);
}
