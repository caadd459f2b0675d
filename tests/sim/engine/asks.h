/* Queries and updates: shared by queries.c and updates.c, and called by clients, workers and the judge. */
#ifndef HF_TESTS_SIM_ENGINE_ASKS_H
#define HF_TESTS_SIM_ENGINE_ASKS_H

#include "sim/engine/sim.h"

/* queries.c */
void sim_askers_init(sim_world *world);
bool sim_askers_are_busy(const sim_world *world);
/* A query's own task came with a poll: true. It is answered, lost or given back at once. */
bool sim_take_query(sim_world *world, sim_slot *slot, const hf_pb_poll_workflow_task_queue_response *response);
/* The queries that came with a workflow task are kept with it, and answered in its completion. */
void sim_keep_queries(sim_slot *slot, const hf_pb_poll_workflow_task_queue_response *response);
void sim_answer_queries(sim_world *world, const sim_slot *slot, sim_call *call,
                        hf_pb_respond_workflow_task_completed_request *request);
void sim_ask_again(sim_world *world, sim_asker *asker); /* after a while */

/* updates.c */
void sim_update_next(sim_world *world, sim_asker *asker);  /* another one */
void sim_update_again(sim_world *world, sim_asker *asker); /* the same: nobody knows what became of it */
void sim_keep_updates(sim_slot *slot, const hf_pb_poll_workflow_task_queue_response *response);
void sim_answer_updates(sim_world *world, const sim_slot *slot, sim_call *call,
                        hf_pb_respond_workflow_task_completed_request *request);
/* An event of an update, as the workflow sees it. */
bool sim_summary_update(sim_summary *summary, const hf_pb_history_event *event);
/* I10. An event of the history of a run at the end: false, and *ret_why says why. Then what clients were told. */
bool sim_saw_update(sim_world *world, size_t run, const hf_pb_history_event *event, const char **ret_why);
void sim_judge_updates(sim_world *world);

#endif
