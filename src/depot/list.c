/* Lists: making them, and reading them with their members.
 *
 * A reading goes level by level: the members of the list, at most BATCH at a time, then those of the lists among them.
 * Members in memory are taken from there; the others of a batch are read side by side, each by a fiber of its own, so that
 * a deadline and a cancel end all of them. At last the items are put into the order in which a reader meets them. */
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/lists.h"
#include "depot/window.h"

#include "fiber/verbs.h"

enum { BATCH = 256 };

/* ---- Making lists ------------------------------------------------------------------------------------------------ */

/* The bytes of a list of these keys. */
static hf_status pack(hf_op *op, const hf_depot_key *keys, size_t count, hf_buf *out)
{
    hf_arena arena;
    hf_window window = {.count = count};
    if (count > HF_DEPOT_LIST_MAX) {
        return hf_fail(op, HF_ERR_LIMIT, "a list has %zu keys: it may have %d", count, HF_DEPOT_LIST_MAX);
    }
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    window.items = HF_ARENA_ARRAY(&arena, hf_window_item, count + 1);
    hf_status status = HF_OK;
    for (size_t i = 0; i < count && status == HF_OK && arena.status == HF_OK; i++) {
        hf_depot_key_bytes bytes;
        status = hf_depot_key_pack(op, keys[i], &bytes);
        if (status == HF_OK) {
            window.items[i].key = hf_arena_copy(&arena, hf_str_of_len(bytes.bytes, bytes.len));
        }
    }
    if (status == HF_OK && arena.status == HF_OK) {
        hf_window_write(out, &window);
        status = hf_buf_status(out);
    }
    if (arena.status != HF_OK || status == HF_ERR_NOMEM) {
        status = hf_fail(op, HF_ERR_NOMEM, "no memory for a list of %zu keys", count);
    }
    hf_arena_deinit(&arena);
    return status;
}

static hf_status make_list(hf_op *op, const hf_depot_key *keys, size_t count, hf_value **ret_value)
{
    if ((keys == NULL && count > 0) || ret_value == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "hf_depot_list_pack needs keys, and a place for the list");
    }
    hf_buf out;
    hf_buf_init(&out, hf_env_memory(hf_env_posix()), HF_DEPOT_ROW_LEN_MAX);
    hf_status status = pack(op, keys, count, &out);
    if (status == HF_OK && hf_value_copy(out.data, out.len, ret_value) != HF_OK) {
        status = hf_fail(op, HF_ERR_NOMEM, "no memory for a list of %zu keys", count);
    }
    hf_buf_deinit(&out);
    return status;
}

/* Hands the failure of `op` to the caller. */
static hf_status fail(const hf_op *op)
{
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return hf_forked();
    }
    HF_LEAVE(self, hf_op_end(self, op));
}

hf_status hf_depot_list_pack(const hf_depot_key *keys, size_t count, hf_value **ret_value)
{
    HF_VERB_ENTER(self, hf_depot_list_pack, NULL);
    hf_leave(self);
    hf_op op;
    hf_op_init(&op);
    return make_list(&op, keys, count, ret_value) == HF_OK ? HF_OK : fail(&op);
}

hf_status hf_reply_list(hf_reply *reply, const hf_depot_key *keys, size_t count)
{
    HF_VERB_ENTER(self, hf_reply_list, reply != NULL ? reply->rt : NULL);
    hf_leave(self);
    HF_AUTO(hf_value_unref) hf_value *list = NULL;
    hf_op op;
    hf_op_init(&op);
    if (make_list(&op, keys, count, &list) != HF_OK) {
        return fail(&op);
    }
    return hf_reply_value(reply, hf_value_data(list), hf_value_len(list));
}

static hf_str bytes_of(const hf_value *value)
{
    return value != NULL ? hf_str_of_len(hf_value_data(value), hf_value_len(value)) : (hf_str){0};
}

