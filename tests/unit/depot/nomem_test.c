/* Memory runs out: every allocation of every verb of a depot fails once, of what happens behind the caller's back, too,
 * and with all that follow it for a moment.
 *
 * A scene is a depot with a value, one step, and what is true afterwards. The step says HF_OK or HF_ERR_NOMEM. If it
 * says HF_ERR_NOMEM nothing has changed; if HF_OK it has happened, and a write reaches the origin. When there is memory
 * again, the depot works. Nothing leaks: hf_sim_end looks. */
#include "rig.h"

#include "support/broken_memory.h"

#include "env/sim/sim.h"

/* ---- Scenes ------------------------------------------------------------------------------------------------------ */

static hf_depot_write *written; /* by the step */
static hf_watcher *watching;    /* by the setup */

static hf_status append(void *state, const hf_value *value, const void *patch, size_t len, hf_value **ret_value)
{
    char text[64];
    (void)state;
    int made = snprintf(text, sizeof text, "%.*s+%.*s", value != NULL ? (int)hf_value_len(value) : 0,
                        value != NULL ? (const char *)hf_value_data(value) : "", (int)len, (const char *)patch);
    return hf_value_copy(text, (size_t)made, ret_value);
}

static hf_status merge(void *state, const hf_value *base, const hf_value *mine, const hf_value *theirs,
                       hf_value **ret_value)
{
    (void)state;
    (void)base;
    (void)theirs;
    return hf_value_copy(hf_value_data(mine), hf_value_len(mine), ret_value);
}

static hf_status get_fresh(hf_depot *depot, hf_fresh fresh)
{
    hf_value *value = NULL;
    hf_status status = hf_depot_get(depot, rig_key("A"), &value, .fresh = fresh);
    HF_CHECK((status == HF_OK) == (value != NULL));
    hf_value_unref(value);
    return status;
}

static hf_status step_get_cached(hf_depot *depot)
{
    return get_fresh(depot, HF_FRESH_CACHED);
}

static hf_status step_get_now(hf_depot *depot)
{
    return get_fresh(depot, HF_FRESH_NOW);
}

static hf_status step_get_or_stale(hf_depot *depot)
{
    return get_fresh(depot, HF_FRESH_OR_STALE);
}

static hf_status step_prefetch(hf_depot *depot)
{
    return hf_depot_prefetch(depot, rig_key("A"));
}

static hf_status step_put(hf_depot *depot)
{
    return hf_depot_put(depot, rig_key("A"), "mine", 4, .ret_write = &written, .if_match = "x");
}

static hf_status step_put_twice(hf_depot *depot)
{
    HF_TRY(hf_depot_online(depot, false));
    hf_status status = hf_depot_put(depot, rig_key("A"), "half", 4);
    if (status == HF_OK) {
        status = hf_depot_put(depot, rig_key("A"), "mine", 4, .ret_write = &written);
        HF_CHECK(status == HF_OK || status == HF_ERR_NOMEM);
        status = status == HF_OK ? HF_OK : HF_ERR_AGAIN; /* the first one stays */
    }
    HF_CHECK(hf_depot_online(depot, true) == HF_OK || hf_depot_online(depot, true) == HF_OK);
    return status;
}

static hf_status step_put_origin_first(hf_depot *depot)
{
    return hf_depot_put(depot, rig_key("A"), "mine", 4, .mode = HF_DEPOT_ORIGIN_FIRST);
}

static hf_status step_put_merged(hf_depot *depot)
{
    return hf_depot_put(depot, rig_key("A"), "mine", 4, .on_conflict = HF_CONFLICT_MERGE, .ret_write = &written);
}

static hf_status step_patch(hf_depot *depot)
{
    return hf_depot_patch(depot, rig_key("A"), "mine", 4, .ret_write = &written);
}

static hf_status step_delete(hf_depot *depot)
{
    return hf_depot_delete(depot, rig_key("A"), .ret_write = &written);
}

static hf_status step_invalidate(hf_depot *depot)
{
    return hf_depot_invalidate(depot, rig_key("A"));
}

static hf_status step_invalidate_hard(hf_depot *depot)
{
    return hf_depot_invalidate(depot, rig_key("A"), .hard = true);
}

static hf_status step_invalidate_namespace(hf_depot *depot)
{
    return hf_depot_invalidate_namespace(depot, "acme", .hard = true);
}

static hf_status step_invalidate_all(hf_depot *depot)
{
    return hf_depot_invalidate_all(depot, .hard = true);
}

