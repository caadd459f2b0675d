#include "worker/life.h"

#define STEP(state, actions)             \
    {                                    \
        true, HF_LIFE_##state, (actions) \
    }

static const char *const NAMES[] = {
    [HF_LIFE_NEW] = "new",     [HF_LIFE_POLLING] = "polling",     [HF_LIFE_GRACE] = "grace",
    [HF_LIFE_FORCE] = "force", [HF_LIFE_LAST_WORD] = "last word", [HF_LIFE_LEFT] = "left",
    [HF_LIFE_OVER] = "over",   [HF_LIFE_DONE] = "done",
};
_Static_assert(HF_COUNT_OF(NAMES) == HF_LIFE_STATE_COUNT, "every state has a name");

/* An event that is not listed for a state cannot come in it. */
static const hf_life_step STEPS[HF_LIFE_STATE_COUNT][HF_LIFE_EVENT_COUNT] = {
    [HF_LIFE_NEW] =
        {
            [HF_LIFE_STARTED] = STEP(POLLING, 0),
        },
    [HF_LIFE_POLLING] =
        {
            [HF_LIFE_TOLD] = STEP(GRACE, HF_LIFE_DO_EVICT),
            [HF_LIFE_TIME_OVER] =
                STEP(LAST_WORD, HF_LIFE_DO_HUSH), /* its fiber got no thread, and so has not heard of the stop */
            [HF_LIFE_ENDED] = STEP(OVER, HF_LIFE_DO_RING), /* it could not begin */
        },
    [HF_LIFE_GRACE] =
        {
            [HF_LIFE_GRACE_OVER] = STEP(FORCE, HF_LIFE_DO_CANCEL),
            [HF_LIFE_TIME_OVER] = STEP(LAST_WORD, HF_LIFE_DO_HUSH),
            [HF_LIFE_ENDED] = STEP(OVER, HF_LIFE_DO_RING),
        },
    [HF_LIFE_FORCE] =
        {
            [HF_LIFE_TIME_OVER] = STEP(LAST_WORD, HF_LIFE_DO_HUSH),
            [HF_LIFE_ENDED] = STEP(OVER, HF_LIFE_DO_RING),
        },
    [HF_LIFE_LAST_WORD] =
        {
            [HF_LIFE_TOLD] = STEP(LAST_WORD, HF_LIFE_DO_EVICT),
            [HF_LIFE_GRACE_OVER] = STEP(LAST_WORD, HF_LIFE_DO_CANCEL),
            [HF_LIFE_TIME_OVER] = STEP(LAST_WORD, 0),
            [HF_LIFE_PATIENCE_OVER] = STEP(LEFT, HF_LIFE_DO_LEAVE),
            [HF_LIFE_ENDED] = STEP(OVER, HF_LIFE_DO_RING),
        },
    [HF_LIFE_LEFT] =
        {
            [HF_LIFE_TOLD] = STEP(LEFT, HF_LIFE_DO_EVICT),
            [HF_LIFE_GRACE_OVER] = STEP(LEFT, HF_LIFE_DO_CANCEL),
            [HF_LIFE_ENDED] = STEP(LEFT, HF_LIFE_DO_RING),
            [HF_LIFE_RETURNED] = STEP(DONE, 0),
        },
    [HF_LIFE_OVER] =
        {
            /* the keeper may have looked at its clock before it heard of the end */
            [HF_LIFE_TIME_OVER] = STEP(OVER, 0),
            [HF_LIFE_PATIENCE_OVER] = STEP(OVER, 0),
            [HF_LIFE_RETURNED] = STEP(DONE, 0),
        },
    [HF_LIFE_DONE] =
        {
            /* work that was left behind goes on */
            [HF_LIFE_TOLD] = STEP(DONE, HF_LIFE_DO_EVICT),
            [HF_LIFE_GRACE_OVER] = STEP(DONE, HF_LIFE_DO_CANCEL),
            [HF_LIFE_ENDED] = STEP(DONE, HF_LIFE_DO_RING),
        },
};

hf_life_step hf_life_next(hf_life_state state, hf_life_event event)
{
    hf_assert((unsigned)state < HF_LIFE_STATE_COUNT && (unsigned)event < HF_LIFE_EVENT_COUNT);
    hf_life_step step = STEPS[state][event];
    hf_assert(!step.is_known || step.next >= state); /* worker-L1 */
    return step;
}

const char *hf_life_name(hf_life_state state)
{
    return (unsigned)state < HF_LIFE_STATE_COUNT ? NAMES[state] : "?";
}
