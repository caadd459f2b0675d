/* hf_worker: runs workflows and activities of one task queue. A whole program, which starts a worker and then uses it:
 *
 *     #include <holdfast/holdfast.h>
 *     #include <stdio.h>
 *
 *     static hf_status charge(hf_payload in, hf_payload *ret_out)
 *     {
 *         printf("charging for %s\n", (const char *)in.data);
 *         return hf_payload_printf(ret_out, "{\"receipt\": 4711}");
 *     }
 *
 *     static hf_status order(hf_payload in, hf_payload *ret_out)
 *     {
 *         return hf_activity_run("charge", in, ret_out, .start_to_close = hf_seconds(30));
 *     }
 *
 *     static hf_status program(void *arg)
 *     {
 *         (void)arg;
 *         HF_AUTO(hf_close) hf_service *service = NULL;
 *         HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
 *         HF_AUTO(hf_execution_free) hf_execution *bought = NULL;
 *         HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
 *         HF_TRY(hf_open("sqlite:orders.db", &service));
 *         HF_TRY(hf_worker_new(service, "orders", &worker));
 *         HF_TRY(hf_worker_add_workflow(worker, "order", order));
 *         HF_TRY(hf_worker_add_activity(worker, "charge", charge));
 *         HF_TRY(hf_worker_start(worker));
 *
 *         hf_payload in = hf_payload_of_json("{\"item\": 7}");
 *         HF_TRY(hf_start(service, "order", in, &bought, .task_queue = "orders"));
 *         HF_TRY(hf_result(bought, &out));
 *         printf("%s\n", (const char *)out.data);
 *         HF_TRY(hf_worker_stop(worker));
 *         return hf_worker_wait(worker);
 *     }
 *
 *     int main(void)
 *     {
 *         HF_OR_DIE(hf_run(program, NULL));
 *         return 0;
 *     }
 *
 * On every path out of program() hf_worker_free stops the worker if it still runs, and waits until it has ended. A
 * program that is nothing but a worker calls hf_worker_run instead, which returns when the worker has stopped:
 *
 *     HF_TRY(hf_worker_new(service, "orders", &worker, .stop_on = SIGTERM));
 *     ...
 *     return hf_worker_run(worker);
 *
 * Workflows run on fibers. Between their workflow tasks they stay in memory, as many as fit; the others are replayed
 * when something happens to them. Activities run on threads of their own, one each, or on fibers if they never block.
 * An activity that does not end after its cancel becomes a zombie (activity.h) and no longer counts for activities_max.
 * There are at most 1,024 threads. So activities_max may be larger only if all activities run on fibers; HF_UNLIMITED
 * means 1,024 if one of them needs a thread.
 *
 * The tasks of a queue are handed out in the order in which they came. Work that must not wait behind the rest, such as
 * a charge behind thousands of mails, gets a queue and a worker of its own: .task_queue of hf_activity_run names the
 * queue.
 *
 * A workflow, and an activity on a fiber, has a stack of the runtime's default class: about 60,000 bytes unless
 * .stack_size of hf_run or hf_runtime_new, or of the options below, says otherwise. An activity on a thread has
 * 1 MiB. */
#ifndef HOLDFAST_WORKER_H
#define HOLDFAST_WORKER_H

#include <holdfast/activity.h>
#include <holdfast/memo.h>
#include <holdfast/service.h>
#include <holdfast/workflow.h>

typedef struct hf_worker hf_worker;

