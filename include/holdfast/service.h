/* hf_service: the connection to an engine. It starts workflows, waits for their results, signals, queries, updates,
 * cancels and resets them.
 *
 *     HF_AUTO(hf_close) hf_service *service = NULL;
 *     HF_AUTO(hf_execution_free) hf_execution *order = NULL;
 *     HF_TRY(hf_open("sqlite:orders.db", &service));
 *     hf_payload in = hf_payload_of_json("{\"item\": 7}");
 *     HF_TRY(hf_start(service, "order", in, &order, .id = "order-1", .task_queue = "orders"));
 *     HF_TRY(hf_result(order, &out));
 *
 * A call that waits parks a fiber or blocks a plain thread. Workflows must not use these calls (HF_ERR_MISUSE); they
 * reach the outside through activities. */
#ifndef HOLDFAST_SERVICE_H
#define HOLDFAST_SERVICE_H

#include <holdfast/payload.h>
#include <holdfast/runtime.h>
#include <holdfast/wait.h>

typedef struct hf_service hf_service;
/* A handle of a workflow. A workflow may have several runs, one after the other. Runs that follow each other by
 * continue-as-new, a retry or a cron schedule are a chain. Which run a call reaches depends on how the handle was made:
 *
 *     hf_start, hf_start_and_...   The chain of the run that was started. hf_result begins with that run and follows
 *                                  the chain to its end. All other calls reach the current run of the workflow id. If
 *                                  the id meanwhile belongs to another chain, hf_cancel changes nothing and returns
 *                                  HF_OK, and hf_terminate, hf_update and hf_update_start fail with HF_ERR_NOT_FOUND.
 *                                  hf_signal, hf_query, hf_describe and hf_reset do not look at the chain.
 *     hf_execution_new             The current run of the workflow id at each call. hf_result follows its chain.
 *     hf_execution_new, .run_id    That run only; hf_result follows the chain from there. */
typedef struct hf_execution hf_execution;
/* A handle of one update of a run. */
typedef struct hf_update_handle hf_update_handle;

typedef struct hf_open_options {
    size_t size; /* set by the macro */
    /* Runtime whose pool, log and environment the service uses. NULL = the runtime of the calling fiber; on a plain
     * thread none: the service uses the operating system, and warnings and errors go to stderr. The service may outlive
     * the runtime and still calls its log function, so keep `log_state` valid until hf_close. */
    hf_runtime *runtime;
    const hf_codec *codec; /* for all payloads; kept until hf_close; NULL = none */
    /* Asked about the header of everything that clients, workflows and activities send through this service, on the
     * calling fiber or thread; see header.h. In a workflow it must decide by the workflow's own state alone, and it must not
     * wait or send anything itself. If it fails, nothing is sent, and the caller gets its status. NULL = none. */
    hf_header_hook on_header;
    void *on_header_arg; /* passed to on_header */
    /* For temporal://: the API key that every call shows. It is copied. NULL = that of api_key_file= in the address. */
    const char *api_key;
} hf_open_options;

/* What to do when the id belongs to a workflow that has ended. */
typedef enum hf_id_reuse {
    HF_ID_REUSE_DEFAULT,     /* as allow */
    HF_ID_REUSE_ALLOW,       /* start another run */
    HF_ID_REUSE_FAILED_ONLY, /* only when the last run did not succeed */
    HF_ID_REUSE_REJECT       /* HF_ERR_EXISTS */
} hf_id_reuse;

/* What to do when the id belongs to a workflow that runs. */
typedef enum hf_id_conflict {
    HF_ID_CONFLICT_DEFAULT,      /* as fail */
    HF_ID_CONFLICT_FAIL,         /* HF_ERR_EXISTS */
    HF_ID_CONFLICT_USE_EXISTING, /* give that one */
    HF_ID_CONFLICT_TERMINATE     /* end that one, start another */
} hf_id_conflict;

