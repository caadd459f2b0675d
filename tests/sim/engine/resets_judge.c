/* What must be true of runs that were reset, at the end:
 *
 * sim-Z1  a request is carried out once, and its run is there (also resets.c)
 * sim-Z2  an id leads to its newest run (resets.c), and no two runs of it are open
 * sim-Z3  a run that was made by a reset begins with the bytes of its base
 * sim-Z4  signals, updates and options behind that point, of the base and of the runs that continued it, follow at once, in order and once
 *     each; unless the request left them out. Then come the options that the reset itself gives
 * sim-Z5  a run that was terminated by a reset has a newer one; no row of a run that was not made is left */
#include "sim/engine/resets.h"

#include "history/history.h"
#include "ledger/making.h"
#include "ledger/rows.h"

#include <stdlib.h>
#include <string.h>

typedef struct saga {
    int64_t number;
    hf_str run_id, workflow_id;
    hf_str *events; /* bytes, in the arena */
    hf_pb_history_event *decoded;
    size_t count;
    size_t forked; /* index of the event with which its own reset says so; 0 = it was not made by one */
} saga;

typedef struct verdict {
    sim_world *world;
    hf_arena arena;
    SIM_VEC(saga) sagas; /* by number */
} verdict;

/* ---- Reading ----------------------------------------------------------------------------------------------------------- */

static void find_fork(saga *it)
{
    for (size_t i = 0; i < it->count; i++) {
        const hf_pb_history_event *event = &it->decoded[i];
        if (event->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_FAILED &&
            hf_str_equal(event->workflow_task_failed_event_attributes->new_run_id, it->run_id)) {
            it->forked = i;
        }
    }
}

static void read_run(verdict *all, const hf_row *row)
{
    sim_world *world = all->world;
    hf_arena scratch;
    hf_arena_init(&scratch, world->memory);
    hf_run_memory memory = {.heap = world->memory, .scratch = &scratch};
    hf_run *run = hf_run_new(&memory, row->key.a);
    hf_buf history;
    hf_buf_init(&history, world->memory, SIZE_MAX / 4);
    hf_op op;
    hf_op_init(&op);
    hf_status status = hf_run_row_load(&op, world->store, &memory, run, row->value);
    bool is_ours = status == HF_OK && hf_str_equal(hf_owned_str(&run->namespace), HF_STR(SIM_RESETS_NAMESPACE));
    status = is_ours ? hf_history_read(&op, world->store, run, world->memory, &history) : status;
    if (status != HF_OK) {
        sim_fail(world, "run %lld cannot be read: %s", (long long)row->key.a, op.message);
    } else if (is_ours && hf_run_is_open(run)) {
        sim_fail(world, "run %.*s of %.*s is not over", HF_STR_ARGS(hf_owned_str(&run->run_id)),
                 HF_STR_ARGS(hf_owned_str(&run->workflow_id)));
    } else if (is_ours) {
        saga *it = SIM_PUSH(&all->sagas);
        *it = (saga){.number = run->number,
                     .run_id = hf_arena_copy(&all->arena, hf_owned_str(&run->run_id)),
                     .workflow_id = hf_arena_copy(&all->arena, hf_owned_str(&run->workflow_id))};
        hf_str rest = hf_arena_copy(&all->arena, hf_str_of_len(history.data, history.len));
        it->events = HF_ARENA_ARRAY(&all->arena, hf_str, (size_t)run->event_count);
        it->decoded = HF_ARENA_ARRAY(&all->arena, hf_pb_history_event, (size_t)run->event_count);
        while (rest.len > 0 && hf_history_next(&rest, &it->events[it->count])) {
            (void)hf_pb_decode(&op, &hf_pb_history_event_type, it->events[it->count], &all->arena,
                               &it->decoded[it->count]);
            it->count++;
        }
        find_fork(it);
        world->totals.events += it->count;
    }
    hf_buf_deinit(&history);
    hf_run_free(&memory, run);
    hf_arena_deinit(&scratch);
}

static const saga *find(const verdict *all, hf_str run_id)
{
    for (size_t i = 0; i < all->sagas.count; i++) {
        if (hf_str_equal(all->sagas.items[i].run_id, run_id)) {
            return &all->sagas.items[i];
        }
    }
    return NULL;
}

