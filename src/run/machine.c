#include "run/machine.h"

const hf_machine *hf_machine_of(hf_machine_id id)
{
    hf_assert(id < HF_MACHINE_COUNT);
    static const hf_machine *const MACHINES[HF_MACHINE_COUNT] = {
        [HF_MACHINE_EXECUTION] = &hf_execution_machine, [HF_MACHINE_WORKFLOW_TASK] = &hf_workflow_task_machine,
        [HF_MACHINE_ACTIVITY] = &hf_activity_machine,   [HF_MACHINE_TIMER] = &hf_timer_machine,
        [HF_MACHINE_EXTERNAL] = &hf_external_machine,   [HF_MACHINE_CHILD] = &hf_child_machine,
        [HF_MACHINE_UPDATE] = &hf_update_machine,       [HF_MACHINE_OPERATION] = &hf_operation_machine,
    };
    return MACHINES[id];
}

bool hf_arrow_take(hf_arrows *arrows, hf_machine_id id, int from, int to)
{
    const hf_machine *machine = hf_machine_of(id);
    if ((unsigned)from >= (unsigned)machine->state_count || (unsigned)to >= (unsigned)machine->state_count ||
        (machine->rules[from].next & HF_BIT(to)) == 0) {
        return false;
    }
    arrows->counts[id][from][to]++;
    return true;
}
