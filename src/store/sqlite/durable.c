/* Logs and journals that survive a power cut.
 *
 * After a failed sync the page cache differs from the disk. Linux keeps the written pages readable, marks them as clean and reports
 * the error once: a process that opens the file later reads bytes that the disk does not have, and its own syncs succeed. If SQLite
 * appended to such a log, its checksums would end at the hole after a power cut, and everything after it would be lost. The
 * directory has the same problem: SQLite's own VFS syncs it after it has made a log, and ignores the error.
 *
 * store-D0  A database that was not closed has a log or a journal. Both, and the database itself, are synced and dropped from the cache before
 *     anything of them is read. Bytes that only the cache has are then not seen; on ext4 they could not even be repaired, because a block
 *     whose first write failed stays lost for as long as it is cached (ADR 0010, tests/kernel). This comes before SQLite locks the
 *     file: closing a descriptor gives up this process's locks on it.
 * store-D1  Before SQLite reads a log that an earlier process left, or writes to a journal that one left, every byte of it has been
 *     written again in place, and synced. The bytes do not change, so a power cut meanwhile cannot shorten what the
 *     disk has. This needs a disk that does not damage the bytes beside a torn write; so does the log itself, where each commit begins in
 *     the sector in which the last one ended.
 * store-D2  Before the first byte is written to a log or journal its name is durable. The first write syncs the folder, so that opening a
 *     store that was closed waits for no sync. If that fails the store is poisoned like after any failed sync. A log that is found empty is
 *     removed and created again: the sync of its name may have failed, and only a change makes the kernel write the directory again.
 *
 * Moving the log into the database instead (a checkpoint) would not help: a power cut during it leaves a file with pages from
 * after the hole and a log that ends before it.
 *
 * SQLite holds its exclusive lock on the database by then: in exclusive locking mode it takes the lock, opens the log, and
 * reads it, in this order (pagerOpenWal in its pager.c, from 3.7.7 to 3.53 at least; an assertion checks it). */
#include "store/sqlite/sqlite_private.h"

#include "base/canary.h"

#include <errno.h>
#include <stdio.h>

static hf_status reread_one(hf_op *op, const hf_sqlite_options *options, const char *path, const char *suffix,
                            bool *ret_is_there)
{
    char *name = sqlite3_mprintf("%s%s", path, suffix);
    if (name == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for the name of a log");
    }
    hf_op inner;
    hf_op_init(&inner);
    hf_status status = options->reread(options->reread_state, &inner, name);
    sqlite3_free(name);
    *ret_is_there = status != HF_ERR_NOT_FOUND;
    if (status == HF_OK || status == HF_ERR_NOT_FOUND || status == HF_ERR_DENIED || status == HF_ERR_INVALID) {
        return HF_OK; /* if the file itself is wrong, opening it reports that */
    }
    bool is_disk = status == HF_ERR_IO || status == HF_ERR_FULL;
    return hf_fail(
        op, status,
        "cannot open %s: an earlier process did not close it, and %s (%s). Nothing was changed: %s, then open "
        "it again",
        path, is_disk ? "the data it left cannot be written to the disk" : "its files cannot be opened", inner.message,
        status == HF_ERR_FULL ? "make room"
        : is_disk             ? "check the disk"
                              : "remove the cause");
}

hf_status hf_sqlite_reread(hf_op *op, sqlite3_vfs *vfs, const char *path, const hf_sqlite_options *options)
{
    if (options->reread == NULL || options->read_only || HF_CANARY(HF_BUG_CACHE_TRUSTED)) {
        return HF_OK;
    }
    char *file = sqlite3_malloc(vfs->mxPathname + 1);
    if (file == NULL) {
        return hf_fail(op, HF_ERR_NOMEM, "no memory for a path");
    }
    bool has_log = false;
    bool has_journal = false;
    bool has_file = false;
    bool is_known = (vfs->xFullPathname(vfs, path, vfs->mxPathname + 1, file) & 0xff) == SQLITE_OK;
    const char *name = is_known ? file : path;
    hf_status status = reread_one(op, options, name, "-wal", &has_log);
    status = status == HF_OK ? reread_one(op, options, name, "-journal", &has_journal) : status;
    if (status == HF_OK && (has_log || has_journal)) {
        status = reread_one(op, options, name, "", &has_file);
    }
    sqlite3_free(file);
    return status;
}

