/* The program whose disk fails, and that is started again (kernel.sh).
 *
 *     kernel_starts DATABASE NAME COUNT
 *
 * Starts COUNT workflows with the ids NAME-0, NAME-1, ... and works on them. Each start that was acknowledged is a line
 * "acked ID", written before anything else happens in its fiber. After the last one it prints "all" and works until it is killed.
 * The first start that fails prints "refused" and ends the program with status 3. */
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CLIENTS = 4, REFUSED = 3 };

static hf_service *service;
static hf_worker *worker;
static const char *database;
static const char *name;
static long count;
static atomic_long next;
static atomic_long acked;
static atomic_bool is_refused;

/* One write per line, so that lines of several threads do not mix and none is left in a buffer when the program is killed. */
static void say(const char *word, const char *rest)
{
    char line[400];
    int len = snprintf(line, sizeof line, "%s%s%s\n", word, rest[0] != '\0' ? " " : "", rest);
    len = len < (int)sizeof line ? len : (int)sizeof line - 1;
    if (write(STDOUT_FILENO, line, (size_t)len) != len) {
        _exit(1);
    }
}

/* ---- The workflow ----------------------------------------------------------------------------------------------------- */

static hf_status pack(hf_payload in, hf_payload *ret_out)
{
    return hf_payload_printf(ret_out, "\"packed %s\"", in.data != NULL ? "it" : "nothing");
}

static hf_status order(hf_payload in, hf_payload *ret_out)
{
    HF_TRY(hf_activity_run("pack", in, NULL, .start_to_close = hf_seconds(20)));
    HF_TRY(hf_sleep(hf_milliseconds(20)));
    return hf_activity_run("pack", in, ret_out, .start_to_close = hf_seconds(20));
}

/* ---- The clients ------------------------------------------------------------------------------------------------------ */

static hf_status client(void *arg)
{
    (void)arg;
    for (long i = atomic_fetch_add(&next, 1); i < count; i = atomic_fetch_add(&next, 1)) {
        char id[100];
        (void)snprintf(id, sizeof id, "%s-%ld", name, i);
        hf_status status = hf_start(service, "order", hf_payload_of_json("{\"item\": \"kelp\"}"), NULL, .id = id,
                                    .task_queue = "orders", .id_reuse = HF_ID_REUSE_REJECT);
        if (status != HF_OK) {
            say("refused", hf_error_text());
            atomic_store(&is_refused, true);
            return hf_worker_stop(worker);
        }
        say("acked", id);
        if (atomic_fetch_add(&acked, 1) + 1 == count) {
            say("all", "");
        }
        HF_TRY(hf_sleep(hf_milliseconds(2)));
    }
    return HF_OK;
}

static hf_status program(void *arg)
{
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *made = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    char address[1000];
    (void)arg;
    (void)snprintf(address, sizeof address, "sqlite:%s", database);
    HF_TRY(hf_open(address, &opened));
    HF_TRY(hf_worker_new(opened, "orders", &made, .stop_on = SIGTERM, .shutdown_grace = hf_seconds(1)));
    service = opened;
    worker = made;
    HF_TRY(hf_worker_add_workflow(worker, "order", order));
    HF_TRY(hf_worker_add_activity(worker, "pack", pack));
    HF_TRY(hf_scope_open(&scope, .name = "clients"));
    for (int i = 0; i < CLIENTS; i++) {
        HF_TRY(hf_fork(scope, client, NULL));
    }
    return hf_worker_run(worker);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: kernel_starts DATABASE NAME COUNT\n");
        return 2;
    }
    database = argv[1];
    name = argv[2];
    count = strtol(argv[3], NULL, 10);
    hf_status status = hf_run(program, NULL, .watchdog = {.signal = SIGURG});
    if (status != HF_OK && !atomic_load(&is_refused)) {
        say("refused", hf_error_text());
    }
    return status == HF_OK && !atomic_load(&is_refused) ? 0 : REFUSED;
}
