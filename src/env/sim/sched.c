/* Simulated threads: coroutines that take turns on one thread of the host.
 *
 *                 thread_start            chosen by the seed
 *        (none) --------------> RUNNABLE <------------------ runs until it waits, or until a
 *                                 ^   |                      scheduling point where the seed says so
 *         woken, deadline, ended  |   | word_wait, poller_wait, thread_join, a slow operation, held at a point
 *                                 |   v
 *                               waiting
 *
 * A thread that leaves picks the next one itself; there is no scheduler context. When no thread is runnable, the clock
 * jumps to the next deadline or delivery. When there is none, the run is stuck (verdict.c).
 *
 * The code above may switch stacks, too: a runtime's scheduler runs fibers, and a fiber may call any of these
 * functions. So the context of a thread is taken anew each time the thread is left, on whatever stack it is then.
 *
 * Invariants:
 *   env-C1  Exactly one thread runs, sim->current; it is RUNNABLE.
 *   env-C2  sim->runnable holds the RUNNABLE threads and no others, each at its slot. Its order depends only on the
 *           seed.
 *   env-C3  The clock moves only while no thread is runnable.
 *   env-C4  A thread that has ended is freed by another one, after the switch away from its stack. */
#include "env/sim/sim_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void runnable_add(hf_sim *sim, hf_thread *thread)
{
    hf_assert(sim->runnable_count < sim->runnable_capacity);
    hf_assert(thread->state != HF_SIM_ENDED); /* env-C4 */
    thread->state = HF_SIM_RUNNABLE;
    thread->slot = sim->runnable_count;
    sim->runnable[sim->runnable_count++] = thread;
}

static void runnable_remove(hf_sim *sim, hf_thread *thread)
{
    hf_assert(thread->state == HF_SIM_RUNNABLE && sim->runnable[thread->slot] == thread); /* env-C2 */
    hf_assert(sim->runnable_count > 0);
    hf_thread *last = sim->runnable[--sim->runnable_count];
    hf_assert(last->slot == sim->runnable_count); /* env-C2 */
    last->slot = thread->slot;
    sim->runnable[last->slot] = last;
}

static void thread_free(hf_sim *sim, hf_thread *thread)
{
    hf_assert(thread != sim->current && thread != &sim->main_thread); /* env-C4 */
    hf_assert(sim->thread_count > 0);
    hf_context_retire(&thread->birth);
    hf_sim_stack_put(&thread->stack);
    hf_list_remove(&thread->node);
    sim->thread_count--;
    hf_sim_scrap(sim, thread, sizeof *thread);
}

/* The first thing that a thread does when it runs again, or for the first time. */
static void arrive(hf_sim *sim, hf_thread *me)
{
    hf_context_arrived(&me->context, &sim->left->context);
    hf_assert(sim->current == me);
    hf_self_set(me->self);
    errno = me->error;
    hf_thread *corpse = sim->corpse;
    if (corpse != NULL) {
        hf_assert(corpse != me && corpse->state == HF_SIM_ENDED); /* env-C4 */
        sim->corpse = NULL;
        if (corpse->is_forgotten) {
            thread_free(sim, corpse);
        } else {
            hf_sim_stack_put(&corpse->stack);
        }
    }
    if (HF_UNLIKELY(sim->verdict != HF_SIM_GOES_ON && !sim->is_over)) {
        hf_sim_give_up(sim);
    }
    if (HF_UNLIKELY(me->is_signalled)) {
        me->is_signalled = false;
        sim->on_signal();
    }
}

static void switch_to(hf_sim *sim, hf_thread *next)
{
    hf_thread *me = sim->current;
    if (next == me) {
        return;
    }
    hf_sim_trace(sim, HF_SIM_TRACE_SWITCH, next->serial);
    sim->counters.switches++;
    me->self = hf_self_get();
    me->error = errno;
    hf_exceptions_swap(sim->exceptions, &me->exceptions, &next->exceptions);
    hf_context_adopt(&me->context);
    hf_assert(next->state == HF_SIM_RUNNABLE || sim->verdict != HF_SIM_GOES_ON); /* env-C1 */
    sim->left = me;
    sim->current = next;
    hf_context_switch(&me->context, &next->context, me->state == HF_SIM_ENDED);
    arrive(sim, me);
}

