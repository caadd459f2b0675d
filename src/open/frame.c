/* Messages on a socket: four bytes of length, lowest first, then the message. Each side waits on a poller of its own
 * with a deadline, so a peer that is silent or slow cannot hold it up. Every length is compared with its bound before
 * it is used. */
#include "open/open.h"

#include <stdio.h>

enum { HEAD_LEN = HF_FRAME_HEAD_LEN };

static hf_status wait_ready(hf_op *op, hf_wire *wire)
{
    hf_env *env = wire->env;
    if (wire->stopping != NULL && atomic_load(wire->stopping)) {
        return hf_fail(op, HF_ERR_CANCELED, "the service is being closed");
    }
    hf_instant now = env->ops->now(env);
    if (now.ns >= wire->deadline.ns) {
        return hf_fail(op, HF_ERR_TIMEOUT, "timed out while waiting for the other side");
    }
    hf_event events[4];
    (void)env->ops->poller_wait(env, wire->poller, events, (int)HF_COUNT_OF(events), wire->deadline);
    return HF_OK; /* the caller tries again */
}

static hf_status read_all(hf_op *op, hf_wire *wire, void *buf, size_t len)
{
    char *to = buf;
    while (len > 0) {
        size_t got = 0;
        hf_op tried;
        hf_op_init(&tried);
        hf_status status = wire->env->ops->read(wire->env, &tried, wire->fd, to, len, &got);
        if (status == HF_ERR_AGAIN) {
            HF_TRY(wait_ready(op, wire));
        } else if (status != HF_OK) {
            return hf_fail(op, status, "%s", tried.message);
        } else if (got == 0) {
            return hf_fail(op, HF_ERR_CLOSED, "the other side has closed the connection");
        }
        hf_assert(got <= len); /* never more than was asked for */
        to += got;
        len -= got;
    }
    return HF_OK;
}

static hf_status write_all(hf_op *op, hf_wire *wire, const void *buf, size_t len)
{
    const char *from = buf;
    while (len > 0) {
        size_t put = 0;
        hf_op tried;
        hf_op_init(&tried);
        hf_status status = wire->env->ops->write(wire->env, &tried, wire->fd, from, len, &put);
        if (status == HF_ERR_AGAIN) {
            HF_TRY(wait_ready(op, wire));
        } else if (status != HF_OK) {
            return hf_fail(op, status, "%s", tried.message);
        }
        hf_assert(put <= len);
        from += put;
        len -= put;
    }
    return HF_OK;
}

hf_status hf_frame_write(hf_op *op, hf_wire *wire, const hf_pb_type *type, const void *msg, hf_allocator memory)
{
    hf_buf out;
    hf_buf_init(&out, memory, HF_FRAME_RESPONSE_MAX);
    hf_buf_put(&out, "\0\0\0", 4);
    hf_pb_encode(type, msg, &out);
    hf_status status = out.status;
    if (status != HF_OK) {
        (void)hf_fail(op, status, "cannot encode a message");
    } else {
        hf_assert(out.len >= HEAD_LEN && out.len <= HF_FRAME_RESPONSE_MAX);
        uint32_t len = (uint32_t)(out.len - 4);
        for (size_t i = 0; i < 4; i++) {
            out.data[i] = (char)(len >> (8 * i));
        }
        status = write_all(op, wire, out.data, out.len);
    }
    hf_buf_deinit(&out);
    return status;
}

/* The length of a message, from its first four bytes. Fails: HF_ERR_TOO_BIG. */
static hf_status body_len(hf_op *op, const char *bytes, size_t len_max, size_t *ret_len)
{
    const unsigned char *head = (const unsigned char *)bytes;
    size_t len = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (len > len_max) {
        return hf_fail(op, HF_ERR_TOO_BIG, "a message of %zu bytes is refused: at most %zu are allowed", len, len_max);
    }
    *ret_len = len;
    return HF_OK;
}

hf_status hf_frame_read(hf_op *op, hf_wire *wire, const hf_pb_type *type, size_t len_max, hf_arena *arena,
                        void *ret_msg)
{
    char head[HEAD_LEN];
    size_t len = 0;
    HF_TRY(read_all(op, wire, head, sizeof head));
    HF_TRY(body_len(op, head, len_max, &len));
    char *bytes = hf_arena_take(arena, len + 1, 8);
    if (bytes == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a message");
    }
    HF_TRY(read_all(op, wire, bytes, len));
    return hf_pb_decode(op, type, hf_str_of_len(bytes, len), arena, ret_msg);
}
