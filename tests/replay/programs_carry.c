/* How a run ends: programs that continue as new, and what the next run gets of their memo and search attributes; programs that
 * fail with details. */
#include "replay/programs.h"

#include <string.h>

static bool is_next(hf_payload in)
{
    return in.len > 0 && strcmp(in.data, "\"next\"") == 0;
}

static hf_status carries(hf_payload in, hf_payload *ret_out)
{
    if (is_next(in)) {
        return hf_payload_printf(ret_out, "\"done\"");
    }
    HF_TRY(hf_memo_set(hf_field_text("who", "ada"), hf_field_int("count", 3)));
    HF_TRY(hf_search_set(hf_field_text("City", "Kiel"), hf_field_bool("Done", false)));
    HF_TRY(hf_sleep(hf_seconds(1)));
    HF_TRY(hf_memo_set(hf_field_null("who"), hf_field_int("count", 4), hf_field_text("about", "replaced")));
    HF_TRY(hf_search_set(hf_field_null("Done")));
    HF_TRY(hf_sleep(hf_seconds(1)));
    hf_status status = hf_continue_as_new(hf_payload_of_json("\"next\""));
    HF_TRY(hf_memo_set(hf_field_text("late", "set behind the call")));
    return status;
}

static hf_status carries_given(hf_payload in, hf_payload *ret_out)
{
    static const hf_entry MEMO[] = {{"given", {"7", 1, HF_ENCODING_JSON_TEXT, NULL}}, {NULL, {NULL, 0, NULL, NULL}}};
    static const hf_entry NOTHING[] = {{NULL, {NULL, 0, NULL, NULL}}};
    if (is_next(in)) {
        return hf_payload_printf(ret_out, "\"done\"");
    }
    HF_TRY(hf_search_set(hf_field_text("City", "Kiel")));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_continue_as_new(hf_payload_of_json("\"next\""), .memo = MEMO, .search_attributes = NOTHING);
}

static hf_status fail_with_details(void *arg)
{
    (void)arg;
    return hf_workflow_fail("a fiber has failed", .type = "Inner", .details = hf_payload_of_json("[1, 2]"));
}

/* The failure of an activity, then that of a fiber, and at last its own. */
static hf_status fails_details(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_status status = RUN("refuse", "1", .start_to_close = hf_seconds(5));
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, fail_with_details, NULL));
    status = hf_join(scope);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    return hf_workflow_fail("it has failed for good", .type = "Outer", .is_final = true, .retry_after = hf_seconds(7),
                            .details = hf_payload_of_json("{\"at\": 3}"));
}

const program programs_of_carry[] = {
    {"carries", carries},
    {"carries-given", carries_given},
    {"fails-details", fails_details},
    {NULL, NULL},
};
