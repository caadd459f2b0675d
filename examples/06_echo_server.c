/* An echo server that shuts down cleanly.
 *
 *     06_echo_server tcp:127.0.0.1:7007     serves until SIGTERM or SIGINT
 *     06_echo_server                        serves ten clients of its own and ends: a demonstration
 *
 *     app -- scope "server" -- accept_all -- scope "connections" -- echo, echo, echo, ...
 *
 * To shut down, for any reason, the program cancels the scope "server". Accepting ends at once. A
 * connection that waits for its client ends at once. A message that was read is still answered:
 * the reply is written inside a shield, for two seconds at most. When hf_join has returned,
 * every connection is closed. */
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { CLIENTS = 10, ROUNDS = 5, CONNS_MAX = 1000 };

typedef struct server {
    const char *address; /* to listen on */
    bool is_demo;        /* run clients of its own, then end */
    const char *bound;   /* the address with the real port */
} server;

static hf_status reply(hf_conn *conn, const char *buf, size_t len)
{
    HF_AUTO(hf_shield_close) hf_shield *shield = NULL;
    HF_TRY(hf_shield_open(hf_seconds(2), &shield));
    return hf_conn_write(conn, buf, len);
}

static hf_status echo(void *arg)
{
    HF_AUTO(hf_conn_close) hf_conn *conn = arg;
    for (;;) {
        char buf[1024];
        size_t len = 0;
        HF_TRY(hf_conn_read(conn, buf, sizeof buf, &len, .timeout = hf_minutes(1)));
        if (len == 0) {
            return HF_OK; /* the client is done */
        }
        HF_TRY(reply(conn, buf, len));
    }
}

static void hang_up(void *conn)
{
    (void)hf_conn_close(conn);
}

/* Results of connections are dropped and their failures logged: the scope may live for years. */
static hf_status accept_all(void *arg)
{
    hf_listener *listener = arg;
    HF_AUTO(hf_scope_close) hf_scope *conns = NULL;
    HF_TRY(hf_scope_open(&conns, .name = "connections", .join = HF_JOIN_DISCARD, .branches_max = CONNS_MAX));
    for (;;) {
        hf_conn *conn = NULL;
        hf_status status = hf_listener_accept(listener, &conn);
        if (status == HF_OK) {
            status = hf_fork(conns, echo, conn, .drop = hang_up); /* takes conn: echo or hang_up closes it */
        }
        if (status == HF_ERR_LIMIT) { /* too many at once: let some of them end */
            status = hf_sleep(hf_milliseconds(50));
        }
        HF_TRY(status);
    }
}

static hf_status wait_for_signal(void)
{
    static const int NUMBERS[] = {SIGTERM, SIGINT};
    HF_AUTO(hf_os_signals_close) hf_os_signals *signals = NULL;
    HF_TRY(hf_os_signals_open(NUMBERS, 2, &signals));
    int number = 0;
    HF_TRY(hf_os_signals_next(signals, &number));
    printf("signal %d: shutting down\n", number);
    return HF_OK;
}

/* ---- The demonstration's clients ------------------------------------------------------------- */

static hf_status ask(hf_conn *conn, const char *text, size_t len)
{
    char answer[64];
    HF_TRY(hf_conn_write(conn, text, len));
    for (size_t used = 0; used < len;) {
        size_t got = 0;
        HF_TRY(hf_conn_read(conn, answer + used, len - used, &got));
        if (got == 0) {
            return hf_raise(HF_ERR_CLOSED, "the server hung up");
        }
        if (memcmp(answer + used, text + used, got) != 0) {
            return hf_raise(HF_ERR_FAILED, "that is not what I said");
        }
        used += got;
    }
    return HF_OK;
}

static hf_status client(void *arg)
{
    const server *s = arg;
    HF_AUTO(hf_conn_close) hf_conn *conn = NULL;
    HF_TRY(hf_conn_open(s->bound, &conn, .timeout = hf_seconds(10)));
    for (int i = 0; i < ROUNDS; i++) {
        char text[64];
        int len = snprintf(text, sizeof text, "%s says hello for the %d. time", hf_conn_peer(conn), i + 1);
        HF_TRY(ask(conn, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1));
    }
    return HF_OK;
}

static hf_status run_clients(server *s)
{
    HF_AUTO(hf_scope_close) hf_scope *clients = NULL;
    HF_TRY(hf_scope_open(&clients, .name = "clients", .join = HF_JOIN_COLLECT));
    for (int i = 0; i < CLIENTS; i++) {
        HF_TRY(hf_fork(clients, client, s));
    }
    hf_status status = hf_join(clients); /* collect: one that fails does not stop the others, every failure is kept */
    printf("%llu of %d clients got their echoes\n", (unsigned long long)hf_scope_tally(clients).ok, CLIENTS);
    for (size_t i = 0; hf_scope_failure(clients, i) != NULL; i++) {
        printf("a client failed: %s\n", hf_scope_failure(clients, i)->message);
    }
    return status;
}

/* ---------------------------------------------------------------------------------------------- */

static hf_status app(void *arg)
{
    server *s = arg;
    HF_AUTO(hf_listener_close) hf_listener *listener = NULL;
    HF_TRY(hf_listener_open(s->address, &listener));
    s->bound = hf_listener_address(listener);
    printf("listening on %s\n", s->bound);

    HF_AUTO(hf_scope_close) hf_scope *serving = NULL;
    HF_TRY(hf_scope_open(&serving, .name = "server"));
    HF_TRY(hf_fork(serving, accept_all, listener, .name = "accept"));
    hf_status status = s->is_demo ? run_clients(s) : wait_for_signal();
    HF_TRY(hf_scope_cancel(serving, .reason = "shutting down"));
    hf_status end = hf_join(serving); /* canceled, as asked; any other status is a failure of the server */
    printf("all connections are closed\n");
    return end == HF_ERR_CANCELED ? status : end;
}

int main(int argc, char **argv)
{
    server s = {.address = argc > 1 ? argv[1] : "tcp:127.0.0.1:0", .is_demo = argc == 1};
    HF_OR_DIE(hf_run(app, &s));
    return 0;
}
