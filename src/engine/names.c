#include "engine/names.h"

#include "base/canary.h"
#include "base/uuid.h"
#include "engine/core.h"

#define SWEEP_LEAST 4096 /* names that one commit may move to the table beyond those that it brings */
#define SWEEP_MOST 65536 /* at most: a file of an earlier version brings all of its names at once */

void hf_names_deinit(hf_core *core)
{
    hf_names *names = &core->index;
    for (size_t i = 0; i < HF_NAME_BUCKETS; i++) {
        hf_core_free_mem(core, names->buckets[i].entries.items,
                         names->buckets[i].entries.capacity * sizeof(hf_name_entry));
    }
    hf_core_free_mem(core, names->log.items, names->log.capacity * sizeof(hf_name_row));
    hf_core_free_mem(core, names->fresh.items, names->fresh.capacity * sizeof(hf_name_fresh));
}

int64_t hf_name_hash(const hf_core *core, hf_str text)
{
    uint64_t hash = hf_siphash(core->mac_key, text) >> (64 - HF_NAME_BITS);
    return (int64_t)(hash >> core->options.name_bits_off << core->options.name_bits_off);
}

/* ---- In memory --------------------------------------------------------------------------------------------------------- */

static size_t bucket_of(int64_t hash)
{
    return (size_t)((uint64_t)hash >> (HF_NAME_BITS - HF_NAME_BUCKET_BITS));
}

