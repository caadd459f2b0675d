#include "inspect/find.h"

#include "ledger/meta.h"
#include "ledger/namespaces.h"
#include "ledger/operations.h"
#include "run/visible.h"

#include <stdlib.h>

/* ---- Namespaces ---------------------------------------------------------------------------------------------------------- */

typedef struct naming {
    hf_find_namespace *visit;
    void *arg;
    bool has_default;
} naming;

static hf_status name_one(hf_op *op, void *arg, const hf_pb_namespace_record *record)
{
    const naming *self = arg;
    (void)op;
    if (!hf_str_equal(record->name, HF_STR("default"))) {
        self->visit(self->arg, record);
    }
    return HF_OK;
}

static hf_status name_default(hf_op *op, void *arg, const hf_pb_namespace_record *record)
{
    naming *self = arg;
    (void)op;
    if (hf_str_equal(record->name, HF_STR("default"))) {
        self->has_default = true;
        self->visit(self->arg, record);
    }
    return HF_OK;
}

/* Those that have a row, and "default". */
static hf_status name_rows(hf_op *op, hf_store *store, hf_allocator memory, hf_find_namespace *visit, void *arg)
{
    static const hf_pb_namespace_record DEFAULT = {.name = HF_STR_INIT("default"),
                                                   .state = HF_NAMESPACE_STATE_REGISTERED};
    naming self = {visit, arg, false};
    HF_TRY(hf_namespace_rows_read(op, store, memory, name_default, &self));
    if (!self.has_default) {
        visit(arg, &DEFAULT);
    }
    return hf_namespace_rows_read(op, store, memory, name_one, &self);
}

/* Whether the file is older than the registry of namespaces, and no program has opened it since. */
static hf_status has_no_registry(hf_op *op, hf_store *store, hf_allocator memory, bool *ret_has_none)
{
    hf_arena arena;
    hf_meta meta = {0};
    bool is_found = false;
    hf_arena_init(&arena, memory);
    hf_status status = hf_meta_read(op, store, &arena, &meta, &is_found);
    *ret_has_none = status == HF_OK && is_found && meta.namespaces != HF_META_NAMESPACES;
    hf_arena_deinit(&arena);
    return status;
}

/* The names that its runs use: the next opening registers them. */
typedef struct learning {
    hf_arena arena;
    hf_str *names;
    size_t count, room;
    hf_find_told *progress;
    uint64_t looked;
} learning;

static void note_look(learning *self)
{
    self->looked++;
    if (self->progress != NULL && self->looked % HF_FIND_TOLD == 0) {
        self->progress(self->looked);
    }
}

static void learn(learning *self, hf_str name)
{
    for (size_t i = 0; i < self->count; i++) {
        if (hf_str_equal(self->names[i], name)) {
            return;
        }
    }
    if (self->count == self->room) {
        size_t room = self->room > 0 ? 2 * self->room : 16;
        hf_str *names = HF_ARENA_ARRAY(&self->arena, hf_str, room);
        if (names == NULL) {
            return;
        }
        if (self->count > 0) {
            memcpy(names, self->names, self->count * sizeof *names);
        }
        self->names = names;
        self->room = room;
    }
    hf_assert(self->count < self->room);
    self->names[self->count++] = hf_arena_copy(&self->arena, name);
}

static hf_status learn_all(hf_op *op, hf_look *look, hf_allocator memory, learning *self)
{
    hf_arena arena;
    hf_status status = HF_OK;
    int64_t before = INT64_MAX;
    bool goes_on = true;
    hf_arena_init(&arena, memory);
    while (goes_on && status == HF_OK) {
        hf_pb_admin_run_list page = {0};
        hf_arena_reset(&arena);
        status = hf_look_page(op, look, before, 1000, &arena, &page);
        goes_on = page.count > 0;
        for (size_t i = 0; status == HF_OK && i < page.count; i++) {
            before = page.items[i].number;
            note_look(self);
            if (page.items[i].damage.len == 0 && !hf_str_equal(page.items[i].namespace, HF_STR("default"))) {
                learn(self, page.items[i].namespace);
            }
        }
    }
    hf_arena_deinit(&arena);
    HF_TRY(status);
    return self->arena.status == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for the names of namespaces");
}

