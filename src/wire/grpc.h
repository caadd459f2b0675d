/* gRPC on top of HTTP/2: frames around messages, timeouts, and texts in headers. */
#ifndef HF_WIRE_GRPC_H
#define HF_WIRE_GRPC_H

#include "base/buf.h"
#include "base/op.h"
#include "base/str.h"

#include <holdfast/time.h>

enum { HF_GRPC_HEAD_LEN = 5 }; /* bytes before a message: a flag, and its length, highest byte first */

typedef struct hf_grpc_frame {
    bool is_compressed;
    hf_str message; /* points into the input */
    hf_str rest;    /* what follows */
} hf_grpc_frame;

/* Takes the first frame. Fails: HF_ERR_AGAIN (it is not complete), HF_ERR_INVALID (its flag), HF_ERR_TOO_BIG (it has more than
 * `len_max` bytes, known from its first five; the message is the one that gRPC's clients look for). */
hf_status hf_grpc_take(hf_op *op, hf_str bytes, size_t len_max, hf_grpc_frame *ret_frame);

/* Writes the head of a frame to 5 bytes. */
void hf_grpc_head(unsigned char *ret_head, bool is_compressed, uint32_t len);

/* "70000000u", "9924m": one to eight digits and a unit. False: it is not one. */
bool hf_grpc_timeout_parse(hf_str text, hf_span *ret_timeout);

/* "5S", "1500m": the span, rounded up to what eight digits can say. */
enum { HF_GRPC_TIMEOUT_LEN = 10 }; /* bytes, with the NUL */
void hf_grpc_timeout_format(hf_span timeout, char ret_text[HF_GRPC_TIMEOUT_LEN]);

/* Appends the text as grpc-message has it: all but visible ASCII is percent-encoded, and so is the percent sign. */
void hf_grpc_message_put(hf_str text, hf_buf *out);
/* The way back. A percent sign that is not followed by two digits stands for itself. */
void hf_grpc_message_parse(hf_str text, hf_buf *out);

#endif
