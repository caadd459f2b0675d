/* A connection whose two sides never wait: what comes is collected, and what goes is kept until the peer takes it. The length of a message
 * is compared with its bound when its first four bytes are there, before any room is made for it. */
#include "open/share.h"

#include <stdio.h>

enum { ROOM = 64 * 1024 }; /* for one read */

void hf_duct_init(hf_duct *duct, hf_env *env, int fd, hf_poller *poller, void *cookie)
{
    *duct = (hf_duct){.env = env,
                      .poller = poller,
                      .cookie = cookie,
                      .fd = fd,
                      .may_read = true,
                      .may_write = true,
                      .taken_ns = env->ops->now(env).ns};
    hf_buf_init(&duct->in, hf_env_memory(env), SIZE_MAX / 4);
    hf_buf_init(&duct->out, hf_env_memory(env), HF_SHARE_OUT_LEN_MAX);
}

void hf_duct_deinit(hf_duct *duct)
{
    if (duct->fd >= 0) {
        duct->env->ops->close(duct->env, duct->fd);
        duct->fd = -1;
    }
    hf_buf_deinit(&duct->in);
    hf_buf_deinit(&duct->out);
}

static void end(hf_duct *duct, const char *why)
{
    if (!duct->is_over) {
        duct->is_over = true;
        (void)snprintf(duct->why, sizeof duct->why, "%s", why);
    }
}

/* Moves what was not looked at to the front. */
static void settle(hf_buf *buf, size_t *at)
{
    if (*at > 0) {
        hf_assert(*at <= buf->len);
        memmove(buf->data, buf->data + *at, buf->len - *at);
        buf->len -= *at;
        *at = 0;
    }
}

/* The length of the message that begins here; 0 = its head is not complete. */
static size_t whole_len(const hf_duct *duct)
{
    hf_assert(duct->in_at <= duct->in.len);
    if (duct->in.len - duct->in_at < HF_FRAME_HEAD_LEN) {
        return 0;
    }
    const unsigned char *head = (const unsigned char *)duct->in.data + duct->in_at;
    return HF_FRAME_HEAD_LEN + ((size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24);
}

void hf_duct_fill(hf_duct *duct, size_t frame_len_max)
{
    size_t budget = HF_SHARE_READ_LEN;
    settle(&duct->in, &duct->in_at);
    if (duct->in.len == 0 && duct->in.capacity > HF_SHARE_PIECE_LEN) { /* one large message was enough */
        hf_buf_deinit(&duct->in);
    }
    while (duct->may_read && !duct->is_over && budget > 0) {
        size_t got = 0;
        hf_op op;
        hf_op_init(&op);
        if (duct->in.len >= frame_len_max + HF_FRAME_HEAD_LEN) {
            return; /* at least one message is complete, or too long: hf_duct_take says which */
        }
        if (!hf_buf_reserve(&duct->in, ROOM)) {
            end(duct, "no memory for what the other side says");
            return;
        }
        hf_status status = duct->env->ops->read(duct->env, &op, duct->fd, duct->in.data + duct->in.len, ROOM, &got);
        if (status == HF_ERR_AGAIN) {
            duct->may_read = false;
        } else if (status != HF_OK) {
            end(duct, op.message);
        } else if (got == 0) {
            end(duct, "the other side has closed the connection");
        }
        hf_assert(got <= ROOM && duct->in.len + got <= duct->in.capacity);
        duct->in.len += got;
        budget -= got < budget ? got : budget;
    }
}

bool hf_duct_take(hf_duct *duct, size_t frame_len_max, hf_str *ret_message)
{
    size_t len = whole_len(duct);
    if (len == 0) {
        return false;
    }
    if (len > frame_len_max + HF_FRAME_HEAD_LEN) {
        end(duct, "the other side sends a message that is too long");
        return false;
    }
    if (duct->in.len - duct->in_at < len) {
        return false;
    }
    *ret_message = hf_str_of_len(duct->in.data + duct->in_at + HF_FRAME_HEAD_LEN, len - HF_FRAME_HEAD_LEN);
    duct->in_at += len;
    return true;
}

void hf_duct_put(hf_duct *duct, const hf_pb_type *type, const void *msg)
{
    if (duct->out_at > 0 && duct->out_at == duct->out.len) {
        duct->out.len = duct->out_at = 0;
    }
    if (hf_duct_left(duct) == 0) {
        duct->taken_ns = duct->env->ops->now(duct->env).ns;
    }
    size_t from = duct->out.len;
    hf_buf_put(&duct->out, "\0\0\0", HF_FRAME_HEAD_LEN);
    hf_pb_encode(type, msg, &duct->out);
    if (hf_buf_status(&duct->out) != HF_OK) {
        end(duct, "the other side does not take what is sent, or there is no memory for it");
        return;
    }
    hf_assert(duct->out.len >= from + HF_FRAME_HEAD_LEN);
    size_t len = duct->out.len - from - HF_FRAME_HEAD_LEN;
    for (size_t i = 0; i < HF_FRAME_HEAD_LEN; i++) {
        duct->out.data[from + i] = (char)(len >> (8 * i));
    }
}

/* A socket tells of room whenever its peer has read something. So its thread would be woken once for every message that it has
 * sent: it asks only while it waits for room. */
static void watch_room(hf_duct *duct, bool is_wanted)
{
    hf_op op;
    hf_op_init(&op);
    int events = HF_READABLE | (is_wanted ? HF_WRITABLE : 0);
    if (duct->env->ops->poller_set(duct->env, &op, duct->poller, duct->fd, events, false, duct->cookie) != HF_OK) {
        end(duct, op.message);
    }
}

void hf_duct_flush(hf_duct *duct)
{
    while (duct->may_write && !duct->is_over && hf_duct_left(duct) > 0) {
        size_t put = 0;
        hf_op op;
        hf_op_init(&op);
        hf_status status =
            duct->env->ops->write(duct->env, &op, duct->fd, duct->out.data + duct->out_at, hf_duct_left(duct), &put);
        if (status == HF_ERR_AGAIN) {
            duct->may_write = false;
            duct->waits_for_room = true;
            watch_room(duct, true);
        } else if (status != HF_OK) {
            end(duct, op.message);
        } else {
            hf_assert(put <= hf_duct_left(duct));
            duct->out_at += put;
            duct->taken_ns = duct->env->ops->now(duct->env).ns;
        }
    }
    if (duct->waits_for_room && !duct->is_over && hf_duct_left(duct) == 0) {
        duct->waits_for_room = false;
        watch_room(duct, false);
    }
    if (duct->out_at >= HF_SHARE_PIECE_LEN) {
        settle(&duct->out, &duct->out_at);
    }
    if (hf_duct_left(duct) == 0 && duct->out.capacity > 4 * HF_SHARE_PIECE_LEN) { /* one large answer was enough */
        hf_allocator memory = duct->out.memory;
        hf_buf_deinit(&duct->out);
        hf_buf_init(&duct->out, memory, HF_SHARE_OUT_LEN_MAX);
        duct->out_at = 0;
    }
}
