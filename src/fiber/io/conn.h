/* Connections for the rest of the layer: listeners and processes make some, too. */
#ifndef HF_FIBER_CONN_H
#define HF_FIBER_CONN_H

#include "fiber/core.h"

/* A connection over a descriptor, which it takes. NULL = out of memory: the descriptor stays the caller's.
 * is_owned: it belongs to another object, hf_conn_close refuses it. */
hf_conn *hf_conn_wrap(hf_runtime *rt, int fd, const char *peer, bool is_owned);
/* Closes it; accepts NULL. */
void hf_conn_drop(hf_conn *conn);

/* For a fiber that reads, writes and does more on one connection, and must not wait in one of them. The first two try, and return
 * HF_ERR_AGAIN instead of waiting. hf_conn_wait waits for one of the directions, the deadline (HF_ERR_TIMEOUT) or a poke. The
 * system tells of each readiness once: wait for a direction only after a try has returned HF_ERR_AGAIN. A poke before the first
 * wait is lost. One fiber at a time; it must not close the connection meanwhile. */
hf_status hf_conn_try_read(hf_conn *conn, void *buf, size_t len, size_t *ret_len);
hf_status hf_conn_try_write(hf_conn *conn, const void *buf, size_t len, size_t *ret_len);
hf_status hf_conn_wait(hf_conn *conn, int events, hf_instant deadline);
/* Makes hf_conn_wait return: as hf_fd_poke. */
void hf_conn_poke(hf_conn *conn);

/* Looks a name up on the pool of `rt`, within `timeout` (0 = for ever). Between verbs, not inside one. */
hf_status hf_resolve_on(hf_runtime *rt, const char *host, hf_span timeout, char (*ret_addresses)[HF_ADDRESS_LEN_MAX],
                        size_t count, size_t *ret_count);

#endif
