/* Recorded histories (see workflows.h) are played by this version: it must do what the version did that recorded them, up to their
 * end, and may go on in its own way from there. */
#include "replay/workflows.h"
#include "support/fake_service.h"
#include "unit/worker/play.h"

#include "base/base.h"

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

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(recorded_histories_replay),
        cmocka_unit_test(every_part_of_a_recorded_history_can_be_gone_on_with),
    };
    return hf_test_main("replay", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
