/* Random callers of single-flight against a twin that knows who is in a call and which bodies run.
 *
 *   flight-M1  one body at a time per key; a second one starts only when nobody waits for the first any more;
 *   flight-M2  what a caller gets, value or failure, is that of a body which ended during the call, at that very nanosecond;
 *   flight-M3  a caller that gives up does not disturb the others: a body is canceled only when nobody is left who waits, or
 *       with the scope in which it runs;
 *   flight-M4  then it is canceled at once, unless the flight detaches; a caller that comes now starts another;
 *   flight-M5  timeouts come on the nanosecond, cancels of callers have a reason;
 *   flight-M6  every value is released once, nothing is left allocated or running; the same seed gives the same trace. */
#include "support/support.h"

#include "base/rng.h"

#include <stdio.h>
#include <string.h>

enum { KEYS = 2, ACTORS_MAX = 6, BODIES_MAX = 40 };

static const int64_t NEVER = INT64_MAX;
static const int64_t UNIT = 100 * 1000;

/* One run of the work, planned by the call that might start it. */
typedef struct body {
    hf_rng rng;
    int key;
    bool has_started, has_ended;
    bool is_over; /* nobody waits for it any more: another one has started */
    int64_t ended_at;
    int64_t must; /* waits fail from here on: everybody had left */
    hf_status status;
} body;

typedef struct actor {
    int id;
    hf_rng rng;
    int key; /* in a call for it, or -1 */
    int64_t start;
} actor;

static struct world {
    hf_runtime *rt;
    bool on_main, detaches;
    hf_dispatcher *pool;
    hf_flight *flight;
    int64_t canceled_at;      /* the callers */
    int64_t work_canceled_at; /* the scope of the work */
    body bodies[BODIES_MAX];
    int body_count;
    int values; /* not released yet */
    actor actors[ACTORS_MAX];
    int actor_count;
} world;

static int64_t now(void)
{
    return hf_now(world.rt).ns;
}

/* Somebody has been in a call for the key since before now, and so is aboard; unless a body just ended, and it is
 * aboard that one, on its way out. */
static bool has_waiters(int key)
{
    for (int i = 0; i < world.body_count; i++) {
        const body *each = &world.bodies[i];
        if (each->key == key && each->has_ended && each->ended_at == now()) {
            return false;
        }
    }
    for (int i = 0; i < world.actor_count; i++) {
        if (world.actors[i].key == key && world.actors[i].start < now()) {
            return true;
        }
    }
    return false;
}

/* ---- The work ---------------------------------------------------------------------------------------------------- */

static void start_body(body *me)
{
    HF_CHECK_SAY(!me->has_started, "flight-M1 a body runs twice");
    for (int i = 0; i < world.body_count; i++) {
        body *other = &world.bodies[i];
        if (other->has_started && !other->has_ended && other->key == me->key && !other->is_over) {
            HF_CHECK_SAY(!world.detaches && !has_waiters(me->key), "flight-M1 two bodies run for key %d", me->key);
            other->is_over = true;
            other->must = other->must < now() ? other->must : now();
        }
    }
    me->has_started = true;
}

static void check_body_wait(body *me, hf_status status)
{
    int64_t at = now();
    if (status == HF_OK) {
        HF_CHECK_SAY(world.detaches || me->must >= at, "flight-M4 a body nobody waits for went on for %lld ns",
                     (long long)(at - me->must));
        HF_CHECK(world.work_canceled_at >= at);
        return;
    }
    HF_CHECK(status == HF_ERR_CANCELED);
    if (world.work_canceled_at > at) {
        HF_CHECK_SAY(!world.detaches, "flight-M4 a detached body was canceled");
        HF_CHECK_SAY(me->is_over || !has_waiters(me->key), "flight-M3 a body was canceled while somebody waits for it");
    }
}

static void release(void *data)
{
    world.values--;
    HF_CHECK(data == world.bodies || (body *)data > world.bodies);
}

