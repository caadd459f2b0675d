/* Child processes: started by argv, never through a shell; read with back-pressure; killed when
 * their time is over.
 *
 * They belong to the function that started them: when it returns, by any path, HF_AUTO(hf_process_close)
 * kills the whole group and waits for its end. If this program itself is killed, a small helper
 * process notices it and kills them. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <string.h>

/* A lot of output and a slow reader: output that was not read yet stays in the pipe, and the child
 * waits for room in it. */
static hf_status count_lines(void)
{
    static const char *const ARGV[] = {"seq", "1", "20000", NULL};
    HF_AUTO(hf_process_close) hf_process *child = NULL;
    HF_TRY(hf_process_start(ARGV, &child, .out = HF_STDIO_PIPE));
    size_t lines = 0;
    size_t bytes = 0;
    size_t len = 0;
    do {
        char buf[4096];
        HF_TRY(hf_conn_read(hf_process_out(child), buf, sizeof buf, &len));
        for (size_t i = 0; i < len; i++) {
            lines += buf[i] == '\n';
        }
        bytes += len;
        HF_TRY(hf_sleep(hf_milliseconds(1)));
    } while (len > 0);
    hf_exit end;
    HF_TRY(hf_process_wait(child, &end));
    printf("seq wrote %zu lines, %zu bytes, and exited with %d\n", lines, bytes, end.code);
    return HF_OK;
}

/* Talks to a child through its standard input and output. */
static hf_status sort_words(void)
{
    static const char *const ARGV[] = {"sort", NULL};
    static const char WORDS[] = "scope\nfiber\nchannel\n";
    HF_AUTO(hf_process_close) hf_process *child = NULL;
    HF_TRY(hf_process_start(ARGV, &child, .in = HF_STDIO_PIPE, .out = HF_STDIO_PIPE));
    HF_TRY(hf_conn_write(hf_process_in(child), WORDS, strlen(WORDS)));
    HF_TRY(hf_process_close_in(child));
    char sorted[64] = "";
    size_t used = 0;
    size_t len = 0;
    do {
        HF_TRY(hf_conn_read(hf_process_out(child), sorted + used, sizeof sorted - 1 - used, &len));
        used += len;
    } while (len > 0 && used < sizeof sorted - 1);
    for (size_t i = 0; i < used; i++) {
        sorted[i] = sorted[i] == '\n' ? ' ' : sorted[i];
    }
    printf("sort says: %s\n", sorted);
    return HF_OK;
}

static hf_status sleep_long(void *arg)
{
    static const char *const ARGV[] = {"sleep", "1000", NULL};
    int64_t *pid = arg;
    HF_AUTO(hf_process_close) hf_process *child = NULL;
    HF_TRY(hf_process_start(ARGV, &child));
    *pid = hf_process_pid(child);
    hf_exit end;
    return hf_process_wait(child, &end); /* fails at the deadline; leaving the function kills the child */
}

/* A deadline is the scope's business, not the child's. */
static hf_status kill_at_deadline(void)
{
    int64_t pid = 0;
    hf_instant start = hf_now(NULL);
    HF_AUTO(hf_scope_close) hf_scope *scope = NULL;
    HF_TRY(hf_scope_open(&scope, .name = "bounded", .timeout = hf_milliseconds(200)));
    HF_TRY(hf_fork(scope, sleep_long, &pid, .name = "sleep"));
    hf_status status = hf_join(scope);
    printf("sleep 1000 was %s after %lld ms: %s\n", pid != 0 ? "killed" : "not even started",
           (long long)((hf_now(NULL).ns - start.ns) / 1000000), hf_status_text(status));
    return status == HF_ERR_TIMEOUT ? HF_OK : status;
}

static hf_status app(void *arg)
{
    (void)arg;
    HF_TRY(count_lines());
    HF_TRY(sort_words());
    return kill_at_deadline();
}

int main(void)
{
    HF_OR_DIE(hf_run(app, NULL));
    return 0;
}