typedef struct hf_worker_options {
    size_t size;            /* set by the macro */
    hf_runtime *runtime;    /* runtime to run on; NULL = the caller's, if it is a fiber, else a new one */
    int stop_on;            /* POSIX signal that stops this worker, such as SIGTERM; several may share one; 0 = none */
    const char *namespace_; /* "default" */
    const char *identity;   /* name of this worker in histories; "PID@HOST@QUEUE" */
    int workflows_max;      /* workflow tasks at once; 200, HF_UNLIMITED */
    int activities_max;     /* activities at once; 200, HF_OFF = none are polled for, HF_UNLIMITED */
    int cached_max;         /* workflows kept in memory between workflow tasks; 1000, HF_OFF = none, HF_UNLIMITED */
    int64_t cached_bytes_max; /* the same in bytes, roughly; 256 MiB, HF_UNLIMITED */
    int pollers_max;          /* polls for workflow tasks under way; 64 */
    int activity_pollers_max; /* polls for activities under way; 64 */
    hf_span sticky_timeout;   /* time that a workflow task waits for the worker that has the workflow cached; then any
                                 worker may take it; 10 s */
    hf_span shutdown_grace;   /* stopping: time for activities to finish; 10 s, HF_SPAN_OFF = none */
    hf_span shutdown_force;   /* time for them to end after they were canceled; then they are left behind; 5 s */
    hf_span idle_timeout;     /* a workflow that has waited that long leaves memory, perhaps a second later; it comes
                                 back when something happens to it; 60 s, HF_SPAN_OFF = only cached_max counts */
    bool is_strict;           /* a workflow whose type was not added fails, with type "NotFound"; else it waits for a
                                 worker that has the type, and its workflow task fails meanwhile */
    bool fails_on_conflict;   /* a workflow whose code does not do what its history says fails, with type
                                 "NotDeterministic"; else it waits for the right code */
    /* Activities that this worker begins in a second, on average. After a quiet time it may begin as many at once as it
     * may begin in one second. 0.1 is one in ten seconds; 0.000001 to 1,000,000,000; 0 = any number. */
    double activities_per_second;
    /* The same for all workers of the task queue together: the service hands out no more. Workers of a queue should
     * agree, because the last poll that names a number decides. 0 = any number. */
    double queue_activities_per_second;
    int local_activities_max;   /* local activities and side effects at once (local.h); 100, at most 512 */
    hf_span heartbeat_throttle; /* time between two heartbeats that are sent for an activity without .heartbeat; 30 s,
                                   at most 60 s */
} hf_worker_options;

typedef enum hf_worker_health {
    HF_WORKER_NEW,      /* it was not started */
    HF_WORKER_STARTING, /* it does not poll yet */
    HF_WORKER_READY,
    HF_WORKER_DEGRADED, /* it works, but polls fail, or code of its workflows and activities does not end */
    HF_WORKER_STOPPING,
    HF_WORKER_STOPPED, /* hf_worker_run or hf_worker_wait has returned HF_OK, or will do so */
    HF_WORKER_FAILED   /* the same with another status */
} hf_worker_health;

/* What a worker has and has done. */
typedef struct hf_worker_stats {
    hf_worker_health health;
    uint64_t resident;         /* workflows in memory now */
    uint64_t bytes;            /* memory that they use, roughly */
    uint64_t released;         /* workflows that left memory while they waited, so far */
    uint64_t replays;          /* times a workflow was replayed from its first event, so far */
    uint64_t conflicts;        /* workflow tasks whose code did not do what the history says, so far */
    uint64_t activities;       /* activities that run now, zombies included */
    uint64_t activity_zombies; /* those of them whose slot went to another one, because they do not end */
    uint64_t workflow_zombies; /* workflows that have not yielded for stuck_after and zombie_after (runtime.h) */
    uint64_t stuck;            /* workflows that have not yielded for stuck_after, zombies included */
    uint64_t dropped;          /* fibers of workflows that left memory but went on calling, so far; no code of them runs
                                  any more (HF_ERR_EVICTED in workflow.h) */
} hf_worker_stats;

typedef struct hf_worker_add_workflow_options {
    size_t size; /* set by the macro */
    void *arg;   /* hf_workflow_info()->arg. Code that depends on it must find the same in a replay, so keep what it
                    points to unchanged as long as runs live: configuration, not state */
    size_t stack_size; /* of its fibers and its handlers', as .stack_size of hf_fork; 0 = the runtime's default */
} hf_worker_add_workflow_options;

