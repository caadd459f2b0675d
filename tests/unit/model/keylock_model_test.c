/* Random lockers against a twin that knows who holds what: keys of a keyed lock, and a mutex and a semaphore of one
 * permit that promise the same.
 *
 *   keylock-M1  at most one holder per lock, also when the table of idle keys is at its bound (N9);
 *   keylock-M2  first come, first served: who waits since before another one's call gets the lock first, or gives up;
 *   keylock-M3  nobody waits while the lock is free, and nobody is refused it;
 *   keylock-M4  timeouts come on the nanosecond, cancels have a reason, and who gives up holds nothing;
 *   keylock-M5  no more entries than are in use, and idle_max idle ones; a lock in use cannot be freed;
 *   keylock-M6  nothing is left allocated or running; the same seed gives the same trace. */
#include "support/support.h"

#include "base/rng.h"

#include <stdio.h>
#include <string.h>

enum { KEYS = 4, MUTEX = KEYS, SEM, LOCKS, ACTORS_MAX = 6 };

static const int64_t NEVER = INT64_MAX;
static const int64_t UNIT = 100 * 1000;
static const char *const KEY[KEYS] = {"a", "bb", "customer/4711", ""};

typedef struct lock {
    int holder;         /* -1 = nobody */
    int64_t changed_at; /* when it was last taken or given back */
} lock;

typedef struct actor {
    int id;
    hf_rng rng;
    hf_key_guard *guards[LOCKS];
    int wants;       /* lock it is asking for, or -1 */
    int64_t start;   /* since when */
    bool was_passed; /* somebody who came later was served: it must be giving up */
} actor;

static struct world {
    hf_runtime *rt;
    bool on_main;
    hf_dispatcher *pool;
    hf_keylock *keylock;
    hf_mutex *mutex;
    hf_sem *sem;
    int64_t idle_max;
    int64_t canceled_at;
    unsigned misuses;
    int key_users; /* actors that hold or ask for a key */
    lock locks[LOCKS];
    actor actors[ACTORS_MAX];
    int actor_count;
} world;

static int64_t now(void)
{
    return hf_now(world.rt).ns;
}

static uint64_t below(actor *me, uint64_t bound)
{
    return hf_rng_below(&me->rng, bound);
}

static bool chance(actor *me, int permille)
{
    return hf_rng_permille(&me->rng, permille);
}

/* ---- The verbs, whichever lock it is ----------------------------------------------------------------------------- */

static hf_status lock_it(actor *me, int which, const hf_wait_options *options)
{
    if (which == MUTEX) {
        return hf_mutex_lock_with(world.mutex, options);
    }
    if (which == SEM) {
        return hf_sem_acquire_with(world.sem, 1, options);
    }
    return hf_keylock_lock_with(world.keylock, KEY[which], strlen(KEY[which]), &me->guards[which], options);
}

static hf_status try_it(actor *me, int which)
{
    if (which == MUTEX) {
        return hf_mutex_try_lock(world.mutex);
    }
    if (which == SEM) {
        return hf_sem_try_acquire(world.sem, 1);
    }
    return hf_keylock_try_lock(world.keylock, KEY[which], strlen(KEY[which]), &me->guards[which]);
}

static hf_status unlock_it(actor *me, int which)
{
    if (which == MUTEX) {
        return hf_mutex_unlock(world.mutex);
    }
    if (which == SEM) {
        return hf_sem_release(world.sem, 1);
    }
    return hf_key_unlock(me->guards[which]);
}

/* ---- The twin ---------------------------------------------------------------------------------------------------- */

static void got(actor *me, int which)
{
    lock *at = &world.locks[which];
    HF_CHECK_SAY(at->holder == -1, "keylock-M1 actors %d and %d hold lock %d", at->holder, me->id, which);
    at->holder = me->id;
    at->changed_at = now();
    HF_CHECK_SAY(!me->was_passed, "keylock-M2 actor %d was served after one that came later", me->id);
    for (int i = 0; i < world.actor_count; i++) {
        actor *other = &world.actors[i];
        if (other != me && other->wants == which && other->start < me->start) {
            other->was_passed = true;
        }
    }
}

