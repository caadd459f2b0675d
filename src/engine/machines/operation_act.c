/* What an operation does to one run: a message, which is a call like that of a client. */
#include "engine/machines/operation_private.h"

#include "base/canary.h"
#include "base/digest.h"
#include "engine/answer.h"
#include "engine/emit.h"
#include "engine/input_private.h"
#include "engine/load.h"
#include "engine/machines/machines.h"
#include "engine/machines/message.h"
#include "engine/namespaces.h"
#include "history/limits.h"

#include <stdio.h>

#define CASE(name) HF_PB_START_BATCH_OPERATION_REQUEST_##name##_OPERATION

size_t hf_operation_portion(const hf_operation *it)
{
    size_t given = it->core->options.operation_portion;
    size_t most = it->start.type == HF_BATCH_OPERATION_TYPE_RESET ? HF_OPERATION_RESETS : HF_OPERATION_PORTION;
    most = given > 0 && given < most ? given : most;
    double rate = (double)it->request.max_operations_per_second; /* at most a second's worth at a time */
    return rate <= 0 || rate >= (double)most ? most : rate < 1 ? 1 : (size_t)rate;
}

hf_str hf_operation_namespace(const hf_operation *it)
{
    HF_LIST_EACH(node, &it->core->namespaces_all)
    {
        hf_str name = hf_owned_str(&HF_CONTAINER(node, hf_namespace, link)->name);
        if (HF_CANARY(HF_BUG_BATCH_OTHER_NAMESPACE) && !hf_str_equal(name, it->request.namespace)) {
            return name;
        }
    }
    return it->request.namespace;
}

/* Operations that mean nothing for a run that has ended only look for open ones, as on Temporal. */
hf_str hf_operation_query(hf_operation *it)
{
    int32_t type = it->start.type;
    hf_str query = it->request.visibility_query;
    if (query.len == 0 || type == HF_BATCH_OPERATION_TYPE_DELETE || type == HF_BATCH_OPERATION_TYPE_RESET) {
        return query;
    }
    static const char BEHIND[] = ") AND ExecutionStatus = 'Running'";
    size_t len = 1 + query.len + sizeof BEHIND - 1;
    char *text = hf_arena_take(&it->arena, len, 1);
    if (text == NULL) {
        return query; /* the arena's status tells */
    }
    text[0] = '(';
    memcpy(text + 1, query.data, query.len);
    memcpy(text + 1 + query.len, BEHIND, sizeof BEHIND - 1);
    return hf_str_of_len(text, len);
}

/* engine-O2: the same for every message of this operation to this run, and for no other. */
static hf_str request_id(hf_operation *it, const hf_run *run, const hf_pb_operation_target *target)
{
    char text[HF_ID_LEN_MAX + 64];
    int len = target->run_id.len > 0
                  ? snprintf(text, sizeof text, "%.*s/%.*s", HF_STR_ARGS(hf_owned_str(&run->run_id)),
                             HF_STR_ARGS(target->run_id))
                  : snprintf(text, sizeof text, "%.*s/id/%016llx", HF_STR_ARGS(hf_owned_str(&run->run_id)),
                             (unsigned long long)hf_digest(0, target->workflow_id));
    hf_assert(len > 0 && (size_t)len < sizeof text);
    return hf_arena_copy(&it->arena, hf_str_of_len(text, (size_t)len));
}

/* ---- Requests ---------------------------------------------------------------------------------------------------------- */

typedef struct making {
    hf_operation *it;
    hf_str namespace_;
    hf_pb_workflow_execution *execution;
    hf_str request_id;
} making;

#define NEW(stem) hf_pb_##stem##_request *request = HF_ARENA_NEW(&m->it->arena, hf_pb_##stem##_request)

static const void *make_termination(const making *m)
{
    NEW(terminate_workflow_execution);
    const hf_pb_batch_operation_termination *asked = m->it->request.termination_operation;
    if (request != NULL) {
        *request = (hf_pb_terminate_workflow_execution_request){
            .namespace = m->namespace_,
            .workflow_execution = m->execution,
            .reason = m->it->request.reason,
            .details = asked->details,
            .identity = asked->identity,
        };
    }
    return request;
}

static const void *make_signal(const making *m)
{
    NEW(signal_workflow_execution);
    const hf_pb_batch_operation_signal *asked = m->it->request.signal_operation;
    if (request != NULL) {
        *request = (hf_pb_signal_workflow_execution_request){
            .namespace = m->namespace_,
            .workflow_execution = m->execution,
            .signal_name = asked->signal,
            .input = asked->input,
            .identity = asked->identity,
            .request_id = HF_CANARY(HF_BUG_BATCH_ACTS_TWICE) ? HF_STR("") : m->request_id,
            .header = asked->header,
        };
    }
    return request;
}

