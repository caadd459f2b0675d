/* One program, disturbed everywhere: canceled at each of its waits, refused each of its allocations. Whatever it returns,
 * it returns, and nothing is left behind. */
#include "unit/fiber/program.h"

#include "env/sim/sim.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Cancel at every wait -------------------------------------------------------------------- */

static hf_status run_program(uint64_t seed, int threads, program *p)
{
    hf_status status = hf_sim_run(seed, threads, program_main, p, NULL);
    int held = atomic_load(&p->held);
    int cleaned = atomic_load(&p->cleaned);
    HF_CHECK_SAY(held == 0, "%d things are still held", held);
    HF_CHECK_SAY(cleaned == 0, "%d cleanups were not finished", cleaned);
    return status;
}

static void undisturbed_the_program_succeeds(void **state)
{
    (void)state;
    uint64_t seeds = hf_test_seeds(200);
    int most = 0;
    for (uint64_t seed = 1; seed <= seeds && hf_checks_failed() == 0; seed++) {
        program p = {0};
        hf_status status = run_program(seed, 1 + (int)(seed % 3), &p);
        HF_CHECK_SAY(status == HF_OK, "it returned %s: %s", hf_status_name(status), hf_error_text());
        most = p.waits > most ? p.waits : most;
    }
    print_message("%" PRIu64 " seeds, up to %d waits\n", seeds, most);
    assert_true(most >= 100);
}

/* Each wait once per number of threads and per canceler. The number of waits differs with the interleaving: the last
 * ones may not be reached, then the program just succeeds. */
static void a_cancel_at_every_wait_ends_the_program_cleanly(void **state)
{
    (void)state;
    int canceled = 0;
    int runs = 0;
    unsigned step = hf_test_scale() > 8 ? 8 : hf_test_scale();
    for (int how = 0; how < 6; how++) {
        int threads = 1 + how % 3;
        program plain = {0};
        HF_CHECK(run_program(1, threads, &plain) == HF_OK);
        for (int k = 1; k <= plain.waits && hf_checks_failed() == 0; k += (int)step) {
            program p = {.cancel_at = k, .by_another = how >= 3};
            hf_status status = run_program((uint64_t)k, threads, &p);
            bool as_planned =
                status == HF_ERR_FAILED && error_says("planned to fail"); /* of a race that lost its winner */
            HF_CHECK_SAY(status == HF_OK || status == HF_ERR_CANCELED || as_planned,
                         "canceled at wait %d it returned %s: %s", k, hf_status_name(status), hf_error_text());
            canceled += status != HF_OK;
            runs++;
        }
    }
    print_message("%d runs, %d of them canceled\n", runs, canceled);
    HF_CHECK(canceled > runs / 2);
}

/* ---- No memory at every allocation ----------------------------------------------------------- */

typedef struct starving {
    uint64_t count;   /* allocations so far */
    uint64_t fail_at; /* this one fails */
    bool for_ever;    /* and all that follow */
    int64_t live;
    int64_t bytes;
} starving;

/* Simulated threads share one thread of the system: no atomics are needed. */
static void *starving_allocate(void *state, size_t len, size_t align)
{
    starving *s = state;
    s->count++;
    if (s->fail_at != 0 && (s->count == s->fail_at || (s->for_ever && s->count > s->fail_at))) {
        return NULL;
    }
    size_t unit = align > 16 ? align : 16;
    void *ptr = aligned_alloc(unit, (len + unit - 1) / unit * unit);
    s->live += ptr != NULL;
    s->bytes += ptr != NULL ? (int64_t)len : 0;
    return ptr;
}

static void starving_release(void *state, void *ptr, size_t len)
{
    starving *s = state;
    s->live--;
    s->bytes -= (int64_t)len;
    free(ptr);
}

/* True: the failure was met. */
static bool starve_allocator(uint64_t nth, int threads, bool for_ever)
{
    starving s = {.fail_at = nth, .for_ever = for_ever};
    hf_env *env = hf_sim_begin(nth);
    hf_runtime_options options = hf_sim_runtime_options(env, threads);
    options.allocator = (hf_allocator){starving_allocate, starving_release, &s};
    program p = {0};
    hf_status status = hf_run_with(program_main, &p, &options);
    bool is_met = s.count >= nth;
    HF_CHECK_SAY(is_met || status == HF_OK, "undisturbed it returned %s: %s", hf_status_name(status), hf_error_text());
    HF_CHECK_SAY(p.held == 0, "%d things are still held", p.held);
    HF_CHECK_SAY(s.live == 0 && s.bytes == 0, "%" PRId64 " allocations of %" PRId64 " bytes leaked", s.live, s.bytes);
    hf_sim_end(env, NULL);
    return is_met;
}

/* The same for whatever may fail for want of memory in the environment: stacks, threads and pollers, too. */
static bool starve_environment(uint64_t nth, int threads, bool for_ever)
{
    hf_env *env = hf_sim_begin(nth);
    hf_sim_fail_allocation(env, nth, for_ever);
    hf_runtime_options options = hf_sim_runtime_options(env, threads);
    program p = {0};
    hf_status status = hf_run_with(program_main, &p, &options);
    bool is_met = hf_sim_allocations(env) >= nth;
    HF_CHECK_SAY(is_met || status == HF_OK, "undisturbed it returned %s: %s", hf_status_name(status), hf_error_text());
    HF_CHECK_SAY(p.held == 0, "%d things are still held", p.held);
    hf_sim_end(env, NULL);
    return is_met;
}

static void starve(bool (*one)(uint64_t, int, bool))
{
    uint64_t runs = 0;
    uint64_t step = hf_test_scale() > 4 ? 4 : hf_test_scale();
    for (int threads = 1; threads <= 2; threads++) {
        for (int for_ever = 0; for_ever < 2; for_ever++) {
            for (uint64_t nth = 1; hf_checks_failed() == 0; nth += step) {
                runs++;
                if (!one(nth, threads, for_ever != 0)) {
                    break;
                }
                if (hf_checks_failed() > 0) {
                    print_error("%d threads, allocation %" PRIu64 " failed%s\n", threads, nth,
                                for_ever != 0 ? ", and all after it" : "");
                }
            }
        }
    }
    print_message("%" PRIu64 " runs\n", runs);
}

static void every_nth_allocation_of_the_hosts_allocator_may_fail(void **state)
{
    (void)state;
    starve(starve_allocator);
}

static void every_nth_allocation_of_the_environment_may_fail(void **state)
{
    (void)state;
    starve(starve_environment);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(undisturbed_the_program_succeeds),
        cmocka_unit_test(a_cancel_at_every_wait_ends_the_program_cleanly),
        cmocka_unit_test(every_nth_allocation_of_the_hosts_allocator_may_fail),
        cmocka_unit_test(every_nth_allocation_of_the_environment_may_fail),
    };
    return hf_test_main("every_point", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
