/* holdfast delete, batch, namespace delete: what ends or changes runs.
 *
 * These open a file at rest as a program does, or ask the program that has it open, or a server. A batch and the deletion of a namespace go on in the background of whatever process has the file open;
 * here that is this process, so it stays until they are over and tells how far they are. Interrupted, they go on when the file is opened
 * again. */
#include "main/target.h"

#include "base/json.h"
#include "inspect/find.h"
#include "wire/time_text.h"

#include <holdfast/batch.h>
#include <holdfast/list.h>
#include <holdfast/scope.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    hf_service *service = hf_change_open(args, &code);
    if (service == NULL) {
        return code;
    }
    hf_execution *execution = NULL;
    hf_status status =
        hf_execution_new(service, args->words[1], &execution, .namespace_ = args->namespace_, .run_id = args->run);
    if (status == HF_OK) {
        status = hf_delete(execution, .all_runs = args->all);
    }
    hf_execution_free(execution);
    return hf_change_close(service, status);
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

static int told(const hf_batch_info *info, int code)
{
    if (code != HF_EXIT_FINE) {
        return code;
    }
    (void)printf("%lld of %lld runs, %lld refused%s%s\n", (long long)info->complete, (long long)info->total,
                 (long long)info->failed, info->why[0] != '\0' ? ": " : "", info->why);
    return info->state == HF_BATCH_COMPLETED && info->failed == 0 ? HF_EXIT_FINE : HF_EXIT_DAMAGED;
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
                           "%s is not a kind: terminate, cancel, signal, delete, reset, unpause-activities or "
                           "reset-activities",
                           args->words[2]);
    }
    if (end != NULL && (*end != '\0' || end == args->rate || !(rate > 0))) {
        return hf_complain(HF_EXIT_USAGE, "--rate %s is not a number of runs a second", args->rate);
    }
    int code = HF_EXIT_FINE;
    hf_input input;
    if (!hf_input_read(args->input, &input)) {
        return HF_EXIT_USAGE;
    }
    hf_service *service = hf_change_open(args, &code);
    if (service == NULL) {
        hf_input_free(&input);
        return code;
    }
    hf_batch_info info = {0};
    hf_status status = hf_batch_start(service, args->words[1], KINDS[kind].kind, .query = args->words[3], .rate = rate,
                                      .reason = args->reason, .signal = args->signal, .input = input.payload,
                                      .namespace_ = args->namespace_);
    if (status == HF_OK) {
        status = await(service, args, &info);
    }
    hf_input_free(&input);
    return told(&info, hf_change_close(service, status));
}

int hf_cmd_batch_stop(const hf_tool_args *args)
{
    int code = HF_EXIT_FINE;
    hf_service *service = hf_change_open(args, &code);
    return service == NULL ? code
                           : hf_change_close(service, hf_batch_stop(service, args->words[1], .reason = args->reason,
                                                                    .namespace_ = args->namespace_));
}

/* ---- What reads -------------------------------------------------------------------------------------------------------- */

typedef struct listing {
    const hf_tool_args *args;
    const char *id; /* only this one; NULL = all */
    hf_json writer;
    hf_buf text;
    size_t count;
} listing;

static void key_text(hf_json *writer, const char *key, hf_str text)
{
    hf_json_key(writer, key);
    hf_json_string_len(writer, text.data, text.len);
}

static void key_number(hf_json *writer, const char *key, int64_t number)
{
    hf_json_key(writer, key);
    hf_json_int(writer, number);
}

static void put_json(listing *l, const hf_pb_operation_record *record,
                     const hf_pb_start_batch_operation_request *request, const hf_pb_operation_progress *progress)
{
    hf_json *writer = &l->writer;
    hf_json_object(writer);
    key_text(writer, "id", record->job_id);
    key_text(writer, "kind", hf_str_of(kind_name(record->type)));
    key_text(writer, "state", hf_str_of(hf_find_operation_state(record)));
    if (request != NULL && progress != NULL) {
        key_number(writer, "total", progress->total);
        key_number(writer, "complete", progress->complete);
        key_number(writer, "failed", progress->failed);
        key_text(writer, "reason", request->reason);
        key_text(writer, "query", request->visibility_query);
        key_text(writer, "why", progress->why);
    }
    hf_json_end(writer);
}

