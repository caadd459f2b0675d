/* Two of three banks must agree to a loan. As soon as two have, or two have refused, the third is not waited for: its
 * activity is canceled, and joined. It is 04_quorum.c as a workflow: the same scopes and joins, and every answer is
 * stored. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

/* A bank thinks, and sends heartbeats meanwhile, so that it hears when it is not asked any more. */
static hf_status ask_bank(hf_payload in, hf_payload *ret_out)
{
    char name[16];
    HF_TRY(hf_json_get_text(in, "", sizeof name, name));
    if (strcmp(name, "slow") == 0) {
        hf_status status = hf_sleep(hf_minutes(10));
        printf("the %s bank hears: %s\n", name, status == HF_ERR_CANCELED ? "never mind" : "go on");
        return status;
    }
    if (strcmp(name, "stern") == 0) {
        return hf_activity_fail("no", .type = "Refused", .is_final = true);
    }
    return hf_payload_printf(ret_out, "\"yes\"");
}

static hf_status ask(void *arg)
{
    return hf_activity_run("ask_bank", hf_payload_of_json(arg), NULL, .start_to_close = hf_hours(1));
}

/* The input is a list of three banks. */
static hf_status loan(hf_payload in, hf_payload *ret_out)
{
    char names[3][20];
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "banks", .join = HF_JOIN_QUORUM(2), .timeout = hf_days(3)));
    for (size_t i = 0; i < 3; i++) {
        char path[8];
        hf_payload name = {0};
        (void)snprintf(path, sizeof path, "[%zu]", i);
        HF_TRY(hf_json_get_view(in, path, &name));
        (void)snprintf(names[i], sizeof names[i], "%.*s", (int)name.len, (const char *)name.data);
        HF_TRY(hf_fork(scope, ask, names[i]));
    }
    hf_status status = hf_join(scope);
    if (status != HF_OK && status != HF_ERR_EVICTED) {
        return hf_payload_printf(ret_out, "\"refused\"");
    }
    HF_TRY(status);
    return hf_payload_printf(ret_out, "\"granted\"");
}

static hf_status apply_for(hf_service *service, const char *banks)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_start(service, "loan", hf_payload_of_json(banks), &execution, .task_queue = "loans"));
    HF_TRY(hf_result(execution, &out));
    printf("%s: %s\n", banks, (const char *)out.data);
    return HF_OK;
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "loans", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "loan", loan));
    HF_TRY(hf_worker_add_activity(worker, "ask_bank", ask_bank, .on_fiber = true));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(apply_for(service, "[\"kind\", \"slow\", \"open\"]"));
    return apply_for(service, "[\"stern\", \"slow\", \"stern\"]");
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
