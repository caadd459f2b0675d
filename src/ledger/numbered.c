#include "ledger/numbered.h"

#include <stdio.h>
#include <string.h>

#define DIGITS 16

int64_t hf_numbered_run(hf_str prefix, const hf_row *row)
{
    uint64_t run = 0;
    hf_str text = row->key.text;
    for (size_t i = prefix.len; i < text.len; i++) {
        char c = text.data[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
            return 0;
        }
        run = run << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return text.len == prefix.len + DIGITS && run < INT64_MAX ? (int64_t)run : 0;
}

hf_status hf_numbered_scan(hf_op *op, hf_store *store, hf_str prefix, hf_arena *arena, hf_row **ret_rows,
                           size_t *ret_count)
{
    hf_assert(prefix.len > 0 && prefix.len <= HF_NUMBERED_PREFIX_MAX && prefix.data[prefix.len - 1] == '/');
    char behind[HF_NUMBERED_PREFIX_MAX]; /* the first text after all that begin with the prefix */
    memcpy(behind, prefix.data, prefix.len);
    behind[prefix.len - 1]++;
    hf_store_request scan = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_META,
        .key = {.text = prefix},
        .key_end = {.text = hf_str_of_len(behind, prefix.len)},
        .arena = arena,
    };
    HF_TRY(hf_store_ask(op, store, &scan));
    for (size_t i = 0; i < scan.row_count; i++) {
        if (hf_numbered_run(prefix, &scan.rows[i]) == 0) {
            return hf_fail(op, HF_ERR_INVALID, "the row '%.*s' of the meta table does not name a run",
                           HF_STR_ARGS(scan.rows[i].key.text));
        }
    }
    *ret_rows = scan.rows;
    *ret_count = scan.row_count;
    return HF_OK;
}

hf_key hf_numbered_key(hf_writes *writes, hf_str prefix, int64_t run)
{
    char text[HF_NUMBERED_PREFIX_MAX + DIGITS + 1];
    int len = snprintf(text, sizeof text, "%.*s%016llx", HF_STR_ARGS(prefix), (unsigned long long)run);
    hf_assert(len == (int)prefix.len + DIGITS);
    return (hf_key){.text = hf_writes_copy(writes, hf_str_of_len(text, (size_t)len))};
}
