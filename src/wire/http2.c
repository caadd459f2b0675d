/* The session of libnghttp2, made ours: its callbacks become hf_h2_events, its data sources read stream->out.
 *
 * libnghttp2 bounds heads (64 KiB), CONTINUATION frames, and the answers it owes to PING and SETTINGS. What it does not bound is
 * bounded here: bytes of a head, the rate of resets in both directions (a peer can make us reset streams by frames that are wrong on
 * purpose), the rate of frames that cost the peer nothing. */
#include "wire/http2.h"

#include <nghttp2/nghttp2.h>

/* A bucket of tokens that fills with time. */
typedef struct bucket {
    int64_t left_ns;  /* tokens, as the time that fills them */
    int64_t token_ns; /* time that fills one */
    int64_t full_ns;
    int64_t at_ns; /* when left_ns was computed */
} bucket;

#define PREFACE_LEN 24 /* bytes that a client sends first: "PRI * HTTP/2.0" and so on */

struct hf_h2 {
    nghttp2_session *session;
    const hf_h2_events *events;
    void *state;
    hf_allocator memory;
    bucket resets;
    bucket controls;
    int64_t now_ns;     /* of the last hf_h2_recv */
    uint64_t body_sent; /* bytes */
    size_t out_len;     /* bytes in `out` of all streams, not handed on */
    size_t head_len;    /* bytes of the head that comes in now: heads do not interleave */
    bool is_client;
    bool is_flooded;             /* wire-H2 */
    bool has_failed;             /* hf_h2_recv has */
    size_t frame_left;           /* server: bytes of the frame that comes in now, or of the preface */
    unsigned char frame_head[9]; /* the head of the next one, so far */
    size_t frame_head_len;
    int32_t last_id;  /* server: of the last stream that began */
    uint64_t begun;   /* bit i: stream last_id - 2 * i began */
    int32_t gone[32]; /* streams that the peer has closed, the last ones */
    unsigned gone_at; /* how many were put there */
};

static bucket bucket_of(int64_t burst, int64_t per_second)
{
    int64_t token = 1000000000 / per_second;
    return (bucket){.left_ns = burst * token, .token_ns = token, .full_ns = burst * token};
}

/* Takes a token. False: there is none. */
static bool bucket_take(bucket *from, int64_t now_ns)
{
    int64_t passed = now_ns - from->at_ns;
    from->at_ns = now_ns;
    if (passed > 0) {
        from->left_ns = passed >= from->full_ns - from->left_ns ? from->full_ns : from->left_ns + passed;
    }
    hf_assert(from->left_ns >= 0 && from->left_ns <= from->full_ns); /* wire-H2 */
    if (from->left_ns < from->token_ns) {
        return false;
    }
    from->left_ns -= from->token_ns;
    return true;
}

/* ---- Memory: nghttp2's own, by malloc's interface on top of ours ------------------------------------------------------- */

/* nghttp2 does not say how long a piece is when it gives it back, so its length stands in front of it. */
enum { PIECE_HEAD = 16 };

static void *piece_new(size_t len, void *state)
{
    hf_h2 *h2 = state;
    if (len > SIZE_MAX - PIECE_HEAD) {
        return NULL;
    }
    char *whole = h2->memory.allocate(h2->memory.state, len + PIECE_HEAD, 0);
    if (whole == NULL) {
        return NULL;
    }
    memcpy(whole, &len, sizeof len);
    return whole + PIECE_HEAD;
}

static size_t piece_len(const void *piece)
{
    size_t len = 0;
    memcpy(&len, (const char *)piece - PIECE_HEAD, sizeof len);
    return len;
}

static void piece_free(void *piece, void *state)
{
    hf_h2 *h2 = state;
    if (piece != NULL) {
        h2->memory.release(h2->memory.state, (char *)piece - PIECE_HEAD, piece_len(piece) + PIECE_HEAD);
    }
}

static void *piece_zeroed(size_t count, size_t len, void *state)
{
    size_t all = 0;
    if (__builtin_mul_overflow(count, len, &all)) {
        return NULL;
    }
    void *piece = piece_new(all, state);
    return piece != NULL ? memset(piece, 0, all) : NULL;
}

static void *piece_resized(void *piece, size_t len, void *state)
{
    void *fresh = piece_new(len, state);
    if (fresh != NULL && piece != NULL) {
        size_t old = piece_len(piece);
        memcpy(fresh, piece, old < len ? old : len);
        piece_free(piece, state);
    }
    return fresh;
}

/* ---- What comes in ----------------------------------------------------------------------------------------------------- */

