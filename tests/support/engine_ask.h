/* The steps of the rig's language (engine_rig.h) that are about queries and updates: calls that wait for workflow code. */
#ifndef HF_TESTS_ENGINE_ASK_H
#define HF_TESTS_ENGINE_ASK_H

#include "support/engine_rig.h"
#include "support/engine_words.h"

/* query, update, updpoll, updstart: the slot that the call is in; NULL = it is another step. */
hf_rig_call *hf_rig_ask(hf_rig *rig, const hf_words *w);
bool hf_rig_is_ask(hf_method method);
/* The request of a start; in engine_script.c. */
void hf_words_start(hf_arena *arena, const hf_words *w, hf_pb_start_workflow_execution_request *request);
/* qanswer. */
void hf_rig_answer_query(hf_rig *rig, hf_rig_call *slot, const hf_words *w, hf_str token);
/* What a completion says of the task's queries and updates. "accept U", "respond U" and "reject U" become messages; `commands` is left
 * with "protocol M" in their place. */
void hf_rig_complete_with(hf_rig_call *slot, const hf_words *w, const hf_pb_poll_workflow_task_queue_response *task,
                          hf_pb_respond_workflow_task_completed_request *request, char *commands, size_t len_max);
/* The answer in a slot, in short: see engine_rig.h. */
void hf_rig_says(const hf_rig_call *slot, char *out, size_t len_max);

#endif
