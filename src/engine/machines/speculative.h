/* Speculative workflow tasks: for updates, which may leave no trace. */
#ifndef HF_ENGINE_MACHINES_SPECULATIVE_H
#define HF_ENGINE_MACHINES_SPECULATIVE_H

#include "engine/core.h"
#include "engine/slot.h"
#include "engine/unwritten.h"

/* The state of the run's workflow task, written or not. */
hf_wft_state hf_wft_state_now(const hf_run *run);

/* The run has no workflow task, and an update waits for one. */
void hf_speculative_schedule(hf_core *core, hf_run *run);
/* It meets a poll; its holder does not want it; its sticky queue was shut. */
void hf_speculative_start(hf_core *core, hf_run *run, hf_call *call);
void hf_speculative_again(hf_core *core, hf_run *run);
void hf_speculative_unstick(hf_core *core, hf_run *run);
/* Whether the token belongs to the started workflow task, speculative or not. */
bool hf_wft_holds(const hf_core *core, const hf_run *run, const hf_token *token);
/* Its token, but for the ids. It stays good when the task becomes one of the run's own. */
void hf_speculative_token(const hf_core *core, const hf_wft *wft, hf_token *token);
/* The one that is started; NULL = none is. */
const hf_wft *hf_speculative_started(const hf_run *run);
/* The workflow task of the run, speculative or not; it may have none. */
const hf_wft *hf_wft_now(const hf_run *run);

/* The run changes, or is about to: the task becomes one of the run's own, with the same ids. If there is none, nothing happens. */
void hf_speculative_make_real(hf_core *core, hf_run *run);
static inline void hf_speculative_convert(hf_core *core, hf_run *run)
{
    if (HF_UNLIKELY(HF_SLOT(run)->unwritten != NULL)) {
        hf_speculative_make_real(core, run);
    }
}
/* The same because its worker has answered with commands: only then its Started event says who that is, as on a Temporal server. */
void hf_speculative_answered(hf_core *core, hf_run *run);
/* It is gone, and nothing was written. */
void hf_speculative_discard(hf_core *core, hf_run *run);
/* The run is being closed from outside: a task that no worker has seen is gone. */
void hf_speculative_close(hf_core *core, hf_run *run);

int64_t hf_speculative_due(const hf_run *run); /* ns; INT64_MAX = never */
void hf_speculative_free(hf_core *core, hf_unwritten *unwritten);
uint64_t hf_speculative_hash(const hf_unwritten *unwritten, uint64_t hash);

#endif
