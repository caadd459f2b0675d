/* The registry of namespaces: memory, rows, and the calls that change and show it. See namespaces.h. */
#include "engine/namespaces.h"

#include "engine/answer.h"
#include "engine/batch.h"
#include "engine/input_private.h"
#include "engine/size.h"
#include "engine/system.h"
#include "ledger/namespaces.h"
#include "ledger/rows.h"

#include <stdio.h>

#define DEFAULT HF_STR("default")

/* ---- Memory ------------------------------------------------------------------------------------------------------------ */

static uint64_t hash_of(hf_str name)
{
    return hf_hash_bytes(7, name.data, name.len);
}

hf_namespace *hf_namespace_find(hf_core *core, hf_str name)
{
    hf_namespace *last = core->namespace_last; /* nearly always the same one */
    if (last != NULL && hf_str_equal(hf_owned_str(&last->name), name)) {
        return last;
    }
    for (hf_map_node *node = hf_map_first(&core->namespaces, hash_of(name)); node != NULL; node = hf_map_next(node)) {
        hf_namespace *space = HF_CONTAINER(node, hf_namespace, by_name);
        if (hf_str_equal(hf_owned_str(&space->name), name)) {
            core->namespace_last = space;
            return space;
        }
    }
    return NULL;
}

static void space_free(hf_core *core, hf_namespace *space)
{
    hf_run_memory *memory = &core->runs_memory;
    for (size_t i = 0; i < space->data.count; i++) {
        hf_owned_free(memory, &space->data.items[i].key);
        hf_owned_free(memory, &space->data.items[i].value);
    }
    for (size_t i = 0; i < space->attributes.count; i++) {
        hf_owned_free(memory, &space->attributes.items[i].name);
    }
    HF_VEC_FREE(memory, &space->data);
    HF_VEC_FREE(memory, &space->attributes);
    hf_owned_free(memory, &space->name);
    hf_owned_free(memory, &space->description);
    hf_owned_free(memory, &space->owner);
    hf_core_free_mem(core, space, sizeof *space);
}

void hf_namespaces_deinit(hf_core *core)
{
    hf_node *node = NULL;
    core->namespace_last = NULL;
    while ((node = hf_list_pop_front(&core->namespaces_all)) != NULL) {
        space_free(core, HF_CONTAINER(node, hf_namespace, link));
    }
    while ((node = hf_list_pop_front(&core->namespaces_gone)) != NULL) {
        space_free(core, HF_CONTAINER(node, hf_namespace, link));
    }
    hf_map_deinit(&core->namespaces);
}

/* NULL: engine-E2. */
static hf_namespace *space_add(hf_core *core, hf_str name)
{
    hf_assert(hf_namespace_is_good(name) && hf_namespace_find(core, name) == NULL); /* ledger-S1 */
    hf_namespace *space = hf_core_alloc(core, sizeof *space);
    if (space == NULL) {
        return NULL;
    }
    space->state = HF_NAMESPACE_STATE_REGISTERED;
    hf_owned_set(&core->runs_memory, &space->name, name);
    if (core->status != HF_OK || hf_map_insert(&core->namespaces, &space->by_name, hash_of(name)) != HF_OK) {
        space_free(core, space);
        hf_core_break(core, HF_ERR_NOMEM, "out of memory");
        return NULL;
    }
    hf_list_push_back(&core->namespaces_all, &space->link);
    return space;
}

static void touch(hf_core *core, hf_namespace *space)
{
    space->is_dirty = true;
    core->namespaces_dirty = true;
}

bool hf_namespace_is_known(hf_core *core, hf_str name)
{
    const hf_namespace *known = hf_namespace_find(core, name);
    if (known != NULL) {
        return known->state != HF_NAMESPACE_STATE_DELETED;
    }
    if (core->options.is_strict || core->namespaces.count >= HF_NAMESPACES_MAX) {
        return false;
    }
    hf_namespace *space = space_add(core, name);
    if (space != NULL) {
        touch(core, space);
    }
    return space != NULL;
}

void hf_namespace_mark_deleted(hf_core *core, hf_str name)
{
    hf_namespace *space = hf_namespace_find(core, name);
    hf_assert(space != NULL && !hf_str_equal(name, DEFAULT)); /* engine-B1, engine-B2 */
    space->state = HF_NAMESPACE_STATE_DELETED;
    touch(core, space);
}

