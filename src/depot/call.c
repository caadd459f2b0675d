/* Calls: a fiber that asks the origin for one flight, or for several (ADR 0036).
 *
 *     queue:  A  B  C  D  E          flights that wait, each of one key; B, C and D have the same ticket and origin
 *     calls:  [A]  [B C D]  [E]      [A] and [E] call .fetch, [B C D] calls .fetch_many
 *
 * A flight does not know how many others its call has: it has its own reply, its own outcome and its own landing. Of a
 * call they share the permit of the breaker, the fiber and the attempts. An attempt asks for the keys that have no
 * final answer yet. Those that get one land at once, while the others are tried again.
 *
 *     attempt 1   B C D    B answered: lands; C and D failed, and may be tried again
 *     pause
 *     attempt 2   C D      C answered: lands when the call is over; D not found: the same
 *
 * The breaker hears of the call once: it has failed if no key was answered.
 *
 * depot-K1  All flights of a call have one origin, and at most HF_CALL_FLIGHTS_MAX are in it.
 * depot-K2  The fiber of the call has reply, object and outcome of a flight until it posts it or the call is over. The driver
 *          touches them only then.
 * depot-K3  `live` counts the flights that somebody holds. When the last of them leaves, the call is canceled (DP7). */
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/lists.h"

#include "fiber/verbs.h"

/* ---- Asking the breaker ------------------------------------------------------------------------------------------ */

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

/* ---- One attempt ------------------------------------------------------------------------------------------------- */

hf_instant hf_depot_attempt_deadline(const hf_depot *depot)
{
    return hf_rt_deadline(depot->rt, depot->options.fetch_timeout);
}

/* Callbacks see it as a local value, in all fibers that they fork: a call about their own key would wait for itself. */
static const hf_local CALLED_FOR = {"hf_depot"};

typedef struct called_for {
    const hf_depot *depot;
    size_t count;
    hf_depot_flight *const *flights; /* whose keys they are; NULL = `key` */
    hf_str key;
} called_for;

static bool is_among(const called_for *one, hf_str key)
{
    if (one->flights == NULL) {
        return hf_str_equal(one->key, key);
    }
    for (size_t i = 0; i < one->count; i++) {
        if (hf_str_equal(hf_slot_key(one->flights[i]->slot), key)) {
            return true;
        }
    }
    return false;
}

bool hf_depot_is_called_for(const hf_fiber *self, const hf_depot *depot, hf_str key)
{
    for (const hf_binding *at = self->locals; at != NULL; at = at->outer) {
        const called_for *one = at->key == &CALLED_FOR ? at->value : NULL;
        if (one != NULL && one->depot == depot && is_among(one, key)) {
            return true;
        }
    }
    return false;
}

hf_status hf_depot_refuse_own(hf_op *op, const hf_depot *depot, const char *verb)
{
    return hf_fail_at(
        op, HF_ERR_MISUSE, verb,
        "%s was called by the fetcher, subscriber or pusher of depot '%s' about the key that it is called for", verb,
        depot->name);
}

/* Calls it on this fiber, which is the depot's own: a child would cost a stack and two switches. The deadline of the scope
 * ends its waits like those of a child. */
static hf_status attempt_here(const hf_fiber *self, const hf_depot *depot, hf_scope *scope, hf_body call, void *arg)
{
    hf_status status = call(arg);
    if (self->scope != scope) { /* closed with the scope of the attempt */
        return status != HF_OK
                   ? status
                   : hf_raise(HF_ERR_MISUSE, "a callback of depot '%s' returned with a scope still open", depot->name);
    }
    if (status == HF_OK) {
        return HF_OK;
    }
    hf_status joined = hf_join(scope); /* HF_ERR_TIMEOUT if the deadline has ended it */
    return joined != HF_OK ? joined : status;
}

static hf_status attempt(const hf_fiber *self, const hf_depot *depot, hf_span timeout, hf_body call, void *arg)
{
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = depot->name, .timeout = timeout));
    hf_status status = HF_OK;
    if (depot->options.on == NULL) {
        status = attempt_here(self, depot, scope, call, arg);
    } else {
        status = hf_fork(scope, call, arg, .name = depot->name, .on = depot->options.on);
        status = status == HF_OK ? hf_join(scope) : status;
    }
    (void)hf_scope_close(scope);
    return status;
}

