/* Activities of the crowd (batches.c), and what batches do to them. */
#ifndef HF_TESTS_SIM_ENGINE_WORK_H
#define HF_TESTS_SIM_ENGINE_WORK_H

#include "sim/engine/sim.h"

enum { SIM_CROWD, SIM_BYSTANDERS, SIM_DOOMED }; /* namespaces, of which only the first one has batches */

hf_str sim_crowd_space(const sim_crowd_run *run);

bool sim_work_is_of(const sim_batch *batch);
/* What a batch about activities does: as a request of batches.c. */
void sim_work_choose(sim_world *world, sim_batch *batch);
void sim_work_put(sim_call *call, const sim_batch *batch, hf_pb_start_batch_operation_request *request);

/* The calls of one client, which waits for each answer. Lost ones are sent again. */
void sim_work_fill_task(sim_call *call, const sim_crowd_run *run);
void sim_work_fill_failure(sim_call *call, const sim_crowd_run *run);
void sim_work_fill_pause(sim_call *call, sim_crowd_run *run);
void sim_work_fill_look(sim_call *call, const sim_crowd_run *run);
/* Their answers. True: the first attempt came along, and is to fail. */
bool sim_work_started(sim_world *world, const sim_call *call, sim_crowd_run *run);
bool sim_work_scheduled(sim_world *world, const sim_call *call, sim_crowd_run *run);
void sim_work_failed(sim_world *world, const sim_call *call, sim_crowd_run *run);
void sim_work_paused(sim_world *world, const sim_call *call, sim_crowd_run *run);
void sim_work_seen(sim_world *world, const sim_call *call, sim_crowd_run *run);

/* A run whose activity is known, at random; false: there is none. */
bool sim_work_find(sim_world *world, size_t *ret_index);
/* A run whose activity was not looked at since a batch has ended. */
bool sim_work_find_unseen(const sim_world *world, size_t *ret_index);

#endif
