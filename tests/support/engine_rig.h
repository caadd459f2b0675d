/* A rig for tests of the engine's core: a core on the memory store, a clock that the test turns, and a small language
 * in which a test is a list of steps and the history they make.
 *
 *     hf_rig rig;
 *     hf_rig_open(&rig, (hf_core_options){0});
 *     hf_rig_do(&rig, "start wf; poll; complete timer t1 5s; time 5s; poll; complete done");
 *     hf_rig_history(&rig, "wf", "1 WorkflowExecutionStarted\n2 WorkflowTaskScheduled attempt=1\n...");
 *     hf_rig_close(&rig);
 *
 * Steps are separated by ';', the commands of a completion by ','. A step may end with its expected result: a status in
 * lower case ("=> not_found"; the default is "=> ok"), or for polls "task" (the default), "parked" and "empty".
 *
 *     start ID            request=R run=SPAN exec=SPAN task=SPAN reuse=N conflict=N queue=Q ns=N input=BYTES header=BYTES
 *                         delay=SPAN keep=SPAN cron=SCHEDULE ('_' for a space) retries=N initial=SPAN never=TYPE memo=KEY:VALUE+...
 *                         attrs=KEY:VALUE+... (search attributes; no value: null) meta=TEXT (the summary of its user metadata) priority=N link=ID; with conflict=2: attach (its request
 *                         id), attach_links
 *     poll, apoll         queue=Q as=SLOT identity=I key=K (of the worker) timeout=SPAN in_process run_ahead ns=N; apoll: rate=N (a second)
 *     queue Q             describe it; activities (not workflow tasks) stats status ns=N
 *     is SLOT             only the expectation
 *     complete COMMANDS   of=SLOT sticky=Q sticky_for=SPAN force; commands: timer ID SPAN, untimer ID, activity ID
 *                         close=SPAN start=SPAN each=SPAN beat=SPAN retries=N initial=SPAN never=TYPE queue=Q act=TYPE,
 *                         unactivity EVENT, xsignal ID NAME ns=N child, xcancel ID ns=N child, marker NAME, done, failed TEXT,
 *                         canceled, continue type=T queue=Q run=SPAN task=SPAN delay=SPAN cron=SCHEDULE initiator=N memo= attrs=
 *                         and a retry policy, upsert KEY:VALUE+... (search attributes), remember KEY:VALUE+... (memo), child ID policy=N (1 terminate, 2
 *                         abandon, 3 request cancel) reuse=N type=T queue=Q and as with a start; input=BYTES and header=BYTES in those that take data
 *     fail                of=SLOT cause=N input=BYTES
 *     acomplete, afail, acancel, heartbeat
 *                         of=SLOT or by=ID/ACTIVITY input=BYTES; afail: type=T final delay=SPAN details=TEXT; heartbeat: details=TEXT asked
 *                         (=> a cancel) paused reset leaves (its process, for good)
 *     sigstart ID NAME    signal with start: as start, sinput=BYTES of the signal
 *     options ID          of the run: priority=N fairness=KEY weight=N; auto, pinned=BUILD or unset: the versioning override; mask=PATH: that
 *                         path as well; run_id=R identity=I ns=N
 *     signal ID NAME, cancel ID, terminate ID
 *                         request=R run_id=R first=R input=BYTES ns=N
 *     describe ID         run_id=R
 *     delete ID           run_id=R ns=N all (runs of the id)
 *     reset ID POINT      EVENT, "first", "last" or activity=A; as=SLOT run_id=R ns=N request=R reapply=N exclude=N (1 signals, 2 updates);
 *                         operations of it: signal=NAME, or the words of options
 *                         signal=NAME (of the new run)
 *     query ID TYPE       as=SLOT ns=N run_id=R reject=N timeout=SPAN input=BYTES
 *     qanswer             of=SLOT result=TEXT error=TEXT input=BYTES; the queries of a workflow task are answered by
 *                         complete answer=TEXT or answerfail=TEXT
 *     update ID NAME      as=SLOT id=U ns=N run_id=R first=R wait=admitted|accepted|completed uinput=BYTES
 *     updpoll ID U        as=SLOT ns=N run_id=R wait=nothing|accepted|completed
 *     updstart ID NAME    as update and start, as one call
 *                         The commands accept U, respond U [fail], reject U answer an update, with "silent" by a message alone;
 *                         complete discard: the worker can see an event twice
 *     system, cluster, namespace NAME
 *                         what the service says of itself, and of a namespace
 *     list, count, register, addattr and others: see engine_list.h
 *     stream, and publish= of complete and heartbeat: see engine_stream.h
 *     apause, aunpause, areset, aoptions ID ACTIVITY
 *                         type=T or all instead of ACTIVITY; apause: request=R; aunpause: attempts heartbeats; areset: heartbeats
 *                         paused (stays so) original; aoptions: as in a command, or original
 *     unstick ID, shutdown QUEUE ns=N key=K queue=Q type=N, unwanted SLOT, drop SLOT (the caller of a parked poll goes), time SPAN, crash
 *     until ID EVENT, gone ID, listed N query=FILTER, batchdone ID
 *                         a server in other processes needs a moment: wait for an event, until a run is deleted, so many runs are listed,
 *                         an operation on many runs is over
 *
 * The scenarios of tests/golden/temporal (engine_facts.h) are played on a Temporal server, too, by tests/oracle. There `time`
 * sleeps, `times=N` repeats a signal, and "#2" in run_id and first is the second run of that workflow id that was seen. They
 * also have what the rig will learn when the engine does:
 *
 *     start               delay=SPAN cron=WORDS ('_' for spaces) memo=K:V+K:V attrs=K:V+K:V (K is a keyword, N a number)
 *                         header=BYTES eager type=T last=BYTES (the last completion's result) identity=I and a retry policy:
 *                         retries=N initial=SPAN factor=F longest=SPAN never=TYPE
 *     update ID NAME      id=U (the name unless given) wait=admitted|accepted|completed first=R uinput=BYTES; in slot "u"
 *     updstart ID NAME    update with start: as start and update
 *     updpoll ID U        waits for an update: wait=..., in slot "u"
 *     query ID TYPE       reject=N input=BYTES; in slot "q". These four wait for a worker: what they expect is "parked"
 *                         unless it says "answer" or a code, and `is` tells the answer
 *     qanswer             of=SLOT result=TEXT error=TEXT: answers the query that was polled
 *     complete            return (the next task in the answer, then in slot "w"), answer=TEXT or answerfail=TEXT to all
 *                         queries of the task, discard; commands: child ID type=T queue=Q policy=N reuse=N and as start,
 *                         continue type=T queue=Q run= task= delay=SPAN initiator=N and as start, upsert K:V+K:V,
 *                         remember K:V (the memo), accept U at=EVENT, respond U fail, reject U (silent: a message without a
 *                         command); an empty V removes; activity: eager factor=F longest=SPAN header=BYTES;
 *                         failed: type=T final delay=SPAN; xsignal, xcancel: run_id=R, xcancel: reason=TEXT
 *     acomplete, afail, acancel, heartbeat
 *                         by=WORKFLOW/ACTIVITY instead of a task
 *     delete ID, pause ID, unpause ID
 *     apause ID ACTIVITY, aunpause (attempts heartbeats), areset (heartbeats paused original), aoptions (close= start= each=
 *                         beat= and a retry policy, original)
 *
 * A query or update waits in a slot, too, "q" or "u" unless `as` names another: it is "parked" (the default) or has an "answer" (the default of
 * `is`). says=TEXT compares what was answered: the result of a query, or "rejected"; the stage of an update, ":" and its result or
 * the type of its failure, behind "started/" or "used/" with updstart; "resetN" of a completion; of a workflow task "QUERY/N/M" with the type
 * of its query, the number of queries and of messages that came with it, and a "-" in front if it has no history.
 *
 * A slot holds the answer of the last poll: "w" and "a" unless `as` names another. After every step all due work is
 * done, the batch is committed, and hf_core_check compares every run with its history. The checks are cmocka's, so they
 * run on the test's own stack. */
