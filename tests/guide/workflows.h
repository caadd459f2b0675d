/* What docs/guide/workflows.md does not show. */
static hf_payload shops[3];
