/* Listeners, and waiting for descriptors that the user owns. */
#include "fiber/io/conn.h"
#include "fiber/io/handle.h"
#include "fiber/verbs.h"

#include <string.h>

enum { BACKLOG_DEFAULT = 128 };

struct hf_listener {
    hf_handle handle; /* first */
    char address[HF_ADDRESS_LEN_MAX];
};

static const hf_wait_kind ACCEPT = {"hf_listener_accept", hf_fd_abort};
static const hf_wait_kind FD_WAIT = {"hf_fd_wait", hf_fd_abort};

static void release(hf_listener *listener)
{
    hf_runtime *rt = listener->handle.rt;
    hf_handle_end(&listener->handle);
    hf_rt_free(rt, listener, sizeof *listener);
}

static hf_status listen_on(hf_runtime *rt, hf_op *op, const char *address, const hf_listen_options *options,
                           hf_listener **ret_listener)
{
    hf_env *env = rt->env;
    hf_listener *listener = hf_rt_alloc(rt, sizeof *listener);
    if (listener == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to listen on %s", address);
    }
    int fd = -1;
    int backlog = options->backlog > 0 ? options->backlog : BACKLOG_DEFAULT;
    hf_status status = env->ops->listen(env, op, address, backlog, options->replace, &fd, listener->address);
    if (status != HF_OK) {
        hf_rt_free(rt, listener, sizeof *listener);
        return status;
    }
    hf_handle_init(&listener->handle, rt, fd);
    *ret_listener = listener;
    return HF_OK;
}

hf_status hf_listener_open_with(const char *address, hf_listener **ret_listener, const hf_listen_options *options)
{
    HF_OPTIONS(hf_listen_options, options, hf_listener_open);
    HF_VERB_ENTER(self, hf_listener_open, options->runtime);
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, options->runtime);
    if (rt == NULL) {
        HF_LEAVE(self, hf_op_end(self, &op));
    }
    if (ret_listener == NULL || address == NULL) {
        HF_LEAVE(self,
                 hf_refuse(self, HF_ERR_MISUSE, "hf_listener_open needs an address and a place for the listener"));
    }
    hf_status status = listen_on(rt, &op, address, options, ret_listener);
    HF_LEAVE(self, status == HF_OK ? HF_OK : hf_refuse_at(self, status, "hf_listener_open", "%s", op.message));
}

static hf_status accept_failed(hf_fiber *self, const hf_listener *listener, hf_status status)
{
    if (status == HF_ERR_LIMIT) {
        return hf_refuse_at(
            self, status, ACCEPT.verb,
            "no descriptor is left for a connection to %s: it stays in the queue; close some, or raise the "
            "limit of open files, and accept again",
            listener->address);
    }
    return hf_refuse_at(self, status, ACCEPT.verb, "cannot accept on %s: %s", listener->address,
                        hf_status_text(status));
}

static hf_status accept_one(hf_fiber *self, hf_listener *listener, const hf_wait_options *options, hf_conn **ret_conn)
{
    hf_runtime *rt = listener->handle.rt;
    hf_env *env = rt->env;
    hf_instant deadline = {0};
    int fd = -1;
    char peer[HF_ADDRESS_LEN_MAX] = "";
    for (;;) {
        hf_status status = env->ops->accept(env, NULL, listener->handle.fd, &fd, peer);
        if (status == HF_OK) {
            break;
        }
        if (status != HF_ERR_AGAIN) {
            return accept_failed(self, listener, status);
        }
        deadline = deadline.ns != 0 ? deadline : hf_wait_deadline(self, rt, options);
        HF_TRY(hf_handle_wait(self, &listener->handle, HF_READABLE, deadline, &ACCEPT, listener->address));
    }
    hf_conn *conn = hf_conn_wrap(rt, fd, peer, false);
    if (conn == NULL) {
        env->ops->close(env, fd);
        return hf_refuse_at(self, HF_ERR_NOMEM, ACCEPT.verb, "no memory for a connection from %s", peer);
    }
    *ret_conn = conn;
    hf_handle_pace(self, &listener->handle, HF_READABLE);
    return HF_OK;
}

hf_status hf_listener_accept_with(hf_listener *listener, hf_conn **ret_conn, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_listener_accept);
    HF_VERB_ENTER(self, hf_listener_accept, listener != NULL ? listener->handle.rt : NULL);
    if (listener == NULL || ret_conn == NULL) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, ACCEPT.verb,
                                    "a listener and a place for the connection are "
                                    "needed"));
    }
    hf_status status = hf_handle_use(self, &listener->handle, HF_READABLE, ACCEPT.verb);
    if (status == HF_OK) {
        status = accept_one(self, listener, options, ret_conn);
        if (hf_handle_done(&listener->handle, HF_READABLE)) {
            release(listener);
        }
    }
    HF_LEAVE(self, status);
}

const char *hf_listener_address(const hf_listener *listener)
{
    return listener != NULL ? listener->address : "";
}

hf_status hf_listener_close(hf_listener *listener)
{
    if (listener == NULL) {
        return HF_OK;
    }
    HF_VERB_ENTER(self, hf_listener_close, listener->handle.rt);
    if (hf_handle_close(&listener->handle)) {
        release(listener);
    }
    HF_LEAVE(self, HF_OK);
}

/* ---- The user's own descriptors ---------------------------------------------------------------------------------- */

hf_status hf_fd_wait_with(int fd, int events, const hf_wait_options *options)
{
    HF_OPTIONS(hf_wait_options, options, hf_fd_wait);
    HF_VERB_ENTER(self, hf_fd_wait, NULL);
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, NULL);
    if (rt == NULL) {
        HF_LEAVE(self,
                 hf_refuse_at(self, HF_ERR_MISUSE, FD_WAIT.verb, "hf_fd_wait is for fibers: a plain thread has poll"));
    }
    if (fd < 0 || events == 0 || (events & ~(HF_READABLE | HF_WRITABLE)) != 0) {
        HF_LEAVE(self, hf_refuse_at(self, HF_ERR_MISUSE, FD_WAIT.verb,
                                    "an open descriptor, and HF_READABLE, HF_WRITABLE or both are needed"));
    }
    hf_fd_user user = {&FD_WAIT, "descriptor", NULL, true};
    HF_LEAVE(self, hf_fd_wait_on(self, rt, fd, events, hf_wait_deadline(self, rt, options), &user));
}

hf_status hf_fd_forget(int fd)
{
    HF_VERB_ENTER(self, hf_fd_forget, NULL);
    hf_op op;
    hf_op_init(&op);
    hf_runtime *rt = hf_rt_choose(&op, NULL);
    if (rt == NULL || fd < 0) {
        HF_LEAVE(self, hf_refuse(self, HF_ERR_MISUSE, "hf_fd_forget is for fibers, and for open descriptors"));
    }
    hf_fd_drop(rt, fd);
    HF_LEAVE(self, HF_OK);
}
