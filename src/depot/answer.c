/* What the origin has answered to a write: it is settled, given up, sent again, or dead. */
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/outbox.h"
#include "depot/send.h"

#include "base/canary.h"

#include <stdio.h>

enum { CONFLICT_ROUNDS_MAX = 3 };

typedef enum verdict {
    VERDICT_SETTLED,  /* accepted: the row goes */
    VERDICT_GIVEN_UP, /* conflict, the server wins; or it went to the origin first and was refused: the row goes */
    VERDICT_AGAIN,    /* conflict: sent again, changed */
    VERDICT_LATER,    /* failed: sent again after a pause */
    VERDICT_DEAD      /* refused */
} verdict;

static verdict judge(const hf_depot *depot, const hf_sending *one)
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

void hf_answer_set_base(hf_depot *depot, const hf_sending *one, const hf_depot_slot *slot, hf_depot_entry *next,
                        hf_value *value, bool is_void, bool is_hard)
{
    const hf_reply *reply = &one->reply;
    uint64_t version = next->version;
    uint64_t revision = next->revision;
    hf_assert(one->generation <= atomic_load_explicit(&slot->space->generation, memory_order_relaxed)); /* DP3 */
    hf_assert(!is_hard || is_void);
    (void)hf_value_ref(value); /* it may be the one that goes */
    hf_entry_drop(next);
    *next = hf_entry_none(depot, slot->space);
    next->version = version;
    if (is_hard) {
        hf_value_unref(value);
        return;
    }
    next->kind = value != NULL ? HF_ENTRY_VALUE : HF_ENTRY_DELETED;
    next->value = value;
    next->etag = value != NULL ? hf_value_ref(reply->etag) : NULL;
    next->last_modified = hf_value_ref(reply->last_modified);
    next->revision = reply->revision != 0 || value != NULL ? reply->revision : revision; /* of a tombstone */
    next->max_age = reply->max_age;
    next->validated_at = hf_depot_wall(depot);
    next->is_unusable = is_void;
    next->generation = one->generation;
    next->generation_all = one->generation_all;
}

static void set_base(hf_depot *depot, hf_change *change, const hf_sending *one, hf_value *value)
{
    const hf_depot_slot *slot = change->slot;
    change->is_answer = true;
    hf_answer_set_base(depot, one, slot, &change->next, value, one->voids != slot->voids,
                       one->hard_voids != slot->hard_voids);
}

/* The value that writes are folded into; NULL = none. */
static hf_value *base_of(const hf_depot *depot, const hf_depot_slot *slot)
{
    return hf_entry_is_gone(depot, slot->space, &slot->entry) ? NULL : slot->entry.value;
}

/* What the origin has now that it accepted the write. A reference; NULL = nothing. */
static hf_status accepted_value(hf_depot *depot, const hf_change *change, const hf_sending *one, hf_value **ret_value)
{
    const hf_pending *row = one->row;
    if (row->verb == HF_WRITE_REMOVE) {
        *ret_value = NULL;
        return HF_OK;
    }
    if (one->reply.value != NULL || row->verb != HF_WRITE_PATCH) {
        *ret_value = hf_value_ref(one->reply.value != NULL ? one->reply.value : row->data);
        return HF_OK;
    }
    return hf_slot_apply(depot, row, base_of(depot, change->slot), ret_value);
}

