/* Flights: one fetch per key for all who wait for it (DP1).
 *
 *     board -> queued -> flying -> landed -> written -> over
 *                ^                    |
 *                +-- flies again -----+   the key was invalidated meanwhile: what it brought is thrown away (DP3)
 *
 * Before it is queued a flight may be gathered with others, so that they share a call. Flying is in call.c.
 *
 * Holders: asks that wait, watchers, and the depot for a refresh. The last one that leaves ends the flight, and the key
 * is free at once (DP7). */
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/lists.h"
#include "depot/outbox.h"

#include "base/canary.h"

enum {
    ROUNDS_MAX = 3,
    RENEWED_LEN_MAX = 4096 /* "not modified" renews the age in the file for values up to this length: about a page */
};

/* ---- Whether the origin may be asked ----------------------------------------------------------------------------- */

unsigned hf_depot_origin(hf_depot *depot, hf_str key)
{
    hf_depot_key parts;
    if (depot->options.origin_of == NULL || !hf_depot_key_unpack(key, &parts)) {
        return 0;
    }
    parts.type += hf_page_mark_len(parts.type);
    return depot->options.origin_of(depot->options.state, parts) % HF_ORIGINS;
}

bool hf_depot_is_blocked(hf_depot *depot, hf_depot_slot *slot, bool is_forced, int64_t *ret_wait)
{
    *ret_wait = 0;
    if (!hf_depot_has_fetcher(depot) || depot->is_offline) {
        return true;
    }
    if (slot->entry.backoff_until != 0 && !is_forced) {
        int64_t left = slot->entry.backoff_until - hf_depot_wall(depot);
        if (left > 0 && left <= HF_BACKOFF_MAX) { /* a longer one is from a clock that was set back */
            *ret_wait = left;
            return true;
        }
    }
    const hf_breaker *breaker = &depot->breakers[hf_depot_origin(depot, hf_slot_key(slot))];
    return breaker->state != HF_BREAKER_CLOSED && hf_breaker_is_shut(breaker, hf_rt_now(depot->rt).ns, ret_wait);
}

/* ---- Boarding and leaving ---------------------------------------------------------------------------------------- */

static void flight_unref(hf_depot *depot, hf_depot_flight *flight)
{
    hf_assert(flight->refs > 0);
    if (--flight->refs > 0) {
        return;
    }
    hf_assert(flight->is_over && hf_list_is_empty(&flight->waiters));
    hf_depot_slot *slot = flight->slot;
    hf_depot_slot *query = flight->query;
    hf_reply_clear(&flight->reply);
    hf_value_unref(flight->token);
    hf_value_unref(flight->etag);
    hf_value_unref(flight->last_modified);
    hf_value_unref(flight->object);
    hf_box_unref(flight->failure);
    hf_spare_give(depot, flight, sizeof *flight);
    if (query != NULL) {
        hf_slot_let_go(depot, query);
    }
    hf_slot_let_go(depot, slot);
}

/* It leaves its slot: another one may begin. */
static void flight_over(hf_depot *depot, hf_depot_flight *flight)
{
    hf_depot_slot *slot = flight->slot;
    hf_assert(!flight->is_over && slot->flight == flight); /* DP1 */
    hf_assert(depot->flight_count > 0 && (!flight->is_refresh || depot->refreshes > 0));
    flight->is_over = true;
    depot->open_flight = depot->open_flight == flight ? NULL : depot->open_flight;
    atomic_store_explicit(&flight->is_left, true, memory_order_relaxed);
    slot->flight = NULL;
    depot->flight_count--;
    hf_list_remove(&flight->in_all);
    if (flight->is_refresh) {
        flight->is_refresh = false;
        depot->refreshes--;
    }
    if (hf_node_is_linked(&flight->node)) {
        hf_list_remove(&flight->node);
        depot->gathering_count -= flight->is_gathering;
        flight->is_gathering = false;
    }
    hf_watch_landed(slot);
    hf_pages_ended(depot, flight);
    if (depot->flight_count == 0) {
        hf_stir_forget(depot);
    }
    hf_sub_look(depot, slot);
    flight_unref(depot, flight);
}

