/* Programs as activities: what goes in and out, how their ends become results and failures, and that nothing they started
 * is left. On real processes. */
/* labels: threads */
#include "unit/open/place.h"

#include "worker/command.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* ---- stderr, without a process ------------------------------------------------------------------------------------ */

static char beats[200];

static bool on_beat(void *arg, hf_str json)
{
    (void)arg;
    if (json.len > 0 && json.data[0] == '?') {
        return false;
    }
    size_t len = strlen(beats);
    (void)snprintf(beats + len, sizeof beats - len, "%.*s;", HF_STR_ARGS(json));
    return true;
}

static void lines_are_told_apart_wherever_they_are_cut(void **state)
{
    (void)state;
    static const char TEXT[] =
        "one\nheartbeat 1\nheartbeat\nheartbeat ?\nheartbeat {\"n\":2}\n\xE2\x82\xAC \x1B[2J\xFF\nlast";
    for (size_t step = 1; step < sizeof TEXT; step++) {
        hf_command_notes notes;
        char end[HF_COMMAND_TAIL_MAX + 1];
        beats[0] = '\0';
        hf_command_notes_init(&notes, hf_env_memory(hf_env_posix()));
        for (size_t at = 0; at < sizeof TEXT - 1; at += step) {
            size_t left = sizeof TEXT - 1 - at;
            hf_command_notes_take(&notes, hf_str_of_len(TEXT + at, left < step ? left : step), on_beat, NULL);
        }
        hf_command_notes_end(&notes, end);
        assert_string_equal(beats, "1;{\"n\":2};");
        assert_string_equal(end, "one heartbeat heartbeat ? \xE2\x82\xAC ?[2J? last");
        hf_command_notes_deinit(&notes);
    }
}

static void the_end_of_a_long_text_is_kept(void **state)
{
    (void)state;
    static char text[3 * HF_COMMAND_LINE_MAX];
    char end[HF_COMMAND_TAIL_MAX + 1];
    for (int has_newlines = 0; has_newlines < 2; has_newlines++) {
        hf_command_notes notes;
        beats[0] = '\0';
        hf_command_notes_init(&notes, hf_env_memory(hf_env_posix()));
        memset(text, 'x', sizeof text);
        memcpy(text, "heartbeat 1", 11); /* of a line that is too long */
        for (size_t i = 99; has_newlines != 0 && i < sizeof text; i += 100) {
            text[i] = '\n';
        }
        memcpy(text + sizeof text - 9, "\nthe end\n", 9);
        for (size_t at = 0; at < sizeof text; at += 1000) {
            size_t left = sizeof text - at;
            hf_command_notes_take(&notes, hf_str_of_len(text + at, left < 1000 ? left : 1000), on_beat, NULL);
        }
        hf_command_notes_end(&notes, end);
        assert_true(strlen(end) > HF_COMMAND_TAIL_MAX - 10 && strlen(end) <= HF_COMMAND_TAIL_MAX);
        assert_string_equal(end + strlen(end) - 8, " the end");
        assert_string_equal(
            beats, has_newlines != 0
                       ? "1xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx;"
                       : "");
        hf_command_notes_deinit(&notes);
    }
    hf_command_notes notes; /* a character of three bytes over the edge of the ring */
    hf_command_notes_init(&notes, hf_env_memory(hf_env_posix()));
    for (int i = 0; i < HF_COMMAND_TAIL_MAX / 3 + 1; i++) {
        hf_command_notes_take(&notes, HF_STR("\xE2\x82\xAC"), on_beat, NULL);
    }
    hf_command_notes_take(&notes, HF_STR("x"), on_beat, NULL);
    hf_command_notes_end(&notes, end);
    assert_null(strchr(end, '?'));
    assert_memory_equal(end, "\xE2\x82\xAC", 3);
    hf_command_notes_deinit(&notes);
}

/* ---- A worker with one command -------------------------------------------------------------------------------------- */

typedef struct scene {
    const char *script; /* run by sh -c; NULL = argv */
    const char *const *argv;
    const char *const *env;
    const char *cwd;
    hf_payload in;
    hf_activity_options options;
    hf_status (*then)(hf_execution *execution); /* by the client; NULL = nothing */
    hf_status expect;                           /* of hf_activity_run */
    const char *type;                           /* of the cause of its failure; NULL = not compared */
    const char *says;                           /* part of its message */
    const char *out;                            /* result, as text; NULL = not compared */
    bool is_json;
    const char *details;
    hf_span kill_after;
} scene;

