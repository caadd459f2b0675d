/* A fast 64-bit hash of bytes (XXH3), for chains over records: it finds damage, but does not protect against forgery. */
#ifndef HF_BASE_DIGEST_H
#define HF_BASE_DIGEST_H

#include "base/str.h"

uint64_t hf_digest(uint64_t seed, hf_str bytes);

#endif