void hf_flight_get_off(hf_depot *depot, hf_depot_flight *flight)
{
    hf_assert(flight->holders > 0); /* DP7 */
    if (--flight->holders > 0 || flight->is_over || HF_CANARY(HF_BUG_LAST_WAITER_KEEPS)) {
        if (HF_CANARY(HF_BUG_WAITER_CANCELS) && flight->call != NULL && !flight->is_over) {
            hf_depot_abandon(depot, &flight->call->work);
        }
        return;
    }
    if (flight->is_landing) { /* it is being written: that ends by itself */
        return;
    }
    hf_depot_call *call = flight->call;
    flight->refs++;
    flight_over(depot, flight);
    if (call != NULL) { /* the others in it go on */
        hf_call_leave(depot, call);
    }
    flight_unref(depot, flight);
}

void hf_flight_leave(hf_depot *depot, hf_depot_flight *flight)
{
    hf_flight_get_off(depot, flight);
    flight_unref(depot, flight);
}

static void push(hf_depot *depot, hf_depot_flight *flight)
{
    hf_assert(flight->call == NULL && !flight->is_over && !flight->is_landing && flight->holders > 0); /* DP7 */
    static const int QUEUE_OF[] = {[HF_URGENCY_HIGH] = 0, [HF_URGENCY_NORMAL] = 1, [HF_URGENCY_LOW] = 2};
    hf_list_push_back(&depot->queue[QUEUE_OF[flight->urgency]], &flight->node);
}

void hf_flight_queue_all(hf_depot *depot, hf_list *flights)
{
    for (hf_node *node = hf_list_pop_front(flights); node != NULL; node = hf_list_pop_front(flights)) {
        push(depot, HF_CONTAINER(node, hf_depot_flight, node));
    }
}

/* The window is over: those that were gathered share their calls. */
static void end_window(hf_depot *depot)
{
    uint64_t ticket = ++depot->ticket_last;
    hf_heap_remove(&depot->timers, &depot->window.node);
    HF_LIST_EACH(node, &depot->gathering)
    {
        hf_depot_flight *flight = HF_CONTAINER(node, hf_depot_flight, node);
        flight->is_gathering = false;
        flight->ticket = ticket;
    }
    depot->gathering_count = 0;
    hf_flight_queue_all(depot, &depot->gathering);
}

static void ring_window(hf_depot *depot, hf_depot_timer_node *timer)
{
    hf_assert(timer == &depot->window);
    end_window(depot);
}

/* It waits for others until .batch_window is over, or until there are enough for a call. */
static void gather(hf_depot *depot, hf_depot_flight *flight)
{
    hf_assert(depot->gathering_count < HF_CALL_FLIGHTS_MAX && !flight->is_gathering);
    flight->is_gathering = true;
    hf_list_push_back(&depot->gathering, &flight->node);
    if (++depot->gathering_count == HF_CALL_FLIGHTS_MAX) {
        end_window(depot);
    } else if (depot->gathering_count == 1) {
        depot->window.ring = ring_window;
        hf_depot_timer(depot, &depot->window, hf_rt_now(depot->rt).ns + depot->options.batch_window.ns);
        if (depot->window.node.place == 0) { /* no memory for the timer */
            end_window(depot);
        }
    }
}

void hf_flight_stamp(hf_depot *depot, hf_depot_flight *flight)
{
    const hf_depot_slot *slot = flight->slot;
    flight->began = depot->stir;
    flight->began_at = hf_depot_wall(depot);
    flight->answers = slot->answers;
    flight->is_void = false;
    flight->was_denied = false;
    flight->retry_after = 0;
    flight->generation = atomic_load_explicit(&slot->space->generation, memory_order_relaxed);
    flight->generation_all = atomic_load_explicit(&depot->generation, memory_order_relaxed);
}

