/* Runs that are not in memory: they are read from the store while the calls that need them wait in order (engine-E3). Workflow ids:
 * load_name.c. */
#include "engine/load.h"

#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/due.h"
#include "engine/fetch.h"
#include "engine/filter.h"
#include "engine/history_read.h"
#include "engine/input.h"
#include "engine/lister.h"
#include "engine/matching.h"
#include "engine/stream.h"
#include "engine/unwritten.h"
#include "ledger/rows.h"

#include <stdio.h>

/* ---- Reads ----------------------------------------------------------------------------------------------------------- */

hf_read *hf_read_new(hf_core *core, hf_read_kind kind, hf_table table)
{
    hf_read *read = hf_core_alloc(core, sizeof *read);
    if (read == NULL) {
        return NULL;
    }
    read->kind = kind;
    hf_arena_init(&read->arena,
                  core->options.store_memory); /* filled by the store's thread, which may not touch core->used */
    hf_op_init(&read->request.op);
    read->request.verb = HF_STORE_SCAN;
    read->request.table = table;
    read->request.arena = &read->arena;
    hf_list_push_back(&core->reads, &read->link);
    return read;
}

void hf_read_submit(hf_core *core, hf_read *read)
{
    hf_assert(core->submit != NULL && hf_node_is_linked(&read->link));
    read->request.state = read;
    core->submit(core->submit_state, &read->request);
}

void hf_read_free(hf_core *core, hf_read *read)
{
    hf_list_remove(&read->link);
    hf_arena_deinit(&read->arena);
    hf_owned_free(&core->runs_memory, &read->tail);
    hf_core_free_mem(core, read, sizeof *read);
}

/* ---- Runs ------------------------------------------------------------------------------------------------------------ */

static uint64_t number_hash(int64_t number)
{
    return hf_hash_mix(1, (uint64_t)number);
}

hf_run *hf_run_find(hf_core *core, int64_t number)
{
    uint64_t hash = number_hash(number);
    for (hf_map_node *node = hf_map_first(&core->runs, hash); node != NULL; node = hf_map_next(node)) {
        hf_run *run = &HF_CONTAINER(node, hf_slot, by_number)->run;
        if (run->number == number) {
            return run;
        }
    }
    return NULL;
}

void hf_slot_free(hf_core *core, hf_slot *slot)
{
    hf_match_remove(core, &slot->run.wft.task);
    for (size_t i = 0; i < slot->run.activities.count; i++) {
        hf_match_remove(core, &slot->run.activities.items[i]->task);
    }
    hf_assert(slot->suspects == 0); /* engine-U3: none of its tasks is a suspect any more */
    hf_heap_remove(&core->due, &slot->due);
    HF_VEC_FREE(&core->runs_memory, &slot->unwanted);
    hf_owned_free(&core->runs_memory, &slot->fetched);
    hf_unwritten_free(core, slot);
    hf_run_deinit(&core->runs_memory, &slot->run);
    hf_core_free_mem(core, slot, sizeof *slot);
}

hf_slot *hf_slot_new(hf_core *core, int64_t number)
{
    hf_slot *slot = hf_core_alloc(core, sizeof *slot);
    if (slot != NULL) {
        hf_list_init(&slot->waiting);
        hf_list_init(&slot->wanted_as);
        hf_run_init(&core->runs_memory, &slot->run, number);
    }
    return slot;
}

bool hf_run_insert(hf_core *core, hf_slot *slot)
{
    hf_assert(hf_run_find(core, slot->run.number) == NULL); /* a run is in memory once */
    if (hf_map_insert(&core->runs, &slot->by_number, number_hash(slot->run.number)) != HF_OK) {
        hf_slot_free(core, slot);
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return false;
    }
    hf_list_push_back(&core->runs_all, &slot->all_link);
    return true;
}

hf_run *hf_run_add(hf_core *core, int64_t number)
{
    hf_slot *slot = hf_slot_new(core, number);
    return slot != NULL && hf_run_insert(core, slot) ? &slot->run : NULL;
}

int64_t hf_run_number_next(hf_core *core)
{
    hf_assert(hf_run_is_number(core->run_next));
    int64_t number = core->run_next++;
    if (core->run_next % core->blocks.size == 0) {
        hf_blocks_wake(core); /* another range is full */
    }
    return number;
}

