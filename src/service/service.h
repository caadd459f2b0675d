/* hf_service: the interface between clients and workers on one side and an engine on the other.
 *
 * One interface, many doors (docs/adr/0006): the engine in this process implements it; a gRPC server, an HTTP API and
 * the C worker are callers; a gRPC client (src/remote) is a second implementation. Requests and responses are the structs
 * generated from proto/, with Temporal's names and field numbers: there is no second type system.
 *
 * A call is an object of the caller's, usually on the stack of the fiber that waits for it or inside a poller. It is
 * submitted once and done once:
 *
 *     hf_pb_signal_workflow_execution_request request = {.namespace = ..., ...};
 *     hf_call call;
 *     hf_call_init(&call, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &request, &arena, done);
 *     hf_service_submit(service, &call);           never waits
 *     ... done(&call) runs on a thread of the service: it must be short and must not wait
 *
 * service-V1  done is called exactly once for every submitted call, also when the service stops (HF_ERR_STORE,
 *     HF_ERR_CLOSED).
 * service-V2  The facts in a response are durable before done is called. One exception: a workflow task for a poll with
 *     run_ahead may be given out before the commit that started it, because workflow code has no effects of its own. If the
 *     commit fails, or its process dies before, the task is undone: its token is refused, and the worker drops the run.
 * service-V3  request is borrowed until done; response and everything it points to live in the caller's arena.
 * service-V4  A thread that cancels a call becomes a guest of the service while that call is not done. close ends
 *     all calls and then waits for the guests, so that the service is there until the last of them has left. */
#ifndef HF_SERVICE_SERVICE_H
#define HF_SERVICE_SERVICE_H

#include "base/arena.h"
#include "base/heap.h"
#include "base/latch.h"
#include "base/list.h"
#include "base/op.h"
#include "base/spin.h"

#include "proto/pb.h"

#include <stdatomic.h>

#include <holdfast/payload.h>

