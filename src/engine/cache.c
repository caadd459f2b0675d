/* The runs in memory. A run stays while something holds it (engine-E4); the others are in the order of their last use, and leave from its
 * beginning when memory gets short. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/cursor.h"
#include "engine/due.h"
#include "engine/load.h"
#include "engine/matching.h"
#include "engine/unwritten.h"

void hf_core_touch(hf_core *core, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad); /* ledger-B1: a bad run gets no new changes */
    hf_core_use(core, run);
    if (HF_SLOT(run)->unwritten != NULL) {
        hf_unwritten_mark(core, HF_SLOT(run)->unwritten);
    }
    if (!hf_node_is_linked(&HF_SLOT(run)->dirty_link)) {
        HF_SLOT(run)->commit_dirty = core->commit_next;
        hf_list_push_back(&core->dirty, &HF_SLOT(run)->dirty_link);
    }
    if (!hf_node_is_linked(&HF_SLOT(run)->batch_link)) {
        HF_SLOT(run)->batch_start = run->log.len;
        hf_list_push_back(&core->touched, &HF_SLOT(run)->batch_link);
        core->run_commits++;
        run->transitions++;
        run->transition_time = core->now.wall;
    }
    if (HF_SLOT(run)->step != core->step) {
        HF_SLOT(run)->step = core->step;
        core->transitions++;
    }
    hf_assert(HF_SLOT(run)->commit_dirty <= core->commit_next && HF_SLOT(run)->batch_start <= run->log.len);
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

/* The time of a heartbeat that was not written is nowhere but here. */
static bool has_unwritten_heartbeat(const hf_run *run)
{
    for (size_t i = 0; i < run->activities.count; i++) {
        if (run->activities.items[i]->heard_time != 0 && run->activities.items[i]->heartbeat > 0) {
            return true;
        }
    }
    return false;
}

void hf_core_unuse(hf_core *core, hf_run *run)
{
    if (HF_SLOT(run)->loading || hf_node_is_linked(&HF_SLOT(run)->lru_link) ||
        hf_node_is_linked(&HF_SLOT(run)->dirty_link) || hf_run_has_messages(run) || HF_SLOT(run)->suspects > 0 ||
        HF_SLOT(run)->fetch_id != 0 || HF_SLOT(run)->unwritten != NULL || HF_SLOT(run)->deletion != NULL ||
        HF_SLOT(run)->operation != NULL || HF_SLOT(run)->resets > 0 || has_unwritten_heartbeat(run)) {
        return;
    }
    hf_assert(!hf_node_is_linked(&HF_SLOT(run)->batch_link)); /* engine-E4 */
    HF_SLOT(run)->is_ended = !hf_run_is_open(run);
    core->ended_count += HF_SLOT(run)->is_ended ? 1 : 0;
    hf_list_push_back(HF_SLOT(run)->is_ended ? &core->ended : &core->lru, &HF_SLOT(run)->lru_link);
}

static void evict(hf_core *core, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && run->commit_last <= core->commit_durable); /* engine-E4 */
    HF_PROBE(core, HF_PROBE_EVICTED);
    hf_match_evicted(core, run);
    /* The due cursor may miss the row of this deadline, or there is no row with this time: then the deadline stays in memory, or
     * it would be found too late, or again and again. */
    int64_t due = hf_run_next_due(run);
    bool read = hf_cursor_may_miss(&core->due_cursor, due, run->number) || due != run->due_written;
    if (!HF_SLOT(run)->bad && due != INT64_MAX && read && !HF_CANARY(HF_BUG_DUE_ROW_FORGOTTEN)) {
        (void)hf_due_add_cold(core, due, run->number);
    }
    hf_run_remove(core, run);
}

/* False: its last change is not durable, and neither is that of most runs behind it, which have been clean for a shorter time. They are
 * looked at again after the next commit. */
static bool evict_if_free(hf_core *core, hf_run *run)
{
    hf_assert(!hf_node_is_linked(&HF_SLOT(run)->dirty_link)); /* engine-E4 */
    if (run->commit_last > core->commit_durable) {
        return false;
    }
    /* A run whose deadline has come may have been loaded just for that. */
    bool is_due = HF_SLOT(run)->due.place != 0 && HF_SLOT(run)->due.key <= core->now.wall;
    bool is_waited_for = !hf_list_is_empty(&HF_SLOT(run)->waiting);
    if (!is_waited_for && !is_due) {
        evict(core, run);
    }
    return true;
}

void hf_core_evict(hf_core *core)
{
    const hf_core_options *options = &core->options;
    HF_LIST_EACH(node, &core->ended)
    {
        if ((core->ended_count <= options->ended_max && core->used <= options->mem_max) || core->status != HF_OK) {
            break;
        }
        if (!evict_if_free(core, &HF_CONTAINER(node, hf_slot, lru_link)->run)) {
            break;
        }
    }
    HF_LIST_EACH(node, &core->lru)
    {
        if (core->used <= options->mem_max || core->status != HF_OK) {
            return;
        }
        if (!evict_if_free(core, &HF_CONTAINER(node, hf_slot, lru_link)->run)) {
            return;
        }
    }
}