void hf_namespace_remove(hf_core *core, hf_str name)
{
    hf_namespace *space = hf_namespace_find(core, name);
    hf_assert(space != NULL && space->state == HF_NAMESPACE_STATE_DELETED);
    core->namespace_last = NULL;
    hf_map_remove(&core->namespaces, &space->by_name);
    hf_list_remove(&space->link);
    hf_list_push_back(&core->namespaces_gone, &space->link);
    core->namespaces_dirty = true;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------------- */

static void set_data(hf_core *core, hf_namespace *space, hf_str key, hf_str value)
{
    for (size_t i = 0; i < space->data.count; i++) {
        if (hf_str_equal(hf_owned_str(&space->data.items[i].key), key)) {
            hf_owned_set(&core->runs_memory, &space->data.items[i].value, value);
            return;
        }
    }
    if (HF_VEC_RESERVE(&core->runs_memory, &space->data)) {
        hf_namespace_datum *datum = &space->data.items[space->data.count++];
        *datum = (hf_namespace_datum){0};
        hf_owned_set(&core->runs_memory, &datum->key, key);
        hf_owned_set(&core->runs_memory, &datum->value, value);
    }
}

/* In the place that keeps the order of names. */
static void set_attribute(hf_core *core, hf_namespace *space, hf_str name, hf_attr_type type)
{
    if (!HF_VEC_RESERVE(&core->runs_memory, &space->attributes)) {
        return;
    }
    size_t at = space->attributes.count++;
    while (at > 0 && hf_str_compare(hf_owned_str(&space->attributes.items[at - 1].name), name) > 0) {
        space->attributes.items[at] = space->attributes.items[at - 1];
        at--;
    }
    space->attributes.items[at] = (hf_attribute){.type = type};
    hf_owned_set(&core->runs_memory, &space->attributes.items[at].name, name);
}

static hf_status read_row(hf_op *op, void *arg, const hf_pb_namespace_record *record)
{
    hf_core *core = arg;
    hf_namespace *space = hf_namespace_find(core, record->name);
    if (!hf_namespace_is_good(record->name) || record->retention < 0 || record->state < HF_NAMESPACE_STATE_REGISTERED ||
        record->state > HF_NAMESPACE_STATE_DELETED || core->namespaces.count > HF_NAMESPACES_MAX) {
        return hf_fail(op, HF_ERR_INVALID, "the record of the namespace '%.*s' is damaged", HF_STR_ARGS(record->name));
    }
    space = space != NULL ? space : space_add(core, record->name);
    if (space == NULL) {
        return core->status;
    }
    space->state = record->state;
    space->retention = record->retention;
    hf_owned_set(&core->runs_memory, &space->description, record->description);
    hf_owned_set(&core->runs_memory, &space->owner, record->owner_email);
    for (size_t i = 0; i < record->data.count; i++) {
        set_data(core, space, record->data.items[i].key, record->data.items[i].value);
    }
    for (size_t i = 0; i < record->attributes.count; i++) {
        const hf_pb_search_attribute_record *attribute = &record->attributes.items[i];
        hf_attr_type type = HF_ATTR_NONE;
        if (attribute->type < HF_ATTR_TEXT || attribute->type > HF_ATTR_TYPE_LAST ||
            hf_namespace_find_attribute(space, attribute->name, &type)) {
            return hf_fail(op, HF_ERR_INVALID, "the search attribute '%.*s' of the namespace '%.*s' is damaged",
                           HF_STR_ARGS(attribute->name), HF_STR_ARGS(record->name));
        }
        set_attribute(core, space, attribute->name, (hf_attr_type)attribute->type);
    }
    return core->status;
}

/* The namespace of a run, in a file that has no registry yet. */
static void learn(hf_core *core, hf_str name)
{
    if (hf_namespace_is_good(name) && hf_namespace_find(core, name) == NULL) {
        hf_namespace *space = space_add(core, name);
        if (space != NULL) {
            touch(core, space);
        }
    }
}

static hf_status learn_row(hf_op *op, void *arg, const hf_row *row, hf_arena *arena)
{
    hf_core *core = arg;
    hf_pb_run_state state;
    bool is_good = false;
    HF_TRY(hf_run_row_open(op, row, arena, &state, &is_good));
    if (is_good) {
        learn(core, state.namespace);
    }
    return core->status;
}

/* The retention of "default" that the program asks for. */
static void keep_default(hf_core *core)
{
    hf_namespace *space = hf_namespace_find(core, DEFAULT);
    if (space != NULL && core->options.has_retention && space->retention != core->options.retention) {
        space->retention = core->options.retention;
        touch(core, space);
    }
}

hf_status hf_namespaces_open(hf_op *op, hf_core *core, hf_store *store, bool has_rows)
{
    if (space_add(core, DEFAULT) == NULL) { /* engine-B1 */
        return core->status;
    }
    if (has_rows) {
        HF_TRY(hf_namespace_rows_read(op, store, core->memory, read_row, core));
        keep_default(core);
        return core->status;
    }
    keep_default(core);
    HF_LIST_EACH(node, &core->runs_all)
    {
        const hf_run *run = &HF_CONTAINER(node, hf_slot, all_link)->run;
        if (!HF_SLOT(run)->bad) {
            learn(core, hf_owned_str(&run->namespace));
        }
    }
    return hf_store_each_row(op, store, core->memory, HF_TABLE_RUN, NULL, NULL, learn_row, core);
}

static void put(hf_core *core, hf_commit_batch *batch, const hf_namespace *space)
{
    hf_arena *arena = &core->scratch;
    hf_pb_namespace_record record = {
        .name = hf_owned_str(&space->name),
        .state = space->state,
        .description = hf_owned_str(&space->description),
        .owner_email = hf_owned_str(&space->owner),
        .retention = space->retention,
    };
    record.data.items = HF_ARENA_ARRAY(arena, hf_pb_namespace_record_data_entry, space->data.count);
    record.attributes.items = HF_ARENA_ARRAY(arena, hf_pb_search_attribute_record, space->attributes.count);
    if (!hf_core_is_whole(core)) {
        return;
    }
    for (size_t i = 0; i < space->data.count; i++) {
        record.data.items[record.data.count++] = (hf_pb_namespace_record_data_entry){
            .key = hf_owned_str(&space->data.items[i].key), .value = hf_owned_str(&space->data.items[i].value)};
    }
    for (size_t i = 0; i < space->attributes.count; i++) {
        record.attributes.items[record.attributes.count++] = (hf_pb_search_attribute_record){
            .name = hf_owned_str(&space->attributes.items[i].name), .type = (int32_t)space->attributes.items[i].type};
    }
    hf_namespace_row_put(&batch->writes, &record);
}

void hf_namespaces_put(hf_core *core, hf_commit_batch *batch)
{
    hf_assert(core->namespaces_dirty);
    hf_node *gone = NULL;
    while ((gone = hf_list_pop_front(&core->namespaces_gone)) != NULL) { /* before one of the same name comes */
        hf_namespace *space = HF_CONTAINER(gone, hf_namespace, link);
        hf_namespace_row_remove(&batch->writes, hf_owned_str(&space->name));
        space_free(core, space);
    }
    HF_LIST_EACH(node, &core->namespaces_all)
    {
        hf_namespace *space = HF_CONTAINER(node, hf_namespace, link);
        if (space->is_dirty && core->status == HF_OK) {
            put(core, batch, space);
            space->is_dirty = false;
        }
    }
    core->namespaces_dirty = false;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------- */

/* Lengths of what is kept. False: the call has failed. */
static bool texts_fit(hf_core *core, hf_call *call, hf_str description, hf_str owner, size_t data_count,
                      size_t data_len)
{
    if (data_count > HF_NAMESPACE_DATA_MAX) {
        return hf_call_refuse(core, call, "a namespace has at most 64 keys of data");
    }
    return description.len + owner.len + data_len <= HF_NAMESPACE_TEXT_LEN_MAX ||
           hf_call_refuse(core, call, "description, owner and data of a namespace have more than 10000 bytes");
}

/* Retention of runs that have ended. Temporal asks for a day at least; here every span that is not negative will do. */
static bool retention_of(hf_core *core, hf_call *call, hf_pb_duration given, int64_t *ret_ns)
{
    int64_t ns = given.has ? hf_pb_duration_span(given).ns : 0;
    if (ns < 0) {
        return hf_call_refuse(core, call, "the retention of a namespace is negative; 0 keeps runs for ever");
    }
    *ret_ns = ns;
    return true;
}

void hf_register_namespace_call(hf_core *core, hf_call *call)
{
    REQUEST(register_namespace);
    size_t len = 0;
    int64_t retention = 0;
    for (size_t i = 0; i < request->data.count; i++) {
        len += request->data.items[i].key.len + request->data.items[i].value.len;
    }
    if (!texts_fit(core, call, request->description, request->owner_email, request->data.count, len) ||
        !retention_of(core, call, request->workflow_execution_retention_period, &retention)) {
        return;
    }
    const hf_namespace *known = hf_namespace_find(core, request->namespace);
    if (known != NULL) {
        static const hf_pb_namespace_already_exists_failure DETAIL = {0};
        hf_call_say(core, call, "Namespace \"%.*s\" already exists", HF_STR_ARGS(request->namespace));
        hf_call_fail_with(core, call, HF_ERR_EXISTS, &hf_pb_namespace_already_exists_failure_type, &DETAIL,
                          known->state == HF_NAMESPACE_STATE_DELETED
                              ? "the namespace '%.*s' is being deleted, with all of its runs"
                              : "there is a namespace '%.*s' already",
                          HF_STR_ARGS(request->namespace));
        return;
    }
    if (core->namespaces.count >= HF_NAMESPACES_MAX) {
        hf_call_fail_for_good(core, call, NULL, "a store has at most %d namespaces", HF_NAMESPACES_MAX);
        return;
    }
    hf_namespace *space = space_add(core, request->namespace);
    if (space == NULL) {
        return;
    }
    HF_PROBE(core, HF_PROBE_NAMESPACE_REGISTERED);
    space->retention = retention;
    if (retention > 0) {
        hf_blocks_keep_anew(core); /* runs of an earlier namespace of that name may be there */
    }
    hf_owned_set(&core->runs_memory, &space->description, request->description);
    hf_owned_set(&core->runs_memory, &space->owner, request->owner_email);
    for (size_t i = 0; i < request->data.count; i++) {
        set_data(core, space, request->data.items[i].key, request->data.items[i].value);
    }
    touch(core, space);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

/* There is one cluster, this one. Temporal's command line tool reads it without a look whether it is there. */
static hf_pb_namespace_replication_config *show_replication(hf_arena *arena)
{
    hf_pb_namespace_replication_config *config = HF_ARENA_NEW(arena, hf_pb_namespace_replication_config);
    hf_pb_cluster_replication_config *cluster = HF_ARENA_NEW(arena, hf_pb_cluster_replication_config);
    if (config == NULL || cluster == NULL) {
        return NULL;
    }
    cluster->cluster_name = config->active_cluster_name = HF_STR("active");
    config->clusters.items = cluster;
    config->clusters.count = 1;
    config->state = HF_REPLICATION_STATE_NORMAL;
    return config;
}

void hf_namespace_show(const hf_core *core, const hf_namespace *space, hf_arena *arena,
                       hf_pb_describe_namespace_response *ret_response)
{
    hf_pb_namespace_info *info = HF_ARENA_NEW(arena, hf_pb_namespace_info);
    hf_pb_namespace_config *config = HF_ARENA_NEW(arena, hf_pb_namespace_config);
    if (info == NULL || config == NULL) {
        return;
    }
    hf_namespace_fill(core, arena, hf_owned_str(&space->name), info, config);
    info->state = space->state;
    info->description = hf_arena_copy(arena, hf_owned_str(&space->description));
    info->owner_email = hf_arena_copy(arena, hf_owned_str(&space->owner));
    info->data.items = HF_ARENA_ARRAY(arena, hf_pb_namespace_info_data_entry, space->data.count);
    for (size_t i = 0; arena->status == HF_OK && i < space->data.count; i++) {
        info->data.items[info->data.count++] =
            (hf_pb_namespace_info_data_entry){.key = hf_arena_copy(arena, hf_owned_str(&space->data.items[i].key)),
                                              .value = hf_arena_copy(arena, hf_owned_str(&space->data.items[i].value))};
    }
    config->workflow_execution_retention_ttl = hf_pb_duration_of(hf_nanoseconds(space->retention));
    ret_response->namespace_info = info;
    ret_response->config = config;
    ret_response->replication_config = show_replication(arena);
}

void hf_describe_namespace_call(hf_core *core, hf_call *call)
{
    REQUEST(describe_namespace);
    const hf_namespace *space = hf_namespace_find(core, request->namespace);
    hf_pb_describe_namespace_response *response = hf_call_response(core, call);
    hf_assert(space != NULL); /* engine-B2 */
    if (response != NULL) {
        hf_namespace_show(core, space, call->arena, response);
        hf_call_reply(core, call);
    }
}

/* What an update changes besides data; data is added to what is there. */
static bool update(hf_core *core, hf_call *call, hf_namespace *space)
{
    REQUEST(update_namespace);
    const hf_pb_update_namespace_info *info = request->update_info;
    const hf_pb_namespace_config *config = request->config;
    int64_t retention = space->retention;
    size_t count = space->data.count;
    size_t len = 0;
    for (size_t i = 0; i < space->data.count; i++) {
        len += space->data.items[i].key.len + space->data.items[i].value.len;
    }
    for (size_t i = 0; info != NULL && i < info->data.count; i++) {
        count++;
        len += info->data.items[i].key.len + info->data.items[i].value.len;
    }
    hf_str description =
        info != NULL && info->description.len > 0 ? info->description : hf_owned_str(&space->description);
    hf_str owner = info != NULL && info->owner_email.len > 0 ? info->owner_email : hf_owned_str(&space->owner);
    if (!texts_fit(core, call, description, owner, count, len) ||
        (config != NULL && config->workflow_execution_retention_ttl.has &&
         !retention_of(core, call, config->workflow_execution_retention_ttl, &retention))) {
        return false;
    }
    if (info != NULL && info->state != HF_NAMESPACE_STATE_UNSPECIFIED && info->state != HF_NAMESPACE_STATE_REGISTERED &&
        info->state != HF_NAMESPACE_STATE_DEPRECATED) {
        return hf_call_refuse(core, call, "a namespace is registered or deprecated; an update does not delete it");
    }
    if (space->retention != retention) {
        space->retention = retention;
        hf_blocks_keep_anew(core);
    }
    if (info != NULL) {
        space->state = info->state != HF_NAMESPACE_STATE_UNSPECIFIED ? info->state : space->state;
        hf_owned_set(&core->runs_memory, &space->description, hf_arena_copy(&core->scratch, description));
        hf_owned_set(&core->runs_memory, &space->owner, hf_arena_copy(&core->scratch, owner));
        for (size_t i = 0; i < info->data.count; i++) {
            set_data(core, space, info->data.items[i].key, info->data.items[i].value);
        }
    }
    return true;
}

void hf_update_namespace_call(hf_core *core, hf_call *call)
{
    REQUEST(update_namespace);
    hf_namespace *space = hf_namespace_find(core, request->namespace);
    hf_assert(space != NULL); /* engine-B2 */
    if (!update(core, call, space)) {
        return;
    }
    HF_PROBE(core, HF_PROBE_NAMESPACE_UPDATED);
    touch(core, space);
    hf_pb_update_namespace_response *response = hf_call_response(core, call);
    hf_pb_describe_namespace_response shown = {0};
    if (response != NULL) {
        hf_namespace_show(core, space, call->arena, &shown);
        response->namespace_info = shown.namespace_info;
        response->config = shown.config;
        hf_call_reply(core, call);
    }
}

void hf_deprecate_namespace_call(hf_core *core, hf_call *call)
{
    REQUEST(deprecate_namespace);
    hf_namespace *space = hf_namespace_find(core, request->namespace);
    hf_assert(space != NULL); /* engine-B2 */
    space->state = HF_NAMESPACE_STATE_DEPRECATED;
    touch(core, space);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

/* By the order in which they came. A page token is the number of namespaces before the page. */
void hf_list_namespaces_call(hf_core *core, hf_call *call)
{
    REQUEST(list_namespaces);
    size_t max = request->page_size > 0 && request->page_size < 1000 ? (size_t)request->page_size : 1000;
    size_t skip = 0;
    for (size_t i = 0; i < request->next_page_token.len; i++) {
        char c = request->next_page_token.data[i];
        if (c < '0' || c > '9' || i >= 6) {
            (void)hf_call_refuse(core, call, "NextPageToken was not issued by this store");
            return;
        }
        skip = 10 * skip + (size_t)(c - '0');
    }
    hf_pb_list_namespaces_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    response->namespaces.items = HF_ARENA_ARRAY(call->arena, hf_pb_describe_namespace_response, max);
    size_t at = 0;
    HF_LIST_EACH(node, &core->namespaces_all)
    {
        bool is_deleted = HF_CONTAINER(node, hf_namespace, link)->state == HF_NAMESPACE_STATE_DELETED;
        if (is_deleted || at++ < skip || call->arena->status != HF_OK) {
            continue;
        }
        if (response->namespaces.count == max) {
            char text[24];
            int len = snprintf(text, sizeof text, "%zu", skip + max);
            response->next_page_token = hf_arena_copy(call->arena, hf_str_of_len(text, (size_t)len));
            break;
        }
        hf_namespace_show(core, HF_CONTAINER(node, hf_namespace, link), call->arena,
                          &response->namespaces.items[response->namespaces.count++]);
    }
    hf_call_reply(core, call);
}

/* ---- Search attributes ------------------------------------------------------------------------------------------------- */

/* The attribute of this name; its index is where it is, or would be. */
static bool find_attribute(const hf_namespace *space, hf_str name, size_t *ret_at)
{
    size_t at = 0;
    while (at < space->attributes.count && hf_str_compare(hf_owned_str(&space->attributes.items[at].name), name) < 0) {
        at++;
    }
    *ret_at = at;
    return at < space->attributes.count && hf_str_equal(hf_owned_str(&space->attributes.items[at].name), name);
}

bool hf_namespace_find_attribute(const void *state, hf_str name, hf_attr_type *ret_type)
{
    const hf_namespace *space = state;
    size_t at = 0;
    if (space == NULL || !find_attribute(space, name, &at)) {
        return false;
    }
    *ret_type = space->attributes.items[at].type;
    return true;
}

static hf_namespace *space_of(hf_core *core, hf_str name)
{
    hf_namespace *space = hf_namespace_find(core, name);
    hf_assert(space != NULL); /* engine-B2 */
    return space;
}

void hf_add_search_attributes_call(hf_core *core, hf_call *call)
{
    REQUEST(add_search_attributes);
    hf_namespace *space = space_of(core, request->namespace);
    size_t added = 0;
    if (request->search_attributes.count == 0) {
        (void)hf_call_refuse(core, call, "SearchAttributes are not set on request.");
        return;
    }
    for (size_t i = 0; i < request->search_attributes.count; i++) {
        hf_str name = request->search_attributes.items[i].key;
        int32_t type = request->search_attributes.items[i].value;
        hf_attr known;
        hf_attr_type is = HF_ATTR_NONE;
        if (!hf_id_is_good(name) || type < HF_ATTR_TEXT || type > HF_ATTR_TYPE_LAST) {
            hf_call_fail(core, call, HF_ERR_INVALID,
                         "the search attribute '%.*s' has no name of 1 to 1000 bytes, or type %d, which is not one",
                         HF_STR_ARGS(name), (int)type);
            return;
        }
        if (hf_attr_known(name, &known)) {
            hf_call_fail(core, call, HF_ERR_EXISTS, "the search attribute %.*s is in every namespace",
                         HF_STR_ARGS(name));
            return;
        }
        bool is_there = hf_namespace_find_attribute(space, name, &is);
        if (is_there && is != (hf_attr_type)type) {
            hf_call_fail(core, call, HF_ERR_EXISTS, "the search attribute %.*s is there already, as a %s",
                         HF_STR_ARGS(name), hf_attr_type_name(is));
            return;
        }
        added += is_there ? 0 : 1;
    }
    if (space->attributes.count + added > HF_ATTRIBUTES_MAX) {
        hf_call_fail_for_good(core, call, NULL, "a namespace has at most %d custom search attributes",
                              HF_ATTRIBUTES_MAX);
        return;
    }
    for (size_t i = 0; i < request->search_attributes.count; i++) {
        hf_str name = request->search_attributes.items[i].key;
        hf_attr_type is = HF_ATTR_NONE;
        if (!hf_namespace_find_attribute(space, name, &is)) {
            set_attribute(core, space, name, (hf_attr_type)request->search_attributes.items[i].value);
        }
    }
    hf_assert(core->status != HF_OK || space->attributes.count <= HF_ATTRIBUTES_MAX);
    HF_PROBE(core, HF_PROBE_ATTRIBUTE_ADDED);
    touch(core, space);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

void hf_remove_search_attributes_call(hf_core *core, hf_call *call)
{
    REQUEST(remove_search_attributes);
    hf_namespace *space = space_of(core, request->namespace);
    size_t at = 0;
    for (size_t i = 0; i < request->search_attributes.count; i++) {
        hf_str name = request->search_attributes.items[i];
        hf_attr known;
        if (hf_attr_known(name, &known)) {
            hf_call_fail(core, call, HF_ERR_INVALID,
                         "the search attribute %.*s is in every namespace and cannot be removed", HF_STR_ARGS(name));
            return;
        }
        if (!find_attribute(space, name, &at)) {
            hf_call_fail(core, call, HF_ERR_NOT_FOUND, "the namespace '%.*s' has no custom search attribute %.*s",
                         HF_STR_ARGS(request->namespace), HF_STR_ARGS(name));
            return;
        }
    }
    for (size_t i = 0; i < request->search_attributes.count; i++) {
        if (find_attribute(space, request->search_attributes.items[i], &at)) { /* it may be named twice */
            hf_owned_free(&core->runs_memory, &space->attributes.items[at].name);
            space->attributes.count--;
            memmove(space->attributes.items + at, space->attributes.items + at + 1,
                    (space->attributes.count - at) * sizeof *space->attributes.items);
        }
    }
    HF_PROBE(core, HF_PROBE_ATTRIBUTE_REMOVED);
    touch(core, space);
    hf_call_response(core, call);
    hf_call_reply(core, call);
}

void hf_list_search_attributes_call(hf_core *core, hf_call *call)
{
    REQUEST(list_search_attributes);
    const hf_namespace *space = space_of(core, request->namespace);
    hf_pb_list_search_attributes_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    hf_arena *arena = call->arena;
    size_t known = 0;
    while (hf_attr_known_at(known) != NULL) {
        known++;
    }
    response->custom_attributes.items =
        HF_ARENA_ARRAY(arena, hf_pb_list_search_attributes_response_custom_attributes_entry, space->attributes.count);
    response->system_attributes.items =
        HF_ARENA_ARRAY(arena, hf_pb_list_search_attributes_response_system_attributes_entry, known);
    for (size_t i = 0; arena->status == HF_OK && i < space->attributes.count; i++) {
        response->custom_attributes.items[response->custom_attributes.count++] =
            (hf_pb_list_search_attributes_response_custom_attributes_entry){
                .key = hf_arena_copy(arena, hf_owned_str(&space->attributes.items[i].name)),
                .value = (int32_t)space->attributes.items[i].type};
    }
    for (size_t i = 0; arena->status == HF_OK && i < known; i++) {
        const hf_attr *attr = hf_attr_known_at(i);
        response->system_attributes.items[response->system_attributes.count++] =
            (hf_pb_list_search_attributes_response_system_attributes_entry){.key = attr->name,
                                                                            .value = hf_attr_indexed_type(attr->type)};
    }
    hf_call_reply(core, call);
}

/* Without a namespace: what all of them have, and the custom ones of "default". */
void hf_get_search_attributes_call(hf_core *core, hf_call *call)
{
    const hf_namespace *space = space_of(core, DEFAULT);
    hf_pb_get_search_attributes_response *response = hf_call_response(core, call);
    if (response == NULL) {
        return;
    }
    size_t known = 0;
    while (hf_attr_known_at(known) != NULL) {
        known++;
    }
    response->keys.items =
        HF_ARENA_ARRAY(call->arena, hf_pb_get_search_attributes_response_keys_entry, known + space->attributes.count);
    for (size_t i = 0; call->arena->status == HF_OK && i < known; i++) {
        const hf_attr *attr = hf_attr_known_at(i);
        response->keys.items[response->keys.count++] = (hf_pb_get_search_attributes_response_keys_entry){
            .key = attr->name, .value = hf_attr_indexed_type(attr->type)};
    }
    for (size_t i = 0; call->arena->status == HF_OK && i < space->attributes.count; i++) {
        response->keys.items[response->keys.count++] = (hf_pb_get_search_attributes_response_keys_entry){
            .key = hf_arena_copy(call->arena, hf_owned_str(&space->attributes.items[i].name)),
            .value = (int32_t)space->attributes.items[i].type};
    }
    hf_call_reply(core, call);
}
