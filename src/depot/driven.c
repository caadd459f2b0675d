/* Sends that a layer above drives (driven.h): when a key is wanted, asks that wait for the end of a send, writes that are
 * given up from outside. Nothing here sends: send.c does, when an ask is there. */
#include "depot/driven.h"
#include "depot/change.h"
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/outbox.h"
#include "depot/send.h"

#include <stdio.h>

/* A key that is wanted and about which nobody has asked for this long is wanted again: the one who had its turn may be
 * gone. */
#define WANT_AGAIN_NS (INT64_C(3600) * 1000000000)
#define WANT_LATER_NS INT64_C(1000000000) /* without memory */
#define HALF_OPEN_NS INT64_C(1000000000)  /* somebody is probing */

typedef struct next_ask {
    hf_ask ask;
    hf_send_report *report; /* the caller's */
} next_ask;

/* ---- Reports ----------------------------------------------------------------------------------------------------- */

static bool has_asks(hf_depot *depot, const hf_depot_slot *slot)
{
    hf_spin_lock(&depot->lock);
    bool has = !hf_list_is_empty(&slot->send_asks);
    hf_spin_unlock(&depot->lock);
    return has;
}

static void tell(hf_depot *depot, hf_depot_slot *slot, const hf_send_report *report)
{
    for (hf_ask *ask = hf_depot_unpark(depot, &slot->send_asks); ask != NULL;
         ask = hf_depot_unpark(depot, &slot->send_asks)) {
        next_ask *one = HF_CONTAINER(ask, next_ask, ask);
        *one->report = *report;
        hf_depot_answer(depot, ask, HF_OK);
    }
}

static void refuse(hf_depot *depot, hf_depot_slot *slot, const char *why)
{
    for (hf_ask *ask = hf_depot_unpark(depot, &slot->send_asks); ask != NULL;
         ask = hf_depot_unpark(depot, &slot->send_asks)) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_CLOSED, "%s '%s'", why, depot->name));
    }
}

hf_send_report hf_driven_report(const hf_sending *one)
{
    hf_send_report report = {
        .end = HF_SEND_FAILED,
        .sequence = hf_pending_number(one->row),
        .attempts = (int)one->row->attempts + 1,
        .status = one->status,
        .retry_after = hf_nanoseconds(one->reply.retry_after),
    };
    (void)snprintf(report.message, sizeof report.message, "%s",
                   one->failure != NULL ? one->failure->failure.message : "");
    return report;
}

void hf_driven_tell(hf_depot *depot, hf_depot_slot *slot, hf_send_report report)
{
    if (depot->sends_by == NULL) {
        return;
    }
    hf_assert(slot->sending == NULL); /* it has ended */
    report.has_more = hf_slot_first_row(slot) != NULL;
    slot->is_wanted = slot->is_wanted && report.has_more; /* depot-D8 */
    tell(depot, slot, &report);
}

/* ---- Wanting ----------------------------------------------------------------------------------------------------- */

static void ring_want(hf_depot *depot, hf_depot_timer_node *timer)
{
    hf_depot_slot *slot = HF_CONTAINER(timer, hf_depot_slot, send_timer);
    slot->is_wanted = false;
    hf_depot_look_at_sends(depot, slot);
}

static void ring_at(hf_depot *depot, hf_depot_slot *slot, int64_t when_ns)
{
    slot->send_timer.ring = ring_want;
    hf_depot_timer(depot, &slot->send_timer, when_ns);
}

static void want(hf_depot *depot, hf_depot_slot *slot)
{
    int64_t now = hf_rt_now(depot->rt).ns;
    if (!slot->is_wanted) {
        hf_depot_key key;
        bool is_key = hf_depot_key_unpack(hf_slot_key(slot), &key);
        hf_assert(is_key);
        slot->is_wanted = depot->sends_by->want(depot->sends_by->state, key);
        slot->wanted_ns = now;
    }
    ring_at(depot, slot, slot->is_wanted ? slot->wanted_ns + WANT_AGAIN_NS : now + WANT_LATER_NS); /* depot-D8 */
}