static hf_status step_watch(hf_depot *depot)
{
    return hf_depot_watch(depot, rig_key("A"), &watching, .fresh = HF_FRESH_NOW, .refresh = hf_milliseconds(300));
}

static hf_status step_trim(hf_depot *depot)
{
    return hf_depot_trim(depot, 0);
}

static hf_status step_retry(hf_depot *depot)
{
    return hf_depot_retry(depot, 1);
}

static hf_status step_drop(hf_depot *depot)
{
    return hf_depot_drop(depot, 1);
}

static bool see_write(void *arg, const hf_depot_pending_write *write)
{
    (void)write;
    ++*(int *)arg;
    return true;
}

static hf_status step_look(hf_depot *depot)
{
    int count = 0;
    hf_depot_counts counts;
    HF_TRY(hf_depot_stat(depot, &counts));
    HF_TRY(hf_depot_pending(depot, see_write, &count));
    HF_TRY(hf_depot_online(depot, false));
    return hf_depot_online(depot, true);
}

typedef enum before { EMPTY, OLD, AGED, DEAD, WATCHED } before;

static const struct scene {
    const char *name;
    before setup;
    hf_status (*step)(hf_depot *depot);
    const char *after;   /* visible if the step said HF_OK; "" = nothing */
    const char *instead; /* if it failed */
    int pushes;          /* at least, if the step said HF_OK */
    bool conflicts;      /* the origin has another value */
} SCENES[] = {
    {"get, nothing at hand", EMPTY, step_get_cached, "old", "", 0, false},
    {"get, at hand", OLD, step_get_cached, "old", "old", 0, false},
    {"get, refreshed", AGED, step_get_cached, "old", "old", 0, false},
    {"get now", AGED, step_get_now, "old", "old", 0, false},
    {"get or stale", AGED, step_get_or_stale, "old", "old", 0, false},
    {"prefetch", EMPTY, step_prefetch, "old", "", 0, false},
    {"put", OLD, step_put, "mine", "old", 1, false},
    {"put, watched", WATCHED, step_put, "mine", "old", 1, false},
    {"put, nothing at hand", EMPTY, step_put, "mine", "", 1, false},
    {"put twice", OLD, step_put_twice, "mine", "old", 1, false},
    {"put, origin first", OLD, step_put_origin_first, "mine", "old", 1, false},
    {"put, merged", OLD, step_put_merged, "mine", "old", 2, true},
    {"patch", OLD, step_patch, "old+mine", "old", 1, false},
    {"delete", OLD, step_delete, "", "old", 1, false},
    {"invalidate", OLD, step_invalidate, "", "old", 0, false},
    {"invalidate, watched", WATCHED, step_invalidate, "old", "old", 0, false},
    {"invalidate, hard", OLD, step_invalidate_hard, "", "old", 0, false},
    {"invalidate a namespace", OLD, step_invalidate_namespace, "", "old", 0, false},
    {"invalidate all", OLD, step_invalidate_all, "", "old", 0, false},
    {"watch", OLD, step_watch, "old", "old", 0, false},
    {"trim", OLD, step_trim, "", "old", 0, false},
    {"retry", DEAD, step_retry, "mine", "old", 2, false},
    {"drop", DEAD, step_drop, "old", "old", 1, false},
    {"look", OLD, step_look, "old", "old", 0, false},
};

/* ---- Playing one ------------------------------------------------------------------------------------------------- */

static struct {
    const struct scene *scene;
    bool has_store;
    bool is_posix; /* which memory runs out: the process's, or the runtime's */
    bool is_long;  /* for as long as the step takes */
    uint64_t nth;
    bool was_met; /* the allocation was reached */
    hf_env *env;
} play;

static void break_memory(void)
{
    if (play.is_posix) {
        broken_memory_count = 0;
        broken_memory_nth = play.nth;
        broken_memory_counts = true;
    } else {
        hf_sim_fail_allocation(play.env, play.nth, play.is_long);
    }
}

static void mend_memory(uint64_t allocations)
{
    if (play.is_posix) {
        play.was_met = broken_memory_has_failed();
        broken_memory_pause();
    } else {
        play.was_met = hf_sim_allocations(play.env) - allocations >= play.nth;
        hf_sim_fail_allocation(play.env, 0, false);
    }
}