typedef struct hf_start_options {
    size_t size;               /* set by the macro */
    const char *id;            /* the workflow's name among all of the namespace; NULL = a random one */
    const char *task_queue;    /* the queue whose workers run it, at most 963 bytes; "default" */
    const char *namespace_;    /* "default" */
    hf_span execution_timeout; /* time limit of all runs together, at least 1 ms; 0 = none */
    hf_span run_timeout;       /* of one run; 0 = none */
    hf_span task_timeout;      /* time limit of one workflow task; 10 s */
    hf_id_reuse id_reuse;
    hf_id_conflict id_conflict;
    const char *request_id;   /* idempotency key, needs .id: repeating the last start of the id gives that run; NULL = a
                               random one */
    hf_span start_delay;      /* time until the first workflow task; 0 = none */
    const char *cron;         /* schedule of five fields, "CRON_TZ=Europe/Berlin 0 8 * * 1-5", or "@every 1h"; each run
                               starts the next one at its time; not with .start_delay; NULL = one run */
    int attempts_max;         /* runs that may be tried until one does not fail; 0 = 1; HF_OFF = 1, HF_UNLIMITED */
    hf_span retry_initial;    /* pause before the second attempt; 1 s. This and the next three need .attempts_max */
    double retry_coefficient; /* factor by which each pause is longer than the last; 2 */
    hf_span retry_max;        /* longest pause; 100 times the first */
    const char *const *final_types;    /* failures of these types are not tried again; ends with NULL; NULL = none */
    const hf_entry *memo;              /* notes that hf_describe shows; NULL = none */
    const hf_entry *search_attributes; /* values by which workflows are found; NULL = none */
    const char *summary;               /* one line about this workflow, for people, at most 1,000 bytes; NULL = none */
    const char *update_id;             /* of hf_start_and_update: idempotency key of the update; NULL = a random one */
    hf_span update_timeout;            /* of hf_start_and_update: as .timeout of hf_update; 0 = none */
    const hf_entry *header;            /* goes along, see header.h; also with the signal or update; NULL = none */
    hf_span keep; /* each run is deleted this long after its end; 0 = when the retention of its namespace says */
} hf_start_options;

typedef struct hf_execution_options {
    size_t size;            /* set by the macro */
    const char *run_id;     /* this run only; NULL = the run that is current at each call */
    const char *namespace_; /* "default" */
} hf_execution_options;

typedef struct hf_signal_options {
    size_t size;            /* set by the macro */
    const char *request_id; /* idempotency key: calls with the same key send the signal once; NULL = a random one */
    const hf_entry *header; /* goes along, see header.h; NULL = none */
} hf_signal_options;

typedef struct hf_cancel_options {
    size_t size;        /* set by the macro */
    const char *reason; /* in the history, at most 1,000 bytes; NULL = none */
} hf_cancel_options;

typedef struct hf_terminate_options {
    size_t size;        /* set by the macro */
    const char *reason; /* in the history, at most 1,000 bytes; NULL = none */
} hf_terminate_options;

typedef struct hf_update_options {
    size_t size; /* set by the macro */
    const char
        *id; /* idempotency key: calls with the same id make one update of the run, and get the same outcome, unless
                        it was rejected; NULL = a random one */
    hf_span timeout;        /* give up with HF_ERR_TIMEOUT; as in hf_wait_options */
    const hf_entry *header; /* goes along, see header.h; NULL = none */
} hf_update_options;

typedef struct hf_query_options {
    size_t size;            /* set by the macro */
    hf_span timeout;        /* give up with HF_ERR_TIMEOUT; as in hf_wait_options */
    const hf_entry *header; /* goes along, see header.h; NULL = none */
    const char *file;       /* set by the macro, as is the line: see hf_wait_options */
    int line;
} hf_query_options;

/* A workflow task to which hf_reset goes back. */
typedef enum hf_reset_point {
    HF_RESET_NOWHERE, /* .event_id or .activity_id says where */
    HF_RESET_FIRST,   /* the first workflow task: the workflow starts over with the same input */
    HF_RESET_LAST     /* the last workflow task that was completed */
} hf_reset_point;

typedef struct hf_reset_options {
    size_t size;             /* set by the macro */
    hf_reset_point point;    /* one of this and the next two is required */
    int64_t event_id;        /* the event that ended a workflow task, from the history; that task is repeated */
    const char *activity_id; /* the workflow task that scheduled this activity is repeated, so it runs again */
    const char *reason;      /* in the history, at most 1,000 bytes; NULL = none */
    const char *request_id;  /* idempotency key: calls with the same key reset once; NULL = a random one */
} hf_reset_options;

/*       name, number, what hf_workflow_status_name returns */
#define HF_WORKFLOW_STATUS_MAP(X)                 \
    X(HF_WORKFLOW_RUNNING, 1, "Running")          \
    X(HF_WORKFLOW_COMPLETED, 2, "Completed")      \
    X(HF_WORKFLOW_FAILED, 3, "Failed")            \
    X(HF_WORKFLOW_CANCELED, 4, "Canceled")        \
    X(HF_WORKFLOW_TERMINATED, 5, "Terminated")    \
    X(HF_WORKFLOW_CONTINUED, 6, "ContinuedAsNew") \
    X(HF_WORKFLOW_TIMED_OUT, 7, "TimedOut")       \
    X(HF_WORKFLOW_PAUSED, 8, "Paused")