hf_run *hf_run_create(hf_core *core)
{
    return hf_run_add(core, hf_run_number_next(core));
}

hf_run *hf_run_load(hf_core *core, int64_t number)
{
    hf_run *run = hf_run_find(core, number);
    if (run != NULL) {
        return run;
    }
    run = hf_run_add(core, number);
    hf_read *read = run != NULL ? hf_read_new(core, HF_READ_RUN, HF_TABLE_RUN) : NULL;
    if (read == NULL) {
        return NULL;
    }
    HF_SLOT(run)->loading = true;
    read->run = run;
    read->request.verb = HF_STORE_GET;
    read->request.key = (hf_key){.a = number};
    hf_read_submit(core, read);
    return run;
}

/* Forgets a run that does not exist, or that cannot be used. */
void hf_run_remove(hf_core *core, hf_run *run)
{
    hf_assert(hf_list_is_empty(&HF_SLOT(run)->waiting) && hf_list_is_empty(&HF_SLOT(run)->wanted_as));
    hf_assert(HF_SLOT(run)->resets == 0 && HF_SLOT(run)->deletion == NULL &&
              HF_SLOT(run)->operation == NULL); /* engine-E4: nothing holds it */
    hf_map_remove(&core->runs, &HF_SLOT(run)->by_number);
    hf_list_remove(&HF_SLOT(run)->all_link);
    hf_heap_remove(&core->due, &HF_SLOT(run)->due);
    hf_core_use(core, run);
    hf_node *const links[] = {&HF_SLOT(run)->dirty_link, &HF_SLOT(run)->batch_link};
    hf_lists_pass(core, links[0]);
    for (size_t i = 0; i < HF_COUNT_OF(links); i++) {
        if (hf_node_is_linked(links[i])) {
            hf_list_remove(links[i]);
        }
    }
    hf_name *name = HF_SLOT(run)->name;
    if (name != NULL) {
        name->run = NULL;
    }
    hf_slot_free(core, HF_SLOT(run));
    if (name != NULL) {
        hf_name_drop(core, name);
    }
}

static void fail_waiting(hf_core *core, hf_list *waiting, hf_status status, const char *why)
{
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(waiting)) != NULL) {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        if (status == HF_ERR_NOT_FOUND && call->led_to != 0) {
            hf_read_stream_end(core, call);
        } else {
            if (status == HF_ERR_NOT_FOUND) {
                hf_call_say_no_run(core, call);
            }
            hf_call_fail(core, call, status, "%s", why);
        }
    }
}

static void tell_names(hf_core *core, hf_run *run)
{
    hf_node *node = NULL;
    while (core->status == HF_OK && (node = hf_list_pop_front(&HF_SLOT(run)->wanted_as)) != NULL) {
        hf_name *name = HF_CONTAINER(node, hf_name, want_link);
        hf_name_check(core, name, run);
        hf_name_drop(core, name);
    }
}