static hf_h2_stream *stream_of(hf_h2 *h2, int32_t id)
{
    return id != 0 ? nghttp2_session_get_stream_user_data(h2->session, id) : NULL;
}

/* wire-H2. False: the peer is cut off. */
static bool charge(hf_h2 *h2, bucket *from)
{
    if (!bucket_take(from, h2->now_ns)) {
        h2->is_flooded = true;
        (void)nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    return !h2->is_flooded;
}

static bool is_head(const hf_h2 *h2, const nghttp2_frame *frame)
{
    return frame->hd.type == NGHTTP2_HEADERS &&
           frame->headers.cat == (h2->is_client ? NGHTTP2_HCAT_RESPONSE : NGHTTP2_HCAT_REQUEST);
}

/* ---- Streams that are no more ---- */

/* The session forgets a stream when it is closed. The last ones that the peer has closed are kept here, so that its next frame on one of
 * them can be told from one that was on its way when we reset the stream, which is not a fault. */
static void note_gone(hf_h2 *h2, int32_t id)
{
    h2->gone[h2->gone_at++ % HF_COUNT_OF(h2->gone)] = id;
}

static bool is_gone(const hf_h2 *h2, int32_t id)
{
    for (size_t i = 0; i < HF_COUNT_OF(h2->gone); i++) {
        if (h2->gone[i] == id) {
            return true;
        }
    }
    return false;
}

static void note_begun(hf_h2 *h2, int32_t id)
{
    int64_t steps = ((int64_t)id - h2->last_id) / 2;
    hf_assert(id > h2->last_id); /* nghttp2 has checked it */
    h2->begun = steps < 64 ? h2->begun << steps | 1 : 1;
    h2->last_id = id;
}

/* Of a stream that is not open: whether it began. Of old ones it is not known, and taken for granted. */
static bool has_begun(const hf_h2 *h2, int32_t id)
{
    int64_t steps = ((int64_t)h2->last_id - id) / 2;
    return steps >= 64 || (h2->begun >> steps & 1) != 0;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *user)
{
    hf_h2 *h2 = user;
    if (h2->is_client || head->type != NGHTTP2_HEADERS || head->stream_id % 2 == 0 || head->stream_id > h2->last_id ||
        nghttp2_session_find_stream(session, head->stream_id) != NULL) {
        return 0;
    }
    if (!has_begun(h2, head->stream_id)) { /* a later one has, so this one was closed by that (RFC 9113, 5.1.1) */
        (void)nghttp2_session_terminate_session(session, NGHTTP2_PROTOCOL_ERROR);
    } else if (is_gone(h2, head->stream_id)) {
        (void)nghttp2_session_terminate_session(session, NGHTTP2_STREAM_CLOSED);
    }
    return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    hf_h2 *h2 = user;
    h2->head_len = 0;
    if (!is_head(h2, frame) || h2->is_client) {
        return 0;
    }
    note_begun(h2, frame->hd.stream_id);
    hf_h2_stream *stream = h2->is_flooded ? NULL : h2->events->begin(h2->state, frame->hd.stream_id);
    if (stream == NULL) {
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    stream->id = frame->hd.stream_id;
    hf_buf_init(&stream->out, h2->memory, SIZE_MAX / 2);
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *user)
{
    hf_h2 *h2 = user;
    (void)flags;
    hf_h2_stream *stream = stream_of(h2, frame->hd.stream_id);
    if (stream == NULL) {
        return 0;
    }
    h2->head_len += name_len + value_len + 32; /* as RFC 9113 counts, 6.5.2 */
    if (h2->head_len > HF_H2_HEADERS_LEN_MAX) {
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_ENHANCE_YOUR_CALM);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    h2->events->field(h2->state, stream, hf_str_of_len(name, name_len), hf_str_of_len(value, value_len));
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    hf_h2 *h2 = user;
    (void)session;
    hf_h2_stream *stream = stream_of(h2, frame->hd.stream_id);
    bool is_empty =
        frame->hd.type == NGHTTP2_DATA && frame->hd.length == 0 && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        note_gone(h2, frame->hd.stream_id);
        (void)charge(h2, &h2->resets);
    } else if (frame->hd.type == NGHTTP2_PING || frame->hd.type == NGHTTP2_SETTINGS ||
               frame->hd.type == NGHTTP2_PRIORITY || is_empty) {
        (void)charge(h2, &h2->controls);
    }
    if (stream == NULL || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)) {
        return 0;
    }
    if (frame->hd.type == NGHTTP2_HEADERS) {
        h2->events->head(h2->state, stream);
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        h2->events->end(h2->state, stream);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len, void *user)
{
    hf_h2 *h2 = user;
    (void)session;
    (void)flags;
    hf_h2_stream *stream = stream_of(h2, id);
    if (stream != NULL) {
        h2->events->data(h2->state, stream, hf_str_of_len(data, len));
    }
    return 0;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    hf_h2 *h2 = user;
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR && !h2->is_client) {
        (void)charge(h2, &h2->resets); /* the peer made us do it */
    }
    if (frame->hd.type == NGHTTP2_HEADERS && h2->is_client) {
        hf_h2_stream *stream = stream_of(h2, frame->hd.stream_id);
        if (stream != NULL) {
            stream->is_sent = true;
        }
    }
    /* An answer that is complete before its request is: the rest of the request is not needed (RFC 9113, 8.1). */
    bool is_end = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
                  (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (is_end && !h2->is_client && nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0) {
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    }
    return 0;
}

/* The stream is the caller's again. */
static void let_go(hf_h2 *h2, hf_h2_stream *stream, uint32_t code)
{
    size_t left = stream->out.len - stream->out_sent;
    hf_assert(h2->out_len >= left); /* wire-H3: counted once, given back once */
    h2->out_len -= left;
    hf_buf_deinit(&stream->out);
    h2->events->closed(h2->state, stream, code);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    hf_h2 *h2 = user;
    hf_h2_stream *stream = stream_of(h2, id);
    if (nghttp2_session_get_stream_remote_close(session, id) == 1) {
        note_gone(h2, id);
    }
    if (stream != NULL) {
        (void)nghttp2_session_set_stream_user_data(session, id, NULL);
        let_go(h2, stream, code);
    }
    return 0;
}

/* ---- What goes out ------------------------------------------------------------------------------------------------------ */

enum { FIELDS_MAX = 64 }; /* of one head that we send */

static size_t fields_of(const hf_h2_field *fields, size_t count, nghttp2_nv *ret_values)
{
    hf_assert(count <= FIELDS_MAX); /* wire-H1: our own heads have a handful */
    for (size_t i = 0; i < count; i++) {
        bool is_secret = hf_str_equal(fields[i].name, HF_STR("authorization")); /* in no table of either side */
        ret_values[i] = (nghttp2_nv){
            .flags = is_secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE,
            .name = (uint8_t *)(uintptr_t)fields[i].name.data, /* nghttp2 copies, and changes nothing */
            .namelen = fields[i].name.len,
            .value = (uint8_t *)(uintptr_t)(fields[i].value.data != NULL ? fields[i].value.data : ""),
            .valuelen = fields[i].value.len,
        };
    }
    return count;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t len, uint32_t *flags,
                         nghttp2_data_source *source, void *user)
{
    hf_h2 *h2 = user;
    hf_h2_stream *stream = source->ptr;
    size_t left = stream->out.len - stream->out_sent;
    if (left == 0 && !stream->is_ended) {
        stream->is_asleep = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    size_t put = left < len ? left : len;
    if (put > 0) {
        memcpy(buf, stream->out.data + stream->out_sent, put);
    }
    stream->out_sent += put;
    hf_assert(h2->out_len >= put); /* wire-H3 */
    h2->out_len -= put;
    h2->body_sent += put;
    if (stream->out_sent == stream->out.len && stream->is_ended) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (stream->trailer_count > 0) {
            nghttp2_nv values[FIELDS_MAX];
            size_t count = fields_of(stream->trailers, stream->trailer_count, values);
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (nghttp2_submit_trailer(session, id, values, count) != 0) {
                return NGHTTP2_ERR_CALLBACK_FAILURE;
            }
        }
    } else if (stream->out_sent == stream->out.len) {
        hf_buf_deinit(&stream->out);
        hf_buf_init(&stream->out, h2->memory, SIZE_MAX / 2);
        stream->out_sent = 0;
    }
    return (ssize_t)put;
}

static hf_status status_of(hf_op *op, int error)
{
    if (error == NGHTTP2_ERR_NOMEM) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an HTTP/2 connection");
    }
    return hf_fail(op, HF_ERR_INVALID, "HTTP/2: %s", nghttp2_strerror(error));
}

