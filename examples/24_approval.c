/* An expense needs two yeses within a week. Managers vote by signal, anybody may ask how it stands by query, and its owner may
 * lower it by update. The vote is a workflow, so it survives the process; here it is over in a moment, and its file goes
 * with the program. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>

/* ---- The workflow ------------------------------------------------------------------------------------------------ */

/* Handlers share it with the main function. They may run after that has returned, so it does not lie on its stack. */
typedef struct expense {
    long cents;
    int yes;
    int no;
} expense;

/* A signal: somebody has voted. */
static hf_status vote(void *arg, hf_payload in)
{
    expense *e = arg;
    bool is_yes = in.len >= 4 && ((const char *)in.data)[0] == 't'; /* "true" */
    *(is_yes ? &e->yes : &e->no) += 1;
    return HF_OK;
}

/* A query: it looks, and changes nothing. */
static hf_status standing(void *arg, hf_payload in, hf_payload *ret_out)
{
    const expense *e = arg;
    (void)in;
    return hf_payload_printf(ret_out, "{\"cents\": %ld, \"yes\": %d, \"no\": %d}", e->cents, e->yes, e->no);
}

/* A validator: an update that it refuses is not in the history. */
static hf_status may_lower(void *arg, hf_payload in)
{
    const expense *e = arg;
    long cents = in.len > 0 ? strtol(in.data, NULL, 10) : 0;
    return cents > 0 && cents < e->cents ? HF_OK
                                         : hf_raise_typed(HF_ERR_FAILED, "TooMuch", "an expense can only become less");
}

/* An update: it changes the workflow and answers its caller. Handlers may wait, for example for an activity. */
static hf_status lower(void *arg, hf_payload in, hf_payload *ret_out)
{
    expense *e = arg;
    HF_TRY(hf_activity_run("tell_managers", in, NULL, .start_to_close = hf_seconds(30)));
    e->cents = strtol(in.data, NULL, 10);
    return hf_payload_printf(ret_out, "%ld", e->cents);
}

static hf_status approval(hf_payload in, hf_payload *ret_out)
{
    expense *e = HF_WORKFLOW_NEW(expense);
    if (e == NULL) {
        return HF_ERR_NOMEM;
    }
    e->cents = strtol(in.data, NULL, 10);
    HF_TRY(hf_on_signal("vote", vote, .arg = e));
    HF_TRY(hf_on_query("standing", standing, .arg = e));
    HF_TRY(hf_on_update("lower", lower, .arg = e, .validator = may_lower));

    hf_status decided = hf_wait_until(e->yes >= 2 || e->no > 0, .timeout = hf_days(7));
    if (decided == HF_ERR_TIMEOUT) {
        return hf_raise_typed(HF_ERR_FAILED, "Expired", "nobody decided within a week");
    }
    HF_TRY(decided);
    HF_TRY(hf_handlers_wait()); /* an update that is under way is answered before the end */
    if (e->no > 0) {
        return hf_payload_printf(ret_out, "\"rejected\"");
    }
    hf_payload sum = {0};
    HF_TRY(hf_payload_printf(&sum, "%ld", e->cents));
    return hf_activity_run("pay", sum, ret_out, .start_to_close = hf_minutes(5), .attempts_max = 10);
}

/* ---- Activities -------------------------------------------------------------------------------------------------- */

static hf_status tell_managers(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    printf("managers are told: now %s cents\n", (const char *)in.data);
    return HF_OK;
}

static hf_status pay(hf_payload in, hf_payload *ret_out)
{
    printf("paying %s cents\n", (const char *)in.data);
    return hf_payload_printf(ret_out, "\"paid %s\"", (const char *)in.data);
}

/* ---- The program ------------------------------------------------------------------------------------------------- */

/* What the others do: they would be other programs. */
static hf_status act(hf_service *service)
{
    HF_AUTO(hf_execution_free) hf_execution *trip = NULL;
    HF_AUTO(hf_payload_free) hf_payload answer = hf_payload_none();
    HF_AUTO(hf_payload_free) hf_payload result = hf_payload_none();
    HF_TRY(
        hf_start(service, "approval", hf_payload_of_json("120000"), &trip, .id = "trip-7", .task_queue = "expenses"));
    HF_TRY(hf_signal(trip, "vote", hf_payload_of_json("true")));
    HF_TRY(hf_query(trip, "standing", hf_payload_none(), &answer));
    printf("it stands at %s\n", (const char *)answer.data);
    if (hf_update(trip, "lower", hf_payload_of_json("150000"), NULL) == HF_ERR_FAILED) {
        printf("refused: %s\n", hf_error_text());
    }
    HF_TRY(hf_update(trip, "lower", hf_payload_of_json("90000"), NULL, .id = "lower-1"));
    HF_TRY(hf_signal(trip, "vote", hf_payload_of_json("true")));
    HF_TRY(hf_result(trip, &result));
    printf("trip-7: %s\n", (const char *)result.data);
    return HF_OK;
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    (void)arg;
    HF_TRY(hf_open("memory:", &service)); /* "sqlite:expenses.db" to keep it */
    HF_TRY(hf_worker_new(service, "expenses", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "approval", approval));
    HF_TRY(hf_worker_add_activity(worker, "tell_managers", tell_managers));
    HF_TRY(hf_worker_add_activity(worker, "pay", pay));
    HF_TRY(hf_worker_start(worker));
    return act(service); /* leaving stops the worker */
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
