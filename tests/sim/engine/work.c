/* Batches about activities: they unpause them, reset them, and give them other options. Some runs of the crowd and of the bystanders have an
 * activity. Its first attempt fails, if it comes along with the workflow task; nobody polls for others. A client pauses such activities
 * between and during batches, and looks at them.
 *
 * No event tells of any of this, so it is judged by descriptions and by the answers to pauses. The client has one call at a time. Marks number
 * what it has sent and heard; a batch acts between the mark at which it was first sent and the one at which it is known to be over.
 *
 * sim-Y6  a batch that has completed has acted on each run that was there before it and did not refuse
 * sim-Y7  a batch unpauses an activity once: before a pause that is not the first, a batch of its own was there to unpause it
 * sim-Y8  nothing but a batch of its namespace, before it is over or stopped, unpauses an activity, resets it or gives it other options */
#include "sim/engine/work.h"

#include <string.h>

static const int64_t EACH = 20 * SIM_SECOND; /* start_to_close of an activity, until a batch changes it */

bool sim_work_is_of(const sim_batch *batch)
{
    return batch->kind >= SIM_BATCH_UNPAUSE;
}

static bool unpauses(const sim_batch *batch)
{
    return batch->kind == SIM_BATCH_UNPAUSE || (batch->kind == SIM_BATCH_ACTIVITY_RESET && !batch->keeps_paused);
}

/* ---- What a batch does ------------------------------------------------------------------------------------------------- */

void sim_work_choose(sim_world *world, sim_batch *batch)
{
    uint64_t kind = hf_rng_below(&world->rng, 3);
    batch->kind = kind == 0 ? SIM_BATCH_UNPAUSE : kind == 1 ? SIM_BATCH_ACTIVITY_RESET : SIM_BATCH_ACTIVITY_OPTIONS;
    batch->keeps_paused = sim_chance(world, 300);
    batch->is_by_type = sim_chance(world, 400);
}

static int64_t each_of(const sim_world *world, const sim_batch *batch)
{
    return EACH + (1 + (batch - world->batches.items)) * SIM_SECOND;
}

#define USE(name, field, message)                                                     \
    request->operation_case = HF_PB_START_BATCH_OPERATION_REQUEST_##name##_OPERATION; \
    message *it = request->field = HF_ARENA_NEW(&call->arena, message)

/* All activities, or those of a type. */
#define NAME_ACTIVITIES(prefix)                                                     \
    do {                                                                            \
        it->activity_case = batch->is_by_type ? prefix##_TYPE : prefix##_MATCH_ALL; \
        if (batch->is_by_type) {                                                    \
            it->type = HF_STR("work");                                              \
        } else {                                                                    \
            it->match_all = true;                                                   \
        }                                                                           \
    } while (0)

void sim_work_put(sim_call *call, const sim_batch *batch, hf_pb_start_batch_operation_request *request)
{
    if (batch->kind == SIM_BATCH_UNPAUSE) {
        USE(UNPAUSE_ACTIVITIES, unpause_activities_operation, hf_pb_batch_operation_unpause_activities);
        NAME_ACTIVITIES(HF_PB_BATCH_OPERATION_UNPAUSE_ACTIVITIES);
    } else if (batch->kind == SIM_BATCH_ACTIVITY_RESET) {
        USE(RESET_ACTIVITIES, reset_activities_operation, hf_pb_batch_operation_reset_activities);
        NAME_ACTIVITIES(HF_PB_BATCH_OPERATION_RESET_ACTIVITIES);
        it->keep_paused = batch->keeps_paused;
    } else {
        USE(UPDATE_ACTIVITY_OPTIONS, update_activity_options_operation, hf_pb_batch_operation_update_activity_options);
        NAME_ACTIVITIES(HF_PB_BATCH_OPERATION_UPDATE_ACTIVITY_OPTIONS);
        it->activity_options = HF_ARENA_NEW(&call->arena, hf_pb_activity_options);
        it->activity_options->start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(each_of(call->world, batch)));
        it->update_mask = HF_ARENA_NEW(&call->arena, hf_pb_field_mask);
        it->update_mask->paths.items = HF_ARENA_NEW(&call->arena, hf_str);
        it->update_mask->paths.items[0] = HF_STR("start_to_close_timeout");
        it->update_mask->paths.count = 1;
    }
}

