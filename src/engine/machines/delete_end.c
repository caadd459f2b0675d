/* The end of a deletion: once nothing uses the run any more, one commit deletes its rows. */
#include "engine/machines/delete_private.h"

#include "base/canary.h"
#include "engine/batch.h"
#include "engine/machines/message.h"
#include "ledger/kept.h"
#include "ledger/rows.h"

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
                   slot->operation != NULL || hf_run_has_messages(run) || is_read(core, it->run);
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

static void delete_rows(hf_core *core, hf_commit_batch *batch, hf_deletion *it, hf_run *run)
{
    int64_t number = run->number;
    hf_writes *writes = &batch->writes;
    hf_blocks_run_changes(core, batch, number);
    hf_writes_delete(writes, HF_TABLE_RUN, (hf_key){.a = number});
    if (!HF_CANARY(HF_BUG_DELETED_HISTORY_LEFT)) {
        hf_writes_delete_range(writes, HF_TABLE_HISTORY, (hf_key){.a = number}, (hf_key){.a = number + 1});
    }
    if (it->is_bad) {
        for (size_t i = 0; i < it->due.count; i++) {
            hf_writes_delete(writes, HF_TABLE_DUE, it->due.items[i]);
        }
        for (size_t i = 0; i < it->tasks.count; i++) {
            hf_task_delete(writes, it->tasks.items[i].text, it->tasks.items[i].a);
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

/* Deletions that met a run which could not be read may go on, now that a damaged run is gone. So may messages: for one that was for
 * this run, the answer is that it is not there. */
static void unstick(hf_core *core)
{
    HF_LIST_EACH(node, &core->deletions.idle)
    {
        hf_deletion *it = HF_CONTAINER(node, hf_deletion, link);
        if (it->stage == DELETION_STUCK) {
            hf_deletion_restart(it);
            hf_deletion_move(it, &core->deletions.next);
        }
    }
    hf_messages_again(core);
}

static void go(hf_core *core, hf_commit_batch *batch, hf_deletion *it)
{
    hf_run *run = hf_run_find(core, it->run);
    hf_assert(it->is_bad ? HF_SLOT(run)->bad
                         : !hf_run_is_open(run) && run->deleting != HF_DELETING_NOT); /* engine-X1 */
    hf_assert(it->stage == DELETION_FOUND);                                           /* engine-X2 */
    hf_assert(HF_SLOT(run)->fetch_id == 0 && HF_SLOT(run)->unwritten == NULL &&
              !hf_run_has_messages(run)); /* engine-X3 */
    HF_PROBE(core, it->is_bad ? HF_PROBE_DELETED_BAD : HF_PROBE_DELETED);
    delete_rows(core, batch, it, run);
    hf_name_entry_put(&core->deletions.gone, &(hf_name_entry){it->hash, it->run});
    if (core->deletions.gone.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    hf_deletion_answer(core, it); /* of a damaged run: with this commit */
    bool was_bad = it->is_bad;
    int64_t number = it->run;
    HF_SLOT(run)->deletion = NULL;
    hf_deletion_free(core, it);
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
