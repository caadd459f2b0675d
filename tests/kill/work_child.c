/* The program that is killed while its workers work: workflows, activities and clients on one service, all in this process.
 *
 *     work_child DATABASE LEDGER SEED CYCLE    starts workflows and disturbs them until it is killed
 *     work_child DATABASE LEDGER SEED end      lets all of them end, writes down their results, closes, exits with 0
 *
 * The workflows are those of support/storm.h and support/till.h: all that a run can do. Every timeout of a task is an hour: a
 * task that a killed process had in hand, and that does not go out again at the next opening, shows by that. The ledger has
 * what was done outside of the database, one line each, written at once:
 *
 *     a ID, A ID     a start is sent, was answered          C CHARGE, R CHARGE   a charge was made, was given back
 *     s ID N, S ID N the signal N is sent, was answered     D ID RESULT          the run has ended
 *                                                           H ID N               the signal N is in the history of its chain */
#include "support/storm.h"
#include "support/support.h"
#include "support/till.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/env.h"
#include "base/rng.h"
#include "service/call.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { CLIENTS = 3, STARTS = 6, SIGNALS = 20 };

static hf_service *service;
static int ledger_fd = -1;
static uint64_t seed;
static const char *cycle;
static const char *ledger_path;

static void give_up(const char *what)
{
    (void)fprintf(stderr, "work_child: %s: %s\n", what, hf_error_text());
    _exit(3);
}

static void must(hf_status status, const char *what)
{
    if (status != HF_OK) {
        give_up(what);
    }
}

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    char line[4000];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[len] = '\n';
    if (write(ledger_fd, line, (size_t)len + 1) != len + 1) {
        give_up("the ledger cannot be written");
    }
}

/* ---- Activities ------------------------------------------------------------------------------------------------------ */

static hf_status charge(hf_payload in, hf_payload *ret_out)
{
    uint64_t id = strtoull((const char *)in.data + 1, NULL, 10);
    uint64_t chance = hf_hash_mix(id, (uint64_t)hf_activity_info()->attempt);
    HF_TRY(hf_sleep(hf_milliseconds((int64_t)(chance % 4) * 3)));
    if (chance % 11 == 0) {
        return hf_raise_typed(HF_ERR_FAILED, "Flaky", "this attempt fails");
    }
    HF_TRY(hf_payload_printf(ret_out, "1"));
    note("C %" PRIu64, id);
    return HF_OK;
}

static hf_status refund(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_payload_printf(ret_out, "1"));
    note("R %" PRIu64, (uint64_t)strtoull((const char *)in.data + 1, NULL, 10));
    return HF_OK;
}

/* ---- Clients ----------------------------------------------------------------------------------------------------------- */

static void start_one(hf_rng *rng, const char *id, bool buys, hf_execution **ret_execution)
{
    char text[64];
    hf_start_options options = {.size = sizeof options, .id = id, .task_queue = "storm", .task_timeout = hf_hours(1)};
    (void)snprintf(text, sizeof text, "\"%" PRIu64 " 0\"", hf_rng_next(rng) >> 1);
    note("a %s", id);
    hf_status status =
        hf_start_with(service, buys ? "buy" : "program", hf_payload_of_json(text), ret_execution, &options);
    if (status == HF_ERR_EXISTS) {
        /* Nobody else starts this id. The answer was lost with the owner, and when the start was sent again, its run had continued as new:
         * the request id belongs to the first run (docs/guide/clients.md). */
        status = hf_execution_new(service, id, ret_execution);
    }
    must(status, "start");
    note("A %s", id);
}

/* What may be refused: the run may have ended. */
static void disturb(hf_rng *rng, hf_execution *execution, int number)
{
    char text[16];
    const char *id = hf_execution_id(execution);
    hf_status status = HF_OK;
    (void)snprintf(text, sizeof text, "%d", number);
    switch (hf_rng_below(rng, 8)) {
    case 0:
        HF_IGNORE(hf_query(execution, "state", hf_payload_none(), NULL, .timeout = hf_milliseconds(100)));
        break;
    case 1:
        HF_IGNORE(hf_update(execution, "up", hf_payload_of_json("4"), NULL, .timeout = hf_milliseconds(100)));
        break;
    case 2:
        HF_IGNORE(hf_signal(execution, "note", hf_payload_of_json("5")));
        break;
    case 3:
        if (hf_rng_below(rng, 3) == 0) {
            HF_IGNORE(hf_cancel(execution));
        }
        break;
    default:
        note("s %s %d", id, number);
        status = hf_signal(execution, "go", hf_payload_of_json(text), .request_id = text);
        if (status == HF_OK) {
            note("S %s %d", id, number);
        }
        break;
    }
}

