/* holdfast show, holdfast db export: read runs from a file at rest, from the program that has it open, or from a server. */
#include "main/report.h"
#include "main/stuck.h"

#include "history/history.h"
#include "service/call.h"

#include <holdfast/stream.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef hf_shown shown;

void hf_shown_init(hf_shown *s)
{
    hf_env *env = hf_env_posix();
    *s = (shown){0};
    hf_buf_init(&s->history, hf_env_memory(env), SIZE_MAX / 4);
    hf_buf_init(&s->description, hf_env_memory(env), SIZE_MAX / 4);
    hf_buf_init(&s->insight, hf_env_memory(env), SIZE_MAX / 4);
    hf_arena_init(&s->arena, hf_env_memory(env));
}

void hf_shown_deinit(hf_shown *s)
{
    hf_buf_deinit(&s->history);
    hf_buf_deinit(&s->description);
    hf_buf_deinit(&s->insight);
    hf_arena_deinit(&s->arena);
}

/* Fills in s->view from a description by the file or by its owner. */
static hf_status view_run(hf_op *op, hf_str namespace_, const hf_pb_describe_workflow_execution_response *description,
                          shown *s)
{
    const hf_pb_workflow_execution_info *info = description->workflow_execution_info;
    const hf_pb_pending_workflow_task_info *task = description->pending_workflow_task;
    if (info == NULL || info->execution == NULL) {
        return hf_fail(op, HF_ERR_INVALID, "the description of the run names no execution");
    }
    s->view = (hf_run_view){
        .namespace_ = namespace_,
        .workflow_id = info->execution->workflow_id,
        .run_id = info->execution->run_id,
        .queue = info->task_queue,
        .status = info->status,
        .history = hf_str_of_len(s->history.data, s->history.len),
        .pending = description->pending_activities.items,
        .pending_count = description->pending_activities.count,
        .children = description->pending_children.items,
        .child_count = description->pending_children.count,
        .buffered_count = task != NULL ? task->holdfast_buffered : 0,
        .crashes = task != NULL ? task->holdfast_crashes : 0,
        .task_waits = task != NULL && task->state == HF_PENDING_WORKFLOW_TASK_STATE_SCHEDULED,
        .pause_until = task != NULL ? hf_pb_timestamp_time(task->holdfast_pause_until).ns : 0,
    };
    return HF_OK;
}

/* ---- From a file ------------------------------------------------------------------------------------------------------ */

static hf_status take_run(hf_op *op, hf_look *look, int64_t number, shown *s)
{
    hf_str namespace_ = {0};
    hf_pb_describe_workflow_execution_response description;
    HF_TRY(hf_look_describe(op, look, number, &s->arena, &s->history, &namespace_, &description));
    return view_run(op, namespace_, &description, s);
}

static hf_status take_from_file(hf_op *op, hf_tool_source *source, const hf_tool_args *args, const char *what, shown *s)
{
    hf_look *look = NULL;
    HF_TRY(hf_look_open(op, hf_env_memory(source->env), source->peek.store, &look));
    int64_t number = 0;
    hf_status status = hf_look_find(op, look, hf_str_of(args->namespace_), hf_str_of(what), &number);
    if (status == HF_OK) {
        status = take_run(op, look, number, s);
    }
    hf_look_close(look);
    return status;
}

/* ---- From its owner --------------------------------------------------------------------------------------------------- */

static void on_chunk(void *state, hf_str kind, hf_str chunk)
{
    shown *s = state;
    if (hf_str_equal(kind, HF_STR("history"))) {
        hf_buf_put(&s->history, chunk.data, chunk.len);
    } else if (hf_str_equal(kind, HF_STR("description"))) {
        hf_buf_put(&s->description, chunk.data, chunk.len);
    } else if (hf_str_equal(kind, HF_STR("insight"))) {
        hf_buf_put(&s->insight, chunk.data, chunk.len);
    }
}

static hf_status take_from_owner(hf_op *op, hf_tool_source *source, const hf_tool_args *args, const char *what,
                                 shown *s)
{
    const char *words[] = {args->namespace_, what};
    HF_TRY(hf_admin_ask(op, source->env, source->path, "show", words, 2, on_chunk, s));
    hf_pb_describe_workflow_execution_response *response =
        HF_ARENA_NEW(&s->arena, hf_pb_describe_workflow_execution_response);
    hf_pb_admin_insight *insight = HF_ARENA_NEW(&s->arena, hf_pb_admin_insight);
    if (response == NULL || insight == NULL || s->history.status != HF_OK || s->description.status != HF_OK ||
        s->insight.status != HF_OK) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a run");
    }
    HF_TRY(hf_pb_decode(op, &hf_pb_admin_insight_type, hf_str_of_len(s->insight.data, s->insight.len), &s->arena,
                        insight));
    HF_TRY(hf_pb_decode(op, &hf_pb_describe_workflow_execution_response_type,
                        hf_str_of_len(s->description.data, s->description.len), &s->arena, response));
    HF_TRY(view_run(op, hf_str_of(args->namespace_), response, s));
    s->view.insight = s->insight.len > 0 ? insight : NULL;
    return HF_OK;
}