static void put_failures(const hf_pb_operation_progress *progress, hf_buf *text)
{
    for (size_t i = 0; i < progress->failures.count; i++) {
        text->len = 0;
        (void)hf_put_text(text, progress->failures.items[i].workflow_id, 100);
        hf_buf_puts(text, ": ");
        (void)hf_put_text(text, progress->failures.items[i].message, 300);
        (void)printf("  %s\n", hf_buf_text(text));
    }
}

static void visit(void *arg, const hf_pb_operation_record *record, const hf_pb_start_batch_operation_request *request,
                  const hf_pb_operation_progress *progress)
{
    listing *l = arg;
    if (l->id != NULL && !hf_str_equal(record->job_id, hf_str_of(l->id))) {
        return;
    }
    l->count++;
    if (l->args->json) {
        put_json(l, record, request, progress);
        return;
    }
    l->text.len = 0;
    (void)hf_put_text(&l->text, record->job_id, 100);
    hf_buf_putf(&l->text, "  %s  %s", kind_name(record->type), hf_find_operation_state(record));
    if (progress != NULL) {
        hf_buf_putf(&l->text, "  %lld of %lld runs, %lld refused", (long long)progress->complete,
                    (long long)progress->total, (long long)progress->failed);
        if (progress->why.len > 0) {
            hf_buf_puts(&l->text, ": ");
            (void)hf_put_text(&l->text, progress->why, 300);
        }
    } else {
        hf_buf_puts(&l->text, "  (its record is damaged)");
    }
    (void)printf("%s\n", hf_buf_text(&l->text));
    if (progress != NULL && l->id != NULL) {
        put_failures(progress, &l->text);
    }
}

/* As a server tells it. */
static bool visit_info(void *arg, const hf_batch_info *info)
{
    static const char *const STATES[] = {"", "Running", "Completed", "Failed"};
    listing *l = arg;
    hf_pb_operation_record record = {.job_id = hf_str_of(info->id), .type = info->kind};
    const char *state = (size_t)info->state < HF_COUNT_OF(STATES) ? STATES[info->state] : "";
    l->count++;
    if (l->args->json) {
        hf_json_object(&l->writer);
        key_text(&l->writer, "id", record.job_id);
        key_text(&l->writer, "kind", hf_str_of(kind_name(record.type)));
        key_text(&l->writer, "state", hf_str_of(state));
        if (l->id != NULL) {
            key_number(&l->writer, "total", info->total);
            key_number(&l->writer, "complete", info->complete);
            key_number(&l->writer, "failed", info->failed);
            key_text(&l->writer, "why", hf_str_of(info->why));
        }
        hf_json_end(&l->writer);
        return true;
    }
    l->text.len = 0;
    (void)hf_put_text(&l->text, record.job_id, 100);
    hf_buf_putf(&l->text, "  %s  %s", kind_name(record.type), state);
    if (l->id != NULL) {
        hf_buf_putf(&l->text, "  %lld of %lld runs, %lld refused%s%s", (long long)info->complete,
                    (long long)info->total, (long long)info->failed, info->why[0] != '\0' ? ": " : "", info->why);
    }
    (void)printf("%s\n", hf_buf_text(&l->text));
    return true;
}

