/* The watchdog's policy. One case per slot:
 *
 *     moving --stuck_ns--> stuck (REPORT, CANCEL, INTERRUPT) --zombie_ns--> counted (COUNT) --give_up_ns--> given up
 *        ^                   |        REPLACE until replaced;                  |                              |
 *        |                   |        INTERRUPT at 1, 2, 4, 8 ... first_ns     |                              |
 *        +-------------------+------------------------ UNCOUNT ----------------+------------------------------+
 *
 * fiber-D1  All times of an episode count from the moment at which it was found stuck. The grace has its own timer:
 *           it does not wait for the next interrupt (X13).
 * fiber-D2  Without a granted signal there is no CANCEL, INTERRUPT, REPLACE or GIVE_UP: fibers are only reported and
 *           counted.
 * fiber-D3  COUNT and UNCOUNT alternate per slot, and zombie_count is their difference.
 * fiber-D4  The ladder starts once, when zombie_count >= zombies_max (X12), and never goes back: the runtime takes
 *           no work any more. The fatal hook is only for zombies: when the last one ends, the ladder is over.
 * fiber-D5  A branch on a pool is sampled from its cancel on, and counts as stuck from then on: it may block, but
 *           not after it was canceled. It is neither reported nor canceled nor replaced. Interrupts, grace and
 *           giving up are those of a fiber, and it counts among the same zombies.
 * A late step does once what is due, and plans as if it had been in time. */
#include "fiber/watch/watch_policy.h"

#include "base/base.h"
#include "base/canary.h"

#include <string.h>

/* ---- Figures ----------------------------------------------------------------------------------------------------- */

static int64_t span_or(hf_span span, int64_t seconds)
{
    if (span.ns == 0) {
        return seconds * INT64_C(1000000000);
    }
    return span.ns < 0 ? HF_WATCHDOG_NEVER : span.ns;
}

hf_watchdog_figures hf_watchdog_figures_of(const hf_watchdog_options *options)
{
    hf_watchdog_figures figures = {
        .stuck_ns = span_or(options->stuck_after, 2),
        .zombie_ns = span_or(options->zombie_after, 10),
        .interrupt_first_ns = span_or(options->interrupt_first, 1),
        .interrupt_max_ns = span_or(options->interrupt_max, 60),
        .give_up_ns = span_or(options->give_up_after, 3600),
        .grace_ns = options->shutdown_grace.ns < 0 ? 0 : span_or(options->shutdown_grace, 10), /* off: cancel at once */
        .force_ns = span_or(options->shutdown_force, 5),
        .fatal_ns = span_or(options->fatal_after, 60),
        .zombies_max = options->zombies_max == 0 ? 10 : options->zombies_max,
        .may_interrupt = options->signal != 0,
    };
    if (figures.zombies_max < 0) {
        figures.zombies_max = 0;
    }
    return figures;
}

static int64_t sum(int64_t a, int64_t b)
{
    return a > HF_WATCHDOG_NEVER - b ? HF_WATCHDOG_NEVER : a + b;
}

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

typedef struct step {
    hf_watchdog_policy *policy;
    int64_t now_ns;
    hf_watchdog_action *actions;
    int count;
} step;

static void act(step *s, hf_watchdog_kind kind, int slot, int64_t since_ns)
{
    hf_assert(s->count < HF_WATCHDOG_ACTIONS_MAX(s->policy->slot_count));
    hf_assert(s->policy->figures.may_interrupt ||
              (kind != HF_WATCHDOG_CANCEL && kind != HF_WATCHDOG_INTERRUPT && kind != HF_WATCHDOG_REPLACE &&
               kind != HF_WATCHDOG_GIVE_UP)); /* fiber-D2 */
    hf_assert(slot < hf_watchdog_pool_first(s->policy) ||
              (kind != HF_WATCHDOG_REPORT && kind != HF_WATCHDOG_CANCEL && kind != HF_WATCHDOG_REPLACE)); /* fiber-D5 */
    s->actions[s->count++] = (hf_watchdog_action){kind, slot, s->now_ns - since_ns};
}

