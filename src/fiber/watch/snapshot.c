/* Taking the picture.
 *
 * While the world is stopped, no other thread touches the objects of the schedulers: lists of children, chains of
 * scopes, waits, parked stacks. Plain and pool threads are not stopped. Objects that they may touch are read under
 * the lock that they would hold: that of the list of root scopes, that of the pool for the branch that a thread
 * runs, that of the thread for its wait. A root scope that was in the list after the stop stays until the world runs
 * again, because its end needs a turn of its home.
 *
 * The tree may be deep and our stack small, so there is no recursion: the array of nodes is its own work list.
 * Visiting a scope appends its children, and visiting a branch appends the scopes that its fiber has open, the
 * outermost first:
 *
 *     roots | children of root 1 | children of root 2 | scopes of child 1 | ...
 *              ^ cursor                                                     ^ end
 *
 * Memory may be allocated meanwhile: threads in user code continue, and block only when they enter the library. */
#include "fiber/watch/snapshot.h"

#include "fiber/crew/crew_private.h"
#include "fiber/crew/job.h"
#include "fiber/sched/dispatch.h"
#include "fiber/sched/safepoint.h"
#include "fiber/watch/backtrace.h"

enum { NAME_LEN_MAX = 256 };
static const size_t PART_LEN_MAX = (size_t)64 << 20; /* of nodes, of strings, of addresses */

typedef struct camera {
    hf_snapshot *snap;
    hf_runtime *rt;
    hf_fiber *self; /* the caller */
    bool with_stacks;
    int64_t now_ns;
    int64_t wall_ns;
} camera;

static uint32_t keep_string(hf_snapshot *snap, const char *text)
{
    if (text == NULL || hf_buf_status(&snap->strings) != HF_OK) {
        return HF_SNAP_NONE;
    }
    size_t slot = ((uintptr_t)text * UINT64_C(0x9e3779b97f4a7c15) >> 32) % HF_COUNT_OF(snap->recent);
    if (text == snap->recent[slot].from) { /* thousands of children may share one name */
        return snap->recent[slot].offset;
    }
    uint32_t offset = (uint32_t)snap->strings.len;
    size_t len = strnlen(text, NAME_LEN_MAX);
    if (!hf_buf_reserve(&snap->strings, len + 1)) {
        return HF_SNAP_NONE;
    }
    hf_buf_put(&snap->strings, text, len);
    hf_buf_put(&snap->strings, "", 1);
    snap->recent[slot].from = text;
    snap->recent[slot].offset = offset;
    return offset;
}

/* Appends `count` nodes. False: they do not fit. */
static bool add_nodes(hf_snapshot *snap, uint32_t count)
{
    size_t len = count * sizeof(hf_snap_node);
    if (!hf_buf_reserve(&snap->nodes, len)) {
        return false;
    }
    hf_assert(snap->nodes.len == snap->count * sizeof(hf_snap_node));
    memset(snap->nodes.data + snap->nodes.len, 0, len);
    snap->nodes.len += len;
    snap->count += count;
    return true;
}

static void see_cx(hf_snapshot *snap, hf_snap_node *node, const hf_cx *cx)
{
    node->cx = cx;
    node->reason = HF_SNAP_NONE;
    if (atomic_load_explicit(&cx->canceled, memory_order_acquire)) {
        node->cause = cx->cause;
        node->reason = keep_string(snap, cx->reason);
    }
}

static void see_wait(hf_snapshot *snap, hf_snap_node *node, const hf_wait *wait)
{
    node->verb = wait->kind->verb;
    if (wait->object_name != NULL && wait->object_name[0] != '\0') {
        node->object = keep_string(snap, wait->object_name);
    }
}

static void see_thread_wait(hf_snapshot *snap, hf_snap_node *node, hf_fiber *thread)
{
    const char *verb = NULL;
    const char *object = NULL;
    hf_spin_lock(&thread->lock);
    if (thread->wait != NULL) {
        verb = thread->wait->kind->verb;
        object = thread->wait->object_name;
    }
    hf_spin_unlock(&thread->lock);
    node->verb = verb;
    if (object != NULL && object[0] != '\0') {
        node->object = keep_string(snap, object);
    }
}

/* ---- Scopes ------------------------------------------------------------------------------------------------------ */

