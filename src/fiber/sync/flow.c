/* Flows and emitting. See flow.h for the rules. */
#include "fiber/sync/flow.h"
#include "fiber/verbs.h"

#include <string.h>

/* Number of values after which an emitter that never has to wait lets other fibers run. Otherwise a source that
 * conflates would starve its collectors on the same thread. */
enum { STREAK_MAX = 100 };

static void flow_unref(hf_flow *flow)
{
    if (atomic_fetch_sub_explicit(&flow->refs, 1, memory_order_acq_rel) == 1) {
        hf_assert(hf_list_is_empty(&flow->runs));
        hf_rt_free(flow->rt, flow, sizeof *flow);
    }
}

void hf_flow_run_unref(hf_emitter *run)
{
    if (run == NULL || atomic_fetch_sub_explicit(&run->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    hf_assert(hf_list_is_empty(&run->collectors) && !hf_node_is_linked(&run->runs));
    hf_flow *flow = run->flow;
    hf_box_unref(run->failure);
    hf_rt_free(flow->rt, run, sizeof *run);
    flow_unref(flow);
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

/* Under the lock. Waiters that the caller must wake with HF_ERR_CLOSED are added to `claimed`. */
static void end_run(hf_emitter *run, hf_status status, hf_failure_box *failure, hf_claimed *claimed)
{
    hf_assert(!run->ended); /* fiber-V3 */
    hf_flow *flow = run->flow;
    run->ended = true;
    run->status = status;
    run->failure = failure;
    if (hf_node_is_linked(&run->runs)) {
        hf_list_remove(&run->runs);
    }
    if (flow->current == run && !hf_flow_is_hot(flow)) {
        flow->current = NULL;
    }
    HF_LIST_EACH(node, &run->collectors)
    {
        hf_claimed_add_all(claimed, &HF_CONTAINER(node, hf_collector, node)->receiver);
    }
    hf_claimed_add_all(claimed, &run->emitters);
}

static hf_status source_run(hf_work *work)
{
    hf_emitter *run = HF_CONTAINER(work, hf_emitter, work);
    return run->flow->source(run->flow->arg, run);
}

static bool source_end(hf_work *work, hf_status status, hf_failure_box *failure)
{
    hf_emitter *run = HF_CONTAINER(work, hf_emitter, work);
    hf_claimed claimed = {NULL, NULL};
    hf_spin_lock(&run->flow->lock);
    bool is_told = work->abandoned || !hf_list_is_empty(&run->collectors);
    bool is_first = !run->ended;
    if (is_first) {
        end_run(run, status == HF_OK ? HF_ERR_CLOSED : status, failure, &claimed);
    }
    hf_spin_unlock(&run->flow->lock);
    hf_claimed_wake(&claimed, HF_ERR_CLOSED);
    if (!is_first) { /* hf_flow_free was faster */
        hf_box_unref(failure);
    }
    return is_told;
}

static void source_unref(hf_work *work)
{
    hf_flow_run_unref(HF_CONTAINER(work, hf_emitter, work));
}

static const hf_work_kind SOURCE = {source_run, source_end, source_unref};

hf_emitter *hf_flow_run_new(hf_flow *flow)
{
    hf_emitter *run = hf_rt_alloc(flow->rt, sizeof *run);
    if (run == NULL) {
        return NULL;
    }
    run->flow = flow;
    run->work.kind = &SOURCE;
    run->work.lock = &flow->lock;
    run->work.name = flow->name;
    run->work.scope = flow->share;
    hf_list_init(&run->collectors);
    hf_list_init(&run->emitters);
    atomic_store_explicit(&run->refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&flow->refs, 1, memory_order_relaxed);
    return run;
}

/* ---- Making and ending ------------------------------------------------------------------------------------------- */

static hf_flow *make(hf_fiber *self, size_t value_len, const hf_flow_options *options, hf_status *ret_status)
{
    hf_runtime *rt = NULL;
    hf_flow *flow = hf_object_new(self, "hf_flow_new", options->runtime, sizeof *flow, &rt, ret_status);
    if (flow == NULL) {
        return NULL;
    }
    flow->rt = rt;
    flow->name = options->name != NULL ? options->name : "flow";
    flow->value_len = value_len;
    flow->source = options->source;
    flow->arg = options->arg;
    flow->share = options->share;
    hf_list_init(&flow->runs);
    atomic_store_explicit(&flow->refs, 1, memory_order_relaxed);
    if (!hf_flow_is_hot(flow)) {
        return flow;
    }
    flow->current = hf_flow_run_new(flow);
    if (flow->current == NULL) {
        *ret_status = hf_refuse_at(self, HF_ERR_NOMEM, "hf_flow_new", "no memory for a flow");
        flow_unref(flow);
        return NULL;
    }
    hf_list_push_back(&flow->runs, &flow->current->runs);
    return flow;
}

/* Ends all runs that are under way and cancels their sources. */
static void end_all(hf_flow *flow)
{
    hf_claimed claimed = {NULL, NULL};
    hf_spin_lock(&flow->lock);
    HF_LIST_EACH(node, &flow->runs)
    {
        hf_emitter *run = HF_CONTAINER(node, hf_emitter, runs);
        end_run(run, HF_ERR_CLOSED, NULL, &claimed);
        if (!hf_flow_is_hot(flow)) {
            hf_work_abandon(&run->work);
        }
    }
    hf_spin_unlock(&flow->lock);
    hf_claimed_wake(&claimed, HF_ERR_CLOSED);
}

static void release(hf_flow *flow)
{
    end_all(flow);
    if (hf_flow_is_hot(flow)) {
        hf_flow_run_unref(flow->current);
    }
    flow_unref(flow); /* collectors that are still open keep the rest */
}

static void drop_flow(hf_owned_object *owned)
{
    release(HF_CONTAINER(owned, hf_flow, owned));
}

hf_status hf_flow_new_with(size_t value_len, hf_flow **ret_flow, const hf_flow_options *options)
{
    HF_OPTIONS(hf_flow_options, options, hf_flow_new);
    HF_VERB_ENTER(self, hf_flow_new, options->runtime);
    if (ret_flow == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_flow_new needs a place for the flow"));
    }
    if (value_len > HF_CHAN_VALUE_LEN_MAX) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_INVALID, "a flow carries values of up to 1 MiB"));
    }
    if (options->share != NULL && (options->source == NULL || options->share->is_shield)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "a shared flow needs a source, and an open scope to run it in"));
    }
    hf_status status = HF_OK;
    hf_flow *flow = make(self, value_len, options, &status);
    if (flow != NULL) {
        hf_own(self, &flow->owned, drop_flow);
        *ret_flow = flow;
    }
    HF_LEAVE(self, status);
}

