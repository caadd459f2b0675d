/* Rows of writes that are not settled, and the handles that their callers wait for. */
#include "depot/change.h"
#include "depot/file.h"
#include "depot/outbox.h"

#include "base/canary.h"
#include "fiber/verbs.h"

#include <stdio.h>

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

bool hf_pending_is_folded(const hf_pending *row)
{
    return row->state != HF_ROW_DEAD && !row->is_origin_first && !row->is_dropped;
}

size_t hf_pending_len(const hf_pending *row)
{
    return sizeof *row + hf_value_len(row->data);
}

void hf_pending_link(hf_depot *depot, hf_pending *row)
{
    hf_assert(row->slot != NULL && row->slot->holds > 0 && row->sequence > 0); /* depot-D4 */
    hf_assert(row->sequence < depot->sequence_next && !hf_node_is_linked(&row->node));
    hf_assert((row->data == NULL) == (row->verb == HF_WRITE_REMOVE));
    hf_list_push_back(&row->slot->rows, &row->node);
    hf_list_push_back(&depot->rows, &row->in_all);
    depot->row_count++;
    depot->dead_count += row->state == HF_ROW_DEAD;
    depot->row_bytes += hf_pending_len(row);
}

void hf_pending_unlink(hf_depot *depot, hf_pending *row)
{
    hf_assert(depot->row_count > 0 && row->slot->sending != row);
    hf_list_remove(&row->node);
    hf_list_remove(&row->in_all);
    depot->row_count--;
    hf_assert(row->state != HF_ROW_DEAD || depot->dead_count > 0);
    depot->dead_count -= row->state == HF_ROW_DEAD;
    hf_assert(depot->row_bytes >= hf_pending_len(row)); /* DP8 */
    depot->row_bytes -= hf_pending_len(row);
    hf_assert(depot->row_count > 0 || depot->row_bytes == 0); /* DP8 */
}

/* It is not linked any more. Lets go of its slot. */
void hf_pending_free(hf_depot *depot, hf_pending *row)
{
    hf_depot_slot *slot = row->slot;
    hf_assert(!hf_node_is_linked(&row->node) && hf_list_is_empty(&row->asks));
    for (size_t i = 0; i < row->handle_count; i++) {
        hf_depot_write_free(row->handles[i]);
    }
    hf_value_unref(row->data);
    hf_value_unref(row->if_match);
    hf_rt_free(depot->rt, row, sizeof *row);
    if (slot != NULL) {
        hf_slot_let_go(depot, slot);
    }
}

uint64_t hf_pending_number(const hf_pending *row)
{
    enum { BITS = 52 }; /* with one more it is exact in JSON */
    if (!row->is_origin_first) {
        return row->sequence;
    }
    uint64_t number = 0;
    _Static_assert(sizeof number <= sizeof row->id, "a number fits into an id");
    memcpy(&number, row->id, sizeof number);
    return UINT64_C(1) << BITS | number >> (64 - BITS);
}

void hf_pending_id(const hf_pending *row, char ret_text[HF_WRITE_ID_LEN])
{
    for (size_t i = 0; i < sizeof row->id; i++) {
        (void)snprintf(ret_text + 2 * i, 3, "%02x", row->id[i]);
    }
}

/* ---- By decisions ------------------------------------------------------------------------------------------------ */

void hf_pending_put(hf_depot *depot, hf_change *change, const hf_pending *row)
{
    hf_assert(row->sequence > 0 && row->state != HF_ROW_SENDING);
    if (depot->source != NULL) {
        hf_buf *out = hf_change_put(depot, change, HF_TABLE_PENDING, (hf_key){.a = (int64_t)row->sequence});
        hf_row_put_pending(out, hf_slot_key(change->slot), row);
    }
}

void hf_pending_delete(hf_depot *depot, hf_change *change, const hf_pending *row)
{
    if (depot->source != NULL && !row->is_origin_first) {
        hf_change_delete(depot, change, HF_TABLE_PENDING, (hf_key){.a = (int64_t)row->sequence});
    }
}

void hf_pending_hold(hf_depot *depot, hf_pending *row)
{
    hf_assert((row->state != HF_ROW_SENDING || HF_CANARY(HF_BUG_COALESCED_INTO_SENT)) && !row->is_held);
    row->is_held = true;
    hf_depot_look_at_sends(depot, row->slot);
}

/* ---- All writes of a key are dropped ----------------------------------------------------------------------------- */

