/* Connections: every operation is tried first and waits only when it would block, on the fiber's own thread.
 *
 *     hf_conn_open     name? --pool--> addresses --connect, wait until writable, ask how it went--> the first to work
 *     hf_conn_read     read; would block: wait, read again
 *     hf_conn_write    the same until all of it is written
 *
 * One reader and one writer at a time; closing from a third place is fine (handle.h). */
#include "fiber/io/conn.h"

#include "fiber/io/handle.h"
#include "fiber/verbs.h"

#include <stdio.h>
#include <string.h>

enum {
    HOST_LEN_MAX = 256, /* a name of the DNS has 253 bytes at most */
    PORT_LEN_MAX = 8,
    ADDRESSES_MAX = 8, /* of one name: tried in order, more would only wait longer */
    PAUSE_FIRST_NS = 1000000,
    PAUSE_MAX_NS = 50000000
};

struct hf_conn {
    hf_handle handle; /* first */
    bool is_owned;    /* by a process: hf_conn_close refuses */
    char peer[HF_ADDRESS_LEN_MAX];
};

static const hf_wait_kind READ = {"hf_conn_read", hf_fd_abort};
static const hf_wait_kind WRITE = {"hf_conn_write", hf_fd_abort};
static const hf_wait_kind WAIT = {"hf_conn_wait", hf_fd_abort};
static const hf_wait_kind OPEN = {"hf_conn_open", hf_fd_abort};

/* ---- Making and closing ------------------------------------------------------------------------------------------ */

hf_conn *hf_conn_wrap(hf_runtime *rt, int fd, const char *peer, bool is_owned)
{
    hf_conn *conn = hf_rt_alloc(rt, sizeof *conn);
    if (conn != NULL) {
        hf_handle_init(&conn->handle, rt, fd);
        conn->is_owned = is_owned;
        (void)snprintf(conn->peer, sizeof conn->peer, "%s", peer);
    }
    return conn;
}

/* By the last holder that lets go. */
static void release(hf_conn *conn)
{
    hf_runtime *rt = conn->handle.rt;
    hf_handle_end(&conn->handle);
    hf_rt_free(rt, conn, sizeof *conn);
}

void hf_conn_drop(hf_conn *conn)
{
    if (conn != NULL && hf_handle_close(&conn->handle)) {
        release(conn);
    }
}

hf_status hf_conn_close(hf_conn *conn)
{
    if (conn == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_conn_close, conn->handle.rt);
    if (conn->is_owned) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE,
                                 "%s belongs to its process: hf_process_close closes it, "
                                 "hf_process_close_in the input alone",
                                 conn->peer));
    }
    hf_conn_drop(conn);
    HF_LEAVE(self, HF_OK);
}

const char *hf_conn_peer(const hf_conn *conn)
{
    return conn != NULL ? conn->peer : "";
}

/* ---- Reading and writing ----------------------------------------------------------------------------------------- */

/* The deadline of the operation; computed only once it has to wait. */
static hf_instant deadline_of(hf_fiber *self, const hf_conn *conn, const hf_wait_options *options, hf_instant known)
{
    return known.ns != 0 ? known : hf_wait_deadline(self, conn->handle.rt, options);
}

static hf_status read_some(hf_fiber *self, hf_conn *conn, void *buf, size_t len, size_t *ret_len,
                           const hf_wait_options *options)
{
    hf_env *env = conn->handle.rt->env;
    hf_instant deadline = {0};
    for (;;) {
        size_t got = 0;
        hf_status status = env->ops->read(env, NULL, conn->handle.fd, buf, len, &got);
        if (HF_LIKELY(status == HF_OK)) {
            *ret_len = got;
            hf_handle_pace(self, &conn->handle, HF_READABLE);
            return HF_OK;
        }
        if (status != HF_ERR_AGAIN) {
            return hf_refuse_at(self, status, READ.verb, "cannot read from %s: %s", conn->peer, hf_status_text(status));
        }
        deadline = deadline_of(self, conn, options, deadline);
        HF_TRY(hf_handle_wait(self, &conn->handle, HF_READABLE, deadline, &READ, conn->peer));
    }
}

hf_status hf_conn_read_with(hf_conn *conn, void *buf, size_t len, size_t *ret_len, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_conn_read);
    HF_VERB_ENTER(self, hf_conn_read, conn != NULL ? conn->handle.rt : NULL);
    if (HF_UNLIKELY(conn == NULL || buf == NULL || len == 0 || ret_len == NULL)) {
        HF_LEAVE(self,
                 hf_refuse_at(self, HF_ERR_MISUSE, READ.verb, "a connection and room for at least 1 byte are needed"));
    }
    hf_status status = hf_handle_use(self, &conn->handle, HF_READABLE, READ.verb);
    if (status == HF_OK) {
        status = read_some(self, conn, buf, len, ret_len, options);
        if (hf_handle_done(&conn->handle, HF_READABLE)) {
            release(conn);
        }
    }
    HF_LEAVE(self, status);
}

