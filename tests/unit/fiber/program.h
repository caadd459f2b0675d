/* A small program that uses everything once: what is canceled at each of its waits, and starved of memory at each of its
 * allocations. It counts its waits, and what it holds; whatever happens, nothing may be held at its end. */
#ifndef HF_TESTS_PROGRAM_H
#define HF_TESTS_PROGRAM_H

#include "unit/fiber/bodies.h"

typedef struct program {
    atomic_int waits; /* so far */
    int cancel_at;    /* the root scope is canceled at this one; 0 = never */
    bool by_another;  /* by a fiber that runs once the waiter has parked, else by the waiter just before */
    hf_scope *root;
    hf_chan *kill;      /* wakes that fiber */
    atomic_int held;    /* things that must be given back */
    atomic_int cleaned; /* cleanups behind a shield that were begun, minus those that ran */
} program;

/* Counts a wait that is about to happen. */
static inline void program_wait(program *p)
{
    if (atomic_fetch_add(&p->waits, 1) + 1 != p->cancel_at) {
        return;
    }
    if (p->by_another) {
        HF_IGNORE(hf_chan_try_send(p->kill, "k"));
    } else {
        HF_IGNORE(hf_scope_cancel(p->root, .reason = "the chosen wait"));
    }
}
#define WAIT(p, call) (program_wait(p), (call))

static inline void program_let_go(program **held)
{
    if (*held != NULL) {
        (void)atomic_fetch_sub(&(*held)->held, 1);
    }
}
static inline program *program_hold(program *p)
{
    (void)atomic_fetch_add(&p->held, 1);
    return p;
}
#define HOLDING(p)                                                             \
    __attribute__((cleanup(program_let_go))) program *held_ = program_hold(p); \
    (void)held_

/* ---- Channels, select ------------------------------------------------------------------------ */

typedef struct plumbing {
    program *p;
    hf_chan *numbers;
    hf_chan *words;
} plumbing;

static inline hf_status program_produce(void *arg)
{
    plumbing *pl = arg;
    HOLDING(pl->p);
    for (int i = 0; i < 20; i++) {
        HF_TRY(WAIT(pl->p, hf_chan_send(pl->numbers, &i)));
        HF_TRY(WAIT(pl->p, hf_yield()));
    }
    return hf_chan_close(pl->numbers);
}

static inline hf_status program_convert(void *arg)
{
    plumbing *pl = arg;
    HOLDING(pl->p);
    int pending = -1;
    for (;;) {
        int number = 0;
        hf_case cases[] = {{.kind = HF_CASE_SEND, .chan = pending >= 0 ? pl->words : NULL, .value = &pending},
                           {.kind = HF_CASE_RECV, .chan = pending >= 0 ? NULL : pl->numbers, .value = &number}};
        size_t idx = 0;
        HF_TRY(WAIT(pl->p, hf_select(cases, 2, &idx, .timeout = hf_seconds(60))));
        if (idx == 1 && cases[1].status == HF_ERR_CLOSED) {
            return hf_chan_close(pl->words);
        }
        pending = idx == 1 ? number : -1;
    }
}

static inline hf_status program_consume(void *arg)
{
    plumbing *pl = arg;
    HOLDING(pl->p);
    for (;;) {
        int word = 0;
        hf_status status = WAIT(pl->p, hf_chan_recv(pl->words, &word, .timeout = hf_seconds(60)));
        if (status == HF_ERR_CLOSED) {
            return HF_OK;
        }
        HF_TRY(status);
    }
}

static inline hf_status program_pipes(void *arg)
{
    program *p = arg;
    HF_AUTO(hf_chan_free) hf_chan *numbers = NULL;
    HF_AUTO(hf_chan_free) hf_chan *words = NULL;
    HF_TRY(hf_chan_new(sizeof(int), &numbers, .capacity = 2));
    HF_TRY(hf_chan_new(sizeof(int), &words));
    plumbing pl = {p, numbers, words};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "pipes", .timeout = hf_minutes(10)));
    HF_TRY(hf_fork(scope, program_produce, &pl, .name = "producer"));
    HF_TRY(hf_fork(scope, program_convert, &pl, .name = "converter"));
    HF_TRY(hf_fork(scope, program_consume, &pl, .name = "consumer"));
    return WAIT(p, hf_join(scope));
}

/* ---- Locks ----------------------------------------------------------------------------------- */

