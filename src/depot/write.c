/* Writing: put, patch, delete and create. A write is a row on the disk, folded into what is visible; send.c sends it to
 * the origin in its turn. A write that goes to the origin first is in the same order, but neither on the disk nor
 * folded. */
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/outbox.h"

#include "base/canary.h"
#include "fiber/verbs.h"

/* ---- Writing here ------------------------------------------------------------------------------------------------ */

/* Which verbs make one row. */
static bool verbs_fit(const hf_depot *depot, hf_write_verb older, hf_write_verb newer)
{
    if (newer == HF_WRITE_PATCH) {
        return older == HF_WRITE_PATCH && depot->options.combine != NULL;
    }
    return newer == HF_WRITE_REPLACE && (older == HF_WRITE_REPLACE || older == HF_WRITE_CREATE);
}

/* The write that this one is put into: the last of the key, if it was not sent yet. */
static hf_pending *mate_of(hf_depot *depot, const hf_depot_slot *slot, const hf_pending *row)
{
    hf_node *last = hf_list_last(&slot->rows);
    if (last == NULL || depot->options.coalesce.ns <= 0) {
        return NULL;
    }
    hf_pending *mate = HF_CONTAINER(last, hf_pending, node);
    bool may = (mate->state == HF_ROW_WAITING || HF_CANARY(HF_BUG_COALESCED_INTO_SENT)) && mate->attempts == 0 &&
               !mate->is_old && !mate->is_origin_first && verbs_fit(depot, mate->verb, row->verb) &&
               row->if_match == NULL && !row->if_none && mate->on_conflict == row->on_conflict &&
               mate->handle_count + row->handle_count <= HF_COUNT_OF(mate->handles) &&
               hf_rule_age(row->made_at, mate->made_at) <= depot->options.coalesce.ns;
    hf_assert(!may || (mate->slot == slot && !mate->is_held && !mate->is_dropped)); /* depot-D2 */
    return may ? mate : NULL;
}

static hf_status check_room(hf_op *op, hf_depot *depot, const hf_pending *row)
{
    if (depot->row_count >= (size_t)depot->options.pending_max ||
        depot->row_bytes + hf_pending_len(row) > (size_t)depot->options.pending_bytes_max) {
        return hf_fail(
            op, HF_ERR_LIMIT,
            "%zu writes of depot '%s' with %zu bytes wait for the origin: wait until some are settled, or drop some",
            depot->row_count, depot->name, depot->row_bytes);
    }
    return hf_depot_make_timers(depot) == HF_OK ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a write");
}

/* Whether the key is as the caller thinks. */
static hf_status check_known(hf_op *op, const hf_depot *depot, const hf_depot_slot *slot, const hf_pending *row,
                             uint64_t if_version)
{
    hf_assert(slot->load == HF_SLOT_KNOWN);
    if (if_version != 0 && if_version != slot->entry.version) {
        return hf_fail(op, HF_ERR_CONFLICT, "the value has version %llu, not %llu: read it again",
                       (unsigned long long)slot->entry.version, (unsigned long long)if_version);
    }
    hf_look_at at = hf_snap_look(depot, slot->snap, hf_depot_wall(depot));
    if (row->verb == HF_WRITE_CREATE && (at.local == HF_LOCAL_FRESH || at.local == HF_LOCAL_STALE)) {
        return hf_fail(op, HF_ERR_CONFLICT, "a value with this id is there already: hf_depot_put replaces it");
    }
    return HF_OK;
}

/* Two patches in one, in change->merged. False: both are sent. */
static bool combine(hf_depot *depot, hf_change *change, const hf_pending *mate, const hf_pending *row)
{
    hf_value *both = NULL;
    hf_status status = depot->options.combine(depot->options.state, hf_value_data(mate->data), hf_value_len(mate->data),
                                              hf_value_data(row->data), hf_value_len(row->data), &both);
    if (status != HF_OK || both == NULL || hf_value_len(both) > (size_t)depot->options.value_max) {
        hf_value_unref(both);
        return false;
    }
    change->merged = both;
    return true;
}

/* A patch that does not fit is its caller's failure, also if it would become part of another one. */
static hf_status try_patch(hf_depot *depot, hf_change *change, const hf_pending *row)
{
    hf_depot_entry_kind kind = HF_ENTRY_NONE;
    hf_value *value = NULL;
    bool is_pending = false;
    hf_status status = hf_slot_fold(depot, change->slot, &change->next, NULL, row, &kind, &value, &is_pending);
    if (status != HF_OK) {
        return hf_fail(&change->op, status, "the patch cannot be applied: %s", hf_status_text(status));
    }
    hf_value_unref(value);
    return HF_OK;
}

