/* Calls that wait for updates: for which stage each waits, and how they are answered. */
#include "engine/machines/update_private.h"

#include "base/canary.h"
#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/machines/multi.h"
#include "engine/poll.h"
#include "history/payload.h"

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static void reply(hf_core *core, hf_call *call)
{
    if (HF_CANARY(HF_BUG_UPDATE_TOLD_EARLY) && core->status == HF_OK) {
        hf_call_now(call);
        return;
    }
    hf_call_reply(core, call); /* with the commit */
}

static hf_pb_update_ref *ref_of(hf_call *call, const hf_run *run, hf_str id)
{
    hf_pb_update_ref *ref = HF_ARENA_NEW(call->arena, hf_pb_update_ref);
    if (ref == NULL) {
        return NULL;
    }
    ref->update_id = hf_arena_copy(call->arena, id);
    ref->workflow_execution = HF_ARENA_NEW(call->arena, hf_pb_workflow_execution);
    if (ref->workflow_execution != NULL) {
        ref->workflow_execution->workflow_id = hf_arena_copy(call->arena, hf_owned_str(&run->workflow_id));
        ref->workflow_execution->run_id = hf_arena_copy(call->arena, hf_owned_str(&run->run_id));
    }
    return ref;
}

/* Answers one call: the update has reached this stage. */
void hf_update_tell(hf_core *core, hf_call *call, const hf_run *run, hf_str id, int32_t stage,
                    const hf_pb_outcome *outcome, bool is_new)
{
    hf_assert(call->place == HF_PLACE_NONE);
    void *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    hf_pb_outcome *copy = outcome != NULL ? HF_ARENA_NEW(call->arena, hf_pb_outcome) : NULL;
    if (copy != NULL) {
        (void)hf_pb_copy(&hf_pb_outcome_type, outcome, call->arena, copy);
    }
    hf_pb_update_ref *ref = ref_of(call, run, id);
    if (call->method == HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE) {
        hf_pb_poll_workflow_execution_update_response *poll = response;
        poll->update_ref = ref;
        poll->outcome = copy;
        poll->stage = stage;
    } else {
        hf_pb_update_workflow_execution_response *update =
            call->method == HF_METHOD_EXECUTE_MULTI_OPERATION ? hf_multi_fill(core, call, run, is_new) : response;
        if (update == NULL) {
            return;
        }
        update->update_ref = ref;
        update->outcome = copy;
        update->stage = stage;
    }
    reply(core, call); /* which looks whether there was memory */
}

hf_pb_outcome hf_update_failure(hf_core *core, const char *type, const char *message)
{
    hf_pb_failure *failure = hf_failure_application(&core->scratch, hf_str_of(type), hf_str_of(message), true);
    if (failure == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return (hf_pb_outcome){0};
    }
    failure->source = HF_STR("Server");
    return (hf_pb_outcome){.value_case = HF_PB_OUTCOME_FAILURE, .failure = failure};
}

hf_pb_outcome hf_update_outlived(hf_core *core)
{
    return hf_update_failure(core, "AcceptedUpdateCompletedWorkflow",
                             "Workflow Update failed because the Workflow completed before the Update completed.");
}

void hf_update_refuse_busy(hf_core *core, hf_call *call, int32_t cause, const char *why)
{
    hf_pb_resource_exhausted_failure detail = {.cause = cause, .scope = HF_RESOURCE_EXHAUSTED_SCOPE_NAMESPACE};
    hf_multi_fail(core, call, HF_MULTI_UPDATE, HF_ERR_LIMIT, &hf_pb_resource_exhausted_failure_type, &detail, why);
}

void hf_update_refuse(hf_core *core, hf_call *call, hf_status status, const char *why)
{
    hf_multi_fail(core, call, HF_MULTI_UPDATE, status, NULL, NULL, why);
}

/* ---- What is asked ----------------------------------------------------------------------------------------------- */

hf_asked *hf_asked_find(const hf_run *run, hf_str id)
{
    if (HF_SLOT(run)->unwritten == NULL) {
        return NULL;
    }
    HF_LIST_EACH(node, &HF_SLOT(run)->unwritten->updates)
    {
        hf_asked *asked = HF_CONTAINER(node, hf_asked, link);
        if (hf_str_equal(hf_owned_str(&asked->id), id)) {
            return asked;
        }
    }
    return NULL;
}