static void see_scope(const camera *cam, uint32_t idx, uint32_t parent, hf_scope *scope)
{
    hf_snapshot *snap = cam->snap;
    hf_snap_node *node = hf_snap_node_at(snap, idx);
    node->kind = scope->is_shield ? HF_SNAP_SHIELD : HF_SNAP_SCOPE;
    node->parent = parent;
    node->object = HF_SNAP_NONE;
    see_cx(snap, node, &scope->cx);
    node->name = keep_string(snap, scope->name);
    node->policy = scope->is_shield ? HF_SNAP_NONE : keep_string(snap, scope->policy.hooks->name);
    node->thread = scope->home->index;
    node->age_ns = cam->now_ns - scope->opened_ns;
    int64_t now_ns =
        hf_crew_of_scope(scope) != NULL ? cam->wall_ns : cam->now_ns; /* a workflow's clock shows wall time */
    node->left_ns = scope->deadline.ns == INT64_MAX ? INT64_MAX : scope->deadline.ns - now_ns;
    node->number = scope->id;
    node->tally = scope->tally;
    node->by_thread = scope->by_thread;
    node->is_closing = scope->closing;
    if (scope->by_thread || scope->owner == NULL) {
        node->parent_cx = scope->parent_cx != &cam->rt->root_cx ? scope->parent_cx : NULL;
        if (scope->joiner != NULL) {
            see_wait(snap, node, scope->joiner);
        }
    }
}

/* The scopes that a fiber has open are linked from the innermost out, and shown from the outermost in. */
static bool see_open_scopes(const camera *cam, uint32_t branch_idx, const hf_fiber *fiber)
{
    uint32_t depth = 0;
    for (const hf_scope *scope = fiber->scope; scope != NULL; scope = scope->outer) {
        depth++;
    }
    uint32_t first = cam->snap->count;
    if (!add_nodes(cam->snap, depth)) {
        return false;
    }
    uint32_t idx = first + depth;
    for (hf_scope *scope = fiber->scope; scope != NULL; scope = scope->outer) {
        idx--;
        see_scope(cam, idx, idx == first ? branch_idx : idx - 1, scope);
    }
    hf_assert(idx == first);
    return true;
}

/* ---- Branches ---------------------------------------------------------------------------------------------------- */

static void see_stack(const camera *cam, hf_snap_node *node, void *const *pcs, int count)
{
    node->pc_first = (uint32_t)(cam->snap->pcs.len / sizeof(void *));
    size_t len = (size_t)count * sizeof(void *);
    if (count > 0 && hf_buf_reserve(&cam->snap->pcs, len)) {
        hf_buf_put(&cam->snap->pcs, pcs, len);
        node->pc_count = (uint8_t)count;
    }
}

static void see_parked(const camera *cam, hf_snap_node *node, const hf_fiber *fiber)
{
    if (cam->with_stacks) {
        void *pcs[HF_BACKTRACE_DEPTH_MAX];
        see_stack(cam, node, pcs, hf_backtrace_of(fiber, pcs, HF_BACKTRACE_DEPTH_MAX));
    }
}

static hf_snap_state see_fiber(const camera *cam, hf_snap_node *node, const hf_fiber *fiber)
{
    if (fiber == NULL) {
        return HF_SNAP_DONE;
    }
    hf_assert(fiber->kind != HF_FIBER_THREAD);
    node->thread = fiber->sched->index;
    node->stack_size = (uint32_t)(fiber->stack_hi - fiber->stack_lo);
    if (cam->with_stacks) {
        node->stack_most = (uint32_t)hf_stack_most(fiber);
    }
    if (fiber == cam->self) {
        see_stack(cam, node, cam->snap->pcs_here, cam->snap->pc_count);
        return HF_SNAP_CALLER;
    }
    if (__atomic_load_n(&fiber->lost, __ATOMIC_RELAXED) != 0) {
        return HF_SNAP_LOST;
    }
    if (fiber->sched->current == fiber) {
        return HF_SNAP_RUNNING;
    }
    see_parked(cam, node, fiber);
    if (fiber->wait == NULL) {
        return HF_SNAP_READY;
    }
    see_wait(cam->snap, node, fiber->wait);
    return HF_SNAP_WAITING;
}

/* A branch that was given to a pool: its thread is held by a pin while we look at it. */
static hf_snap_state see_pool_branch(const camera *cam, hf_snap_node *node, hf_branch *branch)
{
    hf_dispatcher *pool = branch->on->pool;
    hf_spin_lock(&pool->lock);
    hf_fiber *thread = branch->fiber;
    hf_branch_state state = (hf_branch_state)branch->state;
    if (thread != NULL) {
        hf_pool_thread_pin(thread);
    }
    hf_spin_unlock(&pool->lock);
    if (thread == NULL) {
        return state == HF_BRANCH_NEW ? HF_SNAP_NEW : (state == HF_BRANCH_DELAYED ? HF_SNAP_DELAYED : HF_SNAP_DONE);
    }
    if (thread == cam->self) {
        hf_pool_thread_unpin(thread);
        see_stack(cam, node, cam->snap->pcs_here, cam->snap->pc_count);
        return HF_SNAP_CALLER;
    }
    see_thread_wait(cam->snap, node, thread);
    hf_pool_thread_unpin(thread);
    return HF_SNAP_ON_POOL;
}

