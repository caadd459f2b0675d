/* What the library itself asks of a status. The table is in the public header. */
#ifndef HF_BASE_STATUS_H
#define HF_BASE_STATUS_H

#include "base/base.h"

#include <holdfast/status.h>

/* Whether waiting may help. Every loop that tries again asks this, and gives up on the others with a sentence. */
bool hf_status_may_pass(hf_status status);

#endif
