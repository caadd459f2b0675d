/* Values that a layer above makes itself, in place of a fetcher: it looks for one, and if there is none it takes a ticket,
 * makes the value, and lets the depot keep it. A ticket notices what happens to the key meanwhile, as a flight does (DP3).
 * Sharing one making among several is left to that layer. */
#ifndef HF_DEPOT_LEARN_H
#define HF_DEPOT_LEARN_H

#include <holdfast/depot.h>

typedef struct hf_depot_ticket hf_depot_ticket;

/* Whether memory has a value that is not older than `within`: then `*ret_value` has a reference. Never waits. */
bool hf_depot_peek(hf_depot *depot, hf_depot_key key, hf_span within, hf_value **ret_value, hf_span *ret_age);
/* The same with the file. If there is none, `*ret_value` is NULL and `*ret_ticket` is a ticket, which hf_depot_learn or
 * hf_depot_forget ends; the depot is not closed before. Fails: HF_ERR_INVALID (the key), HF_ERR_NOMEM, HF_ERR_CLOSED,
 * HF_ERR_CANCELED. */
hf_status hf_depot_expect(hf_depot *depot, hf_depot_key key, hf_span within, hf_value **ret_value, hf_span *ret_age,
                          hf_depot_ticket **ret_ticket);
/* Keeps the value as if the origin had given it now, fresh for `max_age`; unless the key was written or invalidated since
 * the ticket was taken: then nothing is kept, and it is HF_OK all the same. Waits until it is in the file, but not
 * until that is synced. Ends the ticket, also on failure. Fails: HF_ERR_TOO_BIG: over .value_max; HF_ERR_NOMEM,
 * HF_ERR_CLOSED, HF_ERR_CANCELED; HF_ERR_FULL, HF_ERR_IO, HF_ERR_STORE: it is in memory only. */
hf_status hf_depot_learn(hf_depot_ticket *ticket, const void *data, size_t len, hf_span max_age);
/* Ends the ticket; accepts NULL. */
void hf_depot_forget(hf_depot_ticket *ticket);

#endif