typedef struct hf_worker_add_activity_options {
    size_t size; /* set by the macro */
    /* Run it on a fiber instead of a thread. It must wait only through the library: an activity that blocks holds up
     * other fibers. Cheaper, and thousands may run at once. */
    bool on_fiber;
    void *arg;         /* hf_activity_arg() in the activity: a pool of connections, say; it must outlive the worker */
    size_t stack_size; /* with .on_fiber: of its fiber, as .stack_size of hf_fork; 0 = the runtime's default */
    /* Answers are kept, and equal inputs share one call: .memo = hf_depot_memo(depot). Such an activity cannot return
     * HF_PENDING, and its name has at most 100 bytes. */
    hf_memo memo;
} hf_worker_add_activity_options;

typedef struct hf_worker_add_command_options {
    size_t size;            /* set by the macro */
    const char *const *env; /* "NAME=value", NULL-terminated; NULL = the host's environment */
    const char *cwd;        /* NULL = the host's */
    hf_span kill_after;     /* time between SIGTERM and SIGKILL; 1 s, HF_SPAN_OFF = SIGKILL at once */
} hf_worker_add_command_options;

HF_BEGIN_DECLS

/* The name of a task queue has 1 to 963 bytes. Fails: HF_ERR_NOMEM, HF_ERR_LIMIT, HF_ERR_INVALID; HF_ERR_MISUSE in a
 * process that fork() made, with the service of its parent. */
HF_API HF_MUST_USE hf_status hf_worker_new_with(hf_service *service, const char *task_queue, hf_worker **ret_worker,
                                                const hf_worker_options *options);
/* Call these before the worker runs. The name is copied. Fails: HF_ERR_EXISTS: the name is taken; HF_ERR_INVALID: the
 * name is empty or too long; .stack_size is above 256 K, or the activity is not .on_fiber, whose thread has 1 MiB; or
 * activities_max is a number above 1,024 and the activity is not .on_fiber; .memo does not fit;
 * HF_ERR_MISUSE: the worker runs or has run; HF_ERR_NOMEM. */
HF_API HF_MUST_USE hf_status hf_worker_add_workflow_with(hf_worker *worker, const char *name, hf_function workflow,
                                                         const hf_worker_add_workflow_options *options);
HF_API HF_MUST_USE hf_status hf_worker_add_activity_with(hf_worker *worker, const char *name, hf_function activity,
                                                         const hf_worker_add_activity_options *options);
/* A program as an activity: `argv` as it is, never through a shell; argv[0] is looked up in PATH if it has no slash.
 * Everything is copied.
 *
 *     stdin    the input's bytes. JSON stays JSON text
 *     stdout   the result: JSON if it is JSON, else bytes; a newline at the end is left out; nothing: no result. More than
 *              2 MiB is a final failure ("TooBig")
 *     stderr   lines "heartbeat JSON" are heartbeats with these details, if they have at most 64 KiB. The end of the rest
 *              is in the message of a failure
 *     exit     0 is success; 64 is a final failure; any other code is tried again, and so is an end by a signal. The type
 *              is "Exit3" or "Signal9", and the details are {"code":3,"signal":0}
 *
 * The environment has HOLDFAST_WORKFLOW_ID, HOLDFAST_RUN_ID, HOLDFAST_ACTIVITY_ID, HOLDFAST_ACTIVITY_NAME and
 * HOLDFAST_ATTEMPT, so that the program has a key that all attempts share.
 *
 * When the program ends, everything that it started is killed, also what it has moved to other groups or sessions. The same
 * happens when the activity is canceled, by its workflow, a timeout or the end of the worker: the program's group gets
 * SIGTERM, and everything SIGKILL after .kill_after. It happens at once if the worker's process dies, also by kill -9.
 *
 * Fails: as hf_worker_add_activity; HF_ERR_MISUSE: argv is empty; HF_ERR_INVALID: .kill_after is negative or less than a
 * millisecond. */
