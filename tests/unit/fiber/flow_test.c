/* Flows: hot, cold and shared, and what a slow collector means for the others. */
#include "unit/fiber/everywhere.h"

#include <stdatomic.h>
#include <string.h>

enum { VALUES = 50 };

/* ---- Hot --------------------------------------------------------------------------------------------------------- */

typedef struct reader {
    hf_flow *flow;
    hf_flow_mode mode;
    size_t capacity;
    hf_sem *ready; /* released once the collector is open */
    int seen[VALUES];
    int count;
    uint64_t dropped;
} reader;

static hf_status read_all(void *arg)
{
    reader *r = arg;
    HF_AUTO(hf_collector_close) hf_collector *collector = NULL;
    HF_TRY(hf_collector_open(r->flow, &collector, .mode = r->mode, .capacity = r->capacity));
    HF_TRY(hf_sem_release(r->ready, 1));
    hf_status status = HF_OK;
    int value = 0;
    while ((status = hf_collector_next(collector, &value)) == HF_OK) {
        r->seen[r->count++] = value;
    }
    r->dropped = hf_collector_dropped(collector);
    return status == HF_ERR_CLOSED ? HF_OK : status;
}

static hf_status hot_to_three(void *arg)
{
    (void)arg;
    HF_AUTO(hf_sem_free) hf_sem *ready = NULL;
    HF_TRY(hf_sem_new(0, &ready));
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .name = "prices"));
    reader readers[4];
    memset(readers, 0, sizeof readers);
    readers[0] = (reader){.flow = flow, .mode = HF_FLOW_BUFFER, .capacity = 1, .ready = ready};
    readers[1] = (reader){.flow = flow, .mode = HF_FLOW_BUFFER, .capacity = 7, .ready = ready};
    readers[2] = (reader){.flow = flow, .mode = HF_FLOW_CONFLATE, .capacity = 9, .ready = ready};
    readers[3] = (reader){.flow = flow, .mode = HF_FLOW_DROP_OLDEST, .capacity = 3, .ready = ready};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 4; i++) {
        HF_TRY(hf_fork(scope, read_all, &readers[i]));
    }
    HF_TRY(hf_sem_acquire(ready, 4));
    for (int i = 0; i < VALUES; i++) {
        HF_TRY(hf_flow_emit(flow, &i));
    }
    HF_TRY(hf_flow_close(flow));
    int late = 0;
    HF_CHECK(hf_flow_emit(flow, &late) == HF_ERR_CLOSED);
    HF_TRY(hf_join(scope));
    for (int i = 0; i < 4; i++) {
        const reader *r = &readers[i];
        HF_CHECK(r->count > 0 && r->seen[r->count - 1] == VALUES - 1); /* the newest always arrives */
        HF_CHECK((uint64_t)r->count + r->dropped == VALUES);
        HF_CHECK(r->mode != HF_FLOW_BUFFER || r->dropped == 0);
        for (int at = 1; at < r->count; at++) {
            HF_CHECK(r->seen[at] > r->seen[at - 1]);
        }
    }
    return HF_OK;
}

static void S21_each_collector_has_its_own_back_pressure(void **state)
{
    (void)state;
    everywhere("hot", 300, hot_to_three);
}

typedef struct emission {
    hf_flow *flow;
    int emitted;
    hf_status status;
} emission;

static hf_status emit_ten(void *arg)
{
    emission *e = arg;
    for (int i = 0; i < 10; i++) {
        e->status = hf_flow_emit(e->flow, &i);
        HF_TRY(e->status);
        e->emitted++;
    }
    return HF_OK;
}

