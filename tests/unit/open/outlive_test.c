/* A service that outlives the runtime it was opened in: what it says afterwards does not need that runtime. */
#include "support/support.h"

#include "env/sim/sim.h"

enum { ALLOCATIONS = 60 }; /* each of them fails once */

typedef struct story {
    hf_env *env;
    hf_service *service;
    int refused; /* starts that the engine had no memory for: it says so in its log, and starts over */
} story;

static hf_status open_it(void *arg)
{
    story *s = arg;
    return hf_open("memory:", &s->service);
}

static hf_status start_without_memory(void *arg)
{
    story *s = arg;
    for (uint64_t nth = 1; nth <= ALLOCATIONS; nth++) {
        hf_sim_fail_allocation(s->env, nth, false);
        s->refused += hf_start(s->service, "nobody", hf_payload_none(), NULL) != HF_OK;
        hf_sim_fail_allocation(s->env, 0, false);
    }
    return hf_close(s->service);
}

static void a_service_logs_after_the_end_of_its_runtime(void **state)
{
    (void)state;
    story s = {.env = hf_sim_begin(1)};
    hf_runtime_options options = hf_sim_runtime_options(s.env, 1);
    options.log = NULL; /* to stderr, by way of the runtime's environment */
    HF_CHECK(hf_run_with(open_it, &s, &options) == HF_OK);
    HF_CHECK(hf_run_with(start_without_memory, &s, &options) == HF_OK);
    HF_CHECK(s.refused > 0);
    hf_sim_end(s.env, NULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_service_logs_after_the_end_of_its_runtime),
    };
    return hf_test_main("outlive", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
