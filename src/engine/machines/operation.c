/* An operation goes on: portion after portion (operations.h). What it does to a run: operation_act.c.
 *
 * An operation that deletes a namespace is one of the engine's own. It first deletes the other operations of the namespace, and then takes the
 * runs from the first page on, again and again, because those that it terminates may be followed by others. When a pass finds nothing, the
 * namespace leaves the registry and the operation the store. */
#include "engine/machines/operation_private.h"

#include "base/canary.h"
#include "engine/due.h"
#include "engine/emit.h"
#include "engine/lister.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/namespaces.h"
#include "ledger/run_id.h"

/* ---- Life -------------------------------------------------------------------------------------------------------------- */

static void operation_free(hf_core *core, hf_operation *it)
{
    hf_run *run = hf_run_find(core, it->run);
    hf_assert(it->pending == 0 || core->status != HF_OK); /* its messages use its memory */
    hf_list_remove(&it->link);
    if (run != NULL) {
        HF_SLOT(run)->operation = NULL;
        if (core->status == HF_OK) {
            hf_due_at(core, run, hf_run_next_due(run));
            hf_core_unuse(core, run);
        }
    }
    hf_arena_deinit(&it->arena);
    hf_core_free_mem(core, it, sizeof *it);
}

static void move(hf_operation *it, hf_list *to)
{
    hf_list_remove(&it->link);
    hf_list_push_back(to, &it->link);
}

static void answered(hf_call *call)
{
    hf_operation *it = (hf_operation *)(void *)call;
    it->is_asking = false;
    if (it->core->status == HF_OK) {
        move(it, &it->core->operations.next); /* a step of its own */
    }
}

/* All that the run says of itself, in memory of its own. False: engine-E2. */
static bool learn(hf_core *core, hf_operation *it, const hf_run *run)
{
    hf_arena *arena = &it->arena;
    hf_str start = hf_arena_copy(arena, hf_owned_str(&run->operation));
    hf_str progress = hf_arena_copy(arena, hf_owned_str(&run->progress));
    hf_status status = arena->status;
    if (status == HF_OK) {
        status = hf_pb_decode(&core->op, &hf_pb_operation_start_type, start, arena, &it->start);
    }
    if (status == HF_OK) {
        status =
            hf_pb_decode(&core->op, &hf_pb_start_batch_operation_request_type, it->start.request, arena, &it->request);
    }
    if (status == HF_OK) {
        status = hf_pb_decode(&core->op, &hf_pb_operation_progress_type, progress, arena, &it->progress);
    }
    if (status != HF_OK) {
        hf_core_break(core, status, "the operation of run %lld cannot be read", (long long)run->number);
    }
    return status == HF_OK;
}

static void operation_new(hf_core *core, hf_run *run)
{
    hf_operation *it = hf_core_alloc(core, sizeof *it);
    if (it == NULL) {
        return;
    }
    it->core = core;
    it->run = run->number;
    hf_arena_init(&it->arena, core->memory);
    hf_list_push_back(&core->operations.next, &it->link);
    HF_SLOT(run)->operation = it;
    hf_core_use(core, run);
    (void)learn(core, it, run);
}

/* ---- Changes ----------------------------------------------------------------------------------------------------------- */

static void record(hf_core *core, hf_run *run, hf_operation_state state, hf_pb_operation_progress *progress)
{
    progress->state = (int32_t)state;
    progress->time = core->now.wall;
    hf_assert(hf_operation_is_good(progress)); /* run-O1, run-O2 */
    hf_record(core, run, HF_CHANGE_OPERATION_MOVED, &hf_pb_operation_progress_type, progress);
}

static void end(hf_core *core, hf_run *run, hf_operation_state state, hf_pb_operation_progress *progress, hf_str why)
{
    hf_operation_entry *entry = hf_operation_of_run(core, run->number);
    int64_t gone = 0;
    progress->taken.count = 0;
    progress->cursor = HF_STR("");
    progress->close_time = core->now.wall;
    progress->why = why;
    progress->due = __builtin_add_overflow(core->now.wall, core->options.operation_kept, &gone) || gone == INT64_MAX
                        ? INT64_MAX - 1
                        : gone;
    record(core, run, state, progress);
    HF_SLOT(run)->spill_now = true;
    if (entry != NULL) {
        entry->state = (int32_t)state;
        entry->close_time = core->now.wall;
        entry->is_dirty = true;
        core->operations.is_dirty = true;
    }
    hf_assert(core->status != HF_OK || !hf_run_is_open(run));
}

