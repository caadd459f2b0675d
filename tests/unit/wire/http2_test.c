/* HTTP/2 sessions: two of ours against each other, and ours against bytes that no honest client sends. */
#include "support/support.h"

#include "base/env.h"
#include "base/list.h"
#include "wire/http2.h"

/* ---- Memory that is counted ------------------------------------------------------------------------------------------------- */

typedef struct counted {
    size_t now;
    size_t most;
} counted;

static void *counted_allocate(void *state, size_t len, size_t align)
{
    counted *count = state;
    hf_env *env = hf_env_posix();
    count->now += len;
    count->most = count->now > count->most ? count->now : count->most;
    return env->ops->allocate(env, len, align);
}

static void counted_release(void *state, void *ptr, size_t len)
{
    counted *count = state;
    hf_env *env = hf_env_posix();
    count->now -= ptr != NULL ? len : 0;
    env->ops->release(env, ptr, len);
}

/* ---- A server that answers every request with its own body -------------------------------------------------------------------- */

typedef struct echo_stream {
    hf_h2_stream h2; /* first */
    hf_node node;
    hf_buf in;
} echo_stream;

typedef struct echo {
    hf_h2 *h2;
    counted count;
    hf_allocator memory;
    hf_list streams;
    int begun;
    int closed;
    int closed_badly;
    int ended;
} echo;

static hf_h2_stream *echo_begin(void *state, int32_t id)
{
    echo *e = state;
    (void)id;
    echo_stream *stream = e->memory.allocate(e->memory.state, sizeof *stream, 0);
    *stream = (echo_stream){0};
    hf_buf_init(&stream->in, e->memory, 1 << 20);
    hf_list_push_back(&e->streams, &stream->node);
    e->begun++;
    return &stream->h2;
}

static void echo_field(void *state, hf_h2_stream *h2, hf_str name, hf_str value)
{
    (void)state;
    (void)h2;
    (void)name;
    (void)value;
}

static void echo_head(void *state, hf_h2_stream *h2)
{
    (void)state;
    (void)h2;
}

static void echo_data(void *state, hf_h2_stream *h2, hf_str bytes)
{
    (void)state;
    hf_buf_put(&((echo_stream *)(void *)h2)->in, bytes.data, bytes.len);
}

static void echo_end(void *state, hf_h2_stream *h2)
{
    static const hf_h2_field HEAD[] = {{HF_STR_INIT(":status"), HF_STR_INIT("200")}};
    static const hf_h2_field TAIL[] = {{HF_STR_INIT("fine"), HF_STR_INIT("yes")}};
    echo *e = state;
    echo_stream *stream = (echo_stream *)(void *)h2;
    hf_op op;
    hf_op_init(&op);
    e->ended++;
    assert_int_equal(hf_h2_respond(&op, e->h2, h2, HEAD, 1, false), HF_OK);
    hf_buf_put(&h2->out, stream->in.data, stream->in.len);
    hf_h2_put(e->h2, h2, stream->in.len);
    hf_h2_end(e->h2, h2, TAIL, 1);
}

static void echo_closed(void *state, hf_h2_stream *h2, uint32_t code)
{
    echo *e = state;
    echo_stream *stream = (echo_stream *)(void *)h2;
    e->closed++;
    e->closed_badly += code != 0;
    hf_list_remove(&stream->node);
    hf_buf_deinit(&stream->in);
    e->memory.release(e->memory.state, stream, sizeof *stream);
}

static const hf_h2_events ECHO = {echo_begin, echo_field, echo_head, echo_data, echo_end, echo_closed};

static void echo_open(echo *e)
{
    hf_op op;
    hf_op_init(&op);
    *e = (echo){0};
    hf_list_init(&e->streams);
    e->memory = (hf_allocator){counted_allocate, counted_release, &e->count};
    hf_h2_options options = {.streams_max = 100};
    assert_int_equal(hf_h2_open(&op, e->memory, &options, &ECHO, e, &e->h2), HF_OK);
}

