/* Recorded histories are played by this version: it must do what the version did that recorded them, up to their end, and may go
 * on in its own way from there. README.md says which file guards what. */
#include "replay/reel.h"
#include "replay/workflows.h"
#include "support/fake_service.h"
#include "unit/worker/play.h"

#include "base/base.h"

#include <dirent.h>
#include <stdlib.h>

typedef struct recording {
    const char *file;
    const char *result; /* of the run, which goes on when it gets the signal "go" */
    const char *log;    /* what this version asked for after that */
} recording;

/* Waits, sleeps, bounds and activities with negative spans and with ones of 30 ns, as version 0.1.0 took them. Since then a
 * negative wait is over at once and makes no timer, and the others are refused. */
#define NINE(word) word word word word word word word word word
static const char SPANS[] = NINE("TIMEOUT ") "HF_OK "                  /* the value came in the same step */
                                             "HF_OK " NINE("TIMEOUT ") /* hf_sleep; with 30 ns */
    "HF_OK CANCELED TIMEOUT "                                          /* the scope */
    "HF_OK CANCELED "                                                  /* the shield */
    "HF_OK HF_OK "                                                     /* the child that comes later */
    "HF_OK HF_OK HF_OK HF_OK HF_OK TIMEOUT"                            /* activities */
    "\n" NINE("TIMEOUT ") "TIMEOUT INVALID " NINE(
        "INVALID ") "INVALID INVALID "
                    "INVALID HF_OK INVALID INVALID INVALID INVALID INVALID INVALID";

static const recording RECORDINGS[] = {
    {"0.1.0-spans.json", SPANS,
     "w: StartTimer 35 1s;\n" /* 34 is of the fiber that holds the locks: it is canceled in the step that asked for it */
     "w: StartTimer 36 2s;\n"
     "w: StartTimer 37 3s;\n"
     "w: StartTimer 39 4s;\n"
     "w: StartTimer 40 5s;\n"
     "w: StartTimer 41 6s;\n"
     "w: CompleteWorkflowExecution;\n"},
    /* Before, -7 and -3 attempts were without end, and a coefficient below 0 was the default. */
    {"0.1.0-attempts.json",
     "HF_OK HF_OK HF_OK FAILED FAILED HF_OK HF_OK HF_OK\n"
     "INVALID INVALID HF_OK FAILED FAILED HF_OK INVALID HF_OK",
     "w: ScheduleActivityTask 9 flaky;\n"
     "w: ScheduleActivityTask 10 flaky;\n"
     "w: ScheduleActivityTask 11 flaky;\n"
     "w: ScheduleActivityTask 12 flaky;\n"
     "w: ScheduleActivityTask 13 flaky;\n"
     "w: CompleteWorkflowExecution;\n"},
};

static const recording *current;
static size_t events_max; /* how much of it; 0 = all */
static size_t events_seen;

static hf_service *fake; /* of the play: its engine is to continue a run that it has not begun */

static hf_status open_fake(hf_service **ret_service)
{
    HF_TRY(fake_open(&fake));
    *ret_service = fake;
    return HF_OK;
}

static hf_status add_all(hf_worker *worker)
{
    HF_TRY(hf_worker_add_workflow(worker, "spans", replay_spans));
    HF_TRY(hf_worker_add_workflow(worker, "attempts", replay_attempts));
    HF_TRY(hf_worker_add_activity(worker, "flaky", attempts_flaky, .on_fiber = true));
    return hf_worker_add_activity(worker, "echo", replay_echo, .on_fiber = true);
}

static char *read_file(const char *name, size_t *ret_len)
{
    char path[1000];
    (void)snprintf(path, sizeof path, "%s/%s", HF_REPLAY, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    *ret_len = fread(text, 1, (1 << 20) - 1, file);
    (void)fclose(file);
    return text;
}

static hf_status go_on(play *p)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    size_t len = 0;
    char *text = read_file(current->file, &len);
    events_seen = fake_put_history(fake, "w", "orders", hf_str_of_len(text, len), events_max);
    free(text);
    HF_TRY(hf_execution_new(p->service, "w", &execution));
    HF_TRY(hf_signal(execution, "go", hf_payload_none()));
    hf_status status = hf_result(execution, &out);
    play_note(p, "%s", status == HF_OK ? (const char *)out.data : hf_error_text());
    return HF_OK;
}

static hf_status go_on_whatever_comes(play *p)
{
    HF_TRY(go_on(p));
    HF_CHECK(events_seen == events_max);
    HF_CHECK_SAY(strstr(tap_log(p->tap), "FAILED") == NULL, "after event %zu: %s", events_max, tap_log(p->tap));
    p->len = 0;
    play_note(p, "it ended");
    return HF_OK;
}

