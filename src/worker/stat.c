/* What a worker has and has done, for programs that watch it. */
#include "worker/wf.h"

#include "fiber/verbs.h"
#include "fiber/watch/watch.h"
#include "fiber/watch/watch_policy.h"

static const char *const NAMES[] = {
    [HF_WORKER_NEW] = "new",           [HF_WORKER_STARTING] = "starting", [HF_WORKER_READY] = "ready",
    [HF_WORKER_DEGRADED] = "degraded", [HF_WORKER_STOPPING] = "stopping", [HF_WORKER_STOPPED] = "stopped",
    [HF_WORKER_FAILED] = "failed",
};

const char *hf_worker_health_name(hf_worker_health health)
{
    return (unsigned)health < HF_COUNT_OF(NAMES) ? NAMES[health] : "?";
}

static void count_runs(hf_worker *worker, int64_t now_ns, hf_worker_stats *stats)
{
    hf_wf_cache *cache = &worker->cache;
    hf_watchdog_figures figures = hf_watchdog_figures_of(&worker->rt->watchdog);
    bool is_watched = figures.stuck_ns != HF_WATCHDOG_NEVER && figures.zombie_ns != HF_WATCHDOG_NEVER;
    hf_spin_lock(&cache->lock);
    stats->resident = cache->count;
    stats->bytes = cache->bytes;
    stats->released = cache->released;
    HF_LIST_EACH(node, &cache->stuck)
    {
        const hf_wf *wf = HF_CONTAINER(node, hf_wf, bucket);
        int64_t since = atomic_load(&wf->turn_ns);
        stats->stuck++;
        stats->workflow_zombies += is_watched && since != 0 && now_ns - since >= figures.stuck_ns + figures.zombie_ns;
    }
    hf_spin_unlock(&cache->lock);
    hf_assert(stats->workflow_zombies <= stats->stuck);
}

static hf_worker_health health_of(hf_worker *worker, int64_t now_ns, const hf_worker_stats *stats)
{
    switch (hf_worker_life(worker)) {
    case HF_LIFE_NEW:
        return HF_WORKER_NEW;
    case HF_LIFE_POLLING:
        if (!atomic_load(&worker->has_pollers)) {
            return HF_WORKER_STARTING;
        }
        return atomic_load(&worker->quiet_ns) > now_ns || stats->activity_zombies + stats->stuck > 0
                   ? HF_WORKER_DEGRADED
                   : HF_WORKER_READY;
    case HF_LIFE_GRACE:
    case HF_LIFE_FORCE:
    case HF_LIFE_LAST_WORD:
        return HF_WORKER_STOPPING;
    case HF_LIFE_LEFT:
    case HF_LIFE_OVER:
    case HF_LIFE_DONE:
    case HF_LIFE_STATE_COUNT:
        break;
    }
    return hf_guard_is_shut(&worker->guard) || worker->result != HF_OK ? HF_WORKER_FAILED : HF_WORKER_STOPPED;
}

hf_status hf_worker_stat(hf_worker *worker, hf_worker_stats *ret_stats)
{
    HF_VERB_ENTER(self, hf_worker_stat, worker != NULL ? worker->rt : NULL);
    if (worker == NULL || ret_stats == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_worker_stat needs a worker and a place for the counts"));
    }
    hf_worker_stats stats = {.replays = atomic_load(&worker->replays),
                             .conflicts = atomic_load(&worker->conflicts),
                             .dropped = atomic_load(&worker->dropped)};
    int64_t now_ns = worker->rt->env->ops->now(worker->rt->env).ns;
    count_runs(worker, now_ns, &stats);
    hf_activity_tally(worker, &stats.activities, &stats.activity_zombies);
    stats.health = health_of(worker, now_ns, &stats);
    *ret_stats = stats;
    HF_LEAVE(self, HF_OK);
}
