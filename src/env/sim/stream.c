/* Reading, writing and closing simulated connections and pipes, with the faults that the options ask for.
 *
 * A short read or write leaves the descriptor ready, and another edge follows: a caller that takes a short count for
 * the end of the data, as it may with real stream sockets, must not wait for ever. For the same reason a write that was
 * refused without need (full_permille) gets an edge a little later. */
#include "env/sim/sim_private.h"

#include <stdlib.h>
#include <string.h>

/* The stream behind fd, ready for use: connected, or the failure. */
static hf_status stream_of(hf_sim *sim, hf_op *op, int fd, hf_sim_desc **ret_desc)
{
    hf_sim_desc *desc = hf_sim_desc_find(sim, fd);
    if (desc == NULL) {
        return hf_fail(op, HF_ERR_IO, "descriptor %d is not open in this simulation", fd);
    }
    if (desc->kind != HF_SIM_STREAM) {
        return hf_fail(op, HF_ERR_INVALID, "descriptor %d is not a stream", fd);
    }
    hf_sim_link *link = desc->as.stream.link;
    hf_assert(link != NULL && (link->state != HF_SIM_BROKEN || link->error != HF_OK));
    if (link->state == HF_SIM_CONNECTED && !link->is_pipe && hf_rng_permille(&sim->rng, sim->options.reset_permille)) {
        hf_sim_link_break(sim, link, HF_ERR_RESET);
    }
    switch (link->state) {
    case HF_SIM_CONNECTING:
        return hf_fail(op, HF_ERR_AGAIN, "descriptor %d is still connecting", fd);
    case HF_SIM_BROKEN:
        return hf_fail(op, link->error, "descriptor %d: %s", fd, hf_status_text(link->error));
    case HF_SIM_CONNECTED:
        break;
    }
    *ret_desc = desc;
    return HF_OK;
}

static size_t shortened(hf_sim *sim, size_t len)
{
    if (len > 1 && hf_rng_permille(&sim->rng, sim->options.short_io_permille)) {
        return 1 + (size_t)hf_rng_below(&sim->rng, len - 1);
    }
    return len;
}

/* Copies between the ring and plain memory; the part that wraps goes separately. */
static void ring_get(const hf_sim *sim, const hf_sim_flow *flow, uint8_t *to, size_t len)
{
    hf_assert(flow->bytes != NULL && len <= flow->delivered - flow->consumed);
    size_t start = (size_t)(flow->consumed % sim->options.buffer_len);
    size_t first = sim->options.buffer_len - start < len ? sim->options.buffer_len - start : len;
    memcpy(to, flow->bytes + start, first);
    memcpy(to + first, flow->bytes, len - first);
}

static void ring_put(const hf_sim *sim, hf_sim_flow *flow, const uint8_t *from, size_t len)
{
    hf_assert(flow->bytes != NULL && flow->written - flow->consumed + len <= sim->options.buffer_len);
    size_t start = (size_t)(flow->written % sim->options.buffer_len);
    size_t first = sim->options.buffer_len - start < len ? sim->options.buffer_len - start : len;
    memcpy(flow->bytes + start, from, first);
    memcpy(flow->bytes, from + first, len - first);
}

static hf_status read_some(hf_sim *sim, hf_op *op, hf_sim_desc *desc, void *buf, size_t len, size_t *ret_len)
{
    hf_assert(desc != NULL && desc->kind == HF_SIM_STREAM);
    hf_sim_link *link = desc->as.stream.link;
    int side = desc->as.stream.side;
    hf_sim_flow *flow = &link->flow[1 - side];
    if (link->is_pipe && side == 0) {
        return hf_fail(op, HF_ERR_INVALID, "descriptor %d is the writing end of a pipe", desc->fd);
    }
    hf_assert(flow->consumed <= flow->delivered && flow->delivered <= flow->written);
    size_t available = (size_t)(flow->delivered - flow->consumed);
    if (available == 0 && len > 0) {
        if (flow->is_ended) {
            *ret_len = 0;
            return HF_OK;
        }
        return hf_fail(op, HF_ERR_AGAIN, "nothing to read from descriptor %d yet", desc->fd);
    }
    size_t wanted = available < len ? available : len;
    size_t count = shortened(sim, wanted);
    if (count > 0) {
        ring_get(sim, flow, (uint8_t *)buf, count);
    }
    flow->consumed += count;
    if (count < wanted) {
        hf_sim_desc_notify(sim, desc, HF_READABLE);
    }
    if (count > 0 && flow->is_starved) {
        flow->is_starved = false;
        hf_sim_desc_notify(sim, link->end[1 - side], HF_WRITABLE);
    }
    *ret_len = count;
    return HF_OK;
}