/* Index of the first entry that is not before this one. */
static size_t place_of(const struct hf_name_bucket *bucket, int64_t hash, int64_t run)
{
    size_t low = 0;
    size_t high = bucket->entries.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const hf_name_entry *entry = &bucket->entries.items[middle];
        if (entry->hash < hash || (entry->hash == hash && entry->run < run)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void hf_names_restore(hf_core *core, int64_t hash, int64_t run)
{
    struct hf_name_bucket *bucket = &core->index.buckets[bucket_of(hash)];
    size_t at = place_of(bucket, hash, run);
    hf_name_entry *found = at < bucket->entries.count ? &bucket->entries.items[at] : NULL;
    if (found != NULL && found->hash == hash && found->run == run) {
        return;
    }
    if (!HF_VEC_RESERVE(&core->runs_memory, &bucket->entries)) {
        return;
    }
    hf_name_entry *entry = &bucket->entries.items[at];
    memmove(entry + 1, entry, (bucket->entries.count - at) * sizeof *entry);
    *entry = (hf_name_entry){hash, run};
    bucket->entries.count++;
    core->index.count++;
}

void hf_names_add(hf_core *core, int64_t hash, int64_t run)
{
    hf_names_restore(core, hash, run);
    hf_filter_add(core, (uint64_t)hash);
    if (HF_VEC_RESERVE(&core->runs_memory, &core->index.fresh)) {
        core->index.fresh.items[core->index.fresh.count++] = (hf_name_fresh){{hash, run}, core->commit_next};
    }
}

int64_t hf_names_below(const hf_core *core, int64_t hash, int64_t below)
{
    const struct hf_name_bucket *bucket = &core->index.buckets[bucket_of(hash)];
    size_t at = place_of(bucket, hash, below);
    if (at == 0 || bucket->entries.items[at - 1].hash != hash) {
        return 0;
    }
    return bucket->entries.items[at - 1].run;
}

/* ---- To the table ------------------------------------------------------------------------------------------------------ */

static void write_bucket(hf_core *core, hf_batch *batch, struct hf_name_bucket *bucket)
{
    for (size_t i = 0; i < bucket->entries.count; i++) {
        const hf_name_entry *entry = &bucket->entries.items[i];
        hf_batch_write(
            core, batch,
            (hf_write){.table = HF_TABLE_NAME, .kind = HF_WRITE_PUT, .key = {.a = entry->hash, .b = entry->run}});
        hf_filter_add(core, (uint64_t)entry->hash); /* its reading may have passed this place */
    }
    core->index.count -= bucket->entries.count;
    hf_core_free_mem(core, bucket->entries.items, bucket->entries.capacity * sizeof(hf_name_entry));
    bucket->entries.items = NULL;
    bucket->entries.count = bucket->entries.capacity = 0;
}

/* All names of earlier commits than the round's first are in the table now; a row of name_log has older ones than itself. */
static void end_round(hf_core *core, hf_batch *batch)
{
    HF_PROBE(core, HF_PROBE_NAMES_SWEPT);
    hf_names *names = &core->index;
    size_t gone = 0;
    for (; gone < names->log.count && names->log.items[gone].commit <= names->sweep_commit; gone++) {
        names->log_count -= names->log.items[gone].count;
    }
    if (gone > 0) {
        names->log.count -= gone;
        memmove(names->log.items, names->log.items + gone, names->log.count * sizeof *names->log.items);
        hf_batch_write(core, batch,
                       (hf_write){.table = HF_TABLE_NAME_LOG,
                                  .kind = HF_WRITE_DELETE_RANGE,
                                  .key = {.a = 0},
                                  .key_end = {.a = (int64_t)names->sweep_commit + 1}});
    }
    names->sweep = 0;
    names->sweep_commit = core->commit_next;
}

/* Index of the first fresh name that the open batch brings. */
static size_t first_of_batch(const hf_core *core)
{
    const hf_names *names = &core->index;
    size_t first = names->fresh.count;
    while (first > 0 && names->fresh.items[first - 1].commit == core->commit_next) {
        first--;
    }
    return first;
}

void hf_names_sweep(hf_core *core, hf_batch *batch)
{
    hf_names *names = &core->index;
    size_t most = SWEEP_LEAST + names->fresh.count - first_of_batch(core); /* else they would grow without end */
    most = most < SWEEP_MOST ? most : SWEEP_MOST;
    size_t moved = 0;
    while (names->count > core->options.names_max && moved < most && core->status == HF_OK) {
        struct hf_name_bucket *bucket = &names->buckets[names->sweep];
        moved += bucket->entries.count;
        write_bucket(core, batch, bucket);
        if (++names->sweep == HF_NAME_BUCKETS) {
            end_round(core, batch);
        }
    }
}

/* ---- Journal and name_log ---------------------------------------------------------------------------------------------- */

static void put_entry(hf_buf *out, const hf_name_entry *entry)
{
    int64_t words[2] = {entry->hash, entry->run};
    hf_buf_put(out, words, sizeof words);
}

bool hf_names_next(hf_str *rest, hf_name_entry *ret_entry)
{
    int64_t words[2];
    if (rest->len < sizeof words) {
        return false;
    }
    memcpy(words, rest->data, sizeof words);
    if (words[0] < 0 || words[0] >> HF_NAME_BITS != 0 || words[1] <= 0) {
        return false;
    }
    *rest = hf_str_of_len(rest->data + sizeof words, rest->len - sizeof words);
    *ret_entry = (hf_name_entry){words[0], words[1]};
    return true;
}

void hf_names_put(const hf_core *core, hf_buf *out)
{
    const hf_names *names = &core->index;
    for (size_t i = first_of_batch(core); i < names->fresh.count; i++) {
        put_entry(out, &names->fresh.items[i].entry);
    }
}

void hf_names_logged(hf_core *core, uint64_t commit, size_t count)
{
    hf_names *names = &core->index;
    if (HF_VEC_RESERVE(&core->runs_memory, &names->log)) {
        names->log.items[names->log.count++] = (hf_name_row){commit, count};
        names->log_count += count;
    }
}

void hf_names_trim(hf_core *core, hf_batch *batch, uint64_t keep)
{
    hf_names *names = &core->index;
    size_t count = 0;
    core->row.len = 0;
    for (; count < names->fresh.count && names->fresh.items[count].commit < keep; count++) {
        put_entry(&core->row, &names->fresh.items[count].entry);
    }
    if (count == 0) {
        return;
    }
    if (!HF_CANARY(HF_BUG_NAMES_CUT)) {
        hf_batch_put_record(core, batch, HF_TABLE_NAME_LOG, (hf_key){.a = (int64_t)core->commit_next}, &core->row);
        hf_names_logged(core, core->commit_next, count);
    }
    names->fresh.count -= count;
    memmove(names->fresh.items, names->fresh.items + count, names->fresh.count * sizeof *names->fresh.items);
}

/* ---- Run ids ----------------------------------------------------------------------------------------------------------- */

#define VERSION_MASK UINT64_C(0xf000) /* of the first half of a UUID */
#define NUMBER_MASK (UINT64_MAX >> 2) /* of its second half */

static uint64_t veil(const unsigned char mac_key[HF_SIPHASH_KEY_LEN], uint64_t first)
{
    return hf_siphash(mac_key, hf_str_of_len(&first, sizeof first)) & NUMBER_MASK;
}

hf_str hf_run_id_make(const hf_core *core, hf_arena *arena, uint64_t chance, int64_t number)
{
    return hf_uuid(arena, chance, (uint64_t)number ^ veil(core->mac_key, chance & ~VERSION_MASK));
}

int64_t hf_run_id_number(const unsigned char mac_key[HF_SIPHASH_KEY_LEN], hf_str run_id)
{
    uint64_t high = 0;
    uint64_t low = 0;
    if (!hf_uuid_parse(run_id, &high, &low)) {
        return 0;
    }
    return (int64_t)((low & NUMBER_MASK) ^ veil(mac_key, high & ~VERSION_MASK));
}
