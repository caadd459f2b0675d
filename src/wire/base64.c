#include "wire/base64.h"

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hf_base64_encode(hf_str bytes, hf_buf *out)
{
    size_t len = bytes.len / 3 * 4 + (bytes.len % 3 != 0 ? 4 : 0);
    if (len == 0 || !hf_buf_reserve(out, len)) {
        return;
    }
    const uint8_t *in = (const uint8_t *)bytes.data;
    char *at = out->data + out->len;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t group = (uint32_t)in[i] << 16 | (uint32_t)(left > 1 ? in[i + 1] : 0) << 8 | (left > 2 ? in[i + 2] : 0);
        *at++ = ALPHABET[group >> 18];
        *at++ = ALPHABET[group >> 12 & 63];
        *at++ = left > 1 ? ALPHABET[group >> 6 & 63] : '=';
        *at++ = left > 2 ? ALPHABET[group & 63] : '=';
    }
    out->len += len;
    out->data[out->len] = '\0';
}

/* -1: not a character of either alphabet. */
static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == '+' || c == '-') {
        return 62;
    }
    return c == '/' || c == '_' ? 63 : -1;
}

hf_status hf_base64_decode(hf_str text, hf_arena *arena, hf_str *ret_bytes)
{
    size_t len = text.len;
    for (int i = 0; i < 2 && len > 0 && text.data[len - 1] == '='; i++) {
        len--;
    }
    if (len % 4 == 1 || (len != text.len && text.len % 4 != 0)) {
        return HF_ERR_INVALID;
    }
    uint8_t *bytes = hf_arena_take(arena, len / 4 * 3 + 3, 1);
    if (bytes == NULL) {
        return HF_ERR_NOMEM;
    }
    uint32_t bits = 0;
    int bit_count = 0;
    size_t count = 0;
    for (size_t i = 0; i < len; i++) {
        int value = value_of(text.data[i]);
        if (value < 0) {
            return HF_ERR_INVALID;
        }
        bits = bits << 6 | (uint32_t)value;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            bytes[count++] = (uint8_t)(bits >> bit_count);
        }
    }
    *ret_bytes = hf_str_of_len(bytes, count);
    return HF_OK;
}
