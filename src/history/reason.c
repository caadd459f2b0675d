#include "history/reason.h"

#include "history/payload.h"

hf_str hf_terminated_why(const hf_pb_workflow_execution_terminated_event_attributes *terminated)
{
    const hf_pb_payload *own = hf_payloads_first(terminated->details);
    bool is_known = hf_str_equal(terminated->reason, HF_STR(HF_REASON_TOO_MANY_EVENTS)) ||
                    hf_str_equal(terminated->reason, HF_STR(HF_REASON_TOO_MANY_BYTES));
    if (!is_known || own == NULL || own->data.len < 2 || own->data.data[0] != '"') {
        return terminated->reason;
    }
    return hf_str_of_len(own->data.data + 1, own->data.len - 2); /* a JSON text without anything to escape */
}