static hf_status set_up(hf_depot *depot, origin *o, before setup)
{
    if (setup == EMPTY) {
        return HF_OK;
    }
    GET(depot, "A", "old", .fresh = HF_FRESH_CACHED);
    if (setup == AGED) {
        HF_TRY(hf_sleep(hf_minutes(6)));
    } else if (setup == DEAD) {
        o->is_down = true;
        o->why = HF_REPLY_DENIED;
        HF_TRY(rig_put(depot, "A", "mine"));
        HF_TRY(hf_sleep(hf_seconds(1)));
        o->is_down = false;
        HF_CHECK(rig_counts(depot).dead == 1);
    } else if (setup == WATCHED) {
        HF_TRY(hf_depot_watch(depot, rig_key("A"), &watching));
    }
    return HF_OK;
}

static void judge(hf_depot *depot, const origin *o, hf_status status)
{
    const struct scene *scene = play.scene;
    if (status == HF_ERR_AGAIN) { /* one of two writes */
        GET(depot, "A", "half", .fresh = HF_FRESH_LOCAL);
        HF_CHECK(o->pushes >= 1 && rig_counts(depot).pending == 0);
        return;
    }
    HF_CHECK_SAY(status == HF_OK || status == HF_ERR_NOMEM, "%s, allocation %d: %s", scene->name, (int)play.nth,
                 hf_status_name(status));
    const char *visible = status == HF_OK ? scene->after : scene->instead;
    hf_value *got = NULL;
    hf_status local = hf_depot_get(depot, rig_key("A"), &got, .fresh = HF_FRESH_LOCAL);
    /* What was only in memory may have gone for want of it, and what was fetched may not be kept. If .apply cannot tell
     * what a patch has made of the origin's value, the origin is asked. A watcher may not get the fetch after an
     * invalidation. */
    bool may_be_none = (!play.has_store || (scene->setup == EMPTY && scene->pushes == 0) || scene->step == step_patch ||
                        scene->step == step_invalidate) &&
                       rig_counts(depot).pending == 0;
    bool is_it = visible[0] == '\0' ? local == HF_ERR_NOT_FOUND : local == HF_OK && rig_is_text(got, visible);
    bool may_be_more = visible[0] == '\0' && play.has_store && rig_is_text(got, "old") && scene->step == step_trim;
    bool came_later = scene->setup == EMPTY && rig_is_text(got, "old");
    HF_CHECK_SAY(is_it || may_be_more || came_later || (may_be_none && local == HF_ERR_NOT_FOUND),
                 "%s, %s, allocation %d of %s: %s '%.*s' after %s", scene->name, play.has_store ? "file" : "memory",
                 (int)play.nth, play.is_posix ? "the process" : "the runtime", hf_status_name(local),
                 got != NULL ? (int)hf_value_len(got) : 0, got != NULL ? (const char *)hf_value_data(got) : "",
                 hf_status_name(status));
    hf_value_unref(got);
    HF_CHECK_SAY(status != HF_OK || o->pushes >= scene->pushes, "%s, allocation %d of %s: %d pushes", scene->name,
                 (int)play.nth, play.is_posix ? "the process" : "the runtime", o->pushes);
    bool is_kept_dead = scene->setup == DEAD && status != HF_OK;
    HF_CHECK_SAY(rig_counts(depot).pending == is_kept_dead, "%s, allocation %d: %d writes wait", scene->name,
                 (int)play.nth, (int)rig_counts(depot).pending);
}

static hf_status play_step(hf_depot *depot, origin *o)
{
    HF_TRY(set_up(depot, o, play.scene->setup));
    if (play.scene->conflicts) {
        o->conflict_with = "mine";
        o->theirs = "theirs";
    }
    uint64_t allocations = hf_sim_allocations(play.env);
    break_memory();
    hf_status status = play.scene->step(depot);
    HF_IGNORE(hf_sleep(hf_milliseconds(900))); /* what goes on behind the caller's back */
    mend_memory(allocations);
    HF_TRY(hf_sleep(hf_minutes(20)));
    judge(depot, o, status);
    if (written != NULL) {
        hf_status waited = hf_depot_write_wait(written, .timeout = hf_minutes(1));
        HF_CHECK_SAY(waited == HF_OK, "%s, allocation %d: the write ended with %s", play.scene->name, (int)play.nth,
                     hf_status_name(waited));
        hf_depot_write_free(written);
        written = NULL;
    }
    HF_CHECK(hf_watcher_close(watching) == HF_OK);
    watching = NULL;
    o->value = "new"; /* the depot works */
    HF_TRY(hf_depot_invalidate(depot, rig_key("A"), .hard = true));
    GET(depot, "A", "new", .fresh = HF_FRESH_NOW, .force = true);
    HF_TRY(rig_put(depot, "B", "later"));
    HF_TRY(hf_sleep(hf_minutes(1)));
    HF_CHECK(depot->breakers[0].state == HF_BREAKER_CLOSED && rig_counts(depot).flights == 0);
    return HF_OK;
}

