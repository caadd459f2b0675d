/* Rebuild: a run from its history alone. Everything else is checked against it: the state that steps, journal and state row led to must
 * be the state that the events lead to, except for the rest (run-R3). */
#include "run/run.h"

static hf_status apply_all(hf_apply *a, hf_run *run, hf_str history)
{
    hf_pb_raw field;
    while (history.len > 0) {
        hf_arena_rewind(a->memory->scratch);
        if (!hf_pb_next(&history, &field)) {
            return hf_fail(a->op, HF_ERR_INVALID, "this is not a history");
        }
        if (field.number == HF_CHANGE_EVENT) {
            HF_TRY(hf_apply_change(a, run, &field));
            hf_effects_clear(a->memory, a->effects);
        }
    }
    return HF_OK;
}

hf_status hf_rebuild(hf_op *op, hf_run_memory *memory, hf_str history, hf_run **ret_run)
{
    hf_run *run = hf_run_new(memory, 0);
    if (run == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "out of memory");
    }
    hf_effects effects;
    hf_effects_init(&effects);
    hf_apply a = {.op = op, .memory = memory, .effects = &effects, .is_history = true};
    hf_status status = hf_run_memory_judge(op, memory, apply_all(&a, run, history));
    hf_effects_deinit(memory, &effects);
    if (status != HF_OK) {
        hf_run_free(memory, run);
        return status;
    }
    *ret_run = run;
    return HF_OK;
}

/* Copies the fields that are in no history. */
static void take_identity(hf_run_memory *memory, hf_run *rebuilt, const hf_run *run)
{
    rebuilt->number = run->number;
    rebuilt->kind = run->kind;
    hf_owned_set(memory, &rebuilt->namespace, hf_owned_str(&run->namespace));
    hf_owned_set(memory, &rebuilt->workflow_id, hf_owned_str(&run->workflow_id));
    hf_owned_set(memory, &rebuilt->run_id, hf_owned_str(&run->run_id));
    hf_owned_set(memory, &rebuilt->start_request_id, hf_owned_str(&run->start_request_id));
}

hf_status hf_rebuild_compare(hf_op *op, hf_run_memory *memory, const hf_run *run, hf_str history)
{
    hf_assert(memory->scratch != NULL);
    hf_run *rebuilt = NULL;
    if (run->kind == HF_KIND_OPERATION) { /* run-O1 */
        return history.len == 0
                   ? HF_OK
                   : hf_fail(op, HF_ERR_INVALID, "run %lld is an operation, but has a history", (long long)run->number);
    }
    HF_TRY(hf_rebuild(op, memory, history, &rebuilt));
    hf_buf real;
    hf_buf twin;
    hf_buf_init(&real, memory->heap, SIZE_MAX / 4);
    hf_buf_init(&twin, memory->heap, SIZE_MAX / 4);
    take_identity(memory, rebuilt, run);
    hf_arena_rewind(memory->scratch);
    hf_run_encode(memory, run, HF_ENCODE_TOLD, HF_STR(""), &real);
    hf_run_encode(memory, rebuilt, HF_ENCODE_TOLD, HF_STR(""), &twin);
    if (real.status != HF_OK || twin.status != HF_OK) {
        hf_run_memory_fail(memory);
    }
    hf_status status = hf_run_memory_judge(op, memory, HF_OK);
    if (status == HF_OK && !hf_str_equal(hf_str_of_len(real.data, real.len), hf_str_of_len(twin.data, twin.len))) {
        status = hf_fail(op, HF_ERR_INVALID, "the state of run %lld does not match its history of %lld events",
                         (long long)run->number, (long long)run->event_count);
    }
    hf_buf_deinit(&real);
    hf_buf_deinit(&twin);
    hf_run_free(memory, rebuilt);
    return status;
}
