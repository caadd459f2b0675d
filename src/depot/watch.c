/* Watchers: every visible change of a key, in the order of its versions, and what became of fetching it. A watcher
 * never holds up the depot: events that it has not taken are replaced by newer ones, or the oldest are dropped, as its
 * mode says. */
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/lists.h"

#include "base/canary.h"
#include "fiber/verbs.h"

enum { CAPACITY = 16 };

/* An event with references of its own. Of DATA it has the value, or with .decode the snapshot, whose value is made when the event is
 * taken. */
typedef struct hf_watch_item {
    hf_depot_event event;
    hf_snap *snap;
} hf_watch_item;

/* Where an event goes that is handed to the one who waits: hf_wait.value. */
typedef struct handed {
    hf_depot_event *event;
    hf_snap *snap;
} handed;

/* Places of the ring. */
static size_t places(const hf_watcher *watcher)
{
    return watcher->capacity + 1; /* REKEYED, which comes at most once, takes none of the others */
}

/* Under the watcher's lock: the place in the ring. */
static hf_watch_item *item_at(hf_watcher *watcher, size_t i)
{
    hf_assert(i < places(watcher));
    return &watcher->items[(watcher->first + i) % places(watcher)];
}

typedef enum event_class { CLASS_DATA, CLASS_ERROR, CLASS_REKEYED } event_class;

static event_class class_of(hf_depot_event_kind kind)
{
    return kind == HF_DEPOT_ERROR ? CLASS_ERROR : kind == HF_DEPOT_REKEYED ? CLASS_REKEYED : CLASS_DATA;
}

/* Under the watcher's lock: the event that the new one replaces; count = none. With conflation there is one of DATA, GONE
 * or LOADING, and one ERROR. A full buffer gives up the last one of the same class, so that the newest is there (DP4), or
 * without one the last. REKEYED has a place of its own. */
static size_t replaced(hf_watcher *watcher, hf_depot_event_kind kind)
{
    size_t at = watcher->count;
    size_t last = watcher->count;
    bool is_full = watcher->count - watcher->is_rekeyed == watcher->capacity;
    if (kind == HF_DEPOT_REKEYED || (watcher->mode != HF_FLOW_CONFLATE && !is_full)) {
        return at;
    }
    for (size_t i = watcher->count; i > 0; i--) {
        event_class found = class_of(item_at(watcher, i - 1)->event.kind);
        if (found == CLASS_REKEYED) {
            continue;
        }
        last = last == watcher->count ? i - 1 : last;
        bool goes = watcher->mode == HF_FLOW_DROP_OLDEST || (found == class_of(kind) && at == watcher->count);
        at = goes ? i - 1 : at;
    }
    return at == watcher->count && is_full ? last : at;
}

/* Under the watcher's lock: the event waits until it is taken. Returns what had to go. */
static hf_watch_item keep(hf_watcher *watcher, hf_watch_item item)
{
    hf_watch_item old = {0};
    size_t at = replaced(watcher, item.event.kind);
    if (at < watcher->count) { /* the newer one comes last */
        old = *item_at(watcher, at);
        for (size_t i = at; i + 1 < watcher->count; i++) {
            *item_at(watcher, i) = *item_at(watcher, i + 1);
        }
        watcher->count--;
        watcher->dropped++;
    }
    hf_assert(item.event.kind != HF_DEPOT_REKEYED || !watcher->is_rekeyed);
    hf_assert(watcher->count < places(watcher)); /* DP8 */
    watcher->is_rekeyed = watcher->is_rekeyed || item.event.kind == HF_DEPOT_REKEYED;
    *item_at(watcher, watcher->count++) = item;
    if (HF_CANARY(HF_BUG_OLDER_VERSION) && watcher->count > 1) {
        hf_watch_item newest = *item_at(watcher, watcher->count - 1);
        *item_at(watcher, watcher->count - 1) = *item_at(watcher, watcher->count - 2);
        *item_at(watcher, watcher->count - 2) = newest;
    }
    return old;
}

