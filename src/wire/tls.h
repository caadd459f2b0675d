/* TLS, either side, as a machine without a socket; and the hash that keys are stored as. The only place that knows OpenSSL.
 *
 *     hf_tls_feed(tls, bytes)         what came from the socket
 *     hf_tls_read(tls, buf, ...)      plain bytes; HF_ERR_AGAIN = feed more
 *     hf_tls_write(tls, bytes)        plain bytes to send
 *     hf_tls_take(tls, out)           appends what goes to the socket
 *
 * wire-T1  Only TLS 1.2 and 1.3, and only "h2" by ALPN; no renegotiation, no compression, no resumption by the server's state.
 * wire-T3  A client gives nothing to read before the server has shown a certificate of a CA that the client trusts, for the name
 *     that it was asked for.
 * wire-T2  If the context has a client CA, hf_tls_read gives nothing before the peer has shown a certificate of it. */
#ifndef HF_WIRE_TLS_H
#define HF_WIRE_TLS_H

#include "base/buf.h"
#include "base/op.h"
#include "base/str.h"

typedef struct hf_tls_context
    hf_tls_context;           /* certificate and key; shared by connections, with a count of its users */
typedef struct hf_tls hf_tls; /* one connection */

enum { HF_SHA256_LEN = 32 };

/* Texts in PEM: the certificate with its chain, its key, and the CA of clients (empty = clients need no certificate).
 * Fails: HF_ERR_INVALID (and which of them is wrong), HF_ERR_NOMEM. */
hf_status hf_tls_context_open(hf_op *op, hf_str certificate, hf_str key, hf_str client_ca,
                              hf_tls_context **ret_context);
/* The same for clients: the CA of servers (empty = those of the system), and the certificate and key that servers may ask for
 * (empty = none). */
hf_status hf_tls_client_context_open(hf_op *op, hf_str ca, hf_str certificate, hf_str key,
                                     hf_tls_context **ret_context);
hf_tls_context *hf_tls_context_ref(hf_tls_context *context);
void hf_tls_context_unref(hf_tls_context *context); /* accepts NULL */

/* Fails: HF_ERR_NOMEM. */
hf_status hf_tls_open(hf_op *op, hf_tls_context *context, hf_allocator memory, hf_tls **ret_tls);
/* The client's side of a connection to the server with this name, which may be a numeric address. Fails: HF_ERR_NOMEM,
 * HF_ERR_INVALID (the name). */
hf_status hf_tls_connect(hf_op *op, hf_tls_context *context, const char *server_name, hf_allocator memory,
                         hf_tls **ret_tls);
void hf_tls_close(hf_tls *tls); /* accepts NULL */
hf_status hf_tls_feed(hf_op *op, hf_tls *tls, hf_str bytes);
/* Fails: HF_ERR_AGAIN, HF_ERR_CLOSED (the peer has ended), HF_ERR_DENIED (the handshake failed, and why), HF_ERR_NOMEM. */
hf_status hf_tls_read(hf_op *op, hf_tls *tls, void *buf, size_t len, size_t *ret_len);
hf_status hf_tls_write(hf_op *op, hf_tls *tls, hf_str bytes);
void hf_tls_take(hf_tls *tls, hf_buf *out);
/* True: the handshake is over. */
bool hf_tls_is_open(const hf_tls *tls);

void hf_sha256(hf_str bytes, unsigned char ret_hash[HF_SHA256_LEN]);
/* Compares in a time that does not depend on the bytes. */
bool hf_hash_equal(const unsigned char a[HF_SHA256_LEN], const unsigned char b[HF_SHA256_LEN]);

#endif
