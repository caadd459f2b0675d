/* Pools: plain threads for code that blocks. A pool is elastic: it has no thread when it is idle and at most
 * `limit`, which is one higher for each zombie.
 *
 * How many threads? A call that blocks needs a thread of its own, a short call does not, and nobody knows which kind
 * it is. So while threads work, at most one other thread, the standby, watches the queue. It looks every 50 us. It
 * steps in if nothing was taken since its last look, or if a task has waited for four looks. When it steps in, it
 * appoints the next standby. A burst of short calls is served by one or two warm threads; 64 calls that block get
 * their 64 threads within a few milliseconds. Wake-ups are rare: giving a task to a pool that has a standby wakes
 * nobody.
 *
 * If it has paid lately, a thread that runs out of work looks for more for a few microseconds before it sleeps, as
 * the standby. Calls that a scheduler hands over one after another are then served without a wake-up for each.
 *
 * fiber-P1  All fields are used under the pool's lock. A view has no lock of its own.
 * fiber-P2  A task is in at most one queue. The thread that takes it out runs it; or the canceler takes it out and
 *           withdraws it.
 * fiber-P3  A canceler finds the thread that runs a branch through branch->fiber. The thread does not finish the
 *           branch while it is pinned. */
#include "fiber/sched/dispatch.h"

#include <stdio.h>
#include <string.h>

static const int64_t LOOK_NS = 50 * 1000;
enum { LOOKS = 4, STACK_LEN = 1024 * 1024, LINGER_ROUNDS = 100, LUCK_MAX = 4, UNLUCKY_TURN = 32 };

typedef struct hf_pool_thread {
    hf_thread_fiber self;
    struct hf_pool_thread *next;
    struct hf_pool_thread *prev;
    hf_dispatcher *pool;
    hf_thread *thread;
    atomic_uint pins;
    hf_watchdog_post watched;
} hf_pool_thread;

static void pool_thread_main(void *arg);

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

static void join_dead(hf_dispatcher *pool)
{
    hf_runtime *rt = pool->rt;
    hf_spin_lock(&pool->lock);
    hf_pool_thread *dead = pool->staff->dead;
    pool->staff->dead = NULL;
    hf_spin_unlock(&pool->lock);
    while (dead != NULL) {
        hf_pool_thread *next = dead->next;
        rt->env->ops->thread_join(rt->env, dead->thread);
        hf_rt_free(rt, dead, sizeof *dead);
        dead = next;
    }
}

/* `threads` counts it already. On failure the count is taken back. */
static bool start_thread(hf_dispatcher *pool)
{
    hf_runtime *rt = pool->rt;
    join_dead(pool);
    hf_pool_thread *fresh = hf_rt_alloc(rt, sizeof *fresh);
    bool started = false;
    if (fresh != NULL) {
        fresh->pool = pool;
        fresh->self.fiber.kind = HF_FIBER_THREAD;
        fresh->self.fiber.rt = rt;
        fresh->self.home = rt;
        fresh->watched.thread = &fresh->self.fiber;
        char name[16];
        (void)snprintf(name, sizeof name, "hf-%.11s", pool->name);
        hf_spin_lock(&pool->lock); /* it is linked before it can end */
        fresh->next = pool->staff->living;
        if (pool->staff->living != NULL) {
            pool->staff->living->prev = fresh;
        }
        pool->staff->living = fresh;
        hf_spin_unlock(&pool->lock);
        hf_thread *handle = NULL;
        started = rt->env->ops->thread_start(rt->env, NULL, name, STACK_LEN, pool_thread_main, fresh, &handle) == HF_OK;
        if (started) { /* the thread waits for this, so that it is not joined and freed before */
            hf_spin_lock(&pool->lock);
            fresh->thread = handle;
            hf_spin_unlock(&pool->lock);
        }
    }
    if (!started) {
        hf_spin_lock(&pool->lock);
        hf_assert(pool->staff->threads > 0);
        pool->staff->threads--;
        pool->staff->standby = false; /* the next submitter tries again */
        if (fresh != NULL) {
            if (fresh->next != NULL) {
                fresh->next->prev = fresh->prev;
            }
            if (fresh->prev != NULL) {
                fresh->prev->next = fresh->next;
            } else {
                pool->staff->living = fresh->next;
            }
        }
        hf_spin_unlock(&pool->lock);
        hf_rt_free(rt, fresh, sizeof *fresh);
        return false;
    }
    atomic_fetch_add(&rt->pool_threads, 1);
    return true;
}

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

