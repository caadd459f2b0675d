/* hf_worker: runs workflows and activities of one task queue.
 *
 *     HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
 *     HF_TRY(hf_worker_new(service, "orders", &worker, .stop_on = SIGTERM));
 *     HF_TRY(hf_worker_add_workflow(worker, "order", order));
 *     HF_TRY(hf_worker_add_activity(worker, "charge", charge));
 *     return hf_worker_run(worker);
 *
 * Workflows run on fibers and stay in memory between their steps, as many as fit; the others are read again when something
 * happens to them. Activities run on threads of their own, one each, or on fibers if they never block. One that does not end
 * when it should is a zombie after a while (activity.h), and does not count for activities_max any more.
 * There are at most 1,024 threads: a larger activities_max is for workers whose activities all run on fibers, and HF_UNLIMITED
 * means 1,024 with one that does not. */
#ifndef HOLDFAST_WORKER_H
#define HOLDFAST_WORKER_H

#include <holdfast/activity.h>
#include <holdfast/service.h>
#include <holdfast/workflow.h>

typedef struct hf_worker hf_worker;

typedef struct hf_worker_options {
    size_t size;              /* set by the macro */
    hf_runtime *runtime;      /* whose threads to use; NULL = that of the calling fiber, else one of its own */
    int stop_on;              /* a signal that stops it, such as SIGTERM, and all who asked for the same; 0 = none */
    const char *namespace_;   /* "default" */
    const char *identity;     /* who did it, in histories; "PID@HOST@QUEUE" */
    int workflows_max;        /* steps of workflows at once; 200, HF_UNLIMITED */
    int activities_max;       /* activities at once; 200, HF_OFF = none are polled for, HF_UNLIMITED */
    int cached_max;           /* workflows kept in memory between steps; 1000, HF_OFF = none, HF_UNLIMITED */
    size_t cached_bytes_max;  /* the same in bytes, roughly; 256 MiB */
    int pollers_max;          /* polls for workflow steps under way; 64 */
    int activity_pollers_max; /* polls for activities under way; 64 */
    hf_span sticky_timeout;   /* a cached workflow's step that waits for so long goes to any worker; 10 s */
    hf_span shutdown_grace;   /* stopping: activities may finish for so long; 10 s */
    hf_span shutdown_force;   /* after that they are canceled, and are left behind if they go on for so long; 5 s */
} hf_worker_options;

typedef struct hf_add_activity_options {
    size_t size; /* set by the macro */
    bool
        on_fiber; /* it waits by the library's verbs alone, and never blocks: it runs on a fiber, without a thread of its
                      own. Cheaper, and thousands may run at once; one that does block holds up others. */
} hf_add_activity_options;

HF_BEGIN_DECLS

/* The name of a task queue has 1 to 963 bytes. Fails: HF_ERR_NOMEM, HF_ERR_LIMIT, HF_ERR_INVALID; HF_ERR_MISUSE in a process that
 * fork() made, with the service of its parent. */
HF_API hf_status hf_worker_new_with(hf_service *service, const char *task_queue, hf_worker **ret_worker,
                                    const hf_worker_options *options);
/* Before it runs. The name is copied. Fails: HF_ERR_EXISTS, HF_ERR_INVALID (also an activity that needs a thread, when
 * activities_max is more than 1,024), HF_ERR_NOMEM, HF_ERR_MISUSE while it runs. */
HF_API hf_status hf_worker_add_workflow(hf_worker *worker, const char *name, hf_function workflow);
HF_API hf_status hf_worker_add_activity_with(hf_worker *worker, const char *name, hf_function activity,
                                             const hf_add_activity_options *options);
