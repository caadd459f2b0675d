/* holdfast list --stuck: runs that do not go on by themselves, why, and what helps.
 *
 *     ID        TYPE   WHY                                              WHAT HELPS
 *     order-1   order  its workflow task fails, attempt 7               holdfast why orders.db order-1
 *                      NondeterminismError: the history has TimerStarted ...
 *     order-2   order  no worker polls the task queue orders            start a worker of that queue
 *
 * A workflow task that fails, a task that ended its program, and an activity that fails again and again are known from the run. Whether a queue
 * has a worker is known only while a program has the file open. Damaged runs are found in a file, and by its owner. */
#include "main/stuck.h"

#include "history/history.h"
#include "history/payload.h"
#include "main/grid.h"
#include "service/call.h"

#include <stdio.h>
#include <string.h>

enum { PAGE = 200, EVENTS_BACK = 20, OWNER_PAGE = 500 };

void hf_stuck_put_json(hf_json *writer, const hf_stuck *stuck)
{
    const struct {
        const char *key;
        hf_str text;
    } TEXTS[] = {
        {"workflowId", stuck->workflow_id},   {"runId", stuck->run_id},       {"type", stuck->type},
        {"reason", hf_str_of(stuck->reason)}, {"why", hf_str_of(stuck->why)}, {"error", hf_str_of(stuck->error)},
        {"help", hf_str_of(stuck->help)}};
    hf_json_object(writer);
    for (size_t i = 0; i < HF_COUNT_OF(TEXTS); i++) {
        hf_json_key(writer, TEXTS[i].key);
        hf_json_string_len(writer, TEXTS[i].text.data, TEXTS[i].text.len);
    }
    hf_json_end(writer);
}

/* ---- What is known of a queue ---------------------------------------------------------------------------------------------------- */

hf_status hf_describe_queue(hf_op *op, hf_service *service, const char *namespace_, hf_str name, int32_t type,
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

bool hf_queue_is_polled(hf_service *service, const char *namespace_, hf_str name, bool is_activity, hf_arena *arena)
{
    hf_op op;
    hf_op_init(&op);
    const hf_pb_describe_task_queue_response *queue = NULL;
    int32_t type = is_activity ? HF_TASK_QUEUE_TYPE_ACTIVITY : HF_TASK_QUEUE_TYPE_WORKFLOW;
    return hf_describe_queue(&op, service, namespace_, name, type, arena, &queue) != HF_OK || queue->pollers.count > 0;
}

/* The same, asked once for each queue. */
static bool has_poller(hf_stuck_search *s, hf_str name, bool is_activity, hf_arena *arena)
{
    if (s->target->service == NULL || name.len == 0) {
        return true;
    }
    for (size_t i = 0; i < s->queue_count; i++) {
        if (s->queues[i].is_activity == is_activity && hf_str_equal(hf_str_of(s->queues[i].name), name)) {
            return s->queues[i].has_poller;
        }
    }
    if (s->queue_count == HF_STUCK_QUEUES_MAX || name.len >= sizeof s->queues[0].name) {
        return true;
    }
    hf_stuck_queue *fact = &s->queues[s->queue_count++];
    (void)snprintf(fact->name, sizeof fact->name, "%.*s", HF_STR_ARGS(name));
    fact->is_activity = is_activity;
    fact->has_poller = hf_queue_is_polled(s->target->service, s->args->namespace_, name, is_activity, arena);
    return fact->has_poller;
}

/* ---- Errors ---------------------------------------------------------------------------------------------------------------------- */

/* "NondeterminismError: the history has ..." */
static void put_error(const hf_pb_failure *failure, char error[HF_STUCK_ERROR_MAX])
{
    if (failure != NULL) {
        hf_str type = hf_failure_type(failure);
        (void)snprintf(error, HF_STUCK_ERROR_MAX, "%.*s%s%.*s", type.len > 100 ? 100 : (int)type.len, type.data,
                       type.len > 0 ? ": " : "", failure->message.len > 450 ? 450 : (int)failure->message.len,
                       failure->message.data);
    }
}

/* The last workflow task that failed since one was completed. A reset writes such an event, too, and nothing has failed. */
static void error_of(hf_str events, bool is_newest_first, hf_arena *arena, char error[HF_STUCK_ERROR_MAX])
{
    hf_str bytes = {0};
    bool is_found = false;
    while (!(is_newest_first && is_found) && hf_history_next(&events, &bytes)) {
        hf_op op;
        hf_pb_history_event event;
        hf_op_init(&op);
        if (hf_pb_decode(&op, &hf_pb_history_event_type, bytes, arena, &event) != HF_OK || event.attributes_case == 0) {
            continue;
        }
        if (event.event_type == HF_EVENT_TYPE_WORKFLOW_TASK_COMPLETED) {
            error[0] = '\0';
            is_found = true;
        } else if (event.event_type == HF_EVENT_TYPE_WORKFLOW_TASK_FAILED &&
                   event.workflow_task_failed_event_attributes->cause !=
                       (int32_t)HF_WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW) {
            put_error(event.workflow_task_failed_event_attributes->failure, error);
            is_found = true;
        }
    }
}

/* The same from its owner or a server, which begins with the newest event. */
static void error_asked(hf_stuck_search *s, const hf_pb_workflow_execution *execution, hf_arena *arena,
                        char error[HF_STUCK_ERROR_MAX])
{
    hf_op op;
    hf_call call;
    hf_pb_workflow_execution copy = *execution;
    hf_pb_get_workflow_execution_history_reverse_request request = {
        .namespace = hf_str_of(s->args->namespace_), .execution = &copy, .maximum_page_size = EVENTS_BACK};
    hf_op_init(&op);
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY_REVERSE, &request, arena, NULL);
    if (hf_service_ask(&op, s->target->service, &call) == HF_OK) {
        const hf_pb_get_workflow_execution_history_reverse_response *page = call.response;
        error_of(page->history, true, arena, error);
    }
}