/* Somebody asks: the write is sent, or he hears why not. */
static void answer_asks(hf_depot *depot, hf_depot_slot *slot, const hf_pending *row)
{
    hf_send_report report = {.end = HF_SEND_HELD, .has_more = row != NULL};
    int64_t wait = 0;
    if (row == NULL) {
        report.end = HF_SEND_NONE;
        slot->is_wanted = false;
        tell(depot, slot, &report);
    } else if (depot->is_offline) {
        slot->is_wanted = false; /* online again it is wanted again */
        tell(depot, slot, &report);
    } else if (hf_breaker_is_shut(&depot->breakers[hf_depot_origin(depot, hf_slot_key(slot))], hf_rt_now(depot->rt).ns,
                                  &wait)) {
        report.retry_after.ns = wait > 0 ? wait : HALF_OPEN_NS;
        tell(depot, slot, &report);
    } else {
        hf_assert(row->state == HF_ROW_WAITING); /* DP6 */
        hf_list_push_back(&depot->senders, &slot->in_senders);
    }
}

void hf_driven_look(hf_depot *depot, hf_depot_slot *slot)
{
    const hf_pending *row = hf_slot_first_row(slot);
    hf_assert(depot->sends_by != NULL && !hf_node_is_linked(&slot->in_senders));
    if (depot->is_ending) {
        refuse(depot, slot, "nothing is sent any more by depot");
        return;
    }
    bool is_busy = slot->sending != NULL || (row != NULL && row->is_held); /* looked at again when it is not */
    if (!is_busy && has_asks(depot, slot)) {
        answer_asks(depot, slot, row);
    }
    if (row != NULL && !is_busy && !depot->is_offline && depot->options.push != NULL) {
        want(depot, slot);
    }
}

bool hf_driven_may_send(hf_depot *depot, const hf_depot_slot *slot)
{
    return depot->sends_by == NULL || has_asks(depot, slot);
}

static void look_at_all(hf_depot *depot)
{
    HF_LIST_EACH(node, &depot->rows)
    {
        hf_depot_slot *slot = HF_CONTAINER(node, hf_pending, in_all)->slot;
        if (hf_slot_first_row(slot) == HF_CONTAINER(node, hf_pending, in_all)) {
            hf_depot_look_at_sends(depot, slot);
        }
    }
}

void hf_driven_end(hf_depot *depot)
{
    if (depot->sends_by != NULL) {
        hf_assert(depot->is_ending);
        look_at_all(depot);
    }
}

/* ---- Who drives -------------------------------------------------------------------------------------------------- */

static const char DRIVE[] = "hf_depot_drive";

static void act_sends_by(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    const hf_sends_by *by = ask->what;
    if (by != NULL && hf_depot_refuses(depot, ask)) {
        return;
    }
    if (by != NULL && depot->sends_by != NULL) {
        hf_depot_answer(depot, ask,
                        hf_fail(&ask->op, HF_ERR_EXISTS, "the sends of depot '%s' are driven already", depot->name));
        return;
    }
    HF_LIST_EACH(node, &depot->rows)
    {
        hf_depot_slot *slot = HF_CONTAINER(node, hf_pending, in_all)->slot;
        slot->is_wanted = false;
        refuse(depot, slot, "a workflow does not drive any more depot");
    }
    depot->sends_by = by;
    if (by != NULL) {
        look_at_all(depot);
    } else if (!depot->is_ending) {
        hf_depot_look_at_all_sends(depot, true);
    }
    hf_depot_answer(depot, ask, HF_OK);
}