static hf_status name_used(hf_op *op, hf_store *store, hf_allocator memory, hf_find_namespace *visit, void *arg,
                           hf_find_told *progress)
{
    learning self = {.progress = progress};
    hf_look *look = NULL;
    hf_arena_init(&self.arena, memory);
    hf_status status = hf_look_open(op, memory, store, &look);
    status = status == HF_OK ? learn_all(op, look, memory, &self) : status;
    for (size_t i = self.count; status == HF_OK && i > 0; i--) { /* the newest runs came first */
        visit(arg, &(hf_pb_namespace_record){.name = self.names[i - 1], .state = HF_NAMESPACE_STATE_REGISTERED});
    }
    hf_look_close(look);
    hf_arena_deinit(&self.arena);
    return status;
}

hf_status hf_find_namespaces(hf_op *op, hf_store *store, hf_allocator memory, hf_find_namespace *visit, void *arg,
                             hf_find_told *progress)
{
    bool has_none = false;
    HF_TRY(name_rows(op, store, memory, visit, arg));
    HF_TRY(has_no_registry(op, store, memory, &has_none));
    return has_none ? name_used(op, store, memory, visit, arg, progress) : HF_OK;
}

/* ---- What is looked for -------------------------------------------------------------------------------------------------- */

/* A run that waits for its place in the order. */
typedef struct kept {
    hf_str key;
    hf_visible run;
} kept;

typedef struct finding {
    hf_find *find;
    hf_where where;
    hf_arena arena;   /* filter, attributes, kept runs */
    hf_arena scratch; /* of one run */
    hf_buf key;
    hf_pb_search_attribute_record *attributes;
    size_t attribute_count;
    bool is_known; /* the namespace has a row, or runs */
    bool is_going; /* it is being deleted, with its runs: the service does not know it any more */
    kept *runs;
    size_t count, room;
    uint64_t visited;
    bool is_over;
} finding;

static void take_namespace(void *arg, const hf_pb_namespace_record *record)
{
    finding *self = arg;
    if (!hf_str_equal(record->name, self->find->namespace_)) {
        return;
    }
    self->is_known = true;
    self->is_going = record->state == HF_NAMESPACE_STATE_DELETED;
    self->attributes = HF_ARENA_ARRAY(&self->arena, hf_pb_search_attribute_record, record->attributes.count);
    for (size_t i = 0; self->attributes != NULL && i < record->attributes.count; i++) {
        self->attributes[self->attribute_count++] =
            (hf_pb_search_attribute_record){.name = hf_arena_copy(&self->arena, record->attributes.items[i].name),
                                            .type = record->attributes.items[i].type};
    }
}

static bool find_attribute(const void *state, hf_str name, hf_attr_type *ret_type)
{
    const finding *self = state;
    for (size_t i = 0; i < self->attribute_count; i++) {
        int32_t type = self->attributes[i].type;
        if (hf_str_equal(self->attributes[i].name, name) && type >= HF_ATTR_TEXT && type <= HF_ATTR_TYPE_LAST) {
            *ret_type = (hf_attr_type)type;
            return true;
        }
    }
    return false;
}

/* ---- Runs ---------------------------------------------------------------------------------------------------------------- */

static void show(finding *self, const hf_visible *run)
{
    hf_pb_workflow_execution_info info;
    hf_visible_show(run, &self->scratch, &info);
    if (self->scratch.status == HF_OK) {
        self->visited++;
        self->is_over =
            !self->find->visit(self->find->arg, &info) || (self->find->limit > 0 && self->visited == self->find->limit);
    }
}