static hf_status play_scene(void *arg)
{
    (void)arg;
    origin o = {.value = "old", .etag = "x"};
    lent store;
    HF_TRY(rig_store(&store));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(play.has_store ? &store : NULL, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o,
                           .apply = append, .merge = merge));
        HF_TRY(play_step(depot, &o));
    }
    hf_store_close(store.inner);
    return HF_OK;
}

static int failed_in_all;

static void run_one(hf_body body)
{
    play.env = hf_sim_begin(1);
    hf_runtime_options options = hf_sim_runtime_options(play.env, 1);
    hf_status status = hf_run_with(body, NULL, &options);
    HF_CHECK_SAY(status == HF_OK, "%s, allocation %d: the play ended with %s",
                 play.scene != NULL ? play.scene->name : "opening", (int)play.nth, hf_status_name(status));
    hf_sim_end(play.env, NULL);
}

static void every_allocation_of(hf_body body)
{
    for (int kind = 0; kind < 3 && hf_checks_failed() == 0; kind++) {
        play.is_posix = kind == 2;
        play.is_long = kind == 1;
        if (play.is_long && play.scene != NULL && play.scene->step == step_put_origin_first) {
            continue; /* it returns when the origin has answered, and so when there is memory */
        }
        play.was_met = true;
        for (play.nth = 1; play.was_met && hf_checks_failed() == 0; play.nth++) {
            run_one(body);
            failed_in_all += play.was_met;
        }
    }
}

static int begin(void **state)
{
    (void)state;
    hf_env *env = hf_env_posix();
    broken_memory_real = env->ops;
    broken_memory_ops = *env->ops;
    broken_memory_ops.allocate = broken_memory_allocate;
    env->ops = &broken_memory_ops;
    failed_in_all = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_env_posix()->ops = broken_memory_real;
    return 0;
}

static void every_allocation_of_every_verb_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(SCENES); i++) {
        for (int has_store = 0; has_store < 2; has_store++) {
            play.scene = &SCENES[i];
            play.has_store = has_store != 0;
            every_allocation_of(play_scene);
        }
    }
    print_message("%d scenes, %d allocations failed\n", (int)HF_COUNT_OF(SCENES) * 2, failed_in_all);
    assert_true(failed_in_all > 500);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static hf_status play_opening(void *arg)
{
    (void)arg;
    origin o = {.value = "old"};
    lent store;
    HF_TRY(rig_store(&store));
    {
        HF_AUTO(hf_depot_close) hf_depot *depot = NULL;
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
        GET(depot, "C", "old", .fresh = HF_FRESH_CACHED);
        HF_TRY(hf_depot_online(depot, false));
        HF_TRY(rig_put(depot, "A", "1"));
        HF_TRY(rig_put(depot, "B", "2"));
        HF_TRY(hf_depot_invalidate_namespace(depot, "other", .hard = true));
    }
    hf_depot *depot = NULL;
    uint64_t allocations = hf_sim_allocations(play.env);
    break_memory();
    hf_status status = rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o);
    HF_IGNORE(hf_sleep(hf_milliseconds(10)));
    mend_memory(allocations);
    HF_CHECK_SAY(status == HF_OK || status == HF_ERR_NOMEM, "allocation %d: %s", (int)play.nth, hf_status_name(status));
    if (status != HF_OK) {
        HF_TRY(rig_open_on(&store, &depot, .fetch = rig_fetch, .push = rig_push, .state = &o));
    }
    GET(depot, "A", "1", .fresh = HF_FRESH_LOCAL);
    GET(depot, "C", "old", .fresh = HF_FRESH_LOCAL);
    HF_TRY(hf_sleep(hf_minutes(10)));
    HF_CHECK_SAY(o.pushes >= 2 && rig_counts(depot).pending == 0, "allocation %d: %d pushes", (int)play.nth, o.pushes);
    HF_TRY(hf_depot_close(depot));
    hf_store_close(store.inner);
    return HF_OK;
}

static void every_allocation_of_opening_may_fail(void **state)
{
    (void)state;
    play.scene = NULL;
    every_allocation_of(play_opening);
    print_message("%d allocations failed\n", failed_in_all);
    assert_true(failed_in_all > 20);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test_setup_teardown(every_allocation_of_every_verb_may_fail, begin, end),
        cmocka_unit_test_setup_teardown(every_allocation_of_opening_may_fail, begin, end),
    };
    return hf_test_main("depot nomem", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
