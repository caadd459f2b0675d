/* What docs/guide/clients.md does not show. */
static hf_service *service;
static hf_execution *execution;
