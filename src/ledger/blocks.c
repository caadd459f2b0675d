#include "ledger/blocks.h"

#include "base/canary.h"
#include "base/digest.h"
#include "base/rng.h"

#include <stdlib.h>

/* The attributes with bounds, in the order of BlockSummary.least: every run that has ended has them, as numbers. */
static const hf_attr_id BOUNDED[] = {HF_ATTR_START_TIME,
                                     HF_ATTR_EXECUTION_TIME,
                                     HF_ATTR_CLOSE_TIME,
                                     HF_ATTR_EXECUTION_DURATION,
                                     HF_ATTR_HISTORY_LENGTH,
                                     HF_ATTR_HISTORY_SIZE_BYTES,
                                     HF_ATTR_STATE_TRANSITION_COUNT};
/* Those whose texts are in the Bloom filter, if a run has them. A run id leads to its row by itself, and most runs are their own root. */
static const hf_attr_id LISTED[] = {HF_ATTR_WORKFLOW_ID, HF_ATTR_WORKFLOW_TYPE, HF_ATTR_TASK_QUEUE,
                                    HF_ATTR_PARENT_WORKFLOW_ID, HF_ATTR_PARENT_RUN_ID};

_Static_assert(HF_COUNT_OF(LISTED) == HF_COUNT_OF(((hf_block_maker *)NULL)->seeds), "one seed for each");

enum { BITS_PER_VALUE = 10, BLOOM_HASHES = 6, TEXTS_SEARCHED = 64 };

/* ---- Values as hashes -------------------------------------------------------------------------------------------------- */

static uint64_t seed_of(const hf_attr *attr)
{
    return hf_digest(1, attr->name);
}

static uint64_t hash_of_text(const hf_attr *attr, hf_str text)
{
    return hf_digest(seed_of(attr), text);
}

static uint64_t hash_of_number(const hf_attr *attr, int64_t number)
{
    return hf_hash_mix(hf_digest(2, attr->name), (uint64_t)number);
}

static void add_hash(hf_block_maker *maker, uint64_t hash)
{
    uint64_t *recent = &maker->recent[hash % HF_COUNT_OF(maker->recent)];
    if (*recent == hash && hash != 0) {
        return;
    }
    *recent = hash;
    if (maker->hash_count == maker->hash_room) {
        size_t room = maker->hash_room > 0 ? 2 * maker->hash_room : 1024;
        uint64_t *hashes = HF_ARENA_ARRAY(&maker->arena, uint64_t, room);
        if (hashes == NULL) {
            return;
        }
        if (maker->hash_count > 0) {
            memcpy(hashes, maker->hashes, maker->hash_count * sizeof *hashes);
        }
        maker->hashes = hashes;
        maker->hash_room = room;
    }
    maker->hashes[maker->hash_count++] = hash;
}

/* A custom attribute, of whatever type a filter takes it for: the values that the evaluator would see. */
static void add_custom(hf_block_maker *maker, hf_str name, const hf_pb_payload *payload, hf_arena *scratch)
{
    hf_attr attr = {.id = HF_ATTR_CUSTOM, .name = name};
    hf_attr_value value;
    if (hf_attr_value_of_payload(scratch, HF_ATTR_KEYWORD_LIST, payload, &value) && value.is_set) {
        for (size_t i = 0; i < value.item_count && (i == 0 || !HF_CANARY(HF_BUG_BLOOM_ONE_ITEM)); i++) {
            add_hash(maker, hash_of_text(&attr, value.items[i])); /* a Keyword is a list of one */
        }
    }
    static const hf_attr_type NUMBERS[] = {HF_ATTR_INT, HF_ATTR_BOOL};
    for (size_t i = 0; i < HF_COUNT_OF(NUMBERS); i++) {
        if (hf_attr_value_of_payload(scratch, NUMBERS[i], payload, &value) && value.is_set) {
            add_hash(maker, hash_of_number(&attr, value.number));
        }
    }
}

