/* Slots: what the depot knows of a key while something happens to it. A key to which nothing happens has no slot: it is
 * in memory or in the source. */
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/file.h"
#include "depot/outbox.h"

hf_depot_slot *hf_slot_hold(hf_depot *depot, hf_str key)
{
    key = hf_alias_follow(depot, key);
    uint64_t hash = hf_key_hash(depot->seed, key.data, key.len);
    hf_key_node *found = hf_keys_find(&depot->slots, hash, key.data, key.len);
    if (found != NULL) {
        hf_depot_slot *slot = HF_CONTAINER(found, hf_depot_slot, key);
        slot->holds++;
        return slot;
    }
    hf_space *space = hf_depot_space(depot, hf_depot_key_ns(key));
    hf_depot_slot *slot = space != NULL ? hf_spare_take(depot, sizeof *slot + key.len) : NULL;
    if (slot == NULL) {
        return NULL;
    }
    memcpy(slot->bytes, key.data, key.len);
    slot->key.hash = hash;
    slot->key.bytes = slot->bytes;
    slot->key.len = key.len;
    slot->space = space;
    slot->holds = 1;
    hf_list_init(&slot->loading);
    hf_list_init(&slot->watchers);
    hf_list_init(&slot->changes);
    hf_list_init(&slot->rows);
    hf_list_init(&slot->send_asks);
    hf_keys_add(&depot->slots, &slot->key);
    return slot;
}

void hf_slot_let_go(hf_depot *depot, hf_depot_slot *slot)
{
    hf_assert(slot->holds > 0); /* depot-D4 */
    if (--slot->holds > 0) {
        return;
    }
    hf_assert(slot->flight == NULL && slot->sending == NULL && slot->load != HF_SLOT_LOADING &&
              hf_list_is_empty(&slot->loading) && hf_list_is_empty(&slot->watchers) &&
              hf_list_is_empty(&slot->changes) && hf_list_is_empty(&slot->rows) &&
              hf_list_is_empty(&slot->send_asks)); /* depot-D4 */
    hf_assert(!hf_node_is_linked(&slot->in_senders));
    hf_assert((slot->snap != NULL) == (slot->load == HF_SLOT_KNOWN));
    hf_assert(slot->sub == NULL && !hf_node_is_linked(&slot->in_subs)); /* depot-U1 */
    hf_heap_remove(&depot->timers, &slot->send_timer.node);
    hf_heap_remove(&depot->timers, &slot->sub_timer.node);
    hf_keys_remove(&depot->slots, &slot->key);
    hf_entry_drop(&slot->entry);
    hf_snap_unref(slot->snap);
    hf_spare_give(depot, slot, sizeof *slot + slot->key.len);
}

hf_pending *hf_slot_first_row(const hf_depot_slot *slot)
{
    HF_LIST_EACH(node, &slot->rows)
    {
        hf_pending *row = HF_CONTAINER(node, hf_pending, node);
        hf_assert(row->slot == slot); /* depot-D4 */
        if (row->state != HF_ROW_DEAD) {
            return row;
        }
    }
    return NULL;
}

/* ---- Folding ----------------------------------------------------------------------------------------------------- */

hf_status hf_slot_apply(hf_depot *depot, const hf_pending *row, const hf_value *value, hf_value **ret_value)
{
    hf_assert(row->verb == HF_WRITE_PATCH);
    hf_value *next = NULL;
    if (depot->options.apply == NULL) { /* a row of an earlier program, and this one has no .apply */
        return HF_ERR_MISUSE;
    }
    hf_status status =
        depot->options.apply(depot->options.state, value, hf_value_data(row->data), hf_value_len(row->data), &next);
    if (status == HF_OK && next == NULL) {
        status = HF_ERR_INVALID;
    } else if (status == HF_OK && hf_value_len(next) > (size_t)depot->options.value_max) {
        status = HF_ERR_TOO_BIG;
    }
    if (status != HF_OK) {
        hf_value_unref(next);
        return status;
    }
    *ret_value = next;
    return HF_OK;
}

/* Takes and gives a reference in `*value`. */
static hf_status fold_one(hf_depot *depot, const hf_pending *row, hf_depot_entry_kind *kind, hf_value **value)
{
    hf_value *next = NULL;
    switch (row->verb) {
    case HF_WRITE_CREATE:
    case HF_WRITE_REPLACE:
        next = hf_value_ref(row->data);
        *kind = HF_ENTRY_VALUE;
        break;
    case HF_WRITE_REMOVE:
        *kind = HF_ENTRY_DELETED;
        break;
    case HF_WRITE_PATCH:
        HF_TRY(hf_slot_apply(depot, row, *kind == HF_ENTRY_VALUE ? *value : NULL, &next));
        *kind = HF_ENTRY_VALUE;
        break;
    }
    hf_value_unref(*value);
    *value = next;
    return HF_OK;
}