hf_status hf_flow_free(hf_flow *flow)
{
    if (flow == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_flow_free, flow->rt);
    hf_status status = hf_disown(self, &flow->owned, "hf_flow_free", flow->name);
    if (status == HF_OK) {
        release(flow);
    }
    HF_LEAVE(self, status);
}

hf_status hf_flow_close(hf_flow *flow)
{
    HF_VERB_ENTER(self, hf_flow_close, flow != NULL ? flow->rt : NULL);
    if (flow == NULL || !hf_flow_is_hot(flow)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "only a hot flow is closed: the others end with their source"));
    }
    end_all(flow);
    HF_LEAVE(self, HF_OK);
}

/* ---- Emitting ---------------------------------------------------------------------------------------------------- */

static void copy_value(const hf_flow *flow, void *to, const void *from)
{
    if (flow->value_len > 0) {
        memcpy(to, from, flow->value_len);
    }
}

static bool is_blocked(const hf_emitter *run)
{
    HF_LIST_EACH(node, &run->collectors)
    {
        const hf_collector *collector = HF_CONTAINER(node, hf_collector, node);
        if (collector->mode == HF_FLOW_BUFFER && collector->count == collector->capacity) {
            return true;
        }
    }
    return false;
}

/* To every collector at once (fiber-V1). */
static void deliver(hf_emitter *run, const void *value, hf_claimed *claimed)
{
    hf_assert(!run->ended); /* fiber-V3 */
    HF_LIST_EACH(node, &run->collectors)
    {
        hf_collector *collector = HF_CONTAINER(node, hf_collector, node);
        hf_node *waiting = hf_list_first(&collector->receiver);
        if (waiting != NULL) {
            hf_wait *receiver = HF_CONTAINER(waiting, hf_wait, node);
            hf_assert(collector->count == 0); /* or the values would be out of order */
            copy_value(run->flow, receiver->value, value);
            hf_claimed_add(claimed, receiver);
            continue;
        }
        if (collector->count == collector->capacity) {
            hf_assert(collector->mode != HF_FLOW_BUFFER); /* fiber-V1, fiber-V2 */
            collector->head = (collector->head + 1) % collector->capacity;
            collector->count--;
            collector->dropped++;
        }
        copy_value(run->flow, hf_collector_slot(collector, collector->head + collector->count), value);
        collector->count++;
    }
}

