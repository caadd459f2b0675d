#include "ledger/names.h"

#include "base/canary.h"

#include <string.h>

#define SWEEP_LEAST 4096 /* names that one commit may move to the table, besides as many as it adds */
#define SWEEP_MOST 65536 /* the most it may move: a file of an earlier version adds all of its names at once */

void hf_names_init(hf_names *names, hf_run_memory *memory, const unsigned char *mac_key)
{
    memset(names, 0, sizeof *names);
    names->memory = memory;
    names->mac_key = mac_key;
}

void hf_names_deinit(hf_names *names)
{
    for (size_t i = 0; i < HF_NAME_BUCKETS; i++) {
        HF_VEC_FREE(names->memory, &names->buckets[i].entries);
    }
    HF_VEC_FREE(names->memory, &names->log);
    HF_VEC_FREE(names->memory, &names->fresh);
}

hf_status hf_name_text(hf_str namespace_, hf_str workflow_id, char text[HF_NAME_TEXT_LEN], size_t *ret_len)
{
    if (namespace_.len > HF_ID_LEN_MAX || workflow_id.len > HF_ID_LEN_MAX) {
        return HF_ERR_TOO_BIG;
    }
    memcpy(text, namespace_.data != NULL ? namespace_.data : "", namespace_.len);
    text[namespace_.len] = '\x1f';
    memcpy(text + namespace_.len + 1, workflow_id.data != NULL ? workflow_id.data : "", workflow_id.len);
    *ret_len = namespace_.len + 1 + workflow_id.len;
    hf_assert(*ret_len <= HF_NAME_TEXT_LEN);
    return HF_OK;
}

int64_t hf_name_hash_by(const unsigned char *mac_key, unsigned bits_off, hf_str text)
{
    uint64_t hash = hf_siphash(mac_key, text) >> (64 - HF_NAME_BITS);
    return (int64_t)(hash >> bits_off << bits_off);
}

int64_t hf_name_hash(const hf_names *names, hf_str text)
{
    return hf_name_hash_by(names->mac_key, names->bits_off, text);
}

/* ---- In memory --------------------------------------------------------------------------------------------------------- */

static size_t bucket_of(int64_t hash)
{
    hf_assert(hash >= 0 && hash >> HF_NAME_BITS == 0);
    return (size_t)((uint64_t)hash >> (HF_NAME_BITS - HF_NAME_BUCKET_BITS));
}