static hf_status write_some(hf_sim *sim, hf_op *op, hf_sim_desc *desc, const void *buf, size_t len, size_t *ret_len)
{
    hf_assert(desc != NULL && desc->kind == HF_SIM_STREAM);
    hf_sim_link *link = desc->as.stream.link;
    int side = desc->as.stream.side;
    hf_sim_flow *flow = &link->flow[side];
    if (link->is_pipe && side == 1) {
        return hf_fail(op, HF_ERR_INVALID, "descriptor %d is the reading end of a pipe", desc->fd);
    }
    if (flow->is_finished) {
        return hf_fail(op, HF_ERR_RESET, "descriptor %d was shut down for writing", desc->fd);
    }
    if (!hf_sim_delivery_reserve(sim, 1)) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a simulated write");
    }
    hf_assert(flow->written - flow->consumed <= sim->options.buffer_len);
    size_t room = sim->options.buffer_len - (size_t)(flow->written - flow->consumed);
    bool is_refused = hf_rng_permille(&sim->rng, sim->options.full_permille);
    if (len > 0 && (room == 0 || is_refused)) {
        flow->is_starved = true;
        if (room > 0) {
            hf_sim_delivery_send(sim, HF_SIM_DELIVER_ROOM, link, side, sim->now + 1 + hf_sim_latency(sim));
        }
        return hf_fail(op, HF_ERR_AGAIN, "descriptor %d takes no more bytes now", desc->fd);
    }
    if (flow->bytes == NULL && (flow->bytes = (uint8_t *)malloc(sim->options.buffer_len)) == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a simulated buffer");
    }
    size_t wanted = room < len ? room : len;
    size_t count = shortened(sim, wanted);
    if (count > 0) {
        ring_put(sim, flow, (const uint8_t *)buf, count);
        flow->written += count;
        int64_t at = sim->now + (link->is_pipe ? 0 : hf_sim_latency(sim));
        flow->last_at = at > flow->last_at ? at : flow->last_at;
        hf_sim_delivery_send(sim, HF_SIM_DELIVER_BYTES, link, side, flow->last_at);
    }
    if (count < wanted) {
        hf_sim_desc_notify(sim, desc, HF_WRITABLE);
    } else if (count < len) {
        flow->is_starved = true;
    }
    *ret_len = count;
    return HF_OK;
}

hf_status hf_sim_read(hf_env *env, hf_op *op, int fd, void *buf, size_t len, size_t *ret_len)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = NULL;
    hf_sim_deliver(sim);
    hf_status status = stream_of(sim, op, fd, &desc);
    if (status == HF_OK) {
        status = read_some(sim, op, desc, buf, len, ret_len);
    }
    hf_sim_trace(sim, HF_SIM_TRACE_NET, status == HF_OK ? (uint64_t)*ret_len : UINT64_C(1) << 48 | (uint64_t)status);
    return status;
}

hf_status hf_sim_write(hf_env *env, hf_op *op, int fd, const void *buf, size_t len, size_t *ret_len)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = NULL;
    hf_sim_deliver(sim);
    hf_status status = stream_of(sim, op, fd, &desc);
    if (status == HF_OK) {
        status = write_some(sim, op, desc, buf, len, ret_len);
    }
    hf_sim_trace(sim, HF_SIM_TRACE_NET, status == HF_OK ? (uint64_t)*ret_len : UINT64_C(2) << 48 | (uint64_t)status);
    hf_sim_deliver(sim);
    return status;
}

