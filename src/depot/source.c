/* Where a depot keeps its rows: a file, whose requests go through the store's queue to a thread of its own, or functions of
 * the user, which hooks.c calls on the pool. The thread that has executed a request posts the result. Above the requests,
 * file and functions are the same. */
#include "depot/bloom.h"
#include "depot/change.h"
#include "depot/file.h"
#include "depot/hearing.h"
#include "depot/outbox.h"

#include "store/sqlite/owner.h"
#include "store/sqlite/sqlite.h"

#include <stdio.h>

struct hf_source {
    hf_store_queue *queue; /* of a file */
    hf_hooks *hooks;       /* or of functions of the user */
    uint64_t last_commit;
    hf_store_request commit; /* the one under way */
    hf_write *writes;        /* of it */
    size_t write_capacity;
    hf_depot *depot;
    hf_post written;
    hf_file_owner owner;         /* of a file; zeroed = it is none */
    char path[HF_PATH_LEN_MAX];  /* the same; empty */
    hf_store_request checkpoint; /* the one under way, if is_checkpointing */
    hf_post checkpointed;
    bool is_checkpointing;
    hf_bloom *keys;      /* of a file that was empty; NULL = which keys it has is not known */
    size_t writes_since; /* since the last checkpoint was asked for */
    uint64_t
        reserved; /* numbers of writes below this one are used, by the row "sequence" that this process wrote ... */
    uint64_t reserving; /* ... or by the one in the commit under way; 0 = it has none */
    char numbers[HF_RECORD_HEADER_LEN + HF_ROW_NUMBERS_LEN]; /* that row */
};

/* A number of a write never comes again (DP6): a row of the file says from where on they are free. It is not written with
 * each write, but ahead, for this many. A restart leaves those out that were not used. */
enum { NUMBERS_RESERVED = 64 };
/* If that row cannot be read, new numbers begin this far behind those of the writes that wait: as if so many had been made. */
#define NUMBERS_LOST (UINT64_C(1) << 40)

/* A checkpoint is asked for after this many writes. The store moves its log only if that is long enough; without being asked
 * it never does, and the log would grow until the depot is closed. */
enum { CHECKPOINT_WRITES = 256 };

struct hf_load {
    hf_store_request request;
    hf_arena arena;
    hf_post post;
    hf_depot *depot;
    hf_depot_slot *slot;
    hf_change *change; /* that has begun it; NULL = the slot loads */
};

/* In the table meta. */
static const char ALL[] = "generation";
static const char NUMBERS[] = "sequence";

