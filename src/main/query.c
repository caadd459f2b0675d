/* holdfast list, count: runs that fit a filter; namespace list, namespace deprecate, search-attribute: the registry.
 *
 *     ID        TYPE   STATE      STARTED               CLOSED                RUN
 *     order-2   order  Running    2026-11-16T07:25:52Z                        0f41...
 *     ... and more: --limit N lists N of them
 *
 * A file at rest is looked at, and not changed. A program that has it open, or a server, is asked. What changes opens a file at rest as a
 * program does. */
#include "main/grid.h"
#include "main/report.h"
#include "main/target.h"

#include "inspect/find.h"
#include "service/call.h"
#include "wire/time_text.h"

#include <holdfast/list.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 50, PAGE_RUNS = 1000 };

static const hf_column COLUMNS[] = {{"ID", 24, 8},      {"TYPE", 16, 6},   {"STATE", 14, 9},
                                    {"STARTED", 21, 0}, {"CLOSED", 21, 0}, {"RUN", 36, 0}};
static const hf_column NAMESPACE_COLUMNS[] = {{"NAME", 24, 8}, {"STATE", 14, 10}, {"DESCRIPTION", 40, 8}};
static const hf_column ATTRIBUTE_COLUMNS[] = {{"NAME", 24, 8}, {"TYPE", 12, 0}};

/* ---- What reads ---------------------------------------------------------------------------------------------------------- */

/* A file to look at, with its runs. */
typedef struct desk {
    hf_tool_source source;
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
    hf_progress(NULL);
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
    uint64_t limit;
    hf_service *service; /* of --current: whom to ask; NULL = a file at rest, and `desk` is */
    struct desk *desk;
    uint64_t listed;
    bool looks_on; /* nobody has named a limit: one run more is looked for, ... */
    bool has_more; /* ... and there is one */
    bool is_cut;   /* it could not be read to its end */
    hf_buf text;
    hf_grid table; /* of lines */
    hf_json writer;
} listing;

static const char *state_of(const hf_pb_workflow_execution_info *run)
{
    const char *state = hf_pb_enum_brief(&hf_pb_workflow_execution_status_enum, run->status);
    return state != NULL ? state : "Unknown";
}

/* People do not need fractions of a second. */
static void put_time(hf_grid *table, hf_pb_timestamp at)
{
    char text[HF_TIME_TEXT_LEN_MAX] = "";
    at.nanos = 0;
    if (at.has) {
        (void)hf_timestamp_format(at, text);
    }
    hf_grid_cell(table, hf_str_of(text), HF_TONE_PLAIN);
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
    hf_put_key(writer, "workflowId", run->execution->workflow_id);
    hf_put_key(writer, "runId", run->execution->run_id);
    hf_put_key(writer, "type", run->type->name);
    hf_json_key_string(writer, "state", state_of(run));
    hf_put_key(writer, "taskQueue", run->task_queue);
    key_time(writer, "startTime", run->start_time);
    key_time(writer, "closeTime", run->close_time);
    hf_json_end(writer);
}

/* ---- --current: only the newest run of each workflow id ----
 *
 * If that one was deleted, the id leads to no run, and the older ones that are left are none (engine-S4). If it cannot be read, they are listed. */

static bool is_current_in_file(desk *d, const hf_tool_args *args, const hf_pb_workflow_execution *run)
{
    hf_op op;
    hf_arena arena;
    int64_t number = 0;
    hf_pb_admin_run_list page = {0};
    hf_op_init(&op);
    hf_arena_init(&arena, d->memory);
    hf_status status = hf_look_find(&op, d->look, hf_str_of(args->namespace_), run->workflow_id, &number);
    bool is_read = status == HF_OK && hf_look_page(&op, d->look, number + 1, 1, &arena, &page) == HF_OK &&
                   page.count == 1 && page.items[0].damage.len == 0;
    bool is = is_read ? hf_str_equal(page.items[0].run_id, run->run_id) : status != HF_ERR_NOT_FOUND;
    hf_arena_deinit(&arena);
    return is;
}

static bool is_current_asked(const listing *l, const hf_pb_workflow_execution *run)
{
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_pb_workflow_execution execution = {.workflow_id = run->workflow_id};
    hf_pb_describe_workflow_execution_request request = {.namespace = hf_str_of(l->args->namespace_),
                                                         .execution = &execution};
    hf_op_init(&op);
    hf_arena_init(&arena, l->text.memory);
    hf_call_init(&call, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &arena, NULL);
    hf_status status = hf_service_ask(&op, l->service, &call);
    const hf_pb_describe_workflow_execution_response *newest = call.response;
    bool is_told = status == HF_OK && newest->workflow_execution_info != NULL &&
                   newest->workflow_execution_info->execution != NULL;
    bool is = is_told ? hf_str_equal(newest->workflow_execution_info->execution->run_id, run->run_id)
                      : status != HF_ERR_NOT_FOUND;
    hf_arena_deinit(&arena);
    return is;
}

