/* Reads what wire/pb_json.h writes, and what other programs write in proto3's JSON: names as in the .proto, numbers
 * where strings are usual, enums by number or by their short name ("TimerStarted", which older Temporal servers wrote),
 * base64 for URLs. Unknown names are skipped. */
#ifndef HF_HISTORY_PB_JSON_READ_H
#define HF_HISTORY_PB_JSON_READ_H

#include "wire/pb.h"

/* Fills `*ret_msg` in place; all that it refers to is in the arena.
 * Fails: HF_ERR_INVALID (the sentence names message and field), HF_ERR_TOO_BIG, HF_ERR_NOMEM. */
hf_status hf_pb_json_read(hf_op *op, const hf_pb_type *type, hf_str text, hf_arena *arena, void *ret_msg);
/* Appends the bytes of a history that is given as JSON, also in the spelling of older Temporal servers.
 * Fails: HF_ERR_INVALID, HF_ERR_TOO_BIG, HF_ERR_NOMEM. */
hf_status hf_history_from_json(hf_op *op, hf_str text, hf_arena *arena, hf_buf *out_bytes);

#endif
