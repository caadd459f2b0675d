/* Tasks that come along with another answer (eager.c), as workers and clients ask for them and take them. */
#ifndef HF_TESTS_SIM_ENGINE_ALONG_H
#define HF_TESTS_SIM_ENGINE_ALONG_H

#include "sim/engine/sim.h"

/* The completion of the slot's workflow task may bring others. */
void sim_along_ask(sim_world *world, const sim_slot *slot, hf_pb_respond_workflow_task_completed_request *request);
/* It was answered; true: the slot has its next workflow task. */
bool sim_along_take(sim_world *world, sim_slot *slot, const sim_call *call);
/* The same, but the worker is gone. */
void sim_along_lose(sim_world *world, const sim_call *call);
/* Whether a client's start is made beside a worker that takes its first workflow task; its request; its answer. */
void sim_along_choose(sim_world *world, sim_op *op);
void sim_along_start(sim_world *world, sim_call *call, const sim_op *op,
                     hf_pb_start_workflow_execution_request *request);
void sim_along_started(sim_world *world, const sim_op *op, const sim_call *call);

#endif
