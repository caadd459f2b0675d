/* Failures of a world's disk: images of outages (outage.c), calls that fail (failing.c), both for files of older versions (older.c) and while an
 * engine keeps house (keeping.c). All use HF_CHECK. */
#ifndef HF_TESTS_SIM_ENGINE_DISK_H
#define HF_TESTS_SIM_ENGINE_DISK_H

#include "sim/engine/sim.h"
#include "support/vfs.h"

typedef struct sim_outage_counts {
    uint64_t worlds;
    uint64_t troubles; /* syncs that failed, and other troubles of troubles.c */
    uint64_t images;   /* images of what could be left */
    uint64_t judged;   /* images that differ from the ones before, and were opened */
    uint64_t nested;   /* images made while another one was opened */
    uint64_t engines;  /* engines opened on images */
} sim_outage_counts;

typedef struct sim_io_counts {
    uint64_t scenarios; /* disks */
    uint64_t faults;    /* calls that failed, each with an engine of its own */
    uint64_t reported;  /* those that the open reported */
    uint64_t beside;    /* those that stopped a run but not the open */
    uint64_t cuts;      /* power cuts afterwards */
} sim_io_counts;

/* Each plays one world and adds to the counts. With `is_failing` the syncs of its disk fail, and images are made only
 * after the first failure; every third world, by seed, has durability normal. */
void sim_outage_world(uint64_t seed, bool is_failing, sim_outage_counts *counts);
void sim_io_world(uint64_t seed, sim_io_counts *counts);

/* older.c: a file of tests/fixtures */
typedef struct sim_older_counts {
    uint64_t images;   /* images of what could be left */
    uint64_t judged;   /* images that differ from the ones before, and were opened */
    uint64_t faults;   /* calls that failed */
    uint64_t reported; /* those that kept the file from being opened */
} sim_older_counts;
void sim_older_file(const char *name, sim_older_counts *counts);

/* keeping.c: housekeeping, operations and a shrink, on the bytes of an older file, or on an empty disk (NULL) */
typedef struct sim_keeping_counts {
    uint64_t images;  /* images of what could be left */
    uint64_t judged;  /* images that differ from the ones before, and were opened */
    uint64_t engines; /* engines opened on them */
    uint64_t faults;  /* calls that failed */
    uint64_t shrinks; /* steps of a shrink */
    uint64_t probes[HF_PROBE_COUNT];
} sim_keeping_counts;
void sim_keeping_file(const char *bytes, size_t len, uint64_t stride, sim_keeping_counts *counts);
/* older.c: the bytes of a file of tests/fixtures; NULL = a check has failed. The caller frees them. */
char *sim_read_fixture(const char *name, size_t *ret_len);

/* twin.c: what the contents should be after each commit */
typedef struct sim_twin sim_twin;
sim_twin *sim_twin_new(void);
void sim_twin_free(sim_twin *twin);
/* Called before the store executes the commit. Its number is the next one, or an earlier one: then that commit was
 * lost. */
void sim_twin_commit(sim_twin *twin, const hf_store_request *request);
uint64_t sim_twin_hash(const sim_twin *twin, uint64_t commit);
/* Whether it is the same of a commit that had this number before and was lost with its process; there may be several. */
bool sim_twin_has_lost(const sim_twin *twin, uint64_t commit, uint64_t hash);
/* That commit was not lost after all: it is the last one now. */
void sim_twin_find(sim_twin *twin, uint64_t commit, uint64_t hash);

/* disk.c, for all of these */
extern const hf_allocator sim_heap; /* malloc */
hf_status sim_open_store(hf_vfs *disk, hf_op *op, hf_store **ret_store);
/* The engine's reads are never answered: nothing here needs them. */
hf_status sim_open_engine(hf_op *op, hf_store *store, hf_core **ret_core);
void sim_close_engine(hf_core *core);
/* The first commit of an engine, which records the opening. */
hf_status sim_make_commit(hf_core *core, hf_store *store);
/* Opens an engine on the store and checks its runs against their histories; returns the hash of its state. */
hf_status sim_try_engine(hf_op *op, hf_store *store, uint64_t *ret_hash);

#endif
