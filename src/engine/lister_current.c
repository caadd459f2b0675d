/* Lists of current runs: which runs are the current ones of their workflow ids (engine-S4). On the core's thread the names that are in no row are copied
 * when the list begins; on the store's thread each run that fits is looked up there, and in the table of names. The copy comes first: names only
 * move from memory to the table, so none is missed. */
#include "engine/lister.h"

#include "ledger/rows.h"

#include <stdlib.h>

static int compare_entries(const void *a, const void *b)
{
    const hf_name_entry *x = a;
    const hf_name_entry *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash) : (x->run > y->run) - (x->run < y->run);
}

static int64_t hash_of(const hf_list_work *work, const hf_visible *run, bool is_whole)
{
    char text[HF_NAME_TEXT_LEN];
    size_t len = 0;
    if (hf_name_text(run->namespace_, run->workflow_id, text, &len) != HF_OK) {
        return 0;
    }
    hf_str name = hf_str_of_len(text, len);
    return is_whole ? (int64_t)(hf_siphash(work->mac_key, name) >> (64 - HF_NAME_BITS))
                    : hf_name_hash_by(work->mac_key, work->bits_off, name);
}

/* ---- The core's thread --------------------------------------------------------------------------------------------------- */

void hf_list_note_names(hf_core *core, hf_list_work *work)
{
    memcpy(work->mac_key, core->mac_key, sizeof work->mac_key);
    work->bits_off = core->options.name_bits_off;
    work->names = HF_ARENA_ARRAY(&work->arena, hf_name_entry, core->index.count + 1);
    if (work->names == NULL) {
        return;
    }
    work->name_count = hf_names_copy(&core->index, work->names);
    hf_assert(work->name_count <= core->index.count);
    size_t room = 0;
    HF_LIST_EACH(node, &core->dirty)
    {
        room += HF_CONTAINER(node, hf_slot, dirty_link)->run.is_written ? 0 : 1;
    }
    work->fresh = HF_ARENA_ARRAY(&work->arena, hf_name_entry, room + 1);
    if (work->fresh == NULL) {
        return;
    }
    HF_LIST_EACH(node, &core->dirty)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, dirty_link)->run;
        if (!run->is_written && run->event_count > 0) {
            hf_visible visible = {.namespace_ = hf_owned_str(&run->namespace),
                                  .workflow_id = hf_owned_str(&run->workflow_id)};
            work->fresh[work->fresh_count++] = (hf_name_entry){hash_of(work, &visible, true), run->number};
        }
    }
    qsort(work->fresh, work->fresh_count, sizeof *work->fresh, compare_entries);
}

/* ---- The store's thread -------------------------------------------------------------------------------------------------- */

/* The first entry behind (hash, run). */
static size_t behind(const hf_name_entry *entries, size_t count, int64_t hash, int64_t run)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int64_t it = hf_name_entry_hash(&entries[middle]);
        if (it < hash || (it == hash && entries[middle].run <= run)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Whether the row of this run has the same name: hashes may be alike. A run that is not there any more has none. If its row is damaged the equal
 * hash decides, as it does for calls (hf_name_check). If it cannot be read, the list fails or is out of memory. */
static bool has_name_of(hf_list_work *work, int64_t number, const hf_visible *run)
{
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_RUN, .key = {.a = number}, .arena = &work->scratch};
    if (!hf_list_ask(work, &get) || !get.found) {
        return false;
    }
    hf_pb_run_state state;
    hf_row row = {get.key, get.value};
    bool is_good = false;
    hf_op op;
    hf_op_init(&op);
    if (hf_run_row_open(&op, &row, &work->scratch, &state, &is_good) != HF_OK) {
        return false; /* no memory: the scratch arena remembers it */
    }
    return !is_good ||
           (hf_str_equal(state.workflow_id, run->workflow_id) && hf_str_equal(state.namespace, run->namespace_));
}

static bool is_in_table(hf_list_work *work, int64_t hash, const hf_visible *run)
{
    int64_t from = run->number + 1;
    while (from < work->bound_number) {
        hf_store_request scan = {
            .verb = HF_STORE_SCAN,
            .table = HF_TABLE_NAME,
            .key = {.a = hash, .b = from},
            .key_end = {.a = hash, .b = work->bound_number},
            .row_max = 1,
            .arena = &work->scratch,
        };
        if (!hf_list_ask(work, &scan) || scan.row_count == 0) {
            return false;
        }
        if (has_name_of(work, scan.rows[0].key.b, run)) {
            return true;
        }
        from = scan.rows[0].key.b + 1;
    }
    return false;
}

bool hf_list_is_current(hf_list_work *work, const hf_visible *run)
{
    hf_assert(work->is_current && work->store != NULL);
    work->looked_up++;
    if (run->is_nameless || run->number >= work->bound_number) {
        return false; /* a newer one was deleted, and the id leads to nothing; or it began after the list */
    }
    int64_t whole = hash_of(work, run, true);
    size_t at = behind(work->fresh, work->fresh_count, whole, run->number);
    if (at < work->fresh_count && work->fresh[at].hash == whole && work->fresh[at].run < work->bound_number) {
        return false;
    }
    int64_t hash = hash_of(work, run, false);
    for (at = behind(work->names, work->name_count, hash, run->number);
         at < work->name_count && hf_name_entry_hash(&work->names[at]) == hash &&
         work->names[at].run < work->bound_number;
         at++) {
        if (has_name_of(work, work->names[at].run, run)) {
            return false;
        }
    }
    return !is_in_table(work, hash, run);
}
