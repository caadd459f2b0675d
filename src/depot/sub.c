/* Subscriptions: .subscribe follows a key while somebody wants that (ADR 0036).
 *
 *     wanted: a flight of the key waits, or somebody watches it who is not local
 *
 *     none --a flight starts--> begun --first reply--> live --> a reply lands as a flight, again and again
 *      ^                          |                      |
 *      |                          +------ fails ---------+--> lands as a flight that failed: back-off, breaker
 *      |                                                                     |
 *      +---- nobody wants it: canceled at once          still watched: a flight of its own begins it again
 *
 * A reply lands as the flight of its key, if one waits, else as one that is made for it: so it is ordered, written and
 * shown as every fetch is. The subscriber waits until it has landed. A reply counts as of the moment when it is handed over.
 *
 * Until its first reply a subscription counts as one of the fetches at once, has a permit of the breaker and a time
 * limit, as a fetch has. Later it may be silent for as long as it likes.
 *
 * depot-U1  A key has at most one current subscription. One that is not current lands nothing.
 * depot-U2  After an invalidation of the key a subscription from before it lands nothing: it is replaced (DP3). */
#include "depot/fetching.h"
#include "depot/hearing.h"

#include "fiber/verbs.h"

static const int64_t SECOND = 1000000000;

static bool is_watched(const hf_depot_slot *slot)
{
    HF_LIST_EACH(node, &slot->watchers)
    {
        if (hf_watcher_subscribes(HF_CONTAINER(node, hf_watcher, node))) {
            return true;
        }
    }
    return false;
}

/* Whether the key was invalidated after it began (depot-U2). */
static bool is_outdated(const hf_depot *depot, const hf_sub_run *run)
{
    const hf_depot_slot *slot = run->slot;
    return run->voids != slot->voids ||
           run->generation != atomic_load_explicit(&slot->space->generation, memory_order_relaxed) ||
           run->generation_all != atomic_load_explicit(&depot->generation, memory_order_relaxed);
}

/* ---- The fiber of a subscription --------------------------------------------------------------------------------- */

static hf_status call_subscribe(void *arg)
{
    hf_sub_run *run = arg;
    const hf_depot *depot = run->depot;
    return depot->options.subscribe(depot->options.state, &run->request, &run->reply);
}

static hf_status sub_run(hf_work *work)
{
    hf_sub_run *run = HF_CONTAINER(work, hf_sub_run, work);
    hf_depot *depot = run->depot;
    bool is_probe = false;
    hf_status status = hf_depot_permit(depot, run->origin, &is_probe);
    atomic_store(&run->is_probe, is_probe);
    if (status != HF_OK) {
        atomic_store(&run->was_denied, status == HF_ERR_UNAVAILABLE);
        return status;
    }
    return hf_depot_attempt_of(depot, run->slot, hf_nanoseconds(0), call_subscribe, run);
}

static bool sub_end(hf_work *work, hf_status status, hf_failure_box *failure)
{
    hf_sub_run *run = HF_CONTAINER(work, hf_sub_run, work);
    run->status = status;
    run->failure = failure;
    run->why = hf_depot_classify(&run->reply, status);
    return true;
}

static void act_over(hf_depot *depot, hf_post *post);
static void ring_again(hf_depot *depot, hf_depot_timer_node *timer);

/* If it is watched it begins again, but not at once. */
static void put_off(hf_depot *depot, hf_depot_slot *slot)
{
    if (is_watched(slot)) {
        slot->sub_timer.ring = ring_again;
        hf_depot_timer(depot, &slot->sub_timer, hf_rt_now(depot->rt).ns + SECOND);
    }
}

static void sub_unref(hf_work *work)
{
    hf_sub_run *run = HF_CONTAINER(work, hf_sub_run, work);
    run->over.act = act_over;
    hf_depot_post_quietly(run->depot, &run->over);
}

static const hf_work_kind SUBSCRIPTION = {sub_run, sub_end, sub_unref};

typedef struct emit_ask {
    hf_ask ask;
    hf_sub_run *run;
} emit_ask;