/* ---- Calls of the client ----------------------------------------------------------------------------------------------- */

#define REQUEST(stem)                                                                     \
    hf_pb_##stem##_request *request = HF_ARENA_NEW(&call->arena, hf_pb_##stem##_request); \
    call->call.request = request;                                                         \
    request->namespace = sim_crowd_space(run)

static hf_pb_workflow_execution *execution_of(sim_call *call, const sim_crowd_run *run)
{
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    execution->workflow_id = sim_copy(call, run->name);
    return execution;
}

static hf_str token_of(sim_call *call, const sim_crowd_run *run)
{
    return hf_arena_copy(&call->arena, hf_str_of_len(run->work.token, run->work.token_len));
}

void sim_work_fill_task(sim_call *call, const sim_crowd_run *run)
{
    REQUEST(respond_workflow_task_completed);
    request->task_token = token_of(call, run);
    request->commands.items = HF_ARENA_NEW(&call->arena, hf_pb_command);
    request->commands.count = 1;
    hf_pb_command *command = &request->commands.items[0];
    hf_pb_schedule_activity_task_command_attributes *attrs =
        HF_ARENA_NEW(&call->arena, hf_pb_schedule_activity_task_command_attributes);
    command->command_type = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK;
    command->attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES;
    command->schedule_activity_task_command_attributes = attrs;
    attrs->activity_id = HF_STR("job");
    attrs->activity_type = HF_ARENA_NEW(&call->arena, hf_pb_activity_type);
    attrs->activity_type->name = HF_STR("work");
    attrs->task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
    attrs->task_queue->name = HF_STR("idle");
    attrs->start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(EACH));
    attrs->request_eager_execution = true;
}

void sim_work_fill_failure(sim_call *call, const sim_crowd_run *run)
{
    REQUEST(respond_activity_task_failed);
    request->task_token = token_of(call, run);
    request->failure = HF_ARENA_NEW(&call->arena, hf_pb_failure);
    request->failure->message = HF_STR("not now");
}

void sim_work_fill_pause(sim_call *call, sim_crowd_run *run)
{
    char id[SIM_NAME_LEN];
    REQUEST(pause_activity);
    (void)snprintf(id, sizeof id, "p%zu", call->world->batches.pause);
    request->execution = execution_of(call, run);
    request->request_id = sim_copy(call, id); /* sent again it is the same pause */
    request->activity_case = HF_PB_PAUSE_ACTIVITY_REQUEST_ID;
    request->id = HF_STR("job");
    run->work.pause_sent = ++call->world->batches.marks;
    run->work.pause_heard = 0;
}

void sim_work_fill_look(sim_call *call, const sim_crowd_run *run)
{
    REQUEST(describe_workflow_execution);
    request->execution = execution_of(call, run);
}

/* ---- Their answers ----------------------------------------------------------------------------------------------------- */

static bool keep_token(sim_crowd_run *run, hf_str token)
{
    hf_assert(token.len <= sizeof run->work.token);
    memcpy(run->work.token, token.data, token.len);
    run->work.token_len = token.len;
    return token.len > 0;
}

bool sim_work_started(sim_world *world, const sim_call *call, sim_crowd_run *run)
{
    const hf_pb_start_workflow_execution_response *response = call->call.response;
    (void)world;
    return call->call.status == HF_OK && response->eager_workflow_task != NULL &&
           keep_token(run, response->eager_workflow_task->task_token);
}