/* The calls of this version. The second word is the stem of the messages: hf_pb_<stem>_request and _response. */
#define HF_METHOD_MAP(X)                                                                        \
    X(HF_METHOD_START_WORKFLOW_EXECUTION, start_workflow_execution)                             \
    X(HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, signal_workflow_execution)                           \
    X(HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, request_cancel_workflow_execution)           \
    X(HF_METHOD_TERMINATE_WORKFLOW_EXECUTION, terminate_workflow_execution)                     \
    X(HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, describe_workflow_execution)                       \
    X(HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, get_workflow_execution_history)                 \
    X(HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, poll_workflow_task_queue)                             \
    X(HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, respond_workflow_task_completed)               \
    X(HF_METHOD_RESPOND_WORKFLOW_TASK_FAILED, respond_workflow_task_failed)                     \
    X(HF_METHOD_RESET_STICKY_TASK_QUEUE, reset_sticky_task_queue)                               \
    X(HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, poll_activity_task_queue)                             \
    X(HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, respond_activity_task_completed)               \
    X(HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, respond_activity_task_failed)                     \
    X(HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED, respond_activity_task_canceled)                 \
    X(HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT, record_activity_task_heartbeat)                 \
    X(HF_METHOD_SHUTDOWN_WORKER, shutdown_worker)                                               \
    X(HF_METHOD_GET_SYSTEM_INFO, get_system_info)                                               \
    X(HF_METHOD_DESCRIBE_NAMESPACE, describe_namespace)                                         \
    X(HF_METHOD_DESCRIBE_TASK_QUEUE, describe_task_queue)                                       \
    X(HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION, signal_with_start_workflow_execution)     \
    X(HF_METHOD_QUERY_WORKFLOW, query_workflow)                                                 \
    X(HF_METHOD_UPDATE_WORKFLOW_EXECUTION, update_workflow_execution)                           \
    X(HF_METHOD_POLL_WORKFLOW_EXECUTION_UPDATE, poll_workflow_execution_update)                 \
    X(HF_METHOD_EXECUTE_MULTI_OPERATION, execute_multi_operation)                               \
    X(HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE, get_workflow_execution_history_reverse) \
    X(HF_METHOD_RESPOND_QUERY_TASK_COMPLETED, respond_query_task_completed)                     \
    X(HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED_BY_ID, respond_activity_task_completed_by_id)   \
    X(HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED_BY_ID, respond_activity_task_failed_by_id)         \
    X(HF_METHOD_RESPOND_ACTIVITY_TASK_CANCELED_BY_ID, respond_activity_task_canceled_by_id)     \
    X(HF_METHOD_RECORD_ACTIVITY_TASK_HEARTBEAT_BY_ID, record_activity_task_heartbeat_by_id)     \
    X(HF_METHOD_RESET_WORKFLOW_EXECUTION, reset_workflow_execution)                             \
    X(HF_METHOD_DELETE_WORKFLOW_EXECUTION, delete_workflow_execution)                           \
    X(HF_METHOD_UPDATE_WORKFLOW_EXECUTION_OPTIONS, update_workflow_execution_options)           \
    X(HF_METHOD_PAUSE_ACTIVITY, pause_activity)                                                 \
    X(HF_METHOD_UNPAUSE_ACTIVITY, unpause_activity)                                             \
    X(HF_METHOD_RESET_ACTIVITY, reset_activity)                                                 \
    X(HF_METHOD_UPDATE_ACTIVITY_OPTIONS, update_activity_options)                               \
    X(HF_METHOD_TELL_LISTENER, tell_listener) /* the engine's own: from run to run */           \
    X(HF_METHOD_LIST_WORKFLOW_EXECUTIONS, list_workflow_executions)                             \
    X(HF_METHOD_SCAN_WORKFLOW_EXECUTIONS, scan_workflow_executions)                             \
    X(HF_METHOD_COUNT_WORKFLOW_EXECUTIONS, count_workflow_executions)                           \
    X(HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS, list_open_workflow_executions)                   \
    X(HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS, list_closed_workflow_executions)               \
    X(HF_METHOD_REGISTER_NAMESPACE, register_namespace)                                         \
    X(HF_METHOD_UPDATE_NAMESPACE, update_namespace)                                             \
    X(HF_METHOD_DEPRECATE_NAMESPACE, deprecate_namespace)                                       \
    X(HF_METHOD_LIST_NAMESPACES, list_namespaces)                                               \
    X(HF_METHOD_ADD_SEARCH_ATTRIBUTES, add_search_attributes)                                   \
    X(HF_METHOD_REMOVE_SEARCH_ATTRIBUTES, remove_search_attributes)                             \
    X(HF_METHOD_LIST_SEARCH_ATTRIBUTES, list_search_attributes)                                 \
    X(HF_METHOD_GET_SEARCH_ATTRIBUTES, get_search_attributes)                                   \
    X(HF_METHOD_GET_CLUSTER_INFO, get_cluster_info)                                             \
    /* the clock of an engine for tests */                                                      \
    X(HF_METHOD_LOCK_TIME_SKIPPING, lock_time_skipping)                                         \
    X(HF_METHOD_UNLOCK_TIME_SKIPPING, unlock_time_skipping)                                     \
    X(HF_METHOD_SLEEP, sleep)                                                                   \
    X(HF_METHOD_SLEEP_UNTIL, sleep_until)                                                       \
    X(HF_METHOD_UNLOCK_TIME_SKIPPING_WITH_SLEEP, unlock_time_skipping_with_sleep)               \
    X(HF_METHOD_GET_CURRENT_TIME, get_current_time)                                             \
    X(HF_METHOD_START_BATCH_OPERATION, start_batch_operation)                                   \
    X(HF_METHOD_STOP_BATCH_OPERATION, stop_batch_operation)                                     \
    X(HF_METHOD_DESCRIBE_BATCH_OPERATION, describe_batch_operation)                             \
    X(HF_METHOD_LIST_BATCH_OPERATIONS, list_batch_operations)                                   \
    X(HF_METHOD_DELETE_NAMESPACE, delete_namespace)                                             \
    X(HF_METHOD_READ_STREAM, read_stream)                                                       \
    X(HF_METHOD_READ_CHANGES, read_changes)                                                     \
    X(HF_METHOD_LIST_TASK_QUEUES, list_task_queues)

