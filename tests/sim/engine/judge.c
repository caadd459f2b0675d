/* The judgement: compares the answers that clients and workers got (kept by oracle.c) with the histories at the end.
 *
 * I1, I2, I9  every acknowledged operation is there, once; others are there once or not at all; signals in their order
 * I4          one closing event, the last; runs of one id follow each other
 * I5, I7      activities end once, nobody else's answer counts
 * I8          timers are never early and never late
 * I20         an attempt that its process had left to others is not lost with a process
 * sim-L1      no run has more than the limits of its world allow, and one that is ended by a limit had reached it
 * runs of a chain follow each other: engine-H1 (chains_judge.c) */
#include "sim/engine/asks.h"
#include "sim/engine/children.h"
#include "sim/engine/operator.h"
#include "sim/engine/sim.h"
#include "sim/engine/workers.h"

#include "history/history.h"
#include "history/payload.h"
#include "history/reason.h"

#include <stdlib.h>
#include <string.h>

enum { LATE_MAX_S = 1 };
typedef enum pending_kind { PENDING_ACTIVITY, PENDING_TIMER, PENDING_MESSAGE, PENDING_KIND_COUNT } pending_kind;

/* ---- A history ------------------------------------------------------------------------------------------------------------- */

typedef struct pending {
    pending_kind kind;
    int64_t id;         /* scheduled or started event */
    int64_t number;     /* of an activity: sim_item_number */
    int64_t started_id; /* the same */
    int64_t due;        /* of a timer, wall ns */
    int32_t attempts_max;
    int32_t attempt; /* of its started event */
    bool ended;
} pending;

/* One run as its history tells it. */
typedef struct tale {
    sim_world *world;
    size_t run;
    size_t row; /* place among the runs of its id */
    hf_str start_request_id;
    int32_t close_type;
    int64_t first_time, close_time;
    bool cancel_requested;
    int64_t wft_scheduled, wft_started, wft_completed;
    int64_t signals;
    size_t open[PENDING_KIND_COUNT]; /* of `pending` */
    int wft_state;                   /* 0 none, 1 scheduled, 2 started */
    SIM_VEC(pending) pending;
    hf_str identity;
} tale;

/* A message between two runs. */
typedef struct message {
    char id[64]; /* the sender's run id, a slash, the event */
    size_t tale; /* the tale in which it was seen */
} message;

typedef struct verdict {
    sim_world *world;
    hf_arena arena; /* histories */
    SIM_VEC(tale) tales;
    SIM_VEC(sim_link) links; /* by tale */
    sim_children children;
    SIM_VEC(int) answers_seen; /* by answer */
    SIM_VEC(size_t) signals;   /* pairs: operation, tale; in the order of the histories */
    SIM_VEC(message) sent;     /* messages whose arrival is in the history of the sender */
    SIM_VEC(message) received; /* messages in the history of the run they were for */
} verdict;

static bool bad(tale *it, const hf_pb_history_event *event, const char *why)
{
    sim_fail(it->world, "run %s, event %lld %s: %s", it->world->runs.items[it->run].run_id, (long long)event->event_id,
             hf_event_name(event->event_type), why);
    return false;
}

static pending *find(tale *it, int64_t id)
{
    for (size_t i = 0; i < it->pending.count; i++) {
        if (it->pending.items[i].id == id) {
            return &it->pending.items[i];
        }
    }
    return NULL;
}

static bool end_pending(tale *it, const hf_pb_history_event *event, int64_t id, int64_t started_id)
{
    pending *what = find(it, id);
    if (what == NULL || what->ended) {
        return bad(it, event, "I5: it ends what has ended or never was");
    }
    if (what->started_id != started_id) {
        return bad(it, event, "its started event is another");
    }
    what->ended = true;
    it->open[what->kind]--;
    return true;
}

/* An activity, timer or message begins; sim-L1: not more than the limit may be pending. Timers are bounded by the history alone. */
static bool begin_pending(tale *it, const hf_pb_history_event *event, pending what)
{
    size_t most = it->world->knobs.core.limits.pending;
    what.id = event->event_id;
    *SIM_PUSH(&it->pending) = what;
    return ++it->open[what.kind] <= most || most == 0 || what.kind == PENDING_TIMER ||
           bad(it, event, "sim-L1: too many are pending");
}

