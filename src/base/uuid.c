#include "base/uuid.h"

#include <endian.h>
#include <string.h>

enum { DIGIT_COUNT = 32, NO_DIGIT = 0x80 };

_Static_assert(HF_UUID_LEN == DIGIT_COUNT + 4 + 1, "32 digits, 4 hyphens, a NUL");

/* The eight digits of a number, all at once: one in each byte, the first digit in the first byte of memory. */
static inline uint64_t digits_of(uint32_t number)
{
    uint64_t each = number;
    each = (each << 32 | each >> 16) & UINT64_C(0x0000ffff0000ffff);
    each = (each << 16 | each >> 8) & UINT64_C(0x00ff00ff00ff00ff);
    each = (each << 8 | each >> 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t is_letter = (each + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    return htole64(each + UINT64_C(0x3030303030303030) + is_letter * ('a' - '0' - 10));
}

void hf_uuid_text(uint64_t high, uint64_t low, char ret_text[HF_UUID_LEN])
{
    high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);     /* version 4 */
    low = (low & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62); /* variant 1 */
    uint64_t groups[] = {digits_of((uint32_t)(high >> 32)), digits_of((uint32_t)high), digits_of((uint32_t)(low >> 32)),
                         digits_of((uint32_t)low)};
    const char *digits = (const char *)groups;
    memcpy(ret_text, digits, 8);
    memcpy(ret_text + 9, digits + 8, 4);
    memcpy(ret_text + 14, digits + 12, 4);
    memcpy(ret_text + 19, digits + 16, 4);
    memcpy(ret_text + 24, digits + 20, 12);
    ret_text[8] = ret_text[13] = ret_text[18] = ret_text[23] = '-';
    ret_text[HF_UUID_LEN - 1] = '\0';
}

static unsigned value_of(char digit)
{
    unsigned number = (unsigned)(unsigned char)digit - '0';
    unsigned letter = (unsigned)(unsigned char)digit - 'a';
    return number < 10 ? number : letter < 6 ? letter + 10 : NO_DIGIT;
}

/* Reads `count` digits behind those that `*number` has; `*bad` is not 0 afterwards if one of them is none. */
static void read_digits(const char *text, size_t count, uint64_t *number, unsigned *bad)
{
    for (size_t i = 0; i < count; i++) {
        unsigned value = value_of(text[i]);
        *bad |= value & NO_DIGIT;
        *number = *number << 4 | (value & 15);
    }
}

bool hf_uuid_parse(hf_str text, uint64_t *ret_high, uint64_t *ret_low)
{
    uint64_t high = 0;
    uint64_t low = 0;
    unsigned bad = 0;
    const char *at = text.data;
    if (text.len != HF_UUID_LEN - 1 || at[8] != '-' || at[13] != '-' || at[18] != '-' || at[23] != '-') {
        return false;
    }
    read_digits(at, 8, &high, &bad);
    read_digits(at + 9, 4, &high, &bad);
    read_digits(at + 14, 4, &high, &bad);
    read_digits(at + 19, 4, &low, &bad);
    read_digits(at + 24, 12, &low, &bad);
    if (bad != 0) {
        return false;
    }
    *ret_high = high;
    *ret_low = low;
    return true;
}