static hf_status modes_one_by_one(void *arg)
{
    (void)arg;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow));
    HF_AUTO(hf_collector_close) hf_collector *latest = NULL;
    HF_AUTO(hf_collector_close) hf_collector *three = NULL;
    HF_AUTO(hf_collector_close) hf_collector *two = NULL;
    HF_TRY(hf_collector_open(flow, &latest, .mode = HF_FLOW_CONFLATE));
    HF_TRY(hf_collector_open(flow, &three, .mode = HF_FLOW_DROP_OLDEST, .capacity = 3));
    HF_TRY(hf_collector_open(flow, &two, .capacity = 2));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    emission e = {flow, 0, HF_OK};
    HF_TRY(hf_fork(scope, emit_ten, &e));
    let_settle();
    int value = -1;
    HF_CHECK(e.emitted == 2); /* the buffer of two holds it back */
    HF_TRY(hf_collector_next(latest, &value));
    HF_CHECK(value == 1 && hf_collector_dropped(latest) == 1);
    HF_TRY(hf_collector_next(two, &value));
    HF_CHECK(value == 0);
    let_settle();
    HF_CHECK(e.emitted == 3);
    HF_TRY(hf_collector_close(two)); /* nobody holds it back any more */
    two = NULL;
    let_settle();
    HF_CHECK(e.emitted == 10);
    for (int i = 7; i < 10; i++) {
        HF_TRY(hf_collector_next(three, &value));
        HF_CHECK(value == i);
    }
    HF_CHECK(hf_collector_dropped(three) == 7);
    HF_TRY(hf_collector_next(latest, &value));
    HF_CHECK(value == 9);
    HF_CHECK(hf_collector_next(latest, &value, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT);
    return hf_join(scope);
}

static void S21_conflate_keeps_the_latest_and_buffer_holds_the_emitter_back(void **state)
{
    (void)state;
    in_order("modes", modes_one_by_one);
}

static hf_status cancel_an_emitter(void *arg)
{
    (void)arg;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow));
    HF_AUTO(hf_collector_close) hf_collector *full = NULL;
    HF_AUTO(hf_collector_close) hf_collector *roomy = NULL;
    HF_TRY(hf_collector_open(flow, &full, .capacity = 1));
    HF_TRY(hf_collector_open(flow, &roomy, .capacity = 10));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    emission e = {flow, 0, HF_OK};
    hf_branch *job = NULL;
    HF_TRY(hf_fork(scope, emit_ten, &e, .ret_branch = &job));
    let_settle();
    HF_TRY(hf_branch_cancel(job));
    HF_IGNORE(hf_join(scope));
    HF_CHECK(e.emitted == 1 && e.status == HF_ERR_CANCELED);
    int value = -1;
    HF_TRY(hf_collector_next(roomy, &value));
    HF_CHECK(value == 0);
    HF_CHECK(hf_collector_next(roomy, &value, .timeout = hf_milliseconds(1)) == HF_ERR_TIMEOUT); /* to all or to none */
    return HF_OK;
}

static void S18_a_canceled_emit_has_reached_nobody(void **state)
{
    (void)state;
    in_order("cancel an emitter", cancel_an_emitter);
}

static hf_status free_under_collectors(void *arg)
{
    (void)arg;
    hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow));
    HF_AUTO(hf_collector_close) hf_collector *collector = NULL;
    HF_TRY(hf_collector_open(flow, &collector, .capacity = 2));
    int value = 7;
    HF_TRY(hf_flow_emit(flow, &value));
    HF_TRY(hf_flow_emit(flow, &value));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    emission e = {flow, 0, HF_OK};
    HF_TRY(hf_fork(scope, emit_ten, &e));
    let_settle();
    HF_TRY(hf_flow_free(flow));
    HF_IGNORE(hf_join(scope));
    HF_CHECK(e.emitted == 0 && e.status == HF_ERR_CLOSED);
    for (int i = 0; i < 2; i++) {
        value = 0;
        HF_TRY(hf_collector_next(collector, &value));
        HF_CHECK(value == 7);
    }
    HF_CHECK(hf_collector_next(collector, &value) == HF_ERR_CLOSED);
    HF_CHECK(hf_collector_next(collector, &value) == HF_ERR_CLOSED);
    return HF_OK;
}

static void a_freed_flow_ends_for_its_collectors_after_what_is_buffered(void **state)
{
    (void)state;
    in_order("free", free_under_collectors);
}

typedef struct sum {
    int total;
    int count;
    int stop_at; /* 0 = never */
} sum;

