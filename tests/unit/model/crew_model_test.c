/* Random workflows on a crew that is evicted at some moment, against a twin that knows whose child is whose. Some of their fibers
 * are deaf: when they hear of the eviction they call on and on, wherever they are.
 *
 *   crew-M1  an eviction ends, whatever the fibers do;
 *   crew-M2  a fiber that is not deaf ends, and its cleanup runs, unless a child of it does not end, or it waits for the mutex of a
 *       condition that somebody holds who does not end;
 *   crew-M3  a deaf fiber does not get out of its loop, and as many are counted as stranded as have not ended;
 *   crew-M4  no stack, job, scope or object of the library is left, and the next crew finds the stacks. */
#include "fiber/crew/crew.h"
#include "support/support.h"

#include "base/rng.h"

#include <stdio.h>
#include <string.h>

enum { PEOPLE_MAX = 60, CHILDREN_MAX = 3, DEPTH_MAX = 6, TIMERS_MAX = 400, ROUNDS = 3 };

/* One fiber. */
typedef struct person {
    int id;
    int parent; /* -1 = the first */
    int depth;
    hf_rng rng;
    bool is_deaf;
    bool has_started, has_ended, has_heard;
    bool is_in_cond; /* in hf_cond_wait, with the mutex or without it */
} person;

static struct world {
    hf_crew *crew;
    person people[PEOPLE_MAX];
    int count;
    hf_mutex *mutex;
    int holder; /* of the mutex; -1 = nobody */
    hf_cond *cond;
    hf_chan *chan;
    hf_keylock *keys;
    hf_crew_timer *timers[TIMERS_MAX]; /* by id; NULL once fired or canceled */
    size_t timer_count;
} world;

/* ---- The fibers ----------------------------------------------------------------------------------------------------- */

static hf_status live(person *me, int most);

static bool chance(person *me, uint64_t in)
{
    return hf_rng_below(&me->rng, in) == 0;
}

static hf_span some_time(person *me)
{
    return hf_seconds(1 + (int64_t)hf_rng_below(&me->rng, 5));
}

/* NULL: there are enough. */
static person *be_born(person *parent)
{
    if (world.count == PEOPLE_MAX) {
        return NULL;
    }
    person *child = &world.people[world.count];
    *child = (person){.id = world.count++, .parent = parent->id, .depth = parent->depth + 1};
    child->rng.state = hf_rng_next(&parent->rng);
    child->is_deaf = chance(child, 3);
    return child;
}

/* Until it is stopped. A simulated run has a bound on its steps. */
static void call_on_and_on(person *me)
{
    char byte = 0;
    size_t which = 0;
    hf_case one = {HF_CASE_RECV, world.chan, &byte, HF_OK};
    for (;;) {
        switch (hf_rng_below(&me->rng, 8)) {
        case 0:
            HF_IGNORE(hf_sleep(some_time(me)));
            break;
        case 1:
            HF_IGNORE(hf_yield());
            break;
        case 2:
            HF_IGNORE(hf_chan_recv(world.chan, &byte, .timeout = some_time(me)));
            break;
        case 3:
            HF_IGNORE(hf_select(&one, 1, &which));
            break;
        case 4:
            HF_IGNORE(hf_canceled());
            break;
        case 5:
            (void)hf_time_left();
            break;
        case 6: {
            HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
            HF_IGNORE(hf_scope_open(&scope, .timeout = some_time(me)));
            HF_IGNORE(hf_join(scope));
            break;
        }
        default: {
            HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
            HF_IGNORE(hf_shield_open(some_time(me), &shield));
            HF_IGNORE(hf_chan_send(world.chan, &byte));
            break;
        }
        }
    }
}

static hf_status hear(person *me, hf_status status)
{
    if (status == HF_ERR_EVICTED) {
        me->has_heard = true;
        if (me->is_deaf) {
            call_on_and_on(me);
        }
    }
    return status;
}

static hf_status talk(person *me)
{
    char byte = 'x';
    return hear(me, chance(me, 2) ? hf_chan_send(world.chan, &byte, .timeout = some_time(me))
                                  : hf_chan_recv(world.chan, &byte, .timeout = some_time(me)));
}

static hf_status lock(person *me)
{
    HF_TRY(hear(me, hf_mutex_lock(world.mutex)));
    world.holder = me->id;
    hf_status status = HF_OK;
    if (chance(me, 2)) {
        me->is_in_cond = true;
        world.holder = -1;
        status = hf_cond_wait(world.cond, world.mutex, .timeout = some_time(me));
        world.holder = me->id;
        me->is_in_cond = false;
        (void)hear(me, status);
    } else {
        status = live(me, 1);
    }
    world.holder = -1;
    HF_CHECK(hf_mutex_unlock(world.mutex) == HF_OK);
    return status;
}

