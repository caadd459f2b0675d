/* Collecting. The collector of a cold flow opens a scope on its own fiber, for the source, from open to close: such
 * collectors are closed in the reverse order of opening, and before any scope around them. */
#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/sync/flow.h"
#include "fiber/verbs.h"

#include <string.h>

enum { ON_STACK = 256 };

/* ---- Open -------------------------------------------------------------------------------------------------------- */

static hf_collector *make(hf_fiber *self, hf_flow *flow, const hf_collector_options *options, hf_status *ret_status)
{
    if ((unsigned)options->mode > HF_FLOW_DROP_OLDEST) {
        *ret_status = hf_refuse_at(self, HF_ERR_INVALID, "hf_collector_open", "a collector's .mode has no such value");
        return NULL;
    }
    size_t capacity = options->capacity == 0 || options->mode == HF_FLOW_CONFLATE ? 1 : options->capacity;
    if (capacity > HF_CHAN_LEN_MAX || (flow->value_len > 0 && capacity > HF_CHAN_LEN_MAX / flow->value_len)) {
        *ret_status =
            hf_refuse_at(self, HF_ERR_INVALID, "hf_collector_open", "a collector buffers at most 1 GiB in all");
        return NULL;
    }
    hf_collector *collector = hf_rt_alloc(flow->rt, sizeof *collector + capacity * flow->value_len);
    if (collector == NULL) {
        *ret_status =
            hf_refuse_at(self, HF_ERR_NOMEM, "hf_collector_open", "no memory for a collector of '%s'", flow->name);
        return NULL;
    }
    collector->owner = hf_holder_of(self);
    collector->mode = options->mode == HF_FLOW_DEFAULT ? HF_FLOW_BUFFER : options->mode;
    collector->capacity = capacity;
    hf_list_init(&collector->receiver);
    return collector;
}

static void collector_free(hf_flow *flow, hf_collector *collector)
{
    hf_rt_free(flow->rt, collector, sizeof *collector + collector->capacity * flow->value_len);
}

/* Under the lock (fiber-V4). */
static void leave_run(hf_collector *collector, hf_claimed *claimed)
{
    hf_emitter *run = collector->run;
    hf_flow *flow = run->flow;
    hf_list_remove(&collector->node);
    if (!hf_flow_is_hot(flow) && hf_list_is_empty(&run->collectors)) {
        if (flow->current == run) {
            flow->current = NULL;
        }
        hf_work_abandon(&run->work);
    }
    hf_assert(hf_flow_is_hot(flow) || !hf_list_is_empty(&run->collectors) || run->work.abandoned); /* fiber-V4 */
    hf_flow_pump(run, claimed);
}

/* Its scope, if it had one, is closed. */
static void release(hf_flow *flow, hf_collector *collector)
{
    hf_assert(!hf_node_is_linked(&collector->node) && hf_list_is_empty(&collector->receiver));
    hf_emitter *run = collector->run;
    collector_free(flow, collector);
    hf_flow_run_unref(run);
}

static void drop_collector(hf_owned_object *owned)
{
    hf_collector *collector = HF_CONTAINER(owned, hf_collector, owned);
    hf_flow *flow = collector->run->flow;
    hf_claimed claimed = {NULL, NULL};
    hf_spin_lock(&flow->lock);
    if (hf_node_is_linked(&collector->node)) { /* else it was about to be closed */
        leave_run(collector, &claimed);
    }
    hf_spin_unlock(&flow->lock);
    hf_claimed_wake(&claimed, HF_OK);
    release(flow, collector);
}

/* Links the collector to the run under way, else to `*fresh`, which is set to NULL. False: there is neither. */
static bool join_run(hf_flow *flow, hf_collector *collector, hf_emitter **fresh)
{
    hf_spin_lock(&flow->lock);
    hf_emitter *run = flow->current;
    if (run == NULL && *fresh != NULL) {
        run = *fresh;
        *fresh = NULL;
        hf_list_push_back(&flow->runs, &run->runs);
        flow->current = flow->share != NULL ? run : NULL;
    }
    if (run != NULL) {
        hf_assert(collector->run == NULL && !run->ended);
        collector->run = run;
        hf_list_push_back(&run->collectors, &collector->node);
        atomic_fetch_add_explicit(&run->refs, 1, memory_order_relaxed);
    }
    hf_spin_unlock(&flow->lock);
    return run != NULL;
}

