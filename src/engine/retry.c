#include "engine/retry.h"

#include "history/limits.h"

#define RETRY_INITIAL_DEFAULT (INT64_C(1000000000))
#define RETRY_COEFFICIENT_DEFAULT 2.0
#define RETRY_MAX_FACTOR 100 /* longest interval, in first intervals */

hf_status hf_retry_check(hf_op *op, const hf_pb_retry_policy *policy)
{
    if (policy == NULL) {
        return HF_OK;
    }
    int64_t initial = hf_pb_duration_span(policy->initial_interval).ns;
    int64_t longest = hf_pb_duration_span(policy->maximum_interval).ns;
    if (initial < 0 || longest < 0 || policy->maximum_attempts < 0) {
        return hf_fail(op, HF_ERR_INVALID, "A retry policy has a negative value.");
    }
    /* Also refuses a NaN. */
    if (policy->backoff_coefficient != 0 &&
        !(policy->backoff_coefficient >= 1 && policy->backoff_coefficient <= HF_RETRY_COEFFICIENT_MAX)) {
        return hf_fail(op, HF_ERR_INVALID, "BackoffCoefficient of a retry policy is below 1 or above 1000000.");
    }
    return longest > 0 && longest < initial
               ? hf_fail(op, HF_ERR_INVALID, "MaximumInterval of a retry policy is below its InitialInterval.")
               : HF_OK;
}

hf_pb_retry_policy *hf_retry_fill(hf_arena *arena, const hf_pb_retry_policy *given)
{
    hf_pb_retry_policy *policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
    if (policy == NULL) {
        return NULL;
    }
    if (given != NULL) {
        *policy = *given;
    }
    int64_t initial = hf_pb_duration_span(policy->initial_interval).ns;
    initial = initial == 0 ? RETRY_INITIAL_DEFAULT : initial;
    policy->initial_interval = hf_pb_duration_of(hf_nanoseconds(initial));
    if (policy->backoff_coefficient == 0) {
        policy->backoff_coefficient = RETRY_COEFFICIENT_DEFAULT;
    }
    if (hf_pb_duration_span(policy->maximum_interval).ns == 0) {
        int64_t longest = initial > INT64_MAX / RETRY_MAX_FACTOR ? INT64_MAX : initial * RETRY_MAX_FACTOR;
        policy->maximum_interval = hf_pb_duration_of(hf_nanoseconds(longest));
    }
    return policy;
}

static bool names_type(const hf_pb_retry_policy *policy, hf_str type)
{
    for (size_t i = 0; i < policy->non_retryable_error_types.count; i++) {
        if (hf_str_equal(policy->non_retryable_error_types.items[i], type)) {
            return true;
        }
    }
    return false;
}

/* The timeout of one attempt, which a policy may name like a type of failure. */
static bool is_final_timeout(const hf_pb_retry_policy *policy, int32_t type)
{
    if (type == HF_TIMEOUT_TYPE_START_TO_CLOSE) {
        return names_type(policy, HF_STR("TemporalTimeout:StartToClose"));
    }
    return type != HF_TIMEOUT_TYPE_HEARTBEAT || names_type(policy, HF_STR("TemporalTimeout:Heartbeat"));
}

static bool is_final(const hf_pb_retry_policy *policy, const hf_pb_failure *failure)
{
    switch (failure->failure_info_case) {
    case HF_PB_FAILURE_SERVER_FAILURE_INFO:
        return failure->server_failure_info->non_retryable;
    case HF_PB_FAILURE_TERMINATED_FAILURE_INFO:
    case HF_PB_FAILURE_CANCELED_FAILURE_INFO:
        return true;
    case HF_PB_FAILURE_TIMEOUT_FAILURE_INFO:
        return is_final_timeout(policy, failure->timeout_failure_info->timeout_type);
    case HF_PB_FAILURE_APPLICATION_FAILURE_INFO:
        return failure->application_failure_info->non_retryable ||
               names_type(policy, failure->application_failure_info->type);
    default:
        return false;
    }
}

/* The initial interval times the coefficient to the power of the attempts that failed before, at most the longest interval; or the delay that
 * the failure asks for. 0: no next attempt. (A Temporal server reads a delay of 0 from an activity the same way.) */
static int64_t pause_of(const hf_retry_case *c)
{
    hf_assert(c->attempt > 0);
    int64_t longest = hf_pb_duration_span(c->policy->maximum_interval).ns;
    longest = longest > 0 ? longest : INT64_MAX / 4; /* a policy of another engine's history */
    if (c->failure->failure_info_case == HF_PB_FAILURE_APPLICATION_FAILURE_INFO &&
        c->failure->application_failure_info->next_retry_delay.has) {
        int64_t wanted = hf_pb_duration_span(c->failure->application_failure_info->next_retry_delay).ns;
        bool is_bounded = c->is_workflow && (wanted <= 0 || wanted > longest);
        return is_bounded ? longest : wanted > 0 ? wanted : 0;
    }
    double interval = (double)hf_pb_duration_span(c->policy->initial_interval).ns;
    for (int32_t i = 1; i < c->attempt && interval < (double)longest; i++) {
        interval *= c->policy->backoff_coefficient;
    }
    return interval < (double)longest ? (int64_t)interval : longest;
}

int32_t hf_retry_next(const hf_retry_case *c, int64_t *ret_pause)
{
    hf_assert(c->policy != NULL && c->failure != NULL);
    if (is_final(c->policy, c->failure)) {
        return HF_RETRY_STATE_NON_RETRYABLE_FAILURE;
    }
    if (c->policy->maximum_attempts > 0 && c->attempt >= c->policy->maximum_attempts) {
        return HF_RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED;
    }
    *ret_pause = pause_of(c);
    return *ret_pause > 0 ? HF_RETRY_STATE_IN_PROGRESS : HF_RETRY_STATE_TIMEOUT;
}