static void add_values(hf_block_maker *maker, const hf_visible *run)
{
    hf_visible_row row = {.run = run, .arena = &maker->arena};
    for (size_t i = 0; i < HF_COUNT_OF(LISTED); i++) {
        const hf_attr *attr = hf_attr_known_at((size_t)LISTED[i]);
        hf_attr_value value = {0};
        if (run->start.len == 0 && (LISTED[i] == HF_ATTR_PARENT_WORKFLOW_ID || LISTED[i] == HF_ATTR_PARENT_RUN_ID)) {
            continue; /* it has none */
        }
        hf_visible_get(&row, attr, &value);
        if (value.is_set) {
            add_hash(maker, hf_digest(maker->seeds[i], value.text)); /* hash_of_text */
        }
    }
    hf_pb_search_attributes attributes;
    hf_op op;
    hf_op_init(&op);
    if (run->search_attributes.len == 0 ||
        hf_pb_decode(&op, &hf_pb_search_attributes_type, run->search_attributes, &maker->arena, &attributes) != HF_OK) {
        return;
    }
    for (size_t i = 0; i < attributes.indexed_fields.count; i++) {
        add_custom(maker, attributes.indexed_fields.items[i].key, attributes.indexed_fields.items[i].value,
                   &maker->arena);
    }
}

static void widen(hf_block_maker *maker, const hf_visible *run)
{
    hf_visible_row row = {.run = run, .arena = &maker->arena};
    hf_pb_block_summary *summary = &maker->summary;
    hf_assert(run->close_time != 0); /* ledger-E2: every run that has ended has these numbers */
    for (size_t i = 0; i < HF_COUNT_OF(BOUNDED); i++) {
        int64_t number = hf_visible_number(&row, BOUNDED[i]);
        bool is_first = maker->block.entries.count == 1;
        int64_t *least = &summary->least.items[i];
        int64_t *greatest = &summary->greatest.items[i];
        *least = is_first || number < *least ? number : *least;
        *greatest = is_first || number > *greatest ? number : *greatest;
    }
}

/* ---- Writing ------------------------------------------------------------------------------------------------------------ */

void hf_block_begin(hf_block_maker *maker, hf_allocator memory, int64_t first, int64_t end)
{
    hf_assert(first >= 0 && end > first);
    *maker = (hf_block_maker){.first = first, .end = end};
    hf_arena_init(&maker->arena, memory);
    size_t room = (size_t)(end - first);
    for (size_t i = 0; i < HF_COUNT_OF(LISTED); i++) {
        maker->seeds[i] = seed_of(hf_attr_known_at((size_t)LISTED[i]));
    }
    maker->block.entries.items = HF_ARENA_ARRAY(&maker->arena, hf_pb_block_entry, room);
    maker->summary.others.items = HF_ARENA_ARRAY(&maker->arena, int64_t, room);
    maker->summary.least.items = HF_ARENA_ARRAY(&maker->arena, int64_t, HF_COUNT_OF(BOUNDED));
    maker->summary.greatest.items = HF_ARENA_ARRAY(&maker->arena, int64_t, HF_COUNT_OF(BOUNDED));
}

void hf_block_deinit(hf_block_maker *maker)
{
    hf_arena_deinit(&maker->arena);
}

static bool is_too_long(const hf_block_maker *maker, const hf_visible *run)
{
    size_t len = run->workflow_id.len + run->run_id.len + run->start.len + run->search_attributes.len;
    return len > HF_BLOCK_ENTRY_LEN_MAX || maker->len + len > HF_BLOCK_LEN_MAX;
}

/* The index of a text that many entries have. */
static uint32_t text_of(hf_block_maker *maker, hf_str text)
{
    hf_pb_str_list *texts = &maker->block.texts;
    size_t searched = texts->count < TEXTS_SEARCHED ? texts->count : TEXTS_SEARCHED;
    for (size_t i = 0; i < searched; i++) {
        if (hf_str_equal(texts->items[texts->count - 1 - i], text)) {
            return (uint32_t)(texts->count - 1 - i);
        }
    }
    if (texts->count == maker->text_room) {
        size_t room = maker->text_room > 0 ? 2 * maker->text_room : 16;
        hf_str *items = HF_ARENA_ARRAY(&maker->arena, hf_str, room);
        if (items == NULL) {
            return 0;
        }
        if (texts->count > 0) {
            memcpy(items, texts->items, texts->count * sizeof *items);
        }
        texts->items = items;
        maker->text_room = room;
    }
    texts->items[texts->count] = hf_arena_copy(&maker->arena, text);
    maker->len += text.len;
    return (uint32_t)texts->count++;
}