static hf_status lock_key(person *me)
{
    HF_AUTO(hf_key_unlock) hf_key_guard *guard = NULL;
    HF_TRY(hear(me, hf_keylock_lock(world.keys, chance(me, 2) ? "a" : "b", 1, &guard, .timeout = some_time(me))));
    return live(me, 1);
}

static hf_status live_as_fiber(void *arg)
{
    person *me = arg;
    me->has_started = true;
    hf_status status = live(me, 3);
    me->has_ended = true;
    return status;
}

static hf_status have_children(person *me)
{
    const hf_join_policy JOINS[] = {HF_JOIN_ALL, HF_JOIN_ANY, HF_JOIN_COLLECT};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    hf_span timeout = chance(me, 2) ? some_time(me) : HF_SPAN_UNLIMITED;
    HF_TRY(hf_scope_open(&scope, .timeout = timeout, .join = JOINS[hf_rng_below(&me->rng, 3)]));
    for (uint64_t i = 1 + hf_rng_below(&me->rng, CHILDREN_MAX); i > 0; i--) {
        person *child = be_born(me);
        hf_span delay = chance(me, 4) ? some_time(me) : hf_nanoseconds(0);
        if (child != NULL) {
            HF_TRY(hear(me, hf_fork(scope, live_as_fiber, child, .delay = delay)));
        }
    }
    if (chance(me, 2)) {
        hf_status status = live(me, 1);
        HF_TRY(status == HF_ERR_EVICTED ? status : HF_OK);
    }
    return chance(me, 3) ? HF_OK : hear(me, hf_join(scope)); /* or left without a join */
}

static const char VALUE[300]; /* more than what a collection keeps on its stack */

static hf_status spring(void *arg, hf_emitter *emitter)
{
    person *me = arg;
    me->has_started = true;
    hf_status status = HF_OK;
    for (int i = 0; i < 3 && status != HF_ERR_EVICTED; i++) {
        status = live(me, 1);
        status = status == HF_ERR_EVICTED ? status : hear(me, hf_emit(emitter, VALUE));
    }
    me->has_ended = true;
    return status;
}

static hf_status drink(void *ctx, const void *value)
{
    (void)value;
    return live(ctx, 1);
}

static hf_status use_flow(person *me)
{
    person *source = be_born(me);
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    if (source == NULL) {
        return HF_OK;
    }
    size_t value_len = chance(me, 2) ? 1 : sizeof VALUE;
    HF_TRY(hf_flow_new(value_len, &flow, .source = spring, .arg = source));
    return hear(me, hf_flow_collect(flow, drink, me));
}

static hf_status shielded(person *me)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(some_time(me), &shield));
    return live(me, 1);
}

static hf_status one_thing(person *me)
{
    bool is_deep = me->depth >= DEPTH_MAX;
    switch (hf_rng_below(&me->rng, is_deep ? 4 : 9)) {
    case 0:
        return hear(me, hf_sleep(some_time(me)));
    case 1:
        return hear(me, hf_yield());
    case 2:
        return talk(me);
    case 3:
        return hf_cond_broadcast(world.cond);
    case 4:
        return have_children(me);
    case 5:
        return me->id == world.holder ? HF_OK : lock(me);
    case 6:
        return lock_key(me);
    case 7:
        return use_flow(me);
    default:
        return shielded(me);
    }
}

static hf_status live(person *me, int most)
{
    hf_status status = HF_OK;
    me->depth++;
    for (uint64_t i = 1 + hf_rng_below(&me->rng, (uint64_t)most); i > 0 && status != HF_ERR_EVICTED; i--) {
        status = one_thing(me);
    }
    me->depth--;
    return status == HF_ERR_EVICTED ? status : HF_OK;
}

static hf_status first(void *arg)
{
    person *me = arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keys = NULL;
    HF_TRY(hf_chan_new(1, &chan, .capacity = 1));
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_keylock_new(&keys));
    world.chan = chan;
    world.mutex = mutex;
    world.cond = cond;
    world.keys = keys;
    me->has_started = true;
    hf_status status = live(me, 10);
    me->has_ended = true;
    return status;
}

/* ---- The driver ------------------------------------------------------------------------------------------------------- */

static hf_status timer_start(void *state, hf_crew_timer *timer, hf_span span)
{
    (void)state;
    (void)span;
    if (world.timer_count == TIMERS_MAX) {
        return HF_ERR_LIMIT;
    }
    timer->id = world.timer_count;
    world.timers[world.timer_count++] = timer;
    return HF_OK;
}

static void timer_cancel(void *state, hf_crew_timer *timer)
{
    (void)state;
    world.timers[timer->id] = NULL;
}

static const hf_crew_ops OPS = {timer_start, timer_cancel, NULL, NULL, NULL};

