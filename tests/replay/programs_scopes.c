/* Programs for scopes: every join, deadlines, delays, the order of fibers. */
#include "replay/programs.h"

#include <stdio.h>
#include <string.h>

/* ---- A race, under each join --------------------------------------------------------------------------------------- */

/* What one child does: an activity with this name and input, or a sleep of as many milliseconds, then this status. */
typedef struct runner {
    const char *activity;
    const char *in;
    int64_t sleep_ms;
    hf_status status;
    notes *n;
    char mark;
} runner;

static hf_status runner_body(void *arg)
{
    runner *r = arg;
    hf_status status = HF_OK;
    if (r->activity != NULL) {
        status = hf_activity_run(r->activity, hf_payload_of_json(r->in), NULL, .start_to_close = hf_minutes(1),
                                 .heartbeat = strcmp(r->activity, "beat") == 0 ? hf_seconds(10) : hf_nanoseconds(0),
                                 .attempts_max = 1);
    } else {
        status = hf_sleep(hf_milliseconds(r->sleep_ms));
    }
    if (status == HF_OK && r->status != HF_OK) {
        status = hf_raise(r->status, "runner %c", r->mark);
    }
    if (status != HF_ERR_EVICTED) {
        note(r->n, "%c:", r->mark);
        HF_TRY(heard(r->n, status));
    }
    return status;
}

static void note_tally(notes *n, const hf_scope *scope)
{
    hf_tally t = hf_scope_tally(scope);
    note(n, "[%d %d %d %d %d] ", (int)t.forked, (int)t.running, (int)t.ok, (int)t.failed, (int)t.canceled);
}

/* Two activities that end, one that listens and one that does not, a sleep, and one that begins later. */
static hf_status race(notes *n, hf_join_policy join, hf_span timeout, hf_status first)
{
    runner runners[] = {{"slow", "1000", 0, first, n, 'a'},  {"slow", "2000", 0, HF_OK, n, 'b'},
                        {"beat", "30000", 0, HF_OK, n, 'c'}, {NULL, NULL, 3000, first, n, 'd'},
                        {"slow", "4000", 0, HF_OK, n, 'e'},  {NULL, NULL, 5000, HF_OK, n, 'f'}};
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .name = "race", .join = join, .timeout = timeout));
        for (size_t i = 0; i < sizeof runners / sizeof *runners; i++) {
            hf_span delay = i == 4 ? hf_milliseconds(1500) : hf_nanoseconds(0);
            HF_TRY(hf_fork(scope, runner_body, &runners[i], .delay = delay));
        }
        HF_TRY(heard(n, hf_join(scope)));
        note_tally(n, scope);
    }
    note(n, "| ");
    return hf_sleep(hf_seconds(10)); /* whatever was given up has ended by then */
}

#define RACE_OF(name, join)                                             \
    static hf_status name(hf_payload in, hf_payload *ret_out)           \
    {                                                                   \
        notes n = {.len = 0};                                           \
        (void)in;                                                       \
        HF_TRY(race(&n, (join), hf_nanoseconds(0), HF_OK));             \
        HF_TRY(race(&n, (join), hf_nanoseconds(0), HF_ERR_FAILED));     \
        HF_TRY(race(&n, (join), hf_milliseconds(2500), HF_OK));         \
        HF_TRY(race(&n, (join), hf_milliseconds(3500), HF_ERR_FAILED)); \
        return notes_result(&n, ret_out);                               \
    }

RACE_OF(join_all, HF_JOIN_ALL)
RACE_OF(join_any, HF_JOIN_ANY)
RACE_OF(join_quorum, HF_JOIN_QUORUM(3))
RACE_OF(join_tolerate, HF_JOIN_TOLERATE(1))
RACE_OF(join_collect, HF_JOIN_COLLECT)
RACE_OF(join_discard, HF_JOIN_DISCARD)
RACE_OF(join_partial, HF_JOIN_PARTIAL)

/* A join of the program's own: stops after the second end, refuses a seventh child, and accepts what a deadline left. */
static hf_status own_fork(const hf_tally *tally)
{
    return tally->forked >= (uint64_t)tally->n ? HF_ERR_LIMIT : HF_OK;
}

static hf_verdict own_done(const hf_tally *tally, const hf_outcome *outcome)
{
    (void)outcome;
    return tally->ok + tally->failed >= 2 ? HF_STOP : HF_GO_ON;
}

static hf_status own_deadline(const hf_tally *tally)
{
    return tally->ok > 0 ? HF_OK : HF_ERR_TIMEOUT;
}

static hf_status own_result(const hf_tally *tally, hf_status first_failure)
{
    *(int *)tally->state += 1;
    return first_failure == HF_OK && tally->ok < 2 ? HF_ERR_FAILED : HF_OK;
}