static void echo_free(echo *e)
{
    hf_h2_close(e->h2);
    HF_LIST_EACH(node, &e->streams)
    {
        echo_stream *stream = HF_CONTAINER(node, echo_stream, node);
        hf_h2_drop(&stream->h2);
        echo_closed(e, &stream->h2, 0);
    }
    assert_int_equal(e->count.now, 0);
}

/* ---- Honest ------------------------------------------------------------------------------------------------------------------ */

typedef struct asker {
    hf_h2_stream h2; /* first */
    hf_buf body;
    bool has_tail;
    bool is_closed;
} asker;

static void ask_field(void *state, hf_h2_stream *h2, hf_str name, hf_str value)
{
    (void)state;
    (void)value;
    ((asker *)(void *)h2)->has_tail |= hf_str_equal(name, HF_STR("fine"));
}

static void ask_data(void *state, hf_h2_stream *h2, hf_str bytes)
{
    (void)state;
    hf_buf_put(&((asker *)(void *)h2)->body, bytes.data, bytes.len);
}

static void ask_closed(void *state, hf_h2_stream *h2, uint32_t code)
{
    (void)state;
    ((asker *)(void *)h2)->is_closed = code == 0;
}

static const hf_h2_events ASK = {NULL, ask_field, echo_head, ask_data, echo_head, ask_closed};

static void pass(hf_h2 *from, hf_h2 *to, hf_allocator memory)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf bytes;
    hf_buf_init(&bytes, memory, SIZE_MAX / 2);
    assert_int_equal(hf_h2_send(&op, from, &bytes, 1 << 20), HF_OK);
    if (bytes.len > 0) {
        assert_int_equal(hf_h2_recv(&op, to, hf_str_of_len(bytes.data, bytes.len), 0), HF_OK);
    }
    hf_buf_deinit(&bytes);
}

static void a_body_travels_both_ways_with_trailers(void **state)
{
    (void)state;
    enum { LEN = 300000 };
    static const hf_h2_field HEAD[] = {{HF_STR_INIT(":method"), HF_STR_INIT("POST")},
                                       {HF_STR_INIT(":scheme"), HF_STR_INIT("http")},
                                       {HF_STR_INIT(":path"), HF_STR_INIT("/")},
                                       {HF_STR_INIT(":authority"), HF_STR_INIT("a")}};
    hf_op op;
    hf_op_init(&op);
    echo e;
    echo_open(&e);
    hf_h2 *client = NULL;
    hf_h2_options options = {.is_client = true};
    assert_int_equal(hf_h2_open(&op, e.memory, &options, &ASK, NULL, &client), HF_OK);
    asker a = {0};
    hf_buf_init(&a.body, e.memory, SIZE_MAX / 2);
    assert_int_equal(hf_h2_request(&op, client, &a.h2, HEAD, HF_COUNT_OF(HEAD), false), HF_OK);
    for (int i = 0; i < LEN; i++) {
        hf_buf_putc(&a.h2.out, (char)(i % 251));
    }
    hf_h2_put(client, &a.h2, LEN);
    hf_h2_end(client, &a.h2, NULL, 0);
    for (int i = 0; i < 200 && !a.is_closed; i++) {
        pass(client, e.h2, e.memory);
        pass(e.h2, client, e.memory);
    }
    assert_true(a.is_closed && a.has_tail);
    assert_int_equal(a.body.len, LEN);
    for (size_t i = 0; i < LEN; i++) {
        assert_int_equal((unsigned char)a.body.data[i], i % 251);
    }
    assert_int_equal(e.closed, 1);
    hf_buf_deinit(&a.body);
    hf_h2_close(client);
    echo_free(&e);
}

/* ---- Dishonest --------------------------------------------------------------------------------------------------------------- */

enum { DATA = 0, HEADERS = 1, PRIORITY = 2, RST = 3, SETTINGS = 4, PING = 6, WINDOW = 8, CONTINUATION = 9 };

