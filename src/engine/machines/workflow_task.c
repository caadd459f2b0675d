/* The workflow task: at most one is pending per run.
 *
 *              schedule            a poller              completed, failed, timed out
 *     none ----------------> scheduled -----> started ---------------------------------> none
 *       ^                        |  sticky, not taken in time
 *       +------------------------+
 *
 * The first attempt writes its Scheduled and Started events as it goes. After a failure or a timeout, which is an event, the
 * next attempts are *transient*: they are state only, shown to the worker as the two events that would come next, and
 * written when one of them completes. When new events arrive before a transient task is started, it becomes a first attempt
 * again, with events.
 *
 * While a task is started, what happens to the run is buffered (R5 in run.h) and becomes events when the task ends. */
#include "engine/core.h"

#include "base/limits.h"

static const hf_rule RULES[HF_WFT_STATE_COUNT] = {
    [HF_WFT_NONE] = {"none", HF_BIT(HF_WFT_SCHEDULED)},
    [HF_WFT_SCHEDULED] = {"scheduled", HF_BIT(HF_WFT_STARTED) | HF_BIT(HF_WFT_NONE)},
    [HF_WFT_STARTED] = {"started", HF_BIT(HF_WFT_NONE) | HF_BIT(HF_WFT_STARTED)}, /* to another holder */
};
const hf_machine hf_workflow_task_machine = {"workflow task", RULES, HF_WFT_STATE_COUNT};

#define TASK_TIMEOUT_DEFAULT (INT64_C(10) * 1000000000)
#define STRETCH_FROM_ATTEMPT 4                     /* later attempts get more time ... */
#define STRETCH_FIRST (INT64_C(5) * 1000000000)    /* ... by this, doubled each time ... */
#define STRETCH_MAX (INT64_C(600) * 1000000000)    /* ... up to this */
#define STICKY_IDLE_MAX (INT64_C(10) * 1000000000) /* a sticky queue nobody polled for so long is skipped */

bool hf_wft_move(hf_core *core, hf_run *run, hf_wft_state state)
{
    if (!hf_walk(&core->walked, HF_MACHINE_WORKFLOW_TASK, (int)run->wft.state, (int)state)) {
        return false;
    }
    run->wft.state = state;
    return true;
}

/* ---- Apply ----------------------------------------------------------------------------------------------------------- */

static hf_status cannot(hf_op *op, const hf_run *run, const char *what)
{
    return hf_fail(op, HF_ERR_INVALID, "run %lld: its workflow task cannot be %s while it is %s",
                   (long long)run->number, what, RULES[run->wft.state].name);
}

static void forget(hf_core *core, hf_run *run, int32_t attempt_next)
{
    hf_wft *wft = &run->wft;
    wft->attempt = attempt_next;
    wft->scheduled_id = wft->started_id = 0;
    wft->scheduled_time = wft->started_time = wft->timeout = 0;
    wft->incarnation = 0;
    wft->is_transient = wft->sticky = wft->again = false;
    wft->task.order = 0;
    hf_owned_free(core, &wft->identity);
    hf_owned_free(core, &wft->request_id);
}

hf_status hf_wft_scheduled(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_task_scheduled_event_attributes *attrs = event->workflow_task_scheduled_event_attributes;
    if (!hf_wft_move(core, run, HF_WFT_SCHEDULED)) {
        return cannot(op, run, "scheduled");
    }
    hf_wft *wft = &run->wft;
    wft->scheduled_id = event->event_id;
    wft->started_id = 0;
    wft->attempt = attrs->attempt > 0 ? attrs->attempt : 1;
    wft->scheduled_time = hf_pb_timestamp_time(event->event_time).ns;
    wft->started_time = 0;
    wft->timeout = hf_pb_duration_span(attrs->start_to_close_timeout).ns;
    wft->is_transient = wft->again = false;
    return HF_OK;
}

hf_status hf_wft_started(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_task_started_event_attributes *attrs = event->workflow_task_started_event_attributes;
    if (run->wft.state != HF_WFT_SCHEDULED || attrs->scheduled_event_id != run->wft.scheduled_id ||
        !hf_wft_move(core, run, HF_WFT_STARTED)) {
        return cannot(op, run, "started");
    }
    run->wft.started_id = event->event_id;
    run->wft.started_time = hf_pb_timestamp_time(event->event_time).ns;
    hf_due_at(core, run, hf_wft_deadline(run));
    return HF_OK;
}

