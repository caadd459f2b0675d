/* Reads the texts that wire/time_text.h and wire/base64.h write. */
#ifndef HF_WIRE_TEXT_READ_H
#define HF_WIRE_TEXT_READ_H

#include "wire/pb.h"

/* RFC 3339, with any offset and a fraction of 1 to 9 digits. False: the text is not a timestamp. */
bool hf_timestamp_parse(hf_str text, hf_pb_timestamp *ret_at);
/* "-1.500s". False: the text is not a duration. */
bool hf_duration_parse(hf_str text, hf_pb_duration *ret_span);
/* Base64 in either alphabet, with or without padding. The bytes are in the arena. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_base64_decode(hf_str text, hf_arena *arena, hf_str *ret_bytes);

#endif
