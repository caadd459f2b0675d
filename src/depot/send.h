/* A write on its way to the origin: what send.c, which starts it, and answer.c, which takes the answer, share. */
#ifndef HF_DEPOT_SEND_H
#define HF_DEPOT_SEND_H

#include "depot/driven.h"
#include "depot/fetching.h"
#include "depot/outbox.h"

struct hf_sending {
    hf_work work;
    hf_depot *depot;
    hf_depot_slot *slot; /* held */
    hf_pending *row;
    hf_reply reply;
    hf_push_request request;
    uint64_t began;                      /* depot->stir, when it began */
    uint64_t voids, hard_voids;          /* of the slot, when it began */
    uint64_t generation, generation_all; /* the same */
    unsigned origin;
    bool is_probe;
    bool was_denied;
    hf_post sent;
    hf_status status;
    hf_failure_box *failure;
    hf_reply_class why;
    int64_t pause; /* before the next attempt; 0 = not decided */
};

/* The base after the origin has told its value. `value` NULL: it was deleted. What it told may be from before an
 * invalidation that came while the write was on its way (DP3): `is_void`, `is_hard`, and the generations of the moment
 * when the send began. */
void hf_answer_set_base(hf_depot *depot, const hf_sending *one, const hf_depot_slot *slot, hf_depot_entry *next,
                        hf_value *value, bool is_void, bool is_hard);
/* By the driver: the origin has answered, or not. */
void hf_sending_answered(hf_depot *depot, hf_post *post);

/* ---- driven.c: by the driver ------------------------------------------------------------------------------------- */

/* In place of hf_depot_look_at_sends, while sends are driven. */
void hf_driven_look(hf_depot *depot, hf_depot_slot *slot);
/* Whether somebody waits for it, or the depot sends by itself. */
bool hf_driven_may_send(hf_depot *depot, const hf_depot_slot *slot);
/* What a report says of a send that has ended; `end` is FAILED, and `has_more` is not known yet. */
hf_send_report hf_driven_report(const hf_sending *one);
/* Those who wait for it hear of it. */
void hf_driven_tell(hf_depot *depot, hf_depot_slot *slot, hf_send_report report);

#endif
