/* Reading: what is at hand, a flight, or both, by the rules. */
#include "depot/fetching.h"

#include "fiber/keyed/cache.h"
#include "fiber/verbs.h"

enum { KEY_LEN_SHORT = 128 };

static void serve(hf_depot *depot, hf_ask *ask, hf_snap *snap, const hf_look_at *at)
{
    hf_assert(snap->kind == HF_ENTRY_VALUE && snap->value != NULL); /* DP2 */
    ask->snap = hf_snap_ref(snap);
    ask->age = at->age;
    ask->is_stale = at->local != HF_LOCAL_FRESH;
    depot->counts.stale_served += ask->is_stale;
    hf_depot_answer(depot, ask, HF_OK);
}

static void answer_unavailable(hf_depot *depot, hf_ask *ask, int64_t wait)
{
    ask->retry_after = wait;
    hf_status status = HF_ERR_UNAVAILABLE;
    if (!hf_depot_has_fetcher(depot)) {
        (void)hf_fail(&ask->op, status, "depot '%s' has nothing at hand, and no .fetch", depot->name);
    } else if (depot->is_offline) {
        (void)hf_fail(&ask->op, status, "depot '%s' is offline and has nothing at hand that would do", depot->name);
    } else {
        (void)hf_fail(&ask->op, status,
                      "depot '%s' has nothing at hand that would do, and does not ask the origin for another %lld ms, "
                      "because it failed",
                      depot->name, (long long)(wait / 1000000));
    }
    hf_depot_answer(depot, ask, status);
}

static void answer_not_found(hf_depot *depot, hf_ask *ask)
{
    hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOT_FOUND, "depot '%s' has no such value", depot->name));
}

void hf_read_act(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    if (hf_depot_refuses(depot, ask)) {
        return;
    }
    hf_depot_slot *slot = hf_slot_of_ask(depot, ask);
    if (slot == NULL) {
        return; /* it is acted on again when the key is known */
    }
    int64_t wait = 0;
    bool joined = false;
    hf_look_at at = hf_snap_look(depot, slot->snap, hf_depot_wall_coarse(depot));
    at.is_blocked = hf_depot_is_blocked(depot, slot, ask->is_forced, &wait);
    hf_move move = hf_rule_get(&ask->rule, &at);
    if (ask->is_prefetch) {
        if (move == HF_MOVE_FETCH || move == HF_MOVE_SERVE_REFRESH) {
            hf_flight_refresh(depot, slot, HF_URGENCY_LOW);
        }
        hf_depot_answer(depot, ask, HF_OK);
        return;
    }
    switch (move) {
    case HF_MOVE_SERVE_REFRESH:
    case HF_MOVE_SERVE:
        if (move == HF_MOVE_SERVE_REFRESH) {
            hf_flight_refresh_for(depot, slot, HF_URGENCY_LOW, ask->many);
        }
        depot->counts.hits_source += ask->place == HF_DEPOT_SOURCE;
        depot->counts.hits_memory += ask->place == HF_DEPOT_MEMORY;
        serve(depot, ask, slot->snap, &at);
        return;
    case HF_MOVE_NOT_FOUND:
        answer_not_found(depot, ask);
        return;
    case HF_MOVE_UNAVAILABLE:
        answer_unavailable(depot, ask, wait);
        return;
    case HF_MOVE_FETCH:
        break;
    }
    hf_assert(!at.is_blocked && !depot->is_offline); /* DP10 */
    depot->counts.misses++;
    hf_depot_flight *flight = hf_flight_board_for(depot, slot, ask->rule.fresh, ask->urgency, ask->many, &joined);
    if (flight == NULL) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for a fetch"));
        return;
    }
    depot->counts.joined += joined;
    depot->open_flight = flight;
    ask->flight = flight;
    flight->refs++; /* until the ask leaves it: an ask that was aborted leaves later than the flight may end */
    bool is_of_many = ask->many != NULL;               /* an ask of its own may be gone as soon as it is parked */
    (void)hf_depot_park(depot, ask, &flight->waiters); /* one that wants out is answered, and leaves the flight */
    if (is_of_many) {                                  /* it never wants out by itself, so it is still there */
        hf_many_decided(depot, ask);
    }
}

