/* A decision is written to the log of its run and applied, and its effects are carried out. */
#ifndef HF_ENGINE_EMIT_H
#define HF_ENGINE_EMIT_H

#include "engine/core.h"
#include "run/run.h"

void hf_event_emit(hf_core *core, hf_run *run, hf_pb_history_event *event);
/* The same, unless a workflow task is started: then the event is buffered. Either way the caller schedules a workflow task. */
void hf_event_emit_or_buffer(hf_core *core, hf_run *run, hf_pb_history_event *event);
void hf_record(hf_core *core, hf_run *run, uint32_t field, const hf_pb_type *type, const void *msg);
void hf_record_str(hf_core *core, hf_run *run, uint32_t field, hf_str bytes);
void hf_record_int(hf_core *core, hf_run *run, uint32_t field, int64_t value);
/* Where a completion of an activity or a child names what it ends and its started event; false: it is none. */
bool hf_event_completion_of(const hf_pb_history_event *event, int64_t *ret_begun_id, int64_t **ret_started_id);
/* Buffered events become events: completions of activities come after all others. */
void hf_flush_buffered(hf_core *core, hf_run *run);

#endif