static const void *make_cancellation(const making *m)
{
    NEW(request_cancel_workflow_execution);
    if (request != NULL) {
        *request = (hf_pb_request_cancel_workflow_execution_request){
            .namespace = m->namespace_,
            .workflow_execution = m->execution,
            .identity = m->it->request.cancellation_operation->identity,
            .request_id = m->request_id,
            .reason = m->it->request.reason,
        };
    }
    return request;
}

static const void *make_deletion(const making *m)
{
    NEW(delete_workflow_execution);
    if (request != NULL) {
        *request =
            (hf_pb_delete_workflow_execution_request){.namespace = m->namespace_, .workflow_execution = m->execution};
    }
    return request;
}

static const void *make_reset(const making *m)
{
    NEW(reset_workflow_execution);
    const hf_pb_batch_operation_reset *asked = m->it->request.reset_operation;
    const hf_pb_reset_options *options = asked->options;
    if (request == NULL) {
        return NULL;
    }
    *request = (hf_pb_reset_workflow_execution_request){
        .namespace = m->namespace_,
        .workflow_execution = m->execution,
        .reason = m->it->request.reason,
        .request_id = m->request_id,
        .reset_reapply_type = options != NULL ? options->reset_reapply_type : asked->reset_reapply_type,
        .post_reset_operations = asked->post_reset_operations,
        .identity = asked->identity,
        .holdfast_point = asked->reset_type, /* 1 and 2 mean the same for both */
    };
    if (options != NULL) {
        request->reset_reapply_exclude_types = options->reset_reapply_exclude_types;
        bool is_event = options->target_case == HF_PB_RESET_OPTIONS_WORKFLOW_TASK_ID;
        request->workflow_task_finish_event_id = is_event ? options->workflow_task_id : 0;
        request->holdfast_point = is_event                                                          ? 0
                                  : options->target_case == HF_PB_RESET_OPTIONS_FIRST_WORKFLOW_TASK ? 1
                                                                                                    : 2;
    }
    return request;
}

static const void *make_options(const making *m)
{
    NEW(update_workflow_execution_options);
    const hf_pb_batch_operation_update_workflow_execution_options *asked =
        m->it->request.update_workflow_options_operation;
    if (request != NULL) {
        *request = (hf_pb_update_workflow_execution_options_request){
            .namespace = m->namespace_,
            .workflow_execution = m->execution,
            .workflow_execution_options = asked->workflow_execution_options,
            .update_mask = asked->update_mask,
            .identity = asked->identity,
        };
    }
    return request;
}

static const void *make_unpause(const making *m)
{
    NEW(unpause_activity);
    const hf_pb_batch_operation_unpause_activities *asked = m->it->request.unpause_activities_operation;
    if (request == NULL) {
        return NULL;
    }
    *request = (hf_pb_unpause_activity_request){
        .namespace = m->namespace_,
        .execution = m->execution,
        .identity = asked->identity,
        .reset_attempts = asked->reset_attempts,
        .reset_heartbeat = asked->reset_heartbeat,
        .jitter = asked->jitter,
    };
    if (asked->activity_case == HF_PB_BATCH_OPERATION_UNPAUSE_ACTIVITIES_TYPE) {
        request->activity_case = HF_PB_UNPAUSE_ACTIVITY_REQUEST_TYPE;
        request->type = asked->type;
    } else {
        request->activity_case = HF_PB_UNPAUSE_ACTIVITY_REQUEST_UNPAUSE_ALL;
        request->unpause_all = true;
    }
    return request;
}

static const void *make_activity_reset(const making *m)
{
    NEW(reset_activity);
    const hf_pb_batch_operation_reset_activities *asked = m->it->request.reset_activities_operation;
    if (request == NULL) {
        return NULL;
    }
    *request = (hf_pb_reset_activity_request){
        .namespace = m->namespace_,
        .execution = m->execution,
        .identity = asked->identity,
        .reset_heartbeat = asked->reset_heartbeat,
        .keep_paused = asked->keep_paused,
        .jitter = asked->jitter,
        .restore_original_options = asked->restore_original_options,
    };
    if (asked->activity_case == HF_PB_BATCH_OPERATION_RESET_ACTIVITIES_TYPE) {
        request->activity_case = HF_PB_RESET_ACTIVITY_REQUEST_TYPE;
        request->type = asked->type;
    } else {
        request->activity_case = HF_PB_RESET_ACTIVITY_REQUEST_MATCH_ALL;
        request->match_all = true;
    }
    return request;
}

