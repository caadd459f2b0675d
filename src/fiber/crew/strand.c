/* How a crew ends whose members do not all return when they are evicted.
 *
 *     member   refused, refused, ... 1,000 times --> parked for good, in a wait that nothing ends
 *     others   run until they have ended, or wait for the parked one in a join, a close or a lock
 *     driver   no member is ready any more: logs where the parked ones are, ends their branches, closes their scopes,
 *              and gives all stacks back
 *
 * Stacks are given back only when no member of the crew will run again: until then a member may use data on the
 * stack of another. These rules make sure that the library keeps no pointer to a stack that was given back:
 *
 * fiber-X1  A stranded member is parked at the start of a verb, or after the verb has done its work: it is in no
 *           queue, and holds no small lock. Its open scopes, its branch and its local values are in memory of their
 *           own, and are freed here.
 * fiber-X2  Any other member that has not ended waits in a join or close, as its scope's joiner, or for the lock of
 *           a condition. Both waits are taken back here. All other waits were claimed when the crew was evicted.
 * fiber-X3  If something outside has claimed a waiter, or if a message to one of its scopes is on its way, the
 *           member gets another turn first.
 * fiber-X4  The eviction removed all timers, and none is armed afterwards. Messages among members are read at every
 *           switch.
 *
 * Data of user code on such a stack is lost: memory that it allocated stays allocated, and a lock that it shares
 * with something outside the crew, which a workflow must not do, stays locked. */
#include "fiber/crew/strand.h"

#include "base/limits.h"
#include "fiber/crew/crew_struct.h"
#include "fiber/sched/stack.h"
#include "fiber/scope/scope_private.h"
#include "fiber/sync/sync.h"
#include "fiber/sync/work.h"
#include "fiber/watch/backtrace.h"

enum { STACK_LEN_MAX = 500 }; /* bytes of a stack in a log line */

static const hf_wait_kind STRANDED = {"nothing: it was evicted and did not return", NULL};

HF_NOINLINE void hf_evicted_call(hf_fiber *self)
{
    hf_assert(self->is_evicted && self->crew != NULL && self->in_lib != 0);
    hf_point_at(self->sched, HF_POINT_PARK, self->id); /* so that a simulation sees a loop of these end at steps_max */
    if (self->evicted_calls < HF_EVICTED_CALLS_MAX) {
        self->evicted_calls++;
        return;
    }
    if (self->hook_depth != 0 || HF_CANARY(HF_BUG_EVICTED_SPINS)) {
        return; /* a hook runs in the middle of another fiber's call */
    }
    hf_wait wait;
    hf_wait_init(&wait, self, &STRANDED, NULL, "");
    self->wait = &wait;
    hf_crew_leave(self);
    hf_panic("a stranded fiber was resumed", __FILE__, __LINE__);
}

/* ---- Whether anybody will run again ------------------------------------------------------------------------------ */

static bool has_news(const hf_fiber *member)
{
    const hf_wait *wait = member->wait;
    hf_assert(wait != NULL); /* else it is ready, and the turn was not over */
    if (wait->kind->abort != NULL || (wait->kind == &hf_cond_relock && !hf_node_is_linked(&wait->node))) {
        return true; /* fiber-X3: claimed, and on its way */
    }
    for (const hf_scope *scope = member->scope; scope != NULL; scope = scope->outer) {
        if (atomic_load(&scope->pending) != 0) {
            return true;
        }
    }
    return false;
}

static bool anybody_has_news(const hf_crew *crew)
{
    HF_LIST_EACH(node, &crew->members)
    {
        if (has_news(HF_CONTAINER(node, hf_fiber, members))) {
            return true;
        }
    }
    return false;
}

/* ---- Saying where they are --------------------------------------------------------------------------------------- */

static uint64_t hash_of(void *const *pcs, int count)
{
    uint64_t hash = 0;
    for (int i = 0; i < count; i++) {
        hash = hf_hash_mix(hash, (uint64_t)(uintptr_t)pcs[i]);
    }
    return hash;
}

/* Whether this place was not logged before. From now on it counts as logged. */
static bool is_new_place(hf_runtime *rt, uint64_t place)
{
    hf_spin_lock(&rt->stranded_lock);
    unsigned at = 0;
    while (at < rt->stranded_place_count && rt->stranded_places[at] != place) {
        at++;
    }
    bool is_new = at == rt->stranded_place_count && at < HF_STRANDED_PLACES_MAX;
    if (is_new) {
        rt->stranded_places[rt->stranded_place_count++] = place;
    }
    hf_spin_unlock(&rt->stranded_lock);
    return is_new;
}

static void report(const hf_crew *crew, const hf_fiber *member)
{
    hf_runtime *rt = crew->sched->rt;
    void *pcs[HF_BACKTRACE_DEPTH_MAX];
    int count = hf_backtrace_of(member, pcs, HF_BACKTRACE_DEPTH_MAX);
    if (!is_new_place(rt, hash_of(pcs, count))) {
        return;
    }
    bool has_looped = member->wait->kind == &STRANDED;
    char stack[STACK_LEN_MAX];
    hf_backtrace_format(pcs, count, stack, sizeof stack);
    hf_log(rt, HF_LOG_WARN, "workflow_did_not_return", "workflow=%.80s type=%.40s fiber=%.40s stack=\"%s\" message=%s",
           crew->root->name, crew->first->name != NULL ? crew->first->name : "",
           member->branch->name != NULL ? member->branch->name : "", stack,
           has_looped
               ? "it was evicted and kept calling; its own allocations are lost, and the run continues without it. "
                 "Return when a verb returns HF_ERR_EVICTED: HF_TRY does"
               : "it was evicted and waits for a lock that nobody releases; its own allocations are lost, and the "
                 "run continues without it");
}

