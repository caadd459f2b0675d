/* Files and their pending changes.
 *
 * A file has two contents, `now` and `synced`, and the disk one list of the changes that lie between them, oldest
 * first. There are no links and no renames, so a file has one name for life, and the directory is two flags per file:
 * present (processes see it) and durable (the disk has it). A file that is deleted and made again is two files of one
 * name; at most one of them is present and at most one durable.
 *
 *                 write, truncate                    sync of the file
 *      now  <----------------------  pending  ------------------------------>  synced
 *      is_present  <-- create, delete            + sync of the directory ---> is_durable
 *
 * vfs-D1  A sync of a file makes its changes so far durable. It does nothing for other files or for names. (A journaling
 *     file system makes the name of a new file durable as well, but that is not guaranteed.)
 * vfs-D2  A creation or deletion is durable when the directory was synced after it. SQLite asks for that when it deletes, if at
 *     all, and its VFS does it with the first sync of a journal or WAL that it made.
 * vfs-D3  A writeback that fails is not tried again, as on Linux: reads still see the written bytes, the disk may lack any of
 *     their blocks, and the next sync finds nothing to do. A later write to such a block writes the whole block. The error is
 *     reported once to each descriptor that is open then, and to one that is opened later if it was reported to none.
 * vfs-D4  The directory is one block: a failed sync of it is not tried again either, until a name changes.
 *
 * vfs-D5  If that writeback was the first of a block, the block may be lost for as long as it is cached: later writes to it do not
 *     reach the disk either, although their sync succeeds. (ext4: the block stays marked as unwritten, and reads as zeros after the
 *     next mount.) A block that was dropped from the cache is read from the disk, and can be written again. Dropping a file from
 *     the cache is only a hint: blocks that are in use stay in the cache.
 *
 * A process that dies without the power going leaves `now`: that is hf_vfs_power_off. */
#include "support/vfs_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- Files ------------------------------------------------------------------------------------------------------- */

hf_vfs_file *hf_vfs_file_find(const hf_vfs *vfs, const char *name)
{
    HF_LIST_EACH(node, &vfs->files)
    {
        hf_vfs_file *file = HF_CONTAINER(node, hf_vfs_file, node);
        if (file->is_present && strcmp(file->name, name) == 0) {
            return file;
        }
    }
    return NULL;
}

hf_vfs_file *hf_vfs_file_add(hf_list *files, const char *name)
{
    size_t len = strlen(name) + 1;
    hf_vfs_file *file = calloc(1, sizeof *file + len);
    hf_assert(file != NULL);
    memcpy(file->name, name, len);
    file->is_clean = true;
    hf_list_init(&file->handles);
    hf_list_push_back(files, &file->node);
    return file;
}

void hf_vfs_file_settle(hf_vfs_file *file)
{
    if (file->is_present || file->is_durable || file->pending > 0 || !hf_list_is_empty(&file->handles)) {
        return;
    }
    hf_list_remove(&file->node);
    hf_vfs_content_clear(&file->now);
    hf_vfs_content_clear(&file->synced);
    free(file->lost);
    free(file);
}

const hf_vfs_content *hf_vfs_durable(const hf_vfs_file *file)
{
    return file->is_clean ? &file->now : &file->synced;
}

/* Whether no image can show the file: temporary, or deleted for good and at most still open somewhere. */
static bool is_invisible(const hf_vfs_file *file)
{
    return file->is_scratch || (!file->is_present && !file->is_durable && file->names == 0);
}

static void pending_drop(hf_vfs *vfs, hf_vfs_pending *op)
{
    hf_list_remove(&op->node);
    op->file->pending--;
    op->file->names -= hf_vfs_is_name_op(op);
    vfs->pending_count--;
    free(op);
}

void hf_vfs_wipe(hf_vfs *vfs)
{
    HF_LIST_EACH(node, &vfs->pending)
    {
        pending_drop(vfs, HF_CONTAINER(node, hf_vfs_pending, node));
    }
    HF_LIST_EACH(node, &vfs->files)
    {
        hf_vfs_file *file = HF_CONTAINER(node, hf_vfs_file, node);
        file->is_present = file->is_durable = false;
        hf_vfs_file_settle(file);
    }
    vfs->is_dir_dirty = false;
}