static hf_status add(void *ctx, const void *value)
{
    sum *s = ctx;
    int number = 0;
    memcpy(&number, value, sizeof number);
    s->total += number;
    s->count++;
    if (s->count == s->stop_at) {
        return hf_raise(HF_ERR_FAILED, "enough after %d", s->count);
    }
    return HF_OK;
}

/* ---- Cold -------------------------------------------------------------------------------------------------------- */

typedef struct source_log {
    atomic_int started;
    atomic_int ended;
    atomic_int canceled;
    int count;      /* values to emit; -1 = for ever */
    hf_status then; /* what it returns at the end */
} source_log;

static hf_status emit_numbers(void *arg, hf_emitter *emitter)
{
    source_log *log = arg;
    atomic_fetch_add(&log->started, 1);
    hf_status status = HF_OK;
    for (int i = 0; status == HF_OK && (log->count < 0 || i < log->count); i++) {
        status = hf_emit(emitter, &i);
    }
    if (status == HF_ERR_CANCELED) {
        atomic_fetch_add(&log->canceled, 1);
    }
    atomic_fetch_add(&log->ended, 1);
    if (status == HF_OK && log->then != HF_OK) {
        return hf_raise(log->then, "the source broke after %d", log->count);
    }
    return status;
}

static hf_status collect_cold(void *arg)
{
    (void)arg;
    source_log log = {.count = 20};
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = emit_numbers, .arg = &log, .name = "numbers"));
    for (int round = 1; round <= 3; round++) {
        sum s = {0};
        HF_TRY(hf_flow_collect(flow, add, &s, .capacity = (size_t)round));
        HF_CHECK(s.total == 190 && s.count == 20);
        HF_CHECK(log.started == round && log.ended == round); /* anew for each */
    }
    log.then = HF_ERR_IO;
    sum s = {0};
    HF_CHECK(hf_flow_collect(flow, add, &s) == HF_ERR_IO);
    HF_CHECK(s.count == 20 && strcmp(hf_error()->message, "the source broke after 20") == 0);
    log.count = -1;
    s = (sum){.stop_at = 5};
    HF_CHECK(hf_flow_collect(flow, add, &s) == HF_ERR_FAILED);
    HF_CHECK(strcmp(hf_error()->message, "enough after 5") == 0);
    HF_CHECK(s.count == 5 && log.ended == 5 && log.canceled == 1); /* S14: ended before collect returned */
    s = (sum){.stop_at = 5};
    HF_CHECK(hf_flow_collect(flow, add, &s, .mode = HF_FLOW_CONFLATE) == HF_ERR_FAILED);
    HF_CHECK(log.ended == 6 && log.canceled == 2);
    HF_CHECK(hf_canceled() == HF_OK);
    return HF_OK;
}

static void S14_a_cold_flow_runs_anew_for_each_collector_and_ends_with_it(void **state)
{
    (void)state;
    everywhere("cold", 200, collect_cold);
}

typedef struct viewer {
    hf_flow *flow;
    hf_status status;
    bool cleaned_up;
    atomic_int count;
} viewer;

static hf_status count_item(void *ctx, const void *value)
{
    (void)value;
    viewer *v = ctx;
    atomic_fetch_add(&v->count, 1);
    return HF_OK;
}

static hf_status view(void *arg)
{
    viewer *v = arg;
    v->status = hf_flow_collect(v->flow, count_item, v);
    v->cleaned_up = true;
    return v->status;
}

static hf_status cancel_collector(void *arg)
{
    (void)arg;
    source_log log = {.count = -1};
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = emit_numbers, .arg = &log));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    viewer v = {.flow = flow};
    HF_TRY(hf_fork(scope, view, &v));
    for (int i = 0; i < 7; i++) {
        HF_TRY(hf_yield());
    }
    HF_TRY(hf_scope_cancel(scope));
    HF_CHECK(hf_join(scope) == HF_ERR_CANCELED);
    HF_CHECK(v.status == HF_ERR_CANCELED && v.cleaned_up); /* S18, S19 */
    HF_CHECK(log.started == log.ended && log.canceled == log.started);
    return HF_OK;
}

static void S13_S18_S19_canceling_a_collector_cancels_its_source_and_cleans_up(void **state)
{
    (void)state;
    everywhere("cancel a collector", 500, cancel_collector);
}

