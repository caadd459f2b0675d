/* The oracle while the world runs: it records all answers, and checks some promises at once.
 *
 * I3   ids are dense, and an event that was seen once never changes
 * I5   attempts rise by one, or begin anew if the activity was reset (operator.c)
 * I6   a task is handed out once, and again only if it was lost
 * I16  no task waits while a poller is free; ledger-W3: rows name the tasks that wait
 * And run-R3: the state of a run follows from its history; service-V2: an answer is given when its commit is durable. */
#include "engine/load.h"
#include "engine/matching.h"
#include "sim/engine/chains.h"
#include "sim/engine/operator.h"
#include "sim/engine/sim.h"

/* ---- What was seen ----------------------------------------------------------------------------------------------------- */

size_t sim_log_run(sim_world *world, hf_str run_id, hf_str workflow_id)
{
    for (size_t i = world->runs.count; i-- > 0;) {
        if (hf_str_equal(hf_str_of(world->runs.items[i].run_id), run_id)) {
            return i;
        }
    }
    sim_run_log *log = SIM_PUSH(&world->runs);
    (void)snprintf(log->run_id, sizeof log->run_id, "%.*s", HF_STR_ARGS(run_id));
    (void)snprintf(log->workflow_id, sizeof log->workflow_id, "%.*s", HF_STR_ARGS(workflow_id));
    log->may_be_gone = sim_is_gone_below(world, log);
    return world->runs.count - 1;
}

static int64_t id_of(hf_str event)
{
    hf_pb_raw field;
    return hf_pb_next(&event, &field) && field.number == 1 ? (int64_t)field.value : 0;
}

static void saw_event(sim_world *world, sim_run_log *log, int64_t id, hf_str bytes, bool keep)
{
    uint64_t hash = hf_hash_bytes(1, bytes.data, bytes.len) | 1;
    size_t index = (size_t)id - 1;
    if (index < log->count && log->events[index] != 0) {
        if (log->events[index] != hash) {
            sim_fail(world, "I3: event %lld of run %s has changed", (long long)id, log->run_id);
        }
        return;
    }
    if (!keep) {
        return;
    }
    if (log->is_final) {
        sim_fail(world, "I4: event %lld of run %s came after its end", (long long)id, log->run_id);
        return;
    }
    while (log->count <= index) {
        log->events = sim_grow(log->events, &log->capacity, log->count, sizeof *log->events);
        log->count++;
    }
    log->events[index] = hash;
}

void sim_saw_history(sim_world *world, size_t run, hf_str history, bool keep, int tail)
{
    int count = 0;
    hf_pb_raw field;
    hf_str rest = history;
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        count++;
    }
    int64_t last = 0;
    rest = history;
    for (int i = 0; i < count && hf_pb_next(&rest, &field); i++) {
        int64_t id = id_of(field.bytes);
        if (id <= 0 || (last != 0 && id != last + 1)) {
            sim_fail(world, "I3: event %lld of run %s follows event %lld", (long long)id, world->runs.items[run].run_id,
                     (long long)last);
            return;
        }
        last = id;
        if (i < count - tail) {
            saw_event(world, &world->runs.items[run], id, field.bytes, keep);
            if (keep && i == count - 1) {
                sim_chain_saw(world, run, field.bytes);
            }
        }
        world->hash = hf_hash_mix(world->hash, hf_hash_bytes(2, field.bytes.data, field.bytes.len));
    }
}

sim_delivery *sim_saw_task(sim_world *world, bool is_activity, size_t run, int64_t scheduled_id, int32_t attempt)
{
    if (is_activity) {
        sim_activity_started(world, run, scheduled_id, attempt);
    }
    sim_delivery *same = NULL;
    const sim_delivery *before = NULL;
    for (size_t i = 0; i < world->deliveries.count; i++) {
        sim_delivery *each = &world->deliveries.items[i];
        if (each->is_activity == is_activity && each->run == run && each->scheduled_id == scheduled_id &&
            !each->is_void) {
            same = each->attempt == attempt ? each : same;
            before = before == NULL || each->attempt > before->attempt ? each : before;
        }
    }
    if (is_activity && before != NULL &&
        (attempt < before->attempt || (attempt > before->attempt + 1 && before->opened == world->opened))) {
        sim_fail(world, "I5: attempt %d of an activity of run %s follows attempt %d", (int)attempt,
                 world->runs.items[run].run_id, (int)before->attempt);
    }
    if (same == NULL) {
        same = SIM_PUSH(&world->deliveries);
        *same = (sim_delivery){is_activity, run, scheduled_id, attempt, world->opened, 0, 1, false, false};
    }
    if (!is_activity && same->opened != world->opened) {
        same->allowed++; /* its holder may have died with the process */
    }
    same->opened = world->opened;
    if (++same->count > same->allowed) {
        sim_fail(world, "I6: %s %lld of run %s, attempt %d, was handed out %d times", is_activity ? "activity" : "task",
                 (long long)scheduled_id, world->runs.items[run].run_id, (int)attempt, same->count);
    }
    return same;
}

