/* The source of a depot: loads and commits, its records, and what tools see of them. */
#ifndef HF_DEPOT_FILE_H
#define HF_DEPOT_FILE_H

#include "depot/depot_private.h"

/* ---- housekeep.c -------------------------------------------------------------------------------------------------- */

/* By the driver, once. */
void hf_depot_keep_house(hf_depot *depot);

/* ---- damaged.c --------------------------------------------------------------------------------------------------- */

/* At open: the row of this write cannot be read. */
void hf_damaged_add(hf_depot *depot, uint64_t sequence);
/* By the driver: drops such a row, and answers the ask. False: there is none with this number. */
bool hf_damaged_drop(hf_depot *depot, hf_ask *ask, uint64_t sequence);
void hf_damaged_free(hf_depot *depot);

/* ---- source.c ---------------------------------------------------------------------------------------------------- */

typedef struct hf_source hf_source;
typedef struct hf_load hf_load;
/* Opens the file, reads generations and pending writes. */
hf_status hf_depot_source_open(hf_op *op, hf_depot *depot, const char *file);
/* The same with a store of the depot's tables, which it takes. */
hf_status hf_source_open_store(hf_op *op, hf_depot *depot, hf_store *store);
void hf_depot_source_close(hf_depot *depot);
/* The path of the file; NULL = it is not one, or it has no socket (a simulation). */
const char *hf_source_path(const hf_depot *depot);
/* False: the file has no entry of the slot, so there is nothing to read. */
bool hf_source_may_have(const hf_depot *depot, const hf_depot_slot *slot);
/* Reads the entry of a slot; hf_slot_loaded follows. False: no memory. */
bool hf_source_load(hf_depot *depot, hf_depot_slot *slot);
/* Writes depot->batch; each change is applied afterwards. */
void hf_source_commit(hf_depot *depot);
/* A request of the depot's own; its `done` posts. */
void hf_source_submit(hf_depot *depot, hf_store_request *request);
/* Reads the row of a slot for a change that is being decided; hf_changed_read follows, then hf_change_written. Fails:
 * HF_ERR_NOMEM. */
hf_status hf_source_reload(hf_depot *depot, hf_change *change);
/* changed.c: the row of the slot is this one. */
hf_status hf_changed_read(hf_depot *depot, hf_change *change, const hf_depot_entry *entry);
/* The same as hf_depot_source_open with functions of the user. */
hf_status hf_depot_source_hook(hf_op *op, hf_depot *depot, const hf_source_hooks *hooks);
/* With functions of the user: begins the fiber that calls them; ends it, after everything was written. */
hf_status hf_depot_source_start(hf_depot *depot);
void hf_depot_source_stop(hf_depot *depot);

/* ---- hooks.c ----------------------------------------------------------------------------------------------------- */

typedef struct hf_hooks hf_hooks;
hf_status hf_hooks_new(hf_op *op, hf_depot *depot, const hf_source_hooks *hooks, hf_hooks **ret_hooks);
/* A store that calls the functions, on the thread that uses it. */
hf_store *hf_hooks_store(hf_hooks *hooks);
hf_status hf_hooks_start(hf_hooks *hooks);
void hf_hooks_submit(hf_hooks *hooks, hf_store_request *request);
void hf_hooks_stop(hf_hooks *hooks);
void hf_hooks_free(hf_hooks *hooks); /* accepts NULL */

/* ---- door.c, look.c: for tools ----------------------------------------------------------------------------------- */

/* A fiber of the depot: answers tools on the socket beside its file. */
hf_status hf_depot_door(void *arg);
/* What hf_look_write_line reads. */
void hf_look_put_line(hf_buf *out, const hf_pending *row);

/* ---- row.c: records of the file ---------------------------------------------------------------------------------- */

void hf_row_put_entry(hf_buf *out, const hf_depot_entry *entry);
/* Takes references; false: the bytes are not an entry, or there is no memory (`*ret_no_memory`). */
bool hf_row_get_entry(hf_str bytes, hf_depot_entry *ret_entry, bool *ret_no_memory);
void hf_row_put_pending(hf_buf *out, hf_str key, const hf_pending *row);
bool hf_row_get_pending(hf_str bytes, hf_str *ret_key, hf_pending *ret_row, bool *ret_no_memory);
void hf_row_put_space(hf_buf *out, uint64_t generation, uint64_t hard);
bool hf_row_get_space(hf_str bytes, uint64_t *ret_generation, uint64_t *ret_hard);
void hf_row_put_alias(hf_buf *out, hf_str to, int64_t made_at);
/* The number from which on those of new writes begin. */
enum { HF_ROW_NUMBERS_LEN = 9 };
void hf_row_put_numbers(char ret_bytes[HF_ROW_NUMBERS_LEN], uint64_t next);
bool hf_row_get_numbers(hf_str bytes, uint64_t *ret_next);
bool hf_row_get_alias(hf_str bytes, hf_str *ret_to, int64_t *ret_made_at);

#endif