static hf_status silent_source(void *arg, hf_emitter *emitter)
{
    (void)emitter;
    hf_status status = hf_sleep(hf_hours(1));
    atomic_fetch_add((atomic_int *)arg, 1);
    return status;
}

static hf_status cold_by_hand(void *arg)
{
    (void)arg;
    source_log log = {.count = 3};
    atomic_int silent_ended = 0;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_AUTO(hf_flow_free) hf_flow *silent = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = emit_numbers, .arg = &log));
    HF_TRY(hf_flow_new(sizeof(int), &silent, .source = silent_source, .arg = &silent_ended));
    sum s = {0};
    HF_CHECK(hf_flow_collect(silent, add, &s, .timeout = hf_milliseconds(5)) == HF_ERR_TIMEOUT);
    HF_CHECK(s.count == 0 && silent_ended == 1);
    hf_collector *outer = NULL;
    hf_collector *inner = NULL;
    HF_TRY(hf_collector_open(flow, &outer, .capacity = 2));
    HF_TRY(hf_collector_open(silent, &inner));
    int value = -1;
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_collector_next(outer, &value));
        HF_CHECK(value == i);
    }
    HF_CHECK(hf_collector_next(outer, &value) == HF_ERR_CLOSED);
    HF_CHECK(hf_collector_next(inner, &value, .timeout = hf_milliseconds(5)) == HF_ERR_TIMEOUT);
    HF_CHECK(hf_collector_close(outer) == HF_ERR_MISUSE); /* not in reverse order */
    HF_TRY(hf_collector_close(inner));
    HF_TRY(hf_collector_close(outer));
    HF_CHECK(silent_ended == 2);
    HF_CHECK(hf_flow_close(flow) == HF_ERR_MISUSE);
    HF_CHECK(hf_flow_emit(flow, &value) == HF_ERR_MISUSE);
    HF_TRY(hf_collector_open(silent, &inner));
    HF_TRY(hf_flow_free(silent)); /* ends it for its collector, and cancels the source */
    silent = NULL;
    HF_CHECK(hf_collector_next(inner, &value) == HF_ERR_CLOSED);
    return hf_collector_close(inner);
}

static hf_status endless_source(void *arg, hf_emitter *emitter)
{
    (void)arg;
    for (int i = 0;; i++) {
        HF_TRY(hf_emit(emitter, &i));
    }
}

static hf_status take_a_while(void *ctx, const void *value)
{
    (void)value;
    (*(int *)ctx)++;
    return hf_sleep(hf_milliseconds(2));
}

static hf_status collect_endless(void *arg)
{
    int count = 0;
    (void)arg;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = endless_source));
    HF_CHECK(hf_flow_collect(flow, take_a_while, &count, .capacity = 4, .timeout = hf_milliseconds(7)) ==
             HF_ERR_TIMEOUT);
    HF_CHECK(count > 0 && strstr(hf_error_text(), "hf_flow_collect") != NULL);
    return HF_OK;
}

static void a_collection_ends_in_time_though_there_is_always_a_value(void **state)
{
    (void)state;
    everywhere("endless", 50, collect_endless);
}

static void a_cold_flow_is_collected_by_hand(void **state)
{
    (void)state;
    everywhere("by hand", 100, cold_by_hand);
}

static hf_status next_of_another(void *arg)
{
    int value = 0;
    HF_CHECK(hf_collector_next(arg, &value) == HF_ERR_MISUSE);
    HF_CHECK(hf_collector_close(arg) == HF_ERR_MISUSE);
    return HF_OK;
}

