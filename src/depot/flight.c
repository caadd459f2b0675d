/* Flights: one fetch per key for all who wait for it (DP1).
 *
 *     board -> queued -> flying -> landed -> written -> over
 *                ^                    |
 *                +-- flies again -----+   the key was invalidated meanwhile: what it brought is thrown away (DP3)
 *
 * Holders: asks that wait, watchers, and the depot for a refresh. The last one that leaves ends the flight, and the key
 * is free at once (DP7). */
#include "depot/depot_private.h"

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
    return depot->options.origin_of(depot->options.state, parts) % HF_ORIGINS;
}

bool hf_depot_is_blocked(hf_depot *depot, hf_slot *slot, bool is_forced, int64_t *ret_wait)
{
    *ret_wait = 0;
    if (depot->options.fetch == NULL || depot->is_offline) {
        return true;
    }
    int64_t left = slot->entry.backoff_until - hf_depot_wall(depot);
    if (!is_forced && left > 0 && left <= HF_BACKOFF_MAX) { /* a longer one is from a clock that was set back */
        *ret_wait = left;
        return true;
    }
    return hf_breaker_is_shut(&depot->breakers[hf_depot_origin(depot, hf_slot_key(slot))], hf_rt_now(depot->rt).ns,
                              ret_wait);
}

typedef struct permit_ask {
    hf_ask ask;
    unsigned origin;
    bool is_probe;
} permit_ask;

static void act_permit(hf_depot *depot, hf_post *post)
{
    permit_ask *permit = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), permit_ask, ask);
    bool may = hf_breaker_ask(&depot->breakers[permit->origin], hf_rt_now(depot->rt).ns, &permit->is_probe);
    hf_depot_answer(depot, &permit->ask,
                    may ? HF_OK
                        : hf_fail(&permit->ask.op, HF_ERR_UNAVAILABLE,
                                  "the origin of depot '%s' failed several times and is not asked for a while",
                                  depot->name));
}

hf_status hf_depot_permit(hf_depot *depot, unsigned origin, bool *ret_is_probe)
{
    permit_ask permit = {.origin = origin};
    HF_TRY(hf_depot_ask(depot, &permit.ask, act_permit, "hf_depot", hf_nanoseconds(0)));
    *ret_is_probe = permit.is_probe;
    return HF_OK;
}

/* ---- The fiber of a flight --------------------------------------------------------------------------------------- */

hf_instant hf_depot_attempt_deadline(const hf_depot *depot)
{
    return hf_rt_deadline(depot->rt, depot->options.fetch_timeout);
}

hf_status hf_depot_attempt(hf_depot *depot, hf_body call, void *arg)
{
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = depot->name, .timeout = depot->options.fetch_timeout));
    hf_status status = hf_fork(scope, call, arg, .name = depot->name, .on = depot->options.on);
    if (status == HF_OK) {
        status = hf_join(scope);
    }
    (void)hf_scope_close(scope);
    return status;
}

hf_reply_class hf_depot_classify(const hf_reply *reply, hf_status status)
{
    return reply->has_class ? reply->why : hf_class_of_status(status);
}

hf_breaker_end hf_depot_end_of(hf_status status, hf_reply_class why)
{
    return status == HF_OK                 ? HF_BREAKER_ANSWERED
           : status == HF_ERR_CANCELED     ? HF_BREAKER_CANCELED
           : hf_class_info_of(why)->counts ? HF_BREAKER_FAILED
                                           : HF_BREAKER_ANSWERED;
}

typedef struct fetching {
    hf_depot_flight *flight;
    hf_fetch_request request;
} fetching;

static hf_status call_fetch(void *arg)
{
    fetching *one = arg;
    hf_depot *depot = one->flight->depot;
    return depot->options.fetch(depot->options.state, &one->request, &one->flight->reply);
}

