/* Shared by workers.c (polls and tasks), answers.c and eager.c. */
#ifndef HF_TESTS_SIM_ENGINE_WORKERS_H
#define HF_TESTS_SIM_ENGINE_WORKERS_H

#include "sim/engine/sim.h"

enum { SIM_IDLE, SIM_POLLING, SIM_FETCHING, SIM_WORKING, SIM_ANSWERING }; /* sim_slot.state */
enum { SIM_WORKFLOW, SIM_STICKY, SIM_ACTIVITY };                          /* sim_slot.kind */

sim_slot *sim_slot_of(sim_actor *actor);
/* The slot is done with its task: it polls for the next one after a while. */
void sim_rest(sim_world *world, sim_slot *slot, int64_t span);
sim_call *sim_ask(sim_world *world, sim_slot *slot, hf_method method, void (*then)(sim_world *, sim_call *));
/* Whether the slot still waits for this answer. */
bool sim_is_mine(const sim_call *call);
/* Puts the run of the slot's task into the cache of its worker. */
void sim_remember(sim_worker *worker, const sim_slot *slot);
void sim_forget(sim_worker *worker, const char *run_id);

void sim_answer_task(sim_world *world, sim_slot *slot);
/* The slot gets a task. `comes_along`: with another answer; then the slot knows the events before it. */
void sim_take_workflow(sim_world *world, sim_slot *slot, const hf_pb_poll_workflow_task_queue_response *response,
                       bool comes_along);
void sim_take_activity(sim_world *world, sim_slot *slot, const hf_pb_poll_activity_task_queue_response *response);
/* Nobody does: it was handed out and is lost. */
void sim_lose_workflow(sim_world *world, const hf_pb_poll_workflow_task_queue_response *response);
void sim_lose_activity(sim_world *world, const hf_pb_poll_activity_task_queue_response *response);
/* "a2-1" as a number that is used in place of an event id. */
int64_t sim_item_number(hf_str activity_id);

/* suspects.c */
bool sim_is_poison(sim_world *world, const sim_slot *slot); /* its task will end the process */
void sim_poison(sim_world *world, sim_slot *slot);          /* it does */
/* engine-U1, when the slot has got a task. */
void sim_check_counted(sim_world *world, const sim_slot *slot);

#endif
