/* Descriptors, and the pollers that watch them.
 *
 * Edge-triggered like epoll: an edge puts a watch on its poller's hot list; the next wait takes it off, checks what is
 * ready at that moment and reports it once. Adding or changing a watch counts as an edge if something is ready. As with
 * real kernels, the order of events that are reported together is not fixed, and there are rare spurious events: both
 * are decided by the seed. */
#include "env/sim/sim_private.h"

#include <stdlib.h>

enum {
    DESCS_FIRST = 16,
    HOT_CHOICE_MAX = 64 /* hot watches among which the seed chooses: bounds the walk */
};

/* ---- descriptors ---- */

static bool descs_grow(hf_sim *sim)
{
    uint32_t capacity = sim->desc_capacity == 0 ? DESCS_FIRST : sim->desc_capacity * 2;
    hf_sim_desc **descs = (hf_sim_desc **)realloc(sim->descs, capacity * sizeof(hf_sim_desc *));
    if (descs == NULL) {
        return false;
    }
    for (uint32_t i = sim->desc_capacity; i < capacity; i++) {
        descs[i] = NULL;
    }
    sim->descs = descs;
    sim->desc_capacity = capacity;
    return true;
}

/* The lowest free number, as a kernel gives it: code that uses a closed descriptor soon finds another one there. */
hf_status hf_sim_desc_new(hf_sim *sim, hf_op *op, hf_sim_kind kind, hf_sim_desc **ret_desc)
{
    if (sim->desc_count >= sim->desc_count_max) {
        return hf_fail(op, HF_ERR_LIMIT, "%u simulated descriptors are open, no more are allowed", sim->desc_count);
    }
    uint32_t idx = sim->desc_first_free;
    while (idx < sim->desc_capacity && sim->descs[idx] != NULL) {
        idx++;
    }
    hf_sim_desc *desc = NULL;
    if (idx < sim->desc_capacity || descs_grow(sim)) {
        desc = (hf_sim_desc *)calloc(1, sizeof *desc);
    }
    if (desc == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a simulated descriptor");
    }
    desc->kind = kind;
    desc->fd = HF_SIM_FD_FIRST + (int)idx;
    hf_list_init(&desc->watches);
    hf_assert(idx < sim->desc_capacity && sim->descs[idx] == NULL);
    sim->descs[idx] = desc;
    sim->desc_first_free = idx + 1;
    sim->desc_count++;
    *ret_desc = desc;
    return HF_OK;
}

static void watch_free(hf_sim_watch *watch)
{
    if (hf_node_is_linked(&watch->in_hot)) {
        hf_assert(watch->poller->hot_count > 0);
        hf_list_remove(&watch->in_hot);
        watch->poller->hot_count--;
    }
    hf_assert(watch->poller->watch_count > watch->poller->hot_count);
    hf_list_remove(&watch->in_poller);
    watch->poller->watch_count--;
    hf_list_remove(&watch->in_desc);
    free(watch);
}

void hf_sim_desc_free(hf_sim *sim, hf_sim_desc *desc)
{
    HF_LIST_EACH(node, &desc->watches)
    {
        watch_free(HF_CONTAINER(node, hf_sim_watch, in_desc));
    }
    uint32_t idx = (uint32_t)(desc->fd - HF_SIM_FD_FIRST);
    hf_assert(sim->descs[idx] == desc && sim->desc_count > 0);
    sim->descs[idx] = NULL;
    sim->desc_count--;
    if (idx < sim->desc_first_free) {
        sim->desc_first_free = idx;
    }
    free(desc);
}

hf_sim_desc *hf_sim_desc_find(hf_sim *sim, int fd)
{
    if (fd < HF_SIM_FD_FIRST || (uint32_t)(fd - HF_SIM_FD_FIRST) >= sim->desc_capacity) {
        return NULL;
    }
    return sim->descs[fd - HF_SIM_FD_FIRST];
}

static int ready_of(hf_sim *sim, const hf_sim_desc *desc)
{
    switch (desc->kind) {
    case HF_SIM_LISTENER:
        return desc->as.listener.queue_count > 0 ? HF_READABLE : 0;
    case HF_SIM_STREAM:
        return hf_sim_stream_ready(sim, desc);
    case HF_SIM_FILE:
        return HF_READABLE | HF_WRITABLE;
    case HF_SIM_SIGNALS:
        return desc->as.signals.count > 0 ? HF_READABLE : 0;
    }
    return 0;
}

