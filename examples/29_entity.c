/* A bank account that lives for ever: a workflow that is found by its id and never ends. Its history would grow without
 * bound, so it continues as new from time to time: the next run has the same id, an empty history, and the state of the
 * last one as its input. Deposits that arrive meanwhile go along. */
#include <holdfast/holdfast.h>

#include <stdio.h>

enum { DEPOSITS_MAX = 50 }; /* in one run; with hf_workflow_info()->should_continue the service decides */

typedef struct account {
    int64_t cents;
    int64_t deposits; /* so far */
    int64_t runs;
} account;

static const hf_member ACCOUNT[] = {HF_MEMBER(account, cents), HF_MEMBER(account, deposits), HF_MEMBER(account, runs),
                                    HF_MEMBERS_END};

static hf_status statement(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_write(arg, ACCOUNT, ret_out);
}

static hf_status keep_account(hf_payload in, hf_payload *ret_out)
{
    account *a = HF_WORKFLOW_NEW(account);
    hf_payload next = {0};
    (void)ret_out;
    if (a == NULL) {
        return HF_ERR_NOMEM;
    }
    HF_TRY(hf_payload_read(in, ACCOUNT, a));
    a->runs++;
    HF_TRY(hf_on_query("statement", statement, .arg = a));
    for (int i = 0; i < DEPOSITS_MAX && !hf_workflow_info()->should_continue; i++) {
        hf_payload deposit = {0};
        int64_t cents = 0;
        HF_TRY(hf_signal_wait("deposit", &deposit));
        HF_TRY(hf_json_get_int(deposit, "", &cents));
        a->cents += cents;
        a->deposits++;
    }
    HF_TRY(hf_payload_write(a, ACCOUNT, &next));
    return hf_continue_as_new(next);
}

static hf_status act(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *mine = NULL;
    HF_AUTO(hf_payload_free) hf_payload text = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload opening = hf_payload_none();
    account now = {0, 0, 0};
    HF_TRY(hf_payload_write(&now, ACCOUNT, &opening));
    HF_TRY(hf_start(service, "account", opening, &mine, .id = "account-7", .task_queue = "bank"));
    for (int i = 1; i <= 120; i++) {
        HF_TRY(hf_signal(mine, "deposit", hf_payload_of_json("100"))); /* to whichever run is current */
    }
    while (now.deposits < 120) { /* a deposit is acknowledged when it is stored; the account takes it a moment later */
        hf_payload_free(&text);
        HF_TRY(hf_query(mine, "statement", hf_payload_none(), &text));
        HF_TRY(hf_payload_read(text, ACCOUNT, &now));
    }
    printf("%s\n", (const char *)text.data);
    return hf_terminate(mine, .reason = "the example is over");
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "bank", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "account", keep_account));
    HF_TRY(hf_worker_start(worker));
    return act(service);
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
