/* Canceling: one walk down the tree marks and wakes; the fibers then end by themselves.
 *
 * fiber-C1  self->cx decides whether the waits of a fiber fail. It belongs to the innermost scope or shield that the
 *           fiber has open, or else to its branch.
 * fiber-C2  All nodes below a canceled node are canceled, except below a shield, which is canceled by its own bound
 *           instead.
 * fiber-C3  The walk stays on the home's thread. A child that runs on another thread gets a message, and its branch
 *           is pinned until the message has come back. A child that has not started gets a flag, which is checked
 *           when it starts.
 * fiber-C4  A cancel does not wake a join: the children are canceled, and their end wakes it.
 * The walk keeps its work list in the branches themselves, so that a deep tree does not become a deep recursion. */
#include "fiber/crew/crew_private.h"
#include "fiber/sched/wait.h"
#include "fiber/scope/branch.h"

#include <limits.h>

typedef struct walk {
    hf_branch *head;
    hf_cause cause;
    const char *reason;
    const hf_failure *failure;
    hf_sched *sched;
    unsigned at_once; /* fibers that the walk may still interrupt itself */
} walk;

/* Fibers whose waits the walk itself claims. Touching 100,000 stacks would delay the canceler for long. Further
 * children are only put on a list, and interrupted before any other fiber runs on the scheduler. */
enum { INTERRUPTED_AT_ONCE_MAX = 64 };

/* A crew's fibers are all interrupted at once, because a replay repeats the order in which they are woken. */
static unsigned at_once_in(const hf_scope *scope)
{
    return hf_crew_of_scope(scope) != NULL ? UINT_MAX : INTERRUPTED_AT_ONCE_MAX;
}

static void mark_cx(const walk *w, hf_cx *cx, bool inherited)
{
    hf_assert(w->cause != HF_CAUSE_NONE && w->reason != NULL);
    cx->cause = (uint8_t)w->cause;
    cx->reason = w->reason;
    cx->failure = w->failure;
    cx->inherited = inherited;
    atomic_store_explicit(&cx->canceled, true, memory_order_release);
}

void hf_cx_inherit(hf_cx *cx, const hf_cx *parent)
{
    if (atomic_load_explicit(&parent->canceled, memory_order_acquire)) {
        hf_assert(parent->cause != HF_CAUSE_NONE && parent->reason != NULL);
        cx->cause = parent->cause;
        cx->reason = parent->reason;
        cx->failure = parent->failure;
        cx->inherited = true;
        atomic_store_explicit(&cx->canceled, true, memory_order_release);
    }
}

static void push_children(walk *w, hf_scope *scope)
{
    hf_msg *head = w->head != NULL ? &w->head->cancel_msg : NULL;
    HF_LIST_EACH(node, &scope->children)
    {
        hf_branch *branch = HF_CONTAINER(node, hf_branch, siblings);
        hf_assert(branch->scope == scope);
        if (!branch->pinned) { /* pinned: its cancel is on the way */
            branch->cancel_msg.next = head;
            head = &branch->cancel_msg;
        }
    }
    w->head = head != NULL ? HF_CONTAINER(head, hf_branch, cancel_msg) : NULL;
}

/* Marks one scope; its children go on the work list. */
static void mark_scope(walk *w, hf_scope *scope, bool inherited)
{
    hf_assert(scope->home == w->sched); /* fiber-F1, fiber-C3 */
    if (atomic_load_explicit(&scope->cx.canceled, memory_order_relaxed)) {
        scope->cx.inherited |= inherited;
        return;
    }
    mark_cx(w, &scope->cx, inherited);
    push_children(w, scope);
}

/* Cancels the scopes that the fiber has open inside `until` (NULL: all its scopes), from `until` up to the next shield.
 * Wakes the fiber if no shield is in between. */
static void interrupt_fiber(walk *w, hf_fiber *fiber, hf_scope *until)
{
    hf_assert(fiber->sched == w->sched); /* fiber-C3 */
    hf_scope *from = fiber->scope;
    for (hf_scope *scope = fiber->scope; scope != until; scope = scope->outer) {
        if (scope->is_shield && !HF_CANARY(HF_BUG_SHIELD_IGNORED)) {
            from = scope->outer;
        }
    }
    for (hf_scope *scope = from; scope != until; scope = scope->outer) {
        mark_scope(w, scope, true);
    }
    hf_wait *wait = HF_CANARY(HF_BUG_CANCEL_AT_PARK) ? NULL : fiber->wait;
    hf_assert(wait == NULL || wait->fiber == fiber); /* fiber-F3 */
    if (from == fiber->scope && wait != NULL && wait->kind->abort != NULL && wait->kind->abort(wait)) {
        hf_wake(wait, HF_ERR_CANCELED);
    }
}

