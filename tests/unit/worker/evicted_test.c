/* Workflows that do not return when they are evicted. The worker has room for one run, or for none, so every step of one is the
 * eviction of another; and every other run goes on meanwhile. A loop that is refused for ever would end a simulated run at its
 * bound of steps. */
#include "unit/worker/play.h"

#include <stdlib.h>

/* ---- Workflows ------------------------------------------------------------------------------------------------------ */

/* The retry loop that C programs have everywhere. It takes three signals. */
static hf_status retry_for_ever(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    long sum = 0;
    for (int i = 0; i < 3; i++) {
        hf_payload out = hf_payload_none();
        while (hf_signal_wait("go", &out) != HF_OK) {
            HF_IGNORE(hf_sleep(hf_seconds(1)));
        }
        sum += strtol(out.data, NULL, 10);
    }
    return hf_payload_printf(ret_out, "%ld", sum);
}

/* In a child that its parent joins, inside a scope with a deadline and a shield, with a channel and a lock of its own. */
typedef struct family {
    hf_chan *chan;
    hf_mutex *mutex;
    long sum;
} family;

static hf_status child(void *arg)
{
    family *f = arg;
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_days(1), &shield));
    HF_TRY(hf_mutex_lock(f->mutex));
    for (int i = 0; i < 3; i++) {
        hf_payload out = hf_payload_none();
        while (hf_signal_wait("go", &out) != HF_OK) {
            HF_IGNORE(hf_chan_send(f->chan, "x"));
        }
        f->sum += strtol(out.data, NULL, 10);
    }
    return hf_mutex_unlock(f->mutex);
}

static hf_status retry_in_child(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL;
    HF_AUTO(hf_mutex_free) hf_mutex *mutex = NULL;
    HF_TRY(hf_chan_new(1, &chan));
    HF_TRY(hf_mutex_new(&mutex));
    family f = {chan, mutex, 0};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_days(3)));
    HF_TRY(hf_fork(scope, child, &f));
    HF_TRY(hf_join(scope));
    return hf_payload_printf(ret_out, "%ld", f.sum);
}

/* Cleanup that insists. */
static hf_status retry_in_cleanup(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    long sum = 0;
    for (int i = 0; i < 3; i++) {
        hf_payload out = hf_payload_none();
        hf_status status = hf_signal_wait("go", &out);
        if (status != HF_OK) {
            while (hf_activity_run("undo", hf_payload_none(), NULL, .start_to_close = hf_seconds(1), .id = "u") !=
                   HF_OK) {
            }
            return status;
        }
        sum += strtol(out.data, NULL, 10);
    }
    return hf_payload_printf(ret_out, "%ld", sum);
}

/* An activity that is asked for again whatever it failed with, unless the run does not want it any more. */
static hf_status ask(void *arg)
{
    (void)arg;
    hf_status status = HF_ERR_FAILED;
    while (status != HF_OK && status != HF_ERR_CANCELED) {
        status =
            hf_activity_run("never", hf_payload_none(), NULL, .start_to_close = hf_hours(9), .task_queue = "nobody");
    }
    return status;
}

static hf_status retry_activities(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    long sum = 0;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_fork(scope, ask, NULL));
    }
    for (int i = 0; i < 3; i++) {
        hf_payload out = hf_payload_none();
        HF_TRY(hf_signal_wait("go", &out));
        sum += strtol(out.data, NULL, 10);
    }
    return hf_payload_printf(ret_out, "%ld", sum);
}

static hf_status quick(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("echo", in, ret_out, .start_to_close = hf_seconds(5));
}

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status add_all(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "for_ever", retry_for_ever));
    HF_TRY(hf_worker_add_workflow(worker, "child", retry_in_child));
    HF_TRY(hf_worker_add_workflow(worker, "cleanup", retry_in_cleanup));
    HF_TRY(hf_worker_add_workflow(worker, "activities", retry_activities));
    HF_TRY(hf_worker_add_workflow(worker, "quick", quick));
    return hf_worker_add_activity(worker, "echo", echo);
}

/* ---- Plays ------------------------------------------------------------------------------------------------------------ */

static const char *const TYPES[] = {"for_ever", "child", "cleanup", "activities"};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

/* In a simulation time moves only when nobody has anything else to do. */
static void settle(void)
{
    HF_CHECK(hf_sleep(hf_milliseconds(10)) == HF_OK);
}

static hf_status run_quick(play *p, int number)
{
    char id[16];
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    (void)snprintf(id, sizeof id, "q%d", number);
    HF_TRY(hf_start(p->service, "quick", hf_payload_of_json("7"), &execution, .id = id, .task_queue = "orders"));
    HF_TRY(hf_result(execution, &out));
    play_note(p, "q%s ", (const char *)out.data);
    return HF_OK;
}

