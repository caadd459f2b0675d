/* The inbox and its driver.
 *
 *     post:   push; nobody drives? -> drive: take all, act, settle, until nothing is left
 *     ask:    the same, then park until answered. A cancel or a deadline takes the ask out of the inbox or of the list it waits in
 *             (`abort_ask`); while the driver has it, it is only marked, and the driver answers it when it would park it.
 *
 * An ask that can only join a flight need not wait for its turn to be acted on: while nobody drives nothing changes, so what the
 * driver found at the end of its last turn still holds (`may_board`). It queues up in `boarded`, under the lock, and the next driver
 * counts all of those before it does anything else. For 10,000 fibers that ask for one key that is 10,000 turns less.
 *
 * A driver that is not the keeper leaves the commit to it (`leaves_commit`), so that fibers that are ready now write in the same one.
 *
 * The thread of the store and functions that run inside the library do not drive, because a driver calls the user's
 * functions: they wake the keeper, a fiber of the depot. It also watches the timers. */
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/outbox.h"

#include "fiber/verbs.h"

/* ---- Driving ----------------------------------------------------------------------------------------------------- */

/* Whether the commit is left to the keeper. Its turn comes after those of the fibers that are ready now, and it waits for calls
 * that are about to begin: most of these have something to write as well, and so it is one commit and not two. Plain threads and
 * other schedulers do not wait for a fiber of another thread. */
static bool leaves_commit(hf_depot *depot)
{
    const hf_fiber *self = atomic_load_explicit(&depot->driver, memory_order_relaxed);
    if (self == NULL || self->kind != HF_FIBER_PLAIN || depot->is_ending ||
        atomic_load_explicit(&depot->keeper_home, memory_order_relaxed) != self->sched) {
        return false;
    }
    hf_spin_lock(&depot->lock);
    bool leaves = !depot->is_kept || depot->calls_new > 0;
    hf_spin_unlock(&depot->lock);
    return leaves;
}

static void settle(hf_depot *depot)
{
    hf_depot_look_at_subs(depot);
    hf_depot_start_flights(depot);
    hf_depot_start_sends(depot);
    if (!depot->is_committing && !hf_list_is_empty(&depot->batch) && !leaves_commit(depot)) {
        hf_depot_commit(depot);
    }
    hf_depot_look_at_end(depot);
}

void hf_depot_count_boarded(hf_depot *depot)
{
    size_t count = depot->boarded_count;
    depot->is_boarding = false;
    if (HF_LIKELY(count == 0)) {
        return;
    }
    hf_depot_flight *flight = depot->open_flight;
    hf_assert(flight != NULL && !flight->is_over);
    hf_assert(flight->holders > 0 || flight->is_landing); /* DP7: one that is being written goes on without holders */
    hf_list_append_all(&flight->waiters, &depot->boarded);
    depot->boarded_count = 0;
    depot->boarding++;
    flight->slot->holds += (unsigned)count;
    flight->refs += (unsigned)count;
    flight->holders += (unsigned)count;
    depot->counts.misses += count;
    depot->counts.joined += count;
}

/* At the end of a turn: whether every get of the key of the last flight would join it, whatever its freshness, unless that is
 * HF_FRESH_LOCAL. */
static bool may_board(const hf_depot *depot)
{
    const hf_depot_flight *flight = depot->open_flight;
    if (HF_LIKELY(flight == NULL)) {
        return false;
    }
    const hf_depot_slot *slot = flight->slot;
    hf_assert(slot->flight == flight && !flight->is_over); /* DP1 */
    return slot->load == HF_SLOT_KNOWN && slot->snap->kind == HF_ENTRY_NONE && !slot->snap->is_pending &&
           flight->query == NULL && !flight->is_void && flight->began >= slot->stirred &&
           slot->entry.backoff_until == 0 && depot->breakers[flight->origin].state == HF_BREAKER_CLOSED &&
           !depot->is_offline && !depot->is_ending && depot->options.subscribe == NULL &&
           hf_list_is_empty(&depot->alias_order);
}

