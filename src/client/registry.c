/* Namespaces and search attributes: each verb is one call of the service. */
#include "client/errand.h"
#include "fiber/verbs.h"

#include <holdfast/list.h>

static const char *text_of(hf_arena *arena, hf_str text)
{
    hf_str copy = hf_arena_copy(arena, text); /* with a NUL */
    return copy.data != NULL ? copy.data : "";
}

/* ---- Namespaces ---------------------------------------------------------------------------------------------------------- */

static hf_status register_one(hf_errand *e, hf_service *service, const char *name, const hf_namespace_options *o)
{
    static const char VERB[] = "hf_namespace_register";
    HF_TRY(hf_text_check(&e->op, VERB, "the name", name, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(&e->op, VERB, ".description", o->description, 0, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(&e->op, VERB, ".owner", o->owner, 0, HF_ERRAND_TEXT_LEN_MAX));
    hf_pb_register_namespace_request request = {
        .namespace = hf_str_of(name),
        .description = hf_text_or(o->description, ""),
        .owner_email = hf_text_or(o->owner, ""),
        .workflow_execution_retention_period = hf_pb_duration_of(o->retention),
    };
    return hf_errand_ask(e, service, HF_METHOD_REGISTER_NAMESPACE, &request);
}

hf_status hf_namespace_register_with(hf_service *service, const char *name, const hf_namespace_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_namespace_register));
    HF_OPTIONS(hf_namespace_options, options, hf_namespace_register);
    if (service == NULL || name == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_namespace_register needs a service and a name");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_namespace_register", HF_STR(""));
    (void)register_one(&e, service, name, options);
    return hf_errand_end(&e);
}

static hf_status keep_one(hf_errand *e, hf_service *service, const char *name, hf_span retention)
{
    HF_TRY(hf_text_check(&e->op, "hf_namespace_keep", "the name", name, 1, HF_ERRAND_TEXT_LEN_MAX));
    hf_pb_namespace_config config = {.workflow_execution_retention_ttl = hf_pb_duration_of(retention)};
    hf_pb_update_namespace_request request = {.namespace = hf_str_of(name), .config = &config};
    return hf_errand_ask(e, service, HF_METHOD_UPDATE_NAMESPACE, &request);
}

hf_status hf_namespace_keep(hf_service *service, const char *name, hf_span retention)
{
    HF_TRY(HF_VERB_ALLOWED(hf_namespace_keep));
    if (service == NULL || name == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_namespace_keep needs a service and a name");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_namespace_keep", HF_STR(""));
    (void)keep_one(&e, service, name, retention);
    return hf_errand_end(&e);
}

hf_status hf_namespace_deprecate(hf_service *service, const char *name)
{
    HF_TRY(HF_VERB_ALLOWED(hf_namespace_deprecate));
    if (service == NULL || name == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_namespace_deprecate needs a service and a name");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_namespace_deprecate", HF_STR(""));
    hf_pb_deprecate_namespace_request request = {.namespace = hf_str_of(name)};
    (void)hf_errand_ask(&e, service, HF_METHOD_DEPRECATE_NAMESPACE, &request);
    return hf_errand_end(&e);
}

hf_status hf_namespace_delete(hf_service *service, const char *name)
{
    HF_TRY(HF_VERB_ALLOWED(hf_namespace_delete));
    if (service == NULL || name == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_namespace_delete needs a service and a name");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_namespace_delete", HF_STR(""));
    hf_pb_delete_namespace_request request = {.namespace = hf_str_of(name)};
    (void)hf_errand_ask(&e, service, HF_METHOD_DELETE_NAMESPACE, &request);
    return hf_errand_end(&e);
}

static bool show_namespace(hf_arena *arena, const hf_pb_describe_namespace_response *from,
                           hf_namespace_list_visit *visit, void *arg)
{
    hf_assert(from->namespace_info != NULL && from->config != NULL); /* remote-R6 */
    hf_namespace_info info = {
        .name = text_of(arena, from->namespace_info->name),
        .description = text_of(arena, from->namespace_info->description),
        .owner = text_of(arena, from->namespace_info->owner_email),
        .retention = hf_pb_duration_span(from->config->workflow_execution_retention_ttl),
        .is_deprecated = from->namespace_info->state == HF_NAMESPACE_STATE_DEPRECATED,
    };
    return arena->status == HF_OK && visit(arg, &info);
}

/* One page. `*ret_goes_on` false: the caller wants no more. */
static hf_status show_namespaces(hf_errand *e, const hf_pb_list_namespaces_response *page,
                                 hf_namespace_list_visit *visit, void *arg, bool *ret_goes_on)
{
    for (size_t i = 0; i < page->namespaces.count && *ret_goes_on; i++) {
        *ret_goes_on = show_namespace(&e->arena, &page->namespaces.items[i], visit, arg);
    }
    return e->arena.status == HF_OK ? HF_OK : hf_fail(&e->op, HF_ERR_NOMEM, "hf_namespace_list: no memory");
}

