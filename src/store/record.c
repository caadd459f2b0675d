/* Records. The checksum covers more than the body: the table and the key, each with its length where it has one. So a row
 * that a damaged index or a wrong page offers under another key is detected, like a flipped bit.
 *
 *     0        1        2          4             8             12
 *     version  table    0 (u16)    length (u32)  CRC32C (u32)  body ...
 *
 * The short header is the checksum alone. */
#include "base/crc32c.h"
#include "store/store_private.h"

_Static_assert(HF_RECORD_HEADER_LEN == 1 + 1 + 2 + 4 + 4, "version, table, zero, length, checksum");
_Static_assert(HF_TABLE_COUNT <= UINT8_MAX, "a table is one byte of the header");

static void put_le(unsigned char *to, uint64_t value, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = (unsigned char)(value >> (8 * i));
    }
}

static uint32_t get_le32(const unsigned char *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static uint32_t checksum(hf_table table, const hf_key *key, const void *body, size_t body_len)
{
    unsigned char head[1 + 4 + 8 + 8];
    head[0] = (unsigned char)table;
    put_le(head + 1, key->text.len, 4);
    put_le(head + 5, (uint64_t)key->a, 8);
    put_le(head + 13, (uint64_t)key->b, 8);
    uint32_t crc = hf_crc32c(0, head, sizeof head);
    crc = hf_crc32c(crc, key->text.data, key->text.len);
    return hf_crc32c(crc, body, body_len);
}

void hf_record_seal(hf_table table, const hf_key *key, char *header, size_t body_len)
{
    hf_assert((unsigned)table < HF_TABLE_COUNT && body_len <= UINT32_MAX);
    hf_assert(key->text.len <= HF_KEY_TEXT_LEN_MAX);
    unsigned char *h = (unsigned char *)header;
    if (hf_table_info_of(table)->is_short) {
        put_le(h, checksum(table, key, header + HF_RECORD_SHORT_LEN, body_len), 4);
        return;
    }
    h[0] = HF_RECORD_VERSION;
    h[1] = (unsigned char)table;
    put_le(h + 2, 0, 2);
    put_le(h + 4, body_len, 4);
    put_le(h + 8, checksum(table, key, header + HF_RECORD_HEADER_LEN, body_len), 4);
}

hf_status hf_record_open(hf_op *op, hf_table table, const hf_key *key, hf_str value, hf_str *ret_body)
{
    const unsigned char *h = (const unsigned char *)value.data;
    size_t header_len = hf_record_header_len(table);
    const char *wrong = NULL;
    if (value.len < header_len) {
        wrong = "it is cut short";
    } else if (header_len == HF_RECORD_SHORT_LEN) {
        bool fits = get_le32(h) == checksum(table, key, h + header_len, value.len - header_len);
        wrong = fits ? NULL : "its checksum does not fit";
    } else if (h[0] != HF_RECORD_VERSION) {
        wrong = "its version is unknown";
    } else if (h[1] != (unsigned char)table || h[2] != 0 || h[3] != 0) {
        wrong = "its header does not belong to this table";
    } else if (get_le32(h + 4) != value.len - HF_RECORD_HEADER_LEN) {
        wrong = "its length is not the one in its header";
    } else if (get_le32(h + 8) != checksum(table, key, h + HF_RECORD_HEADER_LEN, value.len - HF_RECORD_HEADER_LEN)) {
        wrong = "its checksum does not fit";
    }
    if (wrong != NULL) {
        char text[HF_KEY_FORMAT_LEN];
        hf_key_format(table, key, text);
        return hf_fail(op, HF_ERR_INVALID, "the record %s is damaged: %s", text, wrong);
    }
    *ret_body = (hf_str){value.data + header_len, value.len - header_len};
    return HF_OK;
}
