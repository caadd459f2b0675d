/* Size limits of users' data. A client's call with too much data is refused. A worker's answer with too much data fails the activity or
 * the workflow task it belongs to, because a worker that is only refused would send it again and again. Such a failure has a type of its own, TooBig. */
#include "engine/size.h"

#include "base/glyph.h"
#include "engine/core_private.h"
#include "history/limits.h"
#include "history/payload.h"

#include <stdio.h>

#define CAUSE_LEN_MAX 1000 /* bytes kept of the message of a failure that is too long */

size_t hf_message_len(hf_core *core, const hf_pb_type *type, const void *msg)
{
    if (msg == NULL) {
        return 0;
    }
    core->row.len = 0;
    hf_pb_encode(type, msg, &core->row);
    if (core->row.status != HF_OK) {
        hf_core_break(core, core->row.status, "out of memory");
    }
    return core->row.len;
}

bool hf_text_is_good(hf_str text)
{
    return text.len <= HF_ID_LEN_MAX && hf_str_is_utf8(text);
}

bool hf_id_is_good(hf_str id)
{
    return id.len > 0 && hf_text_is_good(id);
}

bool hf_fits(hf_core *core, size_t len)
{
    if (len <= core->options.limits.payload_len) {
        return true;
    }
    HF_PROBE(core, HF_PROBE_LIMIT_HIT);
    return false;
}

/* The beginning of a text, at most CAUSE_LEN_MAX bytes, whole characters only. */
static hf_str cut(hf_str text)
{
    size_t len = text.len < CAUSE_LEN_MAX ? text.len : CAUSE_LEN_MAX;
    while (len > 0 && len < text.len && ((unsigned char)text.data[len] & 0xc0) == 0x80) {
        len--;
    }
    return hf_str_of_len(text.data, len);
}

static hf_pb_failure *too_big(hf_core *core, const char *what, size_t len, size_t most, bool non_retryable)
{
    char text[200];
    (void)snprintf(text, sizeof text, "%s: %zu bytes, and at most %zu are taken", what, len, most);
    hf_str message = hf_arena_copy(&core->scratch, hf_str_of(text));
    hf_pb_failure *failure = hf_failure_application(&core->scratch, HF_STR("TooBig"), message, non_retryable);
    if (failure == NULL || message.data == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    return failure;
}

hf_pb_failure *hf_failure_too_big(hf_core *core, const char *what, size_t len)
{
    return too_big(core, what, len, core->options.limits.payload_len, true);
}

bool hf_failure_is_deep(const hf_pb_failure *failure)
{
    int depth = 0;
    for (; failure != NULL && depth <= HF_FAILURE_DEPTH_MAX; failure = failure->cause) {
        depth++;
    }
    return depth > HF_FAILURE_DEPTH_MAX;
}

/* The first causes of a failure that has too many: a copy, because the original is the caller's. */
static hf_pb_failure *cut_causes(hf_core *core, const hf_pb_failure *failure)
{
    HF_PROBE(core, HF_PROBE_LIMIT_HIT);
    hf_pb_failure *first = NULL;
    hf_pb_failure **next = &first;
    for (int depth = 0; depth < HF_FAILURE_DEPTH_MAX; depth++) {
        *next = hf_arena_take(&core->scratch, sizeof *first, _Alignof(hf_pb_failure));
        if (*next == NULL) {
            hf_core_break(core, HF_ERR_NOMEM, "out of memory");
            return NULL;
        }
        **next = *failure;
        (*next)->cause = NULL;
        next = &(*next)->cause;
        failure = failure->cause;
    }
    return first;
}

static hf_pb_failure *cut_failure(hf_core *core, const hf_pb_failure *failure, size_t len, size_t most,
                                  bool non_retryable)
{
    hf_pb_failure *instead = too_big(core, "the failure is too long", len, most, non_retryable);
    if (instead == NULL) {
        return NULL;
    }
    instead->cause =
        hf_failure_application(&core->scratch, cut(hf_failure_type(failure)), cut(failure->message), non_retryable);
    if (instead->cause == NULL) {
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    return instead;
}

const hf_pb_failure *hf_failure_keep(hf_core *core, const hf_pb_failure *failure)
{
    size_t len = hf_message_len(core, &hf_pb_failure_type, failure);
    return len <= HF_FAILURE_KEPT_LEN_MAX ? failure : cut_failure(core, failure, len, HF_FAILURE_KEPT_LEN_MAX, false);
}

hf_pb_failure *hf_failure_fit(hf_core *core, hf_pb_failure *failure)
{
    if (hf_failure_is_deep(failure)) {
        failure = cut_causes(core, failure);
        if (failure == NULL) {
            return NULL;
        }
    }
    size_t len = hf_message_len(core, &hf_pb_failure_type, failure);
    return hf_fits(core, len) ? failure : cut_failure(core, failure, len, core->options.limits.payload_len, true);
}
