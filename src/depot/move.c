/* A key gets another name: the origin has answered a create with a key of its own. In one commit the entry of the old
 * key goes, that of the new one is what the origin has answered, the writes that wait get the new key, and an alias is
 * written. Two keys change, so the change has to be the first of both (depot-D2):
 *
 *     old key:   ... answer to the create, parked --------------------------+--> settled
 *     new key:   ... other changes ... move: decided, written, applied -----+
 *
 * Changes that wait behind the answer go on with the new key; a fetch of the old one is thrown away, and those who wait
 * for it ask again. The new key may be known already: its writes stay in the order of their sequence with those that
 * come, and its watchers see the new value. */
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/file.h"
#include "depot/hearing.h"
#include "depot/lists.h"
#include "depot/outbox.h"
#include "depot/send.h"

#include "base/canary.h"

/* What both steps know. */
typedef struct moving {
    hf_change *answer; /* of the old key; parked */
    hf_sending *one;
    hf_value *key;    /* the new one; a reference */
    hf_pending *held; /* of the new key: not sent until the rows have come */
} moving;

/* ---- Deciding ---------------------------------------------------------------------------------------------------- */

/* Whether the new key was invalidated since the write began; nobody knew then that it would be this one. */
static bool is_voided(const hf_depot_slot *slot, const uint64_t *marks, uint64_t began)
{
    return marks[slot->key.hash % HF_VOIDED] > began;
}

static hf_status fold(hf_depot *depot, hf_change *change, const hf_depot_slot *old, const hf_pending *row)
{
    hf_depot_slot *slot = change->slot;
    hf_depot_entry_kind kind = HF_ENTRY_NONE;
    hf_value *value = NULL;
    bool is_pending = false;
    hf_slot_fold_both(depot, slot, old, row, &change->next, &kind, &value, &is_pending);
    uint64_t version = old->entry.version > slot->entry.version ? old->entry.version : slot->entry.version;
    change->next.version = version + 1; /* DP4: for the watchers of both */
    change->snap = hf_snap_new(depot, slot->space, &change->next, kind, value, is_pending, HF_DEPOT_FETCHER);
    hf_value_unref(value);
    return change->snap != NULL ? HF_OK : hf_fail(&change->op, HF_ERR_NOMEM, "no memory for a value of the depot");
}

/* The records of the commit. */
static void put_all(hf_depot *depot, hf_change *change, const hf_depot_slot *old, const hf_pending *row)
{
    hf_depot_slot *slot = change->slot;
    hf_change_delete(depot, change, HF_TABLE_ENTRY, (hf_key){.text = hf_slot_key(old)});
    hf_row_put_entry(hf_change_put(depot, change, HF_TABLE_ENTRY, (hf_key){.text = hf_slot_key(slot)}), &change->next);
    hf_row_put_alias(hf_change_put(depot, change, HF_TABLE_ALIAS, (hf_key){.text = hf_slot_key(old)}),
                     hf_alias_to(change->alias), change->alias->made_at);
    hf_pending_delete(depot, change, row);
    HF_LIST_EACH(node, &old->rows)
    {
        const hf_pending *other = HF_CONTAINER(node, hf_pending, node);
        if (other != row && !other->is_origin_first && !HF_CANARY(HF_BUG_ALIAS_NOT_MOVED)) {
            hf_pending_put(depot, change, other); /* with the key of the change */
        }
    }
}

static hf_status decide_move(hf_depot *depot, hf_change *change)
{
    moving *move = change->what;
    hf_sending *one = move->one;
    hf_depot_slot *slot = change->slot;
    hf_depot_slot *old = one->slot;
    hf_pending *row = one->row;
    hf_assert(move->answer->is_parked && old->load == HF_SLOT_KNOWN && old->sending == row && slot != old);
    bool is_void = one->voids != old->voids || is_voided(slot, depot->voided, one->began);
    bool is_hard = one->hard_voids != old->hard_voids || is_voided(slot, depot->hard_voided, one->began);
    hf_entry_copy(&change->next, &slot->entry);
    hf_answer_set_base(depot, one, slot, &change->next, one->reply.value != NULL ? one->reply.value : row->data,
                       is_void, is_hard);
    change->alias = hf_alias_new(depot, hf_slot_key(old), hf_slot_key(slot), hf_depot_wall(depot));
    if (change->alias == NULL) {
        return hf_fail(&change->op, HF_ERR_NOMEM, "no memory for an alias");
    }
    HF_TRY(fold(depot, change, old, row));
    if (depot->source != NULL) {
        put_all(depot, change, old, row);
        change->is_synced = true; /* who was told the new key may count on both */
    }
    hf_pending *first = hf_slot_first_row(slot);
    if (first != NULL && first->state == HF_ROW_WAITING && !first->is_origin_first) { /* that one is not folded */
        move->held = first;
        hf_pending_hold(depot, first);
    }
    return HF_OK;
}

