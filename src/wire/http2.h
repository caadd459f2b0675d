/* HTTP/2, either side, as a machine without a socket: bytes in, events out, bytes out. The only place that knows libnghttp2.
 *
 *     hf_h2_recv(h2, bytes, now)      calls the events below
 *     hf_h2_respond, hf_h2_put, hf_h2_end, hf_h2_reset, hf_h2_request     from inside an event, or at any other time
 *     hf_h2_send(h2, buf, len_max)    appends the bytes that are to be sent next
 *
 * A stream is an object of the caller's that embeds hf_h2_stream. It is the session's from `begin` (or hf_h2_request) until
 * `closed`, or until the session itself is closed. The body of an answer waits in `out` until the peer has
 * room for it.
 *
 * wire-H1  Everything that a peer can make us keep is bounded: streams, bytes of headers, answers to its control frames.
 * wire-H2  A peer that resets streams, makes us reset them, or sends control frames faster than HF_H2_..._RATE is cut off: the
 *     session fails with ENHANCE_YOUR_CALM. Time is an argument of hf_h2_recv.
 * wire-H3  `closed` is the last event of a stream. */
#ifndef HF_WIRE_HTTP2_H
#define HF_WIRE_HTTP2_H

#include "base/buf.h"
#include "base/op.h"
#include "base/str.h"

enum {
    HF_H2_HEADERS_LEN_MAX = 16 * 1024, /* bytes of names and values in one head: as gRPC's clients announce */
    HF_H2_CONTINUATIONS_MAX = 8,       /* frames of one head: 16 KiB fit in one */
    HF_H2_RESETS_BURST = 1000,         /* streams reset in a row, by the peer or because of it */
    HF_H2_RESETS_RATE = 33,            /* and a second, in the long run */
    HF_H2_CONTROLS_BURST = 2000,       /* PING, SETTINGS, PRIORITY, empty DATA frames in a row */
    HF_H2_CONTROLS_RATE = 200,         /* and a second; a client that measures its bandwidth sends some tens of PINGs */
    HF_H2_WINDOW_STREAM = 1024 * 1024, /* bytes that a peer may send on a stream before we take them */
    HF_H2_WINDOW_SESSION = 8 * 1024 * 1024, /* the same on all streams of a connection */
};

/* Error codes of RST_STREAM and GOAWAY that callers use (RFC 9113, 7). */
enum {
    HF_H2_NO_ERROR = 0,
    HF_H2_INTERNAL_ERROR = 2,
    HF_H2_REFUSED_STREAM = 7,
    HF_H2_CANCEL = 8,
    HF_H2_ENHANCE_YOUR_CALM = 11
};

typedef struct hf_h2 hf_h2;

typedef struct hf_h2_field {
    hf_str name; /* lower case; pseudo headers with their colon */
    hf_str value;
} hf_h2_field;

/* Zeroed before it is given to the session. */
typedef struct hf_h2_stream {
    int32_t id;
    hf_buf out;                  /* body that is not sent yet, from `out_sent` on; initialised by the session */
    size_t out_sent;             /* bytes of `out` that were handed to the session's frames */
    const hf_h2_field *trailers; /* sent behind the body; the caller's, until `closed` */
    size_t trailer_count;
    bool is_answering; /* the head was submitted, with a body to follow */
    bool is_ended;     /* nothing more comes into `out` */
    bool is_asleep;    /* the session waits for bytes in `out` */
    bool is_sent;      /* client: the head of the request was handed to the session's output */
} hf_h2_stream;

typedef struct hf_h2_events {
    /* Server: a request begins. Returns the object for it, or NULL to refuse it (REFUSED_STREAM). */
    hf_h2_stream *(*begin)(void *state, int32_t id);
    /* A field of the head or of the trailers; borrowed. */
    void (*field)(void *state, hf_h2_stream *stream, hf_str name, hf_str value);
    /* All fields of the head (or, later, of the trailers) have come. */
    void (*head)(void *state, hf_h2_stream *stream);
    void (*data)(void *state, hf_h2_stream *stream, hf_str bytes);    /* borrowed */
    void (*end)(void *state, hf_h2_stream *stream);                   /* the peer sends no more on it */
    void (*closed)(void *state, hf_h2_stream *stream, uint32_t code); /* HF_H2_NO_ERROR: both sides ended it */
} hf_h2_events;

typedef struct hf_h2_options {
    bool is_client;
    uint32_t streams_max; /* of the peer, at once */
} hf_h2_options;

/* Fails: HF_ERR_NOMEM. */
hf_status hf_h2_open(hf_op *op, hf_allocator memory, const hf_h2_options *options, const hf_h2_events *events,
                     void *state, hf_h2 **ret_h2);
/* Calls nothing: the streams that are left are the caller's again, who gives each to hf_h2_drop. Accepts NULL. */
void hf_h2_close(hf_h2 *h2);
/* Frees the bytes of a stream whose session was closed before it. */
void hf_h2_drop(hf_h2_stream *stream);

/* Fails: HF_ERR_INVALID (the peer broke the protocol), HF_ERR_LIMIT (wire-H2), HF_ERR_NOMEM. Then nothing more is received;
 * what hf_h2_send has left says why, and the connection is to be closed. */
hf_status hf_h2_recv(hf_op *op, hf_h2 *h2, hf_str bytes, int64_t now_ns);
/* Appends what is to be sent until `out` holds `len_max` bytes or a little more. Fails: HF_ERR_NOMEM. */
hf_status hf_h2_send(hf_op *op, hf_h2 *h2, hf_buf *out, size_t len_max);
/* False: the session is over, or is to be closed. */
bool hf_h2_is_live(const hf_h2 *h2);
/* Bytes in `out` of all streams. */
size_t hf_h2_out_len(const hf_h2 *h2);
/* Bytes of bodies sent so far: does it grow, the peer takes what we send. */
uint64_t hf_h2_body_sent(const hf_h2 *h2);

/* Client: sends a request; a body follows unless `is_last`. Fails: HF_ERR_NOMEM, HF_ERR_CLOSED (no more streams). */
hf_status hf_h2_request(hf_op *op, hf_h2 *h2, hf_h2_stream *stream, const hf_h2_field *fields, size_t count,
                        bool is_last);
/* Client: whether the peer takes another request at all. False after its GOAWAY, and when the numbers of streams are used up. */
bool hf_h2_may_request(const hf_h2 *h2);
/* Client: requests that the peer takes at once. */
uint32_t hf_h2_streams_max(const hf_h2 *h2);
/* Server: sends the head of the answer; a body follows unless `is_last`. */
hf_status hf_h2_respond(hf_op *op, hf_h2 *h2, hf_h2_stream *stream, const hf_h2_field *fields, size_t count,
                        bool is_last);
/* Bytes were put into stream->out. */
void hf_h2_put(hf_h2 *h2, hf_h2_stream *stream, size_t len);
/* No more comes; trailers follow, if any. Borrowed until `closed`. */
void hf_h2_end(hf_h2 *h2, hf_h2_stream *stream, const hf_h2_field *trailers, size_t count);
void hf_h2_reset(hf_h2 *h2, hf_h2_stream *stream, uint32_t code);
/* Tells the peer to go elsewhere: `is_soon` announces it, without refusing a stream that is on its way; then the call without it
 * refuses all streams after the last one that has come. */
void hf_h2_goaway(hf_h2 *h2, bool is_soon);
/* PING, to see whether the peer is there. */
void hf_h2_ping(hf_h2 *h2);

#endif
