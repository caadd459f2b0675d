/* Input from an enemy: the decoder says no, or finds a message; it never reads beyond the bytes, never recurses without
 * bound and never takes much more time or memory than the input is worth. The sanitizers watch. */
#include "support/support.h"

#include "proto/pb.h"
#include "unit/wire/pb_random.h"

/* Decodes a copy that ends where its heap block ends, so that a sanitizer sees the first byte too far. */
static hf_status decode_exact(const hf_pb_type *type, const char *bytes, size_t len, hf_op *op)
{
    char *copy = malloc(len > 0 ? len : 1);
    memcpy(copy, bytes, len);
    hf_arena arena;
    hf_arena_init(&arena, heap());
    hf_op_init(op);
    void *msg = hf_arena_take(&arena, type->size, 8);
    hf_status status = hf_pb_decode(op, type, hf_str_of_len(copy, len), &arena, msg);
    if (status == HF_OK) { /* then it is a message like any other */
        hf_buf buf;
        hf_buf_init(&buf, heap(), 1 << 26);
        hf_pb_encode(type, msg, &buf);
        HF_CHECK(hf_buf_status(&buf) == HF_OK);
        hf_buf_deinit(&buf);
    }
    HF_CHECK_SAY(status == HF_OK || (status == HF_ERR_INVALID && op->message[0] != '\0'), "status %d", (int)status);
    hf_arena_deinit(&arena);
    free(copy);
    return status;
}

static void make(uint64_t seed, const hf_pb_type *type, hf_arena *arena, hf_buf *buf)
{
    random_maker m = {.rng = {seed}, .arena = arena, .budget = 40};
    void *msg = hf_arena_take(arena, type->size, 8);
    random_message(&m, type, msg, 0);
    hf_pb_encode(type, msg, buf);
}

static void one_truncated(uint64_t seed)
{
    const hf_pb_type *type = hf_pb_types[seed % hf_pb_type_count];
    hf_arena arena;
    hf_arena_init(&arena, heap());
    hf_buf buf;
    hf_buf_init(&buf, heap(), 1 << 20);
    make(seed, type, &arena, &buf);
    hf_op op;
    size_t step = 1 + buf.len / 256;
    for (size_t len = 0; len < buf.len; len += step) {
        (void)decode_exact(type, buf.data, len, &op);
    }
    hf_buf_deinit(&buf);
    hf_arena_deinit(&arena);
}

/* wire-W2 */
static void any_truncation_is_refused_or_read(void **state)
{
    (void)state;
    hf_each_seed("truncated messages", 2000, one_truncated);
}

static void one_flipped(uint64_t seed)
{
    const hf_pb_type *type = hf_pb_types[seed % hf_pb_type_count];
    hf_arena arena;
    hf_arena_init(&arena, heap());
    hf_buf buf;
    hf_buf_init(&buf, heap(), 1 << 20);
    make(seed, type, &arena, &buf);
    hf_rng rng = {seed ^ 0x5eed};
    hf_op op;
    for (int i = 0; i < 64 && buf.len > 0; i++) {
        size_t at = hf_rng_below(&rng, buf.len);
        char kept = buf.data[at];
        buf.data[at] = (char)(kept ^ (1 << hf_rng_below(&rng, 8)));
        (void)decode_exact(type, buf.data, buf.len, &op);
        if (hf_rng_below(&rng, 3) != 0) { /* some damage stays */
            buf.data[at] = kept;
        }
    }
    hf_buf_deinit(&buf);
    hf_arena_deinit(&arena);
}

static void any_flipped_bit_is_refused_or_read(void **state)
{
    (void)state;
    hf_each_seed("messages with flipped bits", 5000, one_flipped);
}

/* wire-W5 */
static void malformed_bytes_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        const char *says; /* part of the sentence */
    } CASES[] = {
        {"\x0a", 1, "workflow_id"},                                     /* no length */
        {"\x0a\x05zz", 4, "length beyond the end at byte 1"},           /* a length that lies */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "length"}, /* the longest lie */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "length"}, /* more than 64 bits */
        {"\x00\x01", 2, "number"},                                      /* field 0 */
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, "tag"},    /* a tag without end */
        {"\xfa\xff\xff\xff\x7f\x00", 6, "number"},                      /* a number above 2^29 */
        {"\x1c", 1, "malformed field"},                                 /* the end of a group that never began */
        {"\x1b\x08\x01", 3, "malformed field"},                         /* a group without end */
        {"\x1b\x08\x01\x24", 4, "malformed field"},                     /* a group with another's end */
        {"\x1e\x01", 2, "malformed field"},                             /* wire type 6 */
        {"\x19\x01\x02", 3, "malformed field"},                         /* 64 bits that are not there */
    };
    for (size_t i = 0; i < HF_COUNT_OF(CASES); i++) {
        hf_op op;
        assert_int_equal(decode_exact(&hf_pb_workflow_execution_type, CASES[i].bytes, CASES[i].len, &op),
                         HF_ERR_INVALID);
        if (strstr(op.message, CASES[i].says) == NULL || strstr(op.message, "WorkflowExecution") == NULL) {
            fail_msg("case %zu says: %s", i, op.message);
        }
    }
}

/* A chain of causes, as deep as asked for, built from the inside. */
static size_t nested(char *bytes, size_t room, int depth)
{
    size_t len = 0;
    char *at = bytes + room;
    for (int i = 0; i < depth; i++) {
        uint8_t head[12] = {0x22}; /* Failure.cause */
        uint8_t *end = hf_pb_set_varint(head + 1, len);
        size_t head_len = (size_t)(end - head);
        at -= head_len;
        memcpy(at, head, head_len);
        len += head_len;
    }
    memmove(bytes, at, len);
    return len;
}

