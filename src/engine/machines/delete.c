/* Deletion: a run goes, with all of its rows.
 *
 *     marked --> searching --> found --> gone
 *                    |
 *                    +--> stuck (an older run of the id cannot be read: until the next opening)
 *
 * Marked: the run is closed (an open one was terminated in the same step), and HF_CHANGE_DELETING is part of its rows, which also get a
 * row under "h". From then on every call answers that the run is not there. An opening that finds such a run goes on from here.
 *
 * Searching begins when the mark is durable: by then all older runs of the workflow id have their rows and names. It goes through the
 * index of names from the newest run to the oldest. If there is a newer run with the same name, that one stays the current one, and nothing
 * is in the way. Otherwise older ones would become the current run: each loses its name (HF_CHANGE_UNNAMED), or, if all runs of
 * the id are to go, is marked as well. A run is looked at with a call of the core's own, which waits like any other until the run
 * is loaded; a run with another name and the same hash answers that it is not of this id.
 *
 * Found: the run goes with the next commit, once none of its messages is on its way and nobody reads its history any more. One
 * commit deletes its state, history, deadline, tasks, kept changes and name, and says so in the journal.
 *
 * engine-X1  While a run is marked, the name that leads to it leads to no other run: hf_name.run stays, and counts as none. A start
 *     takes its place at once.
 * engine-X2  A run goes only when no older run can become the current one of its id.
 * engine-X3  A run that goes has no reader, no message and no fetch under way. Reads that ask for it later are told later than the commit
 *     that deletes it.
 *
 * A run whose records are damaged cannot be marked. It is deleted if the caller names it by its run id, which only this store
 * can have made, and by the workflow id under which the index has it. Older runs lose their names first, as above. Then the tables of
 * deadlines and tasks are searched for its rows, because its state row may not tell them, and it goes in one commit, with which the call is
 * answered. Before that commit nothing has happened to it. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/batch.h"
#include "engine/emit.h"
#include "engine/input.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "ledger/kept.h"
#include "ledger/rows.h"

#define PAGE_ROWS 1024

typedef enum stage {
    STAGE_SEARCH,
    STAGE_NAME,  /* of a bad run: whether the index has it under this name */
    STAGE_DUE,   /* of a bad run: its deadline is looked for */
    STAGE_TASKS, /* of a bad run: its tasks are */
    STAGE_FOUND,
    STAGE_STUCK
} stage;

struct hf_deletion {
    hf_call call; /* to another run of the id; first */
    hf_node link; /* of one of hf_deletions' lists */
    hf_core *core;
    hf_arena arena; /* the request of `call`, and what was found of a bad run */
    hf_pb_workflow_execution execution;
    hf_pb_delete_workflow_execution_request request;
    int64_t run;
    int64_t hash;    /* of its name */
    uint64_t commit; /* that holds its mark; 0 = an earlier one */
    hf_deleting level;
    stage stage;
    bool is_bad;
    bool was_free;    /* nothing else held it in memory */
    bool has_name;    /* the index may have it */
    bool has_waited;  /* for its messages or readers */
    bool is_newer;    /* the run that `call` met has the same name, and is newer */
    int64_t meets;    /* the run that `call` goes to */
    bool in_table;    /* searching: the part of the index in memory has no more runs */
    int64_t below;    /* searching: runs from this number on were looked at */
    uint64_t deletes; /* hf_names.deletes when the table was asked */
    hf_key from;      /* of a bad run: where the walk over a table goes on */
    hf_call *caller;  /* is answered when the search is over, or with the commit of a bad run; NULL = nobody */
    struct {
        hf_key *items;
        size_t count;
    } due, tasks; /* rows of a bad run, in the arena */
};

bool hf_deletion_asks(const hf_call *call)
{
    return call->maker == HF_CALL_OF_DELETION;
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

void hf_deletions_init(hf_core *core)
{
    hf_deletions *all = &core->deletions;
    hf_list *const lists[] = {&all->marked, &all->next, &all->idle, &all->found};
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        hf_list_init(lists[i]);
    }
    hf_buf_init(&all->gone, core->memory, SIZE_MAX / 4);
}

