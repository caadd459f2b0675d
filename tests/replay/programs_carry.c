/* Programs that continue as new, and what the next run gets of their memo and search attributes. */
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

const program programs_of_carry[] = {
    {"carries", carries},
    {"carries-given", carries_given},
    {NULL, NULL},
};
