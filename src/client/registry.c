/* Namespaces and search attributes: each verb is one call of the service. */
#include "base/env.h"
#include "client/errand.h"
#include "fiber/verbs.h"

#include <holdfast/list.h>

static const char *text_of(hf_arena *arena, hf_str text)
{
    hf_str copy = hf_arena_copy(arena, text); /* with a NUL */
    return copy.data != NULL ? copy.data : "";
}

/* ---- Namespaces ---------------------------------------------------------------------------------------------------------- */

#define TEXTS_LEN_MAX 10000 /* of the texts of a namespace together, which the engine counts */

static hf_status check_texts(hf_errand *e, const char *name, const char *description, const char *owner,
                             const hf_namespace_text *data, size_t *ret_data_count)
{
    HF_TRY(hf_text_check(&e->op, e->verb, "the name", name, 1, HF_ERRAND_TEXT_LEN_MAX));
    HF_TRY(hf_text_check(&e->op, e->verb, ".description", description, 0, TEXTS_LEN_MAX));
    HF_TRY(hf_text_check(&e->op, e->verb, ".owner", owner, 0, HF_ERRAND_TEXT_LEN_MAX));
    size_t count = 0;
    for (; data != NULL && data[count].key != NULL; count++) {
        HF_TRY(hf_text_check(&e->op, e->verb, "a key of .data", data[count].key, 1, HF_ERRAND_TEXT_LEN_MAX));
        HF_TRY(hf_text_check(&e->op, e->verb, "a value of .data", data[count].value, 0, TEXTS_LEN_MAX));
    }
    *ret_data_count = count;
    return HF_OK;
}

/* Puts checked data into the map of a request: both kinds of request have one, and its entries are of different types. */
#define PUT_DATA(e, data, count, entry, to)                                                         \
    do {                                                                                            \
        (to)->items = HF_ARENA_ARRAY(&(e)->arena, entry, (count));                                  \
        for (; (e)->arena.status == HF_OK && (to)->count < (count); (to)->count++) {                \
            (to)->items[(to)->count] = (entry){.key = hf_str_of((data)[(to)->count].key),           \
                                               .value = hf_text_or((data)[(to)->count].value, "")}; \
        }                                                                                           \
    } while (0)

static hf_status ask_whole(hf_errand *e, hf_service *service, hf_method method, const void *request)
{
    return e->arena.status == HF_OK ? hf_errand_ask(e, service, method, request)
                                    : hf_fail(&e->op, HF_ERR_NOMEM, "%s: no memory", e->verb);
}

static hf_status register_one(hf_errand *e, hf_service *service, const char *name, const hf_namespace_options *o)
{
    size_t count = 0;
    HF_TRY(check_texts(e, name, o->description, o->owner, o->data, &count));
    hf_pb_register_namespace_request request = {
        .namespace = hf_str_of(name),
        .description = hf_text_or(o->description, ""),
        .owner_email = hf_text_or(o->owner, ""),
        .workflow_execution_retention_period = hf_pb_duration_of(o->retention),
    };
    PUT_DATA(e, o->data, count, hf_pb_register_namespace_request_data_entry, &request.data);
    return ask_whole(e, service, HF_METHOD_REGISTER_NAMESPACE, &request);
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

/* ---- Update ---- */

static hf_status check_update(hf_errand *e, const hf_namespace_update_options *o)
{
    if (o->retention.ns < 0 || (o->keep_for_ever && o->retention.ns != 0)) {
        return hf_fail_at(&e->op, HF_ERR_INVALID, e->verb,
                          "hf_namespace_update: .retention is below 0, or .keep_for_ever is set beside it");
    }
    return (unsigned)o->state <= HF_NAMESPACE_DEPRECATED
               ? HF_OK
               : hf_fail_at(&e->op, HF_ERR_INVALID, e->verb,
                            "hf_namespace_update: .state is %d: a namespace becomes HF_NAMESPACE_REGISTERED or "
                            "HF_NAMESPACE_DEPRECATED; hf_namespace_delete deletes it",
                            (int)o->state);
}

static hf_status update_one(hf_errand *e, hf_service *service, const char *name, const hf_namespace_update_options *o)
{
    size_t count = 0;
    HF_TRY(check_texts(e, name, o->description, o->owner, o->data, &count));
    HF_TRY(check_update(e, o));
    hf_pb_update_namespace_info info = {
        .description = hf_text_or(o->description, ""),
        .owner_email = hf_text_or(o->owner, ""),
        .state = (int32_t)o->state,
    };
    hf_pb_namespace_config config = {.workflow_execution_retention_ttl = hf_pb_duration_of(o->retention)};
    hf_pb_update_namespace_request request = {
        .namespace = hf_str_of(name),
        .update_info = &info,
        .config = o->keep_for_ever || o->retention.ns > 0 ? &config : NULL,
    };
    PUT_DATA(e, o->data, count, hf_pb_update_namespace_info_data_entry, &info.data);
    return ask_whole(e, service, HF_METHOD_UPDATE_NAMESPACE, &request);
}

hf_status hf_namespace_update_with(hf_service *service, const char *name, const hf_namespace_update_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_namespace_update));
    HF_OPTIONS(hf_namespace_update_options, options, hf_namespace_update);
    if (service == NULL || name == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_namespace_update needs a service and a name");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_namespace_update", HF_STR(""));
    (void)update_one(&e, service, name, options);
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

