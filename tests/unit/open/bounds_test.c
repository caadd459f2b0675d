/* What a workflow asks for and the engine would refuse: the workflow's code is told, in a sentence, and the run goes on. If it
 * were the engine that refused, the workflow task would fail, and be tried again for ever. On the real engine, in virtual time;
 * every run is played from its history at every step, too, and says the same. */
#include "support/support.h"

#include "base/base.h"
#include "history/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char long_text[HF_ID_LEN_MAX + 2]; /* one byte more than an id may have */
static char fitting_text[HF_ID_LEN_MAX + 1];
static char unpolled_queue[HF_QUEUE_LEN_MAX + 2]; /* a worker could not poll it: one byte more than a queue may have */
static char big[HF_PAYLOAD_LEN_MAX + 1];
static char long_word[HF_PAYLOAD_LEN_MAX + 1]; /* the longest text that fits, with its NUL */

/* What a workflow noted; the last run of it counts. */
static char notes[4096];
static size_t notes_len;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(notes + notes_len, sizeof notes - notes_len, format, args);
    va_end(args);
    notes_len += len > 0 ? (size_t)len : 0;
}

/* ---- A worker and the engine ------------------------------------------------------------------------------------------ */

typedef struct stage {
    hf_function main; /* the workflow */
    int cached_max;
    hf_status (*meanwhile)(hf_execution *execution); /* NULL = just wait for the result */
    hf_payload in;
    char result[1024]; /* what came of it */
} stage;

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    if (in.len > 100) {
        return hf_payload_printf(ret_out, "%zu", in.len);
    }
    return hf_payload_copy(in, ret_out);
}

/* Ends when it is told to, by its heartbeats. */
static hf_status linger(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    for (;;) {
        HF_TRY(hf_activity_heartbeat(hf_payload_none()));
        HF_TRY(hf_sleep(hf_seconds(1)));
    }
}

static hf_status no_bytes(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    *ret_out = (hf_payload){NULL, 5, HF_ENCODING_JSON_TEXT, NULL};
    return HF_OK;
}

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status ask(stage *s, hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(service, "main", s->in, &execution, .id = "w", .task_queue = "q"));
    if (s->meanwhile != NULL) {
        HF_TRY(s->meanwhile(execution));
    }
    hf_status status = hf_result(execution, &out, .timeout = hf_hours(1));
    if (status == HF_OK) {
        (void)snprintf(s->result, sizeof s->result, "%.900s", out.data != NULL ? (const char *)out.data : "nothing");
    } else {
        (void)snprintf(s->result, sizeof s->result, "%s: %.900s", hf_status_name(status), hf_error_text());
    }
    return HF_OK;
}

static hf_status play_main(void *arg)
{
    stage *s = arg;
    hf_service *service = NULL;
    hf_worker *worker = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker, .cached_max = s->cached_max));
    HF_TRY(hf_worker_add_workflow(worker, "main", s->main));
    HF_TRY(hf_worker_add_activity(worker, "echo", echo, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "linger", linger, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(worker, "no_bytes", no_bytes, .on_fiber = true));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, run_worker, worker));
        HF_TRY(ask(s, service));
        HF_TRY(hf_worker_stop(worker));
        HF_TRY(hf_join(scope));
    }
    HF_TRY(hf_worker_free(worker));
    return hf_close(service);
}

/* With every run kept in memory, and with none. */
static void play(stage s, const char *result, const char *noted)
{
    static const int CACHED[] = {0, HF_OFF};
    for (size_t i = 0; i < HF_COUNT_OF(CACHED); i++) {
        s.cached_max = CACHED[i];
        notes_len = 0;
        notes[0] = '\0';
        assert_int_equal(hf_sim_run(1, 2, play_main, &s, NULL), HF_OK);
        assert_string_equal(s.result, result);
        if (noted != NULL) {
            assert_string_equal(notes, noted);
        }
    }
}

/* ---- Options of activities -------------------------------------------------------------------------------------------- */

static const char *cut(const char *text)
{
    static char room[200];
    (void)snprintf(room, sizeof room, "%.160s", text);
    return room;
}

#define REFUSED(...)                                                                             \
    do {                                                                                         \
        hf_status status_ = hf_activity_run(__VA_ARGS__);                                        \
        if (status_ == HF_ERR_EVICTED) {                                                         \
            return status_;                                                                      \
        }                                                                                        \
        note("%s: %s\n", hf_status_name(status_), status_ != HF_OK ? cut(hf_error_text()) : ""); \
    } while (0)