static void know(sim_world *world, sim_crowd_run *run)
{
    run->work.known = run->work.known != 0 ? run->work.known : ++world->batches.marks;
}

bool sim_work_scheduled(sim_world *world, const sim_call *call, sim_crowd_run *run)
{
    const hf_pb_respond_workflow_task_completed_response *response = call->call.response;
    if (call->call.status == HF_ERR_INVALID) {
        sim_fail(world, "the activity of %s is refused: %s", run->name, call->call.message);
    }
    if (call->call.status != HF_OK) { /* it was there already, or the task is over */
        return false;
    }
    know(world, run);
    return response->activity_tasks.count > 0 && keep_token(run, response->activity_tasks.items[0].task_token);
}

void sim_work_failed(sim_world *world, const sim_call *call, sim_crowd_run *run)
{
    run->work.failed = call->call.status == HF_OK ? ++world->batches.marks : 0;
}

void sim_work_paused(sim_world *world, const sim_call *call, sim_crowd_run *run)
{
    sim_batches *all = &world->batches;
    int most = 1;
    if (call->call.status != HF_OK &&
        call->call.status != HF_ERR_NOT_READY) { /* the run is gone, or has no activity yet */
        return;
    }
    know(world, run);
    run->work.pause_heard = ++all->marks;
    run->work.pauses += call->call.status == HF_OK;
    for (size_t i = 0; i < all->count && run->space == SIM_CROWD; i++) {
        most += all->items[i].is_asked && unpauses(&all->items[i]) ? all->items[i].is_again ? 2 : 1 : 0;
    }
    if (run->work.pauses > most) {
        sim_fail(world, "sim-Y7: the activity of %s was paused %d times, and batches were there to unpause it %d times",
                 run->name, run->work.pauses, most - 1);
    }
}

/* ---- What a description tells ------------------------------------------------------------------------------------------- */

static int64_t each_in(const hf_pb_pending_activity_info *info)
{
    return hf_pb_duration_span(info->activity_options->start_to_close_timeout).ns;
}

/* Whether a batch of the kind may have acted on the run after that mark. */
static bool may_act_after(const sim_world *world, const sim_crowd_run *run, bool (*is_it)(const sim_batch *batch),
                          uint64_t mark)
{
    const sim_batches *all = &world->batches;
    for (size_t i = 0; i < all->count && run->space == SIM_CROWD; i++) {
        if (all->items[i].is_asked && is_it(&all->items[i]) && (all->items[i].over == 0 || all->items[i].over > mark)) {
            return true;
        }
    }
    return false;
}

static bool resets(const sim_batch *batch)
{
    return batch->kind == SIM_BATCH_ACTIVITY_RESET;
}

static void check_untouched(sim_world *world, const sim_crowd_run *run, const hf_pb_pending_activity_info *info)
{
    const sim_crowd_work *work = &run->work;
    if (!info->paused && work->pause_heard != 0 && !may_act_after(world, run, unpauses, work->pause_sent)) {
        sim_fail(world, "sim-Y8: the activity of %s was paused, and no batch has unpaused it", run->name);
    } else if (info->paused && work->pause_sent == 0) {
        sim_fail(world, "sim-Y8: the activity of %s is paused, and nobody has asked for that", run->name);
    }
    if (info->attempt == 1 && work->failed != 0 && !may_act_after(world, run, resets, work->failed)) {
        sim_fail(world, "sim-Y8: the activity of %s has failed, no batch has reset it, and it is at attempt 1",
                 run->name);
    }
}

static bool changes_options(const sim_world *world, const sim_batch *batch, int64_t each)
{
    return batch->is_asked && batch->kind == SIM_BATCH_ACTIVITY_OPTIONS && each_of(world, batch) == each;
}

