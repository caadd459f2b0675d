#include "engine/filter.h"

#include "engine/core_private.h"
#include "engine/cursor.h"
#include "engine/load.h"

#define BITS_PER_NAME 12 /* with three probes: about one wrong "maybe" in fifty */
#define NAMES_FIRST 4096
#define PAGE_ROWS 1024

static void drop(hf_core *core)
{
    hf_filter *filter = &core->filter;
    hf_core_free_mem(core, filter->words, filter->word_count * sizeof *filter->words);
    filter->words = NULL;
    filter->word_count = filter->count = 0;
    filter->is_complete = false;
}

/* Makes room for `names` names; turns the filter off if that takes more than its share of memory. */
static void resize(hf_core *core, size_t names)
{
    hf_filter *filter = &core->filter;
    drop(core);
    size_t words = 64;
    while (words * 64 < names * BITS_PER_NAME) {
        words *= 2;
    }
    if (words * sizeof *filter->words > core->options.mem_max / 8) {
        filter->off = true;
        return;
    }
    filter->words = hf_core_alloc(core, words * sizeof *filter->words);
    filter->word_count = filter->words != NULL ? words : 0;
}

void hf_filter_deinit(hf_core *core)
{
    drop(core);
}

static uint64_t probe(uint64_t hash, int i)
{
    return hash + (uint64_t)i * ((hash >> 32) | 1);
}

void hf_filter_add(hf_core *core, uint64_t hash)
{
    hf_filter *filter = &core->filter;
    if (filter->word_count == 0) {
        return;
    }
    uint64_t mask = filter->word_count * 64 - 1;
    hf_assert((mask & (mask + 1)) == 0);
    bool was_there = true;
    for (int i = 0; i < 3; i++) {
        uint64_t bit = probe(hash, i) & mask;
        was_there = was_there && (filter->words[bit / 64] >> (bit % 64) & 1) != 0;
        filter->words[bit / 64] |= UINT64_C(1) << (bit % 64);
    }
    filter->count += was_there ? 0 : 1;
    if (filter->count > filter->word_count * 64 / BITS_PER_NAME * 2) {
        hf_cursor_move_back(&filter->cursor, 0, 0); /* from the start again, with more room */
        resize(core, filter->count * 4);
    }
}

/* Before the table is read: names that are in the index now may move to a part of the table that was read already. Adding may make
 * the filter grow, and then it begins anew. */
static void add_index(hf_core *core)
{
    const hf_filter *filter = &core->filter;
    size_t room = 0;
    while (room != filter->word_count) {
        room = filter->word_count;
        for (size_t i = 0; i < HF_NAME_BUCKETS && room == filter->word_count; i++) {
            const hf_name_bucket *bucket = &core->index.buckets[i];
            for (size_t j = 0; j < bucket->entries.count && room == filter->word_count; j++) {
                hf_filter_add(core, (uint64_t)hf_name_entry_hash(&bucket->entries.items[j]));
            }
        }
    }
}

void hf_filter_open(hf_core *core, bool empty)
{
    resize(core, NAMES_FIRST);
    if (empty) {
        add_index(core);
        core->filter.is_complete = core->filter.word_count > 0;
    }
}

bool hf_filter_may_have(const hf_filter *filter, uint64_t hash)
{
    if (!filter->is_complete) {
        return true;
    }
    uint64_t mask = filter->word_count * 64 - 1;
    for (int i = 0; i < 3; i++) {
        uint64_t bit = probe(hash, i) & mask;
        if ((filter->words[bit / 64] >> (bit % 64) & 1) == 0) {
            return false;
        }
    }
    return true;
}

void hf_filter_tick(hf_core *core)
{
    hf_filter *filter = &core->filter;
    if (filter->cursor.is_reading || filter->is_complete || filter->off || filter->word_count == 0) {
        return;
    }
    if (filter->cursor.a == 0 && filter->cursor.b == 0) {
        add_index(core);
    }
    hf_read *read = filter->word_count > 0 ? hf_read_new(core, HF_READ_FILTER, HF_TABLE_NAME) : NULL;
    if (read == NULL) {
        return;
    }
    hf_cursor_begin(&filter->cursor, &read->request, HF_STR(""), INT64_MAX);
    read->request.row_max = PAGE_ROWS;
    hf_read_submit(core, read);
}

void hf_filter_rows_read(hf_core *core, hf_read *read)
{
    hf_filter *filter = &core->filter;
    for (size_t i = 0; i < read->request.row_count && !filter->cursor.is_moved; i++) {
        hf_filter_add(core, (uint64_t)read->request.rows[i].key.a);
    }
    filter->is_complete = hf_cursor_end(&filter->cursor, &read->request) && !filter->off;
}