/* Polls for workflows if one was added, for activities if one was, and works until hf_worker_stop or the signal; then takes
 * nothing new, lets activities finish (shutdown_grace), cancels them (shutdown_force), and returns when the last has ended.
 * Workflows are left where they are: another worker goes on.
 *
 * It also stops when the runtime takes no new work because of too many zombies (watchdog.zombies_max).
 *
 * HF_ERR_TIMEOUT: activities went on after that, or workflows that do not yield. They are in the log by name, and are left
 * behind: the service may be closed and the worker freed, but they keep their threads and the runtime, whose hf_runtime_free
 * refuses until they have ended. A program that has nothing else to do ends.
 *
 * A workflow that does not yield (for watchdog.stuck_after) is reported, and its workflow task is answered as failed, so that
 * it is tried again, elsewhere if there is another worker; this one drops tasks of that run until it has come back. Its
 * thread is replaced when the runtime's watchdog was given a signal. Without one such a workflow keeps everything that its
 * thread has: when hf_worker_run was called by a fiber of that thread it does not return before the workflow yields; the log
 * says worker_cannot_return. A plain thread that calls hf_worker_run, hf_worker_stop and `.stop_on` are not affected. On a
 * runtime without threads (HF_OFF) workflows run on the thread that turns it, which cannot be replaced: if that is the
 * caller's it returns when the workflow does.
 *
 * On a runtime without threads a plain thread that calls this turns it meanwhile, unless a host has begun to. A fiber of
 * another runtime does not: then nothing happens, and this does not return, unless somebody calls hf_runtime_turn.
 *
 * What the service refuses for a reason that may pass by itself (status.h: a full disk, no memory) is tried again: polls with
 * growing pauses, answers of activities for ten seconds, but not when shutdown_force is over. Then the worker returns the status of
 * the last refusal, such as HF_ERR_FULL, and hf_error_text() says how many answers are missing. Nothing is left behind, but the
 * service does not know that these activities have ended: to it they were lost with the worker. Any other refusal of a poll ends the worker with that status: HF_ERR_CLOSED or HF_ERR_STORE
 * when the service is no more, HF_ERR_INVALID for a name that it does not take.
 *
 * Once per worker. Fails also: HF_ERR_INVALID when .stop_on cannot be caught, HF_ERR_EXISTS when hf_signals_open or a watchdog
 * has it, HF_ERR_MISUSE, also in a process that fork() made, HF_ERR_NOMEM, HF_ERR_LIMIT. */
HF_API hf_status hf_worker_run(hf_worker *worker);
/* Makes hf_worker_run return, soon. From anywhere but a signal handler; also before it runs. */
HF_API hf_status hf_worker_stop(hf_worker *worker);
/* When hf_worker_run has returned, or was never called, and no other thread is in hf_worker_stop with it. Accepts NULL. */
HF_API hf_status hf_worker_free(hf_worker *worker);

HF_END_DECLS

HF_AUTO_DEFINE(hf_worker_free, hf_worker)

#ifndef __cplusplus
#define hf_worker_new(...) HF_WORKER_NEW_(__VA_ARGS__, .size = sizeof(hf_worker_options))
#define HF_WORKER_NEW_(service, task_queue, ret_worker, ...) \
    hf_worker_new_with((service), (task_queue), (ret_worker), &(hf_worker_options){__VA_ARGS__})
#define hf_worker_add_activity(...) HF_WORKER_ADD_ACTIVITY_(__VA_ARGS__, .size = sizeof(hf_add_activity_options))
#define HF_WORKER_ADD_ACTIVITY_(worker, name, activity, ...) \
    hf_worker_add_activity_with((worker), (name), (activity), &(hf_add_activity_options){__VA_ARGS__})
#else
static inline hf_status hf_worker_new(hf_service *service, const char *task_queue, hf_worker **ret_worker,
                                      hf_worker_options options = hf_worker_options())
{
    options.size = sizeof options;
    return hf_worker_new_with(service, task_queue, ret_worker, &options);
}
static inline hf_status hf_worker_add_activity(hf_worker *worker, const char *name, hf_function activity,
                                               hf_add_activity_options options = hf_add_activity_options())
{
    options.size = sizeof options;
    return hf_worker_add_activity_with(worker, name, activity, &options);
}
#endif

#endif