/* ---- From a server -------------------------------------------------------------------------------------------------------- */

static hf_status describe(hf_op *op, hf_service *service, const char *namespace_, const char *id, const char *run_id,
                          hf_arena *arena, hf_pb_describe_workflow_execution_response **ret_description)
{
    hf_call call;
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id),
                                          .run_id = hf_str_of(run_id != NULL ? run_id : "")};
    hf_pb_describe_workflow_execution_request request = {.namespace = hf_str_of(namespace_), .execution = &execution};
    hf_call_init(&call, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, arena, NULL);
    call.verb = "show";
    call.workflow_id = hf_str_of(id);
    HF_TRY(hf_service_ask(op, service, &call));
    *ret_description = call.response;
    return HF_OK;
}

/* All pages are of one run, also if a new run of the workflow starts meanwhile. */
static hf_status read_history(hf_op *op, hf_service *service, const char *namespace_,
                              const hf_pb_workflow_execution *run, hf_buf *out)
{
    hf_execution *execution = NULL;
    hf_payload bytes = hf_payload_none();
    hf_buf names;
    hf_buf_init(&names, out->memory, SIZE_MAX / 4);
    hf_buf_put(&names, run->workflow_id.data, run->workflow_id.len);
    hf_buf_putc(&names, '\0');
    size_t at = names.len;
    hf_buf_put(&names, run->run_id.data, run->run_id.len);
    hf_status status = hf_execution_new(service, hf_buf_text(&names), &execution, .run_id = hf_buf_text(&names) + at,
                                        .namespace_ = namespace_);
    status = status == HF_OK ? hf_history(execution, &bytes, .as_bytes = true) : status;
    hf_buf_put(out, bytes.data, status == HF_OK ? bytes.len : 0);
    hf_payload_free(&bytes);
    hf_execution_free(execution);
    hf_buf_deinit(&names);
    return status == HF_OK ? HF_OK : hf_fail(op, status, "%s", hf_error_text());
}

/* The same words, whoever has looked. */
static int tell_failure(const hf_tool_args *args, const char *what, hf_status status, const hf_op *op)
{
    if (status == HF_ERR_NOT_FOUND) {
        return hf_complain(HF_EXIT_NOT_FOUND, "there is no workflow and no run \"%s\" in the namespace \"%s\"", what,
                           args->namespace_);
    }
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", hf_reason_of(op->message));
}

static int take_asked(hf_tool_target *target, const hf_tool_args *args, const char *what, const char *run_id, shown *s)
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_describe_workflow_execution_response *description = NULL;
    int code = hf_target_reach(target);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status = describe(&op, target->service, args->namespace_, what, run_id, &s->arena, &description);
    if (status == HF_OK &&
        (description->workflow_execution_info == NULL || description->workflow_execution_info->execution == NULL)) {
        status = hf_fail(&op, HF_ERR_INVALID, "the description of the run names no execution");
    }
    if (status == HF_OK) {
        status = read_history(&op, target->service, args->namespace_, description->workflow_execution_info->execution,
                              &s->history);
    }
    status = status == HF_OK ? view_run(&op, hf_str_of(args->namespace_), description, s) : status;
    return hf_target_close(target, tell_failure(args, what, status, &op));
}

/* ---- From wherever it is ------------------------------------------------------------------------------------------------------ */

static int take_still(const char *path, const hf_tool_args *args, const char *what, shown *s)
{
    hf_tool_source source;
    hf_op op;
    hf_op_init(&op);
    int code = hf_source_open_still(&source, path);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status = take_from_file(&op, &source, args, what, s);
    hf_source_close(&source);
    return tell_failure(args, what, status, &op);
}

