/* What a scenario of tests/golden/temporal leaves: the answer of each step, then the history of every run that an answer or
 * an event has named. The form is the one in which tests/oracle writes down what a Temporal server does:
 *
 *     start wf => run_id=#1 started status=Running
 *     signal none s => !NotFound
 *     == wf#1
 *     1 WorkflowExecutionStarted workflow_type=type task_queue=q workflow_task_timeout=10s ...
 *
 * A message is its fields that are set, in the order of their numbers; "_event_id" is cut off. What depends on time or chance
 * is left out, and "#2" is the second run of a workflow id. Behind the code of a failure the server's facts also have its
 * details and its message, which are not compared. */
#ifndef HF_TESTS_ENGINE_FACTS_H
#define HF_TESTS_ENGINE_FACTS_H

#include "support/engine_rig.h"

/* Plays the script and appends its facts. The test fails if a step cannot be played. */
void hf_facts_of(hf_rig *rig, const char *script, hf_buf *out);

#endif