static void deletion_free(hf_core *core, hf_deletion *it)
{
    hf_list_remove(&it->link);
    hf_arena_deinit(&it->arena);
    hf_core_free_mem(core, it, sizeof *it);
}

void hf_deletions_deinit(hf_core *core)
{
    hf_deletions *all = &core->deletions;
    hf_list *const lists[] = {&all->marked, &all->next, &all->idle, &all->found};
    hf_node *node = NULL;
    for (size_t i = 0; i < HF_COUNT_OF(lists); i++) {
        while ((node = hf_list_first(lists[i])) != NULL) {
            deletion_free(core, HF_CONTAINER(node, hf_deletion, link));
        }
    }
    hf_buf_deinit(&all->gone);
}

static void move(hf_deletion *it, hf_list *to)
{
    hf_list_remove(&it->link);
    hf_list_push_back(to, &it->link);
}

static void restart(hf_deletion *it)
{
    it->stage = it->is_bad ? STAGE_NAME : STAGE_SEARCH;
    it->in_table = false;
    it->below = it->level == HF_DELETING_ALL ? it->run : INT64_MAX;
    it->from = (hf_key){0};
}

static void call_done(hf_call *call);

static hf_deletion *deletion_new(hf_core *core, hf_run *run, hf_str namespace_, hf_str workflow_id)
{
    hf_assert(HF_SLOT(run)->deletion == NULL);
    hf_deletion *it = hf_core_alloc(core, sizeof *it);
    if (it == NULL) {
        return NULL;
    }
    it->core = core;
    it->run = run->number;
    it->level = HF_DELETING_ONE;
    it->has_name = !run->is_nameless;
    hf_arena_init(&it->arena, core->memory);
    it->execution.workflow_id = hf_arena_copy(&it->arena, workflow_id);
    it->request = (hf_pb_delete_workflow_execution_request){
        .namespace = hf_arena_copy(&it->arena, namespace_),
        .workflow_execution = &it->execution,
    };
    hf_list_push_back(&core->deletions.marked, &it->link);
    HF_SLOT(run)->deletion = it;
    it->was_free = hf_node_is_linked(&HF_SLOT(run)->lru_link);
    hf_core_use(core, run);
    char text[HF_NAME_TEXT_LEN];
    size_t len = 0;
    hf_status status = hf_name_text(it->request.namespace, it->execution.workflow_id, text, &len);
    hf_assert(status == HF_OK); /* both were checked when the run was read, or when the call came */
    it->hash = hf_name_hash(&core->index, hf_str_of_len(text, len));
    if (it->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return it;
}

/* Nothing has happened to the run: a damaged one that is not deleted after all. */
static void give_up(hf_core *core, hf_deletion *it)
{
    hf_run *run = hf_run_find(core, it->run);
    hf_assert(run != NULL && it->is_bad);
    HF_SLOT(run)->deletion = NULL;
    if (it->was_free) { /* else it was bad at opening: ledger-B2 */
        hf_core_unuse(core, run);
    }
    deletion_free(core, it);
}

/* ---- The mark -------------------------------------------------------------------------------------------------------- */

static hf_deletion *mark(hf_core *core, hf_run *run, hf_deleting level)
{
    hf_assert(!hf_run_is_open(run) && run->deleting == HF_DELETING_NOT);
    hf_record_int(core, run, HF_CHANGE_DELETING, (int64_t)level);
    HF_SLOT(run)->spill_now = true; /* with a row under "h" */
    hf_deletion *it = core->status == HF_OK
                          ? deletion_new(core, run, hf_owned_str(&run->namespace), hf_owned_str(&run->workflow_id))
                          : NULL;
    if (it != NULL) {
        it->commit = core->commit_next;
        it->level = level;
        it->has_waited = hf_run_has_messages(run);
        core->probes[HF_PROBE_DELETED_WAITED] += it->has_waited ? 1 : 0;
        restart(it);
    }
    return it;
}

void hf_deletion_resume(hf_core *core, hf_run *run)
{
    if (run->deleting == HF_DELETING_NOT || HF_SLOT(run)->deletion != NULL) {
        return;
    }
    HF_PROBE(core, HF_PROBE_DELETED_RESUMED);
    hf_deletion *it = deletion_new(core, run, hf_owned_str(&run->namespace), hf_owned_str(&run->workflow_id));
    if (it != NULL) {
        it->level = run->deleting;
        restart(it);
        move(it, &core->deletions.next); /* its mark is durable */
    }
}

static void unname(hf_core *core, hf_run *run, const hf_deletion *it)
{
    hf_assert(run->is_written && !hf_run_is_open(run)); /* ledger-N1: the index has it */
    HF_PROBE(core, HF_PROBE_UNNAMED);
    hf_record_int(core, run, HF_CHANGE_UNNAMED, 1);
    HF_SLOT(run)->spill_now = true; /* its row says so from the commit on that removes its name */
    hf_names_remove(&core->index, it->hash, run->number, core->commit_next);
    if (HF_SLOT(run)->name != NULL) {
        hf_name *name = HF_SLOT(run)->name;
        HF_SLOT(run)->name = NULL;
        name->run = NULL;
        hf_name_drop(core, name);
    }
}

/* The call of a deletion has found a run of its id. */
static void meet(hf_core *core, hf_deletion *it, hf_run *run)
{
    hf_assert(run->number != it->run);
    if (run->number > it->run) {
        it->is_newer = !run->is_nameless;
    } else if (run->deleting != HF_DELETING_NOT || run->is_nameless || hf_run_is_open(run)) {
        hf_assert(!hf_run_is_open(run) || HF_CANARY(HF_BUG_TWO_OPEN_RUNS)); /* only the newest is open */
    } else if (it->level == HF_DELETING_ALL) {
        (void)mark(core, run, HF_DELETING_ONE);
    } else {
        unname(core, run, it);
    }
    if (core->status == HF_OK) {
        hf_call_now(&it->call);
    }
}

void hf_delete_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_delete_workflow_execution_request *request = call->request;
    if (hf_deletion_asks(call)) {
        meet(core, (hf_deletion *)(void *)call, run);
        return;
    }
    if (request->holdfast_all_runs && request->workflow_execution->run_id.len > 0) {
        hf_call_fail(core, call, HF_ERR_INVALID, "HoldfastAllRuns and RunId are both set on request");
        return;
    }
    if (hf_run_is_open(run)) {
        HF_PROBE(core, HF_PROBE_DELETED_OPEN);
        hf_execution_terminate(core, run, HF_STR("deleted"), NULL, HF_IDENTITY_ENGINE);
    }
    hf_deletion *it =
        core->status == HF_OK ? mark(core, run, request->holdfast_all_runs ? HF_DELETING_ALL : HF_DELETING_ONE) : NULL;
    if (it != NULL && request->holdfast_all_runs) {
        call->place = HF_PLACE_ELSEWHERE;
        it->caller = call; /* answered when all others are marked, too */
        return;
    }
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

bool hf_delete_bad_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_delete_workflow_execution_request *request = call->request;
    hf_assert(HF_SLOT(run)->bad);
    if (hf_deletion_asks(call) || HF_SLOT(run)->deletion != NULL || request->holdfast_all_runs) {
        return false;
    }
    hf_deletion *it = deletion_new(core, run, request->namespace, request->workflow_execution->workflow_id);
    if (it != NULL) {
        it->is_bad = true;
        it->caller = call;
        call->place = HF_PLACE_ELSEWHERE;
        restart(it);
        move(it, &core->deletions.next);
    }
    return true;
}

