/* Machines: the states of a run or of a part of it, and the states that may follow each. A file in machines/ opens with its table. A change of state is
 * applied only if hf_arrow_take finds its arrow in the table. It also counts the arrow, so that the simulator can tell which ones were
 * never taken. States that are read from a row are not changes: sound.c checks those. */
#ifndef HF_RUN_MACHINE_H
#define HF_RUN_MACHINE_H

#include "base/base.h"

#define HF_BIT(n) (UINT32_C(1) << (n))
#define HF_MACHINE_STATE_MAX 12

typedef struct hf_rule {
    const char *name; /* of the state */
    uint32_t next;    /* HF_BIT of each state that may follow */
} hf_rule;

typedef enum hf_machine_id {
    HF_MACHINE_EXECUTION,
    HF_MACHINE_WORKFLOW_TASK,
    HF_MACHINE_ACTIVITY,
    HF_MACHINE_TIMER,
    HF_MACHINE_EXTERNAL,
    HF_MACHINE_CHILD,
    HF_MACHINE_UPDATE,
    HF_MACHINE_OPERATION,
    HF_MACHINE_COUNT
} hf_machine_id;

typedef struct hf_machine {
    const char *name;
    const hf_rule *rules;
    int state_count;
} hf_machine;

const hf_machine *hf_machine_of(hf_machine_id id);

/* How often each arrow was taken. */
typedef struct hf_arrows {
    uint64_t counts[HF_MACHINE_COUNT][HF_MACHINE_STATE_MAX][HF_MACHINE_STATE_MAX];
} hf_arrows;

/* True when the arrow is in the table; counts it. A change that takes another one cannot be applied. */
bool hf_arrow_take(hf_arrows *arrows, hf_machine_id id, int from, int to);

extern const hf_machine hf_execution_machine;
extern const hf_machine hf_workflow_task_machine;
extern const hf_machine hf_activity_machine;
extern const hf_machine hf_timer_machine;
extern const hf_machine hf_external_machine;
extern const hf_machine hf_child_machine;
extern const hf_machine hf_update_machine;
extern const hf_machine hf_operation_machine;

#endif
