/* Writing: put, patch and delete. A write is a row on the disk, folded into what is visible; send.c sends it to the
 * origin in its turn. A write that goes to the origin first is in the same order, but neither on the disk nor folded. */
#include "depot/depot_private.h"

#include "base/canary.h"
#include "fiber/verbs.h"

/* ---- Writing here ------------------------------------------------------------------------------------------------ */

/* The write that this one is put into: the last of the key, if it was not sent yet. */
static hf_pending *mate_of(hf_depot *depot, const hf_slot *slot, const hf_pending *row)
{
    hf_node *last = hf_list_last(&slot->rows);
    if (last == NULL || depot->options.coalesce.ns <= 0) {
        return NULL;
    }
    hf_pending *mate = HF_CONTAINER(last, hf_pending, node);
    bool may = (mate->state == HF_ROW_WAITING || HF_CANARY(HF_BUG_COALESCED_INTO_SENT)) && mate->attempts == 0 &&
               !mate->is_old && !mate->is_origin_first && mate->verb == HF_WRITE_REPLACE &&
               row->verb == HF_WRITE_REPLACE && row->if_match == NULL && !row->if_none &&
               mate->on_conflict == row->on_conflict &&
               mate->handle_count + row->handle_count <= HF_COUNT_OF(mate->handles) &&
               hf_rule_age(row->made_at, mate->made_at) <= depot->options.coalesce.ns;
    return may ? mate : NULL;
}

static hf_status decide_write(hf_depot *depot, hf_change *change)
{
    hf_pending *row = change->row;
    hf_slot *slot = change->slot;
    if (change->number != 0 && change->number != slot->entry.version) {
        return hf_fail(&change->op, HF_ERR_CONFLICT, "the value has version %llu, not %llu: read it again",
                       (unsigned long long)slot->entry.version, (unsigned long long)change->number);
    }
    if (depot->row_count >= (size_t)depot->options.pending_max ||
        depot->row_bytes + hf_pending_len(row) > (size_t)depot->options.pending_bytes_max) {
        return hf_fail(
            &change->op, HF_ERR_LIMIT,
            "%zu writes of depot '%s' with %zu bytes wait for the origin: wait until some are settled, or drop some",
            depot->row_count, depot->name, depot->row_bytes);
    }
    hf_pending *mate = mate_of(depot, slot, row);
    change->mate = mate;
    hf_entry_copy(&change->next, &slot->entry);
    change->place = HF_DEPOT_WRITE;
    HF_TRY(hf_change_fold(depot, change, mate, row));
    if (mate != NULL) {
        hf_pending written = *mate;
        written.data = row->data;
        hf_pending_put(depot, change, &written);
        hf_pending_hold(depot, mate);
    } else {
        row->sequence = depot->sequence_next++;
        hf_pending_put(depot, change, row);
    }
    change->is_synced = !HF_CANARY(HF_BUG_UNSYNCED_PUT); /* DP6 */
    return HF_OK;
}

/* The newer value in the older row. */
static void merge_rows(hf_depot *depot, hf_pending *mate, hf_pending *row)
{
    hf_value *data = mate->data;
    depot->row_bytes -= hf_pending_len(mate);
    mate->data = row->data;
    row->data = data;
    depot->row_bytes += hf_pending_len(mate);
    for (size_t i = 0; i < row->handle_count; i++) {
        mate->handles[mate->handle_count++] = row->handles[i];
    }
    row->handle_count = 0;
    hf_pending_free(depot, row);
}

static void apply_write(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_pending *row = change->row;
    hf_slot *slot = change->slot;
    if (change->mate != NULL && change->mate->is_held) {
        change->mate->is_held = false;
    }
    if (status == HF_OK) {
        if (change->mate != NULL) {
            merge_rows(depot, change->mate, row);
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
    hf_change_free(depot, change);
}

static void act_write(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    if (hf_depot_refuses(depot, ask)) {
        return;
    }
    hf_pending *row = ask->row;
    hf_slot *slot = hf_slot_hold(depot, hf_str_of_len(ask->key->bytes, ask->key->len));
    if (slot == NULL) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for a write"));
        return;
    }
    if (row->is_origin_first) {
        int64_t wait = 0;
        if (depot->is_offline || hf_breaker_is_shut(&depot->breakers[hf_depot_origin(depot, hf_slot_key(slot))],
                                                    hf_rt_now(depot->rt).ns, &wait)) {
            hf_slot_let_go(depot, slot);
            hf_depot_answer(
                depot, ask,
                hf_fail(&ask->op, HF_ERR_UNAVAILABLE, "depot '%s' does not ask the origin at the moment", depot->name));
            return;
        }
        ask->row = NULL; /* taken */
        row->slot = slot;
        hf_pending_link(depot, row);
        if (!hf_depot_park(depot, ask, &row->asks)) {
            hf_pending_unlink(depot, row);
            hf_pending_free(depot, row);
            return;
        }
        hf_depot_look_at_sends(depot, slot);
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

static hf_status make_row(hf_op *op, hf_depot *depot, hf_write_verb kind, const void *data, size_t len,
                          const hf_depot_write_options *options, hf_pending **ret_row)
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
    row->on_conflict =
        options->on_conflict != HF_CONFLICT_SERVER_WINS ? options->on_conflict : depot->options.on_conflict;
    row->made_at = hf_depot_wall(depot);
    hf_status status = env->ops->random(env, op, row->id, sizeof row->id);
    if (status == HF_OK && kind != HF_WRITE_REMOVE && hf_value_copy(data, len, &row->data) != HF_OK) {
        status = hf_fail(op, HF_ERR_NOMEM, "no memory for a write");
    }
    if (status == HF_OK && options->if_match != NULL) {
        row->if_match = hf_text_value(options->if_match);
        status = row->if_match != NULL ? HF_OK : hf_fail(op, HF_ERR_NOMEM, "no memory for a write");
    }
    if (status == HF_OK && options->ret_write != NULL) {
        row->handles[0] = hf_depot_write_new(depot);
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
                          size_t len, const hf_depot_write_options *options)
{
    hf_depot_key_bytes bytes;
    hf_op op;
    hf_op_init(&op);
    hf_pending *row = NULL;
    if (hf_depot_key_pack(&op, key, &bytes) != HF_OK ||
        check_write(&op, depot, verb, kind, data, len, options) != HF_OK ||
        make_row(&op, depot, kind, data, len, options, &row) != HF_OK) {
        return hf_depot_raise(depot, &op);
    }
    hf_depot_write *handle = row->handle_count > 0 ? row->handles[0] : NULL;
    hf_ask ask = {.key = &bytes, .row = row, .if_version = options->if_version};
    hf_status status = hf_depot_ask(depot, &ask, act_write, verb, options->timeout);
    if (ask.row != NULL) { /* it was not taken */
        hf_pending_free(depot, ask.row);
    }
    if (handle != NULL && status == HF_OK) {
        *options->ret_write = handle;
    } else if (handle != NULL) {
        hf_depot_write_free(handle);
    }
    return status;
}

#define WRITE(verb, kind, key, data, len, options)                            \
    HF_TRY(HF_VERB_ALLOWED(verb));                                            \
    HF_TRY(hf_depot_enter(depot, #verb));                                     \
    hf_status status = write_it(depot, #verb, kind, key, data, len, options); \
    hf_depot_leave(depot);                                                    \
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
