/* Listeners of the simulated network, and connecting to them.
 *
 * A connect is a request that arrives at the listener after a latency (delivery.c). Only then is it accepted
 * into the queue, refused, or left to try again because the queue is full. If there is no listener, the connect fails
 * at once or later, by seed: callers must be ready for both. The path of a unix listener stays behind when it is
 * closed, like a socket's file. */
#include "env/sim/sim_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PORT_FIRST = 32768, /* first of the ports given out for port 0 and for connecting sides */
    PORT_COUNT = 28000,
    BACKLOG_MAX = 4096
};
_Static_assert(PORT_FIRST + PORT_COUNT <= 65536, "a port has 16 bits");

/* Whether the address `a` reaches the listener at `b`. */
static bool is_same_place(const hf_sim_address *a, const hf_sim_address *b)
{
    if (a->family != b->family || a->is_v6 != b->is_v6 || a->port != b->port) {
        return false;
    }
    return a->is_any || b->is_any || strcmp(a->host, b->host) == 0;
}

hf_sim_desc *hf_sim_listener_find(hf_sim *sim, const hf_sim_address *address)
{
    HF_LIST_EACH(node, &sim->listeners)
    {
        hf_sim_desc *desc = HF_CONTAINER(node, hf_sim_desc, as.listener.node);
        if (is_same_place(address, &desc->as.listener.address)) {
            return desc;
        }
    }
    return NULL;
}

static hf_sim_stale *stale_find(hf_sim *sim, const char *path)
{
    HF_LIST_EACH(node, &sim->stales)
    {
        hf_sim_stale *stale = HF_CONTAINER(node, hf_sim_stale, node);
        if (strcmp(stale->path, path) == 0) {
            return stale;
        }
    }
    return NULL;
}

void hf_sim_stale_remove(hf_sim *sim, const char *path)
{
    hf_sim_stale *stale = stale_find(sim, path);
    if (stale != NULL) {
        hf_list_remove(&stale->node);
        free(stale);
    }
}

/* Ports are given out in order, not by seed: programs do not depend on them. 0 = all are taken. */
static int port_take(hf_sim *sim, const hf_sim_address *address)
{
    for (int tries = 0; tries < PORT_COUNT; tries++) {
        hf_sim_address candidate = *address;
        candidate.port = PORT_FIRST + sim->port_next;
        sim->port_next = (sim->port_next + 1) % PORT_COUNT;
        hf_assert(candidate.port >= PORT_FIRST && candidate.port < PORT_FIRST + PORT_COUNT);
        if (hf_sim_listener_find(sim, &candidate) == NULL) {
            return candidate.port;
        }
    }
    return 0;
}

/* Checks that no listener has the address; picks a port. */
static hf_status place_take(hf_sim *sim, hf_op *op, const char *text, bool replace, hf_sim_address *address)
{
    if (address->family == HF_SIM_TCP && address->port == 0) {
        address->port = port_take(sim, address);
        return address->port != 0 ? HF_OK : hf_fail(op, HF_ERR_EXISTS, "no port is free for \"%s\"", text);
    }
    if (hf_sim_listener_find(sim, address) != NULL) {
        return hf_fail(op, HF_ERR_EXISTS, "another listener has \"%s\" already", text);
    }
    hf_sim_stale *stale = address->family == HF_SIM_UNIX ? stale_find(sim, address->host) : NULL;
    if (stale != NULL) {
        if (!replace) {
            return hf_fail(op, HF_ERR_EXISTS, "an old socket file exists at \"%s\"", text);
        }
        hf_sim_stale_remove(sim, address->host);
    }
    return HF_OK;
}

hf_status hf_sim_listen(hf_env *env, hf_op *op, const char *address, int backlog, bool replace, int *ret_fd,
                        char *ret_address)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_address place;
    hf_sim_desc *desc = NULL;
    HF_TRY(hf_sim_address_parse(op, address, &place));
    HF_TRY(hf_sim_desc_new(sim, op, HF_SIM_LISTENER, &desc));
    hf_status status = place_take(sim, op, address, replace, &place);
    if (status != HF_OK) {
        hf_sim_desc_free(sim, desc);
        return status;
    }
    desc->as.listener.address = place;
    desc->as.listener.backlog = backlog < 1 || backlog > BACKLOG_MAX ? BACKLOG_MAX : backlog;
    hf_list_init(&desc->as.listener.queue);
    hf_list_push_back(&sim->listeners, &desc->as.listener.node);
    hf_sim_trace(sim, HF_SIM_TRACE_NET, (UINT64_C(3) << 48) | (uint64_t)place.port);
    *ret_fd = desc->fd;
    if (ret_address != NULL) {
        hf_sim_address_format(&place, ret_address);
    }
    return HF_OK;
}

/* Connections that were not accepted yet are reset. */
void hf_sim_listener_close(hf_sim *sim, hf_sim_desc *desc)
{
    hf_list_remove(&desc->as.listener.node);
    for (hf_node *node = NULL; (node = hf_list_pop_front(&desc->as.listener.queue)) != NULL;) {
        hf_sim_link *link = HF_CONTAINER(node, hf_sim_link, node);
        hf_sim_link_break(sim, link, HF_ERR_RESET);
        hf_sim_link_unref(link);
    }
    if (desc->as.listener.address.family == HF_SIM_UNIX) {
        hf_sim_stale *stale = (hf_sim_stale *)calloc(1, sizeof *stale);
        if (stale != NULL) { /* without memory the file is simply gone */
            memcpy(stale->path, desc->as.listener.address.host, sizeof stale->path);
            hf_list_push_back(&sim->stales, &stale->node);
        }
    }
}

