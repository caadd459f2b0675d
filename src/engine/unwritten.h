/* hf_unwritten: what the engine knows of a run and never writes: queries, and what comes with updates. It holds its run in memory, it is part of the
 * core's hash, and a crash leaves nothing of it.
 *
 * Where a query goes depends on the run: with a workflow task, or alone. So at the end of the step
 * (hf_unwritten_settle), when all is decided and before tasks meet polls, each run that has changed is looked at again. Decisions ignore it.
 *
 * engine-Q1  What is not written is settled before a task of its run can start. */
#ifndef HF_ENGINE_UNWRITTEN_H
#define HF_ENGINE_UNWRITTEN_H

#include "engine/core.h"
#include "engine/slot.h"

struct hf_unwritten {
    hf_run *run;
    hf_node unsettled_link; /* of core->unsettled, when its run may have changed */
    hf_list queries;        /* hf_query (machines/query.c), in order of arrival */
    hf_list updates;        /* hf_asked (machines/update_wait.c), the same */
    hf_wft speculative;     /* machines/speculative.c; its state is NONE: there is none */
};

/* That of a run, made if there is none. NULL: engine-E2. */
hf_unwritten *hf_unwritten_get(hf_core *core, hf_run *run);
/* The run changes, or what is in it: it is settled at the end of the step. */
void hf_unwritten_mark(hf_core *core, hf_unwritten *unwritten);
void hf_unwritten_settle(hf_core *core);
/* Frees it if it holds nothing any more. */
void hf_unwritten_tidy(hf_core *core, hf_run *run);
/* Everything in it goes, with the slot of its run. */
void hf_unwritten_free(hf_core *core, hf_slot *slot);
uint64_t hf_unwritten_hash(const hf_slot *slot, uint64_t hash);

#endif
