/* Activities that are answered later: by a person, a message from another system, a program that runs for days.
 *
 *     static hf_status ask_boss(hf_payload in, hf_payload *ret_out)
 *     {
 *         HF_AUTO(hf_payload_free) hf_payload token = hf_payload_none();
 *         HF_TRY(hf_activity_token(&token));
 *         HF_TRY(send_mail(in, token));
 *         return HF_PENDING;
 *     }
 *
 *     HF_TRY(hf_answer(service, hf_answer_to(token), hf_payload_of_json("true")));
 *
 * An activity that returns HF_PENDING has not ended: its function has returned, its slot is free, and its timeouts run
 * on. Code that has the token, or knows the ids, answers it: from any thread of this process, or from another process that
 * opens the store later. When the service has taken note of HF_PENDING, the attempt belongs to no process. If this
 * process ends then, also by kill -9, the attempt is not handed out again; before that it is lost like any other
 * ("WorkerLost"). An answer may come before the function has returned.
 *
 * Nobody but its timeouts ends an activity that is never answered, so give it a .start_to_close or .heartbeat. If it has a
 * .heartbeat, whoever is to answer must send heartbeats, too; they tell whether the answer is still wanted.
 *
 * A token is for one attempt: an answer with the token of an earlier attempt is refused. Ids are for the attempt that runs
 * when the answer comes; an answer of success by ids also ends an activity that waits for its next attempt. */
#ifndef HOLDFAST_ANSWER_H
#define HOLDFAST_ANSWER_H

#include <holdfast/activity.h>
#include <holdfast/service.h>

/* Which activity is meant: by its token or, if that is empty, by its ids. Borrowed. */
typedef struct hf_answer_target {
    hf_payload token;
    const char *workflow_id;
    const char *run_id; /* NULL = the current run of that workflow id */
    const char *activity_id;
    const char *namespace_; /* NULL = "default" */
} hf_answer_target;

static inline hf_answer_target hf_answer_to(hf_payload token)
{
    hf_answer_target target;
    target.token = token;
    target.workflow_id = target.run_id = target.activity_id = target.namespace_ = NULL;
    return target;
}

static inline hf_answer_target hf_answer_to_id(const char *workflow_id, const char *activity_id)
{
    hf_answer_target target;
    target.token = hf_payload_none();
    target.workflow_id = workflow_id;
    target.activity_id = activity_id;
    target.run_id = target.namespace_ = NULL;
    return target;
}

HF_BEGIN_DECLS

/* Inside an activity: the right to answer this attempt, as bytes that the caller owns. They are not secret from the store's
 * owner, but nobody can make them up. Fails: HF_ERR_MISUSE outside an activity; HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_activity_token(hf_payload *ret_token);

/* The activity has done its work; `out` is its result. All payloads and texts below are borrowed.
 * All four fail: HF_ERR_NOT_FOUND: the attempt has ended, by an answer or a timeout, or its workflow has; the message says
 * which. HF_ERR_INVALID: this is not a token, or an id is missing or has more than 1,000 bytes. HF_ERR_TOO_BIG: a payload has
 * more than 2 MiB. HF_ERR_LIMIT: as for hf_signal. HF_ERR_CANCELED, HF_ERR_STORE, HF_ERR_NOMEM, HF_ERR_UNAVAILABLE: as for
 * hf_start. */
HF_API HF_MUST_USE hf_status hf_answer(hf_service *service, hf_answer_target which, hf_payload out);
/* It has failed; the options are those of hf_activity_fail. It is tried again as its retry policy says. */
HF_API HF_MUST_USE hf_status hf_answer_failed_with(hf_service *service, hf_answer_target which, const char *message,
                                                   const hf_activity_fail_options *options);
/* It has ended because its workflow canceled it. Fails also: HF_ERR_INVALID: the workflow has not. */
HF_API HF_MUST_USE hf_status hf_answer_canceled(hf_service *service, hf_answer_target which, hf_payload details);
/* It is alive, and `details` says how far it is. `ret_why` may be NULL; it tells why the activity should end, HF_WHY_NOT if
 * it should go on. Fails also: HF_ERR_CANCELED: it should end, or the caller is canceled (`*ret_why` is HF_WHY_NOT then). */
HF_API HF_MUST_USE hf_status hf_answer_heartbeat(hf_service *service, hf_answer_target which, hf_payload details,
                                                 hf_cancel_why *ret_why);

HF_END_DECLS

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_answer_failed(...) HF_ANSWER_FAILED_(__VA_ARGS__, .size = sizeof(hf_activity_fail_options))
#define HF_ANSWER_FAILED_(service, which, message, ...) \
    hf_answer_failed_with((service), (which), (message), &(hf_activity_fail_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_answer_failed(hf_service *service, hf_answer_target which, const char *message,
    hf_activity_fail_options options = hf_activity_fail_options())
{
    options.size = sizeof options;
    return hf_answer_failed_with(service, which, message, &options);
}
#endif
/* clang-format on */

#endif
