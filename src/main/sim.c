/* holdfast sim: a workflow of a plugin, played again and again with one disturbance each time (trial/trial.h).
 *
 * Each play is a process of its own, which this program starts again with --raw: variables of the plugin begin anew, code that crashes or
 * hangs ends one play only, and addresses differ. The first play is undisturbed. Its outcome, and the world that the plugin tells of, are what
 * the others are compared with. */
#include "main/author.h"
#include "main/report.h"
#include "trial/trial.h"

#include <holdfast/json.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PLAY_SECONDS = 30, /* for one play */
    POINTS_MAX = 200,  /* that are disturbed one by one; longer runs are sampled */
    FINDINGS_MAX = 3,  /* after which it ends */
    STORMS = 20,       /* without --seeds */
    RAW_LEN = 5 * HF_PLAY_TEXT_LEN,
    NOTE_LEN = 1000
};

typedef struct sim {
    const char *plugin;
    const char *type;
    const char *input;
    const char *signals[HF_AUTHOR_VALUES_MAX]; /* "name" or "name=JSON" */
    int signal_count;
    const char *seeds;
    const char *play; /* "crash-before:3" */
    bool is_verbose;
    bool is_json;
    hf_report report; /* of --json: the list of plays that failed */
    char names[HF_AUTHOR_VALUES_MAX][256];
    hf_play_result plain; /* the first play */
    int plays;
    int findings;
} sim;

/* ---- One play, in a process of its own --------------------------------------------------------------------------------------------- */

static hf_status add(void *state, hf_worker *worker)
{
    hf_op op;
    hf_op_init(&op);
    return hf_plugin_load(&op, state, worker) == HF_OK ? HF_OK : hf_raise(op.status, "%s", op.message);
}

static hf_status world(hf_payload *ret_out)
{
    hf_plugin_world_fn *tell = hf_plugin_world_last();
    return tell != NULL ? tell(ret_out) : HF_OK;
}

static void write_text(FILE *to, const char *key, const char *text)
{
    (void)fprintf(to, "%s ", key);
    for (; *text != '\0'; text++) {
        (void)fputc(*text == '\n' ? ' ' : *text, to);
    }
    (void)fputc('\n', to);
}

static int play_raw(sim *s, hf_upset upset, const char *fd)
{
    hf_play_plan plan = {.type = s->type,
                         .in = s->input != NULL ? hf_payload_of_json(s->input) : hf_payload_none(),
                         .signal_count = s->signal_count,
                         .add = add,
                         .state = (void *)(uintptr_t)s->plugin,
                         .world = world,
                         .patience = hf_seconds(PLAY_SECONDS / 3)};
    hf_play_result result;
    FILE *to = fdopen(atoi(fd), "w");
    for (int i = 0; i < s->signal_count; i++) {
        const char *equals = strchr(s->signals[i], '=');
        plan.signals[i].name = s->names[i];
        plan.signals[i].in = equals != NULL ? hf_payload_of_json(equals + 1) : hf_payload_none();
    }
    if (to == NULL) {
        return HF_EXIT_USAGE;
    }
    hf_status status = hf_play(&plan, upset, &result);
    if (status != HF_OK) {
        write_text(to, "error", hf_error_text());
    } else {
        write_text(to, "outcome", result.outcome);
        write_text(to, "before", result.before);
        write_text(to, "after", result.after);
        write_text(to, "untaken", result.untaken);
        (void)fprintf(to, "facts %d %d %d %d %d\n", result.has_ended, result.is_success, result.points,
                      result.activities, result.has_lost);
    }
    (void)fclose(to);
    (void)fflush(NULL);
    _exit(0); /* threads of the plugin may still run */
}

