/* Operations on many runs. A crowd of runs that nobody polls for; a client signals, cancels, changes, terminates and deletes them by batches, by
 * query and by list, some slow, some stopped midway. Other runs stand by in another namespace, and a third namespace is deleted with its
 * runs. Everything is repeated until it is answered. Batches about activities are judged in work.c.
 *
 * sim-Y1  a batch acts once on a run: at most one signal of it is in a history, unless its start was repeated when it was forgotten; exactly
 *     one, if it completed and the run was there before it
 * sim-Y2  it acts in its own namespace only
 * sim-Y3  it acts on no run after its stop was acknowledged
 * sim-Y4  its counts are those of its runs
 * sim-Y5  nothing of a namespace that was deleted is left */
#include "sim/engine/batches.h"
#include "sim/engine/work.h"

#include "history/history.h"
#include "inspect/look.h"

#include <string.h>

static const char *const SPACES[] = {"crowd", "bystanders", "doomed"};
enum { CROWD = SIM_CROWD, BYSTANDERS = SIM_BYSTANDERS, DOOMED = SIM_DOOMED };
enum { STATE_FORGOTTEN = 4 };

typedef enum action {
    DO_NOTHING,
    DO_START_RUN,
    DO_START_BATCH,
    DO_STOP,
    DO_SHOW,
    DO_LIST,
    DO_ADD,       /* a search attribute that a query uses ... */
    DO_REMOVE,    /* ... and that goes meanwhile */
    DO_TERMINATE, /* in the end, so that nothing is left open */
    DO_DELETE_NAMESPACE,
    DO_SCHEDULE, /* an activity */
    DO_FAIL,     /* its first attempt */
    DO_PAUSE,    /* it */
    DO_LOOK,     /* at it */
    DO_REGISTER  /* it can be registered again only when nothing of it is left */
} action;

static const char *kind_name(sim_batch_kind kind)
{
    static const char *const NAMES[] = {"signal", "options",   "cancel",  "terminate",      "delete",
                                        "reset",  "attribute", "unpause", "activity reset", "activity options"};
    return NAMES[kind];
}

hf_str sim_crowd_space(const sim_crowd_run *run)
{
    return hf_str_of(SPACES[run->space]);
}

/* ---- Requests ---------------------------------------------------------------------------------------------------------- */

static void on_done(sim_world *world, sim_call *call);

static sim_call *ask(sim_world *world, hf_method method, int what, size_t index)
{
    sim_call *call = sim_call_new(world, method, &world->batches.actor, on_done);
    call->log = index;
    call->epoch = (uint64_t)what;
    return call;
}

#define REQUEST(stem)                                                                     \
    hf_pb_##stem##_request *request = HF_ARENA_NEW(&call->arena, hf_pb_##stem##_request); \
    call->call.request = request

static void send_start(sim_world *world, size_t index)
{
    sim_crowd_run *run = &world->batches.runs[index];
    sim_call *call = ask(world, HF_METHOD_START_WORKFLOW_EXECUTION, DO_START_RUN, index);
    REQUEST(start_workflow_execution);
    request->namespace = hf_str_of(SPACES[run->space]);
    request->workflow_id = sim_copy(call, run->name);
    request->request_id = sim_copy(call, run->name);
    request->workflow_type = HF_ARENA_NEW(&call->arena, hf_pb_workflow_type);
    request->workflow_type->name = HF_STR("crowd");
    request->task_queue = HF_ARENA_NEW(&call->arena, hf_pb_task_queue);
    request->task_queue->name = HF_STR("idle");
    request->workflow_id_reuse_policy = HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE;
    request->request_eager_execution = run->is_eager;
    run->is_asked = true;
    sim_call_submit(world, call);
}

static void send_end(sim_world *world, size_t index)
{
    sim_crowd_run *run = &world->batches.runs[index];
    sim_call *call = ask(world, HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, DO_TERMINATE, index);
    REQUEST(terminate_workflow_execution);
    request->namespace = hf_str_of(SPACES[run->space]);
    request->workflow_execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
    request->workflow_execution->workflow_id = sim_copy(call, run->name);
    sim_call_submit(world, call);
}

