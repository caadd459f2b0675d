/* hf_service: the connection to an engine. It starts workflows, waits for their results, signals and cancels them.
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
/* A handle of a workflow (from hf_execution_new), or of one of its runs (from hf_start, or with .run_id). */
typedef struct hf_execution hf_execution;

typedef struct hf_open_options {
    size_t size; /* set by the macro */
    /* Runtime whose pool, log and environment the service uses. NULL = the runtime of the calling fiber; on a plain
     * thread none: the service uses the operating system, and warnings and errors go to stderr. The service may outlive
     * the runtime and still calls its log function, so keep `log_state` valid until hf_close. */
    hf_runtime *runtime;
    const hf_codec *codec; /* for all payloads; kept until hf_close; NULL = none */
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
    const char *request_id; /* idempotency key, needs .id: repeating the last start of the id gives that run; NULL = a
                               random one */
} hf_start_options;

typedef struct hf_execution_options {
    size_t size;            /* set by the macro */
    const char *run_id;     /* NULL = the run that is current at each call */
    const char *namespace_; /* "default" */
} hf_execution_options;

typedef struct hf_signal_options {
    size_t size;            /* set by the macro */
    const char *request_id; /* idempotency key: calls with the same key send the signal once; NULL = a random one */
} hf_signal_options;

typedef struct hf_cancel_options {
    size_t size;        /* set by the macro */
    const char *reason; /* in the history, at most 1,000 bytes; NULL = none */
} hf_cancel_options;

typedef struct hf_terminate_options {
    size_t size;        /* set by the macro */
    const char *reason; /* in the history, at most 1,000 bytes; NULL = none */
} hf_terminate_options;

HF_BEGIN_DECLS

/* Opens the store that the address names. docs/guide/storage.md explains the keys, the files and crashes.
 *
 *     sqlite:PATH[?key=value&...]   runs the engine in this process, on this file, which is made (mode 0600) if need be
 *     memory:                       the same on a store that forgets, for tests
 *
 *     mem=48M            memory that it may use, at least 16M. A sixth holds pages of SQLite, half holds runs and
 *                        queues, and the rest is for requests and commits under way. Without mem= it is 8M for pages
 *                        and 64M for runs and queues. At most a quarter of the memory for runs, and at most 32M,
 *                        holds changes that are in the journal but not yet in the run's row. After a crash they are
 *                        read from the journal
 *     durability=full    a call that was answered survives a power cut (the default)
 *     durability=normal  faster; it survives the end of the process. A power cut, or a disk that fails to write, may
 *                        cost the last moments, but never leaves anything half done
 *     log=8M             the write-ahead log is moved into the file when it is longer
 *
 * One program at a time may have a file open. While it is open, three files lie beside it: PATH-wal (SQLite's
 * write-ahead log), PATH-owner (the lock of the owning process) and PATH-sock (the socket of the command `holdfast`,
 * mode 0600; missing, with a warning in the program's log, if the path is too long for a socket or another kind of file
 * has that name).
 * Fails: HF_ERR_INVALID (an address it does not know; a file that is damaged, or is not a Holdfast database),
 * HF_ERR_EXISTS (another process has the file open; the sentence names it), HF_ERR_UNSUPPORTED (written by a newer
 * version), HF_ERR_NOT_FOUND (no such folder), HF_ERR_DENIED, HF_ERR_CONFLICT (open under another name),
 * HF_ERR_FULL, HF_ERR_IO, HF_ERR_NOMEM, HF_ERR_LIMIT. A file that cannot be opened is left as it is. */
HF_API HF_MUST_USE hf_status hf_open_with(const char *address, hf_service **ret_service,
                                          const hf_open_options *options);
/* Waits until everything accepted is stored. Before it, free its executions and let hf_worker_run return. HF_AUTO
 * releases variables in reverse order, so declare the service before them. Accepts NULL.
 * Fails: HF_ERR_MISUSE: a worker still runs, or an execution is not freed (the service stays open); or the process was
 * made by fork() and cannot use the service of its parent. HF_ERR_IO and others: the last changes could not be stored;
 * the service is closed and freed all the same. */
HF_API hf_status hf_close(hf_service *service);

/* Starts a workflow of this type; it runs on whichever worker polls its task queue. `in` is borrowed. `ret_execution`
 * may be NULL. A program that may be started again and must not repeat an ended workflow passes
 * HF_ID_CONFLICT_USE_EXISTING and HF_ID_REUSE_REJECT, and calls hf_execution_new after HF_ERR_EXISTS.
 * Fails: HF_ERR_EXISTS (see id_reuse and id_conflict), HF_ERR_INVALID (an id or name is empty or has more than 1,000
 * bytes, a time is negative or less than a millisecond), HF_ERR_TOO_BIG (`in` has more than 2 MiB), HF_ERR_CANCELED,
 * HF_ERR_STORE; HF_ERR_NOMEM, and HF_ERR_UNAVAILABLE while the engine restarts after running out of memory. */
