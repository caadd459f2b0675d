/* The header of a request or command. */
#ifndef HF_CLIENT_HEADER_H
#define HF_CLIENT_HEADER_H

#include "client/data.h"
#include "service/service.h"

#include <holdfast/header.h>

#define HF_HEADER_OURS "holdfast-" /* keys of the library's own begin with this */

/* The entries, and what the hook of the service adds, in the arena. NULL: neither has any. The caller is not inside the
 * library. Fails: HF_ERR_INVALID, HF_ERR_TOO_BIG, HF_ERR_NOMEM, and what the hook returns. */
hf_status hf_header_make(hf_op *op, const char *verb, const hf_service *service, const hf_entry *entries,
                         hf_arena *arena, hf_pb_header **ret_header);

#endif