static void put_operation(sim_call *call, const sim_batch *batch, hf_pb_start_batch_operation_request *request)
{
#define USE(name, field, message)                                                     \
    request->operation_case = HF_PB_START_BATCH_OPERATION_REQUEST_##name##_OPERATION; \
    request->field = HF_ARENA_NEW(&call->arena, message)
    switch (batch->kind) {
    case SIM_BATCH_SIGNAL:
    case SIM_BATCH_ATTRIBUTE:
        USE(SIGNAL, signal_operation, hf_pb_batch_operation_signal);
        request->signal_operation->signal = sim_copy(call, batch->id);
        return;
    case SIM_BATCH_OPTIONS:
        USE(UPDATE_WORKFLOW_OPTIONS, update_workflow_options_operation,
            hf_pb_batch_operation_update_workflow_execution_options);
        request->update_workflow_options_operation->workflow_execution_options =
            HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution_options);
        request->update_workflow_options_operation->workflow_execution_options->priority =
            HF_ARENA_NEW(&call->arena, hf_pb_priority);
        request->update_workflow_options_operation->workflow_execution_options->priority->priority_key = 2;
        request->update_workflow_options_operation->update_mask = HF_ARENA_NEW(&call->arena, hf_pb_field_mask);
        request->update_workflow_options_operation->update_mask->paths.items = HF_ARENA_NEW(&call->arena, hf_str);
        request->update_workflow_options_operation->update_mask->paths.items[0] = HF_STR("priority");
        request->update_workflow_options_operation->update_mask->paths.count = 1;
        return;
    case SIM_BATCH_CANCEL:
        USE(CANCELLATION, cancellation_operation, hf_pb_batch_operation_cancellation);
        return;
    case SIM_BATCH_TERMINATE:
        USE(TERMINATION, termination_operation, hf_pb_batch_operation_termination);
        return;
    case SIM_BATCH_DELETE:
        USE(DELETION, deletion_operation, hf_pb_batch_operation_deletion);
        return;
    case SIM_BATCH_RESET:
        USE(RESET, reset_operation, hf_pb_batch_operation_reset);
        request->reset_operation->reset_type = HF_RESET_TYPE_FIRST_WORKFLOW_TASK;
        return;
    case SIM_BATCH_UNPAUSE:
    case SIM_BATCH_ACTIVITY_RESET:
    case SIM_BATCH_ACTIVITY_OPTIONS:
        sim_work_put(call, batch, request);
        return;
    }
#undef USE
}

static void send_batch(sim_world *world, size_t index)
{
    sim_batches *all = &world->batches;
    sim_batch *batch = &all->items[index];
    sim_call *call = ask(world, HF_METHOD_START_BATCH_OPERATION, DO_START_BATCH, index);
    REQUEST(start_batch_operation);
    request->namespace = hf_str_of(SPACES[CROWD]);
    request->job_id = sim_copy(call, batch->id);
    request->reason = HF_STR("because");
    request->max_operations_per_second = (float)batch->rate;
    put_operation(call, batch, request);
    if (!batch->is_asked) {
        batch->is_asked = true;
        for (size_t i = 0; i < all->run_count; i++) {
            batch->before |= all->runs[i].is_acked && all->runs[i].space == CROWD ? 1u << i : 0;
        }
        batch->listed = all->run_count;
        batch->asked = sim_now(world).wall;
        batch->sent = ++all->marks;
    }
    batch->tries++;
    if (batch->is_list) {
        request->executions.items = HF_ARENA_ARRAY(&call->arena, hf_pb_workflow_execution, batch->listed + 1);
        for (size_t i = 0; i < batch->listed; i++) { /* of other namespaces, too: there they are not */
            request->executions.items[request->executions.count++].workflow_id = sim_copy(call, all->runs[i].name);
        }
        request->executions.items[request->executions.count++].workflow_id = HF_STR("nobody");
    } else {
        request->visibility_query = batch->kind == SIM_BATCH_ATTRIBUTE ? HF_STR("Crowd IS NULL AND TaskQueue = 'idle'")
                                                                       : HF_STR("TaskQueue = 'idle'");
    }
    sim_call_submit(world, call);
}

