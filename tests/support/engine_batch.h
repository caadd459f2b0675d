/* Steps about operations on many runs, for the rig:
 *
 *     batch ID            op=terminate|cancel|signal|delete|reset|options|unpause|areset|aoptions query=FILTER ('_' for a space) or
 *                         ids=A+B reason=R rate=N ns=N; identity=I with terminate, `first` with a reset, type=T with activities
 *     batchstop ID        reason=R ns=N
 *     batchshow ID        ns=N
 *     batches             page=N ns=N; `more` goes on behind the page before
 *     nsdelete NAME
 *
 * says=TEXT compares "STATE:COMPLETE/FAILED/TOTAL" of batchshow; of batches their ids with a '*' behind those that have ended, joined by '+'. */
#ifndef HF_TESTS_ENGINE_BATCH_H
#define HF_TESTS_ENGINE_BATCH_H

#include "support/engine_rig.h"
#include "support/engine_words.h"

/* False: it is another step. */
bool hf_rig_batch(hf_rig *rig, hf_rig_call *slot, const hf_words *w);
/* What such a call answered. False: the call is another one. */
bool hf_rig_batch_text(const hf_rig_call *slot, hf_buf *out);

#endif
