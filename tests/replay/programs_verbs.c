/* Programs for the verbs of a workflow, one after the other: timers, signals, activities, channels, locks, flows, facts. */
#include "replay/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Timers ------------------------------------------------------------------------------------------------------ */

static hf_status sleeps(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    int64_t began = hf_wall_now(NULL).ns;
    (void)in;
    HF_TRY(heard(&n, hf_sleep(hf_seconds(1))));
    HF_TRY(heard(&n, hf_sleep(hf_nanoseconds(0))));
    HF_TRY(heard(&n, hf_sleep(hf_nanoseconds(-7))));
    HF_TRY(heard(&n, hf_sleep(hf_nanoseconds(999999))));
    HF_TRY(heard(&n, hf_sleep(hf_nanoseconds(1000001))));
    HF_TRY(heard(&n, hf_yield()));
    HF_TRY(heard(&n, hf_sleep(hf_hours(5))));
    note(&n, "%lld", (long long)((hf_wall_now(NULL).ns - began) / 1000000));
    return notes_result(&n, ret_out);
}

static hf_status do_nothing(void *arg)
{
    (void)arg;
    return HF_OK;
}

/* 2,000 timers are pending at once, and every verb that needs one more is refused. They are given up in the step that asked for
 * them, so no event tells of them, but their numbers are used up. */
static hf_status timers_limit(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_AUTO(hf_scope_close) hf_scope *inner = NULL;
        HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
        char value = 0;
        int forked = 0;
        HF_TRY(hf_chan_new(1, &chan));
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        while (forked < 2000 && hf_fork(scope, do_nothing, NULL, .delay = hf_hours(1)) == HF_OK) {
            forked++;
        }
        note(&n, "%d ", forked);
        HF_TRY(heard(&n, hf_fork(scope, do_nothing, NULL, .delay = hf_hours(1))));
        HF_TRY(heard(&n, hf_sleep(hf_hours(1))));
        HF_TRY(heard(&n, hf_signal_wait("never", NULL, .timeout = hf_hours(1))));
        HF_TRY(heard(&n, hf_chan_recv(chan, &value, .timeout = hf_hours(1))));
        HF_TRY(heard(&n, hf_scope_open(&inner, .timeout = hf_hours(1))));
        HF_TRY(heard(&n, hf_sleep(hf_nanoseconds(0))));
        HF_TRY(heard(&n, hf_signal_wait("never", NULL, .timeout = HF_SPAN_OFF)));
        HF_TRY(heard(&n, hf_scope_cancel(scope)));
    }
    HF_TRY(heard(&n, hf_sleep(hf_seconds(1)))); /* its number is 2001 */
    return notes_result(&n, ret_out);
}

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

static hf_status hear_signal(notes *n, const char *name, hf_span timeout)
{
    hf_payload out = hf_payload_none();
    hf_status status = hf_signal_wait(name, &out, .timeout = timeout);
    if (status == HF_OK) {
        note(n, "%s=%s ", name, out.data != NULL ? (const char *)out.data : "");
    }
    return heard(n, status);
}

static hf_status signals(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    hf_span unlimited = hf_nanoseconds(0);
    (void)in;
    HF_TRY(hear_signal(&n, "go", unlimited));
    HF_TRY(hear_signal(&n, "go", hf_seconds(5)));  /* comes in time */
    HF_TRY(hear_signal(&n, "go", hf_seconds(5)));  /* does not come */
    HF_TRY(hear_signal(&n, "go", HF_SPAN_OFF));    /* is not there */
    HF_TRY(heard(&n, hf_sleep(hf_seconds(10))));   /* meanwhile three come */
    HF_TRY(hear_signal(&n, "go", HF_SPAN_OFF));    /* is there */
    HF_TRY(hear_signal(&n, "other", hf_hours(1))); /* as is this: it makes no timer */
    HF_TRY(hear_signal(&n, "go", hf_nanoseconds(30)));
    HF_TRY(hear_signal(&n, "go", unlimited));
    HF_TRY(heard(&n, hf_signal_wait("", NULL)));
    HF_TRY(heard(&n, hf_signal_wait("last", NULL))); /* its payload is dropped */
    return notes_result(&n, ret_out);
}

