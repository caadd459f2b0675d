/* Many at once, and many that hang: the figures of docs/promises.md on virtual time, with the real worker and engine. Every
 * piece of work is done once. */
#include "support/support.h"

#include "base/base.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 1000, SLOTS = 200, HUNG = 200 };

static int counts[MANY + 1]; /* times that each was done */
static int64_t last_begun_ns;

/* ---- Activities and workflows ----------------------------------------------------------------------------------------- */

static int number_of(hf_payload in)
{
    long number = in.len > 0 ? strtol(in.data, NULL, 10) : 0;
    return HF_CHECK(number >= 0 && number <= MANY) ? (int)number : 0;
}

static hf_status block(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    last_begun_ns = hf_now(NULL).ns;
    __atomic_fetch_add(&counts[number_of(in)], 1, __ATOMIC_RELAXED);
    return hf_sleep(hf_milliseconds(100)); /* on a thread of the pool: it blocks it */
}

static bool may_end;

/* Hears neither of its timeout nor of a cancel. */
static hf_status hang(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_shield_open(hf_hours(100), &shield));
    while (!may_end) {
        HF_TRY(hf_sleep(hf_seconds(1)));
    }
    return HF_OK;
}

static hf_status run_block(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("block", in, ret_out, .start_to_close = hf_minutes(10));
}

static hf_status run_hang(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("hang", in, ret_out, .start_to_close = hf_seconds(1), .attempts_max = 1);
}

static hf_status sleep_a_second(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    HF_TRY(hf_sleep(hf_seconds(1)));
    counts[number_of(in)]++;
    return HF_OK;
}

static hf_status one_branch(void *arg)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", (int)(intptr_t)arg);
    return run_block(hf_payload_of_json(text), NULL);
}

static hf_status fan_out(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_scope_open(&scope));
    for (intptr_t i = 0; i < MANY; i++) {
        HF_TRY(hf_fork(scope, one_branch, (void *)i)); /* NOLINT: a number */
    }
    return hf_join(scope);
}

/* ---- The play ---------------------------------------------------------------------------------------------------------- */

static hf_service *service;
static hf_worker *worker;

static hf_status play(void *arg)
{
    hf_status (*body)(void) = *(hf_status(**)(void))arg;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL; /* it looks on while the runtime shuts down */
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *made = NULL;
    HF_TRY(hf_shield_open(hf_hours(1000), &shield));
    HF_TRY(hf_open("memory:", &opened));
    HF_TRY(hf_worker_new(opened, "q", &made));
    HF_TRY(hf_worker_add_workflow(made, "block", run_block));
    HF_TRY(hf_worker_add_workflow(made, "hang", run_hang));
    HF_TRY(hf_worker_add_workflow(made, "sleep", sleep_a_second));
    HF_TRY(hf_worker_add_workflow(made, "fan_out", fan_out));
    HF_TRY(hf_worker_add_activity(made, "block", block));
    HF_TRY(hf_worker_add_activity(made, "hang", hang));
    service = opened;
    worker = made;
    may_end = false;
    memset(counts, 0, sizeof counts);
    HF_TRY(hf_worker_start(made));
    hf_status status = body();
    may_end = true;
    HF_IGNORE(hf_sleep(hf_seconds(2)));
    return status;
}

static void play_with(hf_status (*body)(void), hf_watchdog_options watchdog, hf_fatal_hook fatal, hf_log_sink log)
{
    hf_env *env = hf_sim_begin(1);
    hf_runtime_options options = hf_sim_runtime_options(env, 1);
    options.watchdog = watchdog;
    options.fatal = fatal;
    options.log = log != NULL ? log : options.log;
    hf_status status = hf_run_with(play, &body, &options);
    HF_CHECK_SAY(status == HF_OK, "the play ended with %s: %s", hf_status_name(status), hf_error_text());
    hf_sim_end(env, NULL);
}

static void quiet_fatal(void *state, const char *message, int exit_code)
{
    (void)state;
    (void)exit_code;
    (void)hf_check_say(__FILE__, __LINE__, "%s", message);
}

