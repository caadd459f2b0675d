/* Crews: fibers that run only in their driver's turns, in an order that depends on nothing but themselves; their time is a
 * matter of their owner. Each test drives a crew from a plain fiber of a simulated runtime and reads what it wrote down. */
#include "fiber/crew.h"
#include "fiber/wait.h"

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

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
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

static const hf_crew_ops OPS = {timer_start, timer_cancel};

static void fire(owner *o, size_t id)
{
    hf_crew_timer *timer = o->timers[id];
    if (HF_CHECK(timer != NULL)) {
        o->timers[id] = NULL;
        hf_crew_fire(o->crew, timer);
    }
}

static hf_status begin(owner *o, hf_body body, void *arg)
{
    hf_op op;
    hf_op_init(&op);
    *o = (owner){.crew = NULL};
    the = o;
    HF_TRY(hf_crew_open(&op, &o->crew, &(hf_crew_options){"test", &OPS, o, 7}));
    hf_crew_set_now(o->crew, (hf_time){1000});
    return hf_crew_fork(&op, o->crew, body, arg, "first");
}

static void expect(const owner *o, const char *notes)
{
    HF_CHECK_SAY(strcmp(o->notes, notes) == 0, "it went '%s', not '%s'", o->notes, notes);
}

static void on_a_fiber(hf_body body)
{
    uint64_t first = 0;
    uint64_t again = 0;
    HF_CHECK(hf_sim_run(1, 2, body, NULL, &first) == HF_OK);
    HF_CHECK(hf_sim_run(1, 2, body, NULL, &again) == HF_OK);
    HF_CHECK(first == again);
}

/* ---- Order ---------------------------------------------------------------------------------------------------- */

static hf_status say_twice(void *arg)
{
    note("%s ", (const char *)arg);
    HF_TRY(hf_yield());
    note("%s2 ", (const char *)arg);
    return HF_OK;
}

static hf_status fork_three(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, say_twice, (void *)(uintptr_t) "a"));
    HF_TRY(hf_fork(scope, say_twice, (void *)(uintptr_t) "b"));
    HF_TRY(hf_fork(scope, say_twice, (void *)(uintptr_t) "c"));
    note("forked ");
    HF_TRY(hf_join(scope));
    note("joined ");
    return HF_OK;
}

static hf_status drive_order(void *arg)
{
    (void)arg;
    owner o;
    HF_TRY(begin(&o, fork_three, NULL));
    note("open ");
    hf_crew_turn(o.crew);
    HF_CHECK(hf_crew_is_over(o.crew));
    expect(&o, "open forked a b c a2 b2 c2 joined ");
    hf_crew_close(o.crew);
    return HF_OK;
}

static void members_run_in_turns_first_in_first_out(void **state)
{
    (void)state;
    on_a_fiber(drive_order);
}

/* A pipe of channels and a lock among forty members: what comes out, and in which order, is always the same. */
typedef struct crowd {
    hf_chan *chan;
    hf_mutex *mutex;
    unsigned hash;
} crowd;

static hf_status jostle(void *arg)
{
    crowd *c = arg;
    unsigned char bytes[2];
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_random(NULL, bytes, sizeof bytes));
        HF_TRY(hf_mutex_lock(c->mutex));
        c->hash = c->hash * 31 + bytes[0];
        if (bytes[1] % 2 == 0) {
            HF_TRY(hf_yield());
        }
        HF_TRY(hf_mutex_unlock(c->mutex));
        HF_TRY(bytes[1] % 3 == 0 ? hf_chan_send(c->chan, bytes) : hf_yield());
    }
    return HF_OK;
}

static hf_status drain(void *arg)
{
    crowd *c = arg;
    unsigned char byte = 0;
    while (hf_chan_recv(c->chan, &byte) == HF_OK) {
        c->hash = c->hash * 33 + byte;
    }
    return HF_OK;
}

static hf_status run_crowd(void *arg)
{
    crowd *c = arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_TRY(hf_chan_new(&chan, 1, .capacity = 2));
    HF_TRY(hf_mutex_new(&mutex));
    c->chan = chan;
    c->mutex = mutex;
    HF_AUTO(hf_scope_close) hf_scope *drains = NULL;
    HF_TRY(hf_scope_open(&drains));
    HF_TRY(hf_fork(drains, drain, c));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 40; i++) {
        HF_TRY(hf_fork(scope, jostle, c));
    }
    HF_TRY(hf_join(scope));
    HF_TRY(hf_scope_close(scope));
    scope = NULL;
    HF_TRY(hf_chan_close(chan));
    return hf_join(drains);
}

static unsigned crowd_hash;

static hf_status drive_crowd(void *arg)
{
    (void)arg;
    owner o;
    crowd c = {.hash = 1};
    HF_TRY(begin(&o, run_crowd, &c));
    hf_crew_turn(o.crew);
    HF_CHECK(hf_crew_is_over(o.crew) && !hf_crew_is_disturbed(o.crew));
    hf_crew_close(o.crew);
    HF_CHECK_SAY(crowd_hash == 0 || crowd_hash == c.hash, "%u became %u", crowd_hash, c.hash);
    crowd_hash = c.hash;
    return HF_OK;
}