typedef enum hf_workflow_status {
#define HF_WORKFLOW_STATUS_ENUM(name, number, text) name = number,
    HF_WORKFLOW_STATUS_MAP(HF_WORKFLOW_STATUS_ENUM)
#undef HF_WORKFLOW_STATUS_ENUM
} hf_workflow_status;

typedef enum hf_pending_state {
    HF_PENDING_SCHEDULED = 1,    /* it waits for a worker, or for its next attempt */
    HF_PENDING_STARTED,          /* a worker has it */
    HF_PENDING_CANCEL_REQUESTED, /* it was asked to end */
    HF_PENDING_PAUSED,           /* it waits until it is unpaused */
    HF_PENDING_PAUSE_REQUESTED   /* a worker has it, and it is not tried again until it is unpaused */
} hf_pending_state;

/* An activity that has not ended. A time of 0 means that there is none. */
typedef struct hf_pending_activity {
    const char *id;
    const char *type;
    hf_pending_state state;
    int attempt;              /* from 1 */
    int attempts_max;         /* 0 = no limit */
    hf_time scheduled;        /* when this attempt was or will be put into its queue */
    hf_time started;          /* when a worker took this attempt */
    hf_time next_attempt;     /* end of the pause before the next attempt */
    hf_time expires;          /* it is not tried after this */
    hf_time heartbeat_time;   /* of the last heartbeat */
    hf_payload heartbeat;     /* details of the last heartbeat; its data is NULL if there are none */
    const char *last_failure; /* sentence of the last attempt's failure with its causes, as hf_error_text; "" = none */
    const char *last_failure_type; /* "" = none */
    const char *worker;            /* identity of the worker that had it last; "" = none */
} hf_pending_activity;

/* A child workflow that has not ended. */
typedef struct hf_pending_child {
    const char *id;
    const char *run_id; /* "" = it is being started */
    const char *type;
} hf_pending_child;

/* A run as it is at one moment. Texts are never NULL, and a time of 0 means that there is none. Everything belongs to
 * the description and is valid until hf_description_free. */
typedef struct hf_description {
    const char *id;
    const char *run_id;
    const char *first_run_id; /* of the chain */
    const char *type;
    const char *task_queue;
    const char *parent_id;     /* workflow id of the parent; "" = it is not a child */
    const char *parent_run_id; /* "" = it is not a child */
    hf_workflow_status status;
    bool is_cancel_requested;
    hf_time started;       /* when the run was created */
    hf_time begins;        /* when its first workflow task was or is due: later than `started` after a delay */
    hf_time closed;        /* 0 = it is open */
    hf_time idle_since;    /* when the run last changed */
    int64_t history_count; /* events */
    int64_t history_len;   /* their bytes */
    int task_attempt; /* of the pending workflow task, from 1: above 1 the workflow's code fails; 0 = none is pending */
    hf_payload summary;                    /* JSON text of .summary of the start; its data is NULL if there is none */
    const hf_entry *memo;                  /* ends with a NULL key */
    const hf_entry *search_attributes;     /* ends with a NULL key */
    const hf_pending_activity *activities; /* pending ones; NULL if there are none */
    const hf_pending_child *children;      /* pending ones; NULL if there are none */
    size_t memo_count;
    size_t search_attribute_count;
    size_t activity_count;
    size_t child_count;
} hf_description;

HF_BEGIN_DECLS

