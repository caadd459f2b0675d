/* Workflows and activities that crash, beside others that do not: `crash FOLDER`.
 *
 * The program is started again each time it dies, as a supervisor would do it. All the while it has a workflow whose code
 * crashes and one whose activity does; both take the process down whenever they get their turn. The others must come to their
 * end nevertheless, and the crashing ones must stay: they were acknowledged. */
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GOOD_COUNT = 8, LIVES_MAX = 15 };

static hf_service *service;
static hf_worker *worker;

static void die(void)
{
    (void)signal(SIGSEGV, SIG_DFL); /* sanitizers would talk about it */
    (void)raise(SIGSEGV);
}

static hf_status bad(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    die();
    return HF_OK;
}

static hf_status bad_part(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("die", in, ret_out, .start_to_close = hf_seconds(30));
}

static hf_status die_activity(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    die();
    return HF_OK;
}

static hf_status step(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    return hf_payload_printf(ret_out, "1");
}

static hf_status good(hf_payload in, hf_payload *ret_out)
{
    for (int i = 0; i < 5; i++) {
        HF_TRY(hf_activity_run("step", in, NULL, .start_to_close = hf_seconds(30)));
        HF_TRY(hf_sleep(hf_milliseconds(20)));
    }
    return hf_payload_printf(ret_out, "\"done\"");
}

static hf_status start(const char *type, const char *id)
{
    hf_status status = hf_start(service, type, hf_payload_none(), NULL, .id = id, .task_queue = "q",
                                .id_conflict = HF_ID_CONFLICT_USE_EXISTING, .id_reuse = HF_ID_REUSE_REJECT);
    return status == HF_ERR_EXISTS ? HF_OK : status; /* it has ended in an earlier life */
}

static hf_status client(void *arg)
{
    (void)arg;
    char id[16];
    HF_TRY(start("bad", "bad"));
    HF_TRY(start("bad_part", "bad_part"));
    for (int i = 0; i < GOOD_COUNT; i++) {
        (void)snprintf(id, sizeof id, "good-%d", i);
        HF_TRY(start("good", id));
    }
    for (int i = 0; i < GOOD_COUNT; i++) {
        HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
        (void)snprintf(id, sizeof id, "good-%d", i);
        HF_TRY(hf_execution_new(service, id, &execution));
        HF_TRY(hf_result(execution, NULL));
    }
    _exit(0); /* while the others are still there */
}

static hf_status app(void *arg)
{
    HF_AUTO(hf_close) hf_service *opened = NULL;
    HF_AUTO(hf_worker_free) hf_worker *made = NULL;
    HF_TRY(hf_open(arg, &opened));
    HF_TRY(hf_worker_new(opened, "q", &made));
    service = opened;
    worker = made;
    HF_TRY(hf_worker_add_workflow(made, "bad", bad));
    HF_TRY(hf_worker_add_workflow(made, "bad_part", bad_part));
    HF_TRY(hf_worker_add_workflow(made, "good", good));
    HF_TRY(hf_worker_add_activity(made, "step", step));
    HF_TRY(hf_worker_add_activity(made, "die", die_activity));
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, client, NULL));
    return hf_worker_run(made);
}

static int live(const char *address)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    hf_status status = hf_run(app, (void *)(uintptr_t)address);
    (void)fprintf(stderr, "%s: %s\n", hf_status_name(status), hf_error_text());
    return 2;
}

int main(int argc, char **argv)
{
    char address[400];
    if (argc < 2) {
        return 2;
    }
    (void)snprintf(address, sizeof address, "sqlite:%s/crash.db", argv[1]);
    if (argc > 2) {
        return live(address);
    }
    for (int life = 1; life <= LIVES_MAX; life++) {
        pid_t child = fork();
        if (child == 0) {
            (void)execl("/proc/self/exe", argv[0], argv[1], "live", (char *)NULL);
            _exit(3);
        }
        int status = 0;
        (void)waitpid(child, &status, 0);
        if (WIFEXITED(status)) {
            (void)printf("life %d ended with code %d\n", life, WEXITSTATUS(status));
            return WEXITSTATUS(status);
        }
        (void)printf("life %d was ended by signal %d\n", life, WTERMSIG(status));
    }
    (void)printf("FAILED: %d lives were not enough\n", LIVES_MAX);
    return 1;
}
