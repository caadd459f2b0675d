#include "ledger/rows.h"

#include "base/crc32c.h"
#include "base/digest.h"
#include "history/history.h"

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

hf_status hf_run_row_read(hf_op *op, hf_run_memory *memory, hf_run *run, hf_str value, const hf_part_rows *parts,
                          bool *ret_wants_parts)
{
    hf_key key = {.a = run->number};
    hf_str body = {0};
    HF_TRY(hf_record_open(op, HF_TABLE_RUN, &key, value, &body));
    return hf_run_decode(op, memory, run, body, parts, ret_wants_parts);
}

void hf_parts_range(int64_t run, hf_key *ret_from, hf_key *ret_to)
{
    *ret_from = (hf_key){.a = run, .b = HF_PART_BASE};
    *ret_to = (hf_key){.a = run + 1};
}

hf_status hf_parts_open(hf_op *op, const hf_row *rows, size_t count, hf_arena *arena, hf_part_rows *ret_parts)
{
    *ret_parts = (hf_part_rows){.items = HF_ARENA_ARRAY(arena, hf_part_row, count)};
    if (ret_parts->items == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the state of a run");
    }
    for (; ret_parts->count < count; ret_parts->count++) {
        const hf_row *row = &rows[ret_parts->count];
        hf_part_row *part = &ret_parts->items[ret_parts->count];
        part->key = row->key.b - HF_PART_BASE;
        HF_TRY(hf_record_open(op, HF_TABLE_HISTORY, &row->key, row->value, &part->bytes));
    }
    return HF_OK;
}

static hf_status load_with_parts(hf_op *op, hf_store *store, hf_run_memory *memory, hf_run *run, hf_str value,
                                 hf_arena *arena)
{
    bool wants_parts = false;
    HF_TRY(hf_run_row_read(op, memory, run, value, NULL, &wants_parts));
    if (!wants_parts) {
        return HF_OK;
    }
    hf_store_request scan = {.verb = HF_STORE_SCAN, .table = HF_TABLE_HISTORY, .arena = arena};
    hf_parts_range(run->number, &scan.key, &scan.key_end);
    HF_TRY(hf_store_ask(op, store, &scan));
    hf_part_rows parts;
    HF_TRY(hf_parts_open(op, scan.rows, scan.row_count, arena, &parts));
    return hf_run_row_read(op, memory, run, value, &parts, &wants_parts);
}

hf_status hf_run_row_learn(hf_op *op, hf_run_memory *memory, hf_run *run, const hf_row *row)
{
    hf_assert(run->is_unlearned);
    hf_pb_history_record record;
    HF_TRY(hf_history_row_open(op, row, memory->scratch, &record));
    return hf_run_learn_late(op, memory, run, record.events);
}

static hf_status load_first(hf_op *op, hf_store *store, hf_run_memory *memory, hf_run *run, hf_arena *arena)
{
    hf_row row = {.key = {.a = run->number, .b = 1}};
    hf_store_request get = {.verb = HF_STORE_GET, .table = HF_TABLE_HISTORY, .key = row.key, .arena = arena};
    HF_TRY(hf_store_ask(op, store, &get));
    if (!get.found) {
        return hf_fail(op, HF_ERR_INVALID, "run %lld: its first event is missing", (long long)run->number);
    }
    row.value = get.value;
    return hf_run_row_learn(op, memory, run, &row);
}

hf_status hf_run_row_load(hf_op *op, hf_store *store, hf_run_memory *memory, hf_run *run, hf_str value)
{
    hf_arena arena;
    hf_arena_init(&arena, memory->heap);
    hf_status status = load_with_parts(op, store, memory, run, value, &arena);
    if (status == HF_OK && run->is_unlearned) {
        status = load_first(op, store, memory, run, &arena);
    }
    hf_arena_deinit(&arena);
    return status;
}

/* A row that cannot be decoded is damaged. The caller learns that from `*ret_is_good`, and the call itself succeeds. */
static hf_status judge(hf_op *op, hf_status status, const hf_op *bad, bool *ret_is_good)
{
    *ret_is_good = status == HF_OK;
    return status == HF_OK || status == HF_ERR_INVALID ? HF_OK : hf_fail(op, status, "%s", bad->message);
}

hf_status hf_run_row_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_run_state *ret_state, bool *ret_is_good)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_str body = {0};
    hf_status status = hf_record_open(&bad, HF_TABLE_RUN, &row->key, row->value, &body);
    status = status == HF_OK ? hf_pb_decode(&bad, &hf_pb_run_state_type, body, arena, ret_state) : status;
    return judge(op, status, &bad, ret_is_good);
}