static const void *make_activity_options(const making *m)
{
    NEW(update_activity_options);
    const hf_pb_batch_operation_update_activity_options *asked = m->it->request.update_activity_options_operation;
    if (request == NULL) {
        return NULL;
    }
    *request = (hf_pb_update_activity_options_request){
        .namespace = m->namespace_,
        .execution = m->execution,
        .identity = asked->identity,
        .activity_options = asked->activity_options,
        .update_mask = asked->update_mask,
        .restore_original = asked->restore_original,
    };
    if (asked->activity_case == HF_PB_BATCH_OPERATION_UPDATE_ACTIVITY_OPTIONS_TYPE) {
        request->activity_case = HF_PB_UPDATE_ACTIVITY_OPTIONS_REQUEST_TYPE;
        request->type = asked->type;
    } else {
        request->activity_case = HF_PB_UPDATE_ACTIVITY_OPTIONS_REQUEST_MATCH_ALL;
        request->match_all = true;
    }
    return request;
}

typedef struct act {
    uint32_t which; /* of the request's operation */
    hf_method method;
    const void *(*make)(const making *m);
    bool is_remembered; /* the run remembers the request id, because what is done has no end of its own: engine-O2 */
} act;

static const act ACTS[] = {
    {CASE(TERMINATION), HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, make_termination, false},
    {CASE(SIGNAL), HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, make_signal, false},
    {CASE(CANCELLATION), HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, make_cancellation, false},
    {CASE(DELETION), HF_METHOD_DELETE_WORKFLOW_EXECUTION, make_deletion, false},
    {CASE(RESET), HF_METHOD_RESET_WORKFLOW_EXECUTION, make_reset, false},
    {CASE(UPDATE_WORKFLOW_OPTIONS), HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS, make_options, true},
    {CASE(UNPAUSE_ACTIVITIES), HF_METHOD_UNPAUSE_ACTIVITY, make_unpause, true},
    {CASE(RESET_ACTIVITIES), HF_METHOD_RESET_ACTIVITY, make_activity_reset, true},
    {CASE(UPDATE_ACTIVITY_OPTIONS), HF_METHOD_UPDATE_ACTIVITY_OPTIONS, make_activity_options, true},
};

