/* Changes of runs that cannot be read.
 *
 * A run whose records do not check when the store is opened is bad: calls for it are refused, its rows stay as they are, all
 * other runs go on. The journal may hold changes of it that no row has, and the journal is cut sooner or later. So the first
 * commit after the opening copies them to a row of the meta table, "kept/<run>". There they wait until somebody has repaired
 * the run's row: the opening that can read it again applies them, and its first commit writes the run's rows and removes
 * what was kept. (ADR 0009)
 *
 * ledger-B1  A kept row has all changes that the journal has of its run: a bad run gets no new ones, and one that is sound again
 *     gets its rows with the commit that removes the kept one.
 * ledger-B2  A run that was bad at opening stays so, and in memory, until the next opening: its row alone may look sound and yet be
 *     without changes that were answered for.
 * ledger-B3  A run with a kept row had a row: if there is none now it is bad, whatever its first changes are. */
#ifndef HF_LEDGER_KEPT_H
#define HF_LEDGER_KEPT_H

#include "ledger/writes.h"
#include "proto/pb.h"

/* All kept rows, in the arena. Fails: HF_ERR_INVALID (a key that names no run), as the store does. */
hf_status hf_kept_scan(hf_op *op, hf_store *store, hf_arena *arena, hf_row **ret_rows, size_t *ret_count);
int64_t hf_kept_run(const hf_row *row); /* by its key; 0 = it names none */
/* Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_kept_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_kept_changes *ret_kept);

/* Adds what one commit did to the run to the body of its kept row, which is empty at first. */
void hf_kept_add(hf_buf *body, int64_t run, uint64_t commit, hf_str changes);
void hf_kept_put(hf_writes *writes, int64_t run, const hf_buf *body);
void hf_kept_remove(hf_writes *writes, int64_t run);

#endif
