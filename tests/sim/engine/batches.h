/* Operations on many runs: their own namespaces and runs, one client, and what must be true of them at the end. */
#ifndef HF_TESTS_SIM_ENGINE_BATCHES_H
#define HF_TESTS_SIM_ENGINE_BATCHES_H

#include "sim/engine/sim.h"

void sim_batches_init(sim_world *world);
bool sim_batches_are_busy(const sim_world *world);
void sim_judge_batches(sim_world *world);

#endif
