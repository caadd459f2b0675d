/* Decides: a workflow task is scheduled, given to a poller, and ends. What these are is in workflow_task.c. */
#include "engine/core_private.h"

#include "engine/answer.h"
#include "engine/due.h"
#include "engine/emit.h"
#include "engine/history_page.h"
#include "engine/machines/machines.h"
#include "engine/matching.h"
#include "engine/size.h"
#include "engine/suspect.h"
#include "engine/token.h"
#include "history/limits.h"

#define TASK_TIMEOUT_DEFAULT (INT64_C(10) * 1000000000)
#define STRETCH_FROM_ATTEMPT 4                     /* later attempts get more time ... */
#define STRETCH_FIRST (INT64_C(5) * 1000000000)    /* ... by this, doubled each time ... */
#define STRETCH_MAX (INT64_C(600) * 1000000000)    /* ... up to this */
#define STICKY_IDLE_MAX (INT64_C(10) * 1000000000) /* a sticky queue nobody polled for so long is skipped */

/* ---- Schedule ------------------------------------------------------------------------------------------------------ */

static int64_t timeout_of(hf_core *core, const hf_run *run, int32_t attempt)
{
    int64_t timeout = run->task_timeout > 0 ? run->task_timeout : TASK_TIMEOUT_DEFAULT;
    if (attempt >= STRETCH_FROM_ATTEMPT) {
        int64_t more = STRETCH_FIRST;
        for (int32_t i = STRETCH_FROM_ATTEMPT; i < attempt && more < STRETCH_MAX; i++) {
            more *= 2;
        }
        more = more < STRETCH_MAX ? more : STRETCH_MAX;
        timeout = timeout > INT64_MAX - more ? INT64_MAX : timeout + more;
        HF_PROBE(core, HF_PROBE_WFT_STRETCHED);
    }
    return timeout;
}

/* The queue it goes to: the sticky one while its worker is alive. */
static bool wants_sticky(hf_core *core, const hf_run *run)
{
    if (run->sticky_queue.len == 0 || run->sticky_queue.len > HF_ID_LEN_MAX) {
        return false;
    }
    const hf_queue *queue = hf_queue_find(core, 'w', hf_owned_str(&run->namespace), hf_owned_str(&run->sticky_queue));
    bool alive = queue != NULL && !queue->shut &&
                 (hf_queue_has_pollers(queue) || core->now.mono - queue->polled_at <= STICKY_IDLE_MAX);
    HF_PROBE(core, alive ? HF_PROBE_STICKY_USED : HF_PROBE_STICKY_SKIPPED);
    return alive;
}

static void emit_scheduled(hf_core *core, hf_run *run, int32_t attempt, int64_t timeout, int64_t time)
{
    hf_assert(core->status != HF_OK || (run->wft.state == HF_WFT_NONE && attempt > 0));
    hf_pb_task_queue queue = {
        .name = hf_owned_str(&run->task_queue),
        .kind = HF_TASK_QUEUE_KIND_NORMAL,
    };
    hf_pb_workflow_task_scheduled_event_attributes body = {
        .task_queue = &queue,
        .start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(timeout)),
        .attempt = attempt,
    };
    hf_pb_history_event event = {
        .event_time = hf_pb_timestamp_of((hf_time){time}),
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_SCHEDULED_EVENT_ATTRIBUTES,
        .workflow_task_scheduled_event_attributes = &body,
    };
    hf_event_emit(core, run, &event);
}

void hf_wft_schedule(hf_core *core, hf_run *run)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    if (core->status != HF_OK || !hf_run_is_open(run) || run->wft.state == HF_WFT_STARTED) {
        return;
    }
    /* There is news, whether or not a task waits already; nobody may ever take that. */
    if (hf_execution_is_too_long(core, run) || run->wft.state != HF_WFT_NONE) {
        return;
    }
    int32_t attempt = run->wft.attempt;
    int64_t timeout = timeout_of(core, run, attempt);
    bool is_transient = attempt > 1;
    if (!is_transient) {
        emit_scheduled(core, run, 1, timeout, core->now.wall);
    }
    hf_pb_workflow_task_scheduled msg = {
        .attempt = attempt,
        .time = core->now.wall,
        .timeout = timeout,
        .sticky = !is_transient && wants_sticky(core, run),
        .order = hf_order_next(core),
        .is_transient = is_transient,
    };
    hf_record(core, run, HF_CHANGE_TASK_SCHEDULED, &hf_pb_workflow_task_scheduled_type, &msg);
}

