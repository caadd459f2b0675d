/* The service over gRPC, as a client: of a Holdfast server, or of a Temporal cluster. docs/adr/0028 has the shape and the reasons.
 *
 * Calls may come from plain threads and from fibers of any runtime. The remote has a thread of its own, which does everything on the
 * connection. */
#ifndef HF_REMOTE_REMOTE_H
#define HF_REMOTE_REMOTE_H

#include "base/env.h"
#include "service/service.h"

typedef struct hf_tls_context hf_tls_context; /* wire/tls.h */

typedef struct hf_remote_options {
    const char *host;        /* a name, or a numeric address; IPv6 with its brackets; copied, as all texts here */
    const char *port;        /* "7233" */
    hf_tls_context *tls;     /* takes a reference; NULL = plain text */
    const char *server_name; /* the name that the server's certificate must have; NULL = `host` */
    hf_str api_key;          /* goes into the header "authorization"; empty = none */
    hf_log_sink log;         /* never NULL */
    void *log_state;
} hf_remote_options;

/* Connects, and asks the server what it is. Blocks: not on a fiber.
 * Fails: HF_ERR_UNAVAILABLE (nobody answers there, and why), HF_ERR_DENIED, HF_ERR_UNSUPPORTED (the server is too old), HF_ERR_NOMEM,
 * HF_ERR_LIMIT. */
hf_status hf_remote_open(hf_op *op, hf_env *env, const hf_remote_options *options, hf_service **ret_service);

#endif
