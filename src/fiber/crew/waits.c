/* Where the members of a crew wait, for people: the query "__stack_trace" of a workflow. */
#include "fiber/crew/crew.h"

#include "base/buf.h"
#include "fiber/crew/crew_struct.h"

void hf_crew_put_waits(const hf_crew *crew, hf_buf *out)
{
    HF_LIST_EACH(node, &crew->members)
    {
        const hf_fiber *member = HF_CONTAINER(node, hf_fiber, members);
        const hf_wait *wait = member->wait;
        const char *name = member->branch != NULL && member->branch->name != NULL ? member->branch->name : "fiber";
        hf_buf_putf(out, "%s: ", name);
        if (wait == NULL) {
            hf_buf_puts(out, "ready");
        } else {
            hf_buf_puts(out, wait->kind->verb);
            if (wait->object_name != NULL && wait->object_name[0] != '\0') {
                hf_buf_putf(out, " on '%s'", wait->object_name);
            }
        }
        if (member->file != NULL) {
            hf_buf_putf(out, " (%s:%d)", member->file, member->line);
        }
        hf_buf_putc(out, '\n');
    }
}
