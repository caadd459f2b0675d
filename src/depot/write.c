/* Writes: a row on the disk, folded into what is visible, and sent to the origin in its turn.
 *
 *     waiting --its turn--> sending --accepted--> gone
 *        ^                     |  \--refused---> dead: kept with its failure, not folded any more; retried or dropped by hand
 *        +-- failed, pause ----+
 *
 * The first write of a key that is not dead is sent; the others wait for it (DP6). A write that goes to the origin
 * first is in the same order, but neither on the disk nor folded. */
#include "depot/depot_private.h"

#include "base/canary.h"
#include "fiber/verbs.h"

#include <stdio.h>

enum { CONFLICT_ROUNDS_MAX = 3 };

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

bool hf_pending_is_folded(const hf_pending *row)
{
    return row->state != HF_ROW_DEAD && !row->is_origin_first;
}

static size_t len_of(const hf_pending *row)
{
    return sizeof *row + hf_value_len(row->data);
}

void hf_pending_link(hf_depot *depot, hf_pending *row)
{
    hf_list_push_back(&row->slot->rows, &row->node);
    hf_list_push_back(&depot->rows, &row->in_all);
    depot->row_count++;
    depot->dead_count += row->state == HF_ROW_DEAD;
    depot->row_bytes += len_of(row);
}

void hf_pending_unlink(hf_depot *depot, hf_pending *row)
{
    hf_assert(depot->row_count > 0 && row->slot->sending != row);
    hf_list_remove(&row->node);
    hf_list_remove(&row->in_all);
    depot->row_count--;
    hf_assert(row->state != HF_ROW_DEAD || depot->dead_count > 0);
    depot->dead_count -= row->state == HF_ROW_DEAD;
    depot->row_bytes -= len_of(row);
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

static void put_pending(hf_depot *depot, hf_change *change, const hf_pending *row)
{
    if (depot->source != NULL) {
        hf_buf *out = hf_change_put(depot, change, HF_TABLE_PENDING, (hf_key){.a = (int64_t)row->sequence});
        hf_row_put_pending(out, hf_slot_key(change->slot), row);
    }
}

/* By `decide`: the row is not sent until `apply` lets it go. */
static void hold_row(hf_depot *depot, hf_pending *row)
{
    hf_assert((row->state != HF_ROW_SENDING || HF_CANARY(HF_BUG_COALESCED_INTO_SENT)) && !row->is_held);
    row->is_held = true;
    hf_depot_look_at_sends(depot, row->slot);
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
        depot->row_bytes + len_of(row) > (size_t)depot->options.pending_bytes_max) {
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
        put_pending(depot, change, &written);
        hold_row(depot, mate);
    } else {
        row->sequence = depot->sequence_next++;
        put_pending(depot, change, row);
    }
    change->is_synced = true; /* DP6 */
    return HF_OK;
}

