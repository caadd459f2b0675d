/* What activity.c, heartbeat.c and hung.c need of memo.c. */
#ifndef HF_WORKER_MEMO_PRIVATE_H
#define HF_WORKER_MEMO_PRIVATE_H

#include "worker/activity_private.h"
#include "worker/memo.h"

/* Answers the attempt by what is kept. False: it must work. `*ret_status` is its end, with `*ret_failure` in its arena. */
bool hf_memo_answer(hf_activity_work *act, hf_status *ret_status, hf_pb_failure **ret_failure);
/* In place of the call of the function, inside the attempt's scope: joins a body, or begins one, and waits for its end. */
hf_status hf_memo_share(hf_activity_work *act, hf_pb_failure **ret_failure);

/* On the fiber of a body, or of what it forks: a heartbeat, for each attempt. */
hf_status hf_memo_beat(hf_activity_work *act, hf_payload details);
/* The body does not end although it was canceled: the attempt that waits for it frees its slot. Any thread. The second
 * takes the reference that the first gave, which may be called under a lock. */
hf_memo_body *hf_memo_ref(hf_activity_work *act);
void hf_memo_see_zombie(hf_memo_body *body);

#endif
