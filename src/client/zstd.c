/* A codec that compresses. A frame says how long its content is, so that decoding knows its memory before it begins; a
 * frame that claims more than a payload may have is refused. */
#include <holdfast/payload.h>

#include "base/env.h"
#include "history/limits.h"

#include <zstd.h>

#define PLAIN_LEN_MAX (2 * (size_t)HF_PAYLOAD_LEN_MAX) /* bytes of a payload with all of its metadata */

static hf_status compress(void *state, hf_payload in, hf_payload *ret_out)
{
    (void)state;
    if (in.len < HF_CODEC_FROM_LEN || in.len > PLAIN_LEN_MAX) {
        return HF_OK;
    }
    hf_env *env = hf_env_posix();
    size_t room_len = ZSTD_compressBound(in.len);
    void *room = env->ops->allocate(env, room_len, 16);
    ZSTD_CCtx *context = room != NULL ? ZSTD_createCCtx() : NULL; /* ZSTD_compress puts it on the stack */
    hf_status status = context != NULL ? HF_OK : HF_ERR_NOMEM;
    if (status == HF_OK) {
        size_t len = ZSTD_compressCCtx(context, room, room_len, in.data, in.len, ZSTD_CLEVEL_DEFAULT);
        if (ZSTD_isError(len)) {
            status = HF_ERR_NOMEM; /* all others are excluded: the room is large enough, the level is known */
        } else if (len < in.len) {
            status = hf_payload_copy(hf_payload_of_bytes(room, len), ret_out);
        }
    }
    (void)ZSTD_freeCCtx(context);
    if (room != NULL) {
        env->ops->release(env, room, room_len);
    }
    return status;
}

static hf_status expand(void *state, hf_payload in, hf_payload *ret_out)
{
    (void)state;
    unsigned long long plain_len = ZSTD_getFrameContentSize(in.data, in.len);
    if (plain_len == ZSTD_CONTENTSIZE_UNKNOWN || plain_len == ZSTD_CONTENTSIZE_ERROR || plain_len > PLAIN_LEN_MAX) {
        return HF_ERR_INVALID;
    }
    hf_env *env = hf_env_posix();
    size_t room_len = (size_t)plain_len + 1;
    void *room = env->ops->allocate(env, room_len, 16);
    ZSTD_DCtx *context = room != NULL ? ZSTD_createDCtx() : NULL;
    hf_status status = context != NULL ? HF_OK : HF_ERR_NOMEM;
    if (status == HF_OK) {
        size_t len = ZSTD_decompressDCtx(context, room, room_len, in.data, in.len);
        status = !ZSTD_isError(len) && len == plain_len ? hf_payload_copy(hf_payload_of_bytes(room, len), ret_out)
                                                        : HF_ERR_INVALID;
    }
    (void)ZSTD_freeDCtx(context);
    if (room != NULL) {
        env->ops->release(env, room, room_len);
    }
    return status;
}

const hf_codec *hf_codec_zstd(void)
{
    static const hf_codec CODEC = {.encoding = "binary/zstd", .encode = compress, .decode = expand};
    return &CODEC;
}
