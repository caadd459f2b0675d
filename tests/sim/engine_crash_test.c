/* The power goes at every operation of the disk under the engine (sim/engine/outage.c), and every call of the disk fails
 * (sim/engine/failing.c), also when a file of an older version is opened (sim/engine/older.c). `./dev campaign images` and `./dev campaign io` run longer campaigns. */
#include "support/support.h"

#include "sim/engine/disk.h"

#include <stdlib.h>
#include <time.h>

/* A build with seeded bugs tests only disks whose syncs fail, and fewer of them. */
#if defined(HF_CANARIES) && HF_CANARIES
#define IS_CANARY true
#else
#define IS_CANARY false
#endif

enum { IMAGES = 300000, IMAGES_FAILING = IS_CANARY ? 120000 : 300000, SCENARIOS = 40 };

static sim_outage_counts outages;

static void one_world(uint64_t seed)
{
    if (outages.images < hf_test_seeds(IMAGES)) {
        sim_outage_world(seed, false, &outages);
    }
}

static void one_world_with_failing_syncs(uint64_t seed)
{
    if (outages.images < hf_test_seeds(IMAGES_FAILING)) {
        sim_outage_world(seed, true, &outages);
    }
}

/* Processor time so far. */
static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void print_outages(double since)
{
    print_message("%llu images, %llu of them different and opened, %llu made while another was opened, %llu engines, "
                  "%.1f s\n",
                  (unsigned long long)outages.images, (unsigned long long)outages.judged,
                  (unsigned long long)outages.nested, (unsigned long long)outages.engines, seconds() - since);
}

static void nothing_acknowledged_is_lost_whenever_the_power_goes(void **state)
{
    (void)state;
    if (IS_CANARY) {
        skip();
    }
    outages = (sim_outage_counts){0};
    double since = seconds();
    hf_each_seed("worlds on a disk without power", 100000, one_world);
    print_outages(since);
}

static void nothing_acknowledged_is_lost_by_failed_syncs_restarts_and_power_cuts(void **state)
{
    (void)state;
    outages = (sim_outage_counts){0};
    double since = seconds();
    hf_each_seed("worlds on a disk whose syncs fail", 100000, one_world_with_failing_syncs);
    print_message("%llu worlds, %llu failed syncs and the like\n", (unsigned long long)outages.worlds,
                  (unsigned long long)outages.troubles);
    print_outages(since);
    HF_CHECK(outages.troubles > outages.worlds);
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
    if (IS_CANARY) {
        skip();
    }
    failures = (sim_io_counts){0};
    double since = seconds();
    hf_each_seed("worlds on a failing disk", 1000, one_failing_world);
    print_message(
        "%llu scenarios, %llu failures at every call, %llu reported by the open, %llu by a run, %llu power cuts "
        "afterwards, %.1f s\n",
        (unsigned long long)failures.scenarios, (unsigned long long)failures.faults,
        (unsigned long long)failures.reported, (unsigned long long)failures.beside, (unsigned long long)failures.cuts,
        seconds() - since);
}

static void a_file_of_an_older_version_is_opened_whole_or_not_at_all(void **state)
{
    (void)state;
    static const char *const FILES[] = {"0001.db", "0002.db"};
    if (IS_CANARY) {
        skip();
    }
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        sim_older_counts older = {0};
        double since = seconds();
        sim_older_file(FILES[i], &older);
        print_message(
            "%s: %llu images, %llu of them different and opened, %llu calls failed, %llu were reported, %.1f s\n",
            FILES[i], (unsigned long long)older.images, (unsigned long long)older.judged,
            (unsigned long long)older.faults, (unsigned long long)older.reported, seconds() - since);
        HF_CHECK(older.judged > 0 && older.reported > 0);
    }
}

/* What keeps house does not lose or half delete anything, on a file of an older version (which gets its blocks) as on a new one. */
static void housekeeping_and_operations_survive_power_cuts_and_failures(void **state)
{
    (void)state;
    static const char *const FILES[] = {NULL, "0002.db", "0004.db"};
    if (IS_CANARY) {
        skip();
    }
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        sim_keeping_counts counts = {0};
        size_t len = 0;
        char *bytes = FILES[i] != NULL ? sim_read_fixture(FILES[i], &len) : NULL;
        double since = seconds();
        sim_keeping_file(bytes, len, 4, &counts);
        free(bytes);
        print_message("%s: %llu images, %llu of them different and opened, %llu calls failed, %llu engines, %.1f s\n",
                      FILES[i] != NULL ? FILES[i] : "an empty disk", (unsigned long long)counts.images,
                      (unsigned long long)counts.judged, (unsigned long long)counts.faults,
                      (unsigned long long)counts.engines, seconds() - since);
        HF_CHECK(counts.judged > 0 && counts.faults > 0 && counts.shrinks > 0);
        static const hf_probe MET[] = {HF_PROBE_RETIRED, HF_PROBE_BLOCK_WRITTEN, HF_PROBE_BLOCK_DELETED,
                                       HF_PROBE_DELETED};
        for (size_t j = 0; j < sizeof MET / sizeof *MET; j++) {
            HF_CHECK_SAY(counts.probes[MET[j]] > 0, "probe %d was not met", (int)MET[j]);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_whenever_the_power_goes),
        cmocka_unit_test(nothing_acknowledged_is_lost_by_failed_syncs_restarts_and_power_cuts),
        cmocka_unit_test(a_failing_disk_gives_no_wrong_answer),
        cmocka_unit_test(a_file_of_an_older_version_is_opened_whole_or_not_at_all),
        cmocka_unit_test(housekeeping_and_operations_survive_power_cuts_and_failures),
    };
    return hf_test_main("engine_crash", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
