/* hf_source_hooks over a store: a source of the user's own that outlives its depots.
 *
 *     hf_source_hooks hooks = hooked(store); */
#ifndef HF_TESTS_HOOKED_H
#define HF_TESTS_HOOKED_H

#include "store/store.h"

#include <holdfast/depot.h>

#include <stdlib.h>
#include <string.h>

static hf_table hooked_table(hf_source_kind kind)
{
    static const hf_table TABLES[] = {[HF_SOURCE_META] = HF_TABLE_META,
                                      [HF_SOURCE_ENTRY] = HF_TABLE_ENTRY,
                                      [HF_SOURCE_SPACE] = HF_TABLE_SPACE,
                                      [HF_SOURCE_PENDING] = HF_TABLE_PENDING,
                                      [HF_SOURCE_ALIAS] = HF_TABLE_ALIAS};
    return TABLES[kind];
}

static hf_key hooked_key(hf_source_kind kind, const void *bytes, size_t len)
{
    if (kind != HF_SOURCE_PENDING) {
        return (hf_key){.text = hf_str_of_len(bytes, len)};
    }
    uint64_t number = 0;
    for (size_t i = 0; i < len; i++) {
        number = number << 8 | ((const unsigned char *)bytes)[i];
    }
    return (hf_key){.a = (int64_t)number};
}

static hf_status hooked_read(void *state, hf_source_row *row)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_store_request get = {.verb = HF_STORE_GET,
                            .table = hooked_table(row->kind),
                            .key = hooked_key(row->kind, row->key, row->key_len),
                            .arena = &arena};
    hf_store_execute(state, &get);
    hf_status status = get.status;
    if (status == HF_OK && get.found) {
        status = hf_value_copy(get.value.data, get.value.len, &row->data);
    }
    hf_arena_deinit(&arena);
    return status;
}

static hf_status hooked_read_many(void *state, hf_source_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        HF_TRY(hooked_read(state, &rows[i]));
    }
    return HF_OK;
}

static hf_status hooked_write(void *state, const hf_source_write *writes, size_t count, bool is_synced)
{
    hf_store *store = state;
    hf_write *all = calloc(count > 0 ? count : 1, sizeof *all);
    if (all == NULL) {
        return HF_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        bool is_put = writes[i].data != NULL;
        all[i] = (hf_write){.table = hooked_table(writes[i].kind),
                            .kind = is_put ? HF_WRITE_PUT : HF_WRITE_DELETE,
                            .key = hooked_key(writes[i].kind, writes[i].key, writes[i].key_len),
                            .value = is_put ? hf_str_of_len(writes[i].data, writes[i].len) : (hf_str){NULL, 0}};
    }
    hf_store_request commit = {.verb = HF_STORE_COMMIT,
                               .commit = store->ops->last_commit(store) + 1,
                               .writes = all,
                               .write_count = count,
                               .unsynced = !is_synced};
    hf_store_execute(store, &commit);
    free(all);
    return commit.status;
}

static hf_status hooked_scan(void *state, hf_source_kind kind, const void *from, size_t from_len,
                             hf_source_visit *visit, void *arg)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_store_request scan = {.verb = HF_STORE_SCAN,
                             .table = hooked_table(kind),
                             .key = hooked_key(kind, from, from_len),
                             .key_end = hf_key_last(),
                             .arena = &arena};
    hf_store_execute(state, &scan);
    for (size_t i = 0; scan.status == HF_OK && i < scan.row_count; i++) {
        const hf_row *row = &scan.rows[i];
        unsigned char number[8];
        for (int j = 0; j < 8; j++) {
            number[j] = (unsigned char)((uint64_t)row->key.a >> (56 - 8 * j));
        }
        bool is_number = kind == HF_SOURCE_PENDING;
        if (!visit(arg, is_number ? (const void *)number : row->key.text.data,
                   is_number ? sizeof number : row->key.text.len, row->value.data, row->value.len)) {
            break;
        }
    }
    hf_arena_deinit(&arena);
    return scan.status;
}

static hf_source_hooks hooked(hf_store *store)
{
    return (hf_source_hooks){store, hooked_read, hooked_read_many, hooked_write, hooked_scan, NULL};
}

#endif