/* An owner finds workflows by their ids only; to find a run by its id, a copy is searched. */
int hf_shown_take(const hf_tool_args *args, const char *what, const char *run_id, hf_shown *s)
{
    hf_tool_target target;
    hf_op op;
    hf_op_init(&op);
    int code = hf_target_find(&target, args);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    s->view.is_at_rest = false;
    if (target.kind == HF_TARGET_SERVER || (target.kind == HF_TARGET_OWNED && run_id != NULL)) {
        return take_asked(&target, args, what, run_id, s);
    }
    if (target.kind == HF_TARGET_REST) {
        code = take_still(target.path, args, run_id != NULL ? run_id : what, s);
        s->view.is_at_rest = true;
        return code;
    }
    hf_tool_source source = {.env = hf_env_posix(), .path = target.path};
    hf_status status = take_from_owner(&op, &source, args, what, s);
    if (status == HF_ERR_NOT_FOUND) {
        return take_still(target.path, args, what, s);
    }
    return tell_failure(args, what, status, &op);
}

/* Whether somebody polls the queues on which it waits: known to the program that has the file open, and to a server. What cannot be found out
 * is not told. */
static void find_pollers(const hf_tool_args *args, int64_t now_ns, shown *s)
{
    hf_tool_target target;
    const hf_run_view *view = &s->view;
    bool *unpolled = HF_ARENA_ARRAY(&s->arena, bool, view->pending_count + 1);
    bool any = view->task_waits;
    for (size_t i = 0; i < view->pending_count; i++) {
        any |= hf_pending_queue(&view->pending[i], now_ns).len > 0;
    }
    if (!any || unpolled == NULL || view->is_at_rest || view->status != HF_WORKFLOW_EXECUTION_STATUS_RUNNING ||
        hf_target_find(&target, args) != HF_EXIT_FINE || target.kind == HF_TARGET_REST ||
        hf_target_reach(&target) != HF_EXIT_FINE) {
        return;
    }
    s->view.is_unpolled =
        view->task_waits && !hf_queue_is_polled(target.service, args->namespace_, view->queue, false, &s->arena);
    for (size_t i = 0; i < view->pending_count; i++) {
        hf_str queue = hf_pending_queue(&view->pending[i], now_ns);
        unpolled[i] = queue.len > 0 && !hf_queue_is_polled(target.service, args->namespace_, queue, true, &s->arena);
    }
    s->view.unpolled = unpolled;
    (void)hf_target_close(&target, HF_EXIT_FINE);
}

/* ---- show ------------------------------------------------------------------------------------------------------------- */

static int print_json(FILE *to, const shown *s, bool readable)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf text;
    hf_buf_init(&text, s->history.memory, SIZE_MAX / 4);
    hf_status status = hf_history_to_json(&op, s->view.history, readable, &text);
    if (status == HF_OK) {
        (void)fprintf(to, "%s\n", hf_buf_text(&text));
    }
    hf_buf_deinit(&text);
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
}

int hf_cmd_show(const hf_tool_args *args)
{
    if (args->word_count == 1 && (args->full || args->follow)) {
        return hf_complain(HF_EXIT_USAGE, "%s needs a RUN", args->full ? "--full" : "--follow");
    }
    if (args->word_count == 1 &&
        (strncmp(args->words[0], "temporal://", 11) == 0 || strcmp(args->words[0], "@") == 0)) {
        return hf_cmd_list(args); /* a server tells no more */
    }
    if (args->word_count == 1) {
        return hf_list_runs(args);
    }
    if (args->all) {
        return hf_complain(HF_EXIT_USAGE, "give either a RUN or --all");
    }
    if (args->follow) {
        return hf_show_follow(args);
    }
    if (args->full && args->json) {
        return hf_complain(HF_EXIT_USAGE, "--json cuts nothing: leave --full out");
    }
    hf_env *env = hf_env_posix();
    shown s;
    hf_shown_init(&s);
    int code = hf_shown_take(args, args->words[1], NULL, &s);
    if (code == HF_EXIT_FINE && args->json) {
        code = print_json(stdout, &s, true);
    } else if (code == HF_EXIT_FINE) {
        hf_op op;
        hf_op_init(&op);
        hf_buf text;
        hf_buf_init(&text, hf_env_memory(env), SIZE_MAX / 4);
        s.view.is_full = args->full;
        int64_t now_ns = s.view.insight != NULL ? s.view.insight->now_ns : env->ops->wall_now(env).ns;
        find_pollers(args, now_ns, &s);
        hf_status status = hf_timeline_write(&op, &s.view, now_ns, &text);
        (void)fputs(hf_buf_text(&text), stdout);
        if (status != HF_OK) {
            code = hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
        }
        hf_buf_deinit(&text);
    }
    hf_shown_deinit(&s);
    return code;
}

/* ---- export ----------------------------------------------------------------------------------------------------------- */

/* The exit code of a file that cannot be made. */
static int exit_of_errno(void)
{
    return errno == EEXIST ? HF_EXIT_CONFLICT : errno == EACCES ? HF_EXIT_DENIED : HF_EXIT_CANNOT_OPEN;
}