static void one_crowd(uint64_t seed)
{
    HF_CHECK(hf_sim_run(seed, 1 + (int)(seed % 3), drive_crowd, NULL, NULL) == HF_OK);
}

static void a_crowd_goes_the_same_way_on_every_schedule(void **state)
{
    (void)state;
    crowd_hash = 0;
    hf_each_seed("crowd", 200, one_crowd);
}

/* ---- Time ----------------------------------------------------------------------------------------------------- */

static hf_status sleep_a_lot(void *arg)
{
    (void)arg;
    int64_t before = hf_now(NULL).ns;
    HF_TRY(hf_sleep(hf_seconds(5)));
    note("woke@%d ", (int)(hf_now(NULL).ns - before));
    HF_CHECK(hf_wall_now(NULL).ns == hf_now(NULL).ns);
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(60)));
        HF_CHECK(hf_time_left().ns == hf_seconds(60).ns);
        HF_TRY(hf_fork(scope, say_twice, (void *)(uintptr_t) "d", .delay = hf_seconds(7)));
        HF_TRY(hf_join(scope)); /* in time: its timer is canceled */
    }
    HF_AUTO(hf_scope_close) hf_scope *late = NULL;
    HF_TRY(hf_scope_open(&late, .timeout = hf_seconds(9)));
    HF_CHECK(hf_sleep(hf_seconds(3600)) == HF_ERR_CANCELED);
    HF_CHECK(hf_join(late) == HF_ERR_TIMEOUT);
    return HF_OK;
}

static hf_status drive_time(void *arg)
{
    (void)arg;
    owner o;
    HF_TRY(begin(&o, sleep_a_lot, NULL));
    hf_crew_turn(o.crew);
    hf_crew_set_now(o.crew, (hf_time){1500});
    hf_crew_set_now(o.crew, (hf_time){1400}); /* a clock that went back */
    fire(&o, 0);
    hf_crew_turn(o.crew);
    fire(&o, 2);
    hf_crew_turn(o.crew);
    fire(&o, 3);
    hf_crew_turn(o.crew);
    HF_CHECK(hf_crew_is_over(o.crew));
    expect(&o, "+0:5 woke@500 +1:60 +2:7 d d2 -1 +3:9 +4:3600 -4 ");
    hf_crew_close(o.crew);
    return HF_OK;
}

static void deadlines_are_timers_of_the_owner(void **state)
{
    (void)state;
    on_a_fiber(drive_time);
}

/* ---- Cancel and eviction -------------------------------------------------------------------------------------- */

static hf_status wait_for_ever(void *arg)
{
    hf_status status = hf_sleep(hf_days(1));
    note("%s:%s ", (const char *)arg, status == HF_ERR_EVICTED ? "evicted" : hf_status_name(status));
    HF_CHECK(status != HF_ERR_EVICTED || hf_canceled() == HF_OK);
    HF_CHECK(status != HF_ERR_EVICTED || hf_sleep(hf_seconds(1)) == HF_ERR_EVICTED);
    HF_CHECK(status != HF_ERR_EVICTED || hf_yield() == HF_ERR_EVICTED);
    return status;
}

static hf_status never_begins(void *arg)
{
    (void)arg;
    HF_CHECK(!"a job that had not begun was begun by an eviction");
    return HF_OK;
}

static void dropped(void *arg)
{
    (void)arg;
    note("drop ");
}

static hf_status hold_many(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    HF_TRY(hf_fork(scope, wait_for_ever, (void *)(uintptr_t) "x"));
    HF_TRY(hf_fork(scope, wait_for_ever, (void *)(uintptr_t) "y"));
    HF_TRY(hf_fork(scope, never_begins, NULL, .delay = hf_days(2), .drop = dropped));
    hf_status status = hf_join(scope);
    note("join:%s ", hf_status_name(status));
    if (status == HF_ERR_EVICTED) {
        HF_CHECK(hf_fork(scope, say_twice, NULL) == HF_ERR_EVICTED);
        HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
        HF_CHECK(hf_shield_open(&shield, hf_seconds(1)) == HF_OK);
        HF_CHECK(hf_sleep(hf_seconds(1)) == HF_ERR_EVICTED);
    }
    return status;
}

static hf_status drive_eviction(void *arg)
{
    (void)arg;
    owner o;
    HF_TRY(begin(&o, hold_many, NULL));
    hf_crew_turn(o.crew);
    expect(&o, "+0:172800 +1:86400 +2:86400 ");
    hf_crew_evict(o.crew);
    HF_CHECK(hf_crew_is_over(o.crew));
    expect(&o, "+0:172800 +1:86400 +2:86400 drop x:evicted y:evicted join:HF_ERR_EVICTED ");
    hf_crew_close(o.crew);
    return HF_OK;
}

static void an_evicted_crew_returns_without_a_trace(void **state)
{
    (void)state;
    on_a_fiber(drive_eviction);
}

