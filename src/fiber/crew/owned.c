#include "fiber/crew/owned.h"

#include "fiber/crew/crew_struct.h"

void hf_own(hf_fiber *self, hf_owned_object *owned, void (*drop)(hf_owned_object *owned))
{
    if (HF_LIKELY(self->crew == NULL)) {
        return;
    }
    hf_assert(!hf_node_is_linked(&owned->node) && drop != NULL);
    owned->crew = self->crew;
    owned->drop = drop;
    hf_list_push_back(&self->crew->owned, &owned->node);
}

hf_status hf_disown(hf_fiber *self, hf_owned_object *owned, const char *verb, const char *name)
{
    if (HF_LIKELY(owned->crew == NULL)) {
        return HF_OK;
    }
    if (HF_UNLIKELY(!hf_crew_owns(owned->crew, self))) {
        hf_log(self->rt, HF_LOG_ERROR, "misuse", "verb=%s name=%s message=it_belongs_to_a_workflow", verb, name);
        return hf_refuse_at(self, HF_ERR_MISUSE, verb,
                            "'%s' was made by a workflow, and only that workflow may free it", name);
    }
    hf_assert(hf_node_is_linked(&owned->node));
    hf_list_remove(&owned->node);
    owned->crew = NULL;
    return HF_OK;
}

void hf_crew_drop_owned(hf_crew *crew)
{
    while (!hf_list_is_empty(&crew->owned)) {
        hf_owned_object *owned = HF_CONTAINER(hf_list_last(&crew->owned), hf_owned_object, node);
        hf_assert(owned->crew == crew);
        hf_list_remove(&owned->node);
        owned->crew = NULL;
        if (!HF_CANARY(HF_BUG_OWNED_KEPT)) {
            owned->drop(owned);
        }
    }
}

void hf_owned_in_use(hf_runtime *rt, const char *kind, const char *name)
{
    hf_log(rt, HF_LOG_ERROR, "misuse", "object=%s name=%s message=somebody_outside_the_workflow_waits_for_it", kind,
           name);
}
