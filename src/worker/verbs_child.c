/* Other workflows as a workflow sees them: children, and signals and cancels to any workflow. As in verbs_activity.c, verbs
 * run on the crew's fibers, and the functions for events run on the driver, between turns.
 *
 *     asking --> a bucket of asks --> gone: its end was seen, and its fiber woken
 *         |            |
 *         |            +--> gone: the fiber was canceled and does not wait
 *         +--> gone: its command was not sent
 *
 * With HF_CANCEL_WAIT a canceled fiber asks the child to end and goes on waiting: the ask stays in its bucket. */
#include "worker/wf.h"

#include "base/canary.h"
#include "base/span.h"
#include "client/errand.h"
#include "fiber/crew/strand.h"
#include "fiber/verbs.h"
#include "history/limits.h"

#include <holdfast/child.h>

#include <inttypes.h>
#include <stdio.h>

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

static bool abort_ask(hf_wait *wait)
{
    hf_wf_ask *ask = wait->object;
    if (ask->is_given_up || !hf_node_is_linked(&ask->node)) {
        return false;
    }
    ask->is_given_up = true;
    if (!ask->is_joined || ask->event_id == 0 || wait->fiber->is_evicted) {
        hf_list_remove(&ask->node);
    }
    return true;
}

static bool abort_end(hf_wait *wait)
{
    hf_wf_ask *ask = wait->object;
    bool is_over = wait->fiber->is_evicted && hf_node_is_linked(&ask->node);
    if (is_over) {
        hf_list_remove(&ask->node);
    }
    return is_over;
}

static const hf_wait_kind CHILD = {"hf_child_run", abort_ask};
static const hf_wait_kind EXTERNAL = {"hf_external_signal", abort_ask};
static const hf_wait_kind CHILD_END = {"hf_child_run, canceled", abort_end};

/* Whether the step at hand starts a child with this id; it may have the id of one that runs, and will not start then. */
static bool starts_child(const hf_wf *wf, hf_str id)
{
    HF_LIST_EACH(node, &wf->recorder.records)
    {
        const hf_command_record *record = HF_CONTAINER_CONST(node, hf_command_record, node);
        if (record->type == HF_COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION && !record->is_withdrawn &&
            hf_str_equal(record->id, id)) {
            return true;
        }
    }
    return false;
}

static hf_command_record *record_cancel(hf_wf *wf, hf_str id, const char *reason, bool is_child, hf_wf_ask *ask)
{
    hf_arena *arena = &wf->recorder.arena;
    void *room = NULL;
    if (wf->has_closed) {
        return NULL; /* the closing command is the last one */
    }
    hf_command_record *record =
        hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION,
                        HF_PB_COMMAND_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_request_cancel_external_workflow_execution_command_attributes), &room);
    if (record != NULL) {
        hf_pb_request_cancel_external_workflow_execution_command_attributes *a = room;
        record->id = hf_arena_copy(arena, id);
        a->namespace = wf->worker->namespace_;
        a->workflow_id = record->id;
        /* The service refuses the step if it also starts a child of this id: then any run of the id is asked to end. */
        a->child_workflow_only = is_child && !starts_child(wf, id);
        a->reason = hf_arena_copy(arena, hf_str_of(reason != NULL ? reason : ""));
        if (ask != NULL) {
            record->ask = ask;
            ask->record = record;
        }
    }
    wf->is_nomem |= arena->status != HF_OK;
    return record;
}

void hf_wf_cancel_child(hf_wf *wf, const hf_wf_ask *ask)
{
    hf_assert(ask->is_child && ask->event_id > 0);
    hf_command_record *record = record_cancel(wf, hf_str_of(ask->id), "the parent canceled it", true, NULL);
    if (record != NULL) {
        record->file = ask->file; /* a cancel comes from anywhere */
        record->line = ask->line;
    }
}

/* The waiting fiber was canceled: asks the child to end, and waits until it has. */
static hf_status join_child(hf_fiber *self, hf_wf *wf, hf_wf_ask *ask)
{
    ask->is_given_up = false;
    if (ask->end != NULL) {
        return HF_OK; /* it ended in the same step */
    }
    hf_assert(hf_node_is_linked(&ask->node));
    if (!ask->has_ended) {
        hf_wf_cancel_child(wf, ask);
        ask->ends_at_start &= !hf_wf_plays_by(wf, HF_WF_RULE_WAITS); /* asked to end, its start is not a success */
    }
    hf_wait_init(ask->wait, self, &CHILD_END, ask, ask->wait->object_name);
    return hf_park(self, ask->wait, HF_INSTANT_NEVER);
}

