/* Chains: a run that ends may be followed by another one of the same workflow id. The workflow continues as new, is retried after a
 * failure, or has a cron schedule. The next run begins in the same step, so in the same commit, and the event that closes the first
 * one names it.
 *
 * engine-H1  Runs of a chain have one first run, one expiration and one listener; at most one of them is open. A reset puts another run in
 *     the place of one of them, and begins a new expiration (ADR 0018). */
#ifndef HF_ENGINE_MACHINES_CHAIN_H
#define HF_ENGINE_MACHINES_CHAIN_H

#include "engine/core.h"
#include "engine/slot.h"

/* The run that follows a run that closes. */
typedef struct hf_next {
    int32_t initiator; /* hf_pb_continue_as_new_initiator; 0 = nothing follows */
    int64_t pause;     /* ns before its first workflow task */
    hf_run *run;       /* once it is reserved */
    hf_str run_id;     /* the same; in the scratch */
} hf_next;

/* Whether the end of the run may lead to another one by itself: it has a retry policy or a cron schedule. Whoever closes it then gives
 * its first event to the functions below. */
bool hf_chain_may_go_on(hf_core *core, const hf_run *run);
/* All that is needed to say what follows: the first event and the rules of a schedule's time zone. False: the call waits for it, or has
 * failed; the deadline waits. For a deadline of a run whose first event cannot be read *ret_first stays empty. */
bool hf_chain_ready_for_call(hf_core *core, hf_call *call, hf_run *run, hf_pb_history_event *ret_first);
bool hf_chain_ready_for_due(hf_core *core, hf_run *run, hf_pb_history_event *ret_first);
/* What follows a failure (RetryState), a success. *ret_next is filled. */
int32_t hf_chain_after_failure(hf_core *core, hf_run *run, const hf_pb_failure *failure, hf_next *ret_next);
void hf_chain_after_success(hf_core *core, hf_run *run, hf_next *ret_next);
/* The next run gets its number and its id, if there is one to come. The run that closes names it in its last event. */
void hf_chain_reserve(hf_core *core, const hf_run *run, hf_next *next);
/* It begins. `first` is the first event of the run before; a retry or a cron schedule repeats it. After a success `result` is that of
 * the run before, which may be NULL; after a failure the last result is that which the run before had. */
void hf_chain_repeat_success(hf_core *core, const hf_run *run, const hf_next *next, const hf_pb_history_event *first,
                             hf_pb_payloads *result);
void hf_chain_repeat_failure(hf_core *core, const hf_run *run, const hf_next *next, const hf_pb_history_event *first,
                             hf_pb_failure *failure);
/* It begins as the command says. */
void hf_chain_continue(hf_core *core, const hf_run *run, const hf_next *next,
                       const hf_pb_continue_as_new_workflow_execution_command_attributes *attrs);

#endif
