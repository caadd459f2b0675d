/* Links of a request to other things, which its event keeps: at most LINKS_MAX, each short, with all the names that it needs. */
#include "engine/links.h"

#include "engine/answer.h"
#include "engine/core_private.h"
#include "engine/size.h"

enum { LINKS_MAX = 10, LINK_LEN_MAX = 4000 };

static bool refuse(hf_core *core, hf_call *call, const char *why)
{
    hf_call_fail(core, call, HF_ERR_INVALID, "%s", why);
    return false;
}

static bool has_all(hf_str a, hf_str b, hf_str c)
{
    return a.len > 0 && b.len > 0 && c.len > 0;
}

/* Whether it names what it leads to. */
static bool is_complete(const hf_pb_link *link)
{
    switch (link->variant_case) {
    case HF_PB_LINK_WORKFLOW_EVENT:
        return link->workflow_event != NULL && has_all(link->workflow_event->namespace,
                                                       link->workflow_event->workflow_id, link->workflow_event->run_id);
    case HF_PB_LINK_BATCH_JOB:
        return link->batch_job != NULL && link->batch_job->job_id.len > 0;
    case HF_PB_LINK_ACTIVITY:
        return link->activity != NULL &&
               has_all(link->activity->namespace, link->activity->activity_id, link->activity->run_id);
    case HF_PB_LINK_NEXUS_OPERATION:
        return link->nexus_operation != NULL &&
               has_all(link->nexus_operation->namespace, link->nexus_operation->operation_id,
                       link->nexus_operation->run_id);
    case HF_PB_LINK_WORKFLOW:
        return link->workflow != NULL &&
               has_all(link->workflow->namespace, link->workflow->workflow_id, link->workflow->run_id);
    default:
        return false;
    }
}

bool hf_links_are_good(hf_core *core, hf_call *call, hf_pb_link_list links)
{
    if (links.count > LINKS_MAX) {
        hf_call_fail(core, call, HF_ERR_INVALID, "cannot attach more than %d links per request, got %zu", LINKS_MAX,
                     links.count);
        return false;
    }
    for (size_t i = 0; i < links.count; i++) {
        size_t len = hf_message_len(core, &hf_pb_link_type, &links.items[i]);
        if (len > LINK_LEN_MAX) {
            hf_call_fail(core, call, HF_ERR_INVALID, "link exceeds allowed size of %d, got %zu", LINK_LEN_MAX, len);
            return false;
        }
        if (!is_complete(&links.items[i])) {
            return refuse(core, call, "a link does not name what it leads to: its namespace, its id and its run");
        }
    }
    hf_assert(links.count <= LINKS_MAX);
    return core->status == HF_OK;
}