hf_status hf_depot_list_keys(const hf_value *list, hf_depot_key_visit *visit, void *arg)
{
    HF_VERB_ENTER(self, hf_depot_list_keys, NULL);
    hf_leave(self);
    hf_window_cursor cursor;
    hf_window_item item;
    hf_op op;
    hf_op_init(&op);
    if (visit == NULL) {
        (void)hf_fail_at(&op, HF_ERR_MISUSE, "hf_depot_list_keys", "hf_depot_list_keys needs a function to call");
        return fail(&op);
    }
    if (!hf_window_is_list(bytes_of(list))) {
        (void)hf_fail_at(&op, HF_ERR_INVALID, "hf_depot_list_keys", "the value is not a list of keys");
        return fail(&op);
    }
    (void)hf_window_begin(&cursor, bytes_of(list));
    while (hf_window_next(&cursor, &item)) {
        hf_depot_key key;
        bool is_key = hf_depot_key_unpack(item.key, &key);
        hf_assert(is_key); /* hf_window_is_list has looked at it */
        if (!visit(arg, key)) {
            break;
        }
    }
    return HF_OK;
}

/* ---- Items ------------------------------------------------------------------------------------------------------- */

typedef struct found {
    hf_item item;
    hf_str key;          /* packed, in the arena of the items */
    size_t parent;       /* index of the list that it is in; ROOT */
    size_t first, count; /* its own members */
} found;

#define ROOT SIZE_MAX

/* In memory of the process: it may outlive the depot. */
struct hf_items {
    hf_arena arena; /* keys, and the array */
    found *all;     /* level by level */
    size_t count, capacity;
    const found **order; /* as a reader meets them */
};

size_t hf_items_count(const hf_items *items)
{
    return items != NULL ? items->count : 0;
}

const hf_item *hf_items_at(const hf_items *items, size_t index)
{
    return items != NULL && index < items->count ? &items->order[index]->item : NULL;
}

void hf_items_free(hf_items *items)
{
    if (items == NULL) {
        return;
    }
    for (size_t i = 0; i < items->count; i++) {
        hf_value_unref(items->all[i].item.value);
    }
    hf_env *env = hf_env_posix();
    hf_arena_deinit(&items->arena);
    env->ops->release(env, items, sizeof *items);
}

hf_items *hf_items_new(void)
{
    hf_env *env = hf_env_posix();
    hf_items *items = env->ops->allocate(env, sizeof *items, _Alignof(hf_items));
    if (items != NULL) {
        memset(items, 0, sizeof *items);
        hf_arena_init(&items->arena, hf_env_memory(env));
    }
    return items;
}

static hf_status make_room(hf_op *op, hf_items *items, size_t more)
{
    if (more > HF_DEPOT_LIST_MAX - items->count) {
        return hf_fail(op, HF_ERR_LIMIT, "a list has more than %d items, those of lists inside included",
                       HF_DEPOT_LIST_MAX);
    }
    if (items->count + more <= items->capacity) {
        return HF_OK;
    }
    size_t capacity = 2 * (items->count + more);
    found *all = HF_ARENA_ARRAY(&items->arena, found, capacity); /* the old one goes with the arena */
    if (all == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the items of a list");
    }
    memcpy(all, items->all != NULL ? (const void *)items->all : "", items->count * sizeof *all);
    items->all = all;
    items->capacity = capacity;
    return HF_OK;
}

/* The members of `list`, which is the value of item `parent`. */
static hf_status add_members(hf_op *op, hf_items *items, const hf_value *list, size_t parent, unsigned depth)
{
    hf_window_cursor cursor;
    hf_window_item item;
    hf_assert(depth >= 1 && depth <= HF_DEPOT_DEPTH_MAX);
    (void)hf_window_begin(&cursor, bytes_of(list)); /* the caller has looked whether it is a list */
    HF_TRY(make_room(op, items, cursor.left));
    if (parent != ROOT) {
        items->all[parent].first = items->count;
        items->all[parent].count = cursor.left;
    }
    while (hf_window_next(&cursor, &item)) {
        hf_str key = hf_arena_copy(&items->arena, item.key);
        if (items->arena.status != HF_OK) {
            return hf_fail(op, HF_ERR_NOMEM, "no memory for the items of a list");
        }
        found *one = &items->all[items->count];
        *one = (found){.key = key, .parent = parent, .item = {.depth = depth}};
        bool is_key = hf_depot_key_unpack(key, &one->item.key);
        hf_assert(is_key);
        items->count++;
    }
    return HF_OK;
}

/* Whether a list is inside itself. */
static bool is_inside_itself(const hf_items *items, hf_str root, size_t index)
{
    hf_str key = items->all[index].key;
    for (size_t at = items->all[index].parent; at != ROOT; at = items->all[at].parent) {
        if (hf_str_equal(items->all[at].key, key)) {
            return true;
        }
    }
    return hf_str_equal(root, key);
}

