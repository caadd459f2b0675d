/* Random trees of scopes, judged by the twin in scope_twin.h: what the bodies do, and the runs over seeds. */
#include "unit/model/scope_twin.h"

/* ---- Levels ------------------------------------------------------------------------------------------------------ */

static level *level_new(node *me)
{
    level *at = &world.levels[world.level_count++];
    memset(at, 0, sizeof *at);
    at->owner = me;
    at->outer = me->inner;
    at->must = at->may = at->deadline = NEVER;
    at->nearest = NEVER;
    return at;
}

static int64_t nearest_of(const node *me)
{
    if (me->inner != NULL) {
        return me->inner->nearest;
    }
    return me->in != NULL ? me->in->nearest : NEVER;
}

static level *open_scope(node *me)
{
    level *at = level_new(me);
    at->policy = (unsigned)below(me, POLICIES);
    at->n = (int64_t)below(me, 3) + (at->policy == QUORUM);
    at->has_hooks = chance(me, 700);
    at->branches_max = chance(me, 100) ? 2 : NEVER;
    hf_scope_options options = {.size = sizeof options};
    options.join =
        hf_join_policy_of(at->has_hooks ? &listening[at->policy][chance(me, 200)] : HOOKS[at->policy], at->n, at);
    options.branches_max = at->branches_max == NEVER ? 0 : at->branches_max;
    options.runtime = me->on_main ? world.rt : NULL;
    at->nearest = nearest_of(me);
    if (chance(me, 300)) {
        options.timeout = hf_nanoseconds((int64_t)(1 + below(me, 15)) * UNIT);
        at->deadline = now() + options.timeout.ns;
        at->nearest = min(at->nearest, at->deadline);
    }
    at->seen = *seen_of(me);
    HF_CHECK(hf_scope_open_with(&at->scope, &options) == HF_OK);
    me->inner = at;
    at->is_listed = true;
    TELL("node %d opens scope %d (%s), %lld us", (int)me->id, (int)(at - world.levels), HOOKS[at->policy]->name,
         (long long)(options.timeout.ns / 1000));
    int64_t left = hf_time_left().ns;
    int64_t expected_left = at->nearest == NEVER ? NEVER : (at->nearest > now() ? at->nearest - now() : -1);
    HF_CHECK_SAY(left == expected_left || me->is_tainted, "the deadline is not the minimum: %lld ns left",
                 (long long)left);
    return at;
}

static void in_shield(node *me)
{
    level *at = level_new(me);
    int64_t bound = (int64_t)(1 + below(me, 20)) * UNIT;
    at->deadline = at->nearest = now() + bound;
    TELL("node %d opens a shield for %lld us", (int)me->id, (long long)(bound / 1000));
    HF_CHECK(hf_shield_open(hf_nanoseconds(bound), &at->shield) == HF_OK);
    me->inner = at;
    HF_CHECK_SAY(hf_canceled() == HF_OK, "scope-M5 canceled inside a new shield");
    (void)wait_a_while(me);
    if (chance(me, 500)) {
        (void)wait_a_while(me);
    }
    me->inner = at->outer;
    HF_CHECK(hf_shield_close(at->shield) == HF_OK);
}

static void cancel_level(level *at, int64_t when)
{
    at->must = min(at->must, when);
    at->may = min(at->may, when);
}

static void check_children(const level *at, bool is_close)
{
    for (unsigned i = 0; i < world.node_count; i++) {
        const node *child = &world.nodes[i];
        if (child->in == at && !child->refused && (is_close || !child->from_outside)) {
            HF_CHECK_SAY(child->ended, "scope-M2 node %d has not ended", (int)child->id);
            HF_CHECK_SAY(child->runs + child->drops == 1, "scope-M1 node %d ran %d times, dropped %d times",
                         (int)child->id, child->runs, child->drops);
        }
    }
}

