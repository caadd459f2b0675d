/* Lists of runs, for tools: those in memory and those that are rows, put together. Every run is one or the other; one that is both
 * is newer in memory. */
#ifndef HF_ENGINE_LIST_H
#define HF_ENGINE_LIST_H

#include "engine/core_private.h"

typedef struct hf_listing {
    int64_t before;   /* numbers below this */
    size_t count_max; /* at most this many */
    hf_arena *arena;
    bool is_there;             /* hf_list_memory has been called */
    uint64_t unwritten;        /* runs in memory that have no row */
    int64_t complete_from;     /* runs below this number may be missing */
    hf_pb_admin_run_list runs; /* newest first */
} hf_listing;

/* 1: on the core's thread. */
void hf_list_memory(hf_core *core, hf_listing *listing);
/* 2: the request for rows ... */
hf_store_request hf_list_scan(const hf_listing *listing);
/* 3: ... and its results. Fails: HF_ERR_NOMEM. */
hf_status hf_list_rows(hf_op *op, hf_listing *listing, const hf_store_request *scan);

#endif