static const scene *now_playing;
static char out_text[200];

static hf_status flow(hf_payload in, hf_payload *ret_out)
{
    const scene *s = now_playing;
    hf_activity_options options = s->options;
    hf_payload details = hf_payload_none();
    options.size = sizeof options;
    options.ret_details = &details;
    if (options.start_to_close.ns == 0) {
        options.start_to_close = hf_minutes(5);
    }
    options.retry_initial = hf_milliseconds(1);
    hf_status status = hf_activity_run_with("program", in, ret_out, &options);
    HF_CHECK_SAY(status == s->expect, "%s: %s", hf_status_name(status), hf_error_text());
    if (status == HF_OK && s->out != NULL) {
        bool is_same =
            ret_out->len == strlen(s->out) && (ret_out->len == 0 || memcmp(ret_out->data, s->out, ret_out->len) == 0);
        HF_CHECK_SAY(is_same, "%.*s", (int)ret_out->len, (const char *)ret_out->data);
        HF_CHECK(ret_out->len == 0 ||
                 strcmp(ret_out->encoding, s->is_json ? HF_ENCODING_JSON_TEXT : HF_ENCODING_BYTES_TEXT) == 0);
    }
    if (status == HF_OK && ret_out->len > 0 && ret_out->len < sizeof out_text) {
        (void)snprintf(out_text, sizeof out_text, "%.*s", (int)ret_out->len, (const char *)ret_out->data);
    }
    const hf_failure *cause = status != HF_OK ? hf_error()->cause : NULL;
    if (s->type != NULL) {
        HF_CHECK_SAY(cause != NULL && strcmp(cause->type, s->type) == 0, "%s", hf_error_text());
    }
    if (s->says != NULL) {
        HF_CHECK_SAY(cause != NULL && strstr(cause->message, s->says) != NULL, "%s", hf_error_text());
    }
    if (s->details != NULL) {
        HF_CHECK_SAY(details.data != NULL && strcmp(details.data, s->details) == 0, "%s", (const char *)details.data);
    }
    return HF_OK;
}

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status add(hf_worker *worker, const scene *s)
{
    const char *shell[] = {"sh", "-c", s->script, NULL};
    HF_TRY(hf_worker_add_workflow(worker, "flow", flow));
    return hf_worker_add_command(worker, "program", s->script != NULL ? shell : s->argv, .env = s->env, .cwd = s->cwd,
                                 .kill_after = s->kill_after);
}

static hf_status play(void *arg)
{
    const scene *s = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_TRY(add(worker, s));
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_start(service, "flow", s->in, &execution, .id = "wf-7", .task_queue = "q"));
    if (s->then != NULL) {
        HF_TRY(s->then(execution));
    }
    hf_status status = hf_result(execution, NULL);
    HF_CHECK_SAY(status == HF_OK, "%s", hf_error_text());
    HF_TRY(hf_worker_stop(worker)); /* it waits until the program has ended */
    return hf_join(scope);
}

static void play_scene(const scene *s)
{
    now_playing = s;
    out_text[0] = '\0';
    HF_CHECK_SAY(hf_run(play, (void *)(uintptr_t)s) == HF_OK, "%s", hf_error_text());
}

/* ---- In and out ---------------------------------------------------------------------------------------------------- */

