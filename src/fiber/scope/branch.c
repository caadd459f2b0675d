/* Nodes of the tree: branches and scopes, in dense slabs. A free branch goes to the scheduler that freed it. If too
 * many collect there, a batch moves to the runtime's depot, so that forking on one thread and ending on another does
 * not use up memory. */
#include "fiber/scope/branch.h"

#include <string.h>

enum { SLAB_LEN = 64 * 1024, BATCH = 512 };

typedef struct slab {
    struct slab *next;
} slab;

/* Under depot_lock: carves a slab into branches and chains them in front of the depot. */
static void carve_branches(hf_runtime *rt, slab *fresh)
{
    fresh->next = rt->slabs;
    rt->slabs = fresh;
    hf_branch *branches = (hf_branch *)(void *)((char *)fresh + 64);
    size_t count = (SLAB_LEN - 64) / sizeof *branches;
    for (size_t i = count; i-- > 0;) {
        memset(&branches[i], 0, sizeof branches[i]);
        branches[i].next = rt->depot_branches;
        rt->depot_branches = &branches[i];
    }
}

/* Takes up to `count` branches from the depot. */
static hf_branch *depot_take(hf_runtime *rt, unsigned count, unsigned *ret_count)
{
    hf_assert(count > 0);
    hf_spin_lock(&rt->depot_lock);
    if (rt->depot_branches == NULL) {
        hf_spin_unlock(&rt->depot_lock);
        slab *fresh = rt->allocator.allocate(rt->allocator.state, SLAB_LEN, 64);
        if (fresh == NULL) {
            return NULL;
        }
        hf_spin_lock(&rt->depot_lock);
        carve_branches(rt, fresh);
    }
    hf_branch *first = rt->depot_branches;
    hf_assert(first != NULL);
    hf_branch *last = first;
    unsigned taken = 1;
    while (taken < count && last->next != NULL) {
        last = last->next;
        taken++;
    }
    rt->depot_branches = last->next;
    hf_spin_unlock(&rt->depot_lock);
    last->next = NULL;
    *ret_count = taken;
    return first;
}

hf_branch *hf_branch_new_slow(hf_runtime *rt, hf_sched *sched)
{
    hf_assert(sched == NULL || (sched->rt == rt && sched->free_branches == NULL));
    unsigned count = 0;
    hf_branch *branch = depot_take(rt, sched != NULL ? BATCH : 1, &count);
    hf_assert(branch == NULL ||
              (branch->state == HF_BRANCH_NEW && branch->fiber == NULL && branch->extra == NULL)); /* clean */
    if (branch != NULL && sched != NULL) {
        sched->free_branches = branch->next;
        sched->free_branch_count = count - 1;
    }
    return branch;
}

static void depot_give(hf_runtime *rt, hf_branch *first, hf_branch *last)
{
    hf_spin_lock(&rt->depot_lock);
    last->next = rt->depot_branches;
    rt->depot_branches = first;
    hf_spin_unlock(&rt->depot_lock);
}

void hf_branch_free_slow(hf_runtime *rt, hf_branch *branch)
{
    depot_give(rt, branch, branch);
}

void hf_branch_free_many(hf_sched *sched)
{
    hf_assert(sched->free_branch_count > BATCH);
    hf_branch *first = sched->free_branches;
    hf_branch *last = first;
    for (unsigned i = 1; i < BATCH; i++) {
        last = last->next;
    }
    sched->free_branches = last->next;
    sched->free_branch_count -= BATCH;
    depot_give(sched->rt, first, last);
}

/* Scopes are fewer: a list per scheduler, the rest straight from the allocator. */
enum { SCOPES_CACHED_MAX = 64 };

hf_scope *hf_scope_alloc(hf_runtime *rt, hf_sched *sched)
{
    if (sched != NULL && sched->free_scopes != NULL) {
        hf_scope *scope = sched->free_scopes;
        sched->free_scopes = scope->outer;
        return scope; /* init_scope (scope.c) sets every field */
    }
    return hf_rt_alloc(rt, sizeof(hf_scope));
}

void hf_scope_release(hf_runtime *rt, hf_sched *sched, hf_scope *scope)
{
    hf_assert(!hf_node_is_linked(&scope->roots) && scope->alarm.pos == 0 && scope->joiner == NULL);
    hf_assert(atomic_load_explicit(&scope->pending, memory_order_relaxed) == 0); /* fiber-J3 */
    if (scope->is_placed) {
        return;
    }
    if (sched != NULL && (sched->free_scopes == NULL || sched->free_scopes->id < SCOPES_CACHED_MAX)) {
        scope->id = sched->free_scopes == NULL ? 1 : sched->free_scopes->id + 1; /* length of the list from here */
        scope->outer = sched->free_scopes;
        sched->free_scopes = scope;
        return;
    }
    hf_rt_free(rt, scope, sizeof *scope);
}

void hf_slabs_deinit(hf_runtime *rt)
{
    slab *at = rt->slabs;
    while (at != NULL) {
        slab *next = at->next;
        rt->allocator.release(rt->allocator.state, at, SLAB_LEN);
        at = next;
    }
    rt->slabs = NULL;
    rt->depot_branches = NULL;
}