static hf_status fly(void *arg, hf_value **ret_value)
{
    body *me = arg;
    start_body(me);
    hf_status status = HF_OK;
    for (uint64_t steps = hf_rng_below(&me->rng, 3); steps > 0 && status == HF_OK; steps--) {
        int64_t span = (int64_t)hf_rng_below(&me->rng, 8) * UNIT;
        status = span == 0 ? hf_yield() : hf_sleep(hf_nanoseconds(span));
        check_body_wait(me, status);
    }
    if (status == HF_OK && hf_rng_permille(&me->rng, 250)) {
        status = hf_raise((hf_status)(HF_ERR_USER + (int)(me - world.bodies)), "body %d", (int)(me - world.bodies));
    } else if (status == HF_OK) {
        world.values++;
        HF_CHECK(hf_value_new(me, sizeof *me, release, ret_value) == HF_OK);
    }
    me->status = status;
    me->has_ended = true;
    me->ended_at = now();
    return status;
}

/* ---- The callers ------------------------------------------------------------------------------------------------- */

static void check_result(const actor *me, int key, hf_status status, const body *from)
{
    if (!HF_CHECK_SAY(from->has_ended && from->key == key && from->status == status,
                      "flight-M2 a result that no body gave")) {
        return;
    }
    HF_CHECK_SAY(from->ended_at == now() && from->ended_at >= me->start, "flight-M2 the result is %lld ns old",
                 (long long)(now() - from->ended_at));
    HF_CHECK_SAY(!from->is_over, "flight-M4 the result of a body that was given up");
}

/* The last one who leaves takes the work along. */
static void left(int key)
{
    for (int i = 0; i < world.actor_count; i++) {
        if (world.actors[i].key == key) {
            return;
        }
    }
    for (int i = 0; i < world.body_count; i++) {
        body *each = &world.bodies[i];
        if (each->key == key && !each->has_ended && each->must > now()) {
            each->must = now();
        }
    }
}

static void call(actor *me)
{
    if (world.body_count == BODIES_MAX) {
        return;
    }
    int key = (int)hf_rng_below(&me->rng, KEYS);
    body *plan = &world.bodies[world.body_count++];
    *plan = (body){.rng = {hf_rng_next(&me->rng)}, .key = key, .must = NEVER};
    hf_wait_options options = {.size = sizeof options};
    int64_t end = NEVER;
    if (hf_rng_permille(&me->rng, 400)) {
        options.timeout = hf_nanoseconds((int64_t)(1 + hf_rng_below(&me->rng, 8)) * UNIT);
        end = now() + options.timeout.ns;
    }
    me->key = key;
    me->start = now();
    hf_value *value = NULL;
    hf_status status = hf_flight_run_with(world.flight, &key, sizeof key, fly, plan, &value, &options);
    int64_t at = now();
    me->key = -1;
    left(key);
    HF_CHECK_SAY(status == HF_ERR_TIMEOUT ? at == end : at <= end, "flight-M5 %s %lld ns off", hf_status_name(status),
                 (long long)(at - end));
    HF_CHECK_SAY(status == HF_ERR_CANCELED || world.canceled_at >= at, "flight-M5 %s after a cancel",
                 hf_status_name(status));
    if (status == HF_OK) {
        check_result(me, key, status, hf_value_data(value));
        hf_value_unref(value);
    } else if (status >= HF_ERR_USER) {
        check_result(me, key, status, &world.bodies[status - HF_ERR_USER]);
    } else {
        HF_CHECK(status == HF_ERR_TIMEOUT || status == HF_ERR_CANCELED);
        HF_CHECK_SAY(status == HF_ERR_TIMEOUT || world.canceled_at <= at || world.work_canceled_at <= at,
                     "flight-M3 a caller was canceled with another one");
        HF_CHECK(value == NULL);
    }
}