/* wire-W3 */
static void depth_is_bounded(void **state)
{
    (void)state;
    static char bytes[1 << 20];
    hf_op op;
    assert_int_equal(decode_exact(&hf_pb_failure_type, bytes, nested(bytes, sizeof bytes, HF_PB_DEPTH_MAX - 1), &op),
                     HF_OK);
    assert_int_equal(decode_exact(&hf_pb_failure_type, bytes, nested(bytes, sizeof bytes, 200000), &op),
                     HF_ERR_INVALID);
    assert_non_null(strstr(op.message, "deep"));
    memset(bytes, 0x1b, sizeof bytes); /* groups in groups */
    assert_int_equal(decode_exact(&hf_pb_workflow_execution_type, bytes, sizeof bytes, &op), HF_ERR_INVALID);
}

/* Counts what it hands out. */
static void *counting_allocate(void *total, size_t len, size_t align)
{
    *(size_t *)total += len;
    return heap_allocate(NULL, len, align);
}

/* wire-W4 */
static void a_message_in_a_thousand_parts_costs_no_square(void **state)
{
    (void)state;
    /* Each part of `input` brings one payload: all those before would be copied each time. */
    enum { PARTS = 200000 };
    size_t len = 0;
    char *bytes = malloc(PARTS * 4);
    for (int i = 0; i < PARTS; i++, len += 4) {
        memcpy(bytes + len, "\x12\x02\x0a\x00", 4);
    }
    size_t total = 0;
    hf_arena arena;
    hf_arena_init(&arena, (hf_allocator){counting_allocate, heap_release, &total});
    hf_op op;
    hf_op_init(&op);
    hf_pb_workflow_execution_signaled_event_attributes msg;
    assert_int_equal(hf_pb_decode(&op, &hf_pb_workflow_execution_signaled_event_attributes_type,
                                  hf_str_of_len(bytes, len), &arena, &msg),
                     HF_ERR_INVALID);
    assert_non_null(strstr(op.message, "parts"));
    assert_true(total < 64 * len);
    hf_arena_deinit(&arena);

    /* Lists and unknown fields that alternate are fine: room is made once for each. */
    for (size_t i = 0; i + 8 <= len; i += 8) {
        memcpy(bytes + i, "\x2a\x01z\x28\x07\x2a\x01y", 8);
    }
    total = 0;
    hf_arena_init(&arena, (hf_allocator){counting_allocate, heap_release, &total});
    hf_pb_retry_policy policy;
    assert_int_equal(hf_pb_decode(&op, &hf_pb_retry_policy_type, hf_str_of_len(bytes, len), &arena, &policy), HF_OK);
    assert_int_equal(policy.non_retryable_error_types.count, len / 8 * 2);
    assert_int_equal(policy.unknown.len, len / 8 * 2);
    assert_true(total < 16 * len);
    hf_arena_deinit(&arena);
    free(bytes);
}

/* ---- Failing memory -------------------------------------------------------------------------------------------- */

static void *failing_allocate(void *left, size_t len, size_t align)
{
    return (*(int *)left)-- > 0 ? heap_allocate(NULL, len, align) : NULL;
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    hf_arena arena;
    hf_arena_init(&arena, heap());
    hf_buf buf;
    hf_buf_init(&buf, heap(), 1 << 24);
    random_maker m = {.rng = {7}, .arena = &arena, .budget = 4000};
    hf_pb_history_event_list events = {HF_ARENA_ARRAY(&arena, hf_pb_history_event, 40), 40};
    for (size_t i = 0; i < events.count; i++) {
        random_message(&m, &hf_pb_history_event_type, &events.items[i], 0);
    }
    hf_pb_history history = {.events = events};
    hf_pb_encode(&hf_pb_history_type, &history, &buf);
    for (int n = 0;; n++) {
        int left = n;
        hf_arena scarce;
        hf_arena_init(&scarce, (hf_allocator){failing_allocate, heap_release, &left});
        hf_op op;
        hf_op_init(&op);
        hf_pb_history again;
        hf_status status = hf_pb_decode(&op, &hf_pb_history_type, hf_str_of_len(buf.data, buf.len), &scarce, &again);
        hf_arena_deinit(&scarce);
        if (status == HF_OK) {
            assert_true(n > 0);
            break;
        }
        assert_int_equal(status, HF_ERR_NOMEM);
    }
    for (int n = 0;; n++) {
        int left = n;
        hf_buf out;
        hf_buf_init(&out, (hf_allocator){failing_allocate, heap_release, &left}, 1 << 24);
        hf_buf_puts(&out, "before");
        size_t before = out.len;
        hf_pb_encode(&hf_pb_history_type, &history, &out);
        hf_status status = hf_buf_status(&out);
        assert_int_equal(out.len, status == HF_OK ? before + buf.len : before);
        hf_buf_deinit(&out);
        if (status == HF_OK) {
            break;
        }
        assert_int_equal(status, HF_ERR_NOMEM);
    }
    hf_buf_deinit(&buf);
    hf_arena_deinit(&arena);
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(any_truncation_is_refused_or_read),
    cmocka_unit_test(any_flipped_bit_is_refused_or_read),
    cmocka_unit_test(malformed_bytes_are_refused_with_a_sentence),
    cmocka_unit_test(depth_is_bounded),
    cmocka_unit_test(a_message_in_a_thousand_parts_costs_no_square),
    cmocka_unit_test(without_memory_it_says_so),
};

int main(int argc, char **argv)
{
    return hf_test_main("pb_malformed", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