void hf_wf_withdraw_ask(hf_wf *wf, const hf_wf_ask *ask)
{
    hf_assert(wf->asks_count > 0 && ask->record != NULL && ask->record->ask == ask);
    ask->record->is_withdrawn = !wf->has_closed; /* what a handler asked for goes along with the end of the run */
    ask->record->ask = NULL;
    wf->asks_count--;
}

/* The ask waits for the event of its command from now on. */
static void await_event(hf_wf *wf, hf_wf_ask *ask, hf_command_record *record)
{
    hf_assert(record->ask == NULL || record->ask == ask);
    hf_assert(ask->id != NULL && !wf->has_closed);
    ask->record = record;
    record->ask = ask;
    wf->asks_count++;
    hf_list_push_back(&wf->asking, &ask->node);
}

/* Waits for the end of what was asked for. `name` is the caller's, which waits here. */
static hf_status wait_for(hf_fiber *self, hf_wf *wf, hf_wf_ask *ask, const char *name, hf_on_cancel how)
{
    hf_wait wait;
    hf_wait_init(&wait, self, ask->is_child ? &CHILD : &EXTERNAL, ask, name);
    ask->wait = &wait;
    ask->is_joined = ask->is_child && how == HF_CANCEL_WAIT && !HF_CANARY(HF_BUG_CHILD_NOT_JOINED);
    hf_status status = hf_park(self, &wait, HF_INSTANT_NEVER);
    if (status == HF_ERR_CANCELED && ask->event_id == 0) {
        hf_wf_withdraw_ask(wf, ask);
    } else if (status == HF_ERR_CANCELED && ask->is_joined) {
        status = join_child(self, wf, ask);
        self->last_status = status; /* its outcome tells what happened, not the cancel */
        self->last_where = NULL;
    } else if (status == HF_ERR_CANCELED) {
        hf_assert(wf->asks_count > 0);
        wf->asks_count--;
        if (ask->is_child && how == HF_CANCEL_TRY && !ask->has_ended) {
            hf_wf_cancel_child(wf, ask);
        }
    }
    if (hf_node_is_linked(&ask->node)) {
        hf_list_remove(&ask->node);
    }
    return status;
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

void hf_wf_asked(hf_wf *wf, hf_wf_ask *ask, int64_t event_id)
{
    hf_assert(ask->event_id == 0 && event_id > 0 && ask->record != NULL);
    hf_list_remove(&ask->node);
    ask->event_id = event_id;
    ask->record = NULL;
    hf_wf_pending_add(&wf->asks, wf, &ask->node, (uint64_t)event_id, wf->asks_count);
}

static hf_wf_ask *find(hf_wf *wf, int64_t event_id)
{
    hf_list *list = NULL;
    for (int i = 0; (list = hf_wf_pending_at(&wf->asks, (uint64_t)event_id, i)) != NULL; i++) {
        HF_LIST_EACH(node, list)
        {
            hf_wf_ask *ask = HF_CONTAINER(node, hf_wf_ask, node);
            if (ask->event_id == event_id) {
                return ask;
            }
        }
    }
    return NULL;
}

/* The event that asked for what this event tells about; 0 = it tells about nothing of this kind. */
static int64_t asked_by(const hf_pb_history_event *event)
{
    switch (event->attributes_case) {
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES:
        return event->child_workflow_execution_started_event_attributes->initiated_event_id;
    case HF_PB_HISTORY_EVENT_START_CHILD_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES:
        return event->start_child_workflow_execution_failed_event_attributes->initiated_event_id;
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES:
        return event->child_workflow_execution_completed_event_attributes->initiated_event_id;
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES:
        return event->child_workflow_execution_failed_event_attributes->initiated_event_id;
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES:
        return event->child_workflow_execution_canceled_event_attributes->initiated_event_id;
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_TIMED_OUT_EVENT_ATTRIBUTES:
        return event->child_workflow_execution_timed_out_event_attributes->initiated_event_id;
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES:
        return event->child_workflow_execution_terminated_event_attributes->initiated_event_id;
    case HF_PB_HISTORY_EVENT_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED_EVENT_ATTRIBUTES:
        return event->external_workflow_execution_signaled_event_attributes->initiated_event_id;
    case HF_PB_HISTORY_EVENT_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES:
        return event->signal_external_workflow_execution_failed_event_attributes->initiated_event_id;
    case HF_PB_HISTORY_EVENT_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED_EVENT_ATTRIBUTES:
        return event->external_workflow_execution_cancel_requested_event_attributes->initiated_event_id;
    case HF_PB_HISTORY_EVENT_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES:
        return event->request_cancel_external_workflow_execution_failed_event_attributes->initiated_event_id;
    default:
        return 0;
    }
}

static bool ends(const hf_wf_ask *ask, const hf_pb_history_event *event)
{
    return ask->ends_at_start ||
           event->attributes_case != HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES;
}

void hf_wf_will_answer(hf_wf *wf, const hf_pb_history_event *event)
{
    hf_wf_ask *ask = wf->asks_count > 0 ? find(wf, asked_by(event)) : NULL;
    if (ask != NULL && ends(ask, event)) {
        ask->has_ended = true;
    }
}

void hf_wf_answered(hf_wf *wf, const hf_pb_history_event *event)
{
    hf_wf_ask *ask = wf->asks_count > 0 ? find(wf, asked_by(event)) : NULL;
    if (ask == NULL || !ends(ask, event)) {
        return; /* nobody waits for it any more */
    }
    hf_assert(wf->asks_count > 0);
    hf_list_remove(&ask->node);
    wf->asks_count--;
    ask->end = event;
    if (ask->wait == NULL) {
        hf_wf_end_child_job(ask);
    } else if (!ask->is_given_up) { /* else its fiber was woken by the cancel, and sees the end when it runs */
        hf_fiber *self = hf_enter(NULL);
        hf_wake(ask->wait, HF_OK);
        hf_leave(self);
    }
}

/* ---- Children ---------------------------------------------------------------------------------------------------- */

hf_status hf_wf_check_child(hf_op *op, const hf_wf *wf, const char *verb, const char *type, hf_payload in,
                            const hf_child_options *o)
{
    if (type == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "%s needs the type of a workflow", verb);
    }
    HF_TRY(hf_text_check(op, verb, "the type", type, 1, HF_ID_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".id", o->id, 1, HF_ID_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".task_queue", o->task_queue, 1, HF_QUEUE_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".cron", o->cron, 1, HF_ID_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".summary", o->summary, 0, HF_ID_LEN_MAX));
    HF_TRY(hf_entries_check(op, verb, ".memo", o->memo));
    HF_TRY(hf_entries_check(op, verb, ".search_attributes", o->search_attributes));
    HF_TRY(hf_payload_check(op, "the input of the child", in));
    HF_TRY(hf_wf_check_types(op, "child", type, o->final_types));
    const struct {
        const char *name;
        hf_span span;
    } spans[] = {{".execution_timeout", o->execution_timeout},
                 {".run_timeout", o->run_timeout},
                 {".task_timeout", o->task_timeout},
                 {".retry_initial", o->retry_initial},
                 {".retry_max", o->retry_max}};
    for (size_t i = 0; i < HF_COUNT_OF(spans); i++) {
        HF_TRY(hf_span_check(op, verb, spans[i].name, spans[i].span, HF_MAY_BE_UNLIMITED));
    }
    HF_TRY(hf_number_check(op, verb, ".attempts_max", o->attempts_max, HF_MAY_BE_OFF | HF_MAY_BE_UNLIMITED));
    if (!(o->retry_coefficient == 0 ||
          (o->retry_coefficient >= 1 && o->retry_coefficient <= HF_RETRY_COEFFICIENT_MAX))) {
        return hf_fail(op, HF_ERR_INVALID, "%s: .retry_coefficient is %g: it must be 1 to %d", verb,
                       o->retry_coefficient, HF_RETRY_COEFFICIENT_MAX);
    }
    if ((unsigned)o->on_cancel >= HF_ON_CANCEL_COUNT || (unsigned)o->parent_close >= HF_PARENT_CLOSE_COUNT ||
        (unsigned)o->id_reuse > HF_ID_REUSE_REJECT) {
        return hf_fail(op, HF_ERR_INVALID, "%s: .on_cancel, .parent_close or .id_reuse is not one of its values", verb);
    }
    return wf->asks_count < HF_PENDING_MAX
               ? HF_OK
               : hf_fail(op, HF_ERR_LIMIT, "%s: a workflow waits for at most %d children, signals and cancels at once",
                         verb, HF_PENDING_MAX);
}