static void act_emit(hf_depot *depot, hf_post *post);

hf_status hf_sub_emit(hf_sub_run *run)
{
    hf_depot *depot = run->depot;
    const hf_reply *reply = &run->reply;
    HF_TRY(hf_reply_check(depot, reply, run->etag != NULL || run->last_modified != NULL || run->has_handed_over));
    if (reply->value != NULL && hf_depot_decodes(depot, reply->value)) {
        hf_status status = hf_depot_decode(depot, reply->value, &run->object);
        if (status != HF_OK) {
            run->reply.why = HF_REPLY_CONVERTER; /* if the subscriber returns it */
            run->reply.has_class = true;
            return status;
        }
    }
    emit_ask emit = {.run = run};
    hf_status status = hf_depot_ask(depot, &emit.ask, act_emit, "hf_reply_emit", hf_nanoseconds(0));
    run->has_handed_over = run->has_handed_over || status == HF_OK;
    hf_reply_clear(&run->reply);
    hf_value_unref(run->object);
    run->object = NULL;
    return status;
}

/* ---- Ending ------------------------------------------------------------------------------------------------------ */

static void tell_breaker(hf_depot *depot, hf_sub_run *run, hf_breaker_end end)
{
    if (!run->was_denied && (end != HF_BREAKER_CANCELED || (run->is_probe && !run->is_told))) { /* DP10 */
        hf_depot_tell_breaker(depot, run->origin, end, run->is_probe && !run->is_told);
    }
    run->is_told = true;
}

/* It is one of the fetches at once no more. */
static void uncount(hf_depot *depot, hf_sub_run *run)
{
    hf_heap_remove(&depot->timers, &run->timer.node);
    if (run->is_counted) {
        hf_assert(depot->flights > 0);
        run->is_counted = false;
        depot->flights--;
    }
}

static void drop_taken(hf_sub_run *run)
{
    hf_reply_clear(&run->taken);
    hf_value_unref(run->taken_object);
    run->taken_object = NULL;
    run->has_taken = false;
}

/* The subscriber goes on. */
static void answer_emission(hf_depot *depot, hf_sub_run *run, hf_status status, const char *message)
{
    hf_ask *ask = hf_depot_unpark(depot, &run->emitting);
    if (ask != NULL) { /* else it was canceled meanwhile */
        hf_depot_answer(depot, ask, status == HF_OK ? HF_OK : hf_fail(&ask->op, status, "%s", message));
    }
}

static const char UNWANTED[] = "nobody wants the key any more";

/* The key is free at once; its fiber ends when it can. */
static void drop(hf_depot *depot, hf_sub_run *run)
{
    hf_assert(run->is_current && run->slot->sub == run); /* depot-U1 */
    run->is_current = false;
    run->slot->sub = NULL;
    uncount(depot, run);
    drop_taken(run);
    hf_depot_abandon(depot, &run->work);
    answer_emission(depot, run, HF_ERR_CANCELED, UNWANTED);
}

/* The flight that a reply or a failure lands as: the one that waits, else a new one, which the subscription holds. NULL:
 * no memory, or one is just being written. */
static hf_depot_flight *flight_for(hf_depot *depot, hf_depot_slot *slot)
{
    bool joined = false;
    hf_depot_flight *flight = slot->flight;
    if (flight != NULL && flight->is_landing) {
        return NULL;
    }
    if (flight == NULL) {
        flight = hf_flight_board(depot, slot, HF_FRESH_CACHED, HF_URGENCY_NORMAL, &joined);
    }
    if (flight != NULL && hf_node_is_linked(&flight->node)) { /* it waited for a permit */
        hf_list_remove(&flight->node);
    }
    return flight;
}

/* The failure of a subscription lands as that of a fetch, if somebody is there to hear of it. Takes `failure`. */
static void land_failure(hf_depot *depot, hf_depot_slot *slot, hf_status status, hf_reply_class why,
                         hf_failure_box *failure, bool was_denied)
{
    bool is_heard = !depot->is_ending && (slot->flight != NULL || is_watched(slot));
    hf_depot_flight *flight = is_heard ? flight_for(depot, slot) : NULL;
    if (flight == NULL) {
        hf_box_unref(failure);
        return;
    }
    hf_flight_stamp(depot, flight);
    flight->refs++; /* that of a call */
    flight->work_status = status;
    flight->work_failure = failure;
    flight->why = why;
    flight->was_denied = was_denied;
    hf_flight_land(depot, flight);
}

