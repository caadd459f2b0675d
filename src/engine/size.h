/* Size limits of users' data. */
#ifndef HF_ENGINE_SIZE_H
#define HF_ENGINE_SIZE_H

#include "engine/core.h"
#include "history/payload.h"
#include "proto/pb.h"

size_t hf_message_len(hf_core *core, const hf_pb_type *type, const void *msg); /* on the wire; uses core->row */
bool hf_fits(hf_core *core, size_t len);                                       /* within the limit */
/* Ids, names and reasons: at most HF_ID_LEN_MAX bytes of UTF-8. Clients of all languages read them in messages that other text makes
 * unreadable. A run that has such an id from an older version can still be named. */
bool hf_text_is_good(hf_str text);
bool hf_id_is_good(hf_str id);                         /* the same, and not empty */
bool hf_failure_is_deep(const hf_pb_failure *failure); /* more causes than a record may hold */
/* The failure, or one of type TooBig, with the beginning of it as its cause. In core->scratch; NULL: engine-E2. */
hf_pb_failure *hf_failure_fit(hf_core *core, hf_pb_failure *failure);
/* The same with the limit HF_FAILURE_KEPT_LEN_MAX; the failure stays retryable. */
const hf_pb_failure *hf_failure_keep(hf_core *core, const hf_pb_failure *failure);
/* A failure of type TooBig: the message is `what`, `len` and the limit. In core->scratch, too. */
hf_pb_failure *hf_failure_too_big(hf_core *core, const char *what, size_t len);

#endif
