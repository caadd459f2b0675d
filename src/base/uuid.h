/* UUIDs of version 4, variant 1, as text: "f81d4fae-7dec-41d0-a765-00a0c91e6bf6". */
#ifndef HF_BASE_UUID_H
#define HF_BASE_UUID_H

#include "base/str.h"

#define HF_UUID_LEN 37 /* bytes of the text, with its NUL */

/* Writes 36 characters and a NUL. Version and variant replace 4 bits of `high` and 2 of `low`. */
void hf_uuid_text(uint64_t high, uint64_t low, char ret_text[HF_UUID_LEN]);
/* The two halves, version and variant included. False: the text is not a UUID in lower case. */
bool hf_uuid_parse(hf_str text, uint64_t *ret_high, uint64_t *ret_low);

#endif
