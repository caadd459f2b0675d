/* The search of a deletion: the older runs of its workflow id, one of which would become the current run, are met one by one, from the newest
 * to the oldest, and lose their names. */
#include "engine/machines/delete_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/input.h"

/* No older run can become the current one any more. */
static void search_ended(hf_core *core, hf_deletion *it, bool is_behind)
{
    hf_assert(it->stage == DELETION_SEARCH); /* engine-X2 */
    if (is_behind) {
        HF_PROBE(core, HF_PROBE_DELETED_BEHIND);
    }
    if (it->is_bad) {
        it->stage = DELETION_DUE;
        hf_deletion_move(it, &core->deletions.next);
        return;
    }
    if (it->level == HF_DELETING_ALL) {
        HF_PROBE(core, HF_PROBE_DELETED_ALL);
    }
    it->stage = DELETION_FOUND;
    hf_deletion_move(it, &core->deletions.found);
    hf_deletion_answer(core, it);
}

/* The call has met another run of the id, or the run that the index gave has another name. */
static void call_done(hf_call *call)
{
    hf_deletion *it = (hf_deletion *)(void *)call;
    hf_core *core = it->core;
    if (core->status != HF_OK) {
        return; /* hf_deletions_deinit frees it */
    }
    hf_status status = call->status;
    bool is_lost = status != HF_OK && status != HF_ERR_NOT_FOUND;
    if (it->is_newer ||
        (is_lost && it->meets > it->run)) { /* the name of a damaged run counts as equal if its hash is */
        search_ended(core, it, true);
    } else if (is_lost) {
        hf_deletion_stick(core, it, call->message);
    } else {
        hf_deletion_move(it, &core->deletions.next);
    }
}

/* Looks at the run that the index gives. */
static void look_at(hf_core *core, hf_deletion *it, int64_t number)
{
    hf_assert(number < it->below);
    it->below = number;
    if (number == it->run) {
        hf_deletion_move(it, &core->deletions.next);
        return;
    }
    hf_run *run = hf_run_load(core, number);
    if (run == NULL) {
        return;
    }
    hf_deletion_move(it, &core->deletions.idle);
    it->is_newer = false;
    it->meets = number;
    hf_call_init(&it->call, HF_METHOD_DELETE_WORKFLOW_EXECUTION, &it->request, &it->arena, call_done);
    it->call.maker = HF_CALL_OF_DELETION;
    hf_list_push_back(&core->calls_all, &it->call.all);
    hf_input_run(core, &it->call, run);
}

hf_read *hf_deletion_ask_table(hf_core *core, hf_deletion *it, hf_table table)
{
    hf_read *read = hf_read_new(core, HF_READ_DELETION, table);
    if (read != NULL) {
        read->deletion = it;
        it->deletes = core->index.deletes;
        hf_deletion_move(it, &core->deletions.idle);
    }
    return read;
}

void hf_deletion_search(hf_core *core, hf_deletion *it)
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
    hf_read *read = hf_deletion_ask_table(core, it, HF_TABLE_NAME);
    if (read != NULL) {
        read->request.key = (hf_key){.a = it->hash};
        read->request.key_end = (hf_key){.a = it->hash, .b = it->below};
        read->request.backwards = true;
        read->request.row_max = 1;
        hf_read_submit(core, read);
    }
}

void hf_deletion_searched(hf_core *core, hf_deletion *it, const hf_read *read)
{
    if (it->deletes != core->index.deletes) { /* ledger-N1: a sweep has deleted rows meanwhile */
        HF_PROBE(core, HF_PROBE_NAME_STALE);
        hf_deletion_move(it, &core->deletions.next);
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
        hf_deletion_move(it, &core->deletions.next);
        return;
    }
    look_at(core, it, number);
}
