/* The memory store: a skip list per table.
 *
 *     level 2   head ------------------------> 7 ----------------------> end
 *     level 1   head --------> 3 ------------> 7 --------> 12 ---------> end
 *     level 0   head -> 1 ---> 3 ---> 4 -----> 7 -> 9 ---> 12 -> 15 ---> end      (and back, for scans from the end)
 *
 * A row is one allocation: node, links, text and value. Heights come from a generator with a fixed seed, so equal histories
 * of commits give equal lists. A commit allocates all its rows first and then links them, which cannot fail: so
 * it is atomic (store-S1, store-S5). */
#include "store/mem.h"
#include "store/store_private.h"

#include "base/rng.h"

enum { HEIGHT_MAX = 16 }; /* of each height one in four is higher: enough for 4^16 rows */

typedef struct row_node row_node;
struct row_node {
    hf_key key;     /* its text lies behind the links */
    hf_str value;   /* lies behind the text */
    size_t len;     /* of the allocation */
    row_node *prev; /* at level 0; the head for the first */
    row_node *
        *next; /* by level, behind the node; NULL = the end. Until it is linked, next[0] is the commit's next row */
    unsigned height; /* number of links */
};

_Static_assert(sizeof(row_node) % _Alignof(row_node *) == 0, "the links follow the node");

typedef struct table_list {
    row_node head;               /* before the first; has no key */
    row_node *links[HEIGHT_MAX]; /* of the head */
} table_list;

typedef struct mem_store {
    hf_store base;                      /* the interface */
    hf_allocator memory;                /* where everything comes from */
    hf_rng rng;                         /* heights */
    uint64_t last_commit;               /* number of the last one */
    uint64_t commits;                   /* since open */
    uint64_t row_count[HF_TABLE_COUNT]; /* linked rows */
    table_list tables[HF_TABLE_COUNT];  /* the rows; those of tables of other sets are not used */
} mem_store;

/* ---- The lists ----------------------------------------------------------------------------------------------------- */

/* The first row that is not before `key`; `ret_before`, if asked for, gets the last node before it on every level. */
static row_node *find(mem_store *store, hf_table table, const hf_key *key, row_node **ret_before)
{
    row_node *node = &store->tables[table].head;
    hf_assert(hf_table_set_has(store->base.tables, table));
    for (unsigned level = HEIGHT_MAX; level-- > 0;) {
        while (node->next[level] != NULL && hf_key_compare(&node->next[level]->key, key) < 0) {
            node = node->next[level];
        }
        if (ret_before != NULL) {
            ret_before[level] = node;
        }
    }
    return node->next[0];
}

/* Unlinks and frees the row that follows `before`. */
static void drop(mem_store *store, hf_table table, row_node *row, row_node **before)
{
    for (unsigned level = 0; level < row->height; level++) {
        hf_assert(before[level]->next[level] == row);
        before[level]->next[level] = row->next[level];
    }
    hf_assert(row->prev == before[0]);
    if (row->next[0] != NULL) {
        row->next[0]->prev = row->prev;
    }
    hf_assert(store->row_count[table] > 0);
    store->row_count[table]--;
    store->memory.release(store->memory.state, row, row->len);
}

static void drop_range(mem_store *store, hf_table table, const hf_key *key, const hf_key *end)
{
    row_node *before[HEIGHT_MAX];
    row_node *row = find(store, table, key, before);
    while (row != NULL && hf_key_compare(&row->key, end) < 0) {
        row_node *next = row->next[0];
        drop(store, table, row, before);
        row = next;
    }
}

/* Drops the row with this key, if there is one; `before` gets the nodes before its place. */
static void drop_one(mem_store *store, hf_table table, const hf_key *key, row_node **before)
{
    row_node *row = find(store, table, key, before);
    if (row != NULL && hf_key_compare(&row->key, key) == 0) {
        drop(store, table, row, before);
    }
}

static void insert(mem_store *store, hf_table table, row_node *fresh)
{
    row_node *before[HEIGHT_MAX];
    drop_one(store, table, &fresh->key, before);
    for (unsigned level = 0; level < fresh->height; level++) {
        fresh->next[level] = before[level]->next[level];
        before[level]->next[level] = fresh;
    }
    fresh->prev = before[0];
    if (fresh->next[0] != NULL) {
        hf_assert(hf_key_compare(&fresh->key, &fresh->next[0]->key) < 0);
        fresh->next[0]->prev = fresh;
    }
    store->row_count[table]++;
}

