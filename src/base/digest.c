#include "base/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hf_digest(uint64_t seed, hf_str bytes)
{
    return XXH3_64bits_withSeed(bytes.data, bytes.len, seed);
}
