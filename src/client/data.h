/* Converts the users' data: hf_payload and hf_failure on one side, the structs of the wire on the other. */
#ifndef HF_CLIENT_DATA_H
#define HF_CLIENT_DATA_H

#include "base/arena.h"
#include "base/list.h"
#include "base/uuid.h"
#include "fiber/fail.h"
#include "proto/pb.h"

#include <holdfast/json.h>
#include <holdfast/payload.h>

/* The payloads that a workflow's fibers own, so that they go with the run. */
typedef struct hf_payload_bag {
    hf_list boxes;
    size_t bytes; /* of all of them */
} hf_payload_bag;
/* From now on `find` returns the owner of the payloads that the running fiber makes: the bag of a workflow's run, or
 * NULL for the fiber itself. There is one such function in a process, the worker's. Any thread may call this,
 * repeatedly. */
void hf_payload_bag_find_with(hf_payload_bag *(*find)(void));
/* Frees all payloads of the bag. */
void hf_payload_bag_free(hf_payload_bag *kept);

/* Checks a text that a caller of `verb` gave: NULL, which is the default, or of `min` to `max` bytes. `what` names it
 * in the message. Fails: HF_ERR_INVALID. */
hf_status hf_text_check(hf_op *op, const char *verb, const char *what, const char *text, size_t min, size_t max);
/* Whether a payload can be sent: its bytes are there (HF_ERR_MISUSE), and are no more than the service takes
 * (HF_ERR_TOO_BIG). Called before anything is copied. Decided by the payload and history/limits.h alone, so that a
 * replay decides the same. `what` names the payload in the message. */
hf_status hf_payload_check(hf_op *op, const char *what, hf_payload payload);
/* The same for the result of a function, and whether its memory is still valid (HF_ERR_MISUSE): it must be the
 * library's, static, or part of the function's input. A buffer on the stack or from malloc is refused without reading
 * it. */
hf_status hf_payload_check_result(hf_op *op, const char *what, hf_payload result, hf_payload in);
/* A list of one, in the arena, with a copy of the bytes; NULL for no payload at all, or out of memory
 * (arena->status). */
hf_pb_payloads *hf_payload_encode(hf_arena *arena, hf_payload payload);
/* The first payload of the list as a copy for the caller, kept in `keep` unless that is NULL. `ret_payload` may be
 * NULL.
 * Fails: HF_ERR_NOMEM. */
hf_status hf_payload_decode(const hf_pb_payloads *payloads, hf_payload_bag *keep, hf_payload *ret_payload);
/* The same, borrowed from the decoded message; the name of the encoding is copied into the arena. */
hf_payload hf_payload_view(hf_arena *arena, const hf_pb_payloads *payloads);

/* The chain of failures as messages, in the arena; `failure` NULL: a failure that has only the status. A link that came
 * as a message is that message again. NULL when out of memory. */
hf_pb_failure *hf_failure_encode(hf_arena *arena, const hf_failure *failure, hf_status status);
/* Makes this chain the last failure of the running fiber or thread; its first link gets this type. Returns status. */
hf_status hf_failure_raise(hf_status status, const char *type, const hf_pb_failure *failure);
/* The same for a failure of a workflow: with the failure's own type. If the failure has a status of the program's own,
 * hf_error() has that status instead of the one that is returned. `failure` may be NULL. */
hf_status hf_failure_raise_of(hf_status status, const hf_pb_failure *failure);
/* Whether hf_error() has all of this chain: else there was no memory for a part of it. */
bool hf_failure_is_whole(const hf_pb_failure *failure);
/* The details of one link; NULL = it has none. */
const hf_pb_payloads *hf_failure_details_of(const hf_pb_failure *failure);
/* As workflows were told, and told others, before HF_WF_RULE_FAILURES: types of 47 bytes, messages of 479, 7 causes, and
 * every link an application failure. Only fibers. */
hf_pb_failure *hf_failure_encode_flat(hf_arena *arena, const hf_failure *failure, hf_status status);
hf_status hf_failure_raise_flat(hf_status status, const char *type, hf_str message, const hf_pb_failure *cause);

/* The type of a failure: the word that its program gave, or what kind of failure it is. */
hf_str hf_failure_type_word(const hf_pb_failure *failure);

/* Hands an operation's error record to the running fiber or thread. */
hf_status hf_failure_raise_op(const hf_op *op);

/* The value of a field as JSON, in the arena. Fails: HF_ERR_INVALID, HF_ERR_MISUSE: its kind is unknown; HF_ERR_NOMEM. */
hf_status hf_field_encode(hf_op *op, const char *verb, const hf_field *field, hf_arena *arena, hf_str *ret_json);

/* A bound for a message: the field is left out for 0, which is the default, and for HF_SPAN_UNLIMITED. */
static inline hf_pb_duration hf_duration_of_bound(hf_span span)
{
    return span.ns > 0 && span.ns != INT64_MAX ? hf_pb_duration_of(span) : (hf_pb_duration){0};
}

/* A random id in the form of a UUID, HF_UUID_LEN bytes. Fails: HF_ERR_IO. */
hf_status hf_uuid_make(hf_runtime *rt, char *ret_text);

#endif
