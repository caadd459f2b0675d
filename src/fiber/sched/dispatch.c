/* Dispatchers as users see them: pools, views, serial ones; forking onto them; hf_block. */
#include "fiber/sched/dispatch.h"

#include "base/span.h"
#include "fiber/crew/crew_private.h"
#include "fiber/crew/job.h"
#include "fiber/verbs.h"
#include "fiber/watch/watch.h"

#include <string.h>

hf_dispatcher *hf_dispatcher_make(hf_runtime *rt, const hf_dispatcher_options *options, hf_dispatcher_kind kind)
{
    size_t staff_len = kind == HF_DISPATCH_POOL ? sizeof(hf_pool_staff) : 0;
    hf_dispatcher *made = hf_rt_alloc(rt, sizeof *made + staff_len);
    if (made == NULL) {
        return NULL;
    }
    if (staff_len > 0) {
        made->staff = (hf_pool_staff *)(made + 1);
        made->staff->of = made;
        made->staff->idle = options->idle.ns != 0 ? options->idle : hf_seconds(5);
    }
    made->kind = kind;
    made->rt = rt;
    made->pool = made;
    made->name = options->name != NULL ? options->name : (kind == HF_DISPATCH_SERIAL ? "serial" : "pool");
    made->limit = options->limit > 0 ? options->limit : (kind == HF_DISPATCH_POOL ? 64 : 1);
    made->queue_max = options->queue_max > 0 ? options->queue_max : INT64_MAX;
    hf_assert(made->limit > 0 && made->queue_max > 0);
    hf_list_init(&made->queue);
    return made;
}

static hf_status make_public(hf_fiber *self, hf_dispatcher **ret, hf_dispatcher *pool,
                             const hf_dispatcher_options *options, hf_dispatcher_kind kind, const char *verb)
{
    if (ret == NULL) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, verb, "%s needs a place for the dispatcher", verb));
    }
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = pool != NULL ? pool->rt : hf_rt_choose(&op, options->runtime);
    if (rt == NULL) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    if (options->limit < 0 || options->limit > HF_POOL_THREADS_MAX) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_INVALID, verb, "limit must be 1 to %d", HF_POOL_THREADS_MAX));
    }
    if (hf_number_check(&op, verb, ".queue_max", options->queue_max, HF_MAY_BE_UNLIMITED) != HF_OK ||
        hf_span_check(&op, verb, ".idle", options->idle, HF_MAY_BE_OFF | HF_MAY_BE_SHORT) != HF_OK) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    if (pool != NULL && pool->kind == HF_DISPATCH_SERIAL) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, verb, "a view is of a pool or of another view"));
    }
    hf_dispatcher *made = hf_dispatcher_make(rt, options, kind);
    if (made == NULL) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_NOMEM, verb, "no memory for a dispatcher"));
    }
    if (kind == HF_DISPATCH_VIEW) {
        made->pool = pool != NULL ? pool->pool : rt->pool;
    } else if (kind == HF_DISPATCH_POOL) {
        hf_spin_lock(&rt->pools_lock);
        hf_list_push_back(&rt->pools, &made->staff->pools);
        hf_spin_unlock(&rt->pools_lock);
    }
    *ret = made;
    HF_LEAVE(self, HF_OK);
}

hf_status hf_pool_new_with(hf_dispatcher **ret_pool, const hf_dispatcher_options *options)
{
    HF_OPTIONS(hf_dispatcher_options, options, hf_pool_new);
    HF_VERB_ENTER(self, hf_pool_new, options->runtime);
    return make_public(self, ret_pool, NULL, options, HF_DISPATCH_POOL, "hf_pool_new");
}

hf_status hf_pool_view_with(hf_dispatcher *pool, hf_dispatcher **ret_view, const hf_dispatcher_options *options)
{
    HF_OPTIONS(hf_dispatcher_options, options, hf_pool_view);
    HF_VERB_ENTER(self, hf_pool_view, options->runtime);
    return make_public(self, ret_view, pool, options, HF_DISPATCH_VIEW, "hf_pool_view");
}

hf_status hf_serial_new_with(hf_dispatcher **ret_serial, const hf_dispatcher_options *options)
{
    HF_OPTIONS(hf_dispatcher_options, options, hf_serial_new);
    HF_VERB_ENTER(self, hf_serial_new, options->runtime);
    return make_public(self, ret_serial, NULL, options, HF_DISPATCH_SERIAL, "hf_serial_new");
}

