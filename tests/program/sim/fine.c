/* An order without a bug: charges with an idempotency key, ships, refunds if it cannot ship, and takes its signal whenever it comes. */
#include "program/sim/shop.h"

static hf_status order(hf_payload in, hf_payload *ret_out)
{
    HF_AUTO(hf_saga_close) hf_saga *undo = NULL;
    hf_payload address = hf_payload_none();
    HF_TRY(hf_saga_open(&undo));
    HF_TRY(hf_saga_add(undo, "refund", in, .start_to_close = hf_seconds(10)));
    hf_status status = hf_activity_run("charge", in, NULL, .start_to_close = hf_seconds(10));
    status = status == HF_OK ? hf_signal_wait("address", &address) : status;
    status = status == HF_OK ? hf_sleep(hf_days(2)) : status;
    status = status == HF_OK ? hf_activity_run("ship", address, NULL, .start_to_close = hf_seconds(10)) : status;
    if (status == HF_OK) {
        HF_TRY(hf_saga_commit(undo));
        return hf_payload_copy(address, ret_out);
    }
    if (status != HF_ERR_EVICTED) {
        HF_TRY(hf_saga_undo(undo));
    }
    return status;
}

/* Needs an input, and takes no signal. */
static hf_status picky(hf_payload in, hf_payload *ret_out)
{
    int64_t count = 0;
    HF_TRY(hf_json_get_int(in, "count", &count));
    HF_TRY(hf_sleep(hf_days(1)));
    return hf_payload_printf(ret_out, "%lld", (long long)count);
}

HF_PLUGIN(worker)
{
    HF_TRY(shop_add(worker));
    HF_TRY(hf_worker_add_workflow(worker, "picky", picky));
    return hf_worker_add_workflow(worker, "order", order);
}
