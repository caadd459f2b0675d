/* Asking a service and waiting for the answer: a fiber parks, a plain thread blocks. */
#ifndef HF_SERVICE_CALL_H
#define HF_SERVICE_CALL_H

#include "service/service.h"

/* Submits the call and waits until it is done; `call` was set up by hf_call_init with any `done` (it is replaced).
 * Returns call->status, and in `op` its message. When the caller's scope is canceled the service is told, and the call
 * still ends properly: with HF_ERR_CANCELED, or with the answer that was on its way.
 * Fails: HF_ERR_CANCELED without asking when the caller is canceled already, HF_ERR_MISUSE on a workflow's fiber. */
hf_status hf_service_ask(hf_op *op, hf_service *service, hf_call *call);

/* Writes the message of a failed call, "hf_signal of workflow 'order-1': it has ended": the verb, the workflow if
 * the call names one, then `link` and `text`. Returns status. */
hf_status hf_call_report(hf_op *op, const hf_call *call, hf_status status, const char *link, const char *text);

#endif
