/* Answers to activities from outside their worker: by the token of the attempt, or by ids. Each is one call of the
 * service. */
#include "base/span.h"
#include "client/errand.h"
#include "fiber/verbs.h"
#include "history/payload.h"

#include <holdfast/answer.h>

/* A call under way. */
typedef struct hf_answering {
    hf_errand e;
    hf_str token; /* empty = by ids */
    hf_str namespace_;
    hf_str workflow_id;
    hf_str run_id;
    hf_str activity_id;
} hf_answering;

static hf_status check(hf_op *op, const char *verb, const hf_answer_target *which)
{
    HF_TRY(hf_text_check(op, verb, ".namespace_", which->namespace_, 1, HF_ERRAND_TEXT_LEN_MAX));
    if (which->token.len > 0) {
        if (which->workflow_id != NULL || which->activity_id != NULL || which->run_id != NULL) {
            return hf_fail_at(op, HF_ERR_INVALID, verb, "%s: give a token or ids, and not both", verb);
        }
        return hf_payload_check(op, "the token", which->token);
    }
    if (which->workflow_id == NULL || which->activity_id == NULL) {
        return hf_fail_at(op, HF_ERR_INVALID, verb,
                          "%s needs the token of the attempt, or the ids of the workflow and the activity", verb);
    }
    HF_TRY(hf_text_check(op, verb, ".workflow_id", which->workflow_id, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(op, verb, ".activity_id", which->activity_id, 1, HF_ERRAND_TEXT_LEN_MAX));
    return hf_text_check(op, verb, ".run_id", which->run_id, 1, HF_ERRAND_TEXT_LEN_MAX);
}

/* Begins the errand; its failure is in the errand. */
static hf_status begin(hf_answering *a, const char *verb, hf_service *service, const hf_answer_target *which,
                       const char *what, hf_payload payload)
{
    hf_errand_begin(&a->e, verb, hf_text_or(which->workflow_id, ""));
    if (service == NULL) {
        return hf_fail_at(&a->e.op, HF_ERR_MISUSE, verb, "%s needs a service", verb);
    }
    HF_TRY(check(&a->e.op, verb, which));
    a->token = hf_str_of_len(which->token.data, which->token.len);
    a->namespace_ = hf_namespace_or(which->namespace_, service);
    a->workflow_id = hf_text_or(which->workflow_id, "");
    a->run_id = hf_text_or(which->run_id, "");
    a->activity_id = hf_text_or(which->activity_id, "");
    return hf_payload_check(&a->e.op, what, payload);
}

static const hf_str CLIENT = {"client", 6};

hf_status hf_answer(hf_service *service, hf_answer_target which, hf_payload out)
{
    HF_TRY(HF_VERB_ALLOWED(hf_answer));
    hf_answering a;
    if (begin(&a, "hf_answer", service, &which, "the result of the activity", out) != HF_OK) {
        return hf_errand_end(&a.e);
    }
    hf_pb_payloads *result = hf_payload_encode(&a.e.arena, out);
    if (a.token.len > 0) {
        hf_pb_respond_activity_task_completed_request request = {
            .namespace = a.namespace_, .identity = CLIENT, .task_token = a.token, .result = result};
        (void)hf_errand_ask(&a.e, service, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, &request);
    } else {
        hf_pb_respond_activity_task_completed_by_id_request request = {.namespace = a.namespace_,
                                                                       .identity = CLIENT,
                                                                       .workflow_id = a.workflow_id,
                                                                       .run_id = a.run_id,
                                                                       .activity_id = a.activity_id,
                                                                       .result = result};
        (void)hf_errand_ask(&a.e, service, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID, &request);
    }
    return hf_errand_end(&a.e);
}

static hf_pb_failure *failure_of(hf_arena *arena, const char *message, const hf_activity_fail_options *options)
{
    const char *type = options->type != NULL ? options->type : hf_status_name(HF_ERR_FAILED);
    hf_pb_failure *failure =
        hf_failure_application(arena, hf_str_of(type), hf_str_of(message != NULL ? message : ""), options->is_final);
    if (failure != NULL) {
        hf_pb_application_failure_info *info = failure->application_failure_info;
        info->details = hf_payload_encode(arena, options->details);
        info->next_retry_delay = hf_duration_of_bound(options->retry_after);
    }
    return failure;
}

hf_status hf_answer_failed_with(hf_service *service, hf_answer_target which, const char *message,
                                const hf_activity_fail_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_answer_failed));
    HF_OPTIONS(hf_activity_fail_options, options, hf_answer_failed);
    static const char VERB[] = "hf_answer_failed";
    hf_answering a;
    if (begin(&a, VERB, service, &which, "hf_answer_failed: .details", options->details) != HF_OK ||
        hf_span_check(&a.e.op, VERB, ".retry_after", options->retry_after, 0) != HF_OK) {
        return hf_errand_end(&a.e);
    }
    if (message == NULL) {
        (void)hf_fail_at(&a.e.op, HF_ERR_MISUSE, VERB, "hf_answer_failed needs a message");
        return hf_errand_end(&a.e);
    }
    hf_pb_failure *failure = failure_of(&a.e.arena, message, options);
    if (a.token.len > 0) {
        hf_pb_respond_activity_task_failed_request request = {
            .namespace = a.namespace_, .identity = CLIENT, .task_token = a.token, .failure = failure};
        (void)hf_errand_ask(&a.e, service, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, &request);
    } else {
        hf_pb_respond_activity_task_failed_by_id_request request = {.namespace = a.namespace_,
                                                                    .identity = CLIENT,
                                                                    .workflow_id = a.workflow_id,
                                                                    .run_id = a.run_id,
                                                                    .activity_id = a.activity_id,
                                                                    .failure = failure};
        (void)hf_errand_ask(&a.e, service, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID, &request);
    }
    return hf_errand_end(&a.e);
}