/* Folds as if they had gone. */
static hf_status fold_without(hf_depot *depot, hf_change *change)
{
    hf_pending *sending = change->slot->sending;
    bool was_dropped = sending != NULL && sending->is_dropped; /* by an earlier invalidation */
    HF_LIST_EACH(node, &change->slot->rows)
    {
        HF_CONTAINER(node, hf_pending, node)->is_dropped = true;
    }
    hf_status status = hf_change_fold(depot, change, NULL, NULL);
    HF_LIST_EACH(node, &change->slot->rows)
    {
        HF_CONTAINER(node, hf_pending, node)->is_dropped = false;
    }
    if (was_dropped) {
        sending->is_dropped = true;
    }
    return status;
}

hf_status hf_pending_decide_drop(hf_depot *depot, hf_change *change)
{
    hf_depot_slot *slot = change->slot;
    HF_TRY(fold_without(depot, change));
    HF_LIST_EACH(node, &slot->rows)
    {
        hf_pending *row = HF_CONTAINER(node, hf_pending, node);
        hf_pending_delete(depot, change, row);
        if (row->state != HF_ROW_SENDING && !row->is_origin_first) {
            hf_pending_hold(depot, row);
        }
    }
    change->is_synced = true; /* they must not come back */
    return HF_OK;
}

void hf_pending_keep_all(hf_depot *depot, hf_depot_slot *slot)
{
    HF_LIST_EACH(node, &slot->rows)
    {
        HF_CONTAINER(node, hf_pending, node)->is_held = false;
    }
    hf_depot_look_at_sends(depot, slot);
}

void hf_pending_drop_all(hf_depot *depot, hf_depot_slot *slot, hf_list *ret_gone)
{
    hf_list_init(ret_gone);
    HF_LIST_EACH(node, &slot->rows)
    {
        hf_pending *row = HF_CONTAINER(node, hf_pending, node);
        row->is_held = false;
        if (row->is_origin_first) { /* a call under way, not a write that waits */
            continue;
        }
        if (row->state == HF_ROW_SENDING) {
            hf_assert(slot->sending == row);
            row->is_dropped = true;
        } else {
            hf_pending_unlink(depot, row);
            hf_list_push_back(ret_gone, &row->node);
        }
    }
    hf_depot_look_at_sends(depot, slot);
}

void hf_pending_tell_dropped(hf_depot *depot, hf_depot_slot *slot, hf_list *gone)
{
    hf_failure_box *failure =
        hf_box_new(NULL, HF_ERR_CANCELED, NULL, "hf_depot_invalidate", "the write was dropped", NULL);
    for (hf_node *node = hf_list_pop_front(gone); node != NULL; node = hf_list_pop_front(gone)) {
        hf_pending *row = HF_CONTAINER(node, hf_pending, node);
        hf_assert(row->slot == slot && row->state != HF_ROW_SENDING);
        hf_pending_over(depot, row, HF_ERR_CANCELED, failure);
        hf_pending_free(depot, row); /* not the last hold: the change has one */
    }
    if (slot->sending != NULL && slot->sending->is_dropped) {
        hf_pending_over(depot, slot->sending, HF_ERR_CANCELED, failure);
    }
    hf_box_unref(failure);
}

/* ---- The end of a write ------------------------------------------------------------------------------------------ */

static void handle_over(hf_depot_write *write, hf_status status, hf_failure_box *failure)
{
    hf_claimed claimed = {NULL, NULL};
    hf_fiber *self = hf_enter(write->rt);
    hf_spin_lock(&write->lock);
    bool is_first = !write->is_over;
    if (is_first) {
        write->is_over = true;
        write->status = status;
        write->failure = hf_box_ref(failure);
    }
    hf_claimed_add_all(&claimed, &write->waiters);
    hf_spin_unlock(&write->lock);
    hf_claimed_wake(&claimed, HF_OK);
    if (self != NULL) {
        hf_leave(self);
    }
}

void hf_pending_over(hf_depot *depot, hf_pending *row, hf_status status, hf_failure_box *failure)
{
    for (size_t i = 0; i < row->handle_count; i++) {
        handle_over(row->handles[i], status, failure);
    }
    for (hf_ask *ask = hf_depot_unpark(depot, &row->asks); ask != NULL; ask = hf_depot_unpark(depot, &row->asks)) {
        ask->failure = hf_box_ref(failure);
        hf_depot_answer(depot, ask, status);
    }
}

void hf_depot_drop_rows(hf_depot *depot)
{
    hf_failure_box *failure = hf_box_new(NULL, HF_ERR_CLOSED, NULL, "hf_depot_close",
                                         "the depot was closed before the origin had accepted the write", NULL);
    for (hf_node *node = hf_list_first(&depot->rows); node != NULL; node = hf_list_first(&depot->rows)) {
        hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        hf_pending_unlink(depot, row);
        hf_pending_over(depot, row, HF_ERR_CLOSED, failure);
        hf_depot_slot *slot = row->slot;
        slot->holds++;
        hf_pending_free(depot, row);
        hf_depot_look_at_sends(depot, slot);
        hf_slot_let_go(depot, slot);
    }
    hf_box_unref(failure);
}