static void keep(finding *self, const hf_visible *run)
{
    if (self->count == self->room) {
        size_t room = self->room > 0 ? 2 * self->room : 64;
        kept *runs = HF_ARENA_ARRAY(&self->arena, kept, room);
        if (runs == NULL) {
            return;
        }
        if (self->count > 0) {
            memcpy(runs, self->runs, self->count * sizeof *runs);
        }
        self->runs = runs;
        self->room = room;
    }
    hf_assert(self->count < self->room);
    self->runs[self->count++] = (kept){hf_arena_copy(&self->arena, hf_str_of_len(self->key.data, self->key.len)),
                                       hf_visible_copy(&self->arena, run)};
}

static void take(finding *self, const hf_visible *run)
{
    hf_visible_row row = {.run = run, .arena = &self->scratch};
    if (!hf_str_equal(run->namespace_, self->find->namespace_) || run->is_hidden || run->kind != HF_KIND_WORKFLOW) {
        return;
    }
    self->is_known = true;
    if (!hf_where_fits(&self->where, hf_visible_get, &row)) {
        return;
    }
    hf_assert(run->status >= 0);
    self->find->counts[run->status < HF_FIND_STATUS_COUNT ? run->status : 0]++;
    if (self->find->visit != NULL && self->where.order_count == 0) {
        show(self, run);
    } else if (self->find->visit != NULL) {
        self->key.len = 0;
        hf_where_sort_key(&self->where, hf_visible_get, &row, &self->key);
        keep(self, run);
    }
}

/* A run was looked at. Without memory for that it may have been left out: then there is no list. */
static hf_status status_of(hf_op *op, finding *self)
{
    hf_arena_rewind(&self->scratch);
    return self->arena.status != HF_OK || self->key.status != HF_OK || self->scratch.status != HF_OK
               ? hf_fail(op, HF_ERR_NOMEM, "no memory for a list of runs")
               : HF_OK;
}

static int compare(const void *a, const void *b)
{
    const kept *x = a;
    const kept *y = b;
    int order = hf_str_compare(x->key, y->key);
    return order != 0 ? order : (x->run.number < y->run.number) - (x->run.number > y->run.number);
}

/* Newest first. */
static hf_status walk(hf_op *op, finding *self, hf_look *look)
{
    int64_t number = INT64_MAX;
    for (uint64_t looked = 1;; looked++) {
        HF_TRY(hf_look_before(op, look, number, &number));
        if (number == 0 || self->is_over) {
            return HF_OK;
        }
        if (self->find->progress != NULL && looked % HF_FIND_TOLD == 0) {
            self->find->progress(looked);
        }
        hf_op bad;
        hf_op_init(&bad);
        hf_run *run = NULL;
        hf_status status = hf_look_run(&bad, look, number, &run);
        if (status == HF_OK) {
            hf_visible visible = hf_visible_of_run(run, &self->scratch);
            take(self, &visible);
            hf_look_run_free(look, run);
        } else if (status == HF_ERR_INVALID) {
            self->find->damaged++;
        } else if (status != HF_ERR_NOT_FOUND) {
            return hf_fail(op, status, "%s", bad.message);
        }
        HF_TRY(status_of(op, self));
    }
}

static hf_status fail_unknown(hf_op *op, const hf_find *find)
{
    return hf_fail(op, HF_ERR_NOT_FOUND, "there is no namespace '%.*s': register it first",
                   HF_STR_ARGS(find->namespace_));
}

static hf_status search(hf_op *op, finding *self, hf_look *look, hf_store *store, hf_allocator memory)
{
    const hf_find *find = self->find;
    bool has_none = false;
    HF_TRY(name_rows(op, store, memory, take_namespace, self));
    HF_TRY(has_no_registry(op, store, memory, &has_none));
    if (self->is_going || (!self->is_known && !has_none)) {
        return fail_unknown(op, find); /* without a look at a million runs */
    }
    HF_TRY(hf_where_parse(op, find->query, find->visit != NULL ? HF_WHERE_MAY_ORDER : HF_WHERE_MAY_GROUP,
                          find_attribute, self, &self->arena, &self->where, NULL));
    HF_TRY(walk(op, self, look));
    if (!self->is_known) {
        return fail_unknown(op, find);
    }
    if (self->count > 0) {
        qsort(self->runs, self->count, sizeof *self->runs, compare);
    }
    for (size_t i = 0; i < self->count && !self->is_over; i++) {
        show(self, &self->runs[i].run);
        HF_TRY(status_of(op, self));
    }
    return HF_OK;
}

