#include "ledger/rows.h"

#include "base/digest.h"
#include "history/history.h"

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

hf_status hf_run_row_read(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str value)
{
    hf_key key = {.a = run->number};
    hf_str body = {0};
    HF_TRY(hf_record_open(op, HF_TABLE_RUN, &key, value, &body));
    return hf_run_decode(op, memory, run, body);
}

hf_status hf_run_row_learn(hf_op *op, hf_run_memory *memory, hf_run *run, const hf_row *row)
{
    hf_assert(run->is_unlearned);
    hf_pb_history_record record;
    HF_TRY(hf_history_row_open(op, row, memory->scratch, &record));
    return hf_run_learn_late(op, memory, run, record.events);
}

hf_status hf_run_row_load(hf_op *op, hf_store *store, hf_run_memory *memory, hf_run *run, hf_str value)
{
    HF_TRY(hf_run_row_read(op, memory, run, value));
    if (!run->is_unlearned) {
        return HF_OK;
    }
    hf_arena arena;
    hf_arena_init(&arena, memory->heap);
    hf_row row = {.key = {.a = run->number, .b = 1}};
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_HISTORY, .key = row.key, .arena = &arena};
    hf_status status = hf_store_ask(op, store, &get);
    if (status == HF_OK && !get.found) {
        status = hf_fail(op, HF_ERR_INVALID, "run %lld: its first event is missing", (long long)run->number);
    }
    if (status == HF_OK) {
        row.value = get.value;
        status = hf_run_row_learn(op, memory, run, &row);
    }
    hf_arena_deinit(&arena);
    return status;
}

hf_status hf_run_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_run_state *ret_state, bool *ret_is_good)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_str body = {0};
    hf_status status = hf_record_open(&bad, HF_TABLE_RUN, &row->key, row->value, &body);
    status = status == HF_OK ? hf_pb_decode(&bad, &hf_pb_run_state_type, body, arena, ret_state) : status;
    *ret_is_good = status == HF_OK;
    return status == HF_OK || status == HF_ERR_INVALID ? HF_OK : hf_fail(op, status, "%s", bad.message);
}

hf_status hf_task_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_task_record *ret_record)
{
    hf_str body = {0};
    HF_TRY(hf_record_open(op, HF_TABLE_TASK, &row->key, row->value, &body));
    return hf_pb_decode(op, &hf_pb_task_record_type, body, arena, ret_record);
}

hf_status hf_history_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_history_record *ret_record)
{
    hf_str body = {0};
    HF_TRY(hf_record_open(op, HF_TABLE_HISTORY, &row->key, row->value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_history_record_type, body, arena, ret_record));
    if (ret_record->first_id != row->key.b || ret_record->last_id < ret_record->first_id ||
        !hf_run_is_number(ret_record->last_id)) { /* so that a next id exists */
        return hf_fail(op, HF_ERR_INVALID, "run %lld: the history row of event %lld holds other events",
                       (long long)row->key.a, (long long)row->key.b);
    }
    return HF_OK;
}

typedef struct history_walk {
    int64_t last_id;      /* of the rows so far */
    uint64_t chain_after; /* of those */
    hf_buf *out;
} history_walk;

static hf_status add_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    history_walk *walk = arg;
    hf_pb_history_record record;
    HF_TRY(hf_history_row_open(op, row, arena, &record));
    if (record.first_id != walk->last_id + 1) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: event %lld is missing", (long long)row->key.a,
                       (long long)walk->last_id + 1);
    }
    if (record.chain_before != walk->chain_after) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: the hash chain is broken at event %lld", (long long)row->key.a,
                       (long long)record.first_id);
    }
    hf_buf_put(walk->out, record.events.data, record.events.len);
    walk->last_id = record.last_id;
    walk->chain_after = record.chain_after;
    return HF_OK;
}