static hf_status client(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    hf_rng rng = {hf_hash_mix(seed, me)};
    for (unsigned i = 0;; i++) {
        hf_execution *runs[STARTS] = {NULL};
        for (unsigned k = 0; k < STARTS; k++) {
            char id[64];
            (void)snprintf(id, sizeof id, "%s-%s-%u-%u-%u", k % 2 == 0 ? "buy" : "program", cycle, me, i, k);
            start_one(&rng, id, k % 2 == 0, &runs[k]);
        }
        for (int n = 0; n < SIGNALS; n++) {
            HF_TRY(hf_sleep(hf_milliseconds(2)));
            disturb(&rng, runs[hf_rng_below(&rng, STARTS)], n);
        }
        for (unsigned k = 0; k < STARTS; k++) {
            hf_execution_free(runs[k]);
        }
        HF_TRY(hf_sleep(hf_milliseconds(200))); /* so that some runs end */
    }
}

/* ---- The end ------------------------------------------------------------------------------------------------------------ */

/* One page of the history of a run. `*token` becomes that of the next page, or empty; `next` is the run after this one. */
static void read_page(hf_arena *arena, const char *id, const char *run_id, hf_str *token, char first[40], char next[40])
{
    hf_op op;
    hf_op_init(&op);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id), .run_id = hf_str_of(run_id)};
    hf_pb_get_workflow_execution_history_request request = {
        .namespace = HF_STR("default"), .execution = &execution, .next_page_token = *token};
    hf_pb_history history = {0};
    hf_call call;
    hf_call_init(&call, HF_METHOD_GET_WORKFLOW_EXECUTION_HISTORY, &request, arena, NULL);
    must(hf_service_ask(&op, service, &call), id);
    const hf_pb_get_workflow_execution_history_response *response = call.response;
    must(hf_pb_decode(&op, &hf_pb_history_type, response->history, arena, &history), id);
    for (size_t i = 0; i < history.events.count; i++) {
        const hf_pb_history_event *event = &history.events.items[i];
        if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_STARTED) {
            (void)snprintf(first, 40, "%.*s",
                           HF_STR_ARGS(event->workflow_execution_started_event_attributes->first_execution_run_id));
        } else if (event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW) {
            (void)snprintf(
                next, 40, "%.*s",
                HF_STR_ARGS(event->workflow_execution_continued_as_new_event_attributes->new_execution_run_id));
        } else if (run_id[0] != '\0' && event->event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED &&
                   hf_str_equal(event->workflow_execution_signaled_event_attributes->signal_name, HF_STR("go"))) {
            const hf_pb_payloads *in = event->workflow_execution_signaled_event_attributes->input;
            if (in != NULL && in->payloads.count > 0) { /* those of other workflows have none */
                note("H %s %.*s", id, HF_STR_ARGS(in->payloads.items[0].data));
            }
        }
    }
    *token = response->next_page_token;
}

/* Writes down which signals are in the histories of all runs of its chain. */
static void read_signals(const char *id)
{
    char first[40] = "";
    char run_id[40] = "";
    char next[40] = "";
    hf_arena arena;
    hf_str token = {NULL, 0};
    hf_arena_init(&arena, hf_env_memory(hf_env_posix()));
    read_page(&arena, id, "", &token, first, next); /* of the newest one: which was the first? */
    (void)snprintf(run_id, sizeof run_id, "%s", first);
    token = (hf_str){NULL, 0};
    while (run_id[0] != '\0') {
        next[0] = '\0';
        do {
            read_page(&arena, id, run_id, &token, first, next);
        } while (token.len > 0);
        (void)snprintf(run_id, sizeof run_id, "%s", next);
    }
    hf_arena_deinit(&arena);
}

