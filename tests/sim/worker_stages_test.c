/* The order of an activation (src/worker/stages.h), as a table: the one in src/worker/README.md is that list, and what runs
 * follows it, in whichever order things came. On the real worker and engine, on virtual time.
 *
 * The workflow writes down what of it runs, and when its three conditions look. Things come while no worker is there, so
 * that one activation gets them all. What it must write down then follows from the stages alone (`expect`). */
#include "support/support.h"

#include "base/base.h"
#include "worker/stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table in the README -------------------------------------------------------------------------------------------- */

static const char *const LOOKS[] = {
#define LOOKS_TEXT(name, text) text,
    HF_WF_LOOKS_MAP(LOOKS_TEXT)
#undef LOOKS_TEXT
};

typedef struct row {
    const char *name;
    hf_wf_looks looks;
    const char *brings;
    const char *runs;
} row;

static const row ROWS[] = {
#define ROW_OF(stage, name, looks, brings, runs) {name, looks, brings, runs},
    HF_WF_STAGE_MAP(ROW_OF)
#undef ROW_OF
};

static void the_table_of_the_readme_is_the_list_of_stages(void **state)
{
    enum { README_LEN_MAX = 1 << 18 };
    char table[4096];
    size_t len = (size_t)snprintf(table, sizeof table,
                                  "| stage | what it brings | what runs | conditions look |\n|---|---|---|---|\n");
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(ROWS); i++) {
        len += (size_t)snprintf(table + len, sizeof table - len, "| %s | %s | %s | %s |\n", ROWS[i].name,
                                ROWS[i].brings, ROWS[i].runs, LOOKS[ROWS[i].looks]);
        assert_true(len < sizeof table);
    }
    FILE *file = fopen(HF_WORKER_README, "rb");
    assert_non_null(file);
    char *readme = calloc(1, README_LEN_MAX);
    assert_true(fread(readme, 1, README_LEN_MAX - 1, file) > 0);
    (void)fclose(file);
    if (strstr(readme, table) == NULL) {
        fail_msg("%s has not this table:\n%s", HF_WORKER_README, table);
    }
    free(readme);
}

/* ---- The workflow ------------------------------------------------------------------------------------------------------- */

enum { TRACE_LEN_MAX = 1500, THINGS = 6, SLOT_S = 10 };

typedef struct trace {
    char text[TRACE_LEN_MAX];
    bool is_signaled;
    bool has_passed; /* condition c */
    bool is_over;
    long timer_s; /* when it fires */
    long activity_s;
} trace;

static void note(trace *t, const char *word)
{
    size_t len = strlen(t->text);
    (void)snprintf(t->text + len, sizeof t->text - len, "%s ", word);
}

/* A condition looks. */
static bool look(trace *t, const char *word, bool is_true)
{
    note(t, word);
    return is_true;
}

static hf_status on_signal(void *arg, hf_payload in)
{
    trace *t = arg;
    (void)in;
    note(t, "signal");
    t->is_signaled = true;
    return HF_OK;
}

static hf_status on_end(void *arg, hf_payload in)
{
    (void)in;
    note(arg, "end");
    ((trace *)arg)->is_over = true;
    return HF_OK;
}

static hf_status on_update(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    note(arg, "update");
    return HF_OK;
}

/* Changes nothing: what it gives is what was written down before it. */
static hf_status on_query(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "\"%s\"", ((const trace *)arg)->text);
}

static hf_status wait_signal(void *arg)
{
    HF_TRY(hf_signal_wait("awaited", NULL));
    note(arg, "awaited");
    return HF_OK;
}

static hf_status wait_timer(void *arg)
{
    trace *t = arg;
    HF_TRY(hf_sleep(hf_seconds(t->timer_s)));
    note(t, "timer");
    HF_TRY(hf_activity_run_local("quick", hf_payload_none(), NULL, .start_to_close = hf_seconds(5)));
    note(t, "local");
    return HF_OK;
}

static hf_status wait_activity(void *arg)
{
    trace *t = arg;
    char seconds[32];
    (void)snprintf(seconds, sizeof seconds, "%ld", t->activity_s);
    HF_TRY(
        hf_activity_run("nap", hf_payload_of_json(seconds), NULL, .start_to_close = hf_hours(1), .task_queue = "naps"));
    note(t, "activity");
    return HF_OK;
}