/* ---- One run ----------------------------------------------------------------------------------------------------------- */

/* Signals, updates and options, each as a text. */
typedef struct tokens {
    char items[200][SIM_NAME_LEN + 2];
    size_t count;
} tokens;

static void add_token(tokens *to, char kind, hf_str id)
{
    for (size_t i = 0; i < to->count && kind == 'u'; i++) { /* of the same id only the first counts */
        if (to->items[i][0] == 'u' && hf_str_equal(hf_str_of(to->items[i] + 1), id)) {
            return;
        }
    }
    if (to->count < HF_COUNT_OF(to->items)) {
        (void)snprintf(to->items[to->count++], sizeof to->items[0], "%c%.*s", kind, HF_STR_ARGS(id));
    }
}

static void add_priority(tokens *to, int32_t priority)
{
    char text[SIM_NAME_LEN];
    (void)snprintf(text, sizeof text, "%d", (int)priority);
    add_token(to, 'o', hf_str_of(text));
}

static void add_event(tokens *to, const hf_pb_history_event *event, int exclude)
{
    const hf_pb_request *request = NULL;
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED) {
        add_priority(to, event->workflow_execution_options_updated_event_attributes->priority->priority_key);
    }
    if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED && exclude != 1) {
        add_token(to, 's', event->workflow_execution_signaled_event_attributes->request_id);
    } else if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED) {
        request = event->workflow_execution_update_admitted_event_attributes->request;
    } else if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED) {
        request = event->workflow_execution_update_accepted_event_attributes->accepted_request;
    }
    if (request != NULL && exclude != 2) {
        add_token(to, 'u', request->meta->update_id);
    }
}

/* Updates that the new run had before its point are not applied again. */
static bool had_update(const saga *it, const char *id)
{
    for (size_t i = 0; i < it->forked; i++) {
        tokens one = {.count = 0};
        add_event(&one, &it->decoded[i], 1);
        if (one.count > 0 && strcmp(one.items[0], id) == 0) {
            return true;
        }
    }
    return false;
}