/* ---- One run --------------------------------------------------------------------------------------------------------------------- */

typedef struct verdict {
    const char *reason;
    char why[300];
    char error[HF_STUCK_ERROR_MAX];
    char help[1400];
} verdict;

static const hf_pb_pending_activity_info *
failing_activity(const hf_pb_describe_workflow_execution_response *description)
{
    for (size_t i = 0; i < description->pending_activities.count; i++) {
        const hf_pb_pending_activity_info *info = &description->pending_activities.items[i];
        if (info->attempt >= HF_STUCK_FROM_ATTEMPT || info->holdfast_crashes > 0) {
            return info;
        }
    }
    return NULL;
}

static const char *times(uint32_t count)
{
    return count == 1 ? "time" : "times";
}

static void judge_activity(const hf_pb_pending_activity_info *info, const char *command, verdict *v)
{
    hf_str name = info->activity_type != NULL ? info->activity_type->name : info->activity_id;
    int len = name.len > 150 ? 150 : (int)name.len;
    put_error(info->last_failure, v->error);
    if (info->holdfast_crashes > 0) {
        v->reason = "crashes";
        (void)snprintf(v->why, sizeof v->why, "its program ended %u %s while activity %.*s ran",
                       (unsigned)info->holdfast_crashes, times(info->holdfast_crashes), len, name.data);
        (void)snprintf(v->help, sizeof v->help, "repair its code; or holdfast cancel %s", command);
    } else {
        v->reason = "activity-fails";
        (void)snprintf(v->why, sizeof v->why, "activity %.*s fails, attempt %d", len, name.data, info->attempt);
        (void)snprintf(v->help, sizeof v->help, "holdfast why %s", command);
    }
}

/* The task queue on which an activity waits for a worker; empty = it does not, or it is not known. */
hf_str hf_pending_queue(const hf_pb_pending_activity_info *info, int64_t now_ns)
{
    bool waits = info->state == HF_PENDING_ACTIVITY_STATE_SCHEDULED && !info->last_started_time.has &&
                 hf_pb_timestamp_time(info->scheduled_time).ns <= now_ns;
    return waits && info->activity_options != NULL && info->activity_options->task_queue != NULL
               ? info->activity_options->task_queue->name
               : (hf_str){0};
}

static int64_t now_ns(void)
{
    hf_env *env = hf_env_posix();
    return env->ops->wall_now(env).ns;
}

/* The first activity whose queue nobody polls. */
static const hf_pb_pending_activity_info *
unpolled_activity(hf_stuck_search *s, const hf_pb_describe_workflow_execution_response *description, hf_arena *arena)
{
    for (size_t i = 0; i < description->pending_activities.count; i++) {
        hf_str queue = hf_pending_queue(&description->pending_activities.items[i], now_ns());
        if (!has_poller(s, queue, true, arena)) {
            return &description->pending_activities.items[i];
        }
    }
    return NULL;
}