/* ---- The search ------------------------------------------------------------------------------------------------------ */

static void refuse_caller(hf_core *core, hf_deletion *it, hf_status status, const char *why)
{
    hf_call *caller = it->caller;
    it->caller = NULL;
    if (caller != NULL) {
        caller->place = HF_PLACE_NONE;
        hf_call_fail(core, caller, status, "%s", why);
    }
}

/* Something that it needs cannot be read. A bad run stays as it is; the deletion of another one goes on at the next opening. */
static void stick(hf_core *core, hf_deletion *it, const char *why)
{
    HF_PROBE(core, HF_PROBE_DELETED_STUCK);
    refuse_caller(core, it, HF_ERR_STORE, why);
    if (it->is_bad) {
        give_up(core, it);
        return;
    }
    it->stage = STAGE_STUCK;
    move(it, &core->deletions.idle);
}

static void answer_caller(hf_core *core, hf_deletion *it)
{
    hf_call *caller = it->caller;
    it->caller = NULL;
    if (caller != NULL) {
        caller->place = HF_PLACE_NONE;
        hf_call_response(core, caller);
        hf_call_reply(core, caller);
    }
}

/* No older run can become the current one any more. */
static void search_ended(hf_core *core, hf_deletion *it, bool is_behind)
{
    if (is_behind) {
        HF_PROBE(core, HF_PROBE_DELETED_BEHIND);
    }
    if (it->is_bad) {
        it->stage = STAGE_DUE;
        move(it, &core->deletions.next);
        return;
    }
    if (it->level == HF_DELETING_ALL) {
        HF_PROBE(core, HF_PROBE_DELETED_ALL);
    }
    it->stage = STAGE_FOUND;
    move(it, &core->deletions.found);
    answer_caller(core, it);
}

