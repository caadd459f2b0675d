/* What the tests of the simulated environment share. cmocka's asserts jump to the test's own stack, so simulated
 * threads use SIM_CHECK, which records; the test asserts at its end that nothing was recorded. */
#ifndef HF_TESTS_UNIT_ENV_SIM_CHECK_H
#define HF_TESTS_UNIT_ENV_SIM_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "env/sim/sim.h"

static int sim_failures;

#define SIM_CHECK(what)                                                              \
    do {                                                                             \
        if (!(what)) {                                                               \
            sim_failures++;                                                          \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
        }                                                                            \
    } while (0)

/* Ends a test: every check held, nothing is left allocated or open. */
static inline void sim_finish(hf_env *env, uint64_t seed)
{
    uint64_t live = hf_sim_allocations_live(env);
    uint32_t descriptors = hf_sim_descriptors(env);
    hf_sim_free(env);
    if (sim_failures != 0 || live != 0 || descriptors != 0) {
        print_error("seed %llu: %d failures, %llu blocks and %u descriptors left\n", (unsigned long long)seed,
                    sim_failures, (unsigned long long)live, descriptors);
    }
    assert_int_equal(sim_failures, 0);
    assert_int_equal(live, 0);
    assert_int_equal(descriptors, 0);
}

static inline hf_thread *sim_start(hf_env *env, const char *name, void (*main)(void *), void *arg)
{
    hf_op op;
    hf_thread *thread = NULL;
    hf_op_init(&op);
    SIM_CHECK(env->ops->thread_start(env, &op, name, 0, main, arg, &thread) == HF_OK);
    return thread;
}

#endif
