/* holdfast list --stuck: runs that do not go on by themselves, why, and what helps. holdfast top: queues and runs, refreshed.
 *
 *     ID        TYPE   WHY                                              WHAT HELPS
 *     order-1   order  its workflow task fails, attempt 7               holdfast why orders.db order-1
 *     order-2   order  no worker polls the task queue orders            start a worker of that queue
 */
#include "main/target.h"

#include "base/json.h"
#include "service/call.h"

#include <holdfast/error.h>
#include <holdfast/list.h>

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ID_WIDTH = 24, TYPE_WIDTH = 16, WHY_WIDTH = 52, QUEUE_WIDTH = 32, QUEUES_MAX = 256, PAGE = 200 };

/* Whether somebody polls a queue, asked once for each. */
typedef struct queue_fact {
    char name[1000];
    bool has_poller;
} queue_fact;

typedef struct search {
    const hf_tool_args *args;
    hf_service *service; /* NULL = a file at rest */
    hf_buf text;
    hf_json writer;
    uint64_t count;
    queue_fact queues[QUEUES_MAX];
    size_t queue_count;
} search;

static void put_column(hf_buf *out, hf_str text, size_t width)
{
    size_t count = hf_put_text(out, text, SIZE_MAX);
    hf_buf_putf(out, "%*s  ", count < width ? (int)(width - count) : 0, "");
}

static void key_text(hf_json *writer, const char *key, hf_str text)
{
    hf_json_key(writer, key);
    hf_json_string_len(writer, text.data, text.len);
}

static void put_stuck(search *s, hf_str id, hf_str type, hf_str run_id, const char *why, const char *help)
{
    s->count++;
    if (s->args->json) {
        hf_json_object(&s->writer);
        key_text(&s->writer, "workflowId", id);
        key_text(&s->writer, "runId", run_id);
        key_text(&s->writer, "type", type);
        key_text(&s->writer, "why", hf_str_of(why));
        key_text(&s->writer, "help", hf_str_of(help));
        hf_json_end(&s->writer);
        return;
    }
    s->text.len = 0;
    if (s->count == 1) {
        put_column(&s->text, HF_STR("ID"), ID_WIDTH);
        put_column(&s->text, HF_STR("TYPE"), TYPE_WIDTH);
        put_column(&s->text, HF_STR("WHY"), WHY_WIDTH);
        hf_buf_puts(&s->text, "WHAT HELPS\n");
    }
    put_column(&s->text, id, ID_WIDTH);
    put_column(&s->text, type, TYPE_WIDTH);
    put_column(&s->text, hf_str_of(why), WHY_WIDTH);
    (void)hf_put_text(&s->text, hf_str_of(help), SIZE_MAX);
    (void)printf("%s\n", hf_buf_text(&s->text));
}

static hf_status describe_queue(hf_op *op, hf_service *service, const char *namespace_, hf_str name, int32_t type,
                                hf_arena *arena, const hf_pb_describe_task_queue_response **ret_queue)
{
    hf_call call;
    hf_pb_task_queue queue = {.name = name};
    hf_pb_describe_task_queue_request request = {.namespace = hf_str_of(namespace_),
                                                 .task_queue = &queue,
                                                 .task_queue_type = type,
                                                 .report_stats = true,
                                                 .report_pollers = true};
    hf_call_init(&call, HF_METHOD_DESCRIBE_TASK_QUEUE, &request, arena, NULL);
    HF_TRY(hf_service_ask(op, service, &call));
    *ret_queue = call.response;
    return HF_OK;
}

