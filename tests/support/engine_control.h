/* More steps of the rig's language: see engine_rig.h. */
#ifndef HF_TESTS_ENGINE_CONTROL_H
#define HF_TESTS_ENGINE_CONTROL_H

#include "support/engine_rig.h"
#include "support/engine_words.h"

/* acomplete, afail, acancel, heartbeat with by=WORKFLOW/ACTIVITY. */
void hf_rig_by_id(hf_rig *rig, hf_rig_call *slot, const hf_words *w);
/* apause, aunpause, areset, aoptions; false: another verb. */
bool hf_rig_control(hf_rig *rig, hf_rig_call *slot, const hf_words *w);
/* Tasks in the answer to a start or a completion go to the slots "w", and "a" to "d". */
void hf_rig_take_tasks(hf_rig *rig, hf_rig_call *slot);

#endif
