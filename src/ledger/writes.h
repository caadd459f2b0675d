/* hf_writes: the rows that one commit writes. Keys and values lie in its arena until the commit is done.
 *
 * Nothing here returns a status. A failed allocation sets the status of the run memory (run/memory.h), and the code that fills the writes checks
 * that once, at the end. */
#ifndef HF_LEDGER_WRITES_H
#define HF_LEDGER_WRITES_H

#include "run/memory.h"
#include "store/store.h"
#include "wire/pb.h"

typedef struct hf_writes {
    hf_run_memory *memory; /* of the list; its status remembers a failed allocation */
    hf_buf *row;           /* scratch for the body of a row; the owner's */
    hf_arena arena;        /* keys and values */
    HF_VEC(hf_write) list;
    int64_t held; /* task rows under HF_QUEUE_HELD that the commit adds, less those that it removes (ledger-J4) */
} hf_writes;

void hf_writes_init(hf_writes *writes, hf_run_memory *memory, hf_buf *row);
void hf_writes_deinit(hf_writes *writes);
/* Forgets the rows of the last commit. */
void hf_writes_reset(hf_writes *writes);
/* The same, and gives memory back if the list has become longer than `len_max` bytes. */
void hf_writes_shrink(hf_writes *writes, size_t len_max);

void hf_writes_add(hf_writes *writes, hf_write write);
/* A row whose table has no values. */
void hf_writes_put_key(hf_writes *writes, hf_table table, hf_key key);
/* A row whose value is a record: the header, then the body. */
void hf_writes_put_record(hf_writes *writes, hf_table table, hf_key key, const hf_buf *body);
/* The same, with a message as the body. */
void hf_writes_put_message(hf_writes *writes, hf_table table, hf_key key, const hf_pb_type *type, const void *msg);
void hf_writes_delete(hf_writes *writes, hf_table table, hf_key key);
/* All rows with from <= key < to. */
void hf_writes_delete_range(hf_writes *writes, hf_table table, hf_key from, hf_key to);
/* A copy in the arena, for key texts that do not live until the commit is done. */
hf_str hf_writes_copy(hf_writes *writes, hf_str bytes);

/* A message of two fields as field `number` of another: an integer and bytes. RunChanges of the journal and KeptCommit are such. */
void hf_ledger_put_pair(hf_buf *out, uint32_t number, uint64_t integer, hf_str bytes);

#endif
