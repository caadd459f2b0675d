/* Answers. An answer that tells of a change which a crash could undo waits until the open batch is durable (engine-E1). */
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
    hf_assert(call->status != HF_OK || call->detail_type == NULL);
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

/* For the simulator: it must find that these would be lost by a crash. */
static bool gives_activities_early(const hf_call *call)
{
    const hf_pb_respond_workflow_task_completed_response *response = call->response;
    return HF_CANARY(HF_BUG_EAGER_NOT_WRITTEN) && call->method == HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED &&
           response->activity_tasks.count > 0;
}

/* engine-E1: the answer waits until the open batch is durable. */
void hf_call_reply(hf_core *core, hf_call *call)
{
    hf_assert(call->place == HF_PLACE_NONE || call->place == HF_PLACE_ELSEWHERE); /* it is in no other list */
    if (call->arena->status != HF_OK) {                                           /* part of the answer is missing */
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    if (core->status != HF_OK) {
        return;
    }
    if (call->maker != HF_CALL_OF_CLIENT) { /* part of this batch */
        hf_call_now(call);
        return;
    }
    if (call->holds == 0) {
        call->holds = 1;
    }
    bool ahead = hf_core_runs_ahead(core, call) && call->method == HF_METHOD_POLL_WORKFLOW_TASK_QUEUE;
    if ((ahead || HF_CANARY(HF_BUG_REPLY_BEFORE_COMMIT) || gives_activities_early(call)) && call->holds == 1) {
        HF_PROBE(core, HF_PROBE_RUN_AHEAD);
        hf_assert(!core->options.was_left_open || !ahead); /* engine-U2 */
        call->place = HF_PLACE_ELSEWHERE;
        hf_list_push_back(&core->ahead_replies, &call->link); /* sent together: their worker is woken once */
        return;
    }
    call->place = HF_PLACE_ELSEWHERE;
    hf_list_push_back(&core->batches[core->open_idx].replies, &call->link);
}

static void put_detail(hf_core *core, hf_call *call, const hf_pb_type *type, const void *detail)
{
    hf_assert(type != NULL && detail != NULL);
    void *copy = hf_arena_zero(call->arena, type->size, _Alignof(max_align_t));
    if (copy == NULL || hf_pb_copy(type, detail, call->arena, copy) != HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return;
    }
    call->detail_type = type;
    call->detail = copy;
}

/* The call has its status and message. */
static void send_failure(hf_core *core, hf_call *call)
{
    hf_assert(call->place == HF_PLACE_NONE || call->place == HF_PLACE_ELSEWHERE); /* it is in no other list */
    hf_assert(call->status != HF_OK);
    if (call->maker != HF_CALL_OF_CLIENT) {
        hf_call_now(call);
        return;
    }
    call->holds = 1;
    call->place = HF_PLACE_ELSEWHERE;
    hf_list_push_back(&core->batches[core->open_idx].replies, &call->link);
}

HF_PRINTF(3, 0)
static void set_failure(hf_call *call, hf_status status, const char *format, va_list args)
{
    char why[HF_MESSAGE_LEN_MAX];
    const char *words = call->words; /* of hf_call_say */
    (void)vsnprintf(why, sizeof why, format, args);
    hf_call_set_failure(call, status, why);
    call->words = words;
}

void hf_call_say(hf_core *core, hf_call *call, const char *format, ...)
{
    char text[2 * HF_MESSAGE_LEN_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t len = strlen(text);
    char *words = core->status == HF_OK ? hf_arena_zero(call->arena, len + 1, 1) : NULL;
    if (words != NULL) {
        memcpy(words, text, len);
    } else if (core->status == HF_OK) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
    }
    call->words = words;
}

void hf_call_fail(hf_core *core, hf_call *call, hf_status status, const char *format, ...)
{
    if (core->status != HF_OK) {
        return;
    }
    va_list args;
    va_start(args, format);
    set_failure(call, status, format, args);
    va_end(args);
    send_failure(core, call);
}

void hf_call_fail_with(hf_core *core, hf_call *call, hf_status status, const hf_pb_type *type, const void *detail,
                       const char *format, ...)
{
    if (core->status != HF_OK) {
        return;
    }
    va_list args;
    va_start(args, format);
    set_failure(call, status, format, args);
    va_end(args);
    put_detail(core, call, type, detail);
    if (core->status == HF_OK) {
        send_failure(core, call);
    }
}

void hf_call_fail_for_good(hf_core *core, hf_call *call, const char *words, const char *format, ...)
{
    if (core->status != HF_OK) {
        return;
    }
    va_list args;
    va_start(args, format);
    set_failure(call, HF_ERR_LIMIT, format, args);
    va_end(args);
    call->is_final = true;
    call->words = words;
    call->detail_type = NULL; /* the detail of HF_ERR_LIMIT would say that the limit passes */
    call->detail = NULL;
    send_failure(core, call);
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
