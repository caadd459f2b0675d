/* A tool's side of the owner's socket: one connection, one request, then the pieces of the answer. */
#include "open/open.h"

#include "base/arena.h"

enum {
    PATIENCE_S = 60, /* seconds to wait for the next piece; during long work an owner sends empty pieces */
    RETRY_MS = 5,    /* between two attempts to connect to a socket whose queue is full */
};

static hf_instant patience(hf_env *env)
{
    return (hf_instant){env->ops->now(env).ns + hf_seconds(PATIENCE_S).ns};
}

/* If the owner closes the file meanwhile, or dies, the connection ends: says so. */
static hf_status unless_gone(hf_op *op, hf_status status, const char *path)
{
    return status == HF_ERR_RESET || status == HF_ERR_CLOSED
               ? hf_fail(op, HF_ERR_CLOSED, "the program that had %s open has closed it meanwhile, or ended: try again",
                         path)
               : status;
}

static hf_status converse(hf_op *op, hf_wire *wire, const char *path, const hf_pb_admin_request *request,
                          hf_admin_chunk *chunk, void *state)
{
    hf_arena arena;
    hf_arena_init(&arena, hf_env_memory(wire->env));
    hf_status status = hf_frame_write(op, wire, &hf_pb_admin_request_type, request, arena.memory);
    status = unless_gone(op, status, path);
    bool is_last = false;
    while (status == HF_OK && !is_last) {
        hf_arena_reset(&arena);
        hf_pb_admin_response response = {0};
        wire->deadline = patience(wire->env);
        status = hf_frame_read(op, wire, &hf_pb_admin_response_type, HF_FRAME_RESPONSE_MAX, &arena, &response);
        status = unless_gone(op, status, path);
        if (status == HF_OK && response.status != HF_OK) {
            status = (hf_status)response.status;
            bool says_why = response.message.len > 0 && response.message.data[0] != '\0';
            hf_str why = says_why ? response.message : hf_str_of(hf_status_text(status));
            status = hf_fail(op, status, "%.*s", HF_STR_ARGS(why));
        } else if (status == HF_OK) {
            chunk(state, response.kind, response.chunk);
            is_last = response.last;
        }
    }
    hf_arena_deinit(&arena);
    return status;
}

static hf_status connect_to(hf_op *op, hf_wire *wire, const char *path)
{
    hf_env *env = wire->env;
    char address[HF_PATH_LEN_MAX];
    hf_beside_socket(path, address);
    hf_op tried;
    hf_op_init(&tried);
    hf_status status = HF_ERR_AGAIN;
    while (status == HF_ERR_AGAIN && env->ops->now(env).ns < wire->deadline.ns) {
        hf_op_init(&tried);
        status = env->ops->connect(env, &tried, address, &wire->fd);
        if (status == HF_ERR_AGAIN) { /* the queue is full: try again in a moment */
            hf_event event;
            hf_instant soon = {env->ops->now(env).ns + hf_milliseconds(RETRY_MS).ns};
            (void)env->ops->poller_wait(env, wire->poller, &event, 1, soon);
        }
    }
    if (status == HF_OK) {
        status = env->ops->poller_set(env, &tried, wire->poller, wire->fd, HF_READABLE | HF_WRITABLE, true, wire);
    }
    return status == HF_OK
               ? HF_OK
               : hf_fail(op, HF_ERR_CLOSED, "the program that has %s open cannot be asked: %s", path, tried.message);
}

bool hf_admin_listens(hf_env *env, const char *path)
{
    hf_op op;
    hf_op_init(&op);
    int fd = -1;
    char address[HF_PATH_LEN_MAX];
    hf_beside_socket(path, address);
    hf_status status = env->ops->connect(env, &op, address, &fd);
    if (status == HF_OK) {
        env->ops->close(env, fd);
    }
    return status == HF_OK || status == HF_ERR_AGAIN; /* the queue is full, so somebody listens */
}

hf_status hf_admin_ask(hf_op *op, hf_env *env, const char *path, const char *verb, const char *const *args,
                       size_t arg_count, hf_admin_chunk *chunk, void *state)
{
    hf_str texts[4];
    hf_assert(arg_count <= HF_COUNT_OF(texts));
    for (size_t i = 0; i < arg_count; i++) {
        texts[i] = hf_str_of(args[i]);
    }
    hf_pb_admin_request request = {.verb = hf_str_of(verb), .args = {texts, arg_count}};
    hf_wire wire = {.env = env, .fd = -1, .deadline = patience(env)};
    HF_TRY(env->ops->poller_open(env, op, &wire.poller));
    hf_status status = connect_to(op, &wire, path);
    if (status == HF_OK) {
        status = converse(op, &wire, path, &request, chunk, state);
    }
    if (wire.fd >= 0) {
        env->ops->close(env, wire.fd);
    }
    env->ops->poller_close(env, wire.poller);
    return status;
}