/* What follows the point; false: a run of the chain was deleted. */
static bool expected(const verdict *all, const saga *it, const saga *base, size_t from, int exclude, tokens *to)
{
    while (base != NULL) {
        for (size_t i = from; i < base->count; i++) {
            add_event(to, &base->decoded[i], exclude);
        }
        const hf_pb_history_event *last = &base->decoded[base->count - 1];
        if (last->event_type != HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW) {
            break;
        }
        base = find(all, last->workflow_execution_continued_as_new_event_attributes->new_execution_run_id);
        from = 0;
        if (base == NULL) {
            return false;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < to->count; i++) {
        if (to->items[i][0] != 'u' || !had_update(it, to->items[i])) {
            memmove(to->items[kept++], to->items[i], sizeof to->items[0]);
        }
    }
    to->count = kept;
    return true;
}

static const sim_reset_op *op_of(const sim_world *world, hf_str run_id)
{
    for (size_t i = 0; i < world->resets.ops.count; i++) {
        const sim_reset_op *op = &world->resets.ops.items[i];
        if (op->kind == SIM_RESET_RESET && op->is_acked && hf_str_equal(hf_str_of(op->made), run_id)) {
            return op;
        }
    }
    return NULL;
}

static void judge_made(verdict *all, const saga *it)
{
    sim_world *world = all->world;
    const saga *base = find(all, it->decoded[it->forked].workflow_task_failed_event_attributes->base_run_id);
    if (base == NULL) {
        if (!world->resets.has_deletes) {
            sim_fail(world, "sim-Z3: the base of run %.*s is not there", HF_STR_ARGS(it->run_id));
        }
        return;
    }
    size_t copied = it->forked;
    const hf_pb_history_event *started = &it->decoded[copied - 1];
    if (started->event_type == HF_EVENT_TYPE_WORKFLOW_TASK_STARTED &&
        hf_str_equal(started->workflow_task_started_event_attributes->identity, HF_STR("history-service")) &&
        !(copied <= base->count && hf_str_equal(base->events[copied - 1], it->events[copied - 1]))) {
        copied--; /* the reset has started a task that was only scheduled */
    }
    for (size_t i = 0; i < copied; i++) {
        if (i >= base->count || !hf_str_equal(base->events[i], it->events[i])) {
            sim_fail(world, "sim-Z3: event %zu of run %.*s is not that of its base", i + 1, HF_STR_ARGS(it->run_id));
            return;
        }
    }
    tokens is = {.count = 0};
    tokens should = {.count = 0};
    for (size_t i = it->forked + 1; i < it->count && it->decoded[i].event_type != HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED;
         i++) {
        add_event(&is, &it->decoded[i], 0);
    }
    const sim_reset_op *op = op_of(world, it->run_id);
    if (op == NULL || !expected(all, it, base, copied, op->exclude, &should)) {
        return; /* nobody knows what it was to leave behind, or what there was */
    }
    if (sim_reset_priority(op) != 0) {
        add_priority(&should, sim_reset_priority(op));
    }
    bool is_same = is.count == should.count;
    for (size_t i = 0; i < is.count && is_same; i++) {
        is_same = strcmp(is.items[i], should.items[i]) == 0;
    }
    bool is_cut = it->decoded[it->count - 1].event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED &&
                  it->count == it->forked + 1 + is.count + 1; /* it was too long for a task */
    if (!is_same && !is_cut) {
        sim_fail(world, "sim-Z4: %zu signals, updates and options follow in run %.*s, %zu should (%s, %s)", is.count,
                 HF_STR_ARGS(it->run_id), should.count, is.count > 0 ? is.items[0] : "",
                 should.count > 0 ? should.items[0] : "");
    }
}

static void judge_replaced(verdict *all, size_t index)
{
    const saga *it = &all->sagas.items[index];
    const hf_pb_history_event *last = &it->decoded[it->count - 1];
    if (last->event_type != HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED ||
        !hf_str_equal(last->workflow_execution_terminated_event_attributes->identity, HF_RESETTER)) {
        return;
    }
    for (size_t i = index + 1; i < all->sagas.count; i++) {
        if (all->sagas.items[i].forked > 0 && hf_str_equal(all->sagas.items[i].workflow_id, it->workflow_id)) {
            return;
        }
    }
    if (!all->world->resets.has_deletes) {
        sim_fail(all->world, "sim-Z5: run %.*s was terminated by a reset, and no other took its place",
                 HF_STR_ARGS(it->run_id));
    }
}

/* ---- All of them ------------------------------------------------------------------------------------------------------- */

static void judge_ops(verdict *all)
{
    for (size_t i = 0; i < all->world->resets.ops.count; i++) {
        const sim_reset_op *op = &all->world->resets.ops.items[i];
        if (op->is_acked && (op->kind == SIM_RESET_RESET || op->kind == SIM_RESET_START) &&
            find(all, hf_str_of(op->made)) == NULL && !all->world->resets.has_deletes) {
            sim_fail(all->world, "sim-Z1: %s was acknowledged with run %s, which is not there", op->request_id,
                     op->made);
        }
    }
}

static void judge_unmade(verdict *all)
{
    hf_op op;
    hf_op_init(&op);
    hf_row *rows = NULL;
    size_t count = 0;
    if (hf_making_scan(&op, all->world->store, &all->arena, &rows, &count) != HF_OK || count > 0) {
        sim_fail(all->world, "sim-Z5: %zu runs are being made for ever", count);
    }
}

void sim_judge_resets(sim_world *world)
{
    verdict all = {.world = world};
    hf_arena_init(&all.arena, world->memory);
    hf_store_request scan = {
        .verb = HF_STORE_SCAN, .table = HF_TABLE_RUN, .key_end = hf_key_last(), .arena = &all.arena};
    hf_op_init(&scan.op);
    hf_store_execute(world->store, &scan);
    for (size_t i = 0; i < scan.row_count && !world->failed; i++) {
        read_run(&all, &scan.rows[i]);
    }
    for (size_t i = 0; i < all.sagas.count && !world->failed; i++) {
        if (all.sagas.items[i].forked > 0) {
            judge_made(&all, &all.sagas.items[i]);
        }
        judge_replaced(&all, i);
    }
    judge_ops(&all);
    judge_unmade(&all);
    world->totals.runs += all.sagas.count;
    free(all.sagas.items);
    hf_arena_deinit(&all.arena);
}
