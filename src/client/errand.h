/* Shared by the client verbs: the handle of a workflow, and the errand, which is one call with its arena and error
 * record. */
#ifndef HF_CLIENT_ERRAND_H
#define HF_CLIENT_ERRAND_H

#include "client/data.h"
#include "service/call.h"

#include <holdfast/service.h>

enum { HF_ERRAND_TEXT_LEN_MAX = HF_KEY_LEN_MAX };

struct hf_execution {
    hf_service *service;
    hf_arena arena; /* memory of the texts below, and of this struct */
    hf_str namespace_;
    hf_str id;
    hf_str run_id; /* may be empty */
};

/* Makes a handle, which counts as one of the service's. Fails: HF_ERR_NOMEM. */
hf_status hf_execution_make(hf_op *op, hf_service *service, hf_str namespace_, hf_str id, hf_str run_id,
                            hf_execution **ret_execution);

/* One call with its arena and error record. */
typedef struct hf_errand {
    hf_arena arena;
    hf_op op;
    hf_call call;
    const char *verb;             /* function that the program called, for messages ... */
    hf_str id;                    /* ... and the id of the workflow */
    hf_span timeout;              /* of a long poll; 0 = none */
    _Alignas(16) char room[1536]; /* first memory of the arena: enough for most errands */
} hf_errand;

/* Begins an errand of `verb` about the workflow `id`; both are borrowed until it ends. */
void hf_errand_begin(hf_errand *errand, const char *verb, hf_str id);
/* Frees everything. Returns the errand's status; its message is then the last error of the running fiber or thread. */
hf_status hf_errand_end(hf_errand *errand);
/* Asks and waits; the response is then in errand->call.response. A failure names the verb and the workflow. */
hf_status hf_errand_ask(hf_errand *errand, hf_service *service, hf_method method, const void *request);

static inline hf_str hf_text_or(const char *text, const char *by_default)
{
    return hf_str_of(text != NULL ? text : by_default);
}
/* The caller's id, or a random one in `room`. Fails in `op`: HF_ERR_IO. */
hf_str hf_id_or_random(hf_op *op, const char *given, char room[HF_UUID_LEN]);

#endif
