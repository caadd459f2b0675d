/* Shared by update.c, update_wait.c and update_message.c. */
#ifndef HF_ENGINE_MACHINES_UPDATE_PRIVATE_H
#define HF_ENGINE_MACHINES_UPDATE_PRIVATE_H

#include "engine/machines/update.h"

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

/* A call that waits for an update. */
typedef struct hf_waiter {
    hf_node link;
    hf_call *call;
    hf_run *run;
    hf_asked *asked;
    int32_t stage; /* that it waits for */
    bool is_new;   /* the call has started the run */
} hf_waiter;

bool hf_update_was_passed(const hf_run *run, const hf_update *update); /* update.c */

/* ---- update_wait.c ------------------------------------------------------------------------------------------------------ */

hf_asked *hf_asked_new(hf_core *core, hf_run *run, hf_str id, hf_asked_state state); /* NULL: engine-E2 */
hf_asked *hf_asked_find(const hf_run *run, hf_str id);                               /* NULL = there is none */
void hf_asked_free(hf_core *core, hf_asked *asked);                                  /* nobody waits for it */
/* Tells all who wait for this stage or an earlier one. */
void hf_asked_tell(hf_core *core, const hf_run *run, hf_asked *asked, int32_t stage, const hf_pb_outcome *outcome);
/* Everybody who waits gets this failure. */
void hf_asked_refuse(hf_core *core, hf_asked *asked, hf_status status, const char *why);
/* The call waits for this stage; it is told where the update is when that takes too long. `asked`: NULL = engine-E2, and nothing happens. */
void hf_asked_wait(hf_core *core, hf_call *call, hf_run *run, hf_asked *asked, int32_t stage, bool is_new);
hf_call *hf_waiter_end(hf_core *core, hf_waiter *waiter); /* its call does not wait any more */
/* Answers one call: the update has reached this stage. */
void hf_update_tell(hf_core *core, hf_call *call, const hf_run *run, hf_str id, int32_t stage,
                    const hf_pb_outcome *outcome, bool is_new);
void hf_update_refuse(hf_core *core, hf_call *call, hf_status status, const char *why);
void hf_update_refuse_busy(hf_core *core, hf_call *call, int32_t cause, const char *why);
hf_pb_outcome hf_update_outlived(hf_core *core); /* the run has closed before the update was completed */
/* The outcome of an update that the engine ends itself; in core->scratch. */
hf_pb_outcome hf_update_failure(hf_core *core, const char *type, const char *message);

#endif