/* A record that cannot be read. `key`: that it is about; empty = not known, or about none. */
static void report_damage(hf_depot *depot, const char *what, hf_str key, const char *message)
{
    depot->counts.damaged++;
    hf_news_of_key(depot, HF_NEWS_DAMAGED, key, HF_ERR_INVALID, HF_REPLY_UNKNOWN);
    if (depot->counts.damaged == 1) {
        hf_log(depot->rt, HF_LOG_ERROR, "depot_record_damaged", "depot=%s record=%s message=%s", depot->name, what,
               message);
    }
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static hf_status read_space(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    (void)arena;
    hf_depot *depot = arg;
    hf_op bad;
    hf_op_init(&bad);
    hf_str body;
    uint64_t generation = 0;
    uint64_t hard = 0;
    hf_space *space = hf_depot_space(depot, row->key.text);
    if (space == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the namespaces of depot '%s'", depot->name);
    }
    if (hf_record_open(&bad, HF_TABLE_SPACE, &row->key, row->value, &body) != HF_OK ||
        !hf_row_get_space(body, &generation, &hard)) {
        /* DP3: which of its values were invalidated is not known, so none of them is served. */
        report_damage(depot, "space", (hf_str){0}, bad.message);
        generation = hard = UINT64_MAX / 2;
    }
    atomic_store(&space->generation, generation);
    atomic_store(&space->hard, hard);
    space->generation_last = generation;
    space->hard_last = hard;
    return HF_OK;
}

/* When the pause ends that the row tells of. The wall clock may have been set since. */
static int64_t next_try(const hf_depot *depot, int64_t retry_at)
{
    int64_t pause = retry_at != 0 ? hf_rule_pause_left(hf_depot_wall(depot), retry_at) : 0;
    return pause > 0 ? hf_rt_now(depot->rt).ns + pause : 0;
}

static hf_status read_pending(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    (void)arena;
    hf_depot *depot = arg;
    hf_op bad;
    hf_op_init(&bad);
    hf_str body;
    hf_str key;
    hf_pending got;
    bool no_memory = false;
    uint64_t sequence = (uint64_t)row->key.a;
    if (sequence >= depot->sequence_next) {
        depot->sequence_next = sequence + 1;
    }
    if (hf_record_open(&bad, HF_TABLE_PENDING, &row->key, row->value, &body) != HF_OK ||
        !hf_row_get_pending(body, &key, &got, &no_memory)) {
        if (!no_memory) { /* it stays where it is, and is not guessed */
            report_damage(depot, "pending", (hf_str){0}, bad.message);
            hf_damaged_add(depot, sequence);
            return HF_OK;
        }
    } else {
        hf_pending *one = hf_rt_alloc(depot->rt, sizeof *one);
        hf_depot_slot *slot = one != NULL ? hf_slot_hold(depot, key) : NULL;
        if (slot != NULL) {
            *one = got;
            one->sequence = sequence;
            one->is_old = true;
            one->next_try.ns = next_try(depot, one->retry_at);
            one->slot = slot; /* the hold of the row */
            hf_list_init(&one->asks);
            hf_pending_link(depot, one);
            return HF_OK;
        }
        hf_rt_free(depot->rt, one, sizeof *one);
        hf_value_unref(got.data);
        hf_value_unref(got.if_match);
    }
    return hf_fail(op, HF_ERR_NOMEM, "no memory for the writes of depot '%s'", depot->name);
}

static hf_status read_alias(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    (void)arena;
    hf_depot *depot = arg;
    hf_op bad;
    hf_op_init(&bad);
    hf_str body;
    hf_str to;
    int64_t made_at = 0;
    if (hf_record_open(&bad, HF_TABLE_ALIAS, &row->key, row->value, &body) != HF_OK ||
        !hf_row_get_alias(body, &to, &made_at) || !hf_key_is_provisional(row->key.text) || hf_key_is_provisional(to)) {
        report_damage(depot, "alias", row->key.text,
                      bad.message); /* the old key is not found any more; the new one is */
        return HF_OK;
    }
    hf_alias *alias = hf_alias_new(depot, row->key.text, to, made_at);
    if (alias == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the aliases of depot '%s'", depot->name);
    }
    hf_alias_add(depot, alias);
    return HF_OK;
}

/* A row of the table meta. `*ret_body` without bytes: it is not there, or it is damaged, and `ret_bad` says so. */
static hf_status read_meta(hf_op *op, hf_store *store, hf_arena *arena, const char *name, hf_str *ret_body,
                           hf_op *ret_bad)
{
    hf_store_request request = {
        .verb = HF_STORE_GET,
        .table = HF_TABLE_META,
        .key = {.text = hf_str_of(name)},
        .arena = arena,
    };
    hf_store_execute(store, &request);
    *ret_body = (hf_str){0};
    hf_op_init(ret_bad);
    if (request.status != HF_OK) {
        *op = request.op;
    } else if (request.found) {
        HF_IGNORE(hf_record_open(ret_bad, HF_TABLE_META, &request.key, request.value, ret_body));
    }
    return request.status;
}

static hf_status read_generations(hf_op *op, hf_depot *depot, hf_store *store, hf_arena *arena)
{
    hf_str body;
    hf_op bad;
    uint64_t generation = 0;
    uint64_t hard = 0;
    HF_TRY(read_meta(op, store, arena, ALL, &body, &bad));
    if (bad.status != HF_OK || (body.len > 0 && !hf_row_get_space(body, &generation, &hard))) {
        report_damage(depot, ALL, (hf_str){0}, bad.message);
        generation = hard = UINT64_MAX / 2;
    }
    atomic_store(&depot->generation, generation);
    atomic_store(&depot->hard, hard);
    depot->generation_last = generation;
    depot->hard_last = hard;
    return HF_OK;
}

static hf_status read_numbers(hf_op *op, hf_depot *depot, hf_store *store, hf_arena *arena)
{
    hf_str body;
    hf_op bad;
    uint64_t next = 0;
    HF_TRY(read_meta(op, store, arena, NUMBERS, &body, &bad));
    bool is_damaged = bad.status != HF_OK || (body.len > 0 && !hf_row_get_numbers(body, &next));
    if (is_damaged) {
        report_damage(depot, NUMBERS, (hf_str){0}, bad.message);
        depot->sequence_next += NUMBERS_LOST;
    } else if (next > depot->sequence_next) {
        depot->sequence_next = next;
    }
    return HF_OK;
}

static hf_status read_all(hf_op *op, hf_depot *depot, hf_store *store)
{
    hf_allocator memory = hf_env_memory(depot->rt->env);
    hf_arena arena;
    hf_arena_init(&arena, memory);
    hf_status status = read_generations(op, depot, store, &arena);
    if (status == HF_OK) {
        status = hf_store_each_row(op, store, memory, HF_TABLE_SPACE, NULL, NULL, read_space, depot);
    }
    if (status == HF_OK) {
        status = hf_store_each_row(op, store, memory, HF_TABLE_ALIAS, NULL, NULL, read_alias, depot);
    }
    if (status == HF_OK) {
        status = hf_store_each_row(op, store, memory, HF_TABLE_PENDING, NULL, NULL, read_pending, depot);
    }
    if (status == HF_OK) {
        status = read_numbers(op, depot, store, &arena); /* after the rows: their numbers are used, too */
    }
    hf_arena_deinit(&arena);
    return status;
}

/* A filter for a file that has no entry yet. Without memory, or if the file cannot be read now, there is none. */
static hf_bloom *new_filter(const hf_depot *depot, hf_store *store)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(depot->rt->env));
    hf_store_request request = {
        .verb = HF_STORE_SCAN,
        .table = HF_TABLE_ENTRY,
        .key = hf_key_first(),
        .key_end = hf_key_last(),
        .row_max = 1,
        .arena = &arena,
    };
    hf_store_execute(store, &request);
    bool is_empty = request.status == HF_OK && request.row_count == 0;
    hf_arena_deinit(&arena);
    return is_empty ? hf_rt_alloc(depot->rt, sizeof(hf_bloom)) : NULL;
}

