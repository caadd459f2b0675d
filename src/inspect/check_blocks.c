#include "inspect/check_blocks.h"

#include "ledger/blocks.h"
#include "ledger/rows.h"

#include <stdio.h>

typedef struct block_check {
    hf_allocator memory;
    hf_store *store;
    void (*found)(void *state, const char *sentence);
    void *state;
    int64_t first;
    const hf_pb_block_summary *summary;
    const hf_visible *runs; /* that have entries */
    size_t count, next;     /* of those; the next one that was not met */
    size_t other_next;
} block_check;

static void tell(block_check *c, int64_t run, const char *what)
{
    char sentence[200];
    (void)snprintf(sentence, sizeof sentence, "the block of the runs from %lld on: run %lld %s", (long long)c->first,
                   (long long)run, what);
    c->found(c->state, sentence);
}

static bool is_same(const hf_visible *a, const hf_visible *b)
{
    return hf_str_equal(a->namespace_, b->namespace_) && hf_str_equal(a->workflow_id, b->workflow_id) &&
           hf_str_equal(a->run_id, b->run_id) && hf_str_equal(a->workflow_type, b->workflow_type) &&
           hf_str_equal(a->task_queue, b->task_queue) && hf_str_equal(a->start, b->start) &&
           hf_str_equal(a->search_attributes, b->search_attributes) && a->kind == b->kind && a->status == b->status &&
           a->start_time == b->start_time && a->close_time == b->close_time && a->event_count == b->event_count &&
           a->history_len == b->history_len && a->transitions == b->transitions && a->is_nameless == b->is_nameless;
}

/* Compares an entry with the row of its run. */
static hf_status compare(hf_op *op, block_check *c, const hf_row *row, const hf_visible *entry, hf_arena *arena)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_pb_run_sight sight;
    hf_visible visible;
    bool is_good = false;
    HF_TRY(hf_run_row_see(op, row, arena, &sight, &is_good));
    if (!is_good) {
        return HF_OK; /* was reported */
    }
    if (hf_visible_of_sight(&sight, &visible)) {
        if (visible.is_hidden || !is_same(&visible, entry)) {
            tell(c, entry->number, "is not as its own row tells");
        }
        return HF_OK;
    }
    hf_run_memory memory = {.heap = c->memory, .scratch = arena};
    hf_run *run = hf_run_new(&memory, row->key.a);
    hf_status status = run != NULL ? hf_run_row_load(&bad, c->store, &memory, run, row->value) : HF_ERR_NOMEM;
    if (status == HF_OK) {
        visible = hf_visible_of_run(run, arena);
        if (visible.is_hidden || !is_same(&visible, entry)) {
            tell(c, entry->number, "is not as its own row tells");
        }
    }
    if (run != NULL) {
        hf_run_free(&memory, run);
    }
    return status == HF_ERR_NOMEM ? hf_fail(op, status, "out of memory") : HF_OK;
}

static void pass_entries(block_check *c, int64_t below)
{
    for (; c->next < c->count && c->runs[c->next].number < below; c->next++) {
        tell(c, c->runs[c->next].number, "has no row"); /* ledger-E1 */
    }
    const hf_pb_int64_list *others = &c->summary->others;
    while (c->other_next < others->count && others->items[c->other_next] < below) {
        c->other_next++; /* it may be gone, or have no row yet */
    }
}

static hf_status check_run_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    block_check *c = arg;
    pass_entries(c, row->key.a);
    bool is_entry = c->next < c->count && c->runs[c->next].number == row->key.a;
    bool is_other = c->other_next < c->summary->others.count && c->summary->others.items[c->other_next] == row->key.a;
    if (is_entry == is_other) { /* ledger-E1 */
        tell(c, row->key.a, is_entry ? "is in it, and among the others" : "is not in it");
    }
    c->next += is_entry ? 1 : 0;
    return is_entry ? compare(op, c, row, &c->runs[c->next - 1], arena) : HF_OK;
}

