/* Select: locks all its channels, in the order of their addresses, and takes the first case that can proceed. If
 * none can, it links a waiter into each channel and parks. To claim one of these waiters, a peer must first take the
 * whole select, by one flag. A case that is a signal asks the owner of the crew, and its waiter is in the owner's list: all
 * of that happens on the crew's thread, without a lock. */
#include "fiber/crew/crew_private.h"
#include "fiber/crew/strand.h"
#include "fiber/sync/chan.h"
#include "fiber/verbs.h"

#include <stdio.h>
#include <string.h>

enum { ON_STACK = 8 };

typedef struct selection {
    hf_spin unused;   /* hf_wait.object of the main wait must start with a lock */
    atomic_int taken; /* 1 = somebody has it: a peer, a cancel, a timeout */
    size_t winner;
    hf_status status; /* of the winning case */
    hf_wait main;     /* the wait on which the fiber parks */
} selection;

bool hf_select_claim(hf_wait *wait, hf_status status, hf_wait **ret_wake)
{
    hf_assert(wait->kind == &hf_select_case);
    selection *sel = wait->object;
    int expected = 0;
    if (!atomic_compare_exchange_strong(&sel->taken, &expected, 1) && !HF_CANARY(HF_BUG_SELECT_TWO_CASES)) {
        return false;
    }
    sel->winner = (size_t)wait->number;
    sel->status = status;
    *ret_wake = &sel->main;
    return true;
}

static bool abort_select(hf_wait *wait)
{
    selection *sel = wait->object;
    int expected = 0;
    return atomic_compare_exchange_strong(&sel->taken, &expected, 1);
}

const hf_wait_kind hf_select_case = {"hf_select", NULL};
static const hf_wait_kind SELECT = {"hf_select", abort_select};

/* NULL = the case has none. */
static hf_chan *chan_of(const hf_case *c)
{
    return c->kind == HF_CASE_SIGNAL ? NULL : c->chan;
}

/* NULL = it is not a signal, or one that never happens. */
static hf_signal_case *signal_of(const hf_case *c)
{
    hf_signal_case *signal = c->kind == HF_CASE_SIGNAL ? c->value : NULL;
    return signal != NULL && signal->name != NULL ? signal : NULL;
}

/* The distinct channels of the cases, sorted by address. */
static size_t sort_chans(const hf_case *cases, size_t count, hf_chan **chans)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        hf_chan *chan = chan_of(&cases[i]);
        size_t at = 0;
        while (at < used && (uintptr_t)chans[at] < (uintptr_t)chan) {
            at++;
        }
        if (chan == NULL || (at < used && chans[at] == chan)) {
            continue;
        }
        memmove(&chans[at + 1], &chans[at], (used - at) * sizeof(hf_chan *));
        chans[at] = chan;
        used++;
    }
    return used;
}

static void lock_all(hf_chan **chans, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hf_assert(i == 0 || (uintptr_t)chans[i - 1] < (uintptr_t)chans[i]); /* one order for all selects */
        hf_spin_lock(&chans[i]->lock);
    }
}

static void unlock_all(hf_chan **chans, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        hf_spin_unlock(&chans[i]->lock);
    }
}

static hf_status try_signal(const hf_fiber *self, hf_signal_case *signal)
{
    void *state = NULL;
    const hf_crew_ops *ops = hf_crew_signals(self, &state);
    hf_assert(ops != NULL); /* `check` has seen it */
    return ops->signal_take(state, signal);
}

static hf_status try_case(const hf_fiber *self, const hf_case *c, hf_wait **ret_wake)
{
    hf_chan *chan = chan_of(c);
    hf_signal_case *signal = signal_of(c);
    if (signal != NULL) {
        return try_signal(self, signal);
    }
    if (chan == NULL) {
        return HF_ERR_AGAIN;
    }
    return c->kind == HF_CASE_SEND ? hf_chan_send_now(chan, c->value, NULL, ret_wake)
                                   : hf_chan_recv_now(chan, c->value, NULL, ret_wake);
}

/* Under all locks: does the first case that can go on. */
static hf_status try_cases(const hf_fiber *self, hf_case *cases, size_t count, size_t *ret_idx, hf_wait **ret_wake)
{
    for (size_t i = 0; i < count; i++) {
        hf_status status = try_case(self, &cases[i], ret_wake);
        if (status != HF_ERR_AGAIN) {
            cases[i].status = status;
            *ret_idx = i;
            return HF_OK;
        }
    }
    return HF_ERR_AGAIN;
}