typedef struct waiter {
    notes *n;
    const char *name;
    hf_span timeout;
} waiter;

static hf_status wait_body(void *arg)
{
    waiter *w = arg;
    return hear_signal(w->n, w->name, w->timeout);
}

/* Several fibers wait for the same name: the first gets the first. One gives up before. */
static hf_status signal_waiters(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    waiter waiters[] = {{&n, "a", hf_nanoseconds(0)},
                        {&n, "a", hf_seconds(2)},
                        {&n, "b", hf_nanoseconds(0)},
                        {&n, "a", hf_minutes(1)},
                        {&n, "a", hf_nanoseconds(0)}};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    for (size_t i = 0; i < sizeof waiters / sizeof *waiters; i++) {
        HF_TRY(hf_fork(scope, wait_body, &waiters[i]));
    }
    HF_TRY(heard(&n, hf_join(scope)));
    return notes_result(&n, ret_out);
}

/* ---- Activities -------------------------------------------------------------------------------------------------- */

static hf_status activity_options(hf_payload in, hf_payload *ret_out)
{
    static const char *const FINAL[] = {"Declined", "Closed", NULL};
    notes n = {.len = 0};
    hf_payload out = hf_payload_none();
    HF_TRY(heard(&n, hf_activity_run("echo", in, &out, .start_to_close = hf_seconds(5))));
    note(&n, "%s ", (const char *)out.data);
    HF_TRY(heard(&n, hf_activity_run("echo", in, NULL, .schedule_to_close = hf_minutes(5))));
    HF_TRY(
        heard(&n, hf_activity_run("echo", hf_payload_none(), &out, .start_to_close = hf_seconds(5),
                                  .schedule_to_close = hf_minutes(2), .schedule_to_start = hf_minutes(1),
                                  .heartbeat = hf_seconds(2), .attempts_max = 4, .retry_initial = hf_milliseconds(1500),
                                  .retry_coefficient = 1.5, .retry_max = hf_seconds(9), .task_queue = "q",
                                  .id = "all of them", .final_types = FINAL)));
    note(&n, "%zu ", out.len);
    HF_TRY(heard(&n, hf_activity_run("echo", hf_payload_of_bytes("\0\1\2", 3), &out, .start_to_close = hf_seconds(5),
                                     .attempts_max = HF_OFF)));
    note(&n, "%zu ", out.len);
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = hf_seconds(5), .attempts_max = HF_UNLIMITED)));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = hf_seconds(5), .retry_coefficient = 1,
                         .retry_initial = hf_milliseconds(1))));
    return notes_result(&n, ret_out);
}

static hf_status activity_ends(hf_payload in, hf_payload *ret_out)
{
    static const char *const FINAL[] = {"Flaky", NULL};
    notes n = {.len = 0};
    hf_span s = hf_seconds(5);
    hf_payload details = hf_payload_none();
    (void)in;
    HF_TRY(heard_why(&n, RUN("flaky", "2", .start_to_close = s)));
    HF_TRY(heard_why(&n, RUN("flaky", "2", .start_to_close = s, .attempts_max = 2)));
    HF_TRY(heard_why(&n, RUN("flaky", "2", .start_to_close = s, .final_types = FINAL)));
    HF_TRY(heard_why(&n, RUN("refuse", "[5]", .start_to_close = s, .ret_details = &details)));
    note(&n, "%s ", (const char *)details.data);
    HF_TRY(heard_why(&n, RUN("user", "1", .start_to_close = s, .attempts_max = 1)));
    HF_TRY(heard_why(&n, RUN("hang", "1", .start_to_close = hf_seconds(1), .attempts_max = 2)));
    HF_TRY(heard_why(&n, RUN("hang", "1", .start_to_close = hf_hours(1), .heartbeat = s, .attempts_max = 1)));
    HF_TRY(heard_why(&n, RUN("beat", "3000", .start_to_close = hf_hours(1), .heartbeat = s)));
    HF_TRY(heard_why(&n, RUN("echo", "1", .start_to_close = s, .schedule_to_start = s, .task_queue = "nobody")));
    HF_TRY(heard_why(&n, RUN("flaky", "9", .schedule_to_close = s, .retry_initial = hf_seconds(2))));
    return notes_result(&n, ret_out);
}

