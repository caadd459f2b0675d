#include "depot/rules.h"

#include "base/canary.h"

static const int64_t SECOND = 1000000000;

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

#define SERVE HF_MOVE_SERVE
#define REFRESH HF_MOVE_SERVE_REFRESH
#define FETCH HF_MOVE_FETCH
#define NOT_FOUND HF_MOVE_NOT_FOUND
#define UNAVAILABLE HF_MOVE_UNAVAILABLE

/* WITHIN: the column for a value that is too old; one that is not is served. */
static const hf_move MOVES[HF_LOCAL_COUNT][5] = {
    /*                      CACHED     WITHIN     NOW        OR_STALE   LOCAL */
    [HF_LOCAL_NONE] = {FETCH, FETCH, FETCH, FETCH, NOT_FOUND},
    [HF_LOCAL_FRESH] = {SERVE, FETCH, FETCH, FETCH, SERVE},
    [HF_LOCAL_STALE] = {REFRESH, FETCH, FETCH, FETCH, SERVE},
    [HF_LOCAL_UNUSABLE] = {FETCH, FETCH, FETCH, FETCH, NOT_FOUND},
    [HF_LOCAL_ABSENT] = {NOT_FOUND, NOT_FOUND, FETCH, FETCH, NOT_FOUND},
    [HF_LOCAL_DELETED] = {NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND},
};

static bool is_value(hf_at_hand local)
{
    return local == HF_LOCAL_FRESH || local == HF_LOCAL_STALE;
}

static bool is_within_stale(const hf_ask_rule *ask, const hf_look_at *at)
{
    return (is_value(at->local) || at->local == HF_LOCAL_UNUSABLE) && at->age <= ask->stale_max &&
           (!at->is_ahead || ask->stale_max == INT64_MAX);
}

/* The origin is not asked: what is at hand, if it would do. */
static hf_move without_origin(const hf_ask_rule *ask, const hf_look_at *at)
{
    switch (ask->fresh) {
    case HF_FRESH_CACHED:
        return is_value(at->local) ? SERVE : UNAVAILABLE;
    case HF_FRESH_OR_STALE:
        return is_within_stale(ask, at) ? SERVE : UNAVAILABLE;
    case HF_FRESH_WITHIN:
    case HF_FRESH_NOW:
    case HF_FRESH_LOCAL:
        break;
    }
    return UNAVAILABLE;
}

hf_move hf_rule_get(const hf_ask_rule *ask, const hf_look_at *at)
{
    hf_assert((unsigned)at->local < HF_LOCAL_COUNT && (unsigned)ask->fresh <= HF_FRESH_LOCAL);
    hf_move move = MOVES[at->local][ask->fresh];
    if (at->is_pending && is_value(at->local) && ask->fresh != HF_FRESH_NOW) {
        return SERVE;
    }
    if (ask->fresh == HF_FRESH_WITHIN && is_value(at->local) && at->age <= ask->within && !at->is_ahead) {
        return SERVE;
    }
    if (at->is_blocked && move == FETCH) {
        return without_origin(ask, at);
    }
    return at->is_blocked && move == REFRESH ? SERVE : move;
}

bool hf_rule_serves_stale(const hf_ask_rule *ask, const hf_look_at *at, hf_reply_class why)
{
    return ask->fresh == HF_FRESH_OR_STALE && hf_class_info_of(why)->serves_stale && is_within_stale(ask, at);
}

int64_t hf_rule_age(int64_t now, int64_t validated_at)
{
    return now > validated_at ? now - validated_at : 0;
}

bool hf_rule_is_ahead(int64_t now, int64_t validated_at)
{
    return validated_at > now && validated_at - now > HF_DEPOT_AHEAD_MAX;
}

