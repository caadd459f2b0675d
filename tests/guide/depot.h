/* What docs/guide/depot.md does not show. */
static int api;
static hf_depot *users;
static hf_depot *answers;
static hf_depot_key keys[50];
static size_t count;
static hf_depot_key key;
static hf_depot_info info;
static const char *etag;
static const char *id;
static const void *bytes;
static size_t len;
static hf_service *service;
static hf_worker *worker;
static hf_status fetch_user(void *state, const hf_fetch_request *request, hf_reply *reply);
static hf_status locate(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_copy(in, ret_out);
}