static void join(node *me, level *at)
{
    unsigned meddled = at->meddled;
    if (!at->has_hooks) {
        at->may = min(at->may, now()); /* a quorum that became impossible */
    }
    TELL("node %d joins scope %d", (int)me->id, (int)(at - world.levels));
    at->is_joining = true;
    hf_status status = hf_join(at->scope);
    at->is_joining = false;
    TELL("node %d joined scope %d: %s", (int)me->id, (int)(at - world.levels), hf_status_name(status));
    check_children(at, false);
    int64_t outside = at->outer != NULL ? due(me, at->outer, true) : due(me, NULL, true);
    check_outcome(at, status, min(outside, min(at->may, at->must)));
    at->must = at->may = at->deadline = NEVER; /* its own hold has ended */
    at->nearest = at->outer != NULL ? at->outer->nearest : (me->in != NULL ? me->in->nearest : NEVER);
    at->seen = at->outer != NULL ? at->outer->seen : me->seen;
    if (at->meddled != meddled) {
        at->may = now(); /* somebody canceled it meanwhile, perhaps after the end */
    }
    int64_t start = now();
    (void)check_wait(me, hf_canceled(), start, NEVER, "hf_join, then hf_canceled");
    world.result = hf_hash_mix(world.result, (uint64_t)status);
}

static void close_scope(node *me, level *at)
{
    at->is_listed = false;
    hf_shield *shield = NULL;
    if (at->users > 0) {
        HF_CHECK(hf_shield_open(hf_seconds(100), &shield) == HF_OK);
        while (at->users > 0) {
            HF_CHECK(hf_sleep(hf_nanoseconds(1)) == HF_OK);
        }
        HF_CHECK(hf_shield_close(shield) == HF_OK);
    }
    cancel_level(at, now());
    TELL("node %d closes scope %d", (int)me->id, (int)(at - world.levels));
    HF_CHECK(hf_scope_close(at->scope) == HF_OK);
    check_children(at, true);
    me->inner = at->outer;
}

/* ---- Bodies ------------------------------------------------------------------------------------------------------ */

static void act(node *me, unsigned steps);
static void meddle(node *me);

static hf_status finish(node *me)
{
    hf_status canceled = hf_canceled();
    hf_status status = HF_OK;
    if (canceled != HF_OK && chance(me, 900)) {
        status = canceled;
    } else if (chance(me, 150)) {
        status = hf_raise((hf_status)(HF_ERR_USER + (int)me->id), "node %d", (int)me->id);
    } else if (chance(me, 20)) {
        status = HF_ERR_CANCELED; /* a lie, unless it is true */
    }
    me->status = status;
    me->ended_canceled = status == HF_ERR_CANCELED && canceled != HF_OK;
    me->ended = true;
    me->ended_at = now();
    TELL("node %d ends: %s", (int)me->id, hf_status_name(status));
    if (me->in != NULL && !me->in->has_hooks) {
        me->in->may = min(me->in->may, now());
    }
    return status;
}

static hf_status body(void *arg)
{
    node *me = arg;
    me->runs++;
    HF_CHECK_SAY(me->runs == 1 && me->drops == 0 && !me->ended, "scope-M1 node %d runs again", (int)me->id);
    bool is_due =
        hf_time_left().ns < 0; /* then it may be hf_canceled itself that lets the deadline through, just now */
    bool is_canceled = hf_canceled() != HF_OK;
    TELL("node %d starts%s", (int)me->id, is_canceled ? " canceled" : "");
    HF_CHECK_SAY(!me->has_drop || !is_canceled || is_due, "scope-M1 node %d should have been dropped", (int)me->id);
    HF_CHECK_SAY(is_canceled || now() == me->not_before || me->on_pool, "node %d starts %lld ns late", (int)me->id,
                 (long long)(now() - me->not_before));
    act(me, 1 + (unsigned)below(me, 3));
    return finish(me);
}

static void drop(void *arg)
{
    node *me = arg;
    me->drops++;
    TELL("node %d is dropped", (int)me->id);
    HF_CHECK_SAY(me->drops == 1 && me->runs == 0, "scope-M1 node %d dropped again", (int)me->id);
    HF_CHECK(me->refused || due(me, NULL, true) <= now());
    me->ended = true;
    me->ended_at = now();
    me->status = HF_ERR_CANCELED;
    me->ended_canceled = true;
    if (!me->in->has_hooks) {
        me->in->may = min(me->in->may, now());
    }
}