static hf_pb_retry_policy *retry_of(hf_arena *arena, const hf_child_options *o)
{
    bool is_once = o->attempts_max == 0 || o->attempts_max == HF_OFF || o->attempts_max == 1;
    hf_pb_retry_policy *retry = is_once ? NULL : HF_ARENA_NEW(arena, hf_pb_retry_policy);
    if (retry != NULL) {
        retry->initial_interval = hf_pb_duration_of(o->retry_initial.ns > 0 ? o->retry_initial : hf_seconds(1));
        retry->backoff_coefficient = o->retry_coefficient > 0 ? o->retry_coefficient : 2.0;
        retry->maximum_interval = hf_duration_of_bound(o->retry_max);
        retry->maximum_attempts = o->attempts_max == HF_UNLIMITED ? 0 : o->attempts_max;
        retry->non_retryable_error_types = hf_wf_final_types(arena, o->final_types);
    }
    return retry;
}

/* NULL: no memory. */
static hf_command_record *record_child(hf_wf *wf, const char *type, hf_payload in, hf_str id, const hf_child_options *o)
{
    static const int32_t POLICIES[HF_PARENT_CLOSE_COUNT] = {
        HF_PARENT_CLOSE_POLICY_TERMINATE, HF_PARENT_CLOSE_POLICY_REQUEST_CANCEL, HF_PARENT_CLOSE_POLICY_ABANDON};
    static const int32_t REUSES[] = {[HF_ID_REUSE_DEFAULT] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
                                     [HF_ID_REUSE_ALLOW] = HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
                                     [HF_ID_REUSE_FAILED_ONLY] =
                                         HF_WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
                                     [HF_ID_REUSE_REJECT] = HF_WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE};
    hf_arena *arena = &wf->recorder.arena;
    void *room = NULL;
    hf_command_record *record = hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION,
                                                HF_PB_COMMAND_START_CHILD_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                                                sizeof(hf_pb_start_child_workflow_execution_command_attributes), &room);
    hf_pb_workflow_type *pb_type = HF_ARENA_NEW(arena, hf_pb_workflow_type);
    hf_pb_task_queue *queue = HF_ARENA_NEW(arena, hf_pb_task_queue);
    if (record == NULL || pb_type == NULL || queue == NULL) {
        return NULL;
    }
    record->id = id;
    record->name = hf_arena_copy(arena, hf_str_of(type));
    pb_type->name = record->name;
    queue->name = hf_arena_copy(arena, hf_str_of(o->task_queue != NULL ? o->task_queue : wf->task_queue));
    queue->kind = HF_TASK_QUEUE_KIND_NORMAL;
    hf_pb_start_child_workflow_execution_command_attributes *a = room;
    a->namespace = wf->worker->namespace_;
    a->workflow_id = id;
    a->workflow_type = pb_type;
    a->task_queue = queue;
    a->input = hf_payload_encode(arena, in);
    a->workflow_execution_timeout = hf_duration_of_bound(o->execution_timeout);
    a->workflow_run_timeout = hf_duration_of_bound(o->run_timeout);
    a->workflow_task_timeout = hf_duration_of_bound(o->task_timeout);
    a->parent_close_policy = POLICIES[o->parent_close];
    a->workflow_id_reuse_policy = REUSES[o->id_reuse];
    a->retry_policy = retry_of(arena, o);
    a->cron_schedule = hf_arena_copy(arena, hf_str_of(o->cron != NULL ? o->cron : ""));
    a->header = hf_wf_header_take(wf);
    a->memo = o->memo != NULL ? HF_ARENA_NEW(arena, hf_pb_memo) : NULL;
    a->search_attributes = o->search_attributes != NULL ? HF_ARENA_NEW(arena, hf_pb_search_attributes) : NULL;
    if (a->memo != NULL) {
        hf_entries_memo(arena, o->memo, a->memo);
    }
    if (a->search_attributes != NULL) {
        hf_entries_search(arena, o->search_attributes, a->search_attributes);
    }
    hf_wf_summarize(wf, record, o->summary);
    return arena->status == HF_OK ? record : NULL;
}