/* The newer value in the older row. */
static void merge_rows(hf_depot *depot, hf_pending *mate, hf_pending *row)
{
    hf_value *data = mate->data;
    depot->row_bytes -= len_of(mate);
    mate->data = row->data;
    row->data = data;
    depot->row_bytes += len_of(mate);
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

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

typedef struct sending {
    hf_work work;
    hf_depot *depot;
    hf_slot *slot; /* held */
    hf_pending *row;
    hf_reply reply;
    hf_push_request request;
    uint64_t voids, hard_voids;          /* of the slot, when it began */
    uint64_t generation, generation_all; /* the same */
    unsigned origin;
    bool is_probe;
    bool was_denied;
    hf_post sent;
    hf_status status;
    hf_failure_box *failure;
    hf_reply_class why;
} sending;

static hf_pending *first_live(const hf_slot *slot)
{
    HF_LIST_EACH(node, &slot->rows)
    {
        hf_pending *row = HF_CONTAINER(node, hf_pending, node);
        if (row->state != HF_ROW_DEAD) {
            return row;
        }
    }
    return NULL;
}

static void ring_send(hf_depot *depot, hf_depot_timer_node *timer)
{
    hf_depot_look_at_sends(depot, HF_CONTAINER(timer, hf_slot, send_timer));
}

void hf_depot_look_at_sends(hf_depot *depot, hf_slot *slot)
{
    hf_pending *row = first_live(slot);
    if (hf_node_is_linked(&slot->in_senders)) {
        hf_list_remove(&slot->in_senders);
    }
    hf_heap_remove(&depot->timers, &slot->send_timer.node);
    if (row == NULL || row->is_held || slot->sending != NULL || depot->options.push == NULL || depot->is_offline ||
        depot->is_ending) {
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

void hf_depot_look_at_all_sends(hf_depot *depot)
{
    HF_LIST_EACH(node, &depot->rows)
    {
        hf_pending *row = HF_CONTAINER(node, hf_pending, in_all);
        if (first_live(row->slot) == row) {
            row->next_try.ns = 0;
            hf_depot_look_at_sends(depot, row->slot);
        }
    }
}

static hf_status call_push(void *arg)
{
    sending *one = arg;
    return one->depot->options.push(one->depot->options.state, &one->request, &one->reply);
}

static hf_status send_run(hf_work *work)
{
    sending *one = HF_CONTAINER(work, sending, work);
    hf_status status = hf_depot_permit(one->depot, one->origin, &one->is_probe);
    if (status != HF_OK) {
        one->was_denied = status == HF_ERR_UNAVAILABLE;
        return status;
    }
    one->request.deadline = hf_depot_attempt_deadline(one->depot);
    status = hf_depot_attempt_of(one->depot, one->slot, call_push, one);
    one->why = hf_depot_classify(&one->reply, status);
    return status;
}

static bool send_end(hf_work *work, hf_status status, hf_failure_box *failure)
{
    sending *one = HF_CONTAINER(work, sending, work);
    one->status = status;
    one->failure = failure;
    return true;
}

static void act_sent(hf_depot *depot, hf_post *post);

static void send_unref(hf_work *work)
{
    sending *one = HF_CONTAINER(work, sending, work);
    one->sent.act = act_sent;
    hf_depot_post_quietly(one->depot, &one->sent);
}

static const hf_work_kind SEND = {send_run, send_end, send_unref};

static void write_id(const hf_pending *row, char ret_text[HF_WRITE_ID_LEN])
{
    for (size_t i = 0; i < sizeof row->id; i++) {
        (void)snprintf(ret_text + 2 * i, 3, "%02x", row->id[i]);
    }
}

static bool start_send(hf_depot *depot, hf_slot *slot)
{
    hf_pending *row = first_live(slot);
    sending *one = hf_rt_alloc(depot->rt, sizeof *one);
    if (one == NULL) {
        return false;
    }
    hf_assert(slot->sending == NULL && row->state == HF_ROW_WAITING); /* DP6 */
    row->state = HF_ROW_SENDING;
    slot->sending = row;
    slot->holds++;
    one->depot = depot;
    one->slot = slot;
    one->row = row;
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
    write_id(row, one->request.id);
    bool is_key = hf_depot_key_unpack(hf_slot_key(slot), &one->request.key);
    hf_assert(is_key);
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
        hf_slot *slot = HF_CONTAINER(hf_list_pop_front(&depot->senders), hf_slot, in_senders);
        if (!start_send(depot, slot)) {
            hf_pending *row = first_live(slot);
            row->next_try.ns = hf_rt_now(depot->rt).ns + INT64_C(1000000000);
            hf_depot_look_at_sends(depot, slot);
            return;
        }
    }
}

/* ---- The origin's answer ----------------------------------------------------------------------------------------- */

typedef enum verdict {
    VERDICT_SETTLED,  /* accepted: the row goes */
    VERDICT_GIVEN_UP, /* conflict, the server wins; or it went to the origin first and was refused: the row goes */
    VERDICT_AGAIN,    /* conflict: sent again, changed */
    VERDICT_LATER,    /* failed: sent again after a pause */
    VERDICT_DEAD      /* refused */
} verdict;

static verdict judge(const hf_depot *depot, const sending *one)
{
    const hf_pending *row = one->row;
    if (one->status == HF_OK) {
        return VERDICT_SETTLED;
    }
    if (one->status == HF_ERR_CONFLICT && !one->reply.has_class) {
        bool again = row->on_conflict != HF_CONFLICT_SERVER_WINS && row->rounds < CONFLICT_ROUNDS_MAX;
        return again ? VERDICT_AGAIN : VERDICT_GIVEN_UP;
    }
    if (row->is_origin_first) {
        return VERDICT_GIVEN_UP;
    }
    if (one->status == HF_ERR_CANCELED || one->was_denied) {
        return VERDICT_LATER;
    }
    bool may_retry =
        hf_class_info_of(one->why)->is_retried &&
        (depot->options.attempts_max == HF_UNLIMITED || row->attempts + 1 < (uint64_t)depot->options.attempts_max);
    return may_retry ? VERDICT_LATER : VERDICT_DEAD;
}

/* The base after the origin has told its value. `value` NULL: it was deleted. What it told may be from before an
 * invalidation that came while the write was on its way (DP3): it counts as of the moment when the send began. */
static void set_base(hf_depot *depot, hf_change *change, hf_value *value, hf_value *etag, int64_t max_age)
{
    const sending *one = change->what;
    hf_depot_entry *next = &change->next;
    change->is_answer = true;
    if (one->hard_voids != change->slot->hard_voids) {
        uint64_t version = next->version;
        hf_entry_drop(next);
        *next = hf_entry_none(depot, change->slot->space);
        next->version = version;
        return;
    }
    hf_value_unref(next->value);
    hf_value_unref(next->etag);
    hf_value_unref(next->last_modified);
    next->kind = value != NULL ? HF_ENTRY_VALUE : HF_ENTRY_DELETED;
    next->value = hf_value_ref(value);
    next->etag = value != NULL ? hf_value_ref(etag) : NULL;
    next->last_modified = NULL;
    next->max_age = max_age;
    next->validated_at = hf_depot_wall(depot);
    next->is_unusable = one->voids != change->slot->voids;
    next->failures = 0;
    next->backoff_until = 0;
    next->generation = one->generation;
    next->generation_all = one->generation_all;
}

/* The value that writes are folded into; NULL = none. */
static hf_value *base_of(const hf_depot *depot, const hf_slot *slot)
{
    return hf_entry_is_gone(depot, slot->space, &slot->entry) ? NULL : slot->entry.value;
}

/* What the origin has now that it accepted the write. A reference; NULL = nothing. */
static hf_status accepted_value(hf_depot *depot, const hf_change *change, const sending *one, hf_value **ret_value)
{
    const hf_pending *row = one->row;
    if (row->verb == HF_WRITE_REMOVE) {
        *ret_value = NULL;
        return HF_OK;
    }
    if (one->reply.value != NULL || row->verb == HF_WRITE_REPLACE) {
        *ret_value = hf_value_ref(one->reply.value != NULL ? one->reply.value : row->data);
        return HF_OK;
    }
    return hf_slot_apply(depot, row, base_of(depot, change->slot), ret_value);
}

static void delete_pending(hf_depot *depot, hf_change *change, const hf_pending *row)
{
    if (depot->source != NULL && !row->is_origin_first) {
        hf_change_delete(depot, change, HF_TABLE_PENDING, (hf_key){.a = (int64_t)row->sequence});
    }
}

static hf_status decide_merge(hf_depot *depot, hf_change *change, sending *one)
{
    hf_pending *row = one->row;
    hf_slot *slot = change->slot;
    hf_value *mine = NULL;
    hf_value *merged = NULL;
    if (row->verb == HF_WRITE_PATCH) { /* what this write wants: the base with it, and without those that follow */
        HF_TRY(hf_slot_apply(depot, row, base_of(depot, slot), &mine));
    } else {
        mine = hf_value_ref(row->data);
    }
    hf_status status = HF_ERR_MISUSE; /* a row of an earlier program, and this one has no .merge */
    if (depot->options.merge != NULL) {
        status = depot->options.merge(depot->options.state, base_of(depot, slot), mine, one->reply.value, &merged);
    }
    hf_value_unref(mine);
    if (status == HF_OK && merged == NULL) {
        status = HF_ERR_INVALID;
    } else if (status == HF_OK && hf_value_len(merged) > (size_t)depot->options.value_max) {
        status = HF_ERR_TOO_BIG;
    }
    if (status != HF_OK) {
        hf_value_unref(merged);
        return hf_fail(&change->op, status, "the merge of two writes failed: %s", hf_status_text(status));
    }
    change->merged = merged;
    return HF_OK;
}

/* The row is kept with its failure, and not folded any more. A write that went to the origin first is not kept. */
static hf_status decide_dead(hf_depot *depot, hf_change *change, const sending *one)
{
    hf_pending written = *one->row;
    change->number = one->row->is_origin_first ? VERDICT_GIVEN_UP : VERDICT_DEAD;
    written.state = HF_ROW_DEAD;
    written.attempts++;
    written.status = one->status;
    (void)snprintf(written.message, sizeof written.message, "%s",
                   one->failure != NULL ? one->failure->failure.message : "");
    HF_TRY(hf_change_fold(depot, change, one->row, NULL));
    if (!one->row->is_origin_first) {
        put_pending(depot, change, &written);
        change->is_synced = true;
    }
    return HF_OK;
}

static hf_status decide_sent(hf_depot *depot, hf_change *change)
{
    sending *one = change->what;
    hf_pending *row = one->row;
    hf_slot *slot = change->slot;
    hf_value *value = NULL;
    verdict what = (verdict)change->number;
    hf_entry_copy(&change->next, &slot->entry);
    change->place = HF_DEPOT_FETCHER;
    switch (what) {
    case VERDICT_SETTLED:
        if (accepted_value(depot, change, one, &value) == HF_OK) {
            set_base(depot, change, value, one->reply.etag, one->reply.max_age);
            hf_value_unref(value);
        } else { /* .apply cannot tell what the origin has now: it is asked */
            change->next.is_unusable = true;
        }
        HF_TRY(hf_change_fold(depot, change, row, NULL));
        delete_pending(depot, change, row);
        return HF_OK;
    case VERDICT_GIVEN_UP:
        if (one->reply.value != NULL) {
            set_base(depot, change, one->reply.value, one->reply.etag, one->reply.max_age);
        }
        HF_TRY(hf_change_fold(depot, change, row, NULL));
        delete_pending(depot, change, row);
        change->is_synced = true; /* a write that is given up must not come back */
        return HF_OK;
    case VERDICT_AGAIN: {
        hf_pending written = *row;
        if (row->on_conflict == HF_CONFLICT_MERGE && one->reply.value != NULL && row->verb != HF_WRITE_REMOVE) {
            if (decide_merge(depot, change, one) != HF_OK) { /* sent again it would fail again */
                one->status = change->op.status;
                hf_box_unref(one->failure);
                one->failure = hf_box_new(NULL, one->status, NULL, "hf_depot", change->op.message, NULL);
                hf_op_init(&change->op);
                return decide_dead(depot, change, one);
            }
            written.data = change->merged;
            written.verb = HF_WRITE_REPLACE;
        }
        written.if_match = one->reply.etag;
        written.if_none = false;
        written.rounds++;
        written.state = HF_ROW_WAITING;
        if (one->reply.value != NULL) {
            set_base(depot, change, one->reply.value, one->reply.etag, one->reply.max_age);
        }
        if (row->is_origin_first) {
            return hf_change_fold(depot, change, NULL, NULL);
        }
        HF_TRY(hf_change_fold(depot, change, row, &written));
        put_pending(depot, change, &written);
        change->is_synced = true;
        return HF_OK;
    }
    case VERDICT_DEAD:
        return decide_dead(depot, change, one);
    case VERDICT_LATER:
        break;
    }
    return HF_OK;
}

static void note_failure(hf_pending *row, const sending *one)
{
    row->status = one->status;
    (void)snprintf(row->message, sizeof row->message, "%s", one->failure != NULL ? one->failure->failure.message : "");
}

static void put_off(hf_depot *depot, hf_pending *row, const sending *one)
{
    row->state = HF_ROW_WAITING;
    if (one->status == HF_ERR_CANCELED || one->was_denied) {
        return; /* the depot closes, or the breaker says when */
    }
    row->attempts++;
    note_failure(row, one);
    hf_news_of_row(depot, HF_NEWS_SEND_FAILED, row, one->status, one->why);
    row->next_try.ns =
        hf_rt_now(depot->rt).ns + hf_rule_send_pause(row->attempts, one->reply.retry_after, hf_depot_chance(depot));
}

static void send_free(hf_depot *depot, sending *one)
{
    hf_slot *slot = one->slot;
    hf_reply_clear(&one->reply);
    hf_box_unref(one->failure);
    hf_rt_free(depot->rt, one, sizeof *one);
    hf_slot_let_go(depot, slot);
}

static void apply_sent(hf_depot *depot, hf_change *change, hf_status status)
{
    sending *one = change->what;
    hf_pending *row = one->row;
    hf_slot *slot = one->slot;
    verdict what = (verdict)change->number;
    slot->sending = NULL;
    if (status != HF_OK && what != VERDICT_LATER) {
        if (row->is_origin_first) { /* the origin has answered; what is kept here is not */
            what = one->status == HF_OK ? VERDICT_SETTLED : VERDICT_GIVEN_UP;
        } else { /* could not be written: it is sent again, with the same id */
            one->status = HF_ERR_IO;
            what = VERDICT_LATER;
        }
    }
    if (change->snap != NULL && what != VERDICT_LATER) {
        slot->stirred = ++depot->stir;
        slot->answers += change->is_answer;
    }
    switch (what) {
    case VERDICT_SETTLED:
    case VERDICT_GIVEN_UP:
        hf_pending_unlink(depot, row);
        row->state = HF_ROW_WAITING;
        if (change->snap != NULL) {
            hf_change_show(depot, change, true);
        }
        if (depot->is_ending && one->status == HF_ERR_CANCELED) { /* its caller was not canceled */
            one->status = HF_ERR_CLOSED;
            hf_box_unref(one->failure);
            one->failure = hf_box_new(NULL, HF_ERR_CLOSED, NULL, "hf_depot_close", "the depot is closed", NULL);
        }
        depot->counts.sent += what == VERDICT_SETTLED;
        depot->counts.conflicts += one->status == HF_ERR_CONFLICT;
        hf_news_of_row(depot,
                       what == VERDICT_SETTLED          ? HF_NEWS_SETTLED
                       : one->status == HF_ERR_CONFLICT ? HF_NEWS_CONFLICT
                                                        : HF_NEWS_SEND_FAILED,
                       row, one->status, one->why);
        hf_pending_over(depot, row, one->status, one->failure);
        hf_pending_free(depot, row);
        break;
    case VERDICT_AGAIN:
        depot->counts.conflicts++;
        hf_news_of_row(depot, HF_NEWS_CONFLICT, row, HF_ERR_CONFLICT, one->why);
        row->state = HF_ROW_WAITING;
        row->rounds++;
        row->if_none = false;
        hf_value_unref(row->if_match);
        row->if_match = hf_value_ref(one->reply.etag);
        if (change->merged != NULL) {
            depot->row_bytes -= len_of(row);
            hf_value_unref(row->data);
            row->data = hf_value_ref(change->merged);
            row->verb = HF_WRITE_REPLACE;
            depot->row_bytes += len_of(row);
        }
        row->next_try.ns = 0;
        if (change->snap != NULL) {
            hf_change_show(depot, change, true);
        }
        break;
    case VERDICT_DEAD:
        row->state = HF_ROW_DEAD;
        row->attempts++;
        note_failure(row, one);
        depot->counts.dead++;
        depot->dead_count++;
        hf_news_of_row(depot, HF_NEWS_DEAD, row, one->status, one->why);
        hf_change_show(depot, change, true);
        hf_pending_over(depot, row, one->status, one->failure);
        break;
    case VERDICT_LATER:
        put_off(depot, row, one);
        break;
    }
    hf_depot_look_at_sends(depot, slot);
    hf_value_unref(change->merged);
    hf_change_free(depot, change);
    send_free(depot, one);
}

static void act_sent(hf_depot *depot, hf_post *post)
{
    sending *one = HF_CONTAINER(post, sending, sent);
    hf_assert(depot->sends > 0 && depot->works > 0 && one->slot->sending == one->row);
    depot->sends--;
    depot->works--;
    if (!one->was_denied && (one->status != HF_ERR_CANCELED || one->is_probe)) {
        hf_breaker_end end = one->status == HF_ERR_CONFLICT && !one->reply.has_class
                                 ? HF_BREAKER_ANSWERED
                                 : hf_depot_end_of(one->status, one->why);
        hf_depot_tell_breaker(depot, one->origin, end, one->is_probe);
    }
    hf_change *change = hf_change_new(depot, one->slot);
    if (change == NULL) { /* sent again later, with the same id */
        one->slot->sending = NULL;
        one->status = HF_ERR_NOMEM;
        put_off(depot, one->row, one);
        hf_depot_look_at_sends(depot, one->slot);
        send_free(depot, one);
        return;
    }
    change->what = one;
    change->number = judge(depot, one);
    change->decide = decide_sent;
    change->apply = apply_sent;
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

static hf_depot_write *handle_new(hf_depot *depot)
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
        row->handles[0] = handle_new(depot);
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

/* ---- By hand ----------------------------------------------------------------------------------------------------- */

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
        write_id(row, shown.id);
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
    if (row->state == HF_ROW_SENDING) {
        return hf_fail(&change->op, HF_ERR_CONFLICT, "write %llu is being sent", (unsigned long long)change->number);
    }
    change->row = row;
    hf_entry_copy(&change->next, &change->slot->entry);
    change->place = HF_DEPOT_WRITE;
    change->is_synced = true;
    hold_row(depot, row);
    if (change->drops) {
        HF_TRY(hf_change_fold(depot, change, row, NULL));
        delete_pending(depot, change, row);
        return HF_OK;
    }
    hf_pending written = *row;
    written.state = HF_ROW_WAITING;
    HF_TRY(hf_change_fold(depot, change, row, &written));
    put_pending(depot, change, &written);
    return HF_OK;
}

static void apply_by_hand(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_pending *row = change->row;
    hf_slot *slot = change->slot;
    if (row != NULL) {
        row->is_held = false;
    }
    if (status == HF_OK && change->drops) {
        hf_failure_box *failure =
            hf_box_new(NULL, HF_ERR_CANCELED, NULL, "hf_depot_drop", "the write was dropped", NULL);
        hf_pending_unlink(depot, row);
        slot->stirred = ++depot->stir;
        hf_change_show(depot, change, true);
        hf_pending_over(depot, row, HF_ERR_CANCELED, failure);
        hf_pending_free(depot, row);
        hf_box_unref(failure);
    } else if (status == HF_OK) {
        depot->dead_count -= row->state == HF_ROW_DEAD;
        row->state = HF_ROW_WAITING;
        row->next_try.ns = 0;
        slot->stirred = ++depot->stir;
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
