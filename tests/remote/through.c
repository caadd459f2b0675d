/* Linked into the examples of examples/, which are not changed for it: hf_open opens the address in HF_THROUGH, if there is one, and
 * before hf_close the histories of all workflows are written to the file HF_HISTORIES, one line for each run: its type, and the types
 * of its events. tests/remote/examples.sh compares the lines of a program with the engine inside and of one that uses a server. */
#include <holdfast/holdfast.h>

#include "base/env.h"
#include "service/call.h"

#include <stdio.h>
#include <stdlib.h>

hf_status __real_hf_open_with(const char *address, hf_service **ret_service, const hf_open_options *options);
hf_status __wrap_hf_open_with(const char *address, hf_service **ret_service, const hf_open_options *options);
hf_status __real_hf_close(hf_service *service);
hf_status __wrap_hf_close(hf_service *service);

hf_status __wrap_hf_open_with(const char *address, hf_service **ret_service, const hf_open_options *options)
{
    const char *through = getenv("HF_THROUGH");
    return __real_hf_open_with(through != NULL ? through : address, ret_service, options);
}

static void write_history(FILE *to, hf_service *service, hf_arena *arena, const hf_pb_workflow_execution_info *info)
{
    hf_op op;
    hf_call call;
    hf_str token = {0};
    (void)fprintf(to, "%.*s:", HF_STR_ARGS(info->type->name));
    do {
        hf_pb_get_workflow_execution_history_request request = {
            .namespace = HF_STR("default"), .execution = info->execution, .next_page_token = token};
        hf_pb_history history = {0};
        hf_op_init(&op);
        hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, arena, NULL);
        if (hf_service_ask(&op, service, &call) != HF_OK ||
            hf_pb_decode(&op, &hf_pb_history_type,
                         ((const hf_pb_get_workflow_execution_history_response *)call.response)->history, arena,
                         &history) != HF_OK) {
            (void)fprintf(to, " FAILED: %s", op.message);
            break;
        }
        for (size_t i = 0; i < history.events.count; i++) {
            (void)fprintf(to, " %d", (int)history.events.items[i].event_type);
        }
        token = ((const hf_pb_get_workflow_execution_history_response *)call.response)->next_page_token;
    } while (token.len > 0);
    (void)fprintf(to, "\n");
}

static void write_histories(const char *path, hf_service *service)
{
    FILE *to = fopen(path, "we");
    hf_arena arena;
    hf_op op;
    hf_call call;
    hf_pb_list_workflow_executions_request request = {.namespace = HF_STR("default"), .page_size = 1000};
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_op_init(&op);
    hf_call_init(&call, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, &request, &arena, NULL);
    if (to != NULL && hf_service_ask(&op, service, &call) == HF_OK) {
        const hf_pb_list_workflow_executions_response *response = call.response;
        for (size_t i = 0; i < response->executions.count; i++) {
            write_history(to, service, &arena, &response->executions.items[i]);
        }
    } else {
        (void)fprintf(stderr, "the histories cannot be written: %s\n", op.message);
    }
    if (to != NULL) {
        (void)fclose(to);
    }
    hf_arena_deinit(&arena);
}

hf_status __wrap_hf_close(hf_service *service)
{
    const char *path = getenv("HF_HISTORIES");
    if (path != NULL && service != NULL) {
        write_histories(path, service);
    }
    return __real_hf_close(service);
}
