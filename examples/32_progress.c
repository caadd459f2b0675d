/* A long job whose progress somebody watches live. The workflow and its activity publish records; the main fiber follows them while the job
 * runs. A watcher that comes later, or lost its connection, goes on from the number of the last record that it saw. */
#include <holdfast/holdfast.h>

#include <stdio.h>

enum { FILES = 5 };

/* An activity that says how far it is. */
static hf_status copy_files(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    for (int i = 1; i <= FILES; i++) {
        HF_AUTO(hf_payload_free) hf_payload progress = hf_payload_none();
        HF_TRY(hf_payload_printf(&progress, "{\"copied\": %d, \"of\": %d}", i, FILES));
        HF_TRY(hf_publish("progress", progress)); /* it is on the disk when this returns */
    }
    return hf_payload_printf(ret_out, "%d", FILES);
}

static hf_status backup(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_publish("stage", hf_payload_of_json("\"copying\"")));
    HF_TRY(hf_activity_run("copy_files", in, ret_out, .start_to_close = hf_minutes(10)));
    return hf_publish("stage", hf_payload_of_json("\"done\"")); /* once, however often this code is replayed */
}

static bool show(void *arg, const hf_stream_record *record)
{
    (void)arg;
    printf("%lld %s %s\n", (long long)record->sequence, record->type, (const char *)record->value.data);
    return true; /* false ends hf_stream_read */
}

static bool show_one(void *arg, const hf_stream_record *record)
{
    (void)show(arg, record);
    return false;
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_execution_free) hf_execution *again = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "backups", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "backup", backup));
    HF_TRY(hf_worker_add_activity(worker, "copy_files", copy_files));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_start(service, "backup", hf_payload_none(), &execution, .id = "backup-7", .task_queue = "backups"));

    int64_t cursor = 0;
    HF_TRY(hf_stream_read(execution, &cursor, show, NULL)); /* until the workflow has ended */

    printf("the last record again:\n");
    cursor--;
    HF_TRY(hf_execution_new(service, "backup-7", &again));
    return hf_stream_read(again, &cursor, show_one, NULL);
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
