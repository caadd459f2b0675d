/* Programs as activities: a picture is scaled by a program that somebody else has written, in any language. It gets its
 * input on stdin, writes its result to stdout and its progress to stderr. When it fails, it is tried again; when it is
 * canceled or this process dies, it and all that it started are killed. */
#include <holdfast/holdfast.h>

#include <stdio.h>

/* ---- The programs: small scripts here, so that the example is one file ---------------------------------------------- */

/* It fails the first time. HOLDFAST_ATTEMPT, HOLDFAST_RUN_ID and others are in its environment. */
static const char SCALE[] = "read picture\n"
                            "echo 'heartbeat {\"percent\": 50}' >&2\n"
                            "if test \"$HOLDFAST_ATTEMPT\" = 1; then echo 'no space left' >&2; exit 3; fi\n"
                            "echo \"{\\\"scaled\\\": $picture}\"\n";
/* It starts another program and waits for it, for too long. */
static const char HANG[] = "sleep 1000 & wait";

static const char *const SCALE_ARGV[] = {"sh", "-c", SCALE, NULL};
static const char *const HANG_ARGV[] = {"sh", "-c", HANG, NULL};
static const char *const SORT_ARGV[] = {"sort", "-n", NULL};

/* ---- The workflow ---------------------------------------------------------------------------------------------------- */

static hf_status pictures(hf_payload in, hf_payload *ret_out)
{
    hf_payload sorted = {0};
    HF_TRY(
        hf_activity_run("scale", in, ret_out, .start_to_close = hf_minutes(5), .retry_initial = hf_milliseconds(10)));
    printf("scaled: %.*s\n", (int)ret_out->len, (const char *)ret_out->data);

    hf_payload numbers = hf_payload_of_bytes("10\n9\n8", 6);
    HF_TRY(hf_activity_run("sort", numbers, &sorted, .start_to_close = hf_minutes(1)));
    printf("sorted: %.*s\n", (int)sorted.len, (const char *)sorted.data);

    hf_status status = hf_activity_run("hang", in, NULL, .start_to_close = hf_milliseconds(300), .attempts_max = 1);
    printf("the program that hangs: %s\n", hf_error_text());
    return status == HF_ERR_TIMEOUT ? HF_OK : status;
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "pictures", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "pictures", pictures));
    HF_TRY(hf_worker_add_command(worker, "scale", SCALE_ARGV));
    HF_TRY(hf_worker_add_command(worker, "sort", SORT_ARGV));
    HF_TRY(hf_worker_add_command(worker, "hang", HANG_ARGV, .kill_after = hf_milliseconds(100)));
    HF_TRY(hf_worker_start(worker));

    hf_payload in = hf_payload_of_json("\"cat.png\"");
    HF_TRY(hf_start(service, "pictures", in, &execution, .task_queue = "pictures"));
    return hf_result(execution, NULL);
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
