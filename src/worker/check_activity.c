/* Activities that the service would refuse.
 *
 * A command that the service does not take fails the whole workflow task, which is then tried again and fails again.
 * So the verb refuses such an activity, and the code that asked for it can do something about it. A refusal depends
 * only on the arguments, the events that were applied, and constants, so that a replay decides the same. Nothing is
 * refused that the service takes, because histories may have it. A new refusal is a rule with a number (wf.h). */
#include "worker/wf.h"

#include "base/span.h"
#include "history/limits.h"

#include <inttypes.h>
#include <stdio.h>

static hf_status check_names(hf_op *op, const hf_wf *wf, const char *name, const hf_activity_options *options)
{
    if (name == NULL || name[0] == '\0' || hf_wf_is_too_long(name)) {
        return hf_fail(op, HF_ERR_INVALID, "an activity's name has 1 to %d bytes", HF_ID_LEN_MAX);
    }
    if (options->id != NULL && (options->id[0] == '\0' || hf_wf_is_too_long(options->id))) {
        return hf_fail(op, HF_ERR_INVALID, "activity '%.100s': .id has 1 to %d bytes", name, HF_ID_LEN_MAX);
    }
    size_t queue_len = options->task_queue != NULL ? strnlen(options->task_queue, HF_ID_LEN_MAX + 1) : 1;
    if (queue_len > HF_ID_LEN_MAX ||
        (hf_wf_plays_by(wf, HF_WF_RULE_SPANS) && (queue_len == 0 || queue_len > HF_QUEUE_LEN_MAX))) {
        return hf_fail(op, HF_ERR_INVALID, "activity '%.100s': .task_queue has 1 to %d bytes", name, HF_QUEUE_LEN_MAX);
    }
    return hf_text_check(op, name, ".summary", options->summary, 0, HF_ID_LEN_MAX);
}

static hf_status check_spans(hf_op *op, const char *name, const hf_activity_options *options)
{
    const struct {
        const char *what;
        hf_span span;
    } spans[] = {
        {".start_to_close", options->start_to_close},       {".schedule_to_close", options->schedule_to_close},
        {".schedule_to_start", options->schedule_to_start}, {".heartbeat", options->heartbeat},
        {".retry_initial", options->retry_initial},         {".retry_max", options->retry_max},
    };
    for (size_t i = 0; i < HF_COUNT_OF(spans); i++) {
        if (HF_UNLIKELY(!hf_span_is_bound(spans[i].span))) {
            char whose[128];
            (void)snprintf(whose, sizeof whose, "activity '%.80s'", name);
            return hf_span_check(op, whose, spans[i].what, spans[i].span, 0);
        }
    }
    return HF_OK;
}

/* Checks of HF_WF_RULE_ATTEMPTS. Before that rule, every negative number except HF_OFF meant HF_UNLIMITED, and a
 * coefficient below 0 meant the default. */
static hf_status check_attempts(hf_op *op, const char *name, const hf_activity_options *options)
{
    char whose[128];
    if (HF_LIKELY(options->attempts_max >= 0 && options->retry_coefficient >= 0)) {
        return HF_OK;
    }
    (void)snprintf(whose, sizeof whose, "activity '%.80s'", name);
    HF_TRY(hf_number_check(op, whose, ".attempts_max", options->attempts_max, HF_MAY_BE_OFF | HF_MAY_BE_UNLIMITED));
    if (!(options->retry_coefficient >= 0)) {
        return hf_fail(op, HF_ERR_INVALID, "%s: .retry_coefficient is %g: it must be 1 to %d", whose,
                       options->retry_coefficient, HF_RETRY_COEFFICIENT_MAX);
    }
    return HF_OK;
}

static hf_status check_bounds(hf_op *op, const char *name, const hf_activity_options *options)
{
    if ((unsigned)options->on_cancel >= HF_ON_CANCEL_COUNT) {
        return hf_fail(op, HF_ERR_INVALID, "activity '%.100s': .on_cancel is %d, which is not an hf_on_cancel", name,
                       (int)options->on_cancel);
    }
    if (options->start_to_close.ns <= 0 && options->schedule_to_close.ns <= 0) {
        return hf_fail(op, HF_ERR_INVALID,
                       "activity '%.100s' needs .start_to_close or .schedule_to_close: a time limit", name);
    }
    bool is_endless = hf_duration_of_bound(options->start_to_close).has == 0 &&
                      hf_duration_of_bound(options->schedule_to_close).has == 0;
    if (is_endless) {
        return hf_fail(op, HF_ERR_INVALID,
                       "activity '%.100s' has no time limit: set .start_to_close or .schedule_to_close", name);
    }
    if (options->retry_coefficient > 0 &&
        !(options->retry_coefficient >= 1 && options->retry_coefficient <= HF_RETRY_COEFFICIENT_MAX)) {
        return hf_fail(op, HF_ERR_INVALID, "activity '%.100s': .retry_coefficient is %g: it must be 1 to %d", name,
                       options->retry_coefficient, HF_RETRY_COEFFICIENT_MAX);
    }
    hf_span first = hf_wf_first_pause(options);
    if (hf_duration_of_bound(options->retry_max).has && options->retry_max.ns < first.ns) {
        return hf_fail(op, HF_ERR_INVALID, "activity '%.100s': .retry_max is %g s, below .retry_initial of %g s%s",
                       name, (double)options->retry_max.ns / 1e9, (double)first.ns / 1e9,
                       options->retry_initial.ns > 0 ? "" : ", the default");
    }
    return HF_OK;
}

