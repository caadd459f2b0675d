/* SipHash-2-4 with 64 bits of output: a keyed hash that cannot be forged without the key. For task tokens. */
#ifndef HF_BASE_SIPHASH_H
#define HF_BASE_SIPHASH_H

#include "base/str.h"

#define HF_SIPHASH_KEY_LEN 16

uint64_t hf_siphash(const unsigned char key[HF_SIPHASH_KEY_LEN], hf_str bytes);

#endif
