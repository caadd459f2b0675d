/* Objects of a workflow: what a member of a crew makes with a verb of the library belongs to the crew.
 *
 * Usually the code that made an object frees it. When the crew is closed with objects left, because a member was stranded
 * (strand.h) or forgot them, the crew frees them: a run that leaves memory leaves nothing of the library's behind.
 *
 *     struct hf_sem { ...; hf_owned owned; };
 *     hf_own(self, &sem->owned, drop_sem);                                 made
 *     HF_TRY(hf_disown(self, &sem->owned, "hf_sem_free", sem->name));      about to be freed
 *
 * The list is the crew's, on its scheduler's thread: only members and the driver may free such an object. */
#ifndef HF_FIBER_OWNED_H
#define HF_FIBER_OWNED_H

#include "fiber/core.h"

typedef struct hf_owned hf_owned;
struct hf_owned {
    hf_node node;  /* in crew->owned */
    hf_crew *crew; /* NULL = nobody's: it was made elsewhere */
    /* Frees the object, whatever state its last user left it in. Inside the library, on the driver, when no member is left. */
    void (*drop)(hf_owned *owned);
};

void hf_own(hf_fiber *self, hf_owned *owned, void (*drop)(hf_owned *owned));
/* Fails: HF_ERR_MISUSE when it is a workflow's and the caller is somebody else. */
hf_status hf_disown(hf_fiber *self, hf_owned *owned, const char *verb, const char *name);
/* Newest first: what uses another object was made after it. */
void hf_crew_drop_owned(hf_crew *crew);
/* For a drop: somebody outside the workflow, who should not know of the object, waits for it. It stays, and this is
 * logged. */
void hf_owned_in_use(hf_runtime *rt, const char *kind, const char *name);

#endif
