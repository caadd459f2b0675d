/* The stores that every test of the contract runs on, and short ways to ask them. */
#ifndef HF_TESTS_BACKENDS_H
#define HF_TESTS_BACKENDS_H

#include "support/support.h"

#include "base/rng.h"
#include "store/mem.h"
#include "store/sqlite/sqlite.h"
#include "support/vfs.h"

#include <stdlib.h>
#include <string.h>

static void *heap_allocate(void *state, size_t len, size_t align)
{
    (void)state;
    (void)align;
    return malloc(len);
}

static void heap_release(void *state, void *ptr, size_t len)
{
    (void)state;
    (void)len;
    free(ptr);
}

static const hf_allocator HEAP = {heap_allocate, heap_release, NULL};

static const char *const KINDS[] = {"memory", "sqlite"};
static const hf_table_set *const SETS[] = {&hf_engine_tables, &hf_depot_tables};

/* A place where stores of one kind live: for SQLite a disk that outlives them. */
typedef struct place {
    const char *kind;           /* "memory" or "sqlite" */
    const hf_table_set *tables; /* of its stores; NULL = the engine's */
    hf_vfs *disk;               /* of SQLite */
    hf_store *store;            /* open, or NULL */
    uint64_t commit;            /* number of the last commit asked for */
} place;

static inline hf_status place_try_open(place *p, hf_op *op)
{
    hf_op_init(op);
    if (strcmp(p->kind, "memory") == 0) {
        return hf_mem_store_open(op, HEAP, p->tables, &p->store);
    }
    if (p->disk == NULL) {
        return hf_fail(op, HF_ERR_UNSUPPORTED, "backends.h does not know how to open a store of the kind %s", p->kind);
    }
    hf_sqlite_options options = {.tables = p->tables, .vfs = hf_vfs_name(p->disk), .cache_len = 256 * 1024};
    return hf_sqlite_open(op, HEAP, "test.db", &options, &p->store);
}

static inline void place_open(place *p)
{
    hf_op op;
    hf_status status = place_try_open(p, &op);
    if (status != HF_OK) {
        fail_msg("%s: %s", p->kind, op.message);
    }
    p->commit = p->store->ops->last_commit(p->store);
}

static inline place place_new_of(const char *kind, const hf_table_set *tables)
{
    place p = {.kind = kind, .tables = tables};
    if (strcmp(kind, "sqlite") == 0) {
        p.disk = hf_vfs_new("place", 1);
    }
    place_open(&p);
    return p;
}

static inline place place_new(const char *kind)
{
    return place_new_of(kind, NULL);
}

/* A table of the set whose keys are one number, and one whose keys are a text. */
static inline hf_table number_table(const place *p)
{
    return p->tables == &hf_depot_tables ? HF_TABLE_PENDING : HF_TABLE_RUN;
}

static inline hf_table text_table(const place *p)
{
    return p->tables == &hf_depot_tables ? HF_TABLE_ENTRY : HF_TABLE_META;
}

static inline void place_free(place *p)
{
    hf_store_close(p->store);
    hf_vfs_free(p->disk);
    *p = (place){0};
}

/* Closes and opens again; a store in memory would forget, so it stays. */
static inline void place_reopen(place *p)
{
    if (p->disk != NULL) {
        hf_store_close(p->store);
        place_open(p);
    }
}

static inline hf_write put(hf_table table, hf_key key, hf_str value)
{
    return (hf_write){.table = table, .kind = HF_WRITE_PUT, .key = key, .value = value};
}

static inline hf_write del(hf_table table, hf_key key)
{
    return (hf_write){.table = table, .kind = HF_WRITE_DELETE, .key = key};
}

static inline hf_write del_range(hf_table table, hf_key key, hf_key end)
{
    return (hf_write){.table = table, .kind = HF_WRITE_DELETE_RANGE, .key = key, .key_end = end};
}

static inline hf_key key_text(const char *text)
{
    return (hf_key){.text = hf_str_of(text)};
}

static inline hf_key key_a(int64_t a)
{
    return (hf_key){.a = a};
}

static inline hf_key key_ab(int64_t a, int64_t b)
{
    return (hf_key){.a = a, .b = b};
}

static inline hf_key key_text_a(const char *text, int64_t a)
{
    return (hf_key){.text = hf_str_of(text), .a = a};
}

static inline hf_status commit_as(place *p, uint64_t number, const hf_write *writes, size_t count)
{
    hf_store_request request = {.verb = HF_STORE_COMMIT, .commit = number, .writes = writes, .write_count = count};
    hf_store_execute(p->store, &request);
    return request.status;
}

static inline void commit_writes_with(place *p, const hf_write *writes, size_t count, bool unsynced)
{
    hf_store_request request = {
        .verb = HF_STORE_COMMIT, .commit = ++p->commit, .writes = writes, .write_count = count, .unsynced = unsynced};
    hf_store_execute(p->store, &request);
    if (request.status != HF_OK) {
        fail_msg("%s: %s", p->kind, request.op.message);
    }
}

static inline void commit_writes(place *p, const hf_write *writes, size_t count)
{
    commit_writes_with(p, writes, count, false);
}

#define COMMIT(place, ...)                                                 \
    do {                                                                   \
        const hf_write writes_[] = {__VA_ARGS__};                          \
        commit_writes((place), writes_, sizeof writes_ / sizeof *writes_); \
    } while (0)

/* A scan of all of a table, in an arena of the caller's. */
static inline hf_store_request scan_of(place *p, hf_arena *arena, hf_table table)
{
    (void)p;
    return (hf_store_request){
        .verb = HF_STORE_SCAN,
        .table = table,
        .key = {.a = INT64_MIN, .b = INT64_MIN},
        .key_end = hf_key_last(),
        .arena = arena,
    };
}

static inline void run(place *p, hf_store_request *request)
{
    hf_store_execute(p->store, request);
    if (request->status != HF_OK) {
        fail_msg("%s: %s", p->kind, request->op.message);
    }
}

static inline hf_store_request get(place *p, hf_arena *arena, hf_table table, hf_key key)
{
    hf_store_request request = {.verb = HF_STORE_GET, .table = table, .key = key, .arena = arena};
    run(p, &request);
    return request;
}

static inline uint64_t hash_of(place *p)
{
    hf_op op;
    hf_op_init(&op);
    uint64_t hash = 0;
    if (hf_store_hash(&op, p->store, HEAP, &hash) != HF_OK) {
        fail_msg("%s: %s", p->kind, op.message);
    }
    return hash;
}

#endif
