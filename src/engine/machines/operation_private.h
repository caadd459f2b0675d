/* Shared by operation.c and operation_act.c. */
#ifndef HF_ENGINE_MACHINES_OPERATION_PRIVATE_H
#define HF_ENGINE_MACHINES_OPERATION_PRIVATE_H

#include "engine/core_private.h"
#include "engine/operations.h"

typedef enum hf_operation_stage {
    OPERATION_BEGIN,
    OPERATION_COUNTED,
    OPERATION_LISTED,
    OPERATION_PAUSED, /* a list was refused, or some runs cannot be acted on for a moment: it goes on with its deadline */
    OPERATION_SENT,   /* its messages are on their way */
    OPERATION_ANSWERED
} hf_operation_stage;

typedef enum hf_operation_outcome {
    OUTCOME_NONE, /* no answer yet */
    OUTCOME_DONE,
    OUTCOME_GONE, /* there is no such run, or it has ended: also on Temporal nothing is to be done then */
    OUTCOME_FAILED,
    OUTCOME_AGAIN /* the run could not be acted on for a moment */
} hf_operation_outcome;

/* An operation that goes on. It holds its run in memory. */
struct hf_operation {
    hf_call call; /* a count or a list; first */
    hf_node link; /* of one of hf_operations' lists */
    hf_core *core;
    int64_t run;
    hf_operation_stage stage;
    bool is_stopped; /* it goes away when nothing of it is on its way */
    bool is_asking;  /* `call` is on its way */
    hf_arena arena;  /* of all that follows */
    hf_pb_operation_start start;
    hf_pb_start_batch_operation_request request;
    hf_pb_operation_progress progress; /* as of the last change, and what is known since */
    union {
        hf_pb_count_workflow_executions_request count;
        hf_pb_scan_workflow_executions_request list;
    } asks;
    size_t pending;                 /* messages without an answer */
    hf_operation_outcome *outcomes; /* of progress.taken */
    hf_str *reasons;                /* of those that failed */
    int tries;                      /* to list a page, or to act on those that were taken */
    bool has_acted;                 /* the last message that was answered did what it was to do */
};

/* How many runs a portion takes. */
size_t hf_operation_portion(const hf_operation *it);
/* The namespace of its runs: its own. */
hf_str hf_operation_namespace(const hf_operation *it);
/* The query that finds its runs. In the arena. */
hf_str hf_operation_query(hf_operation *it);
/* The id of the run of an operation: a byte that no workflow id begins with, its kind, its job id. */
hf_str hf_operation_workflow_id(hf_arena *arena, hf_str job_id);
/* Frees those that go on; the core ends. */
void hf_operations_free(hf_core *core);
/* Sends its messages to the runs that were taken and have no outcome. */
void hf_operation_send(hf_core *core, hf_operation *it, hf_run *run);

#endif
