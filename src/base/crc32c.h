/* CRC32C (Castagnoli): the checksum of stored records. Finds every burst of up to 32 bits and, at the lengths of our records,
 * every three flipped bits. It does not protect against forgery. */
#ifndef HF_BASE_CRC32C_H
#define HF_BASE_CRC32C_H

#include "base/base.h"

/* The checksum of the bytes that `crc` covers, followed by `bytes`; begin with 0. Pieces give the same result as the
 * whole. */
uint32_t hf_crc32c(uint32_t crc, const void *bytes, size_t len);
/* The same without the instruction: the fallback, and the reference for tests. */
uint32_t hf_crc32c_portable(uint32_t crc, const void *bytes, size_t len);

#endif
