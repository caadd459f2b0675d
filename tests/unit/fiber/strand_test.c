/* Members of a crew that do not return when they are evicted: they are left where they are, everybody else ends, and nothing of
 * the library is left of any of them. */
#include "unit/fiber/crew_rig.h"

/* ---- Loops -------------------------------------------------------------------------------------------------------- */

/* A call that an evicted fiber makes in a loop, until it succeeds. The simulation takes each for a step: one that is refused
 * for ever ends the run. */
typedef struct loop_things {
    hf_scope *scope;
    hf_chan *chan; /* empty */
} loop_things;

static bool loop_sleep(loop_things *t)
{
    (void)t;
    return hf_sleep(hf_days(1)) == HF_OK;
}

static bool loop_yield(loop_things *t)
{
    (void)t;
    return hf_yield() == HF_OK;
}

static bool loop_fork(loop_things *t)
{
    return hf_fork(t->scope, say_twice, NULL) == HF_OK;
}

static bool loop_recv(loop_things *t)
{
    char byte = 0;
    return hf_chan_recv(t->chan, &byte) == HF_OK;
}

static bool loop_try_recv(loop_things *t)
{
    char byte = 0;
    return hf_chan_try_recv(t->chan, &byte) == HF_OK;
}

static bool loop_canceled(loop_things *t)
{
    (void)t;
    return hf_canceled() != HF_OK;
}

static bool loop_clock(loop_things *t)
{
    (void)t;
    return hf_now(NULL).ns > 1000;
}

/* A scope of its own in every round. */
static bool loop_scopes(loop_things *t)
{
    (void)t;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    return hf_scope_open(&scope, .name = "again") == HF_OK && hf_fork(scope, say_twice, NULL) == HF_OK;
}

static bool loop_shielded(loop_things *t)
{
    (void)t;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    if (hf_shield_open(hf_hours(1), &shield) == HF_OK) {
        while (hf_sleep(hf_seconds(1)) != HF_OK) {
        }
    }
    return true;
}

static bool (*const LOOPS[])(loop_things *t) = {loop_sleep,    loop_yield, loop_fork,   loop_recv,    loop_try_recv,
                                                loop_canceled, loop_clock, loop_scopes, loop_shielded};

static bool (*the_loop)(loop_things *t);

/* With a scope, a shield, a local value and a failure of its own. */
static hf_status does_not_return(void *arg)
{
    static const hf_local KEY = {"key"};
    hf_chan *chan = arg;
    loop_things t = {.chan = chan};
    HF_AUTO(hf_scope_close) hf_scope *outer = NULL;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_AUTO(hf_scope_close) hf_scope *inner = NULL;
    HF_TRY(hf_scope_open(&outer, .name = "outer", .timeout = hf_days(30)));
    HF_TRY(hf_local_set(&KEY, &t));
    HF_TRY(hf_shield_open(hf_days(20), &shield));
    HF_TRY(hf_scope_open(&inner, .name = "inner"));
    t.scope = inner;
    HF_CHECK(hf_raise(HF_ERR_FAILED, "of its own") == HF_ERR_FAILED);
    hf_status status = hf_sleep(hf_days(1));
    while (!the_loop(&t)) {
    }
    HF_CHECK(status != HF_ERR_EVICTED); /* it got out of it all the same */
    return status;
}

/* One or more children that do not return; see below for who they are. */
typedef struct family {
    const char *name;
    hf_status (*first)(void *family);
    int children;     /* that do not return */
    int good;         /* that do */
    bool is_left;     /* the parent does not join: it leaves the scope when it hears of the eviction */
    int stranded;     /* with those who wait for them */
    const char *note; /* what somebody else wrote down when it ended; NULL = nobody did */
} family;

static hf_status have_children(void *arg)
{
    const family *f = arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(1, &chan));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    for (int i = 0; i < f->children; i++) {
        HF_TRY(hf_fork(scope, does_not_return, chan));
    }
    for (int i = 0; i < f->good; i++) {
        HF_TRY(hf_fork(scope, wait_for_ever, (void *)(uintptr_t) "good"));
    }
    if (f->is_left) {
        HF_TRY(hf_sleep(hf_days(2)));
    }
    return hf_join(scope);
}