/* Another run of the id was met, or the one that the index gave is none. */
static void call_done(hf_call *call)
{
    hf_deletion *it = (hf_deletion *)(void *)call;
    hf_core *core = it->core;
    if (core->status != HF_OK) {
        return; /* hf_deletions_deinit frees it */
    }
    hf_status status = call->status;
    bool is_lost = status != HF_OK && status != HF_ERR_NOT_FOUND;
    if (it->is_newer || (is_lost && it->meets > it->run)) { /* of a damaged run the equal hash decides */
        search_ended(core, it, true);
    } else if (is_lost) {
        stick(core, it, call->message);
    } else {
        move(it, &core->deletions.next);
    }
}

/* Looks at the run that the index gives. */
static void look_at(hf_core *core, hf_deletion *it, int64_t number)
{
    hf_assert(number < it->below);
    it->below = number;
    if (number == it->run) {
        move(it, &core->deletions.next);
        return;
    }
    hf_run *run = hf_run_load(core, number);
    if (run == NULL) {
        return;
    }
    move(it, &core->deletions.idle);
    it->is_newer = false;
    it->meets = number;
    hf_call_init(&it->call, HF_METHOD_DELETE_WORKFLOW_EXECUTION, &it->request, &it->arena, call_done);
    it->call.maker = HF_CALL_OF_DELETION;
    hf_list_push_back(&core->calls_all, &it->call.all);
    hf_input_run(core, &it->call, run);
}

static hf_read *ask_table(hf_core *core, hf_deletion *it, hf_table table)
{
    hf_read *read = hf_read_new(core, HF_READ_DELETION, table);
    if (read != NULL) {
        read->deletion = it;
        it->deletes = core->index.deletes;
        move(it, &core->deletions.idle);
    }
    return read;
}

static void search(hf_core *core, hf_deletion *it)
{
    if (HF_CANARY(HF_BUG_OLDER_RUN_CURRENT)) {
        search_ended(core, it, false);
        return;
    }
    const hf_run *current = hf_name_current(core, it->request.namespace, it->execution.workflow_id);
    if (it->level != HF_DELETING_ALL && current != NULL && current->number > it->run) {
        search_ended(core, it, true); /* perhaps it has no row yet */
        return;
    }
    if (!it->in_table) {
        int64_t number = hf_names_below(&core->index, it->hash, it->below);
        if (number != 0) {
            look_at(core, it, number);
            return;
        }
        it->in_table = true;
        it->below = it->level == HF_DELETING_ALL ? it->run : INT64_MAX;
    }
    hf_read *read = ask_table(core, it, HF_TABLE_NAME);
    if (read != NULL) {
        read->request.key = (hf_key){.a = it->hash};
        read->request.key_end = (hf_key){.a = it->hash, .b = it->below};
        read->request.backwards = true;
        read->request.row_max = 1;
        hf_read_submit(core, read);
    }
}