static hf_status drive_cancel(void *arg)
{
    (void)arg;
    owner o;
    HF_TRY(begin(&o, hold_many, NULL));
    hf_crew_turn(o.crew);
    hf_crew_cancel(o.crew, "asked to");
    hf_crew_turn(o.crew);
    HF_CHECK(hf_crew_is_over(o.crew));
    HF_CHECK(strstr(o.notes, "x:HF_ERR_CANCELED") != NULL && strstr(o.notes, "y:HF_ERR_CANCELED") != NULL);
    hf_crew_close(o.crew);
    return HF_OK;
}

static void a_cancel_reaches_all_members(void **state)
{
    (void)state;
    on_a_fiber(drive_cancel);
}

/* More than a cancel interrupts at once on plain fibers: here all of them, in the same turn. */
static hf_status park_here(void *arg)
{
    hf_chan *chan = arg;
    unsigned char byte = 0;
    return hf_chan_recv(chan, &byte);
}

static hf_status hold_hundreds_on_a_channel(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(&chan, 1));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_seconds(1)));
    for (int i = 0; i < 300; i++) {
        HF_TRY(hf_fork(scope, park_here, chan));
    }
    HF_CHECK(hf_join(scope) == HF_ERR_TIMEOUT);
    note("all ");
    HF_TRY(hf_scope_close(scope));
    scope = NULL;
    return HF_OK;
}

static hf_status drive_hundreds(void *arg)
{
    (void)arg;
    owner o;
    HF_TRY(begin(&o, hold_hundreds_on_a_channel, NULL));
    hf_crew_turn(o.crew);
    fire(&o, 0);
    hf_crew_turn(o.crew);
    HF_CHECK(hf_crew_is_over(o.crew));
    expect(&o, "+0:1 all ");
    hf_crew_close(o.crew);
    return HF_OK;
}

static void a_deadline_interrupts_hundreds_in_one_turn(void **state)
{
    (void)state;
    on_a_fiber(drive_hundreds);
}

/* ---- The border ----------------------------------------------------------------------------------------------- */

static hf_scope *outside;
static hf_scope *inside;

static hf_status fork_outside(void *arg)
{
    (void)arg;
    HF_CHECK(hf_fork(outside, say_twice, NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_error_text()[0] != '\0');
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    inside = scope;
    HF_CHECK(hf_sleep(hf_seconds(1)) == HF_OK);
    return HF_OK;
}

static hf_status intrude(void *arg)
{
    (void)arg;
    HF_CHECK(hf_fork(inside, say_twice, NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_scope_cancel(inside) == HF_ERR_MISUSE);
    return HF_OK;
}

static hf_status drive_border(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    outside = scope;
    owner o;
    HF_TRY(begin(&o, fork_outside, NULL));
    hf_crew_turn(o.crew);
    HF_TRY(hf_fork(scope, intrude, NULL));
    HF_CHECK(hf_scope_cancel(scope) == HF_OK); /* does not enter the crew, nor reach the driver inside it */
    HF_CHECK(hf_canceled() == HF_OK);
    HF_CHECK(hf_sleep(hf_seconds(1)) == HF_OK); /* an alarm: the driver is a plain fiber */
    HF_CHECK(!hf_crew_is_over(o.crew));
    fire(&o, 0);
    hf_crew_turn(o.crew);
    HF_CHECK(hf_crew_is_over(o.crew));
    hf_crew_close(o.crew);
    HF_CHECK(hf_canceled() == HF_ERR_CANCELED);
    return HF_OK;
}

static void a_crew_is_entered_and_left_by_nobody(void **state)
{
    (void)state;
    on_a_fiber(drive_border);
}

static hf_status listen_outside(void *arg)
{
    char byte = 0;
    return hf_chan_recv((hf_chan *)arg, &byte);
}

static hf_status send_one(void *arg)
{
    return hf_chan_send((hf_chan *)arg, "x");
}

static hf_status drive_disturbed(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(&chan, 1));
    owner o;
    HF_TRY(begin(&o, listen_outside, chan));
    hf_crew_turn(o.crew);
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_CHECK(!hf_crew_is_disturbed(o.crew));
        HF_TRY(hf_fork(scope, send_one, chan));
        HF_TRY(hf_join(scope));
    }
    HF_CHECK(hf_crew_is_disturbed(o.crew) && !hf_crew_is_over(o.crew));
    hf_crew_turn(o.crew);
    HF_CHECK(hf_crew_is_over(o.crew));
    hf_crew_close(o.crew);
    return HF_OK;
}

static void a_member_woken_by_a_stranger_is_noticed(void **state)
{
    (void)state;
    on_a_fiber(drive_disturbed);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(members_run_in_turns_first_in_first_out),
        cmocka_unit_test(a_crowd_goes_the_same_way_on_every_schedule),
        cmocka_unit_test(deadlines_are_timers_of_the_owner),
        cmocka_unit_test(an_evicted_crew_returns_without_a_trace),
        cmocka_unit_test(a_cancel_reaches_all_members),
        cmocka_unit_test(a_deadline_interrupts_hundreds_in_one_turn),
        cmocka_unit_test(a_crew_is_entered_and_left_by_nobody),
        cmocka_unit_test(a_member_woken_by_a_stranger_is_noticed),
    };
    return hf_test_main("crew", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