static hf_status be_alone(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(1, &chan));
    return does_not_return(chan);
}

/* The stranded one holds every lock there is; somebody waits for the condition, and cannot have the mutex back. */
typedef struct locks {
    hf_mutex *mutex;
    hf_cond *cond;
    hf_sem *sem;
    hf_keylock *keys;
    hf_once *once;
    hf_chan *chan;
} locks;

static hf_status wait_for_condition(void *arg)
{
    const locks *l = arg;
    HF_TRY(hf_mutex_lock(l->mutex));
    hf_status status = hf_cond_wait(l->cond, l->mutex);
    HF_CHECK(hf_mutex_unlock(l->mutex) == HF_OK);
    return status;
}

static hf_status hold_all(void *arg)
{
    const locks *l = arg;
    hf_key_guard *guard = NULL;
    HF_TRY(hf_mutex_lock(l->mutex));
    HF_TRY(hf_sem_acquire(l->sem, 1));
    HF_TRY(hf_keylock_lock(l->keys, "key", 3, &guard));
    HF_TRY(hf_once_run(l->once, does_not_return, l->chan));
    HF_TRY(hf_key_unlock(guard));
    HF_TRY(hf_sem_release(l->sem, 1));
    return hf_mutex_unlock(l->mutex);
}

static hf_status wait_for_rest(void *arg)
{
    const locks *l = arg;
    HF_AUTO(hf_key_unlock) hf_key_guard *guard = NULL;
    HF_CHECK(hf_once_run(l->once, park_here, NULL) == HF_ERR_EVICTED);
    HF_CHECK(hf_keylock_lock(l->keys, "key", 3, &guard) == HF_ERR_EVICTED);
    HF_CHECK(hf_mutex_lock(l->mutex) == HF_ERR_EVICTED);
    return hf_sem_acquire(l->sem, 1);
}

static hf_status have_locks(void *arg)
{
    (void)arg;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keys = NULL;
    HF_AUTO(hf_once_free) hf_once *once = NULL;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_sem_new(1, &sem));
    HF_TRY(hf_keylock_new(&keys));
    HF_TRY(hf_once_new(&once));
    HF_TRY(hf_chan_new(1, &chan));
    locks l = {mutex, cond, sem, keys, once, chan};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, wait_for_condition, &l));
    HF_TRY(hf_fork(scope, hold_all, &l));
    HF_TRY(hf_fork(scope, wait_for_rest, &l));
    return hf_join(scope);
}

/* A source that does not return, and its collector; a collector that does not, and its source. */
static hf_status source_loops(void *arg, hf_emitter *emitter)
{
    HF_TRY(hf_emit(emitter, "1"));
    hf_status status = does_not_return(arg);
    while (hf_emit(emitter, "2") != HF_OK) {
    }
    return status;
}

static hf_status source_emits(void *arg, hf_emitter *emitter)
{
    (void)arg;
    static const char VALUE[4096];
    hf_status status = HF_OK;
    while (status == HF_OK) {
        status = hf_emit(emitter, VALUE);
    }
    return status;
}

static hf_status item_loops(void *ctx, const void *value)
{
    (void)value;
    return does_not_return(ctx);
}

static hf_status item_is_fine(void *ctx, const void *value)
{
    (void)ctx;
    (void)value;
    return HF_OK;
}

static hf_status have_looping_source(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_chan_new(1, &chan));
    HF_TRY(hf_flow_new(1, &flow, .source = source_loops, .arg = chan));
    return hf_flow_collect(flow, item_is_fine, NULL);
}

static hf_status have_looping_collector(void *arg)
{
    (void)arg;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_flow_free) hf_flow *flow = NULL;
    HF_TRY(hf_chan_new(1, &chan));
    HF_TRY(hf_flow_new(4096, &flow, .source = source_emits));
    return hf_flow_collect(flow, item_loops, chan);
}

