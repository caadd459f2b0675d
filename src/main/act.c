/* holdfast start, run, signal, query, update, cancel, terminate, result, reset, stack: what a person does to one workflow.
 *
 * They open TARGET (target.h) and use the verbs of the library. The result of a workflow goes to stdout as it is, if it is JSON; a failure goes
 * to stderr, and the exit code is 1. */
#include "main/report.h"
#include "main/stuck.h"

#include "service/call.h"
#include "wire/base64.h"
#include "wire/json_read.h"

#include <holdfast/error.h>
#include <holdfast/json.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_LEN_MAX = 4 << 20, NAME_LEN_SHOWN = 100 };

/* ---- Input ---------------------------------------------------------------------------------------------------------------- */

char *hf_read_all(const char *name, size_t *ret_len)
{
    bool is_stdin = strcmp(name, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(name, "re");
    char *text = file != NULL ? malloc(INPUT_LEN_MAX + 2) : NULL;
    if (text == NULL) {
        (void)hf_complain(0, "cannot read %s: %s", name, strerror(errno));
    } else {
        *ret_len = fread(text, 1, INPUT_LEN_MAX + 1, file);
        text[*ret_len] = '\0';
        if (*ret_len > INPUT_LEN_MAX || ferror(file) != 0) {
            (void)hf_complain(0, "%s cannot be read, or has more than %d bytes", name, INPUT_LEN_MAX);
            free(text);
            text = NULL;
        }
    }
    if (file != NULL && !is_stdin) {
        (void)fclose(file);
    }
    return text;
}

bool hf_input_read(const char *word, hf_input *ret_input)
{
    *ret_input = (hf_input){.payload = hf_payload_none()};
    if (word == NULL) {
        return true;
    }
    size_t len = strlen(word);
    const char *text = word;
    if (word[0] == '@' || strcmp(word, "-") == 0) {
        ret_input->owned = hf_read_all(word[0] == '@' ? word + 1 : word, &len);
        text = ret_input->owned;
    }
    if (text == NULL) {
        return false;
    }
    while (ret_input->owned != NULL && len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL) {
        ret_input->owned[--len] = '\0'; /* files end with a newline */
    }
    hf_op op;
    hf_op_init(&op);
    if (memchr(text, '\0', len) != NULL ||
        hf_json_check(&op, hf_str_of_len(text, len), hf_env_memory(hf_env_posix())) != HF_OK) {
        const char *why = op.status != HF_OK ? op.message : "it has a byte of 0";
        size_t no_json = strncmp(why, "no JSON: ", 9) == 0 ? 9 : 0;
        static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- ";
        if (ret_input->owned == NULL && word[strspn(word, LETTERS)] == '\0') {
            (void)hf_complain(0, "the input is not JSON: %s; a text has quotes in JSON: '\"%.40s\"'", why + no_json,
                              word);
        } else {
            (void)hf_complain(0, "the input is not JSON: %s", why + no_json);
        }
        free(ret_input->owned);
        ret_input->owned = NULL;
        return false;
    }
    ret_input->payload = hf_payload_of_json(text);
    return true;
}

void hf_input_free(hf_input *input)
{
    free(input->owned);
}

static const char *word_at(const hf_tool_args *args, int idx)
{
    return args->word_count > idx ? args->words[idx] : NULL;
}

static bool take_span(const hf_tool_args *args, hf_span *ret_span)
{
    int64_t ns = 0;
    *ret_span = hf_nanoseconds(0);
    if (args->timeout == NULL) {
        return true;
    }
    if (!hf_retention_parse(hf_str_of(args->timeout), &ns)) {
        (void)hf_complain(0, "--timeout %s is not a span: write it like 45s, 90m, 12h or 30d", args->timeout);
        return false;
    }
    *ret_span = hf_nanoseconds(ns > 0 ? ns : -1);
    return true;
}

/* ---- Output --------------------------------------------------------------------------------------------------------------- */

/* One payload: JSON as it is, bytes as base64. Within JSON a text that is labelled as JSON, and is not, becomes a string. */
static void put_one(hf_buf *out, hf_payload payload, bool within_json)
{
    hf_op op;
    hf_op_init(&op);
    const char *encoding = payload.encoding != NULL ? payload.encoding : "";
    if (payload.data == NULL || strcmp(encoding, "binary/null") == 0) {
        hf_buf_puts(out, "null");
    } else if (strncmp(encoding, "json/", 5) == 0) {
        hf_str text = hf_str_of_len(payload.data, payload.len);
        if (!within_json || hf_json_check(&op, text, hf_env_memory(hf_env_posix())) == HF_OK) {
            hf_buf_put(out, text.data, text.len);
        } else {
            hf_json_quote(out, text.data, text.len);
        }
    } else {
        hf_buf_putc(out, '"');
        hf_base64_encode(hf_str_of_len(payload.data, payload.len), out);
        hf_buf_putc(out, '"');
    }
}

static void put_payload(hf_buf *out, hf_payload payload, bool within_json)
{
    size_t count = hf_payload_count(payload);
    if (count <= 1) {
        put_one(out, payload, within_json);
        return;
    }
    hf_buf_putc(out, '[');
    for (size_t i = 0; i < count; i++) {
        hf_payload part = hf_payload_none();
        hf_buf_puts(out, i > 0 ? "," : "");
        if (hf_payload_nth(payload, i, &part) == HF_OK) {
            put_one(out, part, true);
            hf_payload_free(&part);
        }
    }
    hf_buf_putc(out, ']');
}

/* The failure with its causes, outermost first. */
static void put_failure(hf_json *writer, const hf_failure *failure)
{
    hf_json_key(writer, "failure");
    hf_json_array(writer);
    for (int depth = 0; failure != NULL && depth < 100; depth++, failure = failure->cause) {
        hf_json_object(writer);
        hf_json_key_string(writer, "type", failure->type);
        hf_json_key_string(writer, "message", failure->message);
        hf_json_end(writer);
    }
    hf_json_end(writer);
}

typedef enum asked_for { OF_RUN, OF_QUERY, OF_UPDATE } asked_for;

/* The failure of a call: those of workflows and updates in words that say whose failure it is. */
static int tell_failure(const char *id, hf_status status, asked_for asked)
{
    static const char *const ENDS[] = {"WorkflowCanceled", "WorkflowTerminated", "WorkflowTimedOut"};
    const hf_failure *failure = hf_error();
    const char *reason = hf_reason_of(hf_error_text());
    bool is_told = false; /* the sentence says itself how it ended */
    if (status != HF_ERR_FAILED || failure == NULL || asked == OF_QUERY) {
        return hf_told(status);
    }
    if (asked == OF_UPDATE) { /* the two are not told apart: an update may fail while it is accepted */
        return hf_complain(hf_exit_of(status), "the update was refused, or failed: %s", reason);
    }
    for (size_t i = 0; i < HF_COUNT_OF(ENDS); i++) {
        is_told = is_told || strcmp(failure->type, ENDS[i]) == 0;
    }
    return hf_complain(hf_exit_of(status), is_told ? "%s: %s" : "%s failed: %s", id, reason);
}

/* What a call has given. With --json it is an object, also when the workflow has failed; any other failure is told. */
static int put_outcome(const hf_tool_args *args, const char *id, asked_for asked, hf_status status, hf_payload result)
{
    hf_buf out;
    hf_json writer;
    if (status != HF_OK && (status != HF_ERR_FAILED || !args->json)) {
        return tell_failure(id, status, asked);
    }
    hf_buf_init(&out, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    if (args->json) {
        hf_json_init(&writer, &out);
        hf_json_object(&writer);
        hf_json_key_string(&writer, "workflowId", id);
        if (status == HF_OK) {
            hf_json_key(&writer, "result");
            hf_buf text;
            hf_buf_init(&text, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
            put_payload(&text, result, true);
            hf_json_raw(&writer, hf_buf_text(&text), text.len);
            hf_buf_deinit(&text);
        } else {
            put_failure(&writer, hf_error());
        }
        hf_json_end(&writer);
    } else {
        put_payload(&out, result, false);
    }
    (void)printf("%s\n", hf_buf_text(&out));
    hf_buf_deinit(&out);
    return hf_exit_of(status);
}

static int put_started(const hf_tool_args *args, const hf_execution *run)
{
    if (args->json) {
        hf_put_object(
            (const char *const[]){"workflowId", hf_execution_id(run), "runId", hf_execution_run_id(run), NULL});
    } else {
        (void)printf("%s  run %s\n", hf_execution_id(run), hf_execution_run_id(run));
    }
    return HF_EXIT_FINE;
}

/* Verbs that only say that it was done. */
static int put_done(const hf_tool_args *args, hf_status status)
{
    if (status == HF_ERR_NOT_FOUND &&
        strcmp(hf_reason_of(hf_error_text()), "workflow execution already completed") == 0) {
        return hf_complain(hf_exit_of(status), "%s has ended already",
                           args->words[1]); /* Temporal's words name nothing */
    }
    return hf_put_done(args, "workflowId", hf_told(status));
}

/* ---- A workflow of a target ---------------------------------------------------------------------------------------------------- */

/* Opens the target and the workflow of the second word. `needs_worker`: on a file at rest nobody would answer. */
static int begin(hf_tool_target *target, const hf_tool_args *args, const char *needs_worker, hf_execution **ret_run)
{
    int code = hf_target_find(target, args);
    if (code == HF_EXIT_CANNOT_OPEN && ret_run == NULL && target->path != NULL && access(target->path, F_OK) != 0) {
        (void)hf_complain(0, "a worker makes the file: holdfast worker %s --plugin x.so --queue %s", target->path,
                          args->queue != NULL ? args->queue : "default");
    }
    if (code == HF_EXIT_FINE && needs_worker != NULL && target->kind == HF_TARGET_REST) {
        return hf_complain(HF_EXIT_CANNOT_OPEN, "no program has %s open, and %s: start the program that works on it",
                           target->path, needs_worker);
    }
    code = code == HF_EXIT_FINE ? hf_target_reach(target) : code;
    if (code != HF_EXIT_FINE || ret_run == NULL) {
        return code;
    }
    hf_status status = hf_execution_new(target->service, args->words[1], ret_run, .namespace_ = target->namespace_,
                                        .run_id = args->run);
    return status == HF_OK ? HF_EXIT_FINE : hf_target_close(target, hf_told(status));
}

static int end(hf_tool_target *target, hf_execution *run, int code)
{
    hf_execution_free(run);
    return hf_target_close(target, code);
}

static hf_status start_it(const hf_tool_target *target, const hf_tool_args *args, hf_payload in, hf_execution **ret_run)
{
    return hf_start(target->service, args->words[1], in, ret_run, .id = args->id,
                    .task_queue = args->queue != NULL ? args->queue : "default", .namespace_ = target->namespace_);
}

/* The queues that workers poll for workflow tasks, "orders, mails"; empty = none, or it is not known. */
static void put_polled(hf_service *service, const char *namespace_, hf_arena *arena, hf_buf *out)
{
    enum { QUEUES = 20 };
    hf_op op;
    hf_call call;
    hf_pb_list_task_queues_request request = {.namespace = hf_str_of(namespace_), .page_size = QUEUES};
    hf_op_init(&op);
    hf_call_init(&call, HF_METHOD_LIST_TASK_QUEUES, &request, arena, NULL);
    if (hf_service_ask(&op, service, &call) != HF_OK) {
        return; /* a server of another kind */
    }
    const hf_pb_list_task_queues_response *list = call.response;
    for (size_t i = 0; i < list->queues.count; i++) {
        const hf_pb_task_queue_entry *entry = &list->queues.items[i];
        if (entry->type == HF_TASK_QUEUE_TYPE_WORKFLOW && entry->pollers > 0) {
            hf_buf_puts(out, out->len > 0 ? ", " : "");
            (void)hf_put_text(out, entry->name, NAME_LEN_SHOWN);
        }
    }
}

/* A workflow waits silently for a worker of its queue, and a --queue that was forgotten or misspelled looks just like that. A worker that has
 * just started may not have polled yet, so the owner of a file, or a server, is asked for a moment. */
static void hint_at_queue(const hf_tool_target *target, const hf_tool_args *args)
{
    enum { LOOKS = 6, PAUSE_MS = 50 };
    hf_arena arena;
    hf_buf polled;
    const char *queue = args->queue != NULL ? args->queue : "default";
    int looks = target->kind == HF_TARGET_REST ? 1 : LOOKS;
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    for (int i = 0; i < looks; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = i > 0 ? PAUSE_MS * 1000000L : 0}, NULL);
        if (hf_queue_is_polled(target->service, target->namespace_, hf_str_of(queue), false, &arena)) {
            hf_arena_deinit(&arena);
            return;
        }
    }
    hf_buf_init(&polled, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    put_polled(target->service, target->namespace_, &arena, &polled);
    (void)hf_complain(0, "no worker polls the task queue %s now%s%s; the workflow waits for one", queue,
                      polled.len > 0 ? ", but there are workers of: " : "", hf_buf_text(&polled));
    hf_buf_deinit(&polled);
    hf_arena_deinit(&arena);
}

int hf_cmd_start(const hf_tool_args *args)
{
    hf_tool_target target;
    hf_input input;
    hf_execution *run = NULL;
    if (!hf_input_read(word_at(args, 2), &input)) {
        return HF_EXIT_USAGE;
    }
    int code = begin(&target, args, NULL, NULL);
    if (code == HF_EXIT_FINE) {
        hf_status status = start_it(&target, args, input.payload, &run);
        code = status == HF_OK ? put_started(args, run) : hf_told(status);
        (void)fflush(stdout);
        if (status == HF_OK) {
            hint_at_queue(&target, args);
        }
        code = end(&target, run, code);
    }
    hf_input_free(&input);
    return code;
}

static int64_t now_ns(void)
{
    hf_env *env = hf_env_posix();
    return env->ops->now(env).ns;
}

/* Waits for the end, and says now and then that it does. */
static hf_status await(hf_execution *run, hf_span timeout, hf_payload *ret_out)
{
    int64_t since = now_ns();
    int64_t until = timeout.ns != 0 ? since + timeout.ns : INT64_MAX;
    for (;;) {
        int64_t left = until - now_ns();
        int64_t span = left < hf_seconds(1).ns ? left : hf_seconds(1).ns;
        hf_status status = hf_result(run, ret_out, .timeout = hf_nanoseconds(span > 0 ? span : -1));
        if (status != HF_ERR_TIMEOUT || left <= hf_seconds(1).ns) {
            hf_progress(NULL);
            return status;
        }
        hf_progress("%s runs; waiting for %lld s", hf_execution_id(run), (long long)((now_ns() - since) / 1000000000));
    }
}

int hf_cmd_run(const hf_tool_args *args)
{
    hf_tool_target target;
    hf_input input;
    hf_span timeout;
    hf_execution *run = NULL;
    hf_payload out = hf_payload_none();
    if (!take_span(args, &timeout) || !hf_input_read(word_at(args, 2), &input)) {
        return HF_EXIT_USAGE;
    }
    int code = begin(&target, args, "a workflow needs a worker to end", NULL);
    if (code == HF_EXIT_FINE) {
        hf_status status = start_it(&target, args, input.payload, &run);
        if (status == HF_OK) {
            hint_at_queue(&target, args);
            status = await(run, timeout, &out);
        }
        code = put_outcome(args, run != NULL ? hf_execution_id(run) : "", OF_RUN, status, out);
        hf_payload_free(&out);
        code = end(&target, run, code);
    }
    hf_input_free(&input);
    return code;
}

/* The result of a run that has not ended would never come from a file at rest. */
static hf_status has_ended(hf_execution *run, bool *ret_has)
{
    hf_description *description = NULL;
    HF_TRY(hf_describe(run, &description));
    *ret_has = description->closed.ns != 0;
    hf_description_free(description);
    return HF_OK;
}

int hf_cmd_result(const hf_tool_args *args)
{
    hf_tool_target target;
    hf_span timeout;
    hf_execution *run = NULL;
    hf_payload out = hf_payload_none();
    bool is_over = true;
    if (!take_span(args, &timeout)) {
        return HF_EXIT_USAGE;
    }
    int code = begin(&target, args, NULL, &run);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status = target.kind == HF_TARGET_REST ? has_ended(run, &is_over) : HF_OK;
    if (status == HF_OK && !is_over) {
        code = hf_complain(HF_EXIT_CANNOT_OPEN,
                           "%s has not ended, and no program has %s open: start the program that works on it",
                           args->words[1], target.path);
    } else {
        status = status == HF_OK ? await(run, timeout, &out) : status;
        code = put_outcome(args, args->words[1], OF_RUN, status, out);
        hf_payload_free(&out);
    }
    return end(&target, run, code);
}

int hf_cmd_signal(const hf_tool_args *args)
{
    hf_tool_target target;
    hf_input input;
    hf_execution *run = NULL;
    if (!hf_input_read(word_at(args, 3), &input)) {
        return HF_EXIT_USAGE;
    }
    int code = begin(&target, args, NULL, &run);
    if (code == HF_EXIT_FINE) {
        code = end(&target, run, put_done(args, hf_signal(run, args->words[2], input.payload)));
    }
    hf_input_free(&input);
    return code;
}

/* A question of a workflow's code. */
static int ask(const hf_tool_args *args, bool is_update)
{
    hf_tool_target target;
    hf_input input;
    hf_span timeout;
    hf_execution *run = NULL;
    hf_payload out = hf_payload_none();
    if (!take_span(args, &timeout) || !hf_input_read(word_at(args, 3), &input)) {
        return HF_EXIT_USAGE;
    }
    timeout = timeout.ns != 0 ? timeout : hf_seconds(10);
    int code = begin(&target, args, "only the workflow's code can answer", &run);
    if (code == HF_EXIT_FINE) {
        hf_status status = is_update
                               ? hf_update(run, args->words[2], input.payload, &out, .timeout = timeout, .id = args->id)
                               : hf_query(run, args->words[2], input.payload, &out, .timeout = timeout);
        code = put_outcome(args, args->words[1], is_update ? OF_UPDATE : OF_QUERY, status, out);
        hf_payload_free(&out);
        code = end(&target, run, code);
    }
    hf_input_free(&input);
    return code;
}

int hf_cmd_query(const hf_tool_args *args)
{
    return ask(args, false);
}

/* Where the fibers of a workflow wait, as its worker says. */
int hf_cmd_stack(const hf_tool_args *args)
{
    hf_tool_target target;
    hf_span timeout;
    hf_execution *run = NULL;
    hf_payload out = hf_payload_none();
    static char text[128 * 1024];
    if (!take_span(args, &timeout)) {
        return HF_EXIT_USAGE;
    }
    timeout = timeout.ns != 0 ? timeout : hf_seconds(10);
    int code = begin(&target, args, "only the workflow's code can answer", &run);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status = hf_query(run, "__stack_trace", hf_payload_none(), &out, .timeout = timeout);
    if (status == HF_OK && !args->json && hf_json_get_text(out, "", sizeof text, text) == HF_OK) {
        hf_buf clean;
        hf_buf_init(&clean, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
        for (char *line = text, *next = NULL; line != NULL && *line != '\0'; line = next) {
            next = strchr(line, '\n');
            (void)hf_put_text(&clean, hf_str_of_len(line, next != NULL ? (size_t)(next - line) : strlen(line)),
                              SIZE_MAX);
            hf_buf_putc(&clean, '\n');
            next = next != NULL ? next + 1 : NULL;
        }
        (void)fputs(hf_buf_text(&clean), stdout);
        hf_buf_deinit(&clean);
    } else {
        code = put_outcome(args, args->words[1], OF_QUERY, status, out);
    }
    hf_payload_free(&out);
    return end(&target, run, code);
}

int hf_cmd_update(const hf_tool_args *args)
{
    return ask(args, true);
}

/* A cancel of a workflow that has ended is fine (0), as hf_cancel and Temporal have it: a script may repeat it, and need not win a race
 * against the end. People are told that nothing was left to cancel. `terminate` and `signal` want to change the run, and so they exit with 4. */
int hf_cmd_cancel(const hf_tool_args *args)
{
    hf_tool_target target;
    hf_execution *run = NULL;
    hf_description *before = NULL;
    int code = begin(&target, args, NULL, &run);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    if (hf_describe(run, &before) != HF_OK) {
        before = NULL; /* a key may not allow it; hf_cancel says what is wrong otherwise */
    }
    code = put_done(args, hf_cancel(run, .reason = args->reason));
    if (code == HF_EXIT_FINE && before != NULL && before->closed.ns != 0) {
        (void)hf_complain(0, "%s had ended already (%s), so nothing was canceled", args->words[1],
                          hf_workflow_status_name(before->status));
    }
    hf_description_free(before);
    return end(&target, run, code);
}

int hf_cmd_terminate(const hf_tool_args *args)
{
    hf_tool_target target;
    hf_execution *run = NULL;
    int code = begin(&target, args, NULL, &run);
    return code == HF_EXIT_FINE ? end(&target, run, put_done(args, hf_terminate(run, .reason = args->reason))) : code;
}

int hf_cmd_reset(const hf_tool_args *args)
{
    hf_tool_target target;
    hf_execution *run = NULL;
    hf_execution *next = NULL;
    char *rest = NULL;
    long long event = args->event != NULL ? strtoll(args->event, &rest, 10) : 0;
    int given = (args->event != NULL) + (args->activity != NULL) + args->first + args->last;
    if (args->event != NULL && (rest == args->event || *rest != '\0' || event < 1)) {
        return hf_complain(HF_EXIT_USAGE, "--event %s is not the number of an event", args->event);
    }
    if (given > 1) {
        return hf_complain(HF_EXIT_USAGE, "give one of --first, --last, --event and --activity");
    }
    int code = begin(&target, args, NULL, &run);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    hf_status status = hf_reset(run, &next,
                                .point = args->first                                     ? HF_RESET_FIRST
                                         : args->event == NULL && args->activity == NULL ? HF_RESET_LAST
                                                                                         : HF_RESET_NOWHERE,
                                .event_id = event, .activity_id = args->activity, .reason = args->reason);
    code = status == HF_OK ? put_started(args, next) : hf_told(status);
    hf_execution_free(next);
    return end(&target, run, code);
}