static hf_status bad_options(hf_payload in, hf_payload *ret_out)
{
    notes_len = 0;
    hf_span s = hf_seconds(5);
    REFUSED("", in, NULL, .start_to_close = s);
    REFUSED(long_text, in, NULL, .start_to_close = s);
    REFUSED("echo", in, NULL, .start_to_close = s, .id = long_text);
    REFUSED("echo", in, NULL, .start_to_close = s, .id = "");
    REFUSED("echo", in, NULL, .start_to_close = s, .task_queue = long_text);
    REFUSED("echo", in, NULL, .start_to_close = s, .task_queue = unpolled_queue);
    REFUSED("echo", in, NULL, .start_to_close = s, .task_queue = "");
    REFUSED("echo", in, NULL);
    REFUSED("echo", in, NULL, .start_to_close = HF_SPAN_UNLIMITED);
    REFUSED("echo", in, NULL, .start_to_close = s, .retry_coefficient = 0.5);
    REFUSED("echo", in, NULL, .start_to_close = s, .retry_coefficient = 1e7);
    REFUSED("echo", in, NULL, .start_to_close = s, .retry_coefficient = __builtin_inf());
    REFUSED("echo", in, NULL, .start_to_close = s, .retry_initial = s, .retry_max = hf_seconds(4));
    REFUSED("echo", in, NULL, .start_to_close = s, .retry_max = hf_milliseconds(500));
    REFUSED("echo", hf_payload_of_bytes(big, sizeof big), NULL, .start_to_close = s);
    REFUSED("echo", in, NULL, .start_to_close = s, .final_types = (const char *const[]){long_word, NULL});
    /* What is taken, at its bounds. */
    HF_TRY(hf_activity_run("echo", hf_payload_of_bytes(big, sizeof big - 1), ret_out, .start_to_close = s,
                           .id = fitting_text, .retry_coefficient = 1, .retry_initial = s, .retry_max = s));
    return HF_OK;
}

static void a_workflow_is_told_of_options_that_make_no_sense(void **state)
{
    (void)state;
    play((stage){.main = bad_options}, "2097152",
         "HF_ERR_INVALID: an activity's name has 1 to 1000 bytes\n"
         "HF_ERR_INVALID: an activity's name has 1 to 1000 bytes\n"
         "HF_ERR_INVALID: activity 'echo': .id has 1 to 1000 bytes\n"
         "HF_ERR_INVALID: activity 'echo': .id has 1 to 1000 bytes\n"
         "HF_ERR_INVALID: activity 'echo': .task_queue has 1 to 963 bytes\n"
         "HF_ERR_INVALID: activity 'echo': .task_queue has 1 to 963 bytes\n"
         "HF_ERR_INVALID: activity 'echo': .task_queue has 1 to 963 bytes\n"
         "HF_ERR_INVALID: activity 'echo' needs .start_to_close or .schedule_to_close: a time limit\n"
         "HF_ERR_INVALID: activity 'echo' has no time limit: set .start_to_close or .schedule_to_close\n"
         "HF_ERR_INVALID: activity 'echo': .retry_coefficient is 0.5: it must be 1 to 1000000\n"
         "HF_ERR_INVALID: activity 'echo': .retry_coefficient is 1e+07: it must be 1 to 1000000\n"
         "HF_ERR_INVALID: activity 'echo': .retry_coefficient is inf: it must be 1 to 1000000\n"
         "HF_ERR_INVALID: activity 'echo': .retry_max is 4 s, below .retry_initial of 5 s\n"
         "HF_ERR_INVALID: activity 'echo': .retry_max is 0.5 s, below .retry_initial of 1 s, the default\n"
         "HF_ERR_TOO_BIG: the input of activity 'echo' has 2097153 bytes, at most 2097152 are taken\n"
         "HF_ERR_TOO_BIG: activity 'echo': .final_types has more than 2097152 bytes\n");
}

/* ---- Ids in use ------------------------------------------------------------------------------------------------------- */

static hf_status ask_linger(void *arg)
{
    return hf_activity_run("linger", hf_payload_none(), NULL, .start_to_close = hf_hours(9),
                           .heartbeat = hf_seconds(10), .on_cancel = HF_CANCEL_TRY, .id = arg);
}

