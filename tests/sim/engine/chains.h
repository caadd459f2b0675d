/* Chains of runs in the simulated world: starts with retry policies, schedules and delays, programs that continue as new and change their
 * memo (chains.c), and what the histories must say of them (chains_judge.c). */
#ifndef HF_TESTS_SIM_ENGINE_CHAINS_H
#define HF_TESTS_SIM_ENGINE_CHAINS_H

#include "sim/engine/sim.h"
#include "time/cron.h"

/* ---- Clients ------------------------------------------------------------------------------------------------------------ */

/* Of a new operation: whether a start is one of a chain, and which chain a cancel or terminate is for. */
void sim_chain_choose(sim_world *world, sim_op *op);
/* The same for every try of the same operation. */
void sim_chain_fill(const sim_world *world, const sim_op *op, hf_arena *arena,
                    hf_pb_start_workflow_execution_request *request);
void sim_chain_described(sim_world *world, const hf_pb_workflow_execution_info *info);
/* Asks for the description of a run, and waits for it. */
void sim_chain_describe(sim_world *world, size_t run);
/* What the janitor does to a workflow in this round: chains that do not end by themselves are ended. */
sim_op_kind sim_chain_sweep(const sim_world *world, int workflow);
/* An event that is durable: a run that it names is there. */
void sim_chain_saw(sim_world *world, size_t run, hf_str event);

/* ---- Programs ----------------------------------------------------------------------------------------------------------- */

typedef struct sim_chain_plan {
    int continues; /* times that it continues as new */
    int fails;     /* attempts that fail, whatever its steps say */
    hf_rng rng;    /* for the figures of its commands */
} sim_chain_plan;

sim_chain_plan sim_chain_plan_of(const sim_world *world, hf_rng *rng);
void sim_chain_add_event(sim_summary *summary, const hf_pb_history_event *event);
/* Whether its run is not the first of its chain. */
bool sim_chain_is_later(const sim_summary *known);
bool sim_chain_continues(const sim_chain_plan *plan, const sim_summary *known);
bool sim_chain_fails(const sim_chain_plan *plan, const sim_summary *known);
/* These fill an empty command. */
void sim_chain_continue(hf_pb_command *command, hf_arena *arena, const sim_chain_plan *plan, const sim_summary *known);
void sim_chain_upsert(hf_pb_command *command, hf_arena *arena, int at, hf_rng rng);

/* ---- Time zones --------------------------------------------------------------------------------------------------------- */

/* The driver answers the core. */
void sim_zone_give(sim_world *world);
/* The rules of a zone as the driver gives them, NULL = UTC, or there is no such zone: *ret_is_there. */
const hf_zone *sim_zone_of(const char *name, hf_arena *arena, bool *ret_is_there);
/* A zone that is not there in some lives of some worlds. */
#define SIM_ZONE_GOES "Asia/Kolkata"

/* ---- The judgement ------------------------------------------------------------------------------------------------------ */

typedef struct sim_field {
    hf_str key, data;
} sim_field;

typedef SIM_VEC(sim_field) sim_fields;

/* One run as a part of its chain. Messages are those of the judge's arena. */
typedef struct sim_link {
    size_t run;        /* index of the run's log */
    size_t row;        /* place among the runs of its id */
    bool is_by_client; /* a start made it */
    const hf_pb_workflow_execution_started_event_attributes *first;
    int64_t first_time, close_time; /* wall ns */
    int32_t close_type;
    hf_str next_run_id; /* that its last event names */
    int32_t retry_state;
    const hf_pb_workflow_execution_continued_as_new_event_attributes *continued;
    const hf_pb_failure *failure;
    const hf_pb_payloads *result;
    int64_t task_time;                       /* of its first workflow task; 0 = it had none */
    int64_t cancel_time;                     /* of the request; 0 = none */
    const hf_pb_workflow_execution *left_by; /* parent that had the cancel requested when it closed; NULL = none */
    hf_str ended_why;                        /* reason of a terminate */
    bool is_woken;                           /* that came before its first workflow task, and ended the pause */
    int64_t event_count;
    sim_fields memo, attributes; /* after all upserts so far */
} sim_link;

void sim_link_event(sim_world *world, sim_link *link, const hf_pb_history_event *event);
void sim_link_free(sim_link *link);
/* Links of one workflow id follow each other, oldest first. */
void sim_judge_chains(sim_world *world, const sim_link *links, size_t count);
/* A signal of a client is in this run. */
void sim_judge_signal(sim_world *world, const sim_op *op, const sim_link *link);
bool sim_is_unhealthy(const sim_world *world, int64_t from, int64_t to); /* judge.c */
/* The same for fields in any order. */
uint64_t sim_field_hash(hf_str key, const hf_pb_payload *value);

#endif
