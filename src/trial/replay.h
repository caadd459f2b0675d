/* Replays recorded histories with the code of today (`holdfast replay`). */
#ifndef HF_TRIAL_REPLAY_H
#define HF_TRIAL_REPLAY_H

#include "base/limits.h"
#include "base/op.h"
#include "base/str.h"

#include <holdfast/worker.h>

enum { HF_REPLAY_TYPE_LEN = 256 };

typedef struct hf_replay_result {
    char type[HF_REPLAY_TYPE_LEN]; /* of the workflow; cut */
    size_t event_count;
    bool is_known;                /* the worker has a workflow of this type; else nothing was replayed */
    bool is_same;                 /* its code does what the history says */
    char why[HF_MESSAGE_LEN_MAX]; /* why not: the event, what the history has and what the code made */
} hf_replay_result;

/* Replays the bytes of a History. `add` adds workflows to the worker. Not on a fiber. Fails: HF_ERR_INVALID (these are not the bytes of a
 * history that begins with its start), what `add` returns, as hf_worker_new. */
hf_status hf_replay(hf_str history, hf_status (*add)(void *state, hf_worker *worker), void *state,
                    hf_replay_result *ret_result);

#endif
