/* Messages under way in the simulated network: bytes, ends of streams, resets, connect requests.
 *
 * Every write becomes one delivery, due after a latency drawn by the seed, but never before what was sent earlier in
 * the same direction. A delivery of bytes carries no bytes: they lie in the flow's ring from the moment they are
 * written, and the delivery moves the mark up to which the reader sees them:
 *
 *        consumed        delivered          written        consumed + buffer_len
 *   ---------|###############|..................|-----------------|
 *             can be read       under way          room to write
 *
 * The heap is ordered by time, then by age, so equal times keep the order in which things were sent. */
#include "env/sim/sim_private.h"

#include <stdlib.h>

enum {
    HEAP_FIRST = 32,
    KNOCKS_MAX = 6 /* then a connect to a listener that does not accept times out */
};

int64_t hf_sim_latency(hf_sim *sim)
{
    int64_t max = sim->options.latency_max.ns;
    return max > 0 ? (int64_t)hf_rng_below(&sim->rng, (uint64_t)max + 1) : 0;
}

int64_t hf_sim_delivery_next(const hf_sim *sim)
{
    return sim->heap_count > 0 ? sim->heap[0].at : INT64_MAX;
}

bool hf_sim_delivery_reserve(hf_sim *sim, uint32_t count)
{
    if (sim->heap_count + count <= sim->heap_capacity) {
        return true;
    }
    uint32_t capacity = sim->heap_capacity == 0 ? HEAP_FIRST : sim->heap_capacity * 2;
    hf_sim_delivery *heap = (hf_sim_delivery *)realloc(sim->heap, capacity * sizeof *heap);
    if (heap == NULL) {
        return false;
    }
    sim->heap = heap;
    sim->heap_capacity = capacity;
    return sim->heap_count + count <= capacity;
}

static bool is_before(const hf_sim_delivery *a, const hf_sim_delivery *b)
{
    return a->at != b->at ? a->at < b->at : a->serial < b->serial;
}

void hf_sim_delivery_send(hf_sim *sim, hf_sim_delivery_kind kind, hf_sim_link *link, int side, int64_t at)
{
    hf_assert(sim->heap_count < sim->heap_capacity && at >= sim->now);
    hf_sim_delivery delivery = {
        .at = at,
        .serial = ++sim->delivery_serial,
        .link = link,
        .upto = link->flow[side].written,
        .kind = kind,
        .side = side,
    };
    link->refs++;
    uint32_t idx = sim->heap_count++;
    while (idx > 0 && is_before(&delivery, &sim->heap[(idx - 1) / 2])) {
        sim->heap[idx] = sim->heap[(idx - 1) / 2];
        idx = (idx - 1) / 2;
    }
    sim->heap[idx] = delivery;
}

static hf_sim_delivery heap_pop(hf_sim *sim)
{
    hf_assert(sim->heap_count > 0);
    hf_sim_delivery first = sim->heap[0];
    hf_sim_delivery last = sim->heap[--sim->heap_count];
    uint32_t idx = 0;
    for (;;) {
        uint32_t child = 2 * idx + 1;
        if (child >= sim->heap_count) {
            break;
        }
        if (child + 1 < sim->heap_count && is_before(&sim->heap[child + 1], &sim->heap[child])) {
            child++;
        }
        if (!is_before(&sim->heap[child], &last)) {
            break;
        }
        sim->heap[idx] = sim->heap[child];
        idx = child;
    }
    sim->heap[idx] = last;
    return first;
}

/* ---- connections ---- */

hf_sim_link *hf_sim_link_new(bool is_pipe)
{
    hf_sim_link *link = (hf_sim_link *)calloc(1, sizeof *link);
    if (link != NULL) {
        link->is_pipe = is_pipe;
        link->state = is_pipe ? HF_SIM_CONNECTED : HF_SIM_CONNECTING;
        link->refs = 1;
    }
    return link;
}

void hf_sim_link_unref(hf_sim_link *link)
{
    hf_assert(link->refs > 0);
    if (--link->refs == 0) {
        free(link->flow[0].bytes);
        free(link->flow[1].bytes);
        free(link);
    }
}

/* Both sides get `error` from here on. Messages under way are lost. */
void hf_sim_link_break(hf_sim *sim, hf_sim_link *link, hf_status error)
{
    if (link->state == HF_SIM_BROKEN) {
        return;
    }
    link->state = HF_SIM_BROKEN;
    link->error = error;
    hf_sim_trace(sim, HF_SIM_TRACE_NET, (uint64_t)error);
    hf_sim_desc_notify(sim, link->end[0], HF_SIM_HANGUP);
    hf_sim_desc_notify(sim, link->end[1], HF_SIM_HANGUP);
}

