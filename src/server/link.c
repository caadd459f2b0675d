/* A connection and its fiber.
 *
 *     bytes --try_read--> session --events--> streams --submit--> service
 *                            ^                                       |  done: a thread of the service puts the stream
 *     bytes <--try_write-- session <--answers-- fiber <--poke-- inbox <-+  into the inbox and pokes the fiber
 *
 * One fiber does everything on a connection, so the session has no lock. It waits in one place, for any of: bytes, room for bytes,
 * the inbox, a deadline. A call that waits in the service holds no fiber. If the peer does not take its answers, the fiber stops
 * to read, and so the peer cannot ask for more. */
#include "server/server_private.h"

#include "base/fields.h"
#include "fiber/io/conn.h"
#include "fiber/sched/wait.h"

enum {
    READ_LEN = 64 * 1024,   /* bytes of one read */
    WRITE_LEN = 256 * 1024, /* bytes that the session makes before they are written */
    READS_MAX = 16          /* reads in a row before answers go out */
};

#define SECOND_NS INT64_C(1000000000)

/* ---- The inbox ---------------------------------------------------------------------------------------------------------- */

void hf_link_tell(hf_link *link, hf_stream *stream)
{
    hf_env *env = link->door->env;
    hf_guest_enter(&link->guests); /* before the fiber can see the stream: server-D1 */
    hf_spin_lock(&link->lock);
    hf_list_push_back(&link->done, &stream->done_node);
    bool ring = !link->is_rung;
    link->is_rung = true;
    hf_spin_unlock(&link->lock);
    if (ring) {
        hf_conn_poke(link->conn);
    }
    hf_guest_leave(env, &link->guests); /* from here on the link may be gone */
}

void hf_link_poke(hf_link *link)
{
    hf_conn_poke(link->conn);
}

/* True: something was there. */
static bool take_done(hf_link *link)
{
    hf_list done;
    hf_spin_lock(&link->lock);
    link->is_rung = false;
    hf_list_move_all(&link->done, &done);
    hf_spin_unlock(&link->lock);
    bool some = !hf_list_is_empty(&done);
    hf_node *node = NULL;
    while ((node = hf_list_pop_front(&done)) != NULL) {
        hf_stream *stream = HF_CONTAINER(node, hf_stream, done_node);
        hf_assert(stream->is_asked && link->asked > 0); /* service-V1 */
        stream->is_asked = false;
        link->asked--;
        hf_stream_done(stream);
    }
    return some;
}

/* ---- Bytes ---------------------------------------------------------------------------------------------------------------- */

static int64_t now_of(const hf_link *link)
{
    return link->door->env->ops->now(link->door->env).ns;
}

static void cut(hf_link *link, const char *why)
{
    hf_door *door = link->door;
    if (link->is_over) {
        return;
    }
    link->is_over = true;
    atomic_fetch_add(&door->cut, 1);
    if (door->options.log != NULL) {
        char fields[HF_MESSAGE_LEN_MAX + HF_ADDRESS_LEN_MAX];
        hf_fields_format(fields, sizeof fields, "peer=\"%s\" why=\"%s\"", hf_conn_peer(link->conn), why);
        door->options.log(door->options.log_state, HF_LOG_INFO, "connection_cut", fields);
    }
}

/* Gives plain bytes to the session. */
static void take_plain(hf_link *link, hf_str bytes)
{
    hf_op op;
    hf_op_init(&op);
    if (hf_h2_recv(&op, link->h2, bytes, link->heard_ns) != HF_OK) {
        cut(link, op.message);
    }
}

static void take_sealed(hf_link *link, hf_str bytes)
{
    char plain[4096];
    size_t len = 0;
    hf_op op;
    hf_op_init(&op);
    hf_status status = hf_tls_feed(&op, link->tls, bytes);
    while (status == HF_OK && !link->is_over) {
        status = hf_tls_read(&op, link->tls, plain, sizeof plain, &len);
        if (status == HF_OK) {
            take_plain(link, hf_str_of_len(plain, len));
        }
    }
    if (status == HF_ERR_CLOSED) {
        link->is_over = true;
    } else if (status != HF_OK && status != HF_ERR_AGAIN) {
        cut(link, op.message);
    }
}

/* False: there was nothing to read. */
static bool read_some(hf_link *link)
{
    hf_env *env = link->door->env;
    char *buf = env->ops->allocate(env, READ_LEN, 0);
    bool some = false;
    if (buf == NULL) {
        cut(link, "no memory to read");
        return false;
    }
    for (int i = 0; i < READS_MAX && link->may_read && !link->is_over; i++) {
        size_t len = 0;
        hf_status status = hf_conn_try_read(link->conn, buf, READ_LEN, &len);
        if (status == HF_ERR_AGAIN) {
            link->may_read = false;
        } else if (status != HF_OK || len == 0) {
            link->is_over = true; /* the peer has gone */
        } else {
            some = true;
            link->heard_ns = now_of(link);
            link->is_pinged = false;
            if (link->tls != NULL) {
                take_sealed(link, hf_str_of_len(buf, len));
            } else {
                take_plain(link, hf_str_of_len(buf, len));
            }
            if (hf_h2_out_len(link->h2) > HF_DOOR_OUT_LEN_MAX) {
                break;
            }
        }
    }
    env->ops->release(env, buf, READ_LEN);
    return some;
}