void hf_wft_enqueue(hf_core *core, hf_run *run)
{
    hf_wft *wft = &run->wft;
    if (core->status != HF_OK || wft->task.queue != NULL || !hf_wft_waits(wft)) {
        return;
    }
    if (hf_suspect_is_paused(core, &wft->task, wft->pause_until)) {
        hf_due_at(core, run, wft->pause_until); /* hf_wft_time_out comes back here */
        return;
    }
    bool sticky = wft->sticky && wft->state == HF_WFT_SCHEDULED && run->sticky_queue.len > 0;
    hf_str namespace_ = hf_owned_str(&run->namespace);
    hf_queue *queue = hf_queue_get(core, 'w', namespace_, hf_owned_str(sticky ? &run->sticky_queue : &run->task_queue));
    if (sticky && queue != NULL && queue->shut) {
        HF_PROBE(core, HF_PROBE_STICKY_MOVED);
        hf_wft_unstick(core, run);
        queue = hf_queue_get(core, 'w', namespace_, hf_owned_str(&run->task_queue));
    }
    wft->task.run = run;
    wft->task.scheduled_id = 0;
    hf_match_add(core, &wft->task, queue);
}

void hf_wft_again(hf_core *core, hf_run *run)
{
    if (run->wft.state != HF_WFT_STARTED || run->wft.again) {
        return;
    }
    HF_PROBE(core, HF_PROBE_TASK_AGAIN);
    hf_pb_task_moved msg = {.order = hf_order_next(core)};
    hf_record(core, run, HF_CHANGE_TASK_MOVED, &hf_pb_task_moved_type, &msg);
}

void hf_wft_lost(hf_core *core, hf_run *run)
{
    hf_wft *wft = &run->wft;
    if (wft->state != HF_WFT_STARTED || wft->again) {
        return; /* nobody had it in hand */
    }
    HF_PROBE(core, HF_PROBE_WFT_OF_DEAD);
    hf_pb_task_moved msg = {.order = hf_order_next(core), .crashes = hf_suspect_count(core, &wft->task)};
    int64_t pause = hf_suspect_pause(msg.crashes);
    msg.pause_until = pause > 0 ? core->now.wall + pause : 0;
    hf_record(core, run, HF_CHANGE_TASK_MOVED, &hf_pb_task_moved_type, &msg);
}

void hf_wft_unstick(hf_core *core, hf_run *run)
{
    if (run->sticky_queue.len > 0) {
        hf_pb_sticky msg = {.timeout = 0};
        hf_record(core, run, HF_CHANGE_STICKY, &hf_pb_sticky_type, &msg);
    }
}

/* ---- Start --------------------------------------------------------------------------------------------------------- */

/* `count` and `len` of the history before it. */
static hf_pb_history_event started_event(hf_core *core, int64_t count, int64_t len, hf_str identity, hf_str request_id,
                                         int64_t time, int64_t scheduled_id)
{
    hf_pb_workflow_task_started_event_attributes *body =
        HF_ARENA_NEW(&core->scratch, hf_pb_workflow_task_started_event_attributes);
    if (body == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return (hf_pb_history_event){0};
    }
    body->scheduled_event_id = scheduled_id;
    body->identity = identity;
    body->request_id = request_id;
    body->history_size_bytes = len;
    body->suggest_continue_as_new = count >= HF_HISTORY_SUGGEST_COUNT || len >= HF_HISTORY_SUGGEST_LEN;
    return (hf_pb_history_event){
        .event_time = hf_pb_timestamp_of((hf_time){time}),
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_STARTED_EVENT_ATTRIBUTES,
        .workflow_task_started_event_attributes = body,
    };
}

/* A request id for the started event: anything unique, made of the task's own numbers. */
static hf_str request_id_of(hf_core *core, const hf_run *run)
{
    uint64_t words[3] = {(uint64_t)run->number, (uint64_t)run->event_count, (uint64_t)run->wft.task.order};
    uint64_t high = hf_siphash(core->mac_key, hf_str_of_len(words, sizeof words));
    return hf_uuid(&core->scratch, high, hf_hash_mix(high, words[0]));
}

