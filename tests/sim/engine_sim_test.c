/* The engine in a random world (sim/engine/sim.h): no acknowledged operation is lost, none happens twice, and every run
 * comes to its end, whatever crashes meanwhile. `./dev sim` runs longer campaigns. */
#include "support/support.h"

#include "sim/engine/sim.h"

enum { SEEDS = 12000, SEEDS_SQLITE = 300, SEEDS_FOR_ALL = 4000 };

/* A build with seeded bugs should find violations as soon as possible. */
#if defined(HF_CANARIES) && HF_CANARIES
#define IS_CANARY true
#else
#define IS_CANARY false
#endif

static sim_totals totals;

static void twice(uint64_t seed)
{
    char why[800];
    uint64_t first = 0;
    uint64_t second = 0;
    sim_totals ignored = {0};
    if (HF_CHECK_SAY(sim_run(seed, (sim_options){0}, &totals, &first, why, sizeof why), "%s", why) && !IS_CANARY &&
        HF_CHECK_SAY(sim_run(seed, (sim_options){0}, &ignored, &second, why, sizeof why), "%s", why)) {
        HF_CHECK_SAY(first == second, "D11: the same seed gives the same world");
    }
}

static void every_promise_is_kept_in_a_world_full_of_faults(void **state)
{
    (void)state;
    totals = (sim_totals){.inputs_min = UINT64_MAX, .runs_min = UINT64_MAX, .crashes_min = UINT64_MAX};
    hf_each_seed("engine", SEEDS, twice);
    if (hf_checks_failed() > 0) {
        return;
    }
    bool complete = sim_totals_print(&totals, stdout);
    HF_CHECK(totals.runs_min >= 3 && totals.inputs_min >= 100 && totals.crashes_min >= 1);
    bool has_shares = IS_CANARY || sim_totals_have_shares(&totals); /* a canary plays too few seeds for that */
    HF_CHECK_SAY(has_shares, "every probe was met by its share of the seeds");
    HF_CHECK_SAY(complete || totals.seeds < SEEDS_FOR_ALL, "every fault, probe and transition was met");
}

/* The rule by which the test above decides, at its edges. */
static void a_probe_below_its_share_is_noticed(void **state)
{
    (void)state;
    static const struct {
        uint64_t seeds, least;
    } EDGES[] = {{1000, 5}, {12000, 99}, {1000000, 9800}};
    for (size_t i = 0; i < HF_COUNT_OF(EDGES); i++) {
        sim_totals rare = {.seeds = EDGES[i].seeds};
        for (int j = 0; j < HF_PROBE_COUNT; j++) {
            rare.probe_seeds[j] = EDGES[i].seeds;
        }
        rare.probe_seeds[HF_PROBE_COUNT - 1] = EDGES[i].least;
        assert_true(sim_totals_have_shares(&rare));
        rare.probe_seeds[HF_PROBE_COUNT - 1]--;
        assert_false(sim_totals_have_shares(&rare));
    }
}

static void on_both(uint64_t seed)
{
    char why[800];
    uint64_t memory = 0;
    uint64_t sqlite = 0;
    sim_totals ignored = {0};
    if (HF_CHECK_SAY(sim_run(seed, (sim_options){0}, &ignored, &memory, why, sizeof why), "memory: %s", why) &&
        HF_CHECK_SAY(sim_run(seed, (sim_options){.sqlite = true}, &ignored, &sqlite, why, sizeof why), "SQLite: %s",
                     why)) {
        HF_CHECK_SAY(memory == sqlite, "I21: the same answers, histories and tables on every store");
    }
}

/* The power went twice soon after the file was made; the second time the rollback journal of its creation was there
 * again. */
static void a_rollback_journal_that_is_gone_stays_gone(void **state)
{
    (void)state;
    if (IS_CANARY) {
        skip();
    }
    on_both(2845);
}

/* Seeds that failed once, and what they found: docs/ledger.md, "More bugs that the simulator found". */
static const uint64_t SEEDS_KEPT[] = {
    70001306, /* a core that was out of memory was asked for its hash, and went on with a run that it took for damaged */
    70004905,  /* processes that live too short to look up a name where all names are alike: the world did not end */
    70026032,  /* ... or to be killed as often as they should */
    70056969,  /* the start of a batch was repeated when the batch had been forgotten: it began once more */
    70059877,  /* the same, without a clock that jumps */
    70320194,  /* a damaged row made an older run of an id a current one */
    70052111,  /* ... or to look up a name among 550 runs, although they lived for half a minute */
    70003216,  /* a read of the change feed was answered before a commit that its cursor had passed */
    70008231,  /* a deletion of all runs of an id also took a run that began after it */
    71003041,  /* processes that live too short to look up a name, again */
    71042611,  /* the same */
    71013619,  /* rows were judged while the commit that deletes one of them was under way */
    71014822,  /* the same */
    72022505,  /* the clients of a process that was left alone used up the steps before it was killed often enough */
    72038846,  /* the same */
    71053554,  /* the id of a run that a crash undid led to a damaged run with the same number */
    80014771,  /* signals to a run whose workflow task kept timing out made each of its attempts a first one */
    120038148, /* a list of current runs had two of one id: the newer one was deleted while it was made */
    120032943, /* a record of a run in the middle of a chain was damaged, and its stream had a gap */
};

static void seeds_that_failed_once_do_not_fail_again(void **state)
{
    (void)state;
    if (IS_CANARY) {
        skip();
    }
    for (size_t i = 0; i < HF_COUNT_OF(SEEDS_KEPT) && hf_checks_failed() == 0; i++) {
        print_message("seed %llu\n", (unsigned long long)SEEDS_KEPT[i]);
        on_both(SEEDS_KEPT[i]);
    }
}

static void memory_and_sqlite_tell_the_same_story(void **state)
{
    (void)state;
    if (IS_CANARY) {
        skip();
    }
    hf_each_seed("engine on both stores", SEEDS_SQLITE, on_both);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(every_promise_is_kept_in_a_world_full_of_faults),
        cmocka_unit_test(a_probe_below_its_share_is_noticed),
        cmocka_unit_test(memory_and_sqlite_tell_the_same_story),
        cmocka_unit_test(a_rollback_journal_that_is_gone_stays_gone),
        cmocka_unit_test(seeds_that_failed_once_do_not_fail_again),
    };
    return hf_test_main("engine_sim", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
