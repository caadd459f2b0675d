/* Keys as bytes: namespace, NUL, type, NUL, id. Neither of the first two has a NUL, so different keys have different
 * bytes. */
#ifndef HF_DEPOT_KEY_H
#define HF_DEPOT_KEY_H

#include "base/op.h"
#include "base/str.h"

#include <holdfast/depot.h>

#define HF_DEPOT_KEY_LEN_MAX (HF_DEPOT_NAME_LEN_MAX + 1 + HF_DEPOT_NAME_LEN_MAX + 1 + HF_DEPOT_ID_LEN_MAX)

typedef struct hf_depot_key_bytes {
    size_t len;
    char bytes[HF_DEPOT_KEY_LEN_MAX];
} hf_depot_key_bytes;

static inline hf_str hf_depot_key_str(const hf_depot_key_bytes *key)
{
    return hf_str_of_len(key->bytes, key->len);
}
/* The bytes of a key in `size` bytes. 0: they do not fit, or a part of the key is wrong, which hf_depot_key_pack tells. */
size_t hf_depot_key_pack_short(hf_depot_key key, char *to, size_t size);
/* Fails: HF_ERR_INVALID with a sentence that says which part is wrong. */
hf_status hf_depot_key_pack(hf_op *op, hf_depot_key key, hf_depot_key_bytes *ret_bytes);
/* The parts of a packed key, borrowed from it. False: these bytes are not a key. */
bool hf_depot_key_unpack(hf_str bytes, hf_depot_key *ret_key);
/* The namespace of a packed key. */
hf_str hf_depot_key_ns(hf_str bytes);
/* Fails: HF_ERR_INVALID. */
hf_status hf_depot_ns_check(hf_op *op, const char *ns);

#endif
