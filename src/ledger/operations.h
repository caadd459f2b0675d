/* Operations that a store keeps (ADR 0026): the rows "operation/<run>" of the meta table, one for each run of kind "operation". With them a core
 * knows all of them without reading the runs.
 *
 * ledger-O1  A run of kind "operation" has such a row from the commit that makes it to the commit with which it is marked for deletion. The
 *     state in the row is whether it has ended, and how. */
#ifndef HF_LEDGER_OPERATIONS_H
#define HF_LEDGER_OPERATIONS_H

#include "ledger/writes.h"
#include "proto/pb.h"

/* All rows of this kind, in the arena. Fails: HF_ERR_INVALID (a key does not name a run), as the store does. */
hf_status hf_operation_scan(hf_op *op, hf_store *store, hf_arena *arena, hf_row **ret_rows, size_t *ret_count);
/* Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_operation_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_operation_record *ret_record);

void hf_operation_row_put(hf_writes *writes, const hf_pb_operation_record *record);
void hf_operation_row_remove(hf_writes *writes, int64_t run);

#endif