typedef struct locks {
    program *p;
    hf_mutex *mutex;
    hf_cond *cond;
    hf_sem *sem;
    hf_once *once;
    hf_keylock *keys;
    int turns;
} locks;

static inline hf_status program_once(void *arg)
{
    locks *l = arg;
    return WAIT(l->p, hf_sleep(hf_milliseconds(1)));
}

static inline hf_status program_lock(void *arg)
{
    locks *l = arg;
    HOLDING(l->p);
    HF_TRY(WAIT(l->p, hf_once_run(l->once, program_once, l)));
    {
        HF_TRY(WAIT(l->p, hf_sem_acquire(l->sem, 1)));
        hf_status status = WAIT(l->p, hf_sleep(hf_milliseconds(1)));
        HF_TRY(hf_sem_release(l->sem, 1));
        HF_TRY(status);
    }
    {
        HF_AUTO(hf_key_unlock) hf_key_guard *guard = NULL;
        HF_TRY(WAIT(l->p, hf_keylock_lock(l->keys, "key", 3, &guard)));
        HF_TRY(WAIT(l->p, hf_yield()));
    }
    HF_TRY(WAIT(l->p, hf_mutex_lock(l->mutex)));
    HF_AUTO(hf_mutex_unlock) hf_mutex *locked = l->mutex;
    (void)locked;
    l->turns++;
    HF_TRY(hf_cond_broadcast(l->cond));
    while (l->turns < 3) {
        HF_TRY(WAIT(l->p, hf_cond_wait(l->cond, l->mutex)));
    }
    return HF_OK;
}

static inline hf_status program_locks(void *arg)
{
    program *p = arg;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_AUTO(hf_cond_free) hf_cond *cond = NULL;
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_AUTO(hf_once_free) hf_once *once = NULL;
    HF_AUTO(hf_keylock_free) hf_keylock *keys = NULL;
    HF_TRY(hf_mutex_new(&mutex));
    HF_TRY(hf_cond_new(&cond));
    HF_TRY(hf_sem_new(1, &sem));
    HF_TRY(hf_once_new(&once));
    HF_TRY(hf_keylock_new(&keys));
    locks l = {p, mutex, cond, sem, once, keys, 0};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "locks"));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, program_lock, &l));
    }
    return WAIT(p, hf_join(scope));
}

/* ---- Pools ----------------------------------------------------------------------------------- */

static inline hf_status program_call(void *arg)
{
    program *p = arg;
    HOLDING(p);
    return WAIT(p, hf_sleep(hf_milliseconds(2))); /* on a plain thread */
}

static inline hf_status program_caller(void *arg)
{
    program *p = arg;
    HOLDING(p);
    HF_TRY(WAIT(p, hf_block(program_call, p)));
    return WAIT(p, hf_block(program_call, p, .abandonable = true));
}

/* A pool thread as the owner of a scope. */
static inline hf_status program_pool_owner(void *arg)
{
    program *p = arg;
    HOLDING(p);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "of a pool thread", .timeout = hf_minutes(1)));
    HF_TRY(hf_fork(scope, program_call, p));
    return WAIT(p, hf_join(scope));
}

static inline hf_status program_pools(void *arg)
{
    program *p = arg;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *pool = NULL;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *view = NULL;
    HF_AUTO(hf_dispatcher_free) hf_dispatcher *serial = NULL;
    HF_TRY(hf_pool_new(&pool, .limit = 2));
    HF_TRY(hf_pool_view(pool, &view, .limit = 1));
    HF_TRY(hf_serial_new(&serial));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "pools"));
    for (int i = 0; i < 2; i++) {
        HF_TRY(hf_fork(scope, program_caller, p));
        HF_TRY(hf_fork(scope, program_call, p, .on = view));
        HF_TRY(hf_fork(scope, program_call, p, .on = serial));
    }
    HF_TRY(hf_fork(scope, program_pool_owner, p, .on = pool));
    return WAIT(p, hf_join(scope));
}

/* ---- Scopes, shields, deadlines -------------------------------------------------------------- */

/* What must be put in order whatever happens, and has to wait for it. Without memory for the shield it cannot. */
static inline void program_clean_up(program *p)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    if (hf_shield_open(hf_seconds(5), &shield) != HF_OK) {
        return;
    }
    (void)atomic_fetch_add(&p->cleaned, 1);
    hf_status status = hf_sleep(hf_milliseconds(3));
    HF_CHECK(status == HF_OK || status == HF_ERR_NOMEM);
    (void)atomic_fetch_sub(&p->cleaned, 1);
}

