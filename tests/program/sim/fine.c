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

static hf_status twice(void *arg)
{
    (void)arg;
    return hf_activity_run("charge_again", hf_payload_none(), NULL, .start_to_close = hf_seconds(10),
                           .attempts_max = 1);
}

/* Two at once, which are not tried again: a process that dies lets them fail, and the money is given back. */
static hf_status once(hf_payload in, hf_payload *ret_out)
{
    (void)ret_out;
    HF_AUTO(hf_saga_close) hf_saga *undo = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_saga_open(&undo));
    HF_TRY(hf_saga_add(undo, "refund", in, .start_to_close = hf_seconds(10)));
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, twice, NULL));
    HF_TRY(hf_fork(scope, twice, NULL));
    hf_status status = hf_join(scope);
    if (status == HF_OK) {
        return hf_saga_commit(undo);
    }
    if (status != HF_ERR_EVICTED) {
        HF_TRY(hf_saga_undo(undo));
    }
    return status;
}

HF_PLUGIN(worker)
{
    HF_TRY(shop_add(worker));
    HF_TRY(hf_worker_add_workflow(worker, "once", once));
    HF_TRY(hf_worker_add_workflow(worker, "picky", picky));
    return hf_worker_add_workflow(worker, "order", order);
}
