/* Spans and points in time. They are three types, so that they cannot be mixed up with each other or with plain
 * numbers. */
#ifndef HOLDFAST_TIME_H
#define HOLDFAST_TIME_H

#include <holdfast/base.h>

/* A length of time: hf_seconds(30). The first member makes the compiler warn of a number without a unit, .timeout =
 * 30, which would be 30 nanoseconds; it is never used. */
typedef union hf_span {
    const struct hf_number_without_a_unit_use_hf_seconds *unit_;
    int64_t ns; /* nanoseconds; base.h says what 0 and negative spans mean in options */
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

/* Helper of the two functions below. Stays at the bounds instead of wrapping. */
static inline hf_span hf_span_until_(int64_t now_ns, int64_t then_ns)
{
    int64_t left = 0;
    if (then_ns == INT64_MAX) {
        return hf_nanoseconds(INT64_MAX);
    }
    if (__builtin_sub_overflow(then_ns, now_ns, &left)) {
        left = then_ns < now_ns ? -INT64_MAX : INT64_MAX;
    }
    if (left <= 0) {
        return hf_nanoseconds(left < 0 ? left : -1);
    }
    left = left < 1000000 ? 1000000 : left;
    return hf_nanoseconds(left < INT64_MAX ? left : INT64_MAX - 1);
}

/* The time from `now` until `then`, for a timeout: .timeout = hf_time_until(hf_wall_now(NULL), due). Never 0,
 * because 0 means no timeout. If `then` has passed, the span is negative: such a wait returns at once. If `then` is
 * less than a millisecond away, the span is a millisecond, the shortest wait of a workflow. Until the last possible
 * point in time it is HF_SPAN_UNLIMITED. */
static inline hf_span hf_time_until(hf_time now, hf_time then)
{
    return hf_span_until_(now.ns, then.ns);
}
static inline hf_span hf_instant_until(hf_instant now, hf_instant then)
{
    return hf_span_until_(now.ns, then.ns);
}

#define HF_SPAN_OFF hf_nanoseconds(-1)
#define HF_SPAN_UNLIMITED hf_nanoseconds(INT64_MAX)

#endif
