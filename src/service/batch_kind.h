/* The kinds of batch operations. */
#ifndef HF_SERVICE_BATCH_KIND_H
#define HF_SERVICE_BATCH_KIND_H

#include "proto/pb.h"

/* The hf_batch_kind of a BatchOperationType. Servers show operations on workflows by newer numbers. */
static inline int32_t hf_batch_kind_of(int32_t type)
{
    return type >= HF_BATCH_OPERATION_TYPE_TERMINATE_WORKFLOW &&
                   type <= HF_BATCH_OPERATION_TYPE_UPDATE_WORKFLOW_EXECUTION_OPTIONS
               ? type - (HF_BATCH_OPERATION_TYPE_TERMINATE_WORKFLOW - HF_BATCH_OPERATION_TYPE_TERMINATE)
               : type;
}

#endif
