/* One table for both ways. Several statuses share a code; the one that is marked is what a client makes of the code. */
#include "service/grpc_code.h"

typedef struct hf_code_row {
    hf_status status;
    hf_grpc_code code;
    bool is_back; /* this is the status of the code */
} hf_code_row;

static const hf_code_row ROWS[] = {
    {HF_OK, HF_GRPC_OK, true},
    {HF_ERR_CANCELED, HF_GRPC_CANCELLED, true},
    {HF_ERR_TIMEOUT, HF_GRPC_DEADLINE_EXCEEDED, true},
    {HF_ERR_NOT_FOUND, HF_GRPC_NOT_FOUND, true},
    {HF_ERR_EXISTS, HF_GRPC_ALREADY_EXISTS, true},
    {HF_ERR_DENIED, HF_GRPC_PERMISSION_DENIED, true},
    {HF_ERR_UNSUPPORTED, HF_GRPC_UNIMPLEMENTED, true},
    {HF_ERR_NOT_READY, HF_GRPC_FAILED_PRECONDITION, true},
    {HF_ERR_CONFLICT, HF_GRPC_ABORTED, true},
    {HF_ERR_STORE, HF_GRPC_DATA_LOSS, true},
    {HF_ERR_FAILED, HF_GRPC_UNKNOWN, true},

    {HF_ERR_INVALID, HF_GRPC_INVALID_ARGUMENT, true},
    {HF_ERR_TOO_BIG, HF_GRPC_INVALID_ARGUMENT, false},

    {HF_ERR_LIMIT, HF_GRPC_RESOURCE_EXHAUSTED, true}, /* one that passes */
    {HF_ERR_NOMEM, HF_GRPC_RESOURCE_EXHAUSTED, false},
    {HF_ERR_FULL, HF_GRPC_RESOURCE_EXHAUSTED, false},

    {HF_ERR_UNAVAILABLE, HF_GRPC_UNAVAILABLE, true},
    {HF_ERR_AGAIN, HF_GRPC_UNAVAILABLE, false},
    {HF_ERR_CLOSED, HF_GRPC_UNAVAILABLE, false}, /* the process ends; the next one serves */
    {HF_ERR_IO, HF_GRPC_UNAVAILABLE, false},
    {HF_ERR_RESET, HF_GRPC_UNAVAILABLE, false},
    {HF_ERR_REFUSED, HF_GRPC_UNAVAILABLE, false},

    {HF_ERR_MISUSE, HF_GRPC_INTERNAL, false}, /* of our own code: no request makes one */
    {HF_ERR_EVICTED, HF_GRPC_INTERNAL, false},
    {HF_ERR_CONTINUED, HF_GRPC_INTERNAL, false},
    {HF_PENDING, HF_GRPC_INTERNAL, false},
};

/* Codes that we do not send. */
static const hf_code_row FOREIGN[] = {
    {HF_ERR_UNAVAILABLE, HF_GRPC_INTERNAL, true}, /* SDKs repeat it, too */
    {HF_ERR_INVALID, HF_GRPC_OUT_OF_RANGE, true},
    {HF_ERR_DENIED, HF_GRPC_UNAUTHENTICATED, true},
};

hf_grpc_code hf_grpc_code_of(hf_status status, bool is_final)
{
    if (status == HF_ERR_LIMIT && is_final) {
        return HF_GRPC_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        if (ROWS[i].status == status) {
            return ROWS[i].code;
        }
    }
    return HF_GRPC_UNKNOWN; /* a program's own */
}

hf_status hf_status_of_grpc(int64_t code)
{
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        if (ROWS[i].is_back && (int64_t)ROWS[i].code == code) {
            return ROWS[i].status;
        }
    }
    for (size_t i = 0; i < HF_COUNT_OF(FOREIGN); i++) {
        if ((int64_t)FOREIGN[i].code == code) {
            return FOREIGN[i].status;
        }
    }
    return HF_ERR_FAILED;
}