/* ledger-E2: the summary is made again of the entries. */
static hf_status check_summary(hf_op *op, block_check *c, hf_str body)
{
    hf_block_maker maker;
    hf_buf block;
    hf_buf summary;
    hf_buf_init(&block, c->memory, SIZE_MAX / 4);
    hf_buf_init(&summary, c->memory, SIZE_MAX / 4);
    hf_block_begin(&maker, c->memory, c->first, c->summary->end);
    for (size_t i = 0; i < c->count; i++) {
        if (!hf_block_add(&maker, &c->runs[i]) && maker.arena.status == HF_OK) {
            tell(c, c->runs[i].number, "does not belong there");
        }
    }
    for (size_t i = 0; i < c->summary->others.count; i++) {
        hf_block_add_other(&maker, c->summary->others.items[i]);
    }
    hf_status status = hf_block_finish(&maker, c->summary->commit, &block, &summary);
    if (status == HF_OK && !hf_str_equal(hf_str_of_len(summary.data, summary.len), body)) {
        char sentence[200];
        (void)snprintf(sentence, sizeof sentence, "the summary of the runs from %lld on is not that of its block",
                       (long long)c->first);
        c->found(c->state, sentence);
    }
    hf_block_deinit(&maker);
    hf_buf_deinit(&block);
    hf_buf_deinit(&summary);
    return status == HF_OK ? HF_OK : hf_fail(op, status, "out of memory");
}

static hf_status check_block(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    block_check *c = arg;
    hf_op bad;
    hf_op_init(&bad);
    hf_pb_block_summary summary;
    hf_str body = {0};
    hf_visible *runs = NULL;
    size_t count = 0;
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_BLOCK, .key = row->key, .arena = arena};
    HF_TRY(hf_store_ask(op, c->store, &get));
    c->first = row->key.a;
    if (!get.found) { /* ledger-E3 */
        tell(c, c->first, "and its neighbours have a summary, but no block");
        return HF_OK;
    }
    hf_row block = {row->key, get.value};
    hf_status status = hf_summary_open(&bad, row, arena, &summary);
    status = status == HF_OK ? hf_record_open(&bad, HF_TABLE_SUMMARY, &row->key, row->value, &body) : status;
    status = status == HF_OK ? hf_block_open(&bad, &block, &summary, arena, &runs, &count) : status;
    if (status != HF_OK) {
        if (status != HF_ERR_INVALID) {
            return hf_fail(op, status, "%s", bad.message);
        }
        c->found(c->state, bad.message);
        return HF_OK;
    }
    c->summary = &summary;
    c->runs = runs;
    c->count = count;
    c->next = c->other_next = 0;
    hf_key from = {.a = c->first};
    hf_key to = {.a = summary.end};
    HF_TRY(hf_store_each_row(op, c->store, c->memory, HF_TABLE_RUN, &from, &to, check_run_row, c));
    pass_entries(c, summary.end);
    hf_assert(c->next == c->count); /* inspect-K5: every entry was compared */
    return check_summary(op, c, body);
}

static hf_status check_has_summary(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    block_check *c = arg;
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_SUMMARY, .key = row->key, .arena = arena};
    HF_TRY(hf_store_ask(op, c->store, &get));
    c->first = row->key.a;
    if (!get.found) { /* ledger-E3 */
        tell(c, c->first, "and its neighbours have a block, but no summary");
    }
    return HF_OK;
}

hf_status hf_check_blocks(hf_op *op, hf_allocator memory, hf_store *store,
                          void (*found)(void *state, const char *sentence), void *state)
{
    block_check c = {.memory = memory, .store = store, .found = found, .state = state};
    HF_TRY(hf_store_each_row(op, store, memory, HF_TABLE_SUMMARY, NULL, NULL, check_block, &c));
    return hf_store_each_row(op, store, memory, HF_TABLE_BLOCK, NULL, NULL, check_has_summary, &c);
}