/* A workflow id has one open run at most, and it is the newest one. */
static bool is_current(const listing *l, const hf_pb_workflow_execution_info *run)
{
    if (run->status == HF_WORKFLOW_EXECUTION_STATUS_RUNNING) {
        return true;
    }
    return l->service != NULL ? is_current_asked(l, run->execution)
                              : is_current_in_file(l->desk, l->args, run->execution);
}

static bool goes_on(const listing *l)
{
    return l->listed < l->limit || (l->looks_on && !l->has_more);
}

static bool show(void *arg, const hf_pb_workflow_execution_info *run)
{
    listing *l = arg;
    if (l->args->current && !is_current(l, run)) {
        return true;
    }
    if (l->listed == l->limit) {
        hf_assert(l->looks_on);
        l->has_more = true;
        return false;
    }
    l->listed++;
    if (l->args->json) {
        put_object(&l->writer, run);
        return goes_on(l);
    }
    hf_progress(NULL);
    l->text.len = 0;
    if (l->listed == 1) {
        hf_grid_title(&l->table);
    }
    hf_grid_cell(&l->table, run->execution->workflow_id, HF_TONE_PLAIN);
    hf_grid_cell(&l->table, run->type->name, HF_TONE_PLAIN);
    hf_grid_cell(&l->table, hf_str_of(state_of(run)), hf_tone_of_status(run->status));
    put_time(&l->table, run->start_time);
    put_time(&l->table, run->close_time);
    hf_grid_cell(&l->table, run->execution->run_id, HF_TONE_DIM);
    hf_grid_end(&l->table);
    (void)fputs(hf_buf_text(&l->text), stdout);
    return goes_on(l);
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
static hf_status list_asked(hf_op *op, hf_service *service, const hf_tool_args *args, listing *l)
{
    uint64_t most = l->limit + (l->looks_on ? 1 : 0);
    uint64_t looked = 0;
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
            .page_size = (int32_t)(most - l->listed < PAGE_RUNS && !args->current ? most - l->listed : PAGE_RUNS),
            .next_page_token = hf_str_of_len(token.data, token.len),
        };
        hf_arena_reset(&arena);
        hf_call_init(&call, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, &request, &arena, NULL);
        call.verb = "list";
        hf_wait_begin("listing", NULL);
        status = hf_service_ask(op, service, &call);
        hf_wait_end();
        const hf_pb_list_workflow_executions_response *page = call.response;
        for (size_t i = 0; status == HF_OK && i < page->executions.count && goes_on(l); i++) {
            hf_progress_runs(++looked);
            (void)show(l, &page->executions.items[i]);
        }
        token.len = 0;
        if (status == HF_OK) {
            hf_buf_put(&token, page->next_page_token.data, page->next_page_token.len);
        }
    } while (status == HF_OK && token.len > 0 && goes_on(l));
    hf_progress(NULL);
    hf_buf_deinit(&token);
    hf_arena_deinit(&arena);
    return status;
}

static int list_into(const hf_tool_target *target, const hf_tool_args *args, hf_find *find, listing *l)
{
    desk d;
    if (target->kind != HF_TARGET_REST) {
        hf_op op;
        hf_op_init(&op);
        hf_status status = list_asked(&op, target->service, args, l);
        return status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", hf_reason_of(op.message));
    }
    int code = desk_open(&d, target->path);
    if (code == HF_EXIT_FINE) {
        l->desk = &d;
        find->limit = 0; /* `show` counts those that it shows */
        hf_status status = hf_find_runs(&d.op, d.look, d.source.peek.store, d.memory, find);
        l->is_cut = status != HF_OK;
        code = code_of(&d, status, find->damaged);
        desk_close(&d);
    }
    return code;
}