/* The caller has set is_driven. */
static void drive(hf_depot *depot)
{
    const hf_fiber *self = (const hf_fiber *)(void *)hf_self_get();
    atomic_store_explicit(&depot->driver, self, memory_order_relaxed);
    for (;;) {
        hf_spin_lock(&depot->lock);
        hf_assert(depot->is_driven); /* depot-D1 */
        hf_depot_count_boarded(depot);
        hf_node *node = hf_list_pop_front(&depot->inbox); /* the rest stays, where an abort finds it */
        hf_spin_unlock(&depot->lock);
        hf_post *post = node != NULL ? HF_CONTAINER(node, hf_post, node) : NULL;
        if (post != NULL) {
            post->act(depot, post);
            continue;
        }
        settle(depot);
        bool may = may_board(depot);
        /* A plain thread talks to this runtime again, whatever the user's functions did: from the unlock on another one
         * may drive, and wake it. */
        hf_fiber *own = hf_enter(depot->rt);
        if (own != NULL) {
            hf_leave(own);
        }
        hf_spin_lock(&depot->lock);
        bool is_over = hf_list_is_empty(&depot->inbox) && hf_list_is_empty(&depot->subs);
        if (is_over) {
            atomic_store_explicit(&depot->driver, NULL, memory_order_relaxed);
            depot->is_driven = false;
            depot->is_boarding = may;
            depot->is_kept = false;
            depot->wants_commit = !depot->is_committing && !hf_list_is_empty(&depot->batch);
        }
        hf_spin_unlock(&depot->lock);
        if (is_over) {
            return;
        }
    }
}

/* Under the lock: the keeper, claimed, if it sleeps. */
static hf_wait *claim_keeper(hf_depot *depot)
{
    hf_node *node = hf_list_pop_front(&depot->keeper_waits);
    return node != NULL ? HF_CONTAINER(node, hf_wait, node) : NULL;
}

static void wake(hf_depot *depot, hf_wait *wait)
{
    hf_fiber *self = hf_enter(depot->rt);
    if (wait != NULL && self != NULL) {
        hf_wake(wait, HF_OK);
    }
    if (self != NULL) {
        hf_leave(self);
    }
}

/* Under the lock: the ask joins the last flight, if nothing else can become of it. */
static bool board(hf_depot *depot, hf_ask *ask)
{
    if (depot->is_driven || !depot->is_boarding || !ask->may_board || !hf_list_is_empty(&depot->inbox) ||
        !hf_str_equal(ask->key, hf_slot_key(depot->open_flight->slot))) {
        return false;
    }
    ask->flight = depot->open_flight;
    ask->slot = depot->open_flight->slot;
    ask->boarding = depot->boarding;
    hf_list_push_back(&depot->boarded, &ask->wait.node);
    depot->boarded_count++;
    return true;
}

/* Pushes, unless the ask boards; NULL = it is none. True: the caller drives. */
static bool push(hf_depot *depot, hf_post *post, hf_ask *ask)
{
    bool drives = false;
    hf_spin_lock(&depot->lock);
    if (ask == NULL || !board(depot, ask)) {
        hf_list_push_back(&depot->inbox, &post->node);
        drives = !depot->is_driven;
        depot->is_driven = true;
    }
    hf_spin_unlock(&depot->lock);
    return drives;
}

/* The keeper sleeps until the first timer: wakes it if that is another one now. */
static void after_driving(hf_depot *depot)
{
    hf_spin_lock(&depot->lock);
    hf_wait *keeper = depot->timer_moved || (depot->wants_commit && depot->calls_new == 0) ? claim_keeper(depot) : NULL;
    depot->timer_moved = false;
    hf_spin_unlock(&depot->lock);
    if (keeper != NULL) {
        wake(depot, keeper);
    }
}

void hf_depot_post(hf_depot *depot, hf_post *post)
{
    if (push(depot, post, NULL)) {
        drive(depot);
        after_driving(depot);
    }
}

void hf_depot_post_quietly(hf_depot *depot, hf_post *post)
{
    hf_spin_lock(&depot->lock);
    hf_list_push_back(&depot->inbox, &post->node);
    hf_wait *keeper = depot->is_driven ? NULL : claim_keeper(depot);
    hf_spin_unlock(&depot->lock);
    if (keeper != NULL) {
        hf_wake(keeper, HF_OK);
    }
}

