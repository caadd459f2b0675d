/* holdfast delete, batch, namespace delete: what ends or changes runs.
 *
 * These open a file at rest as a program does, or ask the program that has it open, or a server. A batch and the deletion of a namespace go on in the background of whatever process has the file open;
 * here that is this process, so it stays until they are over and tells how far they are. Interrupted, they go on when the file is opened
 * again. */
#include "main/report.h"
#include "main/target.h"

#include "inspect/find.h"
#include "service/batch_kind.h"
#include "service/call.h"
#include "wire/time_text.h"

#include <holdfast/batch.h>
#include <holdfast/list.h>
#include <holdfast/scope.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 1000 }; /* of a batch */

static const struct {
    const char *name;
    hf_batch_kind kind;
} KINDS[] = {
    {"terminate", HF_BATCH_TERMINATE},
    {"cancel", HF_BATCH_CANCEL},
    {"signal", HF_BATCH_SIGNAL},
    {"delete", HF_BATCH_DELETE},
    {"reset", HF_BATCH_RESET},
    {"unpause-activities", HF_BATCH_UNPAUSE_ACTIVITIES},
    {"reset-activities", HF_BATCH_RESET_ACTIVITIES},
    {"activity-options", HF_BATCH_ACTIVITY_OPTIONS},
};

static const char *kind_name(int32_t kind)
{
    for (size_t i = 0; i < HF_COUNT_OF(KINDS); i++) {
        if ((int32_t)KINDS[i].kind == kind) {
            return KINDS[i].name;
        }
    }
    return "options";
}

/* ---- delete ------------------------------------------------------------------------------------------------------------ */

int hf_cmd_delete(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    if (args->all && args->run != NULL) {
        return hf_complain(HF_EXIT_USAGE, "give either --run or --all");
    }
    hf_wait_begin(args->all ? "deleting all runs of" : "deleting", args->words[1]); /* older runs are changed, too */
    hf_service *service = hf_change_open(args, &code);
    if (service != NULL) {
        hf_execution *execution = NULL;
        hf_status status =
            hf_execution_new(service, args->words[1], &execution, .namespace_ = args->namespace_, .run_id = args->run);
        if (status == HF_OK) {
            status = hf_delete(execution, .all_runs = args->all);
        }
        hf_execution_free(execution);
        code = hf_change_close(service, status);
    }
    hf_wait_end();
    return service != NULL ? hf_put_done(args, "workflowId", code) : code;
}

/* ---- batch ------------------------------------------------------------------------------------------------------------- */

/* Waits until the batch is over. */
static hf_status await(hf_service *service, const hf_tool_args *args, hf_batch_info *ret_info)
{
    for (;;) {
        HF_TRY(hf_batch_describe(service, args->words[1], ret_info, .namespace_ = args->namespace_));
        if (ret_info->state != HF_BATCH_RUNNING) {
            hf_progress(NULL);
            return HF_OK;
        }
        hf_progress("%lld of %lld runs", (long long)(ret_info->complete + ret_info->failed),
                    (long long)ret_info->total);
        HF_TRY(hf_sleep(hf_milliseconds(100)));
    }
}

/* ---- What reads -------------------------------------------------------------------------------------------------------- */

/* A batch, as a file or a service tells it. */
typedef struct row {
    hf_str id;
    int32_t kind;
    const char *state;
    int64_t total;
    int64_t complete;
    int64_t failed;
    hf_str reason;
    hf_str query;
    hf_str why;
    bool is_damaged; /* all but the first three is unknown */
} row;

typedef struct listing {
    const hf_tool_args *args;
    const char *id; /* only this one; NULL = all */
    hf_service *service;
    hf_report report;
    hf_buf text; /* one line */
    size_t count;
    int code;
} listing;

static void put_json(hf_json *writer, const row *r)
{
    hf_json_object(writer);
    hf_put_key(writer, "id", r->id);
    hf_json_key_string(writer, "kind", kind_name(r->kind));
    hf_json_key_string(writer, "state", r->state);
    hf_json_key_int(writer, "total", r->total);
    hf_json_key_int(writer, "complete", r->complete);
    hf_json_key_int(writer, "failed", r->failed);
    hf_put_key(writer, "reason", r->reason);
    hf_put_key(writer, "query", r->query);
    hf_put_key(writer, "why", r->why);
    hf_json_end(writer);
}