/* Whether the answer is one. */
static hf_status check_reply(hf_depot_flight *flight)
{
    hf_reply *reply = &flight->reply;
    if (reply->value == NULL && !reply->is_not_modified) {
        flight->why = HF_REPLY_INVALID;
        return hf_raise(HF_ERR_INVALID, "the fetcher of depot '%s' returned HF_OK without a value",
                        flight->depot->name);
    }
    if (reply->value == NULL && flight->etag == NULL && flight->last_modified == NULL) {
        flight->why = HF_REPLY_INVALID;
        return hf_raise(HF_ERR_INVALID, "the fetcher of depot '%s' says 'not modified', but was not asked with an etag",
                        flight->depot->name);
    }
    return HF_OK;
}

static hf_status flight_run(hf_work *work)
{
    hf_depot_flight *flight = HF_CONTAINER(work, hf_depot_flight, work);
    hf_depot *depot = flight->depot;
    fetching one = {.flight = flight};
    bool is_key = hf_depot_key_unpack(hf_slot_key(flight->slot), &one.request.key);
    hf_assert(is_key);
    one.request.etag = hf_value_text(flight->etag);
    one.request.last_modified = hf_value_text(flight->last_modified);
    one.request.urgency = flight->urgency;
    for (int attempt = 1;; attempt++) {
        hf_status status = flight->is_probe ? HF_OK : hf_depot_permit(depot, flight->origin, &flight->is_probe);
        if (status != HF_OK) {
            flight->was_denied = status == HF_ERR_UNAVAILABLE;
            flight->why = HF_REPLY_ORIGIN;
            return status;
        }
        hf_reply_clear(&flight->reply);
        one.request.attempt = attempt;
        one.request.deadline = hf_depot_attempt_deadline(depot);
        status = hf_depot_attempt(depot, call_fetch, &one);
        if (status == HF_OK) {
            return check_reply(flight);
        }
        flight->why = hf_depot_classify(&flight->reply, status);
        flight->retry_after = flight->reply.retry_after;
        if (status == HF_ERR_CANCELED || hf_canceled() != HF_OK || !hf_class_info_of(flight->why)->is_retried ||
            attempt > depot->options.retries) {
            return status;
        }
        int64_t pause = hf_rule_retry_pause(attempt, flight->retry_after, hf_depot_chance_of(depot));
        HF_TRY(hf_sleep(hf_nanoseconds(pause)));
    }
}

static bool flight_end(hf_work *work, hf_status status, hf_failure_box *failure)
{
    hf_depot_flight *flight = HF_CONTAINER(work, hf_depot_flight, work);
    flight->work_status = status;
    flight->work_failure = failure;
    return true;
}

static void flight_unref(hf_depot *depot, hf_depot_flight *flight);
static void act_landed(hf_depot *depot, hf_post *post);

/* Only now is the work's memory free for another round. */
static void flight_work_unref(hf_work *work)
{
    hf_depot_flight *flight = HF_CONTAINER(work, hf_depot_flight, work);
    flight->landed.act = act_landed;
    hf_depot_post_quietly(flight->depot, &flight->landed);
}

static const hf_work_kind FLIGHT = {flight_run, flight_end, flight_work_unref};

/* ---- Boarding and leaving ---------------------------------------------------------------------------------------- */

static void flight_unref(hf_depot *depot, hf_depot_flight *flight)
{
    hf_assert(flight->refs > 0);
    if (--flight->refs > 0) {
        return;
    }
    hf_assert(flight->is_over && hf_list_is_empty(&flight->waiters));
    hf_slot *slot = flight->slot;
    hf_reply_clear(&flight->reply);
    hf_value_unref(flight->etag);
    hf_value_unref(flight->last_modified);
    hf_box_unref(flight->failure);
    hf_rt_free(depot->rt, flight, sizeof *flight);
    hf_slot_let_go(depot, slot);
}

/* It leaves its slot: another one may begin. */
static void flight_over(hf_depot *depot, hf_depot_flight *flight)
{
    hf_slot *slot = flight->slot;
    hf_assert(!flight->is_over && slot->flight == flight); /* DP1 */
    hf_assert(depot->flight_count > 0 && (!flight->is_refresh || depot->refreshes > 0));
    flight->is_over = true;
    slot->flight = NULL;
    depot->flight_count--;
    hf_list_remove(&flight->in_all);
    if (flight->is_refresh) {
        flight->is_refresh = false;
        depot->refreshes--;
    }
    if (hf_node_is_linked(&flight->node)) {
        hf_list_remove(&flight->node);
    }
    hf_watch_landed(slot);
    flight_unref(depot, flight);
}