static void recorded_histories_replay(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(RECORDINGS); i++) {
        current = &RECORDINGS[i];
        events_max = 0;
        print_message("%s\n", current->file);
        for (int cached = 0; cached < 2; cached++) {
            play_on((play_options){.add = add_all,
                                   .body = go_on,
                                   .open = open_fake,
                                   .worker = {.cached_max = cached == 0 ? HF_OFF : 0},
                                   .result = current->result,
                                   .log = current->log});
        }
    }
}

/* This version takes over in the middle: what it does in its first step must be what every later replay of it does, in which that
 * step is an old one. Without a cache each step is replayed by the next. */
static void every_part_of_a_recorded_history_can_be_gone_on_with(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(RECORDINGS); i++) {
        size_t len = 0;
        char *text = read_file(RECORDINGS[i].file, &len);
        size_t line = 0;
        current = &RECORDINGS[i];
        for (char *at = strchr(text, '\n'), *end = NULL; at != NULL && (end = strchr(at + 1, '\n')) != NULL; at = end) {
            *end = '\0'; /* one event per line */
            bool is_next_step = strstr(at + 1, "WORKFLOW_TASK_SCHEDULED") != NULL && line > 1;
            *end = '\n';
            events_max = line++;
            if (is_next_step) {
                play_on((play_options){.add = add_all,
                                       .body = go_on_whatever_comes,
                                       .open = open_fake,
                                       .worker = {.cached_max = HF_OFF},
                                       .result = "it ended"});
            }
        }
        free(text);
    }
}

/* ---- All histories, with the commands of every step ----------------------------------------------------------------------- */

enum { HISTORIES_MIN = 80, PREFIXES_MAX = 20, TEXT_LEN_MAX = 1 << 20 };

static const char *const FOLDERS[] = {".", "rules-2", "rules-5", "rules-6", "rules-8", "rules-10", "rules-11"};

