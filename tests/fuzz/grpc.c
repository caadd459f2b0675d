/* Frames of gRPC and what stands around them: the body of a request in pieces, compressed messages, grpc-timeout, texts of failures, and
 * the heads of HTTP/1.1. The first byte of an input says what the rest is read as. */
#include "fuzz/fuzz.h"

#include "wire/grpc.h"
#include "wire/gzip.h"
#include "wire/http1.h"

enum { MESSAGE_MAX = 64 * 1024, MEMORY_MAX = 4 << 20 };

/* Frame after frame. Those that are read are within the input, in order, and cover it. */
static void read_frames(hf_str bytes)
{
    hf_grpc_frame frame;
    hf_op op;
    for (;;) {
        hf_op_init(&op);
        hf_status status = hf_grpc_take(&op, bytes, MESSAGE_MAX, &frame);
        if (status == HF_ERR_AGAIN) {
            return;
        }
        if (status != HF_OK) {
            FUZZ_CHECK(op.message[0] != '\0', "refused without a sentence");
            return;
        }
        FUZZ_CHECK(frame.message.len <= MESSAGE_MAX, "a message of %zu bytes", frame.message.len);
        FUZZ_CHECK(frame.message.len + frame.rest.len + HF_GRPC_HEAD_LEN == bytes.len, "bytes are lost");
        unsigned char head[HF_GRPC_HEAD_LEN];
        hf_grpc_head(head, frame.is_compressed, (uint32_t)frame.message.len);
        FUZZ_CHECK(memcmp(head, bytes.data, sizeof head) == 0, "the head is another when it is written");
        bytes = frame.rest;
    }
}

/* What is inflated is bounded, and comes out the same when it is packed again. */
static void inflate(hf_str bytes, hf_allocator memory)
{
    hf_op op;
    hf_op_init(&op);
    hf_buf plain;
    hf_buf packed;
    hf_buf again;
    hf_buf_init(&plain, memory, SIZE_MAX / 2);
    hf_buf_init(&packed, memory, SIZE_MAX / 2);
    hf_buf_init(&again, memory, SIZE_MAX / 2);
    hf_status status = hf_gunzip(&op, bytes, MESSAGE_MAX, &plain);
    FUZZ_CHECK(plain.len <= MESSAGE_MAX, "%zu bytes were inflated", plain.len);
    if (status == HF_OK) {
        FUZZ_CHECK(hf_gzip(&op, hf_str_of_len(plain.data, plain.len), &packed) == HF_OK, "%s", op.message);
        FUZZ_CHECK(hf_gunzip(&op, hf_str_of_len(packed.data, packed.len), MESSAGE_MAX, &again) == HF_OK, "%s",
                   op.message);
        FUZZ_CHECK(again.len == plain.len && (plain.len == 0 || memcmp(again.data, plain.data, plain.len) == 0),
                   "it is another when it is packed");
    } else {
        FUZZ_CHECK(op.message[0] != '\0', "refused without a sentence");
    }
    hf_buf_deinit(&plain);
    hf_buf_deinit(&packed);
    hf_buf_deinit(&again);
}

/* All that is sent is what a head may have, at most three bytes for one. */
static void write_message(hf_str text, hf_allocator memory)
{
    hf_buf out;
    hf_buf_init(&out, memory, SIZE_MAX / 2);
    hf_grpc_message_put(text, &out);
    FUZZ_CHECK(out.len >= text.len && out.len <= 3 * text.len, "%zu bytes for %zu", out.len, text.len);
    for (size_t i = 0; i < out.len; i++) {
        FUZZ_CHECK(out.data[i] >= ' ' && out.data[i] <= '~', "byte %d in a head", out.data[i]);
    }
    hf_buf_deinit(&out);
}

/* A head in two pieces is the same as in one. */
static void read_head(hf_str bytes, hf_allocator memory)
{
    hf_op op;
    hf_op_init(&op);
    hf_http1 *whole = NULL;
    hf_http1 *pieces = NULL;
    FUZZ_CHECK(hf_http1_open(&op, memory, &whole) == HF_OK && hf_http1_open(&op, memory, &pieces) == HF_OK, "%s",
               op.message);
    size_t half = bytes.len > 0 ? (unsigned char)bytes.data[0] % (bytes.len + 1) : 0;
    int first = hf_http1_recv(whole, bytes);
    int second = hf_http1_recv(pieces, hf_str_of_len(bytes.data, half));
    second = second == 0 ? hf_http1_recv(pieces, hf_str_of_len(bytes.data + half, bytes.len - half)) : second;
    FUZZ_CHECK(first == second, "%d whole, %d in pieces", first, second);
    if (first == 200) {
        FUZZ_CHECK(hf_http1_path(whole).len <= HF_HTTP1_TARGET_LEN_MAX, "a long path");
        FUZZ_CHECK(hf_str_equal(hf_http1_path(whole), hf_http1_path(pieces)), "two paths");
        FUZZ_CHECK(hf_str_equal(hf_http1_host(whole), hf_http1_host(pieces)), "two hosts");
        FUZZ_CHECK(hf_http1_method(whole)[0] != '\0', "no method");
    }
    hf_http1_close(whole);
    hf_http1_close(pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_memory memory = {0};
    hf_span timeout = {0};
    if (size < 1) {
        return 0;
    }
    char *copy = fuzz_copy(hf_str_of_len((const char *)data + 1, size - 1));
    hf_str bytes = hf_str_of_len(copy, size - 1);
    switch (data[0] % 5) {
    case 0:
        read_frames(bytes);
        break;
    case 1:
        inflate(bytes, fuzz_heap(&memory));
        break;
    case 2:
        FUZZ_CHECK(!hf_grpc_timeout_parse(bytes, &timeout) || timeout.ns >= 0, "%.*s is negative", HF_STR_ARGS(bytes));
        break;
    case 3:
        write_message(bytes, fuzz_heap(&memory));
        break;
    default:
        read_head(bytes, fuzz_heap(&memory));
        break;
    }
    free(copy);
    fuzz_memory_check(&memory, MEMORY_MAX + 8 * size);
    return 0;
}