/* ---- pollers ---- */

static void poller_wake(hf_sim *sim, hf_poller *poller)
{
    HF_LIST_EACH(node, &sim->threads)
    {
        hf_thread *thread = HF_CONTAINER(node, hf_thread, node);
        if (thread->state == HF_SIM_ON_POLLER && thread->poller == poller) {
            hf_sim_wake(sim, thread);
        }
    }
}

static void watch_heat(hf_sim *sim, hf_sim_watch *watch)
{
    if (!hf_node_is_linked(&watch->in_hot)) {
        hf_list_push_back(&watch->poller->hot, &watch->in_hot);
        hf_assert(watch->poller->hot_count < watch->poller->watch_count);
        watch->poller->hot_count++;
        poller_wake(sim, watch->poller);
    }
}

void hf_sim_desc_notify(hf_sim *sim, hf_sim_desc *desc, int events)
{
    if (desc == NULL) {
        return;
    }
    HF_LIST_EACH(node, &desc->watches)
    {
        hf_sim_watch *watch = HF_CONTAINER(node, hf_sim_watch, in_desc);
        if (((watch->events | HF_SIM_HANGUP) & events) != 0) {
            watch_heat(sim, watch);
        }
    }
}

hf_status hf_sim_poller_open(hf_env *env, hf_op *op, hf_poller **ret_poller)
{
    hf_sim *sim = hf_sim_of(env);
    hf_poller *poller = hf_sim_may_allocate(sim) ? (hf_poller *)calloc(1, sizeof *poller) : NULL;
    if (poller == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a simulated poller");
    }
    poller->serial = ++sim->poller_serial;
    hf_list_init(&poller->watches);
    hf_list_init(&poller->hot);
    hf_list_push_back(&sim->pollers, &poller->node);
    *ret_poller = poller;
    return HF_OK;
}

void hf_sim_poller_close(hf_env *env, hf_poller *poller)
{
    if (poller == NULL) {
        return;
    }
    HF_LIST_EACH(node, &poller->watches)
    {
        watch_free(HF_CONTAINER(node, hf_sim_watch, in_poller));
    }
    hf_list_remove(&poller->node);
    hf_sim_scrap(hf_sim_of(env), poller, sizeof *poller);
}

static hf_sim_watch *watch_find(hf_poller *poller, hf_sim_desc *desc)
{
    HF_LIST_EACH(node, &desc->watches)
    {
        hf_sim_watch *watch = HF_CONTAINER(node, hf_sim_watch, in_desc);
        if (watch->poller == poller) {
            return watch;
        }
    }
    return NULL;
}

hf_status hf_sim_poller_set(hf_env *env, hf_op *op, hf_poller *poller, int fd, int events, bool is_new, void *cookie)
{
    hf_sim *sim = hf_sim_of(env);
    hf_sim_desc *desc = hf_sim_desc_find(sim, fd);
    hf_sim_watch *watch = desc != NULL ? watch_find(poller, desc) : NULL;
    (void)is_new; /* the poller's own state counts: the number may have been closed and opened again */
    if (events == 0) {
        if (watch != NULL) {
            watch_free(watch);
        }
        return HF_OK; /* closing a descriptor takes it out too: not finding it is success */
    }
    if (desc == NULL) {
        return hf_fail(op, HF_ERR_IO, "descriptor %d is not open in this simulation", fd);
    }
    if (desc->kind == HF_SIM_FILE) {
        return hf_fail(op, HF_ERR_UNSUPPORTED, "descriptor %d is a file: it is always ready and cannot be waited for",
                       fd);
    }
    if (watch == NULL) {
        watch = (hf_sim_watch *)calloc(1, sizeof *watch);
        if (watch == NULL) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory to watch descriptor %d", fd);
        }
        watch->poller = poller;
        watch->desc = desc;
        hf_list_push_back(&poller->watches, &watch->in_poller);
        poller->watch_count++;
        hf_list_push_back(&desc->watches, &watch->in_desc);
    }
    watch->events = events;
    watch->cookie = cookie;
    if ((ready_of(sim, desc) & (events | HF_SIM_HANGUP)) != 0) {
        watch_heat(sim, watch);
    }
    return HF_OK;
}

