/* Workflow ids: which run is the current one. If nobody has asked for an id yet it is looked for in the index of names, and the calls that need
 * it wait in order (engine-E3). */
#include "engine/load.h"

#include "base/canary.h"
#include "engine/core_private.h"
#include "engine/filter.h"
#include "engine/input.h"
#include "history/limits.h"

/* ---- Names in memory --------------------------------------------------------------------------------------------- */

static hf_name *name_find(hf_core *core, hf_str text, uint64_t hash)
{
    for (hf_map_node *node = hf_map_first(&core->names, hash); node != NULL; node = hf_map_next(node)) {
        hf_name *name = HF_CONTAINER(node, hf_name, by_text);
        if (hf_str_equal(hf_owned_str(&name->text), text)) {
            return name;
        }
    }
    return NULL;
}

hf_name *hf_name_add(hf_core *core, hf_str namespace_, hf_str workflow_id)
{
    char text[HF_NAME_TEXT_LEN];
    size_t len = 0;
    if (hf_name_text(namespace_, workflow_id, text, &len) != HF_OK) {
        hf_core_break(core, HF_ERR_TOO_BIG, "a workflow id is too long");
        return NULL;
    }
    uint64_t hash = (uint64_t)hf_name_hash(&core->index, hf_str_of_len(text, len));
    hf_name *name = name_find(core, hf_str_of_len(text, len), hash);
    if (name != NULL) {
        return name;
    }
    name = hf_core_alloc(core, sizeof *name);
    if (name == NULL) {
        return NULL;
    }
    hf_list_init(&name->waiting);
    hf_owned_set(&core->runs_memory, &name->text, hf_str_of_len(text, len));
    if (core->status != HF_OK || hf_map_insert(&core->names, &name->by_text, hash) != HF_OK) {
        hf_owned_free(&core->runs_memory, &name->text);
        hf_core_free_mem(core, name, sizeof *name);
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    name->fresh = true;
    return name;
}

void hf_name_drop(hf_core *core, hf_name *name)
{
    hf_assert(name->run == NULL || HF_SLOT(name->run)->name == name);
    if (core->status == HF_OK && name->run == NULL && !name->loading && hf_list_is_empty(&name->waiting)) {
        hf_map_remove(&core->names, &name->by_text);
        hf_owned_free(&core->runs_memory, &name->text);
        hf_core_free_mem(core, name, sizeof *name);
    }
}

void hf_name_bind(hf_name *name, hf_run *run)
{
    if (name->run != NULL) {
        HF_SLOT(name->run)->name = NULL;
    }
    if (HF_SLOT(run)->name != NULL) {
        HF_SLOT(run)->name->run = NULL;
    }
    hf_assert(!HF_SLOT(run)->loading);
    hf_assert(!HF_SLOT(run)->bad && !name->loading);
    name->run = run;
    HF_SLOT(run)->name = name;
}

hf_run *hf_name_current(hf_core *core, hf_str namespace_, hf_str workflow_id)
{
    char text[HF_NAME_TEXT_LEN];
    size_t len = 0;
    if (hf_name_text(namespace_, workflow_id, text, &len) != HF_OK) {
        return NULL;
    }
    hf_str name_text = hf_str_of_len(text, len);
    const hf_name *name = name_find(core, name_text, (uint64_t)hf_name_hash(&core->index, name_text));
    return name != NULL ? name->run : NULL;
}

void hf_name_succeed(hf_core *core, hf_run *run)
{
    hf_name *name = hf_name_add(core, hf_owned_str(&run->namespace), hf_owned_str(&run->workflow_id));
    if (name == NULL) {
        return;
    }
    name->fresh = false;
    if (name->loading) {
        name->newer = run->number;
        return;
    }
    name->bad_run = 0;
    hf_name_bind(name, run);
}

/* ---- The search -------------------------------------------------------------------------------------------------- */

/* The id is known: the calls that waited go on, in order. */
static void name_is_here(hf_core *core, hf_name *name)
{
    hf_assert(!name->loading);
    hf_node *node = NULL;
    while (core->status == HF_OK && !name->loading && (node = hf_list_pop_front(&name->waiting)) != NULL) {
        hf_input_name(core, HF_CONTAINER(node, hf_call, link), name);
    }
}

static void name_try(hf_core *core, hf_name *name, int64_t number);

/* Looks for the next run that may have the name. The part of the index that is in memory comes first: its runs are newer (ledger-N2). */
static void name_search(hf_core *core, hf_name *name)
{
    hf_assert(name->loading && !name->fresh);
    int64_t hash = (int64_t)name->by_text.hash;
    if (!name->in_table) {
        int64_t number = hf_names_below(&core->index, hash, name->below);
        if (number != 0) {
            name_try(core, name, number);
            return;
        }
        name->in_table = true;
        name->below = INT64_MAX;
    }
    hf_read *read = hf_read_new(core, HF_READ_NAME, HF_TABLE_NAME);
    if (read == NULL) {
        return;
    }
    read->name = name;
    name->deletes = core->index.deletes;
    read->request.key = (hf_key){.a = hash};
    read->request.key_end = (hf_key){.a = hash, .b = name->below};
    read->request.backwards = true;
    read->request.row_max = 1;
    hf_read_submit(core, read);
}

static bool has_name(const hf_run *run, const hf_name *name)
{
    if (run->is_nameless) {
        return false;
    }
    hf_str ns = hf_owned_str(&run->namespace);
    hf_str id = hf_owned_str(&run->workflow_id);
    hf_str text = hf_owned_str(&name->text);
    return text.len == ns.len + 1 + id.len && memcmp(text.data, ns.data, ns.len) == 0 &&
           memcmp(text.data + ns.len + 1, id.data, id.len) == 0;
}

/* While the name was looked for, another run of it has begun, which is newer than any run in the index. */
static void name_is_newer(hf_core *core, hf_name *name)
{
    hf_run *run = hf_run_find(core, name->newer);
    name->newer = 0;
    if (run == NULL || HF_SLOT(run)->loading || HF_SLOT(run)->bad) { /* it has left memory: the index has it by now */
        name->in_table = false;
        name->below = INT64_MAX;
        name_search(core, name);
        return;
    }
    name->loading = false;
    hf_name_bind(name, run);
    name_is_here(core, name);
}

void hf_name_check(hf_core *core, hf_name *name, hf_run *run)
{
    hf_assert(name->loading && !HF_SLOT(run)->loading);
    if (name->newer != 0) {
        name_is_newer(core, name);
        return;
    }
    if (HF_SLOT(run)->bad) { /* its name cannot be compared: the equal hash decides */
        name->loading = false;
        name->bad_run = run->number;
        name_is_here(core, name);
        return;
    }
    if (!has_name(run, name) && !HF_CANARY(HF_BUG_NAME_NOT_COMPARED)) {
        HF_PROBE(core, HF_PROBE_NAME_ALIKE);
        name_search(core, name);
        return;
    }
    name->loading = false;
    hf_name_bind(name, run);
    name_is_here(core, name);
}

static void name_try(hf_core *core, hf_name *name, int64_t number)
{
    hf_assert(name->loading && number < name->below); /* ledger-N2: from the newest to the oldest */
    name->below = number;
    hf_run *run = hf_run_load(core, number);
    if (run == NULL) {
        return;
    }
    if (HF_SLOT(run)->loading) {
        hf_list_push_back(&HF_SLOT(run)->wanted_as, &name->want_link);
    } else {
        hf_name_check(core, name, run);
    }
}

hf_name *hf_name_get(hf_core *core, hf_str namespace_, hf_str workflow_id)
{
    hf_name *name = hf_name_add(core, namespace_, workflow_id);
    if (name == NULL || !name->fresh) {
        return name;
    }
    name->fresh = false;
    if (!hf_filter_may_have(&core->filter, name->by_text.hash)) {
        HF_PROBE(core, HF_PROBE_NAME_FILTERED);
        return name;
    }
    name->loading = true;
    name->in_table = false;
    name->below = INT64_MAX;
    name_search(core, name);
    return core->status == HF_OK ? name : NULL;
}

void hf_name_read(hf_core *core, hf_read *read)
{
    hf_name *name = read->name;
    hf_assert(name->loading && name->in_table); /* ledger-N2: the names in memory came first */
    int64_t number = read->request.row_count > 0 ? read->request.rows[0].key.b : 0;
    if (name->newer != 0) {
        name_is_newer(core, name);
    } else if (number != 0 && name->deletes != core->index.deletes) { /* this row may be gone by now */
        HF_PROBE(core, HF_PROBE_NAME_STALE);
        name_search(core, name);
    } else if (number != 0 && hf_names_is_gone(&core->index, (int64_t)name->by_text.hash, number)) { /* ledger-N1 */
        HF_PROBE(core, HF_PROBE_NAME_GONE);
        name->below = number;
        name_search(core, name);
    } else if (number != 0) {
        name_try(core, name, number);
    } else {
        name->loading = false; /* no run has it */
        name_is_here(core, name);
    }
    hf_name_drop(core, name);
}