/* "own" is an id of its own; "6" is the number of the activity that comes in between, too; NULL: an activity has its number, 7. All
 * are in use until the history shows their end, also when nobody waits for them any more. */
static hf_status same_ids(hf_payload in, hf_payload *ret_out)
{
    static const char *const IDS[] = {"own", "6", NULL};
    notes_len = 0;
    hf_span s = hf_seconds(5);
    for (size_t i = 0; i < HF_COUNT_OF(IDS); i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        HF_TRY(hf_fork(scope, ask_linger, (void *)(uintptr_t)IDS[i]));
        HF_TRY(hf_yield());
        const char *id = IDS[i] != NULL ? IDS[i] : "7";
        REFUSED("echo", in, NULL, .start_to_close = s, .id = id); /* of the same workflow task */
        HF_TRY(hf_activity_run("echo", in, NULL, .start_to_close = s, .id = "else"));
        REFUSED("echo", in, NULL, .start_to_close = s, .id = id); /* of an earlier one */
        if (i == 1) {
            REFUSED("echo", in, NULL, .start_to_close = s); /* it would have number 6 */
        }
        HF_TRY(hf_scope_cancel(scope));
        HF_IGNORE(hf_join(scope));
        REFUSED("echo", in, NULL, .start_to_close = s, .id = id); /* it was canceled, but has not ended */
        HF_TRY(hf_sleep(hf_minutes(5)));
        HF_TRY(hf_activity_run("echo", in, ret_out, .start_to_close = s, .id = id));
    }
    return HF_OK;
}

static void an_id_in_use_is_refused_to_the_workflow(void **state)
{
    (void)state;
#define IN_USE(id) "HF_ERR_EXISTS: activity 'echo': another activity with the id '" id "' has not ended\n"
    play((stage){.main = same_ids, .in = hf_payload_of_json("7")}, "7",
         IN_USE("own") IN_USE("own") IN_USE("own") IN_USE("6") IN_USE("6") IN_USE("6") IN_USE("6") IN_USE("7")
             IN_USE("7") IN_USE("7"));
}

/* ---- As many as there may be ------------------------------------------------------------------------------------------ */

typedef struct counts {
    int fine;
    int refused;
    bool sleeps;
    char text[200];
} counts;

static hf_status one_of_many(void *arg)
{
    counts *c = arg;
    hf_status status = c->sleeps ? hf_sleep(hf_seconds(3))
                                 : hf_activity_run("echo", hf_payload_none(), NULL, .start_to_close = hf_seconds(5));
    c->fine += status == HF_OK;
    c->refused += status == HF_ERR_LIMIT;
    if (status == HF_ERR_LIMIT) {
        (void)snprintf(c->text, sizeof c->text, "%.190s", hf_error_text());
    }
    return status == HF_ERR_LIMIT ? HF_OK : status;
}

static hf_status too_many(hf_payload in, hf_payload *ret_out)
{
    counts c = {.sleeps = ((const char *)in.data)[0] == '1'};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < HF_PENDING_MAX + 3; i++) {
        HF_TRY(hf_fork(scope, one_of_many, &c));
    }
    HF_TRY(hf_yield());
    if (c.sleeps) {
        HF_AUTO(hf_scope_close) hf_scope *late = NULL;
        HF_CHECK(hf_scope_open(&late, .timeout = hf_seconds(1)) == HF_OK);
    }
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "\"%d fine, %d not: %s\"", c.fine, c.refused, c.text);
}

static void the_activity_that_is_one_too_many_is_refused_to_the_workflow(void **state)
{
    (void)state;
    play((stage){.main = too_many, .in = hf_payload_of_json("0")},
         "\"2000 fine, 3 not: activity 'echo': a workflow has at most 2000 activities at once\"", NULL);
}

static void a_workflow_may_have_any_number_of_timers(void **state)
{
    (void)state;
    play((stage){.main = too_many, .in = hf_payload_of_json("1")}, "\"2003 fine, 0 not: \"", NULL);
}

static hf_status nothing(void *arg)
{
    (void)arg;
    return HF_OK;
}