static void put_row(listing *l, const row *r)
{
    l->count++;
    if (l->args->json) {
        put_json(&l->report.writer, r);
        return;
    }
    l->text.len = 0;
    (void)hf_put_text(&l->text, r->id, 100);
    hf_buf_putf(&l->text, "  %s  %s", kind_name(r->kind), r->state);
    if (r->is_damaged) {
        hf_buf_puts(&l->text, "  (its record is damaged)");
    } else {
        hf_buf_putf(&l->text, "  %lld of %lld runs, %lld refused", (long long)r->complete, (long long)r->total,
                    (long long)r->failed);
    }
    if (r->why.len > 0) {
        hf_buf_puts(&l->text, ": ");
        (void)hf_put_text(&l->text, r->why, 300);
    }
    (void)printf("%s\n", hf_buf_text(&l->text));
}

/* One of the runs that refused it. */
static void put_refusal(listing *l, hf_str id, hf_str message)
{
    if (l->id == NULL || l->args->json) {
        return;
    }
    l->text.len = 0;
    (void)hf_put_text(&l->text, id, 100);
    hf_buf_puts(&l->text, ": ");
    (void)hf_put_text(&l->text, message, 300);
    (void)printf("  %s\n", hf_buf_text(&l->text));
}

/* ---- From a file ---- */

static void visit_record(void *arg, const hf_pb_operation_record *record,
                         const hf_pb_start_batch_operation_request *request, const hf_pb_operation_progress *progress)
{
    listing *l = arg;
    if (l->id != NULL && !hf_str_equal(record->job_id, hf_str_of(l->id))) {
        return;
    }
    row r = {.id = record->job_id,
             .kind = record->type,
             .state = hf_find_operation_state(record),
             .is_damaged = request == NULL || progress == NULL};
    if (!r.is_damaged) {
        r.total = progress->total;
        r.complete = progress->complete;
        r.failed = progress->failed;
        r.reason = request->reason;
        r.query = request->visibility_query;
        r.why = progress->why;
    }
    put_row(l, &r);
    for (size_t i = 0; !r.is_damaged && i < progress->failures.count; i++) {
        put_refusal(l, progress->failures.items[i].workflow_id, progress->failures.items[i].message);
    }
}

static int read_batches(const hf_tool_target *target, listing *l)
{
    hf_op op;
    hf_tool_source source;
    hf_look *look = NULL;
    int code = hf_source_open_still(&source, target->path);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_op_init(&op);
    hf_allocator memory = hf_env_memory(source.env);
    hf_status status = hf_look_open(&op, memory, source.peek.store, &look);
    if (status == HF_OK) {
        status =
            hf_find_operations(&op, look, source.peek.store, memory, hf_str_of(l->args->namespace_), visit_record, l);
    }
    bool has_namespace = true;
    if (status == HF_OK && l->count == 0) {
        status = hf_find_namespace_of(&op, source.peek.store, memory, hf_str_of(l->args->namespace_), &has_namespace,
                                      hf_progress_runs);
        hf_progress(NULL);
    }
    code = status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", op.message);
    if (!has_namespace) {
        code = hf_no_namespace(l->args->namespace_);
    } else if (status == HF_OK && l->id != NULL && l->count == 0) {
        code = hf_complain(HF_EXIT_NOT_FOUND, "there is no batch operation '%s' in the namespace '%s'", l->id,
                           l->args->namespace_);
    }
    hf_look_close(look);
    hf_source_close(&source);
    return code;
}

/* ---- From the program that has the file open, or from a server ---- */

static int ask_batch(listing *l, const char *id)
{
    static const char *const STATES[] = {"", "Running", "Completed", "Failed"};
    hf_op op;
    hf_arena arena;
    hf_call call;
    hf_pb_describe_batch_operation_request request = {.namespace = hf_str_of(l->args->namespace_),
                                                      .job_id = hf_str_of(id)};
    hf_op_init(&op);
    hf_arena_init(&arena, l->text.memory);
    hf_call_init(&call, HF_METHOD_DESCRIBE_BATCH_OPERATION, &request, &arena, NULL);
    call.verb = "batch";
    hf_status status = hf_service_ask(&op, l->service, &call);
    if (status == HF_OK) {
        const hf_pb_describe_batch_operation_response *from = call.response;
        bool has_refusals = from->holdfast_failures.count > 0;
        put_row(l, &(row){.id = hf_str_of(id),
                          .kind = hf_batch_kind_of(from->operation_type),
                          .state = (size_t)from->state < HF_COUNT_OF(STATES) ? STATES[from->state] : "",
                          .total = from->total_operation_count,
                          .complete = from->complete_operation_count,
                          .failed = from->failure_operation_count,
                          .reason = from->reason,
                          .query = from->query,
                          .why = from->holdfast_end_reason.len == 0 && has_refusals
                                     ? from->holdfast_failures.items[0].message
                                     : from->holdfast_end_reason});
        for (size_t i = 0; i < from->holdfast_failures.count; i++) {
            const hf_pb_workflow_execution *run = from->holdfast_failures.items[i].execution;
            put_refusal(l, run != NULL ? run->workflow_id : HF_STR(""), from->holdfast_failures.items[i].message);
        }
    }
    hf_arena_deinit(&arena);
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(hf_exit_of(status), "%s", hf_reason_of(op.message));
}