static void run_free(hf_depot *depot, hf_sub_run *run)
{
    hf_depot_slot *slot = run->slot;
    hf_assert(!run->is_current && hf_list_is_empty(&run->emitting) && !run->is_counted); /* depot-U1 */
    hf_reply_clear(&run->reply);
    hf_value_unref(run->object);
    drop_taken(run);
    hf_value_unref(run->etag);
    hf_value_unref(run->last_modified);
    hf_box_unref(run->failure);
    hf_rt_free(depot->rt, run, sizeof *run);
    hf_slot_let_go(depot, slot);
}

/* Its fiber has ended. */
static void act_over(hf_depot *depot, hf_post *post)
{
    hf_sub_run *run = HF_CONTAINER(post, hf_sub_run, over);
    hf_depot_slot *slot = run->slot;
    hf_assert(depot->works > 0);
    depot->works--;
    uncount(depot, run);
    if (!run->is_current) { /* it was canceled, or replaced */
        tell_breaker(depot, run, HF_BREAKER_CANCELED);
        run_free(depot, run);
        return;
    }
    run->is_current = false;
    slot->sub = NULL;
    slot->holds++;                                                                    /* until it was looked at */
    bool is_quiet = run->status == HF_OK && run->has_emitted && slot->flight == NULL; /* its end is not a failure */
    if (is_quiet) {
        put_off(depot, slot);
    } else {
        /* Without memory there may be none for a back-off either, and that there is nothing is no failure. */
        if (run->status == HF_ERR_NOMEM || run->why == HF_REPLY_NOT_FOUND) {
            put_off(depot, slot);
        }
        if (run->status == HF_OK) {
            run->status = HF_ERR_INVALID;
            run->why = HF_REPLY_INVALID;
            run->failure = hf_box_new(depot->rt, HF_ERR_INVALID, NULL, "hf_depot",
                                      "the subscriber returned HF_OK without another reply", NULL);
        }
        tell_breaker(depot, run, hf_depot_end_of(run->status, run->why));
        land_failure(depot, slot, run->status, run->why, hf_box_ref(run->failure), run->was_denied);
        hf_sub_look(depot, slot);
    }
    run_free(depot, run);
    hf_slot_let_go(depot, slot);
}

/* The first reply did not come in time. */
static void ring_late(hf_depot *depot, hf_depot_timer_node *timer)
{
    hf_sub_run *run = HF_CONTAINER(timer, hf_sub_run, timer);
    hf_depot_slot *slot = run->slot;
    hf_assert(run->is_current && !run->has_emitted);
    slot->holds++;
    tell_breaker(depot, run, HF_BREAKER_FAILED);
    drop(depot, run);
    land_failure(depot, slot, HF_ERR_TIMEOUT, HF_REPLY_TIMEOUT,
                 hf_box_new(depot->rt, HF_ERR_TIMEOUT, NULL, "hf_depot",
                            "the subscription had no reply within .fetch_timeout", NULL),
                 false);
    hf_sub_look(depot, slot);
    hf_slot_let_go(depot, slot);
}

/* ---- Replies ----------------------------------------------------------------------------------------------------- */

/* What a reply says, with references of its own. */
static void take(hf_reply *to, const hf_reply *from)
{
    to->value = hf_value_ref(from->value);
    to->etag = hf_value_ref(from->etag);
    to->last_modified = hf_value_ref(from->last_modified);
    to->max_age = from->max_age;
    to->revision = from->revision;
    to->is_not_modified = from->is_not_modified;
}

