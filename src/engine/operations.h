/* Operations: runs of kind "operation", which do one thing to many runs (ADR 0026). Their states are in run/machines/operation.c. This
 * is the registry of those that a store keeps, and the calls that start, stop, show and list them.
 *
 * An operation that has something to do has an hf_operation in memory (machines/operation.c). It goes in portions:
 *
 *     deadline --> count (once) --> list a page --> take its runs: a change --> a message to each --> all answered: a change, the next deadline
 *
 * A change with the runs that it takes is part of the batch that holds its first effects, or of an earlier one. After a crash the same runs get the
 * same messages again, with the same request ids.
 *
 * engine-O1  A portion takes at most HF_OPERATION_PORTION runs, and an operation has one portion under way.
 * engine-O2  An operation acts on a run at most once: a message that arrives again is recognised, or has nothing left to do.
 * engine-O3  An operation acts in its own namespace only, on workflows only, and not once its stop is decided. */
#ifndef HF_ENGINE_OPERATIONS_H
#define HF_ENGINE_OPERATIONS_H

#include "base/list.h"
#include "engine/slot.h"
#include "history/limits.h"
#include "service/service.h"
#include "store/store.h"

typedef struct hf_commit_batch hf_commit_batch;
typedef struct hf_message hf_message;
typedef struct hf_operation hf_operation;

/* A portion is a few milliseconds of work in all, and shares commits with everybody else. A reset copies a history, and only HF_RESETS_MAX go on
 * at a time. */
enum { HF_OPERATION_PORTION = 64, HF_OPERATION_RESETS = 16 };
enum { HF_OPERATION_TRIES = 5 };                                /* of a run that cannot be acted on for a moment */
enum { HF_OPERATION_FAILURES = 10 };                            /* that are kept */
enum { HF_OPERATIONS_MAX = 10000 };                             /* kept by a store */
enum { HF_OPERATIONS_STEP = 4 };                                /* that go on in one step */
#define HF_OPERATION_RATE 5000.0                                /* runs a second, unless the request says */
#define HF_OPERATION_PAUSE INT64_C(1000000000)                  /* ns before another try */
#define HF_OPERATION_KEPT (INT64_C(7) * 24 * 3600 * 1000000000) /* ns that one stays after its end */
#define HF_OPERATION_ID_LEN_MAX (HF_ID_LEN_MAX - 2)             /* bytes of a job id: the run's own id has two more */

/* What is known of an operation without its run. */
typedef struct hf_operation_entry {
    int64_t run;
    hf_owned namespace_, job_id, run_id;
    int32_t type;  /* BatchOperationType */
    int32_t state; /* hf_operation_state: acting counts as waiting */
    int64_t start_time, close_time;
    bool purges;   /* it deletes its namespace */
    bool is_dirty; /* its row is written with the open batch */
} hf_operation_entry;

typedef struct hf_operations {
    HF_VEC(hf_operation_entry) all; /* by run */
    HF_VEC(int64_t) gone;           /* runs whose rows go with the open batch */
    bool is_dirty;                  /* there are rows to write or to delete */
    hf_list next;                   /* hf_operation that has something to do in this step */
    hf_list idle;                   /* hf_operation that waits for an answer */
} hf_operations;

void hf_operations_init(hf_core *core);
void hf_operations_deinit(hf_core *core);
hf_status hf_operations_open(hf_op *op, hf_core *core, hf_store *store);
/* Adds the rows that have changed to a batch. */
void hf_operations_put(hf_core *core, hf_commit_batch *batch);

/* NULL: there is none. Valid until an operation is added or removed. */
hf_operation_entry *hf_operation_find(hf_core *core, hf_str namespace_, hf_str job_id);
hf_operation_entry *hf_operation_of_run(hf_core *core, int64_t run);
/* The run of an operation was marked for deletion. */
void hf_operations_remove(hf_core *core, int64_t run);
/* A new operation that begins at once; NULL: engine-E2. */
hf_run *hf_operation_create(hf_core *core, const hf_pb_start_batch_operation_request *request, int32_t type,
                            hf_str identity, bool purges);

/* Its deadline has come. */
void hf_operation_fire(hf_core *core, hf_run *run);
/* It ends, in whatever state it is. */
void hf_operation_stop(hf_core *core, hf_run *run, hf_str why);
/* At the end of a step. */
void hf_operations_pump(hf_core *core);
bool hf_operations_have_work(const hf_core *core);

/* A message of an operation is answered. */
void hf_operation_answered(hf_core *core, hf_run *run, const hf_message *message);
/* A message of an operation has found its run. */
void hf_operation_act(hf_core *core, hf_call *call, hf_run *run);
/* Whether the call is such a message. */
bool hf_operation_asks(const hf_call *call);
/* The same, and the operation deletes a namespace with all that is in it. */
bool hf_operation_purges(hf_core *core, const hf_call *call);

void hf_start_batch_call(hf_core *core, hf_call *call);
void hf_stop_batch_call(hf_core *core, hf_call *call);
void hf_describe_batch_call(hf_core *core, hf_call *call);
void hf_list_batches_call(hf_core *core, hf_call *call);
/* Stop and Describe have found their run. */
void hf_batch_run_call(hf_core *core, hf_call *call, hf_run *run);
void hf_delete_namespace_call(hf_core *core, hf_call *call);

#endif
