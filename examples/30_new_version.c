/* The code of a workflow changes while runs of it are under way. The new code also checks a customer before the parcel is
 * sent; parcels that were begun by the old code finish as they began, and hf_patched tells which is which.
 *
 * Two workers stand for two versions of a program: the second one starts when the first has stopped. */
#include <holdfast/holdfast.h>

#include <stdio.h>

static hf_status pack(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    printf("packing %s\n", (const char *)in.data);
    return HF_OK;
}

static hf_status check(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    printf("checking the customer of %s\n", (const char *)in.data);
    return HF_OK;
}

static hf_status send_off(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_printf(ret_out, "\"%s is on its way\"", (const char *)in.data);
}

/* Version 1. */
static hf_status parcel(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_activity_run("pack", in, NULL, .start_to_close = hf_seconds(30)));
    HF_TRY(hf_signal_wait("paid", NULL));
    return hf_activity_run("send", in, ret_out, .start_to_close = hf_seconds(30));
}

/* Version 2. Without hf_patched a run of version 1 would meet an activity here that its history does not have, and would
 * stop: "not deterministic". When the last run of version 1 has ended, hf_patch_deprecate takes its place, and goes with
 * the old branch one release later. */
static hf_status parcel_2(hf_payload in, hf_payload *ret_out)
{
    if (hf_patched("check the customer")) {
        HF_TRY(hf_activity_run("check", in, NULL, .start_to_close = hf_seconds(30)));
    }
    HF_TRY(hf_activity_run("pack", in, NULL, .start_to_close = hf_seconds(30)));
    HF_TRY(hf_signal_wait("paid", NULL));
    return hf_activity_run("send", in, ret_out, .start_to_close = hf_seconds(30));
}

static hf_status start_version(hf_service *service, hf_function code, hf_worker **ret_worker)
{
    HF_TRY(hf_worker_new(service, "parcels", ret_worker));
    HF_TRY(hf_worker_add_workflow(*ret_worker, "parcel", code));
    HF_TRY(hf_worker_add_activity(*ret_worker, "pack", pack));
    HF_TRY(hf_worker_add_activity(*ret_worker, "check", check));
    HF_TRY(hf_worker_add_activity(*ret_worker, "send", send_off));
    return hf_worker_start(*ret_worker);
}

/* Waits until the run waits for its customer. */
static hf_status await_packing(hf_execution *execution)
{
    for (;;) {
        HF_AUTO(hf_description_free) hf_description *now = NULL;
        HF_TRY(hf_describe(execution, &now));
        if (now->history_count >= 10 && now->task_attempt == 0 && now->activity_count == 0) {
            return HF_OK;
        }
        HF_TRY(hf_sleep(hf_milliseconds(5)));
    }
}

static hf_status pay(hf_execution *execution)
{
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_signal(execution, "paid", hf_payload_none()));
    HF_TRY(hf_result(execution, &out));
    printf("%s\n", (const char *)out.data);
    return HF_OK;
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *first = NULL;
    HF_AUTO(hf_worker_free) hf_worker *second = NULL;
    HF_AUTO(hf_execution_free) hf_execution *old = NULL;
    HF_AUTO(hf_execution_free) hf_execution *new = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(start_version(service, parcel, &first));
    HF_TRY(hf_start(service, "parcel", hf_payload_of_json("1"), &old, .task_queue = "parcels"));
    HF_TRY(await_packing(old));
    HF_TRY(hf_worker_stop(first));
    HF_TRY(hf_worker_wait(first));

    HF_TRY(start_version(service, parcel_2, &second));
    HF_TRY(hf_start(service, "parcel", hf_payload_of_json("2"), &new, .task_queue = "parcels"));
    HF_TRY(pay(old));
    return pay(new);
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
