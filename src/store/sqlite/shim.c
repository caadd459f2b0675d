/* A VFS between SQLite and the real one. It counts what is written and synced, remembers a sync that failed, and
 * replaces the application id of an unfinished backup by another one. Logs and journals of a store that writes are opened so that they
 * survive a power cut (durable.c). A read that ends within a file is an error. Writes to the
 * write-ahead log that follow each other are gathered and written as one, before anything else is done with the file; only
 * where the log already has its space on the disk, so that a full disk is still reported by the write of the page. Everything
 * else is passed through.
 *
 * An open file is ours followed by the inner one, in the memory that SQLite gives:
 *
 *     shim_file { methods, inner ----+ , shim }  |  inner file ...
 *                                    +-----------^
 *
 * The inner file's methods may be of any version; ours offer no more than it has, and never memory mapping. The shared
 * memory of a WAL is offered, for tools that read: the store itself locks the file exclusively and needs none. */
#include "store/sqlite/sqlite_private.h"

#include <errno.h>
#include <stdio.h>

enum {
    ID_AT = 68, /* where the header has the application id */
    ID_LEN = 4,
    HEAD_LEN = 24 /* of a page in the log */
};

typedef struct shim_file {
    sqlite3_file base;     /* what SQLite sees */
    sqlite3_file *inner;   /* the real file, behind this struct */
    hf_shim *shim;         /* with the counters */
    bool is_main;          /* the database itself */
    bool is_log;           /* its write-ahead log */
    const char *new_name;  /* name of a log or journal that is not durable yet, SQLite's; NULL = durable (store-D2) */
    sqlite3_int64 len;     /* of the log, as far as it was seen */
    sqlite3_int64 late_at; /* where the writes that were gathered belong ... */
    size_t late_len;       /* ... and how much they are; shim->late holds them */
} shim_file;

_Static_assert(sizeof(shim_file) % _Alignof(void *) == 0, "the inner file follows");
_Static_assert(ID_AT + ID_LEN <= 100, "within the header of a database");

static hf_shim *shim_of(sqlite3_vfs *vfs)
{
    return HF_CONTAINER(vfs, hf_shim, vfs);
}

static sqlite3_file *inner_of(sqlite3_file *file)
{
    return ((shim_file *)file)->inner;
}

bool hf_shim_no_room(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

int hf_shim_errno(sqlite3_file *file)
{
    int error = 0;
    return file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error) == SQLITE_OK ? error : 0;
}

/* SQLite reports a full disk only if the device is full. A quota or the maximum size of a file that is used up is treated alike:
 * nothing was lost, and writes succeed again when there is room. */
static int write_inner(shim_file *self, const void *bytes, int len, sqlite3_int64 offset)
{
    sqlite3_vfs *vfs = self->shim->inner;
    if (self->new_name != NULL) {
        int named = hf_shim_name_durably(self->shim, self->new_name);
        if (named != SQLITE_OK) {
            return named;
        }
        self->new_name = NULL;
    }
    hf_assert(self->new_name == NULL); /* store-D2 */
    int rc = self->inner->pMethods->xWrite(self->inner, bytes, len, offset);
    if (rc == SQLITE_IOERR_WRITE && vfs->xGetLastError != NULL && hf_shim_no_room(vfs->xGetLastError(vfs, 0, NULL))) {
        return SQLITE_FULL;
    }
    if (rc == SQLITE_OK) {
        self->shim->bytes_written += (uint64_t)len;
        self->len = offset + len > self->len ? offset + len : self->len;
    }
    return rc;
}

/* Writes the gathered bytes. If that fails they are dropped: the caller rolls the commit back, or poisons the store. */
static int settle(sqlite3_file *file)
{
    shim_file *self = (shim_file *)file;
    if (self->late_len == 0) {
        return SQLITE_OK;
    }
    hf_assert(self->shim->log == self && self->late_len <= sizeof self->shim->late);
    int len = (int)self->late_len;
    self->late_len = 0;
    return write_inner(self, self->shim->late, len, self->late_at);
}

int hf_shim_settle(hf_shim *shim)
{
    return shim->log != NULL ? settle(&shim->log->base) : SQLITE_OK;
}

/* ---- The name of the log --------------------------------------------------------------------------------------------- */

/* SQLite can check whether an open file still has its name only for databases, not for logs. So the log is opened once more, as a
 * database that is never read or locked. */
static void open_witness(hf_shim *shim, const char *name)
{
    sqlite3_file *witness = sqlite3_malloc(shim->inner->szOsFile);
    if (witness == NULL) {
        return;
    }
    memset(witness, 0, (size_t)shim->inner->szOsFile);
    int rc = shim->inner->xOpen(shim->inner, name, witness, SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB, NULL);
    if (rc == SQLITE_OK) {
        shim->witness = witness;
        return;
    }
    if (witness->pMethods != NULL) {
        (void)witness->pMethods->xClose(witness);
    }
    sqlite3_free(witness);
}

