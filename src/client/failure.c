/* Converts a chain of hf_failure into a chain of Failure messages and back.
 *
 * Every link that this library makes is an ApplicationFailureInfo with the type, which Temporal's own tools show as
 * "type". For links of other kinds (timeouts, cancelations, failed children) the kind is used as the type. */
#include "client/data.h"
#include "fiber/sched/wait.h"
#include "history/payload.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

hf_status hf_failure_raise_op(const hf_op *op)
{
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return hf_forked();
    }
    HF_LEAVE(self, hf_op_end(self, op));
}

static hf_str copy_of(hf_arena *arena, const char *text)
{
    return hf_arena_copy(arena, hf_str_of(text));
}

hf_pb_failure *hf_failure_encode(hf_arena *arena, const hf_failure *failure, hf_status status)
{
    if (failure == NULL) {
        char word[HF_TYPE_LEN_MAX];
        hf_status_word(status, word, sizeof word);
        return hf_failure_application(arena, copy_of(arena, word), hf_str_of(hf_status_text(status)), false);
    }
    hf_pb_failure *head = NULL;
    hf_pb_failure **at = &head;
    for (; failure != NULL; failure = failure->cause) {
        *at = hf_failure_application(arena, copy_of(arena, failure->type), copy_of(arena, failure->message), false);
        if (*at == NULL) {
            break;
        }
        at = &(*at)->cause;
    }
    return head;
}

hf_str hf_failure_type_word(const hf_pb_failure *failure)
{
    switch (failure->failure_info_case) {
    case HF_PB_FAILURE_APPLICATION_FAILURE_INFO:
        return failure->application_failure_info->type;
    case HF_PB_FAILURE_TIMEOUT_FAILURE_INFO:
        return HF_STR("Timeout");
    case HF_PB_FAILURE_CANCELED_FAILURE_INFO:
        return HF_STR("Canceled");
    case HF_PB_FAILURE_TERMINATED_FAILURE_INFO:
        return HF_STR("Terminated");
    case HF_PB_FAILURE_ACTIVITY_FAILURE_INFO:
        return HF_STR("ActivityFailed");
    case HF_PB_FAILURE_CHILD_WORKFLOW_EXECUTION_FAILURE_INFO:
        return HF_STR("ChildFailed");
    default: /* a failure of the server, or a kind that is newer than this code */
        return HF_STR("Failure");
    }
}

static void text_of(hf_str from, char *text, size_t capacity)
{
    hf_assert(capacity > 0);
    size_t len = from.len < capacity - 1 ? from.len : capacity - 1;
    if (len > 0) {
        memcpy(text, from.data, len);
    }
    text[len] = '\0';
}

/* A status of the program's own is sent as the type. For all other types, ours and those of other SDKs, only the type
 * is kept. */
static hf_status status_of(const hf_pb_failure *failure)
{
    hf_status status = HF_ERR_FAILED;
    switch (failure->failure_info_case) {
    case HF_PB_FAILURE_APPLICATION_FAILURE_INFO:
        (void)hf_status_of_word(failure->application_failure_info->type.data,
                                failure->application_failure_info->type.len, &status);
        return status;
    case HF_PB_FAILURE_TIMEOUT_FAILURE_INFO:
        return HF_ERR_TIMEOUT;
    case HF_PB_FAILURE_CANCELED_FAILURE_INFO:
        return HF_ERR_CANCELED;
    default:
        return HF_ERR_FAILED;
    }
}

/* The chain as boxes, innermost first; links beyond HF_CAUSE_DEPTH_MAX are left out. */
static hf_failure_box *boxes_of(hf_runtime *rt, const hf_pb_failure *failure)
{
    const hf_pb_failure *links[HF_CAUSE_DEPTH_MAX];
    size_t count = 0;
    for (; failure != NULL && count < HF_COUNT_OF(links) - 1; failure = failure->cause) {
        links[count++] = failure;
    }
    hf_failure_box *box = NULL;
    while (count-- > 0) {
        char type[HF_TYPE_LEN_MAX];
        char message[HF_MESSAGE_LEN_MAX];
        text_of(hf_failure_type_word(links[count]), type, sizeof type);
        text_of(links[count]->message, message, sizeof message);
        box = hf_box_new(rt, status_of(links[count]), type, "", message, box);
    }
    return box;
}

/* A plain thread keeps one flat failure: the chain becomes its message. */
static void raise_flat(hf_status own, const char *type, const char *message, const hf_pb_failure *cause)
{
    char text[HF_MESSAGE_LEN_MAX];
    int used = snprintf(text, sizeof text, "%s", message);
    for (; cause != NULL && used >= 0 && (size_t)used < sizeof text; cause = cause->cause) {
        int len = snprintf(text + used, sizeof text - (size_t)used, "; because %.*s", HF_STR_ARGS(cause->message));
        used = len < 0 ? len : used + len;
    }
    HF_IGNORE(hf_raise_typed(own, type, "%s", text));
}

/* `own` is the failure's status, `status` the one that is returned with it. */
static hf_status raise_as(hf_status status, hf_status own, const char *type, hf_str message, const hf_pb_failure *cause)
{
    char text[HF_MESSAGE_LEN_MAX];
    text_of(message, text, sizeof text);
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return hf_forked();
    }
    if (self->kind == HF_FIBER_THREAD) {
        hf_leave(self);
        raise_flat(own, type, text, cause);
        self = hf_enter(NULL);
    } else {
        hf_self_fail(self, hf_box_new(self->rt, own, type, "", text, boxes_of(self->rt, cause)));
    }
    HF_LEAVE(self, hf_self_return(self, status));
}

hf_status hf_failure_raise(hf_status status, const char *type, hf_str message, const hf_pb_failure *cause)
{
    hf_assert(status != HF_OK);
    return raise_as(status, status, type, message, cause);
}

hf_status hf_failure_raise_of(hf_status status, const hf_pb_failure *failure)
{
    hf_assert(status != HF_OK);
    char type[HF_TYPE_LEN_MAX];
    if (failure == NULL) {
        return hf_failure_raise(status, "Failure", HF_STR("the service reported a failure without a message"), NULL);
    }
    text_of(hf_failure_type_word(failure), type, sizeof type);
    hf_status own = status_of(failure);
    return raise_as(status, (int)own >= HF_ERR_USER ? own : status, type, failure->message, failure->cause);
}

hf_status hf_uuid_make(hf_runtime *rt, char *ret_text)
{
    uint64_t halves[2];
    HF_TRY(hf_random(rt, halves, sizeof halves));
    hf_uuid_text(be64toh(halves[0]), be64toh(halves[1]), ret_text);
    return HF_OK;
}