typedef enum hf_method {
#define HF_METHOD_ENUM(name, stem) name,
    HF_METHOD_MAP(HF_METHOD_ENUM)
#undef HF_METHOD_ENUM
        HF_METHOD_COUNT
} hf_method;

/* "SignalWorkflowExecution", the types of its messages, their sizes. */
typedef struct hf_method_info {
    const char *name;
    const hf_pb_type *request_type;
    const hf_pb_type *response_type;
    size_t response_len; /* bytes of the response struct */
} hf_method_info;

const hf_method_info *hf_method_info_of(hf_method method);

/* Times of SleepUntil (ns) that are not times, in an engine for tests: until nothing runs, and until nothing can happen any more. */
#define HF_SLEEP_UNTIL_SETTLED 1
#define HF_SLEEP_UNTIL_IDLE INT64_MAX

/* Whether it moves or reads the clock of an engine for tests: TestService. */
static inline bool hf_method_is_of_clock(hf_method method)
{
    return method >= HF_METHOD_LOCK_TIME_SKIPPING && method <= HF_METHOD_GET_CURRENT_TIME;
}

typedef struct hf_call hf_call;
typedef struct hf_service hf_service;
typedef struct hf_witness hf_witness;

/* Who made a call. A core makes calls of its own, each kind part of another struct. */
typedef enum hf_call_maker {
    HF_CALL_OF_CLIENT,
    HF_CALL_OF_RUN,       /* a message from one run to another: hf_message */
    HF_CALL_OF_DELETION,  /* looks at another run of an id: hf_deletion */
    HF_CALL_OF_RESET,     /* the same: hf_reset */
    HF_CALL_OF_RETENTION, /* deletes a run whose time is over: hf_retiring */
    HF_CALL_OF_OPERATION, /* counts or lists runs: hf_operation */
    HF_CALL_OF_CALL       /* a part of a call that consists of several */
} hf_call_maker;

struct hf_call {
    /* Set by the caller. */
    hf_method method;
    const void *request;         /* hf_pb_<stem>_request; borrowed until done */
    hf_arena *arena;             /* the caller's: the response and its strings; untouched by the caller until done */
    void (*done)(hf_call *call); /* from a thread of the service, once; must not wait */
    void *state;                 /* the caller's own */
    const char *verb;   /* function that the program called, for messages; a constant; NULL = the method's name */
    hf_str workflow_id; /* named after the verb in messages; empty = none; borrowed until done */
    hf_span timeout;    /* long polls: time after which they are answered without a task; 0 = the method's default */
    bool in_process;    /* the caller dies with this process: its tasks are handed out again at the next opening */
    bool run_ahead;     /* a workflow task may be given out before its commit; only with in_process */
    bool lets_go;       /* of a heartbeat: this process holds the attempt no longer, and somebody else will answer it */
    bool replays;       /* of a history: it ends with the events of a workflow task that are not written yet */
    /* Of a history: wall ns. It is answered only with a page token that came with a task, or while a task is in hand that was handed
     * out before this time, and else fails with HF_ERR_DENIED; 0 = always. For an engine of this process. */
    int64_t handed_before;

    /* Set by the service before done. */
    hf_status status;              /* HF_OK: `response` is set; else the reason */
    void *response;                /* hf_pb_<stem>_response in `arena`; NULL unless status is HF_OK */
    const hf_pb_type *detail_type; /* of a failure: a message of errordetails.v1, for programs; NULL = none */
    const void *detail;            /* that message, in `arena` or a constant */
    bool is_final;                 /* with HF_ERR_LIMIT: this limit does not pass */
    const char *words;      /* what a Temporal server says instead of `message`; lives as `response`; NULL = the same */
    hf_span retry_after;    /* with HF_ERR_UNAVAILABLE or HF_ERR_FULL: when to try again; 0 = nobody knows */
    hf_str existing_run_id; /* with HF_ERR_EXISTS from a start: the run that is in the way */
    int32_t task_failed_cause; /* of commands that were refused: hf_pb_workflow_task_failed_cause; 0 = no cause */
    char message[HF_MESSAGE_LEN_MAX]; /* the sentence of a failure: for people, never compared */