/* Opens the store that the address names, or reaches a server. docs/guide/storage.md explains the keys of stores, their files and
 * crashes; docs/guide/temporal-sdks.md has the part about servers.
 *
 *     sqlite:PATH[?key=value&...]   runs the engine in this process, on this file, which is made (mode 0600) if need be
 *     owner:PATH                    asks the program that has this file open, over the socket beside it: clients and
 *                                   workers of a second process work unchanged. HF_ERR_NOT_FOUND: no program has it open
 *     memory:                       runs the engine in this process, without a file: hf_close forgets everything; for tests
 *     temporal://HOST[:PORT][?key=value&...]
 *                                   a Holdfast server (`holdfast serve`) or a Temporal cluster, over gRPC; port 7233
 *
 *     mem=48M            memory that it may use, at least 16M. A sixth holds pages of SQLite, half holds runs and
 *                        queues, and the rest is for requests and commits under way. Without mem= it is 8M for pages
 *                        and 64M for runs and queues. At most half of the memory for runs, and at most 32M,
 *                        holds changes that are in the journal but not yet in the run's row. After a crash they are
 *                        read from the journal
 *     durability=full    a call that was answered survives a power cut (the default)
 *     durability=normal  faster; it survives the end of the process. A power cut, or a disk that fails to write, may
 *                        cost the last moments, but never leaves anything half done
 *     log=8M             the write-ahead log is moved into the file when it is longer
 *     retention=30d      runs of the namespace "default" are deleted this long after their end (s, m, h, d; 0 = for ever). The file remembers it for
 *                        openings without the key; a new file keeps them for ever
 *     share=yes          opens the file if no other process has it open, else works through that process, and takes over
 *                        within a second when it ends
 *
 * This key is for owner: and temporal://, and those after it are for temporal:// only:
 *
 *     namespace=NAME     namespace of calls and workers that name none; "default"
 *     tls=yes            encrypts the connection, and checks the server's certificate against those of the system. The next four
 *                        imply it
 *     ca=FILE            checks the certificate against those in this file instead; PEM
 *     cert=FILE, key=FILE  the certificate that the server may ask for
 *     server_name=NAME   the name in the server's certificate, if it is not HOST
 *     api_key_file=FILE  an API key; it is only sent with TLS, or to this machine
 *
 * A connection that is lost is made again. Meanwhile polls and waits go on waiting. Calls that were not sent, or that may
 * be sent twice, are sent again for up to 10 s. Other calls fail with HF_ERR_UNAVAILABLE: whether they happened is not
 * known.
 *
 * One program at a time may have a file open. Others of the same user work through it (owner:, share=yes), with at most
 * 64 connections, 4,096 calls under way and 4 MiB for a request. When such a process ends, its tasks are handed out again
 * at once. While a file is open, three others lie beside it: PATH-wal (SQLite's write-ahead log), PATH-owner (the lock of
 * the owning process) and PATH-sock (the socket of the command `holdfast`, mode 0600; missing, with a warning in the
 * program's log, if the path is too long for a socket or another kind of file has that name).
 * Fails: HF_ERR_INVALID (an address it does not know; a file that is damaged, or is not a Holdfast database),
 * HF_ERR_EXISTS (another process has the file open; the sentence names it), HF_ERR_UNSUPPORTED (written by a newer
 * version), HF_ERR_NOT_FOUND (no such folder), HF_ERR_DENIED, HF_ERR_CONFLICT (open under another name),
 * HF_ERR_FULL, HF_ERR_IO, HF_ERR_NOMEM, HF_ERR_LIMIT. A file that cannot be opened is left as it is. Of temporal:// also
 * HF_ERR_UNAVAILABLE (nobody answers there), HF_ERR_UNSUPPORTED (a server that is too old; a library that was built without it). */
HF_API HF_MUST_USE hf_status hf_open_with(const char *address, hf_service **ret_service,
                                          const hf_open_options *options);
/* Waits until everything accepted is stored. Before it, free its executions and update handles, and let hf_worker_run
 * return. HF_AUTO releases variables in reverse order, so declare the service before them. Accepts NULL.
 * Fails: HF_ERR_MISUSE: a worker still runs, or an execution or update handle is not freed (the service stays open); or
 * the process was made by fork() and cannot use the service of its parent. HF_ERR_IO and others: the last changes could
 * not be stored; the service is closed and freed all the same. */
HF_API hf_status hf_close(hf_service *service);

/* Starts a workflow of this type; it runs on whichever worker polls its task queue. `in` is borrowed. `ret_execution`
 * may be NULL. A program that may be started again and must not repeat an ended workflow passes
 * HF_ID_CONFLICT_USE_EXISTING and HF_ID_REUSE_REJECT, and calls hf_execution_new after HF_ERR_EXISTS.
 * Fails: HF_ERR_EXISTS (see id_reuse and id_conflict), HF_ERR_INVALID (an id, name or key is empty or has more than
 * 1,000 bytes, a time is negative or less than a millisecond, a retry option makes no sense or is given without
 * .attempts_max, .cron is not a schedule or comes with .start_delay, a key is there twice or has no value),
 * HF_ERR_TOO_BIG (`in`, the memo, the search attributes or .final_types have more than 2 MiB), HF_ERR_CANCELED,
 * HF_ERR_STORE; HF_ERR_NOMEM, and HF_ERR_UNAVAILABLE while the engine restarts after running out of memory. */
HF_API HF_MUST_USE hf_status hf_start_with(hf_service *service, const char *type, hf_payload in,
                                           hf_execution **ret_execution, const hf_start_options *options);
/* Sends a signal to the workflow `.id`, and starts the workflow first if none of that id runs; both happen, or neither.
 * The handle is that of the run that got the signal. `.id_conflict` is HF_ID_CONFLICT_USE_EXISTING by default;
 * HF_ID_CONFLICT_FAIL is not allowed. A repeated `.request_id` neither starts nor signals again.
 * Fails: as hf_start and hf_signal. */