static hf_status decide_write(hf_depot *depot, hf_change *change)
{
    hf_pending *row = change->row;
    hf_depot_slot *slot = change->slot;
    hf_assert(row->slot == slot && !hf_node_is_linked(&row->node) && row->state == HF_ROW_WAITING);
    HF_TRY(check_known(&change->op, depot, slot, row, change->number));
    HF_TRY(check_room(&change->op, depot, row));
    hf_entry_copy(&change->next, &slot->entry);
    change->place = HF_DEPOT_WRITE;
    hf_pending *mate = mate_of(depot, slot, row);
    if (mate != NULL && row->verb == HF_WRITE_PATCH) {
        HF_TRY(try_patch(depot, change, row));
        mate = combine(depot, change, mate, row) ? mate : NULL;
    }
    change->mate = mate;
    if (mate != NULL) {
        hf_pending written = *mate;
        written.data = change->merged != NULL ? change->merged : row->data;
        HF_TRY(hf_change_fold(depot, change, mate, &written));
        hf_pending_put(depot, change, &written);
        hf_pending_hold(depot, mate);
    } else {
        HF_TRY(hf_change_fold(depot, change, NULL, row));
        row->sequence = depot->sequence_next++;
        hf_pending_put(depot, change, row);
    }
    change->is_synced = !HF_CANARY(HF_BUG_UNSYNCED_PUT); /* DP6 */
    return HF_OK;
}

/* The newer value, or both patches, in the older row. */
static void merge_rows(hf_depot *depot, hf_pending *mate, hf_pending *row, hf_value *merged)
{
    hf_value *data = mate->data;
    depot->row_bytes -= hf_pending_len(mate);
    mate->data = merged != NULL ? hf_value_ref(merged) : row->data;
    if (merged != NULL) {
        hf_value_unref(data);
    } else {
        row->data = data;
    }
    depot->row_bytes += hf_pending_len(mate);
    hf_assert(mate->handle_count + row->handle_count <= HF_COUNT_OF(mate->handles) && mate->attempts == 0);
    for (size_t i = 0; i < row->handle_count; i++) {
        mate->handles[mate->handle_count++] = row->handles[i];
    }
    row->handle_count = 0;
    hf_pending_free(depot, row);
}

static void apply_write(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_pending *row = change->row;
    hf_depot_slot *slot = change->slot;
    hf_assert(row->slot == slot && !hf_node_is_linked(&row->node)); /* depot-D2 */
    if (change->mate != NULL && change->mate->is_held) {
        change->mate->is_held = false;
    }
    if (status == HF_OK) {
        if (change->mate != NULL) {
            merge_rows(depot, change->mate, row, change->merged);
        } else {
            hf_pending_link(depot, row);
        }
        depot->counts.writes++;
        slot->stirred = ++depot->stir;
        hf_change_show(depot, change, true);
        hf_change_tell(depot, change, HF_OK);
        hf_depot_look_at_sends(depot, slot);
    } else {
        hf_change_tell(depot, change, status);
        hf_pending_free(depot, row);
        hf_depot_look_at_sends(depot, slot);
    }
    hf_value_unref(change->merged);
    hf_change_free(depot, change);
}

/* Nothing changes here before the origin has answered. */
static void act_origin_first(hf_depot *depot, hf_ask *ask)
{
    hf_pending *row = ask->row;
    int64_t wait = 0;
    hf_depot_slot *slot = hf_slot_of_ask(depot, ask);
    if (slot == NULL) {
        return; /* it is acted on again when the key is known */
    }
    if (depot->is_offline || hf_breaker_is_shut(&depot->breakers[hf_depot_origin(depot, hf_slot_key(slot))],
                                                hf_rt_now(depot->rt).ns, &wait)) {
        hf_depot_answer(
            depot, ask,
            hf_fail(&ask->op, HF_ERR_UNAVAILABLE, "depot '%s' does not ask the origin at the moment", depot->name));
        return;
    }
    hf_status status = check_known(&ask->op, depot, slot, row, ask->if_version);
    status = status == HF_OK ? check_room(&ask->op, depot, row) : status;
    if (status != HF_OK) {
        hf_depot_answer(depot, ask, status);
        return;
    }
    ask->row = NULL; /* taken */
    ask->slot = NULL;
    row->slot = slot; /* with the ask's hold */
    row->sequence = depot->sequence_next++;
    hf_pending_link(depot, row);
    if (!hf_depot_park(depot, ask, &row->asks)) {
        hf_pending_unlink(depot, row);
        hf_pending_free(depot, row);
        return;
    }
    hf_depot_look_at_sends(depot, slot);
}

