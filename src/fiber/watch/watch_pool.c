/* Branches on a pool that were canceled and do not return: activities, above all.
 *
 *     the canceler, at home                 the monitor                            the pool's thread
 *     hf_watchdog_begin: onto `fresh`  ----->  takes it: a slot, and notes on it
 *                                           INTERRUPT  ------- signal -------->    handler: its stack into the notes
 *                                           COUNT: the pool is one wider,
 *                                             on_zombie frees its place
 *                                                                                  the body returns
 *                                           UNCOUNT, the notes go  <-----------    hf_watchdog_end: leaves
 *
 * The owner of a pool decides whether it is watched. A pool whose calls nobody can interrupt by contract (hf_block),
 * or whose branches may take any time for their cleanup (hf_fork), is not watched.
 *
 * fiber-B1  The monitor uses a branch (its thread, its owner's hooks) only while it has the thread pinned (fiber-P3
 *           in pool.c). It pins the thread under posts_lock, where it sees that the branch has not left. A branch
 *           leaves under the same lock, and then waits until it is not pinned. So its arg, its pool and its thread
 *           stay while they are used, and are not used afterwards.
 * fiber-B2  The notes belong to the monitor, which frees them after a look at which the branch had left. The handler
 *           runs on the branch's own thread, so it finds the notes before the branch leaves, or not at all.
 * fiber-B3  The place of a zombie is given away only when there is a thread for the branch that takes it: the pool
 *           has one more thread for as long as the zombie lives. At HF_POOL_ZOMBIES_MAX a zombie keeps its place
 *           until another one has ended. */
#include "fiber/watch/backtrace.h"
#include "fiber/watch/watch_private.h"

#include "base/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NOTES_FIRST = 16, WHO_LEN = 512 };

void hf_label_add(hf_label *label, const char *key, const char *value)
{
    hf_assert(label->count < HF_LABEL_FIELDS_MAX);
    label->fields[label->count].key = key;
    (void)snprintf(label->fields[label->count].value, HF_LABEL_VALUE_LEN, "%s", value);
    label->count++;
}

/* ---- The canceler and the thread ----------------------------------------------------------------------------- */

hf_status hf_watchdog_pool(hf_op *op, hf_dispatcher *pool, const hf_watchdog_ops *ops)
{
    hf_watchdog *watch = pool->rt->watch;
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    unsigned state = HF_WATCHDOG_NEW;
    while (!atomic_compare_exchange_strong(&watch->state, &state, HF_WATCHDOG_STARTING) &&
           state == HF_WATCHDOG_STARTING) {
        hf_yield_in(self); /* another thread is starting it, and may fail */
        state = HF_WATCHDOG_NEW;
    }
    if (state == HF_WATCHDOG_NEW) {
        hf_status status = hf_watchdog_run(watch, op);
        atomic_store(&watch->state, status == HF_OK ? HF_WATCHDOG_RUNNING : HF_WATCHDOG_NEW);
        HF_TRY(status);
    }
    hf_assert(atomic_load(&watch->state) == HF_WATCHDOG_RUNNING);
    pool->watch_ops = ops;
    return HF_OK;
}

void hf_watchdog_begin(hf_dispatcher *pool, hf_fiber *thread, const hf_branch *branch)
{
    hf_watchdog *watch = pool->rt->watch;
    hf_watchdog_post *watched = hf_pool_thread_watched(thread);
    if (atomic_exchange(&watched->is_on, true)) {
        return;
    }
    hf_assert(pool->watch_ops != NULL && atomic_load(&watched->notes) == NULL); /* fiber-B1 */
    watched->ops = pool->watch_ops;
    watched->arg = branch->arg;
    watched->since_ns = hf_rt_now(pool->rt).ns;
    hf_spin_lock(&watch->posts_lock);
    bool is_first = hf_list_is_empty(&watch->fresh);
    hf_assert(!hf_node_is_linked(&watched->node));
    hf_list_push_back(&watch->fresh, &watched->node);
    hf_spin_unlock(&watch->posts_lock);
    if (is_first) { /* else it was woken already, and takes all of them */
        hf_watchdog_ring(watch);
    }
}

