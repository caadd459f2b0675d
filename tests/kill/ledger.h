/* What the clients of the killed program know: a file of lines, each written with one write(2) before an operation is sent
 * (small letter) and after it was acknowledged (capital), and whether a store still says so.
 *
 *     s ID, S ID RUN      start                  g ID N, G ID N      signal number N, of 0 to 9
 *     c ID, C ID          cancel request         R ID                an activity's result was taken
 *     D ID                a workflow was ended   b NAME, B NAME      a backup; what was acknowledged before `b` is in it
 *
 * N1  What was acknowledged is there.
 * N2  Nothing is there twice, acknowledged or not: one run per id, one event per signal, one cancel request, one result.
 * N3  Nothing is there that nobody sent.
 * N4  A backup is a prefix: what was acknowledged before it began is in it, and what was acknowledged before anything else
 *     that is in it was sent. */
#ifndef HF_TESTS_KILL_LEDGER_H
#define HF_TESTS_KILL_LEDGER_H

#include "inspect/look.h"

#include <limits.h>
#include <stdio.h>

/* Places of lines in the file, from 1; 0 = there is no such line. */
typedef struct lines {
    long sent;
    long acked;
} lines;

/* What a history says, in the ledger's words: numbers of events. */
typedef struct facts {
    unsigned signals[10];
    unsigned cancels;
    unsigned scheduled;
    unsigned results;
    unsigned ends;
} facts;

typedef struct entry {
    char id[40];
    char run_id[40]; /* once the start was acknowledged */
    lines start;
    lines cancel;
    lines signals[10];
    long result_acked;
    long end_acked;
    unsigned seen;      /* while verifying: runs of this id, */
    facts found;        /* what the last of them says, */
    char found_run[40]; /* its id, */
    bool is_open;       /* and whether it goes on */
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
} ledger;

/* Reads the file. A last line without an end is not counted. */
void ledger_read(ledger *l, const char *path);
void ledger_free(ledger *l);
entry *ledger_find(ledger *l, const char *id); /* NULL = not known */
/* Copies what was sent, and what was acknowledged up to the line `until`: what is known of a store of that time. */
void ledger_copy(const char *path, long until, const char *to);

/* N1 to N3 for a store that has at least what was acknowledged up to the line `*until` (LONG_MAX = everything); for an older one
 * `*until` moves on to the last line of which something is there (N4). Returns the number of violations, each told on
 * stderr. */
size_t ledger_verify(ledger *l, hf_look *look, long *until, const char *what);

#endif