/* Nobody waits: the event is kept. Unlocks. */
static HF_NOINLINE void keep_for_later(hf_watcher *watcher, const hf_depot_event *event, hf_snap *snap)
{
    hf_watch_item old = keep(watcher, (hf_watch_item){*event, snap});
    hf_spin_unlock(&watcher->lock);
    hf_assert(old.event.kind != HF_DEPOT_REKEYED); /* it has a place of its own */
    hf_value_unref(old.event.value);
    hf_snap_unref(old.snap);
}

/* Inside the library. Takes the references of the event, and `snap`; NULL = it has none. */
static inline void give_in(hf_fiber *self, hf_watcher *watcher, const hf_depot_event *event, hf_snap *snap)
{
    hf_spin_lock(&watcher->lock);
    hf_node *waiting = hf_list_first(&watcher->waiters);
    if (HF_UNLIKELY(waiting == NULL)) {
        keep_for_later(watcher, event, snap);
        return;
    }
    hf_wait *receiver =
        HF_CONTAINER(waiting, hf_wait, node); /* it is handed over, as by a flow: nothing is before it */
    handed *to = receiver->value;
    hf_assert(watcher->count == 0);
    *to->event = *event;
    to->snap = snap;
    hf_list_remove(waiting);
    hf_spin_unlock(&watcher->lock);
    if (HF_LIKELY(self != NULL)) {
        hf_wake_hot(self, receiver, HF_OK);
    } else {
        hf_wake(receiver, HF_OK);
    }
}

/* Takes the references of the event. */
static void give(hf_depot *depot, hf_watcher *watcher, hf_depot_event event)
{
    hf_fiber *self = hf_enter(depot->rt);
    give_in(self, watcher, &event, NULL);
    if (self != NULL) {
        hf_leave(self);
    }
}

/* What watchers are shown of a slot: the same for all of them, but for the age that each takes for old. */
typedef struct showing {
    hf_depot_event event; /* its value is borrowed */
    hf_snap *snap;        /* that the value is made of when the event is taken, borrowed; NULL = the event has it */
    hf_span age;
    bool is_there; /* DP3: there is a value, and it was not invalidated */
    bool is_stale;
} showing;

static showing show_of(const hf_depot *depot, const hf_depot_slot *slot)
{
    hf_snap *snap = slot->snap;
    hf_look_at at = hf_snap_look(depot, snap, hf_depot_wall(depot));
    bool is_there = at.local == HF_LOCAL_FRESH || at.local == HF_LOCAL_STALE;
    bool is_made = is_there && depot->options.decode != NULL;
    hf_assert(slot->load == HF_SLOT_KNOWN);
    return (showing){
        .event =
            {
                .kind = is_there ? HF_DEPOT_DATA : HF_DEPOT_GONE,
                .value = is_there && !is_made ? snap->value : NULL,
                .age = hf_nanoseconds(at.age),
                .is_pending = snap->is_pending,
                .version = snap->entry.version,
            },
        .snap = is_made ? snap : NULL,
        .age = hf_nanoseconds(at.age),
        .is_there = is_there,
        .is_stale = at.local != HF_LOCAL_FRESH,
    };
}

/* Inside the library. DATA, or GONE if the watcher has seen something before. */
static inline void show(hf_fiber *self, hf_watcher *watcher, showing *one)
{
    bool is_old =
        watcher->rule.fresh == HF_FRESH_WITHIN && !one->event.is_pending && one->age.ns > watcher->rule.within;
    hf_assert(one->event.version >= watcher->seen); /* DP4 */
    if (!one->is_there && !watcher->has_value) {
        return;
    }
    watcher->has_value = one->is_there;
    watcher->is_loading = watcher->is_loading && !one->is_there;
    watcher->seen = one->event.version;
    one->event.is_stale = one->is_stale || is_old;
    (void)hf_value_ref(one->event.value);
    give_in(self, watcher, &one->event, hf_snap_ref(one->snap));
}

static void show_one(hf_depot *depot, hf_watcher *watcher)
{
    showing one = show_of(depot, watcher->slot);
    hf_fiber *self = hf_enter(depot->rt);
    show(self, watcher, &one);
    if (self != NULL) {
        hf_leave(self);
    }
}

