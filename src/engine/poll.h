/* How long a poll waits. */
#ifndef HF_ENGINE_POLL_H
#define HF_ENGINE_POLL_H

#include "base/list.h"
#include "engine/core.h"

/* Parks a poll for the call's own timeout, or for `span` like all others in `alike`. */
void hf_poll_park(hf_core *core, hf_call *call, hf_list *alike, int64_t span);
void hf_poll_unpark(hf_core *core, hf_call *call);
hf_call *hf_polls_first(const hf_core *core); /* the poll that ends next; NULL = none waits */
void hf_polls_expire(hf_core *core);          /* answers polls that have waited long enough */

#endif
