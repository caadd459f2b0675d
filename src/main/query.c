/* holdfast list, count: runs that fit a filter; namespace, search-attribute: the registry.
 *
 *     ID        TYPE   STATE      STARTED               CLOSED                RUN
 *     order-2   order  Running    2026-11-16T07:25:52Z                        0f41...
 *
 * A file at rest is looked at, and not changed. A program that has it open, or a server, is asked. What changes opens a file at rest as a
 * program does. */
#include "main/target.h"

#include "base/json.h"
#include "inspect/find.h"
#include "service/call.h"
#include "wire/time_text.h"

#include <holdfast/list.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 50, PAGE_RUNS = 1000, ID_WIDTH = 24, TYPE_WIDTH = 16, STATE_WIDTH = 14, TIME_WIDTH = 21 };

/* ---- What reads ---------------------------------------------------------------------------------------------------------- */

/* A file to look at, with its runs. */
typedef struct desk {
    hf_source source;
    hf_allocator memory;
    hf_look *look;
    hf_op op;
} desk;

static int desk_open(desk *d, const char *path)
{
    *d = (desk){0};
    int code = hf_source_open_still(&d->source, path);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_op_init(&d->op);
    d->memory = hf_env_memory(d->source.env);
    if (hf_look_open(&d->op, d->memory, d->source.peek.store, &d->look) != HF_OK) {
        hf_source_close(&d->source);
        return hf_complain(HF_EXIT_DAMAGED, "%s", d->op.message);
    }
    return HF_EXIT_FINE;
}

static void desk_close(desk *d)
{
    hf_look_close(d->look);
    hf_source_close(&d->source);
}

/* The exit code of a search, which is told if it failed. A wrong query is like a wrong argument. */
static int code_of(desk *d, hf_status status, uint64_t damaged)
{
    if (status != HF_OK) {
        return hf_complain(hf_exit_of(status), "%s", d->op.message);
    }
    if (damaged > 0) {
        return hf_complain(HF_EXIT_DAMAGED, "%llu runs cannot be read and are left out: see holdfast db check",
                           (unsigned long long)damaged);
    }
    return HF_EXIT_FINE;
}

/* ---- list ---------------------------------------------------------------------------------------------------------------- */

typedef struct listing {
    const hf_tool_args *args;
    uint64_t listed;
    bool is_cut; /* it could not be read to its end */
    hf_buf text;
    hf_json writer;
} listing;

static void put_column(hf_buf *out, hf_str text, size_t width)
{
    size_t count = hf_put_text(out, text, SIZE_MAX);
    hf_buf_putf(out, "%*s  ", count < width ? (int)(width - count) : 0, "");
}

static const char *state_of(const hf_pb_workflow_execution_info *run)
{
    const char *state = hf_pb_enum_brief(&hf_pb_workflow_execution_status_enum, run->status);
    return state != NULL ? state : "Unknown";
}

/* People do not need fractions of a second. */
static void put_time(hf_buf *out, hf_pb_timestamp at)
{
    char text[HF_TIME_TEXT_LEN_MAX] = "";
    at.nanos = 0;
    if (at.has) {
        (void)hf_timestamp_format(at, text);
    }
    put_column(out, hf_str_of(text), TIME_WIDTH);
}

static void key_text(hf_json *writer, const char *key, hf_str text)
{
    hf_json_key(writer, key);
    hf_json_string_len(writer, text.data, text.len);
}

static void key_time(hf_json *writer, const char *key, hf_pb_timestamp at)
{
    char text[HF_TIME_TEXT_LEN_MAX] = "";
    (void)hf_timestamp_format(at, text);
    hf_json_key_string(writer, key, at.has ? text : NULL);
}

static void put_object(hf_json *writer, const hf_pb_workflow_execution_info *run)
{
    hf_json_object(writer);
    key_text(writer, "workflowId", run->execution->workflow_id);
    key_text(writer, "runId", run->execution->run_id);
    key_text(writer, "type", run->type->name);
    hf_json_key_string(writer, "state", state_of(run));
    key_text(writer, "taskQueue", run->task_queue);
    key_time(writer, "startTime", run->start_time);
    key_time(writer, "closeTime", run->close_time);
    hf_json_end(writer);
}

