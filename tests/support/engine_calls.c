#include "support/engine_calls.h"

#include "history/payload.h"
#include "support/engine_ask.h"

#include <string.h>

/* "sinput=BYTES" */
static hf_pb_payloads *signal_input(hf_arena *arena, const hf_words *w)
{
    size_t len = (size_t)hf_words_number(w, "sinput", 0);
    if (hf_words_option(w, "sinput") == NULL) {
        return NULL;
    }
    hf_pb_payload payload = {.data = hf_str_of_len(hf_arena_zero(arena, len, 1), len)};
    return hf_payloads_of(arena, payload);
}

static void signal_with_start(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_signal_with_start_workflow_execution_request *request =
        HF_RIG_REQUEST(slot, signal_with_start_workflow_execution);
    hf_arena *arena = &slot->request;
    hf_pb_start_workflow_execution_request start = {0};
    hf_words_start(arena, w, &start);
    *request = (hf_pb_signal_with_start_workflow_execution_request){
        .namespace = start.namespace,
        .workflow_id = start.workflow_id,
        .workflow_type = start.workflow_type,
        .task_queue = start.task_queue,
        .input = start.input,
        .workflow_execution_timeout = start.workflow_execution_timeout,
        .workflow_run_timeout = start.workflow_run_timeout,
        .workflow_task_timeout = start.workflow_task_timeout,
        .request_id = start.request_id,
        .workflow_id_reuse_policy = start.workflow_id_reuse_policy,
        .workflow_id_conflict_policy = start.workflow_id_conflict_policy,
        .retry_policy = start.retry_policy,
        .cron_schedule = start.cron_schedule,
        .memo = start.memo,
        .search_attributes = start.search_attributes,
        .header = start.header,
        .workflow_start_delay = start.workflow_start_delay,
        .signal_name = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 2))),
        .signal_input = signal_input(arena, w),
    };
    hf_rig_send(rig, slot, HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION, request);
}

bool hf_rig_client(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    const char *verb = hf_words_place(w, 0);
    if (strcmp(verb, "sigstart") == 0) {
        signal_with_start(rig, slot, w);
    } else {
        return false;
    }
    return true;
}
