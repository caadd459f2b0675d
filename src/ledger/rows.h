/* The rows of a run: its state, its history, and the keys under which its deadline and its waiting tasks are found.
 *
 * ledger-W2  The state row of a run says which commit it includes (RunState.commit): changes of the journal that are not newer are skipped.
 * ledger-W3  The due and task tables hold, for a run that is not in memory, exactly the deadline that hf_run_next_due gives, and its waiting tasks.
 * ledger-H1  The history rows of a run follow each other without a gap, each holds the hash chain before and after its events, and the state
 *     row has the chain after the last one. */
#ifndef HF_LEDGER_ROWS_H
#define HF_LEDGER_ROWS_H

#include "ledger/writes.h"
#include "proto/pb.h"
#include "run/run.h"

/* The queue text of the task rows for tasks that a worker of this process holds: they are handed out again at the next opening. No
 * queue of a user has this text, because those begin with their kind and a namespace. */
#define HF_QUEUE_HELD HF_STR("h")

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

/* Fills a run that is empty from the value of its state row. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_run_row_read(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str value);
/* The same of a run that may be of an earlier version, whose first event is then read from the store. Fails also as the store does. */
hf_status hf_run_row_load(hf_op *op, hf_store *store, hf_run_memory *memory, hf_run *run, hf_str value);
/* A run of an earlier version learns what its first event has, which this history row holds. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_run_row_learn(hf_op *op, hf_run_memory *memory, hf_run *run, const hf_row *row);
/* The state in such a row, as it is written. `*ret_is_good` false: it cannot be read. Fails: HF_ERR_NOMEM. */
hf_status hf_run_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_run_state *ret_state, bool *ret_is_good);
/* Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_task_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_task_record *ret_record);
/* Fails: HF_ERR_INVALID (also when the row is not where its first event belongs), HF_ERR_NOMEM. */
hf_status hf_history_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_history_record *ret_record);

/* Appends the whole history of a run, its rows and then the events of its log. Fails: HF_ERR_INVALID (the message names the event:
 * ledger-H1), HF_ERR_NOMEM, as the store does. */
hf_status hf_history_read(hf_op *op, hf_store *store, const hf_run *run, hf_allocator memory, hf_buf *out);

/* ---- Writing ------------------------------------------------------------------------------------------------------------ */

/* The run's events that are in no row yet, which are all of `events`, become history rows. A row ends with the event that makes it
 * longer than `row_len_max`, so that a page of a history need not read much more than it returns. */
void hf_history_put(hf_writes *writes, hf_run *run, hf_str events, size_t row_len_max);
/* Its deadline, ns; INT64_MAX = none. True: the table has a row for it now. */
bool hf_due_put(hf_writes *writes, hf_run *run, int64_t due);
/* Removes its task rows; then hf_task_put writes one row per task. */
void hf_tasks_remove(hf_writes *writes, hf_run *run);
void hf_task_put(hf_writes *writes, hf_run *run, hf_str queue, int64_t order, const hf_pb_task_record *record);
/* Its state. `tail`: events that are in no history row. */
void hf_run_row_put(hf_writes *writes, const hf_run *run, hf_str tail);

#endif