void hf_watchdog_end(hf_dispatcher *pool, hf_fiber *thread)
{
    hf_watchdog *watch = pool->rt->watch;
    hf_watchdog_post *watched = hf_pool_thread_watched(thread);
    if (!atomic_load_explicit(&watched->is_on, memory_order_relaxed)) {
        return;
    }
    hf_spin_lock(&watch->posts_lock);
    hf_watchdog_notes *notes = atomic_load(&watched->notes);
    if (notes != NULL) {
        hf_assert(notes->watched == watched); /* fiber-B1 */
        notes->watched = NULL;
        atomic_store(&watched->notes, NULL);
    } else {
        hf_assert(hf_node_is_linked(&watched->node)); /* fiber-B1: the monitor has not taken it yet */
        hf_list_remove(&watched->node);
    }
    hf_spin_unlock(&watch->posts_lock);
    hf_pool_thread_settle(thread); /* fiber-B1 */
    if (watched->is_extra) {
        watched->is_extra = false;
        hf_pool_narrow(thread);
    }
    atomic_store(&watched->is_on, false);
    if (notes != NULL) {
        hf_watchdog_ring(watch);
    }
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

typedef struct tables {
    hf_watchdog_case *cases;
    hf_watchdog_sample *samples;
    hf_watchdog_action *actions;
    hf_watchdog_notes **notes;
    int notes_max;
    int slot_count;
} tables;

static void free_tables(hf_runtime *rt, const tables *t)
{
    size_t count = (size_t)t->slot_count;
    hf_rt_free(rt, t->cases, count * sizeof *t->cases);
    hf_rt_free(rt, t->samples, count * sizeof *t->samples);
    hf_rt_free(rt, t->actions, (size_t)HF_WATCHDOG_ACTIONS_MAX(t->slot_count) * sizeof *t->actions);
    hf_rt_free(rt, t->notes, (size_t)t->notes_max * sizeof(hf_watchdog_notes *));
}

static tables tables_of(const hf_watchdog *watch)
{
    return (tables){watch->policy.cases, watch->samples,   watch->actions,
                    watch->notes,        watch->notes_max, watch->policy.slot_count};
}

hf_status hf_watchdog_tables(hf_watchdog *watch, hf_op *op, int notes_max)
{
    hf_runtime *rt = watch->rt;
    tables old = tables_of(watch);
    hf_assert(notes_max >= old.notes_max);
    tables fresh = {.notes_max = notes_max, .slot_count = rt->sched_count + HF_LOST_MAX + notes_max};
    size_t count = (size_t)fresh.slot_count;
    fresh.cases = hf_rt_alloc(rt, count * sizeof *fresh.cases);
    fresh.samples = hf_rt_alloc(rt, count * sizeof *fresh.samples);
    fresh.actions = hf_rt_alloc(rt, (size_t)HF_WATCHDOG_ACTIONS_MAX(fresh.slot_count) * sizeof *fresh.actions);
    fresh.notes = notes_max > 0 ? hf_rt_alloc(rt, (size_t)notes_max * sizeof(hf_watchdog_notes *)) : NULL;
    if (fresh.cases == NULL || fresh.samples == NULL || fresh.actions == NULL ||
        (fresh.notes == NULL && notes_max > 0)) {
        free_tables(rt, &fresh);
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the watchdog");
    }
    if (old.cases == NULL) {
        hf_watchdog_figures figures = watch->policy.figures;
        hf_watchdog_policy_init(&watch->policy, &figures, rt->sched_count, fresh.cases, fresh.slot_count);
    } else {
        hf_watchdog_policy_grow(&watch->policy, fresh.cases, fresh.slot_count);
    }
    hf_spin_lock(&watch->posts_lock); /* a dump may be reading */
    for (int i = 0; i < old.notes_max; i++) {
        fresh.notes[i] = old.notes[i];
    }
    watch->notes = fresh.notes;
    watch->notes_max = notes_max;
    hf_spin_unlock(&watch->posts_lock);
    watch->samples = fresh.samples;
    watch->actions = fresh.actions;
    free_tables(rt, &old);
    return HF_OK;
}

void hf_watchdog_tables_free(hf_watchdog *watch)
{
    tables all = tables_of(watch);
    for (int i = 0; i < all.notes_max; i++) { /* notes on branches that ended after the monitor */
        hf_rt_free(watch->rt, all.notes[i], sizeof(hf_watchdog_notes));
    }
    free_tables(watch->rt, &all);
}

/* ---- Taking and sampling ----------------------------------------------------------------------------------------- */

/* Pins the thread of the branch (fiber-B1); the caller calls hf_pool_thread_unpin. NULL: the branch has left. */
static hf_watchdog_post *hold(hf_watchdog *watch, const hf_watchdog_notes *notes)
{
    hf_spin_lock(&watch->posts_lock);
    hf_watchdog_post *watched = notes->watched;
    if (watched != NULL) {
        hf_pool_thread_pin(watched->thread);
    }
    hf_spin_unlock(&watch->posts_lock);
    return watched;
}

static bool has_fresh(hf_watchdog *watch)
{
    hf_spin_lock(&watch->posts_lock);
    bool has_some = !hf_list_is_empty(&watch->fresh);
    hf_spin_unlock(&watch->posts_lock);
    return has_some;
}

/* A free index in the table of notes; -1 = no memory for more. */
static int free_index(hf_watchdog *watch)
{
    int index = 0;
    while (index < watch->notes_max && watch->notes[index] != NULL) {
        index++;
    }
    if (index == watch->notes_max && hf_watchdog_tables(watch, NULL, index > 0 ? 2 * index : NOTES_FIRST) != HF_OK) {
        return -1;
    }
    return index;
}

/* Links the oldest fresh branch with these notes. False: it has left meanwhile. */
static bool take_first(hf_watchdog *watch, hf_watchdog_notes *notes, int index)
{
    hf_spin_lock(&watch->posts_lock);
    hf_node *node = hf_list_pop_front(&watch->fresh);
    hf_watchdog_post *watched = node != NULL ? HF_CONTAINER(node, hf_watchdog_post, node) : NULL;
    if (watched != NULL) {
        hf_assert(watch->notes[index] == NULL && atomic_load(&watched->is_on)); /* fiber-B2 */
        notes->watched = watched;
        notes->since_ns = watched->since_ns;
        watch->notes[index] = notes;
        atomic_store(&watched->notes, notes);
        hf_pool_thread_pin(watched->thread);
    }
    hf_spin_unlock(&watch->posts_lock);
    if (watched == NULL) {
        return false;
    }
    hf_label label = {0};
    watched->ops->label(watched->arg, &label);
    hf_pool_thread_unpin(watched->thread);
    notes->label = label; /* no other thread reads it before the branch is counted */
    return true;
}

void hf_watchdog_take_posts(hf_watchdog *watch)
{
    while (has_fresh(watch)) {
        int index = free_index(watch);
        hf_watchdog_notes *notes = index >= 0 ? hf_rt_alloc(watch->rt, sizeof *notes) : NULL;
        if (notes == NULL) {
            return;
        }
        notes->slot = hf_watchdog_pool_first(&watch->policy) + index;
        if (!take_first(watch, notes, index)) {
            hf_rt_free(watch->rt, notes, sizeof *notes);
        }
    }
}

int hf_watchdog_sample_pools(hf_watchdog *watch, hf_watchdog_sample *ret_samples)
{
    int count = 0;
    hf_spin_lock(&watch->posts_lock);
    for (int i = 0; i < watch->notes_max; i++) {
        hf_watchdog_notes *notes = watch->notes[i];
        if (notes != NULL) {
            notes->has_left = notes->watched == NULL;
            ret_samples[count++] = (hf_watchdog_sample){
                .slot = notes->slot, .in_user = true, .is_on_pool = true, .is_gone = notes->has_left};
        }
    }
    hf_spin_unlock(&watch->posts_lock);
    return count;
}

/* ---- Actions ----------------------------------------------------------------------------------------------------- */

static void log_branch(hf_watchdog *watch, hf_log_level level, const char *event, hf_watchdog_notes *notes, int64_t ns)
{
    char who[WHO_LEN] = "";
    size_t len = 0;
    for (int i = 0; i < notes->label.count && len < sizeof who; i++) {
        hf_fields_format(who + len, sizeof who - len, "%s=%s ", notes->label.fields[i].key,
                         notes->label.fields[i].value);
        len += strlen(who + len);
    }
    if (level != HF_LOG_ERROR) {
        hf_log(watch->rt, level, event, "%sms=%" PRId64, who, ns / 1000000);
        return;
    }
    const hf_evidence *seen = hf_watchdog_evidence(&notes->ask);
    char stack[HF_WATCHDOG_STACK_LEN] = "";
    if (seen != NULL && seen->pc_count > 0) {
        hf_backtrace_format(seen->pcs, seen->pc_count, stack, sizeof stack);
    }
    hf_log(watch->rt, level, event, "%sms=%" PRId64 " slot=%s stack=\"%s\"%s", who, ns / 1000000,
           notes->owes_place ? "kept" : "free", stack,
           watch->policy.figures.may_interrupt || stack[0] != '\0' ? "" : hf_watchdog_no_stack);
}

static void interrupt(hf_watchdog *watch, hf_watchdog_notes *notes)
{
    hf_watchdog_post *watched = hold(watch, notes);
    if (watched != NULL) {
        hf_watchdog_ask_again(watch, hf_pool_thread_handle(watched->thread), &notes->ask);
        hf_pool_thread_unpin(watched->thread);
    }
}

/* fiber-B3 */
static void give_place(hf_watchdog *watch, hf_watchdog_notes *notes)
{
    hf_watchdog_post *watched = hold(watch, notes);
    notes->owes_place = false;
    if (watched == NULL) {
        return;
    }
    hf_assert(!watched->is_extra); /* fiber-B3 */
    if (hf_pool_widen(watched->thread)) {
        watched->is_extra = true;
        if (!HF_CANARY(HF_BUG_ZOMBIE_KEEPS_SLOT)) {
            watched->ops->on_zombie(watched->arg);
        }
    } else {
        notes->owes_place = true;
    }
    hf_pool_thread_unpin(watched->thread);
}

static void set_counted(hf_watchdog *watch, hf_watchdog_notes *notes, bool is_counted)
{
    hf_spin_lock(&watch->posts_lock);
    notes->is_counted = is_counted;
    hf_spin_unlock(&watch->posts_lock);
}

void hf_watchdog_act_on_pool(hf_watchdog *watch, const hf_watchdog_action *action)
{
    hf_watchdog_notes *notes = watch->notes[action->slot - hf_watchdog_pool_first(&watch->policy)];
    hf_assert(notes != NULL && notes->slot == action->slot); /* fiber-B2 */
    switch (action->kind) {
    case HF_WATCHDOG_INTERRUPT:
        interrupt(watch, notes);
        break;
    case HF_WATCHDOG_COUNT:
        set_counted(watch, notes, true);
        give_place(watch, notes);
        log_branch(watch, HF_LOG_ERROR, "zombie", notes, action->ns);
        break;
    case HF_WATCHDOG_GIVE_UP:
        log_branch(watch, HF_LOG_ERROR, "zombie_gave_up", notes, action->ns);
        break;
    case HF_WATCHDOG_UNCOUNT:
        set_counted(watch, notes, false);
        log_branch(watch, HF_LOG_WARN, "zombie_gone", notes, action->ns);
        break;
    case HF_WATCHDOG_REPORT:
    case HF_WATCHDOG_CANCEL:
    case HF_WATCHDOG_REPLACE:
    case HF_WATCHDOG_SHUTDOWN:
    case HF_WATCHDOG_CANCEL_ALL:
    case HF_WATCHDOG_FATAL:
        break;
    }
}

void hf_watchdog_settle_pools(hf_watchdog *watch)
{
    for (int i = 0; i < watch->notes_max; i++) {
        hf_watchdog_notes *notes = watch->notes[i];
        if (notes != NULL && notes->has_left) {
            hf_assert(notes->watched == NULL); /* fiber-B2 */
            hf_spin_lock(&watch->posts_lock);
            watch->notes[i] = NULL;
            hf_spin_unlock(&watch->posts_lock);
            hf_rt_free(watch->rt, notes, sizeof *notes);
        }
    }
    for (int i = 0; i < watch->notes_max; i++) {
        hf_watchdog_notes *notes = watch->notes[i];
        if (notes != NULL && notes->owes_place) {
            give_place(watch, notes);
        }
    }
}

bool hf_watchdog_owes_pools(hf_watchdog *watch)
{
    return has_fresh(watch);
}

/* ---- For dumps --------------------------------------------------------------------------------------------------- */

static int copy_zombies(hf_watchdog *watch, hf_zombie *into, size_t room)
{
    size_t count = 0;
    int64_t now = hf_rt_now(watch->rt).ns;
    hf_spin_lock(&watch->posts_lock);
    for (int i = 0; i < watch->notes_max; i++) {
        const hf_watchdog_notes *notes = watch->notes[i];
        if (notes == NULL || !notes->is_counted) {
            continue;
        }
        if (count < room) {
            into[count] = (hf_zombie){notes->label, now - notes->since_ns};
        }
        count++;
    }
    hf_spin_unlock(&watch->posts_lock);
    return (int)count;
}

int hf_watchdog_list(hf_runtime *rt, hf_zombie **ret_zombies, size_t *ret_room)
{
    *ret_zombies = NULL;
    *ret_room = (size_t)copy_zombies(rt->watch, NULL, 0);
    *ret_room = *ret_room < HF_ZOMBIES_LISTED_MAX ? *ret_room : HF_ZOMBIES_LISTED_MAX;
    if (*ret_room == 0) {
        return 0;
    }
    *ret_zombies = hf_rt_alloc(rt, *ret_room * sizeof **ret_zombies);
    if (*ret_zombies == NULL) {
        return -1;
    }
    int count = copy_zombies(rt->watch, *ret_zombies, *ret_room);
    return (size_t)count < *ret_room ? count : (int)*ret_room;
}