static bool show(void *arg, const hf_pb_workflow_execution_info *run)
{
    listing *l = arg;
    l->listed++;
    if (l->args->json) {
        put_object(&l->writer, run);
        return true;
    }
    l->text.len = 0;
    if (l->listed == 1) {
        put_column(&l->text, HF_STR("ID"), ID_WIDTH);
        put_column(&l->text, HF_STR("TYPE"), TYPE_WIDTH);
        put_column(&l->text, HF_STR("STATE"), STATE_WIDTH);
        put_column(&l->text, HF_STR("STARTED"), TIME_WIDTH);
        put_column(&l->text, HF_STR("CLOSED"), TIME_WIDTH);
        hf_buf_puts(&l->text, "RUN\n");
    }
    put_column(&l->text, run->execution->workflow_id, ID_WIDTH);
    put_column(&l->text, run->type->name, TYPE_WIDTH);
    put_column(&l->text, hf_str_of(state_of(run)), STATE_WIDTH);
    put_time(&l->text, run->start_time);
    put_time(&l->text, run->close_time);
    (void)hf_put_text(&l->text, run->execution->run_id, SIZE_MAX);
    (void)printf("%s\n", hf_buf_text(&l->text));
    return true;
}

static bool limit_of(const hf_tool_args *args, uint64_t *ret_limit)
{
    char *end = NULL;
    *ret_limit = LIST_MAX;
    if (args->limit == NULL) {
        return true;
    }
    long long limit = strtoll(args->limit, &end, 10);
    *ret_limit = (uint64_t)limit;
    return args->limit[0] != '\0' && *end == '\0' && limit > 0;
}

/* From a program that has the file open, or from a server, page by page. */
static hf_status list_asked(hf_op *op, hf_service *service, const hf_tool_args *args, uint64_t limit, listing *l)
{
    hf_arena arena;
    hf_buf token;
    hf_status status = HF_OK;
    hf_arena_init(&arena, l->text.memory);
    hf_buf_init(&token, l->text.memory, SIZE_MAX / 4);
    do {
        hf_call call;
        hf_pb_list_workflow_executions_request request = {
            .namespace = hf_str_of(args->namespace_),
            .query = hf_str_of(args->word_count > 1 ? args->words[1] : ""),
            .page_size = (int32_t)(limit - l->listed < PAGE_RUNS ? limit - l->listed : PAGE_RUNS),
            .next_page_token = hf_str_of_len(token.data, token.len),
        };
        hf_arena_reset(&arena);
        hf_call_init(&call, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, &request, &arena, NULL);
        call.verb = "list";
        status = hf_service_ask(op, service, &call);
        const hf_pb_list_workflow_executions_response *page = call.response;
        for (size_t i = 0; status == HF_OK && i < page->executions.count; i++) {
            (void)show(l, &page->executions.items[i]);
        }
        token.len = 0;
        if (status == HF_OK) {
            hf_buf_put(&token, page->next_page_token.data, page->next_page_token.len);
        }
    } while (status == HF_OK && token.len > 0 && l->listed < limit);
    hf_buf_deinit(&token);
    hf_arena_deinit(&arena);
    return status;
}

static int list_into(const hf_target *target, const hf_tool_args *args, hf_find *find, listing *l)
{
    desk d;
    if (target->kind != HF_TARGET_REST) {
        hf_op op;
        hf_op_init(&op);
        hf_status status = list_asked(&op, target->service, args, find->limit, l);
        return status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", hf_reason_of(op.message));
    }
    int code = desk_open(&d, target->path);
    if (code == HF_EXIT_FINE) {
        hf_status status = hf_find_runs(&d.op, d.look, d.source.peek.store, d.memory, find);
        l->is_cut = status != HF_OK;
        code = code_of(&d, status, find->damaged);
        desk_close(&d);
    }
    return code;
}

