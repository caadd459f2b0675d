/* What docs/guide/scopes.md does not show. */
static int invoices[10];
static size_t count = 10;
static hf_status send_invoice(void *arg)
{
    (void)arg;
    return HF_OK;
}
