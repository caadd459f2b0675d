/* Retry policies, of activities and of workflows: whether one is good, what it leaves out, and what it says after a failure. */
#ifndef HF_ENGINE_RETRY_H
#define HF_ENGINE_RETRY_H

#include "base/arena.h"
#include "base/op.h"
#include "proto/pb.h"

/* NULL is good: there are no retries, or the defaults count. Fails: HF_ERR_INVALID. */
hf_status hf_retry_check(hf_op *op, const hf_pb_retry_policy *policy);
/* A copy that leaves nothing out; NULL stands for one that leaves everything out. NULL: no memory. */
hf_pb_retry_policy *hf_retry_fill(hf_arena *arena, const hf_pb_retry_policy *given);

/* An attempt that has failed. */
typedef struct hf_retry_case {
    const hf_pb_retry_policy *policy; /* filled */
    const hf_pb_failure *failure;
    int32_t attempt; /* that failed, from 1 */
    bool
        is_workflow; /* then a delay that the failure asks for is bounded by the longest interval, and 0 stands for that */
} hf_retry_case;

/* HF_RETRY_STATE_IN_PROGRESS and the pause (ns) before the next attempt, or why there is none. Whether there is still time for it is the
 * caller's to say. */
int32_t hf_retry_next(const hf_retry_case *c, int64_t *ret_pause);

#endif