uint64_t hf_stranded_count(const hf_runtime *rt)
{
    uint64_t sum = 0;
    for (int i = 0; i < rt->sched_count; i++) {
        sum += __atomic_load_n(&rt->scheds[i]->counters.stranded, __ATOMIC_RELAXED);
    }
    return sum;
}

/* Members that only wait in a join or close are counted but not logged: they wait for a stranded one. */
static size_t report_all(const hf_crew *crew)
{
    size_t count = 0;
    HF_LIST_EACH(node, &crew->members)
    {
        const hf_fiber *member = HF_CONTAINER(node, hf_fiber, members);
        HF_BUMP(crew->sched->counters.stranded);
        count++;
        if (member->wait->kind == &STRANDED || member->wait->kind == &hf_cond_relock) {
            report(crew, member);
        }
    }
    return count;
}

/* ---- Freeing them ------------------------------------------------------------------------------------------------ */

/* fiber-X2 */
static void take_back_wait(hf_fiber *member)
{
    hf_assert(member->wait != NULL && member->wait->kind->abort == NULL); /* fiber-X2, fiber-X3 */
    if (member->wait->kind == &hf_cond_relock) {
        (void)hf_wait_abort_linked(member->wait);
    }
    for (hf_scope *scope = member->scope; scope != NULL; scope = scope->outer) {
        scope->joiner = NULL;
    }
    member->wait = NULL;
}

/* As finish_branch (sched.c), from outside. */
static void end_branch(hf_sched *sched, hf_fiber *member)
{
    hf_branch *branch = member->branch;
    hf_assert(branch != NULL && branch->fiber == member);
    hf_work_strand(branch);
    branch->status = HF_ERR_EVICTED;
    branch->fiber = NULL;
    member->branch = NULL;
    member->cx = NULL;
    hf_branch_ended(sched, branch);
}

/* All branches have ended: none of the scopes has children, and closing does not wait. */
static void close_scopes(hf_fiber *member)
{
    member->last_where = NULL;
    while (member->scope != NULL) {
        hf_assert(member->scope->tally.running == 0);
        (void)hf_scope_close_on(member, member->scope);
    }
    hf_locals_drop(member, NULL);
    hf_box_unref(member->failure);
}

#if HF_ASAN
static void bury_main(void *arg)
{
    hf_fiber *self = arg;
    hf_context_arrived(&self->context, &self->sched->left->context);
    hf_sched_switch(self->sched, self, self->next, true);
}

/* ASan may keep frames of the stack elsewhere, and frees these only where they are in use: so the stack is entered once
 * more, and left for good. */
static void forget_frames(hf_fiber *driver, hf_fiber *member)
{
    void *fake = member->context.fake;
    __asan_unpoison_memory_region(member->stack_lo, (size_t)(member->stack_hi - member->stack_lo));
    if (fake != NULL) {
        hf_context_make(&member->context, member->stack_lo, member->stack_hi, bury_main, member);
        member->context.fake = fake;
        member->next = driver;
        hf_sched_switch(driver->sched, driver, member, false);
        __asan_unpoison_memory_region(member->stack_lo, (size_t)(member->stack_hi - member->stack_lo));
    }
}
#else
static void forget_frames(hf_fiber *driver, hf_fiber *member)
{
    (void)driver;
    (void)member;
}
#endif

/* Makes the stack as if it was never used, so that its next fiber starts from the beginning. */
static void give_stack_back(hf_fiber *driver, hf_fiber *member)
{
    hf_sched *sched = driver->sched;
    hf_assert(member->branch == NULL && member->scope == NULL && member->wait == NULL); /* fiber-X1 */
    hf_list_remove(&member->members);
    forget_frames(driver, member);
    hf_context_retire(&member->context);
    hf_context_announce(&member->context);
    member->is_made = false;
    member->kind = HF_FIBER_PLAIN;
    member->crew = NULL;
    member->is_evicted = false;
    member->is_reading = false;
    member->evicted_calls = 0;
    member->locals = NULL;
    member->failure = NULL;
    HF_DROP(sched->counters.fibers);
    if (!HF_CANARY(HF_BUG_STRANDED_STACK_LOST)) {
        hf_stack_put(sched, member);
    }
}

#define EACH_MEMBER(call)                                         \
    HF_LIST_EACH(node, &crew->members)                            \
    {                                                             \
        hf_fiber *member = HF_CONTAINER(node, hf_fiber, members); \
        call;                                                     \
    }

static void bury(hf_fiber *driver, hf_crew *crew)
{
    hf_assert(crew->ready_head == NULL && crew->mail_head == NULL && hf_list_is_empty(&crew->timers)); /* fiber-X4 */
    EACH_MEMBER(take_back_wait(member))
    EACH_MEMBER(end_branch(crew->sched, member))
    EACH_MEMBER(close_scopes(member))
    EACH_MEMBER(give_stack_back(driver, member))
    hf_assert(hf_list_is_empty(&crew->members));
}

bool hf_strand_rest(hf_fiber *driver, hf_crew *crew, size_t *stranded)
{
    hf_assert(crew->is_evicted && driver == crew->driver && !crew->is_turning); /* fiber-W5 */
    if (hf_list_is_empty(&crew->members)) {
        return true;
    }
    if (anybody_has_news(crew)) {
        hf_yield_in(driver); /* the scheduler reads its inbox meanwhile */
        return false;
    }
    *stranded += report_all(crew);
    bury(driver, crew);
    return true;
}