hf_str hf_wft_transient_events(hf_core *core, hf_run *run)
{
    hf_assert(run->wft.is_transient); /* they are not written yet */
    hf_wft *wft = &run->wft;
    hf_pb_task_queue queue = {.name = hf_owned_str(&run->task_queue), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_pb_workflow_task_scheduled_event_attributes body = {
        .task_queue = &queue,
        .start_to_close_timeout = hf_pb_duration_of(hf_nanoseconds(wft->timeout)),
        .attempt = wft->attempt,
    };
    hf_pb_history_event scheduled = {
        .event_id = wft->scheduled_id,
        .event_time = hf_pb_timestamp_of((hf_time){wft->scheduled_time}),
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_SCHEDULED_EVENT_ATTRIBUTES,
        .workflow_task_scheduled_event_attributes = &body,
    };
    hf_buf out;
    hf_buf_init(&out, core->memory, SIZE_MAX / 4);
    hf_pb_encode_field(1, &hf_pb_history_event_type, &scheduled, &out);
    /* The same as when it is written: behind its Scheduled event. */
    hf_pb_history_event started =
        started_event(core, run->event_count + 1, run->history_len + (int64_t)out.len, hf_owned_str(&wft->identity),
                      hf_owned_str(&wft->request_id), wft->started_time, wft->scheduled_id);
    started.event_id = wft->started_id;
    hf_pb_encode_field(1, &hf_pb_history_event_type, &started, &out);
    hf_str tail = hf_arena_copy(&core->scratch, hf_str_of_len(out.data, out.len));
    if (out.status != HF_OK || core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    hf_buf_deinit(&out);
    return tail;
}

static void answer(hf_core *core, hf_run *run, hf_call *call, bool sticky)
{
    hf_wft *wft = &run->wft;
    hf_pb_poll_workflow_task_queue_response *response = hf_call_response(core, call);
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
    char bytes[HF_TOKEN_LEN];
    hf_token_encode(core, &token, bytes);
    hf_arena *arena = call->arena;
    response->task_token = hf_arena_copy(arena, hf_str_of_len(bytes, sizeof bytes));
    response->workflow_execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    response->workflow_type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    response->workflow_execution_task_queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    if (arena->status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    response->workflow_execution->workflow_id = hf_arena_copy(arena, hf_owned_str(&run->workflow_id));
    response->workflow_execution->run_id = hf_arena_copy(arena, hf_owned_str(&run->run_id));
    response->workflow_type->name = hf_arena_copy(arena, hf_owned_str(&run->workflow_type));
    response->workflow_execution_task_queue->name = hf_arena_copy(arena, hf_owned_str(&run->task_queue));
    response->workflow_execution_task_queue->kind = HF_TASK_QUEUE_KIND_NORMAL;
    response->previous_started_event_id = wft->last_started_id;
    response->started_event_id = wft->started_id;
    response->attempt = wft->attempt;
    response->scheduled_time = hf_pb_timestamp_of((hf_time){wft->scheduled_time});
    response->started_time = hf_pb_timestamp_of((hf_time){wft->started_time});
    hf_page page = {.run = run->number, .next = sticky ? wft->last_started_id + 1 : 1, .last = run->event_count};
    if (wft->is_transient) {
        page.attempt = wft->attempt;
        page.stamp = wft->started_time;
    }
    hf_page_want want = {
        .page = page,
        .to = run->event_count,
        .count_max = HF_HISTORY_PAGE_COUNT,
        .extra = wft->is_transient ? hf_wft_transient_events(core, run) : HF_STR(""),
        .ret_history = &response->history,
        .ret_token = &response->next_page_token,
    };
    hf_history_reply(core, call, run, want);
}

void hf_wft_start(hf_core *core, hf_run *run, hf_call *call)
{
    hf_assert(hf_wft_waits(&run->wft) && run->wft.task.queue == NULL && hf_run_is_open(run));
    const hf_pb_poll_workflow_task_queue_request *request = call->request;
    hf_wft *wft = &run->wft;
    bool again = wft->again;
    bool sticky = wft->sticky && !again;
    int64_t order = wft->task.order;
    if (!again && wft->is_transient && wft->scheduled_id != run->event_count + 1) {
        /* Events came since: a fresh start, with events of its own. */
        HF_PROBE(core, HF_PROBE_WFT_TRANSIENT_RENEWED);
        hf_pb_workflow_task_reset reset = {.attempt_next = 1};
        hf_record(core, run, HF_CHANGE_TASK_RESET, &hf_pb_workflow_task_reset_type, &reset);
        emit_scheduled(core, run, 1, timeout_of(core, run, 1), core->now.wall);
        hf_pb_workflow_task_scheduled msg = {.order = order};
        hf_record(core, run, HF_CHANGE_TASK_SCHEDULED, &hf_pb_workflow_task_scheduled_type, &msg);
    }
    hf_str request_id =
        again ? hf_arena_copy(&core->scratch, hf_owned_str(&wft->request_id)) : request_id_of(core, run);
    if (!again && !wft->is_transient) {
        hf_pb_history_event event = started_event(core, run->event_count, run->history_len, request->identity,
                                                  request_id, core->now.wall, wft->scheduled_id);
        hf_event_emit(core, run, &event);
    }
    if (!again && wft->is_transient) {
        HF_PROBE(core, HF_PROBE_WFT_TRANSIENT);
    }
    hf_pb_workflow_task_started msg = {
        .time = again ? wft->started_time : core->now.wall,
        .incarnation = call->in_process ? core->incarnation : 0,
        .identity = request->identity,
        .request_id = request_id,
    };
    hf_record(core, run, HF_CHANGE_TASK_STARTED, &hf_pb_workflow_task_started_type, &msg);
    if (core->status == HF_OK) {
        if (hf_core_runs_ahead(core, call) && HF_SLOT(run)->commit_ahead != core->commit_next) {
            HF_SLOT(run)->commit_ahead = core->commit_next;
            core->ahead++;
        }
        answer(core, run, call, sticky);
    }
}

/* ---- End ----------------------------------------------------------------------------------------------------------- */

void hf_wft_materialise(hf_core *core, hf_run *run)
{
    hf_assert(run->wft.state == HF_WFT_STARTED);
    hf_wft *wft = &run->wft;
    if (!wft->is_transient) {
        return;
    }
    HF_PROBE(core, HF_PROBE_WFT_TRANSIENT_DONE);
    hf_str identity = hf_arena_copy(&core->scratch, hf_owned_str(&wft->identity));
    hf_str request_id = hf_arena_copy(&core->scratch, hf_owned_str(&wft->request_id));
    int64_t scheduled_time = wft->scheduled_time;
    int64_t started_time = wft->started_time;
    int64_t timeout = wft->timeout;
    int32_t attempt = wft->attempt;
    hf_pb_workflow_task_reset reset = {.attempt_next = attempt};
    hf_record(core, run, HF_CHANGE_TASK_RESET, &hf_pb_workflow_task_reset_type, &reset);
    emit_scheduled(core, run, attempt, timeout, scheduled_time);
    hf_pb_history_event event = started_event(core, run->event_count, run->history_len, identity, request_id,
                                              started_time, run->wft.scheduled_id);
    hf_event_emit(core, run, &event);
}

static void reset_attempt(hf_core *core, hf_run *run, int32_t attempt_next)
{
    hf_assert(attempt_next > 0);
    hf_pb_workflow_task_reset reset = {.attempt_next = attempt_next};
    hf_record(core, run, HF_CHANGE_TASK_RESET, &hf_pb_workflow_task_reset_type, &reset);
}

/* Buffered events are news: the next attempt is a first one, with events. */
static void flush_as_news(hf_core *core, hf_run *run)
{
    if (run->buffered.count > 0) {
        hf_flush_buffered(core, run);
        reset_attempt(core, run, 1);
    }
}

/* An attempt has ended without an answer: it may be the fault of that one worker, so it is a first attempt again, for all. */
static void for_all_again(hf_core *core, hf_run *run)
{
    if (run->sticky_queue.len > 0) {
        hf_wft_unstick(core, run);
        reset_attempt(core, run, 1);
    }
    flush_as_news(core, run);
}

void hf_wft_fail(hf_core *core, hf_run *run, int32_t cause, hf_pb_failure *failure, hf_str identity)
{
    hf_assert(run->wft.state == HF_WFT_STARTED); /* nobody fails what nobody has */
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
    for_all_again(core, run);
}

void hf_wft_fail_call(hf_core *core, hf_call *call, hf_run *run)
{
    const hf_pb_respond_workflow_task_failed_request *request = call->request;
    hf_pb_failure *failure = request->failure != NULL ? hf_failure_fit(core, request->failure) : NULL;
    hf_wft_fail(core, run, request->cause, failure, request->identity);
    hf_wft_schedule(core, run);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

void hf_wft_time_out(hf_core *core, hf_run *run)
{
    hf_wft *wft = &run->wft;
    if (wft->pause_until != 0 && wft->pause_until <= core->now.wall) {
        hf_wft_enqueue(core, run); /* if it waits, and is not there yet */
    }
    if (core->status != HF_OK || hf_wft_timeout_at(run) > core->now.wall) {
        return;
    }
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