/* The end follows the last bytes. */
static void finish(hf_sim *sim, hf_sim_link *link, int side)
{
    hf_sim_flow *flow = &link->flow[side];
    if (flow->is_finished) {
        return;
    }
    flow->is_finished = true;
    if (!hf_sim_delivery_reserve(sim, 1)) {
        hf_sim_link_break(sim, link, HF_ERR_RESET); /* no memory for the delivery of the end */
        return;
    }
    int64_t at = sim->now + (link->is_pipe ? 0 : hf_sim_latency(sim));
    flow->last_at = at > flow->last_at ? at : flow->last_at;
    hf_sim_delivery_send(sim, HF_SIM_DELIVER_END, link, side, flow->last_at);
}

hf_status hf_sim_shutdown(hf_env *env, hf_op *op, int fd)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = NULL;
    hf_sim_deliver(sim);
    HF_TRY(stream_of(sim, op, fd, &desc));
    hf_assert(desc != NULL);
    if (desc->as.stream.link->is_pipe) {
        return hf_fail(op, HF_ERR_UNSUPPORTED, "descriptor %d is not a socket: close it to end the stream", fd);
    }
    finish(sim, desc->as.stream.link, desc->as.stream.side);
    hf_sim_deliver(sim);
    return HF_OK;
}

/* Closing with unread bytes resets the connection, as TCP and unix sockets do; else the other side reads the end. */
void hf_sim_stream_close(hf_sim *sim, hf_sim_desc *desc)
{
    hf_sim_link *link = desc->as.stream.link;
    int side = desc->as.stream.side;
    const hf_sim_flow *in = &link->flow[1 - side];
    link->end[side] = NULL;
    if (link->state == HF_SIM_CONNECTED) {
        if (link->is_pipe && side == 1) {
            hf_sim_link_break(sim, link, HF_ERR_RESET);
        } else if (in->delivered > in->consumed && hf_sim_delivery_reserve(sim, 1)) {
            int64_t at = sim->now + hf_sim_latency(sim);
            at = at > link->flow[side].last_at ? at : link->flow[side].last_at;
            link->flow[side].is_finished = true;
            hf_sim_delivery_send(sim, HF_SIM_DELIVER_RESET, link, side, at);
        } else {
            finish(sim, link, side);
        }
    }
    hf_sim_link_unref(link);
}

void hf_sim_close(hf_env *env, int fd)
{
    if (fd < 0) {
        return;
    }
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = hf_sim_desc_find(sim, fd);
    hf_assert(desc != NULL); /* on a real system a second close could close another caller's descriptor */
    switch (desc->kind) {
    case HF_SIM_STREAM:
        hf_sim_stream_close(sim, desc);
        break;
    case HF_SIM_LISTENER:
        hf_sim_listener_close(sim, desc);
        break;
    case HF_SIM_SIGNALS:
    case HF_SIM_FILE:
        break;
    }
    hf_sim_desc_free(sim, desc);
    hf_sim_deliver(sim);
}

hf_status hf_sim_pipe(hf_env *env, hf_op *op, int *ret_read_fd, int *ret_write_fd)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *write_end = NULL;
    hf_sim_desc *read_end = NULL;
    HF_TRY(hf_sim_desc_new(sim, op, HF_SIM_STREAM, &write_end));
    hf_status status = hf_sim_desc_new(sim, op, HF_SIM_STREAM, &read_end);
    hf_sim_link *link = status == HF_OK ? hf_sim_link_new(true) : NULL;
    if (link == NULL) {
        if (read_end != NULL) {
            hf_sim_desc_free(sim, read_end);
        }
        hf_sim_desc_free(sim, write_end);
        return status != HF_OK ? status : hf_fail(op, HF_ERR_NOMEM, "no memory for a simulated pipe");
    }
    link->refs = 2;
    link->end[0] = write_end;
    link->end[1] = read_end;
    write_end->as.stream.link = read_end->as.stream.link = link;
    read_end->as.stream.side = 1;
    *ret_read_fd = read_end->fd;
    *ret_write_fd = write_end->fd;
    return HF_OK;
}
