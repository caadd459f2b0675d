/* A connection and its fiber.
 *
 *     connect --> TLS --> open: requests go out --> GOAWAY or no more streams: answers still come --> over
 *         |        |                |
 *         +--------+----------------+--> over: its attempts are lost, the manager opens the next line
 *
 * The fiber waits in one place, for bytes, for room to write, or for a time. Whoever has something to send writes it at once
 * (hf_line_flush): all of this runs on one thread (remote-R1). */
#include "remote/remote_private.h"

#include "fiber/io/conn.h"
#include "fiber/sched/wait.h"

#include <holdfast/io.h>

#include <stdio.h>

enum {
    READ_LEN = 64 * 1024,   /* bytes of one read */
    WRITE_LEN = 256 * 1024, /* bytes that the session makes before they are written */
    READS_MAX = 16          /* reads in a row before requests go out */
};

void hf_line_cut(hf_line *line, const char *why)
{
    if (!line->is_over) {
        line->is_over = true;
        line->is_open = false;
        (void)snprintf(line->why, sizeof line->why, "%s", why);
        if (line->is_asleep) {
            hf_fiber *self = hf_enter(NULL);
            hf_conn_poke(line->conn);
            hf_leave(self);
        }
    }
}

/* ---- Bytes ---------------------------------------------------------------------------------------------------------------- */

static void take_plain(hf_line *line, hf_str bytes)
{
    hf_op op;
    hf_op_init(&op);
    if (hf_h2_recv(&op, line->h2, bytes, line->heard_ns) != HF_OK) {
        hf_line_cut(line, op.message);
    }
}

static void take_sealed(hf_line *line, hf_str bytes)
{
    char plain[4096];
    size_t len = 0;
    hf_op op;
    hf_op_init(&op);
    hf_status status = bytes.len > 0 ? hf_tls_feed(&op, line->tls, bytes) : HF_OK;
    while (status == HF_OK && !line->is_over) {
        status = hf_tls_read(&op, line->tls, plain, sizeof plain, &len);
        if (status == HF_OK) {
            take_plain(line, hf_str_of_len(plain, len));
        }
    }
    if (status == HF_ERR_CLOSED) {
        hf_line_cut(line, "the server has closed the connection");
    } else if (status != HF_OK && status != HF_ERR_AGAIN) {
        hf_line_cut(line, op.message);
    }
    line->is_open |= !line->is_over && hf_tls_is_open(line->tls) && !line->has_left;
}

/* False: there was nothing to read. */
static bool read_some(hf_line *line)
{
    bool some = false;
    for (int i = 0; i < READS_MAX && line->may_read && !line->is_over; i++) {
        size_t len = 0;
        hf_status status = hf_conn_try_read(line->conn, line->buf, READ_LEN, &len);
        if (status == HF_ERR_AGAIN) {
            line->may_read = false;
        } else if (status != HF_OK) {
            hf_line_cut(line, hf_status_text(status));
        } else if (len == 0) {
            hf_line_cut(line, "the server has closed the connection");
        } else {
            hf_assert(len <= READ_LEN);
            some = true;
            line->heard_ns = hf_remote_now(line->remote);
            line->is_pinged = false;
            if (line->tls != NULL) {
                take_sealed(line, hf_str_of_len(line->buf, len));
            } else {
                take_plain(line, hf_str_of_len(line->buf, len));
            }
        }
    }
    return some;
}

/* The next bytes for the socket. */
static hf_status fill(hf_op *op, hf_line *line)
{
    if (line->tls == NULL) {
        return hf_h2_send(op, line->h2, &line->out, WRITE_LEN);
    }
    hf_status status = HF_OK;
    if (hf_tls_is_open(line->tls)) {
        hf_buf plain;
        hf_buf_init(&plain, line->remote->memory, SIZE_MAX / 2);
        status = hf_h2_send(op, line->h2, &plain, WRITE_LEN);
        if (status == HF_OK) {
            status = hf_tls_write(op, line->tls, hf_str_of_len(plain.data, plain.len));
        }
        hf_buf_deinit(&plain);
    }
    hf_tls_take(line->tls, &line->out);
    return status;
}

