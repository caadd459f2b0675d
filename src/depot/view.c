/* The numbers of a depot: hf_depot_stat, and the panel in hf_metrics of its runtime. hf_metrics must not wait for the
 * driver, which may be its own caller. So it takes a glimpse: while nobody drives, the lock keeps everybody from
 * beginning, and the state stands still (depot-D1). */
#include "depot/hearing.h"

#include "fiber/keyed/cache.h"

#include <stddef.h>

/* A driver is at work for microseconds, unless a function of the user's takes its time. */
enum { GLIMPSES = 200 };
static const int64_t GLIMPSE_PAUSE_NS = 50000;

static void pause_a_moment(hf_env *env)
{
    if (env->ops->point != NULL) { /* in a simulation time stands still here */
        env->ops->point(env, HF_POINT_LOCK, 0);
        return;
    }
    hf_word nobody = 0;
    (void)env->ops->word_wait(env, &nobody, 0, (hf_instant){env->ops->now(env).ns + GLIMPSE_PAUSE_NS});
}

bool hf_depot_glimpse(hf_depot *depot, void (*look)(const hf_depot *depot, void *arg), void *arg)
{
    const hf_fiber *self = (const hf_fiber *)(void *)hf_self_get();
    for (int i = 0; i < GLIMPSES; i++) {
        hf_spin_lock(&depot->lock);
        bool is_still =
            !depot->is_driven ||
            (self != NULL && atomic_load_explicit(&depot->driver, memory_order_relaxed) == self); /* depot-D1 */
        if (is_still) {
            hf_depot_count_boarded(depot);
            look(depot, arg);
        }
        hf_spin_unlock(&depot->lock);
        if (is_still) {
            return true;
        }
        pause_a_moment(depot->rt->env);
    }
    return false;
}

void hf_depot_fill_counts(const hf_depot *depot, hf_depot_counts *ret_counts)
{
    *ret_counts = depot->counts;
    ret_counts->pending = depot->row_count;
    ret_counts->pending_bytes = depot->row_bytes;
    ret_counts->dead_now = depot->dead_count;
    ret_counts->sending = depot->sends;
    ret_counts->flights = depot->flight_count;
    ret_counts->watchers = depot->watcher_count;
    hf_assert(depot->dead_count <= depot->row_count);
    int64_t now = hf_rt_now(depot->rt).ns;
    for (int i = 0; i < HF_ORIGINS; i++) {
        int64_t wait = 0;
        const hf_breaker *breaker = &depot->breakers[i];
        bool is_shut = hf_breaker_is_shut(breaker, now, &wait);
        ret_counts->breakers_open += is_shut;
        ret_counts->breakers_half_open += breaker->state != HF_BREAKER_CLOSED && !is_shut;
    }
    hf_cache_counts memory = {0};
    hf_cache_count(depot->memory, &memory);
    hf_assert(memory.hits >= depot->memory_gets);
    ret_counts->hits_memory += memory.hits - depot->memory_gets; /* without the driver */
    ret_counts->entries = memory.count;
    ret_counts->bytes = memory.bytes;
    ret_counts->evictions = memory.evictions;
}

/* ---- The panel --------------------------------------------------------------------------------------------------- */

typedef struct row {
    const char *name;
    const char *label, *word; /* NULL = none */
    bool is_gauge;
    size_t offset;
    const char *help;
} row;

#define COUNT(name, field, help)                                        \
    {                                                                   \
        name, NULL, NULL, false, offsetof(hf_depot_counts, field), help \
    }
#define GAUGE(name, field, help)                                       \
    {                                                                  \
        name, NULL, NULL, true, offsetof(hf_depot_counts, field), help \
    }
#define HITS(word, field)                                                                        \
    {                                                                                            \
        "hits", "place", word, false, offsetof(hf_depot_counts, field), "Values served at once." \
    }
#define FAILURES(word, which)                                                                                        \
    {                                                                                                                \
        "failures", "class", word, false, offsetof(hf_depot_counts, failures) + sizeof(uint64_t) * HF_REPLY_##which, \
            "Fetches that failed."                                                                                   \
    }