static inline hf_status program_cleaner(void *arg)
{
    program *p = arg;
    HOLDING(p);
    hf_status status = WAIT(p, hf_sleep(hf_milliseconds(5)));
    program_clean_up(p);
    return status;
}

static inline hf_status program_loser(void *arg)
{
    program *p = arg;
    HOLDING(p);
    return WAIT(p, hf_sleep(hf_hours(1)));
}

static inline hf_status program_bad(void *arg)
{
    program *p = arg;
    HOLDING(p);
    HF_TRY(WAIT(p, hf_sleep(hf_milliseconds(1))));
    return hf_raise_typed(HF_ERR_FAILED, "Planned", "planned to fail");
}

static const hf_local PROGRAM_KEY = {"program"};

static inline hf_status program_scopes(void *arg)
{
    program *p = arg;
    HOLDING(p);
    HF_TRY(hf_local_set(&PROGRAM_KEY, p));
    {
        HF_AUTO(hf_scope_close) hf_scope *race = NULL;
        HF_TRY(hf_scope_open(&race, .name = "race", .join = HF_JOIN_ANY));
        HF_TRY(hf_fork(race, program_loser, p));
        HF_TRY(hf_fork(race, program_bad, p));
        HF_TRY(hf_fork(race, program_cleaner, p, .delay = hf_milliseconds(2)));
        HF_TRY(WAIT(p, hf_join(race)));
    }
    {
        hf_branch *job = NULL;
        HF_AUTO(hf_scope_close) hf_scope *partial = NULL;
        HF_TRY(hf_scope_open(&partial, .join = HF_JOIN_PARTIAL, .timeout = hf_milliseconds(20)));
        HF_TRY(hf_fork(partial, program_loser, p, .ret_branch = &job));
        HF_TRY(hf_fork(partial, program_cleaner, p));
        HF_TRY(WAIT(p, hf_join(partial)));
    }
    HF_AUTO(hf_scope_close) hf_scope *all = NULL;
    HF_TRY(hf_scope_open(&all, .name = "supervisor", .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(all, program_bad, p));
    HF_TRY(hf_fork(all, program_bad, p));
    hf_status status = WAIT(p, hf_join(all));
    return status == HF_ERR_FAILED ? HF_OK : status;
}

/* ---- Keys, flows ----------------------------------------------------------------------------- */

static inline hf_status program_fetch(void *arg, hf_value **ret_value)
{
    program *p = arg;
    HOLDING(p);
    HF_TRY(WAIT(p, hf_sleep(hf_milliseconds(4))));
    return hf_value_copy("fetched", 7, ret_value);
}

typedef struct keyed {
    program *p;
    hf_flight *flight;
    hf_cache *cache;
} keyed;

static inline hf_status program_get(void *arg)
{
    keyed *k = arg;
    HOLDING(k->p);
    HF_AUTO(hf_value_unref) hf_value *value = NULL;
    if (hf_cache_get(k->cache, "key", 3, &value) == HF_OK) {
        return HF_OK;
    }
    HF_TRY(WAIT(k->p, hf_flight_run(k->flight, "key", 3, program_fetch, k->p, &value)));
    return hf_cache_put(k->cache, "key", 3, value, NULL);
}

static inline hf_status program_keys(void *arg)
{
    program *p = arg;
    HF_AUTO(hf_cache_free) hf_cache *cache = NULL;
    HF_TRY(hf_cache_new(&cache, .count_max = 4));
    HF_AUTO(hf_scope_close) hf_scope *work = NULL;
    HF_TRY(hf_scope_open(&work, .name = "fetches", .join = HF_JOIN_COLLECT));
    HF_AUTO(hf_flight_free) hf_flight *flight = NULL;
    HF_TRY(hf_flight_new(&flight, .scope = work));
    keyed k = {p, flight, cache};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "getters"));
    for (int i = 0; i < 3; i++) {
        HF_TRY(hf_fork(scope, program_get, &k));
    }
    return WAIT(p, hf_join(scope));
}

static inline hf_status program_emit(void *arg, hf_emitter *emitter)
{
    program *p = arg;
    HOLDING(p);
    for (int i = 0; i < 4; i++) {
        HF_TRY(WAIT(p, hf_emit(emitter, &i)));
    }
    return HF_OK;
}

