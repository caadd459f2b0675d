/* Statuses as gRPC's codes, and back. */
#include "service/grpc_code.h"

#include "base/status.h"
#include "service/service.h"
#include "support/support.h"

/* Said once more, one by one: whoever adds a status has to decide. */
static const struct {
    hf_status status;
    hf_grpc_code code;
} CODES[] = {
    {HF_OK, HF_GRPC_OK},
    {HF_ERR_CANCELED, HF_GRPC_CANCELLED},
    {HF_ERR_TIMEOUT, HF_GRPC_DEADLINE_EXCEEDED},
    {HF_ERR_CLOSED, HF_GRPC_UNAVAILABLE},
    {HF_ERR_AGAIN, HF_GRPC_UNAVAILABLE},
    {HF_ERR_NOMEM, HF_GRPC_RESOURCE_EXHAUSTED},
    {HF_ERR_LIMIT, HF_GRPC_RESOURCE_EXHAUSTED},
    {HF_ERR_MISUSE, HF_GRPC_INTERNAL},
    {HF_ERR_INVALID, HF_GRPC_INVALID_ARGUMENT},
    {HF_ERR_NOT_FOUND, HF_GRPC_NOT_FOUND},
    {HF_ERR_EXISTS, HF_GRPC_ALREADY_EXISTS},
    {HF_ERR_IO, HF_GRPC_UNAVAILABLE},
    {HF_ERR_RESET, HF_GRPC_UNAVAILABLE},
    {HF_ERR_REFUSED, HF_GRPC_UNAVAILABLE},
    {HF_ERR_FULL, HF_GRPC_RESOURCE_EXHAUSTED},
    {HF_ERR_UNSUPPORTED, HF_GRPC_UNIMPLEMENTED},
    {HF_ERR_CONFLICT, HF_GRPC_ABORTED},
    {HF_ERR_TOO_BIG, HF_GRPC_INVALID_ARGUMENT},
    {HF_ERR_DENIED, HF_GRPC_PERMISSION_DENIED},
    {HF_ERR_EVICTED, HF_GRPC_INTERNAL},
    {HF_ERR_CONTINUED, HF_GRPC_INTERNAL},
    {HF_PENDING, HF_GRPC_INTERNAL},
    {HF_ERR_STORE, HF_GRPC_DATA_LOSS},
    {HF_ERR_FAILED, HF_GRPC_UNKNOWN},
    {HF_ERR_UNAVAILABLE, HF_GRPC_UNAVAILABLE},
    {HF_ERR_NOT_READY, HF_GRPC_FAILED_PRECONDITION},
    {(hf_status)(HF_ERR_USER + 7), HF_GRPC_UNKNOWN},
};

static void every_status_has_a_code(void **state)
{
    (void)state;
    size_t listed = 1; /* a program's own */
#define COUNT_ROW(name, number, passing, text) listed++;
    HF_STATUS_MAP(COUNT_ROW)
#undef COUNT_ROW
    assert_int_equal(listed, HF_COUNT_OF(CODES));
    for (size_t i = 0; i < HF_COUNT_OF(CODES); i++) {
        hf_status status = CODES[i].status;
        HF_CHECK_SAY(hf_grpc_code_of(status, false) == CODES[i].code, "%s is %d", hf_status_name(status),
                     (int)hf_grpc_code_of(status, false));
        HF_CHECK_SAY(hf_grpc_code_of(status, true) ==
                         (status == HF_ERR_LIMIT ? HF_GRPC_INVALID_ARGUMENT : CODES[i].code),
                     "%s for good is %d", hf_status_name(status), (int)hf_grpc_code_of(status, true));
    }
}

/* What a server of ours sends, a client of ours understands: as the same status, or one that has the same code. */
static void every_code_has_a_status_that_leads_back(void **state)
{
    (void)state;
    for (int code = 0; code < HF_GRPC_CODE_COUNT; code++) {
        hf_status status = hf_status_of_grpc(code);
        bool is_foreign = code == HF_GRPC_INTERNAL || code == HF_GRPC_OUT_OF_RANGE || code == HF_GRPC_UNAUTHENTICATED;
        HF_CHECK_SAY((status == HF_OK) == (code == HF_GRPC_OK), "code %d is %s", code, hf_status_name(status));
        HF_CHECK_SAY(is_foreign || (int)hf_grpc_code_of(status, false) == code, "code %d is %s", code,
                     hf_status_name(status));
    }
    assert_int_equal(hf_status_of_grpc(HF_GRPC_CODE_COUNT), HF_ERR_FAILED);
    assert_int_equal(hf_status_of_grpc(-1), HF_ERR_FAILED);
    assert_int_equal(hf_status_of_grpc(INT64_MAX), HF_ERR_FAILED);
}

/* Workers try again after "passes" alone: none of these may come back as one that stays. */
static void a_failure_that_passes_still_does_on_the_other_side(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(CODES); i++) {
        hf_status there = hf_status_of_grpc((int64_t)hf_grpc_code_of(CODES[i].status, false));
        HF_CHECK_SAY(!hf_status_may_pass(CODES[i].status) || hf_status_may_pass(there), "%s comes back as %s",
                     hf_status_name(CODES[i].status), hf_status_name(there));
    }
}

/* errordetails.v1 belongs to codes: a limit's detail must not come with an invalid argument. */
static void the_detail_of_a_status_fits_its_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(CODES); i++) {
        const hf_pb_type *type = NULL;
        const void *detail = NULL;
        if (!hf_status_detail(CODES[i].status, &type, &detail)) {
            continue;
        }
        assert_non_null(detail);
        HF_CHECK_SAY((type == &hf_pb_resource_exhausted_failure_type) ==
                             (CODES[i].code == HF_GRPC_RESOURCE_EXHAUSTED) &&
                         (type == &hf_pb_not_found_failure_type) == (CODES[i].code == HF_GRPC_NOT_FOUND),
                     "%s has %s", hf_status_name(CODES[i].status), type->name);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_status_has_a_code),
        cmocka_unit_test(every_code_has_a_status_that_leads_back),
        cmocka_unit_test(a_failure_that_passes_still_does_on_the_other_side),
        cmocka_unit_test(the_detail_of_a_status_fits_its_code),
    };
    return hf_test_main("grpc_code", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