bool sim_is_unhealthy(const sim_world *world, int64_t from, int64_t to)
{
    if (world->knobs.has_clock_steps) {
        return true;
    }
    for (size_t i = 0; i + 1 < world->unhealthy.count; i += 2) {
        if (world->unhealthy.items[i] <= to && from <= world->unhealthy.items[i + 1]) {
            return true;
        }
    }
    return false;
}

static bool fired(tale *it, const hf_pb_history_event *event)
{
    const pending *what = find(it, event->timer_fired_event_attributes->started_event_id);
    int64_t time = hf_pb_timestamp_time(event->event_time).ns;
    if (what != NULL && time < what->due) {
        return bad(it, event, "I8: a timer fired early");
    }
    if (what != NULL && time > what->due + LATE_MAX_S * SIM_SECOND && !sim_is_unhealthy(it->world, what->due, time) &&
        !it->world->runs.items[it->run].was_damaged) {
        char why[100];
        (void)snprintf(why, sizeof why, "I8: a timer due at %.4f fired at %.4f",
                       (double)(what->due - it->world->wall_offset) / 1e9,
                       (double)(time - it->world->wall_offset) / 1e9);
        return bad(it, event, why);
    }
    return end_pending(it, event, event->timer_fired_event_attributes->started_event_id, 0);
}

static bool number_in(hf_str text, char letter, uint64_t *ret_number)
{
    if (text.len < 2 || text.data[0] != letter) {
        return false;
    }
    *ret_number = 0;
    for (size_t i = 1; i < text.len && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
        *ret_number = *ret_number * 10 + (uint64_t)(text.data[i] - '0');
    }
    return true;
}

/* An answer is in the history; `scheduled_id`: the activity's scheduled event, 0 = the answer is to a workflow task. */
static bool saw_mark(verdict *all, tale *it, const hf_pb_history_event *event, int64_t scheduled_id, hf_str mark)
{
    uint64_t number = 0;
    if (!number_in(mark, 'n', &number) || number >= it->world->answers.count) {
        return true; /* made by the engine itself */
    }
    const sim_answer *answer = &it->world->answers.items[number];
    if (++all->answers_seen.items[number] > 1) {
        return bad(it, event, "I1: an answer is there twice");
    }
    if (answer->run != it->run) {
        return bad(it, event, "an answer is in the history of another run");
    }
    if (answer->outcome == SIM_REFUSED && !answer->maybe) {
        return bad(it, event, "I7: an answer that was refused is there");
    }
    const pending *what = scheduled_id != 0 ? find(it, scheduled_id) : NULL;
    if (what != NULL && what->number != answer->scheduled_id) {
        return bad(it, event, "I7: it was answered for another activity");
    }
    if (what != NULL && what->attempt != answer->attempt && !answer->is_by_id &&
        !sim_may_be_reset(it->world, it->run, what->number)) {
        return bad(it, event, "I7: it was answered for another attempt");
    }
    return true;
}

static hf_str mark_of(const hf_pb_payloads *payloads)
{
    const hf_pb_payload *first = hf_payloads_first(payloads);
    return first != NULL ? first->data : HF_STR("");
}

static bool saw_message(verdict *all, tale *it, const hf_pb_history_event *event, hf_str id)
{
    size_t tale_at = (size_t)(it - all->tales.items);
    for (size_t i = 0; i < all->received.count; i++) {
        if (all->received.items[i].tale == tale_at && hf_str_equal(hf_str_of(all->received.items[i].id), id)) {
            return bad(it, event, "I9: a message of another run is there twice");
        }
    }
    message *received = SIM_PUSH(&all->received);
    received->tale = tale_at;
    (void)snprintf(received->id, sizeof received->id, "%.*s", HF_STR_ARGS(id));
    return true;
}

