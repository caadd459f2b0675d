/* The runs in memory. A run stays while something holds it (engine-E4); the others are in the order of their last use, and leave from its
 * beginning when memory gets short. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/cursor.h"
#include "engine/due.h"
#include "engine/load.h"
#include "engine/matching.h"

void hf_core_touch(hf_core *core, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad); /* ledger-B1: a bad run gets no new changes */
    hf_core_use(core, run);
    if (!hf_node_is_linked(&HF_SLOT(run)->dirty_link)) {
        HF_SLOT(run)->commit_dirty = core->commit_next;
        hf_list_push_back(&core->dirty, &HF_SLOT(run)->dirty_link);
    }
    if (!hf_node_is_linked(&HF_SLOT(run)->batch_link)) {
        HF_SLOT(run)->batch_start = run->log.len;
        hf_list_push_back(&core->touched, &HF_SLOT(run)->batch_link);
        core->run_commits++;
    }
    if (HF_SLOT(run)->step != core->step) {
        HF_SLOT(run)->step = core->step;
        core->transitions++;
    }
}

void hf_core_use(hf_core *core, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->is_ended || core->ended_count > 0);
    if (hf_node_is_linked(&HF_SLOT(run)->lru_link)) {
        hf_list_remove(&HF_SLOT(run)->lru_link);
        core->ended_count -= HF_SLOT(run)->is_ended ? 1 : 0;
        HF_SLOT(run)->is_ended = false;
    }
}

void hf_core_unuse(hf_core *core, hf_run *run)
{
    if (HF_SLOT(run)->loading || hf_node_is_linked(&HF_SLOT(run)->lru_link) ||
        hf_node_is_linked(&HF_SLOT(run)->dirty_link) || run->externals.count > 0 || HF_SLOT(run)->suspects > 0) {
        return;
    }
    HF_SLOT(run)->is_ended = !hf_run_is_open(run);
    core->ended_count += HF_SLOT(run)->is_ended ? 1 : 0;
    hf_list_push_back(HF_SLOT(run)->is_ended ? &core->ended : &core->lru, &HF_SLOT(run)->lru_link);
}

static void evict(hf_core *core, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && run->commit_last <= core->commit_durable); /* engine-E4 */
    HF_PROBE(core, HF_PROBE_EVICTED);
    hf_match_evicted(core, run);
    /* A deadline whose row was passed already, or is being passed; or whose row, if there is one, is of another time: it would be
     * found too late, or again and again. */
    int64_t due = hf_run_next_due(run);
    bool read = hf_cursor_may_miss(&core->due_cursor, due, run->number) || due != run->due_written;
    if (!HF_SLOT(run)->bad && due != INT64_MAX && read && !HF_CANARY(HF_BUG_DUE_ROW_FORGOTTEN)) {
        (void)hf_due_add_cold(core, due, run->number);
    }
    hf_run_remove(core, run);
}

static void evict_if_free(hf_core *core, hf_run *run)
{
    hf_assert(!hf_node_is_linked(&HF_SLOT(run)->dirty_link)); /* engine-E4 */
    /* One whose deadline has come may have been loaded just for that. */
    bool is_due = HF_SLOT(run)->due.place != 0 && HF_SLOT(run)->due.key <= core->now.wall;
    bool is_waited_for = !hf_list_is_empty(&HF_SLOT(run)->waiting) || !hf_list_is_empty(&HF_SLOT(run)->held);
    if (run->commit_last <= core->commit_durable && !is_waited_for && !is_due) {
        evict(core, run);
    }
}

void hf_core_evict(hf_core *core)
{
    const hf_core_options *options = &core->options;
    HF_LIST_EACH(node, &core->ended)
    {
        if ((core->ended_count <= options->ended_max && core->used <= options->mem_max) || core->status != HF_OK) {
            break;
        }
        evict_if_free(core, &HF_CONTAINER(node, hf_slot, lru_link)->run);
    }
    HF_LIST_EACH(node, &core->lru)
    {
        if (core->used <= options->mem_max || core->status != HF_OK) {
            return;
        }
        evict_if_free(core, &HF_CONTAINER(node, hf_slot, lru_link)->run);
    }
}
