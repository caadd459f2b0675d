/* Workflow tasks are given to workers: the task starts, and the answer to a poll brings it with its history. */
#include "engine/machines/workflow_task_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/history_page.h"
#include "engine/machines/machines.h"
#include "engine/machines/query.h"
#include "engine/machines/speculative.h"
#include "engine/machines/update.h"
#include "engine/matching.h"
#include "engine/token.h"
#include "history/limits.h"
#include "run/stream.h"

/* A request id for the started event: anything unique, made of the task's own numbers. */
static hf_str request_id_of(hf_core *core, const hf_run *run, const hf_wft *wft)
{
    uint64_t words[3] = {(uint64_t)run->number, (uint64_t)run->event_count, (uint64_t)wft->task.order};
    uint64_t high = hf_siphash(core->mac_key, hf_str_of_len(words, sizeof words));
    return hf_uuid_in(&core->scratch, high, hf_hash_mix(high, words[0]));
}

bool hf_wft_name_task(hf_core *core, const hf_run *run, hf_call *call, const hf_token *token,
                      hf_pb_poll_workflow_task_queue_response *response)
{
    char bytes[HF_TOKEN_LEN];
    hf_token_encode(core, token, bytes);
    hf_arena *arena = call->arena;
    response->task_token = hf_arena_copy(arena, hf_str_of_len(bytes, sizeof bytes));
    response->workflow_execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    response->workflow_type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    response->workflow_execution_task_queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    if (arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return false;
    }
    response->workflow_execution->workflow_id = hf_arena_copy(arena, hf_owned_str(&run->workflow_id));
    response->workflow_execution->run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id));
    response->workflow_type->name = hf_arena_copy(arena, hf_owned_str(&run->workflow_type));
    response->workflow_execution_task_queue->name = hf_arena_copy(arena, hf_owned_str(&run->task_queue));
    response->workflow_execution_task_queue->kind = HF_TASK_QUEUE_KIND_NORMAL;
    response->previous_started_event_id = run->wft.last_started_id;
    if (run->stream != NULL) {
        response->holdfast_stream_count = run->stream->first;
        response->holdfast_stream_len = run->stream->first_len;
    }
    return true;
}

/* Fills the task into the answer of a call, or into a part of it, and replies. */
static void answer(hf_core *core, hf_run *run, const hf_wft *wft, hf_call *call,
                   hf_pb_poll_workflow_task_queue_response *response, bool sticky, bool again)
{
    if (response == NULL) {
        return;
    }
    hf_token token = {
        .run = run->number,
        .scheduled_id = wft->scheduled_id,
        .started_id = wft->started_id,
        .attempt = wft->attempt,
        .stamp = wft->started_time,
    };
    if (wft != &run->wft) {
        hf_speculative_token(core, wft, &token);
    }
    if (!hf_wft_name_task(core, run, call, &token, response)) {
        return;
    }
    response->started_event_id = wft->started_id;
    response->attempt = wft->attempt;
    response->scheduled_time = hf_pb_timestamp_of((hf_time){wft->scheduled_time});
    response->started_time = hf_pb_timestamp_of((hf_time){wft->started_time});
    hf_queries_attach(core, run, again, call, response);
    hf_updates_attach(core, run, again, wft->started_id, call, response);
    hf_page page = {.run = run->number, .next = sticky ? wft->last_started_id + 1 : 1, .last = run->event_count};
    if (wft->is_transient) {
        page.attempt = wft->attempt;
        page.stamp = wft->started_time;
    }
    hf_page_want want = {
        .page = page,
        .to = run->event_count,
        .count_max = HF_HISTORY_PAGE_COUNT,
        .extra = wft->is_transient ? hf_wft_transient_events(core, run, wft) : HF_STR(""),
        .ret_history = &response->history,
        .ret_token = &response->next_page_token,
    };
    hf_history_reply(core, call, run, want);
}

void hf_wft_answer(hf_core *core, hf_run *run, const hf_wft *wft, hf_call *call, bool sticky, bool again)
{
    answer(core, run, wft, call, hf_call_response(core, call), sticky, again);
}