void hf_sim_stales_drop(hf_sim *sim)
{
    for (hf_node *node = NULL; (node = hf_list_pop_front(&sim->stales)) != NULL;) {
        free(HF_CONTAINER(node, hf_sim_stale, node));
    }
}

static void peer_format(const hf_sim_link *link, char *ret_peer)
{
    if (link->target.family == HF_SIM_UNIX) {
        (void)snprintf(ret_peer, HF_ADDRESS_LEN_MAX, "unix:");
        return;
    }
    hf_sim_address peer = link->target; /* all connections come from the host itself, so both have its address */
    peer.port = link->port;
    hf_sim_address_format(&peer, ret_peer);
}

hf_status hf_sim_accept(hf_env *env, hf_op *op, int fd, int *ret_fd, char *ret_peer)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_deliver(sim);
    hf_sim_desc *listener = hf_sim_desc_find(sim, fd);
    if (listener == NULL || listener->kind != HF_SIM_LISTENER) {
        return hf_fail(op, listener == NULL ? HF_ERR_IO : HF_ERR_INVALID, "descriptor %d is not a listener", fd);
    }
    hf_node *node = hf_list_first(&listener->as.listener.queue);
    if (node == NULL) {
        hf_sim_trace(sim, HF_SIM_TRACE_NET, UINT64_C(4) << 48);
        return hf_fail(op, HF_ERR_AGAIN, "nobody waits to be accepted");
    }
    hf_sim_desc *desc = NULL;
    HF_TRY(hf_sim_desc_new(sim, op, HF_SIM_STREAM, &desc)); /* nothing is lost: it stays queued */
    hf_sim_link *link = HF_CONTAINER(node, hf_sim_link, node);
    hf_list_remove(node);
    hf_assert(listener->as.listener.queue_count > 0 && link->end[1] == NULL);
    listener->as.listener.queue_count--;
    desc->as.stream.link = link; /* takes the queue's reference */
    desc->as.stream.side = 1;
    link->end[1] = desc;
    hf_sim_trace(sim, HF_SIM_TRACE_NET, (UINT64_C(4) << 48) | (uint64_t)desc->fd);
    *ret_fd = desc->fd;
    if (ret_peer != NULL) {
        peer_format(link, ret_peer);
    }
    return HF_OK;
}

/* HF_OK, or the status with which a connect to an address without a listener fails. */
static hf_status call_status(hf_sim *sim, const hf_sim_address *place)
{
    if (hf_sim_listener_find(sim, place) == NULL) {
        bool is_missing = place->family == HF_SIM_UNIX && stale_find(sim, place->host) == NULL;
        return is_missing ? HF_ERR_NOT_FOUND : HF_ERR_REFUSED;
    }
    return hf_rng_permille(&sim->rng, sim->options.refuse_permille) ? HF_ERR_REFUSED : HF_OK;
}

hf_status hf_sim_connect(hf_env *env, hf_op *op, const char *address, int *ret_fd)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_address place;
    hf_sim_desc *desc = NULL;
    hf_sim_deliver(sim);
    HF_TRY(hf_sim_address_parse(op, address, &place));
    hf_status status = call_status(sim, &place);
    hf_sim_trace(sim, HF_SIM_TRACE_NET, (UINT64_C(5) << 48) | (uint64_t)status);
    if (status == HF_ERR_NOT_FOUND || (status != HF_OK && hf_rng_below(&sim->rng, 2) == 0)) {
        return hf_fail(op, status, "cannot connect to \"%s\": %s", address, hf_status_text(status));
    }
    HF_TRY(hf_sim_desc_new(sim, op, HF_SIM_STREAM, &desc));
    hf_sim_link *link = hf_sim_delivery_reserve(sim, 1) ? hf_sim_link_new(false) : NULL;
    if (link == NULL) {
        hf_sim_desc_free(sim, desc);
        return hf_fail(op, HF_ERR_NOMEM, "no memory to connect to \"%s\"", address);
    }
    link->target = place;
    link->port = place.family == HF_SIM_TCP ? port_take(sim, &place) : 0;
    link->end[0] = desc;
    desc->as.stream.link = link;
    hf_sim_delivery_send(sim, status == HF_OK ? HF_SIM_DELIVER_CONNECT : HF_SIM_DELIVER_REFUSAL, link, 0,
                         sim->now + hf_sim_latency(sim));
    *ret_fd = desc->fd;
    hf_sim_deliver(sim);
    return HF_OK;
}

hf_status hf_sim_connect_finish(hf_env *env, hf_op *op, int fd)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_deliver(sim);
    hf_sim_desc *desc = hf_sim_desc_find(sim, fd);
    if (desc == NULL || desc->kind != HF_SIM_STREAM) {
        return hf_fail(op, desc == NULL ? HF_ERR_IO : HF_ERR_INVALID, "descriptor %d is not a connection", fd);
    }
    const hf_sim_link *link = desc->as.stream.link;
    hf_sim_trace(sim, HF_SIM_TRACE_NET, (UINT64_C(6) << 48) | (uint64_t)link->state);
    switch (link->state) {
    case HF_SIM_CONNECTING:
        return hf_fail(op, HF_ERR_AGAIN, "descriptor %d is still connecting", fd);
    case HF_SIM_BROKEN:
        return hf_fail(op, link->error, "cannot connect: %s", hf_status_text(link->error));
    case HF_SIM_CONNECTED:
        break;
    }
    return HF_OK;
}

bool hf_sim_peer_is_us(hf_env *env, int fd)
{
    (void)env;
    (void)fd;
    return true; /* a simulated network has one user */
}