/* Cancels its fiber, which is on its way. */
static void abandon(hf_depot *depot, hf_depot_flight *flight)
{
    hf_fiber *self = hf_enter(depot->rt);
    hf_spin_lock(&depot->lock);
    hf_work_abandon(&flight->work);
    hf_spin_unlock(&depot->lock);
    if (self != NULL) {
        hf_leave(self);
    }
}

void hf_flight_get_off(hf_depot *depot, hf_depot_flight *flight)
{
    hf_assert(flight->holders > 0); /* DP7 */
    if (--flight->holders > 0 || flight->is_over || HF_CANARY(HF_BUG_LAST_WAITER_KEEPS)) {
        if (HF_CANARY(HF_BUG_WAITER_CANCELS) && flight->is_running && !flight->is_over) {
            abandon(depot, flight);
        }
        return;
    }
    if (flight->is_landing) { /* it is being written: that ends by itself */
        return;
    }
    flight->refs++;
    bool is_running = flight->is_running;
    flight_over(depot, flight);
    if (is_running) {
        abandon(depot, flight);
    }
    flight_unref(depot, flight);
}

void hf_flight_leave(hf_depot *depot, hf_depot_flight *flight)
{
    hf_flight_get_off(depot, flight);
    flight_unref(depot, flight);
}

static void queue_up(hf_depot *depot, hf_depot_flight *flight)
{
    hf_assert(!flight->is_running && !flight->is_over && !flight->is_landing && flight->holders > 0); /* DP7 */
    static const int QUEUE_OF[] = {[HF_URGENCY_HIGH] = 0, [HF_URGENCY_NORMAL] = 1, [HF_URGENCY_LOW] = 2};
    hf_slot *slot = flight->slot;
    hf_assert(slot->flight == flight); /* DP1 */
    flight->began = depot->stir;
    flight->answers = slot->answers;
    flight->is_void = false;
    flight->is_probe = false;
    flight->was_denied = false;
    flight->retry_after = 0;
    flight->generation = atomic_load_explicit(&slot->space->generation, memory_order_relaxed);
    flight->generation_all = atomic_load_explicit(&depot->generation, memory_order_relaxed);
    hf_value_unref(flight->etag);
    hf_value_unref(flight->last_modified);
    bool asks_with = flight->is_conditional && slot->entry.kind == HF_ENTRY_VALUE;
    flight->etag = asks_with ? hf_value_ref(slot->entry.etag) : NULL;
    flight->last_modified = asks_with ? hf_value_ref(slot->entry.last_modified) : NULL;
    hf_list_push_back(&depot->queue[QUEUE_OF[flight->urgency]], &flight->node);
}

hf_depot_flight *hf_flight_board(hf_depot *depot, hf_slot *slot, hf_fresh fresh, hf_urgency urgency, bool *ret_joined)
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
    flight = hf_rt_alloc(depot->rt, sizeof *flight);
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
    slot->flight = flight;
    depot->flight_count++;
    hf_list_push_back(&depot->all_flights, &flight->in_all);
    queue_up(depot, flight);
    return flight;
}

void hf_flight_refresh(hf_depot *depot, hf_slot *slot, hf_urgency urgency)
{
    bool joined = false;
    if (slot->flight != NULL || depot->refreshes >= (size_t)depot->options.refresh_max) {
        return;
    }
    hf_depot_flight *flight = hf_flight_board(depot, slot, HF_FRESH_CACHED, urgency, &joined);
    if (flight != NULL) { /* without memory: the next one who asks tries again */
        flight->is_refresh = true;
        depot->refreshes++;
        depot->counts.refreshes++;
    }
}

void hf_flight_redirect(hf_depot *depot, hf_slot *slot)
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
        ask->post.act(depot, &ask->post);
    }
    flight_unref(depot, flight);
}