static void link_signal(const hf_fiber *self, const hf_signal_case *signal, hf_wait *wait)
{
    void *state = NULL;
    const hf_crew_ops *ops = hf_crew_signals(self, &state);
    hf_assert(ops != NULL);
    wait->object_name = signal->name;
    hf_list_push_back(ops->signal_waits(state), &wait->node);
}

static void link_cases(hf_fiber *self, selection *sel, hf_case *cases, size_t count, hf_wait *waits)
{
    for (size_t i = 0; i < count; i++) {
        hf_chan *chan = chan_of(&cases[i]);
        hf_signal_case *signal = signal_of(&cases[i]);
        hf_wait_init(&waits[i], self, &hf_select_case, sel, "");
        waits[i].number = (int64_t)i;
        waits[i].value = cases[i].value;
        if (chan != NULL) {
            hf_list_push_back(cases[i].kind == HF_CASE_SEND ? &chan->senders : &chan->receivers, &waits[i].node);
        } else if (signal != NULL) {
            link_signal(self, signal, &waits[i]);
        }
    }
}

static void unlink_cases(hf_case *cases, size_t count, hf_wait *waits)
{
    for (size_t i = 0; i < count; i++) {
        hf_chan *chan = chan_of(&cases[i]);
        if (chan != NULL) {
            hf_spin_lock(&chan->lock);
        }
        if (hf_node_is_linked(&waits[i].node)) {
            hf_list_remove(&waits[i].node);
        }
        if (chan != NULL) {
            hf_spin_unlock(&chan->lock);
        }
    }
}

/* The runtime of the first case that has a channel; NULL = no case has one. */
static hf_runtime *runtime_of(const hf_case *cases, size_t count)
{
    for (size_t i = 0; cases != NULL && i < count && i < HF_SELECT_COUNT_MAX; i++) {
        hf_chan *chan = chan_of(&cases[i]);
        if (chan != NULL) {
            return chan->rt;
        }
    }
    return NULL;
}

static hf_instant deadline_of(const hf_fiber *self, const hf_wait_options *options)
{
    if (options == NULL || options->timeout.ns == 0 || options->timeout.ns == INT64_MAX) {
        return HF_INSTANT_NEVER;
    }
    if (self->rt != NULL) {
        return hf_self_deadline(self, self->rt, options->timeout);
    }
    hf_env *env = hf_env_posix(); /* no channels on a plain thread: all it waits for is the time */
    int64_t now = env->ops->now(env).ns;
    int64_t span = options->timeout.ns < 0 ? 0 : options->timeout.ns;
    return (hf_instant){span > INT64_MAX - 1 - now ? INT64_MAX - 1 : now + span};
}

/* The time is over: the names of all cases are told, so far as a message has room. */
static hf_status none_is_ready(hf_fiber *self, const hf_case *cases, size_t count)
{
    char list[HF_MESSAGE_LEN_MAX / 2];
    size_t len = 0;
    for (size_t i = 0; i < count && len < sizeof list; i++) {
        const hf_chan *chan = chan_of(&cases[i]);
        const hf_signal_case *signal = signal_of(&cases[i]);
        const char *name = chan != NULL ? chan->name : signal != NULL ? signal->name : "";
        int more =
            name[0] == '\0' ? 0 : snprintf(list + len, sizeof list - len, "%s'%.100s'", len > 0 ? ", " : " on ", name);
        len += more > 0 ? (size_t)more : 0;
    }
    return hf_refuse_at(self, HF_ERR_TIMEOUT, SELECT.verb, "%s%s%s: %s", SELECT.verb, len > 0 ? list : "",
                        len < sizeof list ? "" : "...", hf_status_text(HF_ERR_TIMEOUT));
}

static hf_status wait_for_case(hf_fiber *self, hf_case *cases, size_t count, size_t *ret_idx,
                               const hf_wait_options *options, hf_chan **chans, size_t chan_count, hf_wait *waits)
{
    selection sel;
    memset(&sel, 0, sizeof sel);
    hf_wait_init(&sel.main, self, &SELECT, &sel, "");
    lock_all(chans, chan_count);
    hf_wait *peer = NULL;
    hf_status status = try_cases(self, cases, count, ret_idx, &peer);
    if (status == HF_ERR_AGAIN) {
        link_cases(self, &sel, cases, count, waits);
    }
    unlock_all(chans, chan_count);
    if (status == HF_OK) {
        if (peer != NULL) {
            hf_wake(peer, HF_OK);
        }
        return HF_OK;
    }
    status = hf_park(self, &sel.main, deadline_of(self, options));
    unlink_cases(cases, count, waits);
    status = status == HF_ERR_TIMEOUT ? none_is_ready(self, cases, count) : status;
    if (status == HF_OK) {
        hf_assert(atomic_load(&sel.taken) == 1 && sel.winner < count); /* fiber-F3 */
        cases[sel.winner].status = sel.status;
        *ret_idx = sel.winner;
    }
    return status;
}