/* ---- Asks -------------------------------------------------------------------------------------------------------- */

static bool abort_ask(hf_wait *wait)
{
    hf_ask *ask = HF_CONTAINER(wait, hf_ask, wait);
    hf_depot *depot = wait->object;
    bool claimed = true;
    hf_spin_lock(&depot->lock);
    if (hf_node_is_linked(&ask->post.node)) {
        hf_list_remove(&ask->post.node);
    } else if (hf_node_is_linked(&wait->node)) {
        hf_list_remove(&wait->node);
        if (ask->boarding == depot->boarding) { /* it was not counted: nothing is to be given back */
            hf_assert(depot->boarded_count > 0);
            depot->boarded_count--;
            ask->slot = NULL;
            ask->flight = NULL;
        }
    } else {
        ask->wants_out = true;
        claimed = false;
    }
    hf_spin_unlock(&depot->lock);
    return claimed;
}

void hf_depot_answer(hf_depot *depot, hf_ask *ask, hf_status status)
{
    const hf_fiber *driver = atomic_load_explicit(&depot->driver, memory_order_relaxed);
    hf_assert(!hf_node_is_linked(&ask->post.node) && !hf_node_is_linked(&ask->wait.node)); /* depot-D3 */
    hf_depot_slot *slot = ask->slot;
    hf_depot_flight *flight = ask->flight;
    ask->slot = NULL;
    ask->flight = NULL;
    if (ask->many != NULL) {
        hf_many_answered(depot, ask, status);
    } else if (ask->wait.fiber == driver) { /* it is not parked: it drives */
        ask->wait.status = status;
        ask->is_done = true;
    } else {
        hf_fiber *self = hf_enter(depot->rt);
        if (HF_LIKELY(self != NULL)) { /* from the wake on the ask may be gone */
            hf_wake_hot(self, &ask->wait, status);
            hf_leave(self);
        } else {
            hf_wake(&ask->wait, status);
        }
    }
    if (flight != NULL) {
        hf_flight_leave(depot, flight);
    }
    if (slot != NULL) {
        hf_slot_let_go(depot, slot);
    }
}

/* The status of an ask that wants out. */
static hf_status out_status(const hf_depot *depot, const hf_ask *ask)
{
    return hf_rt_now(depot->rt).ns >= ask->deadline.ns ? HF_ERR_TIMEOUT : HF_ERR_CANCELED;
}

bool hf_depot_park(hf_depot *depot, hf_ask *ask, hf_list *list)
{
    hf_spin_lock(&depot->lock);
    bool stays = !ask->wants_out;
    if (stays) {
        hf_list_push_back(list, &ask->wait.node);
    }
    hf_spin_unlock(&depot->lock);
    if (!stays) {
        hf_depot_answer(depot, ask, out_status(depot, ask));
    }
    return stays;
}

bool hf_depot_refuses(hf_depot *depot, hf_ask *ask)
{
    if (depot->is_ending) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_CLOSED, "depot '%s' is closed", depot->name));
        return true;
    }
    return false;
}

hf_ask *hf_depot_unpark(hf_depot *depot, hf_list *list)
{
    hf_spin_lock(&depot->lock);
    hf_node *node = hf_list_pop_front(list);
    hf_spin_unlock(&depot->lock);
    return node != NULL ? HF_CONTAINER(HF_CONTAINER(node, hf_wait, node), hf_ask, wait) : NULL;
}

/* What an ask that was taken back still holds. */
typedef struct leaving {
    hf_post post;
    hf_depot_slot *slot;
    hf_depot_flight *flight;
} leaving;

static void leave_all(hf_depot *depot, const leaving *one)
{
    if (one->flight != NULL) {
        hf_flight_leave(depot, one->flight);
    }
    hf_slot_let_go(depot, one->slot);
}

static void act_leave(hf_depot *depot, hf_post *post)
{
    leaving *one = HF_CONTAINER(post, leaving, post);
    leave_all(depot, one);
    hf_rt_free(depot->rt, one, sizeof *one);
}

static void act_leave_and_tell(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    leave_all(depot, ask->what);
    hf_depot_answer(depot, ask, HF_OK);
}

