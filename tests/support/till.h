/* A workflow that buys and gives back, as a seed says, and the world outside in which that counts.
 *
 * It charges through activities, with a fiber or without, in sagas, and through children of its own; it waits in every verb
 * that can be canceled, inside all kinds of scopes, joins, deadlines and shields. Whatever ends a block early, the block gives back what was bought in it. Its
 * result is the list of charges that stand. So in the end the charges outside minus the refunds are what the result says:
 * a canceled call that returned before its activity had ended would leave a charge that nobody gives back. */
#ifndef HF_TESTS_TILL_H
#define HF_TESTS_TILL_H

#include <holdfast/holdfast.h>

enum { TILL_TICK_MS = 10 }; /* every span in it is a multiple of this */

typedef struct till_counts {
    uint64_t charges, refunds;
    uint64_t told;  /* charges that were told to end ... */
    uint64_t late;  /* ... and were made all the same */
    uint64_t sagas; /* that were undone */
} till_counts;
extern till_counts till_seen; /* since the program began */

/* Forgets all charges. `is_sure`: no process is killed, so a charge with one attempt that was canceled, or that failed, was
 * not made; else the workflow gives it back, to be safe. `is_ghost`: what happens while this is true never happened. */
void till_open(bool is_sure, const bool *is_ghost);
/* Compares the result of the workflow (empty: it was canceled) with its charges. `owner` as in its input. */
void till_check(unsigned owner, hf_payload result);

hf_status till_program(hf_payload in, hf_payload *ret_out); /* "buy", of the task queue "storm"; in: "SEED OWNER" */
hf_status till_charge(hf_payload in, hf_payload *ret_out);  /* "charge" and ... */
hf_status till_refund(hf_payload in, hf_payload *ret_out);  /* ... "refund", of the task queue "other" */
hf_status till_ponder(hf_payload in, hf_payload *ret_out);  /* "ponder", of the worker that has the workflow */

#endif