static bool has_moved(const hf_watchdog_case *c, const hf_watchdog_sample *sample)
{
    if (c->is_replaced) {
        return sample->is_gone;
    }
    return !c->is_known || sample->is_idle || sample->is_gone || sample->run != c->run ||
           sample->progress != c->progress;
}

/* By how much it counts as a zombie. */
static int weight(const hf_watchdog_case *c)
{
    return c->is_on_pool && HF_CANARY(HF_BUG_ZOMBIE_NOT_COUNTED) ? 0 : 1;
}

static void begin_again(step *s, hf_watchdog_case *c, const hf_watchdog_sample *sample)
{
    hf_watchdog_policy *policy = s->policy;
    hf_assert(!c->is_counted || c->is_stuck); /* fiber-D3 */
    if (c->is_counted) {
        policy->zombie_count -= weight(c);
        act(s, HF_WATCHDOG_UNCOUNT, sample->slot, c->since_ns);
    }
    policy->stuck_count -= c->is_stuck;
    *c = (hf_watchdog_case){.run = sample->run,
                            .progress = sample->progress,
                            .since_ns = s->now_ns,
                            .is_known = !sample->is_gone,
                            .is_on_pool = sample->is_on_pool};
}

/* True: an interrupt is due. Plans the next: at 1, 2, 4, 8 ... times the first, at most interrupt_max_ns apart. */
static bool retry(const hf_watchdog_figures *figures, hf_watchdog_case *c, int64_t elapsed)
{
    if (elapsed < c->retry_after || c->retry_after == HF_WATCHDOG_NEVER) {
        return false;
    }
    while (c->retry_after <= elapsed) {
        int64_t pause = c->retry_after < figures->interrupt_max_ns ? c->retry_after : figures->interrupt_max_ns;
        c->retry_after = sum(c->retry_after, pause > 0 ? pause : 1);
    }
    return true;
}

static void find_stuck(step *s, hf_watchdog_case *c, int slot)
{
    hf_assert(!c->is_stuck && !c->is_counted);
    c->is_stuck = true;
    c->stuck_ns = s->now_ns;
    c->retry_after = s->policy->figures.interrupt_first_ns;
    s->policy->stuck_count++;
    if (!c->is_on_pool) {
        act(s, HF_WATCHDOG_REPORT, slot, c->since_ns);
    }
    if (s->policy->figures.may_interrupt) {
        if (!c->is_on_pool) {
            act(s, HF_WATCHDOG_CANCEL, slot, c->since_ns);
        }
        act(s, HF_WATCHDOG_INTERRUPT, slot, c->since_ns);
    }
}

static void step_case(step *s, hf_watchdog_case *c, const hf_watchdog_sample *sample)
{
    const hf_watchdog_figures *figures = &s->policy->figures;
    int slot = sample->slot;
    if (!c->is_stuck) {
        int64_t patience = c->is_on_pool ? 0 : figures->stuck_ns; /* fiber-D5 */
        if (patience == HF_WATCHDOG_NEVER || s->now_ns - c->since_ns < patience) {
            return;
        }
        find_stuck(s, c, slot);
    }
    int64_t elapsed = s->now_ns - c->stuck_ns;
    hf_assert(elapsed >= 0); /* fiber-D1 */
    if (figures->may_interrupt && !c->has_given_up) {
        if (elapsed >= figures->give_up_ns) {
            c->has_given_up = true;
            act(s, HF_WATCHDOG_GIVE_UP, slot, c->since_ns);
        } else {
            if (!c->is_replaced && !c->is_on_pool && sample->in_user) {
                act(s, HF_WATCHDOG_REPLACE, slot, c->since_ns);
            }
            if (retry(figures, c, elapsed)) {
                act(s, HF_WATCHDOG_INTERRUPT, slot, c->since_ns);
            }
        }
    }
    if (!c->is_counted && elapsed >= figures->zombie_ns) {
        c->is_counted = true;
        s->policy->zombie_count += weight(c);
        act(s, HF_WATCHDOG_COUNT, slot, c->since_ns);
    }
}