static hf_status act(void *arg)
{
    actor *me = arg;
    for (uint64_t steps = 1 + hf_rng_below(&me->rng, 4); steps > 0; steps--) {
        if (hf_rng_permille(&me->rng, 250)) {
            HF_IGNORE(hf_sleep(hf_nanoseconds((int64_t)hf_rng_below(&me->rng, 8) * UNIT)));
        }
        call(me);
        HF_CHECK(hf_flight_count(world.flight) <= KEYS);
    }
    return HF_OK;
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static void run_callers(actor *root, hf_scope *work, hf_runtime *given)
{
    hf_scope *scope = NULL;
    HF_CHECK(hf_scope_open(&scope, .runtime = given) == HF_OK);
    for (int i = 1; i < world.actor_count; i++) {
        actor *each = &world.actors[i];
        each->id = i;
        each->rng.state = hf_rng_next(&root->rng);
        hf_dispatcher *on = world.pool != NULL && hf_rng_permille(&root->rng, 400) ? world.pool : NULL;
        HF_CHECK(hf_fork(scope, act, each, .on = on) == HF_OK);
    }
    uint64_t what = hf_rng_below(&root->rng, 100);
    if (what < 40) {
        HF_IGNORE(hf_sleep(hf_nanoseconds((int64_t)(1 + hf_rng_below(&root->rng, 15)) * UNIT)));
        *(what < 30 ? &world.canceled_at : &world.work_canceled_at) = now();
        HF_CHECK(hf_scope_cancel(what < 30 ? scope : work) == HF_OK);
    } else {
        (void)act(root);
    }
    HF_CHECK(hf_join(scope) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
}

static hf_status root_body(void *arg)
{
    actor *root = arg;
    world.rt = world.on_main ? world.rt : hf_runtime_current();
    hf_runtime *given = world.on_main ? world.rt : NULL;
    if (hf_rng_permille(&root->rng, 250)) {
        HF_CHECK(hf_pool_new(&world.pool, .limit = ACTORS_MAX, .runtime = given) == HF_OK);
    }
    hf_scope *work = NULL;
    HF_CHECK(hf_scope_open(&work, .runtime = given, .join = HF_JOIN_DISCARD) == HF_OK);
    HF_CHECK(hf_flight_new(&world.flight, .scope = work, .detach = world.detaches) == HF_OK);
    run_callers(root, work, given);
    HF_CHECK(hf_flight_free(world.flight) == HF_OK);
    HF_CHECK(hf_join(work) == HF_OK);
    HF_CHECK(hf_scope_close(work) == HF_OK);
    for (int i = 0; i < world.body_count; i++) {
        HF_CHECK(world.bodies[i].has_started == world.bodies[i].has_ended);
    }
    HF_CHECK_SAY(world.values == 0, "flight-M6 %d values were not released", world.values);
    HF_CHECK(hf_dispatcher_free(world.pool) == HF_OK);
    return HF_OK;
}

static uint64_t run(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    actor *root = &world.actors[0];
    root->rng.state = hf_hash_mix(80, seed);
    world.canceled_at = world.work_canceled_at = NEVER;
    world.actor_count = 3 + (int)hf_rng_below(&root->rng, ACTORS_MAX - 2);
    for (int i = 0; i < ACTORS_MAX; i++) {
        world.actors[i].key = -1;
    }
    world.detaches = hf_rng_permille(&root->rng, 250);
    world.on_main = hf_rng_permille(&root->rng, 250);
    hf_env *env = hf_sim_begin(seed);
    hf_runtime_options options = hf_sim_runtime_options(env, 1 + (int)hf_rng_below(&root->rng, 4));
    options.guards = HF_OFF;
    if (world.on_main) {
        HF_CHECK(hf_runtime_new_with(&world.rt, &options) == HF_OK);
        (void)root_body(root);
        HF_CHECK(hf_runtime_free(world.rt) == HF_OK);
    } else {
        HF_CHECK(hf_run_with(root_body, root, &options) == HF_OK);
    }
    HF_CHECK(hf_sim_errors_logged() == 0);
    uint64_t hash = 0;
    hf_sim_end(env, &hash);
    return hash;
}

static void one_seed(uint64_t seed)
{
    uint64_t hash = run(seed);
    if (seed % 20 == 0) {
        HF_CHECK_SAY(run(seed) == hash, "flight-M6 the same seed gave another trace");
    }
}

static void flights_do_what_their_twin_says(void **state)
{
    (void)state;
    hf_each_seed("flights", 30000, one_seed);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(flights_do_what_their_twin_says)};
    return hf_test_main("flight_model", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