static hf_status misuse_flow(void *arg)
{
    (void)arg;
    hf_flow *flow = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_CHECK(hf_flow_new(sizeof(int), &flow, .share = scope) == HF_ERR_MISUSE);
    HF_CHECK(hf_flow_new((size_t)1 << 30, &flow) == HF_ERR_INVALID);
    HF_TRY(hf_flow_new(sizeof(int), &flow));
    hf_collector *collector = NULL;
    HF_CHECK(hf_collector_open(flow, &collector, .capacity = (size_t)1 << 40) == HF_ERR_INVALID);
    HF_TRY(hf_collector_open(flow, &collector));
    HF_TRY(hf_fork(scope, next_of_another, collector));
    HF_TRY(hf_join(scope));
    HF_CHECK(hf_flow_collect(flow, NULL, NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_flow_collect(NULL, add, NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_emit(NULL, NULL) == HF_ERR_MISUSE);
    HF_TRY(hf_collector_close(collector));
    HF_TRY(hf_collector_close(NULL));
    HF_TRY(hf_flow_free(flow));
    return hf_flow_free(NULL);
}

static void misuse_of_a_flow_is_told(void **state)
{
    (void)state;
    everywhere("misuse", 10, misuse_flow);
}

static hf_status large_values(void *arg, hf_emitter *emitter)
{
    (void)arg;
    unsigned char bytes[3000];
    for (int i = 0; i < 5; i++) {
        memset(bytes, i, sizeof bytes);
        HF_TRY(hf_emit(emitter, bytes));
    }
    return HF_OK;
}

static hf_status check_large(void *ctx, const void *value)
{
    const unsigned char *bytes = value;
    int *next = ctx;
    HF_CHECK(bytes[0] == *next && bytes[2999] == *next);
    ++*next;
    return HF_OK;
}

static hf_status collect_large(void *arg)
{
    (void)arg;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(3000, &flow, .source = large_values));
    int next = 0;
    HF_TRY(hf_flow_collect(flow, check_large, &next));
    HF_CHECK(next == 5);
    return HF_OK;
}

static void values_larger_than_the_stack_buffer_are_collected(void **state)
{
    (void)state;
    everywhere("large", 10, collect_large);
}

/* ---- Shared ------------------------------------------------------------------------------------------------------ */

typedef struct channelled {
    hf_chan *updates; /* what the "network" sends */
    atomic_int started;
    atomic_int ended;
} channelled;

static hf_status forward_updates(void *arg, hf_emitter *emitter)
{
    channelled *c = arg;
    atomic_fetch_add(&c->started, 1);
    hf_status status = HF_OK;
    int value = 0;
    while ((status = hf_chan_recv(c->updates, &value)) == HF_OK && (status = hf_emit(emitter, &value)) == HF_OK) {
    }
    atomic_fetch_add(&c->ended, 1);
    return status == HF_ERR_CLOSED ? HF_OK : status;
}

static hf_status three_of_one_key(void *arg)
{
    (void)arg;
    channelled c = {0};
    HF_AUTO(hf_chan_free) hf_chan *updates = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &updates));
    c.updates = updates;
    HF_AUTO(hf_sem_free) hf_sem *ready = NULL;
    HF_TRY(hf_sem_new(0, &ready));
    HF_AUTO(hf_scope_close) hf_scope *store = NULL;
    HF_TRY(hf_scope_open(&store, .name = "store"));
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = forward_updates, .arg = &c, .share = store));
    reader readers[3];
    memset(readers, 0, sizeof readers);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 3; i++) {
        readers[i] = (reader){.flow = flow, .capacity = (size_t)i, .ready = ready};
        HF_TRY(hf_fork(scope, read_all, &readers[i]));
    }
    HF_TRY(hf_sem_acquire(ready, 3));
    for (int i = 0; i < VALUES; i++) {
        HF_TRY(hf_chan_send(updates, &i));
    }
    HF_TRY(hf_chan_close(updates));
    HF_TRY(hf_join(scope));
    HF_CHECK(c.started == 1);
    for (int i = 0; i < 3; i++) {
        HF_CHECK(readers[i].count == VALUES && readers[i].dropped == 0);
        for (int at = 0; at < readers[i].count; at++) {
            HF_CHECK(readers[i].seen[at] == at);
        }
    }
    return hf_join(store);
}

static void S15_three_collectors_of_one_key_get_every_update_from_one_fetch(void **state)
{
    (void)state;
    everywhere("shared", 200, three_of_one_key);
}