static int is_history(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

/* A history and what its steps must do. */
typedef struct film {
    char name[300];
    char *json;
    size_t json_len;
    char *commands;
    reel *r;
} film;

static film open_film(const char *folder, const char *file)
{
    film f = {.json = NULL};
    char path[310];
    size_t len = 0;
    (void)snprintf(f.name, sizeof f.name, "%s/%.*s", folder, (int)strlen(file) - 5, file);
    (void)snprintf(path, sizeof path, "%s.json", f.name);
    f.json = read_file(path, &f.json_len);
    (void)snprintf(path, sizeof path, "%s.commands", f.name);
    f.commands = read_file(path, &len);
    assert_true(len > 0);
    f.r = reel_new(f.json, f.json_len);
    return f;
}

static void close_film(film *f)
{
    reel_free(f->r);
    free(f->commands);
    free(f->json);
}

static void each_film(void (*show)(const film *f))
{
    int total = 0;
    for (size_t i = 0; i < HF_COUNT_OF(FOLDERS); i++) {
        struct dirent **entries = NULL;
        char path[1000];
        (void)snprintf(path, sizeof path, "%s/%s", HF_REPLAY, FOLDERS[i]);
        int count = scandir(path, &entries, is_history, alphasort);
        for (int k = 0; k < count; k++, total++) {
            film f = open_film(FOLDERS[i], entries[k]->d_name);
            show(&f);
            close_film(&f);
            free(entries[k]);
        }
        free(entries);
    }
    print_message("%d histories\n", total);
    assert_true(total >= HISTORIES_MIN);
}

/* Where two texts differ: the lines of both. */
static void compare(const film *f, const char *how, const char *is, const char *wanted, size_t wanted_len)
{
    size_t i = 0;
    size_t line = 0;
    while (i < wanted_len && is[i] == wanted[i]) {
        line = is[i++] == '\n' ? i : line;
    }
    HF_CHECK_SAY(i == wanted_len && is[i] == '\0', "%s, %s: it made\n%.*s\nnot\n%.*s", f->name, how,
                 (int)strcspn(is + line, "\n"), is + line, (int)strcspn(wanted + line, "\n"), wanted + line);
}

static void show_old(const film *f)
{
    char *text = reel_play(f->r, REEL_WHOLE, 0);
    compare(f, "as a whole", text, f->commands, strlen(f->commands));
    free(text);
    text = reel_play(f->r, REEL_PAGES, 0);
    compare(f, "in pages", text, f->commands, strlen(f->commands));
    free(text);
}

static void old_steps_make_the_commands_that_they_made(void **state)
{
    (void)state;
    each_film(show_old);
}

/* The length of the commands of the first steps. */
static size_t len_of_steps(const film *f, size_t count)
{
    const char *at = f->commands;
    for (size_t i = 0; i < count && at != NULL; i++) {
        at = strstr(at + 1, "\nstep ");
    }
    return at != NULL ? (size_t)(at - f->commands) + 1 : strlen(f->commands);
}

/* The step at hand goes by the rules of this version. So its commands are those of the history only if these are its rules, too;
 * but the steps before it are old ones. Whatever it made, it must make again when it is an old one. */
static void show_until(const film *f, size_t step)
{
    char *text = NULL;
    reel *taken_over = reel_take_over(f->r, step, &text);
    char *again = reel_play(taken_over, REEL_WHOLE, 0);
    compare(f, "taken over", again, text, strlen(text));
    free(again);
    reel_free(taken_over);
    bool beats = reel_beats(f->r, step) || (step > 0 && reel_beats(f->r, step - 1));
    if (reel_is_of_today(f->r, step) && !beats) {
        compare(f, "up to a step", text, f->commands, len_of_steps(f, step + 1));
    } else {
        size_t len = len_of_steps(f, step);
        HF_CHECK_SAY(strstr(text, "FAILED") == NULL && strncmp(text, f->commands, len) == 0, "%s, up to step %zu: %s",
                     f->name, step + 1, text);
    }
    free(text);
}

static size_t of_today;

static void show_new(const film *f)
{
    size_t count = reel_count(f->r);
    size_t stride = 1 + count / PREFIXES_MAX;
    for (size_t step = 0; step < count; step += stride) {
        show_until(f, step);
    }
    show_until(f, count - 1);
    if (reel_is_of_today(f->r, 0) && !reel_beats(f->r, 0)) {
        char *text = reel_play(f->r, REEL_STICKY, 0);
        compare(f, "kept in memory", text, f->commands, strlen(f->commands));
        free(text);
        of_today++;
    }
}

static void steps_of_today_make_the_same_commands_as_old_ones(void **state)
{
    (void)state;
    of_today = 0;
    each_film(show_new);
    print_message("%zu of them by the rules of today\n", of_today);
    assert_true(of_today > 0);
}

/* ---- The checks themselves -------------------------------------------------------------------------------------------------- */

/* Words of events that come from commands. Another number in front of what follows them is another command. */
static const char *const COMMANDS[] = {
    "timerStartedEventAttributes\":{\"timerId\":\"",
    "timerCanceledEventAttributes\":{\"timerId\":\"",
    "activityTaskScheduledEventAttributes\":{\"activityId\":\"",
    "activityTaskCancelRequestedEventAttributes\":{\"scheduledEventId\":\"",
    "\"startToFireTimeout\":\"",
    "\"activityType\":{\"name\":\"",
};
static size_t altered[HF_COUNT_OF(COMMANDS)];

/* The history with one byte more at this place must be refused. */
static void show_altered(const film *f, size_t at, const char *what)
{
    film other = *f;
    char *json = malloc(f->json_len + 2);
    memcpy(json, f->json, at);
    json[at] = '7';
    memcpy(json + at + 1, f->json + at, f->json_len - at + 1);
    other.r = reel_new(json, f->json_len + 1);
    char *text = reel_play(other.r, REEL_WHOLE, 0);
    HF_CHECK_SAY(strstr(text, "FAILED 24 not deterministic") != NULL, "%s: another %s was not noticed", f->name, what);
    free(text);
    reel_free(other.r);
    free(json);
}

static void show_all_altered(const film *f)
{
    for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
        const char *at = strstr(f->json, COMMANDS[i]);
        if (at != NULL) {
            show_altered(f, (size_t)(at - f->json) + strlen(COMMANDS[i]), COMMANDS[i]);
            altered[i]++;
        }
    }
}

static void a_history_with_another_command_is_refused(void **state)
{
    (void)state;
    memset(altered, 0, sizeof altered);
    each_film(show_all_altered);
    for (size_t i = 0; i < HF_COUNT_OF(COMMANDS); i++) {
        print_message("%zu with another %s\n", altered[i], COMMANDS[i]);
        assert_true(altered[i] > 0);
    }
}

/* The commands of the history with another word in place of the first such one. */
static char *with(const film *f, const char *word, const char *instead)
{
    char *at = strstr(f->json, word);
    assert_non_null(at);
    size_t len = f->json_len + strlen(instead);
    char *json = calloc(1, len + 1);
    int used = snprintf(json, len + 1, "%.*s%s%s", (int)(at - f->json), f->json, instead, at + strlen(word));
    reel *r = reel_new(json, (size_t)used);
    char *text = reel_play(r, REEL_WHOLE, 0);
    reel_free(r);
    free(json);
    return text;
}

/* What no event of a command shows is in the commands: a result, an input, an option. */
static void another_result_makes_other_commands(void **state)
{
    (void)state;
    film f = open_film("rules-2", "many-steps.json");
    char *text = with(&f, "\"data\":\"MA==\"}]},\"scheduledEventId\"", "\"data\":\"MQ==\"}]},\"scheduledEventId\"");
    assert_null(strstr(text, "FAILED"));
    assert_string_not_equal(text, f.commands);
    free(text);
    close_film(&f);
    f = open_film("rules-2", "returns-input.json");
    text = with(&f, "ImluIg==", "Im91dCI=");
    assert_null(strstr(text, "FAILED"));
    assert_string_not_equal(text, f.commands);
    free(text);
    close_film(&f);
}