static const family FAMILIES[] = {
    {.name = "alone", .first = be_alone, .stranded = 1},
    {.name = "joined", .first = have_children, .children = 1, .stranded = 2},
    {.name = "left", .first = have_children, .children = 1, .is_left = true, .stranded = 2},
    {.name = "several",
     .first = have_children,
     .children = 3,
     .good = 2,
     .stranded = 4,
     .note = "good:evicted good:evicted"},
    {.name = "locks", .first = have_locks, .stranded = 3},
    {.name = "source", .first = have_looping_source, .stranded = 2},
    {.name = "collector", .first = have_looping_collector, .stranded = 1},
};

/* Evicts it: nobody is left, nothing either. */
static hf_status evict_family(const family *f)
{
    owner o;
    hf_stats before;
    hf_stats after;
    HF_TRY(hf_runtime_stats(NULL, &before));
    HF_TRY(begin(&o, f->first, (void *)(uintptr_t)f));
    hf_crew_turn(o.crew);
    HF_CHECK(!hf_crew_is_over(o.crew));
    hf_crew_evict(o.crew);
    HF_CHECK(hf_crew_is_over(o.crew));
    hf_crew_close(o.crew);
    HF_TRY(hf_runtime_stats(NULL, &after));
    HF_CHECK_SAY(after.stranded - before.stranded == (uint64_t)f->stranded, "%s: %d were stranded, not %d", f->name,
                 (int)(after.stranded - before.stranded), f->stranded);
    HF_CHECK_SAY(after.fibers == before.fibers && after.branches == before.branches && after.scopes == before.scopes,
                 "%s: fibers %d, jobs %d, scopes %d more", f->name, (int)(after.fibers - before.fibers),
                 (int)(after.branches - before.branches), (int)(after.scopes - before.scopes));
    HF_CHECK(f->note == NULL || strstr(o.notes, f->note) != NULL); /* the others had their cleanup */
    return HF_OK;
}

static hf_status drive_family(void *arg)
{
    return evict_family(arg);
}

static void an_evicted_member_that_does_not_return_is_stranded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof LOOPS / sizeof *LOOPS; i++) {
        the_loop = LOOPS[i];
        for (size_t j = 0; j < sizeof FAMILIES / sizeof *FAMILIES; j++) {
            uint64_t first = 0;
            uint64_t again = 0;
            void *arg = (void *)(uintptr_t)&FAMILIES[j];
            HF_CHECK(hf_sim_run(1, 2, drive_family, arg, &first) == HF_OK);
            HF_CHECK(hf_sim_run(1, 2, drive_family, arg, &again) == HF_OK);
            HF_CHECK(first == again);
        }
    }
}

/* Its stack is used again, by other such members and by plain fibers. */
static hf_status deep(void *arg)
{
    volatile char room[4096];
    memset((void *)(uintptr_t)room, 1, sizeof room);
    return hf_yield() == HF_OK && room[17] == 1 ? hf_chan_send(arg, (void *)(uintptr_t)room) : HF_ERR_FAILED;
}

static hf_status drive_again(void *arg)
{
    (void)arg;
    uint64_t stack_bytes = 0;
    the_loop = loop_sleep;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_TRY(hf_chan_new(1, &chan, .capacity = 16));
    for (int round = 0; round < 50; round++) {
        for (size_t j = 0; j < sizeof FAMILIES / sizeof *FAMILIES; j++) {
            HF_TRY(evict_family(&FAMILIES[j]));
        }
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        for (int i = 0; i < 8; i++) {
            HF_TRY(hf_fork(scope, deep, chan));
        }
        HF_TRY(hf_join(scope));
        for (char byte = 0; hf_chan_count(chan) > 0;) {
            HF_TRY(hf_chan_recv(chan, &byte));
        }
        hf_stats stats;
        HF_TRY(hf_runtime_stats(NULL, &stats));
        stack_bytes = round == 0 ? stats.stack_bytes : stack_bytes;
        HF_CHECK_SAY(stats.stack_bytes == stack_bytes, "round %d: %d bytes of stacks, not %d", round,
                     (int)stats.stack_bytes, (int)stack_bytes);
    }
    return HF_OK;
}

static void the_stacks_of_stranded_members_are_used_again(void **state)
{
    (void)state;
    HF_CHECK(hf_sim_run(1, 1, drive_again, NULL, NULL) == HF_OK);
}

/* What the log says of them: once for each place. */
static char said[4096];
static size_t said_len;