static hf_pb_block_count *count_of(hf_block_maker *maker, hf_str namespace_)
{
    hf_pb_block_count_list *counts = &maker->summary.counts;
    for (size_t i = 0; i < counts->count; i++) {
        if (hf_str_equal(counts->items[i].namespace, namespace_)) {
            return &counts->items[i];
        }
    }
    if (counts->count == maker->count_room) {
        size_t room = maker->count_room > 0 ? 2 * maker->count_room : 4;
        hf_pb_block_count *items = HF_ARENA_ARRAY(&maker->arena, hf_pb_block_count, room);
        if (items == NULL) {
            return NULL;
        }
        if (counts->count > 0) {
            memcpy(items, counts->items, counts->count * sizeof *items);
        }
        counts->items = items;
        maker->count_room = room;
    }
    hf_pb_block_count *count = &counts->items[counts->count];
    count->namespace = hf_arena_copy(&maker->arena, namespace_);
    count->counts.items = HF_ARENA_ARRAY(&maker->arena, int64_t, HF_BLOCK_STATUS_COUNT);
    count->counts.count = HF_BLOCK_STATUS_COUNT;
    counts->count += count->counts.items != NULL ? 1 : 0;
    return count->counts.items != NULL ? count : NULL;
}

bool hf_block_add(hf_block_maker *maker, const hf_visible *run)
{
    hf_arena *arena = &maker->arena;
    hf_assert(run->number >= maker->first && run->number < maker->end); /* ledger-E1 */
    if (run->close_time == 0 || run->is_hidden || run->kind != HF_KIND_WORKFLOW || is_too_long(maker, run)) {
        return false; /* lists leave out other kinds, and so must counts */
    }
    hf_pb_block_count *count = count_of(maker, run->namespace_);
    if (arena->status != HF_OK || count == NULL) {
        return false;
    }
    hf_pb_block_entry *entry = &maker->block.entries.items[maker->block.entries.count++];
    *entry = (hf_pb_block_entry){
        .run = run->number,
        .namespace = text_of(maker, run->namespace_),
        .workflow_type = text_of(maker, run->workflow_type),
        .task_queue = text_of(maker, run->task_queue),
        .workflow_id = hf_arena_copy(arena, run->workflow_id),
        .run_id = hf_arena_copy(arena, run->run_id),
        .start = hf_arena_copy(arena, run->start),
        .search_attributes = hf_arena_copy(arena, run->search_attributes),
        .kind = (int32_t)run->kind,
        .status = run->status,
        .start_time = run->start_time,
        .close_time = run->close_time,
        .event_count = run->event_count,
        .history_len = run->history_len,
        .transitions = run->transitions,
        .is_nameless = run->is_nameless,
    };
    hf_assert(maker->block.entries.count == 1 || entry[-1].run < entry->run); /* ledger-E1: by number */
    maker->len += entry->workflow_id.len + entry->run_id.len + entry->start.len + entry->search_attributes.len;
    int32_t status = run->status >= 0 && run->status < HF_BLOCK_STATUS_COUNT ? run->status : 0;
    maker->statuses |= UINT32_C(1) << status;
    count->counts.items[status] += HF_CANARY(HF_BUG_COUNTED_TWICE) && run->number % 3 == 0 ? 2 : 1;
    count->closed_first =
        count->closed_first == 0 || run->close_time < count->closed_first ? run->close_time : count->closed_first;
    widen(maker, run);
    add_values(maker, run);
    return true;
}

void hf_block_add_other(hf_block_maker *maker, int64_t run)
{
    hf_pb_int64_list *others = &maker->summary.others;
    hf_assert(run >= maker->first && run < maker->end);
    if (maker->arena.status != HF_OK) {
        return;
    }
    size_t at = others->count;
    hf_assert(at < (size_t)(maker->end - maker->first));
    while (at > 0 && others->items[at - 1] > run) {
        others->items[at] = others->items[at - 1];
        at--;
    }
    hf_assert(at == 0 || others->items[at - 1] != run); /* each once */
    others->items[at] = run;
    others->count++;
}

static void set_bit(unsigned char *bits, size_t bit_count, uint64_t hash, int n)
{
    uint64_t bit = (hash + (uint64_t)n * (hash >> 32 | 1)) % bit_count;
    bits[bit / 8] = (unsigned char)(bits[bit / 8] | 1u << (bit % 8));
}