hf_status hf_h2_send(hf_op *op, hf_h2 *h2, hf_buf *out, size_t len_max)
{
    while (out->len < len_max) {
        const uint8_t *bytes = NULL;
        ssize_t len = nghttp2_session_mem_send(h2->session, &bytes);
        if (len < 0) {
            h2->has_failed = true;
            return status_of(op, (int)len);
        }
        if (len == 0) {
            break;
        }
        hf_buf_put(out, bytes, (size_t)len);
    }
    return hf_buf_status(out) == HF_OK ? HF_OK : hf_fail(op, hf_buf_status(out), "no memory for bytes to send");
}

static ssize_t feed(hf_h2 *h2, const char *bytes, size_t len)
{
    ssize_t taken = nghttp2_session_mem_recv(h2->session, (const uint8_t *)bytes, len);
    hf_assert(taken < 0 || (size_t)taken == len); /* wire-H1: nothing here pauses the session */
    return taken;
}

/* nghttp2 passes over DATA of a stream that it has forgotten, and tells nobody. So the heads of frames are read here, too. */
static ssize_t feed_frames(hf_h2 *h2, hf_str bytes)
{
    size_t fed = 0;
    for (size_t at = 0; at < bytes.len;) {
        if (h2->frame_left > 0) {
            size_t len = bytes.len - at < h2->frame_left ? bytes.len - at : h2->frame_left;
            at += len;
            h2->frame_left -= len;
            continue;
        }
        h2->frame_head[h2->frame_head_len++] = (unsigned char)bytes.data[at++];
        if (h2->frame_head_len < sizeof h2->frame_head) {
            continue;
        }
        const unsigned char *head = h2->frame_head;
        int32_t id =
            (int32_t)((uint32_t)(head[5] & 0x7f) << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8]);
        h2->frame_left = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        h2->frame_head_len = 0;
        if (head[3] == NGHTTP2_DATA) {
            ssize_t taken = feed(h2, bytes.data + fed, at - fed); /* all that came before it */
            if (taken < 0) {
                return taken;
            }
            fed = at;
            if (nghttp2_session_find_stream(h2->session, id) == NULL && is_gone(h2, id)) {
                (void)nghttp2_session_terminate_session(h2->session, NGHTTP2_STREAM_CLOSED);
            }
        }
    }
    return fed < bytes.len ? feed(h2, bytes.data + fed, bytes.len - fed) : 0;
}