static void close_witness(hf_shim *shim)
{
    if (shim->witness != NULL) {
        (void)shim->witness->pMethods->xClose(shim->witness);
        sqlite3_free(shim->witness);
        shim->witness = NULL;
    }
}

int hf_shim_exists(sqlite3_vfs *vfs, const char *name, int flags, int *ret_exists)
{
    errno = 0;
    int rc = vfs->xAccess(vfs, name, flags, ret_exists);
    bool is_error = rc == SQLITE_OK && flags == SQLITE_ACCESS_EXISTS && *ret_exists == 0 && errno != 0 &&
                    errno != ENOENT && errno != ENOTDIR;
    return is_error ? SQLITE_IOERR_ACCESS : rc;
}

bool hf_shim_log_is_gone(hf_shim *shim, const char *name)
{
    int exists = 1;
    int moved = 0;
    sqlite3_file *witness = shim->witness;
    if (shim->log == NULL || shim->log->len == 0) {
        return false; /* there is no log yet */
    }
    if (witness != NULL && witness->pMethods->xFileControl(witness, SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
        moved != 0) {
        return true;
    }
    return hf_shim_exists(shim->inner, name, SQLITE_ACCESS_EXISTS, &exists) == SQLITE_OK && exists == 0;
}

/* ---- Files --------------------------------------------------------------------------------------------------------- */

static int shim_close(sqlite3_file *file)
{
    int settled = settle(file);
    shim_file *self = (shim_file *)file;
    if (self->shim->log == self) {
        self->shim->log = NULL;
        close_witness(self->shim);
    }
    sqlite3_file *inner = inner_of(file);
    int rc = inner->pMethods->xClose(inner);
    return rc != SQLITE_OK ? rc : settled;
}

static int shim_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 offset)
{
    sqlite3_file *inner = inner_of(file);
    int rc = settle(file);
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = inner->pMethods->xRead(inner, bytes, len, offset);
    sqlite3_int64 file_len = 0;
    if (rc == SQLITE_IOERR_SHORT_READ && inner->pMethods->xFileSize(inner, &file_len) == SQLITE_OK &&
        offset + len <= file_len) {
        return SQLITE_IOERR_READ; /* SQLite would take the missing bytes for zeros, as after the end of a file */
    }
    return rc;
}

/* Writes the first page of an unfinished backup, with the other application id. */
static int write_unfinished(sqlite3_file *inner, const char *bytes, int len)
{
    static const unsigned char ID[ID_LEN] = {HF_SQLITE_UNFINISHED_ID >> 24, HF_SQLITE_UNFINISHED_ID >> 16 & 0xff,
                                             HF_SQLITE_UNFINISHED_ID >> 8 & 0xff, HF_SQLITE_UNFINISHED_ID & 0xff};
    hf_assert(len > ID_AT + ID_LEN);
    int rc = inner->pMethods->xWrite(inner, bytes, ID_AT, 0);
    if (rc == SQLITE_OK) {
        rc = inner->pMethods->xWrite(inner, ID, ID_LEN, ID_AT);
    }
    if (rc == SQLITE_OK) {
        rc = inner->pMethods->xWrite(inner, bytes + ID_AT + ID_LEN, len - ID_AT - ID_LEN, ID_AT + ID_LEN);
    }
    return rc;
}

/* The header of a page is always followed by its page: they are written together. */
static int write_log(shim_file *self, const void *bytes, int len, sqlite3_int64 offset)
{
    hf_shim *shim = self->shim;
    size_t count = (size_t)len;
    hf_assert(self->is_log && len >= 0);
    if (self->late_len > 0 &&
        (offset != self->late_at + (sqlite3_int64)self->late_len || count > sizeof shim->late - self->late_len)) {
        int rc = settle(&self->base);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    if (count > sizeof shim->late || shim->log != self) {
        return write_inner(self, bytes, len, offset);
    }
    if (self->late_len == 0) {
        self->late_at = offset;
    }
    hf_assert(self->late_len + count <= sizeof shim->late);
    hf_assert(offset == self->late_at + (sqlite3_int64)self->late_len); /* one write without a gap */
    memcpy(shim->late + self->late_len, bytes, count);
    self->late_len += count;
    bool has_room = offset + len <= self->len;
    return has_room || len == HEAD_LEN ? SQLITE_OK : settle(&self->base);
}

static int shim_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 offset)
{
    shim_file *self = (shim_file *)file;
    if (self->is_log) {
        return write_log(self, bytes, len, offset);
    }
    if (self->is_main && self->shim->unfinished && offset == 0 && len > ID_AT + ID_LEN) {
        int rc = write_unfinished(self->inner, bytes, len);
        self->shim->bytes_written += rc == SQLITE_OK ? (uint64_t)len : 0;
        return rc;
    }
    return write_inner(self, bytes, len, offset);
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 len)
{
    sqlite3_file *inner = inner_of(file);
    int rc = settle(file);
    rc = rc != SQLITE_OK ? rc : inner->pMethods->xTruncate(inner, len);
    if (rc == SQLITE_OK) {
        ((shim_file *)file)->len = len;
    }
    return rc;
}

