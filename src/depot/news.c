/* News: what happens in the whole depot, for hf_depot_events. A hot flow whose collectors drop the oldest, so the driver
 * never waits for one of them. While nobody has ever asked, news cost one load. */
#include "depot/fetching.h"
#include "depot/hearing.h"
#include "depot/lists.h"
#include "depot/outbox.h"

#include "fiber/sync/flow.h"
#include "fiber/verbs.h"

static const char *const NAMES[] = {
    [HF_NEWS_FETCHED] = "fetched",
    [HF_NEWS_NOT_MODIFIED] = "not modified",
    [HF_NEWS_FETCH_FAILED] = "fetch failed",
    [HF_NEWS_LANDED] = "landed",
    [HF_NEWS_NOT_KEPT] = "not kept",
    [HF_NEWS_SENT] = "sent",
    [HF_NEWS_SETTLED] = "settled",
    [HF_NEWS_SEND_FAILED] = "send failed",
    [HF_NEWS_CONFLICT] = "conflict",
    [HF_NEWS_DEAD] = "dead",
    [HF_NEWS_INVALIDATED] = "invalidated",
    [HF_NEWS_BREAKER_OPEN] = "breaker open",
    [HF_NEWS_BREAKER_CLOSED] = "breaker closed",
    [HF_NEWS_DAMAGED] = "damaged",
};
_Static_assert(HF_COUNT_OF(NAMES) == HF_NEWS_KINDS, "each kind has a name");
_Static_assert(HF_REPLY_CONVERTER + 1 == HF_REPLY_CLASSES, "the last class");

const char *hf_depot_news_name(hf_depot_news_kind kind)
{
    return (unsigned)kind < HF_COUNT_OF(NAMES) ? NAMES[kind] : "?";
}

/* ---- Telling ----------------------------------------------------------------------------------------------------- */

static void copy_name(char *to, const char *from)
{
    size_t len = strlen(from);
    hf_assert(len <= HF_DEPOT_NAME_LEN_MAX); /* a key that was packed */
    memcpy(to, from, len + 1);
}

static void put_key(hf_depot_news *news, hf_str key)
{
    hf_depot_key parts;
    if (hf_depot_key_unpack(key, &parts)) {
        copy_name(news->ns, parts.ns);
        copy_name(news->type, parts.type + hf_page_mark_len(parts.type));
        memcpy(news->id, parts.id, parts.id_len);
        news->id_len = parts.id_len;
    }
}

static bool is_heard(hf_depot *depot)
{
    return atomic_load_explicit(&depot->has_listeners, memory_order_relaxed);
}

static void tell(hf_depot *depot, hf_depot_news *news)
{
    hf_assert((unsigned)news->kind < HF_NEWS_KINDS);
    hf_assert(news->id_len == 0 || news->ns[0] != '\0');
    news->at = (hf_time){hf_depot_wall(depot)};
    hf_flow_tell(depot->events, news);
}

void hf_news_of_key(hf_depot *depot, hf_depot_news_kind kind, hf_str key, hf_status status, hf_reply_class why)
{
    if (is_heard(depot)) {
        hf_depot_news news = {.kind = kind, .status = status, .reply_class = why};
        put_key(&news, key);
        tell(depot, &news);
    }
}

void hf_news_of_row(hf_depot *depot, hf_depot_news_kind kind, const hf_pending *row, hf_status status,
                    hf_reply_class why)
{
    if (is_heard(depot)) {
        hf_depot_news news = {.kind = kind, .status = status, .reply_class = why, .sequence = hf_pending_number(row)};
        put_key(&news, hf_slot_key(row->slot));
        tell(depot, &news);
    }
}

void hf_news_of_space(hf_depot *depot, const hf_space *space)
{
    if (is_heard(depot)) {
        hf_depot_news news = {.kind = HF_NEWS_INVALIDATED};
        if (space != NULL) {
            hf_assert(space->name.len < sizeof news.ns);
            memcpy(news.ns, space->bytes, space->name.len);
        }
        tell(depot, &news);
    }
}

void hf_news_of_flight(hf_depot *depot, const hf_depot_flight *flight, hf_status ended)
{
    bool is_new = ended == HF_OK && flight->reply.value != NULL;
    hf_news_of_key(depot,
                   is_new           ? HF_NEWS_FETCHED
                   : ended == HF_OK ? HF_NEWS_NOT_MODIFIED
                                    : HF_NEWS_FETCH_FAILED,
                   hf_slot_key(flight->slot), ended, ended == HF_OK ? HF_REPLY_UNKNOWN : flight->why);
}

void hf_depot_tell_breaker(hf_depot *depot, unsigned origin, hf_breaker_end end, bool was_probe)
{
    hf_breaker *breaker = &depot->breakers[origin];
    hf_breaker_state before = breaker->state;
    hf_breaker_tell(breaker, hf_rt_now(depot->rt).ns, end, was_probe);
    if (breaker->state == before || !is_heard(depot)) {
        return;
    }
    hf_assert(breaker->state != HF_BREAKER_HALF_OPEN); /* DP10: that comes from asking, not from an end */
    hf_depot_news news = {
        .kind = breaker->state == HF_BREAKER_OPEN ? HF_NEWS_BREAKER_OPEN : HF_NEWS_BREAKER_CLOSED,
        .origin = origin,
    };
    tell(depot, &news);
}

/* ---- Listening --------------------------------------------------------------------------------------------------- */

hf_status hf_depot_events(hf_depot *depot, hf_collector **ret_collector)
{
    HF_TRY(HF_VERB_ALLOWED(hf_depot_events));
    HF_TRY(hf_depot_enter(depot, "hf_depot_events"));
    hf_status status = HF_OK;
    if (ret_collector == NULL) {
        hf_op op;
        hf_op_init(&op);
        (void)hf_fail(&op, HF_ERR_MISUSE, "hf_depot_events needs a place for the collector");
        status = hf_depot_raise(depot, &op);
    } else {
        status =
            hf_collector_open(depot->events, ret_collector, .mode = HF_FLOW_DROP_OLDEST, .capacity = HF_DEPOT_NEWS_MAX);
    }
    if (status == HF_OK) {
        atomic_store_explicit(&depot->has_listeners, true, memory_order_relaxed);
    }
    hf_depot_leave(depot);
    return status;
}