static void push_task(hf_dispatcher *pool, hf_pool_task *task)
{
    hf_assert(atomic_load_explicit(&pool->lock.held, memory_order_relaxed) != 0); /* fiber-P1 */
    hf_assert(!hf_node_is_linked(&task->node));                                   /* fiber-P2 */
    task->in_pool = true;
    hf_list_push_back(&pool->queue, &task->node);
    pool->queued++;
    pool->staff->pushed++;
    atomic_fetch_add_explicit(&pool->staff->arrivals, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool->rt->pool_depth, 1, memory_order_relaxed);
}

static void pop_task(hf_dispatcher *pool, hf_pool_task *task)
{
    hf_assert(atomic_load_explicit(&pool->lock.held, memory_order_relaxed) != 0); /* fiber-P1 */
    hf_assert(task->in_pool && pool->queued > 0);                                 /* fiber-P2 */
    hf_list_remove(&task->node);
    pool->queued--;
    pool->staff->taken++;
    atomic_fetch_sub_explicit(&pool->rt->pool_depth, 1, memory_order_relaxed);
}

/* Under the lock: a task of `via` is over, or was withdrawn: a view passes its next one on. */
static void pass_on(hf_dispatcher *via)
{
    hf_node *node = via->kind == HF_DISPATCH_VIEW ? hf_list_pop_front(&via->queue) : NULL;
    if (node == NULL) {
        hf_assert(via->running > 0);
        via->running--;
        return;
    }
    hf_assert(via->queued > 0);
    via->queued--;
    push_task(via->pool, HF_CONTAINER(node, hf_pool_task, node));
}

void hf_pool_done(hf_dispatcher *via)
{
    hf_spin_lock(&via->pool->lock);
    pass_on(via);
    hf_spin_unlock(&via->pool->lock);
}

typedef enum help { HELP_NONE, HELP_WAKE, HELP_START } help;

/* Under the lock: appoints a standby if there is work and no standby. The caller passes the result to give_help
 * after unlocking. */
static help appoint(hf_dispatcher *pool)
{
    if (pool->staff->standby || hf_list_is_empty(&pool->queue)) {
        return HELP_NONE;
    }
    if (pool->staff->sleeping > 0) {
        pool->staff->standby = true;
        pool->staff->appointed = true;
        atomic_fetch_add(&pool->staff->word, 1);
        return HELP_WAKE;
    }
    if (pool->staff->threads < pool->limit && !pool->staff->stopping) {
        pool->staff->standby = true;
        pool->staff->threads++;
        return HELP_START;
    }
    return HELP_NONE;
}

static bool give_help(hf_dispatcher *pool, help what)
{
    if (what == HELP_WAKE) { /* all look, one is appointed */
        pool->rt->env->ops->word_wake(pool->rt->env, &pool->staff->word, 1);
    }
    return what != HELP_START || start_thread(pool);
}

hf_status hf_pool_submit(hf_dispatcher *dispatcher, hf_pool_task *task)
{
    hf_dispatcher *pool = dispatcher->pool;
    hf_runtime *rt = pool->rt;
    hf_assert(dispatcher->kind == HF_DISPATCH_POOL || dispatcher->kind == HF_DISPATCH_VIEW);
    task->via = dispatcher;
    task->in_pool = false;
    hf_spin_lock(&pool->lock);
    if (dispatcher->queued >= dispatcher->queue_max || pool->queued >= pool->queue_max) {
        hf_spin_unlock(&pool->lock);
        return HF_ERR_LIMIT;
    }
    help what = HELP_NONE;
    if (dispatcher->kind == HF_DISPATCH_VIEW && dispatcher->running >= dispatcher->limit) {
        hf_list_push_back(&dispatcher->queue, &task->node);
        dispatcher->queued++;
    } else {
        dispatcher->running++;
        hf_assert(dispatcher->kind == HF_DISPATCH_POOL || dispatcher->running <= dispatcher->limit);
        push_task(pool, task);
        what = appoint(pool);
    }
    hf_spin_unlock(&pool->lock);
    atomic_fetch_add_explicit(&rt->pool_calls, 1, memory_order_relaxed);
    if (!give_help(pool, what)) {
        hf_spin_lock(&pool->lock);
        bool alone = pool->staff->threads == 0;
        hf_spin_unlock(&pool->lock);
        if (alone && hf_pool_withdraw(task)) {
            return HF_ERR_LIMIT; /* no thread could be started, and none will come to it */
        }
    }
    hf_point_rt(rt, HF_POINT_HANDOFF, 1);
    return HF_OK;
}

