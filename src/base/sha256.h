/* SHA-256 (FIPS 180-4): names bytes that are too long for a key. Nobody finds other bytes with the same name. The server's
 * passwords and certificates use the TLS library's (wire/tls.h), which a program without a server does not link. */
#ifndef HF_BASE_SHA256_H
#define HF_BASE_SHA256_H

#include "base/str.h"

enum { HF_SHA256_BYTES = 32, HF_SHA256_HEX_LEN = 64 };

void hf_sha256_of(hf_str bytes, unsigned char ret_hash[HF_SHA256_BYTES]);
/* The same as HF_SHA256_HEX_LEN hexadecimal digits, without a NUL. */
void hf_sha256_hex(hf_str bytes, char ret_text[HF_SHA256_HEX_LEN]);

#endif