/* ---- Changes ----------------------------------------------------------------------------------------------------- */

/* From here on the file's two contents differ. */
static void begin_change(hf_vfs_file *file)
{
    if (file->is_clean) {
        hf_vfs_content_share(&file->synced, &file->now);
        file->is_clean = false;
    }
}

/* Puts a change on the list. */
static void pend(hf_vfs *vfs, hf_vfs_file *file, hf_vfs_op_kind kind, uint64_t offset, const void *bytes, size_t len)
{
    if (is_invisible(file)) {
        return;
    }
    hf_vfs_pending *op = malloc(sizeof *op + len);
    hf_assert(op != NULL);
    op->file = file;
    op->kind = kind;
    op->fate = HF_VFS_LOST;
    op->offset = offset;
    op->len = len;
    if (len > 0) {
        memcpy(op->bytes, bytes, len);
    }
    if (hf_vfs_is_name_op(op)) {
        vfs->is_dir_dirty = true;
    } else {
        begin_change(file);
    }
    file->pending++;
    file->names += hf_vfs_is_name_op(op);
    vfs->pending_count++;
    hf_list_push_back(&vfs->pending, &op->node);
}

void hf_vfs_do_create(hf_vfs *vfs, hf_vfs_file *file)
{
    file->is_present = true;
    pend(vfs, file, HF_VFS_CREATE, 0, NULL, 0);
}

void hf_vfs_do_write(hf_vfs *vfs, hf_vfs_file *file, uint64_t offset, const void *bytes, size_t len)
{
    pend(vfs, file, HF_VFS_WRITE, offset, bytes, len);
    hf_vfs_content_write(&file->now, offset, bytes, len, NULL);
}

void hf_vfs_do_truncate(hf_vfs *vfs, hf_vfs_file *file, uint64_t len)
{
    pend(vfs, file, HF_VFS_TRUNCATE, len, NULL, 0);
    hf_vfs_content_truncate(&file->now, len);
    for (size_t i = (size_t)((len + HF_VFS_BLOCK_LEN - 1) / HF_VFS_BLOCK_LEN); i < file->lost_count; i++) {
        file->lost[i] = false; /* a later block at this place is another one */
    }
}

void hf_vfs_do_delete(hf_vfs *vfs, hf_vfs_file *file)
{
    file->is_present = false;
    pend(vfs, file, HF_VFS_DELETE, 0, NULL, 0);
}

/* Applies a creation or a deletion to the directory on the disk. */
static void commit_name(hf_vfs *vfs, hf_vfs_pending *op)
{
    hf_vfs_file *file = op->file;
    HF_LIST_EACH(node, &vfs->files)
    {
        hf_vfs_file *other = HF_CONTAINER(node, hf_vfs_file, node);
        if (op->kind == HF_VFS_CREATE && other != file && other->is_durable && strcmp(other->name, file->name) == 0) {
            other->is_durable = false;
            hf_vfs_file_settle(other);
        }
    }
    file->is_durable = op->kind == HF_VFS_CREATE;
    pending_drop(vfs, op);
    hf_vfs_file_settle(file);
}

/* Forgets pending changes of files that are gone for good. */
static void sweep(hf_vfs *vfs)
{
    HF_LIST_EACH(node, &vfs->pending)
    {
        hf_vfs_pending *op = HF_CONTAINER(node, hf_vfs_pending, node);
        hf_vfs_file *file = op->file;
        if (is_invisible(file)) {
            pending_drop(vfs, op);
            hf_vfs_file_settle(file);
        }
    }
}

void hf_vfs_do_sync_dir(hf_vfs *vfs)
{
    HF_LIST_EACH(node, &vfs->pending)
    {
        hf_vfs_pending *op = HF_CONTAINER(node, hf_vfs_pending, node);
        if (vfs->is_dir_dirty && hf_vfs_is_name_op(op)) {
            commit_name(vfs, op);
        }
    }
    vfs->is_dir_dirty = false;
    sweep(vfs);
}

