/* Records: what was sealed opens again, and nothing else does. */
#include "support/support.h"

#include "store/store.h"

#include <string.h>

enum { BODY_LEN = 40 };

typedef struct sealed {
    char bytes[HF_RECORD_HEADER_LEN + BODY_LEN];
} sealed;

static const hf_key KEY = {.text = HF_STR_INIT("default/order-1"), .a = 7, .b = -1};

static sealed seal(hf_table table, const hf_key *key, size_t body_len)
{
    sealed record;
    memset(&record, 0, sizeof record);
    for (size_t i = 0; i < body_len; i++) {
        record.bytes[hf_record_header_len(table) + i] = (char)(i * 7);
    }
    hf_record_seal(table, key, record.bytes, body_len);
    return record;
}

static hf_status open_it(hf_table table, const hf_key *key, const sealed *record, size_t len, hf_str *ret_body,
                         hf_op *op)
{
    hf_op_init(op);
    return hf_record_open(op, table, key, hf_str_of_len(record->bytes, len), ret_body);
}

/* One table with the header, one with the short one. */
static const hf_table KINDS[] = {HF_TABLE_TASK, HF_TABLE_ENTRY};

static void record_opens_to_the_body_that_was_sealed(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(KINDS); i++) {
        size_t header_len = hf_record_header_len(KINDS[i]);
        for (size_t len = 0; len <= BODY_LEN; len += 8) {
            sealed record = seal(KINDS[i], &KEY, len);
            hf_str body = {0};
            hf_op op;
            assert_int_equal(open_it(KINDS[i], &KEY, &record, header_len + len, &body, &op), HF_OK);
            assert_int_equal(body.len, len);
            assert_ptr_equal(body.data, record.bytes + header_len);
        }
    }
    assert_int_equal(hf_record_header_len(HF_TABLE_TASK), 12);
    assert_int_equal(hf_record_header_len(HF_TABLE_ENTRY), 4);
}

static void record_with_any_bit_flipped_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(KINDS); i++) {
        size_t len = hf_record_header_len(KINDS[i]) + BODY_LEN;
        sealed record = seal(KINDS[i], &KEY, BODY_LEN);
        for (size_t bit = 0; bit < len * 8; bit++) {
            record.bytes[bit / 8] = (char)(record.bytes[bit / 8] ^ (1 << bit % 8));
            hf_str body = {0};
            hf_op op;
            assert_int_equal(open_it(KINDS[i], &KEY, &record, len, &body, &op), HF_ERR_INVALID);
            record.bytes[bit / 8] = (char)(record.bytes[bit / 8] ^ (1 << bit % 8));
        }
    }
}

static void record_that_was_cut_or_grew_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT_OF(KINDS); i++) {
        sealed record = seal(KINDS[i], &KEY, BODY_LEN / 2);
        for (size_t len = 0; len <= sizeof record.bytes; len++) {
            hf_str body = {0};
            hf_op op;
            hf_status wanted = len == hf_record_header_len(KINDS[i]) + BODY_LEN / 2 ? HF_OK : HF_ERR_INVALID;
            assert_int_equal(open_it(KINDS[i], &KEY, &record, len, &body, &op), wanted);
        }
    }
}

static void record_under_another_key_or_table_is_refused_with_its_name(void **state)
{
    (void)state;
    sealed record = seal(HF_TABLE_TASK, &KEY, BODY_LEN);
    const hf_key others[] = {
        {.text = HF_STR_INIT("default/order-2"), .a = 7, .b = -1},
        {.text = HF_STR_INIT("default/order-1"), .a = 8, .b = -1},
        {.text = HF_STR_INIT("default/order-1"), .a = 7, .b = 0},
        {.text = HF_STR_INIT("default/order-"), .a = 7, .b = -1},
        {.a = 7, .b = -1},
    };
    hf_str body = {0};
    hf_op op;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(open_it(HF_TABLE_TASK, &others[i], &record, sizeof record.bytes, &body, &op), HF_ERR_INVALID);
    }
    sealed brief = seal(HF_TABLE_ENTRY, &KEY, BODY_LEN);
    size_t len = HF_RECORD_SHORT_LEN + BODY_LEN;
    assert_int_equal(open_it(HF_TABLE_ENTRY, &others[0], &brief, len, &body, &op), HF_ERR_INVALID);
    assert_int_equal(open_it(HF_TABLE_ALIAS, &KEY, &brief, len, &body, &op), HF_ERR_INVALID);
    assert_int_equal(open_it(HF_TABLE_META, &KEY, &record, sizeof record.bytes, &body, &op), HF_ERR_INVALID);
    assert_string_equal(op.message,
                        "the record meta 'default/order-1' is damaged: its header does not belong to this table");
    hf_key odd = {.text = HF_STR_INIT("a\n'\x80"), .a = 1};
    assert_int_equal(open_it(HF_TABLE_TASK, &odd, &record, sizeof record.bytes, &body, &op), HF_ERR_INVALID);
    assert_string_equal(op.message, "the record task 'a...' a=1 is damaged: its checksum does not fit");
}

static const struct CMUnitTest TESTS[] = {
    cmocka_unit_test(record_opens_to_the_body_that_was_sealed),
    cmocka_unit_test(record_with_any_bit_flipped_is_refused),
    cmocka_unit_test(record_that_was_cut_or_grew_is_refused),
    cmocka_unit_test(record_under_another_key_or_table_is_refused_with_its_name),
};

int main(int argc, char **argv)
{
    return hf_test_main("record", TESTS, sizeof TESTS / sizeof *TESTS, argc, argv);
}
