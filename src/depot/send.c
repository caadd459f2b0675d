/* Sending: the writes of a key, one after the other, when they may be.
 *
 *     waiting --its turn--> sending --accepted--> gone
 *        ^                     |  \--refused---> dead: kept with its failure, not folded any more; retried or dropped by hand
 *        +-- failed, pause ----+
 *
 * The first write of a key that is not dead is sent; the others wait for it (DP6). */
#include "depot/send.h"
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/outbox.h"

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static void ring_send(hf_depot *depot, hf_depot_timer_node *timer)
{
    hf_depot_look_at_sends(depot, HF_CONTAINER(timer, hf_depot_slot, send_timer));
}

void hf_depot_look_at_sends(hf_depot *depot, hf_depot_slot *slot)
{
    hf_pending *row = hf_slot_first_row(slot);
    hf_assert(slot->holds > 0);                                                                     /* depot-D4 */
    hf_assert(slot->sending == NULL || slot->sending->state == HF_ROW_SENDING || depot->is_ending); /* DP6 */
    if (hf_node_is_linked(&slot->in_senders)) {
        hf_list_remove(&slot->in_senders);
    }
    hf_heap_remove(&depot->timers, &slot->send_timer.node);
    if (depot->sends_by != NULL) {
        hf_driven_look(depot, slot);
        return;
    }
    if (depot->waits_for_drive || row == NULL || row->is_held || slot->sending != NULL || depot->options.push == NULL ||
        depot->is_offline || depot->is_ending) {
        return;
    }
    int64_t now = hf_rt_now(depot->rt).ns;
    int64_t wait = 0;
    if (hf_breaker_is_shut(&depot->breakers[hf_depot_origin(depot, hf_slot_key(slot))], now, &wait)) {
        int64_t until = now + (wait > 0 ? wait : INT64_C(1000000000)); /* half open: somebody is probing */
        row->next_try.ns = row->next_try.ns > until ? row->next_try.ns : until;
    }
    if (row->next_try.ns > now) {
        slot->send_timer.ring = ring_send;
        hf_depot_timer(depot, &slot->send_timer, row->next_try.ns);
    } else {
        hf_list_push_back(&depot->senders, &slot->in_senders);
    }
}

void hf_depot_look_at_all_sends(hf_depot *depot, bool at_once)
{
    HF_LIST_EACH(node, &depot->rows)
    {
        hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        if (hf_slot_first_row(row->slot) == row) {
            row->next_try.ns = at_once ? 0 : row->next_try.ns;
            hf_depot_look_at_sends(depot, row->slot);
        }
    }
}

static hf_status call_push(void *arg)
{
    hf_sending *one = arg;
    return one->depot->options.push(one->depot->options.state, &one->request, &one->reply);
}

static hf_status send_run(hf_work *work)
{
    hf_sending *one = HF_CONTAINER(work, hf_sending, work);
    hf_status status = hf_depot_permit(one->depot, one->origin, &one->is_probe);
    if (status != HF_OK) {
        one->was_denied = status == HF_ERR_UNAVAILABLE;
        return status;
    }
    one->request.deadline = hf_depot_attempt_deadline(one->depot);
    status = hf_depot_attempt_of(one->depot, one->slot, one->depot->options.fetch_timeout, call_push, one);
    one->why = hf_depot_classify(&one->reply, status);
    return status;
}

static bool send_end(hf_work *work, hf_status status, hf_failure_box *failure)
{
    hf_sending *one = HF_CONTAINER(work, hf_sending, work);
    hf_assert(one->failure == NULL); /* it ends once */
    one->status = status;
    one->failure = failure;
    return true;
}

static void send_unref(hf_work *work)
{
    hf_sending *one = HF_CONTAINER(work, hf_sending, work);
    one->sent.act = hf_sending_answered;
    hf_depot_post_quietly(one->depot, &one->sent);
}

static const hf_work_kind SEND = {send_run, send_end, send_unref};

static bool start_send(hf_depot *depot, hf_depot_slot *slot)
{
    hf_pending *row = hf_slot_first_row(slot);
    hf_sending *one = hf_rt_alloc(depot->rt, sizeof *one);
    if (one == NULL) {
        return false;
    }
    hf_assert(row != NULL && slot->sending == NULL && row->state == HF_ROW_WAITING); /* DP6 */
    hf_assert(!row->is_held && !row->is_dropped);                                    /* depot-D2 */
    hf_assert(depot->sends < (size_t)depot->options.send_max);                       /* DP8 */
    row->state = HF_ROW_SENDING;
    slot->sending = row;
    slot->holds++;
    one->depot = depot;
    one->slot = slot;
    one->row = row;
    one->began = depot->stir;
    one->voids = slot->voids;
    one->hard_voids = slot->hard_voids;
    one->generation = atomic_load_explicit(&slot->space->generation, memory_order_relaxed);
    one->generation_all = atomic_load_explicit(&depot->generation, memory_order_relaxed);
    one->origin = hf_depot_origin(depot, hf_slot_key(slot));
    hf_reply_init(&one->reply, depot->rt, (size_t)depot->options.value_max);
    one->request = (hf_push_request){
        .verb = row->verb,
        .data = hf_value_data(row->data),
        .len = hf_value_len(row->data),
        .if_match = hf_value_text(row->if_match),
        .if_none = row->if_none,
        .attempt = (int)row->attempts + 1,
    };
    hf_pending_id(row, one->request.id);
    bool is_key = hf_depot_key_unpack(hf_slot_key(slot), &one->request.key);
    hf_assert(is_key);
    if (row->verb == HF_WRITE_CREATE && hf_key_is_provisional(hf_slot_key(slot))) {
        one->reply.asked = &one->request.key;
    }
    one->work.kind = &SEND;
    one->work.lock = &depot->lock;
    one->work.name = depot->name;
    one->work.scope = depot->scope;
    depot->sends++;
    depot->works++;
    hf_news_of_row(depot, HF_NEWS_SENT, row, HF_OK, HF_REPLY_UNKNOWN);
    HF_IGNORE(hf_work_start(&one->work)); /* if it fails, the send ends with that */
    return true;
}

void hf_depot_start_sends(hf_depot *depot)
{
    while (!depot->is_ending && depot->sends < (size_t)depot->options.send_max && !hf_list_is_empty(&depot->senders)) {
        hf_depot_slot *slot = HF_CONTAINER(hf_list_pop_front(&depot->senders), hf_depot_slot, in_senders);
        if (!hf_driven_may_send(depot, slot)) {
            continue; /* the one who asked for it has left */
        }
        if (!start_send(depot, slot)) {
            hf_pending *row = hf_slot_first_row(slot);
            row->next_try.ns = hf_rt_now(depot->rt).ns + INT64_C(1000000000);
            hf_driven_tell(depot, slot,
                           (hf_send_report){.end = HF_SEND_FAILED, .status = HF_ERR_NOMEM, .message = "no memory"});
            hf_depot_look_at_sends(depot, slot);
            return;
        }
    }
}
