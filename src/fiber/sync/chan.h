/* Channels, for select, which uses their insides. */
#ifndef HF_FIBER_CHAN_H
#define HF_FIBER_CHAN_H

#include "fiber/crew/owned.h"
#include "fiber/sched/wait.h"

struct hf_chan {
    hf_spin lock; /* first: hf_wait.object points here */
    bool closed;
    hf_runtime *rt;
    const char *name;
    size_t value_len;
    size_t capacity; /* values; 0 = rendezvous */
    size_t head;     /* oldest buffered value */
    size_t count;
    hf_list receivers; /* waiting; a select may be in both lists, otherwise one of them is empty */
    hf_list senders;
    unsigned char *buffer;
    hf_owned_object owned;
};

/* Under the channel's lock. HF_OK: done; the caller wakes `*ret_wake`, if it is not NULL, with HF_OK after
 * unlocking. HF_ERR_AGAIN: the caller would have to wait. HF_ERR_CLOSED. `not_me`: a select whose waiters are
 * skipped, or NULL. */
hf_status hf_chan_send_now(hf_chan *chan, const void *value, const void *not_me, hf_wait **ret_wake);
hf_status hf_chan_recv_now(hf_chan *chan, void *value, const void *not_me, hf_wait **ret_wake);
/* The kind of a waiter that is a case of a select: claiming it takes the whole select. */
extern const hf_wait_kind hf_select_case;
/* Claims a select for the case `wait`. `*ret_wake` is the waiter to wake. False: another case was taken. */
bool hf_select_claim(hf_wait *wait, hf_status status, hf_wait **ret_wake);

#endif