/* Adds what is known of the runs that were taken. */
static void count(hf_operation *it)
{
    hf_pb_operation_progress *progress = &it->progress;
    hf_pb_operation_failure *failures =
        HF_ARENA_ARRAY(&it->arena, hf_pb_operation_failure, HF_OPERATION_FAILURES + progress->failures.count);
    size_t kept = 0;
    if (failures == NULL) {
        return;
    }
    for (; kept < progress->failures.count; kept++) {
        failures[kept] = progress->failures.items[kept];
    }
    for (size_t i = 0; i < progress->taken.count; i++) {
        progress->complete += it->outcomes[i] == OUTCOME_DONE || it->outcomes[i] == OUTCOME_GONE ? 1 : 0;
        progress->passed += it->outcomes[i] == OUTCOME_DONE || it->outcomes[i] == OUTCOME_GONE ? 1 : 0;
        progress->failed += it->outcomes[i] == OUTCOME_FAILED ? 1 : 0;
        if (it->outcomes[i] == OUTCOME_FAILED && kept < HF_OPERATION_FAILURES) {
            failures[kept++] = (hf_pb_operation_failure){.workflow_id = progress->taken.items[i].workflow_id,
                                                         .run_id = progress->taken.items[i].run_id,
                                                         .message = it->reasons[i]};
        }
    }
    progress->failures.items = failures;
    progress->failures.count = kept;
    if (HF_CANARY(HF_BUG_BATCH_COUNTS_TWICE)) {
        progress->complete += progress->complete > 0 ? 1 : 0;
    }
}

