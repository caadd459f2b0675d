/* Shared by the files of this layer: the test environment, and what a run waits for. */
#ifndef HF_TRIAL_TESTENV_H
#define HF_TRIAL_TESTENV_H

#include "base/limits.h"
#include "base/spin.h"
#include "service/service.h"
#include "store/store.h"

#include <holdfast/testenv.h>

#include <stdatomic.h>

struct hf_testenv {
    hf_testenv_options options;
    hf_runtime *rt;          /* owned */
    hf_service *service;     /* owned */
    hf_service *front;       /* the worker's: the service, or a gate in front of it */
    hf_worker *worker;       /* owned; started by the first call that runs something */
    struct hf_gate *gate;    /* a trial's; NULL = none */
    int starts;              /* runs without an id of the test's own, so far */
    atomic_bool has_trouble; /* a workflow task failed */
    hf_spin lock;
    char trouble[HF_MESSAGE_LEN_MAX - 100]; /* under the lock: why the first one did */
    size_t queue_len;                       /* bytes of `queue`, with its NUL */
    char queue[];                           /* name of the task queue */
};

/* hf_testenv_new in two halves, for a trial: what is opened first uses the store (taken, also on failure; NULL = a new one), and the worker
 * then asks `front`. */
hf_status hf_testenv_open(const hf_testenv_options *options, hf_store *store, hf_testenv **ret_env);
hf_status hf_testenv_employ(hf_testenv *env, hf_service *front);
/* As hf_testenv_result. `*ret_is_upset`: the gate pauses or is cut, and the status means nothing. */
hf_status hf_testenv_await(hf_testenv *env, hf_execution *execution, hf_payload *ret_out, bool *ret_is_upset);

/* Whether an activity of the run waits on a task queue that no worker has polled, so that it waits for ever. */
bool hf_waiting_is_unpolled(hf_service *service, hf_execution *execution);
/* Writes what the run waits for: "'order' (order-1) waits for the signal 'paid'". */
void hf_waiting_tell(hf_service *service, hf_execution *execution, char *text, size_t len);

#endif