void hf_watch_show(hf_depot *depot, hf_depot_slot *slot, bool is_renewed)
{
    if (hf_list_is_empty(&slot->watchers)) {
        return;
    }
    showing one = show_of(depot, slot); /* once: there may be many watchers */
    hf_fiber *self = hf_enter(depot->rt);
    HF_LIST_EACH(node, &slot->watchers)
    {
        hf_watcher *watcher = HF_CONTAINER(node, hf_watcher, node);
        const hf_watcher *next = HF_CONTAINER(node->next, hf_watcher, node); /* not one behind the last: only fetched */
        __builtin_prefetch(next, 1);
        __builtin_prefetch(&next->waiters, 1);
        hf_assert(watcher->slot == slot);
        if (is_renewed || watcher->seen != one.event.version) {
            show(self, watcher, &one);
        }
    }
    if (self != NULL) {
        hf_leave(self);
    }
}

void hf_watch_look_again(hf_depot *depot, hf_watcher *watcher)
{
    hf_assert(watcher->is_list && watcher->slot != NULL && watcher->slot->load == HF_SLOT_KNOWN);
    if (watcher->has_value) { /* else it hears of the list when there is one */
        show_one(depot, watcher);
    }
}

void hf_watch_members(hf_depot *depot, hf_depot_slot *slot)
{
    HF_LIST_EACH(node, &slot->watchers)
    {
        hf_watcher *watcher = HF_CONTAINER(node, hf_watcher, node);
        if (watcher->is_list) {
            hf_watch_look_again(depot, watcher);
        }
    }
}

void hf_watch_paged(hf_depot *depot, hf_depot_slot *slot)
{
    HF_LIST_EACH(node, &slot->watchers)
    {
        hf_watcher *watcher = HF_CONTAINER(node, hf_watcher, node);
        if (watcher->is_paged) { /* hf_pages_next looks at all there is, whatever the event says */
            give(depot, watcher, (hf_depot_event){.kind = HF_DEPOT_LOADING});
        }
    }
}

void hf_watch_failed(hf_depot *depot, hf_depot_slot *slot, hf_status status)
{
    HF_LIST_EACH(node, &slot->watchers)
    {
        hf_watcher *watcher = HF_CONTAINER(node, hf_watcher, node);
        if (status != HF_ERR_NOT_FOUND || watcher->is_loading) { /* else it has seen that the value is gone */
            give(depot, watcher,
                 (hf_depot_event){.kind = HF_DEPOT_ERROR, .status = status, .served_stale = watcher->has_value});
        }
        watcher->is_loading = false;
    }
}

void hf_watch_landed(hf_depot_slot *slot)
{
    HF_LIST_EACH(node, &slot->watchers)
    {
        HF_CONTAINER(node, hf_watcher, node)->flight = NULL;
    }
}

/* The watcher holds a flight of its key, unless the origin is not asked now. */
static void fetch_for(hf_depot *depot, hf_watcher *watcher, hf_fresh fresh)
{
    hf_depot_slot *slot = watcher->slot;
    int64_t wait = 0;
    bool joined = false;
    hf_assert(watcher->rule.fresh != HF_FRESH_LOCAL || watcher->refresh.ns > 0);
    if (watcher->flight != NULL || depot->is_ending) {
        return;
    }
    if (hf_depot_is_blocked(depot, slot, false, &wait)) {
        give(
            depot, watcher,
            (hf_depot_event){.kind = HF_DEPOT_ERROR, .status = HF_ERR_UNAVAILABLE, .served_stale = watcher->has_value});
        hf_pages_refused(depot, slot, HF_ERR_UNAVAILABLE);
        return;
    }
    watcher->flight = hf_flight_board(depot, slot, fresh, HF_URGENCY_NORMAL, &joined);
    if (watcher->flight == NULL) {
        give(depot, watcher,
             (hf_depot_event){.kind = HF_DEPOT_ERROR, .status = HF_ERR_NOMEM, .served_stale = watcher->has_value});
    }
}

void hf_watch_again(hf_depot *depot, hf_depot_slot *slot)
{
    HF_LIST_EACH(node, &slot->watchers)
    {
        hf_watcher *watcher = HF_CONTAINER(node, hf_watcher, node);
        if (watcher->rule.fresh != HF_FRESH_LOCAL) {
            fetch_for(depot, watcher, HF_FRESH_CACHED);
        }
    }
    hf_sub_look(depot, slot);
}

