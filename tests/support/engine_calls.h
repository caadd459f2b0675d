/* More steps of the rig's language (engine_rig.h): calls of clients. */
#ifndef HF_TESTS_ENGINE_CALLS_H
#define HF_TESTS_ENGINE_CALLS_H

#include "support/engine_rig.h"
#include "support/engine_words.h"

/* What a start leaves with a run that is open ("attach", "attach_links"), its link and its priority. */
void hf_words_attach(hf_arena *arena, const hf_words *w, hf_pb_start_workflow_execution_request *request);
/* Options of a run and the field mask that goes with them: priority=N fairness=KEY weight=N; auto, pinned=BUILD or unset: the override;
 * mask=PATH: that path as well. */
void hf_rig_options(const hf_words *w, hf_arena *arena, hf_pb_workflow_execution_options *options,
                    hf_pb_field_mask *mask);
/* sigstart, options, queue; false: another verb. */
bool hf_rig_client(hf_rig *rig, hf_rig_call *slot, const hf_words *w);

#endif