/* Nothing of these is in the history. */
static hf_status activity_refusals(hf_payload in, hf_payload *ret_out)
{
    static char name[1002];
    static char big[(2u << 20) + 10];
    notes n = {.len = 0};
    hf_span s = hf_seconds(5);
    (void)in;
    memset(name, 'n', sizeof name - 1);
    memset(big, '1', sizeof big - 1);
    HF_TRY(heard(&n, RUN("", "1", .start_to_close = s)));
    HF_TRY(heard(&n, RUN(name, "1", .start_to_close = s)));
    HF_TRY(heard(&n, RUN("echo", "1", .attempts_max = 1)));
    HF_TRY(heard(&n, RUN("echo", big, .start_to_close = s)));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = hf_nanoseconds(30))));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = hf_nanoseconds(-30))));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = s, .heartbeat = hf_nanoseconds(-1))));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = s, .schedule_to_start = hf_nanoseconds(1))));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = s, .retry_coefficient = 0.5)));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = s, .retry_coefficient = -2)));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = s, .attempts_max = -7)));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = s, .retry_initial = s, .retry_max = hf_seconds(1))));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = s, .task_queue = name)));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = s, .id = name)));
    HF_TRY(heard(&n, hf_activity_run("echo", ((hf_payload){.len = 5}), NULL, .start_to_close = s)));
    HF_TRY(heard(&n, RUN("echo", "1", .start_to_close = s))); /* its number is 1 */
    return notes_result(&n, ret_out);
}

static hf_status ask_one(void *arg)
{
    (void)arg;
    return RUN("echo", "1", .start_to_close = hf_seconds(5));
}

/* 2,000 activities are pending, and one more is refused. They are given up in the step that asked for them. */
static hf_status activities_limit(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        for (int i = 0; i < 2000; i++) {
            HF_TRY(hf_fork(scope, ask_one, NULL, .stack_size = 16384));
        }
        HF_TRY(hf_yield());
        HF_TRY(heard(&n, ask_one(NULL)));
        HF_TRY(heard(&n, hf_scope_cancel(scope)));
    }
    HF_TRY(heard(&n, ask_one(NULL))); /* its number is 2001 */
    return notes_result(&n, ret_out);
}

/* ---- Channels ---------------------------------------------------------------------------------------------------- */

typedef struct pipe {
    notes *n;
    hf_chan *chan; /* rendezvous */
    hf_chan *wide; /* keeps two */
} pipe;

static hf_status feed(void *arg)
{
    pipe *p = arg;
    for (int i = 1; i <= 3; i++) {
        HF_TRY(hf_sleep(hf_seconds(1)));
        HF_TRY(heard(p->n, hf_chan_send(p->chan, &i)));
    }
    HF_TRY(RUN("echo", "1", .start_to_close = hf_seconds(5)));
    return hf_chan_close(p->wide);
}

static hf_status drain(pipe *p)
{
    int value = 0;
    HF_TRY(heard(p->n, hf_chan_recv(p->chan, &value)));
    note(p->n, "%d ", value);
    HF_TRY(heard(p->n, hf_chan_recv(p->chan, &value, .timeout = hf_minutes(1))));
    note(p->n, "%d ", value);
    HF_TRY(heard(p->n, hf_chan_recv(p->chan, &value, .timeout = hf_milliseconds(10))));
    HF_TRY(heard(p->n, hf_chan_recv(p->chan, &value, .timeout = HF_SPAN_OFF)));
    HF_TRY(heard(p->n, hf_chan_try_recv(p->chan, &value)));
    HF_TRY(heard(p->n, hf_chan_try_send(p->wide, &value)));
    HF_TRY(heard(p->n, hf_chan_send(p->wide, &value)));
    HF_TRY(heard(p->n, hf_chan_send(p->wide, &value, .timeout = hf_milliseconds(20))));
    HF_TRY(heard(p->n, hf_chan_try_send(p->wide, &value)));
    note(p->n, "%zu ", hf_chan_count(p->wide));
    return HF_OK;
}

