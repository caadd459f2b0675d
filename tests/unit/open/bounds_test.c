/* What a workflow asks for and the engine would refuse: the workflow's code is told, in a sentence, and the run goes on. If it
 * were the engine that refused, the workflow task would fail, and be tried again for ever. On the real engine, in virtual time;
 * every run is played from its history at every step, too, and says the same. */
#include "support/support.h"

#include "base/base.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char long_text[HF_ID_LEN_MAX + 2]; /* one byte more than an id may have */
static char fitting_text[HF_ID_LEN_MAX + 1];
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
    return hf_payload_copy(ret_out, in);
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
         "HF_ERR_INVALID: activity 'echo': .task_queue has at most 1000 bytes\n"
         "HF_ERR_INVALID: activity 'echo' needs .start_to_close or .schedule_to_close: how long it may take\n"
         "HF_ERR_INVALID: activity 'echo' may take for ever: it needs a bound that passes one day\n"
         "HF_ERR_INVALID: activity 'echo': .retry_coefficient is 0.5, not 1 to 1000000: pauses grow\n"
         "HF_ERR_INVALID: activity 'echo': .retry_coefficient is 1e+07, not 1 to 1000000: pauses grow\n"
         "HF_ERR_INVALID: activity 'echo': .retry_coefficient is inf, not 1 to 1000000: pauses grow\n"
         "HF_ERR_INVALID: activity 'echo': .retry_max is 4 s, below .retry_initial of 5 s\n"
         "HF_ERR_INVALID: activity 'echo': .retry_max is 0.5 s, below .retry_initial of 1 s, the default\n"
         "HF_ERR_TOO_BIG: the input of activity 'echo' has 2097153 bytes, at most 2097152 are taken\n"
         "HF_ERR_TOO_BIG: activity 'echo': .final_types has more than 2097152 bytes\n");
}

/* ---- Ids in use ------------------------------------------------------------------------------------------------------- */

static hf_status ask_linger(void *arg)
{
    return hf_activity_run("linger", hf_payload_none(), NULL, .start_to_close = hf_hours(9),
                           .heartbeat = hf_seconds(10), .id = arg);
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
        (void)hf_join(scope);
        REFUSED("echo", in, NULL, .start_to_close = s, .id = id); /* it was canceled, but has not ended */
        HF_TRY(hf_sleep(hf_minutes(5)));
        HF_TRY(hf_activity_run("echo", in, ret_out, .start_to_close = s, .id = id));
    }
    return HF_OK;
}

static void an_id_in_use_is_refused_to_the_workflow(void **state)
{
    (void)state;
#define IN_USE(id) "HF_ERR_EXISTS: activity 'echo': another one with the id '" id "' has not ended\n"
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
        hf_scope *late = NULL;
        HF_CHECK(hf_scope_open(&late, .timeout = hf_seconds(1)) != HF_OK);
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

static void the_timer_that_is_one_too_many_is_refused_to_the_workflow(void **state)
{
    (void)state;
    play(
        (stage){.main = too_many, .in = hf_payload_of_json("1")},
        "\"2000 fine, 3 not: a workflow has at most 2000 timers at once: what sleeps, or waits with a bound, has one\"",
        NULL);
}

static hf_status nothing(void *arg)
{
    (void)arg;
    return HF_OK;
}

/* A child that is to begin later has a timer, too: without one it is not made. */
static hf_status too_many_later(hf_payload in, hf_payload *ret_out)
{
    int refused = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < HF_PENDING_MAX + 3; i++) {
        hf_status status = hf_fork(scope, nothing, NULL, .delay = hf_seconds(3));
        refused += status == HF_ERR_LIMIT && strstr(hf_error_text(), "2000 timers at once") != NULL;
    }
    HF_TRY(hf_join(scope));
    HF_TRY(hf_fork(scope, nothing, NULL, .delay = hf_seconds(3))); /* there is room again */
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "\"%d refused\"", refused);
}

static void the_delayed_child_that_has_no_timer_is_refused_to_the_workflow(void **state)
{
    (void)state;
    play((stage){.main = too_many_later}, "\"3 refused\"", NULL);
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
    (void)hf_sleep(HF_SPAN_UNLIMITED); /* the scope ends it */
    status = hf_join(scope);
    return status == HF_ERR_TIMEOUT ? hf_payload_printf(ret_out, "\"a minute\"") : status;
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
    HF_TRY(hf_payload_copy(ret_out, hf_payload_of_bytes(big, sizeof big)));
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
         "HF_ERR_FAILED: the result of the workflow has a .len of 5, but its .data is NULL",
         "HF_ERR_MISUSE: the input of activity 'echo' has a .len of 5, but its .data is NULL\n"
         "HF_ERR_FAILED: the result of the activity has a .len of 5, but its .data is NULL\n");
    hf_service *service = NULL;
    assert_int_equal(hf_open("memory:", &service), HF_OK);
    assert_int_equal(hf_start(service, "main", NO_BYTES, NULL), HF_ERR_MISUSE);
    assert_string_equal(hf_error_text(), "the input of the workflow has a .len of 5, but its .data is NULL");
    hf_payload copy = hf_payload_none();
    assert_int_equal(hf_payload_copy(&copy, NO_BYTES), HF_ERR_MISUSE);
    assert_int_equal(hf_close(service), HF_OK);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_workflow_is_told_of_options_that_make_no_sense),
        cmocka_unit_test(an_id_in_use_is_refused_to_the_workflow),
        cmocka_unit_test(the_activity_that_is_one_too_many_is_refused_to_the_workflow),
        cmocka_unit_test(the_timer_that_is_one_too_many_is_refused_to_the_workflow),
        cmocka_unit_test(the_delayed_child_that_has_no_timer_is_refused_to_the_workflow),
        cmocka_unit_test(sleeping_for_less_than_nothing_or_for_ever_is_fine),
        cmocka_unit_test(a_result_that_is_too_big_fails_the_run),
        cmocka_unit_test(a_payload_without_its_bytes_is_refused_everywhere),
    };
    memset(long_text, 'x', sizeof long_text - 1);
    memset(long_word, 'x', sizeof long_word - 1);
    memset(fitting_text, 'x', sizeof fitting_text - 1);
    return hf_test_main("bounds", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