/* A job on a pool of two threads that waits for another one there would be the test's own deadlock. */
static bool is_below_pool(const level *at)
{
    for (; at != NULL; at = at->owner->in) {
        if (at->owner->on_pool) {
            return true;
        }
    }
    return false;
}

static void fork_into(node *me, level *at, bool from_outside)
{
    if (world.node_count == NODES_MAX) {
        return;
    }
    node *child = &world.nodes[world.node_count];
    memset(child, 0, sizeof *child);
    child->id = world.node_count++;
    child->depth = me->depth + 1;
    child->rng.state = hf_rng_next(&me->rng);
    child->in = at;
    child->must = NEVER;
    child->from_outside = from_outside || (at->owner != me && me->is_tainted);
    child->is_tainted = child->from_outside || at->owner->is_tainted;
    child->has_drop = chance(me, 300);
    child->on_pool = world.pool != NULL && !is_below_pool(at) && chance(me, 300);
    hf_fork_options options = {.size = sizeof options};
    options.drop = child->has_drop ? drop : NULL;
    options.on = child->on_pool ? world.pool : NULL;
    options.ret_branch = at->owner == me && chance(me, 200) ? &child->job : NULL;
    options.delay = hf_nanoseconds(chance(me, 150) ? (int64_t)(1 + below(me, 10)) * UNIT : 0);
    child->not_before = now() + options.delay.ns;
    child->refused = at->branches_max != NEVER; /* until it is in, its drop means that */
    TELL("node %d forks node %d into scope %d%s%s", (int)me->id, (int)child->id, (int)(at - world.levels),
         child->on_pool ? " on the pool" : "", options.delay.ns > 0 ? " later" : "");
    hf_status status = hf_fork_with(at->scope, body, child, &options);
    HF_CHECK(status == HF_OK || (status == HF_ERR_LIMIT && at->branches_max != NEVER));
    HF_CHECK(status == HF_OK || (child->runs == 0 && child->drops == child->has_drop));
    child->refused = status != HF_OK;
    if (child->job != NULL && chance(me, 400)) {
        child->must = now();
        TELL("node %d cancels node %d", (int)me->id, (int)child->id);
        HF_CHECK(hf_branch_cancel(child->job) == HF_OK);
    }
}

static void section(node *me, unsigned steps)
{
    level *at = open_scope(me);
    for (uint64_t round = 1 + chance(me, 150); round > 0; round--) {
        for (uint64_t count = below(me, 4); count > 0; count--) {
            fork_into(me, at, false);
        }
        if (chance(me, 250)) {
            act(me, steps);
        }
        if (chance(me, 850)) {
            join(me, at);
            (void)wait_a_while(me);
        }
    }
    if (chance(me, 250)) {
        meddle(me); /* a message elsewhere, and on: what was posted here meanwhile is not looked at before the close */
    }
    close_scope(me, at);
}

/* One of the scopes around `me`, or any that is open. */
static level *some_level(node *me, bool *ret_outside)
{
    *ret_outside = true;
    if (chance(me, 500)) {
        level *at = NULL;
        for (int tries = 0; tries < 4 && (at == NULL || !at->is_listed); tries++) {
            at = &world.levels[world.level_count - 1 - below(me, world.level_count < 8 ? world.level_count : 8)];
        }
        return at;
    }
    *ret_outside = false;
    level *at = me->inner != NULL ? me->inner : me->in;
    while (at != NULL && (at->shield != NULL || chance(me, 400))) {
        at = at->outer != NULL ? at->outer : at->owner->in;
    }
    return at;
}

static void meddle(node *me)
{
    bool outside = false;
    level *at = world.level_count > 0 ? some_level(me, &outside) : NULL;
    if (at == NULL || !at->is_listed) {
        return;
    }
    at->users++;
    at->meddled++;
    if (chance(me, 500)) {
        TELL("node %d cancels scope %d", (int)me->id, (int)(at - world.levels));
        cancel_level(at, now());
        HF_CHECK(hf_scope_cancel(at->scope, .reason = "meddler") == HF_OK);
    } else {
        fork_into(me, at, outside);
    }
    at->users--;
}