static bool saw_signal(verdict *all, tale *it, const hf_pb_history_event *event)
{
    hf_str id = event->workflow_execution_signaled_event_attributes->request_id;
    int64_t most = it->world->knobs.core.limits.signals;
    if (most > 0 && ++it->signals > most) {
        return bad(it, event, "sim-L1: more signals than a run may get");
    }
    if (id.len > 36 && id.data[36] == '/') {
        return saw_message(all, it, event, id);
    }
    for (size_t i = 0; i < it->world->ops.count; i++) {
        const sim_op *op = &it->world->ops.items[i];
        if (sim_op_signals(op) && hf_str_equal(hf_str_of(op->request_id), id)) {
            size_t tale_at = (size_t)(it - all->tales.items);
            if (op->outcome == SIM_REFUSED && !op->maybe) {
                return bad(it, event, "I2: a signal that was refused is there");
            }
            for (size_t j = 0; j < all->signals.count; j += 2) {
                if (all->signals.items[j + 1] != tale_at) {
                    continue;
                }
                const sim_op *other = &it->world->ops.items[all->signals.items[j]];
                if (other == op) {
                    return bad(it, event, "I9: a signal is there twice");
                }
                if (other->client == op->client && other->number > op->number) {
                    return bad(it, event, "I9: signals of a client are out of order");
                }
            }
            *SIM_PUSH(&all->signals) = i;
            *SIM_PUSH(&all->signals) = tale_at;
            return true;
        }
    }
    return bad(it, event, "a signal that nobody sent");
}

#define ANSWER_EVENTS_MAX 128 /* commands of one answer, what was buffered, and the next task */

/* Whether a workflow task was completed when there were more events than the limit. */
static bool is_full(const tale *it)
{
    int64_t most = it->world->knobs.core.limits.history_count;
    return most > 0 && it->wft_completed >= most;
}

/* The engine terminates runs itself when their histories are too long, and children whose parents have closed (children_judge.c). */
static bool terminated(tale *it, const hf_pb_history_event *event)
{
    const hf_core_limits *limits = &it->world->knobs.core.limits;
    const hf_pb_workflow_execution_terminated_event_attributes *attrs =
        event->workflow_execution_terminated_event_attributes;
    bool by_count = hf_str_equal(attrs->reason, HF_STR(HF_REASON_TOO_MANY_EVENTS));
    if (!by_count && !hf_str_equal(attrs->reason, HF_STR(HF_REASON_TOO_MANY_BYTES))) {
        return true;
    }
    sim_fault(it->world, HF_SIM_HISTORY_FULL);
    /* What would pass the limit is not written: the answer to a task may have been as long as this. */
    bool too_many = limits->history_count > 0 && event->event_id + ANSWER_EVENTS_MAX > limits->history_count;
    return (by_count ? too_many : limits->history_len > 0) || bad(it, event, "sim-L1: its history was not too long");
}

static bool task_event(verdict *all, tale *it, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
        if (is_full(it)) {
            return bad(it, event, "sim-L1: the run goes on with a history that is too long");
        }
        it->wft_scheduled = event->event_id;
        return it->wft_state++ == 0 || bad(it, event, "a workflow task is pending");
    case HF_EVENT_TYPE_WORKFLOW_TASK_STARTED:
        it->wft_started = event->event_id;
        return (it->wft_state++ == 1 &&
                event->workflow_task_started_event_attributes->scheduled_event_id == it->wft_scheduled) ||
               bad(it, event, "it was not scheduled");
    case HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED: {
        const hf_pb_workflow_task_completed_event_attributes *attrs = event->workflow_task_completed_event_attributes;
        bool fine =
            it->wft_state == 2 && attrs->started_event_id == it->wft_started && it->wft_started == event->event_id - 1;
        it->wft_state = 0;
        it->wft_completed = event->event_id;
        return (fine || bad(it, event, "it was not started, or something came between")) &&
               saw_mark(all, it, event, 0, attrs->binary_checksum);
    }
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED: {
        bool fine = it->wft_state == 2 && it->wft_started == event->event_id - 1;
        it->wft_state = 0;
        return fine || bad(it, event, "it was not started");
    }
    default: { /* timed out: a sticky one may never have been started */
        bool fine = it->wft_state == 2 ? it->wft_started == event->event_id - 1 : it->wft_state == 1;
        it->wft_state = 0;
        return fine || bad(it, event, "it was not pending");
    }
    }
}