hf_status hf_wft_completed(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_task_completed_event_attributes *attrs = event->workflow_task_completed_event_attributes;
    if (run->wft.state != HF_WFT_STARTED || attrs->started_event_id != run->wft.started_id ||
        !hf_wft_move(core, run, HF_WFT_NONE)) {
        return cannot(op, run, "completed");
    }
    run->wft.last_started_id = attrs->started_event_id;
    run->wft.completed_id = event->event_id;
    forget(core, run, 1);
    return HF_OK;
}

hf_status hf_wft_timed_out(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_task_timed_out_event_attributes *attrs = event->workflow_task_timed_out_event_attributes;
    if (attrs->scheduled_event_id != run->wft.scheduled_id || !hf_wft_move(core, run, HF_WFT_NONE)) {
        return cannot(op, run, "timed out");
    }
    /* A sticky task that nobody took says nothing against the run: the next one is a first attempt again. */
    bool sticky = attrs->timeout_type == HF_TIMEOUT_TYPE_SCHEDULE_TO_START;
    forget(core, run, sticky ? run->wft.attempt : run->wft.attempt + 1);
    return HF_OK;
}

hf_status hf_wft_failed(hf_op *op, hf_core *core, hf_run *run, const hf_pb_history_event *event, hf_str bytes)
{
    (void)bytes;
    const hf_pb_workflow_task_failed_event_attributes *attrs = event->workflow_task_failed_event_attributes;
    if (run->wft.state != HF_WFT_STARTED || attrs->scheduled_event_id != run->wft.scheduled_id ||
        !hf_wft_move(core, run, HF_WFT_NONE)) {
        return cannot(op, run, "failed");
    }
    forget(core, run, run->wft.attempt + 1);
    return HF_OK;
}

hf_status hf_wft_apply_scheduled(hf_op *op, hf_core *core, hf_run *run, hf_str bytes)
{
    hf_pb_workflow_task_scheduled msg;
    HF_TRY(hf_pb_decode(op, &hf_pb_workflow_task_scheduled_type, bytes, &core->scratch, &msg));
    hf_wft *wft = &run->wft;
    if (msg.is_transient) {
        if (!hf_wft_move(core, run, HF_WFT_SCHEDULED)) {
            return cannot(op, run, "scheduled");
        }
        wft->is_transient = true;
        wft->attempt = msg.attempt;
        wft->scheduled_time = msg.time;
        wft->timeout = msg.timeout;
        wft->scheduled_id = run->event_count + 1;
    }
    wft->sticky = msg.sticky;
    wft->task.order = msg.order;
    if (wft->sticky) {
        hf_due_at(core, run, hf_wft_deadline(run));
    }
    return HF_OK;
}

hf_status hf_wft_apply_started(hf_op *op, hf_core *core, hf_run *run, hf_str bytes)
{
    hf_pb_workflow_task_started msg;
    HF_TRY(hf_pb_decode(op, &hf_pb_workflow_task_started_type, bytes, &core->scratch, &msg));
    hf_wft *wft = &run->wft;
    bool fresh = wft->is_transient && wft->state == HF_WFT_SCHEDULED;
    if (wft->state == HF_WFT_NONE || ((fresh || wft->again) && !hf_wft_move(core, run, HF_WFT_STARTED))) {
        return cannot(op, run, "given to a worker");
    }
    if (fresh) {
        wft->scheduled_id = run->event_count + 1;
        wft->started_id = run->event_count + 2;
        wft->started_time = msg.time;
        hf_due_at(core, run, hf_wft_deadline(run));
    }
    wft->incarnation = msg.incarnation;
    wft->again = false;
    hf_owned_set(core, &wft->identity, msg.identity);
    hf_owned_set(core, &wft->request_id, msg.request_id);
    return HF_OK;
}

hf_status hf_wft_apply_reset(hf_op *op, hf_core *core, hf_run *run, hf_str bytes)
{
    hf_pb_workflow_task_reset msg;
    HF_TRY(hf_pb_decode(op, &hf_pb_workflow_task_reset_type, bytes, &core->scratch, &msg));
    if (run->wft.state != HF_WFT_NONE && (!run->wft.is_transient || !hf_wft_move(core, run, HF_WFT_NONE))) {
        return cannot(op, run, "dropped");
    }
    forget(core, run, msg.attempt_next);
    return HF_OK;
}

