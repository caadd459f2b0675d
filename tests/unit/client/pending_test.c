/* An activity that was left to others outlives its process: a worker dies by kill -9 while the activity is pending, and
 * another process answers it, by token or by id. The function runs once. */
/* labels: threads */
#include "unit/open/place.h"

#include <holdfast/answer.h>

#include <signal.h>
#include <sys/wait.h>

enum { TOKEN_MAX = 256 };

static int out_fd; /* the child tells the parent through this */

/* ---- The process that dies ---------------------------------------------------------------------------------------- */

static hf_status ask(hf_payload in, hf_payload *ret_out)
{
    (void)in;
    (void)ret_out;
    HF_AUTO(hf_payload_free) hf_payload token = hf_payload_none();
    HF_TRY(hf_activity_token(&token));
    return write(out_fd, token.data, token.len) == (ssize_t)token.len ? HF_PENDING : HF_ERR_IO;
}

static hf_status flow(hf_payload in, hf_payload *ret_out)
{
    return hf_activity_run("ask", in, ret_out, .start_to_close = hf_hours(1), .attempts_max = 1);
}

static hf_status run_worker(void *arg)
{
    return hf_worker_run(arg);
}

static hf_status add(hf_service *service, hf_worker **ret_worker)
{
    HF_TRY(hf_worker_new(service, "q", ret_worker));
    HF_TRY(hf_worker_add_workflow(*ret_worker, "flow", flow));
    return hf_worker_add_activity(*ret_worker, "ask", ask);
}

/* Waits until the engine has taken note that the process has left the activity. That word is the only heartbeat here. */
static hf_status await_left(hf_execution *execution)
{
    for (bool is_left = false; !is_left;) {
        hf_description *now = NULL;
        HF_TRY(hf_describe(execution, &now));
        is_left = now->activity_count == 1 && now->activities[0].heartbeat_time.ns != 0;
        hf_description_free(now);
        HF_TRY(hf_yield());
    }
    return HF_OK;
}

static hf_status die_pending(void *arg)
{
    const place *p = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_open(p->address, &service));
    HF_TRY(add(service, &worker));
    HF_TRY(hf_scope_open(&scope));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_start(service, "flow", hf_payload_none(), &execution, .id = "wf", .task_queue = "q"));
    HF_TRY(await_left(execution));
    (void)kill(getpid(), SIGKILL);
    return HF_ERR_FAILED;
}

/* Runs the child until it is dead. Returns the length of the token. */
static size_t live_and_die(place *p, char token[TOKEN_MAX])
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(fds[0]);
        out_fd = fds[1];
        _exit(hf_run(die_pending, p) == HF_OK ? 0 : 1);
    }
    (void)close(fds[1]);
    size_t len = 0;
    for (ssize_t got = 1; got > 0 && len < TOKEN_MAX; len += (size_t)(got > 0 ? got : 0)) {
        got = read(fds[0], token + len, TOKEN_MAX - len);
    }
    (void)close(fds[0]);
    int end = 0;
    assert_int_equal(waitpid(pid, &end, 0), pid);
    assert_true(WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL);
    assert_true(len > 0 && len < TOKEN_MAX);
    return len;
}

/* ---- The process that answers -------------------------------------------------------------------------------------- */

typedef struct act {
    place *p;
    hf_answer_target which;
    bool fails;
} act;

static hf_status answer(hf_service *service, const act *a)
{
    hf_cancel_why why = HF_WHY_GONE;
    HF_TRY(hf_answer_heartbeat(service, a->which, hf_payload_of_json("\"still here\""), &why));
    HF_CHECK(why == HF_WHY_NOT);
    return a->fails ? hf_answer_failed(service, a->which, "no", .type = "Refused")
                    : hf_answer(service, a->which, hf_payload_of_json("\"yes\""));
}

static hf_status go_on(void *arg)
{
    const act *a = arg;
    HF_AUTO(hf_close) hf_service *service = NULL;
    HF_AUTO(hf_worker_free) hf_worker *worker = NULL;
    HF_AUTO(hf_execution_free) hf_execution *execution = NULL;
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_AUTO(hf_payload_free) hf_payload out = hf_payload_none();
    HF_TRY(hf_open(a->p->address, &service));
    HF_TRY(add(service, &worker)); /* its activity would fail: out_fd is -1 */
    HF_TRY(hf_scope_open(&scope, .join = HF_JOIN_COLLECT));
    HF_TRY(hf_fork(scope, run_worker, worker));
    HF_TRY(hf_execution_new(service, "wf", &execution));
    HF_TRY(answer(service, a));
    hf_status status = hf_result(execution, &out);
    if (a->fails) {
        HF_CHECK_SAY(status == HF_ERR_FAILED && hf_error_find("Refused") != NULL, "%s", hf_error_text());
    } else {
        HF_CHECK_SAY(status == HF_OK && strcmp(out.data, "\"yes\"") == 0, "%s", hf_error_text());
    }
    HF_TRY(hf_worker_stop(worker));
    return hf_join(scope);
}

static void a_pending_activity_outlives_a_kill_of_its_process(void **state)
{
    place *p = *state;
    for (int i = 0; i < 4; i++) {
        char token[TOKEN_MAX];
        char path[160];
        size_t len = live_and_die(p, token);
        out_fd = -1;
        act a = {p, i % 2 == 0 ? hf_answer_to(hf_payload_of_bytes(token, len)) : hf_answer_to_id("wf", "1"), i >= 2};
        assert_int_equal(hf_run(go_on, &a), HF_OK);
        (void)snprintf(path, sizeof path, "%s", p->path);
        assert_int_equal(unlink(path), 0);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test_setup_teardown(a_pending_activity_outlives_a_kill_of_its_process, place_open, place_close),
    };
    return hf_test_main("pending", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
