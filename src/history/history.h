/* Histories: a run's events as bytes and as JSON, and the names of events.
 *
 * The bytes are those of temporal.api.history.v1.History: one field number 1 for each event, so that histories are put
 * together by putting bytes together. */
#ifndef HF_HISTORY_HISTORY_H
#define HF_HISTORY_HISTORY_H

#include "history/payload.h"

/* Appends {"events":[...]}, in proto3's JSON. `readable`: payloads that are JSON have it once more as it is, "json", beside "data"
 * in base64; that is for people, and no other program need understand it. Memory comes from where the buffer's does; what is needed at a time is
 * one event. On failure part of the text may have been written.
 * Fails: HF_ERR_INVALID (malformed bytes, a time out of range), the buffer's status. */
hf_status hf_history_to_json(hf_op *op, hf_str history_bytes, bool readable, hf_buf *out);

/* For hf_pb_json_write_more: what `readable` adds to a payload. */
void hf_history_put_readable(const hf_pb_type *type, const void *msg, hf_buf *out);

/* Takes the next event's bytes off `*rest`; other fields are passed over. False at the end, and when what follows is
 * malformed: rest->data is NULL then. */
bool hf_history_next(hf_str *rest, hf_str *ret_event_bytes);

/* "TimerStarted" for HF_EVENT_TYPE_TIMER_STARTED; "Unknown" for a number without a name. */
const char *hf_event_name(int32_t event_type);

#endif