/* To DIR/<run id>.json, or to stdout, one history per line. */
static int put_out(const char *folder, const shown *s)
{
    if (folder == NULL) {
        return print_json(stdout, s, false);
    }
    char path[HF_PATH_LEN_MAX];
    int len = snprintf(path, sizeof path, "%s/%.*s.json", folder, HF_STR_ARGS(s->view.run_id));
    if (len < 0 || (size_t)len >= sizeof path || memchr(s->view.run_id.data, '/', s->view.run_id.len) != NULL) {
        return hf_complain(HF_EXIT_DAMAGED, "the id of the run %.*s cannot be a file name, or the path is too long",
                           HF_STR_ARGS(s->view.run_id));
    }
    FILE *file = fopen(path, "wxe");
    if (file == NULL) {
        return hf_complain(exit_of_errno(), "cannot write %s: %s", path, strerror(errno));
    }
    int code = print_json(file, s, false);
    if (fclose(file) != 0 && code == HF_EXIT_FINE) {
        return hf_complain(HF_EXIT_DAMAGED, "cannot write %s: %s", path, strerror(errno));
    }
    return code;
}

/* How many there are in a folder. Without one the histories themselves were printed. */
static void tell_exported(const char *folder, bool is_json, uint64_t count)
{
    if (folder == NULL) {
        return;
    }
    if (!is_json) {
        (void)printf("%llu %s in %s\n", (unsigned long long)count, count == 1 ? "history" : "histories", folder);
        return;
    }
    hf_report report;
    hf_report_init(&report);
    hf_json_object(&report.writer);
    hf_json_key_string(&report.writer, "folder", folder);
    hf_json_key_uint(&report.writer, "histories", count);
    hf_json_end(&report.writer);
    (void)hf_report_end(&report, true, HF_EXIT_FINE);
}

static int export_all(hf_tool_source *source, const char *folder, bool is_json)
{
    hf_op op;
    hf_op_init(&op);
    hf_look *look = NULL;
    hf_status status = hf_look_open(&op, hf_env_memory(source->env), source->peek.store, &look);
    int64_t number = 0;
    uint64_t count = 0;
    uint64_t damaged = 0; /* reported and left out */
    int code = HF_EXIT_FINE;
    while (status == HF_OK && code == HF_EXIT_FINE) {
        status = hf_look_next(&op, look, number, &number);
        if (status != HF_OK || number == 0) {
            break;
        }
        shown s;
        hf_shown_init(&s);
        status = take_run(&op, look, number, &s);
        if (status == HF_OK) {
            code = put_out(folder, &s);
            count++;
        } else if (status == HF_ERR_INVALID || status == HF_ERR_NOT_FOUND) {
            (void)hf_complain(0, "%s", op.message);
            hf_op_init(&op);
            status = HF_OK;
            damaged++;
        } else if (status == HF_ERR_UNSUPPORTED) { /* an operation on many runs */
            hf_op_init(&op);
            status = HF_OK;
        }
        hf_shown_deinit(&s);
        hf_progress("%llu runs", (unsigned long long)count);
    }
    hf_progress(NULL);
    hf_look_close(look);
    if (status != HF_OK) {
        return hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
    }
    if (code == HF_EXIT_FINE) {
        tell_exported(folder, is_json, count);
    }
    if (damaged > 0) {
        return hf_complain(HF_EXIT_DAMAGED, "%llu %s damaged and left out", (unsigned long long)damaged,
                           damaged == 1 ? "run is" : "runs are");
    }
    return code;
}

int hf_cmd_export(const hf_tool_args *args)
{
    if (args->run != NULL && args->all) {
        return hf_complain(HF_EXIT_USAGE, "give either --run ID or --all");
    }
    const char *folder = args->out != NULL && strcmp(args->out, "-") != 0 ? args->out : NULL;
    if (folder != NULL && mkdir(folder, 0700) != 0 && errno != EEXIST) {
        return hf_complain(exit_of_errno(), "cannot make %s: %s", folder, strerror(errno));
    }
    if (args->run == NULL) {
        hf_tool_source source;
        int code = hf_source_open_still(&source, args->words[0]);
        if (code == HF_EXIT_FINE) {
            code = export_all(&source, folder, args->json);
            hf_source_close(&source);
        }
        return code;
    }
    shown s;
    hf_shown_init(&s);
    int code = hf_shown_take(args, args->run, NULL, &s);
    if (code == HF_EXIT_FINE) {
        code = put_out(folder, &s);
    }
    if (code == HF_EXIT_FINE && args->json) {
        tell_exported(folder, true, 1);
    }
    hf_shown_deinit(&s);
    return code;
}
