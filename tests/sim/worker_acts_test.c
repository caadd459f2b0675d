/* What a worker adds to activities: an argument of their own, stacks, and how many begin in a second; on the real worker
 * and engine, on virtual time. */
#include "support/support.h"

#include "base/base.h"
#include "env/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t SECOND = INT64_C(1000000000);
enum { STARTS_MAX = 64, WORKERS_MAX = 2 };

static int64_t begun[STARTS_MAX]; /* ns since the first activity began, in order */
static int begun_count;

typedef struct show {
    hf_function workflow;
    hf_worker_options worker;
    hf_worker_add_workflow_options workflow_options;
    hf_worker_add_activity_options activity_options;
    int workers;
} show;

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status act(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    int64_t now = hf_now(NULL).ns;
    HF_CHECK(begun_count < STARTS_MAX);
    begun[begun_count++] = now;
    return hf_payload_printf(ret_out, "%d", hf_activity_arg() != NULL ? *(const int *)hf_activity_arg() : -1);
}

static hf_status play(void *arg)
{
    const show *s = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    hf_worker *workers[WORKERS_MAX] = {NULL, NULL};
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_open("memory:", &service));
    {
        HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
        HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
        for (int i = 0; i < s->workers; i++) {
            hf_worker_options options = s->worker;
            hf_worker_add_workflow_options workflow = s->workflow_options;
            hf_worker_add_activity_options activity = s->activity_options;
            options.size = sizeof options;
            workflow.size = sizeof workflow;
            activity.size = sizeof activity;
            HF_TRY(hf_worker_new_with(service, "q", &workers[i], &options));
            HF_TRY(hf_worker_add_workflow_with(workers[i], "flow", s->workflow, &workflow));
            HF_TRY(hf_worker_add_activity_with(workers[i], "act", act, &activity));
            HF_TRY(hf_fork(scope, run_worker, workers[i]));
        }
        HF_TRY(hf_start(service, "flow", hf_payload_none(), &execution, .task_queue = "q"));
        hf_status status = hf_result(execution, &out);
        HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
        for (int i = 0; i < s->workers; i++) {
            HF_TRY(hf_worker_stop(workers[i]));
        }
        HF_TRY(hf_join(scope));
    }
    for (int i = 0; i < s->workers; i++) {
        HF_TRY(hf_worker_free(workers[i]));
    }
    return HF_OK;
}

static void perform(show *s)
{
    for (int i = 0; i < 4; i++) {
        begun_count = 0;
        hf_env *env = hf_sim_begin((uint64_t)i + 1);
        hf_runtime_options options = hf_sim_runtime_options(env, 1 + i / 2);
        s->activity_options.on_fiber = i % 2 != 0 || s->activity_options.stack_size != 0;
        HF_CHECK(hf_run_with(play, s, &options) == HF_OK);
        hf_sim_end(env, NULL);
    }
}

/* ---- Arguments and stacks ---------------------------------------------------------------------------------------- */

static int forty_two = 42;
static int seven = 7;

static hf_status with_args(hf_payload in, hf_payload *ret_out)
{
    HF_CHECK(hf_workflow_info()->arg == &seven && hf_activity_arg() == NULL);
    HF_TRY(hf_activity_run("act", in, ret_out, .start_to_close = hf_seconds(5)));
    HF_CHECK(strcmp(ret_out->data, "42") == 0);
    HF_CHECK(hf_workflow_info()->arg == &seven); /* also if it was replayed */
    return HF_OK;
}

static void workflows_and_activities_have_an_argument_of_their_own(void **state)
{
    (void)state;
    for (int cached = HF_OFF; cached <= 0; cached++) { /* HF_OFF: every step is a replay */
        show s = {.workflow = with_args,
                  .worker = {.cached_max = cached},
                  .workflow_options = {.arg = &seven},
                  .activity_options = {.arg = &forty_two},
                  .workers = 1};
        perform(&s);
    }
}

enum { DEEP = 150000 }; /* more than two stacks of the default class */

static hf_status dig(void)
{
    volatile char room[DEEP];
    for (size_t i = 0; i < sizeof room; i += 512) {
        room[i] = 1;
    }
    return room[512] == 1 ? HF_OK : HF_ERR_FAILED;
}

static hf_status dig_in_branch(void *arg)
{
    (void)arg;
    HF_TRY(hf_sleep(hf_seconds(1)));
    return dig();
}