void hf_flow_pump(hf_emitter *run, hf_claimed *claimed)
{
    while (!hf_list_is_empty(&run->emitters) && !is_blocked(run)) {
        hf_wait *emitter = HF_CONTAINER(hf_list_first(&run->emitters), hf_wait, node);
        deliver(run, emitter->value, claimed);
        hf_claimed_add(claimed, emitter);
    }
}

static const hf_wait_kind EMIT = {"hf_emit", hf_wait_abort_linked};

static hf_status refusal(hf_fiber *self, const hf_emitter *run)
{
    hf_status status = run->work.abandoned ? HF_ERR_CANCELED : HF_ERR_CLOSED;
    hf_self_note(self, status, EMIT.verb);
    return status;
}

static hf_status emit_slow(hf_fiber *self, hf_emitter *run, hf_wait *wait)
{
    hf_flow *flow = run->flow;
    hf_status status = hf_park(self, wait, HF_INSTANT_NEVER);
    if (status == HF_ERR_CLOSED) {
        hf_self_note(self, status, EMIT.verb);
    }
    flow_unref(flow);
    return status;
}

static hf_status emit(hf_fiber *self, hf_emitter *run, const void *value)
{
    hf_flow *flow = run->flow;
    hf_claimed claimed = {NULL, NULL};
    hf_wait wait;
    HF_TRY(hf_may_wait(self, EMIT.verb));
    hf_sync_point(self);
    hf_spin_lock(&flow->lock);
    if (HF_UNLIKELY(run->ended || run->work.abandoned)) {
        hf_status status = refusal(self, run);
        hf_spin_unlock(&flow->lock);
        return status;
    }
    if (!hf_list_is_empty(&run->emitters) || is_blocked(run)) {
        hf_wait_init(&wait, self, &EMIT, flow, flow->name);
        wait.value = (void *)(uintptr_t)value;
        hf_list_push_back(&run->emitters, &wait.node);
        run->streak = 0;
        atomic_fetch_add_explicit(&flow->refs, 1, memory_order_relaxed); /* a hot flow may be freed meanwhile */
        hf_spin_unlock(&flow->lock);
        return emit_slow(self, run, &wait);
    }
    deliver(run, value, &claimed);
    bool is_long = ++run->streak >= STREAK_MAX;
    run->streak = is_long ? 0 : run->streak;
    hf_spin_unlock(&flow->lock);
    hf_claimed_wake(&claimed, HF_OK);
    if (HF_UNLIKELY(is_long && self->kind == HF_FIBER_PLAIN)) {
        hf_yield_in(self);
    }
    return HF_OK;
}

void hf_flow_tell(hf_flow *flow, const void *value)
{
    hf_assert(hf_flow_is_hot(flow));
    hf_emitter *run = flow->current;
    hf_claimed claimed = {NULL, NULL};
    hf_fiber *self = hf_enter(flow->rt);
    if (self == NULL) {
        return;
    }
    hf_sync_point(self);
    hf_spin_lock(&flow->lock);
    if (!run->ended) {
        deliver(run, value, &claimed); /* which asserts that no collector is full and has HF_FLOW_BUFFER */
    }
    hf_spin_unlock(&flow->lock);
    hf_claimed_wake(&claimed, HF_OK);
    hf_leave(self);
}

hf_status hf_emit(hf_emitter *emitter, const void *value)
{
    HF_VERB_ENTER(self, hf_emit, emitter != NULL ? emitter->flow->rt : NULL);
    if (HF_UNLIKELY(emitter == NULL || (value == NULL && emitter->flow->value_len > 0))) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "an emitter and a value are needed"));
    }
    HF_LEAVE(self, emit(self, emitter, value));
}

hf_status hf_flow_emit(hf_flow *flow, const void *value)
{
    HF_VERB_ENTER(self, hf_flow_emit, flow != NULL ? flow->rt : NULL);
    if (HF_UNLIKELY(flow == NULL || !hf_flow_is_hot(flow) || (value == NULL && flow->value_len > 0))) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_MISUSE, "hf_flow_emit needs a hot flow and a value; a source uses hf_emit"));
    }
    HF_LEAVE(self, emit(self, flow->current, value));
}