static int shim_sync(sqlite3_file *file, int flags)
{
    shim_file *self = (shim_file *)file;
    int rc = settle(file);
    if (rc != SQLITE_OK) {
        return rc;
    }
    self->shim->flushes++;
    rc = self->inner->pMethods->xSync(self->inner, flags);
    if (rc != SQLITE_OK) {
        self->shim->sync_failed = true;
        self->shim->sync_error = hf_shim_errno(self->inner);
    }
    return rc;
}

static int shim_file_size(sqlite3_file *file, sqlite3_int64 *ret_len)
{
    sqlite3_file *inner = inner_of(file);
    int rc = settle(file);
    return rc != SQLITE_OK ? rc : inner->pMethods->xFileSize(inner, ret_len);
}

static void note_lock(sqlite3_file *file, int level)
{
    shim_file *self = (shim_file *)file;
    if (self->is_main) {
        self->shim->lock = level;
    }
}

static int shim_lock(sqlite3_file *file, int level)
{
    sqlite3_file *inner = inner_of(file);
    int rc = inner->pMethods->xLock(inner, level);
    if (rc == SQLITE_OK) {
        note_lock(file, level);
    }
    return rc;
}

static int shim_unlock(sqlite3_file *file, int level)
{
    sqlite3_file *inner = inner_of(file);
    note_lock(file, level);
    return inner->pMethods->xUnlock(inner, level);
}

static int shim_check_lock(sqlite3_file *file, int *ret_held)
{
    sqlite3_file *inner = inner_of(file);
    return inner->pMethods->xCheckReservedLock(inner, ret_held);
}

static int shim_control(sqlite3_file *file, int verb, void *arg)
{
    sqlite3_file *inner = inner_of(file);
    int rc = settle(file);
    return rc != SQLITE_OK ? rc : inner->pMethods->xFileControl(inner, verb, arg);
}

static int shim_sector_size(sqlite3_file *file)
{
    sqlite3_file *inner = inner_of(file);
    return inner->pMethods->xSectorSize != NULL ? inner->pMethods->xSectorSize(inner) : 0;
}

static int shim_device(sqlite3_file *file)
{
    sqlite3_file *inner = inner_of(file);
    return inner->pMethods->xDeviceCharacteristics != NULL ? inner->pMethods->xDeviceCharacteristics(inner) : 0;
}

static int shim_shm_map(sqlite3_file *file, int page, int page_len, int extend, void volatile **ret_memory)
{
    sqlite3_file *inner = inner_of(file);
    return inner->pMethods->xShmMap(inner, page, page_len, extend, ret_memory);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    sqlite3_file *inner = inner_of(file);
    return inner->pMethods->xShmLock(inner, offset, count, flags);
}

static void shim_shm_barrier(sqlite3_file *file)
{
    sqlite3_file *inner = inner_of(file);
    inner->pMethods->xShmBarrier(inner);
}

static int shim_shm_unmap(sqlite3_file *file, int remove)
{
    sqlite3_file *inner = inner_of(file);
    return inner->pMethods->xShmUnmap(inner, remove);
}

#define COMMON_METHODS                                                                                              \
    .xClose = shim_close, .xRead = shim_read, .xWrite = shim_write, .xTruncate = shim_truncate, .xSync = shim_sync, \
    .xFileSize = shim_file_size, .xLock = shim_lock, .xUnlock = shim_unlock, .xCheckReservedLock = shim_check_lock, \
    .xFileControl = shim_control, .xSectorSize = shim_sector_size, .xDeviceCharacteristics = shim_device

static const sqlite3_io_methods METHODS_1 = {.iVersion = 1, COMMON_METHODS};
static const sqlite3_io_methods METHODS_2 = {
    .iVersion = 2,
    COMMON_METHODS,
    .xShmMap = shim_shm_map,
    .xShmLock = shim_shm_lock,
    .xShmBarrier = shim_shm_barrier,
    .xShmUnmap = shim_shm_unmap,
};

