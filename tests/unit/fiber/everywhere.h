/* Runs the body of a test as the first fiber of a runtime: in simulated ones, over seeds and one to three threads, then
 * on real threads. The body says what is wrong with HF_CHECK. */
#ifndef HF_TESTS_EVERYWHERE_H
#define HF_TESTS_EVERYWHERE_H

#include "support/support.h"

static hf_body everywhere_body;

static void everywhere_one(uint64_t seed)
{
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 3), everywhere_body, NULL, NULL) == HF_OK);
}

static void everywhere_log(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    (void)level;
    (void)event;
    (void)fields;
}

static void everywhere(const char *what, uint64_t seeds, hf_body body)
{
    everywhere_body = body;
    hf_each_seed(what, seeds, everywhere_one);
    for (int threads = 1; threads <= 4 && hf_checks_failed() == 0; threads++) {
        HF_CHECK(hf_run(body, NULL, .threads = threads, .log = everywhere_log) == HF_OK);
    }
}

/* On one simulated thread, where forked fibers run in order: for tests that say who comes when. */
static void in_order(const char *what, hf_body body)
{
    print_message("%s: seed 1\n", what);
    HF_CHECK(hf_sim_run(1, 1, body, NULL, NULL) == HF_OK);
}

/* Lets everybody else run until nobody can: on one simulated thread, virtual time moves only then. */
static inline void let_settle(void)
{
    HF_CHECK(hf_sleep(hf_milliseconds(1)) == HF_OK);
}

/* For tests that use one of the two only. */
static void (*const everywhere_uses[])(const char *, hf_body) __attribute__((unused)) = {in_order};

#endif
