/* A program with the library as one file, compiled with -DHF_WITH_REMOTE: a worker and a client on a server. remote ADDRESS */
#include "holdfast.h"

#include <stdio.h>

static hf_status triple(hf_payload in, hf_payload *ret_out)
{
    int64_t number = 0;
    HF_TRY(hf_json_get_int(in, "", &number));
    return hf_payload_printf(ret_out, "%lld", (long long)(3 * number));
}

static hf_status order(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_activity_run("triple", in, ret_out, .start_to_close = hf_seconds(10)));
    HF_TRY(hf_sleep(hf_milliseconds(10)));
    return hf_signal_wait("go", NULL, .timeout = hf_minutes(1));
}

static hf_status run(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *run = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = {0};
    HF_TRY(hf_open(arg, &service));
    HF_TRY(hf_worker_new(service, "orders", &worker));
    HF_TRY(hf_worker_add_activity(worker, "triple", triple));
    HF_TRY(hf_worker_add_workflow(worker, "order", order));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(service, "order", hf_payload_of_json("14"), &run, .id = "order-1", .task_queue = "orders"));
    HF_TRY(hf_signal(run, "go", hf_payload_none()));
    HF_TRY(hf_result(run, &out, .timeout = hf_seconds(30)));
    (void)printf("%.*s\n", (int)out.len, (const char *)out.data);
    HF_TRY(hf_worker_stop(worker));
    return hf_worker_wait(worker);
}

int main(int argc, char **argv)
{
    if (argc != 2 || hf_run(run, argv[1]) != HF_OK) {
        (void)fprintf(stderr, "remote: %s\n", hf_error_text());
        return 1;
    }
    return 0;
}
