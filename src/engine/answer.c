/* Answers. One that says something which a crash could take back waits for the open batch (engine-E1). */
#include "engine/answer.h"

#include "base/canary.h"
#include "engine/core_private.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

void *hf_call_response(hf_core *core, hf_call *call)
{
    if (core->status != HF_OK) {
        return NULL;
    }
    call->response = hf_arena_zero(call->arena, hf_method_info_of(call->method)->response_len, _Alignof(max_align_t));
    if (call->response == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    return call->response;
}

void hf_call_now(hf_call *call)
{
    hf_assert(hf_node_is_linked(&call->all)); /* each call is answered once */
    if (call->status != HF_OK) {
        call->response = NULL;
    }
    call->place = HF_PLACE_NONE;
    hf_list_remove(&call->all);
    if (hf_node_is_linked(&call->by_number)) {
        hf_list_remove(&call->by_number);
    }
    call->done(call);
}

/* engine-E1: it waits for the open batch. */
void hf_call_reply(hf_core *core, hf_call *call)
{
    hf_assert(call->place != HF_PLACE_QUEUE && call->place != HF_PLACE_WATCH); /* it waits nowhere else */
    if (call->arena->status != HF_OK) {                                        /* part of the answer is missing */
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    if (core->status != HF_OK) {
        return;
    }
    if (call->internal) { /* part of this batch */
        hf_call_now(call);
        return;
    }
    if (call->holds == 0) {
        call->holds = 1;
    }
    bool ahead = hf_core_runs_ahead(core, call) && call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE;
    if ((ahead || HF_CANARY(HF_BUG_REPLY_BEFORE_COMMIT)) && call->holds == 1) {
        HF_PROBE(core, HF_PROBE_RUN_AHEAD);
        hf_assert(!core->options.was_left_open || HF_CANARY(HF_BUG_REPLY_BEFORE_COMMIT)); /* engine-U2 */
        call->place = HF_PLACE_ELSEWHERE;
        hf_list_push_back(&core->ahead_replies, &call->link); /* let go together: their worker is woken once */
        return;
    }
    call->place = HF_PLACE_ELSEWHERE;
    hf_list_push_back(&core->batches[core->open_idx].replies, &call->link);
}

void hf_call_fail(hf_core *core, hf_call *call, hf_status status, const char *format, ...)
{
    hf_assert(status != HF_OK);
    if (core->status != HF_OK) {
        return;
    }
    call->status = status;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(call->message, sizeof call->message, format, args);
    va_end(args);
    if (call->internal) {
        hf_call_now(call);
        return;
    }
    call->holds = 1;
    call->place = HF_PLACE_ELSEWHERE;
    hf_list_push_back(&core->batches[core->open_idx].replies, &call->link);
}

void hf_call_let_go(hf_call *call)
{
    hf_assert(call->holds > 0 && call->place == HF_PLACE_ELSEWHERE);
    if (--call->holds == 0) {
        hf_call_now(call);
    }
}

void hf_calls_publish(hf_list *replies)
{
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(replies)) != NULL) {
        hf_call_let_go(HF_CONTAINER(node, hf_call, link));
    }
}
