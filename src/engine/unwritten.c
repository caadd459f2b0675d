#include "engine/unwritten.h"

#include "engine/core_private.h"
#include "engine/machines/query.h"
#include "engine/machines/speculative.h"
#include "engine/machines/update.h"

hf_unwritten *hf_unwritten_get(hf_core *core, hf_run *run)
{
    hf_slot *slot = HF_SLOT(run);
    if (slot->unwritten == NULL) {
        slot->unwritten = hf_core_alloc(core, sizeof *slot->unwritten);
        if (slot->unwritten != NULL) {
            slot->unwritten->run = run;
            hf_list_init(&slot->unwritten->queries);
            hf_list_init(&slot->unwritten->updates);
            hf_core_use(core, run);
        }
    }
    return slot->unwritten;
}

void hf_unwritten_mark(hf_core *core, hf_unwritten *unwritten)
{
    if (!hf_node_is_linked(&unwritten->unsettled_link)) {
        hf_list_push_back(&core->unsettled, &unwritten->unsettled_link);
    }
}

void hf_unwritten_settle(hf_core *core)
{
    hf_node *node = NULL;
    while (core->status == HF_OK && (node = hf_list_pop_front(&core->unsettled)) != NULL) {
        hf_unwritten *unwritten = HF_CONTAINER(node, hf_unwritten, unsettled_link);
        hf_run *run = unwritten->run;
        hf_core_reset_scratch(core);
        hf_updates_settle(core, run, unwritten); /* first: they may need a workflow task */
        hf_queries_settle(core, run, unwritten);
        hf_unwritten_tidy(core, run);
    }
}

static bool is_empty(const hf_unwritten *unwritten)
{
    return hf_list_is_empty(&unwritten->queries) && hf_list_is_empty(&unwritten->updates) &&
           unwritten->speculative.state == HF_WFT_NONE;
}

static void release(hf_core *core, hf_slot *slot)
{
    hf_assert(is_empty(slot->unwritten));
    if (hf_node_is_linked(&slot->unwritten->unsettled_link)) {
        hf_list_remove(&slot->unwritten->unsettled_link);
    }
    hf_core_free_mem(core, slot->unwritten, sizeof *slot->unwritten);
    slot->unwritten = NULL;
}

void hf_unwritten_tidy(hf_core *core, hf_run *run)
{
    hf_slot *slot = HF_SLOT(run);
    if (slot->unwritten != NULL && is_empty(slot->unwritten)) {
        release(core, slot);
        hf_core_unuse(core, run);
    }
}

void hf_unwritten_free(hf_core *core, hf_slot *slot)
{
    if (slot->unwritten != NULL) {
        hf_queries_free(core, slot->unwritten);
        hf_updates_free(core, slot->unwritten);
        hf_speculative_free(core, slot->unwritten);
        release(core, slot);
    }
}

uint64_t hf_unwritten_hash(const hf_slot *slot, uint64_t hash)
{
    if (slot->unwritten == NULL) {
        return hash;
    }
    hash = hf_queries_hash(slot->unwritten, hash);
    hash = hf_updates_hash(slot->unwritten, hash);
    return hf_speculative_hash(slot->unwritten, hash);
}
