/* Rows of writes that are not settled, and the handles that their callers wait for. */
#include "depot/depot_private.h"

#include "base/canary.h"
#include "fiber/verbs.h"

#include <stdio.h>

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

bool hf_pending_is_folded(const hf_pending *row)
{
    return row->state != HF_ROW_DEAD && !row->is_origin_first;
}

size_t hf_pending_len(const hf_pending *row)
{
    return sizeof *row + hf_value_len(row->data);
}

void hf_pending_link(hf_depot *depot, hf_pending *row)
{
    hf_list_push_back(&row->slot->rows, &row->node);
    hf_list_push_back(&depot->rows, &row->in_all);
    depot->row_count++;
    depot->row_bytes += hf_pending_len(row);
}

void hf_pending_unlink(hf_depot *depot, hf_pending *row)
{
    hf_assert(depot->row_count > 0 && row->slot->sending != row);
    hf_list_remove(&row->node);
    hf_list_remove(&row->in_all);
    depot->row_count--;
    depot->row_bytes -= hf_pending_len(row);
}

/* It is not linked any more. Lets go of its slot. */
void hf_pending_free(hf_depot *depot, hf_pending *row)
{
    hf_slot *slot = row->slot;
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

void hf_pending_id(const hf_pending *row, char ret_text[HF_WRITE_ID_LEN])
{
    for (size_t i = 0; i < sizeof row->id; i++) {
        (void)snprintf(ret_text + 2 * i, 3, "%02x", row->id[i]);
    }
}

/* ---- By decisions ------------------------------------------------------------------------------------------------ */

void hf_pending_put(hf_depot *depot, hf_change *change, const hf_pending *row)
{
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
        hf_slot *slot = row->slot;
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
            hf_slot *slot = row->slot;
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

hf_depot_write *hf_depot_write_new(hf_depot *depot)
{
    hf_env *env = hf_env_posix();
    hf_depot_write *write = env->ops->allocate(env, sizeof *write, _Alignof(hf_depot_write));
    if (write != NULL) {
        memset(write, 0, sizeof *write);
        write->rt = depot->rt;
        atomic_store_explicit(&write->refs, 2, memory_order_relaxed); /* the row's and the caller's */
        hf_list_init(&write->waiters);
    }
    return write;
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
    env->ops->release(env, write, sizeof *write);
}