/* What cannot be found out counts as polled. */
static bool has_poller(search *s, hf_str name, hf_arena *arena)
{
    hf_op op;
    hf_op_init(&op);
    for (size_t i = 0; i < s->queue_count; i++) {
        if (hf_str_equal(hf_str_of(s->queues[i].name), name)) {
            return s->queues[i].has_poller;
        }
    }
    const hf_pb_describe_task_queue_response *queue = NULL;
    if (s->queue_count == QUEUES_MAX || name.len >= sizeof s->queues[0].name ||
        describe_queue(&op, s->service, s->args->namespace_, name, HF_TASK_QUEUE_TYPE_WORKFLOW, arena, &queue) !=
            HF_OK) {
        return true;
    }
    queue_fact *fact = &s->queues[s->queue_count++];
    (void)snprintf(fact->name, sizeof fact->name, "%.*s", HF_STR_ARGS(name));
    fact->has_poller = queue->pollers.count > 0;
    return fact->has_poller;
}

/* Tells the run if it is stuck. */
static void consider(search *s, const hf_pb_describe_workflow_execution_response *description, hf_arena *arena)
{
    const hf_pb_workflow_execution_info *info = description->workflow_execution_info;
    const hf_pb_pending_workflow_task_info *task = description->pending_workflow_task;
    char why[300];
    char help[1400];
    if (info == NULL || info->execution == NULL || info->status != HF_WORKFLOW_EXECUTION_STATUS_RUNNING) {
        return;
    }
    const char *target = s->args->words[0];
    hf_str id = info->execution->workflow_id;
    hf_str type = info->type != NULL ? info->type->name : (hf_str){0};
    if (task != NULL && task->holdfast_crashes > 0) {
        (void)snprintf(why, sizeof why, "its task was in hand when its program ended, %u times",
                       task->holdfast_crashes);
        (void)snprintf(help, sizeof help, "repair its code; or holdfast terminate %.300s %.*s", target,
                       HF_STR_ARGS(id));
    } else if (task != NULL && task->attempt > 1) {
        (void)snprintf(why, sizeof why, "its workflow task fails, attempt %d", task->attempt);
        (void)snprintf(help, sizeof help, "holdfast why %.300s %.*s", target, HF_STR_ARGS(id));
    } else if (s->service != NULL && task != NULL && !has_poller(s, info->task_queue, arena)) {
        (void)snprintf(why, sizeof why, "no worker polls the task queue %.*s",
                       info->task_queue.len > 200 ? 200 : (int)info->task_queue.len, info->task_queue.data);
        (void)snprintf(help, sizeof help, "start a worker of that queue");
    } else {
        return;
    }
    put_stuck(s, id, type, info->execution->run_id, why, help);
}

/* ---- From a file at rest --------------------------------------------------------------------------------------------------- */

static hf_status search_file(hf_op *op, search *s, hf_source *source)
{
    hf_look *look = NULL;
    hf_arena arena;
    hf_buf history;
    int64_t number = 0;
    hf_allocator memory = hf_env_memory(source->env);
    HF_TRY(hf_look_open(op, memory, source->peek.store, &look));
    hf_arena_init(&arena, memory);
    hf_buf_init(&history, memory, SIZE_MAX / 4);
    hf_status status = hf_look_next(op, look, 0, &number);
    while (status == HF_OK && number != 0) {
        hf_pb_describe_workflow_execution_response description;
        hf_str namespace_ = {0};
        hf_arena_reset(&arena);
        history.len = 0;
        hf_op tried;
        hf_op_init(&tried);
        status = hf_look_describe(&tried, look, number, &arena, &history, &namespace_, &description);
        if (status == HF_OK && hf_str_equal(namespace_, hf_str_of(s->args->namespace_))) {
            consider(s, &description, &arena);
        } else if (status == HF_ERR_INVALID || status == HF_ERR_NOT_FOUND) {
            char id[40];
            (void)snprintf(id, sizeof id, "(run %lld)", (long long)number);
            put_stuck(s, hf_str_of(id), HF_STR(""), HF_STR(""), "it is damaged", "holdfast db check --deep");
        }
        bool is_known = status == HF_OK || status == HF_ERR_INVALID || status == HF_ERR_NOT_FOUND ||
                        status == HF_ERR_UNSUPPORTED; /* an operation on many runs */
        status = is_known ? hf_look_next(op, look, number, &number) : hf_fail(op, status, "%s", tried.message);
    }
    hf_buf_deinit(&history);
    hf_arena_deinit(&arena);
    hf_look_close(look);
    return status;
}

