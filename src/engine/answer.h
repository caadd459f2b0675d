/* Answers. They wait for the open batch; a failed call too, because its sentence was decided on uncommitted state. */
#ifndef HF_ENGINE_ANSWER_H
#define HF_ENGINE_ANSWER_H

#include "engine/core.h"

void *hf_call_response(hf_core *core, hf_call *call); /* cleared, of the method's type; NULL: engine-E2 */
void hf_call_reply(hf_core *core, hf_call *call);
void hf_call_fail(hf_core *core, hf_call *call, hf_status status, const char *format, ...) HF_PRINTF(4, 5);
void hf_call_now(hf_call *call);    /* lets it go at once */
void hf_call_let_go(hf_call *call); /* one of the things that its answer waits for has come */
/* The one place where answers leave that waited for a commit. */
void hf_calls_publish(hf_list *replies);

#endif
