/* The workflows of the recorded histories in this folder. They may never change: each history was made by one of them, played
 * by the version of the library that its name says, and must be played by every later one. */
#ifndef HF_TESTS_REPLAY_WORKFLOWS_H
#define HF_TESTS_REPLAY_WORKFLOWS_H

#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

/* What a workflow was told so far: one word per call, "TIMEOUT". */
typedef struct told {
    char text[700];
    size_t len;
} told;

static inline hf_status tell(told *t, hf_status status)
{
    const char *name = hf_status_name(status);
    const char *word = strncmp(name, "HF_ERR_", 7) == 0 ? name + 7 : name;
    int len = snprintf(t->text + t->len, sizeof t->text - t->len, "%s%s", t->len > 0 ? " " : "", word);
    t->len += len > 0 ? (size_t)len : 0;
    return status == HF_ERR_EVICTED ? status : HF_OK;
}

static inline hf_status replay_echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

/* ---- spans: what spans that make no sense did before they were refused -------------------------------------------------- */

typedef struct spans_things {
    hf_chan *chan;
    hf_mutex *mutex;
    hf_sem *sem;
    hf_cond *cond;
    hf_keylock *keys;
    hf_flow *flow;
} spans_things;

static inline hf_status spans_send(void *arg)
{
    return hf_chan_send(((spans_things *)arg)->chan, "x");
}

static inline hf_status spans_nothing(void *arg)
{
    (void)arg;
    return HF_OK;
}

/* Holds everything for a while. */
static inline hf_status spans_hold(void *arg)
{
    spans_things *s = arg;
    HF_AUTO(hf_key_unlock) hf_key_guard *guard = NULL;
    HF_TRY(hf_keylock_lock(s->keys, "k", 1, &guard));
    HF_TRY(hf_mutex_lock(s->mutex));
    HF_TRY(hf_sem_acquire(s->sem, 1));
    hf_status status = hf_sleep(hf_minutes(1));
    (void)hf_sem_release(s->sem, 1);
    (void)hf_mutex_unlock(s->mutex);
    return status;
}

/* Each verb that waits, where it has to. */
static inline hf_status spans_wait(told *t, spans_things *s, hf_span span)
{
    char value = 0;
    size_t idx = 0;
    hf_key_guard *guard = NULL;
    hf_case cases[] = {{HF_CASE_RECV, s->chan, &value, HF_OK}};
    HF_TRY(tell(t, hf_signal_wait("never", NULL, .timeout = span)));
    HF_TRY(tell(t, hf_chan_recv(s->chan, &value, .timeout = span)));
    HF_TRY(tell(t, hf_chan_send(s->chan, &value, .timeout = span)));
    HF_TRY(tell(t, hf_select(cases, 1, &idx, .timeout = span)));
    {
        HF_AUTO(hf_collector_close) hf_collector *collector = NULL;
        HF_TRY(hf_collector_open(s->flow, &collector));
        HF_TRY(tell(t, hf_collector_next(collector, &value, .timeout = span)));
    }
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, spans_hold, s));
    HF_TRY(hf_yield());
    HF_TRY(tell(t, hf_mutex_lock(s->mutex, .timeout = span)));
    HF_TRY(tell(t, hf_sem_acquire(s->sem, 1, .timeout = span)));
    HF_TRY(tell(t, hf_keylock_lock(s->keys, "k", 1, &guard, .timeout = span)));
    return HF_OK;
}

static inline hf_status spans_cond(told *t, spans_things *s, hf_span span)
{
    HF_TRY(hf_mutex_lock(s->mutex));
    hf_status status = tell(t, hf_cond_wait(s->cond, s->mutex, .timeout = span));
    (void)hf_mutex_unlock(s->mutex);
    return status;
}

/* A wait without time whose answer comes in the same step: its timer has a number, and is never seen. */
static inline hf_status spans_meet(told *t, spans_things *s, hf_span span)
{
    char value = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, spans_send, s));
    HF_TRY(tell(t, hf_chan_recv(s->chan, &value, .timeout = span)));
    return HF_OK;
}

static inline hf_status spans_bounds(told *t, spans_things *s, hf_span span)
{
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(tell(t, hf_scope_open(&scope, .timeout = span)));
        if (scope != NULL) {
            HF_TRY(tell(t, hf_sleep(hf_seconds(5))));
            HF_TRY(tell(t, hf_join(scope)));
        }
    }
    {
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_TRY(tell(t, hf_shield_open(span, &shield)));
        if (shield != NULL) {
            HF_TRY(tell(t, hf_sleep(hf_seconds(5))));
        }
    }
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(tell(t, hf_fork(scope, spans_nothing, s, .delay = span)));
    return tell(t, hf_join(scope));
}

