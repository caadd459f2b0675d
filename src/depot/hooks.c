/* A source of the user's own: requests of the depot become calls of its functions, on the runtime's pool.
 *
 *     driver                      fiber of the source                  thread of the pool
 *     submit: a request -------> takes those that wait, in order
 *                                  reads that stand together: one ---> read_many
 *                                  a commit, a scan -----------------> write, scan
 *     act, later  <------------- done: posts
 *
 * The fiber is a child of the depot's scope. A canceled fiber still writes what it was given: the wait for the pool has
 * a shield then. It ends when it is told to, and closes the source.
 *
 * depot-H1  One call at a time, in the order of the requests: a read sees every earlier write (store-S3).
 * depot-H2  What comes from the user is checked: keys of the right length and in their order, no more rows than fit. */
#include "depot/file.h"

#include <holdfast/dispatch.h>

enum { READ_MANY_MAX = 256, NUMBER_LEN = 8 };
static const int64_t SHIELD_NS = INT64_C(5) * 1000000000;

/* Requests that one call on the pool executes. */
typedef struct group {
    hf_hooks *hooks;
    bool has_run;
    size_t count;
    hf_store_request *requests[READ_MANY_MAX];
    hf_source_row rows[READ_MANY_MAX];
} group;

struct hf_hooks {
    hf_spin lock; /* guards waiting, sleeper, ends */
    hf_store store;
    hf_source_hooks hooks;
    hf_depot *depot;
    uint64_t last_commit; /* since it was opened: the user's rows have no number */
    hf_list waiting;      /* requests */
    hf_list sleeper;      /* the fiber, while it has nothing to do */
    bool ends;
    group group; /* of the fiber */
};

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

static hf_source_kind kind_of(hf_table table)
{
    switch ((int)table) {
    case HF_TABLE_ENTRY:
        return HF_SOURCE_ENTRY;
    case HF_TABLE_SPACE:
        return HF_SOURCE_SPACE;
    case HF_TABLE_PENDING:
        return HF_SOURCE_PENDING;
    case HF_TABLE_ALIAS:
        return HF_SOURCE_ALIAS;
    default:
        hf_assert(table == HF_TABLE_META); /* hf_store_execute has checked that the table is one of a depot */
        return HF_SOURCE_META;
    }
}

/* The key as bytes; a number is written into `room`. */
static hf_str bytes_of(hf_table table, const hf_key *key, unsigned char room[NUMBER_LEN])
{
    if (table != HF_TABLE_PENDING) {
        return key->text;
    }
    uint64_t number = key->a > 0 ? (uint64_t)key->a : 0; /* hf_key_first has a negative one */
    for (int i = 0; i < NUMBER_LEN; i++) {
        room[i] = (unsigned char)(number >> (56 - 8 * i));
    }
    return hf_str_of_len(room, NUMBER_LEN);
}

