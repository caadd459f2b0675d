/* Deletion: a run is deleted, with all of its rows.
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
#include "engine/machines/delete_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/unwritten.h"

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

void hf_deletion_free(hf_core *core, hf_deletion *it)
{
    hf_deletions *all = &core->deletions;
    hf_assert(all->count > 0 && (it->stage != DELETION_STUCK || all->stuck > 0));
    all->count--;
    all->stuck -= it->stage == DELETION_STUCK ? 1 : 0;
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
            hf_deletion_free(core, HF_CONTAINER(node, hf_deletion, link));
        }
    }
    hf_buf_deinit(&all->gone);
}

void hf_deletion_move(hf_deletion *it, hf_list *to)
{
    hf_assert(hf_node_is_linked(&it->link)); /* each is in one of the lists */
    hf_list_remove(&it->link);
    hf_list_push_back(to, &it->link);
}

void hf_deletion_restart(hf_deletion *it)
{
    it->core->deletions.stuck -= it->stage == DELETION_STUCK ? 1 : 0;
    it->stage = it->is_bad ? DELETION_NAME : DELETION_SEARCH;
    it->in_table = false;
    it->below = it->level == HF_DELETING_ALL ? it->run : INT64_MAX;
    it->from = (hf_key){0};
}

static hf_deletion *deletion_new(hf_core *core, hf_run *run, hf_str namespace_, hf_str workflow_id)
{
    hf_assert(HF_SLOT(run)->deletion == NULL);
    hf_deletion *it = hf_core_alloc(core, sizeof *it);
    if (it == NULL) {
        return NULL;
    }
    core->deletions.count++;
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

/* A damaged run is not deleted after all: nothing has happened to it. */
void hf_deletion_give_up(hf_core *core, hf_deletion *it)
{
    hf_run *run = hf_run_find(core, it->run);
    hf_assert(run != NULL && it->is_bad);
    HF_SLOT(run)->deletion = NULL;
    if (it->was_free) { /* else it was bad at opening: ledger-B2 */
        hf_core_unuse(core, run);
    }
    hf_deletion_free(core, it);
}

/* ---- The mark -------------------------------------------------------------------------------------------------------- */

static hf_deletion *mark(hf_core *core, hf_run *run, hf_deleting level)
{
    hf_assert(!hf_run_is_open(run) && run->deleting == HF_DELETING_NOT);
    hf_record_int(core, run, HF_CHANGE_DELETING, (int64_t)level);
    if (run->kind == HF_KIND_OPERATION) { /* ledger-O1 */
        hf_operations_remove(core, run->number);
    }
    HF_SLOT(run)->spill_now = true; /* with a row under "h" */
    if (HF_SLOT(run)->unwritten != NULL) {
        hf_unwritten_mark(core, HF_SLOT(run)->unwritten); /* its queries end */
    }
    hf_deletion *it = core->status == HF_OK
                          ? deletion_new(core, run, hf_owned_str(&run->namespace), hf_owned_str(&run->workflow_id))
                          : NULL;
    if (it != NULL) {
        it->commit = core->commit_next;
        it->level = level;
        it->has_waited = hf_run_has_messages(run);
        core->probes[HF_PROBE_DELETED_WAITED] += it->has_waited ? 1 : 0;
        hf_deletion_restart(it);
    }
    return it;
}

void hf_deletion_mark(hf_core *core, hf_run *run)
{
    (void)mark(core, run, HF_DELETING_ONE);
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
        hf_deletion_restart(it);
        hf_deletion_move(it, &core->deletions.next); /* its mark is durable */
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

/* The call with which a deletion looks at other runs has found one. */
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
    hf_assert(call->maker != HF_CALL_OF_RETENTION ||
              !hf_run_is_open(run)); /* engine-K4: a run that has ended is not open again */
    if (hf_run_is_open(run)) {
        HF_PROBE(core, HF_PROBE_DELETED_OPEN);
    }
    if (hf_run_is_open(run) && run->kind == HF_KIND_OPERATION) {
        hf_operation_stop(core, run, HF_STR("deleted"));
    } else if (hf_run_is_open(run)) {
        hf_execution_terminate(core, run, HF_STR("deleted"), NULL, HF_IDENTITY_ENGINE);
    }
    hf_deletion *it =
        core->status == HF_OK ? mark(core, run, request->holdfast_all_runs ? HF_DELETING_ALL : HF_DELETING_ONE) : NULL;
    if (it != NULL && request->holdfast_all_runs) {
        call->place = HF_PLACE_ELSEWHERE;
        it->caller = call; /* answered when all older runs are marked */
        return;
    }
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

bool hf_delete_bad_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_delete_workflow_execution_request *request = call->request;
    hf_assert(HF_SLOT(run)->bad);
    if (call->maker != HF_CALL_OF_CLIENT || HF_SLOT(run)->deletion != NULL || request->holdfast_all_runs) {
        return false;
    }
    hf_deletion *it = deletion_new(core, run, request->namespace, request->workflow_execution->workflow_id);
    if (it != NULL) {
        it->is_bad = true;
        it->caller = call;
        call->place = HF_PLACE_ELSEWHERE;
        hf_deletion_restart(it);
        hf_deletion_move(it, &core->deletions.next);
    }
    return true;
}

/* ---- Its caller ------------------------------------------------------------------------------------------------------ */

void hf_deletion_refuse(hf_core *core, hf_deletion *it, hf_status status, const char *why)
{
    hf_call *caller = it->caller;
    it->caller = NULL;
    if (caller != NULL) {
        caller->place = HF_PLACE_NONE;
        hf_call_fail(core, caller, status, "%s", why);
    }
}

/* Something that it needs cannot be read. A bad run stays as it is; the deletion of another one goes on at the next opening. */
void hf_deletion_stick(hf_core *core, hf_deletion *it, const char *why)
{
    HF_PROBE(core, HF_PROBE_DELETED_STUCK);
    hf_deletion_refuse(core, it, HF_ERR_STORE, why);
    if (it->is_bad) {
        hf_deletion_give_up(core, it);
        return;
    }
    core->deletions.stuck += it->stage != DELETION_STUCK ? 1 : 0;
    it->stage = DELETION_STUCK;
    hf_deletion_move(it, &core->deletions.idle);
}

void hf_deletion_answer(hf_core *core, hf_deletion *it)
{
    hf_call *caller = it->caller;
    it->caller = NULL;
    if (caller != NULL) {
        caller->place = HF_PLACE_NONE;
        hf_call_response(core, caller);
        hf_call_reply(core, caller);
    }
}

/* ---- Steps ----------------------------------------------------------------------------------------------------------- */

void hf_deletion_rows_read(hf_core *core, hf_deletion *it, hf_read *read)
{
    switch (it->stage) {
    case DELETION_SEARCH:
        hf_deletion_searched(core, it, read);
        return;
    case DELETION_NAME:
        hf_deletion_name_known(core, it, read->request.found, hf_names_is_gone(&core->index, it->hash, it->run));
        return;
    case DELETION_DUE:
    case DELETION_TASKS:
        hf_deletion_walked(core, it, read);
        return;
    case DELETION_FOUND:
    case DELETION_STUCK:
        break;
    }
    hf_assert(false); /* these stages make no reads */
}

void hf_deletion_failed(hf_core *core, hf_deletion *it, const char *why)
{
    HF_PROBE(core, HF_PROBE_BAD_RECORD);
    hf_deletion_stick(core, it, why);
}

static void step(hf_core *core, hf_deletion *it)
{
    switch (it->stage) {
    case DELETION_SEARCH:
        hf_deletion_search(core, it);
        return;
    case DELETION_NAME:
        hf_deletion_check_name(core, it);
        return;
    case DELETION_DUE:
        hf_deletion_walk(core, it, HF_TABLE_DUE);
        return;
    case DELETION_TASKS:
        hf_deletion_walk(core, it, HF_TABLE_TASK);
        return;
    case DELETION_FOUND:
    case DELETION_STUCK:
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
        hf_deletion_move(HF_CONTAINER(node, hf_deletion, link), &core->deletions.next);
    }
}
