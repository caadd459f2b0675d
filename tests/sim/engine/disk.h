/* What becomes of a world's disk: images of outages (outage.c), calls that fail (failing.c). Both use HF_CHECK. */
#ifndef HF_TESTS_SIM_ENGINE_DISK_H
#define HF_TESTS_SIM_ENGINE_DISK_H

#include "sim/engine/sim.h"
#include "support/vfs.h"

typedef struct sim_outage_counts {
    uint64_t worlds;
    uint64_t troubles; /* syncs that failed, and what else troubles.c does */
    uint64_t images;   /* of what could be left */
    uint64_t judged;   /* of those, different from the ones before, and opened */
    uint64_t nested;   /* made while another was opened */
    uint64_t engines;  /* opened on what was left */
} sim_outage_counts;

typedef struct sim_io_counts {
    uint64_t scenarios; /* disks */
    uint64_t faults;    /* calls that failed, each with an engine of its own */
    uint64_t reported;  /* those that the open reported */
    uint64_t beside;    /* those that stopped a run and not the open */
    uint64_t cuts;      /* of the power, afterwards */
} sim_io_counts;

/* One world each; what was done is added to the counts. With `is_failing` the syncs of its disk fail, and images are made after
 * the first of them only; by the seed every third world has durability normal. */
void sim_outage_world(uint64_t seed, bool is_failing, sim_outage_counts *counts);
void sim_io_world(uint64_t seed, sim_io_counts *counts);

/* twin.c: what the contents should be after each commit */
typedef struct sim_twin sim_twin;
sim_twin *sim_twin_new(void);
void sim_twin_free(sim_twin *twin);
/* Before the store executes it. Its number is the next, or one that was given before: then that one was lost. */
void sim_twin_commit(sim_twin *twin, const hf_store_request *request);
uint64_t sim_twin_hash(const sim_twin *twin, uint64_t commit);

/* disk.c, for all of these */
extern const hf_allocator sim_heap; /* malloc */
hf_status sim_open_store(hf_vfs *disk, hf_op *op, hf_store **ret_store);
/* Reads that the engine asks for are never answered: nobody waits for them here. */
hf_status sim_open_engine(hf_op *op, hf_store *store, hf_core **ret_core);
void sim_close_engine(hf_core *core);
/* The first commit of an engine, which says that it was there. */
hf_status sim_make_commit(hf_core *core, hf_store *store);
/* An engine opens on the store, and its runs are what their histories say; gives the hash of its state. */
hf_status sim_try_engine(hf_op *op, hf_store *store, uint64_t *ret_hash);

#endif
