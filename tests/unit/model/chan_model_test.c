/* Random senders, receivers and selects against a twin that keeps one line per value.
 *
 *   chan-M1  a value that was sent is received once, one that was not is never received;
 *   chan-M2  a receiver sees the values of one sender in the order in which they were sent;
 *   chan-M3  sends that succeeded are at most capacity ahead of receives that succeeded or are under way: a channel of
 *       capacity 0 is a rendezvous;
 *   chan-M4  virtual time never passes while a sender and a receiver wait on the same channel, nor while one of them waits
 *       and the buffer is not full, or not empty;
 *   chan-M5  a select does one case, the first that was ready, and leaves the others alone;
 *   chan-M6  what fails moves nothing: timeouts come on the nanosecond, cancels have a reason, a closed channel gives what
 *       is buffered and then the end;
 *   chan-M7  nothing is left allocated or running; the same seed gives the same trace. A lost wake-up stops the run. */
#include "support/support.h"

#include "base/rng.h"

#include <stdio.h>
#include <string.h>

enum { CHANS_MAX = 3, ACTORS_MAX = 6, SEQ_MAX = 32, CASES_MAX = 4 };

static const int64_t NEVER = INT64_MAX;
static const int64_t UNIT = 100 * 1000;
static const uint64_t UNTOUCHED = UINT64_C(0xabadcafe);

typedef enum fate { UNUSED, TRYING, SENT, NOT_SENT } fate;

/* One value: its number says who sends it and as the how-manieth. */
typedef struct value {
    fate fate;
    unsigned chan;
    int got;
} value;

typedef struct chan {
    hf_chan *chan;
    size_t capacity;
    bool is_closing; /* hf_chan_close was called */
    bool is_closed;  /* and has returned */
    unsigned sent, received;
    unsigned receiving; /* receives under way */
    int64_t touched_at; /* somebody began or ended something */
} chan;

/* What an actor is waiting for; chan-M4 looks at the others'. */
typedef struct op {
    bool is_waiting;
    int64_t start;
    bool sends[CHANS_MAX], receives[CHANS_MAX];
} op;

typedef struct actor {
    unsigned id;
    hf_rng rng;
    unsigned next_seq;
    unsigned last_seq[CHANS_MAX][ACTORS_MAX]; /* of what it received, by sender; 0 = none */
    op op;
} actor;