/* The options are those that the activity was scheduled with, or those of a batch, which is not older than `since`. */
static bool is_each_of(const sim_world *world, const sim_crowd_run *run, int64_t each, const sim_batch *since)
{
    const sim_batches *all = &world->batches;
    for (size_t i = 0; i < all->count && run->space == SIM_CROWD; i++) {
        const sim_batch *batch = &all->items[i];
        bool is_later = since == NULL || batch == since || batch->over == 0 || batch->over > since->sent;
        if (changes_options(world, batch, each) && is_later) {
            return true;
        }
    }
    return since == NULL && each == EACH;
}

static bool has_acted(const sim_world *world, const sim_batch *batch, const sim_crowd_run *run,
                      const hf_pb_pending_activity_info *info)
{
    const sim_crowd_work *work = &run->work;
    if (unpauses(batch) && info->paused && work->pause_sent < batch->sent) {
        return false;
    }
    if (resets(batch) && work->failed != 0 && work->failed < batch->sent && info->attempt != 1) {
        return false;
    }
    return batch->kind != SIM_BATCH_ACTIVITY_OPTIONS || is_each_of(world, run, each_in(info), batch);
}

static void check_acted(sim_world *world, const sim_crowd_run *run, const hf_pb_pending_activity_info *info)
{
    const sim_batches *all = &world->batches;
    size_t index = (size_t)(run - all->runs);
    for (size_t i = 0; i < all->count && run->space == SIM_CROWD; i++) {
        const sim_batch *batch = &all->items[i];
        bool is_meant = batch->is_complete && batch->refused == 0 && (batch->before >> index & 1) != 0 &&
                        run->work.known != 0 && run->work.known < batch->sent;
        if (is_meant && sim_work_is_of(batch) && !has_acted(world, batch, run, info)) {
            sim_fail(world,
                     "sim-Y6: batch %s has completed and not acted on the activity of %s: %s, attempt %d, %lld s",
                     batch->id, run->name, info->paused ? "paused" : "not paused", (int)info->attempt,
                     (long long)(each_in(info) / SIM_SECOND));
        }
    }
}

void sim_work_seen(sim_world *world, const sim_call *call, sim_crowd_run *run)
{
    const hf_pb_describe_workflow_execution_response *response = call->call.response;
    run->work.looked = ++world->batches.marks;
    if (call->call.status != HF_OK || response->pending_activities.count == 0) { /* the run is gone, or has ended */
        return;
    }
    const hf_pb_pending_activity_info *info = &response->pending_activities.items[0];
    sim_trace(world, "crowd: the activity of %s is %s, attempt %d", run->name, info->paused ? "paused" : "not paused",
              (int)info->attempt);
    know(world, run);
    check_untouched(world, run, info);
    check_acted(world, run, info);
    if (!is_each_of(world, run, each_in(info), NULL)) {
        sim_fail(world, "sim-Y8: the activity of %s has options that no batch gave it", run->name);
    }
}

/* ---- What next --------------------------------------------------------------------------------------------------------- */

bool sim_work_find(sim_world *world, size_t *ret_index)
{
    const sim_batches *all = &world->batches;
    size_t count = 0;
    for (size_t i = 0; i < all->run_count; i++) {
        count += all->runs[i].work.known != 0 && !all->runs[i].is_ended ? 1 : 0;
        if (all->runs[i].work.known != 0 && !all->runs[i].is_ended && hf_rng_below(&world->rng, count) == 0) {
            *ret_index = i;
        }
    }
    return count > 0;
}

bool sim_work_find_unseen(const sim_world *world, size_t *ret_index)
{
    const sim_batches *all = &world->batches;
    uint64_t last = 0;
    for (size_t i = 0; i < all->count; i++) {
        last = sim_work_is_of(&all->items[i]) && all->items[i].over > last ? all->items[i].over : last;
    }
    for (size_t i = 0; i < all->run_count; i++) {
        const sim_crowd_run *run = &all->runs[i];
        if (run->work.known != 0 && !run->is_ended && run->work.looked < last) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}
