/* How many calls a second each namespace may make.
 *
 * Of each namespace only the time is kept until which its calls so far have used up its rate: it moves on by 1/rate with each call, and
 * a call is refused while it is more than a burst ahead of now. Namespaces whose time is in the past need not be remembered, so a table of
 * fixed size is enough.
 *
 * server-R1  In any stretch of t seconds a namespace makes at most burst + t * rate calls. */
#ifndef HF_SERVER_RATE_H
#define HF_SERVER_RATE_H

#include "base/env.h"
#include "base/siphash.h"
#include "base/spin.h"
#include "base/str.h"

enum { HF_RATES_MAX = 16, HF_RATE_SETS = 1024, HF_RATE_WAYS = 4 };

/* The rate of one namespace, or of all others. */
typedef struct hf_rate {
    const char *namespace_; /* NULL = all that have none of their own; lives as long as the door */
    int64_t per_second;     /* 0 = no limit */
} hf_rate;

typedef struct hf_rates hf_rates;

/* NULL: out of memory. A namespace may make as many calls at once as it may make in a second. */
hf_rates *hf_rates_new(hf_env *env, const hf_rate *rates, int count);
void hf_rates_free(hf_rates *rates); /* accepts NULL */
/* Counts a call. False: the namespace is over its rate. From any thread. */
bool hf_rates_take(hf_rates *rates, hf_str namespace_, int64_t now_ns);

#endif
