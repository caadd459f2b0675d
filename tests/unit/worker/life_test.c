/* The life of a worker as a table: no threads, no clocks. */
#include "support/support.h"
#include "worker/life.h"

typedef struct life_case {
    const char *what;
    hf_life_event events[8];
    int count;
    hf_life_state end;
    unsigned actions; /* of all of them together */
} life_case;

static const life_case CASES[] = {
    {"everything ends within the grace",
     {HF_LIFE_STARTED, HF_LIFE_TOLD, HF_LIFE_ENDED, HF_LIFE_RETURNED},
     4,
     HF_LIFE_DONE,
     HF_LIFE_DO_EVICT | HF_LIFE_DO_RING},
    {"it cannot begin", {HF_LIFE_STARTED, HF_LIFE_ENDED, HF_LIFE_RETURNED}, 3, HF_LIFE_DONE, HF_LIFE_DO_RING},
    {"activities end when they are canceled",
     {HF_LIFE_STARTED, HF_LIFE_TOLD, HF_LIFE_GRACE_OVER, HF_LIFE_ENDED},
     4,
     HF_LIFE_OVER,
     HF_LIFE_DO_EVICT | HF_LIFE_DO_CANCEL | HF_LIFE_DO_RING},
    {"the last answers are given up, and that ends it",
     {HF_LIFE_STARTED, HF_LIFE_TOLD, HF_LIFE_GRACE_OVER, HF_LIFE_TIME_OVER, HF_LIFE_TIME_OVER, HF_LIFE_ENDED},
     6,
     HF_LIFE_OVER,
     HF_LIFE_DO_EVICT | HF_LIFE_DO_CANCEL | HF_LIFE_DO_HUSH | HF_LIFE_DO_RING},
    {"an activity ignores its cancel",
     {HF_LIFE_STARTED, HF_LIFE_TOLD, HF_LIFE_GRACE_OVER, HF_LIFE_TIME_OVER, HF_LIFE_PATIENCE_OVER, HF_LIFE_RETURNED,
      HF_LIFE_ENDED},
     7,
     HF_LIFE_DONE,
     HF_LIFE_DO_EVICT | HF_LIFE_DO_CANCEL | HF_LIFE_DO_HUSH | HF_LIFE_DO_LEAVE | HF_LIFE_DO_RING},
    {"the fiber gets no thread before its time is over, and does its part afterwards",
     {HF_LIFE_STARTED, HF_LIFE_TIME_OVER, HF_LIFE_PATIENCE_OVER, HF_LIFE_TOLD, HF_LIFE_RETURNED, HF_LIFE_GRACE_OVER,
      HF_LIFE_ENDED},
     7,
     HF_LIFE_DONE,
     HF_LIFE_DO_EVICT | HF_LIFE_DO_CANCEL | HF_LIFE_DO_HUSH | HF_LIFE_DO_LEAVE | HF_LIFE_DO_RING},
    {"it ends while the keeper looks at the clock: nothing is left behind",
     {HF_LIFE_STARTED, HF_LIFE_TOLD, HF_LIFE_ENDED, HF_LIFE_TIME_OVER, HF_LIFE_PATIENCE_OVER},
     5,
     HF_LIFE_OVER,
     HF_LIFE_DO_EVICT | HF_LIFE_DO_RING},
};

static void a_life_takes_its_steps_and_its_actions(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        const life_case *c = &CASES[i];
        hf_life_state at = HF_LIFE_NEW;
        unsigned actions = 0;
        print_message("%s\n", c->what);
        for (int k = 0; k < c->count; k++) {
            hf_life_step step = hf_life_next(at, c->events[k]);
            assert_true(step.is_known);
            assert_int_equal(actions & step.actions, 0); /* nothing is done twice */
            actions |= step.actions;
            at = step.next;
        }
        assert_string_equal(hf_life_name(at), hf_life_name(c->end));
        assert_int_equal(actions, c->actions);
    }
}

static void a_life_never_goes_back_and_every_state_is_reached(void **state)
{
    (void)state;
    bool is_reached[HF_LIFE_STATE_COUNT] = {[HF_LIFE_NEW] = true};
    for (int from = 0; from < HF_LIFE_STATE_COUNT; from++) { /* arrows lead forward: one pass is enough */
        for (int event = 0; event < HF_LIFE_EVENT_COUNT; event++) {
            hf_life_step step = hf_life_next((hf_life_state)from, (hf_life_event)event);
            assert_true(!step.is_known || (int)step.next >= from);
            is_reached[step.next] |= step.is_known && is_reached[from];
        }
    }
    for (int i = 0; i < HF_LIFE_STATE_COUNT; i++) {
        assert_true(is_reached[i]);
    }
}

static void a_worker_starts_once_and_is_done_only_after_it_was_over_or_left(void **state)
{
    (void)state;
    for (int from = 0; from < HF_LIFE_STATE_COUNT; from++) {
        assert_int_equal(hf_life_next((hf_life_state)from, HF_LIFE_STARTED).is_known, from == HF_LIFE_NEW);
        assert_int_equal(hf_life_next((hf_life_state)from, HF_LIFE_RETURNED).is_known,
                         from == HF_LIFE_OVER || from == HF_LIFE_LEFT);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(a_life_takes_its_steps_and_its_actions),
        cmocka_unit_test(a_life_never_goes_back_and_every_state_is_reached),
        cmocka_unit_test(a_worker_starts_once_and_is_done_only_after_it_was_over_or_left),
    };
    return hf_test_main("life", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
