/* hf_look: a store looked at without being opened as an engine. Nothing is written, no task is handed out, no time passes:
 * what is seen is what the store says, rows and journal together. For tools: check, show, export. */
#ifndef HF_ENGINE_LOOK_H
#define HF_ENGINE_LOOK_H

#include "engine/core.h"

typedef struct hf_look hf_look;

/* Borrows the store, of which nobody else may use anything meanwhile. Reads the journal, which stays in memory.
 * Fails: HF_ERR_INVALID (the journal is damaged), HF_ERR_NOMEM, what the store says. */
hf_status hf_look_open(hf_op *op, hf_allocator memory, hf_store *store, hf_look **ret_look);
void hf_look_close(hf_look *look); /* accepts NULL */

hf_core *hf_look_core(hf_look *look);          /* whose runs these are: for hf_run_encode and the like */
uint64_t hf_look_commits(const hf_look *look); /* in the journal */

/* The state of one run. Freed by hf_look_run_free. Fails: HF_ERR_NOT_FOUND, HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_look_run(hf_op *op, hf_look *look, int64_t number, hf_run **ret_run);
void hf_look_run_free(hf_look *look, hf_run *run);
/* Appends the run's whole history; checks that its records follow one another.
 * Fails: HF_ERR_INVALID (the sentence names the event), HF_ERR_NOMEM. */
hf_status hf_look_history(hf_op *op, hf_look *look, const hf_run *run, hf_buf *out);

/* The newest run of a workflow id, or else the run with this id. Fails: HF_ERR_NOT_FOUND. */
hf_status hf_look_find(hf_op *op, hf_look *look, hf_str name_space, hf_str workflow_or_run_id, int64_t *ret_number);
/* The number of the first run behind `after`, 0 = there is none. */
hf_status hf_look_next(hf_op *op, hf_look *look, int64_t after, int64_t *ret_number);
/* The other way: of the last run before `before`. */
hf_status hf_look_before(hf_op *op, hf_look *look, int64_t before, int64_t *ret_number);
/* How many runs there are. */
hf_status hf_look_count(hf_op *op, hf_look *look, uint64_t *ret_count);

/* One request, synchronously; its sentence goes to `op`. */
hf_status hf_look_ask(hf_op *op, hf_look *look, hf_store_request *request);

#endif