static struct world {
    hf_runtime *rt;
    hf_dispatcher *pool;
    bool on_main;
    chan chans[CHANS_MAX];
    unsigned chan_count;
    actor actors[ACTORS_MAX];
    unsigned actor_count;
    value values[ACTORS_MAX * SEQ_MAX];
    int64_t canceled_at;
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

/* ---- The twin ---------------------------------------------------------------------------------------------------- */

static uint64_t value_new(actor *me, unsigned c)
{
    uint64_t number = me->id * SEQ_MAX + me->next_seq;
    me->next_seq++;
    world.values[number] = (value){TRYING, c, 0};
    return number;
}

static void value_sent(uint64_t number, bool is_sent)
{
    value *v = &world.values[number];
    chan *at = &world.chans[v->chan];
    v->fate = is_sent ? SENT : NOT_SENT;
    HF_CHECK_SAY(is_sent || v->got == 0, "chan-M1 value %d was received but not sent", (int)number);
    if (is_sent) {
        at->sent++;
        HF_CHECK_SAY(at->sent <= at->received + at->receiving + at->capacity,
                     "chan-M3 more than the capacity is under way");
    }
}

static void value_received(actor *me, unsigned c, uint64_t number)
{
    if (!HF_CHECK_SAY(number < ACTORS_MAX * SEQ_MAX, "chan-M1 received what nobody sent")) {
        return;
    }
    value *v = &world.values[number];
    unsigned sender = (unsigned)number / SEQ_MAX;
    unsigned seq = (unsigned)number % SEQ_MAX + 1;
    v->got++;
    world.chans[c].received++;
    HF_CHECK_SAY(v->got == 1, "chan-M1 value %d was received twice", (int)number);
    HF_CHECK_SAY((v->fate == TRYING || v->fate == SENT) && v->chan == c, "chan-M1 value %d was not sent", (int)number);
    HF_CHECK_SAY(seq > me->last_seq[c][sender], "chan-M2 value %d came after a later one", (int)number);
    me->last_seq[c][sender] = seq;
}

static void touch(unsigned c)
{
    world.chans[c].touched_at = now();
}

/* It waited since before now although it could have gone on: somebody forgot it. */
static void check_buffers(const actor *me)
{
    for (unsigned c = 0; c < world.chan_count && me->op.start < now(); c++) {
        const chan *at = &world.chans[c];
        if (at->touched_at < now() && !at->is_closing) {
            size_t count = hf_chan_count(at->chan);
            HF_CHECK_SAY(!me->op.sends[c] || count == at->capacity, "chan-M4 a sender waited for a channel with room");
            HF_CHECK_SAY(!me->op.receives[c] || count == 0, "chan-M4 a receiver waited for a channel with values");
        }
    }
}

/* Both wait since before now: the same. */
static void check_pairs(const actor *me)
{
    for (unsigned i = 0; i < world.actor_count; i++) {
        const op *other = &world.actors[i].op;
        if (&world.actors[i] == me || !other->is_waiting || other->start >= now() || me->op.start >= now()) {
            continue;
        }
        for (unsigned c = 0; c < world.chan_count; c++) {
            HF_CHECK_SAY(!(me->op.sends[c] && other->receives[c]) && !(me->op.receives[c] && other->sends[c]),
                         "chan-M4 actors %d and %d waited for each other on channel %d", (int)me->id, (int)i, (int)c);
        }
    }
}

static void begin(actor *me)
{
    me->op.is_waiting = true;
    me->op.start = now();
    for (unsigned c = 0; c < world.chan_count; c++) {
        world.chans[c].receiving += me->op.receives[c];
        if (me->op.receives[c] || me->op.sends[c]) {
            touch(c);
        }
    }
}

/* `end` is when it gives up by itself. */
static void check_end(actor *me, hf_status status, int64_t end)
{
    int64_t at = now();
    bool is_late = status == HF_ERR_TIMEOUT;
    if (is_late || status == HF_ERR_CANCELED) {
        check_pairs(me);
        check_buffers(me);
    }
    for (unsigned c = 0; c < world.chan_count; c++) {
        world.chans[c].receiving -= me->op.receives[c];
        if (me->op.receives[c] || me->op.sends[c]) {
            touch(c);
        }
    }
    memset(&me->op, 0, sizeof me->op);
    HF_CHECK_SAY(is_late ? at == end : at <= end, "chan-M6 %s %lld ns off", hf_status_name(status),
                 (long long)(at - end));
    if (status == HF_ERR_CANCELED) {
        HF_CHECK_SAY(world.canceled_at <= at, "chan-M6 canceled without a reason");
    } else {
        HF_CHECK_SAY(world.canceled_at >= at, "chan-M6 %s after a cancel", hf_status_name(status));
    }
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static hf_wait_options some_timeout(actor *me, int64_t *ret_end)
{
    hf_wait_options options = {.size = sizeof options};
    *ret_end = NEVER;
    if (chance(me, 400)) {
        options.timeout = hf_nanoseconds((int64_t)(1 + below(me, 10)) * UNIT);
        *ret_end = now() + options.timeout.ns;
    }
    return options;
}

static void send(actor *me, unsigned c, bool is_try)
{
    if (me->next_seq >= SEQ_MAX) {
        return;
    }
    chan *at = &world.chans[c];
    bool was_closed = at->is_closed;
    uint64_t number = value_new(me, c);
    int64_t end = NEVER;
    hf_wait_options options = some_timeout(me, &end);
    hf_status status = HF_OK;
    touch(c);
    if (is_try) {
        status = hf_chan_try_send(at->chan, &number);
    } else {
        me->op.sends[c] = true;
        begin(me);
        status = hf_chan_send_with(at->chan, &number, &options);
        check_end(me, status, end);
    }
    value_sent(number, status == HF_OK);
    HF_CHECK(status != HF_ERR_CLOSED || at->is_closing);
    HF_CHECK_SAY(!was_closed || status == HF_ERR_CLOSED || status == HF_ERR_CANCELED,
                 "chan-M6 sent to a closed channel");
    HF_CHECK(status != HF_ERR_AGAIN || is_try);
}

static void receive(actor *me, unsigned c, bool is_try)
{
    chan *at = &world.chans[c];
    bool was_closed = at->is_closed;
    uint64_t number = UNTOUCHED;
    int64_t end = NEVER;
    hf_wait_options options = some_timeout(me, &end);
    hf_status status = HF_OK;
    touch(c);
    if (is_try) {
        at->receiving++; /* it may take a place in the middle of the call */
        status = hf_chan_try_recv(at->chan, &number);
        at->receiving--;
    } else {
        me->op.receives[c] = true;
        begin(me);
        status = hf_chan_recv_with(at->chan, &number, &options);
        check_end(me, status, end);
    }
    if (status == HF_OK) {
        value_received(me, c, number);
    } else {
        HF_CHECK_SAY(number == UNTOUCHED, "chan-M6 a failed receive wrote");
    }
    HF_CHECK(status != HF_ERR_CLOSED || (at->is_closing && hf_chan_count(at->chan) == 0));
    HF_CHECK_SAY(!was_closed || (status != HF_ERR_AGAIN && status != HF_ERR_TIMEOUT),
                 "chan-M6 waited on a closed channel");
}

typedef struct selecting {
    hf_case cases[CASES_MAX];
    unsigned chans[CASES_MAX];
    uint64_t values[CASES_MAX];
    size_t count;
    size_t ready; /* the first case whose channel is closed: nothing behind it is taken */
} selecting;

static void make_cases(actor *me, selecting *sel)
{
    sel->count = 1 + (size_t)below(me, CASES_MAX);
    sel->ready = sel->count;
    for (size_t i = 0; i < sel->count; i++) {
        unsigned c = (unsigned)below(me, world.chan_count);
        bool is_send = chance(me, 500) && me->next_seq < SEQ_MAX;
        sel->chans[i] = c;
        sel->values[i] = is_send ? value_new(me, c) : UNTOUCHED;
        sel->cases[i] = (hf_case){is_send ? HF_CASE_SEND : HF_CASE_RECV, world.chans[c].chan, &sel->values[i], HF_OK};
        if (chance(me, 50)) {
            sel->cases[i].chan = NULL;
            continue;
        }
        me->op.sends[c] |= is_send;
        me->op.receives[c] |= !is_send;
        if (world.chans[c].is_closed && i < sel->ready) {
            sel->ready = i;
        }
    }
}

static void check_cases(actor *me, selecting *sel, hf_status status, size_t taken)
{
    for (size_t i = 0; i < sel->count; i++) {
        bool is_done = status == HF_OK && i == taken && sel->cases[i].status == HF_OK;
        if (sel->cases[i].kind == HF_CASE_SEND) {
            value_sent(sel->values[i], is_done);
        } else if (is_done) {
            value_received(me, sel->chans[i], sel->values[i]);
        } else {
            HF_CHECK_SAY(sel->values[i] == UNTOUCHED, "chan-M5 case %d of a select was not taken and wrote", (int)i);
        }
    }
    if (status == HF_OK) {
        const chan *at = &world.chans[sel->chans[taken]];
        HF_CHECK(taken < sel->count && sel->cases[taken].chan != NULL);
        HF_CHECK_SAY(taken <= sel->ready, "chan-M5 case %d was taken, %d was ready", (int)taken, (int)sel->ready);
        HF_CHECK(sel->cases[taken].status == HF_OK || (sel->cases[taken].status == HF_ERR_CLOSED && at->is_closing));
    } else {
        HF_CHECK_SAY(sel->ready == sel->count || status == HF_ERR_CANCELED,
                     "chan-M6 a select did not see a closed channel");
    }
}

static void select_some(actor *me, bool is_try)
{
    selecting sel;
    size_t taken = CASES_MAX;
    int64_t end = NEVER;
    make_cases(me, &sel);
    hf_wait_options options = some_timeout(me, &end);
    bool is_void = true; /* a select of nothing but NULL cases would wait for ever */
    for (size_t i = 0; i < sel.count; i++) {
        is_void &= sel.cases[i].chan == NULL;
    }
    hf_status status = HF_OK;
    op wanted = me->op;
    begin(me);
    if (is_try || is_void) {
        me->op.is_waiting = false;
        status = hf_try_select(sel.cases, sel.count, &taken);
        HF_CHECK(status == HF_OK || status == HF_ERR_AGAIN);
        for (unsigned c = 0; c < world.chan_count; c++) {
            world.chans[c].receiving -= wanted.receives[c];
        }
        memset(&me->op, 0, sizeof me->op);
    } else {
        status = hf_select_with(sel.cases, sel.count, &taken, &options);
        check_end(me, status, end);
    }
    check_cases(me, &sel, status, taken);
}

static void close_chan(unsigned c)
{
    chan *at = &world.chans[c];
    at->is_closing = true;
    HF_CHECK(hf_chan_close(at->chan) == HF_OK);
    at->is_closed = true;
}

static hf_status act(void *arg)
{
    actor *me = arg;
    for (uint64_t steps = 2 + below(me, 4); steps > 0; steps--) {
        unsigned c = (unsigned)below(me, world.chan_count);
        uint64_t what = below(me, 100);
        if (what < 28) {
            send(me, c, false);
        } else if (what < 56) {
            receive(me, c, false);
        } else if (what < 62) {
            send(me, c, true);
        } else if (what < 68) {
            receive(me, c, true);
        } else if (what < 86) {
            select_some(me, false);
        } else if (what < 90) {
            select_some(me, true);
        } else if (what < 94) {
            HF_CHECK(hf_chan_count(world.chans[c].chan) <= world.chans[c].capacity);
            HF_IGNORE(hf_yield());
        } else if (what < 99) {
            HF_IGNORE(hf_sleep(hf_nanoseconds((int64_t)below(me, 10) * UNIT)));
        } else {
            close_chan(c);
        }
    }
    return HF_OK;
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static void open_chans(actor *root)
{
    world.chan_count = 1 + (unsigned)below(root, CHANS_MAX);
    for (unsigned c = 0; c < world.chan_count; c++) {
        chan *at = &world.chans[c];
        at->capacity = chance(root, 400) ? 0 : (size_t)below(root, 4);
        HF_CHECK(hf_chan_new(sizeof(uint64_t), &at->chan, .capacity = at->capacity,
                             .runtime = world.on_main ? world.rt : NULL) == HF_OK);
    }
}

/* What is still buffered is received by the root; then every value has its fate. */
static void settle(actor *root)
{
    for (unsigned c = 0; c < world.chan_count; c++) {
        uint64_t number = UNTOUCHED;
        for (size_t i = 0; hf_chan_try_recv(world.chans[c].chan, &number) == HF_OK; i++) {
            value_received(root, c, number);
            if (!HF_CHECK(i < world.chans[c].capacity)) {
                break;
            }
        }
        HF_CHECK(world.chans[c].sent == world.chans[c].received && world.chans[c].receiving == 0);
        HF_CHECK(hf_chan_free(world.chans[c].chan) == HF_OK);
    }
    for (unsigned i = 0; i < ACTORS_MAX * SEQ_MAX; i++) {
        const value *v = &world.values[i];
        HF_CHECK_SAY(v->fate != TRYING && v->got == (v->fate == SENT), "chan-M1 value %d was %s and received %d times",
                     (int)i, v->fate == SENT ? "sent" : "not sent", v->got);
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
    open_chans(root);
    hf_scope *scope = NULL;
    HF_CHECK(hf_scope_open(&scope, .runtime = given) == HF_OK);
    for (unsigned i = 1; i < world.actor_count; i++) {
        actor *each = &world.actors[i];
        each->id = i;
        each->rng.state = hf_rng_next(&root->rng);
        hf_dispatcher *on = world.pool != NULL && chance(root, 400) ? world.pool : NULL;
        HF_CHECK(hf_fork(scope, act, each, .on = on) == HF_OK);
    }
    HF_IGNORE(hf_sleep(hf_nanoseconds((int64_t)(1 + below(root, 15)) * UNIT)));
    if (chance(root, 250)) {
        world.canceled_at = now();
        HF_CHECK(hf_scope_cancel(scope) == HF_OK);
    }
    HF_IGNORE(hf_sleep(hf_nanoseconds((int64_t)(1 + below(root, 15)) * UNIT)));
    for (unsigned c = 0; c < world.chan_count; c++) {
        close_chan(c); /* whoever still waits goes home */
    }
    HF_CHECK(hf_join(scope) == HF_OK);
    HF_CHECK(hf_scope_close(scope) == HF_OK);
    settle(root);
    HF_CHECK(hf_dispatcher_free(world.pool) == HF_OK);
    return HF_OK;
}

static uint64_t run(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    actor *root = &world.actors[0];
    root->rng.state = hf_hash_mix(78, seed);
    world.canceled_at = NEVER;
    world.actor_count = 3 + (unsigned)below(root, ACTORS_MAX - 2);
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
    HF_CHECK(hf_sim_errors_logged() == 0);
    uint64_t hash = 0;
    hf_sim_end(env, &hash);
    return hash;
}

static void one_seed(uint64_t seed)
{
    uint64_t hash = run(seed);
    if (seed % 20 == 0) {
        HF_CHECK_SAY(run(seed) == hash, "chan-M7 the same seed gave another trace");
    }
}

static void channels_do_what_their_twin_says(void **state)
{
    (void)state;
    hf_each_seed("channels", 30000, one_seed);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {cmocka_unit_test(channels_do_what_their_twin_says)};
    return hf_test_main("chan_model", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