hf_status hf_dispatcher_free(hf_dispatcher *dispatcher)
{
    if (dispatcher == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_dispatcher_free, dispatcher->rt);
    hf_spin_lock(&dispatcher->pool->lock);
    bool is_used = dispatcher->running > 0 || dispatcher->queued > 0 ||
                   atomic_load_explicit(&dispatcher->branches, memory_order_acquire) > 0;
    hf_assert(is_used || hf_list_is_empty(&dispatcher->queue)); /* fiber-P2 */
    hf_spin_unlock(&dispatcher->pool->lock);
    if (is_used) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "dispatcher '%s' still has work", dispatcher->name));
    }
    if (dispatcher->kind == HF_DISPATCH_POOL) {
        hf_spin_lock(&dispatcher->rt->pools_lock);
        hf_list_remove(&dispatcher->staff->pools);
        hf_spin_unlock(&dispatcher->rt->pools_lock);
        hf_pool_free(dispatcher);
    } else {
        hf_rt_free(dispatcher->rt, dispatcher, sizeof *dispatcher);
    }
    HF_LEAVE(self, HF_OK);
}

hf_status hf_pool_open(hf_runtime *rt, hf_op *op)
{
    hf_dispatcher_options options = {.size = sizeof options, .name = "pool", .limit = rt->pool_max};
    rt->pool = hf_dispatcher_make(rt, &options, HF_DISPATCH_POOL);
    return rt->pool != NULL ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the pool");
}

/* Also ends pools that the user has not freed: their threads would use the runtime after its end. */
void hf_pool_shutdown(hf_runtime *rt)
{
    for (hf_node *node = NULL; (node = hf_list_pop_front(&rt->pools)) != NULL;) {
        hf_dispatcher *left = HF_CONTAINER(node, hf_pool_staff, pools)->of;
        hf_log(rt, HF_LOG_WARN, "pool_not_freed", "pool=%s", left->name);
        hf_pool_free(left);
    }
    if (rt->pool != NULL) {
        hf_pool_free(rt->pool);
        rt->pool = NULL;
    }
}

/* ---- Branches on a pool ------------------------------------------------------------------------------------------ */

/* The branch was canceled: from now on the watchdog expects it to return. */
static void watch_branch(hf_dispatcher *pool, hf_fiber *thread, const hf_branch *branch)
{
    if (pool->watch_ops != NULL) {
        hf_watchdog_begin(pool, thread, branch);
    }
}

/* On a pool thread: the thread is the branch's fiber. */
static void run_pool_branch(hf_pool_task *task, hf_fiber *thread)
{
    hf_branch *branch = HF_CONTAINER(task, hf_branch_extra, task)->branch;
    hf_dispatcher *via = task->via;
    hf_dispatcher *pool = via->pool;
    hf_runtime *rt = branch->scope->rt;
    hf_assert(thread->kind == HF_FIBER_THREAD && thread->branch == NULL && thread->scope == NULL);
    thread->rt = rt; /* an earlier call may have talked to another one */
    thread->branch = branch;
    thread->locals = branch->scope->locals;
    thread->last_status = HF_OK;
    hf_spin_lock(&thread->lock);
    thread->cx = &branch->cx;
    hf_spin_unlock(&thread->lock);
    hf_spin_lock(&pool->lock);
    hf_assert(branch->fiber == NULL); /* fiber-P2: one thread runs it */
    branch->fiber = thread;
    __atomic_store_n(&branch->state, HF_BRANCH_RUNNING, __ATOMIC_RELAXED); /* a cancel at home looks at it */
    hf_spin_unlock(&pool->lock);
    if (atomic_load(&branch->cancel_requested)) {
        hf_thread_branch_interrupt(NULL, thread, branch);
        watch_branch(pool, thread, branch);
    }
    hf_status status = HF_ERR_CANCELED;
    if (branch->drop != NULL && hf_is_canceled(thread)) {
        branch->drop(branch->arg);
    } else {
        status = (hf_status)hf_call_guarded((int (*)(void *))(void (*)(void))branch->body, branch->arg);
    }
    if (thread->scope != NULL) {
        (void)hf_scope_close_leftovers(thread);
        status = status != HF_OK
                     ? status
                     : hf_refuse_at(thread, HF_ERR_MISUSE, "pool branch",
                                    "the body returned with a scope still open; close every scope it opens");
    }
    branch->status = HF_CANARY(HF_BUG_POOL_STATUS) ? HF_OK : status;
    if (status != HF_OK && !(status == HF_ERR_CANCELED && hf_is_canceled(thread))) {
        branch->failure = hf_self_take_failure(thread, rt, status, branch->name);
    }
    hf_self_drop_chain(thread);
    hf_spin_lock(&pool->lock);
    hf_assert(branch->fiber == thread); /* fiber-P3 */
    branch->fiber = NULL;
    hf_spin_unlock(&pool->lock);
    hf_pool_thread_settle(thread);
    hf_watchdog_end(pool, thread);
    hf_spin_lock(&thread->lock);
    thread->cx = NULL;
    thread->branch = NULL;
    hf_spin_unlock(&thread->lock);
    thread->locals = NULL; /* they may go with the scope */
    hf_pool_done(via);
    hf_branch_ended(NULL, branch);
}