hf_status hf_h2_recv(hf_op *op, hf_h2 *h2, hf_str bytes, int64_t now_ns)
{
    hf_assert(!h2->has_failed && bytes.len > 0);
    h2->now_ns = now_ns;
    ssize_t taken = h2->is_client ? feed(h2, bytes.data, bytes.len) : feed_frames(h2, bytes);
    if (taken < 0) {
        h2->has_failed = true;
        return h2->is_flooded ? hf_fail(op, HF_ERR_LIMIT, "the peer floods the connection") : status_of(op, (int)taken);
    }
    if (h2->is_flooded) {
        h2->has_failed = true;
        return hf_fail(op, HF_ERR_LIMIT, "the peer floods the connection");
    }
    return HF_OK;
}

/* ---- Streams -------------------------------------------------------------------------------------------------------------- */

hf_status hf_h2_respond(hf_op *op, hf_h2 *h2, hf_h2_stream *stream, const hf_h2_field *fields, size_t count,
                        bool is_last)
{
    nghttp2_nv values[FIELDS_MAX];
    nghttp2_data_provider body = {.source.ptr = stream, .read_callback = read_body};
    hf_assert(!h2->is_client && !stream->is_answering);
    int error = nghttp2_submit_response(h2->session, stream->id, values, fields_of(fields, count, values),
                                        is_last ? NULL : &body);
    if (error != 0) {
        return status_of(op, error);
    }
    stream->is_answering = true;
    stream->is_ended = is_last;
    return HF_OK;
}

hf_status hf_h2_request(hf_op *op, hf_h2 *h2, hf_h2_stream *stream, const hf_h2_field *fields, size_t count,
                        bool is_last)
{
    nghttp2_nv values[FIELDS_MAX];
    nghttp2_data_provider body = {.source.ptr = stream, .read_callback = read_body};
    hf_assert(h2->is_client && stream->id == 0);
    hf_buf_init(&stream->out, h2->memory, SIZE_MAX / 2);
    int32_t id = nghttp2_submit_request(h2->session, NULL, values, fields_of(fields, count, values),
                                        is_last ? NULL : &body, stream);
    if (id < 0) {
        return id == NGHTTP2_ERR_NOMEM ? status_of(op, id)
                                       : hf_fail(op, HF_ERR_CLOSED, "no more streams on this connection");
    }
    stream->id = id;
    stream->is_answering = true;
    stream->is_ended = is_last;
    return HF_OK;
}

bool hf_h2_may_request(const hf_h2 *h2)
{
    return !h2->has_failed && nghttp2_session_check_request_allowed(h2->session) != 0;
}