/* Nobody holds it, nobody did since before now, and nobody else is about to. */
static bool is_free(const actor *me, int which)
{
    const lock *at = &world.locks[which];
    for (int i = 0; i < world.actor_count; i++) {
        if (&world.actors[i] != me && world.actors[i].wants == which) {
            return false;
        }
    }
    return at->holder == -1 && at->changed_at < now();
}

static void check_count(void)
{
    size_t count = hf_keylock_count(world.keylock);
    HF_CHECK_SAY((int64_t)count <= world.key_users + world.idle_max, "keylock-M5 %d entries for %d users", (int)count,
                 world.key_users);
}

static bool acquire(actor *me, int which, bool is_try)
{
    hf_wait_options options = {.size = sizeof options};
    int64_t end = NEVER;
    if (!is_try && chance(me, 400)) {
        options.timeout = hf_nanoseconds((int64_t)(1 + below(me, 10)) * UNIT);
        end = now() + options.timeout.ns;
    }
    me->wants = which;
    me->start = now();
    me->was_passed = false;
    world.key_users += which < KEYS;
    hf_status status = is_try ? try_it(me, which) : lock_it(me, which, &options);
    me->wants = -1;
    int64_t at = now();
    if (status == HF_OK) {
        got(me, which);
    } else {
        world.key_users -= which < KEYS;
    }
    if (is_try) {
        HF_CHECK(status == HF_OK || status == HF_ERR_AGAIN);
        HF_CHECK_SAY(status == HF_OK || !is_free(me, which), "keylock-M3 actor %d was refused a free lock", me->id);
        return status == HF_OK;
    }
    HF_CHECK_SAY(status == HF_ERR_TIMEOUT ? at == end : at <= end, "keylock-M4 %s %lld ns off", hf_status_name(status),
                 (long long)(at - end));
    HF_CHECK_SAY(status != HF_ERR_TIMEOUT || !is_free(me, which), "keylock-M3 actor %d waited for a free lock", me->id);
    HF_CHECK_SAY(status == HF_ERR_CANCELED ? world.canceled_at <= at : world.canceled_at >= at,
                 "keylock-M4 %s, and the cancel %s", hf_status_name(status),
                 world.canceled_at <= at ? "is past" : "is to come");
    return status == HF_OK;
}

static void release(actor *me, int which)
{
    lock *at = &world.locks[which];
    HF_CHECK_SAY(at->holder == me->id, "keylock-M1 lock %d of actor %d is held by %d", which, me->id, at->holder);
    at->holder = -1;
    at->changed_at = now();
    HF_CHECK(unlock_it(me, which) == HF_OK);
    world.key_users -= which < KEYS; /* only now: it may be an entry of its own until the end of the call */
}

/* ---- Actors ------------------------------------------------------------------------------------------------------ */

static void hold(actor *me, int which)
{
    uint64_t what = below(me, 100);
    if (what < 40) {
        HF_IGNORE(hf_sleep(hf_nanoseconds((int64_t)(1 + below(me, 6)) * UNIT)));
    } else if (what < 70) {
        HF_IGNORE(hf_yield());
    } else if (what < 85 && which + 1 < LOCKS) { /* two locks, always in this order */
        int inner = which + 1 + (int)below(me, (uint64_t)(LOCKS - which - 1));
        if (acquire(me, inner, chance(me, 200))) {
            HF_IGNORE(hf_yield());
            release(me, inner);
        }
    } else if (what < 87 && which < KEYS) {
        world.misuses++;
        HF_CHECK_SAY(hf_keylock_free(world.keylock) == HF_ERR_MISUSE, "keylock-M5 a lock in use was freed");
    }
}

static hf_status act(void *arg)
{
    actor *me = arg;
    int kinds = 1 + (int)below(me, LOCKS); /* few locks make long queues */
    for (uint64_t steps = 2 + below(me, 5); steps > 0; steps--) {
        int which = (int)below(me, (uint64_t)kinds);
        if (chance(me, 200)) {
            which = MUTEX + (int)below(me, 2);
        }
        if (acquire(me, which, chance(me, 150))) {
            hold(me, which);
            release(me, which);
        } else if (chance(me, 300)) {
            HF_IGNORE(hf_sleep(hf_nanoseconds((int64_t)(1 + below(me, 6)) * UNIT)));
        }
        check_count();
    }
    return HF_OK;
}