/* Calls the run off. The report and the hook belong on the main thread: a test can longjmp from there. */
static void give_up(hf_sim *sim, hf_sim_verdict verdict)
{
    sim->verdict = verdict;
    switch_to(sim, &sim->main_thread);
    hf_sim_give_up(sim);
}

void hf_sim_wake(hf_sim *sim, hf_thread *thread)
{
    if (thread->state != HF_SIM_RUNNABLE && thread->state != HF_SIM_ENDED) {
        runnable_add(sim, thread);
    }
}

static void release_held(hf_sim *sim)
{
    HF_LIST_EACH(node, &sim->threads)
    {
        hf_thread *thread = HF_CONTAINER(node, hf_thread, node);
        if (thread->state == HF_SIM_HELD) {
            hf_sim_wake(sim, thread);
        }
    }
    sim->held_count = 0;
}

/* Moves the clock to the next deadline or delivery. False = there is none. */
static bool advance(hf_sim *sim)
{
    int64_t at = hf_sim_delivery_next(sim);
    HF_LIST_EACH(node, &sim->threads)
    {
        const hf_thread *thread = HF_CONTAINER(node, hf_thread, node);
        if (thread->state != HF_SIM_ENDED && thread->deadline.ns < at) {
            at = thread->deadline.ns;
        }
    }
    if (at == INT64_MAX) {
        return false;
    }
    hf_assert(sim->runnable_count == 0); /* env-C3 */
    hf_assert(sim->held_count == 0);
    if (at > sim->now) {
        sim->now = at;
        sim->counters.clock_jumps++;
        hf_sim_trace(sim, HF_SIM_TRACE_CLOCK, (uint64_t)at);
    }
    HF_LIST_EACH(node, &sim->threads)
    {
        hf_thread *thread = HF_CONTAINER(node, hf_thread, node);
        if (thread->state != HF_SIM_ENDED && thread->deadline.ns <= sim->now) {
            thread->timed_out = true;
            hf_sim_wake(sim, thread);
        }
    }
    hf_sim_deliver(sim);
    return true;
}

static void count_step(hf_sim *sim)
{
    sim->steps++;
    if (HF_UNLIKELY(sim->held_count > 0 && sim->steps >= sim->held_until)) {
        release_held(sim);
    }
    if (HF_UNLIKELY(sim->steps > (uint64_t)sim->options.steps_max && !sim->is_over)) {
        give_up(sim, HF_SIM_ENDLESS);
    }
}

/* The current thread can no longer run: continues another thread, or, once it can run again, the same one. */
static void run_another(hf_sim *sim)
{
    while (sim->runnable_count == 0) {
        if (sim->held_count > 0) {
            release_held(sim);
        } else if (!advance(sim)) {
            give_up(sim, HF_SIM_STUCK);
        }
    }
    uint64_t idx = sim->runnable_count > 1 ? hf_rng_below(&sim->rng, sim->runnable_count) : 0;
    hf_assert(idx < sim->runnable_count);
    switch_to(sim, sim->runnable[idx]);
}

void hf_sim_step(hf_sim *sim)
{
    count_step(sim);
    if (sim->runnable_count < 2 || !hf_rng_permille(&sim->rng, sim->options.switch_permille)) {
        return;
    }
    uint64_t idx = hf_rng_below(&sim->rng, sim->runnable_count - 1);
    if (idx >= sim->current->slot) {
        idx++; /* another one, not the same */
    }
    hf_assert(idx < sim->runnable_count && sim->runnable[idx] != sim->current); /* env-C2 */
    switch_to(sim, sim->runnable[idx]);
}

/* The others go on without the current thread. */
static void hold(hf_sim *sim)
{
    hf_thread *me = sim->current;
    count_step(sim);
    runnable_remove(sim, me);
    hf_assert(sim->runnable_count > 0); /* somebody else can run */
    me->state = HF_SIM_HELD;
    sim->held_count++;
    sim->held_until = sim->steps + 1 + hf_rng_below(&sim->rng, HF_SIM_HELD_STEPS_MAX);
    run_another(sim);
    hf_assert(me->state == HF_SIM_RUNNABLE); /* env-C1 */
}