void hf_flight_aim(hf_depot *depot, hf_depot_flight *flight)
{
    const hf_depot_slot *slot = flight->slot;
    hf_assert(flight->call == NULL && !flight->is_landing);
    hf_flight_stamp(depot, flight);
    hf_value_unref(flight->etag);
    hf_value_unref(flight->last_modified);
    bool asks_with = flight->is_conditional && slot->entry.kind == HF_ENTRY_VALUE;
    flight->etag = asks_with ? hf_value_ref(slot->entry.etag) : NULL;
    flight->last_modified = asks_with ? hf_value_ref(slot->entry.last_modified) : NULL;
    hf_value_unref(flight->object);
    flight->object = NULL;
}

static void queue_up(hf_depot *depot, hf_depot_flight *flight, hf_many *many)
{
    hf_flight_aim(depot, flight);
    if (depot->options.fetch_many == NULL) {
        push(depot, flight);
    } else if (depot->options.batch_window.ns > 0) {
        gather(depot, flight);
    } else if (many != NULL) {
        flight->ticket = many->ticket;
        hf_list_push_back(&many->gathered, &flight->node);
    } else {
        push(depot, flight); /* one that flies again has its ticket */
    }
}

void hf_flight_queue_again(hf_depot *depot, hf_depot_flight *flight)
{
    queue_up(depot, flight, NULL);
}

hf_depot_flight *hf_flight_board_for(hf_depot *depot, hf_depot_slot *slot, hf_fresh fresh, hf_urgency urgency,
                                     hf_many *many, bool *ret_joined)
{
    hf_depot_flight *flight = slot->flight;
    *ret_joined = flight != NULL;
    if (flight != NULL) {
        if (fresh == HF_FRESH_NOW && flight->began < slot->stirred) {
            flight->is_void = true;
        }
        flight->holders++;
        return flight;
    }
    hf_assert(hf_alias_follow(depot, hf_slot_key(slot)).data == slot->bytes); /* depot-D7 */
    flight = hf_spare_take(depot, sizeof *flight);
    if (flight == NULL) {
        return NULL;
    }
    flight->depot = depot;
    flight->slot = slot;
    slot->holds++;
    flight->refs = 1;
    flight->holders = 1;
    flight->urgency = urgency;
    flight->is_conditional = fresh != HF_FRESH_NOW;
    flight->origin = hf_depot_origin(depot, hf_slot_key(slot));
    hf_list_init(&flight->waiters);
    hf_reply_init(&flight->reply, depot->rt, (size_t)depot->options.value_max);
    flight->reply.takes_records = true;
    flight->reply.takes_partial = depot->options.merge != NULL;
    flight->reply.asked_key = hf_slot_key(slot);
    slot->flight = flight;
    depot->flight_count++;
    hf_list_push_back(&depot->all_flights, &flight->in_all);
    queue_up(depot, flight, many);
    const hf_paging *paging = hf_paging_find(depot, hf_slot_key(slot));
    if (paging != NULL) {
        flight->page_size = paging->page_size;
        flight->reply.window_max = paging->window_max;
        hf_pages_began(depot, flight);
    }
    return flight;
}

void hf_flight_refresh_for(hf_depot *depot, hf_depot_slot *slot, hf_urgency urgency, hf_many *many)
{
    bool joined = false;
    if (slot->flight != NULL || slot->sub != NULL || depot->refreshes >= (size_t)depot->options.refresh_max) {
        return;
    }
    hf_depot_flight *flight = hf_flight_board_for(depot, slot, HF_FRESH_CACHED, urgency, many, &joined);
    if (flight != NULL) { /* without memory: the next one who asks tries again */
        flight->is_refresh = true;
        depot->refreshes++;
        depot->counts.refreshes++;
    }
}