hf_status hf_wf_check_types(hf_op *op, const char *what, const char *name, const char *const *types)
{
    size_t len = 0;
    for (size_t i = 0; types != NULL && types[i] != NULL && len <= HF_PAYLOAD_LEN_MAX; i++) {
        len += strlen(types[i]) + 1;
    }
    return len <= HF_PAYLOAD_LEN_MAX ? HF_OK
                                     : hf_fail(op, HF_ERR_TOO_BIG, "%s '%.100s': .final_types has more than %u bytes",
                                               what, name, HF_PAYLOAD_LEN_MAX);
}

/* Whether an activity that has not ended, as far as the history tells, has this id. */
static bool has_id(const hf_wf_activity *activity, hf_str id)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%" PRIu64, activity->seq);
    return hf_str_equal(id, hf_str_of(activity->id != NULL ? activity->id : number));
}

static bool is_among(const hf_list *activities, hf_str id)
{
    HF_LIST_EACH(node, activities)
    {
        if (has_id(HF_CONTAINER(node, hf_wf_activity, node), id)) {
            return true;
        }
    }
    return false;
}

static bool is_in_use(hf_wf *wf, hf_str id)
{
    const hf_list *activities = NULL;
    for (int i = 0; (activities = hf_wf_pending_all(&wf->activities, i)) != NULL; i++) {
        if (is_among(activities, id)) {
            return true;
        }
    }
    if (is_among(&wf->scheduling, id) || is_among(&wf->given_up, id)) {
        return true;
    }
    HF_LIST_EACH(node, &wf->leftovers)
    {
        const hf_wf_leftover *leftover = HF_CONTAINER(node, hf_wf_leftover, node);
        if (hf_str_equal(id, hf_str_of_len(leftover->id, leftover->id_len))) {
            return true;
        }
    }
    return false;
}

/* Nearly every input passes, so the text for a refusal is made only then. */
static hf_status check_input(hf_op *op, const char *name, hf_payload in)
{
    char what[HF_MESSAGE_LEN_MAX];
    if (HF_LIKELY(hf_payload_check(NULL, "", in) == HF_OK)) {
        return HF_OK;
    }
    (void)snprintf(what, sizeof what, "the input of activity '%.200s'", name);
    return hf_payload_check(op, what, in);
}

/* Against the others; `seq` is its number. */
static hf_status check_others(hf_op *op, hf_wf *wf, const char *name, const char *id, uint64_t seq)
{
    if (wf->activities_count >= HF_PENDING_MAX) {
        return hf_fail(op, HF_ERR_LIMIT, "activity '%.100s': a workflow has at most %d activities at once", name,
                       HF_PENDING_MAX);
    }
    wf->has_names |= id != NULL;
    if (!wf->has_names) {
        return HF_OK; /* numbers differ */
    }
    char number[24];
    (void)snprintf(number, sizeof number, "%" PRIu64, seq);
    if (is_in_use(wf, hf_str_of(id != NULL ? id : number))) {
        return hf_fail(op, HF_ERR_EXISTS, "activity '%.100s': another activity with the id '%.100s' has not ended",
                       name, id != NULL ? id : number);
    }
    return HF_OK;
}

hf_status hf_wf_check_work(hf_op *op, hf_wf *wf, const char *name, hf_payload in, const hf_activity_options *options)
{
    HF_TRY(check_names(op, wf, name, options));
    if (hf_wf_plays_by(wf, HF_WF_RULE_SPANS)) {
        HF_TRY(check_spans(op, name, options));
    }
    if (hf_wf_plays_by(wf, HF_WF_RULE_ATTEMPTS)) {
        HF_TRY(check_attempts(op, name, options));
    }
    HF_TRY(check_bounds(op, name, options));
    HF_TRY(hf_wf_check_types(op, "activity", name, options->final_types));
    if (hf_wf_plays_by(wf, HF_WF_RULE_SPANS) || in.encoding != NULL ||
        in.data == NULL) { /* bytes without a word for them were dropped before */
        HF_TRY(check_input(op, name, in));
    }
    return HF_OK;
}

hf_status hf_wf_check_activity(hf_op *op, hf_wf *wf, const char *name, hf_payload in,
                               const hf_activity_options *options)
{
    HF_TRY(hf_wf_check_work(op, wf, name, in, options));
    return check_others(op, wf, name, options->id, wf->activity_seq + 1);
}