int hf_sim_stream_ready(hf_sim *sim, const hf_sim_desc *desc)
{
    const hf_sim_link *link = desc->as.stream.link;
    const hf_sim_flow *out = &link->flow[desc->as.stream.side];
    const hf_sim_flow *in = &link->flow[1 - desc->as.stream.side];
    if (link->state == HF_SIM_CONNECTING) {
        return 0;
    }
    if (link->state == HF_SIM_BROKEN || (out->is_finished && in->is_ended)) {
        return HF_READABLE | HF_WRITABLE | HF_SIM_HANGUP;
    }
    bool may_read = !link->is_pipe || desc->as.stream.side == 1;
    bool may_write = !link->is_pipe || desc->as.stream.side == 0;
    int ready = may_read && (in->delivered > in->consumed || in->is_ended) ? HF_READABLE : 0;
    if (may_write && out->written - out->consumed < sim->options.buffer_len) {
        ready |= HF_WRITABLE;
    }
    return ready;
}

/* A listener whose queue is full does not answer; the request is repeated, after a longer delay each time. */
static void deliver_connect(hf_sim *sim, hf_sim_link *link)
{
    if (link->end[0] == NULL) {
        return; /* closed while it was connecting */
    }
    hf_sim_desc *desc = hf_sim_listener_find(sim, &link->target);
    if (desc == NULL) {
        hf_sim_link_break(sim, link, HF_ERR_REFUSED);
        return;
    }
    if (desc->as.listener.queue_count >= desc->as.listener.backlog) {
        if (++link->tries >= KNOCKS_MAX) {
            hf_sim_link_break(sim, link, HF_ERR_TIMEOUT);
        } else { /* cannot fail: the slot of the current delivery is free */
            hf_sim_delivery_send(sim, HF_SIM_DELIVER_CONNECT, link, 0, sim->now + (INT64_C(500000000) << link->tries));
        }
        return;
    }
    hf_assert(link->state != HF_SIM_CONNECTED &&
              !hf_node_is_linked(&link->node)); /* one request at a time is under way */
    link->state = HF_SIM_CONNECTED;
    link->refs++;
    hf_list_push_back(&desc->as.listener.queue, &link->node);
    desc->as.listener.queue_count++;
    hf_sim_desc_notify(sim, desc, HF_READABLE);
    hf_sim_desc_notify(sim, link->end[0], HF_WRITABLE);
}

/* Whether the reading side of flow[side] closed its descriptor (and was not merely not accepted yet). */
static bool is_reader_gone(const hf_sim_link *link, int side)
{
    return link->end[1 - side] == NULL && !hf_node_is_linked(&link->node);
}

static void apply(hf_sim *sim, const hf_sim_delivery *delivery)
{
    hf_sim_link *link = delivery->link;
    hf_sim_flow *flow = &link->flow[delivery->side];
    if (link->state == HF_SIM_BROKEN) {
        return;
    }
    hf_sim_trace(sim, HF_SIM_TRACE_NET, ((uint64_t)delivery->kind << 40) | delivery->upto);
    switch (delivery->kind) {
    case HF_SIM_DELIVER_BYTES:
        if (is_reader_gone(link, delivery->side)) {
            hf_sim_link_break(sim, link, HF_ERR_RESET);
            break;
        }
        hf_assert(delivery->upto >= flow->delivered && delivery->upto <= flow->written);
        flow->delivered = delivery->upto;
        hf_sim_desc_notify(sim, link->end[1 - delivery->side], HF_READABLE);
        break;
    case HF_SIM_DELIVER_END:
        flow->is_ended = true;
        hf_sim_desc_notify(sim, link->end[1 - delivery->side], HF_READABLE);
        break;
    case HF_SIM_DELIVER_RESET:
        hf_sim_link_break(sim, link, HF_ERR_RESET);
        break;
    case HF_SIM_DELIVER_CONNECT:
        deliver_connect(sim, link);
        break;
    case HF_SIM_DELIVER_REFUSAL:
        hf_sim_link_break(sim, link, HF_ERR_REFUSED);
        break;
    case HF_SIM_DELIVER_ROOM:
        hf_sim_desc_notify(sim, link->end[delivery->side], HF_WRITABLE);
        break;
    }
}

void hf_sim_deliver(hf_sim *sim)
{
    while (sim->heap_count > 0 && sim->heap[0].at <= sim->now) {
        hf_sim_delivery delivery = heap_pop(sim);
        apply(sim, &delivery);
        hf_sim_link_unref(delivery.link);
    }
}

void hf_sim_deliveries_drop(hf_sim *sim)
{
    while (sim->heap_count > 0) {
        hf_sim_link_unref(sim->heap[--sim->heap_count].link);
    }
    free(sim->heap);
}
