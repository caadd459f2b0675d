/* The program that is killed: clients, workers and backups on one service, all in this process.
 *
 *     kill_child DATABASE LEDGER SEED CYCLE LOAD sends again what is in doubt, then works until it is killed
 *     kill_child DATABASE LEDGER SEED end        sends again what is in doubt, lets everything end, closes, exits with 0
 *
 * LOAD is plain, heavy (so much is written that checkpoints follow one another) or backup (one after the other). What it is about
 * to do, and when it is through with it, goes to a pipe (phase.h).
 *
 * Workers are in work.c. Clients use the service as it is, with request ids of their own, so that asking twice is
 * asking once. */
#include "kill/child.h"
#include "base/rng.h"
#include "kill/ledger.h"
#include "kill/phase.h"

#include "history/history.h"
#include "history/payload.h"
#include "open/open.h"
#include "service/call.h"

#include <holdfast/service.h>

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 4, WORKERS = 2, BIG_LEN = 40000, HUGE_LEN = 200000 };

static hf_service *service;
static const char *database;
static int ledger_fd = -1;
uint64_t child_seed;
static const char *cycle;
atomic_bool child_is_over;
static bool is_heavy;
static bool is_told; /* somebody reads the pipe */
static char big[HUGE_LEN];

const hf_str child_namespace = HF_STR_INIT("default");

void child_give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "kill_child: %s: %s\n", what, why);
    _exit(3);
}

/* ---- The ledger ------------------------------------------------------------------------------------------------------- */

void child_note(const char *format, ...)
{
    char line[200];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[len] = '\n';
    if (write(ledger_fd, line, (size_t)len + 1) != len + 1) {
        child_give_up("the ledger", "cannot be written");
    }
}

/* ---- The phases ------------------------------------------------------------------------------------------------------- */

static void tell(char phase)
{
    if (is_told && write(PHASE_FD, &phase, 1) != 1) {
        child_give_up("the pipe", "cannot be written");
    }
}

/* The linker puts this between the store and SQLite (--wrap in tests/CMakeLists.txt). */
int __wrap_sqlite3_wal_checkpoint_v2(sqlite3 *db, const char *schema, int mode, int *in_log, int *moved);
int __real_sqlite3_wal_checkpoint_v2(sqlite3 *db, const char *schema, int mode, int *in_log, int *moved);

int __wrap_sqlite3_wal_checkpoint_v2(sqlite3 *db, const char *schema, int mode, int *in_log, int *moved)
{
    tell(PHASE_CHECKPOINT);
    int rc = __real_sqlite3_wal_checkpoint_v2(db, schema, mode, in_log, moved);
    tell(PHASE_END(PHASE_CHECKPOINT));
    return rc;
}

/* Another child has left its log. */
static bool must_recover(void)
{
    char path[300];
    struct stat is;
    (void)snprintf(path, sizeof path, "%s-wal", database);
    return stat(path, &is) == 0 && is.st_size > 0;
}

