/* Commits: the open batch is sealed, in four phases, and becomes a request to the store; when that is done its answers are sent. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/batch.h"
#include "engine/due.h"
#include "engine/filter.h"
#include "engine/history_read.h"
#include "engine/load.h"
#include "engine/matching.h"
#include "engine/namespaces.h"
#include "engine/notice.h"

void hf_core_release(hf_core *core, hf_clock now)
{
    if (!hf_core_is_whole(core)) {
        return;
    }
    hf_assert(core->canceled <= core->options.cancels_max);
    core->canceled = 0; /* a new portion */
    if (!hf_list_is_empty(&core->queues_marked) && hf_core_begin_step(core, now)) {
        hf_match_all(core);
    }
    if (hf_core_is_whole(core)) {
        hf_calls_publish(&core->ahead_replies);
    }
}

/* Phase 1: calls that wait for new events are answered while the events are still in the runs' logs; runs that have closed get
 * their rows. */
static void settle_runs(hf_core *core, hf_commit_batch *batch)
{
    HF_LIST_EACH(node, &core->touched)
    {
        hf_run *run = &HF_CONTAINER(node, hf_slot, batch_link)->run;
        hf_assert(hf_node_is_linked(&HF_SLOT(run)->dirty_link)); /* engine-E4: its rows are older than its changes */
        hf_watch_wake(core, run, true);
        hf_changes_note(core, run);
        if (HF_UNLIKELY(HF_SLOT(run)->notices != 0)) {
            hf_notice_gather(core, batch, run);
        }
        if (HF_SLOT(run)->spill_now) {
            hf_spill(core, batch, run);
        }
    }
    hf_changes_wake(core);
}

/* Phase 2: memory and journal are brought within their bounds. Runs whose rows are written already are dropped first: that costs nothing. */
static void make_room(hf_core *core, hf_commit_batch *batch)
{
    hf_core_evict(core);
    hf_spill_old(core, batch);
    if (hf_names_sweep(&core->index, &batch->writes, core->commit_next, core->options.names_max)) {
        HF_PROBE(core, HF_PROBE_NAMES_SWEPT);
    }
}

/* Phase 3: the changes of the batch that are in no row go to the journal; after an opening the meta record is written, too, and namespaces
 * when they have changed. */
static void write_journal(hf_core *core, hf_commit_batch *batch)
{
    if (hf_core_is_whole(core)) {
        hf_journal_put(core, batch);
    }
    if (core->meta_dirty && hf_core_is_whole(core)) {
        hf_core_put_meta(core, batch);
    }
    if (core->namespaces_dirty && hf_core_is_whole(core)) {
        hf_namespaces_put(core, batch);
    }
    if (core->operations.is_dirty && hf_core_is_whole(core)) {
        hf_operations_put(core, batch);
    }
}

/* Phase 4: the batch becomes a request to the store, and the other batch is opened. */
static hf_store_request *send_off(hf_core *core, hf_commit_batch *batch)
{
    hf_assert(hf_list_is_empty(&core->touched) ||
              HF_CANARY(HF_BUG_NEXT_RUN_LATER)); /* engine-E4: every change is in a row or in the journal */
    hf_assert(!core->committing);
    hf_assert(core->delivered <=
              core->options.messages_max); /* the commit of others waits for at most this many messages */
    batch->request = (hf_store_request){
        .verb = HF_STORE_COMMIT,
        .commit = core->commit_next,
        .writes = batch->writes.list.items,
        .write_count = batch->writes.list.count,
        .state = batch,
    };
    hf_op_init(&batch->request.op);
    core->committing = true;
    core->commit_next++;
    core->ahead = 0;
    core->fired = 0;
    core->delivered = 0;
    core->open_len = 0;
    core->open_idx = 1 - core->open_idx;
    hf_assert(hf_list_is_empty(&core->batches[core->open_idx].replies)); /* engine-E1: they went with its own commit */
    return &batch->request;
}