static hf_status leave_one_by_one(void *arg)
{
    (void)arg;
    channelled c = {0};
    HF_AUTO(hf_chan_free) hf_chan *updates = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &updates));
    c.updates = updates;
    HF_AUTO(hf_scope_close) hf_scope *store = NULL;
    HF_TRY(hf_scope_open(&store, .name = "store"));
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = forward_updates, .arg = &c, .share = store));
    hf_collector *one = NULL;
    hf_collector *two = NULL;
    HF_TRY(hf_collector_open(flow, &one));
    HF_TRY(hf_collector_open(flow, &two));
    let_settle();
    HF_CHECK(c.started == 1);
    HF_TRY(hf_collector_close(one)); /* in any order: shared collectors have no scope of their own */
    int value = 5;
    HF_TRY(hf_chan_send(updates, &value));
    HF_TRY(hf_collector_next(two, &value));
    HF_CHECK(value == 5 && c.ended == 0);
    HF_TRY(hf_collector_close(two)); /* the last one out: canceled, and a new one starts it anew meanwhile */
    HF_TRY(hf_collector_open(flow, &two));
    let_settle();
    HF_CHECK(c.started == 2 && c.ended == 1);
    HF_TRY(hf_collector_close(two));
    let_settle();
    HF_CHECK(c.ended == 2 && hf_scope_is_idle(store));
    HF_TRY(hf_collector_open(flow, &one));
    let_settle();
    HF_CHECK(c.started == 3 && c.ended == 2);
    HF_TRY(hf_chan_send(updates, &value));
    HF_TRY(hf_collector_next(one, &value));
    HF_TRY(hf_flow_free(flow));
    flow = NULL;
    HF_CHECK(hf_collector_next(one, &value) == HF_ERR_CLOSED);
    let_settle();
    HF_CHECK(c.ended == 3);
    return hf_collector_close(one);
}

static void S13_a_shared_source_is_canceled_when_its_last_collector_leaves(void **state)
{
    (void)state;
    in_order("leave", leave_one_by_one);
}

static hf_status shared_failure(void *arg)
{
    (void)arg;
    source_log log = {.count = 3, .then = HF_ERR_RESET};
    HF_AUTO(hf_scope_close) hf_scope *store = NULL;
    HF_TRY(hf_scope_open(&store));
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = emit_numbers, .arg = &log, .share = store));
    for (int i = 1; i <= 2; i++) {
        sum s = {0};
        HF_CHECK(hf_flow_collect(flow, add, &s) == HF_ERR_RESET);
        HF_CHECK(s.count == 3 && log.started == i);
        HF_CHECK(strcmp(hf_error()->message, "the source broke after 3") == 0);
    }
    HF_CHECK(hf_canceled() == HF_OK);
    HF_TRY(hf_join(store)); /* told to the collector, so not a failure of the store */
    HF_AUTO(hf_scope_close) hf_scope *small = NULL;
    HF_TRY(hf_scope_open(&small, .branches_max = 1));
    atomic_int ended = 0;
    HF_AUTO(hf_flow_free) hf_flow *first = NULL;
    HF_AUTO(hf_flow_free) hf_flow *second = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &first, .source = silent_source, .arg = &ended, .share = small));
    HF_TRY(hf_flow_new(sizeof(int), &second, .source = silent_source, .arg = &ended, .share = small));
    HF_AUTO(hf_collector_close) hf_collector *holds = NULL;
    HF_TRY(hf_collector_open(first, &holds));
    hf_collector *refused = NULL;
    HF_CHECK(hf_collector_open(second, &refused) == HF_ERR_LIMIT && refused == NULL);
    return HF_OK;
}

static void the_failure_of_a_shared_source_is_its_collectors(void **state)
{
    (void)state;
    everywhere("shared failure", 50, shared_failure);
}

typedef struct deaf {
    hf_sem *left; /* released when the collector has left */
    hf_status status;
} deaf;

static hf_status emit_behind_a_shield(void *arg, hf_emitter *emitter)
{
    deaf *d = arg;
    int value = 1;
    HF_TRY(hf_emit(emitter, &value));
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_seconds(60), &shield));
    HF_CHECK(hf_sem_acquire(d->left, 1) == HF_OK);
    d->status = hf_emit(emitter, &value);
    return d->status;
}

