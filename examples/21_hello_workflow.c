/* The smallest program with a workflow: it calls one activity. What the activity returned is stored before the workflow
 * continues, so it is not called again when the program was killed in between and started again. */
#include <holdfast/holdfast.h>

#include <stdio.h>

/* An activity: ordinary code, on a thread of its own. */
static hf_status greet(hf_payload in, hf_payload *ret_out)
{
    char name[64];
    HF_TRY(hf_json_get_text(in, "", sizeof name, name));
    return hf_payload_printf(ret_out, "\"Hello, %s!\"", name);
}

/* A workflow: it says what happens, in which order. */
static hf_status hello(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("greet", in, ret_out, .start_to_close = hf_seconds(10));
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL; /* stops it, on every path out of here */
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    (void)arg;
    HF_TRY(hf_open("memory:", &service)); /* "sqlite:hello.db" to keep it */
    HF_TRY(hf_worker_new(service, "greetings", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "hello", hello));
    HF_TRY(hf_worker_add_activity(worker, "greet", greet));
    HF_TRY(hf_worker_start(worker));

    HF_TRY(hf_start(service, "hello", hf_payload_of_json("\"world\""), &execution, .task_queue = "greetings"));
    HF_TRY(hf_result(execution, &out));
    printf("%s\n", (const char *)out.data);
    return HF_OK;
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