/* A child that is to begin later has a timer, too. */
static hf_status too_many_later(hf_payload in, hf_payload *ret_out)
{
    int refused = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < HF_PENDING_MAX + 3; i++) {
        hf_status status = hf_fork(scope, nothing, NULL, .delay = hf_seconds(3));
        refused += status != HF_OK;
    }
    HF_TRY(hf_join(scope));
    HF_TRY(hf_fork(scope, nothing, NULL, .delay = hf_seconds(3))); /* there is room again */
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "\"%d refused\"", refused);
}

static void a_workflow_may_have_any_number_of_delayed_children(void **state)
{
    (void)state;
    play((stage){.main = too_many_later}, "\"0 refused\"", NULL);
}

/* ---- Spans ------------------------------------------------------------------------------------------------------------ */

static hf_status odd_sleeps(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_sleep(hf_nanoseconds(-5)));
    HF_TRY(hf_sleep(hf_nanoseconds(0)));
    HF_TRY(hf_sleep(hf_nanoseconds(INT64_MIN)));
    hf_status status = hf_signal_wait(long_text, NULL, .timeout = hf_seconds(5));
    if (status != HF_ERR_INVALID) {
        return status;
    }
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(60)));
    HF_IGNORE(hf_sleep(HF_SPAN_UNLIMITED)); /* the scope ends it */
    status = hf_join(scope);
    return status == HF_ERR_TIMEOUT ? hf_payload_printf(ret_out, "\"a minute\"") : status;
}

/* One call with a span: what it says, in the notes. */
typedef struct spans {
    hf_chan *chan;
    hf_mutex *mutex;
    hf_sem *sem;
    hf_cond *cond;
    hf_keylock *keys;
    hf_flow *flow;
} spans;

static hf_status take_item(void *ctx, const void *value)
{
    (void)ctx;
    (void)value;
    return HF_OK;
}

static hf_status with_chan(const spans *s, hf_span span)
{
    char value = 0;
    return hf_chan_recv(s->chan, &value, .timeout = span);
}

static hf_status with_send(const spans *s, hf_span span)
{
    return hf_chan_send(s->chan, "x", .timeout = span);
}

static hf_status with_select(const spans *s, hf_span span)
{
    char value = 0;
    size_t idx = 0;
    hf_case cases[] = {{HF_CASE_RECV, s->chan, &value, HF_OK}};
    return hf_select(cases, 1, &idx, .timeout = span);
}

static hf_status with_mutex(const spans *s, hf_span span)
{
    hf_status status = hf_mutex_lock(s->mutex, .timeout = span);
    return status == HF_OK ? hf_mutex_unlock(s->mutex) : status;
}

static hf_status with_sem(const spans *s, hf_span span)
{
    return hf_sem_acquire(s->sem, 1, .timeout = span);
}

static hf_status with_cond(const spans *s, hf_span span)
{
    HF_TRY(hf_mutex_lock(s->mutex));
    hf_status status = hf_cond_wait(s->cond, s->mutex, .timeout = span);
    (void)hf_mutex_unlock(s->mutex);
    return status;
}

static hf_status with_key(const spans *s, hf_span span)
{
    HF_AUTO(hf_key_unlock) hf_key_guard *guard = NULL;
    return hf_keylock_lock(s->keys, "k", 1, &guard, .timeout = span);
}

static hf_status with_collector(const spans *s, hf_span span)
{
    char value = 0;
    HF_AUTO(hf_collector_close) hf_collector *collector = NULL;
    HF_TRY(hf_collector_open(s->flow, &collector));
    return hf_collector_next(collector, &value, .timeout = span);
}

static hf_status with_flow(const spans *s, hf_span span)
{
    return hf_flow_collect(s->flow, take_item, NULL, .timeout = span);
}

static hf_status with_signal(const spans *s, hf_span span)
{
    (void)s;
    return hf_signal_wait("never", NULL, .timeout = span);
}

static hf_status with_sleep(const spans *s, hf_span span)
{
    (void)s;
    return hf_sleep(span);
}

static hf_status with_scope(const spans *s, hf_span span)
{
    (void)s;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    return hf_scope_open(&scope, .timeout = span);
}

static hf_status with_shield(const spans *s, hf_span span)
{
    (void)s;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    return hf_shield_open(span, &shield);
}

static hf_status with_delay(const spans *s, hf_span span)
{
    (void)s;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, nothing, NULL, .delay = span));
    return hf_join(scope);
}