hf_command_record *hf_wf_start_child(hf_wf *wf, hf_wf_ask *ask, const char *type, hf_payload in,
                                     const hf_child_options *o)
{
    char number[24];
    (void)snprintf(number, sizeof number, "_%" PRIu64, ++wf->child_seq);
    ask->file = o->file;
    ask->line = o->line;
    hf_here(o->file, o->line);
    hf_arena *arena = &wf->recorder.arena;
    size_t len = o->id != NULL ? strlen(o->id) : strlen(wf->child_base) + strlen(number);
    char *id = hf_arena_take(&wf->kept, len + 1, 1); /* a cancel names it in a later step */
    if (id != NULL) {
        (void)snprintf(id, len + 1, "%s%s", o->id != NULL ? o->id : wf->child_base, o->id != NULL ? "" : number);
    }
    hf_command_record *record =
        id != NULL ? record_child(wf, type, in, hf_arena_copy(arena, hf_str_of_len(id, len)), o) : NULL;
    if (record == NULL) {
        wf->is_nomem = true;
        return NULL;
    }
    ask->id = id;
    await_event(wf, ask, record);
    return record;
}

static hf_status start_child(hf_fiber *self, hf_wf *wf, const char *type, hf_payload in, const hf_child_options *o,
                             hf_wf_ask *ask)
{
    hf_op op;
    hf_op_init(&op);
    HF_TRY(hf_not_evicted(self, "hf_child_run"));
    HF_TRY(hf_wf_not_over(self, wf, "hf_child_run"));
    if (hf_wf_check_child(&op, wf, "hf_child_run", type, in, o) != HF_OK) {
        return hf_refuse_at(self, op.status, "hf_child_run", "%s", op.message);
    }
    HF_TRY(hf_may_wait(self, "hf_child_run"));
    if (hf_wf_start_child(wf, ask, type, in, o) == NULL) {
        return hf_refuse(self, HF_ERR_NOMEM, "no memory for child '%.100s'", type);
    }
    return wait_for(self, wf, ask, type, o->on_cancel);
}