hf_store_request *hf_core_seal(hf_core *core, hf_clock now)
{
    hf_core_release(core, now);
    if (core->committing || !hf_core_begin_step(core, now)) {
        return NULL;
    }
    hf_assert(core->commit_next == core->commit_durable + 1); /* engine-E1: one commit at a time */
    hf_filter_tick(core);
    hf_core_end_steps(core); /* of the steps at opening */
    hf_commit_batch *batch = &core->batches[core->open_idx];
    if (!hf_core_is_whole(core)) {
        return NULL;
    }
    bool deletes = hf_deletions_can_go(core);
    bool makes = hf_resets_can_go(core);
    if (hf_list_is_empty(&core->touched) && !core->meta_dirty && !core->namespaces_dirty &&
        !core->operations.is_dirty && !deletes && !makes && !hf_blocks_can_go(core)) {
        hf_calls_publish(&batch->replies); /* everything they tell is durable */
        core->delivered = 0;
        return NULL;
    }
    hf_writes_reset(&batch->writes);
    hf_list_init(&batch->notices);
    if (deletes) {
        hf_deletions_go(core, batch);
    }
    if (makes) {
        hf_resets_go(core, batch);
    }
    settle_runs(core, batch);
    make_room(core, batch);
    if (hf_blocks_can_go(core) && hf_core_is_whole(core)) {
        hf_blocks_go(core, batch); /* behind all changes of runs: engine-K2 */
    }
    write_journal(core, batch);
    return hf_core_is_whole(core) ? send_off(core, batch) : NULL;
}

static void committed(hf_core *core, hf_commit_batch *batch)
{
    core->committing = false;
    if (batch->request.status != HF_OK && !HF_CANARY(HF_BUG_FAILED_COMMIT_IGNORED)) {
        hf_core_break(core, batch->request.status, "a commit failed: %s", batch->request.op.message);
        return;
    }
    hf_assert(batch->request.commit == core->commit_durable + 1); /* engine-E1: in order, each before its answers */
    core->commit_durable = batch->request.commit;
    hf_calls_publish(&batch->replies);
    hf_notice_tell(core, batch);
    hf_deletions_committed(core);
    hf_core_evict(core);
}

/* A run was loaded: corrects the counts of loads that are under way, and forgets its deadline on disk. */
static void run_arrives(hf_core *core, hf_run *run)
{
    hf_assert(HF_SLOT(run)->loading); /* engine-E4: it has stayed in memory since it was asked for */
    if (HF_SLOT(run)->wanted_by != NULL) {
        hf_assert(HF_SLOT(run)->wanted_by->loads > 0);
        HF_SLOT(run)->wanted_by->loads--;
    }
    if (HF_SLOT(run)->due_load) {
        hf_assert(core->due_loads > 0);
        HF_SLOT(run)->due_load = false;
        core->due_loads--;
    }
    hf_due_forget_cold(core, run->number);
}

void hf_core_done(hf_core *core, hf_store_request *request, hf_clock now)
{
    bool alive = hf_core_begin_step(core, now);
    if (request->verb == HF_STORE_COMMIT) {
        hf_commit_batch *batch = request->state;
        hf_assert(core->committing && batch == &core->batches[1 - core->open_idx]);
        if (alive) {
            committed(core, batch);
        } else {
            core->committing = false;
            if (request->status == HF_OK) { /* its answers are true, even though the core is broken */
                core->commit_durable = request->commit;
                hf_calls_publish(&batch->replies);
                hf_notice_tell(core, batch);
            }
        }
        return;
    }
    hf_read *read = request->state;
    if (alive && read->kind == HF_READ_RUN) {
        run_arrives(core, read->run);
    }
    if (alive) {
        hf_load_done(core, read);
        hf_core_end_steps(core); /* before the run may be dropped again */
        hf_core_evict(core);
    }
    hf_read_free(core, read);
}