/* `negative`: what the verb says then, at once. `waits`: it has to wait here, and does so for the shortest time that there is. */
static const struct {
    const char *name; /* and how the sentence calls the span */
    const char *what;
    hf_status (*call)(const spans *s, hf_span span);
    hf_status negative;
    hf_status shortest;
} SPANS[] = {
    {"hf_chan_recv", ".timeout", with_chan, HF_ERR_TIMEOUT, HF_ERR_TIMEOUT},
    {"hf_chan_send", ".timeout", with_send, HF_ERR_TIMEOUT, HF_ERR_TIMEOUT},
    {"hf_select", ".timeout", with_select, HF_ERR_TIMEOUT, HF_ERR_TIMEOUT},
    {"hf_mutex_lock", ".timeout", with_mutex, HF_OK, HF_OK}, /* it is free: the span is looked at nevertheless */
    {"hf_sem_acquire", ".timeout", with_sem, HF_ERR_TIMEOUT, HF_ERR_TIMEOUT},
    {"hf_cond_wait", ".timeout", with_cond, HF_ERR_TIMEOUT, HF_ERR_TIMEOUT},
    {"hf_keylock_lock", ".timeout", with_key, HF_OK, HF_OK},
    {"hf_collector_next", ".timeout", with_collector, HF_ERR_TIMEOUT, HF_ERR_TIMEOUT},
    {"hf_flow_collect", ".timeout", with_flow, HF_ERR_TIMEOUT, HF_ERR_TIMEOUT},
    {"hf_signal_wait", ".timeout", with_signal, HF_ERR_TIMEOUT, HF_ERR_TIMEOUT},
    {"hf_sleep", "the span", with_sleep, HF_OK, HF_OK},
    {"hf_scope_open", ".timeout", with_scope, HF_OK, HF_OK},
    {"hf_shield_open", "the bound", with_shield, HF_ERR_MISUSE, HF_OK},
    {"hf_fork", ".delay", with_delay, HF_OK, HF_OK},
};

/* How many timers the history has had so far, by their numbers: the next one that is started says it. */
static hf_status each_span(const spans *s)
{
    for (size_t i = 0; i < HF_COUNT_OF(SPANS); i++) {
        static const int64_t TINY[] = {1, 30, HF_SPAN_NS_MIN - 1};
        char sentence[200];
        for (size_t k = 0; k < HF_COUNT_OF(TINY); k++) {
            hf_status status = SPANS[i].call(s, hf_nanoseconds(TINY[k]));
            if (status == HF_ERR_EVICTED) {
                return status;
            }
            (void)snprintf(sentence, sizeof sentence, "%s: %s is %lld ns: ", SPANS[i].name, SPANS[i].what,
                           (long long)TINY[k]);
            HF_CHECK_SAY(status == HF_ERR_INVALID && strncmp(hf_error_text(), sentence, strlen(sentence)) == 0,
                         "%s: %s", hf_status_name(status), hf_error_text());
            HF_CHECK((strstr(hf_error_text(), "give it a unit, hf_seconds(30)") != NULL) == (TINY[k] == 30));
        }
        hf_time before = hf_wall_now(NULL);
        hf_status status = SPANS[i].call(s, hf_nanoseconds(-1));
        HF_CHECK_SAY(status == SPANS[i].negative, "%s with a negative span: %s", SPANS[i].name, hf_status_name(status));
        HF_CHECK_SAY(hf_wall_now(NULL).ns == before.ns, "%s with a negative span took a step", SPANS[i].name);
        status = SPANS[i].call(s, hf_milliseconds(1));
        if (status == HF_ERR_EVICTED) {
            return status;
        }
        HF_CHECK_SAY(status == SPANS[i].shortest, "%s with a millisecond: %s", SPANS[i].name, hf_status_name(status));
    }
    return HF_OK;
}

static hf_status odd_spans(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keys = NULL;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_chan_new(1, &chan));
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_sem_new(0, &sem));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_keylock_new(&keys));
    HF_TRY(hf_flow_new(1, &flow));
    HF_TRY(each_span(&(spans){chan, mutex, sem, cond, keys, flow}));
    return hf_payload_printf(ret_out, "\"each\"");
}

static void a_workflow_is_told_of_a_span_without_a_unit(void **state)
{
    (void)state;
    play((stage){.main = odd_spans}, "\"each\"", NULL);
}