/* ---- From its owner, or a server -------------------------------------------------------------------------------------------- */

static hf_status look_at(hf_op *op, search *s, const hf_pb_workflow_execution *execution)
{
    hf_arena arena;
    hf_call call;
    hf_pb_workflow_execution copy = *execution;
    hf_pb_describe_workflow_execution_request request = {.namespace = hf_str_of(s->args->namespace_),
                                                         .execution = &copy};
    hf_arena_init(&arena, s->text.memory);
    hf_call_init(&call, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &arena, NULL);
    hf_status status = hf_service_ask(op, s->service, &call);
    if (status == HF_OK) {
        consider(s, call.response, &arena);
    }
    hf_arena_deinit(&arena);
    return status == HF_ERR_NOT_FOUND ? HF_OK : status; /* it may have gone meanwhile */
}

static hf_status search_asked(hf_op *op, search *s)
{
    hf_arena arena;
    hf_buf token;
    hf_status status = HF_OK;
    hf_arena_init(&arena, s->text.memory);
    hf_buf_init(&token, s->text.memory, SIZE_MAX / 4);
    do {
        hf_call call;
        hf_pb_list_workflow_executions_request request = {
            .namespace = hf_str_of(s->args->namespace_),
            .query = HF_STR("ExecutionStatus = 'Running'"),
            .page_size = PAGE,
            .next_page_token = hf_str_of_len(token.data, token.len),
        };
        hf_arena_reset(&arena);
        hf_call_init(&call, HF_METHOD_LIST_WORKFLOW_EXECUTIONS, &request, &arena, NULL);
        status = hf_service_ask(op, s->service, &call);
        const hf_pb_list_workflow_executions_response *page = call.response;
        for (size_t i = 0; status == HF_OK && i < page->executions.count; i++) {
            hf_progress("looked at %zu runs", i);
            status = look_at(op, s, page->executions.items[i].execution);
        }
        token.len = 0;
        if (status == HF_OK) {
            hf_buf_put(&token, page->next_page_token.data, page->next_page_token.len);
        }
    } while (status == HF_OK && token.len > 0);
    hf_progress(NULL);
    hf_buf_deinit(&token);
    hf_arena_deinit(&arena);
    return status;
}

int hf_list_stuck(const hf_tool_args *args)
{
    static search s;
    hf_target target;
    hf_source source;
    hf_op op;
    hf_op_init(&op);
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE) {
        code = target.kind == HF_TARGET_REST ? hf_source_open_still(&source, target.path) : hf_target_reach(&target);
    }
    if (code != HF_EXIT_FINE) {
        return code;
    }
    s = (search){.args = args, .service = target.service};
    hf_buf_init(&s.text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_json_init(&s.writer, &s.text);
    if (args->json) {
        hf_json_array(&s.writer);
    }
    hf_status status = target.kind == HF_TARGET_REST ? search_file(&op, &s, &source) : search_asked(&op, &s);
    if (target.kind == HF_TARGET_REST) {
        hf_source_close(&source);
    }
    if (status == HF_OK && args->json) {
        hf_json_end(&s.writer);
        (void)printf("%s\n", hf_buf_text(&s.text));
    } else if (status == HF_OK && s.count == 0) {
        (void)printf("%s: no run is stuck\n", args->words[0]);
    }
    hf_buf_deinit(&s.text);
    code = status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", hf_reason_of(op.message));
    return hf_target_close(&target, code);
}

/* ---- top ---------------------------------------------------------------------------------------------------------------------- */

