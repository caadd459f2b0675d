/* Workflow tasks that fail or time out, and the attempt that follows. Completed ones: commands.c. */
#include "engine/machines/workflow_task_private.h"

#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/machines/machines.h"
#include "engine/machines/query.h"
#include "engine/machines/speculative.h"
#include "engine/matching.h"
#include "engine/size.h"

static void reset_attempt(hf_core *core, hf_run *run, int32_t attempt_next)
{
    hf_assert(attempt_next > 0);
    hf_pb_workflow_task_reset reset = {.attempt_next = attempt_next};
    hf_record(core, run, HF_CHANGE_TASK_RESET, &hf_pb_workflow_task_reset_type, &reset);
}

/* If buffered events are added to the history, the next attempt counts as a first one, with events of its own. */
static void flush_as_news(hf_core *core, hf_run *run)
{
    if (run->buffered.count > 0) {
        hf_flush_buffered(core, run);
        reset_attempt(core, run, 1);
    }
}

/* An attempt has failed or timed out. If it was sticky that may be the fault of the one worker: the next one counts as a first
 * attempt and is for all workers. */
void hf_wft_unstick_failed(hf_core *core, hf_run *run)
{
    if (run->sticky_queue.len > 0) {
        hf_wft_unstick(core, run);
        reset_attempt(core, run, 1);
    }
}

static void for_all_again(hf_core *core, hf_run *run)
{
    hf_wft_unstick_failed(core, run);
    flush_as_news(core, run);
}

void hf_wft_fail_task(hf_core *core, hf_run *run, int32_t cause, hf_pb_failure *failure, hf_str identity)
{
    hf_assert(run->wft.state == HF_WFT_STARTED); /* only a started task can fail */
    hf_wft *wft = &run->wft;
    hf_match_remove(core, &wft->task);
    if (wft->is_transient) {
        reset_attempt(core, run, wft->attempt + 1);
    } else {
        hf_pb_workflow_task_failed_event_attributes body = {
            .scheduled_event_id = wft->scheduled_id,
            .started_event_id = wft->started_id,
            .cause = cause,
            .failure = failure,
            .identity = identity,
        };
        hf_pb_history_event event = {
            .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_FAILED,
            .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_FAILED_EVENT_ATTRIBUTES,
            .workflow_task_failed_event_attributes = &body,
        };
        hf_event_emit(core, run, &event);
    }
}

void hf_wft_fail(hf_core *core, hf_run *run, int32_t cause, hf_pb_failure *failure, hf_str identity)
{
    hf_wft_fail_task(core, run, cause, failure, identity);
    for_all_again(core, run);
}

void hf_wft_fail_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_respond_workflow_task_failed_request *request = call->request;
    hf_pb_failure *failure = request->failure != NULL ? hf_failure_fit(core, request->failure) : NULL;
    if (request->cause == HF_WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR) {
        hf_queries_refuse_attached(core, run, failure);
    }
    hf_wft_fail(core, run, request->cause, failure, request->identity);
    hf_wft_schedule(core, run);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

static void time_out(hf_core *core, hf_run *run)
{
    hf_wft *wft = &run->wft;
    bool sticky = wft->state == HF_WFT_SCHEDULED;
    if (sticky) {
        HF_PROBE(core, HF_PROBE_STICKY_TIMED_OUT);
    }
    hf_match_remove(core, &wft->task);
    if (wft->is_transient) {
        reset_attempt(core, run, wft->attempt + 1);
    } else {
        hf_pb_workflow_task_timed_out_event_attributes body = {
            .scheduled_event_id = wft->scheduled_id,
            .started_event_id = wft->started_id,
            .timeout_type = sticky ? HF_TIMEOUT_TYPE_SCHEDULE_TO_START : HF_TIMEOUT_TYPE_START_TO_CLOSE,
        };
        hf_pb_history_event event = {
            .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
            .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_TIMED_OUT_EVENT_ATTRIBUTES,
            .workflow_task_timed_out_event_attributes = &body,
        };
        hf_event_emit(core, run, &event);
    }
    for_all_again(core, run);
    hf_wft_schedule(core, run);
}

void hf_wft_time_out(hf_core *core, hf_run *run)
{
    hf_wft *wft = &run->wft;
    if (hf_speculative_due(run) <= core->now.wall) {
        hf_speculative_convert(core, run);
    }
    if (wft->pause_until != 0 && wft->pause_until <= core->now.wall) {
        hf_wft_enqueue(core, run); /* if it waits and is not in its queue yet */
    }
    if (core->status != HF_OK || hf_wft_timeout_at(run) > core->now.wall) {
        return;
    }
    time_out(core, run);
}

void hf_wft_keep_alive_over(hf_core *core, hf_run *run)
{
    HF_PROBE(core, HF_PROBE_WFT_HEARTBEAT_OVER);
    hf_assert(run->wft.state == HF_WFT_STARTED);
    time_out(core, run);
}
