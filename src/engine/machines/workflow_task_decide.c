/* Workflow tasks: the decisions that schedule one, give it to a poller, and end it. Their states: run/machines/workflow_task.c. */
#include "engine/core_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/due.h"
#include "engine/emit.h"
#include "engine/history_page.h"
#include "engine/machines/machines.h"
#include "engine/machines/query.h"
#include "engine/machines/speculative.h"
#include "engine/machines/update.h"
#include "engine/matching.h"
#include "engine/size.h"
#include "engine/suspect.h"
#include "engine/token.h"
#include "history/limits.h"

#define TASK_TIMEOUT_DEFAULT (INT64_C(10) * 1000000000)
#define STRETCH_FROM_ATTEMPT 4                     /* later attempts get more time ... */
#define STRETCH_FIRST (INT64_C(5) * 1000000000)    /* ... by this, doubled each time ... */
#define STRETCH_MAX (INT64_C(600) * 1000000000)    /* ... up to this */
#define STICKY_IDLE_MAX (INT64_C(10) * 1000000000) /* a sticky queue that was not polled for this long is skipped */

static void fail_task(hf_core *core, hf_run *run, int32_t cause, hf_pb_failure *failure, hf_str identity);
static void unstick_failed(hf_core *core, hf_run *run);

/* ---- Schedule ------------------------------------------------------------------------------------------------------ */

int64_t hf_wft_timeout(hf_core *core, const hf_run *run, int32_t attempt)
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

bool hf_wft_wants_sticky(hf_core *core, const hf_run *run)
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

/* The queue that a Scheduled event names: the sticky one, also if its worker is not there and the task does not go there. */
static hf_pb_task_queue queue_of(const hf_run *run, int32_t attempt)
{
    if (attempt == 1 && run->sticky_queue.len > 0) {
        return (hf_pb_task_queue){.name = hf_owned_str(&run->sticky_queue),
                                  .kind = HF_TASK_QUEUE_KIND_STICKY,
                                  .normal_name = hf_owned_str(&run->task_queue)};
    }
    return (hf_pb_task_queue){.name = hf_owned_str(&run->task_queue), .kind = HF_TASK_QUEUE_KIND_NORMAL};
}