/* ---- Describe and list ---- */

/* Everything is copied into the arena; check its status. */
static void fill_info(hf_arena *arena, const hf_pb_describe_namespace_response *from, hf_namespace_info *ret_info)
{
    const hf_pb_namespace_info *info = from->namespace_info;
    hf_assert(info != NULL && from->config != NULL);                                          /* remote-R6 */
    hf_namespace_text *data = HF_ARENA_ARRAY(arena, hf_namespace_text, info->data.count + 1); /* the last one is NULL */
    for (size_t i = 0; data != NULL && i < info->data.count; i++) {
        data[i] =
            (hf_namespace_text){text_of(arena, info->data.items[i].key), text_of(arena, info->data.items[i].value)};
    }
    *ret_info = (hf_namespace_info){
        .name = text_of(arena, info->name),
        .id = text_of(arena, info->id),
        .description = text_of(arena, info->description),
        .owner = text_of(arena, info->owner_email),
        .retention = hf_pb_duration_span(from->config->workflow_execution_retention_ttl),
        .state = (hf_namespace_state)info->state,
        .data = data,
        .data_count = info->data.count,
    };
}

/* The caller gets a pointer to the first member. */
typedef struct box {
    hf_namespace_info shown;
    hf_arena arena; /* memory of everything, this struct included */
} box;

static hf_status make_info(hf_op *op, const hf_pb_describe_namespace_response *from, hf_namespace_info **ret_info)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    box *b = HF_ARENA_NEW(&arena, box);
    if (b != NULL) {
        fill_info(&arena, from, &b->shown);
    }
    if (arena.status != HF_OK) {
        hf_arena_deinit(&arena);
        return hf_fail(op, HF_ERR_NOMEM, "hf_namespace_describe: no memory for the description");
    }
    b->arena = arena;
    *ret_info = &b->shown;
    return HF_OK;
}

static hf_status describe_one(hf_errand *e, hf_service *service, const char *name, hf_namespace_info **ret_info)
{
    HF_TRY(hf_text_check(&e->op, e->verb, "the name", name, 1, HF_ERRAND_TEXT_LEN_MAX));
    hf_pb_describe_namespace_request request = {.namespace = hf_str_of(name)};
    HF_TRY(hf_errand_ask(e, service, HF_METHOD_DESCRIBE_NAMESPACE, &request));
    return make_info(&e->op, e->call.response, ret_info);
}

hf_status hf_namespace_describe(hf_service *service, const char *name, hf_namespace_info **ret_info)
{
    HF_TRY(HF_VERB_ALLOWED(hf_namespace_describe));
    if (service == NULL || name == NULL || ret_info == NULL) {
        return hf_raise(HF_ERR_MISUSE, "hf_namespace_describe needs a service, a name and a place for the answer");
    }
    hf_errand e;
    hf_errand_begin(&e, "hf_namespace_describe", HF_STR(""));
    (void)describe_one(&e, service, name, ret_info);
    return hf_errand_end(&e);
}

void hf_namespace_info_free(hf_namespace_info *info)
{
    if (info != NULL) {
        hf_arena arena = HF_CONTAINER(info, box, shown)->arena; /* copied: the box itself lies in the arena */
        hf_arena_deinit(&arena);
    }
}

static bool show_namespace(hf_arena *arena, const hf_pb_describe_namespace_response *from,
                           hf_namespace_list_visit *visit, void *arg)
{
    hf_namespace_info info;
    fill_info(arena, from, &info);
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
