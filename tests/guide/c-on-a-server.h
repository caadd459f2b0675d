/* What docs/guide/c-on-a-server.md does not show. */
static hf_service *service;
