/* Shared by the tests: checks that work on any stack, a main for cmocka programs, simulated runs, loops over seeds.
 *
 * cmocka's asserts jump to the test's own stack, so fibers and threads use HF_CHECK, which records and returns; the
 * test fails afterwards. A program's main is one line:
 *
 *     int main(int argc, char **argv) { return hf_test_main("chan", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv); }
 *
 * Environment: HF_TEST_SCALE divides the numbers of seeds, HF_TEST_FILTER is a substring of the tests to run, HF_SEED
 * runs that one seed only, HF_SEED_FROM is the first one, HF_SEEDS overrides their number. In a build with canaries
 * HF_CANARY_ID switches one on. */
#ifndef HF_TESTS_SUPPORT_H
#define HF_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <holdfast/holdfast.h>

/* Records a failed check with its place and the current seed; returns the condition. From any stack and thread. */
#define HF_CHECK(cond) hf_check_at((cond), #cond, __FILE__, __LINE__)
/* The same with a message of the test's own. */
#define HF_CHECK_SAY(cond, ...) ((cond) ? true : hf_check_say(__FILE__, __LINE__, __VA_ARGS__))
bool hf_check_at(bool is_so, const char *text, const char *file, int line);
bool hf_check_say(const char *file, int line, const char *format, ...) HF_PRINTF(3, 4);
/* The number of failed checks, and its reset to 0: hf_test_main resets it before each test. */
size_t hf_checks_failed(void);
void hf_checks_reset(void);

/* Runs the tests, or lists them (--list). A test with failed checks fails. Returns the result for main. */
int hf_test_main(const char *suite, const struct CMUnitTest *tests, size_t count, int argc, char **argv);

/* HF_TEST_SCALE, 1 unless set; and the number of seeds, `full` divided by it, at least one. */
unsigned hf_test_scale(void);
uint64_t hf_test_seeds(uint64_t full);

/* A simulated environment for this seed: a run that gets stuck, does not end or breaks an invariant ends the process
 * with the seed on stderr. The hook may be replaced by hf_sim_on_stuck. */
hf_env *hf_sim_begin(uint64_t seed);
/* The same with the given options; .size and .seed are filled in. */
hf_env *hf_sim_begin_with(uint64_t seed, hf_sim_options options);
/* Checks that nothing is left allocated, open or running, gives the trace hash (may be NULL), frees it. */
void hf_sim_end(hf_env *env, uint64_t *ret_hash);

/* Runtime options for a simulated run: quiet log, a fatal hook that names the seed. */
hf_runtime_options hf_sim_runtime_options(hf_env *env, int threads);
/* A whole run: environment, runtime, body as the first fiber, checks at the end. Returns the status of the body. */
hf_status hf_sim_run(uint64_t seed, int threads, hf_body body, void *arg, uint64_t *ret_hash);
/* Errors that simulated runtimes logged since the last hf_sim_begin: misuse, mostly. */
unsigned hf_sim_errors_logged(void);

/* Calls one(seed) for hf_test_seeds(full) seeds, stops at the first that fails a check, and says how many it tried. */
void hf_each_seed(const char *what, uint64_t full, void (*one)(uint64_t seed));

#endif
