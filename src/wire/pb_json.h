/* Messages as JSON, by the same tables: proto3's canonical form.
 *
 * Field names are in lowerCamelCase, enums are written by name, 64-bit integers as strings, bytes in base64, times as text.
 * Fields that are zero are left out, and so are unknown fields. google.protobuf.Any is {"@type": ..., "value": <base64>}.
 * A map that holds a key twice becomes an object that holds it twice. */
#ifndef HF_WIRE_PB_JSON_H
#define HF_WIRE_PB_JSON_H

#include "wire/pb.h"

/* Appends the message as an object. Bytes of a text that are not UTF-8 are replaced by U+FFFD.
 * Fails: the buffer's status; HF_ERR_INVALID when a time is out of range or messages are nested too deep. */
hf_status hf_pb_json_write(const hf_pb_type *type, const void *msg, hf_buf *out);
/* The same, but `more` may append further members to every message, each with a comma before it. Readers of the
 * canonical form may refuse them: this form is for people. */
typedef void hf_pb_json_more(const hf_pb_type *type, const void *msg, hf_buf *out);
hf_status hf_pb_json_write_more(const hf_pb_type *type, const void *msg, hf_buf *out, hf_pb_json_more *more);

#endif