HF_API HF_MUST_USE hf_status hf_start_and_signal_with(hf_service *service, const char *type, hf_payload in,
                                                      const char *signal, hf_payload signal_in,
                                                      hf_execution **ret_execution, const hf_start_options *options);
/* Sends an update to the workflow `.id`, and starts the workflow first if none of that id runs. Both are one step: if
 * the engine refuses one of them, the other does not happen, either. Waits until the update is accepted, as
 * hf_update_start does. `.id_conflict` is HF_ID_CONFLICT_USE_EXISTING by default. `.cron` and `.start_delay` are not
 * allowed. `ret_execution` and `ret_update` may be NULL. To repeat the call after a failure that may pass, give `.id`,
 * `.request_id` and `.update_id`.
 * Fails: as hf_start and hf_update_start. A workflow that rejects the update, or does not accept it in time, stays
 * started. */
HF_API HF_MUST_USE hf_status hf_start_and_update_with(hf_service *service, const char *type, hf_payload in,
                                                      const char *update, hf_payload update_in,
                                                      hf_execution **ret_execution, hf_update_handle **ret_update,
                                                      const hf_start_options *options);
/* Makes a handle for a workflow that was started elsewhere. Does not check that the workflow exists. */
HF_API HF_MUST_USE hf_status hf_execution_new_with(hf_service *service, const char *id, hf_execution **ret_execution,
                                                   const hf_execution_options *options);
HF_API void hf_execution_free(hf_execution *execution); /* accepts NULL; the workflow goes on */
/* Valid until the execution is freed. The run id is that of the run which was started, or that was given as .run_id;
 * else "". */
HF_API const char *hf_execution_id(const hf_execution *execution);
HF_API const char *hf_execution_run_id(const hf_execution *execution);

/* Waits for the end of the chain and gives the result of its last run (`ret_out` may be NULL). A timeout or a canceled
 * scope ends the wait early. hf_close cannot end it: it fails with HF_ERR_MISUSE while an execution is not freed.
 * Fails: HF_ERR_FAILED: it ended, but not by returning HF_OK. hf_error() has the failure with its chain of causes.
 * hf_error()->type is the type that the workflow gave, or "WorkflowCanceled", "WorkflowTerminated" or
 * "WorkflowTimedOut". If the workflow returned HF_ERR_USER + 7 and gave no type, hf_result still returns HF_ERR_FAILED,
 * and hf_error()->status is HF_ERR_USER + 7. HF_ERR_TIMEOUT: it still runs. HF_ERR_NOT_FOUND, HF_ERR_CANCELED (the
 * caller), HF_ERR_STORE. To make a waiting thread return when the program stops, cancel a scope around the call. A
 * plain thread opens one for that (hf_scope_open with .runtime); hf_runtime_stop cancels all scopes of its runtime.
 * Without a scope around it, only .timeout ends the wait of a plain thread. */
HF_API HF_MUST_USE hf_status hf_result_with(hf_execution *execution, hf_payload *ret_out,
                                            const hf_wait_options *options);
/* Sends a signal; it is stored until the workflow takes it.
 * Fails: HF_ERR_NOT_FOUND: there is no such workflow, or it has ended. HF_ERR_LIMIT: the run has had 10,000 signals and
 * never takes another; or its history is full (51,200 events), and the run was terminated. hf_error_text() says which
 * case it is. A signal is not refused because a workflow task runs: if 100 events or 2 MiB wait for its end already,
 * the task fails, the run takes the signals, and the next task follows. HF_ERR_INVALID: the name is empty or has more
 * than 1,000 bytes. HF_ERR_TOO_BIG: `in` has more than 2 MiB. HF_ERR_CANCELED, HF_ERR_STORE, HF_ERR_NOMEM,
 * HF_ERR_UNAVAILABLE: as for hf_start. */
HF_API HF_MUST_USE hf_status hf_signal_with(hf_execution *execution, const char *name, hf_payload in,
                                            const hf_signal_options *options);
/* Asks the workflow's code a question and waits for the answer (`ret_out` may be NULL). A query changes nothing and
 * leaves no trace in the history. It sees everything that was acknowledged before it was sent. It needs a worker that
 * has the workflow's code, also if the workflow has ended.
 * Fails: HF_ERR_FAILED: the workflow refused the query or has no handler for it; hf_error() has its failure.
 * HF_ERR_TIMEOUT: no worker has answered in time. HF_ERR_NOT_FOUND: there is no such workflow. HF_ERR_NOT_READY: the
 * workflow ended before its code ran, or its code fails again and again. HF_ERR_LIMIT: 64 queries wait for the
 * workflow's running task; try again in a moment. HF_ERR_INVALID: the name is empty or has more than 1,000 bytes.
 * HF_ERR_TOO_BIG: `in` has more than 2 MiB. HF_ERR_CANCELED, HF_ERR_STORE, HF_ERR_NOMEM, HF_ERR_UNAVAILABLE: as for
 * hf_start. */