static void judge_unpolled(const hf_pb_pending_activity_info *info, verdict *v)
{
    hf_str name = info->activity_type != NULL ? info->activity_type->name : info->activity_id;
    hf_str queue = info->activity_options->task_queue->name;
    v->reason = "no-poller";
    (void)snprintf(v->why, sizeof v->why, "activity %.*s: no worker polls the task queue %.*s for activities",
                   name.len > 90 ? 90 : (int)name.len, name.data, queue.len > 120 ? 120 : (int)queue.len, queue.data);
    (void)snprintf(v->help, sizeof v->help, "start a worker of that queue");
}

/* A task that failed with a sentence tells it, also if the task was in hand when its program ended: any program with that worker may have been
 * killed meanwhile. */
static void judge_task(hf_stuck_search *s, const hf_pb_workflow_execution *execution,
                       const hf_pb_pending_workflow_task_info *task, const char *command, hf_str history,
                       hf_arena *arena, verdict *v)
{
    char attempt[40] = "";
    char ended[80] = "";
    unsigned crashes = task->holdfast_crashes;
    if (s->target->service == NULL) {
        error_of(history, false, arena, v->error);
    } else {
        error_asked(s, execution, arena, v->error);
    }
    if (crashes > 0 && v->error[0] == '\0') {
        v->reason = "crashes";
        (void)snprintf(v->why, sizeof v->why, "its task was in hand when its program ended, %u %s", crashes,
                       times(crashes));
        (void)snprintf(v->help, sizeof v->help, "repair its code; or holdfast terminate %s", command);
        return;
    }
    if (task->attempt > 1) {
        (void)snprintf(attempt, sizeof attempt, ", attempt %d", task->attempt);
    }
    if (crashes > 0) {
        (void)snprintf(ended, sizeof ended, "; its program ended %u %s while it had the task in hand", crashes,
                       times(crashes));
    }
    v->reason = "task-fails";
    (void)snprintf(v->why, sizeof v->why, "its workflow task fails%s%s", attempt, ended);
    (void)snprintf(v->help, sizeof v->help, "holdfast why %s", command);
}

/* Whether something of the run waits for a worker, so that it goes on when there is one. */
static bool waits_for_worker(const hf_pb_describe_workflow_execution_response *description)
{
    for (size_t i = 0; i < description->pending_activities.count; i++) {
        if (description->pending_activities.items[i].state != HF_PENDING_ACTIVITY_STATE_PAUSED) {
            return true;
        }
    }
    return description->pending_workflow_task != NULL;
}

/* Tells the run if it is stuck. `history` is empty if it must be asked for. */
static void consider(hf_stuck_search *s, const hf_pb_describe_workflow_execution_response *description, hf_str history,
                     hf_arena *arena)
{
    const hf_pb_workflow_execution_info *info = description->workflow_execution_info;
    const hf_pb_pending_workflow_task_info *task = description->pending_workflow_task;
    verdict v = {.reason = NULL};
    char command[1300];
    s->looked++;
    if (info == NULL || info->execution == NULL || info->status != HF_WORKFLOW_EXECUTION_STATUS_RUNNING) {
        return;
    }
    hf_str id = info->execution->workflow_id;
    const hf_pb_pending_activity_info *activity = failing_activity(description);
    (void)snprintf(command, sizeof command, "%.280s %.*s", s->args->words[0], HF_STR_ARGS(id));
    if (task != NULL && (task->holdfast_crashes > 0 || task->attempt > 1)) {
        judge_task(s, info->execution, task, command, history, arena, &v);
    } else if (activity != NULL) {
        judge_activity(activity, command, &v);
    } else if (task != NULL && !has_poller(s, info->task_queue, false, arena)) {
        v.reason = "no-poller";
        (void)snprintf(v.why, sizeof v.why, "no worker polls the task queue %.*s",
                       info->task_queue.len > 200 ? 200 : (int)info->task_queue.len, info->task_queue.data);
        (void)snprintf(v.help, sizeof v.help, "start a worker of that queue");
    } else if ((activity = unpolled_activity(s, description, arena)) != NULL) {
        judge_unpolled(activity, &v);
    }
    s->waiting += v.reason == NULL && s->target->kind == HF_TARGET_REST && waits_for_worker(description);
    if (v.reason != NULL) {
        hf_stuck stuck = {.workflow_id = id,
                          .run_id = info->execution->run_id,
                          .type = info->type != NULL ? info->type->name : (hf_str){0},
                          .reason = v.reason,
                          .why = v.why,
                          .error = v.error,
                          .help = v.help};
        s->count++;
        s->visit(s, &stuck);
    }
}