/* ---- Applying ---------------------------------------------------------------------------------------------------- */

/* The changes of the old key that wait are changes of the new one. */
static void take_changes(hf_depot *depot, hf_depot_slot *slot, hf_depot_slot *old)
{
    HF_LIST_EACH(node, &old->changes)
    {
        hf_change *change = HF_CONTAINER(node, hf_change, node);
        if (!change->follows) {
            continue;
        }
        hf_assert(!hf_node_is_linked(&change->in_batch) && !change->is_parked && change->slot == old);
        hf_list_remove(node);
        hf_list_push_back(&slot->changes, node);
        change->slot = slot;
        slot->holds++;
        hf_slot_let_go(depot, old);
        if (change->row != NULL && change->row->slot == old) { /* of a write that is not decided yet */
            change->row->slot = slot;
            slot->holds++;
            hf_slot_let_go(depot, old);
            hf_pending_rename(change->row, hf_slot_key(slot));
        }
    }
}

/* Nothing is left of the old key: the next one who asks comes to the new one. */
static void empty(hf_depot *depot, hf_depot_slot *old)
{
    hf_memory_remove(depot, hf_slot_key(old));
    hf_entry_drop(&old->entry);
    hf_snap_unref(old->snap);
    old->snap = NULL;
    old->load = HF_SLOT_UNKNOWN;
}

static void apply_move(hf_depot *depot, hf_change *change, hf_status status)
{
    moving *move = change->what;
    hf_change *answer = move->answer;
    hf_depot_slot *slot = change->slot;
    hf_depot_slot *old = answer->slot;
    if (move->held != NULL) {
        move->held->is_held = false;
    }
    slot->holds++;
    old->holds++;
    if (status == HF_OK) {
        if (!HF_CANARY(HF_BUG_ALIAS_NOT_MOVED)) {
            hf_slot_take_rows(depot, slot, old, move->one->row);
        }
        hf_alias_add(depot, change->alias);
        change->alias = NULL;
        slot->stirred = ++depot->stir;
        slot->answers++;                                  /* a fetch under way is older */
        if (old->entry.version >= change->next.version) { /* an invalidation was shown meanwhile */
            slot->entry.version = old->entry.version + 1;
        }
        hf_watch_move(depot, old, slot, move->key);
        hf_change_show(depot, change, true);
        take_changes(depot, slot, old);
        hf_flight_redirect(depot, old);
        empty(depot, old);
        hf_watch_moved(depot, slot);
        hf_refs_renamed(depot);
        hf_assert(hf_list_is_empty(&old->watchers)); /* depot-D7 */
    } else {
        answer->op = change->op;
    }
    hf_alias_free(depot, change->alias);
    change->alias = NULL;
    hf_value_unref(move->key);
    hf_rt_free(depot->rt, move, sizeof *move);
    hf_change_free(depot, change);
    hf_change_release(depot, answer, status);
    hf_depot_look_at_sends(depot, slot);
    hf_slot_let_go(depot, old);
    hf_slot_let_go(depot, slot);
}

hf_status hf_move_begin(hf_depot *depot, hf_change *answer, hf_sending *one)
{
    hf_value *key = one->reply.key;
    hf_assert(key != NULL && answer->is_deciding && one->status == HF_OK);
    hf_change *change = hf_change_of_key(depot, hf_str_of_len(hf_value_data(key), hf_value_len(key)));
    moving *move = change != NULL ? hf_rt_alloc(depot->rt, sizeof *move) : NULL;
    if (move == NULL) {
        if (change != NULL) {
            hf_change_free(depot, change);
        }
        return hf_fail(&answer->op, HF_ERR_NOMEM, "no memory for the new key of a value");
    }
    hf_assert(change->slot != answer->slot && change->slot->space == answer->slot->space);
    move->answer = answer;
    move->one = one;
    move->key = hf_value_ref(key);
    change->what = move;
    change->decide = decide_move;
    change->apply = apply_move;
    change->place = HF_DEPOT_FETCHER;
    answer->is_parked = true;
    hf_change_begin(depot, change);
    return HF_OK;
}