/* A run was loaded: the calls that waited for it go on, in order. */
static void run_is_here(hf_core *core, hf_run *run)
{
    hf_assert(HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    HF_SLOT(run)->loading = false;
    HF_SLOT(run)->is_row_open = hf_run_is_open(run);
    hf_deletion_resume(core, run);
    hf_core_unuse(core, run);
    hf_match_run_loaded(core, run);
    for (size_t i = 0; i < HF_SLOT(run)->unwanted.count; i++) {
        hf_run_take_back(core, run, &HF_SLOT(run)->unwanted.items[i]);
    }
    HF_SLOT(run)->unwanted.count = 0;
    tell_names(core, run);
    hf_node *node = NULL;
    while (core->status == HF_OK && HF_SLOT(run)->fetch_id == 0 &&
           (node = hf_list_pop_front(&HF_SLOT(run)->waiting)) != NULL) {
        hf_input_run(core, HF_CONTAINER(node, hf_call, link), run);
    }
}

/* A damaged record stops this run, and nothing else (D4). core->op says why. */
static void run_is_bad(hf_core *core, hf_run *run)
{
    HF_PROBE(core, HF_PROBE_BAD_RECORD);
    HF_SLOT(run)->bad = true;
    HF_SLOT(run)->loading = false;
    hf_heap_remove(&core->due, &HF_SLOT(run)->due);
    char why[HF_MESSAGE_LEN_MAX];
    (void)snprintf(why, sizeof why, "%s", core->op.message);
    hf_core_unuse(core, run);
    hf_node *node = NULL;
    while (core->status == HF_OK && (node = hf_list_pop_front(&HF_SLOT(run)->waiting)) != NULL) {
        hf_call *call = HF_CONTAINER(node, hf_call, link);
        if (call->method == HF_METHOD_DELETE_WORKFLOW_EXECUTION && !hf_deletion_asks(call)) {
            hf_input_run(core, call, run); /* the only call that a damaged run takes */
        } else {
            hf_call_fail(core, call, HF_ERR_STORE, "%s", why);
        }
    }
    tell_names(core, run);
}

/* All of its rows that are needed are here, or cannot be used. */
static void run_was_read(hf_core *core, hf_run *run, hf_status status)
{
    if (status == HF_OK) {
        hf_due_at(core, run, hf_run_next_due(run));
        run_is_here(core, run);
    } else if (core->status == HF_OK) {
        run_is_bad(core, run);
    }
}

static void read_first(hf_core *core, hf_run *run)
{
    hf_read *read = hf_read_new(core, HF_READ_FIRST, HF_TABLE_HISTORY);
    if (read != NULL) {
        read->run = run;
        read->request.verb = HF_STORE_GET;
        read->request.key = (hf_key){.a = run->number, .b = 1};
        hf_read_submit(core, read);
    }
}

static void read_parts(hf_core *core, hf_run *run, hf_str value)
{
    hf_read *read = hf_read_new(core, HF_READ_PARTS, HF_TABLE_HISTORY);
    if (read != NULL) {
        HF_PROBE(core, HF_PROBE_PARTS_READ);
        read->run = run;
        hf_owned_set(&core->runs_memory, &read->tail, value);
        hf_parts_range(run->number, &read->request.key, &read->request.key_end);
        hf_read_submit(core, read);
    }
}

/* The state of the run was read. */
static void state_read(hf_core *core, hf_run *run, hf_status status)
{
    if (status == HF_OK && run->is_unlearned) {
        read_first(core, run);
        return;
    }
    run_was_read(core, run, status);
}

static void parts_read(hf_core *core, const hf_read *read)
{
    hf_assert(HF_SLOT(read->run)->loading); /* engine-E4 */
    hf_part_rows parts = {0};
    bool wants_parts = false;
    hf_status status = hf_parts_open(&core->op, read->request.rows, read->request.row_count, &core->scratch, &parts);
    if (status == HF_OK) {
        status =
            hf_run_row_read(&core->op, &core->runs_memory, read->run, hf_owned_str(&read->tail), &parts, &wants_parts);
    }
    state_read(core, read->run, status);
}

static void run_read(hf_core *core, hf_read *read)
{
    hf_assert(HF_SLOT(read->run)->loading && read->run->event_count == 0);
    hf_run *run = read->run;
    if (!read->request.found && !hf_list_is_empty(&HF_SLOT(run)->wanted_as)) {
        (void)hf_fail(&core->op, HF_ERR_INVALID, "run %lld has no row", (long long)run->number);
        run_is_bad(core, run);
        return;
    }
    if (!read->request.found) {
        hf_list waiting;
        hf_list_init(&waiting);
        hf_node *node = NULL;
        while ((node = hf_list_pop_front(&HF_SLOT(run)->waiting)) != NULL) {
            hf_list_push_back(&waiting, node);
        }
        hf_run_remove(core, run);
        fail_waiting(core, &waiting, HF_ERR_NOT_FOUND, "there is no such run");
        return;
    }
    bool wants_parts = false;
    hf_status status = hf_run_row_read(&core->op, &core->runs_memory, run, read->request.value, NULL, &wants_parts);
    if (status == HF_OK && wants_parts) {
        read_parts(core, run, read->request.value);
        return;
    }
    state_read(core, run, status);
}

/* The first event of a run of an earlier version is here. */
static void first_read(hf_core *core, const hf_read *read)
{
    hf_run *run = read->run;
    hf_row row = {read->request.key, read->request.value};
    hf_assert(HF_SLOT(run)->loading && run->is_unlearned);
    hf_status status = read->request.found ? hf_run_row_learn(&core->op, &core->runs_memory, run, &row)
                                           : hf_fail(&core->op, HF_ERR_INVALID, "run %lld: its first event is missing",
                                                     (long long)run->number);
    run_was_read(core, run, status);
}

/* ---- Answers of the store --------------------------------------------------------------------------------------------- */

/* The store cannot read its own pages. If it is known which run or calls need them, only those fail (D4). False: it is not known. */
static bool is_of_one(hf_core *core, hf_read *read)
{
    (void)hf_fail(&core->op, HF_ERR_INVALID, "%s", read->request.op.message);
    switch (read->kind) {
    case HF_READ_RUN: {
        hf_queue *queue = HF_SLOT(read->run)->wanted_by;
        HF_SLOT(read->run)->wanted_by = NULL;
        run_is_bad(core, read->run);
        if (queue != NULL) {
            hf_queue_mark(core, queue);
        }
        return true;
    }
    case HF_READ_FIRST:
    case HF_READ_PARTS:
        run_is_bad(core, read->run);
        return true;
    case HF_READ_NAME:
        HF_PROBE(core, HF_PROBE_BAD_RECORD);
        read->name->loading = false;
        fail_waiting(core, &read->name->waiting, HF_ERR_STORE, read->request.op.message);
        hf_name_drop(core, read->name);
        return true;
    case HF_READ_BACKLOG:
    case HF_READ_STREAM:
    case HF_READ_QUEUES:
    case HF_READ_HISTORY: /* the call also waits for a commit: it is in that batch's list already */
        hf_history_failed(core, read->call, read->request.op.message);
        return true;
    case HF_READ_EVENT:
        hf_fetch_failed(core, read);
        return true;
    case HF_READ_DELETION:
        hf_deletion_failed(core, read->deletion, read->request.op.message);
        return true;
    case HF_READ_RESET:
        hf_reset_failed(core, read->reset, read->request.op.message);
        return true;
    case HF_READ_LIST:
        hf_list_failed(core, read->lister, read->request.op.message);
        return true;
    case HF_READ_HOUSE:
        hf_house_failed(core);
        return true;
    case HF_READ_TASKS:
    case HF_READ_DUE:
    case HF_READ_FILTER:
        break;
    }
    return false;
}

void hf_load_done(hf_core *core, hf_read *read)
{
    hf_assert(hf_node_is_linked(&read->link));
    if (read->request.status == HF_ERR_INVALID && is_of_one(core, read)) {
        return;
    }
    if (read->request.status != HF_OK) {
        hf_core_break(core, read->request.status, "%s", read->request.op.message);
        return;
    }
    switch (read->kind) {
    case HF_READ_NAME:
        hf_name_read(core, read);
        return;
    case HF_READ_RUN: {
        hf_queue *queue = HF_SLOT(read->run)->wanted_by;
        HF_SLOT(read->run)->wanted_by = NULL;
        run_read(core, read);
        if (queue != NULL) {
            hf_queue_mark(core, queue); /* the run may not have had the task any more */
        }
        return;
    }
    case HF_READ_FIRST:
        first_read(core, read);
        return;
    case HF_READ_PARTS:
        parts_read(core, read);
        return;
    case HF_READ_HISTORY:
        hf_history_rows_read(core, read);
        return;
    case HF_READ_BACKLOG:
        hf_backlog_rows_read(core, read);
        return;
    case HF_READ_EVENT:
        hf_fetch_done(core, read);
        return;
    case HF_READ_TASKS:
        hf_match_tasks_read(core, read);
        return;
    case HF_READ_DUE:
        hf_due_rows_read(core, read);
        return;
    case HF_READ_FILTER:
        hf_filter_rows_read(core, read);
        return;
    case HF_READ_DELETION:
        hf_deletion_rows_read(core, read->deletion, read);
        return;
    case HF_READ_RESET:
        hf_reset_rows_read(core, read->reset, read);
        return;
    case HF_READ_HOUSE:
        hf_house_rows_read(core, read);
        return;
    case HF_READ_LIST:
        hf_list_rows_read(core, read->lister, read);
        return;
    case HF_READ_QUEUES:
        hf_queues_read(core, read);
        return;
    case HF_READ_STREAM:
        hf_read_stream_rows(core, read);
        return;
    }
}