static bool has_bits(hf_str bits, uint64_t hash)
{
    for (int n = 0; n < BLOOM_HASHES; n++) {
        uint64_t bit = (hash + (uint64_t)n * (hash >> 32 | 1)) % (bits.len * 8);
        if (((unsigned char)bits.data[bit / 8] >> (bit % 8) & 1) == 0) {
            return false;
        }
    }
    return true;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* As long as its different values need. */
static void put_values(hf_block_maker *maker)
{
    size_t count = 0;
    if (maker->hash_count > 0) {
        qsort(maker->hashes, maker->hash_count, sizeof *maker->hashes, compare_hashes);
    }
    for (size_t i = 0; i < maker->hash_count; i++) {
        if (i == 0 || maker->hashes[i] != maker->hashes[count - 1]) {
            maker->hashes[count++] = maker->hashes[i];
        }
    }
    size_t len = (count * BITS_PER_VALUE + 7) / 8;
    len = len < 8 ? 8 : len > HF_BLOCK_BLOOM_LEN_MAX ? HF_BLOCK_BLOOM_LEN_MAX : len;
    unsigned char *bits = hf_arena_zero(&maker->arena, len, 8);
    for (size_t i = 0; bits != NULL && i < count; i++) {
        for (int n = 0; n < BLOOM_HASHES; n++) {
            set_bit(bits, len * 8, maker->hashes[i], n);
        }
    }
    maker->summary.values = hf_str_of_len(bits, bits != NULL ? len : 0);
}

hf_status hf_block_finish(hf_block_maker *maker, uint64_t commit, hf_buf *block, hf_buf *summary)
{
    hf_assert(maker->block.entries.count + maker->summary.others.count <=
              (size_t)(maker->end - maker->first)); /* ledger-E1: each number once */
    put_values(maker);
    maker->summary.end = maker->end;
    maker->summary.commit = commit;
    maker->summary.entries = (uint32_t)maker->block.entries.count;
    maker->summary.least.count = maker->summary.greatest.count =
        maker->block.entries.count > 0 ? HF_COUNT_OF(BOUNDED) : 0;
    block->len = summary->len = 0;
    if (maker->arena.status == HF_OK) {
        hf_pb_encode(&hf_pb_run_block_type, &maker->block, block);
        hf_pb_encode(&hf_pb_block_summary_type, &maker->summary, summary);
    }
    return maker->arena.status != HF_OK || block->status != HF_OK || summary->status != HF_OK ? HF_ERR_NOMEM : HF_OK;
}

void hf_block_put(hf_writes *writes, int64_t first, const hf_buf *block, const hf_buf *summary)
{
    hf_assert(block->len > 0 && summary->len > 0); /* ledger-E3 */
    hf_writes_put_record(writes, HF_TABLE_BLOCK, (hf_key){.a = first}, block);
    hf_writes_put_record(writes, HF_TABLE_SUMMARY, (hf_key){.a = first}, summary);
}

void hf_block_delete(hf_writes *writes, int64_t first)
{
    hf_writes_delete(writes, HF_TABLE_BLOCK, (hf_key){.a = first}); /* ledger-E3 */
    hf_writes_delete(writes, HF_TABLE_SUMMARY, (hf_key){.a = first});
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

static bool is_sound(const hf_pb_block_summary *summary, int64_t first)
{
    bool is_good = summary->end > first && summary->end - first <= HF_BLOCK_RUNS &&
                   summary->entries <= (uint64_t)(summary->end - first) &&
                   summary->others.count <= (size_t)(summary->end - first) && summary->values.len > 0 &&
                   summary->least.count == summary->greatest.count &&
                   (summary->entries == 0) == (summary->least.count == 0) &&
                   (summary->entries == 0 || summary->least.count == HF_COUNT_OF(BOUNDED));
    for (size_t i = 0; is_good && i < summary->others.count; i++) {
        int64_t before = i > 0 ? summary->others.items[i - 1] : first - 1;
        is_good = summary->others.items[i] > before && summary->others.items[i] < summary->end;
    }
    for (size_t i = 0; is_good && i < summary->counts.count; i++) {
        is_good = summary->counts.items[i].counts.count == HF_BLOCK_STATUS_COUNT;
    }
    for (size_t i = 0; is_good && i < summary->least.count; i++) {
        is_good = summary->least.items[i] <= summary->greatest.items[i];
    }
    return is_good;
}

hf_status hf_summary_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_pb_block_summary *ret_summary)
{
    hf_str body;
    HF_TRY(hf_record_open(op, HF_TABLE_SUMMARY, &row->key, row->value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_block_summary_type, body, arena, ret_summary));
    return is_sound(ret_summary, row->key.a)
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "the summary of the runs from %lld on makes no sense",
                         (long long)row->key.a);
}

