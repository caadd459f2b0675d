#include "store/store_private.h"

#include <stdio.h>

/* ---- Keys ---------------------------------------------------------------------------------------------------------- */

int hf_key_compare(const hf_key *a, const hf_key *b)
{
    int order = hf_str_compare(a->text, b->text);
    if (order != 0) {
        return order;
    }
    if (a->a != b->a) {
        return a->a < b->a ? -1 : 1;
    }
    return (a->b > b->b) - (a->b < b->b);
}

#define FF_10 "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
#define FF_100 FF_10 FF_10 FF_10 FF_10 FF_10 FF_10 FF_10 FF_10 FF_10 FF_10
#define FF_1000 FF_100 FF_100 FF_100 FF_100 FF_100 FF_100 FF_100 FF_100 FF_100 FF_100

hf_key hf_key_first(void)
{
    return (hf_key){.a = INT64_MIN, .b = INT64_MIN};
}

hf_key hf_key_last(void)
{
    /* One byte longer than a stored text can be: no backend needs to know that it is special. */
    static const char BEHIND[] = FF_1000 FF_1000 FF_1000 "\xff";
    _Static_assert(sizeof BEHIND - 1 == HF_KEY_TEXT_LEN_MAX + 1, "longer than any text");
    return (hf_key){{BEHIND, sizeof BEHIND - 1}, INT64_MAX, INT64_MAX};
}

hf_key hf_key_used(hf_table table, const hf_key *key)
{
    const hf_table_info *info = hf_table_info_of(table);
    return (hf_key){
        .text = info->has_text ? key->text : (hf_str){NULL, 0},
        .a = info->has_a ? key->a : 0,
        .b = info->has_b ? key->b : 0,
    };
}

void hf_key_format(hf_table table, const hf_key *key, char ret_text[HF_KEY_FORMAT_LEN])
{
    const hf_table_info *info = hf_table_info_of(table);
    char text[72] = "";
    char a[28] = "";
    char b[28] = "";
    _Static_assert(sizeof text + sizeof a + sizeof b + 16 <= HF_KEY_FORMAT_LEN, "a key is shown with all its parts");
    size_t len = key->text.len < sizeof text - 1 ? key->text.len : sizeof text - 1;
    for (size_t i = 0; i < len; i++) {
        char byte = key->text.data[i];
        text[i] = byte >= ' ' && byte <= '~' && byte != '\'' ? byte : '.';
    }
    if (info->has_a) {
        (void)snprintf(a, sizeof a, " a=%lld", (long long)key->a);
    }
    if (info->has_b) {
        (void)snprintf(b, sizeof b, " b=%lld", (long long)key->b);
    }
    if (info->has_text) {
        (void)snprintf(ret_text, HF_KEY_FORMAT_LEN, "%s '%s'%s%s", info->name, text, a, b);
    } else {
        (void)snprintf(ret_text, HF_KEY_FORMAT_LEN, "%s%s%s", info->name, a, b);
    }
}

/* ---- Requests ------------------------------------------------------------------------------------------------------ */

static bool is_storable(hf_table table, const hf_key *key)
{
    hf_key used = hf_key_used(table, key);
    return hf_key_compare(&used, key) == 0 && key->text.len <= HF_KEY_TEXT_LEN_MAX && key->a < INT64_MAX &&
           key->b < INT64_MAX;
}

static hf_status fail_table(hf_op *op, const hf_table_set *set, hf_table table)
{
    return (unsigned)table < HF_TABLE_COUNT
               ? hf_fail(op, HF_ERR_MISUSE, "there is no table %s in %s", hf_table_info_of(table)->name, set->is_called)
               : hf_fail(op, HF_ERR_MISUSE, "there is no table %d", (int)table);
}