static void act_write(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    if (hf_depot_refuses(depot, ask)) {
        return;
    }
    hf_pending *row = ask->row;
    hf_assert(row != NULL && row->slot == NULL);
    if (row->is_origin_first) {
        act_origin_first(depot, ask);
        return;
    }
    hf_depot_slot *slot = hf_slot_hold(depot, ask->key);
    if (slot == NULL) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for a write"));
        return;
    }
    hf_change *change = hf_change_new(depot, slot);
    if (change == NULL) {
        hf_slot_let_go(depot, slot);
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for a write"));
        return;
    }
    change->number = ask->if_version;
    change->row = row;
    change->follows = true;
    change->decide = decide_write;
    change->apply = apply_write;
    ask->row = NULL;                                 /* taken */
    row->slot = slot;                                /* with its hold */
    if (!hf_depot_park(depot, ask, &change->asks)) { /* it wants out, and may be gone */
        hf_change_free(depot, change);
        hf_pending_free(depot, row);
        return;
    }
    hf_change_begin(depot, change);
}

/* ---- Verbs ------------------------------------------------------------------------------------------------------- */

static hf_status check_write(hf_op *op, const hf_depot *depot, const char *verb, hf_write_verb kind, const void *data,
                             size_t len, const hf_depot_write_options *options)
{
    if (depot->options.push == NULL) {
        return hf_fail_at(op, HF_ERR_MISUSE, verb, "depot '%s' has no .push: nothing can be written", depot->name);
    }
    if (kind == HF_WRITE_PATCH && depot->options.apply == NULL) {
        return hf_fail_at(op, HF_ERR_MISUSE, verb, "depot '%s' has no .apply: a patch needs it", depot->name);
    }
    if (kind != HF_WRITE_REMOVE && data == NULL && len > 0) {
        return hf_fail_at(op, HF_ERR_MISUSE, verb, "%s needs the bytes of the value", verb);
    }
    if (len > (size_t)depot->options.value_max) {
        return hf_fail_at(op, HF_ERR_TOO_BIG, verb, "a value has %zu bytes: the depot takes %lld (.value_max)", len,
                          (long long)depot->options.value_max);
    }
    if ((unsigned)options->mode > HF_DEPOT_ORIGIN_FIRST || (unsigned)options->on_conflict > HF_CONFLICT_MERGE) {
        return hf_fail_at(op, HF_ERR_INVALID, verb, ".mode or .on_conflict has no such value");
    }
    if (options->on_conflict == HF_CONFLICT_MERGE && depot->options.merge == NULL) {
        return hf_fail_at(op, HF_ERR_MISUSE, verb, "HF_CONFLICT_MERGE needs .merge of depot '%s'", depot->name);
    }
    if (options->if_match != NULL && strlen(options->if_match) > HF_ETAG_LEN_MAX) {
        return hf_fail_at(op, HF_ERR_INVALID, verb, ".if_match is longer than %d bytes", HF_ETAG_LEN_MAX);
    }
    return HF_OK;
}

/* `id`: of the key, for its handle; NULL = no handle is wanted. */
static hf_status make_row(hf_op *op, hf_depot *depot, hf_write_verb kind, const hf_depot_key *id, const void *data,
                          size_t len, const hf_depot_write_options *options, hf_pending **ret_row)
{
    hf_env *env = depot->rt->env;
    hf_pending *row = hf_rt_alloc(depot->rt, sizeof *row);
    if (row == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a write");
    }
    hf_list_init(&row->asks);
    row->verb = kind;
    row->is_origin_first = options->mode == HF_DEPOT_ORIGIN_FIRST;
    row->if_none = options->if_none;
    row->on_conflict = options->on_conflict != HF_CONFLICT_DEFAULT ? options->on_conflict : depot->options.on_conflict;
    row->made_at = hf_depot_wall(depot);
    hf_status status = env->ops->random(env, op, row->id, sizeof row->id);
    if (status == HF_OK && kind != HF_WRITE_REMOVE && hf_value_copy(data, len, &row->data) != HF_OK) {
        status = hf_fail(op, HF_ERR_NOMEM, "no memory for a write");
    }
    if (status == HF_OK && options->if_match != NULL) {
        row->if_match = hf_text_value(options->if_match);
        status = row->if_match != NULL ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a write");
    }
    if (status == HF_OK && id != NULL) {
        hf_value *bytes = NULL;
        row->handles[0] = hf_value_copy(id->id, id->id_len, &bytes) == HF_OK ? hf_depot_write_new(depot, bytes) : NULL;
        hf_value_unref(bytes);
        row->handle_count = row->handles[0] != NULL;
        status = row->handles[0] != NULL ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a write");
    }
    if (status != HF_OK) {
        if (row->handle_count > 0) {
            hf_depot_write_free(row->handles[0]); /* the caller's */
        }
        hf_pending_free(depot, row);
        return status;
    }
    *ret_row = row;
    return HF_OK;
}

