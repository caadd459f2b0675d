#include "base/uuid.h"

#include <endian.h>
#include <string.h>

enum { DIGIT_COUNT = 32 };

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

/* The number that digits_of makes such digits of. Of other bytes it makes some number, whose digits are others. */
static inline uint32_t number_of(uint64_t digits)
{
    uint64_t each = le64toh(digits);
    each = (each & UINT64_C(0x0f0f0f0f0f0f0f0f)) + (each >> 6 & UINT64_C(0x0101010101010101)) * 9;
    each = (each << 4 | each >> 8) & UINT64_C(0x00ff00ff00ff00ff);
    each = (each << 8 | each >> 16) & UINT64_C(0x0000ffff0000ffff);
    return (uint32_t)(each << 16 | each >> 32);
}

bool hf_uuid_parse(hf_str text, uint64_t *ret_high, uint64_t *ret_low)
{
    const char *at = text.data;
    if (text.len != HF_UUID_LEN - 1 || at[8] != '-' || at[13] != '-' || at[18] != '-' || at[23] != '-') {
        return false;
    }
    uint64_t groups[4];
    char *digits = (char *)groups;
    memcpy(digits, at, 8);
    memcpy(digits + 8, at + 9, 4);
    memcpy(digits + 12, at + 14, 4);
    memcpy(digits + 16, at + 19, 4);
    memcpy(digits + 20, at + 24, 12);
    uint32_t numbers[4];
    for (size_t i = 0; i < 4; i++) {
        numbers[i] = number_of(groups[i]);
        if (digits_of(numbers[i]) != groups[i]) {
            return false;
        }
    }
    *ret_high = (uint64_t)numbers[0] << 32 | numbers[1];
    *ret_low = (uint64_t)numbers[2] << 32 | numbers[3];
    return true;
}