int hf_cmd_list(const hf_tool_args *args)
{
    hf_tool_target target;
    listing l = {.args = args};
    hf_find find = {.namespace_ = hf_str_of(args->namespace_),
                    .query = hf_str_of(args->word_count > 1 ? args->words[1] : ""),
                    .visit = show,
                    .progress = hf_progress_runs,
                    .arg = &l};
    if (!limit_of(args, &find.limit)) {
        return hf_complain(HF_EXIT_USAGE, "--limit %s is not a number of runs", args->limit);
    }
    l.limit = find.limit;
    l.looks_on = args->limit == NULL && !args->json;
    if (args->stuck && args->current) {
        return hf_complain(HF_EXIT_USAGE, "give either --stuck or --current: a run that is stuck is the current one");
    }
    if (args->stuck) {
        return args->word_count > 1 ? hf_complain(HF_EXIT_USAGE, "--stuck takes no query") : hf_list_stuck(args);
    }
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE && target.kind != HF_TARGET_REST) {
        hf_wait_begin("listing", NULL);
        code = hf_target_reach(&target);
        hf_wait_end();
    }
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_buf_init(&l.text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_json_init(&l.writer, &l.text);
    hf_grid_init(&l.table, COLUMNS, HF_COUNT_OF(COLUMNS), hf_screen_width(), &l.text);
    if (args->json) {
        hf_json_array(&l.writer);
    }
    l.service = target.kind != HF_TARGET_REST ? target.service : NULL;
    code = list_into(&target, args, &find, &l);
    bool is_whole = code == HF_EXIT_FINE || (find.damaged > 0 && !l.is_cut);
    if (is_whole && args->json) {
        hf_json_end(&l.writer);
        (void)printf("%s\n", hf_buf_text(&l.text));
    } else if (is_whole && l.listed == 0) {
        (void)printf("%s: no runs fit\n", args->words[0]);
    } else if (is_whole && l.has_more) {
        (void)printf("... and more: --limit N lists N of them\n");
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

static int count_file(const hf_tool_target *target, const hf_tool_args *args, const char *query)
{
    desk d;
    hf_find find = {.namespace_ = hf_str_of(args->namespace_), .query = hf_str_of(query), .progress = hf_progress_runs};
    int code = desk_open(&d, target->path);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status = hf_find_runs(&d.op, d.look, d.source.peek.store, d.memory, &find);
    hf_progress(NULL);
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
    hf_tool_target target;
    hf_counts counts = {0};
    const char *query = args->word_count > 1 ? args->words[1] : "";
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE && target.kind == HF_TARGET_REST) {
        return count_file(&target, args, query);
    }
    hf_wait_begin("counting", NULL);
    code = code == HF_EXIT_FINE ? hf_target_reach(&target) : code;
    hf_status status = HF_OK;
    if (code == HF_EXIT_FINE) {
        status = hf_count(target.service, &counts, .query = query, .namespace_ = args->namespace_);
    }
    hf_wait_end();
    if (code != HF_EXIT_FINE) {
        return code;
    }
    code = hf_told(status);
    if (code == HF_EXIT_FINE) {
        put_counts(args, counts.by_status, (int32_t)HF_COUNT_OF(counts.by_status));
    }
    return hf_target_close(&target, code);
}

/* ---- The registry -------------------------------------------------------------------------------------------------------- */

/* A list of namespaces, or of the custom search attributes of one. */
typedef struct registry {
    const hf_tool_args *args;
    bool attributes;
    hf_buf text; /* one line, or all of the JSON */
    hf_grid table;
    hf_json writer;
    size_t count;
} registry;

static void put_entry(registry *r, hf_str name, const char *key, const char *value, const hf_str *description)
{
    r->count++;
    if (r->args->json) {
        hf_json_object(&r->writer);
        hf_put_key(&r->writer, "name", name);
        hf_json_key_string(&r->writer, key, value);
        if (description != NULL) {
            hf_put_key(&r->writer, "description", *description);
        }
        hf_json_end(&r->writer);
        return;
    }
    r->text.len = 0;
    hf_grid_cell(&r->table, name, HF_TONE_PLAIN);
    hf_grid_cell(&r->table, hf_str_of(value), HF_TONE_PLAIN);
    if (description != NULL) {
        hf_grid_cell(&r->table, *description, HF_TONE_PLAIN);
    }
    hf_grid_end(&r->table);
    (void)fputs(hf_buf_text(&r->text), stdout);
}

static void show_record(void *arg, const hf_pb_namespace_record *record)
{
    registry *r = arg;
    if (!r->attributes) {
        put_entry(r, record->name, "state", hf_namespace_state_word(record->state), &record->description);
    }
    bool is_meant = r->attributes && hf_str_equal(record->name, hf_str_of(r->args->namespace_));
    for (size_t i = 0; is_meant && i < record->attributes.count; i++) {
        hf_search_attribute_type type = (hf_search_attribute_type)record->attributes.items[i].type;
        put_entry(r, record->attributes.items[i].name, "type", hf_search_attribute_type_name(type), NULL);
    }
}

/* The same as its owner or a server tells it. */
static bool visit_namespace(void *arg, const hf_namespace_info *info)
{
    hf_str description = hf_str_of(info->description);
    put_entry(arg, hf_str_of(info->name), "state", hf_namespace_state_word((int)info->state), &description);
    return true;
}

static bool visit_attribute(void *arg, const char *name, hf_search_attribute_type type, bool is_custom)
{
    if (is_custom) {
        put_entry(arg, hf_str_of(name), "type", hf_search_attribute_type_name(type), NULL);
    }
    return true;
}

static int ask_registry(hf_tool_target *target, registry *r)
{
    int code = hf_target_reach(target);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status =
        r->attributes ? hf_search_attribute_list(target->service, visit_attribute, r, .namespace_ = r->args->namespace_)
                      : hf_namespace_list(target->service, visit_namespace, r);
    return hf_target_close(target, hf_told(status));
}

static int read_registry(const hf_tool_target *target, registry *r)
{
    hf_tool_source source;
    hf_op op;
    hf_op_init(&op);
    int code = hf_source_open_still(&source, target->path);
    if (code == HF_EXIT_FINE) {
        hf_allocator memory = hf_env_memory(source.env);
        bool has_namespace = true;
        hf_status status = hf_find_namespaces(&op, source.peek.store, memory, show_record, r, hf_progress_runs);
        if (status == HF_OK && r->attributes) {
            status = hf_find_namespace_of(&op, source.peek.store, memory, hf_str_of(r->args->namespace_),
                                          &has_namespace, hf_progress_runs);
        }
        hf_progress(NULL);
        code = status != HF_OK  ? hf_complain(HF_EXIT_DAMAGED, "%s", op.message)
               : !has_namespace ? hf_no_namespace(r->args->namespace_)
                                : HF_EXIT_FINE;
        hf_source_close(&source);
    }
    return code;
}

static int show_registry(const hf_tool_args *args, bool attributes)
{
    hf_tool_target target;
    registry r = {.args = args, .attributes = attributes};
    hf_buf_init(&r.text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_json_init(&r.writer, &r.text);
    if (args->json) {
        hf_json_array(&r.writer);
    } else if (attributes) {
        hf_grid_init(&r.table, ATTRIBUTE_COLUMNS, HF_COUNT_OF(ATTRIBUTE_COLUMNS), hf_screen_width(), &r.text);
    } else {
        hf_grid_init(&r.table, NAMESPACE_COLUMNS, HF_COUNT_OF(NAMESPACE_COLUMNS), hf_screen_width(), &r.text);
    }
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE) {
        code = target.kind == HF_TARGET_REST ? read_registry(&target, &r) : ask_registry(&target, &r);
    }
    if (code == HF_EXIT_FINE && args->json) {
        hf_json_end(&r.writer);
        (void)printf("%s\n", hf_buf_text(&r.text));
    } else if (code == HF_EXIT_FINE && r.count == 0) {
        (void)printf("%s: the namespace %s has no custom search attributes\n", args->words[0], args->namespace_);
    }
    hf_buf_deinit(&r.text);
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

int hf_no_namespace(const char *name)
{
    return hf_complain(HF_EXIT_NOT_FOUND, "there is no namespace '%s': register it first", name);
}

hf_service *hf_change_open(const hf_tool_args *args, int *ret_code)
{
    static hf_tool_target target;
    *ret_code = hf_target_open(&target, args);
    return *ret_code == HF_EXIT_FINE ? target.service : NULL;
}

int hf_change_close(hf_service *service, hf_status status)
{
    int code = hf_told(status);
    return hf_close(service) == HF_OK || code != HF_EXIT_FINE ? code
                                                              : hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
}

static int done(const hf_tool_args *args, int code)
{
    return hf_put_done(args, "name", code);
}

int hf_cmd_namespace_deprecate(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    hf_service *service = hf_change_open(args, &code);
    return service == NULL ? code
                           : done(args, hf_change_close(service, hf_namespace_deprecate(service, args->words[1])));
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
    return service == NULL
               ? code
               : done(args, hf_change_close(service, hf_search_attribute_add(service, args->words[1],
                                                                             (hf_search_attribute_type)type,
                                                                             .namespace_ = args->namespace_)));
}

int hf_cmd_attribute_remove(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    hf_service *service = hf_change_open(args, &code);
    return service == NULL
               ? code
               : done(args, hf_change_close(service, hf_search_attribute_remove(service, args->words[1],
                                                                                .namespace_ = args->namespace_)));
}
