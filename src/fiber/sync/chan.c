/* Channels: a small lock, two queues of waiters, and a ring of values. A value goes straight from the sender's
 * memory to the waiting receiver's; whoever unlinks a waiter has claimed it (fiber-F3) and wakes it after the lock
 * is released. */
#include "fiber/sync/chan.h"
#include "fiber/crew/strand.h"
#include "fiber/sync/sync.h"
#include "fiber/verbs.h"

#include <string.h>

static inline void copy_value(void *to, const void *from, size_t len)
{
    if (HF_LIKELY(len == sizeof(void *))) {
        memcpy(to, from, sizeof(void *));
    } else if (len > 0) {
        memcpy(to, from, len);
    }
}

/* Takes the first waiter that can be claimed out of the queue. `*ret_wake` is the waiter to wake for it. */
static HF_NOINLINE hf_wait *claim_search(hf_list *queue, const void *not_me, hf_status status, hf_wait **ret_wake)
{
    HF_LIST_EACH(node, queue)
    {
        hf_wait *wait = HF_CONTAINER(node, hf_wait, node);
        if (HF_LIKELY(wait->kind != &hf_select_case)) {
            hf_list_remove(node);
            *ret_wake = wait;
            return wait;
        }
        if (not_me != NULL && wait->object == not_me) {
            continue;
        }
        hf_list_remove(node);
        if (hf_select_claim(wait, status, ret_wake)) {
            return wait;
        }
    }
    return NULL;
}

static inline hf_wait *claim_first(hf_list *queue, const void *not_me, hf_status status, hf_wait **ret_wake)
{
    hf_node *node = queue->head.next;
    if (node == &queue->head) {
        return NULL;
    }
    hf_wait *wait = HF_CONTAINER(node, hf_wait, node);
    if (HF_UNLIKELY(wait->kind == &hf_select_case)) {
        return claim_search(queue, not_me, status, ret_wake);
    }
    hf_list_remove(node);
    *ret_wake = wait;
    return wait;
}

static inline unsigned char *slot(hf_chan *chan, size_t at)
{
    return chan->buffer + (at % chan->capacity) * chan->value_len;
}

static inline __attribute__((always_inline)) hf_status send_now(hf_chan *chan, const void *value, const void *not_me,
                                                                hf_wait **ret_wake)
{
    *ret_wake = NULL;
    if (HF_UNLIKELY(chan->closed)) {
        return HF_ERR_CLOSED;
    }
    hf_wait *receiver = claim_first(&chan->receivers, not_me, HF_OK, ret_wake);
    if (receiver != NULL) {
        copy_value(receiver->value, value, chan->value_len);
        return HF_OK;
    }
    if (chan->count < chan->capacity + (HF_CANARY(HF_BUG_CAPACITY) && chan->capacity > 0)) {
        copy_value(slot(chan, chan->head + chan->count), value, chan->value_len);
        chan->count++;
        return HF_OK;
    }
    return HF_ERR_AGAIN;
}

static inline __attribute__((always_inline)) hf_status recv_now(hf_chan *chan, void *value, const void *not_me,
                                                                hf_wait **ret_wake)
{
    *ret_wake = NULL;
    if (chan->count > 0) {
        copy_value(value, slot(chan, chan->head), chan->value_len);
        if (HF_CANARY(HF_BUG_CLOSE_DUPLICATES) && chan->closed) {
            return HF_OK;
        }
        chan->head = (chan->head + 1) % chan->capacity;
        chan->count--;
        if (HF_CANARY(HF_BUG_SENDER_FORGOTTEN)) {
            return HF_OK;
        }
        hf_wait *sender = claim_first(&chan->senders, not_me, HF_OK, ret_wake);
        if (sender != NULL) { /* its value takes the place that became free */
            copy_value(slot(chan, chan->head + chan->count), sender->value, chan->value_len);
            chan->count++;
        }
        return HF_OK;
    }
    hf_wait *sender = claim_first(&chan->senders, not_me, HF_OK, ret_wake);
    if (sender != NULL) {
        copy_value(value, sender->value, chan->value_len);
        return HF_OK;
    }
    return chan->closed ? HF_ERR_CLOSED : HF_ERR_AGAIN;
}

hf_status hf_chan_send_now(hf_chan *chan, const void *value, const void *not_me, hf_wait **ret_wake)
{
    return send_now(chan, value, not_me, ret_wake);
}