/* Lands the reply that waits, unless something of the key is just being written: then its end comes back here. */
static void land_reply(hf_depot *depot, hf_sub_run *run)
{
    hf_depot_slot *slot = run->slot;
    hf_assert(run->is_current && run->has_taken && !run->is_landing);
    hf_depot_flight *flight = flight_for(depot, slot);
    if (flight == NULL) {
        if (slot->flight == NULL) { /* no memory: the subscriber hears of it */
            drop_taken(run);
            answer_emission(depot, run, HF_ERR_NOMEM, "no memory for a value of the depot");
        }
        return;
    }
    if (!run->has_emitted) {
        run->has_emitted = true;
        uncount(depot, run);
        tell_breaker(depot, run, HF_BREAKER_ANSWERED);
    }
    hf_flight_stamp(depot, flight);
    hf_reply_clear(&flight->reply);
    take(&flight->reply, &run->taken);
    hf_value_unref(flight->object);
    flight->object = hf_value_ref(run->taken_object);
    flight->work_status = HF_OK;
    drop_taken(run);
    flight->refs++; /* that of a call */
    run->is_landing = true;
    hf_flight_land(depot, flight); /* its end is looked at in look_at */
}

static void act_emit(hf_depot *depot, hf_post *post)
{
    emit_ask *emit = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), emit_ask, ask);
    hf_sub_run *run = emit->run;
    if (run->is_current && is_outdated(depot, run)) { /* depot-U2 */
        drop(depot, run);
        hf_sub_look(depot, run->slot);
    }
    if (!run->is_current || depot->is_ending) {
        hf_depot_answer(depot, &emit->ask, hf_fail(&emit->ask.op, HF_ERR_CANCELED, "%s", UNWANTED));
        return;
    }
    drop_taken(run);                /* of an emission whose caller was canceled */
    take(&run->taken, &run->reply); /* now: from the moment when it is parked it may be canceled, and clear its reply */
    run->taken_object = hf_value_ref(run->object);
    run->has_taken = true;
    if (!hf_depot_park(depot, &emit->ask, &run->emitting)) {
        drop_taken(run);
    } else if (!run->is_landing) {
        land_reply(depot, run);
    }
}

/* ---- Beginning --------------------------------------------------------------------------------------------------- */

static void start(hf_depot *depot, hf_depot_flight *flight)
{
    hf_depot_slot *slot = flight->slot;
    hf_sub_run *run = hf_rt_alloc(depot->rt, sizeof *run);
    if (run == NULL) {
        put_off(depot, slot);
        hf_flight_fail(depot, flight, HF_ERR_NOMEM,
                       hf_box_new(depot->rt, HF_ERR_NOMEM, NULL, "hf_depot_get", "no memory for a fetch", NULL));
        return;
    }
    run->depot = depot;
    run->slot = slot;
    slot->holds++;
    run->is_current = run->is_counted = true;
    run->origin = flight->origin;
    run->voids = slot->voids;
    run->generation = flight->generation;
    run->generation_all = flight->generation_all;
    run->etag = hf_value_ref(flight->etag);
    run->last_modified = hf_value_ref(flight->last_modified);
    hf_list_init(&run->emitting);
    hf_reply_init(&run->reply, depot->rt, (size_t)depot->options.value_max);
    hf_reply_init(&run->taken, depot->rt, (size_t)depot->options.value_max);
    run->reply.emits = run;
    run->request = (hf_fetch_request){
        .etag = hf_value_text(run->etag),
        .last_modified = hf_value_text(run->last_modified),
        .urgency = flight->urgency,
        .attempt = 1,
        .deadline = hf_depot_attempt_deadline(depot),
    };
    bool is_key = hf_depot_key_unpack(hf_slot_key(slot), &run->request.key);
    hf_assert(is_key);
    run->timer.ring = ring_late;
    hf_depot_timer(depot, &run->timer, run->request.deadline.ns);
    run->work.kind = &SUBSCRIPTION;
    run->work.lock = &depot->lock;
    run->work.name = depot->name;
    run->work.scope = depot->scope;
    slot->sub = run;
    depot->flights++;
    depot->works++;
    HF_IGNORE(hf_work_start(&run->work)); /* if it fails, it ends with that */
}