static void the_input_is_stdin_and_stdout_is_the_result(void **state)
{
    (void)state;
    static const char *const CAT[] = {"cat", NULL};
    static const char *const ENV[] = {"A=x", "PATH=/usr/bin:/bin", "HOLDFAST_ATTEMPT=99", NULL};
    const scene scenes[] = {
        {.argv = CAT, .in = hf_payload_of_json("{\"a\": [1]}"), .out = "{\"a\": [1]}", .is_json = true},
        {.argv = CAT, .in = hf_payload_of_bytes("\xFF\x00z", 3)},
        {.script = "cat; echo", .in = hf_payload_of_json("7"), .out = "7", .is_json = true},
        {.script = "printf 'no json'", .out = "no json"},
        {.script = "exit 0", .in = hf_payload_of_json("\"not read\""), .out = ""},
        {.script = "pwd", .cwd = "/usr", .out = "/usr"},
        {.script = "echo \"\\\"$A $HOLDFAST_WORKFLOW_ID $HOLDFAST_ACTIVITY_ID $HOLDFAST_ACTIVITY_NAME "
                   "$HOLDFAST_ATTEMPT\\\"\"",
         .env = ENV,
         .out = "\"x wf-7 1 program 1\"",
         .is_json = true},
        {.script = "head -c 2097152 /dev/zero"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(scenes); i++) {
        play_scene(&scenes[i]);
    }
}

/* ---- Ends ------------------------------------------------------------------------------------------------------------ */

static void exit_codes_become_failures(void **state)
{
    (void)state;
    static const char *const NO_PROGRAM[] = {"/no/such/program", NULL};
    const scene scenes[] = {
        {.script = "test $HOLDFAST_ATTEMPT = 3 && echo 3 || exit 3", .out = "3", .is_json = true},
        {.script = "echo 'cannot do it' >&2; exit 3",
         .options = {.attempts_max = 2},
         .expect = HF_ERR_FAILED,
         .type = "Exit3",
         .says = "'sh' ended with exit code 3: cannot do it",
         .details = "{\"code\":3,\"signal\":0}"},
        {.script = "echo 'never will' >&2; exit 64", .expect = HF_ERR_FAILED, .type = "Exit64", .says = "never will"},
        {.script = "kill -9 $$",
         .options = {.attempts_max = 1},
         .expect = HF_ERR_FAILED,
         .type = "Signal9",
         .says = "'sh' was ended by signal 9",
         .details = "{\"code\":-1,\"signal\":9}"},
        {.script = "head -c 2097153 /dev/zero; sleep 1000",
         .expect = HF_ERR_FAILED,
         .type = "TooBig",
         .says = "more than 2097152 bytes"},
        {.argv = NO_PROGRAM,
         .options = {.attempts_max = 1},
         .expect = HF_ERR_FAILED,
         .type = "HF_ERR_NOT_FOUND",
         .says = "/no/such/program"},
    };
    for (size_t i = 0; i < HF_COUNT_OF(scenes); i++) {
        play_scene(&scenes[i]);
    }
}

/* ---- Nothing is left -------------------------------------------------------------------------------------------------- */

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

static char pid_path[160];

static pid_t pid_in_file(void)
{
    char text[32] = "";
    FILE *file = fopen(pid_path, "re");
    size_t len = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    text[len] = '\0';
    return strchr(text, '\n') != NULL ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* A heartbeat has come from the program, which has started another one in a session of its own by then. */
static hf_status cancel_after_beat(hf_execution *execution)
{
    for (bool has_beat = false; !has_beat;) {
        hf_description *now = NULL;
        HF_TRY(hf_describe(execution, &now));
        has_beat = now->activity_count == 1 && now->activities[0].heartbeat.data != NULL &&
                   strcmp(now->activities[0].heartbeat.data, "{\"n\":1}") == 0;
        hf_description_free(now);
        HF_TRY(hf_yield());
    }
    HF_CHECK(pid_in_file() > 0 && !is_gone(pid_in_file()));
    return hf_cancel(execution);
}

#define RUNAWAY "setsid sleep 1000 & echo $! >%s; "

static void all_that_a_program_started_ends_with_it(void **state)
{
    place *p = *state;
    char script[400];
    char farewell[160];
    (void)snprintf(pid_path, sizeof pid_path, "%s/pid", p->folder);
    (void)snprintf(farewell, sizeof farewell, "%s/farewell", p->folder);
    assert_int_equal(setenv("FAREWELL", farewell, 1), 0);
    static const struct {
        const char *tail;
        hf_activity_options options;
        hf_status (*then)(hf_execution *execution);
        hf_status expect;
    } CASES[] = {
        {"echo 5; exit 0", {0}, NULL, HF_OK}, /* the runaway holds its stdout */
        {"exit 3", {.attempts_max = 1}, NULL, HF_ERR_FAILED},
        {"echo 'heartbeat {\"n\":1}' >&2; sleep 1000", {0}, cancel_after_beat, HF_ERR_CANCELED},
        {"trap '' TERM; echo 'heartbeat {\"n\":1}' >&2; sleep 1000; sleep 1000",
         {0},
         cancel_after_beat,
         HF_ERR_CANCELED},
        {"trap 'echo bye >>$FAREWELL; exit 0' TERM; sleep 1000 & echo 'heartbeat {\"n\":1}' >&2; wait",
         {0},
         cancel_after_beat,
         HF_ERR_CANCELED},
        {"sleep 1000", {.start_to_close = {.ns = 300000000}, .attempts_max = 1}, NULL, HF_ERR_TIMEOUT},
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        int len = snprintf(script, sizeof script, RUNAWAY, pid_path);
        (void)snprintf(script + len, sizeof script - (size_t)len, "%s", CASES[i].tail);
        bool is_deaf = strstr(CASES[i].tail, "trap ''") != NULL;
        bool is_polite = strstr(CASES[i].tail, "bye") != NULL;
        scene s = {.script = script,
                   .options = CASES[i].options,
                   .then = CASES[i].then,
                   .expect = CASES[i].expect,
                   .kill_after = is_deaf ? hf_milliseconds(100) : hf_minutes(1)};
        play_scene(&s);
        HF_CHECK_SAY((access(farewell, F_OK) == 0) == is_polite, "case %zu: SIGTERM comes first", i);
        (void)unlink(farewell);
        HF_CHECK_SAY(pid_in_file() > 0 && is_gone(pid_in_file()), "case %zu: process %d is left", i,
                     (int)pid_in_file());
        (void)unlink(pid_path);
    }
}

static void await_gone(pid_t pid)
{
    while (!is_gone(pid)) { /* ctest bounds it */
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void all_that_a_program_started_ends_with_the_worker(void **state)
{
    place *p = *state;
    char script[400];
    (void)snprintf(pid_path, sizeof pid_path, "%s/pid", p->folder);
    (void)snprintf(script, sizeof script, RUNAWAY "sleep 1000", pid_path);
    scene s = {.script = script};
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        play_scene(&s);
        _exit(0);
    }
    while (pid_in_file() == 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_false(is_gone(pid_in_file()));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    await_gone(pid_in_file());
}

/* ---- What is refused ---------------------------------------------------------------------------------------------------- */

static hf_status refuse(void *arg)
{
    (void)arg;
    static const char *const TRUE[] = {"true", NULL};
    static const char *const NONE[] = {NULL};
    static const char *const EMPTY[] = {"", NULL};
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_TRY(hf_open("memory:", &service));
    HF_TRY(hf_worker_new(service, "q", &worker));
    HF_CHECK(hf_worker_add_command(worker, "a", NULL) == HF_ERR_MISUSE);
    HF_CHECK(hf_worker_add_command(worker, "a", NONE) == HF_ERR_MISUSE);
    HF_CHECK(hf_worker_add_command(worker, "a", EMPTY) == HF_ERR_MISUSE);
    HF_CHECK(hf_worker_add_command(NULL, "a", TRUE) == HF_ERR_MISUSE);
    HF_CHECK(hf_worker_add_command(worker, NULL, TRUE) == HF_ERR_MISUSE);
    HF_CHECK(hf_worker_add_command(worker, "", TRUE) == HF_ERR_INVALID);
    HF_CHECK(hf_worker_add_command(worker, "a", TRUE, .kill_after = {.ns = -7}) == HF_ERR_INVALID);
    HF_TRY(hf_worker_add_command(worker, "a", TRUE, .kill_after = HF_SPAN_OFF));
    HF_CHECK(hf_worker_add_command(worker, "a", TRUE) == HF_ERR_EXISTS);
    return HF_OK;
}

static void commands_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    HF_CHECK(hf_run(refuse, NULL) == HF_OK);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(lines_are_told_apart_wherever_they_are_cut),
        cmocka_unit_test(the_end_of_a_long_text_is_kept),
        cmocka_unit_test(the_input_is_stdin_and_stdout_is_the_result),
        cmocka_unit_test(exit_codes_become_failures),
        cmocka_unit_test_setup_teardown(all_that_a_program_started_ends_with_it, place_open, place_close),
        cmocka_unit_test_setup_teardown(all_that_a_program_started_ends_with_the_worker, place_open, place_close),
        cmocka_unit_test(commands_that_make_no_sense_are_refused),
    };
    return hf_test_main("command", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