void sim_allow_task(sim_world *world, size_t run, int64_t started_id, int32_t attempt)
{
    for (size_t i = 0; i < world->deliveries.count; i++) {
        sim_delivery *each = &world->deliveries.items[i];
        if (!each->is_activity && each->run == run && each->scheduled_id == started_id && each->attempt == attempt) {
            each->allowed++;
        }
    }
}

void sim_saw_answer(sim_world *world, uint64_t answer, const sim_call *call)
{
    sim_answer *log = &world->answers.items[answer];
    sim_trace(world, "worker %d: %s of %.8s: %s %s", log->worker, hf_method_info_of(call->call.method)->name,
              world->runs.items[log->run].run_id, hf_status_name(call->call.status), call->call.message);
    if (sim_is_lost(call)) {
        log->maybe = true;
        return;
    }
    if (call->call.status == HF_OK) {
        /* A failure by id may end the next attempt, too. */
        if (log->outcome == SIM_ACKED && log->method != HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID) {
            sim_fail(world, "I7: an answer was accepted twice");
        }
        log->outcome = SIM_ACKED;
        if (call->call.method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED) {
            const hf_pb_respond_workflow_task_completed_response *response = call->call.response;
            log->is_dropped = response->reset_history_event_id != 0;
        } else if (call->call.method != HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED) {
            sim_activity_answered(world, log);
        }
    } else if (log->outcome != SIM_ACKED) {
        log->outcome = SIM_REFUSED;
        bool is_full = call->call.status == HF_ERR_LIMIT && world->knobs.core.limits.history_count > 0;
        if (call->call.status != HF_ERR_NOT_FOUND && call->call.status != HF_ERR_INVALID && !is_full &&
            !sim_is_stopped(world, call, hf_str_of(world->runs.items[log->run].workflow_id))) {
            sim_fail(world, "an answer was refused with %s: %s", hf_status_name(call->call.status), call->call.message);
        }
    }
}

static sim_delivery *find_activity(sim_world *world, size_t run, int64_t number, int32_t attempt)
{
    for (size_t i = world->deliveries.count; i-- > 0;) {
        sim_delivery *each = &world->deliveries.items[i];
        if (each->is_activity && !each->is_void && each->run == run && each->scheduled_id == number &&
            each->attempt == attempt) {
            return each;
        }
    }
    return NULL;
}

void sim_left_activity(sim_world *world, const sim_slot *slot)
{
    size_t run = sim_log_run(world, hf_str_of(slot->run_id), hf_str_of(slot->workflow_id));
    if (slot->round != sim_activity_round(world, run, slot->scheduled_id)) {
        return; /* its attempts have begun anew since, and may have the same numbers */
    }
    sim_delivery *delivery = find_activity(world, run, slot->scheduled_id, slot->attempt);
    if (delivery != NULL) {
        delivery->is_left = true;
    }
}

bool sim_was_left(sim_world *world, size_t run, int64_t number, int32_t attempt)
{
    const sim_delivery *delivery = find_activity(world, run, number, attempt);
    return delivery != NULL && delivery->is_left &&
           !sim_may_be_reset(world, run, number); /* a reset counts from 1 again */
}

/* ---- While it runs -------------------------------------------------------------------------------------------------------- */

static bool has_commit_pending(const sim_world *world)
{
    for (size_t i = world->requests_first; i < world->requests.count; i++) {
        if (world->requests.items[i].request->verb == HF_STORE_COMMIT && !world->requests.items[i].is_executed) {
            return true;
        }
    }
    return false;
}

void sim_check_runs(sim_world *world, bool all)
{
    hf_core *core = world->core;
    if (core == NULL || hf_core_status(core) != HF_OK ||
        (!all && (world->steps % 4 != 0 || has_commit_pending(world))) || world->is_told_wrong ||
        world->is_store_gone) {
        return;
    }
    hf_op op;
    hf_op_init(&op);
    hf_list *list = all ? &core->runs_all : &core->touched;
    HF_LIST_EACH(node, list)
    {
        hf_run *run = all ? &HF_CONTAINER(node, hf_slot, all_link)->run : &HF_CONTAINER(node, hf_slot, batch_link)->run;
        world->totals.checks++;
        if (hf_core_check_run(&op, core, world->store, run) != HF_OK) {
            sim_fail(world, "run-R3: %s", op.message);
            return;
        }
    }
}