void hf_watch_move(hf_depot *depot, hf_depot_slot *from, hf_depot_slot *to, hf_value *key)
{
    hf_depot_event event = {.kind = HF_DEPOT_REKEYED};
    bool is_key = hf_depot_key_unpack(hf_str_of_len(hf_value_data(key), hf_value_len(key)), &event.key);
    hf_assert(is_key && from != to);
    HF_LIST_EACH(node, &from->watchers)
    {
        hf_watcher *watcher = HF_CONTAINER(node, hf_watcher, node);
        hf_depot_flight *flight = watcher->flight;
        hf_assert(watcher->slot == from); /* depot-D4 */
        watcher->flight = NULL;
        if (flight != NULL) {
            hf_flight_get_off(depot, flight);
        }
        if (watcher->is_list) {
            hf_refs_unwatch(depot, from);
        }
        hf_list_remove(node);
        hf_list_push_back(&to->watchers, node);
        watcher->slot = to;
        to->holds++;
        if (watcher->is_list) {
            hf_refs_watch(depot, to);
        }
        hf_slot_let_go(depot, from);
        event.value = hf_value_ref(key);
        give(depot, watcher, event);
    }
}

void hf_watch_moved(hf_depot *depot, hf_depot_slot *slot)
{
    HF_LIST_EACH(node, &slot->watchers)
    {
        hf_watcher *watcher = HF_CONTAINER(node, hf_watcher, node);
        hf_look_at at = hf_snap_look(depot, slot->snap, hf_depot_wall(depot));
        if (watcher->rule.fresh != HF_FRESH_LOCAL && at.local != HF_LOCAL_FRESH && at.local != HF_LOCAL_DELETED) {
            fetch_for(depot, watcher, HF_FRESH_CACHED);
        }
    }
}

static void ring(hf_depot *depot, hf_depot_timer_node *timer)
{
    hf_watcher *watcher = HF_CONTAINER(timer, hf_watcher, timer);
    fetch_for(depot, watcher, HF_FRESH_CACHED);
    hf_depot_timer(depot, &watcher->timer, hf_rt_now(depot->rt).ns + watcher->refresh.ns);
}

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

static void act_open(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    if (hf_depot_refuses(depot, ask)) {
        return;
    }
    hf_depot_slot *slot = hf_slot_of_ask(depot, ask);
    if (slot == NULL) {
        return;
    }
    hf_watcher *watcher = ask->what;
    hf_assert(watcher->slot == NULL && watcher->count == 0 && slot->load == HF_SLOT_KNOWN);
    hf_assert(watcher->slot == NULL && watcher->flight == NULL);
    if (hf_depot_make_timers(depot) != HF_OK) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for a watcher"));
        return;
    }
    watcher->slot = slot;
    slot->holds++;
    hf_list_push_back(&slot->watchers, &watcher->node);
    hf_list_push_back(&depot->all_watchers, &watcher->in_all);
    depot->watcher_count++;
    if (watcher->is_list) {
        hf_refs_watch(depot, slot);
    }
    hf_look_at at = hf_snap_look(depot, slot->snap, hf_depot_wall(depot));
    hf_move move = hf_rule_get(&watcher->rule, &at);
    bool has_value = (at.local == HF_LOCAL_FRESH || at.local == HF_LOCAL_STALE) && watcher->rule.fresh != HF_FRESH_NOW;
    watcher->seen = slot->snap->entry.version; /* a fetch that fails does not show what was not shown here */
    if (has_value) {
        show_one(depot, watcher);
    }
    if (watcher->rule.fresh != HF_FRESH_LOCAL && (move == HF_MOVE_FETCH || move == HF_MOVE_SERVE_REFRESH)) {
        if (!has_value) {
            watcher->is_loading = true;
            give(depot, watcher, (hf_depot_event){.kind = HF_DEPOT_LOADING});
        }
        fetch_for(depot, watcher, watcher->rule.fresh);
    } else if (watcher->rule.fresh != HF_FRESH_LOCAL && !has_value) { /* what is known is that there is nothing */
        give(depot, watcher,
             at.local == HF_LOCAL_DELETED
                 ? (hf_depot_event){.kind = HF_DEPOT_GONE, .version = slot->snap->entry.version}
                 : (hf_depot_event){.kind = HF_DEPOT_ERROR, .status = HF_ERR_NOT_FOUND});
    }
    hf_sub_look(depot, slot); /* it goes on when the value is fresh, too */
    if (watcher->refresh.ns > 0 && watcher->rule.fresh != HF_FRESH_LOCAL) {
        watcher->timer.ring = ring;
        hf_depot_timer(depot, &watcher->timer, hf_rt_now(depot->rt).ns + watcher->refresh.ns);
    }
    hf_depot_answer(depot, ask, HF_OK);
}

