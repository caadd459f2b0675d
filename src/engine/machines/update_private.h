/* What update.c and update_message.c share. */
#ifndef HF_ENGINE_MACHINES_UPDATE_PRIVATE_H
#define HF_ENGINE_MACHINES_UPDATE_PRIVATE_H

#include "engine/machines/update.h"

#define HF_UPDATES_MAX 2000 /* of one run */
#define HF_UPDATE_TYPE "type.googleapis.com/temporal.api.update.v1."

#define STAGE_ADMITTED HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED
#define STAGE_ACCEPTED HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED
#define STAGE_COMPLETED HF_UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED

typedef enum hf_asked_state {
    ASKED_ADMITTED,
    ASKED_SENT,
    ASKED_EVENT,  /* admitted by an event of the history, which a worker sees; somebody waits for what becomes of it */
    ASKED_WRITTEN /* accepted: the run knows it, and somebody waits for its outcome */
} hf_asked_state;

/* An update that is not accepted yet, or that somebody waits for. */
typedef struct hf_asked {
    hf_node link; /* of hf_unwritten.updates */
    hf_asked_state state;
    hf_owned id;
    hf_owned request; /* update.v1.Request, until it is accepted */
    hf_list waiters;
} hf_asked;

hf_asked *hf_asked_find(const hf_run *run, hf_str id); /* NULL = there is none */
void hf_asked_free(hf_core *core, hf_asked *asked);    /* nobody waits for it */
/* Tells all who wait for this stage or an earlier one. */
void hf_asked_tell(hf_core *core, const hf_run *run, hf_asked *asked, int32_t stage, const hf_pb_outcome *outcome);
/* Everybody who waits gets this failure. */
void hf_asked_refuse(hf_core *core, hf_asked *asked, hf_status status, const char *why);
/* The outcome of an update that the engine ends itself; in core->scratch. */
hf_pb_outcome hf_update_failure(hf_core *core, const char *type, const char *message);

#endif
