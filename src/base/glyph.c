#include "base/glyph.h"

/* Bytes of the well-formed UTF-8 sequence at `at` (table 3-7 of the Unicode standard), 0 when there is none: overlong
 * forms, surrogates and code points above U+10FFFF are not well-formed. */
static size_t sequence_len(const unsigned char *at, size_t len)
{
    unsigned char lead = at[0];
    unsigned char lo = 0x80;
    unsigned char hi = 0xbf;
    size_t count = 0;
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xc2 && lead <= 0xdf) {
        count = 2;
    } else if ((lead & 0xf0) == 0xe0) {
        count = 3;
        lo = lead == 0xe0 ? 0xa0 : lo;
        hi = lead == 0xed ? 0x9f : hi;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        count = 4;
        lo = lead == 0xf0 ? 0x90 : lo;
        hi = lead == 0xf4 ? 0x8f : hi;
    }
    if (count == 0 || count > len || at[1] < lo || at[1] > hi) {
        return 0;
    }
    for (size_t i = 2; i < count; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return count;
}

static uint32_t decode(const unsigned char *at, size_t len)
{
    static const unsigned char LEAD_BITS[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = at[0] & LEAD_BITS[len];
    for (size_t i = 1; i < len; i++) {
        code = code << 6 | (at[i] & 0x3f);
    }
    return code;
}

/* Control characters, ends of lines, and characters that change the direction of writing. */
static bool is_obeyed(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

hf_glyph hf_glyph_of(hf_str text)
{
    hf_assert(text.len > 0);
    const unsigned char *at = (const unsigned char *)text.data;
    size_t len = sequence_len(at, text.len);
    if (len == 0) {
        return (hf_glyph){.code = at[0], .len = 1};
    }
    uint32_t code = decode(at, len);
    return (hf_glyph){.code = code, .len = len, .is_utf8 = true, .is_printable = !is_obeyed(code)};
}

static const uint64_t HIGH_BITS = 0x8080808080808080u;

/* The highest bits of fewer than eight bytes, ored together; words that overlap save a loop. */
static uint64_t high_bits(const unsigned char *bytes, size_t len)
{
    uint64_t bits = 0;
    if (len >= 4) {
        uint32_t first = 0;
        uint32_t last = 0;
        memcpy(&first, bytes, sizeof first);
        memcpy(&last, bytes + len - sizeof last, sizeof last);
        bits = first | last;
    } else if (len > 0) {
        bits = (uint64_t)(bytes[0] | bytes[len / 2] | bytes[len - 1]);
    }
    return bits & HIGH_BITS;
}

/* Most ids are ASCII: eight bytes at a time, the last eight once more where the length is not a multiple of it. */
static bool is_ascii(const unsigned char *bytes, size_t len)
{
    if (len < sizeof(uint64_t)) {
        return high_bits(bytes, len) == 0;
    }
    uint64_t bits = 0;
    uint64_t eight = 0;
    for (size_t at = 0; at + sizeof eight <= len; at += sizeof eight) {
        memcpy(&eight, bytes + at, sizeof eight);
        bits |= eight;
    }
    memcpy(&eight, bytes + len - sizeof eight, sizeof eight);
    return ((bits | eight) & HIGH_BITS) == 0;
}

bool hf_str_is_utf8(hf_str text)
{
    const unsigned char *bytes = (const unsigned char *)text.data;
    if (is_ascii(bytes, text.len)) {
        return true;
    }
    for (size_t at = 0; at < text.len;) {
        size_t len = sequence_len(bytes + at, text.len - at);
        if (len == 0) {
            return false;
        }
        at += len;
    }
    return true;
}

void hf_text_clean(char *text)
{
    size_t len = strlen(text);
    char *to = text;
    for (size_t at = 0; at < len;) {
        hf_glyph glyph = hf_glyph_of(hf_str_of_len(text + at, len - at));
        if (glyph.is_printable) {
            memmove(to, text + at, glyph.len);
            to += glyph.len;
        } else {
            *to++ = '?';
        }
        at += glyph.len;
    }
    *to = '\0';
}