/* The same for a plain or pool thread, whose scopes may have other homes. `cx` is marked under its lock. */
static void interrupt_thread(walk *w, hf_fiber *thread, hf_scope *until, hf_cx *cx, bool inherited)
{
    hf_assert(thread->kind == HF_FIBER_THREAD);
    hf_wait *claimed = NULL;
    hf_spin_lock(&thread->lock);
    if (cx != NULL && !atomic_load_explicit(&cx->canceled, memory_order_relaxed)) {
        mark_cx(w, cx, inherited);
    }
    hf_scope *from = thread->scope;
    bool inside = until == NULL;
    for (hf_scope *scope = thread->scope; scope != NULL; scope = scope->outer) {
        if (scope == until) {
            inside = true;
            break;
        }
        if (scope->is_shield) {
            from = scope->outer;
        }
    }
    for (hf_scope *scope = from; inside && scope != until; scope = scope->outer) {
        hf_scope_cancel_post(scope, w->cause, w->reason, true);
    }
    /* If a scope is open inside `until`, the cancel of that scope ends the wait: the thread must find the scope
     * canceled. */
    hf_wait *wait = thread->wait;
    hf_assert(wait == NULL || wait->fiber == thread); /* fiber-F3 */
    if (thread->scope == until && wait != NULL && wait->kind->abort != NULL && wait->kind->abort(wait)) {
        claimed = wait;
    }
    hf_spin_unlock(&thread->lock);
    if (claimed != NULL) {
        hf_wake(claimed, HF_ERR_CANCELED);
    }
}

static void on_cancel_returned(hf_sched *sched, hf_msg *msg)
{
    hf_branch *branch = HF_CONTAINER(msg, hf_branch, cancel_msg);
    hf_assert(branch->pinned); /* fiber-C3 */
    branch->pinned = false;
    if (branch->state == HF_BRANCH_DONE && !branch->keep) {
        hf_branch_free(sched->rt, sched, branch);
    }
}

static void run_walk(walk *w);
static void interrupt_here(hf_sched *sched, hf_branch *branch);

/* On the scheduler where the branch runs, or ran: it may have ended meanwhile. */
static void on_cancel_msg(hf_sched *sched, hf_msg *msg)
{
    hf_branch *branch = HF_CONTAINER(msg, hf_branch, cancel_msg);
    hf_assert(branch->pinned && branch->cancel_home != sched); /* fiber-C3 */
    interrupt_here(sched, branch);
    branch->cancel_msg.run = on_cancel_returned;
    hf_sched_post(branch->cancel_home, &branch->cancel_msg);
}

static void interrupt_here(hf_sched *sched, hf_branch *branch)
{
    hf_assert(branch->fiber == NULL || branch->fiber->sched == sched); /* fiber-F2, fiber-C3 */
    if (branch->fiber != NULL && !atomic_load_explicit(&branch->cx.canceled, memory_order_relaxed)) {
        /* Nobody waits for this walk: it may take its time. */
        walk w = {NULL, (hf_cause)branch->cx.cause, branch->cx.reason, NULL, sched, UINT_MAX};
        mark_cx(&w, &branch->cx, true);
        interrupt_fiber(&w, branch->fiber, NULL);
        run_walk(&w);
    }
}

static void on_interrupts(hf_sched *sched, hf_msg *msg)
{
    (void)msg;
    while (sched->interrupt_head != NULL) {
        hf_branch *branch = sched->interrupt_head;
        hf_msg *next = branch->cancel_msg.next;
        sched->interrupt_head = next != NULL ? HF_CONTAINER(next, hf_branch, cancel_msg) : NULL;
        interrupt_here(sched, branch);
        on_cancel_returned(sched, &branch->cancel_msg);
    }
}

static void interrupt_soon(hf_sched *sched, hf_branch *branch)
{
    hf_assert(!branch->pinned); /* fiber-C3 */
    branch->pinned = true;
    branch->cancel_msg.next = NULL;
    if (sched->interrupt_head != NULL) {
        sched->interrupt_tail->cancel_msg.next = &branch->cancel_msg;
        sched->interrupt_tail = branch;
        return;
    }
    sched->interrupt_head = sched->interrupt_tail = branch;
    sched->interrupt_msg.run = on_interrupts;
    hf_sched_post_locked(sched, &sched->interrupt_msg);
}

/* At home (fiber-F1, fiber-C3): checked where the branch, or its scope, joined the walk. */
static void cancel_branch(walk *w, hf_branch *branch)
{
    if (!atomic_load_explicit(&branch->cancel_requested, memory_order_relaxed)) {
        branch->cx.cause = (uint8_t)w->cause;
        branch->cx.reason = w->reason;
        atomic_store(&branch->cancel_requested, true);
    } else if (branch->pinned) {
        return; /* on its way already */
    }
    if (branch->on != NULL && hf_dispatch_cancel(w->sched, branch)) {
        return;
    }
    if (__atomic_load_n(&branch->state, __ATOMIC_RELAXED) == HF_BRANCH_DELAYED) { /* a thief may be starting it */
        hf_delay_end(w->sched, branch);
        return;
    }
    hf_sched *at = atomic_load(&branch->at);
    if (at == w->sched && (w->at_once > 0 || branch->fiber == at->current)) {
        w->at_once -= w->at_once > 0;
        if (branch->fiber != NULL && !atomic_load_explicit(&branch->cx.canceled, memory_order_relaxed)) {
            mark_cx(w, &branch->cx, true);
            interrupt_fiber(w, branch->fiber, NULL);
        }
    } else if (at == NULL || branch->pinned || HF_CANARY(HF_BUG_CANCEL_MSG_DROPPED)) {
        return; /* not started: checked when it starts; or a cancel is on its way already */
    } else if (at == w->sched) {
        interrupt_soon(at, branch);
    } else {
        branch->pinned = true;
        branch->cancel_home = w->sched;
        branch->cancel_msg.run = on_cancel_msg;
        hf_sched_post(at, &branch->cancel_msg);
    }
}