/* What is left until a deadline is a span that can be waited for, down to the last moment, and never 0, which is no bound. */
static hf_status last_moments(hf_payload in, hf_payload *ret_out)
{
    static const int64_t LEFT[] = {5, HF_SPAN_NS_MIN - 1, 1, 0, -7};
    (void)in;
    int timeouts = 0;
    for (size_t i = 0; i < HF_COUNT_OF(LEFT); i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(60)));
        hf_time now = hf_wall_now(NULL);
        hf_time due = {now.ns + LEFT[i]};
        hf_status status = hf_signal_wait("never", NULL, .timeout = hf_time_until(now, due));
        if (status == HF_ERR_EVICTED) {
            return status;
        }
        timeouts += status == HF_ERR_TIMEOUT;
        status = hf_sleep(hf_nanoseconds(hf_time_left().ns - LEFT[i])); /* wakes so shortly before the deadline */
        if (status == HF_OK) {
            status = hf_signal_wait("never", NULL, .timeout = hf_time_left());
        }
        if (status == HF_ERR_EVICTED) {
            return status;
        }
        HF_CHECK_SAY(status == HF_ERR_TIMEOUT || status == HF_ERR_CANCELED, "%s: %s", hf_status_name(status),
                     hf_error_text());
    }
    return hf_payload_printf(ret_out, "%d", timeouts);
}

static void what_is_left_until_a_time_can_be_waited_for(void **state)
{
    (void)state;
    play((stage){.main = last_moments}, "5", NULL);
}

static hf_status odd_bounds(hf_payload in, hf_payload *ret_out)
{
    notes_len = 0;
    hf_span s = hf_seconds(5);
    hf_span tiny = hf_nanoseconds(30);
    hf_span less = hf_nanoseconds(-1);
    REFUSED("echo", in, NULL, .start_to_close = tiny);
    REFUSED("echo", in, NULL, .schedule_to_close = hf_microseconds(999));
    REFUSED("echo", in, NULL, .start_to_close = s, .schedule_to_start = tiny);
    REFUSED("echo", in, NULL, .start_to_close = s, .heartbeat = tiny);
    REFUSED("echo", in, NULL, .start_to_close = s, .retry_initial = tiny);
    REFUSED("echo", in, NULL, .start_to_close = s, .retry_max = tiny);
    REFUSED("echo", in, NULL, .start_to_close = less, .schedule_to_close = s);
    REFUSED("echo", in, NULL, .start_to_close = s, .schedule_to_close = less);
    REFUSED("echo", in, NULL, .start_to_close = s, .schedule_to_start = less);
    REFUSED("echo", in, NULL, .start_to_close = s, .heartbeat = less);
    REFUSED("echo", in, NULL, .start_to_close = s, .retry_initial = less);
    REFUSED("echo", in, NULL, .start_to_close = s, .retry_max = less);
    return hf_activity_run("echo", in, ret_out, .start_to_close = hf_milliseconds(1));
}

static void a_workflow_is_told_of_bounds_without_a_unit(void **state)
{
    (void)state;
#define OF_ECHO "HF_ERR_INVALID: activity 'echo': "
#define WITHOUT " is 30 ns: give it a unit, hf_seconds(30)\n"
#define NEGATIVE " is negative: leave it out, or give a time\n"
    play((stage){.main = odd_bounds, .in = hf_payload_of_json("7")}, "7",
         OF_ECHO ".start_to_close" WITHOUT                                                      /**/
             OF_ECHO ".schedule_to_close is 999000 ns: at least a millisecond is needed here\n" /**/
         OF_ECHO ".schedule_to_start" WITHOUT                                                   /**/
             OF_ECHO ".heartbeat" WITHOUT                                                       /**/
                 OF_ECHO ".retry_initial" WITHOUT                                               /**/
                     OF_ECHO ".retry_max" WITHOUT                                               /**/
                         OF_ECHO ".start_to_close" NEGATIVE                                     /**/
                             OF_ECHO ".schedule_to_close" NEGATIVE                              /**/
                                 OF_ECHO ".schedule_to_start" NEGATIVE                          /**/
                                     OF_ECHO ".heartbeat" NEGATIVE                              /**/
                                         OF_ECHO ".retry_initial" NEGATIVE                      /**/
                                             OF_ECHO ".retry_max" NEGATIVE);
}

static void sleeping_for_less_than_nothing_or_for_ever_is_fine(void **state)
{
    (void)state;
    play((stage){.main = odd_sleeps}, "\"a minute\"", NULL);
}

