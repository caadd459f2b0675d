/* (d) Many fibers ask for one key that is not at hand: one fetch, and all are woken. Beside it: as many fibers wait for
 * one hf_cond. Whoever lets them go waits on a semaphore until the last one is there. Processor time, one thread. */
#include "depot/parts.h"

enum { FIBERS = 10000, ROUNDS = 5, FLIGHTS = 100000 };

typedef struct gathering {
    hf_depot *depot;
    hf_mutex *mutex;
    hf_cond *cond;
    hf_sem *all_there;
    uint32_t number; /* of the key */
    int asked;
    bool is_open;
    int fetches;
    int64_t opened; /* processor time */
} gathering;

/* The last fiber lets the one go on that waits for all of them: only when it waits itself, because there is one thread. */
static hf_status count_in(gathering *all)
{
    return ++all->asked == FIBERS ? hf_sem_release(all->all_there, 1) : HF_OK;
}

static hf_status wait_for_cond(void *arg)
{
    gathering *all = arg;
    HF_TRY(hf_mutex_lock(all->mutex));
    HF_TRY(count_in(all));
    while (!all->is_open) {
        HF_TRY(hf_cond_wait(all->cond, all->mutex));
    }
    return hf_mutex_unlock(all->mutex);
}

static hf_status open_cond(void *arg)
{
    gathering *all = arg;
    HF_TRY(hf_sem_acquire(all->all_there, 1));
    HF_TRY(hf_mutex_lock(all->mutex));
    all->is_open = true;
    all->opened = bench_cpu_ns();
    HF_TRY(hf_cond_broadcast(all->cond));
    return hf_mutex_unlock(all->mutex);
}

static hf_status fetch_when_all_ask(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    gathering *all = state;
    all->fetches++;
    HF_TRY(hf_sem_acquire(all->all_there, 1));
    all->opened = bench_cpu_ns();
    return fetch_at_once(state, request, reply);
}

static hf_status get(void *arg)
{
    gathering *all = arg;
    id place;
    hf_value *value = NULL;
    HF_TRY(count_in(all));
    HF_TRY(hf_depot_get(all->depot, key_of(&place, "bench", all->number), &value));
    hf_value_unref(value);
    return HF_OK;
}

/* Nanoseconds in all, and those from the moment in which the way is free. */
static void measure(gathering *all, bool with_depot, double *ret_whole, double *ret_woken)
{
    hf_scope *scope = NULL;
    all->asked = 0;
    all->is_open = false;
    all->number++;
    int64_t from = bench_cpu_ns();
    must(hf_scope_open(&scope), "no scope");
    for (int i = 0; i < FIBERS; i++) {
        must(hf_fork(scope, with_depot ? get : wait_for_cond, all), "no fiber");
    }
    if (!with_depot) {
        must(hf_fork(scope, open_cond, all), "no fiber");
    }
    must(hf_join(scope), "a fiber failed");
    int64_t to = bench_cpu_ns();
    must(hf_scope_close(scope), "close");
    *ret_whole = fmin(*ret_whole, (double)(to - from));
    *ret_woken = fmin(*ret_woken, (double)(to - all->opened));
}

static hf_status storm(void *arg)
{
    (void)arg;
    gathering all = {.number = 0};
    double whole[2] = {INFINITY, INFINITY};
    double woken[2] = {INFINITY, INFINITY};
    HF_TRY(hf_mutex_new(&all.mutex));
    HF_TRY(hf_cond_new(&all.cond));
    HF_TRY(hf_sem_new(0, &all.all_there));
    HF_TRY(hf_depot_open("storm", &all.depot, .fetch = fetch_when_all_ask, .state = &all));
    for (int i = 0; i < ROUNDS; i++) {
        measure(&all, false, &whole[0], &woken[0]);
        measure(&all, true, &whole[1], &woken[1]);
    }
    row("10,000 fibers, one key: fork, wait, wake, join", whole[1] / 1e6, "ms", "hf_cond", whole[0] / 1e6,
        whole[1] / whole[0], ROW_AT_MOST, 1.5);
    row("  of it: from the answer on", woken[1] / 1e6, "ms", "hf_cond broadcast", woken[0] / 1e6, woken[1] / woken[0],
        ROW_NO_BAR, 0);
    double fetches = (double)all.fetches / ROUNDS;
    row("  fetches of a storm", fetches, "", "", NAN, fetches, ROW_AT_MOST, 1);
    HF_TRY(hf_depot_close(all.depot));
    HF_TRY(hf_sem_free(all.all_there));
    HF_TRY(hf_cond_free(all.cond));
    return hf_mutex_free(all.mutex);
}

static hf_status flights(void *arg)
{
    (void)arg;
    hf_depot *depot = NULL;
    double best = INFINITY;
    uint32_t number = 0;
    HF_TRY(hf_depot_open("flights", &depot, .fetch = fetch_at_once, .bytes_max = 1 << 20));
    for (int round = 0; round < ROUNDS; round++) {
        int64_t from = bench_cpu_ns();
        for (int i = 0; i < FLIGHTS; i++) {
            id place;
            hf_value *value = NULL;
            HF_TRY(hf_depot_get(depot, key_of(&place, "bench", number++), &value));
            hf_value_unref(value);
        }
        best = fmin(best, (double)(bench_cpu_ns() - from) / FLIGHTS);
    }
    row("one fetch that nobody shares", best / 1000, "us", "", NAN, best / 1000, ROW_AT_MOST, 3);
    return hf_depot_close(depot);
}

void part_storm(void)
{
    row_head("(d) misses; one thread, processor time; compared: ours / hf_cond");
    on_fiber(1, storm, NULL);
    on_fiber(1, flights, NULL);
}
