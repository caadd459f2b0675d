#include "service/witness.h"

void hf_insight_add(hf_insight_names *names, hf_str name)
{
    static const char CUT[] = "...";
    char text[HF_INSIGHT_NAME_LEN] = "";
    size_t room = sizeof text - sizeof CUT;
    size_t len = name.len < sizeof text ? name.len : room;
    if (len > 0) {
        memcpy(text, name.data, len);
    }
    memcpy(text + len, CUT, len < name.len ? sizeof CUT : 0);
    for (int i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], text) == 0) {
            return;
        }
    }
    hf_assert(names->count >= 0 && names->count <= HF_INSIGHT_NAMES_MAX);
    if (names->count < HF_INSIGHT_NAMES_MAX) {
        memcpy(names->items[names->count++], text, sizeof text);
    }
}

void hf_witness_add(hf_service *service, hf_witness *witness)
{
    hf_assert(witness->look != NULL);
    hf_spin_lock(&service->witness_lock);
    witness->next = service->witnesses;
    service->witnesses = witness;
    hf_spin_unlock(&service->witness_lock);
}

void hf_witness_remove(hf_service *service, hf_witness *witness)
{
    hf_spin_lock(&service->witness_lock);
    for (hf_witness **at = &service->witnesses; *at != NULL; at = &(*at)->next) {
        if (*at == witness) {
            *at = witness->next;
            break;
        }
    }
    hf_spin_unlock(&service->witness_lock);
}

void hf_service_look(hf_service *service, hf_str namespace_, hf_str run_id, hf_insight *ret_insight)
{
    *ret_insight = (hf_insight){.is_known = false};
    hf_spin_lock(&service->witness_lock);
    for (hf_witness *at = service->witnesses; at != NULL && !ret_insight->is_known; at = at->next) {
        at->look(at, namespace_, run_id, ret_insight);
    }
    hf_spin_unlock(&service->witness_lock);
}

bool hf_service_cancel_activity(hf_service *service, hf_str namespace_, hf_str run_id, hf_str activity_id)
{
    void *pinned = NULL;
    void (*cancel)(void *) = NULL;
    hf_spin_lock(&service->witness_lock);
    for (hf_witness *at = service->witnesses; at != NULL && pinned == NULL; at = at->next) {
        pinned = at->pin != NULL ? at->pin(at, namespace_, run_id, activity_id) : NULL;
        cancel = at->cancel;
    }
    hf_spin_unlock(&service->witness_lock);
    if (pinned != NULL) {
        cancel(pinned);
    }
    return pinned != NULL;
}
