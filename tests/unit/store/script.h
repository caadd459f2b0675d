/* A script of commits, what a store holds after each of them, and the question whether a disk holds that. The script runs once on
 * the memory store, which tells the hash of the contents after each commit. */
#ifndef HF_TESTS_STORE_SCRIPT_H
#define HF_TESTS_STORE_SCRIPT_H

#include "backends.h"

#include "store/sqlite/sqlite_private.h"

#include <stdio.h>

enum { COMMITS = 24, WRITES_MAX = 12, VALUE_LEN_MAX = 6000 };

/* ---- The script ---------------------------------------------------------------------------------------------------- */

typedef struct script {
    uint64_t seed;
    const hf_table_set *tables;             /* of the stores it runs on */
    bool unsynced[COMMITS];                 /* by commit: it asks not to be synced */
    uint64_t hashes[COMMITS + 1];           /* of the contents after so many commits */
    size_t write_count[COMMITS];            /* by commit */
    hf_write writes[COMMITS][WRITES_MAX];   /* the same */
    bool checkpoint_after[COMMITS];         /* the same */
    char text[COMMITS][2 * WRITES_MAX][12]; /* of keys */
    char bytes[VALUE_LEN_MAX];              /* of values */
} script;

static inline hf_key script_key(script *s, hf_rng *rng, hf_table table, int commit, unsigned slot)
{
    const hf_table_info *info = hf_table_info_of(table);
    hf_key key = {.a = info->has_a ? (int64_t)hf_rng_below(rng, 30) : 0,
                  .b = info->has_b ? (int64_t)hf_rng_below(rng, 5) : 0};
    if (info->has_text) {
        char *text = s->text[commit][slot];
        key.text = hf_str_of_len(text, (size_t)snprintf(text, 12, "k%d", (int)hf_rng_below(rng, 20)));
    }
    return key;
}

static inline hf_write script_write(script *s, hf_rng *rng, int commit, unsigned slot)
{
    hf_table table = s->tables->tables[hf_rng_below(rng, s->tables->count)];
    table = table == HF_TABLE_JOURNAL ? HF_TABLE_HISTORY : table;
    uint64_t kind = hf_rng_below(rng, 10);
    hf_write write = {
        .table = table,
        .kind = kind < 7   ? HF_WRITE_PUT
                : kind < 9 ? HF_WRITE_DELETE
                           : HF_WRITE_DELETE_RANGE,
        .key = script_key(s, rng, table, commit, 2 * slot),
    };
    if (write.kind == HF_WRITE_DELETE_RANGE) {
        write.key_end = script_key(s, rng, table, commit, 2 * slot + 1);
    }
    if (write.kind == HF_WRITE_PUT && hf_table_info_of(table)->has_value) {
        write.value = hf_str_of_len(s->bytes, hf_rng_below(rng, hf_rng_below(rng, 6) == 0 ? VALUE_LEN_MAX : 200));
    }
    return write;
}

/* Commits as the engine makes them: mostly with a journal row, now and then with the journal trimmed. Where there is no journal,
 * without. */
static inline void script_init_of(script *s, uint64_t seed, const hf_table_set *tables)
{
    memset(s, 0, sizeof *s);
    s->seed = seed;
    s->tables = tables;
    bool has_journal = hf_table_set_has(tables, HF_TABLE_JOURNAL);
    hf_rng rng = {seed};
    for (size_t i = 0; i < VALUE_LEN_MAX; i++) {
        s->bytes[i] = (char)hf_rng_next(&rng);
    }
    place twin = place_new_of("memory", tables);
    s->hashes[0] = hash_of(&twin);
    for (int i = 0; i < COMMITS; i++) {
        size_t count = 0;
        if (has_journal && hf_rng_below(&rng, 8) != 0) {
            s->writes[i][count++] =
                put(HF_TABLE_JOURNAL, key_a(i + 1), hf_str_of_len(s->bytes, hf_rng_below(&rng, 5000)));
        }
        if (has_journal && hf_rng_below(&rng, 6) == 0) {
            s->writes[i][count++] =
                del_range(HF_TABLE_JOURNAL, key_a(0), key_a((int64_t)hf_rng_below(&rng, (uint64_t)i + 3)));
        }
        while (count < WRITES_MAX && hf_rng_below(&rng, 5) != 0) {
            s->writes[i][count] = script_write(s, &rng, i, (unsigned)count);
            count++;
        }
        s->write_count[i] = count;
        s->checkpoint_after[i] = hf_rng_below(&rng, 7) == 0;
        commit_writes(&twin, s->writes[i], count);
        s->hashes[i + 1] = hash_of(&twin);
    }
    place_free(&twin);
}