static hf_status choose(pipe *p)
{
    int value = 9;
    size_t which = 99;
    hf_case cases[] = {{HF_CASE_SEND, p->wide, &value, HF_OK},
                       {HF_CASE_RECV, p->chan, &value, HF_OK},
                       {HF_CASE_RECV, NULL, NULL, HF_OK}};
    HF_TRY(heard(p->n, hf_try_select(cases, 3, &which)));
    HF_TRY(heard(p->n, hf_select(cases, 3, &which, .timeout = hf_milliseconds(5))));
    HF_TRY(heard(p->n, hf_select(cases, 3, &which, .timeout = HF_SPAN_OFF)));
    HF_TRY(heard(p->n, hf_select(cases, 3, &which)));
    note(p->n, "%zu:%d ", which, value);
    cases[1].chan = NULL;
    HF_TRY(heard(p->n, hf_select(cases, 3, &which, .timeout = hf_hours(1)))); /* until it is closed */
    note(p->n, "%zu:%s ", which, hf_status_name(cases[0].status));
    for (int i = 0; i < 3; i++) {
        HF_TRY(heard(p->n, hf_chan_recv(p->wide, &value)));
    }
    return heard(p->n, hf_chan_send(p->wide, &value));
}

static hf_status channels(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    pipe p = {.n = &n};
    (void)in;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_chan_free) hf_chan *wide = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &chan));
    HF_TRY(hf_chan_new(sizeof(int), &wide, .capacity = 2));
    p.chan = chan;
    p.wide = wide;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, feed, &p));
    HF_TRY(drain(&p));
    HF_TRY(choose(&p));
    HF_TRY(heard(&n, hf_join(scope)));
    return notes_result(&n, ret_out);
}

/* ---- Locks ------------------------------------------------------------------------------------------------------- */

typedef struct doors {
    notes *n;
    hf_mutex *mutex;
    hf_sem *sem;
    hf_cond *cond;
    hf_keylock *keys;
    hf_once *once;
    bool is_open;
} doors;

static hf_status hold_all(void *arg)
{
    doors *d = arg;
    HF_AUTO(hf_key_unlock) hf_key_guard *guard = NULL;
    HF_TRY(hf_keylock_lock(d->keys, "k", 1, &guard));
    HF_TRY(hf_mutex_lock(d->mutex));
    HF_TRY(hf_sem_acquire(d->sem, 2));
    hf_status status = hf_sleep(hf_seconds(3));
    HF_IGNORE(hf_sem_release(d->sem, 2));
    HF_IGNORE(hf_mutex_unlock(d->mutex));
    return status;
}

static hf_status try_all(doors *d, hf_span timeout)
{
    hf_key_guard *guard = NULL;
    hf_status status = hf_mutex_lock(d->mutex, .timeout = timeout);
    HF_TRY(heard(d->n, status));
    if (status == HF_OK) {
        HF_TRY(heard(d->n, hf_mutex_unlock(d->mutex)));
    }
    status = hf_sem_acquire(d->sem, 2, .timeout = timeout);
    HF_TRY(heard(d->n, status));
    if (status == HF_OK) {
        HF_TRY(heard(d->n, hf_sem_release(d->sem, 2)));
    }
    status = hf_keylock_lock(d->keys, "k", 1, &guard, .timeout = timeout);
    HF_TRY(heard(d->n, status));
    if (status == HF_OK) {
        HF_TRY(heard(d->n, hf_key_unlock(guard)));
    }
    HF_TRY(heard(d->n, hf_keylock_lock(d->keys, "other", 5, &guard, .timeout = timeout)));
    return heard(d->n, hf_key_unlock(guard));
}

static hf_status open_door(void *arg)
{
    doors *d = arg;
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_TRY(hf_mutex_lock(d->mutex));
    d->is_open = true;
    HF_TRY(hf_cond_signal(d->cond));
    HF_TRY(hf_cond_broadcast(d->cond));
    return hf_mutex_unlock(d->mutex);
}

