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

/* ---- memo_kept.c ------------------------------------------------------------------------------------------------- */

enum { HF_MEMO_MARK_LEN = 64 };

/* Where the answer of an attempt is kept; its id is known. */
hf_memo_place hf_memo_place_of(const hf_activity_work *act);
/* A payload, or a failure, as bytes; NULL = no memory. */
hf_value *hf_memo_pack(hf_allocator memory, hf_payload payload);
hf_value *hf_memo_pack_failure(hf_allocator memory, const hf_pb_failure *failure);
/* The payload, with a mark in its metadata unless `mark` is NULL. Fails: HF_ERR_NOMEM; HF_ERR_INVALID: these bytes are not
 * an answer. */
hf_status hf_memo_unpack(hf_worker *worker, const hf_value *value, const char *mark, hf_payload *ret_payload);
/* The failure in the arena; NULL: there is none (`value` may be NULL), or no memory. */
hf_pb_failure *hf_memo_unpack_failure(hf_arena *arena, const hf_value *value);
/* "hit, age 12 s". */
void hf_memo_mark_of_hit(hf_span age, char mark[HF_MEMO_MARK_LEN]);
/* HF_ERR_NOMEM as the end of an attempt. */
hf_status hf_memo_no_memory(hf_activity_work *act, hf_pb_failure **ret_failure);

#endif