/* Not shielded, as the others are. */
static hf_status wait_cancel(void *arg)
{
    hf_status status = hf_sleep(hf_days(2));
    if (status == HF_ERR_CANCELED) {
        note(arg, "cancel");
    }
    return status == HF_ERR_EVICTED ? status : HF_OK;
}

static hf_status condition_a(void *arg)
{
    trace *t = arg;
    HF_TRY(hf_wait_until(look(t, "a?", t->is_over)));
    note(t, "a!");
    return HF_OK;
}

static hf_status condition_b(void *arg)
{
    trace *t = arg;
    HF_TRY(hf_wait_until(look(t, "b?", t->has_passed || t->is_over)));
    note(t, "b!");
    return HF_OK;
}

static hf_status condition_c(void *arg)
{
    trace *t = arg;
    HF_TRY(hf_wait_until(look(t, "c?", t->is_signaled || t->is_over)));
    note(t, "c!");
    t->has_passed = true;
    return HF_OK;
}

static hf_status workflow(hf_payload in, hf_payload *ret_out)
{
    static hf_status (*const BODIES[])(void *) = {wait_signal, wait_timer,  wait_activity,
                                                  condition_a, condition_b, condition_c};
    trace *t = HF_WORKFLOW_NEW(trace);
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    char *rest = NULL;
    t->timer_s = strtol(in.data, &rest, 10);
    t->activity_s = strtol(rest, NULL, 10);
    note(t, hf_patched("new") ? "patched" : "old");
    HF_TRY(hf_on_signal("signal", on_signal, .arg = t));
    HF_TRY(hf_on_signal("end", on_end, .arg = t));
    HF_TRY(hf_on_update("update", on_update, .arg = t));
    HF_TRY(hf_on_query("trace", on_query, .arg = t));
    HF_TRY(hf_fork(hf_workflow_scope(), wait_cancel, t));
    HF_TRY(hf_shield_open(hf_days(1), &shield));
    HF_TRY(hf_scope_open(&scope));
    for (size_t i = 0; i < HF_COUNT_OF(BODIES); i++) {
        HF_TRY(hf_fork(scope, BODIES[i], t));
    }
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "\"%s\"", t->text);
}

static hf_status nap(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    return hf_sleep(hf_seconds(strtol(in.data, NULL, 10)));
}

static hf_status quick(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return HF_OK;
}

/* ---- What comes, and what the workflow must write down then --------------------------------------------------------------- */

static const struct {
    const char *word;
    hf_wf_stage stage;
} COMES[THINGS] = {
    {"signal", HF_WF_STAGE_SIGNALS}, {"update", HF_WF_STAGE_SIGNALS}, {"awaited", HF_WF_STAGE_SIGNALS},
    {"timer", HF_WF_STAGE_ENDS},     {"activity", HF_WF_STAGE_ENDS},  {"cancel", HF_WF_STAGE_ENDS},
};
enum { SIGNAL, UPDATE, AWAITED, TIMER, ACTIVITY, CANCEL };

typedef struct play {
    int order[THINGS]; /* indices of COMES */
    bool is_early;     /* what clients send comes before the first step, the rest before the second */
    bool evicts;       /* the second worker keeps no run */
    char answers[2][TRACE_LEN_MAX + 3];
    char expected[TRACE_LEN_MAX];
    char answer[TRACE_LEN_MAX]; /* of queries */
} play;

static play now;

static bool is_of_client(int thing)
{
    return thing != TIMER && thing != ACTIVITY;
}

/* The simple twin of a run. */
typedef struct twin {
    char text[TRACE_LEN_MAX];
    bool is_signaled;
    bool a_waits;
    bool b_waits;
    bool c_waits;
    bool is_over;
} twin;

static void write(twin *w, const char *word)
{
    size_t len = strlen(w->text);
    (void)snprintf(w->text + len, sizeof w->text - len, "%s ", word);
}

/* Conditions look in order, again and again until none passes. */
static void settle(twin *w)
{
    bool any = true;
    while (any) {
        any = false;
        if (w->a_waits) {
            write(w, w->is_over ? "a? a!" : "a?");
            any |= w->is_over;
            w->a_waits = !w->is_over;
        }
        if (w->b_waits) {
            bool passes = !w->c_waits || w->is_over;
            write(w, passes ? "b? b!" : "b?");
            any |= passes;
            w->b_waits = !passes;
        }
        if (w->c_waits) {
            bool passes = w->is_signaled || w->is_over;
            write(w, passes ? "c? c!" : "c?");
            any |= passes;
            w->c_waits = !passes;
        }
    }
}