void hf_sub_board(hf_depot *depot, hf_depot_flight *flight)
{
    hf_sub_run *run = flight->slot->sub;
    hf_assert(!flight->is_over && flight->call == NULL);
    if (run != NULL && is_outdated(depot, run)) { /* depot-U2 */
        drop(depot, run);
        run = NULL;
    }
    if (run == NULL) {
        hf_heap_remove(&depot->timers, &flight->slot->sub_timer.node);
        hf_flight_aim(depot, flight); /* it may have waited, and been invalidated meanwhile: the run would not know */
        start(depot, flight);
    } else if (run->is_landing) { /* what was landing does not serve all who wait: the next one may */
        run->is_landing = false;
        answer_emission(depot, run, HF_OK, NULL);
    }
}

/* ---- Whether it is wanted ---------------------------------------------------------------------------------------- */

static void ring_again(hf_depot *depot, hf_depot_timer_node *timer)
{
    hf_sub_look(depot, HF_CONTAINER(timer, hf_depot_slot, sub_timer));
}

void hf_sub_look(hf_depot *depot, hf_depot_slot *slot)
{
    if (depot->options.subscribe != NULL && !hf_node_is_linked(&slot->in_subs)) {
        slot->holds++;
        hf_list_push_back(&depot->subs, &slot->in_subs);
    }
}

/* It is watched and does not run: a flight begins it, now or when the origin may be asked again. */
static void begin_again(hf_depot *depot, hf_depot_slot *slot)
{
    int64_t wait = 0;
    if (slot->sub_timer.node.place != 0 || slot->load != HF_SLOT_KNOWN) {
        return;
    }
    slot->sub_timer.ring = ring_again;
    if (hf_depot_is_blocked(depot, slot, false, &wait)) {
        if (!depot->is_offline) { /* half open: somebody is probing */
            hf_depot_timer(depot, &slot->sub_timer, hf_rt_now(depot->rt).ns + (wait > 0 ? wait : SECOND));
        }
        return;
    }
    hf_watch_again(depot, slot);
    if (slot->flight == NULL) { /* no memory: without a pause the driver would come here again and again */
        put_off(depot, slot);
    }
}

static void look_at(hf_depot *depot, hf_depot_slot *slot)
{
    hf_sub_run *run = slot->sub;
    bool is_idle = slot->flight == NULL;
    if (run != NULL && run->is_landing && is_idle) { /* its reply has landed */
        run->is_landing = false;
        answer_emission(depot, run, HF_OK, NULL);
    }
    if (depot->is_ending) {
        return; /* all are canceled with the depot's scope */
    }
    bool watched = is_watched(slot);
    if (run != NULL && is_idle && !watched) {
        drop(depot, run);
    } else if (run != NULL && is_outdated(depot, run)) {
        drop(depot, run);
        run = NULL;
    } else if (run != NULL && run->has_taken && !run->is_landing) { /* the key was being written when it came */
        land_reply(depot, run);
    }
    hf_depot_flight *flight = slot->flight;
    if (slot->sub == NULL && flight == NULL && watched) {
        begin_again(depot, slot);
    } else if (slot->sub == NULL && flight != NULL && !flight->is_landing && !hf_node_is_linked(&flight->node)) {
        hf_flight_queue_again(depot, flight); /* it waited for a subscription that was dropped */
    }
    if (!watched) {
        hf_heap_remove(&depot->timers, &slot->sub_timer.node);
    }
}

void hf_depot_look_at_subs(hf_depot *depot)
{
    for (hf_node *node = hf_list_pop_front(&depot->subs); node != NULL; node = hf_list_pop_front(&depot->subs)) {
        hf_depot_slot *slot = HF_CONTAINER(node, hf_depot_slot, in_subs);
        look_at(depot, slot);
        hf_slot_let_go(depot, slot);
    }
}

void hf_depot_look_at_all_subs(hf_depot *depot)
{
    HF_LIST_EACH(node, &depot->all_watchers)
    {
        hf_sub_look(depot, HF_CONTAINER(node, hf_watcher, in_all)->slot);
    }
}
