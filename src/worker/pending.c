/* What a run waits for, by the number under which its end will come: that of the event that asked for it, or of the timer.
 * Most runs wait for a few things, so those are in a list. A run that waits for more gets a table for the later ones; if there
 * is no memory for one, the list has to do. */
#include "worker/wf.h"

enum { FEW = 8 };

void hf_wf_pending_init(hf_wf_pending *pending)
{
    hf_list_init(&pending->few);
    pending->buckets = NULL;
}

void hf_wf_pending_deinit(hf_wf_pending *pending, const hf_wf *wf)
{
    if (pending->buckets != NULL) {
        hf_allocator memory = wf->worker->memory;
        memory.release(memory.state, pending->buckets, HF_WF_PENDING_BUCKETS * sizeof(hf_list));
        pending->buckets = NULL;
    }
}

static void make_buckets(hf_wf_pending *pending, const hf_wf *wf)
{
    hf_allocator memory = wf->worker->memory;
    pending->buckets = memory.allocate(memory.state, HF_WF_PENDING_BUCKETS * sizeof(hf_list), _Alignof(hf_list));
    for (size_t i = 0; pending->buckets != NULL && i < HF_WF_PENDING_BUCKETS; i++) {
        hf_list_init(&pending->buckets[i]);
    }
}

void hf_wf_pending_add(hf_wf_pending *pending, const hf_wf *wf, hf_node *node, uint64_t key, int count)
{
    if (HF_UNLIKELY(count > FEW && pending->buckets == NULL)) {
        make_buckets(pending, wf);
    }
    hf_assert(count >= 0 && !hf_node_is_linked(node));
    bool is_late = count > FEW && pending->buckets != NULL;
    hf_list_push_back(is_late ? hf_wf_pending_at(pending, key, 1) : &pending->few, node);
}
