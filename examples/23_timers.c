/* Time in a workflow: a pause, a wait with a limit, and one deadline for several things. All of them are stored, so they
 * hold when the program was not running meanwhile. Real ones would take days; these take a second together. */
#include <holdfast/holdfast.h>

#include <stdio.h>

static hf_sem *reminded; /* a permit for each reminder */

static hf_status remind(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    printf("reminder %s: please confirm your address\n", (const char *)in.data);
    return hf_sem_release(reminded, 1);
}

static hf_status look_up(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    return hf_sleep(hf_minutes(10)); /* a register that takes its time; its cancel ends this */
}

/* Reminds until an answer comes: after a moment, then once a day, at most thirty times. */
static hf_status ask(hf_payload *ret_answer)
{
    for (int i = 1; i <= 30; i++) {
        hf_payload number = {0};
        hf_span patience = i == 1 ? hf_milliseconds(200) : hf_days(1);
        hf_status status = hf_signal_wait("confirmed", ret_answer, .timeout = patience);
        if (status != HF_ERR_TIMEOUT) {
            return status;
        }
        HF_TRY(hf_payload_printf(&number, "%d", i));
        HF_TRY(hf_activity_run("remind", number, NULL, .start_to_close = hf_seconds(10)));
    }
    return hf_raise_typed(HF_ERR_FAILED, "NoAnswer", "thirty reminders, and no answer");
}

static hf_status check(void *arg)
{
    return hf_activity_run("look_up", hf_payload_none(), arg, .start_to_close = hf_hours(1));
}

/* One deadline for whatever is done inside of the scope. */
static hf_status check_in_time(hf_payload *ret_entry)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .timeout = hf_milliseconds(300)));
    HF_TRY(hf_fork(scope, check, ret_entry));
    return hf_join(scope);
}

static hf_status move_house(hf_payload in, hf_payload *ret_out)
{
    hf_payload address = {0};
    hf_payload entry = {0};
    (void)in;
    HF_TRY(hf_sleep(hf_milliseconds(100))); /* the law wants a pause first */
    HF_TRY(ask(&address));
    hf_status status = check_in_time(&entry);
    if (status == HF_ERR_TIMEOUT) {
        return hf_payload_printf(ret_out, "{\"address\": %s, \"checked\": false}", (const char *)address.data);
    }
    HF_TRY(status);
    return hf_payload_printf(ret_out, "{\"address\": %s, \"checked\": true}", (const char *)address.data);
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_sem_free) hf_sem *sem = NULL;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    (void)arg;
    HF_TRY(hf_sem_new(0, &sem));
    reminded = sem;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "town", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "move_house", move_house));
    HF_TRY(hf_worker_add_activity(worker, "remind", remind));
    HF_TRY(hf_worker_add_activity(worker, "look_up", look_up, .on_fiber = true)); /* it waits only in the library */
    HF_TRY(hf_worker_start(worker));

    HF_TRY(hf_start(service, "move_house", hf_payload_none(), &execution, .task_queue = "town"));
    HF_TRY(hf_sem_acquire(reminded, 1)); /* the first reminder is answered */
    HF_TRY(hf_signal(execution, "confirmed", hf_payload_of_json("\"Sand Street 3\"")));
    HF_TRY(hf_result(execution, &out));
    printf("%s\n", (const char *)out.data);
    return HF_OK;
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