static hf_status start(const char *type, int number, hf_execution **ret_run)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", number);
    return hf_start(service, type, hf_payload_of_json(text), ret_run, .task_queue = "q");
}

/* Starts many and waits for all. How long it took, of virtual time. */
static hf_status run_many(const char *type, int64_t *ret_ms)
{
    static hf_execution *runs[MANY];
    int64_t from = hf_now(NULL).ns;
    for (int i = 0; i < MANY; i++) {
        HF_TRY(start(type, i, &runs[i]));
    }
    for (int i = 0; i < MANY; i++) {
        HF_TRY(hf_result(runs[i], NULL));
        hf_execution_free(runs[i]);
    }
    *ret_ms = (hf_now(NULL).ns - from) / 1000000;
    return HF_OK;
}

static void check_once_each(void)
{
    for (int i = 0; i < MANY; i++) {
        HF_CHECK_SAY(counts[i] == 1, "number %d was done %d times", i, counts[i]);
    }
}

/* ---- A thousand --------------------------------------------------------------------------------------------------------- */

static hf_status block_a_thousand(void)
{
    int64_t ms = 0;
    HF_TRY(run_many("block", &ms));
    check_once_each();
    HF_CHECK_SAY(ms <= 3 * MANY * 100 / SLOTS / 2, "it took %lld ms", (long long)ms);
    return HF_OK;
}

static void a_thousand_runs_that_block_an_activity_share_the_slots(void **state)
{
    (void)state;
    play_with(block_a_thousand, (hf_watchdog_options){0}, quiet_fatal, NULL);
}

static hf_status fan_out_a_thousand(void)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    int64_t from = hf_now(NULL).ns;
    HF_TRY(start("fan_out", 0, &run));
    HF_TRY(hf_result(run, NULL));
    int64_t ms = (hf_now(NULL).ns - from) / 1000000;
    check_once_each();
    HF_CHECK_SAY(ms <= 3 * MANY * 100 / SLOTS / 2, "it took %lld ms", (long long)ms);
    return HF_OK;
}

static void a_thousand_activities_of_one_run_share_the_slots(void **state)
{
    (void)state;
    play_with(fan_out_a_thousand, (hf_watchdog_options){0}, quiet_fatal, NULL);
}

static hf_status sleep_a_thousand(void)
{
    int64_t ms = 0;
    HF_TRY(run_many("sleep", &ms));
    check_once_each();
    HF_CHECK_SAY(ms >= 1000 && ms <= 1100, "it took %lld ms", (long long)ms);
    return HF_OK;
}

static void a_thousand_runs_sleep_for_a_second_together(void **state)
{
    (void)state;
    play_with(sleep_a_thousand, (hf_watchdog_options){0}, quiet_fatal, NULL);
}

/* ---- Those that hang ------------------------------------------------------------------------------------------------------ */

static hf_status hang_two_hundred(void)
{
    HF_AUTO(hf_execution_free) hf_execution *next = NULL;
    int64_t from = hf_now(NULL).ns;
    for (int i = 0; i < HUNG; i++) {
        HF_TRY(start("hang", i, NULL));
    }
    HF_TRY(hf_sleep(hf_milliseconds(500)));
    HF_TRY(start("block", MANY, &next));
    HF_TRY(hf_result(next, NULL));
    int64_t ms = (last_begun_ns - from) / 1000000 - 1000; /* since the others' time was over */
    HF_CHECK_SAY(counts[MANY] == 1 && ms >= 9000 && ms <= 11000, "it began after %lld ms", (long long)ms);
    hf_worker_stats stats;
    HF_TRY(hf_worker_stat(worker, &stats));
    HF_CHECK(stats.activity_zombies >= 1 && stats.activities >= HUNG && stats.health == HF_WORKER_DEGRADED);
    return HF_OK;
}

