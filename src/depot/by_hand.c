/* Pending writes by hand: they are shown, sent at once, or dropped. */
#include "depot/change.h"
#include "depot/file.h"
#include "depot/outbox.h"

#include "fiber/verbs.h"

typedef struct hand {
    hf_ask ask;
    uint64_t sequence;
    hf_depot_pending_visit *visit;
    void *arg;
} hand;

static void act_pending(hf_depot *depot, hf_post *post)
{
    hand *one = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), hand, ask);
    HF_LIST_EACH(node, &depot->rows)
    {
        const hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        hf_depot_pending_write shown = {
            .sequence = row->sequence,
            .verb = row->verb,
            .len = hf_value_len(row->data),
            .attempts = (int)row->attempts,
            .is_dead = row->state == HF_ROW_DEAD,
            .status = row->status,
            .message = row->message,
        };
        hf_pending_id(row, shown.id);
        if (row->is_origin_first || !hf_depot_key_unpack(hf_slot_key(row->slot), &shown.key)) {
            continue;
        }
        if (!one->visit(one->arg, &shown)) {
            break;
        }
    }
    hf_depot_answer(depot, &one->ask, HF_OK);
}

hf_status hf_depot_pending(hf_depot *depot, hf_depot_pending_visit *visit, void *arg)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_pending));
    HF_TRY(hf_depot_enter(depot, "hf_depot_pending"));
    hand one = {.visit = visit, .arg = arg};
    hf_op op;
    hf_op_init(&op);
    hf_status status = HF_OK;
    if (visit == NULL) {
        (void)hf_fail(&op, HF_ERR_MISUSE, "hf_depot_pending needs a function to give the writes to");
        status = hf_depot_raise(depot, &op);
    } else {
        status = hf_depot_ask(depot, &one.ask, act_pending, "hf_depot_pending", hf_nanoseconds(0));
    }
    hf_depot_leave(depot);
    return status;
}

static hf_pending *find_row(hf_depot *depot, uint64_t sequence)
{
    HF_LIST_EACH(node, &depot->rows)
    {
        hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        if (row->sequence == sequence && !row->is_origin_first) {
            return row;
        }
    }
    return NULL;
}

static hf_status decide_by_hand(hf_depot *depot, hf_change *change)
{
    hf_pending *row = find_row(depot, change->number);
    if (row == NULL) {
        return hf_fail(&change->op, HF_ERR_NOT_FOUND, "there is no write %llu", (unsigned long long)change->number);
    }
    hf_assert(row->slot == change->slot && !row->is_held); /* depot-D2 */
    if (row->state == HF_ROW_SENDING) {
        return hf_fail(&change->op, HF_ERR_CONFLICT, "write %llu is being sent", (unsigned long long)change->number);
    }
    change->row = row;
    hf_entry_copy(&change->next, &change->slot->entry);
    change->place = HF_DEPOT_WRITE;
    change->is_synced = true;
    hf_pending_hold(depot, row);
    if (change->drops) {
        HF_TRY(hf_change_fold(depot, change, row, NULL));
        hf_pending_delete(depot, change, row);
        return HF_OK;
    }
    hf_pending written = *row;
    written.state = HF_ROW_WAITING;
    written.retry_at = 0;
    HF_TRY(hf_change_fold(depot, change, row, &written));
    hf_pending_put(depot, change, &written);
    return HF_OK;
}

static void apply_by_hand(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_pending *row = change->row;
    hf_depot_slot *slot = change->slot;
    if (row != NULL) {
        row->is_held = false;
        /* A write that comes back, or that goes before it was refused, changes what is visible. */
        if (status == HF_OK && (row->state == HF_ROW_DEAD) != change->drops) {
            slot->stirred = ++depot->stir;
        }
    }
    if (status == HF_OK && change->drops) {
        hf_failure_box *failure =
            hf_box_new(NULL, HF_ERR_CANCELED, NULL, "hf_depot_drop", "the write was dropped", NULL);
        hf_pending_unlink(depot, row);
        hf_change_show(depot, change, true);
        hf_pending_over(depot, row, HF_ERR_CANCELED, failure);
        hf_pending_free(depot, row);
        hf_box_unref(failure);
    } else if (status == HF_OK) {
        depot->dead_count -= row->state == HF_ROW_DEAD;
        row->state = HF_ROW_WAITING;
        row->next_try.ns = row->retry_at = 0;
        slot->is_wanted = false; /* also if the one who drives it has lost it */
        hf_change_show(depot, change, true);
    }
    hf_depot_look_at_sends(depot, slot);
    hf_change_tell(depot, change, status);
    hf_change_free(depot, change);
}

static void act_by_hand(hf_depot *depot, hf_post *post)
{
    hand *one = HF_CONTAINER(HF_CONTAINER(post, hf_ask, post), hand, ask);
    if (hf_depot_refuses(depot, &one->ask)) {
        return;
    }
    hf_pending *row = find_row(depot, one->sequence);
    if (row == NULL && one->ask.drops && hf_damaged_drop(depot, &one->ask, one->sequence)) {
        return;
    }
    hf_change *change = row != NULL ? hf_change_new(depot, row->slot) : NULL;
    if (change == NULL) {
        hf_status status = row == NULL ? hf_fail(&one->ask.op, HF_ERR_NOT_FOUND, "there is no write %llu",
                                                 (unsigned long long)one->sequence)
                                       : hf_fail(&one->ask.op, HF_ERR_NOMEM, "no memory for a write");
        hf_depot_answer(depot, &one->ask, status);
        return;
    }
    change->number = one->sequence;
    change->drops = one->ask.drops;
    change->follows = true;
    change->decide = decide_by_hand;
    change->apply = apply_by_hand;
    if (!hf_depot_park(depot, &one->ask, &change->asks)) {
        hf_change_free(depot, change);
        return;
    }
    hf_change_begin(depot, change);
}

static hf_status by_hand(hf_depot *depot, const char *verb, uint64_t sequence, bool drops)
{
    HF_TRY(hf_depot_enter(depot, verb));
    hand one = {.ask = {.drops = drops}, .sequence = sequence};
    hf_status status = hf_depot_ask(depot, &one.ask, act_by_hand, verb, hf_nanoseconds(0));
    hf_depot_leave(depot);
    return status;
}

hf_status hf_depot_retry(hf_depot *depot, uint64_t sequence)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_retry));
    return by_hand(depot, "hf_depot_retry", sequence, false);
}

hf_status hf_depot_drop(hf_depot *depot, uint64_t sequence)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_drop));
    return by_hand(depot, "hf_depot_drop", sequence, true);
}
