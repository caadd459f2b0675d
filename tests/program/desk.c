/* A program for tests/program/verbs.sh: a worker on ADDRESS until SIGTERM. `desk ADDRESS [QUEUE]`: "ready" goes to stdout when it works. Without a
 * queue it only has the file open. */
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>

static int64_t total;

static hf_status echo(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}

static hf_status state(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)arg;
    (void)in;
    return hf_payload_printf(ret_out, "{\"total\": %lld}", (long long)total);
}

static hf_status add(void *arg, hf_payload in, hf_payload *ret_out)
{
    int64_t more = 0;
    (void)arg;
    HF_TRY(hf_json_get_int(in, "", &more));
    if (more < 0) {
        return hf_raise_typed(HF_ERR_FAILED, "TooLittle", "%lld is not positive", (long long)more);
    }
    total += more;
    return hf_payload_printf(ret_out, "%lld", (long long)total);
}

/* Waits for "go", and answers meanwhile. */
static hf_status patient(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    total = 0;
    HF_TRY(hf_on_query("state", state));
    HF_TRY(hf_on_update("add", add));
    HF_TRY(hf_publish("note", hf_payload_of_json("{\"percent\": 10}")));
    return hf_signal_wait("go", ret_out);
}

/* Its result is labelled as JSON, and is not. */
static hf_status sloppy(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_copy(hf_payload_of_json("done"), ret_out);
}

static hf_status decline(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_raise_typed(HF_ERR_FAILED, "CardDeclined", "insufficient funds");
}

static hf_status pay(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("decline", in, ret_out, .start_to_close = hf_seconds(10), .attempts_max = 1);
}

static hf_status buy(hf_payload in, hf_payload *ret_out)
{
    return hf_child_run("pay", in, ret_out, .id = "the-payment");
}

static hf_service *opened; /* for the activity */

/* Somebody has it, and does not end when it is asked to. */
static hf_status lend(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    (void)in;
    (void)ret_out;
    HF_TRY(hf_execution_new(opened, hf_activity_info()->workflow_id, &execution));
    HF_TRY(hf_signal(execution, "lent", hf_payload_none()));
    return HF_PENDING;
}

static hf_status lend_body(void *arg)
{
    (void)arg;
    return hf_activity_run("lend", hf_payload_none(), NULL, .start_to_close = hf_days(1));
}

/* Answers when the activity was asked to end. */
static hf_status on_back(void *arg, hf_payload in, hf_payload *ret_out)
{
    (void)in;
    HF_TRY(hf_wait_until(*(bool *)arg));
    return hf_payload_printf(ret_out, "true");
}

static hf_status borrow(hf_payload in, hf_payload *ret_out)
{
    bool *is_asked = hf_workflow_alloc(sizeof *is_asked);
    (void)in;
    (void)ret_out;
    HF_TRY(hf_on_update("back", on_back, .arg = is_asked));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, lend_body, NULL));
    HF_TRY(hf_signal_wait("lent", NULL));
    HF_TRY(hf_scope_cancel(scope));
    *is_asked = true;
    return hf_join(scope);
}

/* Its activity is for a worker of another queue. */
static hf_status afar(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("decline", in, ret_out, .start_to_close = hf_seconds(10), .task_queue = "mails");
}

typedef struct desk {
    const char *address;
    const char *queue;
} desk;

typedef struct stopper {
    hf_worker *worker;
    hf_os_signals *signals;
} stopper;

static hf_status stop_on_signal(void *arg)
{
    const stopper *s = arg;
    int number = 0;
    HF_TRY(hf_os_signals_next(s->signals, &number));
    return hf_worker_stop(s->worker);
}

/* The signal is taken before anybody is told that the worker runs. */
static hf_status run(hf_worker *worker)
{
    static const int SIGNALS[] = {SIGTERM};
    HF_AUTO(hf_os_signals_close) hf_os_signals *signals = NULL;
    HF_TRY(hf_os_signals_open(SIGNALS, 1, &signals));
    stopper s = {.worker = worker, .signals = signals};
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_DISCARD));
    HF_TRY(hf_worker_start(worker));
    HF_TRY(hf_fork(scope, stop_on_signal, &s));
    (void)printf("ready\n");
    (void)fflush(stdout);
    return hf_worker_wait(worker);
}

static hf_status work(void *arg)
{
    const desk *d = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_TRY(hf_open(d->address, &service));
    opened = service;
    HF_TRY(hf_worker_new(service, d->queue != NULL ? d->queue : "nothing", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "echo", echo));
    HF_TRY(hf_worker_add_workflow(worker, "patient", patient));
    HF_TRY(hf_worker_add_workflow(worker, "sloppy", sloppy));
    HF_TRY(hf_worker_add_workflow(worker, "pay", pay));
    HF_TRY(hf_worker_add_workflow(worker, "buy", buy));
    HF_TRY(hf_worker_add_workflow(worker, "borrow", borrow));
    HF_TRY(hf_worker_add_workflow(worker, "afar", afar));
    HF_TRY(hf_worker_add_activity(worker, "lend", lend));
    HF_TRY(hf_worker_add_activity(worker, "decline", decline));
    return run(worker);
}

int main(int argc, char **argv)
{
    desk d = {.address = argc > 1 ? argv[1] : "", .queue = argc > 2 ? argv[2] : NULL};
    hf_status status = hf_run(work, &d);
    if (status != HF_OK && status != HF_ERR_CANCELED) {
        (void)fprintf(stderr, "desk: %s\n", hf_error_text());
        return 1;
    }
    return 0;
}