/* HF_OK: the collector has its run; `*ret_starts`: and has to start it. */
static hf_status find_run(hf_fiber *self, hf_flow *flow, hf_collector *collector, bool *ret_starts)
{
    hf_emitter *fresh = NULL;
    *ret_starts = false;
    hf_sync_point(self);
    if (join_run(flow, collector, &fresh)) {
        return HF_OK;
    }
    fresh = hf_flow_run_new(flow);
    if (fresh == NULL) {
        return hf_refuse_at(self, HF_ERR_NOMEM, "hf_collector_open", "no memory for a run of '%s'", flow->name);
    }
    if (collector->scope != NULL) {
        fresh->work.scope = collector->scope;
    }
    (void)join_run(flow, collector, &fresh);
    *ret_starts = fresh == NULL;
    hf_flow_run_unref(fresh); /* somebody else was faster */
    return HF_OK;
}

/* Enters and leaves by itself: the scope of a cold collector, and the fork, are public verbs. */
static hf_status open_on(hf_flow *flow, hf_collector *collector)
{
    if (!hf_flow_is_hot(flow) && flow->share == NULL) {
        HF_TRY(hf_scope_open(&collector->scope, .name = flow->name, .runtime = flow->rt));
    }
    hf_fiber *self = hf_enter(flow->rt);
    hf_assert(self != NULL);
    bool starts = false;
    hf_status status = find_run(self, flow, collector, &starts);
    if (status == HF_OK) {
        hf_own(self, &collector->owned, drop_collector);
    }
    hf_leave(self);
    if (status != HF_OK) {
        (void)hf_scope_close(collector->scope);
        return status;
    }
    return starts ? hf_work_start(&collector->run->work) : HF_OK;
}

hf_status hf_collector_open_with(hf_flow *flow, hf_collector **ret_collector, const hf_collector_options *options)
{
    HF_OPTIONS(hf_collector_options, options, hf_collector_open);
    HF_VERB_ENTER(self, hf_collector_open, flow != NULL ? flow->rt : NULL);
    if (flow == NULL || ret_collector == NULL) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, "hf_collector_open",
                                    "hf_collector_open needs a flow and a place for the collector"));
    }
    hf_status status = hf_not_evicted(self, "hf_collector_open");
    hf_collector *collector = status == HF_OK ? make(self, flow, options, &status) : NULL;
    hf_leave(self);
    if (collector == NULL) {
        return status;
    }
    status = open_on(flow, collector);
    if (status == HF_OK) {
        *ret_collector = collector;
    } else if (collector->run != NULL) { /* the source could not start */
        (void)hf_collector_close(collector);
    } else {
        collector_free(flow, collector);
    }
    return status;
}

/* ---- Next -------------------------------------------------------------------------------------------------------- */

static const hf_wait_kind NEXT = {"hf_collector_next", hf_wait_abort_linked};

static hf_status end_of(hf_fiber *self, const hf_emitter *run, bool *ret_is_end)
{
    *ret_is_end = run->failure == NULL;
    if (run->failure != NULL) {
        hf_self_fail(self, hf_box_ref(run->failure));
    } else {
        hf_self_note(self, run->status, NEXT.verb);
    }
    return run->status;
}

