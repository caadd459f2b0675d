/* A row of the source was changed by somebody else: it is read again, in the order of the key's own changes (depot-D2), and
 * shown as they are. */
#include "depot/change.h"
#include "depot/file.h"

#include "fiber/verbs.h"

static hf_status decide_changed(hf_depot *depot, hf_change *change)
{
    if (depot->source == NULL || depot->broken != HF_OK) {
        change->is_ignored = true; /* what is in memory is all that there is */
        return HF_OK;
    }
    return hf_source_reload(depot, change);
}

hf_status hf_changed_read(hf_depot *depot, hf_change *change, const hf_depot_entry *entry)
{
    hf_assert(change->is_reading && change->write_count == 0);
    hf_entry_copy(&change->next, entry);
    change->place = HF_DEPOT_SOURCE;
    HF_TRY(hf_change_fold(depot, change, NULL, NULL));
    if (entry->version > change->next.version) { /* the other one has counted further */
        change->next.version = change->snap->entry.version = entry->version;
    }
    return HF_OK;
}

static void apply_changed(hf_depot *depot, hf_change *change, hf_status status)
{
    hf_assert(status != HF_OK || change->is_ignored || change->snap != NULL);
    if (status == HF_OK && !change->is_ignored) {
        hf_change_show(depot, change, false);
    }
    hf_change_tell(depot, change, status);
    hf_change_free(depot, change);
}

static void act_changed(hf_depot *depot, hf_post *post)
{
    hf_ask *ask = HF_CONTAINER(post, hf_ask, post);
    if (hf_depot_refuses(depot, ask)) {
        return;
    }
    hf_change *change = hf_change_of_key(depot, ask->key);
    if (change == NULL) {
        hf_depot_answer(depot, ask, hf_fail(&ask->op, HF_ERR_NOMEM, "no memory to read a value of the depot"));
        return;
    }
    change->decide = decide_changed;
    change->apply = apply_changed;
    change->follows = true;
    if (!hf_depot_park(depot, ask, &change->asks)) {
        hf_change_free(depot, change);
        return;
    }
    hf_change_begin(depot, change);
}

hf_status hf_depot_changed(hf_depot *depot, hf_depot_key key)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_changed));
    HF_TRY(hf_depot_enter(depot, "hf_depot_changed"));
    hf_ask ask = {.what = NULL};
    hf_status status = hf_depot_ask_of(depot, key, &ask, act_changed, "hf_depot_changed");
    hf_depot_leave(depot);
    return status;
}
