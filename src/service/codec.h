/* Codecs: what a program does to its payloads on their way to a service and back (hf_codec in service.h).
 *
 * A codec sees the bytes of a whole payload, with its metadata; what it makes of them becomes the data of a payload that
 * has the codec's encoding. Other SDKs' codecs do the same. Every payload of a request is encoded and every one of a
 * response decoded, wherever it is in the message: the tables of the messages lead there. Search attributes are left
 * alone, because the service itself reads them. */
#ifndef HF_SERVICE_CODEC_H
#define HF_SERVICE_CODEC_H

#include "base/arena.h"
#include "base/op.h"
#include "proto/pb.h"

#include <holdfast/payload.h>

/* A copy of the message, in the arena, with encoded payloads; the message itself if there is no codec.
 * Fails: HF_ERR_NOMEM; HF_ERR_TOO_BIG: a payload grew by more than HF_CODEC_GROWTH_MAX; the codec's status. */
hf_status hf_codec_encode_with(hf_op *op, const hf_codec *codec, const hf_pb_type *type, const void *msg,
                               hf_arena *arena, const void **ret_msg);
static inline hf_status hf_codec_encode(hf_op *op, const hf_codec *codec, const hf_pb_type *type, const void *msg,
                                        hf_arena *arena, const void **ret_msg)
{
    *ret_msg = msg;
    return HF_LIKELY(codec == NULL) ? HF_OK : hf_codec_encode_with(op, codec, type, msg, arena, ret_msg);
}
/* Decodes the payloads of a message in place; new parts are in the arena. `is_lenient`: payloads that cannot be decoded
 * stay as they are, with the codec's encoding. Fails: HF_ERR_NOMEM; HF_ERR_INVALID or the codec's status. */
hf_status hf_codec_decode_with(hf_op *op, const hf_codec *codec, const hf_pb_type *type, void *msg, hf_arena *arena,
                               bool is_lenient);
static inline hf_status hf_codec_decode(hf_op *op, const hf_codec *codec, const hf_pb_type *type, void *msg,
                                        hf_arena *arena, bool is_lenient)
{
    return HF_LIKELY(codec == NULL) ? HF_OK : hf_codec_decode_with(op, codec, type, msg, arena, is_lenient);
}

#endif