static hf_status leave_a_deaf_source(void *arg)
{
    (void)arg;
    HF_AUTO(hf_sem_free) hf_sem *left = NULL;
    HF_TRY(hf_sem_new(0, &left));
    deaf d = {left, HF_OK};
    HF_AUTO(hf_scope_close) hf_scope *store = NULL;
    HF_TRY(hf_scope_open(&store));
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = emit_behind_a_shield, .arg = &d, .share = store));
    hf_collector *collector = NULL;
    HF_TRY(hf_collector_open(flow, &collector));
    int value = 0;
    HF_TRY(hf_collector_next(collector, &value));
    HF_TRY(hf_collector_close(collector));
    HF_TRY(hf_sem_release(left, 1));
    HF_TRY(hf_join(store));
    HF_CHECK(d.status == HF_ERR_CANCELED);
    return HF_OK;
}

static void S18_a_source_that_nobody_collects_cannot_emit(void **state)
{
    (void)state;
    everywhere("deaf source", 100, leave_a_deaf_source);
}

/* Collectors come and go while the source runs: each sees numbers in order, and every source ends. */
static hf_status look_in(void *arg)
{
    viewer *v = arg;
    for (int i = 0; i < 3; i++) {
        sum s = {.stop_at = 1 + i};
        hf_status status = hf_flow_collect(v->flow, add, &s, .mode = (hf_flow_mode)(i % 3), .capacity = 2);
        HF_CHECK(status == HF_ERR_FAILED || (status == HF_ERR_CANCELED && hf_canceled() != HF_OK));
        if (hf_canceled() != HF_OK) {
            return HF_ERR_CANCELED;
        }
    }
    return HF_OK;
}

static hf_status shared_in_a_storm(void *arg)
{
    (void)arg;
    source_log log = {.count = -1};
    HF_AUTO(hf_scope_close) hf_scope *store = NULL;
    HF_TRY(hf_scope_open(&store));
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = emit_numbers, .arg = &log, .share = store));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    viewer v = {.flow = flow};
    hf_branch *jobs[6] = {NULL};
    for (int i = 0; i < 6; i++) {
        HF_TRY(hf_fork(scope, look_in, &v, .ret_branch = &jobs[i]));
    }
    HF_TRY(hf_yield());
    HF_TRY(hf_branch_cancel(jobs[0]));
    HF_TRY(hf_branch_cancel(jobs[3]));
    HF_IGNORE(hf_join(scope));
    HF_TRY(hf_join(store));
    HF_CHECK(log.started == log.ended);
    return HF_OK;
}

static void S15_collectors_come_and_go_and_every_source_ends(void **state)
{
    (void)state;
    everywhere("storm", 1000, shared_in_a_storm);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(S21_each_collector_has_its_own_back_pressure),
        cmocka_unit_test(S21_conflate_keeps_the_latest_and_buffer_holds_the_emitter_back),
        cmocka_unit_test(S18_a_canceled_emit_has_reached_nobody),
        cmocka_unit_test(a_freed_flow_ends_for_its_collectors_after_what_is_buffered),
        cmocka_unit_test(S14_a_cold_flow_runs_anew_for_each_collector_and_ends_with_it),
        cmocka_unit_test(S13_S18_S19_canceling_a_collector_cancels_its_source_and_cleans_up),
        cmocka_unit_test(a_cold_flow_is_collected_by_hand),
        cmocka_unit_test(a_collection_ends_in_time_though_there_is_always_a_value),
        cmocka_unit_test(misuse_of_a_flow_is_told),
        cmocka_unit_test(values_larger_than_the_stack_buffer_are_collected),
        cmocka_unit_test(S15_three_collectors_of_one_key_get_every_update_from_one_fetch),
        cmocka_unit_test(S13_a_shared_source_is_canceled_when_its_last_collector_leaves),
        cmocka_unit_test(the_failure_of_a_shared_source_is_its_collectors),
        cmocka_unit_test(S18_a_source_that_nobody_collects_cannot_emit),
        cmocka_unit_test(S15_collectors_come_and_go_and_every_source_ends),
    };
    return hf_test_main("flow", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
