/* Sends that somebody else drives: a layer above decides when the next write of a key is sent, and is told what became of
 * it. The rows stay in the depot, and so do their order, their ids and what an answer does to them; what the layer above has
 * is only the turn. It may lose it at any time: a key that has writes is wanted again.
 *
 *     depot                                     the layer above
 *     a key has a write ---- want(key) -------> remembers it, and some time later:
 *     sends its first write <-- send_next(key)
 *     settled, dead, failed ... report -------> if it has more: again; else the key is not wanted any more
 *
 * depot-D8  While sends are driven, a key whose first write may be sent is wanted, or its report is still to come. */
#ifndef HF_DEPOT_DRIVEN_H
#define HF_DEPOT_DRIVEN_H

#include <holdfast/depot.h>

typedef struct hf_sends_by {
    void *state;
    /* By the driver of the depot: the key has a write. Must not wait, nor call the depot. False: no memory, and it is
     * called again a second later. */
    bool (*want)(void *state, hf_depot_key key);
    /* hf_depot_close begins, on its fiber or thread: stop driving (hf_depot_sends_by NULL) before this returns. */
    void (*close)(void *state);
} hf_sends_by;

typedef enum hf_send_end {
    HF_SEND_NONE,     /* the key has no write that could be sent */
    HF_SEND_SETTLED,  /* the origin has accepted it */
    HF_SEND_GIVEN_UP, /* a conflict that the server wins; or it went to the origin first, and was refused */
    HF_SEND_AGAIN,    /* a conflict: the write was changed and is to be sent again */
    HF_SEND_FAILED,   /* it failed, and may be sent again */
    HF_SEND_DEAD,     /* refused; kept as a dead write */
    HF_SEND_HELD      /* not now: the depot is offline, the breaker is open, or the write is being changed */
} hf_send_end;

enum { HF_SEND_MESSAGE_LEN = 200 };

typedef struct hf_send_report {
    hf_send_end end;
    bool has_more;       /* the key has further writes; else it is not wanted any more */
    uint64_t sequence;   /* of the write; 0 = none was sent */
    int attempts;        /* that it has had */
    hf_status status;    /* of the attempt */
    hf_span retry_after; /* FAILED: what the origin asked for. HELD: for how long, 0 = until the key is wanted again */
    char message[HF_SEND_MESSAGE_LEN];
} hf_send_report;

/* From now on `by` decides; it must stay until it does not any more. NULL = the depot itself, as at first. All keys that
 * have writes are wanted at once. Fails: HF_ERR_EXISTS: somebody drives already; HF_ERR_CLOSED. */
hf_status hf_depot_sends_by(hf_depot *depot, const hf_sends_by *by);
/* Sends the first write of the key, and waits for what becomes of it. A caller that leaves does not stop it. Fails:
 * HF_ERR_INVALID: the key; HF_ERR_MISUSE: the sends are not driven; HF_ERR_CANCELED, HF_ERR_CLOSED, HF_ERR_NOMEM. */
hf_status hf_depot_send_next(hf_depot *depot, hf_depot_key key, hf_send_report *ret_report);
/* Gives a write up as dead, with this sentence; `sequence` 0 = the first of the key. A write that is gone, dead already, or on
 * its way is left alone. Fails: as hf_depot_send_next, and as hf_depot_put. */
hf_status hf_depot_bury(hf_depot *depot, hf_depot_key key, uint64_t sequence, const char *message);
/* Begins a verb, or another call from outside: counts the caller. Fails: HF_ERR_CLOSED, HF_ERR_MISUSE (a callback of the depot). */
hf_status hf_depot_enter(hf_depot *depot, const char *verb);
void hf_depot_leave(hf_depot *depot);
hf_runtime *hf_depot_runtime(const hf_depot *depot);
const char *hf_depot_name(const hf_depot *depot);
hf_scope *hf_depot_scope(const hf_depot *depot); /* where its fibers run */
const hf_depot_options *hf_depot_settings(const hf_depot *depot);
const hf_sends_by *hf_depot_sends_whose(hf_depot *depot); /* NULL = its own */

#endif