hf_status hf_run_row_see(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_run_sight *ret_sight, bool *ret_is_good)
{
    hf_op bad;
    hf_op_init(&bad);
    hf_str body = {0};
    hf_status status = hf_record_open(&bad, HF_TABLE_RUN, &row->key, row->value, &body);
    status = status == HF_OK ? hf_pb_decode_some(&bad, &hf_pb_run_sight_type, body, arena, ret_sight) : status;
    return judge(op, status, &bad, ret_is_good);
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
    hf_key to = {.a = run->number, .b = HF_STREAM_BASE};
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

bool hf_queue_text(char kind, hf_str namespace_, hf_str name, char ret_text[HF_QUEUE_TEXT_LEN], size_t *ret_len)
{
    hf_assert(kind == 'w' || kind == 'a');
    if (namespace_.len > HF_ID_LEN_MAX || name.len > HF_ID_LEN_MAX) {
        return false;
    }
    size_t len = 0;
    ret_text[len++] = kind;
    memcpy(ret_text + len, namespace_.data != NULL ? namespace_.data : "", namespace_.len);
    len += namespace_.len;
    ret_text[len++] = '\x1f';
    memcpy(ret_text + len, name.data != NULL ? name.data : "", name.len);
    *ret_len = len + name.len;
    hf_assert(*ret_len <= HF_QUEUE_TEXT_LEN);
    return true;
}

void hf_task_delete(hf_writes *writes, hf_str queue, int64_t order)
{
    hf_assert(queue.len > 0);
    writes->held -= hf_str_equal(queue, HF_QUEUE_HELD) ? 1 : 0;
    hf_writes_delete(writes, HF_TABLE_TASK, (hf_key){hf_writes_copy(writes, queue), order, 0});
}

void hf_tasks_remove(hf_writes *writes, hf_run *run)
{
    for (size_t i = 0; i < run->rows_written.count; i++) {
        hf_task_key *key = &run->rows_written.items[i];
        hf_task_delete(writes, hf_owned_str(&key->queue), key->order);
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
    writes->held += hf_str_equal(queue, HF_QUEUE_HELD) ? 1 : 0;
    hf_writes_put_message(writes, HF_TABLE_TASK, (hf_key){hf_writes_copy(writes, queue), order, 0},
                          &hf_pb_task_record_type, record);
}

typedef struct parts_put {
    hf_writes *writes;
    const hf_run *run;
    size_t at; /* of run->parts: those before it are dealt with */
    hf_part_list parts;
} parts_put;

static hf_key part_key(const hf_run *run, int64_t key)
{
    return (hf_key){.a = run->number, .b = HF_PART_BASE + key};
}

static void delete_parts_before(parts_put *it, int64_t key)
{
    for (; it->at < it->run->parts.count && it->run->parts.items[it->at].key < key; it->at++) {
        hf_writes_delete(it->writes, HF_TABLE_HISTORY, part_key(it->run, it->run->parts.items[it->at].key));
    }
}

static void put_part(void *arg, int64_t key, hf_str bytes)
{
    parts_put *it = arg;
    delete_parts_before(it, key);
    const hf_part *before = it->at < it->run->parts.count ? &it->run->parts.items[it->at] : NULL;
    bool is_there = before != NULL && before->key == key;
    uint32_t crc = is_there && hf_part_is_final(key) ? before->crc : hf_crc32c(0, bytes.data, bytes.len);
    it->at += is_there ? 1 : 0;
    hf_assert(it->parts.count == 0 || it->parts.items[it->parts.count - 1].key < key); /* ledger-P1 */
    if (!HF_VEC_RESERVE(it->writes->memory, &it->parts)) {
        return;
    }
    it->parts.items[it->parts.count++] = (hf_part){key, crc};
    if (!is_there || before->crc != crc) {
        hf_buf *row = it->writes->row;
        row->len = 0;
        hf_buf_put(row, bytes.data, bytes.len);
        hf_writes_put_record(it->writes, HF_TABLE_HISTORY, part_key(it->run, key), row);
    }
}

void hf_parts_put(hf_writes *writes, hf_run *run)
{
    parts_put it = {.writes = writes, .run = run};
    size_t len_min = writes->memory->part_len_min;
    hf_run_each_part(run, len_min > 0 ? len_min : HF_PART_LEN_MIN, put_part, &it);
    delete_parts_before(&it, HF_PART_KEY_MAX);
    HF_VEC_FREE(writes->memory, &run->parts);
    run->parts = it.parts;
}

void hf_run_row_put(hf_writes *writes, const hf_run *run, hf_str tail)
{
    hf_assert(run->commit_last > 0); /* ledger-W2 */
    writes->row->len = 0;
    hf_run_encode(writes->memory, run, HF_ENCODE_ROW, tail, writes->row);
    hf_writes_put_record(writes, HF_TABLE_RUN, (hf_key){.a = run->number}, writes->row);
}
