/* Objects of a workflow: an object that a member of a crew makes with a verb of the library belongs to the crew.
 *
 * Usually the code that made an object frees it. If a crew is closed while objects are left, because a member was
 * stranded (strand.h) or forgot them, the crew frees them. So a run that leaves memory leaves no object of the
 * library behind.
 *
 *     struct hf_chan { ...; hf_owned_object owned; };
 *     hf_own(self, &chan->owned, drop_chan);                                 made
 *     HF_TRY(hf_disown(self, &chan->owned, "hf_chan_free", chan->name));     about to be freed
 *
 * The list belongs to the crew and is used on its scheduler's thread: only members and the driver may free such an
 * object. */
#ifndef HF_FIBER_OWNED_H
#define HF_FIBER_OWNED_H

#include "fiber/core.h"

typedef struct hf_owned_object hf_owned_object;
struct hf_owned_object {
    hf_node node;  /* in crew->owned */
    hf_crew *crew; /* NULL = it was not made by a member */
    /* Frees the object in any state. Called inside the library, on the driver, when no member is left. */
    void (*drop)(hf_owned_object *owned);
};

void hf_own(hf_fiber *self, hf_owned_object *owned, void (*drop)(hf_owned_object *owned));
/* Fails: HF_ERR_MISUSE if the object belongs to a workflow and the caller does not. */
hf_status hf_disown(hf_fiber *self, hf_owned_object *owned, const char *verb, const char *name);
/* Frees the objects that are left, the newest first: an object that uses another one was made after it. */
void hf_crew_drop_owned(hf_crew *crew);
/* For a drop that finds a waiter from outside the workflow, which should not know the object: the object is not
 * freed, and this is logged. */
void hf_owned_in_use(hf_runtime *rt, const char *kind, const char *name);

#endif
