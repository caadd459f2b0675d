/* The end of a run that does not end by itself: reports what each thread waits for, calls the hook, aborts. Runs on
 * the main thread. From here on only that one exists: the others keep their stacks until hf_sim_free, but never run
 * again. */
#include "env/sim/sim_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void tell_deadline(FILE *out, const hf_sim *sim, const hf_thread *thread)
{
    if (thread->deadline.ns == INT64_MAX) {
        (void)fputs(", no deadline\n", out);
    } else {
        (void)fprintf(out, ", until %" PRId64 " ns from now\n", thread->deadline.ns - sim->now);
    }
}

static void tell_word(FILE *out, const hf_thread *thread)
{
    uint32_t value = atomic_load_explicit(thread->word, memory_order_relaxed);
    (void)fprintf(out, "waits for a word to differ from %" PRIu32, thread->expected);
    if (value != thread->expected) {
        (void)fprintf(out, ", it is %" PRIu32 ": a wake-up was lost", value);
    }
}

static void tell_poller(FILE *out, const hf_poller *poller)
{
    (void)fprintf(out, "waits in poller %" PRIu64 " with %" PRIu32 " descriptors", poller->serial, poller->watch_count);
    HF_LIST_EACH(node, &poller->watches)
    {
        const hf_sim_watch *watch = HF_CONTAINER(node, hf_sim_watch, in_poller);
        (void)fprintf(out, " %d%s%s", watch->desc->fd, (watch->events & HF_READABLE) != 0 ? "r" : "",
                      (watch->events & HF_WRITABLE) != 0 ? "w" : "");
    }
}

static void tell_thread(FILE *out, const hf_sim *sim, const hf_thread *thread)
{
    (void)fprintf(out, "  thread %" PRIu64 " \"%s\": ", thread->serial, thread->name);
    switch (thread->state) {
    case HF_SIM_RUNNABLE:
        (void)fputs("can run\n", out);
        return;
    case HF_SIM_ENDED:
        (void)fputs("ended, not joined\n", out);
        return;
    case HF_SIM_ON_WORD:
        tell_word(out, thread);
        break;
    case HF_SIM_ON_POLLER:
        tell_poller(out, thread->poller);
        break;
    case HF_SIM_ON_JOIN:
        if (thread->target != NULL) {
            (void)fprintf(out, "waits for thread %" PRIu64 " \"%s\" to end", thread->target->serial,
                          thread->target->name);
        } else {
            (void)fputs("waits for the forgotten threads to end", out);
        }
        break;
    case HF_SIM_ASLEEP:
        (void)fputs("is in a slow operation", out);
        break;
    case HF_SIM_HELD:
        (void)fputs("is held at a point", out);
        break;
    }
    tell_deadline(out, sim, thread);
}

/* NULL = no memory for it. */
static char *report_new(const hf_sim *sim)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL) {
        return NULL;
    }
    (void)fprintf(out, "holdfast: the simulated run is %s: seed %" PRIu64 ", step %" PRIu64 ", time %" PRId64 " ns\n",
                  sim->verdict == HF_SIM_STUCK ? "stuck, every thread waits and nothing can wake one"
                                               : "endless, it took more than steps_max",
                  sim->seed, sim->steps, sim->now);
    HF_LIST_EACH(node, &sim->threads)
    {
        tell_thread(out, sim, HF_CONTAINER(node, hf_thread, node));
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

void hf_sim_give_up(hf_sim *sim)
{
    hf_assert(sim->current == &sim->main_thread && sim->verdict != HF_SIM_GOES_ON);
    free(sim->report);
    sim->report = report_new(sim);
    const char *report = sim->report != NULL ? sim->report : "holdfast: the simulated run does not end\n";
    sim->is_over = true;
    sim->main_thread.state = HF_SIM_RUNNABLE;
    sim->main_thread.deadline = HF_INSTANT_NEVER;
    sim->main_thread.slot = 0;
    sim->runnable[0] = &sim->main_thread;
    sim->runnable_count = 1;
    HF_LIST_EACH(node, &sim->threads)
    { /* no other thread is chosen or woken again */
        hf_thread *thread = HF_CONTAINER(node, hf_thread, node);
        if (thread != &sim->main_thread) {
            thread->state = HF_SIM_ENDED;
        }
    }
    if (sim->on_stuck != NULL) {
        sim->on_stuck(sim->on_stuck_state, report);
    }
    sim->env.ops->print(&sim->env, report);
    hf_panic(sim->verdict == HF_SIM_STUCK ? "the simulated run ends" : "the simulated run ends within steps_max",
             __FILE__, __LINE__);
}
