/* A plugin whose code crashes, or does not end, for tests/program/author.sh. */
#include <holdfast/holdfast.h>

#include <stdlib.h>
#include <time.h>

static hf_status fall(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    abort();
}

/* Stays for ever, and does not look at its cancel. */
static hf_status stay(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    while (hf_now(NULL).ns > 0) {
        (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
    return HF_OK;
}

static hf_status crash(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    *(volatile int *)hf_workflow_info()->arg = 1;
    return HF_OK;
}

/* Its workflow task fails by the guard; the next attempt takes the program down. */
static hf_status trips(hf_payload in, hf_payload *ret_out)
{
    static int tries;
    (void)in;
    if (tries++ > 0) {
        abort();
    }
    return hf_payload_printf(ret_out, "%d", (int)(time(NULL) % 2));
}

static hf_status falls(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("fall", in, ret_out, .start_to_close = hf_minutes(1));
}

static hf_status stays(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("stay", in, ret_out, .start_to_close = hf_hours(1));
}

HF_PLUGIN(worker)
{
    HF_TRY(hf_worker_add_activity(worker, "fall", fall));
    HF_TRY(hf_worker_add_activity(worker, "stay", stay));
    HF_TRY(hf_worker_add_workflow(worker, "crash", crash));
    HF_TRY(hf_worker_add_workflow(worker, "falls", falls));
    HF_TRY(hf_worker_add_workflow(worker, "trips", trips));
    return hf_worker_add_workflow(worker, "stays", stays);
}