hf_status hf_answer_canceled(hf_service *service, hf_answer_target which, hf_payload details)
{
    HF_TRY(HF_VERB_ALLOWED(hf_answer_canceled));
    hf_answering a;
    if (begin(&a, "hf_answer_canceled", service, &which, "the details of the cancel", details) != HF_OK) {
        return hf_errand_end(&a.e);
    }
    hf_pb_payloads *more = hf_payload_encode(&a.e.arena, details);
    if (a.token.len > 0) {
        hf_pb_respond_activity_task_canceled_request request = {
            .namespace = a.namespace_, .identity = CLIENT, .task_token = a.token, .details = more};
        (void)hf_errand_ask(&a.e, service, HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED, &request);
    } else {
        hf_pb_respond_activity_task_canceled_by_id_request request = {.namespace = a.namespace_,
                                                                      .identity = CLIENT,
                                                                      .workflow_id = a.workflow_id,
                                                                      .run_id = a.run_id,
                                                                      .activity_id = a.activity_id,
                                                                      .details = more};
        (void)hf_errand_ask(&a.e, service, HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID, &request);
    }
    return hf_errand_end(&a.e);
}

/* Asks, and says what the answer says. */
static hf_cancel_why beat(hf_answering *a, hf_service *service, hf_pb_payloads *details)
{
    bool is_canceled = false;
    bool is_reset = false;
    bool is_paused = false;
    hf_assert((a->token.len > 0) != (a->activity_id.len > 0)); /* by its token, or by its ids */
    if (a->token.len > 0) {
        hf_pb_record_activity_task_heartbeat_request request = {
            .namespace = a->namespace_, .identity = CLIENT, .task_token = a->token, .details = details};
        if (hf_errand_ask(&a->e, service, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, &request) == HF_OK) {
            const hf_pb_record_activity_task_heartbeat_response *response = a->e.call.response;
            is_canceled = response->cancel_requested;
            is_reset = response->activity_reset;
            is_paused = response->activity_paused;
        }
    } else {
        hf_pb_record_activity_task_heartbeat_by_id_request request = {.namespace = a->namespace_,
                                                                      .identity = CLIENT,
                                                                      .workflow_id = a->workflow_id,
                                                                      .run_id = a->run_id,
                                                                      .activity_id = a->activity_id,
                                                                      .details = details};
        if (hf_errand_ask(&a->e, service, HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID, &request) == HF_OK) {
            const hf_pb_record_activity_task_heartbeat_by_id_response *response = a->e.call.response;
            is_canceled = response->cancel_requested;
            is_reset = response->activity_reset;
            is_paused = response->activity_paused;
        }
    }
    if (a->e.op.status == HF_ERR_NOT_FOUND) {
        return HF_WHY_GONE;
    }
    return is_canceled ? HF_WHY_CANCELED : is_reset ? HF_WHY_RESET : is_paused ? HF_WHY_PAUSED : HF_WHY_NOT;
}

hf_status hf_answer_heartbeat(hf_service *service, hf_answer_target which, hf_payload details, hf_cancel_why *ret_why)
{
    HF_TRY(HF_VERB_ALLOWED(hf_answer_heartbeat));
    static const char *const WHY[] = {
        [HF_WHY_CANCELED] = "its workflow has canceled the activity",
        [HF_WHY_PAUSED] = "the activity was paused",
        [HF_WHY_RESET] = "the activity was reset",
    };
    hf_answering a;
    hf_cancel_why why = HF_WHY_NOT;
    if (begin(&a, "hf_answer_heartbeat", service, &which, "the details of the heartbeat", details) == HF_OK) {
        why = beat(&a, service, hf_payload_encode(&a.e.arena, details));
    }
    if (ret_why != NULL) {
        *ret_why = why;
    }
    if (why != HF_WHY_NOT && a.e.op.status == HF_OK) {
        hf_assert((size_t)why < HF_COUNT_OF(WHY) && WHY[why] != NULL);
        (void)hf_fail_at(&a.e.op, HF_ERR_CANCELED, "hf_answer_heartbeat", "%s: it should end", WHY[why]);
    }
    return hf_errand_end(&a.e);
}
