/* hf_memo: where the answers of an activity are kept, so that equal inputs are answered without running it again.
 * hf_depot_memo (depot.h) makes one, and hf_worker_add_activity takes it:
 *
 *     HF_TRY(hf_worker_add_activity(worker, "geocode", geocode, .memo = hf_depot_memo(answers, .ttl = hf_hours(24))));
 *
 * An attempt whose answer is at hand gets it, and the function is not called. Attempts with equal input, of whichever
 * workflow, share one call of the function: see "With workflows" in docs/guide/depot.md for what such a call sees of
 * heartbeats, timeouts and cancels. Failures are not kept. */
#ifndef HOLDFAST_MEMO_H
#define HOLDFAST_MEMO_H

#include <holdfast/payload.h>
#include <holdfast/time.h>

#define HF_MEMO_NAME "holdfast-memo" /* key of a result's metadata: "hit, age 12 s", or "shared" */

/* Which inputs are equal: those for which it gives the same bytes. `*ret_key` is set as the result of an activity is
 * (payload.h). It is called on the threads of fibers and must be short. A failure fails the attempt. */
typedef hf_status (*hf_memo_key)(hf_payload in, hf_payload *ret_key);

/* Made by hf_depot_memo; the fields are the library's. */
typedef struct hf_memo {
    const struct hf_memo_ops *ops; /* NULL = answers are not kept */
    void *state;
    const char *ns;
    hf_span ttl;
    hf_memo_key key;
} hf_memo;

#endif
