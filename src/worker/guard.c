/* What the determinism guard (src/guard) asks and says. */
#include "worker/wf.h"

#include "fiber/verbs.h"

#include <holdfast/guard.h>

#include <stdio.h>

bool hf_guard_applies(void)
{
    const hf_fiber *self = (const hf_fiber *)(const void *)hf_self_get();
    return self != NULL && self->kind == HF_FIBER_MEMBER && !self->in_lib && hf_wf_self() != NULL &&
           !hf_crew_self_is_evicted();
}

void hf_guard_refuse(const char *message)
{
    hf_wf *wf = hf_wf_self();
    if (wf == NULL || message == NULL || hf_crew_self_is_evicted() || wf->misdeed != NULL) {
        return;
    }
    hf_allocator memory = wf->worker->memory;
    char *text = memory.allocate(memory.state, HF_MESSAGE_LEN_MAX, 1);
    if (text == NULL) {
        wf->is_nomem = true;
        return;
    }
    (void)snprintf(text, HF_MESSAGE_LEN_MAX, "%s", message);
    wf->misdeed = text;
}

void hf_wf_misdeed_free(hf_wf *wf)
{
    hf_allocator memory = wf->worker->memory;
    if (wf->misdeed != NULL) {
        memory.release(memory.state, wf->misdeed, HF_MESSAGE_LEN_MAX);
        wf->misdeed = NULL;
    }
}
