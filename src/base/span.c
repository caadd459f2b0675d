#include "base/span.h"

#include "base/base.h"

#define SECONDS_LIKELY INT64_C(100000) /* as seconds more than a day: probably not meant as seconds */

static hf_status check_unit(hf_op *op, const char *whose, const char *what, int64_t ns)
{
    if (ns < SECONDS_LIKELY) {
        return hf_fail_at(op, HF_ERR_INVALID, whose, "%.100s: %s is %lld ns: give it a unit, hf_seconds(%lld)", whose,
                          what, (long long)ns, (long long)ns);
    }
    return hf_fail_at(op, HF_ERR_INVALID, whose, "%.100s: %s is %lld ns: at least a millisecond is needed here", whose,
                      what, (long long)ns);
}

hf_status hf_span_check(hf_op *op, const char *whose, const char *what, hf_span span, int may_be)
{
    if (HF_LIKELY(span.ns == 0 || span.ns >= HF_SPAN_NS_MIN)) {
        return HF_OK;
    }
    if (span.ns > 0) {
        return (may_be & HF_MAY_BE_SHORT) != 0 ? HF_OK : check_unit(op, whose, what, span.ns);
    }
    if ((may_be & HF_MAY_BE_PAST) != 0 || ((may_be & HF_MAY_BE_OFF) != 0 && span.ns == HF_SPAN_OFF.ns)) {
        return HF_OK;
    }
    if ((may_be & HF_MAY_BE_OFF) != 0) {
        return hf_fail_at(op, HF_ERR_INVALID, whose, "%.100s: %s is negative: give a time, or HF_SPAN_OFF", whose,
                          what);
    }
    return hf_fail_at(op, HF_ERR_INVALID, whose, "%.100s: %s is negative: leave it out, or give a time", whose, what);
}

hf_status hf_number_check(hf_op *op, const char *whose, const char *what, int64_t number, int may_be)
{
    static const char *const OTHERS[] = {
        [0] = "",
        [HF_MAY_BE_OFF] = ", or HF_OFF",
        [HF_MAY_BE_UNLIMITED] = ", or HF_UNLIMITED",
        [HF_MAY_BE_OFF | HF_MAY_BE_UNLIMITED] = ", HF_OFF or HF_UNLIMITED",
    };
    if (HF_LIKELY(number >= 0) || ((may_be & HF_MAY_BE_OFF) != 0 && number == HF_OFF) ||
        ((may_be & HF_MAY_BE_UNLIMITED) != 0 && number == HF_UNLIMITED)) {
        return HF_OK;
    }
    return hf_fail_at(op, HF_ERR_INVALID, whose, "%.100s: %s is %lld: give a number above 0%s", whose, what,
                      (long long)number, OTHERS[may_be & (HF_MAY_BE_OFF | HF_MAY_BE_UNLIMITED)]);
}
