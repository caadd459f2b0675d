/* One process runs one test program, and simulated threads share one thread of the system: the state here is global.
 *
 * When a run cannot go on (stuck, endless, a broken invariant, a crash) the process ends, because stacks are left
 * behind that cannot be unwound. The last lines then name the seed, so that HF_SEED=n repeats it. */
#include "support/support.h"

#include "env/sim/sim.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(HF_CANARIES) && HF_CANARIES
#include "base/canary.h"
int hf_canary;
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { SAID_MAX = 20, STEPS_MAX = 1000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t failed;
static bool has_seed; /* a seed is being tried */
static uint64_t seed_now;
static uint64_t seeds_tried; /* by hf_each_seed, the current one included */
static unsigned errors_logged;

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

bool hf_check_say(const char *file, int line, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)pthread_mutex_lock(&lock);
    failed++;
    if (failed <= SAID_MAX) {
        (void)fprintf(stderr, "%s:%d: not so: %s", file, line, text);
        if (has_seed) {
            (void)fprintf(stderr, " (seed %" PRIu64 ")", seed_now);
        }
        (void)fputc('\n', stderr);
    }
    (void)pthread_mutex_unlock(&lock);
    return false;
}

bool hf_check_at(bool is_so, const char *text, const char *file, int line)
{
    return is_so || hf_check_say(file, line, "%s", text);
}

size_t hf_checks_failed(void)
{
    (void)pthread_mutex_lock(&lock);
    size_t count = failed;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

void hf_checks_reset(void)
{
    (void)pthread_mutex_lock(&lock);
    failed = 0;
    (void)pthread_mutex_unlock(&lock);
}

/* ---- Main -------------------------------------------------------------------------------------------------------- */

/* cmocka calls setup, test and teardown with one state; our shims run before and after the test and find it by that
 * state. */
static const struct CMUnitTest *running;

static int before(void **state)
{
    running = *state;
    *state = running->initial_state;
    hf_checks_reset();
    has_seed = false;
    seeds_tried = 0;
    return running->setup_func != NULL ? running->setup_func(state) : 0;
}

static int after(void **state)
{
    int result = running->teardown_func != NULL ? running->teardown_func(state) : 0;
    size_t count = hf_checks_failed();
    if (count > 0) {
        print_error("%s: %zu checks failed\n", running->name, count);
    }
    return result != 0 || count > 0 ? -1 : 0;
}

static bool is_wanted(const struct CMUnitTest *test)
{
    const char *filter = getenv("HF_TEST_FILTER");
    return filter == NULL || strstr(test->name, filter) != NULL;
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

static int run_wanted(const char *suite, const struct CMUnitTest *tests, size_t count)
{
    struct CMUnitTest *wanted = calloc(count + 1, sizeof *wanted);
    if (wanted == NULL) {
        return 1;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(&tests[i])) {
            wanted[used] = tests[i];
            wanted[used].setup_func = before;
            wanted[used].teardown_func = after;
            wanted[used].initial_state = (void *)(uintptr_t)&tests[i];
            used++;
        }
    }
    int result = used > 0 ? _cmocka_run_group_tests(suite, wanted, used, NULL, NULL) : 0;
    free(wanted);
    return result == 0 ? 0 : 1;
}

int hf_test_main(const char *suite, const struct CMUnitTest *tests, size_t count, int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++) {
            (void)puts(tests[i].name);
        }
        return 0;
    }
#if defined(HF_CANARIES) && HF_CANARIES
    hf_canary = (int)number_from("HF_CANARY_ID", 0);
#endif
    return run_wanted(suite, tests, count);
}

unsigned hf_test_scale(void)
{
    uint64_t scale = number_from("HF_TEST_SCALE", 1);
    return scale == 0 || scale > 1000000 ? 1 : (unsigned)scale;
}

uint64_t hf_test_seeds(uint64_t full)
{
    uint64_t count = full / hf_test_scale();
    return count > 0 ? count : 1;
}

/* ---- Runs that cannot go on -------------------------------------------------------------------------------------- */

/* Also called in a signal handler, where stdio cannot be used. */
static void tell_seed(void)
{
    char text[160];
    int len = snprintf(text, sizeof text,
                       "FAILED at seed %" PRIu64 ", the %" PRIu64 ". tried; repeat with HF_SEED=%" PRIu64 "\n",
                       seed_now, seeds_tried, seed_now);
    if (has_seed && len > 0 && write(STDERR_FILENO, text, (size_t)len) < 0) {
        return;
    }
}