/* ---- The VFS ------------------------------------------------------------------------------------------------------- */

static int shim_open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    hf_shim *shim = shim_of(vfs);
    shim_file *self = (shim_file *)file;
    *self = (shim_file){
        .inner = (sqlite3_file *)(void *)(self + 1),
        .shim = shim,
        .is_main = (flags & SQLITE_OPEN_MAIN_DB) != 0,
        .is_log = (flags & SQLITE_OPEN_WAL) != 0,
    };
    self->inner->pMethods = NULL;
    bool is_log = (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0 && (flags & SQLITE_OPEN_READWRITE) != 0;
    bool is_new = false;
    int rc = shim->is_writer && is_log ? hf_shim_open_durably(shim, name, self->inner, flags, ret_flags, &is_new)
                                       : shim->inner->xOpen(shim->inner, name, self->inner, flags, ret_flags);
    self->new_name = is_new ? name : NULL;
    if (self->inner->pMethods != NULL) { /* even after a failure: then SQLite closes the file */
        if (self->is_log) {
            close_witness(shim);
            open_witness(shim, name);
            shim->log = self;
            (void)self->inner->pMethods->xFileSize(self->inner, &self->len); /* 0 gathers nothing */
            shim->had_log = shim->had_log || self->len > 0;
        }
        self->base.pMethods = self->inner->pMethods->iVersion >= 2 ? &METHODS_2 : &METHODS_1;
    }
    return rc;
}

/* The directory is always synced. A rollback journal exists only until the log is in use, and SQLite does not make sure that its
 * removal is durable: one that came back after a power cut would be rolled back over all later checkpoints. */
static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)sync;
    sqlite3_vfs *inner = shim_of(vfs)->inner;
    return inner->xDelete(inner, name, 1);
}

static int shim_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_is_so)
{
    sqlite3_vfs *inner = shim_of(vfs)->inner;
    return hf_shim_exists(inner, name, flags, ret_is_so);
}

static int shim_full_name(sqlite3_vfs *vfs, const char *name, int len, char *ret_name)
{
    sqlite3_vfs *inner = shim_of(vfs)->inner;
    return inner->xFullPathname(inner, name, len, ret_name);
}

static int shim_randomness(sqlite3_vfs *vfs, int len, char *ret_bytes)
{
    sqlite3_vfs *inner = shim_of(vfs)->inner;
    return inner->xRandomness(inner, len, ret_bytes);
}

static int shim_sleep(sqlite3_vfs *vfs, int microseconds)
{
    sqlite3_vfs *inner = shim_of(vfs)->inner;
    return inner->xSleep(inner, microseconds);
}

static int shim_time(sqlite3_vfs *vfs, double *ret_day)
{
    sqlite3_vfs *inner = shim_of(vfs)->inner;
    return inner->xCurrentTime(inner, ret_day);
}

static int shim_last_error(sqlite3_vfs *vfs, int len, char *ret_text)
{
    sqlite3_vfs *inner = shim_of(vfs)->inner;
    return inner->xGetLastError != NULL ? inner->xGetLastError(inner, len, ret_text) : 0;
}

hf_status hf_shim_open(hf_op *op, hf_shim *shim, const char *inner)
{
    memset(shim, 0, sizeof *shim);
    sqlite3_vfs *found = sqlite3_vfs_find(inner);
    if (found == NULL) {
        return hf_fail(op, HF_ERR_NOT_FOUND, "SQLite has no VFS '%s'", inner != NULL ? inner : "");
    }
    int name_len = snprintf(shim->name, sizeof shim->name, "holdfast-%p", (void *)shim);
    hf_assert(name_len > 0 && (size_t)name_len < sizeof shim->name);
    shim->vfs = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = (int)sizeof(shim_file) + found->szOsFile,
        .mxPathname = found->mxPathname,
        .zName = shim->name,
        .xOpen = shim_open_file,
        .xDelete = shim_delete,
        .xAccess = shim_access,
        .xFullPathname = shim_full_name,
        .xRandomness = shim_randomness,
        .xSleep = shim_sleep,
        .xCurrentTime = shim_time,
        .xGetLastError = shim_last_error,
    };
    if (sqlite3_vfs_register(&shim->vfs, 0) != SQLITE_OK) {
        return hf_fail(op, HF_ERR_NOMEM, "SQLite cannot be initialised");
    }
    shim->inner = found;
    return HF_OK;
}

void hf_shim_close(hf_shim *shim)
{
    hf_assert(shim->log == NULL && shim->witness == NULL); /* its connection is closed */
    if (shim->inner != NULL) {
        (void)sqlite3_vfs_unregister(&shim->vfs);
        shim->inner = NULL;
    }
}