void hf_depot_start_flights(hf_depot *depot)
{
    for (int i = 0; i < 3; i++) {
        while (depot->flights < (size_t)depot->options.fetch_max && !hf_list_is_empty(&depot->queue[i])) {
            hf_depot_flight *flight = HF_CONTAINER(hf_list_pop_front(&depot->queue[i]), hf_depot_flight, node);
            hf_assert(!flight->is_running);
            hf_assert(!flight->is_over && flight->slot->flight == flight); /* DP1 */
            flight->is_running = true;
            flight->refs++;
            depot->flights++;
            depot->works++;
            memset(&flight->work, 0, sizeof flight->work);
            flight->work.kind = &FLIGHT;
            flight->work.lock = &depot->lock;
            flight->work.name = depot->name;
            flight->work.scope = depot->scope;
            HF_IGNORE(hf_work_start(&flight->work)); /* if it fails, the flight ends with that */
        }
    }
}

/* ---- Landing ----------------------------------------------------------------------------------------------------- */

static void tell_waiters(hf_depot *depot, hf_depot_flight *flight)
{
    for (hf_ask *ask = hf_depot_unpark(depot, &flight->waiters); ask != NULL;
         ask = hf_depot_unpark(depot, &flight->waiters)) {
        hf_assert(ask->flight == flight && flight->holders > 0);
        ask->flight = NULL;
        flight->holders--;
        hf_read_landed(depot, ask, flight);
        flight_unref(depot, flight); /* not the last: the caller has one */
    }
}

/* The flight is over: who waits for it hears of it. */
static void conclude(hf_depot *depot, hf_depot_flight *flight)
{
    hf_slot *slot = flight->slot;
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
    const hf_slot *slot = flight->slot;
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

static hf_status decide_landing(hf_depot *depot, hf_change *change)
{
    hf_depot_flight *flight = change->flight;
    hf_slot *slot = change->slot;
    hf_assert(flight->is_landing && flight->slot == slot && !flight->is_running);
    if (is_outdated(depot, flight)) {
        return HF_ERR_AGAIN;
    }
    hf_entry_copy(&change->next, &slot->entry);
    change->place = HF_DEPOT_FETCHER;
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
    if (++flight->rounds >= ROUNDS_MAX) {
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
    queue_up(depot, flight);
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
        }
        hf_change_show(depot, change, flight->status == HF_OK);
    } else if (!change->is_ignored && flight->status == HF_OK) { /* no memory */
        flight->status = status;
        flight->failure = hf_box_new(depot->rt, status, NULL, "hf_depot_get", change->op.message, NULL);
    }
    conclude(depot, flight);
    hf_change_free(depot, change);
    flight_unref(depot, flight);
}

static void act_landed(hf_depot *depot, hf_post *post)
{
    hf_depot_flight *flight = HF_CONTAINER(post, hf_depot_flight, landed);
    hf_assert(flight->is_running && depot->flights > 0 && depot->works > 0);
    flight->is_running = false;
    depot->flights--;
    depot->works--;
    depot->counts.fetches++;
    if (flight->is_over) { /* everybody had left, or the depot closes: its waiters have heard of that */
        hf_box_unref(flight->work_failure);
    } else {
        flight->failure = flight->work_failure;
        flight->status = flight->work_status;
    }
    flight->work_failure = NULL;
    hf_status ended = flight->work_status;
    bool is_told = !flight->was_denied && (ended != HF_ERR_CANCELED || flight->is_probe);
    if (is_told) {
        hf_breaker_tell(&depot->breakers[flight->origin], hf_rt_now(depot->rt).ns, hf_depot_end_of(ended, flight->why),
                        flight->is_probe);
    }
    if (ended != HF_OK) {
        depot->counts.fetch_failures++;
    } else if (flight->reply.value == NULL) {
        depot->counts.not_modified++;
    }
    if (flight->is_over) {
        flight_unref(depot, flight);
        return;
    }
    if (flight->was_denied || flight->status == HF_ERR_CANCELED) { /* it says nothing about the key */
        conclude(depot, flight);
        flight_unref(depot, flight);
        return;
    }
    hf_change *change = hf_change_new(depot, flight->slot);
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
    hf_change_begin(depot, change);
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
        flight->refs++;
        bool is_running = flight->is_running;
        end_by_close(depot, flight);
        if (is_running) {
            abandon(depot, flight);
        }
        flight_unref(depot, flight);
    }
}