/* A pool that takes no more: the branch ends without having run. */
static void refuse_branch(hf_sched *sched, hf_branch *branch)
{
    hf_assert(branch->fiber == NULL && branch->scope->home == sched); /* fiber-F1 */
    branch->status = HF_ERR_LIMIT;
    branch->failure = hf_box_new(sched->rt, HF_ERR_LIMIT, NULL, branch->name,
                                 "the pool takes no more work: its queue is full, or no thread could be started", NULL);
    hf_branch_drop(sched, branch);
    hf_branch_ended(sched, branch);
}

hf_dispatcher *hf_home_dispatcher_new(hf_runtime *rt, int index)
{
    hf_dispatcher_options options = {.size = sizeof options, .name = "home"};
    hf_assert(index >= 0 && index < rt->sched_count);
    hf_dispatcher *made = hf_dispatcher_make(rt, &options, HF_DISPATCH_HOME);
    if (made != NULL) {
        made->home = rt->scheds[index];
    }
    return made;
}

static void start_here(hf_sched *sched, hf_branch *branch)
{
    hf_fiber *fiber = hf_sched_start_branch(sched, branch);
    if (fiber != NULL) { /* else there was no stack, and the branch has ended */
        hf_sched_ready_push(sched, fiber);
    }
}

static void on_start_msg(hf_sched *sched, hf_msg *msg)
{
    start_here(sched, HF_CONTAINER(msg, hf_branch, msg));
}

static void start_at_home(hf_sched *sched, hf_branch *branch)
{
    hf_sched *home = branch->on->home;
    if (home == sched) {
        start_here(sched, branch);
    } else {
        branch->msg.run = on_start_msg;
        hf_sched_post(home, &branch->msg);
    }
}

void hf_dispatch_branch(hf_sched *sched, hf_branch *branch)
{
    hf_assert(branch->scope->home == sched); /* fiber-F1 */
    if (branch->on->kind == HF_DISPATCH_HOME) {
        start_at_home(sched, branch);
        return;
    }
    if (branch->on->kind == HF_DISPATCH_SERIAL) {
        hf_serial_start(sched, branch);
        return;
    }
    if (branch->on->kind == HF_DISPATCH_CREW) {
        hf_crew_start(sched, branch);
        return;
    }
    if (branch->extra == NULL) {
        branch->extra = hf_rt_alloc(sched->rt, sizeof *branch->extra);
    }
    if (branch->extra == NULL) {
        refuse_branch(sched, branch);
        return;
    }
    branch->extra->branch = branch;
    branch->extra->task.node.next = NULL;
    branch->extra->task.run = run_pool_branch;
    if (hf_pool_submit(branch->on, &branch->extra->task) != HF_OK) {
        refuse_branch(sched, branch);
    }
}

/* From its fork until its end is known at home, a branch refers to its dispatcher: a cancel at home reads the
 * dispatcher and the branch's place in the queue, while the branch is ending on another thread. So neither is freed
 * before. */
hf_status hf_dispatch_hold(hf_fiber *self, hf_branch *branch)
{
    if (self->crew != NULL || hf_crew_of_scope(branch->scope) != NULL) {
        HF_TRY(hf_crew_may_fork(self, branch));
    }
    if (branch->on->kind == HF_DISPATCH_SERIAL && branch->on->rt != branch->scope->rt) {
        return HF_ERR_MISUSE; /* the next branch would start among the fibers of another runtime */
    }
    atomic_fetch_add_explicit(&branch->on->branches, 1, memory_order_relaxed);
    return HF_OK;
}

