/* Converts a chain of hf_failure into a chain of Failure messages and back.
 *
 * A link that code of this process made is sent as an ApplicationFailureInfo with its type. A link that came as a
 * message keeps that message (body->wire), and goes on as it came: kind, details, stack trace, and whatever else it
 * has. Its type is what the code of a C program compares; for kinds that have no type of their own it is a word that
 * stands for the kind.
 *
 * A status of the program's own, HF_ERR_USER + n, is sent as the type if the failure has no other, and else as the
 * source of the failure, a field that other SDKs only show. */
#include "client/data.h"
#include "fiber/sched/wait.h"
#include "history/payload.h"

#include "history/limits.h"

#include <endian.h>
#include <string.h>

enum { FLAT_DEPTH_MAX = 8 }; /* links of a failure that older versions told */

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

/* ---- To the wire ------------------------------------------------------------------------------------------------- */

/* A link that was made here. */
static hf_pb_failure *encode_own(hf_arena *arena, const hf_failure *failure)
{
    hf_pb_failure *link =
        hf_failure_application(arena, copy_of(arena, failure->type), copy_of(arena, failure->message), false);
    char word[HF_TYPE_LEN_MAX];
    if (link != NULL && (int)failure->status >= HF_ERR_USER) {
        hf_status_word(failure->status, word, sizeof word);
        if (strcmp(word, failure->type) != 0) {
            link->source = copy_of(arena, word);
        }
    }
    return link;
}

static hf_pb_failure *encode_link(hf_arena *arena, const hf_failure *failure)
{
    const hf_failure_body *body = failure->own;
    if (body == NULL || body->wire.len == 0) {
        return encode_own(arena, failure);
    }
    hf_pb_failure *link = HF_ARENA_NEW(arena, hf_pb_failure);
    hf_str wire = hf_arena_copy(arena, body->wire);
    if (link == NULL || wire.data == NULL || hf_pb_decode(NULL, &hf_pb_failure_type, wire, arena, link) != HF_OK) {
        return NULL;
    }
    hf_assert(link->cause == NULL);
    return link;
}

static hf_pb_failure *encode_status(hf_arena *arena, hf_status status)
{
    char word[HF_TYPE_LEN_MAX];
    hf_status_word(status, word, sizeof word);
    return hf_failure_application(arena, copy_of(arena, word), hf_str_of(hf_status_text(status)), false);
}

static hf_pb_failure *encode(hf_arena *arena, const hf_failure *failure, int max,
                             hf_pb_failure *(*encode_one)(hf_arena *, const hf_failure *))
{
    hf_pb_failure *head = NULL;
    hf_pb_failure **at = &head;
    for (; failure != NULL && max > 0; failure = failure->cause, max--) {
        *at = encode_one(arena, failure);
        if (*at == NULL) {
            break;
        }
        at = &(*at)->cause;
    }
    return head;
}

hf_pb_failure *hf_failure_encode(hf_arena *arena, const hf_failure *failure, hf_status status)
{
    return failure != NULL ? encode(arena, failure, HF_FAILURE_DEPTH_MAX, encode_link) : encode_status(arena, status);
}

static hf_pb_failure *encode_flat(hf_arena *arena, const hf_failure *failure)
{
    return hf_failure_application(arena, copy_of(arena, failure->type), copy_of(arena, failure->message), false);
}

hf_pb_failure *hf_failure_encode_flat(hf_arena *arena, const hf_failure *failure, hf_status status)
{
    return failure != NULL ? encode(arena, failure, FLAT_DEPTH_MAX, encode_flat) : encode_status(arena, status);
}

/* ---- From the wire ----------------------------------------------------------------------------------------------- */

static uint32_t kind_of_cause(const hf_pb_failure *failure)
{
    return failure->cause != NULL ? failure->cause->failure_info_case : 0;
}

/* The type of a link of the chain. */
static hf_str type_of(const hf_pb_failure *failure)
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
        return kind_of_cause(failure) == HF_PB_FAILURE_TIMEOUT_FAILURE_INFO    ? HF_STR("ActivityTimedOut")
               : kind_of_cause(failure) == HF_PB_FAILURE_CANCELED_FAILURE_INFO ? HF_STR("ActivityCanceled")
                                                                               : HF_STR("ActivityFailed");
    case HF_PB_FAILURE_CHILD_WORKFLOW_EXECUTION_FAILURE_INFO:
        return HF_STR("ChildFailed");
    default: /* a failure of the server, or a kind that is newer than this code */
        return HF_STR("Failure");
    }
}

