/* Commands: each has a rule with a check and an act; a plan is made of the whole list. */
#ifndef HF_ENGINE_COMMANDS_H
#define HF_ENGINE_COMMANDS_H

#include "engine/core.h"
#include "engine/slot.h"

/* Ids that commands of the list have named: a hash table, since a list may be as long as a history. */
typedef struct hf_listed {
    hf_str id;    /* data is NULL: the entry is free */
    bool pending; /* started, and not canceled after that */
} hf_listed;

typedef struct hf_ids {
    hf_listed *items; /* in the scratch, allocated for the first id */
    size_t mask;      /* number of items - 1; the number is a power of two */
} hf_ids;

typedef struct hf_update_plan hf_update_plan;

/* What a list of commands does to the run, as far as later commands of the list depend on it. */
typedef struct hf_plan {
    const hf_pb_respond_workflow_task_completed_request *request;
    size_t activities; /* pending, with those of the list */
    size_t unfired;    /* buffered firings that are taken back */
    int64_t early;     /* activities that end before they have started */
    size_t externals;
    size_t children;
    hf_ids activity_ids; /* scheduled */
    hf_ids cancel_ids;   /* of activities that are to be canceled */
    hf_ids timer_ids;
    hf_ids child_ids; /* of children that the list starts */
    bool closes;
    int64_t *event_ids; /* of each command that was checked: the id that the next event then had; in the scratch */
    int64_t event_id;   /* that the event of the command being checked gets */
    hf_pb_history_event
        *first; /* the run's first event, if its end may lead to another run (machines/chain.c); else NULL */
    struct hf_update_plan *
        updates; /* from its messages (machines/update_message.c); NULL = it has none, or they were not looked at yet */
    int32_t cause; /* of the failure, if there is one */
} hf_plan;

/* Whether a command can be carried out after those before it; notes in the plan what later ones must know. False: core->op has the
 * sentence, and the plan the cause. */
typedef bool hf_command_check(hf_core *core, const hf_run *run, hf_plan *plan, const hf_pb_command *command);
/* Carries it out: emits its event. It was checked. */
typedef void hf_command_act(hf_core *core, hf_run *run, const hf_plan *plan, const hf_pb_command *command);

/* For checks. */
bool hf_command_bad(hf_core *core, hf_plan *plan, int32_t cause, const char *why); /* always false */
/* Whether a command's `len` bytes of users' data are within the limit. */
bool hf_command_fits(hf_core *core, hf_plan *plan, size_t len, int32_t cause, const char *why);
/* The entry of an id, or the free entry where it belongs. NULL: no memory. */
hf_listed *hf_command_listed(hf_core *core, const hf_plan *plan, hf_ids *ids, hf_str id);

/* commands_check.c */
hf_command_check hf_check_start_timer, hf_check_cancel_timer, hf_check_schedule_activity, hf_check_cancel_activity,
    hf_check_signal_external, hf_check_cancel_external, hf_check_marker;
/* machines/child.c */
hf_command_check hf_check_start_child;
hf_command_act hf_act_start_child;
/* machines/execution_command.c */
hf_command_check hf_check_complete, hf_check_fail, hf_check_cancel, hf_check_continue_as_new,
    hf_check_upsert_attributes, hf_check_upsert_memo;
hf_command_act hf_act_complete, hf_act_fail, hf_act_cancel, hf_act_continue_as_new, hf_act_upsert_attributes,
    hf_act_upsert_memo, hf_act_marker;

#endif