static inline hf_status spans_activities(told *t, hf_payload in)
{
    static char queue[1001];
    memset(queue, 'q', 1000);
    hf_span s = hf_seconds(5);
    hf_span tiny = hf_nanoseconds(30);
    hf_span negative = hf_nanoseconds(-5);
    HF_TRY(tell(t, hf_activity_run("echo", in, NULL, .start_to_close = tiny, .attempts_max = 1)));
    HF_TRY(tell(t, hf_activity_run("echo", in, NULL, .start_to_close = s, .schedule_to_start = negative)));
    HF_TRY(tell(t, hf_activity_run("echo", in, NULL, .start_to_close = s, .heartbeat = negative)));
    HF_TRY(tell(t, hf_activity_run("echo", in, NULL, .start_to_close = s, .retry_initial = tiny)));
    HF_TRY(tell(t, hf_activity_run("echo", in, NULL, .start_to_close = s, .retry_max = negative)));
    return tell(t, hf_activity_run("echo", in, NULL, .schedule_to_close = s, .task_queue = queue));
}

static inline hf_status spans_round(told *t, spans_things *s, hf_payload in)
{
    HF_TRY(spans_wait(t, s, hf_nanoseconds(-1)));
    HF_TRY(hf_sleep(hf_seconds(1))); /* parts that need no timer of their own are steps of their own nevertheless */
    HF_TRY(spans_cond(t, s, hf_nanoseconds(-1)));
    HF_TRY(hf_sleep(hf_seconds(2)));
    HF_TRY(spans_meet(t, s, hf_nanoseconds(-1)));
    HF_TRY(hf_sleep(hf_seconds(3)));
    HF_TRY(tell(t, hf_sleep(hf_nanoseconds(30))));
    HF_TRY(spans_wait(t, s, hf_nanoseconds(30)));
    HF_TRY(hf_sleep(hf_seconds(4)));
    HF_TRY(spans_cond(t, s, hf_nanoseconds(30)));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_TRY(spans_bounds(t, s, hf_nanoseconds(30)));
    HF_TRY(hf_sleep(hf_seconds(6)));
    return spans_activities(t, in);
}

static inline hf_status replay_spans(hf_payload in, hf_payload *ret_out)
{
    told before = {.len = 0};
    told after = {.len = 0};
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keys = NULL;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_chan_new(1, &chan));
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_sem_new(1, &sem));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_keylock_new(&keys));
    HF_TRY(hf_flow_new(1, &flow));
    spans_things things = {chan, mutex, sem, cond, keys, flow};
    HF_TRY(spans_round(&before, &things, in));
    HF_TRY(hf_signal_wait("go", NULL));
    HF_TRY(spans_round(&after, &things, in));
    return hf_payload_printf(ret_out, "%s\n%s", before.text, after.text);
}

/* ---- attempts: what numbers of a retry policy that make no sense did before they were refused ----------------------------- */

static inline hf_status attempts_flaky(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_info()->attempt < 3 ? hf_raise(HF_ERR_FAILED, "not yet") : hf_payload_copy(in, ret_out);
}

static inline hf_status attempts_round(told *t, hf_payload in)
{
    hf_span s = hf_seconds(5);
    HF_TRY(tell(t, hf_activity_run("flaky", in, NULL, .start_to_close = s, .attempts_max = -7)));
    HF_TRY(tell(t, hf_activity_run("flaky", in, NULL, .start_to_close = s, .attempts_max = -3)));
    HF_TRY(tell(t, hf_activity_run("flaky", in, NULL, .start_to_close = s, .attempts_max = HF_UNLIMITED)));
    HF_TRY(tell(t, hf_activity_run("flaky", in, NULL, .start_to_close = s, .attempts_max = HF_OFF)));
    HF_TRY(tell(t, hf_activity_run("flaky", in, NULL, .start_to_close = s, .attempts_max = 2)));
    HF_TRY(tell(t, hf_activity_run("flaky", in, NULL, .start_to_close = s)));
    HF_TRY(tell(t, hf_activity_run("flaky", in, NULL, .start_to_close = s, .retry_coefficient = -1)));
    return tell(t, hf_activity_run("flaky", in, NULL, .start_to_close = s, .retry_coefficient = 1.5));
}

static inline hf_status replay_attempts(hf_payload in, hf_payload *ret_out)
{
    told before = {.len = 0};
    told after = {.len = 0};
    HF_TRY(attempts_round(&before, in));
    HF_TRY(hf_signal_wait("go", NULL));
    HF_TRY(attempts_round(&after, in));
    return hf_payload_printf(ret_out, "%s\n%s", before.text, after.text);
}

#endif
