/* Runs that are being deleted (machines/delete.c). */
#ifndef HF_ENGINE_DELETE_H
#define HF_ENGINE_DELETE_H

#include "base/buf.h"
#include "base/list.h"
#include "engine/slot.h"
#include "service/service.h"

typedef struct hf_commit_batch hf_commit_batch;
typedef struct hf_read hf_read;

/* All deletions of a core; each is in one of the lists. */
typedef struct hf_deletions {
    hf_list marked; /* wait until their mark is durable, by commit */
    hf_list next;   /* have something to do in this step */
    hf_list idle;   /* wait for an answer of the store or a run, or for the next opening */
    hf_list found;  /* go with the next commit, if nothing holds them up */
    size_t count;   /* of all of them */
    size_t stuck;   /* of those, that wait for the next opening */
    hf_buf gone;    /* runs that go with the open batch, as the journal has them */
} hf_deletions;

enum { HF_DELETIONS_MAX = 64 }; /* looks at other runs that one step takes */

void hf_deletions_init(hf_core *core);
void hf_deletions_deinit(hf_core *core);

/* A run that has ended is deleted. */
void hf_deletion_mark(hf_core *core, hf_run *run);
/* A run is in memory again: if it is being deleted, that goes on. */
void hf_deletion_resume(hf_core *core, hf_run *run);
/* At the end of a step. */
void hf_deletions_pump(hf_core *core);
bool hf_deletions_have_work(const hf_core *core); /* for such a step */
/* A commit is durable. */
void hf_deletions_committed(hf_core *core);

/* Whether a commit would delete something, and that commit. */
bool hf_deletions_can_go(hf_core *core);
void hf_deletions_go(hf_core *core, hf_commit_batch *batch);

/* Answers of the store to HF_READ_DELETION. */
void hf_deletion_rows_read(hf_core *core, hf_deletion *deletion, hf_read *read);
void hf_deletion_failed(hf_core *core, hf_deletion *deletion, const char *why);
/* Whether this is the call with which a deletion looks at another run of its id. */
bool hf_deletion_asks(const hf_call *call);

#endif