static inline void script_init(script *s, uint64_t seed)
{
    script_init_of(s, seed, &hf_engine_tables);
}

/* Two of three commits ask not to be synced, in runs of some length. */
static inline void script_mix(script *s)
{
    hf_rng rng = {s->seed + 1};
    for (int i = 0; i < COMMITS; i++) {
        s->unsynced[i] = hf_rng_below(&rng, 3) != 0;
    }
}

static inline hf_store_request script_commit(const script *s, uint64_t number)
{
    hf_assert(number >= 1 && number <= COMMITS);
    return (hf_store_request){.verb = HF_STORE_COMMIT,
                              .commit = number,
                              .writes = s->writes[number - 1],
                              .write_count = s->write_count[number - 1],
                              .unsynced = s->unsynced[number - 1]};
}

/* ---- What is left -------------------------------------------------------------------------------------------------- */

static inline hf_status open_of(const hf_table_set *tables, hf_vfs *disk, const char *file, bool must_exist,
                                hf_durability durability, hf_store **ret_store, hf_op *op)
{
    hf_sqlite_options options = {.tables = tables,
                                 .vfs = hf_vfs_name(disk),
                                 .cache_len = 64 * 1024,
                                 .must_exist = must_exist,
                                 .durability = durability,
                                 .reread = hf_vfs_reread,
                                 .reread_state = disk};
    hf_op_init(op);
    *ret_store = NULL;
    return hf_sqlite_open(op, HEAP, file, &options, ret_store);
}

static inline hf_status open_on(hf_vfs *disk, const char *file, bool must_exist, hf_durability durability,
                                hf_store **ret_store, hf_op *op)
{
    return open_of(&hf_engine_tables, disk, file, must_exist, durability, ret_store, op);
}

static inline bool is_whole(hf_store *store)
{
    sqlite3_stmt *check = NULL;
    sqlite3 *db = ((hf_sqlite *)store)->db;
    bool whole = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &check, NULL) == SQLITE_OK &&
                 sqlite3_step(check) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(check, 0), "ok") == 0;
    (void)sqlite3_finalize(check);
    return whole;
}

static uint64_t last_seen; /* by disk_is_good: the last commit */

/* Opens the database on the disk and compares it with the script, which must have got to a commit in [least, most]. */
static inline bool disk_is_good(const script *s, hf_vfs *disk, uint64_t least, uint64_t most, const char *when)
{
    hf_store *store = NULL;
    hf_op op;
    hf_status status = open_of(s->tables, disk, "test.db", false, HF_DURABILITY_FULL, &store, &op);
    if (!HF_CHECK_SAY(status == HF_OK, "%s, %d to %d: %s", when, (int)least, (int)most, op.message)) {
        return false;
    }
    uint64_t last = last_seen = store->ops->last_commit(store);
    uint64_t hash = 0;
    bool good = HF_CHECK_SAY(last >= least && last <= most, "%s: commit %d instead of %d to %d", when, (int)last,
                             (int)least, (int)most) &&
                HF_CHECK(hf_store_hash(&op, store, HEAP, &hash) == HF_OK) &&
                HF_CHECK_SAY(hash == s->hashes[last], "%s: other contents after commit %d", when, (int)last) &&
                HF_CHECK_SAY(is_whole(store), "%s: not whole after commit %d", when, (int)last);
    hf_store_close(store);
    return good;
}

#endif