static void a_history_of_a_newer_version_fails_the_task(void **state)
{
    (void)state;
    static const uint32_t RULES[] = {HF_WF_RULE_LAST + 1, 31, 32, 33, UINT32_MAX, 0};
    film f = open_film("rules-2", "many-steps.json");
    for (size_t i = 0; i < HF_COUNT_OF(RULES); i++) {
        char flags[64];
        char wanted[100];
        (void)snprintf(flags, sizeof flags, "\"langUsedFlags\":[1,2,%u]", RULES[i]);
        (void)snprintf(wanted, sizeof wanted,
                       "written by a newer Holdfast: event 4, of holdfast-c 0.1.0, names rule %u,", RULES[i]);
        char *text = with(&f, "\"langUsedFlags\":[1,2]", flags);
        bool is_conflict = strncmp(text, "FAILED 24 ", 10) == 0; /* the code is not to blame */
        HF_CHECK_SAY(strncmp(text, "FAILED ", 7) == 0 && !is_conflict && strstr(text, wanted) != NULL, "%s", text);
        free(text);
    }
    char *text = with(&f, "\"langUsedFlags\":[1,2]", "\"coreUsedFlags\":[1001,1002,1031]");
    HF_CHECK_SAY(strncmp(text, "FAILED ", 7) == 0 && strstr(text, "names rule 31,") != NULL, "%s", text);
    free(text);
    close_film(&f);
}

/* Flags of other SDKs are theirs, and so are those of the part of our numbers that other SDKs know. */
static void flags_of_others_are_passed_over(void **state)
{
    (void)state;
    static const char *const THEIRS[] = {
        "\"langUsedFlags\":[1,2,31],\"sdkName\":\"temporal-typescript\"",
        "\"coreUsedFlags\":[1,2,3,2000],\"sdkName\":\"temporal-typescript\"",
        "\"coreUsedFlags\":[1,2,3,1001,1002],\"sdkName\":\"holdfast-c\"",
    };
    film f = open_film("rules-2", "many-steps.json");
    for (size_t i = 0; i < HF_COUNT_OF(THEIRS); i++) {
        char *text = with(&f, "\"langUsedFlags\":[1,2],\"sdkName\":\"holdfast-c\"", THEIRS[i]);
        HF_CHECK_SAY(strstr(text, "FAILED") == NULL, "%s", text);
        free(text);
    }
    close_film(&f);
}

/* A rule that comes late in a history: nothing of it is played, and its first steps are not either. */
static void a_rule_that_comes_late_fails_the_task_before_any_step(void **state)
{
    (void)state;
    film f = open_film("rules-2", "sleeps.json");
    char *text = with(&f, "\"startedEventId\":\"8\",\"identity\":\"1@sim@q\"",
                      "\"startedEventId\":\"8\",\"sdkMetadata\":{\"langUsedFlags\":[31],\"sdkName\":\"holdfast-c\"}");
    HF_CHECK_SAY(strncmp(text, "FAILED ", 7) == 0 && strstr(text, "written by a newer Holdfast: event 9") != NULL, "%s",
                 text);
    free(text);
    close_film(&f);
}

/* README.md has a row for each history. */
static char *readme;

static void find_row(const film *f)
{
    char name[310];
    bool is_storm = strstr(f->name, "/storm-") != NULL;
    (void)snprintf(name, sizeof name, "`%s`", is_storm ? "storm-NN" : strrchr(f->name, '/') + 1);
    HF_CHECK_SAY(strstr(readme, name) != NULL, "README.md does not name %s", name);
}

static void the_table_names_every_history(void **state)
{
    (void)state;
    size_t len = 0;
    readme = read_file("README.md", &len);
    each_film(find_row);
    free(readme);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(recorded_histories_replay),
        cmocka_unit_test(every_part_of_a_recorded_history_can_be_gone_on_with),
        cmocka_unit_test(old_steps_make_the_commands_that_they_made),
        cmocka_unit_test(steps_of_today_make_the_same_commands_as_old_ones),
        cmocka_unit_test(a_history_with_another_command_is_refused),
        cmocka_unit_test(another_result_makes_other_commands),
        cmocka_unit_test(a_history_of_a_newer_version_fails_the_task),
        cmocka_unit_test(flags_of_others_are_passed_over),
        cmocka_unit_test(a_rule_that_comes_late_fails_the_task_before_any_step),
        cmocka_unit_test(the_table_names_every_history),
    };
    return hf_test_main("replay", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