static void drop_filter(const hf_depot *depot, hf_source *source)
{
    hf_rt_free(depot->rt, source->keys, sizeof *source->keys);
    source->keys = NULL;
}

static hf_status reread(void *state, hf_op *op, const char *path)
{
    hf_env *env = state;
    return env->ops->file_reread(env, op, path);
}

hf_status hf_source_open_store(hf_op *op, hf_depot *depot, hf_store *store)
{
    hf_source *source = hf_rt_alloc(depot->rt, sizeof *source);
    hf_status status = source != NULL ? read_all(op, depot, store)
                                      : hf_fail(op, HF_ERR_NOMEM, "no memory for depot '%s'", depot->name);
    if (status != HF_OK) {
        hf_store_close(store);
        hf_rt_free(depot->rt, source, sizeof *source);
        return status;
    }
    source->depot = depot;
    source->last_commit = store->ops->last_commit(store);
    source->keys = new_filter(depot, store);
    status = hf_store_queue_open(op, depot->rt->env, store, &source->queue);
    if (status != HF_OK) {
        drop_filter(depot, source);
        hf_rt_free(depot->rt, source, sizeof *source);
        return status;
    }
    depot->source = source;
    return HF_OK;
}

/* This process is the owner from now on, or another one is. */
static hf_status own(hf_op *op, hf_env *env, const char *path, hf_file_owner *ret_owner)
{
    int64_t holder = 0;
    hf_op tried;
    hf_op_init(&tried);
    hf_status status = hf_file_owner_take_of(&tried, env, &hf_depot_tables, path, false, ret_owner, &holder);
    return status == HF_OK ? HF_OK
                           : hf_fail(op, status == HF_ERR_EXISTS ? HF_ERR_CONFLICT : status, "%s", tried.message);
}

