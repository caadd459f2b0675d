/* Headers: small values that go along with starts, signals, queries, updates, activities and children, beside their inputs; such as
 * the id of a trace. The sender sets fields (.header in the options), and the code that receives them reads them:
 *
 *     hf_entry header[] = {{"trace-id", hf_payload_of_json("\"4711\"")}, {NULL, hf_payload_none()}};
 *     HF_TRY(hf_start(service, "order", in, &order, .task_queue = "orders", .header = header));
 *
 *     HF_TRY(hf_header_get("trace-id", &trace));       in the workflow "order"
 *
 * Nothing goes further by itself. One hook, given to hf_open, is asked about everything that goes out, and adds what
 * should go along. hf_header_forward is a hook that copies all that came:
 *
 *     HF_TRY(hf_open("sqlite:orders.db", &service, .on_header = hf_header_forward));
 *
 * So a field that a client sets at the start of a workflow reaches its activities and children, and theirs. A header has at
 * most 64 fields and 64 KiB; a key has 1 to 1,000 bytes. Keys that begin with "holdfast-" are the library's. Fields pass
 * the codec of hf_open like all payloads. */
#ifndef HOLDFAST_HEADER_H
#define HOLDFAST_HEADER_H

#include <holdfast/payload.h>

HF_BEGIN_DECLS

/* Reads a field of the header that came with the code which asks: in an activity that of its task; in a handler that of
 * the signal, query or update which it handles; elsewhere in a workflow that of the start. Fibers that these fork read the same.
 * The caller owns the value. Fails: HF_ERR_NOT_FOUND: there is no such field; HF_ERR_MISUSE: the caller is neither an
 * activity nor a workflow; HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_header_get(const char *key, hf_payload *ret_value);
/* In a workflow: the same of the signal that it took last by hf_signal_wait, hf_signal_try and their kind. Ask before you
 * wait again. Fails: as hf_header_get. */
HF_API HF_MUST_USE hf_status hf_header_of_signal(const char *key, hf_payload *ret_value);

/* In a hook: adds a field to the header that goes out. A field that is there already stays, so what .header says counts.
 * Key and value are copied. Fails: HF_ERR_INVALID: the key is empty, too long or the library's, or there is no value;
 * HF_ERR_TOO_BIG: the header has more than 64 fields or 64 KiB; HF_ERR_NOMEM; HF_ERR_MISUSE: no header. */
HF_API HF_MUST_USE hf_status hf_header_put(hf_header *header, const char *key, hf_payload value);
/* A hook that adds every field of the header that came with the code which sends. It adds nothing on behalf of code that is
 * neither an activity nor a workflow. `arg` is not used. */
HF_API HF_MUST_USE hf_status hf_header_forward(void *arg, hf_header *header);

HF_END_DECLS

#endif