HF_API HF_MUST_USE hf_status hf_query_with(hf_execution *execution, const char *name, hf_payload in,
                                           hf_payload *ret_out, const hf_query_options *options);
/* Asks the workflow to do something, and waits for the outcome (`ret_out` may be NULL). An update that the workflow has
 * accepted is stored, and it ends even if the caller does not wait. One that was not accepted yet is lost if the engine
 * stops. After HF_ERR_TIMEOUT, HF_ERR_CANCELED or HF_ERR_UNAVAILABLE the outcome is not known: repeat the call with the
 * same `.id`.
 * Fails: HF_ERR_FAILED: the workflow rejected the update, or its handler failed, or the workflow ended before the
 * handler did; hf_error() has the failure, as for hf_result. HF_ERR_TIMEOUT. HF_ERR_NOT_FOUND: there is no such
 * workflow, or it has ended. HF_ERR_NOT_READY: the workflow's code fails again and again, or the run has had 2,000
 * updates. HF_ERR_LIMIT: 10 updates of this run are under way; try again in a moment. HF_ERR_INVALID, HF_ERR_TOO_BIG,
 * HF_ERR_CANCELED, HF_ERR_STORE, HF_ERR_NOMEM, HF_ERR_UNAVAILABLE: as for hf_query. */
HF_API HF_MUST_USE hf_status hf_update_with(hf_execution *execution, const char *name, hf_payload in,
                                            hf_payload *ret_out, const hf_update_options *options);
/* The same, but waits only until the update is accepted; hf_update_result then gives its outcome. `ret_update` may be
 * NULL. Fails: as hf_update; HF_ERR_FAILED: the update was rejected, or had failed already. */
HF_API HF_MUST_USE hf_status hf_update_start_with(hf_execution *execution, const char *name, hf_payload in,
                                                  hf_update_handle **ret_update, const hf_update_options *options);
/* Makes a handle for an update that was sent elsewhere, to the run that `execution` reaches. Does not check that the
 * update exists. Fails: HF_ERR_INVALID: the id is empty or has more than 1,000 bytes; HF_ERR_NOMEM, HF_ERR_MISUSE. */
HF_API HF_MUST_USE hf_status hf_update_handle_new(hf_execution *execution, const char *id,
                                                  hf_update_handle **ret_update);
HF_API void hf_update_handle_free(hf_update_handle *update); /* accepts NULL; the update goes on */
/* Valid until the handle is freed. */
HF_API const char *hf_update_handle_id(const hf_update_handle *update);
/* Waits for the outcome of an update (`ret_out` may be NULL). Fails: as hf_update; HF_ERR_NOT_FOUND: the run does not
 * know this update, because it was rejected, or lost before it was accepted. */
HF_API HF_MUST_USE hf_status hf_update_result_with(hf_update_handle *update, hf_payload *ret_out,
                                                   const hf_wait_options *options);
/* Asks the workflow to end: its waits return HF_ERR_CANCELED, its cleanup runs. The workflow gets `.reason` from
 * hf_error_text() and hf_cancel_cause, and hf_result reports it for a run that ended canceled. A second request, or
 * one for a workflow that has ended, changes nothing and returns HF_OK. Fails: HF_ERR_NOT_FOUND: there was never
 * such a workflow. HF_ERR_INVALID: `.reason` has more than 1,000 bytes. HF_ERR_CANCELED, HF_ERR_STORE, HF_ERR_NOMEM,
 * HF_ERR_UNAVAILABLE: as for hf_start. The limits of signals do not apply. */
HF_API HF_MUST_USE hf_status hf_cancel_with(hf_execution *execution, const hf_cancel_options *options);
/* Ends the workflow at once; its code is not told. Fails: HF_ERR_NOT_FOUND: there is no such workflow, or it has
 * ended. */
HF_API HF_MUST_USE hf_status hf_terminate_with(hf_execution *execution, const hf_terminate_options *options);
/* Goes back in time: a new run begins with the history of this one up to a workflow task, and continues from there with
 * the code that the workers have now. Signals and updates that came later are applied again. The current run is
 * terminated if it is open. `ret_execution` may be NULL; it becomes a handle of the workflow whose hf_result begins
 * with the new run.
 * Fails: HF_ERR_NOT_FOUND: there is no such workflow. HF_ERR_INVALID: not exactly one of .point, .event_id and
 * .activity_id is given, the event did not end a workflow task, the run has not scheduled this activity, or has not had
 * a workflow task. HF_ERR_LIMIT: too many resets are under way; try again in a moment. HF_ERR_CANCELED, HF_ERR_STORE,
 * HF_ERR_NOMEM, HF_ERR_UNAVAILABLE: as for hf_start. */
