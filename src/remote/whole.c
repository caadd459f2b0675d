/* Answers that the client's verbs rely on: what a server leaves out is found here, so that nothing above has to ask (remote-R6). */
#include "remote/remote_private.h"

static bool has_run_ids(const hf_pb_execute_multi_operation_response *both)
{
    return both->responses.count == 2 && both->responses.items[0].start_workflow != NULL &&
           both->responses.items[0].start_workflow->run_id.len > 0 && both->responses.items[1].update_workflow != NULL;
}

static bool has_spaces(const hf_pb_list_namespaces_response *page)
{
    for (size_t i = 0; i < page->namespaces.count; i++) {
        if (page->namespaces.items[i].namespace_info == NULL || page->namespaces.items[i].config == NULL) {
            return false;
        }
    }
    return true;
}

const char *hf_answer_lacks(hf_method method, const void *response)
{
    hf_assert(response != NULL && method < HF_METHOD_COUNT);
#define LACKS(type, condition, what)                 \
    do {                                             \
        const hf_pb_##type##_response *r = response; \
        return (condition) ? NULL : (what);          \
    } while (0)
    switch ((int)method) {
    case HF_METHOD_START_WORKFLOW_EXECUTION:
        LACKS(start_workflow_execution, r->run_id.len > 0, "run id");
    case HF_METHOD_SIGNAL_WITH_START_WORKFLOW_EXECUTION:
        LACKS(signal_with_start_workflow_execution, r->run_id.len > 0, "run id");
    case HF_METHOD_EXECUTE_MULTI_OPERATION:
        LACKS(execute_multi_operation, has_run_ids(r), "answer to a start and to an update");
    case HF_METHOD_RESET_WORKFLOW_EXECUTION:
        LACKS(reset_workflow_execution, r->run_id.len > 0, "run id");
    case HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION:
        LACKS(describe_workflow_execution, r->workflow_execution_info != NULL, "description");
    case HF_METHOD_QUERY_WORKFLOW:
        LACKS(query_workflow, r->query_rejected == NULL, "result, but a rejection that was not asked for");
    case HF_METHOD_DESCRIBE_NAMESPACE:
        LACKS(describe_namespace, r->namespace_info != NULL && r->config != NULL, "namespace");
    case HF_METHOD_LIST_NAMESPACES:
        LACKS(list_namespaces, has_spaces(r), "description of each namespace");
    default:
        return NULL;
    }
#undef LACKS
}