static hf_status wait_for_door(void *arg)
{
    doors *d = arg;
    HF_TRY(hf_mutex_lock(d->mutex));
    hf_status status = HF_OK;
    while (!d->is_open && status == HF_OK) {
        status = heard(d->n, hf_cond_wait(d->cond, d->mutex, .timeout = hf_milliseconds(1500)));
    }
    HF_IGNORE(hf_mutex_unlock(d->mutex));
    return status;
}

static hf_status once_body(void *arg)
{
    (void)arg;
    return RUN("echo", "1", .start_to_close = hf_seconds(5));
}

static hf_status run_once(void *arg)
{
    doors *d = arg;
    return heard(d->n, hf_once_run(d->once, once_body, NULL));
}

static hf_status lock_rounds(doors *d)
{
    static hf_body const BODIES[] = {open_door, wait_for_door, wait_for_door, run_once, run_once};
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, hold_all, d));
        HF_TRY(hf_yield());
        HF_TRY(try_all(d, HF_SPAN_OFF));
        HF_TRY(try_all(d, hf_seconds(1)));
        HF_TRY(try_all(d, hf_minutes(1)));
        HF_TRY(heard(d->n, hf_join(scope)));
    }
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        HF_TRY(hf_fork(scope, BODIES[i], d));
    }
    return heard(d->n, hf_join(scope));
}

static hf_status locks(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keys = NULL;
    HF_AUTO(hf_once_free) hf_once *once = NULL;
    (void)in;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_sem_new(3, &sem));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_keylock_new(&keys));
    HF_TRY(hf_once_new(&once));
    doors d = {&n, mutex, sem, cond, keys, once, false};
    HF_TRY(lock_rounds(&d));
    HF_TRY(heard(&n, hf_mutex_try_lock(mutex)));
    HF_TRY(heard(&n, hf_mutex_unlock(mutex)));
    HF_TRY(heard(&n, hf_sem_try_acquire(sem, 4)));
    return notes_result(&n, ret_out);
}

/* ---- Flows ------------------------------------------------------------------------------------------------------- */

static hf_status spring(void *arg, hf_emitter *emitter)
{
    (void)arg;
    for (int i = 1; i <= 4; i++) {
        HF_TRY(i % 2 == 0 ? hf_sleep(hf_milliseconds(10)) : HF_OK);
        HF_TRY(hf_emit(emitter, &i));
    }
    return RUN("echo", "1", .start_to_close = hf_seconds(5));
}

static hf_status taste(void *ctx, const void *value)
{
    note(ctx, "%d ", *(const int *)value);
    return *(const int *)value == 3 ? hf_sleep(hf_seconds(1)) : HF_OK;
}

static hf_status collect_some(notes *n)
{
    static const hf_flow_mode MODES[] = {HF_FLOW_BUFFER, HF_FLOW_CONFLATE, HF_FLOW_DROP_OLDEST};
    for (size_t i = 0; i < 3; i++) {
        HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
        HF_TRY(hf_flow_new(sizeof(int), &flow, .source = spring));
        HF_TRY(heard(n, hf_flow_collect(flow, taste, n, .mode = MODES[i])));
        HF_TRY(heard(n, hf_flow_collect(flow, taste, n, .mode = MODES[i], .timeout = hf_milliseconds(500))));
    }
    return HF_OK;
}

static hf_status share_one(notes *n)
{
    int value = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &flow, .source = spring, .share = scope));
    HF_AUTO(hf_collector_close) hf_collector *collector = NULL;
    HF_TRY(hf_collector_open(flow, &collector));
    HF_TRY(heard(n, hf_collector_next(collector, &value, .timeout = hf_seconds(1))));
    HF_TRY(heard(n, hf_collector_next(collector, &value)));
    note(n, "%d ", value);
    return heard(n, hf_sleep(hf_seconds(1)));
}

