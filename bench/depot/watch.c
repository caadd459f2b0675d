/* (e) One key that 1,000 fibers watch, beside a flow with 1,000 collectors: changes are made one after the other, each
 * when all have got the one before. Both keep the newest only. Processor time, one thread. */
#include "depot/parts.h"

enum { WATCHERS = 1000, CHANGES = 300, ROUNDS = 3 };

typedef struct audience {
    hf_depot *depot;
    hf_flow *flow;
    uint64_t value;
    uint64_t ready;     /* that have got the first value, or are at their place */
    uint64_t delivered; /* since then */
} audience;

static hf_status fetch_next(void *state, const hf_fetch_request *request, hf_reply *reply)
{
    audience *all = state;
    (void)request;
    all->value++;
    return hf_reply_value(reply, &all->value, sizeof all->value);
}

static hf_status watch(void *arg)
{
    audience *all = arg;
    id place;
    hf_watcher *watcher = NULL;
    hf_depot_event event;
    HF_TRY(hf_depot_watch(all->depot, key_of(&place, "bench", 1), &watcher, .fresh = HF_FRESH_LOCAL));
    for (int i = 0; i <= CHANGES; i++) { /* the first is the value at hand */
        HF_TRY(hf_watcher_next(watcher, &event));
        if (event.kind != HF_DEPOT_DATA) {
            fail("a watcher got another event");
        }
        hf_value_unref(event.value);
        *(i == 0 ? &all->ready : &all->delivered) += 1;
    }
    return hf_watcher_close(watcher);
}

static hf_status collect(void *arg)
{
    audience *all = arg;
    hf_collector *collector = NULL;
    uint64_t value = 0;
    HF_TRY(hf_collector_open(all->flow, &collector, .mode = HF_FLOW_CONFLATE));
    all->ready++;
    for (int i = 0; i < CHANGES; i++) {
        HF_TRY(hf_collector_next(collector, &value));
        all->delivered++;
    }
    return hf_collector_close(collector);
}

static hf_status change(audience *all, bool with_depot)
{
    if (!with_depot) {
        all->value++;
        return hf_flow_emit(all->flow, &all->value);
    }
    id place;
    hf_value *value = NULL;
    HF_TRY(hf_depot_get(all->depot, key_of(&place, "bench", 1), &value, .fresh = HF_FRESH_NOW));
    hf_value_unref(value);
    return HF_OK;
}

/* Deliveries per second. */
static hf_status measure(audience *all, bool with_depot, double *ret_rate)
{
    hf_scope *scope = NULL;
    all->ready = all->delivered = 0;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < WATCHERS; i++) {
        HF_TRY(hf_fork(scope, with_depot ? watch : collect, all));
    }
    while (all->ready < WATCHERS) {
        HF_TRY(hf_yield());
    }
    int64_t from = bench_cpu_ns();
    for (uint64_t i = 1; i <= CHANGES; i++) {
        HF_TRY(change(all, with_depot));
        while (all->delivered < i * WATCHERS) {
            HF_TRY(hf_yield());
        }
    }
    *ret_rate = fmax(*ret_rate, (double)WATCHERS * CHANGES * 1e9 / (double)(bench_cpu_ns() - from));
    HF_TRY(hf_join(scope));
    return hf_scope_close(scope);
}

static hf_status watchers(void *arg)
{
    (void)arg;
    audience all = {.value = 0};
    double ours = 0;
    double flow = 0;
    HF_TRY(hf_depot_open("watch", &all.depot, .fetch = fetch_next, .state = &all));
    HF_TRY(hf_flow_new(sizeof all.value, &all.flow));
    HF_TRY(change(&all, true)); /* a first value */
    for (int i = 0; i < ROUNDS; i++) {
        HF_TRY(measure(&all, false, &flow));
        HF_TRY(measure(&all, true, &ours));
    }
    row("1,000 watchers of one key, deliveries", ours / 1e6, "M/s", "hf_flow_emit", flow / 1e6, ours / flow,
        ROW_AT_LEAST, 0.7);
    HF_TRY(hf_flow_free(all.flow));
    return hf_depot_close(all.depot);
}

void part_watch(void)
{
    row_head("(e) watchers; one thread, processor time; compared: ours / hf_flow");
    on_fiber(1, watchers, NULL);
}
