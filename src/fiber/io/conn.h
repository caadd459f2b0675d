/* Connections for the rest of the layer: listeners and processes make some, too. */
#ifndef HF_FIBER_CONN_H
#define HF_FIBER_CONN_H

#include "fiber/core.h"

/* A connection over a descriptor, which it takes. NULL = out of memory: the descriptor stays the caller's.
 * is_owned: it belongs to another object, hf_conn_close refuses it. */
hf_conn *hf_conn_wrap(hf_runtime *rt, int fd, const char *peer, bool is_owned);
/* Closes it; accepts NULL. */
void hf_conn_drop(hf_conn *conn);

/* Looks a name up on the pool of `rt`, within `timeout` (0 = for ever). Between verbs, not inside one. */
hf_status hf_resolve_on(hf_runtime *rt, const char *host, hf_span timeout, char (*ret_addresses)[HF_ADDRESS_LEN_MAX],
                        size_t count, size_t *ret_count);

#endif
