/* The rows of an input become a store. Everything in them that is computed from something else is computed here, unless a row says
 * that it is to be taken as it is: checksums, the chain of the journal, the chain of a history and the counts that go with it. So
 * a change of an event is not just a broken chain. */
#include "fuzz/drive.h"

#include "base/digest.h"
#include "history/history.h"

typedef struct input_row {
    hf_table table;
    hf_key key;
    hf_str body;
    bool is_raw;
} input_row;

static input_row row_of(hf_str bytes)
{
    input_row row = {0};
    hf_pb_raw field;
    while (bytes.len > 0 && hf_pb_next(&bytes, &field)) {
        switch (field.number) {
        case FUZZ_ROW_TABLE:
            row.table = hf_engine_tables.tables[field.value % hf_engine_tables.count];
            break;
        case FUZZ_ROW_A:
            row.key.a = (int64_t)field.value;
            break;
        case FUZZ_ROW_B:
            row.key.b = (int64_t)field.value;
            break;
        case FUZZ_ROW_TEXT:
            row.key.text = field.bytes;
            break;
        case FUZZ_ROW_BODY:
            row.body = field.bytes;
            break;
        case FUZZ_ROW_RAW:
            row.is_raw = field.value != 0;
            break;
        default:
            break;
        }
    }
    const hf_table_info *info = hf_table_info_of(row.table);
    row.key.text = info->has_text ? row.key.text : (hf_str){NULL, 0};
    row.key.a = info->has_a ? row.key.a : 0;
    row.key.b = info->has_b ? row.key.b : 0;
    return row;
}

static int by_commit(const void *a, const void *b)
{
    const input_row *first = a;
    const input_row *second = b;
    return (first->key.a > second->key.a) - (first->key.a < second->key.a);
}

/* The body of a commit with its number, the hash of the one before, and for the last the count of names. */
static hf_str commit_of(fuzz_drive *drive, const input_row *row, uint64_t previous, const uint64_t *names)
{
    hf_buf out;
    hf_buf_init(&out, fuzz_heap(&drive->memory), SIZE_MAX / 4);
    hf_pb_put_uint(&out, 1, (uint64_t)row->key.a);
    hf_pb_put_tag(&out, 3, HF_PB_WIRE_64);
    hf_buf_put(&out, &previous, sizeof previous);
    hf_str rest = row->body;
    hf_pb_raw field;
    while (rest.len > 0 && hf_pb_next(&rest, &field)) {
        if (field.number != 1 && field.number != 3 && (field.number != 8 || names == NULL)) {
            hf_buf_put(&out, field.whole.data, field.whole.len);
        }
    }
    if (names != NULL) {
        hf_pb_put_uint(&out, 8, *names);
    }
    hf_str body = hf_arena_copy(&drive->arena, hf_str_of_len(out.data, out.len));
    hf_buf_deinit(&out);
    return body;
}

static void chain_journal(fuzz_drive *drive, input_row *rows, size_t count, uint64_t names)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].is_raw) {
            rows[i].body = commit_of(drive, &rows[i], hash, i + 1 == count ? &names : NULL);
        }
        hash = hf_digest(hash, rows[i].body);
    }
}

/* Their bodies, sealed. */
static hf_write write_of(fuzz_drive *drive, const input_row *row)
{
    hf_write write = {.table = row->table, .kind = HF_WRITE_PUT, .key = row->key};
    if (!hf_table_info_of(row->table)->has_value) {
        return write;
    }
    char *bytes = hf_arena_take(&drive->arena, HF_RECORD_HEADER_LEN + row->body.len, 8);
    if (row->body.len > 0) {
        memcpy(bytes + HF_RECORD_HEADER_LEN, row->body.data, row->body.len);
    }
    hf_record_seal(row->table, &row->key, bytes, row->body.len);
    write.value = hf_str_of_len(bytes, HF_RECORD_HEADER_LEN + row->body.len);
    return write;
}