/* ---- Commits ------------------------------------------------------------------------------------------------------- */

static hf_str copy_to(char *to, hf_str from)
{
    if (from.len > 0) {
        memcpy(to, from.data, from.len);
    }
    return (hf_str){to, from.len};
}

static row_node *make_row(mem_store *store, const hf_write *write)
{
    unsigned height = 1;
    while (height < HEIGHT_MAX && hf_rng_below(&store->rng, 4) == 0) {
        height++;
    }
    hf_assert(height >= 1 && height <= HEIGHT_MAX);
    size_t head_len = sizeof(row_node) + height * sizeof(row_node *);
    size_t len = head_len + write->key.text.len + write->value.len;
    row_node *row = store->memory.allocate(store->memory.state, len, _Alignof(row_node));
    if (row != NULL) {
        *row = (row_node){.key = write->key, .len = len, .next = (row_node **)(row + 1), .height = height};
        row->key.text = copy_to((char *)row + head_len, write->key.text);
        row->value = copy_to((char *)row + head_len + write->key.text.len, write->value);
    }
    return row;
}

static void free_rows(mem_store *store, row_node *row)
{
    while (row != NULL) {
        row_node *next = row->next[0];
        store->memory.release(store->memory.state, row, row->len);
        row = next;
    }
}

/* Allocates one row per put, in the order of the writes. */
static hf_status make_rows(mem_store *store, hf_store_request *request, row_node **ret_fresh)
{
    row_node *fresh = NULL;
    row_node *last = NULL;
    for (size_t i = 0; i < request->write_count; i++) {
        if (request->writes[i].kind != HF_WRITE_PUT) {
            continue;
        }
        row_node *row = make_row(store, &request->writes[i]);
        if (row == NULL) {
            free_rows(store, fresh);
            return hf_fail(&request->op, HF_ERR_NOMEM, "no memory for the %zu writes of commit %llu",
                           request->write_count, (unsigned long long)request->commit);
        }
        row->next[0] = NULL;
        if (last == NULL) {
            fresh = row;
        } else {
            last->next[0] = row;
        }
        last = row;
    }
    *ret_fresh = fresh;
    return HF_OK;
}

static hf_status commit(mem_store *store, hf_store_request *request)
{
    if (request->commit != store->last_commit + 1) {
        return hf_fail(&request->op, HF_ERR_CONFLICT, "commit %llu cannot follow commit %llu",
                       (unsigned long long)request->commit, (unsigned long long)store->last_commit);
    }
    row_node *fresh = NULL;
    HF_TRY(make_rows(store, request, &fresh));
    for (size_t i = 0; i < request->write_count; i++) {
        const hf_write *write = &request->writes[i];
        hf_key key = hf_key_used(write->table, &write->key);
        hf_key end = hf_key_used(write->table, &write->key_end);
        row_node *before[HEIGHT_MAX];
        switch (write->kind) {
        case HF_WRITE_PUT: {
            row_node *row = fresh;
            hf_assert(row != NULL); /* store-S1: every row was made before the first was linked */
            fresh = fresh->next[0];
            insert(store, write->table, row);
            break;
        }
        case HF_WRITE_DELETE:
            drop_one(store, write->table, &key, before);
            break;
        case HF_WRITE_DELETE_RANGE:
            drop_range(store, write->table, &key, &end);
            break;
        }
    }
    hf_assert(fresh == NULL); /* store-S1: and every row is linked */
    store->last_commit = request->commit;
    store->commits++;
    return HF_OK;
}

/* ---- Reads --------------------------------------------------------------------------------------------------------- */

static hf_status get(mem_store *store, hf_store_request *request)
{
    hf_key key = hf_key_used(request->table, &request->key);
    const row_node *row = find(store, request->table, &key, NULL);
    if (row == NULL || hf_key_compare(&row->key, &key) != 0) {
        return HF_OK;
    }
    request->value = hf_arena_copy(request->arena, row->value);
    if (request->arena->status != HF_OK) {
        return hf_fail(&request->op, HF_ERR_NOMEM, "no memory for a value of %zu bytes", row->value.len);
    }
    request->found = true;
    return HF_OK;
}

