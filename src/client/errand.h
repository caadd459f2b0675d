/* What the client verbs share: the handle of a workflow, and the errand, one call with all it needs. */
#ifndef HF_CLIENT_ERRAND_H
#define HF_CLIENT_ERRAND_H

#include "client/data.h"
#include "service/call.h"

#include <holdfast/service.h>

enum { HF_ERRAND_TEXT_LEN_MAX = HF_KEY_LEN_MAX };

struct hf_execution {
    hf_service *service;
    hf_arena arena; /* the texts below; this struct, too */
    hf_str namespace_;
    hf_str id;
    hf_str run_id; /* may be empty */
};

/* One call and what it needs. */
typedef struct hf_errand {
    hf_arena arena;
    hf_op op;
    hf_call call;
    const char *verb;             /* what the program called, for its failure ... */
    hf_str id;                    /* ... and of which workflow */
    hf_span timeout;              /* of a long poll; 0 = none */
    _Alignas(16) char room[1536]; /* for the arena: what most errands need */
} hf_errand;

/* Begins an errand of `verb` about the workflow `id`; both are borrowed until it ends. */
void hf_errand_begin(hf_errand *errand, const char *verb, hf_str id);
/* Frees everything. Returns the errand's status, with its sentence in the record of the running fiber or thread. */
hf_status hf_errand_end(hf_errand *errand);
/* Asks and waits; the response is then in errand->call.response. A failure names the verb and the workflow. */
hf_status hf_errand_ask(hf_errand *errand, hf_service *service, hf_method method, const void *request);

#endif
