/* holdfast db retention, db shrink: how long runs stay after their end, and space that deleted ones leave. */
#include "main/report.h"
#include "main/target.h"

#include "inspect/find.h"
#include "service/call.h"

#include <holdfast/service.h>

#include <stdio.h>

/* Whether nobody has the file open, so that it can be changed here. The exit code says so. */
static int check_at_rest(const char *path)
{
    hf_tool_source source;
    int code = hf_source_open(&source, path);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    bool is_owned = source.is_owned;
    long long holder = (long long)source.holder;
    hf_source_close(&source);
    return !is_owned
               ? HF_EXIT_FINE
               : hf_complain(HF_EXIT_CANNOT_OPEN,
                             "%s is open in process %lld, which has to be ended before this changes it", path, holder);
}

/* ---- retention ------------------------------------------------------------------------------------------------------------- */

typedef struct retention_list {
    hf_str wanted; /* empty = all */
    size_t count;
    bool json;
    hf_report report;
    hf_buf text; /* one line */
} retention_list;

static void show_retention(void *arg, const hf_pb_namespace_record *record)
{
    retention_list *list = arg;
    if (list->wanted.len > 0 && !hf_str_equal(list->wanted, record->name)) {
        return;
    }
    list->count++;
    if (list->json) {
        hf_json_object(&list->report.writer);
        hf_put_key(&list->report.writer, "name", record->name);
        hf_json_key_int(&list->report.writer, "retentionSeconds", record->retention / 1000000000);
        hf_json_end(&list->report.writer);
        return;
    }
    list->text.len = 0;
    (void)hf_put_text(&list->text, record->name, 1000);
    hf_buf_puts(&list->text, "  ");
    if (record->retention > 0) {
        hf_put_span(&list->text, record->retention);
    } else {
        hf_buf_puts(&list->text, "for ever");
    }
    (void)printf("%s\n", hf_buf_text(&list->text));
}