static hf_status attempt_for(called_for *one, hf_depot *depot, hf_span timeout, hf_body call, void *arg)
{
    hf_fiber *self = (hf_fiber *)(void *)hf_self_get();
    hf_assert(self != NULL && self->kind != HF_FIBER_THREAD); /* the fiber of a call or a send */
    hf_binding binding = {.key = &CALLED_FOR, .value = one, .outer = self->locals};
    self->locals = &binding; /* the scope of the attempt takes it from here, and is closed before it goes */
    const hf_binding *own = self->own_locals;
    hf_status status = attempt(self, depot, timeout, call, arg);
    hf_locals_drop(self, own); /* those that the callback has set here */
    self->locals = binding.outer;
    return status;
}

hf_status hf_depot_attempt_of(hf_depot *depot, const hf_depot_slot *slot, hf_span timeout, hf_body call, void *arg)
{
    called_for one = {.depot = depot, .key = hf_slot_key(slot)};
    return attempt_for(&one, depot, timeout, call, arg);
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

hf_failure_box *hf_depot_take_failure(hf_depot *depot, hf_status status)
{
    if (status == HF_OK) {
        return NULL;
    }
    hf_fiber *self = hf_enter(depot->rt);
    hf_assert(self != NULL); /* a fiber of the depot */
    hf_failure_box *failure = hf_self_take_failure(self, depot->rt, status, depot->name);
    hf_leave(self);
    return failure;
}

hf_status hf_reply_check(const hf_depot *depot, const hf_reply *reply, bool asks_with)
{
    if (reply->value == NULL && !reply->is_not_modified) {
        return hf_raise(HF_ERR_INVALID, "the fetcher of depot '%s' returned HF_OK without a value", depot->name);
    }
    if (reply->value == NULL && !asks_with) {
        return hf_raise(HF_ERR_INVALID, "the fetcher of depot '%s' says 'not modified', but was not asked with an etag",
                        depot->name);
    }
    return HF_OK;
}

/* What the user's function is called with. */
typedef struct asking {
    hf_depot_call *call;
    size_t count;
    hf_depot_flight *flights[HF_CALL_FLIGHTS_MAX]; /* that are asked for in this attempt */
    hf_reply *replies[HF_CALL_FLIGHTS_MAX];
    hf_fetch_request requests[HF_CALL_FLIGHTS_MAX];
} asking;

typedef struct asking_one {
    hf_depot_flight *flight;
    hf_fetch_request request;
} asking_one;

static hf_status call_fetch(void *arg)
{
    asking_one *one = arg;
    const hf_depot *depot = one->flight->depot;
    return depot->options.fetch(depot->options.state, &one->request, &one->flight->reply);
}

static hf_status call_fetch_many(void *arg)
{
    asking *all = arg;
    const hf_depot *depot = all->call->depot;
    return depot->options.fetch_many(depot->options.state, all->requests, all->replies, all->count);
}

static hf_fetch_request request_of(const hf_depot_flight *flight, int attempt)
{
    hf_fetch_request request = {
        .etag = hf_value_text(flight->etag),
        .last_modified = hf_value_text(flight->last_modified),
        .urgency = flight->urgency,
        .attempt = attempt,
        .deadline = hf_depot_attempt_deadline(flight->depot),
    };
    bool is_key = hf_depot_key_unpack(hf_slot_key(flight->slot), &request.key);
    hf_assert(is_key);
    request.key.type += hf_page_mark_len(request.key.type);
    request.page = flight->direction;
    request.token = hf_value_text(flight->token);
    request.page_size = flight->page_size;
    return request;
}

/* The attempt has given `status` for this flight. Takes `failure`. Whether that is its last word. */
static bool judge(hf_depot_call *call, hf_depot_flight *flight, int attempt, hf_status status, hf_failure_box *failure)
{
    hf_depot *depot = call->depot;
    hf_assert(!flight->is_answered); /* depot-K2 */
    flight->why = hf_depot_classify(&flight->reply, status);
    if (status == HF_OK) {
        status =
            flight->query != NULL && !flight->reply.is_page
                ? hf_raise(HF_ERR_INVALID,
                           "the fetcher of depot '%s' was asked for a page, and returned HF_OK without hf_reply_page",
                           depot->name)
                : hf_reply_check(depot, &flight->reply, flight->etag != NULL || flight->last_modified != NULL);
        flight->why = HF_REPLY_INVALID;
        if (status == HF_OK && flight->reply.value != NULL && hf_depot_decodes(depot, flight->reply.value)) {
            status = hf_depot_decode(depot, flight->reply.value, &flight->object);
            flight->why = HF_REPLY_CONVERTER;
        }
        failure = hf_depot_take_failure(depot, status);
    } else {
        flight->retry_after = flight->reply.retry_after;
        bool is_last = status == HF_ERR_CANCELED || hf_canceled() != HF_OK ||
                       !hf_class_info_of(flight->why)->is_retried || attempt > depot->options.retries;
        if (!is_last) {
            hf_box_unref(failure);
            return false;
        }
    }
    hf_breaker_end end = hf_depot_end_of(status, flight->why);
    call->has_answered = call->has_answered || end == HF_BREAKER_ANSWERED;
    call->has_failed = call->has_failed || end == HF_BREAKER_FAILED;
    flight->work_status = status;
    flight->work_failure = failure;
    flight->is_answered = true;
    return true;
}

/* One call of .fetch. True: that was the last attempt. */
static bool ask_one(hf_depot_call *call, int attempt)
{
    hf_depot_flight *flight = call->flights[0];
    asking_one one = {flight, request_of(flight, attempt)};
    hf_assert(call->count == 1);
    hf_reply_clear(&flight->reply);
    hf_status status =
        hf_depot_attempt_of(call->depot, flight->slot, call->depot->options.fetch_timeout, call_fetch, &one);
    return judge(call, flight, attempt, status, hf_depot_take_failure(call->depot, status));
}

/* What became of one of many. */
static hf_status status_of(const hf_depot_flight *flight, hf_status status, hf_failure_box *shared,
                           hf_failure_box **ret_failure)
{
    const hf_reply *reply = &flight->reply;
    *ret_failure = NULL;
    if (reply->failure != NULL) {
        *ret_failure = hf_box_ref(reply->failure);
        return reply->failure->failure.status;
    }
    if (reply->value != NULL || reply->is_not_modified || status == HF_OK) {
        return HF_OK; /* judge finds out that nothing was said */
    }
    *ret_failure = hf_box_ref(shared);
    return status;
}

/* One call of .fetch_many. True: nothing is left to ask for. */
static hf_status ask_many(hf_depot_call *call, int attempt, bool *ret_is_over)
{
    hf_depot *depot = call->depot;
    asking *all = hf_rt_alloc(depot->rt, sizeof *all); /* too large for a stack */
    if (all == NULL) {
        return hf_raise(HF_ERR_NOMEM, "no memory for a call of .fetch_many");
    }
    all->call = call;
    for (size_t i = 0; i < call->count; i++) {
        hf_depot_flight *flight = call->flights[i];
        if (flight == NULL || atomic_load_explicit(&flight->is_left, memory_order_relaxed)) {
            continue;
        }
        hf_reply_clear(&flight->reply);
        flight->reply.keeps_failure = true;
        all->flights[all->count] = flight;
        all->replies[all->count] = &flight->reply;
        all->requests[all->count++] = request_of(flight, attempt);
    }
    called_for keys = {.depot = depot, .count = all->count, .flights = all->flights};
    hf_status status =
        all->count > 0 ? attempt_for(&keys, depot, depot->options.fetch_timeout, call_fetch_many, all) : HF_OK;
    hf_failure_box *shared = hf_depot_take_failure(depot, status);
    size_t left = 0;
    unsigned pace = 0;
    for (size_t i = 0; i < all->count; i++) {
        hf_failure_box *failure = NULL;
        hf_status one = status_of(all->flights[i], status, shared, &failure);
        left += !judge(call, all->flights[i], attempt, one, failure);
        HF_IGNORE(hf_pace(&pace, 16)); /* S20: decoders run here. A cancel is noticed by the next wait */
    }
    hf_box_unref(shared);
    hf_rt_free(depot->rt, all, sizeof *all);
    *ret_is_over = left == 0;
    return HF_OK;
}

/* ---- The fiber of a call ----------------------------------------------------------------------------------------- */

static void act_landed(hf_depot *depot, hf_post *post)
{
    hf_flight_land(depot, HF_CONTAINER(post, hf_depot_flight, landed));
}

/* Those that have their answer land, while the others are tried again. The pause before the next attempt is as long as
 * the longest of them asks for. */
static int64_t part(hf_depot_call *call, int attempt)
{
    int64_t pause = 0;
    for (size_t i = 0; i < call->count; i++) {
        hf_depot_flight *flight = call->flights[i];
        if (flight != NULL && flight->is_answered) {
            call->flights[i] = NULL;
            flight->landed.act = act_landed;
            hf_depot_post(call->depot, &flight->landed); /* from here on it is the driver's (depot-K2) */
        } else if (flight != NULL) {
            int64_t own = hf_rule_retry_pause(attempt, flight->retry_after, hf_depot_chance_of(call->depot));
            pause = own > pause ? own : pause;
        }
    }
    return pause;
}

static hf_status call_run(hf_work *work)
{
    hf_depot_call *call = HF_CONTAINER(work, hf_depot_call, work);
    hf_depot *depot = call->depot;
    if (call->is_new) {
        call->is_new = false;
        hf_depot_call_begins(depot);
    }
    for (int attempt = 1;; attempt++) {
        hf_status status = call->is_probe || (attempt == 1 && call->may_begin)
                               ? HF_OK
                               : hf_depot_permit(depot, call->origin, &call->is_probe);
        if (status != HF_OK) {
            call->was_denied = status == HF_ERR_UNAVAILABLE;
            return status;
        }
        bool is_over = false;
        if (call->is_many) {
            HF_TRY(ask_many(call, attempt, &is_over));
        } else {
            is_over = ask_one(call, attempt);
        }
        if (is_over) {
            return HF_OK;
        }
        HF_TRY(hf_sleep(hf_nanoseconds(part(call, attempt))));
    }
}

/* The flights that have no answer end with the call. */
static bool call_end(hf_work *work, hf_status status, hf_failure_box *failure)
{
    hf_depot_call *call = HF_CONTAINER(work, hf_depot_call, work);
    for (size_t i = 0; i < call->count; i++) {
        hf_depot_flight *flight = call->flights[i];
        if (flight == NULL || flight->is_answered) {
            continue;
        }
        /* One that was left in the middle of the attempts has no status of its own. */
        flight->work_status = status != HF_OK ? status : HF_ERR_CANCELED;
        flight->work_failure = hf_box_ref(failure);
        flight->was_denied = call->was_denied;
        flight->why = call->was_denied ? HF_REPLY_ORIGIN : hf_class_of_status(flight->work_status);
        flight->is_answered = true;
        call->has_failed = call->has_failed || (!call->was_denied &&
                                                hf_depot_end_of(flight->work_status, flight->why) == HF_BREAKER_FAILED);
    }
    hf_box_unref(failure);
    return true;
}

static void act_over(hf_depot *depot, hf_post *post);

/* Only now is the work's memory free. */
static void call_unref(hf_work *work)
{
    hf_depot_call *call = HF_CONTAINER(work, hf_depot_call, work);
    call->over.act = act_over;
    hf_depot_post_quietly(call->depot, &call->over);
}

static const hf_work_kind CALL = {call_run, call_end, call_unref};

/* ---- Starting and ending ----------------------------------------------------------------------------------------- */

static void act_over(hf_depot *depot, hf_post *post)
{
    hf_depot_call *call = HF_CONTAINER(post, hf_depot_call, over);
    hf_assert(depot->flights > 0 && depot->works > 0);
    depot->flights--;
    depot->works--;
    if (call->is_new) { /* it was canceled before it began */
        hf_depot_call_begins(depot);
    }
    hf_breaker_end end = call->has_answered ? HF_BREAKER_ANSWERED
                         : call->has_failed ? HF_BREAKER_FAILED
                                            : HF_BREAKER_CANCELED;
    if (!call->was_denied && (end != HF_BREAKER_CANCELED || call->is_probe)) { /* DP10 */
        hf_depot_tell_breaker(depot, call->origin, end, call->is_probe);
    }
    for (size_t i = 0; i < call->count; i++) {
        hf_depot_flight *flight = call->flights[i];
        if (flight != NULL) {               /* else it has landed before */
            hf_assert(flight->is_answered); /* depot-K2 */
            hf_flight_land(depot, flight);
        }
    }
    hf_spare_give(depot, call, sizeof *call + call->count * sizeof call->flights[0]);
}

void hf_depot_abandon(hf_depot *depot, hf_work *work)
{
    hf_fiber *self = hf_enter(depot->rt);
    hf_spin_lock(&depot->lock);
    hf_work_abandon(work);
    hf_spin_unlock(&depot->lock);
    if (self != NULL) {
        hf_leave(self);
    }
}

void hf_call_leave(hf_depot *depot, hf_depot_call *call)
{
    hf_assert(call->live > 0); /* depot-K3 */
    if (--call->live == 0) {
        hf_depot_abandon(depot, &call->work);
    }
}

/* Whether the flight may be in a call with `first`. */
static bool shares(const hf_depot_flight *first, const hf_depot_flight *flight)
{
    return first->ticket != 0 && flight->ticket == first->ticket;
}

/* How many flights of the queue go with its first one. They stand together: whoever gathered them queued them at once. */
static size_t count_mates(const hf_list *queue, const hf_depot_flight *first)
{
    size_t count = 1;
    for (hf_node *node = first->node.next; node != &queue->head; node = node->next) {
        const hf_depot_flight *flight = HF_CONTAINER(node, hf_depot_flight, node);
        if (!shares(first, flight) || count == HF_CALL_FLIGHTS_MAX) {
            break;
        }
        count += flight->origin == first->origin;
    }
    return count;
}

static void start_call(hf_depot *depot, hf_list *queue)
{
    hf_depot_flight *first = HF_CONTAINER(hf_list_first(queue), hf_depot_flight, node);
    bool is_many = depot->options.fetch_many != NULL && (first->ticket != 0 || depot->options.fetch == NULL);
    size_t count = is_many ? count_mates(queue, first) : 1;
    hf_depot_call *call = hf_spare_take(depot, sizeof *call + count * sizeof call->flights[0]);
    if (call == NULL) {
        hf_list_remove(&first->node);
        hf_flight_fail(depot, first, HF_ERR_NOMEM,
                       hf_box_new(depot->rt, HF_ERR_NOMEM, NULL, "hf_depot_get", "no memory for a fetch", NULL));
        return;
    }
    call->depot = depot;
    call->origin = first->origin;
    call->is_many = is_many;
    hf_node *node = &first->node;
    while (call->count < count) {
        hf_assert(node != &queue->head); /* depot-K1 */
        hf_depot_flight *flight = HF_CONTAINER(node, hf_depot_flight, node);
        node = node->next;
        if (flight->origin == call->origin) {
            hf_assert(flight->call == NULL && !flight->is_over);
            hf_list_remove(&flight->node);
            flight->call = call;
            flight->is_answered = false;
            flight->refs++;
            call->flights[call->count++] = flight;
        }
    }
    call->live = call->count;
    call->may_begin = hf_breaker_ask(&depot->breakers[call->origin], hf_rt_now(depot->rt).ns, &call->is_probe);
    depot->flights++;
    depot->works++;
    call->is_new = depot->source != NULL;
    if (call->is_new) {
        hf_spin_lock(&depot->lock);
        depot->calls_new++;
        hf_spin_unlock(&depot->lock);
    }
    call->work.kind = &CALL;
    call->work.lock = &depot->lock;
    call->work.name = depot->name;
    call->work.scope = depot->scope;
    HF_IGNORE(hf_work_start(&call->work)); /* if it fails, the flights end with that */
}

/* Those that had no permit yet when the depot went offline end as one that would begin now. */
static void refuse_offline(hf_depot *depot, hf_list *queue)
{
    for (hf_node *node = hf_list_pop_front(queue); node != NULL; node = hf_list_pop_front(queue)) {
        hf_depot_flight *flight = HF_CONTAINER(node, hf_depot_flight, node);
        flight->was_denied = true;
        hf_flight_fail(depot, flight, HF_ERR_UNAVAILABLE,
                       hf_box_new(depot->rt, HF_ERR_UNAVAILABLE, NULL, "hf_depot_get", "the depot is offline", NULL));
    }
}

void hf_depot_start_flights(hf_depot *depot)
{
    for (size_t i = 0; i < HF_COUNT_OF(depot->queue); i++) {
        hf_list *queue = &depot->queue[i];
        if (depot->is_offline) {
            refuse_offline(depot, queue);
        }
        while (depot->flights < (size_t)depot->options.fetch_max && !hf_list_is_empty(queue)) {
            if (depot->options.subscribe != NULL) {
                hf_sub_board(depot, HF_CONTAINER(hf_list_pop_front(queue), hf_depot_flight, node));
            } else {
                start_call(depot, queue);
            }
        }
    }
}
