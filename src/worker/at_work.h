/* What code of a user is at work: for the program `holdfast worker`, which tells it when it has to wait for it, or when it crashes. */
#ifndef HF_WORKER_AT_WORK_H
#define HF_WORKER_AT_WORK_H

#include <holdfast/worker.h>

/* Writes which activities run, "'charge' of 'order-1', 'ship' of 'order-2', ...", as many as fit. Returns how many run. */
int hf_worker_tell_busy(hf_worker *worker, char *text, size_t len);

/* Writes what the calling thread works on: "activity 'charge', attempt 2, of workflow 'order-1'" or "workflow 'order' ('order-1')". Empty: it is
 * not in code of a workflow or an activity. May be called in a handler of SIGSEGV: it only reads memory of this thread's work. `len` > 0. */
void hf_tell_at_work(char *text, size_t len);

#endif
