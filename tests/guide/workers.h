/* What docs/guide/workers.md does not show. */
static hf_service *service;
static hf_worker *worker;
static hf_execution *execution;
static hf_payload out;
static hf_status order(hf_payload in, hf_payload *ret_out);
static hf_status charge(hf_payload in, hf_payload *ret_out);
static hf_status order(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("charge", in, ret_out, .start_to_close = hf_seconds(30));
}
static hf_status charge(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}