static void emit_scheduled(hf_core *core, hf_run *run, int32_t attempt, int64_t timeout, int64_t time)
{
    hf_assert(core->status != HF_OK || (run->wft.state == HF_WFT_NONE && attempt > 0));
    hf_pb_task_queue queue = queue_of(run, attempt);
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

static bool buffer_is_over(const hf_core *core, const hf_run *run)
{
    const hf_core_limits *limits = &core->options.limits;
    return run->buffered.count > limits->buffered_count || run->buffered_len > limits->buffered_len;
}

/* More events wait for the end of the started task than may: it ends. Nobody is at fault, and nothing is lost. */
static void overflow(hf_core *core, hf_run *run)
{
    HF_PROBE(core, HF_PROBE_BUFFER_OVER);
    fail_task(core, run, HF_WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND, NULL, HF_IDENTITY_ENGINE);
    unstick_failed(core, run);
    hf_flush_buffered(core, run); /* the attempts are counted on, unlike after other failures */
    hf_assert(core->status != HF_OK || run->buffered.count == 0);
    hf_wft_schedule(core, run);
}

/* Whether the first task of the run has to wait still. */
static bool is_held_back(const hf_core *core, const hf_run *run)
{
    return run->first_task_at > core->now.wall && !run->cancel_requested && !HF_CANARY(HF_BUG_PAUSE_SKIPPED);
}

static void schedule(hf_core *core, hf_run *run, int64_t first_time)
{
    hf_assert(!HF_SLOT(run)->loading && !HF_SLOT(run)->bad);
    hf_speculative_convert(core, run);
    if (core->status != HF_OK || !hf_run_is_open(run)) {
        return;
    }
    if (run->wft.state == HF_WFT_STARTED) {
        if (buffer_is_over(core, run)) {
            overflow(core, run);
        }
        return;
    }
    /* Events were added, so the length is checked even if a task waits already: no worker may ever take that one. Without a new
     * task the last event, or the two of an activity, may pass the limit (hf_execution_has_room). */
    bool is_next = run->wft.state == HF_WFT_NONE;
    if (hf_execution_is_too_long(core, run, is_next ? 1 : -2) || !is_next) {
        return;
    }
    int32_t attempt = run->wft.attempt;
    int64_t timeout = hf_wft_timeout(core, run, attempt);
    bool is_transient = attempt > 1;
    if (!is_transient) {
        emit_scheduled(core, run, 1, timeout, core->now.wall);
    }
    hf_pb_workflow_task_scheduled msg = {
        .attempt = attempt,
        .time = core->now.wall,
        .timeout = timeout,
        .sticky = !is_transient && hf_wft_wants_sticky(core, run),
        .order = hf_order_next(core),
        .is_transient = is_transient,
        .first_time = first_time,
    };
    hf_record(core, run, HF_CHANGE_TASK_SCHEDULED, &hf_pb_workflow_task_scheduled_type, &msg);
}

void hf_wft_schedule_next(hf_core *core, hf_run *run, int64_t first_time)
{
    if (!is_held_back(core, run)) {
        schedule(core, run, first_time);
    }
}

void hf_wft_schedule(hf_core *core, hf_run *run)
{
    hf_wft_schedule_next(core, run, 0);
}

void hf_wft_schedule_now(hf_core *core, hf_run *run)
{
    if (is_held_back(core, run)) {
        HF_PROBE(core, HF_PROBE_FIRST_TASK_EARLY);
    }
    schedule(core, run, 0);
}

void hf_wft_check_length(hf_core *core, hf_run *run)
{
    if (core->status != HF_OK || !hf_run_is_open(run)) {
        return;
    }
    if (run->wft.state != HF_WFT_STARTED) {
        (void)hf_execution_is_too_long(core, run, run->wft.state == HF_WFT_NONE ? 0 : -2);
    } else if (buffer_is_over(core, run)) {
        overflow(core, run);
    }
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
        return; /* no worker had it */
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

/* What a Started event says. */
typedef struct started_facts {
    int64_t count; /* events of the history before it ... */
    int64_t len;   /* ... and their bytes */
    bool has_many_updates;
    hf_str identity;
    hf_str request_id;
    int64_t time;
    int64_t scheduled_id;
} started_facts;

/* Whether the workflow had better continue as new, and why. */
static void suggest(hf_core *core, const started_facts *facts, hf_pb_workflow_task_started_event_attributes *body)
{
    const struct {
        bool is_so;
        int32_t reason;
    } reasons[] = {
        {facts->len >= HF_HISTORY_SUGGEST_LEN, HF_SUGGEST_CONTINUE_AS_NEW_REASON_HISTORY_SIZE_TOO_LARGE},
        {facts->count + 1 >= core->options.limits.suggest_count,
         HF_SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_HISTORY_EVENTS},
        {facts->has_many_updates, HF_SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_UPDATES},
    };
    for (size_t i = 0; i < HF_COUNT_OF(reasons); i++) {
        if (!reasons[i].is_so) {
            continue;
        }
        if (!body->suggest_continue_as_new) {
            HF_PROBE(core, HF_PROBE_SUGGESTED);
            body->suggest_continue_as_new = true;
            body->suggest_continue_as_new_reasons.items = HF_ARENA_ARRAY(&core->scratch, int32_t, HF_COUNT_OF(reasons));
        }
        if (body->suggest_continue_as_new_reasons.items != NULL) { /* hf_core_is_whole sees that there was no memory */
            body->suggest_continue_as_new_reasons.items[body->suggest_continue_as_new_reasons.count++] =
                reasons[i].reason;
        }
    }
}

static hf_pb_history_event started_event(hf_core *core, const started_facts *facts)
{
    hf_pb_workflow_task_started_event_attributes *body =
        HF_ARENA_NEW(&core->scratch, hf_pb_workflow_task_started_event_attributes);
    if (body == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return (hf_pb_history_event){0};
    }
    body->scheduled_event_id = facts->scheduled_id;
    body->identity = facts->identity;
    body->request_id = facts->request_id;
    body->history_size_bytes = facts->len;
    suggest(core, facts, body);
    return (hf_pb_history_event){
        .event_time = hf_pb_timestamp_of((hf_time){facts->time}),
        .event_type = HF_EVENT_TYPE_WORKFLOW_TASK_STARTED,
        .attributes_case = HF_PB_HISTORY_EVENT_WORKFLOW_TASK_STARTED_EVENT_ATTRIBUTES,
        .workflow_task_started_event_attributes = body,
    };
}

/* A request id for the started event: anything unique, made of the task's own numbers. */
static hf_str request_id_of(hf_core *core, const hf_run *run, const hf_wft *wft)
{
    uint64_t words[3] = {(uint64_t)run->number, (uint64_t)run->event_count, (uint64_t)wft->task.order};
    uint64_t high = hf_siphash(core->mac_key, hf_str_of_len(words, sizeof words));
    return hf_uuid(&core->scratch, high, hf_hash_mix(high, words[0]));
}

/* The same before its Started event is written and when it is: only what cannot change in between counts. */
static bool has_many_updates(const hf_core *core, const hf_run *run, const hf_wft *wft)
{
    return wft == &run->wft ? hf_updates_are_many(core, run, false) : wft->has_many_updates;
}

/* The events of a transient or speculative task; the second one if it is started. */
static hf_str events_of(hf_core *core, const hf_run *run, const hf_wft *wft, hf_str identity)
{
    hf_assert(wft->is_transient); /* its events are not written yet */
    hf_pb_task_queue queue = queue_of(run, wft->attempt);
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
    /* The numbers are those it gets when it is written, after its Scheduled event. */
    if (wft->state == HF_WFT_STARTED) {
        hf_pb_history_event started = started_event(core, &(started_facts){
                                                              .count = run->event_count + 1,
                                                              .len = run->history_len + (int64_t)out.len,
                                                              .has_many_updates = has_many_updates(core, run, wft),
                                                              .identity = identity,
                                                              .request_id = hf_owned_str(&wft->request_id),
                                                              .time = wft->started_time,
                                                              .scheduled_id = wft->scheduled_id,
                                                          });
        started.event_id = wft->started_id;
        hf_pb_encode_field(1, &hf_pb_history_event_type, &started, &out);
    }
    hf_str tail = hf_arena_copy(&core->scratch, hf_str_of_len(out.data, out.len));
    if (out.status != HF_OK || core->scratch.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    hf_buf_deinit(&out);
    return tail;
}

hf_str hf_wft_transient_events(hf_core *core, const hf_run *run, const hf_wft *wft)
{
    hf_assert(wft->state == HF_WFT_STARTED);
    return events_of(core, run, wft, hf_owned_str(&wft->identity));
}

hf_str hf_wft_unwritten_events(hf_core *core, const hf_run *run, const hf_wft *wft)
{
    bool has_them = wft->state != HF_WFT_NONE && wft->is_transient && wft->scheduled_id == run->event_count + 1;
    return has_them ? events_of(core, run, wft, HF_STR(""))
                    : HF_STR(""); /* who has the task is not said, as on Temporal */
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
        emit_scheduled(core, run, 1, hf_wft_timeout(core, run, 1), core->now.wall);
        hf_pb_workflow_task_scheduled msg = {.order = order};
        hf_record(core, run, HF_CHANGE_TASK_SCHEDULED, &hf_pb_workflow_task_scheduled_type, &msg);
    }
    hf_str request_id =
        again ? hf_arena_copy(&core->scratch, hf_owned_str(&wft->request_id)) : request_id_of(core, run, wft);
    if (!again && !wft->is_transient) {
        hf_pb_history_event event = started_event(core, &(started_facts){
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
        answer(core, run, &run->wft, call, *ret_task, true, false); /* the caller knows what was before */
    }
    if (HF_CANARY(HF_BUG_INLINE_TWICE)) {
        hf_wft_again(core, run);
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
    hf_pb_history_event event = started_event(core, &(started_facts){
                                                        .count = run->event_count,
                                                        .len = run->history_len,
                                                        .has_many_updates = hf_updates_are_many(core, run, false),
                                                        .identity = identity,
                                                        .request_id = request_id,
                                                        .time = started_time,
                                                        .scheduled_id = run->wft.scheduled_id,
                                                    });
    hf_event_emit(core, run, &event);
}

void hf_wft_write(hf_core *core, hf_run *run, const hf_wft *from, hf_str identity)
{
    hf_assert(from->attempt == 1 && from->state != HF_WFT_NONE);
    emit_scheduled(core, run, 1, from->timeout, from->scheduled_time);
    if (from->state == HF_WFT_SCHEDULED) {
        hf_pb_workflow_task_scheduled msg = {.sticky = from->sticky, .order = from->task.order};
        hf_record(core, run, HF_CHANGE_TASK_SCHEDULED, &hf_pb_workflow_task_scheduled_type, &msg);
        return;
    }
    hf_pb_history_event event = started_event(core, &(started_facts){
                                                        .count = run->event_count,
                                                        .len = run->history_len,
                                                        .has_many_updates = from->has_many_updates,
                                                        .identity = identity,
                                                        .request_id = hf_owned_str(&from->request_id),
                                                        .time = from->started_time,
                                                        .scheduled_id = run->wft.scheduled_id,
                                                    });
    hf_event_emit(core, run, &event);
    hf_pb_workflow_task_started msg = {
        .time = from->started_time,
        .incarnation = from->incarnation,
        .identity = hf_owned_str(&from->identity),
        .request_id = hf_owned_str(&from->request_id),
    };
    hf_record(core, run, HF_CHANGE_TASK_STARTED, &hf_pb_workflow_task_started_type, &msg);
    if (from->again) {
        hf_pb_task_moved moved = {.order = from->task.order};
        hf_record(core, run, HF_CHANGE_TASK_MOVED, &hf_pb_task_moved_type, &moved);
    }
}

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
static void unstick_failed(hf_core *core, hf_run *run)
{
    if (run->sticky_queue.len > 0) {
        hf_wft_unstick(core, run);
        reset_attempt(core, run, 1);
    }
}

static void for_all_again(hf_core *core, hf_run *run)
{
    unstick_failed(core, run);
    flush_as_news(core, run);
}

static void fail_task(hf_core *core, hf_run *run, int32_t cause, hf_pb_failure *failure, hf_str identity)
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
    fail_task(core, run, cause, failure, identity);
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