static void tell_damaged(hf_stuck_search *s, int64_t number, const char *error)
{
    char id[40];
    char help[400];
    (void)snprintf(id, sizeof id, "(run %lld)", (long long)number);
    (void)snprintf(help, sizeof help, "holdfast db check %.300s --deep", s->target->path);
    hf_stuck stuck = {
        .workflow_id = hf_str_of(id), .reason = "damaged", .why = "it is damaged", .error = error, .help = help};
    s->count++;
    s->visit(s, &stuck);
}

/* ---- From a file at rest ------------------------------------------------------------------------------------------------------------ */

static hf_status search_file(hf_op *op, hf_stuck_search *s, hf_tool_source *source)
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
            consider(s, &description, hf_str_of_len(history.data, history.len), &arena);
        } else if (status == HF_ERR_INVALID || status == HF_ERR_NOT_FOUND) {
            tell_damaged(s, number, tried.message);
        }
        hf_progress("looked at %llu runs", (unsigned long long)s->looked);
        bool is_known = status == HF_OK || status == HF_ERR_INVALID || status == HF_ERR_NOT_FOUND ||
                        status == HF_ERR_UNSUPPORTED; /* an operation on many runs */
        status = is_known ? hf_look_next(op, look, number, &number) : hf_fail(op, status, "%s", tried.message);
    }
    hf_progress(NULL);
    hf_buf_deinit(&history);
    hf_arena_deinit(&arena);
    hf_look_close(look);
    return status;
}

hf_status hf_stuck_look(hf_op *op, hf_stuck_search *s, hf_tool_source *source, const char *what)
{
    hf_look *look = NULL;
    hf_arena arena;
    hf_buf history;
    hf_str namespace_ = {0};
    int64_t number = 0;
    hf_pb_describe_workflow_execution_response description;
    hf_allocator memory = hf_env_memory(source->env);
    s->looked = s->count = s->waiting = s->queue_count = 0;
    HF_TRY(hf_look_open(op, memory, source->peek.store, &look));
    hf_arena_init(&arena, memory);
    hf_buf_init(&history, memory, SIZE_MAX / 4);
    hf_status status = hf_look_find(op, look, hf_str_of(s->args->namespace_), hf_str_of(what), &number);
    if (status == HF_OK) {
        status = hf_look_describe(op, look, number, &arena, &history, &namespace_, &description);
    }
    if (status == HF_OK) {
        consider(s, &description, hf_str_of_len(history.data, history.len), &arena);
    }
    hf_buf_deinit(&history);
    hf_arena_deinit(&arena);
    hf_look_close(look);
    return status;
}

/* ---- From its owner, or a server ----------------------------------------------------------------------------------------------------- */

static hf_status look_at(hf_op *op, hf_stuck_search *s, const hf_pb_workflow_execution *execution)
{
    hf_arena arena;
    hf_call call;
    hf_pb_workflow_execution copy = *execution;
    hf_pb_describe_workflow_execution_request request = {.namespace = hf_str_of(s->args->namespace_),
                                                         .execution = &copy};
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_call_init(&call, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, &arena, NULL);
    hf_status status = hf_service_ask(op, s->target->service, &call);
    if (status == HF_OK) {
        consider(s, call.response, (hf_str){0}, &arena);
    }
    hf_arena_deinit(&arena);
    return status == HF_ERR_NOT_FOUND ? HF_OK : status; /* it may have gone meanwhile */
}

hf_status hf_stuck_ask(hf_op *op, hf_stuck_search *s, const char *workflow_id)
{
    s->looked = s->count = s->waiting = s->queue_count = 0;
    return look_at(op, s, &(hf_pb_workflow_execution){.workflow_id = hf_str_of(workflow_id)});
}

static bool is_enough(const hf_stuck_search *s)
{
    return s->looked_max > 0 && s->looked >= s->looked_max;
}

static hf_status search_asked(hf_op *op, hf_stuck_search *s)
{
    hf_arena arena;
    hf_buf token;
    hf_status status = HF_OK;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    hf_buf_init(&token, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
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
        status = hf_service_ask(op, s->target->service, &call);
        const hf_pb_list_workflow_executions_response *page = call.response;
        for (size_t i = 0; status == HF_OK && i < page->executions.count && !is_enough(s); i++) {
            hf_progress("looked at %llu runs", (unsigned long long)s->looked);
            status = look_at(op, s, page->executions.items[i].execution);
        }
        token.len = 0;
        if (status == HF_OK) {
            hf_buf_put(&token, page->next_page_token.data, page->next_page_token.len);
        }
    } while (status == HF_OK && token.len > 0 && !is_enough(s));
    hf_progress(NULL);
    hf_buf_deinit(&token);
    hf_arena_deinit(&arena);
    return status;
}

