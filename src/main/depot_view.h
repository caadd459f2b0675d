/* A depot's file, at rest or in use: one way to read its rows for both. */
#ifndef HF_MAIN_DEPOT_VIEW_H
#define HF_MAIN_DEPOT_VIEW_H

#include "base/json.h"
#include "depot/door.h"
#include "depot/look.h"
#include "main/tool.h"

typedef struct hf_depot_view {
    hf_env *env;
    const char *path;
    int64_t holder; /* process that has it open; 0 = none */
    bool is_owned;
    hf_peek peek; /* of a file at rest */
} hf_depot_view;

/* Opens the file for reading, or finds the program that has it open. `word`: FILE, or sqlite:FILE. Returns an exit code; a failure
 * was told. */
int hf_depot_view_open(hf_depot_view *view, const char *word);
void hf_depot_view_close(hf_depot_view *view);

/* Asks the owner: a verb and its arguments, as door.h has them. `take` gets each frame but the last. `*ret_more` (may be
 * NULL): there are others behind them. Fails: what the owner says; HF_ERR_CLOSED, HF_ERR_TIMEOUT, HF_ERR_INVALID. */
typedef void hf_depot_take(void *arg, const hf_door_frame *frame);
hf_status hf_depot_view_ask(hf_op *op, hf_depot_view *view, const char *request, hf_depot_take *take, void *arg,
                            bool *ret_more);

/* Calls `with` for the rows of a table from a key on, in order, until it returns false. */
typedef bool hf_depot_with_row(void *arg, const hf_row *row);
hf_status hf_depot_view_rows(hf_op *op, hf_depot_view *view, hf_table table, hf_key from, hf_depot_with_row *with,
                             void *arg);

/* depot.c: the parts of a key as members of an object. */
void hf_depot_put_key(hf_json *writer, const hf_depot_key *key);

#endif