static bool message_event(verdict *all, tale *it, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
    case HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
        return begin_pending(it, event, (pending){.kind = PENDING_MESSAGE});
    case HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED: {
        int64_t id = event->external_workflow_execution_signaled_event_attributes->initiated_event_id;
        message *sent = SIM_PUSH(&all->sent);
        (void)snprintf(sent->id, sizeof sent->id, "%s/%lld", it->world->runs.items[it->run].run_id, (long long)id);
        return end_pending(it, event, id, 0);
    }
    case HF_EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        return end_pending(it, event,
                           event->signal_external_workflow_execution_failed_event_attributes->initiated_event_id, 0);
    case HF_EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        return end_pending(it, event,
                           event->external_workflow_execution_cancel_requested_event_attributes->initiated_event_id, 0);
    case HF_EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
        return end_pending(
            it, event, event->request_cancel_external_workflow_execution_failed_event_attributes->initiated_event_id,
            0);
    default:
        return true;
    }
}

static bool is_lost(const hf_pb_failure *failure)
{
    return failure != NULL && hf_str_equal(hf_failure_type(failure), HF_STR("WorkerLost"));
}

static bool activity_event(verdict *all, tale *it, const hf_pb_history_event *event)
{
    switch (event->event_type) {
    case HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: {
        const hf_pb_activity_task_scheduled_event_attributes *attrs = event->activity_task_scheduled_event_attributes;
        pending what = {.kind = PENDING_ACTIVITY, .number = sim_item_number(attrs->activity_id)};
        what.attempts_max = sim_attempts_max(it->world, it->run, what.number, attrs->retry_policy->maximum_attempts);
        return begin_pending(it, event, what) && (attrs->workflow_task_completed_event_id == it->wft_completed ||
                                                  bad(it, event, "of another workflow task"));
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_STARTED: {
        const hf_pb_activity_task_started_event_attributes *attrs = event->activity_task_started_event_attributes;
        pending *what = find(it, attrs->scheduled_event_id);
        if (what == NULL || what->ended || what->started_id != 0) {
            return bad(it, event, "I5: an activity was started twice, or never was");
        }
        what->started_id = event->event_id;
        what->attempt = attrs->attempt;
        if (is_lost(attrs->last_failure) && sim_was_left(it->world, it->run, what->number, attrs->attempt - 1)) {
            return bad(it, event, "I20: the attempt before it had been left to others");
        }
        const char *why = "";
        if (!sim_saw_activity(it->world, it->run, what->number, event, &why)) {
            return bad(it, event, why);
        }
        return what->attempts_max == 0 || attrs->attempt <= what->attempts_max ||
               bad(it, event, "I5: too many attempts");
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED: {
        const hf_pb_activity_task_completed_event_attributes *attrs = event->activity_task_completed_event_attributes;
        size_t most = it->world->knobs.core.limits.payload_len;
        if (most > 0 && mark_of(attrs->result).len > most) {
            return bad(it, event, "sim-L1: its result is longer than may be");
        }
        return end_pending(it, event, attrs->scheduled_event_id, attrs->started_event_id) &&
               saw_mark(all, it, event, attrs->scheduled_event_id, mark_of(attrs->result));
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_FAILED: {
        const hf_pb_activity_task_failed_event_attributes *attrs = event->activity_task_failed_event_attributes;
        bool too_big = hf_str_equal(hf_failure_type(attrs->failure), HF_STR("TooBig"));
        const pending *what = find(it, attrs->scheduled_event_id);
        if (what != NULL && is_lost(attrs->failure) && sim_was_left(it->world, it->run, what->number, what->attempt)) {
            return bad(it, event, "I20: it had been left to others");
        }
        return end_pending(it, event, attrs->scheduled_event_id, attrs->started_event_id) &&
               saw_mark(all, it, event, attrs->scheduled_event_id, too_big ? attrs->identity : attrs->failure->message);
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: {
        const hf_pb_activity_task_timed_out_event_attributes *attrs = event->activity_task_timed_out_event_attributes;
        const pending *what = find(it, attrs->scheduled_event_id);
        const char *why = "";
        return end_pending(it, event, attrs->scheduled_event_id, attrs->started_event_id) &&
               (sim_saw_activity(it->world, it->run, what->number, event, &why) || bad(it, event, why));
    }
    case HF_EVENT_TYPE_ACTIVITY_TASK_CANCELED: {
        const hf_pb_activity_task_canceled_event_attributes *attrs = event->activity_task_canceled_event_attributes;
        return end_pending(it, event, attrs->scheduled_event_id, attrs->started_event_id) &&
               saw_mark(all, it, event, attrs->scheduled_event_id, mark_of(attrs->details));
    }
    default:
        return message_event(all, it, event);
    }
}

static bool tell_event(verdict *all, tale *it, const hf_pb_history_event *event)
{
    int64_t time = hf_pb_timestamp_time(event->event_time).ns;
    if (it->close_type != 0) {
        return bad(it, event, "I4: an event after the end");
    }
    if ((event->event_id == 1) != (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED)) {
        return bad(it, event, "it is not the beginning");
    }
    switch (event->event_type) {
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
        it->first_time = time;
        it->identity = event->workflow_execution_started_event_attributes->identity;
        return true;
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        it->close_type = event->event_type;
        it->close_time = time;
        return event->event_type != HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED || terminated(it, event);
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        return saw_signal(all, it, event);
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED: {
        bool fine = !it->cancel_requested;
        it->cancel_requested = true;
        return fine || bad(it, event, "I2: canceled twice");
    }
    case HF_EVENT_TYPE_TIMER_STARTED:
        return begin_pending(
            it, event,
            (pending){
                .kind = PENDING_TIMER,
                .due = time + hf_pb_duration_span(event->timer_started_event_attributes->start_to_fire_timeout).ns,
            });
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED: {
        const char *why = "";
        return sim_saw_update(it->world, it->run, event, &why) || bad(it, event, why);
    }
    case HF_EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
        sim_saw_options(it->world, it->run, event);
        return true;
    case HF_EVENT_TYPE_TIMER_FIRED:
        return fired(it, event);
    case HF_EVENT_TYPE_TIMER_CANCELED:
        return end_pending(it, event, event->timer_canceled_event_attributes->started_event_id, 0);
    case HF_EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_STARTED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_FAILED:
    case HF_EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
        return task_event(all, it, event);
    default:
        return activity_event(all, it, event);
    }
}

/* ---- Reading all of them ----------------------------------------------------------------------------------------------------- */

typedef struct page {
    hf_buf history;
    char token[64];
    size_t token_len;
    hf_status status;
    bool is_done;
} page;

static void on_history(sim_world *world, sim_call *call)
{
    page *to = call->call.state;
    to->is_done = true;
    to->status = call->call.status;
    if (call->call.status != HF_OK) {
        sim_fail(world, "a history cannot be read: %s", call->call.message);
        return;
    }
    const hf_pb_get_workflow_execution_history_response *response = call->call.response;
    hf_buf_put(&to->history, response->history.data, response->history.len);
    to->token_len = response->next_page_token.len < sizeof to->token ? response->next_page_token.len : 0;
    memcpy(to->token, response->next_page_token.data != NULL ? response->next_page_token.data : "", to->token_len);
}

static void read_all(sim_world *world, const char *workflow_id, const char *run_id, page *to)
{
    int32_t size = sim_chance(world, 500) ? 0 : 1 + (int32_t)sim_upto(world, 20);
    do {
        sim_call *call = sim_call_new(world, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, NULL, on_history);
        hf_pb_get_workflow_execution_history_request *request =
            HF_ARENA_NEW(&call->arena, hf_pb_get_workflow_execution_history_request);
        request->namespace = HF_STR(SIM_NAMESPACE);
        request->execution = HF_ARENA_NEW(&call->arena, hf_pb_workflow_execution);
        request->execution->workflow_id = sim_copy(call, workflow_id);
        request->execution->run_id = sim_copy(call, run_id);
        request->maximum_page_size = size;
        request->next_page_token = hf_arena_copy(&call->arena, hf_str_of_len(to->token, to->token_len));
        call->call.request = request;
        call->call.state = to;
        to->is_done = false;
        sim_call_submit(world, call);
        while (!to->is_done && sim_world_step(world)) {
        }
    } while (!world->failed && to->token_len > 0);
}

static void tell_run(verdict *all, tale *it)
{
    sim_world *world = it->world;
    sim_run_log *log = &world->runs.items[it->run];
    page got = {.token_len = 0};
    hf_op op;
    hf_op_init(&op);
    hf_buf_init(&got.history, world->memory, SIZE_MAX / 4);
    read_all(world, log->workflow_id, log->run_id, &got);
    hf_str bytes = hf_arena_copy(&all->arena, hf_str_of_len(got.history.data, got.history.len));
    hf_buf_deinit(&got.history);
    log = &world->runs.items[it->run];
    if (world->failed) {
        return;
    }
    sim_saw_history(world, it->run, bytes, true, 0);
    log = &world->runs.items[it->run];
    hf_pb_raw field;
    size_t count = 0;
    while (!world->failed && bytes.len > 0 && hf_pb_next(&bytes, &field)) {
        hf_pb_history_event event;
        if (hf_pb_decode(&op, &hf_pb_history_event_type, field.bytes, &all->arena, &event) != HF_OK) {
            sim_fail(world, "an event cannot be read: %s", op.message);
            return;
        }
        count++;
        world->totals.events++;
        size_t link = (size_t)(it - all->tales.items);
        sim_link_event(world, &all->links.items[link], &event);
        sim_child_event(world, &all->children, all->links.items, link, &event, &all->arena);
        if (event.event_id != (int64_t)count || !tell_event(all, it, &event)) {
            sim_fail(world, "I3: event %lld in place %zu of run %s", (long long)event.event_id, count, log->run_id);
            return;
        }
    }
    if (log->count != count) {
        sim_fail(world, "I1: %zu events of run %s were seen, %zu are left", log->count, log->run_id, count);
    }
    if (it->close_type == 0) {
        sim_fail(world, "run %s is not over", log->run_id);
    }
}

/* The runs of each workflow id, oldest first. */
static void collect(verdict *all)
{
    sim_world *world = all->world;
    hf_store_request scan = {
        .verb = HF_STORE_SCAN, .table = HF_TABLE_RUN, .key_end = hf_key_last(), .arena = &all->arena};
    hf_op_init(&scan.op);
    hf_store_execute(world->store, &scan);
    hf_pb_run_state *runs = HF_ARENA_ARRAY(&all->arena, hf_pb_run_state, scan.row_count + 1);
    for (size_t i = 0; i < scan.row_count; i++) {
        hf_str body = {0};
        hf_op op;
        hf_op_init(&op);
        if (hf_record_open(&op, HF_TABLE_RUN, &scan.rows[i].key, scan.rows[i].value, &body) != HF_OK ||
            hf_pb_decode(&op, &hf_pb_run_state_type, body, &all->arena, &runs[i]) != HF_OK) {
            sim_fail(world, "the row of a run cannot be read: %s", op.message);
            return;
        }
    }
    size_t others = 0; /* of another namespace: resets_judge.c */
    for (size_t i = 0; i < scan.row_count; i++) {
        others += !hf_str_equal(runs[i].namespace, HF_STR(SIM_NAMESPACE));
    }
    for (int workflow = 0; workflow < sim_name_count(world); workflow++) {
        char name[SIM_NAME_LEN];
        size_t place = 0;
        sim_name_of(world, workflow, name);
        for (size_t i = 0; i < scan.row_count; i++) {
            const hf_pb_run_state *run = &runs[i];
            if (!hf_str_equal(run->workflow_id, hf_str_of(name))) {
                continue;
            }
            tale made = {
                .world = world,
                .row = place++,
                .run = sim_log_run(world, run->run_id, hf_str_of(name)),
                .start_request_id = run->start_request_id,
            };
            *SIM_PUSH(&all->tales) = made;
            *SIM_PUSH(&all->links) =
                (sim_link){.run = made.run, .row = made.row, .is_by_client = run->start_request_id.len > 0};
        }
    }
    if (all->tales.count + others != scan.row_count) {
        sim_fail(world, "%zu runs have ids that nobody wanted", scan.row_count - all->tales.count - others);
    }
}

/* ---- Judging --------------------------------------------------------------------------------------------------------------- */

static const tale *tale_of(const verdict *all, const char *run_id)
{
    for (size_t i = 0; i < all->tales.count; i++) {
        if (strcmp(all->world->runs.items[all->tales.items[i].run].run_id, run_id) == 0) {
            return &all->tales.items[i];
        }
    }
    return NULL;
}

static bool is_signal_in(const verdict *all, size_t op, const tale *where)
{
    for (size_t i = 0; i < all->signals.count; i += 2) {
        if (all->signals.items[i] == op && (where == NULL || &all->tales.items[all->signals.items[i + 1]] == where)) {
            return true;
        }
    }
    return false;
}

static void judge_start(verdict *all, const sim_op *op)
{
    sim_world *world = all->world;
    if (op->outcome == SIM_ACKED) {
        const tale *run = tale_of(all, op->run_id);
        if (run == NULL && sim_may_be_gone(world, op->run_id)) {
            return;
        }
        if (run == NULL) {
            sim_fail(world, "I1: run %s was acknowledged and is not there", op->run_id);
        } else if (!hf_str_equal(run->start_request_id, hf_str_of(op->request_id)) &&
                   op->conflict != HF_WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING) {
            sim_fail(world, "I1: start %s was given a run of another", op->request_id);
        }
    }
    for (size_t i = 0; i < all->tales.count; i++) {
        if (hf_str_equal(all->tales.items[i].start_request_id, hf_str_of(op->request_id)) &&
            op->outcome == SIM_REFUSED && !op->maybe) {
            sim_fail(world, "I2: start %s was refused and is there", op->request_id);
        }
    }
}

static void judge_op(verdict *all, size_t index)
{
    sim_world *world = all->world;
    const sim_op *op = &world->ops.items[index];
    const tale *run = op->run_id[0] != '\0' ? tale_of(all, op->run_id) : NULL;
    if (op->kind == SIM_OP_START) {
        judge_start(all, op);
        return;
    }
    if (op->kind == SIM_OP_SIGNAL_START) {
        if (run != NULL || !sim_may_be_gone(world, op->run_id)) {
            sim_judge_signal_start(world, op, run != NULL && is_signal_in(all, index, run),
                                   is_signal_in(all, index, NULL));
        }
        return;
    }
    if (op->outcome != SIM_ACKED || op->kind == SIM_OP_DELETE || op->kind == SIM_OP_OPTIONS) {
        return;
    }
    bool may_be_gone = op->run_id[0] != '\0' ? sim_may_be_gone(world, op->run_id)
                                             : world->is_retaining || (op->workflow < SIM_WORKFLOWS_MAX &&
                                                                       world->deletes[op->workflow] > 0);
    if (run == NULL && may_be_gone) {
        return;
    }
    if (op->run_id[0] != '\0' && run == NULL) {
        sim_fail(world, "I1: %s was acknowledged for run %s, which is not there", op->request_id, op->run_id);
    } else if (op->kind == SIM_OP_SIGNAL && !is_signal_in(all, index, run)) {
        sim_fail(world, "I1: signal %s to %s was acknowledged and is not there", op->request_id, op->run_id);
    } else if (op->kind == SIM_OP_TERMINATE && run != NULL &&
               run->close_type != HF_EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED) {
        sim_fail(world, "I1: run %s was terminated, which was acknowledged, and ended otherwise", op->run_id);
    } else if (op->kind == SIM_OP_CANCEL && run != NULL && !run->cancel_requested && run->close_time > op->time &&
               !world->knobs.has_clock_steps) {
        sim_fail(world, "I1: the cancel %s of run %s was acknowledged and is not there", op->request_id, op->run_id);
    }
}

/* Whether an activity that is answered so has ended. */
static bool is_end(hf_method method)
{
    return method == HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED || method == HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED ||
           method == HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID ||
           method == HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID;
}

/* I5, I7: no attempt takes two answers, and no activity two ends. */
static bool is_one_too_many(const sim_answer *one, const sim_answer *other)
{
    bool is_activity = one->method >= HF_METHOD_POLL_ACTIVITY_TASK_QUEUE;
    if (one->outcome != SIM_ACKED || other->outcome != SIM_ACKED || one->run != other->run ||
        one->scheduled_id != other->scheduled_id ||
        is_activity != (other->method >= HF_METHOD_POLL_ACTIVITY_TASK_QUEUE)) {
        return false;
    }
    if (is_activity && is_end(one->method) && is_end(other->method)) {
        return true;
    }
    return one->attempt == other->attempt && one->round == other->round && !one->is_dropped && !other->is_dropped &&
           !one->is_by_id && !other->is_by_id;
}

static void judge_answers(verdict *all)
{
    sim_world *world = all->world;
    for (size_t i = 0; i < world->answers.count; i++) {
        const sim_answer *answer = &world->answers.items[i];
        bool leaves_mark = is_end(answer->method) ||
                           (answer->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED && !answer->is_dropped);
        if (answer->outcome == SIM_ACKED && leaves_mark && all->answers_seen.items[i] == 0 &&
            !world->runs.items[answer->run].may_be_gone) {
            sim_fail(world, "I1: answer %zu (%s) to run %s was acknowledged and is not there", i,
                     hf_method_info_of(answer->method)->name, world->runs.items[answer->run].run_id);
        }
        for (size_t j = 0; j < i && answer->outcome == SIM_ACKED; j++) {
            if (is_one_too_many(&world->answers.items[j], answer)) {
                sim_fail(world, "I7: answers %zu and %zu to the same attempt were accepted", j, i);
            }
        }
    }
}

static void judge_messages(verdict *all)
{
    for (size_t i = 0; i < all->sent.count; i++) {
        bool found = all->world->is_retaining;
        for (size_t j = 0; j < all->received.count && !found; j++) {
            found = strcmp(all->sent.items[i].id, all->received.items[j].id) == 0;
        }
        for (int j = 0; j < all->world->knobs.workflows; j++) { /* it may have been deleted with its target */
            found = found || all->world->deletes[j] > 0;
        }
        if (!found) {
            sim_fail(all->world, "I9: message %s has arrived, its sender was told, and is not there",
                     all->sent.items[i].id);
        }
    }
}

static void judge_names(verdict *all)
{
    for (size_t i = 1; i < all->tales.count; i++) {
        const tale *before = &all->tales.items[i - 1];
        const tale *run = &all->tales.items[i];
        if (run->row == 0) {
            continue;
        }
        /* If the run between them was deleted, the id was free, and a repeated start was the first one of a new run. */
        bool is_repeated =
            run->start_request_id.len > 0 && hf_str_equal(before->start_request_id, run->start_request_id);
        if (is_repeated && !sim_had_deletes(all->world, all->world->runs.items[run->run].workflow_id)) {
            sim_fail(all->world, "I2: start %.*s made two runs", HF_STR_ARGS(run->start_request_id));
        }
        if (run->first_time < before->close_time && !all->world->knobs.has_clock_steps) {
            sim_fail(all->world, "I4: run %s began before run %s had ended", all->world->runs.items[run->run].run_id,
                     all->world->runs.items[before->run].run_id);
        }
    }
}

void sim_judge(sim_world *world)
{
    verdict all = {.world = world};
    hf_arena_init(&all.arena, world->memory);
    (void)sim_world_rest(world);
    for (size_t i = 0; i < world->answers.count; i++) {
        (void)SIM_PUSH(&all.answers_seen);
    }
    collect(&all);
    for (size_t i = 0; i < all.tales.count && !world->failed; i++) {
        sim_chain_describe(world, all.tales.items[i].run);
        tell_run(&all, &all.tales.items[i]);
    }
    world->totals.runs += all.tales.count;
    for (size_t i = 0; i < world->runs.count && !world->failed; i++) {
        const sim_run_log *log = &world->runs.items[i];
        bool is_there = tale_of(&all, log->run_id) != NULL;
        world->totals.runs += !is_there && log->may_be_gone; /* they were there */
        if (log->count > 0 && !is_there && !log->may_be_gone) {
            sim_fail(world, "I1: run %s was seen and is not there", log->run_id);
        }
    }
    for (size_t i = 0; i < world->ops.count && !world->failed; i++) {
        judge_op(&all, i);
    }
    if (!world->failed) {
        judge_messages(&all);
        judge_names(&all);
        judge_answers(&all);
        sim_judge_updates(world);
        sim_judge_options(world);
        sim_judge_streams(world);
        sim_judge_queues(world);
        sim_judge_chains(world, all.links.items, all.links.count);
        sim_judge_children(world, &all.children, all.links.items, all.links.count);
    }
    for (size_t i = 0; i < all.signals.count && !world->failed; i += 2) {
        sim_judge_signal(world, &world->ops.items[all.signals.items[i]], &all.links.items[all.signals.items[i + 1]]);
    }
    for (size_t i = 0; i < all.tales.count; i++) {
        free(all.tales.items[i].pending.items);
    }
    for (size_t i = 0; i < all.links.count; i++) {
        sim_link_free(&all.links.items[i]);
    }
    free(all.links.items);
    free(all.children.items);
    free(all.tales.items);
    free(all.answers_seen.items);
    free(all.signals.items);
    free(all.sent.items);
    free(all.received.items);
    hf_arena_deinit(&all.arena);
}