static const act *act_of(const hf_operation *it)
{
    for (size_t i = 0; i < HF_COUNT_OF(ACTS); i++) {
        if (ACTS[i].which == it->request.operation_case) {
            return &ACTS[i];
        }
    }
    hf_assert(false); /* checked when it was started, and the record has a checksum */
    return NULL;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------------- */

static void send(hf_core *core, hf_operation *it, hf_run *run, size_t index)
{
    const hf_pb_operation_target *target = &it->progress.taken.items[index];
    const act *what = act_of(it);
    making m = {
        .it = it,
        .namespace_ = hf_operation_namespace(it),
        .execution = HF_ARENA_NEW(&it->arena, hf_pb_workflow_execution),
        .request_id = request_id(it, run, target),
    };
    if (m.execution != NULL) {
        m.execution->workflow_id = target->workflow_id;
        m.execution->run_id = target->run_id;
    }
    const void *request = what->make(&m);
    hf_message *message =
        it->arena.status == HF_OK ? hf_message_new(core, run, HF_MESSAGE_BATCH, (int64_t)index, HF_STR("")) : NULL;
    if (it->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    if (message != NULL) {
        message->batch_id = m.request_id;
        it->pending++;
        hf_message_post(core, message, what->method, request);
    }
}

void hf_operation_send(hf_core *core, hf_operation *it, hf_run *run)
{
    size_t count = it->progress.taken.count;
    hf_assert(count > 0 && count <= HF_OPERATION_PORTION && it->pending == 0); /* engine-O1 */
    it->stage = OPERATION_SENT;
    if (it->outcomes == NULL) {
        it->outcomes = HF_ARENA_ARRAY(&it->arena, hf_operation_outcome, count);
        it->reasons = HF_ARENA_ARRAY(&it->arena, hf_str, count);
    }
    for (size_t i = 0; it->arena.status == HF_OK && i < count && core->status == HF_OK; i++) {
        if (it->outcomes[i] == OUTCOME_NONE || it->outcomes[i] == OUTCOME_AGAIN) {
            send(core, it, run, i);
        }
    }
    if (it->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    if (HF_CANARY(HF_BUG_BATCH_ACTS_TWICE) && core->status == HF_OK) {
        send(core, it, run, 0);
    }
}

/* ---- Arriving ---------------------------------------------------------------------------------------------------------- */

bool hf_operation_asks(const hf_call *call)
{
    const hf_message *message = hf_message_of_const(call);
    return message != NULL && message->kind == HF_MESSAGE_BATCH;
}

static hf_operation *sender_of(hf_core *core, const hf_call *call)
{
    hf_run *run = hf_operation_asks(call) ? hf_run_find(core, hf_message_of_const(call)->source) : NULL;
    return run != NULL ? HF_SLOT(run)->operation : NULL;
}

bool hf_operation_purges(hf_core *core, const hf_call *call)
{
    const hf_operation *it = sender_of(core, call);
    return it != NULL && it->start.purges;
}

static bool is_about_activities(const hf_operation *it)
{
    return it->request.operation_case == CASE(UNPAUSE_ACTIVITIES) ||
           it->request.operation_case == CASE(RESET_ACTIVITIES) ||
           it->request.operation_case == CASE(UPDATE_ACTIVITY_OPTIONS);
}

static void note_activities(hf_core *core, const hf_operation *it)
{
    if (it->has_acted && is_about_activities(it)) {
        HF_PROBE(core, it->request.operation_case == CASE(UNPAUSE_ACTIVITIES) ? HF_PROBE_BATCH_UNPAUSED
                       : it->request.operation_case == CASE(RESET_ACTIVITIES) ? HF_PROBE_BATCH_ACTIVITY_RESET
                                                                              : HF_PROBE_BATCH_ACTIVITY_OPTIONS);
    }
}

/* False: it must not act on this run, and is answered. */
static bool may_act(hf_core *core, hf_call *call, const hf_operation *it, const hf_run *run)
{
    if ((it == NULL || it->is_stopped) && !HF_CANARY(HF_BUG_BATCH_AFTER_STOP)) {
        HF_PROBE(core, HF_PROBE_BATCH_LATE);
        hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the operation was stopped");
        return false;
    }
    hf_assert(it != NULL);                                                              /* its messages hold it */
    hf_assert(hf_str_equal(hf_owned_str(&run->namespace), hf_operation_namespace(it))); /* engine-O3 */
    hf_assert(run->kind == HF_KIND_WORKFLOW || it->start.purges);                       /* the same */
    if (act_of(it)->is_remembered && hf_request_is_known(run, hf_message_of(call)->batch_id)) {
        HF_PROBE(core, HF_PROBE_BATCH_AGAIN);
        if (is_about_activities(it)) {
            HF_PROBE(core, HF_PROBE_BATCH_ACTIVITY_AGAIN);
        }
        hf_call_response(core, call);
        hf_call_reply(core, call);
        return false; /* engine-O2 */
    }
    return true;
}

void hf_operation_act(hf_core *core, hf_call *call, hf_run *run)
{
    hf_operation *it = sender_of(core, call);
    if (!may_act(core, call, it, run)) {
        return;
    }
    hf_str id = hf_message_of(call)->batch_id; /* in the memory of the operation: the message may be gone soon */
    it->has_acted = false;
    hf_input_dispatch(core, call, run);
    note_activities(core, it);
    bool is_remembered = core->status == HF_OK && it->has_acted && act_of(it)->is_remembered;
    if (is_remembered && !HF_CANARY(HF_BUG_BATCH_NOT_REMEMBERED) && hf_run_is_open(run) &&
        run->request_ids.count < HF_REQUEST_IDS_MAX) {
        hf_record_str(core, run, HF_CHANGE_REQUEST_ID, id);
    }
}

/* Whether the same call may do better in a moment. */
static bool may_pass(const hf_call *call)
{
    return (call->status == HF_ERR_LIMIT && !call->is_final) || call->status == HF_ERR_UNAVAILABLE ||
           call->status == HF_ERR_FULL || call->status == HF_ERR_AGAIN;
}

void hf_operation_answered(hf_core *core, hf_run *run, const hf_message *message)
{
    hf_operation *it = HF_SLOT(run)->operation;
    const hf_call *call = &message->call;
    size_t index = (size_t)message->id;
    hf_assert(it != NULL && it->pending > 0 && index < it->progress.taken.count); /* engine-M1 */
    it->has_acted = call->status == HF_OK;
    it->outcomes[index] = call->status == HF_OK              ? OUTCOME_DONE
                          : call->status == HF_ERR_NOT_FOUND ? OUTCOME_GONE
                          : may_pass(call)                   ? OUTCOME_AGAIN
                                                             : OUTCOME_FAILED;
    if (it->outcomes[index] == OUTCOME_AGAIN || it->outcomes[index] == OUTCOME_FAILED) {
        it->reasons[index] = hf_arena_copy(&it->arena, hf_str_of(call->message));
    }
    if (--it->pending == 0) {
        it->stage = OPERATION_ANSWERED;
        hf_list_remove(&it->link);
        hf_list_push_back(&core->operations.next, &it->link);
    }
    if (it->arena.status != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}
