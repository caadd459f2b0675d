/* Programs as activities: hf_worker_add_command.
 *
 *     fiber of the activity      waits for the program's end
 *       scope -- fiber: writes the input to stdin
 *             -- fiber: reads the result from stdout
 *             -- fiber: reads stderr: heartbeats, and the end of the text
 *
 * Each program has a box, which is a helper process of its own (fiber/io/process.h). When the program has ended, or was
 * killed, the box is killed: then nothing that the program started runs any more, and the pipes end, even if a descendant
 * held them open. */
#include "worker/command.h"
#include "worker/worker_private.h"

#include "base/span.h"
#include "fiber/io/process.h"
#include "fiber/verbs.h"
#include "history/limits.h"

#include <inttypes.h>
#include <stdio.h>

enum { READ_LEN = 4096, KILL_SECONDS = 60, VARIABLES = 5, STACK_SIZE = 64 << 10 };

/* What was added; `arg` of its entry. */
typedef struct hf_command {
    const char *const *argv;
    const char *const *env;
    const char *cwd;
    hf_span kill_after;
} hf_command;

/* One attempt. */
typedef struct hf_command_run {
    const hf_command *command;
    hf_runtime *rt;
    hf_payload in;
    hf_process_box *box;
    hf_process *process;
    hf_arena arena; /* of its variables */
    hf_buf out;
    bool is_too_big;
    hf_command_notes notes;
    hf_op op; /* of the box */
} hf_command_run;

/* ---- Its pipes ---------------------------------------------------------------------------------------------------- */

/* A program need not read its input. */
static hf_status write_input(void *arg)
{
    hf_command_run *run = arg;
    hf_assert(run->process != NULL);
    if (run->in.len > 0) {
        HF_IGNORE(hf_conn_write(hf_process_in(run->process), run->in.data, run->in.len));
    }
    HF_IGNORE(hf_process_close_in(run->process));
    return HF_OK;
}

static hf_status read_output(void *arg)
{
    hf_command_run *run = arg;
    char bytes[READ_LEN];
    size_t len = 1;
    while (len > 0) {
        HF_TRY(hf_conn_read(hf_process_out(run->process), bytes, sizeof bytes, &len));
        hf_buf_put(&run->out, bytes, len);
        if (hf_buf_status(&run->out) != HF_OK) {
            run->is_too_big = hf_buf_status(&run->out) == HF_ERR_TOO_BIG;
            return hf_raise(hf_buf_status(&run->out), "no room for the output of the program");
        }
        hf_assert(run->out.len <= HF_PAYLOAD_LEN_MAX);
    }
    return HF_OK;
}

static bool beat(void *arg, hf_str json)
{
    (void)arg;
    hf_payload details = hf_payload_of_bytes(json.data, json.len);
    hf_json_kind kind = HF_KIND_MISSING;
    details.encoding = HF_ENCODING_JSON_TEXT;
    if (hf_json_get_kind(details, "", &kind) != HF_OK) {
        return false;
    }
    HF_IGNORE(hf_activity_heartbeat(details)); /* whoever waits for the program sees a cancel, too */
    return true;
}

static hf_status read_notes(void *arg)
{
    hf_command_run *run = arg;
    char bytes[READ_LEN];
    size_t len = 1;
    while (len > 0) {
        HF_TRY(hf_conn_read(hf_process_err(run->process), bytes, sizeof bytes, &len));
        hf_command_notes_take(&run->notes, hf_str_of_len(bytes, len), beat, run);
    }
    return HF_OK;
}

/* ---- Its life ------------------------------------------------------------------------------------------------------ */

static hf_status open_box(void *arg)
{
    hf_command_run *run = arg;
    return hf_process_box_open(&run->op, run->rt, &run->box);
}

static hf_status kill_box(void *arg)
{
    hf_assert(((hf_command_run *)arg)->box != NULL);
    hf_process_box_kill(((hf_command_run *)arg)->box);
    return HF_OK;
}

/* Nothing of it runs when this returns, whatever was canceled. */
static void kill_all(hf_command_run *run)
{
    hf_shield *shield = NULL;
    HF_IGNORE(hf_shield_open(hf_seconds(KILL_SECONDS), &shield));
    if (hf_block(kill_box, run) != HF_OK) { /* the pool has no thread for it */
        hf_process_box_kill(run->box);
    }
    HF_IGNORE(hf_shield_close(shield));
}