/* SQLite has no function to sync a directory, but it can open one like a file. The dot keeps it from being a symbolic link. */
static int sync_folder(hf_shim *shim, const char *name)
{
    sqlite3_vfs *vfs = shim->inner;
    const char *slash = strrchr(name, '/');
    int len = slash != NULL ? (int)(slash - name) + 1 : 0;
    char *folder = sqlite3_mprintf("%.*s.", len, name);
    sqlite3_file *file = sqlite3_malloc(vfs->szOsFile);
    int rc = folder != NULL && file != NULL ? SQLITE_OK : SQLITE_NOMEM;
    if (rc == SQLITE_OK) {
        memset(file, 0, (size_t)vfs->szOsFile);
        rc = vfs->xOpen(vfs, folder, file, SQLITE_OPEN_READONLY | SQLITE_OPEN_SUPER_JOURNAL, NULL);
        shim->trouble_error = rc != SQLITE_OK && vfs->xGetLastError != NULL ? vfs->xGetLastError(vfs, 0, NULL) : 0;
        if (rc == SQLITE_OK) {
            rc = file->pMethods->xSync(file, SQLITE_SYNC_FULL);
            shim->trouble_error = rc != SQLITE_OK ? hf_shim_errno(file) : 0;
        }
        if (file->pMethods != NULL) {
            (void)file->pMethods->xClose(file);
        }
    }
    if (HF_CANARY(HF_BUG_NAME_NOT_SYNCED)) {
        rc = SQLITE_OK;
    }
    if (rc != SQLITE_OK && rc != SQLITE_NOMEM) {
        shim->trouble = HF_SHIM_FOLDER;
    }
    sqlite3_free(file);
    sqlite3_free(folder);
    return rc;
}

int hf_shim_name_durably(hf_shim *shim, const char *name)
{
    int rc = sync_folder(shim, name);
    if (rc != SQLITE_OK && rc != SQLITE_NOMEM) {
        shim->sync_failed = true;
        shim->sync_error = shim->trouble_error;
    }
    return rc;
}

/* Creates an empty file where there was none. */
static int create(hf_shim *shim, const char *name, sqlite3_file *file, int flags)
{
    sqlite3_vfs *vfs = shim->inner;
    int rc = vfs->xOpen(vfs, name, file, flags | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE, NULL);
    if (file->pMethods != NULL) {
        (void)file->pMethods->xClose(file);
        file->pMethods = NULL;
    }
    return rc;
}

/* store-D1. Reads the file piece by piece and writes each back where it was. */
static int write_again(hf_shim *shim, sqlite3_file *file, sqlite3_int64 len)
{
    int rc = SQLITE_OK;
    for (sqlite3_int64 at = 0; at < len && rc == SQLITE_OK;) {
        size_t left = (size_t)(len - at);
        int part = (int)(left < sizeof shim->late ? left : sizeof shim->late);
        hf_assert(part > 0 && at + part <= len); /* store-D1: it is not made longer */
        rc = file->pMethods->xRead(file, shim->late, part, at);
        rc = rc == SQLITE_IOERR_SHORT_READ ? SQLITE_IOERR_READ : rc;
        if (rc == SQLITE_OK) {
            rc = file->pMethods->xWrite(file, shim->late, part, at);
            shim->bytes_written += rc == SQLITE_OK ? (uint64_t)part : 0;
        }
        at += part;
    }
    if (rc == SQLITE_OK) {
        shim->flushes++;
        rc = file->pMethods->xSync(file, SQLITE_SYNC_FULL);
    }
    if (rc != SQLITE_OK) {
        shim->trouble_error = hf_shim_errno(file);
    }
    return rc;
}

/* Opens the file of this name to read and write, if it is not empty; an empty file is removed. A file counts as missing only if the
 * system reports that it does not exist: any other failure is an error. (xAccess cannot be used: it takes every error for "no", and
 * checks the real user of a process instead of the effective one.) */