void hf_read_landed(hf_depot *depot, hf_ask *ask, const hf_depot_flight *flight, const hf_look_at *at)
{
    hf_depot_slot *slot = ask->slot;
    hf_assert(slot == flight->slot && slot->load == HF_SLOT_KNOWN && ask->flight == NULL);
    ask->place = HF_DEPOT_FETCHER;
    if (flight->status == HF_OK && flight->query != NULL) { /* of a page: the window has it */
        hf_depot_answer(depot, ask, HF_OK);
        return;
    }
    if (flight->status == HF_OK) {
        if (slot->snap->kind == HF_ENTRY_VALUE) {
            serve(depot, ask, slot->snap, at);
        } else { /* deleted here meanwhile */
            answer_not_found(depot, ask);
        }
        return;
    }
    if (flight->status == HF_ERR_NOT_FOUND && slot->snap->is_pending && slot->snap->kind == HF_ENTRY_VALUE) {
        serve(depot, ask, slot->snap, at); /* the origin has none, but a write makes one */
        return;
    }
    if (hf_rule_serves_stale(&ask->rule, at, flight->why)) {
        ask->place = HF_DEPOT_MEMORY;
        serve(depot, ask, slot->snap, at);
        return;
    }
    if (flight->was_denied) {
        int64_t wait = 0;
        (void)hf_breaker_is_shut(&depot->breakers[flight->origin], hf_rt_now(depot->rt).ns, &wait);
        answer_unavailable(depot, ask, wait);
        return;
    }
    ask->failure = hf_box_ref(flight->failure);
    hf_depot_answer(depot, ask, flight->status);
}

/* ---- Verbs ------------------------------------------------------------------------------------------------------- */

void hf_info_fill(hf_depot_info *info, const hf_snap *snap, int64_t age, bool is_stale, hf_depot_place place)
{
    const char *etag = hf_value_text(snap->entry.etag);
    info->place = place;
    info->age = hf_nanoseconds(age);
    info->is_stale = is_stale;
    info->is_pending = snap->is_pending;
    info->version = snap->entry.version;
    info->retry_after = hf_nanoseconds(0);
    size_t len = etag != NULL ? strlen(etag) : 0;
    hf_assert(len <= HF_ETAG_LEN_MAX); /* hf_reply_etag and row.c take no longer one */
    memcpy(info->etag, etag != NULL ? etag : "", len);
    info->etag[len] = '\0';
}

hf_status hf_read_check(hf_op *op, hf_fresh fresh, hf_span within, hf_urgency urgency)
{
    if ((unsigned)fresh > HF_FRESH_LOCAL) {
        return hf_fail(op, HF_ERR_INVALID, "%d is not a freshness", (int)fresh);
    }
    if (within.ns < 0) {
        return hf_fail(op, HF_ERR_INVALID, ".within is negative");
    }
    return (unsigned)urgency <= HF_URGENCY_HIGH ? HF_OK
                                                : hf_fail(op, HF_ERR_INVALID, "%d is not an urgency", (int)urgency);
}

typedef struct looking {
    hf_depot *depot;
    const hf_ask_rule *rule;
    hf_value **ret_value;
    hf_depot_info *ret_info;
} looking;

/* Called while memory protects the value: takes what the caller gets, and nothing else. */
static bool look(void *arg, hf_value *value)
{
    const looking *one = arg;
    const hf_snap *snap = hf_value_data(value);
    hf_look_at at = hf_snap_look(one->depot, snap, hf_depot_wall_coarse(one->depot));
    if (hf_rule_get(one->rule, &at) != HF_MOVE_SERVE) {
        return false;
    }
    hf_value *given = snap->value;
    if (one->depot->options.decode != NULL && hf_depot_decodes(one->depot, snap->value)) {
        given = atomic_load_explicit(&snap->object, memory_order_acquire);
        if (given == NULL) { /* it is decoded outside of memory */
            return false;
        }
    }
    *one->ret_value = hf_value_ref(given);
    if (one->ret_info != NULL) {
        hf_info_fill(one->ret_info, snap, at.age, at.local != HF_LOCAL_FRESH,
                     snap->is_pending ? HF_DEPOT_WRITE : HF_DEPOT_MEMORY);
    }
    return true;
}

bool hf_read_at_once(hf_depot *depot, hf_str key, const hf_ask_rule *rule, hf_value **ret_value,
                     hf_depot_info *ret_info)
{
    looking one = {depot, rule, ret_value, ret_info};
    return hf_cache_visit(depot->memory, key.data, key.len, look, &one);
}