static const char *variable(hf_arena *arena, const char *name, const char *value)
{
    size_t len = strlen(name) + 1 + strlen(value) + 1;
    char *text = hf_arena_take(arena, len, 1);
    if (text != NULL) {
        (void)snprintf(text, len, "%s=%s", name, value);
    }
    return text;
}

static hf_status start(hf_command_run *run)
{
    const hf_activity_facts *facts = hf_activity_info();
    const hf_command *command = run->command;
    hf_assert(run->box == NULL && run->process == NULL && facts != NULL);
    char attempt[16];
    (void)snprintf(attempt, sizeof attempt, "%d", facts->attempt);
    const char *more[VARIABLES + 1] = {variable(&run->arena, "HOLDFAST_WORKFLOW_ID", facts->workflow_id),
                                       variable(&run->arena, "HOLDFAST_RUN_ID", facts->run_id),
                                       variable(&run->arena, "HOLDFAST_ACTIVITY_ID", facts->id),
                                       variable(&run->arena, "HOLDFAST_ACTIVITY_NAME", facts->name),
                                       variable(&run->arena, "HOLDFAST_ATTEMPT", attempt),
                                       NULL};
    if (run->arena.status != HF_OK) {
        return hf_raise(HF_ERR_NOMEM, "no memory to start '%s'", command->argv[0]);
    }
    hf_status status = hf_block(open_box, run);
    if (status != HF_OK) {
        return run->op.status != HF_OK ? hf_failure_raise_op(&run->op) : status;
    }
    hf_process_options options = {.size = sizeof options,
                                  .env = command->env,
                                  .cwd = command->cwd,
                                  .in = HF_STDIO_PIPE,
                                  .out = HF_STDIO_PIPE,
                                  .err = HF_STDIO_PIPE,
                                  .kill_after = command->kill_after};
    return hf_process_start_in(run->box, command->argv, more, &run->process, &options);
}

/* Until the program has ended and its pipes were read to their end. */
static hf_status watch(hf_command_run *run, hf_exit *ret_exit)
{
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "program"));
    hf_status status = hf_fork(scope, write_input, run, .name = "stdin");
    status = status == HF_OK ? hf_fork(scope, read_output, run, .name = "stdout") : status;
    status = status == HF_OK ? hf_fork(scope, read_notes, run, .name = "stderr") : status;
    status = status == HF_OK ? hf_process_wait(run->process, ret_exit) : status;
    if (status == HF_OK) {
        kill_all(run); /* what it left behind could hold its pipes open */
        status = hf_join(scope);
    }
    return status;
}

/* ---- What becomes of it --------------------------------------------------------------------------------------------- */

static hf_status fail_exit(hf_command_run *run, hf_exit end)
{
    char notes[HF_COMMAND_TAIL_MAX + 1];
    char message[HF_COMMAND_TAIL_MAX + 400];
    char type[32];
    char details[64];
    bool by_signal = end.signal != 0;
    hf_assert(by_signal || end.code != 0);
    hf_command_notes_end(&run->notes, notes);
    (void)snprintf(type, sizeof type, by_signal ? "Signal%d" : "Exit%d", by_signal ? end.signal : end.code);
    (void)snprintf(details, sizeof details, "{\"code\":%d,\"signal\":%d}", end.code, end.signal);
    (void)snprintf(message, sizeof message, "'%.200s' %s %d%s%s", run->command->argv[0],
                   by_signal ? "was ended by signal" : "ended with exit code", by_signal ? end.signal : end.code,
                   notes[0] != '\0' ? ": " : "", notes);
    return hf_activity_fail(message, .type = type, .is_final = !by_signal && end.code == HF_COMMAND_EXIT_FINAL,
                            .details = hf_payload_of_json(details));
}

static hf_status take_result(hf_command_run *run, hf_payload *ret_out)
{
    size_t len = run->out.len;
    len -= len > 0 && run->out.data[len - 1] == '\n';
    if (len == 0) {
        return HF_OK;
    }
    hf_payload out = hf_payload_of_bytes(run->out.data, len);
    hf_payload text = out;
    hf_json_kind kind = HF_KIND_MISSING;
    text.encoding = HF_ENCODING_JSON_TEXT;
    bool is_json = hf_json_get_kind(text, "", &kind) == HF_OK;
    return hf_payload_copy(is_json ? text : out, ret_out);
}