HF_API HF_MUST_USE hf_status hf_worker_add_command_with(hf_worker *worker, const char *name, const char *const *argv,
                                                        const hf_worker_add_command_options *options);
/* Polls for workflows if one was added, for activities if one was, and works until hf_worker_stop, the signal or a
 * cancel of the caller, which all give HF_OK. Then it takes nothing new, lets activities finish (shutdown_grace),
 * cancels them (shutdown_force), and returns when all have ended or shutdown_force is over. Workflows stay where they
 * are: another worker continues them.
 *
 * It also stops when the runtime takes no new work because of too many zombies (watchdog.zombies_max).
 *
 * HF_ERR_TIMEOUT: some activities did not end when they were canceled, or some workflows do not yield. The log names
 * them, and they are left behind: the service may be closed and the worker freed, but they keep their threads and the
 * runtime, and hf_runtime_free fails until they have ended. A program that has nothing else to do can simply end.
 *
 * Workflows that do not yield: a workflow that runs for longer than watchdog.stuck_after without waiting is logged. Its
 * workflow task is answered as failed, and the run is replayed from its history at once, on a new fiber of this worker or
 * by another worker. If the second fiber does not yield either, this worker drops tasks of that run until one of the
 * two has returned to the library (workflow_task_dropped in the log). What happens to its thread depends on the runtime:
 *
 *   - with watchdog.signal set, the thread is replaced, and everything else goes on;
 *   - without it, the workflow keeps the thread and what belongs to it. If a fiber of that thread called hf_worker_run,
 *     that call returns only after the workflow has yielded; the log then has worker_cannot_return. A plain thread in
 *     hf_worker_run, hf_worker_stop and .stop_on are not affected;
 *   - on a runtime without threads (HF_OFF) workflows run on the thread that turns it, which cannot be replaced. If
 *     that thread called hf_worker_run, the call returns when the workflow does.
 *
 * On a runtime without threads, a plain thread in hf_worker_run drives the runtime itself, unless a thread has already
 * called hf_runtime_turn. A fiber of another runtime cannot drive it: hf_worker_run then waits until a thread calls
 * hf_runtime_turn.
 *
 * If the service fails with a temporary status (status.h: a full disk, no memory), the worker tries again: polls with
 * growing pauses; results of activities for ten seconds, but not after shutdown_force. If results could not be
 * delivered, the worker returns the status of the last failure, such as HF_ERR_FULL, and hf_error_text() says how many
 * results are missing. To the service such an attempt still runs: its timeout ends it, or the next opening of the file,
 * as WorkerLost. Any other failure of a poll ends the worker with that status: HF_ERR_CLOSED or HF_ERR_STORE when the
 * service has stopped, HF_ERR_INVALID for a name that it refuses.
 *
 * Call it once per worker. Also fails: HF_ERR_MISUSE: a second call, or a process made by fork(); HF_ERR_INVALID: the
 * signal .stop_on cannot be caught; HF_ERR_EXISTS: hf_os_signals_open or a watchdog uses that signal; HF_ERR_NOMEM;
 * HF_ERR_LIMIT. */
HF_API HF_MUST_USE hf_status hf_worker_run(hf_worker *worker);
/* The two halves of hf_worker_run. hf_worker_start returns as soon as the worker's own thread was started; what goes
 * wrong later is in the log, and hf_worker_wait returns it. hf_worker_wait returns when the worker has stopped, with
 * what hf_worker_run would return; a cancel of the caller stops the worker. On a runtime without threads (HF_OFF)
 * nothing happens until a thread turns it or waits in hf_worker_wait. Fail as hf_worker_run does; hf_worker_wait also
 * with HF_ERR_MISUSE: the worker was not started by hf_worker_start, or another call waits for it or has done so. */