HF_API HF_MUST_USE hf_status hf_reset_with(hf_execution *execution, hf_execution **ret_execution,
                                           const hf_reset_options *options);

/* Describes a run: its status, times and attributes, and the activities and children that it waits for. It needs no
 * worker. Free the description with hf_description_free. Fails: HF_ERR_NOT_FOUND: there is no such workflow.
 * HF_ERR_CANCELED, HF_ERR_STORE, HF_ERR_NOMEM, HF_ERR_UNAVAILABLE: as for hf_start. */
HF_API HF_MUST_USE hf_status hf_describe(hf_execution *execution, hf_description **ret_description);
HF_API void hf_description_free(hf_description *description); /* accepts NULL */
/* "Running", "TimedOut"; "Unknown" for a number that is not a status. Never NULL. */
HF_API const char *hf_workflow_status_name(hf_workflow_status status);

HF_END_DECLS

HF_AUTO_DEFINE(hf_close, hf_service)
HF_AUTO_DEFINE(hf_execution_free, hf_execution)
HF_AUTO_DEFINE(hf_update_handle_free, hf_update_handle)
HF_AUTO_DEFINE(hf_description_free, hf_description)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_open(...) HF_OPEN_(__VA_ARGS__, .size = sizeof(hf_open_options))
#define HF_OPEN_(address, ret_service, ...) \
    hf_open_with((address), (ret_service), &(hf_open_options){__VA_ARGS__})
#define hf_start(...) HF_START_(__VA_ARGS__, .size = sizeof(hf_start_options))
#define HF_START_(service, type, in, ret_execution, ...) \
    hf_start_with((service), (type), (in), (ret_execution), &(hf_start_options){__VA_ARGS__})
#define hf_start_and_signal(...) HF_START_AND_SIGNAL_(__VA_ARGS__, .size = sizeof(hf_start_options))
#define HF_START_AND_SIGNAL_(service, type, in, signal, signal_in, ret_execution, ...) \
    hf_start_and_signal_with((service), (type), (in), (signal), (signal_in), (ret_execution), &(hf_start_options){__VA_ARGS__})
#define hf_start_and_update(...) HF_START_AND_UPDATE_(__VA_ARGS__, .size = sizeof(hf_start_options))
#define HF_START_AND_UPDATE_(service, type, in, update, update_in, ret_execution, ret_update, ...) \
    hf_start_and_update_with((service), (type), (in), (update), (update_in), (ret_execution), (ret_update), &(hf_start_options){__VA_ARGS__})
#define hf_execution_new(...) HF_EXECUTION_NEW_(__VA_ARGS__, .size = sizeof(hf_execution_options))
#define HF_EXECUTION_NEW_(service, id, ret_execution, ...) \
    hf_execution_new_with((service), (id), (ret_execution), &(hf_execution_options){__VA_ARGS__})
#define hf_result(...) HF_RESULT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_RESULT_(execution, ret_out, ...) \
    hf_result_with((execution), (ret_out), &(hf_wait_options){__VA_ARGS__})
#define hf_signal(...) HF_SIGNAL_(__VA_ARGS__, .size = sizeof(hf_signal_options))
#define HF_SIGNAL_(execution, name, in, ...) \
    hf_signal_with((execution), (name), (in), &(hf_signal_options){__VA_ARGS__})
#define hf_query(...) HF_QUERY_(__VA_ARGS__, .size = sizeof(hf_query_options), .file = __FILE__, .line = __LINE__)
#define HF_QUERY_(execution, name, in, ret_out, ...) \
    hf_query_with((execution), (name), (in), (ret_out), &(hf_query_options){__VA_ARGS__})
#define hf_update(...) HF_UPDATE_(__VA_ARGS__, .size = sizeof(hf_update_options))
#define HF_UPDATE_(execution, name, in, ret_out, ...) \
    hf_update_with((execution), (name), (in), (ret_out), &(hf_update_options){__VA_ARGS__})
#define hf_update_start(...) HF_UPDATE_START_(__VA_ARGS__, .size = sizeof(hf_update_options))
#define HF_UPDATE_START_(execution, name, in, ret_update, ...) \
    hf_update_start_with((execution), (name), (in), (ret_update), &(hf_update_options){__VA_ARGS__})
#define hf_update_result(...) HF_UPDATE_RESULT_(__VA_ARGS__, .size = sizeof(hf_wait_options), .file = __FILE__, .line = __LINE__)
#define HF_UPDATE_RESULT_(update, ret_out, ...) \
    hf_update_result_with((update), (ret_out), &(hf_wait_options){__VA_ARGS__})