static void open_service(void)
{
    char address[400];
    (void)snprintf(address, sizeof address, "sqlite:%s?mem=16M&log=256K", database);
    bool recovers = must_recover();
    if (recovers) {
        tell(PHASE_RECOVERY);
    }
    if (hf_open(address, &service) != HF_OK) {
        child_give_up(database, hf_error_text());
    }
    if (recovers) {
        tell(PHASE_END(PHASE_RECOVERY));
    }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------ */

void child_ask_init(child_asking *a)
{
    hf_arena_init(&a->arena, hf_env_memory(hf_env_posix()));
}

hf_status child_ask(child_asking *a, hf_method method, const void *request, bool run_ahead)
{
    hf_op_init(&a->op);
    hf_call_init(&a->call, method, request, &a->arena, NULL);
    a->call.in_process = true;
    a->call.run_ahead = run_ahead;
    a->call.timeout = hf_milliseconds(200);
    return hf_service_ask(&a->op, service, &a->call);
}

hf_pb_task_queue child_queue = {.name = HF_STR_INIT("q")};

static void start(child_asking *a, const char *id, bool is_again)
{
    if (!is_again) {
        child_note("s %s", id);
    }
    hf_arena_reset(&a->arena);
    hf_pb_workflow_type type = {.name = HF_STR("type")};
    hf_pb_start_workflow_execution_request request = {
        .namespace = child_namespace,
        .workflow_id = hf_str_of(id),
        .workflow_type = &type,
        .task_queue = &child_queue,
        .request_id = hf_str_of(id),
    };
    hf_status status = child_ask(a, HF_METHOD_START_WORKFLOW_EXECUTION, &request, false);
    if (status != HF_OK) {
        child_give_up(id, a->op.message);
    }
    const hf_pb_start_workflow_execution_response *response = a->call.response;
    child_note("S %s %.*s", id, HF_STR_ARGS(response->run_id));
}

/* A workflow may have ended meanwhile: then nothing is acknowledged. */
static void signal_it(child_asking *a, const char *id, unsigned n, bool is_big, bool is_again)
{
    if (!is_again) {
        child_note("g %s %u", id, n);
    }
    hf_arena_reset(&a->arena);
    char name[3] = {'s', (char)('0' + n), '\0'};
    char request_id[64];
    (void)snprintf(request_id, sizeof request_id, "%s-%u", id, n);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_signal_workflow_execution_request request = {
        .namespace = child_namespace,
        .workflow_execution = &execution,
        .signal_name = hf_str_of_len(name, 2),
        .request_id = hf_str_of(request_id),
        .input = hf_payloads_of(
            &a->arena, hf_payload_bytes(&a->arena, hf_str_of_len(big, is_big ? is_heavy ? HUGE_LEN : BIG_LEN : 100))),
    };
    hf_status status = child_ask(a, HF_METHOD_SIGNAL_WORKFLOW_EXECUTION, &request, false);
    if (status == HF_OK) {
        child_note("G %s %u", id, n);
    } else if (status != HF_ERR_NOT_FOUND) {
        child_give_up(id, a->op.message);
    }
}

static void cancel_it(child_asking *a, const char *id, bool is_again)
{
    if (!is_again) {
        child_note("c %s", id);
    }
    hf_arena_reset(&a->arena);
    char request_id[64];
    (void)snprintf(request_id, sizeof request_id, "%s-c", id);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_request_cancel_workflow_execution_request request = {
        .namespace = child_namespace,
        .workflow_execution = &execution,
        .request_id = hf_str_of(request_id),
    };
    hf_status status = child_ask(a, HF_METHOD_REQUEST_CANCEL_WORKFLOW_EXECUTION, &request, false);
    if (status == HF_OK) {
        child_note("C %s", id);
    } else if (status != HF_ERR_NOT_FOUND) {
        child_give_up(id, a->op.message);
    }
}

/* ---- Clients ---------------------------------------------------------------------------------------------------------- */

static void *client_main(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;
    hf_rng rng = {.state = hf_hash_mix(child_seed, number)};
    child_asking a;
    child_ask_init(&a);
    for (unsigned i = 0; !atomic_load(&child_is_over); i++) {
        char id[40];
        (void)snprintf(id, sizeof id, "%s-%u-%u", cycle, number, i);
        start(&a, id, false);
        bool cancels = hf_rng_below(&rng, 4) == 0;
        unsigned signals = (unsigned)hf_rng_below(&rng, cancels ? CHILD_SIGNALS : CHILD_SIGNALS + 1);
        for (unsigned n = 0; n < (cancels || hf_rng_below(&rng, 8) == 0 ? signals : CHILD_SIGNALS); n++) {
            signal_it(&a, id, n, hf_rng_below(&rng, is_heavy ? 2 : 8) == 0, false);
        }
        if (cancels) {
            cancel_it(&a, id, false);
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
    for (unsigned i = 0; !atomic_load(&child_is_over); i++) {
        char name[32];
        char path[300];
        (void)snprintf(name, sizeof name, "backup-%s-%u", cycle, i);
        (void)snprintf(path, sizeof path, "%s-%s", database, name);
        const char *args[] = {path};
        hf_op op;
        hf_op_init(&op);
        child_note("b %s", name);
        tell(PHASE_BACKUP);
        if (hf_admin_ask(&op, hf_env_posix(), database, "backup", args, 1, ignore_chunk, NULL) != HF_OK) {
            child_give_up(name, op.message);
        }
        tell(PHASE_END(PHASE_BACKUP));
        child_note("B %s", name);
    }
    return NULL;
}

/* ---- The program ------------------------------------------------------------------------------------------------------ */

static void send_again(const char *ledger_path)
{
    ledger l;
    ledger_read(&l, ledger_path);
    child_asking a;
    child_ask_init(&a);
    for (size_t i = 0; i < l.count; i++) {
        const entry *e = &l.entries[i];
        if (e->start.acked == 0) {
            start(&a, e->id, true);
        }
        for (unsigned n = 0; n < 10; n++) {
            if (e->signals[n].sent != 0 && e->signals[n].acked == 0) {
                signal_it(&a, e->id, n, false, true);
            }
        }
        if (e->cancel.sent != 0 && e->cancel.acked == 0) {
            cancel_it(&a, e->id, true);
        }
    }
    hf_arena_deinit(&a.arena);
    ledger_free(&l);
}

static bool has_ended(child_asking *a, const char *id)
{
    hf_arena_reset(&a->arena);
    hf_pb_workflow_execution execution = {.workflow_id = hf_str_of(id)};
    hf_pb_describe_workflow_execution_request request = {.namespace = child_namespace, .execution = &execution};
    if (child_ask(a, HF_METHOD_DESCRIBE_WORKFLOW_EXECUTION, &request, false) != HF_OK) {
        child_give_up(id, a->op.message);
    }
    const hf_pb_describe_workflow_execution_response *response = a->call.response;
    return response->workflow_execution_info->status != HF_WORKFLOW_EXECUTION_STATUS_RUNNING;
}

/* A workflow gets the signals that it still waits for. True: it has ended. */
static bool help(child_asking *a, const entry *e, bool is_first)
{
    for (unsigned n = 0; is_first && n < CHILD_SIGNALS; n++) {
        if (e->signals[n].sent == 0) {
            signal_it(a, e->id, n, false, false);
        }
    }
    if (has_ended(a, e->id)) {
        child_note("D %s", e->id);
        return true;
    }
    return false;
}

/* Everything that is open gets what it waits for, until all have ended. */
static void let_all_end(const char *ledger_path)
{
    child_asking a;
    child_ask_init(&a);
    size_t left = 1;
    for (int round = 0; left > 0; round++) {
        if (round == 2000) {
            child_give_up(database, "some workflows do not end");
        }
        ledger l;
        ledger_read(&l, ledger_path);
        left = 0;
        for (size_t i = 0; i < l.count; i++) {
            left += l.entries[i].end_acked != 0 || help(&a, &l.entries[i], round == 0) ? 0 : 1;
        }
        ledger_free(&l);
        struct timespec pause = {0, 5000000};
        (void)nanosleep(&pause, NULL);
    }
    hf_arena_deinit(&a.arena);
}

int main(int argc, char **argv)
{
    bool is_end = argc == 5 && strcmp(argv[4], "end") == 0;
    if (argc != 6 && !is_end) {
        return 2;
    }
    database = argv[1];
    child_seed = strtoull(argv[3], NULL, 10);
    cycle = argv[4];
    is_told = !is_end;
    is_heavy = !is_end && strcmp(argv[5], "heavy") == 0;
    ledger_fd = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (ledger_fd < 0) {
        child_give_up(argv[2], "cannot be written");
    }
    open_service();
    send_again(argv[2]);
    pthread_t threads[CLIENTS + 2 * WORKERS + 1];
    size_t count = 0;
    for (uintptr_t i = 0; i < WORKERS; i++) {
        (void)pthread_create(&threads[count++], NULL, child_workflows, (void *)i);
        (void)pthread_create(&threads[count++], NULL, child_activities, (void *)i);
    }
    if (!is_end) {
        for (uintptr_t i = 0; i < CLIENTS; i++) {
            (void)pthread_create(&threads[count++], NULL, client_main, (void *)i);
        }
        if (strcmp(argv[5], "backup") == 0) {
            (void)pthread_create(&threads[count++], NULL, backup_main, NULL);
        }
    } else {
        let_all_end(argv[2]);
        atomic_store(&child_is_over, true);
    }
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return hf_close(service) == HF_OK ? 0 : 3;
}
