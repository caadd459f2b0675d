/* The change feed: which runs have changed, in the order of commits. It is in memory alone, and only while somebody asks.
 *
 * A ring has the last HF_CHANGES_MAX changes. A cursor is a place in it, sealed, and bound to the namespace and to this opening of the store. A
 * cursor that the ring does not reach any more, or of an earlier opening, is answered with a gap: the caller lists the runs again.
 *
 * engine-F1  A change is noted when its batch is sealed, and told when that is durable. */
#ifndef HF_ENGINE_CHANGES_H
#define HF_ENGINE_CHANGES_H

#include "base/list.h"
#include "engine/core.h"

#define HF_CHANGES_MAX 8192         /* changes that are kept: some megabytes */
#define HF_CHANGES_PAGE 1000        /* of one answer, unless the caller wants fewer */
#define HF_CHANGES_IDLE_SECONDS 300 /* nobody has asked for so long: the ring goes */

/* A run that a commit changed. */
typedef struct hf_change_noted {
    char *texts; /* namespace, workflow id, run id, type, one behind the other */
    uint32_t lens[4];
    int32_t status;
} hf_change_noted;

typedef struct hf_changes {
    hf_change_noted *ring; /* NULL = nobody asks */
    uint64_t first;        /* number of the oldest that is kept */
    uint64_t next;         /* of the next one; their places are the numbers modulo HF_CHANGES_MAX */
    int64_t asked_at;      /* mono ns */
    hf_list waiting;       /* calls */
    bool has_news;         /* since readers were woken */
} hf_changes;

void hf_read_changes_call(hf_core *core, hf_call *call);
/* The batch that is sealed has changes of the run; and then: all of them are noted. */
void hf_changes_note(hf_core *core, const hf_run *run);
void hf_changes_wake(hf_core *core);
void hf_changes_remove(hf_core *core, hf_call *call); /* it does not wait any more */
void hf_changes_expire(hf_core *core, hf_call *call);
void hf_changes_free(hf_core *core);

#endif
