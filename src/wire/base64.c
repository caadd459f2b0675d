#include "wire/base64.h"

#include <string.h>

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

_Static_assert(sizeof ALPHABET == 64 + 1, "six bits name a letter");

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
    hf_assert(at == out->data + out->len + len);
    out->len += len;
    out->data[out->len] = '\0';
}

static int value_of(char letter)
{
    const char *at = letter != '\0' ? strchr(ALPHABET, letter) : NULL;
    return at != NULL ? (int)(at - ALPHABET) : -1;
}

bool hf_base64_parse(hf_str text, hf_buf *out)
{
    uint32_t bits = 0;
    int count = 0; /* of bits that are not written yet */
    while (text.len > 0 && text.data[text.len - 1] == '=') {
        text.len--;
    }
    if (text.len % 4 == 1 || !hf_buf_reserve(out, text.len)) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        int value = value_of(text.data[i]);
        if (value < 0) {
            return false;
        }
        bits = (bits << 6 | (uint32_t)value) & 0xffff;
        count += 6;
        if (count >= 8) {
            count -= 8;
            hf_buf_putc(out, (char)(bits >> count));
        }
    }
    return hf_buf_status(out) == HF_OK;
}