void hf_vfs_do_sync_dir_badly(hf_vfs *vfs)
{
    vfs->is_dir_dirty = false;
}

/* By hand: if the file's creation is pending, it and all earlier pending changes of its name become durable. */
static void sync_name(hf_vfs *vfs, hf_vfs_file *file)
{
    hf_vfs_pending *creation = NULL;
    HF_LIST_EACH(node, &vfs->pending)
    {
        hf_vfs_pending *op = HF_CONTAINER(node, hf_vfs_pending, node);
        creation = op->file == file && op->kind == HF_VFS_CREATE ? op : creation;
    }
    while (creation != NULL) {
        hf_vfs_pending *first = NULL; /* of the name; the creation at the latest */
        HF_LIST_EACH(node, &vfs->pending)
        {
            hf_vfs_pending *op = HF_CONTAINER(node, hf_vfs_pending, node);
            first = first == NULL && hf_vfs_is_name_op(op) && strcmp(op->file->name, file->name) == 0 ? op : first;
        }
        creation = first == creation ? NULL : creation;
        commit_name(vfs, first);
    }
    sweep(vfs);
}

void hf_vfs_do_sync(hf_vfs *vfs, hf_vfs_file *file)
{
    if (file->is_clean) {
        return;
    }
    HF_LIST_EACH(node, &vfs->pending)
    {
        hf_vfs_pending *op = HF_CONTAINER(node, hf_vfs_pending, node);
        if (op->file == file && !hf_vfs_is_name_op(op)) {
            uint64_t end = op->offset + op->len;
            if (op->kind == HF_VFS_TRUNCATE) { /* everything from there on may have changed */
                end = file->now.len > file->synced.len ? file->now.len : file->synced.len;
            }
            hf_vfs_content_take(&file->synced, &file->now, op->offset, end);
            pending_drop(vfs, op);
        }
    }
    hf_vfs_content_truncate(&file->synced, file->now.len);
    hf_vfs_lose(file, &file->synced);
    if (file->forgotten > 0 && hf_vfs_content_is_equal(&file->synced, &file->now)) {
        file->forgotten = 0; /* all of it was written again */
    }
}

void hf_vfs_lose(const hf_vfs_file *file, hf_vfs_content *content)
{
    static const unsigned char ZEROS[HF_VFS_BLOCK_LEN];
    for (size_t i = 0; i < file->lost_count; i++) {
        uint64_t at = (uint64_t)i * HF_VFS_BLOCK_LEN;
        if (file->lost[i] && at < content->len) {
            uint64_t there = content->len - at;
            hf_vfs_content_write(content, at, ZEROS, (size_t)(there < sizeof ZEROS ? there : sizeof ZEROS), NULL);
        }
    }
}

static void mark_lost(hf_vfs_file *file, size_t idx)
{
    if (idx >= file->lost_count) {
        size_t count = idx + idx / 2 + 8;
        file->lost = realloc(file->lost, count * sizeof *file->lost);
        hf_assert(file->lost != NULL);
        memset(file->lost + file->lost_count, 0, (count - file->lost_count) * sizeof *file->lost);
        file->lost_count = count;
    }
    file->lost[idx] = true;
}

static void forget_lost(hf_vfs_file *file)
{
    free(file->lost);
    file->lost = NULL;
    file->lost_count = 0;
}

void hf_vfs_do_drop(hf_vfs *vfs, hf_vfs_file *file)
{
    hf_vfs_content cached = {0};
    hf_assert(file->pending == file->names && file->now.len == hf_vfs_durable(file)->len); /* it was synced */
    if (file->is_clean) {
        return;
    }
    hf_vfs_content_share(&cached, &file->now);
    hf_vfs_content_share(&file->now, &file->synced);
    for (uint64_t at = 0; at < cached.len; at += HF_VFS_BLOCK_LEN) {
        size_t idx = (size_t)(at / HF_VFS_BLOCK_LEN);
        bool is_lost = idx < file->lost_count && file->lost[idx];
        if (!is_lost && hf_rng_below(&vfs->rng, 4) == 0) { /* the block is in use: it stays cached */
            hf_vfs_content_take(&file->now, &cached, at, at + HF_VFS_BLOCK_LEN);
        }
    }
    hf_vfs_content_clear(&cached);
    forget_lost(file);
}