/* Whether an activity before this one waits in the same queue. */
static bool has_older(const hf_run *run, size_t index)
{
    bool has = false;
    for (size_t i = 0; i < index; i++) {
        has = has || run->activities.items[i]->task.queue == run->activities.items[index]->task.queue;
    }
    return has;
}

/* One for each queue in which tasks of the run wait, one if an opening has to go on with it. */
static size_t rows_of(const hf_run *run)
{
    size_t count = run->wft.task.queue != NULL ? 1 : 0;
    bool is_held = hf_run_has_messages(run) || run->deleting != HF_DELETING_NOT ||
                   (count == 0 && run->wft.state == HF_WFT_STARTED && run->wft.incarnation != 0);
    for (size_t i = 0; i < run->activities.count; i++) {
        const hf_activity *activity = run->activities.items[i];
        bool waits = activity->task.queue != NULL;
        count += waits && !has_older(run, i) ? 1 : 0;
        is_held = is_held || (!waits && activity->state == HF_ACTIVITY_STARTED && activity->incarnation != 0);
    }
    return count + (is_held ? 1 : 0);
}

/* No poll waits in a queue whose rows name a task of a run that is not in memory. */
static void check_queue(sim_world *world, const hf_queue *queue)
{
    hf_arena arena;
    hf_arena_init(&arena, world->memory);
    hf_str text = hf_owned_str(&queue->text);
    hf_store_request scan = {.verb = HF_STORE_SCAN,
                             .table = HF_TABLE_TASK,
                             .key = {text, 0, 0},
                             .key_end = {text, INT64_MAX, 0},
                             .arena = &arena};
    hf_op_init(&scan.op);
    hf_store_execute(world->store, &scan);
    for (size_t i = 0; i < scan.row_count; i++) {
        hf_str body = {0};
        hf_pb_task_record record;
        hf_op op;
        hf_op_init(&op);
        if (hf_record_open(&op, HF_TABLE_TASK, &scan.rows[i].key, scan.rows[i].value, &body) != HF_OK ||
            hf_pb_decode(&op, &hf_pb_task_record_type, body, &arena, &record) != HF_OK) {
            sim_fail(world, "a task row cannot be read: %s", op.message);
        } else if (hf_run_find(world->core, record.run) == NULL && !sim_is_number_damaged(world, record.run)) {
            sim_fail(world, "I16: a task of run %lld waits in queue %.*s beside a free poller", (long long)record.run,
                     HF_STR_ARGS(text));
        }
    }
    hf_arena_deinit(&arena);
}

void sim_check_rest(sim_world *world)
{
    hf_core *core = world->core;
    if (core == NULL || hf_core_status(core) != HF_OK || world->is_told_wrong ||
        !hf_list_is_empty(&core->queues_marked) ||
        world->mono < world->portion_end) { /* a portion of inputs has not ended */
        return;
    }
    HF_LIST_EACH(node, &core->queues_all)
    {
        const hf_queue *queue = HF_CONTAINER(node, hf_queue, all_link);
        bool may_wait = core->alone.run != 0 || sim_is_rated(core, queue);
        if (queue->task_count > 0 && queue->poll_count > 0 && !may_wait) {
            sim_fail(world, "I16: a task waits in queue %.*s beside a free poller", HF_STR_ARGS(queue->text));
        }
    }
    sim_check_alone(world);
    bool at_rest = world->requests.count == world->requests_first && !core->committing &&
                   hf_list_is_empty(&core->touched) && !core->meta_dirty && world->answered == NULL;
    if (!at_rest || world->steps % 2 != 0) {
        return;
    }
    HF_LIST_EACH(node, &core->queues_all)
    {
        const hf_queue *queue = HF_CONTAINER(node, hf_queue, all_link);
        /* A clock that was set back may let the pause of a suspect begin again. */
        if (queue->poll_count > 0 && core->alone.run == 0 && !world->knobs.has_clock_steps &&
            !sim_is_rated(core, queue)) {
            check_queue(world, queue);
        }
    }
    HF_LIST_EACH(node, &core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (!HF_SLOT(run)->loading && !HF_SLOT(run)->bad && !hf_node_is_linked(&HF_SLOT(run)->dirty_link) &&
            HF_SLOT(run)->suspects == 0 && rows_of(run) != run->rows_written.count) {
            sim_fail(world, "ledger-W3: run %lld has %zu rows for %zu tasks", (long long)run->number,
                     run->rows_written.count, rows_of(run));
        }
    }
}