/* The same as programs compare it now; workflows of earlier versions were told another word for a child. */
static hf_str told_type_of(const hf_pb_failure *failure)
{
    return failure->failure_info_case == HF_PB_FAILURE_CHILD_WORKFLOW_EXECUTION_FAILURE_INFO
               ? HF_STR("ChildWorkflowFailed")
               : type_of(failure);
}

hf_str hf_failure_type_word(const hf_pb_failure *failure)
{
    return told_type_of(failure);
}

static hf_failure_kind kind_of(const hf_pb_failure *failure)
{
    switch (failure->failure_info_case) {
    case HF_PB_FAILURE_APPLICATION_FAILURE_INFO:
        return HF_FAILURE_APPLICATION;
    case HF_PB_FAILURE_TIMEOUT_FAILURE_INFO:
        return HF_FAILURE_TIMEOUT;
    case HF_PB_FAILURE_CANCELED_FAILURE_INFO:
        return HF_FAILURE_CANCELED;
    case HF_PB_FAILURE_TERMINATED_FAILURE_INFO:
        return HF_FAILURE_TERMINATED;
    case HF_PB_FAILURE_SERVER_FAILURE_INFO:
        return HF_FAILURE_SERVER;
    case HF_PB_FAILURE_RESET_WORKFLOW_FAILURE_INFO:
        return HF_FAILURE_RESET;
    case HF_PB_FAILURE_ACTIVITY_FAILURE_INFO:
        return HF_FAILURE_ACTIVITY;
    case HF_PB_FAILURE_CHILD_WORKFLOW_EXECUTION_FAILURE_INFO:
        return HF_FAILURE_CHILD;
    case HF_PB_FAILURE_NEXUS_OPERATION_EXECUTION_FAILURE_INFO:
    case HF_PB_FAILURE_NEXUS_HANDLER_FAILURE_INFO:
        return HF_FAILURE_NEXUS;
    default:
        return HF_FAILURE_OTHER;
    }
}

const hf_pb_payloads *hf_failure_details_of(const hf_pb_failure *failure)
{
    switch (failure->failure_info_case) {
    case HF_PB_FAILURE_APPLICATION_FAILURE_INFO:
        return failure->application_failure_info->details;
    case HF_PB_FAILURE_TIMEOUT_FAILURE_INFO:
        return failure->timeout_failure_info->last_heartbeat_details;
    case HF_PB_FAILURE_CANCELED_FAILURE_INFO:
        return failure->canceled_failure_info->details;
    case HF_PB_FAILURE_RESET_WORKFLOW_FAILURE_INFO:
        return failure->reset_workflow_failure_info->last_heartbeat_details;
    default:
        return NULL;
    }
}

/* A status of the program's own is sent as the type or as the source. For all other types, ours and those of other
 * SDKs, only the type is kept. */
static hf_status status_of(const hf_pb_failure *failure)
{
    hf_status status = HF_ERR_FAILED;
    switch (failure->failure_info_case) {
    case HF_PB_FAILURE_APPLICATION_FAILURE_INFO:
        if (!hf_status_of_word(failure->application_failure_info->type.data,
                               failure->application_failure_info->type.len, &status)) {
            (void)hf_status_of_word(failure->source.data, failure->source.len, &status);
        }
        return status;
    case HF_PB_FAILURE_TIMEOUT_FAILURE_INFO:
        return HF_ERR_TIMEOUT;
    case HF_PB_FAILURE_CANCELED_FAILURE_INFO:
        return HF_ERR_CANCELED;
    case HF_PB_FAILURE_ACTIVITY_FAILURE_INFO:
        return kind_of_cause(failure) == HF_PB_FAILURE_TIMEOUT_FAILURE_INFO    ? HF_ERR_TIMEOUT
               : kind_of_cause(failure) == HF_PB_FAILURE_CANCELED_FAILURE_INFO ? HF_ERR_CANCELED
                                                                               : HF_ERR_FAILED;
    default:
        return HF_ERR_FAILED;
    }
}

static void drop_details(hf_failure_body *body)
{
    hf_payload_free(&body->details);
}

