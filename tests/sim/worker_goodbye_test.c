/* A worker of a server that does not end its polls when the worker signs off: an older Temporal server does not know the key of the polls. The
 * time that the worker waits for them is a part of its time to stop. */
#include "support/support.h"

#include "env/sim/sim.h"
#include "worker/worker_private.h"

static bool has_begun;
static bool was_canceled;

static hf_status sit(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    has_begun = true;
    hf_status status = hf_sleep(hf_hours(1));
    was_canceled = status == HF_ERR_CANCELED;
    return status;
}

static hf_status seat(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("sit", in, ret_out, .start_to_close = hf_hours(2));
}

static hf_status play(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    service->takes_nothing_back = true;
    HF_TRY(
        hf_worker_new(service, "q", &worker, .shutdown_grace = hf_seconds(2), .shutdown_force = hf_milliseconds(500)));
    worker->instance_key = HF_STR("");
    HF_TRY(hf_worker_add_workflow(worker, "seat", seat));
    HF_TRY(hf_worker_add_activity(worker, "sit", sit, .on_fiber = true));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(service, "seat", hf_payload_none(), NULL, .id = "s", .task_queue = "q"));
    while (!has_begun) {
        HF_TRY(hf_sleep(hf_milliseconds(10)));
    }
    int64_t since = hf_now(NULL).ns;
    HF_TRY(hf_worker_stop(worker));
    hf_status status = hf_worker_wait(worker);
    int64_t took = hf_now(NULL).ns - since;
    HF_CHECK_SAY(status == HF_OK, "%s: %s", hf_status_name(status), hf_error_text());
    HF_CHECK(was_canceled);
    HF_CHECK_SAY(took >= hf_seconds(2).ns && took < hf_milliseconds(2500).ns, "%lld ms", (long long)took / 1000000);
    return HF_OK;
}

/* Its activity has the whole grace, and is canceled behind it, before the worker is left behind. */
static void polls_that_do_not_come_back_cost_an_activity_nothing(void **state)
{
    (void)state;
    assert_int_equal(hf_sim_run(1, 1, play, NULL, NULL), HF_OK);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(polls_that_do_not_come_back_cost_an_activity_nothing),
    };
    return hf_test_main("worker_goodbye", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
