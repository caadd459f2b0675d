/* A rig for tests of the engine's core: a core on the memory store, a clock that the test turns, and a small language in
 * which a test is a list of steps and the history they make.
 *
 *     hf_rig rig;
 *     hf_rig_open(&rig, (hf_core_options){0});
 *     hf_rig_do(&rig, "start wf; poll; complete timer t1 5s; time 5s; poll; complete done");
 *     hf_rig_history(&rig, "wf", "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1\n...");
 *     hf_rig_close(&rig);
 *
 * Steps are separated by ';', the commands of a completion by ','. A step ends with what is expected of it, "=> ok" unless it
 * says otherwise: a status in lower case ("=> not_found"), or for polls "task" (the default), "parked" and "empty".
 *
 *     start ID            request=R run=SPAN exec=SPAN task=SPAN reuse=N conflict=N queue=Q ns=N input=BYTES
 *     poll, apoll         queue=Q as=SLOT identity=I timeout=SPAN in_process run_ahead ns=N
 *     is SLOT             only the expectation
 *     complete COMMANDS   of=SLOT sticky=Q sticky_for=SPAN force; commands: timer ID SPAN, untimer ID, activity ID
 *                         close=SPAN start=SPAN each=SPAN beat=SPAN retries=N initial=SPAN never=TYPE queue=Q,
 *                         unactivity EVENT, xsignal ID NAME ns=N child, xcancel ID ns=N child, marker NAME, done, failed TEXT,
 *                         canceled; input=BYTES and header=BYTES in those that take data
 *     fail                of=SLOT cause=N input=BYTES
 *     acomplete, afail, acancel, heartbeat
 *                         of=SLOT input=BYTES; afail: type=T final delay=SPAN details=TEXT; heartbeat: details=TEXT asked
 *                         (=> a cancel)
 *     signal ID NAME, cancel ID, terminate ID
 *                         request=R run_id=R first=R input=BYTES ns=N
 *     unstick ID, shutdown QUEUE ns=N, unwanted SLOT, drop SLOT (the caller of a parked poll goes), time SPAN, crash
 *
 * A slot holds the last poll's answer: "w" and "a" unless `as` names another. After every step all that is due is done, the
 * batch is committed, and hf_core_check compares every run with its history. Checks are cmocka's: on the test's own stack. */
#ifndef HF_TESTS_ENGINE_RIG_H
#define HF_TESTS_ENGINE_RIG_H

#include "support/support.h"

#include "engine/core_private.h"

#define HF_RIG_SLOTS 64
#define HF_RIG_READS 4096
#define HF_RIG_NS "ns"
#define HF_RIG_QUEUE "q"

/* One call and what it needs. */
typedef struct hf_rig_call {
    hf_call call;
    hf_arena arena;   /* the response; fails with the rig's memory */
    hf_arena request; /* the request; never fails */
    bool done;        /* answered */
    bool used;        /* submitted, or answered and kept */
    char name[16];    /* of the slot */
} hf_rig_call;

typedef struct hf_rig {
    hf_core *core;
    hf_store *store;
    void *disk; /* of SQLite, or NULL */
    hf_core_options options;
    hf_clock now;
    hf_store_request *reads[HF_RIG_READS]; /* asked by the core, in order */
    size_t read_count;
    hf_rig_call slots[HF_RIG_SLOTS]; /* polls; the first one is for all other calls */
    bool hold;                       /* nothing is committed or read until the test says so */
    bool lose;                       /* every commit fails */
    bool may_break;                  /* a broken core is what the test looks for */
    bool no_check;                   /* hf_core_check is too slow for this test */
    uint64_t allocations;            /* of the core and of responses, so far */
    uint64_t fail_at;                /* this one fails; 0 = none */
    bool fail_on;                    /* and so do all after it */
    size_t live;                     /* bytes that are allocated */
    uint64_t commits;                /* executed */
    uint64_t probes[HF_PROBE_COUNT]; /* of cores that are gone */
    hf_arrows walked;                /* the same */
} hf_rig;

void hf_rig_open(hf_rig *rig, hf_core_options options);
/* The same on a store that takes its memory from the rig, too; SQLite's lies on a disk in memory. */
typedef enum hf_rig_store { HF_RIG_MEMORY, HF_RIG_SQLITE } hf_rig_store;
void hf_rig_open_on(hf_rig *rig, hf_core_options options, hf_rig_store kind);
/* Also checks that nothing leaked. */
void hf_rig_close(hf_rig *rig);

/* A cleared request of this type, in the memory of the slot; then hf_rig_call sends it. */
hf_rig_call *hf_rig_slot(hf_rig *rig,
                         const char *name); /* the slot of this name, or a free one; NULL name: not a poll */
void *hf_rig_request(hf_rig_call *slot, size_t len);
#define HF_RIG_REQUEST(slot, stem) ((hf_pb_##stem##_request *)hf_rig_request((slot), sizeof(hf_pb_##stem##_request)))
/* Submits and settles. The answer is in slot->call; slot->done says whether it is there yet. */
void hf_rig_send(hf_rig *rig, hf_rig_call *slot, hf_method method, const void *request);
void hf_rig_submit(hf_rig *rig, hf_rig_call *slot, hf_method method, const void *request);

/* Reads, ticks and commits until nothing moves. False: the core broke. */
bool hf_rig_settle(hf_rig *rig);
/* The oldest question to the store, if there is one: true. */
bool hf_rig_read(hf_rig *rig);
/* One commit, if there is anything: true. With `lost` it fails and the core breaks. */
bool hf_rig_commit(hf_rig *rig, bool lost);
/* The core goes without a word and comes back from the store. Parked polls are gone; answers in slots stay. */
void hf_rig_crash(hf_rig *rig);
/* The same, but the store was closed well. */
void hf_rig_restart(hf_rig *rig);
hf_status hf_rig_reopen(hf_rig *rig);
/* While there is no core: a store of hf_rig_open_on(HF_RIG_SQLITE) is closed and opened again. */
void hf_rig_reopen_store(hf_rig *rig);

/* Steps. hf_rig_try says how a single one went instead of failing the test; HF_ERR_AGAIN: not as expected. */
void hf_rig_do(hf_rig *rig, const char *script);
hf_status hf_rig_try(hf_rig *rig, const char *step);
/* The history of the current run of an id, one line per event, as GetWorkflowExecutionHistory gives it. */
void hf_rig_text(hf_rig *rig, const char *workflow_id, hf_buf *out);
/* The test fails unless it is this. */
void hf_rig_history(hf_rig *rig, const char *workflow_id, const char *expected);
/* One event as a line; without attributes when `bare`. */
void hf_rig_event_text(const hf_pb_history_event *event, bool bare, hf_buf *out);
void hf_rig_history_text(hf_str history, bool bare, hf_buf *out);
/* Bytes of the current run's history, in the first slot's memory until the next call. */
hf_str hf_rig_history_bytes(hf_rig *rig, const char *workflow_id);

/* The response in a slot. */
const hf_pb_poll_workflow_task_queue_response *hf_rig_task(hf_rig *rig, const char *slot);
const hf_pb_poll_activity_task_queue_response *hf_rig_activity(hf_rig *rig, const char *slot);
uint64_t hf_rig_probe(const hf_rig *rig, hf_probe probe);

/* "5s", "100ms", "2h", "never" (as long as the wire can say). */
int64_t hf_rig_span(const char *text);

extern const hf_allocator hf_rig_heap; /* malloc */

#endif