static int show(const hf_tool_args *args)
{
    hf_tool_source source;
    hf_op op;
    int code = hf_source_open_still(&source, args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_op_init(&op);
    hf_allocator memory = hf_env_memory(source.env);
    retention_list list = {.wanted = hf_str_of(args->word_count > 1 ? args->words[1] : ""), .json = args->json};
    hf_report_init(&list.report);
    hf_json_array(&list.report.writer);
    hf_buf_init(&list.text, memory, SIZE_MAX / 4);
    hf_status status = hf_find_namespaces(&op, source.peek.store, memory, show_retention, &list, hf_progress_runs);
    hf_progress(NULL);
    if (status != HF_OK) {
        code = hf_complain(HF_EXIT_DAMAGED, "%s", op.message);
    } else if (list.count == 0) {
        code = hf_complain(HF_EXIT_NOT_FOUND, "there is no namespace '%s'", args->words[1]);
    }
    hf_json_end(&list.report.writer);
    hf_buf_deinit(&list.text);
    hf_source_close(&source);
    return hf_report_end(&list.report, args->json, code);
}

static void ignore_call(hf_call *call)
{
    (void)call;
}

static hf_status set_retention(hf_op *op, hf_service *service, hf_allocator memory, const char *name, int64_t span)
{
    hf_pb_namespace_config config = {.workflow_execution_retention_ttl = hf_pb_duration_of(hf_nanoseconds(span))};
    hf_pb_update_namespace_request request = {.namespace = hf_str_of(name), .config = &config};
    hf_arena arena;
    hf_call call;
    hf_arena_init(&arena, memory);
    hf_call_init(&call, HF_METHOD_UPDATE_NAMESPACE, &request, &arena, ignore_call);
    hf_status status = hf_service_ask(op, service, &call);
    hf_arena_deinit(&arena);
    return status;
}

static int change(const hf_tool_args *args, int64_t span)
{
    int code = check_at_rest(args->words[0]);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    char address[HF_PATH_LEN_MAX + 16];
    hf_service *service = NULL;
    (void)snprintf(address, sizeof address, "sqlite:%s", args->words[0]);
    if (hf_open(address, &service) != HF_OK) {
        return hf_complain(HF_EXIT_CANNOT_OPEN, "%s", hf_error_text());
    }
    hf_op op;
    hf_op_init(&op);
    if (set_retention(&op, service, hf_env_memory(hf_env_posix()), args->words[1], span) != HF_OK) {
        code = hf_complain(hf_exit_of(op.status), "%s", op.message);
    }
    if (hf_close(service) != HF_OK && code == HF_EXIT_FINE) {
        code = hf_complain(HF_EXIT_DAMAGED, "%s", hf_error_text());
    }
    return code == HF_EXIT_FINE ? show(args) : code;
}

int hf_cmd_retention(const hf_tool_args *args)
{
    int64_t span = 0;
    if (args->word_count < 3) {
        return show(args);
    }
    if (!hf_retention_parse(hf_str_of(args->words[2]), &span)) {
        return hf_complain(HF_EXIT_USAGE, "%s is not a span: write it like 30d, 12h, 90m or 45s; 0 keeps runs for ever",
                           args->words[2]);
    }
    return change(args, span);
}

/* ---- shrink ---------------------------------------------------------------------------------------------------------------- */

static hf_status reread(void *state, hf_op *op, const char *path)
{
    hf_env *env = state;
    return env->ops->file_reread(env, op, path);
}

static hf_status stats_of(hf_op *op, hf_store *store, hf_store_stats *ret_stats)
{
    hf_store_request request = {.verb = HF_STORE_STATS};
    HF_TRY(hf_store_ask(op, store, &request));
    *ret_stats = request.stats;
    return HF_OK;
}

/* Each step is a transaction of its own: whenever the program or the machine ends, the file is as sound as before.
 *
 * The log grows to 8 MiB before it is moved into the file, and the file becomes smaller only then. On a disk without room for that the
 * log is moved after each step, and steps are smaller: 4 pages need less than 100 KiB of log. */
static hf_status shrink(hf_op *op, hf_store *store, hf_store_stats *ret_before, hf_store_stats *ret_after)
{
    enum { PAGES_MAX = 256, PAGES_MIN = 4 };
    hf_store_request step = {.verb = HF_STORE_SHRINK, .row_max = PAGES_MAX};
    hf_store_request checkpoint = {.verb = HF_STORE_CHECKPOINT};
    HF_TRY(stats_of(op, store, ret_before));
    *ret_after = *ret_before;
    do {
        hf_progress("%llu of %llu MiB to give back", (unsigned long long)(ret_after->free_len >> 20),
                    (unsigned long long)(ret_before->free_len >> 20));
        hf_status status = hf_store_ask(op, store, &step);
        if (status == HF_ERR_FULL && step.row_max > PAGES_MIN) {
            hf_op_init(op);
            hf_op_init(&step.op);
            step.row_max /= 4;
            step.more = true; /* nothing has happened */
            checkpoint.force = true;
        } else if (status != HF_OK) {
            return status;
        }
        HF_TRY(hf_store_ask(op, store, &checkpoint));
        HF_TRY(stats_of(op, store, ret_after));
    } while (step.more);
    return HF_OK;
}

int hf_cmd_shrink(const hf_tool_args *args)
{
    const char *path = args->words[0];
    hf_env *env = hf_env_posix();
    int code = check_at_rest(path);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_op op;
    hf_op_init(&op);
    hf_file_owner owner = {0};
    int64_t holder = 0;
    hf_store *store = NULL;
    hf_store_stats before = {0};
    hf_store_stats after = {0};
    hf_sqlite_options options = {.must_exist = true, .reread = reread, .reread_state = env};
    hf_status status = hf_file_owner_take(&op, env, path, false, &owner, &holder);
    if (status == HF_OK) {
        status = hf_sqlite_open(&op, hf_env_memory(env), path, &options, &store);
    }
    if (status == HF_OK) {
        status = shrink(&op, store, &before, &after);
    }
    hf_store_close(store);
    hf_file_owner_release(env, &owner);
    hf_progress(NULL);
    if (status != HF_OK) {
        return hf_complain(store != NULL ? HF_EXIT_DAMAGED : HF_EXIT_CANNOT_OPEN, "%s", op.message);
    }
    if (!args->json) {
        (void)printf("%s: %.1f MiB, was %.1f MiB\n", path, (double)after.file_len / 1048576.0,
                     (double)before.file_len / 1048576.0);
        return HF_EXIT_FINE;
    }
    hf_report report;
    hf_report_init(&report);
    hf_json_object(&report.writer);
    hf_json_key_string(&report.writer, "file", path);
    hf_json_key_uint(&report.writer, "fileBytes", after.file_len);
    hf_json_key_uint(&report.writer, "fileBytesBefore", before.file_len);
    hf_json_end(&report.writer);
    return hf_report_end(&report, true, HF_EXIT_FINE);
}
