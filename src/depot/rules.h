/* What a depot decides: pure functions of an entry, the clock and an event. Nothing here waits, allocates or knows a
 * depot.
 *
 * Times are nanoseconds of the wall clock. */
#ifndef HF_DEPOT_RULES_H
#define HF_DEPOT_RULES_H

#include "base/rng.h"

#include <holdfast/depot.h>

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

typedef enum hf_at_hand {
    HF_LOCAL_NONE,     /* nothing is at hand */
    HF_LOCAL_FRESH,    /* a value whose age is within its ttl */
    HF_LOCAL_STALE,    /* an older one */
    HF_LOCAL_UNUSABLE, /* an invalidated one, kept for its etag and for HF_FRESH_OR_STALE */
    HF_LOCAL_ABSENT,   /* the origin said a moment ago that there is none */
    HF_LOCAL_DELETED,  /* deleted here */
    HF_LOCAL_COUNT
} hf_at_hand;

typedef enum hf_move {
    HF_MOVE_SERVE,         /* what is at hand */
    HF_MOVE_SERVE_REFRESH, /* the same, and a fetch behind the caller's back */
    HF_MOVE_FETCH,         /* wait for a fetch */
    HF_MOVE_NOT_FOUND,     /* HF_ERR_NOT_FOUND */
    HF_MOVE_UNAVAILABLE    /* HF_ERR_UNAVAILABLE */
} hf_move;

typedef struct hf_ask_rule {
    hf_fresh fresh;
    int64_t within;    /* of HF_FRESH_WITHIN */
    int64_t stale_max; /* of HF_FRESH_OR_STALE */
} hf_ask_rule;

/* What is at hand, as the rules see it. */
typedef struct hf_look_at {
    hf_at_hand local;
    int64_t age;     /* of a value */
    bool is_pending; /* it is folded from writes that are not settled */
    bool is_ahead;   /* its stamp is ahead of the clock, which was set back: how old it is cannot be known */
    bool is_blocked; /* the origin is not asked now: back-off, breaker, offline, no fetcher */
} hf_look_at;

/* What a get does with what is at hand: the table of docs/guide/depot.md, "Which freshness do I want?". */
hf_move hf_rule_get(const hf_ask_rule *ask, const hf_look_at *at);
/* After a fetch has failed: whether the value at hand may be served all the same. */
bool hf_rule_serves_stale(const hf_ask_rule *ask, const hf_look_at *at, hf_reply_class why);

/* A delete that the origin has accepted is remembered this long. */
#define HF_TOMBSTONE_NS (INT64_C(7) * 86400 * 1000000000)
/* A stamp this far ahead of the clock is not believed. */
#define HF_DEPOT_AHEAD_MAX (INT64_C(5) * 60 * 1000000000)
int64_t hf_rule_age(int64_t now, int64_t validated_at);
/* ttl: of this value. */
bool hf_rule_is_ahead(int64_t now, int64_t validated_at);
bool hf_rule_is_fresh(int64_t now, int64_t validated_at, int64_t ttl);

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

typedef struct hf_class_info {
    const char *name;
    hf_status status;  /* that hf_reply_fail returns for it */
    bool is_retried;   /* another attempt may help */
    bool counts;       /* against the breaker; the others are answers of an origin that works */
    bool serves_stale; /* HF_FRESH_OR_STALE may serve what is at hand */
} hf_class_info;

const hf_class_info *hf_class_info_of(hf_reply_class reply_class);
hf_reply_class hf_class_of_status(hf_status status);
hf_reply_class hf_class_of_http(int http_status);

/* Pauses. `chance`: 0 to 1, as hf_rule_chance makes it. */
double hf_rule_chance(hf_rng *rng);
#define HF_RETRY_AFTER_MAX (INT64_C(3600) * 1000000000)
/* Before attempt `attempt` + 1 of a fetch, from 1 on: full jitter in [0, min(30 s, 200 ms x 2^(attempt - 1))], or what
 * the origin asked for if that is longer. */
int64_t hf_rule_retry_pause(int attempt, int64_t retry_after, double chance);
/* Of a key, after its `failures`-th failed fetch in a row: min(30 s, 1 s x 2^failures), jittered. */
#define HF_BACKOFF_MAX (INT64_C(30) * 1000000000)
int64_t hf_rule_backoff(uint32_t failures, double chance);
/* Of a write, after `attempts` attempts: 1 s x 2^(attempts - 1), at most 5 min, jittered. */
int64_t hf_rule_send_pause(uint32_t attempts, int64_t retry_after, double chance);
/* What is left of a pause that ends at `until`, by a clock that may have been set since: at most what an origin may ask for. */
int64_t hf_rule_pause_left(int64_t now, int64_t until);

/* ---- The breaker of an origin ------------------------------------------------------------------------------------ */

typedef enum hf_breaker_state { HF_BREAKER_CLOSED, HF_BREAKER_OPEN, HF_BREAKER_HALF_OPEN } hf_breaker_state;

#define HF_BREAKER_FAILURES 3
#define HF_BREAKER_OPEN_NS (INT64_C(30) * 1000000000)

typedef struct hf_breaker {
    hf_breaker_state state;
    int failures;       /* in a row, while closed */
    int64_t open_until; /* monotonic */
    int probes_left;    /* permits of a half-open one */
} hf_breaker;

/* Whether an attempt may go out now; a half-open breaker gives a permit for it. `*ret_is_probe`: it was such a
 * permit. */
bool hf_breaker_ask(hf_breaker *breaker, int64_t now, bool *ret_is_probe);
/* The same without taking a permit; `*ret_wait`: how long it stays shut. */
bool hf_breaker_is_shut(const hf_breaker *breaker, int64_t now, int64_t *ret_wait);
typedef enum hf_breaker_end { HF_BREAKER_ANSWERED, HF_BREAKER_FAILED, HF_BREAKER_CANCELED } hf_breaker_end;
/* A fetch or a send has ended. */
void hf_breaker_tell(hf_breaker *breaker, int64_t now, hf_breaker_end end, bool was_probe);

#endif
