/* A crew with an owner who keeps a notebook. Each test drives it from a plain fiber of a simulated runtime and reads what it wrote
 * down. */
#ifndef HF_TESTS_CREW_RIG_H
#define HF_TESTS_CREW_RIG_H

#include "fiber/crew/crew.h"
#include "fiber/sched/wait.h"

#include "support/support.h"

#include <stdio.h>
#include <string.h>

/* ---- The owner: a notebook of what happened, and of timers ---------------------------------------------------- */

enum { TIMERS_MAX = 64 };

typedef struct owner {
    hf_crew *crew;
    char notes[2048];
    size_t len;
    hf_crew_timer *timers[TIMERS_MAX]; /* by id; NULL once fired or canceled */
    size_t timer_count;
} owner;

static owner *the; /* of the running test: one fiber thread, one crew */

static inline void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(the->notes + the->len, sizeof the->notes - the->len, format, args);
    va_end(args);
    the->len += len > 0 ? (size_t)len : 0;
}

static hf_status timer_start(void *state, hf_crew_timer *timer, hf_span span)
{
    owner *o = state;
    timer->id = o->timer_count;
    o->timers[o->timer_count++] = timer;
    note("+%d:%d ", (int)timer->id, (int)(span.ns / 1000000000));
    return HF_OK;
}

static void timer_cancel(void *state, hf_crew_timer *timer)
{
    owner *o = state;
    o->timers[timer->id] = NULL;
    note("-%d ", (int)timer->id);
}

static const hf_crew_ops OPS = {timer_start, timer_cancel, NULL, NULL, NULL};

static inline void fire(owner *o, size_t id)
{
    hf_crew_timer *timer = o->timers[id];
    if (HF_CHECK(timer != NULL)) {
        o->timers[id] = NULL;
        hf_crew_fire(o->crew, timer);
    }
}

static inline hf_status begin(owner *o, hf_body body, void *arg)
{
    hf_op op;
    hf_op_init(&op);
    *o = (owner){.crew = NULL};
    the = o;
    HF_TRY(hf_crew_open(&op, &o->crew, &(hf_crew_options){"test", &OPS, o, 7}));
    hf_crew_set_now(o->crew, (hf_time){1000});
    return hf_crew_fork(&op, o->crew, body, arg, "first");
}

static inline void expect(const owner *o, const char *notes)
{
    HF_CHECK_SAY(strcmp(o->notes, notes) == 0, "it went '%s', not '%s'", o->notes, notes);
}

static inline void on_a_fiber(hf_body body)
{
    uint64_t first = 0;
    uint64_t again = 0;
    HF_CHECK(hf_sim_run(1, 2, body, NULL, &first) == HF_OK);
    HF_CHECK(hf_sim_run(1, 2, body, NULL, &again) == HF_OK);
    HF_CHECK(first == again);
}

/* ---- Members ------------------------------------------------------------------------------------------------------ */

static inline hf_status say_twice(void *arg)
{
    note("%s ", (const char *)arg);
    HF_TRY(hf_yield());
    note("%s2 ", (const char *)arg);
    return HF_OK;
}

static inline hf_status wait_for_ever(void *arg)
{
    hf_status status = hf_sleep(hf_days(1));
    note("%s:%s ", (const char *)arg, status == HF_ERR_EVICTED ? "evicted" : hf_status_name(status));
    HF_CHECK(status != HF_ERR_EVICTED || hf_canceled() == HF_OK);
    HF_CHECK(status != HF_ERR_EVICTED || hf_sleep(hf_seconds(1)) == HF_ERR_EVICTED);
    HF_CHECK(status != HF_ERR_EVICTED || hf_yield() == HF_ERR_EVICTED);
    return status;
}

static inline hf_status park_here(void *arg)
{
    hf_chan *chan = arg;
    unsigned char byte = 0;
    return hf_chan_recv(chan, &byte);
}

#endif