static void act(node *me, unsigned steps)
{
    for (; steps > 0; steps--) {
        uint64_t what = below(me, 100);
        if (what < 35) {
            (void)wait_a_while(me);
        } else if (what < 65 && me->depth < DEPTH_MAX && world.level_count + 4 < LEVELS_MAX) {
            section(me, 1);
        } else if (what < 80) {
            meddle(me);
        } else if (what < 92 && world.level_count + 4 < LEVELS_MAX) {
            in_shield(me);
        } else if (what < 95 && !me->on_pool) {
            block(me);
        }
    }
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static hf_status root_body(void *arg)
{
    node *me = arg;
    world.rt = me->on_main ? world.rt : hf_runtime_current();
    if (chance(me, 300)) {
        HF_CHECK(hf_pool_new(&world.pool, .runtime = me->on_main ? world.rt : NULL, .limit = 2) == HF_OK);
    }
    section(me, 2);
    act(me, 2);
    HF_CHECK(me->inner == NULL);
    HF_CHECK(hf_dispatcher_free(world.pool) == HF_OK);
    return HF_OK;
}

static uint64_t run(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    node *root = &world.nodes[world.node_count++];
    root->rng.state = hf_hash_mix(77, seed);
    root->must = NEVER;
    root->on_main = chance(root, 300);
    hf_env *env = hf_sim_begin(seed);
    hf_runtime_options options = hf_sim_runtime_options(env, 1 + (int)below(root, 4));
    options.guards = chance(root, 50) ? 0 : HF_OFF;
    if (root->on_main) {
        hf_scope *around = NULL; /* outside all scopes a plain thread has no runtime, and no virtual time */
        HF_CHECK(hf_runtime_new_with(&world.rt, &options) == HF_OK);
        HF_CHECK(hf_scope_open(&around, .runtime = world.rt) == HF_OK);
        (void)root_body(root);
        HF_CHECK(hf_scope_close(around) == HF_OK);
        HF_CHECK(hf_runtime_free(world.rt) == HF_OK);
    } else {
        HF_CHECK(hf_run_with(root_body, root, &options) == HF_OK);
    }
    HF_CHECK(hf_sim_errors_logged() == 0);
    uint64_t hash = 0;
    hf_sim_end(env, &hash);
    return hf_hash_mix(hash, world.result);
}

static void one_seed(uint64_t seed)
{
    uint64_t hash = run(seed);
    if (seed % 20 == 0) {
        HF_CHECK_SAY(run(seed) == hash, "scope-M7 the same seed gave another trace");
    }
}

static void scopes_do_what_their_twin_says(void **state)
{
    (void)state;
    make_listeners();
    is_telling = getenv("HF_SEED") != NULL;
    hf_each_seed("scopes", 30000, one_seed);
}

/* ---- A scope that never ends ------------------------------------------------------------------------------------- */

static hf_status short_lived(void *arg)
{
    (void)arg;
    return hf_yield();
}

static hf_status supervisor(void *arg)
{
    hf_env *env = arg;
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    uint64_t live = 0;
    for (unsigned i = 0; i < 20000; i++) {
        HF_TRY(hf_fork(scope, short_lived, NULL));
        HF_TRY(i % 16 == 0 ? hf_sleep(hf_nanoseconds(1)) : HF_OK);
        live = i == 1000 ? hf_sim_allocations_live(env) : live;
    }
    HF_CHECK(hf_sim_allocations_live(env) <= live + 4);
    hf_status status = hf_join(scope);
    (void)hf_scope_close(scope);
    return status;
}

static void endless_scope_holds_constant_memory(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        hf_env *env = hf_sim_begin(1);
        hf_runtime_options options = hf_sim_runtime_options(env, threads);
        HF_CHECK(hf_run_with(supervisor, env, &options) == HF_OK);
        hf_sim_end(env, NULL);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(scopes_do_what_their_twin_says),
        cmocka_unit_test(endless_scope_holds_constant_memory),
    };
    return hf_test_main("scope_model", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