/* By the driver: it hears of nothing any more. */
static void leave_slot(hf_depot *depot, hf_watcher *watcher)
{
    hf_depot_slot *slot = watcher->slot;
    hf_depot_flight *flight = watcher->flight;
    hf_assert(slot != NULL && slot->holds > 0 && depot->watcher_count > 0); /* depot-D4 */
    hf_assert(slot != NULL && depot->watcher_count > 0);
    hf_assert(flight == NULL || (flight == slot->flight && flight->holders > 0)); /* DP7 */
    watcher->slot = NULL;
    watcher->flight = NULL;
    hf_list_remove(&watcher->node);
    hf_list_remove(&watcher->in_all);
    hf_heap_remove(&depot->timers, &watcher->timer.node);
    depot->watcher_count--;
    if (watcher->is_list) {
        hf_refs_unwatch(depot, slot);
    }
    if (flight != NULL) { /* S13 */
        hf_flight_get_off(depot, flight);
    }
    hf_sub_look(depot, slot);
    hf_slot_let_go(depot, slot);
}

static void act_close(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    hf_watcher *watcher = ask->what;
    if (watcher->slot != NULL) {
        leave_slot(depot, watcher);
    }
    hf_depot_answer(depot, ask, HF_OK);
}

void hf_watch_close_all(hf_depot *depot)
{
    for (hf_node *node = hf_list_first(&depot->all_watchers); node != NULL;
         node = hf_list_first(&depot->all_watchers)) {
        hf_watcher *watcher = HF_CONTAINER(node, hf_watcher, in_all);
        hf_claimed claimed = {NULL, NULL};
        leave_slot(depot, watcher);
        hf_fiber *self = hf_enter(depot->rt);
        hf_spin_lock(&watcher->lock);
        watcher->is_closed = true;
        hf_claimed_add_all(&claimed, &watcher->waiters);
        hf_spin_unlock(&watcher->lock);
        hf_claimed_wake(&claimed, HF_ERR_CLOSED);
        if (self != NULL) {
            hf_leave(self);
        }
    }
}

static void watcher_free(hf_watcher *watcher)
{
    hf_env *env = hf_env_posix();
    for (size_t i = 0; i < watcher->count; i++) {
        hf_snap_unref(item_at(watcher, i)->snap);
        hf_value_unref(item_at(watcher, i)->event.value);
    }
    env->ops->release(env, watcher->items, places(watcher) * sizeof *watcher->items);
    env->ops->release(env, watcher, sizeof *watcher);
}

static hf_status check_watch(hf_op *op, const hf_depot_watch_options *options, hf_watcher **ret_watcher)
{
    if (ret_watcher == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "hf_depot_watch needs a place for the watcher");
    }
    if ((unsigned)options->fresh > HF_FRESH_LOCAL || (unsigned)options->mode > HF_FLOW_DROP_OLDEST) {
        return hf_fail(op, HF_ERR_INVALID, ".fresh or .mode has no such value");
    }
    if (options->within.ns < 0 || options->refresh.ns < 0 || options->capacity > 65536) {
        return hf_fail(op, HF_ERR_INVALID, ".within or .refresh is negative, or .capacity is over 65,536");
    }
    return HF_OK;
}

