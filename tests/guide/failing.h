/* What docs/guide/failing.md does not show. */
static hf_payload receipt;
static int items;