hf_status hf_slot_fold(hf_depot *depot, const hf_depot_slot *slot, const hf_depot_entry *entry,
                       const hf_pending *except, const hf_pending *more, hf_depot_entry_kind *ret_kind,
                       hf_value **ret_value, bool *ret_is_pending)
{
    bool is_gone = hf_entry_is_gone(depot, slot->space, entry); /* DP3: a patch does not bring it back */
    hf_depot_entry_kind kind = is_gone ? HF_ENTRY_NONE : entry->kind;
    hf_value *value = is_gone ? NULL : hf_value_ref(entry->value);
    bool is_pending = false;
    HF_LIST_EACH(node, &slot->rows)
    {
        const hf_pending *row = HF_CONTAINER(node, hf_pending, node);
        row = row == except ? more : row;
        if (row == NULL || !hf_pending_is_folded(row)) {
            continue;
        }
        /* A patch that does not fit any more is sent, but not seen. */
        if (fold_one(depot, row, &kind, &value) == HF_OK) {
            is_pending = true;
        }
    }
    if (more != NULL && except == NULL) {
        hf_status status = fold_one(depot, more, &kind, &value);
        if (status != HF_OK) {
            hf_value_unref(value);
            return status;
        }
        is_pending = true;
    }
    *ret_kind = kind;
    *ret_value = value;
    *ret_is_pending = is_pending;
    return HF_OK;
}

static const hf_pending *row_at(const hf_depot_slot *slot, hf_node *node)
{
    return node != &slot->rows.head ? HF_CONTAINER(node, hf_pending, node) : NULL;
}

/* Which of two is the next. `passed`: the one that is being sent comes first, whatever is before it. */
static bool comes_first(const hf_pending *row, const hf_pending *other, bool passed)
{
    return row != NULL && (other == NULL || !passed || row->sequence < other->sequence);
}

void hf_slot_fold_both(hf_depot *depot, const hf_depot_slot *slot, const hf_depot_slot *other, const hf_pending *except,
                       const hf_depot_entry *entry, hf_depot_entry_kind *ret_kind, hf_value **ret_value,
                       bool *ret_is_pending)
{
    hf_assert(slot != other && slot->space == other->space && except->slot == other);
    bool is_gone = hf_entry_is_gone(depot, slot->space, entry); /* DP3 */
    hf_depot_entry_kind kind = is_gone ? HF_ENTRY_NONE : entry->kind;
    hf_value *value = is_gone ? NULL : hf_value_ref(entry->value);
    bool is_pending = false;
    bool passed = slot->sending == NULL;
    hf_node *mine = slot->rows.head.next;
    hf_node *theirs = other->rows.head.next;
    for (;;) {
        const hf_pending *row = row_at(slot, mine);
        const hf_pending *their = row_at(other, theirs);
        if (row == NULL && their == NULL) {
            break;
        }
        if (comes_first(row, their, passed)) {
            mine = mine->next;
            passed = passed || row == slot->sending;
        } else {
            row = their;
            theirs = theirs->next;
        }
        if (row != except && hf_pending_is_folded(row) && fold_one(depot, row, &kind, &value) == HF_OK) {
            is_pending = true;
        }
    }
    *ret_kind = kind;
    *ret_value = value;
    *ret_is_pending = is_pending;
}

void hf_slot_take_rows(hf_depot *depot, hf_depot_slot *slot, hf_depot_slot *other, const hf_pending *except)
{
    HF_LIST_EACH(node, &other->rows)
    {
        hf_pending *row = HF_CONTAINER(node, hf_pending, node);
        if (row == except) {
            continue;
        }
        hf_assert(!row->is_held && row->state != HF_ROW_SENDING && row->slot == other); /* depot-D2 */
        hf_list_remove(node);
        hf_node *at = slot->rows.head.prev; /* it comes behind this one */
        while (at != &slot->rows.head && HF_CONTAINER(at, hf_pending, node) != slot->sending &&
               HF_CONTAINER(at, hf_pending, node)->sequence > row->sequence) {
            at = at->prev;
        }
        hf_list_insert_before(at->next, node);
        row->slot = slot;
        slot->holds++;
        hf_slot_let_go(depot, other);
        hf_pending_rename(row, hf_slot_key(slot));
    }
}

/* ---- Loading ----------------------------------------------------------------------------------------------------- */

static bool know_by(hf_depot *depot, hf_depot_slot *slot, const hf_depot_entry *entry, hf_depot_place place)
{
    hf_depot_entry_kind kind = HF_ENTRY_NONE;
    hf_value *value = NULL;
    bool is_pending = false;
    HF_IGNORE(hf_slot_fold(depot, slot, entry, NULL, NULL, &kind, &value, &is_pending)); /* fails only for `more` */
    bool is_blank = kind == HF_ENTRY_NONE && !is_pending && hf_entry_is_blank(depot, slot->space, entry);
    hf_snap *snap = is_blank ? hf_snap_none(depot, slot->space, entry, place)
                             : hf_snap_new(depot, slot->space, entry, kind, value, is_pending, place);
    hf_value_unref(value);
    if (snap == NULL) {
        return false;
    }
    hf_assert(snap->is_pending == is_pending && (snap->value != NULL) == (kind == HF_ENTRY_VALUE)); /* depot-D5 */
    hf_entry_set(&slot->entry, entry);
    hf_snap_unref(slot->snap);
    slot->snap = snap;
    slot->load = HF_SLOT_KNOWN;
    return true;
}