static hf_status write_all(hf_fiber *self, hf_conn *conn, const void *buf, size_t len, const hf_wait_options *options)
{
    hf_env *env = conn->handle.rt->env;
    const unsigned char *at = buf;
    hf_instant deadline = {0};
    while (len > 0) {
        size_t put = 0;
        hf_status status = env->ops->write(env, NULL, conn->handle.fd, at, len, &put);
        if (HF_LIKELY(status == HF_OK)) {
            at += put;
            len -= put;
            hf_handle_pace(self, &conn->handle, HF_WRITABLE);
            continue;
        }
        if (status != HF_ERR_AGAIN) {
            return hf_refuse_at(self, status, WRITE.verb, "cannot write to %s: %s", conn->peer, hf_status_text(status));
        }
        deadline = deadline_of(self, conn, options, deadline);
        HF_TRY(hf_handle_wait(self, &conn->handle, HF_WRITABLE, deadline, &WRITE, conn->peer));
    }
    return HF_OK;
}

hf_status hf_conn_write_with(hf_conn *conn, const void *buf, size_t len, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_conn_write);
    HF_VERB_ENTER(self, hf_conn_write, conn != NULL ? conn->handle.rt : NULL);
    if (HF_UNLIKELY(conn == NULL || (buf == NULL && len > 0))) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, WRITE.verb, "a connection and bytes are needed"));
    }
    hf_status status = hf_handle_use(self, &conn->handle, HF_WRITABLE, WRITE.verb);
    if (status == HF_OK) {
        status = write_all(self, conn, buf, len, options);
        if (hf_handle_done(&conn->handle, HF_WRITABLE)) {
            release(conn);
        }
    }
    HF_LEAVE(self, status);
}

hf_status hf_conn_shutdown(hf_conn *conn)
{
    HF_VERB_ENTER(self, hf_conn_shutdown, conn != NULL ? conn->handle.rt : NULL);
    if (conn == NULL) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "no connection to shut down"));
    }
    if (!hf_handle_hold(&conn->handle)) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_CLOSED, "the connection is closed"));
    }
    hf_env *env = conn->handle.rt->env;
    hf_op op;
    hf_op_init(&op);
    hf_status status = env->ops->shutdown(env, &op, conn->handle.fd);
    if (status != HF_OK) {
        status = hf_op_end(self, &op);
    }
    if (hf_handle_done(&conn->handle, 0)) {
        release(conn);
    }
    HF_LEAVE(self, status);
}

/* ---- Without waiting --------------------------------------------------------------------------------------------- */

hf_status hf_conn_try_read(hf_conn *conn, void *buf, size_t len, size_t *ret_len)
{
    hf_env *env = conn->handle.rt->env;
    hf_assert(len > 0);
    return env->ops->read(env, NULL, conn->handle.fd, buf, len, ret_len);
}

hf_status hf_conn_try_write(hf_conn *conn, const void *buf, size_t len, size_t *ret_len)
{
    hf_env *env = conn->handle.rt->env;
    hf_assert(len > 0);
    return env->ops->write(env, NULL, conn->handle.fd, buf, len, ret_len);
}

hf_status hf_conn_wait(hf_conn *conn, int events, hf_instant deadline)
{
    hf_fiber *self = hf_enter(conn->handle.rt);
    if (self == NULL) {
        return hf_forked();
    }
    hf_assert(events != 0 && self->sched != NULL); /* on a fiber */
    hf_fd_user user = {&WAIT, conn->peer, &conn->handle.closed, false};
    hf_status status = hf_fd_wait_on(self, conn->handle.rt, conn->handle.fd, events, deadline, &user);
    hf_leave(self);
    return status;
}

