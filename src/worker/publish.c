/* hf_publish: records for the stream of a workflow.
 *
 * In a workflow a record goes with the answer of the step that published it. A step that is replayed has been answered, so what it publishes
 * is on the disk and is only counted. The count, which the limit needs, begins with the records of earlier runs of the chain, as every task
 * tells them, so it is the same in every replay.
 *
 * In an activity it goes with a heartbeat that has no details. The request id lets the service recognise it when it is sent again.
 *
 * worker-N1  A record of a workflow is sent if and only if its step is in no history yet. */
#include "worker/activity_private.h"
#include "worker/wf.h"

#include "base/canary.h"
#include "base/status.h"
#include "client/errand.h"
#include "fiber/crew/strand.h"
#include "fiber/verbs.h"
#include "history/limits.h"

#include <holdfast/stream.h>

enum { RECORD_LEN = 64 }; /* bytes that a record counts beside its type and its payload */

static hf_status check(hf_op *op, const hf_service *service, const char *type, hf_payload value)
{
    if (service->is_foreign) { /* it would take the record, and forget it */
        return hf_fail(op, HF_ERR_UNSUPPORTED, "hf_publish needs a Holdfast server: this one does not have streams");
    }
    HF_TRY(hf_text_check(op, "hf_publish", "the type", type, 0, HF_ID_LEN_MAX));
    return hf_payload_check(op, "hf_publish: the payload", value);
}

static hf_pb_stream_record record_of(hf_arena *arena, const char *type, hf_payload value)
{
    hf_pb_payloads *list = hf_payload_encode(arena, value);
    return (hf_pb_stream_record){
        .type = type != NULL ? hf_arena_copy(arena, hf_str_of(type)) : (hf_str){NULL, 0},
        .payload = list != NULL && list->payloads.count > 0 ? &list->payloads.items[0] : NULL,
    };
}

/* ---- In a workflow ----------------------------------------------------------------------------------------------------- */

static hf_status count(hf_op *op, hf_wf *wf, const char *type, hf_payload value)
{
    int64_t len = (int64_t)(value.len + (type != NULL ? strlen(type) : 0) + RECORD_LEN);
    if (wf->stream_count + 1 > HF_STREAM_COUNT_MAX || wf->stream_len + len > HF_STREAM_LEN_MAX) {
        return hf_fail(op, HF_ERR_LIMIT,
                       "hf_publish: the stream has %lld records and %lld bytes; it takes no more than %d records and "
                       "%lld bytes",
                       (long long)wf->stream_count, (long long)wf->stream_len, HF_STREAM_COUNT_MAX,
                       (long long)HF_STREAM_LEN_MAX);
    }
    hf_assert(len >= RECORD_LEN);
    wf->stream_count++;
    wf->stream_len += len;
    return HF_OK;
}

static hf_status publish_in_workflow(hf_fiber *self, hf_wf *wf, const char *type, hf_payload value)
{
    hf_op op;
    hf_op_init(&op);
    HF_TRY(hf_not_evicted(self, "hf_publish"));
    HF_TRY(hf_wf_not_over(self, wf, "hf_publish"));
    hf_status status = check(&op, wf->worker->service, type, value);
    status = status == HF_OK ? count(&op, wf, type, value) : status;
    if (status == HF_OK && (wf->is_current || HF_CANARY(HF_BUG_PUBLISHED_AGAIN))) { /* worker-N1 */
        hf_recorder *recorder = &wf->recorder;
        hf_assert(wf->own_count == 0 || HF_CANARY(HF_BUG_PUBLISHED_AGAIN)); /* worker-N1 */
        hf_arena *arena = HF_CANARY(HF_BUG_PUBLISHED_AGAIN) ? &wf->kept : &recorder->arena;
        hf_published *published = HF_ARENA_NEW(arena, hf_published);
        if (published != NULL) {
            published->record = record_of(arena, type, value);
            hf_list_push_back(&recorder->published, &published->node);
            recorder->published_count++;
        }
        if (arena->status != HF_OK) {
            wf->is_nomem = true;
            status = hf_fail(&op, HF_ERR_NOMEM, "hf_publish: no memory for the record");
        }
    }
    return status == HF_OK ? HF_OK : hf_refuse_at(self, status, "hf_publish", "%s", op.message);
}

hf_pb_stream_record_list hf_recorder_published(const hf_recorder *recorder, hf_arena *arena)
{
    hf_pb_stream_record_list list = {NULL, 0};
    if (HF_LIKELY(recorder->published_count == 0)) {
        return list;
    }
    list.items = HF_ARENA_ARRAY(arena, hf_pb_stream_record, recorder->published_count);
    HF_LIST_EACH(node, &recorder->published)
    {
        if (list.items != NULL) {
            list.items[list.count++] = HF_CONTAINER(node, hf_published, node)->record;
        }
    }
    hf_assert(list.items == NULL || list.count == recorder->published_count);
    return list;
}

/* ---- In an activity ---------------------------------------------------------------------------------------------------- */

enum { PAUSE_MS = 100 }; /* between two attempts to send a record */

static hf_status send(hf_op *op, hf_activity_work *act, const char *type, hf_payload value)
{
    hf_worker *worker = act->worker;
    char request_id[HF_UUID_LEN];
    hf_str id = hf_id_or_random(op, NULL, request_id);
    hf_status status = op->status;
    hf_assert(act->job == NULL);
    while (status == HF_OK) {
        hf_arena arena;
        hf_arena_init(&arena, worker->memory);
        hf_pb_stream_record record = record_of(&arena, type, value);
        hf_pb_record_activity_task_heartbeat_request request = {.namespace = worker->namespace_,
                                                                .identity = worker->identity,
                                                                .task_token = act->task->task_token,
                                                                .holdfast_stream = {&record, 1},
                                                                .holdfast_request_id = id};
        hf_call call;
        hf_op_init(op);
        hf_worker_call_init(worker, &call, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, &request, &arena);
        status = arena.status == HF_OK ? hf_service_ask(op, worker->service, &call)
                                       : hf_fail(op, HF_ERR_NOMEM, "hf_publish: no memory for the record");
        hf_arena_deinit(&arena);
        bool may_pass = hf_status_may_pass(status) && !call.is_final;
        if (!may_pass) {
            return status;
        }
        status = hf_sleep(hf_milliseconds(PAUSE_MS)); /* which a cancel of the activity ends */
    }
    return status;
}

hf_status hf_publish(const char *type, hf_payload value)
{
    hf_wf *wf = hf_wf_self();
    if (wf != NULL) {
        HF_VERB_ENTER(self, hf_publish, NULL);
        HF_LEAVE(self, publish_in_workflow(self, wf, type, value));
    }
    hf_activity_work *act = hf_local_get(&hf_activity_local);
    if (act == NULL || act->job != NULL) {
        return hf_raise(HF_ERR_MISUSE, act == NULL ? "hf_publish can only be called in a workflow or an activity"
                                                   : "hf_publish cannot be called in a local activity: its workflow "
                                                     "can publish what it returns");
    }
    hf_op op;
    hf_op_init(&op);
    hf_status status = check(&op, act->worker->service, type, value);
    status = status == HF_OK ? send(&op, act, type, value) : status;
    return status == HF_OK || op.status == HF_OK ? status : hf_failure_raise_op(&op);
}
