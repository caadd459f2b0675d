/* Spans that a caller gave, before they are used. */
#ifndef HF_BASE_SPAN_H
#define HF_BASE_SPAN_H

#include "base/op.h"

#include <holdfast/time.h>

/* Refuses a span above 0 and under a millisecond, which is a number without its unit: `whose` and `what` name it in the
 * sentence, "activity 'charge'" and ".start_to_close". Decided by the span alone. Fails: HF_ERR_INVALID. */
hf_status hf_span_check_unit(hf_op *op, const char *whose, const char *what, hf_span span);
/* Whether the next one has nothing to refuse. */
static inline bool hf_span_is_bound(hf_span span)
{
    return span.ns == 0 || span.ns >= HF_SPAN_NS_MIN;
}
/* The same for a bound for which 0 means the default or none: a negative one is refused, too. */
hf_status hf_span_check_bound(hf_op *op, const char *whose, const char *what, hf_span span);

#endif