void hf_dispatch_let_go(hf_runtime *rt, hf_branch *branch)
{
    hf_assert(branch->fiber == NULL);
    hf_assert(branch->extra == NULL || !hf_node_is_linked(&branch->extra->task.node)); /* fiber-P2 */
    hf_rt_free(rt, branch->extra, sizeof *branch->extra);
    branch->extra = NULL;
    int before = atomic_fetch_sub_explicit(&branch->on->branches, 1, memory_order_release);
    hf_assert(before > 0);
    branch->on = NULL;
}

void hf_dispatch_ended(hf_sched *sched, hf_branch *branch)
{
    if (branch->on->kind == HF_DISPATCH_SERIAL) {
        hf_serial_ended(sched, branch);
    }
}

static void on_withdrawn(hf_sched *sched, hf_msg *msg)
{
    hf_branch *branch = HF_CONTAINER(msg, hf_branch, msg);
    hf_assert(branch->status == HF_ERR_CANCELED && branch->fiber == NULL); /* fiber-P2 */
    hf_branch_drop(sched, branch);
    hf_scope_child_done(sched, branch->scope, branch);
}

bool hf_dispatch_cancel(hf_sched *sched, hf_branch *branch)
{
    hf_dispatcher *on = branch->on;
    hf_assert(branch->scope->home == sched); /* fiber-F1 */
    hf_assert(atomic_load_explicit(&branch->cancel_requested, memory_order_relaxed));
    if (hf_branch_is_job(branch)) {
        hf_crew_job_cancel(branch);
        return true;
    }
    if (on->kind == HF_DISPATCH_SERIAL || on->kind == HF_DISPATCH_CREW || on->kind == HF_DISPATCH_HOME ||
        __atomic_load_n(&branch->state, __ATOMIC_RELAXED) == HF_BRANCH_DELAYED) {
        return false;
    }
    if (branch->drop != NULL && branch->extra != NULL && hf_pool_withdraw(&branch->extra->task)) {
        branch->status = HF_ERR_CANCELED;
        branch->msg.run = on_withdrawn; /* later: the walk that cancels is not to be disturbed */
        hf_sched_post_locked(sched, &branch->msg);
        return true;
    }
    hf_spin_lock(&on->pool->lock);
    hf_fiber *thread = branch->fiber;
    if (thread != NULL) {
        hf_assert(thread->kind == HF_FIBER_THREAD); /* fiber-P3 */
        hf_pool_thread_pin(thread);
    }
    hf_spin_unlock(&on->pool->lock);
    if (thread != NULL) {
        hf_thread_branch_interrupt(sched, thread, branch);
        watch_branch(on->pool, thread, branch);
        hf_pool_thread_unpin(thread);
    }
    return true;
}

/* ---- hf_block ---------------------------------------------------------------------------------------------------- */

/* A call that a pool thread makes. On the caller's stack; on the heap if the caller may leave before the call has
 * ended. */
typedef struct block_call {
    hf_spin lock; /* first: hf_wait.object points here */
    hf_pool_task task;
    hf_list waiters; /* the caller, while it waits; its hf_wait is on its own stack, which it may leave first */
    hf_body body;
    void *arg;
    void (*drop)(void *arg);
    hf_status status;
    hf_failure_box *failure;
    hf_runtime *rt;
    bool on_heap;
    bool over; /* the call has ended */
} block_call;

static void run_call(hf_pool_task *task, hf_fiber *thread)
{
    block_call *call = HF_CONTAINER(task, block_call, task);
    thread->last_status = HF_OK;
    hf_status status = (hf_status)hf_call_guarded((int (*)(void *))(void (*)(void))call->body, call->arg);
    if (thread->scope != NULL) { /* the thread does not belong to the call for any longer */
        (void)hf_scope_close_leftovers(thread);
        status = status != HF_OK
                     ? status
                     : hf_refuse_at(thread, HF_ERR_MISUSE, "hf_block",
                                    "the call returned with a scope still open; close every scope it opens");
    }
    hf_failure_box *failure = status != HF_OK ? hf_self_take_failure(thread, call->rt, status, "hf_block") : NULL;
    hf_pool_done(task->via);
    hf_spin_lock(&call->lock);
    hf_assert(!call->over);
    call->status = status;
    call->failure = failure;
    call->over = true;
    hf_node *node = hf_list_pop_front(&call->waiters);
    hf_spin_unlock(&call->lock);
    if (node != NULL) {
        hf_wake(HF_CONTAINER(node, hf_wait, node), HF_OK); /* from here on a call on the caller's stack is gone */
        return;
    }
    hf_assert(call->on_heap); /* abandoned: the result and the argument of the call are dropped */
    hf_box_unref(failure);
    if (call->drop != NULL) {
        call->drop(call->arg);
    }
    hf_rt_free(call->rt, call, sizeof *call);
}