static void tell_end(const char *id)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    must(hf_execution_new(service, id, &execution), id);
    HF_IGNORE(hf_signal(execution, "end", hf_payload_none()));
}

static void end_one(const char *id)
{
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    must(hf_execution_new(service, id, &execution), id);
    hf_status status = hf_result(execution, &out, .timeout = hf_minutes(8));
    if (status == HF_ERR_NOT_FOUND) {
        note("D %s none", id); /* its start was in doubt */
        return;
    }
    bool is_canceled = status == HF_ERR_FAILED && strcmp(hf_error()->type, "WorkflowCanceled") == 0;
    if (status != HF_OK && !is_canceled) {
        give_up(id);
    }
    note("D %s %s", id, is_canceled ? "canceled" : (const char *)out.data);
    read_signals(id);
}

/* Every run that was ever begun. */
static void each_run(void (*what)(const char *id))
{
    char line[4200];
    FILE *file = fopen(ledger_path, "r");
    if (file == NULL) {
        give_up("the ledger cannot be read");
    }
    long until = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    rewind(file);
    while (ftell(file) < until && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "a ", 2) == 0) {
            line[strcspn(line, "\n")] = '\0';
            what(line + 2);
        }
    }
    (void)fclose(file);
}

/* ---- The program ------------------------------------------------------------------------------------------------------- */

static hf_status work(void *worker)
{
    return hf_worker_run(worker);
}

static bool never;

static hf_status add_all(hf_worker *storm, hf_worker *other)
{
    HF_TRY(hf_worker_add_workflow(storm, "program", storm_program));
    HF_TRY(hf_worker_add_workflow(storm, "buy", till_program));
    HF_TRY(hf_worker_add_activity(storm, "local", storm_local, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(storm, "ponder", till_ponder, .on_fiber = true));
    HF_TRY(hf_worker_add_activity(other, "act", storm_act));
    HF_TRY(hf_worker_add_activity(other, "charge", charge, .on_fiber = true));
    return hf_worker_add_activity(other, "refund", refund, .on_fiber = true);
}

static hf_status program(void *arg)
{
    bool is_end = *(const bool *)arg;
    HF_AUTO(hf_worker_free) hf_worker *storm = NULL;
    HF_AUTO(hf_worker_free) hf_worker *other = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    till_open(false, &never);
    HF_TRY(hf_worker_new(service, "storm", &storm, .cached_max = is_end ? 0 : (int)(seed % 3) - 1,
                         .activities_max = HF_OFF));
    HF_TRY(hf_worker_new(service, "other", &other));
    HF_TRY(add_all(storm, other));
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, work, storm));
    HF_TRY(hf_fork(scope, work, other));
    if (!is_end) {
        for (uintptr_t i = 0; i < CLIENTS; i++) {
            HF_TRY(hf_fork(scope, client, (void *)i));
        }
        return hf_join(scope);
    }
    each_run(tell_end);
    each_run(end_one);
    HF_TRY(hf_worker_stop(storm));
    HF_TRY(hf_worker_stop(other));
    return hf_join(scope);
}

int main(int argc, char **argv)
{
    char address[400];
    if (argc != 5) {
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive the test */
    ledger_path = argv[2];
    seed = strtoull(argv[3], NULL, 10);
    cycle = argv[4];
    bool is_end = strcmp(cycle, "end") == 0;
    bool is_shared = getenv("WORK_SHARE") != NULL; /* two of them on one file (work_drive share) */
    (void)snprintf(address, sizeof address, "sqlite:%s?mem=16M&log=256K%s", argv[1], is_shared ? "&share=yes" : "");
    must(hf_open(address, &service), "open");
    hf_status prepared = HF_OK;
    do { /* it is not sent twice by itself; but adding an attribute again changes nothing */
        prepared = storm_prepare(service);
    } while (is_shared && prepared == HF_ERR_UNAVAILABLE);
    must(prepared, "search attribute");
    ledger_fd = open(ledger_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (ledger_fd < 0) {
        give_up(argv[2]);
    }
    must(hf_run(program, &is_end, .threads = 2), "run");
    must(hf_close(service), "close");
    return hf_checks_failed() == 0 ? 0 : 3;
}