static hf_watcher *watcher_new(hf_depot *depot, const hf_depot_watch_options *options)
{
    hf_env *env = hf_env_posix();
    hf_watcher *watcher = env->ops->allocate(env, sizeof *watcher, _Alignof(hf_watcher));
    if (watcher == NULL) {
        return NULL;
    }
    memset(watcher, 0, sizeof *watcher);
    bool conflates = options->mode == HF_FLOW_CONFLATE || options->mode == HF_FLOW_DEFAULT;
    size_t by_default = options->mode == HF_FLOW_BUFFER ? 1 : CAPACITY;
    watcher->mode = conflates ? HF_FLOW_CONFLATE : options->mode;
    watcher->capacity = conflates ? 2 : options->capacity > 0 ? options->capacity : by_default;
    watcher->items = env->ops->allocate(env, places(watcher) * sizeof *watcher->items, _Alignof(hf_watch_item));
    if (watcher->items == NULL) {
        env->ops->release(env, watcher, sizeof *watcher);
        return NULL;
    }
    watcher->depot = depot;
    watcher->refresh = options->refresh;
    watcher->rule = (hf_ask_rule){options->fresh, options->within.ns, depot->options.stale_max.ns};
    hf_list_init(&watcher->waiters);
    return watcher;
}

hf_status hf_watch_open(hf_depot *depot, hf_depot_key key, hf_watcher **ret_watcher,
                        const hf_depot_watch_options *options, bool is_list, bool is_paged)
{
    hf_depot_key_bytes bytes;
    hf_op op;
    hf_op_init(&op);
    if (hf_depot_key_pack(&op, key, &bytes) != HF_OK || check_watch(&op, options, ret_watcher) != HF_OK) {
        return hf_depot_raise(depot, &op);
    }
    hf_watcher *watcher = watcher_new(depot, options);
    if (watcher == NULL) {
        (void)hf_fail(&op, HF_ERR_NOMEM, "no memory for a watcher");
        return hf_depot_raise(depot, &op);
    }
    watcher->is_list = is_list;
    watcher->is_paged = is_paged;
    hf_ask ask = {.key = hf_depot_key_str(&bytes), .what = watcher};
    hf_status status = hf_depot_ask(depot, &ask, act_open, "hf_depot_watch", hf_nanoseconds(0));
    if (status != HF_OK) {
        watcher_free(watcher);
        return status;
    }
    atomic_fetch_add_explicit(&depot->refs, 1, memory_order_relaxed);
    *ret_watcher = watcher;
    return HF_OK;
}

hf_status hf_depot_watch_with(hf_depot *depot, hf_depot_key key, hf_watcher **ret_watcher,
                              const hf_depot_watch_options *options)
{
    HF_OPTIONS(hf_depot_watch_options, options, hf_depot_watch);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_watch));
    HF_TRY(hf_depot_enter(depot, "hf_depot_watch"));
    hf_status status = hf_watch_open(depot, key, ret_watcher, options, false, false);
    hf_depot_leave(depot);
    return status;
}

hf_status hf_depot_list_watch_with(hf_depot *depot, hf_depot_key key, hf_watcher **ret_watcher,
                                   const hf_depot_watch_options *options)
{
    HF_OPTIONS(hf_depot_watch_options, options, hf_depot_list_watch);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_list_watch));
    HF_TRY(hf_depot_enter(depot, "hf_depot_list_watch"));
    hf_status status = hf_watch_open(depot, key, ret_watcher, options, true, false);
    hf_depot_leave(depot);
    return status;
}

/* Fills in the value of an event that was taken, with .decode. Takes the snapshot. A value that cannot be decoded is an
 * error of the stream, which goes on. */
static HF_NOINLINE hf_status make_value(hf_depot *depot, hf_snap *snap, hf_depot_event *event)
{
    hf_assert(event->kind == HF_DEPOT_DATA && depot->options.decode != NULL);
    hf_status status = hf_depot_enter(depot, "hf_watcher_next"); /* else its state may be gone: hf_depot_close */
    if (status != HF_OK) {
        hf_snap_unref(snap);
        return status;
    }
    status = hf_snap_give(depot, snap, &event->value);
    hf_snap_unref(snap);
    hf_depot_leave(depot);
    if (status != HF_OK) {
        *event = (hf_depot_event){.kind = HF_DEPOT_ERROR, .status = status};
    }
    return HF_OK;
}