/* A canceled or late caller: a call that no thread has begun is withdrawn; one that runs is abandoned, if it may be. */
static bool abort_call(hf_wait *wait)
{
    block_call *call = wait->object;
    if (hf_pool_withdraw(&call->task)) {
        wait->number = 1;
        (void)hf_wait_abort_linked(
            wait); /* a cancel and a timeout may both come before the caller runs: one wakes it */
        return true;
    }
    return call->on_heap && hf_wait_abort_linked(wait);
}

static const hf_wait_kind BLOCK = {"hf_block", abort_call};

/* `*ret_unused`: no thread has begun the call, and none will. */
static hf_status block_on(hf_fiber *self, block_call *call, hf_dispatcher *on, hf_instant deadline, bool *ret_unused)
{
    hf_runtime *rt = self->rt;
    hf_assert(self->kind != HF_FIBER_THREAD && on->kind != HF_DISPATCH_SERIAL);
    hf_list_init(&call->waiters);
    hf_wait wait;
    hf_wait_init(&wait, self, &BLOCK, call, on->name);
    hf_list_push_back(&call->waiters, &wait.node);
    call->task.run = run_call;
    call->rt = rt;
    bool on_heap = call->on_heap;
    if (hf_pool_submit(on, &call->task) != HF_OK) {
        if (on_heap) {
            hf_rt_free(rt, call, sizeof *call);
        }
        *ret_unused = true;
        return hf_refuse_at(self, HF_ERR_LIMIT, "hf_block",
                            "pool '%s' takes no more calls: its queue is full, or no thread could be started",
                            on->name);
    }
    hf_status status = hf_park(self, &wait, deadline);
    bool is_ours = status == HF_OK || wait.number == 1; /* else `call` may be gone by now */
    if (status == HF_OK) {
        hf_assert(call->over);
        status = call->status;
        if (call->failure != NULL) {
            hf_self_fail(self, call->failure);
        }
    }
    if (is_ours && on_heap) {
        *ret_unused = wait.number == 1;
        hf_rt_free(rt, call, sizeof *call);
    }
    return status;
}

/* Releases the argument of an abandonable call that never began. If the call began and was abandoned, run_call releases
 * the argument. */
static void drop_unused(void *arg, const hf_block_options *options)
{
    if (options->abandonable && options->drop != NULL) {
        options->drop(arg);
    }
}

static hf_status block(hf_body body, void *arg, const hf_block_options *options, bool *ret_unused)
{
    HF_VERB_ENTER(self, hf_block, NULL);
    hf_status status = hf_may_wait(self, "hf_block");
    if (status == HF_OK && (body == NULL || (options->on != NULL && options->on->kind == HF_DISPATCH_SERIAL))) {
        status =
            hf_refuse_at(self, HF_ERR_MISUSE, "hf_block", "hf_block needs a call, and a pool or a view to run it on");
    }
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    if (self->kind == HF_FIBER_THREAD) {
        *ret_unused = false;
        hf_leave(self);
        return body(arg);
    }
    block_call here;
    block_call *call = &here;
    if (options->abandonable) {
        call = hf_rt_alloc(self->rt, sizeof *call);
        if (call == NULL) {
            HF_LEAVE(self, hf_refuse_at(self, HF_ERR_NOMEM, "hf_block", "no memory for an abandonable call"));
        }
    } else {
        memset(call, 0, sizeof *call);
    }
    call->on_heap = options->abandonable;
    call->body = body;
    call->arg = arg;
    call->drop = options->drop;
    hf_instant deadline = options->abandonable ? hf_rt_deadline(self->rt, options->timeout) : HF_INSTANT_NEVER;
    *ret_unused = false;
    HF_LEAVE(self, block_on(self, call, options->on != NULL ? options->on : self->rt->pool, deadline, ret_unused));
}

hf_status hf_block_with(hf_body body, void *arg, const hf_block_options *options)
{
    hf_block_options own;
    hf_status status = HF_OK;
    if (!hf_options_fit(options, sizeof own)) {
        status = hf_options_take(&own, sizeof own, options, "hf_block");
        options = &own;
    }
    bool is_unused = true;
    if (status == HF_OK) {
        status = block(body, arg, options, &is_unused);
    }
    if (is_unused) {
        drop_unused(arg, options);
    }
    return status;
}
