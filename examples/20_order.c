/* An order that outlives its process: charge a card, wait for the parcel, ask for a review some time later. Kill the
 * program at any line and run it again: the order continues where it was.
 *
 *     20_order [seconds between delivery and review]
 *
 * The order is stored in orders.db. The program starts it unless it exists, delivers the parcel, and waits for the
 * review. The number of seconds is part of the delivery: a second run of the program does not deliver again, so it
 * ignores another number. When the order has ended, the program only prints its result; delete orders.db to start
 * another one. */
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Activities: ordinary code that may block, fail and be tried again ------------------------------------------- */

static hf_status charge(hf_payload in, hf_payload *ret_out)
{
    const hf_activity_facts *facts = hf_activity_info();
    printf("charging the card for %s, attempt %d\n", (const char *)in.data, facts->attempt);
    if (facts->attempt == 1) {
        return hf_raise_typed(HF_ERR_FAILED, "BankBusy", "the bank does not answer");
    }
    return hf_payload_printf(ret_out, "{\"receipt\": 4711}");
}

static hf_status refund(hf_payload in, hf_payload *ret_out)
{
    printf("refunding %s\n", (const char *)in.data);
    return hf_payload_printf(ret_out, "\"refunded\"");
}

static hf_status ask_review(hf_payload in, hf_payload *ret_out)
{
    printf("asking for a review of %s\n", (const char *)in.data);
    return hf_payload_printf(ret_out, "\"five stars\"");
}

/* ---- The workflow: what happens, in order. Its waits are kept in the file ----------------------------------------- */

/* Nothing stops a refund, not even a cancel of the order. */
static hf_status give_back(hf_payload receipt, hf_payload *ret_out)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_hours(1), &shield));
    return hf_activity_run("refund", receipt, ret_out, .start_to_close = hf_seconds(30));
}

static hf_status order(hf_payload in, hf_payload *ret_out)
{
    hf_payload receipt = {0};
    hf_payload parcel = {0};
    /* If the order is canceled meanwhile, this still returns what became of the charge: HF_OK if the card was charged. */
    HF_TRY(hf_activity_run("charge", in, &receipt, .start_to_close = hf_seconds(30), .attempts_max = 5,
                           .retry_initial = hf_milliseconds(100)));
    hf_status status = hf_signal_wait("delivered", &parcel, .timeout = hf_days(14));
    if (status == HF_ERR_TIMEOUT || status == HF_ERR_CANCELED) {
        HF_TRY(give_back(receipt, ret_out));
        return status == HF_ERR_CANCELED ? status : HF_OK;
    }
    HF_TRY(status);
    /* The workflow gets its data from its input and from signals, which are in its history. A global variable could have
     * another value after a restart, and the run would stop here: see "not deterministic" in workflow.h. */
    int64_t review_after = strtol((const char *)parcel.data, NULL, 10);
    HF_TRY(hf_sleep(hf_seconds(review_after))); /* needs neither memory nor a process meanwhile */
    return hf_activity_run("ask_review", in, ret_out, .start_to_close = hf_minutes(1));
}

/* ---- The program --------------------------------------------------------------------------------------------------- */

/* The customer's side. */
static hf_status buy(hf_service *service, const char *review_after)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload review = hf_payload_none();
    /* Once, however often this runs: an order under way is taken up, and one that has ended is not begun again. */
    hf_status status =
        hf_start(service, "order", hf_payload_of_json("{\"item\": \"kelp\"}"), &execution, .id = "order-1",
                 .task_queue = "orders", .id_conflict = HF_ID_CONFLICT_USE_EXISTING, .id_reuse = HF_ID_REUSE_REJECT);
    bool has_ended = status == HF_ERR_EXISTS;
    HF_TRY(has_ended ? hf_execution_new(service, "order-1", &execution) : status);
    printf("order %s %s\n", hf_execution_id(execution), has_ended ? "has ended" : "runs");
    status = hf_signal(execution, "delivered", hf_payload_of_json(review_after), .request_id = "delivery-1");
    if (status != HF_OK && status != HF_ERR_NOT_FOUND) { /* not found: it has ended, maybe just now */
        return status;
    }
    HF_TRY(hf_result(execution, &review));
    printf("the order ended with %s\n", (const char *)review.data);
    return HF_OK;
}

static hf_status program(void *arg)
{
    const char *review_after = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL; /* stops it, on every path out of here */
    HF_TRY(hf_open("sqlite:orders.db", &service));
    HF_TRY(hf_worker_new(service, "orders", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "order", order));
    HF_TRY(hf_worker_add_activity(worker, "charge", charge));
    HF_TRY(hf_worker_add_activity(worker, "refund", refund));
    HF_TRY(hf_worker_add_activity(worker, "ask_review", ask_review));
    HF_TRY(hf_worker_start(worker));
    return buy(service, review_after);
}

int main(int argc, char **argv)
{
    static char a_second[] = "1"; /* a real shop would take thirty days */
    char *review_after = argc > 1 ? argv[1] : a_second;
    HF_OR_DIE(
        hf_run(program, review_after, .watchdog = {.signal = SIGURG})); /* a workflow that loops loses its thread */
    return 0;
}