static hf_status select_on(hf_fiber *self, hf_case *cases, size_t count, size_t *ret_idx,
                           const hf_wait_options *options)
{
    HF_TRY(hf_may_wait_for(self, "hf_select", options));
    hf_chan *chans[HF_SELECT_COUNT_MAX + 1];
    size_t chan_count = sort_chans(cases, count, chans);
    if (count <= ON_STACK) {
        hf_wait waits[ON_STACK];
        return wait_for_case(self, cases, count, ret_idx, options, chans, chan_count, waits);
    }
    hf_runtime *rt = runtime_of(cases, count);
    rt = rt != NULL ? rt : self->rt;
    hf_wait *waits = rt != NULL ? hf_rt_alloc(rt, count * sizeof *waits) : NULL;
    if (waits == NULL) {
        return hf_refuse_at(self, HF_ERR_NOMEM, "hf_select", "no memory for %zu cases", count);
    }
    hf_status status = wait_for_case(self, cases, count, ret_idx, options, chans, chan_count, waits);
    hf_rt_free(rt, waits, count * sizeof *waits);
    return status;
}

static hf_status check_signal(hf_fiber *self, const hf_case *c, size_t i)
{
    void *state = NULL;
    const hf_crew_ops *ops = hf_crew_signals(self, &state);
    if (c->value == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, "hf_select", "case %zu is a signal and has no hf_signal_case", i);
    }
    if (ops == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, "hf_select",
                            "case %zu is a signal, which only a workflow can wait for", i);
    }
    const hf_signal_case *signal = signal_of(c);
    return signal != NULL ? ops->signal_check(self, state, "hf_select", signal->name) : HF_OK;
}

static hf_status check(hf_fiber *self, const hf_case *cases, size_t count, const size_t *ret_idx)
{
    if (count > HF_SELECT_COUNT_MAX) {
        return hf_refuse_at(self, HF_ERR_INVALID, "hf_select", "a select has at most %d cases", HF_SELECT_COUNT_MAX);
    }
    if ((cases == NULL && count > 0) || ret_idx == NULL) {
        return hf_refuse_at(self, HF_ERR_MISUSE, "hf_select", "cases and a place for the index are needed");
    }
    for (size_t i = 0; i < count; i++) {
        const hf_chan *chan = chan_of(&cases[i]);
        if (chan != NULL && cases[i].value == NULL && chan->value_len > 0) {
            return hf_refuse_at(self, HF_ERR_MISUSE, "hf_select", "case %zu has a channel and no value", i);
        }
        if (cases[i].kind == HF_CASE_SIGNAL) {
            HF_TRY(check_signal(self, &cases[i], i));
        }
    }
    return HF_OK;
}

hf_status hf_select_with(hf_case *cases, size_t count, size_t *ret_idx, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_select);
    HF_VERB_ENTER(self, hf_select, runtime_of(cases, count));
    hf_status status = check(self, cases, count, ret_idx);
    HF_LEAVE(self, status != HF_OK ? status : select_on(self, cases, count, ret_idx, options));
}

hf_status hf_try_select(hf_case *cases, size_t count, size_t *ret_idx)
{
    HF_VERB_ENTER(self, hf_try_select, runtime_of(cases, count));
    hf_status status = check(self, cases, count, ret_idx);
    if (status != HF_OK) {
        HF_LEAVE(self, status);
    }
    hf_chan *chans[HF_SELECT_COUNT_MAX + 1];
    size_t chan_count = sort_chans(cases, count, chans);
    hf_wait *peer = NULL;
    lock_all(chans, chan_count);
    status = try_cases(self, cases, count, ret_idx, &peer);
    unlock_all(chans, chan_count);
    if (peer != NULL) {
        hf_wake(peer, HF_OK);
    }
    if (status != HF_OK) {
        hf_count_if_evicted(self);
        hf_self_note(self, status, "hf_try_select");
    }
    HF_LEAVE(self, status);
}