/* The reverse. False: the user's bytes are not a key (depot-H2). */
static bool key_of(hf_table table, const void *bytes, size_t len, hf_key *ret_key)
{
    if (bytes == NULL || len == 0) {
        return false;
    }
    if (table != HF_TABLE_PENDING) {
        *ret_key = (hf_key){.text = hf_str_of_len(bytes, len)};
        return len <= HF_SOURCE_KEY_LEN_MAX;
    }
    uint64_t number = 0;
    for (size_t i = 0; i < len && len == NUMBER_LEN; i++) {
        number = number << 8 | ((const unsigned char *)bytes)[i];
    }
    *ret_key = (hf_key){.a = (int64_t)number};
    return len == NUMBER_LEN && number < INT64_MAX;
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

static hf_status no_memory(hf_store_request *request)
{
    return hf_fail(&request->op, HF_ERR_NOMEM, "no memory for rows of the source");
}

/* What the user's function said, as the failure of the request. */
static hf_status fail_of(hf_store_request *request, hf_status status, const char *what)
{
    const hf_failure *failure = hf_error_as(status);
    return hf_fail(&request->op, status, "%s of the source failed: %s", what,
                   failure != NULL ? failure->message : hf_status_text(status));
}

/* Takes the value of a row into the request. */
static hf_status take_row(hf_store_request *request, hf_source_row *row)
{
    hf_value *data = row->data;
    row->data = NULL;
    if (data == NULL) {
        return HF_OK;
    }
    size_t len = hf_value_len(data);
    char *copy = hf_arena_take(request->arena, len > 0 ? len : 1, 1);
    if (copy != NULL) {
        memcpy(copy, hf_value_data(data), len);
        request->value = hf_str_of_len(copy, len);
        request->found = true;
    }
    hf_value_unref(data);
    return copy != NULL ? HF_OK : no_memory(request);
}

static hf_status get(hf_hooks *hooks, hf_store_request *request)
{
    unsigned char room[NUMBER_LEN];
    hf_str key = bytes_of(request->table, &request->key, room);
    hf_source_row row = {.kind = kind_of(request->table), .key = key.data, .key_len = key.len};
    hf_status status = hooks->hooks.read(hooks->hooks.state, &row);
    if (status != HF_OK) {
        hf_value_unref(row.data);
        return fail_of(request, status, "a read");
    }
    return take_row(request, &row);
}

typedef struct scanning {
    hf_store_request *request;
    size_t capacity; /* of request->rows */
    size_t len;      /* of what was taken */
    hf_key last;
    hf_status status;
} scanning;

static bool grow(scanning *one)
{
    hf_store_request *request = one->request;
    size_t capacity = one->capacity > 0 ? 2 * one->capacity : 16;
    hf_row *rows = HF_ARENA_ARRAY(request->arena, hf_row, capacity);
    if (rows == NULL) {
        return false;
    }
    if (request->row_count > 0) {
        memcpy(rows, request->rows, request->row_count * sizeof *rows);
    }
    request->rows = rows;
    one->capacity = capacity;
    return true;
}

static bool visit(void *arg, const void *key_bytes, size_t key_len, const void *data, size_t len)
{
    scanning *one = arg;
    hf_store_request *request = one->request;
    hf_key key;
    if (one->status != HF_OK) {
        return false; /* it was told so */
    }
    if (!key_of(request->table, key_bytes, key_len, &key) || (data == NULL && len > 0) ||
        (request->row_count > 0 && hf_key_compare(&key, &one->last) <= 0) ||
        hf_key_compare(&key, &request->key) < 0) { /* depot-H2 */
        one->status = hf_fail(&request->op, HF_ERR_INVALID,
                              "a scan of the source gave a key that is none, is out of order, or is before the first");
        return false;
    }
    if (hf_key_compare(&key, &request->key_end) >= 0) {
        return false;
    }
    if ((request->row_max > 0 && request->row_count >= request->row_max) ||
        (request->len_max > 0 && one->len >= request->len_max)) {
        request->more = true;
        return false;
    }
    char *copy = hf_arena_take(request->arena, key_len + len, 1);
    if (copy == NULL || (request->row_count == one->capacity && !grow(one))) {
        one->status = no_memory(request);
        return false;
    }
    memcpy(copy, key_bytes, key_len);
    if (len > 0) {
        memcpy(copy + key_len, data, len);
    }
    if (request->table != HF_TABLE_PENDING) {
        key.text = hf_str_of_len(copy, key_len);
    }
    request->rows[request->row_count++] = (hf_row){key, hf_str_of_len(copy + key_len, len)};
    one->last = key;
    one->len += key_len + len;
    return true;
}

static hf_status scan(hf_hooks *hooks, hf_store_request *request)
{
    unsigned char room[NUMBER_LEN];
    hf_str from = bytes_of(request->table, &request->key, room);
    scanning one = {.request = request};
    hf_assert(!request->backwards); /* a depot has no use for it */
    hf_status status = hooks->hooks.scan(hooks->hooks.state, kind_of(request->table), from.len > 0 ? from.data : "",
                                         from.len, visit, &one);
    if (one.status == HF_OK && status != HF_OK) {
        one.status = fail_of(request, status, "a scan");
    }
    if (one.status != HF_OK) {
        request->row_count = 0;
        request->more = false;
    }
    return one.status;
}

static hf_status commit(hf_hooks *hooks, hf_store_request *request)
{
    hf_runtime *rt = hooks->depot->rt;
    size_t count = request->write_count;
    hf_assert(request->commit == hooks->last_commit + 1); /* store-S4: there is no other writer here */
    hf_source_write *writes = hf_rt_alloc(rt, (count > 0 ? count : 1) * (sizeof *writes + NUMBER_LEN));
    if (writes == NULL) {
        return no_memory(request);
    }
    unsigned char *room = (unsigned char *)(writes + count);
    for (size_t i = 0; i < count; i++) {
        const hf_write *write = &request->writes[i];
        hf_str key = bytes_of(write->table, &write->key, room + i * NUMBER_LEN);
        bool is_put = write->kind == HF_WRITE_PUT;
        hf_assert(write->kind != HF_WRITE_DELETE_RANGE); /* a depot has no use for it */
        writes[i] = (hf_source_write){
            .kind = kind_of(write->table),
            .key = key.data,
            .key_len = key.len,
            .data = is_put ? write->value.data : NULL,
            .len = is_put ? write->value.len : 0,
        };
    }
    hf_status status = hooks->hooks.write(hooks->hooks.state, writes, count, !request->unsynced);
    hf_rt_free(rt, writes, (count > 0 ? count : 1) * (sizeof *writes + NUMBER_LEN));
    if (status != HF_OK) {
        return fail_of(request, status, "a write");
    }
    hooks->last_commit++;
    return HF_OK;
}

static hf_status execute(hf_store *store, hf_store_request *request)
{
    hf_hooks *hooks = HF_CONTAINER(store, hf_hooks, store);
    switch ((int)request->verb) {
    case HF_STORE_GET:
        return get(hooks, request);
    case HF_STORE_SCAN:
        return scan(hooks, request);
    case HF_STORE_COMMIT:
        return commit(hooks, request);
    default:
        return hf_fail(&request->op, HF_ERR_UNSUPPORTED, "a source of the user's own cannot do this");
    }
}

static uint64_t last_commit(hf_store *store)
{
    return HF_CONTAINER(store, hf_hooks, store)->last_commit;
}

static void close_nothing(hf_store *store)
{
    (void)store; /* hf_hooks_free does */
}

static const hf_store_ops OPS = {
    .name = "hooks", .execute = execute, .last_commit = last_commit, .close = close_nothing};

/* ---- On the pool ------------------------------------------------------------------------------------------------- */

static void read_many(group *one)
{
    hf_hooks *hooks = one->hooks;
    for (size_t i = 0; i < one->count; i++) {
        hf_store_request *request = one->requests[i];
        hf_op_init(&request->op);
        request->found = false;
        request->value = (hf_str){NULL, 0};
        hf_assert(request->table == HF_TABLE_ENTRY);
        one->rows[i] =
            (hf_source_row){.kind = HF_SOURCE_ENTRY, .key = request->key.text.data, .key_len = request->key.text.len};
    }
    hf_status status = hooks->hooks.read_many(hooks->hooks.state, one->rows, one->count);
    for (size_t i = 0; i < one->count; i++) {
        hf_store_request *request = one->requests[i];
        if (status == HF_OK) {
            request->status = take_row(request, &one->rows[i]);
        } else {
            hf_value_unref(one->rows[i].data);
            request->status = fail_of(request, status, "a read");
        }
    }
}

static hf_status run_group(void *arg)
{
    group *one = arg;
    one->has_run = true;
    if (one->count > 1) {
        read_many(one);
    } else {
        hf_store_execute(&one->hooks->store, one->requests[0]);
    }
    return HF_OK;
}

static hf_status run_close(void *arg)
{
    group *one = arg;
    one->has_run = true;
    one->hooks->hooks.close(one->hooks->hooks.state);
    return HF_OK;
}

/* Waits until it was done on the pool. False, with a status: it was not begun. */
static hf_status on_pool(hf_body call, group *one)
{
    hf_status status = hf_block(call, one);
    if (one->has_run) {
        return HF_OK;
    }
    /* Canceled, as the depot closes: what was acknowledged, or is about to be, is still written. */
    hf_shield *shield = NULL;
    if (status == HF_ERR_CANCELED && hf_shield_open(hf_nanoseconds(SHIELD_NS), &shield) == HF_OK) {
        status = hf_block(call, one);
        (void)hf_shield_close(shield);
    }
    return one->has_run ? HF_OK : status;
}

/* ---- The fiber --------------------------------------------------------------------------------------------------- */

static bool is_entry_read(const hf_store_request *request)
{
    return request->verb == HF_STORE_GET && request->table == HF_TABLE_ENTRY;
}

/* The first request that waits, with the reads behind it that can share its call. */
static void take_group(hf_hooks *hooks, group *one)
{
    one->count = 0;
    one->has_run = false;
    hf_spin_lock(&hooks->lock);
    while (!hf_list_is_empty(&hooks->waiting) && one->count < READ_MANY_MAX) {
        hf_store_request *next = HF_CONTAINER(hf_list_first(&hooks->waiting), hf_store_request, link);
        bool fits = one->count == 0 || (hooks->hooks.read_many != NULL && is_entry_read(one->requests[0]) &&
                                        is_entry_read(next)); /* depot-H1 */
        if (!fits) {
            break;
        }
        hf_list_remove(&next->link);
        one->requests[one->count++] = next;
    }
    hf_spin_unlock(&hooks->lock);
}

static const hf_wait_kind IDLE = {"hf_depot", NULL};

/* Waits for a request. False: it ends, and there is none. */
static bool await(hf_hooks *hooks)
{
    hf_fiber *self = hf_enter(hooks->depot->rt);
    hf_assert(self != NULL);
    hf_wait wait;
    hf_wait_init(&wait, self, &IDLE, hooks, hooks->depot->name);
    hf_sync_point(self);
    hf_spin_lock(&hooks->lock);
    bool has_work = !hf_list_is_empty(&hooks->waiting);
    bool sleeps = !has_work && !hooks->ends;
    if (sleeps) {
        hf_list_push_back(&hooks->sleeper, &wait.node);
    }
    hf_spin_unlock(&hooks->lock);
    if (sleeps) {
        (void)hf_park(self, &wait, HF_INSTANT_NEVER);
    }
    hf_leave(self);
    return has_work || sleeps;
}

static hf_status hooks_main(void *arg)
{
    hf_hooks *hooks = arg;
    group *one = &hooks->group;
    while (await(hooks)) {
        for (take_group(hooks, one); one->count > 0; take_group(hooks, one)) {
            hf_status status = on_pool(run_group, one);
            for (size_t i = 0; i < one->count; i++) {
                hf_store_request *request = one->requests[i];
                if (status != HF_OK) {
                    hf_op_init(&request->op);
                    request->status = hf_fail(&request->op, status, "the pool did not begin a call of the source");
                }
                request->done(request);
            }
        }
    }
    one->has_run = false;
    if (hooks->hooks.close != NULL) {
        HF_IGNORE(on_pool(run_close, one));
        if (!one->has_run) {
            hooks->hooks.close(hooks->hooks.state); /* the pool is busy: it is called all the same */
        }
    }
    return HF_OK;
}

static void wake(hf_hooks *hooks)
{
    hf_node *node = hf_list_pop_front(&hooks->sleeper);
    hf_wait *sleeper = node != NULL ? HF_CONTAINER(node, hf_wait, node) : NULL;
    hf_spin_unlock(&hooks->lock);
    if (sleeper != NULL) {
        hf_fiber *self = hf_enter(hooks->depot->rt);
        hf_wake(sleeper, HF_OK);
        if (self != NULL) {
            hf_leave(self);
        }
    }
}

void hf_hooks_submit(hf_hooks *hooks, hf_store_request *request)
{
    hf_assert(request->done != NULL);
    hf_spin_lock(&hooks->lock);
    hf_assert(!hooks->ends);
    hf_list_push_back(&hooks->waiting, &request->link);
    wake(hooks);
}

void hf_hooks_stop(hf_hooks *hooks)
{
    hf_spin_lock(&hooks->lock);
    hf_assert(hf_list_is_empty(&hooks->waiting)); /* hf_depot_close waits for all of them */
    hooks->ends = true;
    wake(hooks);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

hf_status hf_hooks_new(hf_op *op, hf_depot *depot, const hf_source_hooks *given, hf_hooks **ret_hooks)
{
    if (given->read == NULL || given->write == NULL || given->scan == NULL) {
        return hf_fail(op, HF_ERR_INVALID, ".source of depot '%s' needs read, write and scan", depot->name);
    }
    hf_hooks *hooks = hf_rt_alloc(depot->rt, sizeof *hooks);
    if (hooks == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for depot '%s'", depot->name);
    }
    hooks->store = (hf_store){.ops = &OPS, .tables = &hf_depot_tables};
    hooks->hooks = *given;
    hooks->depot = depot;
    hooks->group.hooks = hooks;
    hf_list_init(&hooks->waiting);
    hf_list_init(&hooks->sleeper);
    *ret_hooks = hooks;
    return HF_OK;
}

hf_store *hf_hooks_store(hf_hooks *hooks)
{
    return &hooks->store;
}

hf_status hf_hooks_start(hf_hooks *hooks)
{
    return hf_fork(hooks->depot->scope, hooks_main, hooks, .name = hooks->depot->name);
}

void hf_hooks_free(hf_hooks *hooks)
{
    if (hooks != NULL) {
        hf_assert(hf_list_is_empty(&hooks->waiting) && hf_list_is_empty(&hooks->sleeper));
        hf_rt_free(hooks->depot->rt, hooks, sizeof *hooks);
    }
}
