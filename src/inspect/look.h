/* hf_look: looks at a store without an engine. Nothing is written, no task is handed out, no deadline fires: it shows what the
 * store holds, rows and journal together. For tools: check, show, export. */
#ifndef HF_INSPECT_LOOK_H
#define HF_INSPECT_LOOK_H

#include "base/buf.h"
#include "store/store.h"

#include "proto/pb.h"

typedef struct hf_look hf_look;
typedef struct hf_run hf_run;
typedef struct hf_names hf_names;
typedef struct hf_run_memory hf_run_memory;

/* Borrows the store, which no one else may use meanwhile. Reads the journal and keeps it in memory.
 * Fails: HF_ERR_INVALID (the journal is damaged), HF_ERR_NOMEM, as the store does. */
hf_status hf_look_open(hf_op *op, hf_allocator memory, hf_store *store, hf_look **ret_look);
void hf_look_close(hf_look *look); /* accepts NULL */

hf_run_memory *hf_look_memory(hf_look *look); /* of its runs */
hf_store *hf_look_store(const hf_look *look);
const hf_names *hf_look_names(const hf_look *look); /* those that are not in their table */
/* The runs that the journal deletes, by number: from index 0 on; 0 = there are no more. */
int64_t hf_look_gone(const hf_look *look, size_t index);
/* The runs that a reset was making when the store was left, by number: the same. They have history rows, and the next opening deletes
 * them. */
int64_t hf_look_unmade(const hf_look *look, size_t index);
uint64_t hf_look_commits(const hf_look *look); /* in the journal */

/* The state of one run. Freed by hf_look_run_free. Fails: HF_ERR_NOT_FOUND, HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_look_run(hf_op *op, hf_look *look, int64_t number, hf_run **ret_run);
void hf_look_run_free(hf_look *look, hf_run *run);
/* Appends the run's whole history; checks that its records follow one another.
 * Fails: HF_ERR_INVALID (the message names the event), HF_ERR_NOMEM. */
hf_status hf_look_history(hf_op *op, hf_look *look, const hf_run *run, hf_buf *out);

/* The answer that DescribeWorkflowExecution would give, with texts in the arena, and the history. Fails: as the two above. */
hf_status hf_look_describe(hf_op *op, hf_look *look, int64_t number, hf_arena *arena, hf_buf *history,
                           hf_str *ret_namespace, hf_pb_describe_workflow_execution_response *ret_description);
/* One line for each of at most `count_max` runs before the number `before`, newest first. Damaged runs are listed as such.
 * Fails: HF_ERR_NOMEM, as the store does. */
hf_status hf_look_page(hf_op *op, hf_look *look, int64_t before, size_t count_max, hf_arena *arena,
                       hf_pb_admin_run_list *ret_runs);

/* The newest run of a workflow id, or else the run with this id. Fails: HF_ERR_NOT_FOUND. */
hf_status hf_look_find(hf_op *op, hf_look *look, hf_str namespace_, hf_str workflow_or_run_id, int64_t *ret_number);
/* The number of the first run behind `after`, 0 = there is none. */
hf_status hf_look_next(hf_op *op, hf_look *look, int64_t after, int64_t *ret_number);
/* The number of the last run before `before`; 0 = there is none. */
hf_status hf_look_before(hf_op *op, hf_look *look, int64_t before, int64_t *ret_number);
/* How many workflow runs there are. */
hf_status hf_look_count(hf_op *op, hf_look *look, uint64_t *ret_count);

#endif
