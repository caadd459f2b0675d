/* holdfast list, count: runs that fit a filter; namespace, search-attribute: the registry.
 *
 *     ID        TYPE   STATE      STARTED               CLOSED                RUN
 *     order-2   order  Running    2026-11-16T07:25:52Z                        0f41...
 *
 * What reads looks at the file at rest, or at a copy that its owner makes, and changes nothing. What changes opens the file as a program does, and
 * refuses if another process has it open. */
#include "main/tool.h"

#include "base/json.h"
#include "inspect/find.h"
#include "wire/time_text.h"

#include <holdfast/list.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 50, ID_WIDTH = 24, TYPE_WIDTH = 16, STATE_WIDTH = 14, TIME_WIDTH = 21 };

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
        return hf_complain(status == HF_ERR_INVALID || status == HF_ERR_NOT_FOUND ? HF_EXIT_USAGE : HF_EXIT_DAMAGED,
                           "%s", d->op.message);
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

int hf_cmd_list(const hf_tool_args *args)
{
    desk d;
    listing l = {.args = args};
    hf_find find = {.namespace_ = hf_str_of(args->namespace_),
                    .query = hf_str_of(args->word_count > 1 ? args->words[1] : ""),
                    .visit = show,
                    .arg = &l};
    if (!limit_of(args, &find.limit)) {
        return hf_complain(HF_EXIT_USAGE, "--limit %s is not a number of runs", args->limit);
    }
    int code = desk_open(&d, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_buf_init(&l.text, d.memory, SIZE_MAX / 4);
    hf_json_init(&l.writer, &l.text);
    if (args->json) {
        hf_json_array(&l.writer);
    }
    hf_status status = hf_find_runs(&d.op, d.look, d.source.peek.store, d.memory, &find);
    if (status == HF_OK && args->json) {
        hf_json_end(&l.writer);
        (void)printf("%s\n", hf_buf_text(&l.text));
    } else if (status == HF_OK && l.listed == 0) {
        (void)printf("%s: no runs fit\n", args->words[0]);
    }
    code = code_of(&d, status, find.damaged);
    if (l.text.status != HF_OK) {
        code = hf_complain(HF_EXIT_DAMAGED, "no memory for the list");
    }
    hf_buf_deinit(&l.text);
    desk_close(&d);
    return code;
}

/* ---- count --------------------------------------------------------------------------------------------------------------- */

int hf_cmd_count(const hf_tool_args *args)
{
    desk d;
    hf_find find = {.namespace_ = hf_str_of(args->namespace_),
                    .query = hf_str_of(args->word_count > 1 ? args->words[1] : "")};
    int code = desk_open(&d, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status = hf_find_runs(&d.op, d.look, d.source.peek.store, d.memory, &find);
    if (status == HF_OK) {
        uint64_t total = 0;
        for (int32_t i = 0; i < HF_FIND_STATUS_COUNT; i++) {
            total += find.counts[i];
        }
        (void)printf(args->json ? "{\"total\":%llu" : "%llu runs\n", (unsigned long long)total);
        for (int32_t i = 1; i < HF_FIND_STATUS_COUNT; i++) {
            const char *name = hf_pb_enum_brief(&hf_pb_workflow_execution_status_enum, i);
            if (find.counts[i] > 0 && name != NULL) {
                (void)printf(args->json ? ",\"%s\":%llu" : "%-16s %llu\n", name, (unsigned long long)find.counts[i]);
            }
        }
        (void)fputs(args->json ? "}\n" : "", stdout);
    }
    code = code_of(&d, status, find.damaged);
    desk_close(&d);
    return code;
}

/* ---- The registry -------------------------------------------------------------------------------------------------------- */

static void show_namespace(void *arg, const hf_pb_namespace_record *record)
{
    hf_buf *text = arg;
    text->len = 0;
    put_column(text, record->name, ID_WIDTH);
    put_column(text, record->state == HF_NAMESPACE_STATE_DEPRECATED ? HF_STR("Deprecated") : HF_STR("Registered"),
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

/* Shows namespaces, or the custom attributes of one. */
static int show_registry(const hf_tool_args *args, bool attributes)
{
    hf_source source;
    hf_op op;
    hf_buf text;
    int code = hf_source_open_still(&source, args->words[0]);
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
        (void)printf("%s: the namespace %s has no custom search attributes\n", args->words[0], args->namespace_);
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

/* Opens the file as a program does; a file that is not there is not made. NULL: it was told why. */
static hf_service *open_to_change(const hf_tool_args *args, int *ret_code)
{
    hf_source source;
    *ret_code = hf_source_open(&source, args->words[0]);
    if (*ret_code != HF_EXIT_FINE) {
        return NULL;
    }
    bool is_owned = source.is_owned;
    long long holder = (long long)source.holder;
    hf_source_close(&source);
    if (is_owned) {
        *ret_code =
            hf_complain(HF_EXIT_CANNOT_OPEN, "%s is open in process %lld, which has to be ended before this changes it",
                        args->words[0], holder);
        return NULL;
    }
    char address[HF_PATH_LEN_MAX + 16];
    hf_service *service = NULL;
    (void)snprintf(address, sizeof address, "sqlite:%s", args->words[0]);
    if (hf_open(address, &service) != HF_OK) {
        *ret_code = hf_complain(HF_EXIT_CANNOT_OPEN, "%s", hf_error_text());
        return NULL;
    }
    return service;
}

/* Closes it; the exit code of what was done. */
static int close_changed(hf_service *service, hf_status status)
{
    int code = status == HF_OK ? HF_EXIT_FINE : hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
    return hf_close(service) == HF_OK || code != HF_EXIT_FINE ? code
                                                              : hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
}

int hf_cmd_namespace_register(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    hf_service *service = open_to_change(args, &code);
    return service == NULL ? code : close_changed(service, hf_namespace_register(service, args->words[1]));
}

int hf_cmd_namespace_deprecate(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    hf_service *service = open_to_change(args, &code);
    return service == NULL ? code : close_changed(service, hf_namespace_deprecate(service, args->words[1]));
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
    hf_service *service = open_to_change(args, &code);
    return service == NULL
               ? code
               : close_changed(service, hf_search_attribute_add(service, args->words[1], (hf_search_attribute_type)type,
                                                                .namespace_ = args->namespace_));
}

int hf_cmd_attribute_remove(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    hf_service *service = open_to_change(args, &code);
    return service == NULL ? code
                           : close_changed(service, hf_search_attribute_remove(service, args->words[1],
                                                                               .namespace_ = args->namespace_));
}