/* False: nothing was written. */
static bool write_some(hf_line *line)
{
    bool some = false;
    while (line->may_write && !line->is_over) {
        hf_op op;
        hf_op_init(&op);
        if (line->out_sent == line->out.len) {
            line->out.len = line->out_sent = 0;
            if (fill(&op, line) != HF_OK) {
                hf_line_cut(line, op.message);
                return true;
            }
        }
        if (line->out.len == 0) {
            break;
        }
        size_t len = 0;
        hf_assert(line->out_sent < line->out.len);
        hf_status status =
            hf_conn_try_write(line->conn, line->out.data + line->out_sent, line->out.len - line->out_sent, &len);
        if (status == HF_ERR_AGAIN) {
            line->may_write = false;
        } else if (status != HF_OK) {
            hf_line_cut(line, hf_status_text(status));
            return true;
        } else {
            line->out_sent += len;
            hf_assert(line->out_sent <= line->out.len); /* remote-R2: no byte goes out twice, or is passed over */
            line->taken_ns = hf_remote_now(line->remote);
            some = true;
        }
    }
    return some;
}

void hf_line_flush(hf_line *line)
{
    bool could = line->may_write;
    (void)write_some(line);
    if (could && !line->may_write && line->is_asleep) { /* its fiber does not wait for room yet */
        hf_fiber *self = hf_enter(NULL);
        hf_conn_poke(line->conn);
        hf_leave(self);
    }
}

bool hf_line_has_room(const hf_line *line)
{
    hf_assert(!line->is_open || !line->is_over);
    return line->is_open && line->attempt_count < hf_h2_streams_max(line->h2) &&
           hf_h2_out_len(line->h2) < HF_REMOTE_OUT_LEN_MAX;
}

/* ---- Time ------------------------------------------------------------------------------------------------------------------ */

static void min_of(int64_t *at, int64_t other)
{
    *at = other < *at ? other : *at;
}

/* Does what is due, and returns when the next thing is. */
static int64_t be_on_time(hf_line *line)
{
    int64_t now = hf_remote_now(line->remote);
    int64_t next = INT64_MAX;
    if (line->tls != NULL && !hf_tls_is_open(line->tls)) {
        if (now >= line->hello_ns) {
            hf_line_cut(line, "the TLS handshake took too long");
        }
        return line->hello_ns;
    }
    bool owes = hf_h2_out_len(line->h2) > 0 || line->out.len > line->out_sent;
    if (!owes) {
        line->taken_ns = now;
    } else {
        int64_t at = line->taken_ns + HF_REMOTE_STALL_SECONDS * HF_SECOND_NS;
        if (now >= at) {
            hf_line_cut(line, "the server does not take what is sent");
        }
        min_of(&next, at);
    }
    int64_t silence =
        line->heard_ns + (HF_REMOTE_PING_SECONDS + (line->is_pinged ? HF_REMOTE_PONG_SECONDS : 0)) * HF_SECOND_NS;
    if (now >= silence && line->is_pinged) {
        hf_line_cut(line, "the server does not answer a PING");
    } else if (now >= silence) {
        hf_h2_ping(line->h2);
        line->is_pinged = true;
        silence += HF_REMOTE_PONG_SECONDS * HF_SECOND_NS;
    }
    min_of(&next, silence);
    return next;
}

/* ---- Life ------------------------------------------------------------------------------------------------------------------ */

/* GOAWAY, or no more numbers for streams: new calls need another line. */
static void see_whether_it_leaves(hf_line *line)
{
    hf_remote *remote = line->remote;
    if (!line->has_left && (line->is_over || !hf_h2_may_request(line->h2))) {
        line->has_left = true;
        line->is_open = false;
        if (remote->line == line) {
            remote->line = NULL;
        }
    }
    hf_assert(!line->has_left || remote->line != line); /* new calls go elsewhere */
}

static bool is_finished(const hf_line *line)
{
    return line->is_over || (line->has_left && line->attempt_count == 0) || !hf_h2_is_live(line->h2);
}

static void serve(hf_line *line)
{
    line->may_read = line->may_write = true;
    if (line->tls != NULL) {
        take_sealed(line, (hf_str){0}); /* the first bytes are ours */
    } else {
        line->is_open = true;
    }
    for (;;) {
        int64_t next = INT64_MAX;
        bool more = true;
        while (more) {
            more = line->may_read && read_some(line);
            see_whether_it_leaves(line);
            hf_remote_turn(line->remote);
            next = be_on_time(line);
            more |= write_some(line);
        }
        if (is_finished(line)) {
            return;
        }
        int events = HF_READABLE | (line->may_write ? 0 : HF_WRITABLE);
        line->is_asleep = true;
        hf_status status = hf_conn_wait(line->conn, events, (hf_instant){next});
        line->is_asleep = false;
        if (status == HF_OK || status == HF_ERR_TIMEOUT) {
            line->may_read = line->may_write = true; /* perhaps: a try says more */
        } else {                                     /* the service is closed */
            line->is_dismissed = true;
            return;
        }
    }
}

