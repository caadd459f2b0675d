/* hf_testenv: an engine, a worker and a clock for the tests of your workflows. Everything is in memory, and time does not pass: it is
 * skipped. A workflow that sleeps for a month ends at once. A whole test:
 *
 *     static hf_status fake_charge(hf_payload in, hf_payload *ret_out)
 *     {
 *         *(int *)hf_activity_arg() += 1;
 *         return hf_payload_copy(in, ret_out);
 *     }
 *
 *     int main(void)
 *     {
 *         int charges = 0;
 *         HF_AUTO(hf_testenv_free) hf_testenv *env = NULL;
 *         HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
 *         HF_OR_DIE(hf_testenv_new(&env));
 *         HF_OR_DIE(hf_worker_add_workflow(hf_testenv_worker(env), "order", order));
 *         HF_OR_DIE(hf_testenv_activity(env, "charge", fake_charge, .arg = &charges));
 *         HF_OR_DIE(hf_testenv_run(env, "order", hf_payload_of_json("7"), &out));
 *         assert(charges == 1);
 *     }
 *
 * The clock stands still while code runs, and while the test does something else than wait. It moves only in hf_testenv_run,
 * hf_testenv_result and hf_testenv_pass, from one thing that is due to the next: timers, timeouts, pauses between attempts, start
 * delays, cron. So a test finds the same times whenever it runs, and a debugger causes no timeout. Real time is only a bound
 * (.patience).
 *
 * There is no seed. The code runs on real threads, so the order in which activities that run at once end is not always the same, and a
 * test should not depend on it. `holdfast sim` plays orders that a seed decides.
 *
 * Between these calls the test signals, queries, updates and cancels runs with the verbs of service.h. hf_update and hf_query
 * return when the workflow has answered; an update whose handler sleeps needs hf_update_start and then hf_testenv_pass.
 *
 * Nothing ends the process: a workflow task that fails, a type or an activity that was not added, code that does not return and
 * a run that waits for ever become statuses with a sentence. A crash of your code (SIGSEGV, abort) is still a crash.
 *
 * Use it on a plain thread, such as main(). One test at a time uses an environment; a process may have several. */
#ifndef HOLDFAST_TESTENV_H
#define HOLDFAST_TESTENV_H

#include <holdfast/worker.h>

typedef struct hf_testenv hf_testenv;

typedef struct hf_testenv_options {
    size_t size; /* set by the macro */
    /* No run stays in memory: every workflow task replays its run from the start. Code that is not deterministic then fails at
     * once, with the type "NotDeterministic". */
    bool evict_always;
    const char *task_queue; /* of the worker, and of runs that the test starts; "test" */
    hf_time begins;         /* what the clock says at first; 2030-01-01 00:00 UTC */
    hf_span
        patience;    /* real time after which a call that waits gives up with HF_ERR_TIMEOUT; 60 s, HF_SPAN_UNLIMITED */
    hf_log_sink log; /* as .log of hf_run: NULL = warnings and errors to stderr */
    void *log_state;
} hf_testenv_options;

HF_BEGIN_DECLS

/* Fails: HF_ERR_MISUSE on a fiber, HF_ERR_INVALID, HF_ERR_NOMEM, HF_ERR_LIMIT. */
HF_API HF_MUST_USE hf_status hf_testenv_new_with(hf_testenv **ret_env, const hf_testenv_options *options);
/* Ends the worker and frees everything. Free the handles of executions and updates first. Fails: HF_ERR_TIMEOUT: code of the
 * test does not return, and is left behind with what it uses; HF_ERR_MISUSE: handles are left, and the environment stays.
 * Accepts NULL. */
HF_API hf_status hf_testenv_free(hf_testenv *env);

/* The worker: add workflows and activities to it before the first call below that runs something. A function that adds all
 * those of a program, such as the one that HF_PLUGIN defines, can be called with it. The environment starts and frees it. */
HF_API hf_worker *hf_testenv_worker(hf_testenv *env);
/* The service, for hf_signal, hf_list and all other verbs that take one. The environment closes it. */
HF_API hf_service *hf_testenv_service(hf_testenv *env);
/* Adds an activity to the worker, in place of the one of this name if there is one. An activity that returns HF_PENDING
 * (answer.h) and is not answered runs into its timeout, and needs no time for it. Fails: as hf_worker_add_activity. */