static void send_about(sim_world *world, int what, size_t index)
{
    sim_batch *batch = &world->batches.items[index];
    if (what == DO_STOP) {
        sim_call *call = ask(world, HF_METHOD_STOP_BATCH_OPERATION, what, index);
        REQUEST(stop_batch_operation);
        request->namespace = hf_str_of(SPACES[CROWD]);
        request->job_id = sim_copy(call, batch->id);
        request->reason = HF_STR("enough");
        batch->is_stopping = true;
        sim_call_submit(world, call);
        return;
    }
    sim_call *call = ask(world, HF_METHOD_DESCRIBE_BATCH_OPERATION, what, index);
    REQUEST(describe_batch_operation);
    request->namespace = hf_str_of(SPACES[CROWD]);
    request->job_id = sim_copy(call, batch->id);
    sim_call_submit(world, call);
}

static void send_list(sim_world *world)
{
    sim_call *call = ask(world, HF_METHOD_LIST_BATCH_OPERATIONS, DO_LIST, 0);
    REQUEST(list_batch_operations);
    request->namespace = hf_str_of(SPACES[CROWD]);
    sim_call_submit(world, call);
}

static void send_attribute(sim_world *world, int what)
{
    bool is_added = what == DO_ADD;
    sim_call *call =
        ask(world, is_added ? HF_METHOD_ADD_SEARCH_ATTRIBUTES : HF_METHOD_REMOVE_SEARCH_ATTRIBUTES, what, 0);
    if (is_added) {
        REQUEST(add_search_attributes);
        request->namespace = hf_str_of(SPACES[CROWD]);
        request->search_attributes.items =
            HF_ARENA_NEW(&call->arena, hf_pb_add_search_attributes_request_search_attributes_entry);
        request->search_attributes.items[0].key = HF_STR("Crowd");
        request->search_attributes.items[0].value = HF_INDEXED_VALUE_TYPE_INT;
        request->search_attributes.count = 1;
    } else {
        REQUEST(remove_search_attributes);
        request->namespace = hf_str_of(SPACES[CROWD]);
        request->search_attributes.items = HF_ARENA_NEW(&call->arena, hf_str);
        request->search_attributes.items[0] = HF_STR("Crowd");
        request->search_attributes.count = 1;
    }
    sim_call_submit(world, call);
}

static void send_namespace(sim_world *world, int what)
{
    if (what == DO_DELETE_NAMESPACE) {
        sim_call *call = ask(world, HF_METHOD_DELETE_NAMESPACE, what, 0);
        REQUEST(delete_namespace);
        request->namespace = hf_str_of(SPACES[DOOMED]);
        world->batches.is_doomed = true;
        sim_call_submit(world, call);
        return;
    }
    sim_call *call = ask(world, HF_METHOD_REGISTER_NAMESPACE, what, 0);
    REQUEST(register_namespace);
    request->namespace = hf_str_of(SPACES[DOOMED]);
    sim_call_submit(world, call);
}

static void send_work(sim_world *world, int what, size_t index)
{
    static const hf_method METHODS[] = {
        [DO_SCHEDULE] = HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED,
        [DO_FAIL] = HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED,
        [DO_PAUSE] = HF_METHOD_PAUSE_ACTIVITY,
        [DO_LOOK] = HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION,
    };
    sim_crowd_run *run = &world->batches.runs[index];
    sim_call *call = ask(world, METHODS[what], what, index);
    if (what == DO_SCHEDULE) {
        sim_work_fill_task(call, run);
    } else if (what == DO_FAIL) {
        sim_work_fill_failure(call, run);
    } else if (what == DO_PAUSE) {
        sim_work_fill_pause(call, run);
    } else {
        sim_work_fill_look(call, run);
    }
    sim_call_submit(world, call);
}

