/* Crews: fibers that run only in their driver's turns, in an order that depends on nothing but themselves; their time is a
 * matter of their owner. Each test drives a crew from a plain fiber of a simulated runtime and reads what it wrote down. */
#include "unit/fiber/crew_rig.h"

/* ---- Order ---------------------------------------------------------------------------------------------------- */

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
    HF_TRY(hf_chan_new(1, &chan, .capacity = 2));
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

/* Its clock shows wall time, that of the runtime anything: a dump must not subtract the one from the other. */
static hf_status wait_three_days(void *arg)
{
    (void)arg;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "patient", .timeout = hf_days(3)));
    return hf_sleep(hf_days(9));
}

static hf_status drive_dump(void *arg)
{
    (void)arg;
    owner o;
    HF_TRY(begin(&o, wait_three_days, NULL));
    hf_crew_set_now(o.crew, hf_wall_now(NULL));
    hf_crew_turn(o.crew);
    HF_TRY(hf_sleep(hf_hours(1))); /* of the driver: the crew's clock stands still meanwhile */
    HF_AUTO(hf_text_free) char *text = NULL;
    HF_CHECK(hf_dump(NULL, &text, .no_stacks = true) == HF_OK);
    const char *line = text != NULL ? strstr(text, "scope 'patient'") : NULL;
    HF_CHECK(line != NULL && strstr(line, ", deadline in 255600.000 s\n") != NULL);
    HF_CHECK_SAY(line != NULL && strstr(line, "open 3600.000 s") != NULL, "%s", text);
    hf_crew_close(o.crew);
    return HF_OK;
}

static void a_dump_knows_when_a_deadline_of_a_workflow_comes(void **state)
{
    (void)state;
    on_a_fiber(drive_dump);
}

/* ---- Cancel and eviction -------------------------------------------------------------------------------------- */

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
        HF_CHECK(hf_shield_open(hf_seconds(1), &shield) == HF_OK);
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
static hf_status hold_hundreds_on_a_channel(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(1, &chan));
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
    HF_TRY(hf_chan_new(1, &chan));
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

/* The stranger has claimed it, and the wake-up is on its way from another thread, when the crew is evicted. */
static hf_status drive_crossing(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(1, &chan, .capacity = 1));
    owner o;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(begin(&o, listen_outside, chan));
    hf_crew_turn(o.crew);
    HF_TRY(hf_fork(scope, send_one, chan));
    hf_word never = 0;
    hf_env *env = ((hf_fiber *)(void *)hf_self_get())->rt->env;
    (void)env->ops->word_wait(env, &never, 0, (hf_instant){env->ops->now(env).ns + 1}); /* a look at the other thread */
    hf_crew_evict(o.crew);
    HF_CHECK(hf_crew_is_over(o.crew));
    hf_crew_close(o.crew);
    return hf_join(scope);
}

static void one_crossing(uint64_t seed)
{
    HF_CHECK(hf_sim_run(seed, 2, drive_crossing, NULL, NULL) == HF_OK);
}

static void a_member_that_a_stranger_is_about_to_wake_is_evicted(void **state)
{
    (void)state;
    hf_each_seed("crossings", 500, one_crossing);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(members_run_in_turns_first_in_first_out),
        cmocka_unit_test(a_crowd_goes_the_same_way_on_every_schedule),
        cmocka_unit_test(deadlines_are_timers_of_the_owner),
        cmocka_unit_test(a_dump_knows_when_a_deadline_of_a_workflow_comes),
        cmocka_unit_test(an_evicted_crew_returns_without_a_trace),
        cmocka_unit_test(a_cancel_reaches_all_members),
        cmocka_unit_test(a_deadline_interrupts_hundreds_in_one_turn),
        cmocka_unit_test(a_crew_is_entered_and_left_by_nobody),
        cmocka_unit_test(a_member_woken_by_a_stranger_is_noticed),
        cmocka_unit_test(a_member_that_a_stranger_is_about_to_wake_is_evicted),
    };
    return hf_test_main("crew", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
