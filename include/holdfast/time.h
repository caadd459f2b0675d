/* Spans and points in time. Three types, so that they cannot be mixed, nor be numbers without a unit. */
#ifndef HOLDFAST_TIME_H
#define HOLDFAST_TIME_H

#include <holdfast/base.h>

/* A length of time: hf_seconds(30). The first member makes the compiler warn of a number without a unit, .timeout = 30, which
 * would be 30 nanoseconds; it is never used. */
typedef union hf_span {
    const struct hf_number_without_a_unit_use_hf_seconds *unit_;
    int64_t ns; /* nanoseconds; in options 0 = the default, HF_SPAN_OFF and HF_SPAN_UNLIMITED are explicit */
} hf_span;

typedef struct hf_time {
    int64_t ns; /* wall clock: nanoseconds since 1970-01-01 UTC */
} hf_time;

typedef struct hf_instant {
    int64_t ns; /* monotonic clock of the runtime's environment; only differences mean something */
} hf_instant;

static inline hf_span hf_nanoseconds(int64_t count)
{
    hf_span span;
    span.ns = count;
    return span;
}

/* Multiplies and stays at the bounds instead of wrapping. */
static inline hf_span hf_span_times_(int64_t count, int64_t unit_ns)
{
    if (count > INT64_MAX / unit_ns) {
        return hf_nanoseconds(INT64_MAX);
    }
    if (count < -(INT64_MAX / unit_ns)) {
        return hf_nanoseconds(-INT64_MAX);
    }
    return hf_nanoseconds(count * unit_ns);
}

static inline hf_span hf_microseconds(int64_t count)
{
    return hf_span_times_(count, 1000);
}

static inline hf_span hf_milliseconds(int64_t count)
{
    return hf_span_times_(count, 1000000);
}

static inline hf_span hf_seconds(int64_t count)
{
    return hf_span_times_(count, 1000000000);
}

static inline hf_span hf_minutes(int64_t count)
{
    return hf_span_times_(count, INT64_C(60) * 1000000000);
}

static inline hf_span hf_hours(int64_t count)
{
    return hf_span_times_(count, INT64_C(3600) * 1000000000);
}

static inline hf_span hf_days(int64_t count)
{
    return hf_span_times_(count, INT64_C(86400) * 1000000000);
}

#define HF_SPAN_OFF hf_nanoseconds(-1)
#define HF_SPAN_UNLIMITED hf_nanoseconds(INT64_MAX)

#endif