hf_status hf_depot_source_open(hf_op *op, hf_depot *depot, const char *file)
{
    static const char PREFIX[] = "sqlite:";
    hf_env *env = depot->rt->env;
    if (strncmp(file, PREFIX, sizeof PREFIX - 1) != 0 || file[sizeof PREFIX - 1] == '\0') {
        return hf_fail(op, HF_ERR_INVALID, "'%.200s' is not a place for a depot: write sqlite:FILE", file);
    }
    const char *path = file + sizeof PREFIX - 1;
    hf_file_owner *owner = hf_rt_alloc(depot->rt, sizeof *owner);
    if (owner == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for depot '%s'", depot->name);
    }
    hf_status status = own(op, env, path, owner); /* before anything of the file is touched */
    if (status == HF_OK) {
        hf_store *store = NULL;
        hf_sqlite_options options = {.tables = &hf_depot_tables, .reread = reread, .reread_state = env};
        status = hf_sqlite_open(op, hf_env_memory(env), path, &options, &store);
        status = status == HF_OK ? hf_source_open_store(op, depot, store) : status;
    }
    if (status == HF_OK) {
        depot->source->owner = *owner;
        (void)snprintf(depot->source->path, sizeof depot->source->path, "%s", path); /* it fits: it was opened */
    } else {
        hf_file_owner_release(env, owner);
    }
    hf_rt_free(depot->rt, owner, sizeof *owner);
    return status;
}

const char *hf_source_path(const hf_depot *depot)
{
    const hf_source *source = depot->source;
    return source != NULL && source->path[0] != '\0' && depot->rt->env == hf_env_posix() ? source->path : NULL;
}

typedef struct reading {
    hf_op *op;
    hf_depot *depot;
    hf_store *store;
} reading;

static hf_status read_on_pool(void *arg)
{
    const reading *one = arg;
    return read_all(one->op, one->depot, one->store);
}

hf_status hf_depot_source_hook(hf_op *op, hf_depot *depot, const hf_source_hooks *given)
{
    hf_hooks *hooks = NULL;
    HF_TRY(hf_hooks_new(op, depot, given, &hooks));
    hf_source *source = hf_rt_alloc(depot->rt, sizeof *source);
    reading one = {op, depot, hf_hooks_store(hooks)};
    hf_status status = source != NULL ? hf_block(read_on_pool, &one)
                                      : hf_fail(op, HF_ERR_NOMEM, "no memory for depot '%s'", depot->name);
    if (status != HF_OK) {
        if (op->status != status) { /* the pool did not begin it */
            (void)hf_fail(op, status, "the source of depot '%s' was not read: %s", depot->name, hf_status_text(status));
        }
        hf_hooks_free(hooks);
        hf_rt_free(depot->rt, source, sizeof *source);
        return status;
    }
    source->depot = depot;
    source->hooks = hooks;
    depot->source = source;
    return HF_OK;
}

hf_status hf_depot_source_start(hf_depot *depot)
{
    return depot->source != NULL && depot->source->hooks != NULL ? hf_hooks_start(depot->source->hooks) : HF_OK;
}

void hf_depot_source_stop(hf_depot *depot)
{
    if (depot->source != NULL && depot->source->hooks != NULL) {
        hf_hooks_stop(depot->source->hooks);
    }
}

