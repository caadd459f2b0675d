/* Flows inside the library. A flow has runs: a hot flow has a single run for its whole life, a shared flow has one
 * while it has collectors, a cold flow has one per collector. A run takes values from its emitters to its
 * collectors.
 *
 * fiber-V1  A value is given to all collectors of a run at once, or to none. An emitter waits until no BUFFER
 *           collector is full. So a canceled emit has had no effect, and all collectors see all values in the same
 *           order.
 * fiber-V2  Emitters wait only while a BUFFER collector is full. The collector that makes room delivers for the
 *           first of them.
 * fiber-V3  A run that has ended takes no values. Its collectors still get the values that they have buffered.
 * fiber-V4  When its last collector leaves, the run of a cold or shared flow is abandoned, and its source is
 *           canceled. */
#ifndef HF_FIBER_FLOW_H
#define HF_FIBER_FLOW_H

#include "fiber/sync/sync.h"
#include "fiber/sync/work.h"

struct hf_flow {
    hf_spin lock; /* first: hf_wait.object points here; guards the runs and their collectors too */
    hf_runtime *rt;
    const char *name;
    size_t value_len;
    hf_flow_source source; /* NULL = hot */
    void *arg;
    hf_scope *share;       /* with source; NULL = cold */
    hf_list runs;          /* those that have not ended */
    hf_emitter *current;   /* hot: the run; shared: the one to join, or NULL */
    atomic_uint refs;      /* one for the creator, one per run, one per emitter that waits */
    hf_owned_object owned; /* goes with the creator's reference */
};

/* A run. Its source knows it as the emitter. */
struct hf_emitter {
    hf_work work; /* the source; not in a hot flow */
    hf_node runs; /* in flow->runs */
    hf_flow *flow;
    hf_list collectors;
    hf_list emitters; /* waiting; hf_wait.value is the value that they emit */
    bool ended;
    hf_status status;        /* that collectors get after the end: HF_ERR_CLOSED, or that of the failure */
    hf_failure_box *failure; /* of the source; owned; NULL = it ended well */
    unsigned streak;         /* values since an emitter waited */
    atomic_uint refs;        /* one for the source (of a hot flow: for the creator), one per collector */
};

struct hf_collector {
    hf_node node; /* in run->collectors */
    hf_emitter *run;
    hf_holder owner;
    hf_scope *scope; /* cold: around the source, on the collector's fiber; else NULL */
    hf_flow_mode mode;
    size_t capacity; /* values in the ring */
    size_t head;     /* oldest */
    size_t count;
    uint64_t dropped;
    hf_list receiver; /* the owner, while it waits; then the ring is empty */
    hf_owned_object owned;
    unsigned char ring[];
};

hf_emitter *hf_flow_run_new(hf_flow *flow);
void hf_flow_run_unref(hf_emitter *run);

/* Under flow->lock. Waiters that the caller must wake with HF_OK are added to `claimed`. */
void hf_flow_pump(hf_emitter *run, hf_claimed *claimed); /* delivers for waiting emitters while there is room */

/* hf_flow_emit for a hot flow whose collectors all drop: never waits, also where the caller is canceled, and does nothing when the
 * flow was closed. Outside the library. */
void hf_flow_tell(hf_flow *flow, const void *value);

/* Shared by the verbs of flows and collectors. */
static inline bool hf_flow_is_hot(const hf_flow *flow)
{
    return flow->source == NULL;
}

static inline unsigned char *hf_collector_slot(hf_collector *collector, size_t at)
{
    return collector->ring + (at % collector->capacity) * collector->run->flow->value_len;
}

#endif
