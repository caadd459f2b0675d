/* The program that is killed: clients, workers and backups on one service, all in this process.
 *
 *     kill_child DATABASE LEDGER SEED CYCLE      sends again what is in doubt, then works until it is killed
 *     kill_child DATABASE LEDGER SEED end        sends again what is in doubt, lets everything end, closes, exits with 0
 *
 * A workflow's code is its history: the first task asks for an activity and a timer; when both are there and three signals it is
 * done; a cancel request ends it. Clients use the service as it is, with request ids of their own, so that asking twice is
 * asking once. */
#include "kill/ledger.h"

#include "history/history.h"
#include "history/payload.h"
#include "open/open.h"
#include "service/call.h"

#include <holdfast/service.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 4, WORKERS = 2, SIGNALS = 3, BIG_LEN = 40000, HUGE_LEN = 200000 };

static hf_service *service;
static const char *database;
static int ledger_fd = -1;
static uint64_t seed;
static const char *cycle;
static atomic_bool is_over;
static bool is_heavy; /* so much is written that checkpoints follow one another */
static char big[HUGE_LEN];

static const hf_str NS = HF_STR_INIT("default");

static void give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "kill_child: %s: %s\n", what, why);
    _exit(3);
}

/* ---- The ledger ------------------------------------------------------------------------------------------------------- */

