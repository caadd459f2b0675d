#include "base/span.h"

#define SECONDS_LIKELY INT64_C(100000) /* more than a day: whoever wrote this number did not mean seconds */

hf_status hf_span_check_unit(hf_op *op, const char *whose, const char *what, hf_span span)
{
    if (HF_LIKELY(span.ns <= 0 || span.ns >= HF_SPAN_NS_MIN)) {
        return HF_OK;
    }
    if (span.ns < SECONDS_LIKELY) {
        return hf_fail_at(op, HF_ERR_INVALID, whose, "%.100s: %s is %lld ns: give it a unit, hf_seconds(%lld)", whose,
                          what, (long long)span.ns, (long long)span.ns);
    }
    return hf_fail_at(op, HF_ERR_INVALID, whose, "%.100s: %s is %lld ns: at least a millisecond is needed here", whose,
                      what, (long long)span.ns);
}

hf_status hf_span_check_bound(hf_op *op, const char *whose, const char *what, hf_span span)
{
    if (span.ns < 0) {
        return hf_fail_at(op, HF_ERR_INVALID, whose, "%.100s: %s is negative: leave it out, or give a time", whose,
                          what);
    }
    return hf_span_check_unit(op, whose, what, span);
}