/* NULL: out of memory. */
static hf_failure_body *body_of(const hf_pb_failure *failure, hf_str type)
{
    hf_buf wire;
    hf_pb_failure alone = *failure;
    alone.cause = NULL;
    hf_buf_init(&wire, hf_env_memory(hf_env_posix()), SIZE_MAX);
    hf_pb_encode(&hf_pb_failure_type, &alone, &wire);
    hf_failure_body *body = NULL;
    if (hf_buf_status(&wire) == HF_OK) {
        body = hf_body_new(type, failure->message, failure->stack_trace, hf_str_of_len(hf_buf_text(&wire), wire.len));
    }
    hf_buf_deinit(&wire);
    if (body == NULL) {
        return NULL;
    }
    body->kind = kind_of(failure);
    body->drop = drop_details;
    if (hf_payload_decode(hf_failure_details_of(failure), NULL, &body->details) != HF_OK) {
        hf_body_unref(body);
        return NULL;
    }
    return body;
}

/* The chain as boxes, innermost first; links beyond HF_CAUSE_DEPTH_MAX are left out. */
static hf_failure_box *boxes_of(hf_runtime *rt, const hf_pb_failure *failure)
{
    const hf_pb_failure *links[HF_CAUSE_DEPTH_MAX - 1];
    size_t count = 0;
    for (; failure != NULL && count < HF_COUNT_OF(links); failure = failure->cause) {
        links[count++] = failure;
    }
    hf_failure_box *box = NULL;
    while (count-- > 0) {
        const hf_pb_failure *link = links[count];
        box = hf_box_of_body(rt, status_of(link), body_of(link, told_type_of(link)), box);
    }
    return box;
}

/* `own` is the failure's status, `status` the one that is returned with it. */
static hf_status raise_as(hf_status status, hf_status own, hf_str type, const hf_pb_failure *failure)
{
    hf_assert(status != HF_OK && own != HF_OK);
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return hf_forked();
    }
    hf_runtime *rt = self->kind == HF_FIBER_THREAD ? NULL : self->rt;
    hf_self_fail(self, hf_box_of_body(rt, own, body_of(failure, type), boxes_of(rt, failure->cause)));
    HF_LEAVE(self, hf_self_return(self, status));
}

hf_status hf_failure_raise(hf_status status, const char *type, const hf_pb_failure *failure)
{
    return raise_as(status, status, hf_str_of(type), failure);
}

bool hf_failure_is_whole(const hf_pb_failure *failure)
{
    const hf_failure *told = hf_error();
    for (int i = 0; failure != NULL && i < HF_CAUSE_DEPTH_MAX; i++, failure = failure->cause) {
        if (told == NULL || told->own == NULL) {
            return false;
        }
        told = told->cause;
    }
    return true;
}

hf_status hf_failure_raise_of(hf_status status, const hf_pb_failure *failure)
{
    static const hf_pb_failure NOTHING = {.message = {"the service reported a failure without a message", 48}};
    failure = failure != NULL ? failure : &NOTHING;
    hf_status own = status_of(failure);
    return raise_as(status, (int)own >= HF_ERR_USER ? own : status, told_type_of(failure), failure);
}

/* ---- Before HF_WF_RULE_FAILURES ---------------------------------------------------------------------------------- */

static void text_of(hf_str from, char *text, size_t capacity)
{
    hf_assert(capacity > 0);
    size_t len = from.len < capacity - 1 ? from.len : capacity - 1;
    if (len > 0) {
        memcpy(text, from.data, len);
    }
    text[len] = '\0';
}

hf_status hf_failure_raise_flat(hf_status status, const char *type, hf_str message, const hf_pb_failure *cause)
{
    const hf_pb_failure *links[FLAT_DEPTH_MAX - 1];
    size_t count = 0;
    char text[HF_MESSAGE_LEN_MAX];
    hf_fiber *self = hf_enter(NULL);
    if (self == NULL) {
        return hf_forked();
    }
    hf_assert(status != HF_OK && self->kind != HF_FIBER_THREAD);
    for (; cause != NULL && count < HF_COUNT_OF(links); cause = cause->cause) {
        links[count++] = cause;
    }
    hf_failure_box *box = NULL;
    while (count-- > 0) {
        char word[HF_TYPE_LEN_MAX];
        text_of(type_of(links[count]), word, sizeof word);
        text_of(links[count]->message, text, sizeof text);
        box = hf_box_new(self->rt, status_of(links[count]), word, "", text, box);
    }
    text_of(message, text, sizeof text);
    hf_self_fail(self, hf_box_new(self->rt, status, type, "", text, box));
    HF_LEAVE(self, hf_self_return(self, status));
}

hf_status hf_uuid_make(hf_runtime *rt, char *ret_text)
{
    uint64_t halves[2];
    HF_TRY(hf_random(rt, halves, sizeof halves));
    hf_uuid_text(be64toh(halves[0]), be64toh(halves[1]), ret_text);
    return HF_OK;
}