hf_status hf_chan_recv_now(hf_chan *chan, void *value, const void *not_me, hf_wait **ret_wake)
{
    return recv_now(chan, value, not_me, ret_wake);
}

static const hf_wait_kind SEND = {"hf_chan_send", hf_wait_abort_linked};
static const hf_wait_kind RECV = {"hf_chan_recv", hf_wait_abort_linked};

typedef enum direction { SENDING, RECEIVING } direction;

static inline __attribute__((always_inline)) hf_status transfer_now(hf_chan *chan, void *value, direction dir,
                                                                    hf_wait **ret_wake)
{
    return dir == SENDING ? send_now(chan, value, NULL, ret_wake) : recv_now(chan, value, NULL, ret_wake);
}

static inline __attribute__((always_inline)) hf_status transfer(hf_fiber *self, hf_chan *chan, void *value,
                                                                direction dir, const hf_wait_options *options)
{
    const hf_wait_kind *kind = dir == SENDING ? &SEND : &RECV;
    if (HF_UNLIKELY(chan == NULL || (value == NULL && chan->value_len > 0))) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, kind->verb, "a channel and a value are needed"));
    }
    hf_status status = hf_may_wait_for(self, kind->verb, options);
    if (HF_UNLIKELY(status != HF_OK)) {
        HF_LEAVE(self, status);
    }
    hf_wait *peer = NULL;
    hf_wait wait;
    hf_spin_lock(&chan->lock);
    status = transfer_now(chan, value, dir, &peer);
    if (status != HF_ERR_AGAIN) {
        hf_spin_unlock(&chan->lock);
        if (peer != NULL) {
            hf_wake_hot(self, peer, HF_OK);
        } else if (HF_UNLIKELY(status == HF_ERR_CLOSED)) {
            hf_self_note(self, status, kind->verb);
        }
        HF_LEAVE(self, status);
    }
    hf_wait_init(&wait, self, kind, chan, chan->name);
    wait.value = value;
    hf_list_push_back(dir == SENDING ? &chan->senders : &chan->receivers, &wait.node);
    hf_spin_unlock(&chan->lock);
    status = HF_LIKELY(options == NULL || options->timeout.ns == 0)
                 ? hf_park_hot(self, &wait)
                 : hf_park(self, &wait, hf_wait_deadline(self, chan->rt, options));
    if (HF_UNLIKELY(status == HF_ERR_CLOSED)) {
        hf_self_note(self, status, kind->verb);
    }
    HF_LEAVE(self, status);
}

hf_status hf_chan_send_with(hf_chan *chan, const void *value, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_chan_send);
    HF_VERB_ENTER(self, hf_chan_send, chan != NULL ? chan->rt : NULL);
    return transfer(self, chan, (void *)(uintptr_t)value, SENDING, options);
}

hf_status hf_chan_recv_with(hf_chan *chan, void *ret_value, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_chan_recv);
    HF_VERB_ENTER(self, hf_chan_recv, chan != NULL ? chan->rt : NULL);
    return transfer(self, chan, ret_value, RECEIVING, options);
}

static hf_status try_transfer(hf_fiber *self, hf_chan *chan, void *value, direction dir, const char *verb)
{
    if (chan == NULL || (value == NULL && chan->value_len > 0)) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, verb, "a channel and a value are needed"));
    }
    hf_wait *peer = NULL;
    hf_spin_lock(&chan->lock);
    hf_status status = transfer_now(chan, value, dir, &peer);
    hf_spin_unlock(&chan->lock);
    if (peer != NULL) {
        hf_wake(peer, HF_OK);
    }
    if (status != HF_OK) {
        hf_count_if_evicted(self);
        hf_self_note(self, status, verb);
    }
    HF_LEAVE(self, status);
}

hf_status hf_chan_try_send(hf_chan *chan, const void *value)
{
    HF_VERB_ENTER(self, hf_chan_try_send, chan != NULL ? chan->rt : NULL);
    return try_transfer(self, chan, (void *)(uintptr_t)value, SENDING, "hf_chan_try_send");
}

hf_status hf_chan_try_recv(hf_chan *chan, void *ret_value)
{
    HF_VERB_ENTER(self, hf_chan_try_recv, chan != NULL ? chan->rt : NULL);
    return try_transfer(self, chan, ret_value, RECEIVING, "hf_chan_try_recv");
}