static void on_stuck(void *state, const char *report)
{
    (void)state;
    (void)fflush(NULL);
    (void)fputs(report, stderr);
    tell_seed();
    _exit(1);
}

static void on_fatal(void *state, const char *message, int exit_code)
{
    (void)state;
    (void)exit_code;
    (void)fflush(NULL);
    (void)fprintf(stderr, "fatal: %s\n", message);
    tell_seed();
    abort();
}

static void on_crash(int number)
{
    tell_seed();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* Only for simulated runs: a test of the real overflow report needs SIGSEGV for itself. Sanitizers report by
 * themselves. */
static void watch_crashes(void)
{
    static bool done;
    static char stack[16384];
    static const int NUMBERS[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGTRAP};
    if (done || SANITIZED) {
        return;
    }
    done = true;
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    (void)sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER};
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        (void)sigaction(NUMBERS[i], &action, NULL);
    }
}

/* ---- Simulated runs ---------------------------------------------------------------------------------------------- */

hf_env *hf_sim_begin_with(uint64_t seed, hf_sim_options options)
{
    hf_env *env = NULL;
    has_seed = true;
    seed_now = seed;
    errors_logged = 0;
    watch_crashes();
    options.size = sizeof options;
    options.seed = seed;
    if (options.steps_max == 0) {
        options.steps_max = STEPS_MAX;
    }
    if (hf_sim_new_with(&env, &options) != HF_OK) {
        (void)fprintf(stderr, "no simulated environment for seed %" PRIu64 "\n", seed);
        abort();
    }
    hf_sim_on_stuck(env, on_stuck, NULL);
    return env;
}

hf_env *hf_sim_begin(uint64_t seed)
{
    return hf_sim_begin_with(seed, (hf_sim_options){0});
}

void hf_sim_end(hf_env *env, uint64_t *ret_hash)
{
    hf_sim_counters counters;
    hf_sim_count(env, &counters);
    uint64_t live = hf_sim_allocations_live(env);
    uint32_t open = hf_sim_descriptors(env);
    HF_CHECK_SAY(live == 0, "%" PRIu64 " allocations leaked", live);
    HF_CHECK_SAY(open == 0, "%" PRIu32 " descriptors left open", open);
    HF_CHECK_SAY(counters.threads_live == 0, "%" PRIu64 " threads still run", counters.threads_live);
    if (ret_hash != NULL) {
        *ret_hash = hf_sim_trace_hash(env);
    }
    hf_sim_free(env);
}

static void quiet_log(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)event;
    (void)fields;
    if (level == HF_LOG_ERROR) {
        errors_logged++;
    }
}

unsigned hf_sim_errors_logged(void)
{
    return errors_logged;
}

hf_runtime_options hf_sim_runtime_options(hf_env *env, int threads)
{
    return (hf_runtime_options){
        .size = sizeof(hf_runtime_options), .threads = threads, .env = env, .log = quiet_log, .fatal = on_fatal};
}

hf_status hf_sim_run(uint64_t seed, int threads, hf_body body, void *arg, uint64_t *ret_hash)
{
    hf_env *env = hf_sim_begin(seed);
    hf_runtime_options options = hf_sim_runtime_options(env, threads);
    hf_status status = hf_run_with(body, arg, &options);
    hf_sim_end(env, ret_hash);
    return status;
}

void hf_each_seed(const char *what, uint64_t full, void (*one)(uint64_t seed))
{
    uint64_t first = number_from("HF_SEED", number_from("HF_SEED_FROM", 1));
    uint64_t count = getenv("HF_SEED") != NULL ? 1 : number_from("HF_SEEDS", hf_test_seeds(full));
    watch_crashes();
    for (uint64_t i = 0; i < count; i++) {
        seeds_tried = i + 1;
        seed_now = first + i;
        has_seed = true;
        one(seed_now);
        if (hf_checks_failed() > 0) {
            (void)fflush(NULL);
            tell_seed();
            return;
        }
    }
    has_seed = false;
    print_message("%s: %" PRIu64 " seeds\n", what, count);
}