bool hf_rule_is_fresh(int64_t now, int64_t validated_at, int64_t ttl)
{
    if (hf_rule_is_ahead(now, validated_at)) {
        return false;
    }
    return hf_rule_age(now, validated_at) <= ttl && ttl > 0;
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

static const hf_class_info CLASSES[] = {
    [HF_REPLY_UNKNOWN] = {"unknown", HF_ERR_FAILED, true, true, true},
    [HF_REPLY_TIMEOUT] = {"timeout", HF_ERR_TIMEOUT, true, true, true},
    [HF_REPLY_NETWORK] = {"network", HF_ERR_IO, true, true, true},
    [HF_REPLY_ORIGIN] = {"origin", HF_ERR_UNAVAILABLE, true, true, true},
    [HF_REPLY_TLS] = {"tls", HF_ERR_IO, false, true, true},
    [HF_REPLY_NOT_FOUND] = {"not_found", HF_ERR_NOT_FOUND, false, false, false},
    [HF_REPLY_DENIED] = {"denied", HF_ERR_DENIED, false, false, false},
    [HF_REPLY_INVALID] = {"invalid", HF_ERR_INVALID, false, false, false},
    [HF_REPLY_CONVERTER] = {"converter", HF_ERR_INVALID, false, false, false},
};

const hf_class_info *hf_class_info_of(hf_reply_class reply_class)
{
    return &CLASSES[(unsigned)reply_class < HF_COUNT_OF(CLASSES) ? reply_class : HF_REPLY_UNKNOWN];
}

hf_reply_class hf_class_of_status(hf_status status)
{
    static const struct {
        hf_status status;
        hf_reply_class reply_class;
    } TABLE[] = {
        {HF_ERR_TIMEOUT, HF_REPLY_TIMEOUT},     {HF_ERR_IO, HF_REPLY_NETWORK},
        {HF_ERR_RESET, HF_REPLY_NETWORK},       {HF_ERR_REFUSED, HF_REPLY_NETWORK},
        {HF_ERR_CLOSED, HF_REPLY_NETWORK},      {HF_ERR_UNAVAILABLE, HF_REPLY_ORIGIN},
        {HF_ERR_NOT_FOUND, HF_REPLY_NOT_FOUND}, {HF_ERR_DENIED, HF_REPLY_DENIED},
        {HF_ERR_INVALID, HF_REPLY_INVALID},     {HF_ERR_TOO_BIG, HF_REPLY_INVALID},
        {HF_ERR_MISUSE, HF_REPLY_INVALID},      {HF_ERR_UNSUPPORTED, HF_REPLY_INVALID},
    };
    for (size_t i = 0; i < HF_COUNT_OF(TABLE); i++) {
        if (TABLE[i].status == status) {
            return TABLE[i].reply_class;
        }
    }
    return HF_REPLY_UNKNOWN;
}

hf_reply_class hf_class_of_http(int http_status)
{
    switch (http_status) {
    case 404:
    case 410:
        return HF_REPLY_NOT_FOUND;
    case 401:
    case 403:
        return HF_REPLY_DENIED;
    case 408:
        return HF_REPLY_TIMEOUT;
    case 429:
        return HF_REPLY_ORIGIN;
    default:
        break;
    }
    return http_status >= 500 ? HF_REPLY_ORIGIN : http_status >= 400 ? HF_REPLY_INVALID : HF_REPLY_UNKNOWN;
}

double hf_rule_chance(hf_rng *rng)
{
    return (double)hf_rng_below(rng, 1000001) / 1000000.0;
}

/* first x 2^doublings, at most `max`. */
static int64_t doubled(int64_t first, unsigned doublings, int64_t max)
{
    int64_t span = first;
    for (unsigned i = 0; i < doublings && span < max; i++) {
        span *= 2;
    }
    return span < max ? span : max;
}

static int64_t at_least(int64_t pause, int64_t asked)
{
    asked = asked > HF_RETRY_AFTER_MAX ? HF_RETRY_AFTER_MAX : asked;
    return pause > asked ? pause : asked;
}

int64_t hf_rule_retry_pause(int attempt, int64_t retry_after, double chance)
{
    hf_assert(attempt >= 1);
    return at_least((int64_t)((double)doubled(SECOND / 5, (unsigned)attempt - 1, 30 * SECOND) * chance), retry_after);
}

int64_t hf_rule_backoff(uint32_t failures, double chance)
{
    return (int64_t)((double)doubled(SECOND, failures, HF_BACKOFF_MAX) * chance);
}

int64_t hf_rule_send_pause(uint32_t attempts, int64_t retry_after, double chance)
{
    hf_assert(attempts >= 1);
    return at_least((int64_t)((double)doubled(SECOND, attempts - 1, 300 * SECOND) * chance), retry_after);
}

int64_t hf_rule_pause_left(int64_t now, int64_t until)
{
    if (until <= now) {
        return 0;
    }
    uint64_t left = (uint64_t)until - (uint64_t)now;
    return left < (uint64_t)HF_RETRY_AFTER_MAX ? (int64_t)left : HF_RETRY_AFTER_MAX;
}

/* ---- The breaker ------------------------------------------------------------------------------------------------- */

enum { PROBES = 1 };

bool hf_breaker_is_shut(const hf_breaker *breaker, int64_t now, int64_t *ret_wait)
{
    *ret_wait = 0;
    switch (breaker->state) {
    case HF_BREAKER_CLOSED:
        return false;
    case HF_BREAKER_OPEN:
        *ret_wait = breaker->open_until > now ? breaker->open_until - now : 0;
        return *ret_wait > 0;
    case HF_BREAKER_HALF_OPEN:
        return breaker->probes_left == 0;
    }
    return false;
}

bool hf_breaker_ask(hf_breaker *breaker, int64_t now, bool *ret_is_probe)
{
    int64_t wait = 0;
    *ret_is_probe = false;
    if (hf_breaker_is_shut(breaker, now, &wait)) {
        return false;
    }
    if (breaker->state == HF_BREAKER_OPEN) {
        breaker->state = HF_BREAKER_HALF_OPEN;
        breaker->probes_left = PROBES;
    }
    if (breaker->state == HF_BREAKER_HALF_OPEN) {
        hf_assert(breaker->probes_left > 0); /* DP10 */
        breaker->probes_left--;
        *ret_is_probe = true;
    }
    return true;
}

static void open_again(hf_breaker *breaker, int64_t now)
{
    breaker->state = HF_BREAKER_OPEN;
    breaker->open_until = now + HF_BREAKER_OPEN_NS;
    breaker->failures = 0;
    breaker->probes_left = 0;
}

void hf_breaker_tell(hf_breaker *breaker, int64_t now, hf_breaker_end end, bool was_probe)
{
    if (breaker->state == HF_BREAKER_HALF_OPEN && was_probe) {
        switch (end) {
        case HF_BREAKER_ANSWERED:
            *breaker = (hf_breaker){.state = HF_BREAKER_CLOSED};
            break;
        case HF_BREAKER_FAILED:
            open_again(breaker, now);
            break;
        case HF_BREAKER_CANCELED: /* DP10: no permit is lost */
            hf_assert(breaker->probes_left < PROBES);
            breaker->probes_left += !HF_CANARY(HF_BUG_PERMIT_LOST);
            break;
        }
        return;
    }
    if (breaker->state != HF_BREAKER_CLOSED || end == HF_BREAKER_CANCELED) {
        return; /* it began before the breaker opened */
    }
    breaker->failures = end == HF_BREAKER_FAILED ? breaker->failures + 1 : 0;
    if (breaker->failures >= HF_BREAKER_FAILURES) {
        open_again(breaker, now);
    }
}
