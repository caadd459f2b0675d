/* What the clients of the killed program know: a file of lines, each written with one write(2) before an operation is sent
 * (small letter) and after it was acknowledged (capital), and whether a store still says so.
 *
 *     s ID, S ID RUN      start                  g ID N, G ID N      signal number N, of 0 to 9
 *     c ID, C ID          cancel request         R ID                an activity's result was taken
 *     D ID                a workflow was ended   b NAME, B NAME      a backup; what was acknowledged before `b` is in it
 *
 * N1  What was acknowledged is there.
 * N2  Nothing is there twice, acknowledged or not: one run per id, one event per signal, one cancel request, one result. */
#ifndef HF_TESTS_KILL_LEDGER_H
#define HF_TESTS_KILL_LEDGER_H

#include "engine/look.h"

#include <stdio.h>

typedef struct entry {
    char id[40];
    char run_id[40]; /* empty = the start was not acknowledged */
    bool start_sent;
    bool cancel_sent;
    bool cancel_acked;
    bool result_acked;
    bool end_acked;
    unsigned signals_sent; /* bit n: signal n */
    unsigned signals_acked;
    unsigned seen; /* while verifying: runs of this id */
} entry;

typedef struct ledger {
    entry *entries;
    size_t count;
    size_t capacity;
    size_t *slots; /* hash table: index + 1 into entries */
    size_t slot_count;
    char backup[64];   /* the last one that was acknowledged; empty = none */
    long backup_at;    /* of its `b` line in the file */
    long backup_begun; /* the same of the last one that was begun */
} ledger;

/* Reads the file as far as `until` (-1 = all of it). A last line without an end is not counted. */
void ledger_read(ledger *l, const char *path, long until);
void ledger_free(ledger *l);
entry *ledger_find(ledger *l, const char *id); /* NULL = not known */

/* N1 and N2 for the store. `is_older`: the store may hold more than the ledger knows. Returns the number of violations, each told
 * on stderr. */
size_t ledger_verify(ledger *l, hf_look *look, bool is_older, const char *what);

#endif