static hf_status run_command(hf_payload in, hf_payload *ret_out)
{
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_command_run run = {.command = hf_activity_arg(), .rt = hf_runtime_current(), .in = in};
    hf_assert(run.command != NULL && run.rt != NULL); /* an activity with .on_fiber */
    hf_exit end = {0, 0};
    hf_op_init(&run.op);
    hf_arena_init(&run.arena, memory);
    hf_buf_init(&run.out, memory, HF_PAYLOAD_LEN_MAX);
    hf_command_notes_init(&run.notes, memory);
    hf_status status = start(&run);
    status = status == HF_OK ? watch(&run, &end) : status;
    if (status != HF_OK && run.process != NULL) {
        HF_IGNORE(
            hf_process_close(run.process)); /* SIGTERM, and SIGKILL after a while; also if this fiber is canceled */
        run.process = NULL;
    }
    if (run.box != NULL) {
        kill_all(&run);
    }
    if (run.is_too_big) {
        char text[160];
        (void)snprintf(text, sizeof text, "'%.80s' wrote a result of more than %u bytes", run.command->argv[0],
                       HF_PAYLOAD_LEN_MAX);
        status = hf_activity_fail(text, .type = "TooBig", .is_final = true);
    } else if (status == HF_OK && (end.code != 0 || end.signal != 0)) {
        status = fail_exit(&run, end);
    } else if (status == HF_OK) {
        status = take_result(&run, ret_out);
    }
    HF_IGNORE(hf_process_close(run.process));
    hf_process_box_free(run.box);
    hf_command_notes_deinit(&run.notes);
    hf_buf_deinit(&run.out);
    hf_arena_deinit(&run.arena);
    return status;
}

/* ---- Adding --------------------------------------------------------------------------------------------------------- */

/* A copy of a list of texts; NULL stays NULL. */
static const char *const *copy_list(hf_arena *arena, const char *const *texts)
{
    size_t count = 0;
    while (texts != NULL && texts[count] != NULL) {
        count++;
    }
    const char **copy = texts != NULL ? HF_ARENA_ARRAY(arena, const char *, count + 1) : NULL;
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = hf_arena_copy(arena, hf_str_of(texts[i])).data;
    }
    if (copy != NULL) {
        copy[count] = NULL;
    }
    return copy;
}

hf_status hf_worker_add_command_with(hf_worker *worker, const char *name, const char *const *argv,
                                     const hf_worker_add_command_options *options)
{
    HF_TRY(HF_VERB_ALLOWED(hf_worker_add_command));
    HF_OPTIONS(hf_worker_add_command_options, options, hf_worker_add_command);
    static const char VERB[] = "hf_worker_add_command";
    if (worker == NULL || argv == NULL || argv[0] == NULL || argv[0][0] == '\0') {
        return hf_raise(HF_ERR_MISUSE, "%s needs a worker, a name and a program with its arguments", VERB);
    }
    hf_op op;
    hf_op_init(&op);
    if (hf_span_check(&op, VERB, ".kill_after", options->kill_after, HF_MAY_BE_OFF) != HF_OK) {
        return hf_failure_raise_op(&op);
    }
    hf_arena *arena = &worker->names;
    hf_command *command = HF_ARENA_NEW(arena, hf_command);
    if (command != NULL) {
        command->argv = copy_list(arena, argv);
        command->env = copy_list(arena, options->env);
        command->cwd = options->cwd != NULL ? hf_arena_copy(arena, hf_str_of(options->cwd)).data : NULL;
        command->kill_after = options->kill_after.ns == 0  ? hf_seconds(1)
                              : options->kill_after.ns < 0 ? hf_nanoseconds(0)
                                                           : options->kill_after;
    }
    if (command == NULL || arena->status != HF_OK) {
        return hf_raise(HF_ERR_NOMEM, "%s: no memory for '%s'", VERB, name != NULL ? name : "");
    }
    return hf_worker_add_function(
        worker, name,
        &(hf_function_entry){.function = run_command, .on_fiber = true, .arg = command, .stack_size = STACK_SIZE},
        VERB);
}