static hf_status deep(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(dig());
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, dig_in_branch, NULL));
    HF_TRY(hf_join(scope));
    return hf_activity_run("act", in, ret_out, .start_to_close = hf_seconds(5));
}

/* With the default class the first dig would end the process. */
static void a_workflow_gets_the_stack_it_asks_for_and_so_do_its_fibers(void **state)
{
    (void)state;
    show s = {.workflow = deep,
              .workflow_options = {.stack_size = 256 << 10},
              .activity_options = {.stack_size = 16 << 10},
              .workers = 1};
    perform(&s);
}

static hf_status refuse(void *arg)
{
    (void)arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    static const double WRONG[] = {-1, 0.0000001, 2e9};
    HF_TRY(hf_open("memory:", &service));
    for (size_t i = 0; i < HF_COUNT_OF(WRONG); i++) {
        HF_CHECK(hf_worker_new(service, "q", &worker, .activities_per_second = WRONG[i]) == HF_ERR_INVALID);
        HF_CHECK(strstr(hf_error_text(), ".activities_per_second is ") != NULL);
        HF_CHECK(hf_worker_new(service, "q", &worker, .queue_activities_per_second = WRONG[i]) == HF_ERR_INVALID);
        HF_CHECK(strstr(hf_error_text(), ".queue_activities_per_second is ") != NULL);
    }
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_CHECK(hf_worker_add_workflow(worker, "w", deep, .stack_size = (256 << 10) + 1) == HF_ERR_INVALID);
    HF_CHECK(hf_worker_add_activity(worker, "a", act, .on_fiber = true, .stack_size = 1 << 20) == HF_ERR_INVALID);
    HF_CHECK(hf_worker_add_activity(worker, "a", act, .stack_size = 16 << 10) == HF_ERR_INVALID);
    HF_CHECK(strstr(hf_error_text(), "1 MiB") != NULL);
    return HF_OK;
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    hf_env *env = hf_sim_begin(1);
    hf_runtime_options options = hf_sim_runtime_options(env, 1);
    HF_CHECK(hf_run_with(refuse, NULL, &options) == HF_OK);
    hf_sim_end(env, NULL);
}

/* ---- Activities per second --------------------------------------------------------------------------------------- */

enum { MANY = 20 };

static hf_status one(void *arg)
{
    (void)arg;
    return hf_activity_run("act", hf_payload_none(), NULL, .start_to_close = hf_seconds(5));
}

static hf_status many(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_sleep(hf_seconds(30))); /* all pollers wait with a token when the activities come */
    HF_TRY(hf_scope_open(&scope));
    for (int i = 0; i < MANY; i++) {
        HF_TRY(hf_fork(scope, one, NULL));
    }
    return hf_join(scope);
}

/* In any T seconds at most the tokens of a full bucket and those of T seconds are spent; and no token is wasted. */
static void check_pace(double rate)
{
    int bucket = rate < 1 ? 1 : (int)rate;
    HF_CHECK_SAY(begun_count == MANY, "%d activities began", begun_count);
    for (int i = 0; i < begun_count; i++) {
        for (int j = i; j < begun_count; j++) {
            double seconds = (double)(begun[j] - begun[i]) / (double)SECOND;
            HF_CHECK_SAY(j - i + 1 <= bucket + rate * seconds + 0.001, "%d began within %g s", j - i + 1, seconds);
        }
    }
    double all = (double)(begun[begun_count - 1] - begun[0]) / (double)SECOND;
    HF_CHECK_SAY(all <= (MANY - bucket) / rate + 0.5, "all began within %g s", all);
}

static void a_worker_begins_so_many_activities_a_second(void **state)
{
    (void)state;
    static const double RATES[] = {0.5, 1, 4};
    for (size_t i = 0; i < HF_COUNT_OF(RATES); i++) {
        show s = {.workflow = many, .worker = {.activities_per_second = RATES[i]}, .workers = 1};
        perform(&s);
        check_pace(RATES[i]);
    }
}

static void the_workers_of_a_queue_begin_so_many_together(void **state)
{
    (void)state;
    show s = {.workflow = many, .worker = {.queue_activities_per_second = 4}, .workers = 2};
    perform(&s);
    check_pace(4);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(workflows_and_activities_have_an_argument_of_their_own),
        cmocka_unit_test(a_workflow_gets_the_stack_it_asks_for_and_so_do_its_fibers),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(a_worker_begins_so_many_activities_a_second),
        cmocka_unit_test(the_workers_of_a_queue_begin_so_many_together),
    };
    return hf_test_main("worker_acts", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