void hf_pending_end_all(hf_depot *depot)
{
    hf_failure_box *failure = hf_box_new(NULL, HF_ERR_CLOSED, NULL, "hf_depot_close", "the depot is closed", NULL);
    HF_LIST_EACH(node, &depot->rows)
    {
        hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        if (row->is_origin_first && row->state == HF_ROW_WAITING) {
            hf_depot_slot *slot = row->slot;
            slot->holds++;
            hf_pending_unlink(depot, row);
            hf_pending_over(depot, row, HF_ERR_CLOSED, failure);
            hf_pending_free(depot, row);
            hf_depot_look_at_sends(depot, slot);
            hf_slot_let_go(depot, slot);
        }
    }
    hf_box_unref(failure);
}

/* ---- Handles ----------------------------------------------------------------------------------------------------- */

hf_depot_write *hf_depot_write_new(hf_depot *depot, hf_value *id)
{
    hf_env *env = hf_env_posix();
    hf_assert(id != NULL && hf_value_len(id) > 0);
    hf_depot_write *write = env->ops->allocate(env, sizeof *write, _Alignof(hf_depot_write));
    if (write != NULL) {
        memset(write, 0, sizeof *write);
        write->rt = depot->rt;
        write->id = hf_value_ref(id);
        atomic_store_explicit(&write->refs, 2, memory_order_relaxed); /* the row's and the caller's */
        hf_list_init(&write->waiters);
    }
    return write;
}

void hf_pending_rename(hf_pending *row, hf_str key)
{
    hf_depot_key parts;
    hf_value *id = NULL;
    bool is_key = hf_depot_key_unpack(key, &parts);
    hf_assert(is_key);
    if (row->handle_count == 0 || hf_value_copy(parts.id, parts.id_len, &id) != HF_OK) {
        return;
    }
    for (size_t i = 0; i < row->handle_count; i++) {
        hf_depot_write *write = row->handles[i];
        hf_spin_lock(&write->lock);
        hf_value *old = write->id;
        write->id = hf_value_ref(id);
        hf_spin_unlock(&write->lock);
        hf_value_unref(old);
    }
    hf_value_unref(id);
}

hf_status hf_depot_write_key(const hf_depot_write *write, hf_depot_id *ret_id)
{
    HF_VERB_ENTER(self, hf_depot_write_key, write != NULL ? write->rt : NULL);
    if (write == NULL || ret_id == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_depot_write_key needs a write and a place for the id"));
    }
    hf_depot_write *own = (hf_depot_write *)(uintptr_t)write; /* for its lock */
    hf_spin_lock(&own->lock);
    hf_value *id = hf_value_ref(own->id);
    hf_spin_unlock(&own->lock);
    ret_id->len = hf_value_len(id);
    hf_assert(ret_id->len <= sizeof ret_id->bytes);
    memcpy(ret_id->bytes, hf_value_data(id), ret_id->len);
    hf_value_unref(id);
    HF_LEAVE(self, HF_OK);
}

static const hf_wait_kind WAIT = {"hf_depot_write_wait", hf_wait_abort_linked};

hf_status hf_depot_write_wait_with(hf_depot_write *write, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_depot_write_wait);
    HF_VERB_ENTER(self, hf_depot_write_wait, write != NULL ? write->rt : NULL);
    if (write == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_depot_write_wait needs a write"));
    }
    hf_status status = hf_may_wait(self, WAIT.verb);
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    hf_wait wait;
    hf_wait_init(&wait, self, &WAIT, write, "write");
    hf_instant deadline = hf_wait_deadline(self, write->rt, options);
    hf_sync_point(self);
    hf_spin_lock(&write->lock);
    bool waits = !write->is_over;
    if (waits) {
        hf_list_push_back(&write->waiters, &wait.node);
    }
    hf_spin_unlock(&write->lock);
    status = waits ? hf_park(self, &wait, deadline) : HF_OK;
    if (status == HF_OK) {
        status = write->status;
        if (write->failure != NULL) {
            hf_self_fail(self, hf_box_ref(write->failure));
            status = hf_self_return(self, status);
        }
    }
    HF_LEAVE(self, status);
}

void hf_depot_write_free(hf_depot_write *write)
{
    if (write == NULL || atomic_fetch_sub_explicit(&write->refs, 1, memory_order_acq_rel) > 1) {
        return;
    }
    hf_env *env = hf_env_posix();
    hf_box_unref(write->failure);
    hf_value_unref(write->id);
    env->ops->release(env, write, sizeof *write);
}
