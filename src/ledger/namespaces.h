/* Namespaces: rows "namespace/<name>" of the meta table, each with everything that is known of one namespace, its search attributes too.
 *
 * ledger-S1  A namespace has one row, under its own name. "default" needs none: it is in every store. */
#ifndef HF_LEDGER_NAMESPACES_H
#define HF_LEDGER_NAMESPACES_H

#include "ledger/writes.h"
#include "proto/pb.h"

void hf_namespace_row_put(hf_writes *writes, const hf_pb_namespace_record *record);

void hf_namespace_row_remove(hf_writes *writes, hf_str name);

/* Called for each row of a walk. The record is valid until the call returns. */
typedef hf_status hf_namespace_visit(hf_op *op, void *arg, const hf_pb_namespace_record *record);
/* Visits all rows, by name. Fails: HF_ERR_INVALID (a row cannot be read, or lies under another name: ledger-S1), HF_ERR_NOMEM, as the store and
 * the visitor do. */
hf_status hf_namespace_rows_read(hf_op *op, hf_store *store, hf_allocator memory, hf_namespace_visit *visit, void *arg);

#endif