static void put_frame(hf_buf *out, int type, int flags, uint32_t id, const void *payload, size_t len)
{
    unsigned char head[9] = {(unsigned char)(len >> 16), (unsigned char)(len >> 8), (unsigned char)len,
                             (unsigned char)type,        (unsigned char)flags,      (unsigned char)(id >> 24),
                             (unsigned char)(id >> 16),  (unsigned char)(id >> 8),  (unsigned char)id};
    hf_buf_put(out, head, sizeof head);
    hf_buf_put(out, payload, len);
}

/* :method POST, :scheme http, :path / from the static table, and :authority a. */
#define HEAD_BYTES         \
    "\x83\x86\x84\x01\x01" \
    "a"
enum { HEAD_LEN = 6 };

typedef void attack_step(hf_buf *out, uint32_t i);

static void reset_at_once(hf_buf *out, uint32_t i)
{
    put_frame(out, HEADERS, 4, 2 * i + 1, HEAD_BYTES, HEAD_LEN);
    put_frame(out, RST, 0, 2 * i + 1, "\0\0\0\x08", 4);
}

static void make_it_reset(hf_buf *out, uint32_t i)
{
    put_frame(out, HEADERS, 4, 2 * i + 1, HEAD_BYTES, HEAD_LEN);
    put_frame(out, WINDOW, 0, 2 * i + 1, "\0\0\0\0", 4); /* an increment of 0 is an error of the stream */
}

static void make_it_reset_by_overflow(hf_buf *out, uint32_t i)
{
    put_frame(out, HEADERS, 4, 2 * i + 1, HEAD_BYTES, HEAD_LEN);
    put_frame(out, WINDOW, 0, 2 * i + 1, "\x7f\xff\xff\xff", 4);
}

static void use_a_half_closed_stream(hf_buf *out, uint32_t i)
{
    put_frame(out, HEADERS, 5, 2 * i + 1, HEAD_BYTES, HEAD_LEN);
    put_frame(out, DATA, 0, 2 * i + 1, "x", 1);
}

static void ping(hf_buf *out, uint32_t i)
{
    (void)i;
    put_frame(out, PING, 0, 0, "12345678", 8);
}

static void settle(hf_buf *out, uint32_t i)
{
    (void)i;
    put_frame(out, SETTINGS, 0, 0, NULL, 0);
}

static void prioritise(hf_buf *out, uint32_t i)
{
    put_frame(out, PRIORITY, 0, 2 * i + 1, "\0\0\0\0\x10", 5);
}

static void send_empty_data(hf_buf *out, uint32_t i)
{
    if (i == 0) {
        put_frame(out, HEADERS, 4, 1, HEAD_BYTES, HEAD_LEN);
    }
    put_frame(out, DATA, 0, 1, NULL, 0);
}

static void continue_for_ever(hf_buf *out, uint32_t i)
{
    if (i == 0) {
        put_frame(out, HEADERS, 0, 1, HEAD_BYTES, HEAD_LEN);
    }
    put_frame(out, CONTINUATION, 0, 1, "", 0);
}

/* One field of 4,000 bytes is put into the table, then named again and again: 1 byte each. */
static void bomb(hf_buf *out, uint32_t i)
{
    static char block[8000];
    size_t len = 0;
    memcpy(block, HEAD_BYTES, HEAD_LEN);
    len = HEAD_LEN;
    memcpy(block + len, "\x40\x01x\x7f\xa1\x1e", 6); /* x: a value of 127 + 33 + 30 * 128 = 4000 bytes */
    len += 6;
    memset(block + len, 'y', 4000);
    len += 4000;
    memset(block + len, 0xbe, 3000); /* index 62: the newest */
    len += 3000;
    put_frame(out, HEADERS, 4, 2 * i + 1, block, len);
}