/* Index of the first entry that is not less than (hash, run). */
static size_t place_of(const hf_name_bucket *bucket, int64_t hash, int64_t run)
{
    size_t low = 0;
    size_t high = bucket->entries.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const hf_name_entry *entry = &bucket->entries.items[middle];
        int64_t its = hf_name_entry_hash(entry);
        if (its < hash || (its == hash && entry->run < run)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The entry of this name; NULL = it is not in memory. */
static hf_name_entry *find(const hf_names *names, int64_t hash, int64_t run)
{
    const hf_name_bucket *bucket = &names->buckets[bucket_of(hash)];
    size_t at = place_of(bucket, hash, run);
    hf_name_entry *entry = at < bucket->entries.count ? &bucket->entries.items[at] : NULL;
    return entry != NULL && hf_name_entry_hash(entry) == hash && entry->run == run ? entry : NULL;
}

size_t hf_names_copy(const hf_names *names, hf_name_entry *ret_entries)
{
    size_t count = 0;
    for (size_t i = 0; i < HF_NAME_BUCKETS; i++) {
        const hf_name_bucket *bucket = &names->buckets[i];
        if (bucket->entries.count > 0) {
            memcpy(ret_entries + count, bucket->entries.items, bucket->entries.count * sizeof *ret_entries);
            count += bucket->entries.count;
        }
    }
    hf_assert(count == names->count);
    return count;
}

void hf_names_restore(hf_names *names, int64_t hash, int64_t run)
{
    int64_t gone = hash & HF_NAME_GONE;
    hash &= ~HF_NAME_GONE;
    hf_name_bucket *bucket = &names->buckets[bucket_of(hash)];
    hf_name_entry *found = find(names, hash, run);
    if (found != NULL) {
        found->hash |= gone; /* a name that is gone stays so, whichever of the two was read first */
        return;
    }
    if (!HF_VEC_RESERVE(names->memory, &bucket->entries)) {
        return;
    }
    size_t at = place_of(bucket, hash, run);
    hf_name_entry *entry = &bucket->entries.items[at];
    memmove(entry + 1, entry, (bucket->entries.count - at) * sizeof *entry);
    *entry = (hf_name_entry){hash | gone, run};
    bucket->entries.count++;
    names->count++;
}

static void add_fresh(hf_names *names, const hf_name_entry *entry, uint64_t commit)
{
    size_t count = names->fresh.count;
    hf_assert(count == 0 || names->fresh.items[count - 1].commit <= commit); /* by commit: hf_names_trim relies on it */
    if (HF_VEC_RESERVE(names->memory, &names->fresh)) {
        names->fresh.items[names->fresh.count++] = (hf_name_fresh){*entry, commit};
    }
}

void hf_names_add(hf_names *names, int64_t hash, int64_t run, uint64_t commit)
{
    hf_assert(!hf_names_is_gone(names, hash, run)); /* ledger-N1: no name comes back */
    hf_names_restore(names, hash, run);
    add_fresh(names, &(hf_name_entry){hash, run}, commit);
}

void hf_names_remove(hf_names *names, int64_t hash, int64_t run, uint64_t commit)
{
    hf_assert(!hf_names_is_gone(names, hash, run)); /* ledger-N1: once */
    if (HF_CANARY(HF_BUG_DELETED_NAME_LEFT)) {
        return;
    }
    hf_names_restore(names, hash | HF_NAME_GONE, run);
    add_fresh(names, &(hf_name_entry){hash | HF_NAME_GONE, run}, commit);
}

bool hf_names_is_gone(const hf_names *names, int64_t hash, int64_t run)
{
    if (hash < 0 || hash >> HF_NAME_BITS != 0) {
        return false; /* a row that was found under such a hash is damaged */
    }
    const hf_name_entry *entry = find(names, hash, run);
    return entry != NULL && hf_name_is_gone(entry);
}

int64_t hf_names_below(const hf_names *names, int64_t hash, int64_t below)
{
    const hf_name_bucket *bucket = &names->buckets[bucket_of(hash)];
    size_t at = place_of(bucket, hash, below);
    while (at > 0 && bucket->entries.items[at - 1].hash == (hash | HF_NAME_GONE)) {
        at--; /* ledger-N1 */
    }
    if (at == 0 || bucket->entries.items[at - 1].hash != hash) {
        return 0;
    }
    hf_assert(bucket->entries.items[at - 1].run < below); /* ledger-N2: from the newest to the oldest */
    return bucket->entries.items[at - 1].run;
}

/* ---- To the table ------------------------------------------------------------------------------------------------------ */

static void write_bucket(hf_names *names, hf_writes *writes, hf_name_bucket *bucket)
{
    for (size_t i = 0; i < bucket->entries.count; i++) {
        const hf_name_entry *entry = &bucket->entries.items[i];
        hf_key key = {.a = hf_name_entry_hash(entry), .b = entry->run};
        if (hf_name_is_gone(entry)) {
            hf_writes_delete(writes, HF_TABLE_NAME, key);
            names->deletes++;
        } else {
            hf_writes_put_key(writes, HF_TABLE_NAME, key);
        }
    }
    hf_assert(names->count >= bucket->entries.count);
    names->count -= bucket->entries.count;
    HF_VEC_FREE(names->memory, &bucket->entries);
    *bucket = (hf_name_bucket){0};
}

/* The names of all commits before the round's first are in the table now. A row of name_log has names of earlier commits than its own. */
static void end_round(hf_names *names, hf_writes *writes, uint64_t commit)
{
    size_t gone = 0;
    for (; gone < names->log.count && names->log.items[gone].commit <= names->sweep_commit; gone++) {
        hf_assert(names->log_count >= names->log.items[gone].count);
        names->log_count -= names->log.items[gone].count;
    }
    if (gone > 0) {
        names->log.count -= gone;
        memmove(names->log.items, names->log.items + gone, names->log.count * sizeof *names->log.items);
        hf_writes_delete_range(writes, HF_TABLE_NAME_LOG, (hf_key){.a = 0},
                               (hf_key){.a = (int64_t)names->sweep_commit + 1});
    }
    names->sweep = 0;
    names->sweep_commit = commit;
}

/* Index of the first fresh name that this commit adds. */
static size_t first_of(const hf_names *names, uint64_t commit)
{
    size_t first = names->fresh.count;
    while (first > 0 && names->fresh.items[first - 1].commit == commit) {
        first--;
    }
    return first;
}

bool hf_names_sweep(hf_names *names, hf_writes *writes, uint64_t commit, size_t count_max)
{
    size_t most = SWEEP_LEAST + names->fresh.count - first_of(names, commit); /* or memory would grow without end */
    most = most < SWEEP_MOST ? most : SWEEP_MOST;
    size_t moved = 0;
    bool has_ended = false;
    while (names->count > count_max && moved < most && names->memory->status == HF_OK) {
        hf_name_bucket *bucket = &names->buckets[names->sweep];
        moved += bucket->entries.count;
        write_bucket(names, writes, bucket);
        if (++names->sweep == HF_NAME_BUCKETS) {
            end_round(names, writes, commit);
            has_ended = true;
        }
    }
    return has_ended;
}

/* ---- Journal and name_log ---------------------------------------------------------------------------------------------- */

void hf_name_entry_put(hf_buf *out, const hf_name_entry *entry)
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
    if (words[0] < 0 || words[1] <= 0) {
        return false;
    }
    *rest = hf_str_of_len(rest->data + sizeof words, rest->len - sizeof words);
    *ret_entry = (hf_name_entry){words[0], words[1]};
    return true;
}

void hf_names_put(const hf_names *names, uint64_t commit, hf_buf *out)
{
    for (size_t i = first_of(names, commit); i < names->fresh.count; i++) {
        hf_name_entry_put(out, &names->fresh.items[i].entry);
    }
}

/* Records that name_log has a row with `count` names. */
static void add_row(hf_names *names, uint64_t commit, size_t count)
{
    if (HF_VEC_RESERVE(names->memory, &names->log)) {
        names->log.items[names->log.count++] = (hf_name_row){commit, count};
        names->log_count += count;
    }
}

void hf_names_trim(hf_names *names, hf_writes *writes, uint64_t commit, uint64_t keep)
{
    size_t count = 0;
    hf_buf *row = writes->row;
    hf_assert(keep <= commit);
    row->len = 0;
    for (; count < names->fresh.count && names->fresh.items[count].commit < keep; count++) {
        hf_name_entry_put(row, &names->fresh.items[count].entry);
    }
    if (count == 0) {
        return;
    }
    if (!HF_CANARY(HF_BUG_NAMES_CUT)) {
        hf_writes_put_record(writes, HF_TABLE_NAME_LOG, (hf_key){.a = (int64_t)commit}, row);
        add_row(names, commit, count);
    }
    names->fresh.count -= count;
    memmove(names->fresh.items, names->fresh.items + count, names->fresh.count * sizeof *names->fresh.items);
}

hf_status hf_names_read(hf_op *op, hf_names *names, uint64_t commit, hf_str bytes, hf_name_visit *visit, void *arg)
{
    hf_name_entry entry;
    while (hf_names_next(&bytes, &entry)) {
        if (visit != NULL) {
            visit(arg, &entry);
        }
        hf_names_restore(names, entry.hash, entry.run);
        add_fresh(names, &entry, commit);
    }
    return bytes.len == 0 ? HF_OK
                          : hf_fail(op, HF_ERR_INVALID, "commit %llu of the journal: its names cannot be read",
                                    (unsigned long long)commit);
}

static hf_status read_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    hf_names *names = arg;
    (void)arena;
    hf_str rest = {0};
    hf_name_entry entry;
    size_t count = 0;
    HF_TRY(hf_record_open(op, HF_TABLE_NAME_LOG, &row->key, row->value, &rest));
    for (; hf_names_next(&rest, &entry); count++) {
        hf_names_restore(names, entry.hash, entry.run);
    }
    add_row(names, (uint64_t)row->key.a, count);
    return rest.len == 0 ? HF_OK
                         : hf_fail(op, HF_ERR_INVALID, "names of commit %lld cannot be read", (long long)row->key.a);
}

hf_status hf_names_read_log(hf_op *op, hf_names *names, hf_store *store, uint64_t logged)
{
    HF_TRY(hf_store_each_row(op, store, names->memory->heap, HF_TABLE_NAME_LOG, NULL, NULL, read_row, names));
    if (names->memory->status != HF_OK) {
        return hf_fail(op, names->memory->status, "no memory for the names of runs");
    }
    return names->log_count == logged
               ? HF_OK
               : hf_fail(op, HF_ERR_INVALID, "the table name_log has %zu names, but the journal says %llu",
                         names->log_count, (unsigned long long)logged);
}