static hf_status list_namespaces(hf_errand *e, hf_service *service, hf_namespace_list_visit *visit, void *arg)
{
    hf_page_token token;
    hf_page_token_init(&token);
    hf_pb_list_namespaces_request request = {.page_size = 100};
    hf_status status = HF_OK;
    bool goes_on = true;
    while (status == HF_OK && goes_on) {
        status = hf_errand_ask(e, service, HF_METHOD_LIST_NAMESPACES, &request);
        if (status == HF_OK) {
            const hf_pb_list_namespaces_response *page = e->call.response;
            status = show_namespaces(e, page, visit, arg, &goes_on);
            goes_on = goes_on && hf_page_token_next(e, &token, page->next_page_token, &request.next_page_token);
        }
    }
    hf_page_token_deinit(&token);
    return e->op.status;
}

hf_status hf_namespace_list(hf_service *service, hf_namespace_list_visit *visit, void *arg)
{
    HF_TRY(HF_VERB_ALLOWED(hf_namespace_list));
    if (service == NULL || visit == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_namespace_list needs a service and a function to call for each namespace");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_namespace_list", HF_STR(""));
    (void)list_namespaces(&e, service, visit, arg);
    return hf_errand_end(&e);
}

/* ---- Search attributes --------------------------------------------------------------------------------------------------- */

const char *hf_search_attribute_type_name(hf_search_attribute_type type)
{
    static const char *const NAMES[] = {"Unknown", "Text", "Keyword",  "Int",
                                        "Double",  "Bool", "Datetime", "KeywordList"};
    return (unsigned)type < HF_COUNT_OF(NAMES) ? NAMES[type] : NAMES[0];
}

hf_status hf_search_attribute_add_with(hf_service *service, const char *name, hf_search_attribute_type type,
                                       const hf_search_attribute_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_search_attribute_add));
    HF_OPTIONS(hf_search_attribute_options, options, hf_search_attribute_add);
    if (service == NULL || name == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_search_attribute_add needs a service and a name");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_search_attribute_add", HF_STR(""));
    hf_pb_add_search_attributes_request_search_attributes_entry entry = {.key = hf_str_of(name),
                                                                         .value = (int32_t)type};
    hf_pb_add_search_attributes_request request = {.namespace = hf_namespace_or(options->namespace_, service),
                                                   .search_attributes = {&entry, 1}};
    (void)hf_errand_ask(&e, service, HF_METHOD_ADD_SEARCH_ATTRIBUTES, &request);
    return hf_errand_end(&e);
}

hf_status hf_search_attribute_remove_with(hf_service *service, const char *name,
                                          const hf_search_attribute_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_search_attribute_remove));
    HF_OPTIONS(hf_search_attribute_options, options, hf_search_attribute_remove);
    if (service == NULL || name == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_search_attribute_remove needs a service and a name");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_search_attribute_remove", HF_STR(""));
    hf_str which = hf_str_of(name);
    hf_pb_remove_search_attributes_request request = {.namespace = hf_namespace_or(options->namespace_, service),
                                                      .search_attributes = {&which, 1}};
    (void)hf_errand_ask(&e, service, HF_METHOD_REMOVE_SEARCH_ATTRIBUTES, &request);
    return hf_errand_end(&e);
}

static hf_status list_attributes(hf_errand *e, hf_service *service, hf_search_attribute_list_visit *visit, void *arg,
                                 const hf_search_attribute_options *o)
{
    hf_pb_list_search_attributes_request request = {.namespace = hf_namespace_or(o->namespace_, service)};
    HF_TRY(hf_errand_ask(e, service, HF_METHOD_LIST_SEARCH_ATTRIBUTES, &request));
    const hf_pb_list_search_attributes_response *response = e->call.response;
    bool goes_on = true;
    for (size_t i = 0; goes_on && i < response->custom_attributes.count; i++) {
        const char *name = text_of(&e->arena, response->custom_attributes.items[i].key);
        goes_on = visit(arg, name, (hf_search_attribute_type)response->custom_attributes.items[i].value, true);
    }
    for (size_t i = 0; goes_on && i < response->system_attributes.count; i++) {
        const char *name = text_of(&e->arena, response->system_attributes.items[i].key);
        goes_on = visit(arg, name, (hf_search_attribute_type)response->system_attributes.items[i].value, false);
    }
    return e->arena.status == HF_OK ? HF_OK : hf_fail(&e->op, HF_ERR_NOMEM, "hf_search_attribute_list: no memory");
}

hf_status hf_search_attribute_list_with(hf_service *service, hf_search_attribute_list_visit *visit, void *arg,
                                        const hf_search_attribute_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_search_attribute_list));
    HF_OPTIONS(hf_search_attribute_options, options, hf_search_attribute_list);
    if (service == NULL || visit == NULL) {
        return hf_raise(HF_ERR_MISUSE,
                        "hf_search_attribute_list needs a service and a function to call for each attribute");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_search_attribute_list", HF_STR(""));
    (void)list_attributes(&e, service, visit, arg, options);
    return hf_errand_end(&e);
}