hf_status hf_task_apply_moved(hf_op *op, hf_core *core, hf_run *run, hf_str bytes)
{
    hf_pb_task_moved msg;
    HF_TRY(hf_pb_decode(op, &hf_pb_task_moved_type, bytes, &core->scratch, &msg));
    hf_activity *activity = msg.scheduled_id != 0 ? hf_run_activity(run, msg.scheduled_id) : NULL;
    if (msg.scheduled_id != 0 && activity == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "there is no activity of event %lld", (long long)msg.scheduled_id);
    }
    if (activity != NULL) {
        activity->task.order = msg.order;
        activity->again = true;
    } else {
        run->wft.task.order = msg.order;
        run->wft.again = true;
    }
    return HF_OK;
}

/* ---- Decide: schedule ------------------------------------------------------------------------------------------------ */

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
    hf_pb_task_queue queue = {
        .name = hf_owned_str(&run->task_queue),
        .kind = HF_TASK_QUEUE_KIND_NORMAL,
    };
    hf_pb_workflow_task_scheduled_event_attributes body = {
        .task_queue = &queue,
        .start_to_close_timeout = hf_pb_duration_of((hf_span){timeout}),
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
    hf_wft_enqueue(core, run);
}

void hf_wft_enqueue(hf_core *core, hf_run *run)
{
    hf_wft *wft = &run->wft;
    if (core->status != HF_OK || wft->task.queue != NULL ||
        !(wft->state == HF_WFT_SCHEDULED || (wft->state == HF_WFT_STARTED && wft->again))) {
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
    hf_wft_enqueue(core, run);
}

void hf_wft_unstick(hf_core *core, hf_run *run)
{
    if (run->sticky_queue.len > 0) {
        hf_pb_sticky msg = {.timeout = 0};
        hf_record(core, run, HF_CHANGE_STICKY, &hf_pb_sticky_type, &msg);
    }
}

/* ---- Decide: start --------------------------------------------------------------------------------------------------- */

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
    hf_wft *wft = &run->wft;
    hf_pb_task_queue queue = {.name = hf_owned_str(&run->task_queue), .kind = HF_TASK_QUEUE_KIND_NORMAL};
    hf_pb_workflow_task_scheduled_event_attributes body = {
        .task_queue = &queue,
        .start_to_close_timeout = hf_pb_duration_of((hf_span){wft->timeout}),
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
        if (call->run_ahead && call->in_process && run->commit_ahead != core->commit_next) {
            run->commit_ahead = core->commit_next;
            core->ahead++;
        }
        answer(core, run, call, sticky);
    }
}

/* ---- Decide: end ----------------------------------------------------------------------------------------------------- */

bool hf_wft_is(const hf_run *run, int64_t scheduled_id, int64_t started_id, int32_t attempt, int64_t stamp)
{
    const hf_wft *wft = &run->wft;
    return hf_run_is_open(run) && wft->state == HF_WFT_STARTED && wft->scheduled_id == scheduled_id &&
           wft->started_id == started_id && wft->attempt == attempt && wft->started_time == stamp;
}

void hf_wft_materialise(hf_core *core, hf_run *run)
{
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

void hf_wft_fail(hf_core *core, hf_run *run, int32_t cause, hf_pb_failure *failure, hf_str identity)
{
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
    if (run->sticky_queue.len > 0) { /* it may be the fault of that one worker: a first attempt again, for all */
        hf_wft_unstick(core, run);
        reset_attempt(core, run, 1);
    }
    flush_as_news(core, run);
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

static int64_t after(int64_t time, int64_t span)
{
    int64_t sum = 0;
    return __builtin_add_overflow(time, span, &sum) ? INT64_MAX : sum;
}

int64_t hf_wft_deadline(const hf_run *run)
{
    const hf_wft *wft = &run->wft;
    switch (wft->state) {
    case HF_WFT_STARTED:
        return after(wft->started_time, wft->timeout);
    case HF_WFT_SCHEDULED:
        return wft->sticky && run->sticky_timeout > 0 ? after(wft->scheduled_time, run->sticky_timeout) : INT64_MAX;
    case HF_WFT_NONE:
        break;
    }
    return INT64_MAX;
}

void hf_wft_time_out(hf_core *core, hf_run *run)
{
    hf_wft *wft = &run->wft;
    if (core->status != HF_OK || hf_wft_deadline(run) > core->now.wall) {
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
    if (run->sticky_queue.len > 0) { /* it may be the fault of that one worker: a first attempt again, for all */
        hf_wft_unstick(core, run);
        reset_attempt(core, run, 1);
    }
    flush_as_news(core, run);
    hf_wft_schedule(core, run);
}