static void run_walk(walk *w)
{
    while (w->head != NULL) {
        hf_branch *branch = w->head;
        hf_msg *next = branch->cancel_msg.next;
        w->head = next != NULL ? HF_CONTAINER(next, hf_branch, cancel_msg) : NULL;
        cancel_branch(w, branch);
    }
}

void hf_scope_mark(hf_sched *sched, hf_scope *scope, hf_cause cause, const char *reason, const hf_failure *failure,
                   bool inherited)
{
    hf_assert(scope->home == sched); /* fiber-F1 */
    walk w = {NULL, cause, reason, failure, sched, at_once_in(scope)};
    bool was = atomic_load_explicit(&scope->cx.canceled, memory_order_relaxed);
    mark_scope(&w, scope, inherited);
    if (!was) {
        if (scope->by_thread) {
            interrupt_thread(&w, scope->owner, scope, NULL, inherited);
        } else {
            interrupt_fiber(&w, scope->owner, scope);
        }
    }
    run_walk(&w);
}

void hf_branch_mark(hf_sched *sched, hf_branch *branch, hf_cause cause, const char *reason, const hf_failure *failure)
{
    hf_assert(__atomic_load_n(&branch->state, __ATOMIC_RELAXED) != HF_BRANCH_DONE); /* fiber-L4 */
    hf_assert(branch->scope->home == sched);                                        /* fiber-F1, fiber-C3 */
    walk w = {NULL, cause, reason, failure, sched, at_once_in(branch->scope)};
    cancel_branch(&w, branch);
    run_walk(&w);
}

void hf_thread_branch_interrupt(hf_sched *sched, hf_fiber *thread, hf_branch *branch)
{
    hf_spin_lock(&thread->lock); /* the home and the thread itself may both do this: the first one writes */
    walk w = {NULL, (hf_cause)branch->cx.cause, branch->cx.reason, NULL, sched, INTERRUPTED_AT_ONCE_MAX};
    hf_spin_unlock(&thread->lock);
    interrupt_thread(&w, thread, NULL, &branch->cx, true);
}

void hf_branch_start_cx(hf_branch *branch)
{
    hf_assert(atomic_load_explicit(&branch->cancel_requested, memory_order_relaxed)); /* fiber-C3 */
    walk w = {NULL, (hf_cause)branch->cx.cause, branch->cx.reason, NULL, NULL, INTERRUPTED_AT_ONCE_MAX};
    mark_cx(&w, &branch->cx, true);
}

static void on_scope_cancel(hf_sched *sched, hf_msg *msg)
{
    hf_scope *scope = HF_CONTAINER(msg, hf_scope, cancel_msg);
    hf_assert(scope->home == sched); /* fiber-F1 */
    hf_cause cause = scope->cancel_cause;
    const char *reason = scope->cancel_reason;
    atomic_store(&scope->cancel_posted, false);
    hf_scope_mark(sched, scope, cause, reason, NULL, atomic_load(&scope->cancel_inherited));
    unsigned before = atomic_fetch_sub(&scope->pending, 1);
    hf_assert(before > 0); /* fiber-J3 */
}

static void post_cancel(hf_scope *scope, hf_cause cause, const char *reason, bool inherited,
                        void (*post)(hf_sched *sched, hf_msg *msg))
{
    if (inherited) { /* also when another cancel is on its way already */
        atomic_store(&scope->cancel_inherited, true);
    }
    if (atomic_exchange(&scope->cancel_posted, true)) {
        return;
    }
    scope->cancel_cause = cause;
    scope->cancel_reason = reason;
    atomic_fetch_add(&scope->pending, 1);
    scope->cancel_msg.run = on_scope_cancel;
    if (!hf_crew_post(scope, &scope->cancel_msg)) {
        post(scope->home, &scope->cancel_msg); /* from here on the scope may be closed */
    }
}

void hf_scope_cancel_post(hf_scope *scope, hf_cause cause, const char *reason, bool inherited)
{
    post_cancel(scope, cause, reason, inherited, hf_sched_post_locked);
}

void hf_scope_cancel_from(hf_scope *scope, const char *reason)
{
    post_cancel(scope, HF_CAUSE_EXPLICIT, reason, false, hf_sched_post);
}

const char *hf_cause_name(hf_cause cause)
{
    static const char *const WORDS[] = {
#define ROW(name, word, text) [name] = word,
        HF_CAUSE_MAP(ROW)
#undef ROW
    };
    return (size_t)cause < HF_COUNT_OF(WORDS) ? WORDS[cause] : "unknown";
}
