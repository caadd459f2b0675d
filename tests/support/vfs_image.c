/* The contents that a power cut leaves.
 *
 * vfs-I1  An image is the durable state plus some pending changes, applied in the order they were made. Any subset is possible:
 *     disks and kernels reorder. Sectors of 512 or 4,096 bytes are written whole or not at all, in any order.
 * vfs-I2  A torn write that made the file longer may leave the new length with random bytes: data and length are written
 *     separately (no SAFE_APPEND). */
#include "support/vfs_private.h"

#include <string.h>

/* Decides for each pending change whether it is kept, lost or torn. */
static void choose_fates(const hf_vfs *from, hf_crash_mode mode, hf_rng *rng)
{
    uint64_t whole = mode == HF_CRASH_PREFIX ? hf_rng_below(rng, from->pending_count + 1) : 0;
    uint64_t luck = mode == HF_CRASH_RANDOM ? hf_rng_below(rng, 9) : 0; /* of 8, kept: images differ in kind, too */
    uint64_t number = 0;
    HF_LIST_EACH(node, &from->pending)
    {
        hf_vfs_pending *op = HF_CONTAINER(node, hf_vfs_pending, node);
        switch (mode) {
        case HF_CRASH_ALL:
            op->fate = HF_VFS_KEPT;
            break;
        case HF_CRASH_NONE:
            op->fate = HF_VFS_LOST;
            break;
        case HF_CRASH_PREFIX:
            op->fate = number < whole ? HF_VFS_KEPT : HF_VFS_LOST;
            op->fate = number == whole && hf_rng_below(rng, 4) > 0 ? HF_VFS_TORN : op->fate;
            break;
        case HF_CRASH_RANDOM:
            op->fate = hf_rng_below(rng, 8) < luck ? HF_VFS_KEPT : HF_VFS_LOST;
            op->fate = op->fate == HF_VFS_LOST && hf_rng_below(rng, 3) == 0 ? HF_VFS_TORN : op->fate;
            break;
        }
        number++;
    }
}

/* Chooses the directory of the image, in `is_kept`. Creations and deletions are atomic: they happened or not. */
static void choose_names(const hf_vfs *from, hf_rng *rng)
{
    HF_LIST_EACH(node, &from->files)
    {
        hf_vfs_file *file = HF_CONTAINER(node, hf_vfs_file, node);
        file->is_kept = file->is_durable;
        file->copy = NULL;
    }
    HF_LIST_EACH(node, &from->pending)
    {
        hf_vfs_pending *op = HF_CONTAINER(node, hf_vfs_pending, node);
        if (!hf_vfs_is_name_op(op) || op->fate == HF_VFS_LOST ||
            (op->fate == HF_VFS_TORN && hf_rng_below(rng, 2) == 0)) {
            continue;
        }
        HF_LIST_EACH(other_node, &from->files)
        {
            hf_vfs_file *other = HF_CONTAINER(other_node, hf_vfs_file, node);
            if (other->is_kept && op->kind == HF_VFS_CREATE && strcmp(other->name, op->file->name) == 0) {
                other->is_kept = false;
            }
        }
        op->file->is_kept = op->kind == HF_VFS_CREATE;
    }
}