static bool visit_info(void *arg, const hf_batch_info *info)
{
    listing *l = arg;
    l->code = ask_batch(l, info->id);
    return l->code == HF_EXIT_FINE;
}

static int ask_batches(listing *l)
{
    if (l->id != NULL) {
        return ask_batch(l, l->id);
    }
    int code = hf_told(hf_batch_list(l->service, visit_info, l, .namespace_ = l->args->namespace_));
    return code == HF_EXIT_FINE ? l->code : code;
}

/* ---- The commands ---- */

/* Of a target that is open, or of a file at rest. */
static int show_batches(const hf_tool_target *target, const hf_tool_args *args, const char *id)
{
    listing l = {.args = args, .id = id, .service = target->service};
    hf_report_init(&l.report);
    hf_buf_init(&l.text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    if (id == NULL) {
        hf_json_array(&l.report.writer);
    }
    int code = target->service != NULL ? ask_batches(&l) : read_batches(target, &l);
    if (id == NULL) {
        hf_json_end(&l.report.writer);
    }
    if (code == HF_EXIT_FINE && !args->json && l.count == 0) {
        (void)printf("%s: no batches\n", args->words[0]);
    }
    hf_buf_deinit(&l.text);
    return hf_report_end(&l.report, args->json, code);
}

/* What a batch has come to. */
static int told(const hf_tool_target *target, const hf_tool_args *args, const hf_batch_info *info, int code)
{
    if (code == HF_EXIT_FINE && args->json) {
        code = show_batches(target, args, args->words[1]);
    } else if (code == HF_EXIT_FINE) {
        (void)printf("%lld of %lld runs, %lld refused%s%s\n", (long long)info->complete, (long long)info->total,
                     (long long)info->failed, info->why[0] != '\0' ? ": " : "", info->why);
    }
    return code == HF_EXIT_FINE && (info->state != HF_BATCH_COMPLETED || info->failed > 0) ? HF_EXIT_DAMAGED : code;
}

/* ---- A list of workflows ---- */

/* From --id and --ids: ids, and for each a run or NULL. */
typedef struct chosen {
    char *text; /* of --ids; the lines are parted in place */
    const char **ids;
    const char **runs;
    size_t count;
} chosen;

static void chosen_free(chosen *list)
{
    free(list->text);
    free(list->ids);
    free(list->runs);
}

/* One line: an id, and perhaps a tab and the id of a run. An empty one is nothing. */
static void take_line(chosen *list, char *line)
{
    size_t len = strlen(line);
    if (len > 0 && line[len - 1] == '\r') {
        line[len - 1] = '\0';
    }
    char *tab = strchr(line, '\t');
    if (tab != NULL) {
        *tab = '\0';
    }
    if (line[0] != '\0') {
        list->ids[list->count] = line;
        list->runs[list->count++] = tab != NULL ? tab + 1 : NULL;
    }
}

/* False: it was told why. */
static bool take_list(const hf_tool_args *args, chosen *list)
{
    size_t len = 0;
    size_t max = args->each_count + 1;
    if (args->ids != NULL && args->ids[0] != '@' && strcmp(args->ids, "-") != 0) {
        (void)hf_complain(0, "--ids %s: write @FILE, or - for stdin; it has an id in each line", args->ids);
        return false;
    }
    if (args->ids != NULL) {
        list->text = hf_read_all(args->ids[0] == '@' ? args->ids + 1 : args->ids, &len);
        if (list->text == NULL) {
            return false;
        }
        if (memchr(list->text, '\0', len) != NULL) {
            (void)hf_complain(0, "--ids %s: it has a byte of 0", args->ids);
            return false;
        }
        for (size_t i = 0; i < len; i++) {
            max += list->text[i] == '\n' ? 1 : 0;
        }
    }
    list->ids = calloc(max, sizeof *list->ids);
    list->runs = calloc(max, sizeof *list->runs);
    if (list->ids == NULL || list->runs == NULL) {
        (void)hf_complain(0, "no memory for the ids");
        return false;
    }
    for (size_t i = 0; i < args->each_count; i++) {
        list->ids[list->count++] = args->each[i];
    }
    char *at = list->text;
    for (char *next = NULL; at != NULL; at = next) {
        next = strchr(at, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        take_line(list, at);
    }
    hf_assert(list->count <= max);
    return true;
}

/* A query or a list, and not both: else nobody could say what was meant. */
static bool take_which(const hf_tool_args *args, chosen *list)
{
    bool has_list = args->each_count > 0 || args->ids != NULL;
    if (has_list == (args->word_count > 3)) {
        (void)hf_complain(0, "give a query, or ids with --id or --ids, and not both");
        return false;
    }
    if (has_list && !take_list(args, list)) {
        return false;
    }
    if (has_list && list->count == 0) {
        (void)hf_complain(0, "--ids %s has no ids", args->ids);
        return false;
    }
    if (list->count > IDS_MAX) {
        (void)hf_complain(0, "there are %zu ids, and a batch takes at most %d: use a query, or more batches",
                          list->count, IDS_MAX);
        return false;
    }
    if (!has_list && args->words[3][0] == '\0') {
        (void)hf_complain(0, "the query is empty, which would be all runs: \"StartTime IS NOT NULL\" says that");
        return false;
    }
    return true;
}

/* What else a kind needs, in the words of the command line. */
static bool has_options(const hf_tool_args *args, hf_batch_kind kind)
{
    bool changes = args->start_to_close != NULL || args->schedule_to_close != NULL || args->heartbeat != NULL ||
                   args->attempts != NULL;
    if (kind == HF_BATCH_SIGNAL && (args->signal == NULL || args->signal[0] == '\0')) {
        (void)hf_complain(0, "a batch of signals needs --signal NAME");
        return false;
    }
    if (kind == HF_BATCH_ACTIVITY_OPTIONS && changes == args->original) {
        (void)hf_complain(0,
                          "activity-options needs --start-to-close, --schedule-to-close, --heartbeat or --attempts, or "
                          "--original without these");
        return false;
    }
    return true;
}

/* ---- Options of activities ---- */

/* 0 = it was not given. */
typedef struct limits {
    hf_span start_to_close, schedule_to_close, heartbeat;
    int attempts;
} limits;

static bool take_limit(const char *option, const char *word, hf_span *ret_span)
{
    int64_t ns = 0;
    if (word == NULL) {
        return true;
    }
    if (!hf_retention_parse(hf_str_of(word), &ns)) {
        (void)hf_complain(0, "%s %s is not a span: write it like 45s, 90m, 12h or 30d; 0 is none", option, word);
        return false;
    }
    *ret_span = ns > 0 ? hf_nanoseconds(ns) : HF_SPAN_UNLIMITED;
    return true;
}

static bool take_limits(const hf_tool_args *args, limits *ret_limits)
{
    char *end = NULL;
    *ret_limits = (limits){.attempts = 0};
    if (args->attempts != NULL) {
        long number = strtol(args->attempts, &end, 10);
        if (end == args->attempts || *end != '\0' || number < 0 || number > 1000000) {
            (void)hf_complain(0, "--attempts %s is not a number of attempts; 0 is no limit", args->attempts);
            return false;
        }
        ret_limits->attempts = number > 0 ? (int)number : HF_UNLIMITED;
    }
    return take_limit("--start-to-close", args->start_to_close, &ret_limits->start_to_close) &&
           take_limit("--schedule-to-close", args->schedule_to_close, &ret_limits->schedule_to_close) &&
           take_limit("--heartbeat", args->heartbeat, &ret_limits->heartbeat);
}

static int start_batch(const hf_tool_args *args, hf_batch_kind kind, double rate, const chosen *list, hf_payload input)
{
    limits given;
    if (!take_limits(args, &given)) {
        return HF_EXIT_USAGE;
    }
    hf_tool_target target;
    int code = hf_target_open(&target, args);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_batch_info info = {0};
    hf_status status = hf_batch_start(
        target.service, args->words[1], kind, .query = args->word_count > 3 ? args->words[3] : NULL, .ids = list->ids,
        .run_ids = list->runs, .id_count = list->count, .rate = rate, .reason = args->reason, .signal = args->signal,
        .input = input, .namespace_ = args->namespace_, .activity_type = args->activity_type,
        .start_to_close = given.start_to_close, .schedule_to_close = given.schedule_to_close,
        .heartbeat = given.heartbeat, .attempts_max = given.attempts, .original = args->original);
    if (status == HF_OK) {
        status = await(target.service, args, &info);
    }
    return hf_target_close(&target, told(&target, args, &info, hf_told(status)));
}

int hf_cmd_batch_start(const hf_tool_args *args)
{
    size_t kind = 0;
    char *end = NULL;
    double rate = args->rate != NULL ? strtod(args->rate, &end) : 0;
    while (kind < HF_COUNT_OF(KINDS) && strcmp(KINDS[kind].name, args->words[2]) != 0) {
        kind++;
    }
    if (kind == HF_COUNT_OF(KINDS)) {
        return hf_complain(HF_EXIT_USAGE,
                           "%s is not a kind: terminate, cancel, signal, delete, reset, unpause-activities, "
                           "reset-activities or activity-options",
                           args->words[2]);
    }
    if (end != NULL && (*end != '\0' || end == args->rate || !(rate > 0) || rate >= 1e9)) {
        return hf_complain(HF_EXIT_USAGE, "--rate %s is not a number of runs a second", args->rate);
    }
    chosen list = {0};
    hf_input input = {0};
    bool is_fine = take_which(args, &list) && has_options(args, KINDS[kind].kind) && hf_input_read(args->input, &input);
    int code = is_fine ? start_batch(args, KINDS[kind].kind, rate, &list, input.payload) : HF_EXIT_USAGE;
    hf_input_free(&input);
    chosen_free(&list);
    return code;
}

int hf_cmd_batch_stop(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    hf_service *service = hf_change_open(args, &code);
    return service == NULL
               ? code
               : hf_put_done(args, "id",
                             hf_change_close(service, hf_batch_stop(service, args->words[1], .reason = args->reason,
                                                                    .namespace_ = args->namespace_)));
}

static int show_target(const hf_tool_args *args, const char *id)
{
    hf_tool_target target;
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE && target.kind != HF_TARGET_REST) {
        code = hf_target_reach(&target);
    }
    return code == HF_EXIT_FINE ? hf_target_close(&target, show_batches(&target, args, id)) : code;
}

int hf_cmd_batch_show(const hf_tool_args *args)
{
    return show_target(args, args->words[1]);
}

int hf_cmd_batch_list(const hf_tool_args *args)
{
    return show_target(args, NULL);
}

/* ---- namespace delete -------------------------------------------------------------------------------------------------- */

/* Whether the file still has it. */
static int is_left(const hf_tool_args *args, bool *ret_is_left)
{
    hf_tool_source source;
    int code = hf_source_open_still(&source, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_op op;
    hf_op_init(&op);
    hf_status status = hf_find_namespace_of(&op, source.peek.store, hf_env_memory(source.env),
                                            hf_str_of(args->words[1]), ret_is_left, hf_progress_runs);
    hf_source_close(&source);
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
}

/* A program that has the file open, or a server, goes on by itself. */
static int delete_there(hf_tool_target *target, const hf_tool_args *args)
{
    int code = hf_target_reach(target);
    return code == HF_EXIT_FINE
               ? hf_put_done(args, "name",
                             hf_target_close(target, hf_told(hf_namespace_delete(target->service, args->words[1]))))
               : code;
}

int hf_cmd_namespace_delete(const hf_tool_args *args)
{
    hf_tool_target target;
    int code = hf_target_find(&target, args);
    if (code != HF_EXIT_FINE || target.kind != HF_TARGET_REST) {
        return code != HF_EXIT_FINE ? code : delete_there(&target, args);
    }
    int64_t pause = 50; /* ms */
    bool goes_on = true;
    for (bool is_first = true; goes_on && code == HF_EXIT_FINE; is_first = false) {
        hf_service *service = hf_change_open(args, &code);
        if (service == NULL) {
            return code;
        }
        hf_status status = is_first ? hf_namespace_delete(service, args->words[1]) : HF_OK;
        if (status == HF_OK) {
            status = hf_sleep(hf_milliseconds(pause)); /* meanwhile its runs go */
        }
        code = hf_change_close(service, status);
        code = code == HF_EXIT_FINE ? is_left(args, &goes_on) : code;
        if (pause >= 1000) {
            hf_progress("deleting the runs of %s", args->words[1]);
        }
        pause = pause < 2000 ? 2 * pause : pause;
    }
    hf_progress(NULL);
    return hf_put_done(args, "name", code);
}
