/* Every allocation fails, in every call of the service.
 *
 * A scene is a state that a script makes, one step in it, and the rest of the story. For each allocation that the step makes,
 * by the core, its answer or the store, the scene is played again and that allocation fails. Then
 *
 *     the core breaks with HF_ERR_NOMEM, and so does every call that waits (SQLite may do without that memory);
 *     the core opens again from the store, its runs pass their check, and acknowledged operations are not repeated;
 *     the rest of the script leads to the same histories.
 *
 * Otherwise the test fails (cmocka's asserts: on the test's own stack). */
#ifndef HF_TESTS_NOMEM_H
#define HF_TESTS_NOMEM_H

#include "support/engine_rig.h"

typedef struct hf_nomem_counts {
    uint64_t scenes;                   /* played completely */
    uint64_t faults;                   /* allocations that failed */
    uint64_t broke;                    /* failed allocations that broke the core */
    uint64_t opens;                    /* openings that failed, each at another allocation */
    unsigned methods[HF_METHOD_COUNT]; /* scenes whose step is a call of it */
} hf_nomem_counts;

/* Scenes in all: each on two stores, with runs in memory and with runs that come from the store each time. */
size_t hf_nomem_count(void);
/* Its step, for a report. */
const char *hf_nomem_name(size_t scene);
bool hf_nomem_is_sqlite(size_t scene);
/* The scene that is being played, and its allocation that fails, as text. NULL = nothing is being played. */
const char *hf_nomem_now(void);
/* Plays a scene with every `stride`-th allocation failing, beginning with `first` (from 1). `full`: also with all allocations
 * from there on failing, and after each break with every allocation of the next opening failing. */
void hf_nomem_sweep(size_t scene, uint64_t first, uint64_t stride, bool full, hf_nomem_counts *counts);

#endif