void hf_flight_redirect(hf_depot *depot, hf_depot_slot *slot)
{
    hf_depot_flight *flight = slot->flight;
    if (flight == NULL) {
        return;
    }
    flight->refs++;
    flight->is_void = true; /* what it brings is about the old name */
    if (flight->is_refresh) {
        hf_assert(flight->holders > 0);
        flight->is_refresh = false;
        depot->refreshes--;
        hf_flight_get_off(depot, flight);
    }
    for (hf_ask *ask = hf_depot_unpark(depot, &flight->waiters); ask != NULL;
         ask = hf_depot_unpark(depot, &flight->waiters)) {
        hf_assert(ask->flight == flight && ask->slot == slot);
        ask->flight = NULL;
        ask->slot = NULL;
        hf_flight_leave(depot, flight);
        hf_slot_let_go(depot, slot);
        if (ask->many != NULL) {
            hf_many_again(ask);
        }
        ask->post.act(depot, &ask->post);
    }
    flight_unref(depot, flight);
}

/* ---- Landing ----------------------------------------------------------------------------------------------------- */

static void tell_waiters(hf_depot *depot, hf_depot_flight *flight)
{
    hf_look_at at;
    const hf_snap *seen = NULL; /* looked at once: there may be many who waited */
    for (hf_ask *ask = hf_depot_unpark(depot, &flight->waiters); ask != NULL;
         ask = hf_depot_unpark(depot, &flight->waiters)) {
        hf_assert(ask->flight == flight && flight->holders > 0);
        ask->flight = NULL;
        flight->holders--;
        if (seen == NULL) {
            seen = flight->slot->snap;
            at = hf_snap_look(depot, seen, hf_depot_wall_coarse(depot));
        }
        hf_assert(flight->slot->snap == seen); /* depot-D2: nothing changes meanwhile */
        hf_read_landed(depot, ask, flight, &at);
        flight_unref(depot, flight); /* not the last: the caller has one */
    }
}

/* The flight is over: who waits for it hears of it. */
static void conclude(hf_depot *depot, hf_depot_flight *flight)
{
    hf_depot_slot *slot = flight->slot;
    flight->refs++;
    flight_over(depot, flight);
    tell_waiters(depot, flight);
    if (flight->status != HF_OK) {
        hf_watch_failed(depot, slot, flight->status);
    }
    flight_unref(depot, flight);
}

/* The entry after a fetch that brought something. */
static void decide_success(hf_depot *depot, const hf_depot_flight *flight, hf_depot_entry *next)
{
    const hf_reply *reply = &flight->reply;
    if (reply->value != NULL) {
        hf_value_unref(next->value);
        hf_value_unref(next->etag);
        hf_value_unref(next->last_modified);
        next->kind = HF_ENTRY_VALUE;
        next->value = hf_value_ref(reply->value);
        next->etag = hf_value_ref(reply->etag);
        next->last_modified = hf_value_ref(reply->last_modified);
        next->max_age = reply->max_age;
        next->revision = reply->revision;
    } else if (reply->max_age >= 0) {
        next->max_age = reply->max_age;
    }
    next->is_unusable = false;
    if (reply->value != NULL || !HF_CANARY(HF_BUG_AGE_NOT_RENEWED)) {
        next->validated_at = hf_depot_wall(depot);
    }
    next->failures = 0;
    next->backoff_until = 0;
    next->generation = flight->generation;
    next->generation_all = flight->generation_all;
}

static void decide_absent(hf_depot *depot, const hf_depot_flight *flight, hf_depot_entry *next)
{
    uint64_t version = next->version;
    hf_entry_drop(next);
    next->kind = HF_ENTRY_ABSENT;
    next->max_age = -1;
    next->validated_at = hf_depot_wall(depot);
    next->generation = flight->generation;
    next->generation_all = flight->generation_all;
    next->version = version;
}

/* An entry that was invalidated under way is thrown away (DP3). */
static bool is_outdated(const hf_depot *depot, const hf_depot_flight *flight)
{
    if (HF_CANARY(HF_BUG_LATE_LANDING)) {
        return false;
    }
    return flight->is_void ||
           flight->generation != atomic_load_explicit(&flight->slot->space->generation, memory_order_relaxed) ||
           flight->generation_all != atomic_load_explicit(&depot->generation, memory_order_relaxed);
}

/* Whether what is at hand is as fresh as every waiter has asked for: the origin has confirmed it since, or the rules
 * say so. */