/* Damaged runs are in no list of the service; the owner of a file tells them to tools. */
static hf_status search_damaged(hf_op *op, hf_stuck_search *s)
{
    hf_arena arena;
    int64_t before = INT64_MAX;
    bool goes_on = true;
    hf_status status = HF_OK;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    while (status == HF_OK && goes_on) {
        hf_pb_admin_runs page = {0};
        hf_arena_reset(&arena);
        status = hf_owner_page(op, s->target->path, before, OWNER_PAGE, &arena, &page);
        for (size_t i = 0; status == HF_OK && i < page.runs.count; i++) {
            char error[HF_STUCK_ERROR_MAX];
            before = page.runs.items[i].number;
            if (page.runs.items[i].damage.len > 0) {
                (void)snprintf(error, sizeof error, "%.*s", HF_STR_ARGS(page.runs.items[i].damage));
                tell_damaged(s, before, error);
            }
        }
        goes_on = page.runs.count > 0;
    }
    hf_arena_deinit(&arena);
    return status;
}

hf_status hf_stuck_find(hf_op *op, hf_stuck_search *s, hf_tool_source *source)
{
    s->looked = s->count = s->waiting = s->queue_count = 0;
    if (s->target->kind == HF_TARGET_REST) {
        return search_file(op, s, source);
    }
    HF_TRY(search_asked(op, s));
    return s->target->kind == HF_TARGET_OWNED && s->looked_max == 0 ? search_damaged(op, s) : HF_OK;
}

/* ---- list --stuck ----------------------------------------------------------------------------------------------------------------------- */

static const hf_column COLUMNS[] = {{"ID", 24, 8}, {"TYPE", 16, 6}, {"WHY", 52, 20}, {"WHAT HELPS", 60, 30}};

typedef struct listing {
    hf_buf text; /* some lines, or all of the JSON */
    hf_grid table;
    hf_json writer;
} listing;

static void show(hf_stuck_search *s, const hf_stuck *stuck)
{
    listing *l = s->arg;
    if (s->args->json) {
        hf_stuck_put_json(&l->writer, stuck);
        return;
    }
    hf_progress(NULL);
    l->text.len = 0;
    if (s->count == 1) {
        hf_grid_title(&l->table);
    }
    hf_grid_cell(&l->table, stuck->workflow_id, HF_TONE_PLAIN);
    hf_grid_cell(&l->table, stuck->type, HF_TONE_PLAIN);
    hf_grid_cell(&l->table, hf_str_of(stuck->why), HF_TONE_BAD);
    hf_grid_cell(&l->table, hf_str_of(stuck->help), HF_TONE_PLAIN);
    hf_grid_end(&l->table);
    if (stuck->error[0] != '\0') {
        hf_buf_puts(&l->text, "    ");
        (void)hf_put_text(&l->text, hf_str_of(stuck->error), SIZE_MAX);
        hf_buf_putc(&l->text, '\n');
    }
    (void)fputs(hf_buf_text(&l->text), stdout);
}

int hf_list_stuck(const hf_tool_args *args)
{
    static hf_stuck_search s; /* it is large */
    listing l = {.text = {0}};
    hf_tool_target target;
    hf_tool_source source;
    hf_op op;
    hf_op_init(&op);
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE) {
        code = target.kind == HF_TARGET_REST ? hf_source_open_still(&source, target.path) : hf_target_reach(&target);
    }
    if (code != HF_EXIT_FINE) {
        return code;
    }
    s = (hf_stuck_search){.args = args, .target = &target, .visit = show, .arg = &l};
    hf_buf_init(&l.text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_json_init(&l.writer, &l.text);
    hf_grid_init(&l.table, COLUMNS, HF_COUNT_OF(COLUMNS), hf_screen_width(), &l.text);
    if (args->json) {
        hf_json_array(&l.writer);
    }
    hf_status status = hf_stuck_find(&op, &s, &source);
    if (target.kind == HF_TARGET_REST) {
        hf_source_close(&source);
    }
    if (status == HF_OK && args->json) {
        hf_json_end(&l.writer);
        (void)printf("%s\n", hf_buf_text(&l.text));
    } else if (status == HF_OK && s.count == 0) {
        (void)printf("%s: no run is stuck\n", args->words[0]);
    }
    if (status == HF_OK && s.waiting > 0) {
        (void)hf_complain(0, "%llu %s on, but no program has %s open: start its worker", (unsigned long long)s.waiting,
                          s.waiting == 1 ? "run could go" : "runs could go", args->words[0]);
    }
    hf_buf_deinit(&l.text);
    code = status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", hf_reason_of(op.message));
    return hf_target_close(&target, code);
}
