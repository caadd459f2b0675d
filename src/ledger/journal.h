/* The journal: one row per commit, with the changes of every run that the commit touched and whose rows it did not write.
 *
 * ledger-J1  The numbers of its commits are dense, and each holds the hash of the one before, so a missing or altered commit is noticed.
 * ledger-J2  A commit has the changes of a run once, in the order in which the runs were first touched.
 * ledger-J3  A run that a commit deletes has no changes in that commit or a later one. The journal is cut at its old end, so as long as it
 *     has changes of a deleted run it also says that the run is gone.
 * ledger-J4  The last commit says how many task rows there are under the queue "h". An opening that finds fewer or more of them looks through
 *     all runs: one of those rows has a wrong key, and nothing else leads to its run.
 *
 * proto/holdfast/engine.proto describes the row (JournalCommit). */
#ifndef HF_LEDGER_JOURNAL_H
#define HF_LEDGER_JOURNAL_H

#include "ledger/writes.h"
#include "proto/pb.h"

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

typedef struct hf_commit_read {
    hf_pb_journal_commit fields; /* checked: the number is that of the row, runs and counters are in range */
    uint64_t hash;               /* of this commit, for the next one */
    size_t len;                  /* bytes of the body */
} hf_commit_read;

/* One row. The fields point into the row and the arena. Fails: HF_ERR_INVALID, HF_ERR_NOMEM. */
hf_status hf_journal_open(hf_op *op, const hf_row *row, hf_arena *arena, hf_commit_read *ret_commit);

/* The next run that the commit has deleted; `*rest` is its field `gone` at first. False: there are no more. */
bool hf_journal_next_gone(hf_str *rest, int64_t *ret_run);
/* How many task rows there are under HF_QUEUE_HELD after the commit (ledger-J4); -1 = an earlier version wrote it, and it does not say. */
int64_t hf_journal_held(const hf_commit_read *commit);

/* Where a journal begins and ends. */
typedef struct hf_journal_span {
    uint64_t first; /* number of the oldest commit; 0 = the journal is empty */
    uint64_t last;
    uint64_t hash; /* of the last one */
} hf_journal_span;

/* Called for each commit of a walk. The commit is valid until the call returns. */
typedef hf_status hf_commit_visit(hf_op *op, void *arg, const hf_commit_read *commit, hf_arena *arena);
/* Visits every commit in order. Fails: HF_ERR_INVALID (a commit cannot be read, is missing, or does not follow: ledger-J1), HF_ERR_NOMEM, as the
 * store and the visitor do. */
hf_status hf_journal_walk(hf_op *op, hf_store *store, hf_allocator memory, hf_commit_visit *visit, void *arg,
                          hf_journal_span *ret_span);

/* ---- Writing: begin, the runs, end ---------------------------------------------------------------------------------------- */

/* Empties `out`, which must then hold the row until the commit is done. `previous`: the hash of the commit before. */
void hf_journal_begin(hf_buf *out, uint64_t commit, int64_t time, uint64_t previous);
void hf_journal_put_run(hf_buf *out, int64_t run, hf_str changes);
/* The fields of a journal row after its runs. */
typedef struct hf_journal_tail {
    int64_t run_next;      /* number of the next run */
    int64_t order_next;    /* and of the next task */
    hf_str names;          /* of runs that get their first row with this commit */
    uint64_t names_logged; /* in name_log after this commit */
    hf_str gone;           /* runs that this commit deletes: entries of names, without HF_NAME_GONE */
    int64_t held;          /* task rows under HF_QUEUE_HELD after this commit (ledger-J4) */
} hf_journal_tail;
/* Adds the row to the writes. Returns the hash of this commit and the length of its body. Out of memory: see writes.h. */
void hf_journal_end(hf_buf *out, const hf_journal_tail *tail, uint64_t commit, uint64_t previous, hf_writes *writes,
                    uint64_t *ret_hash, size_t *ret_len);

#endif
