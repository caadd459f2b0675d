#include "base/uuid.h"

#define DIGIT_COUNT 32

static const char DIGITS[] = "0123456789abcdef";

_Static_assert(HF_UUID_LEN == DIGIT_COUNT + 4 + 1, "32 digits, 4 hyphens, a NUL");

static bool is_hyphen_at(size_t at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

/* `count` digits, the last ones of the number. */
static char *put_digits(char *at, uint64_t number, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        at[i] = DIGITS[number & 15];
        number >>= 4;
    }
    return at + count;
}

void hf_uuid_text(uint64_t high, uint64_t low, char ret_text[HF_UUID_LEN])
{
    high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);     /* version 4 */
    low = (low & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62); /* variant 1 */
    char *at = put_digits(ret_text, high >> 32, 8);
    *at++ = '-';
    at = put_digits(at, high >> 16, 4);
    *at++ = '-';
    at = put_digits(at, high, 4);
    *at++ = '-';
    at = put_digits(at, low >> 48, 4);
    *at++ = '-';
    at = put_digits(at, low, 12);
    *at = '\0';
    hf_assert(at == ret_text + HF_UUID_LEN - 1);
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