static hf_sim_watch *hot_pop(hf_sim *sim, hf_poller *poller)
{
    uint32_t choices = poller->hot_count < HOT_CHOICE_MAX ? poller->hot_count : HOT_CHOICE_MAX;
    uint64_t skip = choices > 1 ? hf_rng_below(&sim->rng, choices) : 0;
    hf_node *node = hf_list_first(&poller->hot);
    for (; skip > 0 && node != NULL; skip--) {
        node = node->next;
    }
    hf_assert(node != NULL && node->prev != NULL);
    hf_list_remove(node);
    poller->hot_count--;
    return HF_CONTAINER(node, hf_sim_watch, in_hot);
}

static void report(hf_sim *sim, const hf_sim_watch *watch, int events, hf_event *ret_event)
{
    *ret_event = (hf_event){watch->cookie, events};
    hf_sim_trace(sim, HF_SIM_TRACE_EVENT, ((uint64_t)watch->desc->fd << 3) | (uint64_t)events);
}

/* Takes the hot watches. An edge whose cause is gone again is dropped, as in epoll. */
static int collect(hf_sim *sim, hf_poller *poller, hf_event *ret_events, int count)
{
    int reported = 0;
    while (reported < count && poller->hot_count > 0) {
        hf_sim_watch *watch = hot_pop(sim, poller);
        int ready = ready_of(sim, watch->desc);
        int events = (ready & HF_SIM_HANGUP) != 0 ? HF_READABLE | HF_WRITABLE : ready & watch->events;
        if (events != 0) {
            report(sim, watch, events, &ret_events[reported++]);
        }
    }
    return reported;
}

/* A spurious event. Not for a connection that is being made: there "writable" means that it is connected. */
static int collect_spurious(hf_sim *sim, hf_poller *poller, hf_event *ret_event)
{
    if (poller->watch_count == 0 || !hf_rng_permille(&sim->rng, HF_SIM_SPURIOUS_PERMILLE)) {
        return 0;
    }
    uint64_t skip = hf_rng_below(&sim->rng, poller->watch_count);
    hf_node *node = hf_list_first(&poller->watches);
    for (; skip > 0 && node != NULL; skip--) {
        node = node->next;
    }
    hf_assert(node != NULL);
    const hf_sim_watch *watch = HF_CONTAINER(node, hf_sim_watch, in_poller);
    if (watch->desc->kind == HF_SIM_STREAM && watch->desc->as.stream.link->state == HF_SIM_CONNECTING) {
        return 0;
    }
    report(sim, watch, watch->events, ret_event);
    return 1;
}

int hf_sim_poller_wait(hf_env *env, hf_poller *poller, hf_event *ret_events, int count, hf_instant deadline)
{
    hf_sim *sim = hf_sim_of(env);
    hf_assert(count > 0);
    hf_sim_step(sim); /* between the caller's last look around and this one */
    for (bool is_first = true;; is_first = false) {
        hf_sim_deliver(sim);
        int reported = collect(sim, poller, ret_events, count);
        if (reported == 0 && is_first) {
            reported = collect_spurious(sim, poller, ret_events);
        }
        if (reported > 0 || poller->is_rung) {
            poller->is_rung = false;
            return reported;
        }
        if (deadline.ns <= sim->now) {
            return 0;
        }
        sim->current->poller = poller;
        (void)hf_sim_wait(sim, HF_SIM_ON_POLLER, deadline);
        sim->current->poller = NULL;
    }
}

void hf_sim_poller_ring(hf_env *env, hf_poller *poller)
{
    if (!poller->is_rung) {
        poller->is_rung = true;
        poller_wake(hf_sim_of(env), poller);
    }
}

void hf_sim_pollers_drop(hf_sim *sim)
{
    HF_LIST_EACH(node, &sim->pollers)
    {
        hf_assert(sim->is_over); /* every poller is closed */
        hf_sim_poller_close(&sim->env, HF_CONTAINER(node, hf_poller, node));
    }
    for (uint32_t i = 0; i < sim->desc_capacity; i++) {
        if (sim->descs[i] != NULL) {
            hf_sim_close(&sim->env, sim->descs[i]->fd);
        }
    }
    free(sim->descs);
}
