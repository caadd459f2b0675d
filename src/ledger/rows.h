/* The rows of a run: its state, its history, and the keys under which its deadline and its waiting tasks are found.
 *
 * ledger-W2  The state row of a run says which commit it includes (RunState.commit): changes of the journal that are not newer are skipped.
 * ledger-W3  The due and task tables hold, for a run that is not in memory, exactly the deadline that hf_run_next_due gives, and one
 *     row for each queue in which tasks of it wait, in the place of the oldest; the queue "h" has a row of it if the next opening has to go on
 *     with it.
 * ledger-P1  The parts of a run's state that have rows of their own are those that its state row lists, by key, with their checksums. They follow
 *     its history rows in the same table and are deleted with them.
 * ledger-T1  The stream rows of a run hold the records stream_first .. stream_next - 1 of its state, each row keyed by its first one, without a
 *     gap; the first row also has the stops. They are never changed, and deleted with the history rows.
 * ledger-H1  The history rows of a run follow each other without a gap, each holds the hash chain before and after its events, and the state
 *     row has the chain after the last one. */
#ifndef HF_LEDGER_ROWS_H
#define HF_LEDGER_ROWS_H

#include "history/limits.h"
#include "ledger/writes.h"
#include "proto/pb.h"
#include "run/run.h"

/* The queue text of the task rows for tasks that a worker of this process holds: they are handed out again at the next opening. No
 * queue of a user has this text, because those begin with their kind and a namespace. */
#define HF_QUEUE_HELD HF_STR("h")

/* The text of a user's queue: kind ('w' or 'a'), namespace, 0x1f, name. False: a name is too long. */
#define HF_QUEUE_TEXT_LEN (2 * HF_ID_LEN_MAX + 2)
bool hf_queue_text(char kind, hf_str namespace_, hf_str name, char ret_text[HF_QUEUE_TEXT_LEN], size_t *ret_len);

/* The rows of the table history behind the events of a run: records of its stream by their numbers (run/stream.h), then parts of its
 * state (run/run.h). */
#define HF_STREAM_BASE (1 << 18)
#define HF_PART_BASE (1 << 19)

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

/* Fills a run that is empty from the value of its state row. `parts`: rows of its parts; NULL = they were not read: if it has some,
 * `*ret_wants_parts` is set, and nothing is filled. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_run_row_read(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str value, const hf_part_rows *parts,
                          bool *ret_wants_parts);
/* Where the parts of a run are. */
void hf_parts_range(int64_t run, hf_key *ret_from, hf_key *ret_to);
/* Rows of that range as parts. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_parts_open(hf_op *op, const hf_row *rows, size_t count, hf_arena *arena, hf_part_rows *ret_parts);
/* The same as hf_run_row_read; parts, and the first event of a run of an earlier version, are read from the store. Fails also as
 * the store does. */
hf_status hf_run_row_load(hf_op *op, hf_store *store, hf_run_memory *memory, hf_run *run, hf_str value);
/* Completes a run of an earlier version with facts of its first event, which this history row holds. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_run_row_learn(hf_op *op, hf_run_memory *memory, hf_run *run, const hf_row *row);
/* The state in such a row, as it is written. `*ret_is_good` false: it cannot be read. Fails: HF_ERR_NOMEM. */
hf_status hf_run_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_run_state *ret_state, bool *ret_is_good);
/* The same of what lists read of it. */
hf_status hf_run_row_see(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_run_sight *ret_sight, bool *ret_is_good);
/* Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_task_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_task_record *ret_record);
/* Fails: HF_ERR_INVALID (also when the row is not where its first event belongs), HF_ERR_NOMEM. */
hf_status hf_history_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_history_record *ret_record);

/* Fails: HF_ERR_INVALID (also when the row is not where its first record belongs, or has none), HF_ERR_NOMEM. */
hf_status hf_run_stream_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_stream_row *ret_record);
/* Where the stream rows of a run are: those that begin with a record from `from` on. */
void hf_run_stream_range(int64_t run, int64_t from, hf_key *ret_from, hf_key *ret_to);

/* Appends the records of a run from number `from` on as StreamRecords, at most until `out` has `len_max` bytes: its rows, then its log.
 * `*ret_next`: the number behind them. Fails: HF_ERR_INVALID (the message names the record: ledger-T1), HF_ERR_NOMEM, as the store does. */
hf_status hf_run_stream_read(hf_op *op, hf_store *store, hf_run_memory *memory, hf_run *run, int64_t from,
                             size_t len_max, hf_buf *out, int64_t *ret_next);

/* Appends the whole history of a run, its rows and then the events of its log. Fails: HF_ERR_INVALID (the message names the event:
 * ledger-H1), HF_ERR_NOMEM, as the store does. */
hf_status hf_history_read(hf_op *op, hf_store *store, const hf_run *run, hf_allocator memory, hf_buf *out);

/* ---- Writing ------------------------------------------------------------------------------------------------------------ */

/* The run's events that are in no row yet, which are all of `events`, become history rows. A row ends with the event that makes it
 * longer than `row_len_max`, so that a page of a history need not read much more than it returns. */
void hf_history_put(hf_writes *writes, hf_run *run, hf_str events, size_t row_len_max);
/* The records of its log become stream rows; a row ends like that of a history. */
void hf_run_stream_put(hf_writes *writes, hf_run *run, size_t row_len_max);
/* Its deadline, ns; INT64_MAX = none. True: the table has a row for it now. */
bool hf_due_put(hf_writes *writes, hf_run *run, int64_t due);
/* Removes its task rows; then hf_task_put writes the new ones. */
void hf_tasks_remove(hf_writes *writes, hf_run *run);
void hf_task_delete(hf_writes *writes, hf_str queue, int64_t order);
void hf_task_put(hf_writes *writes, hf_run *run, hf_str queue, int64_t order, const hf_pb_task_record *record);
/* Parts of its state that are new or have changed; those that are gone are deleted. */
void hf_parts_put(hf_writes *writes, hf_run *run);
/* Its state. `tail`: events that are in no history row. */
void hf_run_row_put(hf_writes *writes, const hf_run *run, hf_str tail);

#endif