static bool take_entry(const hf_pb_run_block *block, const hf_pb_block_entry *entry, hf_visible *ret_run)
{
    const hf_pb_str_list *texts = &block->texts;
    if (entry->namespace >= texts->count || entry->workflow_type >= texts->count || entry->task_queue >= texts->count ||
        entry->close_time == 0 || entry->status < 0) {
        return false;
    }
    *ret_run = (hf_visible){
        .number = entry->run,
        .namespace_ = texts->items[entry->namespace],
        .workflow_id = entry->workflow_id,
        .run_id = entry->run_id,
        .workflow_type = texts->items[entry->workflow_type],
        .task_queue = texts->items[entry->task_queue],
        .start = entry->start,
        .search_attributes = entry->search_attributes,
        .kind = (hf_run_kind)entry->kind,
        .status = entry->status,
        .start_time = entry->start_time,
        .close_time = entry->close_time,
        .event_count = entry->event_count,
        .history_len = entry->history_len,
        .transitions = entry->transitions,
        .is_nameless = entry->is_nameless,
    };
    return true;
}

hf_status hf_block_open(hf_op *op, const hf_row *row, const hf_pb_block_summary *summary, hf_arena *arena,
                        hf_visible **ret_runs, size_t *ret_count)
{
    hf_str body;
    hf_pb_run_block block;
    HF_TRY(hf_record_open(op, HF_TABLE_BLOCK, &row->key, row->value, &body));
    HF_TRY(hf_pb_decode(op, &hf_pb_run_block_type, body, arena, &block));
    hf_visible *runs = HF_ARENA_ARRAY(arena, hf_visible, block.entries.count + 1);
    if (runs == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "out of memory");
    }
    bool is_good = block.entries.count == summary->entries;
    for (size_t i = 0; is_good && i < block.entries.count; i++) {
        int64_t before = i > 0 ? runs[i - 1].number : row->key.a - 1;
        is_good = take_entry(&block, &block.entries.items[i], &runs[i]) && runs[i].number > before &&
                  runs[i].number < summary->end;
    }
    if (!is_good) {
        return hf_fail(op, HF_ERR_INVALID, "the block of the runs from %lld on makes no sense", (long long)row->key.a);
    }
    *ret_runs = runs;
    *ret_count = block.entries.count;
    return HF_OK;
}

const hf_pb_block_count *hf_summary_count(const hf_pb_block_summary *summary, hf_str namespace_)
{
    for (size_t i = 0; i < summary->counts.count; i++) {
        if (hf_str_equal(summary->counts.items[i].namespace, namespace_)) {
            return &summary->counts.items[i];
        }
    }
    return NULL;
}

/* ---- What a summary tells of a filter ------------------------------------------------------------------------------------ */

typedef struct hf_summary_view {
    const hf_pb_block_summary *summary;
    const hf_pb_block_count *count; /* of the namespace */
} hf_summary_view;

static uint32_t statuses_of(const void *state)
{
    const hf_summary_view *view = state;
    uint32_t statuses = 0;
    for (size_t i = 0; i < view->count->counts.count; i++) {
        statuses |= view->count->counts.items[i] > 0 ? UINT32_C(1) << i : 0;
    }
    return (statuses & 1) != 0 ? UINT32_MAX : statuses; /* unknown ones are counted as 0 */
}

static bool range_of(const void *state, const hf_attr *attr, int64_t *ret_least, int64_t *ret_greatest)
{
    const hf_summary_view *view = state;
    for (size_t i = 0; i < HF_COUNT_OF(BOUNDED); i++) {
        if (attr->id == BOUNDED[i]) {
            *ret_least = view->summary->least.items[i];
            *ret_greatest = view->summary->greatest.items[i];
            return true;
        }
    }
    return false;
}

static bool may_have(const void *state, const hf_attr *attr, const hf_attr_value *value)
{
    const hf_summary_view *view = state;
    bool is_listed = attr->id == HF_ATTR_CUSTOM;
    for (size_t i = 0; i < HF_COUNT_OF(LISTED); i++) {
        is_listed = is_listed || attr->id == LISTED[i];
    }
    if (is_listed && (attr->type == HF_ATTR_KEYWORD || attr->type == HF_ATTR_KEYWORD_LIST)) {
        return has_bits(view->summary->values, hash_of_text(attr, value->text));
    }
    if (is_listed && (attr->type == HF_ATTR_INT || attr->type == HF_ATTR_BOOL)) {
        return has_bits(view->summary->values, hash_of_number(attr, value->number));
    }
    return true;
}

bool hf_summary_may_fit(const hf_pb_block_summary *summary, hf_str namespace_, const hf_where *where)
{
    static const hf_where_bounds BOUNDS = {statuses_of, range_of, may_have};
    hf_summary_view view = {summary, hf_summary_count(summary, namespace_)};
    hf_assert(summary->entries == 0 || summary->least.count == HF_COUNT_OF(BOUNDED));
    return summary->entries > 0 && view.count != NULL && hf_where_may_fit(where, &BOUNDS, &view);
}
