/* What docs/guide/activities.md does not show. */
static int fd;
static char buf[512];
static size_t len = sizeof buf;
static ssize_t got;
static hf_service *service;
static hf_worker *worker;
static hf_payload token;
static hf_payload result;
static hf_status send_mail(hf_payload in, hf_payload to)
{
    (void)in;
    (void)to;
    return HF_OK;
}