#define hf_cancel(...) HF_CANCEL_(__VA_ARGS__, .size = sizeof(hf_cancel_options))
#define HF_CANCEL_(execution, ...) \
    hf_cancel_with((execution), &(hf_cancel_options){__VA_ARGS__})
#define hf_terminate(...) HF_TERMINATE_(__VA_ARGS__, .size = sizeof(hf_terminate_options))
#define HF_TERMINATE_(execution, ...) \
    hf_terminate_with((execution), &(hf_terminate_options){__VA_ARGS__})
#define hf_reset(...) HF_RESET_(__VA_ARGS__, .size = sizeof(hf_reset_options))
#define HF_RESET_(execution, ret_execution, ...) \
    hf_reset_with((execution), (ret_execution), &(hf_reset_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_open(const char *address, hf_service **ret_service,
    hf_open_options options = hf_open_options())
{
    options.size = sizeof options;
    return hf_open_with(address, ret_service, &options);
}
static inline HF_MUST_USE hf_status
hf_start(hf_service *service, const char *type, hf_payload in, hf_execution **ret_execution,
    hf_start_options options = hf_start_options())
{
    options.size = sizeof options;
    return hf_start_with(service, type, in, ret_execution, &options);
}
static inline HF_MUST_USE hf_status
hf_start_and_signal(hf_service *service, const char *type, hf_payload in, const char *signal, hf_payload signal_in, hf_execution **ret_execution,
    hf_start_options options = hf_start_options())
{
    options.size = sizeof options;
    return hf_start_and_signal_with(service, type, in, signal, signal_in, ret_execution, &options);
}
static inline HF_MUST_USE hf_status
hf_start_and_update(hf_service *service, const char *type, hf_payload in, const char *update, hf_payload update_in, hf_execution **ret_execution, hf_update_handle **ret_update,
    hf_start_options options = hf_start_options())
{
    options.size = sizeof options;
    return hf_start_and_update_with(service, type, in, update, update_in, ret_execution, ret_update, &options);
}
static inline HF_MUST_USE hf_status
hf_execution_new(hf_service *service, const char *id, hf_execution **ret_execution,
    hf_execution_options options = hf_execution_options())
{
    options.size = sizeof options;
    return hf_execution_new_with(service, id, ret_execution, &options);
}
static inline HF_MUST_USE hf_status
hf_result(hf_execution *execution, hf_payload *ret_out,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_result_with(execution, ret_out, &options);
}
static inline HF_MUST_USE hf_status
hf_signal(hf_execution *execution, const char *name, hf_payload in,
    hf_signal_options options = hf_signal_options())
{
    options.size = sizeof options;
    return hf_signal_with(execution, name, in, &options);
}
static inline HF_MUST_USE hf_status
hf_query(hf_execution *execution, const char *name, hf_payload in, hf_payload *ret_out,
    hf_query_options options = hf_query_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_query_with(execution, name, in, ret_out, &options);
}
static inline HF_MUST_USE hf_status
hf_update(hf_execution *execution, const char *name, hf_payload in, hf_payload *ret_out,
    hf_update_options options = hf_update_options())
{
    options.size = sizeof options;
    return hf_update_with(execution, name, in, ret_out, &options);
}
static inline HF_MUST_USE hf_status
hf_update_start(hf_execution *execution, const char *name, hf_payload in, hf_update_handle **ret_update,
    hf_update_options options = hf_update_options())
{
    options.size = sizeof options;
    return hf_update_start_with(execution, name, in, ret_update, &options);
}
static inline HF_MUST_USE hf_status
hf_update_result(hf_update_handle *update, hf_payload *ret_out,
    hf_wait_options options = hf_wait_options(), const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    options.size = sizeof options;
    options.file = file;
    options.line = line;
    return hf_update_result_with(update, ret_out, &options);
}
static inline HF_MUST_USE hf_status
hf_cancel(hf_execution *execution,
    hf_cancel_options options = hf_cancel_options())
{
    options.size = sizeof options;
    return hf_cancel_with(execution, &options);
}
static inline HF_MUST_USE hf_status
hf_terminate(hf_execution *execution,
    hf_terminate_options options = hf_terminate_options())
{
    options.size = sizeof options;
    return hf_terminate_with(execution, &options);
}
static inline HF_MUST_USE hf_status
hf_reset(hf_execution *execution, hf_execution **ret_execution,
    hf_reset_options options = hf_reset_options())
{
    options.size = sizeof options;
    return hf_reset_with(execution, ret_execution, &options);
}
#endif
/* clang-format on */

#endif