/* The caller has the task from now on. */
static void begin(hf_core *core, hf_run *run, const hf_call *call, hf_str identity)
{
    hf_assert(hf_wft_waits(&run->wft) && hf_run_is_open(run));
    hf_assert(run->wft.task.queue == NULL);
    hf_wft *wft = &run->wft;
    bool again = wft->again;
    int64_t order = wft->task.order;
    if (!again && wft->is_transient && wft->scheduled_id != run->event_count + 1) {
        /* Events came since: it becomes a first attempt, with events of its own. */
        HF_PROBE(core, HF_PROBE_WFT_TRANSIENT_RENEWED);
        hf_pb_workflow_task_reset reset = {.attempt_next = 1};
        hf_record(core, run, HF_CHANGE_TASK_RESET, &hf_pb_workflow_task_reset_type, &reset);
        hf_wft_emit_scheduled(core, run, 1, hf_wft_timeout(core, run, 1), core->now.wall);
        hf_pb_workflow_task_scheduled msg = {.order = order};
        hf_record(core, run, HF_CHANGE_TASK_SCHEDULED, &hf_pb_workflow_task_scheduled_type, &msg);
    }
    hf_str request_id =
        again ? hf_arena_copy(&core->scratch, hf_owned_str(&wft->request_id)) : request_id_of(core, run, wft);
    if (!again && !wft->is_transient) {
        hf_pb_history_event event =
            hf_wft_started_event(core, &(hf_wft_facts){
                                           .count = run->event_count,
                                           .len = run->history_len,
                                           .has_many_updates = hf_updates_are_many(core, run, true),
                                           .identity = identity,
                                           .request_id = request_id,
                                           .time = core->now.wall,
                                           .scheduled_id = wft->scheduled_id,
                                       });
        hf_event_emit(core, run, &event);
    }
    if (!again && wft->is_transient) {
        HF_PROBE(core, HF_PROBE_WFT_TRANSIENT);
    }
    hf_pb_workflow_task_started msg = {
        .time = again ? wft->started_time : core->now.wall,
        .incarnation = call->in_process ? core->incarnation : 0,
        .identity = identity,
        .request_id = request_id,
    };
    hf_record(core, run, HF_CHANGE_TASK_STARTED, &hf_pb_workflow_task_started_type, &msg);
}

void hf_wft_start(hf_core *core, hf_run *run, hf_call *call)
{
    const hf_pb_poll_workflow_task_queue_request *request = call->request;
    bool again = run->wft.again;
    bool sticky = run->wft.sticky && !again;
    begin(core, run, call, request->identity);
    if (core->status == HF_OK) {
        if (hf_core_runs_ahead(core, call) && HF_SLOT(run)->commit_ahead != core->commit_next) {
            HF_SLOT(run)->commit_ahead = core->commit_next;
            core->ahead++;
        }
        hf_wft_answer(core, run, &run->wft, call, sticky, again);
    }
}

bool hf_wft_may_go_with(const hf_core *core, const hf_run *run, const hf_call *call)
{
    return core->status == HF_OK && hf_run_is_open(run) && run->wft.state == HF_WFT_SCHEDULED &&
           run->wft.task.queue != NULL && !run->wft.task.is_last && (core->alone.run == 0 || !call->in_process);
}

void hf_wft_start_with(hf_core *core, hf_run *run, hf_call *call, hf_str identity,
                       hf_pb_poll_workflow_task_queue_response **ret_task)
{
    hf_assert(hf_wft_may_go_with(core, run, call));
    hf_match_remove(core, &run->wft.task);
    begin(core, run, call, identity);
    *ret_task = HF_ARENA_NEW(call->arena, hf_pb_poll_workflow_task_queue_response);
    if (*ret_task == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    if (core->status == HF_OK) {
        answer(core, run, &run->wft, call, *ret_task, true, false); /* the caller knows the events before */
    }
    if (HF_CANARY(HF_BUG_INLINE_TWICE)) {
        hf_wft_again(core, run);
    }
}