void hf_sim_point(hf_env *env, hf_point point, uint64_t detail)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_trace(sim, (uint64_t)point + 1, detail);
    if (HF_UNLIKELY(sim->hold_permille > 0) && sim->runnable_count > 1 &&
        hf_rng_permille(&sim->rng, sim->hold_permille)) {
        hold(sim);
    } else {
        hf_sim_step(sim);
    }
}

bool hf_sim_wait(hf_sim *sim, hf_sim_state state, hf_instant deadline)
{
    hf_thread *me = sim->current;
    count_step(sim);
    runnable_remove(sim, me);
    me->state = state;
    me->deadline = deadline;
    me->timed_out = false;
    run_another(sim);
    hf_assert(me->state == HF_SIM_RUNNABLE); /* env-C1 */
    me->deadline = HF_INSTANT_NEVER;
    return !me->timed_out;
}

void hf_sim_sleep(hf_sim *sim, int64_t ns)
{
    if (ns > 0) {
        (void)hf_sim_wait(sim, HF_SIM_ASLEEP, (hf_instant){sim->now + ns});
    } else {
        hf_sim_step(sim);
    }
}

/* The forgotten threads that still run are waited for at the end only (hf_sim_threads_drop). */
static void wake_joiners(hf_sim *sim, const hf_thread *ended)
{
    HF_LIST_EACH(node, &sim->threads)
    {
        hf_thread *thread = HF_CONTAINER(node, hf_thread, node);
        if (thread->state == HF_SIM_ON_JOIN &&
            (thread->target == ended || (thread->target == NULL && sim->live_count == 0))) {
            hf_sim_wake(sim, thread);
        }
    }
}

static void thread_main(void *arg)
{
    hf_thread *me = (hf_thread *)arg;
    hf_sim *sim = me->sim;
    arrive(sim, me);
    me->main(me->arg);
    hf_assert(sim->current == me && sim->corpse == NULL);
    runnable_remove(sim, me);
    me->state = HF_SIM_ENDED;
    sim->live_count--;
    sim->corpse = me;
    wake_joiners(sim, me);
    run_another(sim);
    hf_panic("an ended thread was continued", __FILE__, __LINE__);
}

static bool runnable_reserve(hf_sim *sim, uint32_t count)
{
    if (count <= sim->runnable_capacity) {
        return true;
    }
    uint32_t capacity = count * 2;
    hf_thread **runnable = (hf_thread **)realloc(sim->runnable, capacity * sizeof(hf_thread *));
    if (runnable == NULL) {
        return false;
    }
    sim->runnable = runnable;
    sim->runnable_capacity = capacity;
    return true;
}

hf_status hf_sim_thread_start(hf_env *env, hf_op *op, const char *name, size_t stack_len, void (*main)(void *),
                              void *arg, hf_thread **ret_thread)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_stack stack = {NULL, 0};
    hf_thread *thread = NULL;
    if (hf_sim_may_allocate(sim) && runnable_reserve(sim, sim->thread_count + 1)) {
        thread = (hf_thread *)calloc(1, sizeof *thread);
    }
    if (thread == NULL || !hf_sim_stack_get(stack_len, &stack)) {
        free(thread);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the simulated thread %s", name);
    }
    thread->sim = sim;
    thread->main = main;
    thread->arg = arg;
    thread->stack = stack;
    thread->serial = ++sim->thread_serial;
    thread->deadline = HF_INSTANT_NEVER;
    (void)snprintf(thread->name, sizeof thread->name, "%s", name);
    hf_context_make(&thread->birth, stack.lo, stack.lo + stack.len, thread_main, thread);
    hf_context_announce(&thread->birth);
    thread->context = thread->birth;
    hf_list_push_back(&sim->threads, &thread->node);
    sim->thread_count++;
    sim->live_count++;
    runnable_add(sim, thread);
    *ret_thread = thread;
    return HF_OK;
}

void hf_sim_thread_join(hf_env *env, hf_thread *thread)
{
    hf_sim *sim = hf_sim_of(env);
    hf_assert(thread->sim == sim && thread != sim->current && !thread->is_forgotten);
    hf_sim_step(sim);
    if (thread->state != HF_SIM_ENDED) {
        sim->current->target = thread;
        (void)hf_sim_wait(sim, HF_SIM_ON_JOIN, HF_INSTANT_NEVER);
        sim->current->target = NULL;
    }
    hf_assert(thread->state == HF_SIM_ENDED);
    thread_free(sim, thread);
}

