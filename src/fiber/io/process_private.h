/* Shared by process.c and process_events.c. */
#ifndef HF_FIBER_PROCESS_PRIVATE_H
#define HF_FIBER_PROCESS_PRIVATE_H

#include "fiber/io/conn.h"
#include "fiber/io/fd.h"
#include "fiber/io/process.h"
#include "fiber/sched/wait.h"

typedef struct hf_processes hf_processes;

/* The children of one runtime and the helper that owns them. */
struct hf_processes {
    hf_spin lock; /* first: hf_wait.object points here */
    hf_runtime *rt;
    hf_helper *helper;
    int fd;            /* readable when the helper has news */
    bool has_reader;   /* one of the waiters reads for all */
    bool helper_ended; /* and all children with it */
    uint64_t requests; /* the last request number */
    hf_list all;       /* processes */
    hf_list waiters;   /* waiters for news while another one reads; value = its process */
    hf_list stalled;   /* waiters that give a busy helper a moment */
};

struct hf_process {
    hf_node node; /* in `all` */
    hf_processes *owner;
    uint64_t request; /* identifies it between the helper and us */
    int64_t pid;      /* once it is started */
    int error;        /* errno of a failed start */
    hf_exit exit;     /* once it has ended */
    bool is_started;  /* or could not be started: see error */
    bool has_ended;
    bool is_orphan; /* no handle is left: it is freed when it ends */
    unsigned refs;  /* one per verb inside, and one for the starter; under the lock */
    hf_conn *io[3]; /* our ends of its pipes; NULL unless asked for */
    hf_span kill_after;
    char name[64]; /* argv[0], for messages and dumps */
};

/* Waits until the process is started or could not be started, or, if `end`, until it has ended. Fails: HF_ERR_CANCELED,
 * HF_ERR_TIMEOUT, HF_ERR_CLOSED (the helper has ended). */
hf_status hf_process_await(hf_fiber *self, hf_process *process, bool end, hf_instant deadline,
                           const hf_wait_kind *kind);
/* Waits a moment because the helper is busy, and reads its news meanwhile. Fails: HF_ERR_CANCELED. */
hf_status hf_processes_stall(hf_fiber *self, hf_processes *all);
void hf_process_ref(hf_process *process);
void hf_process_unref(hf_process *process); /* the last one frees the process */
/* The handle of a process goes, and its end is not known yet: the process is killed as soon as possible. */
void hf_process_orphan(hf_process *process);
bool hf_process_has_ended(hf_process *process);

#endif
