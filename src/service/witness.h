/* Witnesses: objects of this process that know more about a run than its history says, and can tell its activities that
 * they were canceled.
 *
 * A history shows the commands of a run. Which signal its code waits for, and which signals it has not taken, is
 * known only while that code is in memory. A worker is a witness while it runs; a tool asks all witnesses
 * (open/admin.c). They answer at once: a run that is not in memory, or is in a step, is not known. */
#ifndef HF_SERVICE_WITNESS_H
#define HF_SERVICE_WITNESS_H

#include "service/service.h"

enum { HF_INSIGHT_NAMES_MAX = 8, HF_INSIGHT_NAME_LEN = 64 };

/* Names without duplicates, as many as fit; a long name is cut. */
typedef struct hf_insight_names {
    char items[HF_INSIGHT_NAMES_MAX][HF_INSIGHT_NAME_LEN];
    int count;
} hf_insight_names;

typedef struct hf_insight {
    bool is_known;
    bool looks;              /* a fiber is in hf_wait_until, and its condition is not true */
    hf_insight_names waits;  /* signals that its code waits for */
    hf_insight_names unread; /* signals that came and were not taken */
    hf_insight_names
        signals; /* signals that have handlers, which may make a condition true; one for all other names is "any" */
    hf_insight_names updates; /* the same of updates */
} hf_insight;

void hf_insight_add(hf_insight_names *names, hf_str name);

struct hf_witness {
    hf_witness *next;
    /* The next two are for an activity that one of its workers executes. `pin`, called like `look`, finds it: NULL = it is
     * not here. The activity stays until `cancel`, called without the lock, has told it that its workflow
     * wants it to end. */
    void *(*pin)(hf_witness *witness, hf_str namespace_, hf_str run_id, hf_str activity_id);
    void (*cancel)(void *pinned);
    /* Called with a lock held, from any thread: must not wait, allocate or call back. */
    void (*look)(hf_witness *witness, hf_str namespace_, hf_str run_id, hf_insight *insight);
};

/* A witness may be asked from its addition until its removal has returned. */
void hf_witness_add(hf_service *service, hf_witness *witness);
void hf_witness_remove(hf_service *service, hf_witness *witness);
/* Asks all witnesses about this run; `ret_insight->is_known` is false if none knows it. */
void hf_service_look(hf_service *service, hf_str namespace_, hf_str run_id, hf_insight *ret_insight);
/* Tells an activity that a worker of this process executes that it was canceled. False: no worker has it here, and the one
 * that has it learns of the cancel from a heartbeat. */
bool hf_service_cancel_activity(hf_service *service, hf_str namespace_, hf_str run_id, hf_str activity_id);

#endif