/* Tells the code how a child ended: "child workflow 'pay' failed", because of `cause`. */
static hf_status raise_end(hf_wf *wf, hf_status status, const char *word, const char *type, const char *what,
                           hf_pb_child_workflow_execution_failure_info info, hf_pb_failure *cause)
{
    char text[HF_MESSAGE_LEN_MAX];
    (void)snprintf(text, sizeof text, "child workflow '%s' %s", type, what);
    hf_pb_failure failure = {.message = hf_str_of(text),
                             .cause = cause,
                             .failure_info_case = HF_PB_FAILURE_CHILD_WORKFLOW_EXECUTION_FAILURE_INFO,
                             .child_workflow_execution_failure_info = &info};
    HF_IGNORE(hf_failure_raise(status, word, &failure));
    wf->is_nomem |= !hf_failure_is_whole(&failure);
    return status;
}

/* The fields that all of these events have. */
#define CHILD_INFO(end)                                                                             \
    ((hf_pb_child_workflow_execution_failure_info){.namespace = (end)->namespace,                   \
                                                   .workflow_execution = (end)->workflow_execution, \
                                                   .workflow_type = (end)->workflow_type,           \
                                                   .initiated_event_id = (end)->initiated_event_id, \
                                                   .started_event_id = (end)->started_event_id})

static hf_status failed(hf_wf *wf, const char *type, const hf_pb_child_workflow_execution_failed_event_attributes *end)
{
    hf_pb_child_workflow_execution_failure_info info = CHILD_INFO(end);
    info.retry_state = end->retry_state;
    return raise_end(wf, HF_ERR_FAILED, "ChildWorkflowFailed", type, "failed", info, end->failure);
}