HF_API HF_MUST_USE hf_status hf_start_with(hf_service *service, const char *type, hf_payload in,
                                           hf_execution **ret_execution, const hf_start_options *options);
/* Makes a handle for a workflow that was started elsewhere. Does not check that the workflow exists. */
HF_API HF_MUST_USE hf_status hf_execution_new_with(hf_service *service, const char *id, hf_execution **ret_execution,
                                                   const hf_execution_options *options);
HF_API void hf_execution_free(hf_execution *execution); /* accepts NULL; the workflow goes on */
/* Valid until the execution is freed. The run id is "" if no run is fixed: each call then uses the current one. */
HF_API const char *hf_execution_id(const hf_execution *execution);
HF_API const char *hf_execution_run_id(const hf_execution *execution);

/* Waits for the end and gives the result (`ret_out` may be NULL). A timeout or a canceled scope ends the wait early.
 * hf_close cannot end it: it fails with HF_ERR_MISUSE while an execution is not freed.
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
 * never takes another; or 100 events or 2 MiB already wait until its running workflow task ends. In the second case try
 * again in a moment. hf_error_text() says which case it is. HF_ERR_INVALID: the name is empty or has more than 1,000
 * bytes. HF_ERR_TOO_BIG: `in` has more than 2 MiB. HF_ERR_CANCELED, HF_ERR_STORE, HF_ERR_NOMEM, HF_ERR_UNAVAILABLE:
 * as for hf_start. */
HF_API HF_MUST_USE hf_status hf_signal_with(hf_execution *execution, const char *name, hf_payload in,
                                            const hf_signal_options *options);
/* Asks the workflow to end: its waits return HF_ERR_CANCELED, its cleanup runs. The workflow gets `.reason` from
 * hf_error_text() and hf_cancel_cause, and hf_result reports it for a run that ended canceled. A second request, or
 * one for a workflow that has ended, changes nothing and returns HF_OK. Fails: HF_ERR_NOT_FOUND: there was never
 * such a workflow; HF_ERR_LIMIT: as for hf_signal; the limit of 10,000 signals does not apply. */
HF_API HF_MUST_USE hf_status hf_cancel_with(hf_execution *execution, const hf_cancel_options *options);
/* Ends the workflow at once; its code is not told. Fails: HF_ERR_NOT_FOUND: there is no such workflow, or it has
 * ended. */
HF_API HF_MUST_USE hf_status hf_terminate_with(hf_execution *execution, const hf_terminate_options *options);

HF_END_DECLS

HF_AUTO_DEFINE(hf_close, hf_service)
HF_AUTO_DEFINE(hf_execution_free, hf_execution)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_open(...) HF_OPEN_(__VA_ARGS__, .size = sizeof(hf_open_options))
#define HF_OPEN_(address, ret_service, ...) \
    hf_open_with((address), (ret_service), &(hf_open_options){__VA_ARGS__})
#define hf_start(...) HF_START_(__VA_ARGS__, .size = sizeof(hf_start_options))
#define HF_START_(service, type, in, ret_execution, ...) \
    hf_start_with((service), (type), (in), (ret_execution), &(hf_start_options){__VA_ARGS__})
#define hf_execution_new(...) HF_EXECUTION_NEW_(__VA_ARGS__, .size = sizeof(hf_execution_options))
#define HF_EXECUTION_NEW_(service, id, ret_execution, ...) \
    hf_execution_new_with((service), (id), (ret_execution), &(hf_execution_options){__VA_ARGS__})
#define hf_result(...) HF_RESULT_(__VA_ARGS__, .size = sizeof(hf_wait_options))
#define HF_RESULT_(execution, ret_out, ...) \
    hf_result_with((execution), (ret_out), &(hf_wait_options){__VA_ARGS__})
#define hf_signal(...) HF_SIGNAL_(__VA_ARGS__, .size = sizeof(hf_signal_options))
#define HF_SIGNAL_(execution, name, in, ...) \
    hf_signal_with((execution), (name), (in), &(hf_signal_options){__VA_ARGS__})
#define hf_cancel(...) HF_CANCEL_(__VA_ARGS__, .size = sizeof(hf_cancel_options))
#define HF_CANCEL_(execution, ...) \
    hf_cancel_with((execution), &(hf_cancel_options){__VA_ARGS__})
#define hf_terminate(...) HF_TERMINATE_(__VA_ARGS__, .size = sizeof(hf_terminate_options))
#define HF_TERMINATE_(execution, ...) \
    hf_terminate_with((execution), &(hf_terminate_options){__VA_ARGS__})
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
hf_execution_new(hf_service *service, const char *id, hf_execution **ret_execution,
    hf_execution_options options = hf_execution_options())
{
    options.size = sizeof options;
    return hf_execution_new_with(service, id, ret_execution, &options);
}
static inline HF_MUST_USE hf_status
hf_result(hf_execution *execution, hf_payload *ret_out,
    hf_wait_options options = hf_wait_options())
{
    options.size = sizeof options;
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
#endif
/* clang-format on */

#endif