/* One block of a failed writeback: the disk gets it, gets some of its sectors, or keeps its old bytes. */
static void write_block_badly(hf_vfs *vfs, hf_vfs_file *file, uint64_t at)
{
    enum { SECTOR_LEN = 512 };
    uint64_t end = at + HF_VFS_BLOCK_LEN;
    uint64_t luck = hf_rng_below(&vfs->rng, 8);
    if (luck > 5 && at >= file->synced.len) { /* vfs-D5 */
        mark_lost(file, (size_t)(at / HF_VFS_BLOCK_LEN));
    }
    if (luck < 3) {
        hf_vfs_content_take(&file->synced, &file->now, at, end);
    }
    for (; luck == 3 && at < end && at < file->now.len; at += SECTOR_LEN) {
        unsigned char bytes[SECTOR_LEN];
        size_t there = hf_vfs_content_read(&file->now, at, bytes, sizeof bytes);
        if (hf_rng_below(&vfs->rng, 2) == 0) {
            hf_vfs_content_write(&file->synced, at, bytes, there, NULL);
        }
    }
}

void hf_vfs_do_sync_badly(hf_vfs *vfs, hf_vfs_file *file, int error)
{
    uint64_t count = (file->now.len + HF_VFS_BLOCK_LEN - 1) / HF_VFS_BLOCK_LEN;
    bool *is_dirty = calloc(count + 1, sizeof *is_dirty);
    hf_assert(is_dirty != NULL);
    file->errors++;
    file->error = error;
    file->is_told = false;
    HF_LIST_EACH(node, &vfs->pending)
    {
        hf_vfs_pending *op = HF_CONTAINER(node, hf_vfs_pending, node);
        if (op->file != file || hf_vfs_is_name_op(op)) {
            continue;
        }
        for (uint64_t i = op->offset / HF_VFS_BLOCK_LEN; op->kind == HF_VFS_WRITE && i < count; i++) {
            is_dirty[i] = is_dirty[i] || i * HF_VFS_BLOCK_LEN < op->offset + op->len;
        }
        if (op->kind == HF_VFS_TRUNCATE && op->offset < file->synced.len && hf_rng_below(&vfs->rng, 2) == 0) {
            hf_vfs_content_truncate(&file->synced, op->offset);
        }
        file->forgotten++;
        pending_drop(vfs, op);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (is_dirty[i]) {
            write_block_badly(vfs, file, i * HF_VFS_BLOCK_LEN);
        }
    }
    if (!file->is_clean && file->synced.len < file->now.len && hf_rng_below(&vfs->rng, 2) == 0) {
        hf_vfs_content_truncate(&file->synced,
                                file->now.len); /* the length reached the disk, with zeros in place of missing data */
    }
    free(is_dirty);
}

uint64_t hf_vfs_unsynced(const hf_vfs *vfs)
{
    uint64_t count = vfs->pending_count;
    HF_LIST_EACH(node, &vfs->files)
    {
        const hf_vfs_file *file = HF_CONTAINER(node, hf_vfs_file, node);
        count += is_invisible(file) ? 0 : file->forgotten;
    }
    return count;
}

/* ---- The disk as a whole ------------------------------------------------------------------------------------------ */

void hf_vfs_set_powersafe(hf_vfs *vfs, bool is_powersafe)
{
    vfs->is_powersafe = is_powersafe;
}

void hf_vfs_on_op(hf_vfs *vfs, hf_vfs_hook hook, void *state)
{
    vfs->hook = hook;
    vfs->hook_state = state;
}

