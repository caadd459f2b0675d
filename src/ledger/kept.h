/* Changes of runs that cannot be read.
 *
 * A run whose records are damaged when the store is opened is bad: calls for it are refused, its rows stay as they are, all
 * other runs go on. The journal may hold changes of it that no row has, and the journal is cut sooner or later. So the first
 * commit after the opening copies them to a row of the meta table, "kept/<run>". There they stay until the run's row has been
 * repaired: the opening that can read it again applies them, and its first commit writes the run's rows and removes
 * what was kept. (ADR 0009)
 *
 * ledger-B1  A kept row has all changes that the journal has of its run: a bad run gets no new changes, and the rows of a run
 *     that is sound again are written by the commit that removes the kept row.
 * ledger-B2  A run that was bad at opening stays so, and in memory, until the next opening: its row alone may look sound and yet
 *     lack changes that were reported to callers as durable.
 * ledger-B3  A run with a kept row had a row: if it has no row now it is bad, whatever its kept changes are. */
#ifndef HF_LEDGER_KEPT_H
#define HF_LEDGER_KEPT_H

#include "ledger/writes.h"
#include "proto/pb.h"

/* All kept rows, in the arena. Fails: HF_ERR_INVALID (a key does not name a run), as the store does. */
hf_status hf_kept_scan(hf_op *op, hf_store *store, hf_arena *arena, hf_row **ret_rows, size_t *ret_count);
int64_t hf_kept_run(const hf_row *row); /* from its key; 0 = the key does not name a run */
/* Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_kept_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_kept_changes *ret_kept);

/* Adds the changes of one commit to the body of the run's kept row, which is empty at first. */
void hf_kept_add(hf_buf *body, int64_t run, uint64_t commit, hf_str changes);
void hf_kept_put(hf_writes *writes, int64_t run, const hf_buf *body);
void hf_kept_remove(hf_writes *writes, int64_t run);

#endif