/* ---- The process that plays --------------------------------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void spec_of(hf_upset upset, char *spec, size_t len)
{
    if (upset.kind == HF_UPSET_SIGNAL) {
        (void)snprintf(spec, len, "%s:%d:%d", hf_upset_word(upset.kind), upset.at, upset.signal);
    } else if (strstr(hf_upset_text(upset.kind), "%d") != NULL) {
        (void)snprintf(spec, len, "%s:%d", hf_upset_word(upset.kind), upset.at);
    } else {
        (void)snprintf(spec, len, "%s", hf_upset_word(upset.kind));
    }
}

static _Noreturn void become_player(const sim *s, const char *spec, int fd)
{
    char number[16];
    const char *args[64] = {"holdfast", "sim", "--plugin", s->plugin, s->type, "--play", spec, "--raw", number};
    int count = 9;
    (void)snprintf(number, sizeof number, "%d", fd);
    if (s->input != NULL) {
        args[count++] = "--input";
        args[count++] = s->input;
    }
    for (int i = 0; i < s->signal_count; i++) {
        args[count++] = "--signal";
        args[count++] = s->signals[i];
    }
    (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* what the plugin prints is not a report */
    char *words[64];
    memcpy(words, args, sizeof words);
    (void)execv("/proc/self/exe", words);
    _exit(127);
}

/* Reads until the other side has closed it. False: it takes too long. */
static bool read_all(int fd, char *text, size_t len)
{
    int64_t end = now_ms() + PLAY_SECONDS * 1000;
    size_t used = 0;
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int64_t left = end - now_ms();
        int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (ready == 0) {
            return false;
        }
        ssize_t got = ready > 0 ? read(fd, text + used, len - 1 - used) : -1;
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            text[used] = '\0';
            return true;
        }
        used += (size_t)got;
    }
}

static void take_line(const char *text, const char *key, char *to)
{
    size_t key_len = strlen(key);
    to[0] = '\0';
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, key, key_len) == 0 && line[key_len] == ' ') {
            (void)snprintf(to, HF_PLAY_TEXT_LEN, "%.*s", (int)strcspn(line + key_len + 1, "\n"), line + key_len + 1);
            return;
        }
    }
}

static void take_result(const char *raw, int ended, bool is_late, hf_play_result *result)
{
    char text[HF_PLAY_TEXT_LEN];
    int has_ended = 0;
    int is_success = 0;
    int has_lost = 0;
    *result = (hf_play_result){.has_ended = false};
    take_line(raw, "outcome", result->outcome);
    take_line(raw, "before", result->before);
    take_line(raw, "after", result->after);
    take_line(raw, "untaken", result->untaken);
    take_line(raw, "facts", text);
    if (sscanf(text, "%d %d %d %d %d", &has_ended, &is_success, &result->points, &result->activities, &has_lost) == 5) {
        result->has_lost = has_lost != 0;
        result->has_ended = has_ended != 0;
        result->is_success = is_success != 0;
        return;
    }
    take_line(raw, "error", text);
    if (text[0] != '\0') {
        (void)snprintf(result->outcome, sizeof result->outcome, "did not begin: %.3000s", text);
    } else if (is_late) {
        (void)snprintf(result->outcome, sizeof result->outcome, "did not end within %d s", PLAY_SECONDS);
    } else if (WIFSIGNALED(ended)) {
        (void)snprintf(result->outcome, sizeof result->outcome, "crashed: %s", strsignal(WTERMSIG(ended)));
    } else {
        (void)snprintf(result->outcome, sizeof result->outcome, "its process ended with code %d", WEXITSTATUS(ended));
    }
}

static bool play(const sim *s, hf_upset upset, hf_play_result *result)
{
    static char raw[RAW_LEN];
    char spec[64];
    int pipes[2];
    int ended = 0;
    spec_of(upset, spec, sizeof spec);
    if (pipe(pipes) != 0) {
        return false;
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pipes[0]);
        become_player(s, spec, pipes[1]);
    }
    (void)close(pipes[1]);
    raw[0] = '\0';
    bool is_late = pid < 0 || !read_all(pipes[0], raw, sizeof raw);
    (void)close(pipes[0]);
    if (pid < 0) {
        return false;
    }
    if (is_late) {
        (void)kill(pid, SIGKILL);
    }
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
    }
    take_result(raw, ended, is_late, result);
    return true;
}

/* ---- The comparison ---------------------------------------------------------------------------------------------------------------- */

static void put_shell(hf_buf *out, const char *word)
{
    bool is_plain =
        word[0] != '\0' &&
        strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,") == strlen(word);
    hf_buf_puts(out, is_plain ? "" : "'");
    for (; *word != '\0'; word++) {
        hf_buf_puts(out, *word == '\'' ? "'\\''" : (char[]){*word, '\0'});
    }
    hf_buf_puts(out, is_plain ? "" : "'");
}