HF_API HF_MUST_USE hf_status hf_worker_start(hf_worker *worker);
HF_API HF_MUST_USE hf_status hf_worker_wait(hf_worker *worker);
/* Makes hf_worker_run and hf_worker_wait return soon. May be called from any thread, but not from a signal handler;
 * also before the worker runs. */
HF_API HF_MUST_USE hf_status hf_worker_stop(hf_worker *worker);
/* Counts, at about one moment. May be called at any time, from any thread. */
HF_API HF_MUST_USE hf_status hf_worker_stat(hf_worker *worker, hf_worker_stats *ret_stats);
HF_API const char *hf_worker_health_name(hf_worker_health health); /* "ready" ...; "?" for any other number */
/* Frees a worker that no other thread uses. If hf_worker_start has started it, this stops it, waits for its end and
 * returns what hf_worker_wait would return; the worker is freed in any case. Fails: HF_ERR_MISUSE: another thread is in
 * hf_worker_run or hf_worker_wait with it; then it is not freed. Accepts NULL. */
HF_API hf_status hf_worker_free(hf_worker *worker);

HF_END_DECLS

HF_AUTO_DEFINE(hf_worker_free, hf_worker)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_worker_new(...) HF_WORKER_NEW_(__VA_ARGS__, .size = sizeof(hf_worker_options))
#define HF_WORKER_NEW_(service, task_queue, ret_worker, ...) \
    hf_worker_new_with((service), (task_queue), (ret_worker), &(hf_worker_options){__VA_ARGS__})
#define hf_worker_add_workflow(...) HF_WORKER_ADD_WORKFLOW_(__VA_ARGS__, .size = sizeof(hf_worker_add_workflow_options))
#define HF_WORKER_ADD_WORKFLOW_(worker, name, workflow, ...) \
    hf_worker_add_workflow_with((worker), (name), (workflow), &(hf_worker_add_workflow_options){__VA_ARGS__})
#define hf_worker_add_activity(...) HF_WORKER_ADD_ACTIVITY_(__VA_ARGS__, .size = sizeof(hf_worker_add_activity_options))
#define HF_WORKER_ADD_ACTIVITY_(worker, name, activity, ...) \
    hf_worker_add_activity_with((worker), (name), (activity), &(hf_worker_add_activity_options){__VA_ARGS__})
#define hf_worker_add_command(...) HF_WORKER_ADD_COMMAND_(__VA_ARGS__, .size = sizeof(hf_worker_add_command_options))
#define HF_WORKER_ADD_COMMAND_(worker, name, argv, ...) \
    hf_worker_add_command_with((worker), (name), (argv), &(hf_worker_add_command_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_worker_new(hf_service *service, const char *task_queue, hf_worker **ret_worker,
    hf_worker_options options = hf_worker_options())
{
    options.size = sizeof options;
    return hf_worker_new_with(service, task_queue, ret_worker, &options);
}
static inline HF_MUST_USE hf_status
hf_worker_add_workflow(hf_worker *worker, const char *name, hf_function workflow,
    hf_worker_add_workflow_options options = hf_worker_add_workflow_options())
{
    options.size = sizeof options;
    return hf_worker_add_workflow_with(worker, name, workflow, &options);
}
static inline HF_MUST_USE hf_status
hf_worker_add_activity(hf_worker *worker, const char *name, hf_function activity,
    hf_worker_add_activity_options options = hf_worker_add_activity_options())
{
    options.size = sizeof options;
    return hf_worker_add_activity_with(worker, name, activity, &options);
}
static inline HF_MUST_USE hf_status
hf_worker_add_command(hf_worker *worker, const char *name, const char *const *argv,
    hf_worker_add_command_options options = hf_worker_add_command_options())
{
    options.size = sizeof options;
    return hf_worker_add_command_with(worker, name, argv, &options);
}
#endif
/* clang-format on */

#endif