hf_status hf_history_read(hf_op *op, hf_store *store, const hf_run *run, hf_allocator memory, hf_buf *out)
{
    history_walk walk = {.out = out};
    hf_key from = {.a = run->number};
    hf_key to = {.a = run->number + 1};
    HF_TRY(hf_store_each_row(op, store, memory, HF_TABLE_HISTORY, &from, &to, add_row, &walk));
    if (walk.last_id != run->spilled || walk.chain_after != run->spilled_chain) {
        return hf_fail(op, HF_ERR_INVALID,
                       "run %lld: its row says that the history rows end with event %lld, but they end with %lld or "
                       "with another hash",
                       (long long)run->number, (long long)run->spilled, (long long)walk.last_id);
    }
    hf_log_events(run, run->spilled + 1, run->event_count, out);
    return out->status == HF_OK ? HF_OK : hf_fail(op, out->status, "no memory for a history");
}

/* ---- Writing ------------------------------------------------------------------------------------------------------------ */

/* Takes events off `*events` for one row. */
static void put_history_row(hf_writes *writes, hf_run *run, hf_str *events, size_t row_len_max)
{
    hf_pb_history_record record = {
        .first_id = run->spilled + 1,
        .last_id = run->spilled,
        .chain_before = run->spilled_chain,
        .chain_after = run->spilled_chain,
    };
    hf_str rest = *events;
    hf_str bytes = {0};
    do {
        hf_assert(hf_history_next(&rest, &bytes)); /* this process has encoded it */
        record.chain_after = hf_digest(record.chain_after, bytes);
        record.last_id++;
    } while (rest.len > 0 && events->len - rest.len < row_len_max);
    record.events = hf_str_of_len(events->data, events->len - rest.len);
    hf_writes_put_message(writes, HF_TABLE_HISTORY, (hf_key){.a = run->number, .b = record.first_id},
                          &hf_pb_history_record_type, &record);
    run->spilled = record.last_id;
    run->spilled_chain = record.chain_after;
    run->spilled_len += (int64_t)record.events.len;
    *events = rest;
}

void hf_history_put(hf_writes *writes, hf_run *run, hf_str events, size_t row_len_max)
{
    while (events.len > 0) {
        put_history_row(writes, run, &events, row_len_max);
    }
    hf_assert(run->spilled == run->event_count && run->spilled_chain == run->chain); /* ledger-H1 */
}

bool hf_due_put(hf_writes *writes, hf_run *run, int64_t due)
{
    int64_t key = due == INT64_MAX ? 0 : due;
    if (key == run->due_written) {
        return false;
    }
    if (run->due_written != 0) {
        hf_writes_delete(writes, HF_TABLE_DUE, (hf_key){.a = run->due_written, .b = run->number});
    }
    if (key != 0) {
        hf_writes_put_key(writes, HF_TABLE_DUE, (hf_key){.a = key, .b = run->number});
    }
    run->due_written = key; /* ledger-W3 */
    return key != 0;
}

void hf_tasks_remove(hf_writes *writes, hf_run *run)
{
    for (size_t i = 0; i < run->rows_written.count; i++) {
        hf_task_key *key = &run->rows_written.items[i];
        hf_str queue = hf_writes_copy(writes, hf_owned_str(&key->queue));
        hf_writes_delete(writes, HF_TABLE_TASK, (hf_key){queue, key->order, 0});
        hf_owned_free(writes->memory, &key->queue);
    }
    run->rows_written.count = 0;
}

void hf_task_put(hf_writes *writes, hf_run *run, hf_str queue, int64_t order, const hf_pb_task_record *record)
{
    hf_assert(record->run == run->number && queue.len > 0);
    if (!HF_VEC_RESERVE(writes->memory, &run->rows_written)) {
        return;
    }
    hf_task_key *key = &run->rows_written.items[run->rows_written.count++];
    *key = (hf_task_key){.order = order};
    hf_owned_set(writes->memory, &key->queue, queue); /* ledger-W3: the run remembers its rows */
    hf_writes_put_message(writes, HF_TABLE_TASK, (hf_key){hf_writes_copy(writes, queue), order, 0},
                          &hf_pb_task_record_type, record);
}

void hf_run_row_put(hf_writes *writes, const hf_run *run, hf_str tail)
{
    hf_assert(run->commit_last > 0); /* ledger-W2 */
    writes->row->len = 0;
    hf_run_encode(writes->memory, run, true, tail, writes->row);
    hf_writes_put_record(writes, HF_TABLE_RUN, (hf_key){.a = run->number}, writes->row);
}