/* Applies a part of a write, as if the power went in the middle of it. */
static void tear(hf_vfs_content *content, const hf_vfs_pending *op, hf_rng *rng, bool is_powersafe)
{
    uint64_t sector = hf_rng_below(rng, 2) == 0 ? 512 : 4096;
    uint64_t first = op->offset / sector;
    uint64_t count = (op->offset + op->len - 1) / sector - first + 1;
    uint64_t shape = hf_rng_below(rng, 3); /* the beginning, the end, some */
    uint64_t cut = hf_rng_below(rng, count);
    uint64_t end = op->offset + op->len;
    if (end > content->len && hf_rng_below(rng, 2) == 0) { /* vfs-I2 */
        uint64_t old_end = content->len > op->offset ? content->len : op->offset;
        hf_vfs_content_write(content, old_end, NULL, (size_t)(end - old_end), rng);
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = (first + i) * sector > op->offset ? (first + i) * sector : op->offset;
        uint64_t to = (first + i + 1) * sector < end ? (first + i + 1) * sector : end;
        bool is_down = shape == 0 ? i < cut : shape == 1 ? i >= cut : hf_rng_below(rng, 2) == 0;
        if (is_down) {
            hf_vfs_content_write(content, from, op->bytes + (from - op->offset), (size_t)(to - from), NULL);
        }
    }
    if (!is_powersafe) {
        uint64_t at = (first + cut) * sector / HF_VFS_BLOCK_LEN * HF_VFS_BLOCK_LEN;
        uint64_t there = content->len > at ? content->len - at : 0;
        hf_vfs_content_write(content, at, NULL, (size_t)(there < HF_VFS_BLOCK_LEN ? there : HF_VFS_BLOCK_LEN), rng);
    }
}

static void apply_fate(const hf_vfs_pending *op, hf_vfs_content *content, hf_rng *rng, bool is_powersafe)
{
    bool is_torn_write = op->fate == HF_VFS_TORN && op->kind == HF_VFS_WRITE;
    if (op->fate == HF_VFS_LOST) {
        return;
    }
    if (is_torn_write) {
        tear(content, op, rng, is_powersafe);
    } else if (op->kind == HF_VFS_WRITE) {
        hf_vfs_content_write(content, op->offset, op->bytes, op->len, NULL);
    } else if (op->kind == HF_VFS_TRUNCATE && (op->fate == HF_VFS_KEPT || hf_rng_below(rng, 2) == 0)) {
        hf_vfs_content_truncate(content, op->offset);
    }
}

void hf_vfs_image(const hf_vfs *from, hf_crash_mode mode, hf_rng *rng, hf_vfs *to)
{
    hf_list made; /* aside, because `to` may be `from` */
    hf_list_init(&made);
    choose_fates(from, mode, rng);
    choose_names(from, rng);
    HF_LIST_EACH(node, &from->files)
    {
        hf_vfs_file *file = HF_CONTAINER(node, hf_vfs_file, node);
        if (file->is_kept) {
            file->copy = hf_vfs_file_add(&made, file->name);
            file->copy->is_present = file->copy->is_durable = true;
            hf_vfs_content_share(&file->copy->now, hf_vfs_durable(file));
        }
    }
    HF_LIST_EACH(node, &from->pending)
    {
        const hf_vfs_pending *op = HF_CONTAINER(node, hf_vfs_pending, node);
        if (op->file->copy != NULL) {
            apply_fate(op, &op->file->copy->now, rng, from->is_powersafe);
        }
    }
    HF_LIST_EACH(node, &from->files)
    {
        hf_vfs_file *file = HF_CONTAINER(node, hf_vfs_file, node);
        if (file->copy != NULL) {
            hf_vfs_lose(file, &file->copy->now);
        }
    }
    hf_vfs_power_off(to);
    hf_vfs_wipe(to);
    for (hf_node *node = NULL; (node = hf_list_pop_front(&made)) != NULL;) {
        hf_list_push_back(&to->files, node);
    }
    hf_vfs_power_on(to);
}

uint64_t hf_vfs_hash(const hf_vfs *vfs)
{
    uint64_t hash = 0;
    HF_LIST_EACH(node, &vfs->files)
    {
        const hf_vfs_file *file = HF_CONTAINER(node, hf_vfs_file, node);
        if (file->is_present) { /* hashes are added: the order in which files were made must not matter */
            uint64_t name = hf_hash_bytes(0, file->name, strlen(file->name));
            hash += hf_hash_mix(name, hf_vfs_content_hash(&file->now));
        }
    }
    return hash;
}