static void hear(void *state, hf_log_level level, const char *event, const char *fields)
{
    (void)state;
    HF_CHECK_SAY(level == HF_LOG_WARN, "%s %s", event, fields);
    int len = snprintf(said + said_len, sizeof said - said_len, "%s %s\n", event, fields);
    said_len += len > 0 ? (size_t)len : 0;
}

static hf_status drive_talk(void *arg)
{
    (void)arg;
    for (int round = 0; round < 3; round++) {
        the_loop = loop_sleep;
        HF_TRY(evict_family(&FAMILIES[3])); /* three at one place, four in all */
        the_loop = loop_fork;
        HF_TRY(evict_family(&FAMILIES[0]));
    }
    char *text = NULL;
    HF_TRY(hf_metrics(NULL, &text));
    HF_CHECK(strstr(text, "\nstranded 15\n") != NULL);
    hf_text_free(text);
    HF_TRY(hf_dump(NULL, &text, .no_stacks = true));
    HF_CHECK_SAY(strstr(text, ", 15 stranded\n") != NULL, "%s", text);
    hf_text_free(text);
    HF_TRY(hf_dump(NULL, &text, .no_stacks = true, .json = true));
    HF_CHECK_SAY(strstr(text, "\"stranded\":15,") != NULL, "%s", text);
    hf_text_free(text);
    return HF_OK;
}

static int times_said(const char *text)
{
    int count = 0;
    for (const char *at = said; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static void stranded_members_are_logged_once_for_each_place_and_counted(void **state)
{
    (void)state;
    said_len = 0;
    hf_env *env = hf_sim_begin(1);
    hf_runtime_options options = hf_sim_runtime_options(env, 1);
    options.log = hear;
    HF_CHECK(hf_run_with(drive_talk, NULL, &options) == HF_OK);
    hf_sim_end(env, NULL);
    HF_CHECK_SAY(times_said("workflow_did_not_return workflow=test type=first ") == 2, "%s", said);
    HF_CHECK_SAY(times_said("Return when a verb returns HF_ERR_EVICTED: HF_TRY does\"\n") == 2, "%s", said);
    HF_CHECK_SAY(times_said("hf_sleep") == 1 && times_said("does_not_return+0x") == 2, "%s", said);
}

/* Cleanup may take as many calls as it needs: only what is refused, or asks for news, counts. */
enum { MUCH = 5000 };

static hf_status clean_up_a_lot(void *arg)
{
    (void)arg;
    static hf_chan *chans[MUCH];
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_chan_free) hf_chan *values = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_chan_new(1, &values, .capacity = MUCH));
    for (int i = 0; i < MUCH; i++) {
        HF_TRY(hf_chan_new(1, &chans[i]));
        HF_TRY(hf_chan_send(values, "v"));
    }
    hf_status status = hf_sleep(hf_days(1));
    char byte = 0;
    while (hf_chan_try_recv(values, &byte) == HF_OK) {
    }
    for (int i = 0; i < MUCH; i++) {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_CHECK(hf_scope_open(&scope) == HF_OK);
        HF_CHECK(hf_mutex_try_lock(mutex) == HF_OK && hf_mutex_unlock(mutex) == HF_OK);
        HF_CHECK(hf_chan_close(chans[i]) == HF_OK && hf_chan_free(chans[i]) == HF_OK);
    }
    for (int i = 0; i < 900; i++) {
        HF_CHECK(hf_sleep(hf_seconds(1)) == HF_ERR_EVICTED);
    }
    note("clean ");
    return status;
}

static hf_status drive_cleanup(void *arg)
{
    (void)arg;
    static const family CLEAN = {.name = "clean", .first = clean_up_a_lot, .note = "clean "};
    return evict_family(&CLEAN);
}

static void cleanup_of_an_evicted_member_may_take_many_calls(void **state)
{
    (void)state;
    on_a_fiber(drive_cleanup);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(an_evicted_member_that_does_not_return_is_stranded),
        cmocka_unit_test(the_stacks_of_stranded_members_are_used_again),
        cmocka_unit_test(stranded_members_are_logged_once_for_each_place_and_counted),
        cmocka_unit_test(cleanup_of_an_evicted_member_may_take_many_calls),
    };
    return hf_test_main("strand", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