hf_asked *hf_asked_new(hf_core *core, hf_run *run, hf_str id, hf_asked_state state)
{
    hf_assert(hf_asked_find(run, id) == NULL); /* engine-Y1 */
    hf_unwritten *unwritten = hf_unwritten_get(core, run);
    hf_asked *asked = unwritten != NULL ? hf_core_alloc(core, sizeof *asked) : NULL;
    if (asked != NULL) {
        asked->state = state;
        hf_owned_set(&core->runs_memory, &asked->id, id);
        hf_list_init(&asked->waiters);
        hf_list_push_back(&unwritten->updates, &asked->link);
        hf_unwritten_mark(core, unwritten);
    }
    return asked;
}

void hf_asked_free(hf_core *core, hf_asked *asked)
{
    hf_assert(hf_list_is_empty(&asked->waiters));
    hf_list_remove(&asked->link);
    hf_owned_free(&core->runs_memory, &asked->id);
    hf_owned_free(&core->runs_memory, &asked->request);
    hf_core_free_mem(core, asked, sizeof *asked);
}

hf_call *hf_waiter_end(hf_core *core, hf_waiter *waiter)
{
    hf_call *call = waiter->call;
    hf_assert(call->place == HF_PLACE_UPDATE && call->parked == waiter);
    hf_assert(HF_SLOT(waiter->run)->unwritten != NULL); /* which has the update that it waits for */
    hf_poll_unpark(core, call);
    call->place = HF_PLACE_NONE;
    call->parked = NULL;
    hf_unwritten_mark(core, HF_SLOT(waiter->run)->unwritten); /* which may be empty now */
    hf_list_remove(&waiter->link);
    hf_core_free_mem(core, waiter, sizeof *waiter);
    return call;
}

void hf_asked_wait(hf_core *core, hf_call *call, hf_run *run, hf_asked *asked, int32_t stage, bool is_new)
{
    hf_assert(call->place == HF_PLACE_NONE && call->parked == NULL);
    hf_waiter *waiter = asked != NULL ? hf_core_alloc(core, sizeof *waiter) : NULL;
    if (waiter == NULL) {
        return;
    }
    *waiter = (hf_waiter){.call = call, .run = run, .asked = asked, .stage = stage, .is_new = is_new};
    hf_list_push_back(&asked->waiters, &waiter->link);
    call->place = HF_PLACE_UPDATE;
    call->parked = waiter;
    int64_t span = core->options.history_span;
    span = call->timeout.ns > 0 && call->timeout.ns < span ? call->timeout.ns : span;
    if (hf_heap_set(&core->polls, &call->deadline, core->now.mono + span) != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
}

void hf_asked_tell(hf_core *core, const hf_run *run, hf_asked *asked, int32_t stage, const hf_pb_outcome *outcome)
{
    HF_LIST_EACH(node, &asked->waiters)
    {
        hf_waiter *waiter = HF_CONTAINER(node, hf_waiter, link);
        if (waiter->stage <= stage && core->status == HF_OK) {
            bool is_new = waiter->is_new;
            hf_update_tell(core, hf_waiter_end(core, waiter), run, hf_owned_str(&asked->id), stage, outcome, is_new);
        }
    }
}

void hf_asked_refuse(hf_core *core, hf_asked *asked, hf_status status, const char *why)
{
    HF_LIST_EACH(node, &asked->waiters)
    {
        if (core->status == HF_OK) {
            hf_update_refuse(core, hf_waiter_end(core, HF_CONTAINER(node, hf_waiter, link)), status, why);
        }
    }
}

void hf_updates_free(hf_core *core, hf_unwritten *unwritten)
{
    hf_node *node = NULL;
    while ((node = hf_list_first(&unwritten->updates)) != NULL) { /* their calls were answered by hf_core_stop */
        hf_asked *asked = HF_CONTAINER(node, hf_asked, link);
        hf_node *waiting = NULL;
        while ((waiting = hf_list_pop_front(&asked->waiters)) != NULL) {
            hf_core_free_mem(core, HF_CONTAINER(waiting, hf_waiter, link), sizeof(hf_waiter));
        }
        hf_asked_free(core, asked);
    }
}

uint64_t hf_updates_hash(const hf_unwritten *unwritten, uint64_t hash)
{
    HF_LIST_EACH(node, &unwritten->updates)
    {
        const hf_asked *asked = HF_CONTAINER(node, hf_asked, link);
        hash = hf_hash_bytes(hash, asked->id.data, asked->id.len);
        hash = hf_hash_bytes(hash, asked->request.data, asked->request.len);
        hash = hf_hash_mix(hash, (uint64_t)asked->state);
        HF_LIST_EACH(each, &asked->waiters)
        {
            hash = hf_hash_mix(hash, HF_CONTAINER(each, hf_waiter, link)->call->number);
        }
    }
    return hash;
}
