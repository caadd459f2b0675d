/* Properties of a status that the library itself uses. The table is in the public header. */
#ifndef HF_BASE_STATUS_H
#define HF_BASE_STATUS_H

#include "base/base.h"

#include <holdfast/status.h>

/* Whether a later attempt may succeed. Every loop that tries again asks this, and gives up on all other statuses. */
bool hf_status_may_pass(hf_status status);

#endif
