#include "service/grpc_path.h"

#include <string.h>

/* NULL: the message is in another package. */
static const char *service_of(const hf_pb_type *type)
{
    static const char *const SERVICES[] = {HF_GRPC_WORKFLOW_SERVICE, HF_GRPC_OPERATOR_SERVICE, HF_GRPC_TEST_SERVICE,
                                           HF_GRPC_HOLDFAST_SERVICE};
    const char *end = strrchr(type->name, '.');
    hf_assert(end != NULL); /* every message is in a package */
    size_t len = (size_t)(end - type->name) + 1;
    for (size_t i = 0; i < HF_COUNT_OF(SERVICES); i++) {
        if (strncmp(type->name, SERVICES[i], len) == 0) {
            return SERVICES[i];
        }
    }
    return NULL;
}

const char *hf_method_grpc_service(hf_method method)
{
    const hf_method_info *info = hf_method_info_of(method);
    const char *service = service_of(info->request_type); /* some requests are google.protobuf.Empty */
    return service != NULL ? service : service_of(info->response_type);
}

bool hf_request_text(const hf_pb_type *type, const void *request, const char *name, hf_str *ret_text)
{
    for (size_t i = 0; i < type->field_count; i++) {
        bool is_text = type->fields[i].kind == HF_PB_STRING || type->fields[i].kind == HF_PB_BYTES;
        if (is_text && type->fields[i].shape == HF_PB_SINGLE && strcmp(type->names[i].name, name) == 0) {
            *ret_text = *(const hf_str *)(const void *)((const char *)request + type->fields[i].offset);
            return true;
        }
    }
    return false;
}