hf_status hf_find_runs(hf_op *op, hf_look *look, hf_store *store, hf_allocator memory, hf_find *find)
{
    finding self = {.find = find};
    hf_arena_init(&self.arena, memory);
    hf_arena_init(&self.scratch, memory);
    hf_buf_init(&self.key, memory, HF_WHERE_LEN_MAX);
    memset(find->counts, 0, sizeof find->counts);
    find->damaged = 0;
    hf_status status = search(op, &self, look, store, memory);
    hf_arena_deinit(&self.arena);
    hf_arena_deinit(&self.scratch);
    hf_buf_deinit(&self.key);
    return status;
}

/* ---- Operations ---------------------------------------------------------------------------------------------------------- */

const char *hf_find_operation_state(const hf_pb_operation_record *record)
{
    return record->state == HF_OPERATION_COMPLETED ? "Completed"
           : record->state == HF_OPERATION_STOPPED ? "Failed" /* as a service tells it */
           : record->state == HF_OPERATION_FAILED  ? "Failed"
                                                   : "Running";
}

static hf_status visit_operation(hf_op *op, hf_look *look, hf_arena *arena, const hf_pb_operation_record *record,
                                 hf_find_operation *visit, void *arg)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_run *run = NULL;
    hf_pb_operation_start start;
    hf_pb_start_batch_operation_request request;
    hf_pb_operation_progress progress;
    bool is_read =
        hf_look_run(&bad, look, record->run, &run) == HF_OK && run->kind == HF_KIND_OPERATION &&
        hf_pb_decode(&bad, &hf_pb_operation_start_type, hf_owned_str(&run->operation), arena, &start) == HF_OK &&
        hf_pb_decode(&bad, &hf_pb_start_batch_operation_request_type, start.request, arena, &request) == HF_OK &&
        hf_pb_decode(&bad, &hf_pb_operation_progress_type, hf_owned_str(&run->progress), arena, &progress) == HF_OK;
    bool is_short = bad.status == HF_ERR_NOMEM;
    if (!is_short) {
        visit(arg, record, is_read ? &request : NULL, is_read ? &progress : NULL);
    }
    hf_look_run_free(look, run);
    return is_short ? hf_fail(op, HF_ERR_NOMEM, "%s", bad.message) : HF_OK;
}

typedef struct sought {
    hf_str name;
    bool is_there;
} sought;

static void seek(void *arg, const hf_pb_namespace_record *record)
{
    sought *self = arg;
    self->is_there = self->is_there || hf_str_equal(record->name, self->name);
}

hf_status hf_find_namespace_of(hf_op *op, hf_store *store, hf_allocator memory, hf_str name, bool *ret_is_there,
                               hf_find_told *progress)
{
    sought self = {.name = name};
    HF_TRY(hf_find_namespaces(op, store, memory, seek, &self, progress));
    *ret_is_there = self.is_there;
    return HF_OK;
}

hf_status hf_find_operations(hf_op *op, hf_look *look, hf_store *store, hf_allocator memory, hf_str namespace_,
                             hf_find_operation *visit, void *arg)
{
    hf_row *rows = NULL;
    size_t count = 0;
    hf_arena all;
    hf_arena one;
    hf_arena_init(&all, memory);
    hf_arena_init(&one, memory);
    hf_status status = hf_operation_scan(op, store, &all, &rows, &count);
    for (size_t i = count; status == HF_OK && i > 0; i--) {
        hf_pb_operation_record record;
        hf_arena_reset(&one);
        status = hf_operation_row_open(op, &rows[i - 1], &one, &record);
        if (status == HF_OK && hf_str_equal(record.namespace, namespace_) && !record.purges) {
            status = visit_operation(op, look, &one, &record, visit, arg);
        }
    }
    hf_arena_deinit(&all);
    hf_arena_deinit(&one);
    return status;
}
