#include "ledger/run_id.h"

#include "base/uuid.h"

#define VERSION_MASK UINT64_C(0xf000) /* of the first half of a UUID */
#define NUMBER_MASK (UINT64_MAX >> 2) /* of its second half */

static uint64_t veil(const unsigned char mac_key[HF_SIPHASH_KEY_LEN], uint64_t first)
{
    return hf_siphash(mac_key, hf_str_of_len(&first, sizeof first)) & NUMBER_MASK;
}

hf_str hf_run_id_make(const unsigned char mac_key[HF_SIPHASH_KEY_LEN], hf_arena *arena, uint64_t chance, int64_t number)
{
    char text[HF_UUID_LEN];
    hf_assert(number > 0 && (uint64_t)number <= NUMBER_MASK);
    hf_uuid_text(chance, (uint64_t)number ^ veil(mac_key, chance & ~VERSION_MASK), text);
    return hf_arena_copy(arena, hf_str_of(text));
}

int64_t hf_run_id_number(const unsigned char mac_key[HF_SIPHASH_KEY_LEN], hf_str run_id)
{
    uint64_t high = 0;
    uint64_t low = 0;
    if (!hf_uuid_parse(run_id, &high, &low)) {
        return 0;
    }
    return (int64_t)((low & NUMBER_MASK) ^ veil(mac_key, high & ~VERSION_MASK));
}