bool hf_pool_withdraw(hf_pool_task *task)
{
    hf_dispatcher *via = task->via;
    hf_dispatcher *pool = via->pool;
    hf_spin_lock(&pool->lock);
    bool is_waiting = hf_node_is_linked(&task->node);
    help what = HELP_NONE;
    if (is_waiting && task->in_pool) {
        pop_task(pool, task);
        pass_on(via);
        what = appoint(pool);
    } else if (is_waiting) {
        hf_assert(via->kind == HF_DISPATCH_VIEW && via->queued > 0); /* fiber-P2 */
        hf_list_remove(&task->node);
        via->queued--;
    }
    hf_spin_unlock(&pool->lock);
    (void)give_help(pool, what);
    return is_waiting;
}

/* ---- The threads' loop ------------------------------------------------------------------------------------------- */

/* The standby watches others work, until it should step in or nothing is left. Under the lock on entry and exit. */
static void stand_by(hf_dispatcher *pool)
{
    hf_assert(pool->staff->standby); /* set when it was appointed */
    hf_env *env = pool->rt->env;
    uint64_t last = pool->staff->taken;
    uint64_t oldest = pool->staff->pushed;
    for (int look = 1; pool->staff->working > 0 && !hf_list_is_empty(&pool->queue) && !pool->staff->stopping; look++) {
        hf_spin_unlock(&pool->lock);
        hf_word never = 0;
        (void)env->ops->word_wait(env, &never, 0, (hf_instant){env->ops->now(env).ns + LOOK_NS});
        hf_spin_lock(&pool->lock);
        if (pool->staff->taken == last || (look % LOOKS == 0 && pool->staff->taken < oldest)) {
            return;
        }
        last = pool->staff->taken;
        oldest = look % LOOKS == 0 ? pool->staff->pushed : oldest;
    }
}

/* Sleeps until it is appointed. Under the lock on entry and exit. False: it waited its time, or the pool ends. */
static bool sleep_idle(hf_dispatcher *pool)
{
    hf_env *env = pool->rt->env;
    hf_instant deadline = hf_rt_deadline(pool->rt, pool->staff->idle);
    bool in_time = true;
    pool->staff->sleeping++;
    while (!pool->staff->appointed && !pool->staff->stopping && in_time) {
        uint32_t seen = atomic_load(&pool->staff->word);
        hf_spin_unlock(&pool->lock);
        in_time = env->ops->word_wait(env, &pool->staff->word, seen, deadline);
        hf_spin_lock(&pool->lock);
    }
    hf_assert(pool->staff->sleeping > 0);
    hf_assert(!pool->staff->appointed || pool->staff->standby);
    pool->staff->sleeping--;
    bool is_appointed = pool->staff->appointed;
    pool->staff->appointed = false;
    return is_appointed;
}

/* Runs tasks until none is left. Under the lock on entry and exit. */
static void work(hf_dispatcher *pool, hf_pool_thread *me)
{
    pool->staff->working++;
    for (hf_node *node = NULL; (node = hf_list_first(&pool->queue)) != NULL;) {
        hf_pool_task *task = HF_CONTAINER(node, hf_pool_task, node);
        pop_task(pool, task);
        help what = appoint(pool);
        hf_spin_unlock(&pool->lock);
        (void)give_help(pool, what);
        hf_point_rt(pool->rt, HF_POINT_HANDOFF, 2);
        task->run(task, &me->self.fiber);
        hf_spin_lock(&pool->lock);
        hf_assert(me->self.fiber.branch == NULL && me->self.fiber.scope == NULL); /* it left nothing open */
    }
    hf_assert(pool->staff->working > 0 && pool->staff->working <= pool->staff->threads);
    pool->staff->working--;
}

/* Out of work: looks for more for a moment. Under the lock on entry and exit. True: there is some. */
static bool linger(hf_dispatcher *pool)
{
    bool is_trying = pool->staff->luck > 0 || ++pool->staff->unlucky % UNLUCKY_TURN == 0;
    if (!is_trying || pool->staff->standby || pool->staff->stopping || pool->rt->env->ops->point != NULL) {
        return false;
    }
    unsigned seen = atomic_load_explicit(&pool->staff->arrivals, memory_order_relaxed);
    pool->staff->standby = true; /* so that a submitter need not wake a thread */
    hf_spin_unlock(&pool->lock);
    for (int i = 0; i < LINGER_ROUNDS && atomic_load_explicit(&pool->staff->arrivals, memory_order_relaxed) == seen;
         i++) {
        hf_relax();
    }
    hf_spin_lock(&pool->lock);
    pool->staff->standby = false;
    bool found = !hf_list_is_empty(&pool->queue);
    if (found) {
        pool->staff->luck += pool->staff->luck < LUCK_MAX;
    } else {
        pool->staff->luck -= pool->staff->luck > 0;
    }
    return found;
}

