/* Shared by open.c, open_runs.c and open_held.c. */
#ifndef HF_ENGINE_OPEN_PRIVATE_H
#define HF_ENGINE_OPEN_PRIVATE_H

#include "engine/core_private.h"

/* The argument of the functions that visit the store's rows. */
typedef struct hf_opening {
    hf_core *core;
    hf_store *store;
    uint64_t logged; /* names in name_log, according to the last commit */
    int64_t held;    /* task rows under HF_QUEUE_HELD, according to the last commit; -1 = it does not say */
} hf_opening;

/* ---- open_runs.c -------------------------------------------------------------------------------------------------------- */

/* The run in memory; it is read if it is not there. A run that has no row is empty, and one whose row is damaged is bad. */
hf_status hf_open_run(hf_op *op, hf_core *core, hf_store *store, int64_t number, hf_run **ret_run);
/* Changes of damaged runs, before the journal is read, which has nothing newer for them (ledger-B1). */
hf_status hf_open_kept(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena);
/* Finds runs that a reset was making when the process ended. No caller has seen them, and the first commit deletes their rows. */
hf_status hf_open_unmade(hf_op *op, hf_core *core, hf_store *store, hf_arena *arena);
hf_status hf_open_journal(hf_op *op, hf_opening *o);
/* All runs that opening needs are loaded: checks them, and finds out which are bad. */
hf_status hf_open_sort_out(hf_op *op, hf_opening *o);

/* ---- open_held.c -------------------------------------------------------------------------------------------------------- */

/* Loads the runs that have held tasks. */
hf_status hf_open_held(hf_op *op, hf_opening *o);
/* Hands out the tasks of the run that dead workers held, and sends its messages again. */
void hf_open_hand_out(hf_core *core, hf_run *run);

#endif