hf_status hf_depot_sends_by(hf_depot *depot, const hf_sends_by *by)
{
    union { /* the ask only passes it on */
        const hf_sends_by *given;
        void *what;
    } passed = {.given = by};
    hf_ask ask = {.what = passed.what};
    if (by == NULL) { /* also while the depot closes, and when the caller is canceled */
        hf_depot_tell(depot, &ask, act_sends_by, DRIVE);
        return HF_OK;
    }
    HF_TRY(hf_depot_enter(depot, DRIVE));
    hf_status status = hf_depot_ask(depot, &ask, act_sends_by, DRIVE, hf_nanoseconds(0));
    hf_depot_leave(depot);
    return status;
}

static void act_hush(hf_depot *depot, hf_post *post)
{
    depot->waits_for_drive = true;
    hf_depot_answer(depot, HF_CONTAINER(post, hf_ask, post), HF_OK);
}

static void act_whose(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    *(const hf_sends_by **)ask->what = depot->sends_by;
    hf_depot_answer(depot, ask, HF_OK);
}

const hf_sends_by *hf_depot_sends_whose(hf_depot *depot)
{
    const hf_sends_by *by = NULL;
    hf_ask ask = {.what = &by};
    hf_depot_tell(depot, &ask, act_whose, DRIVE);
    return by;
}

void hf_driven_close(hf_depot *depot)
{
    const hf_sends_by *by = hf_depot_sends_whose(depot);
    if (by != NULL) {
        hf_ask ask = {.what = NULL};
        hf_depot_tell(depot, &ask, act_hush, DRIVE); /* it does not begin to send by itself now */
        by->close(by->state);
        hf_assert(hf_depot_sends_whose(depot) == NULL);
    }
}

/* ---- Sending one ------------------------------------------------------------------------------------------------- */

static bool is_driven(hf_depot *depot, hf_ask *ask)
{
    if (hf_depot_refuses(depot, ask)) {
        return false;
    }
    if (depot->sends_by == NULL) {
        hf_depot_answer(depot, ask,
                        hf_fail(&ask->op, HF_ERR_MISUSE, "the sends of depot '%s' are its own", depot->name));
        return false;
    }
    return true;
}

static void act_next(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    if (!is_driven(depot, ask)) {
        return;
    }
    hf_depot_slot *slot = hf_slot_hold(depot, ask->key);
    if (slot == NULL) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for a key of the depot"));
        return;
    }
    slot->holds++;
    ask->slot = slot;       /* given back when it is answered, or by the one who takes it back */
    slot->is_wanted = true; /* somebody has its turn */
    slot->wanted_ns = hf_rt_now(depot->rt).ns;
    (void)hf_depot_park(depot, ask, &slot->send_asks); /* one that wants out was answered */
    hf_depot_look_at_sends(depot, slot);
    hf_slot_let_go(depot, slot);
}

hf_status hf_depot_send_next(hf_depot *depot, hf_depot_key key, hf_send_report *ret_report)
{
    HF_TRY(hf_depot_enter(depot, DRIVE));
    hf_send_report report = {.end = HF_SEND_NONE};
    next_ask one = {.report = &report};
    hf_status status = hf_depot_ask_of(depot, key, &one.ask, act_next, DRIVE);
    hf_depot_leave(depot);
    if (status == HF_OK) {
        *ret_report = report;
    }
    return status;
}

/* ---- Giving up --------------------------------------------------------------------------------------------------- */

typedef struct burying {
    hf_ask ask;
    uint64_t sequence;
    const char *message;
} burying;

static hf_pending *row_of(const hf_depot_slot *slot, uint64_t sequence)
{
    hf_pending *row = hf_slot_first_row(slot);
    return row == NULL || sequence == 0 || hf_pending_number(row) == sequence ? row : NULL;
}

static void note(hf_pending *row, const hf_op *why)
{
    row->state = HF_ROW_DEAD;
    row->status = row->status != HF_OK ? row->status : HF_ERR_TIMEOUT;
    (void)snprintf(row->message, sizeof row->message, "%.*s", (int)sizeof row->message - 1, why->message);
}

