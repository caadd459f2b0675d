/* Random trees of scopes against a twin that keeps nothing but times.
 *
 * Virtual time stands still while anything can run. So whatever the interleaving, a cancel, a failure or a deadline
 * takes effect at the very nanosecond it happens, and the twin needs no copy of the runtime: for every level (a scope,
 * a shield, a child) it keeps the instant from which waits inside must fail, and for every wait it compares.
 *
 *   scope-M1  a body runs once, or its drop does, never both and never twice;
 *   scope-M2  when hf_join or hf_scope_close returns, every child has ended;
 *   scope-M3  a wait that succeeds ends on the nanosecond, and not after the instant from which it must fail;
 *   scope-M4  a wait that fails with HF_ERR_CANCELED has a reason around it, and ends at that instant; every later one at the
 *       same level fails too, until hf_join clears what was the scope's own;
 *   scope-M5  inside a shield only its bound ends waits;
 *   scope-M6  the tally adds up, the failures are those the hooks saw in that order, and hf_join returns what the twin's own
 *       few lines say about the policy;
 *   scope-M7  nothing is left allocated or running; the same seed gives the same trace. */
#ifndef HF_TESTS_UNIT_MODEL_SCOPE_TWIN_H
#define HF_TESTS_UNIT_MODEL_SCOPE_TWIN_H

#include "support/support.h"

#include "base/rng.h"
#include "env/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 18, LEVELS_MAX = 40, DEPTH_MAX = 3, POLICIES = 7 };

static const int64_t NEVER = INT64_MAX;
static const int64_t UNIT = 100 * 1000; /* spans are multiples of 100 us, so that many things happen at once */

typedef struct level level;

/* A body: a fiber, a job on a pool, or the main thread. */
typedef struct node {
    uint64_t id;
    unsigned depth;
    hf_rng rng;
    level *in;          /* the scope it is a child of; NULL for the root */
    level *inner;       /* its innermost open scope or shield */
    hf_branch *job;     /* a handle, for few */
    int64_t not_before; /* a delayed start */
    int64_t must;       /* waits fail from here on: hf_branch_cancel */
    bool has_drop, on_pool, on_main, refused;
    bool from_outside; /* forked by who does not live in the scope: hf_join may just have returned */
    bool is_tainted;   /* lives in one who was */
    bool seen;         /* a wait outside all its scopes failed */
    bool ended, ended_canceled;
    int64_t ended_at;
    int runs, drops;
    hf_status status;
} node;

/* A scope or a shield, from open to close. */
struct level {
    hf_scope *scope;
    hf_shield *shield;
    node *owner;
    level *outer;     /* of the same owner */
    int64_t must;     /* waits fail from here on: canceled for certain */
    int64_t may;      /* or perhaps: a policy that the twin does not listen to may have stopped */
    int64_t deadline; /* own one, until hf_join */
    int64_t nearest;  /* what hf_time_left counts down to */
    bool seen;
    bool is_joining;
    bool was_late;    /* at a former hf_join: what the deadline ended stays ended */
    bool is_listed;   /* strangers may cancel it or fork into it */
    unsigned users;   /* strangers who are about to */
    unsigned meddled; /* times they did */
    unsigned policy;
    int64_t n;
    int64_t branches_max;
    bool has_hooks;         /* the twin listens */
    node *order[NODES_MAX]; /* children as they ended at home */
    unsigned order_count;
};

static struct world {
    hf_runtime *rt;
    hf_dispatcher *pool;
    node nodes[NODES_MAX];
    unsigned node_count;
    level levels[LEVELS_MAX];
    unsigned level_count;
    uint64_t result; /* hash over what came out */
} world;