#ifndef HF_TESTS_ENGINE_RIG_H
#define HF_TESTS_ENGINE_RIG_H

#include "support/support.h"

#include "engine/core_private.h"

#define HF_RIG_SLOTS 64
#define HF_RIG_READS 4096
#define HF_RIG_NS "ns"
#define HF_RIG_QUEUE "q"
#define HF_RIG_ZONE_LEN 256

/* One call with its memory. */
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
    hf_rig_call slots[HF_RIG_SLOTS];  /* polls; the first one is for all other calls */
    bool hold;                        /* nothing is committed or read until the test says so */
    bool lose;                        /* every commit fails */
    bool may_break;                   /* a broken core is what the test looks for */
    hf_str (*zone)(const char *name); /* the rules of a time zone; NULL = there are none */
    bool no_check;                    /* hf_core_check is too slow for this test */
    uint64_t allocations;             /* of the core and of responses, so far */
    uint64_t fail_at;                 /* this one fails; 0 = none */
    bool fail_on;                     /* and so do all after it */
    size_t live;                      /* bytes that are allocated */
    uint64_t commits;                 /* executed */
    uint64_t probes[HF_PROBE_COUNT];  /* of cores that are gone */
    hf_arrows walked;                 /* the same */
} hf_rig;

void hf_rig_open(hf_rig *rig, hf_core_options options);
/* The same on a store that also takes its memory from the rig; SQLite's file is on a disk in memory. */
typedef enum hf_rig_store { HF_RIG_MEMORY, HF_RIG_SQLITE } hf_rig_store;
void hf_rig_open_on(hf_rig *rig, hf_core_options options, hf_rig_store kind);
/* Also checks that nothing leaked. */
void hf_rig_close(hf_rig *rig);