void hf_sim_thread_forget(hf_env *env, hf_thread *thread)
{
    hf_sim *sim = hf_sim_of(env);
    hf_assert(thread->sim == sim && !thread->is_forgotten);
    thread->is_forgotten = true;
    if (thread->state == HF_SIM_ENDED) {
        thread_free(sim, thread);
    }
}

/* The thread runs the handler before it goes on. If it is in word_wait, which may end without a reason, it is woken: a
 * system call would return EINTR. */
hf_status hf_sim_thread_signal(hf_env *env, hf_op *op, hf_thread *thread, int number)
{
    hf_sim *sim = hf_sim_of(env);
    (void)number;
    if (sim->on_signal == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "no signal was opened as an interrupt");
    }
    hf_assert(thread->sim == sim && thread != sim->current);
    sim->counters.interrupts++;
    hf_sim_trace(sim, HF_SIM_TRACE_WAKE, thread->serial);
    thread->is_signalled = thread->state != HF_SIM_ENDED;
    if (thread->state == HF_SIM_ON_WORD) {
        hf_sim_wake(sim, thread);
    }
    return HF_OK;
}

bool hf_sim_word_wait(hf_env *env, hf_word *word, uint32_t expected, hf_instant deadline)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_step(sim); /* between the caller's last look at the word and this one */
    if (atomic_load_explicit(word, memory_order_seq_cst) != expected) {
        return true;
    }
    if (deadline.ns <= sim->now) {
        return false;
    }
    if (hf_rng_permille(&sim->rng, HF_SIM_SPURIOUS_PERMILLE)) {
        return true;
    }
    hf_thread *me = sim->current;
    me->word = word;
    me->expected = expected;
    bool in_time = hf_sim_wait(sim, HF_SIM_ON_WORD, deadline);
    me->word = NULL;
    return in_time;
}

static bool waits_on(const hf_node *node, const hf_word *word)
{
    const hf_thread *thread = HF_CONTAINER_CONST(node, hf_thread, node);
    return thread->state == HF_SIM_ON_WORD && thread->word == word;
}

/* Kernels promise no order among the waiters of a word, so the seed chooses. */
void hf_sim_word_wake(hf_env *env, hf_word *word, int count)
{
    hf_sim *sim = hf_sim_of(env);
    uint64_t waiters = 0;
    HF_LIST_EACH(node, &sim->threads)
    {
        waiters += waits_on(node, word) ? 1 : 0;
    }
    for (; count > 0 && waiters > 0; count--, waiters--) {
        uint64_t chosen = waiters > 1 ? hf_rng_below(&sim->rng, waiters) : 0;
        HF_LIST_EACH(node, &sim->threads)
        {
            if (waits_on(node, word) && chosen-- == 0) {
                hf_thread *thread = HF_CONTAINER(node, hf_thread, node);
                hf_sim_trace(sim, HF_SIM_TRACE_WAKE, thread->serial);
                hf_sim_wake(sim, thread);
                break;
            }
        }
    }
}

void hf_sim_threads_drop(hf_sim *sim)
{
    hf_assert(sim->current == &sim->main_thread);
    if (!sim->is_over && sim->live_count > 0) {
        /* A forgotten thread may still be ending. A thread that was neither joined nor forgotten is a mistake of the caller. */
        HF_LIST_EACH(node, &sim->threads)
        {
            const hf_thread *thread = HF_CONTAINER(node, hf_thread, node);
            hf_assert(thread->serial == 0 || thread->state == HF_SIM_ENDED || thread->is_forgotten);
        }
        sim->current->target = NULL;
        (void)hf_sim_wait(sim, HF_SIM_ON_JOIN, HF_INSTANT_NEVER);
    }
    hf_assert(sim->is_over || sim->live_count == 0);
    HF_LIST_EACH(node, &sim->threads)
    {
        hf_thread *thread = HF_CONTAINER(node, hf_thread, node);
        if (thread->serial != 0) {
            hf_assert(sim->is_over); /* every thread is joined or forgotten */
            thread_free(sim, thread);
        }
    }
    free(sim->runnable);
}