static void T17_behind_200_hung_activities_the_next_begins_within_the_grace_and_a_second(void **state)
{
    (void)state;
    play_with(hang_two_hundred, (hf_watchdog_options){.zombies_max = HF_OFF}, quiet_fatal, NULL);
}

static int fatal_count;
static int fatal_code;

static void on_fatal(void *state, const char *message, int exit_code)
{
    (void)state;
    (void)message;
    fatal_count++;
    fatal_code = exit_code;
}

static const hf_watchdog_options SHORT = {.zombie_after = {.ns = INT64_C(1000000000)},
                                          .shutdown_grace = {.ns = INT64_C(3000000000)},
                                          .shutdown_force = {.ns = INT64_C(1000000000)},
                                          .fatal_after = {.ns = INT64_C(6000000000)}};

/* Ten hang, and others work on. */
static hf_status hang_ten(void)
{
    hf_execution *good[5] = {NULL};
    for (int i = 0; i < 10; i++) {
        HF_TRY(start("hang", i, NULL));
    }
    HF_TRY(hf_sleep(hf_milliseconds(1950))); /* the grace of the ten is over at 2 s */
    for (int i = 0; i < 5; i++) {
        HF_TRY(start("block", i, &good[i]));
    }
    HF_TRY(hf_sleep(hf_seconds(3)));
    for (int i = 0; i < 5; i++) { /* their activities have ended; the runs wait for the next start of the program */
        hf_description *it = NULL;
        HF_TRY(hf_describe(good[i], &it));
        HF_CHECK(counts[i] == 1 && it->activity_count == 0 && it->status == HF_WORKFLOW_RUNNING && fatal_count == 0);
        hf_description_free(it);
        hf_execution_free(good[i]);
    }
    HF_TRY(hf_sleep(hf_seconds(60)));
    HF_CHECK_SAY(fatal_count == 1 && fatal_code == 1, "the fatal hook was called %d times, with %d", fatal_count,
                 fatal_code);
    return HF_OK;
}

static void N2_with_ten_zombies_the_others_finish_and_the_fatal_hook_is_called_once(void **state)
{
    (void)state;
    fatal_count = 0;
    play_with(hang_ten, SHORT, on_fatal, NULL);
}

/* ---- Without a hook --------------------------------------------------------------------------------------------------------- */

enum { LINES_LEN = 64 * 1024 };
static struct {
    size_t failed; /* checks */
    char lines[LINES_LEN];
} * aborted; /* of the process that is aborted; shared with it */

static void keep_line(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    size_t len = strlen(aborted->lines);
    (void)snprintf(aborted->lines + len, LINES_LEN - len, "%s %s\n", event, fields);
    aborted->failed = hf_checks_failed();
}

static void N2_a_program_without_a_fatal_hook_is_told_before_it_is_aborted(void **state)
{
    (void)state;
    aborted = mmap(NULL, sizeof *aborted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(aborted != MAP_FAILED);
    fatal_count = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL);
        play_with(hang_ten, SHORT, NULL, keep_line);
        _exit(0); /* it was not aborted */
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    const char *told =
        strstr(aborted->lines, "no_fatal_hook message=\"the program will be aborted unless the zombies end");
    const char *last = strstr(aborted->lines, "shutdown step=fatal");
    assert_true(told != NULL && last != NULL && told < last);
    assert_int_equal(aborted->failed, 0);
    assert_int_equal(munmap(aborted, sizeof *aborted), 0);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_thousand_runs_that_block_an_activity_share_the_slots),
    cmocka_unit_test(a_thousand_activities_of_one_run_share_the_slots),
    cmocka_unit_test(a_thousand_runs_sleep_for_a_second_together),
    cmocka_unit_test(T17_behind_200_hung_activities_the_next_begins_within_the_grace_and_a_second),
    cmocka_unit_test(N2_with_ten_zombies_the_others_finish_and_the_fatal_hook_is_called_once),
    cmocka_unit_test(N2_a_program_without_a_fatal_hook_is_told_before_it_is_aborted),
};

int main(int argc, char **argv)
{
    return hf_test_main("worker_load", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