/* ---- Results ---------------------------------------------------------------------------------------------------------- */

static hf_status big_result(hf_payload in, hf_payload *ret_out)
{
    hf_status status = ((const char *)in.data)[0] == '1' ? hf_sleep(hf_hours(20)) : HF_OK;
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    HF_TRY(hf_payload_copy(hf_payload_of_bytes(big, sizeof big), ret_out));
    return status;
}

static hf_status cancel_it(hf_execution *execution)
{
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_cancel(execution);
}

static void a_result_that_is_too_big_fails_the_run(void **state)
{
    (void)state;
    static const char FAILURE[] =
        "HF_ERR_FAILED: the result of the workflow has 2097153 bytes, at most 2097152 are taken";
    play((stage){.main = big_result, .in = hf_payload_of_json("0")}, FAILURE, NULL);
    play((stage){.main = big_result, .in = hf_payload_of_json("1"), .meanwhile = cancel_it}, FAILURE, NULL);
}

/* ---- Payloads without bytes -------------------------------------------------------------------------------------------- */

static const hf_payload NO_BYTES = {NULL, 5, HF_ENCODING_JSON_TEXT, NULL};

static hf_status empty_handed(hf_payload in, hf_payload *ret_out)
{
    notes_len = 0;
    (void)in;
    REFUSED("echo", NO_BYTES, NULL, .start_to_close = hf_seconds(5));
    hf_status status = hf_activity_run("no_bytes", in, NULL, .start_to_close = hf_seconds(5), .attempts_max = 1);
    if (status == HF_ERR_EVICTED) {
        return status;
    }
    note("%s: %s\n", hf_status_name(status), hf_error()->cause != NULL ? hf_error()->cause->message : "no cause");
    *ret_out = NO_BYTES;
    return HF_OK;
}

static hf_status signal_nothing(hf_execution *execution)
{
    HF_CHECK(hf_signal(execution, "s", NO_BYTES) == HF_ERR_MISUSE);
    return HF_OK;
}

static void a_payload_without_its_bytes_is_refused_everywhere(void **state)
{
    (void)state;
    play((stage){.main = empty_handed, .meanwhile = signal_nothing},
         "HF_ERR_FAILED: the result of the workflow has a length of 5 bytes, but its data is NULL",
         "HF_ERR_MISUSE: the input of activity 'echo' has a length of 5 bytes, but its data is NULL\n"
         "HF_ERR_FAILED: the result of the activity has a length of 5 bytes, but its data is NULL\n");
    hf_service *service = NULL;
    assert_int_equal(hf_open("memory:", &service), HF_OK);
    assert_int_equal(hf_start(service, "main", NO_BYTES, NULL), HF_ERR_MISUSE);
    assert_string_equal(hf_error_text(), "the input of the workflow has a length of 5 bytes, but its data is NULL");
    hf_payload copy = hf_payload_none();
    assert_int_equal(hf_payload_copy(NO_BYTES, &copy), HF_ERR_MISUSE);
    assert_int_equal(hf_close(service), HF_OK);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_workflow_is_told_of_options_that_make_no_sense),
        cmocka_unit_test(an_id_in_use_is_refused_to_the_workflow),
        cmocka_unit_test(the_activity_that_is_one_too_many_is_refused_to_the_workflow),
        cmocka_unit_test(a_workflow_may_have_any_number_of_timers),
        cmocka_unit_test(a_workflow_may_have_any_number_of_delayed_children),
        cmocka_unit_test(sleeping_for_less_than_nothing_or_for_ever_is_fine),
        cmocka_unit_test(a_workflow_is_told_of_a_span_without_a_unit),
        cmocka_unit_test(what_is_left_until_a_time_can_be_waited_for),
        cmocka_unit_test(a_workflow_is_told_of_bounds_without_a_unit),
        cmocka_unit_test(a_result_that_is_too_big_fails_the_run),
        cmocka_unit_test(a_payload_without_its_bytes_is_refused_everywhere),
    };
    memset(long_text, 'x', sizeof long_text - 1);
    memset(unpolled_queue, 'x', sizeof unpolled_queue - 1);
    memset(long_word, 'x', sizeof long_word - 1);
    memset(fitting_text, 'x', sizeof fitting_text - 1);
    return hf_test_main("bounds", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