static void see_branch(const camera *cam, uint32_t idx, uint32_t parent, hf_branch *branch)
{
    hf_snap_node *node = hf_snap_node_at(cam->snap, idx);
    node->kind = HF_SNAP_BRANCH;
    node->parent = parent;
    node->object = node->policy = HF_SNAP_NONE;
    node->thread = -1;
    node->left_ns = INT64_MAX;
    node->number = branch->index;
    node->age_ns = cam->now_ns - branch->born_ns;
    see_cx(cam->snap, node, &branch->cx);
    if (node->cause == HF_CAUSE_NONE && atomic_load(&branch->cancel_requested)) { /* on its way to where it runs */
        node->cause = branch->cx.cause;
        node->reason = keep_string(cam->snap, branch->cx.reason);
    }
    node->name = keep_string(cam->snap, branch->name);
    if (branch->on != NULL && (branch->on->kind == HF_DISPATCH_POOL || branch->on->kind == HF_DISPATCH_VIEW)) {
        node->state = (uint8_t)see_pool_branch(cam, node, branch);
    } else if (atomic_load(&branch->at) != NULL) {
        node->state = (uint8_t)see_fiber(cam, node, branch->fiber);
    } else {
        node->state = branch->state == HF_BRANCH_DELAYED ? HF_SNAP_DELAYED
                      : hf_branch_is_job(branch)         ? HF_SNAP_JOB
                                                         : HF_SNAP_NEW;
    }
}

/* ---- The walk ---------------------------------------------------------------------------------------------------- */

/* The address of its cx leads from a node back to its scope or branch. */
static bool see_children(const camera *cam, uint32_t idx)
{
    hf_assert(idx < cam->snap->count);
    const hf_snap_node *node = hf_snap_node_at(cam->snap, idx);
    if (node->kind == HF_SNAP_BRANCH) {
        const hf_branch *branch = HF_CONTAINER_CONST(node->cx, hf_branch, cx);
        bool has_fiber = node->thread >= 0 && node->state != HF_SNAP_DONE;
        return !has_fiber || see_open_scopes(cam, idx, branch->fiber);
    }
    const hf_scope *scope = HF_CONTAINER_CONST(node->cx, hf_scope, cx);
    HF_LIST_EACH(child, &scope->children)
    {
        uint32_t at = cam->snap->count;
        if (!add_nodes(cam->snap, 1)) {
            return false;
        }
        see_branch(cam, at, idx, HF_CONTAINER(child, hf_branch, siblings));
    }
    return true;
}