static int open_found(hf_shim *shim, const char *name, sqlite3_file *file, int flags, int *ret_flags,
                      sqlite3_int64 *ret_len)
{
    sqlite3_vfs *vfs = shim->inner;
    int got = 0;
    int rc = vfs->xOpen(vfs, name, file, flags & ~SQLITE_OPEN_CREATE, &got);
    if (rc != SQLITE_OK) {
        int error = vfs->xGetLastError != NULL ? vfs->xGetLastError(vfs, 0, NULL) : 0;
        file->pMethods = NULL;
        shim->trouble_error = error;
        shim->trouble = error == ELOOP ? HF_SHIM_LINK : shim->trouble;
        return error == ENOENT ? SQLITE_OK : rc;
    }
    if (ret_flags != NULL) {
        *ret_flags = got;
    }
    rc = (got & SQLITE_OPEN_READONLY) != 0 ? SQLITE_CANTOPEN : file->pMethods->xFileSize(file, ret_len);
    if (rc == SQLITE_OK && *ret_len == 0 && (flags & SQLITE_OPEN_CREATE) != 0) {
        (void)file->pMethods->xClose(file);
        file->pMethods = NULL;
        rc = vfs->xDelete(vfs, name, 0);
    }
    return rc;
}

int hf_shim_open_durably(hf_shim *shim, const char *name, sqlite3_file *file, int flags, int *ret_flags,
                         bool *ret_is_new)
{
    sqlite3_vfs *vfs = shim->inner;
    sqlite3_int64 len = 0;
    bool is_log = (flags & SQLITE_OPEN_WAL) != 0;
    hf_assert(shim->is_writer && file->pMethods == NULL);
    hf_assert(!is_log || shim->lock == SQLITE_LOCK_EXCLUSIVE); /* store-D1: nobody else reads or writes it */
    int rc = open_found(shim, name, file, flags, ret_flags, &len);
    *ret_is_new = rc == SQLITE_OK && file->pMethods == NULL;
    if (*ret_is_new) {
        rc = (flags & SQLITE_OPEN_CREATE) != 0 ? create(shim, name, file, flags) : SQLITE_OK;
        /* Without the flag SQLite's VFS does not sync the directory once more. */
        rc = rc == SQLITE_OK ? vfs->xOpen(vfs, name, file, flags & ~SQLITE_OPEN_CREATE, ret_flags) : rc;
    } else if (rc == SQLITE_OK && !HF_CANARY(HF_BUG_LOG_BEHIND_HOLE)) {
        rc = write_again(shim, file, len);
        shim->trouble = rc == SQLITE_OK ? HF_SHIM_FINE : is_log ? HF_SHIM_LOG : HF_SHIM_JOURNAL;
        rc = rc == SQLITE_OK ? sync_folder(shim, name) : rc;
    }
    if (rc != SQLITE_OK && file->pMethods != NULL) {
        (void)file->pMethods->xClose(file);
        file->pMethods = NULL;
    }
    hf_assert((rc == SQLITE_OK) == (file->pMethods != NULL));
    return rc;
}

hf_status hf_shim_explain(hf_op *op, const hf_shim *shim, const char *path, hf_status status)
{
    hf_assert(shim->trouble != HF_SHIM_FINE);
    char text[64] = "";
    const char *why = shim->trouble_error != 0 ? strerror_r(shim->trouble_error, text, sizeof text) : "an I/O error";
    bool is_full = status == HF_ERR_FULL || hf_shim_no_room(shim->trouble_error);
    status = is_full ? HF_ERR_FULL : status;
    why = is_full ? "the disk is full" : why;
    if (shim->trouble == HF_SHIM_LINK) {
        return hf_fail(
            op, HF_ERR_DENIED,
            "cannot open %s: its log, %s-wal or %s-journal, is a symbolic link. Remove the link; if it leads to the "
            "log of a program that was killed, put that file in its place",
            path, path, path);
    }
    if (shim->trouble == HF_SHIM_FOLDER) {
        return hf_fail(op, status,
                       "cannot open %s: its folder could not be flushed (%s), so a power cut could remove the log of "
                       "the database: check the disk and the rights on the folder, then open it again",
                       path, why);
    }
    return hf_fail(op, status,
                   "cannot open %s: an earlier process did not close it, and the data it left in %s-%s could not be "
                   "written to the disk again (%s). Nothing was changed: %s, then open it again",
                   path, path, shim->trouble == HF_SHIM_LOG ? "wal" : "journal", why,
                   is_full ? "make room" : "check the disk");
}
