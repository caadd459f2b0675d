/* The power goes at every operation of the disk under the engine (sim/engine/outage.c), and every call of the disk fails
 * (sim/engine/failing.c). `./dev campaign images` and `./dev campaign io` run longer campaigns. */
#include "support/support.h"

#include "sim/engine/disk.h"

enum { IMAGES = 300000, SCENARIOS = 40 };

static sim_outage_counts outages;

static void one_world(uint64_t seed)
{
    if (outages.images < hf_test_seeds(IMAGES)) {
        sim_outage_world(seed, &outages);
    }
}

static void nothing_acknowledged_is_lost_whenever_the_power_goes(void **state)
{
    (void)state;
    outages = (sim_outage_counts){0};
    hf_each_seed("worlds on a disk without power", 100000, one_world);
    print_message("%llu images, %llu of them different and opened, %llu made while another was opened, %llu engines\n",
                  (unsigned long long)outages.images, (unsigned long long)outages.judged,
                  (unsigned long long)outages.nested, (unsigned long long)outages.engines);
}

static sim_io_counts failures;

static void one_failing_world(uint64_t seed)
{
    if (failures.scenarios < hf_test_seeds(SCENARIOS)) {
        sim_io_world(seed, &failures);
    }
}

static void a_failing_disk_gives_no_wrong_answer(void **state)
{
    (void)state;
    failures = (sim_io_counts){0};
    hf_each_seed("worlds on a failing disk", 1000, one_failing_world);
    print_message("%llu scenarios, %llu failures at every call, %llu reported by the open, %llu by a run\n",
                  (unsigned long long)failures.scenarios, (unsigned long long)failures.faults,
                  (unsigned long long)failures.reported, (unsigned long long)failures.beside);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_whenever_the_power_goes),
        cmocka_unit_test(a_failing_disk_gives_no_wrong_answer),
    };
    return hf_test_main("engine_crash", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