static void pool_thread_main(void *arg)
{
    hf_pool_thread *me = arg;
    hf_dispatcher *pool = me->pool;
    hf_self_set(&me->self.fiber.self);
    hf_spin_lock(&pool->lock);
    while (me->thread == NULL) { /* start_thread has not stored the handle yet */
        hf_spin_unlock(&pool->lock);
        hf_yield_in(&me->self.fiber);
        hf_spin_lock(&pool->lock);
    }
    do { /* born, and woken, as the standby */
        stand_by(pool);
        pool->staff->standby = false;
        do {
            work(pool, me);
        } while (linger(pool));
    } while (pool->staff->threads <= pool->limit &&
             sleep_idle(pool)); /* there is one too many if a zombie has come back */
    hf_assert(pool->staff->threads > 0);
    hf_assert(atomic_load(&me->pins) == 0); /* fiber-P3 */
    hf_self_drop_chain(&me->self.fiber);
    pool->staff->threads--;
    if (me->next != NULL) {
        me->next->prev = me->prev;
    }
    if (me->prev != NULL) {
        me->prev->next = me->next;
    } else {
        pool->staff->living = me->next;
    }
    me->next = pool->staff->dead;
    pool->staff->dead = me;
    atomic_fetch_sub(&pool->rt->pool_threads, 1);
    hf_spin_unlock(&pool->lock);
    hf_self_set(NULL);
}

/* ---- Pinning (fiber-P3) ------------------------------------------------------------------------------------------ */

static hf_pool_thread *pool_thread_of(hf_fiber *thread)
{
    return HF_CONTAINER(HF_CONTAINER(thread, hf_thread_fiber, fiber), hf_pool_thread, self);
}

void hf_pool_thread_pin(hf_fiber *thread)
{
    atomic_fetch_add(&pool_thread_of(thread)->pins, 1);
}

void hf_pool_thread_unpin(hf_fiber *thread)
{
    unsigned before = atomic_fetch_sub(&pool_thread_of(thread)->pins, 1); /* from here on the thread may end */
    hf_assert(before > 0);                                                /* fiber-P3 */
}

void hf_pool_thread_settle(hf_fiber *thread)
{
    while (atomic_load(&pool_thread_of(thread)->pins) != 0) {
        hf_yield_in(thread);
    }
}

hf_watchdog_post *hf_pool_thread_watched(hf_fiber *thread)
{
    return &pool_thread_of(thread)->watched;
}

hf_thread *hf_pool_thread_handle(hf_fiber *thread)
{
    return pool_thread_of(thread)->thread;
}

/* ---- Zombies ----------------------------------------------------------------------------------------------------- */

bool hf_pool_widen(hf_fiber *thread)
{
    hf_dispatcher *pool = pool_thread_of(thread)->pool;
    help what = HELP_NONE;
    hf_spin_lock(&pool->lock);
    bool fits = pool->staff->extra < HF_POOL_ZOMBIES_MAX;
    if (fits) {
        pool->staff->extra++;
        pool->limit++;
        what = appoint(pool);
    }
    hf_spin_unlock(&pool->lock);
    (void)give_help(pool, what);
    return fits;
}

void hf_pool_narrow(hf_fiber *thread)
{
    hf_dispatcher *pool = pool_thread_of(thread)->pool;
    hf_spin_lock(&pool->lock);
    hf_assert(pool->staff->extra > 0 && pool->limit > pool->staff->extra);
    pool->staff->extra--;
    pool->limit--;
    hf_spin_unlock(&pool->lock);
}

/* ---- Ending ------------------------------------------------------------------------------------------------------ */

void hf_pool_free(hf_dispatcher *pool)
{
    hf_runtime *rt = pool->rt;
    hf_spin_lock(&pool->lock);
    pool->staff->stopping = true;
    hf_spin_unlock(&pool->lock);
    for (;;) {
        atomic_fetch_add(&pool->staff->word, 1);
        rt->env->ops->word_wake(rt->env, &pool->staff->word, HF_POOL_THREADS_MAX);
        join_dead(pool);
        hf_spin_lock(&pool->lock);
        hf_pool_thread *one = pool->staff->living;
        bool none = one == NULL && pool->staff->dead == NULL;
        hf_spin_unlock(&pool->lock);
        if (none) {
            break;
        }
        hf_word never = 0;
        (void)rt->env->ops->word_wait(rt->env, &never, 0, (hf_instant){hf_rt_now(rt).ns + LOOK_NS});
    }
    hf_assert(pool->staff->threads == 0 && pool->staff->working == 0 && pool->staff->extra == 0);
    hf_assert(hf_list_is_empty(&pool->queue)); /* fiber-P2 */
    hf_rt_free(rt, pool, sizeof *pool + sizeof *pool->staff);
}