/* ---- The ladder -------------------------------------------------------------------------------------------------- */

/* Whether no fiber runs except zombies. */
static bool is_quiet(const hf_watchdog_policy *policy, const hf_watchdog_sample *samples, int sample_count)
{
    for (int i = 0; i < sample_count; i++) {
        if (!samples[i].is_idle && !samples[i].is_gone && !policy->cases[samples[i].slot].is_counted) {
            return false;
        }
    }
    return true;
}

static void give_up_all(hf_watchdog_policy *policy)
{
    for (int i = 0; i < policy->slot_count; i++) {
        policy->cases[i].has_given_up |= policy->cases[i].is_stuck;
    }
}

static void step_ladder(step *s, const hf_watchdog_sample *samples, int sample_count)
{
    hf_watchdog_policy *policy = s->policy;
    const hf_watchdog_figures *figures = &policy->figures;
    if (policy->stage == HF_WATCHDOG_OVER) {
        return;
    }
    if (policy->stage == HF_WATCHDOG_SERVING) {
        if (figures->zombies_max == 0 || policy->zombie_count < figures->zombies_max) {
            return;
        }
        policy->stage = HF_WATCHDOG_DRAINING;
        policy->threshold_ns = s->now_ns;
        act(s, HF_WATCHDOG_SHUTDOWN, -1, s->now_ns);
    }
    int64_t elapsed = s->now_ns - policy->threshold_ns;
    int64_t forced_at = sum(figures->grace_ns, figures->force_ns);
    if (policy->stage == HF_WATCHDOG_DRAINING && elapsed >= figures->grace_ns) {
        policy->stage = HF_WATCHDOG_CANCELING;
        act(s, HF_WATCHDOG_CANCEL_ALL, -1, policy->threshold_ns);
        return; /* canceled branches get a turn before they are judged */
    }
    if (policy->stage == HF_WATCHDOG_CANCELING && elapsed >= forced_at && forced_at != HF_WATCHDOG_NEVER) {
        policy->stage = HF_WATCHDOG_FORCED;
        give_up_all(policy);
    }
    if (policy->stage != HF_WATCHDOG_DRAINING && policy->zombie_count == 0) {
        policy->stage = HF_WATCHDOG_OVER;
        return;
    }
    bool is_late = elapsed >= figures->fatal_ns && policy->zombie_count > 0;
    bool is_done = policy->stage == HF_WATCHDOG_FORCED && is_quiet(policy, samples, sample_count);
    if (figures->fatal_ns != HF_WATCHDOG_NEVER && (is_late || is_done)) {
        policy->stage = HF_WATCHDOG_OVER;
        act(s, HF_WATCHDOG_FATAL, -1, policy->threshold_ns);
    }
}

/* ---- The step ---------------------------------------------------------------------------------------------------- */

void hf_watchdog_policy_init(hf_watchdog_policy *policy, const hf_watchdog_figures *figures, int sched_count,
                             hf_watchdog_case *cases, int slot_count)
{
    hf_assert(sched_count >= 0 && sched_count <= HF_THREADS_MAX && slot_count >= sched_count + HF_LOST_MAX);
    *policy =
        (hf_watchdog_policy){.figures = *figures, .sched_count = sched_count, .cases = cases, .slot_count = slot_count};
}

void hf_watchdog_policy_grow(hf_watchdog_policy *policy, hf_watchdog_case *cases, int slot_count)
{
    hf_assert(slot_count >= policy->slot_count);
    memcpy(cases, policy->cases, (size_t)policy->slot_count * sizeof *cases);
    policy->cases = cases;
    policy->slot_count = slot_count;
}