/* One activation: stage by stage, and within a stage as things came. */
static void activate(twin *w, const char *start, bool takes_clients, bool takes_ends, const char *signal,
                     const char *local)
{
    for (int stage = 0; stage < HF_WF_STAGE_COUNT; stage++) {
        if (stage == HF_WF_STAGE_START && start != NULL) {
            write(w, start);
        }
        if (stage == HF_WF_STAGE_SIGNALS && signal != NULL) {
            write(w, signal);
            w->is_over = true;
        }
        for (int i = 0; i < 2 * THINGS; i++) {
            int thing = now.order[i % THINGS];
            bool is_turn =
                (thing == UPDATE) == (i >= THINGS); /* updates have their place behind the events of the task */
            if (is_turn && (int)COMES[thing].stage == stage && (is_of_client(thing) ? takes_clients : takes_ends)) {
                write(w, COMES[thing].word);
                w->is_signaled |= thing == SIGNAL;
            }
        }
        if (ROWS[stage].looks == HF_WF_LOOKS_AFTER) {
            settle(w);
        }
        if (stage == HF_WF_STAGE_LOCALS && local != NULL) {
            write(w, local);
            settle(w);
        }
    }
}

static void expect(void)
{
    twin w = {.a_waits = true, .b_waits = true, .c_waits = true};
    activate(&w, "patched a? b? c?", now.is_early, false, NULL, NULL);
    (void)snprintf(now.answer, sizeof now.answer, "%s", w.text);
    activate(&w, NULL, !now.is_early, true, NULL, now.is_early ? "local" : NULL);
    if (!now.is_early) { /* an update and queries were with it: it was answered before the local activity */
        (void)snprintf(now.answer, sizeof now.answer, "%s", w.text);
        activate(&w, NULL, false, false, NULL, "local");
    }
    activate(&w, NULL, false, false, "end", NULL);
    (void)snprintf(now.expected, sizeof now.expected, "%s", w.text);
}

/* ---- The play ------------------------------------------------------------------------------------------------------------- */

static hf_execution *asked; /* of the play at hand */

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status send_update(void *arg)
{
    (void)arg;
    hf_status status = hf_update(asked, "update", hf_payload_none(), NULL);
    HF_CHECK_SAY(status == HF_OK, "the update: %s", hf_error_text());
    return HF_OK;
}

static hf_status ask_trace(void *arg)
{
    char *answer = arg;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    hf_status status = hf_query(asked, "trace", hf_payload_none(), &out);
    (void)snprintf(answer, sizeof now.answers[0], "%s", status == HF_OK ? (const char *)out.data : hf_error_text());
    return HF_OK;
}

static hf_status come(hf_scope *calls, int thing)
{
    switch (thing) {
    case SIGNAL:
        return hf_signal(asked, "signal", hf_payload_none());
    case UPDATE:
        return hf_fork(calls, send_update, NULL);
    case AWAITED:
        return hf_signal(asked, "awaited", hf_payload_none());
    case CANCEL:
        return hf_cancel(asked);
    default:
        return HF_OK; /* comes by itself, at this time */
    }
}

static hf_status ask_twice(hf_scope *calls)
{
    for (int i = 0; i < 2; i++) {
        HF_TRY(hf_fork(calls, ask_trace, now.answers[i]));
    }
    return hf_sleep(hf_seconds(1));
}

/* What clients send; or all that comes, each in a time of its own. */
static hf_status come_all(hf_scope *calls, bool of_clients, bool in_slots)
{
    for (int i = 0; i < THINGS; i++) {
        HF_TRY(hf_sleep(in_slots ? hf_seconds(SLOT_S) : hf_milliseconds(10)));
        HF_TRY(of_clients ? come(calls, now.order[i]) : HF_OK);
    }
    return hf_sleep(hf_seconds(1));
}

static hf_status start(hf_service *service)
{
    char in[64];
    long at[THINGS];
    for (int i = 0; i < THINGS; i++) {
        at[now.order[i]] = (i + 1) * SLOT_S;
    }
    (void)snprintf(in, sizeof in, "%ld %ld", at[TIMER], at[ACTIVITY]);
    return hf_start(service, "workflow", hf_payload_of_json(in), &asked, .task_queue = "q", .id = "w");
}

