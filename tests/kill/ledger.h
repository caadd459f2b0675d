/* What the clients of the killed program know: a file of lines, each written with one write(2) before an operation is sent
 * (small letter) and after it was acknowledged (capital), and whether a store still says so.
 *
 *     s ID, S ID RUN      start                  g ID N, G ID N      signal number N, of 0 to 9
 *     c ID, C ID          cancel request         u ID N, U ID N TEXT update number N, of 0 to 3, and its outcome;
 *     x ID, X ID          deletion               W ID N              or it was rejected
 *     t ID N, T ID N RUN  reset number N, of 0 to 1, and the run that it made
 *     R ID                an activity's result was taken             Q ID N   a query was answered: N signals
 *     D ID RUN            a run was ended        b NAME, B NAME      a backup; what was acknowledged before `b` is in it
 *
 * The first letter of a workflow id says what it is (flow.h): w, a parent p with the children ID.a, ID.b and ID.c, a chain of runs
 * c, or r: like w, and it is reset. Reset number N itself sends the signal number LEDGER_RESET_SIGNAL + N. Children have no entries of
 * their own.
 *
 * kill-N1  What was acknowledged is there; a run whose deletion was acknowledged is not there, or marked to go.
 * kill-N2  Nothing is there twice, acknowledged or not: one run per id and step of a chain, one event per signal, one cancel request, one
 *     result, one outcome per update. A child is started once, and its parent is told of its end once. Only a signal to a chain that is
 *     sent again may reach two runs: each run knows its own request ids, as in Temporal. A reset makes one run. Each run of an id that was
 *     reset has things once; the newest has all signals and updates that were acknowledged, before or after the reset, and only it may
 *     be open.
 * kill-N3  Nothing is there that nobody sent.
 * kill-N4  A backup is a prefix: what was acknowledged before it began is in it, and what was acknowledged before anything else
 *     that is in it was sent.
 * kill-N5  At the end, nothing is open, and every parent has the results of its children. */
#ifndef HF_TESTS_KILL_LEDGER_H
#define HF_TESTS_KILL_LEDGER_H

#include "inspect/look.h"

#include <limits.h>
#include <stdio.h>

enum { LEDGER_SIGNALS = 10, LEDGER_UPDATES = 4, LEDGER_KIDS = 3, LEDGER_RESETS = 2, LEDGER_TEXT_LEN = 20 };
enum { LEDGER_RUNS = LEDGER_RESETS + 1 }; /* of an id that is reset */
enum { LEDGER_RESET_SIGNAL = 5 };         /* number of the signal that comes with the first reset */

/* Places of lines in the file, from 1; 0 = there is no such line. */
typedef struct lines {
    long sent;
    long acked;
} lines;

/* What the histories of an id say, in the ledger's words: numbers of events. Of an id that was reset, those of its newest run, where
 * nothing else is said. */
typedef struct facts {
    unsigned runs;
    unsigned open;     /* of these */
    unsigned deleting; /* runs that are marked to go; nothing else is counted of them */
    unsigned signals[LEDGER_SIGNALS];
    unsigned cancels;
    unsigned scheduled;
    unsigned results;   /* the most that a run has */
    unsigned ends;      /* of the chain */
    unsigned continued; /* the other runs' ends */
    unsigned resets;    /* runs that a reset made */
    char result[LEDGER_TEXT_LEN];
    struct {
        unsigned admitted; /* by a reset */
        unsigned accepted;
        unsigned completed;
        unsigned outcome_count; /* in all runs */
        char outcomes[LEDGER_RUNS][LEDGER_TEXT_LEN];
    } updates[LEDGER_UPDATES];
    struct { /* what a parent knows of its children */
        unsigned initiated;
        unsigned started;
        unsigned told;
        char result[LEDGER_TEXT_LEN];
    } kids[LEDGER_KIDS];
    char first_run[40]; /* id of the first run */
    char newest_run[40];
    char made[LEDGER_RESETS][40]; /* ids of the runs that resets made */
} facts;

/* What is known of a child, besides what is found of it. */
typedef struct kid {
    long result_acked;
    long end_acked;
    facts found;
} kid;

typedef struct entry {
    char id[40];
    char run_id[40]; /* once the start was acknowledged */
    lines start;
    lines cancel;
    lines deletion;
    lines signals[LEDGER_SIGNALS];
    unsigned again[LEDGER_SIGNALS]; /* how often it was sent again, if the ledger says so */
    struct {
        lines lines;
        bool is_rejected;
        char outcome[LEDGER_TEXT_LEN];
    } updates[LEDGER_UPDATES];
    struct {
        lines lines;
        char run_id[40]; /* that it made; once it was acknowledged */
    } resets[LEDGER_RESETS];
    long result_acked;
    long end_acked;
    char end_run[40]; /* the last run that is known to have ended */
    facts found;      /* while verifying */
    kid kids[LEDGER_KIDS];
} entry;

typedef struct ledger {
    entry *entries;
    size_t count;
    size_t capacity;
    size_t *slots; /* hash table: index + 1 into entries */
    size_t slot_count;
    char backup[64];   /* the last one that was acknowledged; empty = none */
    long backup_at;    /* of its `b` line */
    long backup_begun; /* the same of the last one that was begun */
    size_t queries;    /* answered */
} ledger;

/* Reads the file. A last line without an end is not counted. */
void ledger_read(ledger *l, const char *path);
void ledger_free(ledger *l);
entry *ledger_find(ledger *l, const char *id); /* NULL = not known */
/* Copies what was sent, and what was acknowledged up to the line `until`: what is known of a store of that time. */
void ledger_copy(const char *path, long until, const char *to);

/* ---- compare.c -------------------------------------------------------------------------------------------------------- */

/* kill-N1 to kill-N3 for a store that has at least what was acknowledged up to the line `*until` (LONG_MAX = everything); for an older one
 * `*until` moves on to the last line of which something is there (kill-N4). `is_over`: kill-N5 as well. Returns the number of violations, each
 * told on stderr. */
size_t ledger_verify(ledger *l, hf_look *look, long *until, bool is_over, const char *what);

#endif
