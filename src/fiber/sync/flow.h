/* Flows inside the library. A flow has runs: a hot one has a single run for its whole life, a shared one has one
 * while it has collectors, a cold one has one per collector. A run takes values from its emitters to its
 * collectors.
 *
 * fiber-V1  a value is given to all collectors of a run at once or to none: an emitter waits until no BUFFER collector is
 *     full, so a canceled emit has not happened, and all collectors see all values in the same order;
 * fiber-V2  emitters wait only while a BUFFER collector is full; who makes room delivers for the first of them;
 * fiber-V3  an ended run takes no values; what its collectors have buffered they still get;
 * fiber-V4  the run of a cold or shared flow is abandoned, and its source canceled, when its last collector leaves. */
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
    hf_scope *share;     /* with source; NULL = cold */
    hf_list runs;        /* those that have not ended */
    hf_emitter *current; /* hot: the run; shared: the one to join, or NULL */
    atomic_uint refs;    /* the creator's, one per run, one per emitter that waits */
    hf_owned owned;      /* with the creator's reference */
};

/* A run, seen by its source as what it emits into. */
struct hf_emitter {
    hf_work work; /* the source; not in a hot flow */
    hf_node runs; /* in flow->runs */
    hf_flow *flow;
    hf_list collectors;
    hf_list emitters; /* waiting; hf_wait.value is what they emit */
    bool ended;
    hf_status status;        /* what collectors get after the end: HF_ERR_CLOSED, or the failure's */
    hf_failure_box *failure; /* of the source; owned; NULL = it ended well */
    unsigned streak;         /* values since an emitter waited */
    atomic_uint refs;        /* the source's (of a hot flow: the creator's), one per collector */
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
    hf_owned owned;
    unsigned char ring[];
};

hf_emitter *hf_flow_run_new(hf_flow *flow);
void hf_flow_run_unref(hf_emitter *run);

/* All under flow->lock; whom to wake (with HF_OK) is added to `claimed`. */
void hf_flow_pump(hf_emitter *run, hf_claimed *claimed); /* delivers for those who wait, as long as there is room */

/* What flow and collector verbs share. */
static inline bool hf_flow_is_hot(const hf_flow *flow)
{
    return flow->source == NULL;
}

static inline unsigned char *hf_collector_slot(hf_collector *collector, size_t at)
{
    return collector->ring + (at % collector->capacity) * collector->run->flow->value_len;
}

#endif
