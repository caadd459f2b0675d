/* The table of statuses: their names, and which of them may pass by themselves. */
#include "base/status.h"

#include "support/support.h"

#include <string.h>

/* Said once more, one by one: whoever adds a status has to decide. */
static const struct {
    hf_status status;
    const char *name;
    bool may_pass;
} STATUSES[] = {
    {HF_OK, "HF_OK", false},
    {HF_ERR_CANCELED, "HF_ERR_CANCELED", false},
    {HF_ERR_TIMEOUT, "HF_ERR_TIMEOUT", true},
    {HF_ERR_CLOSED, "HF_ERR_CLOSED", false},
    {HF_ERR_AGAIN, "HF_ERR_AGAIN", true},
    {HF_ERR_NOMEM, "HF_ERR_NOMEM", true},
    {HF_ERR_LIMIT, "HF_ERR_LIMIT", true},
    {HF_ERR_MISUSE, "HF_ERR_MISUSE", false},
    {HF_ERR_INVALID, "HF_ERR_INVALID", false},
    {HF_ERR_NOT_FOUND, "HF_ERR_NOT_FOUND", false},
    {HF_ERR_EXISTS, "HF_ERR_EXISTS", false},
    {HF_ERR_IO, "HF_ERR_IO", true},
    {HF_ERR_RESET, "HF_ERR_RESET", true},
    {HF_ERR_REFUSED, "HF_ERR_REFUSED", true},
    {HF_ERR_FULL, "HF_ERR_FULL", true},
    {HF_ERR_UNSUPPORTED, "HF_ERR_UNSUPPORTED", false},
    {HF_ERR_CONFLICT, "HF_ERR_CONFLICT", false},
    {HF_ERR_TOO_BIG, "HF_ERR_TOO_BIG", false},
    {HF_ERR_DENIED, "HF_ERR_DENIED", false},
    {HF_ERR_EVICTED, "HF_ERR_EVICTED", false},
    {HF_ERR_STORE, "HF_ERR_STORE", false},
    {HF_ERR_FAILED, "HF_ERR_FAILED", false},
    {HF_ERR_UNAVAILABLE, "HF_ERR_UNAVAILABLE", true},
    {HF_ERR_NOT_READY, "HF_ERR_NOT_READY", false},
    {HF_ERR_CONTINUED, "HF_ERR_CONTINUED", false},
    {HF_PENDING, "HF_PENDING", false},
    {(hf_status)(HF_ERR_USER + 7), "HF_ERR_USER", false},
};

/* base-B4 */
static void every_status_says_whether_it_may_pass(void **state)
{
    (void)state;
    size_t listed = 1; /* a program's own */
#define COUNT_ROW(name, number, passing, text) listed++;
    HF_STATUS_MAP(COUNT_ROW)
#undef COUNT_ROW
    assert_int_equal(listed, HF_COUNT_OF(STATUSES));
    for (size_t i = 0; i < HF_COUNT_OF(STATUSES); i++) {
        HF_CHECK_SAY(strcmp(hf_status_name(STATUSES[i].status), STATUSES[i].name) == 0, "%s is called %s",
                     STATUSES[i].name, hf_status_name(STATUSES[i].status));
        HF_CHECK_SAY(hf_status_may_pass(STATUSES[i].status) == STATUSES[i].may_pass, "%s %s", STATUSES[i].name,
                     STATUSES[i].may_pass ? "may pass" : "stays");
        HF_CHECK(hf_status_text(STATUSES[i].status)[0] != '\0');
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_status_says_whether_it_may_pass),
    };
    return hf_test_main("status", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