static bool serves_all(hf_depot *depot, hf_depot_flight *flight)
{
    const hf_depot_slot *slot = flight->slot;
    hf_look_at at = hf_snap_look(depot, slot->snap, hf_depot_wall(depot));
    bool serves = at.local != HF_LOCAL_NONE && at.local != HF_LOCAL_UNUSABLE && at.local != HF_LOCAL_ABSENT;
    hf_spin_lock(&depot->lock);
    HF_LIST_EACH(node, &flight->waiters)
    {
        const hf_ask *ask = HF_CONTAINER(HF_CONTAINER(node, hf_wait, node), hf_ask, wait);
        hf_move move = hf_rule_get(&ask->rule, &at);
        serves =
            serves && (slot->entry.validated_at >= ask->asked_at || move == HF_MOVE_SERVE || move == HF_MOVE_NOT_FOUND);
    }
    hf_spin_unlock(&depot->lock);
    return serves;
}

/* Whether "not modified" is about the value that is at hand. A subscriber says it about what it has handed over last. */
static bool confirms(const hf_depot *depot, const hf_depot_flight *flight)
{
    const hf_depot_entry *entry = &flight->slot->entry;
    return entry->kind == HF_ENTRY_VALUE &&
           (depot->options.subscribe != NULL || (hf_value_is_same(entry->etag, flight->etag) &&
                                                 hf_value_is_same(entry->last_modified, flight->last_modified)));
}

static hf_status decide_landing(hf_depot *depot, hf_change *change)
{
    hf_depot_flight *flight = change->flight;
    hf_depot_slot *slot = change->slot;
    hf_assert(flight->is_landing && flight->slot == slot && flight->call == NULL);
    if (is_outdated(depot, flight)) {
        return HF_ERR_AGAIN;
    }
    hf_entry_copy(&change->next, &slot->entry);
    change->place = HF_DEPOT_FETCHER;
    if (flight->status == HF_OK && flight->query != NULL) {
        return hf_page_decide(depot, change);
    }
    bool is_absent = flight->status == HF_ERR_NOT_FOUND && flight->why == HF_REPLY_NOT_FOUND;
    bool is_answer = flight->status == HF_OK || is_absent;
    if (is_answer && hf_tombstone_stands(depot, slot->space, &slot->entry) && !HF_CANARY(HF_BUG_TOMBSTONE_IGNORED) &&
        (is_absent || hf_tombstone_hides(&slot->entry, flight->reply.last_modified, flight->reply.revision))) {
        change->is_ignored = true; /* from before the delete, or nothing new */
        return HF_OK;
    }
    /* The answer to a write is newer than what this one asked. */
    if (is_answer && flight->answers != slot->answers && !HF_CANARY(HF_BUG_OLDER_THAN_ANSWER)) {
        if (!serves_all(depot, flight)) {
            return HF_ERR_AGAIN;
        }
        change->is_ignored = true;
        flight->status = HF_OK;
        hf_box_unref(flight->failure);
        flight->failure = NULL;
        return HF_OK;
    }
    if (flight->status == HF_OK && flight->reply.value == NULL && !confirms(depot, flight)) {
        flight->is_unconfirmed = true;
        flight->is_conditional = false; /* its next answer is a value, so this happens to it only once */
        return HF_ERR_AGAIN;
    }
    if (flight->status == HF_OK) {
        decide_success(depot, flight, &change->next);
    } else if (is_absent) {
        decide_absent(depot, flight, &change->next);
    } else {
        change->next.failures++;
        change->next.backoff_until =
            hf_depot_wall(depot) + hf_rule_backoff(change->next.failures, hf_depot_chance(depot));
    }
    HF_TRY(hf_change_fold(depot, change, NULL, NULL));
    if (flight->object != NULL && change->snap->value == flight->reply.value &&
        atomic_load_explicit(&change->snap->object, memory_order_relaxed) ==
            NULL) { /* else it is that of the same bytes */
        hf_snap_set_object(change->snap, flight->object);
    }
    if (flight->status == HF_OK && flight->reply.value == NULL && hf_value_len(change->next.value) > RENEWED_LEN_MAX) {
        hf_change_write_nothing(change); /* a long value is not written again for its age */
    }
    return HF_OK;
}