int hf_watchdog_policy_step(hf_watchdog_policy *policy, int64_t now_ns, const hf_watchdog_sample *samples,
                            int sample_count, hf_watchdog_action *ret_actions)
{
    step s = {policy, now_ns, ret_actions, 0};
    hf_watchdog_stage before = policy->stage;
    for (int i = 0; i < sample_count; i++) {
        const hf_watchdog_sample *sample = &samples[i];
        hf_assert(sample->slot >= 0 && sample->slot < policy->slot_count);
        hf_assert(sample->is_on_pool == (sample->slot >= hf_watchdog_pool_first(policy)));
        hf_watchdog_case *c = &policy->cases[sample->slot];
        bool is_new = has_moved(c, sample);
        if (is_new) {
            begin_again(&s, c, sample);
        }
        if (c->is_known && (!is_new || c->is_on_pool)) { /* a branch is interrupted at once */
            step_case(&s, c, sample);
        }
    }
    step_ladder(&s, samples, sample_count);
    hf_assert(policy->stage >= before); /* fiber-D4 */
    hf_assert(policy->zombie_count >= 0 && policy->zombie_count <= policy->stuck_count);
    return s.count;
}

void hf_watchdog_policy_replaced(hf_watchdog_policy *policy, int slot, int lost_slot)
{
    hf_assert(slot >= 0 && slot < policy->sched_count);
    hf_assert(lost_slot >= policy->sched_count && lost_slot < hf_watchdog_pool_first(policy));
    hf_watchdog_case *lost = &policy->cases[lost_slot];
    hf_assert(!lost->is_known);
    *lost = policy->cases[slot];
    lost->is_known = true;
    lost->is_replaced = true;
    policy->cases[slot] = (hf_watchdog_case){0};
}

bool hf_watchdog_policy_is_calm(const hf_watchdog_policy *policy)
{
    return policy->stuck_count == 0 && (policy->stage == HF_WATCHDOG_SERVING || policy->stage == HF_WATCHDOG_OVER);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t next_of_case(const hf_watchdog_figures *figures, const hf_watchdog_case *c)
{
    if (!c->is_known) {
        return HF_WATCHDOG_NEVER;
    }
    if (!c->is_stuck) {
        return sum(c->since_ns, figures->stuck_ns);
    }
    int64_t after = c->is_counted ? HF_WATCHDOG_NEVER : figures->zombie_ns;
    if (figures->may_interrupt && !c->has_given_up) {
        after = sooner(after, sooner(c->retry_after, figures->give_up_ns));
        after = c->is_replaced || c->is_on_pool ? after : 0; /* REPLACE is repeated */
    }
    return sum(c->stuck_ns, after);
}

static int64_t next_of_ladder(const hf_watchdog_policy *policy)
{
    const hf_watchdog_figures *figures = &policy->figures;
    switch (policy->stage) {
    case HF_WATCHDOG_SERVING:
    case HF_WATCHDOG_OVER:
        break;
    case HF_WATCHDOG_DRAINING:
        return sum(policy->threshold_ns, sooner(figures->grace_ns, figures->fatal_ns));
    case HF_WATCHDOG_CANCELING:
        return sum(policy->threshold_ns, sooner(sum(figures->grace_ns, figures->force_ns), figures->fatal_ns));
    case HF_WATCHDOG_FORCED: /* any other fiber may end at any time */
        return figures->fatal_ns == HF_WATCHDOG_NEVER ? HF_WATCHDOG_NEVER : policy->threshold_ns;
    }
    return HF_WATCHDOG_NEVER;
}

int64_t hf_watchdog_policy_next(const hf_watchdog_policy *policy)
{
    int64_t next = next_of_ladder(policy);
    for (int i = 0; i < policy->slot_count; i++) {
        next = sooner(next, next_of_case(&policy->figures, &policy->cases[i]));
    }
    return next;
}