void hf_slot_refold(hf_depot *depot, hf_depot_slot *slot)
{
    hf_depot_entry entry;
    hf_entry_copy(&entry, &slot->entry);
    entry.version++;
    if (know_by(depot, slot, &entry, HF_DEPOT_WRITE)) {
        hf_memory_put(depot, hf_slot_key(slot), slot->snap);
    }
    hf_entry_drop(&entry);
}

static void fail_asks(hf_depot *depot, hf_list *asks, hf_status status, const char *message)
{
    for (hf_ask *ask = hf_depot_unpark(depot, asks); ask != NULL; ask = hf_depot_unpark(depot, asks)) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, status, "%s", message));
    }
}

void hf_slot_loaded(hf_depot *depot, hf_depot_slot *slot, const hf_depot_entry *entry)
{
    hf_assert(slot->load == HF_SLOT_LOADING);
    if (!know_by(depot, slot, entry, HF_DEPOT_SOURCE)) {
        slot->load = HF_SLOT_UNKNOWN;
        fail_asks(depot, &slot->loading, HF_ERR_NOMEM, "no memory for a value of the depot");
    } else {
        if (slot->snap->kind != HF_ENTRY_NONE) {
            hf_memory_put(depot, hf_slot_key(slot), slot->snap);
        }
        for (hf_ask *ask = hf_depot_unpark(depot, &slot->loading); ask != NULL;
             ask = hf_depot_unpark(depot, &slot->loading)) {
            ask->place = HF_DEPOT_SOURCE;
            ask->post.act(depot, &ask->post);
        }
    }
    hf_slot_run_changes(depot, slot);
    hf_slot_let_go(depot, slot); /* of the load */
}

/* By what is at hand without waiting. */
static bool know_at_once(hf_depot *depot, hf_depot_slot *slot)
{
    hf_snap *snap = hf_memory_get(depot, hf_slot_key(slot)); /* what is there has all writes folded in */
    hf_assert(slot->load == HF_SLOT_UNKNOWN && slot->snap == NULL);
    if (snap != NULL) {
        hf_assert(snap->space == slot->space);
        hf_entry_set(&slot->entry, &snap->entry);
        hf_snap_unref(slot->snap);
        slot->snap = snap;
        slot->load = HF_SLOT_KNOWN;
        return true;
    }
    if (depot->source != NULL && depot->broken == HF_OK && hf_source_may_have(depot, slot)) {
        return false;
    }
    hf_depot_entry none = hf_entry_none(depot, slot->space);
    return know_by(depot, slot, &none, HF_DEPOT_MEMORY);
}

bool hf_slot_know(hf_depot *depot, hf_depot_slot *slot, hf_ask *ask)
{
    hf_assert(slot->holds > 0); /* depot-D4 */
    if (slot->load == HF_SLOT_KNOWN || (slot->load == HF_SLOT_UNKNOWN && know_at_once(depot, slot))) {
        return true;
    }
    if (slot->load == HF_SLOT_UNKNOWN) {
        slot->holds++;
        slot->load = HF_SLOT_LOADING;
        if (depot->source == NULL || !hf_source_load(depot, slot)) {
            slot->load = HF_SLOT_UNKNOWN;
            if (ask != NULL) {
                hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory to read a value of the depot"));
            }
            hf_slot_let_go(depot, slot);
            return false;
        }
    }
    if (ask != NULL) {
        (void)hf_depot_park(depot, ask, &slot->loading);
    }
    return false;
}

/* Whether a fetcher, subscriber or pusher asks for its own key by another name. By its own one is refused before the driver hears
 * of it. The caller stays inside of the call while the driver has its ask, so what is bound there can be looked at. */
static bool is_own_key(const hf_depot *depot, const hf_ask *ask)
{
    const hf_ask *call = ask->many != NULL ? &ask->many->whole : ask;
    hf_str key = hf_slot_key(ask->slot);
    return !hf_str_equal(key, ask->key) && hf_depot_is_called_for(call->wait.fiber, depot, key);
}

hf_depot_slot *hf_slot_of_ask(hf_depot *depot, hf_ask *ask)
{
    if (ask->slot == NULL) {
        ask->slot = hf_slot_hold(depot, ask->key);
        if (ask->slot == NULL) {
            hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for a key of the depot"));
            return NULL;
        }
        if (!hf_list_is_empty(&depot->alias_order) && is_own_key(depot, ask)) {
            const char *verb = ask->many != NULL ? "hf_depot_get_many" : ask->kind.verb;
            hf_depot_answer(depot, ask, hf_depot_refuse_own(&ask->op, depot, verb));
            return NULL;
        }
    }
    hf_depot_slot *slot = ask->slot;
    return hf_slot_know(depot, slot, ask) ? slot : NULL;
}