static hf_status decide_merge(hf_depot *depot, hf_change *change, hf_sending *one)
{
    hf_pending *row = one->row;
    hf_depot_slot *slot = change->slot;
    hf_assert(one->reply.value != NULL && row->data != NULL);
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

/* One that was canceled or not allowed says nothing about the write. */
static bool counts_as_attempt(const hf_sending *one)
{
    return one->status != HF_ERR_CANCELED && !one->was_denied;
}

static void note_attempt(hf_pending *row, const hf_sending *one)
{
    row->attempts++;
    row->status = one->status;
    (void)snprintf(row->message, sizeof row->message, "%s", one->failure != NULL ? one->failure->failure.message : "");
}

/* The pause before the next attempt, which is decided once. */
static int64_t pause_of(hf_depot *depot, hf_sending *one)
{
    if (one->pause == 0) {
        one->pause = hf_rule_send_pause(one->row->attempts + 1, one->reply.retry_after, hf_depot_chance(depot));
    }
    return one->pause;
}

/* The row is kept with its failure, and not folded any more. A write that went to the origin first is not kept. */
static hf_status decide_dead(hf_depot *depot, hf_change *change, const hf_sending *one)
{
    hf_assert(one->status != HF_OK); /* dead with a reason (DP6) */
    hf_pending written = *one->row;
    change->number = one->row->is_origin_first ? VERDICT_GIVEN_UP : VERDICT_DEAD;
    written.state = HF_ROW_DEAD;
    written.retry_at = 0;
    note_attempt(&written, one);
    HF_TRY(hf_change_fold(depot, change, one->row, NULL));
    if (!one->row->is_origin_first) {
        hf_pending_put(depot, change, &written);
        change->is_synced = true;
    }
    return HF_OK;
}

/* Whether the origin has given the key another name. */
static bool is_rekeyed(const hf_sending *one)
{
    const hf_value *key = one->reply.key;
    hf_str old = hf_slot_key(one->slot);
    return key != NULL && (hf_value_len(key) != old.len || memcmp(hf_value_data(key), old.data, old.len) != 0);
}

static hf_status decide_sent(hf_depot *depot, hf_change *change)
{
    hf_sending *one = change->what;
    hf_pending *row = one->row;
    hf_depot_slot *slot = change->slot;
    hf_value *value = NULL;
    hf_assert(slot->sending == row && row->state == HF_ROW_SENDING && !row->is_held); /* DP6 */
    if (row->is_dropped && change->number != VERDICT_SETTLED) {
        change->number = VERDICT_GIVEN_UP; /* by an invalidation: it is not sent again */
    }
    verdict what = (verdict)change->number;
    if (what == VERDICT_SETTLED && is_rekeyed(one)) {
        return hf_move_begin(depot, change, one);
    }
    hf_entry_copy(&change->next, &slot->entry);
    change->place = HF_DEPOT_FETCHER;
    switch (what) {
    case VERDICT_SETTLED:
        if (accepted_value(depot, change, one, &value) == HF_OK) {
            set_base(depot, change, one, value);
            hf_value_unref(value);
        } else { /* .apply cannot tell what the origin has now: it is asked */
            change->next.is_unusable = true;
        }
        HF_TRY(hf_change_fold(depot, change, row, NULL));
        hf_pending_delete(depot, change, row);
        /* Without a row a power cut would bring the value from before the write back (DP9). */
        change->is_synced = row->is_origin_first || row->is_dropped;
        return HF_OK;
    case VERDICT_GIVEN_UP:
        if (one->reply.value != NULL) {
            set_base(depot, change, one, one->reply.value);
        }
        HF_TRY(hf_change_fold(depot, change, row, NULL));
        hf_pending_delete(depot, change, row);
        change->is_synced = true; /* a write that is given up must not come back */
        return HF_OK;
    case VERDICT_AGAIN: {
        hf_pending written = *row;
        if (row->on_conflict == HF_CONFLICT_MERGE && one->reply.value != NULL && row->verb != HF_WRITE_REMOVE) {
            hf_status status = decide_merge(depot, change, one);
            if (status == HF_ERR_NOMEM) {
                return status; /* sent again later */
            }
            if (status != HF_OK) { /* sent again it would fail again */
                one->status = change->op.status;
                hf_box_unref(one->failure);
                one->failure = hf_box_new(NULL, one->status, NULL, "hf_depot", change->op.message, NULL);
                hf_op_init(&change->op);
                return decide_dead(depot, change, one);
            }
            written.data = change->merged;
            written.verb = row->verb == HF_WRITE_CREATE ? HF_WRITE_CREATE : HF_WRITE_REPLACE;
        }
        written.if_match = one->reply.etag;
        written.if_none = false;
        written.rounds++;
        written.state = HF_ROW_WAITING;
        written.retry_at = 0;
        if (one->reply.value != NULL) {
            set_base(depot, change, one, one->reply.value);
        }
        if (row->is_origin_first) {
            return hf_change_fold(depot, change, NULL, NULL);
        }
        HF_TRY(hf_change_fold(depot, change, row, &written));
        hf_pending_put(depot, change, &written);
        change->is_synced = true;
        return HF_OK;
    }
    case VERDICT_DEAD:
        return decide_dead(depot, change, one);
    case VERDICT_LATER:
        if (HF_CANARY(HF_BUG_ROW_GONE_EARLY)) {
            hf_pending_delete(depot, change, row);
        } else if (counts_as_attempt(
                       one)) { /* the number of attempts, for .attempts_max; to lose it costs an attempt */
            hf_pending written = *row;
            written.retry_at = hf_depot_wall(depot) + pause_of(depot, one);
            note_attempt(&written, one);
            written.state = HF_ROW_WAITING;
            hf_pending_put(depot, change, &written);
        }
        break;
    }
    return HF_OK;
}

static void put_off(hf_depot *depot, hf_pending *row, hf_sending *one)
{
    hf_assert(row->state == HF_ROW_SENDING && !row->is_held);
    row->state = HF_ROW_WAITING;
    if (one->was_denied || depot->is_ending) {
        return; /* the breaker says when, or the next process */
    }
    if (!counts_as_attempt(one)) { /* canceled by the pusher itself, or the owner was canceled: no failure */
        row->next_try.ns = hf_rt_now(depot->rt).ns + hf_rule_send_pause(1, 0, 1.0);
        return;
    }
    row->next_try.ns = hf_rt_now(depot->rt).ns + pause_of(depot, one);
    row->retry_at = hf_depot_wall(depot) + one->pause;
    note_attempt(row, one);
    hf_news_of_row(depot, HF_NEWS_SEND_FAILED, row, one->status, one->why);
}

static void send_free(hf_depot *depot, hf_sending *one)
{
    hf_depot_slot *slot = one->slot;
    hf_assert(slot->sending == NULL); /* DP6: the next one may go */
    hf_reply_clear(&one->reply);
    hf_box_unref(one->failure);
    hf_rt_free(depot->rt, one, sizeof *one);
    hf_slot_let_go(depot, slot);
}

static const hf_send_end ENDS[] = {
    [VERDICT_SETTLED] = HF_SEND_SETTLED, [VERDICT_GIVEN_UP] = HF_SEND_GIVEN_UP, [VERDICT_AGAIN] = HF_SEND_AGAIN,
    [VERDICT_LATER] = HF_SEND_FAILED,    [VERDICT_DEAD] = HF_SEND_DEAD,
};

static void apply_sent(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_sending *one = change->what;
    hf_pending *row = one->row;
    hf_depot_slot *slot = one->slot;
    verdict what = (verdict)change->number;
    hf_send_report report = hf_driven_report(one);                                        /* the row may go */
    hf_assert(slot->sending == row && row->slot == slot && row->state == HF_ROW_SENDING); /* DP6 */
    slot->sending = NULL;
    if (status != HF_OK && what != VERDICT_LATER) {
        bool has_no_memory = change->snap == NULL && one->status == HF_OK; /* what is at hand would be the old value */
        if ((row->is_origin_first && !has_no_memory) || row->is_dropped) {
            /* the origin has answered; what is kept here is not */
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
        if (what == VERDICT_SETTLED && is_rekeyed(one)) {
            hf_pending_rename(row, hf_str_of_len(hf_value_data(one->reply.key), hf_value_len(one->reply.key)));
        }
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
        if (HF_CANARY(HF_BUG_ACK_OF_ANOTHER) && !hf_list_is_empty(&slot->rows)) {
            hf_pending_over(depot, HF_CONTAINER(hf_list_first(&slot->rows), hf_pending, node), HF_OK, NULL);
        }
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
            depot->row_bytes -= hf_pending_len(row);
            hf_value_unref(row->data);
            row->data = hf_value_ref(change->merged);
            row->verb = row->verb == HF_WRITE_CREATE ? HF_WRITE_CREATE : HF_WRITE_REPLACE;
            depot->row_bytes += hf_pending_len(row);
        }
        row->next_try.ns = row->retry_at = 0;
        if (change->snap != NULL) {
            hf_change_show(depot, change, true);
        }
        break;
    case VERDICT_DEAD:
        row->state = HF_ROW_DEAD;
        row->retry_at = 0;
        note_attempt(row, one);
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
    report.end = one->was_denied ? HF_SEND_HELD : ENDS[what];
    report.retry_after.ns =
        one->was_denied ? INT64_C(1000000000) : report.retry_after.ns; /* the breaker has just opened */
    hf_driven_tell(depot, slot, report);
    hf_depot_look_at_sends(depot, slot);
    hf_value_unref(change->merged);
    hf_change_free(depot, change);
    send_free(depot, one);
}

void hf_sending_answered(hf_depot *depot, hf_post *post)
{
    hf_sending *one = HF_CONTAINER(post, hf_sending, sent);
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
        hf_driven_tell(depot, one->slot, hf_driven_report(one));
        if (one->row->is_dropped) {
            hf_pending_unlink(depot, one->row);
            hf_pending_free(depot, one->row);
        }
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