/* Puts the members behind their lists. Recursion goes to HF_DEPOT_DEPTH_MAX. */
static size_t order(const hf_items *items, size_t first, size_t count, size_t at)
{
    for (size_t i = first; i < first + count; i++) {
        items->order[at++] = &items->all[i];
        at = order(items, items->all[i].first, items->all[i].count, at);
    }
    return at;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

typedef struct reading {
    hf_depot *depot;
    const hf_depot_list_options *options;
    found *into;
} reading;

static void take(found *one, hf_value *value, const hf_depot_info *info)
{
    hf_item *item = &one->item;
    item->value = value;
    item->status = HF_OK;
    item->is_stale = info->is_stale;
    item->is_pending = info->is_pending;
    item->age = info->age;
    item->version = info->version;
    item->is_list = hf_window_is_list(bytes_of(value));
}

/* A fiber of a reading. A member that cannot be read does not end the others. */
static hf_status read_one(void *arg)
{
    reading *one = arg;
    hf_value *value = NULL;
    hf_depot_info info;
    hf_status status = hf_depot_get(one->depot, one->into->item.key, &value, .fresh = one->options->members,
                                    .within = one->options->members_within, .force = one->options->force,
                                    .urgency = one->options->urgency, .ret_info = &info);
    if (status == HF_OK) {
        take(one->into, value, &info);
        return HF_OK;
    }
    bool is_over = hf_canceled() != HF_OK && (status == HF_ERR_CANCELED || status == HF_ERR_TIMEOUT);
    if (is_over || status == HF_ERR_NOMEM || status == HF_ERR_CLOSED) {
        return status;
    }
    one->into->item.status = status;
    return HF_OK;
}

/* Reads the items [first, end), of which there are at most BATCH. */
static hf_status read_batch(hf_depot *depot, hf_items *items, size_t first, size_t end,
                            const hf_depot_list_options *options, hf_span timeout)
{
    hf_ask_rule rule = {options->members, options->members_within.ns, depot->options.stale_max.ns};
    reading *readings = hf_rt_alloc(depot->rt, BATCH * sizeof *readings);
    hf_scope *scope = NULL;
    size_t count = 0;
    hf_assert(end - first <= BATCH);
    if (readings == NULL) {
        return hf_raise(HF_ERR_NOMEM, "no memory to read %zu members of a list", end - first);
    }
    for (size_t i = first; i < end; i++) {
        hf_value *value = NULL;
        hf_depot_info info;
        hf_depot_key_bytes key = {.len = items->all[i].key.len};
        memcpy(key.bytes, items->all[i].key.data, key.len);
        if (hf_read_at_once(depot, hf_depot_key_str(&key), &rule, &value, &info)) {
            take(&items->all[i], value, &info);
        } else {
            readings[count++] = (reading){depot, options, &items->all[i]};
        }
    }
    hf_status status = HF_OK;
    if (count > 0) {
        status = hf_scope_open(&scope, .name = depot->name, .timeout = timeout,
                               .runtime = hf_runtime_current() != NULL ? NULL : depot->rt);
    }
    for (size_t i = 0; i < count && status == HF_OK; i++) {
        status = hf_fork(scope, read_one, &readings[i], .name = depot->name);
    }
    if (scope != NULL) {
        status = status == HF_OK ? hf_join(scope) : status;
        (void)hf_scope_close(scope);
    }
    hf_rt_free(depot->rt, readings, BATCH * sizeof *readings);
    return status;
}

/* What is left until then; 0 without a deadline. False: nothing is left. */
static bool time_left(const hf_depot *depot, hf_instant deadline, hf_span *ret_left)
{
    if (deadline.ns == HF_INSTANT_NEVER.ns) {
        *ret_left = hf_nanoseconds(0);
        return true;
    }
    *ret_left = hf_nanoseconds(deadline.ns - hf_rt_now(depot->rt).ns);
    return ret_left->ns > 0;
}

static hf_status read_levels(hf_op *op, hf_depot *depot, hf_str key, hf_items *items,
                             const hf_depot_list_options *options, hf_instant deadline)
{
    hf_span left = hf_nanoseconds(0);
    size_t first = 0;
    for (unsigned depth = 1; first < items->count; depth++) {
        size_t end = items->count; /* of this level */
        hf_assert(depth <= HF_DEPOT_DEPTH_MAX);
        for (size_t at = first; at < end; at += BATCH) {
            if (!time_left(depot, deadline, &left)) {
                return hf_fail(op, HF_ERR_TIMEOUT, "a list was not read in time");
            }
            size_t batch_end = end - at < BATCH ? end : at + BATCH;
            HF_TRY(read_batch(depot, items, at, batch_end, options, left));
        }
        for (size_t at = first; at < end; at++) {
            hf_item *item = &items->all[at].item;
            item->is_cut = item->is_list && (depth == HF_DEPOT_DEPTH_MAX || is_inside_itself(items, key, at));
            if (item->is_list && !item->is_cut) {
                HF_TRY(add_members(op, items, item->value, at, depth + 1));
            }
        }
        first = end;
    }
    return HF_OK;
}

static hf_status read_all(hf_op *op, hf_depot *depot, hf_str key, const hf_value *list,
                          const hf_depot_list_options *options, hf_instant deadline, hf_items *items)
{
    if (!hf_window_is_list(bytes_of(list))) {
        return hf_fail(op, HF_ERR_INVALID, "the value of the key is not a list of keys");
    }
    HF_TRY(add_members(op, items, list, ROOT, 1));
    size_t count = items->count;
    HF_TRY(read_levels(op, depot, key, items, options, deadline));
    items->order = HF_ARENA_ARRAY(&items->arena, const found *, items->count + 1);
    if (items->order == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the items of a list");
    }
    size_t ordered = order(items, 0, count, 0);
    hf_assert(ordered == items->count);
    return HF_OK;
}

static hf_status read_until(hf_depot *depot, hf_str key, const hf_value *list, const hf_depot_list_options *options,
                            hf_instant deadline, hf_items **ret_items)
{
    hf_op op;
    hf_op_init(&op);
    hf_items *items = hf_items_new();
    hf_status status = items != NULL ? read_all(&op, depot, key, list, options, deadline, items)
                                     : hf_fail(&op, HF_ERR_NOMEM, "no memory for the items of a list");
    if (status != HF_OK) {
        hf_items_free(items);
        return op.status != HF_OK ? hf_depot_raise(depot, &op) : status; /* else the caller has the failure already */
    }
    *ret_items = items;
    return HF_OK;
}

static hf_instant deadline_of(const hf_depot *depot, hf_span timeout)
{
    return timeout.ns == 0 ? HF_INSTANT_NEVER : hf_rt_deadline(depot->rt, timeout);
}

hf_status hf_list_read(hf_depot *depot, hf_str key, const hf_value *list, const hf_depot_list_options *options,
                       hf_items **ret_items)
{
    return read_until(depot, key, list, options, deadline_of(depot, options->timeout), ret_items);
}

static hf_status check_list(hf_op *op, hf_items **ret_items, const hf_depot_list_options *options)
{
    if (ret_items == NULL) {
        return hf_fail_at(op, HF_ERR_MISUSE, "hf_depot_list", "hf_depot_list needs a place for the items");
    }
    if ((unsigned)options->members > HF_FRESH_LOCAL || options->members_within.ns < 0) {
        return hf_fail_at(op, HF_ERR_INVALID, "hf_depot_list", ".members is not a freshness, or its span is negative");
    }
    return HF_OK;
}

hf_status hf_depot_list_with(hf_depot *depot, hf_depot_key key, hf_items **ret_items,
                             const hf_depot_list_options *options)
{
    HF_OPTIONS(hf_depot_list_options, options, hf_depot_list);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_list));
    HF_TRY(hf_depot_enter(depot, "hf_depot_list"));
    HF_AUTO(hf_value_unref) hf_value *list = NULL;
    hf_depot_key_bytes bytes;
    hf_op op;
    hf_op_init(&op);
    hf_instant deadline = deadline_of(depot, options->timeout);
    hf_status status = check_list(&op, ret_items, options);
    status = status == HF_OK ? hf_depot_key_pack(&op, key, &bytes) : status;
    if (status != HF_OK) {
        status = hf_depot_raise(depot, &op);
    } else {
        status = hf_depot_get(depot, key, &list, .fresh = options->fresh, .within = options->within,
                              .timeout = options->timeout, .force = options->force, .urgency = options->urgency,
                              .ret_info = options->ret_info);
    }
    if (status == HF_OK) {
        status = read_until(depot, hf_str_of_len(bytes.bytes, bytes.len), list, options, deadline, ret_items);
    }
    hf_depot_leave(depot);
    return status;
}