uint64_t hf_vfs_ops(const hf_vfs *vfs)
{
    return vfs->ops;
}

bool hf_vfs_writeback_fails(hf_vfs *vfs, const char *file, int error, bool is_told)
{
    hf_vfs_file *found = hf_vfs_file_find(vfs, file);
    uint64_t changes = found != NULL ? found->pending - found->names : 0;
    if (changes == 0) {
        return false;
    }
    hf_vfs_do_sync_badly(vfs, found, error);
    found->is_told = is_told;
    return true;
}

void hf_vfs_power_off(hf_vfs *vfs)
{
    vfs->generation++;
    vfs->is_off = true;
}

void hf_vfs_power_on(hf_vfs *vfs)
{
    vfs->is_off = false;
}

/* ---- Files by hand ----------------------------------------------------------------------------------------------- */

/* A change by hand is durable at once, and so are the pending changes of the file. */
static void settle_by_hand(hf_vfs *vfs, hf_vfs_file *file)
{
    sync_name(vfs, file);
    hf_vfs_do_sync(vfs, file);
    hf_vfs_content_clear(&file->synced);
    file->is_clean = true;
    file->forgotten = 0;
    forget_lost(file);
}

bool hf_vfs_file_size(const hf_vfs *vfs, const char *file, uint64_t *ret_len)
{
    const hf_vfs_file *found = hf_vfs_file_find(vfs, file);
    if (found == NULL) {
        return false;
    }
    *ret_len = found->now.len;
    return true;
}

bool hf_vfs_read_file(const hf_vfs *vfs, const char *file, uint64_t offset, void *ret_bytes, size_t len,
                      size_t *ret_len)
{
    const hf_vfs_file *found = hf_vfs_file_find(vfs, file);
    if (found == NULL) {
        return false;
    }
    *ret_len = hf_vfs_content_read(&found->now, offset, ret_bytes, len);
    return true;
}

void hf_vfs_write_file(hf_vfs *vfs, const char *file, const void *bytes, size_t len)
{
    hf_vfs_file *found = hf_vfs_file_find(vfs, file);
    if (found == NULL) {
        found = hf_vfs_file_add(&vfs->files, file);
        hf_vfs_do_create(vfs, found);
    }
    settle_by_hand(vfs, found);
    hf_vfs_content_truncate(&found->now, 0);
    hf_vfs_content_write(&found->now, 0, bytes, len, NULL);
}

bool hf_vfs_truncate_file(hf_vfs *vfs, const char *file, uint64_t len)
{
    hf_vfs_file *found = hf_vfs_file_find(vfs, file);
    if (found == NULL) {
        return false;
    }
    settle_by_hand(vfs, found);
    hf_vfs_content_truncate(&found->now, len);
    return true;
}

bool hf_vfs_delete_file(hf_vfs *vfs, const char *file)
{
    hf_vfs_file *found = hf_vfs_file_find(vfs, file);
    if (found == NULL) {
        return false;
    }
    hf_vfs_do_delete(vfs, found);
    hf_vfs_do_sync_dir(vfs); /* other names along with it */
    return true;
}

bool hf_vfs_flip(hf_vfs *vfs, const char *file, uint64_t offset, unsigned bit)
{
    hf_vfs_file *found = hf_vfs_file_find(vfs, file);
    if (found == NULL || offset >= found->now.len) {
        return false;
    }
    settle_by_hand(vfs, found);
    unsigned char byte = 0;
    (void)hf_vfs_content_read(&found->now, offset, &byte, 1);
    byte ^= (unsigned char)(1U << bit % 8);
    hf_vfs_content_write(&found->now, offset, &byte, 1, NULL);
    return true;
}

const char *hf_vfs_file_name(const hf_vfs *vfs, size_t n)
{
    HF_LIST_EACH(node, &vfs->files)
    {
        const hf_vfs_file *file = HF_CONTAINER(node, hf_vfs_file, node);
        if (file->is_present && n-- == 0) {
            return file->name;
        }
    }
    return NULL;
}
