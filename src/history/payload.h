/* Payloads and failures: the two things that users' data travels in.
 *
 * Everything made here lies in the arena; strings that are passed in are borrowed, not copied, unless it says otherwise.
 * Out of memory shows in the arena's status, and as NULL where a pointer is returned. */
#ifndef HF_HISTORY_PAYLOAD_H
#define HF_HISTORY_PAYLOAD_H

#include "proto/pb.h"

/* Values of the metadata key "encoding". */
#define HF_ENCODING_NULL HF_STR("binary/null")    /* nothing, as opposed to an empty something */
#define HF_ENCODING_BINARY HF_STR("binary/plain") /* bytes */
#define HF_ENCODING_JSON HF_STR("json/plain")     /* a JSON text */

/* A payload with this encoding; an empty one when out of memory. */
hf_pb_payload hf_payload_make(hf_arena *arena, hf_str encoding, hf_str data);
hf_pb_payload hf_payload_json(hf_arena *arena, hf_str text);
hf_pb_payload hf_payload_bytes(hf_arena *arena, hf_str bytes);
hf_pb_payload hf_payload_null(hf_arena *arena);
/* A list of one, as arguments and results are. */
hf_pb_payloads *hf_payloads_of(hf_arena *arena, hf_pb_payload payload);

/* The value of a metadata key; empty when it has none. */
hf_str hf_payload_metadata(const hf_pb_payload *payload, hf_str key);
hf_str hf_payload_encoding(const hf_pb_payload *payload);
/* The only or first payload; NULL when there is none. */
const hf_pb_payload *hf_payloads_first(const hf_pb_payloads *payloads);

/* The bytes that a list counts against HF_PAYLOAD_LEN_MAX; NULL = 0. */
size_t hf_payloads_len(const hf_pb_payloads *payloads);

/* A failure of the user's code. `type` is what retry policies name. */
hf_pb_failure *hf_failure_application(hf_arena *arena, hf_str type, hf_str message, bool non_retryable);
/* A timeout of this kind (HF_TIMEOUT_TYPE_...), which only a server can see: it says so. */
hf_pb_failure *hf_failure_timeout(hf_arena *arena, int32_t timeout_type, hf_str message);
/* A cancelation that was asked for; `details` may be NULL. */
hf_pb_failure *hf_failure_canceled(hf_arena *arena, hf_str message, hf_pb_payloads *details);
hf_pb_failure *hf_failure_terminated(hf_arena *arena, hf_str message);
/* A failure of the engine itself. */
hf_pb_failure *hf_failure_server(hf_arena *arena, hf_str message, bool non_retryable);

/* The word that retry policies compare with: the type of an application failure; empty for all others. */
hf_str hf_failure_type(const hf_pb_failure *failure);

#endif