/* The line that plays it again. */
static void put_command(const sim *s, const char *spec, hf_buf *out)
{
    hf_buf_puts(out, "holdfast sim --plugin ");
    put_shell(out, s->plugin);
    hf_buf_putc(out, ' ');
    put_shell(out, s->type);
    if (s->input != NULL) {
        hf_buf_puts(out, " --input ");
        put_shell(out, s->input);
    }
    for (int i = 0; i < s->signal_count; i++) {
        hf_buf_puts(out, " --signal ");
        put_shell(out, s->signals[i]);
    }
    hf_buf_putf(out, " --play %s", spec);
}

static void put_outcome(const char *word, const char *outcome, const char *state)
{
    (void)printf("  %-9s %s%s%s\n", word, outcome, state[0] != '\0' ? "   world " : "", state);
}

/* What the undisturbed play makes one ask, although nothing may be wrong. False: nothing. */
static bool note_input(const sim *s, char note[NOTE_LEN])
{
    const char *outcome = s->plain.outcome;
    bool is_refused =
        strncmp(outcome, "failed, HF_ERR_INVALID:", 23) == 0 || strncmp(outcome, "failed, HF_ERR_MISUSE:", 22) == 0;
    (void)snprintf(note, NOTE_LEN, "%s",
                   s->input == NULL ? "it refused a value: is --input missing?"
                                    : "it refused a value: is --input what the workflow takes?");
    return is_refused;
}

static bool note_signals(const sim *s, char note[NOTE_LEN])
{
    (void)snprintf(note, NOTE_LEN, "nobody took the signal %.900s: is its name right?", s->plain.untaken);
    return s->plain.untaken[0] != '\0';
}

static bool (*const NOTES[])(const sim *s, char note[NOTE_LEN]) = {note_input, note_signals};

static void put_notes(sim *s)
{
    char note[NOTE_LEN];
    for (size_t i = 0; i < HF_COUNT_OF(NOTES); i++) {
        if (NOTES[i](s, note)) {
            put_outcome("note:", note, "");
        }
    }
}

/* What is wrong with this play; NULL = nothing. */
static const char *judge(const sim *s, hf_upset upset, const hf_play_result *got)
{
    const hf_play_result *plain = &s->plain;
    if (!got->has_ended && (plain->has_ended || upset.kind != HF_UPSET_NONE)) {
        return "it does not end";
    }
    if (hf_upset_is_equal(upset.kind) && !got->has_lost) { /* what runs once may fail by a death, as by itself */
        return strcmp(got->outcome, plain->outcome) != 0 ? "it ends differently"
               : strcmp(got->after, plain->after) != 0   ? "it leaves another world"
                                                         : NULL;
    }
    if (got->is_success || strstr(got->outcome, "NotDeterministic") == NULL) {
        if (upset.kind == HF_UPSET_FAIL_TWO) { /* what could not be undone is left; but not behind a success */
            bool is_silent = strcmp(got->outcome, plain->outcome) == 0 && strcmp(got->after, plain->after) != 0;
            return is_silent ? "it ends as if nothing had failed, and leaves another world" : NULL;
        }
        bool is_whole = strcmp(got->after, plain->after) == 0 || strcmp(got->after, got->before) == 0;
        return got->is_success || is_whole ? NULL
                                           : "it has failed, and the world is neither as before nor as after a success";
    }
    return "it is not deterministic";
}

static void put_upset(const sim *s, hf_upset upset, hf_buf *out)
{
    const char *format = hf_upset_text(upset.kind);
    const char *mark = strstr(format, "%d");
    if (upset.kind == HF_UPSET_SIGNAL && upset.at == 0) {
        hf_buf_puts(out, "a signal comes with the start");
    } else if (mark == NULL) {
        hf_buf_puts(out, format);
    } else {
        hf_buf_putf(out, "%.*s%d%s", (int)(mark - format), format, upset.at, mark + 2);
    }
    if (upset.kind == HF_UPSET_SIGNAL) {
        hf_buf_putf(out, " ('%s')", s->names[upset.signal]);
    }
}