void hf_depot_source_close(hf_depot *depot)
{
    hf_source *source = depot->source;
    if (source == NULL) {
        return;
    }
    hf_assert((source->queue != NULL) != (source->hooks != NULL));
    hf_store_queue_close(source->queue);
    hf_file_owner_release(depot->rt->env, &source->owner); /* after everything of the file is closed */
    hf_hooks_free(source->hooks);
    drop_filter(depot, source);
    hf_rt_free(depot->rt, source->writes, source->write_capacity * sizeof *source->writes);
    hf_rt_free(depot->rt, source, sizeof *source);
    depot->source = NULL;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* A change has read the row of its slot. */
static void reloaded(hf_depot *depot, hf_change *change, const hf_depot_entry *entry, const hf_store_request *request,
                     bool no_memory)
{
    hf_status status = request->status;
    if (status != HF_OK) {
        change->op = request->op;
    } else if (no_memory) {
        status = hf_fail(&change->op, HF_ERR_NOMEM, "no memory for a value of the depot");
    } else {
        status = hf_changed_read(depot, change, entry);
    }
    hf_change_written(depot, change, status);
}

static void act_loaded(hf_depot *depot, hf_post *post)
{
    hf_load *load = HF_CONTAINER(post, hf_load, post);
    hf_depot_slot *slot = load->slot;
    hf_change *change = load->change;
    hf_store_request *request = &load->request;
    hf_assert(depot->loads > 0 && slot->load == (change == NULL ? HF_SLOT_LOADING : HF_SLOT_KNOWN));
    depot->loads--;
    hf_depot_entry entry = hf_entry_none(depot, slot->space);
    hf_str body;
    bool no_memory = false;
    hf_op bad;
    hf_op_init(&bad);
    if (request->status != HF_OK) { /* as if there was none: it is fetched */
        hf_log(depot->rt, HF_LOG_WARN, "depot_read_failed", "depot=%s message=%s", depot->name, request->op.message);
    } else if (request->found && (hf_record_open(&bad, HF_TABLE_ENTRY, &request->key, request->value, &body) != HF_OK ||
                                  !hf_row_get_entry(body, &entry, &no_memory))) {
        entry = hf_entry_none(depot, slot->space);
        if (!no_memory) { /* DP9: a record is whole or none */
            report_damage(depot, "entry", hf_slot_key(slot), bad.message);
        }
    }
    hf_arena_deinit(&load->arena);
    if (change != NULL) {
        reloaded(depot, change, &entry, request, no_memory);
    } else {
        hf_slot_loaded(depot, slot, &entry);
    }
    hf_rt_free(depot->rt, load, sizeof *load);
    hf_entry_drop(&entry);
}

static void on_loaded(hf_store_request *request)
{
    hf_load *load = HF_CONTAINER(request, hf_load, request);
    hf_depot_post_quietly(load->depot, &load->post);
}

static bool load_for(hf_depot *depot, hf_depot_slot *slot, hf_change *change)
{
    hf_assert(slot->load == (change == NULL ? HF_SLOT_LOADING : HF_SLOT_KNOWN) && slot->holds > 0); /* depot-D4 */
    hf_load *load = hf_rt_alloc(depot->rt, sizeof *load);
    if (load == NULL) {
        return false;
    }
    load->depot = depot;
    load->slot = slot;
    load->change = change;
    load->post.act = act_loaded;
    hf_arena_init(&load->arena, hf_env_memory(depot->rt->env));
    load->request = (hf_store_request){
        .verb = HF_STORE_GET,
        .table = HF_TABLE_ENTRY,
        .key = {.text = hf_slot_key(slot)},
        .arena = &load->arena,
        .done = on_loaded,
    };
    depot->loads++;
    hf_source_submit(depot, &load->request);
    return true;
}

bool hf_source_may_have(const hf_depot *depot, const hf_depot_slot *slot)
{
    const hf_bloom *keys = depot->source->keys;
    return keys == NULL || hf_bloom_may_have(keys, slot->key.hash);
}

bool hf_source_load(hf_depot *depot, hf_depot_slot *slot)
{
    return load_for(depot, slot, NULL);
}

hf_status hf_source_reload(hf_depot *depot, hf_change *change)
{
    hf_assert(!change->is_reading && change->slot != NULL); /* depot-D2: it has its turn */
    change->is_reading = true;
    if (!load_for(depot, change->slot, change)) {
        change->is_reading = false;
        return hf_fail(&change->op, HF_ERR_NOMEM, "no memory to read a value of the depot");
    }
    return HF_OK;
}

void hf_source_submit(hf_depot *depot, hf_store_request *request)
{
    hf_assert(request->done != NULL);
    if (depot->source->hooks != NULL) {
        hf_hooks_submit(depot->source->hooks, request);
    } else {
        hf_store_queue_submit(depot->source->queue, request);
    }
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void act_written(hf_depot *depot, hf_post *post)
{
    hf_source *source = HF_CONTAINER(post, hf_source, written);
    hf_status status = source->commit.status;
    hf_list changes;
    hf_assert(depot->is_committing && !hf_list_is_empty(&depot->committing)); /* depot-D6 */
    hf_list_move_all(&depot->committing, &changes);
    depot->is_committing = false;
    if (status == HF_OK) {
        hf_assert(source->commit.commit == source->last_commit + 1);
        source->last_commit = source->commit.commit;
        source->reserved = source->reserving != 0 ? source->reserving : source->reserved;
    } else {
        hf_log(depot->rt, HF_LOG_ERROR, "depot_commit_failed", "depot=%s message=%s", depot->name,
               source->commit.op.message);
    }
    if (status == HF_ERR_STORE) {
        depot->broken = status;
    }
    for (hf_node *node = hf_list_pop_front(&changes); node != NULL; node = hf_list_pop_front(&changes)) {
        hf_change *change = HF_CONTAINER(node, hf_change, in_batch);
        if (status != HF_OK) {
            change->op = source->commit.op;
        }
        hf_change_written(depot, change, status);
    }
}

static void on_written(hf_store_request *request)
{
    hf_source *source = HF_CONTAINER(request, hf_source, commit);
    hf_depot_post_quietly(source->depot, &source->written);
}

static bool make_room(hf_depot *depot, hf_source *source, size_t count)
{
    if (count <= source->write_capacity) {
        return true;
    }
    hf_write *writes = hf_rt_alloc(depot->rt, 2 * count * sizeof *writes);
    if (writes == NULL) {
        return false;
    }
    hf_rt_free(depot->rt, source->writes, source->write_capacity * sizeof *source->writes);
    source->writes = writes;
    source->write_capacity = 2 * count;
    return true;
}

static void act_checkpointed(hf_depot *depot, hf_post *post)
{
    hf_source *source = HF_CONTAINER(post, hf_source, checkpointed);
    hf_assert(source->is_checkpointing && depot->loads > 0);
    depot->loads--;
    source->is_checkpointing = false;
    if (source->checkpoint.status != HF_OK) { /* the log stays; the next one may succeed */
        hf_log(depot->rt, HF_LOG_WARN, "depot_checkpoint_failed", "depot=%s message=%s", depot->name,
               source->checkpoint.op.message);
    }
}

static void on_checkpointed(hf_store_request *request)
{
    hf_source *source = HF_CONTAINER(request, hf_source, checkpoint);
    hf_depot_post_quietly(source->depot, &source->checkpointed);
}

static void checkpoint_if_due(hf_depot *depot, size_t writes)
{
    hf_source *source = depot->source;
    source->writes_since += writes;
    if (source->queue == NULL || source->writes_since < CHECKPOINT_WRITES || source->is_checkpointing) {
        return; /* functions of the user's have no log of ours */
    }
    source->writes_since = 0;
    source->is_checkpointing = true;
    source->checkpointed.act = act_checkpointed;
    source->checkpoint = (hf_store_request){.verb = HF_STORE_CHECKPOINT, .done = on_checkpointed};
    hf_op_init(&source->checkpoint.op);
    depot->loads++; /* hf_depot_close waits for it */
    hf_source_submit(depot, &source->checkpoint);
}

/* Keys that the commit may write, from now on also for those who look before it is done. */
static void note_keys(const hf_depot *depot, hf_source *source, size_t count)
{
    for (size_t i = 0; i < count && source->keys != NULL; i++) {
        const hf_write *one = &source->writes[i];
        if (one->table == HF_TABLE_ENTRY && one->kind == HF_WRITE_PUT) {
            hf_bloom_add(source->keys, hf_key_hash(depot->seed, one->key.text.data, one->key.text.len));
        }
    }
    if (source->keys != NULL && source->keys->count >= HF_BLOOM_MAX) {
        drop_filter(depot, source);
    }
}

/* Whether a commit has a write whose number is not reserved yet. */
static bool has_new_number(const hf_source *source, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const hf_write *one = &source->writes[i];
        if (one->table == HF_TABLE_PENDING && one->kind == HF_WRITE_PUT && (uint64_t)one->key.a >= source->reserved) {
            return true;
        }
    }
    return false;
}

/* The row that reserves numbers, as the last write of the commit. */
static hf_write reserve(const hf_depot *depot, hf_source *source)
{
    hf_write write = {.table = HF_TABLE_META, .kind = HF_WRITE_PUT, .key = {.text = hf_str_of(NUMBERS)}};
    size_t header_len = hf_record_header_len(HF_TABLE_META);
    hf_assert(header_len + HF_ROW_NUMBERS_LEN <= sizeof source->numbers);
    source->reserving = depot->sequence_next + NUMBERS_RESERVED;
    hf_row_put_numbers(source->numbers + header_len, source->reserving);
    hf_record_seal(HF_TABLE_META, &write.key, source->numbers, HF_ROW_NUMBERS_LEN);
    write.value = hf_str_of_len(source->numbers, header_len + HF_ROW_NUMBERS_LEN);
    return write;
}

void hf_source_commit(hf_depot *depot)
{
    hf_source *source = depot->source;
    size_t count = 0;
    bool is_synced = false;
    hf_assert(!depot->is_committing); /* one commit at a time */
    HF_LIST_EACH(node, &depot->batch)
    {
        hf_change *change = HF_CONTAINER(node, hf_change, in_batch);
        count += change->write_count;
        is_synced = is_synced || change->is_synced;
    }
    hf_assert(count > 0 && !depot->is_committing && hf_list_is_empty(&depot->committing)); /* depot-D2 */
    hf_list_move_all(&depot->batch, &depot->committing);
    depot->is_committing = true;
    source->written.act = act_written;
    source->reserving = 0;
    hf_op_init(&source->commit.op);
    if (depot->broken != HF_OK || !make_room(depot, source, count + 1)) {
        source->commit.status =
            depot->broken != HF_OK
                ? hf_fail(&source->commit.op, depot->broken,
                          "the file of depot '%s' failed: close the depot and open it again", depot->name)
                : hf_fail(&source->commit.op, HF_ERR_NOMEM, "no memory for a commit of depot '%s'", depot->name);
        act_written(depot, &source->written);
        return;
    }
    size_t at = 0;
    HF_LIST_EACH(node, &depot->committing)
    {
        hf_change *change = HF_CONTAINER(node, hf_change, in_batch);
        memcpy(source->writes + at, change->writes, change->write_count * sizeof *change->writes);
        at += change->write_count;
    }
    hf_assert(at == count && count > 0 && count < source->write_capacity);
    note_keys(depot, source, count);
    if (has_new_number(source, count)) {
        source->writes[count++] = reserve(depot, source);
    }
    source->commit = (hf_store_request){
        .verb = HF_STORE_COMMIT,
        .commit = source->last_commit + 1,
        .writes = source->writes,
        .write_count = count,
        .unsynced = !is_synced,
        .done = on_written,
    };
    hf_source_submit(depot, &source->commit);
    checkpoint_if_due(depot, count);
}