void hf_operation_stop(hf_core *core, hf_run *run, hf_str why)
{
    hf_assert(run->kind == HF_KIND_OPERATION && hf_run_is_open(run));
    hf_operation *it = HF_SLOT(run)->operation;
    bool is_new = it == NULL;
    if (is_new) {
        operation_new(core, run);
        it = HF_SLOT(run)->operation;
    }
    if (core->status != HF_OK) {
        return;
    }
    if (it->outcomes != NULL) {
        HF_PROBE(core, HF_PROBE_BATCH_STOPPED_ACTING);
        count(it);
    }
    if (it->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    hf_pb_operation_progress last = it->progress; /* messages on their way still look at what was taken */
    end(core, run, HF_OPERATION_STOPPED, &last, hf_arena_copy(&core->scratch, why));
    it->is_stopped = true; /* engine-O3 */
    if (is_new) {
        operation_free(core, it);
    } else if (it->stage == OPERATION_PAUSED) { /* nothing of it is on its way */
        move(it, &core->operations.next);
    }
}

/* ---- Questions --------------------------------------------------------------------------------------------------------- */

static void ask(hf_core *core, hf_operation *it, hf_method method, const void *request, hf_operation_stage then)
{
    if (it->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    it->stage = then;
    it->is_asking = true;
    hf_call_init(&it->call, method, request, &it->arena, answered);
    it->call.maker = HF_CALL_OF_OPERATION;
    move(it, &core->operations.idle);
    hf_list_push_back(&core->calls_all, &it->call.all);
    hf_list_call(core, &it->call);
}

static void ask_count(hf_core *core, hf_operation *it)
{
    it->asks.count = (hf_pb_count_workflow_executions_request){
        .namespace = it->request.namespace,
        .query = hf_operation_query(it),
    };
    ask(core, it, HF_METHOD_COUNT_WORKFLOW_EXECUTIONS, &it->asks.count, OPERATION_COUNTED);
}

static void ask_page(hf_core *core, hf_operation *it)
{
    it->asks.list = (hf_pb_scan_workflow_executions_request){
        .namespace = hf_operation_namespace(it),
        .query = hf_operation_query(it),
        .page_size = (int32_t)hf_operation_portion(it),
        .next_page_token = it->progress.cursor,
    };
    ask(core, it, HF_METHOD_SCAN_WORKFLOW_EXECUTIONS, &it->asks.list, OPERATION_LISTED);
}

/* It goes on after a moment. Its state stays as it is: after a crash it goes on at once. */
static void pause(hf_core *core, hf_operation *it, hf_run *run)
{
    it->stage = OPERATION_PAUSED;
    it->tries++;
    move(it, &core->operations.idle);
    hf_heap_remove(&core->due, &HF_SLOT(run)->due);
    hf_due_at(core, run, core->now.wall + HF_OPERATION_PAUSE);
}

/* The answer is not there. A list that is refused for a moment is asked for again; anything else ends the operation. */
static bool is_refused(hf_core *core, hf_operation *it, hf_run *run)
{
    hf_status status = it->call.status;
    if (status == HF_OK) {
        it->tries = 0;
        return false;
    }
    if (status == HF_ERR_LIMIT && !it->call.is_final) {
        pause(core, it, run);
        return true;
    }
    HF_PROBE(core, HF_PROBE_BATCH_FAILED);
    end(core, run, HF_OPERATION_FAILED, &it->progress,
        hf_arena_copy(&core->scratch, hf_str_of(it->call.message))); /* an attribute of its query was removed */
    operation_free(core, it);
    return true;
}

/* ---- Runs that are taken ------------------------------------------------------------------------------------------------ */

static void finish(hf_core *core, hf_operation *it, hf_run *run)
{
    HF_PROBE(core, HF_PROBE_BATCH_COMPLETED);
    end(core, run, HF_OPERATION_COMPLETED, &it->progress, HF_STR(""));
    if (it->start.purges && core->status == HF_OK) {
        HF_PROBE(core, HF_PROBE_NAMESPACE_DELETED);
        hf_namespace_remove(core, it->request.namespace);
        hf_deletion_mark(core, run);
    }
    operation_free(core, it);
}

/* Waits until its rate allows the next portion. */
static void wait(hf_core *core, hf_operation *it, hf_run *run, int64_t pause)
{
    it->progress.taken.count = 0;
    it->progress.due = core->now.wall + pause;
    record(core, run, HF_OPERATION_WAITING, &it->progress);
    operation_free(core, it);
}

/* ns that `count` runs take at its rate. */
static int64_t span_of(const hf_operation *it, size_t count)
{
    double rate = (double)it->request.max_operations_per_second;
    double ns = (double)count * 1e9 / (rate > 0 ? rate : HF_OPERATION_RATE);
    return ns < 1e15 ? (int64_t)ns : INT64_C(1000000000000000);
}

/* The runs in `taken` are acted on, or there are none. */
static void take(hf_core *core, hf_operation *it, hf_run *run)
{
    if (it->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    hf_pb_operation_progress *progress = &it->progress;
    if (progress->taken.count > 0) {
        HF_PROBE(core, HF_PROBE_BATCH_PORTION);
        it->tries = 0;
        record(core, run, HF_OPERATION_ACTING, progress); /* with the first of its effects, or before */
        if (core->status == HF_OK) {
            move(it, &core->operations.idle);
            hf_operation_send(core, it, run);
        }
        return;
    }
    if (!progress->is_last) { /* a page of runs that began later */
        ask_page(core, it);
        return;
    }
    if (it->start.purges && progress->passed > 0) {
        progress->passed = 0;
        progress->is_last = false;
        progress->cursor = HF_STR("");
        progress->index = 0;
        ask_page(core, it);
        return;
    }
    finish(core, it, run);
}

static void put_target(hf_pb_operation_progress *progress, hf_str workflow_id, hf_str run_id)
{
    progress->taken.items[progress->taken.count++] =
        (hf_pb_operation_target){.workflow_id = workflow_id, .run_id = run_id};
}

static bool make_room(hf_operation *it)
{
    it->progress.taken.items = HF_ARENA_ARRAY(&it->arena, hf_pb_operation_target, HF_OPERATION_PORTION);
    it->progress.taken.count = 0;
    return it->progress.taken.items != NULL;
}

static void take_page(hf_core *core, hf_operation *it, hf_run *run)
{
    const hf_pb_scan_workflow_executions_response *page = it->call.response;
    hf_pb_operation_progress *progress = &it->progress;
    if (make_room(it)) {
        hf_assert(page->executions.count <= HF_OPERATION_PORTION); /* engine-O1 */
        for (size_t i = 0; i < page->executions.count; i++) {
            const hf_pb_workflow_execution *execution = page->executions.items[i].execution;
            int64_t number = hf_run_id_number(core->mac_key, execution->run_id);
            if (it->start.purges && i == 0 && HF_CANARY(HF_BUG_NAMESPACE_LEFT_OPEN)) {
                continue;
            }
            if (it->start.purges || number < it->start.below) { /* not one that it has made itself, by a reset */
                put_target(progress, execution->workflow_id, execution->run_id);
            }
        }
        progress->cursor = HF_CANARY(HF_BUG_BATCH_CURSOR_FORGOTTEN) ? HF_STR("") : page->next_page_token;
        progress->is_last = page->next_page_token.len == 0;
    }
    take(core, it, run);
}

static void take_listed(hf_core *core, hf_operation *it, hf_run *run)
{
    const hf_pb_workflow_execution_list *all = &it->request.executions;
    hf_pb_operation_progress *progress = &it->progress;
    size_t most = hf_operation_portion(it);
    if (make_room(it)) {
        while (progress->taken.count < most && (size_t)progress->index < all->count) {
            const hf_pb_workflow_execution *execution = &all->items[progress->index++];
            put_target(progress, execution->workflow_id, execution->run_id);
        }
        progress->is_last = (size_t)progress->index == all->count;
    }
    take(core, it, run);
}

/* The other operations of a namespace that is deleted. False: there are none. */
static bool take_operations(hf_core *core, hf_operation *it, hf_run *run)
{
    if (!make_room(it)) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return true;
    }
    for (size_t i = 0; i < core->operations.all.count && it->progress.taken.count < HF_OPERATION_PORTION; i++) {
        const hf_operation_entry *entry = &core->operations.all.items[i];
        if (entry->run != it->run && hf_str_equal(hf_owned_str(&entry->namespace_), it->request.namespace)) {
            hf_str id = hf_operation_workflow_id(&it->arena, hf_owned_str(&entry->job_id));
            put_target(&it->progress, id, hf_arena_copy(&it->arena, hf_owned_str(&entry->run_id)));
        }
    }
    if (it->progress.taken.count == 0) {
        return false;
    }
    take(core, it, run);
    return true;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------------- */

static void begin(hf_core *core, hf_operation *it, hf_run *run)
{
    hf_pb_operation_progress *progress = &it->progress;
    if (run->operation_state == HF_OPERATION_ACTING && HF_CANARY(HF_BUG_BATCH_SKIPS_AFTER_CRASH)) {
        progress->complete += (int64_t)progress->taken.count;
        wait(core, it, run, 0);
    } else if (run->operation_state == HF_OPERATION_ACTING) {
        HF_PROBE(core, HF_PROBE_BATCH_RESUMED);
        move(it, &core->operations.idle);
        hf_operation_send(core, it, run);
    } else if (it->start.purges && take_operations(core, it, run)) {
        return;
    } else if (it->request.executions.count > 0) {
        progress->total = (int64_t)it->request.executions.count;
        progress->is_counted = true;
        take_listed(core, it, run);
    } else if (!progress->is_counted) {
        ask_count(core, it);
    } else {
        ask_page(core, it);
    }
}

static void counted(hf_core *core, hf_operation *it, hf_run *run)
{
    const hf_pb_count_workflow_executions_response *response = it->call.response;
    (void)run;
    it->progress.total = response->count;
    it->progress.is_counted = true;
    ask_page(core, it);
}

/* Whether some are to be tried again. */
static bool tries_again(hf_core *core, hf_operation *it, hf_run *run)
{
    bool is_last_try = it->tries + 1 >= HF_OPERATION_TRIES;
    size_t again = 0;
    for (size_t i = 0; i < it->progress.taken.count; i++) {
        if (it->outcomes[i] == OUTCOME_AGAIN && is_last_try) {
            it->outcomes[i] = OUTCOME_FAILED;
        }
        again += it->outcomes[i] == OUTCOME_AGAIN ? 1 : 0;
    }
    if (again > 0) {
        pause(core, it, run);
    }
    return again > 0;
}

/* Whether something was done to one of the runs. Else the next look may find the same ones: a damaged store lists runs that nobody finds. */
static bool has_done(const hf_operation *it)
{
    size_t i = 0;
    while (i < it->progress.taken.count && it->outcomes[i] != OUTCOME_DONE) {
        i++;
    }
    return i < it->progress.taken.count;
}

static void all_answered(hf_core *core, hf_operation *it, hf_run *run)
{
    size_t count_taken = it->progress.taken.count;
    int64_t failed = it->progress.failed;
    if (tries_again(core, it, run)) {
        return;
    }
    count(it);
    if (it->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    if (it->progress.is_last && !it->start.purges) {
        finish(core, it, run);
        return;
    }
    if (it->progress.is_last) { /* of a namespace: look once more */
        bool is_stuck = it->progress.passed == 0 && it->progress.failed > failed;
        it->progress.is_last = false;
        it->progress.cursor = HF_STR("");
        it->progress.passed = 0;
        wait(core, it, run, is_stuck ? 60 * HF_OPERATION_PAUSE : has_done(it) ? 0 : HF_OPERATION_PAUSE);
        return;
    }
    wait(core, it, run, span_of(it, count_taken));
}

static void step(hf_core *core, hf_operation *it)
{
    hf_run *run = hf_run_find(core, it->run);
    hf_assert(run != NULL && HF_SLOT(run)->operation == it && !it->is_asking && it->pending == 0);
    if (it->is_stopped) {
        operation_free(core, it);
        return;
    }
    hf_assert(hf_run_is_open(run));
    switch (it->stage) {
    case OPERATION_BEGIN:
        begin(core, it, run);
        return;
    case OPERATION_COUNTED:
        if (!is_refused(core, it, run)) {
            counted(core, it, run);
        }
        return;
    case OPERATION_LISTED:
        if (!is_refused(core, it, run)) {
            take_page(core, it, run);
        }
        return;
    case OPERATION_ANSWERED:
        all_answered(core, it, run);
        return;
    case OPERATION_PAUSED: /* a list, or messages */
        if (it->outcomes == NULL) {
            begin(core, it, run);
        } else {
            move(it, &core->operations.idle);
            hf_operation_send(core, it, run);
        }
        return;
    case OPERATION_SENT:
        break;
    }
    hf_assert(false); /* it waits in the other list */
}

void hf_operation_fire(hf_core *core, hf_run *run)
{
    hf_assert(run->kind == HF_KIND_OPERATION);
    hf_operation *it = HF_SLOT(run)->operation;
    if (run->operation_due > core->now.wall || run->deleting != HF_DELETING_NOT) {
        return;
    }
    if (it != NULL && it->stage == OPERATION_PAUSED) {
        move(it, &core->operations.next);
    }
    if (it != NULL) {
        return;
    }
    if (hf_run_is_open(run)) {
        operation_new(core, run);
        return;
    }
    HF_PROBE(core, HF_PROBE_BATCH_FORGOTTEN);
    hf_deletion_mark(core, run);
}

bool hf_operations_have_work(const hf_core *core)
{
    return !hf_list_is_empty(&core->operations.next);
}

void hf_operations_pump(hf_core *core)
{
    if (core->submit == NULL) {
        return; /* while the store is being opened */
    }
    hf_node *node = NULL;
    for (int i = 0;
         core->status == HF_OK && i < HF_OPERATIONS_STEP && (node = hf_list_first(&core->operations.next)) != NULL;
         i++) {
        hf_core_reset_scratch(core);
        step(core, HF_CONTAINER(node, hf_operation, link));
    }
}

void hf_operations_free(hf_core *core)
{
    hf_list *const lists[] = {&core->operations.next, &core->operations.idle};
    hf_node *node = NULL;
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        while ((node = hf_list_first(lists[i])) != NULL) {
            operation_free(core, HF_CONTAINER(node, hf_operation, link));
        }
    }
}