    /* The service's own. */
    hf_node link;          /* of the list that holds the call now */
    hf_node all;           /* of all calls that are not done ... */
    hf_node by_number;     /* ... and of those whose number falls into the same bucket */
    hf_heap_node deadline; /* of a parked poll ... */
    hf_node deadline_link; /* ... or its place in the list of polls that all have the default timeout */
    uint64_t number;       /* order of arrival, from 1; set by submit; names the call in a cancel */
    void *parked;          /* the object it waits for: a queue, a watch */
    int place;             /* which of them */
    int holds;             /* events that must come before done: its commit, a read */
    int64_t led_to;        /* number of a later run of its chain that it goes on with; 0 = of none */
    int hops;              /* runs that it was led to so far */
    hf_call_maker maker;   /* who made it; a core answers its own calls at once, inside the step */
};

typedef struct hf_service_ops {
    void (*submit)(hf_service *service, hf_call *call);
    /* The caller no longer needs the answer (a stream is gone, a worker stops). done still comes, soon: with
     * HF_ERR_CANCELED, or with an answer that was decided before. A task in such an answer goes to another poller when
     * `unwanted` is called. If the call is done by now, nothing happens: numbers are never used again. The caller is a
     * guest (service-V4). */
    void (*cancel)(hf_service *service, uint64_t number);
    /* A poll's answer could not be handed on: the same task (attempt, event, token) goes to the next poller. A service with
     * takes_nothing_back knows no such call. */
    void (*unwanted)(hf_service *service, hf_str task_token);
    /* Refuses new calls, ends all others, frees the service. Waits for the store, never for callers' code. */
    hf_status (*close)(hf_op *op, hf_service *service);
    /* HF_OK, or HF_ERR_MISUSE in a process that fork() made, which cannot call the service. Makes no call. NULL =
     * always HF_OK. */
    hf_status (*check)(hf_op *op, const hf_service *service);
} hf_service_ops;

/* Implementations embed this as their first member. */
struct hf_service {
    const hf_service_ops *ops;
    const hf_codec *codec;    /* of the program, for the payloads of all calls; NULL = none */
    hf_header_hook on_header; /* of the program, for headers that go out; NULL = none */
    void *on_header_arg;
    const char *namespace_;  /* for calls that name none; NULL = "default"; lives as long as the service */
    bool is_remote;          /* the engine is in another process: it may be out of reach for a while */
    bool is_foreign;         /* it is not Holdfast's: it would ignore fields that only Holdfast has */
    bool takes_nothing_back; /* `unwanted` does nothing: a task that nobody plays has to be answered as failed */
    atomic_int workers;      /* workers that run on it: it cannot be closed before they end */
    atomic_int executions;   /* handles that are not freed: it cannot be closed before they are */
    atomic_int updates;      /* the same, handles of updates */
    hf_guests guests;        /* threads that are inside cancel: service-V4 */
    hf_spin witness_lock;
    hf_witness *witnesses; /* see witness.h */
};

/* What a failure says to programs if nothing better is known, by its status alone: a constant. False: nothing. */
bool hf_status_detail(hf_status status, const hf_pb_type **ret_type, const void **ret_detail);
/* Replaces whatever the call has said so far by this failure, with the detail of its status. */
void hf_call_set_failure(hf_call *call, hf_status status, const char *why);

void hf_call_init(hf_call *call, hf_method method, const void *request, hf_arena *arena, void (*done)(hf_call *call));

static inline hf_status hf_service_check(hf_op *op, const hf_service *service)
{
    return service->ops->check != NULL ? service->ops->check(op, service) : HF_OK;
}

/* The namespace that a call names, or the one that its service has for all others. */
static inline hf_str hf_namespace_or(const char *given, const hf_service *service)
{
    return hf_str_of(given != NULL ? given : service->namespace_ != NULL ? service->namespace_ : "default");
}

static inline void hf_service_submit(hf_service *service, hf_call *call)
{
    service->ops->submit(service, call);
}

#endif
