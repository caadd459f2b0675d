#include "wire/gzip.h"

#define ZLIB_CONST
#include <zlib.h>

enum {
    GZIP_ONLY = 15 + 16,  /* zlib's way to say: a window of 32 KiB, in a gzip wrapper */
    STEP_LEN = 16 * 1024, /* bytes of room for one call of inflate */
    QUICK = 1             /* level of compression: messages go over a loopback or a local network */
};

hf_status hf_gunzip(hf_op *op, hf_str bytes, size_t len_max, hf_buf *out)
{
    if (bytes.len > UINT32_MAX) {
        return hf_fail(op, HF_ERR_TOO_BIG, "%zu compressed bytes are too many", bytes.len);
    }
    z_stream z = {.next_in = (const Bytef *)bytes.data, .avail_in = (uInt)bytes.len};
    size_t start = out->len;
    if (inflateInit2(&z, GZIP_ONLY) != Z_OK) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to decompress a message");
    }
    int result = Z_OK;
    hf_status status = HF_OK;
    while (result != Z_STREAM_END && status == HF_OK) {
        size_t room = len_max - (out->len - start);
        size_t want = room < STEP_LEN ? room + 1 : STEP_LEN; /* one byte more than may come shows that it is too long */
        if (!hf_buf_reserve(out, want)) {
            status = hf_fail(op, HF_ERR_NOMEM, "no memory to decompress a message");
            break;
        }
        z.next_out = (Bytef *)out->data + out->len;
        z.avail_out = (uInt)want;
        result = inflate(&z, Z_NO_FLUSH);
        size_t got = want - z.avail_out;
        if (result != Z_OK && result != Z_STREAM_END) {
            status = hf_fail(op, result == Z_MEM_ERROR ? HF_ERR_NOMEM : HF_ERR_INVALID,
                             "grpc: cannot decompress the message: %s", z.msg != NULL ? z.msg : "it is cut");
        } else if (got > room) {
            status = hf_fail(op, HF_ERR_TOO_BIG,
                             "grpc: received message larger than max (after decompression, limit %zu)", len_max);
        } else {
            out->len += got;
            out->data[out->len] = '\0';
        }
    }
    if (status == HF_OK && z.avail_in > 0) {
        status =
            hf_fail(op, HF_ERR_INVALID, "grpc: cannot decompress the message: %u bytes behind its end", z.avail_in);
    }
    hf_assert(out->len - start <= len_max); /* wire-W2 */
    (void)inflateEnd(&z);
    return status;
}

hf_status hf_gzip(hf_op *op, hf_str bytes, hf_buf *out)
{
    z_stream z = {.next_in = (const Bytef *)bytes.data, .avail_in = (uInt)bytes.len};
    hf_assert(bytes.len <= UINT32_MAX / 2); /* wire-W4: bounded by the caller */
    if (deflateInit2(&z, QUICK, Z_DEFLATED, GZIP_ONLY, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory to compress a message");
    }
    uLong bound = deflateBound(&z, bytes.len);
    hf_status status = HF_OK;
    if (hf_buf_reserve(out, bound)) {
        z.next_out = (Bytef *)out->data + out->len;
        z.avail_out = (uInt)bound;
        int result = deflate(&z, Z_FINISH);
        hf_assert(result == Z_STREAM_END); /* wire-W2: the bound is zlib's own */
        out->len += z.total_out;
        out->data[out->len] = '\0';
    } else {
        status = hf_fail(op, HF_ERR_NOMEM, "no memory to compress a message");
    }
    (void)deflateEnd(&z);
    return status;
}