/* `*ret_is_end`: HF_ERR_CLOSED means that the flow ended without a failure. */
static hf_status next_on(hf_fiber *self, hf_collector *collector, void *ret_value, hf_instant deadline,
                         bool *ret_is_end)
{
    hf_emitter *run = collector->run;
    hf_flow *flow = run->flow;
    hf_wait wait;
    *ret_is_end = false;
    HF_TRY(hf_may_wait(self, NEXT.verb));
    hf_sync_point(self);
    hf_spin_lock(&flow->lock);
    hf_assert(collector->count <= collector->capacity && hf_list_is_empty(&collector->receiver));
    if (collector->count > 0) {
        hf_claimed claimed = {NULL, NULL};
        if (flow->value_len > 0) {
            memcpy(ret_value, hf_collector_slot(collector, collector->head), flow->value_len);
        }
        collector->head = (collector->head + 1) % collector->capacity;
        collector->count--;
        hf_flow_pump(run, &claimed);
        hf_spin_unlock(&flow->lock);
        hf_claimed_wake(&claimed, HF_OK);
        return HF_OK;
    }
    bool has_ended = run->ended;
    if (!has_ended) {
        hf_wait_init(&wait, self, &NEXT, flow, flow->name);
        wait.value = ret_value;
        hf_list_push_back(&collector->receiver, &wait.node);
    }
    hf_spin_unlock(&flow->lock);
    hf_status status = has_ended ? HF_ERR_CLOSED : hf_park(self, &wait, deadline);
    return status == HF_ERR_CLOSED ? end_of(self, run, ret_is_end) : status;
}

static hf_status check_owner(hf_fiber *self, const hf_collector *collector, const char *verb)
{
    if (HF_UNLIKELY(collector == NULL || !hf_holder_is(collector->owner, self))) {
        return hf_refuse_at(self, HF_ERR_MISUSE, verb, "a collector belongs to the fiber that opened it");
    }
    return HF_OK;
}

hf_status hf_collector_next_with(hf_collector *collector, void *ret_value, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_collector_next);
    HF_VERB_ENTER(self, hf_collector_next, collector != NULL ? collector->run->flow->rt : NULL);
    hf_status status = check_owner(self, collector, NEXT.verb);
    if (status == HF_OK && ret_value == NULL && collector->run->flow->value_len > 0) {
        status = hf_refuse_at(self, HF_ERR_MISUSE, NEXT.verb, "a place for the value is needed");
    }
    status = status == HF_OK ? hf_may_wait_for(self, NEXT.verb, options) : status;
    if (status == HF_OK) {
        bool is_end = false;
        hf_instant deadline = hf_wait_deadline(self, collector->run->flow->rt, options);
        status = next_on(self, collector, ret_value, deadline, &is_end);
    }
    HF_LEAVE(self, status);
}

uint64_t hf_collector_dropped(const hf_collector *collector)
{
    if (collector == NULL) {
        return 0;
    }
    hf_flow *flow = collector->run->flow;
    hf_fiber *self = hf_enter(flow->rt);
    if (self == NULL) {
        return 0;
    }
    hf_spin_lock(&flow->lock);
    uint64_t dropped = collector->dropped;
    hf_spin_unlock(&flow->lock);
    hf_leave(self);
    return dropped;
}

/* ---- Close ------------------------------------------------------------------------------------------------------- */

hf_status hf_collector_close(hf_collector *collector)
{
    if (collector == NULL) {
        return HF_OK;
    }
    hf_flow *flow = collector->run->flow;
    HF_VERB_ENTER(self, hf_collector_close, flow->rt);
    hf_status status = check_owner(self, collector, "hf_collector_close");
    if (status == HF_OK && collector->scope != NULL && self->scope != collector->scope) {
        hf_log(flow->rt, HF_LOG_ERROR, "misuse", "verb=hf_collector_close flow=%s message=not_in_reverse_order",
               flow->name);
        status =
            hf_refuse(self, HF_ERR_MISUSE, "scopes and collectors of cold flows close in the reverse order of opening");
    }
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    hf_claimed claimed = {NULL, NULL};
    hf_sync_point(self);
    hf_spin_lock(&flow->lock);
    leave_run(collector, &claimed);
    hf_spin_unlock(&flow->lock);
    hf_claimed_wake(&claimed, HF_OK);
    hf_leave(self);
    (void)hf_scope_close(collector->scope); /* joins the source of a cold flow */
    self = hf_enter(flow->rt);
    hf_assert(self != NULL);
    status = hf_disown(self, &collector->owned, "hf_collector_close", flow->name);
    hf_assert(status == HF_OK); /* the caller is the owner */
    release(flow, collector);
    HF_LEAVE(self, HF_OK);
}

