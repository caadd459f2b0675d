/* How long a poll waits. */
#ifndef HF_ENGINE_POLL_H
#define HF_ENGINE_POLL_H

#include "base/list.h"
#include "engine/core.h"

/* How long a parked poll waits: the call's own time, or `span` as all others in `alike`. */
void hf_poll_park(hf_core *core, hf_call *call, hf_list *alike, int64_t span);
void hf_poll_unpark(hf_core *core, hf_call *call);
hf_call *hf_polls_first(const hf_core *core); /* who ends next, NULL = nobody waits */
void hf_polls_expire(hf_core *core);          /* answers those who have waited long enough */

#endif