static void send(sim_world *world)
{
    sim_batches *all = &world->batches;
    all->is_waiting = true;
    switch ((action)all->what) {
    case DO_START_RUN:
        send_start(world, all->index);
        return;
    case DO_START_BATCH:
        send_batch(world, all->index);
        return;
    case DO_STOP:
    case DO_SHOW:
        send_about(world, all->what, all->index);
        return;
    case DO_LIST:
        send_list(world);
        return;
    case DO_ADD:
    case DO_REMOVE:
        send_attribute(world, all->what);
        return;
    case DO_TERMINATE:
        send_end(world, all->index);
        return;
    case DO_DELETE_NAMESPACE:
    case DO_REGISTER:
        send_namespace(world, all->what);
        return;
    case DO_SCHEDULE:
    case DO_FAIL:
    case DO_PAUSE:
    case DO_LOOK:
        send_work(world, all->what, all->index);
        return;
    case DO_NOTHING:
        break;
    }
    all->is_waiting = false;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------------- */

static void on_shown(sim_world *world, sim_batch *batch, const sim_call *call)
{
    const hf_pb_describe_batch_operation_response *response = call->call.response;
    if (call->call.status == HF_ERR_NOT_FOUND && world->knobs.core.operation_kept > 0 && batch->is_acked) {
        batch->state = STATE_FORGOTTEN;
        batch->over = batch->over != 0 ? batch->over : ++world->batches.marks;
        return;
    }
    if (call->call.status != HF_OK) {
        sim_fail(world, "the batch %s cannot be described: %s", batch->id, call->call.message);
        return;
    }
    int64_t acted = response->complete_operation_count + response->failure_operation_count;
    int64_t most = batch->is_list ? (int64_t)batch->listed + 1 : (int64_t)world->batches.run_count;
    bool is_more = acted > most && !world->batches.has_resets; /* which make runs that others find */
    if (acted < batch->acted || is_more || (batch->is_list && acted > response->total_operation_count)) {
        sim_fail(world, "sim-Y4: the batch %s has acted on %lld runs, before on %lld, of %lld", batch->id,
                 (long long)acted, (long long)batch->acted, (long long)most);
    }
    if (batch->is_list && response->state == HF_BATCH_OPERATION_STATE_COMPLETED &&
        acted != response->total_operation_count) {
        sim_fail(world, "sim-Y4: the batch %s has completed after %lld of %lld runs", batch->id, (long long)acted,
                 (long long)response->total_operation_count);
    }
    batch->acted = acted;
    batch->state = response->state;
    batch->refused = response->failure_operation_count;
    if (batch->over == 0 && batch->state != HF_BATCH_OPERATION_STATE_RUNNING) {
        batch->over = ++world->batches.marks;
    }
    batch->is_complete = batch->is_complete || batch->state == HF_BATCH_OPERATION_STATE_COMPLETED;
}

static bool next_pause(sim_world *world)
{
    sim_batches *all = &world->batches;
    if (!all->has_work || !sim_work_find(world, &all->index)) {
        return false;
    }
    all->pause++;
    all->what = DO_PAUSE;
    all->teased = all->index;
    return true;
}

static void pause_again(sim_world *world)
{
    sim_batches *all = &world->batches;
    all->teases--;
    all->pause++;
    all->what = DO_PAUSE;
    all->index = all->teased;
}

/* A batch is known by its id for a while after its end. Whoever repeats its start later than that starts another one. */
static void note_again(sim_world *world, sim_batch *batch)
{
    int64_t kept = world->knobs.core.operation_kept;
    bool is_late = world->knobs.has_clock_steps || sim_now(world).wall - batch->asked >= kept;
    batch->is_again = batch->is_again || (kept > 0 && batch->tries > 1 && is_late);
}

/* What the answer to a call about an activity leads to. */
static action after_work(sim_world *world, const sim_call *call)
{
    sim_crowd_run *run = &world->batches.runs[call->log];
    switch ((action)call->epoch) {
    case DO_START_RUN:
        return run->is_eager && sim_work_started(world, call, run) ? DO_SCHEDULE : DO_NOTHING;
    case DO_SCHEDULE:
        return sim_work_scheduled(world, call, run) ? DO_FAIL : DO_NOTHING;
    case DO_FAIL:
        sim_work_failed(world, call, run);
        return DO_NOTHING;
    case DO_PAUSE:
        sim_work_paused(world, call, run);
        return DO_NOTHING;
    case DO_LOOK:
        sim_work_seen(world, call, run);
        return DO_NOTHING;
    default:
        return DO_NOTHING;
    }
}

static void on_done(sim_world *world, sim_call *call)
{
    sim_batches *all = &world->batches;
    hf_status status = call->call.status;
    all->is_waiting = false;
    sim_trace(world, "crowd: %s of %s: %s %s", hf_method_info_of(call->call.method)->name,
              call->epoch == DO_START_BATCH || call->epoch == DO_STOP || call->epoch == DO_SHOW
                  ? all->items[call->log].id
                  : all->runs[call->log].name,
              hf_status_name(status), call->call.message);
    if (call->epoch == DO_START_BATCH) {
        note_again(world, &all->items[call->log]);
    }
    bool is_lost = sim_is_lost(call) || status == HF_ERR_STORE || status == HF_ERR_LIMIT;
    bool is_going = status == HF_ERR_EXISTS && strstr(call->call.message, "being deleted") != NULL;
    if (is_lost || is_going) { /* the same once more */
        sim_wake_in(world, &all->actor, 20 * SIM_MS + sim_upto(world, world->knobs.think_ns_max));
        return;
    }
    sim_batch *batch = &all->items[call->log < SIM_BATCHES_MAX ? call->log : 0];
    switch ((action)call->epoch) {
    case DO_START_RUN:
        all->runs[call->log].is_acked = status == HF_OK;
        break;
    case DO_START_BATCH:
        batch->is_acked = status == HF_OK || status == HF_ERR_EXISTS;
        if (!batch->is_acked && batch->kind != SIM_BATCH_ATTRIBUTE) {
            sim_fail(world, "the batch %s cannot be started: %s", batch->id, call->call.message);
        }
        break;
    case DO_STOP:
        if (status == HF_OK && !batch->is_stopped) {
            batch->is_stopped = true;
            batch->over = batch->over != 0 ? batch->over : ++all->marks;
            batch->stopped_at = sim_now(world).wall;
        }
        break;
    case DO_SHOW:
        on_shown(world, batch, call);
        break;
    case DO_DELETE_NAMESPACE:
        break; /* not found: it was deleted by the call before */
    case DO_REGISTER:
        all->is_gone = true;
        break;
    case DO_TERMINATE:
        all->runs[call->log].is_ended = true;
        break;
    case DO_NOTHING:
    case DO_LIST:
    case DO_ADD:
    case DO_REMOVE:
    case DO_SCHEDULE:
    case DO_FAIL:
    case DO_PAUSE:
    case DO_LOOK:
        break;
    }
    all->what = call->epoch == DO_DELETE_NAMESPACE ? DO_REGISTER : (int)after_work(world, call);
    if (call->epoch == DO_ADD && all->adds_for_batch) {
        all->adds_for_batch = false;
        all->what = DO_START_BATCH;
    } else if (call->epoch == DO_START_BATCH && batch->is_acked && !world->is_healed) {
        bool is_attribute = batch->kind == SIM_BATCH_ATTRIBUTE;
        all->what = is_attribute && sim_chance(world, 700) ? DO_REMOVE : sim_chance(world, 300) ? DO_STOP : DO_NOTHING;
        if (all->what == DO_NOTHING && sim_work_is_of(batch) && sim_chance(world, 700)) {
            all->teases =
                next_pause(world) ? 5 : 0; /* it should act on it once, before one of these pauses or after all */
        }
    }
    int dies = batch->kind == SIM_BATCH_OPTIONS ? 850 : sim_work_is_of(batch) ? 800 : 0;
    if (call->epoch == DO_START_BATCH && batch->is_acked && !world->is_healed && dies > 0 &&
        sim_chance(
            world,
            dies)) { /* the process dies while its messages are on their way, if we are lucky: they are sent again */
        sim_wake_in(world, &world->fate,
                    sim_upto(world, 2 * (world->knobs.commit_ns_max + world->knobs.read_ns_max) +
                                        (all->teases > 0 ? 30 : 2) * SIM_MS));
    }
    if (all->teases > 0 && all->what == DO_NOTHING) {
        pause_again(world);
    }
    if (all->what == DO_STOP || all->teases > 0) { /* while its messages are on their way, if we are lucky */
        sim_wake_in(world, &all->actor, sim_upto(world, 10 * SIM_MS));
        return;
    }
    sim_wake_in(world, &all->actor, 5 * SIM_MS + sim_upto(world, world->knobs.think_ns_max / 4));
}

/* ---- What next ---------------------------------------------------------------------------------------------------------- */

static void next_run(sim_world *world)
{
    sim_batches *all = &world->batches;
    sim_crowd_run *run = &all->runs[all->run_count];
    run->space = all->run_count < 2       ? CROWD
                 : sim_chance(world, 600) ? CROWD
                 : sim_chance(world, 500) ? BYSTANDERS
                                          : DOOMED;
    run->space = run->space == DOOMED && all->is_doomed ? BYSTANDERS : run->space;
    run->is_eager = all->has_work && run->space != DOOMED && sim_chance(world, 700);
    (void)snprintf(run->name, sizeof run->name, "crowd-%zu", all->run_count);
    all->what = DO_START_RUN;
    all->index = all->run_count++;
}

static void next_batch(sim_world *world)
{
    sim_batches *all = &world->batches;
    sim_batch *batch = &all->items[all->count];
    uint64_t chance = all->has_options ? hf_rng_below(&world->rng, 20) : 4 + hf_rng_below(&world->rng, 12);
    batch->kind = chance < 8    ? SIM_BATCH_SIGNAL
                  : chance < 12 ? SIM_BATCH_OPTIONS
                  : chance < 13 ? SIM_BATCH_CANCEL
                  : chance < 14 ? SIM_BATCH_RESET
                  : chance < 17 ? SIM_BATCH_ATTRIBUTE
                  : chance < 19 ? SIM_BATCH_TERMINATE
                                : SIM_BATCH_DELETE;
    if (batch->kind == SIM_BATCH_OPTIONS && all->has_options) {
        batch->kind = SIM_BATCH_SIGNAL; /* one per world: its events do not tell whose they are */
    }
    if (all->has_work && sim_chance(world, 750)) {
        sim_work_choose(world, batch);
    }
    all->has_options = all->has_options || batch->kind == SIM_BATCH_OPTIONS;
    all->has_resets = all->has_resets || batch->kind == SIM_BATCH_RESET; /* which take signals along */
    all->has_ends = all->has_ends || batch->kind == SIM_BATCH_TERMINATE || batch->kind == SIM_BATCH_DELETE ||
                    batch->kind == SIM_BATCH_RESET;
    batch->is_list = batch->kind != SIM_BATCH_ATTRIBUTE && sim_chance(world, 400);
    batch->rate = batch->kind == SIM_BATCH_ATTRIBUTE || sim_chance(world, 500) ? 1 + (int)sim_upto(world, 3) : 0;
    (void)snprintf(batch->id, sizeof batch->id, "b%zu", all->count);
    sim_trace(world, "batch %s: %s%s, rate %d", batch->id, kind_name(batch->kind), batch->is_list ? " by list" : "",
              batch->rate);
    all->adds_for_batch = batch->kind == SIM_BATCH_ATTRIBUTE;
    all->what = all->adds_for_batch ? DO_ADD : DO_START_BATCH;
    all->index = all->count++;
}

/* A batch that was acknowledged and is not known to be over; where they are forgotten soon, to be forgotten. */
static bool find_open(const sim_world *world, size_t *ret_index)
{
    const sim_batches *all = &world->batches;
    bool waits = world->is_healed && world->knobs.core.operation_kept > 0;
    for (size_t i = 0; i < all->count; i++) {
        int32_t last = waits ? STATE_FORGOTTEN : HF_BATCH_OPERATION_STATE_COMPLETED;
        if (all->items[i].is_acked && all->items[i].state < last) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static bool find_unended(const sim_batches *all, size_t *ret_index)
{
    for (size_t i = 0; i < all->run_count; i++) {
        if (!all->runs[i].is_ended) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static void choose(sim_world *world)
{
    sim_batches *all = &world->batches;
    size_t open = 0;
    bool has_open = find_open(world, &open);
    uint64_t chance = hf_rng_below(&world->rng, 100);
    all->what = DO_NOTHING;
    all->index = open;
    if (world->is_healed) {
        all->what = has_open                                   ? DO_SHOW
                    : sim_work_find_unseen(world, &all->index) ? DO_LOOK
                    : find_unended(all, &all->index)           ? DO_TERMINATE
                                                               : DO_NOTHING;
    } else if (all->run_count < 3 || (all->run_count < SIM_CROWD_MAX && chance < 35)) {
        next_run(world);
    } else if (has_open && chance < 55) {
        all->what = chance < 44 ? DO_STOP : DO_SHOW;
    } else if (chance < 58) {
        all->what = DO_LIST;
    } else if (chance < 62 && !all->is_doomed) {
        all->what = DO_DELETE_NAMESPACE;
    } else if (chance < 68) {
        all->what = chance < 65 ? DO_ADD : DO_REMOVE;
    } else if (chance < 76 && sim_work_find_unseen(world, &all->index)) {
        all->what = DO_LOOK;
    } else if (chance < 86 && next_pause(world)) {
        return;
    } else if (all->count < SIM_BATCHES_MAX) {
        next_batch(world);
    }
}

static void wake(sim_world *world, sim_actor *actor)
{
    sim_batches *all = &world->batches;
    if (all->is_waiting) {
        return;
    }
    if (all->what == DO_NOTHING) {
        choose(world);
    }
    if (all->what != DO_NOTHING) {
        send(world);
    } else if (!world->is_healed || sim_batches_are_busy(world)) {
        sim_wake_in(world, actor, 50 * SIM_MS + sim_upto(world, world->knobs.think_ns_max));
    }
}

void sim_batches_init(sim_world *world)
{
    sim_batches *all = &world->batches;
    all->is_on = world->knobs.has_batches;
    if (all->is_on) {
        all->has_work = sim_chance(world, 500);
        all->actor.wake = wake;
        sim_wake_in(world, &all->actor, sim_upto(world, 200 * SIM_MS));
    }
}

bool sim_batches_are_busy(const sim_world *world)
{
    const sim_batches *all = &world->batches;
    size_t open = 0;
    return all->is_on &&
           (all->is_waiting || all->what != DO_NOTHING || find_open(world, &open) || find_unended(all, &open));
}

/* ---- The end ----------------------------------------------------------------------------------------------------------- */

/* What a history tells of the batches. */
typedef struct seen {
    int signals[SIM_BATCHES_MAX];
    int options;
    bool has_signals; /* of any batch */
} seen;

static void see(sim_world *world, const hf_run *run, hf_str history, seen *ret_seen)
{
    const sim_batches *all = &world->batches;
    hf_str bytes = {0};
    hf_arena arena;
    hf_arena_init(&arena, world->memory);
    while (hf_history_next(&history, &bytes)) {
        hf_op op;
        hf_op_init(&op);
        hf_pb_history_event event;
        if (hf_pb_decode(&op, &hf_pb_history_event_type, bytes, &arena, &event) != HF_OK) {
            break;
        }
        ret_seen->options += event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED;
        for (size_t i = 0; event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED && i < all->count; i++) {
            const sim_batch *batch = &all->items[i];
            if (!hf_str_equal(event.workflow_execution_signaled_event_attributes->signal_name, hf_str_of(batch->id))) {
                continue;
            }
            ret_seen->signals[i]++;
            ret_seen->has_signals = true;
            int64_t at = hf_pb_timestamp_time(event.event_time).ns;
            if (batch->is_stopped && at > batch->stopped_at && !world->knobs.has_clock_steps && !all->has_resets) {
                sim_fail(world, "sim-Y3: run %.*s was signaled by batch %s after its stop",
                         HF_STR_ARGS(hf_owned_str(&run->workflow_id)), batch->id);
            }
        }
    }
    hf_arena_deinit(&arena);
}

/* Whether a run may refuse what a batch does. */
static bool may_refuse(const sim_world *world)
{
    const hf_core_limits *limits = &world->knobs.core.limits;
    return limits->signals != 0 || limits->history_count != 0 || limits->history_len != 0;
}

static void judge_run(sim_world *world, hf_look *look, const hf_run *run, hf_buf *history)
{
    const sim_batches *all = &world->batches;
    hf_op op;
    hf_op_init(&op);
    int space = -1;
    for (int i = 0; i < (int)HF_COUNT_OF(SPACES); i++) {
        space = hf_str_equal(hf_owned_str(&run->namespace), hf_str_of(SPACES[i])) ? i : space;
    }
    if (space == DOOMED && all->is_gone) {
        sim_fail(world, "sim-Y5: run %lld is left of a namespace that was deleted", (long long)run->number);
    }
    history->len = 0;
    if (space < 0 || run->kind != HF_KIND_WORKFLOW || hf_look_history(&op, look, run, history) != HF_OK) {
        return;
    }
    seen saw = {0};
    see(world, run, hf_str_of_len(history->data, history->len), &saw);
    if (saw.has_signals && space != CROWD) {
        sim_fail(world, "sim-Y2: a batch has acted on a run in %s", SPACES[space]);
    }
    bool is_again = false; /* of the only one that changes options */
    for (size_t i = 0; i < all->count; i++) {
        is_again = is_again || (all->items[i].is_again && all->items[i].kind == SIM_BATCH_OPTIONS);
    }
    if (saw.options > 1 && !all->has_resets && !is_again) {
        sim_fail(world, "sim-Y1: one batch has changed the options of run %lld %d times", (long long)run->number,
                 saw.options);
    }
    for (size_t i = 0; i < all->count; i++) {
        const sim_batch *batch = &all->items[i];
        unsigned index = 0;
        char name[SIM_NAME_LEN];
        (void)snprintf(name, sizeof name, "%.*s", HF_STR_ARGS(hf_owned_str(&run->workflow_id)));
        bool was_before = sscanf(name, "crowd-%u", &index) == 1 && index < 32 && (batch->before >> index & 1) != 0;
        bool is_sure = batch->kind == SIM_BATCH_SIGNAL && batch->state == HF_BATCH_OPERATION_STATE_COMPLETED &&
                       was_before && !all->has_ends && !may_refuse(world);
        if (saw.signals[i] > 1 && !batch->is_again) {
            sim_fail(world, "sim-Y1: batch %s has signaled %s %d times", batch->id, name, saw.signals[i]);
        } else if (is_sure && saw.signals[i] == 0) {
            sim_fail(world, "sim-Y1: batch %s has completed and not signaled %s", batch->id, name);
        }
    }
}

void sim_judge_batches(sim_world *world)
{
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    hf_buf history;
    if (!world->batches.is_on) {
        return;
    }
    hf_buf_init(&history, world->memory, SIZE_MAX / 4);
    hf_status status = hf_look_open(&op, world->memory, world->store, &look);
    int64_t number = 0;
    while (status == HF_OK && (status = hf_look_next(&op, look, number, &number)) == HF_OK && number != 0) {
        hf_run *run = NULL;
        hf_op bad;
        hf_op_init(&bad);
        if (hf_look_run(&bad, look, number, &run) == HF_OK) { /* others were judged elsewhere */
            judge_run(world, look, run, &history);
            hf_look_run_free(look, run);
        }
    }
    if (status != HF_OK) {
        sim_fail(world, "the runs of batches cannot be looked at: %s", op.message);
    }
    hf_look_close(look);
    hf_buf_deinit(&history);
}
