/* The hook of a workflow type (hf_worker_at_rest): it is called when no fiber of the run is ready and before the task is answered,
 * in a replay at the same places. */
#include "unit/worker/play.h"

#include "worker/worker_private.h"

/* What the workflow and the hook share. The run makes it anew when it is replayed. */
static struct {
    int wanted; /* by the workflow */
    int given;  /* by the hook, one a call */
    int calls;  /* since the run began */
} desk;

static bool give_one(void *arg)
{
    HF_CHECK(arg == &desk);
    desk.calls++;
    if (desk.given == desk.wanted) {
        return false;
    }
    desk.given++;
    return true;
}

/* Asks for some, twice; between the two is a step. */
static hf_status asks(hf_payload in, hf_payload *ret_out)
{
    memset(&desk, 0, sizeof desk);
    desk.wanted = 3;
    HF_TRY(hf_wait_until(desk.given == 3)); /* within the step */
    HF_TRY(hf_activity_run("echo", in, NULL, .start_to_close = hf_seconds(5)));
    desk.wanted = 5;
    HF_TRY(hf_wait_until(desk.given == 5));
    return hf_payload_printf(ret_out, "\"%d given, %d calls\"", desk.given, desk.calls);
}

static hf_status wants_too_much(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    memset(&desk, 0, sizeof desk);
    desk.wanted = -1; /* the hook never has enough */
    return hf_signal_wait("go", NULL);
}

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status add(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "asks", asks));
    HF_TRY(hf_worker_add_workflow(worker, "endless", wants_too_much));
    HF_CHECK(hf_worker_at_rest(worker, "other", give_one, &desk) == HF_ERR_NOT_FOUND);
    HF_TRY(hf_worker_at_rest(worker, "asks", give_one, &desk));
    HF_TRY(hf_worker_at_rest(worker, "endless", give_one, &desk));
    return hf_worker_add_activity(worker, "echo", echo, .on_fiber = true);
}

static hf_status run_it(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(p->service, "asks", hf_payload_of_json("1"), &run, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_result(run, &out));
    play_note(p, "%s", (const char *)out.data);
    return HF_OK;
}

/* Four calls give the three and find that nobody wants more; then one for each stage that brings nothing, until the end. */
static void it_is_called_when_no_fiber_is_ready_in_a_replay_too(void **state)
{
    (void)state;
    for (int cached = HF_OFF; cached <= 0; cached++) { /* HF_OFF: every step is a replay */
        (void)play_once(
            (play_options){
                .add = add, .body = run_it, .worker = {.cached_max = cached}, .result = "\"5 given, 10 calls\""},
            1, 1);
    }
}

static hf_status let_it_spin(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_TRY(hf_start(p->service, "endless", hf_payload_none(), &run, .id = "w", .task_queue = "orders"));
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    HF_CHECK(strstr(tap_log(p->tap), "do not come to rest") != NULL);
    return hf_terminate(run);
}

static void one_that_never_rests_fails_the_task(void **state)
{
    (void)state;
    (void)play_once((play_options){.add = add, .body = let_it_spin}, 1, 1);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(it_is_called_when_no_fiber_is_ready_in_a_replay_too),
        cmocka_unit_test(one_that_never_rests_fails_the_task),
    };
    return hf_test_main("rest", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
