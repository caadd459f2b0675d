/* Children in the simulated world: programs that start them, wait for them, signal and cancel them or leave them behind (children.c), and
 * what the histories must say of them (children_judge.c). */
#ifndef HF_TESTS_SIM_ENGINE_CHILDREN_H
#define HF_TESTS_SIM_ENGINE_CHILDREN_H

#include "sim/engine/chains.h"

/* ---- Names -------------------------------------------------------------------------------------------------------------- */

/* Workflows that clients start have the first indices, "wf-3"; children follow in the order in which a program first wanted them:
 * "wf-3.1.0" is the first child of step 1 of wf-3, "wf-3.1+70" one of very many. So a parent comes before its children. */
int sim_name_count(const sim_world *world);
void sim_name_of(const sim_world *world, int index, char text[SIM_NAME_LEN]);
bool sim_is_child_name(hf_str workflow_id);
/* A workflow for a client's next operation. */
int sim_child_choose(sim_world *world);

/* ---- Programs ----------------------------------------------------------------------------------------------------------- */

/* How many steps such a program has, and whether it may have children itself. */
int sim_child_steps(hf_str workflow_id, int count, hf_rng *rng);
bool sim_may_have_children(const sim_world *world, hf_str workflow_id);
/* Whether the event fits what is known of the children; other events do. */
bool sim_child_add_event(sim_summary *summary, const hf_pb_history_event *event);

typedef struct sim_child_step {
    hf_str parent;
    int at; /* step of the program */
    hf_rng rng;
} sim_child_step;

/* Commands of one step, added with `add`; true when it is behind us. */
bool sim_child_do(sim_world *world, const sim_child_step *step, const sim_summary *known, hf_arena *arena,
                  hf_pb_command *(*add)(void *state), void *state);

/* ---- The judgement ------------------------------------------------------------------------------------------------------ */

/* A child as its parent's history tells it. Messages are those of the judge's arena. */
typedef struct sim_child {
    size_t parent; /* link */
    const hf_pb_start_child_workflow_execution_initiated_event_attributes *asked;
    int64_t initiated_id, started_id;
    hf_str run_id; /* of its started event */
    bool is_refused;
    int64_t refused_time;
    const hf_pb_history_event *end; /* NULL = the parent was not told */
} sim_child;

typedef SIM_VEC(sim_child) sim_children;

/* `parent`: index of the link whose event it is. */
void sim_child_event(sim_world *world, sim_children *children, const sim_link *links, size_t parent,
                     const hf_pb_history_event *event, hf_arena *arena);
void sim_judge_children(sim_world *world, const sim_children *children, const sim_link *links, size_t count);
/* Nothing is on its way: no run is held in memory, and no row asks for one. */
void sim_judge_rest(sim_world *world);

#endif