/* Every signal makes one run again, and evicts another. */
static hf_status signal_all(play *p, hf_execution *const *executions)
{
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < TYPE_COUNT; i++) {
            char text[16];
            (void)snprintf(text, sizeof text, "%d", (i + 1) * (round + 1));
            HF_TRY(hf_signal(executions[i], "go", hf_payload_of_json(text)));
            settle();
        }
        HF_TRY(run_quick(p, round));
    }
    return HF_OK;
}

static hf_status note_results(play *p, hf_execution *const *executions)
{
    for (int i = 0; i < TYPE_COUNT; i++) {
        HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
        hf_status status = hf_result(executions[i], &out);
        play_note(p, "%s:%s ", TYPES[i], status == HF_OK ? (const char *)out.data : hf_error_text());
    }
    return HF_OK;
}

static uint64_t stranded_at_least;

static hf_status run_all(play *p)
{
    hf_execution *executions[TYPE_COUNT] = {NULL};
    hf_status status = HF_OK;
    for (int i = 0; i < TYPE_COUNT && status == HF_OK; i++) {
        status =
            hf_start(p->service, TYPES[i], hf_payload_none(), &executions[i], .id = TYPES[i], .task_queue = "orders");
    }
    settle();
    status = status == HF_OK ? signal_all(p, executions) : status;
    status = status == HF_OK ? note_results(p, executions) : status;
    for (int i = 0; i < TYPE_COUNT; i++) {
        hf_execution_free(executions[i]);
    }
    hf_stats stats;
    HF_TRY(hf_runtime_stats(NULL, &stats));
    HF_CHECK_SAY(stats.stranded >= stranded_at_least, "%d fibers were stranded", (int)stats.stranded);
    return status;
}

static void workflows_that_try_again_when_they_are_evicted_go_on_from_their_history(void **state)
{
    (void)state;
    static const int CACHED[] = {1, HF_OFF, 2};
    for (size_t i = 0; i < sizeof CACHED / sizeof *CACHED; i++) {
        stranded_at_least = 10;
        play_on((play_options){
            .add = add_all,
            .body = run_all,
            .worker = {.cached_max = CACHED[i]},
            .result = "q7 q7 q7 for_ever:6 child:12 cleanup:18 "
                      "activities:24 ",
        });
    }
}

static void by_seed(uint64_t seed)
{
    stranded_at_least = 0;
    play_seed((play_options){.add = add_all,
                             .body = run_all,
                             .worker = {.cached_max = 1},
                             .result = "q7 q7 q7 for_ever:6 child:12 cleanup:18 "
                                       "activities:24 "},
              seed);
}

static void such_workflows_end_alike_on_every_schedule(void **state)
{
    (void)state;
    hf_each_seed("schedules", 100, by_seed);
}

/* Again and again: once the pools of stacks are filled, the worker's memory stays what it was. */
enum { ROUNDS = 60, FILLED = 20 };

static hf_status take_many(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_AUTO(hf_chan_free) hf_chan *chan = NULL; /* of which nothing may be left, either */
    HF_TRY(hf_chan_new(1, &chan, .capacity = 100));
    for (int i = 0; i < ROUNDS; i++) {
        while (hf_signal_wait("go", NULL) != HF_OK) {
            HF_IGNORE(hf_yield());
        }
    }
    return HF_OK;
}

static hf_status add_many(hf_worker *worker)
{
    return hf_worker_add_workflow(worker, "many", take_many);
}

static hf_status run_many(play *p)
{
    static const char *const IDS[] = {"one", "two"};
    hf_execution *executions[2] = {NULL};
    uint64_t stack_bytes = 0;
    for (int i = 0; i < 2; i++) {
        HF_TRY(hf_start(p->service, "many", hf_payload_none(), &executions[i], .id = IDS[i], .task_queue = "orders"));
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            HF_TRY(hf_signal(executions[i], "go", hf_payload_none()));
            settle();
        }
        hf_stats stats;
        HF_TRY(hf_runtime_stats(NULL, &stats));
        stack_bytes = round == FILLED ? stats.stack_bytes : stack_bytes;
        HF_CHECK_SAY(round < FILLED || stats.stack_bytes == stack_bytes, "round %d: %d bytes of stacks, not %d", round,
                     (int)stats.stack_bytes, (int)stack_bytes);
        HF_CHECK_SAY(stats.stranded >= (uint64_t)round, "round %d: %d were stranded", round, (int)stats.stranded);
    }
    for (int i = 0; i < 2; i++) {
        HF_CHECK(hf_result(executions[i], NULL) == HF_OK);
        hf_execution_free(executions[i]);
    }
    return HF_OK;
}

static void memory_does_not_grow_when_a_run_is_evicted_again_and_again(void **state)
{
    (void)state;
    (void)play_once((play_options){.add = add_many, .body = run_many, .worker = {.cached_max = 1}}, 1, 1);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(workflows_that_try_again_when_they_are_evicted_go_on_from_their_history),
        cmocka_unit_test(such_workflows_end_alike_on_every_schedule),
        cmocka_unit_test(memory_does_not_grow_when_a_run_is_evicted_again_and_again),
    };
    return hf_test_main("evicted", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
