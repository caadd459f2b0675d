#include "engine/mask.h"

bool hf_mask_is(hf_str path, const char *name)
{
    size_t at = 0;
    for (; *name != '\0'; name++, at++) {
        char want = *name;
        if (want == '_') {
            if (at < path.len && path.data[at] == '_') {
                continue;
            }
            name++;
            want = (char)(*name - 'a' + 'A');
        }
        if (at >= path.len || path.data[at] != want) {
            return false;
        }
    }
    return at == path.len;
}

bool hf_mask_has(const hf_pb_field_mask *mask, const char *name)
{
    for (size_t i = 0; i < mask->paths.count; i++) {
        if (hf_mask_is(mask->paths.items[i], name)) {
            return true;
        }
    }
    return false;
}