/* The ask was aborted: what it holds goes back. It is on its caller's stack, so the message is not part of it. */
static HF_NOINLINE void take_back(hf_depot *depot, const hf_ask *ask)
{
    hf_assert(ask->slot != NULL);
    leaving *one = hf_rt_alloc(depot->rt, sizeof *one);
    if (one == NULL) { /* the caller waits until the driver has seen to it: without that the fetch would never end */
        leaving own = {.slot = ask->slot, .flight = ask->flight};
        hf_ask tell = {.what = &own};
        hf_depot_tell(depot, &tell, act_leave_and_tell, "hf_depot");
        return;
    }
    one->slot = ask->slot;
    one->flight = ask->flight;
    one->post.act = act_leave;
    hf_depot_post(depot, &one->post);
}

/* Posts the ask of `self`, and drives unless somebody else does. Leaves the library and enters it again. */
static hf_fiber *post_ask(hf_depot *depot, hf_ask *ask, hf_fiber *self)
{
    hf_sync_point(self);
    bool drives = push(depot, &ask->post, ask);
    if (!drives) {
        return self;
    }
    hf_leave(self);
    drive(depot);
    after_driving(depot);
    self = hf_enter(depot->rt);
    hf_assert(self != NULL);
    return self;
}

hf_status hf_depot_ask(hf_depot *depot, hf_ask *ask, void (*act)(hf_depot *, hf_post *), const char *verb,
                       hf_span timeout)
{
    hf_wait_kind *kind = &ask->kind;
    *kind = (hf_wait_kind){verb, abort_ask};
    hf_fiber *self = hf_enter(depot->rt);
    if (self == NULL) {
        return hf_forked();
    }
    hf_status status = hf_may_wait(self, verb);
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    hf_op_init(&ask->op);
    if (ask->key.data != NULL && hf_depot_is_called_for(self, depot, ask->key)) {
        (void)hf_depot_refuse_own(&ask->op, depot, verb);
        HF_LEAVE(self, hf_op_end(self, &ask->op));
    }
    ask->post.act = act;
    ask->deadline = timeout.ns == 0 ? HF_INSTANT_NEVER : hf_self_deadline(self, depot->rt, timeout);
    hf_wait_init(&ask->wait, self, kind, depot, depot->name);
    self = post_ask(depot, ask, self);
    bool was_aborted = false;
    if (ask->is_done) {
        status = ask->wait.status;
    } else {
        status = hf_park(self, &ask->wait, ask->deadline);
        was_aborted =
            (status == HF_ERR_CANCELED || status == HF_ERR_TIMEOUT || status == HF_ERR_NOMEM) && ask->slot != NULL;
    }
    if (ask->failure != NULL) {
        hf_self_fail(self, ask->failure);
        ask->failure = NULL;
        status = hf_self_return(self, status);
    } else if (ask->op.status != HF_OK && ask->op.status == status) {
        status = hf_op_end(self, &ask->op);
    } else if (status != HF_OK) {
        hf_self_note(self, status, verb);
    }
    hf_leave(self);
    if (was_aborted) {
        take_back(depot, ask);
    }
    return status;
}

hf_status hf_depot_ask_of(hf_depot *depot, hf_depot_key key, hf_ask *ask, void (*act)(hf_depot *, hf_post *),
                          const char *verb)
{
    hf_depot_key_bytes bytes;
    hf_op op;
    hf_op_init(&op);
    if (hf_depot_key_pack(&op, key, &bytes) != HF_OK) {
        return hf_depot_raise(depot, &op);
    }
    ask->key = hf_depot_key_str(&bytes);
    return hf_depot_ask(depot, ask, act, verb, hf_nanoseconds(0));
}

static const hf_wait_kind TELL = {"hf_depot", NULL};

void hf_depot_tell(hf_depot *depot, hf_ask *ask, void (*act)(hf_depot *, hf_post *), const char *verb)
{
    hf_fiber *self = hf_enter(depot->rt);
    hf_assert(self != NULL && verb != NULL);
    ask->post.act = act;
    hf_op_init(&ask->op);
    ask->deadline = HF_INSTANT_NEVER;
    hf_wait_init(&ask->wait, self, &TELL, depot, depot->name);
    self = post_ask(depot, ask, self);
    if (!ask->is_done) {
        (void)hf_park(self, &ask->wait, HF_INSTANT_NEVER);
    }
    hf_leave(self);
}