HF_API HF_MUST_USE hf_status hf_testenv_activity_with(hf_testenv *env, const char *name, hf_function activity,
                                                      const hf_worker_add_activity_options *options);

/* Starts a workflow, as hf_start does, on the task queue of the environment unless .task_queue says otherwise. Without .id it
 * is called "test-1", the next one "test-2". It begins to work, but time does not pass. */
HF_API HF_MUST_USE hf_status hf_testenv_start_with(hf_testenv *env, const char *type, hf_payload in,
                                                   hf_execution **ret_execution, const hf_start_options *options);
/* Lets time pass until the workflow has ended, and returns its result or failure as hf_result does. `ret_out` may be NULL. Fails:
 *
 *     HF_ERR_AGAIN    nothing can happen any more without the test: hf_error_text() says what the run waits for. Send the signal, and
 *                     call it again. An activity whose task queue has no worker is told after two seconds in which no other activity
 *                     runs
 *     HF_ERR_FAILED   as hf_result; also, with the type "WorkflowTaskFailed", if a workflow task failed that would be tried again for
 *                     ever: the sentence says why. The environment is of no more use then
 *     HF_ERR_TIMEOUT  as hf_result; also, with the type "Patience", if .patience is over
 *
 * and as hf_result. An activity that no worker has fails at once, for good; the type of the cause is "NotFound". */
HF_API HF_MUST_USE hf_status hf_testenv_result(hf_testenv *env, hf_execution *execution, hf_payload *ret_out);
/* Both in one. Fails: as these. */
HF_API HF_MUST_USE hf_status hf_testenv_run(hf_testenv *env, const char *type, hf_payload in, hf_payload *ret_out);
/* Lets this much time pass: everything that is due in it happens, in its order, and has been dealt with when the call returns. 0:
 * no time passes, and the call returns when no code runs any more. Fails: HF_ERR_FAILED, HF_ERR_TIMEOUT as hf_testenv_result;
 * HF_ERR_INVALID: the span is negative. */
HF_API HF_MUST_USE hf_status hf_testenv_pass(hf_testenv *env, hf_span span);
/* What the clock says; 0 if it cannot be asked. */
HF_API hf_time hf_testenv_now(hf_testenv *env);

HF_END_DECLS

HF_AUTO_DEFINE(hf_testenv_free, hf_testenv)

/* Twins, made from the declarations above: macros for C, functions for C++. */
/* clang-format off */
#ifndef __cplusplus
#define hf_testenv_new(...) HF_TESTENV_NEW_(__VA_ARGS__, .size = sizeof(hf_testenv_options))
#define HF_TESTENV_NEW_(ret_env, ...) \
    hf_testenv_new_with((ret_env), &(hf_testenv_options){__VA_ARGS__})
#define hf_testenv_activity(...) HF_TESTENV_ACTIVITY_(__VA_ARGS__, .size = sizeof(hf_worker_add_activity_options))
#define HF_TESTENV_ACTIVITY_(env, name, activity, ...) \
    hf_testenv_activity_with((env), (name), (activity), &(hf_worker_add_activity_options){__VA_ARGS__})
#define hf_testenv_start(...) HF_TESTENV_START_(__VA_ARGS__, .size = sizeof(hf_start_options))
#define HF_TESTENV_START_(env, type, in, ret_execution, ...) \
    hf_testenv_start_with((env), (type), (in), (ret_execution), &(hf_start_options){__VA_ARGS__})
#else
static inline HF_MUST_USE hf_status
hf_testenv_new(hf_testenv **ret_env,
    hf_testenv_options options = hf_testenv_options())
{
    options.size = sizeof options;
    return hf_testenv_new_with(ret_env, &options);
}
static inline HF_MUST_USE hf_status
hf_testenv_activity(hf_testenv *env, const char *name, hf_function activity,
    hf_worker_add_activity_options options = hf_worker_add_activity_options())
{
    options.size = sizeof options;
    return hf_testenv_activity_with(env, name, activity, &options);
}
static inline HF_MUST_USE hf_status
hf_testenv_start(hf_testenv *env, const char *type, hf_payload in, hf_execution **ret_execution,
    hf_start_options options = hf_start_options())
{
    options.size = sizeof options;
    return hf_testenv_start_with(env, type, in, ret_execution, &options);
}
#endif
/* clang-format on */

#endif
