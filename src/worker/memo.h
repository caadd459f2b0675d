/* Activities with a memo: their answers are kept, and attempts with equal input share one call of the function.
 *
 *     attempt: a fiber with scope, timeouts and heartbeats of its own ----+
 *     attempt of another run, with equal input ---------------------------+--> body: one call of the function, a fiber and an
 *     attempt of another worker of this runtime --------------------------+    hf_activity_work of its own, without a task
 *
 * An attempt looks for a kept answer, joins the body of its key, or begins one. It waits inside its own scope, so timeouts,
 * cancels and heartbeats are those of each attempt; the body has none. What the body says (heartbeats, its end) each
 * attempt repeats to the service for itself.
 *
 * worker-M1  At most one body of a key can be joined. It can be until it has ended, or its last attempt has left it.
 * worker-M2  A body has an attempt that waits for it, from its beginning to its end: the last one that leaves cancels it and
 *     stays until it has ended. So bodies need no slots of their own, and an attempt that shares with nobody behaves as one without a
 *     memo.
 * worker-M3  A body looks for the kept answer once more before it runs, and leaves the table after its answer is kept. So a
 *     function runs once for equal inputs, whenever they come.
 *
 * The place that keeps the answers is behind hf_memo_ops: the worker does not know it (src/open has one for depots). */
#ifndef HF_WORKER_MEMO_H
#define HF_WORKER_MEMO_H

#include "base/op.h"
#include "base/str.h"

#include <holdfast/keyed.h>
#include <holdfast/memo.h>

/* Where an answer is kept. */
typedef struct hf_memo_place {
    const char *type; /* name of the activity */
    hf_str id;        /* 1 to HF_MEMO_ID_LEN_MAX bytes */
} hf_memo_place;

enum { HF_MEMO_ID_LEN_MAX = 1000, HF_MEMO_TYPE_LEN_MAX = 100 };

typedef struct hf_memo_ops hf_memo_ops;
struct hf_memo_ops {
    /* Whether the memo can be used for the activity `type`. Fails: HF_ERR_INVALID, HF_ERR_MISUSE. */
    hf_status (*check)(hf_op *op, const hf_memo *memo, const char *type);
    /* Whether a usable answer is at hand without waiting; `*ret_value` is a reference. */
    bool (*peek)(const hf_memo *memo, const hf_memo_place *place, hf_value **ret_value, hf_span *ret_age);
    /* The same, and waits for it. Without one `*ret_value` is NULL, and `*ret_ticket` is ended by one of the next two.
     * Fails: HF_ERR_CANCELED; any other status: it cannot be kept, and the function is called all the same. */
    hf_status (*begin)(const hf_memo *memo, const hf_memo_place *place, hf_value **ret_value, hf_span *ret_age,
                       void **ret_ticket);
    void (*keep)(const hf_memo *memo, void *ticket, const void *data, size_t len);
    void (*drop)(const hf_memo *memo, void *ticket);
};

#endif