static hf_status open_line(hf_op *op, hf_line *line)
{
    hf_remote *remote = line->remote;
    hf_h2_options options = {.is_client = true, .streams_max = 0};
    line->buf = remote->env->ops->allocate(remote->env, READ_LEN, 0);
    if (line->buf == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a connection");
    }
    if (hf_conn_open(remote->address, &line->conn, .timeout = hf_seconds(HF_REMOTE_CONNECT_SECONDS)) != HF_OK) {
        return hf_fail(op, hf_error()->status, "%s", hf_status_text(hf_error()->status));
    }
    HF_TRY(hf_h2_open(op, remote->memory, &options, &hf_attempt_events, line, &line->h2));
    if (remote->tls != NULL) {
        HF_TRY(hf_tls_connect(op, remote->tls, remote->server_name, remote->memory, &line->tls));
    }
    line->heard_ns = line->taken_ns = hf_remote_now(remote);
    line->hello_ns = line->heard_ns + HF_REMOTE_HELLO_SECONDS * HF_SECOND_NS;
    return HF_OK;
}

/* A server that is told may let go of what it keeps for us. */
static void say_goodbye(hf_line *line)
{
    if (line->h2 != NULL && !line->is_over) {
        hf_h2_goaway(line->h2, false);
        line->may_write = true;
        (void)write_some(line);
    }
}

static void lose_attempts(hf_line *line)
{
    hf_node *node = NULL;
    while ((node = hf_list_first(&line->attempts)) != NULL) {
        hf_attempt *attempt = HF_CONTAINER(node, hf_attempt, node);
        hf_h2_drop(&attempt->h2);
        hf_attempt_lost(attempt, !attempt->h2.is_sent);
    }
    hf_assert(line->attempt_count == 0 && line->in_len == 0); /* remote-R4 */
}

static void end_line(hf_line *line)
{
    hf_remote *remote = line->remote;
    say_goodbye(line);
    line->is_open = false;
    if (remote->line == line) {
        remote->line = NULL;
    }
    if (!line->is_dismissed && (!line->has_left || !line->has_answered || line->why[0] != '\0')) { /* it broke */
        hf_line_cut(line, "the server takes no calls"); /* if nothing else is known */
        (void)snprintf(remote->why, sizeof remote->why, "%s", line->why);
        int64_t pause = line->has_answered ? 0 : hf_remote_pause(remote, remote->failures++, HF_REMOTE_PAUSE_FIRST_MS);
        remote->try_ns = hf_remote_now(remote) + pause;
        if (remote->has_been && !remote->has_told) {
            remote->has_told = true;
            hf_remote_report(remote, HF_LOG_WARN, "server_lost", line->why);
        }
    }
    line->is_over = true;
    lose_attempts(line);
    hf_h2_close(line->h2);
    hf_tls_close(line->tls);
    (void)hf_conn_close(line->conn);
    hf_buf_deinit(&line->out);
    if (line->buf != NULL) {
        remote->env->ops->release(remote->env, line->buf, READ_LEN);
    }
    hf_list_remove(&line->node);
    remote->memory.release(remote->memory.state, line, sizeof *line);
    hf_remote_ring(remote);
}

static hf_status line_main(void *arg)
{
    hf_line *line = arg;
    hf_op op;
    hf_op_init(&op);
    if (open_line(&op, line) == HF_OK) {
        serve(line);
    } else {
        hf_line_cut(line, op.message);
    }
    end_line(line);
    return HF_OK;
}

hf_status hf_line_begin(hf_op *op, hf_remote *remote)
{
    hf_assert(remote->line == NULL && remote->scope != NULL); /* remote-R1: one line for new calls */
    hf_line *line = remote->memory.allocate(remote->memory.state, sizeof *line, 0);
    if (line == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a connection");
    }
    *line = (hf_line){.remote = remote};
    hf_list_init(&line->attempts);
    hf_buf_init(&line->out, remote->memory, SIZE_MAX / 2);
    hf_list_push_back(&remote->lines, &line->node);
    remote->line = line;
    if (hf_fork(remote->scope, line_main, line, .name = "connection") != HF_OK) {
        hf_status status = hf_fail(op, hf_error()->status, "%s", hf_error_text());
        hf_list_remove(&line->node);
        remote->line = NULL;
        remote->memory.release(remote->memory.state, line, sizeof *line);
        return status;
    }
    return HF_OK;
}