static void complain(hf_depot *depot, const char *message)
{
    int64_t now = hf_rt_now(depot->rt).ns;
    depot->counts.not_kept++;
    if (depot->complained_at == 0 || now - depot->complained_at >= INT64_C(60) * 1000000000) {
        depot->complained_at = now;
        hf_log(depot->rt, HF_LOG_WARN, "depot_value_not_kept", "depot=%s message=%s", depot->name, message);
    }
}

static void end_by_close(hf_depot *depot, hf_depot_flight *flight)
{
    flight->status = HF_ERR_CLOSED;
    hf_box_unref(flight->failure);
    flight->failure = hf_box_new(depot->rt, HF_ERR_CLOSED, NULL, "hf_depot_close", "the depot is closed", NULL);
    flight->why = HF_REPLY_INVALID;
    conclude(depot, flight);
}

/* What it brought does not count: it flies again for those who still wait. */
static void fly_again(hf_depot *depot, hf_depot_flight *flight)
{
    flight->is_landing = false;
    if (flight->holders == (unsigned)flight->is_refresh) { /* nobody waits for it: the next one who asks does */
        conclude(depot, flight);
        return;
    }
    if (depot->is_ending) {
        end_by_close(depot, flight);
        return;
    }
    flight->rounds += !flight->is_unconfirmed;
    flight->is_unconfirmed = false;
    if (flight->rounds >= ROUNDS_MAX || (flight->query != NULL && !hf_page_aim(depot, flight))) {
        flight->status = HF_ERR_CONFLICT;
        hf_box_unref(flight->failure);
        flight->failure = hf_box_new(depot->rt, HF_ERR_CONFLICT, NULL, "hf_depot_get",
                                     "the key was written or invalidated each time that it was fetched", NULL);
        flight->why = HF_REPLY_INVALID;
        conclude(depot, flight);
        return;
    }
    hf_box_unref(flight->failure);
    flight->failure = NULL;
    queue_up(depot, flight, NULL);
}

static void apply_landing(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_depot_flight *flight = change->flight;
    hf_assert(flight->is_landing && flight->refs > 0 && !flight->is_over);
    if (status == HF_ERR_AGAIN && change->snap == NULL) {
        fly_again(depot, flight);
        hf_change_free(depot, change);
        flight_unref(depot, flight);
        return;
    }
    /* Invalidated while it was written: the generations say so on the disk, too. */
    if (change->snap != NULL && is_outdated(depot, flight)) {
        hf_change_show(depot, change, false);
        fly_again(depot, flight);
        hf_change_free(depot, change);
        flight_unref(depot, flight);
        return;
    }
    if (change->snap != NULL) {
        if (status != HF_OK) {
            complain(depot, change->op.message);
            hf_news_of_key(depot, HF_NEWS_NOT_KEPT, hf_slot_key(change->slot), status, HF_REPLY_UNKNOWN);
        }
        hf_change_show(depot, change, flight->status == HF_OK);
        if (flight->status == HF_OK) {
            hf_news_of_key(depot, HF_NEWS_LANDED, hf_slot_key(change->slot), HF_OK, HF_REPLY_UNKNOWN);
        }
    } else if (!change->is_ignored && flight->status == HF_OK) { /* no memory */
        flight->status = status;
        flight->failure = hf_box_new(depot->rt, status, NULL, "hf_depot_get", change->op.message, NULL);
    }
    conclude(depot, flight);
    hf_change_free(depot, change);
    flight_unref(depot, flight);
}

