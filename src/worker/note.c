/* hf_note on the fibers of workflows and activities: who writes, and whether this is a replay. */
#include "worker/activity_private.h"
#include "worker/wf.h"

#include "base/fields.h"

bool hf_wf_note_prefix(char *fields, size_t capacity)
{
    const hf_wf *wf = hf_wf_self();
    if (wf != NULL) {
        hf_fields_format(fields, capacity, "workflow=%.*s run=%.*s", HF_STR_ARGS(wf->id), HF_STR_ARGS(wf->run_id));
        return wf->is_current; /* else it was written when the step ran first */
    }
    const hf_activity_facts *facts = hf_activity_info();
    if (facts != NULL) {
        hf_fields_format(fields, capacity, "workflow=%s run=%s activity=%s attempt=%d", facts->workflow_id,
                         facts->run_id, facts->name, facts->attempt);
    }
    return true;
}