static void fire_one(hf_rng *rng)
{
    size_t from = world.timer_count > 0 ? (size_t)hf_rng_below(rng, world.timer_count) : 0;
    for (size_t i = 0; i < world.timer_count; i++) {
        size_t id = (from + i) % world.timer_count;
        hf_crew_timer *timer = world.timers[id];
        if (timer != NULL) {
            world.timers[id] = NULL;
            hf_crew_fire(world.crew, timer);
            return;
        }
    }
}

/* crew-M2: whether it may have been held up. */
static bool is_held_up(const person *who)
{
    bool waits_for_mutex = who->is_in_cond && world.holder >= 0 && !world.people[world.holder].has_ended;
    for (int i = 0; i < world.count; i++) {
        const person *child = &world.people[i];
        if (child->parent == who->id && child->has_started && !child->has_ended) {
            return true;
        }
    }
    return waits_for_mutex;
}

static int judge(void)
{
    int stranded = 0;
    for (int i = 0; i < world.count; i++) {
        const person *who = &world.people[i];
        bool is_stranded = who->has_started && !who->has_ended;
        bool may_be = (who->is_deaf && who->has_heard) || is_held_up(who);
        stranded += is_stranded;
        HF_CHECK_SAY(!is_stranded || may_be, "crew-M2: fiber %d did not end", i);
        HF_CHECK_SAY(is_stranded || !(who->is_deaf && who->has_heard), "crew-M3: fiber %d got out of its loop", i);
    }
    return stranded;
}

static hf_status play(uint64_t seed)
{
    hf_op op;
    hf_op_init(&op);
    hf_rng rng = {seed};
    hf_stats before;
    hf_stats after;
    memset(&world, 0, sizeof world);
    world.holder = -1;
    world.people[0] = (person){.parent = -1, .rng = {hf_rng_next(&rng)}, .is_deaf = hf_rng_below(&rng, 4) == 0};
    world.count = 1;
    HF_TRY(hf_runtime_stats(NULL, &before));
    HF_TRY(hf_crew_open(&op, &world.crew, &(hf_crew_options){"model", &OPS, NULL, seed}));
    HF_TRY(hf_crew_fork(&op, world.crew, first, &world.people[0], "first"));
    hf_crew_turn(world.crew);
    for (uint64_t i = hf_rng_below(&rng, 12); i > 0 && !hf_crew_is_over(world.crew); i--) {
        if (hf_rng_below(&rng, 40) == 0) {
            hf_crew_cancel(world.crew, "by chance");
        }
        fire_one(&rng);
        hf_crew_turn(world.crew);
    }
    hf_crew_evict(world.crew); /* crew-M1 */
    HF_CHECK(hf_crew_is_over(world.crew));
    int stranded = judge();
    hf_crew_close(world.crew);
    HF_TRY(hf_runtime_stats(NULL, &after));
    HF_CHECK_SAY((int)(after.stranded - before.stranded) == stranded, "crew-M3: %d were stranded, %d counted", stranded,
                 (int)(after.stranded - before.stranded));
    HF_CHECK_SAY(after.fibers == before.fibers && after.branches == before.branches && after.scopes == before.scopes,
                 "crew-M4: fibers %d, jobs %d, scopes %d more", (int)(after.fibers - before.fibers),
                 (int)(after.branches - before.branches), (int)(after.scopes - before.scopes));
    return HF_OK;
}

static struct totals {
    uint64_t stranded, plays;
} totals;

static hf_status rounds(void *arg)
{
    uint64_t stack_bytes = 0;
    hf_stats stats;
    for (int i = 0; i < ROUNDS; i++) {
        HF_TRY(play(*(const uint64_t *)arg));
        HF_TRY(hf_runtime_stats(NULL, &stats));
        HF_CHECK_SAY(i == 0 || stats.stack_bytes == stack_bytes, "crew-M4: %d bytes of stacks, then %d",
                     (int)stack_bytes, (int)stats.stack_bytes);
        stack_bytes = stats.stack_bytes;
    }
    totals.stranded += stats.stranded;
    totals.plays += ROUNDS;
    return HF_OK;
}

static void one(uint64_t seed)
{
    uint64_t first_hash = 0;
    uint64_t again = 0;
    int threads = 1 + (int)(seed % 3);
    HF_CHECK(hf_sim_run(seed, threads, rounds, &seed, &first_hash) == HF_OK);
    if (seed % 16 == 0) {
        HF_CHECK(hf_sim_run(seed, threads, rounds, &seed, &again) == HF_OK);
        HF_CHECK(first_hash == again);
    }
}

static void evictions_end_whatever_the_fibers_do(void **state)
{
    (void)state;
    hf_each_seed("evictions", 30000, one);
    print_message("%llu plays, %llu fibers were stranded\n", (unsigned long long)totals.plays,
                  (unsigned long long)totals.stranded);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(evictions_end_whatever_the_fibers_do),
    };
    return hf_test_main("crew_model", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