static void searched(hf_core *core, hf_deletion *it, const hf_read *read)
{
    if (it->deletes != core->index.deletes) { /* ledger-N1: a sweep has deleted rows meanwhile */
        HF_PROBE(core, HF_PROBE_NAME_STALE);
        move(it, &core->deletions.next);
        return;
    }
    if (read->request.row_count == 0) {
        search_ended(core, it, false);
        return;
    }
    int64_t number = read->request.rows[0].key.b;
    if (hf_names_is_gone(&core->index, it->hash, number)) {
        HF_PROBE(core, HF_PROBE_NAME_GONE);
        it->below = number;
        move(it, &core->deletions.next);
        return;
    }
    look_at(core, it, number);
}

/* ---- A damaged run --------------------------------------------------------------------------------------------------- */

/* The name under which the caller knows it must lead to it, or must have done so: its row may not tell its name. */
static void name_known(hf_core *core, hf_deletion *it, bool is_known, bool is_gone)
{
    if (!is_known && !is_gone) {
        refuse_caller(core, it, HF_ERR_NOT_FOUND,
                      "the records of this run are damaged, and its workflow id does not lead to it");
        give_up(core, it);
        return;
    }
    it->has_name = !is_gone;
    it->stage = STAGE_SEARCH;
    move(it, &core->deletions.next);
}

static void check_name(hf_core *core, hf_deletion *it)
{
    bool is_gone = hf_names_is_gone(&core->index, it->hash, it->run);
    bool is_here = hf_names_below(&core->index, it->hash, it->run + 1) == it->run;
    if (is_gone || is_here) {
        name_known(core, it, is_here, is_gone);
        return;
    }
    hf_read *read = ask_table(core, it, HF_TABLE_NAME);
    if (read != NULL) {
        read->request.verb = HF_STORE_GET;
        read->request.key = (hf_key){.a = it->hash, .b = it->run};
        hf_read_submit(core, read);
    }
}

static void walk(hf_core *core, hf_deletion *it, hf_table table)
{
    hf_read *read = ask_table(core, it, table);
    if (read != NULL) {
        read->request.key = it->from;
        read->request.key_end = hf_key_last();
        read->request.row_max = PAGE_ROWS;
        hf_read_submit(core, read);
    }
}