/* Feeds an attack until the session is cut, without any time passing. Returns the steps that it took. */
static int attack(const char *name, attack_step *step, int steps, size_t memory_max)
{
    echo e;
    echo_open(&e);
    hf_op op;
    hf_op_init(&op);
    hf_buf bytes;
    hf_buf sent;
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_buf_init(&bytes, memory, SIZE_MAX / 2);
    hf_buf_init(&sent, memory, SIZE_MAX / 2);
    hf_buf_puts(&bytes, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put_frame(&bytes, SETTINGS, 0, 0, NULL, 0);
    int i = 0;
    hf_status status = HF_OK;
    for (; i < steps && status == HF_OK && hf_h2_is_live(e.h2); i++) {
        step(&bytes, (uint32_t)i);
        status = hf_h2_recv(&op, e.h2, hf_str_of_len(bytes.data, bytes.len), 0);
        bytes.len = sent.len = 0;
        assert_int_equal(hf_h2_send(&op, e.h2, &sent, 1 << 20), HF_OK);
    }
    print_message("%s: cut after %d of %d (%s), %zu bytes at most\n", name, i, steps, hf_status_name(status),
                  e.count.most);
    assert_true(e.count.most <= memory_max);
    hf_buf_deinit(&bytes);
    hf_buf_deinit(&sent);
    echo_free(&e);
    return i;
}

static void wire_H2_floods_are_cut(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        attack_step *step;
        int at_most; /* steps */
    } ATTACKS[] = {
        {"rapid reset", reset_at_once, HF_H2_RESETS_BURST + 2},
        {"made-you-reset, window 0", make_it_reset, HF_H2_RESETS_BURST + 2},
        {"made-you-reset, window too large", make_it_reset_by_overflow, HF_H2_RESETS_BURST + 2},
        {"made-you-reset, half-closed", use_a_half_closed_stream, HF_H2_RESETS_BURST + 2},
        {"ping", ping, HF_H2_CONTROLS_BURST + 2},
        {"settings", settle, HF_H2_CONTROLS_BURST + 2},
        {"priority", prioritise, HF_H2_CONTROLS_BURST + 2},
        {"empty data", send_empty_data, HF_H2_CONTROLS_BURST + 2},
        {"continuation", continue_for_ever, HF_H2_CONTINUATIONS_MAX + 3},
    };
    for (size_t i = 0; i < HF_COUNT_OF(ATTACKS); i++) {
        assert_true(attack(ATTACKS[i].name, ATTACKS[i].step, 5000, 1 << 20) <= ATTACKS[i].at_most);
    }
}

static void wire_H1_a_header_bomb_is_refused_in_little_memory(void **state)
{
    (void)state;
    (void)attack("bomb", bomb, 50, 1 << 20);
}

