/* Walking over a table, page by page.
 *
 * The next page begins with the first key after the last row. That key is computed, because a range that began with the last row
 * itself would not get past a row longer than a page. */
#include "base/rng.h"
#include "store/store_private.h"

hf_status hf_store_ask(hf_op *op, hf_store *store, hf_store_request *request)
{
    hf_store_execute(store, request);
    return request->status == HF_OK ? HF_OK : hf_fail(op, request->status, "%s", request->op.message);
}

/* The smallest key of the table after `key`; its text is in the arena. */
static hf_status key_behind(hf_op *op, hf_table table, const hf_key *key, hf_arena *arena, hf_key *ret_key)
{
    const hf_table_info *info = hf_table_info_of(table);
    hf_key behind = *key;
    int64_t *number = info->has_b ? &behind.b : info->has_a ? &behind.a : NULL;
    if (info->has_text) {
        size_t len =
            key->text.len + (number == NULL); /* the next greater text is the same text with a NUL at its end */
        char *text = hf_arena_take(arena, len, 1);
        if (text == NULL) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for a key of %zu bytes", len);
        }
        memset(text, 0, len);
        if (key->text.len > 0) {
            memcpy(text, key->text.data, key->text.len);
        }
        behind.text = hf_str_of_len(text, len);
    }
    if (number != NULL) {
        if (*number == INT64_MAX) { /* no store writes such a key, but the file may be damaged */
            return hf_fail(op, HF_ERR_INVALID, "the table %s has a key beyond its range", info->name);
        }
        *number += 1;
    }
    hf_assert(hf_key_compare(key, &behind) < 0);
    *ret_key = behind;
    return HF_OK;
}

typedef struct walk {
    hf_store_request scan; /* of the page that is read next */
    hf_arena rows;         /* of the page */
    hf_arena keys;         /* of the key that the page begins with */
    hf_arena visit;        /* for the visitor */
} walk;

static hf_status visit_page(hf_op *op, hf_store *store, walk *w, hf_row_visit *visit, void *arg)
{
    hf_arena_reset(&w->rows);
    HF_TRY(hf_store_ask(op, store, &w->scan));
    for (size_t i = 0; i < w->scan.row_count; i++) {
        hf_arena_reset(&w->visit);
        HF_TRY(visit(op, arg, &w->scan.rows[i], &w->visit));
    }
    if (!w->scan.more) {
        return HF_OK;
    }
    hf_assert(w->scan.row_count > 0); /* a page has at least one row, or the walk would not end */
    hf_arena_reset(&w->keys);
    return key_behind(op, w->scan.table, &w->scan.rows[w->scan.row_count - 1].key, &w->keys, &w->scan.key);
}

hf_status hf_store_each_row(hf_op *op, hf_store *store, hf_allocator memory, hf_table table, const hf_key *from,
                            const hf_key *to, hf_row_visit *visit, void *arg)
{
    walk w = {.scan = {
                  .verb = HF_STORE_SCAN,
                  .table = table,
                  .key = from != NULL ? *from : hf_key_first(),
                  .key_end = to != NULL ? *to : hf_key_last(),
                  .len_max = HF_STORE_PAGE_LEN,
                  .arena = &w.rows,
              }};
    hf_arena_init(&w.rows, memory);
    hf_arena_init(&w.keys, memory);
    hf_arena_init(&w.visit, memory);
    hf_status status = HF_OK;
    do {
        status = visit_page(op, store, &w, visit, arg);
    } while (status == HF_OK && w.scan.more);
    hf_arena_deinit(&w.rows);
    hf_arena_deinit(&w.keys);
    hf_arena_deinit(&w.visit);
    return status;
}

/* ---- Hash ---------------------------------------------------------------------------------------------------------- */

static hf_status hash_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    (void)op;
    (void)arena;
    uint64_t *hash = arg;
    *hash = hf_hash_bytes(*hash, row->key.text.data != NULL ? row->key.text.data : "", row->key.text.len);
    *hash = hf_hash_mix(*hash, (uint64_t)row->key.a);
    *hash = hf_hash_mix(*hash, (uint64_t)row->key.b);
    *hash = hf_hash_bytes(*hash, row->value.data != NULL ? row->value.data : "", row->value.len);
    return HF_OK;
}

hf_status hf_store_hash(hf_op *op, hf_store *store, hf_allocator memory, uint64_t *ret_hash)
{
    uint64_t hash = 0;
    const hf_table_set *set = hf_store_tables(store);
    for (size_t i = 0; i < set->count; i++) {
        hash = hf_hash_mix(hash, (uint64_t)set->tables[i]);
        HF_TRY(hf_store_each_row(op, store, memory, set->tables[i], NULL, NULL, hash_row, &hash));
    }
    *ret_hash = hash;
    return HF_OK;
}