static void note(const char *format, ...) HF_PRINTF(1, 2);
static void note(const char *format, ...)
{
    char line[200];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[len] = '\n';
    if (write(ledger_fd, line, (size_t)len + 1) != len + 1) {
        give_up("the ledger", "cannot be written");
    }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------ */

typedef struct asking {
    hf_arena arena;
    hf_op op;
    hf_call call;
} asking;

static void ask_init(asking *a)
{
    hf_arena_init(&a->arena, hf_env_memory(hf_env_posix()));
}

static hf_status ask(asking *a, hf_method method, const void *request, bool run_ahead)
{
    hf_op_init(&a->op);
    hf_call_init(&a->call, method, request, &a->arena, NULL);
    a->call.in_process = true;
    a->call.run_ahead = run_ahead;
    a->call.timeout = hf_milliseconds(200);
    return hf_service_ask(&a->op, service, &a->call);
}

static hf_pb_task_queue QUEUE = {.name = HF_STR_INIT("q")};

static void start(asking *a, const char *id, bool is_again)
{
    if (!is_again) {
        note("s %s", id);
    }
    hf_arena_reset(&a->arena);
    hf_pb_workflow_type type = {.name = HF_STR("type")};
    hf_pb_start_workflow_execution_request request = {
        .namespace = NS,
        .workflow_id = hf_str_of(id),
        .workflow_type = &type,
        .task_queue = &QUEUE,
        .request_id = hf_str_of(id),
    };
    hf_status status = ask(a, HF_METHOD_START_WORKFLOW_EXECUTION, &request, false);
    if (status != HF_OK) {
        give_up(id, a->op.message);
    }
    const hf_pb_start_workflow_execution_response *response = a->call.response;
    note("S %s %.*s", id, HF_STR_ARGS(response->run_id));
}

/* A workflow may have ended meanwhile: then nothing is acknowledged. */
static void signal_it(asking *a, const char *id, unsigned n, bool is_big, bool is_again)
{
    if (!is_again) {
        note("g %s %u", id, n);
    }
    hf_arena_reset(&a->arena);
    char name[3] = {'s', (char)('0' + n), '\0'};
    char request_id[64];
    (void)snprintf(request_id, sizeof request_id, "%s-%u", id, n);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_signal_workflow_execution_request request = {
        .namespace = NS,
        .workflow_execution = &execution,
        .signal_name = hf_str_of_len(name, 2),
        .request_id = hf_str_of(request_id),
        .input = hf_payloads_of(
            &a->arena, hf_payload_bytes(&a->arena, hf_str_of_len(big, is_big ? is_heavy ? HUGE_LEN : BIG_LEN : 100))),
    };
    hf_status status = ask(a, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &request, false);
    if (status == HF_OK) {
        note("G %s %u", id, n);
    } else if (status != HF_ERR_NOT_FOUND) {
        give_up(id, a->op.message);
    }
}

static void cancel_it(asking *a, const char *id, bool is_again)
{
    if (!is_again) {
        note("c %s", id);
    }
    hf_arena_reset(&a->arena);
    char request_id[64];
    (void)snprintf(request_id, sizeof request_id, "%s-c", id);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_request_cancel_workflow_execution_request request = {
        .namespace = NS,
        .workflow_execution = &execution,
        .request_id = hf_str_of(request_id),
    };
    hf_status status = ask(a, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, &request, false);
    if (status == HF_OK) {
        note("C %s", id);
    } else if (status != HF_ERR_NOT_FOUND) {
        give_up(id, a->op.message);
    }
}

/* ---- Clients ---------------------------------------------------------------------------------------------------------- */

static void *client_main(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;
    hf_rng rng = {.state = hf_hash_mix(seed, number)};
    asking a;
    ask_init(&a);
    for (unsigned i = 0; !atomic_load(&is_over); i++) {
        char id[40];
        (void)snprintf(id, sizeof id, "%s-%u-%u", cycle, number, i);
        start(&a, id, false);
        bool cancels = hf_rng_below(&rng, 4) == 0;
        unsigned signals = (unsigned)hf_rng_below(&rng, cancels ? SIGNALS : SIGNALS + 1);
        for (unsigned n = 0; n < (cancels || hf_rng_below(&rng, 8) == 0 ? signals : SIGNALS); n++) {
            signal_it(&a, id, n, hf_rng_below(&rng, is_heavy ? 2 : 8) == 0, false);
        }
        if (cancels) {
            cancel_it(&a, id, false);
        }
    }
    hf_arena_deinit(&a.arena);
    return NULL;
}

/* ---- Workers ---------------------------------------------------------------------------------------------------------- */

typedef struct seen {
    unsigned signals;
    bool is_begun, has_result, has_fired, is_canceled;
} seen;

static seen look_back(asking *a, hf_str history)
{
    seen s = {0};
    hf_str bytes = {0};
    while (hf_history_next(&history, &bytes)) {
        hf_pb_history_event event;
        if (hf_pb_decode(&a->op, &hf_pb_history_event_type, bytes, &a->arena, &event) != HF_OK) {
            give_up("a history", a->op.message);
        }
        s.signals += event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED ? 1 : 0;
        s.is_begun = s.is_begun || event.event_type == HF_EVENT_TYPE_ACTIVITY_TASK_SCHEDULED;
        s.has_result = s.has_result || event.event_type == HF_EVENT_TYPE_ACTIVITY_TASK_COMPLETED;
        s.has_fired = s.has_fired || event.event_type == HF_EVENT_TYPE_TIMER_FIRED;
        s.is_canceled = s.is_canceled || event.event_type == HF_EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED;
    }
    return s;
}

/* What the workflow does next; true = it ends. `count` commands are made. */
static bool decide(hf_arena *arena, const seen *s, hf_pb_command commands[2], size_t *count)
{
    *count = 0;
    if (s->is_canceled) {
        commands[(*count)++] = (hf_pb_command){
            .command_type = HF_COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION,
            .attributes_case = HF_PB_COMMAND_CANCEL_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
            .cancel_workflow_execution_command_attributes =
                HF_ARENA_NEW(arena, hf_pb_cancel_workflow_execution_command_attributes),
        };
        return true;
    }
    if (!s->is_begun) {
        hf_pb_schedule_activity_task_command_attributes *activity =
            HF_ARENA_NEW(arena, hf_pb_schedule_activity_task_command_attributes);
        hf_pb_start_timer_command_attributes *timer = HF_ARENA_NEW(arena, hf_pb_start_timer_command_attributes);
        activity->activity_id = HF_STR("a");
        activity->activity_type = HF_ARENA_NEW(arena, hf_pb_activity_type);
        activity->activity_type->name = HF_STR("work");
        activity->task_queue = &QUEUE;
        activity->start_to_close_timeout = hf_pb_duration_of(hf_seconds(60));
        activity->retry_policy = HF_ARENA_NEW(arena, hf_pb_retry_policy);
        activity->retry_policy->initial_interval = hf_pb_duration_of(hf_milliseconds(1));
        activity->retry_policy->maximum_interval = hf_pb_duration_of(hf_milliseconds(5));
        timer->timer_id = HF_STR("t");
        timer->start_to_fire_timeout = hf_pb_duration_of(hf_milliseconds(5));
        commands[(*count)++] = (hf_pb_command){
            .command_type = HF_COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
            .attributes_case = HF_PB_COMMAND_SCHEDULE_ACTIVITY_TASK_COMMAND_ATTRIBUTES,
            .schedule_activity_task_command_attributes = activity,
        };
        commands[(*count)++] = (hf_pb_command){
            .command_type = HF_COMMAND_TYPE_START_TIMER,
            .attributes_case = HF_PB_COMMAND_START_TIMER_COMMAND_ATTRIBUTES,
            .start_timer_command_attributes = timer,
        };
        return false;
    }
    if (s->has_result && s->has_fired && s->signals >= SIGNALS) {
        commands[(*count)++] = (hf_pb_command){
            .command_type = HF_COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
            .attributes_case = HF_PB_COMMAND_COMPLETE_WORKFLOW_EXECUTION_COMMAND_ATTRIBUTES,
            .complete_workflow_execution_command_attributes =
                HF_ARENA_NEW(arena, hf_pb_complete_workflow_execution_command_attributes),
        };
        return true;
    }
    return false;
}

/* A task may be gone by the time it is answered: canceled, timed out, or overtaken by a signal. */
static bool is_late(hf_status status)
{
    return status == HF_ERR_NOT_FOUND || status == HF_ERR_INVALID;
}

static void *workflow_main(void *arg)
{
    hf_rng rng = {.state = hf_hash_mix(seed, 1000 + (uintptr_t)arg)};
    asking a;
    ask_init(&a);
    while (!atomic_load(&is_over)) {
        hf_arena_reset(&a.arena);
        hf_pb_poll_workflow_task_queue_request poll = {.namespace = NS, .task_queue = &QUEUE};
        hf_status status = ask(&a, HF_METHOD_POLL_WORKFLOW_TASK_QUEUE, &poll, hf_rng_below(&rng, 2) == 0);
        const hf_pb_poll_workflow_task_queue_response *task = a.call.response;
        if (status != HF_OK || task->task_token.len == 0) {
            continue;
        }
        seen s = look_back(&a, task->history);
        hf_pb_command commands[2];
        hf_pb_respond_workflow_task_completed_request answer = {.namespace = NS, .task_token = task->task_token};
        bool is_end = decide(&a.arena, &s, commands, &answer.commands.count);
        answer.commands.items = commands;
        char id[40];
        (void)snprintf(id, sizeof id, "%.39s", hf_arena_copy(&a.arena, task->workflow_execution->workflow_id).data);
        status = ask(&a, HF_METHOD_RESPOND_WORKFLOW_TASK_COMPLETED, &answer, false);
        if (status == HF_OK && is_end) {
            note("D %s", id);
        } else if (status != HF_OK && !is_late(status)) {
            give_up(id, a.op.message);
        }
    }
    hf_arena_deinit(&a.arena);
    return NULL;
}

static void *activity_main(void *arg)
{
    hf_rng rng = {.state = hf_hash_mix(seed, 2000 + (uintptr_t)arg)};
    asking a;
    ask_init(&a);
    while (!atomic_load(&is_over)) {
        hf_arena_reset(&a.arena);
        hf_pb_poll_activity_task_queue_request poll = {.namespace = NS, .task_queue = &QUEUE};
        hf_status status = ask(&a, HF_METHOD_POLL_ACTIVITY_TASK_QUEUE, &poll, false);
        const hf_pb_poll_activity_task_queue_response *task = a.call.response;
        if (status != HF_OK || task->task_token.len == 0) {
            continue;
        }
        char id[40];
        (void)snprintf(id, sizeof id, "%.39s", hf_arena_copy(&a.arena, task->workflow_execution->workflow_id).data);
        if (hf_rng_below(&rng, 5) == 0 && task->attempt < 3) {
            hf_pb_respond_activity_task_failed_request answer = {
                .namespace = NS,
                .task_token = task->task_token,
                .failure = hf_failure_application(&a.arena, HF_STR("Busy"), HF_STR("not now"), false),
            };
            status = ask(&a, HF_METHOD_RESPOND_ACTIVITY_TASK_FAILED, &answer, false);
        } else {
            hf_pb_respond_activity_task_completed_request answer = {.namespace = NS, .task_token = task->task_token};
            status = ask(&a, HF_METHOD_RESPOND_ACTIVITY_TASK_COMPLETED, &answer, false);
            if (status == HF_OK) {
                note("R %s", id);
            }
        }
        if (status != HF_OK && !is_late(status)) {
            give_up(id, a.op.message);
        }
    }
    hf_arena_deinit(&a.arena);
    return NULL;
}

/* ---- Backups ---------------------------------------------------------------------------------------------------------- */

static void ignore_chunk(void *state, hf_str kind, hf_str chunk)
{
    (void)state;
    (void)kind;
    (void)chunk;
}

/* Through the socket, as a tool would. */
static void *backup_main(void *arg)
{
    (void)arg;
    for (unsigned i = 0; !atomic_load(&is_over); i++) {
        char name[32];
        char path[300];
        (void)snprintf(name, sizeof name, "backup-%s-%u", cycle, i);
        (void)snprintf(path, sizeof path, "%s-%s", database, name);
        const char *args[] = {path};
        hf_op op;
        hf_op_init(&op);
        note("b %s", name);
        if (hf_admin_ask(&op, hf_env_posix(), database, "backup", args, 1, ignore_chunk, NULL) != HF_OK) {
            give_up(name, op.message);
        }
        note("B %s", name);
    }
    return NULL;
}

/* ---- The program ------------------------------------------------------------------------------------------------------ */

static void send_again(const char *ledger_path)
{
    ledger l;
    ledger_read(&l, ledger_path, -1);
    asking a;
    ask_init(&a);
    for (size_t i = 0; i < l.count; i++) {
        const entry *e = &l.entries[i];
        if (e->start_sent && e->run_id[0] == '\0') {
            start(&a, e->id, true);
        }
        for (unsigned n = 0; n < 10; n++) {
            if ((e->signals_sent & ~e->signals_acked) >> n & 1) {
                signal_it(&a, e->id, n, false, true);
            }
        }
        if (e->cancel_sent && !e->cancel_acked) {
            cancel_it(&a, e->id, true);
        }
    }
    hf_arena_deinit(&a.arena);
    ledger_free(&l);
}

static bool has_ended(asking *a, const char *id)
{
    hf_arena_reset(&a->arena);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_describe_workflow_execution_request request = {.namespace = NS, .execution = &execution};
    if (ask(a, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, false) != HF_OK) {
        give_up(id, a->op.message);
    }
    const hf_pb_describe_workflow_execution_response *response = a->call.response;
    return response->workflow_execution_info->status != HF_WORKFLOW_EXECUTION_STATUS_RUNNING;
}

/* A workflow gets the signals that it still waits for. True: it has ended. */
static bool help(asking *a, const entry *e, bool is_first)
{
    for (unsigned n = 0; is_first && n < SIGNALS; n++) {
        if ((e->signals_sent >> n & 1) == 0) {
            signal_it(a, e->id, n, false, false);
        }
    }
    if (has_ended(a, e->id)) {
        note("D %s", e->id);
        return true;
    }
    return false;
}

/* Everything that is open gets what it waits for, until all have ended. */
static void let_all_end(const char *ledger_path)
{
    asking a;
    ask_init(&a);
    size_t left = 1;
    for (int round = 0; left > 0; round++) {
        if (round == 2000) {
            give_up(database, "some workflows do not end");
        }
        ledger l;
        ledger_read(&l, ledger_path, -1);
        left = 0;
        for (size_t i = 0; i < l.count; i++) {
            left += l.entries[i].end_acked || help(&a, &l.entries[i], round == 0) ? 0 : 1;
        }
        ledger_free(&l);
        struct timespec pause = {0, 5000000};
        (void)nanosleep(&pause, NULL);
    }
    hf_arena_deinit(&a.arena);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        return 2;
    }
    database = argv[1];
    seed = strtoull(argv[3], NULL, 10);
    cycle = argv[4];
    bool is_end = strcmp(cycle, "end") == 0;
    is_heavy = !is_end && seed % 6 == 1;
    ledger_fd = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    char address[400];
    (void)snprintf(address, sizeof address, "sqlite:%s?mem=16M&log=256K", database);
    if (ledger_fd < 0 || hf_open(address, &service) != HF_OK) {
        give_up(database, hf_error_text());
    }
    send_again(argv[2]);
    pthread_t threads[CLIENTS + 2 * WORKERS + 1];
    size_t count = 0;
    for (uintptr_t i = 0; i < WORKERS; i++) {
        (void)pthread_create(&threads[count++], NULL, workflow_main, (void *)i);
        (void)pthread_create(&threads[count++], NULL, activity_main, (void *)i);
    }
    if (!is_end) {
        for (uintptr_t i = 0; i < CLIENTS; i++) {
            (void)pthread_create(&threads[count++], NULL, client_main, (void *)i);
        }
        if (seed % 3 == 0) {
            (void)pthread_create(&threads[count++], NULL, backup_main, NULL);
        }
    } else {
        let_all_end(argv[2]);
        atomic_store(&is_over, true);
    }
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return hf_close(service) == HF_OK ? 0 : 3;
}