static hf_status join_own(hf_payload in, hf_payload *ret_out)
{
    static const hf_join_hooks OWN = {
        .name = "own", .on_fork = own_fork, .on_done = own_done, .on_deadline = own_deadline, .result = own_result};
    notes n = {.len = 0};
    int results = 0;
    (void)in;
    HF_TRY(race(&n, hf_join_policy_of(&OWN, 6, &results), hf_nanoseconds(0), HF_OK));
    HF_TRY(race(&n, hf_join_policy_of(&OWN, 6, &results), hf_nanoseconds(0), HF_ERR_FAILED));
    HF_TRY(race(&n, hf_join_policy_of(&OWN, 6, &results), hf_milliseconds(1500), HF_OK));
    HF_TRY(heard(&n, race(&n, hf_join_policy_of(&OWN, 2, &results), hf_nanoseconds(0), HF_OK)));
    note(&n, "%d", results);
    return notes_result(&n, ret_out);
}

/* ---- Forks --------------------------------------------------------------------------------------------------------- */

static void dropped(void *arg)
{
    runner *r = arg;
    note(r->n, "%c:dropped ", r->mark);
}

static hf_status forks(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    runner runners[] = {{NULL, NULL, 1000, HF_OK, &n, 'a'},
                        {"echo", "1", 0, HF_OK, &n, 'b'},
                        {"echo", "1", 0, HF_ERR_FAILED, &n, 'c'},
                        {"echo", "1", 0, HF_OK, &n, 'd'},
                        {"echo", "1", 0, HF_OK, &n, 'e'}};
    static const int64_t DELAYS[] = {0, 2000, -5, 3000, 3600000};
    hf_branch *branches[5];
    (void)in;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT, .branches_max = 5));
    for (size_t i = 0; i < 5; i++) {
        HF_TRY(heard(&n, hf_fork(scope, runner_body, &runners[i], .name = "runner", .ret_branch = &branches[i],
                                 .delay = hf_milliseconds(DELAYS[i]), .drop = i == 4 ? dropped : NULL)));
    }
    HF_TRY(heard(&n, hf_fork(scope, runner_body, &runners[0])));                             /* too many */
    HF_TRY(heard(&n, hf_fork(scope, runner_body, &runners[0], .delay = hf_nanoseconds(5)))); /* no unit */
    HF_TRY(heard(&n, hf_sleep(hf_milliseconds(2500))));
    HF_TRY(heard(&n, hf_branch_cancel(branches[4]))); /* has not begun: its timer is canceled */
    HF_TRY(heard(&n, hf_branch_cancel(branches[3]))); /* neither, but its body runs nevertheless */
    HF_TRY(heard(&n, hf_join(scope)));
    for (size_t i = 0; i < 5; i++) {
        note(&n, "%d:%d:", (int)hf_branch_index(branches[i]), hf_branch_is_done(branches[i]));
        HF_TRY(heard(&n, hf_branch_status(branches[i])));
    }
    note_tally(&n, scope);
    note(&n, "%d ", hf_scope_failure(scope, 0) != NULL && hf_scope_is_idle(scope));
    return notes_result(&n, ret_out);
}

typedef struct tree {
    notes *n;
    int depth;
    int number;
} tree;

/* Fibers that fork, yield and ask for activities and timers in turn: their commands are in the order of the turns. */
static hf_status grow(void *arg)
{
    tree *t = arg;
    char text[16];
    (void)snprintf(text, sizeof text, "%d", t->number);
    if (t->depth == 0) {
        HF_TRY(t->number % 3 == 0 ? hf_yield() : HF_OK);
        HF_TRY(t->number % 2 == 0 ? hf_sleep(hf_milliseconds(100 * t->number)) : HF_OK);
        note(t->n, "%d ", t->number);
        return hf_activity_run("echo", hf_payload_of_json(text), NULL, .start_to_close = hf_seconds(5));
    }
    tree children[3];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 3; i++) {
        children[i] = (tree){t->n, t->depth - 1, t->number * 3 + i};
        HF_TRY(hf_fork(scope, grow, &children[i]));
        HF_TRY(i == 1 ? hf_yield() : HF_OK);
    }
    HF_TRY(hf_sleep(hf_milliseconds(50 + t->number)));
    return hf_join(scope);
}

static hf_status turns(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    tree root = {&n, 2, 1};
    (void)in;
    HF_TRY(grow(&root));
    return notes_result(&n, ret_out);
}

/* ---- Deadlines ------------------------------------------------------------------------------------------------------ */

static hf_status bounded(notes *n, hf_span outer_span, hf_span inner_span, const char *activity, const char *json)
{
    HF_AUTO(hf_scope_close) hf_scope *outer = NULL;
    HF_AUTO(hf_scope_close) hf_scope *inner = NULL;
    HF_TRY(heard(n, hf_scope_open(&outer, .timeout = outer_span)));
    if (outer == NULL) {
        return HF_OK;
    }
    HF_TRY(heard(n, hf_scope_open(&inner, .timeout = inner_span)));
    note(n, "%lld ", (long long)(hf_time_left().ns / 1000000));
    HF_TRY(heard(n, RUN(activity, json, .start_to_close = hf_minutes(1), .attempts_max = 1)));
    HF_TRY(heard(n, hf_sleep(hf_seconds(1))));
    HF_TRY(heard(n, hf_signal_wait("never", NULL, .timeout = hf_seconds(1))));
    if (inner != NULL) {
        HF_TRY(heard(n, hf_join(inner)));
    }
    HF_TRY(heard(n, hf_sleep(hf_seconds(1))));
    HF_TRY(heard(n, hf_join(outer)));
    HF_TRY(heard(n, hf_sleep(hf_seconds(1))));
    note(n, "| ");
    return HF_OK;
}

