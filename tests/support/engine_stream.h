/* Steps about streams and changes, for the rig:
 *
 *     complete, heartbeat  publish=TEXT+TEXT... size=BYTES (of each) rid=ID (of the request)
 *     stream ID            from=N wait max=N bytes=N run_id=R ns=N as=SLOT timeout=SPAN; in slot "s"
 *
 *     changes              wait max=N ns=N as=SLOT; goes on where the last one ended; in slot "c"
 *     queues               page=N ns=N as=SLOT; in slot "tq"
 *
 * says=TEXT compares "NUMBER:TEXT" of each record, joined by '+', then "/NEXT", "." at the end of the stream and "!" at a gap. */
#ifndef HF_TESTS_ENGINE_STREAM_H
#define HF_TESTS_ENGINE_STREAM_H

#include "support/engine_rig.h"
#include "support/engine_words.h"

hf_pb_stream_record_list hf_words_records(hf_arena *arena, const hf_words *w);
/* The slot of one of these steps; NULL = another step. */
hf_rig_call *hf_rig_stream(hf_rig *rig, const hf_words *w);
/* What such a call answered. False: the call is another one, or has failed. */
bool hf_rig_stream_text(const hf_rig_call *slot, hf_buf *out);

#endif