static hf_status new_worker(hf_service *service, hf_scope *scope, bool evicts, hf_worker **ret_worker)
{
    HF_TRY(hf_worker_new(service, "q", ret_worker, .cached_max = evicts ? HF_OFF : 0));
    HF_TRY(hf_worker_add_workflow(*ret_worker, "workflow", workflow));
    HF_TRY(hf_worker_add_activity(*ret_worker, "quick", quick, .on_fiber = true));
    return hf_fork(scope, run_worker, *ret_worker);
}

static hf_status first_step(hf_service *service)
{
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(new_worker(service, scope, true, &worker)); /* without a queue of its own, where tasks would wait for it */
    HF_TRY(hf_sleep(hf_milliseconds(100)));
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static hf_status run_play(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *naps = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_AUTO(hf_scope_close) hf_scope *calls = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "naps", &naps));
    HF_TRY(hf_worker_add_activity(naps, "nap", nap, .on_fiber = true));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_scope_open(&calls));
    HF_TRY(hf_fork(scope, run_worker, naps));
    HF_TRY(start(service));
    execution = asked;
    if (now.is_early) {
        HF_TRY(come_all(calls, true, false));
        HF_TRY(ask_twice(calls));
    }
    HF_TRY(first_step(service));
    HF_TRY(come_all(calls, !now.is_early, true));
    if (!now.is_early) {
        HF_TRY(ask_twice(calls));
    }
    HF_TRY(new_worker(service, scope, now.evicts, &worker));
    HF_TRY(hf_sleep(hf_seconds(5)));
    HF_TRY(hf_join(calls));
    HF_TRY(hf_signal(execution, "end", hf_payload_none()));
    hf_status status = hf_result(execution, &out, .timeout = hf_hours(1));
    HF_CHECK_SAY(status == HF_OK, "it ended with %s: %s", hf_status_name(status), hf_error_text());
    char expected[TRACE_LEN_MAX + 3];
    (void)snprintf(expected, sizeof expected, "\"%s\"", now.expected);
    HF_CHECK_SAY(status != HF_OK || strcmp(out.data, expected) == 0, "it wrote\n%s\nnot\n%s", (const char *)out.data,
                 expected);
    (void)snprintf(expected, sizeof expected, "\"%s\"", now.answer);
    for (int i = 0; i < 2; i++) {
        HF_CHECK_SAY(strcmp(now.answers[i], expected) == 0, "query %d saw\n%s\nnot\n%s", i, now.answers[i], expected);
    }
    HF_TRY(hf_worker_stop(worker));
    HF_TRY(hf_worker_stop(naps));
    return hf_join(scope);
}

/* The `number`-th order of all things. */
static void permute(int number)
{
    bool is_taken[THINGS] = {false};
    int left = 1;
    for (int i = 2; i < THINGS; i++) {
        left *= i;
    }
    for (int i = 0; i < THINGS; i++) {
        int skip = number / left % (THINGS - i);
        int thing = 0;
        while (is_taken[thing] || skip > 0) {
            skip -= !is_taken[thing];
            thing++;
        }
        is_taken[thing] = true;
        now.order[i] = thing;
        left /= THINGS - 1 - i > 0 ? THINGS - 1 - i : 1;
    }
}

static void play_order(int number, bool is_early, bool evicts)
{
    now = (play){.is_early = is_early, .evicts = evicts};
    permute(number);
    expect();
    hf_status status = hf_sim_run(1 + (uint64_t)number, 1 + number % 2, run_play, NULL, NULL);
    HF_CHECK_SAY(status == HF_OK, "order %d: the play ended with %s: %s", number, hf_status_name(status),
                 hf_error_text());
}

enum { ORDERS = 720, STRIDE = 7 };

static void an_activation_goes_through_its_stages_whatever_came_first(void **state)
{
    (void)state;
    for (int number = 0; number < ORDERS; number += STRIDE) {
        play_order(number, false, number % 2 != 0);
    }
}

static void so_does_the_first_one(void **state)
{
    (void)state;
    for (int number = 0; number < ORDERS; number += STRIDE) {
        play_order(number, true, number % 2 != 0);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(the_table_of_the_readme_is_the_list_of_stages),
    cmocka_unit_test(an_activation_goes_through_its_stages_whatever_came_first),
    cmocka_unit_test(so_does_the_first_one),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_stages", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
