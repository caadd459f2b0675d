/* Activities fail, and are tried again. Which failures are final, how often and how soon an activity is tried again is
 * the workflow's decision; what to do when it failed for good, too. */
#include <holdfast/holdfast.h>

#include <stdio.h>

/* Fails twice, as a network does, then succeeds. */
static hf_status fetch_rate(hf_payload in, hf_payload *ret_out)
{
    int attempt = hf_activity_info()->attempt;
    (void)in;
    printf("asking for the rate, attempt %d\n", attempt);
    if (attempt < 3) {
        return hf_raise_typed(HF_ERR_FAILED, "NoAnswer", "the exchange does not answer");
    }
    return hf_payload_printf(ret_out, "1.25");
}

/* A card that was declined stays declined: `is_final` says so to whoever called. */
static hf_status charge_card(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    printf("charging the card for %s\n", (const char *)in.data);
    return hf_activity_fail("the card was declined", .type = "Declined", .is_final = true);
}

static hf_status send_invoice(hf_payload in, hf_payload *ret_out)
{
    printf("sending an invoice for %s\n", (const char *)in.data);
    return hf_payload_printf(ret_out, "\"invoice\"");
}

static hf_status purchase(hf_payload in, hf_payload *ret_out)
{
    hf_payload rate = {0};
    double factor = 0;
    double dollars = 0;
    /* Pauses of 20, 40, 80 ... ms between the attempts, five attempts in all, and 10 s for each. */
    HF_TRY(hf_activity_run("fetch_rate", in, &rate, .start_to_close = hf_seconds(10), .attempts_max = 5,
                           .retry_initial = hf_milliseconds(20), .retry_coefficient = 2));
    HF_TRY(hf_json_get_real(rate, "", &factor));
    HF_TRY(hf_json_get_real(in, "dollars", &dollars));
    hf_payload euros = {0};
    HF_TRY(hf_payload_printf(&euros, "%.2f", dollars / factor));

    hf_status status = hf_activity_run("charge_card", euros, ret_out, .start_to_close = hf_seconds(10));
    if (status == HF_ERR_FAILED && hf_error_find("Declined") != NULL) { /* somewhere in its chain of causes */
        return hf_activity_run("send_invoice", euros, ret_out, .start_to_close = hf_seconds(10));
    }
    return status;
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    (void)arg;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "shop", &worker));
    HF_TRY(hf_worker_add_workflow(worker, "purchase", purchase));
    HF_TRY(hf_worker_add_activity(worker, "fetch_rate", fetch_rate));
    HF_TRY(hf_worker_add_activity(worker, "charge_card", charge_card));
    HF_TRY(hf_worker_add_activity(worker, "send_invoice", send_invoice));
    HF_TRY(hf_worker_start(worker));

    HF_TRY(hf_start(service, "purchase", hf_payload_of_json("{\"dollars\": 50}"), &execution, .task_queue = "shop"));
    HF_TRY(hf_result(execution, &out));
    printf("it was paid by %s\n", (const char *)out.data);
    return HF_OK;
}

int main(void)
{
    HF_OR_DIE(hf_run(program, NULL));
    return 0;
}
