/* Checks whether a store is sound: every record, every run, every row that leads to a run. */
#ifndef HF_INSPECT_CHECK_H
#define HF_INSPECT_CHECK_H

#include "store/store.h"

typedef struct hf_check_options {
    bool deep;                                        /* every event is also decoded by itself */
    void (*found)(void *state, const char *sentence); /* something is wrong; NULL = only count */
    void (*progress)(void *state, const char *what, uint64_t done, uint64_t total); /* now and then; may be NULL */
    void *state;
} hf_check_options;

typedef struct hf_check_report {
    uint64_t records; /* with a checksum */
    uint64_t commits; /* in the journal */
    uint64_t runs;
    uint64_t open_runs; /* of those */
    uint64_t events;
    uint64_t damages; /* calls of `found`; 0 = the store is sound */
} hf_check_report;

/* Checks everything, and goes on after damage as far as that makes sense. Writes nothing; no one else may use the store
 * meanwhile.
 *
 *     inspect-K1  every record's checksum fits
 *     inspect-K2  the journal is dense and chained, and ends with the store's last commit
 *     inspect-K3  every history is dense and chained, and rebuild(history) is the run's state (run-R3)
 *     inspect-K4  every run has its name (unless it lost it), deadline and waiting tasks in the tables that lead to it, and these hold
 *                 nothing else but names that are gone and not swept yet (ledger-W3, ledger-N1); a run that the journal deletes has no row
 *     inspect-K5  every block of runs that have ended tells what their own rows tell, and leaves out no run of its range (ledger-E1 to ledger-E3)
 *
 * Returns HF_OK if the check could be made, whatever it found. Fails: HF_ERR_NOMEM, as the store does. */
hf_status hf_check_store(hf_op *op, hf_allocator memory, hf_store *store, const hf_check_options *options,
                         hf_check_report *ret_report);

#endif