size_t hf_chan_count(hf_chan *chan)
{
    if (chan == NULL) {
        return 0;
    }
    hf_fiber *self = hf_enter(chan->rt);
    if (self == NULL) {
        return 0;
    }
    hf_count_if_evicted(self);
    hf_spin_lock(&chan->lock);
    size_t count = chan->count;
    hf_spin_unlock(&chan->lock);
    hf_leave(self);
    return count;
}

static size_t len_of(const hf_chan *chan)
{
    return sizeof *chan + chan->capacity * chan->value_len;
}

static bool is_awaited(hf_chan *chan)
{
    hf_spin_lock(&chan->lock);
    bool is_used = !hf_list_is_empty(&chan->receivers) || !hf_list_is_empty(&chan->senders);
    hf_assert(chan->count <= chan->capacity);
    hf_spin_unlock(&chan->lock);
    return is_used;
}

static void drop_chan(hf_owned_object *owned)
{
    hf_chan *chan = HF_CONTAINER(owned, hf_chan, owned);
    if (is_awaited(chan)) {
        hf_owned_in_use(chan->rt, "channel", chan->name);
        return;
    }
    hf_rt_free(chan->rt, chan, len_of(chan));
}

hf_status hf_chan_new_with(size_t value_len, hf_chan **ret_chan, const hf_chan_options *options)
{
    HF_OPTIONS(hf_chan_options, options, hf_chan_new);
    HF_VERB_ENTER(self, hf_chan_new, options->runtime);
    if (ret_chan == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_chan_new needs a place for the channel"));
    }
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, options->runtime);
    if (rt == NULL) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    if (value_len > HF_CHAN_VALUE_LEN_MAX || (value_len > 0 && options->capacity > HF_CHAN_LEN_MAX / value_len) ||
        options->capacity > HF_CHAN_LEN_MAX) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_INVALID, "a channel holds values of up to 1 MiB and 1 GiB in all"));
    }
    size_t buffer_len = options->capacity * value_len;
    hf_chan *chan = hf_rt_alloc(rt, sizeof *chan + buffer_len);
    if (chan == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_NOMEM, "no memory for a channel of %zu bytes", buffer_len));
    }
    chan->rt = rt;
    chan->name = options->name != NULL ? options->name : "chan";
    chan->value_len = value_len;
    chan->capacity = options->capacity;
    chan->buffer = (unsigned char *)(chan + 1);
    hf_list_init(&chan->receivers);
    hf_list_init(&chan->senders);
    hf_own(self, &chan->owned, drop_chan);
    *ret_chan = chan;
    HF_LEAVE(self, HF_OK);
}

/* Under the lock. */
static void claim_all(hf_list *queue, hf_claimed *claimed)
{
    hf_wait *who = NULL;
    for (hf_wait *waiter = NULL; (waiter = claim_first(queue, NULL, HF_ERR_CLOSED, &who)) != NULL;) {
        who->status = who == waiter ? HF_ERR_CLOSED : HF_OK; /* a select carries the status in its case */
        hf_claimed_add(claimed, who);
    }
}

hf_status hf_chan_close(hf_chan *chan)
{
    HF_VERB_ENTER(self, hf_chan_close, chan != NULL ? chan->rt : NULL);
    if (chan == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "no channel to close"));
    }
    hf_claimed claimed = {NULL, NULL};
    hf_spin_lock(&chan->lock);
    chan->closed = true;
    claim_all(&chan->receivers, &claimed);
    claim_all(&chan->senders, &claimed);
    hf_spin_unlock(&chan->lock);
    hf_claimed_wake_each(&claimed); /* the first that hears of it may free the channel */
    HF_LEAVE(self, HF_OK);
}

hf_status hf_chan_free(hf_chan *chan)
{
    if (chan == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_chan_free, chan->rt);
    if (is_awaited(chan)) {
        hf_log(chan->rt, HF_LOG_ERROR, "misuse", "verb=hf_chan_free channel=%s message=somebody_waits", chan->name);
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_MISUSE, "channel '%s' cannot be freed: somebody waits on it", chan->name));
    }
    hf_status status = hf_disown(self, &chan->owned, "hf_chan_free", chan->name);
    if (status == HF_OK) {
        hf_rt_free(chan->rt, chan, len_of(chan));
    }
    HF_LEAVE(self, status);
}