static hf_status put_queues(hf_op *op, hf_service *service, const hf_tool_args *args, hf_arena *arena, hf_buf *out)
{
    hf_call call;
    hf_pb_list_task_queues_request request = {.namespace = hf_str_of(args->namespace_), .page_size = QUEUES_MAX};
    hf_call_init(&call, HF_METHOD_LIST_TASK_QUEUES, &request, arena, NULL);
    HF_TRY(hf_service_ask(op, service, &call));
    const hf_pb_list_task_queues_response *list = call.response;
    put_column(out, HF_STR("QUEUE"), QUEUE_WIDTH);
    hf_buf_puts(out, "TYPE      POLLERS  WAITING  OLDEST      IN/S   OUT/S\n");
    for (size_t i = 0; i < list->queues.count; i++) {
        const hf_pb_task_queue_entry *entry = &list->queues.items[i];
        const hf_pb_describe_task_queue_response *queue = NULL;
        HF_TRY(describe_queue(op, service, args->namespace_, entry->name, entry->type, arena, &queue));
        const hf_pb_task_queue_stats *stats = queue->stats;
        hf_buf age;
        hf_buf_init(&age, out->memory, 100);
        if (stats != NULL && stats->approximate_backlog_count > 0) {
            hf_put_span(&age, hf_pb_duration_span(stats->approximate_backlog_age).ns);
        }
        put_column(out, entry->name, QUEUE_WIDTH);
        hf_buf_putf(out, "%-8s  %7lld  %7lld  %-10s  %5.1f  %6.1f\n",
                    entry->type == HF_TASK_QUEUE_TYPE_ACTIVITY ? "activity" : "workflow", (long long)entry->pollers,
                    (long long)(stats != NULL ? stats->approximate_backlog_count : entry->backlog), hf_buf_text(&age),
                    stats != NULL ? (double)stats->tasks_add_rate : 0.0,
                    stats != NULL ? (double)stats->tasks_dispatch_rate : 0.0);
        hf_buf_deinit(&age);
    }
    return HF_OK;
}

static hf_status put_top(hf_op *op, hf_service *service, const hf_tool_args *args, hf_buf *out)
{
    hf_arena arena;
    hf_counts counts = {0};
    if (hf_count(service, &counts, .namespace_ = args->namespace_) != HF_OK) {
        return hf_fail(op, hf_error()->status, "%s", hf_error_text());
    }
    hf_buf_putf(out, "%s, namespace %s: %lld runs", args->words[0], args->namespace_, (long long)counts.total);
    for (int i = 1; i < (int)HF_COUNT_OF(counts.by_status); i++) {
        if (counts.by_status[i] > 0) {
            hf_buf_putf(out, ", %lld %s", (long long)counts.by_status[i],
                        hf_workflow_status_name((hf_workflow_status)i));
        }
    }
    hf_buf_puts(out, "\n\n");
    hf_arena_init(&arena, out->memory);
    hf_status status = put_queues(op, service, args, &arena, out);
    hf_arena_deinit(&arena);
    return status;
}

int hf_cmd_top(const hf_tool_args *args)
{
    hf_target target;
    hf_buf out;
    bool is_once = args->once || isatty(STDOUT_FILENO) == 0;
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE && target.kind == HF_TARGET_REST) {
        return hf_complain(HF_EXIT_CANNOT_OPEN,
                           "no program has %s open, and so nothing happens: start the program that works on it",
                           target.path);
    }
    code = code == HF_EXIT_FINE ? hf_target_reach(&target) : code;
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_buf_init(&out, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    do {
        hf_op op;
        hf_op_init(&op);
        out.len = 0;
        hf_status status = put_top(&op, target.service, args, &out);
        if (status != HF_OK) {
            code = hf_complain(hf_exit_of(status), "%s", hf_reason_of(op.message));
            break;
        }
        (void)printf("%s%s", is_once ? "" : "\033[H\033[2J", hf_buf_text(&out));
        (void)fflush(stdout);
        if (!is_once) {
            (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        }
    } while (!is_once);
    hf_buf_deinit(&out);
    return hf_target_close(&target, code);
}
