/* Messages as JSON, by the same tables: proto3's canonical form.
 *
 * Written are lowerCamelCase names, enums by name, 64-bit integers as strings, bytes in base64, times as text; what is
 * zero is left out. Read are also names as in the .proto, numbers where strings are written, enums by number or by their
 * short name ("TimerStarted", which older Temporal servers wrote), base64 for URLs. Unknown names are passed over.
 * google.protobuf.Any is {"@type": ..., "value": <base64>}. Unknown fields do not appear. A map that holds a key twice
 * gives an object that does. */
#ifndef HF_WIRE_PB_JSON_H
#define HF_WIRE_PB_JSON_H

#include "wire/pb.h"

/* Appends the message as an object. Text that is not UTF-8 comes out with U+FFFD in it.
 * Fails: the buffer's status; HF_ERR_INVALID when a time is out of range or messages are nested too deep. */
hf_status hf_pb_json_write(const hf_pb_type *type, const void *msg, hf_buf *out);
/* The same, and of every message `more` may append further members, each with a comma before it. Readers of the canonical form
 * may refuse them: this is for people. */
typedef void hf_pb_json_more(const hf_pb_type *type, const void *msg, hf_buf *out);
hf_status hf_pb_json_write_more(const hf_pb_type *type, const void *msg, hf_buf *out, hf_pb_json_more *more);

/* Fills `*ret_msg` in place; all that it refers to is in the arena.
 * Fails: HF_ERR_INVALID (the sentence names message and field), HF_ERR_TOO_BIG, HF_ERR_NOMEM. */
hf_status hf_pb_json_read(hf_op *op, const hf_pb_type *type, hf_str text, hf_arena *arena, void *ret_msg);

#endif