static hf_status flows(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    int value = 5;
    (void)in;
    HF_TRY(collect_some(&n));
    HF_TRY(share_one(&n));
    HF_AUTO(hf_flow_free) hf_flow *hot = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &hot));
    HF_AUTO(hf_collector_close) hf_collector *collector = NULL;
    HF_TRY(hf_collector_open(hot, &collector));
    HF_TRY(heard(&n, hf_collector_next(collector, &value, .timeout = hf_seconds(1))));
    HF_TRY(heard(&n, hf_flow_emit(hot, &value)));
    HF_TRY(heard(&n, hf_collector_next(collector, &value, .timeout = hf_seconds(1))));
    HF_TRY(heard(&n, hf_flow_close(hot)));
    HF_TRY(heard(&n, hf_collector_next(collector, &value)));
    return notes_result(&n, ret_out);
}

/* ---- Facts, chance, ends of the run -------------------------------------------------------------------------------- */

static hf_status facts(hf_payload in, hf_payload *ret_out)
{
    static const hf_local KEY = {"key"};
    notes n = {.len = 0};
    int64_t began = hf_now(NULL).ns;
    (void)in;
    HF_TRY(hf_local_set(&KEY, &n));
    for (int i = 0; i < 3; i++) {
        uint64_t chance[2] = {0, 0};
        HF_TRY(hf_random(NULL, chance, sizeof chance));
        note(&n, "%llx %llx %lld %lld ", (unsigned long long)chance[0], (unsigned long long)chance[1],
             (long long)hf_wall_now(NULL).ns, (long long)(hf_now(NULL).ns - began));
        HF_TRY(hf_sleep(hf_milliseconds(1 + (int64_t)(chance[0] % 100000)))); /* chance is in the commands, too */
    }
    note(&n, "%s %s %d %d %lld ", hf_workflow_id(), hf_workflow_run_id(), hf_local_get(&KEY) == &n,
         (int)hf_cancel_cause(NULL), (long long)hf_time_left().ns);
    HF_TRY(heard(&n, hf_canceled()));
    HF_TRY(RUN("echo", "1", .start_to_close = hf_seconds(5), .id = hf_workflow_run_id()));
    HF_TRY(hf_signal_wait("end", NULL, .timeout = hf_hours(1)));
    return notes_result(&n, ret_out);
}

static hf_status fails(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_raise_typed(HF_ERR_USER + 3, "OutOfStock", "no more of %d", 7);
}

static hf_status fails_by_activity(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    return hf_activity_run("refuse", in, NULL, .start_to_close = hf_seconds(5));
}

static hf_status too_big(hf_payload in, hf_payload *ret_out)
{
    static char big[(2u << 20) + 10];
    (void)in;
    memset(big, '1', sizeof big - 1);
    return hf_payload_copy(hf_payload_of_json(big), ret_out);
}

static hf_status returns_input(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

/* A history of several hundred events. */
static hf_status many_steps(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    for (int i = 0; i < 24; i++) {
        char text[16];
        uint8_t chance = 0;
        hf_payload out = hf_payload_none();
        (void)snprintf(text, sizeof text, "%d", i);
        HF_TRY(hf_random(NULL, &chance, sizeof chance));
        HF_TRY(hf_activity_run("echo", hf_payload_of_json(text), &out, .start_to_close = hf_seconds(5)));
        note(&n, "%s:%d ", (const char *)out.data, chance);
        HF_TRY(chance % 2 == 0 ? hf_sleep(hf_milliseconds(100 + i))
               : hf_signal_wait("never", NULL, .timeout = HF_SPAN_OFF) == HF_ERR_TIMEOUT ? HF_OK
                                                                                         : HF_ERR_FAILED);
    }
    return notes_result(&n, ret_out);
}

const program programs_of_verbs[] = {
    {"sleeps", sleeps},
    {"timers-limit", timers_limit},
    {"signals", signals},
    {"signal-waiters", signal_waiters},
    {"activity-options", activity_options},
    {"activity-ends", activity_ends},
    {"activity-refusals", activity_refusals},
    {"activities-limit", activities_limit},
    {"channels", channels},
    {"locks", locks},
    {"flows", flows},
    {"facts", facts},
    {"fails", fails},
    {"fails-by-activity", fails_by_activity},
    {"too-big", too_big},
    {"returns-input", returns_input},
    {"many-steps", many_steps},
    {NULL, NULL},
};
