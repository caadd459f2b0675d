/* Runs that are being made. A reset of a long history writes the history rows of the new run with several commits, before the run
 * exists: it has no state row and no name yet, and nobody knows its number. Meanwhile the meta table has a row "making/<run>". The commit
 * that writes the state row removes it. An opening that finds such a row deletes the history rows, so after a crash a reset has happened
 * whole or not at all. (ADR 0018)
 *
 * ledger-G1  A run with a row of this kind has no state row. Its history rows follow each other, from event 1 on. */
#ifndef HF_LEDGER_MAKING_H
#define HF_LEDGER_MAKING_H

#include "ledger/writes.h"
#include "proto/pb.h"

/* All rows of this kind, in the arena. Fails: HF_ERR_INVALID (a key does not name a run), as the store does. */
hf_status hf_making_scan(hf_op *op, hf_store *store, hf_arena *arena, hf_row **ret_rows, size_t *ret_count);
int64_t hf_making_run(const hf_row *row); /* from its key */

void hf_making_put(hf_writes *writes, int64_t run, int64_t base);
/* The run is made: it has its state row with this commit. */
void hf_making_remove(hf_writes *writes, int64_t run);
/* The run is given up: deletes all of its rows. */
void hf_making_undo(hf_writes *writes, int64_t run);

#endif