static hf_status timed_out(hf_wf *wf, const char *type,
                           const hf_pb_child_workflow_execution_timed_out_event_attributes *end)
{
    static const char WORD[] = "ChildWorkflowTimedOut";
    if (!hf_wf_plays_by(wf, HF_WF_RULE_CHILDREN)) {
        return hf_raise_typed(HF_ERR_TIMEOUT, WORD, "child workflow '%s' timed out", type);
    }
    hf_pb_timeout_failure_info timeout = {.timeout_type = HF_TIMEOUT_TYPE_START_TO_CLOSE};
    hf_pb_failure cause = {.message = HF_STR("the child ran longer than its timeout"),
                           .source = HF_STR("Server"),
                           .failure_info_case = HF_PB_FAILURE_TIMEOUT_FAILURE_INFO,
                           .timeout_failure_info = &timeout};
    hf_pb_child_workflow_execution_failure_info info = CHILD_INFO(end);
    info.retry_state = end->retry_state;
    return raise_end(wf, HF_ERR_TIMEOUT, WORD, type, "timed out", info, &cause);
}

static hf_status terminated(hf_wf *wf, const char *type,
                            const hf_pb_child_workflow_execution_terminated_event_attributes *end)
{
    static const char WORD[] = "ChildWorkflowTerminated";
    if (!hf_wf_plays_by(wf, HF_WF_RULE_CHILDREN)) {
        return hf_raise_typed(HF_ERR_CLOSED, WORD, "child workflow '%s' was terminated", type);
    }
    hf_pb_terminated_failure_info info = {0};
    hf_pb_failure cause = {.message = HF_STR("the workflow was terminated"),
                           .source = HF_STR("Server"),
                           .failure_info_case = HF_PB_FAILURE_TERMINATED_FAILURE_INFO,
                           .terminated_failure_info = &info};
    return raise_end(wf, HF_ERR_CLOSED, WORD, type, "was terminated", CHILD_INFO(end), &cause);
}

static hf_status canceled(hf_wf *wf, const char *type,
                          const hf_pb_child_workflow_execution_canceled_event_attributes *end)
{
    if (!hf_wf_plays_by(wf, HF_WF_RULE_CHILDREN)) {
        return hf_raise(HF_ERR_CANCELED, "child workflow '%s' was canceled", type);
    }
    hf_pb_canceled_failure_info info = {.details = end->details};
    hf_pb_failure cause = {.message = HF_STR("the workflow was canceled"),
                           .source = HF_STR("Server"),
                           .failure_info_case = HF_PB_FAILURE_CANCELED_FAILURE_INFO,
                           .canceled_failure_info = &info};
    return raise_end(wf, HF_ERR_CANCELED, "ChildWorkflowCanceled", type, "was canceled", CHILD_INFO(end), &cause);
}

hf_status hf_wf_child_outcome(hf_wf *wf, const char *type, const hf_wf_ask *ask, bool is_canceled, hf_payload *ret_out)
{
    const hf_pb_history_event *end = ask->end;
    switch (end->attributes_case) {
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_STARTED_EVENT_ATTRIBUTES:
        return HF_OK;
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_COMPLETED_EVENT_ATTRIBUTES:
        if (hf_payload_decode(end->child_workflow_execution_completed_event_attributes->result, &wf->payloads,
                              ret_out) != HF_OK) {
            wf->is_nomem = true;
            return hf_raise(HF_ERR_NOMEM, "no memory for the result of child '%s'", type);
        }
        return HF_OK;
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES:
        return failed(wf, type, end->child_workflow_execution_failed_event_attributes);
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_TIMED_OUT_EVENT_ATTRIBUTES:
        return timed_out(wf, type, end->child_workflow_execution_timed_out_event_attributes);
    case HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_TERMINATED_EVENT_ATTRIBUTES:
        return terminated(wf, type, end->child_workflow_execution_terminated_event_attributes);
    case HF_PB_HISTORY_EVENT_START_CHILD_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES:
        return end->start_child_workflow_execution_failed_event_attributes->cause ==
                       HF_START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS
                   ? hf_raise(HF_ERR_EXISTS, "child '%s' cannot start: a workflow with the id '%s' exists", type,
                              ask->id)
                   : hf_raise(HF_ERR_NOT_FOUND, "child '%s' cannot start: its namespace is not found", type);
    default:
        hf_assert(end->attributes_case == HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES);
        return is_canceled ? HF_ERR_CANCELED
                           : canceled(wf, type, end->child_workflow_execution_canceled_event_attributes);
    }
}

