/* Lists and counts of a store at rest, by a filter of src/where: what the service would say, without an engine. */
#ifndef HF_INSPECT_FIND_H
#define HF_INSPECT_FIND_H

#include "inspect/look.h"

#define HF_FIND_STATUS_COUNT 9
#define HF_FIND_TOLD 4096

/* Called after every HF_FIND_TOLD runs that were looked at. NULL = nobody wants to know. */
typedef void hf_find_told(uint64_t looked);

typedef struct hf_find {
    hf_str namespace_;
    hf_str query;
    uint64_t limit; /* runs at most; 0 = no limit */
    /* Called for each run that fits, in order; NULL = they are only counted. `run` is valid until it returns. False: it wants no more. */
    bool (*visit)(void *arg, const hf_pb_workflow_execution_info *run);
    void *arg;
    hf_find_told *progress;

    /* Results. */
    uint64_t counts[HF_FIND_STATUS_COUNT]; /* runs that fit, by status; without `visit` all of them */
    uint64_t damaged;                      /* runs that cannot be read, and may fit */
} hf_find;

/* Fails: HF_ERR_INVALID: the query is wrong (the sentence names the column); HF_ERR_NOT_FOUND: there is no such namespace, or it is being
 * deleted; HF_ERR_NOMEM, as the store does. */
hf_status hf_find_runs(hf_op *op, hf_look *look, hf_store *store, hf_allocator memory, hf_find *find);

/* The namespaces of a store at rest, "default" first. In one that is older than the registry these are the names that its runs use, as the next
 * opening will register them: all runs are looked at then. Fails: HF_ERR_INVALID, HF_ERR_NOMEM, as the store does. */
typedef void hf_find_namespace(void *arg, const hf_pb_namespace_record *record);
hf_status hf_find_namespaces(hf_op *op, hf_store *store, hf_allocator memory, hf_find_namespace *visit, void *arg,
                             hf_find_told *progress);
/* Whether there is such a namespace. */
hf_status hf_find_namespace_of(hf_op *op, hf_store *store, hf_allocator memory, hf_str name, bool *ret_is_there,
                               hf_find_told *progress);

/* Called for each operation on many runs (ADR 0026), newest first. `start` and `progress` are those of its run; NULL: it cannot be read. */
typedef void hf_find_operation(void *arg, const hf_pb_operation_record *record,
                               const hf_pb_start_batch_operation_request *request,
                               const hf_pb_operation_progress *progress);
/* "Completed". */
const char *hf_find_operation_state(const hf_pb_operation_record *record);
/* Visits those of a namespace. Fails: HF_ERR_INVALID, HF_ERR_NOMEM, as the store does. */
hf_status hf_find_operations(hf_op *op, hf_look *look, hf_store *store, hf_allocator memory, hf_str namespace_,
                             hf_find_operation *visit, void *arg);

#endif