static void open_locks(actor *root, hf_runtime *given)
{
    static const int64_t BOUNDS[] = {HF_OFF, 1, 2, 0};
    int64_t bound = BOUNDS[below(root, 4)];
    world.idle_max = bound == HF_OFF ? 0 : (bound == 0 ? 1000 : bound);
    HF_CHECK(hf_keylock_new(&world.keylock, .idle_max = bound, .runtime = given) == HF_OK);
    HF_CHECK(hf_mutex_new(&world.mutex, .runtime = given) == HF_OK);
    HF_CHECK(hf_sem_new(1, &world.sem, .runtime = given) == HF_OK);
    for (int i = 0; i < LOCKS; i++) {
        world.locks[i] = (lock){-1, 0};
    }
}

static hf_status root_body(void *arg)
{
    actor *root = arg;
    world.rt = world.on_main ? world.rt : hf_runtime_current();
    hf_runtime *given = world.on_main ? world.rt : NULL;
    if (chance(root, 250)) {
        HF_CHECK(hf_pool_new(&world.pool, .limit = ACTORS_MAX, .runtime = given) == HF_OK);
    }
    open_locks(root, given);
    hf_scope *scope = NULL;
    HF_CHECK(hf_scope_open(&scope, .runtime = given) == HF_OK);
    for (int i = 1; i < world.actor_count; i++) {
        actor *each = &world.actors[i];
        each->id = i;
        each->rng.state = hf_rng_next(&root->rng);
        hf_dispatcher *on = world.pool != NULL && chance(root, 400) ? world.pool : NULL;
        HF_CHECK(hf_fork(scope, act, each, .on = on) == HF_OK);
    }
    if (chance(root, 300)) {
        HF_IGNORE(hf_sleep(hf_nanoseconds((int64_t)(1 + below(root, 15)) * UNIT)));
        world.canceled_at = now();
        HF_CHECK(hf_scope_cancel(scope) == HF_OK);
    } else {
        (void)act(root); /* the owner, perhaps the main thread, is one of them */
    }
    HF_CHECK(hf_join(scope) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    HF_CHECK(world.key_users == 0);
    check_count();
    HF_CHECK(hf_keylock_free(world.keylock) == HF_OK);
    HF_CHECK(hf_mutex_free(world.mutex) == HF_OK);
    HF_CHECK(hf_sem_free(world.sem) == HF_OK);
    HF_CHECK(hf_dispatcher_free(world.pool) == HF_OK);
    return HF_OK;
}

static uint64_t run(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    actor *root = &world.actors[0];
    root->rng.state = hf_hash_mix(79, seed);
    world.canceled_at = NEVER;
    world.actor_count = 3 + (int)below(root, ACTORS_MAX - 2);
    for (int i = 0; i < ACTORS_MAX; i++) {
        world.actors[i].wants = -1;
    }
    world.on_main = chance(root, 250);
    hf_env *env = hf_sim_begin(seed);
    hf_runtime_options options = hf_sim_runtime_options(env, 1 + (int)below(root, 4));
    options.guards = HF_OFF;
    if (world.on_main) {
        HF_CHECK(hf_runtime_new_with(&world.rt, &options) == HF_OK);
        (void)root_body(root);
        HF_CHECK(hf_runtime_free(world.rt) == HF_OK);
    } else {
        HF_CHECK(hf_run_with(root_body, root, &options) == HF_OK);
    }
    HF_CHECK(hf_sim_errors_logged() == world.misuses);
    uint64_t hash = 0;
    hf_sim_end(env, &hash);
    return hash;
}

static void one_seed(uint64_t seed)
{
    uint64_t hash = run(seed);
    if (seed % 20 == 0) {
        HF_CHECK_SAY(run(seed) == hash, "keylock-M6 the same seed gave another trace");
    }
}

static void locks_do_what_their_twin_says(void **state)
{
    (void)state;
    hf_each_seed("keyed locks", 30000, one_seed);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(locks_do_what_their_twin_says)};
    return hf_test_main("keylock_model", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
