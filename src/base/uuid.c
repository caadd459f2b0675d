#include "base/uuid.h"

#define DIGIT_COUNT 32

static const char DIGITS[] = "0123456789abcdef";

_Static_assert(HF_UUID_LEN == DIGIT_COUNT + 4 + 1, "32 digits, 4 hyphens, a NUL");

static bool is_hyphen_at(size_t at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

void hf_uuid_text(uint64_t high, uint64_t low, char ret_text[HF_UUID_LEN])
{
    high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);     /* version 4 */
    low = (low & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62); /* variant 1 */
    int digit = 0;
    for (size_t at = 0; at < HF_UUID_LEN - 1; at++) {
        if (is_hyphen_at(at)) {
            ret_text[at] = '-';
            continue;
        }
        uint64_t half = digit < 16 ? high : low;
        ret_text[at] = DIGITS[(half >> (60 - 4 * (digit % 16))) & 15];
        digit++;
    }
    hf_assert(digit == DIGIT_COUNT);
    ret_text[HF_UUID_LEN - 1] = '\0';
}

static int value_of(char digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool hf_uuid_parse(hf_str text, uint64_t *ret_high, uint64_t *ret_low)
{
    uint64_t halves[2] = {0, 0};
    int digits = 0;
    if (text.len != HF_UUID_LEN - 1) {
        return false;
    }
    for (size_t at = 0; at < text.len; at++) {
        if (is_hyphen_at(at)) {
            if (text.data[at] != '-') {
                return false;
            }
            continue;
        }
        int value = value_of(text.data[at]);
        if (value < 0) {
            return false;
        }
        halves[digits / 16] = halves[digits / 16] << 4 | (uint64_t)value;
        digits++;
    }
    hf_assert(digits == DIGIT_COUNT);
    *ret_high = halves[0];
    *ret_low = halves[1];
    return true;
}
