/* hf_status as gRPC's codes, and back: for a server and for a client. */
#ifndef HF_SERVICE_GRPC_CODE_H
#define HF_SERVICE_GRPC_CODE_H

#include "base/base.h"

#include <holdfast/status.h>

typedef enum hf_grpc_code {
    HF_GRPC_OK = 0,
    HF_GRPC_CANCELLED = 1,
    HF_GRPC_UNKNOWN = 2,
    HF_GRPC_INVALID_ARGUMENT = 3,
    HF_GRPC_DEADLINE_EXCEEDED = 4,
    HF_GRPC_NOT_FOUND = 5,
    HF_GRPC_ALREADY_EXISTS = 6,
    HF_GRPC_PERMISSION_DENIED = 7,
    HF_GRPC_RESOURCE_EXHAUSTED = 8,
    HF_GRPC_FAILED_PRECONDITION = 9,
    HF_GRPC_ABORTED = 10,
    HF_GRPC_OUT_OF_RANGE = 11,
    HF_GRPC_UNIMPLEMENTED = 12,
    HF_GRPC_INTERNAL = 13,
    HF_GRPC_UNAVAILABLE = 14,
    HF_GRPC_DATA_LOSS = 15,
    HF_GRPC_UNAUTHENTICATED = 16,
    HF_GRPC_CODE_COUNT
} hf_grpc_code;

/* `is_final`: of an hf_call. A limit that does not pass is INVALID_ARGUMENT: SDKs repeat RESOURCE_EXHAUSTED. */
hf_grpc_code hf_grpc_code_of(hf_status status, bool is_final);
/* A number that is not one of the codes counts as UNKNOWN. */
hf_status hf_status_of_grpc(int64_t code);

#endif