static hf_status scan_forwards(mem_store *store, hf_store_request *request, const hf_key *key, const hf_key *end)
{
    hf_scan scan = {.request = request};
    for (const row_node *row = find(store, request->table, key, NULL);
         row != NULL && hf_key_compare(&row->key, end) < 0 && hf_scan_wants(&scan); row = row->next[0]) {
        HF_TRY(hf_scan_add(&scan, &row->key, row->value));
    }
    return HF_OK;
}

static hf_status scan_backwards(mem_store *store, hf_store_request *request, const hf_key *key, const hf_key *end)
{
    hf_scan scan = {.request = request};
    row_node *before[HEIGHT_MAX];
    (void)find(store, request->table, end, before);
    const row_node *head = &store->tables[request->table].head;
    for (const row_node *row = before[0]; row != head && hf_key_compare(&row->key, key) >= 0 && hf_scan_wants(&scan);
         row = row->prev) {
        HF_TRY(hf_scan_add(&scan, &row->key, row->value));
    }
    return HF_OK;
}

static hf_status scan(mem_store *store, hf_store_request *request)
{
    hf_key key = hf_key_used(request->table, &request->key);
    hf_key end = hf_key_used(request->table, &request->key_end);
    return request->backwards ? scan_backwards(store, request, &key, &end) : scan_forwards(store, request, &key, &end);
}

/* ---- The interface ------------------------------------------------------------------------------------------------- */

static hf_status stats(const mem_store *store, hf_store_request *request)
{
    request->stats = (hf_store_stats){.commits = store->commits};
    request->more = false;
    if (request->count != NULL) {
        memcpy(request->stats.rows, store->row_count, sizeof store->row_count);
    }
    return HF_OK;
}

static hf_status mem_execute(hf_store *base, hf_store_request *request)
{
    mem_store *store = HF_CONTAINER(base, mem_store, base);
    hf_assert(base->ops->execute == mem_execute);
    switch (request->verb) {
    case HF_STORE_COMMIT: /* `unsynced` changes nothing: there is no disk */
        return commit(store, request);
    case HF_STORE_GET:
        return get(store, request);
    case HF_STORE_SCAN:
        return scan(store, request);
    case HF_STORE_CHECKPOINT:
    case HF_STORE_SHRINK: /* what is deleted is freed at once */
        return HF_OK;
    case HF_STORE_BACKUP:
        return hf_fail(&request->op, HF_ERR_UNSUPPORTED, "a store in memory cannot be backed up");
    case HF_STORE_STATS:
        return stats(store, request);
    }
    return hf_fail(&request->op, HF_ERR_MISUSE, "unknown request %d", (int)request->verb);
}

static uint64_t mem_last_commit(hf_store *base)
{
    return HF_CONTAINER(base, mem_store, base)->last_commit;
}

static void mem_close(hf_store *base)
{
    mem_store *store = HF_CONTAINER(base, mem_store, base);
    for (size_t i = 0; i < base->tables->count; i++) {
        free_rows(store, store->tables[base->tables->tables[i]].head.next[0]);
    }
    store->memory.release(store->memory.state, store, sizeof *store);
}

static const hf_store_ops MEM_OPS = {
    .name = "memory",
    .execute = mem_execute,
    .last_commit = mem_last_commit,
    .close = mem_close,
};

hf_status hf_mem_store_open(hf_op *op, hf_allocator memory, const hf_table_set *tables, hf_store **ret_store)
{
    mem_store *store = memory.allocate(memory.state, sizeof *store, _Alignof(mem_store));
    if (store == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a store");
    }
    memset(store, 0, sizeof *store);
    store->base.ops = &MEM_OPS;
    store->base.tables = tables != NULL ? tables : &hf_engine_tables;
    store->memory = memory;
    store->rng.state = 1;
    for (size_t i = 0; i < store->base.tables->count; i++) {
        table_list *list = &store->tables[store->base.tables->tables[i]];
        list->head.next = list->links;
    }
    *ret_store = &store->base;
    return HF_OK;
}