/* A cleared request of this type, in the memory of the slot; then hf_rig_call sends it. */
hf_rig_call *hf_rig_slot(hf_rig *rig,
                         const char *name); /* the slot of this name, or a free one; NULL name: not a poll */
void *hf_rig_request(hf_rig_call *slot, size_t len);
#define HF_RIG_REQUEST(slot, stem) ((hf_pb_##stem##_request *)hf_rig_request((slot), sizeof(hf_pb_##stem##_request)))
/* Submits the call and settles. The answer is in slot->call once slot->done is true. */
void hf_rig_send(hf_rig *rig, hf_rig_call *slot, hf_method method, const void *request);
void hf_rig_submit(hf_rig *rig, hf_rig_call *slot, hf_method method, const void *request);

/* Reads, ticks and commits until nothing moves. False: the core broke. */
bool hf_rig_settle(hf_rig *rig);
/* Executes the oldest read that waits for the store. True: there was one. */
bool hf_rig_read(hf_rig *rig);
/* Executes one commit. True: there was something to commit. With `lost` it fails and the core breaks. */
bool hf_rig_commit(hf_rig *rig, bool lost);
/* The core is dropped, as in a crash, and opened again from the store. Parked polls are gone; answers in slots stay. */
void hf_rig_crash(hf_rig *rig);
/* The same, but the store is closed properly first. */
void hf_rig_restart(hf_rig *rig);
hf_status hf_rig_reopen(hf_rig *rig);
/* While there is no core: a store of hf_rig_open_on(HF_RIG_SQLITE) is closed and opened again. */
void hf_rig_reopen_store(hf_rig *rig);

/* Steps. hf_rig_try says how a single one went instead of failing the test; HF_ERR_AGAIN: not as expected. */
void hf_rig_do(hf_rig *rig, const char *script);
hf_status hf_rig_try(hf_rig *rig, const char *step);
/* Does one step, whatever comes of it. Gives the slot with its answer, NULL if it is no call. */
hf_rig_call *hf_rig_step(hf_rig *rig, const char *step);
/* The history of the current run of an id, one line per event, as GetWorkflowExecutionHistory gives it. */
void hf_rig_text(hf_rig *rig, const char *workflow_id, hf_buf *out);
/* Fails the test unless the history is `expected`. */
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

/* "5s", "100ms", "2h", "never" (the longest span that a message can have). */
int64_t hf_rig_span(const char *text);

extern const hf_allocator hf_rig_heap; /* malloc */

#endif