int hf_cmd_list(const hf_tool_args *args)
{
    hf_target target;
    listing l = {.args = args};
    hf_find find = {.namespace_ = hf_str_of(args->namespace_),
                    .query = hf_str_of(args->word_count > 1 ? args->words[1] : ""),
                    .visit = show,
                    .arg = &l};
    if (!limit_of(args, &find.limit)) {
        return hf_complain(HF_EXIT_USAGE, "--limit %s is not a number of runs", args->limit);
    }
    if (args->stuck) {
        return args->word_count > 1 ? hf_complain(HF_EXIT_USAGE, "--stuck takes no query") : hf_list_stuck(args);
    }
    int code = hf_target_find(&target, args);
    code = code == HF_EXIT_FINE && target.kind != HF_TARGET_REST ? hf_target_reach(&target) : code;
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_buf_init(&l.text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_json_init(&l.writer, &l.text);
    if (args->json) {
        hf_json_array(&l.writer);
    }
    code = list_into(&target, args, &find, &l);
    bool is_whole = code == HF_EXIT_FINE || (find.damaged > 0 && !l.is_cut);
    if (is_whole && args->json) {
        hf_json_end(&l.writer);
        (void)printf("%s\n", hf_buf_text(&l.text));
    } else if (is_whole && l.listed == 0) {
        (void)printf("%s: no runs fit\n", args->words[0]);
    }
    if (l.text.status != HF_OK) {
        code = hf_complain(HF_EXIT_DAMAGED, "no memory for the list");
    }
    hf_buf_deinit(&l.text);
    return hf_target_close(&target, code);
}

/* ---- count --------------------------------------------------------------------------------------------------------------- */

static void put_counts(const hf_tool_args *args, const int64_t *by_status, int32_t count)
{
    int64_t total = 0;
    for (int32_t i = 0; i < count; i++) {
        total += by_status[i];
    }
    (void)printf(args->json ? "{\"total\":%lld" : "%lld runs\n", (long long)total);
    for (int32_t i = 1; i < count; i++) {
        const char *name = hf_pb_enum_brief(&hf_pb_workflow_execution_status_enum, i);
        if (by_status[i] > 0 && name != NULL) {
            (void)printf(args->json ? ",\"%s\":%lld" : "%-16s %lld\n", name, (long long)by_status[i]);
        }
    }
    (void)fputs(args->json ? "}\n" : "", stdout);
}

static int count_file(const hf_target *target, const hf_tool_args *args, const char *query)
{
    desk d;
    hf_find find = {.namespace_ = hf_str_of(args->namespace_), .query = hf_str_of(query)};
    int code = desk_open(&d, target->path);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status = hf_find_runs(&d.op, d.look, d.source.peek.store, d.memory, &find);
    if (status == HF_OK) {
        int64_t counts[HF_FIND_STATUS_COUNT];
        for (int32_t i = 0; i < HF_FIND_STATUS_COUNT; i++) {
            counts[i] = (int64_t)find.counts[i];
        }
        put_counts(args, counts, HF_FIND_STATUS_COUNT);
    }
    code = code_of(&d, status, find.damaged);
    desk_close(&d);
    return code;
}

int hf_cmd_count(const hf_tool_args *args)
{
    hf_target target;
    hf_counts counts = {0};
    const char *query = args->word_count > 1 ? args->words[1] : "";
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE && target.kind == HF_TARGET_REST) {
        return count_file(&target, args, query);
    }
    code = code == HF_EXIT_FINE ? hf_target_reach(&target) : code;
    if (code != HF_EXIT_FINE) {
        return code;
    }
    code = hf_told(hf_count(target.service, &counts, .query = query, .namespace_ = args->namespace_));
    if (code == HF_EXIT_FINE) {
        put_counts(args, counts.by_status, (int32_t)HF_COUNT_OF(counts.by_status));
    }
    return hf_target_close(&target, code);
}

/* ---- The registry -------------------------------------------------------------------------------------------------------- */

static void show_namespace(void *arg, const hf_pb_namespace_record *record)
{
    hf_buf *text = arg;
    text->len = 0;
    put_column(text, record->name, ID_WIDTH);
    put_column(text,
               record->state == HF_NAMESPACE_STATE_DEPRECATED ? HF_STR("Deprecated")
               : record->state == HF_NAMESPACE_STATE_DELETED  ? HF_STR("Deleting")
                                                              : HF_STR("Registered"),
               STATE_WIDTH);
    (void)hf_put_text(text, record->description, 1000);
    (void)printf("%s\n", hf_buf_text(text));
}

typedef struct attribute_list {
    hf_str namespace_;
    hf_buf *text;
    size_t count;
} attribute_list;

static void show_attributes(void *arg, const hf_pb_namespace_record *record)
{
    attribute_list *list = arg;
    for (size_t i = 0; hf_str_equal(record->name, list->namespace_) && i < record->attributes.count; i++) {
        list->text->len = 0;
        put_column(list->text, record->attributes.items[i].name, ID_WIDTH);
        hf_buf_puts(list->text,
                    hf_search_attribute_type_name((hf_search_attribute_type)record->attributes.items[i].type));
        (void)printf("%s\n", hf_buf_text(list->text));
        list->count++;
    }
}

/* The same as its owner or a server tells it. */
static bool visit_namespace(void *arg, const hf_namespace_info *info)
{
    hf_pb_namespace_record record = {.name = hf_str_of(info->name),
                                     .description = hf_str_of(info->description),
                                     .state = info->is_deprecated ? HF_NAMESPACE_STATE_DEPRECATED
                                                                  : HF_NAMESPACE_STATE_REGISTERED};
    show_namespace(arg, &record);
    return true;
}

