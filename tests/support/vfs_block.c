/* Contents of simulated files: tables of blocks with reference counts, which are copied on write. A hundred images of a
 * database share its unchanged pages, and making an image only copies pointers.
 *
 * vfs-B1  A block with more than one owner is never written to.
 * vfs-B2  Bytes behind a content's length read as zeros when the length grows: the rest of the last block is zero, entries
 *     behind it are NULL. */
#include "support/vfs_private.h"

#include <stdlib.h>
#include <string.h>

struct hf_vfs_block {
    uint32_t refs;                         /* contents that hold it */
    bool is_hashed;                        /* `hash` is that of `bytes` */
    uint64_t hash;                         /* kept, because most blocks outlive many images */
    unsigned char bytes[HF_VFS_BLOCK_LEN]; /* the content */
};

static size_t blocks_of(uint64_t len)
{
    return (size_t)((len + HF_VFS_BLOCK_LEN - 1) / HF_VFS_BLOCK_LEN);
}

static void block_unref(hf_vfs_block *block)
{
    if (block != NULL && --block->refs == 0) {
        free(block);
    }
}

/* The content's block `idx`, its own and about to be written to. */
static hf_vfs_block *block_own(hf_vfs_content *content, size_t idx)
{
    hf_vfs_block *old = content->blocks[idx];
    if (old != NULL && old->refs == 1) {
        old->is_hashed = false;
        return old;
    }
    hf_vfs_block *block = malloc(sizeof *block);
    hf_assert(block != NULL);
    block->refs = 1;
    block->is_hashed = false;
    if (old != NULL) {
        memcpy(block->bytes, old->bytes, sizeof block->bytes);
        block_unref(old);
    } else {
        memset(block->bytes, 0, sizeof block->bytes);
    }
    content->blocks[idx] = block;
    return block;
}

static void reserve(hf_vfs_content *content, size_t count)
{
    if (count <= content->capacity) {
        return;
    }
    size_t capacity = count + count / 2 + 4;
    content->blocks = realloc(content->blocks, capacity * sizeof *content->blocks);
    hf_assert(content->blocks != NULL);
    memset(content->blocks + content->capacity, 0, (capacity - content->capacity) * sizeof *content->blocks);
    content->capacity = capacity;
}

static void drop_from(hf_vfs_content *content, size_t idx)
{
    size_t count = blocks_of(content->len);
    for (; idx < count; idx++) {
        block_unref(content->blocks[idx]);
        content->blocks[idx] = NULL;
    }
}

void hf_vfs_content_clear(hf_vfs_content *content)
{
    drop_from(content, 0);
    free(content->blocks);
    *content = (hf_vfs_content){0};
}

void hf_vfs_content_share(hf_vfs_content *to, const hf_vfs_content *from)
{
    drop_from(to, 0);
    size_t count = blocks_of(from->len);
    reserve(to, count);
    to->len = from->len;
    for (size_t i = 0; i < count; i++) {
        hf_vfs_block *block = from->blocks[i];
        if (block != NULL) {
            block->refs++;
        }
        to->blocks[i] = block;
    }
}

void hf_vfs_content_take(hf_vfs_content *to, const hf_vfs_content *from, uint64_t offset, uint64_t end)
{
    size_t there = blocks_of(from->len);
    size_t last = blocks_of(end);
    uint64_t len =
        last < there ? (uint64_t)last * HF_VFS_BLOCK_LEN : from->len; /* whole blocks, or vfs-B2 would not hold */
    reserve(to, blocks_of(len));
    for (size_t i = (size_t)(offset / HF_VFS_BLOCK_LEN); i < last && i < to->capacity; i++) {
        hf_vfs_block *block = i < there ? from->blocks[i] : NULL;
        if (block != NULL) {
            block->refs++;
        }
        block_unref(to->blocks[i]);
        to->blocks[i] = block;
    }
    to->len = to->len > len ? to->len : len;
}

size_t hf_vfs_content_read(const hf_vfs_content *content, uint64_t offset, void *ret_bytes, size_t len)
{
    unsigned char *to = ret_bytes;
    size_t there = offset >= content->len ? 0 : (size_t)(content->len - offset);
    there = there < len ? there : len;
    for (size_t done = 0; done < there;) {
        size_t at = (size_t)((offset + done) % HF_VFS_BLOCK_LEN);
        size_t part = HF_VFS_BLOCK_LEN - at < there - done ? HF_VFS_BLOCK_LEN - at : there - done;
        const hf_vfs_block *block = content->blocks[(offset + done) / HF_VFS_BLOCK_LEN];
        if (block != NULL) {
            memcpy(to + done, block->bytes + at, part);
        } else {
            memset(to + done, 0, part);
        }
        done += part;
    }
    memset(to + there, 0, len - there);
    return there;
}

void hf_vfs_content_write(hf_vfs_content *content, uint64_t offset, const void *bytes, size_t len, hf_rng *rng)
{
    if (len == 0) {
        return;
    }
    reserve(content, blocks_of(offset + len));
    content->len = content->len > offset + len ? content->len : offset + len;
    for (size_t done = 0; done < len;) {
        size_t at = (size_t)((offset + done) % HF_VFS_BLOCK_LEN);
        size_t part = HF_VFS_BLOCK_LEN - at < len - done ? HF_VFS_BLOCK_LEN - at : len - done;
        hf_vfs_block *block = block_own(content, (size_t)((offset + done) / HF_VFS_BLOCK_LEN));
        if (bytes != NULL) {
            memcpy(block->bytes + at, (const unsigned char *)bytes + done, part);
        }
        for (size_t i = 0; bytes == NULL && i < part; i++) {
            block->bytes[at + i] = (unsigned char)hf_rng_next(rng);
        }
        done += part;
    }
}

void hf_vfs_content_truncate(hf_vfs_content *content, uint64_t len)
{
    if (len < content->len) {
        drop_from(content, blocks_of(len));
        size_t rest = (size_t)(len % HF_VFS_BLOCK_LEN);
        size_t last = (size_t)(len / HF_VFS_BLOCK_LEN);
        if (rest > 0 && content->blocks[last] != NULL) {
            hf_vfs_block *block = block_own(content, last);
            memset(block->bytes + rest, 0, HF_VFS_BLOCK_LEN - rest); /* vfs-B2 */
        }
    }
    reserve(content, blocks_of(len));
    content->len = len;
}

static uint64_t block_hash(hf_vfs_block *block)
{
    static const unsigned char ZEROS[HF_VFS_BLOCK_LEN];
    if (block == NULL) {
        return hf_hash_bytes(0, ZEROS, sizeof ZEROS);
    }
    if (!block->is_hashed) {
        block->hash = hf_hash_bytes(0, block->bytes, sizeof block->bytes);
        block->is_hashed = true;
    }
    return block->hash;
}

bool hf_vfs_content_is_equal(const hf_vfs_content *a, const hf_vfs_content *b)
{
    bool is_equal = a->len == b->len;
    for (size_t i = 0; i < blocks_of(a->len) && is_equal; i++) {
        is_equal = a->blocks[i] == b->blocks[i] || block_hash(a->blocks[i]) == block_hash(b->blocks[i]);
    }
    return is_equal;
}

uint64_t hf_vfs_content_hash(const hf_vfs_content *content)
{
    uint64_t hash = hf_hash_mix(0, content->len);
    for (size_t i = 0; i < blocks_of(content->len); i++) {
        hash = hf_hash_mix(hash, block_hash(content->blocks[i]));
    }
    return hash;
}