static hf_status deadlines(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    hf_span none = hf_nanoseconds(0);
    (void)in;
    HF_TRY(bounded(&n, hf_seconds(30), none, "slow", "1000"));
    HF_TRY(bounded(&n, hf_seconds(2), none, "slow", "5000"));
    HF_TRY(bounded(&n, hf_seconds(9), hf_seconds(2), "hang", "1"));
    HF_TRY(bounded(&n, hf_seconds(2), hf_seconds(9), "slow", "5000"));
    HF_TRY(bounded(&n, hf_seconds(2), hf_seconds(2), "slow", "2000")); /* everything at once */
    HF_TRY(bounded(&n, hf_nanoseconds(-1), none, "slow", "1000"));
    HF_TRY(bounded(&n, HF_SPAN_UNLIMITED, hf_nanoseconds(-1), "slow", "1000"));
    HF_TRY(bounded(&n, hf_nanoseconds(30), none, "slow", "1000"));
    return notes_result(&n, ret_out);
}

/* ---- Shields -------------------------------------------------------------------------------------------------------- */

static hf_status shielded(notes *n, hf_span bound, const char *activity, const char *json)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(heard(n, hf_shield_open(bound, &shield)));
    HF_TRY(heard(n, RUN(activity, json, .start_to_close = hf_minutes(1), .attempts_max = 1)));
    HF_TRY(heard(n, hf_sleep(hf_seconds(1))));
    HF_AUTO(hf_shield_close) hf_shield *inner = NULL;
    HF_TRY(heard(n, hf_shield_open(hf_seconds(1), &inner)));
    return heard(n, hf_sleep(hf_milliseconds(500)));
}

static hf_status shields(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    (void)in;
    HF_TRY(shielded(&n, hf_minutes(1), "slow", "1000"));
    HF_TRY(shielded(&n, hf_seconds(2), "slow", "5000")); /* the bound passes */
    HF_TRY(heard(&n, hf_sleep(hf_seconds(10))));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .timeout = hf_milliseconds(500)));
        HF_TRY(shielded(&n, hf_minutes(1), "slow", "1000")); /* the deadline passes meanwhile */
        HF_TRY(heard(&n, hf_sleep(hf_seconds(1))));
        HF_TRY(shielded(&n, hf_minutes(1), "echo", "1")); /* canceled before it begins */
        HF_TRY(heard(&n, hf_join(scope)));
    }
    HF_TRY(shielded(&n, hf_nanoseconds(0), "echo", "1"));
    HF_TRY(shielded(&n, hf_nanoseconds(-1), "echo", "1"));
    HF_TRY(shielded(&n, hf_nanoseconds(30), "echo", "1"));
    return notes_result(&n, ret_out);
}

/* ---- A scope that is left ------------------------------------------------------------------------------------------- */

static hf_status be_slow(void *arg)
{
    (void)arg;
    return RUN("slow", "2000", .start_to_close = hf_minutes(1));
}

static hf_status left_open(hf_payload in, hf_payload *ret_out)
{
    hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, be_slow, NULL));
    HF_TRY(hf_sleep(hf_seconds(1)));
    return hf_payload_copy(in, ret_out); /* the library closes the scope, and the run fails */
}

/* Leaves a scope without a join: what runs in it is canceled. */
static hf_status left_early(hf_payload in, hf_payload *ret_out)
{
    notes n = {.len = 0};
    runner runners[] = {{"beat", "30000", 0, HF_OK, &n, 'a'}, {NULL, NULL, 5000, HF_OK, &n, 'b'}};
    (void)in;
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope));
        HF_TRY(hf_fork(scope, runner_body, &runners[0]));
        HF_TRY(hf_fork(scope, runner_body, &runners[1]));
        HF_TRY(hf_sleep(hf_seconds(2)));
    }
    HF_TRY(heard(&n, hf_sleep(hf_seconds(20))));
    return notes_result(&n, ret_out);
}

const program programs_of_scopes[] = {
    {"join-all", join_all},
    {"join-any", join_any},
    {"join-quorum", join_quorum},
    {"join-tolerate", join_tolerate},
    {"join-collect", join_collect},
    {"join-discard", join_discard},
    {"join-partial", join_partial},
    {"join-own", join_own},
    {"forks", forks},
    {"turns", turns},
    {"deadlines", deadlines},
    {"shields", shields},
    {"left-open", left_open},
    {"left-early", left_early},
    {NULL, NULL},
};
