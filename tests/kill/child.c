/* The program that is killed: clients, workers and backups on one service, all in this process.
 *
 *     kill_child DATABASE LEDGER SEED CYCLE LOAD sends again what is in doubt, then works until it is killed
 *     kill_child DATABASE LEDGER SEED end        sends again what is in doubt, lets everything end, closes, exits with 0
 *
 * LOAD is plain, heavy (so much is written that checkpoints follow one another) or backup (one after the other). What it is about
 * to do, and when it is through with it, goes to a pipe (phase.h).
 *
 * Clients are in clients.c, workers in work.c and flow.c. */
#include "kill/child.h"
#include "kill/phase.h"

#include "open/open.h"
#include "service/call.h"

#include <holdfast/service.h>

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CLIENTS = 4, WORKERS = 2 };

static hf_service *service;
static const char *database;
static int ledger_fd = -1;
uint64_t child_seed;
const char *child_cycle;
atomic_bool child_is_over;
bool child_is_heavy;
static bool is_told; /* somebody reads the pipe */

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

void child_phase(char phase)
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
    child_phase(PHASE_CHECKPOINT);
    int rc = __real_sqlite3_wal_checkpoint_v2(db, schema, mode, in_log, moved);
    child_phase(PHASE_END(PHASE_CHECKPOINT));
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
        child_phase(PHASE_RECOVERY);
    }
    if (hf_open(address, &service) != HF_OK) {
        child_give_up(database, hf_error_text());
    }
    if (recovers) {
        child_phase(PHASE_END(PHASE_RECOVERY));
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
        (void)snprintf(name, sizeof name, "backup-%s-%u", child_cycle, i);
        (void)snprintf(path, sizeof path, "%s-%s", database, name);
        const char *args[] = {path};
        hf_op op;
        hf_op_init(&op);
        child_note("b %s", name);
        child_phase(PHASE_BACKUP);
        if (hf_admin_ask(&op, hf_env_posix(), database, "backup", args, 1, ignore_chunk, NULL) != HF_OK) {
            child_give_up(name, op.message);
        }
        child_phase(PHASE_END(PHASE_BACKUP));
        child_note("B %s", name);
    }
    return NULL;
}

/* ---- The program ------------------------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    bool is_end = argc == 5 && strcmp(argv[4], "end") == 0;
    if (argc != 6 && !is_end) {
        return 2;
    }
    database = argv[1];
    child_seed = strtoull(argv[3], NULL, 10);
    child_cycle = argv[4];
    is_told = !is_end;
    child_is_heavy = !is_end && strcmp(argv[5], "heavy") == 0;
    ledger_fd = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (ledger_fd < 0) {
        child_give_up(argv[2], "cannot be written");
    }
    open_service();
    pthread_t threads[CLIENTS + 2 * WORKERS + 1];
    size_t count = 0;
    for (uintptr_t i = 0; i < WORKERS; i++) {
        (void)pthread_create(&threads[count++], NULL, child_workflows, (void *)i);
        (void)pthread_create(&threads[count++], NULL, child_activities, (void *)i);
    }
    child_send_again(argv[2], !is_end);
    if (!is_end) {
        for (uintptr_t i = 0; i < CLIENTS; i++) {
            (void)pthread_create(&threads[count++], NULL, child_client, (void *)i);
        }
        if (strcmp(argv[5], "backup") == 0) {
            (void)pthread_create(&threads[count++], NULL, backup_main, NULL);
        }
    } else {
        child_let_all_end(argv[2]);
        atomic_store(&child_is_over, true);
    }
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return hf_close(service) == HF_OK ? 0 : 3;
}