static hf_status check_write(hf_op *op, const hf_table_set *set, uint64_t commit, const hf_write *write)
{
    char text[HF_KEY_FORMAT_LEN];
    if (!hf_table_set_has(set, write->table)) {
        return fail_table(op, set, write->table);
    }
    if (write->kind != HF_WRITE_DELETE_RANGE && !is_storable(write->table, &write->key)) {
        hf_key_format(write->table, &write->key, text);
        return hf_fail(op, HF_ERR_MISUSE, "%s is not a valid key of its table", text);
    }
    if (write->kind == HF_WRITE_PUT && write->value.len > 0 && !hf_table_info_of(write->table)->has_value) {
        return hf_fail(op, HF_ERR_MISUSE, "rows of %s have no values", hf_table_info_of(write->table)->name);
    }
    /* The greatest number in the journal is the number of the last commit. */
    if (write->kind == HF_WRITE_PUT && write->table == HF_TABLE_JOURNAL &&
        (write->key.a <= 0 || (uint64_t)write->key.a > commit)) {
        return hf_fail(op, HF_ERR_MISUSE, "commit %llu writes the journal row of commit %lld",
                       (unsigned long long)commit, (long long)write->key.a);
    }
    return HF_OK;
}

static hf_status check_request(const hf_table_set *set, hf_store_request *request)
{
    hf_op *op = &request->op;
    bool reads = request->verb == HF_STORE_GET || request->verb == HF_STORE_SCAN;
    if (reads && !hf_table_set_has(set, request->table)) {
        return fail_table(op, set, request->table);
    }
    const hf_store_count *count = request->verb == HF_STORE_STATS ? request->count : NULL;
    if (count != NULL && count->table != HF_TABLE_COUNT && !hf_table_set_has(set, count->table)) {
        return fail_table(op, set, count->table);
    }
    if (request->verb == HF_STORE_COMMIT) {
        for (size_t i = 0; i < request->write_count; i++) {
            HF_TRY(check_write(op, set, request->commit, &request->writes[i]));
        }
    }
    return HF_OK;
}

void hf_store_execute(hf_store *store, hf_store_request *request)
{
    hf_op_init(&request->op);
    request->found = false;
    request->value = (hf_str){NULL, 0};
    request->rows = NULL;
    request->row_count = 0;
    request->more = false;
    hf_status status = check_request(hf_store_tables(store), request);
    request->status = status == HF_OK ? store->ops->execute(store, request) : status;
    hf_assert(request->found || request->value.len == 0);
    hf_assert(!request->more || request->verb != HF_STORE_SCAN || request->row_count > 0); /* or a walk would not end */
    if (request->look != NULL && request->status == HF_OK) {
        request->look(store, request);
    }
}

/* ---- Scans --------------------------------------------------------------------------------------------------------- */

bool hf_scan_wants(hf_scan *scan)
{
    hf_store_request *request = scan->request;
    hf_assert(request->row_count <= scan->capacity);
    if ((request->row_max > 0 && request->row_count >= request->row_max) ||
        (request->len_max > 0 && request->row_count > 0 && scan->len >= request->len_max)) {
        request->more = true;
        return false;
    }
    return true;
}

hf_status hf_scan_add(hf_scan *scan, const hf_key *key, hf_str value)
{
    hf_store_request *request = scan->request;
    hf_assert(request->arena != NULL);
    if (request->row_count == scan->capacity) {
        size_t capacity = scan->capacity > 0 ? scan->capacity * 2 : 16;
        hf_row *rows = HF_ARENA_ARRAY(request->arena, hf_row, capacity);
        if (rows == NULL) {
            return hf_fail(&request->op, HF_ERR_NOMEM, "no memory for %zu rows", capacity);
        }
        if (request->row_count > 0) {
            memcpy(rows, request->rows, request->row_count * sizeof *rows);
        }
        request->rows = rows;
        scan->capacity = capacity;
    }
    hf_assert(request->row_count < scan->capacity);
    hf_row *row = &request->rows[request->row_count];
    row->key = *key;
    row->key.text = key->text.len > 0 ? hf_arena_copy(request->arena, key->text) : (hf_str){NULL, 0};
    row->value = hf_arena_copy(request->arena, value);
    if (request->arena->status != HF_OK) {
        return hf_fail(&request->op, HF_ERR_NOMEM, "no memory for a row of %zu bytes", value.len);
    }
    request->row_count++;
    scan->len += key->text.len + value.len;
    return HF_OK;
}
