/* Activities as an operator changes them (operator.c), what the others know of that (paused.c), and answers by id (by_id.c). */
#ifndef HF_TESTS_SIM_ENGINE_OPERATOR_H
#define HF_TESTS_SIM_ENGINE_OPERATOR_H

#include "sim/engine/sim.h"

/* operator.c */
void sim_operators_init(sim_world *world);
bool sim_operators_are_busy(const sim_world *world);
/* The end is near: activities of this workflow id that are paused go on. */
void sim_operator_sweep(sim_world *world, const char *workflow_id);

/* paused.c. An activity is named by its run and its number (sim_item_number). */
hf_str sim_activity_type(int64_t number);
bool sim_control_is_for(const sim_world *world, const sim_control *control, size_t run, int64_t number);
/* An operation is sent, or sent again; it has its last answer. */
void sim_control_sent(sim_world *world, sim_control *control);
void sim_control_answered(sim_world *world, sim_control *control, const sim_call *call);
/* All activities of this workflow id may go on. */
void sim_control_unpaused(sim_world *world, const char *workflow_id);
/* A worker got an attempt. */
void sim_activity_started(sim_world *world, size_t run, int64_t number, int32_t attempt);
/* Its answer was taken. */
void sim_activity_answered(sim_world *world, const sim_answer *answer);
int32_t sim_activity_round(const sim_world *world, size_t run, int64_t number);
/* A heartbeat was answered with this. */
void sim_activity_beat(sim_world *world, const sim_slot *slot, bool is_by_id, bool is_paused, bool is_reset);
/* The search attribute that tells which activities are paused; it does not follow from the events. */
bool sim_is_of_pauses(hf_str attribute);
/* A run was described; it was asked for at that mark. */
void sim_activity_described(sim_world *world, size_t run, const hf_pb_describe_workflow_execution_response *response,
                            uint64_t asked);
/* Attempts that it may have at most if its policy allows `most`; 0 = nobody knows. */
int32_t sim_attempts_max(const sim_world *world, size_t run, int64_t number, int32_t most);
bool sim_may_be_reset(const sim_world *world, size_t run, int64_t number);
/* An event of an activity in the history of a run at the end: false, and *ret_why says why. */
bool sim_saw_activity(const sim_world *world, size_t run, int64_t number, const hf_pb_history_event *event,
                      const char **ret_why);

/* by_id.c */
typedef struct sim_by_id {
    const char *workflow_id, *run_id;
    int64_t number;
    const char *nonce;
} sim_by_id;
/* The method that does the same by id. */
hf_method sim_by_id_method(hf_method method);
bool sim_is_by_id(hf_method method);
void sim_by_id_fill(sim_world *world, sim_call *call, const sim_by_id *it);
/* Whether an event tells of a worker that polled for the attempt, not of a caller that completed it by its id. */
bool sim_was_polled(hf_str identity);

#endif
