/* Answers. They wait until the open batch is durable; errors too, because they were decided on uncommitted state. */
#ifndef HF_ENGINE_ANSWER_H
#define HF_ENGINE_ANSWER_H

#include "engine/core.h"

void *hf_call_response(hf_core *core, hf_call *call); /* cleared, of the method's type; NULL: engine-E2 */
void hf_call_reply(hf_core *core, hf_call *call);
/* With the detail that its status has (hf_status_detail), or with one that says more: a message of errordetails.v1, which is
 * copied. */
void hf_call_fail(hf_core *core, hf_call *call, hf_status status, const char *format, ...) HF_PRINTF(4, 5);
void hf_call_fail_with(hf_core *core, hf_call *call, hf_status status, const hf_pb_type *type, const void *detail,
                       const char *format, ...) HF_PRINTF(6, 7);
/* Before one of these: what a Temporal server says instead, for callers that know its sentences. */
void hf_call_say(hf_core *core, hf_call *call, const char *format, ...) HF_PRINTF(3, 4);
/* A limit that does not pass: HF_ERR_LIMIT, and waiting does not help. */
/* `words` are a Temporal server's, for callers that know those; a constant. */
void hf_call_fail_for_good(hf_core *core, hf_call *call, const char *words, const char *format, ...) HF_PRINTF(4, 5);
void hf_call_now(hf_call *call);    /* answers it at once */
void hf_call_let_go(hf_call *call); /* one thing less to wait for; answers it if that was the last */
/* Sends answers that waited for a commit; no other function does. */
void hf_calls_publish(hf_list *replies);

#endif
