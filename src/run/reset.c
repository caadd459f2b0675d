/* The resets that a run knows of: which requests made runs, so that a repeated one is answered with the same run, and which run took its place.
 * None of it is part of the history. */
#include "run/machines.h"

#include "history/limits.h"

#include <string.h>

static void forget(hf_run_memory *memory, hf_reset_made *made)
{
    hf_owned_free(memory, &made->request_id);
    hf_owned_free(memory, &made->run_id);
}

void hf_resets_free(hf_run_memory *memory, hf_run *run)
{
    for (size_t i = 0; i < run->resets.count; i++) {
        forget(memory, &run->resets.items[i]);
    }
    HF_VEC_FREE(memory, &run->resets);
    hf_owned_free(memory, &run->reset_run_id);
}

void hf_resets_add(hf_run_memory *memory, hf_run *run, hf_str request_id, hf_str run_id)
{
    hf_assert(run->resets.count <= HF_RESETS_KEPT_MAX);
    if (run->resets.count == HF_RESETS_KEPT_MAX) {
        forget(memory, &run->resets.items[0]);
        run->resets.count--;
        memmove(&run->resets.items[0], &run->resets.items[1], run->resets.count * sizeof *run->resets.items);
    }
    if (HF_VEC_RESERVE(memory, &run->resets)) {
        hf_reset_made *made = &run->resets.items[run->resets.count++];
        *made = (hf_reset_made){0};
        hf_owned_set(memory, &made->request_id, request_id);
        hf_owned_set(memory, &made->run_id, run_id);
    }
}

hf_str hf_run_reset_by(const hf_run *run, hf_str request_id)
{
    for (size_t i = run->resets.count; i > 0 && request_id.len > 0; i--) {
        if (hf_str_equal(hf_owned_str(&run->resets.items[i - 1].request_id), request_id)) {
            return hf_owned_str(&run->resets.items[i - 1].run_id);
        }
    }
    return HF_STR("");
}

hf_status hf_run_apply_reset(hf_apply *a, hf_run *run, hf_str bytes)
{
    hf_pb_run_reset msg;
    HF_TRY(hf_pb_decode(a->op, &hf_pb_run_reset_type, bytes, a->memory->scratch, &msg));
    if (msg.run_id.len == 0 || msg.run_id.len > HF_ID_LEN_MAX || msg.request_id.len > HF_ID_LEN_MAX) {
        return hf_fail(a->op, HF_ERR_INVALID, "run %lld: a reset has no run, or its ids are too long",
                       (long long)run->number);
    }
    if (msg.request_id.len > 0) {
        hf_resets_add(a->memory, run, msg.request_id, msg.run_id);
    }
    if (msg.is_base) {
        hf_owned_set(a->memory, &run->reset_run_id, msg.run_id);
    }
    return a->memory->status;
}

/* The identity says it, as on a Temporal server: the event has no other place for it. */
bool hf_event_is_of_reset(const hf_pb_history_event *event)
{
    return event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED &&
           hf_str_equal(event->workflow_execution_terminated_event_attributes->identity, HF_RESETTER);
}
