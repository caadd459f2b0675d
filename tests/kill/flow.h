/* The workflows of the killed program. A workflow's code is a function of its history:
 *
 *     type     asks for an activity and a timer; when both are there and CHILD_SIGNALS signals, it is done. A cancel request ends it.
 *              Updates: number 0 and 3 are accepted and completed in one task, 1 is completed in a later task, 2 is rejected
 *     chain    continues as new after each signal, and is done after CHILD_SIGNALS of them
 *     parent   starts ID.a, ID.b and ID.c, and is done when it has the results of the first two
 *     kid-a    asks for an activity, and is done
 *     kid-b    the same, in the second run of a chain
 *     kid-cN   the close policy N (1 terminate, 2 abandon, 3 request cancel) ends it, or a timer: a short one only if it is abandoned
 *
 * Results and outcomes are made of chance, so that something that was done twice shows. */
#ifndef HF_TESTS_KILL_FLOW_H
#define HF_TESTS_KILL_FLOW_H

#include "base/rng.h"
#include "kill/child.h"

/* Fills the answer to a workflow task, with its queries. True: the workflow ends with it. */
bool flow_decide(child_asking *a, hf_rng *rng, const hf_pb_poll_workflow_task_queue_response *task,
                 hf_pb_respond_workflow_task_completed_request *answer);
/* The answer to a query: how many signals the workflow has had. */
hf_pb_payloads *flow_query(child_asking *a, const hf_pb_poll_workflow_task_queue_response *task);

#endif
