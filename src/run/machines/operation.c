/* Operations: runs of a kind of their own, which do one thing to many runs (ADR 0026).
 *
 *     new --> waiting <--> acting          acting: some runs were taken, and messages to them are on their way
 *                |           |
 *                +-----------+--> completed | stopped | failed
 *
 * An operation has no history: its state is the request that it began with and one record of how far it has come. A change replaces that record
 * as a whole.
 *
 * run-O1  A run of kind "operation" has no events. It is open while it waits or acts, and then it has a deadline.
 * run-O2  Runs are taken if and only if the operation acts. */
#include "run/machines.h"

_Static_assert(HF_OPERATION_STATE_COUNT == HF_OPERATION_FAILED + 1, "the table has a row for every state");
#define ENDED (HF_BIT(HF_OPERATION_COMPLETED) | HF_BIT(HF_OPERATION_STOPPED) | HF_BIT(HF_OPERATION_FAILED))
static const hf_rule RULES[HF_OPERATION_STATE_COUNT] = {
    [HF_OPERATION_NEW] = {"new", HF_BIT(HF_OPERATION_WAITING)},
    [HF_OPERATION_WAITING] = {"waiting", HF_BIT(HF_OPERATION_ACTING) | ENDED},
    [HF_OPERATION_ACTING] = {"acting", HF_BIT(HF_OPERATION_WAITING) | HF_BIT(HF_OPERATION_COMPLETED) |
                                           HF_BIT(HF_OPERATION_STOPPED)},
    [HF_OPERATION_COMPLETED] = {"completed", 0},
    [HF_OPERATION_STOPPED] = {"stopped", 0},
    [HF_OPERATION_FAILED] = {"failed", 0},
};
const hf_machine hf_operation_machine = {"operation", RULES, HF_OPERATION_STATE_COUNT};

static hf_status cannot(hf_apply *a, const hf_run *run, const char *why)
{
    return hf_fail(a->op, HF_ERR_INVALID, "run %lld: a change of an operation cannot follow: %s",
                   (long long)run->number, why);
}

bool hf_operation_is_good(const hf_pb_operation_progress *progress)
{
    bool is_state = progress->state > HF_OPERATION_NEW && progress->state < HF_OPERATION_STATE_COUNT;
    bool is_acting = progress->state == HF_OPERATION_ACTING;
    return is_state && is_acting == (progress->taken.count > 0) && /* run-O2 */
           progress->due > 0 && progress->due < INT64_MAX &&       /* run-O1 */
           progress->complete >= 0 && progress->failed >= 0 && progress->total >= 0 && progress->index >= 0;
}

static int32_t status_of(int32_t state)
{
    switch ((hf_operation_state)state) {
    case HF_OPERATION_NEW:
    case HF_OPERATION_WAITING:
    case HF_OPERATION_ACTING:
        break;
    case HF_OPERATION_COMPLETED:
        return HF_WORKFLOW_EXECUTION_STATUS_COMPLETED;
    case HF_OPERATION_STOPPED:
        return HF_WORKFLOW_EXECUTION_STATUS_TERMINATED;
    case HF_OPERATION_FAILED:
        return HF_WORKFLOW_EXECUTION_STATUS_FAILED;
    }
    return HF_WORKFLOW_EXECUTION_STATUS_RUNNING;
}

hf_status hf_operation_apply_started(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_operation_start msg;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_operation_start_type, bytes, a->memory->scratch, &msg));
    if (run->kind != HF_KIND_OPERATION || run->operation.len > 0) {
        return cannot(a, run, "it is not an operation, or has begun before");
    }
    hf_owned_set(a->memory, &run->operation, bytes);
    hf_owned_set(a->memory, &run->first_run_id, hf_owned_str(&run->run_id));
    run->start_time = msg.time;
    run->last_time = msg.time;
    return a->memory->status;
}

hf_status hf_operation_apply_moved(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_operation_progress msg;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_operation_progress_type, bytes, a->memory->scratch, &msg));
    if (run->kind != HF_KIND_OPERATION || run->operation.len == 0 || !hf_operation_is_good(&msg)) {
        return cannot(a, run, "it is not an operation, or the change is not one");
    }
    if (!hf_arrow_take(&a->memory->arrows, HF_MACHINE_OPERATION, (int)run->operation_state, msg.state)) {
        return cannot(a, run, "its state does not allow it");
    }
    hf_owned_set(a->memory, &run->progress, bytes);
    run->operation_state = (hf_operation_state)msg.state;
    run->operation_due = msg.due;
    run->status = status_of(msg.state);
    run->last_time = msg.time;
    run->close_time = hf_run_is_open(run) ? 0 : msg.close_time;
    hf_effects_due(a->effects, msg.due);
    hf_assert(run->event_count == 0); /* run-O1 */
    return a->memory->status;
}

hf_status hf_operation_read(hf_op *op, hf_run_memory *memory, hf_run *run, const hf_pb_run_state *state)
{
    hf_pb_operation_progress msg;
    if (run->kind != HF_KIND_OPERATION) {
        return state->operation.len == 0 && state->progress.len == 0
                   ? HF_OK
                   : hf_fail(op, HF_ERR_INVALID, "run %lld is a workflow and an operation", (long long)run->number);
    }
    HF_TRY(hf_pb_decode(op, &hf_pb_operation_progress_type, state->progress, memory->scratch, &msg));
    if (state->operation.len == 0 || !hf_operation_is_good(&msg) || run->status != status_of(msg.state)) {
        return hf_fail(op, HF_ERR_INVALID, "the operation of run %lld cannot be decoded", (long long)run->number);
    }
    hf_owned_set(memory, &run->operation, state->operation);
    hf_owned_set(memory, &run->progress, state->progress);
    run->operation_state = (hf_operation_state)msg.state;
    run->operation_due = msg.due;
    return memory->status;
}