static int ask_batches(hf_target *target, const hf_tool_args *args, const char *id)
{
    listing l = {.args = args, .id = id};
    hf_batch_info info = {0};
    int code = hf_target_reach(target);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_buf_init(&l.text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_json_init(&l.writer, &l.text);
    if (args->json && id == NULL) {
        hf_json_array(&l.writer);
    }
    hf_status status = id != NULL ? hf_batch_describe(target->service, id, &info, .namespace_ = args->namespace_)
                                  : hf_batch_list(target->service, visit_info, &l, .namespace_ = args->namespace_);
    if (status == HF_OK && id != NULL) {
        info.id = id;
        (void)visit_info(&l, &info);
    }
    if (status == HF_OK && args->json) {
        if (id == NULL) {
            hf_json_end(&l.writer);
        }
        (void)printf("%s\n", hf_buf_text(&l.text));
    } else if (status == HF_OK && l.count == 0) {
        (void)printf("%s: no batches\n", args->words[0]);
    }
    hf_buf_deinit(&l.text);
    return hf_target_close(target, hf_told(status));
}

static int show_batches(const hf_tool_args *args, const char *id)
{
    hf_target target;
    hf_source source;
    int code = hf_target_find(&target, args);
    if (code == HF_EXIT_FINE && target.kind == HF_TARGET_SERVER) {
        return ask_batches(&target, args, id);
    }
    code = code == HF_EXIT_FINE ? hf_source_open_still(&source, target.path) : code;
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_op op;
    hf_op_init(&op);
    hf_allocator memory = hf_env_memory(source.env);
    hf_look *look = NULL;
    listing l = {.args = args, .id = id};
    hf_buf_init(&l.text, memory, SIZE_MAX / 4);
    hf_json_init(&l.writer, &l.text);
    hf_status status = hf_look_open(&op, memory, source.peek.store, &look);
    if (args->json && id == NULL) {
        hf_json_array(&l.writer);
    }
    if (status == HF_OK) {
        status = hf_find_operations(&op, look, source.peek.store, memory, hf_str_of(args->namespace_), visit, &l);
    }
    if (status == HF_OK && args->json && id == NULL) {
        hf_json_end(&l.writer);
    }
    if (status != HF_OK) {
        code = hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
    } else if (id != NULL && l.count == 0) {
        code = hf_complain(HF_EXIT_NOT_FOUND, "there is no batch %s in the namespace %s", id, args->namespace_);
    } else if (args->json) {
        (void)printf("%s\n", hf_buf_text(&l.text));
    } else if (l.count == 0) {
        (void)printf("%s: no batches\n", args->words[0]);
    }
    hf_look_close(look);
    hf_buf_deinit(&l.text);
    hf_source_close(&source);
    return code;
}

int hf_cmd_batch_show(const hf_tool_args *args)
{
    return show_batches(args, args->words[1]);
}

int hf_cmd_batch_list(const hf_tool_args *args)
{
    return show_batches(args, NULL);
}

/* ---- namespace delete -------------------------------------------------------------------------------------------------- */

typedef struct sought {
    hf_str name;
    bool is_there;
} sought;

static void seek(void *arg, const hf_pb_namespace_record *record)
{
    sought *self = arg;
    self->is_there = self->is_there || hf_str_equal(record->name, self->name);
}

/* Whether the file still has it. */
static int is_left(const hf_tool_args *args, bool *ret_is_left)
{
    hf_source source;
    int code = hf_source_open_still(&source, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_op op;
    hf_op_init(&op);
    sought self = {.name = hf_str_of(args->words[1])};
    hf_status status = hf_find_namespaces(&op, source.peek.store, hf_env_memory(source.env), seek, &self);
    hf_source_close(&source);
    *ret_is_left = self.is_there;
    return status == HF_OK ? HF_EXIT_FINE : hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
}

/* A program that has the file open, or a server, goes on by itself. */
static int delete_there(hf_target *target, const hf_tool_args *args)
{
    int code = hf_target_reach(target);
    return code == HF_EXIT_FINE ? hf_target_close(target, hf_told(hf_namespace_delete(target->service, args->words[1])))
                                : code;
}

int hf_cmd_namespace_delete(const hf_tool_args *args)
{
    hf_target target;
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
    return code;
}
