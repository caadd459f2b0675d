/* Spans and points in time. Three one-field structs, so that they cannot be mixed. */
#ifndef HOLDFAST_TIME_H
#define HOLDFAST_TIME_H

#include <holdfast/base.h>

typedef struct hf_span {
    int64_t ns; /* a length of time; in options 0 = the default, HF_SPAN_OFF and HF_SPAN_UNLIMITED are explicit */
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
