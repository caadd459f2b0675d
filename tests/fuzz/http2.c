/* The bytes of an HTTP/2 connection, given to the session of a server in pieces. The first byte of an input says how long the pieces are,
 * its lowest bit whether the preface and empty settings come first, so that few inputs are wasted on them.
 *
 * Whatever comes, each stream that began ends once, what is kept stays within the bounds of wire/http2.h, and nothing is left behind. */
#include "fuzz/fuzz.h"

#include "base/list.h"
#include "wire/http2.h"

enum { STREAMS_MAX = 100, MEMORY_MAX = 24 << 20, BODY_MAX = 64 * 1024 };

typedef struct peer {
    hf_h2 *h2;
    hf_allocator memory;
    hf_list streams;
    int begun;
    int closed;
} peer;

typedef struct peer_stream {
    hf_h2_stream h2; /* first */
    hf_node node;
    bool is_headed;
    bool is_ended;
} peer_stream;

static hf_h2_stream *on_begin(void *state, int32_t id)
{
    peer *p = state;
    FUZZ_CHECK(id > 0 && id % 2 == 1, "a stream %d of a client", id);
    FUZZ_CHECK(p->begun - p->closed <= STREAMS_MAX, "more streams at once than were allowed");
    peer_stream *stream = p->memory.allocate(p->memory.state, sizeof *stream, 0);
    *stream = (peer_stream){0};
    hf_list_push_back(&p->streams, &stream->node);
    p->begun++;
    return &stream->h2;
}

static void on_field(void *state, hf_h2_stream *h2, hf_str name, hf_str value)
{
    (void)state;
    (void)h2;
    FUZZ_CHECK(name.len + value.len <= HF_H2_HEADERS_LEN_MAX, "a field of %zu bytes", name.len + value.len);
}

static void on_head(void *state, hf_h2_stream *h2)
{
    (void)state;
    ((peer_stream *)(void *)h2)->is_headed = true;
}

static void on_data(void *state, hf_h2_stream *h2, hf_str bytes)
{
    (void)state;
    (void)bytes;
    FUZZ_CHECK(((peer_stream *)(void *)h2)->is_headed && !((peer_stream *)(void *)h2)->is_ended, "data out of order");
}

/* Answers with a body, which the peer may or may not make room for. */
static void on_end(void *state, hf_h2_stream *h2)
{
    static const hf_h2_field HEAD[] = {{HF_STR_INIT(":status"), HF_STR_INIT("200")}};
    static const hf_h2_field TAIL[] = {{HF_STR_INIT("grpc-status"), HF_STR_INIT("0")}};
    static const char BODY[1000] = "an answer";
    peer *p = state;
    peer_stream *stream = (peer_stream *)(void *)h2;
    hf_op op;
    hf_op_init(&op);
    FUZZ_CHECK(!stream->is_ended, "a request ended twice");
    stream->is_ended = true;
    if (hf_h2_respond(&op, p->h2, h2, HEAD, 1, false) == HF_OK) {
        hf_buf_put(&h2->out, BODY, sizeof BODY);
        hf_h2_put(p->h2, h2, sizeof BODY);
        hf_h2_end(p->h2, h2, TAIL, 1);
    }
}

static void on_closed(void *state, hf_h2_stream *h2, uint32_t code)
{
    peer *p = state;
    peer_stream *stream = (peer_stream *)(void *)h2;
    (void)code;
    p->closed++;
    hf_list_remove(&stream->node);
    p->memory.release(p->memory.state, stream, sizeof *stream);
}

static const hf_h2_events EVENTS = {on_begin, on_field, on_head, on_data, on_end, on_closed};

static void feed(peer *p, hf_str bytes, size_t piece)
{
    hf_buf out;
    hf_op op;
    hf_op_init(&op);
    hf_buf_init(&out, p->memory, SIZE_MAX / 2);
    for (size_t at = 0; at < bytes.len && hf_h2_is_live(p->h2); at += piece) {
        size_t len = bytes.len - at < piece ? bytes.len - at : piece;
        char *copy = fuzz_copy(hf_str_of_len(bytes.data + at, len));
        hf_status status = hf_h2_recv(&op, p->h2, hf_str_of_len(copy, len), (int64_t)at * 1000000);
        free(copy);
        out.len = 0;
        FUZZ_CHECK(hf_h2_send(&op, p->h2, &out, BODY_MAX) == HF_OK, "%s", op.message);
        if (status != HF_OK) {
            FUZZ_CHECK(op.message[0] != '\0', "refused without a sentence");
            break;
        }
    }
    hf_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    fuzz_memory memory = {0};
    peer p = {.memory = fuzz_heap(&memory)};
    hf_h2_options options = {.streams_max = STREAMS_MAX};
    hf_op op;
    hf_op_init(&op);
    if (size < 1) {
        return 0;
    }
    hf_list_init(&p.streams);
    FUZZ_CHECK(hf_h2_open(&op, p.memory, &options, &EVENTS, &p, &p.h2) == HF_OK, "%s", op.message);
    size_t piece = data[0] < 2 ? SIZE_MAX / 2 : (size_t)data[0] / 2;
    if (data[0] % 2 == 0) {
        feed(&p, hf_str_of_len(PREFACE, sizeof PREFACE - 1), SIZE_MAX / 2);
    }
    feed(&p, hf_str_of_len((const char *)data + 1, size - 1), piece);
    hf_h2_close(p.h2);
    HF_LIST_EACH(node, &p.streams)
    {
        peer_stream *stream = HF_CONTAINER(node, peer_stream, node);
        hf_h2_drop(&stream->h2);
        on_closed(&p, &stream->h2, 0);
    }
    FUZZ_CHECK(p.begun == p.closed, "%d streams began, %d ended", p.begun, p.closed);
    fuzz_memory_check(&memory, MEMORY_MAX);
    return 0;
}