/* Remembers a row of the run. */
static void keep_row(hf_core *core, hf_deletion *it, hf_key **items, size_t *count, const hf_key *key)
{
    hf_key *more = HF_ARENA_ARRAY(&it->arena, hf_key, *count + 1);
    if (more == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    if (*count > 0) {
        memcpy(more, *items, *count * sizeof *more);
    }
    more[*count] = (hf_key){hf_arena_copy(&it->arena, key->text), key->a, key->b};
    *items = more;
    (*count)++;
}

/* False: a record cannot be read, and may be one of its own. */
static bool keep_rows(hf_core *core, hf_deletion *it, const hf_read *read)
{
    for (size_t i = 0; i < read->request.row_count && core->status == HF_OK; i++) {
        const hf_row *row = &read->request.rows[i];
        if (it->stage == STAGE_DUE) {
            if (row->key.b == it->run) {
                keep_row(core, it, &it->due.items, &it->due.count, &row->key);
            }
            continue;
        }
        hf_pb_task_record record;
        hf_status status = hf_task_row_open(&core->op, row, &core->scratch, &record);
        if (status == HF_ERR_INVALID) {
            return false;
        }
        if (status != HF_OK) {
            hf_core_break(core, status, "%s", core->op.message);
        } else if (record.run == it->run) {
            keep_row(core, it, &it->tasks.items, &it->tasks.count, &row->key);
        }
    }
    return true;
}

static void walked(hf_core *core, hf_deletion *it, const hf_read *read)
{
    if (!keep_rows(core, it, read)) {
        stick(core, it,
              "the run is damaged, and so is the record of a task that may be its own; see holdfast db check");
        return;
    }
    if (core->status != HF_OK) {
        return;
    }
    if (read->request.more && read->request.row_count > 0) {
        const hf_key *last = &read->request.rows[read->request.row_count - 1].key;
        it->from = (hf_key){hf_arena_copy(&it->arena, last->text), last->a, last->b + 1};
        move(it, &core->deletions.next);
        return;
    }
    it->from = (hf_key){0};
    it->stage = it->stage == STAGE_DUE ? STAGE_TASKS : STAGE_FOUND;
    move(it, it->stage == STAGE_FOUND ? &core->deletions.found : &core->deletions.next);
}

/* ---- Steps ----------------------------------------------------------------------------------------------------------- */

void hf_deletion_rows_read(hf_core *core, hf_deletion *it, hf_read *read)
{
    switch (it->stage) {
    case STAGE_SEARCH:
        searched(core, it, read);
        return;
    case STAGE_NAME:
        name_known(core, it, read->request.found, hf_names_is_gone(&core->index, it->hash, it->run));
        return;
    case STAGE_DUE:
    case STAGE_TASKS:
        walked(core, it, read);
        return;
    case STAGE_FOUND:
    case STAGE_STUCK:
        break;
    }
    hf_assert(false); /* it asked nothing */
}

void hf_deletion_failed(hf_core *core, hf_deletion *it, const char *why)
{
    HF_PROBE(core, HF_PROBE_BAD_RECORD);
    stick(core, it, why);
}

static void step(hf_core *core, hf_deletion *it)
{
    switch (it->stage) {
    case STAGE_SEARCH:
        search(core, it);
        return;
    case STAGE_NAME:
        check_name(core, it);
        return;
    case STAGE_DUE:
        walk(core, it, HF_TABLE_DUE);
        return;
    case STAGE_TASKS:
        walk(core, it, HF_TABLE_TASK);
        return;
    case STAGE_FOUND:
    case STAGE_STUCK:
        break;
    }
    hf_assert(false); /* it is in another list */
}

bool hf_deletions_have_work(const hf_core *core)
{
    return !hf_list_is_empty(&core->deletions.next);
}

void hf_deletions_pump(hf_core *core)
{
    if (core->submit == NULL) {
        return; /* while the store is being opened */
    }
    hf_node *node = NULL;
    for (int i = 0;
         core->status == HF_OK && i < HF_DELETIONS_MAX && (node = hf_list_first(&core->deletions.next)) != NULL; i++) {
        hf_core_reset_scratch(core);
        step(core, HF_CONTAINER(node, hf_deletion, link));
    }
}

void hf_deletions_committed(hf_core *core)
{
    hf_node *node = NULL;
    while ((node = hf_list_first(&core->deletions.marked)) != NULL &&
           HF_CONTAINER(node, hf_deletion, link)->commit <= core->commit_durable) {
        move(HF_CONTAINER(node, hf_deletion, link), &core->deletions.next);
    }
}

/* ---- The end --------------------------------------------------------------------------------------------------------- */

/* engine-X3 */
static bool is_read(const hf_core *core, int64_t run)
{
    HF_LIST_EACH(node, &core->reads)
    {
        const hf_read *read = HF_CONTAINER(node, hf_read, link);
        if (read->kind == HF_READ_HISTORY && read->want.page.run == run) {
            return true;
        }
    }
    return false;
}

static bool can_go(hf_core *core, hf_deletion *it)
{
    hf_run *run = hf_run_find(core, it->run);
    hf_assert(run != NULL && HF_SLOT(run)->deletion == it);
    const hf_slot *slot = HF_SLOT(run);
    bool is_used = !hf_list_is_empty(&slot->waiting) || !hf_list_is_empty(&slot->wanted_as) || slot->loading ||
                   slot->fetch_id != 0 || slot->unwritten != NULL || slot->suspects > 0 || slot->resets > 0 ||
                   hf_run_has_messages(run) || is_read(core, it->run);
    if (is_used && !it->has_waited) {
        it->has_waited = true;
        HF_PROBE(core, HF_PROBE_DELETED_WAITED);
    }
    return !is_used;
}

bool hf_deletions_can_go(hf_core *core)
{
    HF_LIST_EACH(node, &core->deletions.found)
    {
        if (can_go(core, HF_CONTAINER(node, hf_deletion, link))) {
            return true;
        }
    }
    return false;
}

static void delete_rows(hf_core *core, hf_writes *writes, hf_deletion *it, hf_run *run)
{
    int64_t number = run->number;
    hf_writes_delete(writes, HF_TABLE_RUN, (hf_key){.a = number});
    if (!HF_CANARY(HF_BUG_DELETED_HISTORY_LEFT)) {
        hf_writes_delete_range(writes, HF_TABLE_HISTORY, (hf_key){.a = number}, (hf_key){.a = number + 1});
    }
    if (it->is_bad) {
        for (size_t i = 0; i < it->due.count; i++) {
            hf_writes_delete(writes, HF_TABLE_DUE, it->due.items[i]);
        }
        for (size_t i = 0; i < it->tasks.count; i++) {
            hf_key key = it->tasks.items[i];
            key.text = hf_writes_copy(writes, key.text);
            hf_writes_delete(writes, HF_TABLE_TASK, key);
        }
    } else {
        (void)hf_due_put(writes, run, INT64_MAX);
        hf_tasks_remove(writes, run);
    }
    if (HF_SLOT(run)->kept) {
        hf_kept_remove(writes, number);
    }
    if (it->has_name) {
        hf_names_remove(&core->index, it->hash, number, core->commit_next);
    }
}

/* Deletions that met a run which could not be read may go on, now that a damaged run is gone. */
static void unstick(hf_core *core)
{
    HF_LIST_EACH(node, &core->deletions.idle)
    {
        hf_deletion *it = HF_CONTAINER(node, hf_deletion, link);
        if (it->stage == STAGE_STUCK) {
            restart(it);
            move(it, &core->deletions.next);
        }
    }
}

static void go(hf_core *core, hf_commit_batch *batch, hf_deletion *it)
{
    hf_run *run = hf_run_find(core, it->run);
    hf_assert(it->is_bad ? HF_SLOT(run)->bad
                         : !hf_run_is_open(run) && run->deleting != HF_DELETING_NOT); /* engine-X1 */
    hf_assert(it->stage == STAGE_FOUND);                                              /* engine-X2 */
    hf_assert(HF_SLOT(run)->fetch_id == 0 && HF_SLOT(run)->unwritten == NULL &&
              !hf_run_has_messages(run)); /* engine-X3 */
    HF_PROBE(core, it->is_bad ? HF_PROBE_DELETED_BAD : HF_PROBE_DELETED);
    delete_rows(core, &batch->writes, it, run);
    hf_name_entry_put(&core->deletions.gone, &(hf_name_entry){it->hash, it->run});
    if (core->deletions.gone.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    answer_caller(core, it); /* of a damaged run: with this commit */
    bool was_bad = it->is_bad;
    int64_t number = it->run;
    HF_SLOT(run)->deletion = NULL;
    deletion_free(core, it);
    hf_run_remove(core, run);
    hf_assert(hf_run_find(core, number) == NULL); /* ledger-J3: nothing of it is left that this commit could write */
    if (was_bad) {
        unstick(core);
    }
}

void hf_deletions_go(hf_core *core, hf_commit_batch *batch)
{
    HF_LIST_EACH(node, &core->deletions.found)
    {
        hf_deletion *it = HF_CONTAINER(node, hf_deletion, link);
        if (core->status == HF_OK && can_go(core, it)) {
            go(core, batch, it);
        }
    }
}