#define BREAKERS(word, field)                                                                                      \
    {                                                                                                              \
        "breakers", "state", word, true, offsetof(hf_depot_counts, field), "Circuit breakers that are not closed." \
    }

static const row ROWS[] = {
    HITS("memory", hits_memory),
    HITS("source", hits_source),
    COUNT("misses", misses, "Values that had to be fetched while a caller waited."),
    COUNT("stale_served", stale_served, "Values served although they were old."),
    COUNT("fetches", fetches, "Fetches that ended."),
    COUNT("not_modified", not_modified, "Fetches that found the value unchanged."),
    FAILURES("unknown", UNKNOWN),
    FAILURES("timeout", TIMEOUT),
    FAILURES("network", NETWORK),
    FAILURES("origin", ORIGIN),
    FAILURES("tls", TLS),
    FAILURES("not_found", NOT_FOUND),
    FAILURES("denied", DENIED),
    FAILURES("invalid", INVALID),
    FAILURES("converter", CONVERTER),
    COUNT("records", records, "Values that replies brought besides their own."),
    COUNT("records_left_out", records_left_out, "Those of them that were not kept: older than what is at hand."),
    COUNT("joined", joined, "Callers that joined a fetch under way."),
    COUNT("refreshes", refreshes, "Fetches that no caller waited for."),
    COUNT("evictions", evictions, "Values that left the memory to make room."),
    COUNT("writes", writes, "Writes made here."),
    COUNT("settled", sent, "Writes that the origin has accepted."),
    COUNT("conflicts", conflicts, "Writes that met another one at the origin."),
    COUNT("dead", dead, "Writes that were given up."),
    COUNT("not_kept", not_kept, "Values that the file could not take."),
    COUNT("forgotten", forgotten, "Values that left the file."),
    COUNT("damaged", damaged, "Records of the file that could not be read."),
    GAUGE("entries", entries, "Values in memory."),
    GAUGE("bytes", bytes, "Memory that they take."),
    GAUGE("pending", pending, "Writes that are not settled, dead ones too."),
    GAUGE("pending_bytes", pending_bytes, "Memory that they take."),
    GAUGE("dead_now", dead_now, "Dead writes that wait for a decision."),
    GAUGE("sending", sending, "Writes on their way."),
    GAUGE("flights", flights, "Fetches under way."),
    GAUGE("watchers", watchers, "Watchers of keys."),
    BREAKERS("open", breakers_open),
    BREAKERS("half_open", breakers_half_open),
};
_Static_assert(HF_COUNT_OF(ROWS) <= HF_PANEL_FIGURES_MAX, "they fit into a panel");

static void look_at_counts(const hf_depot *depot, void *arg)
{
    hf_depot_fill_counts(depot, arg);
}

static size_t figures(hf_panel *panel, hf_figure *ret_figures)
{
    hf_depot *depot = HF_CONTAINER(panel, hf_depot, panel);
    hf_assert(panel->name == depot->name); /* the label; never a key */
    hf_depot_counts counts = {0};
    bool is_new = hf_depot_glimpse(depot, look_at_counts, &counts);
    hf_spin_lock(&depot->lock);
    if (is_new) {
        depot->last_seen = counts;
    } else { /* a function of the user's takes its time: as of the last time */
        counts = depot->last_seen;
    }
    hf_spin_unlock(&depot->lock);
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        const row *from = &ROWS[i];
        ret_figures[i] = (hf_figure){
            .name = from->name,
            .label = from->label,
            .word = from->word,
            .help = from->help,
            .is_gauge = from->is_gauge,
        };
        memcpy(&ret_figures[i].value, (const char *)&counts + from->offset, sizeof ret_figures[i].value);
    }
    return HF_COUNT_OF(ROWS);
}

void hf_depot_panel_open(hf_depot *depot)
{
    depot->panel.kind = "depot";
    depot->panel.name = depot->name;
    depot->panel.figures = figures;
    depot->panel.dump = hf_depot_dump;
    hf_panel_add(depot->rt, &depot->panel);
}