/* ---- The keeper -------------------------------------------------------------------------------------------------- */

static bool abort_keeper(hf_wait *wait)
{
    return hf_wait_abort_linked(wait);
}

static const hf_wait_kind KEEPER = {"hf_depot", abort_keeper};
static const hf_wait_kind KEEPER_LAST = {"hf_depot", NULL};

static void fire(hf_depot *depot)
{
    for (;;) {
        hf_heap_node *first = hf_heap_first(&depot->timers);
        if (first == NULL || first->key > hf_rt_now(depot->rt).ns) {
            return;
        }
        hf_heap_remove(&depot->timers, first);
        hf_depot_timer_node *timer = HF_CONTAINER(first, hf_depot_timer_node, node);
        timer->ring(depot, timer);
    }
}

static void act_tick(hf_depot *depot, hf_post *post)
{
    (void)post;
    hf_spin_lock(&depot->lock);
    depot->tick_is_posted = false;
    hf_spin_unlock(&depot->lock);
    fire(depot);
}

hf_status hf_depot_make_timers(hf_depot *depot)
{
    /* One for the sends of each key with a write, one for each watcher, two for its subscription, and some of the depot's own. DP6: a
     * write that waits is looked at again. */
    enum { OWN = 8 };
    size_t of_watcher = depot->options.subscribe != NULL ? 3 : 1;
    return hf_heap_reserve(&depot->timers, depot->row_count + of_watcher * depot->watcher_count + OWN);
}

void hf_depot_timer(hf_depot *depot, hf_depot_timer_node *timer, int64_t when_ns)
{
    if (hf_heap_set(&depot->timers, &timer->node, when_ns) == HF_OK && hf_heap_first(&depot->timers) == &timer->node) {
        hf_spin_lock(&depot->lock);
        depot->timer_moved = true;
        hf_spin_unlock(&depot->lock);
    }
}

static void post_tick(hf_depot *depot)
{
    hf_spin_lock(&depot->lock);
    bool posts = !depot->tick_is_posted;
    depot->tick_is_posted = true;
    hf_spin_unlock(&depot->lock);
    if (posts) {
        depot->tick.act = act_tick;
        hf_depot_post(depot, &depot->tick);
    }
}

hf_status hf_depot_keeper(void *arg)
{
    hf_depot *depot = arg;
    bool is_canceled = false;
    atomic_store_explicit(&depot->keeper_home, ((const hf_fiber *)(void *)hf_self_get())->sched, memory_order_relaxed);
    for (;;) {
        hf_fiber *self = hf_enter(depot->rt);
        hf_assert(self != NULL);
        hf_wait wait;
        hf_wait_init(&wait, self, is_canceled ? &KEEPER_LAST : &KEEPER, depot, depot->name);
        hf_sync_point(self);
        hf_spin_lock(&depot->lock);
        bool ends = depot->keeper_ends;
        bool commits = depot->wants_commit && depot->calls_new == 0;
        bool drives = !ends && !depot->is_driven && (commits || !hf_list_is_empty(&depot->inbox));
        hf_heap_node *first = NULL;
        bool sleeps = !ends && !drives;
        if (drives) {
            depot->is_driven = depot->is_kept = true;
        } else if (sleeps) {
            /* The heap belongs to the driver; while somebody drives, after_driving wakes the keeper if the first timer
             * moves. */
            first = depot->is_driven || is_canceled ? NULL : hf_heap_first(&depot->timers);
            hf_list_push_back(&depot->keeper_waits, &wait.node);
            depot->timer_moved = depot->is_driven;
        }
        hf_instant until = first != NULL ? (hf_instant){first->key} : HF_INSTANT_NEVER;
        hf_spin_unlock(&depot->lock);
        hf_status status = sleeps ? hf_park(self, &wait, until) : HF_OK;
        if (status == HF_ERR_NOMEM) { /* for the alarm: others may run, and give some back */
            hf_yield_in(self);
        }
        hf_leave(self);
        if (ends) {
            return HF_OK;
        }
        if (drives) {
            drive(depot);
        }
        is_canceled = is_canceled || status == HF_ERR_CANCELED;
        if (status == HF_ERR_TIMEOUT) {
            post_tick(depot);
        }
    }
}

