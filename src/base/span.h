/* Checks spans and numbers in a caller's options. The rules of <holdfast/base.h> about them are checked here and
 * nowhere else. */
#ifndef HF_BASE_SPAN_H
#define HF_BASE_SPAN_H

#include "base/op.h"

#include <holdfast/time.h>

/* Values that an option allows beside 0 and values above 0. */
enum {
    HF_MAY_BE_OFF = 1,       /* HF_OFF, HF_SPAN_OFF */
    HF_MAY_BE_UNLIMITED = 2, /* HF_UNLIMITED; every span may be HF_SPAN_UNLIMITED */
    HF_MAY_BE_PAST = 4,      /* spans: any negative one, as a timeout that was computed from a point in time */
    HF_MAY_BE_SHORT = 8      /* spans: less than a millisecond; elsewhere refused, as a number without its unit */
};

/* Refuses a span that the option does not allow. `whose` and `what` name it in the message: "activity 'charge'" and
 * ".start_to_close". Decided by the span alone, so that a replay decides the same. Fails: HF_ERR_INVALID. */
hf_status hf_span_check(hf_op *op, const char *whose, const char *what, hf_span span, int may_be);
/* The same for a number. Fails: HF_ERR_INVALID. */
hf_status hf_number_check(hf_op *op, const char *whose, const char *what, int64_t number, int may_be);

/* Whether hf_span_check with `may_be` 0 accepts the span. */
static inline bool hf_span_is_bound(hf_span span)
{
    return span.ns == 0 || span.ns >= HF_SPAN_NS_MIN;
}

#endif