static bool visit_attribute(void *arg, const char *name, hf_search_attribute_type type, bool is_custom)
{
    attribute_list *list = arg;
    if (is_custom) {
        list->text->len = 0;
        put_column(list->text, hf_str_of(name), ID_WIDTH);
        hf_buf_puts(list->text, hf_search_attribute_type_name(type));
        (void)printf("%s\n", hf_buf_text(list->text));
        list->count++;
    }
    return true;
}

static void say_none(const hf_tool_args *args)
{
    (void)printf("%s: the namespace %s has no custom search attributes\n", args->words[0], args->namespace_);
}

static int ask_registry(hf_target *target, const hf_tool_args *args, bool attributes)
{
    hf_buf text;
    int code = hf_target_reach(target);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_buf_init(&text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    attribute_list list = {.text = &text};
    hf_status status =
        attributes ? hf_search_attribute_list(target->service, visit_attribute, &list, .namespace_ = args->namespace_)
                   : hf_namespace_list(target->service, visit_namespace, &text);
    if (status == HF_OK && attributes && list.count == 0) {
        say_none(args);
    }
    hf_buf_deinit(&text);
    return hf_target_close(target, hf_told(status));
}

/* Shows namespaces, or the custom attributes of one. */
static int show_registry(const hf_tool_args *args, bool attributes)
{
    hf_target target;
    hf_source source;
    hf_op op;
    hf_buf text;
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE && target.kind != HF_TARGET_REST) {
        return ask_registry(&target, args, attributes);
    }
    code = code == HF_EXIT_FINE ? hf_source_open_still(&source, target.path) : code;
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_op_init(&op);
    hf_allocator memory = hf_env_memory(source.env);
    hf_buf_init(&text, memory, SIZE_MAX / 4);
    attribute_list list = {.namespace_ = hf_str_of(args->namespace_), .text = &text};
    hf_status status = hf_find_namespaces(&op, source.peek.store, memory, attributes ? show_attributes : show_namespace,
                                          attributes ? (void *)&list : (void *)&text);
    if (status == HF_OK && attributes && list.count == 0) {
        say_none(args);
    }
    code = status == HF_OK ? HF_EXIT_FINE : hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
    hf_buf_deinit(&text);
    hf_source_close(&source);
    return code;
}

int hf_cmd_namespace_list(const hf_tool_args *args)
{
    return show_registry(args, false);
}

int hf_cmd_attribute_list(const hf_tool_args *args)
{
    return show_registry(args, true);
}

hf_service *hf_change_open(const hf_tool_args *args, int *ret_code)
{
    static hf_target target;
    *ret_code = hf_target_open(&target, args);
    return *ret_code == HF_EXIT_FINE ? target.service : NULL;
}

int hf_change_close(hf_service *service, hf_status status)
{
    int code = hf_told(status);
    return hf_close(service) == HF_OK || code != HF_EXIT_FINE ? code
                                                              : hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
}

int hf_cmd_namespace_register(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    hf_service *service = hf_change_open(args, &code);
    return service == NULL ? code : hf_change_close(service, hf_namespace_register(service, args->words[1]));
}

int hf_cmd_namespace_deprecate(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    hf_service *service = hf_change_open(args, &code);
    return service == NULL ? code : hf_change_close(service, hf_namespace_deprecate(service, args->words[1]));
}

int hf_cmd_attribute_add(const hf_tool_args *args)
{
    int type = HF_SEARCH_TEXT;
    while (type <= HF_SEARCH_KEYWORD_LIST &&
           strcmp(hf_search_attribute_type_name((hf_search_attribute_type)type), args->words[2]) != 0) {
        type++;
    }
    if (type > HF_SEARCH_KEYWORD_LIST) {
        return hf_complain(HF_EXIT_USAGE, "%s is not a type: Text, Keyword, Int, Double, Bool, Datetime or KeywordList",
                           args->words[2]);
    }
    int code = HF_EXIT_FINE;
    hf_service *service = hf_change_open(args, &code);
    return service == NULL ? code
                           : hf_change_close(service, hf_search_attribute_add(service, args->words[1],
                                                                              (hf_search_attribute_type)type,
                                                                              .namespace_ = args->namespace_));
}

int hf_cmd_attribute_remove(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    hf_service *service = hf_change_open(args, &code);
    return service == NULL ? code
                           : hf_change_close(service, hf_search_attribute_remove(service, args->words[1],
                                                                                 .namespace_ = args->namespace_));
}