void hf_depot_call_begins(hf_depot *depot)
{
    hf_spin_lock(&depot->lock);
    hf_assert(depot->calls_new > 0);
    bool is_last = --depot->calls_new == 0;
    hf_wait *keeper = is_last && depot->wants_commit && !depot->is_driven ? claim_keeper(depot) : NULL;
    hf_spin_unlock(&depot->lock);
    if (keeper != NULL) {
        wake(depot, keeper);
    }
}

void hf_depot_end_keeper(hf_depot *depot)
{
    hf_spin_lock(&depot->lock);
    depot->keeper_ends = true;
    hf_wait *keeper = claim_keeper(depot);
    hf_spin_unlock(&depot->lock);
    wake(depot, keeper);
}

/* ---- Verbs ------------------------------------------------------------------------------------------------------- */

hf_status hf_depot_raise(hf_depot *depot, const hf_op *op)
{
    hf_fiber *self = hf_enter(depot != NULL ? depot->rt : NULL);
    if (self == NULL) {
        return hf_forked();
    }
    HF_LEAVE(self, hf_op_end(self, op));
}

hf_status hf_depot_check_place(hf_runtime *rt, const char *verb)
{
    hf_fiber *self = hf_enter(rt);
    if (self == NULL) {
        return hf_forked();
    }
    HF_LEAVE(self, self->hook_depth != 0 ? hf_refuse_in_hook(self, verb, true) : HF_OK);
}

/* Apart, so that its record of a failure is not on the stack of every caller that waits. */
static HF_NOINLINE hf_status refuse_call(hf_depot *depot, hf_status status, const char *verb)
{
    hf_op op;
    hf_op_init(&op);
    if (depot == NULL) {
        (void)hf_fail_at(&op, status, verb, "%s needs a depot", verb);
    } else if (status == HF_ERR_CLOSED) {
        (void)hf_fail_at(&op, status, verb, "depot '%s' is closed", depot->name);
    } else {
        (void)hf_fail_at(&op, status, verb,
                         "%s was called by a function that depot '%s' has called: it must not wait for the depot", verb,
                         depot->name);
    }
    return hf_depot_raise(depot, &op);
}

hf_status hf_depot_enter(hf_depot *depot, const char *verb)
{
    if (HF_UNLIKELY(depot == NULL)) {
        return refuse_call(NULL, HF_ERR_MISUSE, verb);
    }
    HF_TRY(hf_depot_check_place(depot->rt, verb));
    const hf_fiber *self = (const hf_fiber *)(void *)hf_self_get();
    if (HF_UNLIKELY(self != NULL && atomic_load_explicit(&depot->driver, memory_order_relaxed) == self)) {
        return refuse_call(depot, HF_ERR_MISUSE, verb);
    }
    hf_spin_lock(&depot->lock);
    bool is_open = !depot->is_closing;
    depot->users += is_open;
    hf_spin_unlock(&depot->lock);
    return HF_LIKELY(is_open) ? HF_OK : refuse_call(depot, HF_ERR_CLOSED, verb);
}

void hf_depot_leave(hf_depot *depot)
{
    hf_spin_lock(&depot->lock);
    hf_assert(depot->users > 0);
    depot->users--;
    /* The closer waits for the last call; it looks again when the keeper drives. From the unlock on the depot may be
     * gone. */
    hf_wait *closer = NULL;
    if (depot->users == 0 && depot->is_closing) {
        hf_node *node = hf_list_pop_front(&depot->closer_waits);
        closer = node != NULL ? HF_CONTAINER(node, hf_wait, node) : NULL;
    }
    hf_runtime *rt = depot->rt;
    hf_spin_unlock(&depot->lock);
    if (closer != NULL) {
        hf_fiber *self = hf_enter(rt);
        hf_wake(closer, HF_OK);
        if (self != NULL) {
            hf_leave(self);
        }
    }
}