/* Tells of a play that failed, or of any with --verbose. `wrong` = NULL: nothing is. */
static void tell_play(sim *s, hf_upset upset, const char *wrong, const hf_play_result *got)
{
    char spec[64];
    hf_buf what;
    hf_buf command;
    hf_buf_init(&what, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    hf_buf_init(&command, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    spec_of(upset, spec, sizeof spec);
    put_upset(s, upset, &what);
    put_command(s, spec, &command);
    if (s->is_json && wrong != NULL) {
        hf_json *writer = &s->report.writer;
        hf_json_object(writer);
        hf_json_key_string(writer, "play", spec);
        hf_json_key_string(writer, "what", hf_buf_text(&what));
        hf_json_key_string(writer, "why", wrong);
        hf_json_key_string(writer, "outcome", got->outcome);
        hf_json_key_string(writer, "world", got->after);
        hf_json_key_string(writer, "repeat", hf_buf_text(&command));
        hf_json_end(writer);
    } else if (!s->is_json && (s->is_verbose || wrong != NULL)) {
        hf_progress(NULL);
        (void)printf("%s %s%s%s\n", wrong != NULL ? "FAILED" : "ok    ", hf_buf_text(&what), wrong != NULL ? ": " : "",
                     wrong != NULL ? wrong : "");
        if (wrong != NULL) {
            put_outcome("expected:", s->plain.outcome, s->plain.after);
        }
        put_outcome(wrong != NULL ? "got:" : "outcome:", got->outcome, got->after);
        if (wrong != NULL) {
            (void)printf("  repeat:   %s\n", hf_buf_text(&command));
        }
    }
    hf_buf_deinit(&command);
    hf_buf_deinit(&what);
}

/* Plays it and tells what is wrong. False: no more. */
static bool try_it(sim *s, hf_upset upset)
{
    hf_play_result got;
    char spec[64];
    if (!play(s, upset, &got)) {
        (void)hf_complain(0, "no process for a play: %s", strerror(errno));
        s->findings++;
        return false;
    }
    s->plays++;
    spec_of(upset, spec, sizeof spec);
    hf_progress("%d plays, now %s", s->plays, spec);
    const char *wrong = judge(s, upset, &got);
    tell_play(s, upset, wrong, &got);
    s->findings += wrong != NULL;
    return s->findings < FINDINGS_MAX;
}

/* One play for each point, or for some of them. */
static bool try_points(sim *s, hf_upset_kind kind, int first, int last, int signal)
{
    int count = last - first + 1;
    int step = count > POINTS_MAX ? count / POINTS_MAX : 1;
    for (int at = first; at <= last; at += step) {
        if (!try_it(s, (hf_upset){kind, at, signal})) {
            return false;
        }
    }
    return true;
}

static void try_all(sim *s)
{
    int points = s->plain.points;
    bool goes_on = try_it(s, (hf_upset){HF_UPSET_EVICT, 0, 0}) && try_it(s, (hf_upset){HF_UPSET_ORDER, 0, 0}) &&
                   try_points(s, HF_UPSET_CRASH_BEFORE, 1, points, 0) &&
                   try_points(s, HF_UPSET_CRASH_AFTER, 1, points, 0);
    for (int i = 0; i < s->signal_count && goes_on; i++) {
        goes_on = try_points(s, HF_UPSET_SIGNAL, 0, points, i);
    }
    goes_on = goes_on && try_points(s, HF_UPSET_FAIL, 1, s->plain.activities, 0) &&
              try_points(s, HF_UPSET_FAIL_TWO, 1, s->plain.activities, 0) &&
              try_points(s, HF_UPSET_CANCEL, 1, points, 0);
    int storms = s->seeds != NULL ? atoi(s->seeds) : STORMS;
    for (int seed = 1; seed <= storms && goes_on; seed++) {
        goes_on = try_it(s, (hf_upset){HF_UPSET_STORM, seed, 0});
    }
}

/* ---- The command ---------------------------------------------------------------------------------------------------------------------- */

static bool parse_spec(const sim *s, const char *text, hf_upset *ret_upset)
{
    size_t len = strcspn(text, ":");
    hf_upset upset = {HF_UPSET_COUNT, 0, 0};
    for (int kind = 0; kind < HF_UPSET_COUNT; kind++) {
        if (strlen(hf_upset_word((hf_upset_kind)kind)) == len &&
            strncmp(hf_upset_word((hf_upset_kind)kind), text, len) == 0) {
            upset.kind = (hf_upset_kind)kind;
        }
    }
    if (text[len] == ':') {
        (void)sscanf(text + len, ":%d:%d", &upset.at, &upset.signal);
    }
    *ret_upset = upset;
    return upset.kind != HF_UPSET_COUNT && upset.at >= 0 && upset.signal >= 0 &&
           (upset.kind != HF_UPSET_SIGNAL || upset.signal < s->signal_count);
}

static bool is_json(const char *text)
{
    hf_json_kind kind = HF_KIND_MISSING;
    return hf_json_get_kind(hf_payload_of_json(text), "", &kind) == HF_OK;
}

static int check_words(sim *s)
{
    if (s->input != NULL && !is_json(s->input)) {
        return hf_complain(HF_EXIT_USAGE, "--input is not JSON: %s", hf_error_text());
    }
    for (int i = 0; i < s->signal_count; i++) {
        const char *equals = strchr(s->signals[i], '=');
        (void)snprintf(s->names[i], sizeof s->names[i], "%.*s",
                       equals != NULL ? (int)(equals - s->signals[i]) : (int)strlen(s->signals[i]), s->signals[i]);
        if (equals != NULL && !is_json(equals + 1)) {
            return hf_complain(HF_EXIT_USAGE, "--signal %s: what follows = is not JSON: %s", s->signals[i],
                               hf_error_text());
        }
    }
    return HF_EXIT_FINE;
}

/* The first play, which is not disturbed, has failed. */
static void tell_plain(sim *s)
{
    bool waits = strncmp(s->plain.outcome, "waits", 5) == 0 && strstr(s->plain.outcome, "no worker polls") == NULL;
    const char *help = "Name the signals that it needs: --signal NAME or --signal NAME=JSON, in their order.";
    s->findings = 1;
    if (s->is_json) {
        tell_play(s, (hf_upset){HF_UPSET_NONE, 0, 0}, waits ? help : "it fails without any disturbance", &s->plain);
        return;
    }
    hf_buf command;
    hf_buf_init(&command, hf_env_memory(hf_env_posix()), SIZE_MAX / 4);
    put_command(s, "plain", &command);
    (void)printf("FAILED without any disturbance\n");
    put_outcome("got:", s->plain.outcome, s->plain.after);
    put_notes(s);
    (void)printf("%s%s\n", waits ? "  " : "  repeat:   ", waits ? help : hf_buf_text(&command));
    hf_buf_deinit(&command);
}

/* The first play must end: the others are compared with it. */
static int try_plain(sim *s)
{
    hf_upset plain = {HF_UPSET_NONE, 0, 0};
    if (!play(s, plain, &s->plain)) {
        return hf_complain(HF_EXIT_DAMAGED, "no process for a play: %s", strerror(errno));
    }
    s->plays = 1;
    if (strstr(s->plain.outcome, "this worker has no workflow") != NULL) {
        return hf_complain(HF_EXIT_USAGE, "the plugin %s has no workflow '%s'", s->plugin, s->type);
    }
    if (s->plain.has_ended && strstr(s->plain.outcome, "NotDeterministic") == NULL) {
        return HF_EXIT_FINE;
    }
    if (strncmp(s->plain.outcome, "did not begin", 13) == 0) {
        return hf_complain(HF_EXIT_USAGE, "%s %s", s->type, s->plain.outcome);
    }
    tell_plain(s);
    return HF_EXIT_DAMAGED;
}

static void begin_json(sim *s)
{
    hf_report_init(&s->report);
    hf_json_object(&s->report.writer);
    hf_json_key_string(&s->report.writer, "workflow", s->type);
    hf_json_key(&s->report.writer, "failures");
    hf_json_array(&s->report.writer);
}

static int end_json(sim *s, int64_t ms, int code)
{
    hf_json *writer = &s->report.writer;
    hf_json_end(writer);
    hf_json_key_string(writer, "outcome", s->plain.outcome);
    hf_json_key_string(writer, "world", s->plain.after);
    hf_json_key(writer, "notes");
    hf_json_array(writer);
    for (size_t i = 0; i < HF_COUNT_OF(NOTES); i++) {
        char note[NOTE_LEN];
        if (NOTES[i](s, note)) {
            hf_json_string_len(writer, note, strlen(note));
        }
    }
    hf_json_end(writer);
    hf_json_key_int(writer, "workflowTasks", s->plain.points);
    hf_json_key_int(writer, "activities", s->plain.activities);
    hf_json_key_int(writer, "plays", s->plays);
    hf_json_key_int(writer, "failed", s->findings);
    hf_json_key_int(writer, "milliseconds", ms);
    hf_json_end(writer);
    return hf_report_end(&s->report, s->is_json, code);
}

static int run(sim *s, const hf_upset *one)
{
    int64_t begun = now_ms();
    begin_json(s);
    int code = try_plain(s);
    if (code != HF_EXIT_FINE) {
        return end_json(s, now_ms() - begun, code);
    }
    if (!s->is_json) {
        (void)printf("%s, undisturbed: %d workflow task%s, %d activit%s\n", s->type, s->plain.points,
                     s->plain.points == 1 ? "" : "s", s->plain.activities, s->plain.activities == 1 ? "y" : "ies");
        put_outcome("outcome:", s->plain.outcome, s->plain.after);
        put_notes(s);
    }
    if (one == NULL) {
        try_all(s);
        hf_progress(NULL);
    } else if (one->kind != HF_UPSET_NONE) {
        s->is_verbose = true;
        (void)try_it(s, *one);
    }
    int64_t ms = now_ms() - begun;
    if (!s->is_json) {
        (void)printf("%d plays in %" PRId64 ".%" PRId64 " s, %d failed%s%s\n", s->plays, ms / 1000, ms % 1000 / 100,
                     s->findings, s->findings >= FINDINGS_MAX && one == NULL ? "; the rest was not tried" : "",
                     s->plain.is_success ? ""
                                         : "; undisturbed, the workflow does not succeed, and plays are compared with "
                                           "that");
    }
    return end_json(s, ms, s->findings == 0 ? HF_EXIT_FINE : HF_EXIT_DAMAGED);
}

int hf_cmd_sim(int argc, char **argv)
{
    static sim s;
    const char *raw = NULL;
    char why[256];
    int words = 0;
    bool without_guard = false;
    hf_upset upset = {HF_UPSET_NONE, 0, 0};
    const hf_author_option options[] = {{"--plugin", NULL, &s.plugin, NULL},
                                        {"--input", NULL, &s.input, NULL},
                                        {"--signal", NULL, s.signals, &s.signal_count},
                                        {"--seeds", NULL, &s.seeds, NULL},
                                        {"--play", NULL, &s.play, NULL},
                                        {"--raw", NULL, &raw, NULL},
                                        {"--verbose", &s.is_verbose, NULL, NULL},
                                        {"--json", &s.is_json, NULL, NULL},
                                        {"--no-guard", &without_guard, NULL, NULL},
                                        {NULL, NULL, NULL, NULL}};
    if (!hf_author_parse(argc, argv, options, &s.type, 1, &words)) {
        return HF_EXIT_USAGE;
    }
    if (words == 0 || s.plugin == NULL) {
        return hf_complain(HF_EXIT_USAGE,
                           "sim needs a plugin and the name of a workflow: holdfast sim --plugin x.so NAME");
    }
    int code = check_words(&s);
    if (code != HF_EXIT_FINE) {
        return code;
    }
    if (s.play != NULL && !parse_spec(&s, s.play, &upset)) {
        return hf_complain(HF_EXIT_USAGE, "--play %s: there is no such play", s.play);
    }
    if (raw != NULL) {
        return play_raw(&s, upset, raw);
    }
    if (!without_guard && !hf_author_guard(argv - 2, why)) {
        (void)hf_complain(0, "the calls of the workflow are not guarded: %s", why);
    }
    return run(&s, s.play != NULL ? &upset : NULL);
}
