/* The streams of chains (run/stream.h): records are appended, and read by their numbers.
 *
 * A reader names a chain by a run of it and a record by its number. Records of the log, of the rows of that run, or of an earlier run are
 * answered at once; a reader at the end of an open run waits in a watch (history_read.h), and one at the end of a closed run goes on with
 * the run that follows it.
 *
 *     stops of the state:   run 3, from 0      run 7, from 41     this run, from 90
 *                           |- rows of run 3 -|- rows of run 7 --|- its rows -|- its log -|
 *
 * engine-T1  A page holds consecutive records and begins with the one that was asked for, unless that one was deleted.
 * engine-T2  A waiting reader is answered when the batch is sealed that brings the record, and told when it is durable. */
#ifndef HF_ENGINE_STREAM_H
#define HF_ENGINE_STREAM_H

#include "engine/core.h"
#include "engine/load.h"
#include "run/stream.h"

#define HF_STREAM_HOPS_MAX 64 /* closed runs without the record that a call passes; then its caller asks again */

/* Whether these records may be appended to the stream of the run. `is_workflow`: by the answer to a workflow task, which its worker has
 * counted: twice the limit, because activities append meanwhile. False: the op of the core says why. */
bool hf_records_fit(hf_core *core, const hf_run *run, hf_pb_stream_record_list records, bool is_workflow);
/* `request`: hf_request_hash of the caller's id; 0 = none. */
void hf_records_append(hf_core *core, hf_run *run, hf_pb_stream_record_list records, int64_t event_id,
                       uint64_t request);
/* The next run of a chain goes on with the stream of `before`. */
void hf_records_go_on(hf_core *core, const hf_run *before, hf_run *run);

void hf_read_stream_call(hf_core *core, hf_call *call, hf_run *run);
void hf_read_stream_rows(hf_core *core, hf_read *read);
/* The run that it was led to was deleted: nothing follows. */
void hf_read_stream_end(hf_core *core, hf_call *call);
/* Whether a call that waits for a record of this run can go on. */
bool hf_read_stream_has_news(const hf_call *call, const hf_run *run);
/* It has waited long enough. */
void hf_read_stream_expire(hf_core *core, hf_call *call);

#endif
