/* Who hears of what happens: watchers, hf_depot_events, figures. */
#ifndef HF_DEPOT_HEARING_H
#define HF_DEPOT_HEARING_H

#include "depot/depot_private.h"

/* ---- Watchers ---------------------------------------------------------------------------------------------------- */

struct hf_watcher {
    hf_spin lock;        /* first: hf_wait.object. Guards the queue */
    hf_depot *depot;     /* a reference */
    hf_node node;        /* in slot->watchers */
    hf_depot_slot *slot; /* held; NULL = closed */
    hf_ask_rule rule;
    hf_flow_mode mode;
    size_t capacity;
    hf_span refresh;
    hf_depot_timer_node timer;   /* of .refresh */
    hf_depot_flight *flight;     /* held */
    bool has_value;              /* it was shown one, and not GONE after it */
    bool is_loading;             /* it was told LOADING, and nothing after it */
    hf_node in_all;              /* in depot->all_watchers */
    struct hf_watch_item *items; /* a ring of `capacity` places, and one for REKEYED */
    size_t first, count;
    bool is_rekeyed; /* REKEYED is in the ring */
    uint64_t dropped;
    bool is_closed; /* the depot is gone */
    hf_list waiters;
    hf_post post;
    uint64_t seen; /* version of the last DATA or GONE */
    bool is_list;  /* it hears of changes of the members of a list, too */
    bool is_paged; /* it belongs to hf_pages, and hears of the states of loads, too */
};

/* ---- watch.c ----------------------------------------------------------------------------------------------------- */

/* The visible value of the slot has changed, or its age has. */
void hf_watch_show(hf_depot *depot, hf_depot_slot *slot, bool is_renewed);
/* A fetch has failed. */
void hf_watch_failed(hf_depot *depot, hf_depot_slot *slot, hf_status status);
/* After an invalidation: watchers that are not local fetch again. */
void hf_watch_again(hf_depot *depot, hf_depot_slot *slot);
void hf_watch_close_all(hf_depot *depot);

/* The watchers of `from` go to `to`, and hear of it; `key`: its bytes. Then hf_watch_show shows them its value. */
void hf_watch_move(hf_depot *depot, hf_depot_slot *from, hf_depot_slot *to, hf_value *key);
/* Those that have nothing fresh fetch. */
void hf_watch_moved(hf_depot *depot, hf_depot_slot *slot);

/* The slot's flight is over: no watcher holds it any more. */
void hf_watch_landed(hf_depot_slot *slot);
/* A list watcher, or all of the slot, look again: a member has changed. */
void hf_watch_look_again(hf_depot *depot, hf_watcher *watcher);
void hf_watch_members(hf_depot *depot, hf_depot_slot *slot);
/* Watchers of hf_pages look again: the state of a load has changed. */
void hf_watch_paged(hf_depot *depot, hf_depot_slot *slot);
/* hf_depot_watch, for lists and for pages. */
hf_status hf_watch_open(hf_depot *depot, hf_depot_key key, hf_watcher **ret_watcher,
                        const hf_depot_watch_options *options, bool is_list, bool is_paged);

/* Whether the watcher wants a subscription of its key. */
static inline bool hf_watcher_subscribes(const hf_watcher *watcher)
{
    return watcher->depot->options.subscribe != NULL && watcher->rule.fresh != HF_FRESH_LOCAL;
}

/* ---- news.c: hf_depot_events. By the driver ---------------------------------------------------------------------- */

/* `why`: of a failure. */
void hf_news_of_key(hf_depot *depot, hf_depot_news_kind kind, hf_str key, hf_status status, hf_reply_class why);
void hf_news_of_row(hf_depot *depot, hf_depot_news_kind kind, const hf_pending *row, hf_status status,
                    hf_reply_class why);
/* A namespace was invalidated; NULL = everything. */
void hf_news_of_space(hf_depot *depot, const hf_space *space);
/* Its fiber has ended like this. */
void hf_news_of_flight(hf_depot *depot, const hf_depot_flight *flight, hf_status ended);
/* hf_breaker_tell for the breaker of this origin. */
void hf_depot_tell_breaker(hf_depot *depot, unsigned origin, hf_breaker_end end, bool was_probe);

/* ---- view.c ------------------------------------------------------------------------------------------------------ */

/* Calls `look` while nobody drives, or where the caller itself drives. It must not allocate, wait or call out. False:
 * somebody else drove all the time. From anywhere, also inside the library. */
bool hf_depot_glimpse(hf_depot *depot, void (*look)(const hf_depot *depot, void *arg), void *arg);
/* The numbers of hf_depot_stat. By the driver, or in a glimpse. */
void hf_depot_fill_counts(const hf_depot *depot, hf_depot_counts *ret_counts);
/* The depot shows itself in hf_metrics and hf_dump from now on. */
void hf_depot_panel_open(hf_depot *depot);
/* picture.c: of the panel. */
void hf_depot_dump(hf_panel *panel, hf_buf *text, hf_json *json);

#endif