static hf_status check_get(hf_op *op, hf_depot *depot, hf_depot_key key, hf_value **ret_value,
                           const hf_depot_get_options *options, hf_depot_key_bytes *ret_bytes)
{
    if (depot == NULL || ret_value == NULL) {
        return hf_fail_at(op, HF_ERR_MISUSE, "hf_depot_get", "hf_depot_get needs a depot and a place for the value");
    }
    HF_TRY(hf_depot_key_pack(op, key, ret_bytes));
    return hf_read_check(op, options->fresh, options->within, options->urgency);
}

static hf_status get_by_driver(hf_depot *depot, hf_ask *ask, hf_value **ret_value, const hf_depot_get_options *options)
{
    hf_status status = hf_depot_ask(depot, ask, hf_read_act, "hf_depot_get", options->timeout);
    if (status == HF_OK) {
        hf_snap *snap = ask->snap;
        status = hf_snap_give(depot, snap, ret_value);
        if (status == HF_OK && options->ret_info != NULL) {
            hf_info_fill(options->ret_info, snap, ask->age, ask->is_stale,
                         snap->is_pending ? HF_DEPOT_WRITE : ask->place);
        }
    } else if (status == HF_ERR_UNAVAILABLE && options->ret_info != NULL) {
        options->ret_info->retry_after = hf_nanoseconds(ask->retry_after);
    }
    hf_snap_unref(ask->snap);
    return status;
}

/* All of it has been checked. */
static hf_status get(hf_depot *depot, hf_str key, hf_value **ret_value, const hf_depot_get_options *options)
{
    hf_ask ask;
    hf_ask_rule rule = {
        .fresh = options->fresh, .within = options->within.ns, .stale_max = depot->options.stale_max.ns};
    if (hf_read_at_once(depot, key, &rule, ret_value, options->ret_info)) {
        return HF_OK;
    }
    hf_ask_init(&ask);
    ask.key = key;
    ask.rule = rule;
    ask.is_forced = options->force;
    ask.may_board = options->fresh != HF_FRESH_LOCAL;
    ask.urgency = options->urgency;
    ask.place = HF_DEPOT_MEMORY;
    ask.asked_at = hf_depot_wall(depot);
    HF_TRY(hf_depot_enter(depot, "hf_depot_get"));
    hf_status status = get_by_driver(depot, &ask, ret_value, options);
    hf_depot_leave(depot);
    return status;
}

/* Of a long key, or with something to say about the arguments. */
static HF_NOINLINE hf_status get_long(hf_depot *depot, hf_depot_key key, hf_value **ret_value,
                                      const hf_depot_get_options *options)
{
    hf_depot_key_bytes bytes;
    hf_op op;
    hf_op_init(&op);
    if (check_get(&op, depot, key, ret_value, options, &bytes) != HF_OK) {
        return hf_depot_raise(depot, &op);
    }
    return get(depot, hf_depot_key_str(&bytes), ret_value, options);
}

/* Whether check_get has nothing to say about what is not the key. */
static inline bool may_get(const hf_depot *depot, hf_value **ret_value, const hf_depot_get_options *options)
{
    return depot != NULL && ret_value != NULL && (unsigned)options->fresh <= HF_FRESH_LOCAL &&
           options->within.ns >= 0 && (unsigned)options->urgency <= HF_URGENCY_HIGH;
}

/* Thousands of fibers may wait here at once. So the frames of a wait have little that it does not need: of most keys they fit on the
 * page that the stack has anyway. */
hf_status hf_depot_get_with(hf_depot *depot, hf_depot_key key, hf_value **ret_value,
                            const hf_depot_get_options *options)
{
    HF_OPTIONS(hf_depot_get_options, options, hf_depot_get);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_get));
    char bytes[KEY_LEN_SHORT];
    size_t len = may_get(depot, ret_value, options) ? hf_depot_key_pack_short(key, bytes, sizeof bytes) : 0;
    return HF_LIKELY(len > 0) ? get(depot, hf_str_of_len(bytes, len), ret_value, options)
                              : get_long(depot, key, ret_value, options);
}

hf_status hf_depot_prefetch(hf_depot *depot, hf_depot_key key)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_prefetch));
    HF_TRY(hf_depot_enter(depot, "hf_depot_prefetch"));
    hf_ask ask = {.is_prefetch = true};
    hf_status status = hf_depot_ask_of(depot, key, &ask, hf_read_act, "hf_depot_prefetch");
    hf_depot_leave(depot);
    return status;
}