uint32_t hf_h2_streams_max(const hf_h2 *h2)
{
    return nghttp2_session_get_remote_settings(h2->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

void hf_h2_put(hf_h2 *h2, hf_h2_stream *stream, size_t len)
{
    hf_assert(!stream->is_ended && len <= stream->out.len);
    h2->out_len += len;
    if (stream->is_asleep) {
        stream->is_asleep = false;
        (void)nghttp2_session_resume_data(h2->session, stream->id);
    }
}

void hf_h2_end(hf_h2 *h2, hf_h2_stream *stream, const hf_h2_field *trailers, size_t count)
{
    hf_assert(stream->is_answering && !stream->is_ended);
    stream->is_ended = true;
    stream->trailers = trailers;
    stream->trailer_count = count;
    if (stream->is_asleep) {
        stream->is_asleep = false;
        (void)nghttp2_session_resume_data(h2->session, stream->id);
    }
}

void hf_h2_reset(hf_h2 *h2, hf_h2_stream *stream, uint32_t code)
{
    (void)nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, stream->id, code);
}

void hf_h2_goaway(hf_h2 *h2, bool is_soon)
{
    if (is_soon) {
        (void)nghttp2_submit_shutdown_notice(h2->session);
    } else {
        (void)nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
                                    nghttp2_session_get_last_proc_stream_id(h2->session), NGHTTP2_NO_ERROR, NULL, 0);
    }
}

void hf_h2_ping(hf_h2 *h2)
{
    (void)nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL);
}

/* ---- Life ------------------------------------------------------------------------------------------------------------------- */

void hf_h2_drop(hf_h2_stream *stream)
{
    hf_buf_deinit(&stream->out);
}

bool hf_h2_is_live(const hf_h2 *h2)
{
    return !h2->has_failed &&
           (nghttp2_session_want_read(h2->session) != 0 || nghttp2_session_want_write(h2->session) != 0);
}

size_t hf_h2_out_len(const hf_h2 *h2)
{
    return h2->out_len;
}

uint64_t hf_h2_body_sent(const hf_h2 *h2)
{
    return h2->body_sent;
}

static int open_session(hf_h2 *h2, nghttp2_session_callbacks *callbacks, nghttp2_option *option)
{
    nghttp2_mem memory = {h2, piece_new, piece_free, piece_zeroed, piece_resized};
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option_set_no_closed_streams(option, 1); /* they are only kept for priorities, which we do not use */
    nghttp2_option_set_max_continuations(option, HF_H2_CONTINUATIONS_MAX);
    nghttp2_option_set_stream_reset_rate_limit(option, HF_H2_RESETS_BURST, HF_H2_RESETS_RATE);
    nghttp2_option_set_peer_max_concurrent_streams(option, 1000);
    return h2->is_client ? nghttp2_session_client_new3(&h2->session, callbacks, h2, option, &memory)
                         : nghttp2_session_server_new3(&h2->session, callbacks, h2, option, &memory);
}

static int settle(hf_h2 *h2, uint32_t streams_max)
{
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams_max},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HF_H2_WINDOW_STREAM},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HF_H2_HEADERS_LEN_MAX},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    int error = nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
                                        h2->is_client ? HF_COUNT_OF(settings) : HF_COUNT_OF(settings) - 1);
    return error != 0 ? error
                      : nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0, HF_H2_WINDOW_SESSION);
}

hf_status hf_h2_open(hf_op *op, hf_allocator memory, const hf_h2_options *options, const hf_h2_events *events,
                     void *state, hf_h2 **ret_h2)
{
    hf_h2 *h2 = memory.allocate(memory.state, sizeof *h2, 0);
    if (h2 == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for an HTTP/2 connection");
    }
    *h2 = (hf_h2){.events = events,
                  .state = state,
                  .memory = memory,
                  .resets = bucket_of(HF_H2_RESETS_BURST, HF_H2_RESETS_RATE),
                  .controls = bucket_of(HF_H2_CONTROLS_BURST, HF_H2_CONTROLS_RATE),
                  .frame_left = PREFACE_LEN,
                  .is_client = options->is_client};
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    int error = nghttp2_session_callbacks_new(&callbacks);
    error = error != 0 ? error : nghttp2_option_new(&option);
    error = error != 0 ? error : open_session(h2, callbacks, option);
    error = error != 0 ? error : settle(h2, options->streams_max);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    if (error != 0) {
        hf_h2_close(h2);
        return status_of(op, error);
    }
    *ret_h2 = h2;
    return HF_OK;
}

void hf_h2_close(hf_h2 *h2)
{
    if (h2 == NULL) {
        return;
    }
    nghttp2_session_del(h2->session); /* it does not call on_close */
    h2->memory.release(h2->memory.state, h2, sizeof *h2);
}
