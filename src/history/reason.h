/* Why a run was terminated, in the words of a Temporal server and in our own. */
#ifndef HF_HISTORY_REASON_H
#define HF_HISTORY_REASON_H

#include "proto/pb.h"

/* Reasons of the engine that Temporal's clients know. The details are then our own sentence, with the numbers. */
#define HF_REASON_TOO_MANY_EVENTS "Workflow history count exceeds limit."
#define HF_REASON_TOO_MANY_BYTES "Workflow history size exceeds limit."

/* What people are told: our own sentence if there is one, else the reason. */
hf_str hf_terminated_why(const hf_pb_workflow_execution_terminated_event_attributes *terminated);

#endif