static const hf_wait_kind NEXT = {"hf_watcher_next", hf_wait_abort_linked};

/* Under the watcher's lock. */
static hf_snap *take_first(hf_watcher *watcher, hf_depot_event *ret_event)
{
    hf_watch_item *item = item_at(watcher, 0);
    hf_snap *snap = item->snap;
    *ret_event = item->event;
    watcher->first = (watcher->first + 1) % places(watcher);
    watcher->count--;
    watcher->is_rekeyed = watcher->is_rekeyed && ret_event->kind != HF_DEPOT_REKEYED;
    return snap;
}

hf_status hf_watcher_next_with(hf_watcher *watcher, hf_depot_event *ret_event, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_watcher_next);
    HF_VERB_ENTER(self, hf_watcher_next, watcher != NULL ? watcher->depot->rt : NULL);
    if (watcher == NULL || ret_event == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_watcher_next needs a watcher and a place for the event"));
    }
    hf_instant deadline = hf_wait_deadline(self, watcher->depot->rt, options);
    hf_status status = hf_may_wait(self, NEXT.verb);
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    handed to;
    to.event = ret_event;
    to.snap = NULL;
    hf_wait wait;
    hf_wait_init(&wait, self, &NEXT, watcher, watcher->depot->name);
    wait.value = &to;
    hf_sync_point(self);
    hf_spin_lock(&watcher->lock);
    bool has_event = watcher->count > 0;
    bool is_closed = watcher->is_closed && !has_event;
    if (has_event) {
        to.snap = take_first(watcher, ret_event);
    } else if (HF_LIKELY(!is_closed)) {
        hf_list_push_back(&watcher->waiters, &wait.node);
    }
    hf_spin_unlock(&watcher->lock);
    if (!has_event) { /* HF_OK: the event was handed over */
        status = is_closed                  ? HF_ERR_CLOSED
                 : deadline.ns == INT64_MAX ? hf_park_hot(self, &wait)
                                            : hf_park(self, &wait, deadline);
        if (HF_UNLIKELY(status != HF_OK)) {
            HF_LEAVE(self, status == HF_ERR_CLOSED ? hf_refuse(self, HF_ERR_CLOSED, "the depot is closed") : status);
        }
    }
    hf_leave(self);
    return HF_LIKELY(to.snap == NULL) ? HF_OK : make_value(watcher->depot, to.snap, ret_event);
}

uint64_t hf_watcher_dropped(const hf_watcher *watcher)
{
    if (watcher == NULL) {
        return 0;
    }
    hf_watcher *own = (hf_watcher *)(uintptr_t)watcher;
    hf_spin_lock(&own->lock);
    uint64_t dropped = own->dropped;
    hf_spin_unlock(&own->lock);
    return dropped;
}

hf_status hf_watcher_close(hf_watcher *watcher)
{
    if (watcher == NULL) {
        return HF_OK;
    }
    HF_TRY(HF_VERB_ALLOWED(hf_watcher_close));
    hf_depot *depot = watcher->depot;
    HF_TRY(hf_depot_check_place(depot->rt, "hf_watcher_close"));
    hf_spin_lock(&depot->lock);
    bool is_open = !depot->is_closing;
    depot->users += is_open;
    hf_spin_unlock(&depot->lock);
    if (is_open) {
        hf_ask ask = {.what = watcher};
        hf_depot_tell(depot, &ask, act_close, "hf_watcher_close");
        hf_depot_leave(depot);
    } else { /* the depot has let go of it, or is about to */
        hf_fiber *self = hf_enter(depot->rt);
        for (;;) {
            hf_spin_lock(&watcher->lock);
            bool is_closed = watcher->is_closed;
            hf_spin_unlock(&watcher->lock);
            if (is_closed || self == NULL) {
                break;
            }
            hf_yield_in(self);
        }
        if (self != NULL) {
            hf_leave(self);
        }
    }
    watcher_free(watcher);
    hf_depot_unref(depot);
    return HF_OK;
}