static hf_status decide_bury(hf_depot *depot, hf_change *change)
{
    hf_pending *row = row_of(change->slot, change->number);
    if (row == NULL || row->state != HF_ROW_WAITING || row->is_held) {
        change->is_ignored = true;
        return HF_OK;
    }
    change->row = row;
    hf_entry_copy(&change->next, &change->slot->entry);
    change->place = HF_DEPOT_WRITE;
    change->is_synced = true;
    HF_TRY(hf_change_fold(depot, change, row, NULL));
    if (!row->is_origin_first) {
        hf_pending written = *row;
        note(&written, change->what);
        hf_pending_put(depot, change, &written);
    }
    hf_pending_hold(depot, row);
    return HF_OK;
}

static void apply_bury(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_op *why = change->what;
    hf_pending *row = change->row;
    hf_depot_slot *slot = change->slot;
    if (row != NULL && row->is_held) {
        row->is_held = false;
    }
    if (row != NULL && status == HF_OK) {
        hf_assert(row->state == HF_ROW_WAITING && slot->sending == NULL); /* DP6 */
        note(row, why);
        hf_failure_box *failure = hf_box_new(NULL, row->status, NULL, DRIVE, row->message, NULL);
        slot->stirred = ++depot->stir;
        depot->counts.dead += !row->is_origin_first;
        depot->dead_count++;
        hf_news_of_row(depot, HF_NEWS_DEAD, row, row->status, HF_REPLY_UNKNOWN);
        hf_change_show(depot, change, true);
        hf_pending_over(depot, row, row->status, failure);
        hf_box_unref(failure);
        if (row->is_origin_first) { /* it is not kept */
            hf_pending_unlink(depot, row);
            hf_pending_free(depot, row);
        }
    }
    hf_depot_look_at_sends(depot, slot);
    hf_change_tell(depot, change, status);
    hf_rt_free(depot->rt, why, sizeof *why);
    hf_change_free(depot, change);
}

static void act_bury(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    const burying *one = HF_CONTAINER(ask, burying, ask);
    if (!is_driven(depot, ask)) {
        return;
    }
    hf_op *why = hf_rt_alloc(depot->rt, sizeof *why); /* the sentence: the caller may leave before it is written */
    hf_change *change = why != NULL ? hf_change_of_key(depot, ask->key) : NULL;
    if (change == NULL) {
        hf_rt_free(depot->rt, why, sizeof *why);
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory for a write"));
        return;
    }
    hf_op_init(why);
    (void)hf_fail(why, HF_ERR_TIMEOUT, "%s", one->message);
    change->number = one->sequence;
    change->what = why;
    change->decide = decide_bury;
    change->apply = apply_bury;
    if (!hf_depot_park(depot, ask, &change->asks)) {
        hf_rt_free(depot->rt, why, sizeof *why);
        hf_change_free(depot, change);
        return;
    }
    hf_change_begin(depot, change);
}

hf_status hf_depot_bury(hf_depot *depot, hf_depot_key key, uint64_t sequence, const char *message)
{
    HF_TRY(hf_depot_enter(depot, DRIVE));
    burying one = {.sequence = sequence, .message = message};
    hf_status status = hf_depot_ask_of(depot, key, &one.ask, act_bury, DRIVE);
    hf_depot_leave(depot);
    return status;
}

/* ---- Of the depot ------------------------------------------------------------------------------------------------ */

hf_runtime *hf_depot_runtime(const hf_depot *depot)
{
    return depot->rt;
}

const char *hf_depot_name(const hf_depot *depot)
{
    return depot->name;
}

hf_scope *hf_depot_scope(const hf_depot *depot)
{
    return depot->scope;
}

const hf_depot_options *hf_depot_settings(const hf_depot *depot)
{
    return &depot->options;
}
