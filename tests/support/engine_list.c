#include "support/engine_list.h"

#include "support/engine_batch.h"

#include "where/where.h"

static hf_str copied(hf_arena *arena, const hf_words *w, const char *key, const char *otherwise)
{
    return hf_arena_copy(arena, hf_words_str(w, key, otherwise));
}

static char token[4000]; /* of the last page */
static size_t token_len;

static void list(hf_rig *rig, hf_rig_call *slot, const hf_words *w, hf_method method)
{
    hf_pb_list_workflow_executions_request *request = HF_RIG_REQUEST(slot, list_workflow_executions);
    request->namespace = copied(&slot->request, w, "ns", HF_RIG_NS); /* a scan has the same fields */
    request->query = hf_words_spaced(&slot->request, w, "query");
    request->page_size = hf_words_number(w, "page", 0);
    request->holdfast_current = hf_words_has(w, "current");
    if (hf_words_has(w, "more")) {
        request->next_page_token = hf_arena_copy(&slot->request, hf_str_of_len(token, token_len));
    }
    hf_rig_send(rig, slot, method, request);
    const hf_pb_list_workflow_executions_response *response = slot->call.response;
    token_len = 0;
    if (slot->done && slot->call.status == HF_OK) {
        assert_true(response->next_page_token.len <= sizeof token);
        if (response->next_page_token.len > 0) {
            memcpy(token, response->next_page_token.data, response->next_page_token.len);
        }
        token_len = response->next_page_token.len;
    }
}

static void count(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    hf_pb_count_workflow_executions_request *request = HF_RIG_REQUEST(slot, count_workflow_executions);
    request->namespace = copied(&slot->request, w, "ns", HF_RIG_NS);
    request->query = hf_words_spaced(&slot->request, w, "query");
    hf_rig_send(rig, slot, HF_METHOD_COUNT_WORKFLOW_EXECUTIONS, request);
}

static void list_old(hf_rig *rig, hf_rig_call *slot, const hf_words *w, bool is_open)
{
    /* Both requests have the same fields in the same places, but for the status. */
    hf_pb_list_closed_workflow_executions_request *request = HF_RIG_REQUEST(slot, list_closed_workflow_executions);
    hf_arena *arena = &slot->request;
    request->namespace = copied(arena, w, "ns", HF_RIG_NS);
    request->maximum_page_size = hf_words_number(w, "page", 0);
    if (hf_words_option(w, "id") != NULL) {
        request->execution_filter = HF_ARENA_NEW(arena, hf_pb_workflow_execution_filter);
        request->execution_filter->workflow_id = copied(arena, w, "id", "");
        request->filters_case = HF_PB_LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST_EXECUTION_FILTER;
    }
    if (hf_words_option(w, "type") != NULL) {
        request->type_filter = HF_ARENA_NEW(arena, hf_pb_workflow_type_filter);
        request->type_filter->name = copied(arena, w, "type", "");
        request->filters_case = HF_PB_LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST_TYPE_FILTER;
    }
    if (hf_words_option(w, "status") != NULL) {
        request->status_filter = HF_ARENA_NEW(arena, hf_pb_status_filter);
        request->status_filter->status = hf_words_number(w, "status", 0);
        request->filters_case = HF_PB_LIST_CLOSED_WORKFLOW_EXECUTIONS_REQUEST_STATUS_FILTER;
    }
    if (!is_open) {
        hf_rig_send(rig, slot, HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS, request);
        return;
    }
    hf_pb_list_open_workflow_executions_request *open =
        HF_ARENA_NEW(arena, hf_pb_list_open_workflow_executions_request);
    open->namespace = request->namespace;
    open->maximum_page_size = request->maximum_page_size;
    open->filters_case = request->filters_case; /* with the same numbers */
    open->execution_filter = request->execution_filter;
    hf_rig_send(rig, slot, HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS, open);
}

static void namespaces(hf_rig *rig, hf_rig_call *slot, const hf_words *w, const char *verb)
{
    hf_arena *arena = &slot->request;
    hf_str name = hf_arena_copy(arena, hf_str_of(w->count > 1 ? hf_words_place(w, 1) : ""));
    if (strcmp(verb, "register") == 0) {
        hf_pb_register_namespace_request *request = HF_RIG_REQUEST(slot, register_namespace);
        request->namespace = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
        request->description = copied(arena, w, "describe", "");
        request->workflow_execution_retention_period = hf_words_span(w, "retention");
        hf_rig_send(rig, slot, HF_METHOD_REGISTER_NAMESPACE, request);
    } else if (strcmp(verb, "nsupdate") == 0) {
        hf_pb_update_namespace_request *request = HF_RIG_REQUEST(slot, update_namespace);
        request->namespace = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
        request->update_info = HF_ARENA_NEW(arena, hf_pb_update_namespace_info);
        request->update_info->description = copied(arena, w, "describe", "");
        request->update_info->data.items = HF_ARENA_NEW(arena, hf_pb_update_namespace_info_data_entry);
        request->update_info->data.items[0] =
            (hf_pb_update_namespace_info_data_entry){.key = HF_STR("key"), .value = copied(arena, w, "data", "value")};
        request->update_info->data.count = 1;
        request->config = HF_ARENA_NEW(arena, hf_pb_namespace_config);
        if (hf_words_option(w, "retention") != NULL) {
            request->config->workflow_execution_retention_ttl = hf_words_span(w, "retention");
        }
        hf_rig_send(rig, slot, HF_METHOD_UPDATE_NAMESPACE, request);
    } else if (strcmp(verb, "deprecate") == 0) {
        hf_pb_deprecate_namespace_request *request = HF_RIG_REQUEST(slot, deprecate_namespace);
        request->namespace = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
        hf_rig_send(rig, slot, HF_METHOD_DEPRECATE_NAMESPACE, request);
    } else {
        hf_pb_list_namespaces_request *request = HF_RIG_REQUEST(slot, list_namespaces);
        request->page_size = hf_words_number(w, "page", 0);
        request->next_page_token = copied(arena, w, "token", "");
        hf_rig_send(rig, slot, HF_METHOD_LIST_NAMESPACES, request);
    }
    (void)name;
}