/* What the end of a child means to the fiber that waited for it. */
static hf_status outcome_of(hf_wf *wf, const char *type, const hf_wf_ask *ask, hf_payload *ret_out)
{
    bool has_ended_canceled =
        ask->end->attributes_case == HF_PB_HISTORY_EVENT_CHILD_WORKFLOW_EXECUTION_CANCELED_EVENT_ATTRIBUTES;
    return hf_wf_child_outcome(wf, type, ask,
                               has_ended_canceled && hf_wf_is_canceled("hf_child_run") /* why is noted */, ret_out);
}

hf_status hf_child_run_with(const char *type, hf_payload in, hf_payload *ret_out, const hf_child_options *options)
{
    HF_OPTIONS(hf_child_options, options, hf_child_run);
    HF_TRY(hf_wf_header_make("hf_child_run", options->header));
    HF_VERB_ENTER(self, hf_child_run, NULL);
    hf_wf *wf = hf_wf_self();
    if (wf == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_child_run is for workflows; elsewhere use hf_start"));
    }
    hf_wf_ask ask = {.wf = wf, .is_child = true};
    hf_status status = start_child(self, wf, type, in, options, &ask);
    hf_leave(self);
    return status != HF_OK ? status : outcome_of(wf, type, &ask, ret_out);
}

hf_status hf_child_start_with(const char *type, hf_payload in, const hf_child_options *options)
{
    HF_OPTIONS(hf_child_options, options, hf_child_start);
    HF_TRY(hf_wf_header_make("hf_child_start", options->header));
    HF_VERB_ENTER(self, hf_child_start, NULL);
    hf_wf *wf = hf_wf_self();
    if (wf == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_child_start is for workflows; elsewhere use hf_start"));
    }
    hf_wf_ask ask = {.wf = wf, .is_child = true, .ends_at_start = true};
    hf_status status = start_child(self, wf, type, in, options, &ask);
    hf_leave(self);
    return status != HF_OK ? status : outcome_of(wf, type, &ask, NULL);
}

/* ---- Any workflow ------------------------------------------------------------------------------------------------ */

static hf_status check_external(hf_op *op, hf_fiber *self, const hf_wf *wf, const char *verb, const char *id)
{
    if (wf == NULL || id == NULL) {
        return hf_fail(op, HF_ERR_MISUSE, "%s needs the id of a workflow, and can only be called in a workflow", verb);
    }
    HF_TRY(hf_not_evicted(self, verb));
    HF_TRY(hf_wf_not_over(self, wf, verb));
    HF_TRY(hf_text_check(op, verb, "the workflow id", id, 1, HF_ID_LEN_MAX));
    if (wf->asks_count >= HF_PENDING_MAX) {
        return hf_fail(op, HF_ERR_LIMIT, "%s: a workflow waits for at most %d children, signals and cancels at once",
                       verb, HF_PENDING_MAX);
    }
    return hf_may_wait(self, verb);
}

/* Refuses with the sentence of `op`, if that has one. */
static hf_status refused(hf_fiber *self, const hf_op *op, hf_status status, const char *verb)
{
    return op->status != HF_OK ? hf_refuse_at(self, op->status, verb, "%s", op->message) : status;
}

static hf_status external_outcome(const hf_wf_ask *ask, const char *id)
{
    switch (ask->end->attributes_case) {
    case HF_PB_HISTORY_EVENT_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES:
        return ask->end->signal_external_workflow_execution_failed_event_attributes->cause ==
                       HF_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_SIGNAL_COUNT_LIMIT_EXCEEDED
                   ? hf_raise(HF_ERR_LIMIT, "workflow '%s' takes no more signals", id)
                   : hf_raise(HF_ERR_NOT_FOUND, "no workflow '%s' runs", id);
    case HF_PB_HISTORY_EVENT_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_EVENT_ATTRIBUTES:
        return hf_raise(HF_ERR_NOT_FOUND, "no workflow '%s' runs", id);
    default:
        return HF_OK;
    }
}