/* The next bytes for the socket. */
static hf_status fill(hf_op *op, hf_link *link)
{
    if (link->tls == NULL) {
        return hf_h2_send(op, link->h2, &link->out, WRITE_LEN);
    }
    hf_status status = HF_OK;
    if (hf_tls_is_open(link->tls)) {
        hf_buf plain;
        hf_buf_init(&plain, link->door->memory, SIZE_MAX / 2);
        status = hf_h2_send(op, link->h2, &plain, WRITE_LEN);
        if (status == HF_OK) {
            status = hf_tls_write(op, link->tls, hf_str_of_len(plain.data, plain.len));
        }
        hf_buf_deinit(&plain);
    }
    hf_tls_take(link->tls, &link->out);
    return status;
}

/* False: nothing was written. */
static bool write_some(hf_link *link)
{
    bool some = false;
    while (link->may_write) {
        hf_op op;
        hf_op_init(&op);
        if (link->out_sent == link->out.len) {
            link->out.len = link->out_sent = 0;
            if (fill(&op, link) != HF_OK) {
                cut(link, op.message);
            }
        }
        if (link->out.len == 0) {
            hf_buf_deinit(&link->out); /* an idle connection keeps no buffer */
            hf_buf_init(&link->out, link->door->memory, SIZE_MAX / 2);
            break;
        }
        size_t len = 0;
        hf_status status =
            hf_conn_try_write(link->conn, link->out.data + link->out_sent, link->out.len - link->out_sent, &len);
        if (status == HF_ERR_AGAIN) {
            link->may_write = false;
            link->is_stuck = true;
        } else if (status != HF_OK) {
            link->is_over = true;
            link->out.len = link->out_sent = 0;
            return true;
        } else {
            link->out_sent += len;
            link->taken_ns = link->is_stuck ? now_of(link) : link->taken_ns;
            link->is_stuck = false;
            some = true;
        }
    }
    return some;
}

/* ---- Time ------------------------------------------------------------------------------------------------------------------ */

static void min_of(int64_t *at, int64_t other)
{
    *at = other < *at ? other : *at;
}

/* Does what is due, and returns when the next thing is. */
static int64_t be_on_time(hf_link *link)
{
    int64_t now = now_of(link);
    int64_t next = INT64_MAX;
    hf_heap_node *first = NULL;
    while ((first = hf_heap_first(&link->deadlines)) != NULL && first->key <= now) {
        hf_heap_remove(&link->deadlines, first);
        hf_stream_expire(HF_CONTAINER(first, hf_stream, deadline));
    }
    if (first != NULL) {
        min_of(&next, first->key);
    }
    if (!link->has_begun) {
        int64_t at = link->born_ns + HF_DOOR_HEAD_SECONDS * SECOND_NS; /* however many bytes have come */
        if (now >= at) {
            cut(link, "no request in time");
        }
        min_of(&next, at);
    }
    uint64_t sent = hf_h2_body_sent(link->h2);
    bool owes = hf_h2_out_len(link->h2) > 0 || link->out.len > link->out_sent;
    if (!owes || sent - link->taken_bytes >= HF_DOOR_TAKE_LEN_MIN) {
        link->taken_bytes = sent;
        link->taken_ns = now;
    } else {
        int64_t at = link->taken_ns + HF_DOOR_STALL_SECONDS * SECOND_NS;
        if (now >= at) {
            cut(link, "it does not take its answers");
            link->may_write = false;
        }
        min_of(&next, at);
    }
    int64_t silence = link->heard_ns + HF_DOOR_PING_SECONDS * SECOND_NS * (link->is_pinged ? 2 : 1);
    if (now >= silence && link->is_pinged) {
        cut(link, "silence");
    } else if (now >= silence) {
        hf_h2_ping(link->h2);
        link->is_pinged = true;
        silence += HF_DOOR_PING_SECONDS * SECOND_NS;
    }
    min_of(&next, silence);
    return next;
}

/* ---- Stages ---------------------------------------------------------------------------------------------------------------- */

static void follow_stage(hf_link *link)
{
    hf_stage stage = (hf_stage)atomic_load(&link->door->stage);
    if (link->stage == stage) {
        if (atomic_load(&link->is_unwanted) && link->stream_count == 0) {
            cut(link, "its place is needed");
        }
        return;
    }
    if (link->stage == HF_STAGE_SERVING) {
        hf_h2_goaway(link->h2, false);
    }
    link->stage = stage;
    HF_LIST_EACH(node, &link->streams)
    {
        hf_stream_drain(HF_CONTAINER(node, hf_stream, node));
    }
    if (stage == HF_STAGE_CLOSING) {
        link->is_over = true;
    }
}