static hf_status write_it(hf_depot *depot, const char *verb, hf_write_verb kind, hf_depot_key key, const void *data,
                          size_t len, hf_depot_id *ret_id, const hf_depot_write_options *options)
{
    hf_depot_key_bytes bytes;
    hf_op op;
    hf_op_init(&op);
    hf_pending *row = NULL;
    bool has_handle = options->ret_write != NULL || (kind == HF_WRITE_CREATE && options->mode == HF_DEPOT_ORIGIN_FIRST);
    if (hf_depot_key_pack(&op, key, &bytes) != HF_OK ||
        check_write(&op, depot, verb, kind, data, len, options) != HF_OK ||
        make_row(&op, depot, kind, has_handle ? &key : NULL, data, len, options, &row) != HF_OK) {
        return hf_depot_raise(depot, &op);
    }
    hf_depot_write *handle = row->handle_count > 0 ? row->handles[0] : NULL;
    hf_ask ask = {.key = hf_depot_key_str(&bytes), .row = row, .if_version = options->if_version};
    hf_status status = hf_depot_ask(depot, &ask, act_write, verb, options->timeout);
    if (ask.row != NULL) { /* it was not taken */
        hf_pending_free(depot, ask.row);
    }
    if (status == HF_OK && ret_id != NULL) { /* the provisional one, or the origin's */
        ret_id->len = key.id_len;
        memcpy(ret_id->bytes, key.id, key.id_len);
        status = handle != NULL && options->mode == HF_DEPOT_ORIGIN_FIRST ? hf_depot_write_key(handle, ret_id) : HF_OK;
    }
    if (handle != NULL && status == HF_OK && options->ret_write != NULL) {
        *options->ret_write = handle;
    } else if (handle != NULL) {
        hf_depot_write_free(handle);
    }
    return status;
}

/* A key without an id gets one. */
static hf_status create_it(hf_depot *depot, hf_depot_key key, const void *data, size_t len, hf_depot_id *ret_id,
                           const hf_depot_write_options *options)
{
    char id[HF_PROVISIONAL_LEN];
    if (key.id == NULL && key.id_len == 0) {
        hf_op op;
        hf_op_init(&op);
        if (depot->options.subscribe != NULL) { /* a subscription does not follow a key to its other name */
            (void)hf_fail_at(&op, HF_ERR_UNSUPPORTED, "hf_depot_create",
                             "a depot with .subscribe cannot make keys that the origin names: give the id");
            return hf_depot_raise(depot, &op);
        }
        if (hf_provisional_id(&op, depot->rt->env, id) != HF_OK) {
            return hf_depot_raise(depot, &op);
        }
        key.id = id;
        key.id_len = sizeof id;
    }
    return write_it(depot, "hf_depot_create", HF_WRITE_CREATE, key, data, len, ret_id, options);
}

#define WRITE(verb, kind, key, data, len, options)                                  \
    HF_TRY(HF_VERB_ALLOWED(verb));                                                  \
    HF_TRY(hf_depot_enter(depot, #verb));                                           \
    hf_status status = write_it(depot, #verb, kind, key, data, len, NULL, options); \
    hf_depot_leave(depot);                                                          \
    return status

hf_status hf_depot_put_with(hf_depot *depot, hf_depot_key key, const void *data, size_t len,
                            const hf_depot_write_options *options)
{
    HF_OPTIONS(hf_depot_write_options, options, hf_depot_put);
    WRITE(hf_depot_put, HF_WRITE_REPLACE, key, data, len, options);
}

hf_status hf_depot_patch_with(hf_depot *depot, hf_depot_key key, const void *patch, size_t len,
                              const hf_depot_write_options *options)
{
    HF_OPTIONS(hf_depot_write_options, options, hf_depot_patch);
    WRITE(hf_depot_patch, HF_WRITE_PATCH, key, patch, len, options);
}

hf_status hf_depot_delete_with(hf_depot *depot, hf_depot_key key, const hf_depot_write_options *options)
{
    HF_OPTIONS(hf_depot_write_options, options, hf_depot_delete);
    WRITE(hf_depot_delete, HF_WRITE_REMOVE, key, NULL, 0, options);
}

hf_status hf_depot_create_with(hf_depot *depot, hf_depot_key key, const void *data, size_t len, hf_depot_id *ret_id,
                               const hf_depot_write_options *options)
{
    HF_OPTIONS(hf_depot_write_options, options, hf_depot_create);
    HF_TRY(HF_VERB_ALLOWED(hf_depot_create));
    HF_TRY(hf_depot_enter(depot, "hf_depot_create"));
    hf_status status = create_it(depot, key, data, len, ret_id, options);
    hf_depot_leave(depot);
    return status;
}