static int64_t now(void)
{
    return hf_now(world.rt).ns;
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* With HF_SEED the story is told. */
#define TELL(...) (is_telling ? tell(__VA_ARGS__) : (void)0)
static bool is_telling;

static void tell(const char *format, ...) HF_PRINTF(1, 2);
static void tell(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "%8lld us ", (long long)(now() / 1000 % 10000000));
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

static uint64_t below(node *me, uint64_t bound)
{
    return hf_rng_below(&me->rng, bound);
}

static bool chance(node *me, int permille)
{
    return hf_rng_permille(&me->rng, permille);
}

/* ---- The twin of cancellation ------------------------------------------------------------------------------------ */

/* The instant from which the waits of `who` must fail, or, with `perhaps`, may fail. */
static int64_t due(const node *who, const level *at, bool perhaps)
{
    int64_t when = NEVER;
    bool is_settled = false;
    for (;;) {
        if (at == NULL) {
            when = min(when, who->must);
            if (who->in == NULL) {
                return when;
            }
            at = who->in;
            is_settled = at->is_joining && who->is_tainted; /* the join may be over and not have returned yet */
            who = at->owner;
        }
        if (!is_settled || perhaps) {
            when = min(when, min(at->must, at->deadline));
        }
        is_settled = false;
        when = perhaps ? min(when, at->may) : when;
        if (at->shield != NULL) {
            return when;
        }
        at = at->outer;
    }
}

static bool *seen_of(node *me)
{
    return me->inner != NULL ? &me->inner->seen : &me->seen;
}

/* After every wait: `start` is when it began, `end` when it would have ended by itself. */
static bool check_wait(node *me, hf_status status, int64_t start, int64_t end, const char *verb)
{
    int64_t at = now();
    int64_t must = due(me, me->inner, false);
    bool *seen = seen_of(me);
    TELL("node %d %s: %s", (int)me->id, verb, hf_status_name(status));
    if (status == HF_OK) {
        HF_CHECK_SAY(end == NEVER || at == end, "scope-M3 node %d %s took %lld ns more", (int)me->id, verb,
                     (long long)(at - end));
        HF_CHECK_SAY(must >= at, "scope-M3 node %d %s outlived its cancel by %lld ns", (int)me->id, verb,
                     (long long)(at - must));
        HF_CHECK_SAY(!*seen, "scope-M4 node %d %s worked after a canceled wait", (int)me->id, verb);
        return true;
    }
    HF_CHECK_SAY(status == HF_ERR_CANCELED, "node %d %s: %s", (int)me->id, verb, hf_status_name(status));
    HF_CHECK_SAY(due(me, me->inner, true) <= at, "scope-M4 node %d %s canceled without a reason", (int)me->id, verb);
    HF_CHECK_SAY(end == NEVER || at <= end, "scope-M4 node %d %s canceled late", (int)me->id, verb);
    HF_CHECK_SAY(must == NEVER || at <= (must > start ? must : start), "scope-M4 node %d %s canceled %lld ns late",
                 (int)me->id, verb, (long long)(at - must));
    HF_CHECK(hf_cancel_cause(NULL) != HF_CAUSE_NONE);
    *seen = true;
    return false;
}

static bool wait_a_while(node *me)
{
    int64_t start = now();
    if (chance(me, 300)) {
        return check_wait(me, hf_yield(), start, start, "hf_yield");
    }
    int64_t span = (int64_t)(1 + below(me, 20)) * UNIT;
    return check_wait(me, hf_sleep(hf_nanoseconds(span)), start, start + span, "hf_sleep");
}

static hf_status call(void *arg)
{
    *(int *)arg += 1;
    return HF_OK;
}

static void block(node *me)
{
    int64_t start = now();
    int calls = 0;
    hf_status status = hf_block(call, &calls);
    HF_CHECK(calls == (status == HF_OK));
    if (status != HF_OK) {
        (void)check_wait(me, status, start, NEVER, "hf_block");
    }
}

/* ---- The twin of joins ------------------------------------------------------------------------------------------- */

static const hf_join_hooks *const HOOKS[POLICIES] = {
    &hf_join_all_hooks,     &hf_join_any_hooks,     &hf_join_quorum_hooks, &hf_join_tolerate_hooks,
    &hf_join_collect_hooks, &hf_join_discard_hooks, &hf_join_partial_hooks};
enum { ALL, ANY, QUORUM, TOLERATE, COLLECT, DISCARD, PARTIAL };

/* The library's own hooks with an ear at them. */
static hf_verdict listen(const hf_tally *tally, const hf_outcome *outcome)
{
    level *at = tally->state;
    const hf_join_hooks *own = HOOKS[at->policy];
    if (outcome != NULL) {
        node *child = outcome->arg;
        HF_CHECK(outcome->status == child->status && child->in == at);
        HF_CHECK((int64_t)tally->running < at->branches_max);
        if (HF_CHECK(at->order_count < NODES_MAX)) {
            at->order[at->order_count++] = child;
        }
    }
    hf_verdict verdict = own->on_done != NULL ? own->on_done(tally, outcome) : HF_GO_ON;
    if (verdict == HF_STOP && (outcome != NULL || tally->running > 0)) {
        at->must = min(at->must, now());
    }
    return verdict;
}

static hf_status accept(const hf_tally *tally)
{
    (void)tally;
    return HF_OK;
}

static hf_join_hooks listening[POLICIES][2];

static void make_listeners(void)
{
    for (unsigned i = 0; i < POLICIES; i++) {
        for (unsigned asks = 0; asks < 2; asks++) {
            listening[i][asks] = *HOOKS[i];
            listening[i][asks].on_done = listen;
            listening[i][asks].on_fork = asks != 0 ? accept : NULL;
        }
    }
}

static bool is_failure(const node *child)
{
    return child->status != HF_OK && !child->ended_canceled;
}

static hf_status expected(const level *at, const hf_tally *sum, hf_status first)
{
    hf_status usual = first != HF_OK ? first : (sum->canceled > 0 ? HF_ERR_CANCELED : HF_OK);
    uint64_t n = (uint64_t)at->n;
    switch (at->policy) {
    case ANY:
        return sum->ok > 0 ? HF_OK : (sum->forked == 0 ? HF_ERR_FAILED : usual);
    case QUORUM:
        return sum->ok >= n ? HF_OK : (first == HF_OK && sum->forked >= n ? HF_ERR_CANCELED : HF_ERR_FAILED);
    case TOLERATE:
        return sum->failed > n ? first : (sum->canceled > 0 ? HF_ERR_CANCELED : HF_OK);
    case DISCARD:
        return HF_OK;
    default:
        return usual;
    }
}

static void check_outcome(level *at, hf_status status, int64_t others)
{
    hf_tally sum = {.n = 0};
    bool strangers = false;
    bool ended_late = false;
    at->was_late |= at->deadline <= now();
    for (unsigned i = 0; i < world.node_count; i++) {
        const node *child = &world.nodes[i];
        strangers |= child->in == at && child->from_outside;
        if (child->in != at || child->refused) {
            continue;
        }
        sum.forked++;
        sum.ok += child->status == HF_OK;
        sum.failed += is_failure(child);
        sum.canceled += child->ended_canceled;
        ended_late |= child->ended_canceled && child->ended_at >= at->deadline && child->must == NEVER;
    }
    if (strangers) {
        return; /* they may come in after the join has returned */
    }
    hf_tally tally = hf_scope_tally(at->scope);
    HF_CHECK_SAY(tally.forked == sum.forked && tally.ok == sum.ok && tally.failed == sum.failed &&
                     tally.canceled == sum.canceled && tally.running == 0,
                 "scope-M6 tally %d=%d+%d+%d, twin %d=%d+%d+%d", (int)tally.forked, (int)tally.ok, (int)tally.failed,
                 (int)tally.canceled, (int)sum.forked, (int)sum.ok, (int)sum.failed, (int)sum.canceled);
    HF_CHECK(hf_scope_is_idle(at->scope) || at->owner->on_pool || at->owner->on_main); /* a cancel may be on its way */
    const hf_failure *failure = hf_scope_failure(at->scope, 0);
    hf_status first = failure != NULL ? failure->status : HF_OK;
    size_t count = 0;
    for (unsigned i = 0; i < at->order_count && at->policy != DISCARD; i++) {
        if (is_failure(at->order[i])) {
            const hf_failure *kept = hf_scope_failure(at->scope, count++);
            HF_CHECK_SAY(kept != NULL && kept->status == at->order[i]->status, "scope-M6 failure %d is another",
                         (int)count);
        }
    }
    HF_CHECK(!at->has_hooks || hf_scope_failure(at->scope, count) == NULL);
    HF_CHECK((first != HF_OK) == (sum.failed > 0) || at->policy == DISCARD);
    hf_status plain = expected(at, &sum, first);
    bool accepts = at->policy == DISCARD || at->policy == PARTIAL;
    hf_status late = (plain == HF_OK && sum.forked > 0) || accepts ? HF_OK : HF_ERR_TIMEOUT;
    bool may_be_late = at->was_late;
    bool must_be_late = ended_late && at->deadline < others;
    HF_CHECK_SAY((status == plain && !must_be_late) || (status == late && may_be_late),
                 "scope-M6 hf_join (%s) says %s, the twin %s", HOOKS[at->policy]->name, hf_status_name(status),
                 hf_status_name(must_be_late ? late : plain));
}

#endif
