/* Events of a run that are in rows, for inputs that need one of them to decide: the first for the next run of a chain, the last for a
 * parent, an old update's outcome.
 *
 * An input asks before it has changed anything. If the event is not in memory the input waits, and so do all later calls of that run, in
 * order; nobody else does. When the row is here the input is decided anew, on the run as it is by then: events never change.
 *
 * engine-N1  A call that waits for an event is the first of its run's waiting calls.
 * engine-N2  An event that was fetched is kept until the inputs that waited for it have had their turn. */
#ifndef HF_ENGINE_FETCH_H
#define HF_ENGINE_FETCH_H

#include "engine/load.h"

typedef enum hf_fetch {
    HF_FETCH_HERE,
    HF_FETCH_COMING, /* it is being read: decide again later */
    HF_FETCH_LOST    /* its row cannot be read */
} hf_fetch;

/* The event as a message whose texts live until the end of the input. It is of this type, else it counts as lost: a row may hold any
 * bytes. HF_EVENT_TYPE_UNSPECIFIED: of any type that fits its attributes. */
hf_fetch hf_event_get(hf_core *core, hf_run *run, int64_t event_id, int32_t event_type, hf_pb_history_event *ret_event);
/* The same for a call. False: the call waits, or has failed; its caller returns. */
bool hf_event_for_call(hf_core *core, hf_call *call, hf_run *run, int64_t event_id, int32_t event_type,
                       hf_pb_history_event *ret_event);
/* The same for a deadline: it fires again when the event is here. False: it waits. *ret_is_lost: there is no such event to be had. */
bool hf_event_for_due(hf_core *core, hf_run *run, int64_t event_id, int32_t event_type, hf_pb_history_event *ret_event,
                      bool *ret_is_lost);

#define HF_FETCH_ZONE (-1) /* of hf_slot.fetch_id: the rules of a time zone (zone.h) */

/* The event that the run waited for is here: its inputs are decided now. */
void hf_fetch_go_on(hf_core *core, hf_run *run);
void hf_fetch_done(hf_core *core, hf_read *read);
/* Its row cannot be read; core->op says why. */
void hf_fetch_failed(hf_core *core, hf_read *read);

#endif
