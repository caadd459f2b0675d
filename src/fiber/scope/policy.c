/* The library's own joins, written with nothing but the hooks that users get. */
#include <holdfast/scope.h>

/* The result of most joins: the first failure; else "canceled" if a child was canceled; else success. */
static hf_status first_or_canceled(const hf_tally *tally, hf_status first_failure)
{
    if (first_failure != HF_OK) {
        return first_failure;
    }
    return tally->canceled > 0 ? HF_ERR_CANCELED : HF_OK;
}

static hf_verdict stop_at_failure(const hf_tally *tally, const hf_outcome *outcome)
{
    (void)outcome;
    return tally->failed > 0 ? HF_STOP : HF_GO_ON;
}

static hf_status accept_partial(const hf_tally *tally)
{
    (void)tally;
    return HF_OK;
}

static hf_verdict stop_at_success(const hf_tally *tally, const hf_outcome *outcome)
{
    (void)outcome;
    return tally->ok > 0 ? HF_STOP : HF_GO_ON;
}

static hf_status any_result(const hf_tally *tally, hf_status first_failure)
{
    if (tally->ok > 0) {
        return HF_OK;
    }
    if (tally->forked == 0) {
        return hf_raise(HF_ERR_FAILED, "no child succeeded: none was forked");
    }
    return first_or_canceled(tally, first_failure);
}

/* Whether the quorum cannot be reached any more is known only once the owner joins: before that it may fork more
 * children. */
static hf_verdict quorum_done(const hf_tally *tally, const hf_outcome *outcome)
{
    (void)outcome;
    uint64_t needed = tally->n > 0 ? (uint64_t)tally->n : 0;
    if (tally->ok >= needed) {
        return HF_STOP;
    }
    return tally->joining && tally->ok + tally->running < needed ? HF_STOP : HF_GO_ON;
}

static hf_status quorum_result(const hf_tally *tally, hf_status first_failure)
{
    uint64_t needed = tally->n > 0 ? (uint64_t)tally->n : 0;
    if (tally->ok >= needed) {
        return HF_OK;
    }
    if (first_failure == HF_OK && tally->forked >= needed) {
        return HF_ERR_CANCELED; /* it could have been reached, but children were canceled */
    }
    return hf_raise(HF_ERR_FAILED, "quorum not reached: %llu of %llu succeeded, %llu needed",
                    (unsigned long long)tally->ok, (unsigned long long)tally->forked, (unsigned long long)needed);
}

static hf_verdict tolerate_done(const hf_tally *tally, const hf_outcome *outcome)
{
    (void)outcome;
    return tally->failed > (uint64_t)(tally->n > 0 ? tally->n : 0) ? HF_STOP : HF_GO_ON;
}

static hf_status tolerate_result(const hf_tally *tally, hf_status first_failure)
{
    if (tally->failed > (uint64_t)(tally->n > 0 ? tally->n : 0)) {
        return first_failure;
    }
    return tally->canceled > 0 ? HF_ERR_CANCELED : HF_OK;
}

static hf_status discard_result(const hf_tally *tally, hf_status first_failure)
{
    (void)tally;
    (void)first_failure;
    return HF_OK;
}

const hf_join_hooks hf_join_all_hooks = {
    .name = "all", .on_done = stop_at_failure, .result = first_or_canceled, .failures_only = true};
const hf_join_hooks hf_join_any_hooks = {.name = "any", .on_done = stop_at_success, .result = any_result};
const hf_join_hooks hf_join_quorum_hooks = {.name = "quorum", .on_done = quorum_done, .result = quorum_result};
const hf_join_hooks hf_join_tolerate_hooks = {
    .name = "tolerate", .on_done = tolerate_done, .result = tolerate_result, .failures_only = true};
const hf_join_hooks hf_join_collect_hooks = {.name = "collect", .result = first_or_canceled};
const hf_join_hooks hf_join_discard_hooks = {
    .name = "discard", .on_deadline = accept_partial, .result = discard_result, .discard = true};
const hf_join_hooks hf_join_partial_hooks = {.name = "partial",
                                             .on_done = stop_at_failure,
                                             .on_deadline = accept_partial,
                                             .result = first_or_canceled,
                                             .failures_only = true};