/* The changes of other keys that go with the landing; `*ret_group` is NULL if there are none. False: no memory. */
static bool make_group(hf_depot *depot, hf_depot_flight *flight, hf_change_group **ret_group)
{
    if (hf_slot_may_move(flight->slot)) { /* it must not wait for others */
        depot->counts.records_left_out += flight->reply.record_count;
        hf_records_drop(&flight->reply);
    }
    if (flight->status != HF_OK || (flight->reply.record_count == 0 && flight->query == NULL)) {
        return true;
    }
    hf_change_group *group = hf_change_group_new(depot);
    if (group == NULL) {
        return false;
    }
    hf_change *window = flight->query != NULL ? hf_page_change_new(depot, flight) : NULL;
    if ((flight->query != NULL && window == NULL) || !hf_records_add_changes(depot, flight, group)) {
        if (window != NULL) {
            hf_change_free(depot, window);
        }
        hf_rt_free(depot->rt, group, sizeof *group);
        return false;
    }
    if (window != NULL) {
        hf_change_group_add(group, window);
    }
    *ret_group = group;
    return true;
}

void hf_flight_fail(hf_depot *depot, hf_depot_flight *flight, hf_status status, hf_failure_box *failure)
{
    hf_assert(flight->call == NULL && !flight->is_landing && !flight->is_over);
    flight->status = status;
    hf_box_unref(flight->failure);
    flight->failure = failure;
    flight->why = hf_class_of_status(status);
    conclude(depot, flight);
}

void hf_flight_land(hf_depot *depot, hf_depot_flight *flight)
{
    hf_depot_call *call = flight->call;
    flight->call = NULL;
    depot->counts.fetches++;
    hf_status ended = flight->work_status;
    hf_news_of_flight(depot, flight, ended);
    if (ended != HF_OK && ended != HF_ERR_CANCELED) {
        hf_assert((unsigned)flight->why < HF_REPLY_CLASSES);
        depot->counts.fetch_failures++;
        depot->counts.failures[flight->why]++;
    }
    depot->counts.not_modified += ended == HF_OK && flight->reply.value == NULL;
    if (flight->is_over) { /* everybody had left, or the depot closes: its waiters have heard of that */
        hf_box_unref(flight->work_failure);
        flight->work_failure = NULL;
        flight_unref(depot, flight);
        return;
    }
    if (call != NULL) {
        hf_assert(call->live > 0); /* depot-K3 */
        call->live--;
    }
    hf_assert(flight->failure == NULL && !flight->is_landing); /* DP1 */
    flight->failure = flight->work_failure;
    flight->work_failure = NULL;
    flight->status = ended;
    if (flight->was_denied || flight->status == HF_ERR_CANCELED) { /* it says nothing about the key */
        conclude(depot, flight);
        flight_unref(depot, flight);
        return;
    }
    hf_change *change = hf_change_new(depot, flight->slot);
    hf_change_group *group = NULL;
    if (change != NULL && !make_group(depot, flight, &group)) {
        hf_change_free(depot, change);
        change = NULL;
    }
    if (change == NULL) {
        flight->status = HF_ERR_NOMEM;
        hf_box_unref(flight->failure);
        flight->failure =
            hf_box_new(depot->rt, HF_ERR_NOMEM, NULL, "hf_depot_get", "no memory for a value of the depot", NULL);
        conclude(depot, flight);
        flight_unref(depot, flight);
        return;
    }
    flight->is_landing = true;
    change->flight = flight; /* with the reference of the work */
    change->decide = decide_landing;
    change->apply = apply_landing;
    if (group != NULL) {
        hf_change_group_add(group, change); /* last: it leads */
        hf_change_begin_all(depot, group);
    } else {
        hf_change_begin(depot, change);
    }
}

void hf_flight_end_all(hf_depot *depot)
{
    for (hf_node *node = hf_list_first(&depot->all_flights); node != NULL; node = hf_list_first(&depot->all_flights)) {
        hf_depot_flight *flight = HF_CONTAINER(node, hf_depot_flight, in_all);
        if (flight->is_landing) { /* it is being written: the change tells its waiters */
            hf_list_remove(node);
            hf_list_init((hf_list *)(void *)node); /* an own list, so that it can be removed once more */
            continue;
        }
        hf_depot_call *call = flight->call;
        flight->refs++;
        end_by_close(depot, flight);
        if (call != NULL) {
            hf_call_leave(depot, call);
        }
        flight_unref(depot, flight);
    }
}