static hf_command_record *record_signal(hf_wf *wf, const char *id, const char *run_id, const char *name, hf_payload in)
{
    hf_arena *arena = &wf->recorder.arena;
    void *room = NULL;
    hf_command_record *record =
        hf_recorder_add(&wf->recorder, HF_COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION,
                        HF_PB_COMMAND_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
                        sizeof(hf_pb_signal_external_workflow_execution_command_attributes), &room);
    hf_pb_workflow_execution *execution = HF_ARENA_NEW(arena, hf_pb_workflow_execution);
    if (record == NULL || execution == NULL) {
        return NULL;
    }
    hf_pb_signal_external_workflow_execution_command_attributes *a = room;
    record->id = hf_arena_copy(arena, hf_str_of(id));
    record->name = hf_arena_copy(arena, hf_str_of(name));
    execution->workflow_id = record->id;
    execution->run_id = run_id != NULL ? hf_arena_copy(arena, hf_str_of(run_id)) : (hf_str){NULL, 0};
    a->namespace = wf->worker->namespace_;
    a->execution = execution;
    a->signal_name = record->name;
    a->input = hf_payload_encode(arena, in);
    a->header = hf_wf_header_take(wf);
    return arena->status == HF_OK ? record : NULL;
}

hf_status hf_external_signal_with(const char *id, const char *name, hf_payload in, const hf_external_options *options)
{
    static const char VERB[] = "hf_external_signal";
    HF_OPTIONS(hf_external_options, options, hf_external_signal);
    hf_here(options->file, options->line);
    HF_TRY(hf_wf_header_make(VERB, options->header));
    HF_VERB_ENTER(self, hf_external_signal, NULL);
    hf_wf *wf = hf_wf_self();
    hf_op op;
    hf_op_init(&op);
    hf_status status = check_external(&op, self, wf, VERB, id);
    if (status == HF_OK) {
        status = name != NULL ? hf_text_check(&op, VERB, "the name", name, 1, HF_ID_LEN_MAX)
                              : hf_fail(&op, HF_ERR_MISUSE, "hf_external_signal needs a name");
    }
    if (status == HF_OK) {
        status = hf_text_check(&op, VERB, ".run_id", options->run_id, 1, HF_ID_LEN_MAX);
    }
    if (status == HF_OK) {
        status = hf_payload_check(&op, "hf_external_signal: the payload", in);
    }
    hf_command_record *record = status == HF_OK ? record_signal(wf, id, options->run_id, name, in) : NULL;
    if (status == HF_OK && record == NULL) {
        wf->is_nomem = true;
        status = hf_fail(&op, HF_ERR_NOMEM, "no memory for a signal");
    }
    if (status != HF_OK) {
        HF_LEAVE(self, refused(self, &op, status, VERB));
    }
    hf_wf_ask ask = {.wf = wf, .id = id};
    await_event(wf, &ask, record);
    status = wait_for(self, wf, &ask, id, HF_CANCEL_ABANDON);
    hf_leave(self);
    return status != HF_OK ? status : external_outcome(&ask, id);
}

hf_status(hf_external_cancel)(const char *id, const char *reason)
{
    static const char VERB[] = "hf_external_cancel";
    HF_VERB_ENTER(self, hf_external_cancel, NULL);
    hf_wf *wf = hf_wf_self();
    hf_op op;
    hf_op_init(&op);
    hf_wf_ask ask = {.wf = wf, .id = id};
    hf_status status = check_external(&op, self, wf, VERB, id);
    if (status == HF_OK) {
        status = hf_text_check(&op, VERB, "the reason", reason, 0, HF_ID_LEN_MAX);
    }
    if (status == HF_OK) {
        (void)record_cancel(wf, hf_str_of(id), reason, false, &ask);
        status = ask.record != NULL && !wf->is_nomem ? HF_OK : hf_fail(&op, HF_ERR_NOMEM, "no memory for a cancel");
    }
    if (status != HF_OK) {
        HF_LEAVE(self, refused(self, &op, status, VERB));
    }
    await_event(wf, &ask, ask.record);
    status = wait_for(self, wf, &ask, id, HF_CANCEL_ABANDON);
    hf_leave(self);
    return status != HF_OK ? status : external_outcome(&ask, id);
}