static bool is_finished(const hf_link *link)
{
    bool has_output = link->out.len > link->out_sent;
    if (link->is_over) {
        return !has_output || !link->may_write || link->stage == HF_STAGE_CLOSING;
    }
    return !has_output && (!hf_h2_is_live(link->h2) || (link->stage != HF_STAGE_SERVING && link->stream_count == 0));
}

/* ---- Life ------------------------------------------------------------------------------------------------------------------ */

/* Waits for calls that the service still has, also if this fiber is canceled. */
static void await_calls(hf_link *link)
{
    HF_LIST_EACH(node, &link->streams)
    {
        hf_stream_cancel(HF_CONTAINER(node, hf_stream, node));
    }
    while (link->asked > 0) {
        if (!take_done(link) && hf_conn_wait(link->conn, HF_WRITABLE | HF_READABLE, HF_INSTANT_NEVER) != HF_OK) {
            hf_fiber *self = hf_enter(NULL);
            hf_yield_in(self);
            hf_leave(self);
        }
    }
}

static void end_link(hf_link *link)
{
    hf_door *door = link->door;
    HF_LIST_EACH(node, &link->streams)
    {
        hf_stream *stream = HF_CONTAINER(node, hf_stream, node);
        if (!stream->is_closed) {
            hf_h2_drop(&stream->h2);
            hf_stream_events.closed(link, &stream->h2, HF_H2_CANCEL); /* may free it */
        }
    }
    await_calls(link);
    hf_assert(hf_list_is_empty(&link->streams) && link->asked == 0); /* server-D1, server-D2 */
    hf_h2_close(link->h2);
    hf_tls_close(link->tls);
    hf_door_left(door, link);
    hf_guests_await(door->env, &link->guests);
    (void)hf_conn_close(link->conn);
    hf_heap_deinit(&link->deadlines);
    hf_buf_deinit(&link->out);
    door->env->ops->release(door->env, link, sizeof *link);
}

static void serve(hf_link *link)
{
    int64_t next = now_of(link) + HF_DOOR_HEAD_SECONDS * SECOND_NS;
    for (;;) {
        int events = (link->may_read ? 0 : HF_READABLE) | (link->may_write ? 0 : HF_WRITABLE);
        hf_status status = hf_conn_wait(link->conn, events != 0 ? events : HF_READABLE, (hf_instant){next});
        if (status == HF_OK || status == HF_ERR_TIMEOUT) {
            link->may_read = link->may_write = true; /* perhaps: a try says more */
        } else {
            link->is_over = true;
        }
        bool more = true;
        while (more) {
            follow_stage(link);
            more = take_done(link);
            bool is_full = hf_h2_out_len(link->h2) > HF_DOOR_OUT_LEN_MAX;
            more |= !link->is_over && !is_full && link->may_read && read_some(link);
            next = be_on_time(link);
            more |= write_some(link);
            if (is_finished(link)) {
                return;
            }
            if (more) { /* a peer that never pauses is not the only one on this thread */
                hf_fiber *self = hf_enter(NULL);
                hf_yield_in(self);
                hf_leave(self);
            }
        }
    }
}

/* Closing a socket while bytes of the peer are on their way makes the system throw away what the peer has not read yet. So we say
 * that we are done, and wait a moment for the peer to say the same. */
static void linger(hf_link *link)
{
    char bytes[512];
    int64_t until = now_of(link) + HF_DOOR_LINGER_SECONDS * SECOND_NS;
    bool is_over = link->is_over || link->stage == HF_STAGE_CLOSING || hf_conn_shutdown(link->conn) != HF_OK;
    while (!is_over && now_of(link) < until && atomic_load(&link->door->stage) != HF_STAGE_CLOSING) {
        size_t len = 0;
        hf_status status = hf_conn_try_read(link->conn, bytes, sizeof bytes, &len);
        if (status == HF_ERR_AGAIN) {
            status = hf_conn_wait(link->conn, HF_READABLE, (hf_instant){until});
            is_over = status != HF_OK;
        } else {
            is_over = status != HF_OK || len == 0;
        }
    }
}

/* HF_OK also if the door has no certificate. */
static hf_status open_tls(hf_op *op, hf_link *link)
{
    hf_door *door = link->door;
    hf_spin_lock(&door->lock);
    hf_tls_context *context = door->tls != NULL ? hf_tls_context_ref(door->tls) : NULL;
    hf_spin_unlock(&door->lock);
    hf_status status = context != NULL ? hf_tls_open(op, context, door->memory, &link->tls) : HF_OK;
    hf_tls_context_unref(context);
    return status;
}

hf_status hf_link_serve(void *arg)
{
    hf_link *link = arg;
    hf_op op;
    hf_op_init(&op);
    hf_h2_options options = {.streams_max = HF_DOOR_STREAMS_MAX};
    link->born_ns = link->heard_ns = link->taken_ns = now_of(link);
    atomic_store(&link->idle_ns, link->heard_ns);
    if (open_tls(&op, link) == HF_OK &&
        hf_h2_open(&op, link->door->memory, &options, &hf_stream_events, link, &link->h2) == HF_OK) {
        serve(link);
        linger(link);
    }
    end_link(link);
    return HF_OK;
}