void hf_conn_poke(hf_conn *conn)
{
    hf_fd_poke(conn->handle.rt, conn->handle.fd);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static hf_status finish_connect(hf_fiber *self, hf_runtime *rt, int fd, const char *address, hf_instant deadline)
{
    hf_env *env = rt->env;
    hf_fd_user user = {&OPEN, address, NULL, false};
    for (;;) {
        hf_status status = env->ops->connect_finish(env, NULL, fd);
        if (status == HF_OK) {
            return HF_OK;
        }
        if (status != HF_ERR_AGAIN) {
            return hf_refuse_at(self, status, OPEN.verb, "cannot connect to %s: %s", address, hf_status_text(status));
        }
        HF_TRY(hf_fd_wait_on(self, rt, fd, HF_WRITABLE, deadline, &user));
    }
}

/* HF_ERR_AGAIN: the queue of a unix listener is full, try again later. */
static hf_status connect_once(hf_fiber *self, hf_runtime *rt, const char *address, hf_instant deadline,
                              hf_conn **ret_conn)
{
    HF_TRY(hf_may_wait(self, OPEN.verb));
    hf_env *env = rt->env;
    int fd = -1;
    hf_op op;
    hf_op_init(&op);
    hf_status status = env->ops->connect(env, &op, address, &fd);
    if (status != HF_OK) {
        return hf_refuse_at(self, status, OPEN.verb, "%s", op.message);
    }
    status = finish_connect(self, rt, fd, address, deadline);
    hf_conn *conn = status == HF_OK ? hf_conn_wrap(rt, fd, address, false) : NULL;
    if (conn != NULL) {
        *ret_conn = conn;
        return HF_OK;
    }
    hf_fd_drop(rt, fd);
    env->ops->close(env, fd);
    return status != HF_OK ? status
                           : hf_refuse_at(self, HF_ERR_NOMEM, OPEN.verb, "no memory for a connection to %s", address);
}

/* Time left until a deadline, as a timeout: never 0, which would mean for ever. */
static hf_span left_until(hf_runtime *rt, hf_instant deadline)
{
    if (deadline.ns == INT64_MAX) {
        return HF_SPAN_UNLIMITED;
    }
    int64_t left = deadline.ns - hf_rt_now(rt).ns;
    return hf_nanoseconds(left > 0 ? left : -1);
}

/* Outside of a verb. */
static hf_status connect_to(hf_runtime *rt, const char *address, hf_instant deadline, hf_conn **ret_conn)
{
    for (int64_t pause = PAUSE_FIRST_NS;; pause = pause * 2 < PAUSE_MAX_NS ? pause * 2 : PAUSE_MAX_NS) {
        hf_fiber *self = hf_enter(rt);
        if (self == NULL) {
            return hf_forked();
        }
        hf_status status = connect_once(self, rt, address, deadline, ret_conn);
        hf_span left = left_until(rt, deadline);
        if (status == HF_ERR_AGAIN && left.ns < 0) {
            status = hf_refuse_at(self, HF_ERR_TIMEOUT, OPEN.verb, "%s takes no more connections now", address);
        }
        hf_leave(self);
        if (status != HF_ERR_AGAIN) {
            return status;
        }
        HF_TRY(hf_sleep(hf_nanoseconds(pause < left.ns ? pause : left.ns)));
    }
}

/* An address whose host is a name. */
typedef struct named {
    char host[HOST_LEN_MAX];
    char port[PORT_LEN_MAX];
} named;

static bool is_numeric(const char *host, size_t len)
{
    return len == 0 || host[0] == '[' || strspn(host, "0123456789.") >= len;
}

/* False: the address is numeric, local or malformed, and for the environment to read. */
static bool split_name(const char *address, named *ret_named)
{
    if (strncmp(address, "tcp:", 4) != 0) {
        return false;
    }
    const char *host = address + 4;
    const char *colon = strrchr(host, ':');
    if (colon == NULL || strlen(colon + 1) >= PORT_LEN_MAX || (size_t)(colon - host) >= HOST_LEN_MAX) {
        return false;
    }
    size_t len = (size_t)(colon - host);
    if (is_numeric(host, len) || memchr(host, ':', len) != NULL) {
        return false;
    }
    memcpy(ret_named->host, host, len);
    ret_named->host[len] = '\0';
    (void)snprintf(ret_named->port, sizeof ret_named->port, "%s", colon + 1);
    return true;
}

static hf_status connect_by_name(hf_runtime *rt, const named *name, hf_instant deadline, hf_conn **ret_conn)
{
    char hosts[ADDRESSES_MAX][HF_ADDRESS_LEN_MAX];
    size_t count = 0;
    HF_TRY(hf_resolve_on(rt, name->host, left_until(rt, deadline), hosts, ADDRESSES_MAX, &count));
    hf_status status = HF_ERR_NOT_FOUND;
    for (size_t i = 0; i < count; i++) {
        char address[HF_ADDRESS_LEN_MAX + 16];
        bool is_v6 = strchr(hosts[i], ':') != NULL;
        (void)snprintf(address, sizeof address, is_v6 ? "tcp:[%s]:%s" : "tcp:%s:%s", hosts[i], name->port);
        status = connect_to(rt, address, deadline, ret_conn);
        bool is_over = status == HF_OK || status == HF_ERR_CANCELED || status == HF_ERR_MISUSE;
        if (is_over || left_until(rt, deadline).ns < 0) {
            break;
        }
    }
    return status;
}

hf_status hf_conn_open_with(const char *address, hf_conn **ret_conn, const hf_connect_options *options)
{
    HF_OPTIONS(hf_connect_options, options, hf_conn_open);
    HF_VERB_ENTER(self, hf_conn_open, options->runtime);
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, options->runtime);
    if (rt != NULL && (ret_conn == NULL || address == NULL)) {
        (void)hf_fail(&op, HF_ERR_MISUSE, "hf_conn_open needs an address and a place for the connection");
    }
    hf_status status = hf_op_end(self, &op);
    hf_leave(self);
    if (status != HF_OK) {
        return status;
    }
    named name;
    hf_instant deadline = hf_rt_deadline(rt, options->timeout);
    return split_name(address, &name) ? connect_by_name(rt, &name, deadline, ret_conn)
                                      : connect_to(rt, address, deadline, ret_conn);
}