static void attributes(hf_rig *rig, hf_rig_call *slot, const hf_words *w, const char *verb)
{
    hf_arena *arena = &slot->request;
    if (strcmp(verb, "addattr") == 0) {
        hf_pb_add_search_attributes_request *request = HF_RIG_REQUEST(slot, add_search_attributes);
        request->namespace = copied(arena, w, "ns", HF_RIG_NS);
        request->search_attributes.items =
            HF_ARENA_NEW(arena, hf_pb_add_search_attributes_request_search_attributes_entry);
        request->search_attributes.items[0] = (hf_pb_add_search_attributes_request_search_attributes_entry){
            .key = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1))),
            .value = hf_attr_type_of_name(hf_words_str(w, "type", "Keyword"))};
        request->search_attributes.count = 1;
        hf_rig_send(rig, slot, HF_METHOD_ADD_SEARCH_ATTRIBUTES, request);
    } else if (strcmp(verb, "removeattr") == 0) {
        hf_pb_remove_search_attributes_request *request = HF_RIG_REQUEST(slot, remove_search_attributes);
        request->namespace = copied(arena, w, "ns", HF_RIG_NS);
        request->search_attributes.items = HF_ARENA_NEW(arena, hf_str);
        request->search_attributes.items[0] = hf_arena_copy(arena, hf_str_of(hf_words_place(w, 1)));
        request->search_attributes.count = 1;
        hf_rig_send(rig, slot, HF_METHOD_REMOVE_SEARCH_ATTRIBUTES, request);
    } else if (strcmp(verb, "attrs") == 0) {
        hf_pb_list_search_attributes_request *request = HF_RIG_REQUEST(slot, list_search_attributes);
        request->namespace = copied(arena, w, "ns", HF_RIG_NS);
        hf_rig_send(rig, slot, HF_METHOD_LIST_SEARCH_ATTRIBUTES, request);
    } else {
        hf_rig_send(rig, slot, HF_METHOD_GET_SEARCH_ATTRIBUTES, HF_RIG_REQUEST(slot, get_search_attributes));
    }
}

bool hf_rig_registry(hf_rig *rig, hf_rig_call *slot, const hf_words *w)
{
    const char *verb = hf_words_place(w, 0);
    if (strcmp(verb, "list") == 0 || strcmp(verb, "scan") == 0) {
        list(rig, slot, w, verb[0] == 'l' ? HF_METHOD_LIST_WORKFLOW_EXECUTIONS : HF_METHOD_SCAN_WORKFLOW_EXECUTIONS);
    } else if (strcmp(verb, "count") == 0) {
        count(rig, slot, w);
    } else if (strcmp(verb, "listopen") == 0 || strcmp(verb, "listclosed") == 0) {
        list_old(rig, slot, w, strcmp(verb, "listopen") == 0);
    } else if (strcmp(verb, "register") == 0 || strcmp(verb, "nsupdate") == 0 || strcmp(verb, "deprecate") == 0 ||
               strcmp(verb, "namespaces") == 0) {
        namespaces(rig, slot, w, verb);
    } else if (strcmp(verb, "addattr") == 0 || strcmp(verb, "removeattr") == 0 || strcmp(verb, "attrs") == 0 ||
               strcmp(verb, "allattrs") == 0) {
        attributes(rig, slot, w, verb);
    } else {
        return hf_rig_batch(rig, slot, w);
    }
    return true;
}

bool hf_rig_list_text(const hf_rig_call *slot, hf_buf *out)
{
    if (!slot->done || slot->call.status != HF_OK) {
        return false;
    }
    if (slot->call.method == HF_METHOD_COUNT_WORKFLOW_EXECUTIONS) {
        const hf_pb_count_workflow_executions_response *response = slot->call.response;
        hf_buf_putf(out, "%lld", (long long)response->count);
        for (size_t i = 0; i < response->groups.count; i++) {
            hf_str value = response->groups.items[i].group_values.items[0].data;
            hf_buf_putf(out, "+%.*s:%lld", (int)value.len - 2, value.data + 1,
                        (long long)response->groups.items[i].count);
        }
        return true;
    }
    if (slot->call.method != HF_METHOD_LIST_WORKFLOW_EXECUTIONS &&
        slot->call.method != HF_METHOD_SCAN_WORKFLOW_EXECUTIONS &&
        slot->call.method != HF_METHOD_LIST_OPEN_WORKFLOW_EXECUTIONS &&
        slot->call.method != HF_METHOD_LIST_CLOSED_WORKFLOW_EXECUTIONS) {
        return hf_rig_batch_text(slot, out);
    }
    const hf_pb_list_workflow_executions_response *response = slot->call.response;
    for (size_t i = 0; i < response->executions.count; i++) {
        hf_str id = response->executions.items[i].execution->workflow_id;
        hf_buf_putf(out, "%s%.*s", i > 0 ? "+" : "", HF_STR_ARGS(id));
    }
    hf_buf_puts(out, response->next_page_token.len > 0 ? "..." : "");
    return true;
}