static inline hf_status program_item(void *ctx, const void *value)
{
    program *p = ctx;
    (void)value;
    return WAIT(p, hf_yield());
}

static inline hf_status program_flows(void *arg)
{
    program *p = arg;
    HOLDING(p);
    HF_AUTO(hf_flow_free) hf_flow *cold = NULL;
    HF_TRY(hf_flow_new(sizeof(int), &cold, .source = program_emit, .arg = p));
    HF_TRY(WAIT(p, hf_flow_collect(cold, program_item, p)));
    return WAIT(p, hf_flow_collect(cold, program_item, p, .mode = HF_FLOW_CONFLATE));
}

/* ---- Network, files -------------------------------------------------------------------------- */

static inline hf_status program_serve(void *arg)
{
    struct {
        program *p;
        hf_listener *listener;
    } *s = arg;
    HOLDING(s->p);
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_TRY(WAIT(s->p, hf_listener_accept(s->listener, &conn)));
    for (;;) {
        char bytes[16];
        size_t len = 0;
        HF_TRY(WAIT(s->p, hf_conn_read(conn, bytes, sizeof bytes, &len)));
        if (len == 0) {
            return HF_OK;
        }
        HF_TRY(WAIT(s->p, hf_conn_write(conn, bytes, len)));
    }
}

static inline hf_status program_talk(program *p, const char *address)
{
    HOLDING(p);
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_TRY(WAIT(p, hf_conn_open(address, &conn)));
    HF_TRY(WAIT(p, hf_conn_write(conn, "hello", 5)));
    HF_TRY(hf_conn_shutdown(conn));
    for (size_t total = 0; total < 5;) {
        char bytes[16];
        size_t len = 0;
        HF_TRY(WAIT(p, hf_conn_read(conn, bytes, sizeof bytes, &len)));
        if (len == 0) {
            return hf_raise(HF_ERR_FAILED, "the echo ended early");
        }
        total += len;
    }
    return HF_OK;
}

static inline hf_status program_net(void *arg)
{
    program *p = arg;
    HF_AUTO(hf_listener_close) hf_listener *listener = NULL;
    HF_TRY(hf_listener_open("tcp:127.0.0.1:0", &listener));
    struct {
        program *p;
        hf_listener *listener;
    } s = {p, listener};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "net"));
    HF_TRY(hf_fork(scope, program_serve, &s));
    HF_TRY(program_talk(p, hf_listener_address(listener)));
    return WAIT(p, hf_join(scope));
}

static inline hf_status program_files(void *arg)
{
    program *p = arg;
    HOLDING(p);
    HF_AUTO(hf_file_close) hf_file *file = NULL;
    HF_TRY(WAIT(p, hf_file_open("program.txt", HF_FILE_WRITE, &file)));
    HF_TRY(WAIT(p, hf_file_write(file, "text", 4)));
    return WAIT(p, hf_file_sync(file));
}

/* ---- All of it ------------------------------------------------------------------------------- */

static inline hf_status program_killer(void *arg)
{
    program *p = arg;
    char byte;
    HF_TRY(hf_chan_recv(p->kill, &byte));
    return hf_scope_cancel(p->root, .reason = "the killer");
}

static inline hf_status program_root(program *p)
{
    static const hf_body PARTS[] = {program_pipes, program_locks, program_pools, program_scopes,
                                    program_keys,  program_flows, program_net,   program_files};
    HF_AUTO(hf_scope_close) hf_scope *root = NULL;
    HF_TRY(hf_scope_open(&root, .name = "root", .timeout = hf_hours(1)));
    p->root = root;
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        HF_TRY(hf_fork(root, PARTS[i], p));
    }
    return WAIT(p, hf_join(root));
}

static inline hf_status program_main(void *arg)
{
    program *p = arg;
    HF_AUTO(hf_chan_free) hf_chan *kill = NULL;
    HF_TRY(hf_chan_new(1, &kill, .capacity = 1));
    p->kill = kill;
    HF_AUTO(hf_scope_close) hf_scope *outside = NULL;
    HF_TRY(hf_scope_open(&outside, .name = "outside"));
    HF_TRY(hf_fork(outside, program_killer, p));
    hf_status status = program_root(p);
    hf_status alive = hf_canceled();
    HF_CHECK_SAY(alive == HF_OK, "the cancel of the root scope has left it");
    return status;
}

#endif
