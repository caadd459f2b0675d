/* How long an idle scheduler lingers, as a table of what it saw and what it then does. */
#include "support/support.h"

#include "fiber/sched/linger.h"

enum { US = 1000 };

typedef enum seen { CALLED, FOUND, MISSED } seen;

typedef struct step {
    seen what;
    int64_t slept_ns;
    int64_t late_ns;
    int limit_ns; /* afterwards */
} step;

typedef struct story {
    const char *name;
    step steps[8];
    size_t count;
} story;

static void play(hf_linger *linger, const step *it)
{
    switch (it->what) {
    case CALLED:
        hf_linger_called(linger, it->slept_ns, it->late_ns);
        hf_linger_begin(linger);
        break;
    case FOUND:
        hf_linger_found(linger);
        hf_linger_begin(linger);
        break;
    case MISSED:
        hf_linger_missed(linger);
        break;
    }
}

static const story STORIES[] = {
    {"a near call is enough", {{CALLED, 3 * US, 0, 10 * US}}, 1},
    {"a call from afar is not", {{CALLED, 30 * US, 0, 0}}, 1},
    {"the delay of a neighbour that was asleep does not count", {{CALLED, 30 * US, 25 * US, 60 * US}}, 1},
    {"the limit has a limit", {{CALLED, 5000 * US, 5000 * US, 100 * US}}, 1},
    {"an answer in time shortens it, the neighbour is awake",
     {{CALLED, 30 * US, 25 * US, 60 * US}, {FOUND, 0, 0, 10 * US}},
     2},
    {"a message that comes while it does not linger changes nothing", {{FOUND, 0, 0, 0}}, 1},
    {"a far call ends it", {{CALLED, 3 * US, 0, 10 * US}, {CALLED, 30 * US, 0, 0}}, 2},
    {"the time it has lingered in vain counts",
     {{CALLED, 3 * US, 0, 10 * US}, {MISSED, 0, 0, 0}, {CALLED, 3 * US, 0, 0}, {CALLED, 3 * US, 0, 10 * US}},
     4},
    {"after the first linger in vain one near call is enough, after the second it needs two",
     {{CALLED, 3 * US, 0, 10 * US},
      {MISSED, 0, 0, 0},
      {CALLED, 500 * US, 0, 0},
      {CALLED, 3 * US, 0, 10 * US},
      {MISSED, 0, 0, 0},
      {CALLED, 500 * US, 0, 0},
      {CALLED, 3 * US, 0, 0},
      {CALLED, 3 * US, 0, 10 * US}},
     8},
};

static void what_it_saw_decides_how_long_it_lingers(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(STORIES); i++) {
        print_message("%s\n", STORIES[i].name);
        hf_linger linger = {0};
        for (size_t j = 0; j < STORIES[i].count; j++) {
            play(&linger, &STORIES[i].steps[j]);
            assert_int_equal(linger.limit_ns, STORIES[i].steps[j].limit_ns);
        }
    }
}

/* One near call after another, and never an answer in time: as on a machine with one core. */
static void lingering_in_vain_becomes_rare(void **state)
{
    (void)state;
    hf_linger linger = {0};
    int misses = 0;
    int misses_late = 0;
    for (int i = 0; i < 100000; i++) {
        hf_linger_begin(&linger);
        if (linger.limit_ns > 0) {
            hf_linger_missed(&linger);
            misses++;
            misses_late += i >= 1000;
        }
        hf_linger_called(&linger, 1 * US, 50 * US);
    }
    print_message("%d in vain, %d of them after the first thousand\n", misses, misses_late);
    assert_true(misses_late <= 99000 / HF_LINGER_TOLL_MAX && misses - misses_late <= 16);
}

/* A neighbour that is interrupted now and then, and answers in time otherwise, is lingered for again at its next near call. */
static void answers_in_time_make_up_for_a_linger_in_vain(void **state)
{
    (void)state;
    hf_linger linger = {0};
    hf_linger_called(&linger, 1 * US, 0);
    for (int i = 0; i < 100; i++) {
        for (int j = 0; j < 10; j++) {
            hf_linger_begin(&linger);
            hf_linger_found(&linger);
        }
        hf_linger_begin(&linger);
        hf_linger_missed(&linger);
        hf_linger_called(&linger, 3000 * US, 0);
        assert_int_equal(linger.limit_ns, 0);
        hf_linger_begin(&linger);
        hf_linger_called(&linger, 1 * US, 0);
        assert_int_equal(linger.limit_ns, HF_LINGER_NEAR_NS);
    }
}

/* Many quick answers, then a neighbour that had to be woken: it is lingered for once, and again only after as many answers. */
static void a_quick_neighbour_that_was_woken_gets_more_time(void **state)
{
    (void)state;
    hf_linger linger = {0};
    hf_linger_woke(&linger);
    assert_int_equal(linger.limit_ns, 0); /* it does not linger at all */
    hf_linger_called(&linger, 1 * US, 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < HF_LINGER_QUICK_MIN; i++) {
            hf_linger_woke(&linger);
            assert_int_equal(linger.limit_ns, HF_LINGER_NEAR_NS);
            hf_linger_begin(&linger);
            hf_linger_found(&linger);
        }
        hf_linger_woke(&linger);
        assert_int_equal(linger.limit_ns, HF_LINGER_WAKE_NS);
        hf_linger_begin(&linger);
        hf_linger_found(&linger); /* not a quick one */
        assert_int_equal(linger.limit_ns, HF_LINGER_NEAR_NS);
    }
    hf_linger_missed(&linger);
    hf_linger_woke(&linger);
    assert_int_equal(linger.limit_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_saw_decides_how_long_it_lingers),
        cmocka_unit_test(lingering_in_vain_becomes_rare),
        cmocka_unit_test(answers_in_time_make_up_for_a_linger_in_vain),
        cmocka_unit_test(a_quick_neighbour_that_was_woken_gets_more_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
