/* HTTP/1.1 requests without a body, as a machine without a socket: bytes in, the head of a request out. The only place that knows llhttp.
 *
 * wire-P1  A head is at most HF_HTTP1_HEAD_LEN_MAX bytes and HF_HTTP1_FIELDS_MAX fields, and what is kept of it is bounded.
 * wire-P2  What two readers could understand in two ways is refused: lines that begin with white space, fields that end with a lone CR,
 *     a missing or second Host, both lengths at once. */
#ifndef HF_WIRE_HTTP1_H
#define HF_WIRE_HTTP1_H

#include "base/buf.h"
#include "base/op.h"
#include "base/str.h"

enum {
    HF_HTTP1_TARGET_LEN_MAX = 8 * 1024, /* bytes of the path with its query */
    HF_HTTP1_HEAD_LEN_MAX = 16 * 1024,  /* bytes of the whole head */
    HF_HTTP1_FIELDS_MAX = 100,
    HF_HTTP1_VALUE_LEN_MAX = 512 /* bytes of a field that we look at */
};

typedef struct hf_http1 hf_http1;

/* Fails: HF_ERR_NOMEM. */
hf_status hf_http1_open(hf_op *op, hf_allocator memory, hf_http1 **ret_http);
void hf_http1_close(hf_http1 *http); /* accepts NULL */
/* 0: more bytes are needed. 200: the request is complete; bytes behind it are ignored. Anything else: the status that refuses it. */
int hf_http1_recv(hf_http1 *http, hf_str bytes);

/* Of a complete request; they live as long as `http`. */
const char *hf_http1_method(const hf_http1 *http); /* "GET" */
hf_str hf_http1_path(const hf_http1 *http);        /* without its query */
hf_str hf_http1_host(const hf_http1 *http);        /* "127.0.0.1:9100" */
hf_str hf_http1_authorization(const hf_http1 *http);

#endif
