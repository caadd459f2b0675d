/* Resets: their own workflows, clients and worker (resets.c), and what must be true of them at the end (resets_judge.c). */
#ifndef HF_TESTS_SIM_ENGINE_RESETS_H
#define HF_TESTS_SIM_ENGINE_RESETS_H

#include "sim/engine/sim.h"

#define SIM_RESETS_NAMESPACE "resets"
#define SIM_RESETS_QUEUE "rq"

void sim_resets_init(sim_world *world);
bool sim_resets_are_busy(const sim_world *world);
void sim_resets_free(sim_world *world);
void sim_judge_resets(sim_world *world);
/* "rs-1", and "rs.5" of a child. */
void sim_reset_name(int family, char text[SIM_NAME_LEN]);
void sim_reset_child_name(int child, char text[SIM_NAME_LEN]);
/* The priority that a reset gives the new run; 0 = none. No two are the same. */
int32_t sim_reset_priority(const sim_reset_op *op);

#endif