/* Locks must not be held while memory is asked for: count, make room, look again. */
static bool see_roots(const camera *cam)
{
    hf_runtime *rt = cam->rt;
    hf_snapshot *snap = cam->snap;
    size_t room = 0;
    for (;;) {
        size_t count = 0;
        hf_spin_lock(&rt->roots_lock);
        for (int parked = 0; parked < 2; parked++) {
            HF_LIST_EACH(node, parked == 0 ? &rt->roots : &rt->parked)
            {
                hf_scope *scope = HF_CONTAINER(node, hf_scope, roots);
                if (count < room) {
                    hf_snap_node_at(snap, (uint32_t)count)->cx = &scope->cx;
                }
                count++;
            }
        }
        hf_spin_unlock(&rt->roots_lock);
        if (count <= room) {
            snap->count = (uint32_t)count;
            snap->nodes.len = count * sizeof(hf_snap_node);
            break;
        }
        room = count;
        snap->count = 0;
        snap->nodes.len = 0;
        if (!add_nodes(snap, (uint32_t)room)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < snap->count; i++) {
        const hf_cx *cx = hf_snap_node_at(snap, i)->cx;
        hf_scope *scope = HF_CONTAINER((void *)(uintptr_t)cx, hf_scope, cx);
        see_scope(cam, i, HF_SNAP_NONE, scope);
    }
    return true;
}

static void see_threads(const camera *cam)
{
    hf_snapshot *snap = cam->snap;
    snap->thread_count = cam->rt->sched_count;
    for (int i = 0; i < snap->thread_count; i++) {
        const hf_sched *sched = cam->rt->scheds[i];
        const hf_fiber *current = sched->current;
        snap->threads[i].node = HF_SNAP_NONE;
        snap->threads[i].state = current == &sched->idle ? HF_SNAP_THREAD_IDLE
                                 : current == cam->self  ? HF_SNAP_THREAD_CALLER
                                                         : HF_SNAP_THREAD_USER;
    }
}

static void see_all(const camera *cam)
{
    see_threads(cam);
    bool fits = see_roots(cam);
    for (uint32_t cursor = 0; fits && cursor < cam->snap->count; cursor++) {
        fits = see_children(cam, cursor);
    }
    cam->snap->is_cut = !fits;
}

/* ---- Afterwards: the links --------------------------------------------------------------------------------------- */

/* A scope that a thread opened inside a branch or another scope finds its parent by the address of the parent's cx. */
static bool adopt_roots(hf_runtime *rt, hf_snapshot *snap)
{
    uint32_t orphans = 0;
    for (uint32_t i = 0; i < snap->count; i++) {
        orphans += hf_snap_node_at(snap, i)->parent_cx != NULL;
    }
    if (orphans == 0) {
        return true;
    }
    size_t slot_count = 2;
    while (slot_count < (size_t)orphans * 2) {
        slot_count *= 2;
    }
    uint32_t *slots = hf_rt_alloc(rt, slot_count * sizeof *slots); /* index + 1 of the first, chained by `next` */
    if (slots == NULL) {
        return false;
    }
#define SLOT_OF(address) (&slots[((uintptr_t)(address) / 64 * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (slot_count - 1)])
    for (uint32_t i = 0; i < snap->count; i++) {
        hf_snap_node *node = hf_snap_node_at(snap, i);
        if (node->parent_cx != NULL) {
            uint32_t *slot = SLOT_OF(node->parent_cx);
            node->next = *slot;
            *slot = i + 1;
        }
    }
    for (uint32_t i = 0; i < snap->count; i++) {
        const hf_cx *cx = hf_snap_node_at(snap, i)->cx;
        for (uint32_t at = *SLOT_OF(cx); at != 0; at = hf_snap_node_at(snap, at - 1)->next) {
            hf_snap_node *child = hf_snap_node_at(snap, at - 1);
            child->parent = child->parent_cx == cx ? i : child->parent;
        }
    }
#undef SLOT_OF
    hf_rt_free(rt, slots, slot_count * sizeof *slots);
    return true;
}

static void link_nodes(hf_snapshot *snap)
{
    uint32_t last_root = HF_SNAP_NONE;
    snap->first_root = HF_SNAP_NONE;
    for (uint32_t i = 0; i < snap->count; i++) {
        hf_snap_node *node = hf_snap_node_at(snap, i);
        node->first_child = node->last_child = node->next = HF_SNAP_NONE;
    }
    for (uint32_t i = 0; i < snap->count; i++) {
        hf_snap_node *node = hf_snap_node_at(snap, i);
        hf_snap_node *parent = node->parent != HF_SNAP_NONE ? hf_snap_node_at(snap, node->parent) : NULL;
        hf_assert(node->parent == HF_SNAP_NONE || (node->parent < snap->count && node->parent != i));
        uint32_t *first = parent != NULL ? &parent->first_child : &snap->first_root;
        uint32_t *last = parent != NULL ? &parent->last_child : &last_root;
        if (*last != HF_SNAP_NONE) {
            hf_snap_node_at(snap, *last)->next = i;
        } else {
            *first = i;
        }
        *last = i;
        if (node->kind == HF_SNAP_BRANCH && node->thread >= 0 &&
            (node->state == HF_SNAP_RUNNING || node->state == HF_SNAP_CALLER)) {
            snap->threads[node->thread].node = i;
        }
    }
}

hf_status hf_snapshot_take(hf_op *op, hf_runtime *rt, hf_fiber *self, bool with_stacks, hf_snapshot *snap)
{
    hf_buf_init(&snap->nodes, rt->allocator, PART_LEN_MAX);
    hf_buf_init(&snap->strings, rt->allocator, PART_LEN_MAX);
    hf_buf_init(&snap->pcs, rt->allocator, PART_LEN_MAX);
    hf_world_stop(rt);
    camera cam = {snap, rt, self, with_stacks, hf_rt_now(rt).ns, rt->env->ops->wall_now(rt->env).ns};
    see_all(&cam);
    hf_world_start(rt);
    bool has_memory = hf_buf_status(&snap->nodes) != HF_ERR_NOMEM && hf_buf_status(&snap->strings) != HF_ERR_NOMEM &&
                      hf_buf_status(&snap->pcs) != HF_ERR_NOMEM && adopt_roots(rt, snap);
    if (!has_memory) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a picture of the scope tree, after %u nodes", snap->count);
    }
    link_nodes(snap);
    return HF_OK;
}

void hf_snapshot_deinit(hf_snapshot *snap)
{
    hf_buf_deinit(&snap->nodes);
    hf_buf_deinit(&snap->strings);
    hf_buf_deinit(&snap->pcs);
}