/* All rows go with the last of as many commits as the journal needs. */
static bool fill_store(fuzz_drive *drive, input_row *rows, size_t count, size_t journal_count)
{
    hf_write writes[FUZZ_ROWS_MAX];
    int64_t last = journal_count > 0 ? rows[journal_count - 1].key.a : 1;
    if (last < 1 || last > FUZZ_COMMITS_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        writes[i] = write_of(drive, &rows[i]);
    }
    for (int64_t commit = 1; commit <= last; commit++) {
        hf_store_request request = {.verb = HF_STORE_COMMIT, .commit = (uint64_t)commit};
        if (commit == last) {
            request.writes = writes;
            request.write_count = count;
        }
        hf_store_execute(drive->store, &request);
        if (request.status != HF_OK) {
            return false;
        }
    }
    return true;
}

/* ---- Histories --------------------------------------------------------------------------------------------------------- */

typedef struct chained {
    int64_t last_id;
    uint64_t chain;
    int64_t len; /* bytes of the events */
} chained;

static void add_events(chained *sum, hf_str events)
{
    hf_str bytes = {0};
    sum->len += (int64_t)events.len;
    while (events.len > 0 && hf_history_next(&events, &bytes)) {
        sum->chain = hf_digest(sum->chain, bytes);
        sum->last_id++;
    }
}

static hf_str encoded(fuzz_drive *drive, const hf_pb_type *type, const void *msg)
{
    hf_buf out;
    hf_buf_init(&out, fuzz_heap(&drive->memory), SIZE_MAX / 4);
    hf_pb_encode(type, msg, &out);
    hf_str bytes = hf_arena_copy(&drive->arena, hf_str_of_len(out.data, out.len));
    hf_buf_deinit(&out);
    return bytes;
}

/* A row of a history goes on where the last one ended. */
static void chain_history(fuzz_drive *drive, input_row *row, chained *sum)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_history_record record;
    if (row->is_raw || hf_pb_decode(&op, &hf_pb_history_record_type, row->body, &drive->arena, &record) != HF_OK) {
        return;
    }
    record.first_id = row->key.b = sum->last_id + 1;
    record.chain_before = sum->chain;
    add_events(sum, record.events);
    record.last_id = sum->last_id;
    record.chain_after = sum->chain;
    row->body = encoded(drive, &hf_pb_history_record_type, &record);
}

/* The state of a run says how many events its rows and itself have. */
static void chain_run(fuzz_drive *drive, input_row *row, chained sum)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_run_state state;
    if (row->is_raw || hf_pb_decode(&op, &hf_pb_run_state_type, row->body, &drive->arena, &state) != HF_OK) {
        return;
    }
    state.run = row->key.a;
    state.spilled = sum.last_id;
    state.spilled_chain = sum.chain;
    state.spilled_len = sum.len;
    add_events(&sum, state.tail);
    state.event_count = sum.last_id;
    state.chain = sum.chain;
    state.history_len = sum.len;
    row->body = encoded(drive, &hf_pb_run_state_type, &state);
}

static void chain_histories(fuzz_drive *drive, input_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        chained sum = {0};
        for (size_t j = 0; rows[i].table == HF_TABLE_RUN && j < count; j++) {
            if (rows[j].table == HF_TABLE_HISTORY && rows[j].key.a == rows[i].key.a) {
                chain_history(drive, &rows[j], &sum);
            }
        }
        if (rows[i].table == HF_TABLE_RUN) {
            chain_run(drive, &rows[i], sum);
        }
    }
}

bool fuzz_rows_read(fuzz_drive *drive, hf_str input)
{
    input_row rows[FUZZ_ROWS_MAX]; /* the journal in front, by commit */
    size_t count = 0;
    size_t journal_count = 0;
    uint64_t names = 0;
    hf_pb_raw field;
    while (input.len > 0 && count < FUZZ_ROWS_MAX && hf_pb_next(&input, &field)) {
        if (field.number != FUZZ_ROW) {
            continue;
        }
        rows[count] = row_of(field.bytes);
        names += rows[count].table == HF_TABLE_NAME_LOG ? rows[count].body.len / 16 : 0;
        if (rows[count].table == HF_TABLE_JOURNAL) {
            input_row row = rows[count];
            rows[count] = rows[journal_count];
            rows[journal_count++] = row;
        }
        count++;
    }
    qsort(rows, journal_count, sizeof rows[0], by_commit);
    chain_journal(drive, rows, journal_count, names);
    chain_histories(drive, rows, count);
    return fill_store(drive, rows, count, journal_count);
}