/* ---- Collect ----------------------------------------------------------------------------------------------------- */

static bool is_over(const hf_fiber *self, const hf_runtime *rt, hf_instant deadline)
{
    return deadline.ns != INT64_MAX && (self->crew != NULL ? hf_crew_now(self->crew) : hf_rt_now(rt)).ns >= deadline.ns;
}

/* The deadline is that of the whole collection: it also passes when there is always a value and never a wait. */
static hf_status next_by(hf_collector *collector, void *value, hf_instant deadline, bool *ret_is_end)
{
    hf_fiber *self = hf_enter(collector->run->flow->rt);
    if (self == NULL) {
        return hf_forked();
    }
    bool was_over = is_over(self, collector->run->flow->rt, deadline);
    hf_status status = next_on(self, collector, value, deadline, ret_is_end);
    if (HF_UNLIKELY(was_over && status == HF_OK)) {
        status = HF_ERR_TIMEOUT;
        hf_self_note(self, status, "hf_flow_collect");
    }
    HF_LEAVE(self, status);
}

static hf_status collect_into(hf_collector *collector, void *value, hf_flow_item item, void *ctx, hf_instant deadline)
{
    for (;;) {
        bool is_end = false;
        hf_status status = next_by(collector, value, deadline, &is_end);
        if (is_end) {
            return HF_OK;
        }
        HF_TRY(status);
        HF_TRY(item(ctx, value));
    }
}

/* Memory for a value that is too large for the stack. */
typedef struct room {
    hf_owned_object owned;
    hf_runtime *rt; /* the flow may be gone when the collector is */
    size_t len;     /* bytes of the struct and the value */
    _Alignas(max_align_t) unsigned char value[];
} room;

static void drop_room(hf_owned_object *owned)
{
    room *large = HF_CONTAINER(owned, room, owned);
    hf_rt_free(large->rt, large, large->len);
}

/* NULL: no memory. */
static room *make_room(hf_fiber *self, hf_runtime *rt, size_t value_len)
{
    room *large = hf_rt_alloc(rt, sizeof *large + value_len);
    if (large != NULL) {
        large->rt = rt;
        large->len = sizeof *large + value_len;
        hf_own(self, &large->owned, drop_room);
    }
    return large;
}

static void free_room(room *large)
{
    if (large != NULL) {
        hf_fiber *self = hf_enter(large->rt);
        hf_assert(self != NULL);
        (void)hf_disown(self, &large->owned, "hf_flow_collect", "");
        drop_room(&large->owned);
        hf_leave(self);
    }
}

hf_status hf_flow_collect_with(hf_flow *flow, hf_flow_item item, void *ctx, const hf_flow_collect_options *options)
{
    HF_OPTIONS(hf_flow_collect_options, options, hf_flow_collect);
    HF_VERB_ENTER(self, hf_flow_collect, flow != NULL ? flow->rt : NULL);
    if (flow == NULL || item == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_flow_collect needs a flow and a function for its values"));
    }
    if (self->is_evicted) {
        HF_LEAVE(self, hf_not_evicted(self, "hf_flow_collect"));
    }
    if (HF_UNLIKELY(self->crew != NULL) &&
        hf_crew_check_span(self, "hf_flow_collect", ".timeout", options->timeout) != HF_OK) {
        HF_LEAVE(self, HF_ERR_INVALID);
    }
    _Alignas(max_align_t) unsigned char small[ON_STACK];
    bool is_large = flow->value_len > sizeof small;
    room *large = is_large ? make_room(self, flow->rt, flow->value_len) : NULL;
    if (is_large && large == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_NOMEM, "no memory for a value of flow '%s'", flow->name));
    }
    hf_instant deadline = hf_self_deadline(self, flow->rt, options->timeout);
    hf_leave(self);
    hf_collector *collector = NULL;
    hf_status status = hf_collector_open(flow, &collector, .mode = options->mode, .capacity = options->capacity);
    if (status == HF_OK) {
        status = collect_into(collector, large != NULL ? large->value : small, item, ctx, deadline);
        (void)hf_collector_close(collector);
    }
    free_room(large);
    return status;
}
