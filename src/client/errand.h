/* Shared by the client verbs: the handles of workflows and updates, the request of a start, and the errand, which is one
 * call with its arena and error record. */
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
    hf_str run_id;       /* where hf_result begins; may be empty */
    hf_str first_run_id; /* names the chain that calls must reach; empty = any */
    bool is_bound;       /* all calls are for that run, not for the current one */
};

struct hf_update_handle {
    hf_service *service;
    hf_arena arena; /* memory of the texts below, and of this struct */
    hf_str namespace_;
    hf_str workflow_id;
    hf_str run_id; /* empty = the current one */
    hf_str id;
};

/* Makes a handle like this one, with copies of its texts. It counts as one of the service's handles. Fails: HF_ERR_NOMEM. */
hf_status hf_execution_make(hf_op *op, const hf_execution *like, hf_execution **ret_execution);
hf_status hf_update_handle_make(hf_op *op, const hf_update_handle *like, hf_update_handle **ret_update);

/* The run that a call is for, and the chain that this run must belong to. */
static inline hf_pb_workflow_execution hf_execution_target(const hf_execution *execution)
{
    return (hf_pb_workflow_execution){
        .workflow_id = execution->id,
        .run_id = execution->is_bound ? execution->run_id : HF_STR(""),
    };
}

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
/* Frees what the errand has in its arena, and forgets its failure: it asks again. */
void hf_errand_again(hf_errand *errand);
/* Asks and waits; the response is then in errand->call.response. A failure names the verb and the workflow. */
hf_status hf_errand_ask(hf_errand *errand, hf_service *service, hf_method method, const void *request);

/* The moment at which a wait with this timeout is over, INT64_MAX = never; and the time until then, which is not positive
 * afterwards. */
int64_t hf_errand_until(hf_span timeout);
int64_t hf_errand_left(int64_t until_ns);

/* The request of a start. */
typedef struct hf_start_request {
    char id[HF_UUID_LEN];         /* a random id of the workflow ... */
    char request_id[HF_UUID_LEN]; /* ... and of the request */
    hf_pb_workflow_type type;
    hf_pb_task_queue queue;
    hf_pb_retry_policy retry;
    hf_pb_memo memo;
    hf_pb_search_attributes search_attributes;
    hf_pb_user_metadata metadata;
    hf_pb_payload summary;
    hf_pb_start_workflow_execution_request pb; /* points to the others */
} hf_start_request;
/* Checks the options and makes the request, in place and in the arena. It borrows texts of the caller. The errand is then
 * about this workflow. Fails: HF_ERR_INVALID, HF_ERR_TOO_BIG, HF_ERR_MISUSE, HF_ERR_IO; and in the arena HF_ERR_NOMEM. */
hf_status hf_start_request_make(hf_errand *errand, const hf_service *service, hf_arena *arena, const char *type,
                                hf_payload in, hf_id_conflict conflict, const hf_start_options *options,
                                hf_start_request *ret_request);

/* Parts of it that the commands of workflows have, too. Everything is copied into the arena, which keeps HF_ERR_NOMEM.
 * Fails: HF_ERR_INVALID, HF_ERR_TOO_BIG. */
hf_status hf_entries_check(hf_op *op, const char *verb, const char *what, const hf_entry *entries);
void hf_entries_memo(hf_arena *arena, const hf_entry *entries, hf_pb_memo *ret_memo); /* checked ones; not NULL */
void hf_entries_search(hf_arena *arena, const hf_entry *entries, hf_pb_search_attributes *ret_attributes);
hf_pb_payload hf_summary_of(hf_arena *arena, const char *text); /* a JSON text */

/* Raises the failure of a workflow's code as HF_ERR_FAILED. NULL: only `message` is known. The errand's own failure is
 * forgotten, so that hf_errand_end does not raise it. */
hf_status hf_errand_raise(hf_errand *errand, const hf_pb_failure *failure, const char *type, hf_str message);

static inline hf_str hf_text_or(const char *text, const char *by_default)
{
    return hf_str_of(text != NULL ? text : by_default);
}
/* The caller's id, or a random one in `room`. Fails in `op`: HF_ERR_IO. */
hf_str hf_id_or_random(hf_op *op, const char *given, char room[HF_UUID_LEN]);

/* ---- Pages ----------------------------------------------------------------------------------------------------------- */

/* The token of the next page: it outlives the answer that it came with. */
typedef struct hf_page_token {
    hf_arena arena;
} hf_page_token;

void hf_page_token_init(hf_page_token *token);
void hf_page_token_deinit(hf_page_token *token);
/* Takes the token out of an answer, puts it into the next request, and begins the errand again. False: that was the last page, or there
 * is no memory. */
bool hf_page_token_next(hf_errand *e, hf_page_token *token, hf_str from, hf_str *ret_next);

#endif
