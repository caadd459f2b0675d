/* Spans and numbers that a caller gave in options, before they are used: what <holdfast/base.h> says that they mean is
 * checked here and nowhere else. */
#ifndef HF_BASE_SPAN_H
#define HF_BASE_SPAN_H

#include "base/op.h"

#include <holdfast/time.h>

/* What an option takes beside 0 and values above 0. */
enum {
    HF_MAY_BE_OFF = 1,       /* HF_OFF, HF_SPAN_OFF */
    HF_MAY_BE_UNLIMITED = 2, /* HF_UNLIMITED; every span may be HF_SPAN_UNLIMITED */
    HF_MAY_BE_PAST = 4,      /* spans: any negative one, as a timeout that was computed from a point in time */
    HF_MAY_BE_SHORT = 8      /* spans: less than a millisecond, which elsewhere is a number without its unit */
};

/* Refuses a span that the option does not take. `whose` and `what` name it in the sentence: "activity 'charge'" and
 * ".start_to_close". Decided by the span alone, so that a replay decides the same. Fails: HF_ERR_INVALID. */
hf_status hf_span_check(hf_op *op, const char *whose, const char *what, hf_span span, int may_be);
/* The same for a number. Fails: HF_ERR_INVALID. */
hf_status hf_number_check(hf_op *op, const char *whose, const char *what, int64_t number, int may_be);

/* Whether hf_span_check has nothing to refuse, if it takes no negative and no short span. */
static inline bool hf_span_is_bound(hf_span span)
{
    return span.ns == 0 || span.ns >= HF_SPAN_NS_MIN;
}

#endif