/* The same requests in a time in which an honest client might make them. */
static void wire_H2_slow_resets_are_not_a_flood(void **state)
{
    (void)state;
    echo e;
    echo_open(&e);
    hf_op op;
    hf_op_init(&op);
    hf_allocator memory = hf_env_memory(hf_env_posix());
    hf_buf bytes;
    hf_buf sent;
    hf_buf_init(&bytes, memory, SIZE_MAX / 2);
    hf_buf_init(&sent, memory, SIZE_MAX / 2);
    hf_buf_puts(&bytes, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put_frame(&bytes, SETTINGS, 0, 0, NULL, 0);
    for (uint32_t i = 0; i < HF_H2_RESETS_BURST - 10; i++) {
        reset_at_once(&bytes, i);
        assert_int_equal(hf_h2_recv(&op, e.h2, hf_str_of_len(bytes.data, bytes.len), i * INT64_C(40000000)), HF_OK);
        bytes.len = sent.len = 0;
        assert_int_equal(hf_h2_send(&op, e.h2, &sent, 1 << 20), HF_OK);
    }
    assert_int_equal(e.begun, HF_H2_RESETS_BURST - 10);
    assert_int_equal(e.closed, e.begun); /* wire-H3 */
    hf_buf_deinit(&bytes);
    hf_buf_deinit(&sent);
    echo_free(&e);
}

/* Frames on streams that are no more, or that a later one has skipped: the codes of GOAWAY that h2spec asks for. Frames on a stream that we
 * have reset were on their way, and are passed over. */
static void streams_that_are_closed_stay_closed(void **state)
{
    (void)state;
    enum { NONE = -1, PROTOCOL_ERROR = 1, STREAM_CLOSED = 5 };
    static const struct {
        const char *what;
        int code; /* of GOAWAY */
    } CASES[] = {
        {"DATA after both sides have ended", STREAM_CLOSED},
        {"HEADERS after both sides have ended", STREAM_CLOSED},
        {"DATA after the peer's reset", STREAM_CLOSED},
        {"HEADERS after the peer's reset", STREAM_CLOSED},
        {"HEADERS of a smaller stream that never was", PROTOCOL_ERROR},
        {"DATA after our own reset", NONE},
        {"HEADERS after our own reset", NONE},
    };
    for (int i = 0; i < (int)HF_COUNT_OF(CASES); i++) {
        echo e;
        echo_open(&e);
        hf_op op;
        hf_op_init(&op);
        hf_buf bytes;
        hf_buf sent;
        hf_buf_init(&bytes, hf_env_memory(hf_env_posix()), SIZE_MAX / 2);
        hf_buf_init(&sent, hf_env_memory(hf_env_posix()), SIZE_MAX / 2);
        hf_buf_puts(&bytes, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        put_frame(&bytes, SETTINGS, 0, 0, NULL, 0);
        bool is_ended = i < 2;
        put_frame(&bytes, HEADERS, is_ended ? 5 : 4, i == 4 ? 5 : 3, HEAD_BYTES, HEAD_LEN);
        if (i == 2 || i == 3) {
            put_frame(&bytes, RST, 0, 3, "\0\0\0\x08", 4);
        }
        assert_int_equal(hf_h2_recv(&op, e.h2, hf_str_of_len(bytes.data, bytes.len), 0), HF_OK);
        if (i >= 5) {
            hf_node *first = hf_list_first(&e.streams);
            hf_h2_reset(e.h2, &HF_CONTAINER(first, echo_stream, node)->h2, HF_H2_CANCEL);
        }
        assert_int_equal(hf_h2_send(&op, e.h2, &sent, 1 << 20), HF_OK);
        bytes.len = sent.len = 0;
        if (i == 1 || i == 3 || i == 4 || i == 6) {
            put_frame(&bytes, HEADERS, 5, 3, HEAD_BYTES, HEAD_LEN);
        } else {
            put_frame(&bytes, DATA, 0, 3, "x", 1);
        }
        for (size_t at = 0; at < bytes.len; at++) { /* a byte at a time: heads of frames come in pieces, too */
            assert_int_equal(hf_h2_recv(&op, e.h2, hf_str_of_len(bytes.data + at, 1), 0), HF_OK);
        }
        assert_int_equal(hf_h2_send(&op, e.h2, &sent, 1 << 20), HF_OK);
        int code = NONE;
        for (size_t at = 0; at + 9 <= sent.len; at += 9 + (size_t)(unsigned char)sent.data[at + 2]) {
            code = sent.data[at + 3] == 7 ? sent.data[at + 9 + 7] : code; /* GOAWAY */
        }
        print_message("%s: %d\n", CASES[i].what, code);
        assert_int_equal(code, CASES[i].code);
        hf_buf_deinit(&bytes);
        hf_buf_deinit(&sent);
        echo_free(&e);
    }
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(a_body_travels_both_ways_with_trailers),
    cmocka_unit_test(wire_H2_floods_are_cut),
    cmocka_unit_test(wire_H1_a_header_bomb_is_refused_in_little_memory),
    cmocka_unit_test(wire_H2_slow_resets_are_not_a_flood),
    cmocka_unit_test(streams_that_are_closed_stay_closed),
};

int main(int argc, char **argv)
{
    return hf_test_main("http2", TESTS, HF_COUNT_OF(TESTS), argc, argv);
}
